"""The capped simplex: against bisection and brute force, at extreme scores, with ties."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from oracles import cvar_by_filling, projection_by_bisection, softmax_by_bisection

from counterpoise.solvers import capped_softmax, project_capped, worst_mean, worst_weights

SCORES = arrays(float, st.integers(1, 40), elements=st.floats(-5, 5).map(lambda x: round(x, 2)))
HUGE = arrays(float, st.integers(1, 30), elements=st.floats(-1e300, 1e300))
MAPS = [worst_weights, project_capped, capped_softmax]


def caps_for(scores, slack, seed):
    """Return caps that sum to at least 1, some of them very uneven."""
    caps = np.random.default_rng(seed).exponential(size=scores.size) + 1e-3
    return caps / caps.sum() * (1 + slack)


def assert_in_capped_simplex(weights, caps):
    assert np.isfinite(weights).all()
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1, abs=1e-9)
    assert (weights <= caps + 1e-12).all()


@pytest.mark.parametrize("weigh", MAPS)
@settings(max_examples=120)
@given(scores=HUGE, slack=st.floats(0, 5), seed=st.integers(0, 99))
def test_weights_are_in_the_capped_simplex_at_any_scale(weigh, scores, slack, seed):
    caps = caps_for(scores, slack, seed)
    assert_in_capped_simplex(weigh(scores, caps), caps)


@pytest.mark.parametrize("weigh", MAPS)
@given(scores=SCORES, slack=st.floats(0, 5))
def test_higher_scores_weigh_no_less_and_ties_weigh_the_same(weigh, scores, slack):
    weights = weigh(scores, (1 + slack) / scores.size)
    order = np.argsort(scores)
    assert (np.diff(weights[order]) >= -1e-12).all()
    for score in np.unique(scores):
        assert np.ptp(weights[scores == score]) <= 1e-12


@pytest.mark.parametrize("weigh", MAPS)
def test_scores_of_1e300_are_told_apart(weigh):
    scores = np.array([1e300, np.nextafter(1e300, 2e300), -1e300, 0.0])
    np.testing.assert_allclose(weigh(scores, 0.5), [0.5, 0.5, 0, 0], atol=1e-12)
    np.testing.assert_allclose(weigh(scores, 0.6), [0.4, 0.6, 0, 0], atol=1e-12)


def test_softmax_of_groups_of_scores_far_apart_is_exact_in_each():
    """The cases that Hypothesis found where scores were measured from one place only."""
    caps = caps_for(np.zeros(4), 0.0, 23)
    np.testing.assert_allclose(capped_softmax([-4.50359963e15, 0.0, 0.0, 2.0], caps), caps, atol=1e-12)
    np.testing.assert_allclose(capped_softmax([1e300, 1e300, 1e300, 0.0, 0.0], 0.3), [0.3, 0.3, 0.3, 0.05, 0.05])
    np.testing.assert_allclose(capped_softmax([1e16, 1e16, 0.0], 0.6), [0.5, 0.5, 0.0], atol=1e-12)


@pytest.mark.parametrize("weigh", MAPS)
def test_caps_that_sum_to_one_leave_no_choice(weigh):
    caps = np.array([0.5, 0.3, 0.2])
    np.testing.assert_allclose(weigh([1.0, 2.0, 3.0], caps), caps, atol=1e-12)


@given(scores=SCORES, slack=st.floats(0.01, 5), seed=st.integers(0, 99))
def test_projection_agrees_with_bisection(scores, slack, seed):
    caps = caps_for(scores, slack, seed)
    np.testing.assert_allclose(project_capped(scores, caps), projection_by_bisection(scores, caps), atol=1e-10)


@given(scores=SCORES, slack=st.floats(0.01, 5), seed=st.integers(0, 99), prior_seed=st.integers(0, 99))
def test_softmax_agrees_with_bisection(scores, slack, seed, prior_seed):
    caps, prior = caps_for(scores, slack, seed), caps_for(scores, 0, prior_seed)
    expected = softmax_by_bisection(scores, caps, prior)
    np.testing.assert_allclose(capped_softmax(scores, caps, prior=prior), expected, atol=1e-10)


@given(scores=SCORES, slack=st.floats(0, 5), seed=st.integers(0, 99))
def test_worst_mean_is_what_the_worst_weights_attain_and_no_others_exceed(scores, slack, seed):
    caps = caps_for(scores, slack, seed)
    worst = worst_mean(scores, caps)
    assert worst_weights(scores, caps) @ scores == pytest.approx(worst, abs=1e-9)
    assert worst == pytest.approx(cvar_by_filling(scores, 1 / caps.sum(), caps), abs=1e-9)
    for other in (project_capped(scores, caps), capped_softmax(scores, caps)):
        assert other @ scores <= worst + 1e-9


@pytest.mark.parametrize("weigh", MAPS)
@pytest.mark.parametrize("dtype", [np.float64, np.float16])
@given(scores=SCORES)
def test_a_cap_of_infinity_is_no_cap(weigh, dtype, scores):
    """A weight is at most 1 anyway; beside finite caps too."""
    np.testing.assert_array_equal(weigh(scores, np.inf), weigh(scores, 1.0))
    caps = np.where(np.arange(scores.size) % 2 == 0, np.inf, 0.25).astype(dtype)
    weights = weigh(scores, caps)
    assert_in_capped_simplex(weights, caps)
    np.testing.assert_array_equal(weights, weigh(scores, np.minimum(caps, 1.0)))
    assert worst_mean(scores, np.inf) == scores.max()


def test_projection_leaves_a_point_of_the_set_alone():
    inside = np.array([0.2, 0.5, 0.3, 0.0])
    np.testing.assert_allclose(project_capped(inside, 0.5), inside, atol=1e-15)


BAD = {
    "caps too small": (lambda: project_capped([1.0, 2.0], 0.3), "caps must sum to at least 1.*they sum to 0.6"),
    "unknown caps": (lambda: worst_mean([1.0, 2.0], np.nan), "caps must be finite everywhere; got NaN"),
    "negative caps": (lambda: worst_mean([1.0, 2.0], [2.0, -0.5]), "caps must not be negative; got -0.5"),
    "NaN": (lambda: capped_softmax([1.0, np.nan], 1.0), "scores must be finite everywhere; got NaN"),
    "empty": (lambda: worst_weights([], 1.0), "losses must hold at least one entry; got none"),
    "too few caps": (
        lambda: project_capped([1.0, 2.0, 3.0], [1.0, 1.0]),
        r"caps must have shape \(3,\), one cap for each sample; got shape \(2,\)",
    ),
    "negative prior": (
        lambda: capped_softmax([1.0, 2.0], 1.0, prior=[-1.0, 1.0]),
        "prior must not be negative; got -1.0",
    ),
    "prior where the caps are small": (
        lambda: capped_softmax([1.0, 2.0], [1.0, 0.5], prior=[0.0, 1.0]),
        "caps must sum to at least 1 over the samples whose prior is above zero; they sum to 0.5",
    ),
    "a matrix": (lambda: project_capped(np.eye(2), 1.0), r"scores must have shape \(4,\).*got shape \(2, 2\)"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_clear_sentence(case):
    call, text = BAD[case]
    with pytest.raises(ValueError, match=text):
        call()
