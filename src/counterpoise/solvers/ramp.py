"""Linear classifiers under constraints on ramp rates, by majorization-minimization.

Problem 2 of Goh, Cotter, Gupta and Friedlander (2016). A row with score z is predicted positive with probability
``ramp(z) = max(0, min(1, 1/2 + z))``. Every rate is linear in these, so objective and constraints are::

    min over coefficients, bias of  regularization / 2 * |coefficients|^2 + weights_0 @ ramp(scores)
    subject to                      constants_j + weights_j @ ramp(scores) <= 0.

Ramps are not convex. Around the scores of the current point each is bounded from above by a hinge or by 1, exactly
there (their Figure 1); the convex program that results is solved through its multipliers (``bundle.maximize_concave``),
each of whose steps is a support vector machine (``svm``); and so on from its solution (their Algorithm 1). The current
point takes part in every convex program, so from a start that breaks no constraint no step raises the objective, and
the result breaks none, whatever accuracy the solvers reach.

``decide`` then chooses the threshold on the scores at which the decisions meet the constraints that the ramps meet.
Training uses a continuous rate, in which a row counts with probability ``ramp(score)``. Decisions by
``score > threshold`` have other rates, and where many scores lie on the slope of the ramp very different ones: on
Census-Income the ratio of two ramp rates was 0.93, that of the decisions by the sign 0.36.

With the scores fixed, the threshold is the only unknown, and sorted scores have at most one cut between two neighbours.
Objective and constraints are linear in the decisions, so prefix sums have their values at every cut: one sort, then one
pass (``Sweep``). Where no cut will do, the constraints on the ramps are tightened by what the decisions exceed them by,
and the classifier is trained again from where it is, a few times (``decide``).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from counterpoise._base.types import ArrayLike, BoolArray, FloatArray, IntArray
from counterpoise.solvers.bundle import OracleAnswer, maximize_concave
from counterpoise.solvers.linear_program import FEASIBLE, HIGHS_FAILED, solve_linear_program
from counterpoise.solvers.svm import solve_kernel_svm, solve_svm
from counterpoise.solvers.svm_problem import Gram, SVMSolution, check_gram

__all__ = ["KernelMachine", "LinearMachine", "Majorization", "RampProblem", "RampSolution", "minimize_ramp", "ramp"]

_HALF = 0.5
_NEARLY = 1e-6  # a point may exceed by this for a while, where the room inside is next to nothing; rates are of size 1
_LOOSE = 0.1  # accuracy of the first convex program, in units of the rates
_USED = 1e-6  # shares below this are forgotten
_CLOSEST = 0.5  # of the tolerance: the accuracy of the last convex programs
_TIGHTER = 0.2  # of the last improvement: the accuracy of the next one


def ramp(scores: FloatArray) -> FloatArray:
    """Return the probability of a positive prediction.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.solvers.ramp import ramp
    >>> ramp(np.array([-2.0, -0.25, 0.0, 0.7])).tolist()
    [0.0, 0.25, 0.5, 1.0]
    """
    return np.clip(_HALF + scores, 0.0, 1.0)


class LinearMachine:
    """Rows as they are, dense or CSR, whose scores are linear in a point, and the support vector machine on them."""

    def __init__(self, X: Any, *, fit_bias: bool = True) -> None:
        self.X, self.fit_bias = X, fit_bias
        self.n_rows, self.size = int(X.shape[0]), int(X.shape[1]) + 1  # size: of a point, coefficients and the bias

    def solve(
        self, up: FloatArray, down: FloatArray, regularization: float, tol: float, start: SVMSolution | None
    ) -> SVMSolution:
        """Return the weighted support vector machine."""
        return solve_svm(self.X, up, down, regularization, fit_bias=self.fit_bias, tol=tol, start=start)

    def scores(self, point: FloatArray) -> FloatArray:
        """Return the scores of all rows."""
        return np.asarray(self.X @ point[:-1] - point[-1], dtype=np.float64)

    def square(self, point: FloatArray) -> float:
        """Return the squared norm of the coefficients."""
        return float(point[:-1] @ point[:-1])


class KernelMachine(LinearMachine):
    """Rows in the feature space of a kernel, given by the kernel of all pairs, which is checked here once."""

    def __init__(self, gram: ArrayLike | Gram, *, fit_bias: bool = True) -> None:
        self.gram = check_gram(gram)
        super().__init__(self.gram.matrix, fit_bias=fit_bias)

    def solve(
        self, up: FloatArray, down: FloatArray, regularization: float, tol: float, start: SVMSolution | None
    ) -> SVMSolution:
        """Return the weighted support vector machine in feature space."""
        return solve_kernel_svm(self.gram, up, down, regularization, fit_bias=self.fit_bias, tol=tol, start=start)

    def square(self, point: FloatArray) -> float:
        """Return the squared norm in feature space."""
        return float(point[:-1] @ self.X @ point[:-1])


class RampProblem:
    """An objective and constraints that are linear in the ramps of the rows.

    Parameters
    ----------
    machine : LinearMachine or KernelMachine
        The rows.
    weights : sparse array of shape (1 + n_constraints, n_rows)
        Signed weights: of the objective, then of each constraint. Tolerances are absolute, as those of rates: give each
        in a unit in which its sums are of size 1.
    constants : array of shape (1 + n_constraints,)
        What is added. A constraint holds where ``constant + weights @ ramp(scores)`` is at most 0.
    regularization : float > 0
    """

    def __init__(self, machine: LinearMachine, weights: Any, constants: FloatArray, regularization: float) -> None:
        self.machine, self.constants, self.regularization = machine, constants, regularization
        self.weights = sp.csr_array(weights)
        self.rising, self.falling = self.weights.maximum(0), (-self.weights).maximum(0)
        self.by_row = sp.csr_array(self.rising.T), sp.csr_array(self.falling.T)

    @property
    def n_constraints(self) -> int:
        """Return the number of constraints."""
        return int(self.constants.size) - 1

    def tighten(self, margin: float | FloatArray) -> "RampProblem":
        """Return the problem with every constraint tightened, by one margin or by one for each."""
        constants = self.constants + np.append(0.0, np.zeros(self.n_constraints) + margin)
        return RampProblem(self.machine, self.weights, constants, self.regularization)

    def only(self, constraints: IntArray) -> "RampProblem":
        """Return the problem with some of the constraints only."""
        rows = np.append(0, np.asarray(constraints, dtype=np.int64) + 1)
        return RampProblem(self.machine, self.weights[rows], self.constants[rows], self.regularization)

    def without_constraints(self) -> "RampProblem":
        """Return the problem without constraints."""
        return self.only(np.empty(0, dtype=np.int64))

    def at(self, point: FloatArray) -> "RampState":
        """Return the state at a point."""
        scores = self.machine.scores(point)
        values = self.constants + self.weights @ ramp(scores)
        return RampState(point, scores, float(values[0]) + self.ridge(point), values[1:])

    def ridge(self, point: FloatArray) -> float:
        """Return the regularization of a point."""
        return self.regularization / 2 * self.machine.square(point)


class RampState(NamedTuple):
    """A point, its scores, its objective with the regularization, and by how much it exceeds each constraint."""

    point: FloatArray
    scores: FloatArray
    value: float
    excess: FloatArray

    @property
    def violation(self) -> float:
        """Return the sum of what the constraints are exceeded by."""
        return float(np.maximum(self.excess, 0.0).sum())


class Majorization(NamedTuple):
    """One step of majorization-minimization."""

    value: float  # of the objective after it
    violation: float  # sum of what the constraints are exceeded by
    lower: float  # proven for the convex program: no point of it is better
    gap: float  # of the convex program: how far its point is above, what exceeds a constraint at the highest price
    n_machines: int  # support vector machines that were solved
    multipliers: FloatArray


class RampSolution(NamedTuple):
    """A point and how it was reached."""

    state: RampState
    multipliers: FloatArray  # of the last convex program
    history: list[Majorization]


class _Majorizer:
    """The convex program around a state: hinges where they touch the ramps, constants elsewhere."""

    def __init__(self, problem: RampProblem, state: RampState, *, focus: float, last: SVMSolution | None) -> None:
        self.problem, self.focus = problem, focus  # focus: what the objective counts beside the constraints
        self.last = last  # where the next support vector machine starts
        self.is_up = (state.scores >= -_HALF).astype(np.float64)  # 1 - ramp is bounded by its hinge
        self.is_down = (state.scores <= _HALF).astype(np.float64)  # ramp is
        self.offsets = problem.constants - problem.falling @ self.is_up + problem.rising @ (1.0 - self.is_down)
        self.points: list[FloatArray] = []
        self.values: list[FloatArray] = []  # of objective and constraints, one array a point

    def add(self, point: FloatArray, scores: FloatArray) -> None:
        """Take in a point."""
        self.points.append(point)
        self.values.append(self._values(scores, point))

    def cuts(self) -> tuple[FloatArray, FloatArray]:
        """Return what the points prove of the dual function: offsets and slopes of cuts."""
        values = np.array(self.values)
        return values[:, 0], values[:, 1:]

    def answer(self, multipliers: FloatArray, accuracy: float) -> OracleAnswer:
        """Solve the support vector machine of these multipliers; its point is a cut."""
        problem = self.problem
        coefficients = np.append(self.focus, multipliers)
        down, up = (self.is_down * (problem.by_row[0] @ coefficients), self.is_up * (problem.by_row[1] @ coefficients))
        solution = problem.machine.solve(up, down, problem.regularization, accuracy, self.last)
        self.last = solution
        point = np.append(solution.coefficients, solution.bias)
        self.add(point, problem.machine.scores(point))
        values = self.values[-1]
        upper = float(values[0] + multipliers @ values[1:])
        return OracleAnswer(min(solution.lower + float(coefficients @ self.offsets), upper), upper, values[1:])

    def _values(self, scores: FloatArray, point: FloatArray) -> FloatArray:
        """Return the objective with the regularization and the excesses, ramps replaced by their bounds."""
        problem = self.problem
        values = self.offsets + problem.rising @ (self.is_down * np.maximum(0.0, _HALF + scores))
        values += problem.falling @ (self.is_up * np.maximum(0.0, _HALF - scores))
        values[0] = self.focus * values[0] + problem.ridge(point)
        return np.asarray(values)


@dataclass(frozen=True)
class RampOptions:
    """How far to go.

    ``radius`` is the largest multiplier, the V of the paper's Appendix C; ``focus`` what the objective counts, 0 to
    look for a feasible point only.
    """

    tol: float = 1e-3
    max_majorizations: int = 20
    radius: float = 1e3
    focus: float = 1.0
    chooser: str = "level"  # "center-of-mass", exact for one multiplier, takes more support vector machines
    stop: Callable[[RampState], bool] = lambda _state: False


def minimize_ramp(problem: RampProblem, start: FloatArray, plan: RampOptions) -> RampSolution:
    """Improve a point until a majorization gains less than the tolerance.

    Its convex program ends at an accuracy; or after 1000 support vector machines, or three whose own limit left them
    less accurate than requested. The history has the gap that was left.

    Parameters
    ----------
    problem : RampProblem
    start : array
        Coefficients, then the bias. Where it satisfies the constraints, so does the result; where it does not, the sum
        of what they are exceeded by never rises.
    plan : RampOptions
        Tolerances and limits.

    Returns
    -------
    RampSolution
    """
    first, history = problem.at(start), list[Majorization]()
    state = safe = first  # kept: the last state that exceeds the constraints no more than the start
    multipliers, tol = np.zeros(problem.n_constraints), max(_LOOSE, plan.tol)
    last: SVMSolution | None = None
    points: list[FloatArray] = []
    for _ in range(plan.max_majorizations):
        majorizer = _Majorizer(problem, state, focus=plan.focus, last=last)
        majorizer.add(state.point, state.scores)
        for point in points:  # those that made up the last solution are near the next
            majorizer.add(point, problem.machine.scores(point))
        better, step, points = _solve(majorizer, first, multipliers, plan, tol)
        last = majorizer.last
        gain = _merit(state, plan) - _merit(better, plan)
        multipliers, state = step.multipliers, better if gain >= 0 else state
        safe = state if _stays(state, first) else safe
        history.append(step._replace(value=state.value, violation=state.violation))
        if plan.stop(state) or (gain <= plan.tol and tol <= plan.tol):
            break
        tol = float(np.clip(_TIGHTER * gain, _CLOSEST * plan.tol, tol))
    return RampSolution(safe, multipliers, history)


def _merit(state: RampState, plan: RampOptions) -> float:
    """Return what must not rise: the objective where the point is feasible, else the violation with it."""
    return plan.focus * state.value + (0.0 if state.violation <= FEASIBLE else plan.radius * state.violation)


def _stays(state: RampState, first: RampState) -> bool:
    """Return whether a point exceeds the constraints no more than the start, but for rounding."""
    return state.violation <= max(first.violation, FEASIBLE)


def _solve(
    majorizer: _Majorizer, first: RampState, multipliers: FloatArray, plan: RampOptions, tol: float
) -> tuple[RampState, Majorization, list[FloatArray]]:
    """Solve the convex program; return the next state, how it came about, and the points whose mean it is."""
    problem, n_known = majorizer.problem, len(majorizer.points)
    if not problem.n_constraints:
        answer = majorizer.answer(multipliers, tol)
        step = Majorization(0.0, 0.0, answer.lower, answer.upper - answer.lower, 1, multipliers)
        return problem.at(majorizer.points[-1]), step, []
    solution = maximize_concave(
        majorizer.answer,
        problem.n_constraints,
        radius=plan.radius,
        tol=tol,
        start=multipliers,
        cuts=majorizer.cuts(),
        chooser=plan.chooser,
    )
    values = np.array(majorizer.values)
    shares = best_mean(values, radius=plan.radius)
    better = problem.at(shares @ np.array(majorizer.points))
    if not _stays(better, first):  # by next to nothing, or because no price up to the radius is high enough
        firm = best_mean(values, radius=np.inf)
        if better.violation > first.violation + _NEARLY or float(firm @ values[:, 0]) - solution.lower <= tol:
            shares, better = firm, problem.at(firm @ np.array(majorizer.points))
    excess = float(np.maximum(shares @ values[:, 1:], 0.0).sum())
    gap = max(float(shares @ values[:, 0]) + plan.radius * excess - solution.lower, 0.0)  # below 0 by rounding alone
    step = Majorization(0.0, 0.0, solution.lower, gap, len(majorizer.points) - n_known, solution.multipliers)
    active = [majorizer.points[place] for place in np.flatnonzero(shares > _USED)]
    return better, step, active


def best_mean(values: FloatArray, *, radius: float) -> FloatArray:
    """Return the shares of points whose mean has the least objective subject to the constraints.

    Parameters
    ----------
    values : array of shape (n_points, 1 + n_constraints)
        Of each point the objective, then by how much it exceeds each constraint.
    radius : float
        Price of what is still exceeded where no mean of the points is feasible. Between points that are close the
        objective can gain more than any price for what is next to nothing; with an infinite one the mean exceeds no
        constraint by more than the first point does.

    Returns
    -------
    array of shape (n_points,)
        On the simplex.

    Examples
    --------
    The first point is good and exceeds the constraint by 1, the second is safe by 3:

    >>> import numpy as np
    >>> from counterpoise.solvers.ramp import best_mean
    >>> best_mean(np.array([[0.0, 1.0], [8.0, -3.0]]), radius=1e3).tolist()
    [0.75, 0.25]
    """
    n_points, n_constraints = values.shape[0], values.shape[1] - 1
    is_firm, none = np.isinf(radius), np.zeros(n_constraints)
    limits = np.maximum(values[0, 1:], 0.0) if is_firm else none
    excesses = np.column_stack([values[:, 1:].T, -np.eye(n_constraints)])
    solution = solve_linear_program(
        np.concatenate([values[:, 0], none if is_firm else none + radius]),
        np.vstack([excesses, np.append(np.ones(n_points), none)]),
        (np.append(none - np.inf, 1.0), np.append(limits, 1.0)),
        lower=np.zeros(n_points + n_constraints),
        upper=np.concatenate([np.full(n_points, np.inf), none if is_firm else none + np.inf]),
    )
    if solution is None and is_firm:  # HiGHS may give up where there is next to no room; the first point has its place
        return np.asarray(np.eye(1, n_points)[0])
    if solution is None:
        raise RuntimeError(HIGHS_FAILED)
    shares = np.maximum(solution.point[:n_points], 0.0)
    return np.asarray(shares / shares.sum())


_TIGHTENINGS = 6  # trainings after the first, at most
_WORTH = 0.5  # part of what the ramps gain over a constant decision that the decisions must keep
_EQUAL = 1e-12  # part of all weight of the objective below which two values differ by the rounding of sums

Noise = Callable[[FloatArray], FloatArray]  # from a point to how much the score of each row may be off by rounding


class ThresholdCut(NamedTuple):
    """Decisions by ``score - threshold > noise``, and what they come to."""

    threshold: float
    value: float  # of the objective, without the regularization
    excess: FloatArray  # by how much each constraint is exceeded, negative where there is room
    holds: bool  # whether no constraint is
    is_constant: bool  # whether all rows that count have the same decision

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """Return a key that is smaller for better decisions."""
        violation = float(np.maximum(self.excess, 0.0).sum())
        return not self.holds, self.is_constant, self.value if self.holds else violation


class CutSolution(NamedTuple):
    """A point and the threshold on its scores."""

    solution: RampSolution
    cut: ThresholdCut
    noise: FloatArray


class Sweep:
    """All cuts of some scores.

    Parameters
    ----------
    problem : RampProblem
        Objective and constraints, with decisions in place of ramps.
    scores, noise : arrays of shape (n_rows,)
        A row is decided positive where its score is above the threshold by more than its noise. No cut separates rows
        whose scores differ by less than that: they might change places in another batch.
    sizes : array of shape (n_constraints,)
        A constraint holds where it is exceeded by at most ``FEASIBLE`` times its size.

    Examples
    --------
    Two rows of four may be positive; the objective counts the errors, and the labels are 1, 0, 1, 0:

    >>> import numpy as np
    >>> from counterpoise.solvers.ramp import LinearMachine, RampProblem
    >>> from counterpoise.solvers.ramp import Sweep
    >>> weights, constants = [[-0.25, 0.25, -0.25, 0.25], [0.25] * 4], np.array([0.5, -0.5])
    >>> problem = RampProblem(LinearMachine(np.eye(4)), weights, constants, 1.0)
    >>> cut = Sweep(problem, np.array([4.0, 3.0, 2.0, 1.0]), np.zeros(4), np.ones(1)).best()
    >>> cut.threshold, cut.value, cut.holds
    (3.5, 0.25, True)
    """

    def __init__(self, problem: RampProblem, scores: FloatArray, noise: FloatArray, sizes: FloatArray) -> None:
        self.problem, self.sizes = problem, sizes
        self.floors = scores - noise  # a row is positive where the threshold is below
        order = np.argsort(-self.floors, kind="stable")
        floors, noise = self.floors[order], noise[order]
        # The threshold of each cut: ``k`` rows are above the ``k``-th.
        above, below = floors[0] + max(1.0, abs(floors[0])), floors[-1] - max(1.0, abs(floors[-1]))  # 1: a ramp's width
        self.thresholds = np.concatenate([[above], floors[1:] / 2 + floors[:-1] / 2, [below]])
        self.n_above_zero = int(np.searchsorted(-floors, 0.0))
        self.thresholds[self.n_above_zero] = 0.0  # which is left where it is, wherever that is as good
        is_apart = floors[:-1] - floors[1:] > noise[:-1] + noise[1:]
        self.is_cut = np.concatenate([[True], is_apart, [True]])
        self.is_cut[self.n_above_zero] = True
        counts = np.abs(problem.weights).sum(axis=0)[order] > 0
        n_counted = np.concatenate([[0], np.cumsum(counts)])
        self.is_constant = (n_counted == 0) | (n_counted == n_counted[-1])
        objective = problem.weights[[0]].toarray().ravel()[order]
        self.values = problem.constants[0] + np.concatenate([[0.0], np.cumsum(objective)])
        self._equal = _EQUAL * float(np.abs(objective).sum())
        # How many constraints each cut misses, and by how much in all; a constraint changes at its own rows.
        misses, excess = np.zeros(self.values.size, dtype=np.int64), np.zeros(self.values.size)
        places, weights = np.argsort(order), problem.weights
        for row, size in enumerate(sizes, start=1):
            own = slice(weights.indptr[row], weights.indptr[row + 1])
            where = places[weights.indices[own]]
            rank = np.argsort(where)
            values = problem.constants[row] + np.concatenate([[0.0], np.cumsum(weights.data[own][rank])])
            jumps = np.concatenate([[0], where[rank] + 1])
            misses[jumps] += np.diff(_is_exceeded(values, size).astype(np.int64), prepend=0)
            excess[jumps] += np.diff(np.maximum(values, 0.0) / size, prepend=0.0)
        self.n_missed, self.total_excess = np.cumsum(misses), np.cumsum(excess)

    def at_zero(self) -> ThresholdCut:
        """Return the decisions by the sign of the score."""
        return self._cut(self.n_above_zero)

    def best(self) -> ThresholdCut | None:
        """Return the cut that meets the constraints with the least objective, else the one that misses them least.

        Cuts that decide the same for all rows are left out; None where there are no others.
        """
        return self._best(self.is_cut & ~self.is_constant)

    def constant(self) -> ThresholdCut | None:
        """Return the best of the cuts that meet the constraints and decide the same for all rows; None if none does."""
        return self._best(self.is_cut & self.is_constant & (self.n_missed == 0))

    def _best(self, among: BoolArray) -> ThresholdCut | None:
        if not among.any():
            return None
        holds = among & (self.n_missed == 0)
        places = np.flatnonzero(holds if holds.any() else among)
        values = (self.values if holds.any() else self.total_excess)[places]
        least = places[values <= values.min() + self._equal]
        return self._cut(int(least[np.abs(self.thresholds[least]).argmin()]))

    def _cut(self, place: int) -> ThresholdCut:
        threshold = float(self.thresholds[place])
        values = self.problem.constants + self.problem.weights @ (self.floors > threshold)
        holds = not _is_exceeded(values[1:], self.sizes).any()
        return ThresholdCut(threshold, float(values[0]), values[1:], holds, bool(self.is_constant[place]))


def _is_exceeded(values: FloatArray, sizes: FloatArray | float) -> BoolArray:
    """Tell which constraints are exceeded; half of the tolerance is left to those who add up in another order."""
    return np.asarray(values > FEASIBLE / 2 * sizes)


def decide_by_sign(problem: RampProblem, solution: RampSolution, noise_of: Noise, sizes: FloatArray) -> CutSolution:
    """Leave the threshold at zero, with arguments as ``decide``."""
    noise = noise_of(solution.state.point)
    return CutSolution(solution, Sweep(problem, solution.state.scores, noise, sizes).at_zero(), noise)


def decide(
    problem: RampProblem, solution: RampSolution, noise_of: Noise, sizes: FloatArray, plan: RampOptions
) -> CutSolution:
    """Choose the threshold, and train again under tightened constraints where no threshold meets them.

    Parameters
    ----------
    problem : RampProblem
    solution : RampSolution
        Of this problem; its ramps meet the constraints.
    noise_of : callable
        From a point to how much the score of each row may be off by rounding.
    sizes : array of shape (n_constraints,)
        As for ``Sweep``.
    plan : RampOptions
        How to train again.

    Returns
    -------
    CutSolution
        Of decisions that meet the constraints and are not constant, those of the first training whose decisions keep
        half of what its ramps gain over a constant; else those of least objective. If there are none, a constant that
        meets the constraints; else the decisions that miss them least. Ramps meet the constraints in any case.
    """
    candidates: list[CutSolution] = []
    margins = np.zeros(problem.n_constraints)
    for n_left in range(_TIGHTENINGS, -1, -1):
        noise = noise_of(solution.state.point)
        sweep = Sweep(problem, solution.state.scores, noise, sizes)
        zero, constant = sweep.at_zero(), sweep.constant()
        ramp_value = solution.state.value - problem.ridge(solution.state.point)
        stays = _is_enough(zero, constant, ramp_value) or not problem.n_constraints or not problem.machine.fit_bias
        cuts = (zero,) if stays else (sweep.best(), constant)
        candidates += [CutSolution(solution, cut, noise) for cut in cuts if cut is not None]
        violations = np.maximum(zero.excess, 0.0)
        if not n_left or not violations.any() or _is_enough(cuts[0], constant, ramp_value):
            break
        margins = margins + violations
        again = minimize_ramp(problem.tighten(margins), solution.state.point, plan)
        solution = again._replace(state=problem.at(again.state.point))
        if solution.state.violation > FEASIBLE:
            break
    return min(candidates, key=lambda one: one.cut.rank)


def _is_enough(cut: ThresholdCut | None, constant: ThresholdCut | None, ramp_value: float) -> bool:
    """Return whether decisions meet the constraints, and not by being next to constant where the ramps are not."""
    if cut is None or cut.is_constant or not cut.holds:
        return False
    return constant is None or constant.value - cut.value >= _WORTH * (constant.value - ramp_value)
