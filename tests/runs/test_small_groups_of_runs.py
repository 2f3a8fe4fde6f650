"""Equalities and small groups from a goals file to the result, the summary, the report and the audit."""

import json

import numpy as np
import pandas as pd
import pytest

from counterpoise.cli import main
from counterpoise.report import write_report
from counterpoise.runs import fit_run
from counterpoise.runs.summary import summary_text

FILE = """goals = ["selection_rate == 0.5 +- 0.1", "max_difference(positive_rate, by=sex, min_rows=40) <= 0.4"]
[data]
files = "people.csv"
target = "paid"
positive = "yes"
groups = "sex"
[method]
name = "adalpboost"
parameters = {n_estimators = 4}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("people")
    rng = np.random.default_rng(0)
    size, sex = rng.normal(size=800), rng.choice(["F", "M"], 800)
    sex[::25] = "X"  # 32 rows
    frame = pd.DataFrame({"size": size, "sex": sex, "paid": np.where(size + rng.normal(size=800) / 2 > 0, "yes", "no")})
    frame.to_csv(path / "people.csv", index=False)
    frame.assign(said=frame.paid).to_csv(path / "decided.csv", index=False)
    (path / "goals.toml").write_text(FILE)
    return path


@pytest.mark.slow
def test_a_run_lists_the_groups_that_goals_leave_out_and_reads_equalities(folder):
    run = fit_run(folder / "goals.toml", output=folder / "run")
    equality, phrase = json.loads((run.folder / "result.json").read_text())["goals"]
    assert equality["text"] == "positive_rate == 0.5 +- 0.1"
    (left_out,) = phrase["splits"]["train"]["mixture"]["left_out"]
    assert left_out.startswith("sex=X (")
    assert "max_difference(positive_rate, by=sex, min_rows=40) <= 0.4: left out: sex=X (" in summary_text(run.result())
    page = write_report(run.folder).read_text()
    assert f"Left out of the train rows: {left_out}" in page
    assert "Its numbers are distances from what the rate must be equal to, and its bound is the tolerance" in page


def test_an_audit_of_a_table_lists_them_too(folder, capsys):
    goals = ["max_difference(positive_rate, by=sex, min_rows=40) <= 0.4", "selection_rate == 0.5 +- 0.1"]
    options = [part for goal in goals for part in ("--goal", goal)]
    table = ["--target", "paid", "--prediction", "said", "--positive", "yes"]
    assert main(["audit", str(folder / "decided.csv"), *table, *options]) == 0
    shown = capsys.readouterr().out
    assert "left out: sex=X (32 rows)" in shown
    assert "positive_rate == 0.5 +- 0.1: the estimate is of positive_rate = " in shown
