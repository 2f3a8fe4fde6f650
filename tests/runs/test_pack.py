"""The validation file of a run: complete, checkable without the package, without rows, and whole or not there."""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from counterpoise.cli import main
from counterpoise.goals import InfeasibleGoals
from counterpoise.persist import watch_changes
from counterpoise.report import pack as packing
from counterpoise.report import write_pack
from counterpoise.runs import DataError, RunFolderError, alternatives_run, fit_run, open_run

pytestmark = pytest.mark.slow  # each fits a run, or opens a browser

SETTINGS = """
confidence = "none"
goals = [{goal}]
[data]
files = "loans.csv"
target = "paid"
positive = "yes"
baseline = "today"
drop = ["weight"]
groups = ["sex"]
[splits]
test = {test}
[method]
models = [{{ name = "logistic" }}]
parameters = {{ cv = 2 }}
"""
PLANTED = ("Zebulon Quaxworth", "zq@example.org", "98765.4321")


def write_table(loans, place):
    frame = loans(700)
    frame.loc[3, "job"], frame.loc[4, "job"], frame.loc[5, "income"] = PLANTED[0], PLANTED[1], float(PLANTED[2])
    frame.loc[6, "sex"] = PLANTED[1]
    frame.to_csv(place / "loans.csv", index=False)


@pytest.fixture(scope="module")
def run(loans, tmp_path_factory):
    place = tmp_path_factory.mktemp("packed")
    write_table(loans, place)
    (place / "own.toml").write_text(SETTINGS.format(goal='"recall >= 0.95", "positive_rate <= 0.1"', test=0.3))
    with pytest.raises(InfeasibleGoals):
        fit_run(place / "own.toml", output=place / "run")
    (place / "own.toml").write_text(SETTINGS.format(goal='"recall >= 0.5"', test=0.3))
    return fit_run(place / "own.toml", output=place / "run")


@pytest.fixture(autouse=True)
def _no_browser(monkeypatch):
    monkeypatch.setattr(packing, "_BROWSERS", ())


@pytest.fixture(scope="module")
def packed(run):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "_BROWSERS", ())
        return write_pack(run, run.folder.parent / "pack")


def test_the_pack_has_every_part_and_says_what_is_missing(packed):
    names = {path.name for path in packed.folder.iterdir()}
    assert names == set(packed.files)
    assert {"README.md", "index.html", "report.html", "alternatives.html", "result.json", "audit.json"} <= names
    assert "There is no PDF" in packed.missing["pdf"]
    text = (packed.folder / "README.md").read_text(encoding="utf-8")
    for part in ("The model", "Goals, and where they came from", "Data", "Less discriminatory alternatives",
                 "What was tried", "How to reproduce", "no PDF", "recall \\>= 0.5",
                 "counterpoise fit goals.toml --output run"):  # fmt: skip
        assert part in text
    for name in names:
        if name.endswith(".json"):
            json.loads((packed.folder / name).read_text(encoding="utf-8"))


def test_goals_that_could_not_be_met_are_among_what_was_tried(packed):
    events = [one["event"] for one in json.loads((packed.folder / "tried.json").read_text(encoding="utf-8"))]
    assert any(event.startswith("stopped: InfeasibleGoals") and "positive_rate <= 0.1" in event for event in events)
    assert "positive_rate \\<= 0.1" in (packed.folder / "README.md").read_text(encoding="utf-8")


def test_no_value_of_few_rows_is_inside(packed):
    content = "\n".join(path.read_text(encoding="utf-8") for path in packed.folder.iterdir())
    assert not [value for value in PLANTED if value in content]
    assert not json.loads((packed.folder / "result.json").read_text(encoding="utf-8"))["examples"]


def test_checksums_are_verified_without_the_package(packed, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(packed.folder, copy)
    assert len((copy / "verify.py").read_text(encoding="utf-8").splitlines()) == 10

    def verify():
        command = [sys.executable, "-I", "-S", str(copy / "verify.py")]
        return subprocess.run(command, check=False, capture_output=True, text=True, env={})

    assert verify().returncode == 0
    (copy / "audit.json").write_text("{}")
    (copy / "README.md").unlink()
    shown = verify()
    assert shown.returncode == 1
    assert "changed or missing: README.md, audit.json" in shown.stdout


def test_a_folder_that_holds_something_is_refused_before_any_work(run, packed):
    with pytest.raises(RunFolderError, match="must be a new or empty folder"):
        write_pack(run, packed.folder)
    with pytest.raises(RunFolderError, match="There is no folder"):
        write_pack(run, packed.folder / "not" / "there")


@pytest.mark.slow
@pytest.mark.parametrize("stopped", [("write", "audit.json"), ("rename", "out")])
def test_a_full_disk_leaves_nothing(run, tmp_path, stopped):
    def fail(what, path):
        if (what, path.name) == stopped:
            raise OSError(28, "No space left on device", str(path))

    with watch_changes(fail), pytest.raises(RunFolderError, match="cannot be written: No space left on device"):
        write_pack(run, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")
def test_stopped_or_joined_by_another_at_every_write_a_folder_is_whole_or_not_there(tmp_path):
    files = {name: name.encode() for name in ("README.md", "audit.json", "SHA256SUMS")}

    def write_and(number, act):
        """Write in a process of its own, which does something at one of its writes; return whether it got so far."""
        child = os.fork()
        if not child:
            count = iter(range(100))
            with watch_changes(lambda *_: act() if next(count) == number else None), suppress(BaseException):
                packing._write_folder(tmp_path / "out", files)
            os._exit(next(count) <= number)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 1

    def fail(what, path):
        if what == "write":
            raise OSError(28, "No space left on device", str(path))

    def join(watcher=fail):  # begins, and stops before it has written
        with watch_changes(watcher), suppress(RunFolderError):
            packing._write_folder(tmp_path / "out", files)

    for act in (lambda: os.kill(os.getpid(), signal.SIGKILL), join):
        number = 0
        while write_and(number, act):
            names = {path.name for path in (tmp_path / "out").glob("*")}
            assert names in (set(), set(files)), number
            shutil.rmtree(tmp_path / "out", ignore_errors=True)
            number += 1
        assert number >= 2 * len(files)
        shutil.rmtree(tmp_path / "out")
    join(lambda *_: None)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]  # of the killed ones nothing is left


@pytest.mark.slow
def test_what_a_killed_process_left_is_removed_by_the_next(run, tmp_path):
    left = tmp_path / ".out.0a1b2c3d.part"
    left.mkdir()
    (left / "audit.json").write_text("{")
    (tmp_path / "out").mkdir()
    packed = write_pack(run, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert len(list(packed.folder.iterdir())) == len(packed.files)


@pytest.mark.slow
def test_alternatives_of_a_run_are_beside_the_deployed_model(run, capsys, tmp_path):
    found = alternatives_run(run, n_points=3)
    assert found.incumbent.name == "incumbent: the deployed model"
    assert found.models == ("logistic regression",)
    assert found.n_held_out == 210
    assert 0 < found.incumbent.chosen_performance < 1
    page, table = tmp_path / "page.html", tmp_path / "all.csv"
    words = ["alternatives", str(run.folder), "--points", "3", "--html", str(page), "--csv", str(table), "--json"]
    assert main([*words, "--other", str(run.folder)]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["points"][-1]["name"] == "run"
    assert len(table.read_text().splitlines()) == 1 + len(shown["points"])
    assert "Less discriminatory alternatives by sex" in page.read_text()
    assert main(["pack", str(run.folder), "-o", str(tmp_path / "out"), "--within", "0.02"]) == 0
    assert "There is no PDF" in capsys.readouterr().out


def test_runs_without_test_rows_or_groups_say_so(loans, tmp_path):
    write_table(loans, tmp_path)
    text = (
        SETTINGS.format(goal="", test=0)
        .replace('groups = ["sex"]\n', "")
        .replace('baseline = "today"', 'drop = ["today", "weight", "sex"]', 1)
    )
    text = text.replace('drop = ["weight"]\n', "", 1)
    (tmp_path / "goals.toml").write_text(text)
    run = fit_run(tmp_path / "goals.toml")
    with pytest.raises(ValueError, match="Pass --disparity: a column of groups"):
        alternatives_run(run)
    packed = write_pack(run, tmp_path / "out")
    assert "names no groups" in packed.missing["alternatives"]
    assert "It sets no goals." in (packed.folder / "README.md").read_text(encoding="utf-8")


def test_a_run_without_thresholds_is_refused(loans, tmp_path):
    write_table(loans, tmp_path)
    text = (
        SETTINGS.partition("[method]")[0].format(goal="", test=0.3)
        + '[method]\nname = "adaboost"\nparameters = { n_estimators = 2 }\n'
    )
    (tmp_path / "goals.toml").write_text(text)
    run = fit_run(tmp_path / "goals.toml")
    with pytest.raises(DataError, match="searched among thresholds of scores, and the method 'adaboost' has none"):
        alternatives_run(run)
    assert "No alternatives were searched" in write_pack(run, tmp_path / "out").missing["alternatives"]


def test_the_data_files_must_be_those_of_the_run(run, tmp_path):
    copied = tmp_path / "all"
    shutil.copytree(run.folder.parent, copied)
    path = copied / "loans.csv"
    path.write_text(path.read_text() + path.read_text().splitlines()[-1] + "\n")
    with pytest.raises(RunFolderError, match="have changed since it was fitted"):
        write_pack(open_run(copied / "run"), tmp_path / "out")
    assert not (tmp_path / "out").exists()
