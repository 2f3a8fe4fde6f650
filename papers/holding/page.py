"""The page of ``holding``, as a function of its results table."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from papers.holding import experiment, planned, trained
from papers.holding.experiment import (
    BONFERRONI,
    CONFIDENCES,
    COST,
    DATASETS,
    DRAWS_IN_BLOCK,
    FEASIBLE,
    HOLDS,
    PLAIN,
    REACHED,
    VIOLATED,
)
from papers.markdown import markdown_table
from papers.results import ResultRow, ResultsTable
from papers.study import Study

_COMMAND = "python -m papers holding --output docs/results/holding"
_N_BLOCKS = 4
_N_TRAINED = 5  # blocks of fits from end to end
_N_PLANNED = 5  # pilots of plans
_LEAST_ROWS, _LEAST_REACHED = 3000, 0.7  # of the cells that the rule is about
_ABOVE, _ERRORS, _CHEAPER = 0.05, 3.5, 0.9
_FEASIBLE_OFTEN = 0.9


class Cell(NamedTuple):
    """One data set, size and set of goals at one confidence."""

    dataset: str
    size: str
    goals: str
    n_draws: float
    plain: float  # the share of the draws in which the plain rule holds
    holds: float
    reached: float
    violated: float
    cost: float  # points of error above the plain rule
    other_feasible: float = 0.0  # Bonferroni
    other_holds: float = math.nan
    other_cost: float = math.nan


def wanted(datasets: Sequence[str], n_blocks: int) -> list[Any]:
    """Return the blocks of draws, on given scores and from end to end."""
    ends = [block for block in trained.wanted(_N_TRAINED) if block.dataset in datasets]
    return [*experiment.wanted(datasets, n_blocks), *ends, *planned.wanted(datasets, _N_PLANNED)]


def measure(block: Any) -> list[ResultRow]:
    """Return the rows of a block of any kind."""
    if isinstance(block, planned.Block):
        return planned.measure(block)
    return trained.measure(block) if isinstance(block, trained.Block) else experiment.measure(block)


def sections(rows: ResultsTable, _folder: Path) -> list[str]:
    """Return the paragraphs of the page."""
    given, ends = rows.where(experiment=experiment.EXPERIMENT), rows.where(experiment=trained.EXPERIMENT)
    by_level = {level: cells_of(given, str(level), f"{BONFERRONI} {level}") for level in CONFIDENCES}
    parts = [_head(given), _verdicts(by_level)]
    if len(ends):
        parts.append(_trained_section(cells_of(ends, str(trained.CONFIDENCE), "")))
    plans = rows.where(experiment=planned.EXPERIMENT)
    if len(plans):
        parts.append(planned.section(plans))
    return [*parts, *(_table(cells, f"## Confidence {level:g}") for level, cells in by_level.items())]


def cells_of(rows: ResultsTable, way: str, other: str) -> list[Cell]:
    """Return the cells of a way of choosing, beside another."""
    totals: dict[tuple[str, str, str, str, str], float] = {}
    for row in rows:
        key = (row.dataset, row.learner, row.split, row.method, row.quantity)
        totals[key] = totals.get(key, 0.0) + row.value
    cells = []
    for place in sorted({key[:3] for key in totals}, key=lambda one: (one[0], len(one[1]), one[1], one[2])):
        n_draws = totals.get((*place, PLAIN, FEASIBLE), 0.0)
        if not n_draws:
            continue
        share = {
            quantity: totals.get((*place, way, quantity), 0.0) / n_draws
            for quantity in (HOLDS, REACHED, VIOLATED, COST)
        }
        plain_cost = totals[*place, PLAIN, COST] / n_draws
        n_other = totals.get((*place, other, REACHED), 0.0)
        others = []
        if n_other:
            cost = 100 * (totals[*place, other, COST] / n_other - plain_cost)
            others = [n_other / n_draws, totals[*place, other, HOLDS] / n_other, cost]
        plain = totals[*place, PLAIN, HOLDS] / n_draws
        cost = 100 * (share[COST] - plain_cost)
        cells.append(Cell(*place, n_draws, plain, share[HOLDS], share[REACHED], share[VIOLATED], cost, *others))
    return cells


def _head(rows: ResultsTable) -> str:
    n_draws = DRAWS_IN_BLOCK * len({row.seed for row in rows})
    return f"""# Goals that hold for new people

Made by `{_COMMAND}`; every count is in `results.parquet` beside this page. Rows that a gradient boosting model was not
trained on are the population. Each of up to {n_draws} draws takes some of them, with replacement, as selection rows, on
which the rule of least error that meets the goals is chosen: plain, with `confidence`, and with normal margins of each
goal by itself (Bonferroni). *Holds*: all goals hold on the whole population. *Reached*: the classifier says that it
reached its confidence. *Reached and violated* is what the confidence promises to be rare. Cost is in points of error
above the plain choice. Cells in which the plain goals are infeasible in some draws have fewer.

The method is that of section 10 of the design, with its constants; COMPAS, ringnorm and generated sets were looked at
while it was written. Groups are men and women (Adult, ACS income, census income, credit default), and rows below and
above the median of one column (covertype: the distance to roads; w8a: column 148). Sets of goals are around what the
model has at the usual selection rate: see `papers/holding/experiment.py`."""


def _verdicts(by_level: dict[float, list[Cell]]) -> str:
    lines = []
    for level, cells in by_level.items():
        large = [cell for cell in cells if int(cell.size) >= _LEAST_ROWS and cell.reached >= _LEAST_REACHED]
        if not large:
            continue
        mean = sum(cell.holds for cell in large) / len(large)
        below = max((level - cell.holds) / _error(level, cell.n_draws) for cell in large)
        over = max((cell.violated - (1 - level)) / _error(level, cell.n_draws) for cell in cells)
        both = [cell for cell in large if cell.other_feasible >= _FEASIBLE_OFTEN]
        ratio = sum(cell.cost for cell in both) / sum(cell.other_cost for cell in both)
        plainer = [cell for cell in both if "odds" not in cell.goals]
        without = sum(cell.cost for cell in plainer) / sum(cell.other_cost for cell in plainer)
        is_within = level <= mean <= level + _ABOVE
        lines.append([
            f"{level:g}",
            f"{len(large)} of {len(cells)}",
            f"{sum(cell.plain for cell in large) / len(large):.3f}",
            f"{mean:.3f}: {_word(is_within)}",
            f"{below:.1f}: {_word(below <= _ERRORS)}",
            f"{over:.1f}: {_word(over <= _ERRORS)}",
            f"{ratio:.2f}: {_word(ratio <= _CHEAPER)}",
            f"{without:.2f}",
        ])  # fmt: skip
    heads = ["confidence", "cells", "plain holds", "mean share that holds", "worst cell, errors below", "reached and "]
    heads[-1] += "violated, errors above"
    heads += ["cost beside Bonferroni", "without equalized odds"]
    return f"""## The rule, written before the run, and what came out

In cells of at least {_LEAST_ROWS:,} rows in which the level is reached in at least {_LEAST_REACHED:.0%} of the draws:
the mean share that holds lies between the confidence and {_ABOVE} above it, and no cell is more than {_ERRORS} binomial
standard errors below. In every cell *reached and violated* is at most one minus the confidence plus {_ERRORS} such
errors. The cost is on average at most {_CHEAPER} of Bonferroni's, over cells where that is feasible in
{_FEASIBLE_OFTEN:.0%} of the draws. (In cells of equalized odds Bonferroni's margins lead to nearly trivial rules, which
makes the ratio look better than it is elsewhere: the last column leaves them out.)

{markdown_table(heads, lines)}"""


def _error(level: float, n_draws: float) -> float:
    return math.sqrt(level * (1 - level) / max(n_draws, 1.0))


def _word(is_met: bool) -> str:
    return "met" if is_met else "**missed**"


def _trained_section(cells: Sequence[Cell]) -> str:
    reached = [cell for cell in cells if cell.reached >= _LEAST_REACHED]
    mean = sum(cell.holds for cell in reached) / max(len(reached), 1)
    plain = sum(cell.plain for cell in reached) / max(len(reached), 1)
    title = f"""## From end to end

`GoalClassifier(model, cv="auto", confidence={trained.CONFIDENCE:g})`: folds score the selection rows, the mean of
their models decides, and all of it is judged on up to 30,000 other rows. The shift between the two is inside of the
margin. Over the {len(reached)} cells where the level is reached in at least {_LEAST_REACHED:.0%} of the draws,
{mean:.3f} hold, and {plain:.3f} of the plain rules."""
    return _table(cells, title)


def _table(cells: Iterable[Cell], title: str) -> str:
    lines = []
    for cell in cells:
        others = ["-", "-", "-"]
        if cell.other_feasible:
            others = [f"{cell.other_feasible:.2f}", f"{cell.other_holds:.2f}", f"{cell.other_cost:.2f}"]
        size = f"{int(cell.size):,}" if cell.size.isdigit() else cell.size
        shares = [f"{share:.2f}" for share in (cell.plain, cell.holds, cell.reached, cell.violated, cell.cost)]
        lines.append([cell.dataset, size, cell.goals, f"{cell.n_draws:.0f}", *shares, *others])
    head = ["data", "rows", "goals", "draws", "plain holds", "holds", "reached", "reached and violated", "cost"]
    head += ["Bonferroni feasible", "holds", "cost"]
    return f"{title}\n\n" + markdown_table(head, lines)


STUDY = Study(
    "holding", "goals that hold for new people", wanted, measure, sections, DATASETS, n_seeds=_N_BLOCKS, n_jobs=-1
)
