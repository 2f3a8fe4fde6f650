"""Plans beside fits: the margins that a pilot of 2,000 rows predicts, and those of rules chosen on more rows.

Each block draws one pilot from the population of a data set, plans the goals of every set of goals at a number of rows
(``counterpoise.plan``), and fits rules of a few draws of that many rows.

The rule, written before the run. A goal of a set of goals at a size counts where the confidence is reached in at least
0.7 of the draws and of the plans, and where the goal binds: its margin is on average at most three standard errors, so
that chance sets it. For each data set and size, predicted over actual width of these margins, the mean over plans by
the mean over draws, has a geometric mean between 1 / 1.2 and 1.2.
"""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from counterpoise import GoalClassifier, plan
from counterpoise.goals import Goal, InfeasibleGoals, NoRows
from counterpoise.rules.cautions import Caution
from papers.holding.experiment import REACHED, goal_sets, population
from papers.markdown import markdown_table
from papers.results import ResultRow, ResultsTable

EXPERIMENT = "holding, planned"
PILOT = 2000
SIZES = 3000, 10_000
CONFIDENCE = 0.9
DRAWS_IN_BLOCK = 4
PREDICTED, ACTUAL = "plan", "fit"
MARGIN, ERROR = "margin", "standard error"
_LEAST_REACHED, _BINDS, _WITHIN = 0.7, 3.0, 1.2


class Block(NamedTuple):
    """One pilot, and some draws of one size, from one data set."""

    dataset: str
    learner: str  # the number of selection rows
    seed: int
    experiment: str = EXPERIMENT

    def __str__(self) -> str:
        return f"{self.dataset}, {int(self.learner):,} rows, pilot {self.seed + 1}"


def wanted(datasets: Sequence[str], n_blocks: int) -> list[Block]:
    """Return the blocks, the first pilot of every data set and size before the second."""
    return [Block(name, str(size), seed) for seed in range(n_blocks) for name in datasets for size in SIZES]


def measure(block: Block) -> list[ResultRow]:
    """Return for each goal the sums of margins that were predicted and found, and how many there are."""
    totals = dict[tuple[str, str, str], float]()
    for title, (goals, by) in goal_sets(block.dataset).items():
        for way, quantity, value in _margins(block, goals, by):
            totals[title, way, quantity] = totals.get((title, way, quantity), 0.0) + value
    return [
        ResultRow(EXPERIMENT, block.dataset, block.learner, way, block.seed, None, quantity, title, value)
        for (title, way, quantity), value in totals.items()
    ]


def _margins(block: Block, goals: tuple[Goal, ...], by: tuple[str, ...]) -> Iterator[tuple[str, str, float]]:
    """Yield the way, the quantity and its value: of one plan, and of each draw."""
    size, known = int(block.learner), population(block.dataset)
    draws: dict[tuple[str, int], Any] = {(PREDICTED, PILOT): [0]}
    draws[ACTUAL, size] = range(DRAWS_IN_BLOCK)
    for (way, n_rows), numbers in draws.items():
        for number in numbers:
            generator = np.random.default_rng((block.seed, number, n_rows, 1 if way == ACTUAL else 4))
            rows = generator.integers(0, len(known.y), n_rows)
            y, scores = known.y[rows], known.scores[rows]
            columns: dict[str, Any] = {
                "sensitive_features": {"group": known.group[rows]},
                "baseline": known.deployed[rows],
            }
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", Caution)
                try:
                    if way == PREDICTED:
                        (point,) = plan(goals, y, scores, rows=[size], confidence=CONFIDENCE, by=by, **columns).points
                        is_reached, found = (
                            point.is_reached,
                            [(one.margin, one.standard_error) for one in point.margins],
                        )
                    else:
                        model = GoalClassifier([scores], cv="prefit", goals=goals, by=by, confidence=CONFIDENCE)
                        model.fit(scores[:, None], y, **columns)
                        is_reached = model.confidence_ is not None
                        found = [
                            (one.goal.sign * (one.bound - one.value), one.standard_error) for one in model.margins_
                        ]
                except (InfeasibleGoals, NoRows):
                    yield way, REACHED, 0.0
                    continue
            yield way, REACHED, float(is_reached)
            for place, (margin, error) in enumerate(found):
                if is_reached and margin is not None and error is not None:
                    yield way, f"{MARGIN} {place}", margin
                    yield way, f"{ERROR} {place}", error


def section(rows: ResultsTable) -> str:
    """Return the paragraphs of the page about plans."""
    totals: dict[tuple[str, str, str, str, str], float] = {}
    blocks: dict[tuple[str, str], set[int]] = {}
    for row in rows:
        key = (row.dataset, row.learner, row.split, row.method, row.quantity)
        totals[key] = totals.get(key, 0.0) + row.value
        blocks.setdefault((row.dataset, row.learner), set()).add(row.seed)
    lines: list[list[str]] = []
    all_ratios: list[float] = []
    for (dataset, size), seeds in sorted(blocks.items(), key=lambda one: (one[0][0], int(one[0][1]))):
        ratios = []
        for name, rows_of, title, way, quantity in totals:
            if (name, rows_of, way) != (dataset, size, ACTUAL) or not quantity.startswith(MARGIN):
                continue
            at, place = (dataset, size, title), quantity.removeprefix(MARGIN)
            n_plans, n_fits = (totals.get((*at, one, REACHED), 0.0) for one in (PREDICTED, ACTUAL))
            if n_plans < _LEAST_REACHED * len(seeds) or n_fits < _LEAST_REACHED * len(seeds) * DRAWS_IN_BLOCK:
                continue
            actual, error = (totals[*at, ACTUAL, f"{what}{place}"] / n_fits for what in (MARGIN, ERROR))
            if 0 < actual <= _BINDS * error:
                ratios.append(totals[*at, PREDICTED, quantity] / n_plans / actual)
        if not ratios:
            continue
        mean = float(np.exp(np.log(np.maximum(ratios, 1e-9)).mean()))
        is_met, all_ratios = 1 / _WITHIN <= mean <= _WITHIN, all_ratios + ratios
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        verdict = "met" if is_met else "**missed**"
        lines.append([dataset, f"{int(size):,}", str(len(ratios)), f"{mean:.2f}: {verdict}", spread])
    n_within = sum(1 / _WITHIN <= ratio <= _WITHIN for ratio in all_ratios)
    table = markdown_table(["data", "rows", "goals", "predicted / actual", "single goals"], lines)
    return f"""## Plans

`cp.plan` on a pilot of {PILOT:,} rows, beside fits of {SIZES[0]:,} and {SIZES[1]:,} rows at a confidence of
{CONFIDENCE:g}: the mean margin of {max(map(len, blocks.values()), default=0)} plans by that of
{DRAWS_IN_BLOCK * max(map(len, blocks.values()), default=0)} fits, for each goal that binds (its margin is at most
{_BINDS:g} standard errors) where the confidence is reached in at least {_LEAST_REACHED:.0%} of both. The rule, written
before the run: the geometric mean over the goals of a data set and size lies between 1 / {_WITHIN} and {_WITHIN}. Of
all {len(all_ratios)} goals by themselves {n_within} do: a goal that binds only just, beside others, is hard to foresee.

How the rows of a pilot are spread was chosen after two earlier sets of pilots of the same data sets had been looked at,
by which four and then two of the twelve lines were missed, and a few plans of census income. The pilots here are new
ones; the fits are the same.

{table}"""
