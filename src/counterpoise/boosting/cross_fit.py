"""Rounds that are judged on rows which their models did not see.

A strong model makes next to no error on the rows it is trained on. Its losses there would tell a booster nothing, and
a mixture chosen on them would trust it blindly. Here every round trains its model on all rows, and beside it one model
for each fold on the rows outside of that fold: what those say of the fold's rows is what the round is judged by.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline

from counterpoise._base.types import AnyArray, FloatArray, IntArray
from counterpoise.boosting.inputs import Rows
from counterpoise.boosting.learner import Answered, LearnerFit, Question, make_fit
from counterpoise.boosting.rounds import Fitted
from counterpoise.learners import Resampled
from counterpoise.mixtures.answers import Positive
from counterpoise.mixtures.pool import predict_codes, take_rows
from counterpoise.mixtures.scores.asking import Scorer

# Parameters that only learners have which are ensembles: of scikit-learn's forests and boosters, LightGBM, XGBoost and
# ours, of histogram gradient boosting, of CatBoost.
_OF_ENSEMBLES = ({"n_estimators"}, {"max_iter", "max_leaf_nodes"}, {"iterations", "depth"})
_ROUNDS, _ROUNDS_OF_ENSEMBLES = 100, 10  # by default: an ensemble is slow to fit, and few of them are as good
_BINARY = 2


class _Fold(NamedTuple):
    """Rows to judge by, in the form the models of the others predict from, and the fit to the others."""

    fit: LearnerFit
    others: IntArray
    places: IntArray
    rows: Any


class CrossFit:
    """Fit a model to all rows, and judge it by models of the same learner that did not see the rows of each fold."""

    positive: Positive | None = None  # of two classes, where models are asked for scores too

    def __init__(
        self, learner: Any, rows: Rows, classes: AnyArray, random_seeds: Callable[[int], int], folds: IntArray
    ) -> None:
        self.whole = make_fit(learner, rows.X, rows.codes, classes, random_seeds, rows.weights)
        self.prepared, self.is_random = self.whole.prepared, self.whole.is_random
        self._own, self._folds = rows.weights, []
        for fold in range(folds.max() + 1):
            others, places = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
            part = take_rows(rows.X, others), rows.codes[others], classes
            fit = make_fit(learner, *part, random_seeds, rows.weights[others])
            self._folds.append(_Fold(fit, others, places, fit.rows_like(take_rows(rows.X, places))))

    def __call__(self, weights: FloatArray, number: int) -> Fitted:
        """Return the model of a round, and where those that did not see the rows err."""
        codes, classes = self.whole.codes, self.whole.classes
        model, said, _ = self.answer(Question(codes, weights), number)
        losses = (said != codes).view(np.uint8)
        return Fitted(model, losses, said=said if len(classes) > _BINARY else None)  # two are told by their losses

    def answer(self, asked: Question, number: int) -> Answered:
        """Return the model of a round that is fitted to a question, and what those say that did not see the rows."""
        codes, classes = self.whole.codes, self.whole.classes
        said = np.empty(codes.size, dtype=np.min_scalar_type(len(classes) - 1))
        scores = None if self.positive is None else np.empty(codes.size)
        for fold in self._folds:
            part = self._live(asked.outside(fold.others, codes.size), fold)
            model = fold.fit.answer(part._replace(weights=part.weights / part.weights.sum()), number).model
            said[fold.places] = predict_codes(model, fold.rows, classes)
            if scores is not None and self.positive is not None:
                rows = take_rows(self.whole.X, fold.places)
                scores[fold.places] = Scorer("A model of a fold", model, self.positive).score(rows)
        return Answered(self.whole.answer(asked, number).model, said, scores)

    def _live(self, part: Question, fold: _Fold) -> Question:
        """Return the question; where all the weight is in the fold, there is nothing to go by but the rows' own."""
        if part.weights.sum() > 0:
            return part
        return Question(self.whole.codes[fold.others], self._own[fold.others])


class StrongFirst:
    """Fit a strong model in the first round, so that plain strong training is in the pool, and others later."""

    def __init__(self, first: LearnerFit | CrossFit, later: LearnerFit | CrossFit) -> None:
        self.first, self.later = first, later
        self.prepared, self.is_random = later.prepared, later.is_random

    def __call__(self, weights: FloatArray, number: int) -> Fitted:
        """Return the model of a round, and where it errs."""
        return self._of(number)(weights, number)

    def answer(self, asked: Question, number: int) -> Answered:
        """Return the model of a round that is fitted to a question, and what is said of all rows."""
        return self._of(number).answer(asked, number)

    def _of(self, number: int) -> LearnerFit | CrossFit:
        return self.first if number == 1 else self.later


RoundsFit = LearnerFit | CrossFit | StrongFirst


def rounds_fit(
    first: Any | None, later: Any, rows: Rows, classes: AnyArray, seeds: Callable[[int], int], n_folds: int | None
) -> RoundsFit:
    """Return what fits the rounds of a learner, after a first one of another where that is given."""
    folds = None if n_folds is None else folds_of(rows.codes, n_folds, np.random.default_rng(seeds(0)))

    def fit_of(learner: Any) -> LearnerFit | CrossFit:
        if folds is None:
            return make_fit(learner, rows.X, rows.codes, classes, seeds, rows.weights)
        return CrossFit(learner, rows, classes, seeds, folds)

    return fit_of(later) if first is None else StrongFirst(fit_of(first), fit_of(later))


def ask_scores(fit: RoundsFit, positive: Positive) -> None:
    """Have models of folds asked for scores of the rows that they did not see, too."""
    for one in (fit.first, fit.later) if isinstance(fit, StrongFirst) else (fit,):
        if isinstance(one, CrossFit):
            one.positive = positive


def folds_of(codes: IntArray, n_folds: int, generator: np.random.Generator) -> IntArray:
    """Return a fold for each row at random, with every class spread evenly over them."""
    order = generator.permutation(codes.size)
    order = order[np.argsort(codes[order], kind="stable")]
    folds = np.empty(codes.size, dtype=np.int64)
    folds[order] = np.arange(codes.size) % n_folds
    return folds


def is_ensemble(learner: Any) -> bool:
    """Tell whether a learner is itself made of many models: strong alone, and slow to fit."""
    if isinstance(learner, Pipeline):
        return is_ensemble(learner.steps[-1][1])
    if isinstance(learner, Resampled):
        return is_ensemble(learner.estimator)
    names = set(learner.get_params(deep=False))
    return any(known <= names for known in _OF_ENSEMBLES)


def planned_rounds(booster: Any) -> int:
    """Return the number of rounds: fewer of a learner that is an ensemble itself."""
    if booster.n_estimators is not None:
        return int(booster.n_estimators)
    return _ROUNDS_OF_ENSEMBLES if booster.estimator is not None and is_ensemble(booster.estimator) else _ROUNDS
