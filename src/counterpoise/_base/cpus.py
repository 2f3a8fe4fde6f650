"""How many processors may be used, and work spread over them."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Integral
from typing import Any, TypeVar

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


@contextmanager
def threads_limited(n_threads: int) -> Iterator[None]:
    """Use so many threads at most: where several workers share a machine, each has its part."""
    token = _limit.set(n_threads)
    try:
        yield
    finally:
        _limit.reset(token)


def in_threads(
    function: Callable[..., Result], tasks: Iterable[tuple[Any, ...]], n_jobs: Any, *, shared: bool = False
) -> list[Result]:
    """Return what a function says of each task, ``n_jobs`` at a time; ``shared``: threads, whatever a caller wants."""
    from joblib import Parallel, delayed  # noqa: PLC0415 - heavy

    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(
            f"n_jobs must be None for one thread, the number of threads, or -1 for one a processor; got {n_jobs!r}."
        )
    parallel = Parallel(n_jobs=n_jobs, prefer="threads", require="sharedmem" if shared else None)
    return list(parallel(delayed(function)(*task) for task in tasks))
