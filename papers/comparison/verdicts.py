"""Whether ours and a peer are equivalent, by set and question: costs at equal values on test rows, paired by split."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from papers.arrays import FloatArray
from papers.comparison.experiment import COST, SIZES, VALUE
from papers.comparison.methods import OURS_NAME, SURE, Method
from papers.comparison.peers import PEERS
from papers.comparison.questions import GOALS, TAIL
from papers.comparison.rows import SOURCES, Sizes
from papers.frontier import Frontier, interval
from papers.tables import ResultsTable

QUESTIONS = (*GOALS, TAIL)
FEWEST = 5  # splits that decide anything: two that are alike by chance look sure
EVERY = "every question"  # of a peer that takes no bound
_ALIKE = 9  # digits of points of cost
EQUIVALENT, AHEAD, BEHIND, UNDECIDED = WORDS = "equivalent", "ours less", "ours more", "undecided"
WIDTH = 1.0  # points of cost: intervals inside are equivalent
Point = tuple[float | None, str]  # the tail fraction and the bound, as the table has them
Line = dict[int, FloatArray]  # by split, of shape (2, n_bounds): values and costs


class Measured:
    """The table by who, where and what: values and costs by split."""

    def __init__(self, rows: ResultsTable) -> None:
        found: dict[tuple[str, str, str], dict[Point, dict[int, dict[str, float]]]] = {}
        for row in rows:
            if row.quantity in (VALUE, COST):
                points = found.setdefault((row.dataset, row.learner, row.method), {})
                points.setdefault((row.alpha, row.settings), {}).setdefault(row.seed, {})[row.quantity] = row.value
        self._found = found
        self.datasets = list(dict.fromkeys(row.dataset for row in rows))

    def has(self, method: str) -> bool:
        """Tell whether a method is in the table."""
        return any(key[2] == method for key in self._found)

    def points(self, dataset: str, question: str, method: str) -> dict[Point, dict[int, dict[str, float]]]:
        """Return what was measured, by tail fraction and bound, and by split."""
        return self._found.get((dataset, question, method), {})

    def means(self, dataset: str, question: str, method: str) -> list[tuple[Point, float, float]]:
        """Return the mean value and cost over splits at every point."""
        found = []
        for point, splits in self.points(dataset, question, method).items():
            value, cost = (float(_of(splits, list(splits), what).mean()) for what in (VALUE, COST))
            found.append((point, value, cost))
        return found

    def line(self, dataset: str, question: str, ours: str, alpha: float | None) -> Line:
        """Return values and costs of ours along its bounds, the strictest first, by split that has all of them."""
        points = {point: one for point, one in self.points(dataset, question, ours).items() if point[0] == alpha}
        splits = set.intersection(*(set(one) for one in points.values())) if points else set()
        is_floor = question in GOALS and GOALS[question].is_floor
        order = sorted(points, key=bound_of, reverse=is_floor)
        return {
            split: np.array([[points[one][split][what] for one in order] for what in (VALUE, COST)]) for split in splits
        }


def in_all(rows: ResultsTable) -> ResultsTable:
    """Return the rows of splits that all methods have, question by question: after a stopped run some have fewer."""
    seen: dict[tuple[str, str], dict[str, set[int]]] = {}
    for row in rows:
        if row.method != SURE:  # is in no verdict
            seen.setdefault((row.dataset, row.learner), {}).setdefault(row.method, set()).add(row.seed)
    shared = {asked: set.intersection(*by_method.values()) for asked, by_method in seen.items()}
    return ResultsTable(tuple(row for row in rows if row.seed in shared.get((row.dataset, row.learner), ())))


def bound_of(point: Point) -> float:
    """Return the bound of a point; infinity where it has none."""
    return float(point[1].removeprefix("bound=")) if point[1] else np.inf


def _of(splits: dict[int, dict[str, float]], which: Sequence[int], quantity: str) -> FloatArray:
    return np.array([splits[split][quantity] for split in which])


class Verdict(NamedTuple):
    """Our cost less a peer's, in points, mean over its bounds, with the 95 % interval over splits."""

    dataset: str
    question: str
    peer: str
    low: float
    mean: float
    high: float
    n_splits: int
    n_apart: int  # bounds at which values cannot be made equal and neither is better in both: left out

    @property
    def word(self) -> str:
        """Return what the interval says: both tests of an equivalence test at 2.5 % are one 95 % interval."""
        if self.n_splits < FEWEST:
            return UNDECIDED
        if max(-self.low, self.high) <= WIDTH:
            return EQUIVALENT
        return AHEAD if self.high < 0 else BEHIND if self.low > 0 else UNDECIDED


def verdicts(measured: Measured, sizes: Sizes = SIZES) -> list[Verdict]:
    """Return all pairs of a set and a question for every peer; ``sizes`` are those of the splits."""
    return [verdict for peer in PEERS for verdict in _of_peer(measured, peer, sizes)]


def _of_peer(measured: Measured, peer: Method, sizes: Sizes) -> Iterator[Verdict]:
    for dataset in measured.datasets:
        asked = [name for name in QUESTIONS if measured.points(dataset, name, peer.name)]
        if peer.bounded:
            yield from (_verdict(measured, dataset, [question], peer, sizes) for question in asked)
        elif asked:  # the same decisions whatever is asked: one comparison
            yield _verdict(measured, dataset, asked, peer, sizes)


def _verdict(measured: Measured, dataset: str, questions: Sequence[str], method: Method, sizes: Sizes) -> Verdict:
    by_split: dict[int, list[float]] = {}
    n_apart = 0
    points = [
        (question, *one) for question in questions for one in measured.points(dataset, question, method.name).items()
    ]
    for question, (alpha, _), splits in points:
        line = measured.line(dataset, question, OURS_NAME, alpha)
        both = sorted(set(splits) & set(line))
        if not both:
            continue
        ours_there = np.stack([line[split] for split in both], axis=1)
        less, left = Frontier(*ours_there).less(*(_of(splits, both, what) for what in (VALUE, COST)))
        if left * less.mean() < 0:  # one is stricter, the other cheaper
            n_apart += 1
            continue
        for split, one in zip(both, less, strict=True):
            by_split.setdefault(split, []).append(one)
    differences = 100 * np.array([np.mean(one) for one in by_split.values()])
    question = questions[0] if len(questions) == 1 else EVERY
    if not differences.size:
        return Verdict(dataset, question, method.name, np.nan, np.nan, np.nan, 0, n_apart)
    overlap = SOURCES[dataset].overlap(sizes) if dataset in SOURCES else 0.0  # else rows were drawn anew
    return Verdict(dataset, question, method.name, *interval(differences, overlap), differences.size, n_apart)


def counted(found: Iterable[Verdict]) -> list[Verdict]:
    """Return the verdicts that have a number; what a peer decides alike for two questions of a set is one."""
    different = {(one.dataset, one.peer, round(one.mean, _ALIKE), round(one.high, _ALIKE)): one for one in found}
    return [one for one in different.values() if one.n_splits]
