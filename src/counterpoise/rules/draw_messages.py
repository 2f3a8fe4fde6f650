"""Rows and ids as bytes, which draws hash: equal rows and ids give equal bytes, whatever their types.

**Rows** may carry the noise of their computation. A number counts as a multiple of its column's cell, so that the
unit of a column does not matter: multiplied by a power of two, rows keep their bytes. There are two kinds of columns:

- **stepped**: nearly all numbers are multiples of one power of two, the step, and do not use all the digits of a float:
  whole numbers, codes, account numbers, dates. A number within 1e-9 of a multiple of the step, in steps or relative to
  its size, is that multiple with all its digits. Any other is rounded to float32, then to a cell, 2**-17 of the step.
- **measured**: the numbers use all the digits that a float has. They are rounded to float32 and to their cells, which
  are as coarse as the rows of ``fit`` allow; where float32 would merge those rows, to their cells alone.

Sums in float64 that depend on the size of a batch differ by 1e-15 of the scale: one value in ten thousand million then
falls into another cell. Rounding to digits of the number itself would merge account numbers, and tear values near zero
apart.

The cells are learned from the rows of ``fit``. Nothing there depends on the unit of a column, nor on other columns: all
exponents move by ``k`` where a column is multiplied by ``2**k``. The scale of a measured column is the median binary
exponent of its numbers: no outlier, infinity or missing value moves it far. Sums in float32, of a batch of another size
or of the same numbers as float64, differ by 1e-7 to 1e-5 of the scale: in cells of 1e-5 one row in ten would draw anew,
and so would an applicant who adds a cent. So measured columns get the coarsest cells in which the rows of ``fit`` stay
apart, the coarser the more columns there are: together they keep millions of people apart. Rows stay apart first: cells
become as fine as 2**-41 of the scale, below which a difference may be rounding, or, in columns that span many orders,
as a number that is nearly the least needs.

**Ids**: equal ids give equal bytes, unequal ids do not, and nonsense is refused. Kinds are apart: numbers (truth values
among them), texts (UUIDs among them), bytes, times without a zone, instants, times of day, spans. Numbers become
all their digits; a float with a fraction those of the shortest decimal that reads as it, so that 0.1 is one id as a
float, as a decimal and in a file of texts. Times become their distance from 1970 in attoseconds, the least unit
that numpy has; a date is its midnight, as for numpy.
"""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any, NamedTuple, Self
from uuid import UUID

import numpy as np

from counterpoise._base.frames import as_array, as_list, columns_of, is_frame, take_rows
from counterpoise._base.types import AnyArray, BoolArray, FloatArray, IntArray

CODE = np.dtype("<u8")
BITS = 17  # of a step, or of a measured column's scale, that a cell shows
SINGLE, DOUBLE = 24, 53  # digits of a float32 and of a float64 number
_DOUBLES = 2**53  # whole numbers up to this are float64 numbers
_NEAR = 1e-9  # from a multiple of the step, in steps or relative to the number
_MANTISSA = 52  # bits of a float64 number below its exponent
_MOST_EXPONENT = 1200  # of a cell: finer than the smallest float
_HUGE = 2.0**900  # times a cell: beyond it products may overflow
_CHUNK = 1 << 15  # values handled at once: as floats they stay in the cache
_FRAME_CHUNK = 1 << 18  # of data frames, whose every column costs time
_FEW = 100  # rows that are used in any case

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

_SECOND = 10**18  # in attoseconds
_MICROSECOND = 10**12
_UNITS = {"W": 604_800 * _SECOND, "D": 86_400 * _SECOND, "h": 3600 * _SECOND, "m": 60 * _SECOND}
_UNITS |= {unit: 10 ** (18 - 3 * place) for place, unit in enumerate(("s", "ms", "us", "ns", "ps", "fs", "as"))}
_MONTHS = {"Y": 12, "M": 1}  # of a span: they have no length in seconds
_MOST_DIGITS = 3600  # Python turns no whole number of many more into text
_MOST_BITS = int(_MOST_DIGITS * math.log2(10))
_TOO_LONG = f"ids must be numbers of at most {_MOST_DIGITS} digits; one is longer,"
_LARGE = 2**1000  # what a float can hold, and a little less
_EPOCH, _FIRST_DAY = datetime(1970, 1, 1, tzinfo=UTC), date(1970, 1, 1)


class Grid(NamedTuple):
    """How finely the numbers of each column are rounded."""

    cells: IntArray  # binary exponent of the width of a cell
    is_stepped: BoolArray  # whether the numbers are multiples of a step, which is 2**BITS cells
    digits: IntArray  # binary digits that a number keeps before it is rounded to a cell: SINGLE or DOUBLE

    @classmethod
    def unknown(cls, size: int) -> Self:
        """Return the grid for columns that were never seen: steps of 1."""
        return cls(np.full(size, -BITS), np.ones(size, dtype=np.bool_), np.full(size, SINGLE))

    def check_loaded(self) -> None:
        """Check the values that were read from a file."""
        kinds = (np.int64, np.bool_, np.int64)
        if any(part.shape != (self.cells.size,) or part.dtype != kind for part, kind in zip(self, kinds, strict=True)):
            raise ValueError("its parts must be numbers for each column")
        if not np.isin(self.digits, (SINGLE, DOUBLE)).all() or (np.abs(self.cells) > _MOST_EXPONENT).any():
            raise ValueError("its cells must be of a possible size")


def learn_grid(X: Any, sample_weight: FloatArray | None = None) -> Grid:
    """Return how finely to round the columns of rows like those of ``fit``.

    Cells are tried from the coarsest to the finest that noise allows, until nearly all rows that differ in the finest
    ones differ.
    """
    n_columns, numbers = math.prod(X.shape[1:]), _numbers(X, sample_weight)
    (most_digits,) = _quantiles(numbers.n_digits, numbers, n_columns, (_NEARLY_ALL,))
    step, usual_last = _quantiles(numbers.last, numbers, n_columns, (_NEARLY_NONE, _HALF))
    least_size, usual_size = _quantiles(numbers.exponents, numbers, n_columns, (_NEARLY_NONE, _HALF))
    is_single = (most_digits >= _SINGLES[0]) & (most_digits <= _SINGLES[1])
    moves = usual_last - step >= _FLOATING
    is_stepped = (most_digits < _FULL) & ~(is_single & moves)
    usual, singles = np.where(is_stepped, step, usual_size) - BITS, np.full(n_columns, SINGLE)
    if is_stepped.all():
        return Grid(usual, is_stepped, singles)

    most_bits = min(BITS - 2, max(0, BITS + 2 - math.ceil(_ENOUGH / int((~is_stepped).sum()))))
    doubles = np.where(is_stepped, SINGLE, DOUBLE)
    tries = [(np.minimum(usual - _FINER[-1], least_size - BITS), doubles)]  # the finest first, then the coarsest
    tries += [(usual + coarser, singles) for coarser in [*range(most_bits, 0, -_STEP), 0]]
    tries += [(usual - finer, doubles) for finer in _FINER]
    grids = [Grid(np.where(is_stepped, usual, cells), is_stepped, digits) for cells, digits in tries]
    counts = (len({message for some in row_messages(X, grid, _COMPARED) for message in some}) for grid in grids)
    n_apart = next(counts)
    return next((grid for grid, count in zip(grids[1:], counts, strict=True) if count >= _APART * n_apart), grids[0])


class _Numbers(NamedTuple):
    """Numbers of some rows, finite and not zero: what counts of a column."""

    columns: IntArray
    exponents: IntArray  # binary ones, of a number from 1/2 to 1
    last: IntArray  # binary exponent of the last digit that is not zero
    n_digits: IntArray  # as many as a float has; 0 where a type of whole numbers holds them
    weights: FloatArray | None  # None where all weigh the same


def _numbers(X: Any, sample_weight: FloatArray | None) -> _Numbers:
    """Return the numbers among some values of each column, of rows evenly spread."""
    parts = []
    for place, chunk in _chunks(X, _LEARNED, by_column=True):
        blocks = chunk if isinstance(chunk, list) else [chunk.data[:, None]]
        floats, wholes = [], []
        for block in blocks:
            if block.dtype.kind in "biuf":
                floats.append(block.astype(np.float64))
                wholes.append(np.full(block.shape, block.dtype.kind != "f"))
            else:
                floats.append(_numbers_among(block[:, 0])[0][:, None])
                wholes.append(np.array([isinstance(value, Integral) for value in block[:, 0]], dtype=np.bool_)[:, None])
        values = np.hstack(floats)
        if isinstance(chunk, list):
            columns, n_each = np.tile(np.arange(values.shape[1], dtype=np.int32), len(values)), values.shape[1]
        else:
            columns, n_each = chunk.indices, np.diff(chunk.indptr)
        values, are_whole = values.ravel(), np.hstack(wholes).ravel()
        weights = None if sample_weight is None else np.repeat(sample_weight[place], n_each)
        counts = np.isfinite(values) & (values != 0)
        if weights is not None:
            counts &= weights > 0
            weights = weights[counts]
        mantissas, exponents = np.frexp(values[counts])
        digits = np.abs(np.ldexp(mantissas, DOUBLE)).astype(np.int64)
        n_digits = DOUBLE + 1 - np.frexp((digits & -digits).astype(np.float64))[1]
        last = exponents - n_digits
        n_digits[are_whole[counts]] = 0  # as many as the number needs, not as many as a float has
        parts.append((columns[counts], exponents, last, n_digits, weights))
    *fields, each = zip(*parts, strict=True)
    return _Numbers(*map(np.concatenate, fields), None if sample_weight is None else np.concatenate(each))  # type: ignore[call-arg]


def _quantiles(values: IntArray, numbers: _Numbers, n_columns: int, levels: Sequence[float]) -> IntArray:
    """Return weighted quantiles of each column's values, a row for each level; 0 where a column has none.

    The values span a few thousand at most. One histogram serves all levels: to fill it is what takes time.
    """
    low = int(values.min(initial=0))
    span = int(values.max(initial=0)) - low + 1
    quantiles = np.zeros((len(levels), n_columns), dtype=np.int64)
    size = max(1, _MOST_BINS // span)
    for start in range(0, n_columns, size):
        stop = min(start + size, n_columns)
        is_here = slice(None) if n_columns <= size else (numbers.columns >= start) & (numbers.columns < stop)
        places = (numbers.columns[is_here] - start) * span + (values[is_here] - low)  # below _MOST_BINS, or a column's
        weights = None if numbers.weights is None else numbers.weights[is_here]
        masses = np.bincount(places, weights, (stop - start) * span).reshape(-1, span)
        reached = np.cumsum(masses, axis=1)
        for place, level in enumerate(levels):
            quantile = (reached >= level * reached[:, -1:]).argmax(axis=1) + low
            quantiles[place, start:stop] = np.where(reached[:, -1] > 0, quantile, 0)
    return quantiles


def _chunks(X: Any, most: int | None = None, *, by_column: bool = False) -> Iterator[tuple[slice, Any]]:
    """Yield some rows at a time: where they are, and a sparse matrix or a list of arrays, of columns side by side.

    Parameters
    ----------
    X : array, sparse matrix or data frame
        Of an image all values are columns.
    most : int, optional
        About how many values to look at, of rows evenly spread. Default: all.
    by_column : bool
        Whether a data frame of numbers comes column by column, each with its own type, and not as one array of floats.
    """
    width = max(1, math.prod(X.shape[1:]))
    kinds: list[Any] = list(X.dtypes) if hasattr(X, "iloc") else [None]
    is_block = not by_column and all(isinstance(kind, np.dtype) and kind.kind in "biuf" for kind in kinds)
    may_lose = is_block and any(kind.kind in "iu" and kind.itemsize == CODE.itemsize for kind in kinds)  # digits
    step = 1 if most is None else -(-X.shape[0] // max(_FEW, most // width))
    size = step * max(1, (_FRAME_CHUNK if is_frame(X) else _CHUNK) // width)
    for start in range(0, X.shape[0], size):
        place = slice(start, start + size, step)
        if hasattr(X, "tocsr"):
            rows = X[place].tocsr()
            if not rows.has_canonical_format:
                rows = rows.copy()  # a part shares the memory of those given
                rows.sum_duplicates()
            yield place, rows
            continue
        rows = take_rows(X, place)
        if is_block:
            block = rows.to_numpy(dtype=np.float64)
            rows = rows if may_lose and (np.abs(block) >= _DOUBLES).any() else block
        if is_frame(rows):
            yield place, [as_array(column)[:, None] for _, column in columns_of(rows)]
        else:
            flat = rows.reshape(len(rows), -1)
            yield place, [flat] if flat.dtype.kind in "biuf" else [flat[:, k : k + 1] for k in range(width)]


def row_messages(X: Any, grid: Grid | None = None, most: int | None = None) -> Iterator[list[bytes]]:
    """Yield the rows of an array, sparse matrix or data frame as bytes, some at a time, or about ``most`` values."""
    n_columns = math.prod(X.shape[1:])
    grid = Grid.unknown(n_columns) if grid is None else grid
    if grid.cells.size != n_columns:
        raise ValueError(
            f"X must have {grid.cells.size} columns, as at fit; got {n_columns}. Reshape your data: "
            "X.reshape(1, -1) is a single row."
        )
    for _, chunk in _chunks(X, most):
        if isinstance(chunk, list):
            edges = np.cumsum([0, *(block.shape[1] for block in chunk)]).tolist()
            parts = [_codes(block, grid, slice(*edges[k : k + 2])) for k, block in enumerate(chunk)]
            codes = np.ascontiguousarray(parts[0] if len(parts) == 1 else np.hstack(parts))
        else:
            codes = np.zeros(chunk.shape, dtype=CODE)  # the code of zero is zero
            of_row = np.repeat(np.arange(chunk.shape[0]), np.diff(chunk.indptr))
            codes[of_row, chunk.indices] = _codes(chunk.data[None], grid, chunk.indices)[0]
        width = n_columns * CODE.itemsize
        yield codes.view(np.dtype((np.void, width)))[:, 0].tolist() if width else [b""] * len(codes)


def _codes(values: AnyArray, grid: Grid, columns: Any) -> AnyArray:
    """Return 64-bit codes of values of some columns: the bits of numbers in cells, with one zero and one NaN."""
    cells, is_stepped, digits = (part[columns] for part in grid)
    others: dict[int, int] = {}
    if values.dtype.kind not in "biuf":
        numbers, others = _numbers_among(values[:, 0])
        values = numbers[:, None]
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        half = -cells // 2  # two factors, or one might be beyond the largest float
        counts = values.astype(np.float64)
        counts *= 2.0 ** half.astype(np.float64)
        counts *= 2.0 ** (-cells - half).astype(np.float64)  # exact, since cells are powers of two
        limits = np.where(is_stepped, 2.0 ** (SINGLE + BITS), _HUGE)
        largest: Any = max(float(counts.max(initial=0)), -float(counts.min(initial=0)))  # of all columns: much faster
        if not largest < limits.min(initial=np.inf):  # also where a number is missing
            largest = np.fmax.reduce(np.abs(counts), axis=0, initial=0.0)
        needs_care = largest >= limits
        exact = counts[:, needs_care]
        if values.dtype.kind == "f" or (cells > -BITS).any() or not is_stepped.all():  # else they are whole steps
            if values.dtype != np.float32:  # by Veltkamp's splitting: four times as fast as casting to float32 and back
                high = counts * (2.0 ** (DOUBLE - digits) + 1.0)
                np.subtract(high, counts, out=counts)
                np.subtract(high, counts, out=counts)
            np.rint(counts, out=counts)
            counts += 0.0  # -0.0 + 0.0 is 0.0
        codes = counts.view(np.uint64).astype(CODE, copy=False)
        if needs_care.any():
            some = cells[needs_care], is_stepped[needs_care]
            codes[:, needs_care] = _careful_codes(values[:, needs_care], exact, codes[:, needs_care], *some)
    if values.dtype.kind == "f":
        codes[np.isnan(values)] = np.array(np.nan).view(np.uint64)
    elif values.dtype.kind in "iu" and values.dtype.itemsize == CODE.itemsize:
        _separate(values, codes, is_stepped)
    for place, code in others.items():
        codes[place] = code
    return codes


def _separate(values: AnyArray, codes: AnyArray, is_stepped: BoolArray) -> None:
    """Give whole numbers that no float holds codes of their own."""
    is_large = ((values > _DOUBLES) | (values < -_DOUBLES)) & is_stepped
    for place in np.flatnonzero(is_large).tolist():
        value = int(values.flat[place])
        if int(float(value)) != value:
            codes.flat[place] = _hash(value)


def _careful_codes(
    values: AnyArray, counts: FloatArray, codes: AnyArray, cells: IntArray, is_stepped: BoolArray
) -> AnyArray:
    """Return codes of columns with large numbers: near a multiple of the step that multiple, huge ones as they are."""
    steps = counts * 2.0**-BITS
    whole = np.rint(steps)
    is_whole = (np.abs(steps - whole) <= _NEAR * np.maximum(1.0, np.abs(steps))) & is_stepped
    codes = np.where(is_whole, (whole * 2.0**BITS + 0.0).view(np.uint64).astype(CODE, copy=False), codes)
    floats = np.ascontiguousarray(values, dtype=np.float64)
    is_huge = ~(np.abs(counts) < _HUGE) & np.isfinite(floats)
    # What multiplying by a power of two does to the bits of a number, where the product may be beyond all floats.
    shifted = floats.view(np.int64) - (cells << _MANTISSA)
    return np.where(is_huge, shifted.view(np.uint64).astype(CODE, copy=False), codes)


def _numbers_among(column: AnyArray) -> tuple[FloatArray, dict[int, int]]:
    """Return the numbers among objects, NaN elsewhere, and the codes of all that is neither number nor missing."""
    numbers, others = np.full(len(column), np.nan), {}
    known: dict[Any, tuple[float, int | None]] = {}  # equal values have equal codes, so it matters not which came first
    for place, value in enumerate(column if column.dtype.kind in "Mm" else column.tolist()):
        try:
            pair = known.get(value)
        except TypeError:  # such as a list
            pair = _number_or_code(str(value))
        if pair is None:
            pair = known[value] = _number_or_code(value)
        numbers[place], code = pair
        if code is not None:
            others[place] = code
    return numbers, others


def _number_or_code(value: Any) -> tuple[float, int | None]:
    """Return a value as a float and its code where it is no float."""
    if _is_missing(value):
        return np.nan, None
    if not _is_number(value):
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


class BadId(ValueError):  # noqa: N818 - reads as what it is
    """What is wrong with an id; its place is known elsewhere."""


def id_values(ids: Any, n_rows: int) -> list[Any]:
    """Return ids as a list, after checking that there is one for each row."""
    shape: tuple[int, ...] = getattr(ids, "shape", (n_rows,))
    if isinstance(ids, (str, bytes, Mapping)) or len(shape) != 1:
        got = f"shape {tuple(shape)}" if hasattr(ids, "shape") else type(ids).__name__
        raise ValueError(f"ids must be one-dimensional, one id for each row of X; got {got}. Pass a single column.")
    values = as_list(ids)
    if len(values) != n_rows:
        raise ValueError(f"ids must hold one id for each of the {n_rows} rows of X; got {len(values)}.")
    return values


def id_messages(ids: Any, n_rows: int) -> Iterator[bytes]:
    """Yield every id as bytes, after checking that there is one for each row."""
    for place, value in enumerate(id_values(ids, n_rows)):
        try:
            yield id_message(value)
        except BadId as error:
            raise BadId(f"{error} at position {place}, counted from 0.") from None


def id_message(value: Any) -> bytes:
    """Return the bytes of an id."""
    if type(value) is int:  # the two usual kinds first
        return b"number " + _digits(value)
    if isinstance(value, UUID) or (isinstance(value, str) and value):
        return b"text " + str(value).encode(errors="surrogatepass")
    if _is_missing(value):
        raise BadId("ids must not be missing, because all rows without an id would share a draw; an id is missing")
    if _is_number(value):
        return b"number " + _number(value)
    if isinstance(value, (bytes, bytearray)):
        return b"bytes " + bytes(value)
    if isinstance(value, (date, time, timedelta, np.datetime64, np.timedelta64)):
        return _time_message(value)
    raise BadId(
        "ids must be numbers, strings, times or bytes (convert others to strings); got an id of type "
        f"{type(value).__name__}"
    )


def _is_missing(value: Any) -> bool:
    """Return whether a value is missing: None, NaN of any kind, NaT, pandas' NA and an empty text."""
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    if isinstance(value, Decimal):
        return value.is_nan()
    if isinstance(value, Real):
        return math.isnan(value)
    # By the names of types: pandas need not be installed.
    return value is None or (isinstance(value, str) and not value) or type(value).__name__ in ("NAType", "NaTType")


def _is_number(value: Any) -> bool:
    """Return whether a value is a real number or a truth value; numpy calls spans whole numbers, and they are not."""
    return isinstance(value, (Real, Decimal, np.bool_)) and not isinstance(value, np.timedelta64)


def _number(value: Any) -> bytes:
    """Return a number by what is written: its digits where it is whole, else those of a float or a decimal."""
    if isinstance(value, (Integral, np.bool_)):
        return _digits(int(value))
    if isinstance(value, Decimal) and value.is_finite() and abs(int(value.as_tuple().exponent)) > _MOST_DIGITS:
        raise BadId(_TOO_LONG)
    if not math.isfinite(value):
        raise BadId("ids must be finite; got an infinite id")
    if isinstance(value, (float, np.floating)) and value == float(value):
        return _digits(int(value)) if float(value).is_integer() else repr(float(value)).encode()
    ratio = Fraction(value) if isinstance(value, Rational) else Fraction(*value.as_integer_ratio())
    if ratio.denominator == 1:
        return _digits(ratio.numerator)
    nearest = repr(float(ratio)) if abs(ratio) < _LARGE else "0"
    if ratio == Fraction(nearest):  # such as 0.1, as which a float is written that is next to it
        return nearest.encode()
    return _digits(ratio.numerator) + b"/" + _digits(ratio.denominator)


def _digits(value: int) -> bytes:
    if value.bit_length() > _MOST_BITS:
        raise BadId(_TOO_LONG)
    return str(value).encode()


def _time_message(value: Any) -> bytes:
    """Return the bytes of a date, a time, an instant, a time of day or a span."""
    if isinstance(value, datetime):
        has_zone = value.utcoffset() is not None
        kind = b"instant" if has_zone else b"time"
        if hasattr(value, "to_datetime64"):  # of pandas, with nanoseconds; in UTC where it has a zone
            count = int(_time_message(value.to_datetime64()).split()[1])
        else:
            count = _attoseconds((value if has_zone else value.replace(tzinfo=UTC)) - _EPOCH)
    elif isinstance(value, date):
        kind, count = b"time", _attoseconds(value - _FIRST_DAY)
    elif isinstance(value, time):
        clock = timedelta(0, value.second, value.microsecond, 0, value.minute, value.hour)
        offset = value.utcoffset()
        kind = b"clock" if offset is None else b"clock of the world"
        count = _attoseconds(clock if offset is None else clock - offset)
    elif isinstance(value, timedelta) and not hasattr(value, "to_timedelta64"):
        kind, count = b"span", _attoseconds(value)
    else:
        value = value.to_timedelta64() if hasattr(value, "to_timedelta64") else value  # of pandas, with nanoseconds
        kind = b"span" if isinstance(value, np.timedelta64) else b"time"
        unit, step = np.datetime_data(value.dtype)
        if unit in _MONTHS and kind == b"time":
            value, unit, step = value.astype("datetime64[D]"), "D", 1
        length = _MONTHS.get(unit) or _UNITS.get(unit)
        if length is None:
            raise BadId("ids that are time spans must have a unit; got an id without one")
        kind += b" of months" if unit in _MONTHS else b""
        count = int(value.view(np.int64)) * step * length
    return b"%s %d" % (kind, count)


def _attoseconds(span: timedelta) -> int:
    return span // timedelta(microseconds=1) * _MICROSECOND
