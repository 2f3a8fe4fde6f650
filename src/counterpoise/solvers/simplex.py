"""The capped simplex ``{weights >= 0, sum 1, weights <= caps}``: projection, softmax, worst mean.

All sort once and are exact for ties and for scores of size 1e300: sums are taken relative to a score at the edge,
never of raw scores, so nothing is lost to cancellation.
"""

from bisect import bisect_left

import numpy as np

from counterpoise._checks import check_vector
from counterpoise._types import ArrayLike, FloatArray

_FAR = 1e300  # no score is farther from another: differences stay finite
_SLACK = 1e-9  # caps may fall short of 1 in total by this much: rounding of 1/(alpha n) at alpha = 1


def worst_weights(losses: ArrayLike, caps: ArrayLike) -> FloatArray:
    """Return the weights in the capped simplex that maximize ``weights @ losses``.

    Ties at the edge of the tail share the weight that is left in proportion to their caps.

    Parameters
    ----------
    losses : array of shape (n_samples,)
        Finite.
    caps : float or array of shape (n_samples,)
        Largest weight of each sample; for the CVaR at level alpha this is 1/(alpha n).

    Returns
    -------
    array of shape (n_samples,)

    Examples
    --------
    >>> from counterpoise.solvers import worst_weights
    >>> worst_weights([3.0, 1.0, 2.0, 2.0], caps=0.4).tolist()
    [0.4, 0.0, 0.3, 0.3]
    """
    vector = _vector(losses, "losses")
    limits = _caps(caps, vector.size)
    edge, above = _edge(vector, limits)
    tied = vector == edge
    weights = np.where(vector > edge, limits, 0.0)
    share = (1.0 - above) / limits[tied].sum()
    weights[tied] = limits[tied] * min(max(share, 0.0), 1.0)
    return weights


def worst_mean(losses: ArrayLike, caps: ArrayLike) -> float:
    """Return the largest ``weights @ losses`` over the capped simplex: the CVaR where caps are 1/(alpha n).

    Examples
    --------
    >>> from counterpoise.solvers import worst_mean
    >>> worst_mean([3.0, 1.0, 2.0, 2.0], caps=0.5)
    2.5
    """
    vector = _vector(losses, "losses")
    limits = _caps(caps, vector.size)
    edge, _ = _edge(vector, limits)
    return float(edge + np.maximum(vector - edge, 0.0) @ limits)


def project_capped(scores: ArrayLike, caps: ArrayLike) -> FloatArray:
    """Return the weights in the capped simplex nearest to ``scores``.

    They are ``clip(scores - shift, 0, caps)`` for the one shift at which they sum to 1.

    Parameters
    ----------
    scores : array of shape (n_samples,)
        Finite.
    caps : float or array of shape (n_samples,)
        Largest weight of each sample.

    Returns
    -------
    array of shape (n_samples,)

    Examples
    --------
    >>> from counterpoise.solvers import project_capped
    >>> project_capped([0.9, 0.5, 0.1], caps=0.5).round(3).tolist()
    [0.5, 0.45, 0.05]
    """
    vector = _vector(scores, "scores")
    limits = _caps(caps, vector.size)
    order = np.argsort(-vector)
    falling, limits_ = vector[order], np.minimum(limits[order], 1.0)
    # The shift lies below the lowest score at which the weights do not yet sum to 1 ...
    base = falling[bisect_left(range(vector.size), 1.0, key=lambda k: _filled(falling - falling[k], limits_)) - 1]
    # ... and how far below, relative to that score, is where a piecewise linear function reaches 1.
    height = _height(falling[falling >= base] - base, limits_[falling >= base])
    return np.asarray(np.clip((vector - base) + height, 0.0, limits))


def _filled(heights: FloatArray, caps: FloatArray) -> float:
    return float(np.clip(heights, 0.0, caps).sum())


def _height(heights: FloatArray, caps: FloatArray) -> float:
    """Return the rise at which ``sum(min(heights + rise, caps))`` is 1, for non-negative heights."""
    room = np.sort(np.maximum(caps - heights, 0.0))
    # Before the k-th weight reaches its cap, the first k have risen by their room and the others all alike.
    risen = np.concatenate([[0.0], np.cumsum(room)[:-1]])
    wanted = 1.0 - _filled(heights, caps)
    rises = (wanted - risen) / np.arange(room.size, 0, -1)
    fits = np.flatnonzero(rises <= room)
    return max(float(rises[fits[0]]), 0.0) if fits.size else float(room[-1])


def capped_softmax(scores: ArrayLike, caps: ArrayLike, *, prior: ArrayLike | None = None) -> FloatArray:
    """Return the weights in the capped simplex that maximize ``weights @ scores + entropy(weights)``.

    They are ``min(caps, prior * exp(scores - shift))`` for the one shift at which they sum to 1.

    Parameters
    ----------
    scores : array of shape (n_samples,)
        Finite.
    caps : float or array of shape (n_samples,)
        Largest weight of each sample.
    prior : array of shape (n_samples,), optional
        Non-negative; the entropy is then relative to it. Default: equal for all.

    Returns
    -------
    array of shape (n_samples,)

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.solvers import capped_softmax
    >>> capped_softmax(np.log([8.0, 1.0, 1.0]), caps=0.5).round(3).tolist()
    [0.5, 0.25, 0.25]
    """
    vector = _vector(scores, "scores")
    limits = _caps(caps, vector.size)
    base = np.ones(vector.size) if prior is None else check_vector(prior, "prior", vector.size, "one for each sample")
    # Measured from the edge of the worst weights, the scores that matter are small numbers.
    relative = np.clip(vector - _edge(vector, np.where(base > 0, limits, 0.0))[0], -_FAR, _FAR)
    live = np.flatnonzero((base > 0) & (limits > 0))
    # The weight that reaches its cap first, as the shift falls, is the one with the highest of these.
    live = live[np.argsort(-(relative[live] + np.log(base[live] / limits[live])))]
    logs, limits_ = relative[live] + np.log(base[live]), limits[live]
    filled = np.cumsum(limits_) - limits_
    log_rest = np.logaddexp.accumulate(logs[::-1])[::-1]
    with np.errstate(divide="ignore"):
        room = np.log(np.maximum(1.0 - filled, 0.0))
    # With the first k weights at their caps, the shift is log_rest[k] - room[k]; the first k for which the next
    # weight stays below its cap is the answer.
    below = np.flatnonzero(logs - log_rest + room <= np.log(limits_))
    n_full = int(below[0]) if below.size else live.size
    weights = np.zeros(vector.size)
    weights[live[:n_full]] = limits_[:n_full]
    weights[live[n_full:]] = np.exp(logs[n_full:] - log_rest[n_full] + room[n_full]) if below.size else 0.0
    return np.minimum(weights, limits)


def _edge(losses: FloatArray, caps: FloatArray) -> tuple[float, float]:
    """Return the loss at which the tail begins, and the cap mass strictly above it."""
    order = np.argsort(-losses, kind="stable")
    reach = np.cumsum(caps[order])
    place = min(int(np.searchsorted(reach, 1.0)), losses.size - 1)
    edge = float(losses[order[place]])
    return edge, float(caps[losses > edge].sum())


def _vector(values: ArrayLike, name: str) -> FloatArray:
    size = np.size(values)
    if size == 0:
        raise ValueError(f"{name} must hold at least one entry; got none.")
    return check_vector(values, name, size, "one entry for each sample")


def _caps(caps: ArrayLike, size: int) -> FloatArray:
    limits = check_vector(np.broadcast_to(caps, (size,)), "caps", size, "one cap for each sample")
    if limits.min() < 0:
        raise ValueError(f"caps must not be negative; got {float(limits.min())!r}.")
    total = float(limits.sum())
    if total < 1.0 - _SLACK:
        raise ValueError(
            f"caps must sum to at least 1, or no weights that sum to 1 stay below them; they sum to {total!r}."
        )
    return limits / min(total, 1.0)
