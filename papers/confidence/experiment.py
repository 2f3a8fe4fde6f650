"""How often goals fail on the population after a plain check and after a certificate.

*Adult* (the 1994 census income data) is the population. Each split trains a logistic regression on some of its rows and
moves a threshold until the goal is just met on others, as a hurried practitioner would: the plain goal, or the one that
``tightened`` gives. Then the classifier is looked at on rows that neither step saw: does the goal hold there, is it
certified, and is it violated on the population, that is on all rows that the model was not trained on?
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from counterpoise.auditing.audit import audit, tighten
from counterpoise.datasets import TableData, load_dataset
from counterpoise.goals import Goal, Table, as_goals, bind
from papers.arrays import AnyArray, FloatArray, IntArray
from papers.results import ResultRow

EXPERIMENT = "confidence"
DATASETS = ("adult",)
CONFIDENCE = 0.95
N_TRAIN = N_CHOOSE = N_CERTIFY = 2000  # rows
SPLITS_IN_BLOCK = 10
PLAIN, TIGHTENED = "plain goal", "tightened goal"
VIOLATED, MET_AND_VIOLATED = "violated", "met on held-out rows and violated"
CERTIFIED, CERTIFIED_AND_VIOLATED = "certified", "certified and violated"
QUANTITIES = (VIOLATED, MET_AND_VIOLATED, CERTIFIED, CERTIFIED_AND_VIOLATED)
_HALF = 0.5
_MOST_HOURS = 99.0  # a week, as the census writes them
_N_THRESHOLDS = 200


class Case(NamedTuple):
    """Goals, and the direction in which a threshold on the score gains until they are just met."""

    name: str
    goals: tuple[str, ...]
    rises: bool  # the greedy end is the highest threshold
    moved: str = ""  # the sex for which the threshold moves; for the other it stays at one half
    weighted: bool = False


CASES = (
    Case("recall", ("recall(train) >= 0.6",), rises=True),
    Case("false positive rate", ("false_positive_rate(train) <= 0.1",), rises=False),
    Case("precision", ("precision(train) >= 0.7",), rises=False),
    Case("churn", ("churn(train) <= 0.05",), rises=False),
    Case(
        "80 % rule",
        ("positive_rate(train, sex=Female) >= 0.8 * positive_rate(train, sex=Male)",),
        rises=True,
        moved="Female",
    ),
    Case("recall of both sexes", ("recall(train, sex=Female) >= 0.5", "recall(train, sex=Male) >= 0.6"), rises=True),
    Case("recall, weighted by hours", ("recall(train) >= 0.6",), rises=True, weighted=True),
)


class Population(NamedTuple):
    """Rows that stand for a whole population, of which splits are drawn."""

    X: AnyArray
    y: AnyArray
    sex: AnyArray
    weights: FloatArray

    def table(self, rows: IntArray, baseline: AnyArray, *, weighted: bool) -> Table:
        """Return some of the rows, as goals see them."""
        weights, largest = (self.weights[rows], _MOST_HOURS) if weighted else (None, None)
        sex = {"sex": self.sex[rows]}
        return Table(None, self.y[rows], sex, baseline[rows], sample_weight=weights, largest_weight=largest)


class Block(NamedTuple):
    """Ten splits of a data set."""

    dataset: str
    seed: int

    def __str__(self) -> str:
        return f"{self.dataset}, splits {self.seed * SPLITS_IN_BLOCK + 1} to {(self.seed + 1) * SPLITS_IN_BLOCK}"


def wanted(datasets: Sequence[str], n_blocks: int) -> list[Block]:
    """Return the blocks of ten splits."""
    return [Block(name, seed) for name in datasets for seed in range(n_blocks)]


def measure(block: Block) -> list[ResultRow]:
    """Return, for each case and way of choosing, in how many of the block's splits each thing happened."""
    population = _population(block.dataset)
    totals: Counter[tuple[str, str, str]] = Counter()
    for split in range(SPLITS_IN_BLOCK):
        totals.update(run_split(population, block.seed * SPLITS_IN_BLOCK + split))
    return [
        ResultRow(EXPERIMENT, block.dataset, "logistic", way, block.seed, None, quantity, case.name, totals[key])
        for case in CASES
        for way in (PLAIN, TIGHTENED)
        for quantity in QUANTITIES
        for key in [(case.name, way, quantity)]
    ]


def run_split(
    population: Population, seed: int, *, cases: Sequence[Case] = CASES, n_rows: int = N_TRAIN
) -> Iterator[tuple[str, str, str]]:
    """Yield the case, the way of choosing and what happened, for all that happened on one split.

    Parameters
    ----------
    population : Population
    seed : int
        Of the split.
    cases : sequence of Case
    n_rows : int
        To train on, to choose on and to certify on, each.
    """
    shuffled = np.random.default_rng(seed).permutation(len(population.y))
    train, choose, held_out = (shuffled[part * n_rows : (part + 1) * n_rows] for part in range(3))
    scores = _scores(population, train)
    deployed = (_scores(population, train[: n_rows // 2]) > _HALF).astype(np.int64)
    for case in cases:

        def looked_at(rows: IntArray, levels: FloatArray, case: Case = case) -> tuple[AnyArray, Table]:
            """Return the decisions for some rows and thresholds, and the rows as goals see them."""
            table = population.table(rows, deployed, weighted=case.weighted)
            return _decisions(case, scores[rows], population.sex[rows], levels), table

        levels = _levels(case, scores[choose], population.sex[choose])
        plain = as_goals(case.goals)
        for way, place in _choices(plain, *looked_at(choose, levels)):
            seen, everyone = (looked_at(rows, levels[place]) for rows in (held_out, shuffled[n_rows:]))
            for happened in _events(plain, seen, everyone):
                yield case.name, way, happened


def _choices(goals: Sequence[Goal], decisions: AnyArray, table: Table) -> Iterator[tuple[str, int]]:
    """Yield the threshold that just meets the goals on these rows, and the one that just meets the tightened ones."""
    first = _chosen(decisions, goals, table)
    yield PLAIN, first
    planned = [
        tighten(goal, table, predictions=decisions[:, first], confidence=CONFIDENCE, n_goals=len(goals))
        for goal in goals
    ]
    yield TIGHTENED, _chosen(decisions, planned, table)


def _events(
    goals: Sequence[Goal], held_out: tuple[AnyArray, Table], population: tuple[AnyArray, Table]
) -> Iterator[str]:
    """Yield what happened: goals in question are those that a check passed, or all."""
    violated = [not goal.evaluate(*population).holds for goal in goals]
    met = [goal.evaluate(*held_out).holds for goal in goals]
    certified = [row.verdict == "holds" for row in audit(goals, *held_out, confidence=CONFIDENCE)]
    if any(violated):
        yield VIOLATED
    if any(map(all, zip(met, violated, strict=True))):
        yield MET_AND_VIOLATED
    if all(certified):
        yield CERTIFIED
    if any(map(all, zip(certified, violated, strict=True))):
        yield CERTIFIED_AND_VIOLATED


def _scores(population: Population, rows: IntArray) -> FloatArray:
    model = LogisticRegression(max_iter=1000).fit(population.X[rows], population.y[rows])
    return np.asarray(model.predict_proba(population.X)[:, 1])


def _levels(case: Case, scores: FloatArray, sex: AnyArray) -> FloatArray:
    """Return thresholds from the greedy end to the safe one."""
    moving = scores[sex == case.moved] if case.moved else scores
    levels = np.unique(np.quantile(moving, np.linspace(0.0, 1.0, _N_THRESHOLDS)))
    if "churn" in case.goals[0]:  # only those that accept more than the deployed model does
        levels = levels[levels <= _HALF]
    return levels[::-1] if case.rises else levels


def _decisions(case: Case, scores: FloatArray, sex: AnyArray, levels: FloatArray) -> AnyArray:
    """Return the decisions, with a column for each threshold where there are several."""
    decided = np.greater.outer(scores, levels)
    if case.moved:
        stays = sex != case.moved
        decided[stays] = (scores[stays] > _HALF).reshape(-1, *[1] * np.ndim(levels))
    return decided.astype(np.int8)


def _chosen(decisions: AnyArray, goals: Sequence[Goal], table: Table) -> int:
    """Return the first column that meets the goals, or the last."""
    met = (bind(goals, table).violations({"train": decisions}) <= 0.0).all(axis=0)
    return int(np.argmax(met)) if met.any() else decisions.shape[1] - 1


@cache
def _population(name: str) -> Population:
    data: TableData = load_dataset(name)
    encode = make_column_transformer(
        (OneHotEncoder(sparse_output=False), np.flatnonzero(data.categorical)), remainder=StandardScaler()
    )
    hours = np.asarray(data.X)[:, list(data.feature_names).index("hours-per-week")].astype(np.float64)
    return Population(encode.fit_transform(data.X), data.y, np.asarray(data.sensitive["sex"]), hours)
