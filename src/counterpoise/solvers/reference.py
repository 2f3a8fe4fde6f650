"""The two linear programs of the mixture problem, written out in full and solved by HiGHS.

They are the oracle for the bundle method, and the solver for small problems. The program over sample weights has
``n_models`` rows and bounded variables, so HiGHS solves it many times faster than the one over
mixtures with its slack for each sample.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from counterpoise._base.checks import (
    check_alpha,
    check_losses,
    check_row_scale,
    check_rows,
    check_sample_weight,
    value_range,
)
from counterpoise._base.types import ArrayLike, FloatArray
from counterpoise.solvers.master import Master, lower_bound
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
    game = _scaled_game(losses, alpha, sample_weight, rows, bounds, row_scale)
    (n_samples, n_models), n_rows = game.losses.shape, len(game.rows)
    for_each_model = [sp.csr_matrix(game.losses.T), sp.csr_matrix(game.rows.T), -np.ones((n_models, 1))]
    total = np.concatenate([np.ones(n_samples), np.zeros(n_rows + 1)])
    columns, duals, n_iter = _solve(
        cost=np.concatenate([np.zeros(n_samples), game.bounds, [-1.0]]),
        lower=np.concatenate([np.zeros(n_samples + n_rows), [-_INF]]),
        upper=np.concatenate([game.caps, np.full(n_rows + 1, _INF)]),
        matrix=sp.vstack([sp.hstack(for_each_model), total[None]]),
        row_lower=np.concatenate([np.zeros(n_models), [1.0]]),
        row_upper=np.concatenate([np.full(n_models, _INF), [1.0]]),
    )
    weights, multipliers = columns[:n_samples], columns[n_samples:-1]
    return game.certified(duals[:n_models], weights, multipliers, n_iter)


def solve_mixture_lp(
    losses: ArrayLike,
    alpha: float,
    *,
    sample_weight: ArrayLike | None = None,
    rows: ArrayLike | None = None,
    bounds: ArrayLike | None = None,
    row_scale: ArrayLike | None = None,
) -> MixtureSolution:
    """Solve the mixture problem through the linear program over mixtures, with a slack for each sample.

    ``min edge + caps @ slacks`` subject to ``slacks >= losses @ mixture - edge``, slacks non-negative,
    ``rows @ mixture <= bounds``, mixture on the simplex. Its duals are the sample weights: this is the program
    of LPBoost (Demiriz, Bennett and Shawe-Taylor 2002). Slower than ``solve_weights_lp``; the two check
    each other.

    Parameters and result are those of ``minimize_cvar``.

    Examples
    --------
    >>> from counterpoise.solvers import solve_mixture_lp
    >>> round(solve_mixture_lp([[0, 1], [0, 1], [1, 0], [1, 0]], alpha=0.5).value, 9)
    0.5
    """
    game = _scaled_game(losses, alpha, sample_weight, rows, bounds, row_scale)
    (n_samples, n_models), n_rows = game.losses.shape, len(game.rows)
    for_each_sample = [sp.csr_matrix(-game.losses), np.ones((n_samples, 1)), sp.identity(n_samples)]
    on_mixture = [np.vstack([game.rows, np.ones((1, n_models))]), np.zeros((n_rows + 1, n_samples + 1))]
    columns, duals, n_iter = _solve(
        cost=np.concatenate([np.zeros(n_models), [1.0], game.caps]),
        lower=np.concatenate([np.zeros(n_models), [-_INF], np.zeros(n_samples)]),
        upper=np.full(n_models + 1 + n_samples, _INF),
        matrix=sp.vstack([sp.hstack(for_each_sample), sp.csr_matrix(np.hstack(on_mixture))]),
        row_lower=np.concatenate([np.zeros(n_samples), np.full(n_rows, -_INF), [1.0]]),
        row_upper=np.concatenate([np.full(n_samples, _INF), game.bounds, [1.0]]),
    )
    weights, multipliers = duals[:n_samples], -duals[n_samples:-1]
    return game.certified(columns[:n_models], weights, multipliers, n_iter)


class _Game(NamedTuple):
    """A mixture problem with losses in [0, 1] and rows of size 1: there a solver's tolerances mean something."""

    losses: FloatArray
    caps: FloatArray
    rows: FloatArray
    bounds: FloatArray
    shift: float  # what maps the losses back
    span: float
    row_scale: FloatArray  # what maps the rows back

    def certified(
        self, mixture: FloatArray, weights: FloatArray, multipliers: FloatArray, n_iter: int
    ) -> MixtureSolution:
        """Put both vectors on their simplex to the last bit, then compute the bounds from them alone."""
        mixture = np.maximum(mixture, 0.0)
        mixture = mixture / mixture.sum()
        weights = project_capped(weights, self.caps)
        multipliers = np.maximum(multipliers, 0.0)
        value = worst_mean(self.losses @ mixture, self.caps)
        lower = lower_bound(weights @ self.losses, multipliers, self.rows, self.bounds)
        return MixtureSolution(
            mixture,
            weights,
            multipliers * self.span / self.row_scale,
            self.shift + self.span * value,
            self.shift + self.span * lower,
            n_iter,
        )


def _scaled_game(
    losses: ArrayLike,
    alpha: float,
    sample_weight: ArrayLike | None,
    rows: ArrayLike | None,
    bounds: ArrayLike | None,
    row_scale: ArrayLike | None,
) -> _Game:
    matrix = check_losses(losses).astype(np.float64)
    n_samples, n_models = matrix.shape
    mass = check_sample_weight(sample_weight, n_samples)
    mass = np.ones(n_samples) if mass is None else mass
    caps = mass / (check_alpha(alpha) * mass.sum())
    low, high = value_range(matrix, "losses")
    span = (high - low) or 1.0
    limits = check_rows(rows, bounds, n_models)
    master = Master(n_models, *limits, check_row_scale(row_scale, len(limits[1])))  # raises where they cannot hold
    return _Game((matrix - low) / span, caps, master.rows, master.bounds, low, span, master.row_scale)


def _solve(
    *,
    cost: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    matrix: Any,
    row_lower: FloatArray,
    row_upper: FloatArray,
) -> tuple[FloatArray, FloatArray, int]:
    """Return the variables and duals of ``min cost @ x`` within bounds on x and on ``matrix @ x``."""
    import highspy  # noqa: PLC0415 - compiled, and needed here alone

    by_row = matrix.tocsr()
    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = by_row.shape
    model.col_cost_, model.col_lower_, model.col_upper_ = cost, lower, upper
    model.row_lower_, model.row_upper_ = row_lower, row_upper
    entries = model.a_matrix_
    entries.format_ = highspy.MatrixFormat.kRowwise
    entries.start_, entries.index_, entries.value_ = by_row.indptr, by_row.indices, by_row.data
    for presolve in ("choose", "off"):  # where constraints leave a point, presolve may call that unbounded
        lp = highspy.Highs()
        for option, setting in {**_HIGHS_OPTIONS, "presolve": presolve}.items():
            lp.setOptionValue(option, setting)
        lp.passModel(model)
        lp.run()
        solution = lp.getSolution()
        if solution.value_valid and solution.dual_valid:
            n_iter = int(lp.getInfo().simplex_iteration_count)
            return np.array(solution.col_value), np.array(solution.row_dual), n_iter
    raise RuntimeError(f"HiGHS stopped with {lp.getModelStatus()} on a feasible and bounded linear program.")


_HIGHS_OPTIONS = {
    "output_flag": False,
    "threads": 1,
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
}
