"""Goals that hold on new rows from end to end: folds score the selection rows, and the mean of their models decides.

Each draw takes some rows of a data set, without replacement. A ``GoalClassifier`` with ``cv="auto"`` is trained on
them, and judged on all other rows. The goals lie around what a model trained on as many rows has.
"""

import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from counterpoise import GoalClassifier
from counterpoise.goals import InfeasibleGoals, Table
from counterpoise.rules.cautions import Caution
from papers.arrays import AnyArray, FloatArray, IntArray
from papers.holding.experiment import COST, FEASIBLE, HOLDS, PLAIN, REACHED, VIOLATED, labelled, sets_of_goals
from papers.results import ResultRow

EXPERIMENT = "holding, trained"
DATASETS = "adult", "acs-income"
SIZES = 3000, 10_000
LEARNERS = "LightGBM", "HistGradientBoosting"
CONFIDENCE = 0.9
DRAWS_IN_BLOCK = 10
_SETS = "two rates", "parity", "churn, recall and parity"
_DEPLOYED = 2000  # rows that the deployed model was trained on
_MOST_ROWS, _MOST_JUDGED = 60_000, 30_000


class Block(NamedTuple):
    """Some draws of one size from one data set."""

    dataset: str
    learner: str
    seed: int
    experiment: str = EXPERIMENT

    def __str__(self) -> str:
        return f"{self.dataset}, {self.learner}, draws {self.seed * DRAWS_IN_BLOCK + 1} and more"


def wanted(n_blocks: int) -> list[Block]:
    """Return the blocks of draws."""
    return [
        Block(name, f"{learner}, {size}", seed)
        for seed in range(n_blocks)
        for name in DATASETS
        for size in SIZES
        for learner in LEARNERS
    ]


class Rows(NamedTuple):
    """Labelled rows with groups and the answers of a deployed model, which was trained on others."""

    X: AnyArray
    y: IntArray
    group: AnyArray
    deployed: IntArray


@cache
def rows_of(name: str) -> Rows:
    """Return the rows of a data set."""
    X, y, group, categorical = labelled(name)
    older = HistGradientBoostingClassifier(categorical_features=categorical, random_state=0)
    older.fit(X[:_DEPLOYED], y[:_DEPLOYED])
    rest = slice(_DEPLOYED, _MOST_ROWS)
    return Rows(X[rest], y[rest], group[rest], older.predict(X[rest]))


def new_model(learner: str) -> Any:
    """Return a model that is not fitted."""
    if learner == "LightGBM":
        from lightgbm import LGBMClassifier  # noqa: PLC0415 - optional

        return LGBMClassifier(verbose=-1, random_state=0, n_jobs=1)
    return HistGradientBoostingClassifier(random_state=0)


@cache
def goals_at(name: str, learner: str, size: int) -> dict[str, Any]:
    """Return sets of goals around what a model that is trained on so many rows has on others."""
    known = rows_of(name)
    rows = np.random.default_rng(10**6).permutation(len(known.y))
    trained, others = rows[:size], rows[size:]
    scores = new_model(learner).fit(known.X[trained], known.y[trained]).predict_proba(known.X[others])[:, 1]
    y = known.y[others]
    decisions = scores > np.quantile(scores, 1.0 - y.mean())
    sets = sets_of_goals(decisions, y, known.group[others], known.deployed[others])
    return {title: sets[title] for title in _SETS}


def measure(block: Block) -> list[ResultRow]:
    """Return for each set of goals how often things happened in a block, with margins and without."""
    learner, size = block.learner.split(", ")
    totals = dict[tuple[str, str, str], float]()
    for draw in range(DRAWS_IN_BLOCK):
        for title, way, quantity, value in run_draw(
            block.dataset, learner, int(size), block.seed * DRAWS_IN_BLOCK + draw
        ):
            totals[title, way, quantity] = totals.get((title, way, quantity), 0.0) + value
    return [
        ResultRow(EXPERIMENT, block.dataset, block.learner, way, block.seed, None, quantity, title, value)
        for (title, way, quantity), value in totals.items()
    ]


def run_draw(name: str, learner: str, size: int, seed: int) -> Iterator[tuple[str, str, str, float]]:
    """Yield the goals, the way of choosing, what happened and its value, of one draw."""
    known = rows_of(name)
    rows = np.random.default_rng((seed, size)).permutation(len(known.y))
    chosen, others = rows[:size], rows[size : size + _MOST_JUDGED]
    trained = GoalClassifier(new_model(learner), random_state=seed, confidence=None)
    columns: dict[str, Any] = {"sensitive_features": {"group": known.group[chosen]}, "baseline": known.deployed[chosen]}
    trained.fit(known.X[chosen], known.y[chosen], **columns)
    scores = trained.estimators_[0].predict_proba(known.X[others])[:, 1]
    y, group = known.y[others], known.group[others]
    table = Table(None, y, {"group": group}, known.deployed[others])
    for title, (goals, by) in goals_at(name, learner, size).items():
        for way, level in ((PLAIN, None), (str(CONFIDENCE), CONFIDENCE)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", Caution)
                try:
                    decided = trained.rebalance(goals=goals, by=by, confidence=level)
                except InfeasibleGoals:
                    break
            decisions = decide(decided, scores, group)
            holds = all(goal.evaluate(decisions, table).holds for goal in goals)
            is_reached = level is None or decided.confidence_ is not None
            if level is None:
                yield title, way, FEASIBLE, 1.0
            yield title, way, REACHED, float(is_reached)
            yield title, way, HOLDS, float(holds)
            yield title, way, VIOLATED, float(is_reached and not holds)
            yield title, way, COST, float((decisions != y).mean())


def decide(decided: GoalClassifier, scores: FloatArray, group: AnyArray) -> IntArray:
    """Return what ``predict`` returns, given the scores of its model: each goal costs no further predictions."""
    levels = decided.rules_[0].thresholds
    own = [levels.get(f"group={name}", levels.get("all", np.inf)) for name in ("A", "B")]
    return np.asarray(scores > np.where(group == "A", *own), dtype=np.int64)
