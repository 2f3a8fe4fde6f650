"""Compiled loops of ``worst_case``: one pass over the gaps for each value of a divergence.

``gaps`` lie in [0, 1] and are 0 at the largest loss. ``mass`` sums to 1 over the samples: entry ``i * step`` is that of
sample i, so a step of 0 means equal masses and needs one entry only.
"""

import numpy as np

from counterpoise._base.compiled import kernel
from counterpoise._base.types import FloatArray

_BLOCK = 256  # added up apart: sums of many equal weights would all be rounded to one side
_SMALL, _LARGE = 1e-150, 1e150  # products between them can take one more factor


@kernel("void(Array(float64, 1, 'C', readonly=True), float64, float64, float64, float64[::1])")
def fill_gaps(losses: FloatArray, largest: float, spread: float, tie: float, gaps: FloatArray) -> None:
    """Set the gaps to the distances from the largest loss over the spread; those below ``tied`` to 0."""
    for i in range(losses.size):
        gap = (largest - losses[i]) / spread
        gaps[i] = gap if gap >= tie else 0.0


@kernel("UniTuple(float64, 2)(float64[::1], float64[::1], int64)")
def mean_and_variance(gaps: FloatArray, mass: FloatArray, step: int) -> tuple[float, float]:
    """Return mean and variance, in two passes."""
    mean, variance = 0.0, 0.0
    for i in range(gaps.size):
        mean += mass[i * step] * gaps[i]
    for i in range(gaps.size):
        variance += mass[i * step] * (gaps[i] - mean) ** 2
    return mean, variance


@kernel("UniTuple(float64, 3)(float64[::1], float64[::1], int64, float64, float64)")
def floor_means(gaps: FloatArray, mass: FloatArray, step: int, mean: float, floor: float) -> tuple[float, float, float]:
    """Return the means of ``log(1 + c)``, ``c^2 / (1 + c)`` and ``(c / (1 + c))^2``.

    There ``1 + c = (gap + floor) / (mean + floor)``, so c has the mean 0, and in these three terms neither the sum of
    the weights nor its slope loses digits. With equal masses the logarithm is taken of products: it would cost more
    than all the rest.
    """
    scale = 1.0 / (mean + floor)
    logs, product, first, second = 0.0, 1.0, 0.0, 0.0
    for i in range(gaps.size):
        rise = (gaps[i] + floor) * scale
        part = (gaps[i] - mean) * scale
        ratio = part / rise
        entry = mass[i * step]
        first += entry * part * ratio
        second += entry * ratio * ratio
        if step == 0 and rise > _SMALL:
            product *= rise
            if not _SMALL < product < _LARGE:
                logs += entry * np.log(product)
                product = 1.0
        else:
            logs += entry * np.log(rise)
    return logs + mass[0] * np.log(product), first, second


@kernel("UniTuple(float64, 3)(float64[::1], float64[::1], int64, float64)")
def tilt_means(gaps: FloatArray, mass: FloatArray, step: int, rate: float) -> tuple[float, float, float]:
    """Return the sum of the weights ``mass * exp(-rate * gaps)``, and under them the means of gaps and squared gaps."""
    total, first, second = 0.0, 0.0, 0.0
    for start in range(0, gaps.size, _BLOCK):
        block, block_first, block_second = 0.0, 0.0, 0.0
        for i in range(start, min(start + _BLOCK, gaps.size)):
            weight = mass[i * step] * np.exp(-rate * gaps[i])
            block += weight
            block_first += weight * gaps[i]
            block_second += weight * gaps[i] * gaps[i]
        total, first, second = total + block, first + block_first, second + block_second
    return total, first / total, second / total


@kernel("UniTuple(float64, 3)(float64[::1], float64[::1], int64, float64)")
def clip_means(gaps: FloatArray, mass: FloatArray, step: int, edge: float) -> tuple[float, float, float]:
    """Return the mass of the gaps below the edge, and the means of ``max(1 - gap / edge, 0)`` and of its square."""
    total, first, second = 0.0, 0.0, 0.0
    for i in range(gaps.size):
        height = 1.0 - gaps[i] / edge
        if height > 0.0:
            total += mass[i * step]
            first += mass[i * step] * height
            second += mass[i * step] * height * height
    return total, first, second
