"""Boosting inside goals: what a round costs beside AdaLPBoost, and fits, time and error beside ExponentiatedGradient.

Usage: python bench/inside_goals.py [rounds] [peer] [--seeds N] [--sets NAME ...]

``rounds``: 100,000 x 50, trees of depth 5, three goals, up to 30 models; processor seconds of a round.
``peer``: the same learner, LightGBM of 30 trees, on the same rows; error and violation on test rows.
"""

import argparse
import os
import time
import warnings
from collections.abc import Callable
from functools import cache, partial
from itertools import product
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before any library starts its threads

import numpy as np
from sklearn.datasets import make_classification

from counterpoise import AdaLPBoostClassifier, LPBoostClassifier
from counterpoise.datasets import load_dataset
from counterpoise.learners import HistogramTree

N_SAMPLES, N_FEATURES, DEPTH, N_ROUNDS = 100_000, 50, 5, 30
ROUND_GOALS = (
    "demographic_parity_difference(train, by=sex) <= 0.1",
    "recall(train) >= 0.75",
    "false_positive_rate(train) <= 0.35",
)
BOUND = 0.02
BOUNDS = (BOUND, 0.01, 0.03, 0.04, 0.06)  # the first is asked for, the others tell the error at other violations
QUESTIONS = {
    "parity": "demographic_parity_difference(train, by=sex) <= {}",
    "odds": "equalized_odds_difference(train, by=sex) <= {}",
}
MOST_TRAIN = 24_000
TREES = 30


@cache
def rounds_data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, labels and a group that labels depend on."""
    X, y = make_classification(
        N_SAMPLES, N_FEATURES, n_informative=15, n_redundant=5, flip_y=0.05, class_sep=0.8, random_state=0
    )
    noise = np.random.default_rng(0).normal(size=N_SAMPLES)
    return X, y, np.where(X[:, 0] / X[:, 0].std() + 0.7 * y + noise > 0.4, "M", "F")


def seconds_a_round(kind: Any, **params: Any) -> tuple[float, Any]:
    """Return the processor seconds of a round, the median of those after the first, and the model."""
    X, y, sex = rounds_data()
    marks: list[float] = []
    model = kind(HistogramTree(DEPTH), n_estimators=N_ROUNDS, random_state=0, **params)
    model.set_params(callbacks=[lambda _done: marks.append(time.process_time())])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, sensitive_features={"sex": sex})
    return float(np.median(np.diff(marks))), model


def show_rounds() -> None:
    """Print what a round costs, the least of three runs in turn: other work on the machine only adds to it."""
    ours = {alpha: {"alpha": alpha, "goals": ROUND_GOALS} for alpha in (1.0, 0.5, 0.2)}
    runs = {alpha: [seconds_a_round(LPBoostClassifier, **params)] for alpha, params in ours.items()}  # compiles
    base = []
    for _ in range(3):
        base.append(seconds_a_round(AdaLPBoostClassifier, alpha=0.1)[0])
        for alpha, params in ours.items():
            runs[alpha].append(seconds_a_round(LPBoostClassifier, **params))
    print(f"AdaLPBoost: {1e3 * min(base):.1f} ms of processor time a round")
    for alpha, found in runs.items():
        spent, model = min(seconds for seconds, _ in found), found[0][1]
        gap = model.value_ - model.bound_if_learner_exact_
        print(
            f"inside goals, alpha {alpha}: {len(model.estimators_)} models, {1e3 * spent:.1f} ms a round, "
            f"{spent / min(base):.2f} times AdaLPBoost's; value {model.value_:.4f}, gap to the bound {gap:.4f}"
        )


class Split(NamedTuple):
    """Rows to train on and to test on."""

    X: np.ndarray
    y: np.ndarray
    sex: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    sex_test: np.ndarray


def split_of(name: str, seed: int) -> Split:
    """Return a random split of a public set."""
    data = load_dataset(name)
    order = np.random.default_rng(seed).permutation(len(data.y))
    n_train = min(MOST_TRAIN, len(order) // 2)
    train, test = order[:n_train], order[n_train : 3 * n_train]
    y, sex = np.asarray(data.y).astype(int), np.asarray(data.sensitive["sex"]).astype(str)
    return Split(data.X[train], y[train], sex[train], data.X[test], y[test], sex[test])


def learner() -> Any:
    """Return the learner that everyone uses."""
    from lightgbm import LGBMClassifier  # noqa: PLC0415 - optional

    return LGBMClassifier(n_estimators=TREES, verbose=-1, n_jobs=1, random_state=0)


class Outcome(NamedTuple):
    """What a method came to, for each bound that it was asked for."""

    n_fits: int
    seconds: float  # of training, with the first bound
    chances: list[np.ndarray]  # that each test row is called positive


def inside(part: Split, question: str, **params: Any) -> Outcome:
    """Boost inside goals; other bounds choose among the same models."""
    start = time.perf_counter()
    settings = {"n_estimators": 30, "alpha": 1.0, "n_folds": None, "random_state": 0, **params}
    model = LPBoostClassifier(learner(), goals=[QUESTIONS[question].format(BOUND)], **settings)
    model.fit(part.X, part.y, sensitive_features={"sex": part.sex})
    seconds = time.perf_counter() - start
    models = [model, *(model.rebalance(goals=[QUESTIONS[question].format(bound)]) for bound in BOUNDS[1:])]
    return Outcome(len(model.estimators_), seconds, [one.predict_proba(part.X_test)[:, 1] for one in models])


def exponentiated(part: Split, question: str) -> Outcome:
    """Run fairlearn's reduction."""
    from fairlearn.reductions import (  # noqa: PLC0415 - optional
        DemographicParity,
        EqualizedOdds,
        ExponentiatedGradient,
    )

    kind = DemographicParity if question == "parity" else EqualizedOdds
    start = time.perf_counter()
    model = ExponentiatedGradient(learner(), kind(difference_bound=BOUND), eps=BOUND)
    model.fit(part.X, part.y, sensitive_features=part.sex)
    seconds = time.perf_counter() - start
    chances = model._pmf_predict(part.X_test)[:, 1]  # noqa: SLF001 - it has no other way
    return Outcome(model.n_oracle_calls_, seconds, [chances])


def judged(question: str, part: Split, chances: np.ndarray) -> tuple[float, float]:
    """Return the largest difference of the groups' rates on test rows, and the error."""
    groups = [np.ones(len(part.y_test), bool)] if question == "parity" else [part.y_test == 0, part.y_test == 1]
    rates = [[chances[rows & (part.sex_test == one)].mean() for one in np.unique(part.sex)] for rows in groups]
    return float(max(np.ptp(one) for one in rates)), float(np.abs(chances - part.y_test).mean())


def error_at(violation: float, points: list[tuple[float, float]]) -> float:
    """Return the error of a method at a violation, between its points, the nearest one beyond them."""
    found = np.array(sorted(points))
    return float(np.interp(violation, found[:, 0], np.minimum.accumulate(found[:, 1])))


METHODS: dict[str, Callable[[Split, str], Outcome]] = {
    "inside goals": inside,
    "inside goals, a quarter set aside, answers": partial(inside, validation_fraction=0.25, scores=False),
    "inside goals, a quarter set aside, scores": partial(inside, validation_fraction=0.25),
}


def show_peer(sets: list[str], n_seeds: int) -> None:
    """Print fits, seconds, error and violation of everyone, and our error at the peer's violation."""
    warnings.simplefilter("ignore")
    for name, question in product(sets, QUESTIONS):
        rows: dict[str, list[Any]] = {}
        for seed in range(n_seeds):
            part = split_of(name, seed)
            peer = exponentiated(part, question)
            (missed, error) = judged(question, part, peer.chances[0])
            rows.setdefault("ExponentiatedGradient", []).append([peer.n_fits, peer.seconds, missed, error, error])
            for method, run in METHODS.items():
                ours = run(part, question)
                points = [judged(question, part, chances) for chances in ours.chances]
                rows.setdefault(method, []).append([ours.n_fits, ours.seconds, *points[0], error_at(missed, points)])
        for method, found in rows.items():
            fits, seconds, missed, error, equal = np.mean(found, axis=0)
            print(
                f"{name}, {question}, {method}: {fits:.1f} fits, {seconds:.1f} s, violation {missed:.4f}, error "
                f"{error:.4f}, at the violation of ExponentiatedGradient {equal:.4f}",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=["rounds", "peer"], default=["rounds", "peer"])
    parser.add_argument("--sets", nargs="+", default=["adult"])
    parser.add_argument("--seeds", type=int, default=1)
    asked = parser.parse_args()
    if "rounds" in asked.parts:
        show_rounds()
    if "peer" in asked.parts:
        show_peer(asked.sets, asked.seeds)
