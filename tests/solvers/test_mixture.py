"""The mixture problem: agreement with HiGHS, certificates, constraints, errors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import least_cvar, random_problem

from counterpoise.metrics import cvar_loss
from counterpoise.solvers import InfeasibleRows, Progress, bounds_path, cvar_path, minimize_cvar, solve_weights_lp
from counterpoise.solvers.bundle import LevelBundle, SolveLimits
from counterpoise.solvers.linear_program import CuttingPlanes
from counterpoise.solvers.tail import TailOracle
from tests.tiers import some_fast

SEEDS_A_BATCH = 25


def assert_certified(found, problem, tol):
    """Check both vectors and recompute both bounds from them."""
    losses = problem.losses.astype(float)
    assert found.mixture.min() >= 0
    assert found.mixture.sum() == pytest.approx(1, abs=1e-12)
    assert found.weights.min() >= 0
    assert found.weights.sum() == pytest.approx(1, abs=1e-9)
    assert (found.weights <= problem.caps + 1e-9).all()
    assert found.multipliers.min(initial=0) >= 0
    slope, offset = found.weights @ losses, 0.0
    if problem.rows is not None:
        assert (problem.rows @ found.mixture <= problem.bounds + 1e-9).all()
        slope = slope + found.multipliers @ problem.rows
        offset = found.multipliers @ problem.bounds
    assert found.lower == pytest.approx(slope.min() - offset, abs=1e-9)
    recomputed = cvar_loss(losses, problem.alpha, problem.sample_weight, mixture=found.mixture)
    assert found.value == pytest.approx(recomputed, abs=1e-9)
    assert found.lower <= found.value + 1e-9
    assert found.gap <= tol + 1e-9


@pytest.mark.parametrize("batch", some_fast(range(4)))
def test_values_agree_with_highs_on_random_problems(batch):
    """100 problems: ties, duplicates, constants, real losses, weights, rows; every certificate is checked."""
    for seed in range(batch * SEEDS_A_BATCH, (batch + 1) * SEEDS_A_BATCH):
        problem = random_problem(seed)
        optimum = least_cvar(problem)
        for method in ("bundle", "highs"):
            found = minimize_cvar(problem.losses, problem.alpha, tol=1e-5, method=method, **problem.constraints)
            assert_certified(found, problem, tol=1e-5)
            assert optimum - 1e-6 <= found.value <= optimum + 1e-5 + 1e-6, (seed, method)
        if seed % 5 == 0:
            found = solve_weights_lp(problem.losses, problem.alpha, **problem.constraints)
            assert_certified(found, problem, tol=1e-7)
            assert found.value == pytest.approx(optimum, abs=1e-7)


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_zero_one_losses_of_any_type_and_layout_give_the_same_answer(dtype, order):
    losses = np.random.default_rng(0).random((3000, 21)) < 0.2
    expected = minimize_cvar(losses, 0.1)
    found = minimize_cvar(np.asarray(losses, dtype=dtype, order=order), 0.1)
    np.testing.assert_array_equal(found.mixture, expected.mixture)


def test_a_strided_view_and_a_read_only_array_are_accepted():
    losses = np.random.default_rng(1).random((6000, 12))
    losses.flags.writeable = False
    view = losses[::2, ::3]
    assert minimize_cvar(view, 0.2).value == pytest.approx(minimize_cvar(view.copy(), 0.2).value, abs=1e-12)


@pytest.mark.parametrize("alpha", [1e-300, 1e-9])
def test_a_tail_of_less_than_a_sample_is_the_worst_sample(alpha):
    losses = np.random.default_rng(17).random((400, 12)).round(1)
    found = minimize_cvar(losses, alpha, method="bundle")
    assert found.value == pytest.approx((losses @ found.mixture).max(), abs=1e-9)
    assert found.gap <= 1e-4


def test_many_rows_in_several_threads_agree_with_highs():
    losses = np.random.default_rng(2).random((60_000, 6)) < np.linspace(0.1, 0.3, 6)
    found = minimize_cvar(losses, 0.3, tol=1e-6)
    assert found.value == pytest.approx(solve_weights_lp(losses, 0.3).value, abs=2e-6)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6, 1e300])
@pytest.mark.parametrize("shift", [0.0, -3.0])
def test_units_of_the_losses_do_not_matter(scale, shift):
    losses = np.random.default_rng(3).normal(size=(900, 8))
    plain = minimize_cvar(losses, 0.2, tol=1e-4)
    found = minimize_cvar((losses + shift) * scale, 0.2, tol=1e-4 * scale)
    assert found.gap <= 1.0001e-4 * scale
    assert found.value / scale == pytest.approx(plain.value + shift, abs=2e-4)


def test_one_heavy_loss_does_not_hide_the_others():
    losses = np.random.default_rng(4).random((5000, 5))
    losses[0] = 1e4
    assert minimize_cvar(losses, 0.5, tol=1e-3, method="bundle").gap <= 1e-3


@given(st.integers(0, 10_000), st.floats(0.01, 1.0))
def test_doubling_a_weight_is_repeating_the_sample(seed, alpha):
    rng = np.random.default_rng(seed)
    losses = rng.random((25, 4)).round(1)
    weight = rng.integers(0, 4, size=25)
    weight[0] = 1
    weighted = minimize_cvar(losses, alpha, sample_weight=weight, tol=1e-7, method="bundle")
    repeated = minimize_cvar(np.repeat(losses, weight, axis=0), alpha, tol=1e-7, method="bundle")
    assert weighted.value == pytest.approx(repeated.value, abs=3e-7)


@given(st.integers(0, 10_000))
def test_the_mixture_is_no_worse_than_any_model_or_the_average(seed):
    rng = np.random.default_rng(seed)
    losses = rng.random((80, 7)) < rng.uniform(0.1, 0.5)
    found = minimize_cvar(losses, 0.15)
    rivals = np.vstack([np.eye(7), np.full((1, 7), 1 / 7)])
    assert all(found.lower <= cvar_loss(losses, 0.15, mixture=rival) + 1e-12 for rival in rivals)


def test_row_order_does_not_matter():
    rng = np.random.default_rng(5)
    losses = rng.random((600, 9)) < 0.3
    shuffled = losses[rng.permutation(600)]
    np.testing.assert_allclose(minimize_cvar(losses, 0.1).mixture, minimize_cvar(shuffled, 0.1).mixture, atol=1e-9)


def test_a_gap_of_a_millionth_is_reached_at_scale():
    rng = np.random.default_rng(6)
    losses = rng.random((20_000, 30)) < rng.beta(0.5, 2, size=(20_000, 1))
    found = minimize_cvar(losses, 0.05, tol=1e-6)
    assert found.gap <= 1e-6
    assert found.value == pytest.approx(solve_weights_lp(losses, 0.05).value, abs=2e-6)


def test_a_start_at_the_optimum_saves_iterations():
    rng = np.random.default_rng(7)
    losses = rng.random((30_000, 40)) < rng.beta(0.5, 2, size=(30_000, 1))
    cold = minimize_cvar(losses, 0.1)
    warm = minimize_cvar(losses, 0.1, start=cold.mixture)
    assert warm.n_iter <= cold.n_iter
    assert warm.gap <= 1e-4


def test_the_path_agrees_with_separate_solves_in_the_order_asked():
    rng = np.random.default_rng(8)
    losses = rng.random((1000, 12)) < rng.beta(0.5, 2, size=(1000, 1))
    alphas = [0.5, 0.01, 1.0, 0.05]
    path = cvar_path(losses, alphas)
    for alpha, found in zip(alphas, path, strict=True):
        assert found.gap <= 1e-4
        assert found.value == pytest.approx(minimize_cvar(losses, alpha).value, abs=1e-4)
        assert found.weights.max() <= 1 / (alpha * 1000) + 1e-12


@pytest.mark.parametrize("shape", [(30, 5), (30, 210)])
def test_small_and_wide_problems_agree_with_the_bundle_method(shape):
    losses = np.random.default_rng(16).random(shape) < 0.3
    for alpha, found in zip((0.1, 0.6), cvar_path(losses, [0.1, 0.6]), strict=True):
        assert found.value == pytest.approx(minimize_cvar(losses, alpha, method="bundle").value, abs=1e-4)
        assert found.gap <= 1e-9


def test_the_path_respects_rows_and_weights():
    rng = np.random.default_rng(9)
    losses, weight = rng.random((2000, 5)), rng.random(2000)
    rows, bounds = np.array([[1.0, 0, 0, 0, 0], [-1.0, 0, 0, 0, 0]]), np.array([0.3, -0.3])
    for found in cvar_path(losses, [0.1, 0.5], sample_weight=weight, rows=rows, bounds=bounds):
        assert found.mixture[0] == pytest.approx(0.3, abs=1e-9)
        assert found.gap <= 1e-4


@pytest.mark.parametrize("n_samples", [20, 2000])
def test_the_path_leaves_rows_alone_that_are_rounding_on_their_scale(n_samples):
    losses = np.random.default_rng(11).random((n_samples, 3))
    limits = {"rows": [[1e-16, 2e-16, 1e-16]], "bounds": [0.0]}
    free = [found.value for found in cvar_path(losses, [0.1, 0.5])]
    scaled = [found.value for found in cvar_path(losses, [0.1, 0.5], **limits, row_scale=[1.0])]
    assert scaled == pytest.approx(free, abs=2e-4)
    with pytest.raises(InfeasibleRows):
        cvar_path(losses, [0.1, 0.5], **limits)


def test_the_callback_sees_bounds_close_and_can_stop():
    rng = np.random.default_rng(10)
    losses = rng.random((20_000, 30)) < rng.beta(0.5, 2, size=(20_000, 1))
    seen: list[Progress] = []
    minimize_cvar(losses, 0.1, callback=seen.append)
    gaps = [progress.gap for progress in seen]
    assert [progress.n_iter for progress in seen] == list(range(1, len(seen) + 1))
    assert gaps == sorted(gaps, reverse=True)
    stopped = minimize_cvar(losses, 0.1, callback=lambda progress: progress.n_iter == 3)
    assert stopped.n_iter == 3
    assert stopped.gap > 1e-4


def test_max_iter_stops_with_an_honest_gap():
    losses = np.random.default_rng(11).random((20_000, 30)) < 0.2
    found = minimize_cvar(losses, 0.05, max_iter=2)
    assert found.n_iter == 2
    assert found.lower <= found.value
    assert found.value == pytest.approx(cvar_loss(losses, 0.05, mixture=found.mixture), abs=1e-12)


def test_many_cuts_are_dropped_without_losing_the_bound():
    rng = np.random.default_rng(12)
    losses = rng.random((2000, 30)) < rng.beta(0.5, 2, size=(2000, 1))
    planes = CuttingPlanes(30, np.empty((0, 30)), np.empty(0))
    bundle = LevelBundle(TailOracle.of(losses, None, 0.05), planes, SolveLimits(1e-6, 2000, spare_cuts=-50))
    found = bundle.solve(None)
    assert found.gap <= 1e-6
    assert found.value == pytest.approx(solve_weights_lp(losses, 0.05).value, abs=2e-6)


INFEASIBLE = {
    "one row below every entry": ([[1.0, 2.0, 3.0]], [0.5], [0]),
    "two rows that exclude each other": ([[1, 0, 0], [0, 1, 1], [0, 1, 0]], [0.2, 0.3, 0.9], [0, 1]),
    "three rows, none two of which conflict": (np.eye(3), [0.3, 0.3, 0.3], [0, 1, 2]),
    "an equality out of reach": ([[1, 1, 1], [-1, -1, -1]], [2.0, -1.5], [1]),
    "rows of very different size": ([[1e6, 0, 0], [0, 1e-3, 1e-3], [1, 1, 1]], [1e5, 5e-4, 5.0], [0, 1]),
}


@pytest.mark.parametrize("case", INFEASIBLE)
@pytest.mark.parametrize("method", ["bundle", "highs"])
def test_infeasible_rows_raise_with_a_proof(case, method):
    rows, bounds, conflict = INFEASIBLE[case]
    losses = np.random.default_rng(13).random((50, 3))
    with pytest.raises(InfeasibleRows, match="No mixture satisfies rows @ mixture <= bounds") as caught:
        minimize_cvar(losses, 0.2, rows=rows, bounds=bounds, method=method)
    proof = caught.value
    assert proof.rows.tolist() == conflict
    assert proof.multipliers.min() >= 0
    assert (proof.multipliers @ np.asarray(rows, float)).min() > proof.multipliers @ np.asarray(bounds)
    assert proof.violation > 0


def test_rows_that_fix_the_mixture_are_met():
    losses = np.random.default_rng(14).random((300, 4))
    wanted = np.array([0.1, 0.2, 0.3, 0.4])
    rows, bounds = np.vstack([np.eye(4), -np.eye(4)]), np.concatenate([wanted, -wanted])
    found = minimize_cvar(losses, 0.2, rows=rows, bounds=bounds, method="bundle")
    np.testing.assert_allclose(found.mixture, wanted, atol=1e-9)
    assert found.gap <= 1e-4


def test_an_infeasible_start_is_moved_to_the_feasible_set():
    losses = np.random.default_rng(15).random((3000, 4))
    found = minimize_cvar(losses, 0.2, rows=[[1.0, 0, 0, 0]], bounds=[0.1], start=[1.0, 0, 0, 0], method="bundle")
    assert found.mixture[0] <= 0.1 + 1e-9
    assert found.gap <= 1e-4


TINY = np.eye(3)
MANY = np.ones((2500, 2))  # too many for one linear program
BAD = {
    "NaN losses": (
        lambda: minimize_cvar([[0.5, np.nan]], 0.5),
        ValueError,
        "losses must be finite everywhere; got NaN",
    ),
    "infinite losses": (lambda: minimize_cvar([[0.5, np.inf]], 0.5), ValueError, "got infinity"),
    "negative alpha": (lambda: minimize_cvar(TINY, -0.1), ValueError, r"alpha must lie in \(0, 1\].*got -0.1"),
    "zero alpha": (lambda: minimize_cvar(TINY, 0), ValueError, r"alpha must lie in \(0, 1\].*got 0"),
    "alpha above one": (lambda: minimize_cvar(TINY, 1.5), ValueError, r"alpha must lie in \(0, 1\].*got 1.5"),
    "alpha NaN": (lambda: minimize_cvar(TINY, float("nan")), ValueError, r"alpha must lie in \(0, 1\].*got nan"),
    "alpha of text": (lambda: minimize_cvar(TINY, "0.1"), TypeError, "alpha must be a number.*got '0.1'"),
    "a range that overflows": (
        lambda: minimize_cvar([[1e308], [-1e308]], 0.5),
        ValueError,
        r"The entries of losses must differ by less than 1.8e308; got -1e\+308 to 1e\+308",
    ),
    "a start of another size": (
        lambda: minimize_cvar(TINY, 0.5, start=[0.5, 0.5]),
        ValueError,
        r"start must have shape \(3,\), one weight for each model; got shape \(2,\)",
    ),
    "empty": (lambda: minimize_cvar(np.empty((0, 3)), 0.5), ValueError, r"at least one sample.*got shape \(0, 3\)"),
    "no models": (lambda: minimize_cvar(np.empty((3, 0)), 0.5), ValueError, r"one model; got shape \(3, 0\)"),
    "a vector": (
        lambda: minimize_cvar([0.1, 0.2], 0.5),
        ValueError,
        r"shape \(n_samples, n_models\); got shape \(2,\)",
    ),
    "ragged": (lambda: minimize_cvar([[1, 2], [3]], 0.5), ValueError, "losses must be a rectangular array"),
    "text losses": (lambda: minimize_cvar([["a"]], 0.5), TypeError, "losses must hold real numbers"),
    "complex": (lambda: minimize_cvar([[1j]], 0.5), TypeError, "losses must hold real numbers; got dtype complex128"),
    "weights too short": (
        lambda: minimize_cvar(TINY, 0.5, sample_weight=[1, 1]),
        ValueError,
        r"sample_weight must have shape \(3,\).*got shape \(2,\)",
    ),
    "negative weight": (
        lambda: minimize_cvar(TINY, 0.5, sample_weight=[1, 1, -1]),
        ValueError,
        "sample_weight must not be negative; got a weight of -1.0",
    ),
    "zero weights": (
        lambda: minimize_cvar(TINY, 0.5, sample_weight=[0, 0, 0]),
        ValueError,
        "at least one weight above zero",
    ),
    "rows without bounds": (
        lambda: minimize_cvar(TINY, 0.5, rows=[[1, 1, 1]]),
        ValueError,
        "rows and bounds go together.*got rows without bounds",
    ),
    "row of the wrong length": (
        lambda: minimize_cvar(TINY, 0.5, rows=[[1, 1]], bounds=[1]),
        ValueError,
        r"rows must have shape \(n_rows, 3\).*got shape \(1, 2\)",
    ),
    "bounds of the wrong length": (
        lambda: minimize_cvar(TINY, 0.5, rows=[[1, 1, 1]], bounds=[1, 2]),
        ValueError,
        r"bounds must have shape \(1,\).*got shape \(2,\)",
    ),
    "row of NaN": (
        lambda: minimize_cvar(TINY, 0.5, rows=[[1, 1, 1], [np.nan] * 3], bounds=[1, 1]),
        ValueError,
        "rows must be finite everywhere; row 1 holds NaN or infinity",
    ),
    "bound of NaN": (
        lambda: minimize_cvar(TINY, 0.5, rows=[[1, 1, 1]], bounds=[np.nan]),
        ValueError,
        "bounds must be finite everywhere; bound 0 is nan",
    ),
    "tol": (lambda: minimize_cvar(TINY, 0.5, tol=0), ValueError, "tol must be finite and above 0; got 0"),
    "method": (
        lambda: minimize_cvar(TINY, 0.5, method="ipm"),
        ValueError,
        "one of 'auto', 'bundle', 'highs'; got 'ipm'",
    ),
    "max_iter": (lambda: minimize_cvar(TINY, 0.5, max_iter=0), ValueError, "max_iter must be.*got 0"),
    "start": (
        lambda: minimize_cvar(TINY, 0.5, start=[0.5, 0.5, 0.5], method="bundle"),
        ValueError,
        "start must be a distribution over the models.*a sum of 1.5",
    ),
    "a scale for other rows": (
        lambda: bounds_path(MANY, 0.5, [([[1, 0]], [1]), ([[1, 0], [0, 1]], [1, 1])], row_scale=[1.0]),
        ValueError,
        r"row_scale must have shape \(2,\).*got shape \(1,\)",
    ),
    "no alphas": (lambda: cvar_path(TINY, []), ValueError, r"alphas must be a non-empty.*got shape \(0,\)"),
    "a bad alpha": (lambda: cvar_path(TINY, [0.5, 2.0]), ValueError, r"alpha must lie in \(0, 1\].*got 2.0"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_clear_sentence(case):
    call, kind, text = BAD[case]
    with pytest.raises(kind, match=text):
        call()


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1)])
@pytest.mark.parametrize("method", ["bundle", "highs"])
def test_the_smallest_problems_work(shape, method):
    found = minimize_cvar(np.ones(shape), 0.5, method=method)
    assert found.value == pytest.approx(1)
    assert found.gap == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("method", ["highs", "bundle"])
def test_the_smallest_alpha_of_all_is_the_worst_sample(method):
    losses = np.random.default_rng(0).random((60, 5))
    found = minimize_cvar(losses, 5e-324, method=method)
    assert found.value == pytest.approx((losses @ found.mixture).max())
    assert found.gap <= 1e-4


def test_rows_that_miss_by_little_show_by_how_much():
    with pytest.raises(InfeasibleRows, match=r"allow at most 0\.99999999, but every model has at least 1"):
        minimize_cvar(TINY, 0.5, rows=[[1, 1, 1]], bounds=[1 - 1e-8])
