"""What must hold of a mixture of rules: goals, and a budget of average loss."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from counterpoise._base.checks import check_losses
from counterpoise._base.types import ArrayLike, FloatArray
from counterpoise.goals import InfeasibleGoals
from counterpoise.goals.advice import nearest_bound
from counterpoise.mixtures.goal_rows import GoalRows, mean_limit
from counterpoise.mixtures.scores.cuts import Cuts
from counterpoise.mixtures.scores.program import FixedLosses, NoMixture, RuleProgram, Sums, as_sums
from counterpoise.mixtures.scores.rules import CutRules
from counterpoise.solvers.result import constraint_scale
from counterpoise.theory.risks import CVaR, Mean, Risk

_MAX_PASSES = 20  # of the search for the nearest bound of a ratio: three or four are enough
_EXACT = 1e-9  # gap to which the edges of what is possible are found


class Budget(NamedTuple):
    """The mean loss of a rule, and the most that it may be."""

    loss: Sums  # one function
    most: float


@dataclass(frozen=True)
class RuleLimits:
    """Goals, known for the rules that call one group positive up to a cut, and a budget."""

    cuts: Cuts
    goals: GoalRows | None
    budget: Budget | None = None

    @property
    def bounds(self) -> FloatArray:
        """Return the bounds of the goals, then that of the budget."""
        goals = np.empty(0) if self.goals is None else self.goals.bounds
        return goals if self.budget is None else np.append(goals, self.budget.most)

    def goals_of(self, rules: CutRules) -> GoalRows | None:
        """Return the goals as rows on some rules."""
        if self.goals is None:
            return None
        rows, slopes = (self._looked_up(part, rules) for part in (self.goals.rows, self.goals.row_slopes))
        return self.goals._replace(rows=rows, row_slopes=slopes)

    def rows_of(self, rules: CutRules) -> GoalRows | None:
        """Return the goals and then the budget as rows on some rules."""
        goals = self.goals_of(rules)
        if self.budget is None:
            return goals
        kept = mean_limit(self.budget.loss.of(rules)[0], self.budget.most)
        return kept if goals is None else goals.joined(kept)

    def _looked_up(self, matrix: FloatArray, rules: CutRules) -> FloatArray:
        nobody = matrix[:, self.cuts.starts[0, 0]][:, None]
        return nobody + sum(matrix[:, cuts] - nobody for cuts in rules.cuts.T)

    def as_limits(self, rules: CutRules) -> dict[str, Any]:
        """Return them as arguments of a solver."""
        goals = self.goals_of(rules)
        limits = {} if goals is None else goals.as_limits()
        if self.budget is None:
            return limits
        row = self.budget.loss.of(rules)
        scale = constraint_scale(np.abs(row).max(axis=1), np.array([self.budget.most]))
        if goals is None:
            return {"rows": row, "bounds": self.bounds, "row_scale": scale}
        return {
            "rows": np.vstack([limits["rows"], row]),
            "bounds": self.bounds,
            "row_scale": np.append(limits["row_scale"], scale),
        }

    def as_sums(self) -> Sums:
        """Return the rows for every cut."""
        parts = [] if self.goals is None else [as_sums(self.goals.rows, self.cuts)]
        parts += [] if self.budget is None else [self.budget.loss]
        return Sums(np.concatenate([part.constants for part in parts]), np.vstack([part.added for part in parts]))

    def costs(self, multipliers: FloatArray) -> tuple[float, FloatArray]:
        """Return the weighted sum of the rows: for the rule that calls nobody positive, and what each cut adds."""
        base, costs = 0.0, np.zeros(self.cuts.n_edges)
        if self.goals is not None:
            for place in np.flatnonzero(multipliers[: len(self.goals.bounds)]).tolist():  # few: most goals cost nothing
                costs += multipliers[place] * self.goals.rows[place]
            base = float(costs[self.cuts.starts[0, 0]])
            costs -= base
        if self.budget is not None:
            constant, added = self.budget.loss.costs(multipliers[-1:])
            base, costs = base + constant, costs + added
        return base, costs

    def within(self, budget: Budget) -> Self:
        """Return the same goals within a budget."""
        return replace(self, budget=budget)

    def only(self, places: list[int]) -> Self:
        """Return the limits with some of the goals."""
        assert self.goals is not None  # noqa: S101 - there are goals to take some of
        return replace(self, goals=self.goals.some(places))


class TotalViolation(Risk):
    """The sum of what linear functions have above their bounds."""

    def __init__(self, bounds: FloatArray) -> None:
        self.bounds = bounds

    def value(self, losses: ArrayLike, sample_weight: ArrayLike | None = None) -> float:  # noqa: ARG002 - one for each
        """Return the sum."""
        return float(np.maximum(check_losses(losses, ndim=1) - self.bounds, 0.0).sum())

    def subgradient(self, losses: ArrayLike, sample_weight: ArrayLike | None = None) -> FloatArray:  # noqa: ARG002
        """Return 1 for each function that is above its bound."""
        return (check_losses(losses, ndim=1) > self.bounds).astype(np.float64)


def infeasible(limits: RuleLimits, found: NoMixture) -> InfeasibleGoals:
    """Return which goals conflict for every mixture of all rules, given that some do.

    What is said about the conflict is found on a pool of rules: first those are added that keep goals of it together,
    until none can, then those that violate them least, and those that come nearest to each bound with all others kept.
    """
    rules = found.rules
    while True:
        goals = limits.goals_of(rules)
        assert goals is not None  # noqa: S101 - a budget alone can be kept
        said = goals.infeasible(found.error)
        places = sorted(goals.goals.index(goal) for goal in said.conflict)
        more = _pooled(limits, FixedLosses(_nothing(limits.cuts)), Mean(), places, rules)
        if len(more) == len(rules):
            break
        rules = more
    edges = _at_the_edge(limits, places, rules)
    goals = limits.goals_of(edges)
    assert goals is not None  # noqa: S101 - as above
    said = goals.infeasible(found.error)
    is_same = sorted(goals.goals.index(goal) for goal in said.conflict) == places
    return said if is_same or len(edges) == len(rules) else infeasible(limits, NoMixture(found.error, edges))


def _nothing(cuts: Cuts) -> Sums:
    return Sums(np.zeros(1), np.zeros((1, cuts.n_edges)))


def _at_the_edge(limits: RuleLimits, places: list[int], rules: CutRules) -> CutRules:
    """Return the rules with those that miss conflicting goals least, together and one by one with all others kept."""
    assert limits.goals is not None  # noqa: S101 - some conflict
    rows = np.flatnonzero(np.isin(limits.goals.places, places))
    conflict = as_sums(limits.goals.rows[rows], limits.cuts)
    rules = _pooled(limits, FixedLosses(conflict), TotalViolation(limits.goals.bounds[rows]), [], rules)
    for place in places:
        rules = _at_the_edge_of(limits, place, rules)
    return rules


def _at_the_edge_of(limits: RuleLimits, place: int, rules: CutRules) -> CutRules:
    """Return the rules with those that come nearest to one bound with all other goals kept.

    A ratio is one linear function for each bound: from the nearest bound of the pool to the rules that are best there,
    until none are missing (Dinkelbach 1967).
    """
    goals = limits.goals
    assert goals is not None  # noqa: S101 - one of them is meant
    is_ratio = goals.row_slopes[goals.rows_of(place)].any()
    for _ in range(_MAX_PASSES):
        more = _rules_of(excess_of(replace(limits, goals=goals), place), rules)
        if len(more) == len(rules) or not is_ratio:
            return more
        rules, pooled = more, limits.goals_of(more)
        nearest = None if pooled is None else nearest_bound(pooled, place, {})
        if nearest is None:
            return rules
        goals = limits.goals.with_bound(place, nearest)  # type: ignore[union-attr]
    return rules


def excess_of(limits: RuleLimits, place: int) -> RuleProgram:
    """Return the program of the least that a goal can be missed by, in its worst row, with all other goals kept."""
    goals = limits.goals
    assert goals is not None  # noqa: S101 - one of them is meant
    own = goals.rows_of(place)
    losses = FixedLosses(as_sums(goals.rows[own] - goals.bounds[own, None], limits.cuts))
    others = [other for other in range(len(goals.goals)) if other != place]
    return RuleProgram(limits.cuts, losses, CVaR(1 / own.size), limits.only(others))


def _pooled(limits: RuleLimits, losses: FixedLosses, risk: Risk, places: list[int], rules: CutRules) -> CutRules:
    """Return the rules with those that the least risk within some of the goals needs, where any keep them."""
    return _rules_of(RuleProgram(limits.cuts, losses, risk, limits.only(places)), rules)


def _rules_of(program: RuleProgram, rules: CutRules) -> CutRules:
    try:
        return program.solve(rules, _EXACT).rules
    except NoMixture as error:
        return error.rules
