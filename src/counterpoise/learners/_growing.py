"""Growing a tree from histograms: a small one in one compiled call, a large one level by level on several threads.

At each level the rows lie grouped by node, in order inside a node. Of two siblings only the one with fewer rows is
added up; the other's histogram is what that one leaves of their parent's. So a level costs at most half the
rows, and the last one nothing but moving them.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from counterpoise._base.types import AnyArray, ByteArray, FloatArray, IntArray
from counterpoise.learners import _split_kernels, _tree_kernels
from counterpoise.learners._threads import Workers
from counterpoise.learners._tree import Nodes, Tree, leaves_of_bins
from counterpoise.learners._whole_tree import grow_whole_tree
from counterpoise.learners.binning import BinnedFeatures

_ROUNDING = 1e-12  # of the whole weight: what is lighter may be left over from subtraction
_AT_ONCE = 4  # features that the kernels handle together
_FIRST_SLOTS = 6  # levels whose histograms room is asked for at first
_SMALL = 1 << 21  # entries of the data up to which a tree is grown in one call: less work, but for one thread only
_SANE = (1e-20, 1e20)  # gains have products of four weights in them


class Limits(NamedTuple):
    """When to stop."""

    max_depth: int
    min_samples_leaf: int
    min_samples_split: int
    min_gain: float  # part of the whole weight

    @property
    def least_rows(self) -> int:
        """The least number of rows of a node that is split."""
        return max(self.min_samples_split, 2 * self.min_samples_leaf)


class Part(NamedTuple):
    """A node, and from where to where its rows lie."""

    node: int
    start: int
    stop: int

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.stop - self.start


class Level(NamedTuple):
    """The nodes to be split next, and how their histograms come about."""

    parts: list[Part]
    sums: list[FloatArray]  # of each part: the weights of its classes, and its number of rows where that matters
    slots: list[int]  # of each part: the place of its histogram
    additions: list[tuple[int, int, int]]  # rows from, to, and the slot to add them to
    subtractions: list[tuple[int, int]]  # slot of a parent, which becomes that of one child, and of the other child


class Splits(NamedTuple):
    """The best split of every node of a level."""

    feature: IntArray  # -1 where none gains
    place: IntArray  # the last bin that goes left, of a numeric feature
    tables: ByteArray  # (n_parts, 256): 1 for the bins that go left
    sums: FloatArray  # (n_parts, 2, n_sums): what goes left and right


class Family(NamedTuple):
    """A node that was split."""

    slot: int  # of the parent's histogram
    children: tuple[Part, Part]
    sums: FloatArray  # (2, n_sums)


def grow(
    binned: BinnedFeatures, codes: AnyArray, n_classes: int, weights: FloatArray, limits: Limits
) -> tuple[Tree, AnyArray]:
    """Return the tree, and the code that it predicts for each row; some weight must be above zero."""
    target = Target(codes.astype(np.uint16), n_classes, _of_sane_size(weights))
    if binned.bins.size <= _SMALL:
        return _grow_whole(binned, target, limits)
    with Workers(binned.bins.size) as workers:
        growth = Growth(binned, target, limits, workers)
        level = growth.first_level()
        depth = 0
        while level.parts:
            depth += 1
            families = growth.split(level, growth.search(level))
            level = growth.next_level(families, is_last=depth == limits.max_depth)
        return growth.finish()


class Target(NamedTuple):
    """What the tree is to tell, and how much each row counts."""

    codes: AnyArray
    n_classes: int
    weights: FloatArray


class Least(NamedTuple):
    """What a split must have at the least."""

    weight: float  # on each side
    gain: float


def _least(target: Target, limits: Limits) -> Least:
    whole = float(target.weights.sum())
    return Least(_ROUNDING * whole, max(limits.min_gain, _ROUNDING) * whole)


def _n_sums(n_classes: int, limits: Limits) -> int:
    return n_classes + (limits.min_samples_leaf > 1)  # one more counts rows


def _grow_whole(binned: BinnedFeatures, target: Target, limits: Limits) -> tuple[Tree, AnyArray]:
    layout, least = binned.layout, _least(target, limits)
    predicted = np.empty(len(binned), dtype=np.uint16)
    fields = grow_whole_tree(
        *(binned.bins, layout.base, binned.n_bins, binned.is_categorical.view(np.uint8), layout.edges),
        *(target.weights, target.codes, (target.n_classes, least.weight, float(limits.min_samples_leaf))),
        *(_n_sums(target.n_classes, limits), (limits.max_depth, limits.least_rows, least.gain), predicted),
    )
    return Tree(*fields), predicted


class Growth:
    """The state of one tree while it grows level by level."""

    def __init__(self, binned: BinnedFeatures, target: Target, limits: Limits, workers: Workers) -> None:
        self.binned, self.limits, self.workers = binned, limits, workers
        self.codes, self.n_classes, self.weights = target
        self.least, self.n_sums = _least(target, limits), _n_sums(target.n_classes, limits)
        self.base = binned.layout.base
        # Rows without weight take no part; they are sent down the finished tree.
        self.idle = np.flatnonzero(self.weights == 0).astype(np.uint32)
        n_rows = self.weights.size
        self.rows = (np.flatnonzero(self.weights) if self.idle.size else np.arange(n_rows)).astype(np.uint32)
        self.spare = np.empty_like(self.rows)
        self.own_weights, self.own_codes = np.empty(self.rows.size), np.empty(self.rows.size, dtype=np.uint16)
        n_first = 1 << min(limits.max_depth - 1, _FIRST_SLOTS)
        self.hists = np.empty((n_first, self.n_sums, int(self.base[-1])))
        self.n_slots, self.free_slots = 0, list[int]()
        self.nodes = Nodes()
        self.leaves: list[Part] = []

    def first_level(self) -> Level:
        """Return the level of the root."""
        part = Part(self.nodes.add(), 0, self.rows.size)
        whole = [(0, part.stop, 0)]
        sums = np.zeros((1, self.n_classes))
        self._for_parts(_tree_kernels.class_sums, _table(whole), self.rows, self.weights, self.codes, sums)
        if not self._can_split(part, sums[0]):
            self.leaves.append(part)
            return Level([], [], [], [], [])
        counts = [float(part.n_rows)] * (self.n_sums - self.n_classes)
        return Level([part], [np.append(sums[0], counts)], [self._new_slot()], whole, [])

    def _new_slot(self) -> int:
        """Return room for one more histogram; what is not in use yet takes no memory."""
        if self.free_slots:
            return self.free_slots.pop()
        self.n_slots += 1
        if self.n_slots > len(self.hists):
            self.hists = np.concatenate([self.hists, np.empty_like(self.hists)])
        return self.n_slots - 1

    def _can_split(self, part: Part, sums: FloatArray) -> bool:
        return bool(
            _tree_kernels.can_split(part.n_rows, sums, self.n_classes, self.least.weight, self.limits.least_rows)
        )

    def search(self, level: Level) -> Splits:
        """Fill the histograms of a level and return the best splits; threads share the features."""
        n_parts, n_features = len(level.parts), self.binned.n_features
        add = self._adder(level)
        subtractions = np.array(level.subtractions, dtype=np.int64).reshape(-1, 2)
        layout = self.base, self.binned.n_bins, self.binned.is_categorical.view(np.uint8)
        split = (*layout, np.array(level.slots), self.hists)
        limits = (self.n_classes, self.least.weight, float(self.limits.min_samples_leaf))
        gains, places = np.empty((n_parts, n_features)), np.empty((n_parts, n_features), dtype=np.int64)
        missing_left = np.empty((n_parts, n_features), dtype=np.uint8)
        sums = np.array(level.sums)

        def look(first: int, last: int) -> None:
            add(first, last)
            _split_kernels.search_splits(first, last, subtractions, *split, sums, limits, gains, places, missing_left)

        n_rows = sum(stop - start for start, stop, _ in level.additions)
        work = n_rows * n_features + n_parts * self.hists[0].size
        self.workers.map_ranges(look, n_features, work=work, multiple=_AT_ONCE)
        chosen, tables = np.empty((n_parts, 2), dtype=np.int64), np.empty((n_parts, 256), dtype=np.uint8)
        sides = np.empty((n_parts, 2, self.n_sums))
        found = (gains, places, missing_left)
        _split_kernels.choose_splits(*split, limits, self.least.gain, *found, chosen, tables, sides)
        return Splits(chosen[:, 0], chosen[:, 1], tables, sides)

    def _adder(self, level: Level) -> Callable[[int, int], None]:
        """Return a function that adds a level's rows to the histograms of a range of features."""
        additions, bins, base = _table(level.additions), self.binned.bins, self.base
        masses = [(self.weights, self.codes)]
        is_whole = level.additions == [(0, len(self.binned), 0)]
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
                    _tree_kernels.add_all_rows(bins, first, last, base, weights, codes, self.hists[0], is_fresh)
                else:
                    here = (self.rows, weights, codes, additions, self.hists, is_fresh)
                    _tree_kernels.add_rows(bins, first, last, base, *here)

        return add

    def split(self, level: Level, splits: Splits) -> list[Family]:
        """Move the rows of every node that gains to its children; the others are leaves."""
        gains = np.flatnonzero(splits.feature >= 0)
        for i in np.flatnonzero(splits.feature < 0).tolist():
            self.leaves.append(level.parts[i])
            self.free_slots.append(level.slots[i])
        parts = _table([(*level.parts[i][1:], int(splits.feature[i])) for i in gains.tolist()])
        tables, middles = splits.tables[gains], np.empty(gains.size, dtype=np.int64)
        self._for_parts(_tree_kernels.partition, parts, self.binned.bins, self.rows, self.spare, tables, middles)
        families = []
        for i, middle in zip(gains.tolist(), middles.tolist(), strict=True):
            part = level.parts[i]
            if middle in (part.start, part.stop):  # the gain was rounding
                self.leaves.append(part)
                continue
            left = self.nodes.split(
                part.node, self.binned, int(splits.feature[i]), int(splits.place[i]), splits.tables[i]
            )
            children = (Part(left, part.start, middle), Part(left + 1, middle, part.stop))
            families.append(Family(level.slots[i], children, splits.sums[i]))
        return families

    def _for_parts(self, kernel: Callable[..., None], parts: IntArray, *arrays: AnyArray) -> None:
        """Run a kernel over parts (start, stop, what); threads share them."""
        n_rows = int((parts[:, 1] - parts[:, 0]).sum())
        self.workers.map_ranges(lambda first, last: kernel(first, last, parts, *arrays), len(parts), work=n_rows)

    def next_level(self, families: list[Family], *, is_last: bool) -> Level:
        """Return the children that may be split, and how to come by their histograms."""
        level = Level([], [], [], [], [])
        for family in families:
            is_open = [
                not is_last and self._can_split(*pair) for pair in zip(family.children, family.sums, strict=True)
            ]
            if any(is_open):
                slots = self._plan_histograms(level, family)
            else:
                self.free_slots.append(family.slot)
            for side, child in enumerate(family.children):
                if is_open[side]:
                    level.parts.append(child)
                    level.sums.append(family.sums[side])
                    level.slots.append(slots[side])
                else:
                    self.leaves.append(child)
        return level

    def _plan_histograms(self, level: Level, family: Family) -> list[int]:
        """Add one child up, subtract it from the parent, and return the slots of both children."""
        sizes = (child.n_rows for child in family.children)
        side, new = int(_tree_kernels.side_to_add(family.sums, self.n_classes, *sizes)), self._new_slot()
        level.additions.append((*family.children[side][1:], new))
        level.subtractions.append((family.slot, new))
        return [family.slot, new] if side == 1 else [new, family.slot]

    def finish(self) -> tuple[Tree, AnyArray]:
        """Return the tree, and the predicted code of each row."""
        sums = np.zeros((self.nodes.count, self.n_classes))
        leaves = _table([(leaf.start, leaf.stop, leaf.node) for leaf in self.leaves])
        self._for_parts(_tree_kernels.class_sums, leaves, self.rows, self.weights, self.codes, sums)
        tree = self.nodes.tree(sums)
        predicted = np.empty(len(self.binned), dtype=np.uint16)
        self._for_parts(_tree_kernels.spread, leaves, self.rows, tree.labels, predicted)
        if self.idle.size:
            predicted[self.idle] = tree.labels[leaves_of_bins(tree, self.binned, self.idle)]
        return tree, predicted


def _of_sane_size(weights: FloatArray) -> FloatArray:
    """Return weights whose fourth power is neither too large nor too small; not copied where they are so already."""
    weights = np.ascontiguousarray(weights, dtype=np.float64)
    largest = float(weights.max())
    return weights if _SANE[0] < largest < _SANE[1] else weights / largest


def _table(triples: list[tuple[int, int, int]]) -> IntArray:
    return np.array(triples, dtype=np.int64).reshape(-1, 3)
