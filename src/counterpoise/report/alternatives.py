"""The report of a search for less discriminatory alternatives, in two pages."""

import math
from collections.abc import Iterator

from markupsafe import Markup

from counterpoise.auditing.paired import Estimate
from counterpoise.classifiers.alternatives import INCUMBENT, OTHER, RULE, Alternative, Alternatives
from counterpoise.report.document import Document, Section
from counterpoise.report.figures import Dot, alternatives_figure
from counterpoise.report.wording import number
from counterpoise.runs.table import ResultTable

_LABELS = {INCUMBENT: "incumbent", RULE: "rules of the same models", OTHER: "other classifiers"}


def alternatives_document(shown: Alternatives) -> Document:
    """Return the report: what is near the incumbent, the frontier, what is proven, and every number."""
    chosen = f"Chosen on {shown.n_chosen:,} selection rows, within {shown.within:g} of the incumbent's performance."
    sections = [
        Section("Alternatives near the incumbent", [chosen], [near_table(shown)]),
        Section("The frontier", _frontier_text(shown), figure=_figure(shown)),
        Section("What is proven", [shown.certificate]),
        Section("Every alternative", _tried(shown), [ResultTable("All that were chosen", *_all_lines(shown))]),
        Section("How to read this", [*_reading(shown), *shown.notes]),
    ]
    return Document(f"Less discriminatory alternatives by {_groups(shown)}", [headline(shown)], sections)


def near_table(shown: Alternatives) -> ResultTable:
    """Return the incumbent and the alternatives near it."""
    return ResultTable("Near the incumbent", *_lines(shown, [shown.incumbent, *shown.near]))


def headline(shown: Alternatives) -> str:
    """Return the result in one or two sentences."""
    best = shown.near[0] if shown.near else None
    if best is None:
        return (
            f"No rule of {', '.join(shown.models)} within {shown.within:g} of the incumbent's performance has less "
            "disparity on the selection rows."
        )
    if best.disparity is None or best.disparity_change is None or best.performance_change is None:
        now, then = shown.incumbent.chosen_disparity, best.chosen_disparity
        return f"The disparity can fall from {number(now)} to {number(then)}, on the rows that rules were chosen on."
    change = best.disparity_change
    is_less = change.low > 0 if shown.is_ratio else change.high < 0
    surely = "surely less" if is_less else "not surely less"
    usual = math.nan if shown.incumbent.disparity is None else shown.incumbent.disparity.value
    return (
        f"On held-out rows the alternative of the least disparity ({best.name}) has {number(best.disparity.value)}, "
        f"and the incumbent has {number(usual)}: {surely} on the population. Its {shown.performance} differs by "
        f"{_interval(best.performance_change)}."
    )


def _groups(shown: Alternatives) -> str:
    return shown.disparity.partition("by=")[2].rstrip(")") or shown.disparity


def _lines(shown: Alternatives, some: list[Alternative]) -> tuple[list[str], list[list[str]]]:
    heads = ["alternative", f"{shown.performance}", "disparity", "difference in performance", "difference in disparity"]
    rows = []
    for one in some:
        own = (one.performance, one.disparity, one.performance_change, one.disparity_change)
        cells = [_interval(value) for value in own]
        if one.performance is None:
            cells[:2] = number(one.chosen_performance), number(one.chosen_disparity)
        rows.append([one.name, *cells])
    return heads, rows


def _all_lines(shown: Alternatives) -> tuple[list[str], list[list[str]]]:
    heads = [
        "alternative",
        "rule",
        f"{shown.performance}, selection rows",
        "disparity, selection rows",
        "proven",
        "gap",
    ]
    heads += [f"{shown.performance}, held-out rows", "disparity, held-out rows"] if shown.n_held_out else []
    rows = []
    for one in shown.points:
        numbers = (one.chosen_performance, one.chosen_disparity, one.lower, one.gap)
        held_out = [_interval(one.performance), _interval(one.disparity)] if shown.n_held_out else []
        rows.append([one.name, one.rule or "-", *map(number, numbers), *held_out])
    return heads, rows


def _tried(shown: Alternatives) -> list[str]:
    if not shown.infeasible:
        return []
    bounds = ", ".join(number(bound) for bound in shown.infeasible)
    return [f"Bounds on the disparity that no single rule meets beside the other goals: {bounds}."]


def _frontier_text(shown: Alternatives) -> list[str]:
    rows = f"{shown.n_held_out:,} held-out rows, with intervals" if shown.n_held_out else "selection rows"
    side = "Right" if shown.is_ratio else "Left"
    return [f"Each mark is an alternative on the {rows}. {side} and down is better."]


def _figure(shown: Alternatives) -> Markup | None:
    series: dict[str, list[tuple[Dot, Dot]]] = {}
    for one in shown.points:
        pair = tuple(_dots(one))
        if all(math.isfinite(dot.value) for dot in pair):
            series.setdefault(_LABELS[one.kind], []).append((pair[0], pair[1]))
    return alternatives_figure("alternatives", series, shown.disparity, shown.performance) if series else None


def _dots(one: Alternative) -> Iterator[Dot]:
    for value, chosen in ((one.disparity, one.chosen_disparity), (one.performance, one.chosen_performance)):
        yield Dot(one.name, chosen) if value is None else Dot(one.name, *value)


def _reading(shown: Alternatives) -> list[str]:
    blind = "They are blind to groups: everybody with the same scores gets the same decision."
    used = f"They have a threshold for each value of {', '.join(shown.by)}."
    texts = [
        f"Disparity is {shown.disparity}. Performance is {shown.performance}, of which less is better.",
        f"Rules are single thresholds of one of {', '.join(shown.models)}. {used if shown.by else blind}",
        "The gap is how far a rule is at most from the best mixture of rules within its bound.",
    ]
    if shown.n_held_out:
        texts.append(
            f"All intervals hold together with confidence {shown.confidence:g}, whichever alternative is picked, if "
            "the held-out rows are independent draws from the population. Differences are to the incumbent, on the "
            "same rows."
        )
    return [*texts, "This is evidence and no legal verdict: what difference matters, a law or a court says."]


def _interval(value: Estimate | None) -> str:
    if value is None or math.isnan(value.value):
        return "-"
    return f"{number(value.value)} ({number(value.low)} to {number(value.high)})"
