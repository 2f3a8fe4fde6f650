"""Data frames of every kind, weights of every size, learners that cannot take what a round asks: all of them fit."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from counterpoise import AdaLPBoostClassifier, LPBoostClassifier, MixtureClassifier
from counterpoise.boosting.callbacks import ProgressBar
from counterpoise.learners import HistogramTree, Resampled

pandas = pytest.importorskip("pandas", reason="data frames")

NAMES = ["a", "b", "c", "d"]


@pytest.fixture(scope="module")
def rows():
    X, y = load_breast_cancer(return_X_y=True)
    return X[:200, :4].round(), y[:200]


def booster(**settings):
    return AdaLPBoostClassifier(HistogramTree(max_depth=2), **{"n_estimators": 5, "random_state": 0, **settings})


def as_frame(X, kind):
    frame = pandas.DataFrame(X, columns=NAMES)
    if kind == "arrow":
        return frame.convert_dtypes(dtype_backend="pyarrow")
    if kind == "polars":
        return pytest.importorskip("polars").DataFrame(X, schema=NAMES)
    if kind == "arrow table":
        return pytest.importorskip("pyarrow").table(dict(zip(NAMES, X.T, strict=True)))
    if kind == "one boolean":
        return frame.assign(a=frame.a > 13)
    return frame.astype(kind)


@pytest.mark.parametrize(
    "kind", ["Int64", "Float64", "object", "float32", "arrow", "arrow table", "polars", "one boolean"]
)
def test_a_frame_of_any_kind_of_numbers_is_as_good_as_an_array(rows, kind):
    X, y = rows
    frame = as_frame(X, kind)
    X = np.column_stack([X[:, 0] > 13, X[:, 1:]]) if kind == "one boolean" else X
    weight = (np.arange(200) % 5).astype(float)
    expected = booster().fit(X, y, weight, X_val=X, y_val=y)
    found = booster().fit(frame, y, weight, X_val=frame, y_val=y)
    np.testing.assert_array_equal(found.predict(frame), expected.predict(X))
    np.testing.assert_array_equal(found.predict_proba(frame), expected.predict_proba(X))
    assert found.rebalance(frame, y, alpha=0.4).value_ == expected.rebalance(X, y, alpha=0.4).value_


@pytest.mark.parametrize("kind", ["Int64", "arrow"])
def test_missing_values_of_a_frame_are_missing_values(rows, kind):
    X, y = rows
    frame = as_frame(X, kind)
    found = booster().fit(frame.mask(frame < 13), y)
    expected = booster().fit(np.where(X < 13, np.nan, X), y)
    np.testing.assert_array_equal(found.predict(frame.mask(frame < 13)), expected.predict(np.where(X < 13, np.nan, X)))


def test_a_frame_of_three_classes_is_asked_about_the_positive_one(rows):
    X, y = rows
    frame, labels = as_frame(X, "Int64"), np.where(X[:, 0] > 15, 2, y)
    found = booster(pos_label=1, goals=["positive_rate <= 0.9"]).fit(frame, labels)
    assert found.check_goals()[0].holds


@pytest.mark.parametrize("scale", [1e308, 1e-305, 5e-324])
@pytest.mark.parametrize("settings", [{}, {"reweigh": "groups"}, {"outlier_fraction": 0.1}])
def test_only_ratios_of_weights_matter(rows, scale, settings):
    X, y = rows
    expected = booster(**settings).fit(X, y, np.ones(200), sensitive_features=y)
    found = booster(**settings).fit(X, y, np.full(200, scale), sensitive_features=y)
    assert (found.value_, found.mixture_.tolist()) == (expected.value_, expected.mixture_.tolist())


@pytest.mark.parametrize("settings", [{}, {"reweigh": "groups"}])
def test_weights_next_to_nothing_are_nothing(rows, settings):
    X, y = rows
    light = np.arange(200) % 4 == 0
    expected = booster(**settings).fit(X, y, np.where(light, 0.0, 1.0), sensitive_features=np.arange(200) % 4)
    found = booster(**settings).fit(X, y, np.where(light, 1e-320, 1.0), sensitive_features=np.arange(200) % 4)
    assert (found.value_, found.eta_) == (expected.value_, expected.eta_)


def test_a_group_without_weight_does_not_count(rows):
    X, y = rows
    fitted, group = booster().fit(X, y), np.arange(200) % 3
    weight, kept = (group > 0).astype(float), group > 0
    expected = fitted.rebalance(X[kept], y[kept], sensitive_features=group[kept]).value_
    assert fitted.rebalance(X, y, sensitive_features=group, sample_weight=weight).value_ == pytest.approx(expected)
    pool = MixtureClassifier(fitted.estimators_, objective="worst-group")
    assert pool.fit(X, y, weight, sensitive_features=group).value_ == pytest.approx(expected)


def test_a_learner_that_refuses_a_single_class_answers_with_it(rows):
    """A small tail lies in one class at times: weights of LPBoost are then zero on all of the other."""
    X, y = rows
    one_class = []
    model = LPBoostClassifier(
        SVC(), n_estimators=6, alpha=0.02, random_state=0, callbacks=[lambda r: one_class.append(set(y[r.weights > 0]))]
    ).fit(X, y)
    constant = [place for place, classes in enumerate(one_class) if len(classes) == 1]
    assert constant
    for place, member in enumerate(model.estimators_):
        assert isinstance(member, Resampled) == (place in constant)
        if place in constant:
            assert set(member.predict(X)) == one_class[place]


def test_a_progress_bar_can_be_left_out_copied_and_pickled(rows):
    X, y = rows
    with ProgressBar(5, quiet=True) as bar:
        fitted = booster(callbacks=[bar]).fit(X, y)
        assert cross_val_score(booster(callbacks=[bar]), X, y, cv=2).shape == (2,)
        assert copy.deepcopy(fitted).callbacks[0].n_rounds == 5
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))  # noqa: S301
    alone = ProgressBar(5)
    booster(callbacks=[alone]).fit(X, y)
    assert alone.n_rounds == 5
