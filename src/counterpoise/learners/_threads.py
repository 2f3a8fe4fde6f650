"""A few threads for kernels that release the interpreter lock."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self, TypeVar

from counterpoise._base.cpus import available_cpus

Result = TypeVar("Result")

_FEW = 100_000  # additions that are made faster than a thread is woken
_PIECES = 2  # for each thread, so that one that the system holds up leaves some of its share to the others


class Workers:
    """One thread for each processor, started on entry and gone on exit.

    They live for one fit or one prediction: a pool kept between calls would not survive a fork.
    """

    def __init__(self, work: int) -> None:
        self.n_workers = available_cpus() if work >= _FEW else 1
        self._pool = ThreadPoolExecutor(self.n_workers - 1) if self.n_workers > 1 else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let the threads go."""
        if self._pool is not None:
            self._pool.shutdown()

    def map_ranges(
        self, function: Callable[[int, int], Result], length: int, *, work: int = _FEW, multiple: int = 1
    ) -> list[Result]:
        """Call ``function(start, stop)`` on ranges that cover ``range(length)``, and return the results in order.

        Where there is little work, or one thread, there is one range. Their length is a multiple of ``multiple``.
        """
        if self._pool is None or work < _FEW or length <= multiple:
            return [function(0, length)]
        step = -(-length // (_PIECES * self.n_workers * multiple)) * multiple
        starts = range(0, length, step)
        pending = deque(starts)
        results: dict[int, Result] = {}

        def drain() -> None:
            while pending:
                try:
                    start = pending.popleft()
                except IndexError:  # another thread was faster
                    return
                results[start] = function(start, min(start + step, length))

        others = [self._pool.submit(drain) for _ in range(self.n_workers - 1)]
        drain()
        for other in others:
            if not other.cancel():  # one that has not begun by now is not needed
                other.result()
        return [results[start] for start in starts]
