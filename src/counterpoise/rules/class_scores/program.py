"""The best mixture of a pool of rules that grows: columns at the multipliers of the goals, kept where labels say so.

The pool is mixed by the solver of any mixture. Its dual, weights of the rows and multipliers of the limits, makes
benefits of answers, and two-tier rules are best at those if the probabilities are right. They are not quite right, so a
rule joins the pool only where its cost on the *labelled* rows, at the same dual, is below that of the pool. Values and
limits are therefore exact on the selection rows, and what is proven is about the mixtures of the pool alone.

The first rules follow prices: each limit's rises where the last rule missed it and falls where it was kept. As long as
the pool cannot keep the limits, artificial columns do, one for each, at a cost that bounds its multiplier: all that are
missed have a price then, and rules change a little at a time. The rays that prove infeasibility led nowhere where there
were many goals.

Limits are goals, and a budget of the mean loss: as rows for given answers, and as tensors for all.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from counterpoise._base.types import FloatArray
from counterpoise.goals import Ratio
from counterpoise.goals.binding import BoundRates, bind_rates
from counterpoise.goals.infeasible import bound_step, goal_unit
from counterpoise.rules.class_scores.rules import ClassRule, PricedRows, TierRule, refined
from counterpoise.rules.class_scores.table import CalibratedScores
from counterpoise.rules.goal_rows import TRAIN, GoalRows, TalliedGoals, mean_limit
from counterpoise.solvers import minimize_cvar, minimize_risk
from counterpoise.solvers.linear_program import FEASIBLE, MixtureSolution
from counterpoise.theory.risks import Risk


class BoundRows(NamedTuple):
    """Goals bound to the answers of all rows, so that those of many rules are one product each."""

    template: GoalRows  # on other rules
    now: BoundRates
    moved: BoundRates | None  # with larger bounds, of the goals on ratios: their rows are affine in them
    steps: FloatArray  # by which those bounds are larger
    constants: FloatArray  # of the goals, which the bounds hold
    units: FloatArray  # what rows and bounds are in parts of, so that amounts of any size are searched alike

    @classmethod
    def of(cls, tallied: TalliedGoals, template: GoalRows) -> Self:
        """Bind goals."""
        linear = [goal.linear for goal in tallied.asked]
        asked = [goal for goal in tallied.asked if isinstance(goal.left, Ratio)]
        steps = np.array([bound_step(goal) for goal in asked])
        ratios = [goal.with_bound(goal.bound + step).linear for goal, step in zip(asked, steps, strict=True)]
        moved = bind_rates(ratios, tallied.views) if ratios else None
        constants = np.array([rate.constant for rate in linear])
        units = np.array([goal_unit(template.goals[place]) for place in template.places.tolist()])
        now = bind_rates(linear, tallied.views, tallied.limits.names)
        return cls(in_units(template, units), now, moved, steps, constants, units)

    def rows(self, said: list[dict[str, FloatArray]]) -> GoalRows:
        """Return the goals as rows on rules, given their answers, in parts of the units."""
        stacked = {name: np.column_stack([one[name].ravel() for one in said]) for name in self.now.weights}
        rows = self.now.weighted(stacked) + (self.now.constants - self.constants)[:, None]
        slopes = np.zeros_like(rows)
        if self.moved is not None:
            ratios = np.flatnonzero(self.template.row_slopes.any(axis=1))
            slopes[ratios] = (self.moved.values(stacked) - self.now.values(stacked)[ratios]) / self.steps[:, None]
        units = self.units[:, None]
        return self.template._replace(rows=rows / units, row_slopes=slopes / units)


def in_units(goals: GoalRows, units: FloatArray) -> GoalRows:
    """Return goals with rows, bounds and slopes in parts of units, one for each row."""
    return goals._replace(
        rows=goals.rows / units[:, None],
        bounds=goals.bounds / units,
        row_slopes=goals.row_slopes / units[:, None],
        bound_slopes=goals.bound_slopes / units,
        sizes=None if goals.sizes is None else goals.sizes / units,
    )


class ClassLimits(NamedTuple):
    """Goals and perhaps a budget of the mean loss: as rows for given answers, and as tensors for all.

    Both are in parts of ``units``.
    """

    goals: BoundRows | None
    budget: float | None
    tensors: FloatArray  # (n_rows, n_groups, n_labels, n_answers): what each answer adds, for a unit of mass

    @property
    def units(self) -> FloatArray:
        """Return what the rows are in parts of: multipliers are to be divided by it, and prices times it are theirs."""
        goals = np.empty(0) if self.goals is None else self.goals.units
        return goals if self.budget is None else np.append(goals, 1.0)

    @property
    def sizes(self) -> FloatArray:
        """Return the most that a unit of mass adds to each limit, at least 1: prices count in parts of it."""
        return np.asarray(np.maximum(np.abs(self.tensors).max(axis=(1, 2, 3), initial=0.0), 1.0))

    def rows(self, said: list[dict[str, FloatArray]], means: FloatArray) -> GoalRows | None:
        """Return the limits as rows on rules, given their answers and mean losses: the goals and then the budget."""
        rows = None if self.goals is None else self.goals.rows(said)
        if self.budget is None:
            return rows
        kept = mean_limit(means, self.budget)
        return kept if rows is None else rows.joined(kept)


def limits_of(known: CalibratedScores, goals: tuple[Any, ...]) -> ClassLimits:
    """Return goals for any rules."""
    if not goals:
        return ClassLimits(None, None, np.zeros((0, *known.shape)))
    answers = known.label_answers()
    views = answers.views()
    tallied = TalliedGoals.of(goals, views)
    rows = tallied.rows(answers.counter(views))
    bound = BoundRows.of(tallied, rows)
    return ClassLimits(bound, None, as_tensors(known, rows.rows / bound.units[:, None]))


def as_tensors(known: CalibratedScores, rows: FloatArray) -> FloatArray:
    """Return linear functions of the answers by group, label and answer, for a unit of the labelled rows' mass."""
    added = (rows[:, :-1] - rows[:, -1:]).reshape(-1, *known.shape)
    mass = known.label_mass()[None, :, :, None]
    return np.divide(added, mass, out=np.zeros_like(added), where=mass > 0)


def loss_tensor(known: CalibratedScores) -> FloatArray:
    """Return the loss of each answer, less one, by group and label."""
    losses = -np.eye(*known.shape[1:])
    if known.defer_cost is not None:
        losses[:, -1] = known.defer_cost - 1.0
    return np.repeat(losses[None], known.shape[0], axis=0)


TOL = 1e-4  # the gap of the pool's own problem that is good enough at the end, in parts of the losses' unit
LEVELS = (0.5, 2 / 3, 0.75)  # thresholds of tails that rules are tried at: two, three, four classes share a row
_MAX_ROUNDS = 60
_ENOUGH = 5e-4  # what a rule must gain, in parts of the losses' unit, to join the pool
_PATIENCE = 6  # rounds without a gain of that size
_COARSE = 5e-4  # gap of the pool's own problem on the way
_COSTS = (3.0, 30.0, 300.0, 3000.0)  # of artificial columns, in units of what a limit's tensor adds at most
_MOST_LEVEL = 0.96  # of a tail: more classes than share a row then hardly matter
_HALF, _LEAST = 0.5, 1e-6  # the tail that a risk without one is taken at, and the least that a row above it counts
_MOST_JOINED = 4  # rules that join in a round
_N_STEPS, _FOLLOWED = 40, (0.0, 0.5)  # rules that follow prices, at each of these thresholds
_SURE = 2.0  # standard errors that a rule must save to be moved by labels, where the limits are kept already
_MAX_NEARER = 30  # rounds in search of what can be offered where limits are out of reach
FIRST_STEP = 4.0  # of a price, for a limit missed by one; steps fall with the root of their number


class Tier(NamedTuple):
    """What the objective says of a rule: the threshold of its tail, the tail's fraction, and benefits."""

    level: float
    alpha: float
    benefits: FloatArray | float


class Losses(Protocol):
    """What a risk is taken of: one column for each rule, in parts of ``unit``."""

    sample_weight: FloatArray | None
    unit: float

    def column(self, known: CalibratedScores, said: dict[str, FloatArray]) -> FloatArray:
        """Return what a rule has, given its answers."""

    def tiers(self, risk: Risk, weights: FloatArray, mixed: FloatArray) -> Iterator[Tier]:
        """Yield what rules are tried, given the weights of the dual and what the mixture has."""

    def costs(self, known: CalibratedScores, weights: FloatArray) -> FloatArray:
        """Return what each answer about each labelled row costs at the weights of the dual."""


class RowLosses:
    """Losses of the labelled rows."""

    unit = 1.0  # errors count 1

    def __init__(self, known: CalibratedScores) -> None:
        self.sample_weight: FloatArray | None = known.mass
        self._mass, self._loss = known.mass, loss_tensor(known)

    def column(self, known: CalibratedScores, said: dict[str, FloatArray]) -> FloatArray:
        """Return the loss of each labelled row."""
        return known.losses(said[TRAIN])

    def costs(self, known: CalibratedScores, weights: FloatArray) -> FloatArray:
        """Return what each answer about each labelled row costs."""
        return np.asarray(weights[:, None] * self._loss[known.codes[TRAIN], known.labels])

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

    def column(self, known: CalibratedScores, said: dict[str, FloatArray]) -> FloatArray:
        """Return the functions of a rule."""
        return np.asarray(self._of(known, said)) / self.unit

    def costs(self, known: CalibratedScores, weights: FloatArray) -> FloatArray:
        """Return what each answer about each labelled row costs."""
        added = np.tensordot(weights, self._tensors, axes=1)
        return np.asarray(known.mass[:, None] * added[known.codes[TRAIN], known.labels])

    def tiers(self, risk: Risk, weights: FloatArray, mixed: FloatArray) -> Iterator[Tier]:  # noqa: ARG002 - no tail
        """Yield the one rule that is best at these weights."""
        yield Tier(0.0, np.inf, -np.tensordot(weights, self._tensors, axes=1))


class Columns(NamedTuple):
    """Rules of a pool, with what they come to."""

    rules: list[ClassRule]
    losses: FloatArray  # (n_losses, n_rules)
    rows: GoalRows | None

    def joined(self, other: Self) -> Self:
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
        """Return what tells a rule from others that decide differently."""
        return self.losses[:, place].tobytes() + (b"" if self.rows is None else self.rows.rows[:, place].tobytes())


class NotKept(Exception):  # noqa: N818 - named for what was found
    """No rules were found whose mixture keeps the limits: the pool that came nearest."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        super().__init__("no rules were found that keep the limits")


class ClassProgram(NamedTuple):
    """``min over mixtures of rules of shift + risk(losses @ mixture)`` within limits."""

    known: CalibratedScores
    losses: Losses
    risk: Risk
    limits: ClassLimits
    shift: float = 0.0  # which values and lower bounds of a solution do not hold

    def columns(self, rules: list[ClassRule]) -> Columns:
        """Return rules with what they come to."""
        said = [self.known.said(rule) for rule in rules]
        losses = np.column_stack([self.losses.column(self.known, one) for one in said])
        means = np.array([self.known.mass @ self.known.losses(one[TRAIN]) for one in said])
        return Columns(rules, losses, self.limits.rows(said, means))

    def solve(self, start: list[ClassRule], tol: float = TOL) -> tuple[Columns, MixtureSolution]:
        """Return a pool that grows from ``start`` and the best mixture of it, or raise ``NotKept``.

        The pool is in parts of the units of losses and limits, the mixture in those of the objective and the goals.
        """
        columns = self.columns(start)
        for model in range(self.known.table.n_models if self.limits.goals is not None else 0):
            columns = self._following(columns, model)
        columns = self._grown(columns)
        if columns.rows is not None and not columns.rows.constraints({}).can_hold():
            columns = self._nearer(columns)
            if columns.rows is not None and not columns.rows.constraints({}).can_hold():
                raise NotKept(columns)
            columns = self._grown(columns)
        limits = {} if columns.rows is None else columns.rows.as_limits()
        found, unit = self._solved(columns.losses, tol, **limits), self.losses.unit
        prices = found.multipliers * unit / self.limits.units
        return columns, found._replace(value=unit * found.value, lower=unit * found.lower, multipliers=prices)

    def _grown(self, columns: Columns) -> Columns:
        """Return the pool with rules that the objective and the limits ask for, until none helps."""
        seen = {columns.key(place) for place in range(len(columns.rules))}
        costs, average = iter(_COSTS), np.zeros(len(self.limits.tensors))
        cost, best, idle = next(costs), np.inf, 0
        for n_rounds in range(1, _MAX_ROUNDS + 1):
            mixed, missing = self._mixed(columns, cost, _COARSE)
            value = mixed.value
            idle, best = (0, value) if value < best - _ENOUGH else (idle + 1, best)
            average += (mixed.multipliers - average) / n_rounds
            sure = 0.0 if missing > FEASIBLE else _SURE
            more = self._more(columns, mixed, average, seen, sure) if idle < _PATIENCE else None
            if more is not None:
                columns = columns.joined(more)
                continue
            if missing <= FEASIBLE:
                break
            cost, best, idle = next(costs, 0.0), np.inf, 0
            if not cost:
                break
        return columns

    def _more(
        self, columns: Columns, solution: MixtureSolution, average: FloatArray, seen: set[bytes], sure: float
    ) -> Columns | None:
        """Return rules that the labelled rows say would help, at the present multipliers or at their mean.

        Where none does and there are goals, the same rules are moved as the labels say; without goals that would follow
        the noise of the labels.
        """
        tiers = list(self.losses.tiers(self.risk, solution.weights, columns.losses @ solution.mixture))
        tried: list[ClassRule] = []
        for multipliers in [solution.multipliers, average] if average.size else [average]:
            benefits = -np.tensordot(multipliers, self.limits.tensors, axes=1)
            for model in range(self.known.table.n_models):
                tried += [self.rule(model, one, benefits + one.benefits) for one in tiers]
        more = self._helping(tried, solution, seen)
        if more is not None or self.limits.goals is None:
            return more
        return self._helping(self._refined(tried, solution, sure), solution, seen)

    def _helping(self, rules: list[ClassRule], solution: MixtureSolution, seen: set[bytes]) -> Columns | None:
        """Return those rules whose labelled cost is below that of the pool."""
        if not rules:
            return None
        tried = self.columns(rules)
        gains = solution.value - solution.offset - solution.weights @ tried.losses
        if tried.rows is not None:
            gains -= solution.multipliers @ (tried.rows.rows - tried.rows.bounds[:, None])
        chosen: list[int] = []
        for place in np.argsort(-gains).tolist():
            if gains[place] <= max(_ENOUGH, solution.gap) or len(chosen) == _MOST_JOINED:
                break
            if tried.key(place) not in seen:
                seen.add(tried.key(place))
                chosen.append(place)
        return tried.only(chosen) if chosen else None

    def _refined(self, rules: list[ClassRule], solution: MixtureSolution, sure: float = 0.0) -> list[ClassRule]:
        """Return rules of one tier, moved to where labels say that they cost least; there are limits."""
        prices = np.tensordot(solution.multipliers, self.limits.tensors, axes=1)
        known = self.known
        groups, codes, mass = known.codes[TRAIN], known.labels, known.mass
        costs = self.losses.costs(known, solution.weights)
        costs += mass[:, None] * np.broadcast_to(prices, known.shape)[groups, codes]
        return [
            refined(rule, PricedRows(known.probabilities[TRAIN][rule.model], groups, costs), sure)
            for rule in rules
            if isinstance(rule, TierRule) and rule.level == 0
        ]

    def rule(self, model: int, tier: Tier, benefits: FloatArray) -> TierRule:
        """Return the rule of a model that is best for a tier at some benefits of answers."""
        return TierRule(model, tier.level, tier.alpha, benefits, defer_cost=self.known.defer_cost)

    def _nearer(self, columns: Columns) -> Columns:
        """Return the pool with rules whose mixture misses no limit by much: what can be offered in their place.

        The largest violation is a tail of one row, whose dual prices the limits; the risk counts nothing here.
        """
        seen = {columns.key(place) for place in range(len(columns.rules))}
        for _ in range(_MAX_NEARER):
            assert columns.rows is not None  # noqa: S101 - they are not kept
            scale = columns.rows.scale
            missed = (columns.rows.rows - columns.rows.bounds[:, None]) / scale[:, None]
            found = minimize_cvar(missed, 1.0 / len(missed), tol=TOL)
            prices = found.weights / scale
            plain: list[ClassRule] = [
                self.rule(model, Tier(0.0, np.inf, 0.0), -np.tensordot(prices, self.limits.tensors, axes=1))
                for model in range(self.known.table.n_models)
            ]
            nothing = np.zeros(columns.losses.shape[0])
            dual = found._replace(weights=nothing, multipliers=prices, offset=0.0)
            more = self._helping([*plain, *self._refined(plain, dual)], dual, seen)
            if more is None:
                break
            columns = columns.joined(more)
        return columns

    def _following(self, columns: Columns, model: int) -> Columns:
        """Return the pool with rules at prices that follow what the rule before missed."""
        uniform = np.full(len(columns.losses), 1.0 / len(columns.losses))
        sample = uniform if self.losses.sample_weight is None else self.losses.sample_weight
        sizes, tiers = self.limits.sizes, self.losses.tiers(self.risk, sample, columns.losses[:, 0])
        for tier in {one.level: one for one in tiers if one.level in _FOLLOWED}.values():
            prices = np.zeros(sizes.size)
            for step in range(1, _N_STEPS + 1):
                benefits = tier.benefits - np.tensordot(prices, self.limits.tensors, axes=1)
                one = self.columns([self.rule(model, tier, benefits)])
                columns = columns.joined(one)
                assert one.rows is not None  # noqa: S101 - there are goals
                excess = one.rows.rows[:, 0] - one.rows.bounds
                prices = np.maximum(prices + FIRST_STEP / min(tier.alpha, 1.0) / step**0.5 * excess / sizes, 0.0)
        return columns

    def _mixed(self, columns: Columns, cost: float, tol: float) -> tuple[MixtureSolution, float]:
        """Return the best mixture of rules and of artificial ones: the first rule, let off one limit at a cost.

        The artificial ones are taken out of it, and their share is returned too.
        """
        rows = columns.rows
        if rows is None:
            return self._solved(columns.losses, tol), 0.0
        n_rows, n_rules = rows.rows.shape
        relief = 1.0 + float(np.maximum(rows.rows[:, 0] - rows.bounds, 0.0).sum())  # enough for all of them together
        costs = relief * cost / self.limits.sizes / (self.risk.tail_fraction or 1.0)
        losses = np.column_stack([columns.losses, columns.losses[:, :1] + costs])
        matrix = np.column_stack([rows.rows, rows.rows[:, :1] - relief * np.eye(n_rows)])
        found = self._solved(losses, tol, rows=matrix, bounds=rows.bounds, row_scale=rows.scale)
        own, missing = found.mixture[:n_rules].copy(), float(found.mixture[n_rules:].sum())
        own[0] += missing
        return found._replace(mixture=own), missing

    def _solved(self, losses: FloatArray, tol: float, **limits: Any) -> MixtureSolution:
        weights: dict[str, Any] = {"sample_weight": self.losses.sample_weight, "tol": tol}
        if self.risk.tail_fraction is not None:
            return minimize_cvar(losses, self.risk.tail_fraction, **weights, **limits)
        return minimize_risk(losses, self.risk, **weights, **limits)
