"""Audits: verdicts that are right as often as promised, on any classifier, with the numbers that others find."""

import pickle
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.datasets import load_breast_cancer
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from counterpoise import ConstrainedClassifier, GoalClassifier, MixtureClassifier, audit, certify
from counterpoise.auditing.audit import tighten
from counterpoise.datasets import split_three_ways
from counterpoise.goals import (
    Dataset,
    GoalSyntaxError,
    Table,
    UnknownName,
    UnknownValue,
    bind,
    parse_goal,
    positive_rate,
    precision,
    recall,
)
from counterpoise.goals.binding import prepare
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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("recall >= 0.9 with", "expected 'confidence', found the end"),
        ("recall >= 0.9 with confidence", "expected a number such as 0.95, found the end"),
        ("recall >= 0.9 with confidence 95", r"confidence must lie in \(0, 1\), both ends excluded; got 95.0"),
        ("recall >= 0.9 with confidence 0.9 0.8", "expected the end"),
    ],
)
def test_a_confidence_that_cannot_be_read_names_the_place(text, message):
    with pytest.raises(GoalSyntaxError, match=message):
        parse_goal(text)


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


def test_precision_is_a_share_of_the_positive_predictions():
    decided, table = sample_of(population(), np.arange(400))
    (row,) = audit("precision >= 0.5", decided, table, confidence=0.95)
    test = binomtest(int(table.y[decided == 1].sum()), int(decided.sum()))
    interval = test.proportion_ci(0.9, method="exact")
    np.testing.assert_allclose((row.low, row.high), (interval.low, interval.high), atol=1e-9)
    assert row.counts == (("train", int(decided.sum())),)


def test_equal_weights_change_nothing():
    decided, table = sample_of(population(), np.arange(300))
    weighed = Table(None, table.y, table.column("group"), table.baseline, sample_weight=np.full(300, 0.3))
    for text in GOALS.values():
        assert audit(text, decided, table) == audit(text, decided, weighed)


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


def test_any_kind_of_classifier_is_audited(cancer):
    model, X, y, size = cancer
    goals = ["recall >= 0.9", "positive_rate(group=large) <= 0.5", "coverage(mail) >= 0.2"]
    ask = {"sensitive_features": size, "datasets": {"mail": Table(X[::2])}, "pos_label": "malignant"}
    found = certify(model, goals, X, y, **ask)
    assert certify(model.predict, goals, X, y, **ask) == found
    assert certify({"train": model.predict(X), "mail": model.predict(X[::2])}, goals, X, y, **ask) == found
    assert certify(model.predict(X), goals[:2], None, y, sensitive_features=size, pos_label="malignant")[0].goal == (
        found[0].goal
    )
    assert found.holds == all(row.verdict == "holds" for row in found)


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


@given(st.integers(20, 400), st.floats(0, 1), st.sampled_from([0.6, 0.9, 0.95, 0.99]), st.floats(0.05, 0.95))
def test_a_tightened_rate_is_met_exactly_where_the_audit_passes(n_rows, share, confidence, bound):
    hits = round(share * n_rows)
    decided, table = np.arange(n_rows) < hits, Table(None, np.ones(n_rows, int))
    for goal in (recall(TRAIN) >= bound, recall(TRAIN) <= bound):
        try:
            asked = tighten(goal, table, confidence=confidence)
        except ValueError:
            assert audit(goal, decided, table, confidence=confidence, classes=[0, 1])[0].verdict != "holds"
            continue
        (row,) = audit(goal, decided, table, confidence=confidence, classes=[0, 1])
        assert asked.evaluate(decided, table, classes=[0, 1]).holds == (row.verdict == "holds")


@pytest.mark.parametrize("text", [GOALS["a ratio of two kinds of rows"], GOALS["two disjoint groups"]])
def test_a_tightened_goal_says_how_far_inside_the_audit_wants_these_predictions(text):
    decided, table = sample_of(population(), np.arange(600))
    (row,) = audit(text, decided, table)
    asked = tighten(text, table, predictions=decided)
    assert asked.confidence is None
    assert asked.bound - row.bound == pytest.approx(row.estimate - row.low, abs=0.005)


def test_fitting_inside_a_goal_with_confidence_asks_for_more():
    _, table = sample_of(population(), np.arange(600))
    plain, sure = (bind(goal, table) for goal in ("recall >= 0.7", "recall >= 0.7 with confidence 0.95"))
    assert sure.bounds[0] < plain.bounds[0]
    assert sure.bounds[0] == -tighten("recall >= 0.7", table).bound
    assert sure.goals[0].bound == 0.7


def test_too_few_rows_are_told_from_failure():
    table = Table(None, np.ones(30, int))
    (row,) = audit("recall >= 0.99", np.ones(30, int), table, confidence=0.95)
    needed = rows_needed(0.01, confidence=0.95)
    assert row.verdict == "undecided"
    assert row.note.endswith(f"it takes {needed} rows of train.positives (there are 30)")
    with pytest.raises(ValueError, match=f"cannot be certified here: too few rows.* {needed} rows"):
        tighten("recall >= 0.99", table)
    (row,) = audit("correct >= 1", np.ones(30, int), table)
    assert row.note.startswith("no number of rows is enough")


def test_too_few_rows_of_two_groups_are_named():
    table = Table(None, np.ones(24, int), ["a"] * 16 + ["b"] * 8)
    goal = positive_rate(TRAIN, group="a") + positive_rate(TRAIN, group="b") >= 1.9
    (row,) = audit(goal, [1] * 24, table)
    assert "rows of train, group=a (there are 16) and " in row.note
    needed = [int(word) for word in row.note.split() if word.isdigit()]
    assert needed[0] == pytest.approx(2 * needed[1], abs=1)


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


def test_names_that_do_not_exist_still_end_an_audit():
    for goal in ("recall(sex=F) >= 0.5", "recall(mail) >= 0.5"):
        with pytest.raises(UnknownName, match="Unknown"):
            audit(goal, [1, 0], Table(None, [1, 0], ["a", "b"]))


def test_without_positive_predictions_precision_is_undecided():
    (row,) = audit("precision >= 0.5", [0, 0, 0], Table(None, [1, 0, 0]))
    assert row.verdict == "undecided"
    assert np.isnan(row.estimate)
    assert "rows of train that count in the ratio (there are 0)" in row.note


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
        (
            lambda: tighten("recall >= 0.5", Table(None, [1, 0]), n_goals=0),
            "n_goals must be at least 1; got 0",
        ),
        (
            lambda: tighten(["recall >= 0.5", "error_rate <= 0.5"], Table(None, [1, 0])),
            "one goal; got 2. Call it for each, with n_goals",
        ),
        (lambda: split_three_ways(100, parts=(0.5, 0.5), seed=0), "three fractions, to train, choose and certify on"),
    ],
)
def test_bad_input_gets_one_clear_sentence(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_three_parts_hold_every_row_once():
    parts = split_three_ways(1003, parts=(0.6, 0.2, 0.2), seed=3)
    assert sorted(np.concatenate(parts).tolist()) == list(range(1003))
    assert parts.certify.tolist() == split_three_ways(1003, parts=(0.6, 0.2, 0.2), seed=3).certify.tolist()


def test_the_positive_class_is_the_models_own():
    y = np.array(["paid", "default", "paid", "paid"] * 30)
    said = np.where(np.arange(120) % 8 == 1, "paid", y)  # half of the defaults are missed
    X = np.arange(120.0)[:, None]
    model = MixtureClassifier([lambda rows: said[rows[:, 0].astype(int)]], alpha=1.0, pos_label="default").fit(X, y)
    search = GridSearchCV(model, {"n_jobs": [None]}, scoring=lambda *_: 0.0, cv=2).fit(X, y)
    for audited in (model, make_pipeline(FunctionTransformer(), model), search):
        assert certify(audited, ["recall >= 0.8"], X, y)[0].estimate == pytest.approx(0.5)
    assert certify(model, ["recall >= 0.8"], X, y, pos_label="paid")[0].estimate == pytest.approx(1.0)


def test_a_group_that_fails_is_told_though_another_group_is_empty():
    y = np.array([1, 0] * 300)
    group = np.where(y == 0, "c", np.where(np.arange(600) % 4 < 2, "a", "b"))  # c has no positives
    said = np.where(group == "b", 0, y)
    (row,) = audit("every_group(recall, by=group) >= 0.5", said, Table(None, y, group))
    assert (row.verdict, row.estimate, row.worst) == ("fails", 0.0, "recall(group=b)")
    assert row.high < 0.5
    assert "group=c" in row.note
    inside = audit("every_group(recall, by=group) >= 0.5", y, Table(None, y, group))
    assert inside[0].verdict == "undecided"  # c may be anything
    assert not {"nan", "inf", "-inf"} & set(str(inside).split())


def test_checks_of_goals_tell_which_of_them_rows_cannot_answer():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = (X[:, 0] + 0.3 * rng.normal(size=400) > 0).astype(int)
    goals = ["every_group(recall, by=group) >= 0.2", "error_rate <= 0.5"]
    group = np.where(X[:, 1] > 0, "a", "b")
    tree = DecisionTreeClassifier(max_depth=2).fit(X, y)
    for model in (MixtureClassifier([tree], goals=goals), ConstrainedClassifier(goals=goals)):
        model.fit(X, y, sensitive_features=group)
        no_positives = np.where((group == "b") & (y == 1), "a", group)
        first, second = model.check_goals(X, y, sensitive_features=no_positives)
        assert "There is no row" in str(first)
        assert "group=b" in str(first)
        assert not first.holds
        assert second.holds
        found = np.flatnonzero((y == 1) & (model.predict(X) == 0))
        missed_ones = no_positives.astype("<U1")
        missed_ones[found] = "c"  # whose recall is 0
        first, second = model.check_goals(X, y, sensitive_features=missed_ones)
        assert found.size
        assert (first.value, first.worst) == (0.0, "recall(group=c)")
        assert "group=b" in first.note
        assert second.holds


@pytest.mark.parametrize("form", ["every_group(recall, by=group)", "min_ratio(recall, by=group)"])
def test_towards_its_bound_each_group_takes_the_whole_risk_and_away_from_it_a_share(form):
    rng = np.random.default_rng(0)
    group, y = rng.choice(list("abcd"), 2000), rng.integers(0, 2, 2000)
    said = np.where(rng.random(2000) < 0.8, y, 1 - y)
    table = Table(None, y, group)
    (found,) = audit(f"{form} >= 0.7", said, table, confidence=0.9)
    members = parse_goal(f"{form} >= 0.7").members(prepare(said, table, kind="labels").views)
    texts = [f"{member} >= 0.7" for member in members]
    ends = [[audit(text, said, table, confidence=1 - risk)[0] for text in texts] for risk in (0.1, 0.1 / len(texts))]
    assert found.low == pytest.approx(min(one.low for one in ends[0]))
    assert found.high == pytest.approx(min(1.0, *(one.high for one in ends[1])))  # a least ratio is at most 1


def test_checks_of_goals_go_on_where_groups_cannot_be_compared():
    rng = np.random.default_rng(0)
    X, group = rng.normal(size=(200, 1)), np.where(np.arange(200) % 2, "a", "b")
    y = (X[:, 0] > 0).astype(int)
    goals = ["max_difference(recall, by=group) <= 0.5", "error_rate <= 0.5"]
    model = MixtureClassifier([DecisionTreeClassifier(max_depth=1).fit(X, y)], goals=goals)
    model.fit(X, y, sensitive_features=group)
    first, second = model.check_goals(X[1::2], y[1::2], sensitive_features=group[1::2])
    assert not first.holds
    assert "there is one" in first.note
    assert second.holds


def test_a_ratio_of_groups_fails_though_another_group_is_empty():
    group = np.repeat(["a", "c", "b"], [100, 100, 20])
    y = np.repeat([1, 0], [200, 20])
    said = np.repeat([1, 0], [100, 120])
    (row,) = audit("min_ratio(recall, by=group) >= 0.5", said, Table(None, y, group))
    assert (row.verdict, row.worst) == ("fails", "recall(group=c) / recall(group=a)")
    assert "group=b" in row.note


@pytest.mark.parametrize("sense", [">= 0.6", "<= 0.6"])
def test_several_groups_are_tightened_as_the_one_that_needs_most(sense):
    """The smallest group has the widest interval: a bound that all pass is the one that it passes."""
    group, y = np.repeat(["large", "middle", "small"], [900, 200, 60]), np.ones(1160, dtype=int)
    table = Table(None, y, group)
    each = [
        tighten(f"recall(group={name}) {sense}", table, classes=[0, 1]).bound for name in ("large", "middle", "small")
    ]
    together = tighten(f"every_group(recall, by=group) {sense}", table, classes=[0, 1]).bound
    assert together == pytest.approx(each[2])
    assert (each[2] > each[0] > 0.6) if sense.startswith(">=") else (each[2] < each[0] < 0.6)


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
