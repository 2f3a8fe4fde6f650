"""Plans: how many rows goals need, against closed forms, fits and audits."""

import json

import numpy as np
import pytest
from scipy.special import ndtri

import counterpoise as cp
from counterpoise.goals import Goal, InfeasibleGoals

BASE, RECALL, ALARMS = 0.3, 0.8, 0.15
MODEL = cp.AssumedScores(base_rate=BASE, recall=RECALL, false_positive_rate=ALARMS)
GROUPS = {"sex": {"F": 0.4, "M": 0.6}}


def drawn(n_rows, seed=0):
    """Return labels and scores of the population that ``MODEL`` assumes."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n_rows) < BASE).astype(int)
    return y, rng.normal(size=n_rows) + np.where(y == 1, ndtri(RECALL), ndtri(ALARMS))


@pytest.fixture(scope="module")
def plan():
    """Return a plan of a goal on recall that costs much: the cheapest safe rule lies right at its margin."""
    return cp.plan("recall >= 0.9", scores=MODEL, rows=[1000, 4000, 16_000, 64_000])


def test_a_rate_alone_has_the_margin_of_the_normal_approximation(plan):
    for point in plan.points:
        (one,) = point.margins
        closed = np.sqrt(0.9 * 0.1 / (BASE * point.rows))
        assert one.standard_error == pytest.approx(closed, rel=0.12)  # the value aimed at is nearer to one
        assert 0.95 * ndtri(0.9) < one.margin / one.standard_error < 1.35 * ndtri(0.9)  # and some for optimism
        assert one.aimed_at == pytest.approx(0.9 + one.margin)


def test_a_margin_between_two_numbers_of_rows_is_interpolated(plan):
    (need,) = plan.goals
    before, after = (point for point in plan.points if point.rows in {1000, 4000})
    assert before.margins[0].margin > plan.margin > after.margins[0].margin
    assert before.rows < need.rows < after.rows
    assert plan.rows == need.rows


def test_a_pilot_and_assumptions_agree_on_the_same_population(plan):
    y, scores = drawn(4000)
    pilot = cp.plan("recall >= 0.9", y, scores, rows=[1000, 16_000])
    for one, other in zip(pilot.points, plan.points[::2], strict=True):
        assert one.margins[0].margin == pytest.approx(other.margins[0].margin, rel=0.2)


@pytest.mark.slow
def test_the_margin_is_that_of_fits_on_as_many_rows(plan):
    margins = []
    for seed in range(10):
        y, scores = drawn(4000, seed)
        fitted = cp.GoalClassifier([scores], cv="prefit", goals=["recall >= 0.9"]).fit(scores[:, None], y)
        margins.append(fitted.margins_[0].value - 0.9)
    assert plan.points[1].margins[0].margin == pytest.approx(np.mean(margins), rel=0.15)


@pytest.mark.slow
def test_audits_say_holds_as_often_as_planned(plan):
    point = plan.points[0]
    audit_rows, holds, held = point.margins[0].audit_rows, [], []
    for seed in range(60):
        y, scores = drawn(point.rows, seed)
        fitted = cp.GoalClassifier([scores], cv="prefit", goals=["recall >= 0.9"]).fit(scores[:, None], y)
        level = fitted.rules_[0].thresholds["all"]
        holds.append(level <= ndtri(RECALL) - ndtri(0.9))
        y, scores = drawn(audit_rows, 1000 + seed)
        held.append(cp.audit("recall >= 0.9", (scores > level).astype(int), y).holds)
    assert np.mean(np.array(held)[holds]) == pytest.approx(plan.power, abs=0.17)  # three standard errors of 54 audits


def test_folds_make_margins_wider(plan):
    folds = cp.plan("recall >= 0.9", scores=MODEL, rows=[4000], in_folds=True).points[0]
    alone = plan.points[1]
    assert folds.margins[0].standard_error / alone.margins[0].standard_error == pytest.approx(
        np.hypot(1, 0.5), rel=0.05
    )
    assert folds.margins[0].margin > alone.margins[0].margin


def test_weights_make_margins_wider():
    y, scores = drawn(2000)
    weight = np.random.default_rng(1).choice([0.2, 1.8], y.size)
    even, uneven = (
        cp.plan("recall >= 0.9", y, scores, sample_weight=one, rows=[2000]).points[0].margins[0].standard_error
        for one in (None, weight)
    )
    assert uneven / even == pytest.approx(np.sqrt((weight**2).mean()) / weight.mean(), rel=0.1)


def test_what_the_population_nearly_misses_takes_more_rows_than_there_are():
    y, scores = drawn(3000)
    best = np.max([((scores > one) == y).mean() for one in np.quantile(scores, np.linspace(0.3, 0.95, 400))])
    made = cp.plan(f"error_rate <= {1 - best + 1e-4:.5f}", y, scores, rows=[100, 300])
    assert made.rows is None
    assert made.goals[0].rows is None
    assert "Even 300 rows do not reach the confidence" in str(made)


def test_goals_that_no_rule_meets_on_the_pilot_are_infeasible():
    with pytest.raises(InfeasibleGoals):
        cp.plan(["recall >= 0.99", "false_positive_rate <= 0.01"], scores=MODEL)


def test_a_plan_is_data_and_a_figure(plan):
    words = json.loads(json.dumps(plan.as_dict()))
    assert words["goals"][0]["rows"] == plan.rows
    assert [point["rows"] for point in words["points"]] == [1000, 4000, 16_000, 64_000]
    assert isinstance(plan.goals[0].goal, Goal)
    ax = plan.plot()
    assert ax.get_xscale() == "log"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["recall >= 0.9"]


REFUSED = {
    "no pilot": ({}, "needs the labels y and the scores of a pilot"),
    "both": ({"scores": MODEL, "y": [0, 1]}, "pass no y beside them"),
    "no goal": ({"goals": [], "scores": MODEL}, "needs at least one goal"),
    "a power that is no probability": ({"scores": MODEL, "power": 1.5}, "power must lie in"),
    "no margin": ({"scores": MODEL, "margin": 0.0}, "margin must be finite and above 0"),
    "half a row": ({"scores": MODEL, "rows": [10.5]}, "rows must be whole numbers"),
    "an unknown group": ({"goals": "recall(sex=F) >= 0.7", "scores": MODEL}, "sex"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_plans_that_cannot_be_are_refused(case):
    options, words = REFUSED[case]
    with pytest.raises(ValueError, match=words):
        cp.plan(**{"goals": "recall >= 0.7", **options})


ASSUMPTIONS = {
    "worse than chance": ({"recall": 0.1, "false_positive_rate": 0.2}, "better than chance"),
    "no share": ({"base_rate": 1.2}, "base_rate must lie in"),
    "shares that do not add up": ({"groups": {"sex": {"F": 0.3, "M": 0.3}}}, "must add up to 1"),
    "rates of no group": (
        {"recall": {"F": 0.7, "X": 0.8}, "groups": GROUPS},
        "one for each value of one of the groups",
    ),
}


@pytest.mark.parametrize("case", ASSUMPTIONS)
def test_assumptions_that_cannot_be_are_refused(case):
    options, words = ASSUMPTIONS[case]
    with pytest.raises(ValueError, match=words):
        cp.AssumedScores(**{"base_rate": 0.2, "recall": 0.7, "false_positive_rate": 0.1, **options})


def test_assumed_scores_have_the_assumed_rates():
    assumed = cp.AssumedScores({"F": 0.1, "M": 0.3}, 0.7, {"F": 0.05, "M": 0.1}, GROUPS)
    y, scores, columns = assumed.pilot()
    sex = np.array(columns["sex"])
    assert (sex == "F").mean() == pytest.approx(0.4, abs=1e-3)
    for name, base, alarms in (("F", 0.1, 0.05), ("M", 0.3, 0.1)):
        own = sex == name
        assert y[own].mean() == pytest.approx(base, abs=1e-3)
        assert (scores[own & (y == 1)] > 0).mean() == pytest.approx(0.7, abs=1e-3)
        assert (scores[own & (y == 0)] > 0).mean() == pytest.approx(alarms, abs=1e-3)


@pytest.mark.parametrize("goal", ["recall >= 1", "recall >= 0.7 with confidence 0.95"])
def test_a_goal_without_a_margin_has_a_plan_that_says_so(goal):
    scores = cp.AssumedScores(base_rate=0.2, recall=0.8, false_positive_rate=0.1)
    made = cp.plan(goal, scores=scores, rows=[1000])
    assert made.goals[0].rows is None
    assert made.goals[0].reason.startswith("no margin, as")
    assert made.rows is None
    if "with" in goal:
        assert cp.plan(goal, scores=scores, rows=[1000], confidence=cp.Proof(0.9)).rows is None
