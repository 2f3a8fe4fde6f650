"""Rows in the form that models take, and labelled rows with their weights, groups and table."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse, vstack
from sklearn.utils import get_tags
from sklearn.utils.validation import column_or_1d

from counterpoise._base.checks import check_sample_weight
from counterpoise._base.frames import as_array, column_names, is_frame, select, stack_frames, take_rows
from counterpoise._base.types import AnyArray, ArrayLike, FloatArray, IntArray
from counterpoise.goals import Table
from counterpoise.goals.classes import where_equal
from counterpoise.goals.partial_labels import PartialLabels, regions_above
from counterpoise.goals.tables import group_codes


class PartialRows(NamedTuple):
    """Rows of which some have a label, with all that belongs to them but their labels."""

    labels: PartialLabels
    classes: AnyArray
    sample_weight: FloatArray | None
    groups: IntArray | None
    table: Table

    def with_masses(self, regions: FloatArray) -> tuple[IntArray, IntArray, Table]:
        """Return each row once for each class on which it has a mass: its place, its class, and a table of masses."""
        masses = self.labels.masses(self.classes, regions)
        masses = masses if self.sample_weight is None else masses * self.sample_weight[:, None]
        rows, codes = np.nonzero(masses)
        weights, labels = masses[rows, codes], self.classes[codes]
        table = self.table.part(rows, labels, weights, has_masses=np.unique(rows).size < rows.size)
        table.n_labels = self.labels.labels.size if table.has_masses else None
        return rows, codes, table


class LabelledData(NamedTuple):
    """Labelled rows as models take them, and as goals see them."""

    X: Any
    codes: IntArray  # of the labels, among the sorted classes
    sample_weight: FloatArray | None
    groups: IntArray | None  # of all sensitive features together
    table: Table
    partial: PartialRows | None = None  # all rows of X, where only some have a label: the other fields are of those

    @classmethod
    def of(
        cls,
        X: Any,
        y: Any,
        classes: AnyArray,
        *,
        original: Any = None,
        sensitive_features: Any = None,
        baseline: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        largest_weight: float | None = None,
        largest_value: Any = None,
        amounts: Sequence[str] = (),
    ) -> "LabelledData":
        """Return rows whose features are checked; ``original`` are the rows as they came.

        ``amounts`` are columns that goals count with, and that make no groups.
        """
        labels = y.filled if isinstance(y, PartialLabels) else y
        codes = label_codes(labels, n_rows(X), classes)
        weight = check_sample_weight(sample_weight, codes.size)
        features = original if is_frame(original) else np.empty((codes.size, 0))
        weights: dict[str, Any] = {"sample_weight": sample_weight, "largest_weight": largest_weight}
        weights["largest_value"] = largest_value
        table = Table(features, classes[codes], sensitive_features, baseline, **weights)
        has_groups = sensitive_features is not None and not set(table.sensitive_columns) <= set(amounts)
        groups = group_codes(table, amounts)[0] if has_groups else None
        if not isinstance(y, PartialLabels) or y.is_complete:
            return cls(X, codes, weight, groups, table)
        if largest_weight is not None:
            raise ValueError("largest_weight is for weights; labels known in part make masses of them. Leave it out.")
        rows = PartialRows(y, classes, weight, groups, table.with_parts(y=None, sample_weight=None))
        known = np.flatnonzero(y.is_known)
        masses = 1.0 / y.propensity if weight is None else weight[known] / y.propensity
        own = rows.table.part(known, classes[codes[known]], masses)
        return cls(X, codes[known], own.sample_weight, None if groups is None else groups[known], own, rows)

    def with_masses(self, scores: FloatArray) -> tuple["LabelledData", IntArray | slice]:
        """Return each row once for each class on which it has a mass, with the places of these rows among all.

        Where all labels are known nothing changes. Masses vary least for shares of rows above thresholds of the scores.
        """
        if self.partial is None:
            return self, slice(None)
        rows, codes, table = self.partial.with_masses(regions_above(scores))
        groups = None if self.partial.groups is None else self.partial.groups[rows]
        return LabelledData(None, codes, table.sample_weight, groups, table), rows

    def only(self, places: IntArray) -> "LabelledData":
        """Return some of the rows."""
        weight = None if self.sample_weight is None else self.sample_weight[places]
        groups = None if self.groups is None else self.groups[places]
        return LabelledData(take_rows(self.X, places), self.codes[places], weight, groups, self.table.only(places))


def label_codes(y: Any, n_samples: int, classes: AnyArray) -> IntArray:
    """Return the places of labels among the sorted classes, after checking that there is one for each row."""
    labels = as_array(y)
    if labels.shape != (n_samples,):
        raise ValueError(f"y must have shape ({n_samples},), one label for each row of X; got shape {labels.shape}.")
    codes, is_unknown = places_among(labels, classes)
    if is_unknown.any():
        label = labels[is_unknown].tolist()[0]
        raise ValueError(f"y holds the label {label!r}, which is not among the classes {classes.tolist()}.")
    return codes


def places_among(labels: AnyArray, classes: AnyArray) -> tuple[IntArray, AnyArray]:
    """Return the places of labels in the sorted classes, and which labels are not there."""
    try:
        codes = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
        return codes.astype(np.int64), np.asarray(classes[codes] != labels)
    except TypeError:  # objects that cannot be compared with the classes, such as None or text with numbers
        is_label = [where_equal(labels, label) for label in classes.tolist()]
        return np.argmax(is_label, axis=0), ~np.any(is_label, axis=0)


def n_rows(X: Any) -> int:
    """Return the number of rows of an array, a sparse matrix, a data frame or binned features."""
    if hasattr(X, "shape") and not X.shape:
        raise ValueError(f"X must have rows; got a single value, {X!r}.")
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def stack_rows(parts: Sequence[Any]) -> Any:
    """Return the rows of arrays, sparse matrices or data frames one below the other, all in the form of the first."""
    first, *others = parts
    if not others:
        return first
    if issparse(first):
        return vstack(parts).tocsr()
    if is_frame(first):
        return stack_frames(parts)
    return np.concatenate([other.toarray() if issparse(other) else np.asarray(other) for other in parts])


def as_rows(X: Any) -> Any:
    """Return rows in a form from which some can be taken: unchanged where possible, else an array."""
    if issparse(X):
        return X.tocsr()  # of some formats no rows can be taken
    return X if hasattr(X, "shape") else np.asarray(X)


def as_columns(X: Any) -> Any:
    """Return rows as columns: texts are rows of one column."""
    return np.asarray(X)[:, None] if len(X.shape) == 1 else X


def known_columns(X: Any, names: AnyArray | None) -> Any:
    """Return a data frame with only the columns that ``fit`` had, without ids or labels."""
    if names is None or not is_frame(X) or X.shape[1] <= len(names) or not set(names) <= set(column_names(X)):
        return X
    return select(X, names.tolist())


def set_input_tags(tags: Any, models: Sequence[Any]) -> None:
    """Set the input tags of a classifier whose models get the rows unchanged: it accepts what all models accept."""
    inputs = [get_tags(model).input_tags for model in models if hasattr(model, "__sklearn_tags__")]
    tags.input_tags.sparse = all(one.sparse for one in inputs)
    tags.input_tags.allow_nan = all(one.allow_nan for one in inputs)


def groups_of(sensitive_features: Any, n_samples: int) -> tuple[IntArray, list[str]]:
    """Return the group of each row and the groups' names, from an array, a data frame or a dict of columns."""
    return group_codes(Table(np.empty((n_samples, 0)), sensitive_features=sensitive_features))


def checked_features(X: Any, name: str, purpose: str, check: Callable[[Any], Any]) -> Any:
    """Return the features of a dataset after a check; errors name the dataset."""
    if X is None:
        raise ValueError(f"Dataset {name!r} needs features {purpose}: pass X in its Table.")
    try:
        return check(X)
    except ValueError as error:
        raise ValueError(f"Dataset {name!r}: {error}") from error


def person_numbers(ids: Any, n_samples: int, rows: str = "X") -> IntArray:
    """Return the person of each row by number, after checking that there is one for each row."""
    values = np.asarray(column_or_1d(as_array(ids)))
    if len(values) != n_samples:
        raise ValueError(f"ids must hold one person for each of the {n_samples} rows of {rows}; got {len(values)}.")
    missing = [place for place, value in enumerate(values.tolist()) if value is None or value != value]  # noqa: PLR0124
    if missing:
        raise ValueError(f"ids must name the person of every row of {rows}; row {missing[0]} has none.")
    return np.unique(values.astype(str) if values.dtype == object else values, return_inverse=True)[1]
