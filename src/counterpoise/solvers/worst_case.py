"""The worst sample weights, in a ball around the samples' own or with an entropy that keeps them spread.

``worst_case_weights`` solves ``max weights @ losses`` over distributions at most ``radius`` away from the base weights
q (equal ones, or ``sample_weight`` scaled to sum to 1). How far is measured by one of::

    empirical-likelihood   sum q_i log(q_i / w_i)            w_i = q_i / (eta - loss_i), up to a factor
    kl                     sum w_i log(w_i / q_i)            w_i = q_i exp(loss_i / eta)
    chi-square             sum q_i (w_i / q_i - 1)^2 / 2     w_i = q_i max(loss_i - eta, 0)
    cvar                   log max w_i / q_i                 w_i = q_i / alpha above eta, with alpha = exp(-radius)

The first is the ball of Blanchet et al., "DRO-Boosting", who call it KL; its solution is their Lemma 2, where Psi in
fact falls. The first three agree to second order around q, so one radius means about the same in all of them. Each is
one equation in one unknown eta. Weights do not change when the losses are shifted or scaled, so all is computed from
``gaps``, the distances from the largest loss over the range of the losses: nothing overflows, and ties at the top are
exact zeros.

``regularized_weights`` solves the entropy-regularized dual of alpha-LPBoost, by Newton's method on the mixture (Zhai et
al. 2021, eq. 8, after Warmuth, Glocer and Vishwanathan 2008; the printed ``<=`` must be ``>=``, as their slides have
it)::

    min over weights, gamma of  gamma - entropy(weights) / beta
    subject to  weights @ losses[:, s] >= 1 - gamma  for every model s,  weights in the capped simplex.

Its value is 1 minus that of ``max over weights of min over models of weights @ losses + entropy(weights) / beta``,
which we solve from the other side: for a fixed mixture the best weights are a capped softmax of
``beta * losses @ mixture``, so what is left is a smooth convex function of the mixture on the simplex. Newton's step on
the simplex is a small quadratic program; a large beta is reached through smaller ones.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.checks import (
    check_alpha,
    check_choice,
    check_count,
    check_loss_vector,
    check_losses,
    check_mixture,
    check_number,
    check_positive,
    check_sample_weight,
)
from counterpoise._base.types import AnyArray, ArrayLike, BoolArray, FloatArray
from counterpoise.solvers import _ball_kernels
from counterpoise.solvers.linear_program import minimize_on_simplex
from counterpoise.solvers.rows import capped_softmax, load_rows, worst_mean, worst_weights
from counterpoise.solvers.smoothing import smoothed_weights

DIVERGENCES = ("empirical-likelihood", "kl", "chi-square", "cvar")
_HUGE = 1e300  # losses beyond it are scaled down first, so that differences stay finite
_TIED = 1e-280  # gaps below it are ties: what is left of the floats' range is needed for floors below the least gap
_SMALLEST = 5e-324  # float above 0: a spread to divide gaps of 0 by
_FLAT = 1e5  # floor, in ranges of the losses, from which only the second order in 1 / floor is above rounding
_DEEP = 1e-17  # what is smaller than the rest by this factor does not change it
_DONE = 1e-14  # part of the radius by which a divergence may miss it
_NOISE = 2e-16  # times the root of the number of samples: what rounding leaves of a sum of terms near 1
_NEARLY_DEEP = 1e-13  # and by this factor changes it by less than the promised exactness
_NO_WEIGHT = 1e-200  # part of all sample weight that counts as none, so that sums of squares stay above 0
_LEAST = 1e-300  # floor or radius: above the smallest float, with room to divide by it
_MOST_STEPS = 200  # a plain bisection of the logarithm down to rounding takes 60


def worst_case_weights(
    losses: ArrayLike,
    radius: float,
    *,
    divergence: str = "empirical-likelihood",
    smoothing: float = 0.0,
    sample_weight: ArrayLike | None = None,
) -> FloatArray:
    """Return the distribution within ``radius`` of the samples' own weights that maximizes ``weights @ losses``.

    Parameters
    ----------
    losses : array of shape (n_samples,)
        Finite, of any sign and size.
    radius : float >= 0
        Size of the ball; 0 gives the samples' own weights, infinity puts everything on the largest loss.
    divergence : {"empirical-likelihood", "kl", "chi-square", "cvar"}, default="empirical-likelihood"
        How far weights are from the samples' own (see the module's text). For ``"cvar"`` the radius is the logarithm of
        the largest factor by which a weight may grow, so the tail fraction is ``alpha = exp(-radius)``.
    smoothing : float >= 0, default=0
        Price of the divergence KL from the samples' own weights, in units of the losses: a soft maximum (Remark 1 of
        the paper), whose weights change smoothly with the losses. The result then maximizes ``weights @ losses -
        smoothing * KL``, which is at most ``smoothing * log(n_samples)`` below the maximum.
    sample_weight : array of shape (n_samples,), optional
        Non-negative weights of the samples, the centre of the ball; only their ratios matter. Default: equal.

    Returns
    -------
    array of shape (n_samples,)
        Non-negative, sum 1. Equal losses weigh the same for each unit of sample weight; where all losses are equal the
        samples' own weights are returned.

    Notes
    -----
    Let ``top`` be the part of the samples' own weights that lies on the largest loss. All on that loss is as bad as it
    gets, and is inside the ball from the radius ``-log(top)`` on (kl and cvar), or ``(1 / top - 1) / 2`` (chi-square).
    The empirical-likelihood ball never reaches it: every weight stays positive, though at a large radius some are below
    the smallest float and come out as 0. Below those radii the divergence of the result is ``radius`` to about 1e-14.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.solvers import worst_case_weights
    >>> weights = worst_case_weights([0.0, 1.0, 3.0], radius=0.1)
    >>> weights.round(3).tolist()
    [0.198, 0.252, 0.55]
    >>> float(-np.mean(np.log(3 * weights)).round(12))
    0.1
    >>> worst_case_weights([0.0, 1.0, 3.0], np.log(2), divergence="cvar").round(3).tolist()
    [0.0, 0.333, 0.667]
    >>> worst_case_weights([0.0, 1.0, 3.0], np.inf, smoothing=1.0).round(3).tolist()  # a softmax of the losses
    [0.042, 0.114, 0.844]
    """
    check_choice(divergence, "divergence", DIVERGENCES)
    vector = check_loss_vector(losses)  # differences may be infinite: see ``ball_around``
    mass = check_sample_weight(sample_weight, vector.size)
    ball, size = ball_around(vector, mass), check_radius(radius)
    price = check_number(smoothing, "smoothing", "[0, inf)", "the price of the divergence KL (0: none)")
    if price == 0.0 or size < _LEAST or not ball.gaps.any():
        return ball.worst(size, divergence).weights
    weighed_losses = vector[ball.base > 0.0] / 4  # so that the range is finite
    span = 4 * (float(weighed_losses.max()) - float(weighed_losses.min()))
    return smoothed_weights(-ball.gaps, ball.base, size, divergence, price / span)


def check_radius(radius: Any) -> float:
    """Return ``radius`` as a float after checking that it is a number of at least 0."""
    return check_number(radius, "radius", "[0, inf]", "the size of the ball of weights (0: the samples' own alone)")


class WorstWeights(NamedTuple):
    """Worst weights, and the unknown that gave them, in units of the gaps: a start for the next similar problem."""

    weights: FloatArray
    root: float


class Ball(NamedTuple):
    """Samples as the divergences see them: how far their losses are below the largest, and what they weigh."""

    gaps: FloatArray  # from 0 at the largest loss to 1 at the least; all 0 where losses are equal
    base: FloatArray  # on the simplex
    is_equal: bool  # whether all base weights are equal

    def worst(self, radius: float, divergence: str, start: float = math.nan) -> WorstWeights:
        """Return the worst weights; ``start`` is the root of a similar problem, where there is one."""
        if radius < _LEAST or not self.gaps.any():
            return WorstWeights(self.base.copy(), math.nan)
        top = self.gaps == 0.0
        share = float(self.base[top].sum())
        if radius >= _CAPS[divergence](share):
            return WorstWeights(np.where(top, self.base / share, 0.0), math.nan)
        worst = _WEIGH[divergence](self, radius, start)
        np.divide(worst.weights, worst.weights.sum(), out=worst.weights)
        return worst

    @property
    def mass(self) -> tuple[FloatArray, int]:
        """Return the base weights as kernels take them: entry ``i * step`` is that of sample i."""
        return (self.base[:1], 0) if self.is_equal else (self.base, 1)


def ball_around(losses: AnyArray, mass: FloatArray | None) -> Ball:
    """Return finite losses as gaps, and the samples' own weights; samples without weight do not count in the range."""
    n_samples = losses.size
    base = np.full(n_samples, 1.0 / n_samples) if mass is None else mass / mass.sum()
    vector = np.ascontiguousarray(losses, dtype=np.float64)
    if mass is None:
        least, largest = float(vector.min()), float(vector.max())
    else:
        base[base < _NO_WEIGHT] = 0.0
        weighed_losses = vector[base > 0.0]
        least, largest = float(weighed_losses.min()), float(weighed_losses.max())
        vector = np.clip(vector, least, largest)
    if max(-least, largest) > _HUGE:
        vector, least, largest = vector / 4, least / 4, largest / 4
    gaps = np.empty(n_samples)
    _ball_kernels.fill_gaps(vector, largest, max(largest - least, _SMALLEST), _TIED, gaps)
    return Ball(gaps, base, mass is None)


# From which radius on everything may lie on the largest loss, given the share of the samples' own weights there.
_CAPS: dict[str, Callable[[float], float]] = {
    "empirical-likelihood": lambda _share: math.inf,
    "kl": lambda share: -math.log(share),
    "chi-square": lambda share: (1.0 / share - 1.0) / 2,
    "cvar": lambda share: -math.log(share),
}


def _likelihood_weights(ball: Ball, radius: float, start: float) -> WorstWeights:
    """Return weights ``base / (gaps + floor)`` up to a factor, for the one floor above 0 at the radius."""
    top = ball.gaps == 0.0
    share = float(ball.base[top].sum())
    rest = 1.0 - share
    # A bound from below on the divergence of weights that leave all but a rounding on the top (log-sum inequality).
    if rest > 0.0 and radius > share * math.log(share) + rest * math.log(rest / _DEEP):
        deep = _deep_weights(ball, radius, ~top, share)
        if deep is not None:
            return WorstWeights(deep, math.nan)
    floor = _likelihood_floor(ball, radius, start)
    weights = ball.gaps + floor
    return WorstWeights(np.divide(ball.base, weights, out=weights), floor)


def _deep_weights(ball: Ball, radius: float, rest: BoolArray, share: float) -> FloatArray | None:
    """Return the weights where all but a rounding lies on the top, or None where it does not.

    The divergence is then linear in the logarithm of the floor, which may be below the smallest float.
    """
    gaps, base = ball.gaps[rest], ball.base[rest]
    log_floor = (float(base @ np.log(gaps)) + math.log(share) - radius) / float(base.sum())
    floor = math.exp(max(log_floor, math.log(_LEAST)))
    if floor > _DEEP * float(gaps.min()) or floor * float(base @ (1.0 / gaps)) > _NEARLY_DEEP * share:
        return None
    weights = ball.base.copy()
    weights[rest] = base * np.exp(log_floor - np.log(gaps))
    return weights


def _likelihood_floor(ball: Ball, radius: float, start: float) -> float:
    """Return the floor at which the weights ``base / (gaps + floor)``, scaled to sum to 1, have divergence ``radius``.

    In Lemma 2's terms ``beta = -(largest loss + floor * range)`` and the divergence is ``radius - Psi(beta)``. It falls
    from infinity to 0 as the floor rises: like ``1 / floor^2`` at the far end, like ``-log(floor)`` at the near one.
    Newton's method is taken on ``log(exp(divergence) - 1)`` against ``log(floor)``, which is straight at both ends.
    """
    mean, variance = _ball_kernels.mean_and_variance(ball.gaps, *ball.mass)
    second_order = math.sqrt(variance / (2.0 * radius))  # floor + mean, where the floor is far above the gaps
    if second_order > _FLAT:
        return second_order - mean

    def divergence(log_floor: float) -> tuple[float, float]:
        floor = math.exp(log_floor)
        log_mean, first, second = _ball_kernels.floor_means(ball.gaps, *ball.mass, mean, floor)
        slope = -floor * (second - first * first) / ((mean + floor) * (1.0 + first))
        return log_mean + math.log1p(first), slope

    cold = max(second_order - mean, second_order * math.exp(-radius) / 4, _LEAST)
    guess = start if start > 0.0 else cold  # NaN is no start
    highest = math.log(variance / radius) / 2  # there the divergence is at most variance / floor^2, which is the radius
    return _falling_root(divergence, radius, guess, highest, n_samples=ball.gaps.size)


def _falling_root(
    function: Callable[[float], tuple[float, float]], target: float, guess: float, high: float, *, n_samples: int
) -> float:
    """Return where a falling positive function is ``target``: Newton inside a bracket.

    The function is one of the logarithm, given with its slope, and ``high`` is a logarithm too.
    Steps are taken on ``log(exp(function) - 1)``, and the bracket is halved where one of them would leave it.
    """
    low, noise = math.log(_LEAST), _NOISE * math.sqrt(n_samples)
    place = min(max(math.log(guess), low), high)
    for _ in range(_MOST_STEPS):
        value, slope = function(place)
        if abs(value - target) <= max(_DONE * target, noise):
            break
        low, high = (place, high) if value > target else (low, place)
        rise = (_log_expm1(value) - _log_expm1(target)) * -math.expm1(-value) if value > 0.0 else math.nan
        step = place - rise / slope if slope < 0.0 else math.nan
        place = step if low < step < high else (low + high) / 2
        if not low < place < high:  # neighbouring floats
            break
    return math.exp(place)


def _log_expm1(value: float) -> float:
    return value + math.log(-math.expm1(-value))


def _exponential_weights(ball: Ball, radius: float, start: float) -> WorstWeights:
    """Return weights ``base * exp(-gaps / heat)`` up to a factor, for the one heat above 0 at the radius."""
    _, variance = _ball_kernels.mean_and_variance(ball.gaps, *ball.mass)
    guess = math.sqrt(variance / (2.0 * radius))  # of the heat, where it is far above the gaps

    def divergence(log_heat: float) -> tuple[float, float]:
        rate = math.exp(-log_heat)
        total, mean, square = _ball_kernels.tilt_means(ball.gaps, *ball.mass, rate)
        return -rate * mean - math.log(total), -rate * rate * (square - mean * mean)

    if guess > _FLAT:
        return WorstWeights(np.asarray(ball.base * (1.0 - ball.gaps / guess)), guess)
    guess = start if start > 0.0 else guess
    highest = -math.log(8.0 * radius) / 2  # no variance of gaps is above 1/4, so the divergence there is at most radius
    heat = _falling_root(divergence, radius, guess, highest, n_samples=ball.gaps.size)
    return WorstWeights(np.asarray(ball.base * np.exp(-ball.gaps / heat)), heat)


def _clipped_weights(ball: Ball, radius: float, start: float) -> WorstWeights:
    """Return weights ``base * max(edge - gaps, 0)`` up to a factor, for the one edge at the radius.

    With the mass m of the gaps below the edge, their mean and variance, ``edge = mean + sqrt(variance / (m (1 + 2
    radius) - 1))``. The search finds which those are, the formula then the weights to rounding. It is taken from the
    gap of the heaviest sample, from which the mean may differ by less than floats can distinguish.
    """
    heaviest = float(ball.gaps[0 if ball.is_equal else ball.base.argmax()])
    heights = heaviest - ball.gaps
    mean, variance = _ball_kernels.mean_and_variance(heights, *ball.mass)
    root = math.sqrt(variance / (2.0 * radius))
    heights += root - mean
    edge = heaviest + (root - mean)
    if heights.min() >= 0.0:
        return WorstWeights(np.multiply(ball.base, heights, out=heights), edge)

    def divergence(log_edge: float) -> tuple[float, float]:
        mass, first, second = _ball_kernels.clip_means(ball.gaps, *ball.mass, math.exp(log_edge))
        ratio = second / first / first  # the square of a mean may be below the smallest float
        return (ratio - 1.0) / 2, (1.0 - mass * ratio) / first

    guess = start if start > 0.0 else max(edge, _LEAST)
    edge = _falling_root(divergence, radius, guess, 0.0, n_samples=ball.gaps.size)
    inside = ball.gaps <= edge  # with those so near it that rounding decides
    heights[~inside] = 0.0
    heights[inside] = _heights(ball.gaps[inside], ball.base[inside], radius, float(ball.base[~inside].sum()), edge)
    return WorstWeights(np.multiply(ball.base, heights, out=heights), edge)


def _heights(gaps: FloatArray, base: FloatArray, radius: float, outside: float, edge: float) -> FloatArray:
    """Return ``max(edge - gaps, 0)`` at the radius, given the base weight outside, and about the edge."""
    heights = gaps[base.argmax()] - gaps
    inside = float(base.sum())
    mean = float(base @ heights) / inside
    variance = float(base @ (heights - mean) ** 2) / inside
    slack = 2.0 * radius * inside - outside  # m (1 + 2 radius) - 1
    if not (slack > 0.0 and variance > 0.0):  # by rounding: this edge is as good as it gets
        return np.asarray(np.maximum(edge - gaps, 0.0))
    return np.asarray(np.maximum(heights + (math.sqrt(variance / slack) - mean), 0.0))


_WEIGH: dict[str, Callable[[Ball, float, float], WorstWeights]] = {
    "empirical-likelihood": _likelihood_weights,
    "kl": _exponential_weights,
    "chi-square": _clipped_weights,
    "cvar": lambda ball, radius, _: WorstWeights(worst_weights(-ball.gaps, ball.base * math.exp(radius)), math.nan),
}


_FIRST_BETA = 30.0  # at losses in [0, 1] Newton's method converges from anywhere below this
_BETA_FACTOR = 4.0  # from one beta to the next: the last optimum is then a good start
_LAST_BETA = 1e8  # and not above this: no loss moves by more than log(n) / 1e8, and Newton's steps drown in rounding
_ARMIJO = 1e-3  # part of the predicted fall that a step must deliver
_SHORTEST = 1e-10  # step, as a part of the way
_ENTROPIC_NOISE = 1e-13  # rounding of a value of the function: losses are mapped to [0, 1]
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
    game = _EntropyGame(matrix, alpha, mass)
    n_iter = 0
    scaled_beta = min(beta * game.span, _LAST_BETA)  # beta for losses in [0, 1], as far as it makes a difference
    betas = [scaled_beta]  # that rise to the last in steps that Newton's method follows easily
    while start is None and betas[0] > _FIRST_BETA:  # a start that the caller knows to be good needs no detour
        betas.insert(0, max(betas[0] / _BETA_FACTOR, _FIRST_BETA))
    for step_beta in betas:
        step_tol = tol / game.span if step_beta == scaled_beta else 0.1 / step_beta
        mixture, n_done = _newton(game, mixture, step_beta, step_tol, max_iter - n_iter)
        n_iter += n_done
    return game.certify(mixture, beta, scaled_beta, n_iter)


class _Point(NamedTuple):
    """A mixture, the best weights against it, and the function value and slope there, for losses in [0, 1]."""

    mixture: FloatArray
    weights: FloatArray
    value: float
    slope: FloatArray

    @property
    def gap(self) -> float:
        return float(self.slope @ self.mixture - self.slope.min())


class _EntropyGame:
    """The losses mapped to [0, 1], with caps and prior of the samples."""

    def __init__(self, losses: AnyArray, alpha: float, mass: FloatArray | None) -> None:
        self.losses, self.rows = losses, load_rows(losses)
        self.shift, self.span = self.rows.low, (self.rows.high - self.rows.low) or 1.0
        mass = np.ones(losses.shape[0]) if mass is None else mass
        self.caps = mass / (alpha * mass.sum())
        self.prior = mass / mass.mean()

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

    def certify(self, mixture: FloatArray, beta: float, scaled_beta: float, n_iter: int) -> RegularizedSolution:
        """Return both players' vectors with the bounds computed from them alone."""
        weights = self.at(mixture, scaled_beta).weights
        entropy = self.entropy(weights)
        scores = np.empty(self.rows.n_rows)
        self.rows.scores(mixture, scores)
        value = float(weights @ scores) + entropy * self.span / scaled_beta
        share = scaled_beta / (beta * self.span)
        if share < 1:  # beyond the last beta: the best reply is convex in 1 / beta, and without entropy the worst mean
            value = share * value + (1 - share) * worst_mean(scores, self.caps)
        lower = float(self.rows.columns(weights).min()) + entropy / beta
        return RegularizedSolution(weights, mixture, value, lower, n_iter)


def _newton(game: _EntropyGame, mixture: FloatArray, beta: float, tol: float, max_iter: int) -> tuple[FloatArray, int]:
    """Minimize over the simplex by Newton steps with backtracking, until the gap is at most ``tol``."""
    point = game.at(mixture, beta)
    for n_iter in range(max_iter):
        if point.gap <= tol:
            return point.mixture, n_iter
        # The minimizer over the simplex of the quadratic model at the point.
        hessian, n_models = game.curvature(point.weights, beta), mixture.size
        hessian += (_LEAST_RIDGE + _RIDGE * float(np.trace(hessian)) / n_models) * np.eye(n_models)
        target = minimize_on_simplex(hessian, point.slope - hessian @ point.mixture)
        next_point = None if target is None else _backtrack(game, point, target, beta)
        if next_point is None:  # no progress in floating point: the caller reads the gap
            return point.mixture, n_iter
        point = next_point
    return point.mixture, max(max_iter, 0)


def _backtrack(game: _EntropyGame, point: _Point, target: FloatArray, beta: float) -> _Point | None:
    """Return the first point on the way to ``target``, halving the step, that delivers its fall."""
    direction = target - point.mixture
    fall = float(point.slope @ direction)
    step = 1.0
    while fall < 0 and step > _SHORTEST:
        candidate = game.at(point.mixture + step * direction, beta)
        if candidate.value <= point.value + _ARMIJO * step * fall:
            return candidate
        if candidate.gap <= point.gap / 2 and candidate.value <= point.value + _ENTROPIC_NOISE:
            return candidate  # the fall drowns in rounding, but the slope still shows the way
        step /= 2
    return None
