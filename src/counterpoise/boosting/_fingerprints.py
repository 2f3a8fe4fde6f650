"""Settings and data as short texts that are equal exactly where the rounds of a booster would be the same.

A text says what it stands for as far as a person can read it, so that two of them side by side tell what differs.
"""

import functools
import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from counterpoise._base.checks import is_frame
from counterpoise._base.types import AnyArray
from counterpoise.boosting.inputs import Rows
from counterpoise.goals import Table

_NO_MATTER = frozenset({"n_jobs", "verbose", "random_state"})  # of a learner: its random states are set in each round
_CHUNK_BYTES = 1 << 24  # copied and hashed at once
_DEEPEST = 12  # objects inside objects: deeper ones are told by their class alone, and a cycle ends
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # in a repr: another in every process

# What the rounds do not depend on. Goals and what goes with them are for the mixture at the end, and a fit may fail on
# them after all its rounds: others can then be tried on the same ones.
NOT_OF_ROUNDS = frozenset(
    (
        "n_estimators",
        "n_jobs",
        "callbacks",
        "checkpoint",
        "stopping",  # told by its fields
        "alpha",  # told by the objective
        "goals",
        "pos_label",
        "mixture",
        "decision",
        "key",
        "objective",
        "budget",
        "scores",
    )
)


def setting_texts(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return a text for each setting, those of estimators inside under their scikit-learn names.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from counterpoise.boosting._fingerprints import setting_texts
    >>> texts = setting_texts({"alpha": 0.1, "estimator": DecisionTreeClassifier(max_depth=3, random_state=0)})
    >>> texts["alpha"], texts["estimator"], texts["estimator__max_depth"]
    ('0.1', 'sklearn.tree._classes.DecisionTreeClassifier', '3')
    >>> "estimator__random_state" in texts
    False
    """
    return {place: text for name, value in settings.items() for place, text in _flat(name, value)}


def data_texts(
    classes: AnyArray, train: Rows, held_out: Rows | None, tables: Mapping[str, Table] | None = None
) -> dict[str, str]:
    """Return a text for each part of the data: its type, shape and a checksum of its values."""
    parts: dict[str, Any] = {"classes": classes, **_parts(train, "")}
    if held_out is not None:
        parts |= _parts(held_out, " held out")
    for name, table in (tables or {}).items():
        parts |= _table_parts(table, f" of dataset {name}")
    return {name: _data_text(values) for name, values in parts.items()}


def _parts(rows: Rows, suffix: str) -> dict[str, Any]:
    parts = {"X": rows.X, "y": rows.codes, "sample_weight": rows.weights, "sensitive_features": rows.groups}
    return {name + suffix: values for name, values in parts.items() if values is not None}


def _table_parts(table: Table, suffix: str) -> dict[str, Any]:
    parts = {"X": table.X, "y": table.y, "baseline": table.baseline, "sample_weight": table.sample_weight}
    parts |= {f"column {name}": table.column(name) for name in table.sensitive_columns}
    return {name + suffix: values for name, values in parts.items() if values is not None}


def _flat(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if not _has_params(value):
        yield name, _text(value)
        return
    yield name, _name(type(value))
    for inner, setting in value.get_params(deep=False).items():
        if inner not in _NO_MATTER:
            yield from _flat(f"{name}__{inner}", setting)


def _has_params(value: Any) -> bool:
    return hasattr(value, "get_params") and not isinstance(value, type)


def _text(value: Any, depth: int = 0) -> str:
    """Return a text that does not depend on the process: no addresses, dicts and sets in order."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return repr(value)
    if isinstance(value, np.ndarray) or sp.issparse(value) or is_frame(value):
        return _data_text(value)
    if isinstance(value, type) or hasattr(value, "__qualname__"):
        return _name(value)
    if depth == _DEEPEST:
        return _name(type(value))
    return _compound_text(value, depth + 1)


def _compound_text(value: Any, depth: int) -> str:
    if isinstance(value, (list, tuple)):
        inner = ", ".join(_text(item, depth) for item in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(sorted(f'{_text(key, depth)}: {_text(item, depth)}' for key, item in value.items()))}}}"
    if isinstance(value, (set, frozenset)):
        return f"{{{', '.join(sorted(_text(item, depth) for item in value))}}}"
    if isinstance(value, functools.partial):
        return f"partial({_text(value.func, depth)}, {_text(value.args, depth)}, {_text(value.keywords, depth)})"
    if _has_params(value):
        params = value.get_params(deep=False)
        state = {name: setting for name, setting in params.items() if name not in _NO_MATTER}
    else:
        state = getattr(value, "__dict__", {})
    if not state:
        return _ADDRESS.sub("", repr(value))
    return f"{_name(type(value))}({', '.join(f'{key}={_text(state[key], depth)}' for key in sorted(state))})"


def _name(value: Any) -> str:
    """Return the name of a class or a function with its module; of ours with the package alone: modules may move."""
    module = str(getattr(value, "__module__", ""))
    return f"{'counterpoise' if module.startswith('counterpoise.') else module}.{value.__qualname__}"


def _data_text(values: Any) -> str:
    hasher = hashlib.sha256()
    for part in _arrays(values):
        _hash_array(hasher, part)
    kind = getattr(values, "dtype", type(values).__name__)
    return f"{kind} {tuple(values.shape)} sha256 {hasher.hexdigest()}"


def _arrays(values: Any) -> Iterator[AnyArray]:
    """Yield arrays that together say all of an array, a sparse matrix or a data frame."""
    if sp.issparse(values):
        rows = values.tocsr()
        yield from (rows.data, rows.indices, rows.indptr)
    elif is_frame(values):
        yield np.asarray(list(values.columns), dtype=object)
        for place in range(values.shape[1]):
            yield from _column_arrays(values.iloc[:, place] if hasattr(values, "iloc") else values[:, place])
    else:
        yield np.asarray(values)


def _column_arrays(column: Any) -> Iterator[AnyArray]:
    yield np.asarray([str(column.dtype)])
    categories = getattr(column.dtype, "categories", None)
    if categories is None:
        yield np.asarray(column)
    elif hasattr(column, "iloc"):  # learners see the order of the categories, values do not tell it
        yield np.asarray(categories)
        yield np.asarray(column.cat.codes)
    else:  # polars, whose codes depend on what else the process has read
        yield np.asarray(column, dtype=object)


def _hash_array(hasher: Any, array: AnyArray) -> None:
    hasher.update(f"{array.dtype.str} {array.shape} ".encode())
    rows = np.atleast_1d(array)
    step = max(1, _CHUNK_BYTES // max(1, rows.nbytes // max(1, len(rows))))
    for start in range(0, len(rows), step):
        block = rows[start : start + step]
        if block.dtype.hasobject:
            texts = (f"{type(value).__name__} {value!r}" for value in block.ravel().tolist())
            hasher.update("\0".join([*texts, ""]).encode())
        else:
            hasher.update(block.tobytes())  # in the order of its indices, however it lies in memory
