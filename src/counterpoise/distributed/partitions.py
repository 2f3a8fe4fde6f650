"""What partitions of collections must be like, each for itself and beside the others."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from counterpoise._base.types import AnyArray
from counterpoise.distributed.rows import COLUMNS, Y
from counterpoise.goals.values import count_missing

_MATRIX = 2
_GIVEN_AS = {COLUMNS: "sensitive_features"}  # the name of an argument, where a shard calls it otherwise


def require_columns(features: Any, names: Sequence[str]) -> None:
    """Refuse rows that lack a column which was named."""
    known = list(map(str, getattr(features, "columns", ())))
    missing = [name for name in names if name not in known]
    if missing:
        raise ValueError(
            f"X must be a data frame with the column {missing[0]!r}, which was named; a partition of it has "
            f"{', '.join(known) or 'no named columns'}."
        )


def require_same(wanted: tuple[str, ...], got: tuple[str, ...], number: int) -> None:
    """Refuse a partition with other columns than all have."""
    if sorted(wanted) != sorted(got):
        raise ValueError(
            f"All partitions of X must have the same columns; they are {', '.join(wanted)}, and partition {number} has "
            f"{', '.join(got)}. Read them with one schema, or name the columns to take."
        )


def require_numbers(features: Any, number: int) -> None:
    """Refuse features that are texts, of a partition with rows: an empty one may have any type."""
    is_seen = hasattr(features, "columns") and len(features)
    for name, kind in zip(features.columns, features.dtypes, strict=True) if is_seen else ():
        if not _is_number(kind):
            raise ValueError(
                f"Features must be numbers; the column {name!r} of X is of type {kind} in partition {number}. Encode "
                "it, or name it in sensitive_features, if goals speak of it, or leave it out."
            )


def _is_number(kind: Any) -> bool:
    from pandas.api.types import is_numeric_dtype  # noqa: PLC0415 - it made the frame

    return bool(is_numeric_dtype(getattr(getattr(kind, "categories", None), "dtype", kind)))


def require_lengths(part: dict[str, Any], number: int) -> None:
    """Refuse a partition whose collections have different numbers of rows: they would belong to others."""
    sizes = {_GIVEN_AS.get(role, role): len(data) for role, data in part.items()}
    if len(set(sizes.values())) > 1:
        told = ", ".join(f"{role} has {size}" for role, size in sizes.items())
        raise ValueError(
            f"Collections must be cut at the same rows; in partition {number} {told}. Repartition, or name columns of "
            "one data frame."
        )


def labels_of(given: Any, number: int) -> AnyArray:
    """Return the labels of a partition: numbers, or texts."""
    labels = np.asarray(given)
    labels = labels[:, 0] if labels.ndim == _MATRIX and labels.shape[1] == 1 else labels
    if labels.ndim != 1:
        raise ValueError(f"y must hold one label for each row; got shape {labels.shape} in partition {number}.")
    n_missing = count_missing(labels)
    if n_missing:
        raise ValueError(
            f"y must hold a label for each row; {n_missing} of {len(labels)} are missing in partition {number}. Leave "
            "such rows out."
        )
    if labels.dtype.kind == "f" and (labels != np.rint(labels)).any():
        value = labels[labels != np.rint(labels)][0]
        raise ValueError(f"y must hold classes; got real numbers, such as {value:.6g}, in partition {number}.")
    return labels if labels.dtype.kind != "O" else _of_one_type(labels, number)


def _of_one_type(labels: AnyArray, number: int) -> AnyArray:
    """Return objects as an array of numbers or of texts."""
    kinds = {isinstance(label, str) for label in labels.tolist()}
    if len(kinds) > 1:
        raise ValueError(f"y must hold labels of one type; got texts and others in partition {number}.")
    return np.array(labels.tolist())


def joined(parts: list[Any], role: str) -> Any:
    """Return what partitions hold as one."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], dict):
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    if hasattr(parts[0], "iloc"):
        import pandas as pd  # noqa: PLC0415 - optional, and here already

        return pd.concat(parts, ignore_index=True)
    if role == Y and len({part.dtype.kind in "SU" for part in parts}) > 1:
        raise ValueError("y must hold labels of one type in all partitions; got texts in some, and numbers in others.")
    return np.concatenate(parts)
