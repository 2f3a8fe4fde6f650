"""The weighted support vector machine as a problem: its value, its dual, and the best bounds found so far."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from counterpoise._base.types import FloatArray, IntArray

_ROUNDING = 1e-14  # a gap of this part of the value is rounding


class SVMSolution(NamedTuple):
    """A classifier, the dual variables beside it, and the bounds that they prove on the least value."""

    coefficients: FloatArray  # of the columns; for a Gram matrix, of its rows
    bias: float  # subtracted from the products: score = row @ coefficients - bias
    duals: FloatArray  # one for each row, in [-down, up]; they sum to 0 where a bias is fitted
    value: float  # of the coefficients and the bias: an upper bound
    lower: float  # what the duals prove
    n_iter: int

    @property
    def gap(self) -> float:
        """Return ``value - lower``: the least value is at most this far below ``value``."""
        return self.value - self.lower


@dataclass(frozen=True)
class Problem:
    """The weights of the two hinges of each row that has any, and the regularization, in parts of a unit."""

    up: FloatArray
    down: FloatArray
    regularization: float
    fit_bias: bool
    unit: float = 1.0  # a power of two: products of weights as they were given might not be numbers

    def hinges(self, scores: FloatArray) -> float:
        """Return the weighted sum of the hinges."""
        return float(self.up @ np.maximum(0.0, 0.5 - scores) + self.down @ np.maximum(0.0, 0.5 + scores))

    def proven(self, duals: FloatArray, square: float) -> float:
        """Return the lower bound of duals whose weighted sum of rows has the given squared norm.

        Entry by entry: for a dual in [-down, up] the least of ``up max(0, 1/2 - z) + down max(0, 1/2 + z) + dual z``
        over all z lies at one of the two kinks, z = 1/2 or z = -1/2: ``(up + down - abs(dual - (up - down))) / 2``.
        """
        heights = self.up + self.down - np.abs(duals - (self.up - self.down))
        return float(heights.sum() / 2 - square / (2 * self.regularization))

    def best_bias(self, products: FloatArray, near: float) -> float:
        """Return the bias of least value for given ``row @ coefficients``, the nearest to ``near`` where many are.

        As a function of the bias the value is piecewise linear, with a kink where a row's score is 1/2 or -1/2.
        """
        kinks = np.concatenate([products - 0.5, products + 0.5])
        order = np.argsort(kinks)
        slopes = np.cumsum(np.concatenate([self.up, self.down])[order]) - self.down.sum()
        rounding = _ROUNDING * (self.up.sum() + self.down.sum())
        last = kinks.size - 1
        first = kinks[order[min(int(np.searchsorted(slopes, -rounding)), last)]]
        final = kinks[order[min(int(np.searchsorted(slopes, rounding, side="right")), last)]]
        return float(min(max(near, first), final))


def balanced(duals: FloatArray, problem: Problem) -> tuple[FloatArray, IntArray]:
    """Return duals that sum to 0, as a free bias asks for, and the places where they differ from the given ones.

    Rows strictly inside a piece of their function can be moved at no cost to first order, so they share the excess if
    they have room for it; otherwise all rows do, which always have: every interval [-down, up] holds 0.
    """
    excess = float(duals.sum())
    room = duals + problem.down if excess > 0 else problem.up - duals
    inside = (duals > -problem.down) & (duals < problem.up) & (duals != problem.up - problem.down)
    changed = np.flatnonzero(inside if room[inside].sum() >= abs(excess) else room > 0)
    moved = duals.copy()
    if excess != 0.0:
        moved[changed] -= excess / room[changed].sum() * room[changed]
    return moved, changed


@dataclass
class Bounds:
    """The best vectors so far from both sides, and when they are good enough."""

    tol: float
    value: float = np.inf
    lower: float = -np.inf
    coefficients: FloatArray = field(default_factory=lambda: np.empty(0))
    bias: float = 0.0
    duals: FloatArray = field(default_factory=lambda: np.empty(0))

    def offer(self, coefficients: FloatArray, bias: float, value: float) -> None:
        """Keep a classifier if it is better."""
        if value < self.value:
            self.coefficients, self.bias, self.value = coefficients.copy(), bias, value

    def offer_duals(self, duals: FloatArray, lower: float) -> None:
        """Keep duals if they prove more."""
        if lower > self.lower:
            self.duals, self.lower = duals.copy(), lower

    @property
    def gap(self) -> float:
        """Return the distance of the bounds."""
        return self.value - self.lower

    @property
    def done(self) -> bool:
        """Tell whether the bounds are what was asked for."""
        return self.gap <= max(self.tol, _ROUNDING * self.value)
