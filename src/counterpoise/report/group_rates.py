"""The rates of groups in a report: one table, and a small figure for each rate."""

import math
from collections.abc import Callable

from counterpoise.displays import count_bounds
from counterpoise.report import figures
from counterpoise.report.record import Record
from counterpoise.report.sections import PageTable, Panel
from counterpoise.report.wording import count, number, percent
from counterpoise.runs.quantities import N_SAMPLES, ends_of_group, of_group, rates_in, trials_of_group

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
            count(_value(record, of_group(N_SAMPLES), name)),
            *(show(_value(record, of_group(rate), name)) for rate, show in shows.items()),
        ]
        for name, text in groups.items()
    ]
    return PageTable("Rates by group", ("group", "rows", *(rate.replace("_", " ") for rate in rates)), rows)


def rate_panels(record: Record) -> list[Panel]:
    """Return a figure for each rate that at least two groups have, all rows among them."""
    groups = _groups(record)
    first, *others = list(groups) or [""]
    others.sort(key=lambda name: -_value(record, of_group(N_SAMPLES), name))
    shown = [first, *(name for name in groups if name in others[: _MOST_DOTS - 1])]
    panels = []
    for rate in _rates(record):
        dots = [_dot(record, rate, name, groups.get(name, name)) for name in shown]
        dots = [dot for dot in dots if math.isfinite(dot.value)]
        if len(dots) > 1:
            title = rate.replace("_", " ")
            drawn = figures.rate_figure(f"rate-{rate.replace('_', '-')}", title, dots, _show(record, rate))
            panels.append(Panel(title, drawn))
    return panels


def _rates(record: Record) -> list[str]:
    """Return the rates that some group has."""
    return rates_in(row.quantity for row in record.rows if row.split == record.judged and math.isfinite(row.value))


def _groups(record: Record) -> dict[str, str]:
    """Return the groups in the order of the results, with their words."""
    words = record.entries("groups")
    names = dict.fromkeys(row.settings for row in record.named(*map(of_group, _rates(record))))
    return {name: str(words.get(name, {}).get("text", name)) for name in names}


def _dot(record: Record, rate: str, name: str, text: str) -> figures.Dot:
    value, trials = (_value(record, quantity, name) for quantity in (of_group(rate), trials_of_group(rate)))
    ends = tuple(_value(record, quantity, name) for quantity in ends_of_group(rate))
    if all(map(math.isfinite, ends)):  # of an expected rate, which is no count
        return figures.Dot(text, value, *ends)
    return figures.Dot(text, value, *count_bounds(value, round(trials) if math.isfinite(trials) else None))


def _show(record: Record, rate: str) -> Callable[[float], str]:
    """Return how a rate is written: a metric of a user's own may be any sum, and no share of rows.

    Where rates are counts out of rows, so are all that are shares; weighted rates tell it by their size alone.
    """
    counts, known = {trials_of_group(one) for one in _rates(record)}, {row.quantity for row in record.rows}
    if counts & known:
        return percent if trials_of_group(rate) in known else number
    values = [row.value for row in record.named(of_group(rate)) if math.isfinite(row.value)]
    return percent if all(0 <= value <= 1 for value in values) else number


def _value(record: Record, quantity: str, name: str) -> float:
    return record.value(quantity, split=record.judged, settings=name)
