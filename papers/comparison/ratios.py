"""The best F1, the best precision at a recall, and equal precision of two groups: ours and peers over the same scores.

A model is trained once for each data set, on rows of its own. On each split, rules are chosen on some of the other
rows and judged on the rest. Nobody keeps a margin: this is about the value on the rows of the choice, and what is left.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from counterpoise import GoalClassifier
from counterpoise.goals import InfeasibleGoals
from papers.arrays import AnyArray, FloatArray, IntArray
from papers.comparison.peers import Column, quietly
from papers.experiments import Blocks, Experiment
from papers.markdown import markdown_table
from papers.promises.populations import SEEN, SETS, population
from papers.tables import ResultRow, ResultsTable

NAME = "ratios"
F1, PRECISION, PARITY = "F1", "precision, recall >= 0.6", "precision parity"
RECALL_FLOOR, MOST_APART = 0.6, 0.02
PARITY_SETS = "adult", "compas", "acs-income"
DATASETS = tuple(SEEN | SETS)
OURS, OURS_BY_GROUP, TUNED, OXONFAIR = "counterpoise", "counterpoise, by group", "TunedThreshold", "OxonFair"
VALUE, MET, APART = "value", "goal met", "difference of precision"
SELECTION, TEST = "selection", "test"
_MOST_ROWS = 5000  # to choose on


class Part(NamedTuple):
    """A question about a data set, on one split."""

    dataset: str
    learner: str  # the question
    seed: int
    experiment: str = NAME


class Rows(NamedTuple):
    """Scores, labels and groups (A and B)."""

    scores: FloatArray
    y: IntArray
    group: AnyArray

    def only(self, places: IntArray) -> "Rows":
        """Return some of the rows."""
        return Rows(self.scores[places], self.y[places], self.group[places])

    @property
    def column(self) -> FloatArray:
        """Return the scores as features."""
        return self.scores[:, None]


Choose = Callable[[Rows], Callable[[Rows], AnyArray]]  # a rule for some rows, as a function of others


def wanted(datasets: Sequence[str], n_seeds: int) -> list[Part]:
    """Return the questions: F1 and precision of all sets, parity of three."""
    asked = {F1: DATASETS, PRECISION: DATASETS, PARITY: PARITY_SETS}
    return [
        Part(name, question, seed)
        for seed in range(n_seeds)
        for question, sets in asked.items()
        for name in datasets
        if name in sets
    ]


def measure(part: Part) -> list[ResultRow]:
    """Return what every method has on the rows of the choice and on test rows."""
    known = population(part.dataset)
    return measure_on(Rows(known.scores, known.y, known.group), part)


def measure_on(rows: Rows, part: Part) -> list[ResultRow]:
    """Return the same for rows at hand."""
    order = np.random.default_rng(part.seed).permutation(len(rows.y))
    n_chosen = min(_MOST_ROWS, len(order) // 2)
    selection, test = (rows.only(own) for own in (order[:n_chosen], order[n_chosen:]))
    results = []
    for name, choose in methods(part.learner).items():
        try:
            decide = quietly(partial(choose, selection))
        except InfeasibleGoals:
            continue
        for split, own in ((SELECTION, selection), (TEST, test)):
            for quantity, value in _measured(part.learner, own, decide(own)).items():
                results.append(
                    ResultRow(NAME, part.dataset, part.learner, name, part.seed, None, quantity, split, value)
                )
    return results


def methods(question: str) -> Mapping[str, Choose]:
    """Return the methods for a question; peers that are not installed are left out."""
    own: dict[str, Choose] = {OURS_BY_GROUP: partial(_ours, question, by="group")}
    if question != PARITY:
        own |= {OURS: partial(_ours, question, by=()), TUNED: partial(_tuned, question)}
    if find_spec("oxonfair") is not None:
        own[OXONFAIR] = partial(_oxonfair, question)
    return own


def _ours(question: str, rows: Rows, *, by: Any) -> Callable[[Rows], AnyArray]:
    objective, goals = {
        F1: ("f1_score", []),
        PRECISION: ("precision", [f"recall >= {RECALL_FLOOR}"]),
        PARITY: (None, [f"max_difference(precision, by=group) <= {MOST_APART}"]),
    }[question]
    model = GoalClassifier(Column(), objective=objective, goals=goals, by=by, cv="prefit", confidence=None)
    model.fit(rows.column, rows.y, sensitive_features={"group": rows.group})
    return lambda other: model.predict(other.column, sensitive_features={"group": other.group})


def _tuned(question: str, rows: Rows) -> Callable[[Rows], AnyArray]:
    """Choose by scikit-learn's TunedThresholdClassifierCV, whose score is the question itself."""
    from sklearn.metrics import make_scorer  # noqa: PLC0415 - heavy
    from sklearn.model_selection import TunedThresholdClassifierCV  # noqa: PLC0415

    def score(y: AnyArray, said: AnyArray) -> float:
        own = _measured(question, Rows(rows.scores, y, rows.group), said)
        return own[VALUE] if own[MET] else own[VALUE] - 1.0

    model = TunedThresholdClassifierCV(
        Column(), scoring=make_scorer(score), cv="prefit", refit=False, thresholds=1000
    ).fit(rows.column, rows.y)
    return lambda other: model.predict(other.column)


def _oxonfair(question: str, rows: Rows) -> Callable[[Rows], AnyArray]:
    """Choose by OxonFair's grid of thresholds, one for each group."""
    package, metrics = import_module("oxonfair"), import_module("oxonfair.utils.group_metrics")
    aims = {
        F1: (metrics.f1,),
        PRECISION: (metrics.precision, metrics.recall, RECALL_FLOOR),
        PARITY: (metrics.accuracy, metrics.predictive_parity, MOST_APART),
    }

    def told(own: Rows) -> Any:
        return package.DataDict(own.y, own.column, own.group)

    model = package.FairPredictor(Column(), told(rows))
    model.fit(*aims[question])
    return lambda other: np.asarray(quietly(lambda: model.predict(told(other))))


def _measured(question: str, rows: Rows, said: AnyArray) -> dict[str, float]:
    is_called, is_positive = np.asarray(said) == 1, rows.y == 1
    hits, called, positives = (float(one.sum()) for one in (is_called & is_positive, is_called, is_positive))
    if question == F1:
        return {VALUE: 2 * hits / max(called + positives, 1.0), MET: 1.0}
    if question == PRECISION:
        return {VALUE: hits / called if called else 0.0, MET: float(hits >= RECALL_FLOOR * positives - 1e-9)}
    by_group = [is_positive[own].mean() for own in _called_in_groups(rows, is_called)]
    apart = max(by_group) - min(by_group) if by_group else 0.0
    return {VALUE: float((is_called != is_positive).mean()), APART: apart, MET: float(apart <= MOST_APART + 1e-9)}


def _called_in_groups(rows: Rows, is_called: AnyArray) -> Iterator[AnyArray]:
    for name in np.unique(rows.group):
        own = is_called & (rows.group == name)
        if own.any():
            yield own


_PAIRS = ((TUNED, OURS), (OXONFAIR, OURS_BY_GROUP))  # a peer, and ours over the same rules
_SAME = 1e-9


def gains(rows: ResultsTable, question: str, peer: str, ours: str) -> tuple[FloatArray, FloatArray]:
    """Return by how many points ours is better on selection rows where the peer meets the goal, and on test rows."""
    sign = -1.0 if question == PARITY else 1.0
    known = {
        (row.dataset, row.seed, row.method, row.split, row.quantity): row.value for row in rows.where(learner=question)
    }
    found: list[list[float]] = [[], []]
    for dataset, seed in dict.fromkeys((key[0], key[1]) for key in known):
        if known.get((dataset, seed, peer, SELECTION, MET)) and (dataset, seed, ours, SELECTION, VALUE) in known:
            for place, split in enumerate((SELECTION, TEST)):
                pair = [known[dataset, seed, name, split, VALUE] for name in (ours, peer)]
                found[place].append(100 * sign * (pair[0] - pair[1]))
    return np.array(found[0]), np.array(found[1])


def blocks(rows: ResultsTable) -> Blocks:
    """Return how much better ours is on the rows of the choice, and what is left on test rows."""
    lines, below = [], 0
    for question in (F1, PRECISION, PARITY):
        for peer, ours in _PAIRS:
            own, test = gains(rows, question, peer, ours)
            if own.size:
                below += int((own < -_SAME).sum())
                lines.append(
                    [peer, question, str(own.size), f"{own.min():+.3f}", f"{own.mean():+.3f}", f"{test.mean():+.3f}"]
                )
    heads = ["peer", "question", "splits", "least gain, selection rows", "mean gain", "mean gain, test rows"]
    verdict = "kept" if not below else f"missed on {below} splits"
    return {"gains": f"{markdown_table(heads, lines, n_words=2)}\n\nThe rule is **{verdict}**."}


EXPERIMENT = Experiment(NAME, "F1, precision and equal precision beside peers", wanted, measure, blocks, DATASETS, 5)
