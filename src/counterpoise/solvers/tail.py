"""The tail of a mixture's losses, and mixtures that gain a model in each round.

``TailOracle`` evaluates the CVaR of ``losses @ mixture`` and its slope, in one pass over the rows, of which each thread
has a part. The parts return little: a histogram of scores, a range, a vector with an entry for each model. One place
decides where the tail begins. Ties at its edge share the remaining weight equally, so the result does not depend on the
order of the rows.

``GrowingMixture`` solves the mixture problem again whenever a pool gains a model, as in column generation. Two facts
make the next solve cheap:

- Samples with the same losses under all models so far have the same score in every mixture. One *kind* stands for all
  of them, with the sum of their masses. Sixteen trees of depth 5 divide 100,000 samples into a few thousand kinds, and
  a solve passes over the kinds alone. A further model splits kinds.
- A cut is a set of sample weights, equal within a kind. A further model adds one entry to its slope: the mean of that
  model's losses under these weights. So the next solve takes over the cuts of the last one, and needs a few
  evaluations instead of dozens.
"""

from collections.abc import Sequence
from contextlib import closing
from typing import NamedTuple, Self

import numpy as np

from counterpoise._base.checks import check_alpha, check_positive
from counterpoise._base.threads import ThreadedParts, available_cpus, in_threads
from counterpoise._base.types import AnyArray, ByteArray, FloatArray, IntArray
from counterpoise.solvers.bundle import LevelBundle, LowerBoundProof, SolveLimits
from counterpoise.solvers.linear_program import CuttingPlanes, MixtureSolution
from counterpoise.solvers.rows import (
    FULL,
    PARTIAL,
    LossRows,
    PlaceArray,
    add_coded_weights,
    code_places,
    histogram,
    is_zero_one,
    load_rows,
    split_places,
)

_BINS = 1024  # of a histogram of scores: two rounds of them separate any million scores
# Part of the way from the least loss to the edge of the last tail, from which on scores are tried first. On pools
# of other kinds than the benchmarks have, one tail in 100 begins below; at 0.9 one in 18, for 30 % fewer rows.
_DOWN_TO = 0.7
_FEW = 10_000  # scores that are looked through faster than a thread is woken
_MIN_PART = 16_384  # below this many rows a second thread costs more than it saves
_SENT = 2048  # scores of a bin that a part hands over as they are
_TIE = 1e-12  # scores closer than this part of the losses' range count as equal: rounding, not order

# Ranges of scores, each inside of the one before it: from ``bottom`` to below ``top`` of ``(score - low) * scale``.
Path = tuple[tuple[float, float, float, float], ...]


class TailEdge(NamedTuple):
    """Where the tail begins, and the weight of a unit of mass above and at that edge."""

    low: float  # scores from low ...
    high: float  # ... to high are tied at the edge
    full: float
    partial: float

    @property
    def span(self) -> tuple[float, float, float, float]:
        """Return the scores at the edge, as the last step of a path."""
        return 0.0, 1.0, self.low, float(np.nextafter(self.high, np.inf))


class TailCut(NamedTuple):
    """Worst weights at some mixture: ``slope @ mixture`` is a lower bound of the CVaR at every mixture."""

    slope: FloatArray  # weights @ losses
    tail: TailEdge
    codes: list[ByteArray]  # of each part of the rows: which are above the edge and at it, two bits each


class Pending(NamedTuple):
    """The scores of one bin in a part of the rows: their range, and where they are few they and their masses."""

    n_rows: int
    low: float
    high: float
    values: FloatArray | None
    masses: FloatArray | None


class TailRows:
    """Some rows with their masses, and the scores of the latest mixture, which can be computed again."""

    def __init__(self, rows: LossRows, mass: FloatArray | None) -> None:
        self.rows = rows
        self.mass = np.ones(1) if mass is None else mass
        self.step = 0 if mass is None else 1
        self.total = float(rows.n_rows) if mass is None else float(mass.sum())
        # Allocated once: fresh pages in every round would cost as much as the arithmetic.
        self.scores = np.empty(rows.n_rows)
        self._every = np.arange(rows.n_rows, dtype=np.int32)
        self._above, self._inside = (np.empty(rows.n_rows + 1, dtype=np.int32) for _ in range(2))
        self._mixture: FloatArray | None = None
        self._totals: FloatArray | None = None  # sums of the losses of all rows
        self.path: Path = ()

    def score(self, mixture: FloatArray, path: Path = ()) -> None:
        """Score the rows, unless they are; find the rows above the end of a path, and those pending inside of it."""
        is_new = self._mixture is None or not np.array_equal(self._mixture, mixture)
        if is_new:
            self.rows.scores(mixture, self.scores)
            self._mixture = mixture.copy()
        if is_new or self.path != path[: len(self.path)]:
            self.path, self.pending, self.above = (), self._every, self._above[:0]
            self.sums = np.zeros(self.rows.n_models)  # of the losses of the rows above
        for step in path[len(self.path) :]:
            n_before = self.above.size
            n_above, n_inside = split_places(self.scores, self.pending, *step, self._above[n_before:], self._inside)
            self.above, self.pending = self._above[: n_before + n_above], self._inside[:n_inside]
            if n_above:
                self.sums += self.sums_at(self.above[n_before:])
        self.path = path

    def sums_at(self, places: PlaceArray) -> FloatArray:
        """Return the sums of losses of rows, by their masses: exact where these are whole numbers."""
        return self.rows.sums_at(places, self.mass, self.step)

    def pending_sums(self) -> FloatArray:
        """Return the sums of losses of the pending rows."""
        if self.above.size + self.pending.size < self.scores.size:
            return self.sums_at(self.pending)
        # They are all others, as where no loss at all is the edge: many, and at every mixture alike.
        if self._totals is None:
            self._totals = self.sums_at(self._every)
        return self._totals - self.sums

    def codes(self) -> ByteArray:
        """Return the codes of rows at the end of a path: of those above it, and of those inside."""
        return code_rows(self.above, self.pending, self.scores.size)


def _histogram(rows: TailRows, mixture: FloatArray, path: Path, low: float, scale: float) -> FloatArray:
    bins = np.zeros(_BINS)
    rows.score(mixture, path)
    histogram(rows.scores, rows.pending, rows.mass, rows.step, low, scale, bins)
    return bins


def _pending(rows: TailRows, mixture: FloatArray, path: Path, tie: float) -> Pending:
    """Return the facts about the pending scores."""
    rows.score(mixture, path)
    if not rows.pending.size:
        return Pending(0, np.inf, -np.inf, np.empty(0), np.empty(0))
    scores = rows.scores[rows.pending]
    low, high, mass = float(scores.min()), float(scores.max()), rows.mass[rows.pending] if rows.step else None
    if high - low <= tie:
        total = float(scores.size if mass is None else mass.sum())
        return Pending(scores.size, low, high, np.array([low, high]), np.array([total, 0.0]))
    if scores.size > _SENT:
        return Pending(scores.size, low, high, None, None)
    return Pending(scores.size, low, high, scores, np.ones(scores.size) if mass is None else mass)


def _sum_tail(rows: TailRows, mixture: FloatArray, path: Path) -> tuple[FloatArray, ByteArray]:
    """Return the sums of losses above the edge, where the path ends, and at it; and the codes of rows."""
    rows.score(mixture, path)
    return np.array([rows.sums, rows.pending_sums()]), rows.codes()


def _sum_coded_tail(rows: TailRows, codes: ByteArray) -> FloatArray:
    """Return the sums of losses above the edge and at it, by the codes of rows."""
    each = decode_rows(codes, rows.rows.n_rows)
    return np.array([rows.sums_at(places) for places in _places_of(each)])


def code_rows(above: PlaceArray, at_edge: PlaceArray, n_rows: int) -> ByteArray:
    """Return codes of two bits, four to the byte: of the rows above the edge of a tail, of those at it, of others."""
    codes = np.zeros((n_rows + 3) // 4, dtype=np.uint8)
    code_places(above, FULL, codes)
    code_places(at_edge, PARTIAL, codes)
    return codes


def decode_rows(codes: ByteArray, n_rows: int) -> ByteArray:
    """Return the code of each row."""
    return np.asarray(((codes[:, None] >> _SHIFTS) & np.uint8(3)).ravel()[:n_rows])


def _places_of(each: ByteArray) -> tuple[PlaceArray, PlaceArray]:
    return np.flatnonzero(each == FULL).astype(np.int32), np.flatnonzero(each == PARTIAL).astype(np.int32)


class TailOracle:
    """Evaluates ``CVaR_alpha(losses @ mixture)`` for any mixture, with a cut that touches it there.

    Close its ``parts`` to let the threads go.
    """

    def __init__(self, parts: ThreadedParts[TailRows], alpha: float) -> None:
        self.parts, self.alpha = parts, alpha
        rows = [part.rows for part in parts.parts]
        self.sizes, self.n_models = [one.n_rows for one in rows], rows[0].n_models
        self.n_samples, self.total = sum(self.sizes), float(sum(part.total for part in parts.parts))
        self.low, self.high = min(one.low for one in rows), max(one.high for one in rows)
        self._first_low = self.low  # from where on scores are tried first

    @classmethod
    def of(cls, losses: AnyArray, sample_weight: FloatArray | None, alpha: float) -> Self:
        """Return the function of a matrix of losses, a part of it for each thread worth starting."""
        n_rows = losses.shape[0]
        n_parts = max(1, min(available_cpus(), n_rows // _MIN_PART))
        places = [slice(n_rows * part // n_parts, n_rows * (part + 1) // n_parts) for part in range(n_parts)]
        masses = [None if sample_weight is None else sample_weight[place] for place in places]
        loaded = in_threads(load_rows, [(losses[place],) for place in places], n_parts, shared=True)
        return cls(ThreadedParts(list(map(TailRows, loaded, masses))), alpha)

    def cut(self, at: list[ByteArray] | FloatArray, tail: TailEdge | None = None) -> TailCut:
        """Return the worst weights at a mixture as a cut; or those of a tail, given the codes of each part's rows."""
        if tail is None:
            mixture: FloatArray = np.asarray(at, dtype=np.float64)
            tail, path, light = self._find_tail(mixture, self.alpha * self.total)
            sums, codes = zip(*self.parts.map(_sum_tail, mixture, (*path, tail.span), light=light), strict=True)
        else:
            codes = tuple(at)
            sums = tuple(map(_sum_coded_tail, self.parts.parts, codes))
        above, at_edge = sum(sums)
        return TailCut(np.asarray(tail.full * above + tail.partial * at_edge), tail, list(codes))

    def value(self, mixture: FloatArray) -> float:
        """Return the CVaR of ``losses @ mixture``."""
        return float(self.cut(mixture).slope @ mixture)

    def proof(self, cuts: list[TailCut], shares: FloatArray) -> LowerBoundProof:
        """Return the mean of the cuts' sample weights, by shares that sum to 1, and the cut that it is by itself."""
        parts = []
        for number, rows in enumerate(self.parts.parts):
            weights = np.zeros(rows.rows.n_rows)
            for cut, share in zip(cuts, shares.tolist(), strict=True):
                full, partial = share * cut.tail.full, share * cut.tail.partial
                add_coded_weights(cut.codes[number], rows.mass, rows.step, full, partial, weights)
            parts.append((weights, rows.rows.columns(weights)))
        weights_of, slopes = zip(*parts, strict=True)
        return LowerBoundProof(np.concatenate(weights_of), np.sum(slopes, axis=0))

    def _find_tail(self, mixture: FloatArray, mass: float) -> tuple[TailEdge, Path, bool]:
        """Return the edge above which lies less than ``mass``, and down to which at least that much.

        Beside it the bins that lead to it, and whether the rows in the last of them are few.
        """
        low, high, above, light = self._first_low, self.high, 0.0, False
        path: Path = () if low == self.low else ((0.0, 1.0, low, np.inf),)
        tie = _TIE * (high - self.low)
        while True:
            scale = _BINS / (high - low) if high > low else 0.0
            bins = sum(self.parts.map(_histogram, mixture, path, low, scale, light=light), start=np.zeros(_BINS))
            # The bin in which the mass from the top down reaches ``mass``, and the mass above that bin.
            reach = above + np.cumsum(bins[::-1])
            if reach[-1] < mass and len(path) == 1 and self._first_low > self.low:  # the tail begins below
                low, path, self._first_low = self.low, (), self.low
                continue
            last = _BINS - 1 - int(np.flatnonzero(bins)[0])  # where rounding leaves the total just short of mass
            place = min(int(np.searchsorted(reach, mass)), last)
            bin_number, above = _BINS - 1 - place, float(reach[place - 1]) if place else above
            bottom, top = bin_number or -np.inf, bin_number + 1 if bin_number < _BINS - 1 else np.inf
            path = (*path, (low, scale, bottom, top))
            pending = self.parts.map(_pending, mixture, path, tie, light=light)
            light = max(one.n_rows for one in pending) < _FEW
            low, high = min(one.low for one in pending), max(one.high for one in pending)
            if high - low <= tie:
                share = (mass - above) / bins[bin_number]
                break
            if all(one.values is not None for one in pending):  # the scores are known one by one
                values, masses = (np.concatenate([part[place] for part in pending]) for place in (3, 4))
                order = np.argsort(-values, kind="stable")
                values, masses = values[order], masses[order]
                reach = above + np.cumsum(masses)
                edge = values[min(int(np.searchsorted(reach, mass)), int(np.flatnonzero(masses)[-1]))]
                is_tied = np.abs(values - edge) <= tie
                low, high = float(values[is_tied].min()), float(values[is_tied].max())
                share = (mass - above - masses[values > high].sum()) / masses[is_tied].sum()
                break
        self._first_low = self.low + _DOWN_TO * (low - self.low)
        return TailEdge(low, high, 1.0 / mass, min(max(float(share), 0.0), 1.0) / mass), path, light


_SHIFTS = np.arange(0, 8, 2, dtype=np.uint8)  # of four codes in a byte


_ROOM = 0.1  # of the newest model in the mixture that a solve starts from
_SPARSE = 4  # codes up to so many times their number are numbered by a table, others by sorting


def minimize_linear(
    values: FloatArray, rows: FloatArray, bounds: FloatArray, *, row_scale: FloatArray | None = None
) -> MixtureSolution:
    """Return the mixture with the least mean of values, one for each model, under linear constraints.

    Arguments, result and errors are those of ``minimize_cvar`` with one sample, unchecked.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.solvers.tail import minimize_linear
    >>> solution = minimize_linear(np.array([0.1, 0.5]), np.array([[1.0, 0.0]]), np.array([0.75]))
    >>> solution.mixture.tolist(), round(solution.value, 6), solution.multipliers.round(6).tolist(), solution.gap < 1e-9
    ([0.75, 0.25], 0.2, [0.4], True)
    """
    planes = CuttingPlanes(values.size, rows, bounds, row_scale)
    low, span = float(values.min()), float(np.ptp(values)) or 1.0
    planes.add((values - low) / span)
    minimum = planes.minimize()
    prices = minimum.multipliers * span
    value, lower = float(values @ minimum.point), planes.proven(values, prices)
    return MixtureSolution(minimum.point, np.ones(1), prices / planes.row_scale, value, lower, 1)


class SampleKinds(NamedTuple):
    """Samples divided into kinds by the losses of models."""

    of: IntArray  # the kind of each sample
    losses: AnyArray  # (n_kinds, n_models)

    def split(self, column: AnyArray) -> "tuple[SampleKinds, IntArray]":
        """Return the kinds with a further model, and of which kind each was a part."""
        if is_zero_one(np.ascontiguousarray(column)):
            levels, places = np.arange(2, dtype=np.uint8), column.astype(np.int64)
        else:
            levels, places = np.unique(column, return_inverse=True)  # the different losses, and which each sample has
        codes, size = levels.size * self.of + places, levels.size * len(self.losses)
        if size > _SPARSE * codes.size:
            present, of = np.unique(codes, return_inverse=True)
        else:
            present, place_of = np.flatnonzero(np.bincount(codes, minlength=size)), np.empty(size, dtype=np.int64)
            place_of[present] = np.arange(present.size)
            of = place_of[codes]
        parents = present // levels.size
        return SampleKinds(of, np.column_stack([self.losses[parents], levels[present % levels.size]])), parents


def recode(codes: list[ByteArray], sizes: Sequence[int], places: IntArray, new_sizes: Sequence[int]) -> list[ByteArray]:
    """Return the codes of the rows at some places, in parts of the new sizes, from those in parts of the given sizes.

    With its tail they are all that a cut needs.
    """
    each = np.concatenate([decode_rows(own, size) for own, size in zip(codes, sizes, strict=True)])[places]
    return [code_rows(*_places_of(part), part.size) for part in np.split(each, np.cumsum(new_sizes)[:-1])]


class GrowingMixture:
    """``min over mixture of CVaR_alpha(losses @ mixture)`` under linear constraints, solved again as models are added.

    Parameters
    ----------
    alpha : float in (0, 1]
        Tail fraction.
    tol : float, default=1e-4
        The gap at which a solve ends.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.solvers.tail import GrowingMixture
    >>> losses, mixture = np.array([[0, 1], [0, 1], [1, 0], [1, 0]], dtype=np.uint8), GrowingMixture(0.5)
    >>> no_rows, no_bounds = np.empty((0, 2)), np.empty(0)
    >>> first = mixture.solve(losses[:, :1], no_rows[:, :1], no_bounds)
    >>> both = mixture.solve(losses, no_rows, no_bounds)
    >>> round(first.value, 3), round(both.value, 3)
    (1.0, 0.5)
    """

    def __init__(self, alpha: float, *, tol: float = 1e-4) -> None:
        self.alpha, self.tol = check_alpha(alpha), check_positive(tol, "tol")
        self._kinds = SampleKinds(np.zeros(0, dtype=np.int64), np.empty((1, 0), dtype=np.uint8))
        self._cuts: list[TailCut] = []
        self._sizes: Sequence[int] = ()  # kinds in each part of the solve before
        self._weight: FloatArray | None = None
        self._mixture = np.empty(0)

    def solve(
        self,
        losses: AnyArray,
        rows: FloatArray,
        bounds: FloatArray,
        *,
        row_scale: FloatArray | None = None,
        sample_weight: FloatArray | None = None,
    ) -> MixtureSolution:
        """Return the best mixture; arguments, result and errors are those of ``minimize_cvar``, unchecked.

        The losses are those of the solve before, with further columns, on the same samples.
        """
        n_models, n_more = losses.shape[1], losses.shape[1] - self._mixture.size
        planes = CuttingPlanes(n_models, rows, bounds, row_scale)
        last_weight = self._weight
        is_same = last_weight is sample_weight
        if last_weight is not None and sample_weight is not None:
            is_same = np.array_equal(last_weight, sample_weight)
        kinds, n_samples = self._kinds, len(losses)
        if not is_same or kinds.of.size != n_samples:  # begin anew for other weights: all samples are of one kind
            kinds = SampleKinds(np.zeros(n_samples, dtype=np.int64), np.empty((1, 0), dtype=np.uint8))
            self._weight, self._cuts = sample_weight, []
        places = np.arange(len(kinds.losses))
        for column in losses.T[kinds.losses.shape[1] :]:  # split kinds by the models since the solve before
            kinds, parents = kinds.split(column)
            places = places[parents]
        start = None
        if self._mixture.size and n_more >= 0:
            fresh = np.full(n_more, _ROOM / max(n_more, 1))
            start = np.append(self._mixture * (1 - fresh.sum()), fresh)
        mass = np.bincount(kinds.of, sample_weight, len(kinds.losses)).astype(np.float64)
        oracle = TailOracle.of(kinds.losses, mass, self.alpha)
        with closing(oracle.parts):
            bundle = LevelBundle(oracle, planes, SolveLimits(self.tol))
            last_cuts = [(recode(cut.codes, self._sizes, places, oracle.sizes), cut.tail) for cut in self._cuts]
            bundle.carry([oracle.cut(*cut) for cut in last_cuts])
            solution = bundle.solve(start)
        self._kinds, self._cuts, self._sizes, self._mixture = kinds, bundle.cuts, oracle.sizes, solution.mixture
        # Each sample has its share of the weight of its kind.
        weights = np.divide(solution.weights, mass, out=np.zeros(mass.size), where=mass > 0)[kinds.of]
        return solution._replace(weights=weights if sample_weight is None else weights * sample_weight)
