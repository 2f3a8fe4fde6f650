"""The sections of a report as data for its template: goals, tails, the objective, the price of goals, the mixture."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from counterpoise.goals.rates import is_maximized
from counterpoise.report import figures, wording
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
from counterpoise.runs.result import GoalResult, RunResult, SplitStanding
from counterpoise.runs.table import ResultTable

_SOME_ALPHAS = (0.01, 0.05, 0.1, 0.2, 0.5, 1.0)  # shown in numbers beside the curve
_MOST_MODELS = 15  # in the table of the mixture; the rest is summed up
_BOTH_SIDES = "There are rates on both sides: the estimate is the left side less the rates on the right."
_NOTHING = 1e-12  # shares of the mixture above this count; they sum to 1, so what is less is rounding of that sum


class JudgedGoal(NamedTuple):
    """A goal with its name on the page, and how it stands on the rows that count."""

    name: str
    goal: GoalResult
    standing: SplitStanding
    verdict: Verdict
    is_met: bool | None  # by these rows themselves; None where that was not measured

    @property
    def text(self) -> str:
        """Return the goal as text."""
        return self.goal.text


def judged_goals(result: RunResult) -> list[JudgedGoal]:
    """Return the goals of a run as the rows that count show them."""
    judged = []
    for place, goal in enumerate(result.goals, start=1):
        standing = goal.on(result.judged)
        is_met = None if math.isnan(standing.violation) else standing.violation <= 0
        judged.append(JudgedGoal(f"goal {place}", goal, standing, verdict_of(standing.verdict), is_met))
    return judged


class FigurePanel(NamedTuple):
    """A figure, the words above it and the table below."""

    title: str
    figure: Markup
    table: ResultTable | None = None
    note: str = ""


def noun(result: RunResult) -> str:
    """Return what the fitted model is called."""
    return "mixture" if result.is_mixture else "model"


def decider_names(result: RunResult, quantity: str = "error") -> dict[str, str]:
    """Return the deciders for which a quantity was measured, and what they are called."""
    names = {results.MIXTURE: noun(result), results.FIRST: "plain training"}
    names |= {results.AVERAGE: "average of all", results.DEPLOYED: "deployed model"}
    return {decider: names[decider] for decider in result.deciders(quantity)}


def loss_noun(result: RunResult) -> str:
    """Return what the tail is a tail of: wrong decisions, or with deferred rows a loss."""
    return "share wrong" if result.deferral is None else "loss"


def goal_panels(result: RunResult) -> list[FigurePanel]:
    """Return a figure for each goal, with its numbers on every split."""
    return [_goal_panel(result, one) for one in judged_goals(result)]


def _goal_panel(result: RunResult, judged: JudgedGoal) -> FigurePanel:
    goal, margin = judged.goal, judged.goal.margin
    lines: list[list[str | Noted]] = []
    dots = []
    for split in result.splits:
        standing, plain = goal.on(split), goal.on(split, results.FIRST).estimate
        if not standing.verdict and math.isnan(standing.estimate):
            continue
        numbers = [number(part) for part in (standing.estimate, standing.low, standing.high, standing.margin)]
        stands = Noted(verdict_of(standing.verdict), stand_on_rows(standing.violation))
        lines.append([split, stands, *numbers, count(standing.rows), number(plain)])
        dots.append(figures.Dot(split, standing.estimate, standing.low, standing.high, plain))
    if margin is not None and not margin.reason:
        dots.append(figures.Dot("expected", margin.value, margin.low, margin.high))
    heads = ("rows of", "verdict", "estimate", "low", "high", "margin", "rows", "plain training")
    level = f", confidence {goal.confidence:g}" if math.isfinite(goal.confidence) else ""
    parsed, bound = parse_or_none(goal.text), judged.standing.bound
    figure_name = judged.name.replace(" ", "-")
    figure = figures.goal_figure(figure_name, goal.text, dots, bound, "" if parsed is None else parsed.sense)
    table = ResultTable(f"{judged.name}: bound {number(bound)}{level}", heads, lines)
    return FigurePanel(judged.name, figure, table, " ".join(_goal_notes(goal, parsed)))


def _goal_notes(goal: GoalResult, parsed: Any) -> list[str]:
    """Return what must be known to read the numbers of a goal."""
    notes = []
    margin = goal.margin
    if margin is not None and margin.reason:
        notes.append(f"It has no margin for new rows, as {margin.reason}.")
    elif margin is not None:
        notes.append(
            f"Decisions aim at {number(margin.value)} on the rows they were chosen on; {number(margin.low)} to "
            f"{number(margin.high)} is expected in the population."
        )
    notes_by_split = {split: goal.on(split).note for split in goal.splits}
    notes += [f"It cannot be measured on the {split} rows: {note}." for split, note in notes_by_split.items() if note]
    for split in goal.splits:
        if goal.on(split).left_out:
            notes.append(f"Left out of the {split} rows: {', '.join(goal.on(split).left_out)}.")
    if parsed is not None and parsed.is_equality:
        notes.append("Its numbers are distances from what the rate must be equal to, and its bound is the tolerance.")
    return [*notes, *([_BOTH_SIDES] if parsed is not None and parsed.right.terms else [])]


def parse_or_none(text: str) -> Any:
    """Return a goal, or None where the text is no goal of ours."""
    from counterpoise.goals import parse_goal  # noqa: PLC0415 - only where there are goals

    try:
        return parse_goal(text)
    except ValueError:
        return None


def is_ratio(text: str) -> bool:
    """Tell whether a goal is on a ratio, such as precision."""
    return hasattr(getattr(parse_or_none(text), "left", None), "denominator")


def is_at_least(text: str) -> bool:
    """Tell whether a goal asks for at least its bound, so that a lower one is looser."""
    return getattr(parse_or_none(text), "sense", None) == ">="


def verdict_table(result: RunResult) -> ResultTable:
    """Return the verdicts of all goals on all splits in one table, the rows that count first."""
    order = [result.judged, *(split for split in result.splits if split != result.judged)]
    rows = []
    for one in judged_goals(result):
        standings = [one.goal.on(split) for split in order]
        cells = [Noted(verdict_of(standing.verdict), stand_on_rows(standing.violation)) for standing in standings]
        rows.append([f"{one.name}: {one.text}", *cells])
    return ResultTable("Verdicts", ("goal", *(f"{split} rows" for split in order)), rows)


def curve_panels(result: RunResult) -> list[FigurePanel]:
    """Return the CVaR curves of each split."""
    panels = []
    for place, (split, part) in enumerate(result.splits.items(), start=1):
        curves = {}
        for decider, label in list(decider_names(result).items())[: figures.MOST_CURVES]:
            tails = sorted((one.alpha, one.value) for one in result.losses(decider, split).tails)
            if tails and decider in part.losses:
                alphas, values = zip(*tails, strict=True)
                curves[label] = (alphas, values)
        if curves:
            figure = figures.cvar_figure(f"cvar-{place}", split, curves, result.tail, loss_noun(result))
            panels.append(FigurePanel(split, figure))
    return panels


def curve_table(result: RunResult) -> ResultTable:
    """Return the CVaR at some tail fractions on the rows that count: alpha, and those near round numbers."""
    deciders = decider_names(result)
    known = {tail.alpha for decider in deciders for tail in result.losses(decider).tails}
    levels = {min(known, key=lambda alpha: abs(math.log(alpha / level))) for level in _SOME_ALPHAS if known}
    rows = []
    if result.tail in known and result.tail is not None:
        levels.add(result.tail)
    for level in sorted(levels):
        values = [result.losses(decider).tail(level).value for decider in deciders]
        values += [result.losses().tail(level).realised] if result.is_drawn else []
        rows.append([f"{fraction(level)}{' (alpha)' if level == result.tail else ''}", *map(percent, values)])
    heads = ("worst-off", *deciders.values(), *([f"{noun(result)}, once drawn"] if result.is_drawn else []))
    return ResultTable(
        f"{loss_noun(result).capitalize()} on the worst-off part of the {result.judged} rows", heads, rows
    )


def mixture(result: RunResult) -> dict[str, Any] | None:
    """Return the models that carry weight, largest first; a description that all of them share is shown once."""
    shares = {place: rule.share for place, rule in enumerate(result.rules) if not math.isnan(rule.share)}
    active = sorted((place for place in shares if shares[place] > _NOTHING), key=lambda place: -shares[place])
    if not active:
        return None
    models: list[dict[str, Any]] = []
    for place in active[:_MOST_MODELS]:
        rule = result.rules[place]
        words = {"title": rule.title or f"model {place + 1}", "description": rule.description}
        models.append(words | {"error": percent(rule.error), "share": percent(rule.share), "bar": rule.share})
    weight = f"{len(active)} of {many(len(shares), 'model')} {'carries' if len(active) == 1 else 'carry'} weight."
    notes = [weight] if len(shares) > 1 else []
    if len({model["description"] for model in models}) == 1 and len(models) > 1:
        notes += [f"Each is: {models[0]['description']}."] if models[0]["description"] else []
        models = [model | {"description": ""} for model in models]
    rest = [shares[place] for place in active[_MOST_MODELS:]]
    if rest:
        notes.append(f"The {len(models)} largest are listed; the others have {percent(sum(rest))} together.")
    return {"models": models, "note": " ".join(notes)}


def tail_table(result: RunResult) -> ResultTable | None:
    """Return the segments in which the worst-off rows lie."""
    rows = []
    for one in result.segments:
        times = f"{one.lift:.1f}" if math.isfinite(one.lift) else wording.MISSING
        rows.append([one.text, count(one.rows), percent(one.share), times, percent(one.part)])
    heads = ("segment", "rows", "of these worst-off", "times the average", "part of all worst-off")
    return ResultTable("Where the worst-off rows are", heads, rows) if rows else None


_TAIL, _ERROR = "tail", "error"  # the two kinds of CVaR


class ReportedObjective(NamedTuple):
    """What was minimised: the loss of the tail, of all rows or of the worst group, a risk, a rate, or its own."""

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


def reported_objective(result: RunResult) -> ReportedObjective:
    """Return the objective of a run; the tail where the result names none."""
    kind, text = ("cvar", "") if result.objective is None else (result.objective.kind, result.objective.text)
    share = "the share wrong" if result.deferral is None else "the loss"  # which counts deferred rows too
    if kind in {results.RATE, results.RISK}:
        return ReportedObjective(kind, text)
    if kind == results.WORST_GROUP:
        return ReportedObjective(kind, f"{share} in the worst group{f' by {text}' if text else ''}")
    if kind != results.CVAR or result.alpha is None:
        return ReportedObjective(results.OWN, "")
    if result.tail is None:
        return ReportedObjective(_ERROR, f"{share} of all rows")
    return ReportedObjective(_TAIL, f"{share} of the worst-off {fraction(result.tail)}")


def objective_lines(result: RunResult) -> list[tuple[str, str]]:
    """Return what was minimised, as terms and their meaning."""
    aim = reported_objective(result)
    tail = "" if result.tail is None else f"the worst-off {fraction(result.tail)} of the rows (alpha = {result.tail:g})"
    if aim.is_tail:
        return [("Least wrong for", tail)]
    lines = [("Maximised" if is_maximized(aim.text) else "Minimised", aim.text)] if aim.text else []
    return [*lines, ("Also measured for", tail)] if tail else lines


def objective_table(result: RunResult) -> ResultTable | None:
    """Return the objective on every split, for each method it was measured for."""
    aim = reported_objective(result)
    deciders = decider_names(result, "objective")
    if not aim.has_values or not deciders:
        return None
    rows = [
        [split, *(aim.show(result.losses(decider, split).objective) for decider in deciders)] for split in result.splits
    ]
    return ResultTable(aim.text, ("rows of", *deciders.values()), rows)


def objective_sentence(result: RunResult) -> str:
    """Return how small the objective is on the rows that count, and beside it for others."""
    aim, ours = reported_objective(result), result.losses().objective
    if not aim.has_values or not math.isfinite(ours):
        return ""
    names = {who: name for who, name in decider_names(result, "objective").items() if who != results.MIXTURE}
    values = {name: result.losses(who).objective for who, name in names.items()}
    beside = ", ".join(f"{name}: {aim.show(value)}" for name, value in values.items() if math.isfinite(value))
    others = f" ({beside})" if beside else ""
    return f"The objective, {aim.text}, is {aim.show(ours)} on the {result.judged} rows{others}."


def loss_word(result: RunResult) -> str:
    """Return what is counted, as a label: wrong decisions, or with deferred rows a loss."""
    return "Wrong" if result.deferral is None else "Loss"


_MOST_POINTS = 7  # in numbers
_ROUNDING = 1e-9  # part of the largest bound of a frontier by which two bounds that are one may differ


def frontier_panels(result: RunResult) -> list[FigurePanel]:
    """Return the frontier of each goal for which there is one."""
    goals = enumerate(result.goals, start=1)
    return [_panel(result, place, goal) for place, goal in goals if frontier_points(goal)]


def _panel(result: RunResult, place: int, goal: GoalResult) -> FigurePanel:
    aim, points = reported_objective(result), frontier_points(goal)
    bound, name = goal.on(result.judged).bound, f"goal {place}"
    figure = figures.frontier_figure(f"frontier-{place}", goal.text, points, aim.least, aim.show, bound)
    marked = dict.fromkeys(points_at(bound, points), " (requested)")
    shown = sorted({*figures.some(points, _MOST_POINTS), *marked})
    lines = [[number(point[0]) + marked.get(point, ""), aim.show(point[1]), aim.show(point[2])] for point in shown]
    heads = ("bound", aim.least, "lower bound, of these rules" if result.certificate else "proven lower bound")
    note = f"Computed on the {result.chosen_on} rows, where the {noun(result)} was chosen."
    if not result.is_mixture:
        note += " A single model decides, and may lie a little above the curve."
    if not is_ratio(goal.text) and not result.certificate:  # of which a few bounds near its own were tried
        note += " No mixture of these models meets a bound beyond the tight end of the curve."
    return FigurePanel(f"{name}: {goal.text}", figure, ResultTable(f"Frontier of {name}", heads, lines), note)


def points_at(bound: float, points: Sequence[figures.Point]) -> list[figures.Point]:
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


def frontier_points(goal: GoalResult) -> list[figures.Point]:
    """Return bound, least value and proven lower value, by bound."""
    points = sorted((point.bound, point.value, point.lower) for point in goal.tradeoff)
    return [point for point in points if math.isfinite(point[1])]
