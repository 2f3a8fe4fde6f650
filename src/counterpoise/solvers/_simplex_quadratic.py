"""A small convex quadratic program over the simplex, as Newton's method for a mixture asks for in every step."""

import numpy as np

from counterpoise._base.types import FloatArray

EQUALITY = 5  # daqp's mark for an equality


def minimize_on_simplex(hessian: FloatArray, cost: FloatArray) -> FloatArray | None:
    """Return the minimizer of ``x @ hessian @ x / 2 + cost @ x`` over the simplex, or None where rounding prevails."""
    import daqp  # noqa: PLC0415 - compiled, and needed here alone

    size = cost.size
    target, _, status, _ = daqp.solve(
        hessian,
        cost,
        np.ones((1, size)),
        np.append(np.ones(size), 1.0),
        np.append(np.zeros(size), 1.0),
        np.append(np.zeros(size, dtype=np.int32), np.int32(EQUALITY)),
        primal_tol=1e-11,
        iter_limit=50 * size,
    )
    if status <= 0 or not target.sum() > 0:
        return None
    target = np.maximum(target, 0.0)
    return np.asarray(target / target.sum())
