"""Worst-case weights against a conic solver, and a round of DRO-Boosting against one of AdaBoost."""

import time
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np
from harness import Benchmark
from sklearn.datasets import make_classification

from counterpoise import AdaBoostClassifier, DROBoostClassifier, Stopping
from counterpoise.learners import HistogramTree
from counterpoise.solvers import worst_case_weights

RADIUS = 0.0067


@cache
def losses(n_samples: int) -> Any:
    """Return losses with a long tail."""
    return np.random.default_rng(0).exponential(size=n_samples)


@cache
def data(n_samples: int, n_features: int) -> tuple[Any, Any]:
    """Return samples of two classes that overlap."""
    return make_classification(n_samples, n_features, n_informative=15, flip_y=0.05, class_sep=0.8, random_state=0)


def conic(n_samples: int) -> Any:
    """Return the worst weights by cvxpy and Clarabel."""
    import cvxpy as cp  # noqa: PLC0415 - optional

    weights = cp.Variable(n_samples)
    held = [-cp.sum(cp.log(n_samples * weights)) / n_samples <= RADIUS, cp.sum(weights) == 1]
    cp.Problem(cp.Maximize(weights @ losses(n_samples)), held).solve(solver=cp.CLARABEL)
    return weights.value


def floor(n_samples: int, n_passes: int, _answer: Any) -> float:
    """Return the time of so many divisions a loss, one thread."""
    vector = losses(n_samples)
    out = np.empty_like(vector)
    start = time.process_time()
    for _ in range(n_passes):
        np.divide(1.0, vector, out=out)
    return time.process_time() - start


def weights(n_samples: int, *, with_peer: bool) -> Benchmark:
    """Time the empirical-likelihood weights."""
    return Benchmark(
        name=f"worst_case_weights radius={RADIUS:g}",
        size=f"{n_samples}",
        ours=partial(worst_case_weights, losses(n_samples), RADIUS),
        floor=partial(floor, n_samples, 1),
        floor_means="one division a loss, one thread",
        peer_name="cvxpy + Clarabel" if with_peer else "",
        peer=partial(conic, n_samples) if with_peer else None,
        difference=lambda ours, theirs: float(np.abs(ours - theirs).sum()),
        tolerance=1e-3,
        repeats=10,
    )


def rounds(size: tuple[int, int], depth: int, n_rounds: int) -> Benchmark:
    """Time rounds of DRO-Boosting; the peer is our AdaBoost with the same learner, so a ratio of 1 / 1.3 is the aim."""
    X, y = data(*size)
    tree = HistogramTree(max_depth=depth)
    return Benchmark(
        name=f"DRO-Boosting, {n_rounds} trees of depth {depth}",
        size=f"{size[0]} x {size[1]}",
        ours=lambda: DROBoostClassifier(tree, n_estimators=n_rounds, stopping=Stopping()).fit(X, y),
        floor=lambda _model: 0.0,
        floor_means="none: see AdaBoost",
        peer_name="our AdaBoost",
        peer=lambda: AdaBoostClassifier(tree, n_estimators=n_rounds).fit(X, y),
        difference=lambda ours, theirs: abs(ours.score(X, y) - theirs.score(X, y)),
        tolerance=0.2,  # shorter steps fit the training samples less: this only says that both have learned
    )


def quick() -> Iterator[Benchmark]:
    """Yield what runs in seconds."""
    yield weights(2000, with_peer=True)
    yield weights(100_000, with_peer=False)
    yield rounds((20_000, 20), 5, 20)


def full() -> Iterator[Benchmark]:
    """Yield the sizes that the project promises."""
    yield weights(10_000, with_peer=True)
    yield weights(100_000, with_peer=False)
    yield rounds((100_000, 50), 5, 50)
