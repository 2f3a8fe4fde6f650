"""Weighted learning by resampling, for base learners that take no sample weights.

This is how the 2021 paper (Zhai et al., "Boosted CVaR Classification") trains its base learners: each round draws
a training set by the weights, with replacement, and fits an ordinary learner to it. ``CodeLearner`` is the base of the
learners that boosting fits many times on rows prepared once, with codes in place of labels.
"""

from typing import Any, ClassVar, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_consistent_length, check_random_state, column_or_1d, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from counterpoise._base.checks import check_count, check_sample_weight, refuse_texts
from counterpoise._base.frames import is_frame, take_rows
from counterpoise._base.types import AnyArray, ArrayLike, FloatArray


def _estimator_has_proba(self: "Resampled") -> bool:
    return hasattr(self.estimator, "predict_proba")


def is_routing_on() -> bool:
    """Return whether scikit-learn's metadata routing is on: arguments of ``fit`` then go where they are requested."""
    return bool(get_config()["enable_metadata_routing"])


def weight_argument(estimator: Any) -> str | None:
    """Return the name under which ``fit`` takes sample weights, or None."""
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        inner = weight_argument(last)
        return inner if inner is None or is_routing_on() else f"{name}__{inner}"
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


def fresh_copy(learner: Any, seed: int, *, only_unset: bool = False) -> Any:
    """Return an unfitted copy whose random states, nested ones included, are set from the seed; all, or those unset."""
    model = clone(learner)
    states = {name: state for name, state in model.get_params().items() if name.split("__")[-1] == "random_state"}
    seeds = {name: seed for name, state in states.items() if state is None or not only_unset}
    return model.set_params(**seeds) if seeds else model


def may_take_missing(estimator: Any) -> bool:
    """Return whether missing values may reach an estimator; a pipeline may impute them, and no tag shows it."""
    return bool(get_tags(estimator).input_tags.allow_nan) or isinstance(estimator, Pipeline)


class Resampled(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """A classifier fitted to a sample of the rows, drawn with replacement in proportion to their weights.

    It makes a weighted learner out of any classifier, at the price of noise: rows that weigh the same are drawn a
    different number of times. It is the base learner of the 2021 paper itself, whose networks are trained so.

    Parameters
    ----------
    estimator : classifier
        What is fitted; a clone of it, without sample weights.
    n_draws : int, default=None
        The number of rows drawn; None draws as many as there are.
    random_state : int, RandomState or None, default=None
        What the draw depends on; an int makes it the same in each fit.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels in ``y``, drawn or not.
    drawn_classes_ : array
        Those of the labels that were drawn.
    estimator_ : classifier or None
        The fitted clone; None where all rows drawn have one label, which is then always predicted.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : array of shape (n_features,)
        The names of the features, where ``X`` had them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from counterpoise.learners import Resampled
    >>> X, y = load_iris(return_X_y=True)
    >>> model = Resampled(KNeighborsClassifier(), random_state=0)
    >>> only_the_last_two = (y > 0).astype(float)
    >>> model.fit(X, y, sample_weight=only_the_last_two).predict_proba(X[:1])
    array([[0., 1., 0.]])
    """

    def __init__(self, estimator: Any, *, n_draws: int | None = None, random_state: Any = None) -> None:
        self.estimator = estimator
        self.n_draws = n_draws
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Draw rows and fit a clone of the estimator to them.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
            The features, of any kind that the estimator takes.
        y : array of shape (n_samples,)
            Labels of two or more classes, numbers or strings.
        sample_weight : array of shape (n_samples,), default=None
            Weights, none negative and not all zero; None gives all rows the same chance.

        Returns
        -------
        Resampled
            The fitted classifier itself.
        """
        X, labels = validate_data(self, X, y, **self._border(X))
        labels = column_or_1d(labels, warn=True)
        check_consistent_length(X, labels)
        check_classification_targets(labels)
        self.classes_ = np.unique(labels)
        weights = check_sample_weight(sample_weight, len(labels))
        n_draws = len(labels) if self.n_draws is None else check_count(self.n_draws, "n_draws")
        chances = None if weights is None else weights / weights.sum()
        rows = check_random_state(self.random_state).choice(len(labels), n_draws, p=chances)
        self.drawn_classes_ = np.unique(labels[rows])
        is_constant = self.drawn_classes_.size == 1  # which many estimators refuse to learn
        self.estimator_ = None if is_constant else clone(self.estimator).fit(take_rows(X, rows), labels[rows])
        return self

    def predict(self, X: Any) -> AnyArray:
        """Return the label of each sample."""
        X = self._check(X)
        if self.estimator_ is None:
            return self.drawn_classes_.repeat(X.shape[0])
        return np.asarray(self.estimator_.predict(X))

    @available_if(_estimator_has_proba)
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities, of shape (n_samples, n_classes); that of a class that was not drawn is zero."""
        X = self._check(X)
        shares = np.zeros((X.shape[0], len(self.classes_)))
        probabilities = 1.0 if self.estimator_ is None else self.estimator_.predict_proba(X)
        shares[:, np.searchsorted(self.classes_, self.drawn_classes_)] = probabilities
        return shares

    def _check(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(self, X, reset=False, **self._border(X))

    def _border(self, X: Any) -> dict[str, Any]:
        """Let through what the estimator takes; a data frame as it is, for pipelines that choose columns by name."""
        if is_frame(X):
            return {"skip_check_array": True}
        tags = get_tags(self.estimator).input_tags
        return {
            "accept_sparse": "csr" if tags.sparse else False,
            "ensure_all_finite": "allow-nan" if may_take_missing(self.estimator) else True,
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        tags.input_tags.allow_nan = may_take_missing(self.estimator)
        return tags


_BYTE_CLASSES = 256  # that fit into one


class CodeLearner(ClassifierMixin, BaseEstimator):
    """A classifier with ``prepare`` and ``fit_codes``, and what follows from them."""

    _border: ClassVar[dict[str, Any]]  # what validate_data lets through

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to weighted samples; those of zero weight do not matter.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), data frame, or what else the class takes
            The features.
        y : array of shape (n_samples,)
            Labels of two or more classes, numbers or strings.
        sample_weight : array of shape (n_samples,), default=None
            Weights, none negative and not all zero; None weighs all samples the same.

        Returns
        -------
        Self
            The fitted learner itself.
        """
        refuse_texts(X, self)
        X, y = validate_data(self, X, y, **self._border)
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
        weights = check_sample_weight(sample_weight, len(codes))
        if weights is None:
            weights = np.ones(len(codes))
        if weights.min() == 0:  # samples without weight must not move the edges of bins, or a warm-up, either
            counts = weights > 0
            X, codes, weights = X[counts], codes[counts], weights[counts]
        self.fit_codes(self._prepare(X), codes, classes, weights)
        return self

    def prepare(self, X: Any) -> Any:
        """Return ``X`` as ``fit_codes`` of this learner, and of its clones, wants it."""
        return self._prepare(validate_data(self, X, **self._border))

    def _prepare(self, X: Any) -> Any:
        raise NotImplementedError

    def fit_codes(self, prepared: Any, codes: AnyArray, classes: AnyArray, weights: FloatArray) -> AnyArray:
        """Fit on rows that ``prepare`` returned, and return the codes predicted for them; see ``HistogramTree``."""
        raise NotImplementedError

    def store_labels(self, classes: AnyArray, n_features: int, feature_names: AnyArray | None) -> None:
        """Store the labels and the features of a fit."""
        self.classes_, self.n_features_in_ = classes, n_features
        if feature_names is not None:
            self.feature_names_in_ = feature_names

    def _as_codes(self, labels: AnyArray) -> AnyArray:
        return labels.astype(np.uint8 if len(self.classes_) <= _BYTE_CLASSES else np.intp)
