"""The rows of one shard while a tree grows: grouped by node, in order inside a node."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from counterpoise._base.shards import Shard
from counterpoise._base.types import AnyArray, FloatArray, IntArray
from counterpoise.learners import _tree_kernels
from counterpoise.learners._threads import Workers
from counterpoise.learners._tree import Tree, leaves_of_bins
from counterpoise.learners.binning import BinnedFeatures

TARGET, GROWTH = "target", "growth"  # names in a shard: what a tree is to tell, and the rows while it grows
AT_ONCE = 4  # features that the kernels handle together


class Target(NamedTuple):
    """What the tree is to tell, and how much each row counts: whole numbers, whose sums are exact in any order."""

    binned: BinnedFeatures
    codes: AnyArray
    weights: FloatArray


class Move(NamedTuple):
    """How the rows of a node go to its children, of which the right one has the next number."""

    node: int
    feature: int
    left: int
    table: AnyArray  # (256,): 1 for the bins that go left


class Grown(NamedTuple):
    """A finished tree, its leaves, and the moves after which each row lies in its leaf."""

    tree: Tree
    leaves: list[int]
    moves: list[Move]


class GrowingRows:
    """The rows that have weight, those of a node side by side."""

    def __init__(self, shard: Shard, n_classes: int, n_sums: int) -> None:
        target: Target = shard[TARGET]
        self.binned, self.codes, self.weights = target
        self.n_classes, self.n_sums, self.base = n_classes, n_sums, target.binned.layout.base
        self.workers = Workers(target.binned.bins.size)
        # Rows without weight take no part; they are sent down the finished tree.
        all_rows = shard.room("rows", self.weights.size, np.uint32)
        n_idle = _tree_kernels.rows_of_weight(self.weights, all_rows)
        n_rows = self.weights.size - n_idle
        self.rows, self.idle = all_rows[:n_rows], all_rows[n_rows:]
        self.spare = shard.room("spare", n_rows, np.uint32)
        self.own_weights, self.own_codes = shard.room("own", n_rows), shard.room("own", n_rows, np.uint16)
        self.places = {0: (0, self.rows.size)}  # of each node: from where to where its rows lie

    def sums(self) -> FloatArray:
        """Return the weight of each class, and the number of rows."""
        sums = np.zeros((1, self.n_classes))
        whole = _table([(0, self.rows.size, 0)])
        self._for_parts(_tree_kernels.class_sums, whole, self.rows, self.weights, self.codes, sums)
        return np.append(sums[0], float(self.rows.size))

    def move(self, moves: Sequence[Move]) -> IntArray:
        """Move the rows of nodes to their children, and return how many each child got."""
        if not moves:
            return np.empty((0, 2), dtype=np.int64)
        parts = _table([(*self.places[move.node], move.feature) for move in moves])
        tables, middles = np.array([move.table for move in moves]), np.empty(len(moves), dtype=np.int64)
        self._for_parts(_tree_kernels.partition, parts, self.binned.bins, self.rows, self.spare, tables, middles)
        for move, (start, stop, _), middle in zip(moves, parts.tolist(), middles.tolist(), strict=True):
            self.places[move.left], self.places[move.left + 1] = (start, middle), (middle, stop)
        return np.column_stack([middles - parts[:, 0], parts[:, 1] - middles])

    def histograms(self, nodes: Sequence[int]) -> FloatArray:
        """Return the histograms of some nodes, shape (n_nodes, n_sums, n_slots); threads share the features."""
        hists = np.empty((len(nodes), self.n_sums, int(self.base[-1])))
        parts = [(*self.places[node], slot) for slot, node in enumerate(nodes)]
        add = self._adder(parts, hists)
        work = sum(stop - start for start, stop, _ in parts) * self.binned.n_features
        self.workers.map_ranges(add, self.binned.n_features, work=work, multiple=AT_ONCE)
        return hists

    def _adder(self, parts: list[tuple[int, int, int]], hists: FloatArray) -> Callable[[int, int], None]:
        """Return a function that adds parts of the rows to the histograms of a range of features."""
        additions, bins, base = _table(parts), self.binned.bins, self.base
        masses = [(self.weights, self.codes)]
        is_whole = parts == [(0, len(self.binned), 0)]
        if not is_whole:
            own = (self.own_weights, self.own_codes)
            self._for_parts(_tree_kernels.gather, additions, self.rows, self.weights, self.codes, *own)
            masses = [own]
        if self.n_sums > self.n_classes:
            masses.append((np.ones(self.rows.size), np.full(self.rows.size, self.n_classes, dtype=np.uint16)))

        def add(first: int, last: int) -> None:
            for at, (weights, codes) in enumerate(masses):
                is_fresh = int(at == 0)
                if is_whole:
                    _tree_kernels.add_all_rows(bins, first, last, base, weights, codes, hists[0], is_fresh)
                else:
                    here = (self.rows, weights, codes, additions, hists, is_fresh)
                    _tree_kernels.add_rows(bins, first, last, base, *here)

        return add

    def said(self, grown: Grown) -> AnyArray:
        """Move the rows to their leaves, and return the code that the finished tree predicts for each."""
        tree, leaves, moves = grown
        self.move(moves)
        predicted = np.empty(len(self.binned), dtype=np.uint16)
        parts = _table([(*self.places[leaf], leaf) for leaf in leaves])
        self._for_parts(_tree_kernels.spread, parts, self.rows, tree.labels, predicted)
        if self.idle.size:
            predicted[self.idle] = tree.labels[leaves_of_bins(tree, self.binned, self.idle)]
        return predicted

    def _for_parts(self, kernel: Callable[..., None], parts: IntArray, *arrays: AnyArray) -> None:
        """Run a kernel over parts (start, stop, what); threads share them."""
        n_rows = int((parts[:, 1] - parts[:, 0]).sum())
        self.workers.map_ranges(lambda first, last: kernel(first, last, parts, *arrays), len(parts), work=n_rows)


def begin(shard: Shard, n_classes: int, n_sums: int) -> FloatArray:
    """Group all rows under the root, and return the weight of each class and the number of rows."""
    shard[GROWTH] = GrowingRows(shard, n_classes, n_sums)
    return shard[GROWTH].sums()  # type: ignore[no-any-return]


def move(shard: Shard, moves: Sequence[Move]) -> IntArray:
    """Move rows to the children of their nodes, and return how many each child got."""
    return shard[GROWTH].move(moves)  # type: ignore[no-any-return]


def move_and_add(shard: Shard, moves: Sequence[Move], nodes: Sequence[int]) -> FloatArray:
    """Move rows to the children of their nodes, and return the histograms of some nodes."""
    shard[GROWTH].move(moves)
    return shard[GROWTH].histograms(nodes)  # type: ignore[no-any-return]


def ended(shard: Shard, grown: Grown | None) -> AnyArray | None:
    """Let go of the rows' order and of the threads, and return the code that the tree predicts for each row it saw.

    None where the shard grew no tree, or was made again since.
    """
    growth: GrowingRows | None = shard.pop(GROWTH, None)
    if growth is None:
        return None
    with growth.workers:
        return None if grown is None else growth.said(grown)


def _table(triples: Sequence[tuple[int, int, int]]) -> IntArray:
    return np.array(triples, dtype=np.int64).reshape(-1, 3)
