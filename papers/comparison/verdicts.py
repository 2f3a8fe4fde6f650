"""Who is better, by set, question and peer: costs at equal values on test rows, paired by split."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from papers.arrays import FloatArray
from papers.comparison.experiment import COST, METHODS, SIZES, VALUE
from papers.comparison.methods import OURS_NAME, SURE, TRAINED, Method
from papers.comparison.peers import PEERS
from papers.comparison.questions import GOALS, TAIL
from papers.comparison.rows import SOURCES, Sizes
from papers.frontier import Frontier, interval
from papers.results import ResultsTable

QUESTIONS = (*GOALS, TAIL)
LEVEL = 0.05  # two-sided: about two standard errors
FEWEST = 5  # splits that decide anything: two that are alike by chance look sure
EVERY = "every question"  # of a peer that takes no bound
_ALIKE = 9  # digits of points of cost
WIN, TIE, LOSS = "win", "tie", "loss"
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
    chance: float  # that a difference so far from 0 comes by chance; after Holm's correction among those of the peer
    word: str = TIE


def verdicts(measured: Measured, sizes: Sizes = SIZES) -> list[Verdict]:
    """Return all pairs of a set and a question for every peer; ``sizes`` are those of the splits."""
    found: list[Verdict] = []
    for peer in PEERS:
        raw = list(_raw(measured, peer, sizes))
        found += map(_decided, raw, holm([one.chance for one in raw]))
    return found


def _raw(measured: Measured, peer: Method, sizes: Sizes) -> Iterator[Verdict]:
    for dataset in measured.datasets:
        asked = [name for name in QUESTIONS if measured.points(dataset, name, peer.name)]
        if peer.bounded:
            yield from (_verdict(measured, dataset, [question], peer, sizes) for question in asked)
        elif asked:  # the same decisions whatever is asked: one comparison
            yield _verdict(measured, dataset, asked, peer, sizes)


def _verdict(measured: Measured, dataset: str, questions: Sequence[str], method: Method, sizes: Sizes) -> Verdict:
    peer, ours = method.name, OURS_NAME
    if not method.on_scores and measured.has(TRAINED):
        ours = TRAINED
    by_split: dict[int, list[float]] = {}
    n_apart = 0
    points = [(question, *one) for question in questions for one in measured.points(dataset, question, peer).items()]
    for question, (alpha, _), splits in points:
        line = measured.line(dataset, question, ours, alpha)
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
        return Verdict(dataset, question, peer, np.nan, np.nan, np.nan, 0, n_apart, 1.0)
    overlap = SOURCES[dataset].overlap(sizes) if dataset in SOURCES else 0.0  # else rows were drawn anew
    low, mean, high = interval(differences, overlap)
    return Verdict(dataset, question, peer, low, mean, high, differences.size, n_apart, chance(differences, overlap))


def chance(differences: FloatArray, overlap: float = 0.0) -> float:
    """Return the two-sided p-value of Student's t that the mean is 0; few splits prove nothing.

    ``overlap`` is that of the splits: see ``Source``.
    """
    if differences.size < FEWEST:
        return 1.0
    error = float(differences.std(ddof=1)) * np.sqrt(1 / differences.size + overlap)
    if error == 0:
        return float(differences.mean() == 0)
    return float(2 * student.sf(abs(differences.mean()) / error, differences.size - 1))


def holm(chances: Sequence[float]) -> list[float]:
    """Return p-values that hold for all comparisons together (Holm 1979).

    Examples
    --------
    >>> from papers.comparison.verdicts import holm
    >>> holm([0.04, 0.01, 0.5])
    [0.08, 0.03, 0.5]
    """
    adjusted, most = [0.0] * len(chances), 0.0
    for place, at in enumerate(np.argsort(chances)):
        most = max(most, min(1.0, (len(chances) - place) * chances[at]))
        adjusted[at] = most
    return adjusted


def _decided(raw: Verdict, adjusted: float) -> Verdict:
    word = TIE if adjusted >= LEVEL else WIN if raw.mean < 0 else LOSS
    return raw._replace(chance=adjusted, word=word)


def counts(found: Iterable[Verdict]) -> dict[str, dict[str, int]]:
    """Return wins, ties and losses of ours by peer.

    What has no number is not counted, and what a peer decides alike for two questions of a set is counted once.
    """
    table = {name: dict.fromkeys((WIN, TIE, LOSS), 0) for name in METHODS if not METHODS[name].is_ours}
    for one in counted(found):
        table[one.peer][one.word] += 1
    return table


def counted(found: Iterable[Verdict]) -> list[Verdict]:
    """Return the verdicts that are counted."""
    different = {(one.dataset, one.peer, round(one.mean, _ALIKE), round(one.high, _ALIKE)): one for one in found}
    return [one for one in different.values() if one.n_splits]
