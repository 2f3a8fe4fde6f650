"""What a fitted model says about Dask collections: lazily, each partition where it is."""

from typing import Any

import numpy as np

from counterpoise._base.types import AnyArray
from counterpoise.distributed.collections import is_named, is_path

_MATRIX = 2


def lazily(model: Any, method: str, X: Any, more: dict[str, Any]) -> Any:
    """Return what a method of a model of one machine says about rows: as a collection, where they are one."""
    given = {name: value for name, value in more.items() if value is not None}
    X = as_collection(X)
    if not is_lazy(X):
        return getattr(model, method)(X, **given)
    return (_of_array if hasattr(X, "chunks") else _of_frame)(model, method, X, given)


def as_collection(X: Any) -> Any:
    """Return rows in files as a Dask DataFrame; others as they are."""
    if not is_path(X):
        return X
    import dask.dataframe as dd  # noqa: PLC0415 - optional

    return dd.read_parquet(X)


def is_lazy(X: Any) -> bool:
    """Tell whether rows are a Dask collection."""
    return hasattr(X, "dask")


def _answers(model: Any, method: str) -> AnyArray:
    """Return no rows of the answers, or of the columns of probabilities, as a form for others."""
    columns = _columns(model, method)
    return np.asarray(columns)[:0] if method == "predict" else np.empty((0, len(columns)))


def _columns(model: Any, method: str) -> AnyArray:
    """Return what there are probabilities of: the classes, or all decisions, deferral among them."""
    return model.classes_ if method == "predict_proba" else model._pool().answers  # type: ignore[no-any-return]  # noqa: SLF001 - ours


def _of_array(model: Any, method: str, X: Any, given: dict[str, Any]) -> Any:
    import dask.array as da  # noqa: PLC0415 - optional

    _refuse_names(given)
    answers, rows = _answers(model, method), X.rechunk({1: -1})
    others = {name: one.to_dask_array() if hasattr(one, "to_dask_array") else one for name, one in given.items()}
    _require_blocks(rows, others)
    axes = [part for one in others.values() for part in (one, "ik"[: one.ndim])]
    wide = {"new_axes": {"c": answers.shape[1]}} if answers.ndim == _MATRIX else {}
    return da.blockwise(
        _asked,
        "ic"[: answers.ndim],
        rows,
        "ij",
        *axes,
        model=model,
        method=method,
        names=tuple(others),
        concatenate=True,
        align_arrays=False,  # blocks may be of unknown sizes
        dtype=answers.dtype,
        meta=answers,
        **wide,
    )


def _asked(X: Any, *others: Any, model: Any, method: str, names: tuple[str, ...]) -> Any:
    return getattr(model, method)(X, **dict(zip(names, others, strict=True)))


def _of_frame(model: Any, method: str, X: Any, given: dict[str, Any]) -> Any:
    named = {name: value for name, value in given.items() if is_named(value)}
    others = {name: value for name, value in given.items() if not is_named(value)}
    _require_names(X, named)
    _require_partitions(X, others)
    frames = [one.to_dask_dataframe() if hasattr(one, "chunks") else one for one in others.values()]
    form = _framed(_answers(model, method), None, model, method)
    asked = (model, method, named, tuple(others))
    return X.map_partitions(_asked_frame, *asked, *frames, meta=form, align_dataframes=False)


def _asked_frame(X: Any, model: Any, method: str, named: Any, names: Any, *others: Any) -> Any:
    if not len(X):
        return _framed(_answers(model, method), X.index, model, method)
    more = {name: X[value] for name, value in named.items()} | dict(zip(names, others, strict=True))
    wanted = getattr(model, "feature_names_in_", None)
    features = X if wanted is None or not set(wanted) <= set(X.columns) else X[list(wanted)]
    return _framed(getattr(model, method)(features, **more), X.index, model, method)


def _framed(said: AnyArray, index: Any, model: Any, method: str) -> Any:
    import pandas as pd  # noqa: PLC0415 - the rows are of it

    return pd.Series(said, index) if method == "predict" else pd.DataFrame(said, index, list(_columns(model, method)))


def _refuse_names(given: dict[str, Any]) -> None:
    for name, value in given.items():
        if is_named(value):
            raise ValueError(f"{name} names the column {value!r}, and an array has no names: pass a Dask array.")


def _require_names(X: Any, named: dict[str, Any]) -> None:
    for name, value in named.items():
        missing = [one for one in ([value] if isinstance(value, str) else value) if one not in X.columns]
        if missing:
            raise ValueError(
                f"{name} names the column {missing[0]!r}, and X has none of that name; it has "
                f"{', '.join(map(str, X.columns))}."
            )


def _require_blocks(X: Any, others: dict[str, Any]) -> None:
    for name, one in others.items():
        if not hasattr(one, "chunks") or one.numblocks[0] != X.numblocks[0]:
            raise ValueError(_not_cut_alike(name, one, "blocks", X.numblocks[0]))


def _require_partitions(X: Any, others: dict[str, Any]) -> None:
    for name, one in others.items():
        if getattr(one, "npartitions", None) != X.npartitions:
            raise ValueError(_not_cut_alike(name, one, "partitions", X.npartitions))


def _not_cut_alike(name: str, one: Any, what: str, size: int) -> str:
    got = f"{one.npartitions} {what}" if hasattr(one, "npartitions") else type(one).__name__
    return f"{name} must be a Dask collection that is cut at the rows of X, with {size} {what}; got {got}."
