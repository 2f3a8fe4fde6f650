"""Dual coordinate ascent for the support vector machine: wide rows, and Gram matrices.

Each step maximizes the dual exactly in one row's variable, at the cost of that row alone (Hsieh et al. 2008;
Shalev-Shwartz and Zhang 2013). Rows whose dual rests at a corner of its function, and would stay there under any change
of score seen in the last sweep, are left out until the bounds are next computed.

A bias without regularization asks for duals that sum to 0, which steps in one variable cannot keep. The paper searches
over the bias outside (its Algorithm 3), a whole solve for each bias tried. Here the bias is one more coefficient,
pulled only towards its own last value (the method of multipliers on the sum): a sweep moves it as it moves the
coefficients, and the centre of the pull follows after each round.
"""

import numpy as np

from counterpoise._base.types import FloatArray
from counterpoise.solvers import _svm_kernels as kernels
from counterpoise.solvers.svm_bounds import Bounds, Problem, balanced
from counterpoise.solvers.svm_rows import GramRows, LinearRows

_SWEEPS = 5  # between computations of the bounds, which cost about two
_BIAS_SQUARE = 0.1  # the bias moves as if it were a column with this part of a mean row's square
_FLIP = 0.3  # ... but all duals going from end to end move it by at least this much: the two kinks of a row are 1 apart
_SMALLEST = 1e-300  # square of a row; a row of zeros then takes its best dual in one step


def maximize_by_ascent(
    rows: LinearRows | GramRows, problem: Problem, bounds: Bounds, duals: FloatArray, bias: float, max_iter: int
) -> int:
    """Improve the bounds until they are good enough; return the number of sweeps."""
    pace = 1.0 / problem.regularization
    squares = rows.squares()
    least = _FLIP / float((problem.up + problem.down).sum())
    bias_pace = max(pace * _BIAS_SQUARE * float(squares.mean()), least) if problem.fit_bias else 0.0
    stiffness = 1.0 / np.maximum(squares * pace + bias_pace, _SMALLEST)
    state, room = rows.state(duals) * pace, np.inf
    rng = np.random.default_rng(0)  # the answer is certified; the seed only makes it the same every time
    n_iter = 0
    while True:
        _offer_both(rows, problem, bounds, duals, state, bias)
        if bounds.done or n_iter >= max_iter:
            return n_iter
        bias -= float(duals.sum()) * bias_pace
        order = np.arange(duals.size)
        for _ in range(min(_SWEEPS, max_iter - n_iter)):
            rng.shuffle(order)
            n_kept, bias, room = kernels.sweep(
                rows.matrix,
                rows.index,
                order,
                problem.up,
                problem.down,
                stiffness,
                duals,
                state,
                bias,
                pace,
                bias_pace,
                room,
            )
            order = order[:n_kept]
            n_iter += 1


def _offer_both(
    rows: LinearRows | GramRows, problem: Problem, bounds: Bounds, duals: FloatArray, state: FloatArray, bias: float
) -> None:
    """Offer the classifier with its best bias, and the duals made to sum to 0."""
    products = rows.scores(state)
    if problem.fit_bias:
        bias = problem.best_bias(products, bias)
    value = float(duals @ products) / 2 + problem.hinges(products - bias)
    bounds.offer(rows.coefficients(state, duals / problem.regularization), bias, value)
    if problem.fit_bias:
        duals, _ = balanced(duals, problem)
    bounds.offer_duals(duals, problem.proven(duals, rows.square(duals)))
