"""All rules of some scores, every threshold of every model, as a family of the program that chooses mixtures.

The dual of the program is the cost of deciding positive for each row. Its running sums over the sorted rows price every
cut of every group. The best rule of each model is its cheapest cut in each group, or its cheapest pair of cuts where
rows between them may be deferred. The sum of those costs is a lower bound over *all* mixtures of all rules.
"""

from typing import NamedTuple

import numpy as np

from counterpoise._base.types import FloatArray, IntArray
from counterpoise.goals import Goal, InfeasibleGoals, Rate
from counterpoise.rules.choosing import Problem, groups_by
from counterpoise.rules.goal_rows import TRAIN, GoalConstraints, goal_rows, linear_rate
from counterpoise.rules.program import (
    Choice,
    NoMixture,
    Objective,
    Optimum,
    Program,
    build_objective,
    drop_slivers,
    generate_columns,
    mean_objective,
    solve_master,
)
from counterpoise.rules.scores.conflicts import excess_of, explain_conflict
from counterpoise.rules.scores.cuts import CutRules, Cuts, couple
from counterpoise.rules.scores.sums import (
    Budget,
    CellLosses,
    RuleLimits,
    Sums,
    cheapest_rules,
    edge_losses,
    scaled_sums,
)
from counterpoise.rules.scores.table import RankedScores
from counterpoise.solvers.linear_program import FEASIBLE, InfeasibleRows, MixtureSolution
from counterpoise.theory.risks import Mean, Risk, RiskRows

_ROUGH = 1e-5  # gap of the pool's own problem above which the bundle method solves it in a few steps
_COARSE = 0.05  # gap of the pool's own problem in the first round, where it is not solved exactly ...
_PART = 0.05  # ... then this part of the last gap over all rules ...
_INNER = 0.25  # ... down to this part of the gap that is wanted
_FINER = 0.1  # times the gap where the cheapest rules are in the pool already


class CutFamily(NamedTuple):
    """All rules of some scores: a cut in each group, or two where rows between them may be deferred."""

    ranked: RankedScores

    @property
    def cuts(self) -> Cuts:
        """Return every threshold of every score."""
        return self.ranked.cuts

    @property
    def mass(self) -> FloatArray:
        """Return the weights of the labelled rows, of sum 1."""
        return self.ranked.mass

    def start(self, objective: Objective) -> CutRules:  # noqa: ARG002 - as the others
        """Return the usual rules of each model."""
        return self.ranked.usual_rules()

    def join(self, rules: CutRules, more: CutRules) -> CutRules:
        """Return rules and then those of others that are not among them."""
        return rules.join(more)

    def optimum(self, program: Program, tol: float, rules: CutRules) -> Optimum:
        """Return the best mixture of all rules, or raise ``NoMixture``."""
        tol *= program.objective.losses.unit
        rules, solution, lower = generate_columns(CutSearch(program, tol), rules, tol)
        return Optimum(rules, solution._replace(lower=lower))

    def explain(self, program: Program, error: NoMixture) -> InfeasibleGoals:
        """Return which goals conflict for every mixture of all rules."""
        return explain_conflict(program, error)

    def choice(self, program: Program, optimum: Optimum) -> Choice:
        """Return the choice, by rules whose thresholds fall together in all groups."""
        solution, objective, limits = optimum.solution, program.objective, program.limits
        rules, mixture = couple(optimum.rules, drop_slivers(solution.mixture))
        goals = None if limits is None else limits.goals
        prices = np.zeros(0) if goals is None else goals.prices(solution.multipliers[: len(goals.bounds)])
        is_bound = isinstance(objective.losses, CellLosses) and objective.risk.tail_fraction is None
        values = objective.shift + solution.value, objective.shift + solution.lower
        return Choice(mixture, *values, prices, rules, risk=objective.risk if is_bound else None)

    def limits(self, goals: tuple[Goal, ...]) -> RuleLimits:
        """Return goals for every cut."""
        return RuleLimits(self.cuts, goal_rows(self.ranked.answers(), goals))

    def goals_of(self, limits: RuleLimits) -> GoalConstraints:
        """Return the goals of limits; there are some."""
        assert limits.goals is not None  # noqa: S101 - callers have some
        return limits.goals

    def at_bound(self, limits: RuleLimits, goals: tuple[Goal, ...], bound: float) -> RuleLimits:  # noqa: ARG002 - as above
        """Return limits with another bound of the first goal."""
        return limits._replace(goals=self.goals_of(limits).with_bound(0, bound))

    def carry_over(self, rules: CutRules | None, optimum: Optimum) -> tuple[CutRules, FloatArray]:  # noqa: ARG002 - they are among them
        """Return the rules of an optimum, to start the next solve with, and its mixture."""
        return optimum.rules, optimum.solution.mixture

    def excess(self, limits: RuleLimits, place: int) -> Program:
        """Return the program of the least that a goal can be missed by, in its worst row, with all other goals met."""
        return excess_of(self, limits, place)

    def matrix(self, losses: Sums, rules: CutRules) -> FloatArray:
        """Return losses of some rules."""
        return losses.of(rules)

    def add_budget(self, limits: RuleLimits, most: float) -> RuleLimits:
        """Return limits with a budget of mean loss."""
        return limits._replace(budget=Budget(self.mean_losses(), np.array([most])))

    def rate_objective(self, objective: Rate) -> Objective:
        """Return a rate as objective."""
        rate = linear_rate(self.ranked.answers(), objective)
        return Objective(scaled_sums(rate.row[None], self.cuts), Mean(), rate.constant)

    def mean_losses(self, groups: IntArray | None = None) -> Sums:
        """Return the mean loss of every rule, or that on every group of labelled rows that weighs anything."""
        ranked, constants, added = self.ranked, [], []
        parts = [slice(self.mass.size)] if groups is None else _rows_by_group(groups, self.mass)
        for rows in parts:
            mass, is_positive = self.mass[rows], ranked.is_positive[rows]
            share = mass if groups is None else mass / mass.sum()
            constants.append(float(share[is_positive].sum()))
            edges = edge_losses(is_positive, ranked.defer_cost)
            added.append(np.concatenate([self.cuts.sums(rows, share * edge) for edge in edges]))
        return Sums(np.array(constants), np.array(added))

    def row_losses(self, risk: Risk) -> CellLosses:
        """Return the losses of the selection rows; rows that no rule separates are merged where the risk allows it."""
        ranked = self.ranked
        rows = self.cuts, ranked.codes[TRAIN], ranked.is_positive, ranked.mass
        return CellLosses(*rows, merge=risk.is_law_invariant, defer_cost=ranked.defer_cost)

    def bind(self, risk: Risk) -> Risk:
        """Return a risk bound to the selection rows; a rule has one dimension for each threshold."""
        n_levels = self.cuts.n_models * self.cuts.n_groups * (1 + self.cuts.defers)
        return risk.bind(RiskRows(1.0 / float((self.mass**2).sum()), n_levels + 1, self.group_codes))

    def group_codes(self, names: tuple[str, ...]) -> IntArray:
        """Return the group of each labelled row by some columns."""
        return groups_by(names, self.ranked.table.answers.tables[TRAIN], self.ranked.table.groups)


def with_least_mean(family: CutFamily, problem: Problem, best: Choice) -> Choice:
    """Return the mixture of the least mean loss among those in which no group is worse off than the worst of the best.

    Where rules see the groups, the worst group alone leaves the others anywhere below its loss.
    """
    program = Program(family, mean_objective(family), group_limits(family, problem, best.rules, best.mixture))
    least = family.choice(program, program.solve(problem.tol, best.rules))
    value = float((build_objective(family, problem.objective).losses.of(least.rules) @ least.mixture).max())
    return best._replace(mixture=least.mixture, rules=least.rules, value=value, lower=min(best.lower, value))


def group_limits(family: CutFamily, problem: Problem, rules: CutRules, mixture: FloatArray) -> RuleLimits:
    """Return the goals, and the loss of the worst group by a mixture as the most that any group may have."""
    losses = build_objective(family, problem.objective).losses
    most = np.full(len(losses.constants), (losses.of(rules) @ mixture).max())
    return family.limits(problem.goals)._replace(budget=Budget(losses, most))


def _rows_by_group(groups: IntArray, mass: FloatArray) -> list[IntArray]:
    """Return the rows of every group that weighs anything."""
    return [np.flatnonzero(groups == group) for group in np.unique(groups[mass > 0]).tolist()]


class CutSearch:
    """Column generation over all cuts: each round prices every cut of every group at once."""

    def __init__(self, program: Program, tol: float) -> None:
        self.program, self.unit = program, program.objective.losses.unit
        self._gap, self._least_gap = _COARSE * self.unit, _INNER * tol  # of the pool's own problem
        self._scale = np.empty(0)

    def master(self, pool: CutRules) -> MixtureSolution:
        """Return the best mixture of the pool, not from the last one, whose weights would hedge less."""
        (losses, risk, _), limits = self.program.objective, self.program.limits
        matrix, constraints = losses.of(pool), {} if limits is None else limits.as_limits(pool)
        self._scale = constraints.get("row_scale", self._scale)
        # The bundle method stops at weights of rows that hedge, and those of a corner, as HiGHS finds them, mislead:
        # they lead to half as many rounds again.
        is_tail = losses.sample_weight is not None and risk.tail_fraction != 1
        is_rough = self._gap >= _ROUGH * self.unit and is_tail
        method = "bundle" if is_rough else "auto"
        return solve_master(matrix, risk, losses.sample_weight, constraints, self._gap, method=method)

    def price(self, pool: CutRules, solution: MixtureSolution) -> tuple[CutRules | None, float]:
        """Return the pool with the cheapest rule of each model, where it costs less than those of the pool."""
        costs, cheapest = price_cuts(self.program, solution.weights, solution.multipliers)
        helpful = cheapest.only(solution.offset + costs < solution.value)
        return _grow(pool, helpful), solution.offset + float(costs.min())

    def price_proof(self, pool: CutRules, error: InfeasibleRows) -> CutRules | None:
        """Return the pool with rules that refute the proof."""
        costs, cheapest = price_cuts(self.program, None, error.multipliers)
        return _grow(pool, cheapest.only(costs <= FEASIBLE * float(error.multipliers @ self._scale)))

    def goes_on(self, gap: float, *, grows: bool) -> bool:
        """Return whether another round may help: the pool's own problem is solved as exactly as the gap requires."""
        if not grows and self._gap <= self._least_gap:
            return False
        self._gap = max(min(self._gap, _PART * gap if grows else _FINER * self._gap), self._least_gap)
        return True


def _grow(pool: CutRules, more: CutRules) -> CutRules | None:
    """Return a pool with further rules; None where it has them all."""
    grown = pool.join(more)
    return None if len(grown) == len(pool) else grown


def price_cuts(program: Program, weights: FloatArray | None, multipliers: FloatArray) -> tuple[FloatArray, CutRules]:
    """Return for each model the least cost of its rules, and the cheapest of them.

    The cost of a rule is ``weights @ losses + multipliers @ (rows - bounds)``; without weights that of the limits.
    """
    limits: RuleLimits | None = program.limits
    base, costs = (0.0, np.zeros(1)) if weights is None else program.objective.losses.costs(weights)
    if limits is not None:
        constant, added = limits.costs(multipliers)
        base, costs = base + constant - float(multipliers @ limits.bounds), costs + added
    least, cheapest = cheapest_rules(program.family.cuts, costs)
    return base + least, cheapest
