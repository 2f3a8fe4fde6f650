"""Any base learner as a function from sample weights to a model and its losses.

Rounds may be judged on rows that their models did not see. A strong model makes almost no error on the rows it is
trained on: its losses there say nothing to a booster, and a mixture chosen on them would rely on it too much. With
folds, every round trains its model on all rows, and beside it one model for each fold on the rows outside that fold.
The predictions of these models on the rows of their folds are what the round is judged by.
"""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.pipeline import Pipeline

from counterpoise._base.frames import check_lightgbm_columns, take_rows
from counterpoise._base.types import AnyArray, FloatArray, IntArray
from counterpoise.boosting.inputs import CheckedRows
from counterpoise.boosting.rounds import Fitted
from counterpoise.learners import HistogramTree, Resampled
from counterpoise.learners.binning import BinnedFeatures, bin_like
from counterpoise.learners.resampling import fresh_copy, weight_argument
from counterpoise.rules.goal_rows import Positive
from counterpoise.rules.pool import SCORES, Member, predict_codes
from counterpoise.solvers.rows import weighted_sum

# Chosen by the test error of the boosters on 13 data sets (docs/results/tails.md): deep enough for interactions, with
# leaves so large that no tree is without error on its own rows, which would end the boosting.
_DEPTH, _LEAF = 6, 20
_LEAVES = 8  # of few rows: leaves get smaller below 160 rows, so that something is left to split


def base_learner(
    estimator: Any, n_samples: int | None = None, *, max_depth: int = _DEPTH, takes_regressors: bool = False
) -> Any:
    """Return the learner to use: the given one, wrapped to resample where it takes no sample weights, or a tree.

    The tree depends on how many samples there are. A regressor is returned as it is, where one is taken.
    """
    if estimator is None:
        leaf = _LEAF if n_samples is None else min(_LEAF, max(1, n_samples // _LEAVES))
        return HistogramTree(max_depth=max_depth, min_samples_leaf=leaf)
    if isinstance(estimator, type):
        raise TypeError(f"estimator must be a classifier, not its class; got {estimator!r}: add parentheses.")
    is_fit = hasattr(estimator, "fit") and hasattr(estimator, "predict")
    if is_fit and takes_regressors and is_regressor(estimator):
        return estimator
    if is_fit and is_classifier(estimator):
        return estimator if weight_argument(estimator) else Resampled(estimator)
    if takes_regressors:
        raise TypeError(
            f"estimator must be a classifier or a regressor, with fit and predict; got {estimator!r}, which is neither."
        )
    raise TypeError(f"estimator must be a classifier with fit and predict; got {estimator!r}.")


class RoundTarget(NamedTuple):
    """What a model is fitted to: rows, the class that each should be called, and how much that matters."""

    codes: IntArray
    weights: FloatArray  # sum to 1
    rows: IntArray | None = None  # None: all rows in their order; else some, perhaps several times

    def error(self, answers: AnyArray) -> float:
        """Return the weight of the rows that a model gets wrong, from its answers about all rows."""
        return weighted_sum(self.weights, (answers if self.rows is None else answers[self.rows]) != self.codes)


def cost_target(costs: FloatArray) -> RoundTarget:
    """Return the target whose weighted error is the cost of a model's answers, but for a factor and a constant.

    Row i enters with every label k at the weight ``max over classes of costs[:, i] - costs[k, i]``. Of two classes that
    is one label for each row, by the sign of the difference. The weights are not scaled to sum to 1.
    """
    if len(costs) == _BINARY:
        savings = costs[0] - costs[1]  # by the second class in place of the first
        return RoundTarget((savings > 0).astype(np.int64), np.abs(savings))
    savings = (costs.max(axis=0) - costs).T
    rows, codes = np.nonzero(savings)
    return RoundTarget(codes, savings[rows, codes], rows)


class TrainedModel(NamedTuple):
    """A model, and answers about all rows, perhaps by other models that did not see them."""

    model: Any
    answers: AnyArray  # class codes
    scores: FloatArray | None = None  # of the positive class, where they are needed


class LearnerFit:
    """Fit a fresh model to given weights, with any scikit-learn classifier, on data prepared once for all rounds.

    Of our own learners it uses the protocol: features are binned once, and fitting returns the predictions.

    Parameters
    ----------
    learner : classifier
    X, codes, classes
        The rows, the place of each label in ``classes``, and these.
    random_seeds : callable
        From the number of a round to its seed.
    weights : array of shape (n_samples,), optional
        The rows' own: where they are zero, a row has no label, and its code means nothing.
    """

    def __init__(
        self,
        learner: Any,
        X: Any,
        codes: IntArray,
        classes: AnyArray,
        random_seeds: Callable[[int], int],
        weights: FloatArray | None = None,
    ) -> None:
        self.learner, self.X, self.codes, self.classes, self.random_seeds = learner, X, codes, classes, random_seeds
        self.argument = weight_argument(learner) or "sample_weight"
        # Whether two models that are fitted to the same weights may differ.
        self.is_random = any(name.split("__")[-1] == "random_state" for name in learner.get_params())
        self.prepared: Any = None  # the rows, by a learner that prepares them
        check_lightgbm_columns(learner, X)
        if hasattr(learner, "fit_codes"):
            # By a copy, as preparing may set attributes. What all rounds share depends on the seed of no round.
            self.prepared, self.learner = fresh_copy(learner, random_seeds(0)).prepare(X), clone(learner)
            if hasattr(self.prepared, "warmup_codes") and weights is not None and weights.any():
                self.prepared.warmup_codes = np.where(weights > 0, codes, -1)
        self.is_binned = isinstance(self.prepared, BinnedFeatures)

    def __call__(self, weights: FloatArray, number: int) -> Fitted:
        """Return the model of a round, and where it errs."""
        model, answers, _ = self.fit_round(RoundTarget(self.codes, weights), number)
        return Fitted(model, (answers != self.codes).view(np.uint8))

    def fit_round(self, target: RoundTarget, number: int) -> TrainedModel:
        """Return the model of a round that is fitted to a target, and its answers about all rows."""
        if self.prepared is None:
            model = fresh_copy(self.learner, self.random_seeds(number))
            X = self.X if target.rows is None else take_rows(self.X, target.rows)
            labels = self.classes[target.codes]
            if np.ptp(target.codes[target.weights > 0]) == 0:  # one class alone weighs: many learners refuse that
                model = Resampled(model).fit(X, labels, sample_weight=target.weights)
            else:
                # Weights of mean 1: regularized learners compare the weighted loss with their penalty.
                model.fit(X, labels, **{self.argument: target.weights * target.weights.size})
            return TrainedModel(model, predict_codes(model, self.X, self.classes))
        # A copy does for a learner of plain parameters, and takes a tenth of the time of a clone.
        model = fresh_copy(self.learner, self.random_seeds(number)) if self.is_random else copy.copy(self.learner)
        if target.rows is None or not self.is_binned:
            options = {} if target.rows is None else {"rows": target.rows}
            return TrainedModel(
                model, model.fit_codes(self.prepared, target.codes, self.classes, target.weights, **options)
            )
        some = replace(self.prepared, bins=np.ascontiguousarray(self.prepared.bins[:, target.rows]))
        model.fit_codes(some, target.codes, self.classes, target.weights)
        return TrainedModel(model, predict_codes(model, self.prepared, self.classes))

    def rows_like(self, X: Any) -> Any:
        """Return other rows in the form from which the models predict fastest: in the bins of the training rows."""
        return bin_like(X, self.prepared) if self.is_binned else X


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
    """Fit a model to all rows, and judge it by models of the same learner that did not see the rows of each fold.

    Without folds it is judged by its own answers. With a positive class, the models of folds also score the rows that
    they did not see.
    """

    def __init__(
        self,
        learner: Any,
        rows: CheckedRows,
        classes: AnyArray,
        random_seeds: Callable[[int], int],
        folds: IntArray | None,
        positive: Positive | None = None,
    ) -> None:
        self.positive = positive  # of two classes, where models give scores too
        self.whole = LearnerFit(learner, rows.X, rows.codes, classes, random_seeds, rows.weights)
        self.prepared, self.is_random = self.whole.prepared, self.whole.is_random
        self._own, self._folds = rows.weights, []
        for fold in range(0 if folds is None else folds.max() + 1):
            others, places = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
            part = take_rows(rows.X, others), rows.codes[others], classes
            fit = LearnerFit(learner, *part, random_seeds, rows.weights[others])
            self._folds.append(_Fold(fit, others, places, fit.rows_like(take_rows(rows.X, places))))

    def fit_round(self, target: RoundTarget, number: int) -> TrainedModel:
        """Return the model of a round, fitted to a target, and the answers of models that did not see the rows."""
        if not self._folds:
            return self.whole.fit_round(target, number)
        codes, classes = self.whole.codes, self.whole.classes
        answers = np.empty(codes.size, dtype=np.min_scalar_type(len(classes) - 1))
        scores = None if self.positive is None else np.empty(codes.size)
        for fold in self._folds:
            if target.rows is None:
                part = RoundTarget(target.codes[fold.others], target.weights[fold.others])
            else:  # of the rows that are outside, which count from 0 there
                numbers = np.full(codes.size, -1)
                numbers[fold.others] = np.arange(fold.others.size)
                outside = numbers[target.rows] >= 0
                part = RoundTarget(target.codes[outside], target.weights[outside], numbers[target.rows][outside])
            if not part.weights.sum() > 0:  # all the weight is in the fold: there is nothing to go by but the rows' own
                part = RoundTarget(codes[fold.others], self._own[fold.others])
            model = fold.fit.fit_round(part._replace(weights=part.weights / part.weights.sum()), number).model
            answers[fold.places] = predict_codes(model, fold.rows, classes)
            if scores is not None and self.positive is not None:
                rows = take_rows(self.whole.X, fold.places)
                scores[fold.places] = Member("A model of a fold", model, self.positive, SCORES).ask(rows)
        return TrainedModel(self.whole.fit_round(target, number).model, answers, scores)


class ModelFit:
    """Fit the model of a round to weights of the labelled rows, or inside goals to what each answer costs.

    Parameters
    ----------
    fits : list of CrossFit
        The first fits the first round, the last all others: plain strong training can so be in the pool.
    rows : CheckedRows
        The labelled rows, and inside goals below them those of other datasets.
    n_labelled : int
    keeps_answers : bool
        Whether answers about the rows are kept: inside goals, and where losses do not determine them.
    costs : callable, optional
        Inside goals: what each answer costs by weights of the labelled rows alone, shape (n_classes, n_rows).
    """

    def __init__(
        self,
        fits: list[CrossFit],
        rows: CheckedRows,
        n_labelled: int,
        *,
        keeps_answers: bool,
        costs: Callable[[FloatArray], FloatArray] | None = None,
    ) -> None:
        self.fits, self.rows, self.costs, self.keeps_answers = fits, rows, costs, keeps_answers
        self.labels, self.prepared, self.is_random = rows.codes[:n_labelled], fits[-1].prepared, fits[-1].is_random

    def __call__(self, weights: FloatArray, number: int) -> Fitted:
        """Return the model of a round, given weights of the labelled rows, or costs of answers."""
        fit, loss = self.fits[0 if number == 1 else -1], None
        if self.costs is None:
            model, answers, scores = fit.fit_round(RoundTarget(self.labels, weights), number)
        else:
            target = cost_target(self.costs(weights) if weights.ndim == 1 else weights)
            total = float(target.weights.sum())  # 0 where all answers cost alike
            own = RoundTarget(self.rows.codes, self.rows.weights)
            target = target._replace(weights=target.weights / total) if total > 0 else own
            model, answers, scores = fit.fit_round(target, number)
            loss = target.error(answers)
        losses = (answers[: self.labels.size] != self.labels).view(np.uint8)
        return Fitted(model, losses, answers=answers if self.keeps_answers else None, weighted_loss=loss, scores=scores)


def folds_of(codes: IntArray, n_folds: int, generator: np.random.Generator) -> IntArray:
    """Return a fold for each row at random, with every class spread evenly over them."""
    order = generator.permutation(codes.size)
    order = order[np.argsort(codes[order], kind="stable")]
    folds = np.empty(codes.size, dtype=np.int64)
    folds[order] = np.arange(codes.size) % n_folds
    return folds


def is_ensemble(learner: Any) -> bool:
    """Return whether a learner is itself made of many models: strong alone, and slow to fit."""
    if isinstance(learner, Pipeline):
        return is_ensemble(learner.steps[-1][1])
    if isinstance(learner, Resampled):
        return is_ensemble(learner.estimator)
    names = set(learner.get_params(deep=False))
    return any(marks <= names for marks in _OF_ENSEMBLES)


def planned_rounds(booster: Any) -> int:
    """Return the number of rounds: fewer of a learner that is an ensemble itself."""
    if booster.n_estimators is not None:
        return int(booster.n_estimators)
    return _ROUNDS_OF_ENSEMBLES if booster.estimator is not None and is_ensemble(booster.estimator) else _ROUNDS
