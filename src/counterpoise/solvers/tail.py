"""The CVaR of ``losses @ mixture`` and its slope: one pass over the rows, as a map over shards.

What the shards hand back is small: a histogram of scores, a range, a vector with an entry for each model. The
decision where the tail begins is taken in one place. Ties at its edge share the remaining weight equally,
so the answer does not depend on the order of the rows.
"""

from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np

from counterpoise._base.shards import LocalShards, Shard, Shards, total
from counterpoise._base.types import AnyArray, ByteArray, FloatArray
from counterpoise.solvers import _kernels
from counterpoise.solvers.bundle import Proof
from counterpoise.solvers.rows import Rows, load_rows, shard_slices

_BINS = 4096  # of a histogram of scores: two rounds of them separate any million scores
_FEW = 10_000  # scores that are looked through faster than a thread is woken
_SENT = 2048  # scores of a bin that a shard hands over as they are
_TIE = 1e-12  # scores closer than this part of the losses' range count as equal: rounding, not order

TAIL = "tail"  # the name of the rows of losses in a shard
Path = tuple[tuple[float, float, int], ...]  # bins, each of the one before it: (low, scale, number)


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
    # Of each shard here: which rows are above the edge and at it, two bits each. Of shards elsewhere only the mixture,
    # by which they find it again.
    codes: list[ByteArray] | FloatArray


class Pending(NamedTuple):
    """The scores of one bin in a shard: their range, and they themselves with their masses where they are few."""

    n_rows: int
    low: float
    high: float
    values: FloatArray | None
    masses: FloatArray | None


class TailRows:
    """Some rows with their masses, and the scores of the mixture last asked about, which can be computed again."""

    def __init__(self, rows: Rows, mass: FloatArray | None) -> None:
        self.rows = rows
        self.mass = np.ones(1) if mass is None else mass
        self.step = 0 if mass is None else 1
        self.total = float(rows.n_rows) if mass is None else float(mass.sum())
        # Allocated once: fresh pages in every round would cost as much as the arithmetic.
        self.scores = np.empty(rows.n_rows)
        self._mixture: FloatArray | None = None

    def score(self, mixture: FloatArray) -> None:
        """Score the rows, unless they are."""
        if self._mixture is None or not np.array_equal(self._mixture, mixture):
            self.rows.scores(mixture, self.scores)
            self._mixture = mixture.copy()
            self._restart()

    def _restart(self) -> None:
        self.path: Path = ()
        self.pending, self.pending_mass = self.scores, self.mass

    def narrow(self, mixture: FloatArray, path: Path) -> None:
        """Keep the scores of a bin pending."""
        self.score(mixture)
        if self.path != path[: len(self.path)]:
            self._restart()
        for low, scale, chosen in path[len(self.path) :]:
            self.pending, self.pending_mass = _kernels.keep_bin(
                self.pending, self.pending_mass, self.step, low, scale, _BINS - 1, chosen
            )
        self.path = path

    def few(self, tie: float) -> Pending:
        """Return what is known of the pending scores."""
        if not self.pending.size:
            return Pending(0, np.inf, -np.inf, np.empty(0), np.empty(0))
        low, high = float(self.pending.min()), float(self.pending.max())
        mass = self.pending_mass if self.step else np.ones(1)
        if high - low <= tie:
            held = float(mass.sum()) if self.step else float(self.pending.size)
            return Pending(self.pending.size, low, high, np.array([low, high]), np.array([held, 0.0]))
        if self.pending.size > _SENT:
            return Pending(self.pending.size, low, high, None, None)
        values, places = np.unique(self.pending, return_inverse=True)
        masses = np.bincount(places, mass if self.step else None, values.size).astype(np.float64)
        return Pending(self.pending.size, low, high, values, masses)

    def codes(self, tail: Tail) -> ByteArray:
        """Return which rows are above the edge and at it."""
        codes = np.zeros((self.scores.size + 3) // 4, dtype=np.uint8)
        _kernels.tail_codes(self.scores, tail.low, tail.high, codes)
        return codes

    def sums(self, codes: ByteArray) -> FloatArray:
        """Return two sums of losses, which are exact where masses are whole numbers: above the edge, and at it."""
        return self.rows.coded(codes, self.mass, self.step)

    def mean_weights(self, tails: list[Tail], codes: list[ByteArray], shares: FloatArray) -> FloatArray:
        weights = np.zeros(self.rows.n_rows)
        for tail, coded, share in zip(tails, codes, shares.tolist(), strict=True):
            _kernels.add_coded_weights(coded, self.mass, self.step, share * tail.full, share * tail.partial, weights)
        return weights


# What runs where the rows are. Each names the mixture it is about, so that shards which were made again can answer.


def _facts(shard: Shard) -> tuple[int, int, float, float, float]:
    tail: TailRows = shard[TAIL]
    return tail.rows.n_rows, tail.rows.n_models, tail.rows.low, tail.rows.high, tail.total


def _histogram(shard: Shard, mixture: FloatArray, path: Path, low: float, scale: float) -> FloatArray:
    tail, bins = shard[TAIL], np.zeros(_BINS)
    tail.narrow(mixture, path)
    _kernels.histogram(tail.pending, tail.pending_mass, tail.step, low, scale, bins)
    return bins


def _pending(shard: Shard, mixture: FloatArray, path: Path, tie: float) -> Pending:
    shard[TAIL].narrow(mixture, path)
    return shard[TAIL].few(tie)  # type: ignore[no-any-return]


def _cut(shard: Shard, mixture: FloatArray, tail: Tail, is_kept: bool) -> tuple[FloatArray, ByteArray | None]:
    rows: TailRows = shard[TAIL]
    rows.score(mixture)
    codes = rows.codes(tail)
    return rows.sums(codes), codes if is_kept else None


def _coded_sums(shard: Shard, packed: list[ByteArray]) -> FloatArray:
    rows: TailRows = shard[TAIL]
    return rows.rows.coded(packed[shard.number], rows.mass, rows.step)


def _excess(shard: Shard, mixture: FloatArray, edge: float) -> float:
    """Return the mass-weighted sum of what the scores have above ``edge``."""
    rows: TailRows = shard[TAIL]
    rows.score(mixture)
    above = np.maximum(rows.scores - edge, 0.0)
    return float(above @ rows.mass if rows.step else above.sum())


WEIGHTS = "weights"  # the name of the rows' weights in a shard


def _weigh(shard: Shard, tails: list[Tail], kept: list[list[ByteArray] | FloatArray], shares: FloatArray) -> FloatArray:
    """Leave the mean of the cuts' weights in the shard, and return the cut that it is by itself."""
    rows: TailRows = shard[TAIL]
    codes = [_codes_of(shard, *pair) for pair in zip(tails, kept, strict=True)]
    shard[WEIGHTS] = rows.mean_weights(tails, codes, shares)
    return rows.rows.columns(shard[WEIGHTS])


def _codes_of(shard: Shard, tail: Tail, kept: list[ByteArray] | FloatArray) -> ByteArray:
    if isinstance(kept, list):
        return kept[shard.number]
    shard[TAIL].score(kept)
    return shard[TAIL].codes(tail)  # type: ignore[no-any-return]


def weights_of(shard: Shard) -> FloatArray:
    """Return the weights of the rows that a solve left."""
    return shard[WEIGHTS]  # type: ignore[no-any-return]


def _loaded(losses: AnyArray, mass: FloatArray | None) -> dict[str, Any]:
    return {TAIL: TailRows(load_rows(losses), mass)}


class TailOracle:
    """Evaluates ``CVaR_alpha(losses @ mixture)`` for any mixture, with a cut that touches it there."""

    def __init__(self, shards: Shards, alpha: float, *, closes: bool = False) -> None:
        """Take losses that live in shards, each with its ``TailRows`` by the name ``TAIL``."""
        self.shards, self.alpha, self._closes = shards, alpha, closes
        sizes, models, lows, highs, totals = zip(*shards.map(_facts), strict=True)
        self.sizes, self.n_samples, self.n_models = sizes, sum(sizes), models[0]
        self.low, self.high, self.total = min(lows), max(highs), float(sum(totals))

    @classmethod
    def of(cls, losses: AnyArray, sample_weight: FloatArray | None, alpha: float) -> Self:
        """Return the function of a matrix of losses, a part of it for each thread worth starting."""
        places = shard_slices(losses.shape[0])
        masses = [None if sample_weight is None else sample_weight[place] for place in places]
        sources = [partial(_loaded, losses[place], mass) for place, mass in zip(places, masses, strict=True)]
        return cls(LocalShards(sources), alpha, closes=True)

    def close(self) -> None:
        """Let the threads go; shards that were given belong to who made them."""
        if self._closes:
            self.shards.close()

    def cut(self, mixture: FloatArray) -> Cut:
        """Return the worst weights at ``mixture`` as a cut."""
        tail = self._find_tail(mixture, self.alpha * self.total)
        parts = self.shards.map(_cut, mixture, tail, self.shards.is_here)
        kept: Any = [codes for _, codes in parts] if self.shards.is_here else mixture
        return Cut(_weighed(total([sums for sums, _ in parts]), tail), tail, kept)

    def coded(self, cut: Cut) -> ByteArray:
        """Return the code of each row, of rows that are here: with the tail, all that a cut needs."""
        parts = zip(cut.codes, self.sizes, strict=True)
        return np.concatenate([_unpacked(codes, size) for codes, size in parts])

    def cut_of(self, tail: Tail, codes: ByteArray) -> Cut:
        """Return the cut of a tail and codes of rows."""
        packed = [_packed(part) for part in np.split(codes, np.cumsum(self.sizes)[:-1])]
        return Cut(_weighed(total(self.shards.map(_coded_sums, packed)), tail), tail, packed)

    def value(self, mixture: FloatArray) -> float:
        """Return the CVaR: ``min over edges of edge + mean(max(scores - edge, 0)) / alpha``, attained at the tail's."""
        mass = self.alpha * self.total
        # The top of the tie: from its bottom, rounding inside it would count, divided by a mass that may be tiny.
        edge = self._find_tail(mixture, mass).high
        return edge + float(sum(self.shards.map(_excess, mixture, edge))) / mass

    def proof(self, cuts: list[Cut], shares: FloatArray) -> Proof:
        """Return the mean of the cuts' sample weights, by shares that sum to 1, and the cut that it is by itself.

        The weights stay in the shards, where they go by the name ``WEIGHTS``; those of shards here are returned too.
        """
        tails, kept = [cut.tail for cut in cuts], [cut.codes for cut in cuts]
        slope = total(self.shards.change(WEIGHTS, _weigh, tails, kept, shares))
        weights = np.concatenate(self.shards.map(weights_of)) if self.shards.is_here else np.empty(0)
        return Proof(weights, slope)

    def _find_tail(self, mixture: FloatArray, mass: float) -> Tail:
        """Return the edge above which lies less than ``mass``, and down to which at least that much."""
        low, high, above, path = self.low, self.high, 0.0, tuple[tuple[float, float, int], ...]()
        tie, light = _TIE * (high - low), False
        while True:
            scale = _BINS / (high - low) if high > low else 0.0
            bins = total(self.shards.map(_histogram, mixture, path, low, scale, light=light))
            chosen, above = _bin_at(bins, above, mass)
            path = (*path, (low, scale, chosen))
            found = self.shards.map(_pending, mixture, path, tie, light=light)
            low, high = min(one.low for one in found), max(one.high for one in found)
            if high - low <= tie:
                return _tail(low, high, (mass - above) / bins[chosen], mass)
            if all(one.values is not None for one in found):
                return _edge_among(found, above, mass, tie)
            light = max(one.n_rows for one in found) < _FEW


def _edge_among(found: list[Pending], above: float, mass: float, tie: float) -> Tail:
    """Return the edge among scores that are known one by one, with that much mass above all of them."""
    values, masses = (np.concatenate([part[place] for part in found]) for place in (3, 4))
    order = np.argsort(-values, kind="stable")
    values, masses = values[order], masses[order]
    reach = above + np.cumsum(masses)
    edge = values[min(int(np.searchsorted(reach, mass)), int(np.flatnonzero(masses)[-1]))]
    is_tied = np.abs(values - edge) <= tie
    low, high = float(values[is_tied].min()), float(values[is_tied].max())
    return _tail(low, high, (mass - above - masses[values > high].sum()) / masses[is_tied].sum(), mass)


def _tail(low: float, high: float, share: float, mass: float) -> Tail:
    return Tail(low, high, 1.0 / mass, min(max(float(share), 0.0), 1.0) / mass)


def _weighed(sums: FloatArray, tail: Tail) -> FloatArray:
    return np.asarray(tail.full * sums[0] + tail.partial * sums[1])


_SHIFTS = np.arange(0, 8, 2, dtype=np.uint8)  # of four codes in a byte


def _unpacked(codes: ByteArray, size: int) -> ByteArray:
    return np.asarray((codes[:, None] >> _SHIFTS) & np.uint8(3)).ravel()[:size]


def _packed(codes: ByteArray) -> ByteArray:
    padded = np.append(codes, np.zeros(-codes.size % 4, dtype=np.uint8)).reshape(-1, 4)
    return np.asarray(np.bitwise_or.reduce(padded << _SHIFTS, axis=1))


def _bin_at(bins: FloatArray, above: float, mass: float) -> tuple[int, float]:
    """Return the bin in which the mass from the top down reaches ``mass``, and the mass above that bin."""
    reach = above + np.cumsum(bins[::-1])
    last = _BINS - 1 - int(np.flatnonzero(bins)[0])  # where rounding leaves the total just short of mass
    place = min(int(np.searchsorted(reach, mass)), last)
    return _BINS - 1 - place, float(reach[place - 1]) if place else above
