"""What columns are like, learned from the rows of ``fit``, so that draws look past the noise of their computation.

Nothing here depends on the unit of a column, nor on other columns: all exponents move by ``k`` where a column is
multiplied by ``2**k``.

- A column is *stepped* where nearly all numbers are multiples of one power of two, the step, and do not use all the
  digits of a float: whole numbers, codes, account numbers, dates.
- It is *measured* otherwise. Its scale is the median binary exponent of its numbers: no outlier, infinity or missing
  value moves it far. Sums in float32, of a batch of another size or of the same numbers as float64, differ by 1e-7 to
  1e-5 of the scale: in cells of 1e-5 one row in ten would draw anew, and so would an applicant who adds a cent. So
  measured columns get the coarsest cells in which the rows of ``fit`` stay apart, the coarser the more there are: all
  together tell millions of people apart.
- Rows stay apart first: cells become as fine as 2**-41 of the scale, below which a difference may be rounding, or, in
  columns that span many orders, as a number that is nearly the least needs.
"""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import AnyArray, BoolArray, FloatArray, IntArray
from counterpoise.mixtures.draws.access import columns_of, is_plain, n_columns, places, taken
from counterpoise.mixtures.draws.rows import BITS, DOUBLE, SINGLE, Grid, numbers_of, row_messages

# Not exact fractions, so that rounding in sums of weights decides nothing where a twentieth or a half is exact.
_NEARLY_NONE, _HALF, _NEARLY_ALL = 0.0499, 0.4999, 0.9501
_FULL = DOUBLE - 3  # digits that seven in eight numbers have which use all of a float64
_SINGLES = (SINGLE - 2, SINGLE)  # and of a float32
_FLOATING = 2  # binary orders between the usual and the least last digit, where digits move with the size of a number
_ENOUGH = 24  # bits that all measured columns together must show, of which a column has two beyond its scale
_STEP = 2  # bits by which cells are made finer, one try after the other
_FINER = (4, 8, 12, 16, 20, 24)  # bits by which cells are finer than usual where rows would not stay apart
_APART = 0.99  # of the rows that differ must differ in coarser cells too
_MOST_BINS = 1 << 22  # of the histograms that quantiles are taken from
_LEARNED, _COMPARED = 1 << 17, 1 << 16  # values that scales are learned from, and of rows that must stay apart


def learn_grid(X: Any, sample_weight: FloatArray | None = None) -> Grid:
    """Return how finely to look at the columns of the rows of ``fit``."""
    # Columns of a frame as they are, not as one array of floats: whole numbers are known by their type.
    some_rows = X.iloc.__getitem__ if hasattr(X, "iloc") else partial(taken, X)
    parts = [
        _numbers(some_rows(place), None if sample_weight is None else sample_weight[place])
        for place in places(X, most=_LEARNED)
    ]
    usual, finest = _grids(_Numbers.joined(parts), n_columns(X))
    if usual.is_stepped.all():
        return usual
    tries = list(_tries(usual, finest))
    n_apart = _n_different(X, finest)
    return next((grid for grid in tries if _n_different(X, grid) >= _APART * n_apart), finest)


class _Numbers(NamedTuple):
    """Numbers of some rows, finite and not zero: what counts of a column."""

    columns: IntArray
    exponents: IntArray  # binary ones, of a number from 1/2 to 1
    last: IntArray  # binary exponent of the last digit that is not zero
    n_digits: IntArray  # as many as a float has; 0 where a type of whole numbers holds them
    weights: FloatArray | None  # None where all weigh the same

    @classmethod
    def joined(cls, parts: Sequence["_Numbers"]) -> "_Numbers":
        columns, exponents, last, n_digits, weights = zip(*parts, strict=True)
        each = None if weights[0] is None else np.concatenate(weights)
        return cls(*map(np.concatenate, (columns, exponents, last, n_digits)), each)  # type: ignore[call-arg]


def _numbers(chunk: Any, weights: FloatArray | None) -> _Numbers:
    each = None
    if hasattr(chunk, "tocsr"):
        columns, values, are_whole = chunk.indices, *_floats(chunk.data)
        if weights is not None:
            each = np.repeat(weights, np.diff(chunk.indptr))
    else:
        if is_plain(chunk):
            values, are_whole = _floats(chunk.ravel())
        else:
            parts = [_floats(column) for column in columns_of(chunk)]
            values = np.column_stack([part[0] for part in parts]).ravel()
            are_whole = np.column_stack([part[1] for part in parts]).ravel()
        columns = np.tile(np.arange(n_columns(chunk), dtype=np.int32), len(chunk))
        if weights is not None:
            each = np.repeat(weights, n_columns(chunk))
    counts = np.isfinite(values) & (values != 0)
    if each is not None:
        counts &= each > 0
    if not counts.all():
        columns, values, are_whole = columns[counts], values[counts], are_whole[counts]
        each = None if each is None else each[counts]
    return _Numbers(columns, *_digits(values, are_whole), each)


def _digits(values: FloatArray, are_whole: BoolArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return the binary exponents of numbers and of their last digits that are not zero, and how many digits count."""
    mantissas, exponents = np.frexp(values)
    whole = np.abs(np.ldexp(mantissas, DOUBLE)).astype(np.int64)
    n_digits = DOUBLE + 1 - np.frexp((whole & -whole).astype(np.float64))[1]
    last = exponents - n_digits
    n_digits[are_whole] = 0  # as many as the number needs, not as many as a float has
    return exponents, last, n_digits


def _floats(column: AnyArray) -> tuple[FloatArray, BoolArray]:
    """Return a column as floats, NaN for what is no number, and whether a type of whole numbers held each."""
    if column.dtype.kind in "biuf":
        return column.astype(np.float64), np.full(column.shape, column.dtype.kind != "f")
    is_whole = [isinstance(value, Integral) for value in column] if column.dtype.kind == "O" else np.zeros(len(column))
    return numbers_of(column)[0], np.asarray(is_whole, dtype=np.bool_)


def _grids(numbers: _Numbers, n_columns: int) -> tuple[Grid, Grid]:
    """Return the usual grid, of cells of 2**-BITS of a step or scale, and the finest that noise allows."""
    (most_digits,) = _quantiles(numbers.n_digits, numbers, n_columns, (_NEARLY_ALL,))
    step, usual_last = _quantiles(numbers.last, numbers, n_columns, (_NEARLY_NONE, _HALF))
    least_size, usual_size = _quantiles(numbers.exponents, numbers, n_columns, (_NEARLY_NONE, _HALF))
    is_single = (most_digits >= _SINGLES[0]) & (most_digits <= _SINGLES[1])
    moves = usual_last - step >= _FLOATING
    is_stepped = (most_digits < _FULL) & ~(is_single & moves)
    usual = Grid(np.where(is_stepped, step, usual_size) - BITS, is_stepped, np.full(n_columns, SINGLE))
    finest = np.minimum(usual.cells - _FINER[-1], least_size - BITS)
    return usual, _finer(usual, finest)


def _quantiles(values: IntArray, numbers: _Numbers, n_columns: int, levels: Sequence[float]) -> IntArray:
    """Return weighted quantiles of each column's values, a row for each level; 0 where a column has none.

    The values span a few thousand at most. One histogram serves all levels: to fill it is what takes time.
    """
    low = int(values.min(initial=0))
    span = int(values.max(initial=0)) - low + 1
    found = np.zeros((len(levels), n_columns), dtype=np.int64)
    size = max(1, _MOST_BINS // span)
    for start in range(0, n_columns, size):
        columns = np.arange(start, min(start + size, n_columns))
        is_here = slice(None) if n_columns <= size else (numbers.columns >= start) & (numbers.columns < start + size)
        places = (numbers.columns[is_here] - start) * span + (values[is_here] - low)  # below _MOST_BINS, or a column's
        weights = None if numbers.weights is None else numbers.weights[is_here]
        masses = np.bincount(places, weights, columns.size * span).reshape(columns.size, span)
        reached = np.cumsum(masses, axis=1)
        for place, level in enumerate(levels):
            quantile = (reached >= level * reached[:, -1:]).argmax(axis=1) + low
            found[place, columns] = np.where(reached[:, -1] > 0, quantile, 0)
    return found


def _tries(usual: Grid, finest: Grid) -> Iterator[Grid]:
    """Yield cells to try, the coarsest first."""
    n_measured = int((~usual.is_stepped).sum())
    most = min(BITS - 2, max(0, BITS + 2 - math.ceil(_ENOUGH / n_measured)))
    for bits in [*range(most, 0, -_STEP), 0]:
        yield usual._replace(cells=np.where(usual.is_stepped, usual.cells, usual.cells + bits))
    for bits in _FINER:
        yield _finer(usual, usual.cells - bits)
    yield finest


def _finer(usual: Grid, cells: IntArray) -> Grid:
    """Return the grid with these cells, and all digits of a number, in measured columns."""
    return Grid(
        np.where(usual.is_stepped, usual.cells, cells),
        usual.is_stepped,
        np.where(usual.is_stepped, usual.digits, DOUBLE),
    )


def _n_different(X: Any, grid: Grid) -> int:
    chunks = (taken(X, place) for place in places(X, most=_COMPARED))
    return len({message for chunk in chunks for some in row_messages(chunk, grid) for message in some})
