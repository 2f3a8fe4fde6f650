"""What a monitor says about goals, as values, plain records and a table."""

import math
from typing import Any, NamedTuple

from counterpoise._base.text import text_table
from counterpoise.auditing.audit import FAILS, HOLDS
from counterpoise.goals.bound_goals import risk_of_each
from counterpoise.goals.expressions import Goal

__all__ = ["GoalVerdict", "Moment", "Verdicts"]


class Moment(NamedTuple):
    """A batch of the stream."""

    time: Any  # what ``update`` was told, else the number of the update
    update: int  # 1 for the first
    n_rows: int  # that had come when it was done

    def as_record(self) -> dict[str, Any]:
        """Return plain values."""
        return self._asdict()


class GoalVerdict(NamedTuple):
    """What the rows so far show about one goal."""

    goal: Goal  # with its confidence
    verdict: str  # "holds", "fails" or "undecided"
    estimate: float  # of the left side less the rates on the right, on all rows so far
    low: float  # the value is above
    high: float  # and below; each end fails, at any time ever, with the goal's share of the risk at most
    bound: float
    n_rows: int  # that counted in the rate, or in that of several which the estimate is of
    n_waiting: int  # rows whose label is not known yet, where the goal needs labels
    worst: str = ""  # of several rates the one that the estimate is of
    failed_at: Moment | None = None  # the first batch after which "fails" was proven
    began: Moment | None = None  # the batch with which the violation began, as estimated when it was found
    changed_at: Moment | None = None  # the first batch after which the watch for changes gave an alarm
    note: str = ""

    def as_record(self) -> dict[str, Any]:
        """Return plain values, as JSON holds them: None in the place of what is not finite."""
        values = self._asdict()
        for name in ("estimate", "low", "high"):
            values[name] = values[name] if math.isfinite(values[name]) else None
        for name in ("failed_at", "began", "changed_at"):
            values[name] = None if values[name] is None else values[name].as_record()
        return {**values, "goal": str(self.goal.with_confidence(None))}


class Verdicts(tuple[GoalVerdict, ...]):
    """One ``GoalVerdict`` for each goal; ``print`` shows a table."""

    __slots__ = ()

    @property
    def holds(self) -> bool:
        """Return whether every goal is shown to hold."""
        return all(one.verdict == HOLDS for one in self)

    @property
    def fails(self) -> bool:
        """Return whether some goal is shown to fail."""
        return any(one.verdict == FAILS for one in self)

    @property
    def promise(self) -> str:
        """Return how surely the verdicts are right."""
        surely = 1.0 - sum(risk_of_each([one.goal for one in self]))
        return f"All verdicts, at all times, are right together with confidence {surely:.4g}."

    def as_records(self) -> list[dict[str, Any]]:
        """Return plain values, as JSON holds them."""
        return [one.as_record() for one in self]

    def __str__(self) -> str:
        lines = [["goal", "estimate", "low", "high", "bound", "verdict", "since", "rows"]]
        notes = []
        for one in self:
            name = str(one.goal.with_confidence(None))
            numbers = (one.estimate, one.low, one.high, one.bound)
            since = "" if one.began is None else str(one.began.time)
            texts = [f"{value:.4g}" if math.isfinite(value) else "-" for value in numbers]
            lines.append([name, *texts, one.verdict, since, str(one.n_rows)])
            if one.worst:
                notes.append(f"{name}: the estimate is of {one.worst}.")
            if one.changed_at is not None and one.began is not None:
                notes.append(f"{name}: a violation since {one.began.time} was noticed at {one.changed_at.time}.")
            if one.note:
                notes.append(f"{name}: {one.note}.")
        return "\n".join([text_table(lines, "<>>>><<>"), *notes, self.promise])
