"""Losses of a sample as functions of its margin ``y f(x)``, the label -1 or +1 times the score.

Each has a value and a slope, the derivative by the margin; where there is a kink, the slope to its right, where the
loss is still lower.

>>> from counterpoise.theory.losses import exponential
>>> exponential.value([0.0, 1.0]).round(3).tolist(), exponential.slope([0.0, 1.0]).round(3).tolist()
([1.0, 0.368], [-1.0, -0.368])
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from counterpoise._base.types import ArrayLike, FloatArray

__all__ = ["LOSSES", "MarginLoss", "exponential", "hinge", "logistic", "ramp", "squared", "zero_one"]

_MOST = 700.0  # exponent at which the exponential loss is cut, near 1e304: sums of weights times losses stay finite
_HALF = 0.5

MarginFunction = Callable[[FloatArray], FloatArray]


class MarginLoss(NamedTuple):
    """A loss as a function of the margin.

    Attributes
    ----------
    name : str
        How parameters refer to it.
    is_convex : bool
        Whether the value is convex in the margin, so that boosting can descend on it.
    """

    name: str
    is_convex: bool
    value_of: MarginFunction
    slope_of: MarginFunction

    def value(self, margins: ArrayLike) -> FloatArray:
        """Return the loss at each margin."""
        return np.asarray(self.value_of(np.asarray(margins, dtype=np.float64)))

    def slope(self, margins: ArrayLike) -> FloatArray:
        """Return the derivative of the loss by the margin, at each margin."""
        return np.asarray(self.slope_of(np.asarray(margins, dtype=np.float64)))


def _exponential(margins: FloatArray) -> FloatArray:
    return np.asarray(np.exp(np.minimum(-margins, _MOST)))


def _logistic_slope(margins: FloatArray) -> FloatArray:
    small = np.exp(-np.abs(margins))  # never overflows
    return np.asarray(-np.where(margins > 0.0, small, 1.0) / (1.0 + small))


#: 1 where the margin is not positive: a score of 0 decides nothing, and is counted as wrong.
zero_one = MarginLoss("zero-one", False, lambda m: (m <= 0.0).astype(np.float64), np.zeros_like)

#: ``max(0, 1/2 - m)``, the tight convex bound of the ramp (Goh et al.); the hinge at 1 is ``2 hinge(m / 2)``.
hinge = MarginLoss("hinge", True, lambda m: np.maximum(0.0, _HALF - m), lambda m: np.where(m < _HALF, -1.0, 0.0))

#: ``min(1, max(0, 1/2 - m))``: the chance that a decision drawn with probability ``1/2 + f(x)`` is wrong (Goh et al.).
ramp = MarginLoss(
    "ramp", False, lambda m: np.clip(_HALF - m, 0.0, 1.0), lambda m: np.where((m >= -_HALF) & (m < _HALF), -1.0, 0.0)
)

#: ``log(1 + exp(-m))``.
logistic = MarginLoss("logistic", True, lambda m: np.logaddexp(0.0, -m), _logistic_slope)

#: ``exp(-m)``, cut off near 1e304.
exponential = MarginLoss("exponential", True, _exponential, lambda m: -_exponential(m))

#: ``(1 - m)^2``, which is ``(y - f(x))^2`` for labels -1 and +1.
squared = MarginLoss("squared", True, lambda m: (1.0 - m) ** 2, lambda m: 2.0 * (m - 1.0))

LOSSES = {loss.name: loss for loss in (zero_one, hinge, ramp, logistic, exponential, squared)}
