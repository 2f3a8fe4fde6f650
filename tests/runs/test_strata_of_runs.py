"""Goals inside strata and on flips from a goals file to the result, the report, decisions of a table, and the page."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from counterpoise import GoalClassifier, load, save
from counterpoise.cli import main
from counterpoise.explorer import Setting, session_of_model
from counterpoise.goals import Table
from counterpoise.report import write_report
from counterpoise.runs import fit_run

PLAIN = "max_difference(positive_rate, by=sex, within=job, min_rows=20) <= 0.3"
AVERAGE = "max_difference(positive_rate, by=sex, within=job, average=True) <= 0.2"
FILE = f"""goals = ["{PLAIN}", "{AVERAGE}"]
[data]
files = "people.csv"
target = "paid"
positive = "yes"
groups = ["sex", "job"]
[method]
name = "goals"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("people")
    rng = np.random.default_rng(0)
    size, sex, job = rng.normal(size=800), rng.choice(["F", "M"], 800), rng.choice(["cook", "none"], 800)
    job[::25] = "taxi"  # 32 rows
    paid = np.where(size + rng.normal(size=800) / 2 > 0, "yes", "no")
    frame = pd.DataFrame({"size": size, "sex": sex, "job": job, "paid": paid})
    frame.to_csv(path / "people.csv", index=False)
    frame.assign(said=frame.paid).to_csv(path / "decided.csv", index=False)
    (path / "goals.toml").write_text(FILE)
    return path


@pytest.mark.slow
def test_a_run_lists_strata_that_are_left_out(folder):
    run = fit_run(folder / "goals.toml", output=folder / "run")
    plain, average = json.loads((run.folder / "result.json").read_text())["goals"]
    left_out = plain["splits"]["test"]["mixture"]["left_out"]
    assert any(name.startswith("job=taxi, sex=") for name in left_out)
    assert not average["splits"]["test"]["mixture"].get("left_out")
    page = write_report(run.folder).read_text()
    assert "within=job, average=True" in page
    assert "job=taxi" in page


def test_decisions_of_a_table_are_audited_inside_strata(folder, capsys):
    table = ["--target", "paid", "--prediction", "said", "--positive", "yes"]
    assert main(["audit", str(folder / "decided.csv"), *table, "--goal", AVERAGE]) == 0
    assert "within=job, average=True" in capsys.readouterr().out


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    sex, job, X = rng.choice(["F", "M"], 1200), rng.choice(["cook", "none"], 1200), rng.normal(size=(1200, 2))
    y = (X[:, 0] + 0.4 * (sex == "M") + rng.normal(size=1200) > 0.3).astype(int)
    columns, changed = {"sex": sex, "job": job}, X * [1.0, -1.0]
    goals = [AVERAGE, "max_difference(selection_rate, by=sex, within=job) <= 0.3", "flip_rate(twin=changed) <= 0.1"]
    scorer = LogisticRegression().fit(X[:200], y[:200])
    own = GoalClassifier(scorer, goals=goals, cv="prefit", confidence=None, random_state=0)
    rows = {"sensitive_features": {name: part[200:700] for name, part in columns.items()}}
    own.fit(X[200:700], y[200:700], **rows, datasets={"changed": Table(changed[200:700])})
    held_out = {"sensitive_features": {name: part[700:] for name, part in columns.items()}}
    return own, (X[700:], y[700:]), held_out | {"datasets": {"changed": Table(changed[700:])}}


def test_the_page_moves_bounds_of_strata_and_flips(model):
    own, rows, columns = model
    page = session_of_model(own, *rows, **columns)
    for bounds in ((0.2, 0.3, 0.1), (0.02, 0.1, 0.02)):
        goals = [{"text": str(goal), "bound": bound} for goal, bound in zip(own.goals, bounds, strict=True)]
        for exact in (False, True):
            answer = page.answer(Setting.of({"alpha": 1.0, "goals": goals}), exact=exact)
            for goal, bound in zip(answer["goals"], bounds, strict=True):
                assert goal["choice"]["value"] <= bound + 1e-6
                assert goal["held_out"]["verdict"] in {"holds", "undecided", "fails", "not asked"}


def test_a_stored_model_keeps_strata_and_flips(model, tmp_path):
    own = model[0]
    save(own, tmp_path / "model.cp")
    other = load(tmp_path / "model.cp")
    assert [str(check) for check in other.check_goals()] == [str(check) for check in own.check_goals()]
    assert other.rebalance(goals=[AVERAGE]).check_goals()[0].holds
