"""The study of goals that hold for new people, on a small population made up here, and its page."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from counterpoise import GoalClassifier
from counterpoise.goals import Table, as_goals
from papers.holding import experiment, page, persons, trained
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
    head, verdicts, ends, *tables = page.sections(ResultsTable(tuple(rows)), None)
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


def test_persons_have_up_to_twenty_rows_that_are_the_same_or_partly_so():
    for share in persons.ALIKE.values():
        rows, ids = persons.draw_persons(20_000, 3000, share, np.random.default_rng(0))
        assert rows.shape == ids.shape == (3000,)
        assert np.bincount(ids).max() == 20
        commonest = [np.unique(rows[ids == one], return_counts=True)[1].max() for one in range(ids.max() + 1)]
        assert sum(commonest) / 3000 == pytest.approx(share, abs=0.05)


def test_margins_with_ids_hold_more_often_than_without(known, monkeypatch):
    goals = (as_goals(["recall >= 0.7"]), ())
    monkeypatch.setattr(persons, "population", lambda _: known)
    monkeypatch.setattr(persons, "goal_sets", lambda _: {"one rate": goals})
    monkeypatch.setattr(persons, "_SETS", ("one rate",))
    rows = persons.measure(persons.Block("made", "2000, all alike", 0))
    (cell,) = page.cells_of(ResultsTable(tuple(rows)), persons.WITH_IDS, "")
    (other,) = page.cells_of(ResultsTable(tuple(rows)), persons.WITHOUT_IDS, "")
    assert cell.n_draws == persons.DRAWS_IN_BLOCK
    assert cell.plain <= other.holds < cell.holds
    assert other.cost < cell.cost
    text = page.sections(ResultsTable(tuple(rows)), None)[2]
    assert text.startswith("## Persons with several rows")
    assert f"{other.holds:.3f}" in text
