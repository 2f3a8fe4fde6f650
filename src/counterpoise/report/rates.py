"""Decisions and scores in a report: who is right how often, which classes and groups, and who is left to a person."""

import math
from collections import defaultdict
from collections.abc import Callable
from typing import NamedTuple

from counterpoise.displays import count_bounds
from counterpoise.report import figures
from counterpoise.report.sections import FigurePanel, decider_names, noun
from counterpoise.report.wording import MISSING, count, fraction, number, percent
from counterpoise.runs import results
from counterpoise.runs.result import GroupResult, RunResult, confusion
from counterpoise.runs.table import ResultTable

_CELLS = ("true positives", "false positives", "false negatives", "true negatives")
_LEFT = ("deferred positives", "deferred negatives")


def decision_table(result: RunResult) -> ResultTable | None:
    """Return right and wrong decisions by class for every decider, and the rates that follow."""
    left = () if result.deferral is None else _LEFT
    rows = []
    for decider, label in decider_names(result).items():
        counts = confusion(result, decider)
        if counts:
            cells = [counts[cell] for cell in (*_CELLS, *left)]
            rows.append([label, *_cell_rates(*cells)[: None if left else -1], *map(count, cells)])
    rates = ("wrong", "recall", "precision", "false positive rate", "called positive", *(("deferred",) if left else ()))
    heads = ("decisions of", *rates, *_CELLS, *left)
    return ResultTable(f"Decisions on the {result.judged} rows", heads, rows) if rows else None


def _cell_rates(hits: float, alarms: float, misses: float, rejections: float, *left: float) -> list[str]:
    """Return rates of all rows of their kind; ``left`` are deferred positives and negatives, the last their share."""
    left_positives, left_negatives = left or (0.0, 0.0)
    positives, negatives = hits + misses + left_positives, alarms + rejections + left_negatives
    total = positives + negatives
    parts = [(alarms + misses, total), (hits, positives), (hits, hits + alarms), (alarms, negatives)]
    parts += [(hits + alarms, total), (left_positives + left_negatives, total)]
    return [_share(*part) for part in parts]


def _share(part: float, whole: float) -> str:
    return percent(part / whole) if whole else MISSING


def score_sentence(result: RunResult) -> str:
    """Return how good the scores are that rules cut; nothing where there are none."""
    auc, brier = result.scores.auc, result.scores.brier
    if not math.isfinite(auc):
        return ""
    fit = f", and their Brier score {number(brier)}" if math.isfinite(brier) else ""
    return f"On the {result.judged} rows the AUC of the first model's scores is {number(auc)}{fit}."


def calibration_table(result: RunResult) -> ResultTable | None:
    """Return the mean score and the share of positives in each tenth of the rows by score."""
    rows = [
        [f"tenth {place}", percent(one.score), percent(one.share)]
        for place, one in enumerate(result.scores.tenths, start=1)
    ]
    heads = ("rows by score", "mean score", "positive")
    return ResultTable("Are the scores calibrated?", heads, rows) if rows else None


def score_panels(result: RunResult) -> list[FigurePanel]:
    """Return a histogram of scores for each group, with the thresholds of the rules."""
    panels = []
    for place, one in enumerate(result.scores.panels, start=1):
        counts = {"positive": one.positive, "negative": one.negative}
        if one.positive or one.negative:
            figure = figures.score_figure(f"scores-{place}", one.text, counts, (one.low, one.high), one.rules)
            panels.append(FigurePanel(one.text, figure))
    return panels


_MOST_LISTED = 40  # classes in the table of recalls: those recognized least
_MOST_CROSSED = 12  # classes in a table of each against each; of more the largest confusions are listed
_MOST_CONFUSIONS = 20


class _Answers(NamedTuple):
    """How many rows of each class a method calls which, by places; None is the place of rows left to a person."""

    cells: dict[tuple[int, int | None], float]
    rows: dict[int, float]  # of each class
    totals: dict[int | None, float]  # of each answer

    def called(self, label: int, answer: int | None) -> float:
        return self.cells.get((label, answer), 0.0)

    def recall(self, place: int) -> float:
        return self.called(place, place) / self.rows[place] if self.rows.get(place) else math.nan


def class_recalls(result: RunResult) -> ResultTable | None:
    """Return how often each class is recognized by every method; of many classes those recognized least."""
    texts, names = _texts(result), decider_names(result)
    answers_by = {method: answers for method in names if (answers := _answers(result, method)) is not None}
    if not texts or results.MIXTURE not in answers_by:
        return None
    ours, left = answers_by[results.MIXTURE], () if result.deferral is None else ("left to a person",)
    # what was chosen stands last, beside its precision
    order = sorted(answers_by, key=lambda method: method == results.MIXTURE)
    places, which = list(range(len(texts))), ""
    if len(texts) > _MOST_LISTED:
        places = sorted(filter(ours.rows.get, places), key=ours.recall)[:_MOST_LISTED]
        which = f", the {_MOST_LISTED} of {len(texts)} recognized least"
    rows = [
        [
            texts[place],
            count(ours.rows.get(place, 0.0)),
            *(percent(answers_by[method].recall(place)) for method in order),
            _share(ours.called(place, place), ours.totals.get(place, 0.0)),
            *(_share(ours.called(place, None), ours.rows.get(place, 0.0)) for _ in left),
        ]
        for place in places
    ]
    heads = ["class", "rows", *(f"recall: {names[one]}" for one in order), f"precision: {names[results.MIXTURE]}"]
    return ResultTable(f"Classes on the {result.judged} rows{which}", [*heads, *left], rows)


def worst_class(result: RunResult) -> str:
    """Return which class is recognized least often, in words; nothing where there are two classes."""
    worst, texts = {}, _texts(result)
    for method in (results.MIXTURE, results.FIRST):
        answers = _answers(result, method)
        recalls = [] if answers is None else [(answers.recall(place), text) for place, text in enumerate(texts)]
        known = [one for one in recalls if math.isfinite(one[0])]
        if known:
            worst[method] = min(known)
    if results.MIXTURE not in worst:
        return ""
    recall, text = worst[results.MIXTURE]
    beside = ""
    if results.FIRST in worst:
        beside = f"; for plain training it is {worst[results.FIRST][1]}, with {percent(worst[results.FIRST][0])}"
    return f"The class recognized least often is {text}, with {percent(recall)} of its rows{beside}."


def confusions(result: RunResult) -> ResultTable | None:
    """Return how many rows of each class are called which; of many classes the largest confusions only."""
    texts, answers = _texts(result), _answers(result, results.MIXTURE)
    if not texts or answers is None:
        return None
    if len(texts) > _MOST_CROSSED:
        return _largest(result, texts, answers)
    left = () if result.deferral is None else (None,)
    rows = [
        [text, *(count(answers.called(place, answer) or math.nan) for answer in (*range(len(texts)), *left))]
        for place, text in enumerate(texts)
    ]
    heads = ("class \\ called", *texts, *("left to a person" for _ in left))
    return ResultTable(f"What the rows of each class are called, {result.judged} rows", heads, rows)


def _largest(result: RunResult, texts: list[str], answers: _Answers) -> ResultTable | None:
    """Return the confusions of most rows."""
    pairs = [(-n, label, answer) for (label, answer), n in answers.cells.items() if answer not in (None, label)]
    rows = [
        [f"{texts[label]} called {texts[answer or 0]}", count(-n), _share(-n, answers.rows[label])]
        for n, label, answer in sorted(pairs)[:_MOST_CONFUSIONS]
    ]
    heads = ("confusion", "rows", "of the class")
    return ResultTable(f"The largest confusions, {result.judged} rows", heads, rows) if rows else None


def _texts(result: RunResult) -> list[str]:
    """Return what the classes are called, by their places; nothing where there are two."""
    return result.data.classes if len(result.data.classes) > 2 else []  # noqa: PLR2004


def _answers(result: RunResult, decider: str) -> _Answers | None:
    """Return the decisions of a decider on the rows that count; None where they were not counted."""
    cells = {(one.label, one.answer): one.rows for one in result.answers.get(decider, [])}  # type: ignore[call-overload]
    rows: dict[int, float] = defaultdict(float)
    totals: dict[int | None, float] = defaultdict(float)
    for (label, answer), n in cells.items():
        rows[label] += n
        totals[answer] += n
    return _Answers(cells, rows, totals) if cells else None


_MOST_DOTS = 13  # in a figure: all rows and the largest groups


def group_table(result: RunResult) -> ResultTable | None:
    """Return all rates of all groups."""
    shows = {rate: _show(result, rate) for rate in _rates(result)}
    if not shows:
        return None
    rows = [
        [one.text, count(one.n_samples), *(show(one.rate(rate).value) for rate, show in shows.items())]
        for one in result.groups
    ]
    return ResultTable("Rates by group", ("group", "rows", *(rate.replace("_", " ") for rate in shows)), rows)


def rate_panels(result: RunResult) -> list[FigurePanel]:
    """Return a figure for each rate that at least two groups have, all rows among them."""
    largest = sorted(result.groups[1:], key=lambda one: -one.n_samples)[: _MOST_DOTS - 1]
    shown = [one for place, one in enumerate(result.groups) if place == 0 or one in largest]
    panels = []
    for rate in _rates(result):
        dots = [_dot(one, rate) for one in shown if math.isfinite(one.rate(rate).value)]
        if len(dots) > 1:
            title = rate.replace("_", " ")
            drawn = figures.rate_figure(f"rate-{rate.replace('_', '-')}", title, dots, _show(result, rate))
            panels.append(FigurePanel(title, drawn))
    return panels


def _rates(result: RunResult) -> list[str]:
    """Return the rates that some group has."""
    every = dict.fromkeys(rate for group in result.groups for rate in group.rates)
    return [rate for rate in every if any(math.isfinite(group.rate(rate).value) for group in result.groups)]


def _dot(group: GroupResult, rate: str) -> figures.Dot:
    value, trials, low, high = (getattr(group.rate(rate), part) for part in ("value", "rows", "low", "high"))
    if math.isfinite(low) and math.isfinite(high):  # of an expected rate, which is no count
        return figures.Dot(group.text, value, low, high)
    return figures.Dot(group.text, value, *count_bounds(value, round(trials) if math.isfinite(trials) else None))


def _show(result: RunResult, rate: str) -> Callable[[float], str]:
    """Return how a rate is written: a metric of a user's own may be any sum, and no share of rows.

    Where rates are counts out of rows, so are all that are shares; weighted rates show it by their size alone.
    """
    counted = {name for group in result.groups for name, one in group.rates.items() if math.isfinite(one.rows)}
    if counted:
        return percent if rate in counted else number
    values = [group.rate(rate).value for group in result.groups]
    return percent if all(0 <= value <= 1 for value in values if math.isfinite(value)) else number


def deferral_sentence(result: RunResult) -> str:
    """Return how many rows are left to a person, and how the others fare; nothing where none are."""
    left, wrong = result.losses().defer_rate, result.losses().decided_error
    if not math.isfinite(left):
        return ""
    head = f"{percent(left)} of the {result.judged} rows are left to a person"
    if not math.isfinite(wrong):
        return f"{head}: no row is decided."
    plain = result.losses(results.FIRST).error
    beside = f" (plain training, which decides about all rows: {percent(plain)})" if math.isfinite(plain) else ""
    return f"{head}; the {noun(result)} decides {percent(wrong)} of the others wrongly{beside}."


def deferral_table(result: RunResult) -> ResultTable | None:
    """Return for each group how often it is deferred, beside all rows, and how often it is decided wrongly."""
    groups = [one for one in result.groups if "defer_rate" in one.rates]
    every = groups[0].rate("defer_rate").value if groups else math.nan
    rows = []
    for one in groups:
        rate, decided, wrong = (one.rate(name).value for name in ("defer_rate", "decided_error_rate", "error_rate"))
        times = f"{rate / every:.2f}" if every > 0 else MISSING
        rows.append([one.text, count(one.n_samples), percent(rate), times, percent(decided), percent(wrong)])
    heads = ("group", "rows", "deferred", "times all rows", "wrong among the decided", "wrong of all")
    return ResultTable(f"Deferred {result.judged} rows by group", heads, rows) if rows else None


def deferral_panel(result: RunResult) -> FigurePanel | None:
    """Return the curve of tail loss and error against how many rows may be deferred."""
    curve = [] if result.deferral is None else sorted(result.deferral.curve, key=lambda point: point.limit)
    if len(curve) < 2:  # noqa: PLR2004 - no curve
        return None
    names = ("defer_rate", "tail", "error", "decided_error")
    points = [[one.limit, *(getattr(one.splits[result.judged], name) for name in names)] for one in curve]
    loss = "loss of all rows" if result.tail is None else f"loss of the worst-off {fraction(result.tail)}"
    lines = {loss: [point[2] for point in points], "wrong": [point[3] for point in points]}
    limits = [point.limit for point in curve]
    figure = figures.deferral_figure("deferral", result.judged, limits, lines, result.losses().defer_rate)
    heads = ("deferred at most", "deferred", loss, "wrong", "wrong among the decided")
    caption = f"Best mixtures for other limits, on the {result.judged} rows"
    table = ResultTable(caption, heads, [list(map(percent, point)) for point in points])
    limits_note = f"Each limit is on the {result.chosen_on} rows, where mixtures were chosen inside the other goals"
    others = "the other columns are on rows not used for choosing"
    note = f"{limits_note}; {'nothing was trained' if result.judged == result.chosen_on else others}."
    return FigurePanel("What does it buy?", figure, table, note)


def cost_words(result: RunResult) -> str:
    """Return as what a deferred row counts in losses; nothing where none is."""
    return "" if result.deferral is None else f"a deferred row counts as {result.deferral.cost:g} of a wrong one"
