"""Rounds of a booster on disk, so that a fit that was killed goes on where it was.

A folder holds::

    manifest.json     whose rounds these are: settings, data, seeds where the system drew them, and a fingerprint of all
    round-00001.cp    a round: model, losses, what the rule remembers; its header has the fingerprint and a checksum
    shared.cp         what the learner learned once for all rounds, where it keeps such a thing
    .counterpoise.lock    while a process writes

Every file is written beside its place, flushed to disk and renamed, and only then the next round begins. So a kill, at
any moment, leaves the rounds 1 to k and perhaps a file ``.part``, which the next fit removes. What no kill can leave,
such as a missing or altered round, is refused: a fit that goes on must end as if it had never been interrupted.

No random state is saved with a round: every round draws its seed from the entropy in the manifest and its number.

What decides the rounds is written as texts: plain settings as they are, so that a message can say which one differs,
data and other objects as what ``joblib.hash`` makes of them.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from pickle import PicklingError
from typing import Any, NamedTuple, Self

import joblib
import numpy as np
import scipy.sparse as sp

from counterpoise import __version__, persist
from counterpoise._base.frames import as_array, columns_of, is_frame, type_names
from counterpoise._base.shapes import ANY, TEXT, Kind, OrNone, check_shape, whole
from counterpoise._base.text import Secret, load_json
from counterpoise._base.types import AnyArray, ByteArray, FloatArray
from counterpoise.boosting.inputs import CheckedRows
from counterpoise.goals import Table
from counterpoise.persist.file_access import open_regular as opened_file
from counterpoise.persist.file_access import read_file
from counterpoise.persist.locks import FolderInUse, FolderLock

_NO_MATTER = frozenset({"n_jobs", "verbose", "random_state"})  # of a learner: its random states are set in each round

# What the rounds do not depend on. Goals and what goes with them are for the mixture at the end, and a fit may fail on
# them after all its rounds: others can then be tried on the same ones.
_OF_MIXTURE = {"goals", "pos_label", "mixture", "decision", "key", "objective", "budget", "confidence", "scores"}
_WRITTEN_APART = {"stopping", "alpha"}  # the fields of the first; the objective holds the second
NOT_OF_ROUNDS = {"n_estimators", "n_jobs", "callbacks", "checkpoint"} | _OF_MIXTURE | _WRITTEN_APART


def setting_texts(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return a text for each setting, those of estimators inside under their scikit-learn names.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from counterpoise.boosting.checkpoint import setting_texts
    >>> texts = setting_texts({"alpha": 0.1, "estimator": DecisionTreeClassifier(max_depth=3, random_state=0)})
    >>> texts["alpha"], texts["estimator"], texts["estimator__max_depth"]
    ('0.1', 'sklearn.tree._classes.DecisionTreeClassifier', '3')
    >>> "estimator__random_state" in texts
    False
    """
    texts: dict[str, str] = {}
    for name, value in settings.items():
        if _has_params(value):
            texts[name] = _name(type(value))
            texts |= setting_texts({f"{name}__{inner}": setting for inner, setting in _params(value).items()})
        else:
            try:
                texts[name] = _text(value)
            except (PicklingError, AttributeError, TypeError) as error:
                raise UnusableCheckpoint(
                    f"A checkpoint must be able to compare the setting {name} with that of a later fit; got {value!r}. "
                    "Define what it holds at the top level of a module, or fit with checkpoint=None."
                ) from error
    return texts


def data_texts(
    classes: AnyArray, train: CheckedRows, held_out: CheckedRows | None, tables: Mapping[str, Table] | None = None
) -> dict[str, str]:
    """Return a text for each part of the data: its type, shape and a hash of its values."""
    parts: dict[str, Any] = {"classes": classes}
    for rows, suffix in ((train, ""), (held_out, " held out")):
        if rows is not None:
            own_parts = {"X": rows.X, "y": rows.codes, "sample_weight": rows.weights, "sensitive_features": rows.groups}
            parts |= {part + suffix: values for part, values in own_parts.items()}
    for name, table in (tables or {}).items():
        own_parts = {"X": table.X, "y": table.y, "baseline": table.baseline, "sample_weight": table.sample_weight}
        own_parts |= {f"column {column}": table.column(column) for column in table.sensitive_columns}
        parts |= {f"{part} of dataset {name}": values for part, values in own_parts.items()}
    return {name: _data_text(values) for name, values in parts.items() if values is not None}


def _has_params(value: Any) -> bool:
    return hasattr(value, "get_params") and not isinstance(value, type)


def _params(estimator: Any) -> dict[str, Any]:
    """Return the parameters of an estimator that its models depend on."""
    return {name: value for name, value in estimator.get_params(deep=False).items() if name not in _NO_MATTER}


def _text(value: Any) -> str:
    """Return a text that does not depend on the process."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}({', '.join(map(_text, value))})"
    if _has_params(value):
        return f"{_name(type(value))}({setting_texts(_params(value))})"
    if isinstance(value, type) or hasattr(value, "__qualname__"):
        return _name(value)
    if isinstance(value, np.ndarray) or sp.issparse(value) or is_frame(value):
        return _data_text(value)
    return f"{_name(type(value))} {joblib.hash(value)}"


def _name(value: Any) -> str:
    """Return the name of a class or a function with its module; of ours with the package alone: modules may move."""
    module = str(getattr(value, "__module__", ""))
    return f"{'counterpoise' if module.startswith('counterpoise.') else module}.{value.__qualname__}"


def _data_text(values: Any) -> str:
    """Return the type, the shape and a hash of an array, a sparse matrix or a data frame, however it lies in memory."""
    content: Any
    if sp.issparse(values):
        rows = values.tocsr()
        content = rows.data, rows.indices, rows.indptr
    elif is_frame(values):
        content = [(str(name), *type_names(column), as_array(column)) for name, column in columns_of(values)]
    else:
        content = np.ascontiguousarray(values)
    kind = getattr(values, "dtype", type(values).__name__)
    return f"{kind} {tuple(values.shape)} hash {joblib.hash(content)}"


_FORMAT, _VERSION = "counterpoise checkpoint", 1
_MANIFEST, _SHARED = "manifest.json", "shared.cp"
_ROUND = re.compile(r"round-(\d{5,})\.cp")
_FLAG = Kind("true or false", lambda value: isinstance(value, bool))
_NUMBER = Kind("a number", lambda value: isinstance(value, float))
_ARRAY = Kind("an array of numbers", lambda value: isinstance(value, np.ndarray) and value.dtype.kind in "biuf")
_BITS = Kind("bytes", lambda value: isinstance(value, np.ndarray) and value.dtype == np.uint8 and value.ndim == 1)
_HEX = re.compile(r"([0-9a-f]{2})+")
_KEY = Kind("hexadecimal digits", lambda value: isinstance(value, str) and bool(_HEX.fullmatch(value)))
_OF_MANIFEST = {
    "format": TEXT,
    "version": whole(),
    "library": TEXT,
    "settings": {str: TEXT},
    "data": {str: TEXT},
    "seeds": OrNone({"entropy": whole(0, 1 << 256), "key": _KEY}),
}
_OF_ROUND = {
    "model": ANY,
    "losses": (_BITS, whole()),
    "held_out": OrNone((_BITS, whole())),
    "weighted_loss": _NUMBER,
    "memory": {str: _ARRAY},
    "best": (_NUMBER, whole()),
    "is_last": _FLAG,
    "uses_shared": _FLAG,
    "codes": OrNone(_ARRAY),
    "scores": OrNone(_ARRAY),
}
_PART = re.compile(r"\.(manifest\.json|shared\.cp|round-\d{5,}\.cp)\..*\.part")
_MAGIC = "counterpoise-round"
_MOST_MANIFEST = 1 << 25  # bytes: settings and checksums as texts
_LONG = 120  # characters of a setting that a message shows
_HINTS = {
    name: f"; {name}='theory' follows n_estimators: give the number itself to go on with more rounds"
    for name in ("eta", "beta")
}


class UnusableCheckpoint(ValueError):  # noqa: N818 - reads as what it is
    """A fit cannot continue from this folder; the message explains why, and what to do."""


class Seeds(NamedTuple):
    """Random seeds where ``random_state`` is None: entropy of the rounds, key of the sticky draws."""

    entropy: int
    key: Secret


class RunRecord(NamedTuple):
    """Settings and data that determine the rounds, as texts, and the seeds where ``random_state`` is None."""

    settings: dict[str, str]
    data: dict[str, str]
    seeds: Seeds | None


class SavedRound(NamedTuple):
    """A round as it is stored in a checkpoint."""

    model: Any
    losses: ByteArray  # on the training rows, zero-one
    held_out: ByteArray | None  # on the held-out rows, zero-one
    weighted_loss: float
    memory: dict[str, FloatArray]  # of the rule that chooses weights, after this round
    best: tuple[float, int]  # the least risk so far and its round, where patience looks at it
    is_last: bool  # patience is over, or the target is reached
    uses_shared: bool  # the learner had something learned once for all rounds
    codes: AnyArray | None = None  # class codes by models that did not see the rows, or inside goals
    scores: FloatArray | None = None  # of the positive class by models that did not see the rows, where needed


@dataclass(frozen=True, init=False)
class Checkpoint:
    """A folder where a booster saves every round, so that an interrupted fit can continue.

    ``fit`` continues after the last round that was saved. A fit that was interrupted, even killed, ends with the same
    models, losses and mixture as one that was not. A folder is for one fit, with its settings and data.

    Parameters
    ----------
    folder : str or path
        The folder, which is created if it does not exist. It is stored as a text.

    Raises
    ------
    TypeError
        If ``folder`` is not a path.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> from counterpoise import AdaLPBoostClassifier, Checkpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     saved = Checkpoint(folder)
    ...     model = AdaLPBoostClassifier(n_estimators=5, checkpoint=saved).fit(*load_iris(return_X_y=True))
    ...     saved.rounds_done()
    5
    """

    folder: str

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        path = os.fspath(folder) if isinstance(folder, (str, os.PathLike)) else folder
        if not isinstance(path, str):
            raise TypeError(f"folder must be the path of a folder, as a text or a Path; got {folder!r}.")
        object.__setattr__(self, "folder", path)  # a text is equal, and can be saved, anywhere

    def rounds_done(self) -> int:
        """Return how many rounds are saved; 0 where the folder is empty or does not exist.

        It reads names only and takes no lock, so you may call it while a fit is writing.

        Returns
        -------
        int
            Number of whole rounds.

        Raises
        ------
        UnusableCheckpoint
            If the folder holds something else, or lacks a round between others.
        """
        return _survey(Path(self.folder))

    def __sklearn_clone__(self) -> Self:
        """Return the value itself: it never changes."""
        return self

    def check_loaded(self) -> None:
        """Check the values that were read from a file."""
        if not isinstance(self.folder, str):
            raise TypeError(f"the folder of a Checkpoint must be a text; got {self.folder!r}")


def as_checkpoint(checkpoint: Any) -> Checkpoint | None:
    """Return the parameter ``checkpoint`` of a booster as a value; a path is short for it."""
    if checkpoint is None or isinstance(checkpoint, Checkpoint):
        return checkpoint
    if isinstance(checkpoint, (str, os.PathLike)):
        return Checkpoint(checkpoint)
    raise TypeError(f"checkpoint must be a Checkpoint, the path of its folder, or None; got {checkpoint!r}.")


@contextmanager
def open_checkpoint(checkpoint: Any) -> "Iterator[CheckpointFolder | None]":
    """Open the folder of a checkpoint, for this process alone; None without a checkpoint."""
    value = as_checkpoint(checkpoint)
    if value is None:
        yield None
        return
    folder = Path(value.folder)
    _survey(folder)  # before anything is written into a folder that is not ours
    try:
        with FolderLock(folder) as lock:
            yield CheckpointFolder(lock)
    except FolderInUse as error:
        raise UnusableCheckpoint(
            f"Another fit (process {error.holder}) is writing to the checkpoint {folder}. Wait until it ends, or "
            "choose another folder."
        ) from None


class CheckpointFolder:
    """The rounds in a folder, as long as this process has its lock."""

    def __init__(self, lock: FolderLock) -> None:
        self.folder, self._lock = lock.folder, lock
        for path in self.folder.iterdir():
            if _PART.fullmatch(path.name):  # left by a kill while it was written
                path.unlink()
        self.n_rounds = _survey(self.folder)  # again: another process may have been at work before the lock
        path = self.folder / _MANIFEST
        self._manifest = _check_manifest(self.folder, read_file(path, _MOST_MANIFEST)) if path.exists() else None

    @property
    def seeds(self) -> Seeds | None:
        """Return what the system drew for these rounds, or None where a setting decides it or nothing is saved."""
        seeds = None if self._manifest is None else self._manifest["seeds"]
        return None if seeds is None else Seeds(seeds["entropy"], Secret.fromhex(seeds["key"]))

    def claim(self, run: RunRecord, n_done: int = 0) -> None:
        """Check that the folder's rounds are of this run, ``n_done`` of which it has itself, or begin it."""
        if n_done > self.n_rounds:
            raise UnusableCheckpoint(
                f"The checkpoint {self.folder} holds {self.n_rounds} of the {n_done} rounds so far, so a fit could "
                "not continue from it. Set checkpoint before the first fit, or set it to None."
            )
        if self._manifest is None:
            seeds = None if run.seeds is None else {"entropy": run.seeds.entropy, "key": run.seeds.key.hex()}
            manifest = {"format": _FORMAT, "version": _VERSION, "library": __version__}
            manifest |= {"settings": run.settings, "data": run.data, "seeds": seeds}
            self._manifest = {**manifest, "fingerprint": _fingerprint(manifest)}
            self._write(_MANIFEST, json.dumps(self._manifest, indent=1).encode())
            return
        for part in ("settings", "data"):
            saved_texts, own_texts = self._manifest[part], getattr(run, part)
            for name in [*own_texts, *saved_texts]:
                texts = saved_texts.get(name, "absent"), own_texts.get(name, "absent")
                if texts[0] != texts[1]:
                    was, now = (text if len(text) <= _LONG else f"{text[: _LONG - 3]}..." for text in texts)
                    different = f"{name} was {was} and is {now}{_HINTS.get(name, '')}"
                    raise _refusal(self.folder, f"belongs to a fit with other {part} ({different})")
        if run.seeds != self.seeds:
            raise _refusal(self.folder, "belongs to another fit, which has other random seeds")

    def write(self, number: int, saved_round: SavedRound) -> None:
        """Put a round on disk."""
        values = saved_round._asdict()
        for name in ("losses", "held_out"):  # zero-one
            values[name] = None if values[name] is None else (np.packbits(values[name]), values[name].size)
        try:
            payload = persist.dumps(values)
            if number == 1:
                persist.loads(payload)  # a model that can be saved but not restored must cost no more time than this
        except (persist.UnstorableModel, persist.UnreadableModel) as error:
            raise persist.UnstorableModel(
                f"A checkpoint cannot hold the model of round {number}: {error} Checkpoints store only known types. "
                "Fit with checkpoint=None."
            ) from error
        self._write_with_header(_round_name(number), payload)
        self.n_rounds = number

    def read(self, number: int) -> SavedRound:
        """Return a round as it was written."""
        name = _round_name(number)
        values = self._read_with_header(name)
        try:
            check_shape(values, _OF_ROUND, name)
        except ValueError as error:
            raise _refusal(self.folder, f"is damaged ({error})") from error
        for part in ("losses", "held_out"):
            if values[part] is not None:
                bits, size = values[part]
                if bits.size != -(-size // 8):
                    raise _refusal(self.folder, f"is damaged ({name} has {bits.size} bytes for {part} of {size} rows)")
                values[part] = np.unpackbits(bits, count=size)
        return SavedRound(**values)

    def write_shared(self, shared: Mapping[str, AnyArray]) -> None:
        """Put what all rounds share on disk, before the first round that used it."""
        # One that is there already without a round is of a fit that was killed just then, and is not ours.
        if self.n_rounds == 0 or not (self.folder / _SHARED).exists():
            self._write_with_header(_SHARED, persist.dumps(dict(shared)))

    def read_shared(self) -> dict[str, AnyArray]:
        """Return what all rounds share."""
        if not (self.folder / _SHARED).exists():
            raise _refusal(self.folder, f"lacks {_SHARED}, from which its rounds were trained")
        return self._read_with_header(_SHARED)

    def _write_with_header(self, name: str, payload: bytes) -> None:
        self._write(name, self._header(name, payload), b"\n", payload)

    def _read_with_header(self, name: str) -> dict[str, Any]:
        with opened_file(self.folder / name) as stream:
            header, _, payload = stream.read().partition(b"\n")
        if header != self._header(name, payload):
            raise _refusal(self.folder, f"has the file {name}, which is incomplete, altered or from another fit")
        values: dict[str, Any] = persist.loads(payload)
        return values

    def _header(self, name: str, payload: bytes) -> bytes:
        assert self._manifest is not None  # noqa: S101 - rounds are read and written after the claim
        return f"{_MAGIC} {self._manifest['fingerprint']} {name} {hashlib.sha256(payload).hexdigest()}".encode()

    def _write(self, name: str, *chunks: bytes) -> None:
        if not self._lock.is_there():
            raise UnusableCheckpoint(
                f"The checkpoint {self.folder} was removed or moved while this fit was writing to it, so a fit could "
                "not continue from it. Fit again, and leave the folder in place until the fit ends."
            )
        try:
            persist.write_atomically(self.folder / name, chunks, private=name == _MANIFEST)  # which may hold a key
        except OSError as error:
            raise OSError(
                error.errno,
                f"The checkpoint {self.folder} cannot store the file {name} of {sum(map(len, chunks))} bytes "
                f"({error.strerror}). Free some space and fit again; the fit continues after round {self.n_rounds}",
            ) from error


def _refusal(folder: Path, what: str, remedy: str = "") -> UnusableCheckpoint:
    return UnusableCheckpoint(
        f"The checkpoint {folder} {what}: {remedy}choose another folder, or delete this one to begin anew."
    )


def _round_name(number: int) -> str:
    return f"round-{number:05}.cp"


def _survey(folder: Path) -> int:
    """Return the number of rounds after checking that the folder holds what a kill can leave, and nothing else."""
    if not folder.exists():
        return 0
    if not folder.is_dir():
        raise UnusableCheckpoint(f"checkpoint must be a folder; {folder} is a file.")
    # Hidden files are let be: systems leave their own, and our parts are among them.
    names = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    foreign = [name for name in names if name not in {_MANIFEST, _SHARED} and not _ROUND.fullmatch(name)]
    if foreign:
        raise _refusal(folder, f"holds {foreign[0]!r}, which does not belong to a checkpoint")
    rounds = [name for name in names if _ROUND.fullmatch(name)]
    if (rounds or _SHARED in names) and _MANIFEST not in names:
        raise _refusal(folder, f"lacks {_MANIFEST}, the record of the fit that it belongs to")
    names_of_rounds = set(rounds)
    for number in range(1, len(rounds) + 1):
        if _round_name(number) not in names_of_rounds:
            raise _refusal(folder, f"lacks {_round_name(number)} but holds {rounds[-1]}")
    return len(rounds)


def _fingerprint(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _check_manifest(folder: Path, data: bytes) -> dict[str, Any]:
    try:
        manifest = load_json(data)
        is_ours, version = manifest["format"] == _FORMAT, int(manifest["version"])
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        is_ours, version = False, 0
    if not is_ours:
        raise _refusal(folder, f"has a {_MANIFEST} that is incomplete or does not belong to a checkpoint")
    if version > _VERSION:
        raise _refusal(folder, f"has format {version}, newer than the {_VERSION} known here", "update counterpoise, ")
    fingerprint = manifest.pop("fingerprint", None)
    if fingerprint != _fingerprint(manifest):
        raise _refusal(folder, f"has a {_MANIFEST} that was altered")
    try:
        check_shape(manifest, _OF_MANIFEST, _MANIFEST)
    except ValueError as error:
        raise _refusal(folder, f"is damaged ({error})") from error
    if manifest["library"] != __version__:
        raise _refusal(
            folder,
            f"was started by counterpoise {manifest['library']}, but you have {__version__}, whose models may differ",
            "install that version, ",
        )
    return {**manifest, "fingerprint": fingerprint}
