"""Compiled loops over rows and classes."""

from numba import float64, int64, void

from counterpoise._base.compiled import kernel
from counterpoise._base.types import FloatArray, IntArray

_TABLE = float64[:, ::1]
_APART = 1e-9  # part of the largest benefit by which two must differ: another batch may add them up in another order


@kernel(void(_TABLE, int64[::1], float64[:, :, ::1], _TABLE))
def weigh(probabilities: FloatArray, groups: IntArray, benefits: FloatArray, second: FloatArray) -> None:
    """Fill in what each answer is worth to each row: its probabilities times the benefits of its group.

    Threads of a matrix product wait for each other longer than this takes.
    """
    n_rows, n_classes = probabilities.shape
    for row in range(n_rows):
        for label in range(n_classes):
            probability = probabilities[row, label]
            for one in range(second.shape[1]):
                second[row, one] += probability * benefits[groups[row], label, one]


@kernel(void(_TABLE, _TABLE, float64, float64, float64, _TABLE))
def defer(
    probabilities: FloatArray, second: FloatArray, gain: float, share: float, cost: float, shares: FloatArray
) -> None:
    """Defer rows, wholly or with a part of the mass, where that is cheaper than the answers that were filled in.

    The last answer is deferral. With a part of ``share / (1 - cost)`` no label loses more than ``1 - share``.
    """
    n_rows, n_classes = probabilities.shape
    for row in range(n_rows):
        filled, best = 0.0, 0
        for one in range(n_classes):
            missing = max(share - shares[row, one], 0.0)
            filled += gain * probabilities[row, one] * missing - shares[row, one] * second[row, one]
            best = one if second[row, one] > second[row, best] else best
        own, rest = second[row, n_classes], second[row, best]
        tolerance = _APART * (gain + abs(own) + abs(rest))
        deferring, part = gain * max(cost - 1.0 + share, 0.0) - own, 1.0
        if share < 1.0 - cost:
            mass = share / (1.0 - cost)
            capped = -mass * own - (1.0 - mass) * rest
            if capped < deferring - tolerance:
                deferring, part = capped, mass
        if deferring < filled - tolerance:
            shares[row, :] = 0.0
            shares[row, best] = 1.0 - part
            shares[row, n_classes] = part


@kernel(void(_TABLE, _TABLE, float64, float64, int64, _TABLE))
def fill(
    probabilities: FloatArray, second: FloatArray, gain: float, share: float, layer: int, shares: FloatArray
) -> None:
    """Fill the answers of two-tier rules, which are zero before: see ``TierRule``.

    ``second`` are the benefits of the second tier, ``gain`` times a probability is what the first adds. The layer is
    the number of the step that alone decides; -1: each has its share.
    """
    n_rows, n_classes = probabilities.shape
    for row in range(n_rows):
        best = 0
        for one in range(1, n_classes):
            if second[row, one] > second[row, best] + _APART * abs(second[row, best]):
                best = one
        tolerance = _APART * (gain + abs(second[row, best]))
        left, step, answer = 1.0, 0, best
        while left > _APART:
            chosen, highest = -1, second[row, best] - tolerance
            for one in range(n_classes):
                benefit = gain * probabilities[row, one] + second[row, one]
                if shares[row, one] == 0.0 and benefit > highest:
                    chosen, highest = one, benefit + tolerance
            if chosen < 0:
                break
            answer = chosen if step == layer else answer
            shares[row, chosen] = min(share, left)
            left -= shares[row, chosen]
            step += 1
        if layer < 0:
            shares[row, best] += max(left, 0.0)
        else:
            shares[row, :] = 0.0
            shares[row, answer] = 1.0
