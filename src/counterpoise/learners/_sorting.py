"""A small stable sort for kernels: numba's own takes ten times as long to compile."""

import numpy as np

from counterpoise._base.compiled import helper
from counterpoise._base.types import FloatArray, IntArray

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
