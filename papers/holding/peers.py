"""Peers over the same scores: how often their goals hold on the population, as they are and with our margins.

Draws, populations and what is counted are those of ``experiment``. Each peer chooses on the selection rows twice: with
the bounds of the goals, and with the values that our margins aim at in the place of these. Peers are used as in
``papers.comparison``. Those that randomise are judged in expectation, without draws.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial
from importlib import import_module
from typing import NamedTuple

import numpy as np

from counterpoise import GoalClassifier
from counterpoise.goals import Goal, InfeasibleGoals, Table, as_goals
from papers.arrays import AnyArray, IntArray
from papers.comparison.methods import Method
from papers.comparison.peers import PEERS as METHODS
from papers.comparison.peers import Column, quietly
from papers.comparison.questions import GOALS, ODDS, PARITY, RECALL, Chances, Question
from papers.comparison.rows import SOURCES, Case, Rows
from papers.holding.experiment import COST, FEASIBLE, HOLDS, PLAIN, REACHED, Population, population
from papers.holding.trained import decide
from papers.results import ResultRow

EXPERIMENT = "holding, peers"
DATASETS = "adult", "acs-income"
SIZES = 3000, 10_000
CONFIDENCE = 0.9
DRAWS_IN_BLOCK = 10
OURS, OXONFAIR, THRESHOLDS, MAPIE = "counterpoise", "OxonFair", "ThresholdOptimizer", "MAPIE"
OUR_MARGINS = "our margins"
DRAWS, MET, SLACK = "draws", "met on the selection rows", "slack on the selection rows"
BOTH = "parity and recall"
MET_WITHIN = 1e-3  # of a bound: peers interpolate between thresholds
_PART_OF_GAP = 0.6  # bounds of differences, in parts of what the model has


class Block(NamedTuple):
    """Some draws of one size from one data set, for one peer."""

    dataset: str
    learner: str  # the peer and the number of selection rows
    seed: int
    experiment: str = EXPERIMENT

    def __str__(self) -> str:
        return f"{self.dataset}, {self.learner} rows, draws {self.seed * DRAWS_IN_BLOCK + 1} and more"


Choose = Callable[[Case, Sequence[float]], Chances]  # of the test rows, given the bounds of the goals


class Peer(NamedTuple):
    """A peer, the module that it needs, and how it chooses for each set of goals that it can express."""

    name: str
    module: str
    choose: Mapping[str, Choose]
    unbounded: frozenset[str] = frozenset()  # sets of goals of which it does not take the bound


def _choose(method: Method, question: Question, case: Case, bounds: Sequence[float]) -> Chances:
    assert method.prepare is not None  # noqa: S101 - all that choose by scores have one
    return method.prepare(case)(question, bounds[0])


def _oxonfair_both(case: Case, bounds: Sequence[float]) -> Chances:
    """Choose by OxonFair's grid of thresholds for a difference of positive rates and a recall together."""
    package, metrics = import_module("oxonfair"), import_module("oxonfair.utils.group_metrics")
    selection, test = (package.DataDict(rows.y, rows.scores[:, 1:], rows.group) for rows in (case.fit, case.test))
    model = package.FairPredictor(Column(), selection)
    parity, recall = bounds
    floor = [(metrics.recall, recall)]
    model.fit(metrics.accuracy, metrics.demographic_parity, parity, additional_constraints=floor)
    return np.asarray(model.predict(test), dtype=np.float64)


# The comparison asks for the fewest false alarms at a recall: here, as everywhere in this study, for the least error.
_QUESTIONS = {name: GOALS[name]._replace(cost=GOALS[PARITY].cost) for name in (RECALL, PARITY, ODDS)}
_MODULES = {
    OXONFAIR: "oxonfair",
    THRESHOLDS: "fairlearn",
    "error-parity": "error_parity",
    "TunedThreshold": "sklearn",
    MAPIE: "mapie",
}


def _peer(method: Method) -> Peer:
    choose: dict[str, Choose] = {
        name: partial(_choose, method, question) for name, question in _QUESTIONS.items() if name in method.asks
    }
    unbounded = frozenset(choose) - frozenset(method.bounded)
    if method.name == OXONFAIR:
        choose[BOTH] = _oxonfair_both
    return Peer(method.name, _MODULES[method.name], choose, unbounded)


PEERS = {method.name: _peer(method) for method in METHODS if method.name in _MODULES}


def wanted(n_blocks: int) -> list[Block]:
    """Return the blocks of draws; peers that cannot be imported are left out, with a warning."""
    names = [OURS]
    for peer in PEERS.values():
        try:
            quietly(partial(import_module, peer.module))
        except ImportError as error:
            warnings.warn(f"{peer.name} is left out, as it cannot be imported: {error}.", stacklevel=2)
        else:
            names.append(peer.name)
    return [
        Block(dataset, f"{name}, {size}", seed)
        for seed in range(n_blocks)
        for dataset in DATASETS
        for size in SIZES
        for name in names
    ]


@cache
def goal_sets(name: str) -> dict[str, tuple[tuple[Goal, ...], tuple[str, ...]]]:
    """Return sets of goals around what the model has at the usual selection rate, and what rules use."""
    known = population(name)
    decisions = known.scores > np.quantile(known.scores, 1.0 - known.y.mean())
    is_first, recall = known.group == "A", decisions[known.y == 1].mean()
    gaps = [
        abs(float(decisions[rows & is_first].mean() - decisions[rows & ~is_first].mean()))
        for rows in (known.y >= 0, known.y == 0, known.y == 1)
    ]
    parity = f"max_difference(positive_rate, by=group) <= {_PART_OF_GAP * gaps[0]:.3f}"
    odds = f"equalized_odds_difference(by=group) <= {_PART_OF_GAP * max(gaps[1:]):.3f}"
    texts = {
        RECALL: [f"recall >= {recall + 0.05:.3f}"],
        PARITY: [parity],
        ODDS: [odds],
        BOTH: [parity, f"recall >= {recall:.3f}"],
    }
    return {title: (as_goals(own), () if title == RECALL else ("group",)) for title, own in texts.items()}


class Draw(NamedTuple):
    """The selection rows of a draw, and our classifiers of them: plain, and with margins."""

    selection: Population
    plain: GoalClassifier
    safe: GoalClassifier

    @property
    def aims(self) -> list[float]:
        """Return for each goal the value that our margins aim at."""
        return [margin.value for margin in self.safe.margins_]


@lru_cache(maxsize=4 * DRAWS_IN_BLOCK)  # the blocks of peers over the same draws follow each other
def draw_of(name: str, size: int, seed: int, title: str) -> Draw | None:
    """Return a draw from the population of a data set, for a set of goals."""
    known = population(name)
    rows = np.random.default_rng((seed, size)).integers(0, len(known.y), size)
    return choose_ours(known, rows, *goal_sets(name)[title])


def choose_ours(known: Population, rows: IntArray, goals: tuple[Goal, ...], by: tuple[str, ...]) -> Draw | None:
    """Return a draw with our choice on its rows; None where the goals are infeasible there."""
    selection = Population(known.scores[rows], known.y[rows], known.group[rows], known.deployed[rows])
    model = GoalClassifier([Column()], cv="prefit", confidence=None, random_state=0)
    model.fit(selection.scores[:, None], selection.y, sensitive_features={"group": selection.group})
    try:
        plain, safe = (
            quietly(partial(model.rebalance, goals=goals, by=by, confidence=level)) for level in (None, CONFIDENCE)
        )
    except InfeasibleGoals:
        return None
    return Draw(selection, plain, safe)


def measure(block: Block) -> list[ResultRow]:
    """Return for each set of goals that a peer can express how often things happened in a block, and the cost."""
    name, size = block.learner.split(", ")
    known, totals = population(block.dataset), dict[tuple[str, str, str], float]()
    peer = PEERS.get(name)
    for seed in range(block.seed * DRAWS_IN_BLOCK, (block.seed + 1) * DRAWS_IN_BLOCK):
        for title, (goals, _) in goal_sets(block.dataset).items():
            if peer is not None and title not in peer.choose:
                continue
            draw = draw_of(block.dataset, int(size), seed, title)
            if draw is None:
                continue
            for way, quantity, value in run_draw(known, draw, goals, title, peer, seed):
                totals[title, way, quantity] = totals.get((title, way, quantity), 0.0) + value
    return [
        ResultRow(EXPERIMENT, block.dataset, block.learner, way, block.seed, None, quantity, title, value)
        for (title, way, quantity), value in totals.items()
    ]


def run_draw(
    known: Population, draw: Draw, goals: tuple[Goal, ...], title: str, peer: Peer | None, seed: int
) -> Iterator[tuple[str, str, float]]:
    """Yield the way of choosing, what happened and its value, for one draw; without a peer, of ours."""
    plain = judge(decide(draw.plain, known.scores, known.group), known, goals)
    yield PLAIN, DRAWS, 1.0
    yield OUR_MARGINS, REACHED, float(draw.safe.confidence_ is not None)
    for way, model, bounds in (
        (PLAIN, draw.plain, [goal.bound for goal in goals]),
        (OUR_MARGINS, draw.safe, draw.aims),
    ):
        if peer is None:
            both: list[AnyArray] = [decide(model, rows.scores, rows.group) for rows in (draw.selection, known)]
        elif way == PLAIN or title not in peer.unbounded:
            both = ask(peer.choose[title], draw.selection, known, bounds, seed)
        else:
            continue
        yield way, FEASIBLE, float(bool(both))
        if not both:
            continue
        own = tuple(goal.with_bound(bound) for goal, bound in zip(goals, bounds, strict=True))
        slack = judge(both[0], draw.selection, own).slack
        yield way, SLACK, slack
        yield way, MET, float(slack >= -MET_WITHIN)
        outcome = judge(both[1], known, goals)
        yield way, HOLDS, float(outcome.holds)
        yield way, COST, outcome.error - plain.error


def ask(choose: Choose, selection: Population, known: Population, bounds: Sequence[float], seed: int) -> list[AnyArray]:
    """Return the chances that a peer calls selection rows and the population positive; none where it finds no rule."""
    chosen, others = (_as_rows(rows) for rows in (selection, known))
    test = Rows(*map(np.concatenate, zip(chosen, others, strict=True)))
    case = Case(SOURCES["Adult"], chosen, test, None, None, seed)  # what only training needs is left empty
    try:
        chances = quietly(partial(choose, case, bounds))
    except ValueError:  # as MAPIE and OxonFair say so
        return []
    return np.split(chances, [len(selection.y)])


def _as_rows(known: Population) -> Rows:
    nothing = np.empty((len(known.y), 0))
    scores = np.column_stack([1.0 - known.scores, known.scores])
    return Rows(nothing, known.y, (known.group == "B").astype(np.int64), known.deployed, scores)


class Outcome(NamedTuple):
    """What decisions come to on rows, in expectation."""

    holds: bool  # all goals together
    slack: float  # how far the value of a goal is inside of its bound, the least of all goals
    error: float


def judge(chances: AnyArray, known: Population, goals: tuple[Goal, ...]) -> Outcome:
    """Return what comes of the chances that rows are called positive."""
    codes = 2 * (known.group == "B") + known.y
    n_rows = np.bincount(codes, minlength=4)
    share = np.bincount(codes, chances, minlength=4) / np.maximum(n_rows, 1)
    y = np.array([0, 1, 0, 1])
    table = Table(None, y, {"group": np.array(["A", "A", "B", "B"])}, sample_weight=n_rows)
    checks = [goal.evaluate_expected(np.column_stack([1.0 - share, share]), table) for goal in goals]
    slack = min(abs(check.value - check.bound) if check.holds else -check.violation for check in checks)
    error = float(n_rows @ np.abs(y - share) / n_rows.sum())
    return Outcome(all(check.holds for check in checks), slack, error)
