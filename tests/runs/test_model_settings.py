"""Models of a goals file: weights of classes, what the deployed model said, and which of them cannot be fitted."""

import numpy as np
import pytest

from counterpoise import Stopping
from counterpoise.runs import DataError, fit_run

GOALS = """
goals = [{goals}]
[data]
files = "{{folder}}/loans.csv"
target = "paid"
drop = {drop}
{more}
[method]
name = "{method}"
"""


def asked(method, *, goals="", drop='["today", "weight"]', more=""):
    return GOALS.format(method=method, goals=goals, drop=drop, more=more)


def model_of(goals_file, text, name):
    return fit_run(goals_file(text, name=f"{name}.toml")).model()


@pytest.mark.slow
@pytest.mark.parametrize("model", ["gradient_boosting", "logistic", "forest"])
def test_classes_are_weighed_by_their_names(model, goals_file, loans):
    weighed = "parameters.class_weight = {{ {} }}\n"
    more, less = (
        model_of(goals_file, asked(model) + weighed.format(words), f"{model}{number}")
        for number, words in enumerate(["yes = 9.0", "no = 9.0, yes = 1"])
    )
    rows = loans(200, seed=5)[["age", "income", "job", "sex"]]
    assert np.mean(more.predict(rows) == "yes") > np.mean(less.predict(rows) == "yes") + 0.1


def test_classes_that_are_numbers_are_weighed_too(goals_file, loans, tmp_path):
    frame = loans()
    frame.assign(paid=(frame["paid"] == "yes") + 1).to_csv(tmp_path / "numbers.csv", index=False)
    text = asked("gradient_boosting").replace("{folder}/loans.csv", str(tmp_path / "numbers.csv"))
    model = model_of(goals_file, text + "parameters.class_weight = { 2 = 9.0 }\n", "numbers")
    assert model[-1].class_weight == {0: 1.0, 1: 9.0}


def test_a_weight_of_no_class_is_refused(goals_file):
    text = asked("logistic") + "parameters.class_weight = { maybe = 2 }\n"
    with pytest.raises(
        DataError, match=r"class_weight of logistic regression must name classes, 'no', 'yes'; got 'maybe'\."
    ):
        fit_run(goals_file(text))


def test_constrained_training_knows_the_deployed_model(goals_file):
    goal = '"churn <= 0.2"'
    text = asked("constrained", goals=goal, drop='"weight"', more='baseline = "today"')
    found = fit_run(goals_file(text)).result()
    assert found.goals[0].text == "churn <= 0.2"


INLINE = 'models = [{ name = "tree" },\n  { name = "svm", parameters = { kernel = "precomputed" } }]\n'
TABLES = '[[method.models]]\nname = "tree"\n[[method.models]]\nname = "svm"\nparameters.kernel = "precomputed"\n'


@pytest.mark.parametrize(("models", "line"), [(INLINE, 11), (TABLES, 12)])
def test_a_model_that_fails_is_named_with_its_line(models, line, goals_file):
    named = (
        rf"^method\.models\[2\] \(line {line}\), support vector machine with kernel = 'precomputed', cannot be fitted: "
    )
    with pytest.raises(DataError, match=named):
        fit_run(goals_file(asked("pool") + models))


def test_when_a_booster_stops_is_a_table_of_the_file(goals_file):
    text = asked("adalpboost") + "parameters.n_estimators = 4\nparameters.stopping = { patience = 1, n_folds = 2 }\n"
    booster = model_of(goals_file, text, "stopping")[-1]
    assert booster.stopping == Stopping(patience=1, n_folds=2)
    assert len(booster.estimators_) < 4
