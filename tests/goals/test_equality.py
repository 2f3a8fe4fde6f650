"""Equalities: their language, what they come to on given rows, and their audits."""

import pickle

import numpy as np
import pytest

from counterpoise import audit
from counterpoise.goals import (
    GoalSyntaxError,
    InfeasibleGoals,
    Table,
    as_goals,
    bind,
    equal,
    every_group,
    max_difference,
    parse_goal,
    precision,
    recall,
    selection_rate,
    validate_goals,
)
from tests.tiers import some_fast

WRITTEN = {
    "selection_rate == 0.2": equal(selection_rate(), 0.2),
    "0.2 == selection_rate": equal(selection_rate(), 0.2, tolerance=0.005),
    "selection_rate == 0.2 +- 0.01": equal(selection_rate(), 0.2, tolerance=0.01),
    "selection_rate==0.2+-0.01": equal(selection_rate(), 0.2, tolerance=0.01),
    "recall == 0.8 +- 0": equal(recall(), 0.8, tolerance=0),
    "precision == 0.8 +- 0.01": equal(precision(), 0.8, tolerance=0.01),
    "recall(sex=F) == recall(sex=M) +- 0.02": equal(recall(sex="F"), recall(sex="M"), tolerance=0.02),
    "2 * recall - 0.1 == 0.75 + -0.25": equal(2 * recall() - 0.1, 0.5),
    "every_group(recall, by=sex) == 0.8 +- 0.05": equal(every_group(recall, by="sex"), 0.8, tolerance=0.05),
    "recall == 0.8 +- 0.05 with confidence 0.9": equal(recall(), 0.8, tolerance=0.05).with_confidence(0.9),
}


@pytest.mark.parametrize("text", WRITTEN)
def test_text_and_python_are_one_goal_which_prints_and_pickles(text):
    goal = parse_goal(text)
    assert goal == WRITTEN[text]
    assert hash(goal) == hash(WRITTEN[text])
    assert parse_goal(str(goal)) == pickle.loads(pickle.dumps(goal)) == goal  # noqa: S301 - our own
    assert goal.is_equality
    assert not parse_goal("recall >= 0.8").is_equality


WRONG = {
    "recall = 0.8": "a goal is written with <=, >= or ==, got '='",
    "recall == 0.8 +-": r"expected a tolerance behind \+-: a number such as 0.005, found the end of the text",
    "recall == 0.8 +- -0.1": r"expected a tolerance behind \+-: a number such as 0.005, found '-'",
    "recall >= 0.8 +- 0.1": r"\+- stands before the tolerance of an equality, as in selection_rate == 0.2 \+- 0.005",
    "recall == 0.8 \u00b1 0.1": r"the tolerance of an equality is written with \+-",
    "recall == 0.8 == 0.9": "a goal has one comparison",
    "0.5 == 0.9": "A goal needs a rate on at least one side",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_text_is_answered_at_its_place(text):
    with pytest.raises(GoalSyntaxError, match=WRONG[text]):
        parse_goal(text)


@pytest.mark.parametrize("rate", [recall(), precision(), max_difference("recall", by="sex"), 2 * recall() - 0.5])
def test_a_rate_and_a_number_are_not_compared_in_python(rate):
    for number in (0.8, 1, np.float64(0.8)):
        with pytest.raises(TypeError, match=r"== compares two rates.* Write equal\(.*, tolerance=0.005\), or the text"):
            _ = rate == number
        with pytest.raises(TypeError, match="Write equal"):
            _ = number != rate


WRONG_USES = [
    (lambda: as_goals([recall(sex="F") == recall(sex="M")]), TypeError, "got False. For an equality write equal"),
    (lambda: equal(0.8, recall()), TypeError, "equal takes a rate first, as in equal"),
    (lambda: equal(recall(), "0.8"), TypeError, "recall can be equal to a number or another rate; got '0.8'"),
    (lambda: equal(recall(), precision()), TypeError, "recall can be equal to a number or another rate; got"),
    (lambda: equal(precision(), recall()), TypeError, "precision can be equal to a number only"),
    (lambda: equal(recall(), 0.8, tolerance=-0.1), ValueError, "tolerance must be finite and at least 0"),
    (lambda: equal(recall(), 0.8, tolerance=None), TypeError, "tolerance must be"),
    (lambda: equal(recall(), recall()), ValueError, "An equality needs rates that do not cancel"),
    (
        lambda: equal(max_difference(recall, by="sex"), 0.1),
        ValueError,
        "can be bounded with <= only, and cannot be equal",
    ),
    (
        lambda: validate_goals("recall == 0.8 +- 2"),
        ValueError,
        "always holds: the distance between its sides lies from 0 to",
    ),
    (
        lambda: validate_goals("recall == 80", trains=True),
        InfeasibleGoals,
        "This goal cannot hold.* write 0.8 for 80 %",
    ),
]


@pytest.mark.parametrize(("use", "kind", "words"), WRONG_USES)
def test_wrong_uses_are_answered_in_a_sentence(use, kind, words):
    with pytest.raises(kind, match=words):
        use()


def random_rows(seed):
    """Return labels, predictions, groups and weights."""
    rng = np.random.default_rng(seed)
    n_rows = int(rng.integers(20, 60))
    y, sex = rng.integers(0, 2, n_rows), rng.choice(["F", "M"], n_rows)
    y[:4], sex[:4] = [0, 1, 0, 1], ["F", "F", "M", "M"]
    weights = rng.integers(1, 4, n_rows).astype(float)
    return y, np.where(rng.random(n_rows) < 0.7, y, 1 - y), sex, weights


@pytest.mark.parametrize("seed", range(12))
def test_the_slack_is_the_tolerance_less_the_distance(seed):
    y, said, sex, weights = random_rows(seed)
    table = Table(None, y, {"sex": sex}, sample_weight=weights)
    is_positive = y == 1
    values = {
        "selection_rate": np.average(said, weights=weights),
        "recall": np.average(said[is_positive], weights=weights[is_positive]),
    }
    values["precision"] = np.average(y[said == 1], weights=weights[said == 1])
    target, tolerance = np.random.default_rng(seed + 100).uniform(0.2, 0.8), 0.15
    for name, value in values.items():
        check = parse_goal(f"{name} == {target!r} +- {tolerance}").evaluate(said, table, classes=[0, 1])
        slack = tolerance - abs(value - target)
        assert check.bound - check.value == pytest.approx(slack)
        assert check.holds == (slack >= 0)
        assert check.violation == pytest.approx(max(-slack, 0.0))
        assert check.worst.endswith(f" = {value:.4g}")
    groups = {
        one: np.average(said[is_positive & (sex == one)], weights=weights[is_positive & (sex == one)]) for one in "FM"
    }
    check = equal(every_group(recall, by="sex"), target, tolerance=tolerance).evaluate(said, table, classes=[0, 1])
    assert check.value == pytest.approx(max(abs(value - target) for value in groups.values()))
    check = equal(recall(sex="F"), recall(sex="M"), tolerance=tolerance).evaluate(said, table, classes=[0, 1])
    assert check.value == pytest.approx(abs(groups["F"] - groups["M"]))


def test_an_equality_binds_as_two_limits_of_one_goal():
    bound = bind(["recall == 0.6 +- 0.1", "error_rate <= 0.5"], Table(None, y=[0, 0, 1, 1]))
    np.testing.assert_allclose(bound.weights["train"].toarray()[:2], [[0, 0, 0.5, 0.5], [0, 0, -0.5, -0.5]])
    np.testing.assert_allclose(bound.bounds[:2], [0.7, -0.5])
    assert bound.owners.tolist() == [0, 0, 1]


def test_an_audit_shows_that_an_equality_holds_inside_of_the_band_and_fails_outside():
    y = np.arange(4000) % 2
    said = (np.arange(4000) % 5 == 0).astype(int)  # a fifth
    table, goals = (
        Table(None, y),
        ["selection_rate == 0.2 +- 0.03", "selection_rate == 0.3 +- 0.03", "selection_rate == 0.22 +- 0.02"],
    )
    rows = audit(goals, said, table)
    assert [row.verdict for row in rows] == ["holds", "fails", "undecided"]
    assert "the estimate is of positive_rate = 0.2" in str(rows)
    sides = audit(["selection_rate <= 0.23", "selection_rate >= 0.17", "recall <= 1"], said, table)
    assert rows[0].margin == pytest.approx(min(row.margin for row in sides[:2]), abs=1e-9)


@pytest.mark.parametrize("truth", some_fast([0.15, 0.2, 0.25]))  # the ends of the band, and its middle
def test_audits_of_equalities_keep_their_risk(truth):
    rng, n_audits, risk = np.random.default_rng(0), 200, 0.1
    wrong = {"holds": 0, "fails": 0}
    for _ in range(n_audits):
        said = (rng.random(400) < truth).astype(int)
        (row,) = audit("selection_rate == 0.2 +- 0.05", said, Table(None, np.arange(400) % 2), confidence=1 - risk)
        (other,) = audit("selection_rate == 0.2 +- 0.0499", said, Table(None, np.arange(400) % 2), confidence=1 - risk)
        wrong["fails"] += row.verdict == "fails"  # it holds
        wrong["holds"] += truth != 0.2 and other.verdict == "holds"  # it fails, by a little
    allowed = risk + 2 * np.sqrt(risk * (1 - risk) / n_audits)
    assert max(wrong.values()) / n_audits <= allowed
