"""The data that a named dataset is bound to, and which of its rows meet a condition."""

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.checks import (
    EQUAL,
    check_flag,
    check_largest_weight,
    check_positive,
    check_sample_weight,
    check_vector,
)
from counterpoise._base.frames import as_array, column_names, is_frame, take_rows
from counterpoise._base.text import did_you_mean
from counterpoise._base.types import AnyArray, ArrayLike, BoolArray, FloatArray, IntArray
from counterpoise.goals.classes import Classes, as_labels, find_classes
from counterpoise.goals.terms import (
    DEFAULT,
    RESTRICTIONS,
    BadColumn,
    NoRows,
    Pairs,
    Range,
    UnknownName,
    as_number,
    as_truth,
    format_name,
    format_value,
    is_missing,
    text_of,
    text_of_time,
    unknown,
)

_MOST_GROUPS = 100  # distinct values of a feature that may still be groups of people, and not a measurement
_GLANCE = 10_000  # rows that show most measurements to be one
_LARGEST_SUM = 2.0**1016  # of amounts in size: what goals multiply and add up stays below the largest float


def numbers_of(values: AnyArray, column: str) -> AnyArray:
    """Return a column as numbers, those that are missing as NaN."""
    if values.dtype.kind in "iuf":
        return values
    objects = values.tolist() if values.dtype.kind == "O" else []
    known = [value for value in objects if not is_missing(value)]
    if not known or not all(isinstance(value, Real) and not isinstance(value, bool) for value in known):
        example = next((str(value) for value in known or values.tolist() if not is_missing(value)), "nothing")
        raise BadColumn(
            f"A condition such as {format_name(column)}<=33 needs a column of numbers; {column!r} holds others, such "
            f"as {example!r}. For one of its values write {format_name(column)}={format_value(example)}."
        )
    return np.array([np.nan if is_missing(value) else float(value) for value in objects])


def read_amounts(values: AnyArray, column: str, name: str) -> FloatArray:
    """Return a column of a dataset as finite amounts with a finite sum, or say which row holds none."""
    kind = values.dtype.kind
    if kind == "O":
        amounts = np.array([_amount(value) for value in values.tolist()])
    else:
        amounts = values.astype(np.float64) if kind in "iuf" else np.full(values.shape, np.nan)
    odd = np.flatnonzero(~np.isfinite(amounts))
    if odd.size:
        row = int(odd[0])
        value = values[row].item() if isinstance(values[row], np.generic) else values[row]
        held = "nothing" if is_missing(value) else "infinity" if np.isinf(amounts[row]) else repr(value)
        raise BadColumn(
            f"Amounts must be finite numbers; column {column!r} of dataset {name!r} holds {held} at row {row}. Convert "
            "the column to numbers, and leave such rows out or put in the amount that they count with, such as 0."
        )
    with np.errstate(over="ignore"):
        size = np.abs(amounts).sum()
    if not size <= _LARGEST_SUM:
        raise BadColumn(
            f"The amounts in column {column!r} of dataset {name!r} are too large to be added up: they must be at most "
            f"{_LARGEST_SUM:.2g} together, in size; got {size:.2g}. Count in a larger unit, such as millions."
        )
    return amounts


def _amount(value: Any) -> float:
    """Return the amount that an object is, NaN where it is none."""
    if isinstance(value, bool) or not isinstance(value, (Real, Decimal)):
        return math.nan
    try:
        return float(value)
    except OverflowError:  # a whole number of hundreds of digits
        return math.inf


def check_largest_value(limits: Any) -> float | dict[str, float] | None:
    """Return the largest amounts of a population, one number for all columns or one for each, after checking them."""
    if limits is None:
        return None
    if isinstance(limits, Mapping):
        return {str(column): check_positive(limit, f"largest_value of {column!r}") for column, limit in limits.items()}
    return check_positive(limits, "largest_value")


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


class NoLargestValue(ValueError):  # noqa: N818 - named for what it reports
    """Amounts without a known limit, which say nothing sure about a population."""


class Levels(NamedTuple):
    """The distinct texts of a column, and which of them each row has."""

    place: dict[str, int]  # the number of each text, in sorted order
    codes: IntArray  # the number of each row's text, -1 where the value is missing
    numbers: dict[Any, int] = {}  # noqa: RUF012 - never written to; the same for the values that are numbers


def combine_groups(columns: Mapping[str, Levels], n_samples: int) -> tuple[IntArray, list[str]]:
    """Return the group of each row, by the values of columns together, and the groups' names."""
    codes, names = np.zeros(n_samples, dtype=np.int64), [""]
    for column, levels in columns.items():  # one column after another: rows are many, groups few
        texts = [MISSING, *levels.place]
        present, codes = np.unique(codes * len(texts) + levels.codes + 1, return_inverse=True)
        pairs = ((names[place // len(texts)], texts[place % len(texts)]) for place in present.tolist())
        names = [f"{first}{', ' if first else ''}{column}={text}" for first, text in pairs]  # those there are, not all
    return codes, names


def find_levels(values: AnyArray, column: str) -> Levels:
    """Return the texts of a column, and which of them each row has; for missing ones see ``is_missing``."""
    objects = values.tolist() if values.dtype.kind in "OUbiuf" else values.astype(str).tolist()
    if values.dtype.kind in "mM":
        known = {text: text_of_time(text) if values.dtype.kind == "M" else text for text in set(objects)}
        pairs = zip(objects, np.isnat(values), strict=True)
        objects = [None if is_none else known[text] for text, is_none in pairs]
    try:
        text = {value: text_of(value) for value in set(objects) if not is_missing(value)}
    except TypeError as error:
        raise TypeError(f"Column {column!r} must hold numbers or words to select rows by; {error}.") from error
    place = {word: at for at, word in enumerate(sorted(set(text.values())))}
    code = {value: place[word] for value, word in text.items()}
    numbers = {value: at for value, at in code.items() if isinstance(value, Real)}
    return Levels(place, np.fromiter((code.get(value, -1) for value in objects), np.int64, count=len(objects)), numbers)


def columns_by_name(features: Any) -> dict[str, AnyArray]:
    """Return columns by name; those of arrays get names."""
    if features is None:
        return {}
    if isinstance(features, Mapping):
        return {str(name): as_array(values) for name, values in features.items()}
    if is_frame(features):
        return {name: as_array(features[key]) for name, key in frame_names(features).items()}
    array = as_array(features)
    if array.ndim == 1:
        series_name = getattr(features, "name", None)  # a column taken out of a frame also keeps its own name
        return {"group": array} | ({series_name: array} if isinstance(series_name, str) else {})
    if array.ndim != 2:  # noqa: PLR2004 - a matrix
        shapes = "(n_samples,) or (n_samples, n_columns)"
        raise ValueError(f"sensitive_features must have shape {shapes}; got {array.shape}.")
    return {f"group{place}": array[:, place] for place in range(array.shape[1])}


def frame_names(X: Any) -> dict[str, Any]:
    """Return the columns of a data frame by name; empty for anything else."""
    return {str(name): name for name in column_names(X)}


def rows_at(part: Any, places: AnyArray) -> Any:
    """Return some rows of what a table has; None of None."""
    return None if part is None else take_rows(part, places)


class Table:
    """Rows with what goals may ask of them: labels, columns, and the predictions of a baseline model.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_samples, n_features), or None
        None where goals are only evaluated.
    y : array of shape (n_samples,), optional
        Labels; goals on unlabelled rows (coverage, churn) need none.
    sensitive_features : data frame, dict of arrays, or array, optional
        Columns for ``where``; they come before those of X. A bare array is the column ``group``.
    baseline : array of shape (n_samples,), optional
        The labels that the deployed model predicts, for churn, wins and losses.
    sample_weight : array of shape (n_samples,), optional
        Non-negative; every rate on these rows is then a weighted rate.
    largest_weight : float, optional
        The largest weight that a row of the population can have, in the units of ``sample_weight``, known before the
        rows were drawn. Statements about the population (audits, goals with a confidence) need it unless all weights
        are equal: rows that were not drawn may weigh more than these.
    counts : array of shape (n_samples,), optional
        How many rows each stands for, whole numbers: rows that are alike in all that goals may ask need be there once,
        and rates, intervals and verdicts are those of all of them. Not together with ``sample_weight``.
    largest_value : float or dict from columns to floats, optional
        The largest amount that a row of the population can have, for goals that count amounts; known before the rows
        were drawn. Of amounts that may be negative it is the largest size. Audits of such goals need it.
    population : bool, default=True
        Whether the rows are a sample of people, so that goals on them are about new people too. False for a list, such
        as embarrassing examples: goals on its rows get no margin.
    has_masses : bool, default=False
        Whether ``sample_weight`` are masses of labels that are known in part, which may be negative: a row may then be
        there once for each class. See ``PartialLabels``.

    Examples
    --------
    >>> from counterpoise.goals import Table
    >>> Table([[1.0], [2.0], [3.0]], y=[0, 1, 1], sensitive_features={"sex": ["F", "M", "F"]})
    Table(n_samples=3, labelled, columns=['sex'])
    """

    counts: FloatArray | None = None
    row_numbers: FloatArray | None = None  # how many rows each stands for, where its weight is the sum of theirs
    row_squares: FloatArray | None = None  # and the sum of the squares of their weights
    largest_weight: float | None = None
    largest_value: float | dict[str, float] | None = None
    population: bool = True
    has_masses: bool = False
    n_labels: int | None = None  # where rows are there for several classes: how many of them have a label
    _unit = 1.0  # what the heaviest row weighs, whose weight is kept as 1

    def __init__(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sensitive_features: Any = None,
        baseline: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        largest_weight: float | None = None,
        counts: ArrayLike | None = None,
        largest_value: float | Mapping[str, float] | None = None,
        population: bool = True,
        has_masses: bool = False,
    ) -> None:
        if isinstance(X, Mapping):
            raise TypeError(
                f"X of a Table must be an array, a sparse matrix or a data frame; got a {type(X).__name__} of columns. "
                "Make it a data frame, as pandas.DataFrame does, or pass it as sensitive_features if it is for where."
            )
        self.X = X
        self.population = check_flag(population, "population")
        self.has_masses = check_flag(has_masses, "has_masses")
        self.own_columns = columns_by_name(sensitive_features)
        first = next((part for part in (X, y, baseline, *self.own_columns.values()) if part is not None), None)
        if first is None:
            raise ValueError("A Table needs rows: X, y, a baseline or sensitive_features; got none of them.")
        try:
            self.n_samples = int(first.shape[0]) if hasattr(first, "shape") else len(first)
        except (TypeError, IndexError):
            raise ValueError(f"A Table needs an entry for each row; got {first!r}, which has no rows.") from None
        if self.n_samples == 0:
            raise ValueError("A Table needs at least one row; got none.")
        self.y = _labels(y, "y", self.n_samples)
        self.baseline = _labels(baseline, "baseline", self.n_samples)
        self.sample_weight = check_sample_weight(sample_weight, self.n_samples, are_masses=has_masses)
        if sample_weight is not None:
            self._unit = float(np.asarray(sample_weight).max())
        if counts is not None:
            self.counts = _counts(counts, sample_weight, self.n_samples)
        if largest_weight is not None:
            self.largest_weight, _ = check_largest_weight(largest_weight, sample_weight)
        self.largest_value = check_largest_value(largest_value)
        for name, values in self.own_columns.items():
            if values.shape != (self.n_samples,):
                raise ValueError(
                    f"sensitive_features must have one row for each of the {self.n_samples} samples; "
                    f"column {name!r} has shape {values.shape}."
                )
        self._codes: dict[str, Levels] = {}
        self._numbers: dict[str, AnyArray] = {}
        self._amounts: dict[str, FloatArray] = {}

    @property
    def sensitive_columns(self) -> list[str]:
        """Return the names of the sensitive features; a column that answers to two names only once."""
        arrays = {id(values): name for name, values in self.own_columns.items()}
        return list(arrays.values())

    @property
    def columns(self) -> list[str]:
        """Return the names that ``where`` knows here."""
        names = list(self.own_columns)
        return names + [name for name in frame_names(self.X) if name not in self.own_columns]

    def column(self, name: str) -> AnyArray:
        """Return a column by name, of the sensitive features first."""
        if name in self.own_columns:
            return self.own_columns[name]
        values = as_array(self.X[frame_names(self.X)[name]])
        if values.shape != (self.n_samples,):
            raise ValueError(f"X must have one column {name!r} to select rows by; got {values.shape[1]} of that name.")
        return values

    def weights(self, places: Any = slice(None)) -> FloatArray:
        """Return the weight of each row, or of those at some places: how many rows it stands for, with ``counts``."""
        weights = self.sample_weight if self.counts is None else self.counts
        n_rows = self.n_samples if isinstance(places, slice) else len(places)
        return np.ones(n_rows) if weights is None else weights[places]

    @property
    def weight_unit(self) -> float:
        """Return what the heaviest row weighed before weights were divided by that."""
        return self._unit

    def amounts(self, column: str, name: str) -> FloatArray:
        """Return a column as amounts that rows count with; ``name`` is that of the dataset, for messages."""
        if column not in self._amounts:
            self._amounts[column] = read_amounts(self.column(column), column, name)
        return self._amounts[column]

    def largest_amount(self, column: str, name: str) -> float:
        """Return the largest size that an amount of the population can have; without a limit it is refused.

        ``name`` is that of the dataset, for messages.
        """
        limits, amounts = self.largest_value, np.abs(self.amounts(column, name))
        limit = limits.get(column) if isinstance(limits, dict) else limits
        row = int(amounts.argmax())
        if limit is None:
            raise NoLargestValue(
                f"Dataset {name!r} needs largest_value, the largest amount in column {column!r} that a row of its "
                f"population can have: rows that were not drawn may have more than these. "
                f"Pass it: largest_value={{{column!r}: ...}}, data.largest_value in a goals file, --largest-value "
                "where a table or a run is audited."
            )
        if amounts[row] > limit / EQUAL:
            raise BadColumn(
                f"largest_value must be at least as large as every amount of the population, losses too; got {limit:g} "
                f"for column {column!r} of dataset {name!r}, but row {row} holds {self.amounts(column, name)[row]:g}. "
                "Pass the largest that any row can have, in size."
            )
        return max(limit, float(amounts[row])) or 1.0

    def heaviest(self, name: str) -> float | None:
        """Return the most that a row of the population can weigh, in the units of the weights kept.

        None where all rows weigh the same. Weights that differ without a limit are refused, with the dataset's name.
        """
        if self.largest_weight is not None:
            return max(self.largest_weight / self._unit, 1.0)
        if self.sample_weight is None or self.sample_weight.min() >= EQUAL:
            return None
        if self.has_masses:
            raise ValueError(
                f"The labels of dataset {name!r} are known in part, and a goal with a confidence of its own needs them "
                "all. Leave it out of the goal: the confidence of the classifier covers all goals together."
            )
        raise ValueError(
            f"Dataset {name!r} needs largest_weight, the largest weight that a row of its population can have: its "
            f"weights differ (the lightest is {self.sample_weight.min():.3g} times the heaviest), and rows that were "
            "not drawn may weigh more. Pass it: largest_weight beside sample_weight, data.largest_weight in a goals "
            "file, --largest-weight where a run is audited; or leave the weights out."
        )

    def copy_weight_limit(self, table: "Table", places: Any = slice(None)) -> "Table":
        """Return the table with the limit on the weights of another, of whose rows it has those at some places.

        Where those are a list and no sample, so are these, and where they stand for several rows each.
        """
        if table.sample_weight is not None and self.sample_weight is not None:
            self.largest_weight = table.largest_weight
            self._unit = table._unit * float(table.sample_weight[places].max())  # noqa: SLF001 - of its own kind
        if table.row_numbers is not None:
            self.row_numbers = table.row_numbers[places]
        if table.row_squares is not None:
            self.row_squares = table.row_squares[places] * (table.weight_unit / self.weight_unit) ** 2
        self.population, self.largest_value, self.n_labels = table.population, table.largest_value, table.n_labels
        return self

    def stand_for_many(self, row_numbers: FloatArray, squares: FloatArray | None = None) -> "Table":
        """Return the table after noting how many rows each of its rows stands for: its weight is the sum of theirs.

        ``squares`` are the sums of the squares of their weights; ``counts`` need none.
        """
        self.row_numbers = row_numbers
        self.row_squares = None if squares is None else squares / self._unit**2
        return self

    def with_parts(self, **parts: Any) -> "Table":
        """Return the same table with some parts replaced."""
        names = ("X", "y", "baseline", "sample_weight", "counts", "has_masses")
        has = {name: getattr(self, name) for name in names}
        return Table(**{"sensitive_features": self.own_columns or None, **has, **parts}).copy_weight_limit(self)

    def with_columns(self, sensitive_features: Any, baseline: ArrayLike | None) -> "Table":
        """Return the same table with further columns, and with a baseline where it has none."""
        more = {
            name: values for name, values in columns_by_name(sensitive_features).items() if name not in self.columns
        }
        if not more and (baseline is None or self.baseline is not None):
            return self
        own = baseline if self.baseline is None else self.baseline
        return self.with_parts(sensitive_features={**self.own_columns, **more} or None, baseline=own)

    def part(
        self,
        places: AnyArray,
        y: AnyArray | None,
        sample_weight: FloatArray | None,
        X: Any = None,
        *,
        has_masses: bool | None = None,
    ) -> "Table":
        """Return some rows with their labels and weights; their features are X, or those of a data frame."""
        columns = {name: values[places] for name, values in self.own_columns.items()}
        X = rows_at(self.X, places) if X is None and is_frame(self.X) else X
        weights: dict[str, Any] = {"sample_weight": sample_weight, "counts": rows_at(self.counts, places)}
        weights["has_masses"] = self.has_masses if has_masses is None else has_masses
        return Table(X, y, columns or None, rows_at(self.baseline, places), **weights).copy_weight_limit(self, places)

    def only(self, places: AnyArray) -> "Table":
        """Return some of the rows with all that belongs to them."""
        return self.part(places, *(rows_at(part, places) for part in (self.y, self.sample_weight, self.X)))

    def without_features(self) -> "Table":
        """Return the same table without X, but for the columns of a data frame by which goals can tell groups apart."""
        known = {*self.own_columns, *self._numbers, *self._amounts}  # columns that goals have used are kept for them
        names = [name for name in self.columns if name in known or self._has_groups(name)]
        columns = {name: self._plain_column(name) for name in names}
        return self.with_parts(X=np.empty((self.n_samples, 0)), sensitive_features=columns or None)

    def _has_groups(self, column: str) -> bool:
        values = self.column(column)
        if values.dtype.kind in "biuf":
            return all(np.unique(part).size <= _MOST_GROUPS for part in (values[:_GLANCE], values))
        try:
            return len(self.levels(column, are_compared=False).place) <= _MOST_GROUPS
        except TypeError:  # neither numbers nor words
            return False

    def _plain_column(self, column: str) -> AnyArray:
        """Return a column; of objects the texts that goals compare, None where there is none."""
        values = self.column(column)
        if values.dtype.kind != "O":
            return values
        levels = self.levels(column, are_compared=False)
        return np.array([*levels.place, None], dtype=object)[levels.codes]

    def matches(self, column: str, text: str) -> BoolArray:
        """Return on which rows the column holds the value of that text; all false where it is unknown."""
        values = self.column(column)
        if text == MISSING:
            return np.asarray(self.levels(column).codes == -1)
        if values.dtype.kind in "biuf":
            value = as_truth(text) if values.dtype.kind == "b" else as_number(text, values.dtype.kind)
        else:
            levels = self.levels(column)
            values, value = levels.codes, levels.place.get(text)
            if value is None:  # an equal number or truth value will do
                truth = as_truth(text) if text.isalpha() else None
                value = levels.numbers.get(as_number(text, "i") if truth is None else truth)
        with np.errstate(over="ignore"):  # a number too large for the column
            return np.zeros(self.n_samples, bool) if value is None else np.asarray(values == value)

    def within(self, interval: Range) -> BoolArray:
        """Return on which rows a column holds a number of the range."""
        if interval.column not in self._numbers:
            self._numbers[interval.column] = numbers_of(self.column(interval.column), interval.column)
        is_inside = interval.holds(self._numbers[interval.column])
        if not is_inside.any():
            known = self._numbers[interval.column]
            numbers = known[known == known]  # noqa: PLR0124 - those that are not missing
            values = (
                f"its numbers lie from {numbers.min():g} to {numbers.max():g}" if numbers.size else "it holds no number"
            )
            raise NoRows(f"No row has {interval}: {values}.")
        return is_inside

    def levels(self, column: str, *, are_compared: bool = True) -> Levels:
        """Return the distinct texts of a column and the place of each, computed once.

        One that is compared must not hold the text ``(missing)``: goals and rules could not tell it from a missing
        value.
        """
        if column not in self._codes:
            self._codes[column] = find_levels(self.column(column), column)
        levels = self._codes[column]
        if are_compared and MISSING in levels.place:
            rows = np.flatnonzero(levels.codes == levels.place[MISSING])
            raise ValueError(
                f"Column {column!r} must not hold the text {MISSING!r}, which stands for a missing value in goals and "
                f"rules; {rows.size} of {levels.codes.size} rows do, the first at position {rows[0]}. Put None there "
                "if the value is missing, else another text."
            )
        return levels

    def check_loaded(self) -> None:
        """Check the values that were read from a file."""
        parts = [self.y, self.baseline, self.sample_weight, self.counts, self.row_numbers, self.row_squares]
        parts += self.own_columns.values()
        if any(part is not None and part.shape != (self.n_samples,) for part in parts):
            raise ValueError(f"a table of {self.n_samples} rows has columns of other lengths")
        if self.largest_weight is not None:
            check_positive(self.largest_weight, "largest_weight")
            check_positive(self._unit, "the heaviest weight")
        self._codes, self._numbers, self._amounts = {}, {}, {}

    def __repr__(self) -> str:
        has = [word for word, part in (("labelled", self.y), ("with baseline", self.baseline)) if part is not None]
        if self.largest_weight is not None:
            has.append(f"largest_weight={self.largest_weight:g}")
        if not self.population:
            has.append("no sample")
        return f"Table({', '.join([f'n_samples={self.n_samples}', *has, f'columns={self.columns}'])})"


def group_codes(table: Table, amounts: Sequence[str] = ()) -> tuple[IntArray, list[str]]:
    """Return the group of each row, by all columns of the sensitive features together, and the groups' names.

    Columns of ``amounts``, which goals count with, make no groups.
    """
    columns = [name for name in table.sensitive_columns if name not in amounts]
    codes, names = combine_groups({name: table.levels(name) for name in columns}, table.n_samples)
    return codes, names if columns else []


def as_tables(data: Any) -> dict[str, Table]:
    """Return the tables by name; a single table is ``train``."""
    if isinstance(data, Table):
        return {DEFAULT: data}
    if not isinstance(data, Mapping):
        raise TypeError(f"data must be a Table, or a dict from dataset names to Tables; got {type(data).__name__}.")
    for name, table in data.items():
        if not isinstance(table, Table):
            raise TypeError(
                f"Dataset {name!r} must be bound to a counterpoise.goals.Table; got {type(table).__name__}. "
                "Write Table(X, y, sensitive_features=..., baseline=...)."
            )
    return dict(data)


def with_train(train: Table | None, datasets: Any) -> dict[str, Table]:
    """Return the datasets by name, with the rows X and y as ``train`` where there are any."""
    if datasets is not None and not isinstance(datasets, Mapping):
        raise TypeError(
            "datasets must be a dict from names to Tables, as in datasets={'live': Table(X, baseline=...)}; got "
            f"{type(datasets).__name__}."
        )
    others = as_tables(datasets) if datasets else {}
    if train is None:
        return others
    if DEFAULT in others:
        raise ValueError("The dataset 'train' is X and y themselves. Give your dataset another name.")
    return {DEFAULT: train, **others}


def table_of(tables: Mapping[str, Table], name: str, columns: Sequence[str] = ()) -> Table:
    """Return the table of a dataset, or of the rows of pairs, after checking that it is there and has some columns."""
    if isinstance(name, Pairs):
        check_twins(name, table_of(tables, name.rows), table_of(tables, name.twins))
        name = name.rows
    if name not in tables:
        raise UnknownName(f"{unknown('dataset', name, tables)}{_condition_hint(tables, name)}")
    table = tables[name]
    known = table.columns if columns else []
    for column in columns:
        if column not in known:
            hint = " (pass it as sensitive_features)" if known else " (pass sensitive_features, or X as a data frame)"
            hint = "" if table.sensitive_columns else hint
            if known == ["group"]:
                hint = (
                    " (a bare array of sensitive_features is the column 'group'; a data frame or a dict names its "
                    "columns)"
                )
            raise unknown("column", column, known, where=f" in dataset {name!r}{hint}")
    return table


def check_twins(pairs: Pairs, rows: Table, twins: Table) -> None:
    """Refuse twins that are no copies of the rows: another number of them, or in another order as labels show."""
    whom = f"the rows of {pairs.twins!r} must be those of {pairs.rows!r} with a column changed, in the same order"
    if rows.n_samples != twins.n_samples:
        raise ValueError(f"In flip_rate {whom}; got {twins.n_samples} rows beside {rows.n_samples}.")
    if rows.y is None or twins.y is None:
        return
    other = np.flatnonzero(rows.y != twins.y)
    if other.size:
        place = int(other[0])
        one, two = (text_of(labels[place]) for labels in (rows.y, twins.y))
        raise ValueError(
            f"In flip_rate {whom}; the labels of row {place} are {one} and {two}. Leave y out "
            "of the Table of the twins if they have no labels of their own."
        )


class PairedTables(dict[str, Table]):
    """Tables by the names of datasets; those of pairs are the tables of the rows."""

    def __missing__(self, name: str) -> Table:
        return table_of(self, name)


def _condition_hint(tables: Mapping[str, Table], name: str) -> str:
    """Say how to write a word that stands where a dataset would, where it is a column or part of a condition."""
    if name in RESTRICTIONS:
        return f" The {name} of dataset {DEFAULT!r} are {DEFAULT}.{name}."
    if any(name in table.columns for table in tables.values()):
        column = format_name(name)
        return f" {name!r} is a column: write {column}=value for some of the rows, by={column} for groups."
    return "" if did_you_mean(name, tables) else " A condition on the rows is written column=value, as in sex=F."


def classes_of(tables: Mapping[str, Table], *, classes: ArrayLike | None = None, pos_label: Any = None) -> Classes:
    """Return the classes of tables, as ``find_classes`` determines them.

    The predictions of a baseline add no class: a wrong one would become a class.
    """
    return find_classes((table.y for table in tables.values()), classes=classes, pos_label=pos_label)


def _counts(counts: ArrayLike, sample_weight: Any, n_samples: int) -> FloatArray:
    numbers = check_vector(counts, "counts", n_samples, "how many rows each stands for")
    if sample_weight is not None:
        raise ValueError(
            "counts are numbers of rows that weigh the same; got sample_weight beside them. Pass only one of the two."
        )
    odd = np.flatnonzero((numbers < 0) | (numbers != np.round(numbers)))
    if odd.size or not numbers.any():
        got = f"{numbers[odd[0]]:g} in row {odd[0]}" if odd.size else "zeros only"
        raise ValueError(f"counts must be whole numbers of at least 0, some above it; got {got}.")
    return numbers


def _labels(values: ArrayLike | None, name: str, n_samples: int) -> AnyArray | None:
    if values is None:
        return None
    labels = as_labels(values)
    if labels.shape != (n_samples,):
        raise ValueError(f"{name} must have shape ({n_samples},), one label for each row; got shape {labels.shape}.")
    missing = count_missing(labels)
    if missing:
        raise ValueError(
            f"{name} must hold a label for each row; {missing} of {n_samples} are missing. "
            "Put unlabelled rows into a Table of their own."
        )
    return labels
