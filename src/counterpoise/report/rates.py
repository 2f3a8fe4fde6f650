"""Answers and scores in a report: who is right how often, which classes and groups, and who is left to a person."""

import math
from collections import defaultdict
from collections.abc import Callable
from typing import NamedTuple

from counterpoise.displays import count_bounds
from counterpoise.report import figures
from counterpoise.report.record import Record
from counterpoise.report.sections import FigurePanel, PageTable, measured, noun
from counterpoise.report.wording import MISSING, count, fraction, number, percent
from counterpoise.runs import results

_CELLS = ("true positives", "false positives", "false negatives", "true negatives")
_LEFT = ("deferred positives", "deferred negatives")


def decision_table(record: Record) -> PageTable | None:
    """Return right and wrong answers by class for every method, and the rates that follow."""
    left = () if record.defer_cost is None else _LEFT
    rows = []
    for method, label in measured(record).items():
        cells = [record.value(results.CONFUSION + cell, method=method) for cell in (*_CELLS, *left)]
        if all(map(math.isfinite, cells)):
            rows.append([label, *_cell_rates(*cells)[: None if left else -1], *map(count, cells)])
    rates = ("wrong", "recall", "precision", "false positive rate", "called positive", *(("deferred",) if left else ()))
    heads = ("answers of", *rates, *_CELLS, *left)
    return PageTable(f"Answers on the {record.judged} rows", heads, rows) if rows else None


def _cell_rates(hits: float, alarms: float, misses: float, rejections: float, *left: float) -> list[str]:
    """Return rates of all rows of their kind; ``left`` are deferred positives and negatives, the last their share."""
    unsaid, unsaid_not = left or (0.0, 0.0)
    positives, negatives = hits + misses + unsaid, alarms + rejections + unsaid_not
    total = positives + negatives
    return [
        _share(alarms + misses, total),
        _share(hits, positives),
        _share(hits, hits + alarms),
        _share(alarms, negatives),
        _share(hits + alarms, total),
        _share(unsaid + unsaid_not, total),
    ]


def _share(part: float, whole: float) -> str:
    return percent(part / whole) if whole else MISSING


def score_sentence(record: Record) -> str:
    """Return how good the scores are that rules cut; nothing where there are none."""
    auc, brier = (record.value(name, method=results.FIRST) for name in ("auc", "brier score"))
    if not math.isfinite(auc):
        return ""
    fit = f", and their Brier score {number(brier)}" if math.isfinite(brier) else ""
    return f"On the {record.judged} rows the AUC of the first model's scores is {number(auc)}{fit}."


def calibration_table(record: Record) -> PageTable | None:
    """Return the mean score and the share of positives in each tenth of the rows by score."""
    score, share = (results.CALIBRATION + part for part in ("score", "share"))
    rows = []
    for name in [row.settings for row in record.named(score)]:
        values = [record.value(part, method=results.FIRST, settings=name) for part in (score, share)]
        rows.append([name, *map(percent, values)])
    heads = ("rows by score", "mean score", "positive")
    return PageTable("Do the scores mean what they say?", heads, rows) if rows else None


def score_panels(record: Record) -> list[FigurePanel]:
    """Return a histogram of scores for each group, with the thresholds of the rules."""
    panels = []
    for place, (name, entry) in enumerate(record.entries("scores").items(), start=1):
        counts = {
            kind: [row.value for row in record.named(results.SCORES + kind) if row.method == name]
            for kind in ("positive", "negative")
        }
        rules = [
            figures.ThresholdLine(float(one["threshold"]), float(one["share"]), float(one.get("lower", math.nan)))
            for one in entry.get("rules", [])
        ]
        ends = float(entry.get("low", 0.0)), float(entry.get("high", 1.0))
        if any(map(len, counts.values())):
            text = str(entry.get("text", name))
            panels.append(FigurePanel(text, figures.score_figure(f"scores-{place}", text, counts, ends, rules)))
    return panels


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
    if not texts or results.MIXTURE not in found:
        return None
    ours, left = found[results.MIXTURE], () if record.defer_cost is None else ("left to a person",)
    # what was chosen stands last, beside its precision
    order = sorted(found, key=lambda method: method == results.MIXTURE)
    places, told = list(range(len(texts))), ""
    if len(texts) > _MOST_LISTED:
        places = sorted(filter(ours.rows.get, places), key=ours.recall)[:_MOST_LISTED]
        told = f", the {_MOST_LISTED} of {len(texts)} recognized least"
    rows = [
        [
            texts[place],
            count(ours.rows.get(place, 0.0)),
            *(percent(found[method].recall(place)) for method in order),
            _share(ours.called(place, place), ours.said.get(place, 0.0)),
            *(_share(ours.called(place, None), ours.rows.get(place, 0.0)) for _ in left),
        ]
        for place in places
    ]
    heads = ["class", "rows", *(f"recall: {names[one]}" for one in order), f"precision: {names[results.MIXTURE]}"]
    return PageTable(f"Classes on the {record.judged} rows{told}", [*heads, *left], rows)


def worst_class(record: Record) -> str:
    """Return which class is recognized least often, in words; nothing where there are two classes."""
    found, texts = {}, _texts(record)
    for method in (results.MIXTURE, results.FIRST):
        answers = _answers(record, method)
        recalls = [] if answers is None else [(answers.recall(place), text) for place, text in enumerate(texts)]
        known = [one for one in recalls if math.isfinite(one[0])]
        if known:
            found[method] = min(known)
    if results.MIXTURE not in found:
        return ""
    recall, text = found[results.MIXTURE]
    beside = ""
    if results.FIRST in found:
        beside = f"; of plain training {found[results.FIRST][1]}, {percent(found[results.FIRST][0])}"
    return f"Recognized least often is {text}, {percent(recall)} of its rows{beside}."


def confusions(record: Record) -> PageTable | None:
    """Return how many rows of each class are called which; of many classes the largest confusions only."""
    texts, answers = _texts(record), _answers(record, results.MIXTURE)
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
        [f"{texts[label]} called {texts[answer or 0]}", count(-n), _share(-n, answers.rows[label])]
        for n, label, answer in sorted(pairs)[:_MOST_CONFUSIONS]
    ]
    heads = ("confusion", "rows", "of the class")
    return PageTable(f"The largest confusions, {record.judged} rows", heads, rows) if rows else None


def _texts(record: Record) -> list[str]:
    """Return what the classes are called, by their places; nothing where there are two."""
    return [str(entry.get("text", name)) for name, entry in record.entries("classes").items()]


def _answers(record: Record, method: str) -> _Answers | None:
    """Return the answers of a method on the rows that count; None where they were not counted."""
    counted = [row for row in record.named(results.CALLED) if (row.method, row.split) == (method, record.judged)]
    cells = {results.places_called(row.settings): row.value for row in counted if row.value > 0}
    rows: dict[int, float] = defaultdict(float)
    said: dict[int | None, float] = defaultdict(float)
    for (label, answer), n in cells.items():
        rows[label] += n
        said[answer] += n
    return _Answers(cells, rows, said) if cells else None


_MOST_DOTS = 13  # in a figure: all rows and the largest groups


def group_table(record: Record) -> PageTable | None:
    """Return all rates of all groups."""
    groups, rates = _groups(record), _rates(record)
    if not groups:
        return None
    shows = {rate: _show(record, rate) for rate in rates}
    rows = [
        [
            text,
            count(record.value(results.of_group(results.N_SAMPLES), settings=name)),
            *(show(record.value(results.of_group(rate), settings=name)) for rate, show in shows.items()),
        ]
        for name, text in groups.items()
    ]
    return PageTable("Rates by group", ("group", "rows", *(rate.replace("_", " ") for rate in rates)), rows)


def rate_panels(record: Record) -> list[FigurePanel]:
    """Return a figure for each rate that at least two groups have, all rows among them."""
    groups = _groups(record)
    first, *others = list(groups) or [""]
    others.sort(key=lambda name: -record.value(results.of_group(results.N_SAMPLES), settings=name))
    shown = [first, *(name for name in groups if name in others[: _MOST_DOTS - 1])]
    panels = []
    for rate in _rates(record):
        dots = [_dot(record, rate, name, groups.get(name, name)) for name in shown]
        dots = [dot for dot in dots if math.isfinite(dot.value)]
        if len(dots) > 1:
            title = rate.replace("_", " ")
            drawn = figures.rate_figure(f"rate-{rate.replace('_', '-')}", title, dots, _show(record, rate))
            panels.append(FigurePanel(title, drawn))
    return panels


def _rates(record: Record) -> list[str]:
    """Return the rates that some group has."""
    rows = (row for row in record.rows if row.split == record.judged and math.isfinite(row.value))
    return results.rates_in(row.quantity for row in rows)


def _groups(record: Record) -> dict[str, str]:
    """Return the groups in the order of the results, with their words."""
    words = record.entries("groups")
    names = dict.fromkeys(row.settings for row in record.named(*map(results.of_group, _rates(record))))
    return {name: str(words.get(name, {}).get("text", name)) for name in names}


def _dot(record: Record, rate: str, name: str, text: str) -> figures.Dot:
    quantities = (results.of_group(rate), results.trials_of_group(rate), *results.ends_of_group(rate))
    value, trials, *ends = (record.value(quantity, settings=name) for quantity in quantities)
    if all(map(math.isfinite, ends)):  # of an expected rate, which is no count
        return figures.Dot(text, value, *ends)
    return figures.Dot(text, value, *count_bounds(value, round(trials) if math.isfinite(trials) else None))


def _show(record: Record, rate: str) -> Callable[[float], str]:
    """Return how a rate is written: a metric of a user's own may be any sum, and no share of rows.

    Where rates are counts out of rows, so are all that are shares; weighted rates tell it by their size alone.
    """
    counts, known = {results.trials_of_group(one) for one in _rates(record)}, {row.quantity for row in record.rows}
    if counts & known:
        return percent if results.trials_of_group(rate) in known else number
    values = [row.value for row in record.named(results.of_group(rate)) if math.isfinite(row.value)]
    return percent if all(0 <= value <= 1 for value in values) else number


_RATE = "rate="  # how the settings of a point begin


def deferral_sentence(record: Record) -> str:
    """Return how many rows are left to a person, and how the others fare; nothing where none are."""
    left, wrong = (record.value(quantity) for quantity in (results.DEFER_RATE, results.DECIDED_ERROR))
    if not math.isfinite(left):
        return ""
    head = f"{percent(left)} of the {record.judged} rows are left to a person"
    if not math.isfinite(wrong):
        return f"{head}: nobody is decided about."
    plain = record.value("error", method=results.FIRST)
    beside = f" (plain training, which decides about all rows: {percent(plain)})" if math.isfinite(plain) else ""
    return f"{head}; of the others the {noun(record)} decides {percent(wrong)} wrongly{beside}."


def deferral_fact(record: Record) -> tuple[str, str, str] | None:
    """Return how many rows are left to a person as label, value and what is beside it."""
    left, wrong = (record.value(quantity) for quantity in (results.DEFER_RATE, results.DECIDED_ERROR))
    if not math.isfinite(left):
        return None
    expected = ", expected" if record.is_drawn else ""
    return f"Left to a person{expected}", percent(left), f"of the others wrong: {percent(wrong)}"


def deferral_table(record: Record) -> PageTable | None:
    """Return for each group how often it is deferred, beside all rows, and how often it is decided wrongly."""
    deferred = record.named(results.of_group("defer_rate"))
    rates = {row.settings: row.value for row in deferred if row.split == record.judged}
    words = record.entries("groups")
    every = next(iter(rates.values()), math.nan)
    rows = []
    for name, rate in rates.items():
        parts = (results.N_SAMPLES, "decided_error_rate", "error_rate")
        size, decided, wrong = (record.value(results.of_group(part), settings=name) for part in parts)
        times = f"{rate / every:.2f}" if every > 0 else MISSING
        text = str(words.get(name, {}).get("text", name))
        rows.append([text, count(size), percent(rate), times, percent(decided), percent(wrong)])
    heads = ("group", "rows", "deferred", "times all rows", "wrong among the decided", "wrong of all")
    return PageTable(f"Deferred {record.judged} rows by group", heads, rows) if rows else None


def deferral_panel(record: Record) -> FigurePanel | None:
    """Return the curve of tail loss and error against how many rows may be deferred."""
    bought = record.named(results.BOUGHT + "error")
    limits = sorted({float(row.settings.removeprefix(_RATE)) for row in bought})
    if len(limits) < 2:  # noqa: PLR2004 - no curve
        return None
    names, points = (results.DEFER_RATE, "tail", "error", results.DECIDED_ERROR), []
    for limit in limits:
        settings = f"{_RATE}{limit!r}"
        points.append([limit, *(record.value(results.BOUGHT + name, settings=settings) for name in names)])
    loss = "loss of all rows" if record.tail is None else f"loss of the worst-off {fraction(record.tail)}"
    lines = {loss: [point[2] for point in points], "wrong": [point[3] for point in points]}
    figure = figures.deferral_figure("deferral", record.judged, limits, lines, record.value(results.DEFER_RATE))
    heads = ("deferred at most", "deferred", loss, "wrong", "wrong among the decided")
    caption = f"Best mixtures for other limits, on the {record.judged} rows"
    table = PageTable(caption, heads, [list(map(percent, point)) for point in points])
    split = bought[0].split
    told = f"Each limit is on the {split} rows, where the mixtures were chosen anew inside the other goals"
    others = "the other columns are of rows that nobody chose on"
    note = f"{told}; {'nothing was trained' if record.judged == split else others}."
    return FigurePanel("What does it buy?", figure, table, note)


def cost_words(record: Record) -> str:
    """Return as what a deferred row counts in losses; nothing where none is."""
    return "" if record.defer_cost is None else f"a deferred row counts as {record.defer_cost:g} of a wrong one"
