"""The slower views of a setting: curves, frontiers, feasible ranges, the segments of the tail, exact verdicts.

Each view is a sequence of steps, so that the worker can turn to a newer setting in between.
"""

import math
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np

from counterpoise._base.types import FloatArray
from counterpoise.explorer.disclosure import HIDDEN, is_of_few
from counterpoise.explorer.session import Session, SettingResult
from counterpoise.explorer.setting import Setting, SettingGoal, goal_key, number, numbers
from counterpoise.explorer.solving import DRAGGED, RELEASED, MixtureProgram, Unmet, is_priced
from counterpoise.explorer.state import ExplorerRows
from counterpoise.goals import Dataset, Goal, Rate, error_rate
from counterpoise.goals.infeasible import round_safely
from counterpoise.rules.choosing import Problem
from counterpoise.rules.goal_rows import TRAIN
from counterpoise.theory.risks import Mean

TAIL, ERROR = "tail", "error"  # quantities of a frontier beside the goals
_ALPHAS = np.geomspace(0.01, 1.0, 25)
_SOLVED_ALPHAS = np.geomspace(0.02, 1.0, 8)  # of a curve, at which the mixture is chosen again
_POINTS = 10  # of a frontier
_HALVINGS = 20  # of the range of a bound: a millionth of it
_ROUNDING = 9  # digits, of the range of a bound, to which solvers find where goals can be met
_DIGITS = 6  # of the tightest bound, rounded to where it can be met
_MARGIN = 0.1  # of the range of a frontier that is shown beyond where a goal costs nothing

_Result = TypeVar("_Result")
Steps: TypeAlias = Generator[None, None, _Result]


def steps(session: Session, setting: Setting, view: str, **words: Any) -> Iterator[dict[str, Any] | None]:
    """Yield None after each step, and finally the content of the view."""
    if view not in VIEWS:
        raise ValueError(f"A view is one of {', '.join(VIEWS)}; got {view!r}.")
    unknown = [name for name in words if view != "frontier" or name not in ("x", "y")]
    if unknown:
        raise ValueError(f"The view {view} has no option {unknown[0]!r}.")
    try:
        yield from VIEWS[view](session, setting, **words)
    except Unmet:
        yield {"unmet": True, "why": "no mixture meets the goals"}


def show_view(session: Session, setting: Setting, view: str, **words: Any) -> dict[str, Any]:
    """Return the content of a view."""
    return next(result for result in steps(session, setting, view, **words) if result is not None)


def _curve(session: Session, setting: Setting) -> Iterator[dict[str, Any] | None]:
    """Show the loss of every tail: of this mixture, of plain training, and of the best mixture for each tail."""
    result = session.recent(setting)
    yield None
    lines = tail_lines(session, result, _ALPHAS)
    yield None
    if setting.alpha is not None and not session.decides_by_one_rule:
        name = "best", replace(setting, alpha=None).to_json()  # the same whatever the tail at present
        rows = getattr(result.state, lines["rows"])[TRAIN]
        lines["best"] = yield from _once(session, name, _best(session, setting, rows))
    yield lines


def tail_lines(session: Session, result: SettingResult, alphas: FloatArray) -> dict[str, Any]:
    """Return the loss of every tail that is shown, of a mixture and of plain training."""
    rows = "selection" if session.parts.held_out is None else "held_out"
    own, tails = getattr(result.state, rows)[TRAIN], alphas[session.least_alpha <= alphas]
    lines = {"mixture": result.solution, "plain": result.state.usual}
    losses = {name: numbers(own.curve(solution, tails)) for name, solution in lines.items()}
    return {"alphas": numbers(tails), "best": [], "rows": rows} | losses


def _best(session: Session, setting: Setting, rows: ExplorerRows) -> Steps[list[Any]]:
    """Return the loss of the best mixture for each tail; from large tails to small ones, which take up their cuts."""
    points = []
    for alpha in _SOLVED_ALPHAS[session.least_alpha <= _SOLVED_ALPHAS][::-1].tolist():
        yield None
        other = session.recent(replace(setting, alpha=alpha))
        with session.lock:
            points.append([number(alpha), number(rows.loss(other.solution, alpha).tail)])
    return points[::-1]


def _once(session: Session, name: Any, find: Steps[_Result]) -> Steps[_Result]:
    """Return a result that is computed in steps, from the cache where it is stored."""
    if name not in session.cache:
        session.cache[name] = yield from find
    return cast("_Result", session.cache[name])


def _ranges(session: Session, setting: Setting) -> Iterator[dict[str, Any] | None]:
    """Show for each goal that is on the tightest bound that can be met with all others, and where it costs nothing."""
    ranges, setting = [], replace(setting, confidence=None)  # bounds are moved, and margins follow from them
    for place, one in enumerate(setting.goals):
        if one.on and not session.few.why(one.goal):
            tightest = yield from _tightest(session, setting, place)
            free = None if tightest is None else _free(session, setting, place, tightest)
            ranges.append({"place": place, "text": str(one.goal), "tightest": tightest, "free": free})
            yield None
    yield {"ranges": ranges}


def _tightest(session: Session, setting: Setting, place: int) -> Steps[float | None]:
    """Return the tightest bound of a goal that can be met beside all others, None where they cannot be met, in steps.

    It depends neither on the goal's own bound nor on the tail, so it is computed once.
    """
    others = tuple(str(one.goal) for other, one in enumerate(setting.goals) if one.on and other != place)
    name = "edge", goal_key(setting.goals[place].goal), others, setting.by, setting.defer
    return (yield from _once(session, name, _edge(session, setting, place)))


def _edge(session: Session, setting: Setting, place: int) -> Steps[float | None]:
    """Return the end of a goal's range: the optimum of a linear program; of a search for ratios and with confidence."""
    goal, goals = setting.goals[place].goal, setting.active
    own = sum(one.on for one in setting.goals[:place])
    low, high = session.reach(goal)
    with session.lock:
        program = session.state(setting).program
        try:
            excess = program.least_excess(goals, own)
        except Unmet:
            return None
    if excess is None:
        return (yield from _bisect(session, program, goals, own))
    decimals = _ROUNDING - math.floor(math.log10(high - low)) if high > low else _ROUNDING
    edge = round(goal.bound + goal.sign * excess, decimals)
    return round_safely(goal, max(edge, low) if goal.sense == "<=" else min(edge, high), _DIGITS)


def _bisect(session: Session, program: MixtureProgram, goals: tuple[Goal, ...], place: int) -> Steps[float | None]:
    """Return the same by bisection: the feasible set grows as the bound is relaxed."""
    goal = goals[place]

    def can_hold(bound: float) -> bool:
        with session.lock:
            return bool(program.can_hold((*goals[:place], goal.with_bound(bound), *goals[place + 1 :])))

    low, high = session.reach(goal)
    tight, loose = (low, high) if goal.sense == "<=" else (high, low)
    if not can_hold(loose):
        return None
    if can_hold(tight):
        return tight
    for _ in range(_HALVINGS):
        middle = (tight + loose) / 2
        tight, loose = (tight, middle) if can_hold(middle) else (middle, loose)
        yield
    return round_safely(goal, loose, _DIGITS)


def _free(session: Session, setting: Setting, place: int, tightest: float) -> float | None:
    """Return the bound from which a goal costs nothing: its value in the best mixture without it."""
    goal = setting.goals[place].goal
    try:
        without, has_price = _without(session, setting, place)
        value = number(_value(without, goal))
    except Unmet:
        return None
    if value is None:
        return None
    ends = [value, tightest, *([goal.bound] if has_price else [])]  # mixtures within the gap differ in their rates
    return max(ends) if goal.sense == "<=" else min(ends)


def _without(session: Session, setting: Setting, place: int) -> tuple[SettingResult, bool]:
    """Return the best mixture without a goal (the current one if the goal has no price), and whether it has a price."""
    has_price = False
    goals = tuple(one._replace(on=one.on and other != place) for other, one in enumerate(setting.goals))
    with suppress(Unmet):
        present = session.recent(setting)
        own = sum(one.on for one in setting.goals[:place])
        prices = present.prices
        if prices.size:  # else they are not known
            ends = session.reach(setting.goals[place].goal)
            has_price = is_priced(float(prices[own]), ends, present.problem.objective)
            if setting.budget is None and not has_price:  # a budget counts from the goals
                return present, False
    with session.lock:  # as where a value rests: mixtures farther from the best differ visibly in their rates
        return session.solve(replace(setting, goals=goals), RELEASED), has_price


def _value(result: SettingResult, goal: Goal) -> float:
    """Return the bound that a mixture meets exactly; None where few rows count."""
    rates = result.state.program.rates(result.solution)
    if is_of_few(goal, rates):
        return math.nan
    check = goal.at(rates)  # type: ignore[arg-type]  # has their interface
    return check.value - (check.bound - goal.bound)


def _frontier(session: Session, setting: Setting, x: Any = None, y: Any = None) -> Iterator[dict[str, Any] | None]:
    """Show the least of one quantity for each bound of another, with all other goals kept."""
    if x is None and y is None and setting.alpha == 1.0:  # the error is the tail of all rows: a goal is beside it
        goals = (place for place, one in enumerate(setting.goals) if not session.few.why(one.goal))
        x = next(goals, None)
        y = None if x is None else ERROR
    x, y = ERROR if x is None else x, TAIL if y is None else y
    across, up = _quantity(session, setting, x), _quantity(session, setting, y)
    if isinstance(across, str) or across == up:
        raise ValueError("A frontier needs two different quantities, of which the first is a goal or the error.")
    others = tuple(one for one in setting.goals if one.on and one.goal not in (across, up))
    base = replace(setting, goals=(SettingGoal(across), *others), budget=None)
    tightest = yield from _tightest(session, base, 0)
    if tightest is None:
        yield {"points": [], "x": str(x), "y": str(y)}
        return
    loosest = _value(_optimum(session, replace(base, goals=others), up), across)
    if math.isnan(loosest):
        raise ValueError(f"{across.left} is computed on {HIDDEN}, so the explorer does not show its frontier.")
    points = []
    for level in _levels(session, across, tightest, loosest):
        yield None
        try:
            first = SettingGoal(across.with_bound(level))
            result = _optimum(session, replace(base, goals=(first, *others)), up)
        except Unmet:  # at the very edge, by rounding
            continue
        points.append([number(level), number(_height(result, up))])
    here = None  # where no mixture meets the goals of the current setting
    with suppress(Unmet):
        present = session.recent(setting)
        here = [number(_value(present, across)), number(_height(present, up))]
    names = [one if isinstance(one, str) else str(one.left) for one in (across, up)]
    yield {"points": points, "here": here, "x": names[0], "y": names[1]}


def _levels(session: Session, goal: Goal, tightest: float, loosest: float) -> list[float]:
    """Return bounds from the tightest to slightly beyond the bound from which the goal costs nothing."""
    low, high = session.reach(goal)
    end = float(np.clip(tightest + (loosest - tightest) * (1 + _MARGIN), low, high))
    return [float(level) for level in np.linspace(tightest, end, _POINTS)]


def _quantity(session: Session, setting: Setting, word: Any) -> Goal | str:
    """Return a goal by its place in the setting, the error rate as a goal, or the tail."""
    if word == TAIL:
        return TAIL
    if word == ERROR:
        return error_rate(Dataset(TRAIN)) <= 1.0
    if not isinstance(word, int) or isinstance(word, bool) or not 0 <= word < len(setting.goals):
        raise ValueError(f"A quantity is the place of a goal, {ERROR!r} or {TAIL!r}; got {word!r}.")
    goal = setting.goals[word].goal
    if session.few.why(goal):
        raise ValueError(f"{goal.left} is computed on {HIDDEN}, so the explorer does not show its frontier.")
    return goal


def _optimum(session: Session, setting: Setting, up: Goal | str) -> SettingResult:
    """Return the mixture with the least of a quantity, or with the most for a goal with ``>=``."""
    with session.lock:
        problem, state = session.problem(setting), session.state(setting)
        problem = problem._replace(objective=_objective(up, problem), budget=None)
        return SettingResult(setting, problem, state, state.program.solve(problem, DRAGGED))


def _objective(up: Goal | str, problem: Problem) -> Any:
    if isinstance(up, str):
        return problem.objective
    if not isinstance(up.left, Rate):
        raise TypeError(f"A frontier shows rates; {up.left} cannot be minimised by itself.")
    if problem.deferral is None and up == (error_rate(Dataset(TRAIN)) <= 1.0):
        return Mean()  # the same, and faster
    rate = up.left - Rate(0.0, up.right.terms)
    return rate if up.sense == "<=" else -rate


def _height(result: SettingResult, up: Goal | str) -> float:
    return result.solution.value if isinstance(up, str) else _value(result, up)


def _segments(session: Session, setting: Setting) -> Iterator[dict[str, Any] | None]:
    """Show which simple segments of the held-out rows make up the tail, in words."""
    from counterpoise.runs.data import RunRows  # noqa: PLC0415 - heavy, and needs optional packages
    from counterpoise.runs.segments import find_segments, why_no_segments  # noqa: PLC0415

    held_out = session.parts.held_out
    if held_out is None or held_out.features is None:
        yield {"segments": [], "why": "the held-out rows have no data frame of features"}
        return
    alpha = 1.0 if setting.alpha is None else setting.alpha
    why = why_no_segments(held_out.tables[TRAIN].n_samples, alpha)
    if why:
        yield {"segments": [], "why": why}
        return
    result = session.recent(setting)
    losses = result.state.held_out[TRAIN].losses(result.solution)
    yield None
    part = RunRows(held_out.features, None, {}, held_out.tables[TRAIN].sample_weight, None)
    segments = find_segments(part, losses, alpha)
    words: list[dict[str, Any]] = []
    for one in segments:
        parts = {name: number(getattr(one, name)) for name in ("share", "part", "lift")}
        words.append({"text": one.text, "rows": one.n_rows, **parts})
    yield {"segments": words, "why": "" if words else "no segment has a notably larger share of the tail than others"}


def _verdicts(session: Session, setting: Setting) -> Iterator[dict[str, Any] | None]:
    """Show the verdicts of the library's own audit: intervals of sums of rates are narrower than while dragging."""
    result = session.recent(setting)
    answers = {name: rows.answers(result.solution) for name, rows in result.state.held_out.items()}
    yield None
    yield {"verdicts": session.verdicts(setting, answers, quick=False)}


VIEWS = {"curve": _curve, "frontier": _frontier, "ranges": _ranges, "segments": _segments, "verdicts": _verdicts}
