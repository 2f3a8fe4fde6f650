"""The best mixture of rules of class probabilities for each of many bounds of a goal."""

import numpy as np

from counterpoise._base.types import FloatArray
from counterpoise.goals import Goal, InfeasibleGoals
from counterpoise.mixtures.choosing import Aim
from counterpoise.mixtures.class_scores.choosing import pose, starting_rules, within_budget
from counterpoise.mixtures.class_scores.evidence import Known
from counterpoise.mixtures.class_scores.limits import limits_of
from counterpoise.mixtures.class_scores.program import ClassProgram, Found, NotKept, RowLosses
from counterpoise.mixtures.class_scores.tiers import ClassRule
from counterpoise.solvers.linear_program import MixtureSolution


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
