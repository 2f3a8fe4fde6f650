"""The schedules and bounds of the 2021 paper agree with each other and with its text."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoise import guarantees

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


@given(ALPHAS, st.floats(0.01, 1))
def test_theorem_4_schedules_are_consistent(alpha, delta):
    n_rounds = guarantees.regularized_lpboost_rounds(alpha, delta)
    assert n_rounds >= 32 / delta**2 * math.log(1 / alpha) - 1e-6
    assert guarantees.regularized_lpboost_delta(alpha, n_rounds) <= delta * (1 + 1e-9)
    assert guarantees.regularized_lpboost_beta(alpha, delta) >= max(2 / delta * math.log(1 / alpha), 0.5) - 1e-9


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: guarantees.hedge_eta(0.5, 10), "n_samples must be at least 1; got 0.5"),
        (lambda: guarantees.hedge_eta(10, 0), "n_rounds must be at least 1; got 0"),
        (lambda: guarantees.hedge_rounds(10, 0), "delta must be finite and above 0; got 0"),
        (lambda: guarantees.regularized_lpboost_beta(2, 0.1), r"alpha must lie in \(0, 1\].*got 2"),
    ],
)
def test_bad_input_gets_one_clear_sentence(call, text):
    with pytest.raises(ValueError, match=text):
        call()
