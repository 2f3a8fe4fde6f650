"""Predictions of any kind as numbers from 0 to 1 beside the tables they belong to."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.checks import as_numbers, value_range
from counterpoise._base.types import AnyArray, FloatArray
from counterpoise.goals.binding import Linear, bind_rates
from counterpoise.goals.classes import Classes, is_positive
from counterpoise.goals.tables import Table, as_tables, classes_of, table_of


class Prepared(NamedTuple):
    """Tables, their two classes, and how positive the prediction of each row is."""

    tables: dict[str, Table]
    classes: Classes
    predictions: dict[str, FloatArray]

    def value(self, rate: Linear) -> float:
        """Return the value of a rate."""
        return float(bind_rates([rate], self.tables, self.classes).values(self.predictions)[0])


def prepare(predictions: Any, data: Any, *, kind: str, pos_label: Any = None) -> Prepared:
    """Check predictions and bring them to numbers from 0 to 1.

    Parameters
    ----------
    predictions : array, or dict of arrays by dataset
    data : Table, or dict of Tables by dataset
    kind : {"labels", "probabilities", "scores"}
        Labels count as 0 or 1, probabilities as they are, a score z as ``max(0, min(1, 1/2 + z))``.
    pos_label : label, optional
    """
    tables = as_tables(data)
    arrays = {name: np.asarray(values) for name, values in _by_dataset(predictions, tables).items()}
    for name, array in arrays.items():
        _check_shape(array, table_of(tables, name).n_samples, kind, name)
    classes = classes_of(tables, arrays.values() if kind == "labels" else (), pos_label=pos_label)
    read = {"labels": _from_labels, "probabilities": _from_probabilities, "scores": _from_scores}[kind]
    positive = {name: read(array, classes, f"{kind} for dataset {name!r}") for name, array in arrays.items()}
    return Prepared(tables, classes, positive)


def _check_shape(array: AnyArray, n_samples: int, kind: str, name: str) -> None:
    wanted = [(n_samples,), (n_samples, 2)] if kind == "probabilities" else [(n_samples,)]
    if array.shape not in wanted:
        raise ValueError(
            f"{kind} for dataset {name!r} must have shape {' or '.join(map(str, wanted))}; got shape {array.shape}."
        )


def _by_dataset(predictions: Any, tables: Mapping[str, Table]) -> Mapping[str, Any]:
    if isinstance(predictions, Mapping):
        return predictions
    if len(tables) > 1:
        raise ValueError(
            f"With {len(tables)} datasets, predictions must be a dict with one array for each: {', '.join(tables)}."
        )
    return dict.fromkeys(tables, predictions)


def _from_labels(array: AnyArray, classes: Classes, name: str) -> FloatArray:
    return is_positive(array, classes, name).astype(np.float64)


def _from_probabilities(array: AnyArray, classes: Classes, name: str) -> FloatArray:
    if array.ndim > 1:  # as predict_proba gives them, in sorted order
        array = array[:, 1 if classes.negative is None or classes.negative < classes.positive else 0]
    probabilities = as_numbers(array, name).astype(np.float64)
    least, largest = value_range(probabilities, name)
    if least < 0 or largest > 1:
        raise ValueError(f"{name} must lie in [0, 1]; got {least if least < 0 else largest!r}.")
    return probabilities


def _from_scores(array: AnyArray, classes: Classes, name: str) -> FloatArray:  # noqa: ARG001 - one signature for all
    scores = as_numbers(array, name).astype(np.float64)
    value_range(scores, name)
    return np.clip(0.5 + scores, 0.0, 1.0)
