"""Choosing."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from counterpoise._base.types import FloatArray
from counterpoise.goals import Goal, InfeasibleGoals, Rate
from counterpoise.goals.advice import explain
from counterpoise.goals.infeasible import rate_unit, rounded_to_safety
from counterpoise.mixtures.answers import TRAIN
from counterpoise.mixtures.choosing import Aim, Evidence, check_one_rule, groups_by, value_of
from counterpoise.mixtures.class_scores.program import (
    LEVELS,
    TOL,
    ClassProgram,
    Columns,
    Found,
    Limits,
    Losses,
    NotKept,
    RowLosses,
    SumLosses,
    as_tensors,
    limits_of,
    loss_tensor,
    threshold,
)
from counterpoise.mixtures.class_scores.ratio_bins import choose_by_ratio
from counterpoise.mixtures.class_scores.rules import ClassRule, TierRule, argmax_rule
from counterpoise.mixtures.class_scores.table import ClassEvidence, Known, label_answers, label_mass, no_calibration
from counterpoise.mixtures.game import cleaned
from counterpoise.mixtures.goal_rows import GoalRows, linear_rate
from counterpoise.mixtures.no_rule import no_single_rule
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


class ClassChoice(NamedTuple):
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


class Asked(NamedTuple):
    """An objective as a risk of linear functions of the rules."""

    losses: Losses
    risk: Risk
    shift: float = 0.0


def choose_class_rules(known: Known, aim: Aim, tol: float = TOL) -> ClassChoice:
    """Return the best mixture that is found, or raise ``InfeasibleGoals`` with bounds that the same search meets."""
    try:
        return _searched(known, aim, tol)
    except InfeasibleGoals as error:
        if known.evidence.mass.size * known.n_classes**2 > _MOST_TRIED:
            raise
        raise _tried(known, aim, error) from error


def _tried(known: Known, aim: Aim, error: InfeasibleGoals) -> InfeasibleGoals:
    """Return the error with those of its bounds that a search with them in place meets, moved until it does."""
    single = {goal: _met_bound(known, aim, goal, bound) for goal, bound in error.nearest_bounds.items()}
    offered = {goal: bound for goal, bound in single.items() if bound is not None}
    joint = {} if offered else error.joint_bounds
    if joint and _met(known, aim, joint) is not None:
        joint = {}
    held = {goal: by for goal, by in error.held_by.items() if goal in offered}
    return InfeasibleGoals(error.conflict, _least_move(offered, error), offered, False, joint, held)


def _least_move(offered: Mapping[Goal, float], error: InfeasibleGoals) -> float:
    """Return by how much the goals are missed: of one that conflicts with itself only some rows may take part."""
    return min((abs(bound - goal.bound) for goal, bound in offered.items()), default=error.least_violation)


def _met_bound(known: Known, aim: Aim, goal: Goal, bound: float) -> float | None:
    """Return a bound of one goal that a search meets, at first the one given; None where none was found."""
    for _ in range(_TRIES):
        refused = _met(known, aim, {goal: bound})
        if refused is None:
            return bound
        nearer = next((to for one, to in refused.nearest_bounds.items() if one.left == goal.left), None)
        if nearer is None or nearer == bound:
            return None
        bound = nearer
    return None


def _met(known: Known, aim: Aim, bounds: Mapping[Goal, float]) -> InfeasibleGoals | None:
    """Return why goals with other bounds, as they would be printed, are not met; None where they are."""
    new = {goal: goal.with_bound(rounded_to_safety(goal, bound)) for goal, bound in bounds.items()}
    try:
        _searched(known, aim._replace(goals=tuple(new.get(goal, goal) for goal in aim.goals)), TOL)
    except InfeasibleGoals as error:
        return error
    return None


def _searched(known: Known, aim: Aim, tol: float) -> ClassChoice:
    limits = limits_of(known, aim.goals)
    if is_for_ratios(known, aim, limits):
        by_ratio = choose_by_ratio(known, aim, limits)
        if by_ratio is not None and by_ratio[1] < min(_SHARED_BY_TWO, _least_tail(known, own_answers(known), aim)):
            rule, value, lower, prices = by_ratio
            return ClassChoice([rule], np.ones(1), value, lower, prices, None, OF_RATIOS)
    asked = pose(known, aim)
    start = starting_rules(known, has_tail=isinstance(asked.losses, RowLosses))
    if aim.budget is not None:
        limits, least = within_budget(known, limits, aim.budget)
        start += least
    found = solve(ClassProgram(known, asked.losses, asked.risk, limits), start, tol)
    return _as_choice(aim, asked, found)


def _least_tail(known: Known, rules: list[TierRule], aim: Aim) -> float:
    """Return the least tail of some rules alone; infinity where there are none."""
    if not rules:
        return np.inf
    losses = np.asarray(known.as_evidence(list(rules)).losses, dtype=np.float64)
    assert isinstance(aim.objective, Risk)  # noqa: S101 - a tail is asked for
    alpha = aim.objective.tail_fraction or 1.0
    return min(float(known.evidence.mass @ _above(column, known.evidence.mass, alpha)) for column in losses.T)


def usual_rule(evidence: ClassEvidence, aim: Aim, known: Known) -> TierRule | None:
    """Return the likeliest class of the best model, uncalibrated, where nothing but errors counts; else None."""
    counts_errors = not isinstance(aim.objective, Rate) and aim.objective.tail_fraction == 1.0
    if aim.goals or not counts_errors or known.defer_cost is not None:
        return None
    plain = evidence.known(known.groups, (no_calibration(known.n_classes),) * evidence.n_models)
    rules = [argmax_rule(model, known.shape) for model in range(evidence.n_models)]
    lost = np.asarray(plain.as_evidence(list(rules)).losses, dtype=np.float64)
    return rules[int((known.evidence.mass @ lost).argmin())]


def _above(losses: FloatArray, mass: FloatArray, alpha: float) -> FloatArray:
    """Return for each row a number whose mean is the tail of a fraction alpha."""
    level = threshold(losses, mass, alpha)
    return level + np.maximum(losses - level, 0.0) / alpha


def is_for_ratios(known: Known, aim: Aim, limits: Limits) -> bool:
    """Tell whether the direct program will do: a tail of one model, and limits on errors of all rows alone."""
    alpha = aim.objective.tail_fraction if isinstance(aim.objective, Risk) else None
    is_tail = alpha is not None and alpha < 1.0 and not isinstance(aim.objective, WorstGroup)
    if not is_tail or known.evidence.n_models > 1 or known.defer_cost is not None:
        return False
    own = {name for goal in aim.goals for name in goal.datasets} <= {TRAIN}
    return own and all(_is_of_errors(tensor) for tensor in limits.tensors)


def _is_of_errors(tensor: FloatArray) -> bool:
    """Tell whether a limit asks only how often answers are wrong, whatever the class or group."""
    is_right = np.broadcast_to(np.eye(tensor.shape[-1], dtype=np.bool_), tensor.shape)
    return all(np.ptp(tensor[part]) <= _ALIKE * float(np.abs(tensor).max()) for part in (is_right, ~is_right))


def starting_rules(known: Known, *, has_tail: bool) -> list[ClassRule]:
    """Return the rules that any search starts from: the best class of each model, and for a tail shares by ratios."""
    models, right = range(known.evidence.n_models), -loss_tensor(known)
    rules: list[ClassRule] = [*own_answers(known), *(argmax_rule(model, known.shape) for model in models)]
    rules += [_deferring(known, model, level) for model in models for level in _SURE if known.defer_cost is not None]
    if has_tail:
        worth = [(level, ratio / (1.0 - ratio)) for level in LEVELS for ratio in _RATIOS]
        cost = known.defer_cost
        rules += [
            TierRule(model, level, 1.0, times * right, defer_cost=cost) for model in models for level, times in worth
        ]
    return rules


def own_answers(known: Known) -> list[TierRule]:
    """Return the rules that say what models say by themselves, where calibration may have changed that.

    A temperature keeps the order of the classes, so that their biases are taken back.
    """
    found = []
    for model, one in enumerate(known.evidence.found or ()):
        if not one.is_none:
            benefits = np.zeros(known.shape)
            classes = np.arange(known.n_classes)
            benefits[:, classes, classes] = np.expm1(one.biases.min() - one.biases)
            found.append(TierRule(model, 0.0, 1.0, benefits))
    return found


def _deferring(known: Known, model: int, level: float) -> ClassRule:
    """Return the rule that says the most likely class, and defers where its probability is below a level."""
    cost, benefits = known.defer_cost or 0.0, np.zeros(known.shape)
    benefits[:, :, -1] = level - 1.0 + cost
    return TierRule(model, 0.0, 1.0, benefits, defer_cost=cost)


def solve(program: ClassProgram, start: list[ClassRule], tol: float = TOL) -> Found:
    """Return the best mixture, or raise ``InfeasibleGoals``."""
    try:
        return program.solve(start, tol)
    except NotKept as error:
        assert error.columns.rows is not None  # noqa: PT017, S101 - something was not kept
        raise _infeasible(program.limits.as_asked(error.columns.rows)) from error


def _infeasible(rows: GoalRows) -> InfeasibleGoals:
    """Return which goals no mixture of the pool meets: what was found, and no proof."""
    said = explain(rows)
    if said is None:  # by rounding of one solver against the other
        missed = np.maximum(rows.nearest().bounds - rows.bounds, 0.0)
        return InfeasibleGoals(rows.goals, float(missed.sum()), proven=False)
    least, parts = _least_move(said.nearest_bounds, said), (said.joint_bounds, said.held_by)
    return InfeasibleGoals(said.conflict, least, said.nearest_bounds, False, *parts)


def within_budget(known: Known, limits: Limits, budget: float) -> tuple[Limits, list[ClassRule]]:
    """Return the limits with a budget above the least mean loss found under the goals, and rules that keep it."""
    start = starting_rules(known, has_tail=False)
    least = solve(ClassProgram(known, mean_loss(known), Mean(), limits), start)
    return limits.within(known, least.solution.value + budget + _ROUNDING), least.columns.rules[len(start) :]


def mean_loss(known: Known) -> SumLosses:
    """Return the mean loss of rules."""
    mass = known.evidence.mass
    return SumLosses(loss_tensor(known)[None], lambda known, said: [mass @ known.losses(said[TRAIN])])


def pose(known: Known, aim: Aim) -> Asked:
    """Return what is minimized."""
    objective = aim.objective
    if isinstance(objective, Rate):
        answers = label_answers(known)
        rate = linear_rate(answers, objective)
        own = SumLosses(
            as_tensors(known, rate.row[None]),
            lambda known, said: linear_rate(known.answers([said]), objective).row,
            rate_unit(objective),
        )
        return Asked(own, Mean(), rate.constant)
    if isinstance(objective, WorstGroup):
        losses, n_groups = _group_losses(known, objective)
        return Asked(losses, CVaR(1 / n_groups))
    if objective.tail_fraction == 1.0:
        return Asked(mean_loss(known), Mean())
    return Asked(RowLosses(known), objective.bind(_risk_rows(known)))


def _group_losses(known: Known, objective: WorstGroup) -> tuple[SumLosses, int]:
    """Return the mean loss of rules on each group that weighs anything, and how many there are."""
    given, mass = known.evidence, known.evidence.mass
    groups = groups_by(objective.names, given.answers.tables[TRAIN], given.groups)
    parts = [np.where(groups == group, mass, 0.0) for group in np.unique(groups[mass > 0]).tolist()]
    shares, masses = np.array([part / part.sum() for part in parts]), label_mass(known)
    tensors = []
    for share in shares:
        weights = np.zeros((known.n_groups, known.n_classes))
        np.add.at(weights, (known.codes[TRAIN], given.codes), share)
        density = np.divide(weights, masses, out=np.zeros_like(weights), where=masses > 0)
        tensors.append(density[:, :, None] * loss_tensor(known))
    return SumLosses(np.array(tensors), lambda known, said: shares @ known.losses(said[TRAIN])), len(parts)


def _risk_rows(known: Known) -> RiskRows:
    given = known.evidence
    table = given.answers.tables[TRAIN]
    n_samples = 1.0 / float((given.mass**2).sum())
    n_numbers = known.n_groups * known.n_classes * given.n_models
    return RiskRows(n_samples, n_numbers, lambda names: groups_by(names, table, given.groups))


def _as_choice(aim: Aim, asked: Asked, found: Found) -> ClassChoice:
    one, columns = found.solution, found.columns
    mixture = cleaned(one.mixture)
    used = np.flatnonzero(mixture).tolist()
    prices = np.zeros(0)
    if columns.rows is not None:
        prices = columns.rows.prices(one.multipliers)[: len(aim.goals)]
    is_bound = isinstance(asked.losses, RowLosses) and asked.risk.tail_fraction is None
    covers = f"mixtures of the pool of {len(columns.rules)} two-tier rules that was tried"
    rules = [columns.rules[place] for place in used]
    shift = asked.shift
    risk: Any = asked.risk if is_bound else None
    return ClassChoice(rules, mixture[used], shift + one.value, shift + one.lower, prices, risk, covers)


_PRICES = (0.0, 0.5, 1.0, 1.5, 2.0, 4.0)  # times the multipliers of the mixture
_N_STEPS = 80  # of prices that follow what is missed
_FIRST_STEP = 4.0  # price for a goal missed by one, falling with the steps
_AIM_INSIDE = 0.002  # part of a goal's unit by which its bound is tightened on the way: answers move in steps
_DIGITS = 11  # to which violations and objectives are compared, in parts of their units


class Fixed(NamedTuple):
    """The best rule that was found, and by how much it misses the limits in total."""

    rule: ClassRule
    violation: float


def search_fixed(known: Known, aim: Aim, rules: Sequence[ClassRule], multipliers: FloatArray) -> Fixed:
    """Return the rule of least violation, then least objective, that was found.

    A risk of zero-one losses that counts all rows alike grows with their mean, so that is what is minimized for every
    risk.
    """
    limits = limits_of(known, aim.goals)
    if aim.budget is not None:
        limits, _ = within_budget(known, limits, aim.budget)
    asked = pose(known, aim)
    if not isinstance(asked.losses, SumLosses) or not isinstance(asked.risk, Mean):
        asked = Asked(mean_loss(known), Mean())
    program = ClassProgram(known, asked.losses, asked.risk, limits)
    tried = _Tried(program)
    tried.look_at(list(_hard(known, rules)))
    if limits.has_any:
        for model in range(known.evidence.n_models):
            _follow(program, tried, model, _own_prices(limits, multipliers) / asked.losses.unit)
    return Fixed(tried.rule, tried.key[0])


def _hard(known: Known, rules: Sequence[ClassRule]) -> Iterator[ClassRule]:
    """Yield the likeliest class of each model, and each step of rules that draw."""
    for model in range(known.evidence.n_models):
        yield argmax_rule(model, known.shape)
    for rule in rules:
        if isinstance(rule, TierRule):
            yield from (rule._replace(layer=layer) for layer in range(rule.n_layers))


def _own_prices(limits: Limits, multipliers: FloatArray) -> FloatArray:
    """Return a price for each row of the limits, in their units, given those of the goals."""
    prices = np.zeros(len(limits.tensors))
    if limits.goals is not None:
        own = np.asarray(multipliers)[limits.places]
        prices[: own.size] = own * limits.goals.units
    return prices


class _Tried:
    """The best rule so far: of the least violation, then of the least objective."""

    def __init__(self, program: ClassProgram) -> None:
        self._program = program
        self.key: tuple[float, ...] = np.inf, np.inf
        self.rule: ClassRule = argmax_rule(0, program.known.shape)

    def look_at(self, rules: list[ClassRule]) -> Columns:
        """Try rules, and return what they come to."""
        columns = self._program.columns(rules)
        missed = np.zeros((0, len(rules))) if columns.rows is None else columns.rows.missed()
        for place, rule in enumerate(rules):
            key = tuple(round(float(one), _DIGITS) for one in (missed[:, place].sum(), columns.losses[:, place].max()))
            if key < self.key:
                self.key, self.rule = key, rule
        return columns


def _follow(program: ClassProgram, tried: _Tried, model: int, prices: FloatArray) -> None:
    """Try rules at multiples of prices, then at prices that follow what is missed."""
    own = np.ones(1)
    (tier,) = program.losses.tiers(program.risk, own, own)

    def rule(at: FloatArray) -> TierRule:
        benefits = tier.benefits - np.tensordot(at, program.limits.tensors, axes=1)
        return TierRule(model, 0.0, np.inf, benefits, defer_cost=program.known.defer_cost)

    tried.look_at([rule(factor * prices) for factor in _PRICES])
    at = prices
    for step in range(_N_STEPS):
        columns = tried.look_at([rule(at)])
        assert columns.rows is not None  # noqa: S101 - there are limits
        excess = columns.rows.rows[:, 0] - columns.rows.bounds + _AIM_INSIDE
        at = np.maximum(at + _FIRST_STEP / (1.0 + step) ** 0.5 * excess / program.limits.sizes, 0.0)


def as_fixed(known: Known, aim: Aim, best: ClassChoice) -> ClassChoice:
    """Return a rule without draws that meets the goals in the place of the best mixture."""
    check_one_rule(aim.objective)
    found = search_fixed(known, aim, best.rules, best.multipliers)
    alone = known.as_evidence([found.rule])
    if found.violation <= 0:
        return best.only(found.rule, value_of(alone, aim, np.ones(1)))

    def find(goals: tuple[Goal, ...]) -> Evidence | None:
        other = search_fixed(known, aim._replace(goals=goals, budget=None), best.rules, np.zeros(len(goals)))
        return None if other.violation > 0 else known.as_evidence([other.rule])

    mixed = f"A mixture of rules meets the goals, with a risk of {best.value:.4g}: set decision='sticky'."
    raise no_single_rule(aim.goals, find, found.violation, hints=[mixed])


class ClassPath:
    """Goals on rules of class probabilities, of which the first's bound varies; a budget is counted for each anew."""

    def __init__(self, known: Known, aim: Aim, goals: tuple[Goal, ...], tol: float) -> None:
        self.known, self.aim, self.goals, self.tol = known, aim, goals, tol
        self.asked, self.limits = pose(known, aim), limits_of(known, goals)

    def solve(self, levels: FloatArray) -> tuple[list[MixtureSolution | None], list[ClassRule]]:
        """Return the best mixture found for each bound, None where none was, over the rules that all of them need."""
        rules = starting_rules(self.known, has_tail=isinstance(self.asked.losses, RowLosses))
        found: list[tuple[MixtureSolution, list[int]] | None] = [None] * levels.size
        tightest_first = np.argsort(-levels if self.goals[0].sense == ">=" else levels, kind="stable")
        for place in tightest_first.tolist():  # whose rules serve every looser bound
            one = self._solved(float(levels[place]), rules)
            if one is None:
                continue
            used = np.flatnonzero(one.solution.mixture)
            start, rules = len(rules), [*rules, *(one.columns.rules[rule] for rule in used)]
            found[place] = one.solution._replace(mixture=one.solution.mixture[used]), list(range(start, len(rules)))
        return [None if one is None else _spread(*one, len(rules)) for one in found], rules

    def _solved(self, level: float, rules: list[ClassRule]) -> Found | None:
        if not self.limits.can_show(0, level):
            return None
        limits = limits_of(self.known, (self.goals[0].with_bound(level), *self.goals[1:]))
        try:
            if self.aim.budget is not None:
                limits, least = within_budget(self.known, limits, self.aim.budget)
                rules = [*rules, *least]
            return ClassProgram(self.known, self.asked.losses, self.asked.risk, limits).solve(rules, self.tol)
        except (InfeasibleGoals, NotKept):
            return None


def _spread(solution: MixtureSolution, places: list[int], size: int) -> MixtureSolution:
    mixture = np.zeros(size)
    mixture[places] = solution.mixture
    return solution._replace(mixture=mixture)
