"""Runs that were stopped, by goals, an interrupt or a full disk, go on to the same result."""

import errno
import os
import shutil

import pytest
from run_numbers import numbers as run_numbers

from counterpoise.goals import InfeasibleGoals
from counterpoise.persist import watch_changes
from counterpoise.runs import RunFolderError, fit_run, open_run
from counterpoise.runs.places import CHECKPOINT, DONE


def numbers(folder):
    """Return all results but times, which differ between runs."""
    return {row.run: row.value for row in run_numbers(open_run(folder))}


def fit_afresh(path, run):
    """Fit in another folder what a run was to become, with its key: what is measured are the decisions drawn."""
    fresh = run.parent / "fresh"
    fresh.mkdir()
    shutil.copy(run / "draws.key", fresh)
    fit_run(path, output=fresh)


@pytest.mark.slow
def test_impossible_goals_pass_through_and_other_goals_go_on_from_the_same_rounds(goals_file, tmp_path):
    path = goals_file(replace={'"recall >= 0.5"': '"recall >= 0.99", "positive_rate <= 0.1"'})
    with pytest.raises(InfeasibleGoals, match="cannot hold"):
        fit_run(path, output=tmp_path / "run")
    with pytest.raises(RunFolderError, match="is not finished"):
        open_run(tmp_path / "run")
    assert "stopped: InfeasibleGoals" in (tmp_path / "run" / "log.txt").read_text()
    events = []
    fit_run(goals_file(), output=tmp_path / "run", on_event=events.append)
    assert events[0].startswith("resumes: ")
    fit_afresh(goals_file(), tmp_path / "run")
    assert numbers(tmp_path / "run") == numbers(tmp_path / "fresh")


@pytest.mark.slow
def test_a_fit_that_stopped_at_its_end_meets_the_goals_that_are_asked_for_now(goals_file, tmp_path):
    fit_run(goals_file(), output=tmp_path / "run")
    (tmp_path / "run" / DONE).unlink()  # as if it had been stopped after its model was written
    other = goals_file(replace={"recall >= 0.5": "recall >= 0.8"})
    run = fit_run(other, output=tmp_path / "run")
    assert [goal.bound for goal in run.waiting_model()[-1].goals_] == [0.8]
    fit_afresh(other, tmp_path / "run")
    assert numbers(tmp_path / "run") == numbers(tmp_path / "fresh")


@pytest.mark.slow
def test_a_damaged_model_of_a_pool_is_fitted_again(goals_file, tmp_path):
    pool = '[method]\nname = "pool"\n[[method.models]]\nname = "logistic"\n[[method.models]]\nname = "tree"\n'
    text = '{goals}\n[data]\nfiles = "{folder}/loans.csv"\ntarget = "paid"\ndrop = ["today", "weight"]\n' + pool
    impossible = 'goals = ["recall >= 0.99", "positive_rate <= 0.1"]'
    with pytest.raises(InfeasibleGoals):
        fit_run(goals_file(text.replace("{goals}", impossible)), output=tmp_path / "run")
    kept = tmp_path / "run" / CHECKPOINT / "model-002.cp"
    kept.write_bytes(kept.read_bytes()[:100])
    events = []
    fit_run(goals_file(text.replace("{goals}", "goals = []")), output=tmp_path / "run", on_event=events.append)
    assert "model-002.cp of the checkpoint cannot be read; the model is fitted again" in events
    fit_afresh(goals_file(text.replace("{goals}", "goals = []")), tmp_path / "run")
    assert numbers(tmp_path / "run") == numbers(tmp_path / "fresh")


def failing(code, *names):
    """Return a disk that takes no file of these names."""

    def watcher(_what, path):
        if path.name in names:
            raise OSError(code, os.strerror(code))

    return watch_changes(watcher)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_disk_that_cannot_be_written_is_one_sentence_and_the_run_goes_on_later(code, goals_file, tmp_path):
    folder = tmp_path / "run"
    message = f"model.cp cannot be written: {os.strerror(code)}"
    with failing(code, "model.cp"), pytest.raises(RunFolderError, match=message):
        fit_run(goals_file(), output=folder)
    assert not list(folder.rglob("*.part"))
    run = fit_run(goals_file(), output=folder)
    assert (run.folder / DONE).exists()


@pytest.mark.slow
def test_a_disk_that_is_full_while_rounds_are_kept_is_one_sentence(goals_file, tmp_path):
    message = r"checkpoint cannot be written: .*round-00003\.cp.*No space left on device"
    with failing(errno.ENOSPC, "round-00003.cp"), pytest.raises(RunFolderError, match=message):
        fit_run(goals_file(), output=tmp_path / "run")
    assert fit_run(goals_file(), output=tmp_path / "run").result().losses().error < 0.5


@pytest.mark.slow
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


@pytest.mark.slow
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
