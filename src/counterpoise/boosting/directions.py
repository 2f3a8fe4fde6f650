"""Directions of descent: the best approximation of a subgradient within what a base learner can say.

A subgradient of the robust loss at the scores F is ``G_i = w_i loss'(y_i F(x_i)) y_i``, one number for each sample; its
negative is the *pull* on the score of that sample. A classifier, which says -1 or +1, approximates the pulls best where
it is fitted to their signs with their sizes as weights: that maximizes ``sum pull_i h(x_i)``. A regressor is fitted to
the pulls themselves by least squares, in the norm of the samples' own weights q, where a pull reads ``pull_i / q_i``.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.pipeline import Pipeline

from counterpoise._base.types import AnyArray, FloatArray
from counterpoise.boosting.learner import LearnerFit, Question, base_learner, make_fit
from counterpoise.learners.resampling import fresh_copy, weight_argument
from counterpoise.mixtures.pool import predict_codes


def direction_learner(estimator: Any) -> Any:
    """Return the learner to use: a regressor as it is, else what boosting makes of a classifier."""
    if estimator is None or isinstance(estimator, type):
        return base_learner(estimator)
    is_fit = hasattr(estimator, "fit") and hasattr(estimator, "predict")
    if is_fit and is_regressor(estimator):
        return estimator
    if is_fit and is_classifier(estimator):
        return base_learner(estimator)
    raise TypeError(
        f"estimator must be a classifier or a regressor, with fit and predict; got {estimator!r}, which is neither."
    )


def make_directions(
    learner: Any, X: Any, labels: FloatArray, own: FloatArray, classes: AnyArray, random_seeds: Callable[[int], int]
) -> "Directions":
    """Return the directions of a learner for samples with labels -1 and +1 and weights of their own."""
    if is_regressor(learner):
        return ValueDirections(learner, X, own, random_seeds)
    codes = (labels > 0).astype(np.int64)
    return SignDirections(make_fit(learner, X, codes, classes, random_seeds))


class SignDirections:
    """Fit a classifier to the signs of the pulls, weighted by their sizes."""

    are_signs = True  # its values are -1 and +1 only

    def __init__(self, fit: LearnerFit) -> None:
        self.fit, self._wanted = fit, fit.codes

    def __call__(self, pulls: FloatArray, number: int) -> tuple[Any, FloatArray]:
        """Return the model of a round, and its value on each sample."""
        sizes = np.abs(pulls)
        # A loss that rises again pulls back what is too sure; where nothing pulls, the wish of before stays.
        self._wanted = np.where(sizes > 0, pulls > 0, self._wanted).astype(np.int64)
        model, said, _ = self.fit.answer(Question(self._wanted, sizes / sizes.sum()), number)
        return model, np.where(said == 1, 1.0, -1.0)

    def rows_like(self, X: Any) -> Any:
        return self.fit.rows_like(X)


class ValueDirections:
    """Fit a regressor to the pulls by least squares."""

    are_signs = False

    def __init__(self, learner: Any, X: Any, own: FloatArray, random_seeds: Callable[[int], int]) -> None:
        self.learner, self.X, self.own, self.random_seeds = learner, X, own, random_seeds
        self.argument = weight_argument(learner)
        if self.argument is None and np.ptp(own) > 0:
            raise ValueError(
                f"estimator must take sample_weight at fit, because the samples' weights differ; {learner!r} does not."
            )

    def __call__(self, pulls: FloatArray, number: int) -> tuple[Any, FloatArray]:
        """Return the model of a round, and its value on each sample."""
        model = fresh_copy(self.learner, self.random_seeds(number))
        weights = {} if self.argument is None else {self.argument: self.own * self.own.size}
        model.fit(self.X, pulls / self.own, **weights)
        return model, model_values(model, self.X, None)

    def rows_like(self, X: Any) -> Any:
        return X


Directions = SignDirections | ValueDirections


def model_values(model: Any, X: Any, classes: AnyArray | None) -> FloatArray:
    """Return what a base model says: -1 or +1 for the two classes, or, where there are none, a regressor's values."""
    if classes is None:
        return np.asarray(model.predict(X), dtype=np.float64).reshape(-1)
    return np.where(predict_codes(model, X, classes) == 1, 1.0, -1.0)


def dimension(model: Any, n_features: int) -> int:
    """Return the dimension of the functions that have a model's structure: the degrees of freedom of Theorem 1.

    For a tree the number of its leaves, as the paper counts about 30 for trees of 5 levels; for a linear model that of
    its coefficients; for any other that of a linear one, a coefficient for each feature and a constant.
    """
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    if hasattr(last, "tree_") and hasattr(last.tree_, "feature"):
        # Leaves have no feature, in our trees and scikit-learn's.
        return int((np.asarray(last.tree_.feature) < 0).sum())
    if hasattr(last, "coef_"):
        return int(np.size(last.coef_)) + 1
    return n_features + 1
