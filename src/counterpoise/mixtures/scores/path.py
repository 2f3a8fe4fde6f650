"""The best mixture of rules for each of many bounds of a goal: each from the rules that the ones before needed."""

import numpy as np

from counterpoise._base.types import FloatArray
from counterpoise.goals import Goal
from counterpoise.mixtures.choosing import Aim
from counterpoise.mixtures.goal_rows import GoalRows, check_range, goal_rows, own_bound
from counterpoise.mixtures.scores.choosing import EXACT, least_mean, mean_loss, pose, solve
from counterpoise.mixtures.scores.evidence import Ranked
from counterpoise.mixtures.scores.limits import Budget, RuleLimits
from counterpoise.mixtures.scores.program import Found, NoMixture, RuleProgram, as_sums, reaching
from counterpoise.mixtures.scores.rules import CutRules
from counterpoise.solvers.linear_program import MixtureSolution
from counterpoise.theory.risks import CVaR


class RulePath:
    """Goals on the rules of scores, of which the bound of the first varies; a budget is counted anew for each bound."""

    def __init__(self, ranked: Ranked, aim: Aim, goals: tuple[Goal, ...], tol: float) -> None:
        self.cuts, self.goals, self.tol, self.budget = ranked.cuts, goals, tol, aim.budget
        rows = goal_rows(ranked.answers(), goals)
        assert isinstance(rows, GoalRows)  # noqa: S101 - there is a goal
        self.rows, self.asked, self.mean = rows, pose(ranked, aim), mean_loss(ranked)
        self.others = RuleLimits(ranked.cuts, rows).only(list(range(1, len(goals))))
        self.rules = ranked.usual_rules()

    def default_bounds(self, n_points: int) -> FloatArray:
        """Return bounds from the tightest possible to where the goal costs nothing."""
        check_range(self.rows)
        own = self.rows.rows_of(0)
        missed = self.rows.rows[own] - self.rows.bounds[own, None]
        first = reaching(as_sums(missed, self.cuts), self.cuts)
        tightest = solve(RuleProgram(self.cuts, first, CVaR(1 / own.size), self.others), self.rules, self.tol)
        self.rules, least = tightest.rules, tightest.solution.value
        free = [float((first.of(one.rules) @ one.solution.mixture).max()) for one in self._optima(self.others)]
        return np.linspace(own_bound(self.rows, least), own_bound(self.rows, max(least, *free)), n_points)

    def solve(self, levels: FloatArray) -> tuple[list[MixtureSolution | None], CutRules]:
        """Return the best mixture for each bound, None where there is none, over the rules that all of them need."""
        found: list[MixtureSolution | None] = [None] * levels.size
        for place in np.argsort(levels, kind="stable").tolist():
            if self.rows.can_show(0, float(levels[place])):
                found[place] = self._solved(float(levels[place]))
        size = len(self.rules)
        return [None if one is None else one._replace(mixture=_padded(one.mixture, size)) for one in found], self.rules

    def _solved(self, level: float) -> MixtureSolution | None:
        try:
            return self._optima(RuleLimits(self.cuts, self.rows.with_bound(0, level)))[-1].solution
        except NoMixture as error:
            self.rules = error.rules
            return None

    def _optima(self, limits: RuleLimits) -> list[Found]:
        """Return the least mean loss within limits, where a budget is counted from it, and then the least risk."""
        found = []
        if self.budget is not None:
            found.append(self._pooled(least_mean(limits, self.mean), EXACT))
            limits = limits.within(Budget(self.mean, found[0].solution.value + self.budget))
        found.append(self._pooled(RuleProgram(self.cuts, self.asked.losses, self.asked.risk, limits), self.tol))
        return found

    def _pooled(self, program: RuleProgram, tol: float) -> Found:
        """Return the best mixture, and keep the rules that were needed for what comes next."""
        found = program.solve(self.rules, tol)
        self.rules = found.rules
        return found


def _padded(mixture: FloatArray, size: int) -> FloatArray:
    return np.append(mixture, np.zeros(size - mixture.size))
