"""The choice of rules of class probabilities: a mixture, one rule without draws, or a path of mixtures."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self

import numpy as np

from counterpoise._base.types import FloatArray
from counterpoise.goals import Goal, InfeasibleGoals, Rate
from counterpoise.goals.advice import explain
from counterpoise.goals.infeasible import rate_unit, rounded_to_safety
from counterpoise.rules.choosing import PoolPredictions, Problem, check_one_rule, cleaned, groups_by, value_of
from counterpoise.rules.class_scores.program import (
    FIRST_STEP,
    LEVELS,
    TOL,
    ClassLimits,
    ClassProgram,
    Columns,
    NotKept,
    RowLosses,
    SumLosses,
    as_tensors,
    in_units,
    limits_of,
    loss_tensor,
    threshold,
)
from counterpoise.rules.class_scores.ratio_bins import choose_by_ratio
from counterpoise.rules.class_scores.rules import ClassRule, TierRule, argmax_rule
from counterpoise.rules.class_scores.table import CalibratedScores, no_calibration
from counterpoise.rules.goal_rows import TRAIN, GoalRows, linear_rate
from counterpoise.rules.no_rule import no_single_rule
from counterpoise.solvers.linear_program import MixtureSolution
from counterpoise.theory.risks import CVaR, Mean, Risk, RiskRows, WorstGroup

_RATIOS = (0.1, 0.3, 0.5, 0.7, 0.9)  # of a probability to the largest above which a class has a share, to begin with
_SURE = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 1.1)  # probabilities below which rows are deferred, to begin with
# A tail above this is one that more than two classes had better share: 0.95 against 0.98 on 26 classes at alpha 0.1.
_SHARED_BY_TWO = 0.85
_ROUNDING = 1e-8  # above a budget of errors, so that what is best on average is within one of zero
_ALIKE = 1e-9  # part of the largest entry by which entries of a tensor may differ: rounding
_MOST_TRIED = 5_000_000  # rows times classes squared: above, a search takes too long to try what it offers
_TRIES = 3  # of a bound that is offered
OF_RATIOS = "all rules of 16 bins of the ratio of the best two probabilities"


class ClassSolution(NamedTuple):
    """Rules and their shares, with what proves them."""

    rules: list[ClassRule]
    mixture: FloatArray
    value: float
    lower: float  # no mixture of what ``covers`` says has less
    multipliers: FloatArray  # of the goals
    risk: Risk | None  # bound to the rows, where it is no CVaR, worst group or rate
    covers: str

    def only(self, rule: ClassRule, value: float) -> Self:
        """Return one rule in the place of the best."""
        return self._replace(rules=[rule], mixture=np.ones(1), value=value, lower=min(self.lower, value))


def choose_class_rules(known: CalibratedScores, problem: Problem, tol: float = TOL) -> ClassSolution:
    """Return the best mixture that is found, or raise ``InfeasibleGoals`` with bounds that the same search meets."""
    try:
        return _searched(known, problem, tol)
    except InfeasibleGoals as error:
        if known.mass.size * known.shape[1] ** 2 > _MOST_TRIED:
            raise
        raise _tried(known, problem, error) from error


def _tried(known: CalibratedScores, problem: Problem, error: InfeasibleGoals) -> InfeasibleGoals:
    """Return the error with those of its bounds that a search with them in place meets, moved until it does."""
    single = {goal: _met_bound(known, problem, goal, bound) for goal, bound in error.nearest_bounds.items()}
    offered = {goal: bound for goal, bound in single.items() if bound is not None}
    joint = {} if offered else error.joint_bounds
    if joint and _met(known, problem, joint) is not None:
        joint = {}
    held = {goal: by for goal, by in error.held_by.items() if goal in offered}
    return InfeasibleGoals(error.conflict, _least_move(offered, error), offered, False, joint, held)


def _least_move(offered: Mapping[Goal, float], error: InfeasibleGoals) -> float:
    """Return by how much the goals are missed: of one that conflicts with itself only some rows may take part."""
    return min((abs(bound - goal.bound) for goal, bound in offered.items()), default=error.least_violation)


def _met_bound(known: CalibratedScores, problem: Problem, goal: Goal, bound: float) -> float | None:
    """Return a bound of one goal that a search meets, at first the one given; None where none was found."""
    for _ in range(_TRIES):
        refused = _met(known, problem, {goal: bound})
        if refused is None:
            return bound
        nearer = next((to for one, to in refused.nearest_bounds.items() if one.left == goal.left), None)
        if nearer is None or nearer == bound:
            return None
        bound = nearer
    return None


def _met(known: CalibratedScores, problem: Problem, bounds: Mapping[Goal, float]) -> InfeasibleGoals | None:
    """Return why goals with other bounds, as they would be printed, are not met; None where they are."""
    new = {goal: goal.with_bound(rounded_to_safety(goal, bound)) for goal, bound in bounds.items()}
    try:
        _searched(known, problem._replace(goals=tuple(new.get(goal, goal) for goal in problem.goals)), TOL)
    except InfeasibleGoals as error:
        return error
    return None


def _searched(known: CalibratedScores, problem: Problem, tol: float) -> ClassSolution:
    limits = limits_of(known, problem.goals)
    if is_for_ratios(known, problem, limits):
        by_ratio = choose_by_ratio(known, problem, limits)
        if by_ratio is not None and by_ratio[1] < min(_SHARED_BY_TWO, _least_tail(known, own_answers(known), problem)):
            rule, value, lower, prices = by_ratio
            return ClassSolution([rule], np.ones(1), value, lower, prices, None, OF_RATIOS)
    program = build_program(known, problem, limits)
    start = starting_rules(known, has_tail=isinstance(program.losses, RowLosses))
    if problem.budget is not None:
        limits, least = within_budget(known, limits, problem.budget)
        start += least
    columns, found = solve(program._replace(limits=limits), start, tol)
    mixture = cleaned(found.mixture)
    used = np.flatnonzero(mixture).tolist()
    prices = np.zeros(0) if columns.rows is None else columns.rows.prices(found.multipliers)[: len(problem.goals)]
    is_bound = isinstance(program.losses, RowLosses) and program.risk.tail_fraction is None
    covers = f"mixtures of the pool of {len(columns.rules)} two-tier rules that was tried"
    values = program.shift + found.value, program.shift + found.lower
    rules = [columns.rules[place] for place in used]
    return ClassSolution(rules, mixture[used], *values, prices, program.risk if is_bound else None, covers)


def _least_tail(known: CalibratedScores, rules: list[TierRule], problem: Problem) -> float:
    """Return the least tail of some rules alone; infinity where there are none."""
    if not rules:
        return np.inf
    losses = np.asarray(known.predictions_of(list(rules)).losses, dtype=np.float64)
    assert isinstance(problem.objective, Risk)  # noqa: S101 - a tail is asked for
    alpha, tails = problem.objective.tail_fraction or 1.0, []
    for column in losses.T:
        level = threshold(column, known.mass, alpha)
        tails.append(float(known.mass @ (level + np.maximum(column - level, 0.0) / alpha)))
    return min(tails)


def usual_rule(known: CalibratedScores, problem: Problem) -> TierRule | None:
    """Return the likeliest class of the best model, uncalibrated, where nothing but errors counts; else None."""
    counts_errors = not isinstance(problem.objective, Rate) and problem.objective.tail_fraction == 1.0
    if problem.goals or not counts_errors or known.defer_cost is not None:
        return None
    n_models = known.table.n_models
    plain = known.table.known(known.groups, (no_calibration(known.shape[1]),) * n_models)
    rules = [argmax_rule(model, known.shape) for model in range(n_models)]
    lost = np.asarray(plain.predictions_of(list(rules)).losses, dtype=np.float64)
    return rules[int((known.mass @ lost).argmin())]


def is_for_ratios(known: CalibratedScores, problem: Problem, limits: ClassLimits) -> bool:
    """Tell whether the direct program will do: a tail of one model, and limits on errors of all rows alone."""
    alpha = problem.objective.tail_fraction if isinstance(problem.objective, Risk) else None
    is_tail = alpha is not None and alpha < 1.0 and not isinstance(problem.objective, WorstGroup)
    if not is_tail or known.table.n_models > 1 or known.defer_cost is not None:
        return False
    own = {name for goal in problem.goals for name in goal.datasets} <= {TRAIN}
    is_right = np.broadcast_to(np.eye(known.shape[1], dtype=np.bool_), known.shape)
    return own and all(  # a limit asks only how often answers are wrong, whatever the class or group
        np.ptp(tensor[part]) <= _ALIKE * float(np.abs(tensor).max())
        for tensor in limits.tensors
        for part in (is_right, ~is_right)
    )


def starting_rules(known: CalibratedScores, *, has_tail: bool) -> list[ClassRule]:
    """Return the rules that any search starts from: the best class of each model, and for a tail shares by ratios."""
    models, right, cost = range(known.table.n_models), -loss_tensor(known), known.defer_cost
    rules: list[ClassRule] = [*own_answers(known), *(argmax_rule(model, known.shape) for model in models)]
    if cost is not None:  # the most likely class, deferred where its probability is below a level
        for model in models:
            for level in _SURE:
                benefits = np.zeros(known.shape)
                benefits[:, :, -1] = level - 1.0 + cost
                rules.append(TierRule(model, 0.0, 1.0, benefits, defer_cost=cost))
    if has_tail:
        worth = [(level, ratio / (1.0 - ratio)) for level in LEVELS for ratio in _RATIOS]
        rules += [
            TierRule(model, level, 1.0, times * right, defer_cost=cost) for model in models for level, times in worth
        ]
    return rules


def own_answers(known: CalibratedScores) -> list[TierRule]:
    """Return the rules that say what models say by themselves, where calibration may have changed that.

    A temperature keeps the order of the classes, so that their biases are taken back.
    """
    found = []
    for model, one in enumerate(known.table.found or ()):
        if not one.is_none:
            benefits = np.zeros(known.shape)
            classes = np.arange(known.shape[1])
            benefits[:, classes, classes] = np.expm1(one.biases.min() - one.biases)
            found.append(TierRule(model, 0.0, 1.0, benefits))
    return found


def solve(program: ClassProgram, start: list[ClassRule], tol: float = TOL) -> tuple[Columns, MixtureSolution]:
    """Return the pool and the best mixture of it, or raise ``InfeasibleGoals``: what was found, and no proof."""
    try:
        return program.solve(start, tol)
    except NotKept as error:
        assert error.columns.rows is not None  # noqa: PT017, S101 - something was not kept
        rows = in_units(error.columns.rows, 1.0 / program.limits.units)  # those of the goals themselves
        said = explain(rows)
        if said is None:  # by rounding of one solver against the other
            missed = np.maximum(rows.nearest().bounds - rows.bounds, 0.0)
            raise InfeasibleGoals(rows.goals, float(missed.sum()), proven=False) from error
        least, parts = _least_move(said.nearest_bounds, said), (said.joint_bounds, said.held_by)
        raise InfeasibleGoals(said.conflict, least, said.nearest_bounds, False, *parts) from error


def within_budget(known: CalibratedScores, limits: ClassLimits, budget: float) -> tuple[ClassLimits, list[ClassRule]]:
    """Return the limits with a budget above the least mean loss found under the goals, and rules that keep it."""
    start = starting_rules(known, has_tail=False)
    columns, least = solve(ClassProgram(known, mean_loss(known), Mean(), limits), start)
    tensors = np.concatenate([limits.tensors, loss_tensor(known)[None]])
    limits = limits._replace(budget=least.value + budget + _ROUNDING, tensors=tensors)
    return limits, columns.rules[len(start) :]


def mean_loss(known: CalibratedScores) -> SumLosses:
    """Return the mean loss of rules."""
    mass = known.mass
    return SumLosses(loss_tensor(known)[None], lambda known, said: [mass @ known.losses(said[TRAIN])])


def build_program(known: CalibratedScores, problem: Problem, limits: ClassLimits) -> ClassProgram:
    """Return the program of a problem's objective within limits."""
    objective, mass = problem.objective, known.mass
    if isinstance(objective, Rate):
        rate, unit = linear_rate(known.label_answers(), objective), rate_unit(objective)
        losses = SumLosses(
            as_tensors(known, rate.row[None]),
            lambda known, said: linear_rate(known.answers([said]), objective).row,
            unit,
        )
        return ClassProgram(known, losses, Mean(), limits, rate.constant)
    if not isinstance(objective, WorstGroup) and objective.tail_fraction == 1.0:
        return ClassProgram(known, mean_loss(known), Mean(), limits)
    table, groups = known.table.answers.tables[TRAIN], known.table.groups
    if isinstance(objective, WorstGroup):
        codes = groups_by(objective.names, table, groups)
        parts = [np.where(codes == group, mass, 0.0) for group in np.unique(codes[mass > 0]).tolist()]
        shares, masses, tensors = np.array([part / part.sum() for part in parts]), known.label_mass(), []
        for share in shares:
            weights = np.zeros(masses.shape)
            np.add.at(weights, (known.codes[TRAIN], known.labels), share)
            density = np.divide(weights, masses, out=np.zeros_like(weights), where=masses > 0)
            tensors.append(density[:, :, None] * loss_tensor(known))
        losses = SumLosses(np.array(tensors), lambda known, said: shares @ known.losses(said[TRAIN]))
        return ClassProgram(known, losses, CVaR(1 / len(parts)), limits)
    n_samples, n_numbers = 1.0 / float((mass**2).sum()), known.shape[0] * known.shape[1] * known.table.n_models
    risk = objective.bind(RiskRows(n_samples, n_numbers, lambda names: groups_by(names, table, groups)))
    return ClassProgram(known, RowLosses(known), risk, limits)


_PRICES = (0.0, 0.5, 1.0, 1.5, 2.0, 4.0)  # times the multipliers of the mixture
_N_STEPS = 80  # of prices that follow what is missed
_AIM_INSIDE = 0.002  # part of a goal's unit by which its bound is tightened on the way: answers move in steps
_DIGITS = 11  # to which violations and objectives are compared, in parts of their units


def search_fixed(
    known: CalibratedScores, problem: Problem, rules: Sequence[ClassRule], multipliers: FloatArray
) -> tuple[ClassRule, float]:
    """Return the rule of least violation, then least objective, that was found, and its total violation.

    Each step of a two-tier rule is a rule that gives one answer, and with level 0 there is one step: the class of the
    largest benefit. Such rules are tried at multiples of the mixture's prices, and at prices that rise where a goal is
    missed and fall where it is kept with room. It is a search: what it does not find may exist. A risk of zero-one
    losses that counts all rows alike grows with their mean, so that is what is minimized for every risk.
    """
    limits, models = limits_of(known, problem.goals), range(known.table.n_models)
    if problem.budget is not None:
        limits, _ = within_budget(known, limits, problem.budget)
    program = build_program(known, problem, limits)
    if not isinstance(program.losses, SumLosses) or not isinstance(program.risk, Mean):
        program = ClassProgram(known, mean_loss(known), Mean(), limits)
    best: ClassRule = argmax_rule(0, known.shape)
    least: tuple[float, ...] = np.inf, np.inf

    def look_at(tried: list[ClassRule]) -> GoalRows | None:
        """Try rules, and return what they come to of the limits."""
        nonlocal best, least
        columns = program.columns(tried)
        missed = np.zeros((0, len(tried))) if columns.rows is None else columns.rows.missed()
        for place, rule in enumerate(tried):
            key = tuple(round(float(one), _DIGITS) for one in (missed[:, place].sum(), columns.losses[:, place].max()))
            if key < least:
                least, best = key, rule
        return columns.rows

    steps = [one._replace(layer=layer) for one in rules if isinstance(one, TierRule) for layer in range(one.n_layers)]
    look_at([*(argmax_rule(model, known.shape) for model in models), *steps])
    if not len(limits.tensors):
        return best, least[0]
    prices, goals = np.zeros(len(limits.tensors)), limits.goals
    if goals is not None:  # each row of the limits has the price of its goal, in their units
        prices[: goals.units.size] = np.asarray(multipliers)[goals.template.places] * goals.units
    prices /= program.losses.unit
    (tier,) = program.losses.tiers(program.risk, np.ones(1), np.ones(1))
    for model in models:
        benefits = [tier.benefits - np.tensordot(factor * prices, limits.tensors, axes=1) for factor in _PRICES]
        look_at([program.rule(model, tier, one) for one in benefits])
        at = prices
        for step in range(_N_STEPS):
            rows = look_at([program.rule(model, tier, tier.benefits - np.tensordot(at, limits.tensors, axes=1))])
            assert rows is not None  # noqa: S101 - there are limits
            excess = rows.rows[:, 0] - rows.bounds + _AIM_INSIDE
            at = np.maximum(at + FIRST_STEP / (1.0 + step) ** 0.5 * excess / limits.sizes, 0.0)
    return best, least[0]


def as_fixed(known: CalibratedScores, problem: Problem, best: ClassSolution) -> ClassSolution:
    """Return a rule without draws that meets the goals in the place of the best mixture."""
    check_one_rule(problem.objective)
    rule, violation = search_fixed(known, problem, best.rules, best.multipliers)
    if violation <= 0:
        return best.only(rule, value_of(known.predictions_of([rule]), problem, np.ones(1)))

    def find(goals: tuple[Goal, ...]) -> PoolPredictions | None:
        other, missed = search_fixed(
            known, problem._replace(goals=goals, budget=None), best.rules, np.zeros(len(goals))
        )
        return None if missed > 0 else known.predictions_of([other])

    mixed = f"A mixture of rules meets the goals, with a risk of {best.value:.4g}: set decision='sticky'."
    raise no_single_rule(problem.goals, find, violation, hints=[mixed])


class ClassPath:
    """The best mixture of rules for each of many bounds of the first goal; a budget is counted for each anew."""

    def __init__(self, known: CalibratedScores, problem: Problem, goals: tuple[Goal, ...], tol: float) -> None:
        self.known, self.problem, self.goals, self.tol = known, problem, goals, tol
        self.program = build_program(known, problem, limits_of(known, goals))

    def solve(self, levels: FloatArray) -> tuple[list[MixtureSolution | None], list[ClassRule]]:
        """Return the best mixture found for each bound, None where none was, over the rules that all of them need."""
        rules = starting_rules(self.known, has_tail=isinstance(self.program.losses, RowLosses))
        found: dict[int, tuple[MixtureSolution, int]] = {}  # and the place of its first rule
        goals = self.program.limits.goals
        assert goals is not None  # noqa: S101 - there is one
        tightest_first = np.argsort(-levels if self.goals[0].sense == ">=" else levels, kind="stable")
        for place in tightest_first.tolist():  # whose rules serve every looser bound
            level, start = float(levels[place]), rules
            if not goals.template.can_show(0, level):
                continue
            limits = limits_of(self.known, (self.goals[0].with_bound(level), *self.goals[1:]))
            try:
                if self.problem.budget is not None:
                    limits, least = within_budget(self.known, limits, self.problem.budget)
                    start = [*rules, *least]
                columns, one = self.program._replace(limits=limits).solve(start, self.tol)
            except (InfeasibleGoals, NotKept):
                continue
            used = np.flatnonzero(one.mixture)
            found[place] = one._replace(mixture=one.mixture[used]), len(rules)
            rules = [*rules, *(columns.rules[rule] for rule in used)]
        for place, (one, first) in found.items():
            mixture = np.zeros(len(rules))
            mixture[first : first + one.mixture.size] = one.mixture
            found[place] = one._replace(mixture=mixture), first
        return [found[place][0] if place in found else None for place in range(levels.size)], rules
