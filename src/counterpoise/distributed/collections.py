"""Dask collections and Parquet files as partitions of rows.

``RowCollections`` holds what ``fit`` takes: collections cut at the same rows, or names of columns of X. ``Load`` makes
of each partition features, labels and the other roles. Functions named ``require_*`` refuse what does not fit.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from counterpoise._base.types import AnyArray
from counterpoise.distributed.partitions import Part, Partitions
from counterpoise.distributed.rows import BASELINE, COLUMNS, NUMBER, SAMPLE_WEIGHT, X, Y
from counterpoise.goals.tables import columns_by_name, count_missing
from counterpoise.rules.pool import feature_names

_MATRIX = 2
_ARGUMENT_NAMES = {COLUMNS: "sensitive_features"}  # the name of an argument, where it is called otherwise here


def require_columns(features: Any, names: Sequence[str]) -> None:
    """Refuse rows that lack a column which was named."""
    columns = list(map(str, getattr(features, "columns", ())))
    missing = [name for name in names if name not in columns]
    if missing:
        raise ValueError(
            f"You named the column {missing[0]!r}, so X must be a data frame that has it; a partition of X has "
            f"{', '.join(columns) or 'no named columns'}."
        )


def require_numbers(features: Any, number: int) -> None:
    """Refuse features that are texts, of a partition with rows: an empty one may have any type."""
    if not hasattr(features, "columns") or not len(features):
        return
    from pandas.api.types import is_numeric_dtype  # noqa: PLC0415 - it made the frame

    for name, kind in zip(features.columns, features.dtypes, strict=True):
        if not is_numeric_dtype(getattr(getattr(kind, "categories", None), "dtype", kind)):
            raise ValueError(
                f"Features must be numbers; the column {name!r} of X is of type {kind} in partition {number}. Encode "
                "it, or name it in sensitive_features, if goals use it, or leave it out."
            )


def require_lengths(part: dict[str, Any], number: int) -> None:
    """Refuse a partition whose collections have different numbers of rows: they would belong to others."""
    sizes = {_ARGUMENT_NAMES.get(role, role): len(data) for role, data in part.items()}
    if len(set(sizes.values())) > 1:
        texts = ", ".join(f"{role} has {size}" for role, size in sizes.items())
        raise ValueError(
            f"Collections must be cut at the same rows; in partition {number} {texts}. Repartition, or name columns of "
            "one data frame."
        )


def labels_of(values: Any, number: int) -> AnyArray:
    """Return the labels of a partition: numbers, or texts."""
    labels = np.asarray(values)
    labels = labels[:, 0] if labels.ndim == _MATRIX and labels.shape[1] == 1 else labels
    if labels.ndim != 1:
        raise ValueError(f"y must hold one label for each row; got shape {labels.shape} in partition {number}.")
    n_missing = count_missing(labels)
    if n_missing:
        raise ValueError(
            f"y must hold a label for each row; {n_missing} of {len(labels)} are missing in partition {number}. Leave "
            "such rows out."
        )
    if labels.dtype.kind == "f" and (labels != np.rint(labels)).any():
        value = labels[labels != np.rint(labels)][0]
        raise ValueError(f"y must hold classes; got real numbers, such as {value:.6g}, in partition {number}.")
    if labels.dtype.kind != "O":
        return labels
    if len({isinstance(label, str) for label in labels.tolist()}) > 1:
        raise ValueError(f"y must hold labels of one type; got texts and others in partition {number}.")
    return np.array(labels.tolist())


@dataclass(frozen=True)
class RowCollections:
    """The arguments of fit: collections cut at the same rows, or the names of columns of X."""

    X: Any
    y: Any
    sensitive_features: Any = None
    baseline: Any = None
    sample_weight: Any = None
    features: Sequence[str] | None = None  # names of columns of X; None for all that are nothing else

    def with_features_of(self, models: Sequence[Any]) -> "RowCollections":
        """Return the rows with the features that models were trained on, where models know them by name."""
        lists = [names for names in map(feature_names, models) if names is not None]
        has_all = bool(lists) and all(set(names) == set(lists[0]) for names in lists)
        columns = columns_of(self.X) if self.features is None and has_all else None
        return self if columns is None or not set(lists[0]) <= set(columns) else replace(self, features=lists[0])

    def names_by_role(self) -> dict[str, Any]:
        """Return the arguments that name a column of X, or several, by role."""
        return {role: value for role, value in self._beside.items() if is_column(value)}

    def collections(self) -> dict[str, Any]:
        """Return the arguments that are collections, by role."""
        return {X: self.X} | {role: value for role, value in self._beside.items() if not is_column(value)}

    @property
    def _beside(self) -> dict[str, Any]:
        """Return what came beside X, by its role."""
        columns, weight = self.sensitive_features, self.sample_weight
        values = {Y: self.y, COLUMNS: columns, BASELINE: self.baseline, SAMPLE_WEIGHT: weight}
        return {role: value for role, value in values.items() if value is not None}


def is_column(value: Any) -> bool:
    """Return whether it is the name of a column, or a list of names."""
    if isinstance(value, str):
        return True
    return isinstance(value, (list, tuple)) and len(value) > 0 and all(isinstance(one, str) for one in value)


@dataclass(frozen=True)
class Every:
    """Every so many-th row of a partition, or the others, and of those again every so many-th."""

    step: int
    others: bool = False
    again: int = 1

    def of(self, data: Any) -> Any:
        """Return those rows of some data."""
        if isinstance(data, dict):
            return {name: self.of(part) for name, part in data.items()}
        is_taken = np.arange(len(data)) % self.step == 0
        places = np.flatnonzero(~is_taken if self.others else is_taken)[:: self.again]
        return data.iloc[places] if hasattr(data, "iloc") else data[places]


@dataclass(frozen=True)
class Load:
    """Makes what is known of the rows of a partition, given its number and a dict from roles to data."""

    names_by_role: dict[str, Any]
    only: "Every | None" = None  # take some of the rows of each partition
    columns: tuple[str, ...] | None = None  # those that every partition of X must have
    features: tuple[str, ...] | None = None  # None for all columns of X that were not named

    def __call__(self, number: int, roles: tuple[str, ...], *data: Any) -> Part:
        """Return the features, labels and other roles of a partition."""
        part = self._split(number, dict(zip(roles, data, strict=True)))
        part = part if self.only is None else {role: self.only.of(one) for role, one in part.items()}
        return {**part, NUMBER: number}

    @property
    def names(self) -> list[str]:
        """Return the columns of X that are no features."""
        return [name for one in self.names_by_role.values() for name in ([one] if isinstance(one, str) else one)]

    def _split(self, number: int, part: dict[str, Any]) -> dict[str, Any]:
        """Split a partition into features, labels and the other roles, and check them."""
        features = part[X]
        if isinstance(features, tuple):
            columns = None if self.features is None else list(dict.fromkeys([*self.features, *self.names]))
            path, group = features
            features = read_parquet(path, group, columns)
        if self.columns is not None and self.features is None:  # which else are looked for one by one
            got = tuple(map(str, features.columns))
            if sorted(self.columns) != sorted(got):
                raise ValueError(
                    f"All partitions of X must have the same columns; they are {', '.join(self.columns)}, and "
                    f"partition {number} has {', '.join(got)}. Read them with one schema, or name the columns to take."
                )
            features = features if tuple(features.columns) == self.columns else features[list(self.columns)]
        if self.names or self.features is not None:
            require_columns(features, [*self.names, *(self.features or ())])
            part |= {role: features[names] for role, names in self.names_by_role.items()}
            named = [name for name in features.columns if name not in self.names]
            features = features[named if self.features is None else list(self.features)]
        require_numbers(features, number)
        part[X] = features
        require_lengths(part, number)
        part[Y] = labels_of(part[Y], number)
        if COLUMNS in part:
            columns = part[COLUMNS]
            part[COLUMNS] = columns_by_name(columns.to_frame() if hasattr(columns, "to_frame") else columns)
        return part


def is_path(value: Any) -> bool:
    """Return whether it is a path, or a list of paths."""
    if isinstance(value, (list, tuple)) and value:
        return all(isinstance(one, (str, os.PathLike)) for one in value)
    return isinstance(value, (str, os.PathLike))


def partitions_of(rows: RowCollections, only: Every | None = None) -> Partitions:
    """Return the partitions of collections, or some rows of each, not computed yet."""
    from dask import delayed  # noqa: PLC0415 - optional

    roles, columns = zip(*((role, _delayed_parts(one, role)) for role, one in rows.collections().items()), strict=True)
    sizes = {role: len(one) for role, one in zip(roles, columns, strict=True)}
    if len(set(sizes.values())) > 1:
        texts = ", ".join(f"{role} has {size}" for role, size in sizes.items())
        raise ValueError(
            f"Collections must be cut at the same rows, with as many partitions each; {texts}. Repartition."
        )
    load = Load(rows.names_by_role(), only, columns_of(rows.X), features=checked_features(rows.features))
    read = delayed(load, pure=False)
    return Partitions([read(number, roles, *part) for number, part in enumerate(zip(*columns, strict=True))])


def columns_of(data: Any) -> tuple[str, ...] | None:
    """Return the names of the columns of a data frame or of Parquet files; None of an array, which has none."""
    if is_path(data):
        return tuple(column_names(parquet_parts(data)[0][0]))
    names = tuple(getattr(data, "columns", (None,)))
    return names if all(isinstance(name, str) for name in names) else None


def checked_features(names: Any) -> tuple[str, ...] | None:
    """Return the names of features as they were given."""
    if names is None:
        return None
    if not is_column(names) or isinstance(names, str):
        raise TypeError(f"features must be a list of names of columns of X, or None for all others; got {names!r}.")
    return tuple(names)


def _delayed_parts(data: Any, role: str) -> list[Any]:
    if is_path(data):
        return parquet_parts(data)
    if not hasattr(data, "to_delayed"):
        raise TypeError(
            f"{role} must be a Dask DataFrame, Series or Array, the path of Parquet files, or the name of a column of "
            f"X; got {type(data).__name__}. For data in memory use the estimator of one machine."
        )
    if role == X and data.ndim != _MATRIX:
        raise ValueError(f"X must have rows and columns; got a collection of {data.ndim} dimension(s).")
    if hasattr(data, "chunks") and data.ndim == _MATRIX:
        data = data.rechunk({1: -1})
    return list(np.asarray(data.to_delayed(), dtype=object).ravel())


def parquet_parts(data: Any) -> list[tuple[str, int]]:
    """Return the row groups of Parquet files, each as the path or the address of a file and a number."""
    import pyarrow as pa  # noqa: PLC0415 - optional

    paths = [os.fspath(path) for path in ([data] if isinstance(data, (str, os.PathLike)) else data)]
    try:
        files = sorted(file for path in paths for file in _files_at(path))
        parts = [(file, group) for file in files for group in range(_parquet(file).num_row_groups)]
    except FileNotFoundError as error:
        raise ValueError(f"X must be a Dask collection, or the path of Parquet files; there is no {error}.") from None
    except pa.ArrowInvalid as error:
        raise ValueError(f"Not all files at {', '.join(map(repr, paths))} are Parquet files: {error}.") from error
    if not parts:
        raise ValueError(f"There are no rows in Parquet files at {', '.join(map(repr, paths))}.")
    return parts


def _files_at(path: str) -> list[str]:
    """Return the files at a path, or at an address such as that of a bucket, as addresses then."""
    import pyarrow.dataset as ds  # noqa: PLC0415 - optional

    scheme, mark, _ = path.rpartition("://")
    return [f"{scheme}{mark}{file}" for file in ds.dataset(path, format="parquet").files]


def _parquet(path: str) -> Any:
    """Open a Parquet file at a path or an address."""
    import pyarrow.fs  # noqa: PLC0415 - optional
    import pyarrow.parquet as pq  # noqa: PLC0415

    system, inside = pyarrow.fs.FileSystem.from_uri(path) if "://" in path else (None, path)
    return pq.ParquetFile(inside, filesystem=system)


def column_names(path: str) -> list[str]:
    """Return the names of the columns of a Parquet file, as a data frame has them: without those of an index."""
    with _parquet(path) as file:
        return list(map(str, file.schema_arrow.empty_table().to_pandas().columns))


def read_parquet(path: str, group: int, columns: Sequence[str] | None = None) -> Any:
    """Return a row group of a Parquet file as a data frame."""
    with _parquet(path) as file:
        return file.read_row_group(group, columns=columns).to_pandas()
