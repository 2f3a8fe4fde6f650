"""More than two classes in a report: how often each is recognized, and which are taken for which."""

import math
from typing import NamedTuple

from counterpoise.report.record import Record
from counterpoise.report.sections import PageTable, measured
from counterpoise.report.wording import MISSING, count, percent
from counterpoise.runs.quantities import CALLED, FIRST, MIXTURE, called

_MOST_LISTED = 40  # classes in the table of recalls: those recognized least
_MOST_CROSSED = 12  # classes in a table of each against each; of more the largest confusions are listed
_MOST_CONFUSIONS = 20


class _Class(NamedTuple):
    """A class, and what the rows of it are called."""

    place: int
    text: str
    rows: float


def class_recalls(record: Record) -> PageTable | None:
    """Return how often each class is recognized by every method; of many classes those recognized least."""
    classes = _classes(record)
    methods = {method: name for method, name in measured(record).items() if _has_counts(record, method)}
    if not classes or MIXTURE not in methods:
        return None
    order = sorted(methods, key=lambda method: method == MIXTURE)  # what was chosen stands last, beside its precision
    shown = sorted(classes, key=lambda one: _recall(record, MIXTURE, one))[:_MOST_LISTED]
    rows = [
        [one.text, count(one.rows), *(percent(_recall(record, method, one)) for method in order), *_others(record, one)]
        for one in (classes if len(classes) <= _MOST_LISTED else shown)
    ]
    left = () if record.defer_cost is None else ("left to a person",)
    heads = ("class", "rows", *(f"recall: {methods[one]}" for one in order), f"precision: {methods[MIXTURE]}", *left)
    told = "" if len(classes) <= _MOST_LISTED else f", the {_MOST_LISTED} of {len(classes)} recognized least"
    return PageTable(f"Classes on the {record.judged} rows{told}", heads, rows)


def worst_class(record: Record) -> str:
    """Return which class is recognized least often, in words; nothing where there are two classes."""
    found = {}
    for method in (MIXTURE, FIRST):
        recalls = [(_recall(record, method, one), one.text) for one in _classes(record)]
        known = [one for one in recalls if math.isfinite(one[0])] if _has_counts(record, method) else []
        if known:
            found[method] = min(known)
    if MIXTURE not in found:
        return ""
    recall, text = found[MIXTURE]
    beside = ""
    if FIRST in found:
        beside = f"; of plain training {found[FIRST][1]}, {percent(found[FIRST][0])}"
    return f"Recognized least often is {text}, {percent(recall)} of its rows{beside}."


def confusions(record: Record) -> PageTable | None:
    """Return how many rows of each class are called which; of many classes the largest confusions only."""
    classes = _classes(record)
    if not classes or not _has_counts(record, MIXTURE):
        return None
    if len(classes) > _MOST_CROSSED:
        return _largest(record, classes)
    left = () if record.defer_cost is None else (None,)
    answers = [*(one.place for one in classes), *left]
    rows = [
        [one.text, *(count(_count(record, MIXTURE, one.place, answer) or math.nan) for answer in answers)]
        for one in classes
    ]
    heads = ("class \\ called", *(one.text for one in classes), *("left to a person" for _ in left))
    return PageTable(f"What the rows of each class are called, {record.judged} rows", heads, rows)


def _largest(record: Record, classes: list[_Class]) -> PageTable | None:
    """Return the confusions of most rows."""
    pairs = [
        (_count(record, MIXTURE, one.place, other.place), one, other)
        for one in classes
        for other in classes
        if other.place != one.place
    ]
    largest = sorted((pair for pair in pairs if pair[0] > 0), key=lambda pair: -pair[0])[:_MOST_CONFUSIONS]
    rows = [[f"{one.text} called {other.text}", count(n), _part(n, one.rows)] for n, one, other in largest]
    heads = ("confusion", "rows", "of the class")
    return PageTable(f"The largest confusions, {record.judged} rows", heads, rows) if rows else None


def _classes(record: Record) -> list[_Class]:
    """Return the classes by their places; none where there are two, or they were not counted."""
    texts = [str(entry.get("text", name)) for name, entry in record.entries("classes").items()]
    return [_Class(place, text, _total(record, place, len(texts))) for place, text in enumerate(texts)]


def _total(record: Record, place: int, n_classes: int) -> float:
    """Return how many rows a class has."""
    return sum(_count(record, MIXTURE, place, answer) for answer in (*range(n_classes), None))


def _others(record: Record, one: _Class) -> list[str]:
    """Return how often the answer that a row is of a class is right, and how many rows of it are left to a person."""
    said = sum(_count(record, MIXTURE, other.place, one.place) for other in _classes(record))
    found = [_part(_count(record, MIXTURE, one.place, one.place), said)]
    return found if record.defer_cost is None else [*found, _part(_count(record, MIXTURE, one.place, None), one.rows)]


def _recall(record: Record, method: str, one: _Class) -> float:
    return _count(record, method, one.place, one.place) / one.rows if one.rows else math.nan


def _part(part: float, whole: float) -> str:
    return percent(part / whole) if whole else MISSING


def _has_counts(record: Record, method: str) -> bool:
    return any(row.method == method for row in record.named(CALLED))


def _count(record: Record, method: str, label: int, answer: int | None) -> float:
    """Return how many rows of a class are called which; the table holds those that are."""
    found = record.value(CALLED, method=method, split=record.judged, settings=called(label, answer))
    return found if math.isfinite(found) else 0.0
