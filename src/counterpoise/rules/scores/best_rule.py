"""The best single rule of some scores on the rows, inside of goals that may be any functions of its counts.

A fixed rule that meets goals is a point of a grid with one dimension for each group. No convex program finds it, and it
need not be among the rules of the best mixture. So thresholds are searched directly, by what they come to. Where there
are few rules, as of one group, all are looked at, and the best is proven.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Self

import numpy as np

from counterpoise._base.budget import check_budget
from counterpoise._base.types import IntArray
from counterpoise.goals.binding import Views
from counterpoise.goals.terms import Pairs
from counterpoise.rules.choosing import Problem
from counterpoise.rules.evaluator import Evaluator, Function
from counterpoise.rules.margins import MarginProblem, margin_problem
from counterpoise.rules.program import with_budget
from counterpoise.rules.scores.cuts import CutRules
from counterpoise.rules.scores.family import CutFamily
from counterpoise.rules.scores.search import ON_ROWS, Judged, RulePool, all_rules, polish, search
from counterpoise.rules.scores.table import RankedScores
from counterpoise.rules.scores.threshold_grid import ThresholdCells, ThresholdGrid
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
FIRST = Effort(1 << 10, 1 << 10, 1 << 12, 0.3, is_thorough=False)  # while a bound moves
_MOST_OF_ONE = 1 << 18  # cuts of a grid with one edge, all of which are looked at
_MOST_UNPROVEN = 1 << 16  # rules of a grid without some cuts that are all looked at, which proves nothing


class FixedRule(NamedTuple):
    """The best fixed rule of a search."""

    rule: CutRules  # one
    value: float  # its objective
    violation: float  # of all limits together
    is_proven: bool  # that none meets them
    lower: float  # no rule that meets the limits has less of the objective


class RuleSearch:
    """A search that is repeated as bounds of goals move: rows are counted once for the same goals.

    Parameters
    ----------
    ranked : RankedScores
    effort : Effort
    views : Views, optional
        The rows as goals see them, which keep those of every goal so far. Default: new ones.
    """

    def __init__(self, ranked: RankedScores, effort: Effort, views: Views | None = None) -> None:
        self._ranked, self._effort = ranked, effort
        self.views = ranked.answers().views() if views is None else views
        self._counted: dict[int, CountedGrid] = {}  # by model

    def best(self, problem: Problem, start: CutRules | None = None) -> FixedRule:
        """Search for the rule of least violation and, among those, of least objective.

        A risk of zero-one losses that counts all rows alike grows with their mean, so the mean is minimised for it.

        Parameters
        ----------
        problem
            The objective and the goals.
        start
            Rules that are known to be good, such as those of the best mixture.
        """
        usual = self._ranked.usual_rules()
        start = usual if start is None else start.join(usual)
        inside = score_problem(self._ranked, problem, self.views)
        found = [
            self._best_of_model(inside, start.only(start.models == model))
            for model in range(self._ranked.cuts.n_models)
        ]
        best = min(found, key=lambda rule: (rule.violation, rule.value))
        return best._replace(is_proven=all(rule.is_proven for rule in found), lower=min(rule.lower for rule in found))

    def _best_of_model(self, inside: MarginProblem, known: CutRules) -> FixedRule:
        """Return the best rule of one model, given some of its rules."""
        ranked, effort, model = self._ranked, self._effort, int(known.models[0])
        counted = self._counted.get(model)
        if counted is None:
            has_one_edge = known.cuts.shape[1] == 1
            most = _MOST_OF_ONE if has_one_edge and effort.is_thorough else effort.most_cuts
            grid = ThresholdGrid.of(ranked, model, most)
            if not grid.is_complete:
                grid = ThresholdGrid.of(ranked, model, effort.n_bins)
            counted = CountedGrid.for_margins(grid, inside)
        self._counted[model] = counted = counted.for_problem(inside)
        best = counted.best(inside, known, effort)
        if counted.grid.is_complete or not effort.is_thorough:
            return best
        finer = ThresholdGrid.of(ranked, model, effort.n_bins, cuts_by_group(best.rule, ranked))
        return CountedGrid.for_margins(finer, inside).best(inside, best.rule, effort)


def best_fixed(
    ranked: RankedScores, problem: Problem, start: CutRules | None = None, effort: Effort = QUICK
) -> FixedRule:
    """Search once for the rule of least violation and, among those, of least objective: ``RuleSearch.best``."""
    return RuleSearch(ranked, effort).best(problem, start)


class CountedGrid(NamedTuple):
    """A grid with its rows counted."""

    grid: ThresholdGrid
    cells: ThresholdCells
    evaluator: Evaluator

    @classmethod
    def of(
        cls, grid: ThresholdGrid, functions: Sequence[Function], evaluate: Callable[[ThresholdCells], Evaluator]
    ) -> Self:
        """Count the rows that functions of answers are about by the cells of a grid."""
        cells = grid.cells(np.zeros((1, grid.sizes.size), dtype=np.int64), pairs_in(functions))
        return cls(grid, cells, evaluate(cells))

    @classmethod
    def for_margins(cls, grid: ThresholdGrid, inside: MarginProblem) -> Self:
        """Count the rows that a problem is about."""
        return cls.of(grid, inside.functions, inside.table)

    def table(self, rules: IntArray) -> Evaluator:
        """Return what rules of the grid come to."""
        return self.evaluator.with_rules(self.cells.with_rules(rules))

    def for_problem(self, inside: MarginProblem) -> Self:
        """Return the same for another problem; rows are counted again where it is about others."""
        evaluator = self.evaluator.with_functions(inside.functions)
        return self.for_margins(self.grid, inside) if evaluator is None else self._replace(evaluator=evaluator)

    def best(self, inside: MarginProblem, known: CutRules, effort: Effort) -> FixedRule:
        """Return the best rule of the grid, of which some rules are known."""
        check_budget()
        grid, start = self.grid, self.grid.places(known)

        def judge(rules: IntArray) -> Judged:
            table = self.table(rules)
            values = table.values(table.shares())
            costs = values[len(inside.parts) :]
            cost = costs.max(axis=0) + (_EVENLY * costs.mean(axis=0) if len(costs) > 1 else 0.0)
            return Judged(cost, inside.violations(values), np.zeros(len(rules)))

        most_listed = effort.most_listed if grid.is_complete else min(effort.most_listed, _MOST_UNPROVEN)
        every = all_rules(grid, most_listed)
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


def score_problem(ranked: RankedScores, problem: Problem, views: Views | None = None) -> MarginProblem:
    """Return the goals, the objective and a budget as functions of answers.

    ``views`` are the rows as goals see them, where these are known. The budget is above the least mean loss within the
    goals: of a mixture, or of one rule where goals compare ratios.
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
        ranked.views if views is None else views,
        defer_cost=ranked.defer_cost,
        budget=budget,
        persons=ranked.table.persons,
        has_fold_scores=ranked.table.has_fold_scores,
    )


def pairs_in(functions: Iterable[Function]) -> list[Pairs]:
    """Return the pairs of datasets whose rows functions of answers compare."""
    names = dict.fromkeys(count.rows.name for function in functions for count in function.row_counts)
    return [name for name in names if isinstance(name, Pairs)]


def cuts_by_group(rules: CutRules, ranked: RankedScores) -> list[IntArray]:
    """Return the cuts that rules of one model have in each group, whether of upper or of lower thresholds."""
    n_groups = ranked.cuts.n_groups
    return [np.unique(rules.cuts[:, group::n_groups] % ranked.cuts.n_cuts) for group in range(n_groups)]
