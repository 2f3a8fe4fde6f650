"""Goals that hold on new rows where a person has several rows: margins that count persons, and margins that count rows.

Each draw takes persons with 1 to 20 rows each until there are enough rows. In one kind of draw all rows of a person are
the same row of the population; in the other kind about half of them are, and the others are any rows. Both are samples
of the population, on which the rules are judged.

Rule, written before the run: with ids, at least the confidence minus 3.5 binomial standard errors of the draws hold in
every cell where the level is reached in 70 % of them; without ids less than 0.8 hold on average over all cells.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from papers.arrays import IntArray
from papers.holding.experiment import PLAIN, goal_sets, population, run_draw
from papers.results import ResultRow

EXPERIMENT = "holding, persons"
DATASETS = "adult", "acs-income"
SIZES = 3000, 10_000
ALIKE = {"all alike": 1.0, "half alike": 0.5}  # the part of a person's rows that are the same
CONFIDENCE = 0.9
WITH_IDS, WITHOUT_IDS = f"{CONFIDENCE} with ids", f"{CONFIDENCE} without ids"
DRAWS_IN_BLOCK = 20
_SETS = "one rate", "parity", "churn, recall and parity"
_MOST_OF_PERSON = 20  # rows


class Block(NamedTuple):
    """Some draws of persons from one data set."""

    dataset: str
    learner: str  # the number of selection rows, and how many of a person's rows are alike
    seed: int
    experiment: str = EXPERIMENT

    def __str__(self) -> str:
        return f"{self.dataset}, persons, {self.learner}, draws {self.seed * DRAWS_IN_BLOCK + 1} and more"


def wanted(n_blocks: int) -> list[Block]:
    """Return the blocks of draws."""
    return [
        Block(name, f"{size}, {kind}", seed)
        for seed in range(n_blocks)
        for name in DATASETS
        for size in SIZES
        for kind in ALIKE
    ]


def draw_persons(n_population: int, size: int, share: float, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Return rows of the population and the person of each; of a person's rows about a share is the same row."""
    n_of_person = rng.integers(1, _MOST_OF_PERSON + 1, size)
    persons = np.repeat(np.arange(size), n_of_person)[:size]
    own, others = rng.integers(0, n_population, (2, size))
    return np.where(rng.random(size) < share, own[persons], others), persons


def measure(block: Block) -> list[ResultRow]:
    """Return for each set of goals how often things happened in a block, with ids and without."""
    size, kind = block.learner.split(", ")
    totals = dict[tuple[str, str, str], float]()
    for draw in range(DRAWS_IN_BLOCK):
        for key, value in outcomes(block.dataset, int(size), kind, block.seed * DRAWS_IN_BLOCK + draw):
            totals[key] = totals.get(key, 0.0) + value
    return [
        ResultRow(EXPERIMENT, block.dataset, block.learner, way, block.seed, None, quantity, title, value)
        for (title, way, quantity), value in totals.items()
    ]


def outcomes(name: str, size: int, kind: str, seed: int) -> Iterator[tuple[tuple[str, str, str], float]]:
    """Yield the goals, the way of choosing and what happened, with its value, of one draw."""
    known, sets = population(name), goal_sets(name)
    rows, persons = draw_persons(len(known.y), size, ALIKE[kind], np.random.default_rng((seed, size)))
    for title in _SETS:
        for ids, own_way in ((persons, WITH_IDS), (None, WITHOUT_IDS)):
            ways = {str(CONFIDENCE): own_way} | ({PLAIN: PLAIN} if ids is None else {})
            for way, quantity, value in run_draw(known, rows, *sets[title], persons=ids):
                if way in ways:
                    yield (title, ways[way], quantity), value
