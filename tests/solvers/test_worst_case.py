"""Worst weights in a ball: against a conic solver, on the ball's edge, at any scale."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from oracles import cvar_by_filling, divergence_of, worst_weights_by_cvxpy
from tiers import problems

from counterpoise.solvers import worst_case_weights

DIVERGENCES = ["empirical-likelihood", "kl", "chi-square", "cvar"]
TIED = arrays(float, st.integers(2, 30), elements=st.floats(-5, 5).map(lambda x: round(x, 1)))
HUGE = arrays(float, st.integers(2, 30), elements=st.floats(-1.7e308, 1.7e308))
RADII = st.floats(-12, 1.5).map(lambda power: 10.0**power)
each_divergence = pytest.mark.parametrize("divergence", DIVERGENCES)


def base_of(losses, seed):
    """Return equal weights for even seeds, else uneven ones, some of them 0."""
    if seed % 2 == 0:
        return np.full(losses.size, 1 / losses.size)
    rng = np.random.default_rng(seed)
    base = rng.exponential(size=losses.size) ** 2 * (rng.random(losses.size) < 0.8)
    base[rng.integers(losses.size)] = 1.0
    return base / base.sum()


def cap_of(losses, base, divergence):
    """Return the radius from which on all weight may lie on the largest loss."""
    top = base[losses == losses[base > 0].max()].sum()
    caps = {"empirical-likelihood": np.inf, "kl": -np.log(top), "chi-square": (1 / top - 1) / 2, "cvar": -np.log(top)}
    return caps[divergence]


def assert_distribution(weights):
    assert np.isfinite(weights).all()
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1, abs=1e-12)


@each_divergence
@pytest.mark.parametrize("seed", range(6))
def test_agrees_with_a_conic_solver(divergence, seed):
    rng = np.random.default_rng(seed)
    losses = rng.normal(size=25) if seed % 3 else rng.exponential(size=25)
    base = np.full(25, 1 / 25) if seed % 2 else rng.dirichlet(np.full(25, 3.0))
    radius = 10.0 ** rng.uniform(-2.5, 0.3)
    weights = worst_case_weights(losses, radius, divergence=divergence, sample_weight=base)
    np.testing.assert_allclose(weights, worst_weights_by_cvxpy(losses, radius, base, divergence), atol=1e-6)


@each_divergence
@given(losses=TIED, radius=RADII, seed=st.integers(0, 99))
def test_the_constraint_is_active_until_everything_lies_on_the_largest_loss(divergence, losses, radius, seed):
    base = base_of(losses, seed)
    weights = worst_case_weights(losses, radius, divergence=divergence, sample_weight=base)
    assert_distribution(weights)
    held = losses[base > 0]
    if np.ptp(held) == 0:
        np.testing.assert_allclose(weights, base, atol=1e-15)
    elif radius >= cap_of(losses, base, divergence):
        np.testing.assert_allclose(weights[(losses < held.max()) | (base == 0)], 0.0)
    elif weights[base > 0].min() > 1e-300 or divergence != "empirical-likelihood":  # the rest is below all floats
        assert divergence_of(weights, base, divergence) == pytest.approx(radius, abs=1e-10)


@each_divergence
@given(losses=HUGE, radius=RADII, seed=st.integers(0, 99))
def test_losses_of_any_size_give_a_distribution_that_follows_their_order(divergence, losses, radius, seed):
    base = base_of(losses, seed)
    weights = worst_case_weights(losses, radius, divergence=divergence, sample_weight=base)
    assert_distribution(weights)
    assert not weights[base == 0].any()
    order = np.argsort(losses[base > 0])
    ratio = (weights[base > 0] / base[base > 0])[order]
    assert (np.diff(ratio) >= -1e-9 * ratio.max()).all()


@each_divergence
@given(losses=TIED, radius=RADII, scale=st.floats(-12, 12), shift=st.floats(-10, 10))
def test_shifting_and_scaling_the_losses_changes_nothing(divergence, losses, radius, scale, shift):
    weights = worst_case_weights(losses, radius, divergence=divergence)
    moved = worst_case_weights(2.0 ** round(scale) * losses, radius, divergence=divergence)
    np.testing.assert_allclose(moved, weights, atol=1e-13)
    moved = worst_case_weights(losses + round(shift), radius, divergence=divergence)
    if np.unique(losses + round(shift)).size == np.unique(losses).size:
        assert losses @ moved == pytest.approx(losses @ weights, abs=1e-6)


@each_divergence
@given(losses=TIED, radius=RADII, factor=st.floats(1, 100), seed=st.integers(0, 99))
def test_the_worst_mean_rises_with_the_radius(divergence, losses, radius, factor, seed):
    base = base_of(losses, seed)
    near, far = (
        worst_case_weights(losses, r, divergence=divergence, sample_weight=base) @ losses
        for r in (radius, factor * radius)
    )
    assert base @ losses - 1e-12 <= near <= far + 1e-12
    assert far <= losses[base > 0].max() + 1e-12


@each_divergence
def test_ties_share_equally_and_repeating_a_sample_is_doubling_its_weight(divergence):
    losses = np.array([1.0, 3.0, 3.0, 0.5, 1.0])
    weights = worst_case_weights(losses, 0.3, divergence=divergence)
    assert weights[1] == pytest.approx(weights[2], rel=1e-15)
    assert weights[0] == pytest.approx(weights[4], rel=1e-15)
    merged = worst_case_weights([1.0, 3.0, 0.5], 0.3, divergence=divergence, sample_weight=[2, 2, 1])
    np.testing.assert_allclose(merged, [2 * weights[0], 2 * weights[1], weights[3]], rtol=1e-12)


@each_divergence
def test_losses_that_must_not_be_written_are_read(divergence):
    """As those of a column of a data frame."""
    losses = np.array([1.0, 3.0, 0.5])
    expected = worst_case_weights(losses, 0.3, divergence=divergence)
    losses.flags.writeable = False
    np.testing.assert_array_equal(worst_case_weights(losses, 0.3, divergence=divergence), expected)


@pytest.mark.parametrize("divergence", DIVERGENCES[:3])
@pytest.mark.parametrize("radius", [1e-3, 0.5, 30.0])
def test_the_largest_loss_may_have_next_to_no_weight(divergence, radius):
    losses = np.array([0.2, 1.0, 0.1, 0.0, 0.3])
    base = np.array([0.5, 1e-21, 1e-12, 0.3, 0.2])
    weights = worst_case_weights(losses, radius, divergence=divergence, sample_weight=base)
    assert_distribution(weights)
    assert divergence_of(weights, base / base.sum(), divergence) == pytest.approx(radius, rel=1e-8)


@each_divergence
@pytest.mark.parametrize(
    ("losses", "radius", "expected"),
    [
        ([7.0, 7.0, 7.0, 7.0], 5.0, [0.25] * 4),
        ([1.0, 2.0, 5.0, 5.0], 0.0, [0.25] * 4),
        ([1.0, 2.0, 5.0, 5.0], np.inf, [0, 0, 0.5, 0.5]),
        ([1.0, 2.0, 5.0, 5.0], 1e6, [0, 0, 0.5, 0.5]),
        ([-1e300, 1e300], 1e5, [0.0, 1.0]),
        ([5e-324, 0.0], 1e5, [1.0, 0.0]),
        ([3.0], 0.5, [1.0]),
    ],
)
def test_the_ends_are_exact(divergence, losses, radius, expected):
    np.testing.assert_allclose(worst_case_weights(losses, radius, divergence=divergence), expected, atol=1e-15)


@each_divergence
def test_radii_below_rounding_give_the_samples_own_weights(divergence):
    losses = np.random.default_rng(0).normal(size=50)
    for radius in (1e-300, 1e-40, 1e-25):
        np.testing.assert_allclose(worst_case_weights(losses, radius, divergence=divergence), 0.02, rtol=1e-10)


@given(losses=TIED, alpha=st.floats(0.02, 1))
def test_cvar_is_the_mean_of_the_worst_fraction(losses, alpha):
    weights = worst_case_weights(losses, -np.log(alpha), divergence="cvar")
    assert weights @ losses == pytest.approx(cvar_by_filling(losses, alpha), abs=1e-9)


@pytest.mark.parametrize("radius", [0.01, 0.1, 1.0])
def test_a_million_losses_with_a_long_tail_stay_on_the_edge(radius):
    losses = np.exp(3 * np.random.default_rng(1).normal(size=1_000_000))
    base = np.full(losses.size, 1e-6)
    for divergence in DIVERGENCES[:3]:
        weights = worst_case_weights(losses, radius, divergence=divergence)
        assert divergence_of(weights, base, divergence) == pytest.approx(radius, abs=1e-10)


def test_a_single_low_loss_among_ties_may_lose_nearly_all_its_weight():
    losses = np.ones(100_000)
    losses[0] = 0.0
    weights = worst_case_weights(losses, 0.005)
    assert 0 < weights[0] < 1e-200
    assert divergence_of(weights, np.full(100_000, 1e-5), "empirical-likelihood") == pytest.approx(0.005, abs=1e-10)


@given(arrays(float, st.integers(2, 40), elements=st.floats(-4, 4).map(lambda x: round(x, 2))))
def test_corollary_2_recovers_adaboosts_weights(margins):
    """With losses -exp(y F) and the radius log mean exp(-y F) + mean(y F), eta is 0."""
    radius = np.log(np.mean(np.exp(-margins))) + np.mean(margins)
    weights = worst_case_weights(-np.exp(margins), max(radius, 0.0))
    expected = np.exp(-margins) / np.exp(-margins).sum()
    np.testing.assert_allclose(weights, expected, atol=1e-10 if radius > 1e-9 else 1e-5)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: worst_case_weights([1.0, 2.0], -0.1), ValueError, "radius must lie in \\[0, inf\\].*got -0.1"),
        (lambda: worst_case_weights([1.0, 2.0], np.nan), ValueError, "radius must lie in \\[0, inf\\].*got nan"),
        (lambda: worst_case_weights([1.0, 2.0], "wide"), TypeError, "radius must be a number.*got 'wide'"),
        (lambda: worst_case_weights([1.0, 2.0], 1, divergence="js"), ValueError, "divergence must be one of.*got 'js'"),
        (lambda: worst_case_weights([1.0, np.nan], 1.0), ValueError, "losses must be finite everywhere; got NaN"),
        (lambda: worst_case_weights([[1.0]], 1.0), ValueError, r"losses must have shape \(n_samples,\)"),
        (lambda: worst_case_weights([1.0, 2.0], 1.0, sample_weight=[1.0]), ValueError, r"shape \(2,\)"),
    ],
)
def test_bad_input_gets_one_clear_sentence(call, error, text):
    with pytest.raises(error, match=text):
        call()


@each_divergence
@pytest.mark.parametrize("seed", problems(4, 16))
def test_smoothed_weights_agree_with_a_conic_solver(divergence, seed):
    rng = np.random.default_rng(seed)
    losses = rng.normal(size=25) * 10.0 ** rng.uniform(-3, 3)
    base = np.full(25, 1 / 25) if seed % 2 else rng.dirichlet(np.full(25, 3.0))
    radius, span = 10.0 ** rng.uniform(-2, 0.3), np.ptp(losses)
    smoothing = span * 10.0 ** rng.uniform(-2, 0.5)
    options = {"divergence": divergence, "sample_weight": base}
    weights = worst_case_weights(losses, radius, smoothing=smoothing, **options)
    expected = worst_weights_by_cvxpy(losses / span, radius, base, divergence, smoothing / span)
    np.testing.assert_allclose(weights, expected, atol=2e-5)
    loss = worst_case_weights(losses, radius, **options) @ losses - weights @ losses
    assert -1e-9 * span <= loss <= smoothing * np.log(1 / base.min())


@each_divergence
def test_smoothed_weights_move_little_where_the_worst_ones_jump(divergence):
    """At a tie of all losses: a change of one loss by a hair."""
    losses = np.zeros(10)
    losses[0] = 1e-9
    assert np.abs(worst_case_weights(losses, 0.5, divergence=divergence) - 0.1).max() > 0.03
    smoothed = worst_case_weights(losses, 0.5, divergence=divergence, smoothing=1e-3)
    np.testing.assert_allclose(smoothed, 0.1, atol=1e-6)


@pytest.mark.parametrize("smoothing", [-1.0, np.nan, np.inf])
def test_smoothing_is_a_number_of_at_least_0(smoothing):
    with pytest.raises(ValueError, match="smoothing must be"):
        worst_case_weights([0.0, 1.0], 0.5, smoothing=smoothing)
