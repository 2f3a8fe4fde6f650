"""What candidate rules come to in rates, on the rows, on resamples of them, and with which standard errors.

What counts of the rows are sums over cells: rows that all candidate rules treat alike and that the goals count alike.
Where goals count amounts, the cells have sums of those, and of their products, too. A function is linear in the
answers, or a sum of ratios of such functions, which varies as its tangent does.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import BoolArray, ByteArray, FloatArray, IntArray
from counterpoise.goals.binding import Views
from counterpoise.goals.terms import Dataset, Linear, Pairs, RowCount

_TINY = 1e-12
_MOST_SUMS = 20_000_000  # of resamples at a time
# Rows without a failure bound the rate of failures by 2.3 in so many rows at a confidence of 0.9: the variance of half
# a row is as many times too small.
NO_FAILURES = 12.8


class Rules(NamedTuple):
    """Candidate rules, and what each answers about cells of rows that all of them treat alike."""

    answers: ByteArray  # (n_cells, n_rules): codes of classes, and behind them of deferral
    cells: Mapping[str, IntArray]  # by dataset: the cell of each row

    def only(self, places: IntArray) -> "Rules":
        """Return some of the rules."""
        return self._replace(answers=self.answers[:, places])


def with_pairs(rules: Rules, names: Iterable[str]) -> Rules:
    """Return rules with cells of pairs of rows, about which a rule answers 1 where it decides them unlike."""
    answers, cells, n_cells = [rules.answers], dict(rules.cells), len(rules.answers)
    for pairs in names:
        if isinstance(pairs, Pairs) and pairs not in cells:
            both = np.column_stack([cells[pairs.rows], cells[pairs.twins]])
            distinct, own = np.unique(both, axis=0, return_inverse=True)
            cells[pairs] = n_cells + own.ravel()
            answers.append(rules.answers[distinct[:, 0]] ^ rules.answers[distinct[:, 1]])
            n_cells += len(distinct)
    return Rules(np.vstack(answers), cells)


class RatioSum(NamedTuple):
    """A constant plus weighted ratios of linear functions; 0 where one of them has no value, as nothing is compared."""

    ratios: tuple[tuple[float, Linear, Linear], ...]  # weight, top, bottom
    constant: float

    @property
    def row_counts(self) -> tuple[RowCount, ...]:
        """Return the counts of all tops and bottoms."""
        return tuple(count for _, top, bottom in self.ratios for side in (top, bottom) for count in side.row_counts)


class Slope(NamedTuple):
    """What a function rises with the share of a count of rows."""

    counted: RowCount
    slope: FloatArray
    is_under: bool = False  # whether it is in a denominator alone: what moves there without the numerator changes less


Slopes = list[Slope]


def tangent(function: Linear | RatioSum, share: Callable[[RowCount], Any]) -> tuple[FloatArray, Slopes]:
    """Return the values of a function at some rules, given their shares of counts, and its slopes there.

    A limit that is met because a ratio has no value is met without any room, and does not vary.
    """
    if not isinstance(function, RatioSum):
        slopes = [Slope(count, np.asarray(count.coefficient)) for count in function.row_counts]
        return np.asarray(function.constant + sum(one.slope * share(one.counted) for one in slopes)), slopes
    value, is_known, slopes = np.asarray(function.constant), np.asarray(True), []
    for weight, top, bottom in function.ratios:
        (over, over_slopes), (under, under_slopes) = tangent(top, share), tangent(bottom, share)
        has_value = under > _TINY
        inverse = 1.0 / np.where(has_value, under, np.inf)
        value, is_known = value + weight * over * inverse, is_known & has_value
        slopes += [one._replace(slope=weight * inverse * one.slope) for one in over_slopes]
        falls = -weight * over * inverse**2
        slopes += [one._replace(slope=falls * one.slope, is_under=True) for one in under_slopes]
    return np.where(is_known, value, 0.0), [one._replace(slope=one.slope * is_known) for one in slopes]


def part_of_rows(function: Linear | RatioSum, share: Callable[[RowCount], Any]) -> FloatArray:
    """Return of which part of its rows the ratios of a function are at least, at some rules; 1 for a linear one."""
    bottoms = [tangent(bottom, share)[0] for _, _, bottom in function.ratios] if isinstance(function, RatioSum) else []
    return np.asarray(np.minimum.reduce(np.broadcast_arrays(1.0, *bottoms)))


Measure = tuple[str | None, float]  # what rows count with: a column of amounts and its unit, or None: each as 1


def measure_of(rows: Dataset) -> Measure:
    """Return what rows count with."""
    return rows.value, rows.unit


class RowCells:
    """The rows of a dataset that goals count, by the cell that rules treat alike and by what counts them."""

    def __init__(self, name: str, cells: IntArray, sets: Sequence[Dataset], views: Views, row_factor: float) -> None:
        self.name, self.row_factor = name, row_factor
        self.sets = list(dict.fromkeys(rows.without_value for rows in sets))
        self.measures = list(dict.fromkeys(measure_of(rows) for rows in sets))
        table = views.tables[name]
        is_in = np.zeros((len(self.sets), table.n_samples), dtype=np.bool_)
        for place, rows in enumerate(self.sets):
            is_in[place, views.rows(rows)[0]] = True
        packed = np.packbits(is_in, axis=0).T
        kinds, of = np.unique(packed, axis=0, return_inverse=True)
        of = of.ravel()
        self.membership = np.unpackbits(kinds, axis=1)[:, : len(self.sets)].astype(np.float64)  # (n_kinds, n_sets)
        self.n_kinds, self.n_cells = len(kinds), int(cells.max(initial=-1)) + 1
        self.keys = cells.astype(np.int64) * self.n_kinds + of
        self.weights = table.weights()
        squares = self.weights if table.counts is not None else self.weights**2  # of rows, or those they stand for
        self.squares = squares / row_factor
        has_amounts = any(value is not None for value, _ in self.measures)
        self.are_equal = (table.counts is not None or bool(np.ptp(self.weights) == 0)) and not has_amounts
        self.unit = 1.0 if table.counts is not None else float(self.weights[0])
        self.amounts = {one: views.amounts(name, one[0]) / one[1] for one in self.measures if one[0] is not None}
        self.numbers = np.ones(self.weights.size) if table.counts is None else np.maximum(table.counts, _TINY)
        self.classes = np.unique(np.zeros(self.weights.size) if table.y is None else table.y, return_inverse=True)[1]
        self._evenness: dict[Measure, float] = {}

    def is_in(self, rows: Dataset) -> FloatArray:
        """Return which kinds are among some rows."""
        return np.asarray(self.membership[:, self.sets.index(rows.without_value)])

    def measured(self, numbers: FloatArray, *measures: Measure) -> FloatArray:
        """Return a number for each row, times its amounts."""
        for one in measures:
            numbers = numbers * self.amounts[one] if one in self.amounts else numbers
        return numbers

    def sums(self, amounts: FloatArray, n_cells: int) -> FloatArray:
        """Return the sums of amounts of the rows, shape (n_cells, n_kinds)."""
        counted = np.bincount(self.keys, amounts, n_cells * self.n_kinds)
        return counted.astype(np.float64).reshape(n_cells, self.n_kinds)

    def sums_of_each(self, weights: FloatArray, n_cells: int) -> "RowSums":
        """Return the sums of what rows count with, given their weights, for each measure."""
        return {(self.name, *one): self.sums(self.measured(weights, one), n_cells) for one in self.measures}

    def effective_rows(self, rows: Dataset) -> float:
        """Return on how many rows of equal weight and amount a sum over some rows rests."""
        return self.effective_of(self.is_in(rows)[self.keys % self.n_kinds] > 0, measure_of(rows))

    def effective_of(self, inside: BoolArray, measure: Measure) -> float:
        """Return on how many rows of equal weight and amount a sum over the rows inside rests.

        They may by chance lack the large amounts that others of the dataset have, and new rows will have: there are no
        more effective rows among them, in proportion, than in the dataset.
        """
        sizes = np.abs(self.measured(self.weights, measure))
        squares = self.measured(self.squares, measure, measure)
        n_rows = float(sizes[inside].sum()) ** 2 / max(float(squares[inside].sum()), _TINY)
        if self.are_equal:
            return n_rows
        return min(n_rows, self.row_factor * self.evenness(measure) * float(self.numbers[inside & (sizes > 0)].sum()))

    def evenness(self, measure: Measure) -> float:
        """Return which part of the rows that count their sums rest on; classes may have amounts of another size."""
        if measure not in self._evenness:
            sizes = np.abs(self.measured(self.weights, measure)) / self.numbers
            numbers = self.numbers * (sizes > 0)
            means = np.bincount(self.classes, numbers * sizes) / np.maximum(np.bincount(self.classes, numbers), _TINY)
            relative = sizes / np.maximum(means[self.classes], _TINY)
            self._evenness[measure] = float(numbers.sum() / max(float(numbers @ relative**2), _TINY))
        return self._evenness[measure]

    def even_squares(self, measure: Measure, n_cells: int) -> FloatArray:
        """Return the sums of squares, shape (n_cells, n_kinds), if amounts did not depend on the cell of a row.

        A rule that is chosen is right by chance about the few rows that have most of them.
        """
        sizes = np.abs(self.measured(self.weights, measure))
        of = self.keys % self.n_kinds
        totals = np.bincount(of, sizes, self.n_kinds)
        effective = np.array([self.effective_of(of == kind, measure) for kind in range(self.n_kinds)])
        # sums of few large amounts are skewed
        skew = (1.0 + (1.0 - self.evenness(measure)) / np.sqrt(np.maximum(effective, 1.0))) ** 2
        scales: FloatArray = totals / np.maximum(effective, _TINY) * skew
        return self.sums(sizes, n_cells) * scales


RowSums = dict[tuple[str, str | None, float], FloatArray]  # by dataset and measure


class RuleTable:
    """What candidate rules come to in any function of their answers, on the rows and on resamples of them."""

    def __init__(
        self,
        rules: Rules,
        functions: Sequence[Linear | RatioSum],
        views: Views,
        error_factors: Mapping[str, float] | None = None,
        cost: FloatArray | None = None,
        row_factor: float = 1.0,
        shifts: FloatArray | None = None,
    ) -> None:
        self.views, self.functions = views, tuple(functions)
        self.shifts = shifts  # (n_functions, n_rules): by how much more the deciding model has; None: nothing known
        self.cost = cost  # of each rule, where more is known of it than its value on the rows
        self.error_factors = {} if error_factors is None else error_factors  # of standard errors, by dataset
        self.row_factor = row_factor  # standard errors and resamples are those of so many times the rows
        self.counts = sorted({count for one in functions for count in one.row_counts}, key=repr)
        rules = with_pairs(rules, {count.rows.name for count in self.counts})
        self.rules, self.n_cells = rules, len(rules.answers)
        self.place = {count: place for place, count in enumerate(self.counts)}
        by_name: dict[str, list[Dataset]] = {}
        for count in self.counts:
            for rows in (count.rows, count.out_of):
                own = by_name.setdefault(rows.name, [])
                if rows not in own:
                    own.append(rows)
        self.rows = {name: RowCells(name, rules.cells[name], sets, views, row_factor) for name, sets in by_name.items()}
        self.kinds = [self._answer(count) for count in self.counts]
        self.indicators = {kind: kind.holds(rules.answers).astype(np.float64) for kind in set(self.kinds)}

    def _answer(self, count: RowCount) -> "_Kind":
        classes = self.views.classes
        place = -1 if count.positive is None else self.views.place(count.called)
        return _Kind(count.positive, place, -1 if classes.deferred is None else len(classes.labels))

    def only(self, places: IntArray) -> "RuleTable":
        """Return the same of some rules."""
        cost = None if self.cost is None else self.cost[places]
        shifts = None if self.shifts is None else self.shifts[:, places]
        rules = self.rules.only(places)
        return RuleTable(rules, self.functions, self.views, self.error_factors, cost, self.row_factor, shifts)

    def observed(self) -> RowSums:
        """Return the sums of the rows as they are, by dataset and measure, shape (n_cells, n_kinds)."""
        sums: RowSums = {}
        for rows in self.rows.values():
            sums |= rows.sums_of_each(rows.weights, self.n_cells)
        return sums

    def resamples(
        self, n_resamples: int, rng: np.random.Generator, persons: Mapping[str, IntArray]
    ) -> Iterator[RowSums]:
        """Yield the sums of some resamples of the rows at a time, as ``observed``, (n_resamples, n_cells, n_kinds).

        Those of lists, which are no samples, stay as they are. Where several rows are of one person, persons are drawn.
        """
        observed = self.observed()
        most = max(1, _MOST_SUMS // max(own.size for own in observed.values()))
        for first in range(0, n_resamples, most):
            n_drawn = min(most, n_resamples - first)
            drawn: RowSums = {}
            for rows in self.rows.values():
                drawn |= self._redraw(rows, observed, n_drawn, rng, persons)
            yield drawn

    def _redraw(
        self, rows: RowCells, observed: RowSums, n_drawn: int, rng: np.random.Generator, persons: Mapping[str, IntArray]
    ) -> RowSums:
        name = rows.name
        keys = [(name, *one) for one in rows.measures]
        if not self.views.tables[name].population:
            return {key: np.broadcast_to(observed[key], (n_drawn, *observed[key].shape)) for key in keys}
        if rows.are_equal and name not in persons:  # cells of equal rows are drawn as such
            counts = np.rint(observed[keys[0]] / rows.unit)
            n_rows = round(rows.row_factor * counts.sum())
            times = rng.multinomial(n_rows, counts.ravel() / counts.sum(), size=n_drawn)
            return {keys[0]: np.asarray(rows.unit * times.reshape(n_drawn, *counts.shape), dtype=np.float64)}
        units = persons.get(name, np.arange(rows.weights.size))
        n_units = int(units.max()) + 1
        size = round(rows.row_factor * n_units)
        repeats = (np.bincount(rng.integers(0, n_units, size), minlength=n_units) for _ in range(n_drawn))
        all_sums = [rows.sums_of_each(rows.weights * times[units], self.n_cells) for times in repeats]
        return {key: np.array([sums[key] for sums in all_sums]) for key in keys}

    def shares(self, sums: RowSums) -> FloatArray:
        """Return for each count what it is out of its rows, for every rule, shape (..., n_counts, n_rules)."""
        shares = []
        for count, kind in zip(self.counts, self.kinds, strict=True):
            rows, out_of = self.rows[count.rows.name], self.rows[count.out_of.name]
            by_cell = sums[count.rows.name, *measure_of(count.rows)] @ rows.is_in(count.rows)
            total = sums[count.out_of.name, *measure_of(count.out_of)].sum(axis=-2) @ out_of.is_in(count.out_of)
            scaled = np.divide(by_cell.T, total, out=np.zeros(by_cell.T.shape), where=np.asarray(total > 0)).T
            shares.append(scaled @ self.indicators[kind])
        return np.stack(shares, axis=-2)

    def values(self, shares: FloatArray) -> FloatArray:
        """Return the functions of every rule, shape (..., n_functions, n_rules)."""
        values = [np.broadcast_to(self.tangent(place, shares)[0], shares[..., 0, :].shape) for place in self.places]
        return np.stack(values, axis=-2)

    @property
    def places(self) -> range:
        """Return the places of the functions."""
        return range(len(self.functions))

    def tangent(self, place: int, shares: FloatArray) -> tuple[FloatArray, Slopes]:
        """Return the values of one function at every rule, and its slopes."""
        return tangent(self.functions[place], lambda count: shares[..., self.place[count], :])

    def part_of_rows(self, place: int, shares: FloatArray) -> FloatArray:
        """Return of which part of its rows one function is at least, for every rule."""
        own = part_of_rows(self.functions[place], lambda count: shares[self.place[count]])
        return np.broadcast_to(own, shares.shape[1:])

    def influences(self, places: IntArray, shares: FloatArray, rule: int) -> dict[str, FloatArray]:
        """Return the influence of every row on some functions of one rule, by dataset (n_functions, n_rows)."""
        sums, by_name = self.observed(), {}
        for name, rows in self.rows.items():
            if not self.views.tables[name].population:
                continue
            kinds, cells = rows.keys % rows.n_kinds, rows.keys // rows.n_kinds
            own = np.zeros((places.size, rows.keys.size))
            for number, place in enumerate(places.tolist()):
                for count, slope, _ in self.tangent(place, shares[:, [rule]])[1]:
                    if count.rows.name != name:
                        continue
                    total = float(sums[name, *measure_of(count.out_of)].sum(axis=0) @ rows.is_in(count.out_of))
                    if total <= 0:
                        continue
                    at = self.place[count]
                    is_counted = self.indicators[self.kinds[at]][cells, rule]
                    counted = rows.measured(rows.is_in(count.rows)[kinds] * is_counted, measure_of(count.rows))
                    whole = rows.measured(rows.is_in(count.out_of)[kinds], measure_of(count.out_of))
                    own[number] += slope * (counted - shares[at, rule] * whole) / total
            by_name[name] = own * rows.weights
        return by_name

    def variances(self, places: IntArray, shares: FloatArray) -> FloatArray:
        """Return the variance of some functions for every rule, shape (n_functions, n_rules); none is zero.

        Shares are moved a little from 0 and 1, by half of a row of those that they are out of.
        """
        n_rules = shares.shape[1]
        variances = np.zeros((places.size, n_rules))
        n_answers = int(self.rules.answers.max(initial=1)) + 1
        for name, rows in self.rows.items():
            if not self.views.tables[name].population:  # a list of rows does not vary
                continue
            squares = {
                pair: rows.sums(rows.measured(rows.squares, *pair), self.n_cells)
                for pair in combinations_with_replacement(rows.measures, 2)
            }
            sums = {one: rows.sums(rows.measured(rows.weights, one), self.n_cells).sum(axis=0) for one in rows.measures}
            even = {} if rows.are_equal else {(one, one): rows.even_squares(one, self.n_cells) for one in rows.measures}
            by_answer, even_by_answer = (  # (n_kinds, n_rules)
                {
                    pair: [own.T @ (self.rules.answers == answer) for answer in range(n_answers)]
                    for pair, own in products.items()
                }
                for products in (squares, even)
            )
            for number, place in enumerate(places.tolist()):
                own = [one for one in self.tangent(place, shares)[1] if one.counted.rows.name == name]
                if not own:
                    continue
                # Of each measure: what an answer adds to the influence of a row, and what is taken off.
                width = max(one.slope.size for one in own)  # slopes of linear functions are the same at every rule
                direct = {one: np.zeros((n_answers, rows.n_kinds, width)) for one in rows.measures}
                central = {one: np.zeros((rows.n_kinds, n_rules)) for one in rows.measures}
                floor = np.zeros(width)
                for count, slope, is_under in own:
                    at = self.place[count]
                    is_in, is_of = rows.is_in(count.rows), rows.is_in(count.out_of)
                    measure, whole = measure_of(count.rows), measure_of(count.out_of)
                    total = float(sums[whole] @ is_of)
                    if total <= 0:
                        continue
                    for answer in range(n_answers):
                        holds = bool(self.kinds[at].holds(answer))
                        direct[measure][answer] += np.outer(is_in / total * holds, slope)
                    central[whole] += np.outer(is_of / total, slope * shares[at])
                    # Half a row of those that the share is out of, or of those that are counted.
                    most = float(sums[measure] @ is_in) / total
                    n_rows = rows.effective_rows(count.rows)
                    half = max(1.0 / (rows.effective_rows(count.out_of) + 1.0), most / (n_rows + 1.0))
                    floor += (slope * (not is_under) * half) ** 2 * 0.25
                total_variance, even_variance = np.zeros(n_rules), np.zeros(n_rules)
                for (one, other), products in by_answer.items():
                    twice = 1.0 if one == other else 2.0
                    for answer in range(n_answers):
                        slopes = direct[one][answer] - central[one]
                        others = slopes if one == other else direct[other][answer] - central[other]
                        total_variance += twice * (products[answer] * (slopes * others)).sum(axis=0)
                        even_products = even_by_answer.get((one, other), products)
                        even_variance += twice * (even_products[answer] * (slopes * others)).sum(axis=0)
                total_variance = np.maximum(total_variance, even_variance)
                least = np.maximum(np.maximum(total_variance + 2.0 * floor, NO_FAILURES * floor), _TINY**2)
                variances[number] += least * self.error_factors.get(name, 1.0) ** 2
        return variances


class _Kind(NamedTuple):
    """Which answers a count is about."""

    positive: bool | None  # the class, any other class, or None: deferral
    place: int  # the code of the class
    deferred: int  # that of deferral

    def holds(self, answers: Any) -> Any:
        """Tell of which answers it is."""
        if self.positive is None:
            return answers == self.deferred
        return answers == self.place if self.positive else (answers != self.place) & (answers != self.deferred)
