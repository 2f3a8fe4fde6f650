"""Runs side by side: one table as text, as JSON and as a page, with decisions that stand in a table."""

import json

import numpy as np
import pandas as pd
import pytest

from counterpoise.cli import main
from counterpoise.runs import compare_runs, open_run

pytestmark = pytest.mark.slow  # runs from end to end: the example of ``compare_runs`` is fast


@pytest.fixture
def runs(here):
    """Return the names of a run and of another choice of its models, and of a table with decisions."""
    goals = ["recall >= 0.5", "recall >= 0.9"]
    words = [word for goal in goals for word in ("--goal", goal)]
    assert main(["fit", "--from", "run", "-o", "other", *words, "--quiet"]) == 0
    frame = pd.read_csv(here / "tumours.csv")
    rng = np.random.default_rng(0)
    said = np.where(rng.random(len(frame)) < 0.1, "malignant", frame["diagnosis"])
    frame.assign(prediction=said).to_csv(here / "by_hand.csv", index=False)
    return "run", "other", "by_hand.csv"


def test_numbers_are_those_of_the_runs_and_of_the_decisions_in_the_table(runs, here, capsys):
    assert main(["report", *runs, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["runs"]
    assert [one["name"] for one in found] == list(runs)
    for one in found[:2]:
        result = open_run(here / one["name"]).result()
        assert one["error"] == result.losses().error
        assert one["cost"] == pytest.approx(result.losses().error - result.losses("first model").error)
        assert one["cvar"] == result.losses().tail(0.2).value
        by_text = {goal["goal"]: goal for goal in one["goals"]}
        for goal in result.goals:
            standing = goal.on("test")
            assert by_text[goal.text]["estimate"] == standing.estimate
            assert by_text[goal.text]["margin"] == standing.margin
            assert by_text[goal.text]["verdict"] == standing.verdict
    assert [goal["verdict"] for goal in found[0]["goals"]][2] == "not asked"
    table = pd.read_csv("by_hand.csv")
    wrong, is_positive = table["prediction"] != table["diagnosis"], table["diagnosis"] == "malignant"
    assert found[2]["error"] == pytest.approx(wrong.mean())
    assert found[2]["goals"][0]["estimate"] == pytest.approx((~wrong)[is_positive].mean())
    assert found[2]["rows"] == len(table)


def test_the_table_is_printed_and_written_as_a_page(runs, here, capsys):
    assert main(["report", *runs, "-o", "side.html"]) == 0
    text = capsys.readouterr().out
    page = (here / "side.html").read_text(encoding="utf-8")
    found = compare_runs([here / name for name in runs])
    lines = found.table()
    assert lines[0] == ["", *runs]
    assert lines[-1][0] == "rows"
    for line in lines[1:]:
        assert all(cell in text and cell.split()[0] in page for cell in line[1:])
    assert found.notes == ("Not all were measured on the same rows: small differences may be chance.",)
    assert found.notes[0] in text
    assert "page: side.html" in text
    assert "<script" not in page


def test_runs_on_the_same_rows_need_no_remark_and_bounds_have_their_cost(runs, here):
    found = compare_runs([here / name for name in runs[:2]])
    assert found.notes == ()
    assert found.runs[0].goals[0].cost >= 0
    assert found.runs[1].goals[2].cost >= 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "run"], "needs at least two run folders"),
        (["run", "run", "--interactive"], "further runs and --interactive cannot go with each other."),
        (["run", "--pack", "run.zip", "-o", "page.html"], "--pack cannot go with --output."),
        (["tumours.csv", "goals.toml"], "a run folder and tables of decisions"),
        (["run", "nowhere"], "There is no run folder nowhere"),
        (["run", "tumours.csv"], "--prediction: tumours.csv has no column 'prediction'"),
        (["run", "run", "-o", "nowhere/page.html"], "There is no folder nowhere"),
    ],
)
@pytest.mark.usefixtures("here")
def test_what_cannot_be_compared_is_refused(words, said, capsys):
    assert main(["report", *words]) == 2
    assert said in capsys.readouterr().err
