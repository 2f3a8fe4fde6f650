"""A table as columns, numbers or categories: read from a file, and encoded as a ``TableData``."""

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from counterpoise._base.lazy import import_optional
from counterpoise._base.types import AnyArray, FloatArray, IntArray
from counterpoise.datasets.table import TableData

MISSING = "?"  # the mark of a missing category in the UCI files
_COMMENT = "|"  # how a line starts there that holds no row


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
    return sort_names(Category(codes.astype(np.int64), names.tolist()))


def sort_names(column: Category) -> Category:
    """Return the same strings with the names that occur, sorted, and without the mark of missing ones."""
    occurs = np.bincount(column.codes + 1, minlength=len(column.names) + 1)[1:] > 0
    names = sorted(name for name, is_used in zip(column.names, occurs, strict=True) if is_used and name != MISSING)
    place = {name: at for at, name in enumerate(names)}
    new_codes = np.array([place.get(name, -1) for name in column.names] + [-1], dtype=np.int64)
    return Category(new_codes[column.codes], names)  # code -1 looks up the last entry, which is -1


def as_strings(column: Column) -> AnyArray:
    """Return a column as an array of strings, with ``"?"`` where a value is missing."""
    if isinstance(column, Category):
        return np.array([*column.names, MISSING])[column.codes]
    strings = column.astype(str)
    return np.where(np.isnan(column), MISSING, strings) if column.dtype.kind == "f" else strings


def column_as_floats(column: Column) -> FloatArray:
    """Return a column as float64: numbers as they are, categories as codes, NaN where a value is missing."""
    if not isinstance(column, Category):
        return column.astype(np.float64)
    codes = sort_names(column).codes
    return np.where(codes < 0, np.nan, codes)


def read_columns(path: Path) -> Columns:
    """Read a Parquet file, or the arrays of an npz file, as columns."""
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            return {key: arrays[key] for key in arrays.files}
    advice = f'{path.name} is a Parquet file: pip install "counterpoise[data]", which brings pyarrow.'
    table = import_optional("pyarrow.parquet", ImportError, advice).read_table(path).combine_chunks()
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


def read_csv(path: Path, names: Sequence[str] | None = None) -> Columns:
    """Read comma-separated text, with the first line as names unless they are given.

    Blank lines and lines that start with ``|`` are skipped, spaces around values are not part of them. A column
    in which every value is a number, or missing, holds numbers.
    """
    with path.open(encoding="utf-8", newline="") as stream:
        lines = (row for row in csv.reader(stream) if row and not row[0].startswith(_COMMENT))
        rows = [[value.strip() for value in row] for row in lines]
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


class GroupColumn(NamedTuple):
    """A sensitive column: its place in the file, and the meaning of its codes where they are numbers."""

    column: str
    names: Mapping[int, str] | None = None


def from_columns(name: str, recipe: "Recipe", columns: Columns) -> TableData:
    """Encode a table: numbers as they are, strings as codes in sorted order, missing values as NaN."""
    columns = columns if recipe.prepare is None else recipe.prepare(columns)
    apart = {recipe.target, "split", *recipe.drop}
    features = list(recipe.features) or [column for column in columns if column not in apart]
    y = as_integer_labels(columns[recipe.target])
    X = np.empty((len(y), len(features)))
    for at, feature in enumerate(features):
        X[:, at] = column_as_floats(columns[feature])
    categorical = [feature in recipe.categorical or isinstance(columns[feature], Category) for feature in features]
    return TableData(
        name=name,
        X=X,
        y=y,
        feature_names=features,
        categorical=np.array(categorical),
        sensitive={key: _group(columns[group.column], group) for key, group in recipe.sensitive.items()},
        split=as_strings(columns["split"]) if recipe.has_split and "split" in columns else None,
        description=recipe.description,
    )


Build: TypeAlias = Callable[[str, "Recipe", Columns], TableData]
Fetch: TypeAlias = Callable[[Path], Columns]


@dataclass(frozen=True)
class Recipe:
    """How one data set is made of one file, as data; ``prepare`` and ``build`` only where data does not say it all."""

    file: str
    sha256: str
    description: str
    classes: Mapping[int, int]  # label: rows, as published; what is fetched must have the same
    target: str = "y"
    features: tuple[str, ...] = ()  # none: all but the target, the split and what is dropped
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()  # columns of integer codes; string columns are categorical without being listed
    sensitive: Mapping[str, GroupColumn] = field(default_factory=dict)
    has_split: bool = False
    prepare: Callable[[Columns], Columns] | None = None
    build: Build = from_columns
    fetch: Fetch | None = None
    hint: str = "Its source offers no file that can be fetched and checked."


def as_integer_labels(column: Column) -> IntArray:
    """Return labels as integers: as they are where they are whole numbers, else codes of the sorted names.

    Examples
    --------
    >>> from counterpoise.datasets.columns import as_category
    >>> from counterpoise.datasets.columns import as_integer_labels
    >>> as_integer_labels(as_category(["10", "9"])).tolist(), as_integer_labels(as_category(["p", "e", "p"])).tolist()
    ([10, 9], [1, 0, 1])
    """
    if not isinstance(column, Category):
        return column.astype(np.int64)
    if all(name.lstrip("-").isdigit() for name in column.names):
        return np.array([int(name) for name in column.names], dtype=np.int64)[column.codes]
    return column_as_floats(column).astype(np.int64)


def _group(column: Column, group: GroupColumn) -> AnyArray:
    if group.names is None or isinstance(column, Category):
        strings = as_strings(column)
        return np.where(strings == MISSING, "", strings)  # an empty text is missing, ``"?"`` would be a group
    codes, places = np.unique(column, return_inverse=True)
    return np.array([group.names[int(code)] for code in codes])[places]


def from_sparse_rows(name: str, recipe: Recipe, arrays: Columns) -> TableData:
    """Build CSR rows of ones from ``X_indptr``, ``X_indices`` and ``y``, with ``_train`` and ``_test`` where split."""
    from scipy.sparse import csr_array, vstack  # noqa: PLC0415 - heavy

    parts = ["_train", "_test"] if recipe.has_split else [""]
    rows = []
    for part in parts:
        starts, places = (np.asarray(arrays[f"X{part}_{which}"]).astype(np.int32) for which in ("indptr", "indices"))
        shape = (len(starts) - 1, int(np.asarray(arrays["n_features"])))
        rows.append(csr_array((np.ones(len(places)), places, starts), shape=shape))
    X, labels = vstack(rows, format="csr"), [as_integer_labels(arrays[f"y{part}"]) for part in parts]
    sensitive: dict[str, AnyArray] = {}
    if "male_column" in arrays:  # sex is read off the indicator of men, where the file says which column that is
        is_male = X[:, [int(np.asarray(arrays["male_column"]).item())]].toarray().ravel() > 0
        sensitive["sex"] = np.where(is_male, "Male", "Female")
    return TableData(
        name=name,
        X=X,
        y=np.concatenate(labels),
        feature_names=[f"f{at}" for at in range(X.shape[1])],
        categorical=np.zeros(X.shape[1], dtype=bool),
        sensitive=sensitive,
        split=np.repeat(["train", "test"], [len(part) for part in labels]) if recipe.has_split else None,
        description=recipe.description,
    )
