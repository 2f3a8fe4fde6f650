"""Ours against every peer, over the same splits, features and tuned model.

A split has disjoint rows of before (for the deployed model), to fit, and to test. Methods that decide by scores have
the same ones: out of fold on the rows to fit, where they choose, and of the model fitted to all of these on test rows.
One that trains has the rows to fit. All are judged on the test rows, in expectation over the draws of those that draw.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from counterpoise import GoalClassifier
from papers.comparison.methods import OURS, Ask, Method
from papers.comparison.peers import PEERS, quietly
from papers.comparison.questions import GOALS, TAIL, Question, tail_of
from papers.comparison.rows import SOURCES, Case, Sizes, case_of
from papers.tables import ResultRow

NAME = "comparison"
DATASETS = tuple(SOURCES)
SIZES, QUICK_SIZES = Sizes(2_000, 4_000, 10_000), Sizes(500, 2_000, 4_000)
N_SEEDS = 10
METHODS = {method.name: method for method in (*OURS, *PEERS)}
VALUE, COST, SECONDS, FAILED, MISSING = "value", "cost", "seconds", "failed", "missing"
REACHED = "reached"  # whether the confidence that was asked for is
_SHOWN = 160  # characters of a foreign message
_DIGITS = 6  # of a number in the table: a test row is 50 of the last


class Part(NamedTuple):
    """A method on a split of a set."""

    dataset: str
    method: str
    seed: int

    def __str__(self) -> str:
        return f"{self.dataset}, split {self.seed + 1}, {self.method}"


def wanted(datasets: Sequence[str], n_seeds: int) -> list[Part]:
    """Return all parts, the first split of every set first, so that a stopped run has something of all."""
    return [
        Part(dataset, name, seed)
        for seed in range(n_seeds)
        for dataset in datasets
        for name, method in METHODS.items()
        if takes_part(method, dataset)
    ]


def takes_part(method: Method, dataset: str) -> bool:
    """Tell whether a method has anything to say about a set."""
    source = SOURCES[dataset]
    asked = any(GOALS[name].suits(source) for name in method.asks)
    return asked or method.tails is not None


def is_final(row: ResultRow) -> bool:
    """Tell whether a row ends its part: a package that is missing may be there another time."""
    return row.quantity != MISSING


def measure(part: Part, sizes: Sizes = SIZES) -> list[ResultRow]:
    """Return all that a method comes to on a split."""
    with threadpool_limits(1):
        _compile()
        case = quietly(lambda: case_of(part.dataset, part.seed, sizes))
        found: list[ResultRow] = quietly(lambda: list(measure_on(case, part, METHODS[part.method])))
        return found


@cache
def _compile() -> None:
    """Fit once on next to nothing, so that no measured second is one of compiling."""
    X = np.random.default_rng(0).normal(size=(200, 2))
    for alpha, decision in ((1.0, "fixed"), (0.5, "sticky")):
        model = GoalClassifier(
            goals=["recall(train) >= 0.8"], alpha=alpha, decision=decision, random_state=0, confidence=None
        )
        model.fit(X, (X[:, 0] > 0).astype(int))


def measure_on(case: Case, part: Part, method: Method) -> Iterator[ResultRow]:
    """Yield the rows of a method on a split at hand; what fails is a row that says how."""
    row = partial(_row, part)
    try:
        if method.prepare is not None and not case.source.tail_only:
            yield from _goals(case, method, method.prepare, row)
        if method.tails is not None:
            yield from _tails(case, method, row)
    except ImportError as error:
        yield row("", MISSING, 1.0, message=f"{method.needs}: {error}")


Row = Callable[..., ResultRow]


def _row(
    part: Part,
    question: str,
    quantity: str,
    value: float,
    *,
    alpha: float | None = None,
    bound: float | None = None,
    message: str = "",
) -> ResultRow:
    settings = message if bound is None else f"bound={bound:g} {message}".strip()
    where = part.dataset, question, part.method, part.seed, alpha, quantity, "test"
    return ResultRow(NAME, *where, round(value, _DIGITS), settings)


def _goals(case: Case, method: Method, prepare: Callable[[Case], Ask], row: Row) -> Iterator[ResultRow]:
    ask, seconds = _timed(lambda: prepare(case))
    yield row("", SECONDS, seconds)
    for name in method.asks:
        question = GOALS[name]
        if question.suits(case.source):
            yield from _asked(case, ask, question, method.bounds(question), row)


def _asked(case: Case, ask: Ask, question: Question, bounds: Sequence[float | None], row: Row) -> Iterator[ResultRow]:
    """Yield value and cost at every bound, and the mean of the seconds."""
    spent = []
    for bound in bounds:
        said, seconds = _timed(partial(_or_error, partial(ask, question, bound)))
        spent.append(seconds)
        if isinstance(said, Exception):
            yield row(question.name, FAILED, 1.0, bound=bound, message=_words(said))
            continue
        yield row(question.name, VALUE, question.value(case.test, said), bound=bound)
        yield row(question.name, COST, question.cost(case.test, said), bound=bound)
        if getattr(ask, "reached", None) is not None:
            yield row(question.name, REACHED, float(ask.reached), bound=bound)  # type: ignore[attr-defined]
    yield row(question.name, SECONDS, float(np.mean(spent)))


def _tails(case: Case, method: Method, row: Row) -> Iterator[ResultRow]:
    found, seconds = _timed(lambda: _or_error(lambda: list(method.tails(case))))  # type: ignore[misc]
    yield row(TAIL, SECONDS, seconds)
    if isinstance(found, Exception):
        yield row(TAIL, FAILED, 1.0, message=_words(found))
        return
    for alpha, budget, losses in found:
        average, tail = tail_of(losses, alpha)
        yield row(TAIL, VALUE, average, alpha=alpha, bound=budget)
        yield row(TAIL, COST, tail, alpha=alpha, bound=budget)


def _or_error(work: Callable[[], Any]) -> Any:
    """Return what work returns, or what it raised; a missing package is not caught."""
    try:
        return work()
    except ImportError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a foreign package raises is a result
        return error


def _words(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:_SHOWN]


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    return work(), time.process_time() - start
