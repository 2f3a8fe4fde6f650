"""Equalities: a rate that must be a number, or another rate, up to a tolerance."""

from dataclasses import dataclass
from typing import Any

from counterpoise._base.checks import check_number
from counterpoise.goals.binding import Views
from counterpoise.goals.expressions import Expression, Goal, Rate, Ratio, WorstOf, as_rate

TOLERANCE = 0.005  # where none is given


@dataclass(frozen=True, eq=False, repr=False)
class Distance(WorstOf):
    """How far a rate is from what an equality asks for, below or above; the tolerance is a limit on it.

    An equality is so one goal, with two limits for each rate, one price and one verdict.
    """

    rate: Rate | Ratio | WorstOf  # of several rates each must be equal
    target: Rate
    sense = "<="
    comparison = "+-"
    least = 0.0

    def members(self, views: Views | None = None) -> tuple[Rate | Ratio, ...]:
        target: Any = self.target if self.target.terms else self.target.constant
        pairs = ((one - target, target - one) for one in self.rate.members(views))
        return tuple(side for pair in pairs for side in pair)

    def describe_part(self, place: int, value: float, views: Views) -> str:
        if self.target.terms:
            return super().describe_part(place, value, views)
        above = -value if place % 2 else value
        return f"{self.rate.members(views)[place // 2]} = {self.target.constant + above:.4g}"

    def left_out(self, views: Views) -> tuple[str, ...]:
        return self.rate.left_out(views) + self.target.left_out(views)

    def key(self) -> tuple[Any, Any]:
        return self.rate, self.target

    def __str__(self) -> str:
        return f"{self.rate} == {self.target}"


def equal(rate: Rate | Ratio | WorstOf, target: Any, *, tolerance: float = TOLERANCE) -> Goal:
    """Ask that a rate be a number, or another rate, up to a tolerance.

    Parameters
    ----------
    rate : Rate, Ratio, or every_group(...) or every_class(...)
        Of several rates, each must be equal.
    target : float or Rate
        A ratio can be equal to a number only.
    tolerance : float >= 0, default=0.005
        By how much the rate may be below or above. Rows are whole: thresholds meet a tolerance of 0 by chance only.

    Returns
    -------
    Goal
        One goal with two limits. Its ``bound`` is the tolerance, and its value the distance from the target, so that
        advice, prices and trade-offs are about the tolerance. It gets no margin where rules are chosen so that goals
        hold on new rows: there is no safe side.

    Examples
    --------
    >>> from counterpoise.goals import Table, equal, parse_goal, selection_rate
    >>> goal = equal(selection_rate(), 0.2, tolerance=0.01)
    >>> print(goal)
    positive_rate == 0.2 +- 0.01
    >>> goal == parse_goal("selection_rate == 0.2 +- 0.01")
    True
    >>> print(goal.evaluate([1, 0, 0, 0], Table(None, y=[1, 0, 0, 1])))
    positive_rate == 0.2 +- 0.01: missed by 0.04 (0.05, bound 0.01: positive_rate = 0.25)
    """
    if not isinstance(rate, Expression) or (isinstance(rate, Rate) and not rate.terms):
        raise TypeError(f"equal takes a rate first, as in equal(recall(), 0.8); got {rate!r}.")
    if isinstance(rate, WorstOf) and rate.sense:
        raise ValueError(
            f"{rate} can be bounded with {rate.sense} only, and cannot be equal to a number: the opposite bound would "
            "hold as soon as one of its parts meets it, which is not linear."
        )
    number = None if isinstance(target, (Ratio, WorstOf)) else as_rate(target)
    if number is None or (number.terms and not isinstance(rate, Rate)):
        kinds = "a number or another rate" if isinstance(rate, Rate) else "a number only, as it is linear only then"
        raise TypeError(f"{rate} can be equal to {kinds}; got {target!r}.")
    width = check_number(tolerance, "tolerance", "[0, inf)", "by how much a rate may differ from what it is equal to")
    if isinstance(rate, Rate) and not (rate - number).terms:
        raise ValueError(f"An equality needs rates that do not cancel; got {rate} == {number}.")
    return Goal(Distance(rate, number), "<=", Rate(width))
