"""What a run came to, in a few lines."""

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from counterpoise._base.text import text_table
from counterpoise.auditing.audit import HOLDS, Audit, verdict_words
from counterpoise.goals.rates import is_maximized
from counterpoise.goals.terms import NUMBER
from counterpoise.runs.result import RunResult
from counterpoise.runs.results import DEPLOYED, FIRST, MIXTURE, SPLITS


class GoalLine(NamedTuple):
    """One goal on the rows that judge."""

    goal: str
    estimate: float  # NaN where it cannot be measured on the rows
    bound: float
    verdict: str  # "holds", "undecided" or "fails" on the population, with the requested confidence; or "not asked"
    violation: float  # of the estimate itself
    note: str = ""  # why it was not measured
    left_out: Sequence[str] = ()  # groups or classes with fewer rows than min_rows asks for


class RunSummary(NamedTuple):
    """Goals, error and the loss of the tail on one split; ``print`` shows it."""

    split: str
    alpha: float
    error: float
    cvar: float
    first_error: float | None  # of plain training, where it was measured
    first_cvar: float | None
    goals: tuple[GoalLine, ...]
    objective: str = ""  # what was minimised, where it is neither the error nor the tail
    value: float | None = None  # of the objective
    deployed_error: float | None = None  # of the deployed model, where its answers are known
    defer_rate: float | None = None  # part of the rows that a person decides about, where some are deferred
    decided_error: float | None = None  # errors among the others
    realised_cvar: float | None = None  # of the tail once decisions are drawn, where ``cvar`` is an expectation

    @property
    def all_hold(self) -> bool:
        """Tell whether every goal is shown to hold on the population."""
        return all(line.verdict == HOLDS for line in self.goals)

    @property
    def all_met(self) -> bool:
        """Tell whether every goal is met on the rows themselves."""
        return all(line.violation == 0 for line in self.goals)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        goals = [line._asdict() for line in self.goals]
        return self._asdict() | {"goals": goals, "all_hold": self.all_hold, "all_met": self.all_met}

    @property
    def losses_text(self) -> str:
        """Return the error, the loss of the tail and what else is known beside the goals, in lines."""
        rows = f"{self.split} rows" if self.split in SPLITS else f"rows of {self.split}"
        losses = {f"on the {rows}": (self.error, self.cvar)}
        if self.first_cvar is not None and self.first_error is not None:
            losses["plain training"] = (self.first_error, self.first_cvar)
        if self.deployed_error is not None:
            losses["deployed model"] = (self.deployed_error, math.nan)
        tail = "" if self.alpha == 1 else f", loss of the worst {100 * self.alpha:g} %"
        lines = [
            f"{name}: error {error:.4f}" + (f"{tail} {cvar:.4f}" if tail and not math.isnan(cvar) else "")
            for name, (error, cvar) in losses.items()
        ]
        if tail and self.realised_cvar is not None:
            lines[0] += f" expected, {self.realised_cvar:.4f} once decisions are drawn"
        if self.defer_rate is not None:
            among = "" if self.decided_error is None else f"; error {self.decided_error:.4f} among the others"
            lines.append(f"deferred: {self.defer_rate:.4f} of the rows{among}")
        if self.value is not None:
            aim = "maximised" if is_maximized(self.objective) else "minimised"
            lines.append(f"{aim}: {self.objective}, {self.value:.4f}")
        return "\n".join(lines)

    def __str__(self) -> str:
        lines = [self.losses_text]
        if not self.goals:
            lines += ["", "no goals are set: write them in the goals file, or pass them to fit --from RUN"]
        if self.goals:
            cells = [("verdict", "estimate", "bound", "goal")]
            for one in self.goals:
                words = verdict_words(one.verdict, one.violation)
                cells.append((words, _number(one.estimate), _number(one.bound), one.goal))
            table = text_table(cells, "<>><")
            notes = [f"{one.goal}: {one.note}" for one in self.goals if one.note]
            notes += [f"{one.goal}: left out: {', '.join(one.left_out)}" for one in self.goals if one.left_out]
            lines += ["", table, *notes, *_remarks([one.goal for one in self.goals])]
        return "\n".join(lines)


def summarize_run(result: RunResult, split: str | None = None) -> RunSummary:
    """Return the summary of a result, by default on the test rows or, without any, the last split there is."""
    judged = split or result.judged
    ours, plain, deployed = (result.losses(decider, judged) for decider in (MIXTURE, FIRST, DEPLOYED))
    alpha = 1.0 if result.alpha is None else result.alpha
    tail = ours.tail(alpha)
    lines = []
    for goal in result.goals:
        on = goal.on(judged)
        lines.append(GoalLine(goal.text, on.estimate, on.bound, on.verdict, on.violation, on.note, on.left_out))
    objective, value = result.objective, _known(ours.objective)
    words = "" if objective is None or value is None else objective.text or objective.kind
    beside = _known(plain.error), _known(plain.tail(alpha).value)
    others = map(_known, (deployed.error, ours.defer_rate, ours.decided_error, tail.realised))
    return RunSummary(judged, alpha, ours.error, tail.value, *beside, tuple(lines), words, value, *others)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


class RunAudit(NamedTuple):
    """How a run's model does on some rows; ``print`` shows it."""

    summary: RunSummary  # error and loss of the tail, without goals
    audit: Audit

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return self.summary._asdict() | audit_words(self.audit)

    def __str__(self) -> str:
        return f"{self.summary.losses_text}\n\n{audit_text(self.audit)}" if self.audit else str(self.summary)


def audit_text(audit: Audit) -> str:
    """Return an audit as a table with the goals last, where a narrow terminal may break them."""
    columns = ("verdict", "estimate", "low", "high", "bound", "margin", "rows", "goal")
    return audit.as_text(columns, _remarks(row.texts["goal"] for row in audit))


def audit_words(audit: Audit) -> dict[str, Any]:
    """Return an audit as plain values, for JSON."""
    goals = []
    for row in audit:
        values: dict[str, Any] = row._asdict()
        values |= {"goal": str(row.goal.with_confidence(None)), "counts": dict(row.counts)}
        # only where rows have weights, goals count amounts, and small groups are left out
        more: dict[str, Any] = {name: dict(values.pop(name)) for name in ("largest_weights", "largest_values")}
        more["left_out"] = list(values.pop("left_out"))
        goals.append(values | {name: part for name, part in more.items() if part})
    return {"holds": audit.holds, "confidence": audit.confidence, "goals": goals}


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4f}"


def _remarks(goals: Iterable[str]) -> list[str]:
    """Return what must be known to read the numbers."""
    if not all(re.search(rf"(?:[<>]=|\+-) -?{NUMBER}$", goal) for goal in goals):
        return ["(Rates on both sides: the estimate is the left side less the rates on the right.)"]
    return []
