"""Growing a tree from histograms: compiled loops over its nodes, with threads for the nodes of many rows.

The rows lie grouped by node. Of two siblings only the one with fewer rows is added up; the other's histogram is what
that one leaves of their parent's, so a level costs at most half the rows. Weights are whole numbers, so every sum is
exact: the tree is the same in any number of threads.

Growth goes down first, and of two children takes the one of fewer rows: the nodes that wait then at least double in
size one by one, so that a handful of histograms is enough and they stay in the cache. A numeric feature that can no
longer split a node is left alone in all nodes below.

A histogram has shape (n_sums, n_slots): the bins of all features side by side, those of feature ``f`` from ``base[f]``
to ``base[f + 1]``. The class comes first so that a row finds its place by one multiplication, whatever the number of
features that are handled at once. Where leaves have a least number of samples, one more "class" counts the rows.
"""

from typing import NamedTuple

import numpy as np
from numba import float64, int64, types, uint8, uint16, uint32, uint64, void

from counterpoise._base.compiled import helper, kernel
from counterpoise._base.types import AnyArray, ByteArray, FloatArray, IntArray
from counterpoise.learners._histograms import AT_ONCE, add_rows
from counterpoise.learners._split_kernels import Limits, best_of_feature, divide_bins, to_beat
from counterpoise.learners._tree import Tree, leaves_of_bins, make_tree
from counterpoise.learners.binning import BinnedFeatures, Workers
from counterpoise.solvers.rows import whole_masses

_ROUNDING = 1e-12  # of the whole weight: what is lighter does not count
_WIDE = 1 << 20  # additions to a histogram from which on threads share them
_DEEP = 30  # levels that more leaves fit into than there are rows
_SANE = (1e-100, 1e100)  # products of two weights in here neither overflow nor vanish; others are rescaled

# Numba counts the references to every array that a call hands over. Inlined, the loop over nodes has hardly any calls
# left, which saves a seventh of the time of a tree of 361 leaves on 3,248 x 11.
inlined = helper(inline="always")

_bins = types.Array(uint8, 2, "C", readonly=True)  # may come from a file mapped into memory
_flags = types.Array(uint8, 1, "C", readonly=True)
_readonly_ints = types.Array(int64, 1, "C", readonly=True)
_slots = uint64[::1]
_ints = int64[::1]
_ints2 = int64[:, ::1]
_floats = float64[::1]
_floats2 = float64[:, ::1]


class GrowthLimits(NamedTuple):
    """When to stop."""

    max_depth: int
    min_samples_leaf: int
    least_rows: int  # of a node that is split
    min_gain: float  # part of the whole weight


class Rows(NamedTuple):
    """The rows that have weight, those of a node side by side, and what each of them adds to a histogram."""

    order: AnyArray
    spare: AnyArray
    all_weights: FloatArray  # of every row
    all_codes: AnyArray
    weights: FloatArray  # of the node that is added up, in its order
    codes: AnyArray
    ones: FloatArray  # what a row adds to the number of rows, empty where they are not counted
    count_codes: AnyArray


class Nodes(NamedTuple):
    """The nodes, a left child followed by its sibling."""

    n_nodes: IntArray  # (1,)
    feature: IntArray  # -1 in a leaf
    place: IntArray  # of the split in the order of the bins
    left: IntArray
    start: IntArray
    stop: IntArray
    goes_left: ByteArray  # (n_nodes, 32): bit b of a row is set where bin b goes left
    sums: FloatArray  # (n_nodes, n_sums)


class WaitingNodes(NamedTuple):
    """The nodes that wait to be split, with their histograms and features."""

    counts: IntArray  # (2,): of the nodes on the stack, and of the free slots
    stack: IntArray  # (n_slots, 5): node, its slot, its sibling's slot or -1, depth, 1 if the histogram is filled
    free: IntArray  # slots that no node uses
    hists: FloatArray  # of each slot
    features: IntArray  # (n_slots, n_features): those that may still split the node
    n_features: IntArray


_rows = types.NamedTuple(
    (uint32[::1], uint32[::1], _floats, uint16[::1], _floats, uint16[::1], _floats, uint16[::1]), Rows
)
_nodes = types.NamedTuple((_ints, _ints, _ints, _ints, _ints, _ints, uint8[:, ::1], _floats2), Nodes)
_waiting = types.NamedTuple((_ints, _ints2, _ints, float64[:, :, ::1], _ints2, _ints), WaitingNodes)
_limits = types.Tuple((int64, float64, float64))
_stops = types.Tuple((int64, int64, float64))
Stops = tuple[int, int, float]  # most depth, least rows of a node that is split, least gain


def of_sane_size(weights: FloatArray) -> FloatArray:
    """Return weights whose sum is neither too large nor too small to divide by; not copied where it is so already."""
    weights = np.ascontiguousarray(weights, dtype=np.float64)
    largest = float(weights.max())
    if not largest > 0:
        raise ValueError("weights must have at least one entry above zero; got zeros only.")
    return weights if _SANE[0] < largest < _SANE[1] else weights / largest


def grow(
    binned: BinnedFeatures, codes: AnyArray, n_classes: int, weights: FloatArray, limits: GrowthLimits
) -> tuple[Tree, AnyArray]:
    """Return the tree, and the code that it predicts for each row."""
    masses, n_sums = whole_masses(of_sane_size(weights)), n_classes + (limits.min_samples_leaf > 1)
    codes, order, sums = codes.astype(np.uint16), np.empty(masses.size, dtype=np.uint32), np.zeros(n_sums)
    n_rows, whole = place_rows(masses, codes, order, sums), float(masses.sum())
    if n_sums > n_classes:
        sums[-1] = n_rows
    rows, nodes = _lay_out(masses, codes, order[:n_rows], n_classes, n_sums), _root(n_rows, sums, limits)
    waiting = _stack(binned, n_rows, n_sums, limits)
    data = (binned.bins, binned.layout.base, binned.n_bins, binned.is_categorical.view(np.uint8), rows, nodes, waiting)
    least = (n_classes, _ROUNDING * whole, float(limits.min_samples_leaf))
    stops = (limits.max_depth, limits.least_rows, max(limits.min_gain, _ROUNDING) * whole)
    if (top := split_nodes(*data, least, stops)) >= 0:
        with Workers(binned.bins.size) as workers:
            while top >= 0:
                _fill_in_threads(workers, binned, rows, nodes, waiting, top)
                top = split_nodes(*data, least, stops)
    n_nodes = int(nodes.n_nodes[0])
    tree = make_tree(
        binned,
        feature=nodes.feature[:n_nodes].copy(),
        place=nodes.place[:n_nodes],
        left=nodes.left[:n_nodes].copy(),
        goes_left=nodes.goes_left[:n_nodes],
        sums=nodes.sums[:n_nodes, :n_classes],
    )
    predicted = np.empty(masses.size, dtype=np.uint16)
    write_labels(nodes, tree.labels, rows.order, predicted)
    if n_rows < masses.size:
        idle = order[n_rows:]
        predicted[idle] = tree.labels[leaves_of_bins(tree, binned, idle)]
    return tree, predicted


def _lay_out(masses: FloatArray, codes: AnyArray, order: AnyArray, n_classes: int, n_sums: int) -> Rows:
    """Return the rows that have weight, in order."""
    n_rows, n_counted = order.size, order.size if n_sums > n_classes else 0
    return Rows(
        order=order,
        spare=np.empty(n_rows, dtype=np.uint32),
        all_weights=masses,
        all_codes=codes,
        weights=np.empty(n_rows),
        codes=np.empty(n_rows, dtype=np.uint16),
        ones=np.ones(n_counted),
        count_codes=np.full(n_counted, n_classes, dtype=np.uint16),
    )


def _root(n_rows: int, sums: FloatArray, limits: GrowthLimits) -> Nodes:
    """Return arrays for as many nodes as there can be, of which the root is made."""
    most_leaves = max(1, n_rows // limits.min_samples_leaf)
    if limits.max_depth <= _DEEP:
        most_leaves = min(most_leaves, 1 << limits.max_depth)
    most = 2 * most_leaves - 1  # what is not in use yet takes no memory
    nodes = Nodes(
        n_nodes=np.ones(1, dtype=np.int64),
        feature=np.full(most, -1),
        place=np.zeros(most, dtype=np.int64),
        left=np.zeros(most, dtype=np.int64),
        start=np.zeros(most, dtype=np.int64),
        stop=np.zeros(most, dtype=np.int64),
        goes_left=np.zeros((most, 32), dtype=np.uint8),
        sums=np.empty((most, sums.size)),
    )
    nodes.stop[0], nodes.sums[0] = n_rows, sums
    return nodes


def _stack(binned: BinnedFeatures, n_rows: int, n_sums: int, limits: GrowthLimits) -> WaitingNodes:
    """Return a stack that holds the root, with as many histograms as will be in use at once."""
    # A node that waits has at least as many rows as its sibling, so at most log2(n_rows) wait; one is being split, and
    # one more histogram is taken before its own is free.
    n_slots = min(n_rows.bit_length() + 2, limits.max_depth)
    stack, varying = np.zeros((n_slots, 5), dtype=np.int64), binned.layout.varying
    stack[0, 2] = -1
    return WaitingNodes(
        counts=np.array([1, n_slots - 1]),
        stack=stack,
        free=np.arange(n_slots - 1, -1, -1),
        hists=np.empty((n_slots, n_sums, int(binned.layout.base[-1]))),
        features=np.repeat(varying[np.newaxis], n_slots, axis=0),
        n_features=np.full(n_slots, varying.size),
    )


def _fill_in_threads(
    workers: Workers, binned: BinnedFeatures, rows: Rows, nodes: Nodes, waiting: WaitingNodes, top: int
) -> None:
    """Fill the histogram of a node, whose weights and codes lie in the order of its rows."""
    node, slot = waiting.stack[top, :2].tolist()
    place = (int(nodes.start[node]), int(nodes.stop[node]))
    features, hist = waiting.features[slot, : waiting.n_features[slot]], waiting.hists[slot]

    def fill(first: int, last: int) -> None:
        fill_histogram(binned.bins, binned.layout.base, rows, *place, features[first:last], hist)

    workers.map_ranges(fill, features.size, multiple=AT_ONCE)


@kernel(int64(_floats, uint16[::1], uint32[::1], _floats))
def place_rows(masses: FloatArray, codes: AnyArray, order: AnyArray, sums: FloatArray) -> int:
    """Write the rows that have weight in front, in order, and the others behind; add up each class.

    Return how many rows have weight.
    """
    n_rows, n_idle = 0, 0
    for row in range(masses.size):
        if masses[row] > 0:
            order[n_rows] = row
            n_rows += 1
            sums[codes[row]] += masses[row]
        else:
            n_idle += 1
            order[masses.size - n_idle] = row
    return n_rows


@kernel(void(_nodes, uint16[::1], uint32[::1], uint16[::1]))
def write_labels(nodes: Nodes, labels: AnyArray, order: AnyArray, predicted: AnyArray) -> None:
    """Write the label of each leaf to its rows."""
    for node in range(nodes.n_nodes[0]):
        if nodes.feature[node] < 0:
            for i in range(nodes.start[node], nodes.stop[node]):
                predicted[order[i]] = labels[node]


@kernel(void(_bins, _slots, _rows, int64, int64, _ints, _floats2))
def fill_histogram(
    bins: ByteArray, base: AnyArray, rows: Rows, start: int, stop: int, features: IntArray, hist: FloatArray
) -> None:
    """Set the histogram of some features to the sums over a node's rows."""
    n_rows = stop - start
    for f in features:
        for k in range(hist.shape[0]):
            for slot in range(int64(base[f]), int64(base[f + 1])):
                hist[k, slot] = 0.0
    if n_rows == rows.all_weights.size:
        add_rows(bins, features, base, None, rows.all_weights, rows.all_codes, hist)
    else:
        add_rows(bins, features, base, rows.order[start:stop], rows.weights[:n_rows], rows.codes[:n_rows], hist)
    if rows.ones.size:
        add_rows(bins, features, base, rows.order[start:stop], rows.ones[:n_rows], rows.count_codes[:n_rows], hist)


@inlined
def _gather(rows: Rows, start: int, stop: int) -> None:
    """Bring weights and codes into the order of a node's rows, once for all features; those of all rows lie so."""
    if stop - start < rows.all_weights.size:
        for i in range(start, stop):
            rows.weights[i - start] = rows.all_weights[rows.order[i]]
            rows.codes[i - start] = rows.all_codes[rows.order[i]]


@inlined
def _subtract(base: AnyArray, features: IntArray, hist: FloatArray, other: FloatArray) -> None:
    for k in range(hist.shape[0]):
        for f in features:
            for slot in range(int64(base[f]), int64(base[f + 1])):
                hist[k, slot] -= other[k, slot]


@inlined
def _can_split(nodes: Nodes, node: int, depth: int, limits: Limits, stops: Stops) -> bool:
    """Return whether a node may be split: it has enough rows and more than one class in it."""
    n_present = 0
    for k in range(limits[0]):
        n_present += nodes.sums[node, k] > limits[1]
    return n_present > 1 and depth < stops[0] and nodes.stop[node] - nodes.start[node] >= stops[1]


@inlined
def _best_split(
    base: AnyArray,
    n_bins: IntArray,
    is_categorical: ByteArray,
    whole: FloatArray,
    waiting: WaitingNodes,
    slot: int,
    limits: Limits,
) -> tuple[float, int, int, int]:
    """Return gain, feature, place and 1 if missing values go left; forget the features that split no node below."""
    features, hist = waiting.features[slot], waiting.hists[slot]
    best, feature, place, missing_left = 0.0, -1, 0, 0
    left, n_features = np.empty(whole.size), 0
    for i in range(waiting.n_features[slot]):
        f = features[i]
        low, high = int64(base[f]), int64(base[f + 1])
        gain, at, is_left = best_of_feature(hist, low, high, n_bins[f], is_categorical[f], whole, limits, left)
        if gain > to_beat(best):
            best, feature, place, missing_left = gain, f, at, is_left
        if gain >= 0.0 or is_categorical[f]:
            features[n_features] = f
            n_features += 1
    waiting.n_features[slot] = n_features
    return best, feature, place, missing_left


@inlined
def _move_rows(start: int, stop: int, column: ByteArray, table: ByteArray, order: AnyArray, spare: AnyArray) -> int:
    """Move the rows whose bin is in the table to the front, in order, and return where the others begin."""
    n_left, n_right = start, start
    for i in range(start, stop):
        row = order[i]
        order[n_left] = row  # both writes, so that no branch is guessed wrong
        spare[n_right] = row
        goes_left = int64(table[column[row]])
        n_left += goes_left
        n_right += 1 - goes_left
    for i in range(n_right - start):
        order[n_left + i] = spare[start + i]
    return n_left


@inlined
def _push(waiting: WaitingNodes, node: int, slot: int, sibling: int, depth: int, is_filled: int) -> None:
    """Put a node on the stack."""
    top = waiting.counts[0]
    waiting.stack[top, 0], waiting.stack[top, 1], waiting.stack[top, 2] = node, slot, sibling
    waiting.stack[top, 3], waiting.stack[top, 4] = depth, is_filled
    waiting.counts[0] += 1


@inlined
def _free(waiting: WaitingNodes, slot: int) -> None:
    waiting.free[waiting.counts[1]] = slot
    waiting.counts[1] += 1


@inlined
def _open_children(
    nodes: Nodes, waiting: WaitingNodes, slot: int, left: int, depth: int, limits: Limits, stops: Stops
) -> None:
    """Put the children that may be split on the stack, that of fewer rows on top; ``slot`` holds their parent."""
    fewer = left + int(nodes.stop[left + 1] - nodes.start[left + 1] < nodes.stop[left] - nodes.start[left])
    other = 2 * left + 1 - fewer
    is_open = _can_split(nodes, other, depth, limits, stops)
    if is_open:  # its histogram is what the other's leaves of their parent's
        waiting.counts[1] -= 1
        new = waiting.free[waiting.counts[1]]
        waiting.n_features[new] = waiting.n_features[slot]
        for i in range(waiting.n_features[slot]):
            waiting.features[new, i] = waiting.features[slot, i]
        _push(waiting, other, slot, -1, depth, 1)
        _push(waiting, fewer, new, slot, depth, 0)
    elif _can_split(nodes, fewer, depth, limits, stops):
        _push(waiting, fewer, slot, -1, depth, 0)
    else:
        _free(waiting, slot)


@kernel(int64(_bins, _slots, _readonly_ints, _flags, _rows, _nodes, _waiting, _limits, _stops))
def split_nodes(
    bins: ByteArray,
    base: AnyArray,
    n_bins: IntArray,
    is_categorical: ByteArray,
    rows: Rows,
    nodes: Nodes,
    waiting: WaitingNodes,
    limits: Limits,
    stops: Stops,
) -> int:
    """Split the nodes that wait, and return -1; or the place on the stack of a node whose histogram threads must fill.

    It is called again after they did.
    """
    table = np.empty(256, dtype=np.uint8)
    while waiting.counts[0] > 0:
        top = waiting.counts[0] - 1
        node, slot, sibling = waiting.stack[top, 0], waiting.stack[top, 1], waiting.stack[top, 2]
        depth, start, stop = waiting.stack[top, 3], nodes.start[node], nodes.stop[node]
        features, hist = waiting.features[slot, : waiting.n_features[slot]], waiting.hists[slot]
        if waiting.stack[top, 4] == 0:
            _gather(rows, start, stop)
            if (stop - start) * features.size >= _WIDE:
                waiting.stack[top, 4] = 1
                return int(top)
            fill_histogram(bins, base, rows, start, stop, features, hist)
        if sibling >= 0:
            _subtract(base, features, waiting.hists[sibling], hist)
        waiting.counts[0] -= 1
        gain, f, place, missing_left = 0.0, -1, 0, 0
        if _can_split(nodes, node, depth, limits, stops):
            gain, f, place, missing_left = _best_split(
                base, n_bins, is_categorical, nodes.sums[node], waiting, slot, limits
            )
        if gain <= stops[2]:
            _free(waiting, slot)
            continue
        left = nodes.n_nodes[0]
        low, high, sums = int64(base[f]), int64(base[f + 1]), nodes.sums[left : left + 2]
        divide_bins(hist, low, high, n_bins[f], is_categorical[f], place, missing_left, limits, table, sums)
        middle = _move_rows(start, stop, bins[f], table, rows.order, rows.spare)
        nodes.start[left], nodes.stop[left], nodes.start[left + 1], nodes.stop[left + 1] = start, middle, middle, stop
        nodes.feature[node], nodes.place[node], nodes.left[node] = f, place, left
        for b in range(256):
            nodes.goes_left[node, b >> 3] |= table[b] << (b & 7)
        nodes.n_nodes[0] += 2
        _open_children(nodes, waiting, slot, left, depth + 1, limits, stops)
    return -1
