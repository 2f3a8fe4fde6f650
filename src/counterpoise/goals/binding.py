"""From rates on named datasets to signed weights on the rows of given tables.

With ``predictions`` the positive predictions of a classifier (indicators, ramp values or probabilities), every rate is

    constant + sum over datasets of weights @ predictions,

because a negative prediction counts as ``1 - prediction``. Of more than two classes a row has a prediction for each,
how much it is of that class, one behind the other; where rows may be deferred the last is how much of it is. Constants
and weights depend on the labels, groups, baseline and sample weights alone, so they are computed once and serve any
classifier.

Predictions of any kind, labels, probabilities or scores, become such numbers in ``prepare``.
"""

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce, wraps
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeAlias, TypeVar

import numpy as np

from counterpoise._base.checks import as_numbers, value_range
from counterpoise._base.types import AnyArray, ArrayLike, FloatArray, IntArray
from counterpoise.goals.classes import Classes, as_labels, place_of, resolve_classes
from counterpoise.goals.tables import MISSING, PairedTables, Table, as_tables, table_of
from counterpoise.goals.terms import (
    DEFAULT,
    BadColumn,
    Dataset,
    Linear,
    NoRows,
    Pairs,
    Term,
    UnknownValue,
    text_of,
    unknown,
)

P = ParamSpec("P")  # the arguments of a method
Result = TypeVar("Result")
TINY_AMOUNT = 2.0**-1000  # sizes below count as this: their reciprocal is finite
NEEDED_BY = " Needed by "  # between what is wrong and the goal or rate that needs it


@dataclass(frozen=True)
class BoundRates:
    """Rates as signed weights on rows: ``constants + sum over datasets of weights[name] @ predictions[name]``.

    Attributes
    ----------
    constants : array of shape (n_rates,)
    weights : dict from dataset names to sparse arrays of shape (n_rates, n_samples of that dataset)
        Only the datasets that a rate uses; memory grows with the rows that count in some rate.
    """

    constants: FloatArray
    weights: dict[str, Any]

    def values(self, predictions: Mapping[str, ArrayLike]) -> FloatArray:
        """Return the value of each rate.

        Parameters
        ----------
        predictions : dict from dataset names to arrays of shape (n_samples,) or (n_samples, n_models)
            How positive each prediction is, from 0 to 1.

        Returns
        -------
        array of shape (n_rates,) or (n_rates, n_models)
        """
        return np.asarray(self.constants + self.weighted(predictions).T).T

    def weighted(self, predictions: Mapping[str, ArrayLike]) -> FloatArray:
        """Return the value of each rate without its constant; arguments and shape are those of ``values``."""
        total: Any = np.zeros(len(self.constants))
        for number, (name, weights) in enumerate(self.weights.items()):
            rows, n_samples = np.asarray(predictions_of(predictions, name)), weights.shape[1]
            if rows.ndim not in {1, 2} or rows.shape[0] != n_samples:
                raise ValueError(
                    f"predictions for dataset {name!r} must have {n_samples} rows, as its table; got shape "
                    f"{rows.shape}."
                )
            total = total + weights @ rows if number else weights @ rows
        return np.asarray(total)

    def row_weights(self, multipliers: ArrayLike) -> dict[str, FloatArray]:
        """Return the signed weight of each row in ``multipliers @ values``, by dataset."""
        factors = np.asarray(multipliers, dtype=np.float64)
        return {name: np.asarray(weights.T @ factors) for name, weights in self.weights.items()}


def predictions_of(predictions: Mapping[str, Result], name: str) -> Result:
    """Return what was predicted for a dataset; of pairs, of which only one decision each is known, which differ."""
    if isinstance(name, Pairs) and name not in predictions:
        one, other = (predictions_of(predictions, part) for part in (name.rows, name.twins))
        return flips_of(one, other)  # type: ignore[no-any-return]
    if name not in predictions:
        known = ", ".join(map(repr, predictions)) or "none"
        raise ValueError(f"predictions must cover dataset {name!r}; got {known} only.")
    return predictions[name]


def flips_of(one: Any, other: Any) -> Any:
    """Return where decisions on rows and on their twins differ; chances do not say whether one draw decides both."""
    if not all(np.isin(part, (0.0, 1.0)).all() for part in (one, other)):
        raise ValueError(
            "flip_rate compares decisions. Chances do not say whether one draw decides a row and its twin: pass labels."
        )
    return np.abs(one - other)


def refuse_pairs(rates: Sequence[Linear], names: Sequence[object] | None = None) -> None:
    """Refuse flips, where a rate must be linear in the predictions of rows."""
    for number, rate in enumerate(rates):
        if any(isinstance(count.rows.name, Pairs) for count in rate.row_counts):
            raise ValueError(
                f"{rate if names is None else names[number]} compares two decisions, so it is not linear in each of "
                "them, and no model can be trained for it. Choose among rules or models instead: GoalClassifier for "
                "two classes, or MixtureClassifier."
            )


def bind_rates(rates: Sequence[Linear], views: "Views", names: Sequence[object] | None = None) -> BoundRates:
    """Resolve rates into constants and signed weights on the rows of the tables.

    ``names`` are what an error calls the rates: the goals that they belong to.
    """
    refuse_pairs(rates, names)
    constants = np.zeros(len(rates))
    entries: dict[str, list[tuple[int, IntArray, FloatArray]]] = {}
    n_columns = views.classes.n_columns
    deferred = None if views.classes.deferred is None else n_columns - 1
    for number, rate in enumerate(rates):
        constants[number] = rate.constant
        with name_in_errors(rate if names is None else names[number]):
            for count in rate.row_counts:
                places, weights = views.rows(count.rows)
                share = count.coefficient * (weights / views.divisor(count.out_of))  # tiny totals: no reciprocal
                # The answers that are counted; where any other class is, those that are not: the class, and deferral.
                columns = [] if count.positive is None else [views.place(count.called)]
                columns += [] if count.positive or deferred is None else [deferred]
                if n_columns > 1:
                    is_direct, amounts = count.positive is not False, np.repeat(share, len(columns))
                    places = (places[:, None] * n_columns + np.array(columns, dtype=np.int64)).ravel()
                elif columns:
                    is_direct, amounts = count.positive == (columns[0] == 1), share
                else:
                    is_direct, places, amounts = True, places[:0], share[:0]
                constants[number] += 0.0 if is_direct else float(share.sum())  # 1 - prediction counts
                entry = number, places, amounts if is_direct else -amounts
                entries.setdefault(count.rows.name, []).append(entry)
    import scipy.sparse as sp  # noqa: PLC0415 - slow to import: goals are read without

    bound = {}
    for name, parts in entries.items():
        numbers, every_place, every_amount = zip(*parts, strict=True)
        where = np.repeat(numbers, [len(places) for places in every_place]), np.concatenate(every_place)
        shape = len(rates), views.tables[name].n_samples * n_columns
        bound[name] = sp.coo_array((np.concatenate(every_amount), where), shape=shape).tocsr()
        bound[name].eliminate_zeros()
    return BoundRates(constants, bound)


def tally_rates(
    rates: Sequence[Linear], views: "Views", count: "Tally", names: Sequence[object] | None = None
) -> FloatArray:
    """Return the value of each rate, without its constant, for each of several classifiers; ``names`` as above.

    ``count(rows, place)`` is the weight of the rows that each classifier answers with that code. What is counted
    out of the same rows is added up before it is divided: rates that are equal in whole numbers of rows are equal here
    to the last bit.
    """
    values = []
    deferred = None if views.classes.deferred is None else len(views.classes.labels)
    for number, rate in enumerate(rates):
        with name_in_errors(rate if names is None else names[number]):
            counts = rate.row_counts
            exponent = math.frexp(max((abs(one.coefficient) for one in counts), default=0.0))[1]
            sums: dict[Dataset, FloatArray] = {}
            for one in counts:  # in a power of two near the largest coefficient: sums of any unit stay finite
                if one.positive is None:
                    weight = 0.0 * count(one.rows, 0) if deferred is None else count(one.rows, deferred)
                else:
                    weight = count(one.rows, views.place(one.called))
                    if not one.positive:  # a deferred row is of no class, nor of another
                        others = views.total(one.rows) - weight
                        weight = others if deferred is None else others - count(one.rows, deferred)
                amount = math.ldexp(one.coefficient, -exponent) * weight
                sums[one.out_of] = sums.get(one.out_of, np.zeros(1)) + amount
            total = sum(amount / views.divisor(out_of) for out_of, amount in sums.items())
            values.append(np.ldexp(np.asarray(total), exponent))
    return np.array(values)


Tally: TypeAlias = Callable[[Dataset, int], FloatArray]  # the weight of rows that are called a class, or deferred


def _cached(method: "Callable[Concatenate[Views, P], Result]") -> "Callable[Concatenate[Views, P], Result]":
    """Return a method of ``Views`` that is evaluated once for each choice of arguments."""

    @wraps(method)
    def find(views: "Views", /, *arguments: P.args, **options: P.kwargs) -> Result:
        return views.cache((method.__name__, arguments), lambda: method(views, *arguments, **options))

    return find


class Views:
    """Rows of the tables, computed once; they take about as much memory as the result.

    ``levels`` are those at which weights are counted, where counts of several batches are to be added up.
    """

    def __init__(self, tables: Mapping[str, Table], classes: Classes, levels: FloatArray | None = None) -> None:
        self.tables, self.classes, self.levels = PairedTables(tables), classes, levels
        self._cache: dict[Any, Any] = {}

    def cache(self, key: Any, find: Callable[[], Result]) -> Result:
        """Return the result of ``find``, which is called once for each key."""
        if key not in self._cache:
            self._cache[key] = find()
        result: Result = self._cache[key]
        return result

    @_cached
    def rows(self, rows: Dataset) -> tuple[IntArray, FloatArray]:
        """Return the places of the rows that are meant, and their weights."""
        columns = [*(column for column, _ in rows.conditions), *(one.column for one in rows.ranges)]
        table, masks = table_of(self.tables, rows.name, columns), []
        for column, text in rows.conditions:
            masks.append(table.matches(column, text))
            if not masks[-1].any():
                known, where = table.levels(column).place, f" of column {column!r} in dataset {rows.name!r}"
                raise UnknownValue(str(unknown("value", text, known, where=where)))
        masks += [table.within(one) for one in rows.ranges]
        for is_positive, part in ((rows.label, "y"), (rows.baseline, "baseline")):
            if is_positive is not None:
                masks.append((self.codes(rows.name, part) == self.place(rows.of)) == is_positive)
        places = np.flatnonzero(reduce(np.logical_and, masks)) if masks else np.arange(table.n_samples)
        if rows.value is None:
            return places, table.weights(places)
        amounts = self.amounts(rows.name, rows.value)[places]
        return places, table.weights(places) * (amounts if rows.unit == 1.0 else amounts / rows.unit)

    @_cached
    def amounts(self, name: str, column: str) -> FloatArray:
        """Return the amounts of all rows of a dataset, which must be finite."""
        return table_of(self.tables, name, [column]).amounts(column, name)

    @_cached
    def mean_amount(self, rows: Dataset) -> float:
        """Return the power of two that the mean of the sizes of amounts is of, over all rows that are meant."""
        plain = replace(rows, label=None, baseline=None, of=None).without_value
        places, weights = self.rows(plain)
        sizes = np.abs(self.amounts(rows.name, str(rows.value))[places])
        largest, weight = float(sizes.max(initial=0.0)), float(weights.sum())
        if not largest or not weight:
            return 1.0
        mean = float((weights * (sizes / largest)).sum()) / weight  # parts of the largest: the sum is finite
        return math.ldexp(1.0, math.frexp(max(mean * largest, TINY_AMOUNT))[1])

    def weight_unit(self, name: str) -> float:
        """Return by what the weights of a dataset were divided when they were read."""
        return self.table(name).weight_unit

    @_cached
    def exact(self, rows: Dataset) -> list[FloatArray]:
        """Return the weights of the rows that are meant in parts whose sums are exact."""
        from counterpoise.solvers.rows import exact_parts  # noqa: PLC0415 - needs numba: goals are read without

        return exact_parts(self.rows(rows)[1])

    @_cached
    def total(self, rows: Dataset) -> float:
        """Return what the rows weigh."""
        from counterpoise.solvers.rows import exact_sum  # noqa: PLC0415 - as above

        return exact_sum(self.rows(rows)[1])

    def n_rows(self, rows: Dataset) -> int:
        """Return how many rows are meant, counted and not weighted."""
        places, table = self.rows(rows)[0], self.tables[rows.name]
        numbers = table.counts if table.row_numbers is None else table.row_numbers
        return places.size if numbers is None else int(numbers[places].sum())

    def divisor(self, rows: Dataset) -> float:
        """Return what the rows weigh, of which there must be some."""
        if rows.value is not None:
            self._refuse_negative(rows)
        total = self.total(rows)
        if not total > 0:
            raise none_of(rows)
        return total

    @_cached
    def _refuse_negative(self, rows: Dataset) -> None:
        """Refuse amounts below zero among rows that a rate is out of: it would be no share."""
        places, amounts = self.rows(rows)[0], self.amounts(rows.name, str(rows.value))
        negative = places[amounts[places] < 0]
        if negative.size:
            raise BadColumn(
                f"A rate is a share, and its amounts must not be negative; column {rows.value!r} of dataset "
                f"{rows.name!r} holds {amounts[negative[0]]:g} at row {negative[0]}, and {negative.size} negative "
                "amounts in all. For sums and means of gains and losses write total(value=...) or "
                "cost({1->0: column})."
            )

    def table(self, name: str) -> Table:
        """Return the table of a dataset."""
        return table_of(self.tables, name)

    def check_pairs(self) -> None:
        """Refuse flips where decisions are more than yes or no."""
        if self.classes.several or self.classes.deferred is not None:
            what = "rows may be deferred" if self.classes.deferred is not None else "are more"
            raise ValueError(f"flip_rate is for two classes, and rules that decide about all rows; here {what}.")

    def class_texts(self) -> list[str]:
        """Return the texts of all classes."""
        return [text_of(label) for label in self.classes.labels if label is not None]

    @_cached
    def average_over(self, term: Term) -> tuple[list[str], list[tuple[str, int]]]:
        """Return the classes that an average is over, and those left out as too small, with their numbers of rows."""
        sizes = []
        for text in self.class_texts():
            counts = term._replace(rows=replace(term.rows, of=text)).row_counts()
            sizes.append((text, min(self.n_rows(one.out_of) for one in counts)))
        kept = [text for text, n_rows in sizes if n_rows >= term.metric.min_rows]
        if not kept:
            raise all_left_out(term, term.metric.min_rows, max(n_rows for _, n_rows in sizes))
        return kept, [(text, n_rows) for text, n_rows in sizes if n_rows < term.metric.min_rows]

    def place(self, of: str | None) -> int:
        """Return the code of the class with a text, or of the positive one."""
        several = self.classes.several
        if of is None and several and self.classes.positive is None:
            raise ValueError(
                f"A rate needs a positive class; got {len(several)} classes: {', '.join(map(repr, several[:10]))}. "
                f"Name the class that you mean with of, as in recall(of={text_of(several[0])}), or with "
                "pos_label (data.positive in a goals file)."
            )
        if of is None:
            return several.index(self.classes.positive) if several else 1
        try:
            return place_of(self.classes.labels, of)
        except UnknownValue as error:
            if any("of" in table.columns for table in self.tables.values()):
                raise UnknownValue(f"{error} of names a class; a column of this name is written 'of'={of}.") from error
            raise

    @_cached
    def groups(self, rows: Dataset, columns: tuple[str, ...], most: int) -> tuple[int, list[Dataset]]:
        """Return how many groups the values of some columns make, a missing one too, and the rows of each.

        No rows where there are more groups than ``most``.
        """
        places, _ = self.rows(replace(rows, label=None, baseline=None, of=None).without_value)
        table = table_of(self.tables, rows.name, columns)
        parts = [table.levels(column).codes[places] for column in columns]
        if len(parts) == 1:  # counted, not sorted: many times as fast
            codes = np.flatnonzero(np.bincount(parts[0] + 1))[:, None] - 1  # a missing value has the code -1
        else:
            codes = np.unique(np.column_stack(parts), axis=0)
        texts = [[*table.levels(column).place, MISSING] for column in columns]  # the last for the code -1
        values = [
            {column: known[code] for column, known, code in zip(columns, texts, one, strict=True)}
            for one in (codes.tolist() if len(codes) <= most else ())
        ]
        return len(codes), list(dict.fromkeys(map(rows.select, values)))

    @_cached
    def codes(self, name: str, part: str) -> IntArray:
        """Return the classes of all rows of a dataset, by their labels ("y") or by the baseline's predictions."""
        labels = getattr(self.tables[name], part)
        if labels is None:
            raise ValueError(_missing(name, part))
        return self.classes.codes(labels, f"{part} of dataset {name!r}")


def all_left_out(name: object, min_rows: int, most: int) -> NoRows:
    """Return the error for ``min_rows`` that no group or class has."""
    return NoRows(f"{name} leaves out all groups: the largest has {most} rows. Set min_rows below {min_rows}.")


@contextmanager
def name_in_errors(name: object) -> Iterator[None]:
    """Add the goal or rate that needs the rows to an error about them."""
    try:
        yield
    except ValueError as error:
        if NEEDED_BY in str(error):
            raise
        raise type(error)(f"{error}{NEEDED_BY}{name}.") from error


def no_rows_reason(error: NoRows) -> str:
    """Return why a rate has no value on the rows, without the goal that needs it and the full stop."""
    return str(error).partition(NEEDED_BY)[0].rstrip(".")


def _missing(name: str, part: str) -> str:
    """Say what a dataset lacks and where it comes from, in Python or in a goals file."""
    if part == "y" and name == DEFAULT:
        return f"Dataset {name!r} needs labels: pass y."
    if part == "y":
        return (
            f"Dataset {name!r} needs labels: pass y in its Table, or set labelled = true in datasets.{name} of the "
            "goals file; without them write goals that need no labels, such as coverage or churn."
        )
    where = "baseline, to fit or in a Table" if name == DEFAULT else "baseline in its Table"
    return (
        f"Dataset {name!r} needs the deployed model's predictions: pass {where}, or name data.baseline or "
        "data.baseline_model in the goals file."
    )


def none_of(rows: Dataset) -> NoRows:
    """Return the error for rows that a rate is out of, where there are none of positive weight."""
    words = [f"{column}={text}" for column, text in rows.conditions] + [str(one) for one in rows.ranges]
    kinds = ("positive", "negative") if rows.of is None else (rows.of, f"other than {rows.of}")
    if rows.label is not None:
        words.append(f"labelled {kinds[0] if rows.label else kinds[1]}")
    if rows.baseline is not None:
        words.append(f"predicted {kinds[0] if rows.baseline else kinds[1]} by the baseline")
    description = f"dataset {rows.name!r}" + (f" restricted to {' and '.join(words)}" if words else "")
    if rows.value is not None:
        what = f"The amounts in column {rows.value!r} add up to 0"
        return NoRows(f"There is nothing to take a rate of: {what} on {description}.")
    return NoRows(f"There is no row of positive weight to take a rate of: {description} is empty.")


class PreparedPredictions(NamedTuple):
    """Tables as rates see them, and how positive the prediction of each row is, or how much of each answer."""

    views: Views
    predictions: dict[str, FloatArray]
    are_drawn: bool = False  # predictions are chances of draws

    def value(self, rate: Linear) -> float:
        """Return the value of a rate whose classes are known."""
        return float(rate.constant + tally_rates([rate], self.views, self._count).item())

    def _count(self, rows: Dataset, place: int) -> FloatArray:
        """Return the weight of the rows that are called the class of a code."""
        (places, weights), amounts = self.views.rows(rows), predictions_of(self.predictions, rows.name)
        if amounts.ndim > 1:
            amounts = amounts[:, place]
        elif place == 0:
            amounts = 1.0 - amounts
        return np.array([(weights * amounts[places]).sum()])  # threads of a product cost more than they save


def prepare(
    predictions: Any,
    data: Any,
    *,
    kind: str,
    pos_label: Any = None,
    classes: ArrayLike | None = None,
    defer_label: Any = None,
) -> PreparedPredictions:
    """Check predictions and bring them to numbers from 0 to 1.

    Parameters
    ----------
    predictions : array, or dict of arrays by dataset
    data : Table, or dict of Tables by dataset
    kind : {"labels", "probabilities", "scores"}
        Labels count as 0 or 1, probabilities as they are, a score z as ``max(0, min(1, 1/2 + z))``.
    pos_label : label, optional
    classes : array of labels, optional
        All there are, where the labels of the data do not hold each of them. Predicted labels must be among them, or be
        the ``defer_label``.
    defer_label : label, optional
        What predictions hold for deferred rows; probabilities have one more column for them, the last.
    """
    tables = as_tables(data)
    arrays = {name: as_labels(values) for name, values in _by_dataset(predictions, tables).items()}
    for name, array in arrays.items() if kind != "probabilities" else ():
        _check_shape(array, [(table_of(tables, name).n_samples,)], kind, name)
    titles = {name: f"{'predictions' if kind == 'labels' else kind} for dataset {name!r}" for name in arrays}
    all_classes = resolve_classes(
        (table.y for table in tables.values()),
        {titles[name]: array for name, array in arrays.items() if kind == "labels"},
        classes=classes,
        pos_label=pos_label,
        defer_label=defer_label,
    )
    if all_classes.several and kind == "scores":
        raise ValueError(f"Ramp rates are for two classes; there are {len(all_classes.several)}.")
    for name, array in arrays.items() if kind == "probabilities" else ():
        n_samples = table_of(tables, name).n_samples
        columns = [(n_samples, all_classes.n_columns)] if all_classes.n_columns > 1 else [(n_samples,), (n_samples, 2)]
        _check_shape(array, columns, kind, name)
    chances = {name: _as_chances(array, kind, all_classes, titles[name]) for name, array in arrays.items()}
    return PreparedPredictions(Views(tables, all_classes), chances, kind == "probabilities")


def _check_shape(array: AnyArray, shapes: Sequence[tuple[int, ...]], kind: str, name: str) -> None:
    if array.shape not in shapes:
        raise ValueError(
            f"{kind} for dataset {name!r} must have shape {' or '.join(map(str, shapes))}; got shape {array.shape}."
        )


def _by_dataset(predictions: Any, tables: Mapping[str, Table]) -> Mapping[str, Any]:
    if isinstance(predictions, Mapping):
        return predictions
    if not tables:
        raise ValueError("data must be a Table, or a dict from dataset names to Tables; got an empty dict.")
    if len(tables) > 1:
        raise ValueError(
            f"With {len(tables)} datasets, predictions must be a dict with one array for each: {', '.join(tables)}."
        )
    return dict.fromkeys(tables, predictions)


def _as_chances(array: AnyArray, kind: str, classes: Classes, name: str) -> FloatArray:
    """Return predictions of a kind as numbers from 0 to 1."""
    if kind == "labels":
        codes = classes.answers(array, name)
        return np.asarray(np.eye(classes.n_columns)[codes] if classes.n_columns > 1 else codes.astype(np.float64))
    if kind == "probabilities" and array.ndim > 1 and not classes.several:  # as predict_proba gives them, sorted
        place = 1 if classes.negative is None or classes.negative < classes.positive else 0
        array = array[:, place] if classes.n_columns == 1 else array[:, [1 - place, place, 2]]
    numbers = as_numbers(array, name).astype(np.float64)
    least, largest = value_range(numbers, name)
    if kind == "scores":
        return np.clip(0.5 + numbers, 0.0, 1.0)
    if least < 0 or largest > 1:
        raise ValueError(f"{name} must lie in [0, 1]; got {least if least < 0 else largest!r}.")
    return numbers


def predict_dataset(model: Any, name: str, table: Table) -> AnyArray:
    """Return the predictions for a dataset, by a model or as given in its place."""
    model = getattr(model, "best_estimator_", model)  # of a search, whose predict takes X alone
    ask: Callable[[Any], Any] | None = getattr(model, "predict", model if callable(model) else None)
    if ask is not None:
        if table.X is None:
            raise ValueError(f"Dataset {name!r} has no X for the model to predict: pass X, or the predictions instead.")
        last = model.steps[-1][1] if hasattr(model, "steps") else model
        return as_labels(ask(table.X, **_asked_columns(getattr(last, "predict", ask), table)))
    if isinstance(model, Mapping):
        return as_labels(predictions_of(model, name))
    if name != DEFAULT:
        raise ValueError(f"predictions must be a dict by dataset where goals use {name!r}; got one array.")
    return as_labels(model)


def _asked_columns(predict: Callable[..., Any], table: Table) -> dict[str, Any]:
    """Return the columns beside X that a model takes by name, as rules by group do."""
    try:
        taken = inspect.signature(predict).parameters
    except (TypeError, ValueError):  # a function of another language
        return {}
    beside = {"sensitive_features": table.own_columns or None, "baseline": table.baseline}
    return {name: columns for name, columns in beside.items() if columns is not None and name in taken}
