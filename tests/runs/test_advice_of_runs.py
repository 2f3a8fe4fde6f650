"""What is advised where goals are missed or cannot hold: nothing is offered that was not tried, or it says so."""

import pytest

from counterpoise.goals import InfeasibleGoals
from counterpoise.runs import fit_run

TEXT = """
goals = [{goals}]
[data]
files = "{{folder}}/loans.csv"
target = "paid"
positive = "yes"
baseline = "today"
groups = "sex"
drop = "weight"
[method]
models = [{{name = "logistic"}}]
{parameters}
"""


def asked(*goals, parameters=""):
    return TEXT.format(goals=", ".join(f'"{goal}"' for goal in goals), parameters=parameters)


@pytest.mark.slow
def test_what_was_tried_meets_goals_that_could_not_hold(goals_file, tmp_path):
    with pytest.raises(InfeasibleGoals) as refused:
        fit_run(goals_file(asked("churn <= 0.05")), output=tmp_path / "run")
    told = [note for note in refused.value.__notes__ if "tried, with" in note]
    assert any('by = ["baseline"] in [method.parameters]' in note for note in told)
    path = goals_file(asked("churn <= 0.05", parameters='parameters = {by = ["baseline"]}'), name="again.toml")
    run = fit_run(path, output=tmp_path / "again")
    assert run.model().check_goals()[0].holds


@pytest.mark.slow
def test_what_does_not_help_is_not_offered(goals_file, tmp_path):
    """Looking at sex cannot make a model say what the deployed one says."""
    with pytest.raises(InfeasibleGoals) as refused:
        fit_run(goals_file(asked("churn <= 0.05")), output=tmp_path / "run")
    assert not any('by = ["sex"]' in note for note in refused.value.__notes__)
    assert any(note.startswith("Not tried, as it takes training") for note in refused.value.__notes__)


def test_goals_that_are_met_need_no_advice(goals_file, tmp_path):
    run = fit_run(goals_file(asked("recall >= 0.3")), output=tmp_path / "run")
    assert run.result().advice == []
