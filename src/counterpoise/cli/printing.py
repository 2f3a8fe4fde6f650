"""What the commands print: lines for people, one JSON object for scripts, a bar for long work."""

import inspect
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

if TYPE_CHECKING:
    from counterpoise._base.progress import RunProgress, Tell

_PAUSE = 5.0  # seconds between two lines on progress


@dataclass(frozen=True, kw_only=True)
class Shown:
    """How much a command prints."""

    quiet: bool = False
    """Print nothing but errors."""

    json: bool = False
    """Print one JSON object instead of text, for scripts."""

    def say(self, text: str) -> None:
        """Print a line for people."""
        if not (self.quiet or self.json):
            _print(text)

    def answer(self, text: str, values: Mapping[str, Any]) -> None:
        """Print the result of a command: text, or the same as JSON."""
        if self.json:
            _print(json.dumps(_plain(values), indent=2, allow_nan=False))
        elif not self.quiet:
            _print(text)

    @contextmanager
    def progress(self) -> "Iterator[Tell]":
        """Show how far long work is: a bar with the time left in a terminal, else a line now and then."""
        if self.quiet or self.json:
            yield lambda _progress: None
        elif sys.stdout.isatty():
            with _bar() as tell:
                yield tell
        else:
            yield _now_and_then()


Flag = Parameter(negative="", show_default=False)
Out = Annotated[Shown, Parameter(name="*", negative="", show_default=False)]
PRINTED = Shown()


def flowing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Join the lines of each paragraph of a command's docstring: the terminal's width breaks them, not the source's.

    Markdown would do the same, but its renderer alone takes longer to import than the rest of ``--help``.
    """
    head, rule, parameters = inspect.cleandoc(function.__doc__ or "").partition("\nParameters\n")
    paragraphs = [" ".join(paragraph.split()) for paragraph in head.split("\n\n")]
    function.__doc__ = "\n\n".join(paragraphs) + "\n" + rule + parameters
    return function


def _now_and_then() -> "Tell":
    """Return what prints how far work is when some seconds have gone by, and at its end: logs stay short."""
    printed = time.monotonic()

    def tell(progress: "RunProgress") -> None:
        nonlocal printed
        if progress.done == progress.total or time.monotonic() - printed > _PAUSE:
            printed = time.monotonic()
            _print(str(progress))

    return tell


@contextmanager
def _bar() -> "Iterator[Tell]":
    from rich import progress as rich  # noqa: PLC0415 - heavy, and for terminals only

    columns = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TimeRemainingColumn(),
    )
    with rich.Progress(*columns, transient=True) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda done: bar.update(task, completed=done.done, total=done.total, description=done.part)


def _plain(value: Any) -> Any:
    """Return the value as JSON has it: NaN and infinity, which it has not, become null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
