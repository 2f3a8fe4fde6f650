"""``counterpoise plan``: rows for goals, from a goals file with a pilot, or from assumed rates."""

import json

import pytest
from loan_tables import loans

import counterpoise as cp
from counterpoise.cli import main

GOALS_FILE = """
goals = ["recall >= 0.8", "max_difference(positive_rate, by=sex) <= 0.1"]
confidence = 0.8

[data]
files = "pilot.csv"
target = "paid"
groups = ["sex"]
baseline = "old"

[method]
parameters = { by = "sex" }
"""
ASSUMED = ["--base-rate", "0.3", "--recall", "0.8", "--false-positive-rate", "0.1"]
GROUP = ["--group", "sex=F:0.4,M:0.6"]
FEW = ["--rows", "2000", "--rows", "20000"]


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    """Work in a folder with a pilot and a goals file."""
    loans(1500).to_csv(tmp_path / "pilot.csv", index=False)
    (tmp_path / "goals.toml").write_text(GOALS_FILE)
    monkeypatch.chdir(tmp_path)


def answer(capsys, *words):
    """Return what a command prints as JSON."""
    code = main([*words, "--json"])
    printed = capsys.readouterr()
    assert code == 0, printed.err
    return json.loads(printed.out)


@pytest.mark.slow
def test_a_pilot_of_a_goals_file_is_planned_as_in_python(capsys):
    words = answer(capsys, "plan", "goals.toml", "--score", "p", *FEW, "--margin", "0.03")
    frame = loans(1500)
    made = cp.plan(
        ["recall >= 0.8", "max_difference(positive_rate, by=sex) <= 0.1"],
        frame["paid"].to_numpy(),
        frame["p"].to_numpy(),
        sensitive_features={"sex": frame["sex"].to_numpy()},
        by="sex",
        confidence=0.8,
        margin=0.03,
        rows=[2000, 20_000],
        in_folds=True,
    )
    assert words["confidence"] == 0.8
    for mine, theirs in zip(words["points"], made.points, strict=True):
        for one, other in zip(mine["margins"], theirs.margins, strict=True):
            assert one["margin"] == pytest.approx(other.margin)
    assert words["goals"][0]["rows"] == made.goals[0].rows
    assert words["curve"] is None


def test_assumed_rates_need_no_file(capsys):
    group = ["--group", "sex=F:0.4,M:0.6", "--goal", "recall(sex=F) >= 0.7"]
    assert main(["plan", *group, *ASSUMED, *FEW]) == 0
    out = capsys.readouterr().out
    assert "recall(sex=F) >= 0.7" in out
    assert "All goals together" in out


def test_assumed_rates_may_differ_by_group(capsys):
    group = ["--group", "sex=F:0.4,M:0.6", "--goal", "recall >= 0.7"]
    rates = ["--base-rate", "F:0.1,M:0.3", "--recall", "0.8", "--false-positive-rate", "0.1"]
    assert answer(capsys, "plan", *group, *rates, *FEW)["points"][0]["is_reached"]


def test_goals_of_a_file_are_replaced(capsys):
    words = answer(capsys, "plan", "goals.toml", "--goal", "recall >= 0.7", *ASSUMED, *GROUP, "--rows", "3000")
    assert [one["goal"] for one in words["goals"]] == ["recall >= 0.7"]


REFUSED = {
    "neither": ("plan goals.toml", "got neither"),
    "both": ("plan goals.toml --score p --base-rate 0.2 --recall 0.7 --false-positive-rate 0.1", "got both"),
    "part of the assumptions": ("plan goals.toml --recall 0.7", "--base-rate is missing"),
    "no goals file": ("plan --goal recall>=0.7 --score p", "A pilot needs a goals file"),
    "a group without shares": ("plan goals.toml --group sex", "--base-rate is missing"),
    "an unknown score": ("plan goals.toml --score nothing", "nothing"),
    "words as scores": ("plan goals.toml --score sex", "must hold scores, numbers"),
    "no number": (
        "plan goals.toml --base-rate x --recall 0.7 --false-positive-rate 0.1",
        "--base-rate must be numbers",
    ),
    "a curve nowhere": ("plan goals.toml --score p --curve no/where.png", "There is no folder"),
    "a curve of no kind": ("plan goals.toml --score p --curve curve.txt", "must end with one of .png"),
    "infeasible": ("plan goals.toml --score p --goal recall>=0.99 --goal positive_rate<=0.1", "No single rule meets"),
    "rules by a group that nothing is assumed of": ("plan goals.toml " + " ".join(ASSUMED), "Add --group sex="),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_is_said(capsys, case):
    command, words = REFUSED[case]
    assert main(command.split()) in {1, 2}
    assert words in capsys.readouterr().err
