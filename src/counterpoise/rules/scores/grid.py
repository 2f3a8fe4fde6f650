"""The best mixture of the rules of one score, from a grid of its cuts: one linear program, and a proof over every cut.

A mixture of thresholds decides positive for a row with a probability that falls with the score in each group. Between
two neighbours of a grid of cuts that probability is one number, and all rows of a class there have the same loss. So
the least CVaR within limits is a linear program with a few hundred variables, whatever the number of rows. Its duals
price every cut, also those between the cuts of the grid: the least price is a lower bound over *all* mixtures of all
rules, and where that is too far away the cheapest cuts join the grid. A grid serves any tail and any limits, so one
that was refined for a setting is a start for the next.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from counterpoise._base.types import FloatArray, IntArray
from counterpoise.rules.program import Objective, Optimum, Program, generate_columns
from counterpoise.rules.scores.cuts import CutRules, Cuts
from counterpoise.rules.scores.sums import RuleLimits, cheapest_rules
from counterpoise.rules.scores.table import RankedScores
from counterpoise.solvers.linear_program import HotProgram, InfeasibleRows, LinearSolution, solve_linear_program
from counterpoise.solvers.rows import project_capped, worst_mean

_MAX_ROUNDS = 50
_MOST_PROGRAMS = 8  # that are stored
_BINS = 128  # of a fresh grid, over all groups
_LEAST_BINS = 16  # of each group
_TINY = float(np.finfo(np.float64).tiny)
_SLIVER = 1e-10  # shares below this are rounding of the solver
_SIGNS = np.array([[-1.0], [1.0]])  # what a positive decision adds to the loss of a positive and of a negative row


class GridFamily:
    """All rules of one score, from a grid of its cuts: rows are summed once by group, class and cut.

    Rules to begin with are the cuts of a grid, in rising order, such as those of another solve.
    """

    def __init__(self, ranked: RankedScores) -> None:
        self.cuts, mass = ranked.cuts, ranked.mass
        if self.cuts.n_models != 1 or self.cuts.defers:
            raise ValueError(
                f"A grid is of the cuts of one score, without deferral; got {self.cuts.n_models} score(s)"
                f"{', with deferral' if self.cuts.defers else ''}. Use CutFamily for others."
            )
        classes = (ranked.is_positive, ~ranked.is_positive)
        # of positive rows, then of negative ones: the mass down to each cut
        self.sums = np.array([self.cuts.sums(slice(mass.size), np.where(one, mass, 0.0)) for one in classes])
        self._usual: IntArray | None = None
        self._programs: list[_BinProgram] = []  # of the last few grids and limits, the newest first

    def start(self, objective: Objective | None = None) -> IntArray:  # noqa: ARG002 - as the others
        """Return the grid that any search starts with, computed once.

        Between any two neighbours of a group lies about the same mass and number of cuts.
        """
        if self._usual is not None:
            return self._usual
        starts = self.cuts.starts[0]
        n_bins = max(_BINS // (starts.size - 1), _LEAST_BINS)
        mass = self.sums.sum(axis=0)
        parts = []
        for start, end in pairwise(starts.tolist()):
            # cuts without mass separate rows of other datasets
            reached = mass[start:end] / max(mass[end - 1], _TINY) + np.linspace(0.0, 1.0, end - start)
            inner = start + np.searchsorted(reached, np.linspace(0.0, reached[-1], n_bins + 1))
            parts.append(np.unique([start, *np.minimum(inner, end - 1), end - 1]))
        self._usual = np.concatenate(parts)
        return self._usual

    def join(self, grid: IntArray, other: IntArray) -> IntArray:  # noqa: ARG002 - as the others
        """Return the other grid: it is whole by itself."""
        return other

    def optimum(self, program: Program, tol: float, grid: IntArray) -> Optimum:
        """Return the mixture with the least CVaR within limits, and its grid, or raise ``NoMixture``."""
        grid, solution, lower = generate_columns(GridSearch(program), grid, tol)
        rules, mixture = _couple(self.cuts, grid, solution.chances)
        return Optimum(grid, GridSolution(rules, mixture, solution.value, lower, solution.multipliers))

    def bin_program(self, grid: IntArray, limits: RuleLimits) -> "_BinProgram":
        """Return the program over a grid: an earlier one where that differs in right sides alone."""
        program = _BinProgram(self.cuts, self.sums, grid, limits)
        same = next((one for one in self._programs if one.is_like(program)), program)
        self._programs = [same, *(one for one in self._programs if one is not same)][:_MOST_PROGRAMS]
        return same


class GridSolution(NamedTuple):
    """The best mixture of a grid's cuts, with its certificate."""

    rules: CutRules  # that fall together in all groups
    mixture: FloatArray
    value: float  # CVaR of the mixture
    lower: float  # no mixture of any rules has less
    multipliers: FloatArray  # of the limits' rows


class GridSearch:
    """Column generation whose columns are cuts: one of each group may be mixed with any of the others."""

    def __init__(self, program: Program) -> None:
        self.family: GridFamily = program.family
        self.limits: RuleLimits = program.limits
        self.alpha, self.n_rounds = program.objective.risk.tail_fraction or 1.0, 0

    def master(self, grid: IntArray) -> "_BinSolution":
        """Return the best chances of the bins between the cuts of a grid, or raise ``InfeasibleRows``."""
        self.n_rounds += 1
        self._bins = self.family.bin_program(grid, self.limits)
        solution = self._bins.solve(self.alpha, self.limits.bounds)
        if solution is None:
            raise self._bins.proof(self.limits.bounds)
        return solution

    def price(self, grid: IntArray, solution: "_BinSolution") -> tuple[IntArray | None, float]:
        """Return the grid with cuts that cost less than its own, and a lower bound over all mixtures of all rules."""
        base, costs = self.limits.costs(solution.multipliers)
        costs = costs + self._bins.costs_of_cuts(solution.weights)
        least, _ = cheapest_rules(self.family.cuts, costs)
        constant = base - float(solution.multipliers @ self.limits.bounds) + float(solution.weights[0].sum())
        return self._grow(grid, costs), constant + float(least[0])

    def price_proof(self, grid: IntArray, error: InfeasibleRows) -> IntArray | None:
        """Return the grid with cuts that violate the limits less, at the prices of the least violation."""
        return self._grow(grid, self.limits.costs(error.multipliers / self._bins.scale)[1])

    def goes_on(self, gap: float, *, grows: bool) -> bool:  # noqa: ARG002 - as the others
        """Return whether there is another round."""
        return grows and self.n_rounds < _MAX_ROUNDS

    def _grow(self, grid: IntArray, costs: FloatArray) -> IntArray | None:
        more = np.union1d(grid, self._bins.cheaper(costs))
        return None if more.size == grid.size else more


class _BinSolution(NamedTuple):
    chances: FloatArray  # (n_bins,): the probability that rows between two neighbours are decided positive
    weights: FloatArray  # (2, n_bins): of the positive and the negative rows there, of sum 1
    multipliers: FloatArray
    value: float


class _BinProgram:
    """``min edge + sum of mass * excess / alpha`` over the chances of a grid's bins, each class with its excess."""

    def __init__(self, cuts: Cuts, sums: FloatArray, grid: IntArray, limits: RuleLimits) -> None:
        self.cuts, self.sums, self.grid = cuts, sums, grid
        groups = np.searchsorted(cuts.starts[0], grid, side="right")
        inner = groups[1:] == groups[:-1]  # where two neighbours are of one group, and so a bin
        self.above, self.below = grid[:-1][inner], grid[1:][inner]  # the cuts around each bin
        self.groups = groups[1:][inner]
        self.mass = sums[:, self.below] - sums[:, self.above]
        extremes = CutRules(np.zeros(2, dtype=np.int64), np.array([cuts.starts[0, :-1], cuts.starts[0, 1:] - 1]))
        self.scale = np.asarray(limits.as_limits(extremes)["row_scale"]) if limits.bounds.size else np.empty(0)
        rows, self.constants = _rows_at(limits, [self.below, self.above, cuts.starts[0, :1]])
        self.rows = rows / self.scale[:, None]
        self._hot: HotProgram | None = None

    def is_like(self, other: "_BinProgram") -> bool:
        """Return whether another program differs in right sides alone."""
        same = self.grid.size == other.grid.size and self.rows.shape == other.rows.shape
        return same and bool((self.grid == other.grid).all() and (self.rows == other.rows).all())

    def solve(self, alpha: float, bounds: FloatArray) -> _BinSolution | None:
        """Return the best chances; None where none meet the limits."""
        n_bins, caps = self.groups.size, (self.mass / alpha).ravel()
        solution = self._solve_hot(np.concatenate([np.zeros(n_bins), [1.0], caps]), bounds)
        return None if solution is None else self._read_solution(solution, caps)

    def _solve_hot(self, cost: FloatArray, bounds: FloatArray) -> LinearSolution | None:
        within = self._within((bounds - self.constants) / self.scale)
        if self._hot is None:
            upper = np.concatenate([np.ones(self.groups.size), np.full(2 * self.groups.size + 1, np.inf)])
            self._hot = HotProgram(cost, self._matrix(), within, lower=np.zeros(cost.size), upper=upper)
        solution = self._hot.solve(cost, within)
        if solution is None and not self._hot.is_infeasible:
            self._hot.forget()
            solution = self._hot.solve(cost, within)
        return solution

    def proof(self, bounds: FloatArray) -> InfeasibleRows:
        """Return the proof that limits cannot hold: the multipliers of their least total violation, in their scales."""
        n_bins, pairs, n_limits = self.groups.size, self._falling_pairs(), bounds.size
        falls = sp.hstack([_falls(pairs, n_bins), sp.csr_array((pairs.size, n_limits))])
        matrix = sp.vstack([falls, sp.hstack([sp.csr_array(self.rows), -sp.eye_array(n_limits)])])
        least = np.append(np.zeros(pairs.size), np.full(n_limits, -np.inf))
        most = np.append(np.full(pairs.size, np.inf), (bounds - self.constants) / self.scale)
        cost = np.append(np.zeros(n_bins), np.ones(n_limits))
        upper = np.append(np.ones(n_bins), np.full(n_limits, np.inf))
        solution = solve_linear_program(cost, matrix, (least, most), lower=np.zeros(cost.size), upper=upper)
        assert solution is not None  # noqa: S101 - any chances will do
        return InfeasibleRows(self.rows, most[pairs.size :], np.maximum(-solution.duals[pairs.size :], 0.0))

    def _read_solution(self, solution: LinearSolution, caps: FloatArray) -> _BinSolution:
        """Return vectors that lie exactly in their domains, and the value computed from them alone."""
        n_bins = self.groups.size
        free = np.clip(solution.point[:n_bins], 0.0, 1.0)  # falling within each group but for rounding
        chances = np.concatenate([np.minimum.accumulate(free[self.groups == one]) for one in np.unique(self.groups)])
        weights = project_capped(np.maximum(solution.duals[: 2 * n_bins], 0.0), caps).reshape(2, n_bins)
        multipliers = np.maximum(-solution.duals[solution.duals.size - self.scale.size :], 0.0) / self.scale
        return _BinSolution(chances, weights, multipliers, worst_mean(np.append(1.0 - chances, chances), caps))

    def costs_of_cuts(self, weights: FloatArray) -> FloatArray:
        """Return the cost of deciding positive down to each cut, by weights of the bins."""
        signed = np.divide(weights, self.mass, out=np.zeros_like(weights), where=self.mass > 0) * _SIGNS
        ends = np.cumsum((signed * self.mass).sum(axis=0))
        firsts = np.flatnonzero(np.append(True, self.groups[1:] != self.groups[:-1]))
        before = np.append(0.0, ends[:-1])
        before -= np.repeat(before[firsts], np.diff(np.append(firsts, before.size)))
        at = before - (signed * self.sums[:, self.above]).sum(axis=0)
        costs = np.zeros(self.cuts.thresholds.size)
        for place, (first, last) in enumerate(zip(self.above + 1, self.below + 1, strict=True)):
            part = slice(first, last)
            costs[part] = at[place] + signed[0, place] * self.sums[0, part] + signed[1, place] * self.sums[1, part]
        return costs

    def cheaper(self, costs: FloatArray) -> IntArray:
        """Return the cheapest cut inside each bin where it costs less than all of the grid in its group."""
        least = np.minimum.reduceat(costs[self.grid], np.searchsorted(self.grid, self.cuts.starts[0, :-1]))
        bins = zip(self.above.tolist(), self.below.tolist(), strict=True)
        inside = [above + 1 + int(costs[above + 1 : below + 1].argmin()) for above, below in bins]
        cuts = np.array(inside, dtype=np.int64)
        return np.asarray(cuts[costs[cuts] < least[self.groups - 1]])

    def _within(self, bounds: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what the rows must be at least, and at most."""
        n_bins, n_falls = self.groups.size, self._falling_pairs().size
        least = np.concatenate([np.ones(n_bins), np.zeros(n_bins + n_falls), np.full(bounds.size, -np.inf)])
        return least, np.append(np.full(2 * n_bins + n_falls, np.inf), bounds)

    def _matrix(self) -> Any:
        """Return the rows over chances, edge and excesses: of each class, that chances fall, and of the limits."""
        n_bins, pairs = self.groups.size, self._falling_pairs()
        eye, edge, none = sp.eye_array(n_bins), np.ones((n_bins, 1)), sp.csr_array((n_bins, n_bins))
        excesses = sp.vstack([sp.hstack([eye, edge, eye, none]), sp.hstack([-eye, edge, none, eye])])
        over_chances = sp.vstack([_falls(pairs, n_bins), sp.csr_array(self.rows)])
        return sp.vstack([excesses, sp.hstack([over_chances, sp.csr_array((over_chances.shape[0], 2 * n_bins + 1))])])

    def _falling_pairs(self) -> IntArray:
        """Return the bins whose next one is of the same group, and so decided positive no more often."""
        return np.flatnonzero(self.groups[1:] == self.groups[:-1])


def _falls(pairs: IntArray, n_bins: int) -> Any:
    """Return rows that are at least 0 where chances fall from bins to the next ones."""
    ones, places = np.ones(pairs.size), np.arange(pairs.size)
    entries = np.append(ones, -ones), (np.tile(places, 2), np.append(pairs, pairs + 1))
    return sp.csr_array(entries, shape=(pairs.size, n_bins))


def _rows_at(limits: RuleLimits, places: Sequence[IntArray]) -> tuple[FloatArray, FloatArray]:
    """Return what limits add from the second of some cuts to the first, and their values at the third."""
    parts = [] if limits.goals is None else [[limits.goals.rows[:, cuts] for cuts in places]]
    if limits.budget is not None:
        loss = limits.budget.loss
        parts.append([loss.added[:, cuts] + (loss.constants[:, None] if cuts is places[2] else 0.0) for cuts in places])
    if not parts:
        return np.empty((0, places[0].size)), np.empty(0)
    below, above, none_positive = (np.vstack(one) for one in zip(*parts, strict=True))
    return below - above, none_positive[:, 0]


def _couple(cuts: Cuts, grid: IntArray, chances: FloatArray) -> tuple[CutRules, FloatArray]:
    """Return rules and shares that call the rows of each bin positive with these chances, the lowest thresholds first.

    Each rule takes of every group the cut at one level of chance, so that no rule is above another in one group and
    below it in a second.
    """
    first, by_group = 0, []
    for start, end in pairwise(cuts.starts[0].tolist()):
        own = grid[(grid >= start) & (grid < end)]
        by_group.append((own, chances[first : first + own.size - 1]))
        first += own.size - 1
    levels = np.unique(np.concatenate([[0.0, 1.0], *(falls for _, falls in by_group)]))
    levels = levels[np.append(True, np.diff(levels) > _SLIVER)]
    middles, shares = (levels[1:] + levels[:-1]) / 2, np.diff(levels)
    columns = [own[np.searchsorted(-falls, -middles)] for own, falls in by_group]
    return CutRules(np.zeros(middles.size, dtype=np.int64), np.column_stack(columns)), shares / shares.sum()
