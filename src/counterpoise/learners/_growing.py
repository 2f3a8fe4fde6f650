"""Growing a tree from histograms: a small one in one compiled call, a large one level by level, over shards of rows.

At each level the rows lie grouped by node in their shards (``_growing_rows``). Of two siblings only the one with fewer
rows is added up; the other's histogram is what that one leaves of their parent's. So a level costs at most half the
rows, and the last one nothing but moving them. What travels of a level are histograms of the nodes that are added up,
and back the bins that go left. Weights are whole numbers, so every sum is exact: the tree is the same however the rows
are cut into shards, and in one compiled call.
"""

from functools import partial
from typing import NamedTuple, Self

import numpy as np

from counterpoise._base.shards import LocalShards, Shards, total
from counterpoise._base.types import AnyArray, ByteArray, FloatArray, IntArray
from counterpoise.learners import _growing_rows, _split_kernels, _tree_kernels
from counterpoise.learners._growing_rows import AT_ONCE, TARGET, Grown, Move, Target
from counterpoise.learners._threads import Workers
from counterpoise.learners._tree import Nodes, Tree
from counterpoise.learners._whole_tree import grow_whole_tree
from counterpoise.learners.binning import BinnedFeatures
from counterpoise.solvers.sums import whole_masses

_ROUNDING = 1e-12  # of the whole weight: what is lighter does not count
_FIRST_SLOTS = 6  # levels whose histograms room is asked for at first
_SMALL = 1 << 21  # entries of the data up to which a tree is grown in one call: less work, but for one thread only
_SANE = (1e-100, 1e100)  # products of two weights in here neither overflow nor vanish; others are rescaled
_FEWEST = 2  # rows of a node that is split, whatever the limits: it holds two classes


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


class Level(NamedTuple):
    """The nodes to be split next, and how their histograms come about."""

    nodes: list[int]
    sums: list[FloatArray]  # of each node: the weights of its classes, and its number of rows where that matters
    slots: list[int]  # of each node: the place of its histogram
    additions: list[tuple[int, int]]  # a node to be added up, and its slot
    subtractions: list[tuple[int, int]]  # slot of a parent, which becomes that of one child, and of the other child


class Splits(NamedTuple):
    """The best split of every node of a level."""

    feature: IntArray  # -1 where none gains
    place: IntArray  # the last bin that goes left, of a numeric feature
    tables: ByteArray  # (n_nodes, 256): 1 for the bins that go left
    sums: FloatArray  # (n_nodes, 2, n_sums): what goes left and right


class Family(NamedTuple):
    """A node that was split."""

    slot: int  # of the parent's histogram
    left: int  # child, which its sibling follows
    sums: FloatArray  # (2, n_sums)


class Least(NamedTuple):
    """What a split must have at the least."""

    weight: float  # on each side
    gain: float


def grow(
    binned: BinnedFeatures, codes: AnyArray, n_classes: int, weights: FloatArray, limits: Limits
) -> tuple[Tree, AnyArray]:
    """Return the tree, and the code that it predicts for each row."""
    target = Target(binned, codes.astype(np.uint16), whole_masses(of_sane_size(weights)))
    if binned.bins.size <= _SMALL:
        return _grow_whole(target, n_classes, limits)
    with LocalShards([partial(dict, {TARGET: target})]) as shards:
        grown = grow_over(shards, binned, n_classes, limits)
        return grown.tree, np.concatenate(shards.map(_growing_rows.ended, grown))


def grow_over(shards: Shards, binned: BinnedFeatures, n_classes: int, limits: Limits) -> Grown:
    """Return the tree of rows that live in shards, each with its ``Target``; ``ended`` tells what it says of them.

    ``binned`` is any part of the features: it tells where the bins of each feature lie, which all shards share.
    """
    with Growth(shards, binned, n_classes, limits) as growth:
        level = growth.first_level()
        depth = 0
        while level.nodes:
            depth += 1
            families = growth.split(level, growth.search(level))
            level = growth.next_level(families, is_last=depth == limits.max_depth)
        return growth.finish()


def _least(whole: float, limits: Limits) -> Least:
    return Least(_ROUNDING * whole, max(limits.min_gain, _ROUNDING) * whole)


def _grow_whole(target: Target, n_classes: int, limits: Limits) -> tuple[Tree, AnyArray]:
    binned, least = target.binned, _least(float(target.weights.sum()), limits)
    n_sums = n_classes + (limits.min_samples_leaf > 1)  # one more counts rows
    layout, predicted = binned.layout, np.empty(len(binned), dtype=np.uint16)
    fields = grow_whole_tree(
        *(binned.bins, layout.base, binned.n_bins, binned.is_categorical.view(np.uint8), layout.edges),
        *(target.weights, target.codes, (n_classes, least.weight, float(limits.min_samples_leaf))),
        *(n_sums, (limits.max_depth, limits.least_rows, least.gain), predicted),
    )
    return Tree(*fields), predicted


def of_sane_size(weights: FloatArray) -> FloatArray:
    """Return weights whose sum is neither too large nor too small to divide by; not copied where it is so already."""
    weights = np.ascontiguousarray(weights, dtype=np.float64)
    largest = float(weights.max())
    if not largest > 0:
        raise ValueError("weights must have at least one entry above zero; got zeros only.")
    return weights if _SANE[0] < largest < _SANE[1] else weights / largest


class Growth:
    """The state of one tree while it grows level by level."""

    def __init__(self, shards: Shards, binned: BinnedFeatures, n_classes: int, limits: Limits) -> None:
        self.shards, self.binned, self.limits, self.n_classes = shards, binned, limits, n_classes
        # Where leaves, or nodes that are split, have a least number of rows, one more sum counts them.
        self.counts_rows = limits.least_rows > _FEWEST
        self.n_sums, self.base = n_classes + self.counts_rows, binned.layout.base
        n_first = 1 << min(limits.max_depth - 1, _FIRST_SLOTS)
        self.hists = np.empty((n_first, self.n_sums, int(self.base[-1])))
        self.n_slots, self.free_slots = 0, list[int]()
        self.nodes, self.leaves, self.leaf_sums = Nodes(), list[int](), list[FloatArray]()
        self.moves: list[Move] = []  # that are still to be made
        self.n_steps = 0
        self.workers = Workers(self.hists.size)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.workers.close()
        for step in range(self.n_steps):
            self.shards.forget((_growing_rows.GROWTH, step))

    def _change(self, function: object, *given: object) -> list[FloatArray]:
        self.n_steps += 1
        return self.shards.change((_growing_rows.GROWTH, self.n_steps - 1), function, *given)  # type: ignore[arg-type]

    def first_level(self) -> Level:
        """Return the level of the root."""
        root = self.nodes.add()
        sums = total(self._change(_growing_rows.begin, self.n_classes, self.n_sums))[: self.n_sums]
        self.least = _least(float(sums[: self.n_classes].sum()), self.limits)
        if not self._can_split(sums):
            self._end_at(root, sums)
            return Level([], [], [], [], [])
        slot = self._new_slot()
        return Level([root], [sums], [slot], [(root, slot)], [])

    def _end_at(self, node: int, sums: FloatArray) -> None:
        self.leaves.append(node)
        self.leaf_sums.append(sums[: self.n_classes])

    def _new_slot(self) -> int:
        """Return room for one more histogram; what is not in use yet takes no memory."""
        if self.free_slots:
            return self.free_slots.pop()
        self.n_slots += 1
        if self.n_slots > len(self.hists):
            self.hists = np.concatenate([self.hists, np.empty_like(self.hists)])
        return self.n_slots - 1

    def _can_split(self, sums: FloatArray) -> bool:
        n_rows = int(sums[-1]) if self.counts_rows else self.limits.least_rows
        return bool(_tree_kernels.can_split(n_rows, sums, self.n_classes, self.least.weight, self.limits.least_rows))

    def search(self, level: Level) -> Splits:
        """Fill the histograms of a level and return the best splits; threads share the features."""
        self._add_up(level)
        n_nodes, n_features = len(level.nodes), self.binned.n_features
        subtractions = np.array(level.subtractions, dtype=np.int64).reshape(-1, 2)
        layout = self.base, self.binned.n_bins, self.binned.is_categorical.view(np.uint8)
        split = (*layout, np.array(level.slots), self.hists)
        limits = (self.n_classes, self.least.weight, float(self.limits.min_samples_leaf))
        gains, places = np.empty((n_nodes, n_features)), np.empty((n_nodes, n_features), dtype=np.int64)
        missing_left, sums = np.empty((n_nodes, n_features), dtype=np.uint8), np.array(level.sums)

        def look(first: int, last: int) -> None:
            _split_kernels.search_splits(first, last, subtractions, *split, sums, limits, gains, places, missing_left)

        self.workers.map_ranges(look, n_features, work=n_nodes * self.hists[0].size, multiple=AT_ONCE)
        chosen, tables = np.empty((n_nodes, 2), dtype=np.int64), np.empty((n_nodes, 256), dtype=np.uint8)
        sides, found = np.empty((n_nodes, 2, self.n_sums)), (gains, places, missing_left)
        _split_kernels.choose_splits(*split, limits, self.least.gain, *found, chosen, tables, sides)
        return Splits(chosen[:, 0], chosen[:, 1], tables, sides)

    def _add_up(self, level: Level) -> None:
        """Set the histograms of the nodes that are added up to their sums over shards."""
        parts = self._change(_growing_rows.move_and_add, self.moves, [node for node, _ in level.additions])
        self.moves = []
        slots = [slot for _, slot in level.additions]
        self.hists[slots] = parts[0] if len(parts) == 1 else total(parts)

    def split(self, level: Level, splits: Splits) -> list[Family]:
        """Make the children of every node that gains; the others are leaves."""
        families = []
        for i, (node, slot) in enumerate(zip(level.nodes, level.slots, strict=True)):
            feature, table = int(splits.feature[i]), splits.tables[i]
            if feature < 0:
                self._end_at(node, level.sums[i])
                self.free_slots.append(slot)
                continue
            left = self.nodes.split(node, self.binned, feature, int(splits.place[i]), table)
            self.moves.append(Move(node, feature, left, table))
            families.append(Family(slot, left, splits.sums[i]))
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
        """Return how many rows both children of each family have.

        Where they are not counted and are elsewhere, another question would take longer than it saves: as much as they
        weigh then.
        """
        if self.counts_rows or is_last or not self.shards.is_here:
            counts = [family.sums[:, -1] if self.counts_rows else family.sums.sum(axis=1) for family in families]
            return [(int(left), int(right)) for left, right in counts]
        moved = total(self._change(_growing_rows.move, self.moves))
        self.moves = []
        return [(int(left), int(right)) for left, right in moved]

    def _plan_histograms(self, level: Level, family: Family, sizes: tuple[int, int]) -> list[int]:
        """Add one child up, subtract it from the parent, and return the slots of both children."""
        side, new = int(_tree_kernels.side_to_add(family.sums, self.n_classes, *sizes)), self._new_slot()
        level.additions.append((family.left + side, new))
        level.subtractions.append((family.slot, new))
        return [family.slot, new] if side == 1 else [new, family.slot]

    def finish(self) -> Grown:
        """Return the tree, its leaves, and the moves to them."""
        sums = np.zeros((self.nodes.count, self.n_classes))
        sums[self.leaves] = self.leaf_sums
        return Grown(self.nodes.tree(sums), self.leaves, self.moves)
