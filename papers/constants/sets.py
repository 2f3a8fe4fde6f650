"""Rows to choose settings on: data sets, classes or columns that no table of the paper in question uses."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from counterpoise.datasets import TableData
from papers.arrays import AnyArray, FloatArray
from papers.datasets import load_dataset

_RINGS = (8, 10, 12)  # of abalones: four classes
_QUANTILES = (0.2, 0.4, 0.6, 0.8)  # numbers become five indicators, as in LIBSVM's a9a


@cache
def loaded(name: str) -> TableData:
    """Return a data set, read once."""
    return load_dataset(name)


def _adult() -> tuple[AnyArray, AnyArray]:
    data = loaded("adult").part("train")
    return data.X, data.y


def _plain(name: str) -> Callable[[], tuple[AnyArray, AnyArray]]:
    def rows() -> tuple[AnyArray, AnyArray]:
        data = loaded(name)
        return data.X, data.y

    return rows


def _covertype() -> tuple[AnyArray, AnyArray]:
    data = loaded("covertype")
    return data.X, (data.y == np.bincount(data.y).argmax()).astype(int)


def _red_wine() -> tuple[AnyArray, AnyArray]:
    data = loaded("wine-quality")
    red = np.asarray(data.sensitive["color"]) == "red"
    return data.X[red], (data.y[red] > 5).astype(int)  # noqa: PLR2004


def _digits(first: int, second: int) -> Callable[[], tuple[AnyArray, AnyArray]]:
    def rows() -> tuple[AnyArray, AnyArray]:
        data = loaded("mnist")
        kept = np.flatnonzero((data.y == first) | (data.y == second))
        return data.X[kept], (data.y[kept] == second).astype(int)

    return rows


def _wines() -> tuple[AnyArray, AnyArray]:
    data = loaded("wine-quality")
    return data.X, np.clip(data.y, 4, 8)


def _abalone() -> tuple[AnyArray, AnyArray]:
    data = loaded("abalone")
    return data.X, np.digitize(data.y, _RINGS)


def _small_digits() -> tuple[AnyArray, AnyArray]:
    data = loaded("mnist")
    blocks = np.asarray(data.X).reshape(-1, 7, 4, 7, 4)  # of 28 by 28 pixels
    return blocks.mean(axis=(2, 4)).reshape(-1, 49), data.y


def _twelve() -> tuple[AnyArray, AnyArray]:
    from sklearn.datasets import make_classification  # noqa: PLC0415 - heavy

    X, y = make_classification(
        12_000, 20, n_informative=12, n_classes=12, n_clusters_per_class=1, class_sep=1.3, flip_y=0.02,
        weights=[0.03] * 4 + [0.11] * 8, random_state=0,
    )  # fmt: skip
    return X, y


def _tumours() -> tuple[AnyArray, AnyArray]:
    from sklearn.datasets import load_breast_cancer  # noqa: PLC0415 - heavy

    X, y = load_breast_cancer(return_X_y=True)
    return X, y


SETS: dict[str, Callable[[], tuple[AnyArray, AnyArray]]] = {
    "adult": _adult,
    "compas": _plain("compas"),
    "credit-default": _plain("credit-default"),
    "spambase": _plain("spambase"),
    "covertype": _covertype,
    "red wine": _red_wine,
    "mnist49": _digits(4, 9),
    "mnist35": _digits(3, 5),
    "tumours": _tumours,
    "wines": _wines,
    "abalone": _abalone,
    "splice": _plain("splice"),
    "mnist": _small_digits,
    "12 classes": _twelve,
}


def drawn(name: str, n_rows: int, seed: int) -> tuple[FloatArray, AnyArray]:
    """Return the features and the labels of so many rows of a set, or of all where there are no more."""
    X, y = SETS[name]()
    rows = np.random.default_rng(seed).permutation(len(y))[:n_rows]
    return np.asarray(X[rows], dtype=np.float64), np.asarray(y[rows])


def with_sexes(name: str, n_rows: int, seed: int) -> tuple[sp.csr_array, AnyArray, AnyArray]:
    """Return indicators, labels and the sex of so many people."""
    data = loaded(name)
    rows = np.random.default_rng(seed).permutation(len(data.y))[:n_rows]
    return indicators(data, rows), np.asarray(data.y[rows]), np.asarray(data.sensitive["sex"])[rows]


def indicators(data: TableData, rows: AnyArray) -> sp.csr_array:
    """Return an indicator for each category, and five for each number, one for each fifth of the rows."""
    columns: list[Any] = []
    for values, is_category in zip(np.asarray(data.X)[rows].T, data.categorical, strict=True):
        codes = values if is_category else np.searchsorted(np.nanquantile(values, _QUANTILES), values)
        columns += [codes == value for value in np.unique(codes[~np.isnan(codes)])]
    return sp.csr_array(np.column_stack(columns).astype(np.float64))
