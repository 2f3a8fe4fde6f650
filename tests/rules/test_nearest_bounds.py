"""Nearest bounds of conflicting goals: those of a linear program over every rule, printed so that they can be used."""

import numpy as np
import pytest

import counterpoise as cp
from counterpoise.goals import InfeasibleGoals


def test_bounds_of_a_search_are_not_called_proven():
    rng = np.random.default_rng(0)
    y = np.tile(["ant", "bee", "cat"], 20)
    shares = rng.dirichlet(np.ones(3), 60)
    goals = ["recall(of=ant) >= 0.99", "precision(of=ant) >= 0.99"]
    model = cp.GoalClassifier(
        [shares], cv="prefit", decision="sticky", alpha=1.0, goals=goals, random_state=0, confidence=None
    )
    with pytest.raises(InfeasibleGoals, match="The nearest bounds found that can be met") as caught:
        model.fit(np.zeros((60, 1)), y)
    assert not caught.value.proven
    assert not caught.value.nearest_proven
    assert caught.value.as_dict()["nearest_proven"] is False
