"""How far a rate can reach, whatever the data and the predictions, and bounds that lie beyond."""

import math
from collections.abc import Iterable

from counterpoise.goals.class_rates import COST
from counterpoise.goals.expressions import Rate, Ratio, Several
from counterpoise.goals.goal import Goal
from counterpoise.goals.infeasible import PERCENT, InfeasibleGoals
from counterpoise.goals.kinds import fractions
from counterpoise.goals.terms import Term
from counterpoise.goals.wording import written_number
from counterpoise.solvers.linear_program import FEASIBLE
from counterpoise.theory.confidence import Bounds


def check_reach(goals: Iterable[Goal], *, trains: bool) -> None:
    """Refuse goals whose bound no rate can have.

    One that always holds is refused anywhere; one that never does where models would be trained for it, as choosing
    among models that there are proves it anyway, and says what could be met.

    Examples
    --------
    >>> from counterpoise.goals import recall
    >>> from counterpoise.goals.reach import check_reach
    >>> check_reach([recall("train") <= 80], trains=True)
    Traceback (most recent call last):
    ...
    ValueError: The goal recall(train) <= 80 asks for nothing: it is about what is from 0 to 1. A share is a number ...
    """
    for goal in goals:
        low, high = reach_of(goal)
        allowed = FEASIBLE * max(goal.scale, abs(goal.bound))
        nearest = low if goal.sense == "<=" else high
        is_beyond = goal.bound < low - allowed if goal.sense == "<=" else goal.bound > high + allowed
        if is_beyond and trains:
            raise InfeasibleGoals([goal], abs(goal.bound - nearest))
        if goal.bound > high + allowed if goal.sense == "<=" else goal.bound < low - allowed:
            ends = f"from {written_number(low)} to {written_number(high)}"
            raise ValueError(f"The goal {goal} asks for nothing: it is about what is {ends}. {PERCENT}")


def reach_of(goal: Goal) -> Bounds:
    """Return between which numbers a goal's left side is, less the rates on its right."""
    left = goal.left
    if isinstance(left, Several):
        reached = [_reach(member) for member in left.sample]
        low, high = min(one.low for one in reached), max(one.high for one in reached)
        return Bounds(max(low, 0.0), high if left.sense == "<=" else 1.0) if left.sense else Bounds(low, high)
    return _reach(left - Rate(0.0, goal.right.terms) if isinstance(left, Rate) else left)


def _reach(expression: Rate | Ratio) -> Bounds:
    if isinstance(expression, Rate):
        ends = [_reach_of_term(term) for term in expression.terms]
        low, high = (expression.constant + sum(one[side] for one in ends) for side in (0, 1))
        return Bounds(low, high)
    parts = [fractions(side) for side in (expression.numerator, expression.denominator)]
    is_plain = not expression.numerator.constant and not expression.denominator.constant
    if not is_plain or any(len(part) != 1 for part in parts) or (parts[0][0].top < 0).any():
        return Bounds(-math.inf, math.inf)
    return Bounds(0.0, 1.0 if (parts[0][0].top <= parts[1][0].top).all() else math.inf)


def _reach_of_term(term: Term) -> Bounds:
    if term.metric.name == COST and term.metric.details:  # of its counts one at most is about a row
        amounts = [term.coefficient * count.coefficient for count in term.metric.counts]
        return Bounds(min(0.0, *amounts), max(0.0, *amounts))
    tops = [part.top[part.bottom > 0] for part in fractions(Rate(0.0, (term,)))]
    return Bounds(float(sum(top.min() for top in tops)), float(sum(top.max() for top in tops)))
