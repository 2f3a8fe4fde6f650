"""A start inside the goals; or, where there is none, which goals conflict, with bounds in the goals' own units."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from counterpoise._base.types import FloatArray, IntArray
from counterpoise.goals.advice import BoundChanges, Constraints, bisect_bound, explain
from counterpoise.goals.bound_goals import BoundGoals, bind
from counterpoise.goals.expressions import Goal
from counterpoise.goals.infeasible import InfeasibleGoals, bound_scale, round_safely
from counterpoise.goals.tables import Table
from counterpoise.solvers.linear_program import FEASIBLE, constraint_scale
from counterpoise.solvers.ramp import RampOptions, RampProblem, RampState, minimize_ramp

_EVEN = 0.5  # the probability that a score of 0 stands for
_CANCELLED = 1e-12  # part of the weights below which their sum is rounding
_MARGIN = 1e-3  # by how much inside the goals a start is looked for, in parts of their units
_SEARCH = 25  # majorizations of a search
_STEP = 0.01  # the first move of a ratio's bound, in parts of its scale
_FURTHER = (1.0, 1.02, 1.1, 1.3, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)  # times a move that was not quite enough
_MAX_DELETIONS = 12  # goals among which the smallest conflict is looked for one by one


def stack_weights(bound: BoundGoals, names: list[str], sizes: Mapping[str, int]) -> sp.csr_array:
    """Return the goals' weights on the rows of all datasets, one below the other in the order of the names."""
    parts = [bound.weights.get(name, sp.csr_array((bound.owners.size, sizes[name]))) for name in names]
    return sp.csr_array(sp.hstack(parts))


class _AnyPredictions(NamedTuple):
    """Goals as constraints on predictions between 0 and 1, each its own variable."""

    bound: BoundGoals
    tables: Mapping[str, Table]

    @property
    def goals(self) -> tuple[Goal, ...]:
        return self.bound.goals

    def constraints(self, bounds: BoundChanges) -> Constraints:
        other = _with_bounds(self.bound, bounds, self.tables) if bounds else self.bound
        sizes = {name: self.tables[name].n_samples for name in other.weights}
        matrix = stack_weights(other, list(sizes), sizes)
        reach = np.asarray(abs(matrix).sum(axis=1)).ravel()
        return Constraints(
            matrix, other.bounds, constraint_scale(reach, other.bounds, other.sizes), "box", other.owners
        )


Rebuild = Callable[[BoundGoals], RampProblem]  # the same problem under goals with other bounds


def find_start(problem: RampProblem, bound: BoundGoals, tables: Mapping[str, Table], rebuild: Rebuild) -> FloatArray:
    """Return a point that meets the goals, or raise ``InfeasibleGoals``.

    The same decision for all rows, drawn with one probability, is tried first; then whether any predictions at all
    meet the goals; then points of least total violation, by majorization-minimization without the objective. That may
    end in a local minimum: a conflict that it reports was searched for, not proven. Bounds are offered that this search
    meets, so that a fit with them goes on.
    """
    constant = _constant_start(problem)
    if constant is not None:
        return constant
    searcher = _Searcher(problem)
    error = explain(_AnyPredictions(bound, tables))
    if error is None:
        search = searcher.least_violation(np.arange(problem.n_constraints))
        if search.state.violation <= FEASIBLE:
            return search.state.point
        error = searcher.as_error(bound, search)
    raise _Adviser(searcher, bound, tables, rebuild).with_bounds(error)


def _constant_start(problem: RampProblem) -> FloatArray | None:
    """Return a point without coefficients that meets the constraints, the most even one, where there is one."""
    slopes, sizes = (np.asarray(one.sum(axis=1)).ravel()[1:] for one in (problem.weights, abs(problem.weights)))
    slopes = np.where(np.abs(slopes) > _CANCELLED * sizes, slopes, 0.0)
    room = -problem.constants[1:]  # slopes * probability <= room
    if (room < -FEASIBLE * np.where(sizes > 0, sizes, 1.0))[slopes == 0].any():
        return None
    with np.errstate(divide="ignore", invalid="ignore"):  # where a slope is 0, which is left out below
        limits = room / slopes
    least = max(0.0, float(limits[slopes < 0].max(initial=0.0)))
    most = min(1.0, float(limits[slopes > 0].min(initial=1.0)))
    probability = float(np.clip(_EVEN, least, most))
    if least > most or (not problem.machine.fit_bias and probability != _EVEN):
        return None
    return np.append(np.zeros(problem.machine.size - 1), _EVEN - probability)


class _Search(NamedTuple):
    """The best point of a search, and the price of each constraint there."""

    state: RampState
    multipliers: FloatArray


class _Searcher:
    """Searches for points that meet some of the constraints of a problem.

    What a constraint may be exceeded by is in the units of rates, which lie from 0 to 1, as are the margins and the
    largest multiplier of ``minimize_ramp``.
    """

    def __init__(self, problem: RampProblem) -> None:
        self.problem = problem
        self._free: FloatArray | None = None

    def least_violation(self, members: IntArray) -> _Search:
        """Return the better of two searches, from the most even start and from the unconstrained solution."""
        problem = self.problem.only(members)
        constant = _constant_start(problem)
        if constant is not None:
            return _Search(problem.at(constant), np.zeros(members.size))
        best = _search_feasible(problem, np.zeros(problem.machine.size))
        if best.state.violation > FEASIBLE:
            if self._free is None:
                zero = np.zeros(self.problem.machine.size)
                self._free = minimize_ramp(self.problem.without_constraints(), zero, RampOptions()).state.point
            best = min(best, _search_feasible(problem, self._free), key=lambda one: one.state.violation)
        return best

    def as_error(self, bound: BoundGoals, search: _Search) -> InfeasibleGoals:
        """Return the error for goals that no known point meets, with the smallest conflict that a search finds."""
        # Those that are exceeded or have a price, if they alone are out of reach too; else all.
        members = np.flatnonzero((search.state.excess > FEASIBLE) | (search.multipliers > FEASIBLE))
        reduced = self.least_violation(members)
        if reduced.state.violation > FEASIBLE:
            search = reduced
        else:
            members = np.arange(self.problem.n_constraints)
        for candidate in members if members.size <= _MAX_DELETIONS else ():
            rest = members[members != candidate]
            reduced = self.least_violation(rest)
            if reduced.state.violation > FEASIBLE:  # without it the goals are still missed
                members, search = rest, reduced
        places = np.unique(bound.owners[members])
        violation = float(np.maximum(search.state.excess, 0.0) @ bound.units[members])
        return InfeasibleGoals([bound.goals[place] for place in places], violation, proven=False)

    def least_excess(self, one: int, others: IntArray) -> float | None:
        """Return the least known excess of one constraint where all others hold, or None if they do not."""
        start = self.least_violation(others).state
        if start.violation > FEASIBLE:
            return None
        problem = self.problem
        rows = np.concatenate([[one], others]) + 1
        swapped = RampProblem(problem.machine, problem.weights[rows], problem.constants[rows], problem.regularization)
        state = minimize_ramp(swapped, start.point, RampOptions()).state
        return max(state.value - problem.ridge(state.point), 0.0)


class _Adviser:
    """Finds bounds that the search for a start meets: what no classifier rules out, this kind may still miss."""

    def __init__(self, searcher: _Searcher, bound: BoundGoals, tables: Mapping[str, Table], rebuild: Rebuild) -> None:
        self.searcher, self.bound, self.tables, self.rebuild = searcher, bound, tables, rebuild

    def with_bounds(self, error: InfeasibleGoals) -> InfeasibleGoals:
        """Return the error with bounds for its goals, one at a time; for several together where that is no help."""
        places = [self.bound.goals.index(goal) for goal in error.conflict]
        nearest = {place: self._nearest(place, error) for place in places}
        single = {self.bound.goals[place]: bound for place, bound in nearest.items() if bound is not None}
        joint = {} if single else self._joint()
        # Proven where no predictions at all could meet more.
        beyond = {goal: round_safely(goal, bound) for goal, bound in error.nearest_bounds.items()}
        is_nearest = error.nearest_proven and all(beyond.get(goal) == bound for goal, bound in single.items())
        return error.replace(nearest_bounds=single, joint_bounds=joint, held_by={}, nearest_proven=is_nearest)

    def _nearest(self, place: int, error: InfeasibleGoals) -> float | None:
        goal, own = self.bound.goals[place], np.flatnonzero(self.bound.owners == place)
        others = np.flatnonzero(self.bound.owners != place)
        if goal.is_ratio or goal.has_parts:  # its excess is in other units than its bound, or of several rows
            first = goal.bound + goal.sign * _STEP * bound_scale(goal, goal.bound)
            guess = error.nearest_bounds.get(goal, first)
        else:
            excess = self.searcher.least_excess(int(own[0]), others)
            if excess is None:
                return None
            guess = _relaxed_bound(self.bound, place, excess * float(self.bound.units[own[0]]), self.tables)
        bounds = self._reachable_bounds({place: guess})
        return None if bounds is None else bounds[place]

    def _joint(self) -> dict[Goal, float]:
        """Return the bounds that the point of least total violation meets, unless a ratio is among those it misses."""
        excess = self.searcher.least_violation(np.arange(self.bound.owners.size)).state.excess
        worst, units = np.full(len(self.bound.goals), -np.inf), self.bound.units
        np.maximum.at(worst, self.bound.owners, excess * units)
        violated = np.unique(self.bound.owners[excess > FEASIBLE]).tolist()
        if any(self.bound.goals[place].is_ratio for place in violated):
            return {}
        guesses = {place: _relaxed_bound(self.bound, place, float(worst[place]), self.tables) for place in violated}
        bounds = self._reachable_bounds(guesses)
        return {} if bounds is None else {self.bound.goals[place]: bound for place, bound in bounds.items()}

    def _reachable_bounds(self, guesses: BoundChanges) -> BoundChanges | None:
        """Return the guesses as they would be printed, moved on until some point meets them."""
        for factor in _FURTHER:
            bounds = {}
            for place, guess in guesses.items():
                goal = self.bound.goals[place]
                bounds[place] = round_safely(goal, goal.bound + factor * (guess - goal.bound))
            problem = self.rebuild(_with_bounds(self.bound, bounds, self.tables))
            if _constant_start(problem) is not None:
                return bounds
            search = _Searcher(problem).least_violation(np.arange(problem.n_constraints))
            if search.state.violation <= FEASIBLE:
                return bounds
        return None


def _relaxed_bound(bound: BoundGoals, place: int, excess: float, tables: Mapping[str, Table]) -> float:
    """Return the bound of a goal at which its constraint is relaxed by what was missed."""
    goal = bound.goals[place]
    if goal.confidence is None:
        return goal.bound + goal.sign * excess

    def is_enough(limit: float) -> bool:
        relaxed, own = _with_bounds(bound, {place: limit}, tables), bound.owners == place
        return bool((relaxed.bounds[own] >= bound.bounds[own] + excess - FEASIBLE * bound.units[own]).all())

    nearest = bisect_bound(goal, is_enough)
    return goal.bound if nearest is None else nearest


def _with_bounds(bound: BoundGoals, bounds: BoundChanges, tables: Mapping[str, Table]) -> BoundGoals:
    """Return the goals with other numbers on the right side of some; those with a confidence still share the risk."""
    goals = [goal.with_bound(bounds.get(place, goal.bound)) for place, goal in enumerate(bound.goals)]
    return bind(goals, dict(tables), classes=np.array(bound.classes.labels))


def _search_feasible(problem: RampProblem, start: FloatArray) -> _Search:
    """Look for a feasible point by majorization-minimization without the objective."""
    plan = RampOptions(
        tol=1e-4,
        max_majorizations=_SEARCH,
        radius=1.0,
        focus=0.0,
        stop=lambda state: bool((state.excess <= _MARGIN).all()),
    )
    solution = minimize_ramp(problem.tighten(_MARGIN), start, plan)
    return _Search(problem.at(solution.state.point), solution.multipliers)
