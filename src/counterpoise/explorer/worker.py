"""One thread that computes for all pages: what someone waits for with a finger on a slider comes first."""

import heapq
import itertools
import threading
from collections.abc import Callable, Iterator

Step = Iterator[str | None]
Cancel = threading.Event
Send = Callable[[str], None]


class Worker:
    """Runs jobs step by step; an urgent one comes before the next step of any other.

    A job is an iterator whose last value is sent. One that was cancelled takes no further step.
    """

    def __init__(self) -> None:
        self._jobs: list[tuple[int, int, Step, Send, Cancel]] = []
        self._numbers, self._ready = itertools.count(), threading.Condition()
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name="counterpoise-explorer", daemon=True)
        self._thread.start()

    def submit(self, job: Step, send: Send, *, urgent: bool) -> Cancel:
        """Queue a job, and return what cancels it when it is set."""
        cancelled = Cancel()
        with self._ready:
            heapq.heappush(self._jobs, (0 if urgent else 1, next(self._numbers), job, send, cancelled))
            self._ready.notify()
        return cancelled

    def close(self) -> None:
        """Let the job at hand end its step, and forget all others."""
        with self._ready:
            self._is_over = True
            self._jobs.clear()
            self._ready.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._ready:
                self._ready.wait_for(lambda: self._jobs or self._is_over)
                if self._is_over:
                    return
                priority, _, job, send, cancelled = heapq.heappop(self._jobs)
            if cancelled.is_set():
                continue
            found = next(job, "")
            if found is None:
                with self._ready:
                    heapq.heappush(self._jobs, (priority, next(self._numbers), job, send, cancelled))
            elif found and not cancelled.is_set():
                send(found)
