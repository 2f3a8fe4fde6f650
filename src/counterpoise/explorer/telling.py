"""What a session found, in words and plain numbers: how goals stand, what held-out rows show, what conflicts."""

from typing import Any

from counterpoise.auditing.audit import GoalAudit
from counterpoise.explorer.few_rows import HIDDEN, LEAST_ROWS, is_of_few
from counterpoise.explorer.program import RELEASED, scale_of
from counterpoise.explorer.setting import reach
from counterpoise.explorer.words import number
from counterpoise.goals import Goal, InfeasibleGoals
from counterpoise.goals.text import refuse_deferral
from counterpoise.mixtures.choosing import FIXED
from counterpoise.theory.risks import Risk


def why_not_least(found: Any, model: Any) -> str:
    """Return why what is made small is not as small as a mixture could make it; nothing where it is."""
    solved, objective = found.solved, found.aim.objective
    if solved.mixture.size > 1 or solved.thresholds is None:
        return ""
    if model.decision == FIXED:
        is_more = solved.cost > RELEASED * scale_of(objective)
        return f"One rule decides, without draws: a mixture would have {solved.cost:.2g} less." if is_more else ""
    more = solved.value - solved.lower
    if not more > RELEASED * scale_of(objective):
        return ""
    is_mean = isinstance(objective, Risk) and objective.tail_fraction == 1.0
    if is_mean and not found.aim.goals and model._prefers_usual:  # noqa: SLF001 - of our own kind
        return f"Plain training is kept, as there are no goals: it is within {more:.2g} of the best."
    return ""


def spelled(goal: Goal) -> dict[str, Any]:
    """Return the two sides of a goal as texts, and between what its bound can move."""
    low, high = reach(goal)
    words = {"left": str(goal.left), "sense": goal.sense, "right": str(goal.right)}
    return words | {"low": number(low), "high": number(high)}


def refuse_deferral_here(goal: Goal, *, can_defer: bool) -> None:
    """Refuse a goal on deferred rows where none are, with what to do on the page."""
    try:
        refuse_deferral([goal])
    except ValueError as error:
        way = "Let rows be left to a person, below the goals, then add it." if can_defer else "These models decide all."
        raise ValueError(f"The goal {goal} speaks of deferred rows, and nothing is deferred. {way}") from error


def standing(goal: Goal, tallied: Any) -> dict[str, Any]:
    """Return how a goal stands on the rows of choice."""
    try:
        check = goal.at(tallied)
        if is_of_few(goal, tallied):
            return {"note": HIDDEN, "holds": bool(check.holds)}
    except ValueError as error:
        return {"note": str(error)}
    told = {"value": number(check.value), "bound": number(check.bound), "holds": bool(check.holds)}
    return told | ({"worst": check.worst} if check.worst else {})


def verdict_of(one: GoalAudit) -> dict[str, Any]:
    """Return what held-out rows show about a goal."""
    if any(count < LEAST_ROWS for _, count in one.counts):  # of ratios: how many rows count depends on decisions
        return {"verdict": "not asked", "note": HIDDEN}
    words: dict[str, Any] = {name: number(getattr(one, name)) for name in ("estimate", "low", "high")}
    words |= {
        "verdict": one.verdict,
        "words": one.words,
        "rows": sum(count for _, count in one.counts),
        "note": one.note,
    }
    return words


def ways_out(error: InfeasibleGoals) -> dict[str, Any]:
    """Return the goals that conflict, and each set of bounds that would do."""
    ways = [
        [{"goal": str(old), "instead": str(new), "bound": new.bound} for old, new in way.items()]
        for way in error.ways_out
    ]
    return {"conflict": [str(goal) for goal in error.conflict], "ways": ways}
