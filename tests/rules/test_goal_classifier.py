"""GoalClassifier: strong models trained on folds, rules chosen on what they say of rows they have not seen."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_predict,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import counterpoise as cp
from tests.inside import kept_scores

N = 600
RNG = np.random.default_rng(0)
SEX = RNG.choice(["F", "M"], N)
X = RNG.normal(size=(N, 3)) + 0.6 * (SEX == "M")[:, None]
Y = np.where(X[:, 0] + X[:, 1] + RNG.normal(size=N) > 0.8, "yes", "no")
OLD = np.where(X[:, 0] > 0.5, "yes", "no")
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
TREE = DecisionTreeClassifier(max_depth=3, random_state=0)
GOALS = ["recall >= 0.8", "abs(positive_rate(sex=F) - positive_rate(sex=M)) <= 0.05"]
FOLDS = list(StratifiedKFold(3).split(X, Y))


def fitted(estimator=TREE, **settings):
    settings = {"goals": GOALS, "by": "sex", "cv": FOLDS, "random_state": 0} | settings
    return cp.GoalClassifier(estimator, **settings, confidence=None).fit(
        X, Y, sensitive_features={"sex": SEX}, baseline=OLD
    )


@pytest.fixture(scope="module")
def decided():
    return fitted()


def shares_written_out(model, rules, mixture, rows, sex):
    """Return how likely a model and rules say yes."""
    score = model.predict_proba(rows)[:, 1]
    cuts = [np.array([rule.thresholds[f"sex={one}"] for one in sex]) for rule in rules]
    return sum(share * (score > cut) for share, cut in zip(mixture, cuts, strict=True))


def test_rules_are_chosen_on_scores_of_rows_that_the_models_have_not_seen():
    decided = fitted(decision="sticky")
    out_of_fold = cross_val_predict(TREE, X, Y, cv=FOLDS, method="predict_proba")[:, 1]
    stored = cp.GoalClassifier(
        [out_of_fold], cv="prefit", decision="sticky", alpha=1.0, by="sex", goals=GOALS, confidence=None
    )
    stored.fit(X, Y, sensitive_features={"sex": SEX})
    assert decided.rules_ == stored.rules_
    np.testing.assert_allclose(decided.mixture_, stored.mixture_)
    assert all(check.holds for check in decided.check_goals())
    assert decided.gap_ <= 1e-4


def test_one_model_trained_on_all_rows_decides_by_one_rule_without_draws(decided):
    (model,), (rule,) = decided.estimators_, decided.rules_
    alone = clone(TREE).fit(X, Y)
    np.testing.assert_array_equal(model.predict_proba(X), alone.predict_proba(X))
    expected = shares_written_out(alone, [rule], [1.0], X, SEX)
    np.testing.assert_array_equal(decided.predict(X, sensitive_features={"sex": SEX}) == "yes", expected == 1)
    np.testing.assert_array_equal(decided.decision_proba(X, sensitive_features={"sex": SEX})[:, 1], expected)
    with pytest.raises(ValueError, match="ids are for decision='sticky'"):
        decided.predict(X, ids=np.arange(N), sensitive_features={"sex": SEX})


@pytest.mark.parametrize("decision", ["fixed", "sticky"])
def test_decisions_are_the_same_whatever_the_batch(decision):
    model = fitted(decision=decision)
    whole = model.predict(X, sensitive_features={"sex": SEX})
    parts = [model.predict(X[i : i + 50], sensitive_features={"sex": SEX[i : i + 50]}) for i in range(0, N, 50)]
    np.testing.assert_array_equal(whole, np.concatenate(parts))


@pytest.mark.parametrize("by", ["sex", ()])
def test_a_tiny_change_of_the_rows_changes_no_decision_whose_score_stays_on_its_side(by):
    model = fitted(LogisticRegression(), by=by, goals=GOALS[:1])
    columns = {"sensitive_features": {"sex": SEX}} if by else {}
    moved = X + 1e-6 * np.ptp(X, axis=0)
    (rule,) = model.rules_
    cuts = np.array([rule.thresholds[f"sex={one}" if by else "all"] for one in SEX])
    stays = (model.predict_proba(X)[:, 1] > cuts) == (model.predict_proba(moved)[:, 1] > cuts)
    assert stays.mean() > 0.99
    changed = model.predict(X, **columns) != model.predict(moved, **columns)
    np.testing.assert_array_equal(changed, ~stays)


class CountingTree(DecisionTreeClassifier):
    """A tree that counts the rows it is asked about."""

    asked = 0

    def predict_proba(self, X, check_input=True):
        """Count, and score."""
        type(self).asked += len(X)
        return super().predict_proba(X, check_input)


def test_each_row_is_scored_only_by_the_model_that_it_drew():
    several = [CountingTree(max_depth=3, random_state=0), CountingTree(max_depth=1, random_state=0)]
    model, columns = fitted(several, alpha=0.4, decision="sticky"), {"sensitive_features": {"sex": SEX}}
    assert {rule.model for rule in model.rules_} == {0, 1}
    CountingTree.asked = 0
    said = model.predict(X, **columns)
    assert CountingTree.asked == N
    shares = model.decision_proba(X, **columns)
    assert CountingTree.asked == 3 * N
    sure = shares.max(axis=1) == 1
    assert 0 < sure.sum() < N
    np.testing.assert_array_equal(said[sure], model.classes_[shares[sure].argmax(axis=1)])


@pytest.mark.parametrize(("n_rows", "rarest", "n_folds"), [(60, 30, 5), (60, 3, 3), (5000, 2500, 5), (5000, 4, 4)])
def test_by_default_the_models_of_five_folds_decide_by_their_mean_log_odds(n_rows, rarest, n_folds):
    y = np.repeat([1, 0], [rarest, n_rows - rarest])
    rows = y[:, None] + np.linspace(0, 0.5, n_rows)[:, None]
    Counted.n_fits = 0
    model = cp.GoalClassifier(Counted(), confidence=None, random_state=0).fit(rows, y)
    assert Counted.n_fits == n_folds
    (average,) = model.estimators_
    odds = np.mean([one.decision_function(rows) for one in average.models], axis=0)
    np.testing.assert_allclose(model.predict_proba(rows)[:, 1], 1 / (1 + np.exp(-odds)))
    np.testing.assert_allclose(model.decision_function(rows), odds, atol=1e-9)


@pytest.mark.parametrize(
    ("confidence", "n_rows", "cv", "n_fits"),
    [(0.9, 60, "auto", 15), (None, 60, "auto", 5), (0.9, 3000, "auto", 5), (0.9, 60, TimeSeriesSplit(2), 3)],
)
def test_margins_of_few_rows_train_two_more_models_of_each_fold(confidence, n_rows, cv, n_fits):
    rows = np.linspace(0, 1, n_rows)[:, None]
    Counted.n_fits = 0
    cp.GoalClassifier(Counted(), confidence=confidence, cv=cv, random_state=0).fit(rows, np.arange(n_rows) % 2)
    assert Counted.n_fits == n_fits


def test_models_whose_probabilities_reach_zero_or_one_are_trained_once_more():
    sure = cp.GoalClassifier(KNeighborsClassifier(3), random_state=0).fit(X, Y)
    assert type(sure.estimators_[0]) is KNeighborsClassifier
    assert sure.estimators_[0].n_samples_fit_ == N


def test_an_average_of_several_classes_is_the_normalized_geometric_mean():
    y = np.digitize(X[:, 0], [-0.3, 0.6])
    model = cp.GoalClassifier(LogisticRegression(), random_state=0).fit(X, y)
    products = np.prod([one.predict_proba(X) for one in model.estimators_[0].models], axis=0) ** (1 / 5)
    np.testing.assert_allclose(model.predict_proba(X), products / products.sum(axis=1, keepdims=True), atol=1e-12)


class Counted(LogisticRegression):
    """A model that counts how often it is trained."""

    n_fits = 0

    def fit(self, X, y, sample_weight=None):
        """Count, and train."""
        type(self).n_fits += 1
        return super().fit(X, y, sample_weight)


def test_rows_to_choose_on_may_be_given_instead_of_folds():
    model = cp.GoalClassifier(TREE, goals=GOALS, by="sex", random_state=0, confidence=None)
    model.fit(X[:300], Y[:300], X_val=X[300:], y_val=Y[300:], sensitive_features_val={"sex": SEX[300:]})
    fixed = cp.GoalClassifier([clone(TREE).fit(X[:300], Y[:300])], cv="prefit", goals=GOALS, by="sex", confidence=None)
    fixed.fit(X[300:], Y[300:], sensitive_features={"sex": SEX[300:]})
    assert model.rules_ == fixed.rules_


def test_models_that_are_fitted_are_kept_by_a_clone():
    tree = clone(TREE).fit(X[:300], Y[:300])
    model = clone(
        cp.GoalClassifier(tree, cv="prefit", goals=GOALS[:1], decision="sticky", random_state=0, confidence=None)
    )
    assert model.estimator is tree
    model.fit(X[300:], Y[300:])
    fixed = cp.GoalClassifier([tree], cv="prefit", decision="sticky", alpha=1.0, goals=GOALS[:1], confidence=None).fit(
        X[300:], Y[300:]
    )
    assert model.rules_ == fixed.rules_
    assert model.estimators_ == [tree]
    assert clone(cp.GoalClassifier(tree)).estimator is not tree


@pytest.mark.parametrize(
    "frame", [FRAME.assign(sex=SEX), pl.from_pandas(FRAME.assign(sex=SEX))], ids=["pandas", "polars"]
)
def test_the_default_takes_categories_and_missing_values_of_a_data_frame(frame):
    if isinstance(frame, pl.DataFrame):
        frame = frame.with_columns(
            pl.col("sex").cast(pl.Enum(["F", "M"])), a=pl.when(pl.col("b") > 0).then(pl.col("a"))
        )
    else:
        frame = frame.astype({"sex": "category"}).assign(a=frame["a"].where(frame["b"] > 0))
    model = cp.GoalClassifier(goals=GOALS, by="sex", cv=2, random_state=0, confidence=None).fit(frame, Y)
    assert isinstance(model.estimators_[0], HistGradientBoostingClassifier)
    assert set(model.predict(frame)) == {"no", "yes"}
    assert all(check.holds for check in model.check_goals())


class Answering:
    """A classifier without scores."""

    def fit(self, X, y):  # noqa: ARG002 - whatever they are
        return self

    def predict(self, X):
        return np.zeros(len(X))


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"cv": 1}, "cv must be a whole number of at least 2|cv must be at least 2"),
        ({"cv": "folds"}, r"cv must be 'auto', a number of folds, a splitter .* or 'prefit' .*; got 'folds'"),
        ({"cv": b"3"}, "cv must be 'auto', a number of folds"),
        *(({"n_jobs": n}, f"n_jobs must be None for one thread, .*; got {n}") for n in (0, 1.5, float("inf"))),
        ({"cv": 300}, r"cv=300 needs at least 300 rows of each class, .*; class '.*' has \d+ of 600 samples"),
        (
            {"cv": ShuffleSplit(3, random_state=0)},
            r"cv must score each of the 600 rows at most once, as KFold and TimeSeriesSplit do; row \d+ is",
        ),
        (
            {"cv": [(np.arange(N), np.arange(300)), (np.arange(300), np.arange(300, N))]},
            "scores rows that its models are",
        ),
        ({"cv": FOLDS[:1]}, "cv must make at least 2 folds; got 1"),
        ({"cv": [FOLDS[0], (FOLDS[1][0], np.append(FOLDS[1][1], N))]}, r"from 0 to 599; fold 1 names the row 600\."),
        ({"cv": [FOLDS[0], (FOLDS[1][0] + N, FOLDS[1][1])]}, r"list pairs of rows .*; fold 1 names the row \d+"),
        ({"cv": [FOLDS[0], (FOLDS[1][0], FOLDS[1][1] - N)]}, r"list pairs of rows .*; fold 1 names the row -\d+"),
        ({"cv": [tuple(np.arange(N) % 2 == half for half in (0, 1))]}, r"numbers .*; fold 0 is \(array\(\[ True"),
        ({"cv": [FOLDS[0], 3]}, r"cv must list pairs of rows .*; fold 1 is 3\."),
        ({"cv": "prefit"}, "Model 0 .* is not fitted"),
        ({"estimator": Answering()}, r"Model 0 \(Answering\) has no scores to cut: rules need predict_proba"),
        ({"estimator": []}, "must hold at least one"),
        ({"estimator": DecisionTreeClassifier}, "is a class, not a model: add parentheses"),
        ({"estimator": X[:, 0]}, "must be a classifier with fit, as cv=3 trains it; got .*set cv='prefit'"),
        ({"decision": "never"}, "decision must be one of"),
        ({"by": "age"}, "need the column 'age'"),
    ],
)
def test_what_cannot_be_is_refused(settings, text):
    model = cp.GoalClassifier(**{"estimator": TREE, "cv": 3, "random_state": 0} | settings, confidence=None)
    with pytest.raises((ValueError, TypeError), match=text):
        model.fit(X, Y)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"X_val": X}, "X_val and y_val go together; got X_val only"),
        ({"y_val": Y}, "came without X_val; pass X_val and y_val together"),
        ({"X_val": X, "y_val": Y, "baseline": OLD}, "X_val needs baseline_val: rules are chosen on its rows"),
        ({"X_val": X, "y_val": np.where(X[:, 0] > 0, "yes", "maybe")}, "y holds the label 'maybe', which is not among"),
        ({"sample_weight": -np.ones(N)}, "must not be negative"),
    ],
)
def test_rows_that_do_not_belong_together_are_refused(given, text):
    with pytest.raises(ValueError, match=text):
        cp.GoalClassifier(TREE, cv=2, random_state=0).fit(X, Y, **given)


def test_without_goals_the_usual_threshold_stays():
    X, y = make_classification(1500, 6, flip_y=0.3, random_state=0)
    plain = cp.GoalClassifier(LogisticRegression(), random_state=0).fit(X, y)
    (rule,) = plain.rules_
    assert rule.thresholds["all"] == 0.5
    np.testing.assert_array_equal(plain.predict(X), plain.estimators_[0].predict(X))
    assert plain.gap_ >= 0
    wrong = kept_scores(plain)[:, 0] > 0.5
    assert plain.value_ == pytest.approx((wrong != y).mean(), abs=1e-12)
    shifted = cp.GoalClassifier(LogisticRegression(class_weight={0: 10, 1: 1}), random_state=0).fit(X, y)
    assert shifted.rules_[0].thresholds["all"] == 0.5
    tuned = shifted.rebalance(objective="error_rate")
    assert tuned.rules_[0].thresholds["all"] < 0.45
    asked = plain.rebalance(goals=["recall >= 0.9"])
    assert all(check.holds for check in asked.check_goals())
