"""The sections of a report as data for its template: what is shown, in which words and digits."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from counterpoise.report import figures, wording
from counterpoise.report.record import AVERAGE, FIRST, MIXTURE, Record
from counterpoise.report.wording import Verdict, count, fraction, many, number, percent, verdict_of

_SOME_ALPHAS = (0.01, 0.05, 0.1, 0.2, 0.5, 1.0)  # shown in numbers beside the curve
_MOST_MODELS = 30  # in the table of the mixture; the rest is summed up
_MOST_POINTS = 7  # of a frontier, in numbers
_NOTHING = 1e-12  # shares of the mixture above this count


class Table(NamedTuple):
    """A table: the first column names the row, the others hold texts or numbers."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str | Verdict]]
    wide: Sequence[int] = ()  # columns of words, aligned left


class GoalCard(NamedTuple):
    """One goal: its words, its verdict where it counts, a figure and its numbers on every split."""

    name: str
    text: str
    confidence: str
    verdict: Verdict
    figure: Markup
    table: Table


class Panel(NamedTuple):
    """A figure, the words above it and the table below."""

    title: str
    figure: Markup
    table: Table | None = None
    note: str = ""


def noun(record: Record) -> str:
    """Return what the fitted model is called."""
    return "mixture" if record.is_mixture else "model"


def measured(record: Record) -> dict[str, str]:
    """Return the methods whose losses were measured, and what they are called."""
    names = {MIXTURE: noun(record), FIRST: "plain training", AVERAGE: "average of all"}
    known = {row.method for row in record.named("error", "cvar")}
    return {method: name for method, name in names.items() if method in known}


def goal_cards(record: Record) -> list[GoalCard]:
    """Return a card for each goal."""
    return [
        _goal_card(record, place, name, entry) for place, (name, entry) in enumerate(record.entries("goals").items())
    ]


def _goal_card(record: Record, place: int, name: str, entry: Mapping[str, Any]) -> GoalCard:
    text = str(entry.get("text", name))
    bound = _goal_value(record, name, "bound", record.judged)
    lines: list[list[str | Verdict]] = []
    dots = []
    for split in record.splits:
        estimate, low, high, margin, rows, verdict = (
            _goal_value(record, name, part, split) for part in ("estimate", "low", "high", "margin", "rows", "verdict")
        )
        plain = record.value("goal estimate", method=FIRST, split=split, settings=name)
        if all(map(math.isnan, (estimate, low, high, verdict))):
            continue
        numbers = [number(part) for part in (estimate, low, high, margin)]
        lines.append([split, verdict_of(verdict), *numbers, count(rows), number(plain)])
        dots.append(figures.Dot(split, estimate, low, high, plain))
    heads = ("rows of", "verdict", "estimate", "low", "high", "margin", "rows", "plain training")
    confidence = "" if entry.get("confidence") is None else f"{entry['confidence']:g}"
    level = f", confidence {confidence}" if confidence else ""
    return GoalCard(
        name=name,
        text=text,
        confidence=confidence,
        verdict=verdict_of(_goal_value(record, name, "verdict", record.judged)),
        figure=figures.goal_figure(f"goal-{place + 1}", text, dots, bound, _sense(text)),
        table=Table(f"{name}: bound {number(bound)}{level}", heads, lines, wide=(1,)),
    )


def _goal_value(record: Record, name: str, part: str, split: str) -> float:
    return record.value(f"goal {part}", split=split, settings=name)


def _sense(text: str) -> str:
    """Return the sense of a goal, or nothing where it is no goal of ours."""
    from counterpoise.goals import parse_goal  # noqa: PLC0415 - only where there are goals

    try:
        return str(parse_goal(text).sense)
    except ValueError:
        return ""


def verdict_table(record: Record, cards: Sequence[GoalCard]) -> Table:
    """Return the verdicts of all goals on all splits in one table, the rows that count first."""
    order = [record.judged, *(split for split in record.splits if split != record.judged)]
    known = [{str(line[0]): line[1] for line in card.table.rows} for card in cards]
    rows = [
        [f"{card.name}: {card.text}", *(found.get(split, wording.UNKNOWN) for split in order)]
        for card, found in zip(cards, known, strict=True)
    ]
    return Table("Verdicts", ("goal", *(f"{split} rows" for split in order)), rows, wide=range(1, len(order) + 1))


def curve_panels(record: Record) -> list[Panel]:
    """Return the CVaR curves of each split."""
    panels = []
    for place, split in enumerate(record.splits):
        curves = {}
        for method, label in measured(record).items():
            rows = [row for row in record.named("cvar") if (row.method, row.split) == (method, split)]
            points = sorted((row.alpha, row.value) for row in rows if row.alpha is not None)
            if points:
                alphas, values = zip(*points, strict=True)
                curves[label] = (alphas, values)
        if curves:
            figure = figures.cvar_figure(f"cvar-{place + 1}", split, curves, record.alpha)
            panels.append(Panel(split, figure))
    return panels


def curve_table(record: Record) -> Table:
    """Return the CVaR at some tail fractions on the rows that count: the asked one, and those near round numbers."""
    methods = measured(record)
    known = {row.alpha for row in record.named("cvar") if row.split == record.judged and row.alpha}
    levels = {min(known, key=lambda alpha: abs(math.log(alpha / level))) for level in _SOME_ALPHAS if known}
    rows = []
    if record.alpha in known and record.alpha is not None:
        levels.add(record.alpha)
    for level in sorted(levels):
        values = [record.value("cvar", method=method, split=record.judged, alpha=level) for method in methods]
        rows.append([f"{fraction(level)}{' (asked)' if level == record.alpha else ''}", *map(percent, values)])
    heads = ("worst-off", *methods.values())
    return Table(f"Share wrong on the worst-off part of the {record.judged} rows", heads, rows)


def frontier_panels(record: Record) -> list[Panel]:
    """Return the frontier of each goal for which there is one."""
    return [
        panel
        for place, (name, entry) in enumerate(record.entries("goals").items())
        if (panel := _frontier_panel(record, place, name, str(entry.get("text", name)))) is not None
    ]


def _frontier_panel(record: Record, place: int, name: str, text: str) -> Panel | None:
    prefix = f"{name} bound="
    rows = [row for row in record.named("frontier value", "frontier lower") if row.settings.startswith(prefix)]
    found: dict[float, dict[str, float]] = {}
    for row in rows:
        found.setdefault(float(row.settings.removeprefix(prefix)), {})[row.quantity] = row.value
    points = [
        (bound, parts.get("frontier value", math.nan), parts.get("frontier lower", math.nan))
        for bound, parts in sorted(found.items())
    ]
    points = [point for point in points if math.isfinite(point[1])]
    alpha = next((row.alpha for row in rows if row.alpha is not None), None)
    if not points or alpha is None:
        return None
    figure = figures.frontier_figure(
        f"frontier-{place + 1}", text, points, alpha, _goal_value(record, name, "bound", record.judged)
    )
    shown = figures.some(points, _MOST_POINTS)
    lines = [[number(bound), percent(value), percent(lower)] for bound, value, lower in shown]
    table = Table(
        f"Frontier of {name}", ("bound", f"least share wrong, worst {fraction(alpha)}", "proven: not below"), lines
    )
    return Panel(
        f"{name}: {text}", figure, table, note=f"Found on the {rows[0].split} rows, where the model was chosen."
    )


class Mixture(NamedTuple):
    """The models of a mixture with their shares, largest first."""

    models: Sequence[tuple[str, str, str, str, float]]  # title, description, share, error, share as a number
    note: str


def mixture(record: Record) -> Mixture | None:
    """Return the models that carry weight."""
    shares = {row.method: row.value for row in record.named("share")}
    words = record.entries("models")
    active = sorted((name for name in shares if shares[name] > _NOTHING), key=lambda name: -shares[name])
    if not active:
        return None
    models = []
    for name in active[:_MOST_MODELS]:
        entry = words.get(name, {})
        error = percent(record.value("error", method=name, split=record.judged))
        title, description = str(entry.get("title") or name), str(entry.get("description") or "")
        models.append((title, description, percent(shares[name]), error, shares[name]))
    note = f"{len(active)} of {many(len(shares), 'model')} {'carries' if len(active) == 1 else 'carry'} weight."
    if len(active) > _MOST_MODELS:
        rest = sum(shares[name] for name in active[_MOST_MODELS:])
        note += f" The {len(active) - _MOST_MODELS} with the smallest shares, {percent(rest)} together, are not listed."
    return Mixture(models, note)


def tail_table(record: Record) -> Table | None:
    """Return the segments in which the worst-off rows lie."""
    names = dict.fromkeys(row.settings for row in record.named("tail part"))
    words = record.entries("segments")
    rows = []
    for name in names:
        row = next(row for row in record.named("tail part") if row.settings == name)
        share = record.value("tail share of segment", split=row.split, settings=name, alpha=row.alpha)
        size = record.value("segment rows", split=row.split, settings=name, alpha=row.alpha)
        text = str(words.get(name, {}).get("text", name))
        rows.append([text, count(size), percent(share), percent(row.value)])
    heads = ("segment", "rows", "of these in the tail", "part of the tail")
    return Table("Where the worst-off rows are", heads, rows) if rows else None
