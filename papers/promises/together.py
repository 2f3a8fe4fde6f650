"""False alarms of a whole monitor: nine goals together, all exactly at their bounds, looked at after every batch."""

from typing import NamedTuple

import numpy as np

from counterpoise import Monitor
from papers.tables import ResultRow

EXPERIMENT, DATASET = "nine goals together", "together"
N_ROWS, BATCH, STREAMS_IN_BLOCK = 20_000, 500, 5
RISK = 0.05
_DEFERRED, _CHANGED, _ASK = 0.05, 0.05, 2
STREAMS, FAILS, CHANGES = "streams", "ever fails", "ever changes"
GOALS = (
    "selection_rate <= 0.4",
    "recall(sex=F) >= 0.6",
    "positive_rate(sex=F) >= 1.0 * positive_rate(sex=M)",
    "min_ratio(selection_rate, by=sex) >= 1.0",
    "max_difference(recall, by=sex) <= 0.0",
    "precision >= 0.75",
    "churn <= 0.1",
    "cost({1->0: amount}) <= 20",
    "defer_rate <= 0.05",
)


class Block(NamedTuple):
    """Some streams."""

    dataset: str
    learner: str
    method: str
    seed: int


def wanted(n_blocks: int) -> list[Block]:
    """Return the blocks in order."""
    return [Block(DATASET, f"{len(GOALS)} goals", "Monitor", seed) for seed in range(n_blocks)]


def measure(block: Block) -> list[ResultRow]:
    """Return how many streams ever have a wrong verdict: with the truth at the bound every "fails" is one."""
    rng = np.random.default_rng([53, block.seed])
    values = dict.fromkeys((STREAMS, FAILS, CHANGES), 0.0)
    for _ in range(STREAMS_IN_BLOCK):
        monitor = Monitor(GOALS, classes=[0, 1], defer_label=_ASK, largest_value=1000, groups={"sex": ["F", "M"]})
        for _ in range(N_ROWS // BATCH):
            monitor.update(**make_batch(rng, BATCH))
        values[STREAMS] += 1
        values[FAILS] += monitor.verdicts.fails
        values[CHANGES] += any(one.changed_at is not None for one in monitor.verdicts)
    return [ResultRow(EXPERIMENT, *block, None, name, "", value) for name, value in values.items()]


def make_batch(rng: np.random.Generator, n_rows: int) -> dict[str, object]:
    """Return rows of which each goal's value on the population is its bound.

    Half of the rows are positive; 0.6 of those and 0.2 of the others are selected, and 0.05 of all deferred.
    """
    y = rng.integers(0, 2, n_rows)
    draws = rng.random(n_rows)
    is_deferred, is_changed = draws > 1 - _DEFERRED, rng.random(n_rows) < _CHANGED / (1 - _DEFERRED)
    decided = (draws < np.where(y == 1, 0.6, 0.2)).astype(np.int64)
    answers, baseline = np.where(is_deferred, _ASK, decided), np.where(is_changed, 1 - decided, decided)
    amounts = 20 / (0.5 * 0.35) * rng.choice([0.5, 1.5], n_rows)
    columns = {"sex": rng.choice(["F", "M"], n_rows, p=[0.4, 0.6]), "amount": amounts}
    return {"answers": answers, "y": y, "sensitive_features": columns, "baseline": baseline}
