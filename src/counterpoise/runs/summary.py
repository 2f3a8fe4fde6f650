"""What a run came to, in a few lines of text or as plain values: views of its result."""

import math
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from counterpoise._base.text import text_table
from counterpoise.auditing.audit import HOLDS, Audit, verdict_words
from counterpoise.goals.rates import is_maximized
from counterpoise.goals.terms import NUMBER
from counterpoise.runs.result import RunResult
from counterpoise.runs.results import DEPLOYED, FIRST, MIXTURE, SPLITS


def all_hold(result: RunResult) -> bool:
    """Tell whether every goal is shown to hold on the population."""
    return all(goal.on(result.judged).verdict == HOLDS for goal in result.goals)


def summary_words(result: RunResult) -> dict[str, Any]:
    """Return what a run came to on the rows that count as plain values, for JSON."""
    standings = {goal.text: goal.on(result.judged) for goal in result.goals}
    goals = [{"goal": text, **standing.model_dump()} for text, standing in standings.items()]
    are_met = all(standing.violation == 0 for standing in standings.values())
    return loss_words(result) | {"goals": goals, "all_hold": all_hold(result), "all_met": are_met}


def loss_words(result: RunResult, name: str | None = None) -> dict[str, Any]:
    """Return the errors and the tail of each decider on the rows that count, which may have another name."""
    losses = {decider: result.losses(decider) for decider in (MIXTURE, FIRST, DEPLOYED)}
    parts = ("error", "defer_rate", "decided_error", "objective")
    words = {
        decider: {part: getattr(one, part) for part in parts} | {"cvar": one.tail(result.alpha).value}
        for decider, one in losses.items()
        if not math.isnan(one.error)
    }
    return {"split": name or result.judged, "alpha": result.alpha, "losses": words}


def summary_text(result: RunResult) -> str:
    """Return what a run came to on the rows that count, in lines."""
    lines = [losses_text(result)]
    if not result.goals:
        return "\n".join([*lines, "", "no goals are set: write them in the goals file, or pass them to fit --from RUN"])
    cells, notes = [("verdict", "estimate", "bound", "goal")], []
    for goal in result.goals:
        standing = goal.on(result.judged)
        words = verdict_words(standing.verdict, standing.violation)
        cells.append((words, _number(standing.estimate), _number(standing.bound), goal.text))
        notes += [f"{goal.text}: {standing.note}"] if standing.note else []
        notes += [f"{goal.text}: left out: {', '.join(standing.left_out)}"] if standing.left_out else []
    return "\n".join([*lines, "", text_table(cells, "<>><"), *notes, *_remarks(goal.text for goal in result.goals)])


def losses_text(result: RunResult, name: str | None = None) -> str:
    """Return the error, the loss of the tail and what else is known beside the goals, in lines."""
    split, ours = name or result.judged, result.losses()
    rows = f"{split} rows" if split in SPLITS else f"rows of {split}"
    tail = "" if result.tail is None else f", loss of the worst {100 * result.tail:g} %"
    lines = []
    for label, decider in {f"on the {rows}": MIXTURE, "plain training": FIRST, "deployed model": DEPLOYED}.items():
        losses = result.losses(decider)
        value = losses.tail(result.alpha).value
        has_tail = tail and not math.isnan(value) and decider != DEPLOYED
        if not math.isnan(losses.error):
            lines.append(f"{label}: error {losses.error:.4f}{f'{tail} {value:.4f}' if has_tail else ''}")
    realised = ours.tail(result.alpha).realised
    if tail and not math.isnan(realised):
        lines[0] += f" expected, {realised:.4f} once decisions are drawn"
    if not math.isnan(ours.defer_rate):
        among = "" if math.isnan(ours.decided_error) else f"; error {ours.decided_error:.4f} among the others"
        lines.append(f"deferred: {ours.defer_rate:.4f} of the rows{among}")
    if result.objective is not None and not math.isnan(ours.objective):
        text = result.objective.text or result.objective.kind
        lines.append(f"{'maximised' if is_maximized(text) else 'minimised'}: {text}, {ours.objective:.4f}")
    return "\n".join(lines)


class RunAudit(NamedTuple):
    """How a run's model does on some rows; ``print`` shows it."""

    result: RunResult  # the losses on these rows
    rows: str  # which they are
    audit: Audit

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return loss_words(self.result, self.rows) | audit_words(self.audit)

    def __str__(self) -> str:
        losses = losses_text(self.result, self.rows)
        return f"{losses}\n\n{audit_text(self.audit)}" if self.audit else summary_text(self.result)


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
