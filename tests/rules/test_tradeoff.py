"""The frontier between risk and a goal's bound: exact, monotone, convex, and drawn."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from counterpoise import MixtureClassifier, tradeoff
from counterpoise.goals import InfeasibleGoals
from counterpoise.solvers import minimize_cvar, solve_weights_lp


def pool_of_losses(n_samples, n_models, seed=0):
    rng = np.random.default_rng(seed)
    difficulty = rng.beta(0.3, 1.5, size=(n_samples, 1))
    return (rng.random((n_samples, n_models)) < difficulty * rng.uniform(0.6, 1.4, n_models)).astype(np.uint8)


@pytest.fixture(scope="module")
def fitted():
    X, y = make_classification(3000, 10, n_informative=4, flip_y=0.1, class_sep=0.7, random_state=1)
    models = [DecisionTreeClassifier(max_depth=d, random_state=d).fit(X[:800], y[:800]) for d in (1, 3, 6)]
    models += [LogisticRegression(class_weight={0: 1, 1: c}).fit(X[:800], y[:800]) for c in (0.3, 1, 3)]
    sex = np.where(X[800:, 0] > 0, "F", "M")
    model = MixtureClassifier(models, alpha=0.3, goals=["error_rate <= 0.35"])
    return model.fit(X[800:], y[800:], sensitive_features={"sex": sex})


@pytest.mark.parametrize("shape", [(60, 5), (3000, 12)])
def test_every_point_is_the_optimum_of_its_own_linear_program(shape):
    losses = pool_of_losses(*shape)
    row = losses[: shape[0] // 2].mean(axis=0)
    bounds = np.linspace(row.min(), row.max(), 7)
    found = tradeoff(losses, row, bounds, alpha=0.2)
    for point in found:
        exact = solve_weights_lp(losses, 0.2, rows=[row], bounds=[point.bound])
        assert point.value == pytest.approx(exact.value, abs=2e-6)
        assert point.lower <= exact.value + 1e-9
        assert 0 <= point.gap + 1e-12 <= 1e-6 + 1e-12
        assert row @ point.mixture <= point.bound + 1e-8


def test_the_frontier_is_monotone_and_convex_and_its_slope_is_the_price():
    losses = pool_of_losses(3000, 12)
    row = losses[:500].mean(axis=0)
    found = tradeoff(losses, row, alpha=0.2, n_points=15)
    values, bounds = found.values, found.bounds
    assert len(found) == 15
    assert (np.diff(values) <= 1e-6).all()
    slopes = np.diff(values) / np.diff(bounds)
    assert (np.diff(slopes) >= -4e-6 / np.diff(bounds).min()).all()
    assert values[0] > values[-1] + 1e-3
    assert values[-1] == pytest.approx(minimize_cvar(losses, 0.2, tol=1e-6).value, abs=2e-4)
    for point in found:  # the tangent at each point lies below the whole frontier
        assert (values >= point.lower - point.multiplier * (bounds - point.bound) - 1e-6).all()


def test_bounds_come_back_in_the_order_given_and_impossible_ones_are_marked():
    losses = pool_of_losses(3000, 6)
    row = losses.mean(axis=0)
    found = tradeoff(losses, row, [0.5, 0.0, row.min() + 0.001], alpha=0.2)
    assert [point.bound for point in found] == [0.5, 0.0, row.min() + 0.001]
    assert np.isnan(found[1].value)
    assert found[1].mixture is None
    assert found[0].value <= found[2].value + 1e-6


def test_a_goal_that_the_model_has_is_replaced(fitted):
    found = tradeoff(fitted, "error_rate <= 0", [0.3, 0.9])
    assert found[1].value == pytest.approx(fitted.rebalance(goals=()).value_, abs=2e-4)


def test_a_ratio_needs_bounds_and_is_exact_at_each(fitted):
    with pytest.raises(ValueError, match="on a ratio"):
        tradeoff(fitted, "precision >= 0.8")
    found = tradeoff(fitted, "precision >= 0.8", [0.6, 0.75])
    for point in found:
        again = fitted.rebalance(goals=["error_rate <= 0.35", f"precision >= {point.bound}"])
        assert again.value_ == pytest.approx(point.value, abs=2e-4)


def test_wrong_arguments_are_refused(fitted):
    losses = pool_of_losses(50, 3)
    with pytest.raises(ValueError, match=r"of shape \(3,\)"):
        tradeoff(losses, [1.0, 2.0], [0.1])
    with pytest.raises(ValueError, match="bounds must be a non-empty"):
        tradeoff(losses, losses.mean(axis=0), [])
    with pytest.raises(TypeError, match="MixtureClassifier, which is not fitted"):
        tradeoff(MixtureClassifier(fitted.estimators), "recall >= 0.5")
    with pytest.raises(ValueError, match="one goal; got 2"):
        tradeoff(fitted, ["recall >= 0.5", "error_rate <= 0.5"])
    impossible = fitted.rebalance(goals=())
    impossible.goals_ = tuple(fitted.goals_[0].with_bound(bound) for bound in (0.0,))
    with pytest.raises(InfeasibleGoals):
        tradeoff(impossible, "recall >= 0.5")


@pytest.mark.parametrize("text", ["recall(sex=F) >= 0.6", "false_positive_rate <= 0.3"])
def test_a_goal_with_a_confidence_costs_what_a_mixture_inside_it_costs(fitted, text):
    found = tradeoff(fitted, f"{text} with confidence 0.9", n_points=4)
    for point in found:
        again = fitted.rebalance(goals=[*fitted.goals_, found.goal.with_bound(point.bound)])
        assert again.value_ == pytest.approx(point.value, abs=2e-4)
    tighter = 0.01 if found.goal.sense == ">=" else -0.01
    beyond = tradeoff(fitted, found.goal, [found.bounds[0] + tighter, float(found.goal.sense == ">=")])
    assert np.isnan(beyond.values).all()  # out of the mixture's reach, and of any number of rows
    with pytest.raises(InfeasibleGoals) as caught:
        fitted.rebalance(goals=[*fitted.goals_, found.goal.with_bound(beyond[0].bound)])
    assert caught.value.nearest_bounds[caught.value.conflict[-1]] == pytest.approx(found.bounds[0], abs=1e-6)
