"""Bounds on shares and means fail as seldom as they promise, and are as narrow as exact ones can be."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, multinomial

from counterpoise.theory.confidence import (
    ScaledShare,
    binomial_bounds,
    rows_needed,
    upper_bounded_mean,
    upper_mean,
    upper_share,
    upper_sum_of_two,
    weighted_mean_bounds,
)

RISK = 0.1


@given(st.integers(1, 5000), st.floats(0, 1), st.sampled_from([0.5, 0.9, 0.95, 0.999]))
def test_binomial_bounds_are_those_of_clopper_and_pearson(n_trials, share, confidence):
    successes = round(share * n_trials)
    found = binomial_bounds(successes, n_trials, confidence=confidence)
    at_most = binomtest(successes, n_trials, alternative="less").proportion_ci(confidence, method="exact").high
    at_least = binomtest(successes, n_trials, alternative="greater").proportion_ci(confidence, method="exact").low
    np.testing.assert_allclose(found, (at_least, at_most), atol=1e-9)


@pytest.mark.parametrize("share", [0.001, 0.05, 0.3, 0.5, 0.93])
@pytest.mark.parametrize("n_trials", [1, 7, 60])
def test_an_exact_bound_fails_at_most_as_often_as_promised(n_trials, share):
    counts = np.arange(n_trials + 1)
    fails = np.array([upper_share(count, n_trials, RISK) < share for count in counts])
    assert binom.pmf(counts, n_trials, share)[fails].sum() <= RISK + 1e-12


@given(st.floats(1e-4, 0.9), st.floats(0.5, 0.9999))
def test_so_many_rows_without_failure_are_enough_and_one_fewer_is_not(share, confidence):
    needed = rows_needed(share, confidence=confidence)
    assert upper_share(0, needed, 1 - confidence) <= share * (1 + 1e-9)
    assert needed == 1 or upper_share(0, needed - 1, 1 - confidence) > share * (1 - 1e-9)


@pytest.mark.parametrize("values", [(-1.0, 0.0, 1.0), (-0.3, 0.0, 2.0), (0.0, 1.0, 5.0), (-2.0, -1.0, 0.5), (1.0, 2.0)])
def test_a_mean_of_few_values_is_bounded_as_often_as_promised(values):
    """Exactly, by all outcomes of twelve rows and forty populations."""
    points, n_rows = np.array(values), 12
    outcomes = np.array([one for one in product(range(n_rows + 1), repeat=len(points)) if sum(one) == n_rows])
    bounds = np.array([upper_mean(points, outcome.astype(float), RISK) for outcome in outcomes])
    for probabilities in np.random.default_rng(0).dirichlet(np.full(len(points), 0.7), size=40):
        fails = bounds < points @ probabilities - 1e-12
        assert multinomial.pmf(outcomes, n_rows, probabilities)[fails].sum() <= RISK + 1e-9
    assert bounds.max() <= points.max() + 1e-12


def test_a_mean_of_one_value_is_known():
    assert upper_mean(np.array([0.3, 0.3]), np.array([4.0, 5.0]), RISK) == pytest.approx(0.3)


@pytest.mark.slow
@pytest.mark.parametrize("factors", [(1.0, 1.0), (1.0, 0.3), (0.2, 2.0)])
def test_a_sum_of_two_shares_is_bounded_as_often_as_promised(factors):
    """Exactly, by all outcomes of two small samples; and never beyond what shares can be."""
    sizes = 11, 8
    bounds = np.array(
        [
            [
                upper_sum_of_two(ScaledShare(one, sizes[0], factors[0]), ScaledShare(two, sizes[1], factors[1]), RISK)
                for two in range(9)
            ]
            for one in range(12)
        ]
    )
    assert bounds.max() <= sum(factors)
    worst = 0.0
    for first, second in product(np.linspace(0, 1, 15), repeat=2):
        chances = np.outer(binom.pmf(np.arange(12), 11, first), binom.pmf(np.arange(9), 8, second))
        worst = max(worst, chances[bounds < factors[0] * first + factors[1] * second - 1e-12].sum())
    assert RISK / 4 < worst <= RISK


def test_a_sum_of_two_shares_is_bounded_closer_than_by_two_bounds():
    one, other = ScaledShare(600, 2000, 0.8), ScaledShare(150, 700, 1.0)
    seen = sum(step.factor * step.hits / step.trials for step in (one, other))
    apart = sum(step.factor * upper_share(step.hits, step.trials, 0.025) for step in (one, other))
    spread = math.sqrt(
        sum(s.factor**2 * (s.hits / s.trials) * (1 - s.hits / s.trials) / s.trials for s in (one, other))
    )
    together = upper_sum_of_two(one, other, 0.05)
    assert 1.645 < (together - seen) / spread < 1.9
    assert together - seen < 0.75 * (apart - seen)


def test_a_sum_of_two_shares_is_bounded_on_large_samples():
    found = upper_sum_of_two(ScaledShare(200_000, 10**6, 1.0), ScaledShare(40_000, 10**5, 0.8), 0.05)
    assert 0.52 < found < 0.524


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: binomial_bounds(3, 2, confidence=0.9), "successes must lie between 0 and the 2 trials; got 3"),
        (lambda: binomial_bounds(2.5, 9, confidence=0.9), "successes must be a whole number; got 2.5"),
        (lambda: weighted_mean_bounds([], confidence=0.9), "values must hold at least one row; got none"),
        (lambda: weighted_mean_bounds(0.5, confidence=0.9), r"values must have shape \(1,\), one for each row"),
        (lambda: binomial_bounds(0, 0, confidence=0.9), "n_trials must be at least 1"),
        (
            lambda: binomial_bounds(0, 1, confidence=1.0),
            r"confidence must lie in \(0, 1\), both ends excluded; got 1.0",
        ),
        (lambda: rows_needed(0.0, confidence=0.9), r"share must lie in \(0, 1\)"),
        (lambda: weighted_mean_bounds([0, 2], confidence=0.9), r"values must lie in the span \(0.0, 1.0\)"),
        (
            lambda: weighted_mean_bounds([0, 1], [1, 2], confidence=0.9),
            "Pass largest_weight, because the weights differ",
        ),
        (
            lambda: weighted_mean_bounds([0, 1], [1, 2], confidence=0.9, largest_weight=1.5),
            "largest_weight must be at least as large as every weight .* got 1.5, but row 1 weighs 2",
        ),
        (lambda: weighted_mean_bounds([0, 1], confidence=0.9, largest_weight=2), "got 2 and no sample_weight"),
    ],
)
def test_bad_input_gets_one_clear_sentence(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_successes_that_are_no_number_are_refused():
    with pytest.raises(TypeError, match=r"successes must be a whole number.*got '3'"):
        binomial_bounds("3", 9, confidence=0.9)


@given(st.integers(1, 400), st.floats(0, 1), st.sampled_from([0.01, 0.025, 0.2]))
def test_a_mean_of_chances_is_bounded_as_the_next_whole_number_of_successes_at_less_risk(n_rows, mean, risk):
    """Bentkus: at the risk over e. Where the sum of chances is whole but for rounding, it is that number."""
    bound = upper_bounded_mean(mean, n_rows, risk)
    assert bound == pytest.approx(upper_share(math.ceil(mean * n_rows - 1e-12), n_rows, risk / math.e))
    assert bound >= mean
    whole = round(mean * n_rows)
    assert upper_bounded_mean(whole / n_rows, n_rows, risk) == upper_share(whole, n_rows, risk / math.e)
