"""The price of the goals in a report: how small the objective can be for other bounds."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from counterpoise.report import figures
from counterpoise.report.aims import Aim, told_aim
from counterpoise.report.record import Record
from counterpoise.report.sections import PageTable, Panel, is_ratio, noun
from counterpoise.report.wording import number
from counterpoise.runs.quantities import of_goal

_MOST_POINTS = 7  # in numbers
_ROUNDING = 1e-9  # part of the largest bound of a frontier by which two bounds that are one may differ


def frontier_panels(record: Record) -> list[Panel]:
    """Return the frontier of each goal for which there is one."""
    aim = told_aim(record)
    return [
        panel
        for place, (name, entry) in enumerate(record.entries("goals").items())
        if (panel := _panel(record, aim, place, name, entry)) is not None
    ]


def _panel(record: Record, aim: Aim, place: int, name: str, entry: Mapping[str, Any]) -> Panel | None:
    text = str(entry.get("text", name))
    points = frontier_points(record, name)
    if not points:
        return None
    bound = record.value(of_goal("bound"), split=record.judged, settings=name)
    figure = figures.frontier_figure(f"frontier-{place + 1}", text, points, aim.least, aim.show, bound)
    aimed = entry.get("aimed")
    edge, mark = (bound, " (asked)") if aimed is None else (float(aimed), " (aimed at)")
    marked = dict.fromkeys(points_at(edge, points), mark)
    shown = sorted({*figures.some(points, _MOST_POINTS), *marked})
    lines = [[number(point[0]) + marked.get(point, ""), aim.show(point[1]), aim.show(point[2])] for point in shown]
    heads = ("bound", aim.least, "not below, of these rules" if record.certificate else "proven: not below")
    split = record.named("frontier value")[0].split
    note = f"Found on the {split} rows, where the {noun(record)} was chosen."
    if not record.is_mixture:
        note += " The model decides alone, and may lie a little above the curve."
    if not is_ratio(text) and not record.certificate:  # of which a few bounds near the asked one were tried
        note += " No mixture of these models meets a bound beyond the tight end of the curve."
    return Panel(f"{name}: {text}", figure, PageTable(f"Frontier of {name}", heads, lines), note)


def points_at(bound: float, points: Sequence[tuple[float, float, float]]) -> list[tuple[float, float, float]]:
    """Return the points of a frontier at a bound, which may have been rounded as a part of the largest of them.

    Examples
    --------
    >>> from counterpoise.report.frontiers import points_at
    >>> points_at(0.1 + 0.2, [(0.0, 0.5, 0.5), (0.3, 0.4, 0.4)])
    [(0.3, 0.4, 0.4)]
    >>> points_at(0.0, [(0.0, 0.5, 0.5), (3e-13, 0.4, 0.4)])
    [(0.0, 0.5, 0.5)]
    """
    largest = max((abs(point[0]) for point in points), default=0.0)
    return [point for point in points if abs(point[0] - bound) <= _ROUNDING * max(largest, abs(bound))]


def frontier_points(record: Record, name: str) -> list[tuple[float, float, float]]:
    """Return bound, least value and proven lower value, by bound."""
    prefix = f"{name} bound="
    found: dict[float, dict[str, float]] = {}
    for row in record.named("frontier value", "frontier lower"):
        if row.settings.startswith(prefix):
            found.setdefault(float(row.settings.removeprefix(prefix)), {})[row.quantity] = row.value
    points = [
        (bound, parts.get("frontier value", math.nan), parts.get("frontier lower", math.nan))
        for bound, parts in sorted(found.items())
    ]
    return [point for point in points if math.isfinite(point[1])]
