"""The best mixture of rules for each of many bounds of a goal: each from the rules that the ones before needed."""

import numpy as np

from counterpoise._base.types import FloatArray
from counterpoise.goals import Goal
from counterpoise.mixtures.choosing import Aim
from counterpoise.mixtures.goal_rows import GoalRows, check_range, goal_rows, own_bound
from counterpoise.mixtures.scores.choosing import pose, solve, within_budget
from counterpoise.mixtures.scores.evidence import Ranked
from counterpoise.mixtures.scores.limits import RuleLimits
from counterpoise.mixtures.scores.program import FixedLosses, NoMixture, RuleProgram, as_sums
from counterpoise.mixtures.scores.rules import CutRules
from counterpoise.solvers.result import MixtureSolution
from counterpoise.theory.risks import CVaR


class RulePath:
    """Goals on the rules of scores, of which the bound of the first varies."""

    def __init__(self, ranked: Ranked, aim: Aim, goals: tuple[Goal, ...], tol: float) -> None:
        self.cuts, self.goals, self.tol = ranked.cuts, goals, tol
        rows = goal_rows(ranked.answers(), goals)
        assert isinstance(rows, GoalRows)  # noqa: S101 - there is a goal
        self.rows, self.asked = rows, pose(ranked, aim)
        self.others = RuleLimits(ranked.cuts, rows).only(list(range(1, len(goals))))
        self.rules = ranked.usual_rules()
        if aim.budget is not None:
            self.others, self.rules = within_budget(ranked, self.others, self.rules, aim.budget)

    def default_bounds(self, n_points: int) -> FloatArray:
        """Return bounds from the tightest possible to where the goal costs nothing."""
        check_range(self.rows)
        own = self.rows.rows_of(0)
        missed = self.rows.rows[own] - self.rows.bounds[own, None]
        first = FixedLosses(as_sums(missed, self.cuts))
        free = solve(RuleProgram(self.cuts, self.asked.losses, self.asked.risk, self.others), self.rules, self.tol)
        tightest = solve(RuleProgram(self.cuts, first, CVaR(1 / own.size), self.others), free.rules, self.tol)
        least = tightest.solution.value
        loosest = max(float((first.of(free.rules) @ free.solution.mixture).max()), least)
        self.rules = tightest.rules
        return np.linspace(own_bound(self.rows, least), own_bound(self.rows, loosest), n_points)

    def solve(self, levels: FloatArray) -> tuple[list[MixtureSolution | None], CutRules]:
        """Return the best mixture for each bound, None where there is none, over the rules that all of them need."""
        found: list[MixtureSolution | None] = [None] * levels.size
        for place in np.argsort(levels, kind="stable").tolist():
            if self.rows.can_show(0, float(levels[place])):
                found[place] = self._solved(float(levels[place]))
        size = len(self.rules)
        return [None if one is None else one._replace(mixture=_padded(one.mixture, size)) for one in found], self.rules

    def _solved(self, level: float) -> MixtureSolution | None:
        limits = RuleLimits(self.cuts, self.rows.with_bound(0, level), self.others.budget)
        try:
            found = RuleProgram(self.cuts, self.asked.losses, self.asked.risk, limits).solve(self.rules, self.tol)
        except NoMixture as error:
            self.rules = error.rules
            return None
        self.rules = found.rules
        return found.solution


def _padded(mixture: FloatArray, size: int) -> FloatArray:
    return np.append(mixture, np.zeros(size - mixture.size))
