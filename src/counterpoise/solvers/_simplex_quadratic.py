"""A small convex quadratic program over the simplex, as Newton's method for a mixture asks for in every step."""

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.optimize import nnls

from counterpoise._base.types import FloatArray

_EQUALITY = 5  # daqp's mark for an equality


def minimize_on_simplex(hessian: FloatArray, cost: FloatArray) -> FloatArray | None:
    """Return the minimizer of ``x @ hessian @ x / 2 + cost @ x`` over the simplex, or None where rounding prevails.

    daqp does it where it is installed. It is compiled for fewer systems than scipy, whose least squares do it
    otherwise, in up to three times the time.
    """
    try:
        import daqp  # noqa: F401, PLC0415 - compiled, and needed here alone
    except ImportError:
        target = by_least_squares(hessian, cost)
    else:
        target = by_active_set(hessian, cost)
    if target is None or not target.sum() > 0:
        return None
    target = np.maximum(target, 0.0)
    return np.asarray(target / target.sum())


def by_active_set(hessian: FloatArray, cost: FloatArray) -> FloatArray | None:
    """Return the minimizer by daqp's dual active-set method."""
    import daqp  # noqa: PLC0415 - compiled, and needed here alone

    size = cost.size
    target, _, status, _ = daqp.solve(
        hessian,
        cost,
        np.ones((1, size)),
        np.append(np.ones(size), 1.0),
        np.append(np.zeros(size), 1.0),
        np.append(np.zeros(size, dtype=np.int32), np.int32(_EQUALITY)),
        primal_tol=1e-11,
        iter_limit=50 * size,
    )
    return np.asarray(target) if status > 0 else None


def by_least_squares(hessian: FloatArray, cost: FloatArray) -> FloatArray | None:
    """Return a multiple of the minimizer by non-negative least squares (Lawson and Hanson 1974).

    On the simplex the objective is ``|columns @ x|^2 / 2`` and a constant: the point of a polytope nearest to the
    origin. For ``u = s x`` the least of ``s^2 |columns @ x|^2 + (s - 1)^2`` over s rises with ``|columns @ x|``, so
    least squares with a last row of ones find the same x.
    """
    size = cost.size
    try:
        root = cholesky(hessian)
    except LinAlgError:
        return None
    # A constant in the cost does not matter on the simplex, but large entries would cost digits.
    shift = solve_triangular(root, cost - cost.min(), trans="T")
    columns = root + shift[:, None]
    scale = max(float(np.linalg.norm(columns.mean(axis=1))), np.finfo(float).tiny)
    try:
        found, _ = nnls(np.vstack([columns / scale, np.ones(size)]), np.append(np.zeros(size), 1.0))
    except RuntimeError:  # too many steps
        return None
    return np.asarray(found)
