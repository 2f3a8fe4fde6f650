"""Settings are chosen by the rule that stands above them, on rows that no table uses."""

import numpy as np
import pytest

from counterpoise.boosting.margin_boost import LINEAR_COSTS
from counterpoise.datasets import TableData
from papers.constants import experiment, page
from papers.constants.experiment import CONSTANTS, GRIDS, OF_BOUNDS, OF_LINEAR, OF_STEP, OF_STRENGTH, Part
from papers.constants.schedules import IN_USE, TRIED, schedule_section
from papers.constants.sets import indicators
from papers.mixture_goals.experiment import GOALS
from papers.results import ResultRow, ResultsTable, append_rows

BY_NAME = {one.name: one for one in CONSTANTS}
STRENGTH = BY_NAME[OF_STRENGTH]


@pytest.mark.parametrize(
    ("numbers", "candidate", "tells_apart"),
    [
        ([[0.3, 0.1, 0.2], [0.3, 0.2, 0.3]], "0.001", False),  # it is the least itself
        ([[0.1, 0.2, 0.3], [0.2, 0.2, 0.3]], "0.0001", False),  # above by 0.05 ± 0.05
        ([[0.1, 0.2, 0.3], [0.1, 0.21, 0.3]], "0.0001", True),
    ],
)
def test_the_least_mean_is_the_choice_and_tables_within_a_standard_error_of_it_stand(numbers, candidate, tells_apart):
    choice = page.choose(STRENGTH, np.array(numbers))
    assert (choice.candidate, choice.tells_apart) == (candidate, tells_apart)


def test_bounds_are_the_tightest_that_two_models_meet_in_every_split():
    counts = np.array([[9.0, 5.0, 3.0, 2.0, 2.0], [9.0, 5.0, 3.0, 2.0, 1.0]])
    assert page.choose(BY_NAME[OF_BOUNDS], counts).candidate == "+5 %"
    assert page.choose(BY_NAME[OF_BOUNDS], np.zeros((1, 5))).candidate == "-10 %"


def test_bounds_that_are_moved_are_tighter_by_their_part():
    assert list(experiment.moved_goals(0.0)) == list(GOALS)
    moved = [str(goal) for goal in experiment.moved_goals(0.1)]
    assert moved[0] == "positive_rate(sex=Female) >= 0.88 * positive_rate(sex=Male)"
    assert moved[-1] == "churn(live) <= 0.117"


def test_a_finer_grid_has_the_costs_and_those_halfway():
    grids = GRIDS["RLP-Boost"]
    assert set(grids["every second"]) < set(grids["as it was"]) < set(grids["finer"])
    assert len(grids["finer"]) == 2 * len(grids["as it was"]) - 1
    assert grids["finer"] == LINEAR_COSTS  # as the rule chose
    assert grids["wider"][1:-2] == grids["as it was"]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "learner"), [(OF_STEP, "tree"), (OF_LINEAR, "stump")])
def test_every_candidate_is_measured_on_the_same_split(name, learner):
    rows = experiment.measure(Part(name, "tumours", learner, 1000))
    assert [row.method for row in rows] == list(BY_NAME[name].candidates)
    assert all(row.experiment == name and 0.0 < row.value < 0.2 for row in rows)


def test_no_split_is_that_of_a_table():
    parts = page.STUDY.parts(page.STUDY.datasets, 3)
    assert min(part.seed for part in parts) >= experiment.FIRST_SEED
    assert {part.experiment for part in parts} == set(BY_NAME)


def test_numbers_become_fifths_and_categories_one_column_each():
    data = TableData("t", np.column_stack([np.arange(10.0), np.arange(10) % 3]), np.zeros(10), ["a", "b"],
                     np.array([False, True]), {}, None, "made up")  # fmt: skip
    found = indicators(data, np.arange(10)).toarray()
    assert found.shape == (10, 5 + 3)
    assert np.array_equal(found[:, :5].sum(axis=0), [2] * 5)
    assert (found.sum(axis=1) == 2).all()


def test_the_page_says_what_the_rule_says(tmp_path):
    values = {"0.0001": (0.30, 0.31), "0.001": (0.20, 0.22), "0.01": (0.25, 0.26)}
    rows = [
        ResultRow(OF_STRENGTH, "compas", "linear", name, seed, None, STRENGTH.quantity, "held out", value)
        for name, both in values.items()
        for seed, value in enumerate(both)
    ]
    append_rows(tmp_path / "results.parquet", rows)
    written = page.STUDY.write(tmp_path / "results.parquet").read_text(encoding="utf-8")
    assert "| 0.01 | 0.2550 | 0.2550 | 0.0450 ± 0.0050 |" in written
    assert "The choice is **0.001**, which the tables have." in written
    assert "CIFAR-10" not in written  # its numbers are not beside this folder


def test_a_schedule_that_takes_more_steps_is_not_chosen():
    dear = next(place for place, one in enumerate(TRIED) if one.steps > IN_USE.steps)
    errors = [0.01 if place == dear else 0.08 - 0.001 * (place == 7) for place in range(len(TRIED))]
    rows = [
        ResultRow("boosted-cvar", "cifar10", "", "ERM", 0, None, "error", "validation", error, f"schedule {place}")
        for place, error in enumerate(errors)
    ]
    assert "The choice is **schedule 7**, at 0.9210" in schedule_section(ResultsTable(tuple(rows)))[-1]
