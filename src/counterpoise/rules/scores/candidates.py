"""Rules of scores with margins: the search for those that are the best at any margin, and the choice among them."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from counterpoise._base.types import FloatArray, IntArray
from counterpoise.rules.choosing import Problem, value_of
from counterpoise.rules.evaluator import Evaluator
from counterpoise.rules.margins import (
    TARGETS,
    Candidates,
    MarginProblem,
    Margins,
    SafeRule,
    TargetPath,
    describe_margins,
    follow_targets,
)
from counterpoise.rules.program import Choice, build_objective
from counterpoise.rules.scores.best_rule import CountedGrid, cuts_by_group, score_problem
from counterpoise.rules.scores.cuts import CutRules, Rule
from counterpoise.rules.scores.family import CutFamily
from counterpoise.rules.scores.search import Judged, RulePool, all_rules, search
from counterpoise.rules.scores.sums import Sums
from counterpoise.rules.scores.table import RankedScores
from counterpoise.rules.scores.threshold_grid import ThresholdGrid

_MOST_CUTS = 1 << 14  # of a model, up to which a grid has all
_MOST_LISTED = 1 << 15  # rules of a grid that are all looked at
_EVERY = 4  # targets, of which the best rules of one are moved in the search
_MOST_RULES = 2000  # that are kept for the choice
# Of what the best rule without margins tells about labels, by its true less its false positive rate: rules that tell
# less are nearly trivial, and no choice. It does not depend on costs, so that looser bounds leave at least as many.
_LEAST_INFORMED = 0.25


class CutPath(NamedTuple):
    """Rules of scores from the cheapest to the safest."""

    rules: CutRules
    path: TargetPath

    def safe_rule(self, confidence: float) -> tuple[CutRules, SafeRule]:
        """Return the rule of least cost whose goals hold on new rows, and how sure that is."""
        safe = self.path.safe_rule(confidence)
        return self.rules.only(np.array([safe.place])), safe


def follow_cuts(ranked: RankedScores, problem: Problem, plain: CutRules, confidence: float = 0.9) -> CutPath:
    """Return the rules that are the best with margins of any size, given the best rule without.

    Where no rule reaches the confidence whatever other goals there are, as in a small group, there is no margin.
    """
    rules, (table, margins) = find_candidates(ranked, problem, plain, confidence=confidence)
    return CutPath(rules, follow_targets(table, margins))


def find_candidates(
    ranked: RankedScores,
    problem: Problem,
    plain: CutRules,
    *,
    targets: FloatArray = TARGETS,
    row_factor: float = 1.0,
    confidence: float | None = None,
) -> tuple[CutRules, Candidates]:
    """Return the rules to choose among, given the best one without margins, and what they come to.

    ``targets`` are those of safety for which rules are searched. With a ``row_factor`` that is on so many times the
    rows, and with a ``confidence`` without the margins that no rule has.
    """
    moved = np.concatenate([[-np.inf], np.sort(targets)[::_EVERY], [np.inf]])  # whose rules are moved
    losses = build_objective(CutFamily(ranked), problem.objective).losses
    inside = score_problem(ranked, problem)._replace(row_factor=row_factor)
    grid = ThresholdGrid.of(ranked, int(plain.models[0]), _MOST_CUTS, cuts_by_group(plain, ranked))
    board = _MarginGrid.of(grid, inside, losses, grid.places(plain)[0])
    pool = board.search(grid.places(plain), moved)
    if confidence is not None:
        hopeful = board.problem.without_hopeless(board.table(pool.near_frontier(_MOST_RULES).rules), confidence)
        if hopeful.set_aside:
            board = board._replace(problem=hopeful)
            pool = board.search(pool.rules[np.unique(pool.best(moved))], moved)
    first = grid.places(plain)
    informed = grid.informedness(pool.rules)
    pool = pool.only(informed >= _LEAST_INFORMED * grid.informedness(first)[0]).near_frontier(_MOST_RULES)
    rules = np.vstack([first, pool.rules[(pool.rules != first[0]).any(axis=1)]])
    return grid.cut_rules(rules), Candidates(board.table(rules), board.problem)


class _MarginGrid(NamedTuple):
    """A grid with its rows counted, and the goals with margins that its rules are judged by."""

    counted: CountedGrid
    problem: MarginProblem
    losses: FloatArray  # what each place of each edge adds to the objective, smoothed
    constants: FloatArray

    @classmethod
    def of(cls, grid: ThresholdGrid, problem: MarginProblem, losses: Sums, plain: IntArray) -> "_MarginGrid":
        """Count the rows by the cells of a grid; how alike rows of a person are is measured at the best rule."""
        counted = CountedGrid.for_margins(grid, problem)
        if problem.persons:
            table = counted.table(plain[None])
            problem = problem._replace(widening=problem.widened_at(table, table.shares(), 0))
        return cls(counted, problem, grid.smoothed(losses), losses.constants)

    def search(self, start: IntArray, targets: FloatArray) -> RulePool:
        """Return the rules among which those of least cost are for each target."""
        every = all_rules(self.counted.grid, _MOST_LISTED)
        if every is not None:
            return RulePool.of(np.vstack([start[:1], *every]), self.judge)
        return search(self.counted.grid, self.judge, start, targets)

    def table(self, rules: IntArray) -> Evaluator:
        """Return what rules come to."""
        grid, table = self.counted.grid, self.counted.table(rules)
        table.cost = (self.constants[:, None] + self.losses[:, grid.edges() + rules].sum(axis=2)).max(axis=0)
        as_cuts = grid.cut_rules(rules)
        decided = grid.ranked.as_decided(as_cuts)
        if decided is not as_cuts:
            table.shifts = self.problem.shifts_to(self.counted.table(grid.places(decided)), table)
        return table

    def judge(self, rules: IntArray) -> Judged:
        """Return cost, violation and risk of rules."""
        table = self.table(rules)
        shares = table.shares()
        ranking, _, _ = self.problem.judge(table, shares)
        return Judged(ranking.cost, self.problem.violations(table.values(shares)), ranking.risk)


def with_margins(
    ranked: RankedScores, problem: Problem, plain: Choice, confidence: float, path: CutPath | None = None
) -> tuple[Choice, Margins]:
    """Return one rule whose goals hold on new rows in the place of the best one, and the margins of the goals.

    The ``path`` of ``follow_cuts`` may be known: it serves any confidence.
    """
    path = follow_cuts(ranked, problem, plain.rules, confidence) if path is None else path
    rule, safe = path.safe_rule(confidence)
    predictions = ranked.predictions_of(rule)
    value = value_of(predictions, problem, np.ones(1))
    margins = describe_margins(safe, predictions.answers.checks(problem.goals, np.ones(1)))
    return plain._replace(rules=rule, value=value, is_usual=False), margins


def with_proven(ranked: RankedScores, problem: Problem, plain: Choice, rule: CutRules) -> tuple[Choice, Margins]:
    """Return a rule that is proven in the place of the best one, and how far it is inside of the goals."""
    predictions = ranked.predictions_of(rule)
    value = value_of(predictions, problem, np.ones(1))
    inside = score_problem(ranked, problem._replace(budget=None))
    grid = ThresholdGrid.of(ranked, int(rule.models[0]), _MOST_CUTS, cuts_by_group(rule, ranked))
    table = CountedGrid.for_margins(grid, inside).table(grid.places(rule))
    margins = describe_margins(
        Candidates(table, inside).at(max(value - plain.value, 0.0)),
        predictions.answers.checks(problem.goals, np.ones(1)),
    )
    return plain._replace(rules=rule, value=value, is_usual=False), margins


def with_rules_between(rules: list[Rule], n_rules: int) -> list[Rule]:
    """Return rules of one model with about so many in all, by thresholds between those of one and the next.

    On few rows thresholds lie far apart, and what is between them is not chosen by these rows.

    Examples
    --------
    >>> from counterpoise.rules.scores.candidates import with_rules_between
    >>> from counterpoise.rules.scores.cuts import Rule
    >>> [rule.thresholds["all"] for rule in with_rules_between([Rule(0, {"all": 0.2}), Rule(0, {"all": 0.4})], 3)]
    [0.2, 0.30000000000000004, 0.4]
    """
    if len(rules) < 2:  # noqa: PLR2004 - a pair
        return rules
    n_between = max((n_rules - len(rules)) // (len(rules) - 1), 0)
    all_rules = [rules[0]]
    for one, other in pairwise(rules):
        for part in np.linspace(0.0, 1.0, n_between + 2)[1:-1].tolist():
            own = [
                {name: _between(level, second[name], part) for name, level in first.items()}
                for first, second in ((one.thresholds, other.thresholds), (_lower(one), _lower(other)))
            ]
            all_rules.append(Rule(one.model, own[0], None if own[1] == own[0] else own[1]))
        all_rules.append(other)
    return all_rules


def _lower(rule: Rule) -> dict[str, float]:
    return rule.thresholds if rule.lower is None else rule.lower


def _between(one: float, other: float, part: float) -> float:
    return one + part * (other - one) if np.isfinite([one, other]).all() else one
