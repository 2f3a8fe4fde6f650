"""A goals file whose booster trains inside its goals: what rounds look at, going on, goals out of reach."""

import shutil

import pandas as pd
import pytest
from run_numbers import numbers

from counterpoise.goals import InfeasibleGoals
from counterpoise.report import write_report
from counterpoise.runs import audit_run, fit_run, open_run, predict_run, rebalance_run
from counterpoise.runs.places import CHECKPOINT

GOALS = (
    "recall >= 0.7",
    "recall(job=clerk) >= 0.6",  # of a column that models see as a code
    "churn <= 0.4",
    "churn(mail) <= 0.35",
    "positive_rate(mail, age<=40) <= 0.5",
)
FEW = GOALS[1], GOALS[3]  # of a column and of another dataset: what takes long is the frontier of each goal
ANSWERS = {"parameters.n_": "parameters.scores = false\nparameters.n_"}  # mixes models, not rules of scores
FILE = """
alpha = 0.5
goals = [{goals}]
[data]
files = "{folder}/loans.csv"
target = "paid"
drop = "weight"
baseline = "today"
groups = "sex"
[datasets.mail]
files = "{folder}/mail.csv"
labelled = false
[method]
name = "lpboost"
learner = {name = "histogram_tree", parameters = {max_depth = 2}}
parameters.n_estimators = 6
"""


@pytest.fixture
def inside_file(goals_file):
    """Return a function that writes a goals file with an LPBoost, its goals and replacements."""

    def write(*goals, replace=None):
        listed = ", ".join(f'"{goal}"' for goal in goals or GOALS)
        return goals_file(FILE.replace("{goals}", listed), replace=replace or {})

    return write


@pytest.mark.slow
def test_rounds_train_for_goals_on_every_column_and_dataset_and_tell_how_they_stand(
    inside_file, tmp_path, loans_folder
):
    told = []
    run = fit_run(inside_file(), output=tmp_path / "run", tell=lambda progress: told.append(progress.part))
    assert told.pop() == "measuring"
    told = [part for part in told if part != "choosing decision rules"]
    assert all(part.startswith("round ") and ", goals m" in part for part in told)
    assert "goals met, risk 0." in told[-1]
    assert ", bound 0." in told[-1]
    model = run.model()
    assert [str(goal) for goal in model[-1].goals] == list(GOALS)
    assert all(check.holds for check in model[-1].check_goals())
    assert write_report(run.folder).exists()
    evaluated = audit_run(run, loans_folder / "more.csv").audit
    predict_run(run, loans_folder / "more.csv", tmp_path / "said.csv")
    frame = pd.read_csv(loans_folder / "more.csv")
    assert (pd.read_csv(tmp_path / "said.csv")["prediction"] == model.predict(frame)).all()
    assert evaluated[0].estimate > 0.5
    other = rebalance_run(run, goals=["recall >= 0.8"], output=tmp_path / "other").model()
    assert len(other[-1].estimators_) == len(model[-1].estimators_)  # trained for the goals of before
    assert all(check.holds for check in other[-1].check_goals())


@pytest.mark.slow
def test_an_interrupt_leaves_rounds_that_go_on_to_the_same_result(inside_file, tmp_path):
    def stop(progress):
        if progress.done == 2:
            raise KeyboardInterrupt

    path = inside_file(*FEW, replace=ANSWERS)
    with pytest.raises(KeyboardInterrupt):
        fit_run(path, output=tmp_path / "run", tell=stop)
    rounds, events = [], []
    fit_run(
        path,
        output=tmp_path / "run",
        tell=lambda progress: rounds.append(progress.done),
        on_event=events.append,
    )
    assert events[0].startswith("resumes: ")
    assert rounds[0] == 3
    (tmp_path / "fresh").mkdir()
    shutil.copy(tmp_path / "run" / "draws.key", tmp_path / "fresh")
    fit_run(path, output=tmp_path / "fresh")
    resumed, whole = ({row.run: row.value for row in numbers(open_run(tmp_path / name))} for name in ("run", "fresh"))
    assert resumed == whole


@pytest.mark.slow
def test_goals_out_of_reach_tell_the_nearest_mixture_and_other_goals_train_anew(inside_file, tmp_path):
    path = inside_file("recall >= 0.99", "positive_rate <= 0.1")
    with pytest.raises(InfeasibleGoals, match=r"was found that meets recall.* and positive_rate") as caught:
        fit_run(path, output=tmp_path / "run")
    nearest, *_, kept = caught.value.__notes__
    n_models = len(caught.value.closest.estimators_)
    assert nearest.startswith(f"The nearest mixture of the {n_models} models that were trained: ")
    missed = [check for check in caught.value.closest.check_goals() if not check.holds]
    assert sum(check.violation for check in missed) == pytest.approx(caught.value.least_violation)
    assert [str(check.goal) for check in missed] in [[str(old) for old in way] for way in caught.value.ways_out]
    assert kept.endswith("kept for them. Other goals need new rounds.")
    assert len(list((tmp_path / "run" / CHECKPOINT).glob("round-*.cp"))) == n_models
    events = []
    with pytest.raises(InfeasibleGoals) as again:
        fit_run(path, output=tmp_path / "run", on_event=events.append)
    assert str(again.value) == str(caught.value)
    fit_run(inside_file(*FEW, replace=ANSWERS), output=tmp_path / "run", on_event=events.append)
    assert [event.partition(":")[0] for event in events[:2]] == ["resumes", "starts"]


CHANGES = {
    "weighted rows, and a confidence": {
        "recall(job=clerk) >= 0.6": "recall >= 0.6 with confidence 0.9",
        'drop = "weight"': 'weights = "weight"\nlargest_weight = 3',
        "labelled = false": "labelled = false\nlargest_weight = 3",
    },
    "no rows to choose on": {"[datasets.mail]": "[splits]\nvalidation = 0.0\n[datasets.mail]"},
    "the worst group": {
        "parameters.n_": 'parameters.objective = "WorstGroup()"\nparameters.scores = false\nparameters.n_'
    },
    "goals that only choose": {"parameters.n_": "parameters.beta = 50\nparameters.n_"},
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CHANGES)
def test_goals_are_met_where_the_mixture_is_chosen(case, inside_file, tmp_path):
    run = fit_run(inside_file(*FEW, replace=CHANGES[case]), output=tmp_path / "run")
    assert all(check.holds for check in run.model()[-1].check_goals())
