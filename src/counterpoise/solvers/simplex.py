"""The capped simplex ``{weights >= 0, sum 1, weights <= caps}``: projection, softmax, worst mean.

All sort once and are exact for ties and for scores of size 1e300: sums are taken relative to a score at the edge,
never of raw scores, so nothing is lost to cancellation.
"""

from bisect import bisect_left

import numpy as np

from counterpoise._base.checks import as_numbers, check_vector
from counterpoise._base.types import ArrayLike, BoolArray, FloatArray, IntArray
from counterpoise.solvers import _kernels

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
        Largest weight of each sample; for the CVaR at level alpha this is 1/(alpha n). Infinity, for none, counts as 1.

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

    Parameters
    ----------
    losses : array of shape (n_samples,)
    caps : float, or array of shape (n_samples,)
        The largest weights; infinity for none.

    Returns
    -------
    float

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
        Largest weight of each sample; infinity for none.

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
        Largest weight of each sample; infinity for none.
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
    if base.min() < 0:
        raise ValueError(f"prior must not be negative; got {float(base.min())!r}.")
    live = np.flatnonzero((base > 0) & (limits > 0))
    if limits[live].sum() < 1.0 - _SLACK:
        raise ValueError(
            "caps must sum to at least 1 over the samples whose prior is above zero; "
            f"they sum to {float(limits[live].sum())!r}."
        )
    scores_, logs, caps_ = vector[live], np.log(base[live]), limits[live]
    order = _cap_order(scores_, logs - np.log(caps_), _edge(scores_, caps_)[0])
    n_full = _count_full(scores_[order], logs[order], caps_[order])
    is_full = np.zeros(live.size, dtype=np.bool_)
    is_full[order[:n_full]] = True
    weights = np.zeros(vector.size)
    weights[live] = _filled_up(scores_, base[live], caps_, is_full)
    return weights


def _cap_order(scores: FloatArray, lead: FloatArray, edge: float) -> IntArray:
    """Return the order in which weights reach their caps as the shift falls: by ``scores + lead``, highest first.

    Measured from the edge of the worst weights, where it matters, the scores are small numbers; farther off, where sums
    are rounded, the score decides and then the lead.
    """
    return np.lexsort((-lead, -scores, -(np.clip(scores - edge, -_FAR, _FAR) + lead)))


def _count_full(scores: FloatArray, logs: FloatArray, caps: FloatArray) -> int:
    """Return how many of the weights, in the order of their caps, are at them.

    With the first k at their caps, weight k gets its share of the room they leave; the first for which that is below
    its cap is the answer. The rest of the total is taken relative to each score in turn, so nothing cancels.
    """
    rests = np.empty(scores.size)
    _kernels.log_rests(scores, logs, rests)
    with np.errstate(divide="ignore"):
        room = np.log(np.maximum(1.0 - (np.cumsum(caps) - caps), 0.0))
    below = np.flatnonzero(logs - rests + room <= np.log(caps))
    return int(below[0]) if below.size else scores.size


def _filled_up(scores: FloatArray, base: FloatArray, caps: FloatArray, is_full: BoolArray) -> FloatArray:
    """Spread what the full weights leave over the others; what rounding in the order left too high is full too."""
    weights = np.where(is_full, caps, 0.0)
    while not is_full.all():
        rest = ~is_full
        shares = base[rest] * np.exp(scores[rest] - scores[rest].max())
        weights[rest] = max(1.0 - caps[is_full].sum(), 0.0) * shares / shares.sum()
        too_high = weights > caps * (1.0 + _SLACK)
        if not too_high.any():
            break
        is_full = is_full | too_high
        weights = np.where(is_full, caps, 0.0)
    return np.minimum(weights, caps)


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
    given = as_numbers(np.broadcast_to(caps, (size,)) if np.ndim(caps) == 0 else caps, "caps")
    given = np.where(given == np.inf, 1.0, given)  # no weight is larger
    limits = check_vector(given, "caps", size, "one cap for each sample")
    if limits.min() < 0:
        raise ValueError(f"caps must not be negative; got {float(limits.min())!r}.")
    total = float(limits.sum())
    if total < 1.0 - _SLACK:
        raise ValueError(
            f"caps must sum to at least 1, or no weights that sum to 1 stay below them; they sum to {total!r}."
        )
    return limits / min(total, 1.0)
