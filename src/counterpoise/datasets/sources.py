"""How the publishers' files become the columns that a data folder's file would give."""

from pathlib import Path
from typing import Any

import numpy as np

from counterpoise.datasets.columns import Columns, as_category, as_strings, read_csv, stack

_A9A_FEATURES = 123
_A9A_MALE = 72  # counted from 0
_W8A_FEATURES = 300

ADULT_COLUMNS = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation"),
    *("relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country"),
)
WINE_COLUMNS = (
    *("fixed acidity", "volatile acidity", "citric acid", "residual sugar", "chlorides", "free sulfur dioxide"),
    *("total sulfur dioxide", "density", "pH", "sulphates", "alcohol"),
)


def read_compas(paths: list[Path]) -> Columns:
    """Read ProPublica's two-year file; of its repeated column names only ones that no recipe uses are lost."""
    return read_csv(paths[0])


def read_adult(paths: list[Path]) -> Columns:
    """Read UCI's training and test files; the test file writes its labels with a full stop."""
    both = stack([_with(read_csv(path, (*ADULT_COLUMNS, "income")), "split", part) for path, part in _parts(paths)])
    income = as_strings(both.pop("income"))
    return both | {"y": np.char.startswith(income, ">50K").astype(np.int64)}


def read_wine(paths: list[Path]) -> Columns:
    """Read the red and the white wines."""
    colors = ("red", "white")
    tables = [read_csv(path, (*WINE_COLUMNS, "y")) for path in paths]
    return stack([_with(table, "color", color) for table, color in zip(tables, colors, strict=True)])


def read_donors(paths: list[Path]) -> Columns:
    """Read ADBench's matrix; its columns have no names."""
    with np.load(paths[0], allow_pickle=False) as arrays:
        X, y = arrays["X"], arrays["y"]
    return {f"f{at}": X[:, at] for at in range(X.shape[1])} | {"y": y}


def read_a9a(paths: list[Path]) -> Columns:
    """Read LIBSVM's training and test files."""
    arrays: Columns = {"n_features": np.array(_A9A_FEATURES), "male_column": np.array([_A9A_MALE])}
    for path, part in _parts(paths):
        arrays |= _sparse_rows(path, _A9A_FEATURES, f"_{part}")
    return arrays


def read_w8a(paths: list[Path]) -> Columns:
    """Read LIBSVM's training file."""
    return {"n_features": np.array(_W8A_FEATURES)} | _sparse_rows(paths[0], _W8A_FEATURES, "")


def _parts(paths: list[Path]) -> list[tuple[Path, str]]:
    return list(zip(paths, ("train", "test"), strict=True))


def _with(columns: Columns, name: str, value: str) -> Columns:
    n_rows = len(as_strings(next(iter(columns.values()))))
    return columns | {name: as_category([value] * n_rows)}


def _sparse_rows(path: Path, n_features: int, part: str) -> dict[str, Any]:
    from sklearn.datasets import load_svmlight_file  # noqa: PLC0415 - heavy

    X, y = load_svmlight_file(str(path), n_features=n_features)
    return {f"X{part}_indptr": X.indptr, f"X{part}_indices": X.indices, f"y{part}": y.astype(np.int64)}
