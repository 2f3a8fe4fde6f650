"""Thresholds that were tried where no single rule of scores meets the goals, and the search for more of them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from counterpoise._base.types import FloatArray, IntArray
from counterpoise.goals import Goal
from counterpoise.goals.infeasible import bound_step
from counterpoise.rules.choosing import Problem
from counterpoise.rules.evaluator import Evaluator
from counterpoise.rules.infeasible import needs_of, sizes_of
from counterpoise.rules.margins import parts_of
from counterpoise.rules.scores.best_rule import CountedGrid, cuts_by_group
from counterpoise.rules.scores.cuts import CutRules
from counterpoise.rules.scores.search import Judged, all_rules, polish, search
from counterpoise.rules.scores.table import RankedScores
from counterpoise.rules.scores.threshold_grid import ThresholdGrid

_MOST_LISTED = 1 << 17  # rules of all models that are all tried
_MOST_CUTS, _N_BINS = 1 << 13, 1 << 11  # of a model, up to which a grid has all; and of a grid of some
_ROUNDS = 0.5  # part of the usual number of rounds of a search
_N_STARTS = 20  # rules that a search begins with
_MOST_EDGES = 4  # of rules whose pairs of edges are improved at the end
_MOST_NEED = 1e3  # parts of a goal's size: more counts as this


class _TriedGrid(NamedTuple):
    """A grid of one model with its rows counted, and the goals as functions of their answers."""

    counted: CountedGrid  # the limits, and the same with looser bounds
    scales: FloatArray  # what these functions are in parts of
    allowed: FloatArray  # by how much each limit may be missed: rounding
    owners: list[int]  # the place of the goal of each limit
    steps: FloatArray  # by how much each limit's bound is looser there; 0: its goal has a confidence
    n_goals: int

    @classmethod
    def of(cls, ranked: RankedScores, goals: tuple[Goal, ...], grid: ThresholdGrid) -> "_TriedGrid":
        """Count the rows by the cells of a grid."""
        views, steps = ranked.answers().views(), [bound_step(goal) for goal in goals]
        looser = [goal.with_bound(goal.bound + goal.sign * step) for goal, step in zip(goals, steps, strict=True)]
        parts = parts_of(goals, views)
        both = (*parts, *parts_of(tuple(looser), views))
        functions, scales = [part.function for part in both], np.array([part.scale for part in both])
        counted = CountedGrid.of(grid, functions, lambda cells: Evaluator(cells, functions, views))
        owners = [part.goal for part in parts if part.goal is not None]  # as all have one
        moved = [0.0 if goals[owner].confidence is not None else steps[owner] for owner in owners]
        allowed = np.array([part.allowed * part.scale for part in parts])
        return cls(
            counted,
            scales=scales,
            allowed=allowed,
            owners=owners,
            steps=np.array(moved),
            n_goals=len(goals),
        )

    @property
    def grid(self) -> ThresholdGrid:
        """Return the grid."""
        return self.counted.grid

    def needs(self, rules: IntArray) -> FloatArray:
        """Return by how much the bound of each goal must be looser for each rule, shape (n_goals, n_rules)."""
        table = self.counted.table(rules)
        now, looser = np.split(self.scales[:, None] * table.values(table.shares()), 2)
        steps = self.steps[:, None]
        slopes = np.divide(now - looser, steps, out=np.ones_like(now), where=steps > 0)
        return needs_of(self.owners, np.where(now > self.allowed[:, None], now, 0.0), slopes, self.n_goals)


class TriedThresholds:
    """Thresholds that were tried, by what they need of each goal: see ``TriedRules``."""

    def __init__(self, ranked: RankedScores, problem: Problem, nearest: CutRules) -> None:
        self.ranked, self.goals = ranked, problem.goals
        self._grids = [self._board(model, nearest) for model in range(ranked.cuts.n_models)]
        most = _MOST_LISTED // len(self._grids)
        every = [all_rules(board.grid, most) if board.grid.is_complete else None for board in self._grids]
        self.has_all = all(one is not None for one in every)
        usual = ranked.usual_rules().join(nearest)
        self._rules = [
            board.grid.places(usual.only(usual.models == board.grid.model)) if rules is None else np.vstack(list(rules))
            for board, rules in zip(self._grids, every, strict=True)
        ]
        self._needs = [board.needs(rules) for board, rules in zip(self._grids, self._rules, strict=True)]

    def _board(self, model: int, nearest: CutRules) -> _TriedGrid:
        grid = ThresholdGrid.of(self.ranked, model, _MOST_CUTS)
        if not grid.is_complete:
            own = nearest.only(nearest.models == model)
            used = cuts_by_group(own, self.ranked) if len(own) else ()
            grid = ThresholdGrid.of(self.ranked, model, _N_BINS, used)
        return _TriedGrid.of(self.ranked, self.goals, grid)

    @property
    def needs(self) -> FloatArray:
        """Return what the rules of all models need."""
        return np.hstack(self._needs)

    def look(self, kept: Sequence[int], aim: int | None) -> None:
        """Search for rules that meet some goals and need little of another one, or of all in parts."""
        for number, board in enumerate(self._grids if not self.has_all else ()):
            sizes = sizes_of(self.goals)

            def judge(rules: IntArray, board: _TriedGrid = board, sizes: FloatArray = sizes) -> Judged:
                parts = np.minimum(board.needs(rules) / sizes, _MOST_NEED)
                cost = parts.max(axis=0) + parts.mean(axis=0) if aim is None else parts[aim]
                return Judged(cost, parts[list(kept)].sum(axis=0), np.zeros(len(rules)))

            known = judge(self._rules[number])
            best = np.lexsort((known.cost, known.violation))[:_N_STARTS]
            pool = search(board.grid, judge, self._rules[number][best], effort=_ROUNDS)
            if board.grid.sizes.size <= _MOST_EDGES:
                pool = polish(board.grid, pool, judge)
            self._rules[number] = np.vstack([self._rules[number], pool.rules])
            self._needs[number] = np.hstack([self._needs[number], board.needs(pool.rules)])

    def meets(self, rule: int, goals: tuple[Goal, ...]) -> bool:
        """Return whether a rule meets goals with other bounds."""
        number = 0
        while rule >= len(self._rules[number]):
            rule -= len(self._rules[number])
            number += 1
        board = _TriedGrid.of(self.ranked, goals, self._grids[number].grid)
        return not board.needs(self._rules[number][[rule]]).any()
