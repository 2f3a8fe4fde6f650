"""The weighted support vector machine inside majorization-minimization, with a certificate.

Problem (Goh, Cotter, Gupta and Friedlander 2016, Appendix F, for fixed multipliers)::

    min over coefficients, bias of  regularization / 2 * |coefficients|**2
        + sum over rows of  up * max(0, 1/2 - score) + down * max(0, 1/2 + score),   score = row @ coefficients - bias.

A row has two hinges, one that pushes its score up and one that pushes it down: the majorized ramps of all the rates
that count it. Both together have one dual variable, the slope of the row's loss with the sign turned::

    max over duals in [-down, up], sum of duals = 0 (with a bias), of
        sum over rows of (up + down - |dual - (up - down)|) / 2
        - |sum over rows of dual * row|**2 / (2 * regularization).

Two methods share these bounds. Newton's method on the smoothed problem (``minimize_by_newton``) treats the bias as one
more coefficient, and takes tens of passes where coordinate ascent takes hundreds: with weights 1/n and a regularization
of 1/n, one step in one dual moves it a small part of its interval. But its steps cost the square of the number of
columns, so wide rows, and Gram matrices, go to dual coordinate ascent (``maximize_by_ascent``).

Newton's method is for rows with at most some hundreds of columns. It is the proximal point method on the dual. Each
stage maximizes the dual less ``(dual - centre)**2 / (2 * stiffness)`` a row, with ``stiffness = (up + down) /
softness``, and the next one starts at its result with a smaller softness. Seen from the classifier, a stage minimizes
the problem with each kink rounded off over a range of scores of that length, shifted so that the rounding costs nothing
in the limit. That is a smooth convex function of coefficients and bias whose second derivative needs only the rows on
the rounded kinks: about 1,300 of a9a's 32,561 at a gap of a thousandth. (Semismooth Newton on the augmented Lagrangian:
Li, Sun and Toh 2018; for support vector machines Yan and Li 2020.)

Dual coordinate ascent is for wide rows and for Gram matrices. Each step maximizes the dual exactly in one row's
variable, at the cost of that row alone (Hsieh et al. 2008; Shalev-Shwartz and Zhang 2013). Rows whose dual rests at a
corner of its function, and would stay there under any change of score seen in the last sweep, are left out until the
bounds are next computed.

A bias without regularization asks for duals that sum to 0, which steps in one variable cannot keep. The paper searches
over the bias outside (its Algorithm 3), a whole solve for each bias tried. Here the bias is one more coefficient,
pulled only towards its own last value (the method of multipliers on the sum): a sweep moves it as it moves the
coefficients, and the centre of the pull follows after each round.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import issparse

from counterpoise._base.checks import as_numbers, check_choice, check_count, check_positive, check_vector, value_range
from counterpoise._base.types import ArrayLike, FloatArray, IntArray
from counterpoise.solvers import _svm_kernels as kernels
from counterpoise.solvers.linear_program import power_of_two
from counterpoise.solvers.svm_problem import (
    Gram,
    GramRows,
    LinearRows,
    SVMBounds,
    SVMProblem,
    SVMSolution,
    balance,
    check_gram,
)

_SWEEPS = 5  # between computations of the bounds, which cost about two
_BIAS_SQUARE = 0.1  # the bias moves as if it were a column with this part of a mean row's square
_FLIP = 0.3  # ... but all duals going from end to end move it by at least this much: the two kinks of a row are 1 apart
_SMALLEST = 1e-300  # square of a row; a row of zeros then takes its best dual in one step


def maximize_by_ascent(
    rows: LinearRows | GramRows, problem: SVMProblem, bounds: SVMBounds, duals: FloatArray, bias: float, max_iter: int
) -> int:
    """Improve the bounds until they are good enough; return the number of sweeps."""
    pace = 1.0 / problem.regularization
    squares = rows.squares()
    least = _FLIP / float((problem.up + problem.down).sum())
    bias_pace = max(pace * _BIAS_SQUARE * float(squares.mean()), least) if problem.fit_bias else 0.0
    stiffness = 1.0 / np.maximum(squares * pace + bias_pace, _SMALLEST)
    state, room = rows.state(duals) * pace, np.inf
    rng = np.random.default_rng(0)  # the answer is certified; the seed only makes it the same every time
    n_iter = 0
    while True:
        # Offer the classifier with its best bias, and the duals made to sum to 0.
        products = rows.scores(state)
        best_bias = problem.best_bias(products, bias) if problem.fit_bias else bias
        value = float(duals @ products) / 2 + problem.hinges(products - best_bias)
        bounds.offer(rows.coefficients(state, duals / problem.regularization), best_bias, value)
        balanced_duals = balance(duals, problem)[0] if problem.fit_bias else duals
        bounds.offer_duals(balanced_duals, problem.proven(balanced_duals, rows.square(balanced_duals)))
        if bounds.is_done or n_iter >= max_iter:
            return n_iter
        bias -= float(duals.sum()) * bias_pace
        order = np.arange(duals.size)
        for _ in range(min(_SWEEPS, max_iter - n_iter)):
            rng.shuffle(order)
            weights = (problem.up, problem.down, stiffness)
            n_active, bias, room = kernels.sweep(
                rows.matrix, rows.index, order, *weights, duals, state, bias, pace, bias_pace, room
            )
            order = order[:n_active]
            n_iter += 1


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
class NewtonPoint:
    """A classifier, its scores, and the centre and softness of the stage."""

    coefficients: FloatArray
    bias: float
    centre: FloatArray
    softness: float


def starting_point(rows: LinearRows, problem: SVMProblem) -> NewtonPoint:
    """Return a point to begin at: the solution on a sample of the rows where there are many, else zeros.

    A step from zeros needs the curvature of nearly all rows, one from a good classifier that of the few near the kinks.
    """
    n_rows, zeros = rows.index.size, np.zeros(rows.n_columns)
    if n_rows < _MANY:
        return NewtonPoint(zeros, 0.0, np.zeros(n_rows), _COLD)
    places = np.sort(np.random.default_rng(0).choice(n_rows, _SAMPLE, replace=False))
    total = problem.up + problem.down
    scale = total.sum() / total[places].sum()
    part = SVMProblem(
        problem.up[places] * scale, problem.down[places] * scale, problem.regularization, problem.fit_bias
    )
    bounds = SVMBounds(tol=_COARSE * float(total.sum()))
    sample = LinearRows(rows.X, rows.index[places])
    minimize_by_newton(sample, part, bounds, NewtonPoint(zeros, 0.0, np.zeros(_SAMPLE), _COLD), _COARSE_STEPS)
    point = NewtonPoint(bounds.coefficients, bounds.bias, np.zeros(n_rows), _SHARPEST)
    point.centre = _best_reply(rows, problem, point, rows.scores(point.coefficients) - point.bias).duals
    point.softness = WARM
    return point


def minimize_by_newton(
    rows: LinearRows, problem: SVMProblem, bounds: SVMBounds, point: NewtonPoint, max_iter: int
) -> int:
    """Improve the bounds until they are good enough or the steps run out; return the number of Newton steps."""
    scores = rows.scores(point.coefficients) - point.bias
    for n_iter in range(max_iter):
        reply = _best_reply(rows, problem, point, scores)
        rest = _offer_step(rows, problem, bounds, point, scores, reply)
        if bounds.is_done:
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
    row_sum: FloatArray  # rows weighted by the duals
    hinges: float  # of the classifier, not smoothed


def _best_reply(rows: LinearRows, problem: SVMProblem, point: NewtonPoint, scores: FloatArray) -> _Reply:
    duals, free = np.empty_like(scores), np.empty(scores.size, dtype=np.int64)
    n_free, hinges = kernels.replies(point.centre, scores, problem.up, problem.down, point.softness, duals, free)
    return _Reply(duals, free[:n_free], rows.state(duals), hinges)


def _offer_step(
    rows: LinearRows, problem: SVMProblem, bounds: SVMBounds, point: NewtonPoint, scores: FloatArray, reply: _Reply
) -> float:
    """Offer the classifier, and the duals made to sum to 0; return how far the stage is from its end.

    That is the part of their gap which the smoothed problem has too: Newton's method closes it. The rest of the gap is
    due to the smoothing.
    """
    ridge = problem.regularization / 2 * float(point.coefficients @ point.coefficients)
    value = ridge + reply.hinges
    bounds.offer(point.coefficients, point.bias, value)
    duals, row_sum = reply.duals, reply.row_sum
    smooth_value = ridge + problem.proven(duals, 0.0) - float(duals @ scores) - _distance(problem, point, duals)
    if problem.fit_bias:
        duals, places = balance(reply.duals, problem)
        row_sum = row_sum + rows.state((duals - reply.duals)[places], places)
    lower = problem.proven(duals, float(row_sum @ row_sum))
    bounds.offer_duals(duals, lower)
    return (smooth_value - lower + _distance(problem, point, duals)) / max(value - lower, _TINY)


def _distance(problem: SVMProblem, point: NewtonPoint, duals: FloatArray) -> float:
    """Return what the smoothed dual takes off for the distance from the centre."""
    return float(point.softness / 2 * ((duals - point.centre) ** 2 / (problem.up + problem.down)).sum())


def _newton_step(rows: LinearRows, problem: SVMProblem, point: NewtonPoint, reply: _Reply) -> FloatArray:
    """Return the step in coefficients and bias."""
    n_columns, total = rows.n_columns, problem.up + problem.down
    # The rows whose curvature counts: the free ones, or all where those weigh next to nothing. The curvature of all
    # rows bounds that of the smoothed problem everywhere, so its step lowers the value. That of nearly none has no
    # scale: the step in the bias, which nothing regularizes, can be 1e13, harmless for weights that are rounding and
    # too far off to return from for the next ones.
    is_enough = total[reply.free].sum() > _NEXT_TO_NOTHING * total.sum()
    places = reply.free if is_enough else np.arange(total.size)
    stiffness = total[places] / point.softness
    slope = np.append(
        problem.regularization * point.coefficients - reply.row_sum, reply.duals.sum() if problem.fit_bias else 0.0
    )
    curvature = np.zeros((n_columns + 1, n_columns + 1))
    curvature[:-1, :-1] = rows.products(places, stiffness)
    curvature[:-1, -1] = curvature[-1, :-1] = -rows.state(stiffness, places)
    curvature[-1, -1] = stiffness.sum()
    np.einsum("ii->i", curvature)[:-1] += problem.regularization
    if not problem.fit_bias:
        curvature[-1, :-1] = curvature[:-1, -1] = 0.0
    # The matrix is positive semidefinite: its diagonal is raised by as little as the factorization needs. The seventh
    # attempt at the latest succeeds: the ridge is then the largest entry, and rounding is far below it.
    diagonal = np.einsum("ii->i", curvature)
    ridge = _RIDGE * diagonal.max()
    while True:
        diagonal += ridge
        try:
            return np.asarray(cho_solve(cho_factor(curvature), -slope))
        except LinAlgError:
            ridge *= _RIDGE_FACTOR


def _line_search(
    problem: SVMProblem, point: NewtonPoint, scores: FloatArray, step: FloatArray, change: FloatArray
) -> float:
    """Return a length at which the smoothed value is nearly flat along the step, and not above where it began.

    The slope alone is not enough: past a sharp kink the value can rise for long at a small part of the first slope.
    """
    direction = step[:-1]

    def along(length: float) -> tuple[float, float]:
        coefficients = point.coefficients + length * direction
        value, slope = kernels.smoothed_hinges(
            point.centre, scores, change, length, problem.up, problem.down, point.softness
        )
        ridge = problem.regularization / 2 * float(coefficients @ coefficients)
        return value + ridge, slope + problem.regularization * float(coefficients @ direction)

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


_WIDE = 500  # columns from which coordinate ascent is faster
_MAX_STEPS = 1000  # of Newton's method; tens are usual, and rows of size 1e3 with a regularization of 1e-10 took 642
_MAX_SWEEPS = 5000  # of coordinate ascent
_MATRIX = 2  # dimensions
_LARGEST = 1e150  # entry of X


def solve_svm(
    X: Any,
    up: ArrayLike,
    down: ArrayLike,
    regularization: float,
    *,
    fit_bias: bool = True,
    tol: float = 1e-4,
    start: SVMSolution | None = None,
    max_iter: int | None = None,
    method: str = "auto",
) -> SVMSolution:
    """Minimize two weighted hinges a row plus a ridge on the coefficients.

    Solves ``min over coefficients, bias of regularization / 2 * |coefficients|**2 + sum over rows of
    up * max(0, 1/2 - score) + down * max(0, 1/2 + score)`` with ``score = row @ coefficients - bias``.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_rows, n_columns)
        Finite. C-ordered float32 or float64, dense or CSR, is read where it lies; anything else is converted once.
    up, down : arrays of shape (n_rows,)
        Weights >= 0 of the hinge that pushes a row's score up, and of the one that pushes it down. Rows where both are
        0 cost nothing.
    regularization : float > 0
        Of the coefficients. The bias has none.
    fit_bias : bool, default=True
        Whether there is a bias; without it the bias is 0.
    tol : float, default=1e-4
        Stop when ``value - lower`` is at most this, in units of the weights.
    start : SVMSolution, optional
        An earlier solution on the same rows, with whatever weights and regularization; its duals are clipped into the
        new intervals.
    max_iter : int, optional
        Stop after so many Newton steps or sweeps, whatever the gap; by default after 1000 or 5000 of them.
    method : {"auto", "newton", "ascent"}, default="auto"
        Newton's method or dual coordinate ascent; "auto" takes the latter from 500 columns on.

    Returns
    -------
    SVMSolution
        ``coefficients``, ``bias``, ``duals``, ``value``, ``lower``, ``gap``, ``n_iter``.

    Examples
    --------
    Two rows that should score high and one that should score low:

    >>> from counterpoise.solvers import solve_svm
    >>> X = [[3.0], [2.0], [0.0]]
    >>> solution = solve_svm(X, up=[1, 1, 0], down=[0, 0, 1], regularization=0.1, tol=1e-6)
    >>> solution.coefficients.round(3).tolist(), round(solution.bias, 3), round(solution.value, 4)
    ([0.5], 0.5, 0.0125)
    """
    matrix = _check_matrix(X)
    method = check_choice(method, "method", ("auto", "newton", "ascent"))
    by_ascent = method == "ascent" or (method == "auto" and matrix.shape[1] >= _WIDE)
    index, problem = _problem(up, down, matrix.shape[0], regularization, fit_bias)
    limit = (_MAX_SWEEPS if by_ascent else _MAX_STEPS) if max_iter is None else max_iter
    return _solve(LinearRows(matrix, index), problem, tol, start, limit, by_ascent=by_ascent)


def solve_kernel_svm(
    gram: ArrayLike | Gram,
    up: ArrayLike,
    down: ArrayLike,
    regularization: float,
    *,
    fit_bias: bool = True,
    tol: float = 1e-4,
    start: SVMSolution | None = None,
    max_iter: int = _MAX_SWEEPS,
) -> SVMSolution:
    """Solve the same problem in the feature space of a kernel, by dual coordinate ascent on its Gram matrix.

    Parameters
    ----------
    gram : array of shape (n_rows, n_rows) or Gram
        The kernel of all pairs of rows: symmetric and positive semidefinite, but for rounding, for which ``lower``
        allows. Where several problems are solved on the same rows, ``svm_problem.check_gram`` checks that once for all.
    up, down, regularization, fit_bias, tol, start
        As for ``solve_svm``.
    max_iter : int, default=5000
        Stop after so many sweeps, whatever the gap.

    Returns
    -------
    SVMSolution
        Its ``coefficients`` belong to the rows: a point has the score ``kernel(point, rows) @ coefficients - bias``.

    Examples
    --------
    >>> from counterpoise.solvers import solve_kernel_svm
    >>> gram = [[1.0, 0.0], [0.0, 1.0]]
    >>> solve_kernel_svm(gram, up=[1, 0], down=[0, 1], regularization=0.1).coefficients.round(3).tolist()
    [0.5, -0.5]
    """
    kernel = check_gram(gram)
    index, problem = _problem(up, down, len(kernel.matrix), regularization, fit_bias)
    return _solve(GramRows(kernel, index), problem, tol, start, max_iter, by_ascent=True)


def _solve(
    rows: LinearRows | GramRows,
    problem: SVMProblem,
    tol: float,
    start: SVMSolution | None,
    most: int,
    *,
    by_ascent: bool,
) -> SVMSolution:
    """Solve by one of the two methods, and return the best vectors with the bounds computed from them alone."""
    n_rows, n_coefficients = rows.shape
    if start is not None and (start.duals.shape != (n_rows,) or start.coefficients.shape != (n_coefficients,)):
        raise ValueError(
            f"start must be a solution on the same rows and columns: {n_rows} duals and {n_coefficients} coefficients; "
            f"got {start.duals.size} and {start.coefficients.size}."
        )
    limit, unit = check_count(most, "max_iter"), problem.unit
    # What is known before any step: a classifier and duals of zeros.
    bounds, nothing = SVMBounds(check_positive(tol, "tol") / unit), np.zeros(problem.up.size)
    bounds.offer(np.zeros(n_coefficients), 0.0, problem.hinges(nothing))
    bounds.offer_duals(nothing, problem.proven(nothing, 0.0))
    duals, bias = nothing.copy(), 0.0
    if start is not None:
        duals = np.clip(start.duals[rows.index] / unit, -problem.down, problem.up)
        bias = start.bias if problem.fit_bias else 0.0
    n_iter = 0
    if not bounds.is_done and isinstance(rows, LinearRows) and not by_ascent:
        point = starting_point(rows, problem) if start is None else NewtonPoint(start.coefficients, bias, duals, WARM)
        n_iter = minimize_by_newton(rows, problem, bounds, point, limit)
    elif not bounds.is_done:
        n_iter = maximize_by_ascent(rows, problem, bounds, duals, bias, limit)
    products, square = rows.evaluate(bounds.coefficients)
    value = problem.regularization / 2 * square + problem.hinges(products - bounds.bias)
    lower = problem.proven(bounds.duals, rows.square(bounds.duals))
    duals = np.zeros(n_rows)
    duals[rows.index] = unit * bounds.duals
    # Rounding alone can put the lower bound above the value, and counts for nothing there.
    return SVMSolution(bounds.coefficients, bounds.bias, duals, unit * value, unit * min(lower, value), n_iter)


def _problem(
    up: ArrayLike, down: ArrayLike, n_rows: int, regularization: float, fit_bias: bool
) -> tuple[IntArray, SVMProblem]:
    """Return the rows that have any weight, and the problem on them."""
    weights = []
    for values, name in ((up, "up"), (down, "down")):
        vector = check_vector(values, name, n_rows, f"one weight for each row, of the hinge that pushes it {name}")
        if vector.size and vector.min() < 0:
            raise ValueError(f"{name} must not be negative; got a weight of {float(vector.min())!r}.")
        weights.append(vector)
    index = np.flatnonzero((weights[0] > 0) | (weights[1] > 0))
    strength = check_positive(regularization, "regularization")
    unit = power_of_two(max(float(one.max(initial=0.0)) for one in weights))
    return index, SVMProblem(weights[0][index] / unit, weights[1][index] / unit, strength / unit, bool(fit_bias), unit)


def _check_matrix(X: Any) -> Any:
    """Return X as a C-ordered dense or a canonical CSR matrix of floats, itself where it is one."""
    matrix: Any = X.tocsr() if issparse(X) else as_numbers(X, "X")
    if matrix.ndim != _MATRIX or 0 in matrix.shape:
        raise ValueError(f"X must have shape (n_rows, n_columns), at least one of each; got shape {matrix.shape}.")
    kind = matrix.dtype if matrix.dtype in (np.float32, np.float64) else np.float64
    if not issparse(matrix):
        matrix = values = np.ascontiguousarray(matrix, dtype=kind)
    else:
        if matrix.data.dtype.kind not in "biuf":
            raise TypeError(f"X must hold real numbers; got dtype {matrix.dtype}.")
        if not matrix.has_canonical_format:  # an entry given in parts would have a wrong square
            matrix = matrix.copy()
            matrix.sum_duplicates()
        values = matrix.data
    largest = max(map(abs, value_range(values, "X"))) if values.size else 0.0
    if largest > _LARGEST:
        raise ValueError(
            f"X must hold numbers of at most {_LARGEST:g} in size, whose squares can be added up; got {largest!r}. "
            "Divide its columns by their largest numbers first, as MaxAbsScaler does."
        )
    return matrix.astype(kind, copy=False)
