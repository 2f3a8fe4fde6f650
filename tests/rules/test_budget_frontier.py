"""A frontier within a budget: each point is the best mixture with that bound, whose budget is counted with it too."""

import numpy as np
import pytest
from class_problems import chosen, drawn_rows, known_rows
from scipy.optimize import linprog
from score_problems import deferral_of, random_problem, ranked_of, written_out
from sklearn.datasets import make_classification
from sklearn.tree import DecisionTreeClassifier

from counterpoise import MixtureClassifier, tradeoff
from counterpoise.goals import as_goals
from counterpoise.rules.choosing import as_problem
from counterpoise.rules.class_scores.family import ClassFamily
from counterpoise.rules.program import build_program
from counterpoise.rules.scores.family import CutFamily
from counterpoise.rules.tradeoff import BoundPath
from counterpoise.theory.risks import CVaR

GOALS = ("recall >= 0.5", "false_positive_rate <= 0.6")
BUDGET = 0.01
STEP = 1e-3  # beyond the tightest bound
ROWS = make_classification(1000, 8, n_informative=4, weights=[0.8], flip_y=0.15, random_state=2)


@pytest.mark.slow
@pytest.mark.parametrize("defers", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_a_frontier_of_rules_goes_from_the_tightest_possible_bound_to_where_the_goal_is_as_if_not_asked(seed, defers):
    problem = random_problem(seed, defers=defers)._replace(goals=[*GOALS], objective=CVaR(0.5), budget=BUDGET)
    goals = as_goals(problem.goals)
    aim = as_problem(0.5, None, goals, budget=BUDGET, deferral=deferral_of(problem))
    family = CutFamily(ranked_of(problem))
    path = BoundPath(build_program(family, aim.objective, family.limits(goals)), aim, goals, 1e-7)
    levels = path.default_bounds(4)
    found, _ = path.solve(np.append(levels, levels[0] + STEP))
    for level, one in zip(levels, found, strict=False):
        best = written_out(problem._replace(goals=[str(goals[0].with_bound(float(level))), GOALS[1]]))
        assert one.value == pytest.approx(best, abs=1e-6)
        assert one.lower <= best + 1e-8
    assert found[3].value == pytest.approx(written_out(problem._replace(goals=[GOALS[1]])), abs=1e-6)
    assert found[4].mixture is None
    assert written_out(problem._replace(goals=[str(goals[0].with_bound(float(levels[0] + STEP))), GOALS[1]])) is None


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


@pytest.mark.slow
def test_a_frontier_of_class_rules_is_what_choosing_with_each_bound_finds():
    known = known_rows(*drawn_rows(1, 200, 3))
    goals = as_goals(["recall(of=0) >= 0.5"])
    levels = np.array([0.5, 0.85, 1.1])
    family, aim = ClassFamily(known), as_problem(0.5, None, goals, budget=BUDGET)
    path = BoundPath(build_program(family, aim.objective, family.limits(goals)), aim, goals, 1e-4)
    found, _ = path.solve(levels)
    for level, one in zip(levels[:2], found, strict=False):
        again = chosen(known, 0.5, [goals[0].with_bound(float(level))], BUDGET)
        assert one.value == pytest.approx(again.value, abs=2e-3)
    assert found[2].mixture is None
