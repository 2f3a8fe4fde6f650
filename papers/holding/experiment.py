"""How often all goals hold together on the population: rules that just meet them, and rules with margins.

A model is trained once for each data set, and the rows that it did not see are the population. Each draw takes some of
them as selection rows, chooses the rule of least error that meets the goals there, plain, with margins of several
confidences, and with margins of each goal by itself (Bonferroni, normal), and looks at all of the population.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri
from sklearn.ensemble import HistGradientBoostingClassifier

from counterpoise.goals import Goal, InfeasibleGoals, Table, as_goals
from counterpoise.rules.choosing import Problem, as_problem
from counterpoise.rules.goal_rows import Answers, find_positive
from counterpoise.rules.margins import judge
from counterpoise.rules.options import Groups
from counterpoise.rules.program import choose
from counterpoise.rules.scores.candidates import candidate_table, hold_cuts
from counterpoise.rules.scores.cuts import CutRules
from counterpoise.rules.scores.family import CutFamily
from counterpoise.rules.scores.fixed import deciding_rules
from counterpoise.rules.scores.table import RankedScores, ScoreTable, find_groups, rank
from papers.arrays import AnyArray, FloatArray, IntArray
from papers.datasets import load_dataset
from papers.results import ResultRow

EXPERIMENT = "holding"
SIZES = {  # selection rows: the population has at least three times as many
    "adult": (1000, 3000, 10_000),
    "acs-income": (1000, 3000, 10_000, 30_000),
    "census-income": (1000, 3000, 10_000, 30_000),
    "credit-default": (1000, 3000),
    "compas": (1000,),
}
DATASETS = tuple(SIZES)
CONFIDENCES = (0.8, 0.9, 0.95)
DRAWS_IN_BLOCK = 5
PLAIN, BONFERRONI = "plain", "Bonferroni"
FEASIBLE, REACHED, HOLDS, VIOLATED, COST = "feasible", "reached", "holds", "reached and violated", "cost"
_MOST_TRAINED, _PART_TRAINED = 15_000, 3  # rows to train on: a third, and no more than so many
_MOST_ROWS = 300_000


class Population(NamedTuple):
    """The scores, labels, groups and deployed answers of rows that the model was not trained on."""

    scores: FloatArray
    y: AnyArray
    group: AnyArray
    deployed: AnyArray

    def ranked(self, rows: IntArray | slice, by: tuple[str, ...]) -> RankedScores:
        """Return some rows, sorted by score within groups."""
        table = Table(None, self.y[rows], {"group": self.group[rows]}, self.deployed[rows])
        answers = Answers({"train": table}, {}, find_positive(np.array([0, 1]), None))
        known = ScoreTable({"train": self.scores[rows][:, None]}, answers, None, None, np.array([0.5]))
        return rank(known, find_groups(Groups(by), table))

    def decide(self, ranked: RankedScores, rule: CutRules) -> AnyArray:
        """Return what a rule that was chosen on some rows says of all."""
        (plain,) = ranked.as_rules(rule)
        levels = plain.thresholds
        own = [levels.get(f"group={name}", levels.get("all", np.inf)) for name in ("A", "B")]
        return np.asarray(self.scores > np.where(self.group == "A", *own))


class Block(NamedTuple):
    """A few draws of one size from one data set."""

    dataset: str
    learner: str  # the number of selection rows
    seed: int

    @property
    def size(self) -> int:
        """Return the number of selection rows."""
        return int(self.learner)

    def __str__(self) -> str:
        first = self.seed * DRAWS_IN_BLOCK + 1
        return f"{self.dataset}, {self.size:,} rows, draws {first} to {first + DRAWS_IN_BLOCK - 1}"


def wanted(datasets: Sequence[str], n_blocks: int) -> list[Block]:
    """Return the blocks of draws, the first of every data set and size before the second."""
    return [Block(name, str(size), seed) for seed in range(n_blocks) for name in datasets for size in SIZES[name]]


@cache
def population(name: str) -> Population:
    """Return the rows of a data set that a model trained on some others scores."""
    data = load_dataset(name)
    groups = np.asarray(data.sensitive["sex"]).astype(str)
    names, counts = np.unique(groups, return_counts=True)
    first, second = names[np.argsort(-counts)[:2]]
    rows = np.random.default_rng(0).permutation(np.flatnonzero((groups == first) | (groups == second)))[:_MOST_ROWS]
    X = np.asarray(data.X, dtype=np.float64)
    n_trained = min(len(rows) // _PART_TRAINED, _MOST_TRAINED)
    train, rest = rows[:n_trained], rows[n_trained:]
    y = (np.asarray(data.y) == np.unique(data.y)[-1]).astype(np.int64)
    model, older = (
        HistGradientBoostingClassifier(max_iter=100, categorical_features=data.categorical, random_state=0).fit(
            X[some], y[some]
        )
        for some in (train, train[: n_trained // 2])
    )
    scores = model.predict_proba(X[rest])[:, 1]
    return Population(scores, y[rest], np.where(groups[rest] == first, "A", "B"), older.predict(X[rest]))


@cache
def goal_sets(name: str) -> dict[str, tuple[tuple[Goal, ...], tuple[str, ...]]]:
    """Return sets of goals around what the model has at the usual selection rate, and what rules look at."""
    known = population(name)
    said = known.scores > np.quantile(known.scores, 1.0 - known.y.mean())
    recall, rate = said[known.y == 1].mean(), known.y.mean()
    parts = [said[known.group == group].mean() for group in ("A", "B")]
    gap, churn = abs(parts[0] - parts[1]), float((said != known.deployed).mean())
    floor, cap = f"recall(train) >= {min(recall + 0.05, 0.97):.3f}", f"positive_rate(train) <= {1.8 * rate:.3f}"
    alarms = "max_difference(false_positive_rate, train, by=group) <= 0.04"
    parity = f"max_difference(positive_rate, train, by=group) <= {max(0.6 * gap, 0.03):.3f}"
    odds = "max_difference(recall, train, by=group) <= 0.08"
    change = f"churn(train) <= {churn + 0.06:.3f}"
    sets = {
        "one rate": ((floor,), ()),
        "two rates": ((floor, cap), ()),
        "parity": ((parity,), ("group",)),
        "equalized odds and recall": ((alarms, odds, f"recall(train) >= {recall:.3f}"), ("group",)),
        "churn, recall and parity": ((change, f"recall(train) >= {recall - 0.02:.3f}", parity), ("group",)),
        "five goals": ((floor, cap, alarms, change, f"precision(train) >= {recall - 0.2:.3f}"), ("group",)),
    }
    return {title: (as_goals(list(texts)), by) for title, (texts, by) in sets.items()}


def measure(block: Block) -> list[ResultRow]:
    """Return for each set of goals and way of choosing how often things happened in a block, and the cost."""
    known, totals = population(block.dataset), dict[tuple[str, str, str], float]()
    for draw in range(DRAWS_IN_BLOCK):
        seed = block.seed * DRAWS_IN_BLOCK + draw
        rows = np.random.default_rng((seed, block.size)).choice(len(known.y), block.size, replace=False)
        for title, (goals, by) in goal_sets(block.dataset).items():
            for way, quantity, value in run_draw(known, rows, goals, by):
                totals[title, way, quantity] = totals.get((title, way, quantity), 0.0) + value
    return [
        ResultRow(EXPERIMENT, block.dataset, block.learner, way, block.seed, None, quantity, title, value)
        for (title, way, quantity), value in totals.items()
    ]


def run_draw(
    known: Population, rows: IntArray, goals: tuple[Goal, ...], by: tuple[str, ...]
) -> Iterator[tuple[str, str, float]]:
    """Yield the way of choosing, what happened and its value, for one draw of selection rows."""
    problem = as_problem(1.0, None, goals, by=Groups(by), decision="fixed")
    ranked = known.ranked(rows, by)
    try:
        plain = deciding_rules(ranked, problem, choose(CutFamily(ranked), problem))
    except InfeasibleGoals:
        return
    yield PLAIN, FEASIBLE, 1.0
    yield from _outcome(PLAIN, known, ranked, plain.rules, goals, is_reached=True)
    for level in CONFIDENCES:
        rule, safe = hold_cuts(ranked, problem, plain.rules, level)
        yield from _outcome(str(level), known, ranked, rule, goals, is_reached=safe.confidence is not None)
        other = _bonferroni(ranked, problem, plain.rules, level)
        if other is not None:
            yield from _outcome(f"{BONFERRONI} {level}", known, ranked, other, goals, is_reached=True)


def _outcome(
    way: str, known: Population, ranked: RankedScores, rule: CutRules, goals: tuple[Goal, ...], *, is_reached: bool
) -> Iterator[tuple[str, str, float]]:
    said = known.decide(ranked, rule).astype(np.int64)
    table = Table(None, known.y, {"group": known.group}, known.deployed)
    holds = all(goal.evaluate(said, table).holds for goal in goals)
    yield way, REACHED, float(is_reached)
    yield way, HOLDS, float(holds)
    yield way, VIOLATED, float(is_reached and not holds)
    yield way, COST, float((said != known.y).mean())


def _bonferroni(ranked: RankedScores, problem: Problem, plain: CutRules, level: float) -> CutRules | None:
    """Return the cheapest rule that is inside of each bound by as many standard errors as its part of the risk asks."""
    rules, table, parts, random = candidate_table(ranked, problem, plain)
    now, z, _ = judge(table, table.shares(table.observed()), len(parts), random, {})
    is_safe = (z >= ndtri(1.0 - (1.0 - level) / max(random.size, 1))).all(axis=0) & now.is_met
    if not is_safe.any():
        return None
    return rules.only(np.array([int(np.where(is_safe, now.cost, np.inf).argmin())]))
