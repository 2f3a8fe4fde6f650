"""More than two classes: worst-class recalls and tails by rules of class probabilities beside the plain model.

Usage: python bench/many_classes.py [--only NAME ...] [--seeds N] [--told FOLDER] [--page] [--output FOLDER]

For each set and seed the rows are split into half to train ``HistGradientBoostingClassifier`` on, a quarter to choose
rules on and a quarter to test. Rules and the plain model, which says its likeliest class, have the same trained model,
so that what differs is the decision alone. Everything is measured in expectation over the draws, on the selection rows
and on test rows. ``--told`` keeps what the trained models say in a folder, ``--page`` only writes the page.
"""

import argparse
import os
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before any library starts its threads

import numpy as np
from many_classes_page import write_page
from records import Records
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split

import counterpoise as cp
from counterpoise.metrics import cvar_loss
from papers.datasets import load_dataset

FOLDER = Path(__file__).parent.parent / "docs" / "results" / "many_classes"
COLUMNS = (
    *("set", "classes", "rows", "seed", "task", "level"),
    *("chosen", "tested", "plain_chosen", "plain_tested"),
    *("error_chosen", "error_tested", "plain_error_chosen", "plain_error_tested"),
    *("rules", "seconds"),
)
N_KEYS = 6
ALPHAS, BUDGET = (0.02, 0.05, 0.1, 0.2), 0.02
COVERTYPE_ROWS = 40_000
RECALL, SURE, TAIL = "recall", "sure recall", "tail"


class Told(NamedTuple):
    """What a model says about rows that it was not trained on, and their classes."""

    choose: np.ndarray
    choose_y: np.ndarray
    test: np.ndarray
    test_y: np.ndarray

    def model(self, X: np.ndarray) -> np.ndarray:
        """Return probabilities, given places among the selection rows and then the test rows."""
        return np.concatenate([self.choose, self.test])[X[:, 0].astype(int)]

    def places(self, part: str) -> np.ndarray:
        """Return the places of rows as features."""
        n_chosen, n_tested = len(self.choose_y), len(self.test_y)
        return np.arange(n_chosen)[:, None] if part == "choose" else n_chosen + np.arange(n_tested)[:, None]


class Source(NamedTuple):
    """Where rows come from, and the floors that the recall of every class is raised to, the second with confidence."""

    rows: Any
    floor: float
    sure: float


def _digits(_seed: int) -> tuple[np.ndarray, np.ndarray]:
    return load_digits(return_X_y=True)


def _segments(_seed: int) -> tuple[np.ndarray, np.ndarray]:
    data = load_dataset("image-segment")
    return np.asarray(data.X, dtype=np.float64), np.asarray(data.y)


def _covertype(seed: int) -> tuple[np.ndarray, np.ndarray]:
    data = load_dataset("covertype")
    X, y = np.asarray(data.X, dtype=np.float64), np.asarray(data.y)
    some, _ = train_test_split(np.arange(y.size), train_size=COVERTYPE_ROWS, stratify=y, random_state=seed)
    return X[some], y[some]


def _generated(seed: int) -> tuple[np.ndarray, np.ndarray]:
    return make_classification(
        16_000, 24, n_informative=16, n_redundant=2, n_classes=26, n_clusters_per_class=1, class_sep=1.6,
        flip_y=0.02, random_state=seed,
    )  # fmt: skip


SOURCES = {
    "digits": Source(_digits, 0.95, 0.88),
    "image segmentation": Source(_segments, 0.95, 0.88),
    "covertype": Source(_covertype, 0.65, 0.6),
    "26 classes": Source(_generated, 0.8, 0.75),
}


def told_by(name: str, seed: int, folder: Path | None) -> Told:
    """Return what a trained model says, from a folder where it is there."""
    path = None if folder is None else folder / f"{name.replace(' ', '_')}_{seed}.npz"
    if path is not None and path.exists():
        with np.load(path) as kept:
            return Told(*(kept[part] for part in Told._fields))
    X, y = SOURCES[name].rows(seed)
    split = partial(train_test_split, random_state=seed, test_size=0.5)
    X, X_rest, y, y_rest = split(X, y, stratify=y)
    X_choose, X_test, y_choose, y_test = split(X_rest, y_rest, stratify=y_rest)
    model = HistGradientBoostingClassifier(random_state=seed).fit(X, y)
    codes = [np.searchsorted(model.classes_, part) for part in (y_choose, y_test)]
    found = Told(model.predict_proba(X_choose), codes[0], model.predict_proba(X_test), codes[1])
    if path is not None:
        np.savez_compressed(path, **found._asdict())
    return found


def settings_of(task: str, level: float) -> dict[str, Any]:
    """Return the parameters of the classifier for a task."""
    if task == TAIL:
        return {"alpha": level, "budget": BUDGET}
    goal = f"every_class(recall, train) >= {level}"
    return {"alpha": 1.0, "goals": [goal if task == RECALL else f"{goal} with confidence 0.8"]}


def worst_recall(losses: np.ndarray, y: np.ndarray, _level: float) -> float:
    """Return the least recall of all classes."""
    return float(min(1.0 - losses[y == one].mean() for one in np.unique(y)))


def tail(losses: np.ndarray, _y: np.ndarray, level: float) -> float:
    """Return the mean loss of the worst part of the rows."""
    return cvar_loss(losses, level)


def measure(records: Records, name: str, seed: int, told: Told, task: str, level: float) -> None:
    """Choose rules for a task, and add what they and the plain model come to."""
    n_classes, n_rows = told.choose.shape[1], len(told.choose_y)
    if records.has(name, n_classes, n_rows, seed, task, level):
        return
    start = time.process_time()
    model = cp.GoalClassifier(
        told.model, cv="prefit", decision="sticky", random_state=0, **settings_of(task, level), confidence=None
    )
    values: list[Any] = [np.nan] * 8
    n_rules = 0
    try:
        model.fit(told.places("choose"), told.choose_y)
    except cp.goals.InfeasibleGoals as error:
        print(name, seed, task, level, error)
    else:
        n_rules = len(model.rules_)
        values = _values(told, model, worst_recall if task != TAIL else tail, level)
    seconds = time.process_time() - start
    records.add(name, n_classes, n_rows, seed, task, level, *values, n_rules, seconds)


def _values(told: Told, model: Any, metric: Any, level: float) -> list[float]:
    values, errors = [], []
    for decide in (model.decision_proba, lambda X: _argmax(told.model(X))):
        for part, y in (("choose", told.choose_y), ("test", told.test_y)):
            losses = 1.0 - decide(told.places(part))[np.arange(y.size), y]
            values.append(metric(losses, y, level))
            errors.append(float(losses.mean()))
    return [*values, *errors]


def _argmax(told: np.ndarray) -> np.ndarray:
    return np.eye(told.shape[1])[told.argmax(axis=1)]


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", default=list(SOURCES), choices=list(SOURCES))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--told", type=Path)
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--output", type=Path, default=FOLDER)
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    records = Records(given.output / "results.csv", COLUMNS, N_KEYS)
    for name in [] if given.page else given.only:
        for seed in range(given.seeds):
            told = told_by(name, seed, given.told)
            source = SOURCES[name]
            tasks = [(RECALL, source.floor), (SURE, source.sure), *((TAIL, alpha) for alpha in ALPHAS)]
            for task, level in tasks:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    measure(records, name, seed, told, task, level)
    write_page(given.output, records.rows, SOURCES)


if __name__ == "__main__":
    main()
