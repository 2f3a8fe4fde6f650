"""The choice of rules of class probabilities: a mixture, one rule without draws, or a path of mixtures."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from counterpoise._base.budget import advice, check_budget
from counterpoise._base.types import FloatArray
from counterpoise.goals import Goal, InfeasibleGoals
from counterpoise.goals.infeasible import round_safely
from counterpoise.rules.choosing import FIXED, Problem, check_one_rule, value_of
from counterpoise.rules.class_scores.family import (
    FIRST_STEP,
    ClassFamily,
    Columns,
    in_units,
    least_move,
    mean_program,
    tier_rule,
)
from counterpoise.rules.class_scores.rules import TierRule, argmax_rule, constant_rules
from counterpoise.rules.class_scores.table import CalibratedScores, no_calibration
from counterpoise.rules.goal_rows import GoalConstraints
from counterpoise.rules.infeasible import needs_of, no_single_rule
from counterpoise.rules.program import TOL, Choice, NoMixture, choose, with_budget
from counterpoise.theory.risks import Risk

_MOST_TRIED = 5_000_000  # rows times classes squared: above, a search takes too long to try what it offers
_TRIES = 3  # of a bound that is offered


def choose_class_rules(scores: CalibratedScores, problem: Problem) -> Choice:
    """Return the best mixture of the search, or raise ``InfeasibleGoals`` with bounds that the same search meets."""
    is_explained = problem.decision != FIXED or problem.budget is not None  # by what mixtures can meet
    try:
        return choose(ClassFamily(scores), problem._replace(explains=problem.explains and is_explained), problem.tol)
    except NoMixture:
        if not problem.explains:
            raise
        explained = InfeasibleGoals(problem.goals, np.nan, proven=False)
        with advice():
            hint = "No mixture of rules that meets them was found either."
            explained = no_single_rule(TriedClassRules(scores, problem), range(len(problem.goals)), hints=[hint])
        raise explained from None
    except InfeasibleGoals as error:
        if scores.mass.size * scores.shape[1] ** 2 > _MOST_TRIED:
            raise
        explained = error.replace(nearest_bounds={}, joint_bounds={})  # which a search may miss
        with advice():
            explained = _with_met_bounds(scores, problem, error)
        raise explained from None


def _with_met_bounds(scores: CalibratedScores, problem: Problem, error: InfeasibleGoals) -> InfeasibleGoals:
    """Return the error with those of its bounds that a search meets, moved until it does."""
    single = {goal: _find_met_bound(scores, problem, goal, bound) for goal, bound in error.nearest_bounds.items()}
    offered = {goal: bound for goal, bound in single.items() if bound is not None}
    joint = error.joint_bounds
    if joint and _why_not_met(scores, problem, joint) is not None:
        joint = {}
    held_by = {goal: by for goal, by in error.held_by.items() if goal in offered}
    least = least_move(offered, error)
    return error.replace(least_violation=least, nearest_bounds=offered, joint_bounds=joint, held_by=held_by)


def _find_met_bound(scores: CalibratedScores, problem: Problem, goal: Goal, bound: float) -> float | None:
    """Return a bound of one goal that a search meets, starting from ``bound``; None where there is none."""
    for _ in range(_TRIES):
        error = _why_not_met(scores, problem, {goal: bound})
        if error is None:
            return bound
        nearer = next((to for one, to in error.nearest_bounds.items() if one.left == goal.left), None)
        if nearer is None or nearer == bound:
            return None
        bound = nearer
    return None


def _why_not_met(scores: CalibratedScores, problem: Problem, bounds: Mapping[Goal, float]) -> InfeasibleGoals | None:
    """Return the error of a search with other bounds, rounded as they are printed; None where it meets them."""
    new = {goal: goal.with_bound(round_safely(goal, bound)) for goal, bound in bounds.items()}
    try:
        changed = problem._replace(goals=tuple(new.get(goal, goal) for goal in problem.goals))
        choose(ClassFamily(scores), changed, TOL)
    except InfeasibleGoals as error:
        return error
    return None


def usual_rule(scores: CalibratedScores, problem: Problem) -> TierRule | None:
    """Return the rule of the likeliest class of the best model, uncalibrated, where only errors count; else None."""
    counts_errors = isinstance(problem.objective, Risk) and problem.objective.tail_fraction == 1.0
    if problem.goals or not counts_errors or scores.defer_cost is not None:
        return None
    n_models = scores.table.n_models
    plain = scores.table.calibrated_scores(scores.groups, (no_calibration(scores.shape[1]),) * n_models)
    rules = [argmax_rule(model, scores.shape) for model in range(n_models)]
    losses = np.asarray(plain.predictions_of(list(rules)).losses, dtype=np.float64)
    return rules[int((scores.mass @ losses).argmin())]


_PRICES = (0.0, 0.5, 1.0, 1.5, 2.0, 4.0)  # times the multipliers of the mixture
_N_STEPS = 80  # of prices that follow what is missed
_PARTS = 0.5, 0.9  # of what a goal is known to need, for which less is searched
_AIM_INSIDE = 0.002  # part of a goal's unit by which its bound is tightened on the way: answers move in steps
_DIGITS = 11  # to which violations and objectives are compared, in parts of their units


def search_fixed(
    scores: CalibratedScores, problem: Problem, rules: Sequence[TierRule], multipliers: FloatArray
) -> tuple[TierRule, float]:
    """Search for the rule of least violation, then least objective, and return it with its total violation.

    Each step of a two-tier rule is a rule that gives one answer, and with level 0 there is one step: the class of the
    largest benefit. Such rules are tried at multiples of the mixture's prices, and at prices that rise where a goal is
    missed and fall where it is met with a margin. The search proves nothing: a better rule may exist. A risk of
    zero-one losses that counts all rows alike grows with their mean, so the mean is minimised for every risk.
    """
    family, models = ClassFamily(scores), range(scores.table.n_models)
    limits, _ = with_budget(family, family.limits(problem.goals), problem.budget)
    program, tier = mean_program(family, problem.objective, limits)
    best: TierRule = argmax_rule(0, scores.shape)
    least: tuple[float, ...] = np.inf, np.inf

    def try_rules(rules_to_try: list[TierRule]) -> GoalConstraints | None:
        """Try rules, and return their values of the limits."""
        nonlocal best, least
        columns = Columns.of(program, rules_to_try)
        violations = np.zeros((0, len(rules_to_try))) if columns.rows is None else columns.rows.violations()
        for place, rule in enumerate(rules_to_try):
            values = violations[:, place].sum(), columns.losses[:, place].max()
            key = tuple(round(float(one), _DIGITS) for one in values)
            if key < least:
                least, best = key, rule
        return columns.rows

    steps = [one._replace(layer=layer) for one in rules if isinstance(one, TierRule) for layer in range(one.n_layers)]
    try_rules([*(argmax_rule(model, scores.shape) for model in models), *steps])
    if not len(limits.tensors):
        return best, least[0]
    prices = limits.prices(multipliers) / program.objective.losses.unit
    for model in models:
        benefits = [tier.benefits - np.tensordot(factor * prices, limits.tensors, axes=1) for factor in _PRICES]
        try_rules([tier_rule(program, model, tier, one) for one in benefits])

        def follow(at: FloatArray, model: int = model) -> FloatArray:
            rows = try_rules(
                [tier_rule(program, model, tier, tier.benefits - np.tensordot(at, limits.tensors, axes=1))]
            )
            assert rows is not None  # noqa: S101 - there are limits
            return np.asarray((rows.rows[:, 0] - rows.bounds + _AIM_INSIDE) / limits.sizes)

        _follow_prices(follow, prices)
    return best, least[0]


def _follow_prices(excess: Callable[[FloatArray], FloatArray], prices: FloatArray) -> None:
    """Try rules at prices of limits that rise where one is missed, as ``excess`` returns, and fall where it is met."""
    for step in range(_N_STEPS):
        check_budget()
        prices = np.maximum(prices + FIRST_STEP / (1.0 + step) ** 0.5 * excess(prices), 0.0)


class TriedClassRules:
    """Rules of class probabilities that were tried, by what they need of each goal: see ``TriedRules``."""

    has_all = False

    def __init__(self, scores: CalibratedScores, problem: Problem, rules: Sequence[TierRule] = ()) -> None:
        self.goals = problem.goals
        family = ClassFamily(scores)
        limits, self._models = family.limits(problem.goals), range(scores.table.n_models)
        self._program, self._tier = mean_program(family, problem.objective, limits)
        start = [*(argmax_rule(model, scores.shape) for model in self._models), *constant_rules(scores.shape)]
        self._tried = self._rows_of([*rules, *start])

    def _rows_of(self, rules: list[TierRule]) -> GoalConstraints:
        rows = Columns.of(self._program, rules).rows
        assert rows is not None  # noqa: S101 - there are limits
        return in_units(rows, 1.0 / self._program.limits.units)

    @property
    def needs(self) -> FloatArray:
        """Return what the rules need."""
        rows = self._tried
        signs = np.array([self.goals[place].sign for place in rows.places])[:, None]
        is_sure = np.array([self.goals[place].confidence is not None for place in rows.places])[:, None]
        slopes = np.where(is_sure, 1.0, signs * (rows.bound_slopes[:, None] - rows.row_slopes))
        return needs_of(rows.places.tolist(), rows.violations(), slopes, len(self.goals))

    def look(self, kept: Sequence[int], aim: int | None) -> None:
        """Follow the prices of some goals, and of another one with bounds nearer than what is known to be enough."""
        asked = {*kept} if aim is None else {*kept, aim}
        for part in _PARTS if aim is not None else _PARTS[:1]:
            bounds: dict[int, float] = {}
            others = self.needs[list(kept)].any(axis=0)
            if aim is not None and np.isfinite(self.needs[aim, ~others]).any():
                goal, need = self.goals[aim], float(self.needs[aim, ~others].min())
                bounds = {aim: goal.bound + goal.sign * part * need}
            self._follow(bounds, asked or {*range(len(self.goals))})

    def _follow(self, bounds: Mapping[int, float], asked: set[int]) -> None:
        """Try rules at prices of the goals that are asked for, by place, some of them with other bounds."""
        limits, is_asked = self._program.limits, np.isin(self._tried.places, list(asked))
        for model in self._models:

            def excess(at: FloatArray, model: int = model) -> FloatArray:
                benefits = self._tier.benefits - np.tensordot(at, limits.tensors, axes=1)
                rows = self._rows_of([tier_rule(self._program, model, self._tier, benefits)])
                self._tried = self._tried.beside(rows)
                for place, bound in bounds.items():
                    rows = rows.with_bound(place, bound)
                missed = (rows.rows[:, 0] - rows.bounds) / limits.units + _AIM_INSIDE
                return np.where(is_asked, missed / limits.sizes, 0.0)

            _follow_prices(excess, np.zeros(len(limits.tensors)))

    def meets(self, rule: int, goals: tuple[Goal, ...]) -> bool:
        """Return whether a rule meets goals with other bounds."""
        rows = self._tried.only(np.array([rule]))
        for place, goal in enumerate(goals):
            rows = rows.with_bound(place, goal.bound)
        return not rows.violations().any()


def as_fixed(scores: CalibratedScores, problem: Problem, best: Choice) -> Choice:
    """Return a rule without draws that meets the goals in the place of the best mixture."""
    check_one_rule(problem.objective)
    rule, violation = search_fixed(scores, problem, best.rules, best.multipliers)
    if violation <= 0:
        return best.only(rule, value_of(scores.predictions_of([rule]), problem, np.ones(1)))
    if not problem.explains:
        raise NoMixture(None, [rule], proven=False)
    hint = f"A mixture of rules meets the goals, with an objective of {best.value:.4g}: set decision='sticky'."
    raise no_single_rule(TriedClassRules(scores, problem, [rule]), range(len(problem.goals)), hints=[hint])
