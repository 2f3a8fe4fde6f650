"""The choice of a mixture of rules: what is asked as a program over every threshold, and the rules that solve it."""

from collections.abc import Iterable
from typing import Any, NamedTuple, Self

import numpy as np

from counterpoise._base.types import FloatArray, IntArray
from counterpoise.goals import Rate
from counterpoise.mixtures.answers import TRAIN
from counterpoise.mixtures.choosing import Aim, cleaned, groups_by
from counterpoise.mixtures.goal_rows import goal_rows, linear_rate
from counterpoise.mixtures.scores.evidence import Ranked
from counterpoise.mixtures.scores.limits import Budget, RuleLimits, infeasible
from counterpoise.mixtures.scores.program import (
    TOL,
    CellLosses,
    FixedLosses,
    Found,
    Losses,
    NoMixture,
    RuleProgram,
    Sums,
    as_sums,
    edge_losses,
    reaching,
)
from counterpoise.mixtures.scores.rules import CutRules, coupled
from counterpoise.theory.risks import CVaR, Mean, Risk, RiskRows, WorstGroup

EXACT = 1e-7  # gap of the least mean loss from which a budget is counted: of errors, which count 1
_NONE = np.zeros(0)


class Asked(NamedTuple):
    """An objective as a risk of linear functions of the rules."""

    losses: Losses
    risk: Risk
    shift: float = 0.0

    @property
    def bound_risk(self) -> Risk | None:
        """Return the risk as it is bound to the rows, where it is no CVaR, worst group or rate."""
        return self.risk if isinstance(self.losses, CellLosses) and self.risk.tail_fraction is None else None


class RuleChoice(NamedTuple):
    """Rules and their shares, with what proves them."""

    rules: CutRules
    mixture: FloatArray
    value: float
    lower: float  # no mixture of any rules of any model has less
    multipliers: FloatArray  # of the goals
    cost: float  # of one rule in the place of the best mixture
    risk: Risk | None  # bound to the rows, where it is no CVaR, worst group or rate
    row_prices: FloatArray = _NONE  # multipliers of the rows of the goals, of which one may have several
    is_usual: bool = False  # whether it is a model at its usual threshold, kept as such

    def only(self, rule: CutRules, value: float, *, is_usual: bool = False) -> Self:
        """Return one rule in the place of the best mixture; its cost is how much more risk it has."""
        cost = self.cost + max(value - self.value, 0.0)  # the best mixture is known to its gap
        return self._replace(rules=rule, mixture=np.ones(1), value=value, cost=cost, is_usual=is_usual)


def choose_rules(ranked: Ranked, aim: Aim, tol: float = TOL) -> RuleChoice:
    """Return the best mixture of all rules, or raise ``InfeasibleGoals``."""
    limits, start = limits_of(ranked, aim), ranked.usual_rules()
    if aim.budget is not None:
        limits, start = within_budget(ranked, limits, start, aim.budget)
    asked = pose(ranked, aim)
    return choice_of(solve(RuleProgram(ranked.cuts, asked.losses, asked.risk, limits), start, tol), asked, limits)


def choice_of(found: Found, asked: Asked, limits: RuleLimits) -> RuleChoice:
    """Return rules and shares from the solution of a program."""
    rules, mixture = coupled(found.rules, cleaned(found.solution.mixture))
    value, lower, multipliers, row_prices = _numbers(found, asked, limits)
    return RuleChoice(rules, mixture, value, lower, multipliers, 0.0, asked.bound_risk, row_prices)


def limits_of(ranked: Ranked, aim: Aim) -> RuleLimits:
    """Return the goals for every cut."""
    return RuleLimits(ranked.cuts, goal_rows(ranked.answers(), aim.goals))


def solve(program: RuleProgram, start: CutRules, tol: float = TOL) -> Found:
    """Return the best mixture, or raise ``InfeasibleGoals``."""
    try:
        return program.solve(start, tol)
    except NoMixture as error:
        assert isinstance(program.limits, RuleLimits)  # noqa: S101 - of this file
        raise infeasible(program.limits, error) from error.error


def within_budget(ranked: Ranked, limits: RuleLimits, start: CutRules, budget: float) -> tuple[RuleLimits, CutRules]:
    """Return the limits with a budget above the least mean loss under the goals, and rules that keep it."""
    loss = mean_loss(ranked)
    least = solve(least_mean(limits, loss), start, EXACT)
    return limits.within(Budget(loss, least.solution.value + budget)), least.rules


def least_mean(limits: RuleLimits, loss: Sums) -> RuleProgram:
    """Return the program of the least mean loss within limits, from which a budget is counted."""
    return RuleProgram(limits.cuts, FixedLosses(loss), Mean(), limits)


def pose(ranked: Ranked, aim: Aim) -> Asked:
    """Return what is minimized."""
    objective, given = aim.objective, ranked.evidence
    if isinstance(objective, Rate):
        rate = linear_rate(ranked.answers(), objective)
        return Asked(reaching(as_sums(rate.row[None], ranked.cuts), ranked.cuts), Mean(), rate.constant)
    if isinstance(objective, WorstGroup):
        sums = _group_losses(ranked, objective)
        return Asked(FixedLosses(sums), CVaR(1 / len(sums.constants)))
    if objective.tail_fraction == 1.0:
        return Asked(FixedLosses(mean_loss(ranked)), Mean())
    risk = objective.bind(_risk_rows(ranked))
    codes, is_positive = ranked.codes[TRAIN], given.is_positive
    told: dict[str, Any] = {"merge": risk.is_law_invariant, "defer_cost": given.defer_cost}
    return Asked(CellLosses(ranked.cuts, codes, is_positive, given.mass, **told), risk)


def mean_loss(ranked: Ranked) -> Sums:
    """Return the mean loss of every rule."""
    return _mean_losses(ranked, [(ranked.train, ranked.evidence.mass)])


def _mean_losses(ranked: Ranked, parts: Iterable[tuple[IntArray | slice, FloatArray]]) -> Sums:
    """Return the mean loss of every rule on some parts of the labelled rows, given the rows and shares of each."""
    constants, added = [], []
    for rows, share in parts:
        is_positive = ranked.evidence.is_positive[rows]
        edges = edge_losses(is_positive, ranked.evidence.defer_cost)
        constants.append(float(share[is_positive].sum()))
        added.append(np.concatenate([ranked.cuts.sums(rows, share * edge) for edge in edges]))
    return Sums(np.array(constants), np.array(added))


def _group_losses(ranked: Ranked, objective: WorstGroup) -> Sums:
    """Return the mean loss of every rule on each group that weighs anything."""
    given = ranked.evidence
    groups, mass = groups_by(objective.names, given.answers.tables[TRAIN], given.groups), given.mass
    parts = [np.flatnonzero(groups == group) for group in np.unique(groups[mass > 0]).tolist()]
    return _mean_losses(ranked, [(rows, mass[rows] / mass[rows].sum()) for rows in parts])


def _risk_rows(ranked: Ranked) -> RiskRows:
    """Return the rows that a risk is bound to: what is chosen has one dimension for each threshold."""
    given, cuts = ranked.evidence, ranked.cuts
    table = given.answers.tables[TRAIN]
    n_samples, n_levels = 1.0 / float((given.mass**2).sum()), cuts.n_models * len(cuts.edges(0))
    return RiskRows(n_samples, n_levels + 1, lambda names: groups_by(names, table, given.groups))


def _numbers(found: Found, asked: Asked, limits: RuleLimits) -> tuple[float, float, FloatArray, FloatArray]:
    """Return value, lower bound and the multipliers of the goals and of their rows, in the units of the objective."""
    one, goals = found.solution, limits.goals
    rows = _NONE if goals is None else one.multipliers[: len(goals.bounds)]
    prices = rows if goals is None else goals.prices(rows)
    return asked.shift + one.value, asked.shift + one.lower, prices, rows
