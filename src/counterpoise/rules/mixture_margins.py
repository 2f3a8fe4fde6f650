"""Mixtures whose goals hold on new rows: the program is solved again with every bound moved inside.

One rule is chosen among candidates (see ``margins``). Mixtures are too many to list, and each costs a solve, so few of
them are looked at. With z_k the slack of goal k in standard errors:

    q(t)        = the best mixture with every bound tighter by t standard errors
    optimism_k  = mean over halves h of the rows, each with its own q(t), of z_k(q; h) - z_k(q; the other half)
    p(t)        = P(Z_k <= z_k(q(t)) - optimism_k for all k),  Z normal with the correlation of the goals

The mixture of the least t at which p(t) reaches the confidence is taken, found by halving. Where there is none, the
one with the largest p is, and nothing is promised. All of this is asymptotic, as margins of one rule are.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from counterpoise._base.types import FloatArray, IntArray
from counterpoise.goals import Goal, InfeasibleGoals, NoRows
from counterpoise.goals.rates import WorstRate
from counterpoise.goals.terms import rows_behind
from counterpoise.rules.choosing import FIXED, Problem, select, value_of
from counterpoise.rules.evaluator import NO_FAILURES, Evaluator, ExpectedAnswers
from counterpoise.rules.goal_rows import TRAIN
from counterpoise.rules.margins import (
    AT_THE_END,
    FOLD_SHIFT,
    NO_MARGINS,
    Margin,
    Margins,
    most_rise,
    normal_draws,
    parts_of,
    rows_needed,
    share_inside,
    unless_few_rows,
    why_no_margin,
)
from counterpoise.rules.options import Proof
from counterpoise.rules.program import NoMixture
from counterpoise.rules.proving import GoalProof, Traced, prove, without_proof

_N_SPLITS = 6  # into halves, on each of which the choice is repeated
_MOST_IN_HALF = 5000  # rows
_MOST_TARGET = 3.5  # standard errors
_STEP, _COARSE = 0.05, 0.25  # to which targets are found
_MOST_OPTIMISM, _FAR = 3.0, 8.0  # standard errors
_LESS = 0.75  # of the least rows of a group, in proportion: a part of the rows has by chance fewer of it
_SMALL = 1e-6  # change of a bound that shows in which units the limits of its goal are
_TINY = 1e-12
_N_LIKELY = 64  # slacks that the population may have
OVER_DASK = NO_MARGINS._replace(reason="a mixture over Dask keeps counts of rows, and its margins need the rows")


class GoalSlack(NamedTuple):
    """How far a mixture is inside of each limit of the goals that get a margin, and how sure that is."""

    goals: IntArray  # (n_limits,) the place of the goal that each belongs to
    slack: FloatArray
    errors: FloatArray  # standard errors
    covariance: FloatArray
    n_rows: FloatArray  # on how many rows of equal weight, or persons, each rests at least
    units: FloatArray  # of the slack, in those of the goal's bound

    @property
    def z(self) -> FloatArray:
        """Return the slack in standard errors."""
        return np.clip(self.slack / self.errors, -_FAR, _FAR)

    def closest(self, goal: int) -> int | None:
        """Return the place of the limit of a goal that is closest to its bound; None where it has no margin."""
        own = np.flatnonzero(self.goals == goal)
        return int(own[self.slack[own].argmin()]) if own.size else None


class Attempt(NamedTuple):
    """The best mixture for a target, and how sure its goals are."""

    target: float
    solution: Any
    slack: GoalSlack | None  # None where a goal has no rows
    share: float  # of new samples of rows on which all goals hold, about


_MOST_TESTED = 0.5  # part of the rows: a mixture is chosen on the others, tail and all


def needs_mixture_margins(problem: Problem) -> bool:
    """Return whether a mixture is to be chosen so that its goals hold on new rows."""
    return problem.confidence is not None and problem.decision != FIXED and bool(problem.goals)


def solve_with_margins(family: Any, problem: Problem) -> Any:
    """Return the best mixture of a family whose goals hold together on new rows with the confidence of a problem.

    Parameters
    ----------
    family : PooledModels, ThresholdRules or ClassRules
        Its ``solve`` chooses a mixture, its ``predictions`` say what that decides.
    problem : Problem
        With goals and a confidence that is a number.

    Returns
    -------
    Solution
        With ``margins``.

    Raises
    ------
    InfeasibleGoals
        If no mixture meets the goals on the rows themselves.
    """
    problem = problem._replace(fewest_draws=False)  # it is solved some twenty times
    plain, kept = family.solve(problem._replace(confidence=None)), family.selection_data
    if kept.answers.tables[TRAIN].row_numbers is not None:
        return plain._replace(margins=OVER_DASK)
    if not isinstance(problem.confidence, Proof):
        return _with_margins(family, problem, plain)
    level = problem.confidence.confidence
    proven, proof = _prove_mixture(family, problem._replace(confidence=None), level, plain)
    if proven is not None:
        return proven
    other = _with_margins(family, problem._replace(confidence=level), plain)
    margins = other.margins._replace(most_slack=_most_slack(family, problem._replace(confidence=None), plain))
    return other._replace(margins=without_proof(margins, proof, kept))


class _Tightened(NamedTuple):
    """The best mixture of a family at tighter bounds."""

    family: Any
    problem: Problem  # without a confidence
    errors: Mapping[int, float]  # standard errors of goals, in the units of their bounds

    @classmethod
    def of(cls, family: Any, problem: Problem, best: Any) -> "_Tightened":
        """Return the mixtures beside the best one, by whose standard errors bounds are tightened."""
        start = measure_slack(family, problem.goals, best)
        return cls(family, problem, {} if start is None else _own_errors(problem.goals, start))

    def solve(self, target: float) -> Any:
        """Return the best mixture with bounds tighter by so many standard errors; None where there is none.

        Of some of the rows a goal may have none.
        """
        goals = tightened(self.problem.goals, self.errors, target)
        try:
            return self.family.solve(self.problem._replace(goals=goals, explains=False))
        except (InfeasibleGoals, NoMixture, NoRows):
            return None

    def most_target(self) -> float:
        """Return the largest target that can be met, or a little less."""
        low, high = 0.0, _FAR
        while high - low > _COARSE:
            middle = (low + high) / 2
            low, high = (low, middle) if self.solve(middle) is None else (middle, high)
        return low


def _most_slack(family: Any, problem: Problem, plain: Any) -> float:
    """Return by how many standard errors all goals can be met at once."""
    mixtures = _Tightened.of(family, problem, plain)
    best = mixtures.solve(mixtures.most_target())
    slack = None if best is None else measure_slack(family, problem.goals, best)
    return 0.0 if slack is None else float(slack.z.min(initial=_FAR))


def _with_margins(family: Any, problem: Problem, plain: Any) -> Any:
    """Return the mixture with the least target that is enough, in the place of the best one without margins."""
    confidence = float(problem.confidence)  # type: ignore[arg-type]
    start = measure_slack(family, problem.goals, plain)
    if start is None or not start.goals.size:  # nothing to make sure of
        return plain._replace(margins=_describe(family, problem, Attempt(0.0, plain, start, 0.0), np.zeros(0), plain))
    mixtures = _Tightened(family, problem._replace(confidence=None), _own_errors(problem.goals, start))
    most = plain.value + most_rise(plain.value)

    def attempt(target: float, optimism: FloatArray) -> Attempt | None:
        """Return the best mixture for a target; None where there is none, or where it costs too much."""
        solution = mixtures.solve(target)
        slack = None if solution is None else measure_slack(family, problem.goals, solution)
        if slack is None or solution.value > most:
            return None
        within = unless_few_rows(slack.z - optimism, slack.n_rows)
        return Attempt(target, solution, slack, share_inside(normal_draws(slack.covariance), within))

    optimism = _optimism(mixtures, start, float(ndtri(confidence)))
    nearest = attempt(0.0, optimism) or Attempt(0.0, plain, start, 0.0)
    low, high = (0.0, _MOST_TARGET) if nearest.share < confidence else (0.0, 0.0)
    enough = nearest if nearest.share >= confidence else None
    while high - low > _STEP:
        here = attempt((low + high) / 2, optimism)
        if here is None:
            high = (low + high) / 2
        elif here.share >= confidence:
            enough, high = here, here.target
        else:
            nearest, low = max(nearest, here, key=lambda one: one.share), here.target
    best = enough or nearest
    return _finished(family, problem, best, optimism, plain)


def _prove_mixture(family: Any, problem: Problem, level: float, plain: Any) -> tuple[Any, GoalProof]:
    """Return the solution of the cheapest mixture that is proven to meet all goals, None without one, and the proof."""

    def trace(part: Any, targets: FloatArray) -> Iterator[Traced]:
        best = _Tightened(part, problem, {}).solve(0.0)
        if best is None:  # on fewer rows than all
            return
        mixtures = _Tightened.of(part, problem, best)
        for target in targets[targets <= mixtures.most_target()].tolist():
            solution = mixtures.solve(target)
            if solution is not None:
                yield Traced(solution.chosen, solution.mixture, solution)

    traced, proof = prove(family, problem, trace, level, _MOST_TESTED)
    if traced is None:
        return None, proof
    predictions = family.predictions(traced.chosen)
    value = value_of(predictions, problem, traced.mixture)
    proof = proof.unless_costly(value, plain.value)
    if not proof.is_proven:
        return None, proof
    gap = max(value - (plain.value - plain.gap), 0.0)
    selection = select(predictions, problem)._replace(risk=plain.selection.risk)
    solution = traced.solution._replace(value=value, gap=gap, selection=selection, errors=None)
    slack = measure_slack(family, problem.goals, solution)
    known = Attempt(0.0, solution, slack, 0.0)
    margins = _describe(family, problem, known, np.zeros(0 if slack is None else slack.goals.size), plain)
    margins = margins._replace(confidence=level, limiting=None, rows_needed=None, proof=proof)
    return solution._replace(margins=margins), proof


def tightened(goals: Sequence[Goal], errors: Mapping[int, float], target: float) -> tuple[Goal, ...]:
    """Return goals whose bounds are tighter by so many of their standard errors, given in the units of the bounds."""
    return tuple(
        goal.with_bound(goal.bound + (-target if goal.sense == "<=" else target) * errors[place])
        if place in errors
        else goal
        for place, goal in enumerate(goals)
    )


def measure_slack(family: Any, goals: tuple[Goal, ...], solution: Any) -> GoalSlack | None:
    """Return how far a mixture is inside of goals on the rows of a family; None where a goal has no rows there."""
    kept, answers = family.selection_data, family.predictions(solution.chosen).answers
    views = answers.views()
    try:
        first = parts_of(goals, views)
        shifts = {part.goal: _SMALL * part.scale for part in first}
        shifted = parts_of(tuple(goal.with_bound(goal.bound + shifts[at]) for at, goal in enumerate(goals)), views)
        pairs = [pair for pair in zip(first, shifted, strict=True) if pair[0].is_random]
        parts = [part for part, _ in pairs]
        names = {count.rows.name for part in parts for count in part.function.row_counts}
        chances = {name: _chances(np.clip(answers.shares(name, solution.mixture), 0.0, 1.0)) for name in names}
        functions = [*(part.function for part in parts), *(part.function for _, part in pairs)]
        evaluator = Evaluator(ExpectedAnswers(chances), functions, views)
    except NoRows:
        return None
    persons, has_fold_scores = getattr(kept, "persons", None), getattr(kept, "has_fold_scores", False)
    by_person = {} if persons is None else {name: persons for name in names if rows_behind(name) == TRAIN}
    shares, places = evaluator.shares(), np.arange(len(parts))
    values, moved = np.split(evaluator.values(shares)[:, 0], 2)
    covariance, floor = np.zeros((len(parts), len(parts))), np.zeros(len(parts))
    for name in sorted(names):
        if views.tables[name].population:
            is_chosen_on = rows_behind(name) == TRAIN
            units = by_person.get(name, np.arange(views.tables[name].n_samples))
            factor = np.hypot(1.0, FOLD_SHIFT) if is_chosen_on and has_fold_scores else 1.0
            covariance += factor**2 * evaluator.covariance(places, shares, 0, {name: units}, (name,))
            floor += evaluator.least_variances(places, shares, name)[:, 0]
    variances = np.maximum(covariance.diagonal() + 2.0 * floor, NO_FAILURES * floor)
    errors = np.sqrt(np.maximum(variances, _TINY**2))
    n_rows = [float(evaluator.least_rows(place, shares, by_person)[0]) for place in places.tolist()]
    moves = np.array([shifts[part.goal] for part in parts])
    units = moves / np.maximum(np.abs(moved - values), _TINY)
    return GoalSlack(
        np.array([part.goal for part in parts], dtype=np.int64), -values, errors, covariance, np.array(n_rows), units
    )


def _chances(shares: FloatArray) -> FloatArray:
    """Return how likely each row gets each answer, (n_answers, n_rows), given that of the positive one or of all."""
    return np.array([1.0 - shares, shares]) if shares.ndim == 1 else shares.T


def _own_errors(goals: Sequence[Goal], slack: GoalSlack) -> dict[int, float]:
    """Return the standard error of each goal that gets a margin, in the units of its bound."""
    places = {goal: slack.closest(goal) for goal in range(len(goals))}
    return {goal: float(slack.units[at] * slack.errors[at]) for goal, at in places.items() if at is not None}


def _optimism(mixtures: _Tightened, start: GoalSlack, target: float) -> FloatArray:
    """Return by how many standard errors the choice makes each limit look better on the rows it is made on."""
    family, gained, n_halves = mixtures.family, np.zeros(start.goals.size), 0
    n_rows = family.selection_data.answers.tables[TRAIN].n_samples
    for halves in _halves(family):
        share = halves[0][TRAIN].size / n_rows
        wider = {goal: error / np.sqrt(share) for goal, error in mixtures.errors.items()}
        goals, tol = _for_part(mixtures.problem.goals, share), mixtures.problem.tol
        problem = mixtures.problem._replace(goals=goals, tol=tol)
        parts = [family.only(half).prepared(problem) for half in halves]
        for own, other in (parts, parts[::-1]):
            repeated = _Tightened(own, problem, wider)
            solution = repeated.solve(target) or repeated.solve(0.0)
            if solution is None:
                continue
            here, there = (measure_slack(one, problem.goals, solution) for one in (own, other))
            if here is None or there is None or not here.goals.size == there.goals.size == start.goals.size:
                continue  # a group has no rows in one of the halves
            gained += here.z - there.z
            n_halves += 1
    if not n_halves:  # nothing is known of it
        return np.full(start.goals.size, _MOST_OPTIMISM)
    return np.clip(gained / n_halves, 0.0, _MOST_OPTIMISM)


def _for_part(goals: tuple[Goal, ...], share: float) -> tuple[Goal, ...]:
    """Return goals for a part of the rows: a group that is large enough on all of them is so there too."""
    return tuple(
        replace(goal, left=replace(goal.left, min_rows=int(_LESS * share * goal.left.min_rows)))
        if isinstance(goal.left, WorstRate)
        else goal
        for goal in goals
    )


def _halves(family: Any) -> list[tuple[dict[str, IntArray], dict[str, IntArray]]]:
    """Return rows of each dataset, in halves at random; persons stay together, and lists are not divided.

    Of many rows there are some in each half: how optimistic a choice is, in standard errors, depends little on them.
    Datasets of as many rows are divided alike: one may hold the twins of the other.
    """
    rng, splits = np.random.default_rng(0), []
    kept = family.selection_data
    for _ in range(_N_SPLITS):
        first, second = {}, {}
        alike: dict[int, IntArray] = {}  # by number of rows
        for name, table in kept.answers.tables.items():
            persons = getattr(kept, "persons", None) if name == TRAIN else None
            units = np.arange(table.n_samples) if persons is None else persons
            n_parts = max(2, round(table.n_samples / _MOST_IN_HALF))
            every = np.arange(table.n_samples)
            if every.size not in alike:
                alike[every.size] = rng.permutation(int(units.max(initial=-1)) + 1)[units] % n_parts
            part = alike[every.size]
            first[name], second[name] = (every[part == 0], every[part == 1]) if table.population else (every, every)
        splits.append((first, second))
    return splits


def _finished(family: Any, problem: Problem, best: Attempt, optimism: FloatArray, plain: Any) -> Any:
    """Return the solution with the goals as they were asked for, and the margins."""
    solution = best.solution
    selection = select(family.predictions(solution.chosen), problem)._replace(risk=solution.selection.risk)
    return solution._replace(selection=selection, margins=_describe(family, problem, best, optimism, plain))


def _describe(family: Any, problem: Problem, best: Attempt, optimism: FloatArray, plain: Any) -> Margins:
    """Return the margins of goals in their own units."""
    solution, slack, confidence = best.solution, best.slack, problem.confidence
    checks = family.predictions(solution.chosen).answers.checks(problem.goals, solution.mixture)
    cost = max(float(solution.value - plain.value), 0.0)
    errors, margins = {} if slack is None else _own_errors(problem.goals, slack), []
    for place, check in enumerate(checks):
        at = None if slack is None else slack.closest(place)
        if slack is None or at is None:
            reason = why_no_margin(check.goal) or "its rows are a list and no sample"
            margins.append(Margin(check.goal, check.bound, check.value, None, None, 0.0, reason))
            continue
        price = abs(float(solution.multipliers[place])) * best.target * errors[place]
        shift = float(slack.units[at] * optimism[at] * slack.errors[at])
        margins.append(Margin(check.goal, check.bound, check.value, errors[place], shift, min(price, cost)))
    at_the_end = next((check.goal for check in checks if why_no_margin(check.goal) == AT_THE_END), None)
    if at_the_end is not None or slack is None or not errors:
        return Margins(None, tuple(margins), cost, at_the_end, None)
    if isinstance(confidence, Proof) or confidence is None:
        return Margins(None, tuple(margins), cost, None, None)
    limiting = problem.goals[slack.goals[(slack.z - optimism).argmin()]]
    if best.share >= confidence:
        return Margins(confidence, tuple(margins), cost, limiting, None, most_slack=float(slack.z.min()))
    n_rows, draws = family.selection_data.answers.tables[TRAIN].n_samples, normal_draws(slack.covariance)
    likely = ndtri((np.arange(_N_LIKELY) + 0.5) / _N_LIKELY)
    needed = rows_needed(slack.z - optimism, likely, draws, confidence, n_rows, slack.n_rows)
    found = Margins(None, tuple(margins), cost, limiting, needed, most_slack=float(slack.z.min()))
    return found._replace(share=float(best.share))
