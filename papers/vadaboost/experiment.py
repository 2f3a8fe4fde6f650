"""Variance Penalizing AdaBoost (Shivaswamy and Jebara, NIPS 2011): Tables 1 and 2.

The protocol: half of the rows for training, a quarter for validation, a quarter for testing; every booster runs until
the validation error has not dropped for 100 rounds; penalties and regularization are those of least validation error;
50 repeats with other splits. RLP-Boost and RQP-Boost are given the models of AdaBoost.

Trees see each feature in 32 bins, where CART may cut between any two values. How much that matters is measured on a few
splits with scikit-learn's exact CART, for AdaBoost and VadaBoost.
"""

import hashlib
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sklearn.tree import DecisionTreeClassifier

from counterpoise.boosting.adaboost import AdaBoostClassifier
from counterpoise.boosting.margin_boost import RLPBoostClassifier, RQPBoostClassifier
from counterpoise.boosting.stopping import Stopping
from counterpoise.boosting.vadaboost import EBBoostClassifier, VadaBoostClassifier
from counterpoise.datasets import split_rows
from counterpoise.learners import HistogramTree, LeastErrorStump, Stump
from papers.arrays import AnyArray, FloatArray
from papers.tables import ResultRow
from papers.vadaboost.data import TASKS, Task

EXPERIMENT = "vadaboost"
LEARNERS = ("stump", "cart")
COARSE_BINS = 32
EXACT = "cart, exact"
EXACT_SEEDS, EXACT_SETS = 10, ("abalone",)
METHODS = ("AdaBoost", "EBBoost", "VadaBoost", "RLP-Boost", "RQP-Boost")
PARTS = (0.5, 0.25, 0.25)  # train, validation, test
PATIENCE = 100
MAX_ROUNDS = 2_000
_TASKS = {task.name: task for task in TASKS}
DATASETS = tuple(_TASKS)


class Repeat(NamedTuple):
    """One data set with one learner and one split."""

    dataset: str
    learner: str
    seed: int

    def __str__(self) -> str:
        return f"{self.dataset}, {self.learner}, repeat {self.seed}"


def wanted(datasets: Sequence[str], n_seeds: int) -> list[Repeat]:
    """Return the repeats with other splits.

    All data sets of a repeat come before the next repeat: the estimate of the time left is then soon right.
    """
    counts = dict.fromkeys(LEARNERS, n_seeds) | {EXACT: min(n_seeds, EXACT_SEEDS)}
    return [
        Repeat(name, learner, seed)
        for learner in counts
        for seed in range(counts[learner])
        for name in datasets
        if learner != EXACT or name in EXACT_SETS
    ]


def measure(repeat: Repeat) -> list[ResultRow]:
    """Return the test errors of all methods on one split, and the processor time that it took."""
    started = time.process_time()
    errors = list(_errors(_TASKS[repeat.dataset], repeat))
    seconds = _row(repeat, "all", "processor seconds", time.process_time() - started, f"rounds={MAX_ROUNDS}")
    return [*errors, seconds]


def _errors(task: Task, repeat: Repeat) -> Iterator[ResultRow]:
    forget()
    X, y = task.draw(repeat.seed)
    train, valid, test = split_rows(y, PARTS, seed=repeat.seed)
    for method, model in make_models(repeat.learner, repeat.seed).items():
        model.fit(X[train], y[train], X_val=X[valid], y_val=y[valid])
        settings = f"{_parameter(model)} models={len(model.estimators_)}".strip()
        yield _row(repeat, method, "error", _error(model, X[test], y[test]), settings)


def make_models(learner: str, seed: int) -> dict[str, Any]:
    """Return the methods of the table, unfitted, by name."""
    common: dict[str, Any] = {"n_estimators": MAX_ROUNDS, "stopping": Stopping(patience=PATIENCE), "random_state": seed}
    if learner == EXACT:
        tree = DecisionTreeClassifier(min_samples_split=_LEAST_SPLIT, random_state=seed)
        return {
            "AdaBoost": AdaBoostClassifier(tree, **common),
            "VadaBoost": VadaBoostClassifier(tree, penalty="auto", **common),
        }
    shared = (
        RememberingStump() if learner == "stump" else RememberingTree(**_CART)
    )  # the first three fit the same models
    base = LeastErrorStump() if learner == "stump" else HistogramTree(**_CART)
    models = {
        "AdaBoost": AdaBoostClassifier(shared, **common),
        "RLP-Boost": RLPBoostClassifier(shared, C="auto", **common),
        "RQP-Boost": RQPBoostClassifier(shared, C="auto", **common),
        "VadaBoost": VadaBoostClassifier(base, penalty="auto", **common),
    }
    if learner == "stump":  # which is all that EBBoost can search through
        models["EBBoost"] = EBBoostClassifier(Stump(), penalty="auto", **common)
    return models


# As MATLAB's CART not pruned, and no node with fewer than 10 samples is split; unlike it cut at the edges of bins.
_LEAST_SPLIT = 10
_CART: dict[str, Any] = {"max_depth": None, "min_samples_split": _LEAST_SPLIT, "max_bins": COARSE_BINS}
_FITTED: dict[bytes, tuple[dict[str, Any], AnyArray]] = {}


def forget() -> None:
    """Forget all trees, before other samples come."""
    _FITTED.clear()


class RememberingTree(HistogramTree):
    """A tree that is not fitted again to weights that it was fitted to before, on the same samples."""

    def fit_codes(self, binned: Any, codes: AnyArray, classes: AnyArray, weights: FloatArray) -> AnyArray:
        key = hashlib.blake2b(weights.tobytes(), digest_size=16).digest()
        if key not in _FITTED:
            predicted = super().fit_codes(binned, codes, classes, weights)
            _FITTED[key] = dict(vars(self)), predicted
        attributes, predicted = _FITTED[key]
        self.__dict__.update(attributes)
        return predicted


class RememberingStump(RememberingTree, LeastErrorStump):
    """The same of a stump."""


def _error(model: Any, X: AnyArray, y: AnyArray) -> float:
    return float((model.predict(X) != y).mean())


def _parameter(model: Any) -> str:
    for name in ("penalty", "C"):
        if hasattr(model, f"{name}_"):
            return f"{name}={getattr(model, f'{name}_'):g}"
    return ""


def _row(repeat: Repeat, method: str, quantity: str, value: float, settings: str) -> ResultRow:
    return ResultRow(
        EXPERIMENT, repeat.dataset, repeat.learner, method, repeat.seed, None, quantity, "test", value, settings
    )
