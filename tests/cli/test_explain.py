"""counterpoise explain: why rows of a table are decided as they are, in words and as JSON."""

import json
import shutil

import pandas as pd
import pytest

from counterpoise.cli import main

ONE_RULE = """
goals = ["recall >= 0.9"]
[data]
files = "tumours.csv"
target = "diagnosis"
groups = "size"
[method]
models = [{ name = "logistic" }]
parameters = { by = "size" }
"""


@pytest.fixture(scope="module")
def fitted(fitted, tmp_path_factory):
    """Return a copy of that folder with a run that decides by one rule; nobody writes there."""
    folder = tmp_path_factory.mktemp("explained") / "work"
    shutil.copytree(fitted, folder)
    (folder / "one.toml").write_text(ONE_RULE)
    assert main(["fit", str(folder / "one.toml"), "-o", str(folder / "one"), "--quiet"]) == 0
    return folder


@pytest.fixture
def run(here):
    """Return a copy of the folder with that run, made the current one."""
    return here


def test_explanations_are_those_of_the_predictions(run, capsys):
    assert main(["predict", "one", "tumours.csv", "-o", "said.csv", "--quiet"]) == 0
    assert main(["explain", "one", "tumours.csv", "--row", "3", "--row", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["rows"]
    assert [one["row"] for one in found] == [3, 1]
    table, said = pd.read_csv(run / "tumours.csv"), pd.read_csv(run / "said.csv")["prediction"]
    for one in found:
        assert one["decision"] == said[one["row"] - 1]
        assert one["group"] == f"size={table['size'][one['row'] - 1]}"
        assert (one["score"] > one["threshold"]) == (one["decision"] == "malignant")
        assert one["contributions"]
    assert main(["explain", "one", "tumours.csv"]) == 0
    text = capsys.readouterr().out
    assert text.count("Decision: ") == 10
    assert "Row 10\nDecision: " in text
    page = (run / "one" / "report.html").read_text(encoding="utf-8")
    assert page.count('<pre class="example">Decision: ') == 3


@pytest.mark.slow
def test_of_drawn_decisions_the_share_is_told(here, capsys):
    drawn = ONE_RULE.replace('by = "size"', 'decision = "sticky"')
    (here / "drawn.toml").write_text("alpha = 0.2\n" + drawn)
    assert main(["fit", "drawn.toml", "--quiet"]) == 0
    assert main(["explain", "drawn", "tumours.csv", "--row", "2"]) == 0
    assert "Drawn with a probability of " in capsys.readouterr().out


@pytest.mark.parametrize("row", ["0", "570"])
def test_rows_that_are_not_there_are_refused(run, capsys, row):  # noqa: ARG001 - the folder
    assert main(["explain", "one", "tumours.csv", "--row", row]) == 2
    assert f"row must be a number from 1 to 569, the rows of tumours.csv; got {row}." in capsys.readouterr().err


def test_reasons_are_those_of_the_library(run, capsys):
    assert main(["explain", "one", "tumours.csv", "--reasons", "--groups", "size", "-o", "reasons.csv"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("everybody: ")
    assert {"everybody", "size=large", "size=small"} <= set(pd.read_csv(run / "reasons.csv")["group"])
    assert main(["explain", "one", "tumours.csv", "--reasons", "--json"]) == 0
    groups = json.loads(capsys.readouterr().out)["groups"]
    assert groups[0]["rows"] == len(pd.read_csv(run / "tumours.csv"))
    assert all(one["reasons"] for one in groups)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--groups", "size"], "Pass --reasons too"),
        (["--reasons", "--row", "1"], "Leave --row out"),
        (["--reasons", "--groups", "sise"], "size"),
    ],
)
def test_options_of_reasons_are_refused_where_they_mean_nothing(run, capsys, options, words):  # noqa: ARG001 - the folder
    assert main(["explain", "one", "tumours.csv", *options]) == 2
    assert words in capsys.readouterr().err
