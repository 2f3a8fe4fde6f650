"""Compiled loops over the rows and the cuts of one score."""

from numba import float64, int32, int64, void

from counterpoise._base.compiled import kernel
from counterpoise._base.types import AnyArray, FloatArray, IntArray

_floats = float64[::1]


@kernel(void(_floats, int64[::1]))
def cumulate(values: FloatArray, starts: IntArray) -> None:
    """Replace values by their running sums, which begin anew at each start."""
    for part in range(starts.size - 1):
        total = 0.0
        for place in range(starts[part], starts[part + 1]):
            total += values[place]
            values[place] = total


@kernel(void(_floats, int64[::1], int64[::1], int64[::1]))
def cheapest_pairs(costs: FloatArray, starts: IntArray, uppers: IntArray, lowers: IntArray) -> None:
    """Find for each part two of its cuts, the second no earlier, whose costs have the least sum.

    The costs of all cuts as the first of two come before those as the second. Of equal sums the pair of cuts that are
    nearer to each other is taken, so that no row is deferred without a gain.
    """
    n_cuts = costs.size // 2
    for part in range(starts.size - 1):
        first = starts[part]
        uppers[part], lowers[part] = first, first
        least = costs[first] + costs[n_cuts + first]
        for cut in range(first + 1, starts[part + 1]):
            if costs[cut] <= costs[first]:
                first = cut
            total = costs[first] + costs[n_cuts + cut]
            if total < least:
                least = total
                uppers[part], lowers[part] = first, cut


@kernel(void(int64[::1], int32[::1], _floats, _floats, _floats))
def gather(places: IntArray, cells: AnyArray, density: FloatArray, amounts: FloatArray, sums: FloatArray) -> None:
    """Add to ``sums`` at the place of each row its amount times the density of its cell."""
    for row in range(places.size):
        sums[places[row]] += density[cells[row]] * amounts[row]


@kernel(void(int32[::1], int64[::1], int64, int64, int32[::1]))
def split(cells: AnyArray, places: IntArray, first: int, last: int, other: AnyArray) -> None:
    """Move the rows whose place is after ``first`` and up to ``last`` to the other cell of theirs.

    ``other``, -1 where a cell has none yet, ends with the new numbers; the next free one stands behind the last cell.
    """
    free = other.size - 1
    for row in range(places.size):
        if first < places[row] <= last:
            cell = cells[row]
            if other[cell] < 0:
                other[cell] = other[free]
                other[free] += 1
            cells[row] = other[cell]
