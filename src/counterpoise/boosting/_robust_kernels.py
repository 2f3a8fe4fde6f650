"""Compiled sums of the robust loss. Plain loops: a threaded product of vectors waits longer than it computes."""

from numba import float64, types

from counterpoise._base.compiled import kernel
from counterpoise._base.types import FloatArray

_floats = float64[::1]


@kernel([float64(_floats, _floats)])
def dot(first: FloatArray, second: FloatArray) -> float:
    """Return the sum of the products."""
    total = 0.0
    for i in range(first.size):
        total += first[i] * second[i]
    return total


@kernel([types.UniTuple(float64, 3)(_floats, _floats)])
def by_side(slopes: FloatArray, sides: FloatArray) -> tuple[float, float, float]:
    """Return by how much a direction lowers and raises a loss with these slopes, and the direction's largest size."""
    falls, rises, largest = 0.0, 0.0, 0.0
    for i in range(slopes.size):
        change = slopes[i] * sides[i]
        falls -= min(change, 0.0)
        rises += max(change, 0.0)
        largest = max(largest, abs(sides[i]))
    return falls, rises, largest
