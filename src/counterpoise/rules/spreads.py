"""Which goals conflict for every mixture where some compare ratios, and the nearest bounds that a search meets.

Whether goals can be met is a search over the intervals in which ratios lie, for each set of goals and each bound anew.
So bounds of the goals that compare ratios are offered, and others only where none of these is enough. They are halved
a few times: near to the nearest, not proven to be.
"""

from typing import Any

import numpy as np

from counterpoise._base.budget import advice
from counterpoise.goals import Goal, InfeasibleGoals
from counterpoise.goals.ranges import goal_range
from counterpoise.rules.goal_rows import GoalConstraints

_MOST_STEPS = 8  # of the search for a bound
_MOST_GOALS = 6  # of which each is left out in turn, to find a smaller set that conflicts


def explain_spreads(program: Any, can_hold: Any, *, proven: bool) -> InfeasibleGoals:
    """Return the conflicting goals of a program, given a function that tells whether limits can hold."""
    limits, goals = program.limits, program.family.goals_of(program.limits)
    conflict = list(range(len(goals.goals)))
    for place in list(conflict) if len(conflict) <= _MOST_GOALS else []:
        fewer = [one for one in conflict if one != place]
        if fewer and not can_hold(_some(limits, goals, fewer)):
            conflict = fewer
    compared = [place for place in conflict if goals.goals[place].compares_ratios]
    others = [place for place in conflict if place not in compared]
    offered = _offered(limits, goals, compared, can_hold) or _offered(limits, goals, others, can_hold)
    least = min((abs(bound - goal.bound) for goal, bound in offered.items()), default=np.inf)
    if not compared:  # their least violation is that of a linear program
        try:
            program._replace(limits=_some(limits, goals, conflict)).solve(explains=True)
        except InfeasibleGoals as error:
            least = error.least_violation
    names = [goals.goals[place] for place in conflict]
    return InfeasibleGoals(names, least, offered, proven=proven, nearest_proven=False)


def _offered(limits: Any, goals: GoalConstraints, places: list[int], can_hold: Any) -> dict[Goal, float]:
    """Return for each of some goals a bound at which all can be met, where there is one."""
    offered: dict[Goal, float] = {}
    for place in places:
        with advice():
            bound = _nearest(limits, goals, place, can_hold)
            offered |= {} if bound is None else {goals.goals[place]: bound}
    return offered


def _some(limits: Any, goals: GoalConstraints, places: list[int]) -> Any:
    return goals.some(places) if limits is goals else limits._replace(goals=goals.some(places))


def _at(limits: Any, goals: GoalConstraints, place: int, bound: float) -> Any:
    moved = goals.with_bound(place, bound)
    return moved if limits is goals else limits._replace(goals=moved)


def _nearest(limits: Any, goals: GoalConstraints, place: int, can_hold: Any) -> float | None:
    """Return a bound near to the nearest at which all goals can be met; None where no bound of the goal is enough."""
    goal: Goal = goals.goals[place]
    if goal.confidence is not None:
        return None
    low, high = goal_range(goal)
    loosest = high if goal.sense == "<=" else low
    if not np.isfinite(loosest) or not can_hold(_at(limits, goals, place, loosest)):
        return None
    missed, met = goal.bound, loosest
    for _ in range(_MOST_STEPS):
        middle = (missed + met) / 2
        missed, met = (missed, middle) if can_hold(_at(limits, goals, place, middle)) else (middle, met)
    return float(met)
