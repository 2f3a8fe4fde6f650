"""Pools of every kind of model: what they may answer, and errors that say which model it was."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_classification
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from counterpoise import MixtureClassifier
from counterpoise.goals import Table
from counterpoise.rules.rows import groups_of


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


def test_a_pool_of_one_and_duplicates(noisy, pool):
    X, y, _ = noisy
    X, y = X[1500:], y[1500:]
    one = MixtureClassifier(pool[:1], alpha=0.3).fit(X, y)
    assert one.mixture_.tolist() == [1.0]
    np.testing.assert_array_equal(one.predict(X), pool[0].predict(X))
    assert one.value_ == pytest.approx(min(1, (pool[0].predict(X) != y).mean() / 0.3))
    twice = MixtureClassifier(pool[1:4] * 3, alpha=0.3).fit(X, y)
    assert twice.value_ == pytest.approx(MixtureClassifier(pool[1:4], alpha=0.3).fit(X, y).value_, abs=2e-4)


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


def test_columns_of_probabilities_follow_the_order_of_the_model():
    class Reversed:
        classes_ = np.array(["yes", "no"])

        def predict(self, X):
            return as_probabilities(X)[:, ::-1]

    X = np.random.default_rng(0).normal(size=(50, 2))
    assert MixtureClassifier([Reversed()]).fit(X, as_strings(X)).value_ == 0


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


def test_bare_probabilities_are_not_taken_for_labels():
    X = np.random.default_rng(0).random(size=(50, 2))
    with pytest.raises(ValueError, match="If these are probabilities, return labels"):
        MixtureClassifier([lambda X: X[:, 0]]).fit(X, (X[:, 0] > 0.5).astype(int))


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


def test_a_model_may_know_more_classes_than_the_rows_show():
    X, y = load_digits(return_X_y=True)
    pool = [DecisionTreeClassifier(max_depth=8, random_state=seed).fit(X[:800], y[:800]) for seed in range(2)]
    rows = np.flatnonzero(y[800:] < 8) + 800
    model = MixtureClassifier(pool).fit(X[rows], y[rows])
    assert model.classes_.tolist() == list(range(10))
    np.testing.assert_array_equal(model.selection_.losses[:, 0], pool[0].predict(X[rows]) != y[rows])
    with pytest.raises(
        ValueError, match=r"Model 0 \(DecisionTreeClassifier\) knows the classes .*none of which is in y"
    ):
        MixtureClassifier(pool).fit(X[rows], y[rows] + 100)


def test_our_own_trees_are_read_by_label_not_by_code():
    """Their codes are places among their own classes, which may not be all."""
    from counterpoise.learners import HistogramTree  # noqa: PLC0415 - compiles kernels

    X, y = load_digits(return_X_y=True)
    odd = np.flatnonzero(y % 2)
    pool = [HistogramTree(max_depth=5).fit(X[odd], y[odd]), DecisionTreeClassifier(max_depth=5).fit(X, y)]
    model = MixtureClassifier(pool).fit(X, y)
    np.testing.assert_array_equal(model.selection_.losses[:, 0], pool[0].predict(X) != y)


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


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_long_rows_are_asked_in_chunks(n_jobs):
    X = np.random.default_rng(0).normal(size=(70_000, 2))
    y, asked = X.sum(axis=1) > 0, []

    def is_positive(rows):
        asked.append(len(rows))
        return rows[:, 0] > 0

    found = MixtureClassifier([is_positive, X[:, 1] > 0], alpha=1.0, n_jobs=n_jobs).fit(X, y)
    np.testing.assert_array_equal(found.selection_.losses, (X > 0) != y[:, None])
    assert max(asked) < sum(asked) == 70_000


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


def test_texts_are_rows_too():
    texts = ["good fine", "bad awful", "fine", "awful", "good", "bad"] * 20
    y = np.array([1, 0, 1, 0, 1, 0] * 20)
    pool = [make_pipeline(CountVectorizer(), MultinomialNB(alpha=a)).fit(texts[:30], y[:30]) for a in (0.1, 1.0)]
    model = MixtureClassifier(pool, random_state=0).fit(texts, y)
    assert model.predict(["good", "bad"]).tolist() == [1, 0]


def test_tables_of_arrow_are_rows_too(noisy):
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    X, y, _ = noisy
    names = [f"x{place}" for place in range(X.shape[1])]
    table = pa.table(dict(zip(names, X[:300].T, strict=True)))
    models = [make_pipeline(StandardScaler(), LogisticRegression(C=c)).fit(table, y[:300]) for c in (0.01, 1.0)]
    mixture = MixtureClassifier(models, alpha=0.3, random_state=0).fit(table, y[:300])
    np.testing.assert_array_equal(mixture.predict(table.slice(100, 50)), mixture.predict(table)[100:150])


def test_rows_of_unknown_group_are_one_group():
    unknown = [None, float("nan"), "a", "b", None]
    codes, names = groups_of({"sex": np.array(unknown, dtype=object), "age": [1, 1.0, 1, 1, 2]}, 5)
    assert [names[code] for code in codes] == [
        "sex=(missing), age=1",
        "sex=(missing), age=1",
        "sex=a, age=1",
        "sex=b, age=1",
        "sex=(missing), age=2",
    ]
