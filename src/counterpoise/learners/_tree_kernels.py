"""Compiled loops over the rows of the nodes of one level, for a range of features.

A histogram of a node has shape (n_classes, n_slots): the bins of all features side by side, those of feature
``f`` from ``base[f]`` to ``base[f + 1]``. The class comes first so that a row finds its place by one multiplication,
whatever the number of features that are handled at once. Where leaves have a least number of samples, one more
"class" holds the number of rows.

All kernels release the interpreter lock; threads work on ranges of features, so that every sum is made by one
thread in the order of the rows and the number of threads does not change a bit of it. The last ones send rows down a
finished tree.
"""

import numpy as np
from numba import boolean, float64, int64, types, uint8, uint16, uint32, uint64, void

from counterpoise._base.compiled import helper, kernel
from counterpoise._base.types import AnyArray, ByteArray, FloatArray, IntArray

_BLOCK = 8192  # rows added for all features before the next: their weights stay in the cache
_LIGHT = 1e-3  # a child lighter than this part of its parent is added up whatever its number of rows: exact sums
_TIE = 1.0 + 1e-9  # classes whose weights are closer than this factor are equal: rounding must not choose

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


# No slices in the loops over features: numba would count the references of each, for the time of dozens of additions.
# No slice is set to another and no rows are added as a whole: each such line takes seconds to compile, most of them for
# the words of an error about shapes.


@helper
def _add_four(bins, four, lows, first, rows, weights, codes, n_slots, sums):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Add some rows to the histograms of four features.

    Four at once hide the time from one addition to the next into the same bin: 1.0 ns an addition where
    one feature at a time takes 2.1, and eight are no faster.
    """
    f0, f1, f2, f3 = four
    s0, s1, s2, s3 = lows
    for i in range(weights.size):
        if rows is None:  # noqa: SIM108 - decided when this is compiled, which it is not as an expression
            row = first + uint64(i)
        else:
            row = uint64(rows[i])
        place = uint64(codes[i]) * n_slots
        weight = weights[i]
        sums[place + (s0 + bins[f0, row])] += weight
        sums[place + (s1 + bins[f1, row])] += weight
        sums[place + (s2 + bins[f2, row])] += weight
        sums[place + (s3 + bins[f3, row])] += weight


@helper
def _add_one(bins, f, low, first, rows, weights, codes, n_slots, sums):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Add some rows to the histogram of one feature."""
    for i in range(weights.size):
        if rows is None:  # noqa: SIM108
            row = first + uint64(i)
        else:
            row = uint64(rows[i])
        sums[uint64(codes[i]) * n_slots + (low + bins[f, row])] += weights[i]


@helper
def _add_block(bins, features, base, first, rows, weights, codes, hist):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Add a block of rows, or if ``rows`` is None those from ``first`` on, to the histograms of some features."""
    sums, n_slots = hist.ravel(), uint64(hist.shape[1])
    fours = features.size - features.size % 4
    for i in range(0, fours, 4):
        f, g, h, j = uint64(features[i]), uint64(features[i + 1]), uint64(features[i + 2]), uint64(features[i + 3])
        lows = (base[f], base[g], base[h], base[j])
        _add_four(bins, (f, g, h, j), lows, first, rows, weights, codes, n_slots, sums)
    for i in range(fours, features.size):
        f = uint64(features[i])
        _add_one(bins, f, base[f], first, rows, weights, codes, n_slots, sums)


@helper
def add_all_to(bins, features, base, weights, codes, hist):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Add all rows, in order, to the histograms of some features."""
    for low in range(0, weights.size, _BLOCK):
        block = slice(low, min(low + _BLOCK, weights.size))
        _add_block(bins, features, base, uint64(low), None, weights[block], codes[block], hist)


@helper
def add_to(bins, features, base, rows, weights, codes, hist):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Add rows to the histograms of some features; weights and codes are in their order."""
    for low in range(0, weights.size, _BLOCK):
        block = slice(low, min(low + _BLOCK, weights.size))
        _add_block(bins, features, base, uint64(0), rows[block], weights[block], codes[block], hist)


@helper
def varying(base: AnyArray, first: int, last: int) -> IntArray:
    """Return the features from ``first`` to ``last`` that have more than one slot: the others cannot split."""
    features, n_varying = np.empty(last - first, dtype=np.int64), 0
    for f in range(first, last):
        if base[f + 1] - base[f] > 1:
            features[n_varying] = f
            n_varying += 1
    return features[:n_varying]


# One call does as much as it can: to take the interpreter lock up again costs a thread more than a small kernel.


@helper
def clear(hist: FloatArray, low: int, high: int) -> None:
    """Empty the bins from ``low`` to ``high`` of a histogram."""
    for k in range(hist.shape[0]):
        for place in range(low, high):
            hist[k, place] = 0.0


@kernel(void(_bins, int64, int64, _slots, _weights, _codes, _floats2, int64))
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
        clear(hist, int64(base[first]), int64(base[last]))
    add_all_to(bins, varying(base, first, last), base, weights, codes, hist)


@kernel(void(_bins, int64, int64, _slots, _rows, _weights, _codes, _ints2, _floats3, int64))
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
    features = varying(base, first, last)
    for part in range(parts.shape[0]):
        slot, here = parts[part, 2], slice(parts[part, 0], parts[part, 1])
        if is_fresh:
            clear(hists[slot], int64(base[first]), int64(base[last]))
        add_to(bins, features, base, rows[here], weights[here], codes[here], hists[slot])


@kernel(void(int64, int64, _ints2, _floats3))
def subtract(low: int, high: int, pairs: IntArray, hists: FloatArray) -> None:
    """For each pair (slot, other): subtract the other histogram."""
    for pair in range(pairs.shape[0]):
        slot, other = pairs[pair, 0], pairs[pair, 1]
        for k in range(hists.shape[1]):
            for place in range(low, high):
                hists[slot, k, place] -= hists[other, k, place]


@helper
def move_rows(start: int, stop: int, column: ByteArray, table: ByteArray, rows: AnyArray, spare: AnyArray) -> int:
    """Move the rows whose bin is in the table to the front, in order, and return where the others begin."""
    n_left, n_right = start, start
    for i in range(start, stop):
        row = rows[i]
        rows[n_left] = row  # both writes, so that no branch is guessed wrong
        spare[n_right] = row
        goes_left = int64(table[column[row]])
        n_left += goes_left
        n_right += 1 - goes_left
    for i in range(n_right - start):
        rows[n_left + i] = spare[start + i]
    return n_left


@kernel(boolean(int64, _floats, int64, float64, int64))
def can_split(n_rows: int, sums: FloatArray, n_classes: int, least_weight: float, least_rows: int) -> bool:
    """Return whether a node has enough rows and more than one class in it."""
    n_present = 0
    for k in range(n_classes):
        n_present += sums[k] > least_weight
    return n_present > 1 and n_rows >= least_rows


@kernel(int64(_floats2, int64, int64, int64))
def side_to_add(sums: FloatArray, n_classes: int, n_left: int, n_right: int) -> int:
    """Return which of two children is added up, 0 the left: the lighter by far, else the one of fewer rows."""
    left, right = 0.0, 0.0
    for k in range(n_classes):
        left += sums[0, k]
        right += sums[1, k]
    if min(left, right) < _LIGHT * (left + right):
        return int(right < left)
    return int(n_right < n_left)


@kernel(int64(_weights, _rows))
def rows_of_weight(weights: FloatArray, rows: AnyArray) -> int:
    """Write the rows that have weight in front, in order, and the others behind; return how many those are."""
    n_rows, n_idle = 0, 0
    for row in range(weights.size):
        if weights[row] > 0:
            rows[n_rows] = row
            n_rows += 1
        else:
            n_idle += 1
            rows[weights.size - n_idle] = row
    return n_idle


# The loops below go over the parts from ``first`` to ``last``: (start, stop, what), where the rows of a node lie.


@kernel(void(int64, int64, _ints2, _bins, _rows, _rows, _bytes2, _ints))
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
        start, stop, feature = parts[part, 0], parts[part, 1], parts[part, 2]
        middles[part] = move_rows(start, stop, bins[feature], tables[part], rows, spare)


@kernel(void(int64, int64, _ints2, _rows, _weights, _codes, _floats, _codes))
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


@kernel(void(int64, int64, _ints2, _rows, _weights, _codes, _floats2))
def class_sums(
    first: int, last: int, parts: IntArray, rows: AnyArray, weights: FloatArray, codes: AnyArray, sums: FloatArray
) -> None:
    """For each part (start, stop, node): set the node's row of ``sums`` to the weight of each class."""
    n_classes = sums.shape[1]
    fours = np.empty((4, n_classes))  # four sums of each, so that an addition need not wait for the one before
    for part in range(first, last):
        node = parts[part, 2]
        for place in range(4):
            for k in range(n_classes):
                fours[place, k] = 0.0
        for i in range(parts[part, 0], parts[part, 1]):
            fours[i & 3, codes[rows[i]]] += weights[rows[i]]
        for k in range(n_classes):
            sums[node, k] = (fours[0, k] + fours[1, k]) + (fours[2, k] + fours[3, k])


@kernel(void(int64, int64, _ints2, _rows, _codes, _codes))
def spread(first: int, last: int, parts: IntArray, rows: AnyArray, labels: AnyArray, out: AnyArray) -> None:
    """For each part (start, stop, node): write the node's label to its rows."""
    for part in range(first, last):
        for i in range(parts[part, 0], parts[part, 1]):
            out[rows[i]] = labels[parts[part, 2]]


@kernel(void(_ints, _ints, _floats2, _codes))
def settle_nodes(feature: IntArray, left: IntArray, sums: FloatArray, labels: AnyArray) -> None:
    """Turn the weights of the classes, given in the leaves only, into shares in every node; label each by the largest.

    Of equals the first. Children come after their parents.
    """
    for node in range(feature.size - 1, -1, -1):
        if feature[node] >= 0:
            for k in range(sums.shape[1]):
                sums[node, k] = sums[left[node], k] + sums[left[node] + 1, k]
    for node in range(feature.size):
        total, best, largest = 0.0, 0, sums[node, 0]
        for k in range(1, sums.shape[1]):
            largest = max(largest, sums[node, k])
        for k in range(sums.shape[1] - 1, -1, -1):
            total += sums[node, k]
            if sums[node, k] * _TIE >= largest:
                best = k
        labels[node] = best
        for k in range(sums.shape[1]):
            sums[node, k] /= total


_MISSING_BIN = 255

# What callers hand in may be read-only, mapped into memory from a file.
_values = types.Array(float64, 2, "C", readonly=True)
_node_ints = types.Array(int64, 1, "C", readonly=True)
_node_floats = types.Array(float64, 1, "C", readonly=True)
_node_flags = types.Array(uint8, 1, "C", readonly=True)
_node_sets = types.Array(uint8, 2, "C", readonly=True)


@kernel(int64(_node_ints, _node_floats, _node_flags, _node_ints, _node_sets, _slots, _node_ints, _node_floats, _bytes2))
def fill_tables(
    feature: IntArray,
    threshold: FloatArray,
    missing_left: ByteArray,
    table: IntArray,
    categories: ByteArray,
    base: AnyArray,
    n_bins: IntArray,
    edges: FloatArray,
    tables: ByteArray,
) -> int:
    """Write for every node that splits which bins go left.

    Return the first node whose threshold is not among the edges of its feature, or -1.
    """
    for node in range(feature.size):
        f = feature[node]
        if f < 0:
            continue
        if table[node] >= 0:
            for b in range(256):
                tables[node, b] = (categories[table[node], b >> 3] >> (b & 7)) & 1
        else:
            low = int64(base[f])
            place = 0
            while place < n_bins[f] and edges[low + place] < threshold[node]:
                place += 1
            if place == n_bins[f] or edges[low + place] != threshold[node]:
                return node
            for b in range(256):
                tables[node, b] = b <= place
        tables[node, _MISSING_BIN] = missing_left[node]
    return -1


@kernel(void(_bins, _rows, _node_ints, _node_ints, _bytes2, _rows))
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


@kernel(void(_values, _node_ints, _node_ints, _node_floats, _node_flags, _node_ints, _node_sets, _rows))
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
