"""Goals and budgets on rules of class probabilities: as rows for given answers, and as tensors for all."""

from typing import Any, NamedTuple, Self

import numpy as np

from counterpoise._base.types import FloatArray, IntArray
from counterpoise.goals import Ratio
from counterpoise.goals.binding import BoundRates, bind_rates
from counterpoise.goals.infeasible import bound_step, goal_unit
from counterpoise.mixtures.class_scores.evidence import Known, label_answers, label_mass
from counterpoise.mixtures.goal_rows import GoalRows, TalliedGoals, mean_limit


class BoundRows(NamedTuple):
    """Goals bound to the answers of all rows, so that those of many rules are one product each."""

    template: GoalRows  # on other rules
    now: BoundRates
    moved: BoundRates | None  # with larger bounds, of the goals on ratios: their rows are affine in them
    steps: FloatArray  # by which those bounds are larger
    constants: FloatArray  # of the goals, which the bounds hold
    units: FloatArray  # what rows and bounds are in parts of, so that amounts of any size are searched alike

    @classmethod
    def of(cls, tallied: TalliedGoals, template: GoalRows) -> Self:
        """Bind goals."""
        linear = [goal.linear for goal in tallied.asked]
        asked = [goal for goal in tallied.asked if isinstance(goal.left, Ratio)]
        steps = np.array([bound_step(goal) for goal in asked])
        ratios = [goal.with_bound(goal.bound + step).linear for goal, step in zip(asked, steps, strict=True)]
        moved = bind_rates(ratios, tallied.views) if ratios else None
        constants = np.array([rate.constant for rate in linear])
        units = np.array([goal_unit(template.goals[place]) for place in template.places.tolist()])
        now = bind_rates(linear, tallied.views, tallied.limits.names)
        return cls(in_units(template, units), now, moved, steps, constants, units)

    def rows(self, said: list[dict[str, FloatArray]]) -> GoalRows:
        """Return the goals as rows on rules, given their answers, in parts of the units."""
        stacked = {name: np.column_stack([one[name].ravel() for one in said]) for name in self.now.weights}
        rows = self.now.weighted(stacked) + (self.now.constants - self.constants)[:, None]
        slopes = np.zeros_like(rows)
        if self.moved is not None:
            ratios = np.flatnonzero(self.template.row_slopes.any(axis=1))
            slopes[ratios] = (self.moved.values(stacked) - self.now.values(stacked)[ratios]) / self.steps[:, None]
        units = self.units[:, None]
        return self.template._replace(rows=rows / units, row_slopes=slopes / units)


def in_units(goals: GoalRows, units: FloatArray) -> GoalRows:
    """Return goals with rows, bounds and slopes in parts of units, one for each row."""
    return goals._replace(
        rows=goals.rows / units[:, None],
        bounds=goals.bounds / units,
        row_slopes=goals.row_slopes / units[:, None],
        bound_slopes=goals.bound_slopes / units,
        sizes=None if goals.sizes is None else goals.sizes / units,
    )


class Limits(NamedTuple):
    """Goals and perhaps a budget of the mean loss: as rows for given answers, and as tensors for all.

    Both are in parts of ``units``.
    """

    goals: BoundRows | None
    budget: float | None
    tensors: FloatArray  # (n_rows, n_groups, n_labels, n_answers): what each answer adds, for a unit of mass

    @property
    def units(self) -> FloatArray:
        """Return what the rows are in parts of: multipliers are to be divided by it, and prices times it are theirs."""
        goals = np.empty(0) if self.goals is None else self.goals.units
        return goals if self.budget is None else np.append(goals, 1.0)

    def as_asked(self, rows: GoalRows) -> GoalRows:
        """Return rows in the units of the goals themselves."""
        return in_units(rows, 1.0 / self.units)

    @property
    def sizes(self) -> FloatArray:
        """Return the most that a unit of mass adds to each limit, at least 1: prices count in parts of it."""
        return np.asarray(np.maximum(np.abs(self.tensors).max(axis=(1, 2, 3), initial=0.0), 1.0))

    @property
    def places(self) -> IntArray:
        """Return the place of the goal that each row belongs to."""
        return np.zeros(0, dtype=np.int64) if self.goals is None else self.goals.template.places

    def can_show(self, place: int, bound: float) -> bool:
        """Tell whether the rows are enough to certify a goal with another bound, were all of them to keep it."""
        return self.goals is None or self.goals.template.can_show(place, bound)

    @property
    def has_any(self) -> bool:
        """Tell whether anything is asked."""
        return self.goals is not None or self.budget is not None

    def rows(self, said: list[dict[str, FloatArray]], means: FloatArray) -> GoalRows | None:
        """Return the limits as rows on rules, given their answers and mean losses: the goals and then the budget."""
        rows = None if self.goals is None else self.goals.rows(said)
        if self.budget is None:
            return rows
        kept = mean_limit(means, self.budget)
        return kept if rows is None else rows.joined(kept)

    def within(self, known: Known, most: float) -> Self:
        """Return the limits with a budget of the mean loss."""
        return self._replace(budget=most, tensors=np.concatenate([self.tensors, loss_tensor(known)[None]]))


def limits_of(known: Known, goals: tuple[Any, ...]) -> Limits:
    """Return goals for any rules."""
    if not goals:
        return Limits(None, None, np.zeros((0, *known.shape)))
    answers = label_answers(known)
    views = answers.views()
    tallied = TalliedGoals.of(goals, views)
    rows = tallied.rows(answers.counter(views))
    bound = BoundRows.of(tallied, rows)
    return Limits(bound, None, as_tensors(known, rows.rows / bound.units[:, None]))


def as_tensors(known: Known, rows: FloatArray) -> FloatArray:
    """Return linear functions of the answers by group, label and answer, for a unit of the labelled rows' mass."""
    added = (rows[:, :-1] - rows[:, -1:]).reshape(-1, *known.shape)
    mass = label_mass(known)[None, :, :, None]
    return np.divide(added, mass, out=np.zeros_like(added), where=mass > 0)


def loss_tensor(known: Known) -> FloatArray:
    """Return the loss of each answer, less one, by group and label."""
    losses = -np.eye(*known.shape[1:])
    if known.defer_cost is not None:
        losses[:, -1] = known.defer_cost - 1.0
    return np.repeat(losses[None], known.n_groups, axis=0)
