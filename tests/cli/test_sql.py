"""One rule as SQL: SQLite and DuckDB decide as ``counterpoise apply`` does."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from counterpoise.cli import main

N = 100_000
SEX, REGION, SCORE = 'sex "at birth"', "région", "score's"
ONE = ["--target", "paid", "--score", SCORE, "--goal", "recall >= 0.7", "--confidence", "none"]


def people():
    """Return rows with ties of scores, missing groups, and odd signs in names and values."""
    rng = np.random.default_rng(5)
    sex = rng.choice(["F", "O'Neill", "女", "", "a=b"], N)
    frame = pd.DataFrame({"id": np.arange(N), SEX: sex, REGION: rng.choice(["nord", "süd"], N)})
    truth = rng.normal(size=N)
    frame[SCORE] = np.where(rng.random(N) < 0.5, np.round(1 / (1 + np.exp(-truth)), 2), 1 / (1 + np.exp(-truth)))
    frame["paid"] = np.where(rng.random(N) < frame[SCORE], "yes", "it's no")
    return frame


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Return a folder with the table; nobody writes there but beside it."""
    folder = tmp_path_factory.mktemp("sql")
    people().to_parquet(folder / "people.parquet", index=False)
    return folder


def in_sqlite(frame, expression):
    with closing(sqlite3.connect(":memory:")) as base:
        frame.to_sql("people", base, index=False)
        return [said for (said,) in base.execute(f"SELECT {expression} FROM people ORDER BY id").fetchall()]  # noqa: S608


def in_duckdb(frame, expression):
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed: pip install duckdb")
    people = frame  # noqa: F841 - DuckDB finds it by its name
    with duckdb.connect() as base:
        return [said for (said,) in base.sql(f"SELECT {expression} FROM people ORDER BY id").fetchall()]  # noqa: S608


@pytest.mark.slow
@pytest.mark.parametrize("ask", [in_sqlite, in_duckdb])
@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--by", SEX, "--by", REGION],
        ["--by", SEX, "--goal", "defer_rate <= 0.2", "--defer-cost", "0.1", "--defer-label", "ask a person"],
    ],
)
def test_a_database_decides_as_apply_does(ask, options, table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = str(table / "people.parquet")
    assert main(["choose", source, *ONE, *options, "--positive", "yes", "-o", "r.json", "--sql", "r.sql"]) == 0
    assert main(["apply", "r.json", source, "--ids", "id", "-o", "said.parquet", "--quiet"]) == 0
    expression = Path("r.sql").read_text(encoding="utf-8")
    said = ask(people(), expression)
    assert said == pd.read_parquet("said.parquet")["said"].tolist()
    assert len(set(said)) == (3 if "--defer-cost" in options else 2)
    assert main(["apply", "r.json", "--sql", "again.sql", "--quiet"]) == 0
    assert Path("again.sql").read_text(encoding="utf-8") == expression


RULE = {"share": 1.0, "from": "0" * 16, "score": "p", "thresholds": {"g=a": 0.1 + 0.2, "g=(missing)": 1e-20 / 3}}
FILE = {"format": "counterpoise rules 1", "positive": 1, "negative": 0, "by": ["g"], "key": "k" * 16, "rules": [RULE]}


@pytest.mark.parametrize("ask", [in_sqlite, in_duckdb])
def test_rows_that_apply_refuses_get_null_and_ties_are_exact(ask, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("rules.json").write_text(json.dumps(FILE))
    assert main(["apply", "rules.json", "--sql", "rule.sql", "--quiet"]) == 0
    tie, small = 0.1 + 0.2, 1e-20 / 3
    rows = [("a", tie, 0), ("a", np.nextafter(tie, 1), 1), ("a", np.nextafter(tie, 0), 0), ("a", None, None)]
    rows += [(None, small, 0), ("", np.nextafter(small, 1), 1), ("b", 0.9, None), ("a", np.inf, None)]
    frame = pd.DataFrame(rows, columns=["g", "p", "said"]).assign(id=range(len(rows)))
    assert ask(frame, Path("rule.sql").read_text()) == [said for *_, said in rows]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"rules": [RULE | {"share": 0.5}, RULE | {"share": 0.5, "from": "8" + "0" * 15}]},
            "SQL is written for one rule; one of these 2 is drawn for each person",
        ),
        ({"by": ["g", "h"], "rules": [RULE | {"thresholds": {"g=1, h=2, h=3": 0.5}}]}, "reads like a column of by"),
    ],
)
def test_what_sql_cannot_say_is_refused(changes, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("rules.json").write_text(json.dumps(FILE | changes))
    assert main(["apply", "rules.json", "--sql", "rule.sql"]) == 2
    assert words in capsys.readouterr().err
    assert not Path("rule.sql").exists()


def test_drawn_rules_are_refused_before_any_are_chosen(table, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    drawn = ["--decision", "sticky", "-o", "r.json", "--sql", "r.sql"]
    assert main(["choose", str(table / "people.parquet"), *ONE, *drawn]) == 2
    assert "Choose with --decision fixed." in capsys.readouterr().err
    assert main(["apply", "r.json"]) == 2
    assert "apply needs a table with --ids and --output, or --sql FILE and no table." in capsys.readouterr().err
