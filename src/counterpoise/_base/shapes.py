"""Shapes of values from JSON: what a reader expects is declared once, and checked before anything is made of it.

A shape is a ``Kind``; ``OrNone`` or ``Some`` of others; a tuple, for a list of as many entries with a shape each; a
list ``[shape]``, for a list of any length, or ``[shape, ...]`` of one entry at least; a dict, for an object with just
these keys; or ``{str: shape}``, for an object with any keys.
"""

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from counterpoise._base.text import shown

MOST_COUNTED = 2**53  # a whole number that floats still hold exactly


class Kind(NamedTuple):
    """Values that are no lists and no objects: what they are called, and which belong to them."""

    name: str
    holds: Callable[[Any], bool]


class OrNone(NamedTuple):
    """A value of a shape, or None."""

    shape: Any


class Some(NamedTuple):
    """An object with some of the keys of a dict, or with none."""

    shapes: Mapping[Any, Any]


def whole(least: int = 0, most: int = MOST_COUNTED) -> Kind:
    """Return the whole numbers from the least to the most."""
    return Kind(f"a whole number from {least} to {most}", lambda value: type(value) is int and least <= value <= most)


def number(least: float = -math.inf, most: float = math.inf) -> Kind:
    """Return the finite numbers from the least to the most."""
    return Kind(
        f"a finite number from {least:g} to {most:g}", lambda value: _is_finite(value) and least <= value <= most
    )


def one_of(*words: str) -> Kind:
    """Return some texts."""
    return Kind(f"one of {', '.join(map(repr, words))}", lambda value: isinstance(value, str) and value in words)


def _is_finite(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= sys.float_info.max


ANY = Kind("anything", lambda _value: True)
NOTHING = Kind("null", lambda value: value is None)
TEXT = Kind("a text", lambda value: isinstance(value, str))
LABEL = Kind("a text, a number or a truth value", lambda value: isinstance(value, (str, bool)) or _is_finite(value))


def check_shape(value: Any, shape: Any, name: str) -> None:
    """Check that a value from JSON has a shape.

    Parameters
    ----------
    value : object
    shape : shape
        As the module says.
    name : str
        What the message calls the value.

    Raises
    ------
    ValueError
        With the place of the first value that differs.

    Examples
    --------
    >>> from counterpoise._base.shapes import TEXT, check_shape, number
    >>> check_shape({"name": "a", "shares": [0.5, 0.5]}, {"name": TEXT, "shares": [number(0, 1)]}, "rule")
    >>> check_shape({"name": "a", "shares": [0.5, "b"]}, {"name": TEXT, "shares": [number(0, 1)]}, "rule")
    Traceback (most recent call last):
    ...
    ValueError: rule['shares'][1] must be a finite number from 0 to 1; got 'b'
    """
    wrong = _misfit(value, shape)
    if wrong:
        raise ValueError(f"{name}{wrong}")


_Entries = Iterable[tuple[Any, Any, Any]]  # key or place, value and shape of each


def _misfit(value: Any, shape: Any) -> str:
    """Return the place of the first value that differs and what it must be, an empty text where none does."""
    if isinstance(shape, OrNone):
        return "" if value is None else _misfit(value, shape.shape)
    if isinstance(shape, Kind):
        return "" if shape.holds(value) else f" must be {shape.name}; got {shown(value)}"
    entries = _of_object(value, shape) if isinstance(shape, (Mapping, Some)) else _of_list(value, shape)
    if isinstance(entries, str):
        return entries
    for key, entry, own in entries:
        wrong = _misfit(entry, own)
        if wrong:
            return f"[{shown(key)}]{wrong}"
    return ""


def _of_object(value: Any, shape: Any) -> _Entries | str:
    known: Mapping[Any, Any] = shape.shapes if isinstance(shape, Some) else shape
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        return f" must be an object; got {shown(value)}"
    if str in known:
        return ((key, entry, known[str]) for key, entry in value.items())
    foreign, lacking = value.keys() - known.keys(), known.keys() - value.keys()
    if foreign or (lacking and not isinstance(shape, Some)):
        return f" must {'not ' if foreign else ''}have the key {shown(min(foreign or lacking))}"
    return ((key, entry, known[key]) for key, entry in value.items())


def _of_list(value: Any, shape: Any) -> _Entries | str:
    is_tuple, least = isinstance(shape, tuple), len(shape) - isinstance(shape, list)
    if not isinstance(value, (list, tuple)) or len(value) < least or (is_tuple and len(value) > least):
        size = f" of {'exactly' if is_tuple else 'at least'} {least}" if is_tuple or least else ""
        return f" must be a list{size}; got {shown(value)}"
    return zip(range(len(value)), value, shape if is_tuple else shape[:1] * len(value), strict=True)
