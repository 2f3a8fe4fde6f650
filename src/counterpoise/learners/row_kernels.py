"""Kernels of pairs of rows, and how far rounding can move scores that are linear in rows or kernels.

Kernels are positive semidefinite ones only, because all that a fit proves rests on that.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils.extmath import row_norms

from counterpoise._base.checks import check_choice
from counterpoise._base.types import FloatArray
from counterpoise.solvers.svm_problem import Gram, check_gram

LINEAR = "linear"
_KERNELS = (LINEAR, "rbf", "poly")
_CHUNK = 8192  # rows whose absolute values are copied at once
_EPS = float(np.finfo(np.float64).eps)
_DEGREE = 3  # of "poly", as scikit-learn has it
_PRODUCTS = 4  # a kernel is made of that many products of two rows at most, or is a power of one


def check_kernel(kernel: Any) -> None:
    """Check that it is the name of a kernel."""
    if kernel == "sigmoid":
        raise ValueError(
            "kernel='sigmoid' is not supported: it is not positive semidefinite, so the bounds and the gap of a fit "
            "with it can be wrong. Fit with kernel='rbf' or 'poly'."
        )
    check_choice(kernel, "kernel", _KERNELS)


def kernel_of(rows: Any, others: Any, kernel: str, gamma: float | None) -> FloatArray:
    """Return the kernel of all pairs of two sets of rows, ``gamma`` being by default 1 / n_features.

    It is computed in double precision, and from differences to the mean where only differences count: rounding of
    larger numbers puts eigenvalues of 0 far below it.
    """
    check_kernel(kernel)
    options = {} if gamma is None else {"gamma": gamma}
    parts = _centred(rows, others, kernel)
    return np.asarray(pairwise_kernels(parts[0], parts[-1], metric=kernel, **options))


def _centred(rows: Any, others: Any, kernel: str) -> list[Any]:
    """Return both sets of rows as their kernel is computed, or one where they are the same."""
    parts = [part.astype(np.float64, copy=False) for part in ((rows,) if rows is others else (rows, others))]
    if kernel == "rbf" and not any(map(sp.issparse, parts)):
        centre = parts[-1].mean(axis=0)
        parts = [part - centre for part in parts]
    return parts


def linear_noise(rows: Any, coefficients: FloatArray, offset: float) -> FloatArray:
    """Return by how much ``rows @ coefficients + offset`` may differ between two computations of each score.

    A sum of n products, in any order, is off by at most n / 2 times the machine precision times the sum of their sizes.
    The bound has the units of the scores: where a column is multiplied by a power of 2 and its coefficient divided by
    it, neither changes.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.learners.row_kernels import linear_noise
    >>> (linear_noise(np.array([[1.0, -1.0], [8.0, 0.0]]), np.array([1.0, 1.0]), 0.0) / np.finfo(float).eps).tolist()
    [8.0, 32.0]
    """
    n_rows, n_features = rows.shape
    sizes = np.abs(coefficients)
    terms = [abs(rows[start : start + _CHUNK]) @ sizes for start in range(0, n_rows, _CHUNK)]
    return np.asarray((n_features + 2) * _EPS * (np.concatenate(terms) + abs(offset)))


def kernel_noise(
    rows: Any, others: Any, kernel: str, gamma: float | None, coefficients: FloatArray, offset: float
) -> FloatArray:
    """Return by how much ``kernel_of(rows, others) @ coefficients + offset`` may differ, as ``linear_noise``."""
    parts = _centred(rows, others, kernel)
    width = 1.0 / rows.shape[1] if gamma is None else gamma
    squares, other_squares = (row_norms(part, squared=True) for part in (parts[0], parts[-1]))
    if kernel == "rbf":  # what the exponent is off by, which is a difference of squares, is a part of the kernel
        sizes = kernel_of(rows, others, kernel, gamma) * (1.0 + width * (squares[:, None] + other_squares))
    else:
        sizes = (1.0 + width * np.sqrt(squares[:, None] * other_squares)) ** _DEGREE
    n_terms = others.shape[0] + _PRODUCTS * rows.shape[1] + 2
    return np.asarray(n_terms * _EPS * (sizes @ np.abs(coefficients) + abs(offset)))


def gram_of(rows: Any, kernel: str, gamma: float | None) -> Gram:
    """Return the kernel of all pairs of some rows, checked."""
    return check_gram(kernel_of(rows, rows, kernel, gamma), f"The kernel of all pairs of rows, {kernel!r},")


def stack_rows(parts: list[Any]) -> Any:
    """Return the rows of all parts, sparse where one is."""
    if len(parts) == 1:
        return parts[0]
    if any(sp.issparse(part) for part in parts):
        return sp.csr_array(sp.vstack([sp.csr_array(part) for part in parts]))
    return np.ascontiguousarray(np.vstack(parts))
