"""A fitted tree as flat arrays, and the way down it."""

from typing import Any, NamedTuple

import numpy as np

from counterpoise._types import AnyArray, ByteArray, FloatArray, IntArray
from counterpoise.learners import _tree_kernels
from counterpoise.learners._threads import Workers
from counterpoise.learners.binning import BinnedFeatures, as_floats, row_chunks

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


class Nodes:
    """The nodes of a tree that grows, the root first."""

    def __init__(self) -> None:
        self.count = 0
        self.splits: dict[int, tuple[int, float, int, int, int]] = {}  # feature, threshold, missing_left, left, table
        self.categories: list[ByteArray] = []

    def add(self) -> int:
        """Add a leaf, and return its number."""
        self.count += 1
        return self.count - 1

    def split(self, node: int, binned: BinnedFeatures, feature: int, place: int, goes_left: ByteArray) -> int:
        """Split a leaf by the bins that go left, up to ``place`` if numeric, and return its left child."""
        left, _ = self.add(), self.add()
        threshold, table = np.nan, -1
        if binned.is_categorical[feature]:
            table = len(self.categories)
            self.categories.append(np.packbits(goes_left, bitorder="little"))
        else:
            edges = binned.edges[feature]
            threshold = float(edges[place]) if place < edges.size else np.inf  # all values left, missing ones right
        self.splits[node] = (feature, threshold, int(goes_left[binned.missing_bin]), left, table)
        return left

    def tree(self, sums: FloatArray) -> Tree:
        """Return the tree; ``sums`` are the weights of the classes in each leaf, zero elsewhere."""
        leaf = (_LEAF, np.nan, 0, 0, -1)
        feature, threshold, missing_left, left, table = zip(
            *(self.splits.get(node, leaf) for node in range(self.count)), strict=True
        )
        for node in sorted(self.splits, reverse=True):  # children come after their parents
            child = left[node]
            sums[node] = sums[child] + sums[child + 1]
        largest = sums.max(axis=1, keepdims=True)
        return Tree(
            np.array(feature, dtype=np.int64),
            np.array(threshold),
            np.array(missing_left, dtype=np.uint8),
            np.array(left, dtype=np.int64),
            np.array(table, dtype=np.int64),
            np.array(self.categories, dtype=np.uint8).reshape(-1, 32),
            sums / sums.sum(axis=1, keepdims=True),
            np.argmax(sums * _TIE >= largest, axis=1).astype(np.uint16),  # the first of equals
        )


def leaves_of_rows(tree: Tree, X: Any) -> AnyArray:
    """Return the leaf of each row of a matrix of values, dense or in compressed rows."""
    # Only the features in use are looked at, and only a few rows are held as floats at a time.
    used, feature = np.unique(tree.feature[tree.feature != _LEAF], return_inverse=True)
    place = np.full(tree.feature.size, _LEAF, dtype=np.int64)
    place[tree.feature != _LEAF] = feature
    leaves = np.zeros(X.shape[0], dtype=np.uint32)

    def walk(start: int, stop: int) -> None:
        for rows in row_chunks(used.size, start, stop):
            values = as_floats(X[rows][:, used])
            _tree_kernels.walk_values(
                values, place, tree.left, tree.threshold, tree.missing_left, tree.table, tree.categories, leaves[rows]
            )

    if used.size:
        with Workers(X.shape[0] * used.size) as workers:
            workers.map_ranges(walk, X.shape[0])
    return leaves


def leaves_of_bins(tree: Tree, binned: BinnedFeatures, rows: AnyArray | None = None) -> AnyArray:
    """Return the leaf of each of the rows, or of all, of features in the bins that the tree was fitted on."""
    tables = _tables(tree, binned)
    leaves = np.empty(len(binned) if rows is None else rows.size, dtype=np.uint32)

    def walk(start: int, stop: int) -> None:
        some = np.arange(start, stop, dtype=np.uint32) if rows is None else rows[start:stop]
        _tree_kernels.walk_bins(binned.bins, some, tree.feature, tree.left, tables, leaves[start:stop])

    with Workers(leaves.size) as workers:
        workers.map_ranges(walk, leaves.size)
    return leaves


def _tables(tree: Tree, binned: BinnedFeatures) -> ByteArray:
    """Return for every node which bins go left."""
    tables = np.zeros((tree.feature.size, 256), dtype=np.uint8)
    for node in np.flatnonzero(tree.feature != _LEAF):
        if tree.table[node] >= 0:
            tables[node] = np.unpackbits(tree.categories[tree.table[node]], bitorder="little")
        else:
            tables[node, : _bin_of_threshold(tree, int(node), binned) + 1] = 1
        tables[node, binned.missing_bin] = tree.missing_left[node]
    return tables


def _bin_of_threshold(tree: Tree, node: int, binned: BinnedFeatures) -> int:
    edges = binned.edges[tree.feature[node]]
    place = int(np.searchsorted(edges, tree.threshold[node]))
    if np.isfinite(tree.threshold[node]) and (place == edges.size or edges[place] != tree.threshold[node]):
        raise ValueError(
            f"The binned features must have the edges that the tree was fitted on; feature {tree.feature[node]} has no "
            f"edge at {float(tree.threshold[node])!r}. Bin new data with bin_like, or pass them as they are."
        )
    return place
