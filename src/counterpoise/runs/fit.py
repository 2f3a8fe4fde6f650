"""Fitting a run: what a goals file asks for, or resuming an earlier fit that was stopped.

Errors in the file are raised before data are read, and before the code that fits models is loaded.
"""

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from counterpoise.runs.folder import Run, Writer, fingerprint
from counterpoise.runs.goals_file import parse_goals_file, read_bytes
from counterpoise.runs.settings import data_files

if TYPE_CHECKING:
    from counterpoise._base.progress import ProgressCallback


def ignore_event(_event: Any) -> None:
    """Do nothing with an event."""


def fit_run(
    goals_path: str | Path,
    *,
    output: str | Path | None = None,
    tell: "ProgressCallback" = ignore_event,
    on_event: Callable[[str], None] = ignore_event,
) -> Run:
    """Fit what a goals file asks for and write the run folder.

    A fit that was stopped, by Ctrl-C or a crash, resumes when it is called again with the same file; a finished one is
    returned as it is. One process writes to a run folder at a time, and others are refused.

    Parameters
    ----------
    goals_path : path
        The goals file; it names data files from its own folder.
    output : path, optional
        The run folder. Default: the one that the goals file names, from its own folder; else beside it, with its name.
    tell : callable
        Called after each round or model with the progress, a ``counterpoise._base.progress.RunProgress``.
    on_event : callable
        Called with the lines that also go into the log.

    Returns
    -------
    Run

    Raises
    ------
    GoalsFileError, DataError, RunFolderError
        For bad input, before anything is written, a folder that cannot be written, or that another process writes to.
    InfeasibleGoals
        If no mixture meets the goals. What was trained is kept for other goals.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from counterpoise.datasets import loans
    >>> from counterpoise.runs import fit_run, open_run, predict_run
    >>> text = '''
    ... goals = ["recall >= 0.6"]
    ... data = { files = "loans.csv", target = "default", positive = "yes" }
    ... method = { models = [{ name = "logistic" }], parameters = { cv = 2 } }
    ... '''
    >>> with tempfile.TemporaryDirectory() as place:
    ...     _ = (Path(place) / "goals.toml").write_text(text)
    ...     loans(300, random_state=0)[0].to_csv(Path(place) / "loans.csv", index=False)
    ...     run = fit_run(Path(place) / "goals.toml")
    ...     again = open_run(Path(place) / "goals")
    ...     again == run, [goal.text for goal in again.result().goals]
    ...     predict_run(again, Path(place) / "loans.csv", Path(place) / "predictions.csv")
    (True, ['recall >= 0.6'])
    300
    """
    path = Path(goals_path)
    content = read_bytes(path)
    settings = parse_goals_file(content, path)
    folder = Path(output) if output is not None else path.parent / (settings.output or path.stem)
    fingerprints = fingerprint(settings, data_files(settings, path.parent))
    writer = Writer(folder)
    command = [*program(), "fit", path.name, *([] if output is None else ["--output", folder.name])]

    def say(event: str) -> None:
        writer.log(event)
        on_event(event)

    with writer.claim(fingerprints) as is_to_do:
        if is_to_do:
            from counterpoise.runs.steps import fit_steps  # noqa: PLC0415 - heavy: errors in the file come first

            fit_steps(settings, content, path.parent, writer, fingerprints, shlex.join(command), tell, say)
        else:
            on_event(f"{folder} is done already: same settings, same data")
    return Run(folder, settings)


def program() -> list[str]:
    """Return the words that a command of this run begins with: metrics of a user's own come from a file."""
    goals = sys.modules.get("counterpoise.goals.catalogue")  # not loaded where nobody registered any
    return ["counterpoise", *(["--import", "FILE.py"] if goals is not None and goals.own_metrics() else [])]
