"""Rows as bytes: the same for the same row, whatever type holds it and with whatever noise it was computed.

A number within 1e-9 of a whole one, absolutely or relative to its size, is that whole number with all its digits, so
that account numbers and dates stay apart. Any other is taken as float32, then rounded to a cell: about 1e-5 of its
column's scale, a power of two, so that whole numbers lie on the cells of usual columns and rounding is exact. Sums in
float64 that depend on the size of a batch differ by 1e-15 of the scale: one value in ten thousand million then falls
into another cell. Rounding to digits of the number itself would merge account numbers, or tear values near zero apart.

What is learned from the rows of ``fit`` (``Grid``), column by column:

- the scale, as the mean binary exponent of the numbers that have a fraction: no outlier, infinity or missing value
  moves it far. That of columns that have none is 1, the unit of whole numbers;
- whether most numbers have a fraction. Then a large one (1e12) that is nearly whole is so by chance;
- whether those are all float32 numbers. Sums in float32 differ by 1e-7 to 1e-5 of the scale, and at 1e-5 one row in ten
  would draw anew. Such columns get the coarsest cells in which the rows of ``fit`` stay apart, at most a quarter of the
  scale, and no number in them counts as whole.
"""

import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np

from counterpoise._base.types import AnyArray, BoolArray, FloatArray
from counterpoise.mixtures.draws.ids import id_message, is_missing, is_number

_NEAR = 1e-9  # from a whole number, absolutely or relative to its size
_BITS = 17  # of a column's scale
_COARSER = (15, 12, 9, 6, 3)  # bits less that columns of float32 are tried with
_APART = 0.99  # of the rows that differ must differ in coarser cells too
_FLOOR = 2.0**-17  # of the widest cell: sums with the numbers of one column leave noise in the others
_CHUNK = 1 << 15  # values handled at once: as floats they stay in the cache
_FRAME_CHUNK = 1 << 18  # of data frames, whose every column costs time
_LEARNED, _COMPARED = 1 << 24, 1 << 20  # values that scales are learned from, and of rows that must stay apart
_HALF = 0.4999  # so that rounding in sums of weights decides nothing where a half is exact
_FEW = 100  # rows that are looked at in any case
_SINGLES, _DOUBLES = 2**24, 2**53  # whole numbers up to these are float32 and float64 numbers
_CODE = np.dtype("<u8")


class Grid(NamedTuple):
    """How finely each column is looked at."""

    cells: FloatArray  # width, a power of two
    near: FloatArray  # at most so far from a whole number, absolutely; -1 where none counts as whole
    near_large: FloatArray  # and relative to its size

    @classmethod
    def unknown(cls, n_columns: int) -> Self:
        """Return what is used where nothing was learned."""
        return cls(np.full(n_columns, 2.0**-_BITS), np.full(n_columns, _NEAR), np.full(n_columns, _NEAR))

    def _check_loaded(self) -> None:
        """Check what came from a file."""
        if any(part.ndim != 1 or part.dtype != np.float64 or part.shape != self.cells.shape for part in self):
            raise ValueError("its parts must be numbers for each column")


def row_messages(X: Any, grid: Grid | None = None) -> Iterator[list[bytes]]:
    """Yield the rows of an array, sparse matrix or data frame as bytes, some at a time."""
    grid = Grid.unknown(_n_columns(X)) if grid is None else grid
    if grid.cells.size != _n_columns(X):
        raise ValueError(
            f"X must have {grid.cells.size} columns, as at fit; got {_n_columns(X)}. Reshape your data: "
            "X.reshape(1, -1) is a single row."
        )
    for place in _places(X):
        codes = _codes(_taken(X, place), grid)
        data, width = codes.tobytes(), codes.shape[1] * _CODE.itemsize
        yield [data[row * width : (row + 1) * width] for row in range(len(codes))]


def learn_grid(X: Any, sample_weight: FloatArray | None = None) -> Grid:
    """Return how finely the columns of the rows of ``fit`` shall be looked at."""
    weights = np.ones(X.shape[0]) if sample_weight is None else sample_weight
    found = _Numbers(*np.zeros((4, _n_columns(X))))
    for place in _places(X, most=_LEARNED):
        found = found.plus(_counted(_taken(X, place), weights[place]))
    grid = found.grid()
    return _coarsest(X, grid, grid.near < 0)


class _Numbers(NamedTuple):
    """What is counted in each column, by weight; counts of several chunks are added."""

    n_numbers: AnyArray  # finite and not zero
    n_fractions: AnyArray  # of which so many are plainly not whole
    exponents: AnyArray  # sum of the binary exponents of those
    n_doubles: AnyArray  # how many of those are no float32 numbers

    @classmethod
    def of(cls, values: FloatArray) -> "_Numbers":
        """Count every value for itself."""
        with np.errstate(invalid="ignore", over="ignore"):
            sizes = np.abs(values)
            is_fraction = np.abs(values - np.rint(values)) > np.maximum(_NEAR, 0.01 * np.minimum(1.0, sizes))
            is_double = is_fraction & (values.astype(np.float32) != values)
        exponents = np.where(is_fraction, np.frexp(values)[1], 0)
        return cls(np.isfinite(values) & (values != 0), is_fraction, exponents, is_double)

    def plus(self, other: "_Numbers") -> "_Numbers":
        return _Numbers(*(mine + its for mine, its in zip(self, other, strict=True)))

    def grid(self) -> Grid:
        is_measured = self.n_fractions > _HALF * self.n_numbers
        is_single = is_measured & (self.n_doubles == 0)
        mean = self.exponents / np.where(self.n_fractions > 0, self.n_fractions, 1.0)
        cells = 2.0 ** (np.ceil(mean - _HALF) - _BITS)
        cells = np.maximum(cells, _FLOOR * cells.max(initial=0.0))
        return Grid(cells, np.where(is_single, -1.0, _NEAR), np.where(is_measured, 0.0, _NEAR))


def _coarsest(X: Any, grid: Grid, is_single: BoolArray) -> Grid:
    """Return the coarsest cells of float32 columns in which the rows stay apart."""
    if not is_single.any():
        return grid
    n_apart = _n_different(X, grid)
    for bits in _COARSER:
        coarser = grid._replace(cells=np.where(is_single, grid.cells * 2.0**bits, grid.cells))
        if _n_different(X, coarser) >= _APART * n_apart:
            return coarser
    return grid


def _n_different(X: Any, grid: Grid) -> int:
    chunks = (_taken(X, place) for place in _places(X, most=_COMPARED))
    return len({message for chunk in chunks for some in row_messages(chunk, grid) for message in some})


def _n_columns(X: Any) -> int:
    return int(np.prod(X.shape[1:]))


def _places(X: Any, most: int | None = None) -> Iterator[slice]:
    """Yield where some rows at a time are; with ``most`` only about so many values, of rows evenly spread."""
    width = max(1, _n_columns(X))
    most_values = _FRAME_CHUNK if hasattr(X, "columns") else _CHUNK
    step = 1 if most is None else -(-X.shape[0] // max(_FEW, most // width))
    size = step * max(1, most_values // width)
    for start in range(0, X.shape[0], size):
        yield slice(start, start + size, step)


def _taken(X: Any, place: slice) -> Any:
    """Return some rows, those of a data frame of plain numbers as an array unless whole ones would lose digits."""
    if not hasattr(X, "iloc"):
        return X[place]
    rows = X.iloc[place]
    if not all(isinstance(kind, np.dtype) and kind.kind in "biuf" for kind in X.dtypes):
        return rows
    block = rows.to_numpy(dtype=np.float64)
    is_wide = any(kind.kind in "iu" and kind.itemsize == _CODE.itemsize for kind in X.dtypes)
    return rows if is_wide and not (_sizes(block) <= _DOUBLES).all() else block


def _columns(chunk: Any) -> list[AnyArray]:
    """Return the columns of a data frame, or those of an array, each with its own type."""
    if hasattr(chunk, "iloc"):
        return [_column(chunk.iloc[:, place]) for place in range(chunk.shape[1])]
    if hasattr(chunk, "columns"):  # of polars or Arrow
        return [_column(chunk[name]) for name in getattr(chunk, "column_names", chunk.columns)]
    return list(chunk.reshape(len(chunk), -1).T)


def _column(column: Any) -> AnyArray:
    values = np.asarray(column.to_numpy())
    kind = str(getattr(column, "dtype", None) or column.type).lower()
    if values.dtype.kind == "f" and kind.startswith(("int", "uint")):  # some are missing, and large ones lost digits
        return np.array(column.to_pylist() if hasattr(column, "to_pylist") else list(column), dtype=object)
    return values


def _is_plain(chunk: Any) -> bool:
    return isinstance(chunk, np.ndarray) and chunk.dtype.kind in "biuf"


def _counted(chunk: Any, weights: FloatArray) -> _Numbers:
    """Count the numbers in each column of some rows, by the rows' weights."""
    if hasattr(chunk, "tocsr"):  # zeros do not count
        rows = chunk.tocsr()
        each = np.repeat(weights, np.diff(rows.indptr))
        parts = _Numbers.of(rows.data.astype(np.float64))
        return _Numbers(*(np.bincount(rows.indices, each * part, _n_columns(chunk)) for part in parts))
    if _is_plain(chunk):
        values = chunk.reshape(len(chunk), -1).astype(np.float64)
    else:
        values = np.column_stack([_numbers_of(column)[0] for column in _columns(chunk)])
    return _Numbers(*(weights @ part for part in _Numbers.of(values)))


def _codes(chunk: Any, grid: Grid) -> AnyArray:
    """Return 64-bit codes of the values of some rows."""
    if hasattr(chunk, "tocsr"):
        return _sparse_codes(chunk.tocsr(), grid)
    if _is_plain(chunk):
        return _number_codes(chunk.reshape(len(chunk), -1), grid)
    codes = np.empty((len(chunk), _n_columns(chunk)), dtype=_CODE)
    for place, column in enumerate(_columns(chunk)):
        codes[:, place] = _column_codes(column, Grid(*(part[place : place + 1] for part in grid)))
    return codes


def _sparse_codes(rows: Any, grid: Grid) -> AnyArray:
    rows.sum_duplicates()
    codes = np.zeros(rows.shape, dtype=_CODE)  # the code of zero is zero
    of_row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    codes[of_row, rows.indices] = _number_codes(rows.data[None], Grid(*(part[rows.indices] for part in grid)))[0]
    return codes


def _column_codes(column: AnyArray, grid: Grid) -> AnyArray:
    if column.dtype.kind in "biuf":
        return _number_codes(column[:, None], grid)[:, 0]
    numbers, others = _numbers_of(column)
    codes = _number_codes(numbers[:, None], grid)[:, 0]
    for place, code in others.items():
        codes[place] = code
    return codes


def _number_codes(values: AnyArray, grid: Grid) -> AnyArray:
    """Return the bits of rounded numbers, with one zero and one NaN."""
    is_kept = values.dtype.kind in "biu" and not (grid.near < 0).any()
    rounded = values.astype(np.float64) if is_kept else _rounded(values, grid)
    codes = rounded.view(np.uint64).astype(_CODE, copy=False)
    if values.dtype.kind in "iu" and values.dtype.itemsize == _CODE.itemsize:
        _tell_apart(values, codes, grid)
    return codes


def _rounded(values: AnyArray, grid: Grid) -> FloatArray:
    """Return numbers in their cells; in usual cells the small ones that are nearly whole end up whole by that alone."""
    with np.errstate(invalid="ignore", over="ignore"):
        rounded = _in_cells(values, grid.cells)
        is_odd = ~((_sizes(rounded) < _SINGLES) & (grid.cells <= 1.0) & (grid.cells > 2 * _NEAR))
        if is_odd.any():  # large numbers, missing ones, cells of other widths
            parts = Grid(*(part[is_odd] for part in grid))
            rounded[:, is_odd] = _near_whole(values[:, is_odd], rounded[:, is_odd], parts)
    rounded += 0.0  # -0.0 + 0.0 is 0.0
    return rounded


def _sizes(values: FloatArray) -> FloatArray:
    """Return the largest size of a number in each column; NaN where one is missing."""
    return np.asarray(np.maximum(values.max(axis=0, initial=0.0), -values.min(axis=0, initial=0.0)))


def _in_cells(values: AnyArray, cells: FloatArray) -> FloatArray:
    rounded = values.astype(np.float32, copy=False).astype(np.float64)
    rounded *= 1.0 / cells  # exact: a power of two
    np.rint(rounded, out=rounded)
    rounded *= cells
    return rounded


def _near_whole(values: AnyArray, rounded: FloatArray, grid: Grid) -> FloatArray:
    """Return the whole number where one is near, else what is rounded already unless it is whole as a float32."""
    floats, singles = values.astype(np.float64), values.astype(np.float32).astype(np.float64)
    whole = np.rint(floats)
    is_whole = np.abs(floats - whole) <= grid.near + grid.near_large * np.abs(floats)
    stays = (singles == np.rint(singles)) & (grid.near >= 0)
    kept = np.where(is_whole, whole, np.where(stays, singles, rounded))
    return np.where(np.isnan(floats), np.nan, kept)


def _tell_apart(values: AnyArray, codes: AnyArray, grid: Grid) -> None:
    """Give whole numbers that no float holds codes of their own."""
    is_large = ((values > _DOUBLES) | (values < -_DOUBLES)) & (grid.near >= 0)
    for place in np.flatnonzero(is_large).tolist():
        value = int(values.flat[place])
        if int(float(value)) != value:
            codes.flat[place] = _hash(value)


def _numbers_of(column: AnyArray) -> tuple[FloatArray, dict[int, int]]:
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
    return int.from_bytes(hashlib.blake2b(message, digest_size=_CODE.itemsize).digest(), "little")
