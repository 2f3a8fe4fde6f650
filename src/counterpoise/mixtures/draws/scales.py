"""What columns are like, learned from the rows of ``fit``, so that draws look past the noise of their computation.

- The scale is the mean binary exponent of the numbers that have a fraction: no outlier, infinity or missing value moves
  it far. Where there are none it is 1, the unit of whole numbers.
- Where most numbers have a fraction, the column was measured or computed. Sums in float32, of a batch of another size
  or of the same numbers as float64, differ by 1e-7 to 1e-5 of the scale: in cells of 1e-5 one row in ten would draw
  anew, and so would an applicant who adds a cent. Such columns get the coarsest cells in which the rows of ``fit`` stay
  apart, the coarser the more there are: all together tell millions of people apart.
- Sums leave the noise of the largest column in all others, so no cell is below 1e-8 of the largest scale, unless rows
  would not stay apart.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import AnyArray, BoolArray, FloatArray
from counterpoise.mixtures.draws.access import columns_of, is_plain, n_columns, places, taken
from counterpoise.mixtures.draws.rows import BITS, Grid, numbers_of, row_messages

_TINY = 1e-9  # what may be zero but for noise
_PLAINLY = 0.01  # from a whole number, or of its own size: a fraction for sure
_HALF = 0.4999  # so that rounding in sums of weights decides nothing where a half is exact
_BEYOND = 2.0**20  # times the scale: no number of a measured column
_FLOOR = 2.0**-10  # of the widest cell
_ENOUGH = 24  # bits that all measured columns shall tell together, of which a column has two beyond its scale
_STEP = 2  # bits by which cells are made finer, one try after the other
_APART = 0.99  # of the rows that differ must differ in coarser cells too
_LEARNED, _COMPARED = 1 << 18, 1 << 16  # values that scales are learned from, and of rows that must stay apart


def learn_grid(X: Any, sample_weight: FloatArray | None = None) -> Grid:
    """Return how finely the columns of the rows of ``fit`` shall be looked at."""
    weights = np.ones(X.shape[0]) if sample_weight is None else sample_weight
    found = _Numbers(*np.zeros((3, n_columns(X))))
    for place in places(X, most=_LEARNED):
        found = found.plus(_counted(taken(X, place), weights[place]))
    grid = found.grid()
    tries = list(_coarser(grid, found.are_measured()))
    if all((one.cells == grid.cells).all() for one in tries):
        return grid
    n_apart = _n_different(X, grid)
    return next((one for one in tries if _n_different(X, one) >= _APART * n_apart), grid)


class _Numbers(NamedTuple):
    """What is counted in each column, by weight; counts of several chunks are added."""

    n_numbers: AnyArray  # finite and not zero
    n_fractions: AnyArray  # of which so many are plainly not whole
    exponents: AnyArray  # sum of the binary exponents of those

    @classmethod
    def of(cls, values: FloatArray) -> "_Numbers":
        """Count every value for itself."""
        with np.errstate(invalid="ignore", over="ignore"):
            least = np.maximum(_TINY, _PLAINLY * np.minimum(1.0, np.abs(values)))
            is_fraction = np.abs(values - np.rint(values)) > least
        exponents = np.where(is_fraction, np.frexp(values)[1], 0)
        return cls(np.isfinite(values) & (values != 0), is_fraction, exponents)

    def plus(self, other: "_Numbers") -> "_Numbers":
        return _Numbers(*(mine + its for mine, its in zip(self, other, strict=True)))

    def are_measured(self) -> BoolArray:
        return np.asarray(self.n_fractions > _HALF * self.n_numbers)

    def grid(self) -> Grid:
        mean = self.exponents / np.where(self.n_fractions > 0, self.n_fractions, 1.0)
        scales = 2.0 ** np.ceil(mean - _HALF)
        return Grid.of(scales * 2.0**-BITS, np.where(self.are_measured(), _BEYOND * scales, 0.0))


def _coarser(grid: Grid, are_measured: BoolArray) -> Iterator[Grid]:
    """Yield coarser cells to try, the coarsest first."""
    cells = np.maximum(grid.cells, _FLOOR * grid.cells.max(initial=0.0))
    n_measured = int(are_measured.sum())
    most = 0 if n_measured == 0 else min(BITS - 2, max(0, BITS + 2 - math.ceil(_ENOUGH / n_measured)))
    for bits in [*range(most, 0, -_STEP), 0]:
        yield Grid.of(np.where(are_measured, cells * 2.0**bits, cells), grid.measured)


def _n_different(X: Any, grid: Grid) -> int:
    chunks = (taken(X, place) for place in places(X, most=_COMPARED))
    return len({message for chunk in chunks for some in row_messages(chunk, grid) for message in some})


def _counted(chunk: Any, weights: FloatArray) -> _Numbers:
    """Count the numbers in each column of some rows, by the rows' weights."""
    if hasattr(chunk, "tocsr"):  # zeros do not count
        each = np.repeat(weights, np.diff(chunk.indptr))
        parts = _Numbers.of(chunk.data.astype(np.float64))
        return _Numbers(*(np.bincount(chunk.indices, each * part, n_columns(chunk)) for part in parts))
    if is_plain(chunk):
        values = chunk.reshape(len(chunk), -1).astype(np.float64)
    else:
        values = np.column_stack([numbers_of(column)[0] for column in columns_of(chunk)])
    return _Numbers(*(weights @ part for part in _Numbers.of(values)))
