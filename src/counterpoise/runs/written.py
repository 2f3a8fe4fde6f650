"""How CSV files are written: what stands between columns, in which encoding, and before the decimals of a number.

Whoever reads files says so once, ``with written_as(...)``; options of a command win over keys of a goals file.
"""

import codecs
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import NamedTuple

from counterpoise.persist.files import opened
from counterpoise.runs.errors import DataError

SEPARATORS = (";", "\t", "|")  # beside commas
_LOOKED_AT = 1 << 16  # bytes of a file from which it is told how it is written
_DECIMALS = re.compile(r"-?[0-9]+,[0-9]+")
_DELIMITER = re.compile(r"[ -!#-~\t]")  # a printable sign of ASCII that is no quote
_POINTS = re.compile(r"-?[0-9]+\.[0-9]+")
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_JSON = re.compile(rb"(\xef\xbb\xbf)?\s*(\[\s*[\[{]|\{\s*\"|\[\s*\])")
_HOW = "{key} under [data] of a goals file, or --{key} on the command line"


class Written(NamedTuple):
    """How CSV files are written; None is the usual: commas, UTF-8, a decimal point."""

    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None

    def check(self) -> "Written":
        """Return the same, after checking it."""
        if self.delimiter is not None and not _DELIMITER.fullmatch(self.delimiter):
            raise ValueError(f"delimiter must be one character, such as ';' or a tab; got {self.delimiter!r}.")
        if self.decimal not in (None, ".", ","):
            raise ValueError(f"decimal must be '.' or ','; got {self.decimal!r}.")
        if self.decimal == "," and self.delimiter in (None, ","):
            raise ValueError("decimal = ',' needs another delimiter than a comma, such as ';'.")
        if self.encoding is not None:
            try:
                "text".encode(self.encoding)
            except (LookupError, UnicodeError):  # not known, or not one of texts
                raise ValueError(
                    f"encoding must be one that Python knows, such as 'latin-1'; got {self.encoding!r}."
                ) from None
        return self

    def or_else(self, other: "Written") -> "Written":
        """Return what is said here, and what the other says about the rest."""
        return Written(*(mine if mine is not None else theirs for mine, theirs in zip(self, other, strict=True)))


_written: ContextVar[Written] = ContextVar("counterpoise_written", default=Written())  # noqa: B039 - never changed


@contextmanager
def written_as(written: Written) -> Iterator[None]:
    """Read CSV files as they are written, until the context ends; what an outer context says wins."""
    token = _written.set(_written.get().or_else(written).check())
    try:
        yield
    finally:
        _written.reset(token)


def how_written() -> Written:
    """Return how CSV files are written."""
    return _written.get()


def refuse_other_kinds(path: Path) -> None:
    """Say what a file is that is no CSV file in UTF-8, where its first bytes tell."""
    with opened(path) as stream:
        start = stream.read(64)
    if start.startswith(_UTF_16) and how_written().encoding is None:
        how = _HOW.format(key="encoding")
        raise DataError(f"{path} must be UTF-8 text; it is UTF-16. Say so with {how} (utf-16), or save it as UTF-8.")
    if path.suffix.lower() in {".json", ".jsonl", ".ndjson"} or _JSON.match(start):
        raise DataError(
            f"{path} must be a CSV or Parquet file; it holds JSON. Make a table of it first, as in "
            f"pandas.read_json({path.name!r}).to_parquet({path.stem + '.parquet'!r})."
        )
    if start.startswith(b"PK\x03\x04"):
        raise DataError(
            f"{path} must be a CSV or Parquet file; it is an Excel workbook or a zip file. Save the sheet as CSV first."
        )


def refuse_other_separators(path: Path, names: list[str]) -> None:
    """Say how to name what stands between columns, where a header of one column shows it."""
    other = next((mark for mark in SEPARATORS if len(names) == 1 and mark in names[0]), None)
    if other is not None:
        how = _HOW.format(key="delimiter")
        raise DataError(
            f"{path} must have commas between columns; its header has {other!r}. Name it with {how}, or save the file "
            "with commas, or as Parquet."
        )


def guessed(path: Path) -> Written:
    """Return how a CSV file seems to be written, by its first lines."""
    with opened(path) as stream:
        start = stream.read(_LOOKED_AT)
    encoding = how_written().encoding or ("utf-16" if start.startswith(_UTF_16) else None)
    header, *lines = start.decode(encoding or "utf-8", errors="replace").splitlines() or [""]
    counts = {mark: header.count(mark) for mark in (",", *SEPARATORS)}
    most = how_written().delimiter or max(counts, key=lambda mark: counts[mark])
    if most == "," or not counts.get(most, 1):
        return Written(encoding=encoding)
    cells = [cell.strip() for line in lines[:-1] for cell in line.split(most)]
    has_commas, has_points = (any(map(kind.fullmatch, cells)) for kind in (_DECIMALS, _POINTS))
    return Written(most, encoding, "," if has_commas and not has_points else None)
