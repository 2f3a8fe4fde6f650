"""Compiled loops over the rows of a shard, in one pass and without arrays on the way.

Workers of Dask give memory back as soon as it is free, and to ask for it anew costs more than these loops.
"""

from numba import float64, int64, types, uint8, uint16, void

from counterpoise._base.compiled import kernel
from counterpoise._base.types import AnyArray, ByteArray, FloatArray, IntArray

_counts = uint16[::1]
_floats = float64[::1]
# What callers hand in may be read-only, mapped into memory from a file.
_codes = types.Array(uint16, 1, "C", readonly=True)
_cells = types.Array(int64, 1, "C", readonly=True)
_masses = types.Array(float64, 1, "C", readonly=True)


@kernel(void(_masses, _codes, _masses, _floats))
def weigh(table: FloatArray, totals: AnyArray, mass: FloatArray, weights: FloatArray) -> None:
    """Write the weight of each row, its mass times what the table has for its number of failures, or at its end."""
    last = table.size - 1
    for row in range(totals.size):
        weights[row] = table[min(int64(totals[row]), last)] * mass[row]


@kernel(void(_codes, _masses, _floats))
def add_by(totals: AnyArray, mass: FloatArray, sums: FloatArray) -> None:
    """Add the mass of each row to the sum of its number."""
    for row in range(totals.size):
        sums[totals[row]] += mass[row]


@kernel(void(_codes, _codes, _cells, _masses, int64, _counts, uint8[:, ::1], float64[:, ::1]))
def note(
    said: AnyArray,
    codes: AnyArray,
    cells: IntArray,
    mass: FloatArray,
    number: int,
    totals: AnyArray,
    bits: ByteArray,
    sums: FloatArray,
) -> None:
    """Count and mark where the model of that number, from 0, fails, and add up the mass of each cell by answer."""
    place, shift = number >> 3, number & 7
    for row in range(said.size):
        is_wrong = int64(said[row] != codes[row])  # no branches: processors guess half of them wrong
        sums[cells[row], said[row]] += mass[row]
        totals[row] += is_wrong
        bits[row, place] |= is_wrong << shift


@kernel(float64(_codes, _codes, _masses))
def wrong_weight(said: AnyArray, codes: AnyArray, weights: FloatArray) -> float:
    """Return the weight of the rows that are told something else than their code."""
    wrong = 0.0
    for row in range(said.size):
        wrong += weights[row] * int64(said[row] != codes[row])
    return wrong
