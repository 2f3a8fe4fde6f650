"""One rule within goals: a pool of rules that all targets of safety share, and moves of the best of them.

A rule of many groups that keeps a gap small can only be improved by moving several thresholds at once. So the moves are
made in shares of each group: one group, two groups, all groups together, and towards or beyond another good rule. Each
round moves the rules that are the cheapest at some target; what is found for one target serves the others.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.special import ndtr

from counterpoise._base.types import FloatArray, IntArray
from tools.slice.rates import ALLOWED, Evaluator, Values

TARGETS = np.arange(-0.5, 3.0001, 0.03125)
_UNMET = 1e3  # added to the risk of rules that miss a goal on the rows
_N_LEVELS = 60  # of the starts that give each group the same share
_N_ROUNDS, _N_PARENTS, _N_MOVES = 30, 40, 32  # rounds for every four coordinates
_WIDEST, _NARROWER = 0.2, 0.8  # of moves, in shares of a group, and their factor from round to round
_ELASTIC = 1e3  # price of missing the limits
_MOST_RULES = 6000  # of the pool between rounds


class Pool(NamedTuple):
    """Rules, each once, and what they come to."""

    rules: IntArray  # (n_rules, n_coordinates)
    values: Values

    def only(self, places: Any) -> "Pool":
        """Return some of the rules."""
        return Pool(self.rules[places], Values(*(own[places] for own in self.values)))

    def best(self, targets: FloatArray, *, may_miss: bool = False) -> IntArray:
        """Return for each target the rule of least cost whose risk is small enough; else that of least risk."""
        return best_of(self.values, targets, may_miss=may_miss)


def best_of(values: Values, targets: FloatArray, *, may_miss: bool = False) -> IntArray:
    """Return for each target the place of the rule of least cost whose risk is small enough; else of least risk."""
    misses = (values.violation > 0) & (not may_miss)
    risk = values.risk + np.where(misses, _UNMET + values.violation, 0.0)
    order = np.lexsort((risk, values.cost))
    least = np.minimum.accumulate(risk[order])
    allowed = np.where(np.isneginf(targets), _UNMET / 2, ndtr(-targets))
    first = np.searchsorted(-least, -allowed)
    return np.where(first < order.size, order[np.minimum(first, order.size - 1)], int(risk.argmin()))


def find_pool(
    evaluator: Evaluator,
    *,
    rounds: int | None = None,
    seed: int = 0,
    start: IntArray | None = None,
    smooth: bool = True,
) -> Pool:
    """Return rules among which the cheapest at every target are: starts, and rounds of moves."""
    rng = np.random.default_rng(seed)
    pool = _join(evaluator, None, np.vstack([_starts(evaluator), *([] if start is None else [start])]), smooth)
    for number in range(-(-evaluator.sizes.size // 4) * _N_ROUNDS if rounds is None else rounds):
        targets = np.concatenate([[-np.inf], TARGETS[rng.integers(0, 4) :: 4], [np.inf]])
        parents = pool.rules[np.unique(np.append(pool.best(targets), pool.best(targets[:4], may_miss=True)))]
        width = max(_WIDEST * _NARROWER ** (number % _N_ROUNDS), 1e-4)
        moved = _moves(evaluator, parents[rng.permutation(len(parents))[:_N_PARENTS]], width, rng)
        pool = near_frontier(_join(evaluator, pool, moved, smooth), _MOST_RULES)
    return pool


def _starts(evaluator: Evaluator) -> IntArray:
    """Return rules with the same share of each group above, or of one label, or with the same threshold."""
    levels = np.linspace(0.0, 1.0, _N_LEVELS)
    rules = [
        np.column_stack([np.searchsorted(own, levels * own[-1]) for own in along]) for along in _progress(evaluator)
    ]
    upper = np.vstack([np.minimum(own, evaluator.sizes - 1) for own in rules])
    if len(evaluator.answers) > 2:
        n_groups = evaluator.cells.layout.radices[0]
        shifted = np.vstack([np.roll(upper, -shift, axis=0)[:, :n_groups] for shift in (0, 2, 5, 10)])
        upper = _ordered(evaluator, np.column_stack([np.tile(upper[:, :n_groups], (4, 1)), shifted]))
    return np.vstack([upper, np.zeros_like(evaluator.sizes), evaluator.sizes - 1])


def _progress(evaluator: Evaluator) -> list[list[FloatArray]]:
    """Return what grows along the places of each coordinate: rows, rows of each label, and the place of the score."""
    sums, groups = np.maximum(evaluator.cells.amounts[:2], 0.0), evaluator.cells.kinds[0]
    n_groups, found = evaluator.cells.layout.radices[0], [evaluator.reach]
    for label in (0, 1):
        along = [sums[label, groups == group].sum(axis=0)[evaluator.occupied[group]] for group in range(n_groups)]
        found.append(
            [np.append(0.0, np.cumsum(own)) / max(own.sum(), 1e-300) for own in along] * (len(evaluator.answers) - 1)
        )
    n_places = evaluator.cells.sums.shape[2]
    together = np.append(0.0, np.cumsum(sums.sum(axis=(0, 1)))) / sums.sum()
    found.append([np.append(0.0, together[own + 1]) if own.size else np.zeros(1) for own in evaluator.occupied])
    assert n_places + 1 == together.size  # noqa: S101 - a share at each end of a place
    return found


def _moves(evaluator: Evaluator, parents: IntArray, width: float, rng: np.random.Generator) -> IntArray:
    """Return rules near some others, by moves of all four kinds."""
    n_parents, n_coordinates = parents.shape
    shares = np.column_stack([own[rules] for own, rules in zip(evaluator.reach, parents.T, strict=True)])
    base = np.repeat(np.arange(n_parents), _N_MOVES)
    steps = width * 10.0 ** rng.uniform(-2.0, 0.0, (base.size, 1)) * rng.normal(size=(base.size, n_coordinates))
    kind = rng.integers(0, 4, base.size)
    one, other = rng.integers(0, n_coordinates, (2, base.size))
    every = np.arange(n_coordinates)
    is_one, is_other = (every == number[:, None] for number in (one, other))
    together = steps[:, :1] + 0.1 * steps * rng.integers(0, 2, (base.size, 1))
    along = rng.uniform(-1.0, 1.5, (base.size, 1)) * (shares[rng.integers(0, n_parents, base.size)] - shares[base])
    delta = np.select(
        [(kind == number)[:, None] for number in range(4)],
        [steps * is_one, steps * (is_one | is_other), together, along],
    )
    target = np.clip(shares[base] + delta, 0.0, 1.0)
    moved = np.column_stack([np.searchsorted(own, target[:, number]) for number, own in enumerate(evaluator.reach)])
    moved = np.where(delta == 0, parents[base], np.minimum(moved, evaluator.sizes - 1))
    moved = np.where(is_one & (moved == parents[base]), moved + rng.integers(-1, 2, (base.size, 1)), moved)
    return _ordered(evaluator, np.clip(moved, 0, evaluator.sizes - 1))


def _ordered(evaluator: Evaluator, rules: IntArray) -> IntArray:
    """Return rules whose lower thresholds, where there are any, are no higher than the upper ones."""
    n_groups = evaluator.cells.layout.radices[0]
    if rules.shape[1] > n_groups:
        rules[:, n_groups:] = np.maximum(rules[:, n_groups:], rules[:, :n_groups])
    return rules


def _join(evaluator: Evaluator, pool: Pool | None, rules: IntArray, smooth: bool) -> Pool:
    """Return a pool with more rules, those that are new."""
    factors = np.random.default_rng(1).integers(1, 1 << 62, rules.shape[1]) * 2 + 1
    keys, first = np.unique(rules @ factors, return_index=True)
    if pool is not None:
        first = first[~np.isin(keys, pool.rules @ factors)]
    rules = rules[first]
    values = evaluator.evaluate(rules, smooth=smooth)
    if pool is None:
        return Pool(rules, values)
    return Pool(
        np.vstack([pool.rules, rules]),
        Values(*(np.concatenate(pair) for pair in zip(pool.values, values, strict=True))),
    )


def near_frontier(pool: Pool, most: int) -> Pool:
    """Return the rules that cost little for their risk: those that a choice may lead to, here or on a resample."""
    if len(pool.rules) <= most:
        return pool
    risk = pool.values.risk + np.where(pool.values.violation > 0, _UNMET + pool.values.violation, 0.0)
    order = np.lexsort((pool.values.cost, risk))
    excess = np.empty(risk.size)
    excess[order] = pool.values.cost[order] - np.minimum.accumulate(pool.values.cost[order])
    return pool.only(np.sort(np.argsort(excess, kind="stable")[:most]))


def lower_bound(evaluator: Evaluator, start: IntArray, tol: float = 1e-4, rounds: int = 60) -> tuple[float, IntArray]:
    """Return a bound that no rule within linear goals goes below, and the rules that it was found with.

    Column generation: the best mixture of a pool prices the limits, and the cheapest place of each coordinate at these
    prices is an argmin of one running sum. A Lagrangian relaxation, so the bound holds for single rules too.
    """
    keep, n_counts = np.flatnonzero(evaluator.linear), len(evaluator.counts)
    directions = np.vstack([evaluator.weights, evaluator.coefficients[keep]])
    offsets = np.append(evaluator.objective.constant, evaluator.offsets[keep])
    running = [
        own[:, used < n_counts] @ directions[:, used[used < n_counts]].T
        for own, used in zip(evaluator.running, evaluator.used, strict=True)
    ]
    constant = offsets + directions @ evaluator.constants[:n_counts]
    lower, rules, n_groups = -np.inf, start, evaluator.cells.layout.radices[0]
    for _ in range(rounds):
        columns = constant + sum(own[rules[:, number]] for number, own in enumerate(running))
        # min cost @ q + price * missing, limits @ q <= missing: elastic, so that every master has a dual.
        limits = {}
        if keep.size:
            limits = {"A_ub": np.column_stack([columns[:, 1:].T, -np.ones(keep.size)]), "b_ub": np.zeros(keep.size)}
        shares = np.append(np.ones(len(rules)), 0.0)[None]
        solved = linprog(np.append(columns[:, 0], _ELASTIC), A_eq=shares, b_eq=[1.0], **limits)
        prices = np.append(1.0, -solved.ineqlin.marginals if keep.size else [])
        costs = [own @ prices for own in running]
        bound = float(prices @ constant)
        cheapest = np.zeros(len(running), dtype=np.int64)
        for group in range(n_groups):
            if len(running) == n_groups:
                cheapest[group] = costs[group].argmin()
            else:
                upper, least = costs[group], np.minimum.accumulate(costs[group])
                cheapest[n_groups + group] = (least + costs[n_groups + group]).argmin()
                cheapest[group] = upper[: cheapest[n_groups + group] + 1].argmin()
        bound += sum(float(own[place]) for own, place in zip(costs, cheapest, strict=True))
        lower = max(lower, bound)
        if solved.fun - lower <= tol or (rules == cheapest).all(axis=1).any():
            break
        rules = np.vstack([rules, cheapest])
    return lower, rules


def polish(evaluator: Evaluator, pool: Pool, sweeps: int = 3, reach: int = 24) -> Pool:
    """Return a pool with the best rule on the rows improved by all pairs of nearby places of two coordinates."""
    window = np.arange(-reach, reach + 1)
    pairs = [(i, j) for i in range(evaluator.sizes.size) for j in range(i + 1)]
    for _ in range(sweeps):
        best = pool.rules[pool.best(np.array([-np.inf]))[0]]
        rules = []
        for one, other in pairs:
            near = np.repeat(best[None], window.size**2 if one != other else window.size, axis=0)
            near[:, one] += np.repeat(window, len(near) // window.size)
            if one != other:
                near[:, other] += np.tile(window, window.size)
            rules.append(near)
        candidates = _ordered(evaluator, np.clip(np.vstack(rules), 0, evaluator.sizes - 1))
        values = _cheap_values(evaluator, candidates)
        place = int(np.lexsort(values)[0])
        before = pool.values.cost[pool.best(np.array([-np.inf]))[0]]
        pool = _join(evaluator, pool, candidates[[place]], smooth=False)
        if not pool.values.cost[pool.best(np.array([-np.inf]))[0]] < before:
            break
    return pool


def _cheap_values(evaluator: Evaluator, rules: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return cost and violation alone, without standard errors."""
    n_counts = len(evaluator.counts)
    shares = np.tile(evaluator.constants[:n_counts], (len(rules), 1))
    for number, (own, used) in enumerate(zip(evaluator.running, evaluator.used, strict=True)):
        here = used < n_counts
        shares[:, used[here]] += own[:, here][rules[:, number]]
    values = evaluator.tangents(shares)[0]
    violation = np.where(values > ALLOWED, values, 0.0).sum(axis=1)
    return evaluator.objective.constant + shares @ evaluator.weights, violation
