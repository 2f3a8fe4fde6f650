"""Worst sample weights with a soft maximum: smooth in the losses, at the expense of a small error that the user sets.

``max over weights in the ball of weights @ losses - smoothing * KL(weights || own weights)``

Remark 1 of Blanchet et al., "DRO-Boosting": the robust loss has kinks, where the worst weights jump. Without a ball the
best weights are a softmax of ``losses / smoothing`` and the value is the usual soft maximum; in the ball of the KL they
are those of a larger temperature, in that of the CVaR a capped softmax. With the empirical likelihood and chi-square
each ratio ``r`` of a weight to its own weight solves ``smoothing * log(r) + price * d'(r) = loss - shift``, with d' the
slope of the divergence: Wright's omega function has it in closed form. What is left is one shift for the sum of the
weights and one price for the radius, two bracketed roots. No divergence KL is above ``log(1 / least own weight)``, so
the value is at most ``smoothing`` times that below the robust loss.
"""

import math
from collections.abc import Callable

import numpy as np

from counterpoise._base.types import FloatArray
from counterpoise.solvers.rows import capped_softmax

_LEAST_PRICE, _MOST_PRICE = 1e-14, 1e14  # for losses with a range of 1
_ROOT = {"xtol": 1e-15, "rtol": 1e-14}

Ratios = Callable[[FloatArray, float, float], FloatArray]  # losses less the shift, smoothing, price -> ratios


def smoothed_weights(
    losses: FloatArray, base: FloatArray, radius: float, divergence: str, smoothing: float
) -> FloatArray:
    """Return the weights of the soft maximum.

    Parameters
    ----------
    losses : array of shape (n_samples,)
        With a range of at most 1 over the samples whose base weight is above zero.
    base : array of shape (n_samples,)
        The samples' own weights, on the simplex.
    radius : float > 0
    divergence : {"empirical-likelihood", "kl", "chi-square", "cvar"}
    smoothing : float > 0
        In the units of the losses.

    Returns
    -------
    array of shape (n_samples,)
    """
    live = np.flatnonzero(base > 0.0)
    weights = np.zeros(base.size)
    if divergence == "cvar":
        factor = math.exp(min(radius, 700.0))  # the logarithm of which is finite
        weights[live] = capped_softmax(losses[live] / smoothing, base[live] * factor, prior=base[live])
    else:
        weights[live] = base[live] * _worst_ratios(losses[live], base[live], radius, divergence, smoothing)
    return np.asarray(weights / weights.sum())


def _worst_ratios(losses: FloatArray, base: FloatArray, radius: float, divergence: str, smoothing: float) -> FloatArray:
    """Return weights over base weights: a softmax where that is in the ball, else those at the price of the radius."""
    from scipy.optimize import brentq  # noqa: PLC0415 - heavy

    distance, ratios_at = _DISTANCES[divergence], _RATIOS[divergence]
    soft = np.exp((losses - losses.max()) / smoothing)
    soft /= base @ soft
    if distance(soft, base) <= radius:
        return np.asarray(soft)

    def ratios(log_price: float) -> FloatArray:
        price = math.exp(log_price)
        # The ratio is 1 where a loss less the shift is ``level``: between these shifts the ratios average 1.
        level = -price if divergence == "empirical-likelihood" else 0.0
        low, high = float(losses.min()) - level, float(losses.max()) - level

        def excess(shift: float) -> float:
            return float(base @ ratios_at(losses - shift, smoothing, price)) - 1.0

        return ratios_at(losses - brentq(excess, low, high, **_ROOT), smoothing, price)

    least, most = math.log(_LEAST_PRICE), math.log(_MOST_PRICE)
    return ratios(brentq(lambda price: distance(ratios(price), base) - radius, least, most, **_ROOT))


def _likelihood_distance(ratios: FloatArray, base: FloatArray) -> float:
    with np.errstate(divide="ignore"):
        return -float(base @ np.log(ratios))


def _kl_distance(ratios: FloatArray, base: FloatArray) -> float:
    return float(base @ np.where(ratios > 0.0, ratios * np.log(np.maximum(ratios, 1e-300)), 0.0))


def _chi_square_distance(ratios: FloatArray, base: FloatArray) -> float:
    return float(base @ (ratios - 1.0) ** 2) / 2


def _likelihood_ratios(heights: FloatArray, smoothing: float, price: float) -> FloatArray:
    """Return r with ``smoothing * log(r) - price / r = height``."""
    from scipy.special import wrightomega  # noqa: PLC0415 - heavy

    inverse = wrightomega(math.log(price / smoothing) - heights / smoothing)
    return np.asarray(price / smoothing / inverse)


def _kl_ratios(heights: FloatArray, smoothing: float, price: float) -> FloatArray:
    return np.asarray(np.exp(heights / (smoothing + price)))


def _chi_square_ratios(heights: FloatArray, smoothing: float, price: float) -> FloatArray:
    """Return r with ``smoothing * log(r) + price * (r - 1) = height``."""
    from scipy.special import wrightomega  # noqa: PLC0415 - heavy

    return np.asarray(smoothing / price * wrightomega((heights + price) / smoothing + math.log(price / smoothing)))


_DISTANCES: dict[str, Callable[[FloatArray, FloatArray], float]] = {
    "empirical-likelihood": _likelihood_distance,
    "kl": _kl_distance,
    "chi-square": _chi_square_distance,
}
_RATIOS: dict[str, Ratios] = {
    "empirical-likelihood": _likelihood_ratios,
    "kl": _kl_ratios,
    "chi-square": _chi_square_ratios,
}
