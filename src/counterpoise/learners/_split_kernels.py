"""Compiled search for the best split of a node from its histogram.

The gain of a split into L and R is the decrease of the weighted Gini impurity. With the weights of the classes
``L_k`` and of the whole node ``P_k``, and their sums ``L``, ``R``, ``P``::

    sum_k L_k^2 / L + sum_k R_k^2 / R - sum_k P_k^2 / P  =  sum_k (L_k P - P_k L)^2 / (L R P)

The right form has no difference of large sums in it, so an empty gain is zero to the last digits.

A small stable sort for kernels: numba's own takes ten times as long to compile.
"""

from typing import TypeAlias

import numpy as np
from numba import float64, int64, types, uint8, uint64

from counterpoise._base.compiled import helper
from counterpoise._base.types import ByteArray, FloatArray, IntArray

_SHORT = 16  # keys that are sorted one by one, before sorted stretches are merged


@helper
def _merge(keys: FloatArray, order: IntArray, low: int, middle: int, high: int, merged: IntArray) -> None:
    """Write the places of two sorted stretches in their common order; of equals those of the first come first."""
    first, second = low, middle
    for at in range(low, high):
        if second >= high or (first < middle and keys[order[first]] <= keys[order[second]]):
            merged[at] = order[first]
            first += 1
        else:
            merged[at] = order[second]
            second += 1


@helper
def _insert(keys: FloatArray, order: IntArray, low: int, high: int) -> None:
    """Write the places from ``low`` to ``high`` in the order of their keys, one by one."""
    for place in range(low, high):
        at = place
        while at > low and keys[order[at - 1]] > keys[place]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = place


@helper
def stable_order(keys: FloatArray, n_keys: int) -> IntArray:
    """Return the places of the first ``n_keys`` keys, none of which is NaN, in rising order."""
    order, merged = np.empty(n_keys, dtype=np.int64), np.empty(n_keys, dtype=np.int64)
    for low in range(0, n_keys, _SHORT):
        _insert(keys, order, low, min(low + _SHORT, n_keys))
    width = _SHORT
    while width < n_keys:
        for low in range(0, n_keys, 2 * width):
            _merge(keys, order, low, min(low + width, n_keys), min(low + 2 * width, n_keys), merged)
        order, merged = merged, order
        width *= 2
    return order


_TIE = 1.0 + 1e-9  # gains closer than this factor are equal: rounding must not choose between features
NO_SPLIT = -1.0  # the gain where no split leaves enough on both sides
_MISSING_BIN = 255
_TWO = 2  # classes

_bytes2 = uint8[:, ::1]
_slots = uint64[::1]
_ints = int64[::1]
_ints2 = int64[:, ::1]
_floats2 = float64[:, ::1]
_floats3 = float64[:, :, ::1]
_readonly_ints = types.Array(int64, 1, "C", readonly=True)  # may come from a file mapped into memory
_readonly_flags = types.Array(uint8, 1, "C", readonly=True)
_limits = types.Tuple((int64, float64, float64))
Limits: TypeAlias = tuple[int, float, float]  # number of classes; least weight and least number of rows of a side

_plain = helper(error_model="numpy")  # which spares a test of each divisor
# Numba counts the references to every array that a call hands over: 60 ns, as much as the search of some ten bins.
_inlined = helper(error_model="numpy", inline="always")


@_plain
def to_beat(gain: float) -> float:
    """Return what a gain must be above to count as larger."""
    return max(gain, gain * _TIE)


@_plain
def _gain(left: FloatArray, whole: FloatArray, limits: Limits) -> float:
    """Return the gain, ``NO_SPLIT`` where a side is too small; the last entry counts rows if there is one more."""
    n_classes, least_weight, least_count = limits
    all_left, total = 0.0, 0.0
    for k in range(n_classes):
        all_left += left[k]
        total += whole[k]
    if all_left <= least_weight or total - all_left <= least_weight:
        return NO_SPLIT
    if left.size > n_classes and not least_count <= left[n_classes] <= whole[n_classes] - least_count:
        return NO_SPLIT
    above = 0.0
    for k in range(n_classes):
        above += (left[k] * total - whole[k] * all_left) ** 2
    return above / (all_left * (total - all_left) * total)


@_plain
def _best_threshold_of_two(hist, low, n_bins, counts_rows, left, whole, limits):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Do what ``_best_prefix`` does for two classes and bins in their own order, faster.

    ``counts_rows`` is None where the histogram does not: known when this is compiled, so the loop need not ask.
    """
    total, positive, least = whole[0] + whole[1], whole[1], limits[1]
    all_left, positive_left = left[0] + left[1], left[1]
    best, bar, place = NO_SPLIT, NO_SPLIT, 0
    is_enough, n_left = True, 0.0
    if counts_rows is not None:
        n_left = left[2]
    for b in range(n_bins):
        slot = uint64(low + b)  # unsigned, which spares a test of each index
        all_left += hist[0, slot] + hist[1, slot]
        positive_left += hist[1, slot]
        right = total - all_left
        if counts_rows is not None:
            n_left += hist[2, slot]
            is_enough = limits[2] <= n_left <= whole[2] - limits[2]
        if all_left > least and right > least and is_enough:
            above, below = (positive_left * total - positive * all_left) ** 2, all_left * right
            if above > bar * below:  # a division only where it is the best so far
                best, place = above / below, b
                bar = best * _TIE
    return best if best < 0.0 else 2.0 * best / total, place


@_plain
def _best_prefix(hist, low, n_places, order, left, whole, limits):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Return the best gain, and its place, of sending the bins up to a place in the order left, beside ``left``.

    ``order`` is None where the bins are in their own.
    """
    best, place = NO_SPLIT, 0
    for p in range(n_places):
        slot = low + p
        if order is not None:
            slot = low + order[p]
        for k in range(left.size):
            left[k] += hist[k, slot]
        gain = _gain(left, whole, limits)
        if gain > to_beat(best):
            best, place = gain, p
    return best, place


@_plain
def _best_single(
    hist: FloatArray, low: int, order: IntArray, left: FloatArray, whole: FloatArray, limits: Limits
) -> tuple[float, int]:
    """Return the best gain, and its place, of sending one bin left, beside ``left``, or at the last place none."""
    best, place = _gain(left, whole, limits), order.size
    side = np.empty(left.size)
    for p in range(order.size):
        for k in range(left.size):
            side[k] = left[k] + hist[k, low + order[p]]
        gain = _gain(side, whole, limits)
        if gain > to_beat(best):
            best, place = gain, p
    return best, place


@_plain
def _weight(hist: FloatArray, place: int, limits: Limits) -> float:
    total = 0.0
    for k in range(limits[0]):
        total += hist[k, place]
    return total


@_plain
def _ordered_bins(hist: FloatArray, low: int, n_bins: int, is_categorical: int, limits: Limits) -> IntArray:
    """Return the bins in the order in which they are sent left.

    Those of numbers by value. Those of categories that the node holds by their share of class 1: if there are two
    classes, one of the prefixes is then the best of all subsets (Breiman et al. 1984).
    """
    order = np.arange(n_bins)
    if not is_categorical:
        return order
    shares, n_held = np.empty(n_bins), 0
    for b in range(n_bins):
        weight = _weight(hist, low + b, limits)
        if weight > limits[1]:
            order[n_held], shares[n_held] = b, hist[1, low + b] / weight
            n_held += 1
    if limits[0] != _TWO:
        return order[:n_held]
    by_share: IntArray = stable_order(shares, n_held)
    for p in range(n_held):
        by_share[p] = order[by_share[p]]
    return by_share


@_inlined
def _best_threshold(
    hist: FloatArray, low: int, n_bins: int, left: FloatArray, whole: FloatArray, limits: Limits
) -> tuple[float, int]:
    if limits[0] != _TWO:
        gain, place = _best_prefix(hist, low, n_bins, None, left, whole, limits)
        return gain, place
    if whole.size == _TWO:
        gain, place = _best_threshold_of_two(hist, low, n_bins, None, left, whole, limits)
    else:
        gain, place = _best_threshold_of_two(hist, low, n_bins, True, left, whole, limits)
    return gain, place


@_inlined
def _search(
    hist: FloatArray, low: int, n_bins: int, left: FloatArray, whole: FloatArray, is_categorical: int, limits: Limits
) -> tuple[float, int]:
    if not is_categorical:
        gain, place = _best_threshold(hist, low, n_bins, left, whole, limits)
        return gain, place
    order = _ordered_bins(hist, low, n_bins, is_categorical, limits)
    if limits[0] > _TWO:
        gain, place = _best_single(hist, low, order, left, whole, limits)
    else:
        gain, place = _best_prefix(hist, low, order.size, order, left, whole, limits)
    return gain, place


@_inlined
def best_of_feature(
    hist: FloatArray,
    low: int,
    high: int,
    n_bins: int,
    is_categorical: int,
    whole: FloatArray,
    limits: Limits,
    left: FloatArray,
) -> tuple[float, int, int]:
    """Return the best gain of one feature, its place in the order of the bins, and 1 if missing values go left.

    ``left`` is a buffer for one sum of each kind. A numeric feature that gives ``NO_SPLIT`` gives it in all nodes below
    too, because their sides are parts of these; a categorical one may not, because its order changes.
    """
    best, best_place, missing_left = NO_SPLIT, 0, 0
    has_missing = high - low > _MISSING_BIN and _weight(hist, low + _MISSING_BIN, limits) > limits[1]
    for is_left in range(2 if has_missing else 1):
        for k in range(left.size):
            left[k] = hist[k, low + _MISSING_BIN] if is_left else 0.0
        gain, place = _search(hist, low, n_bins, left, whole, is_categorical, limits)
        if not is_left or gain > to_beat(best):
            best, best_place, missing_left = gain, place, is_left
    return best, best_place, missing_left


@_plain
def _fill_table(
    hist: FloatArray, low: int, order: IntArray, place: int, one_alone: bool, table: ByteArray, sums: FloatArray
) -> None:
    """Note which bins that the node holds go left, and add up both sides."""
    for p in range(order.size):
        goes_left = p == place if one_alone else p <= place
        table[order[p]] = goes_left
        for k in range(sums.shape[1]):
            sums[0 if goes_left else 1, k] += hist[k, low + order[p]]


@_plain
def _missing_goes_left(hist: FloatArray, low: int, high: int, chosen: int, limits: Limits, sums: FloatArray) -> bool:
    """Return where missing values go, and add them to that side; where there are none, it is the heavier side."""
    if high - low > _MISSING_BIN and _weight(hist, low + _MISSING_BIN, limits) > limits[1]:
        for k in range(sums.shape[1]):
            sums[1 - chosen, k] += hist[k, low + _MISSING_BIN]
        return chosen > 0
    difference = 0.0
    for k in range(limits[0]):
        difference += sums[0, k] - sums[1, k]
    return difference >= -limits[1]  # equal but for rounding: left


@_plain
def divide_bins(
    hist: FloatArray,
    low: int,
    high: int,
    n_bins: int,
    is_categorical: int,
    place: int,
    missing_left: int,
    limits: Limits,
    table: ByteArray,
    sums: FloatArray,
) -> None:
    """Note in ``table`` which bins go left in a split, and in ``sums`` what goes left and right.

    Bins that the node does not hold go where missing values go.
    """
    for b in range(256):
        table[b] = 0
    for k in range(sums.shape[1]):
        sums[0, k], sums[1, k] = 0.0, 0.0
    order = _ordered_bins(hist, low, n_bins, is_categorical, limits)
    one_alone = is_categorical > 0 and limits[0] > _TWO
    _fill_table(hist, low, order, place, one_alone, table, sums)
    if _missing_goes_left(hist, low, high, missing_left, limits, sums):
        occurs = np.zeros(256, dtype=np.uint8)
        for p in range(order.size):
            occurs[order[p]] = 1
        for b in range(256):
            table[b] |= 1 - occurs[b]
