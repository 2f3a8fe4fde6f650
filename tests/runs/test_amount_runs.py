"""Goals on amounts in goals files and on the command line."""

import json

import numpy as np
import pandas as pd
import pytest

from counterpoise.cli import main
from counterpoise.runs import audit_run, fit_run, open_run
from counterpoise.runs.tables import audit_table

N = 1500
FILE = """
goals = ["recall(value=amount) >= 0.6", "total(value=profit) >= 100"]
[data]
files = "rows.csv"
target = "y"
positive = 1
drop = ["score", "said"]
amounts = ["amount", "profit"]
{more}
[method]
models = [{{ name = "logistic" }}]
parameters = {{ cv = 3 }}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("amounts"), np.random.default_rng(0)
    y = rng.integers(0, 2, N)
    score = rng.normal(size=N) + 1.5 * y
    amount = np.minimum(rng.lognormal(4, 0.7, N), 500).round(2)
    frame = pd.DataFrame({"x": rng.normal(size=N) + y, "score": score, "amount": amount, "y": y})
    frame["profit"], frame["said"] = np.where(y == 1, amount, -amount / 2), (score > 0.5).astype(int)
    frame.to_csv(folder / "rows.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def run(folder):
    (folder / "goals.toml").write_text(FILE.format(more="largest_value = { amount = 500 }"))
    return fit_run(folder / "goals.toml")


def test_amounts_are_no_features_and_goals_count_with_them(run):
    assert run.columns.features == ["x"]
    result = run.result()
    assert [goal.text for goal in result.goals] == ["recall(value=amount) >= 0.6", "total(value=profit) >= 100"]
    assert any("amount of at most 500" in line for line in result.data.lines)


def test_a_run_is_certified_with_its_limit_or_another(run, folder):
    first = audit_run(open_run(run.folder)).audit
    assert first[0].largest_values == (("amount", 500.0),)
    assert np.isfinite(first[0].low)
    wider = audit_run(open_run(run.folder), folder / "rows.csv", largest_value=5000).audit
    assert wider[0].largest_values == (("amount", 5000.0),)


def test_without_a_limit_a_report_says_undecided_and_why(folder):
    (folder / "free.toml").write_text(FILE.format(more=""))
    run = fit_run(folder / "free.toml")
    audit = audit_run(open_run(run.folder)).audit
    assert audit[0].verdict == "undecided"
    assert "needs largest_value" in audit[0].note
    assert audit[1].verdict == "holds"


def test_decisions_of_a_table_are_audited(folder):
    roles = {"target": "y", "prediction": "said", "goals": ["recall(value=amount) >= 0.5"], "largest_value": 500}
    assert audit_table(folder / "rows.csv", **roles).audit[0].verdict == "holds"


def test_the_command_line_chooses_for_money(folder, capsys):
    table, rules = str(folder / "rows.csv"), str(folder / "rules.json")
    words = ["choose", table, "--target", "y", "--score", "score", "--goal", "recall(value=amount) >= 0.8", "-o", rules]
    assert main([*words, "--objective=-1 * total(value=profit)", "--largest-value", "amount=500", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["goals"][0]["holds"]
    assert answer["value"] < 0


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (["lots"], "--largest-value takes an amount, as 5000, or a column and its amount"),
        (["500", "amount=500"], "got both"),
        (["amount=10"], "got 10 for column 'amount'"),
        (["-3"], "largest_value"),
    ],
)
def test_wrong_limits_are_refused(folder, capsys, limits, words):
    table = str(folder / "rows.csv")
    options = [f"--largest-value={limit}" for limit in limits]
    audit = ["audit", table, "--target", "y", "--prediction", "said", "--goal", "recall(value=amount) >= 0.5"]
    assert main([*audit, *options]) != 0
    assert words in " ".join(capsys.readouterr().err.split())
