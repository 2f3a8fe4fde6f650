"""Fitted classifiers that serve: rows one by one, and many threads at once."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

import counterpoise as cp

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 4))
SEX = np.where(RNG.random(600) < 0.5, "F", "M")
Y = np.where(X[:, 0] + 0.5 * (SEX == "M") + RNG.normal(size=600) > 0.3, "yes", "no")
GOALS = ["recall >= 0.7", "positive_rate(sex=F) >= 0.8 * positive_rate(sex=M)"]
SERVED = {
    "one threshold": {"goals": GOALS[0]},
    "a threshold for each group": {"goals": GOALS, "by": "sex"},
    "deferral": {"goals": "decided_error_rate <= 0.2", "deferral": cp.Deferral(0.3)},
    "keyed draws": {"goals": GOALS, "decision": "sticky", "alpha": 0.5},
    "votes of two models": {"estimator": [HistGradientBoostingClassifier(max_iter=5), LogisticRegression()]},
}


@pytest.mark.parametrize("kind", SERVED)
def test_rows_one_by_one_in_many_threads_get_the_decisions_of_the_batch(kind):
    settings = {"estimator": LogisticRegression(), "cv": 2, "confidence": None, "pos_label": "yes", **SERVED[kind]}
    model = cp.GoalClassifier(**settings, random_state=0).fit(X[:400], Y[:400], sensitive_features={"sex": SEX[:400]})
    by = kind == "a threshold for each group"

    def decide(start, stop):
        groups = {"sensitive_features": {"sex": SEX[start:stop]}} if by else {}
        return model.predict(X[start:stop], **groups)

    together, places = decide(400, 600), [400 + place % 200 for place in range(400)]
    with ThreadPoolExecutor(8) as threads:
        alone = list(threads.map(lambda place: decide(place, place + 1)[0], places))
    assert_array_equal(alone, np.tile(together, 2))
    assert len(set(alone)) > 1
