"""The evaluator: what rules come to in rates, on the rows, on resamples of them, and with which standard errors.

Rows are counted once, by cell and by kind. A cell holds rows that each rule treats alike, and a kind rows that the
goals count alike. From then on everything is a sum over cells: the share that a count of a goal is of its rows is
linear in the sums over the cells that get an answer, and so are the second moments that standard errors are made of.
Where goals count amounts, cells hold sums of those, and of their products, too.

A family of rules takes part through ``CandidateRules``: it says in which cell each row is, and adds up over the cells
that a rule gives an answer to. For thresholds that is a running sum.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any, NamedTuple, Protocol, Self, TypeGuard

import numpy as np
import scipy.sparse as sp

from counterpoise._base.types import BoolArray, FloatArray, IntArray
from counterpoise.goals.binding import Views
from counterpoise.goals.disparity import GroupDisparities, disparities, rounding_of
from counterpoise.goals.terms import Dataset, Linear, RowCount

_TINY = 1e-12
# Rows without a failure bound the rate of failures by 2.3 in so many rows at a confidence of 0.9: the variance of half
# a row is as many times too small.
NO_FAILURES = 12.8
FEW_ROWS = 30  # or persons: fewer are no large sample
_MOST_CODES = 1 << 20  # of kinds of rows that are told apart before those in use are numbered anew


class CandidateRules(Protocol):
    """Rules of one family, and what each answers about cells of rows that all of them treat alike."""

    @property
    def n_rules(self) -> int:
        """Return the number of rules."""

    @property
    def n_answers(self) -> int:
        """Return the number of answers: the classes, and deferral where rules may defer."""

    def cells(self, name: str) -> IntArray:
        """Return the cell of each row of a dataset."""

    def n_cells(self, name: str) -> int:
        """Return how many cells a dataset has."""

    def answered(self, name: str, answer: int, values: FloatArray) -> FloatArray:
        """Return sums over the cells that each rule gives an answer to: (n_values, n_cells) to (n_values, n_rules)."""

    def chances(self, name: str, rule: int) -> FloatArray:
        """Return how likely one rule gives each answer to each cell, shape (n_answers, n_cells)."""

    def only(self, places: IntArray) -> Self:
        """Return some of the rules."""


class ExpectedAnswers:
    """One mixture of rules, of which each row gets every answer with some chance: a row is a cell."""

    n_rules = 1

    def __init__(self, by_name: Mapping[str, FloatArray]) -> None:
        self.by_name = by_name  # by dataset, (n_answers, n_rows)
        self.n_answers = max(len(chances) for chances in by_name.values())

    def cells(self, name: str) -> IntArray:
        """Return the numbers of the rows of a dataset."""
        return np.arange(self.n_cells(name))

    def n_cells(self, name: str) -> int:
        """Return how many rows a dataset has."""
        return len(self.by_name[name].T)

    def answered(self, name: str, answer: int, values: FloatArray) -> FloatArray:
        """Return sums over the rows, each with the chance that it gets an answer, shape (n_values, 1)."""
        return np.asarray(values @ self.by_name[name][answer])[:, None]

    def chances(self, name: str, rule: int) -> FloatArray:  # noqa: ARG002 - there is one
        """Return how likely each row gets each answer."""
        return self.by_name[name]

    def only(self, places: IntArray) -> Self:  # noqa: ARG002 - there is one
        """Return the mixture."""
        return self


class RatioSum(NamedTuple):
    """A constant plus weighted ratios of linear functions; 0 where one of them has no value, as nothing is compared."""

    ratios: tuple[tuple[float, Linear, Linear], ...]  # weight, top, bottom
    constant: float

    @property
    def row_counts(self) -> tuple[RowCount, ...]:
        """Return the counts of all tops and bottoms."""
        return tuple(count for _, top, bottom in self.ratios for side in (top, bottom) for count in side.row_counts)


class DisparitySum(NamedTuple):
    """The disparity of a group, averaged over strata, less its bound."""

    disparity: GroupDisparities
    bound: float

    @property
    def row_counts(self) -> tuple[RowCount, ...]:
        """Return the counts of what is accepted of the group and of all, in each stratum."""
        return tuple(count for rate in self.disparity.rates for count in rate.row_counts)


Function = Linear | RatioSum | DisparitySum


def unit_count(count: RowCount) -> RowCount:
    """Return what is counted, whatever its coefficient."""
    return count._replace(coefficient=1.0)


def is_linear(function: Function) -> TypeGuard[Linear]:
    """Return whether a function is linear in the answers."""
    return not isinstance(function, RatioSum | DisparitySum)


class Slope(NamedTuple):
    """What a function rises with the share of a count of rows."""

    counted: RowCount
    slope: FloatArray
    is_under: bool = False  # whether it is in a denominator alone: what moves there without the numerator changes less


Slopes = list[Slope]


def tangent(function: Function, share: Callable[[RowCount], Any]) -> tuple[FloatArray, Slopes]:
    """Return the values of a function at some rules, given their shares of counts, and its slopes there.

    A limit that is met because a ratio has no value is met without any room, and does not vary. Disparities have no
    slopes: they jump where all rows of a stratum are treated alike.
    """
    if isinstance(function, DisparitySum):
        sides = [np.asarray(tangent(rate, share)[0]) for rate in function.disparity.rates]
        own, accepted = sides[::2], sides[1::2]
        value = np.asarray(-function.bound)
        for cell, of_group, of_all in zip(function.disparity.cells, own, accepted, strict=True):
            value = value + cell.weight * (disparities(of_group, of_all, cell.share) - rounding_of(of_all))
        return value, []
    if not isinstance(function, RatioSum):
        slopes = [Slope(count, np.asarray(count.coefficient)) for count in function.row_counts]
        return np.asarray(function.constant + sum(one.slope * share(one.counted) for one in slopes)), slopes
    value, is_known, slopes = np.asarray(function.constant), np.asarray(True), []
    for weight, top, bottom in function.ratios:
        (over, over_slopes), (under, under_slopes) = tangent(top, share), tangent(bottom, share)
        has_value = under > _TINY
        inverse = 1.0 / np.where(has_value, under, np.inf)
        value, is_known = value + weight * over * inverse, is_known & has_value
        slopes += [slope._replace(slope=weight * inverse * slope.slope) for slope in over_slopes]
        falls = -weight * over * inverse**2
        slopes += [slope._replace(slope=falls * slope.slope, is_under=True) for slope in under_slopes]
    return np.where(is_known, value, 0.0), [slope._replace(slope=slope.slope * is_known) for slope in slopes]


def part_of_rows(function: Function, share: Callable[[RowCount], Any]) -> FloatArray:
    """Return of which part of its rows the ratios of a function are at least, at some rules; 1 for a linear one."""
    bottoms = [tangent(bottom, share)[0] for _, _, bottom in function.ratios] if isinstance(function, RatioSum) else []
    return np.asarray(np.minimum.reduce(np.broadcast_arrays(1.0, *bottoms)))


Measure = tuple[str | None, float]  # what rows count with: a column of amounts and its unit, or None: each as 1


def measure_of(rows: Dataset) -> Measure:
    """Return what rows count with."""
    return rows.value, rows.unit


class RowCells:
    """The rows of a dataset that goals count, by the cell that rules treat alike and by what counts them."""

    def __init__(
        self, name: str, cells: IntArray, n_cells: int, sets: Sequence[Dataset], views: Views, row_factor: float
    ) -> None:
        self.name, self.n_cells, self.row_factor = name, n_cells, row_factor
        self.sets = list(dict.fromkeys(rows.without_value for rows in sets))
        self.measures = list(dict.fromkeys(measure_of(rows) for rows in sets))
        table = views.tables[name]
        kinds, self.membership = _kinds_of([views.rows(rows)[0] for rows in self.sets], table.n_samples)
        self.n_kinds = len(self.membership)
        self.keys = cells * self.n_kinds + kinds
        self.weights, self.has_masses = table.weights(), table.has_masses
        squares = self.weights**2 if table.row_squares is None else table.row_squares
        self.squares = (squares if table.counts is None else self.weights) / row_factor  # of all rows that one is for
        has_amounts = any(value is not None for value, _ in self.measures)
        self.stand_for_many = table.counts is not None or table.row_squares is not None
        is_even = table.counts is not None or (not self.stand_for_many and bool(np.ptp(self.weights) == 0))
        self.are_equal = is_even and not has_amounts
        self.unit = 1.0 if table.counts is not None else float(self.weights[0])
        self.amounts = {
            measure: views.amounts(name, measure[0]) / measure[1] for measure in self.measures if measure[0] is not None
        }
        numbers = table.counts if table.row_numbers is None else table.row_numbers
        self.numbers = np.ones(self.weights.size) if numbers is None else numbers  # of rows that each stands for
        self.labels = table.y
        self._by_kind: dict[Measure, SumsByKind] = {}

    def is_in(self, rows: Dataset) -> FloatArray:
        """Return which kinds are among some rows."""
        return np.asarray(self.membership[:, self.sets.index(rows.without_value)])

    def rows_in(self, rows: Dataset) -> BoolArray:
        """Return which rows are among some rows."""
        return np.asarray(self.is_in(rows)[self.keys % self.n_kinds] > 0)

    def measured(self, numbers: FloatArray, *measures: Measure) -> FloatArray:
        """Return a number for each row, times its amounts."""
        for measure in measures:
            numbers = numbers * self.amounts[measure] if measure in self.amounts else numbers
        return numbers

    def sums(self, amounts: FloatArray) -> FloatArray:
        """Return the sums of amounts of the rows, shape (n_kinds, n_cells)."""
        counted = np.bincount(self.keys, amounts, self.n_cells * self.n_kinds)
        return np.ascontiguousarray(counted.astype(np.float64).reshape(self.n_cells, self.n_kinds).T)

    def sums_of_each(self, weights: FloatArray) -> "RowSums":
        """Return the sums of what rows count with, given their weights, for each measure."""
        return {(self.name, *measure): self.sums(self.measured(weights, measure)) for measure in self.measures}

    def effective_rows(self, rows: Dataset) -> float:
        """Return on how many rows of equal weight and amount a sum over some rows rests."""
        measure = measure_of(rows)
        n_rows = self.by_kind(measure).effective(self.is_in(rows))
        if not self.has_masses:
            return n_rows
        values = self.measured(self.weights, measure)[self.rows_in(rows)]
        return n_rows * max(float(values.sum()), 0.0) ** 2 / max(float(np.abs(values).sum()) ** 2, _TINY)

    def by_kind(self, measure: Measure) -> "SumsByKind":
        """Return the sums over the rows of each kind from which effective numbers of rows follow."""
        if measure not in self._by_kind:
            kinds, sizes = self.keys % self.n_kinds, np.abs(self.measured(self.weights, measure))
            squares = self.measured(self.squares, measure, measure)
            parts = sizes, squares, self.numbers * (sizes > 0)
            sums = [np.bincount(kinds, part, self.n_kinds).astype(np.float64) for part in parts]
            evenness = np.inf if self.are_equal else self._evenness(sizes, squares)
            self._by_kind[measure] = SumsByKind(sums[0], sums[1], sums[2], evenness, self.row_factor)
        return self._by_kind[measure]

    def _evenness(self, sizes: FloatArray, squares: FloatArray) -> float:
        """Return which part of the rows that count their sums rest on; classes may have amounts of another size."""
        numbers = self.numbers * (sizes > 0)
        classes = np.zeros(sizes.size, dtype=np.int64)
        if self.labels is not None:
            classes = np.unique(self.labels, return_inverse=True)[1]
        means = np.bincount(classes, sizes) / np.maximum(np.bincount(classes, numbers), _TINY)
        relative = squares * self.row_factor / np.maximum(means[classes], _TINY) ** 2
        return float(numbers.sum() / max(float(relative.sum()), _TINY))

    def even_squares(self, measure: Measure) -> FloatArray:
        """Return the sums of squares, shape (n_kinds, n_cells), if amounts did not depend on the cell of a row.

        A rule that is chosen is right by chance about the few rows that have most of them.
        """
        sums = self.by_kind(measure)
        effective = np.array([sums.effective(kind) for kind in np.eye(self.n_kinds)])
        # sums of few large amounts are skewed
        skew = (1.0 + (1.0 - sums.evenness) / np.sqrt(np.maximum(effective, 1.0))) ** 2
        scales: FloatArray = sums.sizes / np.maximum(effective, _TINY) * skew
        return self.sums(np.abs(self.measured(self.weights, measure))) * scales[:, None]


class SumsByKind(NamedTuple):
    """Sums over the rows of each kind: of what they count with, of its square, and how many of them count at all."""

    sizes: FloatArray
    squares: FloatArray
    numbers: FloatArray
    evenness: float  # part of the rows that count that their sums rest on; infinite where all rows count alike
    row_factor: float

    def effective(self, is_in: FloatArray) -> float:
        """Return on how many rows of equal weight and amount a sum over some kinds rests.

        They may by chance lack the large amounts that others of the dataset have, and new rows will have: there are no
        more effective rows among them, in proportion, than in the dataset.
        """
        n_rows = float(is_in @ self.sizes) ** 2 / max(float(is_in @ self.squares), _TINY)
        if np.isinf(self.evenness):
            return n_rows
        return min(n_rows, self.row_factor * self.evenness * float(is_in @ self.numbers))


def _kinds_of(sets: Sequence[IntArray], n_rows: int) -> tuple[IntArray, FloatArray]:
    """Return the kind of each row, by the sets that it is in, and which sets each kind is in, (n_kinds, n_sets)."""
    codes, n_codes = np.zeros(n_rows, dtype=np.int64), 1
    membership = np.zeros((1, 0))
    for rows in sets:
        codes[rows] += n_codes
        membership = np.vstack([np.column_stack([membership, np.full(n_codes, is_in)]) for is_in in (0.0, 1.0)])
        n_codes *= 2
        if n_codes > _MOST_CODES // 2:
            codes, membership = _numbered(codes, membership)
            n_codes = len(membership)
    return _numbered(codes, membership)


def _numbered(codes: IntArray, membership: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return codes numbered through without those that no row has."""
    is_used = np.bincount(codes, minlength=len(membership)) > 0
    return (np.cumsum(is_used) - 1)[codes], membership[is_used]


RowSums = dict[tuple[str, str | None, float], FloatArray]  # by dataset and measure, (n_kinds, n_cells)


class Moments(NamedTuple):
    """How the covariance of pairs of counts follows from sums of squares: what each pair takes of each kind.

    A row of a kind that gets an answer moves the share of a count by ``counted - share * whole``. So a covariance is
    ``both - share_j * left - share_i * right + share_i * share_j * neither``, where each is linear in the squares.
    """

    first: IntArray  # (n_pairs,): places of counts
    second: IntArray
    both: list[tuple[tuple[Measure, Measure], FloatArray]]  # of each pair its measures, and (n_answers, n_kinds)
    left: list[tuple[tuple[Measure, Measure], FloatArray]]
    right: list[tuple[tuple[Measure, Measure], FloatArray]]
    neither: list[tuple[tuple[Measure, Measure], FloatArray]]


class CellCounts:
    """The rows of all datasets that functions count, by cell and kind: what is the same for all rules."""

    def __init__(self, rules: CandidateRules, functions: Sequence[Function], views: Views, row_factor: float) -> None:
        self.views, self.n_answers = views, rules.n_answers
        self.counts = sorted({unit_count(count) for function in functions for count in function.row_counts}, key=repr)
        self.place = {count: place for place, count in enumerate(self.counts)}
        by_name: dict[str, list[Dataset]] = {}
        for count in self.counts:
            by_name.setdefault(count.rows.name, []).extend([count.rows, count.out_of])
        self.rows = {
            name: RowCells(name, rules.cells(name), rules.n_cells(name), sets, views, row_factor)
            for name, sets in by_name.items()
        }
        self.bind(functions)

    def bind(self, functions: Sequence[Function]) -> None:
        """Express functions in the counts."""
        self.functions = tuple(functions)
        self.linear = np.array([is_linear(function) for function in self.functions], dtype=bool)
        self.constants = np.zeros(len(self.functions))
        coefficients = np.zeros((len(self.functions), len(self.counts)))
        for number, function in enumerate(self.functions):
            if not is_linear(function):
                continue
            self.constants[number] = function.constant
            for count in function.row_counts:
                coefficients[number, self.place[unit_count(count)]] += count.coefficient
        self.coefficients = sp.csr_array(coefficients)

    def has_counts_of(self, functions: Sequence[Function]) -> bool:
        """Return whether all counts of some functions are known."""
        return all(unit_count(count) in self.place for function in functions for count in function.row_counts)

    def with_functions(self, functions: Sequence[Function]) -> "CellCounts":
        """Return the same counts for other functions of them, such as goals with other bounds."""
        other = copy(self)
        other.__dict__.pop("moments", None)
        other.bind(functions)
        return other

    @cached_property
    def observed(self) -> RowSums:
        """Return the sums of the rows as they are, by dataset and measure, shape (n_kinds, n_cells)."""
        sums: RowSums = {}
        for rows in self.rows.values():
            sums |= rows.sums_of_each(rows.weights)
        return sums

    def answers_of(self, count: RowCount) -> tuple[list[int], float]:
        """Return the answers that a count adds up, and 1; or those that it leaves out of the whole, and -1."""
        classes = self.views.classes
        deferred = [] if classes.deferred is None else [len(classes.labels)]
        if count.positive is None:
            return deferred, 1.0
        own = [self.views.place(count.called)]
        return (own, 1.0) if count.positive else (own + deferred, -1.0)

    def taken(self, count: RowCount) -> FloatArray:
        """Return which answers to which kinds of rows are counted, shape (n_answers, n_kinds)."""
        given, sign = self.answers_of(count)
        is_given = np.isin(np.arange(self.n_answers), given) == (sign > 0)
        return np.outer(is_given, self.rows[count.rows.name].is_in(count.rows))

    def total(self, rows: Dataset) -> float:
        """Return what rows weigh, or what their amounts add up to."""
        return float(self.rows[rows.name].is_in(rows) @ self.observed[rows.name, *measure_of(rows)].sum(axis=1))

    @cached_property
    def moments(self) -> dict[str, Moments]:
        """Return by dataset the pairs of counts that meet in a function and can have rows in common."""
        met = {
            (min(pair), max(pair))
            for function in self.functions
            if not isinstance(function, DisparitySum)
            for pair in combinations_with_replacement(
                dict.fromkeys(self.place[unit_count(count)] for count in function.row_counts), 2
            )
        }
        moments = {}
        for name, rows in self.rows.items():
            pairs = []
            for i, j in sorted(met):
                one, other = self.counts[i], self.counts[j]
                if (
                    one.rows.name == other.rows.name == name
                    and (rows.is_in(one.out_of) * rows.is_in(other.out_of)).any()
                ):
                    pairs.append((i, j))
            sides = {}
            for i in {place for pair in pairs for place in pair}:
                count = self.counts[i]
                total = max(self.total(count.out_of), _TINY)
                whole = np.tile(rows.is_in(count.out_of), (self.n_answers, 1))
                sides[i] = (
                    (measure_of(count.rows), self.taken(count) / total),
                    (measure_of(count.out_of), whole / total),
                )
            terms: list[list[Any]] = [[], [], [], []]
            for i, j in pairs:
                for term, (of_first, of_second) in zip(terms, ((0, 0), (0, 1), (1, 0), (1, 1)), strict=True):
                    (measure, one_side), (other_measure, other_side) = sides[i][of_first], sides[j][of_second]
                    term.append(((measure, other_measure), one_side * other_side))
            first, second = (np.array([pair[side] for pair in pairs], dtype=np.int64) for side in (0, 1))
            moments[name] = Moments(first, second, *terms)
        return moments

    @cached_property
    def floors(self) -> FloatArray:
        """Return for each count the least standard deviation of its share: half a row of those that it counts."""
        floors = []
        for count in self.counts:
            rows, total = self.rows[count.rows.name], max(self.total(count.out_of), _TINY)
            most, n_rows = self.total(count.rows) / total, rows.effective_rows(count.rows)
            floors.append(max(1.0 / (rows.effective_rows(count.out_of) + 1.0), most / (n_rows + 1.0)) * 0.5)
        return np.array(floors)

    @cached_property
    def squares(self) -> dict[str, dict[tuple[Measure, Measure], list[FloatArray]]]:
        """Return by dataset and two measures the sums of products, and of unequal rows those if they were even."""
        squares: dict[str, dict[tuple[Measure, Measure], list[FloatArray]]] = {}
        for name, rows in self.rows.items():
            squares[name] = {
                pair: [rows.sums(rows.measured(rows.squares, *pair))]
                for pair in combinations_with_replacement(rows.measures, 2)
            }
            for measure in rows.measures if not rows.are_equal else ():
                squares[name][measure, measure].append(rows.even_squares(measure))
        return squares


class Evaluator:
    """What rules come to in functions of their answers, on the rows and on resamples of them.

    ``with_rules`` returns the same for other rules without counting the rows again.
    """

    def __init__(
        self,
        rules: CandidateRules,
        functions: Sequence[Function],
        views: Views,
        error_factors: Mapping[str, float] | None = None,
        row_factor: float = 1.0,
    ) -> None:
        self.rules, self.counted = rules, CellCounts(rules, functions, views, row_factor)
        self.error_factors = {} if error_factors is None else error_factors  # of standard errors, by dataset
        self.row_factor = row_factor  # standard errors and resamples are those of so many times the rows
        self.cost: FloatArray | None = None  # of each rule, where more is known of it than its value on the rows
        self.shifts: FloatArray | None = None  # (n_functions, n_rules): by how much more the deciding model has

    @property
    def functions(self) -> tuple[Function, ...]:
        """Return the functions of answers."""
        return self.counted.functions

    @property
    def views(self) -> Views:
        """Return the rows as goals see them."""
        return self.counted.views

    @property
    def rows(self) -> dict[str, RowCells]:
        """Return the rows of each dataset."""
        return self.counted.rows

    def with_rules(self, rules: CandidateRules) -> "Evaluator":
        """Return the same rows and functions for other rules about the same cells; they have no costs or shifts yet."""
        other = copy(self)
        other.rules, other.cost, other.shifts = rules, None, None
        return other

    def with_functions(self, functions: Sequence[Function]) -> "Evaluator | None":
        """Return the same rows and rules for other functions; None where these count other rows."""
        if not self.counted.has_counts_of(functions):
            return None
        other = self.with_rules(self.rules)
        other.counted = self.counted.with_functions(functions)
        return other

    def only(self, places: IntArray) -> "Evaluator":
        """Return the same of some rules."""
        other = self.with_rules(self.rules.only(places))
        other.cost = None if self.cost is None else self.cost[places]
        other.shifts = None if self.shifts is None else self.shifts[:, places]
        return other

    def resamples(
        self, n_resamples: int, rng: np.random.Generator, persons: Mapping[str, IntArray]
    ) -> Iterator[RowSums]:
        """Yield the sums of resamples of the rows, as ``observed``.

        Those of lists, which are no samples, stay as they are. Where several rows are of one person, persons are drawn.
        """
        for _ in range(n_resamples):
            drawn: RowSums = {}
            for rows in self.rows.values():
                drawn |= self._redraw(rows, rng, persons.get(rows.name))
            yield drawn

    def _redraw(self, rows: RowCells, rng: np.random.Generator, persons: IntArray | None) -> RowSums:
        keys = [(rows.name, *measure) for measure in rows.measures]
        if not self.views.tables[rows.name].population:
            return {key: self.counted.observed[key] for key in keys}
        if rows.are_equal and persons is None:  # cells of equal rows are drawn as such
            counts = np.rint(self.counted.observed[keys[0]] / rows.unit)
            used, n_rows = counts > 0, round(rows.row_factor * counts.sum())
            drawn = np.zeros(counts.shape)
            drawn[used] = rows.unit * rng.multinomial(n_rows, counts[used] / counts.sum())
            return {keys[0]: drawn}
        if rows.stand_for_many:  # each for about so many rows of equal weight
            n_rows = np.divide(rows.weights**2, rows.squares, out=np.zeros(rows.weights.size), where=rows.squares > 0)
            times = np.divide(rng.poisson(n_rows), n_rows, out=np.zeros(n_rows.size), where=n_rows > 0)
            return rows.sums_of_each(rows.weights * times)
        units = np.arange(rows.weights.size) if persons is None else persons
        n_units = int(units.max()) + 1
        times = np.bincount(rng.integers(0, n_units, round(rows.row_factor * n_units)), minlength=n_units)
        return rows.sums_of_each(rows.weights * times[units])

    def shares(self, sums: RowSums | None = None) -> FloatArray:
        """Return for each count what it is out of its rows, for every rule, shape (n_counts, n_rules)."""
        sums = self.counted.observed if sums is None else sums
        shares = np.zeros((len(self.counted.counts), self.rules.n_rules))
        asked: dict[tuple[str, int], list[tuple[int, float, FloatArray]]] = {}  # by dataset and answer
        for place, count in enumerate(self.counted.counts):
            rows, name = self.rows[count.rows.name], count.rows.name
            total = float(rows.is_in(count.out_of) @ sums[name, *measure_of(count.out_of)].sum(axis=1))
            if total <= 0:
                continue
            by_cell = rows.is_in(count.rows) / total @ sums[name, *measure_of(count.rows)]
            given, sign = self.counted.answers_of(count)
            shares[place] = 0.0 if sign > 0 else by_cell.sum()
            for answer in given:
                asked.setdefault((name, answer), []).append((place, sign, by_cell))
        for (name, answer), parts in asked.items():
            places, signs, values = zip(*parts, strict=True)
            shares[list(places)] += np.array(signs)[:, None] * self.rules.answered(name, answer, np.array(values))
        return shares

    def values(self, shares: FloatArray) -> FloatArray:
        """Return the functions of every rule, shape (n_functions, n_rules)."""
        values: FloatArray = self.counted.constants[:, None] + self.counted.coefficients @ shares
        for number in np.flatnonzero(~self.counted.linear).tolist():
            values[number] = self.tangent(number, shares)[0]
        return values

    def tangent(self, place: int, shares: FloatArray) -> tuple[FloatArray, Slopes]:
        """Return the values of one function at every rule, and its slopes."""
        return tangent(self.functions[place], lambda count: shares[self.counted.place[unit_count(count)]])

    def part_of_rows(self, place: int, shares: FloatArray) -> FloatArray:
        """Return of which part of its rows one function is at least, for every rule."""
        part = part_of_rows(self.functions[place], lambda count: shares[self.counted.place[unit_count(count)]])
        return np.broadcast_to(part, shares.shape[1:])

    def least_rows(self, place: int, shares: FloatArray, persons: Mapping[str, IntArray]) -> FloatArray:
        """Return on how many rows of equal weight and amount, or persons, one function rests at least, for every rule.

        A ratio that is compared is out of the rows of its denominator. Where amounts are concentrated, standard errors
        of few rows say nothing: these are none.
        """
        least = np.inf
        for count in self.functions[place].row_counts:
            rows = self.rows[count.out_of.name]
            if not self.views.tables[rows.name].population:
                continue
            n_rows = rows.effective_rows(count.out_of)
            if count.rows.value != count.out_of.value:  # few rows may have most of the amounts
                n_rows = min(n_rows, rows.effective_rows(count.rows))
            if rows.name in persons:
                inside = rows.rows_in(count.out_of)
                n_rows = min(n_rows, float(np.unique(persons[rows.name][inside]).size))
            least = min(least, n_rows if rows.are_equal or n_rows >= FEW_ROWS else 0.0)
        return np.asarray(least * self.part_of_rows(place, shares))

    def gradient(self, place: int, shares: FloatArray, *, of_floors: bool = False) -> FloatArray:
        """Return what a function rises with each share, shape (n_counts, n_rules); for floors without denominators."""
        gradient = np.zeros(shares.shape)
        for count, slope, is_under in self.tangent(place, shares)[1]:
            gradient[self.counted.place[unit_count(count)]] += slope * (not (of_floors and is_under))
        return gradient

    def variances(self, places: IntArray, shares: FloatArray) -> FloatArray:
        """Return the variance of some functions for every rule, shape (n_functions, n_rules); none is zero.

        Shares are moved a little from 0 and 1, by half of a row of those that they are out of.
        """
        n_rules, linear = self.rules.n_rules, self.counted.linear[places]
        ratios = [(number, int(places[number])) for number in np.flatnonzero(~linear).tolist()]
        gradients = {number: self.gradient(place, shares) for number, place in ratios}
        variances = np.zeros((places.size, n_rules))
        for name, moments in self.counted.moments.items():
            if not self.views.tables[name].population:  # a list of rows does not vary
                continue
            here = np.array([count.rows.name == name for count in self.counted.counts])
            twice = np.where(moments.first == moments.second, 1.0, 2.0)
            coefficients = self.counted.coefficients[places].toarray()
            of_pairs = sp.csr_array(twice * coefficients[:, moments.first] * coefficients[:, moments.second])
            total = np.zeros((places.size, n_rules))
            for covariance in self._covariances(name, moments, shares):
                own = of_pairs @ covariance
                for number, gradient in gradients.items():
                    products = gradient[moments.first] * gradient[moments.second]
                    own[number] = (twice[:, None] * products * covariance).sum(axis=0)
                total = np.maximum(total, own)
            floor = self.least_variances(places, shares, name)
            least = np.maximum(np.maximum(total + 2.0 * floor, NO_FAILURES * floor), _TINY**2)
            has_part = (coefficients[:, here] != 0).any(axis=1)
            for number, gradient in gradients.items():
                has_part[number] = bool((gradient[here] != 0).any())
            variances += np.where(has_part[:, None], least, 0.0) * self.error_factors.get(name, 1.0) ** 2
        return np.maximum(variances, _TINY**2)

    def least_variances(self, places: IntArray, shares: FloatArray, name: str) -> FloatArray:
        """Return the variance of half a row of a dataset, of those that are counted, shape (n_functions, n_rules)."""
        here = np.array([count.rows.name == name for count in self.counted.counts])
        squares = np.where(here, self.counted.floors, 0.0) ** 2
        coefficients = self.counted.coefficients[places]
        of_linear = np.asarray(coefficients.multiply(coefficients) @ squares)
        least = np.repeat(of_linear[:, None], self.rules.n_rules, axis=1)
        for number in np.flatnonzero(~self.counted.linear[places]).tolist():
            least[number] = squares @ self.gradient(int(places[number]), shares, of_floors=True) ** 2
        return least

    def _covariances(self, name: str, moments: Moments, shares: FloatArray) -> list[FloatArray]:
        """Return the covariances of pairs of counts at every rule: with the squares as they are, and if even."""
        n_squares = max((len(own) for own in self.counted.squares[name].values()), default=1)
        covariances = []
        for number in range(n_squares):
            by_answer = {
                pair: np.concatenate(
                    [
                        self.rules.answered(name, answer, own[min(number, len(own) - 1)])
                        for answer in range(self.rules.n_answers)
                    ]
                )
                for pair, own in self.counted.squares[name].items()
            }  # (n_answers * n_kinds, n_rules)

            def sums(terms: list[tuple[tuple[Measure, Measure], FloatArray]], by_answer: Any = by_answer) -> FloatArray:
                values = np.zeros((len(terms), self.rules.n_rules))
                for pair, squares in by_answer.items():
                    own = [at for at, (measures, _) in enumerate(terms) if set(measures) == set(pair)]
                    if own:
                        values[own] = np.array([terms[at][1].ravel() for at in own]) @ squares
                return values

            x, y = shares[moments.first], shares[moments.second]
            covariance = sums(moments.both) - y * sums(moments.left) - x * sums(moments.right)
            covariances.append(covariance + x * y * sums(moments.neither))
        return covariances

    def covariance(
        self,
        places: IntArray,
        shares: FloatArray,
        rule: int,
        persons: Mapping[str, IntArray],
        names: Sequence[str] | None = None,
    ) -> FloatArray:
        """Return the covariance of some functions at one rule over datasets, with the persons of rows as the units.

        Without persons that is for rules that do not draw: a row then gets one answer.
        """
        at_rule = shares[:, [rule]]
        gradients = np.array([self.gradient(place, at_rule)[:, 0] for place in places.tolist()])
        total = np.zeros((places.size, places.size))
        for name, rows in self.rows.items():
            if not self.views.tables[name].population or not places.size or (names is not None and name not in names):
                continue
            influences, chances = self._influences(name, rows, gradients, at_rule[:, 0]), self.rules.chances(name, rule)
            if name in persons:
                cells, kinds = np.divmod(rows.keys, rows.n_kinds)
                by_row = np.zeros((places.size, rows.keys.size))
                for measure, own in influences.items():
                    weights = rows.measured(rows.weights, measure)
                    for chance, of_answer in zip(chances, own.transpose(1, 0, 2), strict=True):
                        by_row += weights * chance[cells] * of_answer[:, kinds]
                by_person = np.array([np.bincount(persons[name], influence) for influence in by_row])
                total += by_person @ by_person.T / self.row_factor
                continue
            for (measure, other), (squares, *_) in self.counted.squares[name].items():
                by_answer = np.einsum("ac,kc->ak", chances, squares)
                product = np.einsum("fak,ak,gak->fg", influences[measure], by_answer, influences[other])
                total += product if measure == other else product + product.T
        return total

    def _influences(
        self, name: str, rows: RowCells, gradients: FloatArray, shares: FloatArray
    ) -> dict[Measure, FloatArray]:
        """Return what a row moves functions by, for each measure, shape (n_functions, n_answers, n_kinds)."""
        shape = len(gradients), self.rules.n_answers, rows.n_kinds
        influences = {measure: np.zeros(shape) for measure in rows.measures}
        for place, count in enumerate(self.counted.counts):
            if count.rows.name != name or not gradients[:, place].any():
                continue
            slopes = gradients[:, place] / max(self.counted.total(count.out_of), _TINY)
            influences[measure_of(count.rows)] += slopes[:, None, None] * self.counted.taken(count)
            whole = shares[place] * rows.is_in(count.out_of)
            influences[measure_of(count.out_of)] -= slopes[:, None, None] * whole
        return influences
