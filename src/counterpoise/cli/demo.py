"""The whole workflow in a minute, on generated data and on data from scikit-learn.

First a bank's loans, a population whose truth is known, so that the audit can be checked. Then tumours: few rows, and
a rate in place of the error. Each part writes a table and a goals file as a user would have them, fits it, and leaves
a run folder with a report.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from sklearn.datasets import load_breast_cancer

from counterpoise._base.progress import ProgressCallback
from counterpoise._base.text import text_table
from counterpoise.datasets import loans
from counterpoise.persist import write_atomically
from counterpoise.report import write_report
from counterpoise.runs import Run, fit_run
from counterpoise.runs.result import RunResult
from counterpoise.runs.results import DEPLOYED, FIRST, MIXTURE, TEST

Say = Callable[[str], None]
Progress = Callable[[], AbstractContextManager[ProgressCallback]]

_DECIDERS = (DEPLOYED, FIRST, MIXTURE)
_N_LOANS = 40_000
_N_TRUTH = 200_000  # people who were not in the table, on whom the true rates are measured


def run_demo(output: Path, say: Say, progress: Progress) -> list[Path]:
    """Run both parts and return the paths of their reports.

    Parameters
    ----------
    output : Path
        Folder for tables, goals files and run folders. What is there from an earlier demo is not fitted again.
    say : callable
        Called with lines for people on what happens.
    progress : callable
        Returns a context that yields the callback for the progress of a fit.

    Returns
    -------
    list of Path
    """
    return [_loans(output, say, progress), _tumours(output, say, progress)]


def _loans(output: Path, say: Say, progress: Progress) -> Path:

    say(
        f"1. Goals: {_N_LOANS:,} loans of a population that is made up, so that the truth is known. Refuse at least\n"
        "   70 % of those that will not be paid back, treat women and men alike, change few of last year's decisions,\n"
        "   else be wrong as rarely as possible. No decision uses sex.\n"
    )
    run, page = _fit_and_report(output, "loans", loans(_N_LOANS, random_state=0)[0], _truth_table, say, progress)
    n_rows = int(run.result().splits[TEST].rows)
    say(f"\n   The audit uses {n_rows:,} rows held out from training; the truth is that of {_N_TRUTH:,} others.\n")
    return page


def _truth_table(run: Run) -> str:
    """Return how the goals stand for three deciders, what the audit says, and what is true."""
    people, _ = loans(_N_TRUTH, random_state=1)
    decisions = run.model().predict(people, sensitive_features=people[["sex"]], baseline=people["last_year"])
    truth = _rates(people, decisions)
    heads = ("on the test rows", "last year", "plain model", "ours", "goal", "audit", "truth")
    return text_table([heads, *_lines(run.result(), truth)], "<>>>>>>")


def _lines(result: RunResult, truth: dict[str, float]) -> Iterator[tuple[str, ...]]:
    """Yield what each goal and the error are on the test rows, and in truth."""
    for name, goal in zip(truth, result.goals, strict=False):
        standing = goal.on(TEST)
        estimates = [_percent(goal.on(TEST, decider).estimate) for decider in _DECIDERS]
        sign = "at least" if ">=" in goal.text else "at most"
        yield (name, *estimates, f"{sign} {_percent(standing.bound)}", standing.verdict, _percent(truth[name]))
    errors = [_percent(result.losses(decider).error) for decider in _DECIDERS]
    yield ("wrong", *errors, "as few", "", _percent(truth["wrong"]))


def _rates(people: Any, decisions: Any) -> dict[str, float]:
    """Return what the goals refer to, and the error, of answers about people, counted by hand."""
    refused, bad = decisions == "yes", (people["default"] == "yes").to_numpy()
    of_sex = [refused[~bad & (people["sex"] == sex).to_numpy()].mean() for sex in ("F", "M")]
    return {
        "bad loans refused": refused[bad].mean(),
        "women less men, of good loans refused": abs(of_sex[0] - of_sex[1]),
        "decisions changed": (decisions != people["last_year"].to_numpy()).mean(),
        "wrong": (refused != bad).mean(),
    }


def _tumours(output: Path, say: Say, progress: Progress) -> Path:

    table = load_breast_cancer(as_frame=True).frame
    table["diagnosis"] = table.pop("target").map({0: "malignant", 1: "benign"})
    say("2. A rate in place of the error: miss as few malignant tumours as possible, with few false alarms.\n")
    return _fit_and_report(output, "tumours", table, _tumour_table, say, progress)[1]


def _tumour_table(run: Run) -> str:
    """Return misses and false alarms of plain training and of the rules."""
    result, deciders = run.result(), (FIRST, MIXTURE)
    missed = [_percent(result.losses(decider).objective) for decider in deciders]
    alarms = [_percent(result.goals[0].on(TEST, decider).estimate) for decider in deciders]
    heads = ("on 228 test rows", "logistic regression", "ours", "goal", "audit")
    rows = [("malignant missed", *missed, "as few", "")]
    rows.append(("benign alarmed", *alarms, "at most 15.0%", result.goals[0].on(TEST).verdict))
    return text_table([heads, *rows], "<>>>>")


def _fit_and_report(
    output: Path, name: str, frame: Any, summary: Callable[[Run], str], say: Say, progress: Progress
) -> tuple[Run, Path]:
    """Write a table and its goals file, fit it, say what came of it, and return the run with the path of its report."""
    with progress() as tell:
        write_atomically(output / f"{name}.csv", [frame.to_csv(index=False).encode()])
        write_atomically(output / f"{name}.toml", [Path(__file__).with_name(f"{name}.toml").read_bytes()])
        run = fit_run(output / f"{name}.toml", tell=tell)
        lines, page = summary(run).splitlines(), write_report(run.folder)
    say("\n".join(f"   {line}".rstrip() for line in lines))
    return run, page


def _percent(share: float) -> str:
    return f"{share:.1%}"
