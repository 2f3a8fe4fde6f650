"""The best mixture of the rules of one score, from a grid of its cuts: one linear program, and a proof over every cut.

What a mixture of thresholds says about a row is how likely it calls the row positive, which falls with the score in
each group. Between two neighbours of a grid of cuts that chance is one number, and all rows of a class there lose
alike, so the least CVaR within limits is a linear program with a few hundred variables, whatever the number of rows.
Its duals price every cut, those between the cuts of the grid too: the least price is a lower bound over *all* mixtures
of all rules, and where that is too far away the cheapest cuts join the grid. The cuts of a grid serve any tail and any
limits, so one that was refined for a setting is a start for the next.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from counterpoise._base.types import FloatArray, IntArray
from counterpoise.rules.scores.cuts import CutRules, Cuts
from counterpoise.rules.scores.program import TOL, RuleLimits, cheapest_rules
from counterpoise.rules.scores.table import RankedScores
from counterpoise.solvers.linear_program import FEASIBLE, HotProgram, LinearSolution, solve_linear_program
from counterpoise.solvers.rows import project_capped, worst_mean

_MAX_ROUNDS = 50
_MOST_PROGRAMS = 8  # kept
_BINS = 128  # of a fresh grid, over all groups
_LEAST_BINS = 16  # of each group
_TINY = float(np.finfo(np.float64).tiny)
_SLIVER = 1e-10  # shares below this are rounding of the solver
_SIGNS = np.array([[-1.0], [1.0]])  # what calling a positive and a negative row positive adds to its loss


class GridSolution(NamedTuple):
    """The best mixture found, what proves it, and the grid that it needed."""

    rules: CutRules  # that fall together in all groups
    mixture: FloatArray
    value: float  # CVaR of the mixture
    lower: float  # no mixture of any rules has less
    multipliers: FloatArray  # of the limits' rows
    grid: IntArray
    n_rounds: int


class RuleGrid:
    """The rows of one score by group, class and cut, summed once: what every program over a grid is made of."""

    def __init__(self, ranked: RankedScores) -> None:
        self.cuts, mass = ranked.cuts, ranked.mass
        if self.cuts.n_models != 1 or self.cuts.defers:
            raise ValueError(
                f"A grid is of the cuts of one score, without deferral; got {self.cuts.n_models} score(s)"
                f"{', with deferral' if self.cuts.defers else ''}. Use choose_rules for others."
            )
        classes = (ranked.is_positive, ~ranked.is_positive)
        # of positive rows, then of negative ones: the mass down to each cut
        self.sums = np.array([self.cuts.sums(slice(mass.size), np.where(one, mass, 0.0)) for one in classes])
        self._usual: IntArray | None = None
        self._programs: list[_Program] = []  # of the last few grids and limits, the newest first

    def usual(self) -> IntArray:
        """Return the grid that any search may begin with, found once.

        There is about as much of the mass and of the cuts between any two neighbours of a group.
        """
        if self._usual is not None:
            return self._usual
        starts = self.cuts.starts[0]
        n_bins = max(_BINS // (starts.size - 1), _LEAST_BINS)
        mass = self.sums.sum(axis=0)
        parts = []
        for start, end in pairwise(starts.tolist()):
            # cuts without mass tell rows of other datasets apart
            reached = mass[start:end] / max(mass[end - 1], _TINY) + np.linspace(0.0, 1.0, end - start)
            inner = start + np.searchsorted(reached, np.linspace(0.0, reached[-1], n_bins + 1))
            parts.append(np.unique([start, *np.minimum(inner, end - 1), end - 1]))
        self._usual = np.concatenate(parts)
        return self._usual

    def solve(
        self, alpha: float, limits: RuleLimits, grid: IntArray | None = None, tol: float = TOL
    ) -> GridSolution | None:
        """Return the mixture with the least CVaR within limits, or None where no mixture of any rules keeps them.

        Parameters
        ----------
        alpha : float in (0, 1]
        limits : RuleLimits
        grid : array of cuts, optional
            To begin with, ascending: those of another solve. Default: ``usual()``.
        tol : float
            The gap between value and lower bound that is good enough.
        """
        grid = self.usual() if grid is None else grid
        lower, n_rounds = -np.inf, 0
        while True:
            n_rounds += 1
            program = self._program(grid, limits)
            found = program.solve(alpha, limits.bounds)
            if found is None:
                wider = self._keeping(grid, limits)
                if wider is None or wider.size == grid.size:
                    return None
                grid = wider
                continue
            proven, more = self._priced(program, found, limits)
            lower = max(lower, proven)
            if found.value - lower <= tol or n_rounds == _MAX_ROUNDS or more.size == grid.size:
                rules, mixture = _coupled(self.cuts, grid, found.chances)
                return GridSolution(rules, mixture, found.value, lower, found.multipliers, grid, n_rounds)
            grid = more

    def can_hold(self, limits: RuleLimits, grid: IntArray | None = None) -> bool:
        """Tell whether a mixture of any rules keeps limits, beginning with those of a grid."""
        grid = self.usual() if grid is None else grid
        return self._program(grid, limits).can_hold(limits.bounds) or self._keeping(grid, limits) is not None

    def _keeping(self, grid: IntArray, limits: RuleLimits) -> IntArray | None:
        """Return a grid on which limits can hold, given one on which they cannot; None where they can on none.

        The duals of the least violation price every cut: where none is cheaper than those of the grid, it is proven.
        """
        for _ in range(_MAX_ROUNDS):
            program = self._program(grid, limits)
            violation, multipliers = program.least_violation(limits.bounds)
            if violation <= FEASIBLE:
                return grid
            _, costs = limits.costs(multipliers)
            more = np.union1d(grid, program.cheaper(costs))
            if more.size == grid.size:
                return None
            grid = more
        return None

    def _program(self, grid: IntArray, limits: RuleLimits) -> "_Program":
        """Return the program over a grid: an earlier one where that differs in right sides alone."""
        program = _Program(self.cuts, self.sums, grid, limits)
        found = next((one for one in self._programs if one.is_like(program)), program)
        self._programs = [found, *(one for one in self._programs if one is not found)][:_MOST_PROGRAMS]
        return found

    def _priced(self, program: "_Program", found: "_Found", limits: RuleLimits) -> tuple[float, IntArray]:
        """Return a lower bound over all mixtures of all rules, and the grid with cuts that cost less than its own."""
        base, costs = limits.costs(found.multipliers)
        costs = costs + program.costs_of_cuts(found.weights)
        least, _ = cheapest_rules(self.cuts, costs)
        constant = base - float(found.multipliers @ limits.bounds) + float(found.weights[0].sum())
        return constant + float(least[0]), np.union1d(program.grid, program.cheaper(costs))


class _Found(NamedTuple):
    chances: FloatArray  # (n_bins,): how likely the rows between two neighbours are called positive
    weights: FloatArray  # (2, n_bins): of the positive and the negative rows there, of sum 1
    multipliers: FloatArray
    value: float


class _Program:
    """``min edge + sum of mass * excess / alpha`` over the chances of a grid's bins, each class with its excess."""

    def __init__(self, cuts: Cuts, sums: FloatArray, grid: IntArray, limits: RuleLimits) -> None:
        self.cuts, self.sums, self.grid = cuts, sums, grid
        groups = np.searchsorted(cuts.starts[0], grid, side="right")
        inner = groups[1:] == groups[:-1]  # where two neighbours are of one group, and so a bin
        self.above, self.below = grid[:-1][inner], grid[1:][inner]  # the cuts around each bin
        self.groups = groups[1:][inner]
        self.mass = sums[:, self.below] - sums[:, self.above]
        whole = CutRules(np.zeros(2, dtype=np.int64), np.array([cuts.starts[0, :-1], cuts.starts[0, 1:] - 1]))
        self.scale = np.asarray(limits.as_limits(whole)["row_scale"]) if limits.bounds.size else np.empty(0)
        rows, self.constants = _rows_at(limits, [self.below, self.above, cuts.starts[0, :1]])
        self.rows = rows / self.scale[:, None]
        self._hot: HotProgram | None = None

    def is_like(self, other: "_Program") -> bool:
        """Tell whether another program differs in right sides alone."""
        same = self.grid.size == other.grid.size and self.rows.shape == other.rows.shape
        return same and bool((self.grid == other.grid).all() and (self.rows == other.rows).all())

    def solve(self, alpha: float, bounds: FloatArray) -> _Found | None:
        """Return the best chances; None where none keep the limits."""
        n_bins, caps = self.groups.size, (self.mass / alpha).ravel()
        found = self._solved(np.concatenate([np.zeros(n_bins), [1.0], caps]), bounds)
        return None if found is None else self._read(found, caps)

    def can_hold(self, bounds: FloatArray) -> bool:
        """Tell whether some chances keep the limits."""
        return self._solved(np.zeros(3 * self.groups.size + 1), bounds) is not None

    def _solved(self, cost: FloatArray, bounds: FloatArray) -> LinearSolution | None:
        within = self._within((bounds - self.constants) / self.scale)
        if self._hot is None:
            upper = np.concatenate([np.ones(self.groups.size), np.full(2 * self.groups.size + 1, np.inf)])
            self._hot = HotProgram(cost, self._matrix(), within, lower=np.zeros(cost.size), upper=upper)
        found = self._hot.solve(cost, within)
        if found is None and not self._hot.is_infeasible:
            self._hot.forget()
            found = self._hot.solve(cost, within)
        return found

    def least_violation(self, bounds: FloatArray) -> tuple[float, FloatArray]:
        """Return the least total violation of the limits, in parts of their scales, and its multipliers."""
        n_bins, pairs, n_limits = self.groups.size, self._falling_pairs(), bounds.size
        falls = sp.hstack([_falls(pairs, n_bins), sp.csr_array((pairs.size, n_limits))])
        matrix = sp.vstack([falls, sp.hstack([sp.csr_array(self.rows), -sp.eye_array(n_limits)])])
        least = np.append(np.zeros(pairs.size), np.full(n_limits, -np.inf))
        most = np.append(np.full(pairs.size, np.inf), (bounds - self.constants) / self.scale)
        cost = np.append(np.zeros(n_bins), np.ones(n_limits))
        upper = np.append(np.ones(n_bins), np.full(n_limits, np.inf))
        found = solve_linear_program(cost, matrix, (least, most), lower=np.zeros(cost.size), upper=upper)
        assert found is not None  # noqa: S101 - any chances will do
        multipliers = np.maximum(-found.duals[pairs.size :], 0.0) / self.scale
        return float(cost @ found.point), multipliers

    def _read(self, found: LinearSolution, caps: FloatArray) -> _Found:
        """Return vectors that are inside of their domains to the last bit, and the value from them alone."""
        n_bins = self.groups.size
        free = np.clip(found.point[:n_bins], 0.0, 1.0)  # falling within each group but for rounding
        chances = np.concatenate([np.minimum.accumulate(free[self.groups == one]) for one in np.unique(self.groups)])
        weights = project_capped(np.maximum(found.duals[: 2 * n_bins], 0.0), caps).reshape(2, n_bins)
        multipliers = np.maximum(-found.duals[found.duals.size - self.scale.size :], 0.0) / self.scale
        return _Found(chances, weights, multipliers, worst_mean(np.append(1.0 - chances, chances), caps))

    def costs_of_cuts(self, weights: FloatArray) -> FloatArray:
        """Return what calling the rows down to each cut positive costs, by weights of the bins."""
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
        found = np.array(inside, dtype=np.int64)
        return np.asarray(found[costs[found] < least[self.groups - 1]])

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
        """Return the bins whose next one is of the same group, and so called positive no more often."""
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
    below, above, nobody = (np.vstack(one) for one in zip(*parts, strict=True))
    return below - above, nobody[:, 0]


def _coupled(cuts: Cuts, grid: IntArray, chances: FloatArray) -> tuple[CutRules, FloatArray]:
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
