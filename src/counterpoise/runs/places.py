"""The files of a run folder by name, and checks of places; commands ask these before they load more."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from counterpoise.runs.errors import DataError, GoalsFileError, RunFolderError, check_columns

SETTINGS, DONE = "settings.json", "done.json"  # in every run folder; the second is written last
GOALS, MODEL, RESULT = "goals.toml", "model.cp", "result.json"
ENVIRONMENT, LOG = "environment.json", "log.txt"
KEY = "draws.key"  # hexadecimal digits in one line, for nobody but the owner
POOL_OUTPUTS = "pool_outputs.cp"  # of the rows of the run, so that no model need predict them again
MONITOR, MONITOR_LOG = "monitor.json", "monitor.jsonl"  # of batches that came after the run
_OWN = (GOALS, SETTINGS, MODEL, RESULT, ENVIRONMENT, LOG, DONE, POOL_OUTPUTS, KEY, MONITOR, MONITOR_LOG)
REPORT, MONITOR_PAGE = "report.html", "monitor.html"
CHECKPOINT = "checkpoint"  # a folder
PARQUET = (".parquet", ".pq")
_LONGEST_HEADER = 1 << 20  # characters


def is_run(folder: Path) -> bool:
    """Return whether a folder is known as one of a run."""
    return (folder / SETTINGS).is_file()


def check_run_folder(folder: str | Path) -> Path:
    """Return a folder that holds a finished run, by the names of its files."""
    folder = Path(folder)
    if not folder.is_dir():
        raise RunFolderError(f"There is no run folder {folder}. Make one with: counterpoise fit GOALS.")
    if not (folder / SETTINGS).is_file():
        raise RunFolderError(f"{folder} is not a run folder: it has no {SETTINGS}.")
    if not (folder / DONE).is_file():
        raise RunFolderError(
            f"The run in {folder} is not finished. Wait until its fit ends, or resume it with: "
            f"counterpoise fit GOALS --output {folder}."
        )
    return folder


def check_data_file(path: Path) -> None:
    """Check that a data file is there."""
    if not path.exists() and "\0" not in str(path):  # a name that can be of no file is refused where it is opened
        raise DataError(f"There is no data file {path}.")


def check_goals_path(path: Path) -> None:
    """Check that a goals file is there."""
    if path.is_dir():
        raise GoalsFileError(f"{path} must be a goals file (TOML); it is a folder.")
    if not path.exists():
        raise GoalsFileError(f"There is no goals file {path}. Write one with: counterpoise init DATA --target COLUMN.")


def check_header(path: Path, named: Mapping[str, Sequence[str]], delimiter: str | None, encoding: str | None) -> None:
    """Check that a CSV file has the columns that options name, before what reads whole files is loaded.

    It says nothing about a header that cannot be read this way: what reads the file says what is wrong.
    """
    if path.suffix.lower() in PARQUET or not path.is_file():
        return
    try:
        with path.open(encoding=encoding or "utf-8-sig", newline="") as stream:
            line = stream.readline(_LONGEST_HEADER)
            header = next(csv.reader([line], delimiter=delimiter or ","), []) if line.count('"') % 2 == 0 else []
    except (OSError, ValueError, LookupError, TypeError, csv.Error):
        return
    for option, names in named.items():
        if len(header) > 1:
            check_columns(names, header, path, f"--{option}: ")


def check_place(path: Path, *, read: Path | None = None, option: str = "--output") -> None:
    """Check, before any work is done for it, that a file can be written at ``path`` and is not the one to be read."""
    if path.is_dir():
        raise RunFolderError(f"{path} is a folder; {option} must name a file.")
    if not path.parent.is_dir():
        raise RunFolderError(f"There is no folder {path.parent} for {path.name}. Make it first, or name another place.")
    if path.name in _OWN and is_run(path.parent):
        raise RunFolderError(f"{path} is a part of the run itself; {option} must name another file.")
    if read is not None and path.exists() and read.exists() and path.samefile(read):
        raise RunFolderError(f"{path} is the data file itself; {option} must name another file.")
