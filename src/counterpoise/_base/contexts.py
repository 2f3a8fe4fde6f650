"""Values that hold inside of a context."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Value = TypeVar("Value")


@contextmanager
def set_within(variable: ContextVar[Value], value: Value) -> Iterator[None]:
    """Give a variable a value until the context ends; threads begun inside do not inherit it."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)
