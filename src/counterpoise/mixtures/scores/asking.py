"""Asking models for scores: how likely a row is positive, by any measure that grows with it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from counterpoise._base.checks import as_numbers
from counterpoise._base.types import AnyArray, FloatArray, IntArray
from counterpoise.mixtures.answers import TRAIN, Positive
from counterpoise.mixtures.members import ScoredRows, asked, check_instance
from counterpoise.mixtures.pool import codes_of, fill_columns, n_rows, take_rows

_HALF = 0.5  # the usual threshold of a probability; that of a decision function is 0
_PAIR = 2


class Scorer(NamedTuple):
    """A model of any library, asked for the score of the positive class."""

    name: str
    model: Any
    positive: Positive

    @property
    def method(self) -> str | None:
        """Return the method that scores; None where the model is a function."""
        return next((one for one in ("predict_proba", "decision_function") if hasattr(self.model, one)), None)

    def usual(self, scores: FloatArray) -> float:
        """Return the threshold that the model has by itself."""
        if self.method is None:
            return usual_of(scores)
        return 0.0 if self.method == "decision_function" else _HALF

    def score(self, X: Any) -> FloatArray:
        """Return the score of each row."""
        method = self.method
        said = np.asarray(asked(self.name, self.model if method is None else getattr(self.model, method), X))
        order = getattr(self.model, "classes_", None)
        return scores_of(said, n_rows(X), self.positive, None if order is None else np.asarray(order), self.name)


def usual_of(scores: FloatArray) -> float:
    """Return one half for what may be probabilities, else 0."""
    return _HALF if scores.min(initial=0.0) >= 0 and scores.max(initial=1.0) <= 1 else 0.0


def margins(scorer: Scorer, X: Any) -> FloatArray:
    """Return the decision function of a model, higher where the positive class is more likely."""
    said = np.asarray(asked(scorer.name, scorer.model.decision_function, X))
    return scores_of(said, n_rows(X), scorer.positive, np.asarray(scorer.model.classes_), scorer.name)


class StoredScores(NamedTuple):
    """Columns of scores, or of answers, instead of a model, by dataset."""

    name: str
    columns: Mapping[str, AnyArray]
    positive: Positive

    def usual(self, scores: FloatArray) -> float:
        """Return the threshold that such scores usually have."""
        return usual_of(scores)

    def score(self, X: Any) -> NoReturn:  # noqa: ARG002 - whatever they are
        """Say that other rows cannot be decided about."""
        raise ValueError(
            f"{self.name} is a stored column of scores for the rows of fit, which says nothing about other rows. Pass "
            "the model itself to decide about those."
        )

    def on(self, dataset: str | None, n_samples: int) -> FloatArray:
        """Return the scores for a dataset of ``fit``."""
        if dataset is None:
            self.score(None)
        if dataset not in self.columns:
            raise ValueError(
                f"{self.name} is stored scores for {', '.join(map(repr, self.columns))}; dataset {dataset!r} needs its "
                "own: pass a dict of arrays by dataset, or the model itself."
            )
        column, name = np.asarray(self.columns[dataset]), f"{self.name} (stored for {dataset!r})"
        if column.dtype.kind == "f":
            return scores_of(column, n_samples, self.positive, None, name)
        answers = codes_of(column, n_samples, self.positive.classes, name)
        return np.asarray(answers == self.positive.place, dtype=np.float64)


def scorer(title: str, model: Any, positive: Positive) -> Scorer | StoredScores:
    """Return what tells the scores of a model, or of a column in its place."""
    check_instance(title, model)
    found = Scorer(title, model, positive)
    if found.method is not None or (callable(model) and not hasattr(model, "predict")):
        return found
    if isinstance(model, Mapping):
        return StoredScores(title, {name: np.asarray(column) for name, column in model.items()}, positive)
    if hasattr(model, "__len__") and not isinstance(model, (str, bytes)) and not hasattr(model, "predict"):
        return StoredScores(title, {TRAIN: np.asarray(model)}, positive)
    raise TypeError(
        f"{title} has no scores to cut: rules need predict_proba or decision_function, a callable from rows to "
        f"scores, or an array of scores; got {model!r}. Calibrate it (CalibratedClassifierCV), or mix what models say: "
        "MixtureClassifier."
    )


def scores_of(said: AnyArray, n_samples: int, positive: Positive, order: AnyArray | None, name: str) -> FloatArray:
    """Return scores of the positive class.

    Parameters
    ----------
    said : array of shape (n_samples,) or (n_samples, n_classes)
        Scores, of the second class where ``order`` names two, or a column for each class.
    order : the classes in the order of the model; default those of ``positive``
    name : what an error calls the model
    """
    values = as_numbers(said, f"The scores of {name}").astype(np.float64, copy=False)
    classes = positive.classes if order is None else order
    where = np.flatnonzero(classes == positive.classes[positive.place])
    if values.shape == (n_samples, len(classes)):
        values = values[:, where[0]] if where.size else np.zeros(n_samples)
    elif values.shape == (n_samples, 1):
        values = values[:, 0]
    elif values.shape == (n_samples,) and order is not None and where.size and where[0] == 0 and len(order) == _PAIR:
        values = -values
    if values.shape != (n_samples,):
        raise ValueError(
            f"{name} must give one score for each of the {n_samples} rows, or a column for each of {len(classes)} "
            f"classes; it returned shape {values.shape}."
        )
    return _finite(np.ascontiguousarray(values), name)


def _finite(scores: FloatArray, name: str) -> FloatArray:
    bad = scores[~np.isfinite(scores)].tolist()
    if bad:
        raise ValueError(
            f"The scores of {name} must be finite; {len(bad)} of {scores.size} are not, the first is {bad[0]!r}. "
            "Impute what is missing before the model, or leave those rows out."
        )
    return scores


def is_stored(member: Any) -> bool:
    """Tell whether columns stand in the place of a model."""
    return hasattr(member, "columns")


class ScorePool(NamedTuple):
    """Models that are asked for scores together."""

    members: Sequence[Any]  # what tells the scores of a model, or of columns in its place
    n_jobs: int | None

    def needs_rows(self) -> bool:
        """Tell whether there are models that must be asked; stored scores need not."""
        return not all(map(is_stored, self.members))

    def check_live(self, places: IntArray) -> None:
        """Refuse to decide where one of the models that may is a stored column."""
        for place in places.tolist():
            if is_stored(self.members[place]):
                self.members[place].score(None)

    def scores(
        self, X: Any, n_samples: int, dataset: str | None, places: IntArray | Sequence[int] | None = None
    ) -> FloatArray:
        """Return the scores of rows, a column for each model; only some columns are filled where places are given."""
        asked_for = range(len(self.members)) if places is None else [int(place) for place in places]
        wanted, scores = {place: self.members[place] for place in asked_for}, self._room(n_samples)
        live = {place: member.score for place, member in wanted.items() if not is_stored(member)}
        fill_columns(scores, live, X, self.n_jobs)
        for place in wanted.keys() - live.keys():
            scores[:, place] = wanted[place].on(dataset, n_samples)
        return scores

    def _room(self, n_samples: int) -> FloatArray:
        """Return room for the scores of rows by all models."""
        return np.zeros((n_samples, len(self.members)), order="F")

    def scores_of_each(self, X: Any, places: IntArray) -> FloatArray:
        """Return scores of which only one of each row is filled, that of the model at its place."""
        scores = np.zeros((places.size, len(self.members)), order="F")
        for place in np.unique(places).tolist():
            rows = np.flatnonzero(places == place)
            some = X if rows.size == places.size else take_rows(X, rows)
            scores[rows, place] = self.scores(some, rows.size, None, [place])[:, place]
        return scores


class RuleMember(NamedTuple):
    """A rule as a member of a mixture: asked about rows with their scores, or about others, which it lets score."""

    model: int
    thresholds: FloatArray  # by group
    place: int  # of the positive class
    score: Callable[[Any, IntArray], ScoredRows]  # rows with the scores of some models
    lower: FloatArray | None = None  # by group, where rows between are deferred

    def predict_codes(self, X: Any) -> IntArray:
        """Return the place of the class that the rule says of each row, or that behind both where it defers."""
        rows = X if isinstance(X, ScoredRows) else self.score(X, np.array([self.model]))
        scores = rows.scores[:, self.model]
        is_above = scores > self.thresholds[rows.groups]
        said = np.where(is_above, self.place, 1 - self.place)
        if self.lower is not None:
            said[~is_above & (scores > self.lower[rows.groups])] = _PAIR
        return said
