"""What else ``fit`` takes reaches the models: cut at the folds, with rows set aside to stop early on, by routing."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import PredefinedSplit, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import counterpoise as cp

N = 240
RNG = np.random.default_rng(0)
X = np.column_stack([np.arange(N), RNG.normal(size=(N, 3))])  # the first column numbers the rows
Y = np.where(X[:, 1] + RNG.normal(size=N) > 0, "yes", "no")
CODES = (Y == "yes").astype(int)
MARKS, PERSONS, WEIGHTS = np.arange(N) * 10.0, np.arange(N) // 3, RNG.random(N)


class Stopping(ClassifierMixin, BaseEstimator):
    """Scores by one column, and remembers which rows it saw; it "stops" after as many rounds as it has rows to stop."""

    seen = ()  # a list in each test

    def __init__(self, n_estimators=100, early_stopping_rounds=None):
        self.n_estimators = n_estimators
        self.early_stopping_rounds = early_stopping_rounds

    def fit(self, X, y, sample_weight=None, *, marks=None, word=None, eval_set=None):
        self.classes_ = np.unique(y)
        rows = np.asarray(X)[:, 0].astype(int)
        outside = None if eval_set is None else np.asarray(eval_set[0][0])[:, 0].astype(int)
        if outside is not None:
            assert_array_equal(eval_set[0][1], CODES[outside])
            self.best_iteration_ = outside.size
        self.seen.append((rows, outside, marks, word, sample_weight, self.get_params()))
        return self

    def predict_proba(self, X):
        p = 1 / (1 + np.exp(-np.asarray(X)[:, 1]))
        return np.column_stack([1 - p, p])


@pytest.fixture(autouse=True)
def seen(monkeypatch):
    monkeypatch.setattr(Stopping, "seen", [])
    return Stopping.seen


def goal_classifier(model, **settings):
    return cp.GoalClassifier(
        model, goals="recall >= 0.6", **{"pos_label": "yes", "random_state": 0, "confidence": None} | settings
    )


def numbered(model):
    return make_pipeline(FunctionTransformer(), model)


@pytest.mark.parametrize("cv", ["auto", 3])
@pytest.mark.parametrize(("wrap", "step"), [(lambda model: model, ""), (numbered, "stopping__")])
def test_arguments_with_a_value_for_each_row_are_cut_at_the_folds(cv, wrap, step, seen):
    params = {f"{step}marks": MARKS, f"{step}word": "same"}
    goal_classifier(wrap(Stopping()), cv=cv).fit(X, Y, WEIGHTS, **params)
    assert [rows.size for rows, *_ in seen] == ([192] * 5 if cv == "auto" else [160] * 3 + [N])
    for rows, _, marks, word, weights, _ in seen:
        assert_array_equal(marks, MARKS[rows])
        assert_array_equal(weights, WEIGHTS[rows])
        assert word == "same"


@pytest.mark.parametrize("wrap", [lambda model: model, numbered])
def test_rows_to_stop_on_are_training_rows_of_the_fold_and_the_last_model_takes_the_mean_rounds(wrap, seen):
    model = wrap(Stopping(early_stopping_rounds=5))
    step = "" if isinstance(model, Stopping) else "stopping__"
    goal_classifier(model, cv=3).fit(X, Y, WEIGHTS, **{f"{step}eval_set": 0.25, f"{step}marks": MARKS})
    *folds, last = seen
    scored = [np.setdiff1d(np.arange(N), np.append(rows, outside)) for rows, outside, *_ in folds]
    assert_array_equal(np.sort(np.concatenate(scored)), np.arange(N))  # each row once, by a model that never saw it
    for rows, outside, marks, _, weights, _ in folds:
        assert outside.size == 40
        assert np.intersect1d(rows, outside).size == 0
        assert abs(CODES[outside].mean() - CODES.mean()) < 0.03
        assert_array_equal(marks, MARKS[rows])
        assert_array_equal(weights, WEIGHTS[rows])
    assert last[1] is None
    assert last[-1] == {"n_estimators": 40, "early_stopping_rounds": None}
    assert_array_equal(last[0], np.arange(N))


def test_rows_to_stop_on_keep_persons_together_and_the_order_of_time(seen):
    model = Stopping(early_stopping_rounds=5)
    goal_classifier(model).fit(X, Y, ids=PERSONS, eval_set=0.2)
    assert all(np.intersect1d(PERSONS[rows], PERSONS[outside]).size == 0 for rows, outside, *_ in seen)
    seen.clear()
    goal_classifier(model, cv=PredefinedSplit(np.arange(N) // 60 - 1)).fit(X, Y, ids=PERSONS, eval_set=0.2)
    assert len(seen) == 4  # three folds, without the first rows, and all
    assert all(np.intersect1d(PERSONS[rows], PERSONS[outside]).size == 0 for rows, outside, *_ in seen[:-1])
    seen.clear()
    goal_classifier(model, cv=TimeSeriesSplit(3)).fit(X, Y, eval_set=0.2)
    assert all(rows.max() < outside.min() for rows, outside, *_ in seen[:-1])


PIPE = make_pipeline(StandardScaler(), Stopping())
REFUSED = {
    "unknown": (Stopping(), {"marx": 1}, "fit got 'marx', which neither GoalClassifier nor .* Did you mean 'marks'?"),
    "ours": (Stopping(), {"sensitive_feature": 1}, "Did you mean 'sensitive_features'?"),
    "no step": (PIPE, {"marks": MARKS}, "In a pipeline name the step before it: stopping__marks"),
    "no share": (Stopping(early_stopping_rounds=5), {"eval_set": 1.5}, r"eval_set must lie in \(0, 1\), the part"),
    "no stop": (Stopping(), {"eval_set": 0.2}, "does not stop early: pass callbacks="),
    "nothing": (LogisticRegression(), {"eval_set": 0.2}, "fit got 'eval_set'.* What it takes: nothing more"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_arguments_that_no_model_takes_are_refused_before_training(case, seen):
    model, params, message = REFUSED[case]
    with pytest.raises((TypeError, ValueError), match=message):
        goal_classifier(model).fit(X, Y, **params)
    assert not seen


def test_of_several_models_each_gets_what_it_takes(seen):
    models = [("one", Stopping()), ("two", LogisticRegression(max_iter=2000))]
    goal_classifier(models).fit(X, Y, marks=MARKS)
    assert len(seen) == 5
    assert all(marks is not None for _, _, marks, *_ in seen)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_with_metadata_routing_models_get_what_they_request(n_jobs, seen):
    with config_context(enable_metadata_routing=True):
        model = Stopping(early_stopping_rounds=5).set_fit_request(marks="notes", eval_set=True, sample_weight=True)
        steps = make_pipeline(FunctionTransformer(), model)
        steps = steps if n_jobs == 1 else model
        goal_classifier(steps, cv=3, n_jobs=n_jobs).fit(X, Y, WEIGHTS, notes=MARKS, eval_set=0.25)
        asked = goal_classifier(Stopping())
        with pytest.raises(ValueError, match=r"\[marks\] are passed but are not explicitly set as requested"):
            asked.fit(X, Y, marks=MARKS)
    assert len(seen) == 4
    for rows, _, marks, _, weights, _ in seen:
        assert_array_equal(marks, MARKS[rows])
        assert_array_equal(weights, WEIGHTS[rows])


def boosted(library):
    module = pytest.importorskip(library)
    return {
        "lightgbm": lambda: module.LGBMClassifier(n_estimators=100, n_jobs=1, verbose=-1, early_stopping_round=5),
        "xgboost": lambda: module.XGBClassifier(n_estimators=100, n_jobs=1, early_stopping_rounds=5),
        "catboost": lambda: module.CatBoostClassifier(
            n_estimators=200, thread_count=1, early_stopping_rounds=5, verbose=False, allow_writing_files=False
        ),
    }[library]()


def rounds(model):
    if hasattr(model, "tree_count_"):
        return model.tree_count_
    return model.n_estimators_ if hasattr(model, "n_estimators_") else model.get_booster().num_boosted_rounds()


@pytest.mark.parametrize("library", ["lightgbm", "xgboost", "catboost"])
def test_boosters_stop_early_with_text_labels_and_stay_what_they_are_on_disk(library, tmp_path):
    model = goal_classifier(boosted(library), cv=3).fit(X[:, 1:], Y, WEIGHTS, eval_set=0.25)
    assert rounds(model.estimators_[0]) < 100
    averaged = goal_classifier(boosted(library)).fit(X[:, 1:], Y, eval_set=0.25)
    of_codes = goal_classifier(boosted(library), pos_label=1).fit(X[:, 1:], CODES, eval_set=0.25)
    assert_array_equal(averaged.predict(X[:, 1:]) == "yes", of_codes.predict(X[:, 1:]) == 1)
    assert_array_equal(averaged.predict_proba(X[:, 1:]), of_codes.predict_proba(X[:, 1:]))
    assert averaged.explain(X[:3, 1:])[0].decision in {"yes", "no"}
    for one in (model, averaged):
        cp.save(one, tmp_path / "model.cp")
        again = cp.load(tmp_path / "model.cp", trusted=["catboost.core.CatBoostClassifier"])
        assert_array_equal(again.predict_proba(X[:, 1:]), one.predict_proba(X[:, 1:]))
        assert_array_equal(again.predict(X[:, 1:]), one.predict(X[:, 1:]))


@pytest.mark.parametrize("labels", [Y, CODES + 1, np.where(X[:, 1] > 0.5, "b", np.where(X[:, 1] > -0.5, "c", "a"))])
def test_xgboost_is_trained_on_codes_and_decides_by_labels(labels):
    model = pytest.importorskip("xgboost").XGBClassifier(n_estimators=5, n_jobs=1)
    classes, codes = np.unique(labels, return_inverse=True)
    told = cp.GoalClassifier(model, goals=[], cv=3, pos_label=classes[1]).fit(X[:, 1:], labels)
    alone = model.fit(X[:, 1:], codes)
    assert_array_equal(told.classes_, classes)
    assert_allclose(told.predict_proba(X[:, 1:]), alone.predict_proba(X[:, 1:]), atol=1e-6)  # of single precision
    assert_array_equal(told.predict(X[:, 1:]), classes[alone.predict(X[:, 1:])])
    if classes.size == 2:
        other = [(X[:9, 1:], labels[:9])]  # labels of the user's own eval_set are encoded as well
        cp.GoalClassifier(model, cv=2).fit(X[:, 1:], labels, eval_set=other, verbose=False)
