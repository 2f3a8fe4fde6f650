"""A table as columns, numbers or categories, and the readers that make one from a file."""

import csv
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from counterpoise._base.types import AnyArray, FloatArray, IntArray

MISSING = "?"  # the mark of a missing category in the UCI files


class Category(NamedTuple):
    """A column of strings, kept as places in a list of names; -1 where the value is missing."""

    codes: IntArray
    names: list[str]


Column: TypeAlias = AnyArray | Category
Columns: TypeAlias = dict[str, Column]


def as_category(strings: Iterable[str]) -> Category:
    """Return a column of strings as a category, with the names in sorted order.

    Examples
    --------
    >>> from counterpoise.datasets.columns import as_category
    >>> as_category(["M", "F", "M", "?"])
    Category(codes=array([ 1,  0,  1, -1]), names=['F', 'M'])
    """
    names, codes = np.unique(np.array(list(strings), dtype=str), return_inverse=True)
    return in_sorted_order(Category(codes.astype(np.int64), names.tolist()))


def in_sorted_order(column: Category) -> Category:
    """Return the same strings with the names that occur, sorted, and without the mark of missing ones."""
    used = np.bincount(column.codes + 1, minlength=len(column.names) + 1)[1:] > 0
    kept = sorted(name for name, is_used in zip(column.names, used, strict=True) if is_used and name != MISSING)
    place = {name: at for at, name in enumerate(kept)}
    new_codes = np.array([place.get(name, -1) for name in column.names] + [-1], dtype=np.int64)
    return Category(new_codes[column.codes], kept)  # code -1 looks up the last entry, which is -1


def as_strings(column: Column) -> AnyArray:
    """Return a column as an array of strings, with ``"?"`` where a value is missing."""
    if isinstance(column, Category):
        return np.array([*column.names, MISSING])[column.codes]
    strings = column.astype(str)
    return np.where(np.isnan(column), MISSING, strings) if column.dtype.kind == "f" else strings


def as_floats(column: Column) -> FloatArray:
    """Return a column as float64: numbers as they are, categories as codes, NaN where a value is missing."""
    if not isinstance(column, Category):
        return column.astype(np.float64)
    codes = in_sorted_order(column).codes
    return np.where(codes < 0, np.nan, codes)


def read_columns(path: Path) -> Columns:
    """Read a Parquet file, or the arrays of an npz file, as columns."""
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            return {key: arrays[key] for key in arrays.files}
    return _read_parquet(path)


def _read_parquet(path: Path) -> Columns:
    try:
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError as error:
        raise ImportError(
            f'{path.name} is a Parquet file: pip install "counterpoise[data]", which brings pyarrow.'
        ) from error
    table = parquet.read_table(path).combine_chunks()
    return {name: _from_arrow(table.column(name).chunk(0)) for name in table.column_names}


def _from_arrow(array: Any) -> Column:
    if str(array.type) in ("string", "large_string", "string_view"):  # else a missing one would be the word None
        array = array.dictionary_encode()
    if hasattr(array, "dictionary"):
        names, codes = array.dictionary.to_pylist(), array.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        codes = codes.astype(np.int64)
        if "" in names:  # which is missing, as an empty field of a CSV file is
            codes[codes == names.index("")] = -1
        return Category(codes, names)
    return np.asarray(array.to_numpy(zero_copy_only=False))


def read_csv(path: Path, names: Sequence[str] | None = None, *, comment: str = "|") -> Columns:
    """Read comma-separated text, with the first line as names unless they are given.

    Blank lines and lines that start with ``comment`` are skipped, spaces around values are not part of them. A column
    in which every value is a number, or missing, holds numbers.
    """
    with path.open(encoding="utf-8", newline="") as stream:
        rows = [
            [value.strip() for value in row] for row in csv.reader(stream) if row and not row[0].startswith(comment)
        ]
    header = list(names) if names is not None else rows.pop(0)
    ragged = [row for row in rows if len(row) != len(header)]
    if ragged:
        raise ValueError(f"{path.name} must have {len(header)} values in each row; got a row of {len(ragged[0])}.")
    return {name: _numbers_or_category(column) for name, column in zip(header, zip(*rows, strict=True), strict=True)}


def _numbers_or_category(values: Sequence[str]) -> Column:
    try:
        return np.array([float(value) if value not in ("", MISSING) else np.nan for value in values])
    except ValueError:
        return as_category(value or MISSING for value in values)


def stack(tables: Sequence[Columns]) -> Columns:
    """Put tables with the same columns under one another.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.datasets.columns import as_category, as_strings, stack
    >>> both = stack([{"sex": as_category("FM")}, {"sex": as_category("MM")}])
    >>> as_strings(both["sex"]).tolist()
    ['F', 'M', 'M', 'M']
    """
    return {name: _join([table[name] for table in tables]) for name in tables[0]}


def _join(columns: Sequence[Column]) -> Column:
    if any(isinstance(column, Category) for column in columns):
        return as_category(np.concatenate([as_strings(column) for column in columns]))
    return np.concatenate([np.asarray(column) for column in columns])
