"""The page of ``risks_under_shift``, as a function of its results table."""

from pathlib import Path

import numpy as np

from counterpoise.runs.results import ResultsTable
from papers.markdown import markdown_table
from papers.risks_under_shift.experiment import (
    BALL,
    DATASETS,
    ERROR,
    MEAN,
    N_CHOOSE,
    OBJECTIVES,
    PLAIN,
    SPREAD,
    TAIL,
    WORST,
    measure,
    wanted,
)
from papers.study import Study

_COMMAND = "python -m papers risks-under-shift --output docs/results/risks_under_shift"
_QUANTITIES = (ERROR, SPREAD, WORST, TAIL)


def sections(rows: ResultsTable, _folder: Path) -> list[str]:
    """Return the paragraphs of the page."""
    parts = [_head(rows)]
    for dataset in dict.fromkeys(row.dataset for row in rows):
        for n_rows in N_CHOOSE:
            found = rows.where(dataset=dataset, settings=f"chosen on {n_rows}")
            parts += [f"## {dataset}, chosen on {n_rows:,} rows", _table(found)]
    return [*parts, _verdict(rows)]


def _head(rows: ResultsTable) -> str:
    n_seeds = len({row.seed for row in rows})
    return f"""# One pool, several risks, and a population that shifts

Made by `{_COMMAND}`; every number is in `results.parquet` beside this page. One pool of gradient-boosted trees and
logistic regressions on half of the rows; mixtures of it chosen for each objective on held-out rows; errors on test
rows in %, mean over {n_seeds} splits and its standard error. *{WORST.capitalize()}*: the largest error among
the lowest and the highest fifths by each feature; *{SPREAD}*: of these. *{TAIL.capitalize()}*: the loss of the
worst-off tenth of the rows."""


def _verdict(rows: ResultsTable) -> str:
    """Say what the calibrated ball costs and buys against the mean, split by split."""
    lines = []
    for dataset in dict.fromkeys(row.dataset for row in rows):
        for n_rows in N_CHOOSE:
            found = rows.where(dataset=dataset, settings=f"chosen on {n_rows}")
            cells = [
                _cell(found.where(method=BALL, quantity=what), found.where(method=MEAN, quantity=what))
                for what in _QUANTITIES
            ]
            lines.append([f"{dataset}, {n_rows:,} rows", *cells])
    return f"""## What the calibrated ball buys: its figures less those of the mean

{markdown_table(["chosen on", *_QUANTITIES], lines)}

Below zero is a gain. Models that answer yes or no leave a mixture one way to hedge: to answer differently from the best
model on some rows. That shortens the tail and costs errors everywhere, in the sub-populations too."""


def _table(rows: ResultsTable) -> str:
    lines = [
        [name, *(_cell(rows.where(method=name, quantity=what)) for what in _QUANTITIES)]
        for name in (PLAIN, *OBJECTIVES)
    ]
    return markdown_table(["chosen for", *_QUANTITIES], lines)


def _cell(rows: ResultsTable, less: ResultsTable | None = None) -> str:
    values = 100 * np.array([row.value for row in rows])
    if less is not None:
        values -= 100 * np.array([row.value for row in less])
    spread = values.std(ddof=1) / np.sqrt(values.size) if values.size > 1 else 0.0
    return f"{values.mean():{'.2f' if less is None else '+.2f'}} ± {spread:.2f}"


STUDY = Study("risks-under-shift", "one pool chosen for several risks", wanted, measure, sections, DATASETS, n_seeds=5)
