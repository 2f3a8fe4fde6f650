"""Shards in processes of this machine: the smallest engine beside threads, and the model of a further one.

Each process holds some shards and does one thing after the other that comes through its pipe. One that is gone, killed
for its memory perhaps, is started again, its shards are made again, and what was asked is asked anew.
"""

import multiprocessing
from collections.abc import Callable, Hashable, Sequence
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from typing import Any, Self, TypeVar

from counterpoise._base.checks import check_count
from counterpoise._base.shards import (
    ChangeLog,
    Shard,
    Source,
    Step,
    available_cpus,
    capture_errors,
    limit_threads,
    rebuild_shard,
    unwrap,
)

Result = TypeVar("Result")

_MAKE = "make"
_TRIES = 3  # times that a process is started again for one question: what kills it each time would do so forever


class ProcessShards:
    """Shards in processes of this machine.

    Parameters
    ----------
    sources : sequence of callables
        Each returns what a shard holds; it must be possible to pickle them.
    n_processes : int, optional
        How many processes share the shards. Default: one for each.

    Examples
    --------
    >>> from functools import partial
    >>> from process_shards import ProcessShards
    >>> with ProcessShards([partial(dict, rows=3), partial(dict, rows=4)]) as shards:  # doctest: +SKIP
    ...     sum(shards.map(len))
    2
    """

    is_here = False

    def __init__(self, sources: Sequence[Source], n_processes: int | None = None) -> None:
        self.n_shards, self._sources = len(sources), list(sources)
        wanted = self.n_shards if n_processes is None else n_processes
        n_hosts = min(self.n_shards, check_count(wanted, "n_processes"))
        self._remembered = ChangeLog()
        self._limit = max(1, available_cpus() // n_hosts)  # threads of each
        self._hosts = [_Host(self._limit) for _ in range(n_hosts)]
        for place, host in enumerate(self._hosts):
            host.ask(_MAKE, self._made(place))
        for place in range(n_hosts):
            unwrap(self._answer(place, (_made_already, ()), was_asked=True))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pids(self) -> list[int | None]:
        """Return the numbers of the processes."""
        return [host.process.pid for host in self._hosts]

    def map(self, function: Callable[..., Result], *given: Any, light: bool = False) -> list[Result]:  # noqa: ARG002
        """Ask all processes, then wait for all."""
        asked = [host.ask(function, given) for host in self._hosts]
        parts = [self._answer(place, (function, given), was_asked) for place, was_asked in enumerate(asked)]
        for part in parts:
            unwrap(part)
        return [parts[number % len(parts)][number // len(parts)] for number in range(self.n_shards)]

    def change(self, key: Hashable, function: Callable[..., Result], *given: Any) -> list[Result]:
        """Map, and remember it for shards that must be made again."""
        found = self.map(function, *given)
        self._remembered.add(key, function, given)
        return found

    def queue_change(self, key: Hashable, function: Callable[..., object], *given: Any) -> None:
        """Change at once."""
        self.change(key, function, *given)

    def forget(self, key: Hashable) -> None:
        """Remember a change no more."""
        self._remembered.forget(key)

    def close(self) -> None:
        """End the processes."""
        for host in self._hosts:
            host.end()

    def _made(self, place: int) -> tuple[Any, ...]:
        """Return what makes the shards of a process: their numbers and sources, and the changes so far."""
        numbers = range(place, self.n_shards, len(self._hosts))
        return [(number, self._sources[number]) for number in numbers], self._remembered.steps()

    def _answer(self, place: int, step: Step, was_asked: bool) -> Any:
        for _ in range(_TRIES):
            try:
                if was_asked:
                    return self._hosts[place].answer()
            except EOFError:
                pass
            was_asked = self._start_again(place) and self._hosts[place].ask(*step)
        raise RuntimeError(
            f"The process that holds shard {place} ended {_TRIES} times while it ran {step[0].__name__}, the last time "
            f"with exit code {self._hosts[place].process.exitcode}: it may need more memory than there is. Use more "
            "shards, or fewer at once."
        )

    def _start_again(self, place: int) -> bool:
        self._hosts[place].end()
        self._hosts[place] = _Host(self._limit)
        try:
            if not self._hosts[place].ask(_MAKE, self._made(place)):
                return False
            unwrap(self._hosts[place].answer())
        except EOFError:
            return False
        return True


def _made_already(_shard: Shard) -> None:
    """Ask for nothing: the shards are there."""


class _Host:
    """One process, and this end of its pipe."""

    def __init__(self, limit: int) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would copy threads that hold locks
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(other, limit), daemon=True)
        self.process.start()
        other.close()

    def ask(self, what: Any, given: tuple[Any, ...]) -> bool:
        """Tell whether the question could be put."""
        try:
            self.pipe.send((what, given))
        except OSError:
            return False
        return True

    def answer(self) -> Any:
        """Return what comes back, or raise ``EOFError`` where the process is gone."""
        try:
            return self.pipe.recv()
        except OSError as error:
            raise EOFError from error

    def end(self) -> None:
        self.pipe.close()
        self.process.join(_PATIENCE)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


_PATIENCE = 5.0  # seconds that a process has to end by itself


def _serve(pipe: Connection, limit: int) -> None:
    """Make shards, then run functions on them until the pipe closes."""
    hosted = _Hosted(limit)
    while True:
        try:
            question = pipe.recv_bytes()
        except (EOFError, OSError):
            return
        pipe.send(capture_errors(hosted.answer, question))


class _Hosted:
    """The shards of a process."""

    def __init__(self, limit: int) -> None:
        self.limit, self.shards = limit, list[Shard]()

    def answer(self, question: bytes) -> Any:
        what, given = ForkingPickler.loads(question)
        with limit_threads(self.limit):
            if what == _MAKE:
                self.shards = [rebuild_shard(number, source, given[1]) for number, source in given[0]]
                return len(self.shards)
            return [what(shard, *given) for shard in self.shards]
