"""The linear program of the mixture problem over sample weights, written out in full and solved by HiGHS.

It is the solver for small problems, and what the bundle method is measured against. It has ``n_models`` rows and
bounded variables, so HiGHS solves it many times faster than its dual over mixtures with a slack for each sample.
"""

import numpy as np

from counterpoise._base.checks import (
    check_alpha,
    check_losses,
    check_row_scale,
    check_rows,
    check_sample_weight,
    value_range,
)
from counterpoise._base.types import ArrayLike, FloatArray
from counterpoise.solvers.linear_program import found_by_highs, solve_linear_program
from counterpoise.solvers.planes import CuttingPlanes, Simplex
from counterpoise.solvers.result import MixtureSolution
from counterpoise.solvers.simplex import project_capped, worst_mean

_INF = float("inf")


def solve_weights_lp(
    losses: ArrayLike,
    alpha: float,
    *,
    sample_weight: ArrayLike | None = None,
    rows: ArrayLike | None = None,
    bounds: ArrayLike | None = None,
    row_scale: ArrayLike | None = None,
) -> MixtureSolution:
    """Solve the mixture problem through the linear program over sample weights.

    ``max v - multipliers @ bounds`` subject to ``weights @ losses + multipliers @ rows >= v`` for every model,
    weights in the capped simplex, multipliers non-negative. Its duals are the mixture.

    Parameters and result are those of ``minimize_cvar``.

    Examples
    --------
    >>> from counterpoise.solvers import solve_weights_lp
    >>> solve_weights_lp([[0, 1], [0, 1], [1, 0], [1, 0]], alpha=0.5).mixture.round(3).tolist()
    [0.5, 0.5]
    """
    matrix = check_losses(losses).astype(np.float64)
    n_samples, n_models = matrix.shape
    mass = check_sample_weight(sample_weight, n_samples)
    mass = np.ones(n_samples) if mass is None else mass
    caps = mass / (check_alpha(alpha) * mass.sum())
    limits = check_rows(rows, bounds, n_models)
    scale = check_row_scale(row_scale, len(limits[1]))
    planes = CuttingPlanes(Simplex(n_models), *limits, scale)  # raises where the rows cannot hold
    low, high = value_range(matrix, "losses")
    span = (high - low) or 1.0
    return _solved((matrix - low) / span, caps, planes).in_units(low, span)


def _solved(losses: FloatArray, caps: FloatArray, planes: CuttingPlanes) -> MixtureSolution:
    """Solve for losses in [0, 1] and rows of size 1: there a solver's tolerances mean something."""
    (n_samples, n_models), n_rows = losses.shape, len(planes.rows)
    matrix = np.zeros((n_models + 1, n_samples + n_rows + 1))
    matrix[:-1, :n_samples], matrix[:-1, n_samples:-1], matrix[:-1, -1] = losses.T, planes.rows.T, -1.0
    matrix[-1, :n_samples] = 1.0
    solved = solve_linear_program(
        np.concatenate([np.zeros(n_samples), planes.bounds, [-1.0]]),
        matrix,
        (np.append(np.zeros(n_models), 1.0), np.append(np.full(n_models, _INF), 1.0)),
        lower=np.append(np.zeros(n_samples + n_rows), -_INF),
        upper=np.concatenate([caps, np.full(n_rows + 1, _INF)]),
    )
    found = found_by_highs(solved)
    # Both vectors on their simplex to the last bit, then the bounds from them alone.
    mixture = planes.domain.clean(found.duals[:n_models])
    weights = project_capped(found.point[:n_samples], caps)
    multipliers = np.maximum(found.point[n_samples:-1], 0.0)
    value, lower = worst_mean(losses @ mixture, caps), planes.proven(weights @ losses, multipliers)
    return MixtureSolution(mixture, weights, multipliers / planes.row_scale, value, lower, found.n_iter)
