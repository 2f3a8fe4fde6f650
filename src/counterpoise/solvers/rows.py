"""Rows of losses and their weights: exact sums, packed bits, and worst means on the capped simplex.

The file has four parts:

- Exact sums of weights. They do not depend on the order of the rows, so equal sums are equal to the last bit.
- Loops over rows for tails of many models, which numba compiles. They release the interpreter lock, so that parts of
  the rows run side by side in threads. ``mass`` holds the sample weights and ``step`` is 1; or ``mass`` is ``[1.0]``
  and ``step`` is 0, so that equal weights cost neither memory nor a second copy of each loop.
- ``BitRows`` and ``RealRows``, the loss matrix: its product with a mixture, and with sample weights. Zero-one losses
  are packed to one bit each. A row of 100 models is then 13 bytes, its product with a mixture 13 look-ups in tables of
  256 sums, and the weighted column sums a histogram of bytes. That is about ten times less memory traffic than bytes,
  and memory traffic is what takes the time.
- The capped simplex ``{weights >= 0, sum 1, weights <= caps}``: projection, softmax and worst mean. All sort once and
  are exact for ties and for scores of size 1e300: sums are taken relative to a score at the edge, never of raw scores,
  so nothing is lost to cancellation.
"""

from bisect import bisect_left
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from counterpoise._base.checks import as_numbers, check_count, check_vector, value_range
from counterpoise._base.compiled import kernel
from counterpoise._base.types import AnyArray, ArrayLike, ByteArray, FloatArray, IntArray


def exact_parts(weights: FloatArray) -> list[FloatArray]:
    """Split non-negative weights into parts whose sums are exact, over any of the rows and in any order.

    The first part is rounded to multiples of a unit so coarse that all partial sums are whole multiples of it below
    2^53, the second does the same with what is left (Rump, Ogita and Oishi 2008, ExtractVector). What then remains is
    below 2^-100 of the total for a million rows. Whole numbers need the first part only.
    """
    parts = []
    for _ in range(2):
        largest = float(np.abs(weights).max(initial=0.0))
        if largest == 0.0:
            break
        unit = 2.0 ** np.ceil(np.log2(largest) + np.log2(weights.size) + 1)
        part = (unit + weights) - unit
        parts.append(part)
        weights = weights - part
    return parts or [weights]


# All sums of whole numbers up to 2^52 are exact in any order, with one bit to spare: masses that sum to 1, or to what
# rounding makes of it, are then multiples of this.
MASS_UNIT = 2.0**-51


def whole_masses(weights: FloatArray, total: float | None = None, out: FloatArray | None = None) -> FloatArray:
    """Return non-negative weights as whole numbers, the nearest multiples of one unit, that sum to at most 2^52.

    Sums of them, and so histograms, are then the same in any order and however rows are cut.

    Parameters
    ----------
    weights : array of shape (n_rows,)
    total : float, optional
        The sum of the weights of all rows, where these are some of them.
    out : array of shape (n_rows,), optional
        Where to write them.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.solvers.rows import whole_masses
    >>> (whole_masses(np.array([0.5, 0.25, 0.25])) / 2**50).tolist()
    [1.0, 0.5, 0.5]
    """
    whole = float(weights.sum()) if total is None else total
    unit = MASS_UNIT * 2.0 ** np.round(np.log2(whole)) if whole > 0 else np.inf
    masses = np.divide(weights, unit, out=out)
    return np.asarray(np.rint(masses, out=masses))


def exact_sum(weights: FloatArray) -> float:
    """Return the sum of non-negative weights, the same as ``BitRows.totals`` gives it."""
    return float(sum(part.sum() for part in exact_parts(weights)))


def weighted_sum(weights: FloatArray, values: AnyArray) -> float:
    """Return ``weights @ values``, of one value for each row, by one thread.

    BLAS shares such a product among threads that then spin for 20 ms, more than a round of boosting takes.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.solvers.rows import weighted_sum
    >>> weighted_sum(np.array([0.5, 0.25, 0.25]), np.array([0, 1, 1], dtype=np.uint8))
    0.5
    """
    return float(np.einsum("i,i->", weights, values))


PlaceArray = NDArray[np.int32]

PARTIAL, FULL = 1, 2  # codes of the rows of a tail: at its edge, and above
# Bit k of byte b: maps a histogram of bytes to a count for each bit.
_BIT_OF_BYTE = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").astype(np.float64)
_SPREAD = _BIT_OF_BYTE.astype(np.uint8).view("<u8").ravel()  # the bits of a byte, each in a byte of its own


@kernel("void(uint8[:, ::1], float64[::1], float64[::1])")
def bit_scores(packed: ByteArray, mixture: FloatArray, scores: FloatArray) -> None:
    """Set ``scores`` to the product of the zero-one rows and the mixture: one look-up for eight models."""
    # Of each byte's value in each group of eight the sum of the mixture over the models whose bit is set.
    tables = np.empty((packed.shape[1], 256))
    for g in range(tables.shape[0]):
        tables[g, 0] = 0.0
        for k in range(8):
            entry = mixture[8 * g + k] if 8 * g + k < mixture.size else 0.0
            high = 1 << k
            for b in range(high):
                tables[g, high + b] = tables[g, b] + entry
    whole = packed.shape[0] - packed.shape[0] % 4
    for i in range(0, whole, 4):  # four sums at a time do not wait for one another
        first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
        for g in range(packed.shape[1]):
            first += tables[g, packed[i, g]]
            second += tables[g, packed[i + 1, g]]
            third += tables[g, packed[i + 2, g]]
            fourth += tables[g, packed[i + 3, g]]
        scores[i], scores[i + 1], scores[i + 2], scores[i + 3] = first, second, third, fourth
    for i in range(whole, packed.shape[0]):
        total = 0.0
        for g in range(packed.shape[1]):
            total += tables[g, packed[i, g]]
        scores[i] = total


@kernel("void(uint8[:, ::1], float64[::1], float64[:, ::1])")
def bit_columns(packed: ByteArray, weights: FloatArray, tables: FloatArray) -> None:
    """Add to ``tables[g, b]`` the weight of the rows whose byte in group ``g`` is ``b``."""
    for i in range(packed.shape[0]):
        if weights[i] != 0.0:
            for g in range(packed.shape[1]):
                tables[g, packed[i, g]] += weights[i]


@kernel("void(float64[::1], int32[::1], float64[::1], int64, float64, float64, float64[::1])")
def histogram(
    scores: FloatArray, places: PlaceArray, mass: FloatArray, step: int, low: float, scale: float, bins: FloatArray
) -> None:
    """Add the mass of the scores at some places to the bins ``(score - low) * scale``."""
    top = bins.size - 1
    for i in places:
        place = min(max(int((scores[i] - low) * scale), 0), top)
        bins[place] += mass[i * step]


@kernel("UniTuple(int64, 2)(float64[::1], int32[::1], float64, float64, float64, float64, int32[::1], int32[::1])")
def split_places(
    scores: FloatArray,
    places: PlaceArray,
    low: float,
    scale: float,
    bottom: float,
    top: float,
    above: PlaceArray,
    inside: PlaceArray,
) -> tuple[int, int]:
    """Set ``above`` to the places where ``(score - low) * scale >= top``, ``inside`` to others from ``bottom`` on.

    Returns how many they are. ``inside`` may be the places themselves.
    """
    # Every place is written, and counted where it belongs: a branch would be guessed wrong all along the tail.
    n_above, n_inside = 0, 0
    for i in places:
        height = (scores[i] - low) * scale
        above[n_above] = i
        n_above += height >= top
        inside[n_inside] = i
        n_inside += (height >= bottom) & (height < top)
    return n_above, n_inside


@kernel("void(int32[::1], uint8, uint8[::1])")
def code_places(places: PlaceArray, code: int, codes: ByteArray) -> None:
    """Give rows a code of two bits, four rows to the byte, zero on entry: ``FULL`` or ``PARTIAL``."""
    for place in places:
        codes[place >> 2] |= code << (2 * (place & 3))


@kernel("void(uint8[:, ::1], int32[::1], uint64[::1], float64[::1])")
def count_bits(packed: ByteArray, places: PlaceArray, spread: NDArray[np.uint64], counts: FloatArray) -> None:
    """Add to ``counts`` how many of the rows at some places have each bit set."""
    lanes = np.zeros(packed.shape[1], dtype=np.uint64)  # eight counters of a byte each
    whole = places.size - places.size % 4
    for start in range(0, whole, 252):  # as far as a byte counts
        for k in range(start, min(start + 252, whole), 4):  # four rows at a time read and write the counters once
            i, j, m, n = places[k], places[k + 1], places[k + 2], places[k + 3]
            for g in range(packed.shape[1]):
                two = spread[packed[i, g]] + spread[packed[j, g]]
                lanes[g] += two + (spread[packed[m, g]] + spread[packed[n, g]])
        for bit in range(counts.size):
            counts[bit] += (lanes[bit >> 3] >> np.uint64(8 * (bit & 7))) & np.uint64(255)
        lanes[:] = 0
    for i in places[whole:]:
        for bit in range(counts.size):
            counts[bit] += (packed[i, bit >> 3] >> (bit & 7)) & 1


@kernel("void(uint8[:, ::1], int32[::1], float64[::1], float64[:, ::1])")
def weighted_bits(packed: ByteArray, places: PlaceArray, mass: FloatArray, tables: FloatArray) -> None:
    """Add the masses of the rows at some places to tables of their bytes, as ``bit_columns`` does."""
    for place in places:
        own = mass[place]
        for g in range(packed.shape[1]):
            tables[g, packed[place, g]] += own


@kernel("void(uint8[::1], float64[::1], int64, float64, float64, float64[::1])")
def add_coded_weights(
    codes: ByteArray, mass: FloatArray, step: int, full: float, partial: float, weights: FloatArray
) -> None:
    """Add to ``weights`` what ``code_places`` coded, at the given weights of full and partial rows."""
    of_code = np.array([0.0, partial, full])
    for i in range(weights.size):
        weights[i] += of_code[(codes[i >> 2] >> (2 * (i & 3))) & 3] * mass[i * step]


@kernel("void(float64[::1], float64[::1], float64[::1])")
def log_rests(scores: FloatArray, logs: FloatArray, rests: FloatArray) -> None:
    """Set ``rests[k]`` to the log of ``sum over i >= k of exp(logs[i] + scores[i] - scores[k])``.

    From the end, each from the one after it: only differences of neighbouring scores are taken.
    """
    last = scores.size - 1
    rests[last] = logs[last]
    for k in range(last - 1, -1, -1):
        after = rests[k + 1] + (scores[k + 1] - scores[k])
        high, low = max(logs[k], after), min(logs[k], after)
        rests[k] = high + np.log1p(np.exp(low - high))


_CHUNK = 8192  # rows handled at once: their floats stay in the cache
_PACKED = 2048  # rows packed at once


class BitRows:
    """Some rows of the loss matrix: zero-one losses, eight models to the byte, none below ``low`` or above ``high``."""

    def __init__(self, packed: ByteArray, n_models: int) -> None:
        self.packed = packed
        self.n_rows, self.n_models = packed.shape[0], n_models
        self.low, self.high = 0.0, 1.0

    def scores(self, mixture: FloatArray, out: FloatArray) -> None:
        """Set ``out`` to ``losses @ mixture``."""
        bit_scores(self.packed, mixture, out)

    def columns(self, weights: FloatArray) -> FloatArray:
        """Return ``weights @ losses``."""
        tables = np.zeros((self.packed.shape[1], 256))
        bit_columns(self.packed, weights, tables)
        return (tables @ _BIT_OF_BYTE).ravel()[: self.n_models]

    def sums_at(self, places: PlaceArray, mass: FloatArray, step: int) -> FloatArray:
        """Return ``mass @ losses`` of the rows at some places."""
        if not step:
            counts = np.zeros(self.n_models)
            count_bits(self.packed, places, _SPREAD, counts)
            return np.asarray(counts * mass[0])
        tables = np.zeros((self.packed.shape[1], 256))
        weighted_bits(self.packed, places, mass, tables)
        return (tables @ _BIT_OF_BYTE).ravel()[: self.n_models]

    def totals(self, parts: list[FloatArray]) -> FloatArray:
        """Return ``weights @ losses`` for weights as ``exact_parts``: to the last bit the same in any order of rows."""
        tables = [np.array([np.bincount(byte, part, 256) for byte in self.packed.T]) for part in parts]
        return np.asarray(sum((table @ _BIT_OF_BYTE).ravel()[: self.n_models] for table in tables))

    def shares(self, mixture: FloatArray) -> FloatArray:
        """Return ``losses @ mixture`` of a few models, without a compiled loop: ``scores`` is for many."""
        shares = np.zeros(self.n_rows)
        for group, byte in enumerate(self.packed.T):
            models = slice(8 * group, min(8 * group + 8, self.n_models))
            if mixture[models].any():
                shares += (_BIT_OF_BYTE[:, : models.stop - models.start] @ mixture[models])[byte]
        return shares

    def only(self, places: IntArray) -> "BitRows":
        """Return some of the rows, given by their places in ascending order."""
        return self if places.size == self.n_rows else BitRows(self.packed[places], self.n_models)

    def check_loaded(self) -> None:
        """Check what came from a file: the kernels believe these sizes."""
        shape = (check_count(self.n_rows, "n_rows"), -(-check_count(self.n_models, "n_models") // 8))
        if self.packed.shape != shape or self.packed.dtype != np.uint8 or not self.packed.flags.c_contiguous:
            raise ValueError(f"bits of shape {self.packed.shape} are not {self.n_rows} rows of {self.n_models} models")


class RealRows:
    """Losses of any real type, with the methods of ``BitRows``; no float64 copy of the matrix is made."""

    def __init__(self, losses: AnyArray) -> None:
        self.losses = losses
        self.n_rows, self.n_models = losses.shape
        self.low, self.high = value_range(losses, "losses")

    def scores(self, mixture: FloatArray, out: FloatArray) -> None:
        for place, chunk in self._chunks():
            np.dot(chunk, mixture, out=out[place])

    def columns(self, weights: FloatArray) -> FloatArray:
        total = np.zeros(self.n_models)
        for place, chunk in self._chunks():
            total += weights[place] @ chunk
        return total

    def sums_at(self, places: PlaceArray, mass: FloatArray, step: int) -> FloatArray:
        total = np.zeros(self.n_models)
        for start in range(0, places.size, _CHUNK):
            some = places[start : start + _CHUNK]
            own = mass[some] if step else np.full(some.size, mass[0])
            total += own @ self.losses[some].astype(np.float64, copy=False)
        return total

    def _chunks(self) -> Iterator[tuple[slice, FloatArray]]:
        for start in range(0, self.n_rows, _CHUNK):
            place = slice(start, min(start + _CHUNK, self.n_rows))
            yield place, self.losses[place].astype(np.float64, copy=False)


def pack(losses: AnyArray) -> ByteArray | None:
    """Return zero-one losses packed to bits, or None as soon as another value turns up."""
    n_rows, n_models = losses.shape
    n_bytes = (n_models + 7) // 8
    packed = np.empty((n_rows, n_bytes), dtype=np.uint8)
    # Rows that end at a byte are packed all at once: row by row takes twice as long.
    padded = np.zeros((min(n_rows, _PACKED), 8 * n_bytes), dtype=np.uint8)
    for start in range(0, n_rows, _PACKED):
        chunk = losses[start : start + _PACKED]
        if not is_zero_one(chunk):
            return None
        own = padded[: len(chunk)]
        own[:, :n_models] = chunk
        packed[start : start + _PACKED] = np.packbits(own, bitorder="little").reshape(-1, n_bytes)
    return packed


def is_zero_one(chunk: AnyArray) -> bool:
    """Return whether all losses are 0 or 1."""
    if chunk.dtype == np.bool_:
        return True
    if chunk.dtype == np.uint8:  # the common large case
        return bool(chunk.max(initial=0) <= 1)
    return bool(((chunk == 0) | (chunk == 1)).all())


LossRows = BitRows | RealRows


def load_rows(losses: AnyArray) -> LossRows:
    """Return some rows of a loss matrix in their fastest form, checked to be finite."""
    packed = pack(losses)
    return RealRows(losses) if packed is None else BitRows(packed, losses.shape[1])


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
    vector, limits = _check_values_and_caps(losses, "losses", caps)
    edge, above = _edge(vector, limits)
    is_tied = vector == edge
    weights = np.where(vector > edge, limits, 0.0)
    share = (1.0 - above) / limits[is_tied].sum()
    weights[is_tied] = limits[is_tied] * min(max(share, 0.0), 1.0)
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
    vector, limits = _check_values_and_caps(losses, "losses", caps)
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
    vector, limits = _check_values_and_caps(scores, "scores", caps)
    order = np.argsort(-vector)
    falling, limits_ = vector[order], np.minimum(limits[order], 1.0)
    # The shift lies below the lowest score at which the weights do not yet sum to 1 ...
    first = bisect_left(range(vector.size), 1.0, key=lambda k: np.clip(falling - falling[k], 0.0, limits_).sum())
    base = falling[first - 1]
    heights, own = falling[falling >= base] - base, limits_[falling >= base]
    # ... and how far below, relative to that score, is the rise at which ``sum(min(heights + rise, own))`` is 1: before
    # the k-th weight reaches its cap, the first k have risen by their room and the others all alike.
    room = np.sort(np.maximum(own - heights, 0.0))
    filled = np.concatenate([[0.0], np.cumsum(room)[:-1]])
    remainder = 1.0 - float(np.clip(heights, 0.0, own).sum())
    rises = (remainder - filled) / np.arange(room.size, 0, -1)
    fits = np.flatnonzero(rises <= room)
    rise = max(float(rises[fits[0]]), 0.0) if fits.size else float(room[-1])
    return np.asarray(np.clip((vector - base) + rise, 0.0, limits))


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
    vector, limits = _check_values_and_caps(scores, "scores", caps)
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
    # The order in which weights reach their caps as the shift falls: by ``scores + lead``, highest first. Measured from
    # the edge of the worst weights, where it matters, the scores are small numbers; farther off, where sums are
    # rounded, the score decides and then the lead.
    lead, edge = logs - np.log(caps_), _edge(scores_, caps_)[0]
    order = np.lexsort((-lead, -scores_, -(np.clip(scores_ - edge, -_FAR, _FAR) + lead)))
    # How many of them are at their caps. With the first k there, weight k gets its share of the room they leave; the
    # first for which that is below its cap is the answer. The rest of the total is taken relative to each score in
    # turn, so nothing cancels.
    rests = np.empty(live.size)
    log_rests(scores_[order], logs[order], rests)
    with np.errstate(divide="ignore"):
        room = np.log(np.maximum(1.0 - (np.cumsum(caps_[order]) - caps_[order]), 0.0))
    below = np.flatnonzero(logs[order] - rests + room <= np.log(caps_[order]))
    is_full = np.zeros(live.size, dtype=np.bool_)
    is_full[order[: below[0] if below.size else live.size]] = True
    # Spread what the full weights leave over the others; what rounding in the order left too high is full too.
    free_weights = np.where(is_full, caps_, 0.0)
    while not is_full.all():
        rest = ~is_full
        shares = base[live][rest] * np.exp(scores_[rest] - scores_[rest].max())
        free_weights[rest] = max(1.0 - caps_[is_full].sum(), 0.0) * shares / shares.sum()
        too_high = free_weights > caps_ * (1.0 + _SLACK)
        if not too_high.any():
            break
        is_full = is_full | too_high
        free_weights = np.where(is_full, caps_, 0.0)
    weights = np.zeros(vector.size)
    weights[live] = np.minimum(free_weights, caps_)
    return weights


def _edge(losses: FloatArray, caps: FloatArray) -> tuple[float, float]:
    """Return the loss at which the tail begins, and the cap mass strictly above it."""
    order = np.argsort(-losses, kind="stable")
    reach = np.cumsum(caps[order])
    place = min(int(np.searchsorted(reach, 1.0)), losses.size - 1)
    edge = float(losses[order[place]])
    return edge, float(caps[losses > edge].sum())


def _check_values_and_caps(values: ArrayLike, name: str, caps: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return values and caps, one of each for every sample."""
    size = np.size(values)
    if size == 0:
        raise ValueError(f"{name} must hold at least one entry; got none.")
    vector = check_vector(values, name, size, "one entry for each sample")
    numbers = as_numbers(np.broadcast_to(caps, (size,)) if np.ndim(caps) == 0 else caps, "caps")
    numbers = np.where(numbers == np.inf, 1.0, numbers)  # no weight is larger
    limits = check_vector(numbers, "caps", size, "one cap for each sample")
    if limits.min() < 0:
        raise ValueError(f"caps must not be negative; got {float(limits.min())!r}.")
    total = float(limits.sum())
    if total < 1.0 - _SLACK:
        raise ValueError(
            f"caps must sum to at least 1, or no weights that sum to 1 stay below them; they sum to {total!r}."
        )
    return vector, limits / min(total, 1.0)
