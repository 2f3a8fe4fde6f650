"""Compiled search for the best split of a node from its histogram.

The gain of a split into L and R is the decrease of the weighted Gini impurity. With the weights of the classes
``L_k`` and of the whole node ``P_k``, and their sums ``L``, ``R``, ``P``::

    sum_k L_k^2 / L + sum_k R_k^2 / R - sum_k P_k^2 / P  =  sum_k (L_k P - P_k L)^2 / (L R P)

The right form has no difference of large sums in it, so an empty gain is zero to the last digits.
"""

from typing import TypeAlias

import numpy as np
from numba import float64, int64, njit, types, uint8, uint64, void

from counterpoise._compiled import kernel
from counterpoise._types import AnyArray, ByteArray, FloatArray, IntArray
from counterpoise.learners._tree_kernels import subtract

_TIE = 1.0 + 1e-9  # gains closer than this factor are equal: rounding must not choose between features
_MISSING_BIN = 255
_TWO = 2  # classes

_bytes2 = uint8[:, ::1]
_slots = uint64[::1]
_ints = int64[::1]
_ints2 = int64[:, ::1]
_floats2 = float64[:, ::1]
_floats3 = float64[:, :, ::1]
_given_ints = types.Array(int64, 1, "C", readonly=True)  # may come from a file mapped into memory
_given_flags = types.Array(uint8, 1, "C", readonly=True)
_limits = types.Tuple((int64, float64, float64))
Limits: TypeAlias = tuple[int, float, float]  # number of classes; least weight and least number of rows of a side


@njit(nogil=True)
def _gain(left: FloatArray, whole: FloatArray, limits: Limits) -> float:
    """Return the gain of a split, or 0 where a side is too small; the last entry counts rows if there is one more."""
    n_classes, least_weight, least_count = limits
    all_left, total = 0.0, 0.0
    for k in range(n_classes):
        all_left += left[k]
        total += whole[k]
    if all_left <= least_weight or total - all_left <= least_weight:
        return 0.0
    if left.size > n_classes and not least_count <= left[n_classes] <= whole[n_classes] - least_count:
        return 0.0
    above = 0.0
    for k in range(n_classes):
        above += (left[k] * total - whole[k] * all_left) ** 2
    return above / (all_left * (total - all_left) * total)


@njit(nogil=True, error_model="numpy")  # which spares a test of each divisor
def _best_threshold_of_two(
    hist: FloatArray, low: int, n_bins: int, left: FloatArray, whole: FloatArray, limits: Limits
) -> tuple[float, int]:
    """Do what ``_best_prefix`` does for two classes and bins in their own order, faster."""
    zeros, ones = hist[0, low : low + n_bins], hist[1, low : low + n_bins]
    total, positive, least = whole[0] + whole[1], whole[1], limits[1]
    all_left, positive_left = left[0] + left[1], left[1]
    best, to_beat, place = 0.0, 0.0, 0
    for b in range(n_bins):
        all_left += zeros[b] + ones[b]
        positive_left += ones[b]
        right = total - all_left
        if all_left > least and right > least:
            gain = (positive_left * total - positive * all_left) ** 2 / (all_left * right)
            if gain > to_beat:
                best, to_beat, place = gain, gain * _TIE, b
    return 2.0 * best / total, place


@njit(nogil=True)
def _best_prefix(
    hist: FloatArray, low: int, order: IntArray, left: FloatArray, whole: FloatArray, limits: Limits
) -> tuple[float, int]:
    """Return the best gain, and its place, of sending the bins up to a place in the order left, beside ``left``."""
    best, place = 0.0, 0
    for p in range(order.size):
        for k in range(left.size):
            left[k] += hist[k, low + order[p]]
        gain = _gain(left, whole, limits)
        if gain > best * _TIE:
            best, place = gain, p
    return best, place


@njit(nogil=True)
def _best_single(
    hist: FloatArray, low: int, order: IntArray, left: FloatArray, whole: FloatArray, limits: Limits
) -> tuple[float, int]:
    """Return the best gain, and its place, of sending one bin left, beside ``left``, or at the last place none."""
    best, place = _gain(left, whole, limits), order.size
    side = left.copy()
    for p in range(order.size):
        for k in range(left.size):
            side[k] = left[k] + hist[k, low + order[p]]
        gain = _gain(side, whole, limits)
        if gain > best * _TIE:
            best, place = gain, p
    return best, place


@njit(nogil=True)
def _weight(hist: FloatArray, place: int, limits: Limits) -> float:
    total = 0.0
    for k in range(limits[0]):
        total += hist[k, place]
    return total


@njit(nogil=True)
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
    return order[np.argsort(shares[:n_held], kind="mergesort")]


@njit(nogil=True)
def _search(
    hist: FloatArray, low: int, n_bins: int, left: FloatArray, whole: FloatArray, is_categorical: int, limits: Limits
) -> tuple[float, int]:
    if not is_categorical and whole.size == _TWO:
        gain, place = _best_threshold_of_two(hist, low, n_bins, left, whole, limits)
        return gain, place
    order = _ordered_bins(hist, low, n_bins, is_categorical, limits)
    if is_categorical and limits[0] > _TWO:
        gain, place = _best_single(hist, low, order, left, whole, limits)
    else:
        gain, place = _best_prefix(hist, low, order, left, whole, limits)
    return gain, place


@njit(nogil=True)
def _best_of_feature(
    hist: FloatArray, low: int, high: int, n_bins: int, is_categorical: int, whole: FloatArray, limits: Limits
) -> tuple[float, int, int]:
    """Return the best gain of one feature, its place in the order of the bins, and 1 if missing values go left."""
    left = np.zeros(whole.size)
    gain, place = _search(hist, low, n_bins, left, whole, is_categorical, limits)
    if high - low <= _MISSING_BIN or _weight(hist, low + _MISSING_BIN, limits) <= limits[1]:
        return gain, place, 0
    for k in range(whole.size):
        left[k] = hist[k, low + _MISSING_BIN]
    gain_left, place_left = _search(hist, low, n_bins, left, whole, is_categorical, limits)
    if gain_left > gain * _TIE:
        return gain_left, place_left, 1
    return gain, place, 0


@kernel(
    [
        void(
            int64,
            int64,
            _ints2,
            _slots,
            _given_ints,
            _given_flags,
            _ints,
            _floats3,
            _floats2,
            _limits,
            _floats2,
            _ints2,
            _bytes2,
        )
    ]
)
def search_splits(
    first: int,
    last: int,
    subtractions: IntArray,
    base: AnyArray,
    n_bins: IntArray,
    is_categorical: ByteArray,
    slots: IntArray,
    hists: FloatArray,
    wholes: FloatArray,
    limits: Limits,
    gains: FloatArray,
    places: IntArray,
    missing_left: ByteArray,
) -> None:
    """Find the best split of every node by every feature from ``first`` to ``last``.

    Histograms that are what one child leaves of the parent are subtracted first.
    """
    subtract(int64(base[first]), int64(base[last]), subtractions, hists)
    for node in range(slots.size):
        for f in range(first, last):
            low, high = int64(base[f]), int64(base[f + 1])
            gains[node, f], places[node, f], missing_left[node, f] = _best_of_feature(
                hists[slots[node]], low, high, n_bins[f], is_categorical[f], wholes[node], limits
            )


@njit(nogil=True)
def _best_feature(gains: FloatArray) -> int:
    best = 0
    for f in range(1, gains.size):
        if gains[f] > gains[best] * _TIE:
            best = f
    return best


@njit(nogil=True)
def _fill_table(
    hist: FloatArray, low: int, order: IntArray, place: int, one_alone: bool, table: ByteArray, sums: FloatArray
) -> None:
    """Note which bins that the node holds go left, and add up both sides."""
    for p in range(order.size):
        goes_left = p == place if one_alone else p <= place
        table[order[p]] = goes_left
        for k in range(sums.shape[1]):
            sums[0 if goes_left else 1, k] += hist[k, low + order[p]]


@njit(nogil=True)
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


@kernel(
    [
        void(
            *(_slots, _given_ints, _given_flags, _ints, _floats3, _limits, float64),
            *(_floats2, _ints2, _bytes2, _ints2, _bytes2, _floats3),
        )
    ]
)
def choose_splits(
    base: AnyArray,
    n_bins: IntArray,
    is_categorical: ByteArray,
    slots: IntArray,
    hists: FloatArray,
    limits: Limits,
    least_gain: float,
    gains: FloatArray,
    places: IntArray,
    missing_left: ByteArray,
    chosen: IntArray,
    tables: ByteArray,
    sums: FloatArray,
) -> None:
    """For each node: choose (feature, place), the feature -1 where no gain is large enough.

    ``sums``, zero on entry, gets both sides; ``tables`` the bins that go left. Those that the node does not
    hold go where missing values go.
    """
    for node in range(slots.size):
        f = _best_feature(gains[node])
        place = places[node, f]
        chosen[node, 0], chosen[node, 1] = f, place
        if gains[node, f] <= least_gain:
            chosen[node, 0] = -1
            continue
        hist, low, high = hists[slots[node]], int64(base[f]), int64(base[f + 1])
        order = _ordered_bins(hist, low, n_bins[f], is_categorical[f], limits)
        one_alone = is_categorical[f] > 0 and limits[0] > _TWO
        _fill_table(hist, low, order, place, one_alone, tables[node], sums[node])
        goes_left = _missing_goes_left(hist, low, high, missing_left[node, f], limits, sums[node])
        if goes_left:
            held = np.zeros(256, dtype=np.uint8)
            for p in range(order.size):
                held[order[p]] = 1
            for b in range(256):
                tables[node, b] |= 1 - held[b]
