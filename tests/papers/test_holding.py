"""The study of goals that hold for new people, on a small population made up here, and its page."""

import numpy as np
import pytest

from counterpoise.goals import as_goals
from papers.holding import experiment
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


def test_the_page_has_a_line_for_each_cell_and_confidence():
    def row(way, quantity, value):
        return ResultRow(experiment.EXPERIMENT, "made", "1000", way, 0, None, quantity, "one rate", value)

    rows = [row(experiment.PLAIN, experiment.FEASIBLE, 5.0), row(experiment.PLAIN, experiment.HOLDS, 2.0)]
    rows += [row(experiment.PLAIN, experiment.COST, 1.0)]
    for level in experiment.CONFIDENCES:
        rows += [row(str(level), experiment.HOLDS, 4.0), row(str(level), experiment.REACHED, 5.0)]
        rows += [row(str(level), experiment.VIOLATED, 1.0), row(str(level), experiment.COST, 1.1)]
    head, *tables = sections(ResultsTable(tuple(rows)), None)
    assert head.startswith("# Goals that hold")
    assert len(tables) == len(experiment.CONFIDENCES)
    for table in tables:
        line = table.splitlines()[-1]
        assert [cell.strip() for cell in line.strip("|").split("|")][:9] == [
            "made", "1,000", "one rate", "5", "0.40", "0.80", "1.00", "0.20", "2.00",
        ]  # fmt: skip
