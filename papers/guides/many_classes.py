"""More than two classes: worst-class recalls and tails by rules of class probabilities beside the plain model.

For each set and seed the rows are split into half to train ``HistGradientBoostingClassifier`` on, a quarter to choose
rules on and a quarter to test. Rules and the plain model, which says its likeliest class, have the same trained model,
so that what differs is the decision alone. Everything is measured in expectation over the draws.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split

import counterpoise as cp
from counterpoise.metrics import cvar_loss
from papers.arrays import AnyArray, FloatArray
from papers.datasets import load_dataset
from papers.experiments import Blocks, Experiment, long_rows, values, with_error
from papers.markdown import markdown_table
from papers.tables import ResultRow, ResultsTable

NAME = "many-classes"
ALPHAS, BUDGET = (0.02, 0.05, 0.1, 0.2), 0.02
COVERTYPE_ROWS = 40_000
RECALL, SURE, TAIL = "recall", "sure recall", "tail"
QUANTITIES = (
    *("chosen", "tested", "plain_chosen", "plain_tested"),
    *("error_chosen", "error_tested", "plain_error_chosen", "plain_error_tested"),
)


class Told(NamedTuple):
    """What a model says about rows that it was not trained on, and their classes."""

    choose: AnyArray
    choose_y: AnyArray
    test: AnyArray
    test_y: AnyArray

    def model(self, X: AnyArray) -> AnyArray:
        """Return probabilities, given places among the selection rows and then the test rows."""
        return np.asarray(np.concatenate([self.choose, self.test])[X[:, 0].astype(int)])

    def places(self, part: str) -> AnyArray:
        """Return the places of rows as features."""
        n_chosen, n_tested = len(self.choose_y), len(self.test_y)
        return np.arange(n_chosen)[:, None] if part == "choose" else n_chosen + np.arange(n_tested)[:, None]


class Source(NamedTuple):
    """Where rows come from, and the floors that the recall of every class is raised to, the second with confidence."""

    rows: Callable[[int], tuple[AnyArray, AnyArray]]
    floor: float
    sure: float


def _digits(_seed: int) -> tuple[AnyArray, AnyArray]:
    X, y = load_digits(return_X_y=True)
    return X, y


def _segments(_seed: int) -> tuple[AnyArray, AnyArray]:
    data = load_dataset("image-segment")
    return np.asarray(data.X, dtype=np.float64), np.asarray(data.y)


def _covertype(seed: int) -> tuple[AnyArray, AnyArray]:
    data = load_dataset("covertype")
    X, y = np.asarray(data.X, dtype=np.float64), np.asarray(data.y)
    some, _ = train_test_split(np.arange(y.size), train_size=COVERTYPE_ROWS, stratify=y, random_state=seed)
    return X[some], y[some]


def _generated(seed: int) -> tuple[AnyArray, AnyArray]:
    X, y = make_classification(
        16_000, 24, n_informative=16, n_redundant=2, n_classes=26, n_clusters_per_class=1, class_sep=1.6,
        flip_y=0.02, random_state=seed,
    )  # fmt: skip
    return X, y


SOURCES = {
    "digits": Source(_digits, 0.95, 0.88),
    "image segmentation": Source(_segments, 0.95, 0.88),
    "covertype": Source(_covertype, 0.65, 0.6),
    "26 classes": Source(_generated, 0.8, 0.75),
}


@lru_cache(maxsize=1)  # the tasks of one split follow each other
def told_by(name: str, seed: int) -> Told:
    """Return what a trained model says."""
    X, y = SOURCES[name].rows(seed)
    split = partial(train_test_split, random_state=seed, test_size=0.5)
    X, X_rest, y, y_rest = split(X, y, stratify=y)
    X_choose, X_test, y_choose, y_test = split(X_rest, y_rest, stratify=y_rest)
    model = HistGradientBoostingClassifier(random_state=seed).fit(X, y)
    codes = [np.searchsorted(model.classes_, part) for part in (y_choose, y_test)]
    return Told(model.predict_proba(X_choose), codes[0], model.predict_proba(X_test), codes[1])


def settings_of(task: str, level: float) -> dict[str, Any]:
    """Return the parameters of the classifier for a task."""
    if task == TAIL:
        return {"alpha": level, "budget": BUDGET}
    goal = f"every_class(recall, train) >= {level}"
    return {"alpha": 1.0, "goals": [goal if task == RECALL else f"{goal} with confidence 0.8"]}


def worst_recall(losses: AnyArray, y: AnyArray, _level: float) -> float:
    """Return the least recall of all classes."""
    return float(min(1.0 - losses[y == one].mean() for one in np.unique(y)))


def tail(losses: AnyArray, _y: AnyArray, level: float) -> float:
    """Return the mean loss of the worst part of the rows."""
    return cvar_loss(losses, level)


def _values(told: Told, model: Any, metric: Any, level: float) -> list[float]:
    found: list[float] = []
    errors: list[float] = []
    for decide in (model.decision_proba, lambda X: _argmax(told.model(X))):
        for part, y in (("choose", told.choose_y), ("test", told.test_y)):
            losses = 1.0 - decide(told.places(part))[np.arange(y.size), y]
            found.append(metric(losses, y, level))
            errors.append(float(losses.mean()))
    return [*found, *errors]


def _argmax(told: AnyArray) -> AnyArray:
    return np.asarray(np.eye(told.shape[1])[told.argmax(axis=1)])


class Part(NamedTuple):
    """A task on a split of a set."""

    dataset: str
    method: str  # the task
    alpha: float  # its level
    seed: int
    experiment: str = NAME


def wanted(datasets: Sequence[str], n_seeds: int) -> list[Part]:
    """Return all tasks on all splits."""
    return [
        Part(name, task, level, seed)
        for name in datasets
        for seed in range(n_seeds)
        for task, level in (
            (RECALL, SOURCES[name].floor),
            (SURE, SOURCES[name].sure),
            *((TAIL, alpha) for alpha in ALPHAS),
        )
    ]


def measure(part: Part) -> Iterator[ResultRow]:
    """Yield what rules and the plain model come to; nothing but the sizes where no rules are found."""
    told = told_by(part.dataset, part.seed)
    model: Any = cp.GoalClassifier(
        told.model,
        cv="prefit",
        decision="sticky",
        random_state=0,
        **settings_of(part.method, part.alpha),
        confidence=None,
    )
    found = {"classes": float(told.choose.shape[1]), "rows": float(len(told.choose_y)), "rules": 0.0}
    try:
        model.fit(told.places("choose"), told.choose_y)
    except cp.goals.InfeasibleGoals:
        pass
    else:
        found["rules"] = float(len(model.rules_))
        numbers = _values(told, model, worst_recall if part.method != TAIL else tail, part.alpha)
        found |= dict(zip(QUANTITIES, numbers, strict=True))
    yield from long_rows(NAME, part.dataset, part.method, part.seed, found, alpha=part.alpha)


def blocks(rows: ResultsTable) -> Blocks:
    """Return recalls and tails on test rows, and their price."""
    known = values(rows, "dataset", "method", "alpha", "quantity")
    recalls, tails = [], []
    for dataset, task, level in dict.fromkeys(key[:3] for key in known):
        own = {name: known.get((dataset, task, level, name), np.empty(0)) for name in ("classes", *QUANTITIES)}
        kept = np.isfinite(own["chosen"])
        if not kept.any():
            continue
        own = {name: found[kept] if found.size == kept.size else found for name, found in own.items()}
        price = with_error(100 * (own["error_tested"] - own["plain_error_tested"]), 2, sign="+")
        shown = [f"{own[name].mean():.3f}" for name in ("plain_tested", "tested")]
        if task == TAIL:
            tails.append([dataset, f"{level:g}", *shown, f"{_coin(own).mean():.3f}", price])
        else:
            recalls.append([dataset, task, f"{level:g}", *shown, price])
    heads = ["set", "floor", "", "plain", "rules", "price, points of error"]
    return {
        "recalls": markdown_table(heads, recalls, n_words=2),
        "tails": markdown_table(["set", "alpha", "plain", "rules", "a coin", "price, points of error"], tails),
    }


def _coin(own: dict[str, FloatArray]) -> FloatArray:
    """Return the tail of the plain model on test rows where a coin decides so often that it errs as the rules do."""
    fair, plain = 1 - 1 / own["classes"], own["plain_error_tested"]
    share = np.maximum(0.0, (own["error_tested"] - plain) / (fair - plain))
    return np.asarray((1 - share) * own["plain_tested"] + share * fair)


EXPERIMENT = Experiment(NAME, "goals on more than two classes", wanted, measure, blocks, tuple(SOURCES), 5)
