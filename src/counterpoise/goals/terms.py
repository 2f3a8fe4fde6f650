"""What a rate counts, as data: values and ranges as goals write them, rows of named datasets, metrics and terms."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from itertools import product
from numbers import Integral, Real
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from counterpoise._base.text import did_you_mean
from counterpoise._base.types import AnyArray, BoolArray, FloatArray, IntArray
from counterpoise.goals.words import RESERVED, min_rows_text, not_reserved

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
    """Data without any row that a rate counts: it has no value, though nothing is wrong with the data."""

    __module__ = "counterpoise.goals"


class UnknownValue(UnknownName, NoRows):
    """A value that no row holds in its column."""

    __module__ = "counterpoise.goals"


class BadColumn(ValueError):  # noqa: N818 - named for what it reports, as those above
    """A column with values that a goal cannot use; the message quotes one of them."""


def unknown(kind: str, word: str, known: Iterable[str], *, where: str = "") -> UnknownName:
    """Return the error for a word that is not among the known ones.

    Examples
    --------
    >>> from counterpoise.goals.terms import unknown
    >>> print(unknown("column", "sec", ["age", "sex"], where=" in dataset 'train'"))
    Unknown column 'sec' in dataset 'train'. Did you mean 'sex'? Known: 'age', 'sex'.
    """
    words = list(known)
    hint = did_you_mean(word, words)
    more = f" and {len(words) - _SHOWN} more" if len(words) > _SHOWN else ""
    examples = ", ".join(map(repr, words[:_SHOWN])) or "none"
    text = word if len(word) <= _LONG else f"{word[:_LONG]}..."
    return UnknownName(f"Unknown {kind} {text!r}{where}.{hint} Known: {examples}{more}.")


def format_name(name: str) -> str:
    """Return a name as it stands in a goal's text, in quotes unless it is a plain word, and none of the language."""
    return name if _PLAIN_NAME.fullmatch(name) and name not in RESERVED else _in_quotes(name)


def format_value(value: str) -> str:
    """Return a value as it stands in a goal's text, in quotes unless it is a plain word or number."""
    return value if _PLAIN_VALUE.fullmatch(value) else _in_quotes(value)


def _in_quotes(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def without_quotes(token: str) -> str:
    """Return what stands between the quotes of a token; a quote inside was doubled."""
    quote = token[0]
    return token[1:-1].replace(quote * 2, quote)


def format_number(value: float) -> str:
    """Return the shortest text that reads back as the same number."""
    return str(int(value)) if value == int(value) and abs(value) < _WHOLE else repr(value)


def text_of(value: Any) -> str:
    """Return the text by which a value is known in a goal: 1, 1.0 and "1" are all ``1``, a day is ``2026-11-03``.

    Examples
    --------
    >>> from datetime import date, datetime
    >>> from counterpoise.goals.terms import text_of
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
    return format_number(number) if np.isfinite(number) else repr(number)


def text_of_time(text: str) -> str:
    """Return a time in one form, given any ISO form of it: midnight as the day alone, as ``2026-11-03``.

    So a date, a timestamp of the same day and the field of a CSV file that either is written to are one value. A time
    with a zone stays as it is.

    Examples
    --------
    >>> from counterpoise.goals.terms import text_of_time
    >>> text_of_time("2026-11-03T00:00:00.000000000"), text_of_time("2026-11-03T14:30:00.500")
    ('2026-11-03', '2026-11-03 14:30:00.500000')
    """
    match = _TIME.fullmatch(text)
    if match is None:
        return text
    day, fraction = match["day"], (match["fraction"] or "").rstrip("0")
    clock = match["clock"] + _MIDNIGHT[len(match["clock"]) :]
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
        """Return whether no number at all is in the range."""
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
        is_inside = values == values  # noqa: PLR0124 - only what is missing differs from itself
        if self.low is not None:
            is_inside &= values >= self.low if self.has_low else values > self.low
        if self.high is not None:
            is_inside &= values <= self.high if self.has_high else values < self.high
        return np.asarray(is_inside)

    def __str__(self) -> str:
        name = format_name(self.column)
        high = "" if self.high is None else f"{'<=' if self.has_high else '<'}{format_number(self.high)}"
        if self.low is None:
            return f"{name}{high}"
        low, equal = format_number(self.low), "=" if self.has_low else ""
        return f"{low}<{equal}{name}{high}" if high else f"{name}>{equal}{low}"


def read_range(text: Any) -> Range:
    """Read a condition on numbers from its text.

    Examples
    --------
    >>> from counterpoise.goals.terms import read_range
    >>> print(read_range("18 <= age < 25"), read_range("50000 < income"))
    18<=age<25 income>50000
    """
    match = _match_range(text)
    if match is None:
        raise ValueError(
            f"A condition on numbers reads like 'age<=33' or '18<=age<25'; got {text!r}. For one value of a column "
            "write column=value."
        )
    is_quoted = match["column"][0] in "'\""
    column = without_quotes(match["column"]) if is_quoted else not_reserved(match["column"])
    first = (MIRRORED[match["sign"]], match["first"]) if match["sign"] else None
    return range_between(column, first, (match["then"], match["last"]) if match["then"] else None)


def _match_range(text: Any) -> re.Match[str] | None:
    match = _TEXT.fullmatch(text) if isinstance(text, str) else None
    return match if match is not None and (match["sign"] or match["then"]) else None


def range_between(column: str, *limits: tuple[str, str] | None) -> Range:
    """Return what all limits on a column leave, each a sign and the text of a number."""
    interval = Range(column)
    ends: list[bool] = []
    for sign, text in filter(None, limits):
        number = float(text)
        if not math.isfinite(number):
            raise ValueError(f"A condition needs a finite number; got {text}.")
        number = int(text) if re.fullmatch(r"-?\d+", text) else number  # whole numbers of any size stay whole
        is_upper, has_end = sign.startswith("<"), sign.endswith("=")
        one = Range(column, high=number, has_high=has_end) if is_upper else Range(column, low=number, has_low=has_end)
        interval, ends = interval & one, [*ends, is_upper]
    if len(set(ends)) < len(ends):
        raise ValueError(f"Two limits on {column} must be a lower and an upper one, as in 18<={column}<25.")
    return check_range(interval)


def check_range(interval: Range) -> Range:
    """Return a range after checking that some number is in it."""
    if interval.is_empty:
        raise ValueError(f"The range {interval} is empty: no number is in it. Write one that has some, as 18<=age<25.")
    return interval


def merge_ranges(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """Return one range for each column, sorted, after checking that none is empty."""
    merged: dict[str, Range] = {}
    for one in ranges:
        merged[one.column] = check_range(merged[one.column] & one) if one.column in merged else one
    return tuple(merged[column] for column in sorted(merged))


def is_missing(value: Any) -> bool:
    """Return whether a value is missing: None, NaN, NaT, pandas' NA or an empty text; words such as NA are values.

    Examples
    --------
    >>> from counterpoise.goals.terms import is_missing
    >>> [is_missing(value) for value in (None, float("nan"), "", "NA", "nan", 0)]
    [True, True, True, False, False, False]
    """
    if isinstance(value, str):
        return not value
    try:
        return value is None or not value == value  # noqa: PLR0124, SIM201 - only NaN differs from itself
    except TypeError:  # pandas.NA has no truth value
        return True


_YES, _NO = ("True", "true", "1"), ("False", "false", "0")  # texts of a boolean


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
    """Return whether two texts may select the same rows: equal numbers, or truth values, are one however written."""
    if one == other:
        return True
    truth, number = as_truth(one), as_number(one, "f")
    if truth is not None and truth == as_truth(other):
        return True
    return number is not None and number == as_number(other, "f")


DEFAULT = "train"  # the dataset that fit's own X and y are
EACH = ""  # in the place of a class: each of them, whose rates are then averaged
MACRO = "macro"  # what the average over classes is called
_KINDS = tuple(product((False, True), (False, True), (False, True, None)))  # label, baseline, answer; None: deferred
_MISSING = ("None", "nan", "NaT", "<NA>")


class Pairs(str):
    """The name of a dataset whose predictions are flips: 1 where a row and its twin are decided unlike, else 0.

    Where something is kept by the names of datasets, it is looked up by this name too; what is not kept for flips is
    made of what is kept for both datasets.

    Examples
    --------
    >>> from counterpoise.goals.terms import Pairs
    >>> pairs = Pairs("train", "swapped")
    >>> pairs, pairs.rows, pairs.twins
    ('train with twin swapped', 'train', 'swapped')
    """

    __slots__ = ("rows", "twins")
    rows: str
    twins: str

    def __new__(cls, rows: str, twins: str) -> Self:
        pairs = super().__new__(cls, f"{rows} with twin {twins}")
        pairs.rows, pairs.twins = rows, twins
        return pairs

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]  # of str
        return self.rows, self.twins

    def __eq__(self, other: object) -> bool:  # a dataset may be called alike
        return isinstance(other, Pairs) and (self.rows, self.twins) == (other.rows, other.twins)

    def __hash__(self) -> int:
        return hash((self.rows, self.twins))


def rows_behind(name: str) -> str:
    """Return the name of the dataset whose rows are counted under a name, which may be that of pairs."""
    return name.rows if isinstance(name, Pairs) else name


@dataclass(frozen=True)
class Dataset:
    """Rows named when a goal is written and bound to data later.

    Parameters
    ----------
    name : str
        The name under which the data are passed, as in ``datasets={"mail": Table(...)}``. The rows that an estimator
        is fitted on are called ``train``.

    Examples
    --------
    >>> from counterpoise.goals import Dataset
    >>> train = Dataset("train")
    >>> print(train.where(sex="F", age_band="18 to 24").positives)
    train.positives, age_band='18 to 24', sex=F
    >>> train.where(group=1) == train.where(group="1")
    True
    >>> print(train.where("18 <= age < 25", sex="F"))
    train, sex=F, 18<=age<25
    """

    name: str = DEFAULT
    conditions: tuple[tuple[str, str], ...] = ()  # (column, text of the value), sorted
    label: bool | None = None  # True: only rows labelled positive
    baseline: bool | None = None  # True: only rows that the baseline predicts positive
    ranges: tuple[Range, ...] = ()  # of numbers, one for a column, sorted
    of: str | None = None  # the text of the class that is called positive; None: the usual one
    value: str | None = None  # the column of the amounts that rows count with; None: each counts as 1
    unit: float = 1.0  # of the amounts: they are divided by it, once data are known
    twin: str | None = None  # the dataset with the twins of these rows: what is counted are then flips

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise TypeError(f"The name of a dataset must be a non-empty string; got {self.name!r}.")

    def where(self, /, *ranges: str, **values: Any) -> "Dataset":
        """Return the rows on which each named column holds the given value, and numbers lie in the given ranges.

        A column is looked for in ``sensitive_features``, then in X where it is a data frame. Values are compared as
        text, and as numbers where the column holds numbers: 1, 1.0 and "1" select the same rows. A range is a text:
        ``"age<=33"``, ``"18<=age<25"``, ``"income>50000"``. A column that is called as a word of the language is
        written in quotes, as in a goal's text: ``where(**{"'within'": 3})``.
        """
        return self.select({_column_name(name): value for name, value in values.items()}, ranges)

    def select(self, values: Mapping[str, Any], ranges: Iterable[str] = ()) -> "Dataset":
        """Return the same for the names of columns as they are, which may be words of the language.

        Examples
        --------
        >>> from counterpoise.goals import Dataset
        >>> print(Dataset("train").select({"within": 3}))
        train, 'within'=3
        """
        conditions = dict(self.conditions)
        for column, value in values.items():
            text = _condition_text(column, value)
            if conditions.setdefault(column, text) != text and not may_be_same(conditions[column], text):
                raise ValueError(
                    f"where({column}={value!r}) leaves no row, because {column} was {conditions[column]!r} already. "
                    "For rows of either value write two goals."
                )
        between = merge_ranges([*self.ranges, *map(read_range, ranges)]) if ranges else self.ranges
        return replace(self, conditions=tuple(sorted(conditions.items())), ranges=between)

    def with_class(self, of: Any) -> "Dataset":
        """Return the same rows, with a class that rates on them call positive."""
        text = "" if of is None else _condition_text("of", of)
        if not text:
            raise ValueError(f"of needs the name of a class, as in recall(of=cat); got {of!r}.")
        if self.of not in {None, text}:
            raise ValueError(f"A rate is about one class; got of={text} beside of={self.of}.")
        return replace(self, of=text)

    def with_value(self, value: Any) -> "Dataset":
        """Return the same rows, each of which counts with its amount in a column.

        Examples
        --------
        >>> from counterpoise.goals import Dataset
        >>> print(Dataset("train").where(sex="F").with_value("loan amount"))
        train, sex=F, value='loan amount'
        """
        if not isinstance(value, str) or not value:
            raise TypeError(
                f"value must be the name of a column of amounts, as in recall(value=amount); got {value!r}. Pass the "
                "amounts themselves as a column of sensitive_features, X or the Table."
            )
        if self.value not in {None, value}:
            raise ValueError(f"A rate counts one column of amounts; got value={value} beside value={self.value}.")
        return replace(self, value=value)

    def with_twin(self, twin: Any) -> "Dataset":
        """Return the same rows beside their twins, the rows of another dataset.

        Examples
        --------
        >>> from counterpoise.goals import Dataset
        >>> print(Dataset("train").with_twin("swapped"))
        train, twin=swapped
        """
        name = twin.name if isinstance(twin, Dataset) else twin
        if not isinstance(name, str) or not name or (isinstance(twin, Dataset) and twin != Dataset(name)):
            raise TypeError(
                "twin must be the name of the dataset with the same rows changed, all of it, as in "
                f"flip_rate(train, twin=swapped); got {str(twin)!r}."
            )
        if name == self.name or self.twin not in {None, name}:
            both = f"beside twin={self.twin}" if name != self.name else "for the rows of the same dataset"
            raise ValueError(f"A row and its twin are in two datasets; got twin={name} {both}.")
        return replace(self, twin=name)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the datasets that are needed: its own, and that of the twins."""
        return (self.name,) if self.twin is None else (self.name, self.twin)

    @property
    def without_value(self) -> "Dataset":
        """Return the same rows, each of which counts as 1."""
        return self if self.value is None else replace(self, value=None, unit=1.0)

    @property
    def normalized(self) -> "Dataset":
        """Return the same rows in one form: where neither label nor baseline narrows them, no class matters."""
        return (
            self if self.of is None or self.label is not None or self.baseline is not None else replace(self, of=None)
        )

    def by(self, /, **values: Any) -> tuple["Dataset", ...]:
        """Return one dataset for each value, or for each combination of the values of several columns.

        Examples
        --------
        >>> from counterpoise.goals import Dataset
        >>> for group in Dataset("train").by(sex=["F", "M"]):
        ...     print(group)
        train, sex=F
        train, sex=M
        """
        for column, options in values.items():
            if isinstance(options, str) or not hasattr(options, "__iter__"):
                raise TypeError(f"by({column}=...) takes a list of values; got {options!r}. For one value use where.")
        return tuple(
            self.where(**dict(zip(values, combination, strict=True))) for combination in product(*values.values())
        )

    @property
    def positives(self) -> "Dataset":
        """Return the rows labelled positive."""
        return self._narrow("label", is_positive=True)

    @property
    def negatives(self) -> "Dataset":
        """Return the rows labelled negative."""
        return self._narrow("label", is_positive=False)

    @property
    def baseline_positives(self) -> "Dataset":
        """Return the rows that the baseline (the deployed model) predicts positive."""
        return self._narrow("baseline", is_positive=True)

    @property
    def baseline_negatives(self) -> "Dataset":
        """Return the rows that the baseline (the deployed model) predicts negative."""
        return self._narrow("baseline", is_positive=False)

    def _narrow(self, part: str, *, is_positive: bool) -> "Dataset":
        narrower: Dataset = replace(self, **{part: is_positive})  # type: ignore[arg-type]
        if getattr(self, part) not in {None, is_positive}:
            raise ValueError(f"{self} has no row in common with {narrower}: it is the opposite.")
        return narrower

    @property
    def parts(self) -> list[str]:
        """Return the texts of the name and of each condition."""
        signs = (("", self.label), ("baseline_", self.baseline))
        path = "".join(f".{of}{'positives' if sign else 'negatives'}" for of, sign in signs if sign is not None)
        columns = [f"{format_name(name)}={format_value(value)}" for name, value in self.conditions]
        of = [] if self.of is None else [f"of={format_value(self.of) if self.of else 'each class'}"]
        value = [] if self.value is None else [f"value={format_name(self.value)}"]
        twin = [] if self.twin is None else [f"twin={format_name(self.twin)}"]
        return [f"{format_name(self.name)}{path}", *of, *columns, *map(str, self.ranges), *value, *twin]

    def __str__(self) -> str:
        return ", ".join(self.parts)


def format_call(name: str, rows: Dataset, *, first: str = "", last: Iterable[str] = ()) -> str:
    """Return a metric on some rows as a goal writes it: without the dataset where that is ``train``.

    Examples
    --------
    >>> from counterpoise.goals.terms import Dataset, format_call
    >>> format_call("recall", Dataset()), format_call("recall", Dataset().where(sex="F"))
    ('recall', 'recall(sex=F)')
    >>> format_call("max_difference", Dataset("test"), first="recall", last=["by=sex"])
    'max_difference(recall, test, by=sex)'
    """
    parts = rows.parts[1:] if rows.parts[0] == DEFAULT else rows.parts
    arguments = ", ".join([*filter(None, [first]), *parts, *last])
    return f"{name}({arguments})" if arguments else name


RESTRICTIONS = ("positives", "negatives", "baseline_positives", "baseline_negatives")  # as the text form names them


class Cell(NamedTuple):
    """A part of any dataset, by label and by the baseline's prediction; None where either will do."""

    label: bool | None = None
    baseline: bool | None = None


@lru_cache(maxsize=4096)
def part_of(cell: Cell, rows: Dataset) -> Dataset | None:
    """Return a part of the rows, or None where they have nothing in common with it."""
    parts: dict[str, Any] = {}
    for part in ("label", "baseline"):
        narrower, known = getattr(cell, part), getattr(rows, part)
        if narrower is not None and known is not None and narrower != known:
            return None
        parts[part] = known if narrower is None else narrower
    return replace(rows, **parts).normalized


class RowCount(NamedTuple):
    """The weight of some rows that are called a class (or are not), over the weight of other rows."""

    coefficient: float
    positive: bool | None  # what is counted: predictions of the class, of any other class, or None: deferred rows
    rows: Dataset
    out_of: Dataset
    called: str | None = None  # the class; None: the one that is usually positive


def rows_of(dataset: Any, ranges: Iterable[str], of: Any, where: dict[str, Any], value: Any = None) -> Dataset:
    """Return the rows that the arguments of a metric name; a range may stand first, in place of the dataset."""
    if _match_range(dataset):
        dataset, ranges = DEFAULT, (dataset, *ranges)
    if not isinstance(dataset, (Dataset, str)):
        raise TypeError(f"A rate takes a Dataset or its name; got {dataset!r}. Data are bound later, by fit.")
    rows = Dataset(dataset) if isinstance(dataset, str) else dataset
    rows = rows.where(*ranges, **where) if ranges or where else rows
    rows = rows if value is None else rows.with_value(value)
    return rows if of is None else rows.with_class(of)


def _column_name(name: str) -> str:
    """Return the column that a keyword of ``where`` names: words of the language are in quotes."""
    return name[1:-1] if name[:1] == name[-1:] == "'" and name[1:-1] in RESERVED else not_reserved(name)


def _condition_text(column: str, value: Any) -> str:
    if isinstance(value, list | tuple | set | dict | np.ndarray):
        raise TypeError(f"where({column}=...) takes one value; got {value!r}. For a list of values use by.")
    text = text_of(value)
    if not column or (text in _MISSING and not isinstance(value, str)):
        raise ValueError(f"where needs a column and a value; got {column!r}={value!r}. A missing value selects no row.")
    return text


class Linear(Protocol):
    """A linear function of positive predictions, before data are known."""

    @property
    def constant(self) -> float: ...
    @property
    def row_counts(self) -> tuple[RowCount, ...]: ...


class Count(NamedTuple):
    """Predictions of one sign in one part of a dataset, counted with a coefficient."""

    positive: bool | None  # the sign of the predictions that are counted; None: those of no class, which are deferred
    cell: Cell
    coefficient: float = 1.0
    out_of: Cell | None = None  # of which it is a share, where that is not what the whole metric is out of
    of: str | None = None  # the class that the cell is about, where it is not the one that the rate is about
    called: str | None = None  # the class whose predictions are counted, where it is not the same
    value: str | None = None  # the column of the amounts that it counts, where what it is out of counts rows
    unit: float | None = None  # of the amounts, by which the coefficient is multiplied; None: not yet known


class Metric(NamedTuple):
    """What a rate counts, and out of which part of its dataset."""

    name: str
    counts: tuple[Count, ...]
    out_of: Cell = Cell()
    of_each: tuple[Count, ...] = ()  # what is counted of each of several classes, where none has to be named
    details: str = ""  # the last argument of its text, behind the rows
    is_mean: bool = False  # whether of_each is averaged over the classes, and not added up
    min_rows: int = 0  # that a class must have to count in an average over classes
    is_total: bool = False  # whether it is a sum over the rows of a dataset: that many times the mean over all of them


class Term(NamedTuple):
    """A coefficient times a metric on a dataset."""

    coefficient: float
    metric: Metric
    rows: Dataset

    def row_counts(self) -> Iterator[RowCount]:
        """Yield what is counted on which rows, out of which."""
        own = self.rows
        if own.twin is not None:
            own = replace(own, name=Pairs(own.name, own.twin), twin=None)
        for count in self.metric.counts:
            rows = part_of(count.cell, own if count.of is None else replace(own, of=count.of))
            out_of = part_of(self.metric.out_of if count.out_of is None else count.out_of, own)
            if count.value is not None and rows is not None:
                rows = replace(rows, value=count.value, unit=1.0 if count.unit is None else count.unit)
            if self.metric.is_total:
                out_of = Dataset(self.rows.name)
            if rows is not None and out_of is not None:
                called = None if count.positive is None else self.rows.of if count.called is None else count.called
                yield RowCount(self.coefficient * count.coefficient, count.positive, rows, out_of, called)

    def __str__(self) -> str:
        if self.rows.of == EACH:
            return format_call(
                MACRO, replace(self.rows, of=None), first=self.metric.name, last=min_rows_text(self.metric.min_rows)
            )
        return format_call(self.metric.name, self.rows, last=filter(None, [self.metric.details]))


def without_negatives(rows: Dataset, out_of: Dataset) -> Iterator[tuple[float, Dataset]]:
    """Write the rows as a sum of parts that are negative in no way, except as ``out_of`` is."""
    if rows.label is False and out_of.label is None:
        every, positive = replace(rows, label=None).normalized, replace(rows, label=True)
    elif rows.baseline is False and out_of.baseline is None:
        every, positive = replace(rows, baseline=None).normalized, replace(rows, baseline=True)
    else:
        yield 1.0, rows
        return
    yield from without_negatives(every, out_of)
    yield from ((-sign, part) for sign, part in without_negatives(positive, out_of))


def is_number(value: Any) -> bool:
    """Return whether a value may stand in a goal as a number."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_finite(number: Any) -> float:
    """Return a number as a float after checking that it is finite."""
    try:
        value = float(number)
    except OverflowError:  # a whole number of hundreds of digits
        value = math.inf
    if not math.isfinite(value):
        raise ValueError(f"The numbers in a goal must be finite; got {value!r}.")
    return value + 0.0  # minus zero becomes zero


class Fraction(NamedTuple):
    """A rate as a share of rows: what rows of each kind contribute to its top and its bottom."""

    top: FloatArray
    bottom: FloatArray

    @property
    def is_count(self) -> bool:
        """Return whether some of the rows that count are counted, each once."""
        return bool(np.isin([self.top, self.bottom], (0.0, 1.0)).all() and (self.top <= self.bottom).all())


def fractions(rate: Linear) -> list[Fraction]:
    """Return the shares of which a rate is the sum, beside its constant."""
    shares: dict[Dataset, Fraction] = {}
    for one in rate.row_counts:
        top, bottom = shares.setdefault(one.out_of, Fraction(np.zeros(len(_KINDS)), np.zeros(len(_KINDS))))
        for place, (label, baseline, answer) in enumerate(_KINDS):
            is_counted, is_whole = (
                rows.label in {None, label} and rows.baseline in {None, baseline} for rows in (one.rows, one.out_of)
            )
            top[place] += one.coefficient * (is_counted and answer is one.positive)
            bottom[place] = is_whole
    return list(shares.values())


def kinds_of(answers: IntArray, labels: BoolArray | None, baseline: BoolArray | None) -> IntArray:
    """Return the kind of each row, given 1 for a positive answer and 2 for none; what is not known is negative.

    Kinds are numbered as ``fractions`` lists them.
    """
    codes = answers.astype(np.int64)
    for weight, known in ((6, labels), (3, baseline)):  # of two baselines and three answers, and of those alone
        codes += 0 if known is None else weight * known
    return codes
