"""The error where no single rule meets the goals: the conflicting goals, and the nearest bounds that one rule can meet.

Rates of one rule move in steps, so one rule may miss bounds that a mixture of rules meets. Every bound offered here is
met by a known rule, and is within ``_NEAR`` or ``_ROUGH`` of the nearest that a search over rules can meet.
"""

from collections.abc import Callable, Sequence

import numpy as np

from counterpoise._base.budget import advice
from counterpoise.goals import Goal, InfeasibleGoals
from counterpoise.goals.infeasible import SINGLE_RULE, bound_scale
from counterpoise.goals.ranges import goal_range
from counterpoise.rules.choosing import PoolPredictions

_NEAR = 1e-3  # of its scale: distance of an offered bound from the nearest that the search can meet
_ROUGH = 1e-2  # the same where goals compare ratios: each step is then a search of the intervals in which these lie
_MOST_STEPS = 30  # of the search for a bound
_MOST_GOALS = 8  # of which each is left out in turn, to find a smaller set that conflicts

Find = Callable[
    [tuple[Goal, ...]], PoolPredictions | None
]  # the predictions of a rule that meets goals; None where there is none


def no_single_rule(
    goals: tuple[Goal, ...],
    find: Find,
    violation: float,
    *,
    mixed: InfeasibleGoals | None = None,
    hints: Sequence[str] = (),
    proven: bool = False,
    nearest: PoolPredictions | None = None,
) -> InfeasibleGoals:
    """Return the error for goals that no single rule meets, with the nearest bounds that one rule can meet.

    Parameters
    ----------
    goals : tuple of Goal
    find : callable
        Given goals, it returns the predictions of the best single rule that meets them, or None.
    violation : float
        The total by which the nearest rule misses the goals, where ``nearest`` cannot tell: in parts of their sizes.
    mixed : InfeasibleGoals, optional
        The error of all mixtures of rules, where none meets the goals either: one rule cannot meet tighter bounds.
    hints : sequence of str
        Other ways to meet the goals, a sentence each.
    proven : bool
        Whether it is proven that no single rule meets the goals.
    nearest : PoolPredictions, optional
        What the rule that misses the goals least predicts: the bounds that it meets can be met together.
    """
    conflict = _conflict(goals if mixed is None else mixed.conflict, find)
    beyond = {} if mixed is None else mixed.nearest_bounds
    offered: dict[Goal, float] = {}
    for goal in conflict:
        with advice():
            bound = _nearest_bound(goals, goal, find, beyond.get(goal, goal.bound))
            offered |= {} if bound is None else {goal: bound}
    checks = () if nearest is None else nearest.answers.checks(goals, np.ones(1))
    missed = {one.goal: one.goal.bound + one.goal.sign * one.violation for one in checks if one.violation > 0}
    shows_all = all(goal.confidence is None for goal in goals)  # else rates alone do not show which bounds are met
    joint = missed if shows_all else {}
    if len(joint) == 1:  # then it is a bound for one goal too, perhaps a nearer one
        ((goal, bound),) = joint.items()
        joint = {}
        if abs(bound - goal.bound) < abs(offered.get(goal, np.inf) - goal.bound):
            offered[goal] = bound
    if missed and shows_all:  # in the units of the bounds
        violation = sum(one.violation for one in checks if one.violation > 0)
    moves = [abs(bound - goal.bound) for goal, bound in offered.items() if goal.confidence is None]
    violation = min([violation, *moves])
    return InfeasibleGoals(
        conflict,
        violation,
        offered,
        joint_bounds=joint,
        proven=proven,
        nearest_proven=False,
        kind=SINGLE_RULE,
        hints=hints,
    )


def _conflict(goals: tuple[Goal, ...], find: Find) -> tuple[Goal, ...]:
    """Return goals that conflict, without those that can be left out one after the other."""
    conflict = goals
    for goal in goals if len(goals) <= _MOST_GOALS else ():
        fewer = tuple(one for one in conflict if one is not goal)
        with advice():
            if fewer and find(fewer) is None:
                conflict = fewer
    return conflict


def _nearest_bound(goals: tuple[Goal, ...], goal: Goal, find: Find, out_of_reach: float) -> float | None:
    """Return the nearest bound of a goal with which a rule meets all goals; None where its bound alone cannot do it.

    No rule meets a bound tighter than ``out_of_reach``. From there the bound is loosened in growing steps.
    """
    free = find(tuple(one for one in goals if one is not goal))
    if free is None:
        return None
    is_sure = goal.confidence is not None  # the rate alone does not show which bound a confidence needs
    reached = goal_range(goal)[goal.sense == "<="] if is_sure else _tightest_bound(goal, free)
    if is_sure and (np.isinf(reached) or find(_with(goals, goal, reached)) is None):
        return None
    near = _ROUGH if any(one.compares_ratios for one in goals) else _NEAR
    step = goal.sign * near * bound_scale(goal, out_of_reach)
    for _ in range(_MOST_STEPS):
        if abs(reached - out_of_reach) <= near * bound_scale(goal, reached):
            break
        is_small = abs(step) < abs(reached - out_of_reach) / 2
        bound = out_of_reach + step if is_small else (out_of_reach + reached) / 2
        predictions = find(_with(goals, goal, bound))
        if predictions is None:
            out_of_reach, step = bound, 2 * step
        else:
            reached, step = bound if is_sure else _tightest_bound(goal, predictions), step / 2
    return reached


def _with(goals: tuple[Goal, ...], goal: Goal, bound: float) -> tuple[Goal, ...]:
    return tuple(one.with_bound(bound) if one is goal else one for one in goals)


def _tightest_bound(goal: Goal, predictions: PoolPredictions) -> float:
    """Return the tightest bound of a goal that decisions meet."""
    (check,) = predictions.answers.checks((goal,), np.ones(1))
    return float(goal.bound + goal.sign * check.violation)
