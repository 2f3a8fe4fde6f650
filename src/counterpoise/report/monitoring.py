"""The page of a monitored run: each goal over time, with its bound, and what happened when."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from counterpoise.auditing.audit import HOLDS
from counterpoise.report import figures
from counterpoise.report.wording import FAILS, UNDECIDED, Noted, Verdict, count, many, number, verdict_of
from counterpoise.report.wording import HOLDS as ALL_HOLD
from counterpoise.runs.monitoring import BatchLine, MonitorSummary
from counterpoise.runs.table import ResultTable

_SHOWN = 4  # batches in the table of a goal
_EVENTS = {"began": "began", "changed_at": "noticed", "failed_at": "proven"}  # in a figure


class WatchedGoal(NamedTuple):
    """A goal over time: its verdict now, its figure, what happened and the last batches."""

    name: str
    text: str
    verdict: Verdict
    sentences: list[str]
    figure: Markup
    table: ResultTable
    has_changed: bool  # whether a failure is proven, or a change was noticed


def watched_goals(summary: MonitorSummary) -> list[WatchedGoal]:
    """Return each goal over time."""
    return [_watched(summary, place) for place in range(len(summary.verdicts))] if summary.lines else []


def _watched(summary: MonitorSummary, place: int) -> WatchedGoal:
    now, lines = summary.verdicts[place], summary.lines
    text, name = str(now.goal.with_confidence(None)), f"goal {place + 1}"
    standings = [_numbers(line.goals[place]) for line in lines]
    moments = {name: getattr(now, name) for name in _EVENTS}
    marks = {_EVENTS[name]: moment.update for name, moment in moments.items() if moment is not None}
    labels = [str(line.time) for line in lines]
    heads = ("after", "verdict", "estimate", "low", "high", "rows")
    cells: list[list[str | Noted]] = [
        [
            labels[number_of],
            Noted(verdict_of(lines[number_of].goals[place]["verdict"]), ""),
            *(number(standings[number_of][part]) for part in ("estimate", "low", "high")),
            count(lines[number_of].goals[place]["n_rows"]),
        ]
        for number_of in range(len(lines) - 1, max(len(lines) - 1 - _SHOWN, -1), -1)
    ]
    figure = figures.band_figure(f"goal-{place + 1}", text, standings, labels, now.bound, now.goal.sense, marks)
    table = ResultTable(f"{name}: bound {number(now.bound)}, the last batches", heads, cells)
    return WatchedGoal(name, text, verdict_of(now.verdict), _sentences(now, lines), figure, table, bool(marks))


def _numbers(record: Mapping[str, Any]) -> dict[str, float]:
    return {part: math.nan if record[part] is None else record[part] for part in ("estimate", "low", "high")}


def _sentences(now: Any, lines: Sequence[BatchLine]) -> list[str]:
    """Return what happened to a goal, in sentences."""
    sentences = []
    if now.failed_at is not None:
        sentences.append(f"Shown to fail {_when(now.failed_at, lines)}.")
    if now.changed_at is not None:
        sentences.append(f"A change was noticed {_when(now.changed_at, lines)}.")
    if now.began is not None:
        sentences.append(f"By the estimate it began {_when(now.began, lines)}.")
    if now.worst:
        sentences.append(f"The estimate is of {now.worst}.")
    if now.n_waiting:
        sentences.append(f"{many(now.n_waiting, 'label')} to come.")
    return [*sentences, *([f"{now.note[0].upper()}{now.note[1:]}."] if now.note else [])]


def _when(moment: Any, lines: Sequence[BatchLine]) -> str:
    line = lines[moment.update - 1]
    place = f"at {line.time}" if isinstance(line.time, str) else f"with batch {line.batch}"
    return f"{place}, after {many(moment.n_rows, 'row')}"


def headline(summary: MonitorSummary, goals: Sequence[WatchedGoal]) -> tuple[Verdict, str]:
    """Return how all goals stand together, as a verdict and a title."""
    failing = [goal.name for goal in goals if goal.verdict is FAILS]
    if failing:
        return FAILS, f"{many(len(failing), 'goal')} of {len(goals)} {'fails' if len(failing) == 1 else 'fail'}"
    if any(goal.has_changed for goal in goals):
        return UNDECIDED, "A change was noticed, and no goal is shown to fail yet"
    if goals and all(verdict.verdict == HOLDS for verdict in summary.verdicts):
        return ALL_HOLD, "All goals hold"
    return UNDECIDED, "No goal is shown to fail" if goals else "No batch has been counted yet"


def batch_table(summary: MonitorSummary) -> ResultTable:
    """Return a line for each batch, the newest first."""
    heads = ("batch", "time", "rows", "labels", "labels to come", "decisions")
    rows = [
        [line.batch, str(line.time), count(line.rows), count(line.labels), count(line.n_waiting), line.decisions]
        for line in reversed(summary.lines)
    ]
    return ResultTable("Batches, the newest first", heads, rows)
