"""Kernels of pairs of rows: positive semidefinite ones only, because all that a fit proves rests on that."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import pairwise_kernels

from counterpoise._base.checks import check_choice
from counterpoise._base.types import FloatArray
from counterpoise.solvers.svm_gram import Gram, check_gram

LINEAR = "linear"
_KERNELS = (LINEAR, "rbf", "poly")


def check_kernel(kernel: Any) -> None:
    """Check that it is the name of a kernel."""
    if kernel == "sigmoid":
        raise ValueError(
            "kernel='sigmoid' is not taken any more: it is not positive semidefinite, so the bounds and the gap of a "
            "fit with it can be false. Fit again with kernel='rbf' or 'poly'."
        )
    check_choice(kernel, "kernel", _KERNELS)


def kernel_of(rows: Any, others: Any, kernel: str, gamma: float | None) -> FloatArray:
    """Return the kernel of all pairs of two sets of rows, ``gamma`` being by default 1 / n_features.

    It is computed in double precision, and from differences to the mean where only differences count: rounding of
    larger numbers puts eigenvalues of 0 far below it.
    """
    check_kernel(kernel)
    named = {} if gamma is None else {"gamma": gamma}
    parts = [part.astype(np.float64, copy=False) for part in ((rows,) if rows is others else (rows, others))]
    if kernel == "rbf" and not any(map(sp.issparse, parts)):
        centre = parts[-1].mean(axis=0)
        parts = [part - centre for part in parts]
    return np.asarray(pairwise_kernels(parts[0], parts[-1], metric=kernel, **named))


def gram_of(rows: Any, kernel: str, gamma: float | None) -> Gram:
    """Return the kernel of all pairs of some rows, checked."""
    return check_gram(kernel_of(rows, rows, kernel, gamma), f"The kernel of all pairs of rows, {kernel!r},")


def stacked_rows(parts: list[Any]) -> Any:
    """Return the rows of all parts, sparse where one is."""
    if len(parts) == 1:
        return parts[0]
    if any(sp.issparse(part) for part in parts):
        return sp.csr_array(sp.vstack([sp.csr_array(part) for part in parts]))
    return np.ascontiguousarray(np.vstack(parts))
