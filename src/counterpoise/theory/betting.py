"""Upper bounds on weighted means, valid for every population whose weights have a known limit.

A row has a value v between two known ends and a weight w from 0 to 1, its part of the largest weight there can be. The
rows are independent draws. Is the population's weighted mean ``E[w v] / E[w]`` as large as r? Then ``w (r - v)`` is not
positive on average, and whoever bets on it has, starting from 1 and with a stake s fixed before the rows are seen,

    wealth = product over rows of (1 + s w (r - v)),

whose expectation is at most 1. So it reaches ``1 / risk`` with probability ``risk`` at most (Markov), and those r at
which it does can be ruled out. The mean over several stakes is such a wealth too, and comes near to that of the best of
them. This is the test of Waudby-Smith and Ramdas 2024 (Estimating means of bounded random variables by betting), with
stakes that do not depend on earlier rows: so the order of the rows plays no role, and sums over shards are enough.

In units of the span, with ``t`` the gap between r and the high end and ``x`` that between v and the high end, ``r - v``
is ``x - t``. The stakes are ``k t**-a``, for several k in (0, 1] and a = 0, 1/2 and 1: no factor is negative, as
``k w t**(1 - a) <= 1``, and every factor falls in t, as ``x t**-a - t**(1 - a)`` does. So the wealth grows with r, what
is ruled out is all above some r, and that r is found by bisection. A stake of 0 is among them: no wealth is next to 0.

Empirical Bernstein bounds (Maurer and Pontil 2009) hold under the same conditions and need 2 to 3 times the rows.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from counterpoise._base.types import FloatArray, IntArray

_ACCURACY = 1e-11  # of a bound, in units of the span; it is moved out by so much
_STEEP = 10.0  # logarithms, beyond which it does not matter by how much a wealth is too large or too small
_POWERS = (0.0, 0.5, 1.0)  # of the gap in the stakes: with 0 alone, means near the high end would be bounded badly
_RATIO = 1.5  # of one stake to the next: the best one is then missed by a fifth, which costs little
_LEVELS = 64  # of weights: more cost more and give less than 1 %
_LIGHTEST = 1e-4  # part of the heaviest row, below which weights are told apart only from zero
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
    found = np.unique(np.append(weights, 0.0))
    if found.size <= _LEVELS:
        return found
    most = float(found[-1])
    return np.append(0.0, np.geomspace(max(float(found[1]), _LIGHTEST * most), most, _LEVELS - 1))


def spread(
    weights: FloatArray, kinds: IntArray, n_kinds: int, levels: FloatArray, parts: FloatArray | float = 1.0
) -> FloatArray:
    """Return how many rows, or parts of rows, there are of each kind and level, as shape (n_kinds, n_levels).

    A row between two levels counts in part at both, so that its weight is kept. The logarithm of the wealth is concave
    in a row's weight, and in its value: so it can only fall by this, and a bound can only move out.
    """
    below, above = between(weights, levels)
    cells, size = kinds * levels.size + below, n_kinds * levels.size
    numbers = np.bincount(cells, parts * (1.0 - above), size) + np.bincount(cells + 1, parts * above, size)
    return np.asarray(numbers.reshape(n_kinds, levels.size))


def between(points: FloatArray, marks: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the mark below each point, never the last one, and how far on the way to the next the point is."""
    below = np.clip(np.searchsorted(marks, points, side="right") - 1, 0, marks.size - 2)
    return below, np.asarray((points - marks[below]) / np.diff(marks)[below])


def few_cells(
    values: FloatArray, weights: FloatArray, span: tuple[float, float], counts: FloatArray | None = None
) -> WeightedSample:
    """Return rows of any values and weights as few values at few weights; ``spread`` says why this is no loss.

    ``counts`` are how many rows each stands for. Default: itself.
    """
    marks, levels = np.unique(np.append(values, span)), weight_levels(weights)
    if marks.size > _LEVELS:
        marks = np.linspace(*span, _LEVELS)
    below, above = between(values, marks)
    kinds, parts = np.append(below, below + 1), np.append(1.0 - above, above)
    parts = parts if counts is None else parts * np.tile(counts, 2)
    numbers = spread(np.tile(weights, 2), kinds, marks.size, levels, parts)
    return WeightedSample(np.repeat(marks, levels.size), np.tile(levels, marks.size), numbers.ravel(), span)


def upper_weighted_mean(sample: WeightedSample, risk: float) -> float:
    """Return the upper bound on the population's weighted mean, which fails with probability ``risk`` at most."""
    return _Wealth.of(sample, risk).least(-math.log(risk))


def is_below(sample: WeightedSample, mean: float, risk: float) -> bool:
    """Tell whether the upper bound on the weighted mean is at most ``mean``."""
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
    (edges, logs), (others, other_logs) = sorted(known, key=lambda found: -float(np.ptp(found.edges[1:])))
    places = np.searchsorted(other_logs, -math.log(risk) - logs[:-1])
    return float((edges[1:] + others[np.minimum(places, others.size - 1)]).max())


class _Edges(NamedTuple):
    edges: FloatArray  # of cells, in one of which the mean is
    logs: FloatArray  # of the wealth there


def _edges(sample: WeightedSample, risk: float) -> _Edges:
    """Return cells from the low end of the span to where the wealth is enough whatever that of another sample."""
    wealth, level = _Wealth.of(sample, risk), -math.log(risk)
    least = -_Wealth.of(sample.negated(), risk).least(level)
    most = wealth.least(level - math.log(_FLOOR))
    edges = np.append(sample.span[0], np.linspace(least, most, _CELLS))
    return _Edges(edges, np.maximum.accumulate(wealth.logs(edges)))  # they grow but for rounding


class _Wealth(NamedTuple):
    """The wealth of all stakes, as a function of the mean that is bet against."""

    sample: WeightedSample  # without cells that no row is in: 0 rows at a wealth of 0 are no number
    stakes: FloatArray

    @classmethod
    def of(cls, sample: WeightedSample, risk: float) -> "_Wealth":
        """Return the wealth with stakes from the best one for the largest variance there can be up to the largest."""
        seen = sample.counts > 0
        parts = {name: getattr(sample, name)[seen] for name in ("values", "weights", "counts")}
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
        part = float(brentq(ahead, 0.0, 1.0, xtol=_ACCURACY)) + _ACCURACY
        return min(low + part * (high - low), high)
