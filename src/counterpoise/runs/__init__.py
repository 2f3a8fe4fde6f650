"""Runs on a user's own data: from a goals file to a folder with a model and every number about it.

``read_goals_file`` checks what is asked for, ``fit_run`` does it, ``open_run`` finds it again. What a run folder
holds is said in ``runs.folder``; the keys of a goals file in ``runs.settings``.
"""

from typing import TYPE_CHECKING

from counterpoise._lazy import lazy

if TYPE_CHECKING:
    from counterpoise.runs.errors import DataError, GoalsFileError, RunFolderError
    from counterpoise.runs.fit import fit_run
    from counterpoise.runs.folder import Run, open_run
    from counterpoise.runs.goals_file import read_goals_file
    from counterpoise.runs.settings import Settings
    from counterpoise.runs.starting import starting_file, write_new
    from counterpoise.runs.use import certify_run, evaluate_run, predict_run, rebalance_run

__all__ = [
    "DataError",
    "GoalsFileError",
    "Run",
    "RunFolderError",
    "Settings",
    "certify_run",
    "evaluate_run",
    "fit_run",
    "open_run",
    "predict_run",
    "read_goals_file",
    "rebalance_run",
    "starting_file",
    "write_new",
]

_HOME = {
    "DataError": "errors",
    "GoalsFileError": "errors",
    "Run": "folder",
    "RunFolderError": "errors",
    "Settings": "settings",
    "certify_run": "use",
    "evaluate_run": "use",
    "fit_run": "fit",
    "open_run": "folder",
    "predict_run": "use",
    "read_goals_file": "goals_file",
    "rebalance_run": "use",
    "starting_file": "starting",
    "write_new": "starting",
}

__getattr__, __dir__ = lazy(__name__, _HOME, extra="cli")
