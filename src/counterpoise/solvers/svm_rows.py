"""The rows of a support vector machine: dense, sparse or of a Gram matrix, read where they lie."""

from typing import Any

import numpy as np

from counterpoise._base.types import AnyArray, FloatArray, IntArray
from counterpoise.solvers import _svm_kernels as kernels
from counterpoise.solvers.svm_gram import Gram

_CHUNK = 8192  # rows handled at once: their floats stay in the cache


class LinearRows:
    """Rows whose state is a coefficient for each column. ``index`` chooses the rows that take part."""

    def __init__(self, matrix: kernels.Matrix, n_columns: int, index: IntArray) -> None:
        self.matrix, self.n_columns, self.index = matrix, n_columns, index

    def state(self, weights: FloatArray, chosen: IntArray | None = None) -> FloatArray:
        """Return the weighted sum of the rows, or of the chosen ones."""
        total = np.zeros(self.n_columns)
        kernels.row_sum(self.matrix, self.index if chosen is None else self.index[chosen], weights, total)
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

    def products(self, chosen: IntArray, weights: FloatArray) -> FloatArray:
        """Return the weighted products of the columns, over the chosen rows."""
        products = np.zeros((self.n_columns, self.n_columns))
        rows = self.index[chosen]
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
        found = np.zeros(state.size)
        found[self.index] = weights
        return found

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


def linear_rows(X: Any, index: IntArray) -> LinearRows:
    """Return the rows of a checked dense or CSR matrix."""
    if isinstance(X, np.ndarray):
        return LinearRows((X,), X.shape[1], index)
    ends: AnyArray = np.asarray(X.indptr, dtype=np.int64)
    return LinearRows((X.data, X.indices, ends), X.shape[1], index)
