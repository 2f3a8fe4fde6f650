"""Compiled loops that turn values into bins; they release the interpreter lock."""

import math

from numba import float64, int64, types, uint8, void

from counterpoise._base.compiled import helper, kernel
from counterpoise._base.types import BoolArray, ByteArray, FloatArray

MISSING_BIN = 255
HAS_MISSING, HAS_INFINITY, HAS_BAD_CODE = 1, 2, 4  # what was met in a feature

_bytes = uint8[::1]
_bytes2 = uint8[:, ::1]
_floats2 = float64[:, ::1]
_values = types.Array(float64, 2, "C", readonly=True)  # may come from a file mapped into memory


@helper
def _value_bin(value: float, edges: FloatArray) -> int:
    """Return how many of 255 sorted edges lie below the value; those not in use are infinite."""
    place = 0
    for step in (128, 64, 32, 16, 8, 4, 2, 1):
        if edges[place + step - 1] < value:
            place += step
    return place


@helper
def _category_bin(value: float, seen: ByteArray) -> int:
    """Return the code of a category in use, else the missing bin."""
    if not 0.0 <= value < MISSING_BIN or value != math.floor(value) or not seen[int64(value)]:
        return MISSING_BIN
    return int(value)


@kernel(void(_values, _floats2, _bytes, _bytes2, int64, _bytes2, _bytes))
def bin_rows(
    values: FloatArray,
    edges: FloatArray,
    is_categorical: BoolArray,
    seen: ByteArray,
    start: int,
    bins: ByteArray,
    met: ByteArray,
) -> None:
    """Write the bins of some rows, the first of which is ``start``, and note in ``met`` what each feature held."""
    for feature in range(values.shape[1]):
        for row in range(values.shape[0]):
            value = values[row, feature]
            place = MISSING_BIN
            if math.isnan(value):
                met[feature] |= HAS_MISSING
            elif math.isinf(value):
                met[feature] |= HAS_INFINITY
            elif not is_categorical[feature]:
                place = _value_bin(value, edges[feature])
            else:
                place = _category_bin(value, seen[feature])
                if place == MISSING_BIN:
                    met[feature] |= HAS_BAD_CODE
            bins[feature, start + row] = place
