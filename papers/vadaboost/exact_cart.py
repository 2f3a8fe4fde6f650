"""Table 2 of Shivaswamy and Jebara (2011) with exact CART, scikit-learn's trees, beside trees on 32 bins.

``python -m papers.vadaboost.exact_cart`` prints the table that is on the page of the paper: some data sets, a few
splits and one penalty, as exact trees take many times as long.
"""

import sys
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from counterpoise import AdaBoostClassifier, Stopping, VadaBoostClassifier
from counterpoise.datasets import split_rows
from counterpoise.learners import HistogramTree
from papers.markdown import markdown_table
from papers.vadaboost.data import TASKS
from papers.vadaboost.experiment import COARSE_BINS, PARTS

DATASETS, N_SPLITS, PENALTY = ("abalone", "wine", "wisc"), 4, 0.5
SAMPLES_TO_SPLIT = 10  # as MATLAB's CART
_ROUNDS, _PATIENCE = 300, 50
_ADABOOST, _VADABOOST = 0, 1  # places in the published means


def learners() -> dict[str, Any]:
    """Return exact CART and its neighbour on bins, by name."""
    return {
        "exact": DecisionTreeClassifier(min_samples_split=SAMPLES_TO_SPLIT),
        "binned": HistogramTree(max_depth=None, min_samples_split=SAMPLES_TO_SPLIT, max_bins=COARSE_BINS),
    }


def error_on_test_rows(name: str, learner: Any, method: int, seed: int, n_rounds: int = _ROUNDS) -> float:
    """Return the test error in percent on one split, with the rounds of the least validation error."""
    (task,) = (task for task in TASKS if task.name == name)
    X, y = task.draw(seed)
    train, valid, test = split_rows(y, PARTS, seed=seed)
    common: dict[str, Any] = {"n_estimators": n_rounds, "stopping": Stopping(patience=_PATIENCE), "random_state": seed}
    model: Any = (
        AdaBoostClassifier(learner, **common)
        if method == _ADABOOST
        else VadaBoostClassifier(learner, penalty=PENALTY, **common)
    )
    model.fit(X[train], y[train], X_val=X[valid], y_val=y[valid])
    return 100.0 * float(np.mean(model.predict(X[test]) != y[test]))


def table() -> str:
    """Return the means over the splits, with the published ones beside them."""
    published = {task.name: task.cart for task in TASKS}
    lines = []
    for name in DATASETS:
        line = [name]
        for method in (_ADABOOST, _VADABOOST):
            for learner in learners().values():
                errors = [error_on_test_rows(name, learner, method, seed) for seed in range(N_SPLITS)]
                line.append(f"{np.mean(errors):.2f}")
            line.append(f"{published[name][method]:.2f}")
        lines.append(line)
    heads = [f"{one}, {kind}" for one in ("AdaBoost", "VadaBoost") for kind in ("exact", "32 bins", "published")]
    return markdown_table(["data set", *heads], lines)


if __name__ == "__main__":
    sys.stdout.write(f"{table()}\n")
