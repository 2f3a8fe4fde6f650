"""Audits: verdicts that are right as often as promised, on any classifier, with the numbers that others find."""

import pickle
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from counterpoise import GoalClassifier, MixtureClassifier, audit, certify
from counterpoise.datasets import split_three_ways
from counterpoise.goals import (
    Dataset,
    Table,
    UnknownValue,
    parse_goal,
    precision,
    recall,
)
from counterpoise.theory.confidence import rows_needed
from tests.tiers import slow

TRAIN = Dataset("train")


@cache
def population(seed=0, n_rows=20_000):
    """Return labels, groups, a baseline, weights and decisions that depend on each other."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b"], p=[0.7, 0.3], size=n_rows)
    y = (rng.random(n_rows) < np.where(group == "a", 0.4, 0.25)).astype(int)
    decided = (rng.random(n_rows) < 0.15 + 0.6 * y + 0.1 * (group == "b")).astype(int)
    baseline = np.where(rng.random(n_rows) < 0.8, decided, 1 - decided)
    weights = rng.random(n_rows) + (group == "b")
    return decided, y, group, baseline, weights


def sample_of(people, rows, *, weighted=False):
    decided, y, group, baseline, weights = (column[rows] for column in people)
    weighed = {"sample_weight": weights, "largest_weight": 2.0} if weighted else {}
    return decided, Table(None, y, group, baseline, **weighed)


def test_a_goal_carries_its_confidence_through_text_copies_and_comparison():
    goal = (recall(TRAIN) >= 0.9).with_confidence(0.95)
    assert str(goal) == "recall >= 0.9 with confidence 0.95"
    assert parse_goal(str(goal)) == goal == pickle.loads(pickle.dumps(goal))  # noqa: S301 - our own bytes
    assert goal.with_bound(0.8).confidence == 0.95
    assert len({goal, goal.with_confidence(None), goal.with_confidence(0.9), recall(TRAIN) >= 0.9}) == 3


@pytest.mark.parametrize("confidence", [0, 1, -0.1, 1.5, float("nan")])
def test_a_confidence_lies_between_zero_and_one(confidence):
    with pytest.raises(ValueError, match=r"confidence must lie in \(0, 1\)"):
        (recall(TRAIN) >= 0.9).with_confidence(confidence)
    with pytest.raises(ValueError, match=r"confidence must lie in \(0, 1\)"):
        audit("recall >= 0.9", [1, 0], Table(None, [1, 0]), confidence=confidence)


GOALS = {  # one of each kind of bound
    "one share": "recall >= 0.75",
    "a ratio of two kinds of rows": "precision >= 0.7",
    "a ratio that may be infinite": "win_loss_ratio >= 1",
    "F1": "f1_score >= 0.7",
    "two disjoint groups": "positive_rate(group=a) >= 0.8 * positive_rate(group=b)",
    "overlapping groups": "error_rate(group=b) <= error_rate + 0.05",
    "three values, signed": "wins_minus_losses >= 0.01",
    "three values": "false_positives + 3 * false_negatives <= 0.5",
    "a ratio of two groups": "recall(group=a) / recall(group=b) >= 0.8",
}


@pytest.mark.parametrize("weighted", [False, slow(True)])
@pytest.mark.parametrize("text", GOALS.values(), ids=GOALS.keys())
def test_each_end_of_each_interval_fails_as_seldom_as_promised(text, weighted):
    """On 40 samples of 150 rows, at confidence 0.8; the population is known."""
    people = population()
    decided, everyone = sample_of(people, np.arange(len(people[0])), weighted=weighted)
    goal = parse_goal(text)
    (truth,) = audit(goal, decided, everyone)
    misses = np.zeros(2)
    for seed in range(40):
        rows = np.random.default_rng(seed).integers(0, len(decided), size=150)
        (row,) = audit(goal, *sample_of(people, rows, weighted=weighted), confidence=0.8)
        misses += [row.low > truth.estimate, row.high < truth.estimate]
        assert row.low <= row.estimate <= row.high
    assert (misses <= 40 * 0.2 + 3 * np.sqrt(40 * 0.2 * 0.8)).all()


@pytest.mark.parametrize("text", GOALS.values(), ids=GOALS.keys())
def test_the_estimate_is_what_evaluation_finds_and_the_margin_decides(text):
    decided, table = sample_of(population(), np.arange(500))
    (row,) = audit(text, decided, table)
    check = parse_goal(text).evaluate(decided, table)
    assert row.estimate - row.bound == pytest.approx(check.value - check.bound)
    inside = row.low - row.bound if row.goal.sense == ">=" else row.bound - row.high
    assert row.margin == pytest.approx(inside)
    assert (row.verdict == "holds") == (inside >= 0)
    assert row.verdict != "holds" or check.holds


def test_goals_share_the_risk():
    decided, table = sample_of(population(), np.arange(400))
    goals = ["recall >= 0.6", "error_rate <= 0.4", (precision(TRAIN) >= 0.5).with_confidence(0.99)]
    together = audit(goals, decided, table, confidence=0.95)
    alone = [audit(goal, decided, table, confidence=1 - 0.05 / 3)[0] for goal in goals[:2]]
    np.testing.assert_allclose([row[1:6] for row in together[:2]], [row[1:6] for row in alone], atol=1e-12)
    assert together.confidence == pytest.approx(1 - (0.05 + 0.05 + 0.01) / 3)
    assert together[2].goal.confidence == 0.99


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    labels, size = np.where(y == 1, "benign", "malignant"), np.where(X[:, 0] > 13, "large", "small")
    parts = split_three_ways(len(y), seed=0)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[parts.train], labels[parts.train])
    rows = parts.certify
    return model, X[rows], labels[rows], size[rows]


def test_rules_by_group_in_a_pipeline_or_a_search_get_the_groups_and_churn_the_baseline(cancer):
    _, X, y, size = cancer
    X, groups = np.asarray(X), np.asarray(size)
    goals = ["positive_rate(group=large) <= 0.9", "churn <= 0.9"]
    by_group = GoalClassifier(
        DecisionTreeClassifier(max_depth=3), goals=goals[:1], by="group", cv=2, pos_label="malignant", random_state=0
    )
    pipeline = make_pipeline(StandardScaler(), by_group)
    pipeline.fit(X, y, goalclassifier__sensitive_features=groups)
    rule = pipeline[-1]
    expected = certify(
        rule.predict(pipeline[:-1].transform(X), sensitive_features=groups),
        *(goals, None, y),
        sensitive_features=groups,
        baseline=np.asarray(y)[::-1],
        pos_label="malignant",
    )
    search = SimpleNamespace(best_estimator_=pipeline, predict=pipeline.predict)
    for model in (pipeline, search):
        assert certify(model, goals, X, y, sensitive_features=groups, baseline=np.asarray(y)[::-1]) == expected


def test_the_numbers_are_those_of_fairlearn(cancer):
    metrics = pytest.importorskip("fairlearn.metrics", reason="fairlearn, the peer, is not installed")
    model, X, y, size = cancer
    y, decided = (y == "malignant").astype(int), (model.predict(X) == "malignant").astype(int)
    frame = metrics.MetricFrame(
        metrics={
            "positive_rate": metrics.selection_rate,
            "recall": metrics.true_positive_rate,
            "false_positive_rate": metrics.false_positive_rate,
        },
        y_true=y,
        y_pred=decided,
        sensitive_features=size,
    )
    for name in frame.overall.index:
        goals = [f"{name} >= 0", *(f"{name}(group={one}) >= 0" for one in frame.by_group.index)]
        rows = certify(decided, goals, X, y, sensitive_features=size)
        np.testing.assert_allclose([row.estimate for row in rows], [frame.overall[name], *frame.by_group[name]])


def test_too_few_rows_are_told_from_failure():
    table = Table(None, np.ones(30, int))
    (row,) = audit("recall >= 0.99", np.ones(30, int), table, confidence=0.95)
    needed = rows_needed(0.01, confidence=0.95)
    assert row.verdict == "undecided"
    assert row.note.endswith(f"it takes {needed} rows of train.positives (there are 30)")
    (row,) = audit("correct >= 1", np.ones(30, int), table)
    assert row.note.startswith("no number of rows is enough")


def test_a_group_that_is_empty_is_named():
    table = Table(None, [1, 0, 0], ["a", "b", "b"])
    (row,) = audit("recall(group=b) >= 0.5", [1, 0, 0], table)
    assert row.verdict == "undecided"
    assert row.note.endswith("dataset 'train' restricted to group=b and labelled positive is empty")


EMPTY = {
    "every_group(recall, by=group) >= 0.5": "restricted to group=b and labelled positive is empty",
    "equal_opportunity_difference(by=group) <= 0.5": "restricted to group=b and labelled positive is empty",
    "max_difference(recall, by=one) <= 0.5": "by 'one' there is one, train, one=1",
    "recall(age>=90) >= 0.5": "No row has age>=90",
    "recall(group=b) / positive_rate >= 0.5": "restricted to group=b and labelled positive is empty",
}


def test_a_group_that_no_row_is_of_may_be_a_slip_of_the_pen_and_is_refused():
    with pytest.raises(UnknownValue, match="Unknown value 'c' of column 'group' in dataset 'train'"):
        audit("recall(group=c) >= 0.5", [1, 0, 0], Table(None, [1, 0, 0], ["a", "b", "b"]))


@pytest.mark.parametrize("goal", EMPTY)
def test_a_goal_on_no_rows_is_undecided_and_the_others_have_their_verdicts(goal):
    y = np.array([1, 0, 0, 0] * 50)
    columns = {"group": np.where(np.arange(200) % 2, "b", "a"), "one": np.ones(200, int), "age": np.full(200, 30)}
    table = Table(None, y, columns)
    found = audit([goal, "error_rate <= 0.1"], y, table)
    assert [row.verdict for row in found] == ["undecided", "holds"]
    assert EMPTY[goal] in found[0].note
    assert EMPTY[goal] in str(found)
    assert "Needed by" not in found[0].note
    assert np.isnan(found[0].estimate)
    assert not found.holds
    assert not found[0].has_estimate
    (alone,) = audit("error_rate <= 0.1", y, table, confidence=1 - 0.05 / 2)
    assert found[1].high == pytest.approx(alone.high)  # the empty goal keeps its share of the risk
    model = DummyClassifier(strategy="constant", constant=0).fit(np.zeros((200, 1)), y)
    told = certify(model, [goal, "error_rate <= 0.4"], np.zeros((200, 1)), y, sensitive_features=columns)
    fails = "fails" if goal.startswith("every_group") else "undecided"  # the other group has recall 0
    assert [row.verdict for row in told] == [fails, "holds"]


def test_a_report_is_a_table():
    decided, table = sample_of(population(), np.arange(500))
    lines = str(audit(["recall >= 0.6", "error_rate <= 0.001"], decided, table)).splitlines()
    assert lines[0].split() == ["goal", "estimate", "low", "high", "bound", "margin", "verdict", "rows"]
    assert [line.split("  ")[0] for line in lines[1:3]] == ["recall >= 0.6", "error_rate <= 0.001"]
    assert ["holds" in lines[1], "fails" in lines[2]] == [True, True]
    assert lines[3:] == ["All verdicts are right together with confidence 0.95."]
    few = str(audit("recall >= 0.99", [1] * 30, Table(None, [1] * 30))).splitlines()
    assert few[2].startswith("recall >= 0.99: too few rows")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: certify([1, 0], [], None, [1, 0]), "at least one goal"),
        (lambda: certify(LogisticRegression(), "recall >= 0.5", None, [1, 0]), "'train' has no X"),
        (lambda: certify([1, 0], "coverage(mail) <= 0.5", datasets={"mail": Table([[1], [2]])}), "a dict by dataset"),
        (lambda: certify({"a": [1]}, "recall >= 0.5", None, [1, 0]), "must cover dataset 'train'; got 'a'"),
        (
            lambda: certify([1], "recall >= 0.5", None, [1], datasets={"train": Table([[1]])}),
            "'train' is X and y themselves",
        ),
        (lambda: certify([1, 0], "recall >= 0.5"), "needs held-out rows: pass X and y, or datasets"),
        (lambda: split_three_ways(100, parts=(0.5, 0.5), seed=0), "three fractions, to train, choose and certify on"),
    ],
)
def test_bad_input_gets_one_clear_sentence(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_the_positive_class_is_the_models_own():
    y = np.array(["paid", "default", "paid", "paid"] * 30)
    said = np.where(np.arange(120) % 8 == 1, "paid", y)  # half of the defaults are missed
    X = np.arange(120.0)[:, None]
    model = MixtureClassifier([lambda rows: said[rows[:, 0].astype(int)]], alpha=1.0, pos_label="default").fit(X, y)
    search = GridSearchCV(model, {"n_jobs": [None]}, scoring=lambda *_: 0.0, cv=2).fit(X, y)
    for audited in (model, make_pipeline(FunctionTransformer(), model), search):
        assert certify(audited, ["recall >= 0.8"], X, y)[0].estimate == pytest.approx(0.5)
    assert certify(model, ["recall >= 0.8"], X, y, pos_label="paid")[0].estimate == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("goal", "predictions"),
    [
        ("min_ratio(recall, by=group) >= 0.8", [0, 0, 0, 0]),  # all rates are 0
        ("recall(group=a) / recall(group=b) >= 0.8", [0, 0, 0, 0]),
        ("min_ratio(precision, by=group) >= 0.8", [1, 1, 0, 0]),  # of one group nobody is accepted
        ("max_difference(precision, by=group) <= 0.1", [1, 1, 0, 0]),
    ],
)
def test_an_audit_says_that_a_ratio_divides_nothing_by_nothing(goal, predictions):
    columns = {"sensitive_features": {"group": list("aabb")}, "classes": [0, 1]}
    (audited,) = audit([goal], predictions, [1, 0, 1, 0], **columns)
    assert np.isnan(audited.estimate)
    assert audited.verdict == "undecided"
    assert "divides 0 by 0" in audited.note
    (audited,) = audit([goal], [1, 0, 1, 0], [1, 0, 1, 0], **columns)
    assert audited.low <= audited.estimate <= audited.high
    assert "divides 0 by 0" not in audited.note
