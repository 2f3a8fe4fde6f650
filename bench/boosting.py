"""Boosting with our learners against scikit-learn's AdaBoost and LightGBM; rebalancing; Covertype."""

import time
from collections.abc import Iterator
from functools import cache, partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from harness import Benchmark
from sklearn.datasets import make_classification
from sklearn.ensemble import AdaBoostClassifier
from sklearn.tree import DecisionTreeClassifier

from counterpoise import AdaLPBoostClassifier
from counterpoise.datasets import DataNotAvailable, load_dataset
from counterpoise.learners import HistogramTree

N_TEST = 20_000
ETAS = {1: 0.2, 5: 0.4}  # of Hedge, by depth: about the steps that AdaBoost takes here, larger for better trees


@cache
def data(n_samples: int, n_features: int) -> tuple[Any, ...]:
    """Return training and test samples of two classes that overlap."""
    X, y = make_classification(
        n_samples + N_TEST, n_features, n_informative=15, n_redundant=5, flip_y=0.05, class_sep=0.8, random_state=0
    )
    return X[:-N_TEST], y[:-N_TEST], X[-N_TEST:], y[-N_TEST:]


def ours(n_samples: int, n_features: int, depth: int, n_rounds: int) -> Any:
    """Fit the average of boosted trees, decided by vote, as AdaBoost decides."""
    X, y, _, _ = data(n_samples, n_features)
    model = AdaLPBoostClassifier(
        HistogramTree(max_depth=depth),
        n_estimators=n_rounds,
        eta=ETAS[depth],
        mixture="average",
        decision="vote",
        random_state=0,
    )
    return model.fit(X, y)


def adaboost(n_samples: int, n_features: int, depth: int, n_rounds: int) -> Any:
    """Fit scikit-learn's AdaBoost."""
    X, y, _, _ = data(n_samples, n_features)
    return AdaBoostClassifier(DecisionTreeClassifier(max_depth=depth), n_estimators=n_rounds, random_state=0).fit(X, y)


def lightgbm(n_samples: int, n_features: int, depth: int, n_rounds: int) -> Any:
    """Fit as many trees of that depth with LightGBM."""
    from lightgbm import LGBMClassifier  # noqa: PLC0415 - optional

    X, y, _, _ = data(n_samples, n_features)
    settings = {"num_leaves": 2**depth, "max_depth": depth, "min_child_samples": 1, "verbose": -1}
    return LGBMClassifier(n_estimators=n_rounds, **settings).fit(X, y)


def error_difference(n_samples: int, n_features: int, model: Any, peer: Any) -> float:
    """Return by how much our test error is above the peer's."""
    _, _, X, y = data(n_samples, n_features)
    return float((model.predict(X) != y).mean() - (peer.predict(X) != y).mean())


def floor(n_samples: int, n_features: int, n_rounds: int, _model: Any) -> float:
    """Return the time to read every bin once a round, on one core."""
    bins = np.zeros((n_features, n_samples), dtype=np.uint8)
    start = time.process_time()
    for feature in bins:
        np.bincount(feature, minlength=256)
    return n_rounds * (time.process_time() - start)


def against(peer: Any, name: str, size: tuple[int, int], depth: int, n_rounds: int, tolerance: float) -> Benchmark:
    """Compare the time to boost."""
    return Benchmark(
        name=f"boost {n_rounds} trees of depth {depth}",
        size=f"{size[0]} x {size[1]}",
        ours=partial(ours, *size, depth, n_rounds),
        floor=partial(floor, *size, n_rounds),
        floor_means="count every bin once a round, one thread",
        peer_name=name,
        peer=partial(peer, *size, depth, n_rounds),
        difference=partial(error_difference, *size),
        tolerance=tolerance,
    )


def rebalance(n_samples: int, n_models: int) -> Benchmark:
    """Time another alpha on kept losses; the peer boosts again."""
    X, y, _, _ = data(n_samples, 20)
    settings = {"n_estimators": n_models, "budget": None, "random_state": 0}
    model = AdaLPBoostClassifier(HistogramTree(max_depth=5), alpha=0.1, **settings).fit(X, y)
    return Benchmark(
        name="rebalance(alpha=0.2)",
        size=f"{n_samples} x {n_models}",
        ours=partial(model.rebalance, alpha=0.2),
        floor=lambda _other: 0.0,
        floor_means="none: see minimize_cvar",
        peer_name="fit again",
        peer=lambda: AdaLPBoostClassifier(HistogramTree(max_depth=5), alpha=0.2, **settings).fit(X, y),
        difference=lambda other, again: abs(other.value_ - again.value_),
        tolerance=2e-4,
    )


def covertype() -> Iterator[Benchmark]:
    """Yield 100 rounds of depth 8 on all of Covertype, where its file is at hand."""
    try:
        table = load_dataset("covertype")
    except DataNotAvailable:
        print("covertype is not at hand; set COUNTERPOISE_DATA to time it")
        return
    model = AdaLPBoostClassifier(HistogramTree(max_depth=8), n_estimators=100, random_state=0)
    yield Benchmark(
        name=f"Covertype, 100 trees of depth 8 (data {table.X.nbytes / 2**20:.0f} MiB)",
        size=f"{table.X.shape[0]} x {table.X.shape[1]}",
        ours=lambda: model.fit(table.X, table.y),
        floor=partial(floor, *table.X.shape, 100),
        floor_means="count every bin once a round, one thread",
        repeats=1,
    )


def quick() -> Iterator[Benchmark]:
    """Yield what runs in about a minute."""
    yield against(adaboost, "scikit-learn AdaBoost", (20_000, 20), 1, 20, 0.02)
    yield from _lightgbm((20_000, 20), 5, 20)
    yield rebalance(20_000, 50)


def full() -> Iterator[Benchmark]:
    """Yield the sizes that the project promises."""
    size = (100_000, 50)
    for depth in (1, 5):
        yield from _lightgbm(size, depth, 100)
        yield against(
            adaboost, "scikit-learn AdaBoost", size, depth, 100 if depth == 1 else 20, 0.02
        )  # it takes minutes
    yield rebalance(45_000, 100)
    yield from covertype()


def _lightgbm(size: tuple[int, int], depth: int, n_rounds: int) -> Iterator[Benchmark]:
    if find_spec("lightgbm") is None:
        print("LightGBM is left out: it is not installed; pip install lightgbm to compare with it.")
        return
    # Gradient boosting of probabilities is another method: its error only says that both have learned.
    yield against(lightgbm, "LightGBM", size, depth, n_rounds, 0.15)
