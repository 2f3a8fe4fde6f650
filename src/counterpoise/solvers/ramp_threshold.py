"""The threshold on the scores of a linear classifier at which its decisions meet constraints that its ramps meet.

``ramp`` trains with a rate that is continuous: a row counts with probability ``ramp(score)``. Decisions by
``score > threshold`` have other rates, and where many scores lie on the slope of the ramp very different ones: on
Census-Income the ratio of two ramp rates was 0.93, that of the decisions by the sign 0.36.

With the scores fixed, the threshold is the only unknown, and sorted scores have at most one cut between two neighbours.
Objective and constraints are linear in the decisions, so prefix sums have their values at every cut: one sort, then one
pass (``Sweep``). Where no cut will do, the constraints on the ramps are tightened by what the decisions exceed them by,
and the classifier is trained again from where it is, a few times (``decide``).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from counterpoise._base.types import BoolArray, FloatArray, IntArray
from counterpoise.solvers.ramp import Plan, RampProblem, RampSolution, minimize_ramp
from counterpoise.solvers.result import FEASIBLE

_TIGHTENINGS = 6  # trainings after the first, at most
_WORTH = 0.5  # part of what the ramps gain over a constant decision that the decisions must keep
_EQUAL = 1e-12  # part of all weight of the objective below which two values differ by the rounding of sums

Noise = Callable[[FloatArray], FloatArray]  # from a point to how much the score of each row may be off by rounding


class Cut(NamedTuple):
    """Decisions by ``score - threshold > noise``, and what they come to."""

    threshold: float
    value: float  # of the objective, without the regularization
    excess: FloatArray  # by how much each constraint is exceeded, negative where there is room
    holds: bool  # whether no constraint is
    is_constant: bool  # whether all rows that count have the same decision


class Decided(NamedTuple):
    """A point and the threshold on its scores."""

    solution: RampSolution
    cut: Cut
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
    >>> from counterpoise.solvers.ramp_threshold import Sweep
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
        self._set_thresholds(self.floors[order], noise[order])
        counts = np.abs(problem.weights).sum(axis=0)[order] > 0
        n_counted = np.concatenate([[0], np.cumsum(counts)])
        self.is_constant = (n_counted == 0) | (n_counted == n_counted[-1])
        objective = problem.weights[[0]].toarray().ravel()[order]
        self.values = problem.constants[0] + np.concatenate([[0.0], np.cumsum(objective)])
        self._equal = _EQUAL * float(np.abs(objective).sum())
        self._set_excess(np.argsort(order))

    def _set_thresholds(self, floors: FloatArray, noise: FloatArray) -> None:
        """Set the threshold of each cut: ``k`` rows are above the ``k``-th."""
        above, below = floors[0] + max(1.0, abs(floors[0])), floors[-1] - max(1.0, abs(floors[-1]))  # 1: a ramp's width
        self.thresholds = np.concatenate([[above], floors[1:] / 2 + floors[:-1] / 2, [below]])
        self.n_above_zero = int(np.searchsorted(-floors, 0.0))
        self.thresholds[self.n_above_zero] = 0.0  # which is left where it is, wherever that is as good
        is_apart = floors[:-1] - floors[1:] > noise[:-1] + noise[1:]
        self.is_cut = np.concatenate([[True], is_apart, [True]])
        self.is_cut[self.n_above_zero] = True

    def _set_excess(self, places: IntArray) -> None:
        """Set how many constraints each cut misses, and by how much in all; a constraint changes at its own rows."""
        missed, excess = np.zeros(self.values.size, dtype=np.int64), np.zeros(self.values.size)
        weights = self.problem.weights
        for row, size in enumerate(self.sizes, start=1):
            own = slice(weights.indptr[row], weights.indptr[row + 1])
            where = places[weights.indices[own]]
            order = np.argsort(where)
            values = self.problem.constants[row] + np.concatenate([[0.0], np.cumsum(weights.data[own][order])])
            jumps = np.concatenate([[0], where[order] + 1])
            missed[jumps] += np.diff(_is_exceeded(values, size).astype(np.int64), prepend=0)
            excess[jumps] += np.diff(np.maximum(values, 0.0) / size, prepend=0.0)
        self.n_missed, self.total_excess = np.cumsum(missed), np.cumsum(excess)

    def at_zero(self) -> Cut:
        """Return the decisions by the sign of the score."""
        return self._cut(self.n_above_zero)

    def best(self) -> Cut | None:
        """Return the cut that meets the constraints with the least objective, else the one that misses them least.

        Cuts that decide the same for all rows are left out; None where there are no others.
        """
        return self._best(self.is_cut & ~self.is_constant)

    def constant(self) -> Cut | None:
        """Return the best of the cuts that meet the constraints and decide the same for all rows; None if none does."""
        return self._best(self.is_cut & self.is_constant & (self.n_missed == 0))

    def _best(self, among: BoolArray) -> Cut | None:
        if not among.any():
            return None
        holds = among & (self.n_missed == 0)
        places = np.flatnonzero(holds if holds.any() else among)
        values = (self.values if holds.any() else self.total_excess)[places]
        least = places[values <= values.min() + self._equal]
        return self._cut(int(least[np.abs(self.thresholds[least]).argmin()]))

    def _cut(self, place: int) -> Cut:
        threshold = float(self.thresholds[place])
        values = self.problem.constants + self.problem.weights @ (self.floors > threshold)
        holds = not _is_exceeded(values[1:], self.sizes).any()
        return Cut(threshold, float(values[0]), values[1:], holds, bool(self.is_constant[place]))


def _is_exceeded(values: FloatArray, sizes: FloatArray | float) -> BoolArray:
    """Tell which constraints are exceeded; half of the tolerance is left to those who add up in another order."""
    return np.asarray(values > FEASIBLE / 2 * sizes)


def decide_by_sign(problem: RampProblem, found: RampSolution, noise_of: Noise, sizes: FloatArray) -> Decided:
    """Leave the threshold at zero, with arguments as ``decide``."""
    noise = noise_of(found.state.point)
    return Decided(found, Sweep(problem, found.state.scores, noise, sizes).at_zero(), noise)


def decide(problem: RampProblem, found: RampSolution, noise_of: Noise, sizes: FloatArray, plan: Plan) -> Decided:
    """Choose the threshold, and train again under tightened constraints where no threshold meets them.

    Parameters
    ----------
    problem : RampProblem
    found : RampSolution
        Of this problem; its ramps meet the constraints.
    noise_of : callable
        From a point to how much the score of each row may be off by rounding.
    sizes : array of shape (n_constraints,)
        As for ``Sweep``.
    plan : Plan
        How to train again.

    Returns
    -------
    Decided
        Of decisions that meet the constraints and are not constant, those of the first training whose decisions keep
        half of what its ramps gain over a constant; else those of least objective. If there are none, a constant that
        meets the constraints; else the decisions that miss them least. Ramps meet the constraints in any case.
    """
    decided: list[Decided] = []
    margins = np.zeros(problem.n_constraints)
    for n_left in range(_TIGHTENINGS, -1, -1):
        noise = noise_of(found.state.point)
        sweep = Sweep(problem, found.state.scores, noise, sizes)
        zero, constant = sweep.at_zero(), sweep.constant()
        ramped = found.state.value - problem.ridge(found.state.point)
        stays = _is_enough(zero, constant, ramped) or not problem.n_constraints or not problem.machine.fit_bias
        cuts = (zero,) if stays else (sweep.best(), constant)
        decided += [Decided(found, cut, noise) for cut in cuts if cut is not None]
        missed = np.maximum(zero.excess, 0.0)
        if not n_left or not missed.any() or _is_enough(cuts[0], constant, ramped):
            break
        margins = margins + missed
        again = minimize_ramp(problem.shifted(margins), found.state.point, plan)
        found = again._replace(state=problem.at(again.state.point))
        if found.state.violation > FEASIBLE:
            break
    return min(decided, key=_rank)


def _is_enough(cut: Cut | None, constant: Cut | None, ramped: float) -> bool:
    """Tell whether decisions meet the constraints, and not by being next to constant where the ramps are not."""
    if cut is None or cut.is_constant or not cut.holds:
        return False
    return constant is None or constant.value - cut.value >= _WORTH * (constant.value - ramped)


def _rank(decided: Decided) -> tuple[bool, bool, float]:
    cut = decided.cut
    return not cut.holds, cut.is_constant, cut.value if cut.holds else float(np.maximum(cut.excess, 0.0).sum())
