"""A thread that computes for all pages: what someone waits for with a finger on a slider comes first."""

import heapq
import itertools
import threading
from collections.abc import Callable, Iterator

Steps = Iterator[str | None]
Send = Callable[[str], None]


class Job:
    """Something under way: whether it was given up, and whether it is over."""

    def __init__(self, steps: Steps, send: Send, later: "Worker | None" = None) -> None:
        self.steps, self.send, self.later = steps, send, later
        self.is_cancelled = self.is_done = False

    def cancel(self) -> None:
        """Take no further step, and send nothing."""
        self.is_cancelled = True

    def step(self) -> bool:
        """Take a step, and tell whether there are more; the last value is sent."""
        found = None if self.is_cancelled else next(self.steps, "")
        self.is_done = self.is_cancelled or found is not None
        if found and not self.is_cancelled:
            self.send(found)
        return not self.is_done


class Worker:
    """Runs jobs step by step; an urgent one comes before the next step of any other.

    A job is an iterator whose last value is sent. One that was cancelled takes no further step.
    """

    def __init__(self) -> None:
        self._jobs: list[tuple[int, int, Job]] = []
        self._numbers, self._ready = itertools.count(), threading.Condition()
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name="counterpoise-explorer", daemon=True)
        self._thread.start()

    def submit(self, steps: Steps, send: Send, *, urgent: bool, later: "Worker | None" = None) -> Job:
        """Queue a job, and return it; all its steps but the first are left to another worker where one is given."""
        job = Job(steps, send, later)
        self.push(0 if urgent else 1, job)
        return job

    def push(self, priority: int, job: Job) -> None:
        """Queue a job that may have begun elsewhere."""
        with self._ready:
            heapq.heappush(self._jobs, (priority, next(self._numbers), job))
            self._ready.notify()

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
                priority, _, job = heapq.heappop(self._jobs)
            if job.step():
                (job.later or self).push(priority, job)
