"""Rows as bytes: the same for the same row, whatever type holds it and with whatever noise it was computed.

A number counts as a multiple of its column's cell, so that the unit of a column does not matter: multiplied by a power
of two, rows keep their bytes. ``scales`` learns the cells from the rows of ``fit``. There are two kinds of columns:

- **stepped**: multiples of one step, such as whole numbers, codes, account numbers and dates. A number within 1e-9 of a
  multiple of the step, in steps or relative to its size, is that multiple with all its digits. Any other is rounded to
  float32, then to a cell, 2**-17 of the step.
- **measured**: the numbers use all the digits that a float has. They are rounded to float32 and to their cells, which
  are as coarse as the rows of ``fit`` allow; where float32 would merge those rows, to their cells alone.

Sums in float64 that depend on the size of a batch differ by 1e-15 of the scale: one value in ten thousand million then
falls into another cell. Rounding to digits of the number itself would merge account numbers, and tear values near zero
apart.
"""

import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np

from counterpoise._base.types import AnyArray, BoolArray, FloatArray, IntArray
from counterpoise.mixtures.draws.access import CODE, DOUBLES, columns_of, is_plain, n_columns, places, reach, taken
from counterpoise.mixtures.draws.ids import id_message, is_missing, is_number

BITS = 17  # of a step, or of a measured column's scale, that a cell shows
SINGLE, DOUBLE = 24, 53  # digits of a float32 and of a float64 number
_NEAR = 1e-9  # from a multiple of the step, in steps or relative to the number
_MANTISSA = 52  # bits of a float64 number below its exponent
_MOST_EXPONENT = 1200  # of a cell: finer than the smallest float
_HUGE = 2.0**900  # times a cell: beyond it products may overflow


class Grid(NamedTuple):
    """How finely each column is looked at."""

    cells: IntArray  # binary exponent of the width of a cell
    is_stepped: BoolArray  # whether the numbers are multiples of a step, which is 2**BITS cells
    digits: IntArray  # binary digits that a number keeps before it is rounded to a cell: SINGLE or DOUBLE

    @classmethod
    def unknown(cls, size: int) -> Self:
        """Return what is used where nothing was learned: steps of 1."""
        return cls(np.full(size, -BITS), np.ones(size, dtype=np.bool_), np.full(size, SINGLE))

    def of(self, place: Any) -> "Grid":
        """Return the grid of some columns."""
        return Grid(*(part[place] for part in self))

    def check_loaded(self) -> None:
        """Check what came from a file."""
        kinds = (np.int64, np.bool_, np.int64)
        if any(part.shape != (self.cells.size,) or part.dtype != kind for part, kind in zip(self, kinds, strict=True)):
            raise ValueError("its parts must be numbers for each column")
        if not np.isin(self.digits, (SINGLE, DOUBLE)).all() or (np.abs(self.cells) > _MOST_EXPONENT).any():
            raise ValueError("its cells must be of a possible size")


def row_messages(X: Any, grid: Grid | None = None) -> Iterator[list[bytes]]:
    """Yield the rows of an array, sparse matrix or data frame as bytes, some at a time."""
    grid = Grid.unknown(n_columns(X)) if grid is None else grid
    if grid.cells.size != n_columns(X):
        raise ValueError(
            f"X must have {grid.cells.size} columns, as at fit; got {n_columns(X)}. Reshape your data: "
            "X.reshape(1, -1) is a single row."
        )
    for place in places(X):
        codes = np.ascontiguousarray(_codes(taken(X, place), grid))
        width = codes.shape[1] * CODE.itemsize
        yield codes.view(np.dtype((np.void, width)))[:, 0].tolist() if width else [b""] * len(codes)


def _codes(chunk: Any, grid: Grid) -> AnyArray:
    """Return 64-bit codes of the values of some rows."""
    if hasattr(chunk, "tocsr"):
        return _sparse_codes(chunk, grid)
    if is_plain(chunk):
        return _number_codes(chunk.reshape(len(chunk), -1), grid)
    codes = np.empty((len(chunk), n_columns(chunk)), dtype=CODE)
    for place, column in enumerate(columns_of(chunk)):
        codes[:, place] = _column_codes(column, grid.of(slice(place, place + 1)))
    return codes


def _sparse_codes(rows: Any, grid: Grid) -> AnyArray:
    codes = np.zeros(rows.shape, dtype=CODE)  # the code of zero is zero
    of_row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    codes[of_row, rows.indices] = _number_codes(rows.data[None], grid.of(rows.indices))[0]
    return codes


def _column_codes(column: AnyArray, grid: Grid) -> AnyArray:
    if column.dtype.kind in "biuf":
        return _number_codes(column[:, None], grid)[:, 0]
    numbers, others = numbers_of(column)
    codes = _number_codes(numbers[:, None], grid)[:, 0]
    for place, code in others.items():
        codes[place] = code
    return codes


def _number_codes(values: AnyArray, grid: Grid) -> AnyArray:
    """Return the bits of numbers in cells, with one zero and one NaN."""
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        counts = _in_cells(values, grid)
        needs_care = reach(counts, np.where(grid.is_stepped, 2.0 ** (SINGLE + BITS), _HUGE))
        if values.dtype.kind == "f" or (grid.cells > -BITS).any() or not grid.is_stepped.all():
            _round(counts, grid, is_single=values.dtype == np.float32)  # else they are whole steps already
        codes = counts.view(np.uint64).astype(CODE, copy=False)
        if needs_care.any():
            codes[:, needs_care] = _careful_codes(values[:, needs_care], codes[:, needs_care], grid.of(needs_care))
    missing = np.isnan(counts)
    if missing.any():
        codes[missing & np.isnan(values)] = np.array(np.nan).view(np.uint64)
    if values.dtype.kind in "iu" and values.dtype.itemsize == CODE.itemsize:
        _tell_apart(values, codes, grid)
    return codes


def _in_cells(values: AnyArray, grid: Grid) -> FloatArray:
    """Return numbers as multiples of their cells: exact, since cells are powers of two."""
    half = -grid.cells // 2  # two factors, or one might be beyond the largest float
    counts = values.astype(np.float64)
    if (np.abs(grid.cells) < np.finfo(np.float64).maxexp - 1).all():
        counts *= 2.0 ** -grid.cells.astype(np.float64)
        return counts
    counts *= 2.0 ** half.astype(np.float64)
    counts *= 2.0 ** (-grid.cells - half).astype(np.float64)
    return counts


def _round(counts: FloatArray, grid: Grid, *, is_single: bool) -> None:
    """Round counts of cells, in place, to the digits that they keep and to whole ones."""
    if not is_single:  # by Veltkamp's splitting: four times as fast as casting to float32 and back
        high = counts * (2.0 ** (DOUBLE - grid.digits) + 1.0)
        np.subtract(high, counts, out=counts)
        np.subtract(high, counts, out=counts)
    np.rint(counts, out=counts)
    counts += 0.0  # -0.0 + 0.0 is 0.0


def _careful_codes(values: AnyArray, codes: AnyArray, grid: Grid) -> AnyArray:
    """Return codes of columns with large numbers: near a multiple of the step that multiple, huge ones as they are."""
    counts = _in_cells(values, grid)
    steps = counts * 2.0**-BITS
    whole = np.rint(steps)
    is_whole = (np.abs(steps - whole) <= _NEAR * np.maximum(1.0, np.abs(steps))) & grid.is_stepped
    codes = np.where(is_whole, (whole * 2.0**BITS + 0.0).view(np.uint64).astype(CODE, copy=False), codes)
    floats = np.ascontiguousarray(values, dtype=np.float64)
    is_huge = ~(np.abs(counts) < _HUGE) & np.isfinite(floats)
    # What multiplying by a power of two does to the bits of a number, where the product may be beyond all floats.
    shifted = floats.view(np.int64) - (grid.cells << _MANTISSA)
    return np.where(is_huge, shifted.view(np.uint64).astype(CODE, copy=False), codes)


def _tell_apart(values: AnyArray, codes: AnyArray, grid: Grid) -> None:
    """Give whole numbers that no float holds codes of their own."""
    if values.max(initial=0) <= DOUBLES and values.min(initial=0) >= -DOUBLES:
        return
    is_large = ((values > DOUBLES) | (values < -DOUBLES)) & grid.is_stepped
    for place in np.flatnonzero(is_large).tolist():
        value = int(values.flat[place])
        if int(float(value)) != value:
            codes.flat[place] = _hash(value)


def numbers_of(column: AnyArray) -> tuple[FloatArray, dict[int, int]]:
    """Return the numbers among objects, NaN elsewhere, and the codes of all that is neither number nor missing."""
    numbers, others = np.full(len(column), np.nan), {}
    known: dict[Any, tuple[float, int | None]] = {}  # equal values have equal codes, so it matters not which came first
    for place, value in enumerate(column if column.dtype.kind in "Mm" else column.tolist()):
        try:
            found = known.get(value)
        except TypeError:  # such as a list
            found = _told(str(value))
        if found is None:
            found = known[value] = _told(value)
        numbers[place], code = found
        if code is not None:
            others[place] = code
    return numbers, others


def _told(value: Any) -> tuple[float, int | None]:
    """Return a value as a float and its code where it is no float."""
    if is_missing(value):
        return np.nan, None
    if not is_number(value):
        return np.nan, _hash(value)
    try:
        number = float(value)
    except OverflowError:
        return np.nan, _hash(value)
    is_exact = value == number or value != int(value)  # fractions are rounded anyway
    return number, None if is_exact else _hash(value)


def _hash(value: Any) -> int:
    try:
        message = id_message(value)
    except ValueError:  # what is no id may still be a value
        message = b"text " + str(value).encode(errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(message, digest_size=CODE.itemsize).digest(), "little")
