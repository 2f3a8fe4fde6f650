"""Fitting a run: every method, numbers that agree with the model, folders that are refused."""

import json

import numpy as np
import pandas as pd
import pytest
from run_numbers import numbers
from sklearn.tree import DecisionTreeClassifier

from counterpoise.metrics import cvar_loss
from counterpoise.persist import save
from counterpoise.runs import DataError, RunFolderError, fit_run, open_run
from counterpoise.runs.data import load_data
from tests.tiers import slow

POOL = """
name = "pool"
[[method.models]]
name = "logistic"
title = "plain"
[[method.models]]
name = "tree"
parameters = {{max_depth = 2}}
[[method.models]]
name = "nearest_neighbours"
"""
METHODS = {
    "goals": (
        'name = "goals"\nmodels = [{{name = "logistic"}}, {{name = "tree"}}]\n'
        'parameters = {{by = "job", cv = 3, decision = "sticky"}}'
    ),
    "goals of one threshold": 'parameters = {{decision = "fixed", cv = 2, objective = "false_positive_rate"}}',
    "lpboost": 'name = "lpboost"\nparameters = {{n_estimators = 5, budget = 0.05}}',
    "another learner": 'name = "adalpboost"\nlearner = {{name = "logistic"}}\nparameters = {{n_estimators = 3}}',
    "pool": POOL,
    "constrained": 'name = "constrained"',
    "adaboost": 'name = "adaboost"\nenforce_goals = false\nparameters = {{n_estimators = 5}}',
    "one model": 'name = "naive_bayes"\nenforce_goals = false',
}


@pytest.fixture(scope="module")
def done(tmp_path_factory, loans_folder):
    """Return a finished run of the usual goals file."""
    folder = tmp_path_factory.mktemp("done")
    text = (
        'alpha = 0.2\ngoals = ["recall >= 0.5", "positive_rate(sex=F) >= 0.6 * positive_rate('
        f'sex=M)", "churn <= 0.5"]\n[data]\nfiles = "{loans_folder}/loans.csv"\ntarget = "paid"\n'
        'drop = "weight"\nbaseline = "today"\ngroups = "sex"\n'
        '[method]\nname = "adalpboost"\nparameters.n_estimators = 8\n'
    )
    (folder / "goals.toml").write_text(text)
    return fit_run(folder / "goals.toml", output=folder / "run")


def test_the_folder_is_whole_and_keeps_the_goals_file(done):
    names = {path.name for path in done.folder.iterdir()}
    assert names == {
        *("goals.toml", "settings.json", "model.cp", "result.json"),
        *("environment.json", "log.txt", "done.json", "draws.key"),
    }
    assert (done.folder / "goals.toml").read_bytes() == (done.folder.parent / "goals.toml").read_bytes()
    for name in names - {"model.cp", "goals.toml", "log.txt", "draws.key"}:
        assert isinstance(json.loads((done.folder / name).read_text()), dict)
    assert open_run(done.folder).settings == done.settings


def test_numbers_agree_with_the_saved_model(done, loans_folder):
    data = load_data(done.settings, loans_folder)
    model, results = done.model(), numbers(done)
    for split, part in data.splits.items():
        wrong = 1 - model.predict_proba(part.X)[np.arange(len(part)), np.searchsorted(model.classes_, part.y)]
        (error,) = results.where(quantity="error", method="mixture", split=split)
        (tail,) = results.where(quantity="cvar", method="mixture", split=split, alpha=0.2)
        assert error.value == pytest.approx(wrong.mean())
        assert tail.value == pytest.approx(cvar_loss(wrong, 0.2))
        said = model.predict(part.X)
        (recall,) = results.where(quantity="goal estimate", method="mixture", split=split, settings="goal 1")
        assert recall.value == pytest.approx((said[part.y == "yes"] == "yes").mean())
        (churn,) = results.where(quantity="goal estimate", method="mixture", split=split, settings="goal 3")
        assert churn.value == pytest.approx((said != part.baseline).mean())
    first = model[-1].estimators_[0].predict(model[:-1].transform(data.splits["test"].X))
    (error,) = results.where(quantity="error", method="first model", split="test")
    assert error.value == pytest.approx((first != data.splits["test"].y).mean())


def test_goals_hold_in_expectation_where_the_mixture_is_chosen(done, loans_folder):
    part = load_data(done.settings, loans_folder).splits["validation"]
    yes = done.model().predict_proba(part.X)[:, 1]
    assert yes[part.y == "yes"].mean() >= 0.5 - 1e-6
    women, men = (yes[part.groups["sex"] == sex].mean() for sex in "FM")
    assert women >= 0.6 * men - 1e-6
    assert np.where(part.baseline == "yes", 1 - yes, yes).mean() <= 0.5 + 1e-6


def test_every_part_of_the_report_is_there(done):
    results, result = numbers(done), done.result()
    for quantity in ("rows", "class share", "group recall", "frontier value", "share", "tail part"):
        assert len(results.where(quantity=quantity)) > 0, quantity
    seconds = result.seconds
    assert set(seconds) == {"fit", "predict"}
    assert min(seconds.values()) >= 0
    assert [goal.text for goal in result.goals] == [goal.goal for goal in done.settings.goals]
    assert [group.text for group in result.groups] == ["all", "sex=F", "sex=M"]
    assert len(result.rules) == 8
    assert sum(row.value for row in results.where(quantity="share")) == pytest.approx(1)
    assert len({row.run for row in results}) == len(results)


def test_the_report_can_be_written(done):
    pytest.importorskip("jinja2", reason="reports need jinja2")
    from counterpoise.report import write_report  # noqa: PLC0415

    assert write_report(done.folder).stat().st_size > 0
    (done.folder / "report.html").unlink()


def test_a_second_fit_says_that_it_is_done(done):
    events = []
    before = {path.name: path.stat().st_mtime_ns for path in done.folder.iterdir()}
    again = fit_run(done.folder.parent / "goals.toml", output=done.folder, on_event=events.append)
    assert again == done
    assert len(events) == 1
    assert "is done already" in events[0]
    assert before == {path.name: path.stat().st_mtime_ns for path in done.folder.iterdir()}


@pytest.mark.parametrize("method", [slow(one) if "goals" in one or one == "pool" else one for one in METHODS])
def test_every_kind_of_method_fits_and_loads(method, goals_file, tmp_path):
    text = goals_file().read_text().partition("[method]")[0] + "[method]\n" + METHODS[method].format()
    (tmp_path / "goals.toml").write_text(text)
    run = fit_run(tmp_path / "goals.toml")
    assert run.folder == tmp_path / "goals"
    losses = run.result().losses()
    assert 0 < losses.error < 0.5
    assert losses.tail(0.2).value <= min(1.0, losses.error / 0.2) + 1e-9
    said = run.model().predict(load_data(run.settings, tmp_path).splits["test"].X)
    assert set(said) <= {"yes", "no"}


def test_weights_count_in_every_number(goals_file, loans_folder):
    path = goals_file(
        replace={'drop = ["today", "weight"]': 'drop = ["today"]\nweights = "weight"\nlargest_weight = 3'}
    )
    run = fit_run(path)
    part = load_data(run.settings, loans_folder).splits["validation"]
    wrong = 1 - run.model().predict_proba(part.X)[np.arange(len(part)), (part.y == "yes").astype(int)]
    (error,) = numbers(run).where(quantity="error", method="mixture", split="validation")
    assert error.value == pytest.approx(np.average(wrong, weights=part.weights))
    yes = part.y == "yes"
    assert np.average(1 - wrong[yes], weights=part.weights[yes]) >= 0.5 - 1e-6


def test_goals_on_an_unlabelled_dataset(goals_file):
    path = goals_file(
        replace={
            '"recall >= 0.5"': '"coverage(mail) <= 0.6", "positive_rate(mail, job=clerk) <= 0.9"',
            "[method]": '[datasets.mail]\nfiles = "{folder}/mail.csv"\nlabelled = false\n[method]',
        }
    )
    run = fit_run(path)
    assert run.result().goals[0].text == "coverage(mail) <= 0.6"


def test_with_the_deployed_model_in_the_pool_no_churn_is_too_little(goals_file, loans, tmp_path):
    frame = loans()[["age", "sex", "paid"]]
    frame.to_csv(tmp_path / "loans.csv", index=False)
    deployed = DecisionTreeClassifier(max_depth=1).fit(frame[["age"]], frame["paid"])
    save(deployed, tmp_path / "deployed.cp")
    text = (
        'goals = ["churn <= 0"]\n[data]\nfiles = "loans.csv"\ntarget = "paid"\ngroups = "sex"\n'
        'baseline_model = "deployed.cp"\n[method]\nname = "pool"\n[[method.models]]\nname = "logistic"\n'
        '[[method.models]]\nname = "deployed"\n'
    )
    run = fit_run(goals_file(text))
    assert run.model().mixture_.tolist() == [0, 1]
    assert run.result().rules[1].title == "deployed model"
    assert (run.model().predict(frame[["age"]]) == deployed.predict(frame[["age"]])).all()
    assert all(goal.on("test").violation == 0 for goal in run.result().goals)


def test_more_than_two_classes(tmp_path):
    from sklearn.datasets import load_iris  # noqa: PLC0415

    X, y = load_iris(return_X_y=True, as_frame=True)
    X.assign(kind=np.array(["setosa", "versicolor", "virginica"])[y]).to_csv(tmp_path / "iris.csv", index=False)
    text = '[data]\nfiles = "iris.csv"\ntarget = "kind"\n[method]\nname = "adalpboost"\nparameters.n_estimators = 4\n'
    (tmp_path / "plain.toml").write_text(text)
    assert fit_run(tmp_path / "plain.toml").result().goals == []
    (tmp_path / "goal.toml").write_text('goals = ["recall >= 0.5"]\n' + text)
    with pytest.raises(DataError, match=r"needs a positive class; got .*data.positive in a goals file"):
        fit_run(tmp_path / "goal.toml")
    (tmp_path / "goal.toml").write_text(
        'goals = ["recall >= 0.5"]\n' + text.replace("[method", 'positive = "virginica"\n[method')
    )
    assert fit_run(tmp_path / "goal.toml").result().goals[0].on("test").estimate > 0.5


def test_goals_on_one_of_many_classes_are_checked_before_anything_is_trained(tmp_path):
    frame = pd.DataFrame({"x": np.arange(90.0), "y": np.resize(["low", "mid", "high"], 90)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "goals.toml").write_text(
        'goals = ["recall(sex=F) >= 0.5"]\n[data]\nfiles = "t.csv"\ntarget = "y"\npositive = "high"\n'
    )
    with pytest.raises(DataError, match=r"cannot be measured on the train rows: Unknown column 'sex'"):
        fit_run(tmp_path / "goals.toml")
    assert not (tmp_path / "goals").exists()


BAD_GOALS = {
    "recall(sexe=F) >= 0.5": "Unknown column 'sexe' .* Did you mean 'sex'?",
    "recall(sex=W) >= 0.5": "Unknown value 'W' of column 'sex'",
    "churn <= 0.5": "cannot be measured on the train rows",
}


@pytest.mark.parametrize("goal", BAD_GOALS)
def test_goals_that_the_data_cannot_answer_are_refused_before_anything_is_written(goal, goals_file, tmp_path):
    path = goals_file(replace={"recall >= 0.5": goal})
    with pytest.raises(DataError, match=BAD_GOALS[goal]) as caught:
        fit_run(path, output=tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_folders_that_are_something_else_are_left_alone(goals_file, tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "diary.txt").write_text("dear diary")
    with pytest.raises(RunFolderError, match="must be new or empty; it holds other files"):
        fit_run(goals_file(), output=tmp_path / "notes")
    assert [path.name for path in (tmp_path / "notes").iterdir()] == ["diary.txt"]
    with pytest.raises(RunFolderError, match="there is a file of that name"):
        fit_run(goals_file(), output=tmp_path / "notes" / "diary.txt")
    with pytest.raises(RunFolderError, match="is not a run folder"):
        open_run(tmp_path / "notes")
    with pytest.raises(RunFolderError, match="There is no run folder"):
        open_run(tmp_path / "none")


def test_a_finished_run_is_not_overwritten_by_another(done, goals_file):
    with pytest.raises(RunFolderError, match="holds a run with other settings or data"):
        fit_run(goals_file(), output=done.folder)


def test_a_damaged_run_is_recognised(goals_file, tmp_path):
    run = fit_run(goals_file(), output=tmp_path / "run")
    (run.folder / "settings.json").write_text("{}")
    with pytest.raises(RunFolderError, match=r"settings\.json is damaged"):
        open_run(run.folder)
    (run.folder / "settings.json").write_text("{")
    with pytest.raises(RunFolderError, match=r"settings\.json cannot be read"):
        open_run(run.folder)
    (run.folder / "result.json").unlink()
    with pytest.raises(RunFolderError, match=r"is damaged: it lacks result\.json"):
        open_run(run.folder)


def test_a_changed_data_file_is_another_run(goals_file, tmp_path, loans):
    loans().to_csv(tmp_path / "own.csv", index=False)
    path = goals_file(replace={"{folder}/loans.csv": "own.csv"})
    fit_run(path, output=tmp_path / "run")
    pd.concat([loans(), loans(5, seed=9)]).to_csv(tmp_path / "own.csv", index=False)
    with pytest.raises(RunFolderError, match="other settings or data"):
        fit_run(path, output=tmp_path / "run")
