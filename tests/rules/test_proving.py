"""A proof of goals: the tests are exact, on rows that neither the choice nor training used."""

import warnings
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import TimeSeriesSplit
from sklearn.tree import DecisionTreeClassifier

from counterpoise import Deferral, GoalClassifier, Proof, load, save
from counterpoise.goals import Table
from counterpoise.rules.cautions import ConfidenceNotReached
from counterpoise.rules.proving import rows_for_proof, share_to_test, split_rows

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
    kept = decided.family_.selection_data
    rows = split_rows(kept.answers.tables, None, share_to_test(3)).tested["train"]
    (rule,) = decided.rules_
    table = kept.answers.tables["train"].only(rows)
    levels = np.array([rule.thresholds[f"group={name}"] for name in table.column("group")])
    again = [goal.evaluate((kept.scores["train"][rows, 0] > levels).astype(int), table) for goal in decided.goals_]
    assert [check.value for check in again] == pytest.approx(decided.proof_.values)


def test_the_test_of_a_rate_is_the_exact_binomial_one() -> None:
    decided = fitted(goals=["recall >= 0.7"], by=())
    family, (rule,) = decided.family_, decided.rules_
    rows = split_rows(family.selection_data.answers.tables, None, share_to_test(1)).tested["train"]
    scores, labels = family.selection_data.scores["train"][rows, 0], family.selection_data.answers.tables["train"].y
    positives = scores[labels[rows] == 1] > rule.thresholds["all"]
    n_rows, n_hits = positives.size, int(positives.sum())
    bound = Fraction(7, 10)
    tails = [
        float(sum(comb(n_rows, k) * bound**k * (1 - bound) ** (n_rows - k) for k in range(least, n_rows + 1)))
        for least in (n_hits - n_rows // 50, n_hits)
    ]
    assert tails[0] > 0.1 >= tails[1]  # with a few hits less it does not pass


def test_nothing_proven_falls_back_to_margins_and_says_how_many_rows_it_takes() -> None:
    with pytest.warns(ConfidenceNotReached, match="Nothing is proven .* would take about"):
        decided = fitted(300)
    assert not decided.proof_.is_proven
    assert decided.proof_.rows_needed > 300
    margins = [margin.value for margin in decided.margins_]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConfidenceNotReached)
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


@pytest.mark.slow
def test_class_rules_deferral_and_datasets_are_proven() -> None:
    X, y, columns = make_rows(4000, n_classes=3)
    goals = ["recall(of=2) >= 0.5", "error_rate <= 0.45"]
    classes = GoalClassifier(LogisticRegression(), goals=goals, confidence=Proof(0.8), random_state=0)
    classes.fit(X, y, sensitive_features=columns)
    assert classes.proof_.is_proven
    assert classes.proof_.values[0] > 0.5
    deferring = fitted(goals=["recall >= 0.6", "defer_rate <= 0.3"], by=(), deferral=Deferral(0.2))
    assert deferring.proof_.is_proven
    listed = {"list": Table(X[:30], (X[:30, 0] > 0.8).astype(int), population=False)}
    X, y, columns = make_rows(3000)
    model = LogisticRegression().fit(*make_rows(2000, seed=9)[:2])
    goals = ["recall >= 0.6", "error_rate(list) <= 0.3"]
    decided = GoalClassifier(model, goals=goals, cv="prefit", confidence=Proof()).fit(X, y, datasets=listed)
    assert decided.proof_.is_proven
    assert decided.check_goals()[1].holds


def test_rows_of_persons_and_bounds_at_the_end_have_no_proof() -> None:
    X, y, _ = make_rows(2000)
    model = LogisticRegression().fit(X, y)
    some = GoalClassifier(model, goals=["recall >= 0.6"], cv="prefit", confidence=Proof())
    with pytest.warns(ConfidenceNotReached, match="tests need independent rows"):
        some.fit(X, y, ids=np.arange(2000) // 2)
    with pytest.warns(ConfidenceNotReached, match="no rule can be inside of the bound of recall >= 1"):
        GoalClassifier(model, goals=["recall >= 1"], cv="prefit", confidence=Proof()).fit(X, y)


def test_a_list_of_folds_is_refused_as_rows_are_kept_from_training() -> None:
    X, y, _ = make_rows(200)
    folds = [(np.arange(100), np.arange(100, 200)), (np.arange(100, 200), np.arange(100))]
    with pytest.raises(ValueError, match="A proof keeps some rows from training"):
        GoalClassifier(LogisticRegression(), goals=["recall >= 0.5"], cv=folds, confidence=Proof()).fit(X, y)


@pytest.mark.slow
def test_a_proven_classifier_is_stored_and_rebalanced(tmp_path: Any) -> None:
    decided = fitted()
    save(decided, tmp_path / "model.cp")
    again = load(tmp_path / "model.cp")
    assert again.proof_ == decided.proof_
    assert again.confidence == Proof(0.9)
    other = again.rebalance(goals=["recall >= 0.8"], confidence=Proof(0.95))
    assert other.proof_.is_proven
    assert other.proof_.values[0] > 0.8
    assert decided.rebalance(confidence=None).proof_ is None


def test_a_model_trained_on_all_rows_is_proven_on_others_alone() -> None:
    X, y, _ = make_rows(2000)
    trained = GoalClassifier(LogisticRegression(), goals=["recall >= 0.6"], random_state=0).fit(X, y)
    with pytest.warns(ConfidenceNotReached, match="trained on all selection rows"):
        assert not trained.rebalance(confidence=Proof()).proof_.is_proven
    others, labels, _ = make_rows(2000, seed=5)
    assert trained.rebalance(X=others, y=labels, confidence=Proof()).proof_.is_proven


def prefit(goals: list[str], X: Any, y: Any, **columns: Any) -> GoalClassifier:
    model = LogisticRegression().fit(*make_rows(2000, seed=9)[:2])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConfidenceNotReached)
        return GoalClassifier(model, goals=goals, cv="prefit", confidence=Proof()).fit(X, y, **columns)


def test_a_goal_with_a_lower_confidence_of_its_own_takes_no_more_risk() -> None:
    X, y, _ = make_rows(400)
    own = prefit(["recall >= 0.7 with confidence 0.2"], X, y)
    (rule,) = own.rules_
    if own.proof_.is_proven:
        assert rule.thresholds == prefit(["recall >= 0.7"], X, y).rules_[0].thresholds


@pytest.mark.slow
def test_weights_that_differ_need_a_limit_wherever_the_heavy_row_is() -> None:
    X, y, _ = make_rows(300)
    for heavy in range(0, 300, 25):
        weights = np.ones(300)
        weights[heavy] = 1000.0
        assert "largest_weight" in prefit(["recall >= 0.4"], X, y, sample_weight=weights).proof_.reason
    assert prefit(["recall >= 0.2"], X, y, sample_weight=np.ones(300)).proof_.is_proven


def test_a_group_without_test_rows_is_not_proven() -> None:
    X, y, _ = make_rows(300)
    parts = split_rows({"train": Table(X, y)}, None, share_to_test(1))
    group = np.full(300, "a")
    row = next(row for row in parts.traced["train"] if y[row] == 1)
    group[row], X[row] = "z", 10.0
    goals = ["every_group(recall, by=group) >= 0.3"]
    assert not prefit(goals, X, y, sensitive_features={"group": group}).proof_.is_proven
    assert prefit(["recall >= 0.3"], X, y, sensitive_features={"group": group}).proof_.is_proven


@pytest.mark.slow
def test_lists_are_met_by_the_rule_that_is_proven_and_may_be_short() -> None:
    for seed in range(8):
        X, y, _ = make_rows(400, seed=seed)
        at = np.random.default_rng(seed).uniform(-0.2, 0.9)
        rows = np.repeat([at, at + 0.4, -5.0, 5.0], 2)
        listed = {"gold": Table(np.column_stack([rows, rows, rows]), np.repeat([1, 0, 0, 1], 2), population=False)}
        decided = prefit(["recall >= 0.4", "accuracy(gold) >= 0.75"], X, y, datasets=listed)
        assert decided.check_goals()[1].holds
        assert seed or decided.proof_.is_proven


def test_persons_with_several_rows_stay_together_in_folds_and_unique_ids_are_proven() -> None:
    X, y, _ = make_rows(600)
    unique = GoalClassifier(LogisticRegression(), goals=["recall >= 0.4"], confidence=Proof(), random_state=0)
    assert unique.fit(X, y, ids=np.arange(600)).proof_.is_proven
    with pytest.warns(ConfidenceNotReached, match="some persons have several"):
        several = unique.fit(X, y, ids=np.arange(600) // 2)
    assert several.family_.selection_data.test_rows is None


@pytest.mark.slow
def test_more_rows_are_needed_than_there_were() -> None:
    for seed in range(6):
        X, y, _ = make_rows(120, seed=seed)
        proof = prefit(["recall >= 0.6", "precision >= 0.5"], X, y).proof_
        assert proof.is_proven or proof.rows_needed is None or proof.rows_needed > 120


def test_goals_that_nearly_any_rule_meets_are_proven_on_few_rows_and_chosen_on_the_others() -> None:
    decided = fitted(600, goals=["recall >= 0.2"], by=())
    assert decided.proof_.is_proven
    assert decided.proof_.n_rows == 120
    assert decided.value_ <= decided.rebalance(confidence=None).value_ + 0.01
    tables = decided.family_.selection_data.answers.tables
    few, many = (split_rows(tables, None, share).tested["train"] for share in (0.2, share_to_test(1)))
    assert np.isin(few, many).all()  # rows that were traced on before are never tested on


@pytest.mark.parametrize("level", [0, 1, 1.5, "0.9", None])
def test_the_confidence_of_a_proof_is_checked(level: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="confidence of Proof"):
        Proof(level)


def test_more_goals_leave_more_rows_to_trace_on_and_need_more_rows() -> None:
    shares = [share_to_test(n_goals) for n_goals in range(1, 8)]
    assert shares == sorted(shares, reverse=True)
    needed = [rows_for_proof(1.0, 0.9, n_goals, 1000) for n_goals in range(1, 8)]
    assert needed == sorted(needed)
    assert rows_for_proof(0.0, 0.9, 1, 1000) is None


@pytest.mark.slow
@pytest.mark.parametrize("goals", [["precision >= 0.61"], GOALS])
def test_violations_are_as_rare_as_promised(goals: list[str]) -> None:
    model = LogisticRegression().fit(*make_rows(2000, seed=9)[:2])
    X, y, columns = make_rows(40_000, seed=1)
    table, missed, proven = Table(None, y, columns), 0, 0
    for seed in range(2, 22):
        rows, labels, groups = make_rows(800, seed=seed)
        decided = GoalClassifier(model, goals=goals, by="group", cv="prefit", confidence=Proof(0.8))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConfidenceNotReached)
            decided.fit(rows, labels, sensitive_features=groups)
        if decided.proof_.is_proven:
            decisions = decided.predict(X, sensitive_features=columns)
            proven += 1
            missed += not all(goal.evaluate(decisions, table).holds for goal in decided.goals_)
    assert proven >= 3
    assert missed / 20 <= 0.2 + 2 * np.sqrt(0.2 * 0.8 / 20)


def test_goals_that_can_hardly_be_met_have_no_number_of_rows_for_a_proof():
    assert rows_for_proof(1e-200, 0.9, n_goals=1, n_rows=10) is None
