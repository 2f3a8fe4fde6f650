"""Equalities where models, thresholds and rules are chosen: against written-out programs and a look at every rule."""

import numpy as np
from sklearn.linear_model import LogisticRegression

import counterpoise as cp


def rows(n_rows, n_classes=2):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 3))
    scores = (
        X[:, :1] * np.arange(n_classes)
        + 0.5 * X[:, 1:2] * np.arange(n_classes)[::-1] ** 2
        + rng.gumbel(size=(n_rows, n_classes))
    )
    return X, scores.argmax(axis=1)


def test_an_equality_has_no_margin_and_the_model_says_why():
    X, y = rows(1500)
    goals = ["selection_rate == 0.4 +- 0.01", "recall >= 0.45"]
    model = cp.GoalClassifier(LogisticRegression(), goals=goals, confidence=0.9).fit(X, y)
    equality, other = model.margins_
    assert equality.standard_error is None
    assert "no margin, as it is an equality: neither side of it is safe" in str(equality)
    assert other.standard_error > 0
    assert all(check.holds for check in model.check_goals())
    assert abs(model.predict(X).mean() - 0.4) < 0.05


def test_a_proof_tests_an_equality_on_both_sides():
    X, y = rows(4000)
    model = cp.GoalClassifier(
        LogisticRegression(), goals="selection_rate == 0.5 +- 0.1", confidence=cp.Proof(0.9), alpha=None
    )
    model.fit(X, y)
    assert model.proof_.is_proven
    assert model.proof_.values[0] < 0.1
