"""Histogram trees in the rounds of boosting, against LightGBM and scikit-learn's trees of the same depth."""

import time
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from harness import Benchmark
from sklearn.tree import DecisionTreeClassifier

from counterpoise._base.threads import available_cpus
from counterpoise.learners import BinnedFeatures, HistogramTree, bin_features

ROUNDS = 20
FLOOR = "one addition a row and feature at the root, half the rows at each further level, over all processors"


class Data(NamedTuple):
    """Features, their bins, classes, and the weights of each round."""

    X: np.ndarray
    binned: BinnedFeatures
    codes: np.ndarray
    weights: list[np.ndarray]
    n_classes: int

    @property
    def size(self) -> str:
        """The size as text."""
        return f"{self.X.shape[0]} x {self.X.shape[1]}, {self.n_classes} classes"


@cache
def data(n_samples: int, n_features: int, n_classes: int) -> Data:
    """Return random floats with classes by quantiles of a noisy quadratic form, seeded."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_samples, n_features))
    score = X[:, 0] + X[:, 1] * X[:, 2] + X[:, 3] + rng.standard_normal(n_samples)
    codes = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
    weights = [rng.exponential(size=n_samples) for _ in range(ROUNDS)]
    return Data(X, bin_features(X), codes, weights, n_classes)


def fit_rounds(given: Data, depth: int, n_rounds: int) -> np.ndarray:
    """Fit a tree on the weights of each round and return what the first predicts; features are binned already."""
    tree, classes = HistogramTree(depth), np.arange(given.n_classes)
    predicted = [tree.fit_codes(given.binned, given.codes, classes, weights) for weights in given.weights[:n_rounds]]
    return predicted[0]


def floor(given: Data, depth: int, n_rounds: int) -> float:
    """Return the time of the additions that cannot be left out, at the speed of those of a stump."""
    start = time.process_time()
    fit_rounds(given, 1, 1)
    return n_rounds * (time.process_time() - start) * (1 + (depth - 1) / 2) / available_cpus()


def against(given: Data, depth: int, n_rounds: int, peer_name: str, peer: Any, tolerance: float) -> Benchmark:
    """Compare rounds of ours with a peer that returns predicted codes; the answers' training accuracy must agree."""

    def accuracy(predicted: np.ndarray) -> float:
        return float(np.average(predicted == given.codes, weights=given.weights[0]))

    return Benchmark(
        name=f"tree of depth {depth}, {n_rounds} round{'s'[: n_rounds > 1]}",
        size=given.size,
        ours=lambda: fit_rounds(given, depth, n_rounds),
        floor=lambda _: floor(given, depth, n_rounds),
        floor_means=FLOOR,
        peer_name=peer_name,
        peer=peer,
        difference=lambda ours, other: abs(accuracy(ours) - accuracy(other)),
        tolerance=tolerance,
    )


def against_lightgbm(given: Data, depth: int) -> Benchmark:
    """Compare with LightGBM's trees on two classes; making its dataset is not timed."""
    import lightgbm  # noqa: PLC0415 - optional

    settings = {
        "objective": "binary",
        "num_leaves": 2**depth,
        "max_depth": depth,
        "min_child_samples": 1,
        "max_bin": 255,
        "num_threads": available_cpus(),
        "verbose": -1,
    }
    dataset = lightgbm.Dataset(given.X, given.codes, weight=given.weights[0], params=settings).construct()

    def train() -> Any:
        return lightgbm.train(settings, dataset, num_boost_round=ROUNDS)

    train()  # its threads start once
    found = train().predict(given.X, num_iteration=1)
    # One small step of the first tree moves every leaf to its side of the mean.
    first = (found > np.average(given.codes, weights=given.weights[0])).astype(np.uint8)

    def peer() -> np.ndarray:
        train()
        return first

    return against(given, depth, ROUNDS, "LightGBM", peer, tolerance=0.02)


def against_scikit_learn(given: Data, depth: int) -> Benchmark:
    """Compare with scikit-learn's exact tree."""

    def peer() -> np.ndarray:
        tree = DecisionTreeClassifier(max_depth=depth, random_state=0)
        return tree.fit(given.X, given.codes, given.weights[0]).predict(given.X)

    return against(given, depth, 1, "scikit-learn tree", peer, tolerance=0.02)


def both(given: Data, depth: int) -> Iterator[Benchmark]:
    """Yield the comparisons with both peers."""
    if find_spec("lightgbm") is None:
        print("LightGBM is left out: it is not installed; pip install lightgbm to compare with it.")
    else:
        yield against_lightgbm(given, depth)
    yield against_scikit_learn(given, depth)


def quick() -> Iterator[Benchmark]:
    """Yield what runs in about a minute."""
    for depth in (1, 5):
        yield from both(data(20_000, 50, 2), depth)


def full() -> Iterator[Benchmark]:
    """Yield the sizes that the project promises."""
    for depth in (1, 3, 5, 8):
        yield from both(data(100_000, 50, 2), depth)
    yield against(data(581_012, 54, 7), 8, ROUNDS, "", None, tolerance=0.0)  # the shape of Covertype
