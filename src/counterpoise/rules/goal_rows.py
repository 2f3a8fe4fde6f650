"""Predictions of models on every dataset, and goals as rows of the mixture's linear program.

``Answers`` keep what each model predicts for the rows of each dataset, so other goals and alphas need no model again:
as bits for two classes, as codes for more or where rows may be deferred.

Every rate of a randomized classifier is linear in its mixture. So a goal on any dataset is a row of
``rows @ mixture <= bounds`` with an entry for each model: the signed weights of the goal times the predictions of the
model. A goal on a difference, or on every group or class, has several rows with one bound and one price.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, NamedTuple, Self, TypeAlias, cast

import numpy as np

from counterpoise._base.types import AnyArray, BoolArray, FloatArray, IntArray
from counterpoise.goals import Dataset, Goal, GoalCheck, InfeasibleGoals, Ratio, Table, as_objective, error_rate
from counterpoise.goals.advice import BoundChanges, Constraints, explain
from counterpoise.goals.binding import (
    BoundRates,
    PreparedPredictions,
    Tally,
    Views,
    bind_rates,
    name_in_errors,
    tally_rates,
)
from counterpoise.goals.bound_goals import GoalLimits, risk_of_each
from counterpoise.goals.classes import Classes, no_such_class
from counterpoise.goals.disparity import GroupDisparities
from counterpoise.goals.expressions import ComparedRatios
from counterpoise.goals.infeasible import bound_step
from counterpoise.goals.population import AnyShare, can_certify, certified_bound, measure_goal, needed_bound
from counterpoise.goals.terms import Pairs
from counterpoise.rules.disparities import DisparitySpread
from counterpoise.solvers.intervals import UNIT_INTERVAL, Box, Interval
from counterpoise.solvers.linear_program import FEASIBLE, InfeasibleRows, constraint_scale, solve_linear_program
from counterpoise.solvers.rows import BitRows, pack

TRAIN = "train"  # the name of the selection rows as a dataset
_BINARY = 2


class Positive(NamedTuple):
    """The classes, and which of them is the positive one; all others count as negative."""

    classes: AnyArray  # sorted
    place: int | None  # None where there are more than two, and none is named
    deferred: Any = None  # the label of deferral, where rows may be deferred

    @property
    def is_binary(self) -> bool:
        """Return whether there are two classes."""
        return len(self.classes) <= _BINARY

    @property
    def labels(self) -> Classes:
        """Return the classes as rates see them."""
        labels = self.classes.tolist()
        if not self.is_binary:
            positive = None if self.place is None else labels[self.place]
            return Classes(None, positive, tuple(labels), self.deferred)
        place = cast("int", self.place)  # of two classes there always is one
        return Classes(labels[1 - place], labels[place], (), self.deferred)

    def bits(self, codes: AnyArray) -> BitRows:
        """Return where predicted codes, a column for each model, are the positive class, as bits."""
        return bits_of(codes == self.place)

    def bits_of_losses(self, losses: AnyArray, codes: AnyArray) -> BitRows:
        """Return the same for two classes from losses: where a model is wrong it predicts the other class."""
        return bits_of(losses.astype(np.bool_, copy=False) ^ (codes == self.place)[:, None])

    def encode(self, codes: AnyArray) -> "BitRows | AnyArray":
        """Return predicted codes, a column for each model, as they are stored: as bits for two classes."""
        return self.bits(codes) if self.is_binary else codes


def bits_of(is_positive: BoolArray) -> BitRows:
    """Return truth values, a column for each model, as bits."""
    packed = pack(is_positive)
    assert packed is not None  # noqa: S101 - of booleans
    return BitRows(packed, is_positive.shape[1])


def find_positive(classes: AnyArray, pos_label: Any) -> Positive:
    """Return the positive class: the one named, or the second of two; none where there are more and none is named."""
    if pos_label is None:
        return Positive(classes, 1 if len(classes) == _BINARY else None)
    if pos_label not in classes.tolist():
        raise no_such_class(classes.tolist(), pos_label)
    return Positive(classes, classes.tolist().index(pos_label))


@dataclass(frozen=True)
class Answers:
    """The predictions of each model on the rows of each dataset, with the tables that goals refer to."""

    tables: dict[str, Table]
    positives: dict[str, BitRows]  # of two classes: which rows are predicted positive
    positive: Positive
    codes: dict[str, AnyArray] = field(default_factory=dict)  # of more classes: the predicted code

    def with_dataset(self, name: str, table: Table, answers: BitRows | AnyArray | None) -> "Answers":
        """Return the same answers with another dataset, or another table for one."""
        new = replace(self, tables={**self.tables, name: table})
        if answers is None:
            return new
        if isinstance(answers, BitRows):
            return replace(new, positives={**self.positives, name: answers})
        others = {other: bits for other, bits in self.positives.items() if other != name}
        return replace(new, positives=others, codes={**self.codes, name: answers})

    def only(self, places: Mapping[str, IntArray]) -> "Answers":
        """Return the answers about some of the rows of each dataset."""
        return replace(
            self,
            tables={name: self.tables[name].only(rows) for name, rows in places.items()},
            positives={name: bits.only(places[name]) for name, bits in self.positives.items()},
            codes={name: codes[places[name]] for name, codes in self.codes.items()},
        )

    def with_tables(self, tables: Mapping[str, Table], sizes: Mapping[str, int]) -> "Answers":
        """Return the same answers with other tables for the same rows, of which there are so many by dataset."""
        answers = self
        for name, table in tables.items():
            if sizes.get(name) != table.n_samples:
                raise ValueError(f"tables[{name!r}] must hold the rows of a dataset that the models predicted.")
            answers = answers.with_dataset(name, table, None)
        return answers

    @property
    def sizes(self) -> dict[str, int]:
        """Return the number of rows of each dataset that the models predicted."""
        return {name: bits.n_rows for name, bits in self.positives.items()} | {
            name: len(codes) for name, codes in self.codes.items()
        }

    @property
    def pool_sizes(self) -> set[int]:
        """Return the numbers of models of all datasets; one number if they agree."""
        return {bits.n_models for bits in self.positives.values()} | {codes.shape[1] for codes in self.codes.values()}

    def views(self) -> Views:
        """Return the tables as rates see them."""
        return Views(self.tables, self.positive.labels)

    def counter(self, views: Views) -> Tally:
        """Return a function that sums the weight of the rows that each model predicts as a class, with a cache."""

        @cache
        def bits(name: str, place: int) -> BitRows:
            return bits_of(self._codes_of(name) == place)

        flips = cache(self.flips)

        @cache
        def count(rows: Dataset, place: int) -> FloatArray:
            places, parts = views.rows(rows)[0], views.exact(rows)
            is_pair = isinstance(rows.name, Pairs)
            if not is_pair and rows.name not in self.positives:
                return bits(rows.name, place).only(places).totals(parts)
            positives = flips(rows.name) if isinstance(rows.name, Pairs) else self.positives[rows.name]
            weights = positives.only(places).totals(parts)
            return weights if place == 1 else views.total(rows) - weights

        return count

    def flips(self, pairs: Pairs) -> BitRows:
        """Return which models decide a row and its twin unlike."""
        one, other = (self.positives.get(name) for name in (pairs.rows, pairs.twins))
        if one is None or other is None:
            raise ValueError(
                f"The decisions about {pairs.rows!r} and {pairs.twins!r} are not kept row by row, so flips cannot be "
                "counted. Fit on one machine, with both datasets, and with two classes."
            )
        return BitRows(one.packed ^ other.packed, one.n_models)

    def _codes_of(self, name: str) -> AnyArray:
        if name not in self.codes:
            raise ValueError(
                "The classifier was fitted without goals, so it did not keep its models' predictions on dataset "
                f"{name!r}. Pass X and y, or datasets, with the goals."
            )
        return self.codes[name]

    def shares(self, name: str, mixture: FloatArray) -> FloatArray:
        """Return the share of the mixture that predicts each row of a dataset as positive, or as each class.

        Rounding may end at 1 + 1e-16.
        """
        if name not in self.positives and not isinstance(name, Pairs):
            return self._shares_of_classes(name, mixture)
        bits = self.flips(name) if isinstance(name, Pairs) else self.positives[name]
        return bits.shares(mixture)

    def _shares_of_classes(self, name: str, mixture: FloatArray) -> FloatArray:
        codes, n_answers = self._codes_of(name), self.views().classes.n_columns
        shares = np.zeros((len(codes), n_answers))
        rows = np.arange(len(codes))
        for model in np.flatnonzero(mixture):
            shares[rows, codes[:, model]] += mixture[model]
        return shares

    def checks(self, goals: tuple[Goal, ...], mixture: FloatArray) -> list[GoalCheck]:
        """Return the check of each goal for the mixture, in expectation over its draws."""
        if not goals:
            return []
        views = self.views()
        names = {name for goal in goals for name in goal.counted_datasets}
        shares = {name: np.clip(self.shares(name, mixture), 0.0, 1.0) for name in names if views.table(name)}
        prepared = PreparedPredictions(views, shares)
        return [goal.evaluate_where_possible(prepared) for goal in goals]

    def check_loaded(self) -> None:
        """Check the values that were read from a file."""
        for name, n_rows in self.sizes.items():
            if n_rows != self.tables[name].n_samples:
                raise ValueError(f"the answers on dataset {name!r} are on {n_rows} rows of another number")
        for codes in self.codes.values():
            if codes.ndim != 2 or codes.dtype.kind not in "iu":  # noqa: PLR2004 - rows and models
                raise ValueError("the codes of classes must be whole numbers, a column for each model")
            if codes.max(initial=0) >= self.positive.labels.n_columns or codes.min(initial=0) < 0:
                raise ValueError("a code is of none of the classes")

    def __getstate__(self) -> dict[str, Any]:
        """Leave out features: they were needed for the columns of data frames only."""
        bare = {name: table.with_parts(X=np.empty((table.n_samples, 0))) for name, table in self.tables.items()}
        return {**vars(self), "tables": bare}

    def stored_state(self) -> dict[str, Any]:
        """Return what ``save`` stores: of a data frame also the columns that goals may use as groups."""
        return {**vars(self), "tables": {name: table.without_features() for name, table in self.tables.items()}}


_LEAST_REACH = 1e-5  # part of its row's largest entry to which a ratio's scale falls: beyond, rounding would bind


class LinearRate(NamedTuple):
    """A rate of a randomized classifier: ``constant + row @ mixture``."""

    constant: float
    row: FloatArray


def linear_rate(answers: Answers, objective: Any) -> LinearRate:
    """Return a rate, or its text, as a linear function of the mixture."""
    views, rate = answers.views(), as_objective(objective)
    with name_in_errors(rate):
        linear = rate.resolve(views)
    return LinearRate(linear.constant, tally_rates([linear], views, answers.counter(views), [rate])[0])


class RatioSpread(NamedTuple):
    """A goal on how far ratios are apart: for some t they all lie in an interval that begins, or ends, with t.

    Of a difference ``t <= N / D <= t + bound``, of a quotient ``bound * t <= N / D <= t``.
    """

    place: int  # of the goal
    rows: IntArray  # of its limits: from below for each ratio, then from above
    tops: FloatArray  # (n_ratios, n_models)
    bottoms: FloatArray
    constants: FloatArray  # (n_ratios, 2): of tops and bottoms
    sizes: FloatArray  # (n_ratios, 2)
    bound: float
    is_quotient: bool

    def ends(self, interval: Interval) -> tuple[float, float]:
        """Return between which numbers the ratios lie for some t of an interval."""
        low, high = interval
        return (self.bound * low, high) if self.is_quotient else (low, high + self.bound)

    @property
    def n_intervals(self) -> int:
        """Return how many numbers are searched."""
        return 1

    @property
    def slopes(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return how rows and bounds change with the goal's bound, up to their sign, and their sizes."""
        return np.tile(-self.bottoms, (2, 1)), np.tile(self.constants[:, 1], 2), np.tile(self.sizes.sum(axis=1), 2)

    def limits(self, box: Box) -> tuple[FloatArray, FloatArray]:
        """Return the limits as rows and bounds."""
        low, high = self.ends(*box)
        top, bottom = self.constants.T
        rows = np.vstack([low * self.bottoms - self.tops, self.tops - high * self.bottoms])
        return rows, np.concatenate([top - low * bottom, high * bottom - top])

    def spread(self, mixture: FloatArray) -> tuple[float, float]:
        """Return the least and the largest ratio of a mixture, each as if it were better by rounding."""
        top, bottom = self.tops @ mixture + self.constants[:, 0], self.bottoms @ mixture + self.constants[:, 1]
        known = bottom > FEASIBLE * self.sizes[:, 1]
        if not known.any():
            return 0.0, 0.0
        rounding = FEASIBLE * self.sizes[known, 0]
        low, high = (top[known] + rounding) / bottom[known], (top[known] - rounding) / bottom[known]
        return float(low.min()), float(high.max())

    def excess(self, mixture: FloatArray) -> float:
        """Return by how much the ratios of a mixture are further apart than the goal allows; 0 where they are not."""
        low, high = self.spread(mixture)
        beyond = self.bound * high - low if self.is_quotient else high - low - self.bound
        return beyond if beyond > FEASIBLE else 0.0

    def nearest(self, mixture: FloatArray, box: Box) -> tuple[float]:
        """Return the t of an interval whose limits a mixture misses least."""
        low, high = self.spread(mixture)
        at = (high + low / max(self.bound, FEASIBLE)) / 2 if self.is_quotient else (low + high - self.bound) / 2
        return (min(max(at, box[0].low), box[0].high),)

    def of_one_rule(self, box: Box) -> Box:
        """Return the part of a box where the ratios of single rules may be: all of it."""
        return box

    def nearer(self, on_rule: Self, box: Box) -> tuple[Self, Box]:
        """Return the limits among whose rules one that meets the goal may be, given a rule that misses it."""
        return self, points(on_rule.nearest(np.ones(1), box))

    def on(self, matrix: Callable[[FloatArray], FloatArray]) -> Self:
        """Return the same for other models, or rules, given what tops and bottoms are on these."""
        return self._replace(tops=matrix(self.tops), bottoms=matrix(self.bottoms))


Spread: TypeAlias = RatioSpread | DisparitySpread


def whole_box(spreads: Sequence[Spread]) -> Box:
    """Return the intervals that are searched."""
    return (UNIT_INTERVAL,) * sum(spread.n_intervals for spread in spreads)


def points(numbers: Iterable[float]) -> Box:
    """Return intervals of one number each."""
    return tuple(Interval(one, one) for one in numbers)


def with_boxes(spreads: Iterable[Spread], box: Box) -> Iterator[tuple[Any, Box]]:
    """Yield each goal with its own intervals of a box."""
    first = 0
    for spread in spreads:
        yield spread, box[first : first + spread.n_intervals]
        first += spread.n_intervals


class GoalConstraints(NamedTuple):
    """Goals as ``rows @ mixture <= bounds``, and how rows and bounds change with each goal's own bound.

    They are affine in the bound that the rows must meet, which is the goal's own unless it carries a confidence.
    """

    goals: tuple[Goal, ...]
    rows: FloatArray  # (n_rows, n_models)
    bounds: FloatArray  # (n_rows,)
    row_slopes: FloatArray  # zero but for ratios, whose bound multiplies the denominator
    bound_slopes: FloatArray
    shares: tuple[AnyShare | None, ...]  # that decide about a goal with a confidence; None: its margin is fixed
    sizes: FloatArray | None = None  # of the terms that the entries of each row are sums and differences of
    owners: IntArray | None = None  # the place of the goal that each row belongs to; None: each has one
    spreads: tuple["Spread", ...] = ()  # goals whose rows are those of some intervals

    def within(self, box: Box) -> Self:
        """Return the same with the limits of intervals, those of each goal that compares ratios."""
        rows, bounds = self.rows.copy(), self.bounds.copy()
        for spread, own in with_boxes(self.spreads, box):
            rows[spread.rows], bounds[spread.rows] = spread.limits(own)
        return self._replace(rows=rows, bounds=bounds)

    @property
    def places(self) -> IntArray:
        """Return the place of the goal that each row belongs to."""
        return np.arange(len(self.goals)) if self.owners is None else self.owners

    def rows_of(self, place: int) -> IntArray:
        """Return the rows of a goal."""
        return np.flatnonzero(self.places == place)

    @property
    def goal_sizes(self) -> FloatArray:
        """Return for each row how large what its goal limits can be: 1 for shares, for a cost its largest amount."""
        return np.array([self.goals[place].scale for place in self.places.tolist()])

    def prices(self, multipliers: FloatArray) -> FloatArray:
        """Return the price of each goal: the sum of the multipliers of its rows."""
        return np.bincount(self.places, multipliers, len(self.goals)).astype(np.float64)

    @property
    def scale(self) -> FloatArray:
        """Return what rows and bounds are divided by before they are compared.

        A ratio is multiplied through by its denominator, and where other goals keep that small, so is what counts.
        Ratios that are compared are checked as such, whatever their rows are compared with.
        """
        scale = constraint_scale(np.abs(self.rows).max(axis=1), self.bounds, self.sizes)
        compared = [row for spread in self.spreads for row in spread.rows.tolist()]
        for row in np.setdiff1d(np.flatnonzero(self.row_slopes.any(axis=1)), compared).tolist():
            scale[row] = min(scale[row], max(self._reach(row), _LEAST_REACH * scale[row]))
        return scale

    def as_limits(self) -> dict[str, Any]:
        """Return the goals as arguments of a solver."""
        return {"rows": self.rows, "bounds": self.bounds, "row_scale": self.scale}

    def _reach(self, row: int) -> float:
        """Return how large a ratio's denominator can be where the other rows hold."""
        divisor, n_models = self.divisor(row), self.rows.shape[1]
        most, others = float(divisor.max()), np.delete(np.arange(len(self.bounds)), row)
        if not others.size or not most > 0:
            return most
        scale = constraint_scale(np.abs(self.rows[others]).max(axis=1), self.bounds[others])
        solution = solve_linear_program(
            -divisor / most,
            np.vstack([self.rows[others] / scale[:, None], np.ones(n_models)]),
            (np.append(np.full(others.size, -np.inf), 1.0), np.append(self.bounds[others] / scale + FEASIBLE, 1.0)),
            lower=np.zeros(n_models),
            upper=np.full(n_models, np.inf),
        )
        return most if solution is None else float(divisor @ solution.point)  # None: the others cannot hold

    def divisor(self, row: int) -> FloatArray:
        """Return the denominator of a row's ratio for each model; 1 for a rate."""
        sign = -1.0 if self.goals[self.places[row]].sense == "<=" else 1.0
        return np.asarray(sign * (self.row_slopes[row] - self.bound_slopes[row]))

    def only(self, models: AnyArray) -> Self:
        """Return the same goals on some of the models."""
        spreads = tuple(spread.on(lambda matrix: matrix[:, models]) for spread in self.spreads)
        return self._replace(rows=self.rows[:, models], row_slopes=self.row_slopes[:, models], spreads=spreads)

    def some(self, places: Sequence[int]) -> Self | None:
        """Return some of the goals, by their places in rising order; None where that is none."""
        if not places:
            return None
        rows = np.flatnonzero(np.isin(self.places, places))
        spreads = tuple(
            spread._replace(place=places.index(spread.place), rows=np.searchsorted(rows, spread.rows))
            for spread in self.spreads
            if spread.place in places
        )
        parts = {name: getattr(self, name)[rows] for name in ("rows", "bounds", "row_slopes", "bound_slopes")}
        return self._replace(
            goals=tuple(self.goals[place] for place in places),
            shares=tuple(self.shares[row] for row in rows),
            sizes=None if self.sizes is None else self.sizes[rows],
            owners=np.searchsorted(places, self.places[rows]),
            spreads=spreads,
            **parts,
        )

    def violations(self) -> FloatArray:
        """Return by how much each model alone violates each row, 0 where it is rounding."""
        excess = self.rows - self.bounds[:, None]
        return np.where(excess > FEASIBLE * self.scale[:, None], excess, 0.0)

    def beside(self, other: Self) -> Self:
        """Return the same goals on these models and then on others."""
        rows, slopes = (np.hstack(pair) for pair in ((self.rows, other.rows), (self.row_slopes, other.row_slopes)))
        return self._replace(rows=rows, row_slopes=slopes)

    def join(self, other: Self) -> Self:
        """Return these goals and then others."""
        both = (self, other)
        moved = tuple(
            spread._replace(place=spread.place + len(self.goals), rows=spread.rows + len(self.bounds))
            for spread in other.spreads
        )
        return self._replace(
            spreads=(*self.spreads, *moved),
            goals=(*self.goals, *other.goals),
            rows=np.concatenate([one.rows for one in both]),
            bounds=np.concatenate([one.bounds for one in both]),
            row_slopes=np.concatenate([one.row_slopes for one in both]),
            bound_slopes=np.concatenate([one.bound_slopes for one in both]),
            shares=(*self.shares, *other.shares),
            sizes=np.concatenate([np.abs(one.rows).max(axis=1) if one.sizes is None else one.sizes for one in both]),
            owners=np.concatenate([self.places, other.places + len(self.goals)]),
        )

    def with_bound(self, place: int, bound: float) -> Self:
        """Return the same rows with another number on the right side of one goal."""
        goals = (*self.goals[:place], self.goals[place].with_bound(bound), *self.goals[place + 1 :])
        own = self.rows_of(place)
        rows, bounds = self.rows.copy() if self.row_slopes[own].any() else self.rows, self.bounds.copy()
        for row in own:
            step = self.required_bound(row, bound) - self.required_bound(row, self.goals[place].bound)
            if rows is not self.rows:
                rows[row] += step * self.row_slopes[row]
            bounds[row] += step * self.bound_slopes[row]
        return self._replace(goals=goals, rows=rows, bounds=bounds)

    def required_bound(self, row: int, bound: float) -> float:
        """Return the bound that a row must meet if its goal had another bound, without a fixed margin."""
        share, (goal, risk) = self.shares[row], self._goal(row)
        return bound if share is None else needed_bound(goal.with_bound(bound), share, risk)

    def own_bound(self, row: int, required: float) -> float:
        """Return the tightest bound of a row's goal for which ``required`` is enough."""
        share, (goal, risk) = self.shares[row], self._goal(row)
        return required if share is None else certified_bound(goal, share, required, risk)

    def can_show(self, place: int, bound: float) -> bool:
        """Return whether there are enough rows to certify the goal with another bound, if all of them met it."""
        for row in self.rows_of(place):
            share, (goal, risk) = self.shares[row], self._goal(row)
            if share is not None and not can_certify(goal.with_bound(bound), share, risk):
                return False
        return True

    def _goal(self, row: int) -> tuple[Goal, float]:
        """Return the goal that a row belongs to and its risk."""
        place = int(self.places[row])
        return self.goals[place], risk_of_each(self.goals)[place]

    def constraints(self, bounds: BoundChanges) -> Constraints:
        """Return the goals as constraints on the mixture, with other numbers on the right sides of some."""
        other = self
        for place, bound in bounds.items():
            other = other.with_bound(place, bound)
        return Constraints(other.rows, other.bounds, other.scale, "simplex", other.places)

    def nearest(self) -> Self:
        """Return the same goals with bounds that a mixture of least total violation keeps, in parts of their scales."""
        scale, (n_rows, n_models) = self.scale, self.rows.shape
        matrix, limits = self.rows / scale[:, None], self.bounds / scale
        total = np.append(np.ones(n_models), np.zeros(n_rows))
        solution = solve_linear_program(
            1.0 - total,
            np.vstack([np.hstack([matrix, -np.eye(n_rows)]), total]),
            (np.append(np.full(n_rows, -np.inf), 1.0), np.append(limits, 1.0)),
            lower=np.zeros(n_models + n_rows),
            upper=np.full(n_models + n_rows, np.inf),
        )
        assert solution is not None  # noqa: S101 - any mixture will do
        return self._replace(bounds=np.maximum(self.bounds, self.rows @ solution.point[:n_models]))

    def infeasible(self, error: InfeasibleRows) -> InfeasibleGoals:
        """Return which goals conflict on every mixture, given the proof that some do."""
        explanation = explain(self)
        if explanation is None:  # by rounding of one solver against the other: the multipliers show as much
            return InfeasibleGoals([self.goals[place] for place in self.conflicting(error)], error.violation)
        return explanation

    def conflicting(self, error: InfeasibleRows) -> list[int]:
        """Return the places of the goals that take part in the proof that no mixture meets all."""
        return list(np.unique(self.places[error.rows]).tolist())


def mean_limit(means: FloatArray, most: float) -> GoalConstraints:
    """Return a limit on the mean loss, given that of each model, as a goal beside others."""
    goal = error_rate(Dataset(TRAIN)) <= most
    row = means[None]
    return GoalConstraints((goal,), row, np.array([goal.bound]), np.zeros_like(row), np.ones(1), (None,))


class TalliedGoals(NamedTuple):
    """Goals as linear rates on the rows of some tables, ready to be summed for any models."""

    limits: GoalLimits
    views: Views
    targets: tuple[Goal, ...]  # the linear parts of the goals, with the margins of those that carry a confidence
    shares: tuple[AnyShare | None, ...]

    @classmethod
    def of(cls, goals: tuple[Goal, ...], views: Views) -> Self:
        """Return goals as linear rates on tables."""
        limits = GoalLimits.of(goals, views)
        shares = (None if part.confidence is None else measure_goal(part, views, None).share() for part in limits.parts)
        return cls(limits, views, limits.targets, tuple(shares))

    def rows(self, count: Tally) -> GoalConstraints:
        """Return the goals as rows of the linear program, given a function that sums the predictions of models."""
        is_linear = [not part.compares_ratios for part in self.targets]
        if not all(is_linear):
            return self._with_spreads(is_linear, count)
        targets = self.targets
        rows, bounds = _count_goals(targets, self.views, count, self.limits.names)
        row_slopes = np.zeros_like(rows)
        bound_slopes = np.array([1.0 if part.sense == "<=" else -1.0 for part in targets])
        ratios = [place for place, part in enumerate(targets) if isinstance(part.left, Ratio)]
        if ratios:  # affine in their bound: two points give the slope
            steps = np.array([bound_step(targets[place]) for place in ratios])
            shifted = [
                targets[place].with_bound(targets[place].bound + step)
                for place, step in zip(ratios, steps, strict=True)
            ]
            shifted_rows, shifted_bounds = _count_goals(shifted, self.views, count)
            row_slopes[ratios] = (shifted_rows - rows[ratios]) / steps[:, None]
            bound_slopes[ratios] = (shifted_bounds - bounds[ratios]) / steps
        sizes = np.array([part.linear.size for part in targets])
        goals = self.limits.goals
        owners = self.limits.owners if len(targets) > len(goals) else None
        return GoalConstraints(goals, rows, bounds, row_slopes, bound_slopes, self.shares, sizes, owners)

    def _with_spreads(self, is_linear: Sequence[bool], count: Tally) -> GoalConstraints:
        """Return the goals as rows where some compare ratios: those have a row for both ends of each ratio."""
        limits, kept = self.limits, np.flatnonzero(is_linear)
        names = [limits.names[place] for place in kept.tolist()]
        linear = limits._replace(
            parts=tuple(limits.parts[place] for place in kept), owners=limits.owners[kept], names=names
        )
        own = self._replace(
            limits=linear,
            targets=tuple(self.targets[place] for place in kept),
            shares=tuple(self.shares[place] for place in kept),
        )
        owners = np.setdiff1d(limits.owners, limits.owners[kept]).tolist()
        known = own.rows(count)._replace(owners=limits.owners[kept]) if kept.size else None
        spreads: list[Spread] = []
        first = kept.size
        for place in owners:
            bound = limits.goals[place].bound
            parts = zip(self.targets, limits.owners.tolist(), strict=True)
            own_parts = [one.left for one, owner in parts if owner == place]
            pairs = [one for one in own_parts if isinstance(one, ComparedRatios)]
            groups = [one for one in own_parts if isinstance(one, GroupDisparities)]
            if groups:
                values = partial(tally_rates, views=self.views, count=count)
                with name_in_errors(limits.goals[place]):
                    spreads.append(DisparitySpread.of(place, first, groups, values, bound))
                first += spreads[-1].rows.size
                continue
            ratios = list(dict.fromkeys(ratio for pair in pairs for ratio in (pair.one, pair.other)))
            sides = [[ratio.numerator for ratio in ratios], [ratio.denominator for ratio in ratios]]
            tops, bottoms = (tally_rates(side, self.views, count, [limits.goals[place]] * len(side)) for side in sides)
            spreads.append(
                RatioSpread(
                    place,
                    first + np.arange(2 * len(ratios)),
                    tops,
                    bottoms,
                    np.array([[rate.constant for rate in side] for side in sides]).T,
                    np.array([[rate.size for rate in side] for side in sides]).T,
                    bound,
                    pairs[0].is_quotient,
                )
            )
            first += spreads[-1].rows.size
        return _join_spreads(limits.goals, known, spreads)

    def row_costs(self, row_prices: FloatArray) -> dict[str, FloatArray]:
        """Return the cost of each decision about each row of each dataset, at prices of the rows of the goals."""
        return self.bind().row_weights(row_prices)

    def bind(self) -> BoundRates:
        """Return the rows of the goals as signed weights of the rows of the tables."""
        return bind_rates([part.linear for part in self.targets], self.views, self.limits.names)


def _join_spreads(
    goals: tuple[Goal, ...], known: GoalConstraints | None, spreads: Sequence["Spread"]
) -> GoalConstraints:
    """Return linear goals together with those that compare ratios, over all of their intervals."""
    signs = [goals[spread.place].sign for spread in spreads]
    changes = [spread.slopes for spread in spreads]
    slopes, bottoms = (
        np.concatenate([sign * own[part] for sign, own in zip(signs, changes, strict=True)]) for part in (0, 1)
    )
    n_rows = len(slopes)
    owners = np.concatenate([np.full(spread.rows.size, spread.place) for spread in spreads])
    parts = {
        "rows": np.zeros_like(slopes),
        "bounds": np.zeros(n_rows),
        "row_slopes": slopes,  # with which their scales are found, as those of ratios are
        "bound_slopes": bottoms,
        "sizes": np.concatenate([own[2] for own in changes]),
    }
    shares: tuple[AnyShare | None, ...] = (None,) * n_rows
    if known is not None:
        parts = {name: np.concatenate([getattr(known, name), own]) for name, own in parts.items()}
        shares, owners = known.shares + shares, np.concatenate([known.places, owners])
    every = GoalConstraints(goals, shares=shares, owners=owners, spreads=tuple(spreads), **parts)
    return every.within(whole_box(spreads))


def goal_rows(answers: Answers, goals: tuple[Goal, ...]) -> GoalConstraints | None:
    """Return the goals as rows of the linear program, or None where there are none."""
    if not goals:
        return None
    views = answers.views()
    return TalliedGoals.of(goals, views).rows(answers.counter(views))


def _count_goals(
    goals: Sequence[Goal], views: Views, count: Tally, names: Sequence[Goal] | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return goals as rows and bounds; ``names`` are their names in errors."""
    linear = [goal.linear for goal in goals]
    return tally_rates(linear, views, count, names), -np.array([rate.constant for rate in linear])


def own_bound(limits: GoalConstraints, excess: float) -> float:
    """Return the first goal's bound at which the right sides of its rows are larger by so much."""
    bounds = []
    for row in limits.rows_of(0):
        required = limits.required_bound(row, limits.goals[0].bound)
        bounds.append(limits.own_bound(row, required + excess / float(limits.bound_slopes[row])))
    return max(bounds) if limits.goals[0].sense == "<=" else min(bounds)


def check_range(limits: GoalConstraints) -> None:
    """Raise an error if the first goal is on a ratio, whose range is not known beforehand."""
    if limits.row_slopes[limits.rows_of(0)].any():
        raise ValueError("The goal is on a ratio, whose range under a mixture is not known in advance. Pass bounds.")
