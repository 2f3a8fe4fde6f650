"""Pools of every kind of model: what they may answer, and errors that say which model it was."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from counterpoise import MixtureClassifier
from counterpoise.goals import Table


@pytest.fixture(scope="module")
def noisy():
    X, y = make_classification(3000, 12, n_informative=5, flip_y=0.1, class_sep=0.7, random_state=0)
    return X, np.where(y == 1, "yes", "no"), np.where(X[:, 0] > 0.3, "F", "M")


@pytest.fixture(scope="module")
def pool(noisy):
    X, y, _ = noisy
    models = [make_pipeline(StandardScaler(), LogisticRegression()), GaussianNB()]
    models += [DecisionTreeClassifier(max_depth=depth, random_state=depth) for depth in (1, 3, 5, 8)]
    return [model.fit(X[:1500], y[:1500]) for model in models]


def as_strings(X):
    return np.where(X[:, 0] > 0, "yes", "no")


def as_column(X):
    return as_strings(X)[:, None]


def as_probabilities(X):
    return np.column_stack([1.0 * (X[:, 0] <= 0), 1.0 * (X[:, 0] > 0)])


def test_models_may_answer_in_many_forms():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2))
    y = as_strings(X)
    forms = [as_strings, ("column", as_column), ("probabilities", as_probabilities), y, y.astype(object), y.tolist()]
    model = MixtureClassifier(forms, alpha=0.5).fit(X, y)
    assert model.value_ == 0
    assert not model.selection_.losses.any()
    assert model.names_[1] == "column"
    for labels, kinds in (
        ((X[:, 0] > 0).astype(int), (bool, int, float, np.uint8)),
        (X[:, 0] > 0, (bool, int, float)),
    ):
        stored = [(X[:, 0] > 0).astype(kind) for kind in kinds]
        assert not MixtureClassifier(stored).fit(X, labels).selection_.losses.any()


def broken(_X):
    raise KeyError("a column is missing")


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (("bad", broken), r"Model 1 \('bad'\) failed to predict: KeyError: 'a column is missing'"),
        (DecisionTreeClassifier(), r"Model 1 \(DecisionTreeClassifier\) is not fitted"),
        (lambda X: X[:, 0], r"Model 1 \(function\) predicted the label .*texts and numbers are different"),
        (lambda X: as_strings(X)[:-1], r"Model 1 .* one label for each of the 50 rows, .*shape \(49,\)"),
        (lambda X: np.full(len(X), "maybe"), r"Model 1 .* predicted the label .*'maybe'"),
        (np.zeros(50), r"Model 1 \(ndarray\) .*texts and numbers"),
        (np.array(["yes"] * 7), r"Model 1 .* each of the 50 rows"),
        (lambda X: np.zeros((len(X), 3)), r"Model 1 .* returned shape \(50, 3\)"),
    ],
)
def test_an_error_names_the_model(model, text):
    X = np.random.default_rng(0).normal(size=(50, 2))
    with pytest.raises(ValueError, match=text):
        MixtureClassifier([as_strings, model]).fit(X, as_strings(X))


@pytest.mark.parametrize(
    ("estimators", "kind", "text"),
    [
        ([], ValueError, "at least one fitted model"),
        (DecisionTreeClassifier(), TypeError, "must be a list of fitted models"),
        ([DecisionTreeClassifier], TypeError, r"Model 0 \(.*\) is a class, not a model"),
        ([3], TypeError, r"Model 0 \(int\) must be a fitted classifier"),
    ],
)
def test_what_is_no_pool_is_refused(estimators, kind, text):
    with pytest.raises(kind, match=text):
        MixtureClassifier(estimators).fit([[0.0], [1.0]], [0, 1])


def test_stored_predictions_decide_about_no_other_rows(noisy, pool):
    X, y, _ = noisy
    stored = pool[0].predict(X)
    model = MixtureClassifier([("yesterday", stored)]).fit(X, y)
    for ask in (model.predict, model.predict_proba):
        with pytest.raises(ValueError, match=r"Model 0 \('yesterday'\) is stored predictions"):
            ask(X[:5])
    with pytest.raises(ValueError, match="stored predictions for the rows of fit"):
        model.rebalance(X, y)
    mail = {"mail": Table(X[:100], baseline=y[:100])}
    with pytest.raises(ValueError, match="'mail' needs its own: pass a dict"):
        model.fit(X, y, datasets=mail)
    both = {"train": stored, "mail": stored[:100]}
    model = MixtureClassifier([both, pool[1]], alpha=1.0, goals=["churn(mail) <= 0.5"]).fit(X, y, datasets=mail)
    assert model.check_goals()[0].holds
    only = MixtureClassifier([both], goals=["churn(mail) <= 0.5"])
    without_features = {"mail": Table(None, baseline=y[:100])}
    assert only.fit(X, y, datasets=without_features).check_goals()[0].holds


def test_a_saved_mixture_can_be_rebalanced_without_its_rows(noisy, pool):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, y, sex = noisy
    frame = pd.DataFrame(X, columns=[f"x{place}" for place in range(12)]).assign(region=np.where(X[:, 1] > 0, "N", "S"))
    models = [make_pipeline(Select(), model) for model in pool[2:5]]
    model = MixtureClassifier(models, alpha=0.3, goals=["recall(region=N) >= 0.6"])
    model.fit(frame, y, sensitive_features=pd.DataFrame({"sex": sex}))
    assert model.check_goals()[0].holds
    assert model.rebalance(goals=["recall(region=S) >= 0.6"]).check_goals()[0].holds
    size = len(pickle.dumps(model))
    assert size < len(pickle.dumps(models)) + len(y) * (3 + 1 + 1 + 8 * 8 + 8)  # losses, bits, labels, columns; no X
    loaded = pickle.loads(pickle.dumps(model))  # noqa: S301
    assert loaded.rebalance(goals=["recall(sex=F) >= 0.6"]).check_goals()[0].holds
    with pytest.raises(ValueError, match="column 'region'"):
        loaded.rebalance(goals=["recall(region=S) >= 0.6"])


class Select:
    """Drops the text column, as a step of a pipeline that is fitted already."""

    def fit(self, _X, _y=None):
        return self

    def transform(self, X):
        return X.drop(columns="region").to_numpy()

    def __sklearn_is_fitted__(self):
        return True
