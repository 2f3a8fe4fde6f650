"""The weighted support vector machine as a problem: its rows or Gram matrix, and the bounds that prove a solution.

``SVMProblem`` has the value and the dual, ``SVMBounds`` the best vectors so far from both sides. ``LinearRows`` are
dense or sparse rows, ``GramRows`` rows of a Gram matrix; both are read in place.

``check_gram`` checks once that a matrix is the kernel of all pairs of rows. The dual proves its bounds only if ``duals
@ gram @ duals`` is a squared norm. For a matrix with an eigenvalue below zero it is not: the problem then has no least
value, and "lower bounds" lie above the value that they bound.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack

from counterpoise._base.checks import as_numbers, value_range
from counterpoise._base.types import ArrayLike, FloatArray, IntArray
from counterpoise.solvers import _svm_kernels as kernels

_MATRIX = 2  # dimensions
_ASYMMETRY = 1e-8  # as a part of the largest entry
# How far below zero rounding may put eigenvalues, as a part of the largest entry times the number of rows: careful
# kernels in double precision need the first, distances computed from squared norms the others.
_ROUNDING = (1e-14, 1e-12, 1e-10)


class Gram(NamedTuple):
    """A matrix that is positive semidefinite, but for rounding: no eigenvalue is below ``-slack``."""

    matrix: FloatArray
    slack: float


def check_gram(gram: "ArrayLike | Gram", name: str = "gram") -> Gram:
    """Return a Gram matrix after checking that it is finite, symmetric and positive semidefinite.

    Eigenvalues may lie below zero by rounding, at most ``1e-10 * n_rows`` of the largest entry. The exact amount is in
    a Cholesky factorization, which takes another matrix of the same size and the time of some sweeps over it.

    Parameters
    ----------
    gram : array of shape (n_rows, n_rows) or Gram
        What was checked before is returned as it is.
    name : str, default="gram"
        What messages call it.

    Returns
    -------
    Gram

    Examples
    --------
    >>> from counterpoise.solvers.svm_problem import check_gram
    >>> check_gram([[2.0, 1.0], [1.0, 2.0]]).matrix.tolist()
    [[2.0, 1.0], [1.0, 2.0]]
    >>> check_gram([[1.0, 2.0], [2.0, 1.0]])
    Traceback (most recent call last):
    ...
    ValueError: gram must be positive semidefinite, as the kernel of all pairs of rows is; the part of its first 2 ...
    """
    if isinstance(gram, Gram):
        return gram
    matrix = np.ascontiguousarray(as_numbers(gram, name), dtype=np.float64)
    if matrix.ndim != _MATRIX or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ValueError(f"{name} must have shape (n_rows, n_rows), one of each row; got shape {matrix.shape}.")
    largest = max(map(abs, value_range(matrix, name)))
    difference = float(np.abs(matrix - matrix.T).max())
    if difference > _ASYMMETRY * largest:
        raise ValueError(f"{name} must be symmetric, the kernel of all pairs of rows; got a matrix that is not.")
    if difference > 0.0:  # by rounding
        matrix = (matrix + matrix.T) / 2
    if largest == 0.0:
        return Gram(matrix, 0.0)
    for rounding in _ROUNDING:  # by how much of the largest entry the diagonal must be raised to have a Cholesky factor
        shift, scaled_matrix = rounding * len(matrix), matrix / largest
        scaled_matrix.flat[:: len(matrix) + 1] += shift
        _, failed_at = lapack.dpotrf(scaled_matrix.T, lower=True, clean=False, overwrite_a=True)
        if failed_at == 0:
            return Gram(matrix, largest * shift)
    raise ValueError(
        f"{name} must be positive semidefinite, as the kernel of all pairs of rows is; the part of its first "
        f"{failed_at} rows and columns is not. Take a kernel that is, such as 'rbf', and compute it in double "
        "precision from rows of similar sizes."
    )


_BOUND_ROUNDING = 1e-14  # a gap of this part of the value is rounding


class SVMSolution(NamedTuple):
    """A classifier, the dual variables beside it, and the bounds that they prove on the least value."""

    coefficients: FloatArray  # of the columns; for a Gram matrix, of its rows
    bias: float  # subtracted from the products: score = row @ coefficients - bias
    duals: FloatArray  # one for each row, in [-down, up]; they sum to 0 where a bias is fitted
    value: float  # of the coefficients and the bias: an upper bound
    lower: float  # what the duals prove
    n_iter: int

    @property
    def gap(self) -> float:
        """Return ``value - lower``: the least value is at most this far below ``value``."""
        return self.value - self.lower


@dataclass(frozen=True)
class SVMProblem:
    """The weights of the two hinges of each row that has any, and the regularization, in parts of a unit."""

    up: FloatArray
    down: FloatArray
    regularization: float
    fit_bias: bool
    unit: float = 1.0  # a power of two: products of weights as they were given might not be numbers

    def hinges(self, scores: FloatArray) -> float:
        """Return the weighted sum of the hinges."""
        return float(self.up @ np.maximum(0.0, 0.5 - scores) + self.down @ np.maximum(0.0, 0.5 + scores))

    def proven(self, duals: FloatArray, square: float) -> float:
        """Return the lower bound of duals whose weighted sum of rows has the given squared norm.

        Entry by entry: for a dual in [-down, up] the least of ``up max(0, 1/2 - z) + down max(0, 1/2 + z) + dual z``
        over all z lies at one of the two kinks, z = 1/2 or z = -1/2: ``(up + down - abs(dual - (up - down))) / 2``.
        """
        heights = self.up + self.down - np.abs(duals - (self.up - self.down))
        return float(heights.sum() / 2 - square / (2 * self.regularization))

    def best_bias(self, products: FloatArray, near: float) -> float:
        """Return the bias of least value for given ``row @ coefficients``, the nearest to ``near`` where many are.

        As a function of the bias the value is piecewise linear, with a kink where a row's score is 1/2 or -1/2.
        """
        kinks = np.concatenate([products - 0.5, products + 0.5])
        order = np.argsort(kinks)
        slopes = np.cumsum(np.concatenate([self.up, self.down])[order]) - self.down.sum()
        rounding = _BOUND_ROUNDING * (self.up.sum() + self.down.sum())
        last = kinks.size - 1
        first = kinks[order[min(int(np.searchsorted(slopes, -rounding)), last)]]
        final = kinks[order[min(int(np.searchsorted(slopes, rounding, side="right")), last)]]
        return float(min(max(near, first), final))


def balance(duals: FloatArray, problem: SVMProblem) -> tuple[FloatArray, IntArray]:
    """Return duals that sum to 0, as a free bias asks for, and the places where they differ from the given ones.

    Rows strictly inside a piece of their function can be moved at no cost to first order, so they share the excess if
    they have room for it; otherwise all rows do, which always have: every interval [-down, up] holds 0.
    """
    excess = float(duals.sum())
    room = duals + problem.down if excess > 0 else problem.up - duals
    inside = (duals > -problem.down) & (duals < problem.up) & (duals != problem.up - problem.down)
    places = np.flatnonzero(inside if room[inside].sum() >= abs(excess) else room > 0)
    result = duals.copy()
    if excess != 0.0:
        result[places] -= excess / room[places].sum() * room[places]
    return result, places


@dataclass
class SVMBounds:
    """The best vectors so far from both sides, and when they are good enough."""

    tol: float
    value: float = np.inf
    lower: float = -np.inf
    coefficients: FloatArray = field(default_factory=lambda: np.empty(0))
    bias: float = 0.0
    duals: FloatArray = field(default_factory=lambda: np.empty(0))

    def offer(self, coefficients: FloatArray, bias: float, value: float) -> None:
        """Keep a classifier if it is better."""
        if value < self.value:
            self.coefficients, self.bias, self.value = coefficients.copy(), bias, value

    def offer_duals(self, duals: FloatArray, lower: float) -> None:
        """Keep duals if they prove more."""
        if lower > self.lower:
            self.duals, self.lower = duals.copy(), lower

    @property
    def is_done(self) -> bool:
        """Return whether the gap is at most the tolerance."""
        return self.value - self.lower <= max(self.tol, _BOUND_ROUNDING * self.value)


_CHUNK = 8192  # rows handled at once: their floats stay in the cache


class LinearRows:
    """Rows whose state is a coefficient for each column. ``index`` chooses the rows that take part."""

    def __init__(self, X: Any, index: IntArray) -> None:
        """Take some rows of a checked dense or CSR matrix."""
        self.X, self.shape, self.n_columns, self.index = X, X.shape, X.shape[1], index
        self.matrix: kernels.Matrix = (X,)
        if not isinstance(X, np.ndarray):
            self.matrix = (X.data, X.indices, np.asarray(X.indptr, dtype=np.int64))

    def state(self, weights: FloatArray, places: IntArray | None = None) -> FloatArray:
        """Return the weighted sum of the rows, or of the chosen ones."""
        total = np.zeros(self.n_columns)
        kernels.row_sum(self.matrix, self.index if places is None else self.index[places], weights, total)
        return total

    def scores(self, state: FloatArray) -> FloatArray:
        """Return the product of each row and the state."""
        scores = np.empty(self.index.size)
        kernels.row_scores(self.matrix, self.index, state, scores)
        return scores

    def coefficients(self, state: FloatArray, weights: FloatArray) -> FloatArray:  # noqa: ARG002
        """Return the classifier that the weighted rows make: here it is the state itself."""
        return state

    def square(self, weights: FloatArray) -> float:
        """Return the squared norm of the weighted sum of the rows."""
        total = self.state(weights)
        return float(total @ total)

    def evaluate(self, coefficients: FloatArray) -> tuple[FloatArray, float]:
        """Return the product of each row with the coefficients, and the squared norm of those."""
        return self.scores(coefficients), float(coefficients @ coefficients)

    def products(self, places: IntArray, weights: FloatArray) -> FloatArray:
        """Return the weighted products of the columns, over the chosen rows."""
        products = np.zeros((self.n_columns, self.n_columns))
        rows = self.index[places]
        if len(self.matrix) > 1:
            kernels.sparse_products(self.matrix, rows, weights, products)
            return products
        roots = np.sqrt(weights)
        for start in range(0, rows.size, _CHUNK):
            place = slice(start, start + _CHUNK)
            block = self.matrix[0][rows[place]].astype(np.float64, copy=False) * roots[place, None]
            products += block.T @ block
        return products

    def squares(self) -> FloatArray:
        """Return the squared norm of each row."""
        values = self.matrix[0]
        if len(self.matrix) == 1:
            return np.asarray(np.einsum("ij,ij->i", values, values, dtype=np.float64)[self.index])
        ends = self.matrix[2]
        sums = np.add.reduceat(np.append(np.square(values, dtype=np.float64), 0.0), ends[:-1])
        return np.where(np.diff(ends) > 0, sums, 0.0)[self.index]


class GramRows:
    """Rows of a Gram matrix, whose state is the score of each of them."""

    def __init__(self, gram: Gram, index: IntArray) -> None:
        self.matrix, self.slack, self.index = (gram.matrix, np.diagonal(gram.matrix).copy()), gram.slack, index
        self.shape = gram.matrix.shape

    def state(self, weights: FloatArray) -> FloatArray:
        """Return the scores of all rows of the matrix for the given duals."""
        total = np.zeros(self.matrix[0].shape[0])
        kernels.row_sum(self.matrix, self.index, weights, total)
        return total

    def scores(self, state: FloatArray) -> FloatArray:
        """Return the state at the rows that take part."""
        return state[self.index]

    def coefficients(self, state: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the classifier that the weighted rows make: a coefficient for each row of the matrix."""
        coefficients = np.zeros(state.size)
        coefficients[self.index] = weights
        return coefficients

    def square(self, weights: FloatArray) -> float:
        """Return the squared norm of the weighted sum of the rows in feature space, or more, for rounding."""
        return float(weights @ self.scores(self.state(weights)) + self.slack * (weights @ weights))

    def evaluate(self, coefficients: FloatArray) -> tuple[FloatArray, float]:
        """Return the product of each row with the classifier, and the squared norm of the classifier."""
        products = self.scores(self.state(coefficients[self.index]))
        return products, float(coefficients[self.index] @ products)

    def squares(self) -> FloatArray:
        """Return the squared norm of each row in feature space."""
        return np.asarray(self.matrix[1][self.index])
