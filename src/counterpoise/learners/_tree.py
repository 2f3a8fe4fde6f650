"""A fitted tree as flat arrays, and the compiled walks of rows down to its leaves."""

from typing import Any, NamedTuple

import numpy as np
from numba import float64, int64, types, uint8, uint32, uint64, void

from counterpoise._base.compiled import kernel
from counterpoise._base.types import AnyArray, ByteArray, FloatArray, IntArray
from counterpoise.learners.binning import CHUNK, MISSING_BIN, BinnedFeatures, Workers, as_floats

_LEAF = -1
_TIE = 1.0 + 1e-9  # classes whose weights are closer than this factor are equal: rounding must not choose


class Tree(NamedTuple):
    """The nodes of a tree, the root first; a left child is followed by its sibling on the right."""

    feature: IntArray  # that the node splits by, -1 in a leaf
    threshold: FloatArray  # values up to it go left, where the feature is numeric
    missing_left: ByteArray  # 1 where missing values, and categories that the node never saw, go left
    left: IntArray  # the left child
    table: IntArray  # row of ``categories``, -1 where the feature is numeric
    categories: ByteArray  # (n_tables, 32): bit c of a row is set where category c goes left
    shares: FloatArray  # (n_nodes, n_classes): of the weight in the node
    labels: AnyArray  # the class with the largest share


def check_tree(tree: Tree, n_features: int, n_classes: int) -> None:
    """Check a tree that came from a file, so that every way down it ends and stays inside of its arrays."""
    n_nodes = len(tree.feature)
    expected = {
        **dict.fromkeys(("feature", "left", "table"), ("i8", (n_nodes,))),
        "threshold": ("f8", (n_nodes,)),
        "missing_left": ("u1", (n_nodes,)),
        "labels": ("u2", (n_nodes,)),
        "shares": ("f8", (n_nodes, n_classes)),
        "categories": ("u1", (len(tree.categories), 32)),
    }
    for name, (kind, shape) in expected.items():
        array = getattr(tree, name)
        if array.shape != shape or array.dtype != kind:
            raise ValueError(f"{name} of a tree has the shape {array.shape} and the type {array.dtype}")
    splits = tree.feature >= 0
    nodes, left = np.arange(n_nodes)[splits], tree.left[splits]
    inside = [
        n_nodes > 0,
        (tree.feature < n_features).all(),
        ((left > nodes) & (left < n_nodes - 1)).all(),  # a child comes after its parent, and has a sibling
        (tree.table < len(tree.categories)).all(),
        (tree.labels < n_classes).all(),
    ]
    if not all(inside):
        raise ValueError("a tree points outside of its nodes, features, categories or classes")


def make_tree(
    binned: BinnedFeatures, feature: IntArray, place: IntArray, left: IntArray, goes_left: ByteArray, sums: FloatArray
) -> Tree:
    """Return the tree of some nodes.

    ``place`` is the last bin that goes left where a feature is numeric, ``goes_left`` of shape (n_nodes, 32) has bit b
    of a row set where bin b goes left, and ``sums`` of shape (n_nodes, n_classes) are the weights of the classes.
    """
    is_split = feature != _LEAF
    is_set = is_split & binned.is_categorical[feature]
    base, edges, _ = binned.layout
    is_numeric, threshold = is_split & ~is_set, np.full(feature.size, np.nan)
    threshold[is_numeric] = edges[base[feature[is_numeric]].astype(np.int64) + place[is_numeric]]
    return Tree(
        feature=feature,
        threshold=threshold,
        missing_left=np.where(is_split, goes_left[:, MISSING_BIN >> 3] >> (MISSING_BIN & 7), 0).astype(np.uint8),
        left=left,
        table=np.where(is_set, np.cumsum(is_set) - 1, -1),
        categories=goes_left[is_set].ravel().reshape(-1, 32),  # so the strides of none are what a file gives back
        shares=sums / sums.sum(axis=1, keepdims=True),
        labels=np.argmax(sums * _TIE >= sums.max(axis=1, keepdims=True), axis=1).astype(np.uint16),
    )


# What callers hand in may be read-only, mapped into memory from a file.
_bins = types.Array(uint8, 2, "C", readonly=True)
_bytes2 = uint8[:, ::1]
_rows = uint32[::1]
_slots = uint64[::1]
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
        tables[node, MISSING_BIN] = missing_left[node]
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
            elif 0.0 <= value < MISSING_BIN and value == np.floor(value):
                code = int64(value)
                goes_left = (categories[table[node], code >> 3] >> (code & 7)) & 1 > 0
            else:
                goes_left = missing_left[node] > 0
            node = left[node] if goes_left else left[node] + 1
        out[i] = node


def leaves_of_rows(tree: Tree, X: Any) -> AnyArray:
    """Return the leaf of each row of a matrix of values, dense or in compressed rows."""
    features, place = None, tree.feature
    if not (isinstance(X, np.ndarray) and X.dtype == np.float64 and X.flags.c_contiguous):
        # Only the features that the tree looks at are turned into floats, and only for a few rows at a time.
        is_split = tree.feature != _LEAF
        features, places = np.unique(tree.feature[is_split], return_inverse=True)
        place = np.full(tree.feature.size, _LEAF, dtype=np.int64)
        place[is_split] = places
    leaves = np.zeros(X.shape[0], dtype=np.uint32)
    splits = (place, tree.left, tree.threshold, tree.missing_left, tree.table, tree.categories)

    def walk(start: int, stop: int) -> None:
        if features is None:
            walk_values(X[start:stop], *splits, leaves[start:stop])
            return
        step = max(1, CHUNK // features.size)
        for first in range(start, stop, step):
            rows = slice(first, min(first + step, stop))
            walk_values(as_floats(X[rows][:, features]), *splits, leaves[rows])

    if tree.feature.size > 1:
        with Workers(X.shape[0] * (1 if features is None else features.size)) as workers:
            workers.map_ranges(walk, X.shape[0])
    return leaves


def leaves_of_bins(tree: Tree, binned: BinnedFeatures, rows: AnyArray | None = None) -> AnyArray:
    """Return the leaf of each of the rows, or of all, of features in the bins that the tree was fitted on."""
    tables = np.empty((tree.feature.size, 256), dtype=np.uint8)  # for every node that splits which bins go left
    base, edges, _ = binned.layout
    splits = (tree.feature, tree.threshold, tree.missing_left, tree.table, tree.categories)
    bad = fill_tables(*splits, base, binned.n_bins, edges, tables)
    if bad >= 0:
        raise ValueError(
            f"The binned features must have the edges that the tree was fitted on; feature {tree.feature[bad]} has no "
            f"edge at {float(tree.threshold[bad])!r}. Bin new data with bin_like, or pass them as they are."
        )
    leaves = np.empty(len(binned) if rows is None else rows.size, dtype=np.uint32)

    def walk(start: int, stop: int) -> None:
        some = np.arange(start, stop, dtype=np.uint32) if rows is None else rows[start:stop]
        walk_bins(binned.bins, some, tree.feature, tree.left, tables, leaves[start:stop])

    with Workers(leaves.size) as workers:
        workers.map_ranges(walk, leaves.size)
    return leaves
