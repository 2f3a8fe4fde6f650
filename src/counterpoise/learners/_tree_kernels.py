"""Compiled loops over the rows of the nodes of one level, for a range of features.

A histogram of a node has shape (n_classes, n_slots): the bins of all features side by side, those of feature
``f`` from ``base[f]`` to ``base[f + 1]``. The class comes first so that a row finds its place by one multiplication,
whatever the number of features that are handled at once. Where leaves have a least number of samples, one more
"class" holds the number of rows.

All kernels release the interpreter lock; threads work on ranges of features, so that every sum is made by one
thread in the order of the rows and the number of threads does not change a bit of it.
"""

import numpy as np
from numba import float64, int64, njit, types, uint8, uint16, uint32, uint64, void

from counterpoise._compiled import kernel
from counterpoise._types import AnyArray, ByteArray, FloatArray, IntArray

_BLOCK = 8192  # rows added for all features before the next: their weights stay in the cache

_MISSING_BIN = 255

_bytes2 = uint8[:, ::1]
_codes = uint16[::1]
_rows = uint32[::1]
_slots = uint64[::1]
_ints = int64[::1]
_ints2 = int64[:, ::1]
_floats = float64[::1]
_floats2 = float64[:, ::1]
_floats3 = float64[:, :, ::1]
# What callers hand in may be read-only, mapped into memory from a file.
_bins = types.Array(uint8, 2, "C", readonly=True)
_weights = types.Array(float64, 1, "C", readonly=True)
_values = types.Array(float64, 2, "C", readonly=True)
_node_ints = types.Array(int64, 1, "C", readonly=True)
_node_floats = types.Array(float64, 1, "C", readonly=True)
_node_flags = types.Array(uint8, 1, "C", readonly=True)
_node_sets = types.Array(uint8, 2, "C", readonly=True)


@njit(nogil=True)
def _add_four(columns, rows, weights, codes, n_slots, sums):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Add some rows to the histograms of four features.

    Four at once hide the time from one addition to the next into the same bin: 1.0 ns an addition where
    one feature at a time takes 2.1, and eight are no faster.
    """
    c0, c1, c2, c3 = columns
    s0, s1, s2, s3 = sums
    for i in range(weights.size):
        if rows is None:  # noqa: SIM108 - decided when this is compiled, which it is not as an expression
            row = uint64(i)
        else:
            row = uint64(rows[i])
        place = uint64(codes[i]) * n_slots
        weight = weights[i]
        s0[place + c0[row]] += weight
        s1[place + c1[row]] += weight
        s2[place + c2[row]] += weight
        s3[place + c3[row]] += weight


@njit(nogil=True)
def _add_one(column, rows, weights, codes, n_slots, sums):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Add some rows to the histogram of one feature."""
    for i in range(weights.size):
        if rows is None:  # noqa: SIM108
            row = uint64(i)
        else:
            row = uint64(rows[i])
        sums[uint64(codes[i]) * n_slots + column[row]] += weights[i]


@njit(nogil=True)
def _add_block(bins, first, last, base, rows, weights, codes, hist):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Add a block of rows to the histograms of the features from ``first`` to ``last``."""
    sums, n_slots = hist.ravel(), uint64(hist.shape[1])
    fours = last - (last - first) % 4
    for f in range(first, fours, 4):
        columns = (bins[f], bins[f + 1], bins[f + 2], bins[f + 3])
        places = (sums[base[f] :], sums[base[f + 1] :], sums[base[f + 2] :], sums[base[f + 3] :])
        _add_four(columns, rows, weights, codes, n_slots, places)
    for f in range(fours, last):
        _add_one(bins[f], rows, weights, codes, n_slots, sums[base[f] :])


# One call does as much as it can: to take the interpreter lock up again costs a thread more than a small kernel.


@njit(nogil=True)
def _clear(hist, low, high):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Empty the bins from ``low`` to ``high`` of a histogram."""
    for k in range(hist.shape[0]):
        for place in range(low, high):
            hist[k, place] = 0.0


@kernel([void(_bins, int64, int64, _slots, _weights, _codes, _floats2, int64)])
def add_all_rows(
    bins: ByteArray,
    first: int,
    last: int,
    base: AnyArray,
    weights: FloatArray,
    codes: AnyArray,
    hist: FloatArray,
    is_fresh: int,
) -> None:
    """Add every row, in order, without looking its number up; a fresh histogram is emptied first."""
    if is_fresh:
        _clear(hist, int64(base[first]), int64(base[last]))
    for low in range(0, weights.size, _BLOCK):
        block = slice(low, min(low + _BLOCK, weights.size))
        _add_block(bins[:, block], first, last, base, None, weights[block], codes[block], hist)


@kernel([void(_bins, int64, int64, _slots, _rows, _weights, _codes, _ints2, _floats3, int64)])
def add_rows(
    bins: ByteArray,
    first: int,
    last: int,
    base: AnyArray,
    rows: AnyArray,
    weights: FloatArray,
    codes: AnyArray,
    parts: IntArray,
    hists: FloatArray,
    is_fresh: int,
) -> None:
    """For each part (start, stop, slot): add those rows to that histogram; weights and codes are in their order.

    Fresh histograms are emptied first.
    """
    for part in range(parts.shape[0]):
        start, stop, slot = parts[part]
        if is_fresh:
            _clear(hists[slot], int64(base[first]), int64(base[last]))
        for low in range(start, stop, _BLOCK):
            block = slice(low, min(low + _BLOCK, stop))
            _add_block(bins, first, last, base, rows[block], weights[block], codes[block], hists[slot])


@kernel([void(int64, int64, _ints2, _floats3)])
def subtract(low: int, high: int, pairs: IntArray, hists: FloatArray) -> None:
    """For each pair (slot, other): subtract the other histogram."""
    for pair in range(pairs.shape[0]):
        slot, other = pairs[pair]
        for k in range(hists.shape[1]):
            for place in range(low, high):
                hists[slot, k, place] -= hists[other, k, place]


# The loops below go over the parts from ``first`` to ``last``: (start, stop, what), where the rows of a node lie.


@kernel([void(int64, int64, _ints2, _bins, _rows, _rows, _bytes2, _ints)])
def partition(
    first: int,
    last: int,
    parts: IntArray,
    bins: ByteArray,
    rows: AnyArray,
    spare: AnyArray,
    tables: ByteArray,
    middles: IntArray,
) -> None:
    """For each part (start, stop, feature): move the rows whose bin is in the part's table to the front, in order."""
    for part in range(first, last):
        start, stop, feature = parts[part]
        column, table = bins[feature], tables[part]
        n_left, n_right = start, start
        for i in range(start, stop):
            row = rows[i]
            rows[n_left] = row  # both writes, so that no branch is guessed wrong
            spare[n_right] = row
            goes_left = int64(table[column[row]])
            n_left += goes_left
            n_right += 1 - goes_left
        rows[n_left:stop] = spare[start:n_right]
        middles[part] = n_left


@kernel([void(int64, int64, _ints2, _rows, _weights, _codes, _floats, _codes)])
def gather(
    first: int,
    last: int,
    parts: IntArray,
    rows: AnyArray,
    weights: FloatArray,
    codes: AnyArray,
    own_weights: FloatArray,
    own_codes: AnyArray,
) -> None:
    """For each part (start, stop, slot): bring weights and codes into the order of its rows, once for all features."""
    for part in range(first, last):
        for i in range(parts[part, 0], parts[part, 1]):
            own_weights[i] = weights[rows[i]]
            own_codes[i] = codes[rows[i]]


@kernel([void(int64, int64, _ints2, _rows, _weights, _codes, _floats2)])
def class_sums(
    first: int,
    last: int,
    parts: IntArray,
    rows: AnyArray,
    weights: FloatArray,
    codes: AnyArray,
    sums: FloatArray,
) -> None:
    """For each part (start, stop, node): set the node's row of ``sums`` to the weight of each class."""
    n_classes = sums.shape[1]
    fours = np.empty((4, n_classes))  # four sums of each, so that an addition need not wait for the one before
    for part in range(first, last):
        start, stop, node = parts[part]
        fours[:] = 0.0
        for i in range(start, stop):
            fours[i & 3, codes[rows[i]]] += weights[rows[i]]
        for k in range(n_classes):
            sums[node, k] = (fours[0, k] + fours[1, k]) + (fours[2, k] + fours[3, k])


@kernel([void(int64, int64, _ints2, _rows, _codes, _codes)])
def spread(first: int, last: int, parts: IntArray, rows: AnyArray, labels: AnyArray, out: AnyArray) -> None:
    """For each part (start, stop, node): write the node's label to its rows."""
    for part in range(first, last):
        start, stop, node = parts[part]
        for i in range(start, stop):
            out[rows[i]] = labels[node]


@kernel([void(_bins, _rows, _node_ints, _node_ints, _bytes2, _rows)])
def walk_bins(
    bins: ByteArray, rows: AnyArray, feature: IntArray, left: IntArray, tables: ByteArray, out: AnyArray
) -> None:
    """Write the leaf of each of the rows."""
    for i in range(rows.size):
        node = 0
        while feature[node] >= 0:
            goes_left = tables[node, bins[feature[node], rows[i]]]
            node = left[node] + 1 - int64(goes_left)
        out[i] = node


@kernel([void(_values, _node_ints, _node_ints, _node_floats, _node_flags, _node_ints, _node_sets, _rows)])
def walk_values(
    values: FloatArray,
    feature: IntArray,
    left: IntArray,
    threshold: FloatArray,
    missing_left: ByteArray,
    table: IntArray,
    categories: ByteArray,
    out: AnyArray,
) -> None:
    """Write the leaf of each row of values."""
    for i in range(values.shape[0]):
        node = 0
        while feature[node] >= 0:
            value = values[i, feature[node]]
            if np.isnan(value):
                goes_left = missing_left[node] > 0
            elif table[node] < 0:
                goes_left = value <= threshold[node]
            elif 0.0 <= value < _MISSING_BIN and value == np.floor(value):
                code = int64(value)
                goes_left = (categories[table[node], code >> 3] >> (code & 7)) & 1 > 0
            else:
                goes_left = missing_left[node] > 0
            node = left[node] if goes_left else left[node] + 1
        out[i] = node
