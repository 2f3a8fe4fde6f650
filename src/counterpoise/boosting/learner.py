"""Any base learner as a function from sample weights to a model and its losses."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from counterpoise._types import AnyArray, ByteArray, FloatArray, IntArray
from counterpoise.boosting.rounds import Fit
from counterpoise.learners import HistogramTree, Resampled
from counterpoise.mixing import predict_codes

_DEFAULT_DEPTH = 6  # deep enough to be accurate alone, as the paper's "unfair learner" is


def base_learner(estimator: Any) -> Any:
    """Return the learner to use: the given one, wrapped to resample where it takes no sample weights."""
    if estimator is None:
        return HistogramTree(max_depth=_DEFAULT_DEPTH)
    if isinstance(estimator, type):
        raise TypeError(f"estimator must be a classifier, not its class; got {estimator!r}: add parentheses.")
    if not (hasattr(estimator, "fit") and hasattr(estimator, "predict") and is_classifier(estimator)):
        raise TypeError(f"estimator must be a classifier with fit and predict; got {estimator!r}.")
    return estimator if _weight_argument(estimator) else Resampled(estimator)


def _weight_argument(estimator: Any) -> str | None:
    """Return the name under which ``fit`` takes sample weights, or None."""
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        inner = _weight_argument(last)
        return None if inner is None else f"{name}__{inner}"
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


def make_fit(learner: Any, X: Any, codes: IntArray, classes: AnyArray, random_seeds: Callable[[int], int]) -> Fit:
    """Return a function that fits a fresh model to given weights, on data prepared once for all rounds."""
    if hasattr(learner, "fit_codes"):
        return _fit_prepared(learner, X, codes, classes, random_seeds)
    argument = _weight_argument(learner) or "sample_weight"
    labels = classes[codes]

    def fit(weights: FloatArray, number: int) -> tuple[Any, ByteArray]:
        model = _fresh(learner, random_seeds(number))
        # Weights of mean 1: regularized learners compare the weighted loss with their penalty.
        model.fit(X, labels, **{argument: weights * weights.size})
        return model, (predict_codes(model, X, classes) != codes).astype(np.uint8)

    return fit


def _fit_prepared(learner: Any, X: Any, codes: IntArray, classes: AnyArray, random_seeds: Callable[[int], int]) -> Fit:
    """Use the protocol of our own learners: features are binned once, and fitting tells the predictions."""
    prepared = clone(learner).prepare(X)  # which may set attributes, and the learner is the caller's

    def fit(weights: FloatArray, number: int) -> tuple[Any, ByteArray]:
        model = _fresh(learner, random_seeds(number))
        return model, (model.fit_codes(prepared, codes, classes, weights) != codes).view(np.uint8)

    return fit


def _fresh(learner: Any, seed: int) -> Any:
    """Return an unfitted copy whose random states, nested ones included, are set from the seed."""
    model = clone(learner)
    seeds = {name: seed for name in model.get_params() if name.split("__")[-1] == "random_state"}
    return model.set_params(**seeds) if seeds else model
