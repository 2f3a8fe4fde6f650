"""The two linear programs of the mixture problem, written out in full and solved by HiGHS.

They are the oracle for the bundle method, and the solver for small problems. The program over sample weights has
``n_models`` rows and bounded variables, so HiGHS solves it many times faster than the one over
mixtures with its slack for each sample.
"""

from typing import Any

import highspy
import numpy as np
import scipy.sparse as sp

from counterpoise._checks import check_alpha, check_losses, check_rows, check_sample_weight, value_range
from counterpoise._types import AnyArray, ArrayLike, FloatArray
from counterpoise.solvers.master import Master, lower_bound
from counterpoise.solvers.result import MixtureSolution
from counterpoise.solvers.simplex import project_capped, worst_mean

_INF = highspy.kHighsInf


def solve_mixture_lp(
    losses: ArrayLike,
    alpha: float,
    *,
    sample_weight: ArrayLike | None = None,
    rows: ArrayLike | None = None,
    bounds: ArrayLike | None = None,
) -> MixtureSolution:
    """Solve the mixture problem through the linear program over sample weights.

    ``max v - multipliers @ bounds`` subject to ``weights @ losses + multipliers @ rows >= v`` for every model,
    weights in the capped simplex, multipliers non-negative. Its duals are the mixture.

    Parameters and result are those of ``minimize_cvar``.

    Examples
    --------
    >>> from counterpoise.solvers import solve_mixture_lp
    >>> solve_mixture_lp([[0, 1], [0, 1], [1, 0], [1, 0]], alpha=0.5).mixture.round(3).tolist()
    [0.5, 0.5]
    """
    matrix, caps, rows_, bounds_ = _checked(losses, alpha, sample_weight, rows, bounds)
    n_samples, n_models = matrix.shape
    shift, span = _shift_and_span(matrix)
    scaled = (matrix - shift) / span
    scale = Master(n_models, rows_, bounds_).row_scale  # raises where the rows cannot hold
    lp = _program(
        cost=np.concatenate([np.zeros(n_samples), bounds_ / scale, [-1.0]]),
        lower=np.concatenate([np.zeros(n_samples + len(rows_)), [-_INF]]),
        upper=np.concatenate([caps, np.full(len(rows_) + 1, _INF)]),
        matrix=sp.vstack(
            [
                sp.hstack(
                    [sp.csr_matrix(scaled.T), sp.csr_matrix((rows_ / scale[:, None]).T), -np.ones((n_models, 1))]
                ),
                sp.csr_matrix(np.concatenate([np.ones(n_samples), np.zeros(len(rows_) + 1)])),
            ]
        ),
        row_lower=np.concatenate([np.zeros(n_models), [1.0]]),
        row_upper=np.concatenate([np.full(n_models, _INF), [1.0]]),
    )
    lp.run()
    solution = lp.getSolution()
    columns = np.array(solution.col_value)
    mixture = np.maximum(np.array(solution.row_dual)[:n_models], 0.0)
    multipliers = np.maximum(columns[n_samples:-1], 0.0) * span / scale
    n_iter = lp.getInfo().simplex_iteration_count
    return _certified(matrix, caps, rows_, bounds_, mixture, columns[:n_samples], multipliers, n_iter)


def solve_weights_lp(
    losses: ArrayLike,
    alpha: float,
    *,
    sample_weight: ArrayLike | None = None,
    rows: ArrayLike | None = None,
    bounds: ArrayLike | None = None,
) -> MixtureSolution:
    """Solve the mixture problem through the linear program over mixtures, with a slack for each sample.

    ``min edge + caps @ slacks`` subject to ``slacks >= losses @ mixture - edge``, slacks non-negative,
    ``rows @ mixture <= bounds``, mixture on the simplex. Its duals are the sample weights: this is the program
    of LPBoost (Demiriz, Bennett and Shawe-Taylor 2002). Much slower than ``solve_mixture_lp``; the two check
    each other.

    Parameters and result are those of ``minimize_cvar``.

    Examples
    --------
    >>> from counterpoise.solvers import solve_weights_lp
    >>> solve_weights_lp([[0, 1], [0, 1], [1, 0], [1, 0]], alpha=0.5).value
    0.5
    """
    matrix, caps, rows_, bounds_ = _checked(losses, alpha, sample_weight, rows, bounds)
    n_samples, n_models = matrix.shape
    shift, span = _shift_and_span(matrix)
    scaled = (matrix - shift) / span
    scale = Master(n_models, rows_, bounds_).row_scale  # raises where the rows cannot hold
    slack_columns = sp.hstack([sp.csr_matrix((len(rows_) + 1, n_samples + 1))])
    on_mixture = sp.csr_matrix(np.vstack([rows_ / scale[:, None], np.ones((1, n_models))]))
    lp = _program(
        cost=np.concatenate([np.zeros(n_models), [1.0], caps]),
        lower=np.concatenate([np.zeros(n_models), [-_INF], np.zeros(n_samples)]),
        upper=np.full(n_models + 1 + n_samples, _INF),
        matrix=sp.vstack(
            [
                sp.hstack([sp.csr_matrix(-scaled), np.ones((n_samples, 1)), sp.identity(n_samples)]),
                sp.hstack([on_mixture, slack_columns]),
            ]
        ),
        row_lower=np.concatenate([np.zeros(n_samples), np.full(len(rows_), -_INF), [1.0]]),
        row_upper=np.concatenate([np.full(n_samples, _INF), bounds_ / scale, [1.0]]),
    )
    lp.run()
    solution = lp.getSolution()
    mixture = np.array(solution.col_value)[:n_models]
    duals = np.array(solution.row_dual)
    multipliers = np.maximum(-duals[n_samples:-1], 0.0) * span / scale
    n_iter = lp.getInfo().simplex_iteration_count
    return _certified(matrix, caps, rows_, bounds_, mixture, duals[:n_samples], multipliers, n_iter)


def _checked(
    losses: ArrayLike,
    alpha: float,
    sample_weight: ArrayLike | None,
    rows: ArrayLike | None,
    bounds: ArrayLike | None,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    matrix = check_losses(losses).astype(np.float64)
    n_samples, n_models = matrix.shape
    mass = check_sample_weight(sample_weight, n_samples)
    mass = np.ones(n_samples) if mass is None else mass
    return matrix, mass / (check_alpha(alpha) * mass.sum()), *check_rows(rows, bounds, n_models)


def _shift_and_span(losses: AnyArray) -> tuple[float, float]:
    """Return what maps the losses to [0, 1], where the solver's absolute tolerances mean something."""
    low, high = value_range(losses, "losses")
    return low, (high - low) or 1.0


def _program(
    *,
    cost: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    matrix: Any,
    row_lower: FloatArray,
    row_upper: FloatArray,
) -> Any:
    by_row = matrix.tocsr()
    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = by_row.shape
    model.col_cost_, model.col_lower_, model.col_upper_ = cost, lower, upper
    model.row_lower_, model.row_upper_ = row_lower, row_upper
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_, model.a_matrix_.index_, model.a_matrix_.value_ = by_row.indptr, by_row.indices, by_row.data
    lp = highspy.Highs()
    lp.setOptionValue("output_flag", False)
    lp.setOptionValue("threads", 1)
    lp.setOptionValue("primal_feasibility_tolerance", 1e-10)
    lp.setOptionValue("dual_feasibility_tolerance", 1e-10)
    lp.passModel(model)
    return lp


def _certified(
    losses: FloatArray,
    caps: FloatArray,
    rows: FloatArray,
    bounds: FloatArray,
    mixture: FloatArray,
    weights: FloatArray,
    multipliers: FloatArray,
    n_iter: int,
) -> MixtureSolution:
    """Put both vectors on their simplex to the last bit, then compute the bounds from them alone."""
    mixture = np.maximum(mixture, 0.0)
    mixture = mixture / mixture.sum()
    weights = project_capped(weights, caps)
    value = worst_mean(losses @ mixture, caps)
    lower = lower_bound(weights @ losses, multipliers, rows, bounds)
    return MixtureSolution(mixture, weights, multipliers, value, lower, n_iter)
