"""Audits on the command line where a column says of which rows the label is known."""

import json

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.cli import main

GOALS = ["selection_rate <= 0.7", "precision >= 0.3", "recall(sex=F) >= 0.2", "recall >= 0.99"]
AUDIT = ["audit", "rows.csv", "--target", "paid", "--prediction", "said", "--labelled", "granted"]
AUDIT += [word for goal in GOALS for word in ("--goal", goal)]


@pytest.fixture(autouse=True)
def rows(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    score = rng.random(500)
    frame = pd.DataFrame({"said": np.where(score > 0.5, "yes", "no"), "granted": score > 0.3})
    frame["sex"] = rng.choice(["F", "M"], 500)
    frame["paid"] = np.where(rng.random(500) < score, "yes", "no")
    frame["paid"] = frame["paid"].where(frame["granted"])
    frame.to_csv(tmp_path / "rows.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return frame


def test_the_audit_is_that_of_the_library_and_claims_no_more(rows, capsys):
    assert main([*AUDIT, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["goals"]
    labels = rows["paid"].fillna("no")
    columns = {"sex": rows["sex"].to_numpy()}
    expected = cp.audit(GOALS, rows["said"], labels, labelled=rows["granted"], sensitive_features=columns)
    for one, row in zip(told, expected, strict=True):
        assert (one["low"], one["high"], one["verdict"]) == (
            pytest.approx(row.low),
            pytest.approx(row.high),
            row.verdict,
        )
        assert (one["estimate"] is None) == bool(np.isnan(row.estimate))
    assert [one["estimate"] is None for one in told] == [False, False, True, True]
    assert main(AUDIT) == 0
    assert "it depends on labels that are not known" in capsys.readouterr().out
    assert main([*AUDIT, "--strict"]) == 1


@pytest.mark.parametrize("words", [("Yes", "No"), (1, 0), (1.0, 0.0)])
def test_truth_may_be_written_in_several_ways(rows, words, capsys):
    assert main([*AUDIT, "--json"]) == 0
    before = capsys.readouterr().out
    rows.assign(granted=np.where(rows["granted"], *words)).to_csv("rows.csv", index=False)
    assert main([*AUDIT, "--json"]) == 0
    assert capsys.readouterr().out == before


REFUSED = {
    "report": ({}, ["--report", "page.html"], "Leave --report out"),
    "no truth": ({"granted": "maybe"}, [], "row 1 holds 'maybe'"),
    "none": ({"granted": False}, [], "no label is known"),
    "a label too few": ({"granted": True}, [], "must hold a label in each row"),
    "impact": ({}, ["--impact"], "not for impact ratios"),
    "positive": ({}, ["--positive", "perhaps"], "--positive must be one of the classes"),
}


@pytest.mark.parametrize(("columns", "options", "words"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_audited_is_refused(rows, columns, options, words, capsys):
    rows.assign(**columns).to_csv("rows.csv", index=False)
    assert main([*AUDIT, *options]) == 2
    assert words in capsys.readouterr().err
