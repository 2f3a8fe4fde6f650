"""Small models for tests of the explorer: rules of one score, some that defer, of two that are trained, a pool."""

from functools import cache

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from counterpoise import Deferral, GoalClassifier, MixtureClassifier
from counterpoise.explorer import session_of_model
from tests.explorer.inside import page_of

GOALS = [
    "positive_rate(sex=F) >= 0.8 * positive_rate(sex=M)",
    "recall >= 0.7",
    "false_positive_rate <= 0.3",
]


def rows(n_samples=600, seed=0):
    """Return features, labels and sexes."""
    rng = np.random.default_rng(seed)
    sex = np.where(rng.random(n_samples) < 0.5, "F", "M")
    X = rng.normal(size=(n_samples, 3))
    y = (X[:, 0] + 0.5 * (sex == "M") + 0.8 * rng.normal(size=n_samples) > 0.4).astype(int)
    return X, y, sex


X, Y, SEX = rows(1000)
TRAINED, CHOSEN, TEST = slice(0, 200), slice(200, 600), slice(600, 1000)


@cache
def fitted(kind):
    """Return a model that was chosen inside goals, on rows that its models were not trained on."""
    given = {"sensitive_features": {"sex": SEX[CHOSEN]}}
    models = [
        LogisticRegression().fit(X[TRAINED], Y[TRAINED]),
        GaussianNB().fit(X[TRAINED], Y[TRAINED]),
        *(DecisionTreeClassifier(max_depth=depth, random_state=depth).fit(X[TRAINED], Y[TRAINED]) for depth in (1, 3)),
    ]
    asked = {"alpha": 0.6, "goals": GOALS, "random_state": 0}
    if kind == "pool":
        return MixtureClassifier(models, **asked | {"goals": GOALS[1:]}).fit(X[CHOSEN], Y[CHOSEN], **given)
    asked["decision"] = "sticky"
    if kind == "trained":
        return GoalClassifier(models[:2], by="sex", cv=3, **asked, confidence=None).fit(X[CHOSEN], Y[CHOSEN], **given)
    if kind == "defer":
        asked |= {"goals": [GOALS[1], "defer_rate <= 0.3"], "deferral": Deferral(0.2)}
    return GoalClassifier(models[0], by="sex", cv="prefit", **asked, confidence=None).fit(X[CHOSEN], Y[CHOSEN], **given)


def session(kind="score"):
    """Return a fresh session with held-out rows."""
    return session_of_model(fitted(kind), X[TEST], Y[TEST], sensitive_features={"sex": SEX[TEST]})


@cache
def pool_as_file():
    """Return the explorer of the pool of models as the text of a file."""
    return page_of(session("pool"))
