"""Less discriminatory alternatives of a run, from its folder."""

import json

import pytest

from counterpoise.cli import main
from counterpoise.runs import DataError, alternatives_run, fit_run

pytestmark = pytest.mark.slow  # each fits a run

SETTINGS = """
confidence = "none"
goals = [{goal}]
[data]
files = "loans.csv"
target = "paid"
positive = "yes"
baseline = "today"
drop = ["weight"]
groups = ["sex"]
[splits]
test = {test}
[method]
models = [{{ name = "logistic" }}]
parameters = {{ cv = 2 }}
"""


@pytest.fixture
def run(loans, tmp_path):
    loans(700).to_csv(tmp_path / "loans.csv", index=False)
    (tmp_path / "own.toml").write_text(SETTINGS.format(goal='"recall >= 0.5"', test=0.3))
    return fit_run(tmp_path / "own.toml", output=tmp_path / "run")


def test_alternatives_of_a_run_are_beside_the_deployed_model(run, capsys, tmp_path):
    found = alternatives_run(run, n_points=3)
    assert found.incumbent.name == "incumbent: the deployed model"
    assert found.models == ("logistic regression",)
    assert found.n_held_out == 210
    assert 0 < found.incumbent.chosen_performance < 1
    page, table = tmp_path / "page.html", tmp_path / "all.csv"
    words = ["alternatives", str(run.folder), "--points", "3", "--html", str(page), "--csv", str(table), "--json"]
    assert main([*words, "--other", str(run.folder)]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["points"][-1]["name"] == "run"
    assert len(table.read_text().splitlines()) == 1 + len(shown["points"])
    assert "Less discriminatory alternatives by sex" in page.read_text()


def test_a_run_without_groups_needs_a_disparity(loans, tmp_path):
    loans(700).to_csv(tmp_path / "loans.csv", index=False)
    text = SETTINGS.format(goal="", test=0.3).replace('groups = ["sex"]\n', "")
    (tmp_path / "goals.toml").write_text(text)
    with pytest.raises(ValueError, match="Pass --disparity: a column of groups"):
        alternatives_run(fit_run(tmp_path / "goals.toml"))


def test_a_run_without_thresholds_is_refused(loans, tmp_path):
    loans(700).to_csv(tmp_path / "loans.csv", index=False)
    text = (
        SETTINGS.partition("[method]")[0].format(goal="", test=0.3)
        + '[method]\nname = "adaboost"\nparameters = { n_estimators = 2 }\n'
    )
    (tmp_path / "goals.toml").write_text(text)
    run = fit_run(tmp_path / "goals.toml")
    with pytest.raises(DataError, match="searched among thresholds of scores, and the method 'adaboost' has none"):
        alternatives_run(run)
