"""Rows in shards: map over them, add small things up, decide in one place.

A shard is a dictionary of named things, made by a source. Functions run where the rows are and hand back what is small:
a histogram, a few sums, a slope. On one machine the shards are parts of arrays, and threads take one each; in other
processes or on other machines the same functions run on the same dictionaries. An engine is a class with the methods of
``Shards``.

Results come in the order of the shards, and sums of whole numbers are exact (``solvers.sums.whole_masses``), so that
what is decided does not depend on how the rows are cut.
"""

from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from counterpoise._base.types import FloatArray

Result = TypeVar("Result")


class Shard(dict[str, Any]):
    """Some of the rows, as named things, and which shard of how many it is."""

    def __init__(self, number: int, kept: dict[str, Any]) -> None:
        super().__init__(kept)
        self.number = number


Source = Callable[[], dict[str, Any]]  # makes what a shard holds; elsewhere it must be possible to pickle


class Shards(Protocol):
    """What an engine does. Functions are those of a module, known elsewhere by name; what they are given is small."""

    n_shards: int
    is_here: bool  # in this process: what shards hand back costs nothing to hold

    def map(self, function: Callable[..., Result], *given: Any, light: bool = False) -> list[Result]:
        """Return ``function(shard, *given)`` of every shard, in their order.

        The function leaves nothing in the shard that a later one relies on, but for what it can make again. ``light``:
        there is so little to do that no other thread need be woken.
        """

    def change(self, key: Hashable, function: Callable[..., Result], *given: Any) -> list[Result]:
        """Do the same with a function that leaves something behind.

        It is remembered, with what it was given, under a key, in the place of what had that key: a shard whose worker
        is lost is made again by its source and by all that is remembered, in the order in which the keys came.
        """

    def forget(self, key: Hashable) -> None:
        """Remember a change no more, because others make it good."""

    def close(self) -> None:
        """Let go of the shards."""


class LocalShards:
    """Shards in this process, one thread for each."""

    is_here = True

    def __init__(self, sources: Sequence[Source]) -> None:
        self.n_shards = len(sources)
        self._pool = ThreadPoolExecutor(len(sources) - 1) if len(sources) > 1 else None
        self._shards = [Shard(number, {}) for number in range(len(sources))]
        self.map(_fill, sources)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def map(self, function: Callable[..., Result], *given: Any, light: bool = False) -> list[Result]:
        """Map over the shards, the last of them in this thread."""
        if self._pool is None or light:
            return [function(shard, *given) for shard in self._shards]
        others = [self._pool.submit(function, shard, *given) for shard in self._shards[:-1]]
        last = function(self._shards[-1], *given)
        return [*(other.result() for other in others), last]

    def change(self, key: Hashable, function: Callable[..., Result], *given: Any) -> list[Result]:  # noqa: ARG002
        """Map; nothing here is lost that would have to be made again."""
        return self.map(function, *given)

    def forget(self, key: Hashable) -> None:
        """Remember nothing."""

    def close(self) -> None:
        """Let the threads go."""
        if self._pool is not None:
            self._pool.shutdown()


def _fill(shard: Shard, sources: Sequence[Source]) -> None:
    shard.update(sources[shard.number]())


class Remembered:
    """The changes that make shards again, for engines whose workers may be lost."""

    def __init__(self) -> None:
        self._changes: dict[Hashable, tuple[Callable[..., Any], tuple[Any, ...]]] = {}

    def add(self, key: Hashable, function: Callable[..., Any], given: tuple[Any, ...]) -> None:
        """Remember a change in the place of that with the same key."""
        self._changes.pop(key, None)
        self._changes[key] = (function, given)

    def forget(self, key: Hashable) -> None:
        """Remember it no more."""
        self._changes.pop(key, None)

    def steps(self) -> list[tuple[Callable[..., Any], tuple[Any, ...]]]:
        """Return the changes in order."""
        return list(self._changes.values())


def made_again(number: int, source: Source, steps: Sequence[tuple[Callable[..., Any], tuple[Any, ...]]]) -> Shard:
    """Return a shard as its source and the changes so far leave it."""
    shard = Shard(number, source())
    for function, given in steps:
        function(shard, *given)
    return shard


def total(parts: Sequence[Any]) -> FloatArray:
    """Return the sum over shards, in their order."""
    return np.asarray(np.sum(parts, axis=0))
