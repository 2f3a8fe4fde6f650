"""Values as goals write them: words, numbers, ranges of numbers, and the distinct texts of a column."""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.text import did_you_mean
from counterpoise._base.types import AnyArray, BoolArray, IntArray

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
    >>> from counterpoise.goals.values import unknown
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
    >>> from counterpoise.goals.values import text_of
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
    >>> from counterpoise.goals.values import text_of_time
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


_SIGNS = "<=|>=|<|>"
_COLUMN = rf"(?P<column>{QUOTED}|{WORD})"
_TEXT = re.compile(
    rf"\s*(?:(?P<first>-?{NUMBER})\s*(?P<sign>{_SIGNS})\s*)?{_COLUMN}(?:\s*(?P<then>{_SIGNS})\s*(?P<last>-?{NUMBER}))?\s*"
)
MIRRORED = {"<=": ">=", ">=": "<=", "<": ">", ">": "<"}


class Range(NamedTuple):
    """The numbers of a column between two ends, each of which may be missing or belong to it."""

    column: str
    low: float | None = None
    high: float | None = None
    has_low: bool = True  # whether the end itself is in the range
    has_high: bool = True

    @property
    def is_empty(self) -> bool:
        """Tell whether no number at all is in the range."""
        if self.low is None or self.high is None:
            return False
        return self.low > self.high or (self.low == self.high and not (self.has_low and self.has_high))

    def __and__(self, other: "Range") -> "Range":
        """Return the numbers that are in both."""
        lows = [(one.low, not one.has_low) for one in (self, other) if one.low is not None]
        highs = [(one.high, one.has_high) for one in (self, other) if one.high is not None]
        low, excludes_low = max(lows, default=(None, False))
        high, has_high = min(highs, default=(None, True))
        return Range(self.column, low, high, not excludes_low, has_high)

    def holds(self, values: AnyArray) -> BoolArray:
        """Return which numbers are in the range; a missing one never is."""
        found = values == values  # noqa: PLR0124 - only what is missing differs from itself
        if self.low is not None:
            found &= values >= self.low if self.has_low else values > self.low
        if self.high is not None:
            found &= values <= self.high if self.has_high else values < self.high
        return np.asarray(found)

    def is_apart(self, other: "Range") -> bool:
        """Tell whether no number of the same column is in both."""
        return self.column == other.column and (self & other).is_empty

    def __str__(self) -> str:
        name = written_name(self.column)
        if self.low is None or self.high is None:
            number, sign = (self.high, "<=" if self.has_high else "<")
            if self.low is not None:
                number, sign = self.low, ">=" if self.has_low else ">"
            return f"{name}{sign}{written_number(number or 0)}"
        first, last = "<=" if self.has_low else "<", "<=" if self.has_high else "<"
        return f"{written_number(self.low)}{first}{name}{last}{written_number(self.high)}"


def read_range(text: Any) -> Range:
    """Read a condition on numbers from its text.

    Examples
    --------
    >>> from counterpoise.goals.values import read_range
    >>> print(read_range("18 <= age < 25"), read_range("50000 < income"))
    18<=age<25 income>50000
    """
    match = _TEXT.fullmatch(text) if isinstance(text, str) else None
    if match is None or not (match["sign"] or match["then"]):
        raise ValueError(
            f"A condition on numbers reads like 'age<=33' or '18<=age<25'; got {text!r}. For one value of a column "
            "write column=value."
        )
    column = without_quotes(match["column"]) if match["column"][0] in "'\"" else match["column"]
    first = (MIRRORED[match["sign"]], match["first"]) if match["sign"] else None
    return between(column, first, (match["then"], match["last"]) if match["then"] else None)


def between(column: str, *limits: tuple[str, str] | None) -> Range:
    """Return what all limits on a column leave, each a sign and the text of a number."""
    found = Range(column)
    asked: list[bool] = []
    for sign, text in filter(None, limits):
        number = float(text)
        if not math.isfinite(number):
            raise ValueError(f"A condition needs a finite number; got {text}.")
        number = int(text) if re.fullmatch(r"-?\d+", text) else number  # whole numbers of any size stay whole
        is_upper, has_end = sign.startswith("<"), sign.endswith("=")
        one = Range(column, high=number, has_high=has_end) if is_upper else Range(column, low=number, has_low=has_end)
        found, asked = found & one, [*asked, is_upper]
    if len(set(asked)) < len(asked):
        raise ValueError(f"Two limits on {column} must be a lower and an upper one, as in 18<={column}<25.")
    return checked(found)


def checked(found: Range) -> Range:
    """Return a range after checking that some number is in it."""
    if found.is_empty:
        raise ValueError(f"The range {found} is empty: no number is in it. Write one that has some, as 18<=age<25.")
    return found


def merged_ranges(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """Return one range for each column, sorted, after checking that none is empty."""
    found: dict[str, Range] = {}
    for one in ranges:
        found[one.column] = checked(found[one.column] & one) if one.column in found else one
    return tuple(found[column] for column in sorted(found))


def numbers_of(values: AnyArray, column: str) -> AnyArray:
    """Return a column as numbers, those that are missing as NaN."""
    if values.dtype.kind in "iuf":
        return values
    listed = values.tolist() if values.dtype.kind == "O" else []
    known = [value for value in listed if not is_missing(value)]
    if not known or not all(isinstance(value, Real) and not isinstance(value, bool) for value in known):
        shown = next((str(value) for value in known or values.tolist() if not is_missing(value)), "nothing")
        raise ValueError(
            f"A condition such as {written_name(column)}<=33 needs a column of numbers; {column!r} holds others, such "
            f"as {shown!r}. For one of its values write {written_name(column)}={written_value(shown)}."
        )
    return np.array([np.nan if is_missing(value) else float(value) for value in listed])


def is_missing(value: Any) -> bool:
    """Tell whether a value is missing: None, NaN, NaT, pandas' NA or an empty text; words such as NA are values.

    Examples
    --------
    >>> from counterpoise.goals.values import is_missing
    >>> [is_missing(value) for value in (None, float("nan"), "", "NA", "nan", 0)]
    [True, True, True, False, False, False]
    """
    if isinstance(value, str):
        return not value
    try:
        return value is None or not value == value  # noqa: PLR0124, SIM201 - only NaN differs from itself
    except TypeError:  # pandas.NA has no truth value
        return True


def count_missing(values: AnyArray) -> int:
    """Return how many values of an array are missing."""
    kind = values.dtype.kind
    if kind == "f":
        return int(np.isnan(values).sum())
    if kind in "US":
        return int((values == values.dtype.type()).sum())  # the empty text
    if kind in "mM":
        return int(np.isnat(values).sum())
    return sum(map(is_missing, values.tolist())) if kind == "O" else 0


MISSING = "(missing)"  # the text of a value that is missing; no column may hold it as a value of its own
_YES, _NO = ("True", "true", "1"), ("False", "false", "0")  # texts of a boolean


class Levels(NamedTuple):
    """The distinct texts of a column, and which of them each row has."""

    place: dict[str, int]  # the number of each text, in sorted order
    codes: IntArray  # the number of each row's text, -1 where the value is missing
    numbers: dict[Any, int] = {}  # noqa: RUF012 - never written to; the same for the values that are numbers


def combined(columns: Mapping[str, Levels], n_samples: int) -> tuple[IntArray, list[str]]:
    """Return the group of each row, by the values of columns together, and the groups' names."""
    codes, names = np.zeros(n_samples, dtype=np.int64), [""]
    for column, levels in columns.items():  # one column after another: rows are many, groups few
        texts = [MISSING, *levels.place]
        present, codes = np.unique(codes * len(texts) + levels.codes + 1, return_inverse=True)
        pairs = ((names[place // len(texts)], texts[place % len(texts)]) for place in present.tolist())
        names = [f"{first}{', ' if first else ''}{column}={text}" for first, text in pairs]  # those there are, not all
    return codes, names


def as_truth(text: str) -> bool | None:
    """Return the boolean that a text stands for, if it does."""
    return True if text in _YES else False if text in _NO else None


def as_number(text: str, kind: str) -> int | float | None:
    """Return the number that a text stands for, if it does, as a column of that kind would hold it."""
    readers: tuple[Callable[[str], int | float], ...] = (float,) if kind == "f" else (int, float)
    for read in readers:  # of whole numbers first: a float would round those above 2**53
        try:
            return read(text)
        except ValueError:
            continue
    return None


def may_be_same(one: str, other: str) -> bool:
    """Tell whether two texts may select the same rows: equal numbers, or truth values, are one however written."""
    if one == other:
        return True
    truth, number = as_truth(one), as_number(one, "f")
    if truth is not None and truth == as_truth(other):
        return True
    return number is not None and number == as_number(other, "f")


def find_levels(values: AnyArray, column: str) -> Levels:
    """Return the texts of a column, and which of them each row has; ``is_missing`` says which have none."""
    listed = values.tolist() if values.dtype.kind in "OUbiuf" else values.astype(str).tolist()
    if values.dtype.kind in "mM":
        known = {text: text_of_time(text) if values.dtype.kind == "M" else text for text in set(listed)}
        pairs = zip(listed, np.isnat(values), strict=True)
        listed = [None if is_none else known[text] for text, is_none in pairs]
    try:
        text = {value: text_of(value) for value in set(listed) if not is_missing(value)}
    except TypeError as error:
        raise TypeError(f"Column {column!r} must hold numbers or words to select rows by; {error}.") from error
    place = {word: at for at, word in enumerate(sorted(set(text.values())))}
    code = {value: place[word] for value, word in text.items()}
    numbers = {value: at for value, at in code.items() if isinstance(value, Real)}
    return Levels(place, np.fromiter((code.get(value, -1) for value in listed), np.int64, count=len(listed)), numbers)
