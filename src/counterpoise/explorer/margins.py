"""The margins of a setting for a page: numbers of each goal, and sentences on what they cost and what limits them."""

from collections.abc import Mapping, Sequence
from typing import Any

from counterpoise._base.checks import check_number
from counterpoise.explorer.setting import Setting, number, reach
from counterpoise.explorer.solving import BestMixture
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


def describe_margins(
    setting: Setting, problem: Problem, solution: BestMixture, goals: Sequence[Mapping[str, Any]], *, is_too_much: bool
) -> dict[str, Any] | None:
    """Return the margins of a setting, without numbers of goals that hide theirs; None where there is no confidence.

    Parameters
    ----------
    setting : Setting
    problem : Problem
    solution : BestMixture
        Without margins while a value moves: a page then keeps those that it has.
    goals : sequence of dict
        What the page is told of each goal.
    is_too_much : bool
        Whether no mixture has the margins that the page keeps.
    """
    confidence, margins = setting.confidence, solution.margins
    if confidence is None:
        return None
    words: dict[str, Any] = {"confidence": confidence, "is_kept": False, "price": "", "limits": ""}
    if not setting.active:
        return words | {"goals": [None] * len(goals), "limits": "No goal is on."}
    if margins is None:
        return words | {"is_kept": True, "is_too_much": is_too_much}
    own, by_goal, hidden = iter(margins.margins), [], set()
    cost = None if solution.plain is None else max(solution.value - solution.plain.value, 0.0)
    for one, goal in zip(setting.goals, goals, strict=True):
        margin = next(own, None) if one.on else None
        is_hidden = "note" in goal["choice"]
        by_goal.append(None if margin is None or is_hidden else _describe_margin(margin, problem, cost))
        if is_hidden:
            hidden.add(one.goal)
    is_reached = margins.confidence is not None
    if cost is not None and (is_reached or cost > _NOTHING):
        price = f"Margins cost {in_points(cost, problem)}" if cost > _NOTHING else "Margins cost nothing here"
        words["price"] = f"{price}." if is_reached else f"{price}, and are not large enough."
    if margins.proof is not None and margins.proof.is_proven:
        words["price"] = f"The rule of this model is proven by exact tests. {words['price']}".strip()
    return words | {"goals": by_goal, "limits": _limits_of(margins, confidence, is_hidden=margins.limiting in hidden)}


def in_points(cost: float, problem: Problem) -> str:
    """Return a part of the objective in words."""
    if not isinstance(problem.objective, Risk) or problem.objective.tail_fraction != 1.0:
        return f"{cost:.3g} of the objective"
    points = f"less than {_LEAST_SHOWN}" if 100 * cost < _LEAST_SHOWN else f"{100 * cost:.2g}"
    return f"{points} points of {'error' if problem.deferral is None else 'loss'}"


def _describe_margin(margin: Margin, problem: Problem, most_cost: float | None) -> dict[str, Any]:
    """Return the bound of a goal, the value aimed at, a 95 % interval for the population, and what the margin costs.

    One margin costs no more than all together.
    """
    words: dict[str, Any] = {"bound": number(margin.bound), "value": number(margin.value)}
    if margin.expected is None or margin.standard_error is None or margin.optimism is None:
        return words | {"note": f"No margin: {margin.reason}."}
    low, high = margin.expected
    # a value may lie far inside of its bound by itself: that is no margin to keep while the bound moves
    most = _WIDEST * margin.standard_error + margin.optimism
    inside = max(margin.goal.sign * (margin.bound - margin.value), 0.0)
    cost = margin.cost if most_cost is None else min(margin.cost, most_cost)
    words |= {"low": number(low), "high": number(high), "margin": number(min(inside, most))}
    return words | {"cost": in_points(cost, problem) if cost > _NOTHING else ""}


def _limits_of(margins: Margins, confidence: float, *, is_hidden: bool) -> str:
    """Return why a confidence is not reached, and what would help; an empty text where it is reached."""
    if margins.confidence is not None:
        return ""
    if all(margin.expected is None for margin in margins.margins):
        return "No goal has a margin here."
    sentences = [f"A confidence of {confidence:g} is not reached. The page shows the rule that comes closest."]
    if margins.limiting is not None and not is_hidden:
        sentences.append(f"The goal {margins.limiting} limits it.")
    if margins.rows_needed is not None and not is_hidden:
        sentences.append(f"Perhaps {margins.rows_needed} would be enough.")
    return " ".join([*sentences, "Relax a goal, or lower the confidence."])
