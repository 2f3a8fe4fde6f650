"""The entropy-regularized dual of alpha-LPBoost, by Newton's method on the mixture.

Problem (Zhai et al. 2021, eq. 8, after Warmuth, Glocer and Vishwanathan 2008; the printed ``<=`` must be ``>=``, as
their slides have it)::

    min over weights, gamma of  gamma - entropy(weights) / beta
    subject to  weights @ losses[:, s] >= 1 - gamma  for every model s,  weights in the capped simplex.

Its value is 1 minus that of ``max over weights of min over models of weights @ losses + entropy(weights) / beta``,
which we solve from the other side: for a fixed mixture the best weights are a capped softmax of
``beta * losses @ mixture``, so what is left is a smooth convex function of the mixture on the simplex. Newton's step on
the simplex is a small quadratic program; a large beta is reached through smaller ones.
"""

from typing import NamedTuple

import numpy as np

from counterpoise._base.checks import (
    check_alpha,
    check_count,
    check_losses,
    check_mixture,
    check_positive,
    check_sample_weight,
)
from counterpoise._base.types import AnyArray, ArrayLike, FloatArray
from counterpoise.solvers._simplex_quadratic import minimize_on_simplex
from counterpoise.solvers.rows import load_rows
from counterpoise.solvers.simplex import capped_softmax, worst_mean

_FIRST_BETA = 30.0  # at losses in [0, 1] Newton's method converges from anywhere below this
_BETA_FACTOR = 4.0  # from one beta to the next: the last optimum is then a good start
_LAST_BETA = 1e8  # and not above this: no loss moves by more than log(n) / 1e8, and Newton's steps drown in rounding
_ARMIJO = 1e-3  # part of the predicted fall that a step must deliver
_SHORTEST = 1e-10  # step, as a part of the way
_NOISE = 1e-13  # rounding of a value of the function: losses are mapped to [0, 1]
_RIDGE, _LEAST_RIDGE = 1e-9, 1e-12  # of the mean curvature, and where that is 0: losses are mapped to [0, 1]
_NEGLIGIBLE = 1e-12  # weights below this part of the largest do not change the curvature


class RegularizedSolution(NamedTuple):
    """Weights and mixture that are best replies to each other, and the bounds they prove.

    With ``entropy(weights)`` written H, the paper's objective ``gamma - H / beta`` is 1 minus ours.
    """

    weights: FloatArray  # on samples, on the simplex, entries <= cap
    mixture: FloatArray  # on models, on the simplex
    value: float  # max over weights of weights @ losses @ mixture + H / beta: an upper bound
    lower: float  # min over models of weights @ losses + H / beta
    n_iter: int

    @property
    def gap(self) -> float:
        """Return ``value - lower``: both are at most this far from the optimum."""
        return self.value - self.lower


def regularized_weights(
    losses: ArrayLike,
    alpha: float,
    beta: float,
    *,
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-6,
    start: ArrayLike | None = None,
    max_iter: int = 1000,
) -> RegularizedSolution:
    """Find the sample weights of the entropy-regularized alpha-LPBoost.

    Solves ``max over weights of min over models of weights @ losses + entropy(weights) / beta`` over weights that
    sum to 1 and are at most 1/(alpha n) each. As ``beta`` grows the value tends to the least CVaR.

    Parameters
    ----------
    losses : array of shape (n_samples, n_models)
        Finite losses of each model on each sample.
    alpha : float in (0, 1]
        Tail fraction.
    beta : float > 0
        The larger, the less regularization. From 1e8, divided by the range of the losses, on it is below rounding: the
        weights are then those for 1e8.
    sample_weight : array of shape (n_samples,), optional
        Non-negative; caps are then in proportion to it, and the entropy is relative to it.
    tol : float, default=1e-6
        Stop when ``value - lower`` is at most this, in units of the losses.
    start : array of shape (n_models,), optional
        A mixture to begin at.
    max_iter : int, default=1000
        Stop after so many Newton steps, whatever the gap.

    Returns
    -------
    RegularizedSolution
        ``weights``, ``mixture``, ``value``, ``lower``, ``gap``, ``n_iter``.

    Examples
    --------
    Without cap or strong pull (small beta) the weights are nearly equal; a large beta finds the hard samples.

    >>> from counterpoise.solvers import regularized_weights
    >>> losses = [[1, 0], [0, 1], [0, 0], [0, 0]]
    >>> regularized_weights(losses, alpha=0.25, beta=0.01).weights.round(2).tolist()
    [0.25, 0.25, 0.25, 0.25]
    >>> regularized_weights(losses, alpha=0.25, beta=100).weights.round(2).tolist()
    [0.5, 0.5, 0.0, 0.0]
    """
    alpha, beta, tol = check_alpha(alpha), check_positive(beta, "beta"), check_positive(tol, "tol")
    max_iter = check_count(max_iter, "max_iter")
    matrix = check_losses(losses)
    mass = check_sample_weight(sample_weight, matrix.shape[0])
    n_models = matrix.shape[1]
    mixture = np.full(n_models, 1.0 / n_models) if start is None else check_mixture(start, n_models, "start")
    game = _Game(matrix, alpha, mass)
    n_iter = 0
    scaled = game.scaled(beta)
    # A start that the caller knows to be good needs no detour through smaller betas.
    for step_beta in _betas(scaled) if start is None else [scaled]:
        aim = tol / game.span if step_beta == scaled else 0.1 / step_beta
        mixture, n_done = _newton(game, mixture, step_beta, aim, max_iter - n_iter)
        n_iter += n_done
    return game.certified(mixture, beta, n_iter)


def _betas(last: float) -> list[float]:
    """Return betas that rise to ``last`` in steps that Newton's method follows easily."""
    betas = [last]
    while betas[-1] > _FIRST_BETA:
        betas.append(max(betas[-1] / _BETA_FACTOR, _FIRST_BETA))
    return betas[::-1]


class _Point(NamedTuple):
    """A mixture, the best weights against it, and the function value and slope there, for losses in [0, 1]."""

    mixture: FloatArray
    weights: FloatArray
    value: float
    slope: FloatArray

    @property
    def gap(self) -> float:
        return float(self.slope @ self.mixture - self.slope.min())


class _Game:
    """The losses mapped to [0, 1], with caps and prior of the samples."""

    def __init__(self, losses: AnyArray, alpha: float, mass: FloatArray | None) -> None:
        self.losses, self.rows = losses, load_rows(losses)
        self.shift, self.span = self.rows.low, (self.rows.high - self.rows.low) or 1.0
        mass = np.ones(losses.shape[0]) if mass is None else mass
        self.caps = mass / (alpha * mass.sum())
        self.prior = mass / mass.mean()

    def scaled(self, beta: float) -> float:
        """Return ``beta`` for losses in [0, 1], as far as it makes a difference."""
        return min(beta * self.span, _LAST_BETA)

    def at(self, mixture: FloatArray, beta: float) -> _Point:
        scores = np.empty(self.rows.n_rows)
        self.rows.scores(mixture, scores)
        scores = (scores - self.shift) / self.span
        weights = capped_softmax(beta * scores, self.caps, prior=self.prior)
        slope = (self.rows.columns(weights) - self.shift) / self.span
        return _Point(mixture, weights, float(weights @ scores) + self.entropy(weights) / beta, slope)

    def entropy(self, weights: FloatArray) -> float:
        """Return the entropy relative to the prior; with equal sample weights this is the plain entropy."""
        some = weights > 0
        return -float(weights[some] @ np.log(weights[some] / self.prior[some]))

    def curvature(self, weights: FloatArray, beta: float) -> FloatArray:
        """Return the second derivative: beta times the covariance of the losses under the weights below their caps."""
        free = np.flatnonzero((weights < self.caps) & (weights > _NEGLIGIBLE * weights.max()))
        if not free.size:
            return np.zeros((self.rows.n_models, self.rows.n_models))
        rows = (self.losses[free].astype(np.float64) - self.shift) / self.span
        shares = weights[free]
        mean = shares @ rows / shares.sum()
        centred = np.sqrt(shares)[:, None] * (rows - mean)
        return np.asarray(beta * (centred.T @ centred))

    def certified(self, mixture: FloatArray, beta: float, n_iter: int) -> RegularizedSolution:
        """Return both players' vectors with the bounds computed from them alone."""
        weights = self.at(mixture, self.scaled(beta)).weights
        entropy = self.entropy(weights)
        scores = np.empty(self.rows.n_rows)
        self.rows.scores(mixture, scores)
        value = float(weights @ scores) + entropy * self.span / self.scaled(beta)
        kept = self.scaled(beta) / (beta * self.span)
        if kept < 1:  # beyond the last beta: the best reply is convex in 1 / beta, and without entropy the worst mean
            value = kept * value + (1 - kept) * worst_mean(scores, self.caps)
        lower = float(self.rows.columns(weights).min()) + entropy / beta
        return RegularizedSolution(weights, mixture, value, lower, n_iter)


def _newton(game: _Game, mixture: FloatArray, beta: float, tol: float, max_iter: int) -> tuple[FloatArray, int]:
    """Minimize over the simplex by Newton steps with backtracking, until the gap is at most ``tol``."""
    point = game.at(mixture, beta)
    for n_iter in range(max_iter):
        if point.gap <= tol:
            return point.mixture, n_iter
        target = _simplex_newton_point(point, game.curvature(point.weights, beta))
        moved = None if target is None else _backtrack(game, point, target, beta)
        if moved is None:  # no progress in floating point: the caller reads the gap
            return point.mixture, n_iter
        point = moved
    return point.mixture, max(max_iter, 0)


def _simplex_newton_point(point: _Point, curvature: FloatArray) -> FloatArray | None:
    """Return the minimizer over the simplex of the quadratic model at the point."""
    n_models = point.mixture.size
    ridge = _LEAST_RIDGE + _RIDGE * float(np.trace(curvature)) / n_models
    hessian = curvature + ridge * np.eye(n_models)
    return minimize_on_simplex(hessian, point.slope - hessian @ point.mixture)


def _backtrack(game: _Game, point: _Point, target: FloatArray, beta: float) -> _Point | None:
    """Return the first point on the way to ``target``, halving the step, that delivers its fall."""
    direction = target - point.mixture
    fall = float(point.slope @ direction)
    step = 1.0
    while fall < 0 and step > _SHORTEST:
        moved = game.at(point.mixture + step * direction, beta)
        if moved.value <= point.value + _ARMIJO * step * fall:
            return moved
        if moved.gap <= point.gap / 2 and moved.value <= point.value + _NOISE:
            return moved  # the fall drowns in rounding, but the slope still tells the way
        step /= 2
    return None
