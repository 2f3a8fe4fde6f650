"""Measures of how a classifier does in the tail.

The CVaR at level alpha is the average loss over the worst fraction alpha of the samples. Where alpha times the number
of samples is not whole, the sample at the edge counts with its fraction: nothing is floored, so a
classifier with a zero-one loss has a CVaR of exactly ``min(1, error / alpha)``.
"""

import numpy as np

from counterpoise._checks import (
    check_alpha,
    check_alphas,
    check_losses,
    check_mixture,
    check_sample_weight,
    value_range,
)
from counterpoise._types import ArrayLike, FloatArray

_CHUNK = 65_536  # rows multiplied at once, so that no float copy of a byte matrix is made

__all__ = ["cvar_curve", "cvar_loss"]


def cvar_loss(
    losses: ArrayLike,
    alpha: float,
    sample_weight: ArrayLike | None = None,
    *,
    mixture: ArrayLike | None = None,
) -> float:
    """Return the average loss over the worst fraction ``alpha`` of the samples.

    Parameters
    ----------
    losses : array of shape (n_samples,) or (n_samples, n_models)
        Loss of each sample; or, with ``mixture``, of each model on each sample.
    alpha : float in (0, 1]
        Tail fraction; 1 is the plain average.
    sample_weight : array of shape (n_samples,), optional
        Non-negative; only their ratios matter.
    mixture : array of shape (n_models,), optional
        Distribution over the models; the loss of a sample is then ``losses @ mixture``.

    Returns
    -------
    float

    Examples
    --------
    The worst 40 % of five samples are two of them, the worst 50 % two and a half:

    >>> from counterpoise.metrics import cvar_loss
    >>> losses = [0.1, 0.9, 0.3, 0.5, 0.2]
    >>> round(cvar_loss(losses, alpha=0.4), 3), round(cvar_loss(losses, alpha=0.5), 3)
    (0.7, 0.62)
    """
    alpha = check_alpha(alpha)
    scores = _sample_losses(losses, mixture)
    mass = check_sample_weight(sample_weight, scores.size)
    if mass is None:
        return _equal_weight_cvar(scores, alpha)
    return float(_curve(scores, np.array([alpha]), mass)[0])


def cvar_curve(
    losses: ArrayLike,
    alphas: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    mixture: ArrayLike | None = None,
) -> FloatArray:
    """Return the CVaR at each of many levels, sorting the losses once.

    Parameters
    ----------
    losses, sample_weight, mixture
        As for ``cvar_loss``.
    alphas : array of shape (n_alphas,)
        Tail fractions in (0, 1], in any order.

    Returns
    -------
    array of shape (n_alphas,)
        Falls as alpha rises, down to the average at 1.

    Examples
    --------
    >>> from counterpoise.metrics import cvar_curve
    >>> cvar_curve([0, 0, 0, 1], [0.1, 0.25, 0.5, 1.0]).tolist()
    [1.0, 1.0, 0.5, 0.25]
    """
    levels = check_alphas(alphas)
    scores = _sample_losses(losses, mixture)
    mass = check_sample_weight(sample_weight, scores.size)
    return _curve(scores, levels, np.ones(scores.size) if mass is None else mass)


def _sample_losses(losses: ArrayLike, mixture: ArrayLike | None) -> FloatArray:
    array = check_losses(losses, ndim=None)
    value_range(array, "losses")
    if array.ndim == 1:
        if mixture is not None:
            raise ValueError("mixture needs losses of shape (n_samples, n_models); got a vector of losses.")
        return array.astype(np.float64)
    if mixture is None:
        raise ValueError(
            f"losses of shape {array.shape} need a mixture over the {array.shape[1]} models; "
            "pass mixture=, or the losses of one model."
        )
    shares = check_mixture(mixture, array.shape[1])
    if array.flags.f_contiguous:  # as losses come, a column for each model
        scores = np.zeros(len(array))
        for model in np.flatnonzero(shares):
            scores += shares[model] * array[:, model]
        return scores
    pieces = [array[start : start + _CHUNK] @ shares for start in range(0, len(array), _CHUNK)]
    return np.concatenate(pieces)


def _equal_weight_cvar(scores: FloatArray, alpha: float) -> float:
    """Average by selection, in linear time: ``edge + mean(max(scores - edge, 0)) / alpha``."""
    tail = alpha * scores.size
    place = max(scores.size - 1 - int(tail), 0)
    edge = np.partition(scores, place)[place]
    excess = np.maximum(scores - edge, 0.0)
    largest = excess.max() or 1.0  # taken out of the sum, which could overflow
    return float(edge + (excess / largest).sum() / tail * largest)


def _curve(scores: FloatArray, alphas: FloatArray, mass: FloatArray) -> FloatArray:
    """Interpolate the total loss of the tail, which is linear in its mass between samples."""
    order = np.argsort(-scores, kind="stable")
    shares = mass[order] / mass.sum()
    reached = np.concatenate([[0.0], np.cumsum(shares)])
    reached[-1] = 1.0
    totals = np.concatenate([[0.0], np.cumsum(shares * scores[order])])
    return np.asarray(np.interp(alphas, reached, totals) / alphas)
