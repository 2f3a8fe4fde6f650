"""The weighted support vector machine against LIBLINEAR and LIBSVM, on a9a and on generated rows."""

import time
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from harness import Benchmark
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, LinearSVC

from counterpoise.datasets import DataNotAvailable, load_dataset
from counterpoise.solvers import SVMSolution, solve_svm

FLOOR = "two passes over the rows a step: one for scores, one for a weighted sum"
PEER_TOL = 0.1  # tolerance on its own stopping rule at which a peer is about as accurate as we are asked to be
SAME = 2e-3  # by which the two values may differ, as a part of the value


def adult() -> tuple[Any, np.ndarray] | None:
    """Return the 32,561 training rows of a9a and which are positive, or None where there is no such file."""
    try:
        data = load_dataset("a9a")
    except DataNotAvailable:
        return None
    n_rows = 32_561
    return sp.csr_array(data.X[:n_rows]), np.asarray(data.y[:n_rows]) == 1


def generated(n_rows: int, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return dense float32 rows and noisy linear labels."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_columns), dtype=np.float32)
    direction = rng.standard_normal(n_columns).astype(np.float32) / np.sqrt(np.float32(n_columns))
    return X, X @ direction + rng.standard_normal(n_rows) > 0.5


def floor(X: Any, found: SVMSolution) -> float:
    """Return the time of a score pass and a sum pass for each step."""
    weights = np.ones(X.shape[0], dtype=X.dtype)
    coefficients = found.coefficients.astype(X.dtype)
    start = time.process_time()
    X @ coefficients
    weights @ X
    return found.n_iter * (time.process_time() - start)


def value(X: Any, positive: np.ndarray, regularization: float, coefficients: np.ndarray, bias: float) -> float:
    """Return the value of a classifier where all rows weigh the same."""
    margins = np.where(positive, 1.0, -1.0) * (X @ coefficients - bias)
    return regularization / 2 * float(coefficients @ coefficients) + float(np.maximum(0, 0.5 - margins).mean())


def by_scikit_learn(model: Any, X: Any, positive: np.ndarray, regularization: float) -> float:
    """Return the value that a peer reaches; its margin is 1 and ours 1/2, so its classifier is twice ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, positive)
    found = model.coef_.toarray() if sp.issparse(model.coef_) else model.coef_
    return value(X, positive, regularization, found[0] / 2, -float(model.intercept_[0]) / 2)


def against(name: str, data: tuple[Any, np.ndarray], regularization: float, rel: float, model: Any = None) -> Benchmark:
    """Compare one solve from nothing with a peer; without one, measure ours alone."""
    X, positive = data
    n_rows = X.shape[0]
    up, down = positive / n_rows, ~positive / n_rows
    tol = rel * solve_svm(X, up, down, regularization, tol=0.01).value
    return Benchmark(
        name=f"solve_svm {name}, gap {rel:g}",
        size=f"{n_rows} x {X.shape[1]}",
        ours=partial(solve_svm, X, up, down, regularization, tol=tol),
        floor=partial(floor, X),
        floor_means=FLOOR,
        peer_name="" if model is None else f"{type(model).__name__}, tol={model.tol:g}",
        peer=None if model is None else partial(by_scikit_learn, model, X, positive, regularization),
        difference=lambda ours, other: abs(other / ours.value - 1),
        tolerance=SAME,
    )


def restarted(data: tuple[Any, np.ndarray], regularization: float, rel: float) -> Benchmark:
    """Compare a start from the solution of weights that differ by up to a tenth with a start from nothing."""
    X, positive = data
    n_rows = X.shape[0]
    factor = np.random.default_rng(0).uniform(0.9, 1.1, n_rows) / n_rows
    before = solve_svm(X, positive / n_rows, ~positive / n_rows, regularization, tol=1e-4)
    up, down, tol = positive * factor, ~positive * factor, rel * before.value
    return Benchmark(
        name=f"solve_svm a9a, weights changed by a tenth, gap {rel:g}",
        size=f"{n_rows} x {X.shape[1]}",
        ours=partial(solve_svm, X, up, down, regularization, tol=tol, start=before),
        floor=partial(floor, X),
        floor_means=FLOOR,
        peer_name="solve_svm, cold",
        peer=partial(solve_svm, X, up, down, regularization, tol=tol),
        difference=lambda ours, other: abs(other.value / ours.value - 1),
        tolerance=SAME,
    )


def peer_c(n_rows: int, regularization: float) -> float:
    """Return the C of a peer, whose objective is ours divided by a quarter of the regularization."""
    return 2 / (n_rows * regularization)


def liblinear(n_rows: int, regularization: float) -> LinearSVC:
    """Return LIBLINEAR; its bias is regularized, which costs it little here."""
    return LinearSVC(
        loss="hinge",
        C=peer_c(n_rows, regularization),
        tol=PEER_TOL,
        max_iter=1000,
        random_state=0,
    )


def quick() -> Iterator[Benchmark]:
    """Yield what runs in about a minute."""
    small = generated(5_000, 20)
    yield against("generated", small, 1e-3, 1e-3, SVC(kernel="linear", C=peer_c(5_000, 1e-3), tol=PEER_TOL))
    data = adult()
    if data is not None:
        n_rows = data[0].shape[0]
        yield against("a9a", data, 1 / n_rows, 1e-3, liblinear(n_rows, 1 / n_rows))
        yield restarted(data, 1 / n_rows, 1e-3)


def full() -> Iterator[Benchmark]:
    """Yield the sizes that the project promises."""
    yield from quick()
    data = adult()
    if data is not None:
        n_rows = data[0].shape[0]
        yield against("a9a", data, 1 / n_rows, 1e-3, SVC(kernel="linear", C=peer_c(n_rows, 1 / n_rows), tol=PEER_TOL))
        yield against("a9a", data, 1 / n_rows, 1e-6)
    many = generated(1_000_000, 100)
    yield against("generated", many, 1e-5, 1e-2, liblinear(1_000_000, 1e-5))
    yield against("generated", many, 1e-5, 1e-4)
