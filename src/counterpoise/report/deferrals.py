"""Rows that are left to a person, in a report: who they are, and what leaving more or fewer of them would buy."""

import math
from typing import NamedTuple

from counterpoise.report import figures
from counterpoise.report.record import Record
from counterpoise.report.sections import PageTable, Panel, noun
from counterpoise.report.wording import MISSING, count, fraction, percent
from counterpoise.runs.quantities import BOUGHT, DECIDED_ERROR, DEFER_RATE, FIRST, MIXTURE, N_SAMPLES, of_group

_RATE = "rate="  # how the settings of a point begin


class Point(NamedTuple):
    """A point of the curve: the most that may be deferred, and what the best mixture then does."""

    limit: float
    deferred: float
    tail: float
    error: float
    decided_error: float


def deferral_sentence(record: Record) -> str:
    """Return how many rows are left to a person, and how the others fare; nothing where none are."""
    left, wrong = (_value(record, quantity) for quantity in (DEFER_RATE, DECIDED_ERROR))
    if not math.isfinite(left):
        return ""
    head = f"{percent(left)} of the {record.judged} rows are left to a person"
    if not math.isfinite(wrong):
        return f"{head}: nobody is decided about."
    plain = record.value("error", method=FIRST, split=record.judged)
    beside = f" (plain training, which decides about all rows: {percent(plain)})" if math.isfinite(plain) else ""
    return f"{head}; of the others the {noun(record)} decides {percent(wrong)} wrongly{beside}."


def deferral_fact(record: Record) -> tuple[str, str, str] | None:
    """Return how many rows are left to a person as label, value and what is beside it."""
    left, wrong = (_value(record, quantity) for quantity in (DEFER_RATE, DECIDED_ERROR))
    if not math.isfinite(left):
        return None
    expected = ", expected" if record.is_drawn else ""
    return f"Left to a person{expected}", percent(left), f"of the others wrong: {percent(wrong)}"


def deferral_table(record: Record) -> PageTable | None:
    """Return for each group how often it is deferred, beside all rows, and how often it is decided wrongly."""
    rates = {row.settings: row.value for row in record.named(of_group("defer_rate")) if row.split == record.judged}
    words = record.entries("groups")
    every = next(iter(rates.values()), math.nan)
    rows = []
    for name, rate in rates.items():
        size, decided, wrong = (
            record.value(of_group(part), split=record.judged, settings=name)
            for part in (N_SAMPLES, "decided_error_rate", "error_rate")
        )
        times = f"{rate / every:.2f}" if every > 0 else MISSING
        text = str(words.get(name, {}).get("text", name))
        rows.append([text, count(size), percent(rate), times, percent(decided), percent(wrong)])
    heads = ("group", "rows", "deferred", "times all rows", "wrong among the decided", "wrong of all")
    return PageTable(f"Deferred {record.judged} rows by group", heads, rows) if rows else None


def deferral_panel(record: Record) -> Panel | None:
    """Return the curve of tail loss and error against how many rows may be deferred."""
    points = curve_points(record)
    if len(points) < 2:  # noqa: PLR2004 - no curve
        return None
    lines = {_tail(record): [point.tail for point in points], "wrong": [point.error for point in points]}
    limits, now = [point.limit for point in points], _value(record, DEFER_RATE)
    figure = figures.deferral_figure("deferral", record.judged, limits, lines, now)
    heads = ("deferred at most", "deferred", _tail(record), "wrong", "wrong among the decided")
    rows = [[percent(point.limit), *map(percent, point[1:])] for point in points]
    table = PageTable(f"Best mixtures for other limits, on the {record.judged} rows", heads, rows)
    return Panel("What does it buy?", figure, table, _note(record))


def _note(record: Record) -> str:
    split = next(row.split for row in record.named(BOUGHT + "error"))
    told = f"Each limit is on the {split} rows, where the mixtures were chosen anew inside the other goals"
    return (
        f"{told}; nothing was trained."
        if record.judged == split
        else f"{told}; the other columns are of rows that nobody chose on."
    )


def curve_points(record: Record) -> list[Point]:
    """Return the points of the curve on the rows that count, by limit."""
    limits = sorted({float(row.settings.removeprefix(_RATE)) for row in record.named(BOUGHT + "error")})
    names = (DEFER_RATE, "tail", "error", DECIDED_ERROR)
    return [Point(limit, *(_value(record, BOUGHT + name, f"{_RATE}{limit!r}") for name in names)) for limit in limits]


def cost_words(record: Record) -> str:
    """Return as what a deferred row counts in losses; nothing where none is."""
    return "" if record.defer_cost is None else f"a deferred row counts as {record.defer_cost:g} of a wrong one"


def _tail(record: Record) -> str:
    return "loss of all rows" if record.tail is None else f"loss of the worst-off {fraction(record.tail)}"


def _value(record: Record, quantity: str, settings: str = "") -> float:
    return record.value(quantity, method=MIXTURE, split=record.judged, settings=settings)
