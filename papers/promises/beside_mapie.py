"""What a proof costs beside MAPIE's risk control of binary classifiers: the same scores, rows, goal and confidence.

Populations are those of ``populations``. MAPIE chooses among its own 100 thresholds, those above which
there is a row, with the test that it takes by default, and of those that pass the one with the best second metric.
"""

from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from counterpoise import GoalClassifier, Proof
from counterpoise.goals import InfeasibleGoals
from papers.arrays import AnyArray, IntArray
from papers.comparison.peers import Column, mapie_thresholds, quietly
from papers.promises.populations import Population, population
from papers.tables import ResultRow

EXPERIMENT = "proof, beside MAPIE"
DATASETS = "adult", "acs-income"
SIZES = 1000, 3000, 10_000
RISKS = "recall", "precision"
CONFIDENCE = 0.9
DRAWS_IN_BLOCK = 25
OURS, MAPIE = "counterpoise", "MAPIE"
DRAWS, PROVEN, VIOLATED, COST, BOTH = "draws", "proven", "violated", "cost where both prove", "both prove"
OVER = 0.05  # by which floors are above what the usual selection rate has
_SECOND = {"recall": "precision", "precision": "recall"}  # what MAPIE maximises among the thresholds that pass


class Block(NamedTuple):
    """Some draws of one size from one data set, for one goal."""

    dataset: str
    learner: str  # the metric and the number of selection rows
    seed: int
    experiment: str = EXPERIMENT

    def __str__(self) -> str:
        return f"{self.dataset}, {self.learner} rows, draws {self.seed * DRAWS_IN_BLOCK + 1} and more"


def wanted(n_blocks: int) -> list[Block]:
    """Return the blocks of draws; none where MAPIE is not installed."""
    if find_spec("mapie") is None:
        return []
    return [
        Block(dataset, f"{risk}, {size}", seed)
        for seed in range(n_blocks)
        for dataset in DATASETS
        for size in SIZES
        for risk in RISKS
    ]


def measure(block: Block) -> list[ResultRow]:
    """Return how often each proves the goal, how often that is wrong, and the error where both prove it."""
    risk, size = block.learner.split(", ")
    known, totals = population(block.dataset), dict[tuple[str, str], float]()
    for draw in range(DRAWS_IN_BLOCK):
        seed = block.seed * DRAWS_IN_BLOCK + draw
        rows = np.random.default_rng((seed, int(size))).integers(0, len(known.y), int(size))
        for who, quantity, value in run_draw(known, rows, risk):
            totals[who, quantity] = totals.get((who, quantity), 0.0) + value
    return [
        ResultRow(EXPERIMENT, block.dataset, block.learner, who, block.seed, None, quantity, "", value)
        for (who, quantity), value in totals.items()
    ]


def floor_of(known: Population, risk: str) -> float:
    """Return the floor of a metric: above what the usual selection rate has."""
    above = known.scores > np.quantile(known.scores, 1.0 - known.y.mean())
    return round(_value(risk, above, known.y) + OVER, 3)


def run_draw(
    known: Population, rows: IntArray, risk: str, peer: Callable[..., float | None] | None = None
) -> Iterator[tuple[str, str, float]]:
    """Yield who chose, what happened and its value."""
    floor, outcomes = floor_of(known, risk), {}
    for who, choose in ((OURS, _ours), (MAPIE, peer or _mapie)):
        threshold = choose(known, rows, risk, floor)
        yield who, DRAWS, 1.0
        yield who, PROVEN, float(threshold is not None)
        if threshold is None:
            continue
        above = known.scores > threshold
        outcomes[who] = float((above != known.y).mean())
        yield who, VIOLATED, float(_value(risk, above, known.y) < floor)
    if len(outcomes) == 2:  # noqa: PLR2004 - both
        for who, error in outcomes.items():
            yield who, BOTH, 1.0
            yield who, COST, error


def _value(risk: str, above: AnyArray, y: IntArray) -> float:
    rows = y == 1 if risk == "recall" else above
    return float((above if risk == "recall" else y == 1)[rows].mean()) if rows.any() else 1.0


def _ours(known: Population, rows: IntArray, risk: str, floor: float) -> float | None:
    selection, goals = known.take(rows), [f"{risk} >= {floor}"]
    model: Any = GoalClassifier([Column()], cv="prefit", goals=goals, confidence=Proof(CONFIDENCE), random_state=0)
    try:
        model.fit(selection.scores[:, None], selection.y)
    except InfeasibleGoals:
        return None
    return float(model.rules_[0].thresholds["all"]) if model.proof_.is_proven else None


def _mapie(known: Population, rows: IntArray, risk: str, floor: float) -> float | None:
    controller = import_module("mapie.risk_control").BinaryClassificationController
    column = Column()

    def calibrated() -> float | None:
        model = controller(
            column.predict_proba,
            risk,
            target_level=floor,
            confidence_level=CONFIDENCE,
            best_predict_param_choice=_SECOND[risk],
            list_predict_params=mapie_thresholds(known.scores[rows]),
        )
        model.calibrate(known.scores[rows][:, None], known.y[rows])
        best = model.best_predict_param
        return None if best is None else float(best)

    return quietly(calibrated)  # type: ignore[no-any-return]
