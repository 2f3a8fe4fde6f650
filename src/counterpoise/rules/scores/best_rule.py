"""The best single rule of some scores on the rows, inside of goals that may be any functions of its counts.

A fixed rule that meets goals is a point of a grid with one dimension for each group. No convex program finds it, and it
need not be among the rules of the best mixture. So thresholds are searched directly, by what they come to. Where there
are few rules, as of one group, all are looked at, and the best is proven.
"""

from typing import NamedTuple

import numpy as np

from counterpoise._base.budget import check_budget
from counterpoise._base.types import IntArray
from counterpoise.goals.terms import Pairs
from counterpoise.rules.choosing import Problem
from counterpoise.rules.margins import MarginProblem, margin_problem
from counterpoise.rules.program import with_budget
from counterpoise.rules.scores.cuts import CutRules
from counterpoise.rules.scores.family import CutFamily
from counterpoise.rules.scores.search import ON_ROWS, Judged, RulePool, all_rules, polish, search
from counterpoise.rules.scores.table import RankedScores
from counterpoise.rules.scores.threshold_grid import ThresholdGrid
from counterpoise.theory.risks import CVaR

_EVENLY = 1e-9  # part of the mean of the groups' losses by which rules count that are as good for the worst group


class Effort(NamedTuple):
    """How finely rules are searched for."""

    most_cuts: int  # of a model, up to which a grid has all
    n_bins: int  # of a grid of some
    most_listed: int  # rules of a grid that are all looked at
    rounds: float  # part of the usual number
    is_thorough: bool  # whether the best rule is improved by pairs of edges, and its grid refined


THOROUGH = Effort(1 << 14, 1 << 12, 1 << 22, 1.0, is_thorough=True)
QUICK = Effort(1 << 8, 1 << 8, 1 << 16, 0.3, is_thorough=False)  # for bounds to offer, which take many searches
_MOST_OF_ONE = 1 << 18  # cuts of a grid with one edge, all of which are looked at


class FixedRule(NamedTuple):
    """The best fixed rule of a search."""

    rule: CutRules  # one
    value: float  # its objective
    violation: float  # of all limits together
    is_proven: bool  # that none meets them
    lower: float  # no rule that meets the limits has less of the objective


def best_fixed(
    ranked: RankedScores, problem: Problem, start: CutRules | None = None, effort: Effort = QUICK
) -> FixedRule:
    """Search for the rule of least violation and, among those, of least objective.

    A risk of zero-one losses that counts all rows alike grows with their mean, so the mean is minimised for it.

    Parameters
    ----------
    ranked, problem
        The scores, and the objective and goals.
    start
        Rules that are known to be good, such as those of the best mixture.
    effort
    """
    start = ranked.usual_rules() if start is None else start.join(ranked.usual_rules())
    inside = score_problem(ranked, problem)
    found = [
        _best_of_model(ranked, inside, start.only(start.models == model), effort)
        for model in range(ranked.cuts.n_models)
    ]
    best = min(found, key=lambda rule: (rule.violation, rule.value))
    return best._replace(is_proven=all(rule.is_proven for rule in found), lower=min(rule.lower for rule in found))


def _best_of_model(ranked: RankedScores, inside: MarginProblem, known: CutRules, effort: Effort) -> FixedRule:
    """Return the best rule of one model, given some of its rules."""
    model, has_one_edge = int(known.models[0]), known.cuts.shape[1] == 1
    grid = ThresholdGrid.of(ranked, model, _MOST_OF_ONE if has_one_edge and effort.is_thorough else effort.most_cuts)
    if not grid.is_complete:
        grid = ThresholdGrid.of(ranked, model, effort.n_bins)
    best = _best_of_grid(grid, inside, known, effort)
    if grid.is_complete or not effort.is_thorough:
        return best
    finer = ThresholdGrid.of(ranked, model, effort.n_bins, cuts_by_group(best.rule, ranked))
    return _best_of_grid(finer, inside, best.rule, effort)


def _best_of_grid(grid: ThresholdGrid, inside: MarginProblem, known: CutRules, effort: Effort) -> FixedRule:
    """Return the best rule of a grid, of which some rules are known."""
    check_budget()
    start = grid.places(known)
    cells = grid.cells(start, pairs_of(inside))
    evaluator = inside.table(cells)

    def judge(rules: IntArray) -> Judged:
        table = evaluator.with_rules(cells.with_rules(rules))
        values = table.values(table.shares())
        costs = values[len(inside.parts) :]
        cost = costs.max(axis=0) + (_EVENLY * costs.mean(axis=0) if len(costs) > 1 else 0.0)
        return Judged(cost, inside.violations(values), np.zeros(len(rules)))

    every = all_rules(grid, effort.most_listed)
    if every is None:
        pool = search(grid, judge, start, effort=effort.rounds)
        pool = polish(grid, pool, judge) if effort.is_thorough else pool
    else:
        pool = RulePool.of(start[:1], judge)
        for rules in every:
            some = RulePool.of(rules, judge)
            pool = pool.joined(some.rules[some.best(ON_ROWS[:1])], judge)
    place = int(pool.best(ON_ROWS[:1])[0])
    value, violation = float(pool.judged.cost[place]), float(pool.judged.violation[place])
    is_proven = every is not None and grid.is_complete
    lower = -np.inf if not is_proven else np.inf if violation > 0 else value
    return FixedRule(grid.cut_rules(pool.rules[[place]]), value, violation, is_proven and violation > 0, lower)


def score_problem(ranked: RankedScores, problem: Problem) -> MarginProblem:
    """Return the goals, the objective and a budget as functions of answers.

    The budget is above the least mean loss within the goals: of a mixture, or of one rule where goals compare ratios.
    """
    budget = None
    if problem.budget is not None and any(goal.compares_ratios for goal in problem.goals):
        best = best_fixed(ranked, problem._replace(objective=CVaR(1.0), budget=None))
        budget = best.value + problem.budget if best.violation == 0 else None
    elif problem.budget is not None:
        family = CutFamily(ranked)
        budget = float(with_budget(family, family.limits(problem.goals), problem.budget)[0].budget.most[0])
    return margin_problem(
        problem,
        ranked.answers().views(),
        defer_cost=ranked.defer_cost,
        budget=budget,
        persons=ranked.table.persons,
        has_fold_scores=ranked.table.has_fold_scores,
    )


def pairs_of(inside: MarginProblem) -> list[Pairs]:
    """Return the pairs of datasets whose rows goals, or the objective, compare."""
    functions = [*(part.function for part in inside.parts), *inside.costs]
    names = dict.fromkeys(count.rows.name for function in functions for count in function.row_counts)
    return [name for name in names if isinstance(name, Pairs)]


def cuts_by_group(rules: CutRules, ranked: RankedScores) -> list[IntArray]:
    """Return the cuts that rules of one model have in each group, whether of upper or of lower thresholds."""
    n_groups = ranked.cuts.n_groups
    return [np.unique(rules.cuts[:, group::n_groups] % ranked.cuts.n_cuts) for group in range(n_groups)]
