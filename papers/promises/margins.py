"""Figure (a): how often goals hold on the population, and at what cost: ours and every peer, with and without margins.

A model is trained once for each set, and the rows that it did not see are the population. Each draw takes some of them,
with replacement, as selection rows. Everyone chooses there by the same scores, twice: with the bounds of the goals, and
with the values that our margins of confidence 0.9 aim at in the place of the bounds. Decisions that are drawn are
judged in expectation.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from counterpoise import GoalClassifier
from counterpoise.goals import Goal, InfeasibleGoals, NoRows
from papers.arrays import AnyArray, FloatArray
from papers.comparison.methods import Method
from papers.comparison.peers import PEERS as METHODS
from papers.comparison.peers import Column
from papers.comparison.questions import GOALS as QUESTIONS
from papers.comparison.questions import PARITY, Chances
from papers.comparison.rows import SOURCES, Case, Rows
from papers.promises.populations import BOTH, GOALS, SETS, Population, columns_of, goals_of, judge, population
from papers.tables import ResultRow

NAME = "margins"
OURS, OXONFAIR, MAPIE, THRESHOLDS = "counterpoise", "OxonFair", "MAPIE", "ThresholdOptimizer"
PLAIN, MARGINS = "plain", "margins"
CONFIDENCE = 0.9
DRAWS_IN_BLOCK, N_BLOCKS = 10, 20
OTHER_BLOCKS = 10  # of draws, at the other sizes
SIZES = (3000, 1000, 10_000)  # peers choose at the first, ours at all
DRAWS, FOUND, REACHED, HELD, BROKEN = "draws", "found", "reached", "held", "reached and broken"
COST, COST_SQUARED, MET, ROOM = "cost", "cost squared", "met on selection rows", "margin"
_MET_WITHIN = 1e-3  # of a bound: peers interpolate between thresholds
_COST = QUESTIONS[PARITY].cost  # the error, for everyone
MODULES = {
    THRESHOLDS: "fairlearn",
    "error-parity": "error_parity",
    OXONFAIR: "oxonfair",
    "TunedThreshold": "sklearn",
    MAPIE: "mapie",
}
PEERS: Mapping[str, Method] = {method.name: method for method in METHODS if method.name in MODULES}


class Part(NamedTuple):
    """Some draws from a population, for one set of goals and one way to choose."""

    dataset: str
    learner: str  # the number of selection rows
    split: str  # the goals
    method: str
    seed: int
    experiment: str = NAME

    def __str__(self) -> str:
        first = self.seed * DRAWS_IN_BLOCK + 1
        return f"{self.dataset}, {self.learner} rows, {self.split}, {self.method}, draws from {first}"


def parts(datasets: Sequence[str], n_seeds: int) -> list[Part]:
    """Return the parts, so that those of peers follow ours on the same draws; absent peers are left out."""
    names = [OURS, *(name for name in PEERS if find_spec(MODULES[name]) is not None)]
    most = dict.fromkeys(SIZES, OTHER_BLOCKS) | {SIZES[0]: n_seeds}
    return [
        Part(dataset, str(size), title, name, seed)
        for size in SIZES
        for seed in range(min(n_seeds, most[size]))
        for dataset in datasets
        for title in GOALS
        for name in (names if size == SIZES[0] else [OURS])
        if name == OURS or can_ask(name, title)
    ]


def can_ask(name: str, title: str) -> bool:
    """Tell whether a peer can express a set of goals."""
    return name == OXONFAIR if title == BOTH else title in PEERS[name].asks


class Draw(NamedTuple):
    """The selection rows of a draw, and our classifiers of them; none where the goals are infeasible there."""

    selection: Population
    plain: Any
    safe: Any

    def aims(self, goals: tuple[Goal, ...]) -> list[float]:
        """Return for each goal the value that our margins aim at; without margins its bound."""
        margins = self.safe.margins_ or ()
        return [margin.value for margin in margins] if len(margins) == len(goals) else [goal.bound for goal in goals]


@lru_cache(maxsize=2 * DRAWS_IN_BLOCK)
def draw_of(name: str, size: int, title: str, seed: int) -> Draw:
    """Return a draw from the population of a data set, with our choices for a set of goals."""
    known = population(name)
    selection = known.take(np.random.default_rng((seed, size)).integers(0, len(known.y), size))
    model = GoalClassifier([Column()], cv="prefit", confidence=None, random_state=0)
    model.fit(selection.scores[:, None], selection.y, sensitive_features={"group": selection.group})
    try:
        plain, safe = (
            model.rebalance(goals=goals_of(name, title), by=columns_of(title), confidence=level)
            for level in (None, CONFIDENCE)
        )
    except (InfeasibleGoals, NoRows):
        return Draw(selection, None, None)
    return Draw(selection, plain, safe)


def measure(part: Part) -> list[ResultRow]:
    """Return how often things happened in a block of draws, and the sums of the costs."""
    totals: dict[tuple[str, str], float] = {}
    for place in range(DRAWS_IN_BLOCK):
        for way, quantity, value in run_draw(part, part.seed * DRAWS_IN_BLOCK + place):
            totals[way, quantity] = totals.get((way, quantity), 0.0) + value
    where = part.dataset, part.learner, part.method, part.seed, None
    return [ResultRow(NAME, *where, quantity, part.split, value, way) for (way, quantity), value in totals.items()]


def run_draw(part: Part, seed: int) -> Iterator[tuple[str, str, float]]:
    """Yield the way of choosing, what happened and its value, for one draw."""
    known, goals = population(part.dataset), goals_of(part.dataset, part.split)
    draw = draw_of(part.dataset, int(part.learner), part.split, seed)
    yield PLAIN, DRAWS, 1.0
    if draw.plain is None:
        return
    least = judge(decide(draw.plain, known), known, goals).error
    ways = ((PLAIN, draw.plain, [goal.bound for goal in goals]), (MARGINS, draw.safe, draw.aims(goals)))
    for way, model, bounds in ways:
        if part.method == OURS:
            on_selection, on_all = decide(model, draw.selection), decide(model, known)
        elif way == MARGINS and part.split not in (*PEERS[part.method].bounded, BOTH):
            continue
        else:
            answers = ask(part, draw.selection, known, bounds, seed)
            if answers is None:
                continue
            on_selection, on_all = answers
        aimed = tuple(goal.with_bound(bound) for goal, bound in zip(goals, bounds, strict=True))
        outcome = judge(on_all, known, goals)
        is_reached = way == PLAIN or draw.safe.confidence_ is not None
        cost = 100 * (outcome.error - least)
        yield way, FOUND, 1.0
        yield way, REACHED, float(is_reached)
        yield way, HELD, float(outcome.holds)
        yield way, BROKEN, float(is_reached and not outcome.holds)
        yield way, MET, float(judge(on_selection, draw.selection, aimed).missed_by <= _MET_WITHIN)
        yield way, COST, cost
        yield way, COST_SQUARED, cost**2
        yield way, ROOM, 100 * abs(bounds[0] - goals[0].bound)


def decide(model: Any, rows: Population) -> AnyArray:
    """Return our decisions."""
    return np.asarray(model.predict(rows.scores[:, None], sensitive_features={"group": rows.group}), dtype=np.float64)


def ask(
    part: Part, selection: Population, known: Population, bounds: Sequence[float], seed: int
) -> tuple[Chances, Chances] | None:
    """Return the chances that a peer calls selection rows and the population positive; None where it finds no rule."""
    chosen, others = _as_rows(selection), _as_rows(known)
    test = Rows(*map(np.concatenate, zip(chosen, others, strict=True)))
    case = Case(SOURCES["Adult"], chosen, test, None, None, seed)  # what only training needs is left empty
    choose = _oxonfair_both if part.split == BOTH else partial(_choose, PEERS[part.method], part.split)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            chances = choose(case, bounds)
    except ValueError:  # as MAPIE and OxonFair say so
        return None
    return chances[: len(selection.y)], chances[len(selection.y) :]


def _choose(method: Method, title: str, case: Case, bounds: Sequence[float]) -> Chances:
    assert method.prepare is not None  # noqa: S101 - all that choose by scores have one
    return np.asarray(method.prepare(case)(QUESTIONS[title]._replace(cost=_COST), bounds[0]), dtype=np.float64)


def _oxonfair_both(case: Case, bounds: Sequence[float]) -> Chances:
    """Choose by OxonFair's grid of thresholds for a difference of positive rates and a recall together."""
    package, metrics = import_module("oxonfair"), import_module("oxonfair.utils.group_metrics")
    selection, test = (package.DataDict(rows.y, rows.scores[:, 1:], rows.group) for rows in (case.fit, case.test))
    model = package.FairPredictor(Column(), selection)
    parity, recall = bounds
    floor = [(metrics.recall, recall)]
    model.fit(metrics.accuracy, metrics.demographic_parity, parity, additional_constraints=floor)
    return np.asarray(model.predict(test), dtype=np.float64)


def _as_rows(known: Population) -> Rows:
    nothing: FloatArray = np.empty((len(known.y), 0))
    scores = np.column_stack([1.0 - known.scores, known.scores])
    return Rows(nothing, known.y, known.group, np.zeros(len(known.y), dtype=np.int64), scores)


DATASETS = tuple(SETS)
