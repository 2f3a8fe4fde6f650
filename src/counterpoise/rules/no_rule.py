"""The error where no single rule meets the goals: which goals conflict, and the nearest bounds that one rule can meet.

Rates of one rule move in steps, so bounds that a mixture of rules can meet may be out of reach. The bounds offered here
are met by a rule that was found, and are the nearest to within ``_NEAR`` of what a search over rules finds.
"""

from collections.abc import Callable, Sequence

import numpy as np

from counterpoise.goals import Goal, InfeasibleGoals
from counterpoise.goals.infeasible import SINGLE_RULE, bound_scale
from counterpoise.rules.choosing import PoolPredictions

_NEAR = 1e-3  # of its scale: how near to the nearest bound that is found the offered one is
_MOST_STEPS = 30  # of the search for a bound
_MOST_GOALS = 8  # of which each is left out in turn, to find a smaller set that conflicts

Find = Callable[
    [tuple[Goal, ...]], PoolPredictions | None
]  # what a rule that meets goals says; None where none was found


def no_single_rule(
    goals: tuple[Goal, ...],
    find: Find,
    violation: float,
    *,
    mixed: InfeasibleGoals | None = None,
    hints: Sequence[str] = (),
    proven: bool = False,
) -> InfeasibleGoals:
    """Return the error for goals that no single rule meets, with the nearest bounds that one rule can meet.

    Parameters
    ----------
    goals : tuple of Goal
    find : callable
        Given goals, it returns what the best single rule that meets them says about all rows, or None.
    violation : float
        The total by which the nearest rule misses the goals.
    mixed : InfeasibleGoals, optional
        The same of all mixtures of rules, where they cannot meet the goals either: one rule cannot meet tighter bounds.
    hints : sequence of str
        What else would meet them, a sentence each.
    proven : bool
        Whether it is proven that no single rule meets the goals.
    """
    conflict = _conflict(goals, find) if mixed is None else mixed.conflict
    beyond = {} if mixed is None else mixed.nearest_bounds
    bounds = {goal: _nearest_bound(goals, goal, find, beyond.get(goal, goal.bound)) for goal in conflict}
    offered = {goal: bound for goal, bound in bounds.items() if bound is not None}
    return InfeasibleGoals(conflict, violation, offered, proven, nearest_proven=False, kind=SINGLE_RULE, hints=hints)


def _conflict(goals: tuple[Goal, ...], find: Find) -> tuple[Goal, ...]:
    """Return goals that conflict, without those that can be left out one after the other."""
    kept = goals
    for goal in goals if len(goals) <= _MOST_GOALS else ():
        fewer = tuple(one for one in kept if one is not goal)
        if fewer and find(fewer) is None:
            kept = fewer
    return kept


def _nearest_bound(goals: tuple[Goal, ...], goal: Goal, find: Find, missed: float) -> float | None:
    """Return the nearest bound of a goal with which a rule meets all goals; None where its bound alone cannot do it.

    No rule meets a bound tighter than ``missed``. From there the bound is loosened in growing steps until one does.
    """
    free = find(tuple(one for one in goals if one is not goal))
    if free is None or goal.confidence is not None:  # what a confidence asks for is not told by the rate alone
        return None
    met = _reached(goal, free)
    step = goal.sign * _NEAR * bound_scale(goal, missed)
    for _ in range(_MOST_STEPS):
        if abs(met - missed) <= _NEAR * bound_scale(goal, met):
            break
        tried = goal.with_bound(missed + step if abs(step) < abs(met - missed) / 2 else (missed + met) / 2)
        found = find(tuple(tried if one is goal else one for one in goals))
        if found is None:
            missed, step = tried.bound, 2 * step
        else:
            met, step = _reached(goal, found), step / 2
    return met


def _reached(goal: Goal, said: PoolPredictions) -> float:
    """Return the tightest bound of a goal that decisions meet."""
    (check,) = said.answers.checks((goal,), np.ones(1))
    return float(goal.bound + goal.sign * check.violation)
