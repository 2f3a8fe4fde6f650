"""Rows of two groups, a goal on their rates, and a ConstrainedClassifier fitted inside it."""

import numpy as np

from counterpoise import ConstrainedClassifier

PARITY = "positive_rate(group=b) >= 0.8 * positive_rate(group=a)"


def two_groups(n_samples=400, seed=0):
    """Return rows, labels and groups whose labels differ in how often they are positive."""
    rng = np.random.default_rng(seed)
    group = np.where(rng.random(n_samples) < 0.5, "a", "b")
    X = rng.normal(size=(n_samples, 4))
    X[:, 1] += group == "a"
    y = (X[:, 0] + X[:, 1] + 0.7 * rng.normal(size=n_samples) > 0.6).astype(int)
    return X, y, group


X, Y, GROUP = two_groups()


def fitted(**settings):
    settings = {"goals": PARITY, "random_state": 0, **settings}
    return ConstrainedClassifier(**settings).fit(X, Y, sensitive_features=GROUP)


MODEL = fitted()
