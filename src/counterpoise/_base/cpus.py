"""How many processors may be used."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

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
