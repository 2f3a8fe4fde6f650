"""The rows that goals count out of, by kind: label, baseline and prediction decide what a row contributes to a rate.

Every rate is a constant plus, for each part of the data that it counts out of, the (weighted) mean of what the rows of
that part contribute; a row's contribution depends on its kind alone. So eight counts a part, which add up over parts of
the rows, are all that a bound on the population's rates needs; for weighted rows the same at each of a few weights.
Where rates distinguish several classes there are more kinds: of each class that they name, and of all others together.
A deferred row is a third prediction.

Where rates count amounts, a row weighs its amount, as a part of the largest there can be. What is counted in amounts
out of rows, as a cost, is a value of each row: such values are spread over few.

Where predictions are drawn, a row contributes its expectation over the draws: a value between those of the answers.
Rows with the same chances are a kind of their own. Means of such values are no shares of rows, and are bounded by
betting, as those of weighted rows are.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from counterpoise._base.types import BoolArray, FloatArray, IntArray
from counterpoise.goals.binding import Views, none_of, predictions_of
from counterpoise.goals.terms import Dataset, Linear, RowCount, may_be_same
from counterpoise.theory.confidence import (
    WeightedSample,
    locate_between,
    spaced_marks,
    spread_over_levels,
    value_marks,
    weight_levels,
)

_OTHER = -1  # in the place of a class: any that the rates do not name
_TWO_ANSWERS = 0.5  # of a row of which nothing is known
_ROUNDING = 1e-12  # part of what was added up, by which two contributions may differ and be one: sums are not exact
_DIGITS = 12  # decimals of an expectation, in units of the size of its rate, that distinguish it from others
_CHANCES = 64  # of one answer of two that are distinguished: more cost more and give little
_MOST_DRAWN = 256  # combinations of chances of three or more answers that are distinguished


class CountedRows(NamedTuple):
    """Rows that one or several rates count out of, and what each kind of them contributes."""

    rows: Dataset
    values: FloatArray  # (n_rates, n_kinds), of the kinds that can occur here
    counts: FloatArray  # (n_kinds,): numbers of rows
    totals: FloatArray  # (n_kinds,): sums of their weights
    spread: FloatArray | None  # (n_kinds, n_levels): numbers of rows by weight; None where all weigh the same
    levels: FloatArray  # (n_levels,): those weights, as parts of the largest that the population can hold
    is_drawn: bool = False  # values are expectations over draws, between those of sure answers

    @property
    def n_rows(self) -> int:
        """Return the number of rows."""
        return round(float(self.counts.sum()))

    @property
    def is_weighted(self) -> bool:
        """Return whether some rows of the population may weigh more than others."""
        return self.spread is not None

    def sample(self, values: FloatArray, factors: FloatArray | None = None) -> WeightedSample:
        """Return the rows with a value for each kind, and their weights, multiplied where factors (<= 1) say so."""
        numbers = self.counts[:, None] if self.spread is None else self.spread
        weights = np.outer(np.ones(values.size) if factors is None else factors, self.levels)
        span = (float(values.min()), float(values.max()))
        return WeightedSample(np.repeat(values, self.levels.size), weights.ravel(), numbers.ravel(), span)

    def only(self, kinds: BoolArray) -> "CountedRows":
        """Return the rows of some kinds."""
        spread = None if self.spread is None else self.spread[kinds]
        values, counts, totals = self.values[:, kinds], self.counts[kinds], self.totals[kinds]
        return self._replace(values=values, counts=counts, totals=totals, spread=spread)


def parts_of(
    rates: Sequence[Linear],
    exponents: Sequence[int],
    views: Views,
    predictions: Mapping[str, FloatArray] | None,
    *,
    are_drawn: bool = False,
) -> list[CountedRows]:
    """Return the parts of the data that the rates count out of.

    Parameters
    ----------
    rates : sequence of rates
    exponents : sequence of int
        Of the power of two that is the unit of each rate's values: a change of its unit then changes nothing else.
    views : Views
        Of the tables.
    predictions : dict from dataset names to arrays, or None
        1 for rows predicted positive, 0 for others. None: half of every kind of row are predicted positive, or half
        are deferred where a rate counts those.
    are_drawn : bool, default=False
        Whether predictions are chances from 0 to 1: of the positive class, or of each answer where there are several.
    """
    counts = [(number, one) for number, rate in enumerate(rates) for one in rate.row_counts]
    parts = []
    for rows in dict.fromkeys(one.out_of for _, one in counts):
        here = [(number, one) for number, one in counts if one.out_of == rows]
        kinds = _kinds_of([one for _, one in here], views)
        values = np.zeros((len(rates), len(kinds.all)))
        sizes = np.zeros_like(values)
        for number, one in here:
            amount = math.ldexp(one.coefficient, -exponents[number]) * kinds.is_counted(one)
            values[number] += amount
            sizes[number] += np.abs(amount)
        values = np.array([_without_rounding(*row) for row in zip(values, sizes, strict=True)])
        places, weights = views.rows(rows)
        chances = None if predictions is None else predictions_of(predictions, rows.name)
        if rows.value is not None:
            views.divisor(rows)  # refuses negative amounts
        if not places.size or not weights.max() > 0:
            raise none_of(rows)
        if chances is not None and len(chances) != places.size:  # else all of them, in their order
            chances = chances[places]
        known = views.cache((rows, kinds.letters[:2]), lambda: _label_kinds(rows, kinds, views, places))  # noqa: B023 - now
        if any(one.rows.value != rows.value for _, one in here):
            for number in dict.fromkeys(number for number, _ in here):
                own = [one for other, one in here if other == number]
                part = _amount_part(rows, kinds, own, exponents[number], views, known, chances)
                values = np.zeros((len(rates), part.counts.size))
                values[number] = part.values[0]
                parts.append(part._replace(values=values))
        elif are_drawn and chances is not None:
            parts.append(_expected_part(rows, kinds, values, views, known, chances))
        else:
            sums = _sums(rows, kinds, views, known, chances)
            parts.append(CountedRows(rows, values, *sums).only(kinds.of(rows)))
    return parts


def _without_rounding(values: FloatArray, sizes: FloatArray) -> FloatArray:
    """Return sums, those that differ by rounding alone as one, given how much was added up without signs for each."""
    if not sizes.any():
        return values
    sums = [  # a dozen: numpy would take ten times as long
        (value, size) if abs(value) > _ROUNDING * size else (0.0, 0.0)
        for value, size in zip(values.tolist(), sizes.tolist(), strict=True)
    ]
    rising = sorted(set(sums))
    same, (last, last_size) = {rising[0][0]: rising[0][0]}, rising[0]
    for value, size in rising[1:]:
        is_same = value - last <= _ROUNDING * max(size, last_size)
        same[value], last, last_size = same[last] if is_same else value, value, size
    return np.array([same[value] for value, _ in sums])


class RowKinds(NamedTuple):
    """Kinds of rows: one for each distinguished label, baseline and prediction."""

    letters: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]  # codes of the classes of each
    place: Callable[[str | None], int]  # from the text of a class to its code
    deferred: int | None  # the code of a deferred row
    shares: tuple[float, ...] = ()  # how often each prediction is taken to be, where none are known

    @property
    def all(self) -> IntArray:
        """Return label, baseline and prediction of each kind."""
        return np.array(list(product(*self.letters)))

    def of(self, rows: Dataset) -> BoolArray:
        """Return which kinds can be among the rows."""
        kinds = self.all
        matches = np.ones(len(kinds), dtype=np.bool_)
        for column, is_positive in enumerate((rows.label, rows.baseline)):
            if is_positive is not None:
                matches &= (kinds[:, column] == self.place(rows.of)) == is_positive
        return matches

    def is_counted(self, count: RowCount) -> BoolArray:
        """Return which kinds are counted."""
        predictions = self.all[:, 2]
        is_deferred = predictions == self.deferred
        if count.positive is None:
            return np.asarray(self.of(count.rows) & is_deferred)
        is_called = predictions == self.place(count.called)
        return np.asarray(self.of(count.rows) & (is_called == count.positive) & ~is_deferred)

    def numbers(self, which: int, codes: IntArray) -> IntArray:
        """Return the number of each code among the letters of labels (0), baselines (1) or predictions (2)."""
        letters = self.letters[which]
        if letters[0] == _OTHER and len(letters) == 2:  # noqa: PLR2004 - one class and all others
            return np.asarray(codes == letters[1], dtype=np.int64)
        numbers = np.zeros(codes.shape, dtype=np.int64)  # others come first, where there are any
        for number, letter in enumerate(letters):
            numbers[codes == letter] = number
        return numbers


def _kinds_of(counts: Sequence[RowCount], views: Views) -> RowKinds:
    """Return the kinds that matter to what is counted out of the same rows."""
    every = [one.out_of for one in counts] + [one.rows for one in counts]
    labels = {views.place(rows.of) for rows in every if rows.label is not None}
    baselines = {views.place(rows.of) for rows in every if rows.baseline is not None}
    called = {views.place(one.called) for one in counts if one.positive is not None}
    n_classes = len(views.classes.labels)
    deferred = None if views.classes.deferred is None else n_classes
    if deferred is not None and not all(one.positive for one in counts):
        called.add(deferred)
    predictions = _letters(called, n_classes + (deferred is not None))
    letters = _letters(labels, n_classes), _letters(baselines, n_classes), predictions
    return RowKinds(
        letters,
        views.place,
        deferred,
        _assumed_shares(predictions, deferred, any(one.positive is None for one in counts)),
    )


def _letters(codes: set[int], n_codes: int) -> tuple[int, ...]:
    return tuple(sorted(codes)) if len(codes) == n_codes else (_OTHER, *sorted(codes))


def _assumed_shares(letters: tuple[int, ...], deferred: int | None, counts_deferred: bool) -> tuple[float, ...]:
    """Return how often each prediction is taken to be: alike, deferral half of them where it is counted, or never."""
    if deferred not in letters:
        return (1.0 / len(letters),) * len(letters)
    share = _TWO_ANSWERS if counts_deferred else 0.0
    others = len(letters) - 1
    return tuple(share if one == deferred else (1.0 - share) / others for one in letters)


_Sums = tuple[FloatArray, FloatArray, FloatArray | None, FloatArray]  # counts, totals, spread, levels of CountedRows


def _sums(rows: Dataset, kinds: RowKinds, views: Views, known: IntArray, chances: FloatArray | None) -> _Sums:
    n_answers = len(kinds.letters[2])
    if chances is not None:
        codes = chances.argmax(axis=1) if chances.ndim > 1 else chances
        numbers = known * n_answers + kinds.numbers(2, codes.astype(np.int64))
        return _by_kind(numbers, len(kinds.all), rows, views)
    *sums, spread, levels = _by_kind(known, len(kinds.all) // n_answers, rows, views)
    counts, totals = (np.outer(one, kinds.shares).ravel() for one in sums)
    return counts, totals, None if spread is None else np.kron(spread, np.array(kinds.shares)[:, None]), levels


def _expected_part(
    rows: Dataset, kinds: RowKinds, values: FloatArray, views: Views, known: IntArray, chances: FloatArray
) -> CountedRows:
    """Return a part whose rows contribute expectations over draws, given what rows of each kind contribute."""
    cells = _chance_cells(_chances(kinds.letters[2], chances))
    n_cells, n_answers = cells.chances.shape
    n_known = len(kinds.all) // n_answers
    numbers = (known[cells.rows] * n_cells) + cells.numbers
    sums = _by_kind(numbers, n_known * n_cells, rows, views, cells.rows, cells.parts)
    expectations = np.round(values.reshape(len(values), n_known, n_answers) @ cells.chances.T, _DIGITS)
    is_here = np.repeat(kinds.of(rows).reshape(n_known, n_answers)[:, 0], n_cells)
    is_pure = np.tile((cells.chances == 1.0).any(axis=1), n_known)  # between those all values of the population lie
    part = CountedRows(rows, expectations.reshape(len(values), -1), *sums, is_drawn=True)
    return part.only(is_here & (is_pure | (part.counts > 0)))


def _chances(letters: tuple[int, ...], predicted: FloatArray) -> FloatArray:
    """Return the chance of each distinguished answer, shape (n_rows, n_answers)."""
    if predicted.ndim == 1:
        predicted = np.column_stack([1.0 - predicted, predicted])
    columns = [predicted[:, letter] for letter in letters if letter != _OTHER]
    others = [np.clip(1.0 - sum(columns, np.zeros(len(predicted))), 0.0, 1.0)] if letters[0] == _OTHER else []
    return np.column_stack([*others, *columns])


class _ChanceCells(NamedTuple):
    """Rows by the chances of their answers; one between two cells counts in part in both."""

    chances: FloatArray  # (n_cells, n_answers), those of sure answers among them
    rows: IntArray  # which row
    numbers: IntArray  # in which cell
    parts: FloatArray  # how much of it


def _chance_cells(chances: FloatArray) -> _ChanceCells:
    """Return few cells of chances; the logarithm of a bet's wealth is concave in them, so that bounds only move out."""
    n_rows, n_answers = chances.shape
    every, whole = np.arange(n_rows), np.ones(n_rows)
    chances, sure = np.round(chances, _DIGITS), np.eye(n_answers)
    if n_answers == 2:  # noqa: PLR2004 - one chance determines the other
        levels, numbers = np.unique(np.concatenate([chances[:, 1], [0.0, 1.0]]), return_inverse=True)
        if levels.size <= _CHANCES:
            return _ChanceCells(np.column_stack([1.0 - levels, levels]), every, numbers[:n_rows], whole)
        levels = np.linspace(0.0, 1.0, _CHANCES)
        below, above = locate_between(chances[:, 1], levels)
        parts = np.append(1.0 - above, above)
        return _ChanceCells(
            np.column_stack([1.0 - levels, levels]), np.tile(every, 2), np.append(below, below + 1), parts
        )
    cells, numbers = np.unique(np.vstack([chances, sure]), axis=0, return_inverse=True)
    if len(cells) <= _MOST_DRAWN:
        return _ChanceCells(cells, every, numbers.ravel()[:n_rows], whole)
    return _ChanceCells(sure, np.repeat(every, n_answers), np.tile(np.arange(n_answers), n_rows), chances.ravel())


def _label_kinds(rows: Dataset, kinds: RowKinds, views: Views, places: IntArray) -> IntArray:
    """Return of which kind each row is by its label and baseline, whatever is predicted."""
    numbers = np.zeros(places.size, dtype=np.int64)
    for which, part in enumerate(("y", "baseline")):
        letters = kinds.letters[which]
        known = kinds.numbers(which, views.codes(rows.name, part)[places]) if len(letters) > 1 else 0
        numbers = numbers * len(letters) + known
    return numbers


def _amount_part(
    rows: Dataset,
    kinds: RowKinds,
    counts: Sequence[RowCount],
    exponent: int,
    views: Views,
    known: IntArray,
    chances: FloatArray | None,
) -> CountedRows:
    """Return the rows that one rate counts amounts out of: each has a value of its own.

    The most that a value can be follows from the largest amounts there can be.
    """
    n_answers = len(kinds.letters[2])
    table, places = views.table(rows.name), views.rows(rows)[0]
    answers = np.broadcast_to(np.array(kinds.shares), (known.size, n_answers))
    if chances is not None:
        answers = _chances(kinds.letters[2], chances)
    values, ends = np.zeros(known.size), np.zeros((2, len(kinds.all)))  # ends: least and most that kinds can have
    for one in counts:
        coefficient, is_counted = math.ldexp(one.coefficient, -exponent), kinds.is_counted(one)
        own = coefficient * (is_counted.reshape(-1, n_answers)[known] * answers).sum(axis=1)
        if one.rows.value is None:
            ends += coefficient * is_counted
        else:
            own = own * views.amounts(rows.name, one.rows.value)[places] / one.rows.unit
            most = abs(coefficient) * table.largest_amount(one.rows.value, rows.name) / one.rows.unit
            ends += np.outer([-most, most], is_counted)
        values += own
    is_here = kinds.of(rows)
    span = float(ends[0, is_here].min()), float(ends[1, is_here].max())
    marks = value_marks(values, span) if views.levels is None else spaced_marks(span, views.levels.size)
    below, above = locate_between(np.clip(values, *span), marks)
    cells, every = np.append(below, below + 1), np.tile(np.arange(known.size), 2)
    numbers, totals, spread, levels = _by_kind(cells, marks.size, rows, views, every, np.append(1.0 - above, above))
    spread = numbers[:, None] if spread is None else spread
    return CountedRows(rows, marks[None], numbers, totals, spread, levels, is_drawn=True)


def _by_kind(
    kinds: IntArray,
    n_kinds: int,
    rows: Dataset,
    views: Views,
    which: IntArray | None = None,
    parts: FloatArray | None = None,
) -> _Sums:
    """Return sums over rows by kind, or over parts of rows, where those are given and which row each is of."""
    name, table = rows.name, views.table(rows.name)
    weights, share = views.rows(rows)[1], 1.0 if parts is None else parts
    weights = weights if which is None else weights[which]
    n_alike = None
    if table.counts is not None:
        n_alike = table.counts[views.rows(rows)[0]]
        n_alike = n_alike if which is None else n_alike[which]
        share = share * n_alike
        if rows.value is None:
            counts = np.bincount(kinds, share, n_kinds).astype(np.float64)
            return counts, counts, None, np.ones(1)
    heaviest = None if table.counts is not None else table.heaviest(name)
    counts = np.bincount(kinds, parts if n_alike is None else share, n_kinds).astype(np.float64)
    if rows.value is not None:
        heaviest = (1.0 if heaviest is None else heaviest) * table.largest_amount(rows.value, name) / rows.unit
    elif heaviest is None and weights.size and weights[0] == 1.0 and (weights == 1.0).all():
        return counts, counts, None, np.ones(1)
    totals = np.bincount(kinds, (1.0 if parts is None else parts) * weights, n_kinds).astype(np.float64)
    if heaviest is None:
        return counts, totals, None, np.ones(1)
    relative = (weights if n_alike is None else weights / np.maximum(n_alike, 1.0)) / heaviest
    levels = weight_levels(relative) if views.levels is None else views.levels
    return counts, totals, spread_over_levels(relative, kinds, n_kinds, levels, share), levels


def are_disjoint(one: Dataset, other: Dataset) -> bool:
    """Return whether two parts of one dataset can have no row in common, as their conditions say."""
    if one.name != other.name:  # the same rows may be known under two names
        return False
    values = dict(other.conditions)
    return (
        any(not may_be_same(values.get(column, text), text) for column, text in one.conditions)
        or any(a.column == b.column and (a & b).is_empty for a in one.ranges for b in other.ranges)
        or _are_opposite(one.label, other.label, one.of, other.of)
        or _are_opposite(one.baseline, other.baseline, one.of, other.of)
    )


def _are_opposite(one: bool | None, other: bool | None, of: str | None, other_of: str | None) -> bool:
    """Return whether no label is both of a class (or not) and of another (or not)."""
    if of == other_of:
        return {one, other} == {True, False}
    return one is True and other is True and of is not None and other_of is not None and not may_be_same(of, other_of)
