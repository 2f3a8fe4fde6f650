"""Which goals conflict for every mixture of all rules of scores, and the nearest bounds that can be met.

Each question is a program of the same family with another objective: the least violation, or the least excess of one
goal while all others are met.
"""

from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import FloatArray, IntArray
from counterpoise.goals import InfeasibleGoals
from counterpoise.goals.advice import nearest_bound, tighten_bound
from counterpoise.rules.goal_rows import GoalConstraints
from counterpoise.rules.program import NoMixture, Objective, Program
from counterpoise.rules.scores.cuts import CutRules, Cuts
from counterpoise.rules.scores.sums import RuleLimits, Sums, goals_on, scaled_sums
from counterpoise.theory.risks import CVaR, Mean

_MAX_PASSES = 20  # of the search for the nearest bound of a goal: a ratio needs three or four, a rate one
_EXACT = 1e-9  # gap of the extreme values, in parts of the range of the objective


def explain_conflict(program: Program, error: NoMixture) -> InfeasibleGoals:
    """Return which goals conflict for every mixture of all rules, given that some do.

    The conflict is explained on a pool of rules. Rules are added that meet goals of the conflict together, until none
    can; then those that violate them least; then those that come nearest to each bound while all others are met, until
    no rule at all comes nearer.
    """
    limits: RuleLimits = program.limits
    goals, cuts, rules = limits.goals, limits.cuts, error.rules
    assert goals is not None  # noqa: S101 - a budget alone can be met
    while True:
        places = _conflict(goals, cuts, error, rules)
        more = _add_rules_of(program._replace(objective=_zero_objective(cuts), limits=limits.only(places)), rules)
        if len(more) == len(rules):
            break
        rules = more
    edges = _add_least_violating(program, np.flatnonzero(np.isin(goals.places, places)), rules)
    is_proven, is_enough = True, False
    for place in places:
        edges, nearest, is_nearest = find_nearest_bound(program, place, edges)
        is_proven, is_enough = is_proven and is_nearest, is_enough or nearest is not None
    if not is_enough:  # bounds are then offered for several goals together, any of them
        sizes = goals.goal_sizes
        edges = _add_least_violating(program, np.arange(sizes.size), edges, sizes)
    if len(edges) > len(rules) and _conflict(goals, cuts, error, edges) != places:
        return explain_conflict(program, NoMixture(error.proof, edges))
    assert error.proof is not None  # noqa: S101 - every search of cuts has one
    one = goals_on(edges, goals, cuts).infeasible(error.proof)
    return one.replace(nearest_proven=one.nearest_proven and is_proven)


def _conflict(goals: GoalConstraints, cuts: Cuts, error: NoMixture, rules: CutRules) -> list[int]:
    """Return the places of goals that conflict on a pool of rules."""
    goals_of_pool = goals_on(rules, goals, cuts)
    conflict = goals_of_pool.constraints({}).conflict()
    assert error.proof is not None  # noqa: S101 - every search of cuts has one
    return goals_of_pool.conflicting(error.proof) if conflict is None else conflict[0]


def _zero_objective(cuts: Cuts) -> Objective:
    """Return an objective that is 0 for every rule, to find out whether limits can be met at all."""
    return Objective(Sums(np.zeros(1), np.zeros((1, cuts.n_cuts * (1 + cuts.defers)))), Mean())


def _add_least_violating(
    program: Program, rows: IntArray, rules: CutRules, sizes: FloatArray | float = 1.0
) -> CutRules:
    """Return the rules and those that minimise the total violation of some rows, each in parts of its size.

    The sum of what some functions have above 0 is that of the larger half of them and as many zeros: a tail.
    """
    limits: RuleLimits = program.limits
    goals = limits.goals
    assert goals is not None  # noqa: S101 - some conflict
    excess = (goals.rows[rows] - goals.bounds[rows, None]) / np.reshape(sizes, (-1, 1))
    violation = Objective(scaled_sums(np.vstack([excess, np.zeros_like(excess)]), limits.cuts), CVaR(0.5))
    return _add_rules_of(program._replace(objective=violation, limits=limits.only([])), rules)


class Nearest(NamedTuple):
    """The nearest bound of a goal over all rules, with all other goals met."""

    rules: CutRules  # a pool with a mixture that meets it
    bound: float | None  # None where there is none
    is_proven: bool  # that no mixture of any rules meets one that is tighter by ``NEAREST``


def find_nearest_bound(program: Program, place: int, rules: CutRules) -> Nearest:
    """Return the nearest bound that mixtures of all rules can meet, beginning with a pool of some.

    A ratio is one linear function for each bound: from the nearest bound of the pool to the rules that are best there
    (Dinkelbach 1967), until a bound a little tighter is proven to be out of reach of every rule.
    """
    limits: RuleLimits = program.limits
    goals, cuts, at = limits.goals, limits.cuts, limits
    assert goals is not None  # noqa: S101 - one of them is meant
    for _ in range(_MAX_PASSES):
        excess = excess_of(program.family, at, place)
        rules = _add_rules_of(excess, rules)
        nearest = nearest_bound(goals_on(rules, goals, cuts), place, {})
        if nearest is None and goals.goals[place].is_ratio:  # of rules without a denominator, or none keep the others
            divisors = np.array([-goals.divisor(row) for row in goals.rows_of(place).tolist()])
            rules = _add_rules_of(excess._replace(objective=Objective(scaled_sums(divisors, cuts), Mean())), rules)
            nearest = nearest_bound(goals_on(rules, goals, cuts), place, {})
        if nearest is None:
            return Nearest(rules, None, is_proven=True)
        at = limits._replace(goals=goals.with_bound(place, nearest))
        tighter = limits._replace(goals=goals.with_bound(place, tighten_bound(goals.goals[place], nearest)))
        try:
            rules = program._replace(objective=_zero_objective(cuts), limits=tighter).solve(start=rules).rules
        except NoMixture as error:
            return Nearest(error.rules, nearest, is_proven=True)
    return Nearest(rules, nearest, is_proven=False)


def excess_of(family: Any, limits: RuleLimits, place: int) -> Program:
    """Return the program of the least that a goal can be missed by, in its worst row, with all other goals met."""
    goals = limits.goals
    assert goals is not None  # noqa: S101 - one of them is meant
    own, others = goals.rows_of(place), [other for other in range(len(goals.goals)) if other != place]
    losses = scaled_sums(goals.rows[own] - goals.bounds[own, None], limits.cuts)
    return Program(family, Objective(losses, CVaR(1 / own.size)), limits.only(others))


def _add_rules_of(program: Program, rules: CutRules) -> CutRules:
    """Return the rules and those of the best mixture or, where none meets the limits, those that prove it."""
    try:
        rules = program.solve(_EXACT, rules).rules
    except NoMixture as error:
        rules = error.rules
    return rules
