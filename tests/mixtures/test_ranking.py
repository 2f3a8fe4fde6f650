"""Beside the decision: how high rows rank, which features the models look at, and settings that reach the models."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.tree import DecisionTreeClassifier

import counterpoise as cp

X, y = load_breast_cancer(return_X_y=True)
X = X[:, :6]
FOREST = RandomForestClassifier(10, max_depth=3, random_state=0).fit(X[:200], y[:200])
LINE = LogisticRegression(max_iter=5000).fit(X[:200], y[:200])


def mixture(models, **settings):
    return cp.MixtureClassifier(models, scores=True, alpha=1.0, random_state=0, **settings).fit(X[200:400], y[200:400])


@pytest.mark.parametrize("pos_label", [0, 1])
def test_of_one_rule_rows_above_zero_are_called_positive(pos_label):
    model = mixture([FOREST], pos_label=pos_label)
    assert len(model.rules_) == 1
    assert_array_equal(model.decision_function(X) > 0, model.predict(X) == 1)


def test_rows_rank_by_the_mean_rank_of_the_scores_of_the_mixture():
    model = mixture([FOREST, LINE], goals=["recall(train, of=0) >= 0.9", "positive_rate(train) >= 0.55"])
    model.mixture_, model.rules_ = np.array([0.25, 0.75]), [model.rules_[0]._replace(model=place) for place in (0, 1)]
    known = [one.predict_proba(X[200:400])[:, 1] for one in (FOREST, LINE)]
    ranks = [np.array([np.mean(column < one) + np.mean(column == one) / 2 for one in column]) for column in known]
    found = model.decision_function(X[200:400])
    assert_allclose(found - found[0], 0.25 * (ranks[0] - ranks[0][0]) + 0.75 * (ranks[1] - ranks[1][0]), atol=1e-12)


def test_zero_is_the_mean_rank_of_the_thresholds_among_weighted_rows():
    rows, labels, group = X[200:400], y[200:400], np.where(X[200:400, 0] > 14, "large", "small")
    weights = np.random.default_rng(0).integers(1, 5, 200).astype(float)
    goals = ["positive_rate(train, size=large) >= 0.6 * positive_rate(train, size=small)"]
    model = cp.MixtureClassifier([LINE], scores=True, alpha=1.0, by="size", goals=goals, random_state=0)
    model.fit(rows, labels, sample_weight=weights, sensitive_features={"size": group})
    scores = LINE.predict_proba(rows)[:, 1]

    def rank(score):
        return (weights @ (scores < score) + weights @ (scores == score) / 2) / weights.sum()

    cuts = [np.mean([rank(level) for level in rule.thresholds.values()]) for rule in model.rules_]
    expected = np.array([rank(score) for score in scores]) - model.mixture_ @ cuts
    found = model.decision_function(rows, sensitive_features={"size": group})
    assert len({level for rule in model.rules_ for level in rule.thresholds.values()}) > 1
    assert_allclose(found, expected, atol=0.01)  # between two known scores a threshold is ranked in proportion
    assert_allclose(np.diff(found), np.diff(expected), atol=1e-12)


def test_folds_rank_together_and_a_scorer_uses_it():
    model = cp.GoalClassifier(LogisticRegression(max_iter=5000), goals=["recall(train) >= 0.97"], random_state=0)
    model.fit(X[:400], y[:400])
    assert roc_auc_score(y[400:], model.decision_function(X[400:])) > 0.97
    assert np.abs(model.decision_function(X)).max() <= 1


def test_a_mixture_of_answers_has_nothing_to_rank_by():
    assert not hasattr(cp.MixtureClassifier([FOREST]).fit(X, y), "decision_function")


def test_importances_are_averaged_as_often_as_models_decide():
    trees = [DecisionTreeClassifier(max_depth=depth, random_state=0).fit(X[:200], y[:200]) for depth in (1, 4)]
    model = cp.MixtureClassifier(trees, alpha=0.2, random_state=0).fit(X[200:], y[200:])
    assert_allclose(
        model.feature_importances_,
        sum(s * tree.feature_importances_ for s, tree in zip(model.mixture_, trees, strict=True)),
    )
    folds = cp.GoalClassifier(FOREST, random_state=0, cv=3).fit(X, y)
    assert_allclose(folds.feature_importances_.sum(), 1.0)
    with pytest.raises(
        AttributeError, match=r"each of the 6 features; LogisticRegression has not\. sklearn\.inspection"
    ):
        _ = mixture([LINE]).feature_importances_


def test_monotonic_constraints_and_class_weights_reach_the_models():
    words = np.where(y == 1, "yes", "no")
    strong = HistGradientBoostingClassifier(max_iter=10, monotonic_cst=[-1, 0, 0, 0, 0, 0], class_weight="balanced")
    model = cp.GoalClassifier(strong, random_state=0, cv=2).fit(X, words)
    rows = np.repeat(X[:5], 20, axis=0)
    rows[:, 0] = np.tile(np.linspace(X[:, 0].min(), X[:, 0].max(), 20), 5)
    assert (np.diff(model.decision_function(rows).reshape(5, 20), axis=1) <= 1e-12).all()
    assert all(one.class_weight == "balanced" for one in model.estimators_)
    line = LogisticRegression(class_weight={"yes": 1.0, "no": 20.0}, max_iter=5000)
    heavy = cp.GoalClassifier(line, random_state=0, cv=2).fit(X, words)
    plain = cp.GoalClassifier(LogisticRegression(max_iter=5000), random_state=0, cv=2).fit(X, words)
    assert heavy.estimators_[0].predict_proba(X)[:, 1].mean() < plain.estimators_[0].predict_proba(X)[:, 1].mean()
