"""Goals on probabilities of groups on the command line and in goals files."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.cli import main

GOAL = "positive_rate(race=a) >= 0.6 * positive_rate(race=b)"
AUDIT = ["audit", "rows.csv", "--target", "y", "--prediction", "said", "--goal", GOAL]
FILE = f"""
goals = ["{GOAL}"]
confidence = "none"
[data]
files = "rows.csv"
target = "y"
drop = ["said"]
proxies = {{ race = {{ a = "p_a", b = "p_b" }} }}
[method]
models = [{{ name = "logistic" }}]
"""


@pytest.fixture(autouse=True)
def rows(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    p, x = np.round(rng.random(600), 3), rng.standard_normal(600)
    y = (x + p + rng.standard_normal(600) > 0.5).astype(int)
    frame = pd.DataFrame({"x": x, "p_a": p, "p_b": np.round(1 - p, 3), "y": y, "said": (x + p > 0.5).astype(int)})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "goals.toml").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    return frame


def test_an_audit_by_probabilities_is_that_of_the_library_and_says_what_it_assumes(rows, capsys):
    assert main([*AUDIT, "--proxy", "race=a:p_a,b:p_b", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["goals"][0]
    goal = GOAL.replace("race=a", "value=p_a").replace("race=b", "value=p_b")
    (expected,) = cp.audit(goal, rows["said"], rows["y"], sensitive_features=rows[["p_a", "p_b"]], largest_value=1)
    assert told["estimate"] == pytest.approx(expected.estimate)
    assert (told["low"], told["verdict"]) == (pytest.approx(expected.low), expected.verdict)
    assert main([*AUDIT, "--proxy", "race=a:p_a,b:p_b", "--report", "page.html"]) == 0
    for text in (capsys.readouterr().out, Path("page.html").read_text(encoding="utf-8")):
        assert "Rates by race are those of its groups only if" in text


@pytest.mark.parametrize(
    ("proxy", "words"),
    [
        ("race=a:p_a", "Unknown value 'b' of column 'race'"),
        ("race=a:p_a,b:p_a", "two or more"),
        ("race", "must have the form race=black:p_black"),
        ("race=a:x,b:p_b", "must hold probabilities"),
        ("race=a:p_a,b:y", "must sum to 1"),
        ("race=a:p_a,b:p_c", "p_c"),
    ],
)
def test_what_are_no_probabilities_is_refused(proxy, words, capsys):
    assert main([*AUDIT, "--proxy", proxy]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.slow
def test_a_goals_file_names_columns_of_probabilities(rows, capsys):
    assert main(["fit", "goals.toml"]) == 0
    assert "Rates by race are those of its groups only if" in capsys.readouterr().out
    run = cp.runs.open_run("goals")
    assert "Rates by race are those of its groups only if" in (run.folder / "report.html").read_text(encoding="utf-8")
    (goal,) = run.result().goals
    assert "value=p_a" in goal.text
    assert not {"p_a", "p_b"} & set(run.columns.features)
    assert goal.on("test").high < 10
    rows.assign(p_b=0.5).to_csv("rows.csv", index=False)
    capsys.readouterr()
    assert main(["fit", "goals.toml", "--quiet"]) == 2
