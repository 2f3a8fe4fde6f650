"""Watched goals: how often verdicts are wrong, and how soon violations are proven; blocks of the table."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from papers.experiments import Blocks, Experiment
from papers.markdown import markdown_table
from papers.promises import alarms, delay, run_length, together
from papers.tables import ResultRow, ResultsTable

_N_TOGETHER = 8  # blocks of streams
_ERRORS = 2.0


def wanted(datasets: Sequence[str], n_blocks: int) -> list[Any]:
    """Return the blocks of all parts of the study."""
    parts: list[Any] = list(alarms.wanted(datasets, n_blocks))
    parts += delay.wanted(n_blocks) if delay.DATASET in datasets else []
    parts += [block for block in run_length.wanted(n_blocks) if block.dataset in datasets]
    return parts + (together.wanted(_N_TOGETHER) if together.DATASET in datasets else [])


def measure(block: Any) -> list[ResultRow]:
    """Return the rows of a block of any part."""
    if isinstance(block, alarms.Block):
        return alarms.measure(block)
    if isinstance(block, run_length.Block):
        return run_length.measure(block)
    return delay.measure(block) if isinstance(block, delay.Block) else together.measure(block)


def total(rows: ResultsTable, quantity: str) -> float:
    """Return the sum of a quantity over blocks."""
    return sum(row.value for row in rows.where(quantity=quantity))


def blocks(rows: ResultsTable) -> Blocks:
    """Return false alarms, alarms of the watch for changes, and delays."""
    found: dict[str, str] = {}
    if len(own := rows.where(experiment=alarms.EXPERIMENT)):
        found["false alarms"] = _false_alarms(own, rows.where(experiment=together.EXPERIMENT))
    if len(own := rows.where(experiment=run_length.EXPERIMENT)):
        found["run length"] = _run_length(own)
    if len(own := rows.where(experiment=delay.EXPERIMENT)):
        found["delay"] = _delay(own)
    return found


def _false_alarms(rows: ResultsTable, several: ResultsTable) -> str:
    """Return for each kind of goal the largest share of streams with a wrong verdict."""
    lines = []
    for kind in alarms.KINDS:
        shares = []
        for dataset in alarms.DATASETS:
            for method in alarms.METHODS:
                own = rows.where(dataset=dataset, learner=kind, method=method)
                streams = total(own, alarms.STREAMS)
                if streams:
                    worst = max(total(own, alarms.FAILS), total(own, alarms.HOLDS)) / streams
                    shares.append((worst - _allowed(streams), worst, streams))
        if shares:
            lines.append(
                [kind, f"{max(shares)[1]:.4f}", f"{sum(share[2] for share in shares):.0f}", _word(max(shares)[0] <= 0)]
            )
    if streams := total(several, together.STREAMS):
        share = total(several, together.FAILS) / streams
        lines.append(
            [
                f"{len(together.GOALS)} goals together",
                f"{share:.4f}",
                f"{streams:.0f}",
                _word(share <= _allowed(streams)),
            ]
        )
    return markdown_table(["goal at its bound", "largest share wrong", "streams", "the rule"], lines)


def _run_length(rows: ResultsTable) -> str:
    """Return the mean rows until a false alarm of the watch for changes, beside what is promised."""
    lines = []
    for dataset in dict.fromkeys(row.dataset for row in rows):
        promised = run_length.OF_LIBRARY[0] if dataset == run_length.LIBRARY else run_length.PROMISED[dataset][0]
        means = []
        for learner, method in dict.fromkeys((row.learner, row.method) for row in rows.where(dataset=dataset)):
            own = rows.where(dataset=dataset, learner=learner, method=method)
            streams, mean = total(own, run_length.STREAMS), total(own, run_length.ROWS) / total(own, run_length.STREAMS)
            error = math.sqrt(max(total(own, run_length.SQUARES) / streams - mean**2, 0.0) / streams)
            means.append((mean, mean + _ERRORS * error >= promised))
        least = f"{min(mean for mean, _ in means):,.0f}"
        lines.append([dataset, f"{promised:,}", least, _word(all(is_met for _, is_met in means))])
    return markdown_table(["watched", "promised rows", "least mean of all goals", "the rule"], lines)


def _delay(rows: ResultsTable) -> str:
    lines = []
    for what in (delay.RATE, delay.DIFFERENCE):
        for points in delay.POINTS:
            for method in delay.METHODS:
                own = rows.where(learner=f"{what}, {points}", method=method)
                if points and len(own):
                    rows_taken = np.array([row.value if row.value >= 0 else math.inf for row in own])
                    half = float(np.quantile(rows_taken, 0.5, method="higher"))
                    shown = "-" if math.isinf(half) else f"{half:,.0f}"
                    known = f"{delay.fixed_rows(what, points, 0.5):,.0f}"
                    lines.append([what, f"{points}", method, shown, known])
    heads = ["goal", "points beyond", "method", "rows until half are proven", "by one test at a known time"]
    return markdown_table(heads, lines, n_words=1)


def _allowed(streams: float) -> float:
    return alarms.RISK + _ERRORS * math.sqrt(alarms.RISK * (1.0 - alarms.RISK) / max(streams, 1.0))


def _word(is_met: bool) -> str:
    return "met" if is_met else "**missed**"


EXPERIMENT = Experiment(
    "watching", "watched goals: false alarms and delay", wanted, measure, blocks,
    (*alarms.DATASETS, delay.DATASET, together.DATASET, *run_length.PROMISED, run_length.LIBRARY), 4,
)  # fmt: skip
