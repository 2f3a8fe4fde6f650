"""What a rate counts, as data: metrics, their terms on datasets, and the form in which equal rates are the same."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from numbers import Real
from typing import Any, NamedTuple, Protocol

from counterpoise.goals.rows import EACH, Cell, Counted, Dataset
from counterpoise.goals.wording import written_number

MACRO = "macro"  # what the average over classes is called


class Known(Protocol):
    """What is known of the classes and groups once there are data."""

    @property
    def has_no_positive(self) -> bool:
        """Tell whether there are several classes, none of them the positive one."""

    def class_texts(self) -> list[str]:
        """Return the texts of all classes."""

    def groups(self, rows: Dataset, columns: tuple[str, ...]) -> list[Dataset]:
        """Return the rows by the values that some columns hold."""

    def count_groups(self, rows: Dataset, columns: tuple[str, ...]) -> int:
        """Return how many groups the values of some columns make."""


class Count(NamedTuple):
    """Predictions of one sign in one part of a dataset, counted with a coefficient."""

    positive: bool | None  # the sign of the predictions that are counted; None: those of no class, which are deferred
    cell: Cell
    coefficient: float = 1.0
    out_of: Cell | None = None  # of which it is a share, where that is not what the whole metric is out of
    of: str | None = None  # the class that the cell is about, where it is not the one that the rate is about
    called: str | None = None  # the class whose predictions are counted, where it is not the same


class Metric(NamedTuple):
    """What a rate counts, and out of which part of its dataset."""

    name: str
    counts: tuple[Count, ...]
    out_of: Cell = Cell()
    of_each: tuple[Count, ...] = ()  # what is counted of each of several classes, where none has to be named
    details: str = ""  # that its text has behind the rows


class Term(NamedTuple):
    """A coefficient times a metric on a dataset."""

    coefficient: float
    metric: Metric
    rows: Dataset

    @property
    def size(self) -> float:
        """Return how large the term can be."""
        return abs(self.coefficient) * max(abs(count.coefficient) for count in self.metric.counts)

    def counted(self) -> Iterator[Counted]:
        """Yield what is counted on which rows, out of which."""
        for count in self.metric.counts:
            rows = count.cell.of(self.rows if count.of is None else replace(self.rows, of=count.of))
            out_of = (self.metric.out_of if count.out_of is None else count.out_of).of(self.rows)
            if rows is not None and out_of is not None:
                called = None if count.positive is None else self.rows.of if count.called is None else count.called
                yield Counted(self.coefficient * count.coefficient, count.positive, rows, out_of, called)

    def compared(self) -> Iterator[Counted]:
        """Yield what decides whether two rates are equal: deferred rows only where nothing else is counted."""
        is_of_deferral = all(count.positive is None for count in self.metric.counts)
        return (one for one in self.counted() if is_of_deferral or one.positive is not None)

    def resolved(self, known: Known) -> "Iterator[Term]":
        """Yield what the term is once the classes are known: averages and sums over classes are written out."""
        if self.rows.of == EACH:
            texts = known.class_texts()
            for text in texts:
                yield Term(self.coefficient / len(texts), self.metric, replace(self.rows, of=text))
        elif self._speaks_of_all(known):
            counts = self.metric._replace(counts=self.metric.of_each, of_each=())
            for text in known.class_texts():
                yield self._replace(metric=counts, rows=replace(self.rows, of=text))
        else:
            yield self

    def _speaks_of_all(self, known: Known) -> bool:
        """Tell whether the term is about several classes alike."""
        is_whole = self.rows.of is None and self.rows.label is None and self.rows.baseline is None
        return bool(self.metric.of_each) and is_whole and known.has_no_positive

    def __str__(self) -> str:
        if self.rows.of == EACH:
            return f"{MACRO}({self.metric.name}, {replace(self.rows, of=None)})"
        return f"{self.metric.name}({self.rows}{self.metric.details})"


def merged(terms: Iterable[Term]) -> tuple[Term, ...]:
    """Return the terms with those of one metric on one dataset added up, and without those that cancel."""
    found: dict[tuple[Metric, Dataset], float] = {}
    for coefficient, metric, rows in terms:
        found[metric, rows] = found.get((metric, rows), 0.0) + coefficient
    return tuple(Term(coefficient, *key) for key, coefficient in found.items() if coefficient)


def canonical(constant: float, counted: Iterable[Counted]) -> frozenset[tuple[Any, float]]:
    """Return coefficients of shares of rows and of positive predictions, which are the same for equal rates.

    Rows labelled (or predicted) negative are written as all rows less the positive ones, and negative predictions as
    all rows less those predicted positive, as they are unless rows are deferred. The key None is the constant.
    """
    parts: defaultdict[Any, list[float]] = defaultdict(list)
    parts[None].append(constant)
    for coefficient, positive, rows, out_of, called in counted:
        for sign, part in _without_negatives(rows, out_of):
            amount = sign * coefficient
            if positive is None:
                parts[None, part, out_of].append(amount)
                continue
            if not positive:
                parts[None if part == out_of else (False, part, out_of)].append(amount)
            parts[True, part, out_of, called].append(amount if positive else -amount)
    sums = {key: math.fsum(values) for key, values in parts.items()}  # exact, so that the order cannot matter
    return frozenset((key, value) for key, value in sums.items() if value)


def _without_negatives(rows: Dataset, out_of: Dataset) -> Iterator[tuple[float, Dataset]]:
    """Write the rows as a sum of parts that are negative in no way, except as ``out_of`` is."""
    if rows.label is False and out_of.label is None:
        every, positive = replace(rows, label=None).viewed, replace(rows, label=True)
    elif rows.baseline is False and out_of.baseline is None:
        every, positive = replace(rows, baseline=None).viewed, replace(rows, baseline=True)
    else:
        yield 1.0, rows
        return
    yield from _without_negatives(every, out_of)
    yield from ((-sign, part) for sign, part in _without_negatives(positive, out_of))


def written_sum(constant: float, terms: Iterable[Term]) -> str:
    """Return the text of a sum, from which the same constant and terms are read."""
    pieces = [(term.coefficient, str(term)) for term in terms]
    if constant or not pieces:
        comes_first = bool(pieces) and pieces[0][0] < 0 < constant  # as in 1 - recall(train)
        pieces.insert(0 if comes_first else len(pieces), (constant, ""))
    first, *others = [_written_piece(*piece) for piece in pieces]
    return first + "".join(f" - {text[1:]}" if text[0] == "-" else f" + {text}" for text in others)


def _written_piece(coefficient: float, name: str) -> str:
    if not name:
        return written_number(coefficient)
    if abs(coefficient) == 1:
        return name if coefficient > 0 else f"-{name}"
    return f"{written_number(coefficient)} * {name}"


def is_number(value: Any) -> bool:
    """Tell whether a value may stand in a goal as a number."""
    return isinstance(value, Real) and not isinstance(value, bool)


def finite(number: Any) -> float:
    """Return a number as a float after checking that it is finite."""
    try:
        value = float(number)
    except OverflowError:  # a whole number of hundreds of digits
        value = math.inf
    if not math.isfinite(value):
        raise ValueError(f"The numbers in a goal must be finite; got {value!r}.")
    return value + 0.0  # minus zero becomes zero
