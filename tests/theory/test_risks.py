"""Risks: one interface, coherent where they say so, and the paper's mean and variance."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from counterpoise.metrics import cvar_loss
from counterpoise.theory.risks import (
    KL,
    ChiSquare,
    CVaR,
    EmpiricalLikelihood,
    Mean,
    MeanVariance,
    Risk,
    RiskRows,
    WorstGroup,
)

WORST = [Mean(), CVaR(0.3), EmpiricalLikelihood(0.1), KL(0.1), ChiSquare(0.1)]
ALL = [*WORST, MeanVariance(0.4)]
LOSSES = arrays(float, st.integers(2, 25), elements=st.floats(0, 9).map(lambda x: round(x, 2)))
each_worst = pytest.mark.parametrize("risk", WORST, ids=repr)
each = pytest.mark.parametrize("risk", ALL, ids=repr)


def weights_of(risk):
    """Return how a risk weighs samples: for that of VadaBoost by their margins."""
    return risk.margin_weights if isinstance(risk, MeanVariance) else risk.subgradient


@each
@given(losses=LOSSES, seed=st.integers(0, 99))
def test_a_risk_gives_a_distribution_that_grows_with_the_loss(risk, losses, seed):
    own = np.random.default_rng(seed).exponential(size=losses.size) + 0.01
    weights = weights_of(risk)(losses, own)
    assert isinstance(risk, Risk)
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1)
    ratio = (weights / own)[np.argsort(losses)]
    assert (np.diff(ratio) >= -1e-9 * ratio.max()).all()


@each
@given(losses=LOSSES)
def test_sample_weights_are_repeats(risk, losses):
    counts = 1 + np.arange(losses.size) % 3
    weights = weights_of(risk)(losses, counts)
    again = weights_of(risk)(np.repeat(losses, counts))
    np.testing.assert_allclose(np.repeat(weights / counts, counts), again, atol=1e-12)
    assert risk.value(losses, counts) == pytest.approx(risk.value(np.repeat(losses, counts)))


@each_worst
@given(losses=LOSSES, seed=st.integers(0, 99), scale=st.floats(0.1, 10), shift=st.floats(-5, 5))
def test_worst_cases_are_coherent(risk, losses, seed, scale, shift):
    """Homogeneous, equivariant to shifts, monotone and subadditive: what Artzner et al. ask of a risk."""
    value = risk.value(losses)
    other = np.random.default_rng(seed).exponential(size=losses.size)
    assert risk.value(scale * losses) == pytest.approx(scale * value, abs=1e-9)
    assert risk.value(losses + shift) == pytest.approx(value + shift, abs=1e-7)
    assert risk.value(losses + other) >= value - 1e-9
    assert risk.value(losses + other) <= value + risk.value(other) + 1e-9
    assert losses.mean() - 1e-12 <= value <= losses.max() + 1e-12


@each
@given(losses=LOSSES, seed=st.integers(0, 99))
def test_the_subgradient_is_a_slope_below_the_value(risk, losses, seed):
    other = np.random.default_rng(seed).exponential(size=losses.size)
    assert risk.value(other) >= risk.value(losses) + risk.subgradient(losses) @ (other - losses) - 1e-9


def test_known_values():
    losses = np.random.default_rng(0).normal(size=400)
    assert Mean().value(losses) == pytest.approx(losses.mean())
    assert CVaR(0.13).value(losses) == pytest.approx(cvar_loss(losses, 0.13))
    assert ChiSquare(0.01).value(losses) == pytest.approx(losses.mean() + math.sqrt(0.02) * losses.std())
    assert EmpiricalLikelihood(1e-6).value(losses) == pytest.approx(ChiSquare(1e-6).value(losses), rel=1e-4)
    assert KL(1e-6).value(losses) == pytest.approx(ChiSquare(1e-6).value(losses), rel=1e-4)


@given(st.integers(0, 999), st.floats(0, 1), st.floats(-2, 2))
def test_mean_variance_is_the_cost_of_vadaboost_and_its_bound(seed, penalty, vote):
    """Cost (3), V of eq. (4), U of eq. (5) and Theorem 3, with n^2 divided out."""
    rng = np.random.default_rng(seed)
    losses, wrong, risk = np.exp(rng.normal(size=12)), rng.random(12) < 0.4, MeanVariance(penalty)
    n, total, squares = 12, losses.sum(), (losses**2).sum()
    assert risk.value(losses) == pytest.approx((total**2 + penalty * (n * squares - total**2)) / n**2)
    scaled = losses / losses.mean()
    moved = scaled * np.exp(np.where(wrong, vote, -vote))
    assert risk.step_cost(losses, wrong, vote) == pytest.approx(risk.value(moved))
    assert risk.step_cost(losses, wrong, vote) <= risk.bound(losses, wrong, vote) * (1 + 1e-12)
    assert risk.step_cost(losses, wrong, 0.0) == pytest.approx(risk.bound(losses, wrong, 0.0))
    assert MeanVariance(1.0).step_cost(losses, wrong, vote) == pytest.approx(
        MeanVariance(1.0).bound(losses, wrong, vote)
    )


@given(LOSSES, st.floats(0, 1))
def test_mean_variance_weights_are_the_slopes_of_the_cost_by_the_margins(losses, penalty):
    risk, losses = MeanVariance(penalty), losses + 0.1
    step = 1e-5
    slopes = [
        (risk.value(losses * np.exp(-step * unit)) - risk.value(losses * np.exp(step * unit))) / step
        for unit in np.eye(losses.size)
    ]
    np.testing.assert_allclose(risk.margin_weights(losses), np.array(slopes) / np.sum(slopes), atol=1e-6)


def bound_group(n_samples):
    """Return the risk of the worst of two groups, the last row being alone in one."""
    codes = np.append(np.zeros(n_samples - 1, dtype=int), 1)
    return WorstGroup(["sex"]).bind(RiskRows(n_samples, 1, lambda _columns: codes))


def test_columns_may_be_listed_in_any_way():
    assert {WorstGroup(["sex", "race"]), WorstGroup(("sex", "race"))} == {WorstGroup(("sex", "race"))}


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: CVaR(0.0), ValueError, r"alpha must lie in \(0, 1\].*got 0"),
        (lambda: EmpiricalLikelihood(-1), ValueError, "radius must lie in \\[0, inf\\].*got -1"),
        (lambda: KL("a"), ValueError, "radius, where it is a word, must be one of 'calibrated'; got 'a'"),
        (lambda: MeanVariance(2.0), ValueError, r"penalty must lie in \[0, 1\].*got 2.0"),
        (lambda: MeanVariance(0.5).value([-1.0, 1.0]), ValueError, "losses must not be negative.*got -1.0"),
        (lambda: MeanVariance(0.5).step_cost([1.0, 2.0], [1], 0.1), ValueError, r"wrong must have shape \(2,\)"),
        (lambda: Mean().value([]), ValueError, "losses must hold at least one sample"),
        (lambda: bound_group(3).value([0.0, 1.0, math.nan]), ValueError, "losses must be finite everywhere; got NaN"),
        (lambda: WorstGroup([1]), ValueError, r"columns must be the name of a column.*got \[1\]"),
    ],
)
def test_bad_input_gets_one_clear_sentence(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("risk", [EmpiricalLikelihood(math.inf), KL(math.inf), ChiSquare(math.inf), CVaR(1e-300)])
def test_an_infinite_ball_holds_the_worst_sample_alone(risk):
    assert risk.value([1.0, 4.0, 2.0]) == 4.0
    np.testing.assert_array_equal(risk.subgradient([1.0, 4.0, 2.0]), [0, 1, 0])


def test_a_large_loss_without_weight_does_not_matter_to_mean_variance():
    losses, weights, risk = [1e300, 1e-30, 3e-30], [0, 1, 1], MeanVariance(0.5)
    np.testing.assert_allclose(risk.margin_weights(losses, weights), [0, *risk.margin_weights([1.0, 3.0])])
    assert risk.value(losses, weights) == pytest.approx(1e-60 * risk.value([1.0, 3.0]))
    assert risk.value([1e200, 1.0]) == math.inf


def test_losses_of_zero_weigh_the_same_in_mean_variance():
    np.testing.assert_allclose(MeanVariance(0.5).margin_weights([0.0, 0.0]), 0.5)
