"""How often audits of goals on classes, differences and conditions are wrong: run this file to write the table.

A population of 40,000 rows with four classes, two groups and an age is decided about by a classifier that is better
for some than for others. Each goal's bound is put where it is hardest: near what the population has, so that the goal
just fails or just holds. Then 300 samples are audited, and a verdict that contradicts the population is wrong.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from counterpoise.auditing.audit import GoalAudit, audit
from counterpoise.goals import Goal, Table, parse_goal

N_PEOPLE, N_ROWS, N_SPLITS = 40_000, 500, 300
CONFIDENCES = (0.8, 0.95)
DISTANCES = (1e-6, 0.01)
ERRORS = ("said to hold, fails", "said to fail, holds")
LEFT = (
    ("one class", "recall(train, of=cat)", ">="),
    ("one class of a group", "positive_rate(train, of='New Zealand', sex=F)", "<="),
    ("precision of a class", "precision(train, of=dog)", ">="),
    ("one class called another", "confusion(train, of=cat, called=dog)", "<="),
    ("average over classes", "macro(recall, train)", ">="),
    ("every class", "every_class(recall, train)", ">="),
    ("error of several classes", "error_rate(train)", "<="),
    ("difference", "abs(recall(train, of=cat, sex=F) - recall(train, of=cat, sex=M))", "<="),
    ("largest difference", "max_difference(error_rate, train, by=sex)", "<="),
    ("equalized odds", "equalized_odds_difference(train, of=dog, by=sex)", "<="),
    ("least ratio", "min_ratio(positive_rate, train, of=fox, by=sex)", ">="),
    ("every group", "every_group(accuracy, train, by=sex)", ">="),
    ("condition", "recall(train, of=fox, age<=33)", ">="),
    ("range", "error_rate(train, 18<=age<25, sex=M)", "<="),
    ("cost", "cost(train, {cat->dog: 20, dog->cat: 1})", "<="),
)


class People(NamedTuple):
    """A population, and what is decided about it."""

    y: np.ndarray
    said: np.ndarray
    columns: dict[str, np.ndarray]
    deferred: Any = None  # what is said of those that are deferred, where some are
    largest_value: float | None = None  # of the columns of amounts

    def table(self, rows: Any = slice(None)) -> Table:
        """Return some of the people as goals see them."""
        columns = {name: values[rows] for name, values in self.columns.items()}
        return Table(None, self.y[rows], columns, largest_value=self.largest_value)

    def audited(self, goal: Goal, rows: Any = slice(None)) -> GoalAudit:
        """Return what some of the people show about a goal."""
        return audit(goal, self.said[rows], self.table(rows), defer_label=self.deferred)[0]


def population(n_people: int = N_PEOPLE) -> People:
    """Return people of four classes; the older and those of one group are decided about less well."""
    rng = np.random.default_rng(0)
    classes = np.array(["cat", "dog", "fox", "New Zealand"])
    y = rng.choice(classes, n_people, p=[0.3, 0.3, 0.25, 0.15])
    sex, age = rng.choice(["F", "M"], n_people, p=[0.4, 0.6]), rng.integers(18, 70, n_people)
    skill = 0.85 - 0.1 * (sex == "F") - 0.002 * (age - 18)
    said = np.where(rng.random(n_people) < skill, y, rng.choice(classes, n_people))
    return People(y, said, {"sex": sex, "age": age})


def wrong_verdicts(people: People, left: str, sense: str, confidence: float) -> dict[float, tuple[int, int]]:
    """Return for each distance how often a goal that fails by it is said to hold, and one that holds by it to fail.

    The ends of an interval do not depend on the bound: a goal holds where one of them is inside it.
    """
    probe = parse_goal(f"{left} {sense} 0.5").with_confidence(confidence)
    truth = people.audited(probe)
    drawn = [np.random.default_rng(split).integers(0, len(people.y), N_ROWS) for split in range(N_SPLITS)]
    found = [people.audited(probe, rows) for rows in drawn]
    above = np.array([truth.estimate - one.high for one in found])
    below = np.array([one.low - truth.estimate for one in found])
    holds, fails = (below, above) if sense == ">=" else (above, below)
    return {away: (int((holds >= away).sum()), int((fails > away).sum())) for away in DISTANCES}


def table_of(people: People, goals: Sequence[tuple[str, str, str]]) -> str:
    """Return how often audits of goals, each with a name, a left side and a sense, are wrong."""
    heads = [f"{error} by {away:g}, {level:g}" for level in CONFIDENCES for away in DISTANCES for error in ERRORS]
    lines = [f"| goal | text | {' | '.join(heads)} |", f"|---|---|{'---:|' * len(heads)}"]
    for name, left, sense in goals:
        tables = [wrong_verdicts(people, left, sense, level) for level in CONFIDENCES]
        counts = [count for table in tables for away in DISTANCES for count in table[away]]
        lines.append(
            f"| {name} | `{left} {sense} ...` | {' | '.join(f'{100 * one / N_SPLITS:.1f}' for one in counts)} |"
        )
        sys.stdout.write(lines[-1] + "\n")
        sys.stdout.flush()
    return "\n".join(lines) + "\n"


def explained(made_by: str, of_what: str) -> str:
    """Return how to read the table."""
    levels = " and ".join(f"{100 * (1 - level):.0f} at {level:g}" for level in CONFIDENCES)
    return f"""Made by `{made_by}`. A population of {N_PEOPLE:,} rows with {of_what};
{N_SPLITS} samples of {N_ROWS} rows. Each goal's bound lies a hair ({DISTANCES[0]:g}) or a point ({DISTANCES[1]:g}) away
from what the population has, so that the goal fails or holds by as much. *Said to hold, fails*: it fails by so much on
the population, and the audit says that it holds; *said to fail, holds*: the reverse. Share of the samples, in %. The
promise is at most {levels}; at a hair a bound that wastes nothing has just that, give or take the chance of
{N_SPLITS} samples (a standard deviation of 2.3 and of 1.3).

"""


def main(output: str = "docs/results/confidence/language.md") -> None:
    """Measure all goals and write the table."""
    how = explained("python bench/audit_coverage.py", "four classes, two groups and an age")
    title = "# Audits of goals on classes, differences and conditions\n\n"
    Path(output).write_text(title + how + table_of(population(), LEFT))


if __name__ == "__main__":
    main(*sys.argv[1:])
