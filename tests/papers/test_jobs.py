"""The stories of the guides to jobs: their slacks are those of the goals, and the page follows from the table."""

import pytest

from counterpoise import GoalClassifier
from papers.guides import jobs as experiment
from papers.tables import ResultRow, ResultsTable


@pytest.mark.parametrize("name", experiment.STORIES)
def test_slacks_of_a_story_are_those_of_its_goals(name):
    story = experiment.STORIES[name]
    people = story.draw(2000, 5)
    threshold = experiment.by_hand(story, people, 0.0)
    chosen = people.scores > threshold
    columns = {"sensitive_features": {"group": people.group}, "baseline": people.deployed}
    model = GoalClassifier([people.scores], cv="prefit", confidence=None, pos_label=1).fit(
        people.scores[:, None], people.y, **columns
    )
    checks = [goal.evaluate(chosen.astype(int), model.family_.selection_data.answers.tables)
              for goal in model.rebalance(goals=story.goals).goals_]  # fmt: skip
    slacks = story.slacks(people, chosen)
    assert [check.violation <= 1e-9 for check in checks] == [slack >= -1e-9 for slack in slacks]


def test_a_guessed_margin_is_kept_on_the_selection_rows():
    story = experiment.STORIES["screening"]
    people = story.draw(3000, 1)
    chosen = people.scores > experiment.by_hand(story, people, experiment.GUESS)
    assert min(story.slacks(people, chosen)) >= experiment.GUESS


def test_the_table_has_a_line_for_each_method_with_the_share_of_draws_that_hold():
    rows = [
        ResultRow("jobs", "fraud", "", method, seed, None, quantity, "population", value)
        for method in experiment.METHODS
        for seed in (0, 1)
        for quantity, value in ((experiment.HELD, float(seed)), (experiment.COST, 0.25))
    ]
    block = experiment.blocks(ResultsTable(tuple(rows)))["held"]
    assert "| fraud | counterpoise | 2 | 0.50 | 0.250 frauds missed |" in block
