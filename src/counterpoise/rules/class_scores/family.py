"""Rules of class probabilities as a family: the best mixture of a pool that grows by rules at prices of the goals.

The program's dual, weights of the rows and multipliers of the limits, gives each answer a benefit, and two-tier rules
are the best rules at those benefits if the probabilities are right. They are not quite right, so a rule joins the pool
only if its cost on the *labelled* rows, at the same dual, is below that of the pool. Values and limits are therefore
exact on the selection rows, and the certificate is about the mixtures of the pool alone.

The first rules follow prices: the price of a limit rises where the last rule missed it and falls where it was met. As
long as the pool cannot meet the limits, artificial columns do, one for each limit, at a cost that bounds its
multiplier. So every missed limit has a price, and rules change a little at a time. (The rays that prove
infeasibility were tried first, and led nowhere where there were many goals.)

Limits are goals and a budget of the mean loss: as rows for the answers of given rules, and as tensors for all answers.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from counterpoise._base.budget import check_budget
from counterpoise._base.types import FloatArray, IntArray
from counterpoise.goals import Goal, InfeasibleGoals, Rate, Ratio
from counterpoise.goals.advice import explain
from counterpoise.goals.binding import BoundRates, bind_rates
from counterpoise.goals.infeasible import bound_step, goal_unit, rate_unit
from counterpoise.rules.choosing import groups_by
from counterpoise.rules.class_scores.rules import PricedRows, TierRule, argmax_rule, constant_rules, refine
from counterpoise.rules.class_scores.table import CalibratedScores
from counterpoise.rules.goal_rows import TRAIN, GoalConstraints, TalliedGoals, linear_rate, mean_limit
from counterpoise.rules.program import (
    TOL,
    Choice,
    NoMixture,
    Objective,
    Optimum,
    Program,
    build_program,
    drop_slivers,
    generate_columns,
    mean_objective,
    solve_master,
)
from counterpoise.solvers import minimize_cvar
from counterpoise.solvers.linear_program import FEASIBLE, InfeasibleRows, MixtureSolution, power_of_two
from counterpoise.theory.risks import Mean, Risk, RiskRows


class BoundRows(NamedTuple):
    """Goals bound to the answers of all rows: for many rules each goal is one matrix product."""

    template: GoalConstraints  # on other rules
    rates: BoundRates
    shifted: BoundRates | None  # with larger bounds, of the goals on ratios: their rows are affine in them
    steps: FloatArray  # by which those bounds are larger
    constants: FloatArray  # of the goals, which are part of the bounds
    units: FloatArray  # what rows and bounds are in parts of, so that amounts of any size are searched alike

    @classmethod
    def of(cls, tallied: TalliedGoals, template: GoalConstraints) -> Self:
        """Bind goals."""
        linear = [goal.linear for goal in tallied.targets]
        ratio_goals = [goal for goal in tallied.targets if isinstance(goal.left, Ratio)]
        steps = np.array([bound_step(goal) for goal in ratio_goals])
        ratios = [goal.with_bound(goal.bound + step).linear for goal, step in zip(ratio_goals, steps, strict=True)]
        shifted = bind_rates(ratios, tallied.views) if ratios else None
        constants = np.array([rate.constant for rate in linear])
        goals = [template.goals[place] for place in template.places.tolist()]
        sizes = zip(goals, linear, strict=True)
        units = np.array([power_of_two(rate.size) if goal.has_amounts else goal_unit(goal) for goal, rate in sizes])
        rates = bind_rates(linear, tallied.views, tallied.limits.names)
        return cls(in_units(template, units), rates, shifted, steps, constants, units)

    def rows(self, answers: list[dict[str, FloatArray]]) -> GoalConstraints:
        """Return the goals as rows on rules, given their answers, in parts of the units."""
        stacked = {name: np.column_stack([one[name].ravel() for one in answers]) for name in self.rates.weights}
        rows = self.rates.weighted(stacked) + (self.rates.constants - self.constants)[:, None]
        slopes = np.zeros_like(rows)
        if self.shifted is not None:
            ratios = np.flatnonzero(self.template.row_slopes.any(axis=1))
            slopes[ratios] = (self.shifted.values(stacked) - self.rates.values(stacked)[ratios]) / self.steps[:, None]
        units = self.units[:, None]
        return self.template._replace(rows=rows / units, row_slopes=slopes / units)


def in_units(goals: GoalConstraints, units: FloatArray) -> GoalConstraints:
    """Return goals with rows, bounds and slopes in parts of units, one for each row."""
    return goals._replace(
        rows=goals.rows / units[:, None],
        bounds=goals.bounds / units,
        row_slopes=goals.row_slopes / units[:, None],
        bound_slopes=goals.bound_slopes / units,
        sizes=None if goals.sizes is None else goals.sizes / units,
    )


class ClassLimits(NamedTuple):
    """Goals and perhaps a budget of the mean loss: as rows for the answers of rules, and as tensors for all answers.

    Both are in parts of ``units``.
    """

    goals: BoundRows | None
    budget: float | None
    tensors: FloatArray  # (n_rows, n_groups, n_labels, n_answers): what each answer adds, for a unit of mass

    @property
    def units(self) -> FloatArray:
        """Return the unit of each row: divide multipliers by it, and multiply prices by it."""
        goals = np.empty(0) if self.goals is None else self.goals.units
        return goals if self.budget is None else np.append(goals, 1.0)

    @property
    def sizes(self) -> FloatArray:
        """Return the most that a unit of mass adds to each limit, at least 1: prices count in parts of it."""
        return np.asarray(np.maximum(np.abs(self.tensors).max(axis=(1, 2, 3), initial=0.0), 1.0))

    def prices(self, multipliers: FloatArray) -> FloatArray:
        """Return the price of each row of the limits, given the multipliers of the goals: a budget has none."""
        prices = np.zeros(len(self.tensors))
        if self.goals is not None:  # each row has the price of its goal, in their units
            prices[: self.goals.units.size] = np.asarray(multipliers)[self.goals.template.places] * self.goals.units
        return prices

    def rows(self, answers: list[dict[str, FloatArray]], means: FloatArray) -> GoalConstraints | None:
        """Return the limits as rows on rules, given their answers and mean losses: the goals and then the budget."""
        rows = None if self.goals is None else self.goals.rows(answers)
        if self.budget is None:
            return rows
        budget = mean_limit(means, self.budget)
        return budget if rows is None else rows.join(budget)


def as_tensors(scores: CalibratedScores, rows: FloatArray) -> FloatArray:
    """Return linear functions of the answers by group, label and answer, for a unit of the labelled rows' mass."""
    added = (rows[:, :-1] - rows[:, -1:]).reshape(-1, *scores.shape)
    mass = scores.label_mass()[None, :, :, None]
    return np.divide(added, mass, out=np.zeros_like(added), where=mass > 0)


def loss_tensor(scores: CalibratedScores) -> FloatArray:
    """Return the loss of each answer, less one, by group and label."""
    losses = -np.eye(*scores.shape[1:])
    if scores.defer_cost is not None:
        losses[:, -1] = scores.defer_cost - 1.0
    return np.repeat(losses[None], scores.shape[0], axis=0)


LEVELS = (0.5, 2 / 3, 0.75)  # thresholds of tails to try: two, three, four classes share a row
_MAX_ROUNDS = 60
_ENOUGH = 5e-4  # what a rule must gain, in parts of the losses' unit, to join the pool
_PATIENCE = 6  # rounds without a gain of that size
_COARSE = 5e-4  # gap of the pool's own problem on the way
_PENALTIES = (3.0, 30.0, 300.0, 3000.0)  # of artificial rules, in units of what a limit's tensor adds at most
_MOST_LEVEL = 0.96  # of a tail: more classes than share a row then hardly matter
_HALF, _LEAST = 0.5, 1e-6  # the tail that a risk without one is taken at, and the least that a row above it counts
_MOST_JOINED = 4  # rules that join in a round
_N_STEPS, _FOLLOWED = 40, (0.0, 0.5)  # rules that follow prices, at each of these thresholds
_SURE = 1.0  # standard errors that moving a rule by labels must save, where the limits are met already
_MAX_NEARER = 30  # rounds of the search for bounds to offer where limits are out of reach
_RATIOS = (0.1, 0.3, 0.5, 0.7, 0.9)  # of a probability to the largest above which a class has a share, to begin with
_SURE_LEVELS = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 1.1)  # probabilities below which rows are deferred, to begin with
_ROUNDING = 1e-8  # above a budget of errors, so that what is best on average is within one of zero
FIRST_STEP = 4.0  # of a price, for a limit missed by one; steps fall with the root of their number


class Tier(NamedTuple):
    """The part of the objective in a rule: the threshold of its tail, the tail's fraction, and benefits."""

    level: float
    alpha: float
    benefits: FloatArray | float


class Losses(Protocol):
    """The losses that a risk is taken of: one column for each rule, in parts of ``unit``."""

    sample_weight: FloatArray | None
    unit: float

    def column(self, scores: CalibratedScores, answers: dict[str, FloatArray]) -> FloatArray:
        """Return the losses of a rule, given its answers."""

    def tiers(self, risk: Risk, weights: FloatArray, mixed: FloatArray) -> Iterator[Tier]:
        """Yield the tiers to try, given the weights of the dual and the losses of the mixture."""

    def costs(self, scores: CalibratedScores, weights: FloatArray) -> FloatArray:
        """Return what each answer about each labelled row costs at the weights of the dual."""


class RowLosses:
    """Losses of the labelled rows."""

    unit = 1.0  # errors count 1

    def __init__(self, scores: CalibratedScores) -> None:
        self.sample_weight: FloatArray | None = scores.mass
        self._mass, self._loss = scores.mass, loss_tensor(scores)

    def column(self, scores: CalibratedScores, answers: dict[str, FloatArray]) -> FloatArray:
        """Return the loss of each labelled row."""
        return scores.losses(answers[TRAIN])

    def costs(self, scores: CalibratedScores, weights: FloatArray) -> FloatArray:
        """Return what each answer about each labelled row costs."""
        return np.asarray(weights[:, None] * self._loss[scores.codes[TRAIN], scores.labels])

    def tiers(self, risk: Risk, weights: FloatArray, mixed: FloatArray) -> Iterator[Tier]:
        """Yield tiers at several thresholds of the tail.

        Of a CVaR a row above the threshold counts with ``1 / alpha``, below with nothing. Of other risks it is the mean
        weight of the rows above, and of those below, which an answer is worth in the second tier too.
        """
        fraction = risk.tail_fraction
        present = float(np.clip(threshold(mixed, self._mass, fraction or _HALF), 0.0, _MOST_LEVEL))
        for level in (present, 0.0, *LEVELS):
            if fraction is not None:
                yield Tier(level, fraction, 0.0)
                continue
            densities = []  # of the rows above, and of those below
            for rows in (mixed > level, mixed <= level):
                total = float(self._mass[rows].sum())
                densities.append(float(weights[rows].sum()) / total if total > 0 else 0.0)
            high, low = densities
            yield Tier(level, 1.0 / max(high - low, _LEAST), -low * self._loss)


def threshold(losses: FloatArray, mass: FloatArray, fraction: float) -> float:
    """Return the loss above which the tail of a fraction lies."""
    order = np.argsort(losses)[::-1]
    place = int(np.searchsorted(np.cumsum(mass[order]), fraction))
    return float(losses[order[min(place, order.size - 1)]])


class SumLosses:
    """A few linear functions of the answers: the mean loss, that of groups, or a rate."""

    def __init__(self, tensors: FloatArray, of: Any, unit: float = 1.0) -> None:
        self.sample_weight: FloatArray | None = None
        self._tensors, self._of, self.unit = tensors / unit, of, unit

    def column(self, scores: CalibratedScores, answers: dict[str, FloatArray]) -> FloatArray:
        """Return the functions of a rule."""
        return np.asarray(self._of(scores, answers)) / self.unit

    def costs(self, scores: CalibratedScores, weights: FloatArray) -> FloatArray:
        """Return what each answer about each labelled row costs."""
        added = np.tensordot(weights, self._tensors, axes=1)
        return np.asarray(scores.mass[:, None] * added[scores.codes[TRAIN], scores.labels])

    def tiers(self, risk: Risk, weights: FloatArray, mixed: FloatArray) -> Iterator[Tier]:  # noqa: ARG002 - no tail
        """Yield the one rule that is best at these weights."""
        yield Tier(0.0, np.inf, -np.tensordot(weights, self._tensors, axes=1))


class Columns(NamedTuple):
    """Rules of a pool, with their losses and their values of the limits."""

    rules: list[TierRule]
    losses: FloatArray  # (n_losses, n_rules)
    rows: GoalConstraints | None

    @classmethod
    def of(cls, program: Program, rules: list[TierRule]) -> Self:
        """Return rules with their losses and their values of the limits."""
        scores = program.family.scores
        answers = [scores.answer_shares(rule) for rule in rules]
        losses = np.column_stack([program.objective.losses.column(scores, one) for one in answers])
        means = np.array([scores.mass @ scores.losses(one[TRAIN]) for one in answers])
        return cls(rules, losses, program.limits.rows(answers, means))

    def can_hold(self) -> bool:
        """Return whether some mixture meets the limits."""
        return self.rows is None or self.rows.constraints({}).can_hold()

    def keys(self) -> set[bytes]:
        """Return the keys of all rules."""
        return {self.key(place) for place in range(len(self.rules))}

    def join(self, other: Self) -> Self:
        """Return these rules and then others."""
        rows = self.rows
        if rows is not None and other.rows is not None:
            rows = rows.beside(other.rows)
        return type(self)([*self.rules, *other.rules], np.hstack([self.losses, other.losses]), rows)

    def only(self, places: Any) -> Self:
        """Return some of the rules."""
        rows = None if self.rows is None else self.rows.only(places)
        return type(self)([self.rules[place] for place in places], self.losses[:, places], rows)

    def key(self, place: int) -> bytes:
        """Return a key of a rule: rules with the same losses and values share it."""
        return self.losses[:, place].tobytes() + (b"" if self.rows is None else self.rows.rows[:, place].tobytes())


class ClassFamily:
    """Rules of the probabilities of more than two classes: two-tier rules at prices of the goals.

    Starting rules are a list. The certificate is about the mixtures of the pool alone.
    """

    def __init__(self, scores: CalibratedScores) -> None:
        self.scores, self.mass = scores, scores.mass

    @cached_property
    def _plain_rules(self) -> list[TierRule]:
        """Return the best class of each model, deferred below some levels where rows may be."""
        scores, models, cost = self.scores, range(self.scores.table.n_models), self.scores.defer_cost
        rules: list[TierRule] = [*uncalibrated_rules(scores), *(argmax_rule(model, scores.shape) for model in models)]
        if cost is None:
            return rules
        for model, level in product(models, _SURE_LEVELS):
            benefits = np.zeros(scores.shape)
            benefits[:, :, -1] = level - 1.0 + cost
            rules.append(TierRule(model, 0.0, 1.0, benefits, defer_cost=cost))
        return rules

    def start(self, objective: Objective) -> list[TierRule]:
        """Return the rules that any search starts from, and for a tail shares by ratios of probabilities."""
        if not isinstance(objective.losses, RowLosses):
            return [*self._plain_rules]
        worth = [(level, ratio / (1.0 - ratio)) for level in LEVELS for ratio in _RATIOS]
        right, cost = -loss_tensor(self.scores), self.scores.defer_cost
        shared = [
            TierRule(model, level, 1.0, times * right, defer_cost=cost)
            for model in range(self.scores.table.n_models)
            for level, times in worth
        ]
        return [*self._plain_rules, *shared]

    def join(self, rules: list[TierRule], more: list[TierRule]) -> list[TierRule]:
        """Return rules and then those of others that are not among them."""
        ids = {id(rule) for rule in rules}
        return [*rules, *(rule for rule in more if id(rule) not in ids)]

    def optimum(self, program: Program, tol: float, rules: list[TierRule]) -> Optimum:
        """Return the best mixture of a pool that grows from some rules, or raise ``NoMixture``."""
        pool, limits = Columns.of(program, rules), program.limits
        for model in range(self.scores.table.n_models if limits.goals is not None else 0):
            pool = _follow_prices(program, pool, model)
        pool = _grow(program, pool)
        if not pool.can_hold():
            pool = generate_columns(NearestSearch(program, pool), pool, 0.0)[0]
            if not pool.can_hold():
                raise NoMixture(None, pool)
            pool = _grow(program, pool)
        constraints, losses = {} if pool.rows is None else pool.rows.as_limits(), program.objective.losses
        solution = solve_master(pool.losses, program.objective.risk, losses.sample_weight, constraints, tol)
        value, lower = losses.unit * solution.value, losses.unit * solution.lower
        prices = solution.multipliers * losses.unit / limits.units
        return Optimum(pool.rules, solution._replace(value=value, lower=lower, multipliers=prices))

    def explain(self, program: Program, error: NoMixture) -> InfeasibleGoals:
        """Return which goals conflict for the mixtures of the pool that came nearest: no proof."""
        pool = error.rules.join(Columns.of(program, constant_rules(self.scores.shape)))  # which meet some goals alone
        rows = in_units(pool.rows, 1.0 / program.limits.units)  # those of the goals themselves
        conflict = explain(rows)
        if conflict is None:  # by rounding of one solver against the other
            missed = np.maximum(rows.nearest().bounds - rows.bounds, 0.0)
            return InfeasibleGoals(rows.goals, float(missed.sum()), proven=False)
        least = least_move(conflict.nearest_bounds, conflict)
        return conflict.replace(least_violation=least, proven=False, nearest_proven=False)

    def choice(self, program: Program, optimum: Optimum) -> Choice:
        """Return the rules in use and their shares."""
        (losses, risk, shift), limits, solution = program.objective, program.limits, optimum.solution
        mixture = drop_slivers(solution.mixture)
        used = np.flatnonzero(mixture).tolist()
        prices = np.zeros(0)
        if limits.goals is not None:
            template = limits.goals.template
            prices = template.prices(solution.multipliers[: len(template.bounds)])
        covers = f"mixtures of the pool of {len(optimum.rules)} two-tier rules that was tried"
        return Choice(
            mixture[used],
            shift + solution.value,
            shift + solution.lower,
            prices,
            [optimum.rules[place] for place in used],
            risk=risk if isinstance(losses, RowLosses) and risk.tail_fraction is None else None,
            covers=covers,
        )

    def limits(self, goals: tuple[Goal, ...]) -> ClassLimits:
        """Return goals for any rules."""
        scores = self.scores
        if not goals:
            return ClassLimits(None, None, np.zeros((0, *scores.shape)))
        answers = scores.label_answers()
        views = answers.views()
        tallied = TalliedGoals.of(goals, views)
        rows = tallied.rows(answers.counter(views))
        bound = BoundRows.of(tallied, rows)
        return ClassLimits(bound, None, as_tensors(scores, rows.rows / bound.units[:, None]))

    def goals_of(self, limits: ClassLimits) -> GoalConstraints:
        """Return the goals of limits; there are some."""
        assert limits.goals is not None  # noqa: S101 - callers have some
        return limits.goals.template

    def at_bound(self, limits: ClassLimits, goals: tuple[Goal, ...], bound: float) -> ClassLimits:  # noqa: ARG002 - made anew
        """Return limits with another bound of the first goal."""
        return self.limits((goals[0].with_bound(bound), *goals[1:]))

    def excess(self, limits: ClassLimits, place: int) -> Program:  # noqa: ARG002 - as the others
        """Raise an error: not all rules are known, so the tightest bound is not known either."""
        raise ValueError("Of more than two classes, the bounds that can be met are not known. Pass bounds.")

    def carry_over(self, rules: list[TierRule] | None, optimum: Optimum) -> tuple[list[TierRule], FloatArray]:
        """Return rules and then those that an optimum uses, and its mixture of them."""
        first, used = rules or [], np.flatnonzero(optimum.solution.mixture)
        shares = np.append(np.zeros(len(first)), optimum.solution.mixture[used])
        return [*first, *(optimum.rules[rule] for rule in used)], shares

    def add_budget(self, limits: ClassLimits, most: float) -> ClassLimits:
        """Return limits with a budget of mean loss."""
        tensors = np.concatenate([limits.tensors, loss_tensor(self.scores)[None]])
        return limits._replace(budget=most + _ROUNDING, tensors=tensors)

    def rate_objective(self, objective: Rate) -> Objective:
        """Return a rate as objective."""
        answers = self.scores.label_answers()
        rate = linear_rate(answers, objective)
        losses = SumLosses(
            as_tensors(self.scores, rate.row[None]),
            lambda scores, answers: linear_rate(scores.answers([answers]), objective).row,
            rate_unit(objective.resolve(answers.views()) if objective.has_amounts else objective),
        )
        return Objective(losses, Mean(), rate.constant)

    def mean_losses(self, groups: IntArray | None = None) -> SumLosses:
        """Return the mean loss of rules, or that on every group of labelled rows that weighs anything."""
        scores, mass = self.scores, self.mass
        if groups is None:
            return SumLosses(loss_tensor(scores)[None], lambda scores, answers: [mass @ scores.losses(answers[TRAIN])])
        parts = [np.where(groups == group, mass, 0.0) for group in np.unique(groups[mass > 0]).tolist()]
        shares, masses, tensors = np.array([part / part.sum() for part in parts]), scores.label_mass(), []
        for share in shares:
            weights = np.zeros(masses.shape)
            np.add.at(weights, (scores.codes[TRAIN], scores.labels), share)
            density = np.divide(weights, masses, out=np.zeros_like(weights), where=masses > 0)
            tensors.append(density[:, :, None] * loss_tensor(scores))
        return SumLosses(np.array(tensors), lambda scores, answers: shares @ scores.losses(answers[TRAIN]))

    def row_losses(self, risk: Risk) -> RowLosses:  # noqa: ARG002 - the same for all
        """Return the losses of the labelled rows."""
        return RowLosses(self.scores)

    def bind(self, risk: Risk) -> Risk:
        """Return a risk that knows the labelled rows."""
        n_numbers = self.scores.shape[0] * self.scores.shape[1] * self.scores.table.n_models
        return risk.bind(RiskRows(1.0 / float((self.mass**2).sum()), n_numbers, self.group_codes))

    def group_codes(self, names: tuple[str, ...]) -> IntArray:
        """Return the group of each labelled row by some columns."""
        return groups_by(names, self.scores.table.answers.tables[TRAIN], self.scores.table.groups)


def uncalibrated_rules(scores: CalibratedScores) -> list[TierRule]:
    """Return the rules that decide as the models do without calibration, where that may differ.

    A temperature keeps the order of the classes, so only the biases are undone.
    """
    rules = []
    for model, one in enumerate(scores.table.calibrations or ()):
        if not one.is_none:
            benefits = np.zeros(scores.shape)
            classes = np.arange(scores.shape[1])
            benefits[:, classes, classes] = np.expm1(one.biases.min() - one.biases)
            rules.append(TierRule(model, 0.0, 1.0, benefits))
    return rules


def least_move(offered: Mapping[Goal, float], error: InfeasibleGoals) -> float:
    """Return by how much the goals are missed: of one that conflicts with itself only some rows may take part."""
    return min((abs(bound - goal.bound) for goal, bound in offered.items()), default=error.least_violation)


def _grow(program: Program, pool: Columns) -> Columns:
    """Return the pool with further rules, until none helps."""
    return generate_columns(PenaltySearch(program, pool), pool, 0.0)[0]  # type: ignore[no-any-return]


class PenaltySearch:
    """Column generation where limits that the pool cannot meet may be violated at a penalty, which rises."""

    def __init__(self, program: Program, pool: Columns) -> None:
        self.program, self.seen = program, pool.keys()
        self._penalties, self._average = iter(_PENALTIES), np.zeros(len(program.limits.tensors))
        self._penalty, self._best, self._missing = next(self._penalties), np.inf, 0.0
        self._n_idle = self._n_rounds = 0

    def master(self, pool: Columns) -> MixtureSolution:
        """Return the best mixture of rules and artificial ones: the first rule, relieved of one limit at a penalty.

        The share of the artificial rules is then given to the first rule, and stored.
        """
        (objective_losses, risk, _), limits, rows = self.program.objective, self.program.limits, pool.rows
        losses, constraints, self._missing = pool.losses, {}, 0.0
        if rows is not None:
            n_rows = len(rows.rows)
            relief = 1.0 + float(np.maximum(rows.rows[:, 0] - rows.bounds, 0.0).sum())  # enough for all together
            penalties = relief * self._penalty / limits.sizes / (risk.tail_fraction or 1.0)
            losses = np.column_stack([losses, losses[:, :1] + penalties])
            matrix = np.column_stack([rows.rows, rows.rows[:, :1] - relief * np.eye(n_rows)])
            constraints = {"rows": matrix, "bounds": rows.bounds, "row_scale": rows.scale}
        solution = solve_master(losses, risk, objective_losses.sample_weight, constraints, _COARSE)
        own = solution.mixture[: len(pool.rules)].copy()
        self._missing = float(solution.mixture[len(pool.rules) :].sum())
        own[0] += self._missing
        self._n_rounds += 1
        is_better = solution.value < self._best - _ENOUGH
        self._n_idle, self._best = (0, solution.value) if is_better else (self._n_idle + 1, self._best)
        self._average += (solution.multipliers - self._average) / self._n_rounds
        return solution._replace(mixture=own)

    def price(self, pool: Columns, solution: MixtureSolution) -> tuple[Columns | None, float]:
        """Return the pool with rules that help on the labelled rows, at the multipliers or at their mean.

        Where none helps and there are goals, the same rules are refined by the labels; without goals that would follow
        the noise of the labels.
        """
        if self._n_idle >= _PATIENCE or self._n_rounds > _MAX_ROUNDS:
            return None, -np.inf
        (losses, risk, _), limits = self.program.objective, self.program.limits
        tiers = list(losses.tiers(risk, solution.weights, pool.losses @ solution.mixture))
        candidates: list[TierRule] = []
        for multipliers in [solution.multipliers, self._average] if self._average.size else [self._average]:
            benefits = -np.tensordot(multipliers, limits.tensors, axes=1)
            for model in range(self.program.family.scores.table.n_models):
                candidates += [tier_rule(self.program, model, one, benefits + one.benefits) for one in tiers]
        more = _select_helpful(self.program, candidates, solution, self.seen)
        if more is None and limits.goals is not None:
            refined = _refine_rules(self.program, candidates, solution, 0.0 if self._missing > FEASIBLE else _SURE)
            more = _select_helpful(self.program, refined, solution, self.seen)
        return None if more is None else pool.join(more), -np.inf

    def price_proof(self, pool: Columns, error: InfeasibleRows) -> Columns | None:
        """Return nothing: artificial rules meet the limits."""

    def goes_on(self, gap: float, *, grows: bool) -> bool:  # noqa: ARG002 - nothing is proven of all rules
        """Return whether another round may help: where limits are missed, with a larger penalty."""
        if grows or self._missing <= FEASIBLE:
            return grows
        self._penalty, self._best, self._n_idle = next(self._penalties, 0.0), np.inf, 0
        return self._penalty > 0 and self._n_rounds < _MAX_ROUNDS


class NearestSearch:
    """Column generation for bounds to offer where limits are out of reach: it minimises the largest violation.

    The largest violation is a tail of one row, whose dual prices the limits; the objective plays no part.
    """

    def __init__(self, program: Program, pool: Columns) -> None:
        self.program, self.seen, self._n_rounds = program, pool.keys(), 0

    def master(self, pool: Columns) -> MixtureSolution:
        """Return the mixture whose largest violation is least."""
        self._n_rounds += 1
        assert pool.rows is not None  # noqa: S101 - limits are missed
        scale = pool.rows.scale
        excess = (pool.rows.rows - pool.rows.bounds[:, None]) / scale[:, None]
        solution = minimize_cvar(excess, 1.0 / len(excess), tol=TOL)
        nothing, prices = np.zeros(len(pool.losses)), solution.weights / scale
        return solution._replace(weights=nothing, multipliers=prices, offset=0.0)

    def price(self, pool: Columns, solution: MixtureSolution) -> tuple[Columns | None, float]:
        """Return the pool with rules that miss the limits less."""
        if self._n_rounds > _MAX_NEARER:
            return None, -np.inf
        benefits = -np.tensordot(solution.multipliers, self.program.limits.tensors, axes=1)
        models = range(self.program.family.scores.table.n_models)
        plain: list[TierRule] = [tier_rule(self.program, model, Tier(0.0, np.inf, 0.0), benefits) for model in models]
        refined = _refine_rules(self.program, plain, solution)
        more = _select_helpful(self.program, [*plain, *refined], solution, self.seen)
        return None if more is None else pool.join(more), -np.inf

    def price_proof(self, pool: Columns, error: InfeasibleRows) -> Columns | None:
        """Return nothing: there are no limits here."""

    def goes_on(self, gap: float, *, grows: bool) -> bool:  # noqa: ARG002 - as above
        """Return whether the pool grows."""
        return grows


def _select_helpful(
    program: Program, rules: list[TierRule], solution: MixtureSolution, seen: set[bytes]
) -> Columns | None:
    """Return those rules whose cost on the labelled rows is below that of the pool."""
    if not rules:
        return None
    candidates = Columns.of(program, rules)
    gains = solution.value - solution.offset - solution.weights @ candidates.losses
    if candidates.rows is not None:
        gains -= solution.multipliers @ (candidates.rows.rows - candidates.rows.bounds[:, None])
    places: list[int] = []
    for place in np.argsort(-gains).tolist():
        if gains[place] <= max(_ENOUGH, solution.gap) or len(places) == _MOST_JOINED:
            break
        if candidates.key(place) not in seen:
            seen.add(candidates.key(place))
            places.append(place)
    return candidates.only(places) if places else None


def _refine_rules(
    program: Program, rules: list[TierRule], solution: MixtureSolution, n_standard_errors: float = 0.0
) -> list[TierRule]:
    """Return the rules of one tier, refined to cost least on the labelled rows; there are limits."""
    prices = np.tensordot(solution.multipliers, program.limits.tensors, axes=1)
    scores = program.family.scores
    groups, codes, mass = scores.codes[TRAIN], scores.labels, scores.mass
    costs = program.objective.losses.costs(scores, solution.weights)
    costs += mass[:, None] * np.broadcast_to(prices, scores.shape)[groups, codes]
    return [
        refine(rule, PricedRows(scores.probabilities[TRAIN][rule.model], groups, costs), n_standard_errors)
        for rule in rules
        if isinstance(rule, TierRule) and rule.level == 0
    ]


def mean_program(family: ClassFamily, objective: Any, limits: ClassLimits) -> tuple[Program, Tier]:
    """Return the program of rules that give one answer, of the mean loss where the risk is another, and its one tier.

    A risk of zero-one losses that counts all rows alike grows with their mean.
    """
    program = build_program(family, objective, limits)
    if not isinstance(program.objective.losses, SumLosses) or not isinstance(program.objective.risk, Mean):
        program = program._replace(objective=mean_objective(family))
    (tier,) = program.objective.losses.tiers(program.objective.risk, np.ones(1), np.ones(1))
    return program, tier


def tier_rule(program: Program, model: int, tier: Tier, benefits: FloatArray) -> TierRule:
    """Return the rule of a model that is best for a tier at some benefits of answers."""
    return TierRule(model, tier.level, tier.alpha, benefits, defer_cost=program.family.scores.defer_cost)


def _follow_prices(program: Program, pool: Columns, model: int) -> Columns:
    """Return the pool with rules at prices that follow the violations of the rule before."""
    (losses, risk, _), limits = program.objective, program.limits
    uniform = np.full(len(pool.losses), 1.0 / len(pool.losses))
    sample = uniform if losses.sample_weight is None else losses.sample_weight
    sizes, tiers = limits.sizes, losses.tiers(risk, sample, pool.losses[:, 0])
    for tier in {one.level: one for one in tiers if one.level in _FOLLOWED}.values():
        prices = np.zeros(sizes.size)
        for step in range(1, _N_STEPS + 1):
            check_budget()
            benefits = tier.benefits - np.tensordot(prices, limits.tensors, axes=1)
            one = Columns.of(program, [tier_rule(program, model, tier, benefits)])
            pool = pool.join(one)
            assert one.rows is not None  # noqa: S101 - there are goals
            excess = one.rows.rows[:, 0] - one.rows.bounds
            prices = np.maximum(prices + FIRST_STEP / min(tier.alpha, 1.0) / step**0.5 * excess / sizes, 0.0)
    return pool
