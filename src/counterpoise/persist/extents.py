"""How deep and how large a value would be, were its shared parts written out each time.

A few bytes can describe a tuple of two times a tuple of two times and so on. It takes little memory, but to print,
compare or hash it would take for ever, or overflow the stack.
"""

from typing import Any

_DEEPEST = 100  # models are some ten deep
_LARGEST = 10**8  # parts


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
