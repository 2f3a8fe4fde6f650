"""Ratios as objectives: the best precision or F1 of one rule or of a mixture, by programs with a linear objective.

For a ratio ``N / D`` whose denominator is never negative, the rules that are better than one with the value t are those
with ``N - t D < 0``. So the least ``N - t D`` inside of the goals either gives a better rule, whose value is the next
t, or proves that there is none (Dinkelbach 1967). The values of t fall faster and faster; five or so are enough. Each
program has the objective

    t + (N - t D) / D(best)

which is in the unit of the ratio and touches it at the best rule so far: gaps, prices of goals and costs of margins are
those of the ratio itself. A rule whose denominator is 0 has no value, and is not chosen.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from counterpoise.goals import Rate, Ratio
from counterpoise.goals.rates import is_maximized
from counterpoise.rules.choosing import FIXED, Problem, value_of
from counterpoise.rules.goal_rows import linear_rate
from counterpoise.theory.risks import CVaR

_EXACT = 1e-9  # gap of each program, in parts of its unit
_MOST_STEPS = 60
_BETTER = 1e-12  # part of a value by which another one must be below it to be better
_ZERO = 1e-9  # part of its size below which a denominator is rounding
_LEAST = 1e-3  # part of the denominator of the best rule: what the lower bound covers
_MOST_MARGINED = 3  # choices with margins: each is the best for the value of the one before
COVERS = ", with a denominator of at least a thousandth of its own"


class RatioPoint(NamedTuple):
    """A solution with its ratio, of which less is better."""

    solution: Any
    value: float  # infinite where the denominator is 0
    bottom: float  # the denominator
    below: float = -np.inf  # no other solution has less of the objective that it was solved for


class RatioSearch(NamedTuple):
    """A problem whose objective is a ratio, and how it is solved for linear objectives."""

    problem: Problem  # without a confidence
    ratio: Ratio  # to be minimised
    solve: Callable[[Problem], tuple[Any, float]]  # a solution, and what no other is below
    measure: Callable[[Any, Rate], float]  # the value of a rate for a solution

    @classmethod
    def of(cls, problem: Problem, solve: Any, measure: Any) -> "RatioSearch":
        """Return the search for a problem: of what is maximised, the opposite is minimised."""
        ratio = problem.objective
        assert isinstance(ratio, Ratio)  # noqa: S101 - the caller checks it
        plain = problem._replace(confidence=None, tol=_EXACT, keeps_default_threshold=False)
        return cls(plain, -ratio if is_maximized(ratio) else ratio, solve, measure)

    @property
    def sign(self) -> float:
        """Return by what values are multiplied to be those of the objective as it is written."""
        return -1.0 if is_maximized(self.problem.objective) else 1.0

    def at(self, objective: Rate | CVaR, **changes: Any) -> RatioPoint:
        """Return the best solution for an objective that programs can have."""
        solution, lower = self.solve(self.problem._replace(objective=objective, **changes))
        return self.point(solution, lower)

    def point(self, solution: Any, lower: float = -np.inf) -> RatioPoint:
        """Return a solution with its ratio."""
        rates = self.ratio.numerator, self.ratio.denominator
        top, bottom = (self.measure(solution, rate) for rate in rates)
        has_value = bottom > _ZERO * rates[1].whole_size
        if not has_value and top < -_ZERO * rates[0].whole_size:
            raise ValueError(
                f"The objective {self.problem.objective} has no best value here: inside of the goals its denominator, "
                f"{rates[1]}, can be as near to 0 as you like while its numerator is not. Set a goal that keeps it "
                f"above 0, such as {rates[1]} >= 0.01."
            )
        return RatioPoint(solution, top / bottom if has_value else np.inf, bottom, lower)

    def start(self) -> RatioPoint:
        """Return a solution that has a value: that of the least error, else that of the largest denominator."""
        point = self.at(CVaR(1.0))
        if point.value == np.inf:
            point = self.at(-1 * self.ratio.denominator)
        if point.value == np.inf:
            raise ValueError(
                f"The objective {self.problem.objective} has no value on these rows: its denominator, "
                f"{self.ratio.denominator}, is 0 for every rule inside of the goals. Use another objective, relax the "
                "goals, or pass rows that it counts."
            )
        return point

    def tangent(self, point: RatioPoint) -> Rate:
        """Return the linear objective that touches the ratio at a solution."""
        top, bottom = self.ratio.numerator, self.ratio.denominator
        return point.value + (top - point.value * bottom) * (1.0 / point.bottom)

    def minimize(self, point: RatioPoint, **changes: Any) -> tuple[RatioPoint, float]:
        """Return the best solution, beginning with one, and what no solution is below."""
        lower = -np.inf
        for _ in range(_MOST_STEPS):
            other = self.at(self.tangent(point), **changes)
            lower = point.value + min(other.below - point.value, 0.0) / _LEAST
            if other.value >= point.value - _BETTER * max(1.0, abs(point.value)):
                prices = other.solution.multipliers  # those at the value that was reached
                point = point._replace(solution=point.solution._replace(multipliers=prices))
                break
            point = other
        return point, min(lower, point.value)

    def with_margins(self, best: RatioPoint, confidence: Any) -> RatioPoint:
        """Return the solution whose goals hold on new rows, given the best one without margins."""
        margined = self.at(self.tangent(best), confidence=confidence)
        for _ in range(_MOST_MARGINED - 1):
            if margined.value == np.inf:
                return best._replace(solution=best.solution._replace(margins=margined.solution.margins))
            other = self.at(self.tangent(margined), confidence=confidence)
            if not other.value < margined.value or _level(other) < _level(margined):
                break
            margined = other
        return margined


def _level(point: RatioPoint) -> float:
    return point.solution.margins.confidence or 0.0


def solve_ratio(family: Any, problem: Problem) -> Any:
    """Return the best solution of a problem whose objective is a ratio, over the rules of a family.

    Its ``value`` is the ratio itself; where that is maximised, none is above ``value + gap``.

    Raises
    ------
    InfeasibleGoals
        If no rule meets the goals.
    ValueError
        If the ratio has no value, or no best one.
    """

    def solve(linear: Problem) -> tuple[Any, float]:
        solution = family.solve(linear)
        return solution, solution.value - solution.gap

    search = RatioSearch.of(problem, solve, lambda solution, rate: _value(family, solution, rate))
    best, lower = search.minimize(search.start())
    cost = best.solution.cost
    if problem.decision == FIXED and not any(goal.compares_ratios for goal in problem.goals):
        # what one rule costs beside the best mixture
        mixed, mixed_lower = search.minimize(best, decision="sticky")
        cost, lower = max(best.value - mixed.value, 0.0), max(lower, mixed_lower)
    has_margins = problem.confidence is not None and bool(problem.goals)
    chosen = search.with_margins(best, problem.confidence) if has_margins else best
    return chosen.solution._replace(
        value=search.sign * chosen.value,
        gap=max(chosen.value - lower, 0.0),
        cost=cost,
        certificate=f"{chosen.solution.certificate}{COVERS}",
    )


def _value(family: Any, solution: Any, rate: Rate) -> float:
    """Return a rate of a solution on the selection rows."""
    linear = linear_rate(family.predictions(solution.chosen).answers, rate)
    return linear.constant + float(linear.row @ solution.mixture)


class _Decided(NamedTuple):
    chosen: Any
    mixture: Any


def value_of_decisions(family: Any, problem: Problem, chosen: Any, mixture: Any) -> float:
    """Return the objective, a ratio or any other, of rules that were chosen on a family's selection rows."""
    if not isinstance(problem.objective, Ratio):
        return value_of(family.predictions(chosen), problem, mixture)
    search = RatioSearch.of(problem, None, lambda decided, rate: _value(family, decided, rate))
    return search.sign * search.point(_Decided(chosen, mixture)).value


def with_linear_objective(model: Any, problem: Problem) -> Problem:
    """Return the problem of a fitted classifier with a ratio replaced by what touches it at the model's decisions."""
    if not isinstance(problem.objective, Ratio):
        return problem
    search = RatioSearch.of(problem, None, lambda decided, rate: _value(model.family_, decided, rate))
    return problem._replace(objective=search.tangent(search.point(_Decided(model.chosen_rules(), model.mixture_))))
