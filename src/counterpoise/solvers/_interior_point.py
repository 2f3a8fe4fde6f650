"""A primal-dual interior point method (Mehrotra 1992) for programs over margins with soft constraints.

Problem, with a column for each model and a row for each sample::

    min over votes >= 0, slacks >= 0 of  votes @ (ridge * votes) / 2 + caps @ slacks - edge
    subject to  margins @ votes + slacks >= target + edge

where the edge is free and the votes sum to 1 (``on_simplex``), or the edge is 0 and the votes are free. Its dual has a
multiplier in [0, cap] for each sample. Eliminating slacks and multipliers from a Newton step leaves a system with a row
for each model, so an iteration costs one weighted Gram matrix of the margins, and their number hardly grows with the
problem. Every iterate is feasible for both programs: it can be stopped at any time, and both bounds hold.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from counterpoise._base.types import AnyArray, FloatArray

_BOUNDARY = 0.99  # part of the way to the boundary that a step goes
_SINGLE = 1e-4  # part of the first gap down to which single precision will do
_SLOW = 0.9  # a gap above this part of the last is hardly a fall ...
_INEXACT = 2  # ... and so many in a row mean that single precision will not do ...
_STUCK = 6  # ... or, some later, that rounding prevents any progress
_FLOOR = 1e-300  # keeps quotients finite
_N_PRIMAL = 3  # entries of a point that belong to the primal: votes, slacks, surplus
_ROUNDING = 1e-14  # of the Gram matrix, which may be singular

_MIX_IN = 0.15  # of the centre, into a start on the simplex taken from a nearby problem ...
_OFF_BOUND = 0.01  # ... and how far multipliers keep from their bounds, as a part of their mean and of the cap
_SLACK_LINEAR = 0.05  # least slack and surplus at the start, in units of the margins
_SLACK_QUADRATIC = 0.3
_PRICE = 0.1  # least price of a model at the start on the simplex, as a part of the range


class MarginProgram(NamedTuple):
    """The data of the problem; margins of size 1 or so, caps above 0."""

    margins: FloatArray  # (n_samples, n_models)
    caps: FloatArray
    ridge: FloatArray  # of each model
    target: float
    on_simplex: bool


class PathPoint(NamedTuple):
    """A strictly feasible point of both programs, or a direction between two."""

    votes: FloatArray
    slacks: FloatArray
    surplus: FloatArray  # margins @ votes + slacks - target - edge
    multipliers: FloatArray  # of the samples, in (0, caps) ...
    room: FloatArray  # ... and what they lack to the caps, which their difference loses near zero
    prices: FloatArray  # ridge * votes - multipliers @ margins (+ the level on the simplex): of the votes' signs


@lru_cache(maxsize=1)
def _blas() -> Any:
    return ThreadpoolController()


def one_thread() -> Any:
    """Return a context in which BLAS keeps to one thread.

    numpy and scipy bring a BLAS each, and the threads of one spin while the other works: on two busy processors that
    took ten times the time of one thread.
    """
    return _blas().limit(limits=1, user_api="blas")


def start_on_simplex(program: MarginProgram, edge_at: float, near: tuple[FloatArray, FloatArray] | None) -> PathPoint:
    """Return a start at equal votes, or close to the given votes and multipliers."""
    n_models = program.margins.shape[1]
    votes = np.full(n_models, 1.0 / n_models)
    multipliers = program.caps / program.caps.sum()
    if near is not None:
        votes = _MIX_IN * votes + (1.0 - _MIX_IN) * near[0]
        multipliers = _MIX_IN * multipliers + (1.0 - _MIX_IN) * near[1]
    slopes = multipliers @ program.margins
    level = slopes.max() + _PRICE * np.ptp(slopes) + _SLACK_LINEAR**2
    margins = program.margins @ votes
    surplus, slacks = _split_difference(margins - np.quantile(margins, edge_at), _SLACK_LINEAR)
    return PathPoint(votes, slacks, surplus, multipliers, program.caps - multipliers, level - slopes)


def start_with_ridge(program: MarginProgram, near: FloatArray | None) -> PathPoint:
    """Return a start where the dual is best along the caps, or close to the given multipliers."""
    caps = program.caps
    if near is None:
        slopes = np.maximum(caps @ program.margins, 0.0)
        total, square = float(caps.sum()), float(slopes @ (slopes / program.ridge))
        near = (0.5 if 2.0 * total >= square else total / square) * caps
    typical = near.sum() / caps.sum() * caps  # far below the caps where hardly any slack is needed
    multipliers = np.clip(near, _OFF_BOUND * typical, (1.0 - _OFF_BOUND) * caps)
    slopes = multipliers @ program.margins
    surplus, slacks = _soft(program, np.maximum(slopes, 0.0) / program.ridge)
    # The products of votes and prices must be of the size of the others, or the first step leads far off the path.
    mean = float((multipliers * surplus + (caps - multipliers) * slacks).mean()) / 2
    pulls, prices = _split_difference(slopes, np.sqrt(mean * program.ridge))
    surplus, slacks = _soft(program, pulls / program.ridge)
    return PathPoint(pulls / program.ridge, slacks, surplus, multipliers, caps - multipliers, prices)


def _soft(program: MarginProgram, votes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return surplus and slacks at the votes, well above zero."""
    above = program.margins @ votes - program.target
    return _split_difference(above, _SLACK_QUADRATIC * (1.0 + float(np.abs(above).mean())))


def _split_difference(difference: FloatArray, least: float | FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return two vectors above zero with this difference, the product of each pair being ``least ** 2``."""
    larger = (np.hypot(difference, 2.0 * least) + np.abs(difference)) / 2.0
    smaller = least**2 / larger
    is_above = difference > 0
    return np.where(is_above, larger, smaller), np.where(is_above, smaller, larger)


def follow_path(
    program: MarginProgram, start: PathPoint, *, is_done: Callable[[PathPoint], bool], max_iter: int
) -> int:
    """Follow the central path from the start until ``is_done``, and return the number of steps.

    ``is_done`` sees every point, and keeps what it needs of them. Gram matrices are at first taken in single precision,
    at half the time.
    """
    point, n_slow, gap = start, 0, _gap(start)
    enough = _SINGLE * gap
    matrix: AnyArray = program.margins.astype(np.float32)
    for n_iter in range(max_iter):
        if is_done(point) or (n_slow >= _STUCK and gap < enough):
            return n_iter
        with suppress(np.linalg.LinAlgError):  # of a matrix that rounding has made indefinite: stay there
            point = _step(program, point, matrix)
        last, gap = gap, _gap(point)
        n_slow = n_slow + 1 if gap > _SLOW * last else 0
        if gap < enough or n_slow == _INEXACT:
            matrix = program.margins
    return max_iter


def _step(program: MarginProgram, point: PathPoint, matrix: AnyArray) -> PathPoint:
    """Predict along the tangent of the path, correct towards its centre, and move."""
    newton = _Newton(program, point, matrix)
    pairs, gap = _products(point), _gap(point)
    tangent = newton.direction(*(-pair for pair in pairs))
    ahead = _move(point, tangent, *_lengths(program, point, tangent, 1.0))
    # The farther the tangent leads, the less centring.
    centre = gap / sum(pair.size for pair in pairs) * (_gap(ahead) / gap) ** 3
    correction = newton.direction(*(centre - pair - bend for pair, bend in zip(pairs, _products(tangent), strict=True)))
    return _move(point, correction, *_lengths(program, point, correction, _BOUNDARY))


def _products(point: PathPoint) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the products of the pairs of which one is zero at the optimum."""
    return point.multipliers * point.surplus, point.room * point.slacks, point.votes * point.prices


def _gap(point: PathPoint) -> float:
    """Return the sum of the products, which is the gap between the two programs."""
    return sum(float(pair.sum()) for pair in _products(point))


def _lengths(program: MarginProgram, point: PathPoint, direction: PathPoint, part: float) -> tuple[float, float]:
    """Return the steps in the primal and the dual, at most 1, that go ``part`` of the way to the boundary."""
    falls = [float((-change / value).max()) for value, change in zip(point, direction, strict=True)]
    primal, dual = max(falls[:_N_PRIMAL]), max(falls[_N_PRIMAL:])
    if not program.on_simplex:  # prices depend on the votes: only equal steps stay feasible
        primal = dual = max(primal, dual)
    return min(1.0, part / max(primal, _FLOOR)), min(1.0, part / max(dual, _FLOOR))


def _move(point: PathPoint, direction: PathPoint, primal: float, dual: float) -> PathPoint:
    steps = [primal] * _N_PRIMAL + [dual] * (len(point) - _N_PRIMAL)
    return PathPoint(*(value + step * change for value, step, change in zip(point, steps, direction, strict=True)))


class _Newton:
    """The Newton system at a point, factored once for the predictor and the corrector."""

    def __init__(self, program: MarginProgram, point: PathPoint, matrix: AnyArray) -> None:
        self.program, self.point, self.is_exact = program, point, matrix is program.margins
        self.theta = 1.0 / (point.surplus / point.multipliers + point.slacks / point.room)
        # The Gram matrix weighted by theta, about its mean where the edge is free, plus the diagonal.
        rows = matrix.copy()
        if program.on_simplex:
            self.mean = self.theta @ program.margins / self.theta.sum()
            rows -= self.mean.astype(matrix.dtype)
        rows *= np.sqrt(self.theta).astype(matrix.dtype)[:, None]
        system = (rows.T @ rows).astype(np.float64)
        diagonal = np.einsum("ii->i", system)
        diagonal += program.ridge + point.prices / point.votes + _ROUNDING * diagonal.max()
        self.factor = cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
        if program.on_simplex:
            self.ones = self._solve(np.ones(point.votes.size))

    def _solve(self, right: FloatArray) -> FloatArray:
        solution: Any = cho_solve(self.factor, right, check_finite=False)
        return np.asarray(solution)

    def direction(self, on_surplus: FloatArray, on_slacks: FloatArray, on_votes: FloatArray) -> PathPoint:
        """Return the direction in which the products of the pairs change by the given amounts."""
        program, point = self.program, self.point
        target = on_surplus / point.multipliers - on_slacks / point.room
        if program.on_simplex:
            target = target - self.theta @ target / self.theta.sum()
        pull = on_votes / point.votes
        votes, level, multipliers = self._solve_reduced(pull + (self.theta * target) @ program.margins, target)
        if self.is_exact:  # and so near the end that thetas are huge: what rounding missed is solved for once more
            weights = program.ridge + point.prices / point.votes
            more = self._solve_reduced(pull - weights * votes + multipliers @ program.margins - level, 0.0)
            votes, level, multipliers = votes + more[0], level + more[1], multipliers + more[2]
        return PathPoint(
            votes,
            (on_slacks + point.slacks * multipliers) / point.room,
            (on_surplus - point.surplus * multipliers) / point.multipliers,
            multipliers,
            -multipliers,
            # From feasibility and not from the pair: an inexact system then costs progress, but no bound.
            program.ridge * votes - multipliers @ program.margins + level,
        )

    def _solve_reduced(self, right: FloatArray, target: FloatArray | float) -> tuple[FloatArray, float, FloatArray]:
        """Return the change of votes, level and multipliers."""
        votes, level = self._solve(right), 0.0
        if self.program.on_simplex:
            level = float(votes.sum() / self.ones.sum())
            votes = votes - level * self.ones
        change = self.program.margins @ votes - (self.mean @ votes if self.program.on_simplex else 0.0)
        return votes, level, np.asarray(self.theta * (target - change))
