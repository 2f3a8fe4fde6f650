"""The models of folds as one model: the mean of their log-odds."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from counterpoise._base.types import AnyArray, FloatArray

_LEAST = 2.0**-60  # a probability below this counts as this: its logarithm stays finite


class AveragedClassifier(ClassifierMixin, BaseEstimator):
    """Fitted classifiers that decide together, by the mean of their log-odds.

    ``GoalClassifier(cv="auto")`` makes one of the models of its folds. Each of them scored the rows that it was not
    trained on, and its thresholds were found on those scores; their mean errs less often than any of them.

    Parameters
    ----------
    models : list of fitted classifiers
        Of the same classes, with ``predict_proba``.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from counterpoise.mixtures.averages import AveragedClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> halves = [LogisticRegression(max_iter=5000).fit(X[part::2], y[part::2]) for part in (0, 1)]
    >>> both = AveragedClassifier(halves)
    >>> both.predict_proba(X[:3]).shape, both.score(X, y) > 0.95
    ((3, 2), True)
    """

    stored_apart = ("models",)  # each model in a file of its own

    def __init__(self, models: Sequence[Any]) -> None:
        self.models = models

    @property
    def classes_(self) -> AnyArray:
        """Return the classes, which all models share."""
        return np.asarray(self.models[0].classes_)

    @property
    def n_features_in_(self) -> int:
        """Return the number of features."""
        return int(self.models[0].n_features_in_)

    @property
    def feature_names_in_(self) -> AnyArray:
        """Return the names of the features, where the models know them."""
        return np.asarray(self.models[0].feature_names_in_)

    @property
    def feature_importances_(self) -> FloatArray:
        """Return the mean of the models' importances of features, where they have them."""
        return np.asarray(np.mean([model.feature_importances_ for model in self.models], axis=0))

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities whose log-odds are the means of those of the models.

        Parameters
        ----------
        X : rows, as the models take them

        Returns
        -------
        array of shape (n_samples, n_classes)
        """
        logs = np.mean([np.log(np.maximum(model.predict_proba(X), _LEAST)) for model in self.models], axis=0)
        shares = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> AnyArray:
        """Return the likeliest class of each row.

        Parameters
        ----------
        X : rows, as the models take them

        Returns
        -------
        array of shape (n_samples,)
        """
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def __sklearn_is_fitted__(self) -> bool:
        """Tell that it is made of fitted models."""
        return True
