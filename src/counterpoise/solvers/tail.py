"""The CVaR of ``losses @ mixture`` and its slope: one pass over the rows, as a map over shards.

What the shards hand back is small: a histogram of scores, a range, a vector with an entry for each model. The
decision where the tail begins is taken in one place. Ties at its edge share the remaining weight equally,
so the answer does not depend on the order of the rows.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import numpy as np

from counterpoise._base.types import AnyArray, ByteArray, FloatArray
from counterpoise.solvers import _kernels
from counterpoise.solvers.bundle import Proof
from counterpoise.solvers.rows import Rows, load_rows, shard_slices

_BINS = 4096  # of a histogram of scores: two rounds of them separate any million scores
_FEW = 10_000  # scores that are looked through faster than a thread is woken
_TIE = 1e-12  # scores closer than this part of the losses' range count as equal: rounding, not order

Item = TypeVar("Item")
Result = TypeVar("Result")


class Tail(NamedTuple):
    """Where the tail begins, and the weight of a unit of mass above and at that edge."""

    low: float  # scores from low ...
    high: float  # ... to high are tied at the edge
    full: float
    partial: float


class Cut(NamedTuple):
    """Worst weights at some mixture: ``slope @ mixture`` is a lower bound of the CVaR at every mixture."""

    slope: FloatArray  # weights @ losses
    tail: Tail
    codes: list[ByteArray]  # of each shard: which rows are above the edge and at it, two bits each


class Shard:
    """Some rows with their masses, and the scores of the mixture last asked about."""

    def __init__(self, rows: Rows, mass: FloatArray | None) -> None:
        self.rows = rows
        self.mass = np.ones(1) if mass is None else mass
        self.step = 0 if mass is None else 1
        self.total = float(rows.n_rows) if mass is None else float(mass.sum())
        # Allocated once: fresh pages in every round would cost as much as the arithmetic.
        self.scores, self.weights = np.empty(rows.n_rows), np.empty(rows.n_rows)

    def score(self, mixture: FloatArray) -> None:
        self.rows.scores(mixture, self.scores)
        self.pending, self.pending_mass = self.scores, self.mass

    def histogram(self, low: float, scale: float) -> FloatArray:
        bins = np.zeros(_BINS)
        _kernels.histogram(self.pending, self.pending_mass, self.step, low, scale, bins)
        return bins

    def narrow(self, low: float, scale: float, chosen: int) -> tuple[float, float]:
        """Keep the scores of one bin pending, and return their range."""
        self.pending, self.pending_mass = _kernels.keep_bin(
            self.pending, self.pending_mass, self.step, low, scale, _BINS - 1, chosen
        )
        if not self.pending.size:
            return np.inf, -np.inf
        return float(self.pending.min()), float(self.pending.max())

    def cut(self, tail: Tail) -> tuple[FloatArray, ByteArray]:
        codes = np.zeros((self.scores.size + 3) // 4, dtype=np.uint8)
        _kernels.tail_weights(self.scores, self.mass, self.step, *tail, self.weights, codes)
        return self.rows.columns(self.weights), codes

    def decoded(self, tail: Tail, codes: ByteArray) -> FloatArray:
        """Return weights that were coded, in memory that the next call of anything uses again."""
        self.weights.fill(0.0)
        _kernels.add_coded_weights(codes, self.mass, self.step, tail.full, tail.partial, self.weights)
        return self.weights

    def excess(self, edge: float) -> float:
        """Return the mass-weighted sum of what the scores have above ``edge``."""
        above = np.maximum(self.scores - edge, 0.0)
        return float(above @ self.mass if self.step else above.sum())

    def mean_weights(self, tails: list[Tail], codes: list[ByteArray], shares: FloatArray) -> FloatArray:
        weights = np.zeros(self.rows.n_rows)
        for tail, coded, share in zip(tails, codes, shares.tolist(), strict=True):
            _kernels.add_coded_weights(coded, self.mass, self.step, share * tail.full, share * tail.partial, weights)
        return weights


class TailOracle:
    """Evaluates ``CVaR_alpha(losses @ mixture)`` for any mixture, with a cut that touches it there."""

    def __init__(self, losses: AnyArray, sample_weight: FloatArray | None, alpha: float) -> None:
        self.alpha = alpha
        self.places = shard_slices(losses.shape[0])
        self._pool = ThreadPoolExecutor(len(self.places)) if len(self.places) > 1 else None
        masses = [None if sample_weight is None else sample_weight[place] for place in self.places]
        rows = self._map(load_rows, [losses[place] for place in self.places])
        self.shards = [Shard(*pair) for pair in zip(rows, masses, strict=True)]
        self.n_samples, self.n_models = losses.shape
        self.low = min(shard.rows.low for shard in self.shards)
        self.high = max(shard.rows.high for shard in self.shards)
        self.total = sum(shard.total for shard in self.shards)

    def close(self) -> None:
        """Let the threads go."""
        if self._pool is not None:
            self._pool.shutdown()

    def cut(self, mixture: FloatArray) -> Cut:
        """Return the worst weights at ``mixture`` as a cut."""
        tail = self._find_tail(mixture, self.alpha * self.total)
        parts = self._map(lambda shard: shard.cut(tail), self.shards)
        return Cut(_total([slope for slope, _ in parts]), tail, [codes for _, codes in parts])

    def coded(self, cut: Cut) -> ByteArray:
        """Return the code of each row: with the tail, all that a cut needs."""
        sizes = [place.stop - place.start for place in self.places]
        return np.concatenate([_unpacked(codes, size) for codes, size in zip(cut.codes, sizes, strict=True)])

    def cut_of(self, tail: Tail, codes: ByteArray) -> Cut:
        """Return the cut of a tail and codes of rows."""
        packed = [_packed(codes[place]) for place in self.places]
        parts = list(zip(self.shards, packed, strict=True))
        slopes = self._map(lambda part: part[0].rows.columns(part[0].decoded(tail, part[1])), parts)
        return Cut(_total(slopes), tail, packed)

    def value(self, mixture: FloatArray) -> float:
        """Return the CVaR: ``min over edges of edge + mean(max(scores - edge, 0)) / alpha``, attained at the tail's."""
        mass = self.alpha * self.total
        # The top of the tie: from its bottom, rounding inside it would count, divided by a mass that may be tiny.
        edge = self._find_tail(mixture, mass).high
        return edge + float(sum(self._map(lambda shard: shard.excess(edge), self.shards))) / mass

    def proof(self, cuts: list[Cut], shares: FloatArray) -> Proof:
        """Return the mean of the cuts' sample weights, by shares that sum to 1, and the cut that it is by itself."""
        tails = [cut.tail for cut in cuts]
        by_shard = list(zip(self.shards, zip(*(cut.codes for cut in cuts), strict=True), strict=True))
        weights = self._map(lambda part: part[0].mean_weights(tails, list(part[1]), shares), by_shard)
        parts = list(zip(self.shards, weights, strict=True))
        slope = _total(self._map(lambda part: part[0].rows.columns(part[1]), parts))
        return Proof(np.concatenate(weights), slope)

    def _find_tail(self, mixture: FloatArray, mass: float) -> Tail:
        """Return the edge above which lies less than ``mass``, and down to which at least that much."""
        low, high, above = self.low, self.high, 0.0
        tie = _TIE * (high - low)
        scale = _BINS / (high - low) if high > low else 0.0

        def first_histogram(shard: Shard) -> FloatArray:
            shard.score(mixture)
            return shard.histogram(low, scale)

        bins = _total(self._map(first_histogram, self.shards))
        while True:
            chosen, above = _bin_at(bins, above, mass)
            ranges = self._each_pending(lambda shard: shard.narrow(low, scale, chosen))  # noqa: B023 - used at once
            low, high = min(pair[0] for pair in ranges), max(pair[1] for pair in ranges)
            if high - low <= tie:
                share = min(max((mass - above) / bins[chosen], 0.0), 1.0)
                return Tail(low, high, 1.0 / mass, share / mass)
            scale = _BINS / (high - low)
            bins = _total(self._each_pending(lambda shard: shard.histogram(low, scale)))  # noqa: B023 - used at once

    def _each_pending(self, function: Callable[[Shard], Result]) -> list[Result]:
        """Map over the shards' pending scores, in threads unless few are left."""
        if max(shard.pending.size for shard in self.shards) < _FEW:
            return [function(shard) for shard in self.shards]
        return self._map(function, self.shards)

    def _map(self, function: Callable[[Item], Result], items: list[Item]) -> list[Result]:
        """Map over the items, the last of them in this thread."""
        if self._pool is None:
            return [function(item) for item in items]
        others = [self._pool.submit(function, item) for item in items[:-1]]
        last = function(items[-1])
        return [*(other.result() for other in others), last]


_SHIFTS = np.arange(0, 8, 2, dtype=np.uint8)  # of four codes in a byte


def _unpacked(codes: ByteArray, size: int) -> ByteArray:
    return np.asarray((codes[:, None] >> _SHIFTS) & np.uint8(3)).ravel()[:size]


def _packed(codes: ByteArray) -> ByteArray:
    padded = np.append(codes, np.zeros(-codes.size % 4, dtype=np.uint8)).reshape(-1, 4)
    return np.asarray(np.bitwise_or.reduce(padded << _SHIFTS, axis=1))


def _total(parts: list[FloatArray]) -> FloatArray:
    return np.asarray(np.sum(parts, axis=0))


def _bin_at(bins: FloatArray, above: float, mass: float) -> tuple[int, float]:
    """Return the bin in which the mass from the top down reaches ``mass``, and the mass above that bin."""
    reach = above + np.cumsum(bins[::-1])
    last = _BINS - 1 - int(np.flatnonzero(bins)[0])  # where rounding leaves the total just short of mass
    place = min(int(np.searchsorted(reach, mass)), last)
    return _BINS - 1 - place, float(reach[place - 1]) if place else above
