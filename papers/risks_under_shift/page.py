"""The page of ``risks_under_shift``, as a function of its results table."""

from pathlib import Path

import numpy as np

from counterpoise.runs.results import ResultsTable
from papers.arrays import FloatArray
from papers.markdown import markdown_table
from papers.risks_under_shift.experiment import (
    BALL,
    COIN,
    DATASETS,
    ERROR,
    MEAN,
    N_CHOOSE,
    OBJECTIVES,
    PLAIN,
    POOL,
    SPREAD,
    TAIL,
    THRESHOLDS,
    WORST,
    measure,
    wanted,
)
from papers.study import Study

_COMMAND = "python -m papers risks-under-shift --output docs/results/risks_under_shift"
_QUANTITIES = (ERROR, SPREAD, WORST, TAIL)
_FAMILIES = {POOL: "the answers of the pool", THRESHOLDS: "the thresholds of its first model"}


def sections(rows: ResultsTable, _folder: Path) -> list[str]:
    """Return the paragraphs of the page."""
    parts = [_head(rows), _verdicts(rows)]
    for dataset, n_rows, family in _cases(rows):
        found = rows.where(dataset=dataset, learner=family, settings=f"chosen on {n_rows}")
        parts += [f"## {dataset}, chosen on {n_rows:,} rows: {_FAMILIES[family]}", _table(found)]
    return parts


def _cases(rows: ResultsTable) -> list[tuple[str, int, str]]:
    datasets = dict.fromkeys(row.dataset for row in rows)
    return [(dataset, n_rows, family) for dataset in datasets for n_rows in N_CHOOSE for family in _FAMILIES]


def _head(rows: ResultsTable) -> str:
    n_seeds = len({row.seed for row in rows})
    return f"""# Several risks, and a population that shifts

Made by `{_COMMAND}`; every number is in `results.parquet` beside this page. A pool of gradient-boosted trees and
logistic regressions is trained on half of the rows. Mixtures are chosen for each objective on held-out rows: of
the answers of the pool, and of the thresholds of its first model, gradient boosting on all these rows. Errors are on
test rows in %, mean over {n_seeds} splits and its standard error. *{WORST.capitalize()}*: the largest error among
the lowest and the highest fifths by each feature; *{SPREAD}*: of these. *{TAIL.capitalize()}*: the loss of the
worst-off tenth of the rows.

Two controls: the mixture chosen for the mean, and a plain model where a fair coin decides about some rows, as
many as give it the average error of the ball. **A ball helps under shift where its {WORST} or its
{SPREAD} is more than two standard errors below that of the mean**, split by split."""


def _verdicts(rows: ResultsTable) -> str:
    """Compare the calibrated ball with both controls, split by split, by the rule of the head."""
    lines, n_helps = [], 0
    for dataset, n_rows, family in _cases(rows):
        found = rows.where(dataset=dataset, learner=family, settings=f"chosen on {n_rows}")
        ball = {what: _values(found, BALL, what) for what in _QUANTITIES}
        others = {control: {what: _values(found, control, what) for what in ball} for control in (MEAN, COIN)}
        less = {control: {what: ball[what] - one[what] for what in ball} for control, one in others.items()}
        n_helps += any(one.mean() < -2 * _error_of(one) for one in (less[MEAN][WORST], less[MEAN][SPREAD]))
        for control, differences in less.items():
            cells = [f"{one.mean():+.2f} ± {_error_of(one):.2f}" for one in differences.values()]
            lines.append([f"{dataset}, {n_rows:,} rows", family, control, *cells])
    return f"""## What the calibrated ball buys

Its figures less those of a control; below zero is a gain.

{markdown_table(["chosen on", "mixture of", "less", *_QUANTITIES], lines, n_words=3)}

By the rule the ball helps in {n_helps} of {len(_cases(rows))} cases. A mixture has one way to hedge: to decide
otherwise than the best model or threshold about some rows."""


def _values(rows: ResultsTable, method: str, quantity: str) -> FloatArray:
    """Return the values of a method in %, by split."""
    found = sorted((row.seed, row.value) for row in rows.where(method=method, quantity=quantity))
    return 100 * np.array([value for _, value in found])


def _error_of(values: FloatArray) -> float:
    """Return the standard error of the mean; 0 of one value."""
    return float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else 0.0


def _table(rows: ResultsTable) -> str:
    lines = []
    for name in (PLAIN, COIN, *OBJECTIVES):
        found = [_values(rows, name, what) for what in _QUANTITIES]
        lines.append([name, *(f"{one.mean():.2f} ± {_error_of(one):.2f}" for one in found)])
    return markdown_table(["chosen for", *_QUANTITIES], lines)


STUDY = Study("risks-under-shift", "mixtures chosen for several risks", wanted, measure, sections, DATASETS, n_seeds=5)
