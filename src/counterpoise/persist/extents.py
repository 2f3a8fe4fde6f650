"""How deep and how large a value would be, were its shared parts written out each time.

A few bytes can describe a tuple of two times a tuple of two times and so on. It takes little memory, but to print,
compare or hash it would take for ever, or overflow the stack.
"""

from collections.abc import Iterable
from typing import Any

_MOST_KEYS = 2000  # of a dict that are no texts: whoever chooses numbers can have them all collide
_DEEPEST = 100  # models are some ten deep
_LARGEST = 10**8  # parts


def check_keys(keys: Iterable[Any]) -> None:
    """Raise a ValueError where the keys of a dict might take a time that grows with the square of their number."""
    if sum(type(key) is not str for key in keys) > _MOST_KEYS:
        raise ValueError(f"a dict has more than {_MOST_KEYS} keys that are no texts")


class Extents:
    """Keeps account of nodes, each of which refers only to nodes before it."""

    def __init__(self) -> None:
        self._known: list[tuple[int, int]] = []

    def add(self, node: list[Any]) -> None:
        """Count a node, and raise a ValueError where it is too deep or too large."""
        inner = [self._known[child[0]] for child in node if isinstance(child, list)]
        depth = 1 + max((depth for depth, _ in inner), default=0)
        size = len(node) + sum(size for _, size in inner)
        if depth > _DEEPEST or size > _LARGEST:
            raise ValueError("it is nested too deeply")
        self._known.append((depth, size))
