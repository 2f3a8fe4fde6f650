"""The rows of the comparison: public sets, their splits, and the tuned model whose scores all methods share."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import GridSearchCV, ShuffleSplit
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from counterpoise.datasets import TableData
from papers.arrays import AnyArray, BoolArray, FloatArray
from papers.datasets import load_dataset

TRAIN_SHARE = 0.6  # of the rows of fitting, for methods that need others to choose on
_FIT_SHARE, _OLD_SHARE = 2 / 3, 1 / 9  # of all rows, where these are few
_RARE = 20  # rows of a category below which it is one of the rare
_TUNED_ON = ShuffleSplit(1, test_size=0.25, random_state=0)


class Source(NamedTuple):
    """A public set, and the column of its two groups; with a value, the rows that have it against all others."""

    name: str
    column: str | None = None
    value: str | None = None
    tail_only: bool = False


SOURCES = {
    "Adult": Source("adult", "sex"),
    "ACS Income": Source("acs-income", "sex"),
    "COMPAS": Source("compas", "race", "African-American"),
    "credit default": Source("credit-default", "sex"),
    "census KDD": Source("census-income", "sex"),
    "donors": Source("donors"),
    "covertype": Source("covertype", tail_only=True),
    "digits": Source("digits", tail_only=True),
}


class Sizes(NamedTuple):
    """The most rows of a split: for a model of before, to fit and choose on, and to test on."""

    old: int
    fit: int
    test: int


class Rows(NamedTuple):
    """Rows with labels (0, 1, ...), groups (0 or 1), what a deployed model says, and the scores that all share.

    ``numbers`` has the features as linear models take them.
    """

    X: FloatArray
    y: AnyArray
    group: AnyArray
    deployed: AnyArray
    numbers: FloatArray
    scores: FloatArray

    def take(self, which: AnyArray | BoolArray | slice) -> "Rows":
        """Return some of the rows."""
        return Rows(*(part[which] for part in self))


class Case(NamedTuple):
    """One split of a set: disjoint rows to train on, to choose on and to test on, and the tuned model, not fitted.

    Scores are those of that model after it was fitted to the rows of training.
    """

    source: Source
    train: Rows
    choice: Rows
    test: Rows
    base: Any
    other: Any  # a tuned model of another kind
    seed: int

    @property
    def fit(self) -> Rows:
        """Return the rows of training and of choice together."""
        return Rows(*map(np.concatenate, zip(self.train, self.choice, strict=True)))

    def new(self) -> Any:
        """Return the tuned model, not fitted."""
        return clone(self.base)


@lru_cache(maxsize=1)  # parts of one split follow each other
def case_of(title: str, seed: int, sizes: Sizes) -> Case:
    """Return a split of a public set."""
    source = SOURCES[title]
    return split(_loaded(source.name), source, seed, sizes)


@lru_cache(maxsize=2)
def _loaded(name: str) -> TableData:
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        names = [f"pixel {place}" for place in range(X.shape[1])]
        return TableData(name, X, y, names, np.zeros(X.shape[1], dtype=bool), {}, None, "")
    return load_dataset(name)


def split(data: TableData, source: Source, seed: int, sizes: Sizes) -> Case:
    """Return disjoint random rows of a set, a tuned model, and its scores."""
    order = np.random.default_rng(seed).permutation(len(data.y))
    n_old = min(sizes.old, int(_OLD_SHARE * len(order)))
    n_fit = min(sizes.fit, int(_FIT_SHARE * len(order)))
    taken = order[: n_old + n_fit + sizes.test]
    old, fit, test = np.split(np.arange(len(taken)), [n_old, n_old + n_fit])
    train = fit[: int(TRAIN_SHARE * n_fit)]
    X = np.nan_to_num(np.asarray(data.X[taken], dtype=np.float64), nan=-1.0)  # missing is a value
    y, groups = _codes(data.y)[taken], _groups(data, source)[taken]
    base, other = _tuned(_lightgbm(seed), X[train], y[train]), _tuned(_histograms(seed), X[train], y[train])
    deployed = clone(base).fit(X[old], y[old])
    scorer = clone(base).fit(X[train], y[train])
    encode = (lambda rows: rows) if source.tail_only else _encoder(data, X[train])

    def rows(which: AnyArray) -> Rows:
        scores = scorer.predict_proba(X[which])
        said = deployed.predict(X[which])
        return Rows(X[which], y[which], groups[which], said, encode(X[which]), scores)

    return Case(source, rows(train), rows(fit[len(train) :]), rows(test), base, other, seed)


def _codes(labels: AnyArray) -> AnyArray:
    return np.searchsorted(np.unique(labels), labels)


def _groups(data: TableData, source: Source) -> AnyArray:
    if source.column is None:
        return np.zeros(len(data.y), dtype=np.int64)
    names = np.asarray(data.sensitive[source.column])
    return np.asarray(names == (source.value or np.unique(names)[1]), dtype=np.int64)


def _lightgbm(seed: int) -> tuple[Any, dict[str, Any]]:
    from lightgbm import LGBMClassifier  # noqa: PLC0415 - an optional package

    return LGBMClassifier(n_jobs=1, verbose=-1, random_state=seed), {
        "num_leaves": (7, 15, 31),
        "n_estimators": (50, 150),
    }


def _histograms(seed: int) -> tuple[Any, dict[str, Any]]:
    model = HistGradientBoostingClassifier(early_stopping=False, random_state=seed)
    return model, {"max_leaf_nodes": (7, 15, 31), "max_iter": (50, 150)}


def _tuned(model_and_grid: tuple[Any, dict[str, Any]], X: FloatArray, y: AnyArray) -> Any:
    """Return the model, not fitted, with the settings of least log loss on a quarter of the rows of training."""
    model, grid = model_and_grid
    search = GridSearchCV(model, grid, scoring="neg_log_loss", cv=_TUNED_ON, refit=False).fit(X, y)
    return clone(model).set_params(**search.best_params_)


def _encoder(data: TableData, rows: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Return numbers of similar sizes, and a column for each category that is not rare."""
    categories = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=_RARE, sparse_output=False)
    parts = (StandardScaler(), np.flatnonzero(~data.categorical)), (categories, np.flatnonzero(data.categorical))
    encode: Callable[[FloatArray], FloatArray] = make_column_transformer(*parts).fit(rows).transform
    return encode
