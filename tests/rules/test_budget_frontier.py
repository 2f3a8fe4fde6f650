"""A frontier within a budget: each point is the best mixture with that bound, whose budget is counted with it too."""

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.datasets import make_classification
from sklearn.tree import DecisionTreeClassifier

from counterpoise import MixtureClassifier, tradeoff

GOALS = ("recall >= 0.5", "false_positive_rate <= 0.6")
BUDGET = 0.01
STEP = 1e-3  # beyond the tightest bound
ROWS = make_classification(1000, 8, n_informative=4, weights=[0.8], flip_y=0.15, random_state=2)


@pytest.fixture(scope="module")
def trees():
    """Return a mixture of trees within a budget, whose first goal costs more of the average than the budget."""
    X, y = ROWS
    models = [DecisionTreeClassifier(max_depth=3, class_weight={1: weight}).fit(X, y) for weight in (0.3, 1, 3, 9)]
    return MixtureClassifier(models, alpha=0.4, goals=["recall >= 0.75", GOALS[1]], budget=BUDGET).fit(X, y)


def test_a_frontier_of_models_has_the_aimed_bound_and_the_tightest_that_any_mixture_meets(trees):
    goal, other = trees.goals_
    own = tradeoff(trees, goal, [goal.bound])
    assert own[0].value == pytest.approx(trees.value_, abs=2e-4)
    found = tradeoff(trees, goal, n_points=5)
    for point in found.points[1:]:
        again = trees.rebalance(goals=[goal.with_bound(point.bound), other])
        assert point.value == pytest.approx(again.value_, abs=2e-4)
    assert found[4].value == pytest.approx(trees.rebalance(goals=[other]).value_, abs=2e-4)
    wrong, is_positive = trees.selection_.losses, ROWS[1] == 1
    recalls, alarms = 1 - wrong[is_positive].mean(axis=0), wrong[~is_positive].mean(axis=0)
    most = linprog(-recalls, A_ub=alarms[None], b_ub=[other.bound], A_eq=np.ones((1, 4)), b_eq=[1])
    assert found[0].bound == pytest.approx(-most.fun, abs=1e-4)
    assert np.isnan(tradeoff(trees, goal, [found[0].bound + STEP])[0].value)
