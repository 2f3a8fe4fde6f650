"""Goals as rows of the mixture's linear program.

Every rate of a randomized classifier is linear in its mixture, so a goal on any dataset is a row of
``rows @ mixture <= bounds`` with an entry for each model: the goal's signed weights times the model's positive
predictions.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from counterpoise._base.types import AnyArray, FloatArray
from counterpoise.goals import Goal, InfeasibleGoals, Ratio, as_objective
from counterpoise.goals.advice import Bounds, Constraints, explain
from counterpoise.goals.binding import Views, tally_rates
from counterpoise.goals.bound import check_denominators, risk_of_each, with_margins
from counterpoise.goals.population import standing
from counterpoise.goals.rows import Dataset
from counterpoise.goals.shares import AnyShare, can_certify, certified_bound, needed_bound
from counterpoise.mixtures.answers import Answers
from counterpoise.solvers import minimize_cvar
from counterpoise.solvers.result import InfeasibleRows, constraint_scale

_LEAST_REACH = 1e-7  # part of its row's largest entry to which a ratio's scale falls: beyond, rounding would bind


class LinearRate(NamedTuple):
    """A rate of a randomized classifier: ``constant + row @ mixture``."""

    constant: float
    row: FloatArray


def linear_rate(answers: Answers, objective: Any) -> LinearRate:
    """Return a rate, or its text, as a linear function of the mixture."""
    views, rate = answers.views(objective), as_objective(objective)
    return LinearRate(rate.constant, tally_rates([rate], views, answers.counter(views))[0])


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

    def only(self, models: AnyArray) -> Self:
        """Return the same goals on some of the models."""
        return self._replace(rows=self.rows[:, models], row_slopes=self.row_slopes[:, models])

    def with_bound(self, place: int, bound: float) -> Self:
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


def goal_rows(answers: Answers, goals: tuple[Goal, ...]) -> GoalRows | None:
    """Return the goals as rows of the linear program, or None where there are none."""
    if not goals:
        return None
    views = answers.views(goals[0])
    check_denominators(goals, answers.tables, views.classes)
    asked, count = with_margins(goals, views), answers.counter(views)
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


def _tallied(
    asked: Sequence[Goal], views: Views, count: Callable[[Dataset], FloatArray], names: Sequence[Goal] | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return goals as rows and bounds; ``names`` are what an error calls them."""
    linear = [goal.linear for goal in asked]
    return tally_rates(linear, views, count, names), -np.array([rate.constant for rate in linear])


def own_bound(limits: GoalRows, side: float) -> float:
    """Return the first goal's bound for which the right side of its row has a value."""
    needed = limits.needed(0, limits.goals[0].bound)
    return limits.own_bound(0, needed + (side - float(limits.bounds[0])) / float(limits.bound_slopes[0]))


def check_range(limits: GoalRows) -> None:
    """Refuse a first goal of which it is not known beforehand what values it can take."""
    if limits.row_slopes[0].any():
        raise ValueError("The goal is on a ratio, whose range under a mixture is not known beforehand: pass bounds.")
