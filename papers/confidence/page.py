"""The page of ``confidence_coverage``, as a function of its results table."""

from pathlib import Path

from papers.confidence.experiment import (
    CASES,
    CERTIFIED,
    CERTIFIED_AND_VIOLATED,
    CONFIDENCE,
    DATASETS,
    MET_AND_VIOLATED,
    N_CERTIFY,
    N_CHOOSE,
    N_TRAIN,
    PLAIN,
    SPLITS_IN_BLOCK,
    TIGHTENED,
    VIOLATED,
    measure,
    wanted,
)
from papers.markdown import markdown_table
from papers.results import ResultsTable
from papers.study import Study

_COMMAND = "python -m papers confidence --output docs/results/confidence"
_COLUMNS = (
    (PLAIN, VIOLATED),
    (PLAIN, MET_AND_VIOLATED),
    (PLAIN, CERTIFIED),
    (PLAIN, CERTIFIED_AND_VIOLATED),
    (TIGHTENED, VIOLATED),
    (TIGHTENED, CERTIFIED),
    (TIGHTENED, CERTIFIED_AND_VIOLATED),
)


def sections(rows: ResultsTable, _folder: Path) -> list[str]:
    """Return the paragraphs of the page."""
    return [_head(rows), _table(rows), _cases()]


def _n_splits(rows: ResultsTable) -> int:
    return SPLITS_IN_BLOCK * len({(row.dataset, row.seed) for row in rows})


def _head(rows: ResultsTable) -> str:
    return f"""# Certified goals on the population

Made by `{_COMMAND}`; every count is in
`results.parquet` beside this page. Adult is the population. In each of {_n_splits(rows)} splits a logistic regression
is trained on {N_TRAIN:,} rows, a threshold is moved on {N_CHOOSE:,} others until the goal is just met there (the plain
goal, or the one that `tightened` gives), and the classifier is looked at on {N_CERTIFY:,} held-out rows. *Violated* is
what is seen on the population: all rows that the model was not trained on. Share of all splits, in %. A certificate at
{CONFIDENCE:g} promises at most {100 * (1.0 - CONFIDENCE):g} in the two columns *certified and violated*, even for
classifiers that sit on the edge of their goal. It promises nothing about their part of the certified splits alone."""


def _table(rows: ResultsTable) -> str:
    lines = []
    for case in CASES:
        shares = [_share(rows.where(method=way, quantity=what, split=case.name), rows) for way, what in _COLUMNS]
        lines.append([case.name, *(f"{100 * share:.1f}" for share in shares)])
    return markdown_table(["goal", *map(": ".join, _COLUMNS)], lines)


def _share(found: ResultsTable, rows: ResultsTable) -> float:
    return sum(row.value for row in found) / _n_splits(rows)


def _cases() -> str:
    lines = ["The goals; where there are two, both must be certified, with half of the risk each:", ""]
    lines += [f"- {case.name}: {' and '.join(f'`{goal}`' for goal in case.goals)}" for case in CASES]
    return "\n".join(lines)


STUDY = Study("confidence", "goals certified against a population", wanted, measure, sections, DATASETS, n_seeds=30)
