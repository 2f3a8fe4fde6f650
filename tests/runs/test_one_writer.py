"""One process writes to a run folder at a time: others are refused, wherever they meet it and by whatever name."""

import errno
import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from counterpoise.persist import watch_changes
from counterpoise.persist.locks import LOCK, FolderInUse, FolderLock
from counterpoise.report import write_report
from counterpoise.runs import RunFolderError, fit_run, open_run, predict_run, rebalance_run
from counterpoise.runs.places import CHECKPOINT, DONE, SETTINGS

POOL = 'name = "pool"\n[[method.models]]\nname = "naive_bayes"\n[[method.models]]\nname = "stump"\n'
EVERY = 12  # of the places where a fit is killed; with 1, at all of them and by everyone, it takes two minutes


@pytest.fixture
def small(goals_file):
    """Return a goals file of two models that are fitted at once."""
    text = goals_file().read_text().partition("[method]")[0]
    return goals_file(text + "[method]\n" + POOL)


@pytest.fixture
def run(small, tmp_path):
    return fit_run(small, output=tmp_path / "run")


@contextmanager
def stopped_at(place, action):
    """Do something once, just before a file is changed."""
    left = [action]

    def watcher(what, path):
        if left and f"{what} {path.name}" == place:
            left.pop()()

    with watch_changes(watcher):
        yield
    assert not left


def interrupt():
    raise KeyboardInterrupt


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")
def test_two_fits_on_one_folder_wherever_files_change(tmp_path):
    """A fit is met, and killed, wherever it changes a file: no run is ever wrong, and one of two is refused."""
    script = Path(__file__).with_name("two_processes.py")
    found = subprocess.run(
        [sys.executable, str(script), str(tmp_path), str(EVERY)], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    count = json.loads(found.stdout)
    assert count["refused"] > 20
    assert count["killed"] > 4


def test_a_second_fit_is_refused_and_changes_nothing(small, tmp_path):
    folder, seen = tmp_path / "run", []

    def meet():
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        with pytest.raises(
            RunFolderError, match=r"Another process \(\d+\) is writing to the run folder .*run\. Wait until"
        ):
            fit_run(small, output=folder)
        with pytest.raises(RunFolderError, match=r"is not finished\. Wait until its fit ends"):
            open_run(folder)
        seen.append(before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()})

    with stopped_at("write model-002.cp", meet):
        fit_run(small, output=folder)
    assert seen == [True]
    assert not (folder / LOCK).exists()


def test_a_folder_is_the_same_by_whatever_name(small, tmp_path, monkeypatch):
    (tmp_path / "run").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "run")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    with FolderLock(tmp_path / "run"):
        for name in ("../run", tmp_path / "link", tmp_path / "other" / ".." / "run"):
            with pytest.raises(RunFolderError, match="is writing to the run folder"):
                fit_run(small, output=name)
    assert fit_run(small, output="../link").folder.resolve() == tmp_path / "run"


def test_what_a_kill_leaves_of_a_lock_is_taken_over(small, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / LOCK).write_text(" 1\n")
    run = fit_run(small, output=tmp_path / "run")
    assert run.result().losses().error < 0.5
    assert not (run.folder / LOCK).exists()


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: path.symlink_to("elsewhere")], ids=["folder", "link"])
def test_a_lock_that_is_something_else_is_one_sentence(make, small, tmp_path):
    (tmp_path / "run").mkdir()
    make(tmp_path / "run" / LOCK)
    with pytest.raises(RunFolderError, match=r"run cannot be written: .*\. Run the same command again"):
        fit_run(small, output=tmp_path / "run")
    assert [path.name for path in (tmp_path / "run").iterdir()] == [LOCK]


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_a_place_that_takes_no_lock_is_one_sentence(code, small, tmp_path):
    def refuse(what, _path):
        assert what == "lock"
        raise OSError(code, os.strerror(code))

    with watch_changes(refuse), pytest.raises(RunFolderError, match=f"run cannot be written: {os.strerror(code)}"):
        fit_run(small, output=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_two_that_make_a_folder_at_once(tmp_path):
    """The one takes away the folder that it made while the other is about to lock it: the other makes it again."""
    folder = tmp_path / "deep" / "run"
    first = FolderLock(folder)
    first.__enter__()
    with pytest.raises(FolderInUse), FolderLock(folder):
        pass
    with stopped_at(f"lock {LOCK}", lambda: first.__exit__(None, None, None)), FolderLock(folder) as second:
        assert second.is_there()
    assert not (tmp_path / "deep").exists()


def test_bad_input_leaves_no_folder(goals_file, tmp_path):
    path = goals_file(replace={"recall": "recall(sex=W)"})
    with pytest.raises(ValueError, match="Unknown value 'W'"):
        fit_run(path, output=tmp_path / "some" / "where" / "run")
    assert not (tmp_path / "some").exists()


@pytest.mark.parametrize("move", [shutil.rmtree, lambda folder: folder.rename(folder.with_name("moved"))])
def test_a_folder_that_is_removed_or_moved_is_not_made_anew(move, small, tmp_path):
    folder = tmp_path / "run"

    def moved(progress):
        if progress.done == 1:
            move(folder)
            folder.mkdir()

    with pytest.raises(RunFolderError, match="run was removed or moved while it was written to"):
        fit_run(small, output=folder, tell=moved)
    assert not list(folder.iterdir())


def test_ctrl_c_leaves_no_lock_and_what_was_trained(small, tmp_path):
    folder = tmp_path / "run"
    with stopped_at("write model-002.cp", interrupt), pytest.raises(KeyboardInterrupt):
        fit_run(small, output=folder)
    assert sorted(path.name for path in (folder / CHECKPOINT).iterdir()) == ["model-001.cp"]
    assert not (folder / LOCK).exists()
    seen = []
    with watch_changes(lambda what, path: seen.append(f"{what} {path.name}")):
        fit_run(small, output=folder)
    assert "write model-002.cp" in seen
    assert "write model-001.cp" not in seen


def test_models_of_another_version_are_not_mixed_in(small, tmp_path):
    folder = tmp_path / "run"
    with stopped_at("write model-002.cp", interrupt), pytest.raises(KeyboardInterrupt):
        fit_run(small, output=folder)
    words = json.loads((folder / "environment.json").read_text())
    (folder / "environment.json").write_text(json.dumps(words | {"scikit-learn": "1.0"}))
    before = (folder / SETTINGS).stat().st_mtime_ns
    with pytest.raises(RunFolderError, match=r"was begun with scikit-learn 1\.0, and this is .*: install that version"):
        fit_run(small, output=folder)
    assert (folder / SETTINGS).stat().st_mtime_ns == before
    assert (folder / CHECKPOINT / "model-001.cp").exists()


def test_a_whole_run_is_known_by_its_own_fingerprint(run, small):
    (run.folder / DONE).write_text('{"fingerprint": "of another"}')
    for use in (lambda: open_run(run.folder), lambda: fit_run(small, output=run.folder)):
        with pytest.raises(RunFolderError, match=r"is damaged: done\.json is of another run than settings\.json"):
            use()


def test_a_mixture_chosen_anew_is_no_fit_of_the_same_settings(run, small, tmp_path):
    """LPBoost would train other models for another alpha; a mixture chosen anew has those of its run."""
    other = rebalance_run(run, alpha=0.5, output=tmp_path / "other")
    assert rebalance_run(run, alpha=0.5, output=tmp_path / "other") == other
    small.write_text(small.read_text().replace("alpha = 0.2", "alpha = 0.5"))
    with pytest.raises(RunFolderError, match="holds a run with other settings or data"):
        fit_run(small, output=tmp_path / "other")
    again = rebalance_run(open_run(other.folder), alpha=0.2, output=tmp_path / "back")
    assert again.settings == run.settings


@pytest.mark.slow
def test_whatever_is_written_into_a_run_folder_waits_for_its_turn(run, loans_folder):
    seen = []
    with watch_changes(lambda what, path: seen.append(f"{what} {path.name}")):
        write_report(run.folder)
        predict_run(run, loans_folder / "more.csv", run.folder / "said.csv")
        predict_run(run, loans_folder / "more.csv", run.folder.parent / "said.csv")
    inside = [f"lock {LOCK}", "write {}", "rename {}", f"unlock {LOCK}"]
    assert seen == [
        *(step.format("report.html") for step in inside),
        *(step.format("said.csv") for step in inside),
        "write said.csv",
        "rename said.csv",
    ]
    for name in ("model.cp", "done.json", "draws.key"):
        with pytest.raises(RunFolderError, match=f"{name} is a part of the run itself"):
            predict_run(run, loans_folder / "more.csv", run.folder / name)
