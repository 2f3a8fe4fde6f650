"""Words of the goal language: how names and values are written, and what to say when one is unknown."""

import re
from collections.abc import Iterable
from datetime import datetime
from numbers import Integral, Real
from typing import Any

import numpy as np

from counterpoise._base.text import did_you_mean

NUMBER = r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
WORD = r"[^\W\d]\w*"
QUOTED = r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\""  # a quote inside is doubled
_PLAIN_NAME = re.compile(WORD)
_PLAIN_VALUE = re.compile(rf"{WORD}|-?{NUMBER}")
_SHOWN = 10  # known words listed in a message
_LONG = 200  # characters of an unknown one
_TIME = re.compile(r"(?P<day>\d{4,}-\d\d-\d\d)[T ](?P<clock>\d\d(:\d\d(:\d\d)?)?)(\.(?P<fraction>\d+))?")
_MIDNIGHT = "00:00:00"
_WHOLE = 1e16  # floats below it that are whole are written as integers; above it their digits are not exact


class UnknownName(ValueError):  # noqa: N818 - named for what it reports, as InfeasibleGoals is
    """A dataset, column, value or metric that does not exist; the message lists the known ones and the nearest."""

    __module__ = "counterpoise.goals"


class NoRows(ValueError):  # noqa: N818 - named for what it reports
    """Data in which no row is such as a rate is taken of: they cannot answer, though nothing about them is wrong."""

    __module__ = "counterpoise.goals"


class UnknownValue(UnknownName, NoRows):
    """A value that no row holds in its column."""

    __module__ = "counterpoise.goals"


def unknown(kind: str, word: str, known: Iterable[str], *, where: str = "") -> UnknownName:
    """Return the error for a word that is not among the known ones.

    Examples
    --------
    >>> from counterpoise.goals.wording import unknown
    >>> print(unknown("column", "sec", ["age", "sex"], where=" in dataset 'train'"))
    Unknown column 'sec' in dataset 'train'. Did you mean 'sex'? Known: 'age', 'sex'.
    """
    words = list(known)
    hint = did_you_mean(word, words)
    more = f" and {len(words) - _SHOWN} more" if len(words) > _SHOWN else ""
    listed = ", ".join(map(repr, words[:_SHOWN])) or "none"
    shown = word if len(word) <= _LONG else f"{word[:_LONG]}..."
    return UnknownName(f"Unknown {kind} {shown!r}{where}.{hint} Known: {listed}{more}.")


def written_name(name: str) -> str:
    """Return a name as it stands in a goal's text, in quotes unless it is a plain word."""
    return name if _PLAIN_NAME.fullmatch(name) else _in_quotes(name)


def written_value(value: str) -> str:
    """Return a value as it stands in a goal's text, in quotes unless it is a plain word or number."""
    return value if _PLAIN_VALUE.fullmatch(value) else _in_quotes(value)


def _in_quotes(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def without_quotes(token: str) -> str:
    """Return what stands between the quotes of a token; a quote inside was doubled."""
    quote = token[0]
    return token[1:-1].replace(quote * 2, quote)


def written_number(value: float) -> str:
    """Return the shortest text that reads back as the same number."""
    return str(int(value)) if value == int(value) and abs(value) < _WHOLE else repr(value)


def text_of(value: Any) -> str:
    """Return the text by which a value is known in a goal: 1, 1.0 and "1" are all ``1``, a day is ``2026-11-03``.

    Examples
    --------
    >>> from datetime import date, datetime
    >>> from counterpoise.goals.wording import text_of
    >>> [text_of(value) for value in ("F", 1, 1.0, 2.5, True)]
    ['F', '1', '1', '2.5', 'True']
    >>> text_of(date(2026, 11, 3)), text_of(datetime(2026, 11, 3)), text_of(datetime(2026, 11, 3, 14, 30))
    ('2026-11-03', '2026-11-03', '2026-11-03 14:30:00')
    """
    if isinstance(value, (np.datetime64, datetime)):
        return text_of_time(str(value))
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, Real):
        return str(value)
    if isinstance(value, Integral):
        return str(int(value))
    number = float(value)
    return written_number(number) if np.isfinite(number) else repr(number)


def text_of_time(text: str) -> str:
    """Return a time in one form, given any ISO form of it: midnight as the day alone, as ``2026-11-03``.

    So a date, a timestamp of the same day and the field of a CSV file that either is written to are one value. A time
    with a zone stays as it is.

    Examples
    --------
    >>> from counterpoise.goals.wording import text_of_time
    >>> text_of_time("2026-11-03T00:00:00.000000000"), text_of_time("2026-11-03T14:30:00.500")
    ('2026-11-03', '2026-11-03 14:30:00.500000')
    """
    match = _TIME.fullmatch(text)
    if match is None:
        return text
    day, clock, fraction = (
        match["day"],
        match["clock"] + _MIDNIGHT[len(match["clock"]) :],
        (match["fraction"] or "").rstrip("0"),
    )
    if not fraction:
        return day if clock == _MIDNIGHT else f"{day} {clock}"
    return f"{day} {clock}.{fraction.ljust(6 if len(fraction) <= 6 else 9, '0')}"  # noqa: PLR2004 - as pandas does
