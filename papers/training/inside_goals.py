"""Error against violation of methods that train inside goals: ours, ExponentiatedGradient, ConstrainedClassifier.

Random parts of public data sets: at most half of the rows, and 3,000, to train on, and at most 12,000 others to test
on, since violations on few rows are mostly noise. The goals are what
ExponentiatedGradient means by its bounds: the rate of each sex is within the bound of that of all rows. The column
``sex`` is not among the features. Everyone has the same learner (``ConstrainedClassifier`` is linear by itself), the
same rows, and one thread, and is trained anew for every bound and chosen on the training rows. Churn, on unlabelled
rows beside parity, cannot be stated in ExponentiatedGradient.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from itertools import product
from typing import NamedTuple

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from counterpoise.datasets import TableData, load_dataset
from counterpoise.goals import Table
from papers.arrays import AnyArray, FloatArray
from papers.experiments import Blocks, Experiment
from papers.frontier import Frontier, compared
from papers.markdown import markdown_table
from papers.tables import ResultRow, ResultsTable
from papers.training.methods import (
    BOUNDS,
    CONSTRAINED,
    INSIDE,
    LEARNERS,
    LINEAR,
    NETWORK,
    ODDS,
    PARITY,
    RATES,
    REDUCTION,
    TREES,
    WITH_CHURN,
    Answer,
    People,
    answers,
    inside,
    violation_of,
)

NAME = "inside-goals"
DATASETS = ("compas", "adult", "acs-income", "credit-default")
PLAN = {
    LINEAR: (("compas", "adult"), (PARITY, ODDS, WITH_CHURN)),
    TREES: (DATASETS, tuple(RATES)),
    NETWORK: (("compas",), (ODDS,)),
}
MOST_TRAIN, MOST_TEST = 3_000, 12_000  # rows
VIOLATION, ERROR, CHURNED = "violation", "error", "churn"
KEPT = "violation, training rows"
FITS, SECONDS = "fits", "processor seconds"
_RARE = 20  # rows of a category below which it is one of the rare


class Part(NamedTuple):
    """A data set, a learner, the question in the place of a split, and the seed of the rows."""

    dataset: str
    learner: str
    split: str
    seed: int

    def __str__(self) -> str:
        return f"{self.dataset}, {self.learner}, {self.split}, split {self.seed + 1}"


def wanted(datasets: Sequence[str], n_seeds: int) -> list[Part]:
    """Return all parts; that of the network is left out where PyTorch is not installed."""
    learners = [learner for learner in PLAN if learner != NETWORK or find_spec("torch") is not None]
    asked = [
        (name, learner, question)
        for learner in learners
        for name, question in product(*PLAN[learner])
        if name in datasets
    ]
    return [Part(*one, seed) for seed in range(n_seeds) for one in asked]


def measure(part: Part) -> list[ResultRow]:
    """Return all measurements of one part."""
    with threadpool_limits(1):
        _compile()
        return list(measure_on(_loaded(part.dataset), part))


@cache
def _loaded(name: str) -> TableData:
    return load_dataset(name)


@cache
def _compile() -> None:
    """Fit once on next to nothing, so that no measured second is one of compiling."""
    X = np.random.default_rng(0).normal(size=(200, 2))
    inside(LEARNERS[LINEAR](), PARITY, People(X, (X[:, 0] > 0).astype(int), np.where(X[:, 1] > 0, "a", "b")), None, 0.1)


def measure_on(data: TableData, part: Part) -> Iterator[ResultRow]:
    """Yield what every method comes to on one split of the rows at hand."""
    train, test = parted(data, part.learner, part.seed)
    mail = None
    if part.split == WITH_CHURN:
        mail, test = _with_mail(train, test, part.learner)
    for answer in answers(part.split, part.learner, train, mail):
        settings = "" if answer.bound is None else f"bound={answer.bound:g}"
        for quantity, value in _measured(answer, part.split, train, test).items():
            where = part.dataset, part.learner, answer.method, part.seed, None, quantity, part.split
            yield ResultRow(NAME, *where, value, settings)


def parted(
    data: TableData, learner: str, seed: int, n_train: int = MOST_TRAIN, n_test: int = MOST_TEST
) -> tuple[People, People]:
    """Return rows to train on and to test on, without the column of the group among the features."""
    order = np.random.default_rng(seed).permutation(len(data.y))
    X, sex, y = _features(data), np.asarray(data.sensitive["sex"]).astype(str), np.asarray(data.y).astype(int)
    n_train = min(len(order) // 2, n_train)
    first, second = order[:n_train], order[n_train:][:n_test]
    encode = (lambda rows: rows) if learner == TREES else _encoder(data, X[first])
    return People(encode(X[first]), y[first], sex[first]), People(encode(X[second]), y[second], sex[second])


def _encoder(data: TableData, rows: AnyArray) -> Callable[[AnyArray], AnyArray]:
    """Return numbers of similar sizes, and a column for each category that is not rare."""
    is_category = data.categorical[_columns(data)]
    categories = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=_RARE, sparse_output=False)
    parts = (StandardScaler(), np.flatnonzero(~is_category)), (categories, np.flatnonzero(is_category))
    encode: Callable[[AnyArray], AnyArray] = make_column_transformer(*parts).fit(rows).transform
    return encode


def _columns(data: TableData) -> list[int]:
    return [place for place, name in enumerate(data.feature_names) if name.lower() != "sex"]


def _features(data: TableData) -> AnyArray:
    return np.nan_to_num(np.asarray(data.X, dtype=np.float64)[:, _columns(data)], nan=-1.0)  # missing is a value


def _with_mail(train: People, test: People, learner: str) -> tuple[Table, People]:
    """Return half of the test rows without labels, with what a model of half of the training rows says, and the rest.

    That model is the deployed one, which the others must not churn against.
    """
    deployed = LEARNERS[learner]().fit(train.X[::2], train.y[::2])
    half = len(test.y) // 2
    rest = People(test.X[half:], test.y[half:], test.sex[half:], deployed.predict(test.X[half:]))
    return Table(test.X[:half], baseline=deployed.predict(test.X[:half])), rest


def _measured(answer: Answer, question: str, train: People, test: People) -> dict[str, float]:
    chances = np.asarray(answer.decide(test.X), dtype=np.float64)
    found = {
        VIOLATION: violation_of(question, test, chances),
        ERROR: float(np.abs(chances - test.y).mean()),
        KEPT: violation_of(question, train, np.asarray(answer.decide(train.X), dtype=np.float64)),
        FITS: float(answer.n_fits),
        SECONDS: answer.seconds,
    }
    if test.deployed is not None:
        found[CHURNED] = float(np.abs(chances - test.deployed).mean())
    return found


WIDTH = 1.0  # points of error within which two frontiers are equivalent


def frontier(rows: ResultsTable, method: str) -> Frontier | None:
    """Return errors and violations on test rows, over the bounds that a method has on every split."""
    known = {(row.settings, row.seed, row.quantity): row.value for row in rows.where(method=method)}
    seeds = sorted({seed for _, seed, _ in known})
    bounds = sorted({text for text, _, _ in known if text}, key=lambda text: float(text.removeprefix("bound=")))
    kept = [text for text in bounds if all((text, seed, ERROR) in known for seed in seeds)]
    if not kept:
        return None
    pair: list[FloatArray] = [
        np.array([[known[text, seed, what] for text in kept] for seed in seeds]) for what in (VIOLATION, ERROR)
    ]
    return Frontier(*pair)


def cost(rows: ResultsTable, method: str, quantity: str) -> float:
    """Return the mean of a cost over splits and the bounds that all are asked for."""
    settings = {f"bound={bound:g}" for bound in BOUNDS}
    return float(
        np.mean([row.value for row in rows.where(method=method, quantity=quantity) if row.settings in settings])
    )


def word_of(low: float, high: float) -> str:
    """Return what an interval of a difference of errors says."""
    if max(-low, high) <= WIDTH:
        return "equivalent"
    return "ours less" if high < 0 else "ours more" if low > 0 else "undecided"


def blocks(rows: ResultsTable) -> Blocks:
    """Return the error beside others at equal violation, and what ours takes of the fits and the time."""
    lines = []
    cases = sorted({(row.learner, row.dataset, row.split) for row in rows})
    for learner, dataset, question in cases:
        own = rows.where(learner=learner, dataset=dataset, split=question)
        ours = frontier(own, INSIDE)
        for other in (REDUCTION, CONSTRAINED):
            theirs = frontier(own, other)
            if question == WITH_CHURN or ours is None or theirs is None:
                continue
            low, mean, high = compared(ours, theirs).difference()
            fits, seconds = (cost(own, INSIDE, what) / cost(own, other, what) for what in (FITS, SECONDS))
            shown = [f"{mean:+.2f} ({low:+.2f} to {high:+.2f})", word_of(low, high)]
            lines.append(
                [learner, dataset, question, other, *shown, "" if np.isnan(fits) else f"{fits:.2f}", f"{seconds:.2f}"]
            )
    words = [line[5] for line in lines if line[3] == REDUCTION]
    said = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
    heads = ["learner", "set", "goal", "beside", "ours less theirs, points", "", "fits, ratio", "time, ratio"]
    return {"frontiers": f"{markdown_table(heads, lines, n_words=4)}\n\nBeside {REDUCTION}: {said}."}


EXPERIMENT = Experiment(NAME, "training inside goals", wanted, measure, blocks, DATASETS, 4)
