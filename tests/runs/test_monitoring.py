"""Goals of a run over time: every batch counts once, whatever happens."""

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from tiers import some_fast

from counterpoise.auditing.verdicts import Moment, Verdicts
from counterpoise.persist import watch_changes
from counterpoise.report.page import write_page
from counterpoise.runs import (
    DataError,
    RunFolderError,
    fit_run,
    monitor_run,
    open_run,
    predict_run,
    rebalance_run,
)

GOALS = """
goals = ["recall >= 0.8", "selection_rate(sex=F) <= 0.9"]
[data]
files = "{folder}/loans.csv"
target = "paid"
positive = "yes"
drop = ["today", "weight"]
groups = "sex"
[method]
models = [{ name = "logistic" }]
parameters = { cv = 2, by = ["sex"] }
"""
STATE, LOG = "monitor.json", "monitor.jsonl"


@pytest.fixture(scope="module")
def fitted(loans_folder, tmp_path_factory):
    """Return a run folder; nobody writes there."""
    folder = tmp_path_factory.mktemp("monitored")
    (folder / "goals.toml").write_text(GOALS.replace("{folder}", str(loans_folder)))
    return fit_run(folder / "goals.toml", output=folder / "run").folder


@pytest.fixture
def run(fitted, tmp_path):
    """Return a run of its own for each test."""
    shutil.copytree(fitted, tmp_path / "run")
    return open_run(tmp_path / "run")


@pytest.fixture
def batch(loans, tmp_path):
    """Return a function that writes a batch, with ids and whatever else is changed in it."""

    def write(name="march.csv", seed=5, n_rows=400, change=lambda frame: frame):
        frame = loans(n_rows, seed).assign(id=[f"{name} {row}" for row in range(n_rows)])
        change(frame).to_csv(tmp_path / name, index=False)
        return tmp_path / name

    return write


def files_of(run):
    return {name: (run.folder / name).read_bytes() for name in (STATE, LOG) if (run.folder / name).exists()}


def test_a_batch_counts_once(run, batch):
    first = monitor_run(run, batch(), time="2026-03")
    before = files_of(run)
    again = monitor_run(run, batch())
    assert (first.is_new, again.is_new) == (True, False)
    assert files_of(run) == before
    assert "batch march.csv was counted before; nothing is counted again" in str(again)
    assert [line.rows for line in again.lines] == [400]
    assert first.verdicts == again.verdicts == monitor_run(run).verdicts
    assert json.loads(before[LOG])["time"] == "2026-03"


def test_a_log_that_was_changed_is_written_again_and_never_read(run, batch):
    lines = monitor_run(run, batch()).lines
    log = (run.folder / LOG).read_bytes()
    (run.folder / LOG).write_bytes(log.replace(b'"rows": 400', b'"rows": 900'))
    assert monitor_run(run).lines == lines
    assert (run.folder / LOG).read_bytes() == log


def test_other_rows_under_the_name_of_a_batch_are_refused(run, batch):
    monitor_run(run, batch())
    before = files_of(run)
    with pytest.raises(DataError, match=r"Batch 'march.csv' was counted already, and .* holds other rows"):
        monitor_run(run, batch(seed=6))
    assert files_of(run) == before
    assert monitor_run(run, batch(seed=6), name="april").is_new


def test_the_same_file_under_another_name_counts_and_is_said(run, batch):
    monitor_run(run, batch())
    summary = monitor_run(run, batch(), name="april")
    assert "is the same file as batch march.csv was, and counts again" in summary.notes[0]
    assert summary.lines[-1].n_rows == 800


def test_a_new_run_starts_a_monitor_of_its_own(run, batch, tmp_path):
    monitor_run(run, batch())
    other = rebalance_run(run, goals=["recall >= 0.5"], output=tmp_path / "other")
    assert monitor_run(other).lines == ()
    shutil.copy(run.folder / STATE, other.folder / STATE)
    with pytest.raises(RunFolderError, match="is of another run than the one in its folder"):
        monitor_run(other, batch())


def test_names_of_batches_are_only_text_on_the_page(run, batch):
    hostile = "</title><script>alert(1)</script>"
    summary = monitor_run(run, batch(), name=hostile, time="<img src=x onerror=alert(1)>")
    page = write_page(summary, run.folder / "page.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "<img" not in page
    assert "&lt;script&gt;alert(1)" in page


@pytest.mark.parametrize("damage", some_fast([b"{", b'{"run": "", "lines": 3}', b"[]"]))
def test_a_damaged_state_is_one_sentence(damage, run, batch):
    (run.folder / STATE).write_bytes(damage)
    with pytest.raises(RunFolderError, match=r"monitor\.json"):
        monitor_run(run, batch())
    assert (run.folder / STATE).read_bytes() == damage


def test_one_digit_of_the_state_that_changed_is_found(run, batch):
    monitor_run(run, batch())
    whole = (run.folder / STATE).read_bytes()
    (run.folder / STATE).write_bytes(whole.replace(b'"numbers": [400', b'"numbers": [401'))
    with pytest.raises(RunFolderError, match=r"monitor\.json is damaged \(its checksum"):
        monitor_run(run)


def test_batches_out_of_order_and_in_pieces_come_to_the_same_counts(run, batch, tmp_path):
    other = shutil.copytree(run.folder, tmp_path / "other")
    paths = [batch(f"{month}.csv", month) for month in (1, 2, 3)]
    forwards = [monitor_run(run, path) for path in paths][-1]
    backwards = [monitor_run(open_run(other), path) for path in reversed(paths)][-1]
    for one, two in zip(forwards.verdicts, backwards.verdicts, strict=True):
        assert one.estimate == pytest.approx(two.estimate, abs=1e-12)
        assert one.n_rows == two.n_rows


def test_labels_that_come_late_find_their_rows_by_id(run, batch, tmp_path):
    path = batch()
    late = pd.read_csv(path)[["id", "paid"]].sample(frac=1.0, random_state=0)
    pd.read_csv(path)[["id", "paid", "sex"]].to_csv(tmp_path / "decided.csv", index=False)  # who names no decisions
    late.loc[late.index[:30], "paid"] = None  # not known yet
    late.to_csv(tmp_path / "late.csv", index=False)
    waiting = monitor_run(run, batch(change=lambda frame: frame.drop(columns="paid")), ids="id")
    assert waiting.lines[-1].n_waiting == 400
    assert waiting.verdicts[0].n_rows == 0
    summary = monitor_run(run, tmp_path / "late.csv", ids="id")
    assert (summary.lines[-1].rows, summary.lines[-1].labels, summary.lines[-1].n_waiting) == (0, 370, 30)
    assert "370 labels of rows of other batches" in str(summary)
    with pytest.raises(DataError, match="must hold decisions, as it has column 'sex'"):
        monitor_run(run, tmp_path / "decided.csv", ids="id")


def test_rows_without_labels_and_ids_are_said_to_be_lost_for_goals_that_need_labels(run, batch):
    summary = monitor_run(run, batch(change=lambda frame: frame.drop(columns=["paid", "id"])))
    assert "400 rows came with neither a label nor an id: goals that need labels never count them" in str(summary)
    assert monitor_run(run).notes == summary.notes


def test_decisions_of_a_column_or_of_the_run(run, batch):
    path = batch()
    predict_run(run, path, path.with_name("decisions.csv"))
    decisions = pd.read_csv(path.with_name("decisions.csv"))["prediction"]
    columns = ["sex", "paid", "id"]
    decided = batch("decided.csv", change=lambda frame: frame[columns].assign(prediction=decisions))
    one, two = monitor_run(run, path).verdicts, monitor_run(run, decided).lines[-1]
    assert (two.decisions, two.n_others) == ("column prediction", None)  # without features nobody knows
    assert two.goals[0]["estimate"] == pytest.approx(one[0].estimate, abs=1e-12)
    named = batch("named.csv", change=lambda frame: frame[columns].assign(ours=decisions))
    assert monitor_run(run, named, prediction="ours").lines[-1].decisions == "column ours"


SPOILED = {
    "no file": (lambda _: None, "There is no data file"),
    "no rows": (lambda frame: frame[:0], "must hold rows; it has a header only"),
    "neither decisions nor features": (lambda frame: frame[["sex"]], "must hold decisions, or the features by which"),
    "no group column": (lambda frame: frame[["paid"]].assign(prediction="yes"), "sex"),
    "other classes": (lambda frame: frame.assign(paid="maybe"), r"must hold the classes 'no', 'yes'; it holds 'maybe'"),
    "other decisions": (lambda frame: frame.assign(prediction="maybe"), "must hold the classes 'no', 'yes'"),
    "a missing decision": (lambda frame: frame.assign(prediction=["yes", None] * 200), "must hold a label in each row"),
    "words among numbers": (lambda frame: frame.assign(age="old"), "'age' of .* must hold numbers as in training"),
    "an unknown group": (lambda frame: frame.assign(sex="X"), "hold the group 'sex=X', which has no threshold"),
}


@pytest.mark.parametrize("case", some_fast(list(SPOILED), 3))
def test_a_batch_that_is_refused_leaves_all_as_it_was(case, run, batch, tmp_path):
    change, words = SPOILED[case]
    monitor_run(run, batch())
    before = files_of(run)
    path = tmp_path / "none.csv" if case == "no file" else batch("bad.csv", change=change)
    with pytest.raises(ValueError, match=words):
        monitor_run(run, path)
    assert files_of(run) == before


@pytest.mark.parametrize("name", some_fast(["", "x" * 201, "two\nlines", "\ud800"]))
def test_names_of_batches_can_be_shown(name, run, batch):
    with pytest.raises(ValueError, match="The name of a batch must have 1 to 200 characters, all printable"):
        monitor_run(run, batch(), name=name)


@pytest.mark.parametrize("n_rows", some_fast([1, 2]))
def test_batches_of_a_row_or_two(n_rows, run, batch):
    summary = monitor_run(run, batch(n_rows=n_rows))
    assert [line.rows for line in summary.lines] == [n_rows]
    assert not summary.fails


def test_an_odd_name_of_a_batch_is_text_on_the_page(run, batch, tmp_path):
    summary = monitor_run(run, batch(), name="<b>March</b> & 'April' {{ 1 }}")
    page = write_page(summary, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<b>March" not in page
    assert "&lt;b&gt;March&lt;/b&gt; &amp; &#39;April&#39; {{ 1 }}" in page


def test_the_page_says_first_that_a_change_was_noticed(run, batch, tmp_path):
    summary = monitor_run(run, batch(), time="2026-03")
    moment = Moment("2026-03", 1, 400)
    changed = [one._replace(verdict="undecided", changed_at=moment, began=moment) for one in summary.verdicts[:1]]
    summary = summary._replace(verdicts=Verdicts([*changed, *summary.verdicts[1:]]))
    page = write_page(summary, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "A change was noticed, and no goal is shown to fail yet" in page
    assert page.index("A change was noticed at 2026-03, after 400 rows") < page.index("Each goal over time")


@pytest.mark.slow
def test_a_run_without_goals_says_what_to_do(run, batch, tmp_path):
    free = rebalance_run(run, goals=(), output=tmp_path / "free")
    with pytest.raises(ValueError, match=r"A monitor needs at least one goal.*counterpoise fit --from free --goal"):
        monitor_run(free, batch())


def places_of(run, path):
    """Return where files of a run change while a batch is counted."""
    places = []
    with watch_changes(lambda what, changed: places.append((what, changed.name))):
        monitor_run(run, path)
    return places


@pytest.mark.parametrize("code", some_fast([errno.ENOSPC, errno.EROFS]))
def test_a_disk_that_fails_at_any_write_leaves_the_old_state_or_the_new(code, fitted, batch, tmp_path):
    one, two = batch("one.csv", 1), batch("two.csv", 2)
    right = open_run(shutil.copytree(fitted, tmp_path / "right"))
    monitor_run(right, one)
    before = files_of(right)
    places = places_of(right, two)
    after = files_of(right)
    for number, place in enumerate(places):
        run = open_run(shutil.copytree(fitted, tmp_path / f"run {number}"))
        monitor_run(run, one)
        left = [number]

        def fail(_what, _path, left=left):
            left[0] -= 1
            if left[0] < 0:
                raise OSError(code, os.strerror(code))

        with watch_changes(fail), pytest.raises(OSError, match=os.strerror(code)):
            monitor_run(run, two)
        state = (run.folder / STATE).read_bytes()
        assert state in (before[STATE], after[STATE]), place
        assert monitor_run(run, two).is_new == (state == before[STATE])
        assert files_of(run) == after, place


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")
def test_killed_at_every_write_and_two_at_once_nothing_is_lost_or_counted_twice(run, batch, tmp_path):
    for month in range(1, 9):
        batch(f"{month}.csv", month)
    script = Path(__file__).with_name("killed_monitors.py")
    command = [sys.executable, str(script), str(run.folder), str(tmp_path)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    count = json.loads(found.stdout)
    assert count["killed"] >= 6
    assert count["batches of two"] == 8


def test_decisions_that_the_rule_does_not_make_are_counted(run, batch):
    path = batch("overruled.csv", n_rows=600, change=lambda frame: frame.assign(prediction="no"))
    summary = monitor_run(run, path)
    predict_run(run, path, path.with_name("own.csv"))
    others = int((pd.read_csv(path.with_name("own.csv"))["prediction"] != "no").sum())
    assert summary.lines[-1].n_others == others > 0
    assert f"{others} of which the rule of the run does not make" in str(summary)
