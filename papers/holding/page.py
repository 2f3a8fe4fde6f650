"""The page of ``holding``, as a function of its results table."""

from pathlib import Path

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
    measure,
    wanted,
)
from papers.markdown import markdown_table
from papers.results import ResultsTable
from papers.study import Study

_COMMAND = "python -m papers holding --output docs/results/holding"


def sections(rows: ResultsTable, _folder: Path) -> list[str]:
    """Return the paragraphs of the page."""
    return [_head(rows), *(_table(rows, level) for level in CONFIDENCES)]


def _head(rows: ResultsTable) -> str:
    n_draws = DRAWS_IN_BLOCK * len({row.seed for row in rows})
    return f"""# Goals that hold for new people

Made by `{_COMMAND}`; every count is in `results.parquet` beside this page. Rows that a gradient boosting model was not
trained on are the population. In each of up to {n_draws} draws some of them are the selection rows, on which the rule
of least error that meets the goals is chosen: plain, with `confidence`, and with normal margins of each goal by itself
(Bonferroni). *Holds*: all goals hold on the population. *Reached*: the classifier says that it reached its confidence.
The promise is that *reached and violated* happens with at most one minus the confidence. Cost is in points of error
above the plain choice. Cells in which the plain goals are infeasible in some draws have fewer."""


def _table(rows: ResultsTable, level: float) -> str:
    lines, way, other = [], str(level), f"{BONFERRONI} {level}"
    cells = sorted({(row.dataset, int(row.learner), row.split) for row in rows}, key=str)
    for dataset, size, title in cells:
        cell = rows.where(dataset=dataset, learner=str(size), split=title)
        n_draws = _sum(cell, PLAIN, FEASIBLE)
        if not n_draws:
            continue
        plain_cost = _sum(cell, PLAIN, COST) / n_draws
        n_other = _sum(cell, other, REACHED)
        counts = ((PLAIN, HOLDS), (way, HOLDS), (way, REACHED), (way, VIOLATED))
        shares = [f"{_sum(cell, *what) / n_draws:.2f}" for what in counts]
        shares.append(f"{100 * (_sum(cell, way, COST) / n_draws - plain_cost):.2f}")
        bonferroni = ["-", "-", "-"]
        if n_other:
            share, cost = _sum(cell, other, HOLDS) / n_other, _sum(cell, other, COST) / n_other
            bonferroni = [f"{n_other / n_draws:.2f}", f"{share:.2f}", f"{100 * (cost - plain_cost):.2f}"]
        lines.append([dataset, f"{size:,}", title, f"{n_draws:.0f}", *shares, *bonferroni])
    head = ["data", "rows", "goals", "draws", "plain holds", "holds", "reached", "reached and violated", "cost"]
    head += ["Bonferroni feasible", "holds", "cost"]
    return f"## Confidence {level:g}\n\n" + markdown_table(head, lines)


def _sum(rows: ResultsTable, way: str, quantity: str) -> float:
    return sum(row.value for row in rows.where(method=way, quantity=quantity))


STUDY = Study("holding", "goals that hold for new people", wanted, measure, sections, DATASETS, n_seeds=4, n_jobs=-1)
