"""What must hold of a mixture of rules: goals, and a budget of average loss."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from counterpoise._base.checks import check_losses
from counterpoise._base.types import ArrayLike, FloatArray, IntArray
from counterpoise.goals import InfeasibleGoals
from counterpoise.goals.advice import nearest_bound, tightened
from counterpoise.mixtures.goal_rows import GoalRows, mean_limit
from counterpoise.mixtures.scores.cuts import Cuts
from counterpoise.mixtures.scores.program import FixedLosses, NoMixture, RuleProgram, Sums, as_sums, reaching
from counterpoise.mixtures.scores.rules import CutRules
from counterpoise.solvers.linear_program import constraint_scale
from counterpoise.theory.risks import CVaR, Mean, Risk

_MAX_PASSES = 20  # of the search for the nearest bound of a goal: a ratio needs three or four, a rate one
_EXACT = 1e-9  # gap to which the edges of what is possible are found, in parts of how far what is minimized reaches


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

    @property
    def sizes(self) -> FloatArray:
        """Return the sizes of what the goals limit, then that of the mean loss."""
        goals = np.empty(0) if self.goals is None else self.goals.goal_sizes
        return goals if self.budget is None else np.append(goals, 1.0)

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
    until none can, then those that violate them least, and those that come nearest to each bound with all others kept,
    until no rule at all comes nearer.
    """
    rules = found.rules
    while True:
        places = _conflict(limits, found, rules)
        more = _pooled(limits, FixedLosses(_nothing(limits.cuts)), Mean(), places, rules)
        if len(more) == len(rules):
            break
        rules = more
    edges, is_proven = _at_the_edge(limits, places, rules)
    if len(edges) > len(rules) and _conflict(limits, found, edges) != places:
        return infeasible(limits, NoMixture(found.error, edges))
    goals = limits.goals_of(edges)
    assert goals is not None  # noqa: S101 - some conflict
    said = goals.infeasible(found.error)
    parts = said.conflict, said.least_violation, said.nearest_bounds, said.proven, said.joint_bounds, said.held_by
    return InfeasibleGoals(*parts, said.nearest_proven and is_proven)


def _conflict(limits: RuleLimits, found: NoMixture, rules: CutRules) -> list[int]:
    """Return the places of goals that conflict on a pool of rules."""
    goals = limits.goals_of(rules)
    assert goals is not None  # noqa: S101 - a budget alone can be kept
    conflict = goals.constraints({}).conflict()
    return goals.conflicting(found.error) if conflict is None else conflict[0]


def _nothing(cuts: Cuts) -> Sums:
    return Sums(np.zeros(1), np.zeros((1, cuts.n_edges)))


def _at_the_edge(limits: RuleLimits, places: list[int], rules: CutRules) -> tuple[CutRules, bool]:
    """Return the rules with those that miss conflicting goals least, together and one by one with all others kept.

    And whether no rule at all comes nearer to any of those bounds.
    """
    assert limits.goals is not None  # noqa: S101 - some conflict
    rows = np.flatnonzero(np.isin(limits.goals.places, places))
    rules = _least_violating(limits, rows, rules)
    is_proven, is_enough = True, False
    for place in places:
        rules, nearest, is_nearest = nearest_of_all(limits, place, rules)
        is_proven, is_enough = is_proven and is_nearest, is_enough or nearest is not None
    if not is_enough:  # bounds are then offered for several goals together, any of them
        sizes = limits.goals.goal_sizes
        rules = _least_violating(limits, np.arange(sizes.size), rules, sizes)
    return rules, is_proven


def _least_violating(limits: RuleLimits, rows: IntArray, rules: CutRules, sizes: FloatArray | float = 1.0) -> CutRules:
    """Return the rules with those that the least total violation of some rows needs, each in parts of a size."""
    goals = limits.goals
    assert goals is not None  # noqa: S101 - as above
    parts, bounds = goals.rows[rows] / np.reshape(sizes, (-1, 1)), goals.bounds[rows] / sizes
    return _pooled(limits, reaching(as_sums(parts, limits.cuts), limits.cuts), TotalViolation(bounds), [], rules)


class Nearest(NamedTuple):
    """The nearest bound of a goal over all rules, with all other goals kept."""

    rules: CutRules  # a pool of which a mixture meets it
    bound: float | None  # None where there is none
    is_proven: bool  # that no mixture of any rules meets one that is tighter by ``NEAREST``


def nearest_of_all(limits: RuleLimits, place: int, rules: CutRules) -> Nearest:
    """Return the nearest bound that mixtures of all rules can meet, beginning with a pool of some.

    A ratio is one linear function for each bound: from the nearest bound of the pool to the rules that are best there
    (Dinkelbach 1967), until a bound a little tighter is proven to be out of reach of every rule.
    """
    goals = limits.goals
    assert goals is not None  # noqa: S101 - one of them is meant
    goal, at = goals.goals[place], limits
    for _ in range(_MAX_PASSES):
        rules = _rules_of(excess_of(at, place), rules)
        nearest = _nearest_in(limits, place, rules)
        if nearest is None and goal.is_ratio:  # of rules without a denominator, or none keep the others
            rules = _rules_of(_largest_denominators(limits, place), rules)
            nearest = _nearest_in(limits, place, rules)
        if nearest is None:
            return Nearest(rules, None, is_proven=True)
        at = replace(limits, goals=goals.with_bound(place, nearest))
        tighter = replace(limits, goals=goals.with_bound(place, tightened(goal, nearest)))
        try:
            rules = RuleProgram(limits.cuts, FixedLosses(_nothing(limits.cuts)), Mean(), tighter).solve(rules).rules
        except NoMixture as error:
            return Nearest(error.rules, nearest, is_proven=True)
    return Nearest(rules, nearest, is_proven=False)


def _nearest_in(limits: RuleLimits, place: int, rules: CutRules) -> float | None:
    pooled = limits.goals_of(rules)
    return None if pooled is None else nearest_bound(pooled, place, {})


def _largest_denominators(limits: RuleLimits, place: int) -> RuleProgram:
    """Return the program of the largest mean denominator of a ratio's rows, with all other goals kept."""
    goals = limits.goals
    assert goals is not None  # noqa: S101 - one of them is meant
    divisors = np.array([-goals.divisor(row) for row in goals.rows_of(place).tolist()])
    losses = reaching(as_sums(divisors, limits.cuts), limits.cuts)
    return RuleProgram(limits.cuts, losses, Mean(), _without(limits, place))


def excess_of(limits: RuleLimits, place: int) -> RuleProgram:
    """Return the program of the least that a goal can be missed by, in its worst row, with all other goals kept."""
    goals = limits.goals
    assert goals is not None  # noqa: S101 - one of them is meant
    own = goals.rows_of(place)
    losses = reaching(as_sums(goals.rows[own] - goals.bounds[own, None], limits.cuts), limits.cuts)
    return RuleProgram(limits.cuts, losses, CVaR(1 / own.size), _without(limits, place))


def _without(limits: RuleLimits, place: int) -> RuleLimits:
    """Return the limits without one of the goals."""
    assert limits.goals is not None  # noqa: S101 - one of them is meant
    return limits.only([other for other in range(len(limits.goals.goals)) if other != place])


def _pooled(limits: RuleLimits, losses: FixedLosses, risk: Risk, places: list[int], rules: CutRules) -> CutRules:
    """Return the rules with those that the least risk within some of the goals needs, where any keep them."""
    return _rules_of(RuleProgram(limits.cuts, losses, risk, limits.only(places)), rules)


def _rules_of(program: RuleProgram, rules: CutRules) -> CutRules:
    try:
        return program.solve(rules, _EXACT).rules
    except NoMixture as error:
        return error.rules
