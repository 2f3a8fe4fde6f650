"""Compiled loops over the rows of one shard.

All release the interpreter lock, so that shards run side by side in threads.

``mass`` is the sample weights and ``step`` is 1, or ``mass`` is ``[1.0]`` and ``step`` is 0: equal weights
then cost neither memory nor a second copy of each loop.
"""

import numpy as np
from numba import float64, int64, types, uint8, void

from counterpoise._base.compiled import kernel
from counterpoise._base.types import ByteArray, FloatArray

_bytes = uint8[::1]
_bytes2 = uint8[:, ::1]
_floats = float64[::1]
_PARTIAL, _FULL = 1, 2
_floats2 = float64[:, ::1]
_floats3 = float64[:, :, ::1]


@kernel(void(_floats, _floats2))
def fill_tables(mixture: FloatArray, tables: FloatArray) -> None:
    """Set ``tables[g, b]`` to the sum of the mixture over the models whose bit is set in byte ``b`` of group ``g``."""
    for g in range(tables.shape[0]):
        tables[g, 0] = 0.0
        for k in range(8):
            entry = mixture[8 * g + k] if 8 * g + k < mixture.size else 0.0
            high = 1 << k
            for b in range(high):
                tables[g, high + b] = tables[g, b] + entry


@kernel(void(_bytes2, _floats2, _floats))
def bit_scores(packed: ByteArray, tables: FloatArray, scores: FloatArray) -> None:
    """Set ``scores`` to the product of the zero-one rows and the mixture: one look-up for eight models."""
    for i in range(packed.shape[0]):
        total = 0.0
        for g in range(packed.shape[1]):
            total += tables[g, packed[i, g]]
        scores[i] = total


@kernel(void(_bytes2, _floats, _floats2))
def bit_columns(packed: ByteArray, weights: FloatArray, tables: FloatArray) -> None:
    """Add to ``tables[g, b]`` the weight of the rows whose byte in group ``g`` is ``b``."""
    for i in range(packed.shape[0]):
        if weights[i] != 0.0:
            for g in range(packed.shape[1]):
                tables[g, packed[i, g]] += weights[i]


@kernel(void(_floats, _floats, int64, float64, float64, _floats))
def histogram(scores: FloatArray, mass: FloatArray, step: int, low: float, scale: float, bins: FloatArray) -> None:
    """Add the mass of every score to the bin ``(score - low) * scale``."""
    top = bins.size - 1
    for i in range(scores.size):
        place = min(max(int64((scores[i] - low) * scale), 0), top)
        bins[place] += mass[i * step]


@kernel(types.UniTuple(_floats, 2)(_floats, _floats, int64, float64, float64, int64, int64))
def keep_bin(
    scores: FloatArray, mass: FloatArray, step: int, low: float, scale: float, top: int, chosen: int
) -> tuple[FloatArray, FloatArray]:
    """Return the scores of one bin of the histogram, and their masses (``[1.0]`` where all are equal)."""
    kept = np.empty(scores.size)
    kept_mass = np.empty(scores.size if step else 1)
    kept_mass[0] = 1.0
    n_kept = 0
    for i in range(scores.size):
        place = min(max(int64((scores[i] - low) * scale), 0), top)
        if place == chosen:
            kept[n_kept] = scores[i]
            if step:
                kept_mass[n_kept] = mass[i]
            n_kept += 1
    return kept[:n_kept].copy(), kept_mass[: n_kept if step else 1].copy()


@kernel(void(_floats, float64, float64, _bytes))
def tail_codes(scores: FloatArray, low: float, high: float, codes: ByteArray) -> None:
    """Code with two bits a row, zero on entry: ``_FULL`` for scores above ``high``, ``_PARTIAL`` from ``low`` on."""
    for i in range(scores.size):
        if scores[i] > high:
            codes[i >> 2] |= _FULL << (2 * (i & 3))
        elif scores[i] >= low:
            codes[i >> 2] |= _PARTIAL << (2 * (i & 3))


@kernel(void(_bytes2, _bytes, _floats, int64, _floats3))
def coded_bit_columns(packed: ByteArray, codes: ByteArray, mass: FloatArray, step: int, tables: FloatArray) -> None:
    """Add the masses of rows to tables of their bytes, as ``bit_columns`` does: of full rows, then of partial ones."""
    for four in range(codes.size):
        if codes[four] == 0:  # most rows are below the edge
            continue
        for i in range(4 * four, min(4 * four + 4, packed.shape[0])):
            code = (codes[four] >> (2 * (i & 3))) & 3
            if code == _FULL:
                for g in range(packed.shape[1]):
                    tables[0, g, packed[i, g]] += mass[i * step]
            elif code == _PARTIAL:
                for g in range(packed.shape[1]):
                    tables[1, g, packed[i, g]] += mass[i * step]


@kernel(void(_bytes, _floats, int64, float64, float64, _floats))
def add_coded_weights(
    codes: ByteArray, mass: FloatArray, step: int, full: float, partial: float, weights: FloatArray
) -> None:
    """Add to ``weights`` what ``tail_codes`` coded, at the given weights of full and partial rows."""
    for i in range(weights.size):
        code = (codes[i >> 2] >> (2 * (i & 3))) & 3
        if code == _FULL:
            weights[i] += full * mass[i * step]
        elif code == _PARTIAL:
            weights[i] += partial * mass[i * step]


@kernel(void(_floats, _floats, _floats))
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
