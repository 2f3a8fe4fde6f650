"""The rows of the comparison: public sets, their splits, and the tuned model whose scores all methods share."""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import GridSearchCV, ShuffleSplit, cross_val_predict

from counterpoise.datasets import TableData
from papers.arrays import AnyArray, BoolArray, FloatArray
from papers.datasets import load_dataset

N_FOLDS = 5  # of the scores that rules are chosen by: those of a row come from a model that has not seen it
_FIT_SHARE, _OLD_SHARE = 2 / 3, 1 / 9  # of all rows, where these are few
_TUNED_ON = ShuffleSplit(1, test_size=0.25, random_state=0)


class Source(NamedTuple):
    """A public set, and the column of its two groups; with a value, the rows that have it against all others."""

    name: str
    n_rows: int
    column: str | None = None
    value: str | None = None
    tail_only: bool = False

    def overlap(self, sizes: "Sizes") -> float:
        """Return test rows over rows of fitting, times the share of all rows that a split takes.

        It is what the variance of a mean over splits gets beside 1 / n_splits, because splits share rows (Nadeau and
        Bengio 2003, where a split takes all rows): splits of a large set that take few of its rows hardly share any.
        """
        old, fit, test = sizes.of(self.n_rows)
        return test / fit * (old + fit + test) / self.n_rows


SOURCES = {
    "Adult": Source("adult", 48_842, "sex"),
    "ACS Income": Source("acs-income", 665_800, "sex"),
    "COMPAS": Source("compas", 7_214, "race", "African-American"),
    "credit default": Source("credit-default", 30_000, "sex"),
    "census KDD": Source("census-income", 299_285, "sex"),
    "donors": Source("donors", 619_326),
    "covertype": Source("covertype", 581_012, tail_only=True),
    "digits": Source("digits", 1_797, tail_only=True),
}


class Sizes(NamedTuple):
    """The most rows of a split: for a model of before, to fit and choose on, and to test on."""

    old: int
    fit: int
    test: int

    def of(self, n_rows: int) -> "Sizes":
        """Return the sizes of a split of so many rows."""
        old, fit = min(self.old, int(_OLD_SHARE * n_rows)), min(self.fit, int(_FIT_SHARE * n_rows))
        return Sizes(old, fit, min(self.test, n_rows - old - fit))


class Rows(NamedTuple):
    """Rows with labels (0, 1, ...), groups (0 or 1), decisions of a deployed model, and the scores that all share."""

    X: FloatArray
    y: AnyArray
    group: AnyArray
    deployed: AnyArray
    scores: FloatArray

    def take(self, which: AnyArray | BoolArray | slice) -> "Rows":
        """Return some of the rows."""
        return Rows(*(part[which] for part in self))


class Case(NamedTuple):
    """One split of a set: disjoint rows to fit and choose on and to test on, and the tuned model, not fitted.

    The scores of the rows of fitting are out of fold, those of test rows by the model fitted to all rows of fitting.
    """

    source: Source
    fit: Rows
    test: Rows
    base: Any
    other: Any  # a tuned model of another kind
    seed: int

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
    n_old, n_fit, n_test = sizes.of(len(order))
    taken = order[: n_old + n_fit + n_test]
    old, fit, test = np.split(np.arange(len(taken)), [n_old, n_old + n_fit])
    X = np.nan_to_num(np.asarray(data.X[taken], dtype=np.float64), nan=-1.0)  # missing is a value
    y, groups = _codes(data.y)[taken], _groups(data, source)[taken]
    base, other = _tuned(_lightgbm(seed), X[fit], y[fit]), _tuned(_histograms(seed), X[fit], y[fit])
    deployed = clone(base).fit(X[old], y[old])
    scores = cross_val_predict(clone(base), X[fit], y[fit], cv=N_FOLDS, method="predict_proba")
    test_scores = clone(base).fit(X[fit], y[fit]).predict_proba(X[test])

    def rows(which: AnyArray, scores: FloatArray) -> Rows:
        return Rows(X[which], y[which], groups[which], deployed.predict(X[which]), scores)

    return Case(source, rows(fit, scores), rows(test, test_scores), base, other, seed)


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
    """Return the model, not fitted, with the settings of least log loss on a quarter of the rows."""
    model, grid = model_and_grid
    search = GridSearchCV(model, grid, scoring="neg_log_loss", cv=_TUNED_ON, refit=False).fit(X, y)
    return clone(model).set_params(**search.best_params_)
