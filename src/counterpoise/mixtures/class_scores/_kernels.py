"""Compiled loops over rows and classes."""

from numba import float64, int64, void

from counterpoise._base.compiled import kernel
from counterpoise._base.types import FloatArray

_TABLE = float64[:, ::1]
_APART = 1e-9  # part of the largest benefit by which two must differ: another batch may add them up in another order


@kernel(void(_TABLE, _TABLE, float64, float64, int64, _TABLE))
def fill(
    probabilities: FloatArray, second: FloatArray, gain: float, share: float, layer: int, said: FloatArray
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
        room = _APART * (gain + abs(second[row, best]))
        left, step, answer = 1.0, 0, best
        while left > _APART:
            found, highest = -1, second[row, best] - room
            for one in range(n_classes):
                benefit = gain * probabilities[row, one] + second[row, one]
                if said[row, one] == 0.0 and benefit > highest:
                    found, highest = one, benefit + room
            if found < 0:
                break
            answer = found if step == layer else answer
            said[row, found] = min(share, left)
            left -= said[row, found]
            step += 1
        if layer < 0:
            said[row, best] += max(left, 0.0)
        else:
            said[row, :] = 0.0
            said[row, answer] = 1.0
