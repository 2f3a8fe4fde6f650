"""The choice of a mixture of rules: a problem as a program over every threshold, and the rules that solve it."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from counterpoise._base.types import FloatArray, IntArray
from counterpoise.goals import Goal, Rate
from counterpoise.rules.answers import TRAIN
from counterpoise.rules.choosing import Problem, cleaned, groups_by
from counterpoise.rules.goal_rows import GoalRows, check_range, goal_rows, linear_rate, own_bound
from counterpoise.rules.scores.cuts import CutRules, coupled
from counterpoise.rules.scores.program import (
    TOL,
    Budget,
    CellLosses,
    NoMixture,
    RuleLimits,
    RuleProgram,
    Sums,
    edge_losses,
    excess_of,
    reaching,
)
from counterpoise.rules.scores.table import RankedScores
from counterpoise.solvers.linear_program import MixtureSolution
from counterpoise.theory.risks import CVaR, Mean, Risk, RiskRows, WorstGroup

EXACT = 1e-7  # gap of the least mean loss from which a budget is counted: of errors, which count 1


class RuleSolution(NamedTuple):
    """Rules and their shares, with what proves them."""

    rules: CutRules
    mixture: FloatArray
    value: float
    lower: float  # no mixture of any rules of any model has less
    multipliers: FloatArray  # of the goals
    cost: float = 0.0  # of one rule in the place of the best mixture
    risk: Risk | None = None  # bound to the rows, where it is no CVaR, worst group or rate
    is_usual: bool = False  # whether it is a model at its usual threshold, kept as such


def choose_rules(ranked: RankedScores, problem: Problem, tol: float = TOL) -> RuleSolution:
    """Return the best mixture of all rules, or raise ``InfeasibleGoals``."""
    limits, start = limits_of(ranked, problem)
    program = build_program(ranked, problem, limits)
    return solution_of(program, *program.solve(start, tol, explains=True))


def limits_of(ranked: RankedScores, problem: Problem) -> tuple[RuleLimits, CutRules]:
    """Return the goals for every cut and rules to begin with.

    Where there is a budget it is above the least mean loss under the goals, and the rules keep it.
    """
    limits, start = RuleLimits(ranked.cuts, goal_rows(ranked.answers(), problem.goals)), ranked.usual_rules()
    if problem.budget is None:
        return limits, start
    loss = mean_loss(ranked)
    start, least = RuleProgram(ranked.cuts, loss, Mean(), limits).solve(start, EXACT, explains=True)
    return limits._replace(budget=Budget(loss, least.value + problem.budget)), start


def build_program(ranked: RankedScores, problem: Problem, limits: RuleLimits | None = None) -> RuleProgram:
    """Return the program of a problem's objective within limits."""
    objective, cuts, mass = problem.objective, ranked.cuts, ranked.mass
    if isinstance(objective, Rate):
        rate = linear_rate(ranked.answers(), objective)
        return RuleProgram(cuts, reaching(rate.row[None], cuts), Mean(), limits, rate.constant)
    if not isinstance(objective, WorstGroup) and objective.tail_fraction == 1.0:
        return RuleProgram(cuts, mean_loss(ranked), Mean(), limits)
    table, groups = ranked.table.answers.tables[TRAIN], ranked.table.groups
    if isinstance(objective, WorstGroup):
        codes = groups_by(objective.names, table, groups)
        parts = [np.flatnonzero(codes == group) for group in np.unique(codes[mass > 0]).tolist()]
        sums = mean_loss(ranked, [(rows, mass[rows] / mass[rows].sum()) for rows in parts])
        return RuleProgram(cuts, sums, CVaR(1 / len(parts)), limits)
    # What is chosen has one dimension for each threshold.
    n_samples, n_levels = 1.0 / float((mass**2).sum()), cuts.n_models * cuts.n_groups * (1 + cuts.defers)
    risk = objective.bind(RiskRows(n_samples, n_levels + 1, lambda names: groups_by(names, table, groups)))
    is_same, cost = risk.is_law_invariant, ranked.defer_cost
    losses = CellLosses(cuts, ranked.codes[TRAIN], ranked.is_positive, mass, merge=is_same, defer_cost=cost)
    return RuleProgram(cuts, losses, risk, limits)


def mean_loss(ranked: RankedScores, parts: Iterable[tuple[IntArray | slice, FloatArray]] | None = None) -> Sums:
    """Return the mean loss of every rule, or that on each of some parts of the labelled rows, with their shares."""
    constants, added = [], []
    for rows, share in [(slice(ranked.mass.size), ranked.mass)] if parts is None else parts:
        is_positive = ranked.is_positive[rows]
        edges = edge_losses(is_positive, ranked.defer_cost)
        constants.append(float(share[is_positive].sum()))
        added.append(np.concatenate([ranked.cuts.sums(rows, share * edge) for edge in edges]))
    return Sums(np.array(constants), np.array(added))


def solution_of(program: RuleProgram, rules: CutRules, found: MixtureSolution) -> RuleSolution:
    """Return rules that fall together in all groups and their shares, given the solution of a program."""
    rules, mixture = coupled(rules, cleaned(found.mixture))
    goals = None if program.limits is None else program.limits.goals
    prices = np.zeros(0) if goals is None else goals.prices(found.multipliers[: len(goals.bounds)])
    is_bound = isinstance(program.losses, CellLosses) and program.risk.tail_fraction is None
    values = program.shift + found.value, program.shift + found.lower
    return RuleSolution(rules, mixture, *values, prices, risk=program.risk if is_bound else None)


class RulePath:
    """The best mixture of rules for each of many bounds of the first goal: each from the rules of the ones before.

    A budget is counted anew for each bound.
    """

    def __init__(self, ranked: RankedScores, problem: Problem, goals: tuple[Goal, ...], tol: float) -> None:
        self.goals, self.tol, self.budget = goals, tol, problem.budget
        rows = goal_rows(ranked.answers(), goals)
        assert isinstance(rows, GoalRows)  # noqa: S101 - there is a goal
        self.rows, self.program, self.mean = rows, build_program(ranked, problem), mean_loss(ranked)
        self.rules = ranked.usual_rules()

    def default_bounds(self, n_points: int) -> FloatArray:
        """Return bounds from the tightest possible to where the goal costs nothing."""
        check_range(self.rows)
        tightest = excess_of(RuleLimits(self.program.cuts, self.rows), 0)
        self.rules, found = tightest.solve(self.rules, self.tol, explains=True)
        assert tightest.limits is not None  # noqa: S101 - those of the other goals
        free = [float((tightest.losses.of(rules) @ one.mixture).max()) for rules, one in self._optima(tightest.limits)]
        return np.linspace(own_bound(self.rows, found.value), own_bound(self.rows, max(found.value, *free)), n_points)

    def solve(self, levels: FloatArray) -> tuple[list[MixtureSolution | None], CutRules]:
        """Return the best mixture for each bound, None where there is none, over the rules that all of them need."""
        found: dict[int, MixtureSolution] = {}
        for place in np.argsort(levels, kind="stable").tolist():
            level = float(levels[place])
            if not self.rows.can_show(0, level):
                continue
            try:
                found[place] = self._optima(RuleLimits(self.program.cuts, self.rows.with_bound(0, level)))[-1][1]
            except NoMixture as error:
                self.rules = error.rules
        for place, one in found.items():
            more = np.zeros(len(self.rules) - one.mixture.size)
            found[place] = one._replace(mixture=np.append(one.mixture, more))
        return [found.get(place) for place in range(levels.size)], self.rules

    def _optima(self, limits: RuleLimits) -> list[tuple[CutRules, MixtureSolution]]:
        """Return the least mean loss within limits, where a budget is counted from it, and then the least risk.

        The rules that were needed are kept for what comes next.
        """
        found = []
        if self.budget is not None:
            found.append(RuleProgram(self.program.cuts, self.mean, Mean(), limits).solve(self.rules, EXACT))
            self.rules, least = found[0]
            limits = limits._replace(budget=Budget(self.mean, least.value + self.budget))
        found.append(self.program._replace(limits=limits).solve(self.rules, self.tol))
        self.rules = found[-1][0]
        return found
