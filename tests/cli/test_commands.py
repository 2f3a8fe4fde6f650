"""Every command from a table to a report, as a user gives them: text, JSON, exit codes, stopping and going on."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from run_numbers import numbers as run_numbers
from spoiled import without_start

from counterpoise.boosting.checkpoint import Checkpoint
from counterpoise.cli import main
from counterpoise.persist import watch_changes
from counterpoise.runs import open_run


def said(capsys, *arguments, code=0):
    """Run a command, and return what it printed; on stderr stands at most that it starts."""
    assert main(list(arguments)) == code
    shown = capsys.readouterr()
    assert without_start(shown.err) == ""
    assert "--json" not in arguments or not shown.err
    return shown.out


def answer(capsys, *arguments, code=0):
    """Run a command with ``--json``, and return the object."""
    return json.loads(said(capsys, *arguments, "--json", code=code))


def refusal(capsys, *arguments, code):
    """Run a command that ends with one sentence, and return it."""
    assert main(list(arguments)) == code
    shown = capsys.readouterr()
    told = without_start(shown.err)
    assert told.startswith("counterpoise: ")
    assert told.count("\n") == 1
    return told


def test_from_a_table_to_a_report(here, capsys):
    for end in ("csv", "parquet"):
        made = f"{end}.toml"
        told = said(capsys, "init", f"tumours.{end}", "--target", "diagnosis", "--groups", "size", "-o", made)
        assert told.startswith(f"{made}: read it, set your goals, then run: counterpoise fit {made}\n")
    assert (here / "csv.toml").read_text() == (here / "parquet.toml").read_text().replace(".parquet", ".csv")
    (here / "parquet.toml").rename(here / "mine.toml")
    text = (here / "mine.toml").read_text()
    (here / "mine.toml").write_text(text.replace('    # "recall >= 0.8"', '    "recall >= 0.8"'))
    told = said(capsys, "fit", "mine.toml").splitlines()
    assert told[0] == "starts: 455 train, 114 test rows, 5 features, positive class malignant"
    assert any(line.startswith("15 of 15: ") for line in told)  # on a busy machine lines say before that it goes on
    assert any(line.split() == ["verdict", "estimate", "bound", "goal"] for line in told)
    assert told[-1] == f"report: {os.path.join('mine', 'report.html')}"  # noqa: PTH118 - as printed
    assert "<html" in (here / "mine" / "report.html").read_text(encoding="utf-8")
    assert not (here / "mine" / "checkpoint").exists()


def test_a_second_fit_says_that_it_is_done_and_changes_nothing(here, capsys):
    before = {path.name: path.stat().st_mtime_ns for path in (here / "run").iterdir()}
    told = said(capsys, "fit", "goals.toml", "-o", "run")
    assert told.startswith("run is done already: same settings, same data\n")
    after = {path.name: path.stat().st_mtime_ns for path in (here / "run").iterdir()}
    assert after == before


def test_fit_answers_with_json_that_has_every_goal(here, capsys):
    found = answer(capsys, "fit", "goals.toml", "-o", "run")
    assert found["split"] == "test"
    assert [line["goal"] for line in found["goals"]] == [
        "recall >= 0.5",
        "error_rate(size=large) <= 0.5",
    ]
    assert found["all_hold"] == all(line["verdict"] == "holds" for line in found["goals"])
    assert found["folder"] == "run"
    assert (here / found["report"]).is_file()
    assert said(capsys, "fit", "goals.toml", "-o", "run", "--quiet") == ""


@pytest.mark.slow
def test_strict_gives_1_where_a_goal_is_not_shown_to_hold(here, capsys):
    hard = ["--goal", "recall >= 0.999"]
    assert answer(capsys, "audit", "run", *hard)["holds"] is False
    assert answer(capsys, "audit", "run", *hard, "--strict", code=1)["goals"][0]["verdict"] != "holds"
    assert answer(capsys, "audit", "run", "--goal", "recall >= 0.1", "--strict")["holds"] is True
    said(capsys, "fit", "--from", "run", "-o", "other", "--goal", "error_rate <= 0.06", "--strict", code=1)
    assert (here / "other" / "done.json").is_file()
    said(capsys, "fit", "goals.toml", "-o", "run", "--strict", "--quiet")
    frame = pd.read_csv(here / "tumours.csv")
    frame["diagnosis"] = np.where(frame["diagnosis"] == "benign", "malignant", "benign")
    frame.to_csv(here / "reversed.csv", index=False)
    assert answer(capsys, "audit", "run", "reversed.csv", "--strict", code=1)["holds"] is False
    assert answer(capsys, "audit", "run", "tumours.csv", "--strict")["holds"] is True


@pytest.mark.usefixtures("here")
def test_an_audit_of_a_run_prints_its_losses_and_a_table_that_ends_with_the_goals(capsys):
    told = said(capsys, "audit", "run", "tumours.parquet", "--confidence", "0.9").splitlines()
    assert told[0].startswith("on the rows of tumours.parquet: error 0.")
    place = told.index("") + 1
    assert told[place].split() == ["verdict", "estimate", "low", "high", "bound", "margin", "rows", "goal"]
    assert told[place + 1].endswith("212  recall >= 0.5")
    assert told[-1] == "All verdicts are right together with confidence 0.9."
    sides = said(capsys, "audit", "run", "--goal", "recall(size=large) >= recall(size=small) - 0.9")
    assert "the estimate is the left side less the rates on the right" in sides
    sides = said(capsys, "audit", "run", "--goal", "recall(size=large) >= positive_rate")
    assert "the estimate is the left side less the rates on the right" in sides
    number = said(capsys, "audit", "run", "--goal", "recall(size=large) >= 0.001")
    assert "the estimate is the left side" not in number


@pytest.mark.slow
def test_the_largest_weight_is_asked_for_told_and_changed(here, capsys):
    frame = pd.read_csv(here / "tumours.csv")
    frame.assign(weight=np.arange(len(frame)) % 3 + 1).to_csv(here / "weighted.csv", index=False)
    goals = (here / "goals.toml").read_text().replace("tumours.csv", "weighted.csv")
    (here / "w.toml").write_text(goals.replace("groups", 'weights = "weight"\ngroups').replace("= 5", "= 2"))
    assert "needs largest_weight" in refusal(capsys, "fit", "w.toml", code=2)
    (here / "w.toml").write_text((here / "w.toml").read_text().replace("weights", "largest_weight = 3\nweights"))
    said(capsys, "fit", "w.toml", "--quiet")
    near, far = (answer(capsys, "audit", "w", *more)["goals"][0] for more in ((), ("--largest-weight", "30")))
    assert [one["largest_weights"] for one in (near, far)] == [{"train": 3}, {"train": 30}]
    assert near["low"] > far["low"]
    assert said(capsys, "audit", "w").splitlines()[-1].endswith("if no row of train weighs more than 3.")
    told = answer(capsys, "audit", "w", "weighted.csv", "--largest-weight", "30")
    assert {line["verdict"] for line in told["goals"]} <= {"holds", "undecided"}


@pytest.mark.usefixtures("here")
def test_a_confidence_moves_the_ends_of_the_runs_own_audit(capsys):
    wide, narrow = (answer(capsys, "audit", "run", "--confidence", one)["goals"][0] for one in ("0.99", "0.8"))
    assert wide["low"] < narrow["low"] < narrow["estimate"] < narrow["high"] < wide["high"]
    assert wide["estimate"] == narrow["estimate"]


@pytest.mark.slow
def test_impossible_goals_give_1_and_leave_a_run_that_other_goals_finish(here, capsys):
    text = (here / "goals.toml").read_text()
    asked = 'goals = ["recall >= 0.9", "positive_rate <= 0.05"]'
    (here / "hard.toml").write_text(text.replace(text.splitlines()[2], asked))
    assert main(["fit", "hard.toml"]) == 1
    told = without_start(capsys.readouterr().err)
    assert "cannot hold" in told
    first, head, *lines = told.splitlines()
    assert first.endswith("The trained models are kept: change the goals in the file and run the same command again.")
    assert head == "A way out, as lines for goals = [...] in the goals file:"
    assert ",    # instead of " in lines[0]
    assert main(["fit", "hard.toml", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["infeasible"]
    assert "positive_rate <= 0.05" in found["conflict"]
    ways = [entry for way in found["ways_out"] for entry in way]
    assert [f'    "{entry["instead"]}",    # instead of {entry["goal"]}' for entry in ways] == [
        line.partition(": selection rate")[0] for line in lines if line != "Or:"
    ]
    assert not {"model.cp", "result.json", "done.json", "report.html"} & {
        path.name for path in (here / "hard").iterdir()
    }
    assert not list((here / "hard").rglob("*.part"))
    assert "is not finished" in refusal(capsys, "audit", "hard", "tumours.csv", code=2)
    (here / "hard.toml").write_text(text)
    assert said(capsys, "fit", "hard.toml").startswith("resumes: ")


def test_predictions_can_be_piped_and_tables_written_otherwise(here, capsys):
    said(capsys, "predict", "run", "tumours.csv", "-o", "one.csv", "--probabilities")
    assert said(capsys, "predict", "run", "tumours.csv", "-o", "-", "--probabilities") == (here / "one.csv").read_text()
    pd.read_csv("tumours.csv").to_csv("other.csv", index=False, sep="\t", decimal=",", encoding="utf-16")
    words = ("--delimiter", "tab", "--decimal", ",", "--encoding", "utf-16")
    assert said(capsys, "predict", "run", "other.csv", "-o", "two.csv", "--probabilities", *words)
    assert (here / "two.csv").read_bytes() == (here / "one.csv").read_bytes()
    assert answer(capsys, "audit", "run", "other.csv", *words) == answer(capsys, "audit", "run", "tumours.csv") | {
        "split": "other.csv"
    }
    said(capsys, "init", "other.csv", "--target", "diagnosis", "-o", "other.toml")
    text = (here / "other.toml").read_text()
    assert 'delimiter = "\\t"\nencoding = "utf-16"\ndecimal = ","\n' in text


def test_predict_takes_columns_in_any_order_and_ignores_others(here, capsys):
    frame = pd.read_csv(here / "tumours.csv").drop(columns="diagnosis")
    frame.iloc[:, ::-1].assign(name="x", more=1.5).to_parquet(here / "other.parquet", index=False)
    told = said(capsys, "predict", "run", "tumours.csv", "-o", "one.csv")
    assert told == "569 predictions in one.csv\n"
    assert answer(capsys, "predict", "run", "other.parquet", "-o", "two.parquet") == {
        "predictions": "two.parquet",
        "rows": 569,
    }
    one, two = pd.read_csv(here / "one.csv"), pd.read_parquet(here / "two.parquet")
    assert one["prediction"].tolist() == two["prediction"].tolist()
    said(capsys, "predict", "run", "tumours.csv", "-o", "shares.csv", "--probabilities")
    shares = pd.read_csv(here / "shares.csv")
    assert list(shares) == ["prediction", "probability benign", "probability malignant"]
    np.testing.assert_allclose(shares.iloc[:, 1:].sum(axis=1), 1.0)
    truth = pd.read_csv(here / "tumours.csv")["diagnosis"]
    assert (one["prediction"] == truth).mean() > 0.8


@pytest.mark.slow
def test_rebalance_trains_nothing_and_can_be_repeated_from_its_report(here, capsys):
    written = []
    with watch_changes(lambda _what, path: written.append(path.name)):
        found = answer(capsys, "fit", "--from", "run", "-o", "other", "--alpha", "0.5", "--goal", "recall >= 0.8")
    assert "model.cp" in written
    assert not [name for name in written if name.startswith("round-")]  # which every trained model leaves
    assert (found["alpha"], found["goals"][0]["goal"]) == (0.5, "recall >= 0.8")
    (command,) = open_run(here / "other").result().commands
    assert command == "counterpoise fit --from run --output other --alpha 0.5 --goal 'recall >= 0.8'"
    assert (here / "other" / "report.html").is_file()


@pytest.mark.slow
def test_a_report_goes_where_it_is_asked_for(here, capsys):
    assert answer(capsys, "report", "run", "-o", "page.html") == {"report": "page.html"}
    said(capsys, "report", "run", "--quiet")
    assert (here / "page.html").read_bytes() == (here / "run" / "report.html").read_bytes()


def numbers(folder):
    """Return all results but times, which differ between runs."""
    return {row.run: row.value for row in run_numbers(open_run(folder))}


def ctrl_c_before(name):
    """Return a watcher of files that presses Ctrl-C before the named one is written."""
    return lambda _what, path: signal.raise_signal(signal.SIGINT) if path.name == name else None


@pytest.mark.slow
def test_ctrl_c_gives_130_and_the_same_command_ends_with_the_same_result(here, capsys):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have set it to be ignored
    try:
        with watch_changes(ctrl_c_before("round-00004.cp")):
            assert main(["fit", "goals.toml", "-o", "long"]) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    told = without_start(capsys.readouterr().err)
    assert told == "\ncounterpoise: stopped. Finished parts are kept: run the same command again to resume.\n"
    assert Checkpoint(here / "long" / "checkpoint").rounds_done() == 3
    assert not (here / "long" / "done.json").exists()
    assert said(capsys, "fit", "goals.toml", "-o", "long").startswith("resumes: ")
    assert numbers(here / "long") == numbers(here / "run")


def test_a_reader_that_stops_early_is_no_error():
    process = subprocess.Popen(
        [sys.executable, "-c", "from counterpoise.cli import main; raise SystemExit(main(['data', 'list']))"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 141


def churn(n_rows=60):
    """Return a table in which a column holds the classes of the target, and is no model's."""
    rng = np.random.default_rng(0)
    columns = {
        "customer": [f"C{number:04d}" for number in range(n_rows)],
        "number": range(n_rows),
        "since": "2026-11-03",
        "plan": np.arange(n_rows) % 3,
        "charge": np.where(np.arange(n_rows) % 9, rng.random(n_rows).round(3).astype(str), "NA"),
        "job": np.where(np.arange(n_rows) % 5, "clerk", "?"),
        "partner": rng.choice(["Yes", "No"], n_rows),
        "sex": rng.choice(["F", "M"], n_rows),
    }
    return pd.DataFrame(columns | {"churn": np.arange(n_rows) % 2}).replace({"churn": {0: "No", 1: "Yes"}})


def test_init_never_guesses_the_deployed_model_and_prints_every_guess(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    churn().to_csv("churn.csv", index=False, sep=";")
    told = said(capsys, "init", "churn.csv", "--target", "churn")
    text = Path("goals.toml").read_text()
    assert '\n# baseline = "COLUMN"    # predictions of the deployed model' in text
    assert not re.search("^baseline", text, flags=re.MULTILINE)
    for guess, change in {
        "delimiter of the file: ';'": "delimiter under [data], or --delimiter",
        "target: \"churn\" holds 2 classes, texts (rows read: 'No': 30, 'Yes': 30)": "--target COLUMN",
        'positive class: "Yes"': "positive under [data]",
        "groups: none": "--groups COLUMN",
        "deployed model: none": "--baseline COLUMN",
        'columns with the classes of the target: ["partner"] are features': "--baseline COLUMN, or drop under [data]",
        'dropped columns: ["since", "customer"]': "drop under [data]",
        'ids: ["number"]': "add those that only number rows to drop",
        'missing values: ["?"]': "missing under [data]",
        'numbers of few values: ["plan"]': "categorical under [data]",
        "words among numbers: Column 'charge' of churn.csv holds numbers except 'NA' in 7 of 60 rows": "missing under",
    }.items():
        assert re.search(rf"^{re.escape(guess)}.*\n    to change it: .*{re.escape(change)}", told, flags=re.MULTILINE)
    words = answer(capsys, "init", "churn.csv", "--target", "churn", "-o", "other.toml")
    assert {"about": "positive class", "taken": '"Yes"', "change": "positive under [data]"} in words["guesses"]


def test_init_takes_the_deployed_model_that_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    churn().to_csv("churn.csv", index=False)
    told = said(capsys, "init", "churn.csv", "--target", "churn", "--baseline", "partner", "--groups", "sex")
    assert '\nbaseline = "partner"    # predictions of the deployed model' in Path("goals.toml").read_text()
    assert "deployed model: none" not in told
    assert "columns with the classes of the target" not in told
    churn().assign(left=churn()["churn"]).to_csv("leak.csv", index=False)
    told = said(capsys, "init", "leak.csv", "--target", "churn", "--baseline", "partner", "-o", "leak.toml")
    assert 'columns with the classes of the target: ["left"] are features' in told
    start = ("init", "churn.csv", "--target", "churn", "-o", "other.toml", "--baseline")
    assert "must hold predictions, each one of the classes 'No', 'Yes'; it holds 'F'" in refusal(
        capsys, *start, "sex", code=2
    )
    assert "--baseline: churn.csv has no column 'partners'" in refusal(capsys, *start, "partners", code=2)
    assert "--baseline must name a column that is neither the target" in refusal(capsys, *start, "churn", code=2)
