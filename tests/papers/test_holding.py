"""The study of goals that hold for new people, on a small population made up here, and its page."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from counterpoise import GoalClassifier
from counterpoise.goals import Table, as_goals
from papers.holding import experiment, planned, trained
from papers.holding.page import sections
from papers.results import ResultRow, ResultsTable


@pytest.fixture(scope="module")
def known():
    rng = np.random.default_rng(0)
    group = np.where(rng.random(20_000) < 0.4, "A", "B")
    x = rng.normal(size=20_000) - 0.3 * (group == "A")
    y = (rng.random(20_000) < 1 / (1 + np.exp(1 - 1.5 * x))).astype(int)
    return experiment.Population(1 / (1 + np.exp(1 - 1.3 * x)), y, group, (x > 0.4).astype(int))


def test_a_draw_says_of_each_way_of_choosing_whether_it_held_and_what_it_cost(known):
    goals = as_goals(["recall >= 0.7", "max_difference(positive_rate, by=group) <= 0.08"])
    rows = np.random.default_rng(1).choice(20_000, 1500, replace=False)
    results = {(way, quantity): value for way, quantity, value in experiment.run_draw(known, rows, goals, ("group",))}
    ways = [str(level) for level in experiment.CONFIDENCES]
    assert results[experiment.PLAIN, experiment.FEASIBLE] == 1
    for way in (experiment.PLAIN, *ways):
        held, reached = results[way, experiment.HOLDS], results[way, experiment.REACHED]
        assert results[way, experiment.VIOLATED] == (reached and not held)
    costs = [results[way, experiment.COST] for way in (experiment.PLAIN, *ways)]
    assert costs[0] <= min(costs[1:]) + 0.02
    assert 0 < costs[0] < 0.5


def test_goals_that_are_out_of_reach_leave_no_rows(known):
    goals = as_goals(["recall >= 0.99", "positive_rate <= 0.05"])
    assert not list(experiment.run_draw(known, np.arange(1000), goals, ()))


def test_thresholds_decide_about_the_population_as_its_rows_do(known):
    goals = as_goals(["recall >= 0.5", "max_difference(positive_rate, by=group) <= 0.2", "churn <= 0.5"])
    levels = [0.45, 0.35]
    holds, error = known.outcome(levels, goals)
    decisions = (known.scores > np.where(known.group == "A", *levels)).astype(int)
    table = Table(None, known.y, {"group": known.group}, known.deployed)
    assert holds == all(goal.evaluate(decisions, table).holds for goal in goals)
    assert error == pytest.approx((decisions != known.y).mean(), abs=1e-12)


def test_the_page_has_a_verdict_and_a_line_for_each_cell_and_confidence():
    def row(way, quantity, value, name="holding", learner="3000"):
        return ResultRow(name, "made", learner, way, 0, None, quantity, "one rate", value)

    rows = []
    for more in ({}, {"name": trained.EXPERIMENT, "learner": "LightGBM, 3000"}):
        rows += [
            row(experiment.PLAIN, experiment.FEASIBLE, 5.0, **more),
            row(experiment.PLAIN, experiment.HOLDS, 2.0, **more),
        ]
        rows += [row(experiment.PLAIN, experiment.COST, 1.0, **more)]
        for level in experiment.CONFIDENCES:
            for way in (str(level), f"{experiment.BONFERRONI} {level}"):
                rows += [row(way, experiment.HOLDS, 4.0, **more), row(way, experiment.REACHED, 5.0, **more)]
                rows += [row(way, experiment.VIOLATED, 1.0, **more), row(way, experiment.COST, 1.1, **more)]
    head, verdicts, ends, *tables = sections(ResultsTable(tuple(rows)), None)
    assert head.startswith("# Goals that hold")
    assert "| 0.8 | 1 of 1 | 0.400 | 0.800: met | 0.0: met | 0.0: met | 1.00: **missed** |" in verdicts
    assert "0.800 hold, and 0.400 of the plain rules" in ends
    assert len(tables) == len(experiment.CONFIDENCES)
    for table in tables:
        line = table.splitlines()[-1]
        assert [cell.strip() for cell in line.strip("|").split("|")][:9] == [
            "made", "3,000", "one rate", "5", "0.40", "0.80", "1.00", "0.20", "2.00",
        ]  # fmt: skip


def test_scores_decide_as_predict_does():
    rng = np.random.default_rng(0)
    X, group = rng.normal(size=(600, 3)), np.where(rng.random(600) < 0.5, "A", "B")
    y = (X[:, 0] + rng.normal(size=600) > 0).astype(int)
    model = GoalClassifier(LogisticRegression(), goals=["recall >= 0.8"], by="group", confidence=None, random_state=0)
    model.fit(X, y, sensitive_features={"group": group})
    scores = model.estimators_[0].predict_proba(X)[:, 1]
    expected = model.predict(X, sensitive_features={"group": group})
    np.testing.assert_array_equal(trained.decide(model, scores, group), expected)


def test_plans_are_compared_with_fits_where_goals_bind():
    def row(way, quantity, value):
        return ResultRow(planned.EXPERIMENT, "made", "3000", way, 0, None, quantity, "two rates", value)

    plans = [row(planned.PREDICTED, experiment.REACHED, 1.0), row(planned.PREDICTED, "margin 0", 0.033)]
    plans += [row(planned.PREDICTED, "margin 1", 0.9)]
    fits = [row(planned.ACTUAL, experiment.REACHED, 4.0), row(planned.ACTUAL, "margin 0", 4 * 0.03)]
    fits += [row(planned.ACTUAL, "standard error 0", 4 * 0.015), row(planned.ACTUAL, "margin 1", 4 * 0.5)]
    fits += [row(planned.ACTUAL, "standard error 1", 4 * 0.01)]  # which does not bind
    section = planned.section(ResultsTable(tuple(plans + fits)))
    assert section.splitlines()[-1] == "| made | 3,000 | 1 | 1.10: met | 1.10 to 1.10 |"


@pytest.mark.slow
def test_a_block_of_plans_has_margins_of_both_kinds(monkeypatch):
    rng = np.random.default_rng(0)
    y = (rng.random(6000) < 0.3).astype(int)
    scores = 1 / (1 + np.exp(-rng.normal(size=6000) - 1.5 * y))
    known = experiment.Population(scores, y, np.where(rng.random(6000) < 0.5, "A", "B"), (scores > 0.7).astype(int))
    goals = {"one rate": (as_goals(["recall >= 0.7"]), ())}
    monkeypatch.setattr(planned, "population", lambda _name: known)
    monkeypatch.setattr(planned, "goal_sets", lambda _name: goals)
    rows = planned.measure(planned.Block("made", "3000", 0))
    assert {(one.method, one.quantity) for one in rows} >= {("plan", "margin 0"), ("fit", "margin 0")}
