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
    found = json.loads(capsys.readouterr().out)
    assert found["columns"][1:] == list(runs)
    rows, place = {}, 0
    for label, *cells in found["rows"]:
        rows.setdefault(label, []).append(cells)
    for place, name in enumerate(runs[:2]):
        result = open_run(here / name).result()
        plain, losses = result.losses("first model"), result.losses()
        assert rows["share wrong"][0][place] == losses.error
        assert rows["    beyond plain training"][0][place] == pytest.approx(losses.error - plain.error)
        assert rows["loss of the tail"][0][place] == losses.tail(0.2).value
        for goal in result.goals:
            number = [label for label, *_ in found["rows"] if ">=" in label or "<=" in label].index(goal.text)
            standing = goal.on("test")
            assert rows[goal.text][0][place] == standing.estimate
            assert rows["    margin"][number][place] == standing.margin
            assert rows["    verdict"][number][place] == standing.verdict
    assert "not asked" in {row[0] for row in rows["    verdict"]}
    table = pd.read_csv("by_hand.csv")
    wrong, is_positive = table["prediction"] != table["diagnosis"], table["diagnosis"] == "malignant"
    assert rows["share wrong"][0][2] == pytest.approx(wrong.mean())
    assert rows["recall >= 0.5"][0][2] == pytest.approx((~wrong)[is_positive].mean())
    assert rows["rows"][0][2] == f"{len(table)} test"


def test_the_table_is_printed_and_written_as_a_page(runs, here, capsys):
    assert main(["report", *runs, "-o", "side.html"]) == 0
    text = capsys.readouterr().out
    page = (here / "side.html").read_text(encoding="utf-8")
    found = compare_runs([here / name for name in runs])
    assert list(found.columns) == ["", *runs]
    assert found.rows[-1][0] == "rows"
    assert str(found) in text
    assert found.notes == ["Not all were measured on the same rows: small differences may be chance."]
    assert found.notes[0] in page
    assert "page: side.html" in text
    assert "<script" not in page


def test_runs_on_the_same_rows_need_no_remark_and_bounds_have_their_cost(runs, here):
    found = compare_runs([here / name for name in runs[:2]])
    assert not found.notes
    costs = [row[1:] for row in found.rows if row[0] == "    costs"]
    assert costs[0][0] >= 0
    assert costs[2][1] >= 0


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
