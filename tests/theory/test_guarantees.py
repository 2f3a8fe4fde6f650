"""The schedules and bounds of the papers agree with each other and with their text."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import chi2

from counterpoise import guarantees
from counterpoise.metrics import cvar_loss
from counterpoise.solvers import minimize_cvar

SAMPLES, ROUNDS, ALPHAS = st.integers(2, 10**7), st.integers(1, 10_000), st.floats(1e-4, 0.99)


@given(SAMPLES, ROUNDS)
def test_the_bound_at_the_theorems_step_size_is_g_plus_delta(n_samples, n_rounds):
    bound = guarantees.hedge_bound(0.2, n_samples, n_rounds)
    assert bound == pytest.approx(0.2 + guarantees.hedge_delta(n_samples, n_rounds))


@given(SAMPLES, ROUNDS, st.floats(0.01, 10))
def test_no_other_step_size_has_a_better_bound(n_samples, n_rounds, eta):
    best = guarantees.hedge_bound(0.2, n_samples, n_rounds)
    assert guarantees.hedge_bound(0.2, n_samples, n_rounds, eta) >= best - 1e-12


@given(SAMPLES, st.floats(0.01, 1))
def test_the_rounds_reach_delta_and_one_fewer_does_not(n_samples, delta):
    n_rounds = guarantees.hedge_rounds(n_samples, delta)
    assert guarantees.hedge_delta(n_samples, n_rounds) <= delta + 1e-12
    assert n_rounds == 1 or guarantees.hedge_delta(n_samples, n_rounds - 1) > delta - 1e-12


def test_the_papers_example_of_50000_samples_needs_about_500_rounds():
    assert 500 <= guarantees.hedge_rounds(50_000, 0.1) <= 600


def test_one_sample_needs_one_round():
    assert guarantees.hedge_rounds(1, 0.1) == 1


@given(ALPHAS, st.floats(0.01, 1))
def test_theorem_4_schedules_are_consistent(alpha, delta):
    n_rounds = guarantees.regularized_lpboost_rounds(alpha, delta)
    assert n_rounds >= 32 / delta**2 * math.log(1 / alpha) - 1e-6
    assert guarantees.regularized_lpboost_delta(alpha, n_rounds) <= delta * (1 + 1e-9)
    assert guarantees.regularized_lpboost_beta(alpha, delta) >= max(2 / delta * math.log(1 / alpha), 0.5) - 1e-9


@given(st.integers(1, 10**7), st.floats(0.01, 0.999), st.floats(0.5, 2000))
def test_the_calibrated_radius_is_the_chi_square_quantile_over_2n(n_samples, confidence, degrees):
    expected = chi2.ppf(confidence, degrees) / (2 * n_samples)
    assert guarantees.calibrated_radius(n_samples, confidence, degrees) == pytest.approx(expected, rel=1e-9)


def test_the_empirical_bernstein_bounds_hold_as_often_as_promised():
    rng = np.random.default_rng(0)
    samples = rng.beta(1, 9, size=(2000, 200))
    bounds = np.array([guarantees.empirical_bernstein_bound(sample, delta=0.1) for sample in samples])
    assert (bounds < 0.1).mean() <= 0.1
    assert bounds.mean() < 0.18


@given(st.integers(2, 400), st.floats(0.01, 0.5), st.floats(1, 1e6))
def test_the_empirical_bernstein_bounds_are_the_papers(n_samples, delta, complexity):
    losses = np.random.default_rng(n_samples).random(n_samples)
    mean, variance = losses.mean(), losses.var(ddof=1)
    size = math.log(complexity / delta)
    uniform = mean + 15 * size / (n_samples - 1) + math.sqrt(18 * variance * size / n_samples)
    assert guarantees.empirical_bernstein_bound(losses, delta=delta, complexity=complexity) == pytest.approx(uniform)
    single = guarantees.empirical_bernstein_bound(losses, delta=delta)
    assert mean < single < guarantees.empirical_bernstein_bound(losses, delta=delta, complexity=2)


def test_the_bound_on_rates_is_the_papers_theorem_1():
    """E by hand: three datasets, one constraint with coefficients 1 and 2, objective 1, V = 5, X = 2, lambda = 0.5."""
    coefficient_sum = 1 + 5 * (1 + 2)
    e = 1 + 4 * 2**2 / 0.5 * coefficient_sum + math.sqrt(8 * math.log(4 * 3 / 0.1))
    found = guarantees.rate_generalization_bound(
        400, norm=2.0, regularization=0.5, coefficient_sum=coefficient_sum, n_datasets=3, delta=0.1
    )
    assert found == pytest.approx(e / 20)


@pytest.mark.parametrize("n_models", [4, 7])
def test_a_tail_of_blocks_needs_as_many_models_as_stated(n_models):
    alpha, losses = 1 / n_models, np.repeat(np.eye(n_models), 3, axis=0)
    for size in range(1, n_models + 1):
        best = minimize_cvar(losses[:, :size], alpha).value  # by symmetry any of so many models will do
        assert best == pytest.approx(1 / size, abs=1e-4)
        assert guarantees.mixture_size_bound(alpha, 1 / size) == size


@pytest.mark.parametrize("n_samples", [20, 200, pytest.param(2000, marks=pytest.mark.slow)])
def test_the_tail_of_new_rows_is_below_its_bound_as_often_as_promised(n_samples):
    rng = np.random.default_rng(n_samples)
    alpha, delta = 0.2, 0.1
    losses = rng.beta(0.5, 2.0, size=(2000, n_samples))
    truth = cvar_loss(rng.beta(0.5, 2.0, size=1_000_000), alpha)
    bounds = np.array([guarantees.cvar_upper_bound(one, alpha, delta=delta) for one in losses[: 400_000 // n_samples]])
    assert np.mean(bounds < truth) <= delta
    assert bounds.mean() - truth < 2 * math.sqrt(math.log(1 / delta) / (2 * n_samples)) / alpha


def test_the_bound_on_a_tail_is_the_largest_tail_near_the_sample():
    losses, alpha, delta = np.array([0.0, 0.2, 0.5, 0.9]), 0.6, 0.45
    moved = math.sqrt(math.log(1 / delta) / 8)
    others = [*losses, 1.0]  # the share is taken from the smallest loss first, 0.25 of it, then from the next
    weights = np.array([0.0, 0.5 - moved, 0.25, 0.25, moved])
    assert guarantees.cvar_upper_bound(losses, alpha, delta=delta) == pytest.approx(cvar_loss(others, alpha, weights))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: guarantees.cvar_upper_bound([0.0, 0.5], 0.1, delta=0.6), r"delta must lie in \(0, 0.5\].*got 0.6"),
        (lambda: guarantees.cvar_upper_bound([0.0, 1.5], 0.1, delta=0.1), r"losses must lie in \[0, 1\].*1.5"),
        (lambda: guarantees.mixture_size_bound(0.1, 0.05), "value must be at least alpha, 0.1.*got 0.05"),
        (
            lambda: guarantees.rate_generalization_bound(
                10, norm=1, regularization=0, coefficient_sum=1, n_datasets=1, delta=0.1
            ),
            "regularization must be finite and above 0; got 0",
        ),
        (lambda: guarantees.calibrated_radius(100, 1.0, 3), r"confidence must lie in \(0, 1\).*got 1.0"),
        (lambda: guarantees.calibrated_radius(100, 0.9, 0), "degrees_of_freedom must be finite and above 0; got 0"),
        (lambda: guarantees.calibrated_radius(0, 0.9, 3), "n_samples must be finite and at least 1; got 0"),
        (lambda: guarantees.empirical_bernstein_bound([0.0, 2.0], delta=0.1), r"losses must lie in \[0, 1\].*2.0"),
        (lambda: guarantees.empirical_bernstein_bound([0.5], delta=0.1), "at least two samples.*got one"),
        (lambda: guarantees.empirical_bernstein_bound([0, 1], delta=0), r"delta must lie in \(0, 1\).*got 0"),
        (
            lambda: guarantees.empirical_bernstein_bound([0, 1], delta=0.1, complexity=0.5),
            "complexity must be finite and at least 1.*got 0.5",
        ),
        (lambda: guarantees.hedge_eta(0.5, 10), "n_samples must be finite and at least 1; got 0.5"),
        (lambda: guarantees.hedge_eta(10, 0), "n_rounds must be at least 1; got 0"),
        (lambda: guarantees.hedge_rounds(10, 0), "delta must be finite and above 0; got 0"),
        (lambda: guarantees.hedge_rounds(10, 1e-200), "delta must be at least 1e-150"),
        (lambda: guarantees.hedge_bound(-1, 10, 10), "worst_weighted_loss must be finite and at least 0; got -1"),
        (lambda: guarantees.regularized_lpboost_rounds(0.1, 1e-200), "delta must be at least 1e-150"),
        (lambda: guarantees.regularized_lpboost_beta(2, 0.1), r"alpha must lie in \(0, 1\].*got 2"),
    ],
)
def test_bad_input_gets_one_clear_sentence(call, text):
    with pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize("seed", range(6))
def test_the_profile_is_the_optimum_of_its_dual_and_its_weights_cancel_the_gradients(seed):
    gradients = np.random.default_rng(seed).normal(0.1, 1.0, size=(60, 3)) * [1.0, 100.0, 1e-3]

    def negative(multipliers):
        inside = 1 + gradients / [1.0, 100.0, 1e-3] @ multipliers
        return -np.log(inside).mean() if inside.min() > 0 else np.inf

    best = minimize(negative, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13})
    profile = guarantees.profile_likelihood(gradients)
    assert profile.value == pytest.approx(-best.fun, rel=1e-6)
    assert profile.weights.sum() == pytest.approx(1)
    assert profile.value == pytest.approx(-np.log(60 * profile.weights).mean())
    np.testing.assert_allclose(profile.weights @ gradients, 0, atol=1e-6)
    assert profile.is_within(profile.value + 1e-9)
    assert not profile.is_within(profile.value - 1e-9)


def test_the_profile_is_infinite_where_no_weights_cancel_the_gradients_and_0_where_equal_ones_do():
    assert guarantees.profile_likelihood([[1.0], [2.0], [0.5]]).value == np.inf
    assert not guarantees.profile_likelihood([[1.0], [2.0]]).is_within(1e9)
    assert guarantees.profile_likelihood([[1.0, 2.0], [-1.0, -2.0]]).value == 0  # and one function twice


@pytest.mark.parametrize("gradients", [[1.0, -1.0], np.empty((0, 2)), [[np.nan], [1.0]]])
def test_gradients_are_a_finite_matrix(gradients):
    with pytest.raises(ValueError, match="gradients must"):
        guarantees.profile_likelihood(gradients)


@given(st.floats(1e-6, 0.4999))
def test_so_many_rounds_of_vadaboost_reach_the_cost_of_adaboost(error):
    """The factors of the cost in a round, (7) and (8) of the paper, squared."""
    of_ada = 4 * error * (1 - error)
    of_vada = (error * (1 - error)) ** 0.5 * (error**0.5 + (1 - error) ** 0.5) ** 2
    ratio = guarantees.vadaboost_rounds_ratio(error)
    assert of_vada**ratio == pytest.approx(of_ada)
    assert 4 / 3 - 1e-6 < ratio < 2
