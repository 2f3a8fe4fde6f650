"""A fitted tree as flat arrays, and the way down it."""

from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import AnyArray, ByteArray, FloatArray, IntArray
from counterpoise.learners import _tree_kernels, _walk_kernels
from counterpoise.learners._threads import Workers
from counterpoise.learners.binning import BinnedFeatures, as_floats, row_chunks

_LEAF = -1


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
    wanted = {
        **dict.fromkeys(("feature", "left", "table"), ("i8", (n_nodes,))),
        "threshold": ("f8", (n_nodes,)),
        "missing_left": ("u1", (n_nodes,)),
        "labels": ("u2", (n_nodes,)),
        "shares": ("f8", (n_nodes, n_classes)),
        "categories": ("u1", (len(tree.categories), 32)),
    }
    for name, (kind, shape) in wanted.items():
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
        features, lefts, labels = np.array(feature), np.array(left), np.empty(self.count, dtype=np.uint16)
        _tree_kernels.settle_nodes(features, lefts, sums, labels)
        return Tree(
            features,
            np.array(threshold),
            np.array(missing_left, dtype=np.uint8),
            lefts,
            np.array(table),
            np.array(self.categories, dtype=np.uint8).reshape(-1, 32),
            sums,
            labels,
        )


def leaves_of_rows(tree: Tree, X: Any) -> AnyArray:
    """Return the leaf of each row of a matrix of values, dense or in compressed rows."""
    used, place = _used_features(tree, X)
    leaves = np.zeros(X.shape[0], dtype=np.uint32)
    splits = (place, tree.left, tree.threshold, tree.missing_left, tree.table, tree.categories)

    def walk(start: int, stop: int) -> None:
        if used is None:
            _walk_kernels.walk_values(X[start:stop], *splits, leaves[start:stop])
            return
        for rows in row_chunks(used.size, start, stop):
            _walk_kernels.walk_values(as_floats(X[rows][:, used]), *splits, leaves[rows])

    if tree.feature.size > 1:
        with Workers(X.shape[0] * (1 if used is None else used.size)) as workers:
            workers.map_ranges(walk, X.shape[0])
    return leaves


def _used_features(tree: Tree, X: Any) -> tuple[IntArray | None, IntArray]:
    """Return the features to look at and the place of each node's among them; None if ``X`` can be read as it is.

    Of other matrices only these features are turned into floats, and only for a few rows at a time.
    """
    if isinstance(X, np.ndarray) and X.dtype == np.float64 and X.flags.c_contiguous:
        return None, tree.feature
    is_split = tree.feature != _LEAF
    used, places = np.unique(tree.feature[is_split], return_inverse=True)
    place = np.full(tree.feature.size, _LEAF, dtype=np.int64)
    place[is_split] = places
    return used, place


def leaves_of_bins(tree: Tree, binned: BinnedFeatures, rows: AnyArray | None = None) -> AnyArray:
    """Return the leaf of each of the rows, or of all, of features in the bins that the tree was fitted on."""
    tables = _tables(tree, binned)
    leaves = np.empty(len(binned) if rows is None else rows.size, dtype=np.uint32)

    def walk(start: int, stop: int) -> None:
        some = np.arange(start, stop, dtype=np.uint32) if rows is None else rows[start:stop]
        _walk_kernels.walk_bins(binned.bins, some, tree.feature, tree.left, tables, leaves[start:stop])

    with Workers(leaves.size) as workers:
        workers.map_ranges(walk, leaves.size)
    return leaves


def _tables(tree: Tree, binned: BinnedFeatures) -> ByteArray:
    """Return for every node that splits which bins go left."""
    tables = np.empty((tree.feature.size, 256), dtype=np.uint8)
    base, edges = binned.layout
    splits = (tree.feature, tree.threshold, tree.missing_left, tree.table, tree.categories)
    bad = _walk_kernels.fill_tables(*splits, base, binned.n_bins, edges, tables)
    if bad >= 0:
        raise ValueError(
            f"The binned features must have the edges that the tree was fitted on; feature {tree.feature[bad]} has no "
            f"edge at {float(tree.threshold[bad])!r}. Bin new data with bin_like, or pass them as they are."
        )
    return tables
