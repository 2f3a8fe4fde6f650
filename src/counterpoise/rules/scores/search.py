"""The search for one rule of a score within goals: a pool of rules that all targets of safety share.

Where a grid has few rules, all of them are looked at. Else the pool begins with rules that treat groups alike in some
way, and grows by moves of the best of them. A rule of many groups that keeps a gap between them small can only be
improved by moving several thresholds at once. So moves are made in shares of each group: of one group, of two, of all
together, and towards or beyond another good rule. Each round moves the rules that are the cheapest at some target; what
is found for one target serves the others.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import ndtri

from counterpoise._base.budget import check_budget
from counterpoise._base.types import FloatArray, IntArray
from counterpoise.rules.margins import UNMET, cheapest_at
from counterpoise.rules.scores.threshold_grid import ThresholdGrid

ON_ROWS = np.array([-np.inf, np.inf])  # targets where no margins are asked for
_MOST_RULES = 6000  # of the pool between rounds
_N_LEVELS = 60  # of the starts that give each group the same share
_N_ROUNDS, _N_PARENTS, _N_MOVES = 30, 40, 32  # rounds for every four edges
_WIDEST, _NARROWER, _NARROWEST = 0.2, 0.8, 1e-4  # of moves, in shares of a group, and their factor from round to round
_RISKS = 1e-6, 0.75  # between which rules are told apart by standard errors
_REACH = 24  # places on both sides in which a pair of edges is improved at the end
_MOST_SWEEPS = 4
_CHUNK = 1 << 17  # rules that are looked at together
_DIGITS = 11  # to which rules are compared: what differs less is rounding


class Judged(NamedTuple):
    """What rules come to."""

    cost: FloatArray  # (n_rules,)
    violation: FloatArray  # by how much goals are missed on the rows, in all
    risk: FloatArray  # the sum of the probabilities that goals fail on new rows; 0 where no margins are asked for


Judge = Callable[[IntArray], Judged]


class RulePool(NamedTuple):
    """Rules, each once, and what they come to."""

    rules: IntArray  # (n_rules, n_edges): how many bins are above each edge
    judged: Judged

    @classmethod
    def of(cls, rules: IntArray, judge: Judge) -> Self:
        """Return the pool of some rules."""
        return cls(rules, judge(rules))

    def only(self, places: Any) -> Self:
        """Return some of the rules."""
        return type(self)(self.rules[places], Judged(*(values[places] for values in self.judged)))

    def joined(self, rules: IntArray, judge: Judge) -> Self:
        """Return the pool with those of other rules that are new."""
        factors = np.random.default_rng(1).integers(1, 1 << 62, rules.shape[1]) * 2 + 1
        keys, first = np.unique(rules @ factors, return_index=True)
        rules = rules[first[~np.isin(keys, self.rules @ factors)]]
        if not len(rules):
            return self
        pairs = zip(self.judged, judge(rules), strict=True)
        return type(self)(np.vstack([self.rules, rules]), Judged(*(np.concatenate(pair) for pair in pairs)))

    def best(self, targets: FloatArray, *, may_miss: bool = False) -> IntArray:
        """Return for each target the place of the rule of least cost whose risk is small enough, else of least risk."""
        cost, violation, risk = self.judged
        misses = (violation > 0) & (not may_miss)
        unit = float(np.abs(cost).max(initial=0.0)) or 1.0  # an objective may be in any unit
        return cheapest_at(np.round(cost / unit, _DIGITS), risk + np.where(misses, UNMET + violation, 0.0), targets)

    def near_frontier(self, most: int) -> Self:
        """Return the rules that cost little for their risk: those that a choice may lead to, here or on a resample.

        Where more of them are on the frontier itself, as of one group nearly all are, these are thinned evenly: by
        standard errors, as the targets are.
        """
        if len(self.rules) <= most:
            return self
        cost, violation, risk = self.judged
        risk = risk + np.where(violation > 0, UNMET + violation, 0.0)
        order = np.lexsort((cost, risk))
        least = np.minimum.accumulate(cost[order])
        excess = np.empty(risk.size)
        excess[order] = cost[order] - least
        frontier = order[np.append(True, least[1:] < least[:-1])]  # from the safest to the cheapest
        if frontier.size > most // 2:
            along = np.linspace(0.0, 1.0, frontier.size) + ndtri(np.clip(risk[frontier], *_RISKS))
            near = np.searchsorted(along, np.linspace(along[0], along[-1], most // 2))
            frontier = frontier[np.unique(np.minimum(near, frontier.size - 1))]
        excess[frontier] = -1.0
        return self.only(np.sort(np.argsort(excess, kind="stable")[:most]))


def all_rules(grid: ThresholdGrid, most: int) -> Iterator[IntArray] | None:
    """Return all rules of a grid, some at a time; None where there are more than ``most``."""
    n_rules = float(np.prod(grid.sizes + 1.0))
    if n_rules > most:
        return None
    return (
        _unraveled(grid, np.arange(first, min(first + _CHUNK, int(n_rules))))
        for first in range(0, int(n_rules), _CHUNK)
    )


def _unraveled(grid: ThresholdGrid, numbers: IntArray) -> IntArray:
    rules = np.column_stack(np.unravel_index(numbers, grid.sizes + 1))
    if grid.defers:  # each once, with the lower thresholds no higher than the upper ones
        rules = rules[(rules[:, : grid.n_groups] <= rules[:, grid.n_groups :]).all(axis=1)]
    return rules


def search(
    grid: ThresholdGrid, judge: Judge, start: IntArray, targets: FloatArray = ON_ROWS, effort: float = 1.0
) -> RulePool:
    """Return rules among which the cheapest at every target are: starts, and rounds of moves of the best.

    Parameters
    ----------
    grid : ThresholdGrid
    judge : callable
        What rules come to.
    start : array of shape (n_rules, n_edges)
        Rules that are known to be good.
    targets : array
        Of safety, rising from minus infinity, for the rule that is the best on the rows. For those below zero goals may
        be missed there.
    effort : float
        Part of the usual number of rounds.
    """
    rng = np.random.default_rng(0)
    reach = [np.asarray(part) for part in grid.reach() * (1 + grid.defers)]
    pool = RulePool.of(start[:1], judge).joined(np.vstack([start, *_starts(grid, reach)]), judge)
    n_rounds = max(1, round(effort * _N_ROUNDS * -(-grid.sizes.size // 4)))
    for number in range(n_rounds):
        check_budget()
        best = np.append(pool.best(targets), pool.best(targets[targets < 0], may_miss=True))
        parents = pool.rules[np.unique(best)]
        width = max(_WIDEST * _NARROWER ** (number % _N_ROUNDS), _NARROWEST)
        moved = _moves(grid, reach, parents[rng.permutation(len(parents))[:_N_PARENTS]], width, rng)
        pool = pool.joined(moved, judge).near_frontier(_MOST_RULES)
    return pool


def polish(grid: ThresholdGrid, pool: RulePool, judge: Judge) -> RulePool:
    """Return a pool with the rule that is the best on the rows improved by all pairs of nearby places of two edges."""
    window = np.arange(-_REACH, _REACH + 1)
    for _ in range(_MOST_SWEEPS):
        before = pool.best(ON_ROWS[:1])[0]
        now = pool.rules[before]
        near = []
        for one in range(now.size):
            for other in range(one + 1):
                moved = np.repeat(now[None], window.size**2 if one != other else window.size, axis=0)
                moved[:, one] += np.repeat(window, len(moved) // window.size)
                if one != other:
                    moved[:, other] += np.tile(window, window.size)
                near.append(moved)
        for first in range(0, len(near), 16):
            check_budget()
            together = RulePool.of(_inside(grid, np.vstack(near[first : first + 16])), judge)
            pool = pool.joined(together.rules[together.best(ON_ROWS[:1])], judge)
        if pool.best(ON_ROWS[:1])[0] == before:
            break
    return pool


def _starts(grid: ThresholdGrid, reach: list[FloatArray]) -> Iterator[IntArray]:
    """Yield rules with the same share of each group above, or of one label, or with the same threshold."""
    levels, n_groups = np.linspace(0.0, 1.0, _N_LEVELS), grid.n_groups
    positives = grid.ranked.spread_positives_above
    alike = [reach[:n_groups], grid.reach(grid.ranked.spread_above - positives), grid.reach(positives)]
    found = [
        np.column_stack([np.searchsorted(along, levels * along[-1]) for along in of_groups]) for of_groups in alike
    ]
    thresholds = [np.asarray(grid.ranked.cuts.thresholds[kept]) for kept in grid.kept]
    finite = np.concatenate([part[np.isfinite(part)] for part in thresholds])
    if finite.size:
        same = np.quantile(finite, levels)
        found.append(np.column_stack([np.searchsorted(-part, -same) for part in thresholds]))
    upper = np.vstack(found)
    if grid.defers:
        lower = np.vstack([np.roll(upper, -shift, axis=0) for shift in (0, 2, 5, 10)])
        upper = np.column_stack([np.tile(upper, (4, 1)), lower])
    yield _inside(grid, upper)
    yield _inside(grid, np.vstack([np.zeros_like(grid.sizes), grid.sizes]))


def _moves(
    grid: ThresholdGrid, reach: list[FloatArray], parents: IntArray, width: float, rng: np.random.Generator
) -> IntArray:
    """Return rules near some others, by moves of all four kinds."""
    n_parents, n_edges = parents.shape
    shares = np.column_stack([along[rules] for along, rules in zip(reach, parents.T, strict=True)])
    base = np.repeat(np.arange(n_parents), _N_MOVES)
    steps = width * 10.0 ** rng.uniform(-2.0, 0.0, (base.size, 1)) * rng.normal(size=(base.size, n_edges))
    kind = rng.integers(0, 4, base.size)
    first, second = rng.integers(0, n_edges, (2, base.size))
    is_first, is_second = (np.arange(n_edges) == edge[:, None] for edge in (first, second))
    together = steps[:, :1] + 0.1 * steps * rng.integers(0, 2, (base.size, 1))
    towards = rng.uniform(-1.0, 1.5, (base.size, 1)) * (shares[rng.integers(0, n_parents, base.size)] - shares[base])
    delta = np.select(
        [(kind == number)[:, None] for number in range(4)],
        [steps * is_first, steps * (is_first | is_second), together, towards],
    )
    target = np.clip(shares[base] + delta, 0.0, 1.0)
    moved = np.column_stack([np.searchsorted(along, target[:, edge]) for edge, along in enumerate(reach)])
    moved = np.where(delta == 0, parents[base], moved)
    is_still = is_first & (moved == parents[base])
    moved = np.where(is_still, moved + rng.integers(-1, 2, (base.size, 1)), moved)
    return _inside(grid, moved)


def _inside(grid: ThresholdGrid, rules: IntArray) -> IntArray:
    """Return rules with edges of the grid, whose lower thresholds, where there are any, are not above the upper."""
    rules = np.clip(rules, 0, grid.sizes)
    if grid.defers:
        rules[:, grid.n_groups :] = np.maximum(rules[:, grid.n_groups :], rules[:, : grid.n_groups])
    return rules
