"""The weighted support vector machine: against Clarabel, LIBLINEAR and LIBSVM, with certificate, warm and cold."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles import least_svm_value, svm_value
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from counterpoise.solvers import solve_kernel_svm, solve_svm, svm


def random_problem(seed):
    """Return rows and weights of many kinds: zeros, both hinges on a row, duplicates, empty rows, several scales."""
    rng = np.random.default_rng(seed)
    n_rows, n_columns = int(rng.integers(1, 60)), int(rng.integers(1, 12))
    X = rng.normal(size=(n_rows, n_columns))
    if rng.random() < 0.3:
        X = np.round(X)
    if rng.random() < 0.3:
        X = X[rng.integers(0, n_rows, size=n_rows)]
    if rng.random() < 0.3:
        X *= rng.random(X.shape) < 0.4
    share = rng.choice([0.3, 0.6, 1.0], size=2)
    up, down = rng.exponential(size=(2, n_rows)) * (rng.random((2, n_rows)) < share[:, None])
    return X, up, down, float(10 ** rng.uniform(-2, 1))


def certificate(X, up, down, regularization, found, *, fit_bias):
    """Return value and lower bound by their definitions, after checking that the duals may be used."""
    assert (found.duals >= -down).all()
    assert (found.duals <= up).all()
    if fit_bias:
        assert abs(found.duals.sum()) <= 1e-12 * (1 + np.abs(found.duals).sum())
    else:
        assert found.bias == 0.0
    heights = up + down - np.abs(found.duals - (up - down))
    lower = heights.sum() / 2 - ((found.duals @ X) ** 2).sum() / (2 * regularization)
    return svm_value(X, up, down, regularization, found.coefficients, found.bias), lower


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.booleans())
def test_the_gap_closes_and_the_bounds_follow_from_the_returned_vectors(seed, fit_bias):
    X, up, down, regularization = random_problem(seed)
    found = solve_svm(X, up, down, regularization, fit_bias=fit_bias, tol=1e-7)
    value, lower = certificate(X, up, down, regularization, found, fit_bias=fit_bias)
    assert found.value == pytest.approx(value, rel=1e-9, abs=1e-12)
    assert found.lower == pytest.approx(lower, rel=1e-9, abs=1e-12)
    assert -1e-12 * (1 + value) <= found.gap <= 1e-7 * (1 + 1e-6)


@given(st.integers(0, 10**6), st.booleans())
def test_the_optimum_of_a_quadratic_program_lies_between_the_bounds(seed, fit_bias):
    X, up, down, regularization = random_problem(seed)
    found = solve_svm(X, up, down, regularization, fit_bias=fit_bias, tol=1e-6)
    least = least_svm_value(X, up, down, regularization, fit_bias=fit_bias)
    assert found.lower - 1e-6 <= least <= found.value + 1e-6


@given(st.integers(0, 10**6), st.booleans())
def test_ascent_and_newton_bound_the_same_value(seed, fit_bias):
    X, up, down, regularization = random_problem(seed)
    regularization += X.size  # coordinate ascent is for problems where the duals hardly couple
    newton = solve_svm(X, up, down, regularization, fit_bias=fit_bias, tol=1e-7)
    ascent = solve_svm(X, up, down, regularization, fit_bias=fit_bias, tol=1e-5, method="ascent")
    gram = solve_kernel_svm(X @ X.T, up, down, regularization, fit_bias=fit_bias, tol=1e-5)
    assert max(ascent.gap, gram.gap) <= 1e-5
    assert ascent.value == pytest.approx(newton.value, abs=1e-5)
    assert gram.value == pytest.approx(newton.value, abs=1e-5)
    value, lower = certificate(X, up, down, regularization, ascent, fit_bias=fit_bias)
    assert (ascent.value, ascent.lower) == (pytest.approx(value, rel=1e-9), pytest.approx(lower, rel=1e-9, abs=1e-12))


@pytest.mark.parametrize("method", ["newton", "ascent"])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_dense_and_sparse_rows_of_either_precision_agree(method, kind):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(300, 20)) * (rng.random((300, 20)) < 0.3)).astype(kind)
    up, down = rng.random((2, 300)) / 300
    wide = sp.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    found = [
        solve_svm(matrix, up, down, 0.01, tol=1e-7, method=method)
        for matrix in (X, sp.csr_array(X), wide, sp.coo_array(X), np.asfortranarray(X))
    ]
    for other in found[1:]:
        assert other.value == pytest.approx(found[0].value, abs=1e-7)
        np.testing.assert_allclose(other.coefficients, found[0].coefficients, atol=2e-3)


def test_entries_of_a_sparse_matrix_that_are_given_in_parts_are_summed():
    parts = sp.csr_array(([1.0, 1.0, -1.0], [0, 0, 0], [0, 2, 3]), shape=(2, 1))
    found = solve_svm(parts, [1, 0], [0, 1], 0.1, tol=1e-8, method="ascent")
    assert found.value == pytest.approx(solve_svm([[2.0], [-1.0]], [1, 0], [0, 1], 0.1, tol=1e-8).value, abs=1e-7)
    assert parts.nnz == 3


def scaled_cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y == 1


def hinge_problem(positive, weight):
    """Return up, down and C so that both libraries solve one problem: their margin is 1, ours 1/2."""
    return np.where(positive, weight, 0.0), np.where(positive, 0.0, weight), 2.0


def test_without_bias_it_matches_liblinear():
    X, positive = scaled_cancer()
    weight = np.random.default_rng(0).exponential(size=len(X)) / len(X)
    up, down, C = hinge_problem(positive, weight)
    found = solve_svm(X, up, down, 0.01, fit_bias=False, tol=1e-7)
    peer = LinearSVC(loss="hinge", C=C / 0.01, fit_intercept=False, tol=1e-8, max_iter=10**6, random_state=0)
    coefficients = peer.fit(X, positive, sample_weight=weight).coef_[0] / 2
    value = svm_value(X, up, down, 0.01, coefficients, 0.0)
    assert found.lower <= value
    assert value == pytest.approx(found.value, abs=1e-6)


@pytest.mark.parametrize("times", [0.1, 1.0, 10.0])
def test_a_regularization_of_r_on_n_rows_is_liblinears_c_of_2_over_r_n(times):
    """At the default of ``ConstrainedClassifier``, 1/n, that is C = 2; the coefficients there are twice ours."""
    X, positive = scaled_cancer()
    n_rows = len(X)
    regularization, C = times / n_rows, 2.0 / times
    found = solve_svm(X, positive / n_rows, ~positive / n_rows, regularization, fit_bias=False, tol=1e-9)
    settings = {"loss": "hinge", "fit_intercept": False, "tol": 1e-8, "max_iter": 10**6, "random_state": 0}
    peer = LinearSVC(C=C, **settings).fit(X, positive)
    np.testing.assert_allclose(found.coefficients, peer.coef_[0] / 2, atol=1e-3 * np.abs(found.coefficients).max())
    other = LinearSVC(C=C / 2, **settings).fit(X, positive)
    assert np.abs(found.coefficients - other.coef_[0] / 2).max() > 0.02 * np.abs(found.coefficients).max()


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_with_a_free_bias_it_matches_libsvm(kernel):
    X, positive = scaled_cancer()
    weight = np.random.default_rng(1).exponential(size=len(X)) / len(X)
    up, down, C = hinge_problem(positive, weight)
    peer = SVC(kernel=kernel, C=C / 0.01, gamma=0.02, tol=1e-7).fit(X, positive, sample_weight=weight)
    scores = peer.decision_function(X) / 2
    gram = X @ X.T if kernel == "linear" else rbf_kernel(X, gamma=0.02)
    duals = np.zeros(len(X))
    duals[peer.support_] = peer.dual_coef_[0] / 2
    value = 0.01 / 2 * duals @ gram @ duals + up @ np.maximum(0, 0.5 - scores) + down @ np.maximum(0, 0.5 + scores)
    if kernel == "linear":
        found = solve_svm(X, up, down, 0.01, tol=1e-7)
    else:
        found = solve_kernel_svm(gram, up, down, 0.01, tol=1e-6)
        np.testing.assert_allclose(gram @ found.coefficients - found.bias, scores, atol=2e-2)
    assert found.lower <= value + 1e-9
    assert value == pytest.approx(found.value, abs=2e-6)


def test_rows_without_weight_count_for_nothing():
    X, up, down, regularization = random_problem(7)
    silent = np.random.default_rng(0).random(len(X)) < 0.5
    up[silent] = down[silent] = 0.0
    found = solve_svm(X, up, down, regularization, tol=1e-8)
    alone = solve_svm(X[~silent], up[~silent], down[~silent], regularization, tol=1e-8)
    np.testing.assert_array_equal(found.coefficients, alone.coefficients)
    np.testing.assert_array_equal(found.duals[silent], 0.0)


def test_a_row_given_twice_is_a_row_with_twice_the_weight():
    X, up, down, regularization = random_problem(11)
    twice = solve_svm(np.vstack([X, X]), np.tile(up, 2), np.tile(down, 2), regularization, tol=1e-8)
    heavy = solve_svm(X, 2 * up, 2 * down, regularization, tol=1e-8)
    assert twice.value == pytest.approx(heavy.value, abs=1e-7)


@pytest.mark.parametrize("method", ["newton", "ascent"])
@pytest.mark.parametrize("fit_bias", [True, False])
def test_without_any_weight_the_answer_is_zero(method, fit_bias):
    found = solve_svm(np.ones((3, 2)), np.zeros(3), np.zeros(3), 1.0, method=method, fit_bias=fit_bias)
    assert (found.value, found.lower, found.bias, found.n_iter) == (0.0, 0.0, 0.0, 0)
    assert not found.coefficients.any()
    assert not found.duals.any()


@pytest.mark.parametrize("method", ["newton", "ascent"])
def test_where_all_rows_push_up_the_bias_alone_does_it(method):
    X = np.random.default_rng(0).normal(size=(20, 3))
    found = solve_svm(X, np.ones(20), np.zeros(20), 0.1, tol=1e-9, method=method)
    assert found.value == pytest.approx(0.0, abs=1e-9)
    assert (X @ found.coefficients - found.bias >= 0.5 - 1e-6).all()


def blobs(n_rows=4000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 10))
    positive = X[:, 0] + 0.5 * rng.normal(size=n_rows) > 0.7
    return X, np.where(positive, 1.0, 0.0) / n_rows, np.where(positive, 0.0, 1.0) / n_rows


@pytest.mark.parametrize("method", ["newton", "ascent"])
def test_a_start_from_nearby_weights_gives_the_same_value_in_fewer_steps(method):
    X, up, down = blobs()
    near = solve_svm(X, up * np.random.default_rng(1).uniform(0.9, 1.1, len(up)), down, 0.01, tol=1e-5, method=method)
    cold = solve_svm(X, up, down, 0.01, tol=1e-5, method=method)
    warm = solve_svm(X, up, down, 0.01, tol=1e-5, method=method, start=near)
    assert warm.value == pytest.approx(cold.value, abs=1e-5)
    assert warm.gap <= 1e-5
    assert warm.n_iter < cold.n_iter


@given(st.integers(0, 10**6), st.booleans())
def test_any_start_ends_at_the_same_value(seed, fit_bias):
    X, up, down, regularization = random_problem(seed)
    rng = np.random.default_rng(seed)
    other = solve_svm(X, rng.permutation(down), rng.permutation(up), 10 * regularization)
    found = solve_svm(X, up, down, regularization, fit_bias=fit_bias, tol=1e-7, start=other)
    assert found.gap <= 1e-7 * (1 + 1e-6)
    certificate(X, up, down, regularization, found, fit_bias=fit_bias)


def extreme_problem(seed):
    """Return columns of several scales, next to no regularization, and weights down to rounding, alike or spread."""
    rng = np.random.default_rng(seed)
    n_rows, n_columns = int(rng.integers(1, 60)), int(rng.integers(1, 12))
    X = rng.normal(size=(n_rows, n_columns)) * 10 ** rng.uniform(-1, 3, size=n_columns)
    share = rng.choice([0.0, 0.3, 0.6, 1.0], size=2)
    weights = rng.exponential(size=(2, n_rows)) * (rng.random((2, n_rows)) < share[:, None]) / n_rows
    weights *= rng.choice([1.0, 1e-16], size=(2, 1)) * 10 ** rng.uniform(rng.choice([-7.0, 0.0]), 0.0, size=(2, n_rows))
    return X, *weights, float(10 ** rng.uniform(-10, -4))


@given(st.integers(0, 10**6))
@example(269)
@example(384)
def test_a_start_far_off_costs_few_steps_where_next_to_nothing_is_curved(seed):
    """The rows on the kinks and the regularization then give no scale for a step."""
    X, up, down, regularization = extreme_problem(seed)
    opposite = solve_svm(X, down, up, regularization, tol=1e-2)
    found = solve_svm(X, up, down, regularization, tol=1e-4, start=opposite, max_iter=200)
    assert found.gap <= 1e-4


def test_rows_of_hardly_any_weight_do_not_send_the_bias_off():
    X, up, down = blobs()
    both = solve_svm(X, up, up + down, 1e-3, tol=1e-2)
    found = solve_svm(X, up, 1e-17 * down, 1e-3, tol=1e-3, start=both)
    products = X @ found.coefficients
    assert products.min() - 1.0 <= found.bias <= products.max() + 1.0
    assert found.gap <= 1e-3


def test_many_rows_which_are_begun_on_a_sample_of_them_are_those_of_the_rows_they_repeat():
    X, up, down = blobs()
    times = -(-100_000 // len(X))
    plain = solve_svm(X, up, down, 0.01, tol=1e-6)
    sampled = solve_svm(
        np.tile(X, (times, 1)), np.tile(up, times) / times, np.tile(down, times) / times, 0.01, tol=1e-6
    )
    assert sampled.gap <= 1e-6
    assert sampled.value == pytest.approx(plain.value, abs=1e-6)


def test_wide_rows_go_to_coordinate_ascent():
    X, y = load_digits(return_X_y=True)
    X = np.hstack([X, X[:, ::-1] ** 2 / 16] * 5)[:300] / 16
    up, down = (y[:300] % 2 == 0) / 300, (y[:300] % 2 == 1) / 300
    found = solve_svm(X, up, down, 0.05, tol=1e-4)
    by_ascent = solve_svm(X, up, down, 0.05, tol=1e-4, method="ascent")
    np.testing.assert_array_equal(found.duals, by_ascent.duals)
    assert found.value == pytest.approx(solve_svm(X, up, down, 0.05, tol=1e-6, method="newton").value, abs=1e-4)


@pytest.mark.parametrize("method", ["newton", "ascent"])
def test_the_bounds_hold_when_the_steps_run_out(method):
    X, up, down = blobs()
    exact = solve_svm(X, up, down, 0.01, tol=1e-6)
    found = solve_svm(X, up, down, 0.01, tol=1e-6, method=method, max_iter=2)
    assert found.n_iter == 2
    assert found.lower <= exact.value
    assert exact.lower <= found.value


def test_rows_are_read_where_they_lie():
    X = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    X.flags.writeable = False
    sparse = sp.csr_array(X)
    assert svm._check_matrix(X) is X
    assert svm._check_matrix(sparse).data is sparse.data
    found = solve_svm(X, np.ones(50), np.arange(50) / 25, 1.0, tol=1e-6)
    assert found.gap <= 1e-6


@pytest.mark.parametrize("scale", [2.0**-900, 1e-9, 1e9, 2.0**900])
def test_units_of_the_weights_do_not_matter(scale):
    X, up, down = blobs(500)
    plain = solve_svm(X, up, down, 0.01, tol=1e-6)
    scaled = solve_svm(X, up * scale, down * scale, 0.01 * scale, tol=1e-6 * scale)
    np.testing.assert_allclose(scaled.coefficients, plain.coefficients, rtol=1e-6)


ONE = np.ones(1)
BAD = {
    "NaN": (lambda: solve_svm([[np.nan]], ONE, ONE, 1.0), "X must be finite everywhere; got NaN"),
    "sparse NaN": (lambda: solve_svm(sp.csr_array([[np.inf]]), ONE, ONE, 1.0), "X must be finite.*got infinity"),
    "squares overflow": (
        lambda: solve_svm([[1e151]], ONE, ONE, 1.0),
        r"at most 1e\+150 in size.*got 1e\+151. Divide its",
    ),
    "sparse squares": (
        lambda: solve_svm(sp.csr_array([[-1e300]]), ONE, ONE, 1.0),
        "at most 1e.150 in size.*got 1e.300",
    ),
    "one dimension": (
        lambda: solve_svm([1.0], ONE, ONE, 1.0),
        r"X must have shape \(n_rows, n_columns\).*got shape \(1,\)",
    ),
    "no rows": (lambda: solve_svm(np.empty((0, 2)), [], [], 1.0), r"at least one of each; got shape \(0, 2\)"),
    "length of up": (
        lambda: solve_svm([[1.0]], [1, 2], ONE, 1.0),
        r"up must have shape \(1,\), one weight for each row",
    ),
    "NaN weight": (lambda: solve_svm([[1.0]], ONE, [np.nan], 1.0), "down must be finite everywhere; got NaN"),
    "negative weight": (
        lambda: solve_svm([[1.0]], ONE, [-2], 1.0),
        r"down must not be negative; got a weight of -2\.0",
    ),
    "regularization": (lambda: solve_svm([[1.0]], ONE, ONE, 0), "regularization must be finite and above 0; got 0"),
    "tol": (lambda: solve_svm([[1.0]], ONE, ONE, 1.0, tol=-1), "tol must be finite and above 0; got -1"),
    "max_iter": (lambda: solve_svm([[1.0]], ONE, ONE, 1.0, max_iter=0), "max_iter must be at least 1; got 0"),
    "method": (
        lambda: solve_svm([[1.0]], ONE, ONE, 1.0, method="sgd"),
        "method must be one of 'auto', 'newton', 'ascent'",
    ),
    "start": (
        lambda: solve_svm([[1.0]], ONE, ONE, 1.0, start=solve_svm([[1.0, 2.0]], ONE, ONE, 1.0)),
        "start must be a solution on the same rows and columns: 1 duals and 1 coefficients; got 1 and 2",
    ),
    "gram shape": (lambda: solve_kernel_svm([[1.0, 0.0]], ONE, ONE, 1.0), r"gram must have shape \(n_rows, n_rows\)"),
    "gram": (lambda: solve_kernel_svm([[1.0, 0.5], [0.0, 1.0]], [1, 1], [1, 1], 1.0), "gram must be symmetric"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_clear_sentence(case):
    call, text = BAD[case]
    with pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize("X", [[["a"]], sp.csr_array([[1j]])])
def test_rows_must_be_real_numbers(X):
    with pytest.raises(TypeError, match="X must hold real numbers; got dtype"):
        solve_svm(X, ONE, ONE, 1.0)
