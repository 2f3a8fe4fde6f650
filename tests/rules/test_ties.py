"""Goals that hold with equality: what rounding leaves of equal rates binds nothing. The oracle counts in fractions."""

import numpy as np
import pytest

from counterpoise import MixtureClassifier
from counterpoise.goals import InfeasibleGoals


def test_the_goal_of_a_perfect_model_costs_nothing():
    y, sex = np.array([1] * 8 + [0] * 4), np.array(["F"] * 2 + ["M"] * 6 + ["F", "M"] * 2)
    goals, groups = ["recall(sex=F) <= recall(sex=M)"], {"sensitive_features": {"sex": sex}}
    found = MixtureClassifier([y, 0 * y], alpha=1.0, goals=goals).fit(np.zeros((12, 1)), y, **groups)
    assert found.mixture_.tolist() == [1, 0]
    assert MixtureClassifier([y], goals=goals).fit(np.zeros((12, 1)), y, **groups).mixture_.tolist() == [1]


@pytest.mark.parametrize("missed", [1e-12, 1e-10, 9e-10])
def test_goals_that_are_missed_by_rounding_are_met(missed):
    y = np.array([0, 1, 1, 1])
    goals = [f"recall >= {1 + missed!r}", "error_rate <= 0"]
    assert MixtureClassifier([y, 1 - y], alpha=0.5, goals=goals).fit(np.zeros((4, 1)), y).mixture_.tolist() == [1, 0]
    with pytest.raises(InfeasibleGoals, match="This goal cannot hold: recall"):
        MixtureClassifier([y, 1 - y], goals=["recall >= 1.00001"]).fit(np.zeros((4, 1)), y)
