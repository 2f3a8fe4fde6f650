"""The ways out of goals that cannot be met, by their cost: the best decisions with each bound that is offered.

The nearest bound of a goal may be met by giving everybody the same decision. Such a way is left out while there is
another one.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from counterpoise._base.budget import advice, is_advice_cut
from counterpoise.goals import Goal, InfeasibleGoals, NoRows
from counterpoise.goals.infeasible import NOT_OFFERED, Outcome, round_safely
from counterpoise.goals.ranges import goal_range
from counterpoise.goals.rates import error_rate, is_maximized, positive_rate
from counterpoise.rules.choosing import FIXED, Problem
from counterpoise.rules.goal_rows import TRAIN
from counterpoise.rules.margins import OF_FOLDS
from counterpoise.rules.options import Proof
from counterpoise.rules.program import NoMixture
from counterpoise.theory.risks import CVaR

CUT = "The search for bounds ended for lack of time: others may be met too."

_NEARLY_CONSTANT = 0.1  # of the rows of other classes than the decision that most rows get: as few get another one
_DIGITS = 3  # of a bound that leaves room for the confidence
_MOST_MOVE = 8.0  # standard errors up to which such a bound is looked for
_NEAR = 0.25  # part of that move by which it may be too large

Way = dict[Goal, Goal]


def with_outcomes(family: Any, problem: Problem, error: InfeasibleGoals) -> InfeasibleGoals:
    """Return the error with its ways out by their cost, and with what the best decisions there do.

    Parameters
    ----------
    family : PooledModels, ThresholdRules or ClassRules
        The family of rules; no single rule, or no mixture, of it meets the goals.
    problem : Problem
    error : InfeasibleGoals
    """
    with advice():
        error = _by_cost(family, problem, error)
    with advice():
        error = _with_room(family, problem, error)
    return error.replace(hints=[*error.hints, CUT]) if is_advice_cut() else error


def _by_cost(family: Any, problem: Problem, error: InfeasibleGoals) -> InfeasibleGoals:
    """Return the error with those ways out that are useful by their cost, with what the best decisions there do."""
    plain = _solved(family, problem._replace(objective=CVaR(1.0), keeps_default_threshold=False), None)
    single = {goal: way for way in error.ways_out for goal in way}
    if plain is None or not single:
        return error
    if not error.nearest_bounds:
        single = {}
    solved = {goal: solution for goal, way in single.items() if (solution := _solved(family, problem, way)) is not None}
    outcomes = {goal: _outcome(family, problem, solution) for goal, solution in solved.items()}
    order = sorted(outcomes, key=lambda goal: (outcomes[goal].is_constant, outcomes[goal].cost))
    useful = [goal for goal in order if not outcomes[goal].is_constant]
    joint: dict[Goal, float] = {}
    together: tuple[Outcome, ...] = ()
    if not useful and error.joint_bounds:
        (way,) = error.replace(nearest_bounds={}).ways_out
        solution = _solved(family, problem, way)
        found = None if solution is None else _outcome(family, problem, solution)
        if found is not None and not (found.is_constant and order):
            joint, together = error.joint_bounds, (found,)
    if not order and not joint:
        return error
    offered = useful or ([] if joint else order)
    hints = list(error.hints)
    left_out = [f"{single[goal][goal]} ({outcomes[goal]})" for goal in order if goal not in offered]
    if left_out:
        hints.append(f"{NOT_OFFERED}, as nearly everybody then gets the same decision: {', '.join(left_out)}.")
    if not useful and (not joint or together[0].is_constant):
        these = "these bounds" if joint else "each of these bounds"
        hints.append(f"With {these} nearly everybody gets the same decision; no other one was found.")
    hints.append(f"Without goals the least error is {_outcome(family, problem, plain).error:.1%}.")
    hints += [_how_near(family, problem, goal, solved[goal]) for goal in offered[:1]]
    nearest = {goal: _tightest(family, goal, solved[goal], error.nearest_bounds[goal]) for goal in offered}
    moves = [abs(bound - goal.bound) for goal, bound in nearest.items() if goal.confidence is None]
    return error.replace(
        least_violation=min([error.least_violation, *moves]),
        nearest_bounds=nearest,
        joint_bounds=joint,
        held_by={goal: error.held_by[goal] for goal in offered if goal in error.held_by},
        hints=[hint for hint in hints if hint],
        outcomes=[outcomes[goal] for goal in offered] or together,
    )


def _with_room(family: Any, problem: Problem, error: InfeasibleGoals) -> InfeasibleGoals:
    """Return the error with the bounds that the confidence needs, of the cheapest way out."""
    if problem.confidence is None or not error.outcomes or all(goal.confidence for goal in problem.goals):
        return error
    sure = _sure_way(family, problem, error.ways_out[0], error.conflict)
    return error.replace(sure=sure, hints=[*error.hints, _with_confidence(problem.confidence, sure)])


def _tightest(family: Any, goal: Goal, solution: Any, bound: float) -> float:
    """Return the bound that the best decisions with a nearest bound meet, where a search had found a looser one."""
    (check,) = family.predictions(solution.chosen).answers.checks((goal,), solution.mixture)
    if goal.confidence is not None or not check.violation > 0:
        return bound
    met = goal.bound + goal.sign * check.violation
    return float(min(bound, met) if goal.sense == "<=" else max(bound, met))


def _solved(
    family: Any, problem: Problem, way: Mapping[Goal, Goal] | None, confidence: float | Proof | None = None
) -> Any:
    """Return the best decisions with other bounds, or without goals; None where none are found after all."""
    goals = () if way is None else tuple(way.get(goal, goal) for goal in problem.goals)
    with suppress(InfeasibleGoals, NoMixture, NoRows):
        return family.solve(problem._replace(goals=goals, confidence=confidence, explains=False))
    return None


def _sure_way(family: Any, problem: Problem, way: Way, conflict: tuple[Goal, ...]) -> Way:
    """Return to where bounds must be moved for all goals to hold on new rows with the confidence; empty where unknown.

    First those of a way out alone, then, as another goal may be what is not sure to hold, all that conflict.
    """
    alone = _moved_until_sure(family, problem, way)
    return alone or _moved_until_sure(family, problem, {goal: way.get(goal, goal) for goal in conflict})


def _with_confidence(confidence: float | Proof, sure: Way) -> str:
    """Return that the ways out leave no room for the confidence, and what does."""
    just_met = "Bounds are just met there"
    if not sure:
        return f"{just_met}; loosen them further to reach the confidence."
    level = confidence.confidence if isinstance(confidence, Proof) else confidence
    goals = " and ".join(map(str, sure.values()))
    return (
        f"{just_met}: with {goals} all goals hold on new rows with confidence {level:g}. Bounds between these and the "
        "nearest ones may be enough too."
    )


def _moved_until_sure(family: Any, problem: Problem, way: Way) -> Way:
    """Return a way out with bounds that are just loose enough for the confidence; none where a search finds none."""
    errors = _standard_errors(family, problem, way)
    found: Way = {}
    low, high, most = 0.0, 2.0, _MOST_MOVE  # standard errors that are not enough, that are tried, and the most ever
    while errors and high <= most and (not found or high - low > _NEAR * high):
        moved = {goal: _moved(instead, high * errors[goal]) for goal, instead in way.items()}
        is_open = all(map(_can_fail, moved.values()))
        solution = None
        with advice():  # a bound that was found remains
            solution = _solved(family, problem, moved, problem.confidence) if is_open else None
        if is_advice_cut():
            break
        if _is_sure(solution, problem.confidence):
            found, most = moved, high
        else:
            low = high
        high = (low + most) / 2 if found else 2 * high
    return found


def _standard_errors(family: Any, problem: Problem, way: Way) -> dict[Goal, float]:
    """Return the standard errors of the goals that a way out replaces; none where one of them has no margin."""
    solution = _solved(family, problem, way, problem.confidence)
    if solution is None or solution.margins is None:
        return {}
    known = {margin.goal: margin.standard_error for margin in solution.margins.margins}
    known |= {goal: 0.0 for goal in way.values() if goal.confidence is not None}  # which bring their own margins
    errors = {goal: known.get(instead) for goal, instead in way.items()}
    return {} if None in errors.values() or not any(errors.values()) else errors  # type: ignore[return-value]


def _moved(goal: Goal, by: float) -> Goal:
    """Return a goal whose bound is looser by a number."""
    return goal.with_bound(round_safely(goal, goal.bound + (by if goal.sense == "<=" else -by), _DIGITS))


def _can_fail(goal: Goal) -> bool:
    """Return whether a bound is inside of what the left side can be: beyond, the goal would always hold."""
    low, high = goal_range(goal)
    return goal.bound < high if goal.sense == "<=" else goal.bound > low


def _is_sure(solution: Any, confidence: float | Proof | None) -> bool:
    """Return whether a confidence was reached; of a proof, whether it was proven and not only aimed at by margins."""
    if solution is None or solution.margins is None or solution.margins.confidence is None:
        return False
    proof = solution.margins.proof
    return not isinstance(confidence, Proof) or (proof is not None and proof.is_proven)


def _outcome(family: Any, problem: Problem, solution: Any) -> Outcome:
    answers, mixture = family.predictions(solution.chosen).answers, solution.mixture
    table, is_binary = answers.tables[TRAIN], answers.positive.is_binary
    goals = [error_rate() <= 1.0, *([positive_rate() <= 1.0] if is_binary else [])]
    error, *selected = (check.value for check in answers.checks(tuple(goals), mixture))
    shares, weights = answers.shares(TRAIN, mixture), table.weights()
    shares = np.column_stack([1.0 - shares, shares]) if shares.ndim == 1 else shares
    classes = np.bincount(answers.views().codes(TRAIN, "y"), weights)
    decided = weights @ shares / weights.sum()
    most = int(decided.argmax())
    others = 1.0 - classes[most] / classes.sum() if most < classes.size else 1.0  # all rows, where most are deferred
    cost = -solution.value if is_maximized(problem.objective) else solution.value
    is_constant = bool(1.0 - decided[most] < _NEARLY_CONSTANT * others)
    return Outcome(selected[0] if selected else None, error, float(cost), is_constant)


def _how_near(family: Any, problem: Problem, goal: Goal, solution: Any) -> str:
    """Return by how much a goal is missed, where that is as little as other folds move it; else an empty text."""
    if problem.decision != FIXED or not hasattr(family, "margins_of") or not family.selection_data.has_fold_scores:
        return ""
    (own,) = (one for one in family.margins_of(problem, solution.chosen).margins if one.goal == goal)
    missed = abs(own.value - own.bound)
    if own.standard_error is None or not 0 < missed <= OF_FOLDS * own.standard_error:
        return ""
    return (
        f"{goal} is missed by {missed:.2g}, that is {missed / own.standard_error:.2g} of its standard error on these "
        "rows: other folds alone move it as much, so that chance decides whether it is met. More rows settle it."
    )
