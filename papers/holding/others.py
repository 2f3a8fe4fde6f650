"""Goals that hold on new rows where more than one threshold decides: class rules, rules that defer, and boosters.

Populations are generated, and goals lie around what a model has on the population. Each draw takes some rows, on which
rules are chosen, or a booster is trained inside of the goals and its mixture chosen on the part that is held out.
"""

import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from counterpoise import Deferral, GoalClassifier, LPBoostClassifier, Stopping
from counterpoise.goals import InfeasibleGoals, Table, parse_goal
from counterpoise.rules.cautions import Caution
from papers.arrays import AnyArray, IntArray
from papers.holding.experiment import COST, FEASIBLE, HOLDS, PLAIN, REACHED, VIOLATED
from papers.results import ResultRow

EXPERIMENT = "holding, others"
CONFIDENCE = 0.9
DRAWS_IN_BLOCK = 10
CLASSES, DEFERRAL, BOOSTER = "rules of three classes", "rules that defer", "LPBoost inside goals"
KINDS = CLASSES, DEFERRAL, BOOSTER
_SIZES = {CLASSES: 2000, DEFERRAL: 2000, BOOSTER: 3000}
_MODEL, _POPULATION = 3000, 40_000  # rows of the model that scores, and of the population
_DEFER = "later"


class Block(NamedTuple):
    """Some draws of one kind of rules."""

    dataset: str  # the kind
    seed: int
    learner: str = ""
    experiment: str = EXPERIMENT

    def __str__(self) -> str:
        return f"{self.dataset}, draws {self.seed * DRAWS_IN_BLOCK + 1} and more"


class Rows(NamedTuple):
    """A population, the model that scores it, and goals around what that has."""

    X: AnyArray
    y: IntArray
    model: Any
    goals: tuple[str, ...]


def wanted(n_blocks: int) -> list[Block]:
    """Return the blocks of draws."""
    return [Block(kind, seed) for seed in range(n_blocks) for kind in KINDS]


@cache
def rows_of(kind: str) -> Rows:
    """Return the population of a kind of rules, and its goals."""
    n_classes = 3 if kind == CLASSES else 2
    like = {"n_informative": 6, "flip_y": 0.15, "class_sep": 0.7, "random_state": len(kind)}
    X, y = make_classification(_MODEL + _POPULATION, 12, n_classes=n_classes, **like)
    model = LogisticRegression().fit(X[:_MODEL], y[:_MODEL])
    X, y = X[_MODEL:], y[_MODEL:]
    said = model.predict(X)
    if kind == CLASSES:
        recalls = [(said[y == one] == one).mean() for one in range(3)]
        weakest = int(np.argmin(recalls))
        goals = [f"recall(of={weakest}) >= {recalls[weakest] + 0.03:.3f}"]
        goals.append(f"positive_rate(of={weakest}) <= {(said == weakest).mean() + 0.08:.3f}")
        return Rows(X, y, model, tuple(goals))
    recall, false_positives = said[y == 1].mean(), said[y == 0].mean()
    goals = [f"recall >= {recall + 0.02:.3f}", f"false_positive_rate <= {false_positives + 0.05:.3f}"]
    goals += ["defer_rate <= 0.2"] if kind == DEFERRAL else []
    return Rows(X, y, model, tuple(goals))


def measure(block: Block) -> list[ResultRow]:
    """Return how often things happened in a block, with margins and without."""
    totals = dict[tuple[str, str], float]()
    for draw in range(DRAWS_IN_BLOCK):
        for way, quantity, value in run_draw(block.dataset, block.seed * DRAWS_IN_BLOCK + draw):
            totals[way, quantity] = totals.get((way, quantity), 0.0) + value
    goals, size = "; ".join(rows_of(block.dataset).goals), str(_SIZES[block.dataset])
    return [
        ResultRow(EXPERIMENT, block.dataset, size, way, block.seed, None, quantity, goals, value)
        for (way, quantity), value in totals.items()
    ]


def new_model(kind: str, level: float | None, seed: int) -> Any:
    """Return what is fitted in a draw."""
    known = rows_of(kind)
    options: dict[str, Any] = {"confidence": level, "random_state": seed}
    if kind == BOOSTER:
        tree = DecisionTreeClassifier(max_depth=4, random_state=seed)
        stopping = Stopping(validation_fraction=0.3)
        return LPBoostClassifier(tree, goals=known.goals, alpha=1.0, n_estimators=12, stopping=stopping, **options)
    deferral = Deferral(0.2, _DEFER) if kind == DEFERRAL else None
    return GoalClassifier(known.model, cv="prefit", goals=known.goals, deferral=deferral, **options)


def run_draw(kind: str, seed: int) -> Iterator[tuple[str, str, float]]:
    """Yield the way of choosing, what happened and its value, of one draw; nothing where the goals are infeasible."""
    known = rows_of(kind)
    rows = np.random.default_rng((seed, 7)).permutation(len(known.y))
    chosen, others = rows[: _SIZES[kind]], rows[_SIZES[kind] :]
    table, goals = Table(None, known.y[others]), [parse_goal(one) for one in known.goals]
    defers = {"defer_label": _DEFER} if kind == DEFERRAL else {}
    for way, level in ((PLAIN, None), (str(CONFIDENCE), CONFIDENCE)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Caution)
            try:
                model = new_model(kind, level, seed).fit(known.X[chosen], known.y[chosen])
            except InfeasibleGoals:
                return
            chances = model.decision_proba(known.X[others])
        holds = all(goal.evaluate_expected(chances, table, **defers).holds for goal in goals)
        is_reached = level is None or model.confidence_ is not None
        if level is None:
            yield way, FEASIBLE, 1.0
        wrong = chances[:, : known.y.max() + 1].sum(axis=1) - chances[np.arange(others.size), known.y[others]]
        for quantity, value in ((REACHED, is_reached), (HOLDS, holds), (VIOLATED, is_reached and not holds)):
            yield way, quantity, float(value)
        yield way, COST, float(wrong.mean())
