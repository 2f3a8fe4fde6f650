"""Every threshold of every score: the places between the scores of a group where a rule may cut, and sums up to them.

Rows are sorted once for each model: by group, then by falling score. A rule says the positive class about the first
rows of each group, so whatever is linear in its answers is a running sum, looked up at the cuts of the rule. Scores
that may be one but for rounding go together: another batch or machine may compute them in another order.

Where rows may be deferred a rule has two cuts in each group: it says the positive class up to the first, defers up to
the second, and says the negative class about the rest. Whatever is linear in its answers is then a running sum at the
first cut plus another one at the second, so each cut has two numbers: as an upper edge, and, behind all of those, as a
lower edge.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from counterpoise._base.types import BoolArray, FloatArray, IntArray
from counterpoise.mixtures.scores import _kernels

_NEAR = 2.0**-40  # part of a score by which it may differ by rounding, some thousand times that of a float ...
_NOISE = 2.0**-50  # ... and part of the usual score, which is left where a sum of such terms cancels out
_CHAIN = 16.0  # times as much: neighbours that are near each other all the way, but span more, are data and not noise
_LEAST_EXPONENT, _N_EXPONENTS = -1080, 2160  # of floats, with room


class Cuts(NamedTuple):
    """The cuts of all models, numbered through: by model, then by group, then by falling threshold.

    The first cut of a group is above all its scores, so that nobody in it is called positive, the last below all.
    """

    places: tuple[IntArray, ...]  # of each model: the first cut of a row's group at which the row is called positive
    thresholds: FloatArray  # (n_cuts,)
    highest_below: FloatArray  # (n_cuts,): the highest score that is not called positive at a cut; -inf at the last
    starts: IntArray  # (n_models, n_groups + 1): where the cuts of a group begin, and where those of the last end
    defers: bool = False  # whether rules have two edges in each group, between which they defer

    @property
    def n_models(self) -> int:
        """Return the number of scores."""
        return len(self.starts)

    @property
    def n_groups(self) -> int:
        """Return the number of groups."""
        return int(self.starts.shape[1]) - 1

    @property
    def n_cuts(self) -> int:
        """Return the number of cuts."""
        return self.thresholds.size

    @property
    def n_edges(self) -> int:
        """Return how many numbers rules are made of: one for each cut, or two."""
        return self.n_cuts * (1 + self.defers)

    def edges(self, model: int) -> list[IntArray]:
        """Return the edges that rules of a model may have: in each group, then the lower ones in each."""
        upper = [np.arange(first, last) for first, last in pairwise(self.starts[model].tolist())]
        return upper + [one + self.n_cuts for one in upper] if self.defers else upper

    def levels(self, edges: IntArray) -> FloatArray:
        """Return the thresholds of edges."""
        return np.asarray(self.thresholds[edges % self.n_cuts])

    def sums(self, rows: IntArray | slice, amounts: FloatArray) -> FloatArray:
        """Return for each cut the total amount of some rows that are called positive there."""
        totals = np.concatenate(
            [
                np.bincount(places[rows] - start, amounts, end - start)
                for places, start, end in zip(self.places, self.starts[:, 0], self.starts[:, -1], strict=True)
            ]
        )
        return self.cumulated(totals.astype(np.float64, copy=False))  # of no rows numpy counts in whole numbers

    def cumulated(self, totals: FloatArray) -> FloatArray:
        """Return running sums over the cuts of each group."""
        _kernels.cumulate(totals, self.flat_starts)
        return totals

    @property
    def flat_starts(self) -> IntArray:
        """Return where the cuts of each group of each model begin, and where the last end."""
        return np.append(self.starts[:, :-1].ravel(), self.starts[-1, -1])

    def at(self, model: int, uppers: FloatArray, lowers: FloatArray | None = None) -> IntArray:
        """Return the rule with the edges at thresholds; without lower ones it defers nothing."""
        first = self._at(model, uppers)
        if not self.defers:
            return first
        second = first if lowers is None else np.maximum(first, self._at(model, lowers))
        return np.append(first, self.n_cuts + second)

    def _at(self, model: int, thresholds: FloatArray) -> IntArray:
        """Return for each group the cut at which the scores above a threshold are called positive, and no others."""
        found = []
        for start, end, threshold in zip(self.starts[model, :-1], self.starts[model, 1:], thresholds, strict=True):
            falling = -self.highest_below[start:end]
            found.append(start + min(int(np.searchsorted(falling, -threshold)), end - start - 1))
        return np.array(found)


def exponent_counts(scores: FloatArray) -> IntArray:
    """Return how many scores there are of each binary order, zeros aside; counts of several parts are added."""
    some = scores[scores != 0]
    return np.bincount(np.frexp(some)[1] - _LEAST_EXPONENT, minlength=_N_EXPONENTS)


def noise_of(counts: IntArray) -> float:
    """Return what rounding may leave of a score that is zero, from the counts of its binary orders.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.mixtures.scores.cuts import exponent_counts, noise_of
    >>> scores = np.array([0.5, 0.75, 0.0])
    >>> noise_of(exponent_counts(scores)) == 2.0**-50, noise_of(exponent_counts(scores * 4)) == 2.0**-48
    (True, True)
    """
    median = int(np.searchsorted(np.cumsum(counts), (counts.sum() + 1) // 2)) + _LEAST_EXPONENT
    return float(np.ldexp(_NOISE, median)) if counts.any() else 0.0


def rounding_room(lower: FloatArray, upper: FloatArray, noise: float) -> FloatArray:
    """Return by how much two scores may differ by rounding alone; ``noise`` is that of a score of zero."""
    return np.maximum(noise, _NEAR * np.maximum(np.abs(lower), np.abs(upper)))


def block_starts(falling: FloatArray, noise: float) -> BoolArray:
    """Return where blocks of scores that go together begin among falling scores.

    Neighbours that may be one but for rounding go together. Where they do so all the way along a chain that is longer
    than rounding can be, only equal scores do.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.mixtures.scores.cuts import block_starts
    >>> block_starts(np.array([0.9, 0.3, 0.3 - 1e-15, 3e-12, 2e-12]), noise=1e-16).tolist()
    [True, True, False, True, True]
    """
    begins = np.ones(falling.size, dtype=np.bool_)
    upper, lower = falling[:-1], falling[1:]
    with np.errstate(over="ignore"):  # infinitely far apart
        begins[1:] = upper - lower > rounding_room(lower, upper, noise)
        firsts = np.flatnonzero(begins)
        lasts = np.append(firsts[1:], falling.size) - 1
        tops, ends = falling[firsts], falling[lasts]
        is_long = tops - ends > _CHAIN * rounding_room(ends, tops, noise)
    is_long &= lasts > firsts
    for first, last in zip(firsts[is_long].tolist(), lasts[is_long].tolist(), strict=True):
        begins[first + 1 : last + 1] = lower[first:last] < upper[first:last]
    return begins


def find_cuts(scores: FloatArray, groups: IntArray, n_groups: int, *, defers: bool = False) -> Cuts:
    """Sort the rows by each score.

    Parameters
    ----------
    scores : array of shape (n_rows, n_models)
        Finite; the higher, the more likely positive.
    groups : array of shape (n_rows,)
        The group of each row, from 0; a group may be empty.
    n_groups : int
    defers : bool, default=False
        Whether rules may defer.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.mixtures.scores.cuts import find_cuts
    >>> cuts = find_cuts(np.array([[0.2], [0.9], [0.2], [0.6]]), np.array([0, 0, 0, 0]), 1)
    >>> cuts.thresholds.tolist(), cuts.places[0].tolist()
    ([inf, 0.75, 0.4, -inf], [3, 1, 3, 2])
    >>> cuts.sums(slice(None), np.ones(4)).tolist()
    [0.0, 1.0, 2.0, 4.0]
    """
    found = [_cuts_of(column, groups, n_groups) for column in scores.T]
    offsets = np.cumsum([0, *(one.n_cuts for one in found)]).tolist()
    places = tuple(one.places[0] + offset for one, offset in zip(found, offsets, strict=False))
    starts = np.concatenate([one.starts + offset for one, offset in zip(found, offsets, strict=False)])
    thresholds, below = (np.concatenate(parts) for parts in zip(*(one[1:3] for one in found), strict=True))
    return Cuts(places, thresholds, below, starts, defers)


def _cuts_of(scores: FloatArray, groups: IntArray, n_groups: int) -> Cuts:
    """Return the cuts of one score."""
    order = np.argsort(-scores)
    if n_groups > 1:
        codes = groups.astype(np.min_scalar_type(n_groups), copy=False)
        order = order[np.argsort(codes[order], kind="stable")]
    falling, grouped = scores[order], groups[order]
    noise = noise_of(exponent_counts(scores))
    edges = np.flatnonzero(np.diff(grouped)) + 1
    begins = np.concatenate([block_starts(part, noise) for part in np.split(falling, edges)])
    places = np.empty(order.size, dtype=np.int64)
    places[order] = np.cumsum(begins) + grouped  # each group has one cut more than blocks of rows: the first
    n_blocks = np.bincount(grouped[begins], minlength=n_groups)
    starts = np.concatenate([[0], np.cumsum(n_blocks + 1)])
    return Cuts((places,), *_thresholds(falling, begins, starts), starts[None])


def _thresholds(falling: FloatArray, begins: BoolArray, starts: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return a threshold in the middle of the gap behind each block of rows, and the highest score behind it.

    Thresholds are infinite at the ends of a group.
    """
    firsts = np.flatnonzero(begins)
    lowest = falling[np.append(firsts[1:], falling.size) - 1]
    thresholds = np.full(starts[-1], np.inf)
    blocks = np.delete(np.arange(starts[-1]), starts[:-1])  # the cuts that come behind a block
    highest_below = np.append(falling[firsts[1:]], 0.0)  # of the next block; nonsense at the end of a group
    middle = lowest / 2 + highest_below / 2  # each half by itself: their sum may be beyond the largest number
    thresholds[blocks] = np.where(middle < lowest, middle, highest_below)  # neighbours have no number between them
    thresholds[starts[1:] - 1] = -np.inf
    thresholds[starts[:-1][np.diff(starts) == 1]] = np.inf  # of an empty group, whose one cut is both
    below = np.full(starts[-1], -np.inf)
    below[np.delete(np.arange(starts[-1]), starts[1:] - 1)] = falling[firsts]  # the cuts that come before a block
    return thresholds, below
