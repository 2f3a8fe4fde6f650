"""Growing a tree from histograms: a small one in one compiled call, a large one level by level, in threads.

At each level the rows lie grouped by node (``GrowingRows``). Of two siblings only the one with fewer rows is added up;
the other's histogram is what that one leaves of their parent's. So a level costs at most half the rows, and the last
one nothing but moving them. Weights are whole numbers, so every sum is exact: the tree is the same in any number of
threads, and in one compiled call. A fitted tree is a ``Tree`` of flat arrays.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import AnyArray, ByteArray, FloatArray, IntArray
from counterpoise.learners import _split_kernels, _tree_kernels
from counterpoise.learners._whole_tree import grow_whole_tree
from counterpoise.learners.binning import CHUNK, BinnedFeatures, Workers, as_floats
from counterpoise.solvers.rows import whole_masses

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


class TreeNodes:
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
        sides, categories = np.array(missing_left, dtype=np.uint8), np.array(self.categories, dtype=np.uint8)
        splits = np.array(threshold), sides, lefts, np.array(table), categories.reshape(-1, 32)
        return Tree(features, *splits, sums, labels)


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
            _tree_kernels.walk_values(X[start:stop], *splits, leaves[start:stop])
            return
        step = max(1, CHUNK // features.size)
        for first in range(start, stop, step):
            rows = slice(first, min(first + step, stop))
            _tree_kernels.walk_values(as_floats(X[rows][:, features]), *splits, leaves[rows])

    if tree.feature.size > 1:
        with Workers(X.shape[0] * (1 if features is None else features.size)) as workers:
            workers.map_ranges(walk, X.shape[0])
    return leaves


def leaves_of_bins(tree: Tree, binned: BinnedFeatures, rows: AnyArray | None = None) -> AnyArray:
    """Return the leaf of each of the rows, or of all, of features in the bins that the tree was fitted on."""
    tables = np.empty((tree.feature.size, 256), dtype=np.uint8)  # for every node that splits which bins go left
    base, edges = binned.layout
    splits = (tree.feature, tree.threshold, tree.missing_left, tree.table, tree.categories)
    bad = _tree_kernels.fill_tables(*splits, base, binned.n_bins, edges, tables)
    if bad >= 0:
        raise ValueError(
            f"The binned features must have the edges that the tree was fitted on; feature {tree.feature[bad]} has no "
            f"edge at {float(tree.threshold[bad])!r}. Bin new data with bin_like, or pass them as they are."
        )
    leaves = np.empty(len(binned) if rows is None else rows.size, dtype=np.uint32)

    def walk(start: int, stop: int) -> None:
        some = np.arange(start, stop, dtype=np.uint32) if rows is None else rows[start:stop]
        _tree_kernels.walk_bins(binned.bins, some, tree.feature, tree.left, tables, leaves[start:stop])

    with Workers(leaves.size) as workers:
        workers.map_ranges(walk, leaves.size)
    return leaves


AT_ONCE = 4  # features that the kernels handle together


class Target(NamedTuple):
    """The classes that a tree learns, and the weights of the rows: whole numbers, whose sums are exact in any order."""

    binned: BinnedFeatures
    codes: AnyArray
    weights: FloatArray


class Move(NamedTuple):
    """How the rows of a node go to its children, of which the right one has the next number."""

    node: int
    feature: int
    left: int
    table: AnyArray  # (256,): 1 for the bins that go left


class GrownTree(NamedTuple):
    """A finished tree, its leaves, and the moves after which each row lies in its leaf."""

    tree: Tree
    leaves: list[int]
    moves: list[Move]


class GrowingRows:
    """The rows that have weight, those of a node side by side."""

    def __init__(self, target: Target, n_classes: int, n_sums: int) -> None:
        self.binned, self.codes, self.weights = target
        self.n_classes, self.n_sums, self.base = n_classes, n_sums, target.binned.layout.base
        self.workers = Workers(target.binned.bins.size)
        # Rows without weight take no part; they are sent down the finished tree.
        all_rows = np.empty(self.weights.size, dtype=np.uint32)
        n_idle = _tree_kernels.rows_of_weight(self.weights, all_rows)
        n_rows = self.weights.size - n_idle
        self.rows, self.idle = all_rows[:n_rows], all_rows[n_rows:]
        self.spare = np.empty(n_rows, dtype=np.uint32)
        self.own_weights, self.own_codes = np.empty(n_rows), np.empty(n_rows, dtype=np.uint16)
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

    def predict(self, grown: GrownTree) -> AnyArray:
        """Move the rows to their leaves, and return the code that the finished tree predicts for each."""
        tree, leaves, moves = grown
        self.move(moves)
        predictions = np.empty(len(self.binned), dtype=np.uint16)
        parts = _table([(*self.places[leaf], leaf) for leaf in leaves])
        self._for_parts(_tree_kernels.spread, parts, self.rows, tree.labels, predictions)
        if self.idle.size:
            predictions[self.idle] = tree.labels[leaves_of_bins(tree, self.binned, self.idle)]
        return predictions

    def _for_parts(self, kernel: Callable[..., None], parts: IntArray, *arrays: AnyArray) -> None:
        """Run a kernel over parts (start, stop, what); threads share them."""
        n_rows = int((parts[:, 1] - parts[:, 0]).sum())
        self.workers.map_ranges(lambda first, last: kernel(first, last, parts, *arrays), len(parts), work=n_rows)


def _table(triples: Sequence[tuple[int, int, int]]) -> IntArray:
    return np.array(triples, dtype=np.int64).reshape(-1, 3)


_ROUNDING = 1e-12  # of the whole weight: what is lighter does not count
_FIRST_SLOTS = 6  # levels whose histograms are allocated at first
_SMALL = 1 << 21  # entries of the data up to which a tree is grown in one call: less work, but for one thread only
_SANE = (1e-100, 1e100)  # products of two weights in here neither overflow nor vanish; others are rescaled
_FEWEST = 2  # rows of a node that is split, whatever the limits: it holds two classes


class GrowthLimits(NamedTuple):
    """When to stop."""

    max_depth: int
    min_samples_leaf: int
    least_rows: int  # of a node that is split
    min_gain: float  # part of the whole weight


class Level(NamedTuple):
    """The nodes to be split next, and how their histograms come about."""

    nodes: list[int]
    sums: list[FloatArray]  # of each node: the weights of its classes, and its number of rows where that matters
    slots: list[int]  # of each node: the place of its histogram
    additions: list[tuple[int, int]]  # a node to be added up, and its slot
    subtractions: list[tuple[int, int]]  # slot of a parent, which becomes that of one child, and of the other child


class Family(NamedTuple):
    """A node that was split."""

    slot: int  # of the parent's histogram
    left: int  # child, which its sibling follows
    sums: FloatArray  # (2, n_sums)


def grow(
    binned: BinnedFeatures, codes: AnyArray, n_classes: int, weights: FloatArray, limits: GrowthLimits
) -> tuple[Tree, AnyArray]:
    """Return the tree, and the code that it predicts for each row."""
    target = Target(binned, codes.astype(np.uint16), whole_masses(of_sane_size(weights)))
    if binned.bins.size > _SMALL:
        return grow_by_levels(target, n_classes, limits)
    whole, predictions = float(target.weights.sum()), np.empty(len(binned), dtype=np.uint16)
    n_sums = n_classes + (limits.min_samples_leaf > 1)  # one more counts rows
    fields = grow_whole_tree(
        *(binned.bins, binned.layout.base, binned.n_bins, binned.is_categorical.view(np.uint8), binned.layout.edges),
        *(target.weights, target.codes, (n_classes, _ROUNDING * whole, float(limits.min_samples_leaf))),
        *(n_sums, (limits.max_depth, limits.least_rows, max(limits.min_gain, _ROUNDING) * whole), predictions),
    )
    return Tree(*fields), predictions


def grow_by_levels(target: Target, n_classes: int, limits: GrowthLimits) -> tuple[Tree, AnyArray]:
    """Return the tree, and the code that it predicts for each row."""
    growth = Growth(target, n_classes, limits)
    with growth.workers, growth.rows.workers:
        level, depth = growth.first_level(), 0
        while level.nodes:
            depth += 1
            families = growth.split(level)
            level = growth.next_level(families, is_last=depth == limits.max_depth)
        grown = growth.finish()
        return grown.tree, growth.rows.predict(grown)


def of_sane_size(weights: FloatArray) -> FloatArray:
    """Return weights whose sum is neither too large nor too small to divide by; not copied where it is so already."""
    weights = np.ascontiguousarray(weights, dtype=np.float64)
    largest = float(weights.max())
    if not largest > 0:
        raise ValueError("weights must have at least one entry above zero; got zeros only.")
    return weights if _SANE[0] < largest < _SANE[1] else weights / largest


class Growth:
    """The state of one tree while it grows level by level."""

    def __init__(self, target: Target, n_classes: int, limits: GrowthLimits) -> None:
        self.binned, self.limits, self.n_classes = target.binned, limits, n_classes
        # Where leaves, or nodes that are split, have a least number of rows, one more sum counts them.
        self.counts_rows = limits.least_rows > _FEWEST
        self.n_sums, self.base = n_classes + self.counts_rows, self.binned.layout.base
        self.rows = GrowingRows(target, n_classes, self.n_sums)
        n_first = 1 << min(limits.max_depth - 1, _FIRST_SLOTS)
        self.hists = np.empty((n_first, self.n_sums, int(self.base[-1])))
        self.n_slots, self.free_slots = 0, list[int]()
        self.nodes, self.leaves, self.leaf_sums = TreeNodes(), list[int](), list[FloatArray]()
        self.moves: list[Move] = []  # that are still to be made
        self.workers = Workers(self.hists.size)

    def first_level(self) -> Level:
        """Return the level of the root."""
        root = self.nodes.add()
        sums = self.rows.sums()[: self.n_sums]
        whole = float(sums[: self.n_classes].sum())
        self.least_weight, self.least_gain = _ROUNDING * whole, max(self.limits.min_gain, _ROUNDING) * whole
        if not self._can_split(sums):
            self._end_at(root, sums)
            return Level([], [], [], [], [])
        slot = self._new_slot()
        return Level([root], [sums], [slot], [(root, slot)], [])

    def _end_at(self, node: int, sums: FloatArray) -> None:
        self.leaves.append(node)
        self.leaf_sums.append(sums[: self.n_classes])

    def _new_slot(self) -> int:
        """Return the place of one more histogram; what is not in use yet takes no memory."""
        if self.free_slots:
            return self.free_slots.pop()
        self.n_slots += 1
        if self.n_slots > len(self.hists):
            self.hists = np.concatenate([self.hists, np.empty_like(self.hists)])
        return self.n_slots - 1

    def _can_split(self, sums: FloatArray) -> bool:
        n_rows = int(sums[-1]) if self.counts_rows else self.limits.least_rows
        return bool(_tree_kernels.can_split(n_rows, sums, self.n_classes, self.least_weight, self.limits.least_rows))

    def split(self, level: Level) -> list[Family]:
        """Fill the histograms of a level and split every node that gains; the others are leaves.

        Threads share the features.
        """
        self.rows.move(self.moves)
        self.moves = []
        self.hists[[slot for _, slot in level.additions]] = self.rows.histograms([node for node, _ in level.additions])
        n_nodes, n_features = len(level.nodes), self.binned.n_features
        subtractions = np.array(level.subtractions, dtype=np.int64).reshape(-1, 2)
        layout = self.base, self.binned.n_bins, self.binned.is_categorical.view(np.uint8)
        split = (*layout, np.array(level.slots), self.hists)
        limits = (self.n_classes, self.least_weight, float(self.limits.min_samples_leaf))
        gains, places = np.empty((n_nodes, n_features)), np.empty((n_nodes, n_features), dtype=np.int64)
        missing_left, sums = np.empty((n_nodes, n_features), dtype=np.uint8), np.array(level.sums)

        def look(first: int, last: int) -> None:
            _split_kernels.search_splits(first, last, subtractions, *split, sums, limits, gains, places, missing_left)

        self.workers.map_ranges(look, n_features, work=n_nodes * self.hists[0].size, multiple=AT_ONCE)
        choices, tables = np.empty((n_nodes, 2), dtype=np.int64), np.empty((n_nodes, 256), dtype=np.uint8)
        sides, best = np.empty((n_nodes, 2, self.n_sums)), (gains, places, missing_left)
        _split_kernels.choose_splits(*split, limits, self.least_gain, *best, choices, tables, sides)
        families = []
        for i, (node, slot) in enumerate(zip(level.nodes, level.slots, strict=True)):
            feature, place = choices[i].tolist()  # -1 where none gains; the last bin that goes left, if it is numeric
            if feature < 0:
                self._end_at(node, level.sums[i])
                self.free_slots.append(slot)
                continue
            left = self.nodes.split(node, self.binned, feature, place, tables[i])
            self.moves.append(Move(node, feature, left, tables[i]))
            families.append(Family(slot, left, sides[i]))
        return families

    def next_level(self, families: list[Family], *, is_last: bool) -> Level:
        """Return the children that may be split, and how to come by their histograms."""
        level, counts = Level([], [], [], [], []), self._counts(families, is_last=is_last)
        for family, sizes in zip(families, counts, strict=True):
            is_open = [not is_last and self._can_split(sums) for sums in family.sums]
            if any(is_open):
                slots = self._plan_histograms(level, family, sizes)
            else:
                self.free_slots.append(family.slot)
            for side in (0, 1):
                if is_open[side]:
                    level.nodes.append(family.left + side)
                    level.sums.append(family.sums[side])
                    level.slots.append(slots[side])
                else:
                    self._end_at(family.left + side, family.sums[side])
        return level

    def _counts(self, families: list[Family], *, is_last: bool) -> list[tuple[int, int]]:
        """Return how many rows both children of each family have; of the last level, where no histogram follows, none.

        Where no sum counts them the rows are moved first, which counts them.
        """
        if is_last:
            return [(0, 0)] * len(families)
        if self.counts_rows:
            return [(int(left), int(right)) for left, right in (family.sums[:, -1] for family in families)]
        sizes = self.rows.move(self.moves)
        self.moves = []
        return [(int(left), int(right)) for left, right in sizes]

    def _plan_histograms(self, level: Level, family: Family, sizes: tuple[int, int]) -> list[int]:
        """Add one child up, subtract it from the parent, and return the slots of both children."""
        side, new = int(_tree_kernels.side_to_add(family.sums, self.n_classes, *sizes)), self._new_slot()
        level.additions.append((family.left + side, new))
        level.subtractions.append((family.slot, new))
        return [family.slot, new] if side == 1 else [new, family.slot]

    def finish(self) -> GrownTree:
        """Return the tree, its leaves, and the moves to them."""
        sums = np.zeros((self.nodes.count, self.n_classes))
        sums[self.leaves] = self.leaf_sums
        return GrownTree(self.nodes.tree(sums), self.leaves, self.moves)
