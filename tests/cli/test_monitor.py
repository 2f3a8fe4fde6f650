"""Goals of a run over time, from the command line: a table, JSON, a page, exit codes."""

import json

import numpy as np
import pandas as pd
import pytest

from counterpoise.cli import main


@pytest.fixture
def missed(here):
    """Return a file of decisions that find no malignant tumour, with ids."""
    frame = pd.read_csv(here / "tumours.csv")[["size", "diagnosis"]]
    frame.assign(prediction="benign", id=np.arange(len(frame))).to_csv(here / "missed.csv", index=False)
    return "missed.csv"


def test_a_batch_is_shown_as_a_table_as_json_and_as_a_page(here, capsys):
    assert main(["monitor", "run", "tumours.csv", "--name", "March", "--time", "2026-03"]) == 0
    text = capsys.readouterr().out
    assert "batch March: 569 rows, 569 labels; decisions: the rule of the run" in text
    assert "recall >= 0.5" in text
    assert main(["monitor", "run", "tumours.csv", "--name", "March", "--json"]) == 0
    words = json.loads(capsys.readouterr().out)
    assert (words["batch"], words["is_new"], words["batches"], words["n_rows"]) == ("March", False, 1, 569)
    assert [goal["goal"] for goal in words["goals"]] == ["recall >= 0.5", "error_rate(size=large) <= 0.5"]
    page = (here / "run" / "monitor.html").read_text(encoding="utf-8")
    assert "Goals of run over time" in page
    assert page.count("<svg") == 2
    assert "<script" not in page


def test_strict_ends_with_1_where_a_goal_fails(here, missed, capsys):
    assert main(["monitor", "run", "--strict"]) == 0
    assert "no batch has been counted yet" in capsys.readouterr().out
    assert main(["monitor", "run", missed, "--quiet"]) == 0
    assert main(["monitor", "run", missed, "--strict"]) == 1
    assert "batch missed.csv was counted before; nothing is counted again" in capsys.readouterr().out
    assert "2 goals of 2 fail" in (here / "run" / "monitor.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--ids", "person"], "ids: tumours.csv has no column 'person'"),
        (["--prediction", "said"], "prediction: tumours.csv has no column 'said'"),
        (["--name", ""], "The name of a batch must have 1 to 200 characters"),
    ],
)
def test_bad_options_are_one_sentence_and_count_nothing(words, reason, here, capsys):
    assert main(["monitor", "run", "tumours.csv", *words]) == 2
    assert reason in capsys.readouterr().err
    assert not (here / "run" / "monitor.json").exists()
