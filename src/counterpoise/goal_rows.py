"""Goals as rows of the mixture's linear program.

Every rate of a randomized classifier is linear in its mixture, so a goal on any dataset is a row of
``rows @ mixture <= bounds`` with an entry for each model: the goal's signed weights times the model's positive
predictions. Those are kept as bits, so that other goals, bounds or alphas ask no model again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from counterpoise._infeasible import conflict_error
from counterpoise._language.binding import Views
from counterpoise._language.classes import Classes
from counterpoise._language.population import standing
from counterpoise._language.shares import AnyShare, can_certify, certified_bound, needed_bound
from counterpoise._types import AnyArray, BoolArray, FloatArray
from counterpoise.goals import (
    Goal,
    GoalCheck,
    InfeasibleGoals,
    Ratio,
    Table,
    bind,
    bind_objective,
    risks,
    with_margins,
)
from counterpoise.solvers.conflicts import find_conflict
from counterpoise.solvers.result import InfeasibleRows
from counterpoise.solvers.rows import BitRows, pack

TRAIN = "train"  # the dataset that is the rows on which the mixture is chosen
_BINARY = 2
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
        return risks(self.goals)[place]

    def infeasible(self, error: InfeasibleRows) -> InfeasibleGoals:
        """Return which goals conflict on every mixture, given the proof that some do."""
        conflict = find_conflict(self.rows, self.bounds, domain="simplex")
        if conflict is None:  # by less than the tolerance of that search: the multipliers tell as much
            return InfeasibleGoals([self.goals[place] for place in error.rows], error.violation)
        members = conflict.members

        def can_hold(place: int, bound: float) -> bool:
            other = self.with_bound(place, bound)
            return find_conflict(other.rows[members], other.bounds[members], domain="simplex") is None

        return conflict_error(conflict, self.goals, self.bounds, can_hold)


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
        asked = with_margins(goals, views)
        rows, bounds = self._bound(asked)
        row_slopes = np.zeros_like(rows)
        bound_slopes = np.array([1.0 if goal.sense == "<=" else -1.0 for goal in goals])
        ratios = [place for place, goal in enumerate(goals) if isinstance(goal.left, Ratio)]
        if ratios:  # affine in their bound: two points tell the slope
            moved = self._bound([asked[place].with_bound(asked[place].bound + 1.0) for place in ratios])
            row_slopes[ratios] = moved[0] - rows[ratios]
            bound_slopes[ratios] = moved[1] - bounds[ratios]
        shares = tuple(None if goal.confidence is None else standing(goal, views, None).share() for goal in goals)
        return GoalRows(goals, rows, bounds, row_slopes, bound_slopes, shares)

    def _bound(self, goals: Sequence[Goal]) -> tuple[FloatArray, FloatArray]:
        bound = bind(goals, self.tables, classes=self._labels(goals[0]))
        return self._weighted(bound.weights, len(goals)), bound.bounds

    def rate_row(self, objective: Any) -> RateRow:
        """Return a rate, or its text, as a linear function of the mixture."""
        bound = bind_objective(objective, self.tables, classes=self._labels(objective))
        return RateRow(float(bound.constants[0]), self._weighted(bound.weights, 1)[0])

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

    def _weighted(self, weights: Mapping[str, Any], n_rates: int) -> FloatArray:
        """Return ``weights @ positives``, summed over datasets; time and memory grow with the rows that count."""
        total: FloatArray | None = None
        for name, matrix in weights.items():
            part = np.array([_product(matrix, number, self.positives[name]) for number in range(n_rates)])
            total = part if total is None else total + part
        assert total is not None  # noqa: S101 - every rate counts rows of some dataset
        return total

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


def _product(matrix: Any, number: int, bits: BitRows) -> FloatArray:
    start, stop = matrix.indptr[number : number + 2]
    places, amounts = matrix.indices[start:stop], matrix.data[start:stop]
    counted = bits if places.size == bits.n_rows else BitRows(bits.packed[places], bits.n_models)
    if places.size == bits.n_rows:
        amounts = amounts[np.argsort(places)]
    return counted.columns(np.maximum(amounts, 0.0)) - counted.columns(np.maximum(-amounts, 0.0))


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
