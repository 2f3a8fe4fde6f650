"""Any base learner as a function from sample weights to a model and its losses."""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier

from counterpoise._base.types import AnyArray, FloatArray, IntArray
from counterpoise.boosting.rounds import Fitted
from counterpoise.learners import HistogramTree, Resampled
from counterpoise.learners.binning import BinnedFeatures, bin_like
from counterpoise.learners.resampling import fresh_copy, weight_argument
from counterpoise.mixtures.pool import predict_codes, take_rows

# Chosen by the test error of the boosters on 13 data sets (docs/results/defaults): deep enough for interactions, with
# leaves so large that no tree is without error on its own rows, which would end the boosting.
_DEPTH, _LEAF = 6, 20
_LEAVES = 8  # of few rows: leaves get smaller below 160 rows, so that something is left to split


def default_tree(n_samples: int | None = None, max_depth: int = _DEPTH, **settings: Any) -> HistogramTree:
    """Return the base learner where none is given, for so many rows."""
    leaf = _LEAF if n_samples is None else min(_LEAF, max(1, n_samples // _LEAVES))
    return HistogramTree(max_depth=max_depth, min_samples_leaf=leaf, **settings)


def base_learner(estimator: Any) -> Any:
    """Return the learner to use: the given one, wrapped to resample where it takes no sample weights."""
    if estimator is None:
        return default_tree()
    if isinstance(estimator, type):
        raise TypeError(f"estimator must be a classifier, not its class; got {estimator!r}: add parentheses.")
    if not (hasattr(estimator, "fit") and hasattr(estimator, "predict") and is_classifier(estimator)):
        raise TypeError(f"estimator must be a classifier with fit and predict; got {estimator!r}.")
    return estimator if weight_argument(estimator) else Resampled(estimator)


class Question(NamedTuple):
    """What a model is fitted to: rows, the class that each should be called, and how much that matters."""

    codes: IntArray
    weights: FloatArray  # sum to 1
    rows: IntArray | None = None  # None: all rows in their order; else some, perhaps several times

    def outside(self, others: IntArray, n_rows: int) -> "Question":
        """Return the part about some of the rows, which count from 0 there."""
        if self.rows is None:
            return Question(self.codes[others], self.weights[others])
        places = np.full(n_rows, -1)
        places[others] = np.arange(others.size)
        rows = places[self.rows]
        kept = rows >= 0
        return Question(self.codes[kept], self.weights[kept], rows[kept])

    @property
    def has_one_class(self) -> bool:
        """Tell whether one class alone weighs: many learners refuse what is no question."""
        return bool(np.ptp(self.codes[self.weights > 0]) == 0)


class Answered(NamedTuple):
    """A model, and what is said of all rows, perhaps by others that did not see them."""

    model: Any
    said: AnyArray  # class codes
    scores: FloatArray | None = None  # of the positive class, where they are asked for


def make_fit(
    learner: Any,
    X: Any,
    codes: IntArray,
    classes: AnyArray,
    random_seeds: Callable[[int], int],
    weights: FloatArray | None = None,
) -> "LearnerFit":
    """Return a function that fits a fresh model to given weights, on data prepared once for all rounds.

    ``weights`` are the rows' own: where they are zero, a row has no label, and its code says nothing.
    """
    if not hasattr(learner, "fit_codes"):
        return LearnerFit(learner, X, codes, classes, random_seeds)
    return _PreparedFit(learner, X, codes, classes, random_seeds, weights)


class LearnerFit:
    """Fit a fresh model to given weights with any scikit-learn classifier."""

    prepared: Any = None  # the rows, by a learner that prepares them
    is_random: bool  # two models that are fitted to the same weights may differ

    def __init__(
        self, learner: Any, X: Any, codes: IntArray, classes: AnyArray, random_seeds: Callable[[int], int]
    ) -> None:
        self.learner, self.X, self.codes, self.classes, self.random_seeds = learner, X, codes, classes, random_seeds
        self.argument = weight_argument(learner) or "sample_weight"
        self.is_random = any(name.split("__")[-1] == "random_state" for name in learner.get_params())

    def __call__(self, weights: FloatArray, number: int) -> Fitted:
        """Return the model of a round, and where it errs."""
        model, said, _ = self.answer(Question(self.codes, weights), number)
        return Fitted(model, (said != self.codes).view(np.uint8))

    def answer(self, asked: Question, number: int) -> Answered:
        """Return the model of a round that is fitted to a question, and what it says of all rows."""
        model = fresh_copy(self.learner, self.random_seeds(number))
        X = self.X if asked.rows is None else take_rows(self.X, asked.rows)
        labels = self.classes[asked.codes]
        if asked.has_one_class:
            model = Resampled(model).fit(X, labels, sample_weight=asked.weights)
        else:
            # Weights of mean 1: regularized learners compare the weighted loss with their penalty.
            model.fit(X, labels, **{self.argument: asked.weights * asked.weights.size})
        return Answered(model, predict_codes(model, self.X, self.classes))

    def rows_like(self, X: Any) -> Any:
        """Return other rows in the form from which the models predict fastest."""
        return X


class _PreparedFit(LearnerFit):
    """Use the protocol of our own learners: features are binned once, and fitting tells the predictions."""

    def __init__(
        self,
        learner: Any,
        X: Any,
        codes: IntArray,
        classes: AnyArray,
        random_seeds: Callable[[int], int],
        weights: FloatArray | None,
    ) -> None:
        # A copy, as preparing may set attributes. What all rounds share depends on the seed of no round.
        super().__init__(fresh_copy(learner, random_seeds(0)), X, codes, classes, random_seeds)
        self.prepared = self.learner.prepare(X)
        self.is_binned = isinstance(self.prepared, BinnedFeatures)
        if hasattr(self.prepared, "lesson") and weights is not None and weights.any():
            self.prepared.lesson = np.where(weights > 0, codes, -1)
        self.blank = clone(learner)

    def answer(self, asked: Question, number: int) -> Answered:
        """Return the model of a round that is fitted to a question, and what it says of all rows."""
        # A copy does for a learner of plain parameters, and takes a tenth of the time of a clone.
        model = fresh_copy(self.blank, self.random_seeds(number)) if self.is_random else copy.copy(self.blank)
        if asked.rows is None or not self.is_binned:
            named = {} if asked.rows is None else {"rows": asked.rows}
            return Answered(model, model.fit_codes(self.prepared, asked.codes, self.classes, asked.weights, **named))
        some = replace(self.prepared, bins=np.ascontiguousarray(self.prepared.bins[:, asked.rows]))
        model.fit_codes(some, asked.codes, self.classes, asked.weights)
        return Answered(model, predict_codes(model, self.prepared, self.classes))

    def rows_like(self, X: Any) -> Any:
        """Return other rows in the bins of the training rows."""
        return bin_like(X, self.prepared) if self.is_binned else X
