"""Work on several processors: tasks in threads, rows in shards.

A shard is a dictionary of named values, made by a source. Functions run where the rows are and return something small:
a histogram, a few sums, a slope. On one machine the shards are parts of arrays, and threads take one each; in other
processes or on other machines the same functions run on the same dictionaries. An engine is a class with the methods of
``Shards``.

Results come in the order of the shards, and sums of whole numbers are exact (``solvers.rows.whole_masses``), so that
what is decided does not depend on how the rows are cut.
"""

import operator
import os
import traceback
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from contextvars import ContextVar
from numbers import Integral
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from counterpoise._base.contexts import set_within
from counterpoise._base.types import AnyArray, FloatArray

Result = TypeVar("Result")

_limit: ContextVar[int | None] = ContextVar("threads", default=None)


def available_cpus() -> int:
    """Return the number of processors that this process may use, or as many as it was limited to."""
    limit = _limit.get()
    if limit is not None:
        return limit
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def limit_threads(n_threads: int) -> AbstractContextManager[None]:
    """Use so many threads at most: where several workers share a machine, each has its part."""
    return set_within(_limit, n_threads)


def in_threads(
    function: Callable[..., Result], tasks: Iterable[tuple[Any, ...]], n_jobs: Any, *, shared: bool = False
) -> list[Result]:
    """Return the result of a function for each task, ``n_jobs`` at a time; ``shared`` always uses threads."""
    from joblib import Parallel, delayed  # noqa: PLC0415 - heavy

    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(
            f"n_jobs must be None for one thread, the number of threads, or -1 for one per processor; got {n_jobs!r}."
        )
    parallel = Parallel(n_jobs=n_jobs, prefer="threads", require="sharedmem" if shared else None)
    return list(parallel(delayed(function)(*task) for task in tasks))


class Shard(dict[str, Any]):
    """Some of the rows, as named things, and the number of the shard."""

    def __init__(self, number: int, contents: dict[str, Any]) -> None:
        super().__init__(contents)
        self.number = number
        self._rooms: dict[tuple[str, str], AnyArray] = {}

    def buffer(self, name: str, size: int, dtype: Any = np.float64) -> AnyArray:
        """Return an array of that name to write into, the same each time: to touch new memory takes long."""
        key = name, np.dtype(dtype).str
        if key not in self._rooms or self._rooms[key].size < size:
            self._rooms[key] = np.empty(size, dtype)
        return self._rooms[key][:size]


Step = tuple[Callable[..., Any], tuple[Any, ...]]  # a function, and what it is given beside the shard
Source = Callable[[], dict[str, Any]]  # makes what a shard holds; elsewhere it must be possible to pickle


class Shards(Protocol):
    """What an engine does. Functions are those of a module, known elsewhere by name; what they are given is small."""

    n_shards: int
    is_here: bool  # in this process: what shards hand back costs nothing to hold

    def map(self, function: Callable[..., Result], *arguments: Any, light: bool = False) -> list[Result]:
        """Return ``function(shard, *given)`` of every shard, in their order.

        The function leaves nothing in the shard that a later one relies on, but for what it can make again. ``light``:
        there is so little to do that no other thread need be woken.
        """

    def change(self, key: Hashable, function: Callable[..., Result], *arguments: Any) -> list[Result]:
        """Do the same with a function that leaves something behind.

        It is remembered, with what it was given, under a key, in the place of what had that key: a shard whose worker
        is lost is made again by its source and by all that is remembered, in the order in which the keys came.
        """

    def queue_change(self, key: Hashable, function: Callable[..., object], *arguments: Any) -> None:
        """Do the same without a result: it may be done together with the next call, which then raises its errors."""

    def forget(self, key: Hashable) -> None:
        """Remember a change no more, because others make it good."""

    def close(self) -> None:
        """Let go of the shards."""


class LocalShards:
    """Shards in this process, one thread for each."""

    is_here = True

    def __init__(self, sources: Sequence[Source]) -> None:
        self.n_shards = len(sources)
        self._pool = ThreadPoolExecutor(len(sources)) if len(sources) > 1 else None
        map_over = map if self._pool is None else self._pool.map
        self._shards = [Shard(number, contents) for number, contents in enumerate(map_over(operator.call, sources))]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def map(self, function: Callable[..., Result], *arguments: Any, light: bool = False) -> list[Result]:
        """Map over the shards, the last of them in this thread."""
        if self._pool is None or light:
            return [function(shard, *arguments) for shard in self._shards]
        others = [self._pool.submit(function, shard, *arguments) for shard in self._shards[:-1]]
        last = function(self._shards[-1], *arguments)
        return [*(other.result() for other in others), last]

    def change(self, key: Hashable, function: Callable[..., Result], *arguments: Any) -> list[Result]:  # noqa: ARG002
        """Map; nothing here is lost that would have to be made again."""
        return self.map(function, *arguments)

    def queue_change(self, key: Hashable, function: Callable[..., object], *arguments: Any) -> None:
        """Change at once: nothing travels."""
        self.change(key, function, *arguments)

    def forget(self, key: Hashable) -> None:
        """Remember nothing."""

    def close(self) -> None:
        """Let the threads go."""
        if self._pool is not None:
            self._pool.shutdown()


class ChangeLog:
    """The changes that make shards again, for engines whose workers may be lost."""

    def __init__(self) -> None:
        self._changes: dict[Hashable, Step] = {}

    def add(self, key: Hashable, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        """Remember a change in the place of that with the same key."""
        self._changes.pop(key, None)
        self._changes[key] = (function, arguments)

    def forget(self, key: Hashable) -> None:
        """Remember it no more."""
        self._changes.pop(key, None)

    def steps(self) -> list[Step]:
        """Return the changes in order."""
        return list(self._changes.values())


def rebuild_shard(number: int, source: Source, steps: Sequence[Step]) -> Shard:
    """Return a shard as its source and the changes so far leave it."""
    shard = Shard(number, source())
    apply_steps(shard, steps)
    return shard


def apply_steps(shard: Shard, steps: Sequence[Step]) -> Any:
    """Apply steps to a shard one after the other, and return the result of the last."""
    result = None
    for function, arguments in steps:
        result = function(shard, *arguments)
    return result


class TaskFailure:
    """An error where a shard is, with the lines where it was."""

    def __init__(self, error: Exception) -> None:
        error.add_note("".join(traceback.format_exception(error)))
        self.error = error


def capture_errors(function: Callable[..., Result], *arguments: Any) -> Result | TaskFailure:
    """Return what a function returns, or the error that it raises, to be raised where the result is used."""
    try:
        return function(*arguments)
    except Exception as error:  # noqa: BLE001 - of whatever kind, it is raised where the result is used
        return TaskFailure(error)


def unwrap(answer: Any) -> Any:
    """Return a result, or raise the error that came in its place."""
    if isinstance(answer, TaskFailure):
        raise answer.error
    return answer


def total(parts: Sequence[Any]) -> FloatArray:
    """Return the sum over shards, in their order."""
    return np.asarray(np.sum(parts, axis=0))
