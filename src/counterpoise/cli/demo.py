"""The whole workflow in a minute, on loans of a population whose truth is known, so that the audit can be checked.

It writes a table and a goals file as a user would have them, fits it, and leaves a run folder with a report. It ends
with the figure of the README for its own data: what was asked for, and what came on people who were not there.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from counterpoise._base.progress import ProgressCallback
from counterpoise._base.text import text_table
from counterpoise.datasets import loans
from counterpoise.persist import write_atomically
from counterpoise.report import write_report
from counterpoise.runs import Run, fit_run
from counterpoise.runs.results import DEPLOYED, FIRST, MIXTURE, TEST

Say = Callable[[str], None]
Progress = Callable[[], AbstractContextManager[ProgressCallback]]

_DECIDERS = {DEPLOYED: "last year", FIRST: "plain model", MIXTURE: "counterpoise"}
_N_LOANS = 20_000
_N_TRUTH = 100_000  # people who were not in the table, on whom the true rates are measured
_BOUND = 20  # the column of a bar at which a goal's bound stands


def run_demo(output: Path, say: Say, progress: Progress) -> tuple[Path, Path]:
    """Fit the loans and say what came of it.

    Parameters
    ----------
    output : Path
        Folder for the table, the goals file and the run folder. What is there from an earlier demo is not fitted again.
    say : callable
        Called with lines for people on what happens.
    progress : callable
        Returns a context that yields the callback for the progress of a fit.

    Returns
    -------
    tuple of Path
        The report and the run folder.
    """
    say(
        f"{_N_LOANS:,} loans of a population that is made up, so that the truth is known. Three goals: refuse at\n"
        "least 70 % of those that will not be paid back, refuse good loans of women and men alike, change few of\n"
        "last year's decisions. Inside them, be wrong as rarely as possible. No decision uses sex.\n"
    )
    with progress() as tell:
        write_atomically(output / "loans.csv", [loans(_N_LOANS, random_state=0)[0].to_csv(index=False).encode()])
        write_atomically(output / "loans.toml", [Path(__file__).with_name("loans.toml").read_bytes()])
        run = fit_run(output / "loans.toml", tell=tell)
        truth, page = _truth(run), write_report(run.folder)
    n_rows = int(run.result().splits[TEST].rows)
    say(f"The audit, on {n_rows:,} rows that took no part in the fit:\n")
    say(_audit(run))
    say(
        f"\nWhere a verdict is undecided, {n_rows:,} rows are too few to tell. The truth is known here: what was\n"
        f"asked (|), and what came on {_N_TRUTH:,} other people:\n"
    )
    say("\n".join(_bars(run, truth)))
    return page, run.folder


def _truth(run: Run) -> dict[str, dict[str, float]]:
    """Return of each decider the rates that the goals refer to, and the error, counted by hand on new people."""
    people, _ = loans(_N_TRUTH, random_state=1)
    columns = {"sensitive_features": people[["sex"]], "baseline": people["last_year"]}
    model = run.model()
    plain = model.predict_proba(people)[:, list(model.classes_).index("yes")] > 1 / 2
    refused = {DEPLOYED: people["last_year"] == "yes", FIRST: plain, MIXTURE: model.predict(people, **columns) == "yes"}
    return {decider: _rates(people, refused[decider]) for decider in _DECIDERS}


def _rates(people: Any, refused: Any) -> dict[str, float]:
    bad = (people["default"] == "yes").to_numpy()
    of_sex = [refused[~bad & (people["sex"] == sex).to_numpy()].mean() for sex in ("F", "M")]
    return {
        "bad loans refused": refused[bad].mean(),
        "women less men, of good loans refused": abs(of_sex[0] - of_sex[1]),
        "decisions changed": (refused != (people["last_year"] == "yes")).mean(),
        "wrong": (refused != bad).mean(),
    }


def _audit(run: Run) -> str:
    """Return a table of what each goal is on the test rows, between which ends, and the verdict."""
    heads = ("goal", "estimate", "low", "high", "verdict")
    found = [(goal.text, goal.on(TEST)) for goal in run.result().goals]
    lines = [(text, *map(_percent, (one.estimate, one.low, one.high)), one.verdict) for text, one in found]
    return text_table([heads, *lines], "<>>><")


def _bars(run: Run, truth: dict[str, dict[str, float]]) -> Iterator[str]:
    """Yield the lines of a figure: for each goal a bar of each decider, which crosses the bound or does not."""
    goals = run.result().goals
    for name, goal in zip(truth[MIXTURE], goals, strict=False):
        bound, at_least = goal.on(TEST).bound, ">=" in goal.text
        yield f"{name}: {'at least' if at_least else 'at most'} {_percent(bound)}"
        for decider, label in _DECIDERS.items():
            rate = truth[decider][name]
            length = max(0, min(2 * _BOUND, round(_BOUND * rate / bound)))
            bar = ("#" * length).ljust(2 * _BOUND)
            kept = rate >= bound if at_least else rate <= bound
            yield f"  {label:12} {bar[:_BOUND]}|{bar[_BOUND:]} {_percent(rate):>6}{'' if kept else ' missed'}"
    errors = ", ".join(f"{label} {_percent(truth[decider]['wrong'])}" for decider, label in _DECIDERS.items())
    yield f"wrong decisions: {errors}"


def _percent(share: float) -> str:
    return f"{share:.1%}"
