"""A round of EBBoost, which looks at all stumps, against a round of VadaBoost with the stump of largest gain."""

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import boosting
import numpy as np
from harness import Benchmark
from sklearn.datasets import make_classification

from counterpoise import EBBoostClassifier, VadaBoostClassifier
from counterpoise.datasets import DataNotAvailable
from counterpoise.learners import Stump

sys.path.insert(0, str(Path(__file__).parent.parent))
from papers.datasets import load_dataset

N_TRAIN = 2_300  # the paper's part of spambase
N_ROUNDS = 200


def spambase() -> Iterator[tuple[Any, Any]]:
    """Yield the training samples, where the file is at hand."""
    try:
        table = load_dataset("spambase")
    except DataNotAvailable:
        print("spambase is not at hand; set COUNTERPOISE_DATA to time EBBoost on it")
        return
    part = np.random.default_rng(0).permutation(len(table.y))[:N_TRAIN]
    yield table.X[part], table.y[part]


def against_vadaboost(name: str, X: Any, y: Any, n_rounds: int) -> Benchmark:
    """Compare the time of as many rounds; both costs only say that both have learned."""
    eb = EBBoostClassifier(Stump(), n_estimators=n_rounds, penalty=0.5)
    vada = VadaBoostClassifier(Stump(), n_estimators=n_rounds, penalty=0.5)
    return Benchmark(
        name=f"EBBoost, {n_rounds} rounds, {name}",
        size=f"{X.shape[0]} x {X.shape[1]}",
        ours=lambda: eb.fit(X, y),
        floor=partial(boosting.floor, *X.shape, n_rounds),
        floor_means="count every bin once a round, one thread",
        peer_name="VadaBoost, Stump",
        peer=lambda: vada.fit(X, y),
        difference=lambda ours, theirs: float(theirs.score(X, y) - ours.score(X, y)),
        tolerance=0.02,
    )


def quick() -> Iterator[Benchmark]:
    """Yield what runs in seconds."""
    for X, y in spambase():
        yield against_vadaboost("spambase", X, y, N_ROUNDS)


def full() -> Iterator[Benchmark]:
    """Yield a large one too."""
    yield from quick()
    X, y = make_classification(100_000, 50, n_informative=15, flip_y=0.05, class_sep=0.8, random_state=0)
    yield against_vadaboost("generated", X, y, 50)
