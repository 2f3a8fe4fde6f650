"""Files that would take for ever, or all memory, if they were believed: one sentence, and everything as it was."""

import os
from pathlib import Path

import numpy as np
import pytest
from spoiled import FIT, PREDICT, Case, assert_refused, changed, goals, written

from counterpoise.cli import main

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names, and /dev/zero")

ALPHA, DATA, GOAL = "alpha = 0.2", '"tumours.csv"', '"recall >= 0.5"'
DEEP = "[" * 100_000
ENDLESS = "it is a pipe or a device"


def first(text):
    """Return what puts a text before the goals file."""
    return goals(ALPHA, text + "\n" + ALPHA)


def instead(name, make):
    """Return what puts something else in the place of a file, or where there is none."""

    def spoil(_monkeypatch):
        Path(name).unlink(missing_ok=True)
        make(name)

    return spoil


def endless(name):
    return instead(name, lambda path: Path(path).symlink_to("/dev/zero"))


def silent(name):
    return instead(name, os.mkfifo)


def huge(name):
    """Return what puts a file there that says to have a terabyte, and takes no room."""

    def spoil(_monkeypatch):
        Path(name).touch()
        os.truncate(name, 1 << 40)

    return spoil


def wide(n_columns):
    return written("wide.csv", ",".join(f"c{number}" for number in range(n_columns)) + "\n" + "1," * n_columns + "1\n")


CASES = {
    # the goals file
    "lists in lists": Case(FIT, "goals.toml must be TOML", first(f"x = {DEEP}")),
    "a string without an end": Case(FIT, "goals.toml must be TOML", first('x = "' + '\\"' * 400_000)),
    "a goals file of two megabytes": Case(FIT, "may have at most 1048576", first("#" * 2_000_000)),
    "a goals file of a terabyte": Case(FIT, "may have at most 1048576", huge("goals.toml")),
    "a goals file without an end": Case("fit /dev/zero", f"/dev/zero cannot be read: {ENDLESS}"),
    "a pipe as goals file": Case("fit pipe", f"pipe cannot be read: {ENDLESS}", silent("pipe")),
    "a number of 10,000 digits": Case(FIT, "goals.toml must be TOML", first("x = " + "9" * 10_000)),
    "a key of a million letters": Case(FIT, "unknown key 'aaa", first("a" * 1_000_000 + " = 1")),
    "spaces before a header": Case(
        FIT, "unknown key 'targt' in the table data", goals("[data]", "[" + " " * 900_000 + "data]\ntargt = 1")
    ),
    "100,000 columns to drop": Case(
        FIT,
        "has no column 'c0'",
        goals("[data]", "[data]\ndrop = [" + ",".join(f'"c{number}"' for number in range(100_000)) + "]"),
    ),
    "one file 100,000 times": Case(
        FIT, "data.files: expected each file once; got 'tumours.csv' twice", goals(DATA, f"[{(DATA + ',') * 70_000}]")
    ),
    "a file name without an end": Case(
        FIT, "should have at most 4096 characters", goals(DATA, '"' + "a/" * 400_000 + '"')
    ),
    "30,000 models": Case(
        FIT,
        "method.models: expected list should have at most 1000 items",
        goals('name = "adalpboost"', 'name = "pool"\n' + '[[method.models]]\nname = "tree"\n' * 30_000),
    ),
    "25,000 datasets": Case(
        FIT,
        "datasets: expected dictionary should have at most 1000 items",
        goals("[data]", "".join(f"[datasets.d{at}]\nfiles = {DATA}\n" for at in range(25_000)) + "[data]"),
    ),
    "40,000 goals": Case(
        FIT, "goals: expected list should have at most 10000 items", goals(GOAL, ", ".join([GOAL] * 40_000))
    ),
    "a zero byte in a file name": Case(FIT, "no file has a zero byte in its name", goals(DATA, '"a\\u0000b"')),
    # goals
    "parentheses in parentheses": Case(FIT, "nested too deeply", goals(GOAL, '"' + "(" * 90_000 + '"')),
    "a goal of 200,000 letters": Case(
        FIT, "A goal's text must have at most 100000 characters", goals(GOAL, '"' + "(" * 200_000 + '"')
    ),
    "a long sum times many numbers": Case(
        FIT,
        "too many terms, or too much is multiplied",
        goals(
            GOAL, '"(' + "+".join(f"recall(a{number})" for number in range(2_000)) + ")" + "*1" * 20_000 + ' >= 0.5"'
        ),
    ),
    "a goal of 5,000 groups": Case(
        FIT,
        "cannot be measured on the train rows",
        goals(GOAL, '"' + "+".join(f"recall(train,size={number})" for number in range(3_000)) + ' >= 0.5"'),
    ),
    "a goal of 10,000 conditions": Case(
        FIT,
        "cannot be measured on the train rows",
        goals(GOAL, '"recall(train,' + ",".join(f"c{number}=1" for number in range(9_000)) + ') >= 0.5"'),
    ),
    "a metric of 90,000 letters": Case(FIT, "Unknown metric 'xxx", goals(GOAL, '"' + "x" * 90_000 + '(train) >= 0.5"')),
    "parentheses on the command line": Case(["audit", "run", "--goal", "(" * 90_000], "nested too deeply"),
    # data
    "data without an end": Case(FIT, f"/dev/zero cannot be read: {ENDLESS}", goals(DATA, '"/dev/zero"')),
    "data from a pipe": Case(FIT, f"tumours.csv cannot be read: {ENDLESS}", silent("tumours.csv")),
    "a deployed model without an end": Case(FIT, ENDLESS, goals("[data]", '[data]\nbaseline_model = "/dev/zero"')),
    "init without an end": Case("init /dev/zero --target y -o new.toml", ENDLESS),
    "predict without an end": Case("predict run /dev/zero -o said.csv", ENDLESS),
    "audit from a pipe": Case("audit run pipe", ENDLESS, silent("pipe")),
    "a million columns": Case(
        "init wide.csv --target c1 -o new.toml", "must have at most 100000 columns; it has 1000000", wide(1_000_000)
    ),
    "two columns of one name among 90,000": Case(
        "init wide.csv --target c1 -o new.toml",
        "must have each column once; 'c5' is there 2 times",
        written("wide.csv", "c5," + ",".join(f"c{number}" for number in range(20_000)) + "\n"),
    ),
    # the run folder
    "settings in lists in lists": Case(
        PREDICT, "run/settings.json cannot be read", written("run/settings.json", '{"a": ' + DEEP)
    ),
    "settings with a key twice": Case(
        PREDICT,
        "each key must occur once in an object; 'again' occurs 2 times",
        changed("run/settings.json", lambda content: b'{"again": 1, "again": 2,' + content[1:]),
    ),
    "settings of a terabyte": Case(PREDICT, "run/settings.json cannot be read: it has", huge("run/settings.json")),
    "settings from a pipe": Case(PREDICT, "run is not a run folder", silent("run/settings.json")),
    "settings with a number of 10,000 digits": Case(
        PREDICT, "settings.json cannot be read", written("run/settings.json", '{"seed": ' + "9" * 10_000 + "}")
    ),
    "done in lists in lists": Case(PREDICT, "run/done.json cannot be read", written("run/done.json", DEEP)),
    "done without an end": Case(PREDICT, "is not finished", endless("run/done.json")),
    "a model of a terabyte": Case(PREDICT, "it is larger than the free memory", huge("run/model.cp")),
    "a model without an end": Case(PREDICT, "lacks model.cp", endless("run/model.cp")),
    "a result in lists in lists": Case(
        "fit goals.toml -o run", "it is not valid JSON", written("run/result.json", DEEP)
    ),
    "report of a result in lists": Case("report run", "it is not valid JSON", written("run/result.json", DEEP)),
    "report of a terabyte": Case("report run", "run/result.json cannot be read", huge("run/result.json")),
    "a result with one long value": Case(
        "report run",
        "is damaged at",
        changed(
            "run/result.json", lambda content: content.replace(b'"method": "', b'"method": 5, "m": "' + b"a" * 200_000)
        ),
    ),
    "a result of another version": Case(
        "fit goals.toml -o run",
        "of the format 'counterpoise run result 1'",
        changed("run/result.json", lambda content: content.replace(b"run result 1", b"run result 2")),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_hostile_file_is_refused_in_one_short_sentence(case, here, monkeypatch, capsys):
    assert_refused(case, here, monkeypatch, capsys)


def test_a_text_that_a_few_bytes_repeat_is_kept_once(here, capsys):
    """A Parquet file of a thousand bytes that says ten thousand letters 200,000 times: two gigabytes, written out."""
    pa = pytest.importorskip("pyarrow", reason="Parquet")
    import pyarrow.parquet as pq  # noqa: PLC0415

    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(200_000, np.int32)), pa.array(["x" * 10_000]))
    table = pa.table({"text": texts, "y": np.arange(200_000) % 2})
    pq.write_table(table, here / "texts.parquet", compression="zstd", store_schema=False)
    assert main(["init", "texts.parquet", "--target", "y", "-o", "new.toml"]) == 0, capsys.readouterr()
    assert pa.default_memory_pool().max_memory() < 1 << 30


def test_more_rows_than_there_is_memory_are_refused(here, monkeypatch, capsys):
    monkeypatch.setattr(os, "sysconf", lambda _name: 100)  # a machine of 10,000 bytes
    case = Case(
        "init tumours.parquet --target diagnosis -o new.toml", "says that it has 569 rows, of which 7 columns take"
    )
    assert_refused(case, here, monkeypatch, capsys)


@pytest.mark.usefixtures("here")
def test_a_log_that_is_a_pipe_is_not_waited_for(capsys):
    Path("run/done.json").unlink()
    silent("run/log.txt")(None)
    assert main(["fit", "goals.toml", "-o", "run"]) == 2
    assert "run/log.txt cannot be written" in capsys.readouterr().err


@pytest.mark.usefixtures("here")
@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="needs links that are not followed")
def test_nothing_is_written_through_a_link(tmp_path, capsys):
    own = tmp_path / "own.txt"
    own.write_text("mine")
    Path("run/done.json").unlink()
    for name in ("log.txt", "report.html"):
        Path("run", name).unlink(missing_ok=True)
        Path("run", name).symlink_to(own)
    assert main(["fit", "goals.toml", "-o", "run"]) == 2
    assert "run/log.txt cannot be written" in capsys.readouterr().err
    Path("run/log.txt").unlink()
    assert main(["fit", "goals.toml", "-o", "run"]) == 0
    assert own.read_text() == "mine"
