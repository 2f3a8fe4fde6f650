"""How often all goals hold together on the population: rules that just meet them, and rules with margins.

A model is trained once for each data set, and the rows that it did not see are the population. Each draw takes some of
them, with replacement, as selection rows, chooses the rule of least error that meets the goals there, plain, with
margins of several confidences, and with margins of each goal by itself (Bonferroni, normal), and judges it on all of
the population.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri
from sklearn.ensemble import HistGradientBoostingClassifier

from counterpoise.goals import Goal, InfeasibleGoals, NoRows, Table, as_goals
from counterpoise.rules.choosing import as_problem
from counterpoise.rules.goal_rows import Answers, find_positive
from counterpoise.rules.options import Groups
from counterpoise.rules.program import choose
from counterpoise.rules.scores.candidates import CutPath, follow_cuts
from counterpoise.rules.scores.cuts import CutRules
from counterpoise.rules.scores.family import CutFamily
from counterpoise.rules.scores.fixed import deciding_rules
from counterpoise.rules.scores.table import RankedScores, ScoreTable, find_groups, rank
from papers.arrays import AnyArray, FloatArray, IntArray
from papers.datasets import load_dataset
from papers.results import ResultRow

EXPERIMENT = "holding"
GROUPS: dict[str, str | int] = {  # the column that makes two groups: a sensitive one, or a feature, cut at its median
    "adult": "sex",
    "acs-income": "sex",
    "census-income": "sex",
    "credit-default": "sex",
    "covertype": 5,  # the distance to roads
    "w8a": 148,
}
LARGEST = "acs-income", "covertype"  # of which 30,000 rows are drawn too
SIZES = {name: [1000, 3000, 10_000, *([30_000] if name in LARGEST else [])] for name in GROUPS}
DATASETS = tuple(GROUPS)
CONFIDENCES = (0.8, 0.9, 0.95)
DRAWS_IN_BLOCK = 50
PLAIN, BONFERRONI = "plain", "Bonferroni"
FEASIBLE, REACHED, HOLDS, VIOLATED, COST = "feasible", "reached", "holds", "reached and violated", "cost"
_MOST_TRAINED, _PART_TRAINED = 15_000, 3  # rows to train on: a third, and no more than so many
_MOST_ROWS = 150_000
_COVER = 2  # the class of covertype that counts as positive


@dataclass(frozen=True)
class Population:
    """The scores, labels, groups (A and B) and deployed answers of rows that the model was not trained on."""

    scores: FloatArray
    y: IntArray
    group: AnyArray
    deployed: IntArray

    def ranked(self, rows: IntArray | slice, by: tuple[str, ...], *, persons: IntArray | None = None) -> RankedScores:
        """Return some rows, sorted by score within groups; ``persons`` has the person of each, by number."""
        table = Table(None, self.y[rows], {"group": self.group[rows]}, self.deployed[rows])
        answers = Answers({"train": table}, {}, find_positive(np.array([0, 1]), None))
        known = ScoreTable({"train": self.scores[rows][:, None]}, answers, None, None, np.array([0.5]), persons=persons)
        return rank(known, find_groups(Groups(by), table))

    @cached_property
    def sorted_scores(self) -> dict[tuple[int, int, int], FloatArray]:
        """Return the sorted scores of rows with the same group, label and deployed answer."""
        codes = 4 * (self.group == "B") + 2 * self.y + self.deployed
        return {
            (code // 4, code // 2 % 2, code % 2): np.sort(self.scores[codes == code])
            for code in np.unique(codes).tolist()
        }

    def outcome(self, thresholds: Sequence[float], goals: tuple[Goal, ...]) -> tuple[bool, float]:
        """Return whether the thresholds of groups A and B meet all goals on the population, and their error."""
        counts = []
        for (group, y, deployed), scores in self.sorted_scores.items():
            n_below = int(np.searchsorted(scores, thresholds[group], side="right"))
            counts += [(group, y, deployed, 0, n_below), (group, y, deployed, 1, scores.size - n_below)]
        codes, y, deployed, decisions, n_rows = np.array(counts).T
        table = Table(None, y, {"group": np.where(codes == 0, "A", "B")}, deployed, sample_weight=n_rows)
        holds = all(goal.evaluate(decisions, table).holds for goal in goals)
        return holds, float(n_rows @ (decisions != y) / n_rows.sum())


class Block(NamedTuple):
    """Some draws of one size from one data set."""

    dataset: str
    learner: str  # the number of selection rows
    seed: int
    experiment: str = EXPERIMENT

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


def labelled(name: str) -> tuple[AnyArray, IntArray, AnyArray, AnyArray | None]:
    """Return features, labels, groups A and B, and the categorical features of a data set, in a random order."""
    data = load_dataset(name)
    X = np.asarray(data.X.toarray() if hasattr(data.X, "toarray") else data.X, dtype=np.float64)
    y = (np.asarray(data.y) == (_COVER if name == "covertype" else np.unique(data.y)[-1])).astype(np.int64)
    column = GROUPS.get(name, "sex")
    if isinstance(column, str):
        values = np.asarray(data.sensitive[column]).astype(str)
        names, sizes = np.unique(values, return_counts=True)
        first, second = names[np.argsort(-sizes)[:2]]
        kept, is_first = np.flatnonzero((values == first) | (values == second)), values == first
    else:
        kept, is_first = np.arange(y.size), X[:, column] <= np.median(X[:, column])
    rows = np.random.default_rng(0).permutation(kept)[:_MOST_ROWS]
    return X[rows], y[rows], np.where(is_first[rows], "A", "B"), data.categorical


@cache
def population(name: str) -> Population:
    """Return the rows of a data set that a model trained on some others scores."""
    X, y, group, categorical = labelled(name)
    n_trained = min(len(y) // _PART_TRAINED, _MOST_TRAINED)
    model, older = (
        HistGradientBoostingClassifier(max_iter=100, categorical_features=categorical, random_state=0).fit(X[:n], y[:n])
        for n in (n_trained, n_trained // 2)
    )
    rest = X[n_trained:]
    return Population(model.predict_proba(rest)[:, 1], y[n_trained:], group[n_trained:], older.predict(rest))


@cache
def goal_sets(name: str) -> dict[str, tuple[tuple[Goal, ...], tuple[str, ...]]]:
    """Return sets of goals around what the model has at the usual selection rate, and what rules use."""
    known = population(name)
    decisions = known.scores > np.quantile(known.scores, 1.0 - known.y.mean())
    return sets_of_goals(decisions, known.y, known.group, known.deployed)


def sets_of_goals(
    decisions: AnyArray, y: IntArray, group: AnyArray, deployed: IntArray
) -> dict[str, tuple[tuple[Goal, ...], tuple[str, ...]]]:
    """Return sets of goals around what decisions have, each with the columns that rules use."""
    recall, rate = decisions[y == 1].mean(), y.mean()
    parts = [decisions[group == name].mean() for name in ("A", "B")]
    gap, churn = abs(parts[0] - parts[1]), float((decisions != deployed).mean())
    floor, cap = f"recall >= {min(recall + 0.05, 0.97):.3f}", f"positive_rate <= {1.8 * rate:.3f}"
    alarms = "max_difference(false_positive_rate, by=group) <= 0.04"
    parity = f"max_difference(positive_rate, by=group) <= {max(0.6 * gap, 0.03):.3f}"
    odds = "max_difference(recall, by=group) <= 0.08"
    change = f"churn <= {churn + 0.06:.3f}"
    sets = {
        "one rate": ((floor,), ()),
        "two rates": ((floor, cap), ()),
        "parity": ((parity,), ("group",)),
        "equalized odds and recall": ((alarms, odds, f"recall >= {recall:.3f}"), ("group",)),
        "churn, recall and parity": ((change, f"recall >= {recall - 0.02:.3f}", parity), ("group",)),
        "five goals": ((floor, cap, alarms, change, f"precision >= {recall - 0.2:.3f}"), ("group",)),
    }
    return {title: (as_goals(list(texts)), by) for title, (texts, by) in sets.items()}


def measure(block: Block) -> list[ResultRow]:
    """Return for each set of goals and way of choosing how often things happened in a block, and the cost."""
    known, totals = population(block.dataset), dict[tuple[str, str, str], float]()
    for draw in range(DRAWS_IN_BLOCK):
        seed = block.seed * DRAWS_IN_BLOCK + draw
        rows = np.random.default_rng((seed, block.size)).integers(0, len(known.y), block.size)
        for title, (goals, by) in goal_sets(block.dataset).items():
            for way, quantity, value in run_draw(known, rows, goals, by):
                totals[title, way, quantity] = totals.get((title, way, quantity), 0.0) + value
    return [
        ResultRow(EXPERIMENT, block.dataset, block.learner, way, block.seed, None, quantity, title, value)
        for (title, way, quantity), value in totals.items()
    ]


def run_draw(
    known: Population,
    rows: IntArray,
    goals: tuple[Goal, ...],
    by: tuple[str, ...],
    *,
    persons: IntArray | None = None,
) -> Iterator[tuple[str, str, float]]:
    """Yield the way of choosing, what happened and its value, for one draw of selection rows."""
    problem = as_problem(1.0, None, goals, by=Groups(by), decision="fixed")
    ranked = known.ranked(rows, by, persons=persons)
    try:
        plain = deciding_rules(ranked, problem, choose(CutFamily(ranked), problem))
    except (InfeasibleGoals, NoRows):  # or a group without positives
        return
    yield PLAIN, FEASIBLE, 1.0
    yield from _outcome(PLAIN, known, ranked, plain.rules, goals, is_reached=True)
    path = follow_cuts(ranked, problem, plain.rules)
    for level in CONFIDENCES:
        rule, safe = path.safe_rule(level)
        yield from _outcome(str(level), known, ranked, rule, goals, is_reached=safe.confidence is not None)
        other = bonferroni(path, level)
        if other is not None:
            yield from _outcome(f"{BONFERRONI} {level}", known, ranked, other, goals, is_reached=True)


def _outcome(
    way: str, known: Population, ranked: RankedScores, rule: CutRules, goals: tuple[Goal, ...], *, is_reached: bool
) -> Iterator[tuple[str, str, float]]:
    (plain,) = ranked.as_rules(rule)
    levels = [plain.thresholds.get(f"group={name}", plain.thresholds.get("all", np.inf)) for name in ("A", "B")]
    holds, error = known.outcome(levels, goals)
    yield way, REACHED, float(is_reached)
    yield way, HOLDS, float(holds)
    yield way, VIOLATED, float(is_reached and not holds)
    yield way, COST, error


def bonferroni(path: CutPath, level: float) -> CutRules | None:
    """Return the cheapest rule that is inside of each bound by as many standard errors as its part of the risk asks."""
    now, z = path.path.now, path.path.z
    is_safe = (z >= ndtri(1.0 - (1.0 - level) / max(len(z), 1))).all(axis=0) & now.is_met
    if not is_safe.any():
        return None
    place = int(np.where(is_safe, now.cost, np.inf).argmin())
    return path.rules.only(path.path.kept[[place]])
