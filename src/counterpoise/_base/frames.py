"""Data frames and columns of pandas, polars, pyarrow and whatever else narwhals reads: all that is asked of them.

Models get the frame that they were given, or some of its rows and columns, in the library it came from. Everything else
reads columns as arrays, by ``as_array``, so that equal values are equal whichever library holds them.
"""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from counterpoise._base.types import AnyArray

TEXT, CATEGORY, OTHER = "text", "category", "other"  # kinds of columns


def is_frame(X: Any) -> bool:
    """Return whether X is a data frame or a table of Arrow."""
    return hasattr(X, "columns")


def column_names(X: Any) -> list[Any]:
    """Return the names of the columns of a data frame; none of anything else."""
    columns = getattr(X, "columns", ())
    if hasattr(columns, "tolist"):  # of pandas: ten times as quick as one by one
        return columns.tolist()  # type: ignore[no-any-return]
    return list(getattr(X, "column_names", columns))  # the columns of Arrow are the data themselves


def columns_of(X: Any) -> list[tuple[Any, Any]]:
    """Return the names and columns of a data frame, as its library has them; of anything else none."""
    names = column_names(X)
    by_place = hasattr(X, "iloc")  # two columns may have one name
    return [(name, X.iloc[:, place] if by_place else X[name]) for place, name in enumerate(names)]


def select(X: Any, names: Sequence[Any]) -> Any:
    """Return a data frame with some columns, in that order."""
    return X[list(names)] if hasattr(X, "iloc") else X.select(list(names))


def take_rows(X: Any, rows: Any) -> Any:
    """Return some rows of an array, a sparse matrix, a data frame, a column or a sequence."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if isinstance(X, list | tuple):
        return [X[row] for row in np.arange(len(X))[rows]]
    return X.take(np.arange(len(X))[rows]) if hasattr(X, "to_pylist") else X[rows]  # those of Arrow, and others


def stack_frames(parts: Sequence[Any]) -> Any:
    """Return the rows of data frames or arrays one below the other, with the columns and types of the first."""
    import narwhals.stable.v2 as nw  # noqa: PLC0415 - half as slow as scikit-learn, which imports it too

    first = nw.from_native(parts[0], eager_only=True)
    names, kinds = first.columns, first.schema
    if hasattr(parts[0], "iloc"):  # whose types hold the names of categories
        made_by = nw.get_native_namespace(first)
        alike = [made_by.DataFrame(part, columns=names).astype(parts[0].dtypes) for part in parts[1:]]
        return made_by.concat([parts[0], *alike], ignore_index=True)
    frames = [
        nw.from_native(part, eager_only=True)
        if is_frame(part)
        else nw.from_numpy(np.asarray(part), schema=names, backend=first.implementation)
        for part in parts
    ]
    alike = [frame.select(nw.col(name).cast(kind) for name, kind in kinds.items()) for frame in frames]
    return nw.concat(alike).to_native()


def kind_of(column: Any) -> str:
    """Return whether a column holds texts, categories or others; objects count as texts."""
    import narwhals.stable.v2 as nw  # noqa: PLC0415 - as above

    kind = nw.from_native(_chunked(column), series_only=True).dtype
    if kind in (nw.Categorical, nw.Enum):
        return CATEGORY
    return TEXT if kind in (nw.String, nw.Object) else OTHER


def check_lightgbm_columns(model: Any, X: Any) -> None:
    """Refuse columns of polars and Arrow that hold no numbers, at which LightGBM (4.7) ends the whole process."""
    if (
        not is_frame(X)
        or hasattr(X, "iloc")
        or not any(k.__module__.startswith("lightgbm") for k in type(model).__mro__)
    ):
        return
    odd = next((name for name, column in columns_of(X) if kind_of(column) != OTHER), None)
    if odd is not None:
        raise TypeError(
            f"LightGBM reads numbers alone from frames of {type(X).__module__.split('.')[0]}; the column {odd!r} holds "
            "texts or categories. Encode it by an OrdinalEncoder in a ColumnTransformer before the model, or pass "
            f"X.to_pandas().astype({{{odd!r}: 'category'}})."
        )


def type_names(column: Any) -> list[str]:
    """Return the names of a column's type and of its categories, in the order in which models may see them."""
    names = [str(getattr(column, "dtype", None) or column.type)]
    if not hasattr(column, "cat") or not hasattr(column, "iloc"):  # codes of polars depend on what else was read
        return names
    return [*names, *map(repr, column.cat.categories)]


def as_array(values: Any) -> AnyArray:
    """Return a column of any library, or anything else, as an array in which equal values are equal.

    Categories are their values, and decimals are floats. Where some values are missing, floats and times have NaN and
    NaT; all others become objects with None: whole numbers too, which as floats might lose digits.
    """
    if isinstance(values, (np.ndarray, list, tuple)):
        return _unmasked(values)
    import narwhals.stable.v2 as nw  # noqa: PLC0415 - as above

    series = nw.from_native(_chunked(values), series_only=True, pass_through=True)
    if not isinstance(series, nw.Series):
        return _unmasked(values)
    kind = series.dtype
    if kind.is_decimal():
        series = series.cast(nw.Float64)
    elif not (kind.is_float() or kind.is_temporal() or kind in (nw.Unknown, nw.Object)) and series.null_count():
        pairs = zip(series.to_list(), series.is_null().to_list(), strict=True)
        return as_objects([None if is_missing else value for value, is_missing in pairs])
    return np.asarray(series.to_native())


def as_objects(values: Sequence[Any]) -> AnyArray:
    """Return an array that holds the values as they are, in one dimension."""
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    return objects


def as_list(values: Any) -> list[Any]:
    """Return the values of a column of any library or a sequence, with all digits of numbers and times."""
    kind: Any = getattr(values, "dtype", None)
    if hasattr(kind, "is_temporal") and kind.is_temporal():  # of polars, whose lists round to microseconds
        values = values.to_arrow()
    if hasattr(values, "to_pylist"):  # those of Arrow are wrapped one by one
        return list(values.to_pylist())
    if isinstance(values, np.ndarray) and values.dtype.kind in "biufSU":  # times would lose their unit
        return list(values.tolist())
    return list(values)


def _chunked(values: Any) -> Any:
    """Return a bare array of Arrow as a column of a table."""
    is_bare = hasattr(values, "to_pylist") and not hasattr(values, "chunks") and not is_frame(values)
    return sys.modules["pyarrow"].chunked_array([values]) if is_bare else values


def _unmasked(values: Any) -> AnyArray:
    """Return an array in which None stands for values that are masked."""
    array = np.asarray(values)
    if np.ma.is_masked(values):
        array = array.astype(object)
        array[np.ma.getmaskarray(values)] = None
    return array
