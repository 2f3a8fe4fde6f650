"""RLP and RQP over given margins: agreement with HiGHS and Clarabel, certificates, degenerate cases, errors."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from counterpoise.solvers import hinge_path, maximize_soft_margin, minimize_cvar, minimize_hinge, soft_margin_path

TIGHT = 1e-7


def random_margins(seed):
    """Return margins and sample weights of many kinds: signs and real numbers, ties, duplicates, constants, units."""
    rng = np.random.default_rng(seed)
    n_samples, n_models = int(rng.integers(1, 120)), int(rng.integers(1, 25))
    shape = (n_samples, n_models)
    kind = rng.integers(4)
    if kind == 0:
        margins = np.where(rng.random(shape) < rng.uniform(0.05, 0.6), -1, 1).astype(np.int8)
    elif kind == 1:
        margins = np.where(rng.random(shape) < rng.beta(0.5, 2, size=(n_samples, 1)), -1, 1)
    elif kind == 2:
        margins = rng.normal(0.3, 1.0, size=shape) * rng.choice([1e-3, 1.0, 50.0])
    else:
        margins = rng.integers(-2, 3, size=shape).astype(np.float32)
    if rng.random() < 0.3:
        margins = margins[:, rng.integers(0, n_models, size=n_models)]
    if rng.random() < 0.3:
        margins = margins[rng.integers(0, n_samples, size=n_samples)]
    if rng.random() < 0.2:
        margins[:, rng.integers(n_models)] = margins.flat[0]
    weight = None
    if rng.random() < 0.4:
        weight = rng.exponential(size=n_samples) * (rng.random(n_samples) < 0.8)
        weight[rng.integers(n_samples)] = 1.0
    return margins, weight


def shares_of(weight, n_samples):
    weight = np.ones(n_samples) if weight is None else weight
    return weight / weight.sum()


def rlp_by_highs(margins, C, shares):
    """Return the optimum of RLP, written out with votes, edge and slacks."""
    n_samples, n_models = margins.shape
    cost = np.concatenate([np.zeros(n_models), [-1.0], C * shares])
    below = sp.hstack([-margins.astype(float), np.ones((n_samples, 1)), -sp.eye_array(n_samples)])
    total = np.concatenate([np.ones(n_models), np.zeros(n_samples + 1)])[None]
    sign = [(0, None)] * n_models + [(None, None)] + [(0, None)] * n_samples
    found = linprog(cost, A_ub=below, b_ub=np.zeros(n_samples), A_eq=total, b_eq=[1.0], bounds=sign, method="highs")
    assert found.status == 0, found.message
    return -found.fun


def rqp_by_clarabel(margins, C, shares):
    """Return the optimum of RQP, written out with votes and slacks."""
    votes, slacks = cp.Variable(margins.shape[1]), cp.Variable(margins.shape[0])
    held = [margins.astype(float) @ votes >= 1 - slacks, votes >= 0, slacks >= 0]
    program = cp.Problem(cp.Minimize(cp.sum_squares(votes) / 2 + C * shares @ slacks), held)
    return program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)


def soft_margin(margins, votes, C, shares):
    """Return the best edge minus C times the mean shortfall, by trying every margin as the edge."""
    reached = margins @ votes
    return max(edge - C * shares @ np.maximum(0, edge - reached) for edge in reached)


def hinge_cost(margins, votes, C, shares):
    return votes @ votes / 2 + C * shares @ np.maximum(0, 1 - margins @ votes)


def assert_certified_margin(found, margins, C, shares):
    """Check both vectors of RLP and recompute both bounds from them."""
    margins = margins.astype(float)
    units = np.abs(margins).max()
    assert found.votes.min() >= 0
    assert found.votes.sum() == pytest.approx(1, abs=1e-12)
    assert found.weights.min() >= 0
    assert found.weights.sum() == pytest.approx(1, abs=1e-9)
    assert (found.weights <= C * shares + 1e-12).all()
    assert found.value == pytest.approx(soft_margin(margins, found.votes, C, shares), abs=1e-9 * units)
    assert found.upper == pytest.approx((found.weights @ margins).max(), abs=1e-12 * units)
    assert found.gap == pytest.approx(found.upper - found.value, abs=1e-15 * units)


def assert_certified_hinge(found, margins, C, shares):
    """Check both vectors of RQP and recompute both bounds from them."""
    margins = margins.astype(float)
    assert found.votes.min() >= 0
    assert found.multipliers.min() >= 0
    assert (found.multipliers <= C * shares).all()
    reply = np.maximum(0, found.multipliers @ margins)
    assert found.value == pytest.approx(hinge_cost(margins, found.votes, C, shares), rel=1e-12)
    assert found.lower == pytest.approx(found.multipliers.sum() - reply @ reply / 2, rel=1e-9)
    assert found.gap == pytest.approx((found.value - found.lower) / found.value, abs=1e-12)


@given(seed=st.integers(0, 100_000), alpha=st.sampled_from([1.0, 0.99, 0.6, 0.3, 0.1, 0.02, 1e-4]))
def test_the_soft_margin_agrees_with_highs(seed, alpha):
    margins, weight = random_margins(seed)
    shares, C = shares_of(weight, len(margins)), 1 / alpha
    units = float(np.abs(margins).max()) or 1.0
    found = maximize_soft_margin(margins, C, sample_weight=weight, tol=TIGHT * units)
    assert_certified_margin(found, margins, C, shares)
    assert found.gap <= 2 * TIGHT * units
    assert found.value == pytest.approx(rlp_by_highs(margins, C, shares), abs=1e-6 * units)


@given(seed=st.integers(0, 100_000), C=st.sampled_from([1e-3, 0.1, 1.0, 10.0, 1e3]))
def test_the_hinge_votes_agree_with_clarabel(seed, C):
    margins, weight = random_margins(seed)
    shares = shares_of(weight, len(margins))
    found = minimize_hinge(margins, C, sample_weight=weight, tol=TIGHT)
    assert_certified_hinge(found, margins, C, shares)
    assert found.gap <= 10 * TIGHT  # a value far below C is a small difference of large numbers
    assert found.value == pytest.approx(rqp_by_clarabel(margins, C, shares), rel=1e-6)


def noisy_margins(n_samples=1500, n_models=80, seed=0):
    rng = np.random.default_rng(seed)
    return np.where(rng.random((n_samples, n_models)) < rng.beta(1, 3, size=(n_samples, 1)), -1, 1).astype(np.int8)


@pytest.mark.slow
def test_the_soft_margin_is_minus_the_least_cvar_of_the_negative_margins():
    margins = noisy_margins()
    for alpha in (0.5, 0.2, 0.05):
        found = maximize_soft_margin(margins, 1 / alpha, tol=1e-5)
        assert found.value == pytest.approx(-minimize_cvar(-margins, alpha, tol=1e-5).value, abs=2e-5)


@pytest.mark.parametrize("tol", [1e-2, 1e-3, 1e-6])
def test_the_tolerance_is_met_along_both_paths_in_the_order_given(tol):
    margins, shares = noisy_margins(), shares_of(None, 1500)
    costs = [10.0, 1.0, 50.0, 2.0]
    for C, found in zip(costs, soft_margin_path(margins, costs, tol=tol), strict=True):
        assert_certified_margin(found, margins, C, shares)
        assert found.gap <= tol
    for C, found in zip(costs, hinge_path(margins, costs, tol=tol), strict=True):
        assert_certified_hinge(found, margins, C, shares)
        assert found.gap <= tol


@pytest.mark.parametrize("solve", [maximize_soft_margin, minimize_hinge])
def test_a_weight_is_a_number_of_repetitions(solve):
    margins = noisy_margins(120, 15)
    times = np.random.default_rng(1).integers(0, 4, size=120)
    weighted = solve(margins, 5.0, sample_weight=times, tol=1e-8)
    repeated = solve(np.repeat(margins, times, axis=0), 5.0, tol=1e-8)
    assert weighted.value == pytest.approx(repeated.value, abs=1e-8)
    np.testing.assert_allclose(weighted.votes, repeated.votes, atol=1e-5)


def test_equal_models_count_once_in_the_margin_and_share_the_hinge_votes():
    margins = noisy_margins(200, 10)
    twice = np.hstack([margins, margins[:, :4]])
    found = maximize_soft_margin(twice, 5.0, tol=1e-6)
    assert found.value == pytest.approx(maximize_soft_margin(margins, 5.0, tol=1e-6).value, abs=2e-6)
    assert not found.votes[10:].any()
    votes = minimize_hinge(twice, 5.0).votes
    np.testing.assert_array_equal(votes[:4], votes[10:])


def test_models_that_do_not_help_get_no_votes():
    margins = np.hstack([noisy_margins(300, 6), -noisy_margins(300, 6)])
    assert not maximize_soft_margin(margins, 2.0).votes[6:].any()
    assert not minimize_hinge(margins, 5.0).votes[6:].any()


def test_where_no_margin_can_be_had_the_votes_that_remain_still_decide():
    """A model and its opposite cancel, which is a corner of the optimal votes; these are central."""
    rng = np.random.default_rng(2)
    better = np.where(rng.random((400, 12)) < 0.35, -1, 1)
    found = maximize_soft_margin(np.hstack([better, -better[:, :1]]), 20.0, tol=1e-3)
    assert found.value == pytest.approx(0, abs=1e-3)
    assert np.mean(better @ found.votes[:12] - better[:, 0] * found.votes[12] > 0) > 0.8


def test_one_model_gets_all_votes_and_one_sample_all_weight():
    found = maximize_soft_margin([[1.0], [-1.0], [0.5]], C=3.0)
    assert found.votes.tolist() == [1.0]
    assert (found.value, found.gap) == (-1.0, 0.0)
    single = maximize_soft_margin([[0.2, 0.7, -1.0]], C=2.0, tol=1e-8)
    np.testing.assert_allclose(single.votes, [0, 1, 0], atol=1e-7)
    assert single.weights.tolist() == [1.0]


def test_c_of_one_takes_the_model_of_the_largest_mean_margin():
    margins = noisy_margins(300, 7)
    found = maximize_soft_margin(margins, C=1)
    assert found.votes.argmax() == margins.mean(axis=0).argmax()
    assert found.value == pytest.approx(margins.mean(axis=0).max())
    assert found.gap == pytest.approx(0, abs=1e-12)


def test_without_a_useful_model_the_hinge_votes_vanish():
    found = minimize_hinge(-np.ones((5, 3)), C=2.0, tol=1e-8)
    np.testing.assert_allclose(found.votes, 0, atol=1e-7)
    assert found.value == pytest.approx(2.0)
    assert minimize_hinge(-np.ones((5, 3)), C=1e12).value == pytest.approx(1e12)


@pytest.mark.parametrize("solve", [maximize_soft_margin, minimize_hinge])
def test_samples_of_next_to_no_weight_count_as_having_none(solve):
    margins, weights = noisy_margins(60, 5), np.ones(60)
    weights[::3] = 0.0
    without = solve(margins, 3.0, sample_weight=weights)
    weights[::3] = 1e-300
    assert solve(margins, 3.0, sample_weight=weights).value == without.value


def test_units_of_the_margins_do_not_matter():
    margins = np.random.default_rng(3).normal(0.4, 1.0, size=(200, 9))
    plain, scaled = (maximize_soft_margin(unit * margins, 4.0, tol=unit * 1e-7) for unit in (1.0, 1e6))
    assert scaled.value == pytest.approx(1e6 * plain.value, rel=1e-5)
    # With margins k times as large, votes k times smaller do the same: the norm counts for 1/k^2.
    plain, scaled = minimize_hinge(margins, 3.0, tol=1e-8), minimize_hinge(1e3 * margins, 3e-6, tol=1e-8)
    assert scaled.value == pytest.approx(1e-6 * plain.value, rel=1e-6)
    np.testing.assert_allclose(1e3 * scaled.votes, plain.votes, atol=1e-4)


def test_the_number_of_iterations_can_be_limited_and_the_bounds_still_hold():
    margins, shares = noisy_margins(), shares_of(None, 1500)
    found = maximize_soft_margin(margins, 5.0, tol=1e-9, max_iter=3)
    assert found.n_iter == 3
    assert found.gap > 1e-9
    assert_certified_margin(found, margins, 5.0, shares)
    found = minimize_hinge(margins, 5.0, tol=1e-9, max_iter=3)
    assert found.n_iter == 3
    assert_certified_hinge(found, margins, 5.0, shares)


def test_the_margins_are_not_changed():
    margins = noisy_margins(50, 5).astype(float)
    before = margins.copy()
    maximize_soft_margin(margins, 4.0)
    minimize_hinge(margins, 4.0)
    assert np.array_equal(margins, before)


BAD = {
    "C of zero": (lambda: minimize_hinge([[1.0]], C=0), "C must be finite and above 0; got 0"),
    "negative C": (lambda: maximize_soft_margin([[1.0]], C=-2.0), "C must be finite and above 0; got -2"),
    "C below 1": (
        lambda: maximize_soft_margin([[1.0]], C=0.5),
        r"C must be at least 1 for the largest soft margin; got 0\.5\. Below 1 there is none",
    ),
    "no C": (lambda: hinge_path([[1.0]], []), r"Cs must be a non-empty one-dimensional array"),
    "NaN": (lambda: minimize_hinge([[np.nan, 1.0]], 1.0), "margins must be finite everywhere; got NaN"),
    "infinity": (lambda: maximize_soft_margin([[np.inf, 1.0]], 2.0), "margins must be finite everywhere"),
    "one dimension": (lambda: minimize_hinge([1.0, 2.0], 1.0), r"margins must have shape \(n_samples, n_models\)"),
    "empty": (lambda: minimize_hinge(np.empty((0, 3)), 1.0), "at least one sample and one model"),
    "zero weights": (lambda: minimize_hinge([[1.0]], 1.0, sample_weight=[0]), "at least one weight above zero"),
    "negative weight": (lambda: minimize_hinge([[1.0]], 1.0, sample_weight=[-1]), "must not be negative"),
    "tol": (lambda: minimize_hinge([[1.0]], 1.0, tol=0), "tol must be finite and above 0"),
    "max_iter": (lambda: minimize_hinge([[1.0]], 1.0, max_iter=0), "max_iter must be at least 1"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_clear_sentence(case):
    call, text = BAD[case]
    with pytest.raises(ValueError, match=text):
        call()


def test_margins_that_are_not_numbers_are_refused():
    with pytest.raises(TypeError, match="margins must hold real numbers"):
        minimize_hinge([["a"]], 1.0)
