"""Evidence about means that may be looked at after every row: betting with stakes that depend on nothing but the bound.

Rows arrive one after another. Has their mean been above m all along? If it were at most m, a gambler who bets on more
could not expect to win. With a stake k in (0, 1), a row of value x between ``low`` and ``high`` and a weight w up to 1
multiplies the gambler's money by

    1 + k w ((x - low) / (m - low) - 1),

whose expectation is at most 1 as long as the weighted mean is at most m. The money is then a supermartingale, and by
Ville's inequality the probability that it *ever* reaches ``1 / risk`` is at most ``risk``: so anyone may look at any
time, and stop when they like. So is the average over several stakes, which comes near to that of the best of them. The
stakes are fixed in advance, and the logarithm of the money is a sum over rows: counts of rows by value and weight are
all that must be kept, the order of rows does not matter, and sums of counts over batches are enough (Waudby-Smith and
Ramdas 2024, Estimating means of bounded random variables by betting).

For a sum of means of several streams, such as a difference between two groups, the hypothesis is a set of points
``m_1 + ... + m_K <= total``. It is ruled out where each of its points is. At a point the evidence of streams
without a common row is a product, which is a supermartingale too; else it is the average over the streams. The least
over all points is found in cells, in each of which monotony gives a bound: so it errs on the safe side.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from counterpoise._base.types import FloatArray
from counterpoise.theory.confidence import WeightedSample

__all__ = ["log_evidence", "log_factors", "log_wealth", "lower_mean", "mean_of", "unruled_pairs"]

_STAKES = np.append(0.99 * 0.5 ** np.arange(11.0), 0.0)  # a factor of 2 misses the best one by at most a sixth
_PRIOR = -math.log(_STAKES.size)
_NO_GAP = 1e-12  # part of the span: a mean so near the low end leaves no room for any value above it
_POINTS = 57  # means in a cell with the end of an interval
_NEAR, _AWAY = np.linspace(0.0, 5.0, 21), np.geomspace(5.5, 60.0, 10)  # standard errors around an estimate
_STEPS = np.concatenate([-_NEAR, _NEAR, -_AWAY, _AWAY])  # at which means are looked for closely
_ZOOMS = 2  # into the cell with the end of an interval
_COARSE = 9  # means over the whole span
_SPLIT, _ROUNDS, _CLOSE = 8, 4, 0.02  # of cells that matter; logarithms to which the least evidence is known
_MOST = 700.0  # a logarithm of evidence that is as good as any


class _Located(NamedTuple):
    """An estimate of a mean and its standard error, about."""

    mean: float
    error: float


def mean_of(sample: WeightedSample) -> float:
    """Return the weighted mean of the rows, NaN where there are none."""
    totals = sample.weights * sample.counts
    whole = float(totals.sum())
    return float(totals @ sample.values) / whole if whole > 0 else math.nan


def log_wealth(sample: WeightedSample, means: FloatArray) -> FloatArray:
    """Return the logarithm of the evidence that the mean is above each of some numbers.

    Parameters
    ----------
    sample : WeightedSample
        Its counts have shape (n_cells,), or (n_samples, n_cells) for several samples at once.
    means : array of shape (n_means,)

    Returns
    -------
    array of shape (n_means,), or (n_samples, n_means)
    """
    low, high = sample.span
    counts = np.atleast_2d(sample.counts)
    gaps = (means - low) / (high - low)
    is_plain = gaps > _NO_GAP
    by_stake = log_factors(sample, means) @ counts.T
    most = by_stake.max(axis=0)
    logs = np.log(np.exp(by_stake - most).sum(axis=0)) + most + _PRIOR  # (n_means, n_samples)
    if not is_plain.all():  # at the low end any value above it is a proof, and below it there is no mean
        is_above = counts @ ((sample.values > low + _NO_GAP * (high - low)) & (sample.weights > 0)) > 0
        logs[~is_plain] = np.where(is_above | (gaps[~is_plain, None] < -_NO_GAP), _MOST, 0.0)
    logs = np.minimum(logs, _MOST).T
    return np.asarray(logs if sample.counts.ndim > 1 else logs[0])


def log_factors(sample: WeightedSample, means: FloatArray) -> FloatArray:
    """Return the logarithm of what a row of each cell multiplies the money by, shape (n_stakes, n_means, n_cells).

    The evidence is the average over the stakes. It is right for means above the low end.
    """
    low, high = sample.span
    gaps = (means - low) / (high - low)
    divisors = np.where(gaps > _NO_GAP, np.minimum(gaps, 1.0), 1.0)
    ratios = (sample.values - low) / (high - low) / divisors[:, None] - 1.0
    return np.log1p(_STAKES[:, None, None] * (sample.weights * ratios))


def log_evidence(
    samples: Sequence[WeightedSample], total: float, *, are_disjoint: bool, level: float = math.inf
) -> float:
    """Return the logarithm of the evidence that the sum of the means of streams is above a number.

    Of two streams it may be a little less, and less still where it is clearly on one side of ``level``.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.theory.confidence import WeightedSample
    >>> from counterpoise.theory.sequential import log_evidence
    >>> rows = WeightedSample(np.array([0.0, 1.0]), np.ones(2), np.array([40.0, 60.0]), (0.0, 1.0))
    >>> round(log_evidence([rows], 0.4, are_disjoint=True), 2)
    5.34
    """
    if len(samples) == 1:
        return float(log_wealth(samples[0], np.array([total]))[0])
    if sum(one.span[0] for one in samples) > total + _NO_GAP * sum(one.span[1] - one.span[0] for one in samples):
        return _MOST
    if len(samples) > 2 or not are_disjoint:  # noqa: PLR2004 - pairs
        return _evidence_by_parts(samples, total)
    return _evidence_of_pair(samples[0], samples[1], total, level)


def _evidence_of_pair(one: WeightedSample, other: WeightedSample, total: float, level: float) -> float:
    """Return the least sum of logarithms over all pairs of means with that sum, or a little less."""
    low, high = max(one.span[0], total - other.span[1]), min(one.span[1], total - other.span[0])
    if low >= high:
        return float(log_wealth(one, np.array([high]))[0] + log_wealth(other, np.array([total - high]))[0])
    away = _locate(other)
    edges = _edges([_locate(one), away._replace(mean=total - away.mean)], low, high)
    left, right = edges[:-1], edges[1:]
    safe = math.inf  # the least bound of the cells that need no second look
    for number in range(_ROUNDS):
        at_left, at_right = log_wealth(one, left), log_wealth(one, right)
        opposite, near = log_wealth(other, total - left), log_wealth(other, total - right)
        bounds, reached = at_right + opposite, float(min((at_left + opposite).min(), (at_right + near).min()))
        least, is_open = min(safe, float(bounds.min())), bounds < reached - _CLOSE
        if number == _ROUNDS - 1 or not is_open.any() or least >= level or reached < level < math.inf:
            return least
        safe = min(safe, float(bounds[~is_open].min(initial=math.inf)))
        steps = np.linspace(left[is_open], right[is_open], _SPLIT + 1)
        left, right = steps[:-1].ravel(), steps[1:].ravel()
    return safe


def _evidence_by_parts(samples: Sequence[WeightedSample], total: float) -> float:
    """Return evidence from bounds on each mean: where all are ruled out below bounds that add up to more.

    Their average is evidence however the streams depend on each other.
    """
    tables = [_table(sample) for sample in samples]

    def is_shown(level: float) -> bool:
        return sum(_highest_unruled(edges, logs, level) for edges, logs in tables) > total

    low, high = 0.0, _MOST
    if not is_shown(low):
        return 0.0
    if is_shown(high):
        return high
    while high - low > _CLOSE:
        middle = (low + high) / 2
        low, high = (middle, high) if is_shown(middle) else (low, middle)
    return low - math.log(len(samples))


def lower_mean(sample: WeightedSample, level: float) -> float:
    """Return the largest mean that is ruled out as too small, which the true one is above.

    ``level`` is the logarithm of the evidence that rules a mean out.
    """
    low, high = sample.span
    if low == high:
        return low
    edges, logs = _table(sample)
    for _ in range(_ZOOMS):
        place = int(np.searchsorted(-logs, -level, side="right")) - 1  # the last that is ruled out
        if place < 0:
            return low
        if place == edges.size - 1:
            break
        edges = np.linspace(edges[place], edges[place + 1], _POINTS)
        logs = np.minimum.accumulate(log_wealth(sample, edges))
    return float(edges[max(int(np.searchsorted(-logs, -level, side="right")) - 1, 0)])


def unruled_pairs(one: WeightedSample, other: WeightedSample, level: float) -> tuple[FloatArray, FloatArray]:
    """Return pairs of which every pair of means that is not ruled out is above one, in both.

    ``level`` is the logarithm of the evidence that rules a pair out.
    """
    (edges, logs), (others, other_logs) = _table(one), _table(other)
    needed = level - logs[1:]
    places = np.searchsorted(-other_logs, -needed, side="right")  # as many of the others have that evidence
    is_kept = places < others.size
    return edges[:-1][is_kept], others[np.maximum(places[is_kept] - 1, 0)]


def _highest_unruled(edges: FloatArray, logs: FloatArray, level: float) -> float:
    """Return the largest mean of a table that is ruled out, the low end where none is."""
    place = int(np.searchsorted(-logs, -level, side="right"))
    return float(edges[max(place - 1, 0)])


def _table(sample: WeightedSample) -> tuple[FloatArray, FloatArray]:
    """Return means in rising order, and the falling logarithms of the evidence that the mean is above each."""
    low, high = sample.span
    edges = _edges([_locate(sample)], low, high)
    return edges, np.minimum.accumulate(log_wealth(sample, edges))  # they fall but for rounding


def _locate(sample: WeightedSample) -> _Located:
    totals = sample.weights * sample.counts
    whole, mean = float(totals.sum()), mean_of(sample)
    if not whole > 0:
        return _Located((sample.span[0] + sample.span[1]) / 2, sample.span[1] - sample.span[0])
    masses, width = sample.weights * totals, sample.span[1] - sample.span[0]
    spread = float(masses @ (sample.values - mean) ** 2 + width**2 * masses.sum() / max(whole, 1.0))
    return _Located(mean, math.sqrt(spread) / whole)


def _edges(places: Sequence[_Located], low: float, high: float) -> FloatArray:
    """Return means between two ends in rising order, many of them near the estimates."""
    near = [place.mean + place.error * _STEPS for place in places]
    return np.unique(np.clip(np.concatenate([np.linspace(low, high, _COARSE), *near]), low, high))
