"""Audits: how often a verdict is wrong, for each kind of goal, on three populations.

A population of 40,000 rows is decided about by a classifier that is better for some than for others: one with classes,
groups and an age, one that defers rows, and one with amounts. Each goal's bound is put where it is hardest: near what
the population has, so that the goal just fails or just holds. Then 300 samples of 500 rows are audited, and a verdict
that contradicts the population is wrong.
"""
# ruff: noqa: PLR2004 - populations are made of numbers

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from counterpoise.auditing.audit import GoalAudit, audit
from counterpoise.goals import Goal, Table, parse_goal
from papers.arrays import AnyArray
from papers.experiments import Blocks, Experiment, long_rows
from papers.markdown import markdown_table
from papers.tables import ResultRow, ResultsTable

NAME = "audits"
N_PEOPLE, N_ROWS, N_SPLITS = 40_000, 500, 300
CONFIDENCES = (0.8, 0.95)
DISTANCES = (1e-6, 0.01)
ERRORS = ("said to hold, fails", "said to fail, holds")
LIMIT = 3000.0  # the largest amount
N_REMOTE = 20  # people of the region that is left out
DEFERRED = "ask a person"
LANGUAGE = (
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
DEFERRAL = (
    ("deferral", "defer_rate(train)", "<="),
    ("deferral of a group", "defer_rate(train, sex=F)", "<="),
    ("deferral of the positives", "defer_rate(train.positives)", "<="),
    ("deferral, group against group", "defer_rate(train, sex=F) - 1.2 * defer_rate(train, sex=M)", "<="),
    ("largest difference of deferral", "max_difference(defer_rate, train, by=sex)", "<="),
    ("error among the decided", "decided_error_rate(train)", "<="),
    ("positives among the decided of a group", "decided_positive_rate(train, sex=F)", ">="),
    ("recall, deferred rows are not found", "recall(train)", ">="),
    ("error, deferred rows are not wrong", "error_rate(train, sex=F)", "<="),
    ("negative predictions", "negative_rate(train)", ">="),
    ("precision", "precision(train)", ">="),
)
AMOUNTS = (
    ("recall in money", "recall(value=amount)", ">="),
    ("recall in rare money", "recall(value=rare)", ">="),
    ("precision in money", "precision(value=amount)", ">="),
    ("selection in money, one group", "positive_rate(sex=F, value=amount)", "<="),
    ("difference in money", "max_difference(recall, by=sex, value=amount)", "<="),
    ("least ratio in money", "min_ratio(positive_rate, by=sex, value=amount)", ">="),
    ("cost of amounts", "cost({1->0: amount, 0->1: 50})", "<="),
    ("cost of rare amounts", "cost({1->0: rare, 0->1: 5})", "<="),
    ("mean profit", "cost({1->1: profit, 0->1: profit})", ">="),
    ("equality", "positive_rate == 0.4", "+-"),
    ("equality of a ratio", "precision == 0.7", "+-"),
    ("equality of two groups", "recall(sex=F) == recall(sex=M)", "+-"),
    ("equality of every group", "every_group(recall, by=sex) == 0.8", "+-"),
    ("equality in money", "recall(value=amount) == 0.7", "+-"),
    ("difference without small groups", "max_difference(error_rate, by=region, min_rows=30)", "<="),
    ("every group but small ones", "every_group(recall, by=region, min_rows=30)", ">="),
    ("money without small groups", "max_difference(recall, by=region, value=amount, min_rows=30)", "<="),
)


class Part(NamedTuple):
    """A goal on a population."""

    dataset: str
    method: str  # the goal's name
    seed: int = 0


class People(NamedTuple):
    """A population, and what is decided about it."""

    y: AnyArray
    said: AnyArray
    columns: dict[str, AnyArray]
    deferred: Any = None  # what is said of those that are deferred, where some are
    largest_value: float | None = None  # of the columns of amounts

    def table(self, rows: Any = slice(None)) -> Table:
        """Return some of the people as goals see them."""
        columns = {name: values[rows] for name, values in self.columns.items()}
        return Table(None, self.y[rows], columns, largest_value=self.largest_value)

    def audited(self, goal: Goal, rows: Any = slice(None)) -> GoalAudit:
        """Return what some of the people show about a goal."""
        return audit(goal, self.said[rows], self.table(rows), defer_label=self.deferred)[0]


def people_of_classes(n_people: int = N_PEOPLE) -> People:
    """Return people of four classes; the older and those of one group are decided about less well."""
    rng = np.random.default_rng(0)
    classes = np.array(["cat", "dog", "fox", "New Zealand"])
    y = rng.choice(classes, n_people, p=[0.3, 0.3, 0.25, 0.15])
    sex, age = rng.choice(["F", "M"], n_people, p=[0.4, 0.6]), rng.integers(18, 70, n_people)
    skill = 0.85 - 0.1 * (sex == "F") - 0.002 * (age - 18)
    said = np.where(rng.random(n_people) < skill, y, rng.choice(classes, n_people))
    return People(y, said, {"sex": sex, "age": age})


def people_deferred(n_people: int = N_PEOPLE) -> People:
    """Return people of two classes; who is hard to tell, or of one group, is deferred more often."""
    rng = np.random.default_rng(0)
    sex, hard = rng.choice(["F", "M"], n_people, p=[0.4, 0.6]), rng.random(n_people)
    y = rng.choice(["no", "yes"], n_people, p=[0.6, 0.4])
    other = np.where(y == "no", "yes", "no")
    said = np.where(rng.random(n_people) < 0.5 * hard**2, other, y)
    is_deferred = rng.random(n_people) < 0.25 * hard * np.where(sex == "F", 1.3, 1.0)
    return People(y, np.where(is_deferred, DEFERRED, said), {"sex": sex}, DEFERRED)


def people_with_amounts(n_people: int = N_PEOPLE) -> People:
    """Return people with amounts; large ones of one group are decided about less well."""
    rng = np.random.default_rng(0)
    sex, region = rng.choice(["F", "M"], n_people, p=[0.4, 0.6]), rng.choice(["east", "north", "west"], n_people)
    region[:N_REMOTE] = "remote"
    y = (rng.random(n_people) < 0.4).astype(int)
    amount = np.minimum(rng.lognormal(5, 1, n_people), LIMIT)
    rare = np.where(rng.random(n_people) < 0.01, LIMIT, 10.0)
    skill = 0.85 - 0.1 * (sex == "F") - 0.1 * (amount > 300) - 0.3 * (rare == LIMIT) - 0.05 * (region == "west")
    decided = np.where(rng.random(n_people) < skill, y, 1 - y)
    profit = np.where(y == 1, amount, -amount)
    columns = {"sex": sex, "region": region, "amount": amount, "rare": rare, "profit": profit}
    return People(y, decided, columns, largest_value=LIMIT)


KINDS: dict[str, tuple[Callable[[], People], tuple[tuple[str, str, str], ...]]] = {
    "classes, differences, conditions": (people_of_classes, LANGUAGE),
    "deferred rows": (people_deferred, DEFERRAL),
    "amounts, equalities, small groups": (people_with_amounts, AMOUNTS),
}


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


def wanted(datasets: Sequence[str], _n_seeds: int) -> list[Part]:
    """Return all goals of the populations."""
    return [Part(name, goal) for name in datasets for goal, _, _ in KINDS[name][1]]


def measure(part: Part) -> list[ResultRow]:
    """Return how many verdicts about a goal are wrong, at each confidence and distance of the bound."""
    draw, goals = KINDS[part.dataset]
    people = draw()
    ((left, sense),) = ((left, sense) for goal, left, sense in goals if goal == part.method)
    rows = []
    for level in CONFIDENCES:
        for away, counts in wrong_verdicts(people, left, sense, level).items():
            found = dict(zip(ERRORS, map(float, counts), strict=True))
            rows += long_rows(NAME, part.dataset, part.method, part.seed, found, alpha=level, settings=f"away={away:g}")
    return rows


def blocks(rows: ResultsTable) -> Blocks:
    """Return for each population the largest share of wrong verdicts, beside what is promised."""
    lines = []
    for name in dict.fromkeys(row.dataset for row in rows):
        for level in CONFIDENCES:
            own = rows.where(dataset=name, alpha=level)
            goals = {row.method for row in own}
            worst = {
                away: max(row.value for row in own.where(settings=f"away={away:g}")) / N_SPLITS for away in DISTANCES
            }
            risk = 1 - level
            allowed = risk + 2 * math.sqrt(risk * level / N_SPLITS)
            shown = [f"{100 * worst[away]:.1f}" for away in DISTANCES]
            is_met = "met" if worst[DISTANCES[0]] <= allowed else "**missed**"
            lines.append([name, str(len(goals)), f"{level:g}", *shown, f"{100 * allowed:.1f}", is_met])
    heads = [
        "population",
        "goals",
        "confidence",
        "most wrong, bound at a hair, %",
        "at a point, %",
        "allowed, %",
        "the rule",
    ]
    return {"table": markdown_table(heads, lines)}


EXPERIMENT = Experiment(NAME, "how often audits are wrong", wanted, measure, blocks, tuple(KINDS), 1)
EXPERIMENT = replace(EXPERIMENT, quick=replace(EXPERIMENT, parts=lambda datasets, n: wanted(datasets, n)[:2]))
