"""Compiled loops that send rows down a finished tree; they release the interpreter lock."""

import numpy as np
from numba import float64, int64, types, uint8, uint32, uint64, void

from counterpoise._base.compiled import kernel
from counterpoise._base.types import AnyArray, ByteArray, FloatArray, IntArray

_MISSING_BIN = 255

_bytes2 = uint8[:, ::1]
_rows = uint32[::1]
_slots = uint64[::1]
# What callers hand in may be read-only, mapped into memory from a file.
_bins = types.Array(uint8, 2, "C", readonly=True)
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
