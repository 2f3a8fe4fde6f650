"""What the commands print: lines for people, JSON for scripts, a bar for long work; options that commands share."""

import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from counterpoise._base.progress import bar_of_progress, lines_of_progress
from counterpoise._base.text import plain_values
from counterpoise.runs.places import check_data_file, check_header, check_run_folder

_DESCRIPTION = re.compile(r"(?:\n {4}\S.*)+")  # of a parameter
_TABS = {"\\t": "\t", "tab": "\t"}  # as a shell lets them be typed


@dataclass(frozen=True, kw_only=True)
class Csv:
    """How CSV files are written."""

    delimiter: str | None = None
    """The separator of columns in a CSV file, such as ";" or "tab". Default: that of the run, else a comma."""

    encoding: str | None = None
    """The encoding of a CSV file, such as "latin-1". Default: that of the run, else UTF-8."""

    decimal: str | None = None
    """The decimal mark of numbers in a CSV file, "." or ",". Default: that of the run, else a point."""

    @property
    def separator(self) -> str | None:
        """Return the separator of columns, where it is given."""
        return None if self.delimiter is None else _TABS.get(self.delimiter, self.delimiter)

    def check_columns(self, table: Path, **named: str | Sequence[str] | None) -> None:
        """Check that a table is there, and has the columns that options name."""
        check_data_file(table)
        columns = {option: [value] if isinstance(value, str) else value or [] for option, value in named.items()}
        check_header(table, columns, self.separator, self.encoding)

    def reading(self) -> AbstractContextManager[None]:
        """Return a context in which CSV files are read this way."""
        from counterpoise.runs.settings import Written, written_as  # noqa: PLC0415 - only where a command runs

        return written_as(Written(self.separator, self.encoding, self.decimal))


Read = Annotated[Csv, Parameter(name="*", negative="", show_default=False)]
USUAL = Csv()


if TYPE_CHECKING:
    from counterpoise._base.progress import ProgressCallback
    from counterpoise.runs.folder import Run


@dataclass(frozen=True, kw_only=True)
class Shown:
    """How much a command prints."""

    quiet: bool = False
    """Print nothing but errors."""

    json: bool = False
    """Print one JSON object instead of text, for scripts."""

    def begin(self, command: str, *files: Path, goals: Sequence[str] | None = None) -> None:
        """Check what needs few packages, that files are there and goals can be read, and say that a command starts."""
        for file in files:
            check_data_file(file)
        if goals:
            from counterpoise.goals import parse_goal  # noqa: PLC0415 - only where there are any

            for goal in goals:
                parse_goal(goal)
        if not (self.quiet or self.json):
            sys.stderr.write(f"counterpoise {command} starts\n")
            sys.stderr.flush()

    def open_run(self, command: str, folder: Path, goals: Sequence[str] | None = None) -> "Run":
        """Return the run in a folder, after checking that there is one."""
        check_run_folder(folder)
        self.begin(command, goals=goals)
        from counterpoise.runs.folder import open_run  # noqa: PLC0415 - heavy: where there is a run

        return open_run(folder)

    def say(self, text: str) -> None:
        """Print a line for people."""
        if not (self.quiet or self.json):
            _print(text)

    def answer(self, text: str, values: Mapping[str, Any]) -> None:
        """Print the result of a command: text, or the same as JSON."""
        if self.json:
            _print(json.dumps(plain_values(values), indent=2, allow_nan=False))
        elif not self.quiet:
            _print(text)

    @contextmanager
    def progress(self) -> "Iterator[ProgressCallback]":
        """Show how far long work is: a bar with the time left in a terminal, else a line every few seconds."""
        if self.quiet or self.json:
            yield lambda _progress: None
        else:
            with bar_of_progress() if sys.stdout.isatty() else lines_of_progress() as tell:
                yield tell


def write_page(value: Any, path: Path | None, name: str = "report") -> str:
    """Write the page of a value where a path is named, and return the lines that say so."""
    if path is None:
        return ""
    from counterpoise.report import page  # noqa: PLC0415 - heavy: only where a page is written

    page.write_page(value, path)
    return f"\n\n{name}: {path}"


def write_csv(value: Any, path: Path | None) -> str:
    """Write a value as a CSV file where a path is named, and return the lines that say so."""
    if path is None:
        return ""
    from counterpoise.runs.folder import write_output  # noqa: PLC0415 - heavy: only where a table is written

    write_output(path, value.as_csv().encode())
    return f"\n\ntable: {path}"


Flag = Parameter(negative="", show_default=False)
Out = Annotated[Shown, Parameter(name="*", negative="", show_default=False)]
PRINTED = Shown()


def flowing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Join the lines of each paragraph and parameter of a command's docstring, which the terminal's width breaks.

    Markdown would do the same, but its renderer alone takes longer to import than the rest of ``--help``.
    """
    head, rule, parameters = inspect.cleandoc(function.__doc__ or "").partition("\nParameters\n")
    paragraphs = [" ".join(paragraph.split()) for paragraph in head.split("\n\n")]
    parameters = _DESCRIPTION.sub(lambda found: "\n    " + " ".join(found[0].split()), parameters)
    function.__doc__ = "\n\n".join(paragraphs) + "\n" + rule + parameters
    return function


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
