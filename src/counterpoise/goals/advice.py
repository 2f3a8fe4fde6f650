"""What to offer where goals conflict: bounds that can be met, with every other goal kept.

A goal is a linear constraint on a mixture, or on predictions, whose row and bound are affine in the goal's own bound.
So the nearest bound of one goal beside all others is the least ratio of two linear functions: a linear program, exact
for rates and for ratios however small their denominators. Goals with a confidence move in steps and are searched by
bisection. Every bound offered was tried: with it in place the constraints can hold; and with one that is tighter by
``NEAREST`` of its scale they are shown to conflict, or it is not called proven.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from counterpoise._base.types import FloatArray, IntArray
from counterpoise.goals.expressions import Goal
from counterpoise.goals.infeasible import NEAREST, InfeasibleGoals, bound_scale, bound_step, power_of_size, round_safely
from counterpoise.solvers.conflicts import Domain, can_hold, find_conflict, least_point, least_relaxation
from counterpoise.solvers.linear_program import FEASIBLE

_DIGITS, _DECIMALS = 10, 12  # to which a bound is offered, where that can be met; decimals in parts of its goal's size
# Parts of a bound's scale that a solver may have missed by, of which the least that is enough is taken.
_ROOM = (0.0, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6)
_DOUBLINGS = 40
_HALVINGS = 30  # of an interval: its end is then known to nine digits
_PASSES = 6  # of the search for a joint change where ratios take part
_LONGER = (1.0, 1 + 1e-8, 1 + 1e-5, 2.0, 4.0, 16.0, 256.0)  # joint moves, where they are not quite enough

BoundChanges = Mapping[int, float]  # other numbers for the right sides of some goals, by place


class Constraints(NamedTuple):
    """Goals as ``matrix @ x <= bounds`` for x in a domain; a goal may have several rows."""

    matrix: Any
    bounds: FloatArray
    scale: FloatArray
    domain: Domain
    owners: IntArray  # the place of the goal that each row belongs to

    def can_hold(self) -> bool:
        """Return whether they can hold together."""
        return can_hold(self.matrix, self.bounds, scale=self.scale, domain=self.domain)

    def conflict(self) -> tuple[list[int], float] | None:
        """Return the places of goals that cannot hold together and their least violation, or None where all can."""
        conflict = find_conflict(self.matrix, self.bounds, scale=self.scale, domain=self.domain, owners=self.owners)
        if conflict is None:
            return None
        return np.unique(self.owners[conflict.members]).tolist(), conflict.least_violation

    def row(self, number: int) -> FloatArray:
        """Return the entries of one row."""
        row = self.matrix[[number]]
        return np.asarray(row.toarray() if hasattr(row, "toarray") else row, dtype=np.float64).ravel()


class AdjustableGoals(Protocol):
    """Goals as constraints, for any numbers on their right sides."""

    @property
    def goals(self) -> tuple[Goal, ...]: ...
    def constraints(self, bounds: BoundChanges) -> Constraints: ...


def explain(limits: AdjustableGoals) -> InfeasibleGoals | None:
    """Return which goals conflict and what could be met instead, or None where all can hold together."""
    conflict = limits.constraints({}).conflict()
    return None if conflict is None else advise(limits, *conflict)


def advise(
    limits: AdjustableGoals, places: Sequence[int], least_violation: float, *, proven: bool = True
) -> InfeasibleGoals:
    """Return what could be met instead of some goals that cannot hold together."""
    goals = limits.goals
    nearest = {place: nearest_bound(limits, place, {}) for place in places}
    reachable = {place: bound for place, bound in nearest.items() if bound is not None}
    single = {goals[place]: bound for place, bound in reachable.items()}
    joint = {} if single else {goals[place]: bound for place, bound in joint_bounds(limits).items()}
    members = [goals[place] for place in places]
    held_by: dict[Goal, tuple[Goal, ...]] = {}  # without the goal itself: none where it conflicts with models alone
    nearest_proven = proven
    for place, bound in reachable.items():
        conflict = limits.constraints({place: tighten_bound(goals[place], bound)}).conflict()
        nearest_proven &= conflict is not None
        held_by[goals[place]] = tuple(goals[other] for other in (conflict or ([],))[0] if other != place)
    if any(goal.is_ratio for goal in members):  # whose rows are not in the unit of the bound
        least_violation = min((abs(bound - goal.bound) for goal, bound in single.items()), default=least_violation)
    return InfeasibleGoals(
        members,
        least_violation,
        single,
        joint_bounds=joint,
        held_by=held_by,
        proven=proven,
        nearest_proven=nearest_proven,
    )


def tighten_bound(goal: Goal, bound: float) -> float:
    """Return a bound that is tighter by so little that where it cannot be met, the other is proven to be nearest."""
    return bound - goal.sign * NEAREST * bound_scale(goal, bound)


def nearest_bound(limits: AdjustableGoals, place: int, others: BoundChanges) -> float | None:
    """Return the nearest bound of a goal that can be met beside all others, or None where there is none."""

    def is_met(bound: float) -> bool:
        return limits.constraints({**others, place: bound}).can_hold()

    goal = limits.goals[place]
    if goal.confidence is not None or goal.has_parts:
        nearest = bisect_bound(goal, is_met)
    else:
        now, bound = limits.constraints(others), others.get(place, goal.bound)
        (row,) = np.flatnonzero(now.owners == place).tolist()
        slope = _slope(limits, row, {**others, place: bound}, now)
        amount = least_relaxation(now.matrix, now.bounds, row, slope, scale=now.scale, domain=now.domain)
        nearest = None if amount is None else bound + goal.sign * amount
    if nearest is None:
        return None
    return _first_reachable(goal, max(nearest, goal.bound) if goal.sense == "<=" else min(nearest, goal.bound), is_met)


def _slope(limits: AdjustableGoals, row: int, bounds: BoundChanges, now: Constraints) -> tuple[FloatArray, float]:
    """Return what a unit of the goal's bound takes from the entries of one of its rows and adds to the row's bound."""
    place = int(now.owners[row])
    goal = limits.goals[place]
    if not goal.is_ratio:
        return np.zeros(now.matrix.shape[1]), 1.0
    step = bound_step(goal.with_bound(bounds[place]))
    moved = limits.constraints({**bounds, place: bounds[place] + goal.sign * step})
    return (now.row(row) - moved.row(row)) / step, float(moved.bounds[row] - now.bounds[row]) / step


def _first_reachable(goal: Goal, nearest: float, is_met: Callable[[float], bool]) -> float | None:
    """Return the bound, shortened where that can be met, with as little more room as it needs."""
    decimals = _DECIMALS - power_of_size(goal)
    for room in _ROOM:
        bound = nearest + goal.sign * room * bound_scale(goal, nearest)
        for candidate in (float(f"{round(bound, decimals):.{_DIGITS}g}"), bound):
            if is_met(candidate):
                return candidate
    return None


def bisect_bound(goal: Goal, is_met: Callable[[float], bool]) -> float | None:
    """Return the nearest bound that is met, where it is not affine in what must be solved; None where none is."""
    step = bound_scale(goal, goal.bound)
    for _ in range(_DOUBLINGS):
        if is_met(goal.bound + goal.sign * step):
            break
        step *= 2
    else:
        return None
    impossible, possible = goal.bound, goal.bound + goal.sign * step
    for _ in range(_HALVINGS):
        middle = (impossible + possible) / 2
        impossible, possible = (impossible, middle) if is_met(middle) else (middle, possible)
    return possible


def joint_bounds(limits: AdjustableGoals) -> dict[int, float]:
    """Return bounds for as few goals as it takes that can be met together, by the least sum of moves.

    That sum is one linear program, in which each move counts in parts of its goal's scale. Ratios enter it with their
    denominators as they were in the solution before, and the best of a few passes is taken; of a goal with several rows
    it is the sum over them. Then each bound is drawn in as far as the others let it, as printed.
    """
    goals = limits.goals
    sizes = [goal.scale for goal in goals]
    moves = min(
        _joint_moves(limits), key=lambda one: sum(move / sizes[place] for place, move in one.items()), default={}
    )
    bounds: dict[int, float] = {}
    for factor in _LONGER:  # goals with a confidence go in steps
        longer = {place: goals[place].bound + goals[place].sign * move * factor for place, move in moves.items()}
        if limits.constraints(longer).can_hold():
            bounds = longer
            break
    before = None
    while bounds != before:  # each round draws bounds in, by whole digits
        before = dict(bounds)
        for place in before:
            nearest = nearest_bound(limits, place, bounds)
            if nearest is None:
                return {}
            bounds[place] = round_safely(goals[place], nearest)
    return {place: bound for place, bound in bounds.items() if bound != goals[place].bound}


def _joint_moves(limits: AdjustableGoals) -> list[BoundChanges]:
    """Return by how much which goals must move together, one answer for each pass over the denominators of ratios."""
    now = limits.constraints({})
    n_rows = now.bounds.size
    own_bounds = [{place: limits.goals[place].bound} for place in now.owners.tolist()]
    slopes = [_slope(limits, row, bounds, now) for row, bounds in enumerate(own_bounds)]
    rows = np.array([row for row, _ in slopes])
    constants = np.array([constant for _, constant in slopes])
    size = np.abs(rows).max(axis=1) if now.domain == "simplex" else np.abs(rows).sum(axis=1)
    divisors = size + np.abs(constants)
    divisors = np.where(divisors > 0, divisors, 1.0)
    sizes = np.array([limits.goals[place].scale for place in now.owners.tolist()])
    passes: list[BoundChanges] = []
    for _ in range(_PASSES if rows.any() else 1):
        prices = 1.0 / divisors / sizes
        values = least_point(now.matrix, now.bounds, prices, rows, scale=now.scale, domain=now.domain)
        excess = values[:n_rows] - now.bounds
        moved = np.flatnonzero(excess > FEASIBLE * now.scale)
        at_point = values[n_rows:] + constants
        if (at_point[moved] <= 0).any():
            break  # a ratio without a denominator: no bound is enough there
        moves: dict[int, float] = {}
        for row in moved.tolist():
            place = int(now.owners[row])
            moves[place] = max(moves.get(place, 0.0), float(excess[row] / at_point[row]))
        passes.append(moves)
        divisors = np.where(at_point > 0, at_point, divisors)
    return passes
