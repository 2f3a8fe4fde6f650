"""Conditions on numbers: ``age<=33``, ``18<=age<25``, and which values meet them."""

import math
import re
from collections.abc import Iterable
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import AnyArray, BoolArray
from counterpoise.goals.wording import NUMBER, QUOTED, WORD, without_quotes, written_name, written_number, written_value

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


def as_number(text: str) -> float:
    """Return a number as exactly as it is written: whole numbers of any size stay whole."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"A condition needs a finite number; got {text}.")
    return int(text) if re.fullmatch(r"-?\d+", text) else value


def compared(column: str, sign: str, number: float) -> Range:
    """Return the range that a comparison of a column with a number makes.

    Examples
    --------
    >>> from counterpoise.goals.ranges import compared
    >>> print(compared("age", "<=", 33))
    age<=33
    """
    if sign.startswith("<"):
        return Range(column, high=number, has_high=sign == "<=")
    return Range(column, low=number, has_low=sign == ">=")


def read_range(text: Any) -> Range:
    """Read a condition on numbers from its text.

    Examples
    --------
    >>> from counterpoise.goals.ranges import read_range
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
    asked = [compared(column, sign, as_number(text)) for sign, text in filter(None, limits)]
    for one in asked:
        found = found & one
    if len({one.low is None for one in asked}) < len(asked):
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
    >>> from counterpoise.goals.ranges import is_missing
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
