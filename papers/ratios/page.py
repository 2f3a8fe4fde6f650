"""The page of ``ratios``, as a function of its results table."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from papers.markdown import markdown_table
from papers.ratios.experiment import (
    APART,
    DATASETS,
    F1,
    MET,
    MOST_APART,
    OURS,
    OURS_BY_GROUP,
    OXONFAIR,
    PARITY,
    PRECISION,
    SELECTION,
    TEST,
    TUNED,
    VALUE,
    measure,
    wanted,
)
from papers.results import ResultsTable
from papers.study import Study

_COMMAND = "python -m papers ratios --output docs/results/ratios"
_PAIRS = ((TUNED, OURS), (OXONFAIR, OURS_BY_GROUP))  # a peer, and ours over the same rules
_SAME = 1e-9
_TWO_SIDED = 1.96


def sections(rows: ResultsTable, _folder: Path) -> list[str]:
    """Return the paragraphs of the page."""
    parts = [_head(rows), _verdict(rows)]
    for question in (F1, PRECISION):
        own = rows.where(learner=question)
        if len(own):
            parts += [f"## {question[0].upper()}{question[1:]}", _table(own)]
    own = rows.where(learner=PARITY)
    title = f"## Precision of two groups within {MOST_APART}"
    return [*parts, title, _parity_table(own) if len(own) else "Not run yet: the same command goes on with it."]


def _head(rows: ResultsTable) -> str:
    n_seeds = len({row.seed for row in rows})
    return f"""# Ratios as objectives and goals, beside peers

Made by `{_COMMAND}`; every number is in `results.parquet` beside this page. Gradient boosting is
trained once for each data set, on rows of its own. On each of {n_seeds} splits, rules are chosen on up to 5,000 other
rows and judged on the rest, all over the same scores and without margins. scikit-learn's tuned threshold is one for
all, tried at 1,000 places; OxonFair has one for each group, on a grid. Ours is given for both families.

**The rule of the verdict**, written before the run: on the rows of the choice our value is never below that of the
peer with the same family of rules, on any split on which the peer meets the goal; and where the peer meets it, we do.
What test rows show is a table with intervals, and no verdict."""


def _verdict(rows: ResultsTable) -> str:
    lines, misses = [], 0
    for peer, ours in _PAIRS:
        for question in (F1, PRECISION, PARITY):
            pairs = list(_pairs(rows.where(learner=question), peer, ours))
            if not pairs:
                continue
            gains = np.array([gain for gain, _ in pairs])
            n_below = int((gains < -_SAME).sum() + sum(not met for _, met in pairs))
            misses += n_below
            cells = [f"{100 * gains.min():.3f}", f"{100 * gains.mean():.3f}", f"{100 * gains.max():.3f}"]
            lines.append([peer, question, str(len(pairs)), str(n_below), *cells])
    head = ["peer", "question", "splits", "below or unmet", "least gain", "mean gain", "largest gain"]
    found = "kept" if not misses else f"missed on {misses} splits"
    return f"""## Verdict: {found}

{markdown_table(head, lines)}

Gains on the rows of the choice in points: of F1 and precision, and of parity in points of error."""


def _pairs(rows: ResultsTable, peer: str, ours: str) -> Iterator[tuple[float, bool]]:
    """Yield how much better ours is on the rows of the choice, where the peer meets the goal, and whether it does."""
    values = {(row.dataset, row.seed, row.method, row.quantity): row.value for row in rows.where(split=SELECTION)}
    for dataset, seed, method, quantity in list(values):
        if method == peer and quantity == VALUE and values[dataset, seed, peer, MET]:
            own = values.get((dataset, seed, ours, VALUE))
            sign = -1.0 if rows.rows[0].learner == PARITY else 1.0
            theirs = values[dataset, seed, peer, VALUE]
            is_met = own is not None and bool(values[dataset, seed, ours, MET])
            yield (sign * (own - theirs) if own is not None else 0.0), is_met


def _table(rows: ResultsTable) -> str:
    names = [name for name in (OURS, TUNED, OURS_BY_GROUP, OXONFAIR) if len(rows.where(method=name))]
    lines = []
    for dataset in dict.fromkeys(row.dataset for row in rows):
        own = rows.where(dataset=dataset, quantity=VALUE)
        met = rows.where(dataset=dataset, quantity=MET)
        for split in (SELECTION, TEST):
            cells = [_cell(own.where(method=name, split=split)) for name in names]
            shares = [_share(met.where(method=name, split=split)) for name in names]
            lines.append([dataset, split, *(f"{cell}{share}" for cell, share in zip(cells, shares, strict=True))])
    text = (
        "Mean over splits in %, with an interval of 95 %; in parentheses the share of splits on which the goal is met, "
        "where not all."
    )
    return f"{markdown_table(['data', 'rows', *names], lines)}\n\n{text}"


def _parity_table(rows: ResultsTable) -> str:
    lines = []
    for dataset in dict.fromkeys(row.dataset for row in rows):
        for name in (OURS_BY_GROUP, OXONFAIR):
            for split in (SELECTION, TEST):
                own = rows.where(dataset=dataset, method=name, split=split)
                if len(own):
                    cells = [_cell(own.where(quantity=what)) for what in (VALUE, APART)]
                    lines.append([dataset, name, split, *cells, f"{_mean(own.where(quantity=MET)):.2f}"])
    head = ["data", "method", "rows", "error", "difference of precision", "within"]
    text = "Mean over splits in %, with an interval of 95 %; *within*: the share of splits inside of the bound."
    return f"{markdown_table(head, lines)}\n\n{text}"


def _mean(rows: ResultsTable) -> float:
    return float(np.mean([row.value for row in rows])) if len(rows) else float("nan")


def _share(rows: ResultsTable) -> str:
    share = _mean(rows)
    return "" if share == 1.0 or not len(rows) else f" ({share:.2f})"


def _cell(rows: ResultsTable) -> str:
    values = 100 * np.array([row.value for row in rows])
    if not values.size:
        return "-"
    if values.size == 1:
        return f"{values[0]:.2f} (one split)"
    spread = _TWO_SIDED * values.std(ddof=1) / np.sqrt(values.size)
    return f"{values.mean():.2f} ± {spread:.2f}"


STUDY = Study("ratios", "ratios as objectives and goals, beside peers", wanted, measure, sections, DATASETS, n_seeds=5)
