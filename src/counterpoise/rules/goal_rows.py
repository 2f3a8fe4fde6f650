"""Predictions of models on every dataset, and goals as rows of the mixture's linear program.

``Answers`` keep what each model predicts for the rows of each dataset, so other goals and alphas need no model again:
as bits for two classes, as codes for more or where rows may be deferred.

Every rate of a randomized classifier is linear in its mixture. So a goal on any dataset is a row of
``rows @ mixture <= bounds`` with an entry for each model: the signed weights of the goal times the predictions of the
model. A goal on a difference, or on every group or class, has several rows with one bound and one price.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple, Self, cast

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
from counterpoise.goals.infeasible import bound_step
from counterpoise.goals.population import AnyShare, can_certify, certified_bound, measure_goal, needed_bound
from counterpoise.goals.terms import Pairs
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
        """
        scale = constraint_scale(np.abs(self.rows).max(axis=1), self.bounds, self.sizes)
        for row in np.flatnonzero(self.row_slopes.any(axis=1)).tolist():
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
        return self._replace(rows=self.rows[:, models], row_slopes=self.row_slopes[:, models])

    def some(self, places: Sequence[int]) -> Self | None:
        """Return some of the goals, by their places in rising order; None where that is none."""
        if not places:
            return None
        rows = np.flatnonzero(np.isin(self.places, places))
        parts = {name: getattr(self, name)[rows] for name in ("rows", "bounds", "row_slopes", "bound_slopes")}
        return self._replace(
            goals=tuple(self.goals[place] for place in places),
            shares=tuple(self.shares[row] for row in rows),
            sizes=None if self.sizes is None else self.sizes[rows],
            owners=np.searchsorted(places, self.places[rows]),
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
        return self._replace(
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
        """Return goals as linear rates on tables, but for those that compare ratios, which are no rows of a program."""
        limits = GoalLimits.of(goals, views)
        kept = [place for place, part in enumerate(limits.parts) if not part.compares_ratios]
        limits = limits._replace(
            parts=tuple(limits.parts[place] for place in kept),
            targets=tuple(limits.targets[place] for place in kept),
            owners=limits.owners[kept],
            names=[limits.names[place] for place in kept],
        )
        shares = (None if part.confidence is None else measure_goal(part, views, None).share() for part in limits.parts)
        return cls(limits, views, limits.targets, tuple(shares))

    def rows(self, count: Tally) -> GoalConstraints:
        """Return the goals as rows of the linear program, given a function that sums the predictions of models."""
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
        owners = None if np.array_equal(self.limits.owners, np.arange(len(goals))) else self.limits.owners
        return GoalConstraints(goals, rows, bounds, row_slopes, bound_slopes, self.shares, sizes, owners)

    def bind(self) -> BoundRates:
        """Return the rows of the goals as signed weights of the rows of the tables."""
        return bind_rates([part.linear for part in self.targets], self.views, self.limits.names)


def goal_rows(answers: Answers, goals: tuple[Goal, ...]) -> GoalConstraints | None:
    """Return the goals as rows of the linear program, or None where there are none."""
    if not goals:
        return None
    views = answers.views()
    tallied = TalliedGoals.of(goals, views)
    return tallied.rows(answers.counter(views)) if tallied.targets else None


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
