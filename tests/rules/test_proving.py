"""A proof of goals: the tests are exact, on rows that neither the choice nor training used."""

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import TimeSeriesSplit
from sklearn.tree import DecisionTreeClassifier

from counterpoise import GoalClassifier, Proof
from counterpoise.goals import Table

GOALS = ["recall >= 0.7", "max_difference(positive_rate, by=group) <= 0.15", "precision >= 0.5"]


def make_rows(n_rows: int, seed: int = 0, n_classes: int = 2) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X, group = rng.normal(size=(n_rows, 3)), rng.integers(0, 2, n_rows)
    score = X[:, 0] + 0.4 * group + 0.8 * rng.normal(size=n_rows)
    y = np.digitize(score, [0.8] if n_classes == 2 else [-0.3, 0.9])
    return X, y, {"group": np.array(["A", "B"])[group]}


def fitted(n_rows: int = 3000, **settings: Any) -> GoalClassifier:
    X, y, columns = make_rows(n_rows)
    model = LogisticRegression().fit(*make_rows(2000, seed=9)[:2])
    settings = {"goals": GOALS, "by": "group", "cv": "prefit", "confidence": Proof(0.9)} | settings
    return GoalClassifier(model, **settings).fit(X, y, sensitive_features=columns)


def test_goals_are_proven_and_the_very_rule_that_was_tested_decides() -> None:
    decided = fitted()
    assert decided.proof_.is_proven
    assert decided.confidence_ == 0.9
    recall, gap, precision = decided.proof_.values
    assert recall > 0.71
    assert gap < 0.13
    assert precision > 0.51
    X, y, columns = make_rows(200_000, seed=1)
    decisions = decided.predict(X, sensitive_features=columns)
    assert all(goal.evaluate(decisions, Table(None, y, columns)).holds for goal in decided.goals_)


def test_nothing_proven_falls_back_to_margins_and_says_how_many_rows_it_takes() -> None:
    with pytest.warns(UserWarning, match="Nothing is proven .* would take about"):
        decided = fitted(300)
    assert not decided.proof_.is_proven
    assert decided.proof_.rows_needed > 300
    margins = [margin.value for margin in decided.margins_]
    plain = fitted(300, confidence=0.9)
    assert margins == [margin.value for margin in plain.margins_]


@pytest.mark.parametrize("cv", ["auto", 3, TimeSeriesSplit(3)])
def test_no_model_is_trained_on_the_test_rows(cv: Any) -> None:
    X, y, columns = make_rows(3000)
    X[:, 2] = np.arange(3000)  # which tells rows apart
    seen: list[Any] = []

    class Watched(DecisionTreeClassifier):
        def fit(self, X: Any, y: Any, **kwargs: Any) -> Any:
            seen.append(X[:, 2].copy())
            return super().fit(X, y, **kwargs)

    model = Watched(max_depth=4, min_samples_leaf=40)
    decided = GoalClassifier(model, goals=["recall >= 0.5"], cv=cv, confidence=Proof(), random_state=0)
    decided.fit(X, y, sensitive_features=columns)
    table = decided.family_.selection_data
    assert table.test_rows.size == 1000
    never_seen = np.setdiff1d(np.arange(3000), np.concatenate(seen))
    assert never_seen.size == 1000
    deciding = decided.estimators_[0].predict_proba(X[never_seen])[:, 1]
    assert np.array_equal(table.scores["train"][table.test_rows, 0], deciding)


def test_rows_of_persons_and_bounds_at_the_end_have_no_proof() -> None:
    X, y, _ = make_rows(2000)
    model = LogisticRegression().fit(X, y)
    some = GoalClassifier(model, goals=["recall >= 0.6"], cv="prefit", confidence=Proof())
    with pytest.warns(UserWarning, match="tests need independent rows"):
        some.fit(X, y, ids=np.arange(2000) // 2)
    with pytest.warns(UserWarning, match="no rule can be inside of the bound of recall >= 1"):
        GoalClassifier(model, goals=["recall >= 1"], cv="prefit", confidence=Proof()).fit(X, y)


def prefit(goals: list[str], X: Any, y: Any, **columns: Any) -> GoalClassifier:
    model = LogisticRegression().fit(*make_rows(2000, seed=9)[:2])
    return GoalClassifier(model, goals=goals, cv="prefit", confidence=Proof()).fit(X, y, **columns)


def test_a_goal_with_a_lower_confidence_of_its_own_takes_no_more_risk() -> None:
    X, y, _ = make_rows(400)
    own = prefit(["recall >= 0.7 with confidence 0.2"], X, y)
    (rule,) = own.rules_
    if own.proof_.is_proven:
        assert rule.thresholds == prefit(["recall >= 0.7"], X, y).rules_[0].thresholds


def test_persons_with_several_rows_stay_together_in_folds_and_unique_ids_are_proven() -> None:
    X, y, _ = make_rows(600)
    unique = GoalClassifier(LogisticRegression(), goals=["recall >= 0.4"], confidence=Proof(), random_state=0)
    assert unique.fit(X, y, ids=np.arange(600)).proof_.is_proven
    with pytest.warns(UserWarning, match="some persons have several"):
        several = unique.fit(X, y, ids=np.arange(600) // 2)
    assert not several.proof_.is_proven


def test_goals_that_nearly_any_rule_meets_are_proven_on_few_rows_and_chosen_on_the_others() -> None:
    decided = fitted(600, goals=["recall >= 0.2"], by=())
    assert decided.proof_.is_proven
    assert decided.proof_.n_rows == 120
    assert decided.value_ <= decided.rebalance(confidence=None).value_ + 0.01


@pytest.mark.parametrize("level", [0, 1, 1.5, "0.9", None])
def test_the_confidence_of_a_proof_is_checked(level: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="confidence of Proof"):
        Proof(level)


@pytest.mark.slow
@pytest.mark.parametrize("goals", [["precision >= 0.61"], GOALS])
def test_violations_are_as_rare_as_promised(goals: list[str]) -> None:
    model = LogisticRegression().fit(*make_rows(2000, seed=9)[:2])
    X, y, columns = make_rows(40_000, seed=1)
    table, missed, proven = Table(None, y, columns), 0, 0
    for seed in range(2, 22):
        rows, labels, groups = make_rows(800, seed=seed)
        decided = GoalClassifier(model, goals=goals, by="group", cv="prefit", confidence=Proof(0.8))
        decided.fit(rows, labels, sensitive_features=groups)
        if decided.proof_.is_proven:
            decisions = decided.predict(X, sensitive_features=columns)
            proven += 1
            missed += not all(goal.evaluate(decisions, table).holds for goal in decided.goals_)
    assert proven >= 3
    assert missed / 20 <= 0.2 + 2 * np.sqrt(0.2 * 0.8 / 20)
