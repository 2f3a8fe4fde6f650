"""What the learners share that boosting fits many times on rows prepared once, with codes in place of labels."""

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from counterpoise._base.checks import check_sample_weight, refuse_texts
from counterpoise._base.types import AnyArray, ArrayLike, FloatArray

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
            held = weights > 0
            X, codes, weights = X[held], codes[held], weights[held]
        self.fit_codes(self._prepared(X), codes, classes, weights)
        return self

    def prepare(self, X: Any) -> Any:
        """Return ``X`` as ``fit_codes`` of this learner, and of its clones, wants it."""
        return self._prepared(validate_data(self, X, **self._border))

    def _prepared(self, X: Any) -> Any:
        raise NotImplementedError

    def fit_codes(self, prepared: Any, codes: AnyArray, classes: AnyArray, weights: FloatArray) -> AnyArray:
        """Fit on rows that ``prepare`` returned, and return the codes predicted for them; see ``HistogramTree``."""
        raise NotImplementedError

    def _learned(self, classes: AnyArray, n_features: int, feature_names: AnyArray | None) -> None:
        """Keep what a fit tells about labels and features."""
        self.classes_, self.n_features_in_ = classes, n_features
        if feature_names is not None:
            self.feature_names_in_ = feature_names

    def _as_codes(self, labels: AnyArray) -> AnyArray:
        return labels.astype(np.uint8 if len(self.classes_) <= _BYTE_CLASSES else np.intp)
