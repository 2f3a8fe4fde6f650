"""All stumps of some rows, and a learner that finds the best of them."""

from itertools import product

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin


class BestStump(ClassifierMixin, BaseEstimator):
    """The stump of the least weighted error of all thresholds, features and labels: brute force."""

    def fit(self, X, y, sample_weight):
        self.classes_, codes = np.unique(y, return_inverse=True)
        worth = np.zeros((len(y), len(self.classes_)))
        worth[np.arange(len(y)), codes] = sample_weight
        best = -1.0
        for feature, column in enumerate(X.T):
            for threshold in np.append(np.unique(column), -np.inf):
                is_below = column <= threshold
                gains = [worth[side].sum(axis=0) for side in (is_below, ~is_below)]
                if sum(gain.max() for gain in gains) > best + 1e-12:
                    best = sum(gain.max() for gain in gains)
                    self.feature_, self.threshold_ = feature, threshold
                    self.sides_ = self.classes_[[gain.argmax() for gain in gains]]
        return self

    def predict(self, X):
        return np.where(X[:, self.feature_] <= self.threshold_, *self.sides_)


def all_answers(X, classes):
    """Return what every stump says of the rows, a column for each, without repeats."""
    said = [np.full(len(X), label) for label in classes]
    for column in X.T:
        for threshold in np.unique(column):
            is_below = column <= threshold
            said += [np.where(is_below, one, other) for one, other in product(classes, repeat=2)]
    return np.unique(np.array(said), axis=0).T
