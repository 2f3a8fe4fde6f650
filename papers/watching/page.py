"""The page of ``watching``, as a function of its results table."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from papers.markdown import markdown_table
from papers.results import ResultRow, ResultsTable
from papers.study import Study
from papers.watching import alarms, delay, run_length, together

_COMMAND = "python -m papers watching --output docs/results/watching"
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


def sections(rows: ResultsTable, _folder: Path) -> list[str]:
    """Return the paragraphs of the page."""
    parts = [
        f"""# Goals watched over time

Made by `{_COMMAND}`; every count is in `results.parquet` beside this page. The rule for false alarms, written before
the run: of streams whose truth is exactly at the bound, the share that ever says "fails", and the share that ever says
"holds", is at most the promised {alarms.RISK:.2f} plus {_ERRORS:g} binomial standard errors."""
    ]
    if len(own := rows.where(experiment=alarms.EXPERIMENT)):
        parts.append(_alarms_section(own))
    if len(own := rows.where(experiment=together.EXPERIMENT)):
        parts.append(_together_section(own))
    if len(own := rows.where(experiment=run_length.EXPERIMENT)):
        parts.append(_run_length_section(own))
    if len(own := rows.where(experiment=delay.EXPERIMENT)):
        parts.append(_delay_section(own))
    return parts


def _alarms_section(rows: ResultsTable) -> str:
    lines, is_met = [], True
    for dataset in alarms.DATASETS:
        for kind in alarms.KINDS:
            for method in alarms.METHODS:
                own = rows.where(dataset=dataset, learner=kind, method=method)
                streams, fails, holds = (
                    sum(row.value for row in own.where(quantity=name))
                    for name in (alarms.STREAMS, alarms.FAILS, alarms.HOLDS)
                )
                if not streams:
                    continue
                allowed = _allowed(streams)
                is_met &= max(fails, holds) / streams <= allowed
                shares = [f"{share:.4f}" for share in (fails / streams, holds / streams, allowed)]
                lines.append([kind, method, dataset, f"{streams:.0f}", *shares])
    heads = ["goal", "weights", "rows", "streams", "ever fails", "ever holds", "allowed"]
    return f"""## False alarms, looked at after every row

The rule is {_word(is_met)}. At the bound exactly "holds" is not wrong; the share is that of the evidence for it, which
would be wrong a hair beyond the bound. Of comparisons of groups the evidence is taken at the true pair of rates, where
it is never less than what the library takes: the shares of the library are at most these.

{markdown_table(heads, lines, n_words=3)}"""


def _together_section(rows: ResultsTable) -> str:
    streams, fails, changes = (
        sum(row.value for row in rows.where(quantity=name))
        for name in (together.STREAMS, together.FAILS, together.CHANGES)
    )
    return f"""## Nine goals together

One `Monitor` with {len(together.GOALS)} goals, each exactly at its bound, looked at after every batch of
{together.BATCH} of {together.N_ROWS:,} rows. Streams in which any goal ever fails: {fails:.0f} of {streams:.0f};
allowed: a share of {_allowed(streams):.3f}; the rule is {_word(fails / streams <= _allowed(streams))}. Streams in which
the watch for changes, which promises a million rows between false alarms, gave one: {changes:.0f}, where about
{streams * together.N_ROWS / 1e6:.1f} are allowed."""


def _run_length_section(rows: ResultsTable) -> str:
    lines, is_met = [], True
    known = dict.fromkeys((row.dataset, row.learner, row.method) for row in rows)
    for dataset, learner, method in known:
        own = rows.where(dataset=dataset, learner=learner, method=method)
        streams, total, squares = (
            sum(row.value for row in own.where(quantity=name))
            for name in (run_length.STREAMS, run_length.ROWS, run_length.SQUARES)
        )
        promised = run_length.OF_LIBRARY[0] if dataset == run_length.LIBRARY else run_length.PROMISED[dataset][0]
        mean = total / streams
        error = math.sqrt(max(squares / streams - mean**2, 0.0) / streams)
        is_met &= mean + _ERRORS * error >= promised
        lines.append([learner, method, dataset, f"{streams:.0f}", f"{promised:,}", f"{mean:,.0f}", f"{error:,.0f}"])
    heads = ["goal", "weights", "", "streams", "promised", "mean", "standard error"]
    return f"""## Rows until the watch for changes gives a false alarm

The truth is at the bound all the time. The rule, written before the run: the mean number of rows until the first alarm
is at least the promised one less {_ERRORS:g} standard errors. It is {_word(is_met)}. In the compiled streams a test
starts at every batch and none is dropped, so their alarms are at least as frequent as those of the library; the whole
monitor is the library's, with {len(together.GOALS)} goals in batches of {run_length.OF_LIBRARY[1]}. Runs end after
{run_length.MOST} times the promised rows, and count with these.

{markdown_table(heads, lines, n_words=3)}"""


def _delay_section(rows: ResultsTable) -> str:
    lines = []
    for what in (delay.RATE, delay.DIFFERENCE):
        for points, most in delay.POINTS.items():
            for method in delay.METHODS:
                own = rows.where(learner=f"{what}, {points}", method=method)
                if not len(own):
                    continue
                delays = np.array([row.value if row.value >= 0 else math.inf for row in own])
                ends = [float(np.quantile(delays, q, method="higher")) for q in (0.5, 0.9)]
                shown = ["-" if math.isinf(end) else f"{end:,.0f}" for end in ends]
                proven = f"{np.isfinite(delays).mean():.2f}"
                rows_of = delay.MAPIE_ROWS if method == delay.MAPIE else most
                lines.append([what, f"{points}", method, f"{rows_of:,}", f"{delays.size}", proven, *shown])
            if points:
                known = [f"{delay.fixed_rows(what, points, power):,.0f}" for power in (0.5, 0.9)]
                lines.append([what, f"{points}", "knows when to look", "", "", "", *known])
    heads = ["goal", "points beyond", "method", "rows", "streams", "says fails", "half by", "nine tenths by"]
    return f"""## Delay

Rows until "fails", where the value is so many points beyond the bound from the first row on; 0 points are false
alarms. The goal is on a rate of {delay.BOUND}, watched after every row, or on a difference of two groups, watched after
every day of {delay.DAY} rows, of which {delay.SHARE:.0%} are of the first group. The test that knows when to look has a
fixed number of rows, for which it finds the violation with probability 0.5 and 0.9. MAPIE is `RiskMonitoring` with the
bound as its threshold, with the level for the stream that the others have. It takes milliseconds a row, so it has fewer
and shorter streams.

{markdown_table(heads, lines, n_words=3)}"""


def _allowed(streams: float) -> float:
    return alarms.RISK + _ERRORS * math.sqrt(alarms.RISK * (1.0 - alarms.RISK) / max(streams, 1.0))


def _word(is_met: bool) -> str:
    return "met" if is_met else "**missed**"


STUDY = Study(
    "watching", "how often watched goals are wrong, and how soon violations are found", wanted, measure, sections,
    (*alarms.DATASETS, delay.DATASET, together.DATASET, *run_length.PROMISED, run_length.LIBRARY), n_seeds=4,
)  # fmt: skip
