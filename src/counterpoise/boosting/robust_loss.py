"""The robust loss of a score: its worst weights, its slopes, and its least value along a direction."""

import math
from typing import NamedTuple

import numpy as np
from numba import float64, types

from counterpoise._base.compiled import kernel
from counterpoise._base.types import FloatArray
from counterpoise.solvers.worst_case import ball_around
from counterpoise.theory.losses import MarginLoss, exponential, squared

_LONGEST = 12.0  # step: half the log odds of a model that is wrong once in ten billion
_SHORTEST = 1e-3  # first guess of a step; both in units of the direction's largest value
_MOST_ODDS = 1e300  # of being right, that are finite
# Part of the slope at the start that may be left at the end of a line search: of one that is gone in part only, and of
# one that is gone to its end, as in the paper.
ROUGH, EXACT = 0.02, 1e-6
_ROUNDING = 1e-13  # part of the robust loss below which it has not fallen
_MOST_TRIES = 40  # false position takes two or three ...
_BISECT_FROM = 8  # ... or very many, where one end is far up an exponential: from here on the bracket is halved

_floats = float64[::1]


class State(NamedTuple):
    """A score, seen from the samples."""

    margins: FloatArray  # label times score
    losses: FloatArray
    weights: FloatArray  # the worst in the ball
    slopes: FloatArray  # of the robust loss by each margin
    value: float  # the robust loss


class LineStep(NamedTuple):
    """A step along a direction, and the state there."""

    step: float
    state: State
    is_endless: bool = False  # whether the robust loss falls for ever, and the step was cut


class RobustLoss:
    """``max over weights in a ball of weights @ losses``, for the losses of a score.

    Parameters
    ----------
    loss : MarginLoss
        Convex.
    divergence, radius
        The ball, as for ``worst_case_weights``.
    own : array of shape (n_samples,)
        The samples' own weights, on the simplex: the centre of the ball.
    """

    def __init__(self, loss: MarginLoss, divergence: str, radius: float, own: FloatArray) -> None:
        self.loss, self.divergence, self.radius = loss, divergence, radius
        self._own = None if np.ptp(own) == 0 else own
        self._root = math.nan  # of the last ball: scores change little in a round, so it is near the next one
        self._part = 1.0  # the last step over what it would have been at fixed weights

    def at(self, margins: FloatArray, losses: FloatArray | None = None) -> State:
        """Return the state of the samples with the given margins."""
        losses = self.loss.value(margins) if losses is None else losses
        worst = ball_around(losses, self._own).worst(self.radius, self.divergence, self._root)
        self._root = worst.root
        # The slope of the exponential loss is the loss itself; a second exponential would cost as much as all the rest.
        slopes = -losses if self.loss is exponential else self.loss.slope(margins)
        return State(margins, losses, worst.weights, worst.weights * slopes, dot(worst.weights, losses))

    def along(self, state: State, sides: FloatArray, step: float, *, are_signs: bool) -> State:
        """Return the state after a step; ``sides`` are the direction's values times the labels."""
        margins = state.margins + step * sides
        if self.loss is exponential and are_signs:
            factors = np.where(sides > 0.0, math.exp(-step), math.exp(step))  # no exponential for each sample
            return self.at(margins, state.losses * factors)
        return self.at(margins)

    def line_search(self, state: State, sides: FloatArray, *, are_signs: bool, flat: float = ROUGH) -> LineStep:
        """Return the step to the least robust loss along a direction; 0 where it does not fall.

        The robust loss is convex, so its slope along the direction rises and its zero is sought. The search ends where
        the part ``flat`` of the first slope is left and the robust loss is below that at the start, or at the longest
        step.
        Where losses are equal the worst weights are not unique and the first slope is only that of some: the robust
        loss may still rise at once. A model may be wrong only where the worst weights are 0 at the start, but not on
        the way: whether the robust loss falls for ever follows from the direction, not from the slopes.
        """
        falls, rises, largest = by_side(state.slopes, sides)
        first = rises - falls
        if not first < 0.0:
            return LineStep(0.0, state)
        longest = _LONGEST / largest
        if self.loss is not squared and float(sides.min()) > 0.0:
            return LineStep(longest, self.along(state, sides, longest, are_signs=are_signs), is_endless=True)
        # AdaBoost's step, at which the loss is least where the weights stay and the direction is -1 or +1 only.
        half_odds = math.log(min(falls / rises, _MOST_ODDS)) / 2 if rises > 0.0 else 1.0
        first_step, longest = max(half_odds, _SHORTEST) / largest, longest if are_signs else math.inf
        bracket, best = _Bracket(first, longest), LineStep(0.0, state)
        step = min(max(first_step * self._part, _SHORTEST / largest), longest)
        for _ in range(_MOST_TRIES):
            there = self.along(state, sides, step, are_signs=are_signs)
            slope = dot(there.slopes, sides)
            if there.value < best.state.value - _ROUNDING * abs(state.value):
                best = LineStep(step, there)
            if (abs(slope) <= -flat * first or (slope < 0.0 and step == longest)) and best.step == step:
                break
            step = bracket.narrow(step, slope)
        self._part = best.step / first_step if best.step > 0.0 else 1.0
        return best


class _Bracket:
    """False position for the zero of a rising function, with the end that stays halved (Illinois), then bisection."""

    def __init__(self, slope: float, longest: float) -> None:
        self.low, self.low_slope = 0.0, slope
        self.high, self.high_slope, self.longest = math.inf, math.nan, longest
        self.rose = False  # whether the low end moved last
        self.n_tries = 0

    def narrow(self, step: float, slope: float) -> float:
        """Take in a step and its slope, and return the next to try."""
        self.n_tries += 1
        if slope < 0.0:
            self.high_slope /= 2 if self.rose else 1
            self.low, self.low_slope, self.rose = step, slope, True
        else:
            self.low_slope /= 1 if self.rose or self.high == math.inf else 2
            self.high, self.high_slope, self.rose = step, slope, False
        if self.high == math.inf:
            return min(2.0 * step, self.longest)
        if self.n_tries >= _BISECT_FROM:
            return (self.low + self.high) / 2
        return self.low + (self.high - self.low) * self.low_slope / (self.low_slope - self.high_slope)


# Plain loops: a threaded product of vectors waits longer than it computes.
@kernel(float64(_floats, _floats))
def dot(first: FloatArray, second: FloatArray) -> float:
    """Return the sum of the products."""
    total = 0.0
    for i in range(first.size):
        total += first[i] * second[i]
    return total


@kernel(types.UniTuple(float64, 3)(_floats, _floats))
def by_side(slopes: FloatArray, sides: FloatArray) -> tuple[float, float, float]:
    """Return by how much a direction lowers and raises a loss with these slopes, and the direction's largest size."""
    falls, rises, largest = 0.0, 0.0, 0.0
    for i in range(slopes.size):
        change = slopes[i] * sides[i]
        falls -= min(change, 0.0)
        rises += max(change, 0.0)
        largest = max(largest, abs(sides[i]))
    return falls, rises, largest
