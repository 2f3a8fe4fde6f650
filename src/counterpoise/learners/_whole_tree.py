"""A whole tree in one compiled call, for small data, where calls from Python cost more than the additions.

It splits as the growth level by level does, with the same sums in the same order, so it returns the same tree. It goes
down first, and of two children takes the one of fewer rows: the nodes that wait then at least double in size one by
one, so that a handful of histograms is enough and they stay in the cache. The nodes get the numbers that they have
level by level at the end. A numeric feature that can no longer split a node is left alone in all nodes below.
"""

from typing import NamedTuple

import numpy as np
from numba import float64, int64, types, uint8, uint16, uint64

from counterpoise._base.compiled import helper, kernel
from counterpoise._base.types import AnyArray, ByteArray, FloatArray, IntArray
from counterpoise.learners._split_kernels import Limits, best_of_feature, divide_bins, to_beat
from counterpoise.learners._tree_kernels import (
    add_all_to,
    add_to,
    can_split,
    class_sums,
    clear,
    move_rows,
    rows_of_weight,
    settle_nodes,
    side_to_add,
    spread,
    varying,
    walk_bins,
)

# Numba counts the references to every array that a call hands over. Inlined, the loop over nodes has hardly any calls
# left, which saves a seventh of the time of a tree of 361 leaves on 3,248 x 11.
inlined = helper(inline="always")


class Features(NamedTuple):
    """The bins, and where those of each feature lie in a histogram."""

    bins: ByteArray
    base: AnyArray
    n_bins: IntArray
    is_categorical: ByteArray


class RowArrays(NamedTuple):
    """The rows that have weight, those of a node side by side, and what each of them adds to a histogram."""

    all_weights: FloatArray  # of every row
    all_codes: AnyArray
    order: AnyArray
    spare: AnyArray
    weights: FloatArray  # in this order, for the node that is added up
    codes: AnyArray
    ones: FloatArray  # what a row adds to the number of rows, empty where they are not counted
    count_codes: AnyArray


class NodeArrays(NamedTuple):
    """The nodes, a left child followed by its sibling."""

    feature: IntArray  # -1 in a leaf
    place: IntArray
    left: IntArray
    start: IntArray
    stop: IntArray
    tables: ByteArray  # (n_nodes, 256): 1 for the bins that go left
    n_nodes: IntArray  # (1,)


class WaitingNodes(NamedTuple):
    """The nodes that wait to be split, with their histograms and features."""

    stack: IntArray  # (n_slots, 3): node, slot, depth
    free: IntArray  # slots that no node uses
    counts: IntArray  # (2,): of the nodes on the stack, and of the free slots
    hists: FloatArray  # of each slot
    wholes: FloatArray
    features: IntArray  # (n_slots, n_features): those that may still split the node
    n_features: IntArray


@inlined
def lay_out_rows(weights: FloatArray, codes: AnyArray, n_sums: int, n_classes: int) -> tuple[RowArrays, AnyArray]:
    """Return the rows that have weight, and those that have none."""
    order = np.empty(weights.size, dtype=np.uint32)
    n_rows = weights.size - rows_of_weight(weights, order)
    n_counted = n_rows if n_sums > n_classes else 0
    return RowArrays(
        weights,
        codes,
        order[:n_rows],
        np.empty(n_rows, dtype=np.uint32),
        np.empty(n_rows),
        np.empty(n_rows, dtype=np.uint16),
        np.ones(n_counted),
        np.full(n_counted, n_classes, dtype=np.uint16),
    ), order[n_rows:]


@inlined
def empty_nodes(most: int) -> NodeArrays:
    """Return arrays for so many nodes."""
    return NodeArrays(
        np.full(most, -1, dtype=np.int64),
        np.empty(most, dtype=np.int64),
        np.zeros(most, dtype=np.int64),
        np.empty(most, dtype=np.int64),
        np.empty(most, dtype=np.int64),
        np.empty((most, 256), dtype=np.uint8),
        np.zeros(1, dtype=np.int64),
    )


@inlined
def empty_stack(n_rows: int, max_depth: int, n_sums: int, features: Features) -> WaitingNodes:
    """Return an empty stack, and arrays for as many histograms as will be in use at once."""
    # A node that waits has at least as many rows as its sibling, so at most log2(n_rows) wait; one is being split, and
    # one more histogram is taken before its own is free.
    n_slots = 2
    while 1 << (n_slots - 2) < n_rows:
        n_slots += 1
    n_slots = min(n_slots, max_depth)
    free, counts = np.empty(n_slots, dtype=np.int64), np.zeros(2, dtype=np.int64)
    counts[1] = n_slots
    for slot in range(n_slots):
        free[slot] = n_slots - 1 - slot
    return WaitingNodes(
        np.empty((n_slots, 3), dtype=np.int64),
        free,
        counts,
        np.empty((n_slots, n_sums, int64(features.base[-1]))),
        np.empty((n_slots, n_sums)),
        np.empty((n_slots, features.bins.shape[0]), dtype=np.int64),
        np.zeros(n_slots, dtype=np.int64),
    )


@inlined
def add_node(nodes: NodeArrays, start: int, stop: int) -> int:
    """Add a leaf that holds the rows from ``start`` to ``stop``, and return its number."""
    node = nodes.n_nodes[0]
    nodes.start[node], nodes.stop[node] = start, stop
    nodes.n_nodes[0] += 1
    return int(node)


@inlined
def take_slot(waiting: WaitingNodes) -> int:
    """Return a slot that no node uses."""
    waiting.counts[1] -= 1
    return int(waiting.free[waiting.counts[1]])


@inlined
def free_slot(waiting: WaitingNodes, slot: int) -> None:
    """Give a slot back."""
    waiting.free[waiting.counts[1]] = slot
    waiting.counts[1] += 1


@inlined
def note_features(waiting: WaitingNodes, slot: int, used: IntArray) -> None:
    """Keep the features that may still split a node."""
    for i in range(used.size):
        waiting.features[slot, i] = used[i]
    waiting.n_features[slot] = used.size


@inlined
def push(waiting: WaitingNodes, node: int, slot: int, depth: int) -> None:
    """Put a node on the stack."""
    top = waiting.counts[0]
    waiting.stack[top, 0], waiting.stack[top, 1], waiting.stack[top, 2] = node, slot, depth
    waiting.counts[0] += 1


_DEEP = 30  # levels that more leaves fit into than there are rows

_bins = types.Array(uint8, 2, "C", readonly=True)
_weights = types.Array(float64, 1, "C", readonly=True)
_flags = types.Array(uint8, 1, "C", readonly=True)
_ints = types.Array(int64, 1, "C", readonly=True)
_limits = types.Tuple((int64, float64, float64))
_stops = types.Tuple((int64, int64, float64))
Stops = tuple[int, int, float]  # most depth, least rows of a node that is split, least gain


@inlined
def _gather(
    order: AnyArray, all_weights: FloatArray, all_codes: AnyArray, weights: FloatArray, codes: AnyArray
) -> None:
    for i in range(order.size):
        weights[i], codes[i] = all_weights[order[i]], all_codes[order[i]]


@inlined
def _add_up(features: Features, rows: RowArrays, start: int, stop: int, used: IntArray, hist: FloatArray) -> None:
    """Set the histogram of some features to the sums over a node's rows."""
    here = slice(start, stop)
    bins, base, order = features.bins, features.base, rows.order[here]
    for f in used:
        clear(hist, int64(base[f]), int64(base[f + 1]))
    if order.size == rows.all_weights.size:
        add_all_to(bins, used, base, rows.all_weights, rows.all_codes, hist)
    else:
        weights, codes = rows.weights[here], rows.codes[here]
        _gather(order, rows.all_weights, rows.all_codes, weights, codes)
        add_to(bins, used, base, order, weights, codes, hist)
    if rows.ones.size:
        add_to(bins, used, base, order, rows.ones[here], rows.count_codes[here], hist)


@inlined
def _subtract(base: AnyArray, used: IntArray, hist: FloatArray, other: FloatArray) -> None:
    for k in range(hist.shape[0]):
        for f in used:
            for place in range(int64(base[f]), int64(base[f + 1])):
                hist[k, place] -= other[k, place]


@inlined
def _open_root(
    features: Features, rows: RowArrays, nodes: NodeArrays, waiting: WaitingNodes, limits: Limits, stops: Stops
) -> None:
    """Add the root, and where it may be split put it on the stack with its histogram."""
    n_classes, least_weight, _ = limits
    n_rows = rows.order.size
    node = add_node(nodes, 0, n_rows)
    sums = np.zeros((1, n_classes))
    whole = np.zeros((1, 3), dtype=np.int64)
    whole[0, 1] = n_rows
    class_sums(0, 1, whole, rows.order, rows.all_weights, rows.all_codes, sums)
    if not can_split(n_rows, sums[0], n_classes, least_weight, stops[1]):
        return
    slot = take_slot(waiting)
    for k in range(waiting.wholes.shape[1]):
        waiting.wholes[slot, k] = sums[0, k] if k < n_classes else n_rows
    used = varying(features.base, 0, features.bins.shape[0])
    note_features(waiting, slot, used)
    _add_up(features, rows, 0, n_rows, used, waiting.hists[slot])
    push(waiting, node, slot, 0)


@inlined
def _best_split(features: Features, waiting: WaitingNodes, slot: int, limits: Limits) -> tuple[float, int, int, int]:
    """Return gain, feature, place and 1 if missing values go left; forget the features that split no node below."""
    used, hist, whole = waiting.features[slot], waiting.hists[slot], waiting.wholes[slot]
    best, feature, place, missing_left = 0.0, -1, 0, 0
    left, n_features = np.empty(whole.size), 0
    _, base, n_bins, is_categorical = features
    for i in range(waiting.n_features[slot]):
        f = used[i]
        low, high = int64(base[f]), int64(base[f + 1])
        gain, at, is_left = best_of_feature(hist, low, high, n_bins[f], is_categorical[f], whole, limits, left)
        if gain > to_beat(best):
            best, feature, place, missing_left = gain, f, at, is_left
        if gain >= 0.0 or is_categorical[f]:
            used[n_features] = f
            n_features += 1
    waiting.n_features[slot] = n_features
    return best, feature, place, missing_left


@inlined
def _open_children(
    features: Features,
    rows: RowArrays,
    nodes: NodeArrays,
    waiting: WaitingNodes,
    slot: int,
    left: int,
    depth: int,
    sides: FloatArray,
    limits: Limits,
    stops: Stops,
) -> None:
    """Put the children that may be split on the stack, that of fewer rows on top; ``slot`` holds their parent."""
    n_left, n_right = nodes.stop[left] - nodes.start[left], nodes.stop[left + 1] - nodes.start[left + 1]
    is_open = (
        depth < stops[0] and can_split(n_left, sides[0], limits[0], limits[1], stops[1]),
        depth < stops[0] and can_split(n_right, sides[1], limits[0], limits[1], stops[1]),
    )
    if not is_open[0] and not is_open[1]:
        free_slot(waiting, slot)
        return
    direct = side_to_add(sides, limits[0], n_left, n_right)
    new, used = take_slot(waiting), waiting.features[slot, : waiting.n_features[slot]]
    _add_up(features, rows, nodes.start[left + direct], nodes.stop[left + direct], used, waiting.hists[new])
    if is_open[1 - direct]:
        _subtract(features.base, used, waiting.hists[slot], waiting.hists[new])
    note_features(waiting, new, used)
    fewer = int(n_right < n_left)
    for side in (1 - fewer, fewer):
        own = new if side == direct else slot
        if is_open[side]:
            for k in range(sides.shape[1]):
                waiting.wholes[own, k] = sides[side, k]
            push(waiting, left + side, own, depth)
        else:
            free_slot(waiting, own)


@inlined
def _split_top(
    features: Features,
    rows: RowArrays,
    nodes: NodeArrays,
    waiting: WaitingNodes,
    sides: FloatArray,
    limits: Limits,
    stops: Stops,
) -> None:
    """Take a node from the stack; where a split of it gains, move its rows to its children."""
    waiting.counts[0] -= 1
    top = waiting.counts[0]
    node, slot, depth = waiting.stack[top, 0], waiting.stack[top, 1], waiting.stack[top, 2]
    gain, f, place, missing_left = _best_split(features, waiting, slot, limits)
    if gain <= stops[2]:
        free_slot(waiting, slot)
        return
    how = (features.n_bins[f], features.is_categorical[f], place, missing_left, limits)
    low, high = int64(features.base[f]), int64(features.base[f + 1])
    divide_bins(waiting.hists[slot], low, high, *how, nodes.tables[node], sides)
    start, stop = nodes.start[node], nodes.stop[node]
    middle = move_rows(start, stop, features.bins[f], nodes.tables[node], rows.order, rows.spare)
    if middle in (start, stop):  # the gain was rounding
        free_slot(waiting, slot)
        return
    left = add_node(nodes, start, middle)
    add_node(nodes, middle, stop)
    nodes.feature[node], nodes.place[node], nodes.left[node] = f, place, left
    _open_children(features, rows, nodes, waiting, slot, left, depth + 1, sides, limits, stops)


@inlined
def _label(
    features: Features, rows: RowArrays, idle: AnyArray, nodes: NodeArrays, n_classes: int, predicted: AnyArray
) -> tuple[FloatArray, AnyArray]:
    """Return the shares of the classes in each node and its label, and write the label of every row."""
    n_nodes = nodes.n_nodes[0]
    feature, left = nodes.feature[:n_nodes], nodes.left[:n_nodes]
    leaves, n_leaves = np.empty((n_nodes, 3), dtype=np.int64), 0
    for node in range(n_nodes):
        if feature[node] < 0:
            leaves[n_leaves, 0], leaves[n_leaves, 1], leaves[n_leaves, 2] = nodes.start[node], nodes.stop[node], node
            n_leaves += 1
    sums, labels = np.zeros((n_nodes, n_classes)), np.empty(n_nodes, dtype=np.uint16)
    class_sums(0, n_leaves, leaves, rows.order, rows.all_weights, rows.all_codes, sums)
    settle_nodes(feature, left, sums, labels)
    spread(0, n_leaves, leaves, rows.order, labels, predicted)
    leaf_of_row = np.empty_like(idle)
    walk_bins(features.bins, idle, feature, left, nodes.tables, leaf_of_row)
    for i in range(idle.size):
        predicted[idle[i]] = labels[leaf_of_row[i]]
    return sums, labels


@inlined
def _pack(table: ByteArray, bits: ByteArray) -> None:
    """Set bit b of ``bits`` where the table holds bin b."""
    for byte in range(bits.size):
        bits[byte] = 0
    for b in range(table.size):
        bits[b >> 3] |= table[b] << (b & 7)


@inlined
def _by_levels(
    features: Features, edges: FloatArray, nodes: NodeArrays, shares: FloatArray, labels: AnyArray
) -> tuple[AnyArray, ...]:
    """Return the fields of a ``Tree``, the nodes numbered level by level."""
    n_nodes = nodes.n_nodes[0]
    order, n_placed = np.zeros(n_nodes, dtype=np.int64), 1
    feature, threshold = np.full(n_nodes, -1), np.full(n_nodes, np.nan)
    missing_left, left = np.zeros(n_nodes, dtype=np.uint8), np.zeros(n_nodes, dtype=np.int64)
    table = np.full(n_nodes, -1)
    categories, n_tables = np.empty((n_nodes, 32), dtype=np.uint8), 0
    for i in range(n_nodes):
        node = order[i]
        f = nodes.feature[node]
        if f < 0:
            continue
        feature[i], left[i], missing_left[i] = f, n_placed, nodes.tables[node, -1]
        order[n_placed], order[n_placed + 1] = nodes.left[node], nodes.left[node] + 1
        n_placed += 2
        if features.is_categorical[f]:
            _pack(nodes.tables[node], categories[n_tables])
            table[i] = n_tables
            n_tables += 1
        else:
            threshold[i] = edges[features.base[f] + uint64(nodes.place[node])]
    own_shares, own_labels = np.empty_like(shares), np.empty_like(labels)
    for i in range(n_nodes):
        own_labels[i] = labels[order[i]]
        for k in range(shares.shape[1]):
            own_shares[i, k] = shares[order[i], k]
    return feature, threshold, missing_left, left, table, categories[:n_tables].copy(), own_shares, own_labels


@kernel((_bins, uint64[::1], _ints, _flags, float64[::1], _weights, uint16[::1], _limits, int64, _stops, uint16[::1]))
def grow_whole_tree(
    bins: ByteArray,
    base: AnyArray,
    n_bins: IntArray,
    is_categorical: ByteArray,
    edges: FloatArray,
    weights: FloatArray,
    codes: AnyArray,
    limits: Limits,
    n_sums: int,
    stops: Stops,
    predicted: AnyArray,
) -> tuple[AnyArray, ...]:
    """Return the fields of the ``Tree``, and write the code that it predicts for each row."""
    features = Features(bins, base, n_bins, is_categorical)
    rows, idle = lay_out_rows(weights, codes, n_sums, limits[0])
    n_rows, max_depth = rows.order.size, stops[0]
    most_leaves = max(1, n_rows // int64(limits[2]))
    nodes = empty_nodes(2 * (most_leaves if max_depth > _DEEP else min(most_leaves, 1 << max_depth)) - 1)
    waiting = empty_stack(n_rows, max_depth, n_sums, features)
    sides = np.empty((2, n_sums))
    _open_root(features, rows, nodes, waiting, limits, stops)
    while waiting.counts[0] > 0:
        _split_top(features, rows, nodes, waiting, sides, limits, stops)
    shares, labels = _label(features, rows, idle, nodes, limits[0], predicted)
    fields: tuple[AnyArray, ...] = _by_levels(features, edges, nodes, shares, labels)
    return fields
