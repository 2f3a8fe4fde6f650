"""Beside the decision: how high rows rank, which features the models look at, and settings that reach the models."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import counterpoise as cp

X, y = load_breast_cancer(return_X_y=True)
X = X[:, :6]
FOREST = RandomForestClassifier(10, max_depth=3, random_state=0).fit(X[:200], y[:200])
LINE = LogisticRegression(max_iter=5000).fit(X[:200], y[:200])


def mixture(models, **settings):
    return cp.GoalClassifier(
        models, cv="prefit", decision="sticky", alpha=1.0, random_state=0, **settings, confidence=None
    ).fit(X[200:400], y[200:400])


@pytest.mark.parametrize("pos_label", [0, 1])
def test_without_goals_probabilities_and_scores_agree_with_decisions(pos_label):
    model = mixture([FOREST], pos_label=pos_label)
    assert len(model.rules_) == 1
    assert_array_equal(model.decision_function(X) > 0, model.predict(X) == 1)
    assert_array_equal(model.classes_[model.predict_proba(X).argmax(axis=1)], model.predict(X))


@pytest.mark.parametrize("pos_label", [0, 1])
def test_probabilities_and_scores_are_those_of_the_model_whatever_the_goals(pos_label):
    model = cp.GoalClassifier(LINE, cv="prefit", goals=["positive_rate <= 0.3"], pos_label=pos_label, confidence=None)
    model.fit(X[200:400], y[200:400])
    assert (model.predict(X[400:]) != LINE.predict(X[400:])).any()
    assert_allclose(model.predict_proba(X), LINE.predict_proba(X), atol=1e-15)
    assert_allclose(model.decision_function(X), LINE.decision_function(X), atol=1e-12)
    decided = model.decision_proba(X)
    assert_array_equal(model.classes_[decided.argmax(axis=1)], model.predict(X))
    assert set(np.unique(decided)) == {0.0, 1.0}


def test_where_a_model_has_scores_only_there_are_no_probabilities():
    line = LinearSVC().fit(X[:200], y[:200])
    model = cp.GoalClassifier(line, cv="prefit").fit(X[200:400], y[200:400])
    assert not hasattr(model, "predict_proba")
    assert_allclose(model.decision_function(X), line.decision_function(X))
    scored = cp.GoalClassifier(lambda rows: 10 * LINE.decision_function(rows), cv="prefit").fit(X[200:400], y[200:400])
    assert not hasattr(scored, "predict_proba")
    assert hasattr(
        cp.GoalClassifier(lambda rows: LINE.predict_proba(rows)[:, 1], cv="prefit").fit(X, y), "predict_proba"
    )


def test_a_scorer_uses_the_score_of_the_model():
    model = cp.GoalClassifier(
        LogisticRegression(max_iter=5000), goals=["recall >= 0.97"], random_state=0, confidence=None
    )
    model.fit(X[:400], y[:400])
    assert roc_auc_score(y[400:], model.decision_function(X[400:])) > 0.97


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
        AttributeError, match=r"each of the 6 features; LogisticRegression does not have it\. sklearn\.inspection"
    ):
        _ = mixture([LINE]).feature_importances_
