"""Gram matrices: those that no kernel has are refused, and on the others the certificate is right."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel, sigmoid_kernel
from sklearn.preprocessing import scale

from counterpoise.solvers import solve_kernel_svm, solve_svm
from counterpoise.solvers.ramp import KernelMachine
from counterpoise.solvers.svm_problem import check_gram

ROWS, LABELS = load_breast_cancer(return_X_y=True)
ROWS, LABELS = scale(ROWS[:150]), LABELS[:150]


def random_spectrum(seed):
    """Return eigenvectors and eigenvalues: some zero, some below zero by anything from rounding to their own size."""
    rng = np.random.default_rng(seed)
    n_rows = int(rng.integers(1, 30))
    basis = np.linalg.qr(rng.normal(size=(n_rows, n_rows)))[0]
    values = 10 ** rng.uniform(-4, 1, size=n_rows) * rng.choice([0.0, 1.0], p=[0.3, 0.7], size=n_rows)
    below = rng.random(n_rows) < rng.choice([0.0, 0.1, 0.5])
    values[below] = -values.max() * 10 ** rng.uniform(-18, 0, size=int(below.sum()))
    return basis, values, rng


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.booleans())
def test_a_matrix_is_refused_or_its_certificate_is_right(seed, fit_bias):
    basis, values, rng = random_spectrum(seed)
    matrix = (basis * values) @ basis.T
    matrix = (matrix + matrix.T) / 2
    n_rows, rounding = len(values), len(values) * np.abs(matrix).max()
    up, down = rng.exponential(size=(2, n_rows)) * (rng.random((2, n_rows)) < 0.7) / n_rows
    if values.min() < -2e-10 * rounding:
        with pytest.raises(ValueError, match="gram must be positive semidefinite"):
            solve_kernel_svm(matrix, up, down, 0.1, fit_bias=fit_bias)
    if values.min() < -5e-11 * rounding:
        return
    found = solve_kernel_svm(matrix, up, down, 0.1, fit_bias=fit_bias, tol=1e-6)
    rows = basis * np.sqrt(np.maximum(values, 0.0))
    exact = solve_svm(rows, up, down, 0.1, fit_bias=fit_bias, tol=1e-9)
    assert found.gap >= 0.0
    assert found.lower <= exact.value + 1e-12
    assert found.value >= exact.lower - 1e-7


KERNELS = {
    "rbf": lambda rows: rbf_kernel(rows, gamma=0.1),
    "laplacian": laplacian_kernel,
    "cubic": polynomial_kernel,
    "of low rank": lambda rows: rows @ rows.T,
    "of equal rows": lambda rows: rbf_kernel(np.repeat(rows[:10], 15, axis=0)),
    "of one value": lambda rows: np.ones((len(rows), len(rows))),
    "of nothing": lambda rows: np.zeros((len(rows), len(rows))),
    "huge": lambda rows: 1e300 * rbf_kernel(rows),
    "tiny": lambda rows: 1e-300 * rbf_kernel(rows),
}


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_what_kernels_give_is_taken(kernel):
    gram = kernel(ROWS)
    assert check_gram(gram).matrix is gram or np.abs(check_gram(gram).matrix - gram).max() <= 1e-15 * np.abs(gram).max()


OTHERS = {
    "sigmoid": sigmoid_kernel,
    "cubic with a negative constant": lambda rows: polynomial_kernel(rows, coef0=-1.0),
    "distances": lambda rows: np.linalg.norm(rows[:, None] - rows[None], axis=2),
    "a negative square": lambda rows: np.diag(np.append(np.ones(len(rows) - 1), -1e-6)),
    "less than nothing": lambda rows: -np.ones((len(rows), len(rows))),
    "single precision": lambda rows: (rows @ rows.T).astype(np.float32),
}


@pytest.mark.parametrize("kernel", OTHERS.values(), ids=OTHERS)
def test_what_no_kernel_gives_is_refused(kernel):
    with pytest.raises(ValueError, match=r"must be positive semidefinite.* first \d+ rows.*in double precision"):
        KernelMachine(kernel(ROWS))


def test_a_matrix_is_checked_before_anything_is_solved_and_named():
    with pytest.raises(ValueError, match="The kernel must be symmetric"):
        check_gram([[1.0, 0.0], [0.1, 1.0]], "The kernel")
    with pytest.raises(ValueError, match="gram must be finite everywhere; got NaN"):
        check_gram([[1.0, np.nan], [np.nan, 1.0]])
    with pytest.raises(ValueError, match=r"gram must have shape \(n_rows, n_rows\)"):
        check_gram(np.ones((2, 3)))


def test_asymmetry_by_rounding_is_evened_out():
    """Scores would follow the rows of one triangle, the norm the mean of both."""
    gram = check_gram([[1.0, 0.5 + 1e-10], [0.5, 1.0]]).matrix
    assert gram[0, 1] == gram[1, 0]


def test_what_was_checked_is_not_checked_again():
    gram = check_gram(rbf_kernel(ROWS))
    assert check_gram(gram) is gram
    up, down = (LABELS == 1) / len(ROWS), (LABELS == 0) / len(ROWS)
    assert solve_kernel_svm(gram, up, down, 0.01).gap <= 1e-4
