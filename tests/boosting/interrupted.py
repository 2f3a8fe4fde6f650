"""Small boosters, data for them, and a stand-in for a kill; for the tests of checkpoints."""

import numpy as np
from sklearn.datasets import make_classification

from counterpoise import AdaLPBoostClassifier, LPBoostClassifier
from counterpoise.goals import Table
from counterpoise.learners import HistogramTree

TREE = HistogramTree(max_depth=2)
X, Y = make_classification(240, 6, n_informative=4, flip_y=0.1, class_sep=0.7, random_state=0)
SEX = np.where(X[:, 0] > 0, "M", "F")
WEIGHTS = np.random.default_rng(0).integers(0, 3, 240)
VALIDATION = {"X_val": X[160:], "y_val": Y[160:]}


class Interrupted(Exception):  # noqa: N818 - stands for a kill
    pass


def after(number):
    """Return a callback that ends the fit as soon as the round is done."""

    def interrupt(done):
        if done.number == number:
            raise Interrupted

    return interrupt


def ada(estimator=TREE, **settings):
    return AdaLPBoostClassifier(estimator, **{"n_estimators": 7, "alpha": 0.3, "random_state": 0} | settings)


def lp(**settings):
    return LPBoostClassifier(TREE, **{"n_estimators": 7, "alpha": 0.3, "random_state": 0} | settings)


MAIL = Table(X[:60] + 0.1, baseline=Y[:60])
