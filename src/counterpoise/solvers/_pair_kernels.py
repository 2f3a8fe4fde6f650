"""The compiled loop over pairs of options of ``one_of_each``."""

import numpy as np
from numba import boolean, float64, int64
from numba.types import Tuple

from counterpoise._base.compiled import kernel
from counterpoise._base.types import FloatArray, IntArray

_SAME = 1e-12  # values nearer than this are equal, in parts of the largest value
_floats, _table, _places = float64[::1], float64[:, ::1], int64[:, ::1]
_arrays = (_table, _table, _floats, _floats, _places, _places, _places, _floats, _floats)


@kernel(Tuple((int64, int64, float64, float64, int64))(*_arrays, float64, float64, float64, int64, boolean))
def best_pair(  # noqa: C901, PLR0912 - one loop, which numba compiles as a whole
    first: FloatArray,  # (n_options, n_sums): what each option adds to the sums
    second: FloatArray,
    first_bounds: FloatArray,  # rising: what any pair with an option costs at least, above the floor
    second_bounds: FloatArray,
    first_places: IntArray,  # (n_lists, n_options)
    second_places: IntArray,
    ordered: IntArray,  # (n_pairs, 2): lists in the first of which the place must not be after that in the second
    constants: FloatArray,
    limits: FloatArray,
    violation: float,
    value: float,
    floor: float,
    looks: int,
    to_violation: bool,
) -> tuple[int, int, float, float, int]:
    """Return the pair with the least violation, then value, with both; -1 where none is better than those given.

    Unless the violation is looked for, only pairs without any count. The last number is the first option whose pairs
    would exceed the number of looks, or -1.
    """
    best_row, best_column, n_limits, n_sums = -1, -1, limits.size, constants.size
    for row in range(first_bounds.size):
        best = violation if to_violation else value if violation == 0.0 else np.inf
        if to_violation and best == 0.0:
            break
        slack = best - floor
        if slack < np.inf:
            slack -= _SAME * max(1.0, abs(best))
        if first_bounds[row] > slack:
            break
        for column in range(second_bounds.size):
            if column > 0 and first_bounds[row] + second_bounds[column] > slack:
                break
            if looks <= 0:
                return best_row, best_column, violation, value, row
            looks -= 1
            is_ordered = True
            for pair in range(len(ordered)):
                before, after = ordered[pair, 0], ordered[pair, 1]
                place = first_places[before, row] + second_places[before, column]
                is_ordered &= place <= first_places[after, row] + second_places[after, column]
            if not is_ordered:
                continue
            above, most = 0.0, violation if to_violation else 0.0
            for at in range(n_limits):
                above += max(first[row, at] + second[column, at] + constants[at] - limits[at], 0.0)
            if above > most:
                continue
            largest = -np.inf
            for at in range(n_limits, n_sums):
                largest = max(largest, first[row, at] + second[column, at] + constants[at])
            if above < violation or largest < value:
                best_row, best_column, violation, value = row, column, above, largest
    return best_row, best_column, violation, value, -1
