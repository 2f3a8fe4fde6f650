"""What data frames, arrays and tables of Arrow hold, told in one way: names, columns, rows."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from counterpoise._base.checks import unmasked
from counterpoise._base.types import AnyArray


def named_columns(features: Any) -> dict[str, AnyArray]:
    """Return columns by name; those of arrays get names."""
    if features is None:
        return {}
    if isinstance(features, Mapping):
        return {str(name): unmasked(values) for name, values in features.items()}
    names = frame_names(features)
    if names:
        return {name: np.asarray(features[key]) for name, key in names.items()}
    array = unmasked(features)
    if array.ndim == 1:
        series_name = getattr(features, "name", None)  # a column taken out of a frame also keeps its own name
        return {"group": array} | ({series_name: array} if isinstance(series_name, str) else {})
    if array.ndim != 2:  # noqa: PLR2004 - a matrix
        wanted = "(n_samples,) or (n_samples, n_columns)"
        raise ValueError(f"sensitive_features must have shape {wanted}; got {array.shape}.")
    return {f"group{place}": array[:, place] for place in range(array.shape[1])}


def frame_names(X: Any) -> dict[str, Any]:
    """Return the columns of a data frame by name; empty for anything else."""
    kind = "column_names" if hasattr(X, "column_names") else "columns"  # those of pyarrow are the data themselves
    names: Any = getattr(X, kind, ())
    return {str(name): name for name in names}


def rows_at(X: Any, places: AnyArray) -> Any:
    """Return some rows of a data frame, an array or a table of Arrow; None of None."""
    if hasattr(X, "column_names"):  # a table of Arrow
        return X.take(places)
    return None if X is None else getattr(X, "iloc", X)[places]


def count_rows(parts: Iterable[Any]) -> int:
    """Return the number of rows of the first part of a Table that is there."""
    for values in parts:
        if values is not None:
            return _length(values)
    raise ValueError("A Table needs rows: X, y, a baseline or sensitive_features; got none of them.")


def _length(values: Any) -> int:
    try:
        return int(values.shape[0]) if hasattr(values, "shape") else len(values)
    except (TypeError, IndexError):
        raise ValueError(f"A Table needs an entry for each row; got {values!r}, which has no rows.") from None
