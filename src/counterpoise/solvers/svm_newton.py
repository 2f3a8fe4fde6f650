"""Newton's method on the smoothed support vector machine, for rows with at most some hundreds of columns.

The proximal point method on the dual: each stage maximizes the dual less ``(dual - centre)**2 / (2 * stiffness)`` a
row, with ``stiffness = (up + down) / softness``, and the next one starts at its result with a smaller softness. Seen
from the classifier, a stage minimizes the problem with each kink rounded off over a range of scores of that length,
shifted so that the rounding costs nothing in the limit. That is a smooth convex function of coefficients and bias whose
second derivative needs only the rows on the rounded kinks: about 1,300 of a9a's 32,561 at a gap of a thousandth.
(Semismooth Newton on the augmented Lagrangian: Li, Sun and Toh 2018; for support vector machines Yan and Li 2020.)
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from counterpoise._base.types import FloatArray, IntArray
from counterpoise.solvers import _svm_kernels as kernels
from counterpoise.solvers.svm_bounds import Bounds, Problem, balanced
from counterpoise.solvers.svm_rows import LinearRows

_COLD = 1.0  # softness to begin with, in units of score; the two kinks of a row are 1 apart
WARM = 0.5  # softness to begin with near a solution
_SAMPLE = 20_000  # rows that a cold start solves first ...
_MANY = 100_000  # ... where there are at least so many
_COARSE, _COARSE_STEPS = 0.01, 50  # that solution's gap, as a part of all weight, and its steps at the most
_SHARPEN = 0.3  # softness from one stage to the next
_SHARPEST = 1e-5
_SETTLED = 0.1  # a stage ends when Newton's step promises less than this part of the gap
_NEXT_TO_NOTHING = 1e-6  # part of the weight of all rows that does not make a curvature
_RIDGE, _RIDGE_FACTOR = 1e-12, 100.0  # part of the diagonal added before factorizing, and its growth on failure
_FLAT = 0.1  # a line search ends at a slope of this part of the first one
_MOST_TRIALS = 60
_ROUNDING = 1e-14  # part of the value and of all weight by which the value may rise in a step
_TINY = 1e-300


@dataclass
class Point:
    """A classifier, its scores, and the centre and softness of the stage."""

    coefficients: FloatArray
    bias: float
    centre: FloatArray
    softness: float


def starting_point(rows: LinearRows, problem: Problem) -> Point:
    """Return a point to begin at: the solution on a sample of the rows where there are many, else zeros.

    A step from zeros needs the curvature of nearly all rows, one from a good classifier that of the few near the kinks.
    """
    n_rows, zeros = rows.index.size, np.zeros(rows.n_columns)
    if n_rows < _MANY:
        return Point(zeros, 0.0, np.zeros(n_rows), _COLD)
    chosen = np.sort(np.random.default_rng(0).choice(n_rows, _SAMPLE, replace=False))
    total = problem.up + problem.down
    scale = total.sum() / total[chosen].sum()
    part = Problem(problem.up[chosen] * scale, problem.down[chosen] * scale, problem.regularization, problem.fit_bias)
    bounds = Bounds(tol=_COARSE * float(total.sum()))
    sample = LinearRows(rows.matrix, rows.n_columns, rows.index[chosen])
    minimize_by_newton(sample, part, bounds, Point(zeros, 0.0, np.zeros(_SAMPLE), _COLD), _COARSE_STEPS)
    point = Point(bounds.coefficients, bounds.bias, np.zeros(n_rows), _SHARPEST)
    point.centre = _best_reply(rows, problem, point, rows.scores(point.coefficients) - point.bias).duals
    point.softness = WARM
    return point


def minimize_by_newton(rows: LinearRows, problem: Problem, bounds: Bounds, point: Point, max_iter: int) -> int:
    """Improve the bounds until they are good enough or the steps run out; return the number of Newton steps."""
    scores = rows.scores(point.coefficients) - point.bias
    for n_iter in range(max_iter):
        reply = _best_reply(rows, problem, point, scores)
        rest = _offer_both(rows, problem, bounds, point, scores, reply)
        if bounds.done:
            return n_iter
        if rest <= _SETTLED:
            point.centre, point.softness = reply.duals, max(point.softness * _SHARPEN, _SHARPEST)
            reply = _best_reply(rows, problem, point, scores)
        step = _newton_step(rows, problem, point, reply)
        change = rows.scores(step[:-1]) - step[-1]
        length = _line_search(problem, point, scores, step, change)
        point.coefficients = point.coefficients + length * step[:-1]
        point.bias += length * float(step[-1])
        scores += length * change
    return max_iter


class _Reply(NamedTuple):
    """The best duals against a classifier in the smoothed problem."""

    duals: FloatArray
    free: IntArray  # rows whose dual moves with the score
    summed: FloatArray  # rows weighted by the duals
    hinges: float  # of the classifier, not smoothed


def _best_reply(rows: LinearRows, problem: Problem, point: Point, scores: FloatArray) -> _Reply:
    duals, free = np.empty_like(scores), np.empty(scores.size, dtype=np.int64)
    n_free, hinges = kernels.replies(point.centre, scores, problem.up, problem.down, point.softness, duals, free)
    return _Reply(duals, free[:n_free], rows.state(duals), hinges)


def _offer_both(
    rows: LinearRows, problem: Problem, bounds: Bounds, point: Point, scores: FloatArray, reply: _Reply
) -> float:
    """Offer the classifier, and the duals made to sum to 0; return how far the stage is from its end.

    That is the part of their gap which the smoothed problem has too: Newton's method closes it. The rest of the gap is
    due to the smoothing.
    """
    ridge = problem.regularization / 2 * float(point.coefficients @ point.coefficients)
    value = ridge + reply.hinges
    bounds.offer(point.coefficients, point.bias, value)
    duals, summed = reply.duals, reply.summed
    smoothed = ridge + problem.proven(duals, 0.0) - float(duals @ scores) - _distance(problem, point, duals)
    if problem.fit_bias:
        duals, changed = balanced(reply.duals, problem)
        summed = summed + rows.state((duals - reply.duals)[changed], changed)
    lower = problem.proven(duals, float(summed @ summed))
    bounds.offer_duals(duals, lower)
    return (smoothed - lower + _distance(problem, point, duals)) / max(value - lower, _TINY)


def _distance(problem: Problem, point: Point, duals: FloatArray) -> float:
    """Return what the smoothed dual takes off for the distance from the centre."""
    return float(point.softness / 2 * ((duals - point.centre) ** 2 / (problem.up + problem.down)).sum())


def _newton_step(rows: LinearRows, problem: Problem, point: Point, reply: _Reply) -> FloatArray:
    """Return the step in coefficients and bias."""
    n_columns, total = rows.n_columns, problem.up + problem.down
    curved = _curved_rows(total, reply.free)
    stiffness = total[curved] / point.softness
    slope = np.append(
        problem.regularization * point.coefficients - reply.summed, reply.duals.sum() if problem.fit_bias else 0.0
    )
    curvature = np.zeros((n_columns + 1, n_columns + 1))
    curvature[:-1, :-1] = rows.products(curved, stiffness)
    curvature[:-1, -1] = curvature[-1, :-1] = -rows.state(stiffness, curved)
    curvature[-1, -1] = stiffness.sum()
    np.einsum("ii->i", curvature)[:-1] += problem.regularization
    if not problem.fit_bias:
        curvature[-1, :-1] = curvature[:-1, -1] = 0.0
    return -_solve_positive(curvature, slope)


def _curved_rows(total: FloatArray, free: IntArray) -> IntArray:
    """Return the rows whose curvature counts: the free ones, or all where those weigh next to nothing.

    The curvature of all rows bounds that of the smoothed problem everywhere, so its step lowers the value. That of
    nearly none has no scale: the step in the bias, which nothing regularizes, can be 1e13, harmless for weights that
    are rounding and too far off to return from for the next ones.
    """
    return free if total[free].sum() > _NEXT_TO_NOTHING * total.sum() else np.arange(total.size)


def _solve_positive(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """Solve with a positive semidefinite matrix, its diagonal raised by as little as the factorization needs.

    The seventh attempt at the latest succeeds: the ridge is then the largest entry, and rounding is far below it.
    """
    diagonal = np.einsum("ii->i", matrix)
    ridge = _RIDGE * diagonal.max()
    while True:
        diagonal += ridge
        try:
            return np.asarray(cho_solve(cho_factor(matrix), right))
        except LinAlgError:
            ridge *= _RIDGE_FACTOR


def _line_search(problem: Problem, point: Point, scores: FloatArray, step: FloatArray, change: FloatArray) -> float:
    """Return a length at which the smoothed value is nearly flat along the step, and not above where it began.

    The slope alone does not tell: past a sharp kink the value can rise for long at a small part of the first slope.
    """
    moved = step[:-1]

    def along(length: float) -> tuple[float, float]:
        reached = point.coefficients + length * moved
        value, slope = kernels.smoothed_hinges(
            point.centre, scores, change, length, problem.up, problem.down, point.softness
        )
        ridge = problem.regularization / 2 * float(reached @ reached)
        return value + ridge, slope + problem.regularization * float(reached @ moved)

    first, steepest = along(0.0)
    weight = float(problem.up.sum() + problem.down.sum())
    most, flat = first + _ROUNDING * (abs(first) + weight), _FLAT * abs(steepest)
    low, high, length = 0.0, np.inf, 1.0
    for _ in range(_MOST_TRIALS):
        value, slope = along(length)
        if abs(slope) <= flat and value <= most:
            return length
        low, high = (low, length) if slope > 0 else (length, high)
        length = (low + high) / 2 if high < np.inf else 2 * length
    return low  # the value falls all the way to it
