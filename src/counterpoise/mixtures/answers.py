"""Goals as rows of the mixture's linear program.

Every rate of a randomized classifier is linear in its mixture, so a goal on any dataset is a row of
``rows @ mixture <= bounds`` with an entry for each model: the goal's signed weights times the model's positive
predictions. Those are kept as bits, so that other goals, bounds or alphas ask no model again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import AnyArray, BoolArray, FloatArray
from counterpoise.goals import Goal, GoalCheck, InfeasibleGoals, Ratio, Table, as_objective
from counterpoise.goals.advice import Bounds, Constraints, explain
from counterpoise.goals.binding import Views, tally_rates
from counterpoise.goals.bound import check_denominators, risk_of_each, with_margins
from counterpoise.goals.classes import Classes
from counterpoise.goals.population import standing
from counterpoise.goals.rows import Dataset
from counterpoise.goals.shares import AnyShare, can_certify, certified_bound, needed_bound
from counterpoise.solvers import minimize_cvar
from counterpoise.solvers.result import InfeasibleRows, constraint_scale
from counterpoise.solvers.rows import BitRows, pack

TRAIN = "train"  # the dataset that is the rows on which the mixture is chosen
_BINARY = 2
_LEAST_REACH = 1e-7  # part of its row's largest entry to which a ratio's scale falls: beyond, rounding would bind
_MOST_GROUPS = 100  # distinct values of a feature that may still be groups of people, and not a measurement
_GLANCE = 10_000  # rows that show most measurements to be one


class RateRow(NamedTuple):
    """A rate of a randomized classifier: ``constant + row @ mixture``."""

    constant: float
    row: FloatArray

    def first(self, n_models: int) -> "RateRow":
        """Return the rate of the first models only."""
        return RateRow(self.constant, self.row[:n_models])


class GoalRows(NamedTuple):
    """Goals as ``rows @ mixture <= bounds``, and how rows and bounds change with each goal's own bound.

    They are affine in the bound that the rows must meet, which is the goal's own unless it carries a confidence.
    """

    goals: tuple[Goal, ...]
    rows: FloatArray  # (n_goals, n_models)
    bounds: FloatArray  # (n_goals,)
    row_slopes: FloatArray  # zero but for ratios, whose bound multiplies the denominator
    bound_slopes: FloatArray
    shares: tuple[AnyShare | None, ...]  # that decide about a goal with a confidence; None: its margin is fixed
    sizes: FloatArray | None = None  # of the terms that the entries of each row are sums and differences of

    @property
    def scale(self) -> FloatArray:
        """Return what rows and bounds are divided by where it is asked whether they hold.

        A ratio is multiplied through by its denominator, and where other goals keep that small, so is what counts.
        """
        scale = constraint_scale(np.abs(self.rows).max(axis=1), self.bounds, self.sizes)
        for place in np.flatnonzero(self.row_slopes.any(axis=1)).tolist():
            scale[place] = min(scale[place], max(self._reach(place), _LEAST_REACH * scale[place]))
        return scale

    def as_limits(self) -> dict[str, Any]:
        """Return the goals as arguments of a solver."""
        return {"rows": self.rows, "bounds": self.bounds, "row_scale": self.scale}

    def _reach(self, place: int) -> float:
        """Return how large a ratio's denominator can be where the other goals hold."""
        sign = -1.0 if self.goals[place].sense == "<=" else 1.0
        divisor = sign * (self.row_slopes[place] - self.bound_slopes[place])
        rows, bounds = (np.delete(one, place, axis=0) for one in (self.rows, self.bounds))
        try:
            return -minimize_cvar(-divisor[None], 1.0, rows=rows, bounds=bounds).value
        except InfeasibleRows:
            return float(divisor.max())

    def first(self, n_models: int) -> "GoalRows":
        """Return the same goals on the first models only."""
        return self.only(np.arange(n_models))

    def only(self, models: AnyArray) -> "GoalRows":
        """Return the same goals on some of the models."""
        return self._replace(rows=self.rows[:, models], row_slopes=self.row_slopes[:, models])

    def with_bound(self, place: int, bound: float) -> "GoalRows":
        """Return the same rows with another number on the right side of one goal."""
        step = self.needed(place, bound) - self.needed(place, self.goals[place].bound)
        goals = (*self.goals[:place], self.goals[place].with_bound(bound), *self.goals[place + 1 :])
        rows, bounds = self.rows.copy(), self.bounds.copy()
        rows[place] += step * self.row_slopes[place]
        bounds[place] += step * self.bound_slopes[place]
        return self._replace(goals=goals, rows=rows, bounds=bounds)

    def needed(self, place: int, bound: float) -> float:
        """Return what the rows must meet if the goal had another bound, but for a margin that is always the same."""
        share = self.shares[place]
        return bound if share is None else needed_bound(self.goals[place].with_bound(bound), share, self._risk(place))

    def own_bound(self, place: int, needed: float) -> float:
        """Return the tightest bound of the goal for which ``needed`` is enough."""
        share = self.shares[place]
        return needed if share is None else certified_bound(self.goals[place], share, needed, self._risk(place))

    def can_show(self, place: int, bound: float) -> bool:
        """Tell whether the rows are enough to certify the goal with another bound, were all of them to keep it."""
        share = self.shares[place]
        return share is None or can_certify(self.goals[place].with_bound(bound), share, self._risk(place))

    def _risk(self, place: int) -> float:
        return risk_of_each(self.goals)[place]

    def constraints(self, bounds: Bounds) -> Constraints:
        """Return the goals as constraints on the mixture, with other numbers on the right sides of some."""
        other = self
        for place, bound in bounds.items():
            other = other.with_bound(place, bound)
        return Constraints(other.rows, other.bounds, other.scale, "simplex")

    def infeasible(self, error: InfeasibleRows) -> InfeasibleGoals:
        """Return which goals conflict on every mixture, given the proof that some do."""
        found = explain(self)
        if found is None:  # by rounding of one solver against the other: the multipliers tell as much
            return InfeasibleGoals([self.goals[place] for place in error.rows], error.violation)
        return found


class Positive(NamedTuple):
    """Which of the classes is the positive one; all others count as negative."""

    classes: AnyArray  # sorted
    place: int

    @property
    def labels(self) -> list[Any]:
        """Return the negative and the positive label of the tables that ``table`` returns."""
        if len(self.classes) > _BINARY:
            return [False, True]
        return [self.classes[1 - self.place], self.classes[self.place]]

    def table(self, table: Table, name: str) -> Table:
        """Return a table with labels of two classes."""
        if len(self.classes) <= _BINARY:
            return table
        y, baseline = (self._is_positive(table, part, name) for part in ("y", "baseline"))
        return _changed(table, y=y, baseline=baseline)

    def _is_positive(self, table: Table, part: str, name: str) -> BoolArray | None:
        labels = getattr(table, part)
        if labels is None:
            return None
        unknown = ~np.isin(labels, self.classes)
        if unknown.any():
            label = labels[unknown].tolist()[0]
            raise ValueError(
                f"{part} of dataset {name!r} holds the label {label!r}, which is not among the classes "
                f"{self.classes.tolist()}."
            )
        return np.asarray(labels == self.classes[self.place])

    def bits(self, codes: AnyArray) -> BitRows:
        """Return where predicted codes, a column for each model, are the positive class, as bits."""
        packed = pack(codes == self.place)
        assert packed is not None  # noqa: S101 - of booleans
        return BitRows(packed, codes.shape[1])

    def bits_of_losses(self, losses: AnyArray, codes: AnyArray) -> BitRows:
        """Return the same for two classes, where failing on a row means to say the other class."""
        packed = pack(losses.astype(np.bool_, copy=False) ^ (codes == self.place)[:, None])
        assert packed is not None  # noqa: S101 - of booleans
        return BitRows(packed, losses.shape[1])


def find_positive(classes: AnyArray, pos_label: Any) -> Positive | None:
    """Return the positive class: the one named, or the second of two; None where there are more and none is named."""
    if pos_label is None:
        return Positive(classes, 1) if len(classes) == _BINARY else None
    if pos_label not in classes.tolist():
        raise ValueError(f"pos_label must be one of the classes {classes.tolist()!r}; got {pos_label!r}.")
    return Positive(classes, classes.tolist().index(pos_label))


@dataclass(frozen=True)
class Answers:
    """Which rows of which dataset each model calls positive, and what goals may ask about those rows."""

    tables: dict[str, Table]
    positives: dict[str, BitRows]
    positive: Positive | None

    def with_dataset(self, name: str, table: Table, positives: BitRows | None) -> "Answers":
        """Return the same answers with another dataset, or another table for one."""
        known = self.positives if positives is None else {**self.positives, name: positives}
        two = table if self.positive is None else self.positive.table(table, name)
        return replace(self, tables={**self.tables, name: two}, positives=known)

    def with_tables(self, tables: Mapping[str, Table]) -> "Answers":
        """Return the same answers with other tables for the same rows."""
        answers = self
        for name, table in tables.items() if self.positive is not None else ():
            if name not in self.positives or table.n_samples != self.positives[name].n_rows:
                raise ValueError(f"tables[{name!r}] must hold the rows of a dataset that the models were asked about.")
            answers = answers.with_dataset(name, table, None)
        return answers

    def with_columns(self, name: str, sensitive_features: Any) -> "Answers":
        """Return the same answers with other columns for goals to speak of."""
        return replace(
            self, tables={**self.tables, name: _changed(self.tables[name], sensitive_features=sensitive_features)}
        )

    def goal_rows(self, goals: tuple[Goal, ...]) -> GoalRows | None:
        """Return the goals as rows of the linear program, or None where there are none."""
        if not goals:
            return None
        views = Views(self.tables, Classes(*self._labels(goals[0])))
        check_denominators(goals, self.tables, views.classes)
        asked, count = with_margins(goals, views), self._counter(views)
        rows, bounds = _tallied(asked, views, count, goals)
        row_slopes = np.zeros_like(rows)
        bound_slopes = np.array([1.0 if goal.sense == "<=" else -1.0 for goal in goals])
        ratios = [place for place, goal in enumerate(goals) if isinstance(goal.left, Ratio)]
        if ratios:  # affine in their bound: two points tell the slope
            moved = _tallied([asked[place].with_bound(asked[place].bound + 1.0) for place in ratios], views, count)
            row_slopes[ratios] = moved[0] - rows[ratios]
            bound_slopes[ratios] = moved[1] - bounds[ratios]
        shares = tuple(None if goal.confidence is None else standing(goal, views, None).share() for goal in goals)
        sizes = np.array([goal.linear.size for goal in asked])
        return GoalRows(goals, rows, bounds, row_slopes, bound_slopes, shares, sizes)

    def rate_row(self, objective: Any) -> RateRow:
        """Return a rate, or its text, as a linear function of the mixture."""
        views, rate = Views(self.tables, Classes(*self._labels(objective))), as_objective(objective)
        return RateRow(rate.constant, tally_rates([rate], views, self._counter(views))[0])

    def _counter(self, views: Views) -> Callable[[Dataset], FloatArray]:
        """Return what counts the weight of the rows that each model calls positive, every set of rows once."""

        @cache
        def count(rows: Dataset) -> FloatArray:
            places, weights = views.rows(rows)
            return self.positives[rows.name].only(places).totals(weights)

        return count

    def checks(self, goals: tuple[Goal, ...], mixture: FloatArray) -> list[GoalCheck]:
        """Return how each goal stands for the mixture, in expectation over its draws."""
        if not goals:
            return []
        _, pos_label = self._labels(goals[0])
        names = dict.fromkeys(name for goal in goals for name in goal.datasets)
        probabilities = {name: self._probabilities(name, mixture) for name in names}
        tables = {name: self.tables[name] for name in names}
        return [
            goal.evaluate_expected(
                {name: probabilities[name] for name in goal.datasets},
                {name: tables[name] for name in goal.datasets},
                pos_label=pos_label,
            )
            for goal in goals
        ]

    def _probabilities(self, name: str, mixture: FloatArray) -> FloatArray:
        bits = self.positives[name]
        shares = np.empty(bits.n_rows)
        bits.scores(mixture, shares)
        return np.clip(shares, 0.0, 1.0)  # sums of shares may end at 1 + 1e-16

    def _labels(self, asked_by: Any) -> list[Any]:
        if self.positive is None:
            raise ValueError(
                f"{asked_by} speaks of a positive class, but there are more than two classes: name it with pos_label."
            )
        return self.positive.labels

    def _check_loaded(self) -> None:
        """Check what came from a file."""
        for name, bits in self.positives.items():
            if bits.n_rows != self.tables[name].n_samples:
                raise ValueError(f"the answers on dataset {name!r} are on {bits.n_rows} rows of another number")

    def __getstate__(self) -> dict[str, Any]:
        """Leave out features: they were needed for the columns of data frames only."""
        empty = {name: np.empty((table.n_samples, 0)) for name, table in self.tables.items()}
        tables = {name: _changed(table, X=empty[name]) for name, table in self.tables.items()}
        return {"tables": tables, "positives": self.positives, "positive": self.positive}

    def _saved_state(self) -> dict[str, Any]:
        """Return what ``save`` stores: of a data frame also the columns by which goals can tell groups apart."""
        tables = {name: _without_features(table) for name, table in self.tables.items()}
        return {"tables": tables, "positives": self.positives, "positive": self.positive}


def _tallied(
    asked: Sequence[Goal], views: Views, count: Callable[[Dataset], FloatArray], names: Sequence[Goal] | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return goals as rows and bounds; ``names`` are what an error calls them."""
    linear = [goal.linear for goal in asked]
    return tally_rates(linear, views, count, names), -np.array([rate.constant for rate in linear])


def _changed(table: Table, **parts: Any) -> Table:
    """Return the same table with some parts replaced."""
    has = {"X": table.X, "y": table.y, "baseline": table.baseline, "sample_weight": table.sample_weight}
    columns = table._own_columns or None  # noqa: SLF001 - the only way to all their names
    return Table(**{"sensitive_features": columns, **has, **parts}).weighed_as(table)


def _without_features(table: Table) -> Table:
    own = {name: _plain_column(table, name) for name in table._own_columns}  # noqa: SLF001 - as above
    others = {
        name: _plain_column(table, name) for name in table.columns if name not in own and _has_groups(table, name)
    }
    return _changed(table, X=np.empty((table.n_samples, 0)), sensitive_features={**own, **others} or None)


def _has_groups(table: Table, name: str) -> bool:
    values = table.column(name)
    if values.dtype.kind in "biuf":
        return all(np.unique(part).size <= _MOST_GROUPS for part in (values[:_GLANCE], values))
    try:
        return len(table.levels(name).place) <= _MOST_GROUPS
    except TypeError:  # neither numbers nor words
        return False


def _plain_column(table: Table, name: str) -> AnyArray:
    """Return a column; of objects the texts that goals compare, None where there is none."""
    values = table.column(name)
    if values.dtype.kind != "O":
        return values
    levels = table.levels(name)
    return np.array([*levels.place, None], dtype=object)[levels.codes]


def part_of(table: Table, places: AnyArray, y: AnyArray, sample_weight: FloatArray | None) -> Table:
    """Return some rows of a table with their labels and weights, and features only where they are a data frame's."""
    columns = {name: values[places] for name, values in table._own_columns.items()}  # noqa: SLF001 - as above
    X = table.X.iloc[places] if hasattr(table.X, "iloc") else None
    return Table(X, y, columns or None, sample_weight=sample_weight).weighed_as(table, places)
