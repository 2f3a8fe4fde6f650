"""Saving and loading: the whole of a model in one file."""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from counterpoise import __version__
from counterpoise.persist.container import UnreadableModel, UnstorableModel, read_container, write_container
from counterpoise.persist.estimators import MEMBER, read_estimators, write_estimators
from counterpoise.persist.file_access import open_regular, write_atomically
from counterpoise.persist.nodes import Decoder, Encoder
from counterpoise.persist.values import LazyModel

_DEEPEST = 10  # mixtures of mixtures


def save(model: Any, path: str | os.PathLike[str], *, trusted: Sequence[str] = ()) -> None:
    """Write a fitted model to one file, without pickle.

    A temporary file is written and renamed, so an older file stays intact until the new one is complete.

    Parameters
    ----------
    model : fitted estimator
        A classifier or learner of counterpoise, a scikit-learn ``Pipeline`` around one, or a model of scikit-learn.
        Models of scikit-learn are stored by skops: ``pip install "counterpoise[models]"``. Classifiers of LightGBM,
        XGBoost and CatBoost are stored as files of their own format inside of this one. Callbacks are not stored.
    path : path
        The file; its name can be anything.
    trusted : sequence of str, default=()
        Types of other libraries, with their modules, that may be stored in addition to those of scikit-learn.

    Raises
    ------
    UnstorableModel
        If the model is not fitted, or a part cannot be stored; the message names it, and no file is written.

    Examples
    --------
    >>> import tempfile
    >>> import counterpoise as cp
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = cp.AdaLPBoostClassifier(n_estimators=5, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cp.save(model, f"{folder}/model.cp")
    ...     again = cp.load(f"{folder}/model.cp")
    >>> bool((again.predict(X) == model.predict(X)).all()), again.rebalance(alpha=0.5).alpha_
    (True, 0.5)
    """
    refuse_unfitted(model, "cp.save")
    target = Path(path)
    if target.is_dir():
        raise UnstorableModel(f"{target} is a folder. Pass the name of a file in it.")
    content = dumps(model, trusted=trusted)
    write_atomically(target, [content], private=not target.exists())  # it may hold the key of draws


def load(path: str | os.PathLike[str], *, trusted: Sequence[str] = ()) -> Any:
    """Read a model that ``save`` wrote. Nothing in the file is executed.

    Parameters
    ----------
    path : path
        The file.
    trusted : sequence of str, default=()
        Types of other libraries, with their modules, that may be built in addition to those of scikit-learn. Files of
        CatBoost cannot be checked before CatBoost reads them, and need ``"catboost.core.CatBoostClassifier"`` here.

    Returns
    -------
    fitted estimator
        With the same predictions, and the same draws, as the one that was saved.

    Raises
    ------
    UnreadableModel
        If the file does not exist, was not written by ``save``, has another format version, is damaged or altered, or
        holds types that are not trusted.

    Examples
    --------
    >>> import counterpoise as cp
    >>> cp.load("no-such-file.cp")
    Traceback (most recent call last):
    ...
    counterpoise.persist.UnreadableModel: There is no file no-such-file.cp: check its name, ...
    """
    return _read(path, trusted, waits=False)


def load_lazily(path: str | os.PathLike[str]) -> Any:
    """Read a mixture whose models wait in its file until they are used; else as ``load``."""
    return _read(path, (), waits=True)


def _read(path: str | os.PathLike[str], trusted: Sequence[str], *, waits: bool) -> Any:
    target = Path(path)
    if target.is_dir():
        raise UnreadableModel(f"{target} is a folder, not a model. Pass the name of a file in it.")
    try:
        with open_regular(target) as stream:
            data = stream.read()
    except FileNotFoundError:
        raise UnreadableModel(f"There is no file {target}: check its name, or save the model first.") from None
    except OSError as error:
        raise UnreadableModel(f"{target} cannot be read: {error.strerror}.") from error
    except MemoryError as error:
        raise UnreadableModel(f"{target} cannot be read: it is larger than the free memory.") from error
    model = _decode(data, str(target), trusted, waits=waits)
    if not _is_fitted(model):
        raise UnreadableModel(f"{target} holds a {type(model).__name__}, which is not a fitted model.")
    return model


def dumps(value: Any, *, trusted: Sequence[str] = ()) -> bytes:
    """Return a value, of any type that parts of a model have, as the bytes of a file.

    Parameters
    ----------
    value : None, bool, int, float, str, bytes, list, tuple, dict, array, random state or object of counterpoise
        Shared parts stay shared.
    trusted : sequence of str, default=()
        As for ``save``.

    Returns
    -------
    bytes
        Equal values give equal bytes, but for models of scikit-learn, in which skops writes numbers of its own.

    Examples
    --------
    >>> from counterpoise.persist import dumps, loads
    >>> loads(dumps({"alpha": 0.1, "labels": ("no", "yes")}))
    {'alpha': 0.1, 'labels': ('no', 'yes')}
    """

    def pack(encoder: Encoder, value: Any) -> bytes:
        root = encoder.encode(value)
        members = encoder.arrays.members() | encoder.files
        if encoder.estimators:
            members[MEMBER] = write_estimators(encoder.estimators, encoder.paths_of_estimators, trusted)
        tree = {"layouts": encoder.layouts, "nodes": encoder.nodes, "root": root}
        return write_container({**_description(value), **tree}, members)

    try:
        return pack(Encoder(pack), value)
    except UnstorableModel as error:
        raise UnstorableModel(f"This {type(value).__name__} cannot be stored: {error}.") from error
    except RecursionError as error:
        raise UnstorableModel(f"This {type(value).__name__} cannot be stored: it is nested too deeply.") from error


def loads(data: bytes, *, trusted: Sequence[str] = ()) -> Any:
    """Return the value that ``dumps`` turned into bytes.

    Parameters
    ----------
    data : bytes
        What ``dumps`` returned.
    trusted : sequence of str, default=()
        As for ``load``.

    Returns
    -------
    object
        Equal to the one given to ``dumps``, which has an example.

    Raises
    ------
    UnreadableModel
        If the bytes are anything else.
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"data must be the bytes that dumps returned; got {type(data).__name__}. A path is for load.")
    return _decode(bytes(data), "The data", trusted)


def _decode(data: bytes, name: str, trusted: Sequence[str], *, waits: bool = False) -> Any:
    """Return the value of a file; models in files of their own wait there with ``waits``."""

    def now(content: bytes, depth: int = 0) -> Any:
        if depth > _DEEPEST:
            raise UnreadableModel("files in it are nested too deeply")
        manifest, members = read_container(content)
        estimators = read_estimators(members[MEMBER], trusted) if MEMBER in members else []
        inner = partial(now, depth=depth + 1)
        decoder = Decoder(manifest.get("layouts"), members, estimators, trusted, later if waits else inner)
        return decoder.decode(manifest.get("nodes"), manifest.get("root"))

    def later(content: bytes) -> LazyModel:
        return LazyModel(content, lambda inner: _decode(inner, name, trusted))

    try:
        return now(data)
    except UnreadableModel as error:
        raise UnreadableModel(f"{name} cannot be loaded as a model: {error}.") from error


def _description(value: Any) -> dict[str, Any]:
    """Return a description of the model for readers of the manifest; loading does not use it."""
    classes, names = (getattr(value, attribute, None) for attribute in ("classes_", "feature_names_in_"))
    return {
        "library": __version__,
        "class": type(value).__name__,
        "classes": None if classes is None else [str(label) for label in classes],
        "feature_names": None if names is None else [str(name) for name in names],
    }


def refuse_unfitted(model: Any, before: str) -> None:
    """Raise an error where a value is no fitted model; ``before`` names the function called."""
    if not _is_fitted(model):
        raise UnstorableModel(f"This {type(model).__name__} is not fitted: call fit before {before}.")


def _is_fitted(model: Any) -> bool:
    """Return whether a value is a model that can predict."""
    from sklearn.utils.validation import check_is_fitted  # noqa: PLC0415 - this file lies below scikit-learn

    if isinstance(model, type) or not hasattr(model, "predict"):
        return False
    if not hasattr(model, "fit"):  # a rule made of a fitted model
        return True
    try:
        check_is_fitted(model)
    except (ArithmeticError, LookupError, TypeError, ValueError):  # not fitted, or computed from parts of a wrong kind
        return False
    return True
