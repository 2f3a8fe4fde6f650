"""Rows of an array, a sparse matrix or a data frame: some at a time, or column by column."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from counterpoise._base.types import AnyArray, BoolArray, FloatArray

CODE = np.dtype("<u8")
DOUBLES = 2**53  # whole numbers up to this are float64 numbers
_CHUNK = 1 << 15  # values handled at once: as floats they stay in the cache
_FRAME_CHUNK = 1 << 18  # of data frames, whose every column costs time
_FEW = 100  # rows that are looked at in any case


def n_columns(X: Any) -> int:
    """Return the number of columns, of images that of all their values."""
    return math.prod(X.shape[1:])


def places(X: Any, most: int | None = None) -> Iterator[slice]:
    """Yield where some rows at a time are; with ``most`` only about so many values, of rows evenly spread."""
    width = max(1, n_columns(X))
    most_values = _FRAME_CHUNK if hasattr(X, "columns") else _CHUNK
    step = 1 if most is None else -(-X.shape[0] // max(_FEW, most // width))
    size = step * max(1, most_values // width)
    for start in range(0, X.shape[0], size):
        yield slice(start, start + size, step)


def taken(X: Any, place: slice) -> Any:
    """Return some rows, those of a data frame of plain numbers as an array unless whole ones would lose digits."""
    if hasattr(X, "tocsr"):
        return _canonical(X[place].tocsr())
    if not hasattr(X, "iloc"):
        return X[place]
    rows = X.iloc[place]
    if not all(isinstance(kind, np.dtype) and kind.kind in "biuf" for kind in X.dtypes):
        return rows
    block = rows.to_numpy(dtype=np.float64)
    is_wide = any(kind.kind in "iu" and kind.itemsize == CODE.itemsize for kind in X.dtypes)
    return rows if is_wide and reach(block, np.array([float(DOUBLES)])).any() else block


def _canonical(rows: Any) -> Any:
    """Return sparse rows with one entry for each value, and leave those given alone: a part shares their memory."""
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def columns_of(chunk: Any) -> list[AnyArray]:
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


def is_plain(chunk: Any) -> bool:
    """Tell whether rows are an array of numbers."""
    return isinstance(chunk, np.ndarray) and chunk.dtype.kind in "biuf"


def reach(values: AnyArray, limits: FloatArray) -> BoolArray:
    """Tell for each column whether one of its numbers is as large as a limit, missing ones aside."""
    largest = max(float(values.max(initial=0)), -float(values.min(initial=0)))  # of all columns: much faster
    if not largest < limits.min(initial=np.inf):  # also where a number is missing
        largest = np.fmax.reduce(np.abs(values.astype(np.float64)), axis=0, initial=0.0)
    return np.asarray(largest >= limits)
