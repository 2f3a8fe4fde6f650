"""Why no rule meets the goals, and what can be met: one pool of rules that a search tried answers all questions.

For each rule of the pool it is known by how much the bound of each goal must be looser for the rule to meet it: what it
*needs*. So the nearest bound of a goal, with all others kept, is the least need of it among rules that need nothing of
the others; goals conflict where each rule needs something of them; and the change that is shared is the one whose
largest need is the least. A search is asked for each goal once, for rules that meet all others and need the least of
it. Where the pool has all rules, all of this is proven.

Then ways out are put in the order of their cost, with what the best decisions do there. The nearest bound of a goal may
be met by giving everybody the same decision: such a way is left out while there is another one.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

import numpy as np

from counterpoise._base.budget import advice, is_advice_cut
from counterpoise._base.types import FloatArray
from counterpoise.goals import Goal, InfeasibleGoals, NoRows
from counterpoise.goals.advice import bisect_bound
from counterpoise.goals.infeasible import NOT_OFFERED, SINGLE_RULE, Outcome, bound_scale, round_safely
from counterpoise.goals.ranges import goal_range
from counterpoise.goals.rates import error_rate, is_maximized, positive_rate
from counterpoise.rules.choosing import FIXED, Problem
from counterpoise.rules.goal_rows import TRAIN
from counterpoise.rules.margins import OF_FOLDS
from counterpoise.rules.options import Proof
from counterpoise.rules.program import NoMixture
from counterpoise.theory.risks import CVaR

CUT = "The search for bounds ended for lack of time: others may be met too."

_OF_BUDGET = "Without the budget one rule meets them: raise budget."
_MOST_GOALS = 8  # of which each is left out in turn, to find a smaller set that conflicts
_FROM_BALANCE = 1e-4  # parts of the goals' sizes by which a shared change may be larger than the least, if fewer move
_NEARLY_CONSTANT = 0.1  # of the rows of other classes than the decision that most rows get: as few get another one
_DIGITS = 3  # of a bound that leaves room for the confidence
_MOST_MOVE = 8.0  # standard errors up to which such a bound is looked for
_NEAR = 0.25  # part of that move by which it may be too large
_ROOM = (0.0, 1e-3, 1e-2)  # parts of a bound's scale by which it is loosened, where the search does not meet it at once

Way = dict[Goal, Goal]


def needs_of(owners: Sequence[int], excess: FloatArray, slopes: FloatArray, n_goals: int) -> FloatArray:
    """Return by how much the bound of each goal must be looser for each rule, shape (n_goals, n_rules).

    A limit of a goal is missed by ``excess``, which falls by ``slopes`` with each unit that its bound is looser. No
    bound is enough where it does not fall.
    """
    moves = np.divide(excess, slopes, out=np.full(excess.shape, np.inf), where=slopes > 0)
    needs = np.zeros((n_goals, excess.shape[1]))
    np.maximum.at(needs, np.asarray(owners), np.where(excess > 0, moves, 0.0))
    return needs


class TriedRules(Protocol):
    """Rules that a search has tried, and the search for more of them."""

    @property
    def goals(self) -> tuple[Goal, ...]:
        """Return the goals, which no single rule is known to meet."""

    @property
    def needs(self) -> FloatArray:
        """Return by how much the bound of each goal must be looser for each rule: (n_goals, n_rules).

        Of a goal with a confidence, by how much the bound is missed that its rows must meet.
        """

    @property
    def has_all(self) -> bool:
        """Return whether all rules there are were tried."""

    def look(self, kept: Sequence[int], aim: int | None) -> None:
        """Try rules that meet some goals, by place, and need little of another one; if that is None, of all."""

    def meets(self, rule: int, goals: tuple[Goal, ...]) -> bool:
        """Return whether a rule meets goals: the same with other bounds."""


def sizes_of(goals: Iterable[Goal]) -> FloatArray:
    """Return what moves of bounds are parts of, shape (n_goals, 1)."""
    return np.array([bound_scale(goal, goal.bound) for goal in goals]).reshape(-1, 1)


def no_single_rule(
    tried: TriedRules, members: Sequence[int], *, proven: bool = False, hints: Sequence[str] = ()
) -> InfeasibleGoals:
    """Return the error for goals that no single rule meets, with the nearest bounds that one rule can meet.

    Parameters
    ----------
    tried : TriedRules
    members : sequence of int
        Places of goals that conflict; perhaps fewer of them do.
    proven : bool
        Whether it is proven that no single rule meets them.
    hints : sequence of str
        Other ways to meet the goals, a sentence each.
    """
    goals = tried.goals
    nearest: dict[Goal, float] = {}
    for place in members:
        with advice():
            others = [other for other in range(len(goals)) if other != place]
            tried.look(others, place)
            bound = _nearest_bound(tried, place, others)
            nearest |= {} if bound is None else {goals[place]: bound}
    conflict = list(members)
    with advice():
        for place in members:
            fewer = [other for other in conflict if other != place]
            if fewer and not _can_meet(tried, fewer):
                conflict = fewer
    offered = {goals[place]: nearest[goals[place]] for place in conflict if goals[place] in nearest}
    joint: dict[Goal, float] = {}
    with advice():
        tried.look((), None)
        joint = _joint_bounds(tried, is_balanced=bool(offered))
    totals = tried.needs.sum(axis=0)
    is_met = not totals.all()  # by a rule that was tried: it is a budget that none keeps beside the goals
    if is_met:
        offered, joint, hints = {}, {}, [*hints, _OF_BUDGET]
    return InfeasibleGoals(
        [goals[place] for place in conflict],
        float(totals.min()) if np.isfinite(totals).any() and not is_met else np.nan,
        offered,
        joint_bounds=joint,
        proven=proven or (tried.has_all and not is_met),
        nearest_proven=tried.has_all,
        kind=f"{SINGLE_RULE} within the budget" if is_met else SINGLE_RULE,
        hints=hints,
    )


def _can_meet(tried: TriedRules, kept: list[int]) -> bool:
    """Return whether one of the rules meets some goals, or one that is searched for."""
    for _ in range(2):
        if not tried.needs[kept].any(axis=0).all():
            return True
        if tried.has_all or len(tried.goals) > _MOST_GOALS:
            return False
        tried.look(kept, None)
    return not tried.needs[kept].any(axis=0).all()


def _nearest_bound(tried: TriedRules, place: int, others: list[int]) -> float | None:
    """Return the nearest bound of a goal with which a rule meets all goals; None where its bound alone cannot do it."""
    goal, needs = tried.goals[place], tried.needs
    need = np.where(needs[others].any(axis=0), np.inf, needs[place])
    rule = int(need.argmin())
    if not np.isfinite(need[rule]):
        return None
    if goal.confidence is None:
        return float(goal.bound + goal.sign * need[rule])
    ends = goal_range(goal)  # what the rows must meet is another function of the bound: it is searched

    def is_met(bound: float) -> bool:
        moved = goal.with_bound(float(np.clip(bound, *ends)))
        return tried.meets(rule, tuple(moved if one is goal else one for one in tried.goals))

    bound = bisect_bound(goal, is_met)
    return None if bound is None else float(np.clip(bound, *ends))


def _joint_bounds(tried: TriedRules, *, is_balanced: bool) -> dict[Goal, float]:
    """Return bounds of several goals that one rule meets together; none where one goal is enough.

    The change is the one of the least sum, or, where single bounds are enough, the one that goals share most evenly.
    Goals with a confidence are kept.
    """
    goals, needs = tried.goals, tried.needs
    sure = [place for place, goal in enumerate(goals) if goal.confidence is not None]
    parts = np.where(needs[sure].any(axis=0), np.inf, needs / sizes_of(goals))
    order = parts.max(axis=0) + _FROM_BALANCE * parts.sum(axis=0) if is_balanced else parts.sum(axis=0)
    rule = int(order.argmin())
    moved = np.flatnonzero(needs[:, rule]).tolist()
    if not np.isfinite(order[rule]) or (is_balanced and len(moved) < 2):  # noqa: PLR2004 - it is then a nearest bound
        return {}
    return {goals[place]: float(goals[place].bound + goals[place].sign * needs[place, rule]) for place in moved}


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


class _Tried(NamedTuple):
    """A way out that the best decisions were chosen with."""

    bounds: Mapping[Goal, float]
    way: Way  # with these bounds as they are printed
    solution: Any
    outcome: Outcome


def _by_cost(family: Any, problem: Problem, error: InfeasibleGoals) -> InfeasibleGoals:
    """Return the error with those ways out that are useful by their cost, with what the best decisions do there."""
    plain = _solved(family, problem._replace(objective=CVaR(1.0), keeps_default_threshold=False), None)
    if plain is None or not error.ways_out:
        return error
    single: dict[Goal, _Tried] = {}
    for goal, bound in error.nearest_bounds.items():
        tried = _first_met(family, problem, {goal: bound})
        single |= {} if tried is None else {goal: tried}
    joint = _first_met(family, problem, error.joint_bounds) if error.joint_bounds else None
    order = sorted(single, key=lambda goal: (single[goal].outcome.is_constant, single[goal].outcome.cost))
    useful = [goal for goal in order if not single[goal].outcome.is_constant]
    if joint is not None and joint.outcome.is_constant and order:
        joint = None
    if not order and joint is None:
        return error
    offered = useful or ([] if joint else order)
    hints = list(error.hints)
    left_out = [f"{single[goal].way[goal]} ({single[goal].outcome})" for goal in order if goal not in offered]
    if left_out:
        hints.append(f"{NOT_OFFERED}, as nearly everybody then gets the same decision: {', '.join(left_out)}.")
    if not useful and (joint is None or joint.outcome.is_constant):
        these = "these bounds" if joint else "each of these bounds"
        hints.append(f"With {these} nearly everybody gets the same decision; no other one was found.")
    hints.append(f"Without goals the least error is {_outcome(family, problem, plain).error:.1%}.")
    hints += [_how_near(family, problem, goal, single[goal].solution) for goal in offered[:1]]
    nearest = {goal: _tightest(family, goal, single[goal]) for goal in offered}
    moves = [abs(bound - goal.bound) for goal, bound in nearest.items() if goal.confidence is None]
    return error.replace(
        least_violation=min([error.least_violation, *moves]),
        nearest_bounds=nearest,
        joint_bounds={} if joint is None else joint.bounds,
        held_by={goal: error.held_by[goal] for goal in offered if goal in error.held_by},
        hints=[hint for hint in hints if hint],
        outcomes=[*(single[goal].outcome for goal in offered), *([] if joint is None else [joint.outcome])],
    )


def _first_met(family: Any, problem: Problem, bounds: Mapping[Goal, float]) -> _Tried | None:
    """Return the best decisions with other bounds, as printed or a little looser; None where none are found."""
    for room in _ROOM:
        looser = {goal: bound + goal.sign * room * bound_scale(goal, bound) for goal, bound in bounds.items()}
        (way,) = InfeasibleGoals(bounds, np.nan, joint_bounds=looser).ways_out
        solution = _solved(family, problem, way)
        if solution is not None:
            return _Tried(looser, way, solution, _outcome(family, problem, solution))
    return None


def _with_room(family: Any, problem: Problem, error: InfeasibleGoals) -> InfeasibleGoals:
    """Return the error with the bounds that the confidence needs, of the cheapest way out."""
    if problem.confidence is None or not error.outcomes or all(goal.confidence for goal in problem.goals):
        return error
    sure = _sure_way(family, problem, error.ways_out[0], error.conflict)
    return error.replace(sure=sure, hints=[*error.hints, _with_confidence(problem.confidence, sure)])


def _tightest(family: Any, goal: Goal, tried: _Tried) -> float:
    """Return the bound that the best decisions with a nearest bound meet, where a search had found a looser one."""
    bound = tried.bounds[goal]
    (check,) = family.predictions(tried.solution.chosen).answers.checks((goal,), tried.solution.mixture)
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
