"""The margins of a setting for a page: numbers of each goal, and sentences on what they cost and what limits them."""

import math
from collections.abc import Sequence
from typing import Any

from counterpoise._base.checks import check_number
from counterpoise.explorer.setting import Setting, number, reach
from counterpoise.goals import Goal
from counterpoise.rules.choosing import Problem
from counterpoise.rules.margins import Margin, Margins
from counterpoise.theory.risks import Risk

_NOTHING = 1e-6  # of the objective: less than that is rounding
_LEAST_SHOWN = 0.01  # points
_WIDEST = 2.0  # standard errors of a margin that is kept: about those of one goal at a confidence of 0.98


def tightened(setting: Setting, margins: Sequence[float | None]) -> tuple[Goal, ...]:
    """Return the goals that count with bounds that are tighter by margins, as far as they can be."""
    goals = []
    for one, margin in zip(setting.goals, margins or [None] * len(setting.goals), strict=True):
        if one.on:
            (low, high), goal = reach(one.goal), one.goal
            goals.append(goal.with_bound(min(max(goal.bound - goal.sign * margin, low), high)) if margin else goal)
    return tuple(goals)


def read_margins(values: Any, setting: Setting) -> tuple[float | None, ...]:
    """Return the margins that a page keeps while a value moves: for each goal a number, or None."""
    n_goals = len(setting.goals)
    if not isinstance(values, list) or len(values) != n_goals:
        raise TypeError(f"margins must be a list of {n_goals} numbers or nulls, one for each goal.")
    return tuple(None if one is None else check_number(one, "A margin", "[0, inf)") for one in values)


def describe_goal_margin(margin: Margin, problem: Problem) -> dict[str, Any]:
    """Return the bound of a goal, the value aimed at, what new rows are expected to have, and what the margin costs."""
    words: dict[str, Any] = {"bound": number(margin.bound), "value": number(margin.value)}
    if margin.expected is None:
        return words | {"note": f"No margin: {margin.reason}."}
    assert margin.standard_error is not None  # noqa: S101 - it has a margin
    assert margin.optimism is not None  # noqa: S101 - it has a margin
    low, high = margin.expected
    # a value may lie far inside of its bound by itself: that is no margin to keep while the bound moves
    most = _WIDEST * margin.standard_error + margin.optimism
    inside = max(margin.goal.sign * (margin.bound - margin.value), 0.0)
    cost = in_points(margin.cost, problem) if margin.cost > _NOTHING else ""
    return words | {"low": number(low), "high": number(high), "margin": number(min(inside, most)), "cost": cost}


def in_points(cost: float, problem: Problem) -> str:
    """Return a part of the objective in words."""
    if not isinstance(problem.objective, Risk) or problem.objective.tail_fraction != 1.0:
        return f"{cost:.3g} of the objective"
    points = f"less than {_LEAST_SHOWN}" if 100 * cost < _LEAST_SHOWN else f"{100 * cost:.2g}"
    return f"{points} points of {'error' if problem.deferral is None else 'loss'}"


def price_of(margins: Margins, problem: Problem) -> str:
    """Return a sentence on what all margins cost; an empty text where that is not known, or there are none."""
    if math.isnan(margins.cost) or all(margin.expected is None for margin in margins.margins):
        return ""
    return (
        f"Margins cost {in_points(margins.cost, problem)}." if margins.cost > _NOTHING else "Margins cost nothing here."
    )


def limits_of(margins: Margins, confidence: float, *, is_hidden: bool) -> str:
    """Return why a confidence is not reached, and what would help; an empty text where it is reached."""
    if margins.confidence is not None:
        return ""
    if all(margin.expected is None for margin in margins.margins):
        return "No goal has a margin here."
    sentences = [f"A confidence of {confidence:g} is not reached. The page shows the rule that comes closest."]
    if margins.limiting is not None and not is_hidden:
        sentences.append(f"The goal {margins.limiting} limits it.")
    if margins.is_costly:
        sentences.append(
            "Rules with larger margins are nearly trivial: they raise the objective by a quarter, or by 0.02."
        )
    if margins.rows_needed is not None and not is_hidden:
        sentences.append(f"About {margins.rows_needed:,} selection rows would be enough.")
    return " ".join([*sentences, "Relax a goal, or lower the confidence."])
