"""What a run came to, in a few lines."""

from typing import Any, NamedTuple

from counterpoise.results import ResultsTable
from counterpoise.runs.settings import Settings

_VERDICTS = {1.0: "holds", 0.0: "undecided", -1.0: "fails"}


class GoalLine(NamedTuple):
    """One goal on the rows that judge."""

    goal: str
    estimate: float
    bound: float
    verdict: str  # "holds", "undecided" or "fails" on the population, with the confidence asked for
    violation: float  # of the estimate itself


class Summary(NamedTuple):
    """Goals, error and the loss of the tail on one split; ``print`` shows it."""

    split: str
    alpha: float
    error: float
    cvar: float
    first_error: float | None  # of plain training, where it was measured
    first_cvar: float | None
    goals: tuple[GoalLine, ...]

    @property
    def all_hold(self) -> bool:
        """Tell whether every goal is shown to hold on the population."""
        return all(line.verdict == "holds" for line in self.goals)

    @property
    def all_met(self) -> bool:
        """Tell whether every goal is met on the rows themselves."""
        return all(line.violation == 0 for line in self.goals)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return self._asdict() | {
            "goals": [line._asdict() for line in self.goals],
            "all_hold": self.all_hold,
            "all_met": self.all_met,
        }

    def __str__(self) -> str:
        tail = f"{100 * self.alpha:g} %"
        lines = [f"on {self.split} rows: error {self.error:.4f}, loss of the worst {tail} {self.cvar:.4f}"]
        if self.first_cvar is not None and self.first_error is not None:
            lines.append(
                f"plain training: error {self.first_error:.4f}, loss of the worst {tail} {self.first_cvar:.4f}"
            )
        width = max((len(line.goal) for line in self.goals), default=0)
        lines += [
            f"{line.goal:<{width}}  {line.verdict:<9}  {line.estimate:.4f} (bound {line.bound:.4f})"
            for line in self.goals
        ]
        return "\n".join(lines)


def summarize_run(
    settings: Settings, results: ResultsTable, texts: dict[str, Any], split: str | None = None
) -> Summary:
    """Return the summary of a results table, by default on the test rows or, without any, the last split there is."""
    splits = dict.fromkeys(row.split for row in results.where(quantity="error", method="mixture"))
    judged = split or ("test" if "test" in splits else list(splits)[-1])
    values = {(row.quantity, row.method, row.settings, row.alpha): row.value for row in results.where(split=judged)}
    alpha = float(settings.alpha)

    def goal(entry: dict[str, Any]) -> GoalLine:
        parts = {name: values["goal " + name, "mixture", entry["name"], None] for name in _PARTS}
        verdict = _VERDICTS[parts.pop("verdict")]
        return GoalLine(goal=entry["text"], verdict=verdict, **parts)

    return Summary(
        judged,
        alpha,
        values["error", "mixture", "", None],
        values["cvar", "mixture", "", alpha],
        values.get(("error", "first model", "", None)),
        values.get(("cvar", "first model", "", alpha)),
        tuple(goal(entry) for entry in texts["goals"]),
    )


_PARTS = ("estimate", "bound", "verdict", "violation")
