"""A goals file that its rows cannot answer is refused before any model is trained."""

import pytest
from sklearn.linear_model import LogisticRegression

from counterpoise.goals import InfeasibleGoals
from counterpoise.runs import DataError, GoalsFileError, fit_run

TEXT = """
alpha = 1.0
goals = ["recall >= 0.5"]
[data]
files = "{folder}/loans.csv"
target = "paid"
groups = "sex"
columns = ["age", "income"]
[method]
name = "goals"
models = [{ name = "logistic" }]
parameters = { cv = 2 }
"""
GOAL, PARAMETERS = "recall >= 0.5", "parameters = { cv = 2 }"
BAD = {
    "a goal that is no sentence": (GOAL, "recall(train >= 0.5", "Cannot read the goal"),
    "an unknown metric": (GOAL, "recal(train) >= 0.5", "Did you mean 'recall'"),
    "an unknown dataset": (GOAL, "recall(trian) >= 0.5", "Did you mean 'train'"),
    "an unknown column": (GOAL, "recall(sx=F) >= 0.5", "Unknown column 'sx'.*Did you mean 'sex'"),
    "an unknown value": (GOAL, "recall(sex=X) >= 0.5", "Unknown value 'X'"),
    "a bound that no rate has": (GOAL, "recall >= 1.2", "This goal cannot hold"),
    "two bounds that contradict each other": (
        f'"{GOAL}"',
        f'"{GOAL}", "recall <= 0.1"',
        "These goals cannot hold together.*recall >= 0.1, or recall <= 0.5",
    ),
    "a bound that always holds": (GOAL, "recall >= -1", "always holds"),
    "no deployed model": (GOAL, "churn <= 0.1", "data.baseline"),
    "no cost of deferring": (GOAL, "defer_rate <= 0.1", "set deferral"),
    "too few rows to be sure": (GOAL, "recall >= 0.99 with confidence 0.9999", "too few rows"),
    "groups that are no column": (PARAMETERS, 'parameters = { cv = 2, by = "sx" }', "Did you mean 'sex'"),
    "an objective on no column": (
        PARAMETERS,
        "parameters = { cv = 2, objective = 'false_positive_rate(sx=F)' }",
        "Did you mean 'sex'",
    ),
    "the worst of no groups": (
        PARAMETERS,
        "parameters = { cv = 2, objective = 'WorstGroup(\"sx\")' }",
        "Did you mean 'sex'",
    ),
    "an objective that is none": (PARAMETERS, "parameters = { cv = 2, objective = 'recal(train)' }", "recall"),
    "a budget above 1": (PARAMETERS, "parameters = { cv = 2, budget = 2.0 }", "budget must lie in"),
    "a cost above 1": (
        PARAMETERS,
        "parameters = { cv = 2, deferral = { cost = 2.0 } }",
        "cost of Deferral must lie in",
    ),
    "a decision that is none": (PARAMETERS, 'parameters = { cv = 2, decision = "dice" }', "decision must be one of"),
    "one fold": (PARAMETERS, "parameters = { cv = 1 }", "cv"),
    "an alpha of 0": ("alpha = 1.0", "alpha = 0.0", "alpha"),
    "a tail of one rule": ("alpha = 1.0", "alpha = 0.5", "alpha: one rule decides.*decision = .sticky."),
    "a risk of one rule": (
        PARAMETERS,
        "parameters = { cv = 2, objective = 'KL(0.1)' }",
        "one rule.*KL.*decision='sticky'",
    ),
    "a class that is none": ('target = "paid"', 'target = "paid"\npositive = "maybe"', "maybe"),
}


@pytest.mark.parametrize(("old", "new", "match"), BAD.values(), ids=list(BAD))
def test_what_the_rows_cannot_answer_is_refused_before_a_model_is_trained(
    old, new, match, loans_folder, tmp_path, monkeypatch
):
    def no_training(*_, **__):
        raise AssertionError("a model was trained")

    monkeypatch.setattr(LogisticRegression, "fit", no_training)
    assert old in TEXT
    (tmp_path / "goals.toml").write_text(TEXT.replace(old, new).replace("{folder}", str(loans_folder)))
    with pytest.raises((GoalsFileError, DataError, InfeasibleGoals), match=f"(?s){match}"):
        fit_run(tmp_path / "goals.toml")
    assert not (tmp_path / "goals" / "settings.json").exists()
