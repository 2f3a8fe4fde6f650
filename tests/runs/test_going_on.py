"""Runs that were stopped, by goals, an interrupt, a kill or a full disk, go on to the same result."""

import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from counterpoise.boosting.checkpoint import rounds_done
from counterpoise.goals import InfeasibleGoals
from counterpoise.runs import RunFolderError, fit_run, open_run
from counterpoise.runs import folder as run_folder
from counterpoise.runs.data import load_data
from counterpoise.runs.folder import CHECKPOINT, DONE
from counterpoise.runs.results import read_rows


def numbers(folder):
    """Return all results but times, which differ between runs."""
    return {row.run: row.value for row in read_rows(folder / "results.csv") if row.quantity != "seconds"}


def fit_afresh(path, run):
    """Fit in another folder what a run was to become, with its key: what is measured are the decisions drawn."""
    fresh = run.parent / "fresh"
    fresh.mkdir()
    shutil.copy(run / "draws.key", fresh)
    fit_run(path, output=fresh)


def test_impossible_goals_pass_through_and_other_goals_go_on_from_the_same_rounds(goals_file, tmp_path):
    path = goals_file(replace={'"recall(train) >= 0.5"': '"recall(train) >= 0.99", "positive_rate(train) <= 0.1"'})
    with pytest.raises(InfeasibleGoals, match="cannot hold"):
        fit_run(path, output=tmp_path / "run")
    with pytest.raises(RunFolderError, match="is not whole"):
        open_run(tmp_path / "run")
    assert "stopped: InfeasibleGoals" in (tmp_path / "run" / "log.txt").read_text()
    events = []
    fit_run(goals_file(), output=tmp_path / "run", on_event=events.append)
    assert events[0].startswith("goes on: ")
    fit_afresh(goals_file(), tmp_path / "run")
    assert numbers(tmp_path / "run") == numbers(tmp_path / "fresh")


def test_a_damaged_model_of_a_pool_is_fitted_again(goals_file, tmp_path):
    pool = '[method]\nname = "pool"\n[[method.models]]\nname = "logistic"\n[[method.models]]\nname = "tree"\n'
    text = '{goals}\n[data]\nfiles = "{folder}/loans.csv"\ntarget = "paid"\ndrop = ["today", "weight"]\n' + pool
    impossible = 'goals = ["recall(train) >= 0.99", "positive_rate(train) <= 0.1"]'
    with pytest.raises(InfeasibleGoals):
        fit_run(goals_file(text.replace("{goals}", impossible)), output=tmp_path / "run")
    kept = tmp_path / "run" / CHECKPOINT / "model-002.cp"
    kept.write_bytes(kept.read_bytes()[:100])
    events = []
    fit_run(goals_file(text.replace("{goals}", "goals = []")), output=tmp_path / "run", on_event=events.append)
    assert "model-002.cp of the checkpoint cannot be read; the model is fitted again" in events
    fit_afresh(goals_file(text.replace("{goals}", "goals = []")), tmp_path / "run")
    assert numbers(tmp_path / "run") == numbers(tmp_path / "fresh")


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_disk_that_cannot_be_written_is_one_sentence_and_the_run_goes_on_later(
    code, goals_file, tmp_path, monkeypatch
):
    real = run_folder.write_atomically

    def full(path, chunks):
        if path.name == "model.cp":
            raise OSError(code, os.strerror(code))
        real(path, chunks)

    with monkeypatch.context() as patch:
        patch.setattr(run_folder, "write_atomically", full)
        with pytest.raises(RunFolderError, match=f"model.cp cannot be written: {os.strerror(code)}"):
            fit_run(goals_file(), output=tmp_path / "run")
    assert not list((tmp_path / "run").rglob("*.part"))
    run = fit_run(goals_file(), output=tmp_path / "run")
    assert (run.folder / DONE).exists()


def test_a_disk_that_is_full_while_rounds_are_kept_is_one_sentence(goals_file, tmp_path, monkeypatch):
    def full(*_arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("counterpoise.boosting.checkpoint.Checkpoint._write", full)
        with pytest.raises(RunFolderError, match="checkpoint cannot be written: No space left on device"):
            fit_run(goals_file(), output=tmp_path / "run")
    assert fit_run(goals_file(), output=tmp_path / "run").summary().error < 0.5


def test_another_alpha_goes_on_from_the_same_rounds(goals_file, tmp_path):
    def stop(progress):
        if progress.done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_run(goals_file(), output=tmp_path / "run", tell=stop)
    other = goals_file(replace={"alpha = 0.2": "alpha = 0.5"})
    rounds = []
    fit_run(other, output=tmp_path / "run", tell=lambda progress: rounds.append(progress.done))
    assert rounds[0] > 1
    fit_afresh(other, tmp_path / "run")
    assert numbers(tmp_path / "run") == numbers(tmp_path / "fresh")


def test_an_interrupt_leaves_a_run_that_goes_on_to_the_same_result(goals_file, tmp_path):
    def stop(progress):
        if progress.done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_run(goals_file(), output=tmp_path / "run", tell=stop)
    assert (tmp_path / "run" / CHECKPOINT).is_dir()
    rounds = []
    fit_run(goals_file(), output=tmp_path / "run", tell=lambda progress: rounds.append(progress.done))
    assert rounds[0] > 1
    fit_afresh(goals_file(), tmp_path / "run")
    assert numbers(tmp_path / "run") == numbers(tmp_path / "fresh")
    assert not (tmp_path / "run" / CHECKPOINT).exists()


KILLED = """
import sys, time
from counterpoise.runs import fit_run
fit_run(sys.argv[1], output=sys.argv[2], tell=lambda progress: time.sleep(0.05))
"""


def killed(path, folder, delay):
    """Fit in another process, kill it a moment after it has done one more round, and tell whether it was running."""
    before = rounds_done(folder / CHECKPOINT)
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(path), str(folder)])
    while process.poll() is None and rounds_done(folder / CHECKPOINT) <= before:
        time.sleep(0.01)
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


def test_a_killed_fit_goes_on_to_the_same_result(goals_file, tmp_path):
    """Kill at moments drawn with a seed, then let it go on to the end."""
    path, folder = goals_file(replace={"n_estimators = 8": "n_estimators = 40"}), tmp_path / "run"
    moments = random.Random(0)  # noqa: S311 - moments are no secret
    assert sum(killed(path, folder, moments.uniform(0.0, 0.3)) for _ in range(3)) >= 1
    fit_run(path, output=folder)
    fit_afresh(path, folder)
    assert numbers(folder) == numbers(tmp_path / "fresh")
    said = [open_run(one).model().predict for one in (folder, tmp_path / "fresh")]
    rows = load_data(open_run(folder).settings, tmp_path).splits["test"].X
    np.testing.assert_array_equal(said[0](rows), said[1](rows))
