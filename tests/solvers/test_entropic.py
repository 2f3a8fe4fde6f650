"""The entropy-regularized dual: against cvxpy, in the limits of beta, with certificate."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import regularized_by_cvxpy

from counterpoise.solvers import minimize_cvar, regularized_weights
from counterpoise.solvers.linear_program import minimize_on_simplex


def random_losses(seed):
    rng = np.random.default_rng(seed)
    n_samples, n_models = int(rng.integers(1, 60)), int(rng.integers(1, 12))
    if seed % 2:
        return (rng.random((n_samples, n_models)) < 0.3).astype(float)
    return rng.normal(size=(n_samples, n_models))


@pytest.mark.slow
@given(seed=st.integers(0, 10_000), alpha=st.floats(0.02, 1.0), beta=st.sampled_from([0.3, 3.0, 30.0, 300.0]))
def test_value_and_weights_agree_with_cvxpy(seed, alpha, beta):
    losses = random_losses(seed)
    found = regularized_weights(losses, alpha, beta)
    value, weights = regularized_by_cvxpy(losses, alpha, beta)
    assert found.value == pytest.approx(value, abs=1e-6)
    # The objective is 1/beta-strongly concave in the weights, which turns a gap into a distance.
    assert np.abs(found.weights - weights).sum() <= np.sqrt(2 * beta * 4e-6) + 1e-6


@given(seed=st.integers(0, 10_000), alpha=st.floats(0.02, 1.0), beta=st.floats(0.01, 1e4))
def test_certificate_holds_for_any_beta(seed, alpha, beta):
    losses = random_losses(seed)
    found = regularized_weights(losses, alpha, beta)
    some = found.weights[found.weights > 0]
    entropy = -(some @ np.log(some))
    assert found.weights.sum() == pytest.approx(1, abs=1e-9)
    assert found.weights.max() <= 1 / (alpha * len(losses)) + 1e-12
    assert found.mixture.min() >= 0
    assert found.mixture.sum() == pytest.approx(1, abs=1e-12)
    assert found.lower == pytest.approx((found.weights @ losses).min() + entropy / beta, abs=1e-9)
    assert found.value == pytest.approx(found.weights @ losses @ found.mixture + entropy / beta, abs=1e-9)
    assert -1e-9 <= found.gap <= 1e-6


def test_value_tends_to_the_linear_program_as_beta_grows():
    losses = np.random.default_rng(0).random((400, 10)) < 0.3
    limit = minimize_cvar(losses, 0.1, method="highs").value
    excess = [regularized_weights(losses, 0.1, beta).value - limit for beta in (10.0, 100.0, 1e3, 1e4, 1e5)]
    assert excess == sorted(excess, reverse=True)
    assert -1e-6 <= excess[-1] <= np.log(400) / 1e5 + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(("beta", "scale"), [(1e12, 1.0), (1e300, 1.0), (1e308, 100.0), (10.0, 1e300)])
@pytest.mark.parametrize("weighted", [False, True])
def test_without_regularization_to_speak_of_both_bounds_meet_at_the_linear_program(beta, scale, weighted):
    rng = np.random.default_rng(0)
    losses, weight = scale * rng.random((200, 10)), rng.exponential(size=200) if weighted else None
    limit = minimize_cvar(losses, 0.1, sample_weight=weight, method="highs").value
    found = regularized_weights(losses, 0.1, beta, sample_weight=weight)
    assert found.lower - 1e-9 * scale <= limit <= found.value + 1e-9 * scale
    assert found.gap <= 1e-6 * scale


def test_small_beta_gives_equal_weights():
    losses = np.random.default_rng(1).random((50, 4))
    np.testing.assert_allclose(regularized_weights(losses, 0.1, 1e-6).weights, 1 / 50, rtol=1e-5)


def test_doubling_a_weight_is_repeating_the_sample():
    rng = np.random.default_rng(2)
    losses, weight = rng.random((30, 5)), rng.integers(1, 4, size=30)
    weighted = regularized_weights(losses, 0.2, 20.0, sample_weight=weight).weights
    repeated = regularized_weights(np.repeat(losses, weight, axis=0), 0.2, 20.0).weights
    np.testing.assert_allclose(weighted, np.add.reduceat(repeated, np.cumsum(weight) - weight), atol=1e-6)


def test_a_start_at_the_optimum_needs_fewer_steps():
    losses = np.random.default_rng(3).random((2000, 10)) < 0.2
    cold = regularized_weights(losses, 0.1, 20.0)
    assert regularized_weights(losses, 0.1, 20.0, start=cold.mixture).n_iter < cold.n_iter


@pytest.mark.parametrize("scale", [1e-5, 1e5])
def test_units_of_the_losses_do_not_matter(scale):
    losses = np.random.default_rng(4).normal(size=(200, 6))
    plain = regularized_weights(losses, 0.1, 50.0)
    scaled = regularized_weights(losses * scale, 0.1, 50.0 / scale, tol=1e-6 * scale)
    np.testing.assert_allclose(scaled.weights, plain.weights, atol=1e-4)


BAD = {
    "zero beta": (lambda: regularized_weights([[0.5]], 0.5, 0), "beta must be finite and above 0; got 0"),
    "infinite beta": (lambda: regularized_weights([[0.5]], 0.5, np.inf), "beta must be finite and above 0; got inf"),
    "alpha": (lambda: regularized_weights([[0.5]], 2, 1), r"alpha must lie in \(0, 1\].*got 2"),
    "NaN": (lambda: regularized_weights([[np.nan]], 0.5, 1), "losses must be finite everywhere; got NaN"),
    "max_iter": (lambda: regularized_weights([[0.5]], 0.5, 1, max_iter=0), "max_iter must be at least 1; got 0"),
    "start": (lambda: regularized_weights([[0.5]], 0.5, 1, start=[0.4]), "start must be a distribution"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_clear_sentence(case):
    call, text = BAD[case]
    with pytest.raises(ValueError, match=text):
        call()


def random_quadratic(seed):
    """Return a Hessian, singular but for a small ridge in half of the cases, and a cost."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 30))
    factor = rng.normal(size=(size if seed % 2 else max(size // 2, 1), size))
    return factor.T @ factor + 1e-6 * np.eye(size), rng.normal(size=size)


@given(seed=st.integers(0, 10_000))
def test_no_point_of_the_simplex_is_below_a_step(seed):
    """The slope towards every corner is at least that where the step ends."""
    hessian, cost = random_quadratic(seed)
    point = minimize_on_simplex(hessian, cost)
    assert point.min() >= 0
    assert point.sum() == pytest.approx(1)
    slope = hessian @ point + cost
    assert slope.min() >= slope @ point - 1e-8


def test_the_unit_of_the_weights_does_not_matter():
    rng = np.random.default_rng(3)
    losses, weights = rng.random((60, 5)), rng.exponential(size=60)
    plain, scaled = (regularized_weights(losses, 0.2, 5.0, sample_weight=unit * weights) for unit in (1.0, 7.0))
    np.testing.assert_allclose(scaled.weights, plain.weights, atol=1e-7)
    assert scaled.value == pytest.approx(plain.value, abs=1e-7)
