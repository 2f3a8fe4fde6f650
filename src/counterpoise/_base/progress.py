"""Progress of long work: its value and text, and callbacks for compiled kernels and predictions."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from importlib.util import find_spec
from typing import Any, NamedTuple, TypeAlias

from counterpoise._base.contexts import set_within

COMPILING = "compiling kernels, once"
_PAUSE = 4.5  # seconds between two lines on progress: nobody waits for more than five without a word
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


def notify_on_prediction(each: Callable[[], None]) -> AbstractContextManager[None]:
    """Call ``each`` whenever a model of a pool has predicted rows, until the context ends."""
    return set_within(_listener, each)


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


class Pace:
    """Reports how far work is; what it resumes from does not count in the time left."""

    def __init__(self, tell: ProgressCallback, total: int = 1) -> None:
        self.tell, self.total = tell, total
        self.restored, self.started = 0, time.monotonic()

    def resume(self, n_rounds: int) -> None:
        """Begin after rounds that were restored."""
        self.restored = n_rounds

    def __call__(self, done: Any) -> None:
        self.step(done.number, f"round {done.number}, {done.summary}")

    def step(self, number: int, part: str) -> None:
        """Report that a part is done."""
        elapsed = time.monotonic() - self.started
        left = elapsed / max(number - self.restored, 1) * (self.total - number)
        self.tell(RunProgress(number, self.total, part, elapsed, left))


class Words:
    """What long work is at: its newest part, or that kernels compile, which interrupts it."""

    def __init__(self) -> None:
        self.part = "working"
        self._n_compiling = 0  # a kernel that is compiled may call for others

    def watch(self, kernel: str | None) -> None:
        """Hear that a kernel begins to compile, or with None that one is done."""
        self._n_compiling += 1 if kernel else -1

    def __str__(self) -> str:
        return COMPILING if self._n_compiling else self.part


@contextmanager
def lines_of_progress(pause: float = _PAUSE) -> Iterator[ProgressCallback]:
    """Print how far work is every few seconds, with or without news, and at its end: logs stay short."""
    started = printed = time.monotonic()
    words, is_over, has_compiled = Words(), threading.Event(), False

    def say(text: str) -> None:
        nonlocal printed
        printed = time.monotonic()
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    def tell(progress: RunProgress) -> None:
        words.part = progress.since
        if progress.done == progress.total > 0 or time.monotonic() - printed > pause:
            say(str(progress._replace(elapsed=time.monotonic() - started)))  # on one clock with the other lines

    def watch(kernel: str | None) -> None:
        nonlocal has_compiled
        words.watch(kernel)
        if not has_compiled:
            has_compiled = True
            say(COMPILING)

    def speak_up() -> None:
        while not is_over.wait(max(printed + pause - time.monotonic(), 0.0)):
            if time.monotonic() - printed >= pause:
                say(f"{words}; {duration(time.monotonic() - started)} so far")

    speaker = threading.Thread(target=speak_up, daemon=True)
    speaker.start()
    try:
        with watch_compilation(watch):
            yield tell
    finally:
        is_over.set()
        speaker.join()


@contextmanager
def bar_of_progress() -> Iterator[ProgressCallback]:
    """Show a bar with the time left, by the package ``rich``."""
    from rich import progress as rich  # noqa: PLC0415 - heavy, and for terminals only

    columns = (
        rich.SpinnerColumn(),
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.TextColumn("{task.fields[counted]}"),
        rich.TimeElapsedColumn(),
        rich.TimeRemainingColumn(),
    )
    words = Words()
    with rich.Progress(*columns, transient=True) as bar:
        task = bar.add_task(str(words), total=None, counted="")

        def tell(progress: RunProgress) -> None:
            words.part, counted = progress.part, f"{progress.done}/{progress.total}" if progress.total else ""
            total = progress.total or None  # None: a bar that only moves
            bar.update(task, completed=progress.done, total=total, description=str(words), counted=counted)

        def watch(kernel: str | None) -> None:
            words.watch(kernel)
            bar.update(task, description=str(words))

        with watch_compilation(watch):
            yield tell


_callback: ContextVar[ProgressCallback] = ContextVar("counterpoise_progress", default=lambda _progress: None)


def progress_callback() -> ProgressCallback:
    """Return the function to call with the progress of a fit; threads begun here do not inherit it."""
    return _callback.get()


def report_progress_to(tell: ProgressCallback) -> AbstractContextManager[None]:
    """Call a function with the progress of every fit until the context ends."""
    return set_within(_callback, tell)


@contextmanager
def show_progress() -> Iterator[None]:
    """Show how far every fit inside of the context is: which fold of which model is trained, and how long it took.

    In a terminal or a notebook a bar with the time left, where the package ``rich`` is installed (``pip install
    "counterpoise[progress]"``; notebooks also need ``ipywidgets``); otherwise a line every few seconds.

    Examples
    --------
    >>> import counterpoise as cp
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> with cp.show_progress():  # doctest: +ELLIPSIS
    ...     model = cp.GoalClassifier(GaussianNB(), goals="recall >= 0.9", cv=2, random_state=0).fit(X, y)
    7 of 7: Model 0 (GaussianNB), all rows in 0.0 s; 0 s so far
    """
    with bar_of_progress() if _draws_bars() else lines_of_progress() as tell, report_progress_to(tell):
        yield


def _draws_bars() -> bool:
    """Return whether ``rich`` is installed and can draw here."""
    try:
        from rich import get_console  # noqa: PLC0415 - an optional package
    except ImportError:
        return False
    console = get_console()
    return console.is_terminal or (console.is_jupyter and find_spec("ipywidgets") is not None)
