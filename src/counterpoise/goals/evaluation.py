"""Predictions of any kind as numbers from 0 to 1 beside the tables they belong to."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.checks import as_numbers, value_range
from counterpoise._base.types import AnyArray, ArrayLike, FloatArray
from counterpoise.goals.binding import Linear, Views, predictions_of, tally_rates
from counterpoise.goals.classes import (
    Classes,
    as_labels,
    check_answers,
    check_defer_label,
    decided,
    find_classes,
    known_labels,
)
from counterpoise.goals.rows import DEFAULT, Dataset
from counterpoise.goals.tables import Table, as_tables, table_of

_TWO = 2  # classes, which can be told apart


class Prepared(NamedTuple):
    """Tables as rates see them, and how positive the prediction of each row is, or how much of each answer."""

    views: Views
    predictions: dict[str, FloatArray]
    are_drawn: bool = False  # predictions are chances of draws

    def value(self, rate: Linear) -> float:
        """Return the value of a rate whose classes are known."""
        return float(rate.constant + tally_rates([rate], self.views, self._count).item())

    def _count(self, rows: Dataset, place: int) -> FloatArray:
        """Return the weight of the rows that are called the class of a code."""
        (places, weights), said = self.views.rows(rows), predictions_of(self.predictions, rows.name)
        if said.ndim > 1:
            said = said[:, place]
        elif place == 0:
            said = 1.0 - said
        return np.array([(weights * said[places]).sum()])  # threads of a product cost more than they save


def prepare(
    predictions: Any,
    data: Any,
    *,
    kind: str,
    pos_label: Any = None,
    classes: ArrayLike | None = None,
    defer_label: Any = None,
) -> Prepared:
    """Check predictions and bring them to numbers from 0 to 1.

    Parameters
    ----------
    predictions : array, or dict of arrays by dataset
    data : Table, or dict of Tables by dataset
    kind : {"labels", "probabilities", "scores"}
        Labels count as 0 or 1, probabilities as they are, a score z as ``max(0, min(1, 1/2 + z))``.
    pos_label : label, optional
    classes : array of labels, optional
        All there are, where the labels of the data do not hold each of them. Predicted labels must be among them, or be
        the ``defer_label``.
    defer_label : label, optional
        What predictions hold for deferred rows; probabilities have one more column for them, the last.
    """
    tables = as_tables(data)
    arrays = {name: as_labels(values) for name, values in _by_dataset(predictions, tables).items()}
    for name, array in arrays.items() if kind != "probabilities" else ():
        _check_shape(array, [(table_of(tables, name).n_samples,)], kind, name)
    seen = known_labels((table.y for table in tables.values()), classes)
    titles = {name: f"{'predictions' if kind == 'labels' else kind} for dataset {name!r}" for name in arrays}
    known = {*seen.tolist(), *([] if pos_label is None else [pos_label])}
    for name, array in arrays.items() if kind == "labels" and len(known) < _TWO else ():
        check_answers(decided(array, defer_label), known, titles[name])  # none may be taken for the other class
    found = find_classes([seen], pos_label=pos_label)
    if defer_label is not None:
        check_defer_label(defer_label, found.labels)
        found = found._replace(deferred=defer_label)
    if found.several and kind == "scores":
        raise ValueError(f"Ramp rates are for two classes; there are {len(found.several)}.")
    for name, array in arrays.items() if kind == "probabilities" else ():
        n_samples = table_of(tables, name).n_samples
        columns = [(n_samples, found.n_columns)] if found.n_columns > 1 else [(n_samples,), (n_samples, 2)]
        _check_shape(array, columns, kind, name)
    read = {"labels": _from_labels, "probabilities": _from_probabilities, "scores": _from_scores}[kind]
    said = {name: read(array, found, titles[name]) for name, array in arrays.items()}
    return Prepared(Views(tables, found), said, kind == "probabilities")


def _check_shape(array: AnyArray, wanted: Sequence[tuple[int, ...]], kind: str, name: str) -> None:
    if array.shape not in wanted:
        raise ValueError(
            f"{kind} for dataset {name!r} must have shape {' or '.join(map(str, wanted))}; got shape {array.shape}."
        )


def _by_dataset(predictions: Any, tables: Mapping[str, Table]) -> Mapping[str, Any]:
    if isinstance(predictions, Mapping):
        return predictions
    if not tables:
        raise ValueError("data must be a Table, or a dict from dataset names to Tables; got an empty dict.")
    if len(tables) > 1:
        raise ValueError(
            f"With {len(tables)} datasets, predictions must be a dict with one array for each: {', '.join(tables)}."
        )
    return dict.fromkeys(tables, predictions)


def _from_labels(array: AnyArray, classes: Classes, name: str) -> FloatArray:
    codes = classes.answers(array, name)
    return np.asarray(np.eye(classes.n_columns)[codes] if classes.n_columns > 1 else codes.astype(np.float64))


def _from_probabilities(array: AnyArray, classes: Classes, name: str) -> FloatArray:
    if array.ndim > 1 and not classes.several:  # as predict_proba gives them, in sorted order
        place = 1 if classes.negative is None or classes.negative < classes.positive else 0
        array = array[:, place] if classes.n_columns == 1 else array[:, [1 - place, place, 2]]
    probabilities = as_numbers(array, name).astype(np.float64)
    least, largest = value_range(probabilities, name)
    if least < 0 or largest > 1:
        raise ValueError(f"{name} must lie in [0, 1]; got {least if least < 0 else largest!r}.")
    return probabilities


def _from_scores(array: AnyArray, classes: Classes, name: str) -> FloatArray:  # noqa: ARG001 - one signature for all
    scores = as_numbers(array, name).astype(np.float64)
    value_range(scores, name)
    return np.clip(0.5 + scores, 0.0, 1.0)


def said_by(model: Any, name: str, table: Table) -> AnyArray:
    """Return what a model says about the rows of a dataset: asked, or told in its place."""
    ask: Callable[[Any], Any] | None = getattr(model, "predict", model if callable(model) else None)
    if ask is not None:
        if table.X is None:
            raise ValueError(f"Dataset {name!r} has no X for the model to predict: pass X, or the predictions instead.")
        return as_labels(ask(table.X))
    if isinstance(model, Mapping):
        return as_labels(predictions_of(model, name))
    if name != DEFAULT:
        raise ValueError(f"predictions must be a dict by dataset where goals speak of {name!r}; got one array.")
    return as_labels(model)
