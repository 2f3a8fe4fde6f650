"""Costs, and bounds on them, in any unit: multiplied by a power of two they lead to the same verdicts and decisions."""

import numpy as np
import pytest

import counterpoise as cp
from counterpoise.goals import InfeasibleGoals
from tests.tiers import some_fast

N = 60
RNG = np.random.default_rng(0)
Y = np.array(["no", "yes"])[RNG.integers(0, 2, N)]
X = np.column_stack([(Y == "yes") + 0.8 * RNG.normal(size=N), RNG.normal(size=N)])
SEX = RNG.choice(["F", "M"], N)
POOL = [np.where(X[:, 0] + 0.5 * RNG.normal(size=N) > 0.5, "yes", "no") for _ in range(5)]
SCORES = [1 / (1 + np.exp(2 - 4 * (X[:, 0] + noise * RNG.normal(size=N)))) for noise in (0.0, 0.3)]
KINDS = np.array(["ant", "bee", "cat"])[RNG.integers(0, 3, N)]
SHARES = (KINDS[:, None] == ["ant", "bee", "cat"]) + RNG.gamma(0.7, size=(N, 3))
SHARES /= SHARES.sum(axis=1, keepdims=True)
POWERS = [-900, -60, -20, 20, 900]  # tens at which absolute tolerances were wrong, and the ends of the floats
FLOOR = "recall >= 0.7"


def cost(unit, bound=None):
    text = f"cost({{no->yes: {3 * unit!r}, yes->no: {7 * unit!r}}})"
    return text if bound is None else f"{text} <= {bound * unit!r}"


def cost_of_kinds(unit, bound=None):
    text = f"cost({{ant->bee: {3 * unit!r}, bee->cat: {7 * unit!r}, cat->ant: {2 * unit!r}}})"
    return text if bound is None else f"{text} <= {bound * unit!r}"


def mixed(models, goals, **settings):
    settings = {"random_state": 0, "goals": goals} | ({} if "objective" in settings else {"alpha": 1.0}) | settings
    return cp.MixtureClassifier(models, **settings).fit(X, Y, sensitive_features={"sex": SEX})


def by_scores(models, goals, y=Y, **settings):
    settings = {"cv": "prefit", "decision": "sticky", "random_state": 0, "goals": goals} | settings
    return cp.GoalClassifier(models, **settings, confidence=None).fit(X, y, sensitive_features={"sex": SEX})


def rules(goals, **settings):
    return by_scores(SCORES, goals, by="sex", **settings)


def of_kinds(goals, **settings):
    return by_scores([SHARES], goals, KINDS, **settings)


CASES = {
    "rules of the least cost": lambda unit: rules(["recall >= 0.8"], objective=cost(unit)),
    "rules that defer": lambda unit: rules(["recall >= 0.8"], objective=cost(unit), deferral=cp.Deferral(0.2)),
    "one rule": lambda unit: rules([FLOOR], objective=cost(unit), decision="fixed", deferral=cp.Deferral(0.2)),
    "classes within a cost": lambda unit: of_kinds([cost_of_kinds(unit, 0.6), "recall(of=bee) >= 0.8"]),
    "classes of the least cost": lambda unit: of_kinds(
        ["recall(of=bee) >= 0.8"], objective=cost_of_kinds(unit), deferral=cp.Deferral(0.2)
    ),
    "one rule of classes": lambda unit: of_kinds(
        ["recall(of=bee) >= 0.8"], objective=cost_of_kinds(unit), decision="fixed"
    ),
}


def losses(model):
    """Return the expected loss of each row: what is decided, whatever the rules are called."""
    return model.selection_.losses @ model.mixture_


@pytest.mark.parametrize("powers", some_fast([[20], POWERS]), ids=str)
@pytest.mark.parametrize("name", CASES)
def test_decisions_do_not_depend_on_the_unit_of_a_cost(name, powers):
    fit = CASES[name]
    expected = losses(fit(1.0))
    for power in powers:
        np.testing.assert_allclose(losses(fit(2.0**power)), expected, atol=1e-6, err_msg=f"2**{power}")


CONFLICTS = {
    "a pool": lambda unit: mixed(POOL, [cost(unit, 0.3), FLOOR]),
    "a ratio of costs": lambda unit: mixed(
        POOL, [f"({2 * unit!r} * true_positives) / positive_rate >= {1.99 * unit!r}"]
    ),
    "classes": lambda unit: of_kinds([cost_of_kinds(unit, 0.01), "recall(of=bee) >= 0.99"]),
    "rules": lambda unit: rules([cost(unit, 0.3), "recall >= 0.9", "positive_rate <= 0.5"]),
    "rules that defer": lambda unit: rules([cost(unit, 0.1), "defer_rate <= 0.05"], deferral=cp.Deferral(0.2)),
    "a linear model": lambda unit: cp.ConstrainedClassifier(goals=[cost(unit, 0.05), FLOOR]).fit(X, Y),
}


def told(fit, unit):
    """Return the verdict on goals that conflict, with bounds in parts of the unit of each."""
    with pytest.raises(InfeasibleGoals) as caught:
        fit(unit)
    error = caught.value
    bounds = {**error.nearest_bounds, **error.joint_bounds}
    verdict = (error.proven, error.nearest_proven, len(error.conflict), len(error.nearest_bounds))
    return verdict, [bound / (unit if goal.is_ratio or "cost" in str(goal) else 1.0) for goal, bound in bounds.items()]


@pytest.mark.parametrize("powers", some_fast([[-20], [-900, 60]]), ids=str)
@pytest.mark.parametrize("name", some_fast(CONFLICTS, 3))
def test_conflicts_and_the_bounds_offered_do_not_depend_on_the_unit_of_a_cost(name, powers):
    verdict, bounds = told(CONFLICTS[name], 1.0)
    for power in powers:
        same_verdict, same_bounds = told(CONFLICTS[name], 2.0**power)
        assert same_verdict == verdict, power
        np.testing.assert_allclose(same_bounds, bounds, rtol=2e-3)  # those of several goals are rounded to four digits
