"""Impact ratios on the command line: text, CSV, JSON and the page."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.cli import main
from counterpoise.datasets import loans

COMMAND = ["audit", "people.csv", "--impact", "--groups", "sex", "--groups", "region"]
DECIDED = [*COMMAND, "--prediction", "last_year", "--positive", "no"]


@pytest.fixture(autouse=True)
def people(tmp_path, monkeypatch):
    frame = loans(400, random_state=0)[0]
    frame.loc[:4, "sex"] = None
    frame.loc[5:8, "region"] = "NA"
    frame.to_csv(tmp_path / "people.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return frame


def expected(frame, **options):
    columns = {name: frame[name].to_numpy() for name in ("sex", "region")}
    return cp.impact_ratios(frame["last_year"], columns, pos_label="no", **options)


def test_the_command_prints_and_writes_what_the_library_computes(people, capsys):
    assert main([*DECIDED, "-o", "out.csv", "--report", "page.html"]) == 0
    ratios = expected(people)
    assert capsys.readouterr().out.startswith(str(ratios))
    assert Path("out.csv").read_text(encoding="utf-8") == ratios.as_csv()
    assert len(pd.read_csv("out.csv", keep_default_na=False)) == len(ratios.ratios)
    page = Path("page.html").read_text(encoding="utf-8")
    for one in ratios.ratios:
        assert all(text in page for text in one.texts.values())
    assert "<script" not in page
    assert "http" not in page.split("Content-Security-Policy")[1]


def test_json_holds_every_number(people, capsys):
    options = ["--unknown", "NA", "--min-share", "0.3", "--exclude-small", "few people", "--json"]
    assert main([*DECIDED, *options]) == 0
    told = json.loads(capsys.readouterr().out)
    ratios = expected(people, unknown=["NA"], min_share=0.3, exclude_small="few people")
    assert [one["applicants"] for one in told["ratios"]] == [one.applicants for one in ratios.ratios]
    assert any("few people" in one["note"] for one in told["ratios"])


def test_weights_are_a_column_of_the_table(people, capsys):
    people = people.assign(mass=1 + np.arange(400) % 3)
    people.to_csv("people.csv", index=False)
    assert main([*DECIDED, "--weights", "mass", "--largest-weight", "3", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    ratios = expected(people, sample_weight=people["mass"], largest_weight=3)
    lows = {(one["table"], one["category"]): one["low"] for one in told["ratios"]}
    assert lows == {(one.table, one.category): None if np.isnan(one.low) else one.low for one in ratios.ratios}
    assert told["notes"] == list(ratios.notes)


def test_scores_have_rates_above_their_median(people, capsys):
    assert main([*COMMAND, "--score", "income"]) == 0
    assert f"above {people['income'].median():g}, the median of these 400 scores" in capsys.readouterr().out


REFUSED = {
    "both": ([*DECIDED, "--score", "income"], "pass --prediction with decisions, or --score with scores"),
    "no groups": (["audit", "people.csv", "--impact", "--prediction", "last_year"], "Impact ratios need --groups"),
    "limit alone": ([*DECIDED, "--largest-weight", "9"], "largest_weight needs sample_weight"),
    "strict": ([*DECIDED, "--strict"], "no law defines an impact ratio that passes"),
    "goals": ([*DECIDED, "--goal", "recall >= 0.5"], "--goal is not for impact ratios"),
    "without": (["audit", "people.csv", "--target", "default", "--score", "income"], "--score is for impact ratios"),
    "nothing": (["audit", "people.csv", "--target", "default"], "needs --target, --prediction and --goal"),
    "positive": ([*COMMAND, "--prediction", "last_year", "--positive", "maybe"], "--positive must be a decision"),
    "column": ([*COMMAND, "--prediction", "lastyear"], "last_year"),
    "over the table": ([*DECIDED, "-o", "people.csv"], "is the data file itself"),
}


@pytest.mark.parametrize(("command", "words"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_go_together_is_refused_in_a_sentence(command, words, capsys):
    assert main(command) == 2
    assert words in capsys.readouterr().err
