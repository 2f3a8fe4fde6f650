"""Between which numbers the left side of a goal lies, whatever is decided."""

import math
from typing import Any

import numpy as np

from counterpoise._base.types import FloatArray
from counterpoise.goals.binding import Views, bind_rates
from counterpoise.goals.expressions import Goal, Rate, Ratio, Searched, WorstOf
from counterpoise.goals.rates import COST
from counterpoise.goals.terms import fractions
from counterpoise.theory.confidence import Bounds


def goal_range(goal: Goal, views: Views | None = None) -> Bounds:
    """Return between which numbers a goal's left side is, less the rates on its right; amounts are those of views."""
    left, ends = goal.left, []
    for member in (left - Rate(0.0, goal.right.terms),) if isinstance(left, Rate) else left.members():
        if isinstance(member, Searched):
            ends.append(member.bounds)
            continue
        if isinstance(member, Ratio):
            sides = member.numerator, member.denominator
            shares = [fractions(side) for side in sides]
            is_share = all(not side.constant and len(part) == 1 for side, part in zip(sides, shares, strict=True))
            if any(side.has_amounts for side in sides) or not is_share or (shares[0][0].top < 0).any():
                ends.append(Bounds(-math.inf, math.inf))
            else:
                ends.append(Bounds(0.0, 1.0 if (shares[0][0].top <= shares[1][0].top).all() else math.inf))
            continue
        if member.has_amounts:  # of which data have any
            ends.append(Bounds(-math.inf, math.inf) if views is None else _range_of_amounts(member, views))
            continue
        low = high = member.constant
        for term in member.terms:
            if term.metric.name == COST and term.metric.details:  # of its counts one at most is about a row
                parts = [np.array([0.0, *(term.coefficient * count.coefficient for count in term.metric.counts)])]
            else:
                parts = [part.top[part.bottom > 0] for part in fractions(Rate(0.0, (term,)))]
            low += float(sum(part.min() for part in parts))
            high += float(sum(part.max() for part in parts))
        ends.append(Bounds(low, high))
    low, high = min(one.low for one in ends), max(one.high for one in ends)
    if isinstance(left, WorstOf) and left.sense == "<=":  # the largest of its members, which is never below any
        return Bounds(max(0.0, *(one.low for one in ends)), high)
    return Bounds(max(low, 0.0), 1.0) if isinstance(left, WorstOf) and left.sense else Bounds(low, high)


def _range_of_amounts(rate: Rate, views: Views) -> Bounds:
    """Return the least and the largest value that decisions about some rows can give a rate."""
    bound = bind_rates([rate.resolve(views)], views)
    low, high = (sum(sign * least_sums(sign * own, views).item() for own in bound.weights.values()) for sign in (1, -1))
    return Bounds(low + bound.constants.item(), high + bound.constants.item())


def least_sums(weights: Any, views: Views) -> FloatArray:
    """Return the least that the weights of each limit can add up to: each row has one answer."""
    n_columns = views.classes.n_columns
    if n_columns == 1:
        return np.asarray(weights.minimum(0).sum(axis=1))
    rows = [weights[[place]].toarray().reshape(-1, n_columns).min(axis=1).sum() for place in range(weights.shape[0])]
    return np.array(rows)
