"""How goals fare on given predictions."""

import math
from typing import Any, NamedTuple

from counterpoise.goals.binding import PreparedPredictions
from counterpoise.solvers.linear_program import FEASIBLE


class GoalCheck(NamedTuple):
    """How a goal fares on given predictions."""

    goal: Any  # a Goal
    value: float  # of the left side; NaN where it divides 0 by 0
    bound: float  # the value of the right side
    violation: float  # by how much the value misses the bound, 0 where the goal holds; NaN where there are no such rows
    holds: bool
    worst: str = ""  # of several rates the one that the value is of
    ramp: "GoalCheck | None" = None  # the same of the ramp rates that a classifier was trained with, where it was
    note: str = ""  # of which rows there are none, where the goal asks for them
    left_out: tuple[str, ...] = ()  # groups or classes with fewer rows than min_rows asks for

    def __str__(self) -> str:
        if math.isnan(self.violation):
            return f"{self.goal}: cannot be evaluated. {self.note}."
        verdict = "holds" if self.holds else f"missed by {self.violation:.4g}"
        at = f": {self.worst}" if self.worst else ""
        ramp = "" if self.ramp is None else f"; ramp rates {self.ramp.value:.4g}, bound {self.ramp.bound:.4g}"
        small = f"; left out: {', '.join(self.left_out)}" if self.left_out else ""
        value = "0 / 0" if math.isnan(self.value) else f"{self.value:.4g}"
        return f"{self.goal}: {verdict} ({value}, bound {self.bound:.4g}{at}{ramp}{small})"


def check_part(part: Any, prepared: PreparedPredictions) -> GoalCheck:
    """Evaluate a goal on one rate or ratio."""
    value, bound = part.left.at(prepared), part.right.at(prepared)
    if part.compares_ratios:
        holds = not part.left.exceeds(bound, part.sense, prepared)
    else:
        holds = part.linear.at(prepared) <= FEASIBLE * part.linear.size
    return GoalCheck(part, value, bound, 0.0 if holds else abs(value - bound), holds)


def how_far_beyond(check: GoalCheck) -> float:
    """Return by how much the value is beyond the bound, negative where it is inside; no value is far inside."""
    beyond = check.goal.sign * (check.value - check.bound)
    return -math.inf if math.isnan(beyond) else beyond
