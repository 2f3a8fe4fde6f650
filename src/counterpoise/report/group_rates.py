"""The rates of groups in a report: one table, and a small figure for each rate."""

import math

from counterpoise.displays import RATES, count_bounds
from counterpoise.report import figures
from counterpoise.report.record import Record
from counterpoise.report.sections import PageTable, Panel
from counterpoise.report.wording import count, percent

_MOST_DOTS = 13  # in a figure: all rows and the largest groups
_COUNT = 1e-6  # by which rate times rows may differ from the whole number that it is: rounding


def group_names(record: Record) -> dict[str, str]:
    """Return the groups in the order of the table, with their words."""
    words = record.entries("groups")
    names = dict.fromkeys(row.settings for row in record.named(*(f"group {rate}" for rate in RATES)))
    return {name: str(words.get(name, {}).get("text", name)) for name in names}


def group_table(record: Record) -> PageTable | None:
    """Return all rates of all groups; a rate that no group has is left out."""
    groups = group_names(record)
    if not groups:
        return None
    known = [rate for rate in RATES if any(math.isfinite(_rate(record, rate, name)) for name in groups)]
    rows = [
        [text, count(_rate(record, "n_samples", name)), *(percent(_rate(record, rate, name)) for rate in known)]
        for name, text in groups.items()
    ]
    return PageTable("Rates by group", ("group", "rows", *(rate.replace("_", " ") for rate in known)), rows)


def rate_panels(record: Record) -> list[Panel]:
    """Return a figure for each rate that at least two groups have, all rows among them."""
    groups = group_names(record)
    first, *others = list(groups) or [""]
    others.sort(key=lambda name: -_rate(record, "n_samples", name))
    shown = [first, *(name for name in groups if name in others[: _MOST_DOTS - 1])]
    panels = []
    for rate in RATES:
        dots = [_dot(record, rate, name, groups.get(name, name)) for name in shown]
        dots = [dot for dot in dots if math.isfinite(dot.value)]
        if len(dots) > 1:
            title = rate.replace("_", " ")
            panels.append(Panel(title, figures.rate_figure(f"rate-{rate.replace('_', '-')}", title, dots)))
    return panels


def _dot(record: Record, rate: str, name: str, text: str) -> figures.Dot:
    value = _rate(record, rate, name)
    return figures.Dot(text, value, *count_bounds(value, _n_trials(record, rate, name)))


def _n_trials(record: Record, rate: str, name: str) -> int | None:
    """Return how many rows a rate is out of; None where rates are no counts of rows.

    Among the rows predicted positive TP are right and FP wrong; all errors are FP + FN; so the rows labelled positive,
    TP + FN, are the errors and TP - FP.
    """
    if record.is_weighted:  # a weighted rate of 0 or 1 would pass for a count
        return None
    rows, said, wrong = (_rate(record, part, name) for part in ("n_samples", "positive_rate", "error_rate"))
    right_share = _rate(record, "precision", name)
    gained = (2.0 * right_share - 1.0) * said if said > 0 else 0.0  # TP - FP, over the rows
    positives = rows * (wrong + gained)
    trials = {"recall": positives, "false_positive_rate": rows - positives, "precision": rows * said}.get(rate, rows)
    if not math.isfinite(trials) or abs(trials - round(trials)) > _COUNT:
        return None
    return round(trials)


def _rate(record: Record, rate: str, name: str) -> float:
    return record.value(f"group {rate}", split=record.judged, settings=name)
