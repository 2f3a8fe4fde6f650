"""Of the mixtures with no more risk, one that draws for fewer rows."""

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.tree import DecisionTreeClassifier

from counterpoise import MixtureClassifier


def test_a_classifier_draws_for_fewer_rows_and_keeps_its_goals():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 4))
    y = (X @ [1, -1, 0.5, 0] + rng.normal(size=600) > 0).astype(int)
    pool = [
        DecisionTreeClassifier(max_depth=2, max_features=1, random_state=s).fit(X[:200], y[:200]) for s in range(15)
    ]
    pool.append(DummyClassifier(strategy="constant", constant=1).fit(X[:200], y[:200]))
    options = {"alpha": 0.3, "goals": ["recall >= 0.8"], "random_state": 0}
    drawn = MixtureClassifier(pool, **options).fit(X[200:], y[200:])
    voted = MixtureClassifier(pool, decision="vote", **options).fit(X[200:], y[200:])  # whose rows are not drawn
    assert drawn.value_ <= voted.value_ + 1e-9
    assert drawn.check_goals()[0].holds
    assert drawn.drawn_share_ <= voted.drawn_share_
    chances = drawn.decision_proba(X[200:])[:, 1]
    assert drawn.drawn_share_ == np.mean((chances > 0) & (chances < 1))
