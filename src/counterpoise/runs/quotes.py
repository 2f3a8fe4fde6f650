"""Quotes of a CSV file that are never closed: they swallow the lines behind them, and no reader says so."""

import re
from pathlib import Path

from counterpoise.persist.files import opened
from counterpoise.runs.errors import DataError, short
from counterpoise.runs.written import how_written

_CHUNK = 1 << 18  # bytes
_QUOTE = b'"'
_MOST = 1 << 30  # bytes that are looked at once more for the line of a quote
_SHOWN = 60  # characters of a line


def has_odd_quotes(path: Path) -> bool:
    """Tell whether the number of quotes in a file is odd, as it is where one of a pair is lacking."""
    count = 0
    with opened(path) as stream:
        while chunk := stream.read(_CHUNK):
            count += chunk.count(_QUOTE)
    return count % 2 == 1


def refuse_open_quotes(path: Path) -> None:
    """Say in which line a quote opens that is never closed, or only by that of another field; else do nothing."""
    with opened(path) as stream:
        content, is_cut = stream.read(_MOST), bool(stream.read(1))
    encoding = how_written().encoding
    # One byte is one character where no encoding is named: quotes, commas and ends of lines are the same in UTF-8.
    text = content.decode(encoding or "latin-1", errors="replace")
    place = _first_open_quote(text, how_written().delimiter or ",", is_cut=is_cut)
    if place is None:
        return
    line = text[text.rfind("\n", 0, place) + 1 : text.find("\n", place) % (len(text) + 1)].rstrip("\r")
    shown = line if encoding else line.encode("latin-1").decode(errors="replace")
    raise DataError(
        f"Line {text.count(chr(10), 0, place) + 1} of {path} opens a quote that is not closed, so that the lines "
        f"behind it count as part of one field: {short(shown, _SHOWN)!r}. Close it; a quote within a field in quotes "
        "is written twice."
    )


def _first_open_quote(text: str, delimiter: str, *, is_cut: bool) -> int | None:
    """Return the place of the first quote that begins a field over several lines and does not end it.

    A field is in quotes where its first character is one, and ends with the next that is not doubled. Behind that the
    next field or the next line must begin: where anything else stands there, the quote was to open another field.
    """
    ends = rf"{re.escape(delimiter)}\n\r"
    field = re.compile(
        rf'(?:\A(?:\ufeff|\u00ef\u00bb\u00bf)?|(?<=[{ends}]))"[^"]*(?:""[^"]*)*(?P<end>"?)(?P<rest>[^{ends}]?)'
    )
    for match in field.finditer(text):
        if match["rest"] and "\n" in match.group():
            return match.start()
        if not match["end"] and not is_cut:
            return match.start()
    return None
