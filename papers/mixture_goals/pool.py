"""Twenty classifiers of people's income, as a team collects them: kinds, encodings, class weights, thresholds."""

from collections.abc import Sequence
from importlib.util import find_spec
from itertools import product
from typing import Any, NamedTuple, Self

import numpy as np
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler, TargetEncoder
from sklearn.tree import DecisionTreeClassifier

from counterpoise.boosting.lpboost import AdaLPBoostClassifier
from counterpoise.learners import HistogramTree
from papers.arrays import AnyArray, BoolArray, FloatArray

DEPLOYED = "logistic regression"
WOMAN = "Female"
_ABOUT_ORIGIN = ("sex", "race", "POBP")
_RAREST = 20  # a category of fewer training rows has no column of its own
_N_NEIGHBOUR_ROWS = 5_000  # among more, asking for neighbours would take longer than all else
_N_TREES = 50
_HALF = 0.5
_FITTED = 0.75  # of the rows; the thresholds by sex are found on the rest


class Candidate(NamedTuple):
    """A model to train, and on what."""

    name: str
    model: Any
    reweighed: bool = False  # by sample weights that make the label independent of sex (Kamiran and Calders 2012)
    n_rows: int | None = None  # the first ones only

    def fit(self, X: Any, y: AnyArray) -> Any:
        """Return the trained model."""
        X, y = X.iloc[: self.n_rows], y[: self.n_rows]
        if not self.reweighed:
            return self.model.fit(X, y)
        last = self.model.steps[-1][0]
        return self.model.fit(X, y, **{f"{last}__sample_weight": independence_weights(np.asarray(X["sex"]), y)})


class SexThresholds(ClassifierMixin, BaseEstimator):
    """A classifier with one threshold for women and one for men.

    Parameters
    ----------
    model : classifier with ``predict_proba``
    ratio : float
        How often women are to be called positive, over how often men are. As many are called positive in all as the
        model calls itself.
    """

    def __init__(self, model: Any, ratio: float) -> None:
        self.model = model
        self.ratio = ratio

    def fit(self, X: Any, y: AnyArray) -> Self:
        """Train the model on most rows, and find the thresholds on the others."""
        n_fitted = int(_FITTED * len(y))
        self.classes_ = np.unique(y)
        self.model_ = clone(self.model).fit(X.iloc[:n_fitted], y[:n_fitted])
        held_out = X.iloc[n_fitted:]
        scores, is_woman = self._scores(held_out), _is_woman(held_out)
        share = is_woman.mean()
        men = (scores > _HALF).mean() / (1.0 - share + share * self.ratio)
        self.women_ = float(np.quantile(scores[is_woman], 1.0 - self.ratio * men))
        self.men_ = float(np.quantile(scores[~is_woman], 1.0 - men))
        return self

    def predict(self, X: Any) -> AnyArray:
        """Return a label for each row."""
        thresholds = np.where(_is_woman(X), self.women_, self.men_)
        return np.asarray(self.classes_[(self._scores(X) > thresholds).astype(np.int64)])

    def _scores(self, X: Any) -> FloatArray:
        return np.asarray(self.model_.predict_proba(X)[:, 1])


def independence_weights(groups: AnyArray, y: AnyArray) -> FloatArray:
    """Return weights under which group and label are independent, each as frequent as without weights."""
    weights = np.empty(len(y))
    for group, label in product(np.unique(groups), np.unique(y)):
        of_group, of_label = groups == group, y == label
        both = of_group & of_label
        weights[both] = of_group.sum() * of_label.mean() / max(both.sum(), 1)  # no row has a pair that is not there
    return weights


def _is_woman(X: Any) -> BoolArray:
    return np.asarray(X["sex"] == WOMAN)


def candidates(categorical: Sequence[str], numeric: Sequence[str], seed: int) -> list[Candidate]:
    """Return the twenty, not trained yet.

    Parameters
    ----------
    categorical, numeric : names of the columns
    seed : int
        Of all that is random in them.
    """
    columns = _Columns(list(categorical), list(numeric), seed)
    return [*_linear(columns), *_trees(columns, seed), *_boosted(columns, seed), *_others(columns, seed)]


class _Columns(NamedTuple):
    """Ways to make numbers of categories."""

    categorical: list[str]
    numeric: list[str]
    seed: int

    def one_hot(self, without: Sequence[str] = ()) -> Any:
        kept = [name for name in self.categorical if name not in without]
        encoder = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=_RAREST)
        return make_column_transformer((encoder, kept), (StandardScaler(), self.numeric))

    def codes(self) -> Any:
        encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
        return make_column_transformer((encoder, self.categorical), remainder="passthrough")

    def rates(self) -> Any:
        """Return the encoder of each category as the rate of positives in it."""
        version = tuple(map(int, sklearn.__version__.split(".")[:2]))
        if version < (1, 9):  # before, folds could not be passed
            encoder = TargetEncoder(random_state=self.seed)
        else:
            encoder = TargetEncoder(cv=StratifiedKFold(5, shuffle=True, random_state=self.seed))
        return make_column_transformer((encoder, self.categorical), remainder="passthrough")


def _linear(columns: _Columns) -> list[Candidate]:
    def logistic(encoder: Any, **settings: Any) -> Any:
        return make_pipeline(encoder, LogisticRegression(max_iter=500, tol=1e-3, **settings))

    on_rates = make_pipeline(columns.rates(), StandardScaler(), LogisticRegression())
    return [
        Candidate(DEPLOYED, logistic(columns.one_hot())),
        Candidate("logistic regression, balanced", logistic(columns.one_hot(), class_weight="balanced")),
        Candidate("logistic regression, reweighed", logistic(columns.one_hot()), reweighed=True),
        Candidate("logistic regression without sex, race, birthplace", logistic(columns.one_hot(_ABOUT_ORIGIN))),
        Candidate("logistic regression, thresholds by sex", SexThresholds(logistic(columns.one_hot()), 0.9)),
        Candidate("logistic regression on rates, thresholds by sex", SexThresholds(on_rates, 1.0)),
    ]


def _trees(columns: _Columns, seed: int) -> list[Candidate]:
    def tree(depth: int, **settings: Any) -> Any:
        return DecisionTreeClassifier(max_depth=depth, min_samples_leaf=20, random_state=seed, **settings)

    def forest(leaf: int, **settings: Any) -> Any:
        return RandomForestClassifier(_N_TREES, min_samples_leaf=leaf, random_state=seed, **settings)

    extra = ExtraTreesClassifier(_N_TREES, min_samples_leaf=5, random_state=seed)
    return [
        Candidate("tree of depth 6", make_pipeline(columns.codes(), tree(6))),
        Candidate("tree of depth 10 on rates", make_pipeline(columns.rates(), tree(10))),
        Candidate(
            "tree of depth 8 on rates, balanced", make_pipeline(columns.rates(), tree(8, class_weight="balanced"))
        ),
        Candidate("forest", make_pipeline(columns.codes(), forest(5))),
        Candidate(
            "forest on rates, balanced", make_pipeline(columns.rates(), forest(10, class_weight="balanced_subsample"))
        ),
        Candidate("forest on rates, thresholds by sex", SexThresholds(make_pipeline(columns.rates(), forest(10)), 0.9)),
        Candidate("extra trees on rates, reweighed", make_pipeline(columns.rates(), extra), reweighed=True),
    ]


def _boosted(columns: _Columns, seed: int) -> list[Candidate]:
    def boosting(**settings: Any) -> Any:
        return HistGradientBoostingClassifier(max_iter=60, learning_rate=0.2, random_state=seed, **settings)

    tail = AdaLPBoostClassifier(
        HistogramTree(max_depth=6), n_estimators=30, alpha=0.5, budget=None, decision="vote", random_state=seed
    )
    return [
        Candidate("gradient boosting", make_pipeline(columns.codes(), boosting())),
        Candidate("gradient boosting, balanced", make_pipeline(columns.codes(), boosting(class_weight="balanced"))),
        Candidate(
            "gradient boosting, thresholds by sex", SexThresholds(make_pipeline(columns.codes(), boosting()), 0.9)
        ),
        Candidate("AdaLPBoost, vote", make_pipeline(columns.rates(), tail)),
    ]


def _others(columns: _Columns, seed: int) -> list[Candidate]:
    neighbours = make_pipeline(columns.rates(), StandardScaler(), KNeighborsClassifier(15))
    return [
        Candidate("naive Bayes on rates", make_pipeline(columns.rates(), GaussianNB())),
        Candidate("15 neighbours", neighbours, n_rows=_N_NEIGHBOUR_ROWS),
        _lightgbm(seed) if find_spec("lightgbm") else _without_lightgbm(columns, seed),
    ]


def _lightgbm(seed: int) -> Candidate:
    from lightgbm import LGBMClassifier  # noqa: PLC0415 - an optional package

    # It takes data frames with category columns as they are.
    return Candidate("LightGBM", LGBMClassifier(n_estimators=60, n_jobs=1, random_state=seed, verbose=-1))


def _without_lightgbm(columns: _Columns, seed: int) -> Candidate:
    trees = ExtraTreesClassifier(_N_TREES, min_samples_leaf=5, random_state=seed)
    return Candidate("extra trees", make_pipeline(columns.codes(), trees))
