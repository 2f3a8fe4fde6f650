"""Goals that cannot be met: which of them conflict, and by how little."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

from counterpoise import ConstrainedClassifier
from counterpoise.goals import InfeasibleGoals, Table, as_goals, bind, parse_goal
from tests.tiers import some_fast

RNG = np.random.default_rng(0)
N = 24
Y = np.repeat([0, 1], N // 2)
GROUP = np.tile(["a", "b"], N // 2)
X = RNG.normal(size=(N, 3)) + Y[:, None]
DATA = {
    "mail": Table(X, Y, baseline=np.tile([0, 0, 1, 1], N // 4)),  # the baseline is wrong on half of the rows
    "cases": Table(X[:8], [0, 0, 0, 0, 1, 1, 1, 1]),
}
TABLES = {"train": Table(X, Y, GROUP), **DATA}
HARMLESS = [
    "recall <= 1",
    "positive_rate(group=a) >= 0.01",
    "error_rate(cases) <= 0.99",
    "coverage(mail) <= 0.97",
]


def can_hold(goals):
    """Tell whether any predictions meet the goals: a linear program over a prediction for every row."""
    bound = bind(goals, TABLES, classes=[0, 1])
    matrix = sp.hstack(list(bound.weights.values()))
    return linprog(np.zeros(matrix.shape[1]), A_ub=matrix, b_ub=bound.bounds, bounds=(0, 1)).status == 0


def moved(goal, nearest, amount):
    """Return the goal at its nearest bound, made easier by the amount."""
    return goal.with_bound(nearest + (amount if goal.sense == "<=" else -amount))


CONFLICTS = [
    ["recall >= 0.95", "positive_rate <= 0.1"],
    ["coverage(mail) >= 0.6", "negative_rate(mail) >= 0.5"],
    ["error_rate(mail) <= 0.1", "churn(mail) <= 0.2"],
    ["recall >= 0.9", "false_positive_rate >= 0.3", "negative_rate >= 0.5"],
    ["positive_rate(group=a) >= 0.8", "positive_rate(group=b) >= 0.7", "positive_rate <= 0.5"],
    [
        "positive_rate(group=b) >= 0.8 * positive_rate(group=a)",
        "positive_rate(group=a) >= 0.9",
        "positive_rate(group=b) <= 0.3",
    ],
    ["precision >= 0.9", "positive_rate >= 0.7"],
    ["f1_score >= 0.9", "recall <= 0.5"],
    ["correct(cases.positives) >= 1", "positive_rate(cases) <= 0.2"],
    ["wins_minus_losses(mail) >= 0.3", "churn(mail) <= 0.2"],
    ["wins_minus_losses(mail) / churn(mail) >= 0.5", "error_rate(mail) >= 0.9"],
    ["recall >= 1.2"],
    ["accuracy >= 0.9", "error_rate(group=a) >= 0.5"],
    ["recall(group=a) <= recall(group=b) - 0.6", "recall(group=a) >= 0.5"],
]


@pytest.mark.parametrize("conflict", some_fast(CONFLICTS, 3), ids=" and ".join)
def test_a_proven_conflict_is_the_smallest_and_a_fit_goes_on_with_the_bounds_it_offers(conflict):
    goals = as_goals([*HARMLESS[:2], *conflict, *HARMLESS[2:]])
    with pytest.raises(InfeasibleGoals) as caught:
        ConstrainedClassifier(goals=goals).fit(X, Y, sensitive_features=GROUP, datasets=DATA)
    found = caught.value
    assert found.proven
    assert set(found.conflict) == set(as_goals(conflict))
    assert found.least_violation > 1e-3
    for goal in found.conflict:
        others = [other for other in found.conflict if other != goal]
        assert not others or can_hold(others)
    offers = [
        [parse_goal(str(other.with_bound(bound))) if other == goal else other for other in goals]
        for goal, bound in found.nearest_bounds.items()
    ]
    assert all(can_hold(typed) for typed in offers)
    model = ConstrainedClassifier(goals=offers[0], decision="ramp", tol=0.05)
    model.fit(X, Y, sensitive_features=GROUP, datasets=DATA)
    assert model.history_[-1].violation <= 1e-6


def test_a_cost_is_called_no_share_and_its_moves_are_not_summed_with_those_of_shares():
    costs, recall = as_goals(["cost({0->1: 100, 1->0: 300}) <= 10", "recall >= 0.9"])
    text = str(InfeasibleGoals([costs], 18.5, {costs: 28.5}, held_by={costs: (recall,)}))
    assert "share" not in text
    assert "It must hold beside recall >= 0.9." in text
    joint = str(InfeasibleGoals([costs, recall], 18.5, joint_bounds={costs: 20.0, recall: 0.8}))
    assert "The smallest change that is: cost" in joint
    assert "A share is a number from 0 to 1" in str(InfeasibleGoals(as_goals("recall >= 80"), 79.0))
