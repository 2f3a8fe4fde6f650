"""Runs whose goals are proven: models are trained without the test rows, and the report says so."""

import json

import pytest

from counterpoise.datasets import loans
from counterpoise.report.overview import request_lines
from counterpoise.runs import fit_run
from counterpoise.runs.goals_file import GoalsFileError, read_goals_file
from counterpoise.runs.rebalanced import rebalance_run
from counterpoise.runs.result import RunResult

FILE = """
goals = ["recall >= 0.5"]
{settings}
output = "run"
[data]
files = "loans.csv"
target = "default"
positive = "yes"
groups = ["sex"]
[method]
models = [{{name = "logistic"}}]
"""


def write_file(folder, settings):
    path = folder / "goals.toml"
    path.write_text(FILE.format(settings=settings))
    return path


@pytest.mark.slow
def test_a_run_is_proven_on_rows_that_no_model_was_trained_on(tmp_path):
    loans(1500, random_state=0)[0].to_csv(tmp_path / "loans.csv", index=False)
    run = fit_run(write_file(tmp_path, "proof = true"))
    result = RunResult.model_validate_json((run.folder / "result.json").read_text())
    assert result.proof_rows == 400  # a third of the 1,200 training rows
    assert "proven by exact tests on 400 rows" in dict(request_lines(result))["On new rows"]
    chosen = rebalance_run(run, proof=False, output=tmp_path / "other")
    assert json.loads((chosen.folder / "result.json").read_text())["proof_rows"] == 0
    with pytest.raises(ValueError, match="A proof needs a confidence"):
        rebalance_run(run, confidence="none", output=tmp_path / "third")


@pytest.mark.parametrize(
    ("settings", "message"),
    [('proof = true\nconfidence = "none"', "a proof needs a confidence"), ("proof = 1", "proof")],
)
def test_proofs_that_cannot_be_are_refused(tmp_path, settings, message):
    with pytest.raises(GoalsFileError, match=message):
        read_goals_file(write_file(tmp_path, settings))
