"""Gram matrices: the kernel of all pairs of rows, checked once to be one.

All that the dual proves rests on ``duals @ gram @ duals`` being a squared norm. Of a matrix with an eigenvalue below
zero it is not, the problem has no least value, and "lower bounds" lie above the value that they bound.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from counterpoise._base.checks import as_numbers, value_range
from counterpoise._base.types import ArrayLike, FloatArray

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

    Eigenvalues may lie below zero by rounding, at most ``1e-10 * n_rows`` of the largest entry. By how much is told by
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
    >>> from counterpoise.solvers.svm_gram import check_gram
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
    matrix = _symmetric(matrix, largest, name)
    return Gram(matrix, largest * _least_shift(matrix, largest, name))


def _symmetric(matrix: FloatArray, largest: float, name: str) -> FloatArray:
    """Return the matrix, or its symmetric part where rounding has made it another."""
    difference = float(np.abs(matrix - matrix.T).max())
    if difference > _ASYMMETRY * largest:
        raise ValueError(f"{name} must be symmetric, the kernel of all pairs of rows; got a matrix that is not.")
    return matrix if difference == 0.0 else (matrix + matrix.T) / 2


def _least_shift(matrix: FloatArray, largest: float, name: str) -> float:
    """Return how much the diagonal must be raised, as a part of the largest entry, to have a Cholesky factor."""
    if largest == 0.0:
        return 0.0
    for rounding in _ROUNDING:
        shift, raised = rounding * len(matrix), matrix / largest
        raised.flat[:: len(matrix) + 1] += shift
        _, failed_at = lapack.dpotrf(raised.T, lower=True, clean=False, overwrite_a=True)
        if failed_at == 0:
            return shift
    raise ValueError(
        f"{name} must be positive semidefinite, as the kernel of all pairs of rows is; the part of its first "
        f"{failed_at} rows and columns is not. Take a kernel that is, such as 'rbf', and compute it in double "
        "precision from rows of similar sizes."
    )
