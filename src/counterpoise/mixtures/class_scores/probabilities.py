"""Asking models how likely each class is, and checking what they say."""

from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

import numpy as np

from counterpoise._base.checks import as_numbers
from counterpoise._base.types import AnyArray, FloatArray
from counterpoise.mixtures.answers import TRAIN, Positive
from counterpoise.mixtures.members import asked, check_instance
from counterpoise.mixtures.pool import codes_of, n_rows
from counterpoise.mixtures.scores.asking import ScorePool, scorer

_SUM_ROOM = 1e-3  # by which the probabilities of a row may miss one: rounding of small floats
_TABLE = 2  # dimensions


class ClassScorer(NamedTuple):
    """A model of any library, asked for the probability of each class."""

    name: str
    model: Any
    positive: Positive

    def score(self, X: Any) -> FloatArray:
        """Return the probabilities of each row, in the order of the classes."""
        said = np.asarray(asked(self.name, getattr(self.model, "predict_proba", self.model), X))
        order = getattr(self.model, "classes_", None)
        return checked_probabilities(said, n_rows(X), self.positive.classes, order, self.name)


class StoredProbabilities(NamedTuple):
    """Columns of probabilities, or answers, instead of a model, by dataset."""

    name: str
    columns: Mapping[str, AnyArray]
    positive: Positive

    def score(self, X: Any) -> NoReturn:  # noqa: ARG002 - whatever they are
        """Say that other rows cannot be decided about."""
        raise ValueError(
            f"{self.name} is stored probabilities for the rows of fit, which say nothing about other rows. Pass the "
            "model itself to decide about those."
        )

    def on(self, dataset: str | None, n_samples: int) -> FloatArray:
        """Return the probabilities for a dataset of ``fit``."""
        if dataset is None:
            self.score(None)
        if dataset not in self.columns:
            raise ValueError(
                f"{self.name} is stored probabilities for {', '.join(map(repr, self.columns))}; dataset {dataset!r} "
                "needs its own: pass a dict of arrays by dataset, or the model itself."
            )
        column, name = np.asarray(self.columns[dataset]), f"{self.name} (stored for {dataset!r})"
        classes = self.positive.classes
        if column.ndim == 1:  # answers, of which each is sure
            return np.asarray(np.eye(len(classes))[codes_of(column, n_samples, classes, name)])
        return checked_probabilities(column, n_samples, classes, None, name)


def class_scorer(title: str, model: Any, positive: Positive) -> ClassScorer | StoredProbabilities:
    """Return what tells the probabilities of a model, or of columns in its place."""
    check_instance(title, model)
    if hasattr(model, "predict_proba") or (callable(model) and not hasattr(model, "predict")):
        return ClassScorer(title, model, positive)
    if isinstance(model, Mapping):
        return StoredProbabilities(title, {name: np.asarray(column) for name, column in model.items()}, positive)
    if hasattr(model, "__len__") and not isinstance(model, (str, bytes)) and not hasattr(model, "predict"):
        return StoredProbabilities(title, {TRAIN: np.asarray(model)}, positive)
    raise TypeError(
        f"{title} tells no probabilities of {len(positive.classes)} classes: rules need predict_proba, a callable from "
        f"rows to a column for each class, or an array of such columns; got {model!r}. Calibrate it "
        "(CalibratedClassifierCV), or mix what models say: MixtureClassifier."
    )


def any_scorer(title: str, model: Any, positive: Positive) -> Any:
    """Return what tells the scores of a model: of two classes those of the positive one, else all probabilities."""
    return (scorer if positive.is_binary else class_scorer)(title, model, positive)


def checked_probabilities(
    said: AnyArray, n_samples: int, classes: AnyArray, order: AnyArray | None, name: str
) -> FloatArray:
    """Return probabilities in the order of the classes, each row summing to one.

    Parameters
    ----------
    said : array of shape (n_samples, n_classes)
    classes : all classes, sorted
    order : the classes of the columns, where a model knows some of them or in another order; default ``classes``
    name : what an error calls the model
    """
    values = as_numbers(said, f"The probabilities of {name}").astype(np.float64, copy=False)
    columns = classes if order is None else np.asarray(order)
    if values.shape != (n_samples, len(columns)):
        raise ValueError(
            f"{name} must give a probability for each of {len(columns)} classes, shape ({n_samples}, {len(columns)}); "
            f"it returned shape {values.shape}."
        )
    _check_rows(values, name)
    found = np.zeros((n_samples, len(classes)))
    found[:, np.searchsorted(classes, columns)] = np.maximum(values, 0.0)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def _check_rows(values: FloatArray, name: str) -> None:
    """Refuse rows that are no probabilities, and tell the first of them."""
    sums = values.sum(axis=1)
    problems = {
        "finite": ~np.isfinite(values).all(axis=1),
        "at least 0": (values < -_SUM_ROOM).any(axis=1),
        "of sum 1 in each row": np.abs(sums - 1.0) > _SUM_ROOM,
    }
    for wanted, bad in problems.items():
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            shown = f"sums to {sums[row]:.4g}" if wanted.startswith("of sum") else f"is {values[row].tolist()!r}"
            raise ValueError(
                f"The probabilities of {name} must be {wanted}; row {row} {shown}, one of {int(bad.sum())} such "
                f"rows of {len(values)}. Rules of several classes need probabilities: normalize the columns, "
                "or calibrate the model (CalibratedClassifierCV)."
            )


class ProbabilityPool(ScorePool):
    """Models that are asked for probabilities together: an array of shape (n_rows, n_models, n_classes)."""

    __slots__ = ()

    def _room(self, n_samples: int) -> FloatArray:
        return np.zeros((n_samples, len(self.members), len(self.members[0].positive.classes)))
