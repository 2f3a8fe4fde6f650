"""Rows as bytes: the same for the same row, whatever type holds it and with whatever noise it was computed.

A number within 1e-9 of a whole one, absolutely or relative to its size, is that whole number with all its digits, so
that account numbers and dates stay apart. Any other is taken as float32, then rounded to a cell: about 1e-5 of its
column's scale, a power of two, so that rounding is exact and whole numbers lie on the cells of usual columns. In a
column that was measured or computed, where most numbers have a fraction, large ones are whole by chance only, and
rounded too. ``scales`` learns from the rows of ``fit`` what columns are like.

Sums in float64 that depend on the size of a batch differ by 1e-15 of the scale: one value in ten thousand million then
falls into another cell. Rounding to digits of the number itself would merge account numbers, and tear values near zero
apart.
"""

import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np

from counterpoise._base.types import AnyArray, FloatArray
from counterpoise.mixtures.draws.access import CODE, DOUBLES, columns_of, is_plain, n_columns, places, reach, taken
from counterpoise.mixtures.draws.ids import id_message, is_missing, is_number

BITS = 17  # of a column's scale
_NEAR = 1e-9  # from a whole number, absolutely or relative to its size
_SINGLES = 2**24  # whole numbers up to this are float32 numbers
_SPLIT = 2.0**29 + 1.0  # leaves 24 of the 53 bits of a float64 number


class Grid(NamedTuple):
    """How finely each column is looked at."""

    cells: FloatArray  # width, a power of two
    measured: FloatArray  # numbers up to this size are rounded even if whole; 0 where whole numbers mean something
    limits: FloatArray  # from this size a number is looked at twice

    @classmethod
    def of(cls, cells: FloatArray, measured: FloatArray) -> Self:
        """Return the grid of these cells.

        In usual ones a small number that is nearly whole ends up whole when it is rounded.
        """
        is_usual = (cells <= 1.0) & (cells > 2 * _NEAR)
        return cls(cells, measured, np.where(measured > 0, measured, np.where(is_usual, _SINGLES, 0.0)))

    @classmethod
    def unknown(cls, size: int) -> Self:
        """Return what is used where nothing was learned: a scale of 1, the unit of whole numbers."""
        return cls.of(np.full(size, 2.0**-BITS), np.zeros(size))

    def _check_loaded(self) -> None:
        """Check what came from a file."""
        if any(part.ndim != 1 or part.dtype != np.float64 or part.shape != self.cells.shape for part in self):
            raise ValueError("its parts must be numbers for each column")


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
        codes[:, place] = _column_codes(column, Grid(*(part[place : place + 1] for part in grid)))
    return codes


def _sparse_codes(rows: Any, grid: Grid) -> AnyArray:
    codes = np.zeros(rows.shape, dtype=CODE)  # the code of zero is zero
    of_row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    codes[of_row, rows.indices] = _number_codes(rows.data[None], Grid(*(part[rows.indices] for part in grid)))[0]
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
    """Return the bits of rounded numbers, with one zero and one NaN."""
    is_kept = values.dtype.kind in "biu" and not grid.measured.any()
    rounded = values.astype(np.float64) if is_kept else _rounded(values, grid)
    codes = rounded.view(np.uint64).astype(CODE, copy=False)
    if values.dtype.kind in "iu" and values.dtype.itemsize == CODE.itemsize:
        _tell_apart(values, codes, grid)
    return codes


def _rounded(values: AnyArray, grid: Grid) -> FloatArray:
    """Return numbers in their cells, or whole."""
    with np.errstate(invalid="ignore", over="ignore"):
        rounded = _in_cells(values, grid.cells)
        is_odd = reach(values, grid.limits)
        if is_odd.any():
            parts = Grid(*(part[is_odd] for part in grid))
            rounded[:, is_odd] = _near_whole(values[:, is_odd], rounded[:, is_odd], parts)
    rounded += 0.0  # -0.0 + 0.0 is 0.0
    missing = np.isnan(rounded)
    if missing.any():
        rounded[missing] = np.nan
    return rounded


def _in_cells(values: AnyArray, cells: FloatArray) -> FloatArray:
    """Return numbers as float32 ones, rounded to their cells."""
    rounded = values.astype(np.float64)
    if values.dtype != np.float32:  # to its 24 bits, by Veltkamp's splitting: four times as fast as two casts
        high = rounded * _SPLIT
        np.subtract(high, rounded, out=rounded)
        np.subtract(high, rounded, out=rounded)
    rounded *= 1.0 / cells  # exact: a power of two
    np.rint(rounded, out=rounded)
    rounded *= cells
    return rounded


def _near_whole(values: AnyArray, rounded: FloatArray, grid: Grid) -> FloatArray:
    """Return the whole number where one is near, else what is rounded already unless it is whole as a float32."""
    floats, singles = values.astype(np.float64), values.astype(np.float32).astype(np.float64)
    whole, size = np.rint(floats), np.abs(floats)
    is_whole = (np.abs(floats - whole) <= _NEAR * np.maximum(1.0, size)) & (size > grid.measured)
    stays = (singles == np.rint(singles)) & (size > grid.measured)
    return np.where(is_whole, whole, np.where(stays, singles, rounded))


def _tell_apart(values: AnyArray, codes: AnyArray, grid: Grid) -> None:
    """Give whole numbers that no float holds codes of their own."""
    if values.max(initial=0) <= DOUBLES and values.min(initial=0) >= -DOUBLES:
        return
    is_large = ((values > DOUBLES) | (values < -DOUBLES)) & (np.abs(values.astype(np.float64)) > grid.measured)
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
