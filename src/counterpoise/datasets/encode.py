"""From columns to a ``TableData``: one way for tables, one for sparse rows, one for images."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from counterpoise._base.types import AnyArray, IntArray
from counterpoise.datasets.columns import MISSING, Category, Column, Columns, as_floats, as_strings
from counterpoise.datasets.table import TableData


class Group(NamedTuple):
    """A sensitive column: where it is found, and what its codes stand for where they are numbers."""

    column: str
    names: Mapping[int, str] | None = None


def as_it_is(columns: Columns) -> Columns:
    """Return the columns unchanged: the special step of a recipe that has none."""
    return columns


def from_columns(name: str, recipe: "Recipe", columns: Columns) -> TableData:
    """Encode a table: numbers as they are, strings as codes in sorted order, missing values as NaN."""
    columns = recipe.prepare(columns)
    apart = {recipe.target, "split", *recipe.drop}
    features = list(recipe.features) or [column for column in columns if column not in apart]
    y = as_labels(columns[recipe.target])
    X = np.empty((len(y), len(features)))
    for at, feature in enumerate(features):
        X[:, at] = as_floats(columns[feature])
    coded = [feature in recipe.categorical or isinstance(columns[feature], Category) for feature in features]
    return TableData(
        name=name,
        X=X,
        y=y,
        feature_names=features,
        categorical=np.array(coded),
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
    description: str
    classes: Mapping[int, int]  # label: rows, as published; what is fetched must have the same
    target: str = "y"
    features: tuple[str, ...] = ()  # none: all but the target, the split and what is dropped
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()  # columns of integer codes; string columns are categorical without being listed
    sensitive: Mapping[str, Group] = field(default_factory=dict)
    has_split: bool = False
    prepare: Callable[[Columns], Columns] = as_it_is
    build: Build = from_columns
    fetch: Fetch | None = None
    hint: str = "Its source offers no file that can be fetched and checked."


def as_labels(column: Column) -> IntArray:
    """Return labels as integers: as they are where they are whole numbers, else codes of the sorted names.

    Examples
    --------
    >>> from counterpoise.datasets.columns import as_category
    >>> from counterpoise.datasets.encode import as_labels
    >>> as_labels(as_category(["10", "9"])).tolist(), as_labels(as_category(["p", "e", "p"])).tolist()
    ([10, 9], [1, 0, 1])
    """
    if not isinstance(column, Category):
        return column.astype(np.int64)
    if all(name.lstrip("-").isdigit() for name in column.names):
        return np.array([int(name) for name in column.names], dtype=np.int64)[column.codes]
    return as_floats(column).astype(np.int64)


def _group(column: Column, group: Group) -> AnyArray:
    if group.names is None or isinstance(column, Category):
        strings = as_strings(column)
        return np.where(strings == MISSING, "", strings)  # an empty text is missing, ``"?"`` would be a group
    codes, places = np.unique(column, return_inverse=True)
    return np.array([group.names[int(code)] for code in codes])[places]


def from_sparse_rows(name: str, recipe: Recipe, arrays: Columns) -> TableData:
    """Build CSR rows of ones from ``X_indptr``, ``X_indices`` and ``y``, with ``_train`` and ``_test`` where split."""
    from scipy.sparse import vstack  # noqa: PLC0415 - heavy

    parts = ["_train", "_test"] if recipe.has_split else [""]
    n_features = int(np.asarray(arrays["n_features"]))
    rows = [_ones_at(arrays[f"X{part}_indptr"], arrays[f"X{part}_indices"], n_features) for part in parts]
    X, labels = vstack(rows, format="csr"), [as_labels(arrays[f"y{part}"]) for part in parts]
    return _without_names(name, recipe, X, labels, "f", _sex_by_indicator(X, arrays))


def from_images(name: str, recipe: Recipe, arrays: Columns) -> TableData:
    """Flatten the images of both parts into rows of bytes."""
    images = np.concatenate([np.asarray(arrays["X_train"]), np.asarray(arrays["X_test"])])
    labels = [as_labels(arrays["y_train"]), as_labels(arrays["y_test"])]
    return _without_names(name, recipe, images.reshape(len(images), -1), labels, "pixel", {})


def _without_names(
    name: str, recipe: Recipe, X: Any, labels: list[IntArray], feature: str, sensitive: dict[str, AnyArray]
) -> TableData:
    """Return rows of numbers whose features have numbers only, with the labels of each part."""
    return TableData(
        name=name,
        X=X,
        y=np.concatenate(labels),
        feature_names=[f"{feature}{at}" for at in range(X.shape[1])],
        categorical=np.zeros(X.shape[1], dtype=bool),
        sensitive=sensitive,
        split=np.repeat(["train", "test"], [len(part) for part in labels]) if recipe.has_split else None,
        description=recipe.description,
    )


def _ones_at(indptr: Any, indices: Any, n_features: int) -> Any:
    from scipy.sparse import csr_array  # noqa: PLC0415 - heavy

    shape = (len(indptr) - 1, n_features)
    return csr_array((np.ones(len(indices)), indices.astype(np.int32), indptr.astype(np.int32)), shape=shape)


def _sex_by_indicator(X: Any, arrays: Columns) -> dict[str, AnyArray]:
    """Read sex off the indicator of men, where the file says which column that is."""
    if "male_column" not in arrays:
        return {}
    is_male = X[:, [int(np.asarray(arrays["male_column"]).item())]].toarray().ravel() > 0
    return {"sex": np.where(is_male, "Male", "Female")}
