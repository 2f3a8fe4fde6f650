"""The sections of a report as data for its template: goals, tails, the objective, the price of goals, the mixture."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from counterpoise.report import figures, wording
from counterpoise.report.record import Record
from counterpoise.report.wording import (
    Noted,
    Verdict,
    count,
    fraction,
    many,
    number,
    percent,
    stand_on_rows,
    verdict_of,
)
from counterpoise.runs import results

_SOME_ALPHAS = (0.01, 0.05, 0.1, 0.2, 0.5, 1.0)  # shown in numbers beside the curve
_MOST_MODELS = 15  # in the table of the mixture; the rest is summed up
_BOTH_SIDES = "There are rates on both sides: the estimate is the left side less the rates on the right."
_NOTHING = 1e-12  # shares of the mixture above this count; they sum to 1, so what is less is rounding of that sum


class PageTable(NamedTuple):
    """A table: the first column names the row, the others hold texts or numbers."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str | Noted]]
    wide: Sequence[int] = ()  # columns of words, aligned left


class GoalCard(NamedTuple):
    """One goal: its words, its verdict where it counts, a figure and its numbers on every split."""

    name: str
    text: str
    confidence: str
    verdict: Verdict
    is_met: bool | None  # on the rows that count, as they are; None where that was not measured
    aimed: float  # the bound that decisions were made to meet
    note: str  # on how to read its numbers
    figure: Markup
    table: PageTable


class FigurePanel(NamedTuple):
    """A figure, the words above it and the table below."""

    title: str
    figure: Markup
    table: PageTable | None = None
    note: str = ""


def noun(record: Record) -> str:
    """Return what the fitted model is called."""
    return "mixture" if record.is_mixture else "model"


def measured(record: Record, *quantities: str) -> dict[str, str]:
    """Return the methods for which quantities were measured, by default losses, and what they are called."""
    names = {results.MIXTURE: noun(record), results.FIRST: "plain training"}
    names |= {results.AVERAGE: "average of all", results.DEPLOYED: "deployed model"}
    known = {row.method for row in record.named(*(quantities or ("error", "cvar")))}
    return {method: name for method, name in names.items() if method in known}


def loss_noun(record: Record) -> str:
    """Return what the tail is a tail of: wrong answers, or with deferred rows a loss."""
    return "share wrong" if record.defer_cost is None else "loss"


def goal_cards(record: Record) -> list[GoalCard]:
    """Return a card for each goal."""
    return [_goal_card(record, place, *one) for place, one in enumerate(record.entries("goals").items(), start=1)]


def _goal_card(record: Record, place: int, name: str, entry: Mapping[str, Any]) -> GoalCard:
    text = str(entry.get("text", name))
    bound = record.goal(name, "bound")
    lines: list[list[str | Noted]] = []
    dots = []
    for split in record.splits:
        estimate, low, high, margin, rows, verdict = (
            record.goal(name, part, split=split) for part in ("estimate", "low", "high", "margin", "rows", "verdict")
        )
        plain = record.goal(name, "estimate", method=results.FIRST, split=split)
        if all(map(math.isnan, (estimate, low, high, verdict))):
            continue
        numbers = [number(part) for part in (estimate, low, high, margin)]
        judged = Noted(verdict_of(verdict), stand_on_rows(record.goal(name, "violation", split=split)))
        lines.append([split, judged, *numbers, count(rows), number(plain)])
        dots.append(figures.Dot(split, estimate, low, high, plain))
    heads = ("rows of", "verdict", "estimate", "low", "high", "margin", "rows", "plain training")
    confidence = "" if entry.get("confidence") is None else f"{entry['confidence']:g}"
    level = f", confidence {confidence}" if confidence else ""
    violation = record.goal(name, "violation")
    goal = _parsed(text)
    return GoalCard(
        name=name,
        text=text,
        confidence=confidence,
        verdict=verdict_of(record.goal(name, "verdict")),
        is_met=None if math.isnan(violation) else violation <= 0,
        aimed=bound if entry.get("aimed") is None else float(entry["aimed"]),
        note=" ".join(_goal_notes(entry, goal)),
        figure=figures.goal_figure(f"goal-{place}", text, dots, bound, "" if goal is None else goal.sense),
        table=PageTable(f"{name}: bound {number(bound)}{level}", heads, lines, wide=(1,)),
    )


def _goal_notes(entry: Mapping[str, Any], goal: Any) -> list[str]:
    """Return what must be known to read the numbers of a goal."""
    notes = []
    if entry.get("aimed") is not None:
        notes.append(f"Decisions were chosen to meet {number(float(entry['aimed']))}, to leave room for this audit.")
    unanswered = entry.get("unanswered")
    for split, why in unanswered.items() if isinstance(unanswered, Mapping) else ():
        notes.append(f"The {split} rows cannot answer it: {why}.")
    return [*notes, *([_BOTH_SIDES] if goal is not None and goal.right.terms else [])]


def _parsed(text: str) -> Any:
    """Return a goal, or None where the text is no goal of ours."""
    from counterpoise.goals import parse_goal  # noqa: PLC0415 - only where there are goals

    try:
        return parse_goal(text)
    except ValueError:
        return None


def is_ratio(text: str) -> bool:
    """Tell whether a goal is on a ratio, such as precision."""
    return hasattr(getattr(_parsed(text), "left", None), "denominator")


def is_at_least(text: str) -> bool:
    """Tell whether a goal asks for at least its bound, so that a lower one is looser."""
    return getattr(_parsed(text), "sense", None) == ">="


def verdict_table(record: Record, cards: Sequence[GoalCard]) -> PageTable:
    """Return the verdicts of all goals on all splits in one table, the rows that count first."""
    order = [record.judged, *(split for split in record.splits if split != record.judged)]
    known = [{str(line[0]): line[1] for line in card.table.rows} for card in cards]
    rows = [
        [f"{card.name}: {card.text}", *(found.get(split, Noted(wording.UNKNOWN, "")) for split in order)]
        for card, found in zip(cards, known, strict=True)
    ]
    return PageTable("Verdicts", ("goal", *(f"{split} rows" for split in order)), rows, wide=range(1, len(order) + 1))


def curve_panels(record: Record) -> list[FigurePanel]:
    """Return the CVaR curves of each split."""
    panels = []
    for place, split in enumerate(record.splits):
        curves = {}
        for method, label in list(measured(record).items())[: figures.MOST_CURVES]:
            rows = [row for row in record.named("cvar") if (row.method, row.split) == (method, split)]
            points = sorted((row.alpha, row.value) for row in rows if row.alpha is not None)
            if points:
                alphas, values = zip(*points, strict=True)
                curves[label] = (alphas, values)
        if curves:
            figure = figures.cvar_figure(f"cvar-{place + 1}", split, curves, record.tail, loss_noun(record))
            panels.append(FigurePanel(split, figure))
    return panels


def curve_table(record: Record) -> PageTable:
    """Return the CVaR at some tail fractions on the rows that count: alpha, and those near round numbers."""
    methods, is_drawn = measured(record), bool(record.named(results.REALISED))
    known = {row.alpha for row in record.named("cvar") if row.split == record.judged and row.alpha}
    levels = {min(known, key=lambda alpha: abs(math.log(alpha / level))) for level in _SOME_ALPHAS if known}
    rows = []
    if record.tail in known and record.tail is not None:
        levels.add(record.tail)
    for level in sorted(levels):
        values = [record.value("cvar", method=method, alpha=level) for method in methods]
        values += [record.value(results.REALISED, alpha=level)] if is_drawn else []
        rows.append([f"{fraction(level)}{' (alpha)' if level == record.tail else ''}", *map(percent, values)])
    heads = ("worst-off", *methods.values(), *([f"{noun(record)}, once drawn"] if is_drawn else []))
    return PageTable(f"{loss_noun(record).capitalize()} on the worst-off part of the {record.judged} rows", heads, rows)


def mixture(record: Record) -> dict[str, Any] | None:
    """Return the models that carry weight, largest first; what is true of each of them is said once."""
    shares = {row.method: row.value for row in record.named("share")}
    words = record.entries("models")
    active = sorted((name for name in shares if shares[name] > _NOTHING), key=lambda name: -shares[name])
    if not active:
        return None
    models: list[dict[str, Any]] = []
    for name in active[:_MOST_MODELS]:
        entry = words.get(name, {})
        told = {"title": str(entry.get("title") or name), "description": str(entry.get("description") or "")}
        told["error"] = percent(record.value("error", method=name))
        models.append({**told, "share": percent(shares[name]), "bar": shares[name]})
    weight = f"{len(active)} of {many(len(shares), 'model')} {'carries' if len(active) == 1 else 'carry'} weight."
    notes = [weight] if len(shares) > 1 else []
    if len({model["description"] for model in models}) == 1 and len(models) > 1:
        notes += [f"Each is: {models[0]['description']}."] if models[0]["description"] else []
        models = [model | {"description": ""} for model in models]
    rest = [shares[name] for name in active[_MOST_MODELS:]]
    if rest:
        notes.append(f"The {len(models)} largest are listed; the others have {percent(sum(rest))} together.")
    return {"models": models, "note": " ".join(notes)}


def tail_table(record: Record) -> PageTable | None:
    """Return the segments in which the worst-off rows lie."""
    words = record.entries("segments")
    rows = []
    for row in record.named("tail part"):
        where: dict[str, Any] = {"split": row.split, "settings": row.settings, "alpha": row.alpha}
        parts = ("tail share of segment", "segment rows", "tail lift")
        share, size, lift = (record.value(part, **where) for part in parts)
        text = str(words.get(row.settings, {}).get("text", row.settings))
        times = f"{lift:.1f}" if math.isfinite(lift) else wording.MISSING
        rows.append([text, count(size), percent(share), times, percent(row.value)])
    heads = ("segment", "rows", "of these worst-off", "times the average", "part of all worst-off")
    return PageTable("Where the worst-off rows are", heads, rows) if rows else None


_TAIL, _ERROR = "tail", "error"  # the two kinds of CVaR


class ReportedObjective(NamedTuple):
    """What was made small: the loss of the tail, of all rows or of the worst group, a risk, a rate, or its own."""

    kind: str
    text: str  # as the subject of a sentence

    @property
    def is_tail(self) -> bool:
        """Tell whether the worst-off were the aim."""
        return self.kind == _TAIL

    @property
    def has_values(self) -> bool:
        """Tell whether the results table has it as a quantity of its own."""
        return self.kind in {results.RATE, results.RISK, results.WORST_GROUP}

    @property
    def least(self) -> str:
        """Return its least value in words."""
        return f"least {self.text.removeprefix('the ')}"

    @property
    def is_code(self) -> bool:
        """Tell whether the text is that of a rate or a risk."""
        return self.kind in {results.RATE, results.RISK}

    @property
    def show(self) -> Callable[[float], str]:
        """Return how its values are written: rates and risks may be any sum of them, the others are shares."""
        return number if self.is_code else percent


def reported_objective(record: Record) -> ReportedObjective:
    """Return the aim of a run; of one that does not tell, the tail."""
    told = record.texts.get("objective")
    words = told if isinstance(told, Mapping) else {"kind": results.CVAR}
    share = "the share wrong" if record.defer_cost is None else "the loss"  # which counts deferred rows too
    if words.get("kind") in {results.RATE, results.RISK}:
        return ReportedObjective(str(words["kind"]), str(words.get("text", "")))
    if words.get("kind") == results.WORST_GROUP:
        by = f" by {words['text']}" if words.get("text") else ""
        return ReportedObjective(results.WORST_GROUP, f"{share} in the worst group{by}")
    if words.get("kind") != results.CVAR or record.alpha is None:
        return ReportedObjective(results.OWN, "")
    if record.tail is None:
        return ReportedObjective(_ERROR, f"{share} of all rows")
    return ReportedObjective(_TAIL, f"{share} of the worst-off {fraction(record.tail)}")


def asked_lines(record: Record) -> list[tuple[str, str]]:
    """Return what was to be small, as terms and their meaning."""
    aim = reported_objective(record)
    tail = "" if record.tail is None else f"the worst-off {fraction(record.tail)} of the rows (alpha = {record.tail:g})"
    if aim.is_tail:
        return [("Least wrong for", tail)]
    lines = [("As small as possible", aim.text)] if aim.text else []
    return [*lines, ("Also measured for", tail)] if tail else lines


def objective_table(record: Record) -> PageTable | None:
    """Return the objective on every split, for each method it was measured for."""
    aim = reported_objective(record)
    methods = measured(record, "objective")
    if not aim.has_values or not methods:
        return None
    rows = [
        [split, *(aim.show(record.value("objective", method=method, split=split)) for method in methods)]
        for split in record.splits
    ]
    return PageTable(aim.text, ("rows of", *methods.values()), rows)


def objective_fact(record: Record) -> tuple[str, str, str] | None:
    """Return the objective on the rows that count as label, value and what is beside it."""
    aim, ours = reported_objective(record), record.value("objective")
    if not aim.has_values or not math.isfinite(ours):
        return None
    others = {name: record.value("objective", method=one) for one, name in measured(record, "objective").items()}
    others.pop(noun(record), None)
    told = [f"{name}: {aim.show(value)}" for name, value in others.items() if math.isfinite(value)]
    return aim.text if aim.is_code else f"{loss_word(record)}, worst group", aim.show(ours), ", ".join(told)


def objective_sentence(record: Record) -> str:
    """Return how small the objective is on the rows that count, and beside it for others."""
    found = objective_fact(record)
    if found is None:
        return ""
    _, value, others = found
    beside = f" ({others})" if others else ""
    return f"The objective, {reported_objective(record).text}, is {value} on the {record.judged} rows{beside}."


def loss_word(record: Record) -> str:
    """Return what is counted, as a label: wrong answers, or with deferred rows a loss."""
    return "Wrong" if record.defer_cost is None else "Loss"


_MOST_POINTS = 7  # in numbers
_ROUNDING = 1e-9  # part of the largest bound of a frontier by which two bounds that are one may differ


def frontier_panels(record: Record) -> list[FigurePanel]:
    """Return the frontier of each goal for which there is one."""
    found = {name: frontier_points(record, name) for name in record.entries("goals")}
    return [_panel(record, place, name, points) for place, (name, points) in enumerate(found.items()) if points]


def _panel(record: Record, place: int, name: str, points: list[tuple[float, float, float]]) -> FigurePanel:
    aim, entry = reported_objective(record), record.entries("goals")[name]
    text = str(entry.get("text", name))
    bound = record.goal(name, "bound")
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
    return FigurePanel(f"{name}: {text}", figure, PageTable(f"Frontier of {name}", heads, lines), note)


def points_at(bound: float, points: Sequence[tuple[float, float, float]]) -> list[tuple[float, float, float]]:
    """Return the points of a frontier at a bound, which may have been rounded as a part of the largest of them.

    Examples
    --------
    >>> from counterpoise.report.sections import points_at
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
