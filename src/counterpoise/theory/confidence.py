"""Bounds on a population's rates from a sample of it: exact for shares, by betting for weighted means.

The rows are independent draws from the population, and what is measured on them (a classifier) was fixed before they
were seen. Every end of an interval here is a bound by itself: the low end is too high, or the high end too low, with
probability at most ``1 - confidence``; both are right together with probability at least ``2 * confidence - 1``.

Bounds on weighted means hold for every population whose weights have a known limit. A row has a value
v between two known ends and a weight w from 0 to 1, its part of the largest weight there can be.
Is the population's weighted mean ``E[w v] / E[w]`` as large as r? Then ``w (r - v)`` is not
positive on average, and a gambler who bets on it has, starting from 1, with a stake s fixed before the rows are seen,

    wealth = product over rows of (1 + s w (r - v)),

whose expectation is at most 1. So it reaches ``1 / risk`` with probability ``risk`` at most (Markov), and those r at
which it does can be ruled out. The mean over several stakes is such a wealth too, and comes near to that of the best of
them. This is the test of Waudby-Smith and Ramdas 2024 (Estimating means of bounded random variables by betting), with
stakes that do not depend on earlier rows: so the order of the rows plays no role, and sums over parts of the rows are
enough.

In units of the span, with ``t`` the gap between r and the high end and ``x`` that between v and the high end, ``r - v``
is ``x - t``. The stakes are ``k t**-a``, for several k in (0, 1] and a = 0, 1/2 and 1: no factor is negative, as
``k w t**(1 - a) <= 1``, and every factor falls in t, as ``x t**-a - t**(1 - a)`` does. So the wealth grows with r, what
is ruled out is all above some r, and bisection computes that r. A stake of 0 is among them: no wealth is next to 0.

Empirical Bernstein bounds (Maurer and Pontil 2009) hold under the same conditions and need 2 to 3 times the rows.
"""

import math
from functools import cache
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import scipy  # whose parts load when they are first used

from counterpoise._base.checks import (
    EQUAL,
    check_confidence,
    check_count,
    check_largest_weight,
    check_sample_weight,
    check_vector,
)
from counterpoise._base.types import ArrayLike, FloatArray, IntArray

_ACCURACY = 1e-11  # of a bound, in units of the span; it is moved out by so much
_STEEP = 10.0  # logarithms, beyond which it does not matter by how much a wealth is too large or too small
_POWERS = (0.0, 0.5, 1.0)  # of the gap in the stakes: with 0 alone, means near the high end would be bounded badly
_RATIO = 1.5  # of one stake to the next: the best one is then missed by a fifth, which costs little
_LEVELS = 64  # of weights: more cost more and give less than 1 %
_LIGHTEST = 1e-4  # part of the heaviest row, below which weights are distinguished only from zero
_CELLS = 256  # in which each of two means is looked for
_FLOOR = 1e-3  # below which no wealth falls: there are fewer than 1000 stakes, one of them 0
_NO_GAP = 1e-300  # part of the span, in place of zero, which has no reciprocal


class WeightedSample(NamedTuple):
    """Values, the weights that go with them, and how many rows have both."""

    values: FloatArray
    weights: FloatArray  # parts of the largest weight there can be
    counts: FloatArray
    span: tuple[float, float]  # between which all values of the population lie

    def negated(self) -> "WeightedSample":
        """Return the sample with the values' signs turned."""
        return self._replace(values=-self.values, span=(-self.span[1], -self.span[0]))


def weight_levels(weights: FloatArray) -> FloatArray:
    """Return few weights between which all others lie, zero among them; all there are where they are few."""
    distinct = np.unique(np.append(weights, 0.0))
    if distinct.size <= _LEVELS:
        return distinct
    most = float(distinct[-1])
    return np.append(0.0, np.geomspace(max(float(distinct[1]), _LIGHTEST * most), most, _LEVELS - 1))


def value_marks(values: FloatArray, span: tuple[float, float]) -> FloatArray:
    """Return few values between which all others lie, the ends of the span among them; all there are if few.

    They are closer together near zero, as most amounts are far below the largest there can be.
    """
    distinct = np.unique(np.append(values, span))
    if distinct.size <= 2 * _LEVELS:
        return distinct
    return spaced_marks(span, 2 * _LEVELS)


def spaced_marks(span: tuple[float, float], n_sizes: int) -> FloatArray:
    """Return zero, the ends of a span and so many sizes of either sign inside it."""
    most = max(abs(span[0]), abs(span[1]))
    sizes = np.geomspace(_LIGHTEST * most, most, n_sizes)
    marks = np.concatenate([-sizes, [0.0], sizes, span])
    return np.unique(marks[(marks >= span[0]) & (marks <= span[1])])


def spread_over_levels(
    weights: FloatArray, kinds: IntArray, n_kinds: int, levels: FloatArray, parts: FloatArray | float = 1.0
) -> FloatArray:
    """Return how many rows, or parts of rows, there are of each kind and level, as shape (n_kinds, n_levels).

    A row between two levels counts in part at both, so that its weight is kept. The logarithm of the wealth is concave
    in a row's weight, and in its value: so it can only fall by this, and a bound can only move out.
    """
    below, above = locate_between(weights, levels)
    cells, size = kinds * levels.size + below, n_kinds * levels.size
    numbers = np.bincount(cells, parts * (1.0 - above), size) + np.bincount(cells + 1, parts * above, size)
    return np.asarray(numbers.reshape(n_kinds, levels.size))


def locate_between(points: FloatArray, marks: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the mark below each point, never the last one, and how far on the way to the next the point is."""
    below = np.clip(np.searchsorted(marks, points, side="right") - 1, 0, marks.size - 2)
    return below, np.asarray((points - marks[below]) / np.diff(marks)[below])


def few_cells(
    values: FloatArray, weights: FloatArray, span: tuple[float, float], counts: FloatArray | None = None
) -> WeightedSample:
    """Return rows of any values and weights as few values at few weights; ``spread_over_levels`` explains why.

    ``counts`` are how many rows each stands for. Default: itself.
    """
    marks, levels = np.unique(np.append(values, span)), weight_levels(weights)
    if marks.size > _LEVELS:
        marks = np.linspace(*span, _LEVELS)
    below, above = locate_between(values, marks)
    kinds, parts = np.append(below, below + 1), np.append(1.0 - above, above)
    parts = parts if counts is None else parts * np.tile(counts, 2)
    numbers = spread_over_levels(np.tile(weights, 2), kinds, marks.size, levels, parts)
    return WeightedSample(np.repeat(marks, levels.size), np.tile(levels, marks.size), numbers.ravel(), span)


def upper_weighted_mean(sample: WeightedSample, risk: float) -> float:
    """Return the upper bound on the population's weighted mean, which fails with probability ``risk`` at most."""
    return _Wealth.of(sample, risk).least(-math.log(risk))


def is_below(sample: WeightedSample, mean: float, risk: float) -> bool:
    """Return whether the upper bound on the weighted mean is at most ``mean``."""
    if not sample.span[0] < mean < sample.span[1]:
        return mean >= sample.span[1]
    return bool(_Wealth.of(sample, risk).logs(np.array([mean]))[0] >= -math.log(risk))


def upper_weighted_sum(one: WeightedSample, other: WeightedSample, risk: float) -> float:
    """Return an upper bound on the sum of the weighted means of two independent samples.

    The product of two independent wealths has an expectation of at most 1 too. So a pair of means is ruled out where
    the product reaches ``1 / risk``, and a sum where all its pairs are. Each mean is looked for in cells: in a cell its
    wealth is at least that at the low end, so the other mean is below the first edge that rules the rest out.

    Two bounds for half of the risk each would also do, and are up to a half wider.
    """
    known = [_edges(sample, risk) for sample in (one, other)]
    (edges, logs), (others, other_logs) = sorted(known, key=lambda pair: -float(np.ptp(pair[0][1:])))
    places = np.searchsorted(other_logs, -math.log(risk) - logs[:-1])
    return float((edges[1:] + others[np.minimum(places, others.size - 1)]).max())


def _edges(sample: WeightedSample, risk: float) -> tuple[FloatArray, FloatArray]:
    """Return edges of cells, in one of which the mean is, and the logarithm of the wealth at each.

    They go from the low end of the span to where the wealth is enough whatever that of another sample.
    """
    wealth, level = _Wealth.of(sample, risk), -math.log(risk)
    least = -_Wealth.of(sample.negated(), risk).least(level)
    most = wealth.least(level - math.log(_FLOOR))
    edges = np.append(sample.span[0], np.linspace(least, most, _CELLS))
    return edges, np.maximum.accumulate(wealth.logs(edges))  # they grow but for rounding


class _Wealth(NamedTuple):
    """The wealth of all stakes, as a function of the mean that is bet against."""

    sample: WeightedSample  # without cells that no row is in: 0 rows at a wealth of 0 are no number
    stakes: FloatArray

    @classmethod
    def of(cls, sample: WeightedSample, risk: float) -> "_Wealth":
        """Return the wealth with stakes from the best one for the largest variance there can be up to the largest."""
        occurs = sample.counts > 0
        parts = {name: getattr(sample, name)[occurs] for name in ("values", "weights", "counts")}
        least = min(math.sqrt(8.0 * (1.0 - math.log(risk)) / max(sample.counts.sum(), 1.0)), 1.0 / _RATIO)
        n_stakes = 1 + math.ceil(-math.log(least) / math.log(_RATIO))
        return cls(sample._replace(**parts), np.geomspace(least, 1.0, n_stakes))

    def logs(self, means: FloatArray) -> FloatArray:
        """Return the logarithm of the wealth at each of the means."""
        low, high = self.sample.span
        gaps = np.maximum((high - means) / (high - low), _NO_GAP)[:, None]
        won = (high - self.sample.values) / (high - low) - gaps  # (n_means, n_cells), or lost
        stakes = np.concatenate([self.stakes * gaps**-power for power in _POWERS], axis=1)
        changes = stakes[:, :, None] * (self.sample.weights * won)[:, None, :]
        with np.errstate(divide="ignore"):  # all may be lost
            logs = np.log1p(np.maximum(changes, -1.0)) @ self.sample.counts
        total = np.logaddexp.reduce(logs, axis=1, initial=0.0)  # with a stake of 0
        return np.asarray(total - math.log(logs.shape[1] + 1.0))

    def least(self, level: float) -> float:
        """Return the least mean at which the wealth has that logarithm; the high end where there is none."""
        low, high = self.sample.span

        def ahead(part: float) -> float:  # clipped, as secants of what grows without bound are of no use
            return float(np.clip(self.logs(np.array([low + part * (high - low)]))[0] - level, -_STEEP, _STEEP))

        if ahead(1.0) < 0:
            return high
        part = float(scipy.optimize.brentq(ahead, 0.0, 1.0, xtol=_ACCURACY)) + _ACCURACY
        return min(low + part * (high - low), high)


__all__ = ["Bounds", "binomial_bounds", "rows_needed", "weighted_mean_bounds"]

_STEPS = 2**16  # in the interval in which the end of a sum of two shares lies: its margin is then known to four digits
_LEAST_TAIL = 1e-300  # whose normal quantile is a number
_GUARD = 0.05  # part of the risk for the interval in which one of two shares is looked for
_GRID_CELLS, _CHUNKS = 32, 160  # of that interval, and of the counts it makes likely: more cost more and give little
_NEVER = 5.0  # square roots of the number of trials, by which a count differs with probability 2e-22 (Hoeffding)
_ROUNDING = 1e-12  # part of the largest sum of two shares, by which two sums may differ and be one
_FAR = 5.5  # standard deviations, beyond which few counts lie; they are all counted against the bound


class Bounds(NamedTuple):
    """The ends of an interval, each of which holds with the requested confidence."""

    low: float
    high: float


def binomial_bounds(successes: Any, n_trials: int, *, confidence: float) -> Bounds:
    """Return the exact bounds of Clopper and Pearson on a probability.

    The high end is the largest p under which so few successes, or fewer, have probability ``1 - confidence`` or more.
    Whatever the true p, it is exceeded with probability at most ``1 - confidence``: the counts under which the high
    end falls below p are the lowest ones, and their probability under p is less than that.

    Parameters
    ----------
    successes : int from 0 to n_trials
    n_trials : int >= 1
    confidence : float in (0, 1)
        Of each end by itself. A two-sided interval of 95 % has ends of 97.5 %.

    Returns
    -------
    Bounds
        The ends ``low`` and ``high``.

    Examples
    --------
    Nobody of 59 was harmed; so with confidence 0.95 at most one in twenty is:

    >>> from counterpoise.theory.confidence import binomial_bounds
    >>> round(binomial_bounds(0, 59, confidence=0.95).high, 4)
    0.0495
    """
    n_trials, risk = check_count(n_trials, "n_trials"), 1.0 - check_confidence(confidence)
    if isinstance(successes, bool) or not isinstance(successes, Real):
        raise TypeError(f"successes must be a whole number, how many of the trials succeeded; got {successes!r}.")
    count = float(successes)
    if not 0 <= count <= n_trials:
        raise ValueError(f"successes must lie between 0 and the {n_trials} trials; got {successes!r}.")
    if not count.is_integer():
        raise ValueError(
            f"successes must be a whole number; got {successes!r}. For weighted rows use weighted_mean_bounds."
        )
    return Bounds(1.0 - upper_share(n_trials - count, n_trials, risk), upper_share(count, n_trials, risk))


def rows_needed(share: float, *, confidence: float) -> int:
    """Return how many rows without a single failure show that at most that share fails.

    With fewer rows no outcome can show it. It is the least n with ``(1 - share) ** n <= 1 - confidence``.

    Parameters
    ----------
    share : float in (0, 1)
        The share of failures to be shown.
    confidence : float in (0, 1)

    Returns
    -------
    int

    Examples
    --------
    >>> from counterpoise.theory.confidence import rows_needed
    >>> rows_needed(0.05, confidence=0.95), rows_needed(0.001, confidence=0.95)
    (59, 2995)
    """
    allowed = check_confidence(share, name="share")
    return math.ceil(math.log(1.0 - check_confidence(confidence)) / math.log1p(-allowed))


def weighted_mean_bounds(
    values: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    confidence: float,
    largest_weight: float | None = None,
    span: tuple[float, float] = (0.0, 1.0),
) -> Bounds:
    """Return bounds on the population's weighted mean ``E[weight * value] / E[weight]``.

    They hold for every population whose values lie in the span and whose weights are at most ``largest_weight``: also
    where a few heavy rows, none of which was drawn, decide about the mean.

    Parameters
    ----------
    values : array of shape (n_samples,)
    sample_weight : array of shape (n_samples,), optional
        Non-negative.
    confidence : float in (0, 1)
        Of each end by itself.
    largest_weight : float, optional
        The largest weight that a row of the population can have, in the units of ``sample_weight``, known beforehand.
        Without it all rows must weigh the same.
    span : pair of float
        Between which all values of the population lie, known beforehand.

    Returns
    -------
    Bounds
        The ends ``low`` and ``high``; how they are computed is in ``counterpoise.theory.confidence``.

    Examples
    --------
    >>> from counterpoise.theory.confidence import weighted_mean_bounds
    >>> values, weights = [0, 1, 1, 1] * 250, [2, 1, 1, 1] * 250
    >>> low, high = weighted_mean_bounds(values, weights, confidence=0.95, largest_weight=2)
    >>> round(low, 3), round(high, 3)  # around 0.6
    (0.548, 0.653)
    >>> low, high = weighted_mean_bounds(values, weights, confidence=0.95, largest_weight=50)
    >>> round(low, 3), round(high, 3)
    (0.489, 0.682)
    """
    n_samples, risk = np.size(values), 1.0 - check_confidence(confidence)
    if n_samples == 0:
        raise ValueError("values must hold at least one row; got none.")
    points = check_vector(values, "values", n_samples, "one for each row")
    if np.shape(span) != (2,) or not np.isfinite(np.asarray(span, dtype=np.float64)).all():
        raise ValueError(f"span must be the least and the largest value that there can be, as (0, 1); got {span!r}.")
    if math.isinf(span[1] - span[0]):
        raise ValueError(f"span must be narrower than 1.8e308; got {span!r}. Divide values and span by one number.")
    if not span[0] <= points.min() <= points.max() <= span[1]:
        raise ValueError(f"values must lie in the span {span}; got some from {points.min()} to {points.max()}.")
    if span[0] == span[1]:
        return Bounds(*span)
    sample = few_cells(points, _weights(sample_weight, n_samples, largest_weight), span)
    return Bounds(-upper_weighted_mean(sample.negated(), risk), upper_weighted_mean(sample, risk))


def _weights(sample_weight: ArrayLike | None, n_samples: int, largest_weight: float | None) -> FloatArray:
    """Return the weights as parts of the largest there can be."""
    weights = check_sample_weight(sample_weight, n_samples)
    if largest_weight is not None:
        limit, heaviest = check_largest_weight(largest_weight, sample_weight)
        return np.asarray(weights) * (heaviest / limit)
    if weights is not None and weights.min() < EQUAL:
        raise ValueError(
            "Pass largest_weight, because the weights differ: rows that were not drawn may weigh more than these. "
            "It is the largest weight that a row of the population can have."
        )
    return np.ones(n_samples)


def upper_share(successes: float, n_trials: float, risk: float) -> float:
    """Return the exact upper bound on a probability; a lower one is 1 less that of the failures."""
    if successes >= n_trials:
        return 1.0
    return float(scipy.special.betainccinv(successes + 1.0, n_trials - successes, risk))


def upper_bounded_mean(mean: float, n_rows: float, risk: float) -> float:
    """Return an upper bound on the mean of any quantity from 0 to 1, given its mean on rows.

    Bentkus 2004: a sum of independent such quantities is as small as s with a probability of at most e times that of
    as few successes as s, rounded up, in binomial trials of the same mean. So it is the exact bound on a share at the
    risk divided by e.
    """
    return upper_share(math.ceil(mean * n_rows - _ROUNDING), n_rows, risk / math.e)


def upper_mean(values: FloatArray, counts: FloatArray, risk: float) -> float:
    """Return an upper bound on the mean of a quantity with few possible values, by exact bounds on shares.

    Two values: one share, one exact bound. A negative value, zero and a positive one: see ``_upper_signed``.
    Otherwise, with possible values ``v_0 < ... < v_m``, the mean is ``v_0 + sum of (v_j - v_{j-1}) P(value >= v_j)``,
    and each of the m shares gets an m-th of the risk: by the union bound they are all right but for the whole risk.

    Parameters
    ----------
    values : array of shape (n_kinds,)
        All that are possible, known beforehand.
    counts : array of shape (n_kinds,)
        How many rows have each value.
    risk : float in (0, 1)
    """
    levels, places = np.unique(values, return_inverse=True)
    by_level = np.bincount(places, counts).astype(np.float64)
    if levels.size == 3 and levels[0] < 0 == levels[1]:  # noqa: PLR2004 - and so the third is positive
        return _upper_signed(levels, by_level, risk)
    n_rows, n_steps = counts.sum(), levels.size - 1
    tails = np.cumsum(by_level[::-1])[::-1][1:].tolist()
    bounds = [upper_share(count, n_rows, risk / n_steps) for count in tails]
    return float(levels[0] + np.diff(levels) @ np.array(bounds))


def _upper_signed(levels: FloatArray, by_level: FloatArray, risk: float) -> float:
    """Bound ``q * v(p)``, with q the share of rows that are not zero and p the share of positive ones among those.

    ``v(p) = p * positive + (1 - p) * negative``. Given their number the rows that are not zero are positive with
    probability p independently, so both shares have exact bounds, for half of the risk each. Let p be at most its
    bound P. Where ``v(P) < 0`` the result is wrong only if q is below its lower bound; where ``v(P) >= 0`` only if
    ``v(p) > 0`` and q is above its upper bound. The sign of the true ``v(p)`` is fixed and in the first case negative,
    so one of these two events alone can do harm, and one-sided bounds at half of the risk are enough.
    """
    negative, zero, positive = by_level.tolist()
    n_rows, n_moves = negative + zero + positive, negative + positive
    most = upper_share(positive, n_moves, risk / 2) if n_moves else 1.0
    change = most * float(levels[2]) + (1.0 - most) * float(levels[0])
    if change < 0:
        return change * (1.0 - upper_share(zero, n_rows, risk / 2))
    return change * upper_share(n_moves, n_rows, risk / 2)


class ScaledShare(NamedTuple):
    """A share that counts with a positive factor, and the sample it was seen on."""

    hits: float
    trials: float
    factor: float


def upper_sum_of_two(one: ScaledShare, other: ScaledShare, risk: float) -> float:
    """Return an upper bound on ``a p + b q`` for two shares p and q seen on independent samples.

    Let T be the same sum of the shares seen, and t its value. If ``a p + b q = theta`` then T is at most t with
    probability ``F(p, q)``, so rejecting every theta whose largest F over such p and q is at most the risk errs
    with that risk at most. Following Berger and Boos 1994, p is looked for in an exact interval of its own only, which
    takes ``_GUARD`` of the risk. F falls in p and in q, as T grows with either; so on a cell ``[l, u]`` of that
    interval F is at most its value at p = l and the q that belongs to u, and the largest over all cells is a bound, not
    a guess. It falls in theta too, so bisection finds the end. T's distribution is summed over chunks of the first
    count, each with the probability of its most favourable member.

    Two exact bounds for half of the risk each would also do, and are half as wide again.
    """
    if one.trials < other.trials:  # the larger sample has the narrower interval
        one, other = other, one
    guard = risk * _GUARD / 2
    least = 1.0 - upper_share(one.trials - one.hits, one.trials, guard)
    edges = np.linspace(least, upper_share(one.hits, one.trials, guard), _GRID_CELLS + 1)
    most = one.factor + other.factor
    observation = one.factor * one.hits / one.trials + other.factor * other.hits / other.trials
    # The distribution of the first count at the low end of each cell, shape (n_cells, n_points), and for each chunk of
    # it the largest second count with which the sum is as small as seen: ties count, rounding or not.
    points = _chunks(edges, one.trials)
    reached = _cdf(points, one.trials, edges[:-1, None])
    left = (observation - one.factor * (points[:-1] + 1.0) / one.trials) / other.factor
    room = np.floor(other.trials * (left + _ROUNDING * most / other.factor))

    level = float(scipy.special.ndtri(risk * (1.0 - _GUARD)))

    @cache
    def excess(theta: float) -> float:
        """Bound the probability of a sum as small as seen, over all shares whose sum is theta: theta is rejected at 0.

        It is compared with the risk as normal quantiles, which are nearly straight in theta.
        """
        low, high = ((theta - one.factor * ends) / other.factor for ends in (edges[1:], edges[:-1]))
        possible = (low <= 1.0) & (high >= 0.0)
        own = reached[possible]
        tails = _cdf(room, other.trials, np.maximum(low[possible, None], 0.0))
        outside = own[:, 0] + 1.0 - own[:, -1]
        largest = (outside + (np.diff(own, axis=1) * tails).sum(axis=1)).max(initial=0.0)
        return float(scipy.special.ndtri(np.clip(largest, _LEAST_TAIL, 1.0 - _ROUNDING))) - level

    low, high = observation, sum(step.factor * upper_share(step.hits, step.trials, risk / 2) for step in (one, other))
    while high < most and excess(high) > 0:  # rare: two separate bounds are nearly always farther out
        low, high = high, min(2.0 * high - observation, most)
    step = (high - low) / _STEPS
    if excess(low) <= 0 or excess(high) > 0:
        return low if excess(low) <= 0 else high
    end = float(scipy.optimize.brentq(excess, low, high, xtol=step))
    while excess(end) > 0:  # the end that is found may be on either side
        end += step
    return min(end, high)


def _chunks(edges: FloatArray, n_trials: float) -> FloatArray:
    """Return counts between which, but for a negligible probability, those of a share among the edges lie."""
    middle = float(np.clip(0.5, edges[0], edges[-1]))  # the share of the largest variance
    spread = _FAR * math.sqrt(n_trials * middle * (1.0 - middle)) + _FAR
    low, high = max(n_trials * edges[0] - spread, -1.0), min(n_trials * edges[-1] + spread, n_trials)
    return np.unique(np.round(np.linspace(math.floor(low), math.ceil(high), _CHUNKS + 1)))


def _cdf(counts: FloatArray, n_trials: float, share: FloatArray) -> FloatArray:
    """Return the probability of at most so many successes."""
    away = counts - n_trials * share
    is_near = np.abs(away) < _NEVER * math.sqrt(n_trials)  # exact values far out would cost much and say nothing
    probabilities = np.where(away < 0, 0.0, 1.0)
    near, shares = (np.broadcast_to(one, probabilities.shape)[is_near] for one in (counts, share))
    inside = np.clip(near, 0.0, n_trials - 1.0)
    exact = scipy.special.betainc(n_trials - inside, inside + 1.0, 1.0 - shares)
    probabilities[is_near] = np.where(near < 0, 0.0, np.where(near >= n_trials, 1.0, exact))
    return probabilities
