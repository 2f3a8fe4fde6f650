"""Work on several processors: tasks, and parts of rows, in threads."""

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from contextvars import ContextVar
from numbers import Integral
from typing import Any, Generic, TypeVar

from counterpoise._base.contexts import set_within

Part = TypeVar("Part")
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


class ThreadedParts(Generic[Part]):
    """Parts of some rows, each with a thread of its own.

    Examples
    --------
    >>> from counterpoise._base.threads import ThreadedParts
    >>> parts = ThreadedParts([[3, 1], [5]])
    >>> parts.map(max)
    [3, 5]
    >>> parts.close()
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts
        self._pool = ThreadPoolExecutor(len(parts)) if len(parts) > 1 else None

    def map(self, function: Callable[..., Result], *arguments: Any, light: bool = False) -> list[Result]:
        """Return ``function(part, *arguments)`` of every part, the last one's in this thread.

        ``light``: there is so little to do that no other thread need be woken.
        """
        if self._pool is None or light:
            return [function(part, *arguments) for part in self.parts]
        others = [self._pool.submit(function, part, *arguments) for part in self.parts[:-1]]
        last = function(self.parts[-1], *arguments)
        return [*(other.result() for other in others), last]

    def close(self) -> None:
        """Let the threads go."""
        if self._pool is not None:
            self._pool.shutdown()
