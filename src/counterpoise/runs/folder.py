"""A run folder: what it holds, how it is written and found again.

    goals.toml        the goals file as read, byte for byte
    settings.json     the checked settings with defaults filled in, the types of columns, fingerprints
    draws.key         the key of the draws, for nobody but the owner (``runs.keys``); the model has it too
    model.cp          the fitted model (``counterpoise.load``): takes frames with the columns of the data files
    results.csv       every number, one long table (``counterpoise.results``)
    texts.json        the words that belong to its rows
    environment.json  versions, platform, time
    log.txt           one line an event
    checkpoint/       what is fitted so far; removed when done
    done.json         written last: the run is whole
    report.html       what ``counterpoise.report`` makes of the rest

Every file is written beside its place and renamed. A run without ``done.json`` is one that can go on.
"""

import hashlib
import json
import os
import platform
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from counterpoise.persist import write_atomically
from counterpoise.results import ResultRow, ResultsTable, append_rows, read_rows
from counterpoise.runs.columns import Columns
from counterpoise.runs.errors import DataError, RunFolderError
from counterpoise.runs.keys import KEY
from counterpoise.runs.methods import training_needs_alpha
from counterpoise.runs.output import REPORT
from counterpoise.runs.settings import Settings
from counterpoise.runs.summary import Summary, summarize_run

GOALS, SETTINGS, MODEL, RESULTS = "goals.toml", "settings.json", "model.cp", "results.csv"
TEXTS, ENVIRONMENT, LOG, CHECKPOINT, DONE = "texts.json", "environment.json", "log.txt", "checkpoint", "done.json"
_FORMAT = 1
_CHUNK = 1 << 20
_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "highspy", "pandas", "pyarrow", "pydantic", "skops")


class Run(NamedTuple):
    """A finished run."""

    folder: Path
    settings: Settings

    def model(self) -> Any:
        """Return the fitted model, which takes frames with the columns of the data files."""
        from counterpoise.persist import load  # noqa: PLC0415 - only where the model is wanted

        return load(self.folder / MODEL)

    def results(self) -> ResultsTable:
        """Return every number of the run."""
        return read_rows(self.folder / RESULTS)

    def texts(self) -> dict[str, Any]:
        """Return the words that belong to the rows of the results."""
        return read_json(self.folder / TEXTS)

    def summary(self) -> Summary:
        """Return what the run came to: each goal on the test rows, and the loss of the tail."""
        try:
            return summarize_run(self.settings, self.results(), self.texts())
        except (KeyError, IndexError, TypeError) as error:
            raise RunFolderError(f"The results in {self.folder} are damaged. Fit the run again elsewhere.") from error

    @property
    def report(self) -> Path:
        """Return where the report of the run is, once it is written."""
        return self.folder / REPORT

    @property
    def columns(self) -> Columns:
        """Return the features that the model was fitted on."""
        return Columns(**read_json(self.folder / SETTINGS)["columns"])

    @property
    def sources(self) -> Path:
        """Return the folder that data files are named from, as short as the run folder was named."""
        place = self.folder / str(read_json(self.folder / SETTINGS)["sources"])
        short = Path(os.path.normpath(place))
        return short if short.resolve() == place.resolve() else place.resolve()  # links on the way: no short name


def open_run(folder: str | Path) -> Run:
    """Return a finished run.

    Parameters
    ----------
    folder : path
        What ``fit_run`` or ``rebalance_run`` wrote.

    Returns
    -------
    Run

    Raises
    ------
    RunFolderError
        Where there is no such folder, it is something else, or its run is not whole.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise RunFolderError(f"There is no run folder {folder}. Make one with: counterpoise fit GOALS.")
    if not (folder / SETTINGS).is_file():
        raise RunFolderError(f"{folder} is no run folder: it has no {SETTINGS}.")
    if not (folder / DONE).is_file():
        raise RunFolderError(f"The run in {folder} is not whole. Let it go on with: counterpoise fit GOALS.")
    absent = [name for name in (GOALS, MODEL, RESULTS, TEXTS, ENVIRONMENT) if not (folder / name).is_file()]
    if absent:
        raise RunFolderError(f"The run in {folder} is damaged: it lacks {', '.join(absent)}. Fit it again elsewhere.")
    return Run(folder, _settings(folder))


def _settings(folder: Path) -> Settings:
    try:
        words = read_json(folder / SETTINGS)
        Columns(**words["columns"])
        (folder / words["sources"]).resolve()
        return Settings.model_validate({key: words[key] for key in Settings.model_fields})
    except (KeyError, TypeError, ValueError) as error:
        raise RunFolderError(f"{folder / SETTINGS} is damaged. Fit the run again in another folder.") from error


class Prints(NamedTuple):
    """What tells runs apart: all settings and data, and those that decide what is trained."""

    run: str
    training: str


def fingerprints(settings: Settings, files: Iterable[Path]) -> Prints:
    """Return hashes of settings and of the bytes of data files; the output folder plays no role."""
    data = [_hash_of(path) for path in files]
    asked = settings.model_dump(mode="json", exclude={"output"})
    training = {key: value for key, value in asked.items() if key not in {"goals", "alpha", "confidence"}}
    if training_needs_alpha(settings.method):
        training["alpha"] = asked["alpha"]
    return Prints(_hash([_FORMAT, asked, data]), _hash([_FORMAT, training, data]))


def _hash(values: Any) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _hash_of(path: Path) -> str:
    found = hashlib.sha256()
    try:
        with path.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                found.update(chunk)
    except FileNotFoundError as error:
        raise DataError(f"There is no data file {path}.") from error
    except IsADirectoryError as error:
        raise DataError(f"{path} must be a CSV or Parquet file; it is a folder.") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error
    return found.hexdigest()


class Writer:
    """Writes a run folder, and takes up what an earlier fit left there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def is_done(self, prints: Prints) -> bool:
        """Tell whether the folder holds this run, whole; refuse one that holds something else."""
        if not self.folder.exists():
            return False
        if not self.folder.is_dir():
            raise RunFolderError(f"The run folder {self.folder} must be a folder; there is a file of that name.")
        known = self.folder / SETTINGS
        if not known.is_file():
            if any(one.name not in (LOG, KEY) and not one.name.endswith(".part") for one in self.folder.iterdir()):
                raise RunFolderError(
                    f"The run folder {self.folder} must be new or empty; it holds other files. Choose another output."
                )
            return False
        if not (self.folder / DONE).is_file():
            return False
        if read_json(known).get("fingerprint") != prints.run:
            raise RunFolderError(
                f"{self.folder} holds a run with other settings or data. Name another folder with output, or delete it."
            )
        return True

    def begin(self, content: bytes, settings: Settings, columns: Columns, prints: Prints, sources: Path) -> bool:
        """Write what is known before the fit; return whether an earlier fit of the same run goes on."""
        before = read_json(self.folder / SETTINGS) if (self.folder / SETTINGS).is_file() else {}
        if before.get("training") != prints.training:
            shutil.rmtree(self.folder / CHECKPOINT, ignore_errors=True)
        if before.get("fingerprint") != prints.run:
            for name in (MODEL, RESULTS, TEXTS, REPORT):
                (self.folder / name).unlink(missing_ok=True)
        for left in self.folder.glob(".*.part") if self.folder.is_dir() else ():
            left.unlink()
        self.write(GOALS, content)
        words = {
            **settings.model_dump(mode="json"),
            "columns": columns._asdict(),
            "fingerprint": prints.run,
            "training": prints.training,
            "sources": os.path.relpath(sources.resolve(), self.folder.resolve()),
        }
        self.write(SETTINGS, _as_json(words))
        self.write(ENVIRONMENT, _as_json(environment()))
        return before.get("training") == prints.training and (self.folder / CHECKPOINT).exists()

    def save_model(self, model: Any) -> None:
        """Write the model."""
        from counterpoise.persist import dumps  # noqa: PLC0415 - only where a model was fitted

        self.write(MODEL, dumps(model))

    def finish(self, rows: Iterable[ResultRow], texts: Mapping[str, Any], prints: Prints) -> None:
        """Write the results, say that the run is whole, and drop the checkpoint."""
        try:
            (self.folder / RESULTS).unlink(missing_ok=True)
            append_rows(self.folder / RESULTS, rows)
        except OSError as error:
            raise unwritten(self.folder / RESULTS, error) from error
        self.write(TEXTS, _as_json(texts))
        self.log("done")
        self.write(DONE, _as_json({"fingerprint": prints.run}))
        shutil.rmtree(self.folder / CHECKPOINT, ignore_errors=True)

    def write(self, name: str, content: bytes) -> None:
        """Write one file of the folder."""
        try:
            write_atomically(self.folder / name, [content])
        except OSError as error:
            with suppress(OSError):  # it holds something already, or was never made
                self.folder.rmdir()
            raise unwritten(self.folder / name, error) from error

    def log(self, event: str) -> None:
        """Add a line to the log."""
        try:
            with (self.folder / LOG).open("a", encoding="utf-8") as stream:
                stream.write(f"{_now()} {event}\n")
        except OSError as error:
            raise unwritten(self.folder / LOG, error) from error


def environment() -> dict[str, str]:
    """Return what a run was made with: versions, platform and time, and nothing about who or where."""
    from counterpoise import __version__  # noqa: PLC0415 - a package that imports this one

    found = {"counterpoise": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found | {"platform": f"{platform.system()} {platform.machine()}", "time": _now()}


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file of a run folder."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RunFolderError(f"{path} cannot be read: {error.strerror or error}.") from error
    except ValueError as error:
        raise RunFolderError(f"{path} cannot be read: it is no JSON.") from error
    if not isinstance(found, dict):
        raise RunFolderError(f"{path} must hold a JSON object; it holds {type(found).__name__}.")
    return found


def _as_json(words: Mapping[str, Any]) -> bytes:
    return (json.dumps(words, indent=1, ensure_ascii=False) + "\n").encode()


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def unwritten(path: Path, error: OSError) -> RunFolderError:
    """Return the error for a file or folder that cannot be written."""
    reason = error.strerror or str(error)
    return RunFolderError(f"{path} cannot be written: {reason}. The run goes on with the same command once it can.")
