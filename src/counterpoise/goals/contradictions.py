"""A lower and an upper bound on one rate that no predictions meet together."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from counterpoise.goals.binding import Views, bind_rates
from counterpoise.goals.bound import least_sums
from counterpoise.goals.expressions import Rate
from counterpoise.goals.goal import Goal
from counterpoise.goals.infeasible import InfeasibleGoals, bound_scale
from counterpoise.solvers.linear_program import FEASIBLE
from counterpoise.theory.confidence import Bounds


def check_contradictions(goals: Sequence[Goal], views: Views) -> None:
    """Refuse goals of which one asks a rate to be above, and another below, what both allow.

    Goals on ratios are left out: where nothing is predicted positive, any two bounds on the precision hold.

    Parameters
    ----------
    goals : sequence of Goal
        They fit the rows: see ``check_asked``.
    views : Views
        The rows and classes.

    Raises
    ------
    InfeasibleGoals
        With the two goals. It offers bounds where no other goals stand beside them.

    Examples
    --------
    >>> from counterpoise.goals import Table, as_goals
    >>> from counterpoise.goals.binding import Views
    >>> from counterpoise.goals.contradictions import check_contradictions
    >>> from counterpoise.goals.tables import as_tables, classes_of
    >>> tables = as_tables(Table(None, y=[0, 0, 1, 1]))
    >>> goals = as_goals(["recall(train) >= 0.9", "recall(train) <= 0.1"])
    >>> check_contradictions(goals, Views(tables, classes_of(tables)))
    Traceback (most recent call last):
    ...
    counterpoise.goals.InfeasibleGoals: These goals cannot hold together: recall(train) >= 0.9 and recall(train) <= ...
    """
    limited: dict[Any, _Limited] = {}
    for goal in goals:
        if not goal.is_ratio and not goal.right.terms:
            # Rates that are equal for decided rows, as 1 - recall and the miss rate, differ where some are deferred.
            key = goal.left if views.classes.deferred is None else str(goal.left)
            limited.setdefault(key, _Limited([], [])).on_side(goal).append(goal)
    for one in limited.values():
        if one.lower and one.upper and one.gap > one.rounding:
            conflict = sorted((one.highest, one.lowest), key=list(goals).index)
            is_alone = len(goals) == len(one.lower) + len(one.upper)
            offered = _nearest(one, views) if is_alone else {}
            held = {goal: tuple(other for other in conflict if other is not goal) for goal in offered}
            raise InfeasibleGoals(conflict, one.gap, offered, held_by=held)


class _Limited(NamedTuple):
    """The goals that bound one rate by numbers, from below and from above."""

    lower: list[Goal]
    upper: list[Goal]

    def on_side(self, goal: Goal) -> list[Goal]:
        return self.lower if goal.sense == ">=" else self.upper

    @property
    def highest(self) -> Goal:
        return max(self.lower, key=lambda goal: goal.bound)

    @property
    def lowest(self) -> Goal:
        return min(self.upper, key=lambda goal: goal.bound)

    @property
    def gap(self) -> float:
        return self.highest.bound - self.lowest.bound

    @property
    def rounding(self) -> float:
        """Return by how much both goals may be missed and still hold."""
        return 2 * FEASIBLE * max(bound_scale(goal, goal.bound) for goal in (self.highest, self.lowest))


def _nearest(limited: _Limited, views: Views) -> dict[Goal, float]:
    """Return for either goal the bound at which it meets the other, where that alone is enough for all."""
    low, high = limited.highest, limited.lowest
    if not isinstance(low.left, Rate) or any(goal.confidence is not None for goal in limited.lower + limited.upper):
        return {}
    reach, found = _reach_on_rows(low, views), {}
    if sum(goal.bound > high.bound for goal in limited.lower) == 1 and reach.low <= high.bound:
        found[low] = high.bound
    if sum(goal.bound < low.bound for goal in limited.upper) == 1 and low.bound <= reach.high:
        found[high] = low.bound
    return found


def _reach_on_rows(goal: Goal, views: Views) -> Bounds:
    """Return the least and the largest value that predictions can give the rate of a goal on these rows."""
    (part,) = goal.parts(views)
    bound = bind_rates([part.left, -1 * part.left], views, [goal, goal])  # type: ignore[list-item]
    low, high = (bound.constants + sum(least_sums(weights, views) for weights in bound.weights.values())).tolist()
    return Bounds(low, -high)
