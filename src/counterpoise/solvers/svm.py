"""The weighted support vector machine inside majorization-minimization, with a certificate.

Problem (Goh, Cotter, Gupta and Friedlander 2016, Appendix F, for fixed multipliers)::

    min over coefficients, bias of  regularization / 2 * |coefficients|**2
        + sum over rows of  up * max(0, 1/2 - score) + down * max(0, 1/2 + score),   score = row @ coefficients - bias.

A row has two hinges, one that pushes its score up and one that pushes it down: the majorized ramps of all the rates
that count it. Both together have one dual variable, the slope of the row's loss with the sign turned::

    max over duals in [-down, up], sum of duals = 0 (with a bias), of
        sum over rows of (up + down - |dual - (up - down)|) / 2
        - |sum over rows of dual * row|**2 / (2 * regularization).

Two methods share these bounds. Newton's method on the smoothed problem (``svm_newton``) treats the bias as one more
coefficient, and takes tens of passes where coordinate ascent takes hundreds: with weights 1/n and a regularization of
1/n, one step in one dual moves it a small part of its interval. But its steps cost the square of the number of columns,
so wide rows, and Gram matrices, go to dual coordinate ascent (``svm_ascent``).
"""

from typing import Any

import numpy as np
from scipy.sparse import issparse

from counterpoise._base.checks import as_numbers, check_choice, check_count, check_positive, check_vector, value_range
from counterpoise._base.types import AnyArray, ArrayLike, FloatArray, IntArray
from counterpoise.solvers.result import power_of_two
from counterpoise.solvers.svm_ascent import maximize_by_ascent
from counterpoise.solvers.svm_bounds import Bounds, Problem, SVMSolution
from counterpoise.solvers.svm_gram import Gram, check_gram
from counterpoise.solvers.svm_newton import WARM, Point, minimize_by_newton, starting_point
from counterpoise.solvers.svm_rows import GramRows, LinearRows, linear_rows

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
    >>> found = solve_svm(X, up=[1, 1, 0], down=[0, 0, 1], regularization=0.1, tol=1e-6)
    >>> found.coefficients.round(3).tolist(), round(found.bias, 3), round(found.value, 4)
    ([0.5], 0.5, 0.0125)
    """
    matrix = _check_matrix(X)
    method = check_choice(method, "method", ("auto", "newton", "ascent"))
    n_rows, n_columns = matrix.shape
    index, problem = _problem(up, down, n_rows, regularization, fit_bias)
    _check_start(start, n_rows, n_columns)
    by_ascent = method == "ascent" or (method == "auto" and n_columns >= _WIDE)
    most = _MAX_SWEEPS if by_ascent else _MAX_STEPS
    limit = most if max_iter is None else check_count(max_iter, "max_iter")
    bounds = _bounds_at_zero(problem, n_columns, Bounds(check_positive(tol, "tol") / problem.unit))
    rows = linear_rows(matrix, index)
    duals, bias = _first_duals(problem, index, start)
    if bounds.done:
        n_iter = 0
    elif by_ascent:
        n_iter = maximize_by_ascent(rows, problem, bounds, duals, bias, limit)
    else:
        point = starting_point(rows, problem) if start is None else Point(start.coefficients, bias, duals, WARM)
        n_iter = minimize_by_newton(rows, problem, bounds, point, limit)
    return _certified(rows, problem, bounds, n_rows, n_iter)


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
        allows. Where several problems are solved on the same rows, ``svm_gram.check_gram`` checks that once for all.
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
    checked = check_gram(gram)
    n_rows = checked.matrix.shape[0]
    index, problem = _problem(up, down, n_rows, regularization, fit_bias)
    _check_start(start, n_rows, n_rows)
    limit = check_count(max_iter, "max_iter")
    bounds = _bounds_at_zero(problem, n_rows, Bounds(check_positive(tol, "tol") / problem.unit))
    rows = GramRows(checked, index)
    duals, bias = _first_duals(problem, index, start)
    n_iter = 0 if bounds.done else maximize_by_ascent(rows, problem, bounds, duals, bias, limit)
    return _certified(rows, problem, bounds, n_rows, n_iter)


def _problem(
    up: ArrayLike, down: ArrayLike, n_rows: int, regularization: float, fit_bias: bool
) -> tuple[IntArray, Problem]:
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
    return index, Problem(weights[0][index] / unit, weights[1][index] / unit, strength / unit, bool(fit_bias), unit)


def _bounds_at_zero(problem: Problem, n_coefficients: int, bounds: Bounds) -> Bounds:
    """Return the bounds with what is known before any step: a classifier and duals of zeros."""
    nothing = np.zeros(problem.up.size)
    bounds.offer(np.zeros(n_coefficients), 0.0, problem.hinges(nothing))
    bounds.offer_duals(nothing, problem.proven(nothing, 0.0))
    return bounds


def _first_duals(problem: Problem, index: IntArray, start: SVMSolution | None) -> tuple[FloatArray, float]:
    """Return duals inside their intervals, and a bias."""
    if start is None:
        return np.zeros(index.size), 0.0
    bias = start.bias if problem.fit_bias else 0.0
    return np.clip(start.duals[index] / problem.unit, -problem.down, problem.up), bias


def _certified(rows: LinearRows | GramRows, problem: Problem, bounds: Bounds, n_rows: int, n_iter: int) -> SVMSolution:
    """Return the best vectors with the bounds computed from them alone.

    Rounding alone can put the lower bound above the value, and counts for nothing there.
    """
    products, square = rows.evaluate(bounds.coefficients)
    value = problem.regularization / 2 * square + problem.hinges(products - bounds.bias)
    lower = problem.proven(bounds.duals, rows.square(bounds.duals))
    duals, unit = np.zeros(n_rows), problem.unit
    duals[rows.index] = unit * bounds.duals
    return SVMSolution(bounds.coefficients, bounds.bias, duals, unit * value, unit * min(lower, value), n_iter)


def _check_matrix(X: Any) -> Any:
    """Return X as a C-ordered dense or a canonical CSR matrix of floats, itself where it is one."""
    matrix: Any = X.tocsr() if issparse(X) else as_numbers(X, "X")
    if matrix.ndim != _MATRIX or 0 in matrix.shape:
        raise ValueError(f"X must have shape (n_rows, n_columns), at least one of each; got shape {matrix.shape}.")
    kind = matrix.dtype if matrix.dtype in (np.float32, np.float64) else np.float64
    if not issparse(matrix):
        dense = np.ascontiguousarray(matrix, dtype=kind)
        _check_size(dense)
        return dense
    if matrix.data.dtype.kind not in "biuf":
        raise TypeError(f"X must hold real numbers; got dtype {matrix.dtype}.")
    if not matrix.has_canonical_format:  # an entry given in parts would have a wrong square
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if matrix.nnz:
        _check_size(matrix.data)
    return matrix.astype(kind, copy=False)


def _check_size(values: AnyArray) -> None:
    largest = max(map(abs, value_range(values, "X")))
    if largest > _LARGEST:
        raise ValueError(
            f"X must hold numbers of at most {_LARGEST:g} in size, whose squares can be added up; got {largest!r}. "
            "Divide its columns by their largest numbers first, as MaxAbsScaler does."
        )


def _check_start(start: SVMSolution | None, n_rows: int, n_coefficients: int) -> None:
    if start is not None and (start.duals.shape != (n_rows,) or start.coefficients.shape != (n_coefficients,)):
        raise ValueError(
            f"start must be a solution on the same rows and columns: {n_rows} duals and {n_coefficients} coefficients; "
            f"got {start.duals.size} and {start.coefficients.size}."
        )
