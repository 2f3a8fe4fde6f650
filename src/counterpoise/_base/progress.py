"""Progress of long work: its value and text, and callbacks for compiled kernels and predictions."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple, TypeAlias

_MINUTE, _HOUR = 60, 3600
_FEW_MINUTES = 10 * _MINUTE  # of which seconds are still shown


class RunProgress(NamedTuple):
    """How far a run is.

    Examples
    --------
    >>> from counterpoise._base.progress import RunProgress
    >>> print(RunProgress(3, 12, "tree 3", elapsed=30.0, left=90.0))
    3 of 12: tree 3; 30 s so far, about 1 min 30 s left
    """

    done: int
    total: int  # 0 where nothing is counted: then the part is what is going on
    part: str  # the newest
    elapsed: float  # seconds
    left: float  # seconds, as the mean over the parts so far has it

    @property
    def since(self) -> str:
        """Return the text for the time since then: after the part that is done, or what is going on."""
        return f"after {self.part}" if self.total else self.part

    def __str__(self) -> str:
        if not self.total:
            return f"{self.part}; {duration(self.elapsed)} so far"
        left = f", about {duration(self.left)} left" if self.done < self.total else ""
        return f"{self.done} of {self.total}: {self.part}; {duration(self.elapsed)} so far{left}"


ProgressCallback: TypeAlias = Callable[[RunProgress], None]
Watch: TypeAlias = Callable[[str | None], None]  # the name of a kernel that begins to compile, None when it is done

_watchers: tuple[Watch, ...] = ()


@contextmanager
def watch_compilation(watch: Watch) -> Iterator[None]:
    """Call ``watch`` for every kernel that is compiled meanwhile, in whatever thread."""
    global _watchers  # noqa: PLW0603 - a new tuple each time: another thread may be going through the old one
    _watchers = (*_watchers, watch)
    try:
        yield
    finally:
        _watchers = tuple(one for one in _watchers if one is not watch)


def report_compilation(name: str | None) -> None:
    """Call all watchers when a kernel begins to compile, or with None when it is done."""
    for watch in _watchers:
        watch(name)


def _ignore() -> None:
    """Do nothing."""


_listener: ContextVar[Callable[[], None]] = ContextVar("counterpoise_listener", default=_ignore)


@contextmanager
def notify_on_prediction(each: Callable[[], None]) -> Iterator[None]:
    """Call ``each`` whenever a model of a pool has predicted rows, until the context ends."""
    token = _listener.set(each)
    try:
        yield
    finally:
        _listener.reset(token)


def prediction_listener() -> Callable[[], None]:
    """Return the function to call when a model of a pool has predicted rows; threads begun here do not inherit it."""
    return _listener.get()


def duration(seconds: float) -> str:
    """Return a time as text, such as 1 min 30 s."""
    if seconds < _MINUTE:
        return f"{seconds:.0f} s"
    if seconds < _FEW_MINUTES:
        minutes, rest = divmod(round(seconds), _MINUTE)
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    if seconds < _HOUR:
        return f"{seconds / _MINUTE:.0f} min"
    return f"{seconds / _HOUR:.1f} h"
