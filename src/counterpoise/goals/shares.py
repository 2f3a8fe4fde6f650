"""Goals that one share decides, and which share of failures rows must keep to certify them.

The share is one of rows, with an exact binomial bound, or of their weight, with a bound by betting. What a goal needs
is then exact for rows, and for weighted rows if failures fall on heavy and on light ones alike.
"""

import math
from typing import NamedTuple

import numpy as np

from counterpoise._base.types import FloatArray
from counterpoise.goals.goal import Goal
from counterpoise.theory.confidence import Bounds, WeightedSample, is_below, upper_share, upper_weighted_mean

_EXACT = 1e-12  # to which a share is known; shares lie from 0 to 1, so this is a part of the whole
_ROUNDING = 1e-9  # of the same whole: by so much a bound is looser than the share it was found from
_HALVINGS = 40  # of the shares from 0 to 1


class Share(NamedTuple):
    """A quantity that depends on one share p: ``(p top[0] + (1 - p) top[1]) / (p bottom[0] + (1 - p) bottom[1])``.

    It rises with p.
    """

    hits: float
    trials: float
    top: tuple[float, float]
    bottom: tuple[float, float]

    def bounds(self, risk: float) -> Bounds:
        """Return the exact bounds."""
        least = 1.0 - upper_share(self.trials - self.hits, self.trials, risk)
        return _between(self, least, upper_share(self.hits, self.trials, risk))

    def most_failures(self, allowed: float, risk: float) -> float:
        """Return the largest share of failures on the rows that shows a share of at most ``allowed``."""
        n_rows = math.floor(self.trials)
        least, most = 0, n_rows + 1  # failures: so few are enough, so many too many
        while most - least > 1:
            middle = (least + most) // 2
            least, most = (middle, most) if upper_share(middle, n_rows, risk) <= allowed else (least, middle)
        return least / n_rows

    def shown_by(self, failures: float, risk: float) -> float:
        """Return the share of failures that a share of them on the rows shows to be the most."""
        n_rows = math.floor(self.trials)
        return upper_share(math.ceil(n_rows * max(failures - _EXACT, 0.0)), n_rows, risk)

    def can_show(self, allowed: float, risk: float, n_rows: float | None = None) -> bool:
        """Tell whether these rows, or another number, show a share of at most ``allowed`` without a single failure."""
        return upper_share(0, self.trials if n_rows is None else n_rows, risk) <= allowed


class WeightedShare(NamedTuple):
    """The same for a share of the rows' weight."""

    levels: FloatArray  # weights, as parts of the largest there can be
    hits: FloatArray  # numbers of rows at each of them
    misses: FloatArray
    top: tuple[float, float]
    bottom: tuple[float, float]

    @property
    def trials(self) -> float:
        """Return the number of rows."""
        return float(self.hits.sum() + self.misses.sum())

    def bounds(self, risk: float) -> Bounds:
        """Return bounds that hold whatever the weights of rows that were not drawn."""
        least = 1.0 - upper_weighted_mean(self._sample(self.misses, self.hits), risk)
        return _between(self, least, upper_weighted_mean(self._sample(self.hits, self.misses), risk))

    def most_failures(self, allowed: float, risk: float) -> float:
        """Return the largest share of failures on the rows that shows a share of at most ``allowed``."""
        least, most = 0.0, 1.0
        for _ in range(_HALVINGS):
            middle = (least + most) / 2
            least, most = (middle, most) if is_below(self._planned(middle), allowed, risk) else (least, middle)
        return least

    def shown_by(self, failures: float, risk: float) -> float:
        """Return the share of failures that a share of them on the rows shows to be the most."""
        return upper_weighted_mean(self._planned(failures), risk)

    def can_show(self, allowed: float, risk: float, n_rows: float | None = None) -> bool:
        """Tell whether these rows, or another number, show a share of at most ``allowed`` without a single failure."""
        return is_below(self._planned(0.0, n_rows), allowed, risk)

    def _planned(self, failures: float, n_rows: float | None = None) -> WeightedSample:
        """Return rows of the same weights, or another number of such rows, of which a share fails at each weight."""
        rows = self.hits + self.misses
        if n_rows is not None:
            rows = rows * (n_rows / self.trials)
        return self._sample(failures * rows, (1.0 - failures) * rows)

    def _sample(self, failing: FloatArray, others: FloatArray) -> WeightedSample:
        values = np.repeat([1.0, 0.0], self.levels.size)
        return WeightedSample(values, np.tile(self.levels, 2), np.concatenate([failing, others]), (0.0, 1.0))

    def _check_loaded(self) -> None:
        """Check what came from a file."""
        if {self.levels.shape, self.hits.shape, self.misses.shape} != {(self.levels.size,)}:
            raise ValueError("the numbers of rows are not those of its weights")


AnyShare = Share | WeightedShare


def needed_bound(goal: Goal, share: AnyShare, risk: float) -> float:
    """Return the bound nearest to the goal's own that certifies it where the rows meet it."""
    return _at_failures(goal, share, share.most_failures(allowed_failures(goal, share), risk))


def certified_bound(goal: Goal, share: AnyShare, value: float, risk: float) -> float:
    """Return the tightest bound that rows certify which reach a value: what ``needed_bound`` is at most that for."""
    failures = allowed_failures(goal.with_bound(value), share)
    return _at_failures(goal, share, min(share.shown_by(failures, risk) + _ROUNDING, 1.0))


def can_certify(goal: Goal, share: AnyShare, risk: float) -> bool:
    """Tell whether so many rows can certify the goal at all: without a single failure."""
    return bool(share.trials) and share.can_show(allowed_failures(goal, share), risk)


def allowed_failures(goal: Goal, share: AnyShare) -> float:
    """Return the share of failures that the goal's bound allows."""
    at_bound = _share_at(goal.bound, share)
    return at_bound if goal.sense == "<=" else 1.0 - at_bound


def _at_failures(goal: Goal, share: AnyShare, failures: float) -> float:
    return _value(share, failures if goal.sense == "<=" else 1.0 - failures)


def _share_at(value: float, share: AnyShare) -> float:
    """Return the share at which the quantity has a value, or the nearest there is."""
    least, most = _between(share, 0.0, 1.0)
    if not least < value < most:
        return float(value >= most)
    at_one, at_zero = (one - value * other for one, other in zip(share.top, share.bottom, strict=True))
    return at_zero / (at_zero - at_one)


def _between(share: AnyShare, least: float, most: float) -> Bounds:
    return Bounds(_value(share, least), _value(share, most))


def _value(share: AnyShare, at: float) -> float:
    """Return the quantity where the share is ``at``."""
    top, bottom = (at * at_one + (1.0 - at) * at_zero for at_one, at_zero in (share.top, share.bottom))
    return top / bottom if bottom else math.copysign(math.inf, top)
