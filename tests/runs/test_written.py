"""CSV files as other programs write them: what stands between columns, encodings, decimal commas; other files."""

import json

import numpy as np
import pandas as pd
import pytest

from counterpoise.runs import (
    DataError,
    GoalsFileError,
    audit_run,
    fit_run,
    predict_run,
    read_goals_file,
    starting_file,
)
from counterpoise.runs.data import odd_cell
from counterpoise.runs.reading import column_names, read_frame
from counterpoise.runs.settings import Written, written_as

EUROPEAN = {"sep": ";", "decimal": ",", "encoding": "latin-1"}
ASKED = (
    '{first}[data]\nfiles = "loans.csv"\ntarget = "paid"\ndrop = ["today", "weight"]\n{more}[method]\nname = "tree"\n'
)
KEYS = 'delimiter = ";"\ndecimal = ","\nencoding = "latin-1"\n'


@pytest.fixture
def european(loans, tmp_path):
    frame = loans().assign(job=lambda rows: rows["job"].replace("teacher", "Müller"))
    frame.to_csv(tmp_path / "loans.csv", index=False, **EUROPEAN)
    return frame


def test_a_run_reads_files_as_its_goals_file_says(european, tmp_path):
    (tmp_path / "goals.toml").write_text(ASKED.format(first="", more=KEYS))
    run = fit_run(tmp_path / "goals.toml")
    assert run.columns.numeric == ["age", "income"]
    assert "delimiter" in (run.folder / "settings.json").read_text()
    european.to_csv(tmp_path / "more.csv", index=False, **EUROPEAN)
    assert audit_run(run, tmp_path / "more.csv").rows == "more.csv"
    assert predict_run(run, tmp_path / "more.csv", tmp_path / "said.csv") == len(european)
    european.to_csv(tmp_path / "usual.csv", index=False)
    with written_as(Written(",", "utf-8", ".")):  # what a command says wins
        assert predict_run(run, tmp_path / "usual.csv", tmp_path / "same.csv") == len(european)
    assert (tmp_path / "said.csv").read_bytes() == (tmp_path / "same.csv").read_bytes()


@pytest.mark.usefixtures("european")
def test_init_sees_how_a_file_is_written(tmp_path):
    with written_as(Written(encoding="latin-1")):
        text = starting_file(tmp_path / "loans.csv", "paid")
    assert 'delimiter = ";"\nencoding = "latin-1"\ndecimal = ","\n' in text
    (tmp_path / "goals.toml").write_text(text)
    assert read_goals_file(tmp_path / "goals.toml").data.written == Written(";", "latin-1", ",")


@pytest.mark.parametrize(("mark", "encoding"), [("\t", "utf-16"), ("|", "utf-8")])
def test_init_sees_other_marks_and_utf_16(mark, encoding, tmp_path):
    (tmp_path / "a.csv").write_text("x|age|paid\n1.5|3|yes\n2|4|no\n".replace("|", mark), encoding=encoding)
    text = starting_file(tmp_path / "a.csv", "paid")
    assert f"delimiter = {json.dumps(mark)}" in text
    assert ("encoding" in text) == (encoding == "utf-16")


def test_a_table_of_one_column_and_commas_are_left_as_they_are(tmp_path):
    (tmp_path / "a.csv").write_text('paid,"a;b"\nyes,1\nno,2\n')
    assert "delimiter" not in starting_file(tmp_path / "a.csv", "paid")


FILES = {
    "semicolons": (
        b"a;b\n1;2\n",
        r"must have commas between columns; its header has ';'\. Name it with delimiter under \[data\] of a goals",
    ),
    "UTF-16": (
        "a,b\n1,2\n".encode("utf-16"),
        r"must be UTF-8 text; it is UTF-16\. Say so with encoding under \[data\]",
    ),
    "JSON": (
        b'[{"a": 1}, {"a": 2}]',
        r"it holds JSON\. Make a table of it first, as in pandas\.read_json\('table\.csv'\)",
    ),
    "JSON lines": (b'{"a": 1}\n{"a": 2}\n', "it holds JSON"),
    "a workbook": (b"PK\x03\x04rest", "it is an Excel workbook or a zip file"),
    "another encoding": (
        "naïve,b\n1,2\n".encode("latin-1"),
        "must be UTF-8 text; its header is not. Save the file as UTF-8",
    ),
}


@pytest.mark.parametrize(("content", "message"), FILES.values(), ids=FILES)
def test_other_files_are_named(content, message, tmp_path):
    (tmp_path / "table.csv").write_bytes(content)
    with pytest.raises(DataError, match=message):
        column_names(tmp_path / "table.csv")


def test_texts_of_another_encoding_say_which_option_to_use(tmp_path):
    (tmp_path / "a.csv").write_bytes("a,b\nnaïve,2\n".encode("latin-1"))
    with pytest.raises(
        DataError, match=r"column 'a' is not\. Save the file as UTF-8, or name its encoding, such as latin-1"
    ):
        read_frame(tmp_path / "a.csv", ["a"])
    with written_as(Written(encoding="latin-1")):
        assert read_frame(tmp_path / "a.csv", ["a"])["a"].tolist() == ["naïve"]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ('delimiter = ";;"', r"line 6, data\.delimiter: it must be one character, such as ';' or a tab; got ';;'"),
        ('encoding = "klingon"', r"data\.encoding: it must be one that Python knows, such as 'latin-1'; got 'klingon'"),
        ('decimal = ","', r"data\.decimal: it = ',' needs another delimiter than a comma"),
        ('decimal = "x"', r"data\.decimal: expected '\.' or ','; got 'x'"),
    ],
)
def test_impossible_ways_of_writing_are_refused(keys, message, tmp_path):
    (tmp_path / "goals.toml").write_text(ASKED.format(first="# goals\n", more=keys + "\n"))
    with pytest.raises(GoalsFileError, match=message):
        read_goals_file(tmp_path / "goals.toml")


def test_messages_name_the_cell_that_is_wrong(loans, goals_file, tmp_path):
    run = fit_run(goals_file())
    frame = loans(50, seed=3).astype({"age": object})
    frame.loc[6, "age"], frame.loc[9, "age"] = "forty", "old"
    frame.to_csv(tmp_path / "odd.csv", index=False)
    with pytest.raises(
        DataError, match=r"must hold numbers as in training; row 7 holds 'forty', and 1 more are not numbers\."
    ):
        audit_run(run, tmp_path / "odd.csv")
    frame = loans(50, seed=3).assign(paid=np.where(np.arange(50) == 4, 0.5, 1.0), income=1.0)
    frame.to_csv(tmp_path / "half.csv", index=False)
    with pytest.raises(
        DataError, match=r"Column 'paid' of .*half\.csv must hold classes; row 5 holds the fraction 0\.5\."
    ):
        starting_file(tmp_path / "half.csv", "paid")


@pytest.mark.parametrize("day", ["22/11/{}", "2.1.{}", "{}/03/04", "01-02-{} 10:30"])
def test_init_leaves_out_days_that_are_texts(day, tmp_path):
    rows = [f"{day.format(2000 + number % 9)},{'kl'[number % 2]},{'ab'[number % 2]}" for number in range(100)]
    (tmp_path / "t.csv").write_text("seen,job,y\n" + "\n".join(rows) + "\n")
    assert 'drop = ["seen"]    # dates, no numbers or texts' in starting_file(tmp_path / "t.csv", "y")


def test_init_takes_the_few_texts_among_numbers_for_missing(tmp_path):
    rows = [f"{number},{number / 7:.3f},{'ab'[number % 2]}" for number in range(100)]
    rows[56] = "56,n.a.,a"
    (tmp_path / "t.csv").write_text("id,income,y\n" + "\n".join(rows) + "\n")
    text = starting_file(tmp_path / "t.csv", "y")
    assert "drop = []" in text
    assert 'missing = ["n.a."]' in text
    assert '# "income" holds numbers except ["n.a."], first in row 57: taken as missing' in text


def test_with_decimal_commas_the_cell_is_named_that_is_no_number():
    column = pd.Series(["1,5", "2,25", "k.A.", "3.877,56"], dtype="category")
    with written_as(Written(";", None, ",")):
        assert odd_cell(column) == "row 3 holds 'k.A.', and 1 more are not numbers"


@pytest.mark.parametrize("encoding", ["rot13", "base64", "undefined", "none of these"])
def test_an_encoding_that_is_none_of_texts_is_refused(encoding):
    with pytest.raises(ValueError, match="encoding must be one that Python knows"):
        Written(encoding=encoding).check()


@pytest.mark.parametrize("delimiter", ["", "ab", "\0", "\n", '"', "\u00e4"])
def test_a_delimiter_that_no_reader_takes_is_refused(delimiter):
    with pytest.raises(ValueError, match="delimiter must be one character"):
        Written(delimiter=delimiter).check()
