"""Rows for training inside goals: small ones with all stumps, and people of two sexes."""

import numpy as np
from exact_stumps import BestStump, all_answers
from sklearn.datasets import make_classification

from counterpoise import LPBoostClassifier
from counterpoise.goals import Table
from counterpoise.learners import HistogramTree

PARITY = "demographic_parity_difference(by=sex) <= 0.05"


class Rows:
    """Labelled rows of two groups, and unlabelled ones with the answers of a deployed model."""

    def __init__(self, seed, n_classes=2):
        rng = np.random.default_rng(seed)
        n_train, n_mail = int(rng.integers(12, 40)), int(rng.integers(5, 20))
        self.X = rng.integers(0, 7, size=(n_train + n_mail, 2)).astype(float)
        noise = rng.normal(size=n_train + n_mail)
        levels = self.X[:, 0] - 0.7 * self.X[:, 1] + 1.5 * noise
        labels = np.searchsorted(np.quantile(levels, np.arange(1, n_classes) / n_classes), levels)
        labels[:n_classes] = np.arange(n_classes)
        self.train, self.mail = slice(0, n_train), slice(n_train, None)
        self.y, self.baseline = labels[self.train], rng.permutation(labels)[self.mail]
        self.sex = np.where(rng.random(n_train) + 0.1 * (self.y > 0) > 0.5, "M", "F")
        self.sex[:2], self.sex[2:4] = "M", "F"
        self.weight = rng.integers(1, 4, n_train).astype(float) if seed % 2 else np.ones(n_train)
        self.said = all_answers(self.X, np.arange(n_classes))

    @property
    def losses(self):
        """Return where each stump errs on the labelled rows."""
        return (self.said[self.train] != self.y[:, None]).astype(float)

    def share(self, said, rows):
        """Return the weighted share of some labelled rows of which something is said, for each stump."""
        return self.weight[rows] @ said[self.train][rows] / self.weight[rows].sum()

    def gap(self):
        """Return the difference of the groups' positive rates, for each stump."""
        women, men = (self.share(self.said == 1, self.sex == sex) for sex in "FM")
        return women - men

    def fit(self, **params):
        """Fit inside goals."""
        model = LPBoostClassifier(BestStump(), **{"n_estimators": 80, "budget": None, "random_state": 0, **params})
        datasets = {"mail": Table(self.X[self.mail], baseline=self.baseline)}
        given = {"sensitive_features": {"sex": self.sex}, "datasets": datasets}
        return model.fit(self.X[self.train], self.y, self.weight, **given)


def make_people():
    """Return features, labels that are texts, and sexes."""
    X, y = make_classification(1200, 6, n_informative=4, flip_y=0.1, class_sep=0.7, random_state=1)
    rng = np.random.default_rng(0)
    return X, np.where(y == 1, "yes", "no"), np.where(X[:, 0] + y + rng.normal(size=1200) > 0.5, "M", "F")


def boosted(people, given=None, **params):
    """Fit inside a parity goal, unless others are asked for."""
    X, y, sex = people
    settings = {"n_estimators": 12, "alpha": 1.0, "goals": [PARITY], "random_state": 0}
    model = LPBoostClassifier(**{"estimator": HistogramTree(3), **settings, **params})
    return model.fit(X, y, sensitive_features={"sex": sex}, **given or {})
