"""Small random data, and a learner without chance: what a booster and a paper's own words are compared on."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

N_SETS, N_FAST = 50, 3  # random data sets for each algorithm: in all, and in the fast tests
_TIE = 1e-6  # part of all weight by which a stump must be better than those before it: rounding decides nothing


def random_rows(seed, n_rows=60, noise=0.2):
    """Return features, and labels 0 and 1 of which some are wrong."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3))
    y = (X @ rng.normal(size=3) + 0.5 * X[:, 0] * X[:, 1] > 0).astype(int)
    y[rng.random(n_rows) < noise] ^= 1
    y[:2] = 0, 1
    return X, y


class PlainStump(ClassifierMixin, BaseEstimator):
    """The first stump whose weighted error no other is below by more than rounding."""

    def fit(self, X, y, sample_weight):
        self.classes_ = np.unique(y)
        signs, total = np.where(y == self.classes_[1], sample_weight, -sample_weight), sample_weight.sum()
        best = -np.inf
        for feature, column in enumerate(X.T):
            order = np.argsort(column, kind="stable")
            below = np.append(0.0, np.cumsum(signs[order]))
            edges = np.append(-np.inf, column[order])
            for place, sum_below in enumerate(below):
                gain = abs(below[-1] - 2 * sum_below)  # of +1 above and -1 below, or the other way round
                if gain > best + _TIE * total:
                    best, self.feature_, self.threshold_ = gain, feature, edges[place]
                    self.is_up_ = below[-1] - 2 * sum_below > 0
        return self

    def predict(self, X):
        is_above = X[:, self.feature_] > self.threshold_
        return self.classes_[(is_above == self.is_up_).astype(int)]


def fitted(learner, X, y, weights):
    """Return a learner after a fit to weights of mean 1, as boosters pass them."""
    return learner.fit(X, y, sample_weight=weights * len(y))
