"""More than two classes in a report: how often each is recognized, and which are taken for which."""

import math
from collections import defaultdict
from typing import NamedTuple

from counterpoise.report.record import Record
from counterpoise.report.sections import PageTable, measured
from counterpoise.report.wording import MISSING, count, percent
from counterpoise.runs.quantities import CALLED, FIRST, MIXTURE, places_called

_MOST_LISTED = 40  # classes in the table of recalls: those recognized least
_MOST_CROSSED = 12  # classes in a table of each against each; of more the largest confusions are listed
_MOST_CONFUSIONS = 20


class _Answers(NamedTuple):
    """How many rows of each class a method calls which, by places; None is the place of rows left to a person."""

    cells: dict[tuple[int, int | None], float]
    rows: dict[int, float]  # of each class
    said: dict[int | None, float]  # how often each answer is given

    def called(self, label: int, answer: int | None) -> float:
        return self.cells.get((label, answer), 0.0)

    def recall(self, place: int) -> float:
        return self.called(place, place) / self.rows[place] if self.rows.get(place) else math.nan


def class_recalls(record: Record) -> PageTable | None:
    """Return how often each class is recognized by every method; of many classes those recognized least."""
    texts, names = _texts(record), measured(record)
    found = {method: answers for method in names if (answers := _answers(record, method)) is not None}
    if not texts or MIXTURE not in found:
        return None
    ours, left = found[MIXTURE], () if record.defer_cost is None else ("left to a person",)
    order = sorted(found, key=lambda method: method == MIXTURE)  # what was chosen stands last, beside its precision
    places, told = list(range(len(texts))), ""
    if len(texts) > _MOST_LISTED:
        places = sorted(filter(ours.rows.get, places), key=ours.recall)[:_MOST_LISTED]
        told = f", the {_MOST_LISTED} of {len(texts)} recognized least"
    rows = [
        [
            texts[place],
            count(ours.rows.get(place, 0.0)),
            *(percent(found[method].recall(place)) for method in order),
            _part(ours.called(place, place), ours.said.get(place, 0.0)),
            *(_part(ours.called(place, None), ours.rows.get(place, 0.0)) for _ in left),
        ]
        for place in places
    ]
    heads = ("class", "rows", *(f"recall: {names[one]}" for one in order), f"precision: {names[MIXTURE]}", *left)
    return PageTable(f"Classes on the {record.judged} rows{told}", heads, rows)


def worst_class(record: Record) -> str:
    """Return which class is recognized least often, in words; nothing where there are two classes."""
    found, texts = {}, _texts(record)
    for method in (MIXTURE, FIRST):
        answers = _answers(record, method)
        recalls = [] if answers is None else [(answers.recall(place), text) for place, text in enumerate(texts)]
        known = [one for one in recalls if math.isfinite(one[0])]
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
    texts, answers = _texts(record), _answers(record, MIXTURE)
    if not texts or answers is None:
        return None
    if len(texts) > _MOST_CROSSED:
        return _largest(record, texts, answers)
    left = () if record.defer_cost is None else (None,)
    rows = [
        [text, *(count(answers.called(place, answer) or math.nan) for answer in (*range(len(texts)), *left))]
        for place, text in enumerate(texts)
    ]
    heads = ("class \\ called", *texts, *("left to a person" for _ in left))
    return PageTable(f"What the rows of each class are called, {record.judged} rows", heads, rows)


def _largest(record: Record, texts: list[str], answers: _Answers) -> PageTable | None:
    """Return the confusions of most rows."""
    pairs = [(-n, label, answer) for (label, answer), n in answers.cells.items() if answer not in (None, label)]
    rows = [
        [f"{texts[label]} called {texts[answer or 0]}", count(-n), _part(-n, answers.rows[label])]
        for n, label, answer in sorted(pairs)[:_MOST_CONFUSIONS]
    ]
    heads = ("confusion", "rows", "of the class")
    return PageTable(f"The largest confusions, {record.judged} rows", heads, rows) if rows else None


def _texts(record: Record) -> list[str]:
    """Return what the classes are called, by their places; nothing where there are two."""
    return [str(entry.get("text", name)) for name, entry in record.entries("classes").items()]


def _answers(record: Record, method: str) -> _Answers | None:
    """Return the answers of a method on the rows that count; None where they were not counted."""
    counted = [row for row in record.named(CALLED) if (row.method, row.split) == (method, record.judged)]
    cells = {places_called(row.settings): row.value for row in counted if row.value > 0}
    rows: dict[int, float] = defaultdict(float)
    said: dict[int | None, float] = defaultdict(float)
    for (label, answer), n in cells.items():
        rows[label] += n
        said[answer] += n
    return _Answers(cells, rows, said) if cells else None


def _part(part: float, whole: float) -> str:
    return percent(part / whole) if whole else MISSING
