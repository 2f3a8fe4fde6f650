"""A run folder: what it holds, how it is written and read.

    goals.toml        the goals file as read, byte for byte; that of a rebalanced run asks for its mixture
    settings.json     the checked settings with defaults filled in, the types of columns, fingerprints
    draws.key         the key of the draws, for nobody but the owner; the model has it too
    pool_outputs.cp   predictions or scores of a pool's models on the rows of the run, so that none predicts again
    model.cp          the fitted model (``counterpoise.load``): takes frames with the columns of the data files
    result.json       every number and the words that belong to them (``counterpoise.runs.result.RunResult``)
    environment.json  versions, platform, time
    log.txt           one line an event
    checkpoint/       what is fitted so far; removed when done
    done.json         written last: the run is whole, and never changes again
    report.html       what ``counterpoise.report`` makes of the result
    monitor.json, monitor.jsonl, monitor.html    batches that came later, their log and its page (``runs.monitoring``)
    .counterpoise.lock    while someone writes

Every file is written beside its place and renamed, by the one process that holds the lock. A run without ``done.json``
is one that can go on: whatever a kill leaves, at whichever moment, is taken up by the next fit or removed.

The key of the draws is drawn by the system at the first fit. A fit that goes on, or is made again in the same folder,
takes the key that is there, so that people keep their answers. To let a new run draw as another one, copy the file into
its folder before the fit.
"""

import hashlib
import io
import json
import os
import platform
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from counterpoise import persist
from counterpoise._base.shapes import ANY, TEXT, check_shape
from counterpoise._base.text import Secret
from counterpoise._base.types import AnyArray
from counterpoise.persist import write_atomically
from counterpoise.persist.file_access import open_regular, own_file, read_file, step
from counterpoise.persist.locks import LOCK, FolderInUse, FolderLock
from counterpoise.rules.draws import check_key, make_key
from counterpoise.runs.errors import DataError, RunFolderError, load_json_file
from counterpoise.runs.methods import split_parameters, training_needs_alpha, trains_inside
from counterpoise.runs.places import (
    CHECKPOINT,
    DONE,
    ENVIRONMENT,
    GOALS,
    KEY,
    LOG,
    MODEL,
    POOL_OUTPUTS,
    REPORT,
    RESULT,
    SETTINGS,
    check_place,
    check_run_folder,
    is_run,
)
from counterpoise.runs.result import RunResult, read_result
from counterpoise.runs.settings import RunColumns, RunSettings, is_parquet

_MOST = 1000  # bytes that are read


def run_key(folder: Path) -> Secret:
    """Return the key in a run folder, after drawing one where there is none."""
    path = folder / KEY
    if not path.exists():
        keep_key(folder, make_key(None))
    try:
        key = check_key(bytes.fromhex(read_file(path, _MOST).decode("ascii")))
    except OSError as error:
        raise RunFolderError(f"{path} cannot be read: {error.strerror or error}.") from error
    except ValueError:
        key = None
    if key is None:
        raise RunFolderError(f"{path} must hold 16 to 64 bytes as hexadecimal digits; it does not. Copy it again.")
    return key


def keep_key(folder: Path, key: bytes) -> None:
    """Put a key into a run folder."""
    _write(folder / KEY, f"{key.hex()}\n".encode(), private=True)


def _write(path: Path, content: bytes, *, private: bool) -> None:
    try:
        write_atomically(path, [content], private=private)
    except OSError as error:
        raise RunFolderError(f"{path} cannot be written: {error.strerror or error}.") from error


_WAIT = 10.0  # seconds for others: a process that writes one file, and not a whole run, has done so by then


@contextmanager
def alone_in(folder: Path, *, wait: float = 0.0) -> Iterator[FolderLock]:
    """Keep all others from writing to a run folder; refuse where another still does after ``wait`` seconds."""
    with ExitStack() as stack:
        try:
            with writing(folder):
                lock = stack.enter_context(FolderLock(folder, wait=wait))
        except FolderInUse as error:
            raise RunFolderError(
                f"Another process ({error.holder}) is writing to the run folder {folder}. Wait until it ends, or "
                "name another folder with output."
            ) from None
        yield lock


def write_output(path: Path, content: bytes, *, private: bool = False) -> None:
    """Write an output file of a user, a private one for its owner alone where it is new.

    Into a run folder it is written while nobody else writes there.
    """
    check_place(path)
    with alone_in(path.parent, wait=_WAIT) if is_run(path.parent) else nullcontext():
        _write(path, content, private=private and not path.exists())


def write_frame(frame: Any, path: Path) -> None:
    """Write a data frame: Parquet by the ending of the path, else CSV."""
    buffer = io.BytesIO()
    if is_parquet(path):
        import pyarrow as pa  # noqa: PLC0415 - heavy, and optional
        from pyarrow import parquet  # noqa: PLC0415

        # Columns of numbers and texts are texts, as CSV has them: a deferred row among numbers, say.
        mixed = [name for name in frame if len({type(value) for value in frame[name].array}) > 1]
        table = pa.Table.from_pandas(frame.astype(dict.fromkeys(mixed, str)), preserve_index=False)
        # Without the types of pandas beside those of the file: it cannot read all that it writes.
        parquet.write_table(table.replace_schema_metadata(None), buffer)
    else:
        frame.to_csv(buffer, index=False)
    write_output(path, buffer.getvalue())


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say of errors of the system that a part of a run cannot be written."""
    try:
        yield
    except (RunFolderError, BrokenPipeError):  # the latter means that nobody reads on
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise RunFolderError(f"{path} cannot be written: {reason}. Run the same command again to resume.") from error


_PART = ".part"  # the ending of what a kill may leave half written or half removed
_FORMAT = 1
_MOST_JSON = 1 << 25  # bytes: those of a run with 100,000 columns are a few million
_IDENTITY = {  # in the settings of a run, beside those of its goals file
    **dict.fromkeys(("fingerprint", "training", "sources"), TEXT),
    "columns": {name: [TEXT] for name in RunColumns._fields},
}
_TRAINED_BY = ("counterpoise", "numpy", "scikit-learn")  # packages of other versions may train other models
_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "highspy", "pandas", "pyarrow", "pydantic", "skops")


class Run(NamedTuple):
    """A finished run."""

    folder: Path
    settings: RunSettings

    def model(self) -> Any:
        """Return the fitted model, which takes frames with the columns of the data files."""
        return persist.load(self.folder / MODEL)

    def waiting_model(self) -> Any:
        """Return the fitted model; those that it is a mixture of are read from its file once they predict."""
        from counterpoise.persist.models import load_lazily  # noqa: PLC0415 - as above

        return load_lazily(self.folder / MODEL)

    def pool_outputs(self) -> dict[str, AnyArray]:
        """Return predictions or scores of a pool's models on the rows of the run; nothing where they were not kept."""
        try:
            with open_regular(self.folder / POOL_OUTPUTS) as stream:
                content = persist.loads(stream.read())
        except (OSError, MemoryError, persist.UnreadableModel):  # or of another version: the models can predict again
            return {}
        is_own = isinstance(content, dict) and content.get("run") == read_json(self.folder / SETTINGS)["fingerprint"]
        arrays = content.get("outputs") if is_own else None  # those of another run may be by other models
        outputs = arrays.items() if isinstance(arrays, dict) else ()
        return {name: one for name, one in outputs if getattr(one, "ndim", 0)}

    def result(self) -> RunResult:
        """Return every number of the run, and the words that belong to them."""
        return read_result(self.folder / RESULT)

    @property
    def report(self) -> Path:
        """Return where the report of the run is, once it is written."""
        return self.folder / REPORT

    @property
    def columns(self) -> RunColumns:
        """Return the features that the model was fitted on."""
        return RunColumns(**read_json(self.folder / SETTINGS)["columns"])

    @property
    def sources(self) -> Path:
        """Return the folder that data files are named from, as short as the run folder was named."""
        place = self.folder / str(read_json(self.folder / SETTINGS)["sources"])
        short = Path(os.path.normpath(place))
        return short if short.resolve() == place.resolve() else place.resolve()  # links on the way: no short name


def open_run(folder: str | Path) -> Run:
    """Return a finished run; ``fit_run`` has an example.

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
        If there is no such folder, it is something else, or its run is not whole.
    """
    folder = check_run_folder(folder)
    absent = [name for name in (GOALS, MODEL, RESULT, ENVIRONMENT) if not (folder / name).is_file()]
    if absent:
        raise RunFolderError(f"The run in {folder} is damaged: it lacks {', '.join(absent)}. Fit it again elsewhere.")
    try:
        words = read_json(folder / SETTINGS)
        check_shape(words, {**dict.fromkeys(words, ANY), **_IDENTITY}, SETTINGS)
        (folder / words["sources"]).resolve()
        settings = RunSettings.model_validate({key: words[key] for key in RunSettings.model_fields})
    except (KeyError, ValueError, OverflowError) as error:
        raise RunFolderError(f"{folder / SETTINGS} is damaged. Fit the run again in another folder.") from error
    _check_finished(folder)
    return Run(folder, settings)


def _check_finished(folder: Path) -> None:
    """Check that the run that was finished is the one that the settings are of."""
    if read_json(folder / DONE).get("fingerprint") != read_json(folder / SETTINGS).get("fingerprint"):
        raise RunFolderError(
            f"The run in {folder} is damaged: {DONE} is of another run than {SETTINGS}. Fit it again elsewhere."
        )


class Fingerprints(NamedTuple):
    """Hashes that identify a run: of all settings and data, and of those that training depends on."""

    run: str
    training: str
    files: dict[str, str] = {}  # noqa: RUF012 - never changed; the hash of each data file by its name
    origin: str = ""  # the fingerprint of the run whose models were taken

    @property
    def checksums(self) -> dict[str, str]:
        """Return all of them by name, for the result of a run."""
        return {"fingerprint": self.run, **({"origin": self.origin} if self.origin else {}), **self.files}


def fingerprint(settings: RunSettings, files: Iterable[Path], *, origin: str = "") -> Fingerprints:
    """Return hashes of settings and of the bytes of data files; the output folder plays no role.

    ``origin`` is the fingerprint of the run whose models were taken: LPBoost of another alpha trains others.
    """
    paths = list(files)
    data = [hash_of(path) for path in paths]
    values = settings.model_dump(mode="json", exclude={"output"})
    chosen_later = {"goals", "alpha", "confidence", "audit_confidence"}
    training = {key: value for key, value in values.items() if key not in chosen_later}
    training["method"] = values["method"] | {"parameters": split_parameters(settings.method)[0]}
    if training_needs_alpha(settings.method):
        training["alpha"] = values["alpha"]
    if trains_inside(settings.method) and values["goals"]:
        training["goals"] = values["goals"]
    taken = [origin] if origin else []
    named = {path.name: one for path, one in zip(paths, data, strict=True)}
    return Fingerprints(_hash([_FORMAT, values, data, *taken]), _hash([_FORMAT, training, data, *taken]), named, origin)


def _hash(values: Any) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def hash_of(path: Path) -> str:
    """Return a hash of the bytes of a data file."""
    try:
        with open_regular(path) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]  # it can be read into
    except FileNotFoundError as error:
        raise DataError(f"There is no data file {path}.") from error
    except IsADirectoryError as error:
        raise DataError(f"{path} must be a CSV or Parquet file; it is a folder.") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error


class Writer:
    """Writes a run folder, and takes up what an earlier fit left there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock: FolderLock | None = None

    @contextmanager
    def claim(self, fingerprints: Fingerprints) -> Iterator[bool]:
        """Keep all others from writing to the folder, and tell whether the run is still to be made.

        A finished run never changes, so it is recognised without the lock. Another may be finished by the time that the
        lock is held, so it is checked again. Nothing is written outside of this context.
        """
        if self._is_done(fingerprints):
            yield False
            return
        with alone_in(self.folder) as self._lock:
            yield not self._is_done(fingerprints)

    def _is_done(self, fingerprints: Fingerprints) -> bool:
        """Tell whether the folder holds this run, whole; refuse one that holds something else."""
        if not self.folder.exists():
            return False
        if not self.folder.is_dir():
            raise RunFolderError(f"The run folder {self.folder} must be a folder; there is a file of that name.")
        known = self.folder / SETTINGS
        if not known.is_file():
            if any(one.name not in (LOG, LOCK, KEY) and one.suffix != _PART for one in self.folder.iterdir()):
                raise RunFolderError(
                    f"The run folder {self.folder} must be new or empty; it holds other files. Choose another output."
                )
            return False
        if not (self.folder / DONE).is_file():
            return False
        _check_finished(self.folder)
        if read_json(known).get("fingerprint") != fingerprints.run:
            raise RunFolderError(
                f"{self.folder} holds a run with other settings or data. Name another folder with output; for another "
                "alpha or other goals of the same models, counterpoise fit --from RUN trains nothing."
            )
        return True

    def begin(
        self, content: bytes, settings: RunSettings, columns: RunColumns, fingerprints: Fingerprints, sources: Path
    ) -> bool:
        """Write what is known before the fit; return whether an earlier fit of the same run goes on."""
        before = read_json(self.folder / SETTINGS) if (self.folder / SETTINGS).is_file() else {}
        goes_on = before.get("training") == fingerprints.training
        if goes_on:
            self._check_versions()
        for left in [*self.folder.glob(f".*{_PART}"), *([] if goes_on else [self.folder / CHECKPOINT])]:
            self._remove(left)
        if before.get("fingerprint") != fingerprints.run:
            for name in (MODEL, POOL_OUTPUTS, RESULT, REPORT):
                self._remove(self.folder / name)
        words = {
            **settings.model_dump(mode="json"),
            "columns": columns._asdict(),
            "fingerprint": fingerprints.run,
            "training": fingerprints.training,
            "origin": fingerprints.origin,
            "sources": os.path.relpath(sources.resolve(), self.folder.resolve()),
        }
        self.write(SETTINGS, _as_json(words))  # first: by it a folder is known as one of ours
        self.write(GOALS, content)
        self.write(ENVIRONMENT, _as_json(environment()))
        return goes_on and (self.folder / CHECKPOINT).exists()

    def save_model(self, model: Any, name: str = MODEL) -> None:
        """Write a model."""
        self.write(name, persist.dumps(model), private=True)  # it holds the key of the draws

    def save_pool_outputs(self, outputs: Mapping[str, AnyArray], fingerprints: Fingerprints) -> None:
        """Write predictions or scores of models on the rows of the run."""
        if outputs:
            content = persist.dumps({"run": fingerprints.run, "outputs": dict(outputs)})
            self.write(POOL_OUTPUTS, content, private=True)  # about single people

    def finish(self, result: RunResult, fingerprints: Fingerprints) -> None:
        """Write the result, drop the checkpoint, and say that the run is whole."""
        additions = {"versions": read_json(self.folder / ENVIRONMENT), "checksums": fingerprints.checksums}
        self.write(RESULT, result.model_copy(update=additions).model_dump_json(indent=1).encode() + b"\n")
        self._remove(self.folder / CHECKPOINT)
        self.log("done")
        self.write(DONE, _as_json({"fingerprint": fingerprints.run}))

    def write(self, name: str, content: bytes, *, private: bool = False) -> None:
        """Write one file of the folder, a private one for the owner alone."""
        self._check_alone()
        with writing(self.folder / name):
            write_atomically(self.folder / name, [content], private=private)

    def log(self, event: str) -> None:
        """Add a line to the log."""
        self._check_alone()
        path = self.folder / LOG
        step("append", path)
        with writing(path), open(path, "a", encoding="utf-8", opener=own_file) as stream:
            stream.write(f"{_now()} {event}\n")

    def _remove(self, path: Path) -> None:
        """Remove a file or a folder; one that is half removed goes by a name that nobody reads."""
        if not path.exists():
            return
        self._check_alone()
        with writing(path):
            step("remove", path)
            if not path.is_dir():
                path.unlink()
                return
            if path.suffix != _PART:
                path = path.rename(path.with_name(f".{path.name}{_PART}"))
                step("remove", path)
            shutil.rmtree(path, ignore_errors=True)

    def _check_alone(self) -> None:
        """Check that the folder is still the one that was locked: another may have been made by its name."""
        if self._lock is None or not self._lock.is_there():
            raise RunFolderError(
                f"The run folder {self.folder} was removed or moved while it was written to. Run the same command "
                "again, and do not move the folder until it ends."
            )

    def _check_versions(self) -> None:
        """Refuse to mix models that were trained by one version with those of another."""
        is_trained = (self.folder / CHECKPOINT).exists() or (self.folder / MODEL).exists()
        if not is_trained or not (self.folder / ENVIRONMENT).is_file():
            return
        was, now = read_json(self.folder / ENVIRONMENT), environment()
        for name in _TRAINED_BY:
            if was.get(name) != now.get(name):
                raise RunFolderError(
                    f"The run in {self.folder} was begun with {name} {was.get(name)}, and this is {now.get(name)}, "
                    "whose models may differ: install that version, or name another folder with output."
                )


def environment() -> dict[str, str]:
    """Return what a run was made with: versions, platform and time, and nothing about who or where."""
    from counterpoise import __version__  # noqa: PLC0415 - a package that imports this one

    versions = {"counterpoise": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions | {"platform": f"{platform.system()} {platform.machine()}", "time": _now()}


def read_json(path: Path, most: int = _MOST_JSON) -> dict[str, Any]:
    """Return the object in a JSON file of a run folder."""
    content = load_json_file(path, most, RunFolderError, "cannot be read: it is not valid JSON")
    if not isinstance(content, dict):
        raise RunFolderError(f"{path} must hold a JSON object; it holds {type(content).__name__}.")
    return content


def _as_json(words: Mapping[str, Any]) -> bytes:
    return (json.dumps(words, indent=1, ensure_ascii=False) + "\n").encode()


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
