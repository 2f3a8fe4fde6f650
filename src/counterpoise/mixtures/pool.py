"""Asking a pool of models: labels of any kind as class codes, one byte for each row and model.

Whatever a model returns, strings, numbers, booleans or columns of probabilities, becomes the place of a class among the
sorted ``classes``. An error says which model it was.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse, vstack
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_array, check_is_fitted

from counterpoise._base.checks import is_frame
from counterpoise._base.progress import who_hears
from counterpoise._base.shards import in_threads
from counterpoise._base.types import AnyArray, BoolArray, ByteArray, IntArray
from counterpoise.goals import tables
from counterpoise.goals.classes import as_labels, where_equal

_CHUNK = 65_536  # rows asked about at once: what a model needs on the way (probabilities, distances) stays small
_COLUMNS = 2  # dimensions


def predict_codes(model: Any, X: Any, classes: AnyArray) -> IntArray:
    """Return the predictions of a model as places in ``classes``, which are sorted."""
    if hasattr(model, "predict_codes"):
        codes = np.asarray(model.predict_codes(X))
        known = getattr(model, "classes_", classes)  # a model may have been fitted to rows that lack a class
        return codes if len(known) == len(classes) else np.searchsorted(classes, known)[codes]
    return codes_of(model.predict(X), n_rows(X), classes, f"The base model {model!r}")


def codes_of(predicted: Any, n_samples: int, classes: AnyArray, name: str, order: AnyArray | None = None) -> IntArray:
    """Return predictions as places in the sorted ``classes``.

    Parameters
    ----------
    predicted : labels of shape (n_samples,) or (n_samples, 1), or probabilities of shape (n_samples, n_classes)
    order : the classes of the columns, where predictions are probabilities; default ``classes``
    name : what an error calls the model
    """
    labels = as_labels(predicted)
    if labels.ndim == _COLUMNS and labels.shape[1] == 1:
        labels = labels[:, 0]
    order = classes if order is None else order
    if labels.shape == (n_samples, len(order)) and labels.dtype.kind == "f" and labels.ndim == _COLUMNS:
        labels = order[labels.argmax(axis=1)]
    if labels.shape != (n_samples,):
        raise ValueError(
            f"{name} must predict one label for each of the {n_samples} rows, or a column of probabilities for each of "
            f"{len(order)} classes; it returned shape {labels.shape}."
        )
    return _places(labels, classes, name)


def _places(labels: AnyArray, classes: AnyArray, name: str) -> IntArray:
    if is_text(labels) != is_text(classes):
        raise ValueError(
            f"{name} predicted the label {labels.tolist()[0]!r}, which is not among the classes {classes.tolist()}: "
            "texts and numbers are different labels."
        )
    try:
        codes, unknown = _searched(labels, classes)
    except TypeError:  # objects that cannot be compared with the classes, such as None or text with numbers
        known = [where_equal(labels, label) for label in classes.tolist()]
        codes, unknown = np.argmax(known, axis=0), ~np.any(known, axis=0)
    if unknown.any():
        hint = ""
        if labels.dtype.kind == "f" and labels.min() >= 0 and labels.max() <= 1:
            hint = " If these are probabilities, return labels instead, or a column for each class."
        raise ValueError(
            f"{name} predicted the label {labels[unknown].tolist()[0]!r}, which is not among the classes "
            f"{classes.tolist()} that it was trained on.{hint}"
        )
    return codes


def _searched(labels: AnyArray, classes: AnyArray) -> tuple[IntArray, BoolArray]:
    """Return the places of labels in the sorted classes, and which labels are not there."""
    codes = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    return codes.astype(np.int64), np.asarray(classes[codes] != labels)


def is_text(labels: AnyArray) -> bool:
    """Tell whether labels are texts: strings, or objects of which the first is one."""
    return labels.dtype.kind in "UST" or (labels.dtype.kind == "O" and labels.size > 0 and isinstance(labels[0], str))


def pool_codes(models: Sequence[Any], X: Any, classes: AnyArray, n_jobs: int | None) -> AnyArray:
    """Return the class code of every model on every row, in the smallest unsigned type, column by column in memory.

    Rows are asked about in chunks, models and chunks in as many threads as ``n_jobs`` says.
    """
    codes = empty_codes(n_rows(X), len(models), classes)
    fill_codes(codes, dict(enumerate(models)), X, classes, n_jobs)
    return codes


def empty_codes(n_samples: int, n_models: int, classes: AnyArray) -> AnyArray:
    """Return room for the class codes of models, a column for each."""
    return np.empty((n_samples, n_models), dtype=np.min_scalar_type(len(classes) - 1), order="F")


def fill_codes(codes: AnyArray, models: Mapping[int, Any], X: Any, classes: AnyArray, n_jobs: int | None) -> None:
    """Fill the columns of some models with the class codes that they say."""
    asks = {place: partial(predict_codes, model, classes=classes) for place, model in models.items()}
    fill_columns(codes, asks, X, n_jobs)


def fill_columns(columns: AnyArray, asks: Mapping[int, Callable[[Any], Any]], X: Any, n_jobs: int | None) -> None:
    """Fill some columns, each with what one function says about rows, some rows at a time, in threads."""
    n_samples = len(columns)
    chunks = [slice(start, min(start + _CHUNK, n_samples)) for start in range(0, n_samples, _CHUNK)]

    heard = who_hears()

    def fill(place: int, chunk: slice) -> None:
        rows = X if len(chunks) == 1 else take_rows(X, chunk)
        columns[chunk, place] = asks[place](rows)
        if chunk.stop == n_samples:
            heard()

    tasks = [(place, chunk) for place in asks for chunk in chunks]
    in_threads(fill, tasks, n_jobs, shared=True)


def failures(predicted: AnyArray, codes: IntArray) -> ByteArray:
    """Return where predicted codes, a column for each model, differ from the true ones, one byte each."""
    losses = np.empty(predicted.shape, dtype=np.uint8, order="F")
    for place in range(predicted.shape[1]):
        np.not_equal(predicted[:, place], codes, out=losses[:, place].view(np.bool_))
    return losses


def n_rows(X: Any) -> int:
    """Return the number of rows of an array, a sparse matrix, a data frame or binned features."""
    if hasattr(X, "shape") and not X.shape:
        raise ValueError(f"X must have rows; got a single value, {X!r}.")
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def take_rows(X: Any, rows: Any) -> Any:
    """Return some rows of an array, a sparse matrix or a data frame."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X.take(np.arange(n_rows(X))[rows]) if hasattr(X, "column_names") else X[rows]  # pyarrow's tables, and others


def stack_rows(parts: Sequence[Any]) -> Any:
    """Return the rows of arrays, sparse matrices or data frames one below the other, all in the form of the first."""
    first, *others = parts
    if not others:
        return first
    if issparse(first):
        return vstack(parts).tocsr()
    if hasattr(first, "iloc"):
        import pandas as pd  # noqa: PLC0415 - it made the frame

        alike = [pd.DataFrame(other, columns=first.columns).astype(first.dtypes) for other in others]
        return pd.concat([first, *alike], ignore_index=True)
    if is_frame(first):
        import polars as pl  # noqa: PLC0415 - it made the frame

        names = first.columns
        frames = [other if is_frame(other) else pl.DataFrame(other, schema=names) for other in others]
        return pl.concat([first, *(frame.select(names).cast(dict(first.schema)) for frame in frames)])
    return np.concatenate([other.toarray() if issparse(other) else np.asarray(other) for other in parts])


def as_rows(X: Any) -> Any:
    """Return something whose rows can be taken: what it is, or an array."""
    if issparse(X):
        return X.tocsr()  # of some formats no rows can be taken
    return X if hasattr(X, "shape") else np.asarray(X)


def set_input_tags(tags: Any, models: Sequence[Any]) -> None:
    """Say what rows are taken where they go to models as they are: what all take; those without tags may take any."""
    inputs = [get_tags(model).input_tags for model in models if hasattr(model, "__sklearn_tags__")]
    tags.input_tags.sparse = all(one.sparse for one in inputs)
    tags.input_tags.allow_nan = all(one.allow_nan for one in inputs)


def groups_of(sensitive_features: Any, n_samples: int) -> tuple[IntArray, list[str]]:
    """Return the group of each row and the groups' names, from an array, a data frame or a dict of columns."""
    return tables.group_codes(tables.Table(np.empty((n_samples, 0)), sensitive_features=sensitive_features))


def checked_features(X: Any, name: str, purpose: str, check: Callable[[Any], Any]) -> Any:
    """Return the features of a dataset after a check; errors name the dataset."""
    if X is None:
        raise ValueError(f"Dataset {name!r} needs features {purpose}: pass X in its Table.")
    try:
        return check(X)
    except ValueError as error:
        raise ValueError(f"Dataset {name!r}: {error}") from error


class PooledClassifier(ClassifierMixin, BaseEstimator):
    """What every classifier made of other models shares: how it checks what it is given.

    Its ``fit`` sets ``classes_``.
    """

    def _codes_of(self, y: Any, n_samples: int) -> IntArray:
        labels = np.asarray(y)
        if labels.shape != (n_samples,):
            raise ValueError(
                f"y must have shape ({n_samples},), one label for each row of X; got shape {labels.shape}."
            )
        try:
            codes, unknown = _searched(labels, self.classes_)
        except TypeError:  # objects that cannot be compared with the classes, such as None or text with numbers
            known = set(self.classes_.tolist())
            unknown = np.array([label not in known for label in labels.tolist()])
        if unknown.any():
            label = labels[unknown].tolist()[0]
            raise ValueError(f"y holds the label {label!r}, which is not among the classes {self.classes_.tolist()}.")
        return codes

    def _input_dtype(self) -> str | None:
        """Return what arrays and data frames are converted to: None leaves them to the models."""
        return None

    def _check_predict_input(self, X: Any) -> Any:
        check_is_fitted(self, "classes_")
        _check_feature_names(self, X, reset=False)
        if is_frame(X) and self._input_dtype() is None:
            _check_n_features(self, X, reset=False)
            return X
        tags = self.__sklearn_tags__().input_tags
        X = check_array(
            X,
            accept_sparse="csr" if tags.sparse else False,
            dtype=self._input_dtype(),
            ensure_all_finite="allow-nan" if tags.allow_nan else True,
            allow_nd=tags.three_d_array,
            estimator=self,
        )
        _check_n_features(self, X, reset=False)
        return X
