"""A share of each group, so that sums over groups keep their limits, a total is met, and another sum is the least.

Selecting the best share of a group by score adds to every rate what a curve of that share says: it is linear between
knots, and neither convex nor concave. Moving an amount from one group to another is a line, along which all sums are
linear between knots, so the best point of a line is known exactly. Two groups with a fixed total are one line. For
more groups lines of all pairs are searched in turn, and steps of all groups together are tried, from several starts:
the best point of the curves' hulls, which is a linear program, equal shares, and the best points of a coarse grid.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import NamedTuple

import numpy as np

from counterpoise._base.types import FloatArray, IntArray
from counterpoise.solvers.linear_program import solve_linear_program

_SAME = 1e-12  # keys nearer than this are equal
_MOST_KNOTS = 128  # of a curve in the first search of more than one line
_MOST_POINTS = 4096  # of the coarse grid ...
_LEAST_SIDE = 8  # ... which has at least so many shares of each group but one, or is left out
_N_GRID_STARTS = 2
_MOST_ROUNDS = 30  # of all lines
_REACHES = (0.02, 0.002)  # shares that lines of all knots go from the best point of some knots
_WINDOWS = (0.2, 0.05, 0.01, 0.002, 0.0004)  # shares that all groups together may move by in a step
_DEAR = 1e4  # price of a limit in a step, in parts of the objective
_PAIR = 2


class ShareCurve(NamedTuple):
    """What a group adds to each sum, by the share of it that is selected: linear between knots."""

    knots: FloatArray  # (n_knots,), rising from 0 to 1
    values: FloatArray  # (n_sums, n_knots)

    def at(self, shares: FloatArray) -> FloatArray:
        """Return the sums at some shares, shape (n_sums, n_shares)."""
        places = np.clip(np.searchsorted(self.knots, shares, side="right") - 1, 0, self.knots.size - 2)
        widths = self.knots[places + 1] - self.knots[places]
        parts = np.clip((shares - self.knots[places]) / widths, 0.0, 1.0)
        lower = self.values[:, places]
        return np.asarray(lower + parts * (self.values[:, places + 1] - lower))

    def moves(self, share: float, slope: float, low: float, high: float) -> FloatArray:
        """Return the moves from ``low`` to ``high`` at which a share that changes by ``slope`` a move meets a knot."""
        first, last = np.searchsorted(self.knots, sorted((share + low * slope, share + high * slope)))
        return np.asarray((self.knots[first : last + 1] - share) / slope)

    def thinned(self, most: int) -> "ShareCurve":
        """Return the curve at no more than so many of its knots."""
        some = np.unique(np.linspace(0, self.knots.size - 1, min(most, self.knots.size)).round().astype(np.int64))
        return ShareCurve(self.knots[some], self.values[:, some])


class GroupShares(NamedTuple):
    """The best shares of a search."""

    shares: FloatArray  # (n_groups,)
    violation: float  # of all limits together; 0 where they are kept
    value: float  # the largest of what is minimized
    is_proven: bool  # whether no other shares are better


def choose_shares(
    curves: Sequence[ShareCurve],
    sizes: FloatArray,
    total: float,
    bounds: FloatArray,
    *,
    constants: FloatArray | None = None,
    tolerance: FloatArray | float = 1e-9,
) -> GroupShares:
    """Choose the share of each group: the least violation of limits, then the least objective.

    Minimise the largest of the last sums over shares ``s`` in [0, 1] with ``sizes @ s == total`` and the first sums at
    most ``bounds``; a sum is ``constant + sum over groups of curve(s)``.

    Parameters
    ----------
    curves : one for each group
        Of ``n_limits + n_objectives`` sums.
    sizes : array of shape (n_groups,)
        How much a whole group adds to the total, above 0.
    total : float from 0 to the sum of the sizes
    bounds : array of shape (n_limits,)
    constants : array of shape (n_limits + n_objectives,), optional
        What is added to the sums.
    tolerance : float or array of shape (n_limits,), default=1e-9
        By how much a limit may be missed: rounding.

    Returns
    -------
    GroupShares
        Proven to be the best where there are no more than two groups.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.solvers.group_shares import ShareCurve, choose_shares
    >>> knots = np.array([0.0, 0.5, 1.0])  # the limit is on the difference of shares, the objective on errors
    >>> first = ShareCurve(knots, np.array([[0.0, 0.5, 1.0], [0.0, -0.4, -0.2]]))
    >>> second = ShareCurve(knots, np.array([[0.0, -0.5, -1.0], [0.0, -0.1, 0.1]]))
    >>> choose_shares([first, second], np.array([60.0, 40.0]), 30.0, np.array([0.2])).shares.round(3).tolist()
    [0.38, 0.18]
    """
    n_sums = len(curves[0].values)
    constants = np.zeros(n_sums) if constants is None else np.asarray(constants, dtype=np.float64)
    sizes = np.asarray(sizes, dtype=np.float64)
    search = _ShareSearch(tuple(curves), sizes, float(total), bounds, constants, tolerance)
    equal = np.full(sizes.size, search.total / sizes.sum())
    if sizes.size <= _PAIR:
        best = search.descend(equal)
    else:
        thin = replace(search, curves=tuple(curve.thinned(_MOST_KNOTS) for curve in search.curves))
        starts = [*thin.hull_starts(), equal, *thin.grid_starts()]
        best = min((thin.descend(start) for start in starts), key=thin.key)
        for reach in _REACHES if thin.n_knots < search.n_knots else ():
            best = replace(search, reach=reach).descend(best)
    violation, value = search.key(best)
    return GroupShares(best, violation, value, sizes.size <= _PAIR)


@dataclass(frozen=True)
class _ShareSearch:
    curves: tuple[ShareCurve, ...]
    sizes: FloatArray
    total: float
    bounds: FloatArray
    constants: FloatArray
    tolerance: FloatArray | float
    reach: float = np.inf  # by which shares move along a line, at most

    @property
    def n_knots(self) -> int:
        """Return the number of knots of all curves."""
        return sum(curve.knots.size for curve in self.curves)

    def sums(self, points: FloatArray) -> FloatArray:
        """Return the sums at points of shape (n_groups, n_points)."""
        return self.constants[:, None] + sum(curve.at(own) for curve, own in zip(self.curves, points, strict=True))

    def keys(self, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the total violation and the objective."""
        n_limits = self.bounds.size
        excess = sums[:n_limits] - self.bounds[:, None]
        is_missed = excess > np.reshape(self.tolerance, (-1, 1))
        return np.where(is_missed, excess, 0.0).sum(axis=0), sums[n_limits:].max(axis=0)

    def key(self, point: FloatArray) -> tuple[float, float]:
        violation, value = self.keys(self.sums(point[:, None]))
        return float(violation[0]), float(value[0])

    def is_better(self, one: tuple[float, float], other: tuple[float, float]) -> bool:
        """Return whether a key is less than another by more than rounding."""
        if abs(one[0] - other[0]) > _SAME:
            return one[0] < other[0]
        return one[1] < other[1] - _SAME

    def descend(self, point: FloatArray) -> FloatArray:
        """Return the point that lines of pairs, and steps of all groups, lead to."""
        key = self.key(point)
        for _ in range(_MOST_ROUNDS):
            before = key
            for line in self.lines():
                point, key = self.best_on(point, line)
            if self.sizes.size > _PAIR and not self.is_better(key, before):
                point, key = self.step(point, key)
            if not self.is_better(key, before):
                break
        return point

    def lines(self) -> Iterator[FloatArray]:
        """Yield the directions that keep the total: an amount from one group to another."""
        unit = np.eye(self.sizes.size)
        for one, other in combinations(range(self.sizes.size), 2):
            yield unit[one] / self.sizes[one] - unit[other] / self.sizes[other]

    def best_on(self, point: FloatArray, line: FloatArray) -> tuple[FloatArray, tuple[float, float]]:
        """Return the best point of a line, and its key: at a knot, or where a limit or another objective begins."""
        moving = np.flatnonzero(line).tolist()
        ends = np.sort([[(end - point[g]) / line[g] for end in (0.0, 1.0)] for g in moving], axis=1)
        far = self.reach / np.abs(line[moving]).max()
        low, high = max(ends[:, 0].max(), -far), min(ends[:, 1].min(), far)
        knots = np.concatenate([self.curves[g].moves(point[g], line[g], low, high) for g in moving])
        moves = np.unique(np.concatenate([knots[(knots > low) & (knots < high)], [low, high, np.clip(0.0, low, high)]]))
        still = [curve.at(point[[g]]) for g, curve in enumerate(self.curves) if g not in moving]
        base = self.constants[:, None] + sum(still, np.zeros((self.constants.size, 1)))

        def sums_at(at: FloatArray) -> FloatArray:
            return np.asarray(base + sum(self.curves[g].at(point[g] + at * line[g]) for g in moving))

        sums, n_limits = sums_at(moves), self.bounds.size
        crossings = [moves]
        crossings.append(_zeros(moves, sums[:n_limits] - self.bounds[:, None]))
        objectives = sums[n_limits:]
        if len(objectives) > 1:
            largest = objectives.argmax(axis=0)
            for one, other in {*zip(largest[:-1].tolist(), largest[1:].tolist(), strict=True)}:
                crossings.append(_zeros(moves, (objectives[one] - objectives[other])[None]))
        moves = np.concatenate(crossings)
        violation, value = self.keys(sums_at(moves))
        is_least = violation <= violation.min() + _SAME
        is_best = is_least & (value <= value[is_least].min() + _SAME)
        nearest = int(np.where(is_best, np.abs(moves), np.inf).argmin())
        best = np.clip(point + moves[nearest] * line, 0.0, 1.0)
        return best, (float(violation[nearest]), float(value[nearest]))

    def step(self, point: FloatArray, key: tuple[float, float]) -> tuple[FloatArray, tuple[float, float]]:
        """Return a better point near by, where all groups move together along the curves' chords; else the same."""
        here = self.sums(point[:, None])[:, 0]
        for window in _WINDOWS:
            lower, upper = np.maximum(point - window, 0.0), np.minimum(point + window, 1.0)
            ends = [curve.at(np.array([low, high])) for curve, low, high in zip(self.curves, lower, upper, strict=True)]
            slopes = np.column_stack([end[:, 1] - end[:, 0] for end in ends]) / (upper - lower)
            moves = self._least(slopes, here, self.sizes[None], np.zeros(1), (lower - point, upper - point))
            other = point if moves is None else np.clip(point + moves, 0.0, 1.0)
            if self.is_better(self.key(other), key):
                return other, self.key(other)
        return point, key

    def hull_starts(self) -> Iterator[FloatArray]:
        """Yield the best point of the curves' hulls, where limits are met there, else that which misses them least."""
        owner = np.repeat(np.arange(len(self.curves)), [curve.knots.size for curve in self.curves])
        knots = np.concatenate([curve.knots for curve in self.curves])
        values = np.hstack([curve.values for curve in self.curves])
        one_of_each = (owner == np.arange(len(self.curves))[:, None]).astype(np.float64)
        equalities = np.vstack([one_of_each, self.sizes[owner] * knots])
        exactly = np.append(np.ones(len(self.curves)), self.total)
        limits = np.zeros(knots.size), np.full(knots.size, np.inf)
        chances = self._least(values, self.constants, equalities, exactly, limits)
        if chances is not None:
            yield self.on_total(np.bincount(owner, chances * knots, len(self.curves)).astype(np.float64))

    def _least(
        self,
        columns: FloatArray,
        constants: FloatArray,
        equalities: FloatArray,
        exactly: FloatArray,
        limits: tuple[FloatArray, FloatArray],
    ) -> FloatArray | None:
        """Return the best x where sums are ``constants + columns @ x`` and ``equalities @ x == exactly``.

        Further variables are what each limit is missed by, at a high price, and the largest objective.
        """
        n_limits, n_objectives = self.bounds.size, self.constants.size - self.bounds.size
        n_columns, none = columns.shape[1], np.zeros((n_objectives, n_limits))
        missed = np.vstack([-np.eye(n_limits), none])
        largest = np.append(np.zeros(n_limits), np.full(n_objectives, -1.0))[:, None]
        most = np.append(self.bounds, np.zeros(n_objectives)) - constants
        further = np.zeros((len(equalities), n_limits + 1))
        solution = solve_linear_program(
            np.concatenate([np.zeros(n_columns), np.full(n_limits, _DEAR), [1.0]]),
            np.vstack([np.hstack([columns, missed, largest]), np.hstack([equalities, further])]),
            (np.append(np.full(most.size, -np.inf), exactly), np.append(most, exactly)),
            lower=np.concatenate([limits[0], np.zeros(n_limits), [-np.inf]]),
            upper=np.concatenate([limits[1], np.full(n_limits + 1, np.inf)]),
        )
        return None if solution is None else solution.point[:n_columns]

    def on_total(self, point: FloatArray) -> FloatArray:
        """Return a point near another one with the total exact: groups move by equal parts of what they can."""
        point = np.clip(point, 0.0, 1.0)
        gap = self.total - float(self.sizes @ point)
        room = np.where(gap > 0, 1.0 - point, point)
        most = float(self.sizes @ room)
        return np.clip(point + np.sign(gap) * room * min(abs(gap) / most, 1.0), 0.0, 1.0) if most > 0 else point

    def grid_starts(self) -> list[FloatArray]:
        """Return the best points of a coarse grid of all groups but the largest, which takes what is left."""
        last, n_others = int(self.sizes.argmax()), self.sizes.size - 1
        side = int(_MOST_POINTS ** (1 / max(n_others, 1)))
        if side < _LEAST_SIDE:
            return []
        others = np.array(list(product(np.linspace(0.0, 1.0, side), repeat=n_others))).T
        left = (self.total - np.delete(self.sizes, last) @ others) / self.sizes[last]
        inside = (left >= 0) & (left <= 1)
        points = np.insert(others, last, left, axis=0)[:, inside]
        if not points.size:
            return []
        violation, value = self.keys(self.sums(points))
        return list(points.T[np.lexsort((value, violation))[:_N_GRID_STARTS]])


def _zeros(moves: FloatArray, values: FloatArray) -> FloatArray:
    """Return where rows of values that are linear between moves change their sign."""
    is_above = values > 0
    row, at = np.nonzero(is_above[:, 1:] != is_above[:, :-1])
    before, after = values[row, at], values[row, at + 1]
    return np.asarray(moves[at] + (moves[at + 1] - moves[at]) * before / (before - after))


def nearest_total(
    curves: Sequence[ShareCurve],
    sizes: FloatArray,
    total: float,
    bounds: FloatArray,
    *,
    constants: FloatArray,
    tolerance: FloatArray | float = 1e-9,
) -> float | None:
    """Return the total nearest to another one at which shares keep the limits; None where the search finds none.

    Parameters
    ----------
    curves, sizes, total, bounds, constants, tolerance
        As for ``choose_shares``; objectives do not count.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.solvers.group_shares import ShareCurve, nearest_total
    >>> curve = ShareCurve(np.array([0.0, 1.0]), np.array([[0.0, 1.0], [0.0, 0.0]]))  # at most one in five
    >>> nearest_total([curve], np.array([100.0]), 30.0, np.array([0.2]), constants=np.zeros(2)).__round__(6)
    20.0
    """
    n_limits, most = bounds.size, float(sizes.sum())
    # One more group takes what the total may differ by: half of it where it does not.
    apart = np.vstack([np.zeros((n_limits, 3)), [[1.0, 0.0, 1.0]]])
    groups = [
        curve._replace(values=np.vstack([curve.values[:n_limits], np.zeros(curve.knots.size)])) for curve in curves
    ]
    groups.append(ShareCurve(np.array([0.0, 0.5, 1.0]), apart))
    sizes_of_all, own = np.append(sizes, 2.0 * most), np.append(constants[:n_limits], 0.0)
    shares = choose_shares(groups, sizes_of_all, total + most, bounds, constants=own, tolerance=tolerance)
    return None if shares.violation > 0 else float(sizes @ shares.shares[:-1])


def round_shares(amounts: FloatArray) -> IntArray:
    """Return whole numbers of the same sum, which must be whole, by largest remainders; the first of equals.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.solvers.group_shares import round_shares
    >>> round_shares(np.array([2.6, 3.3, 1.1])).tolist()
    [3, 3, 1]
    """
    amounts = np.round(amounts, 9)
    counts = np.floor(amounts).astype(np.int64)
    n_left = round(float(amounts.sum())) - int(counts.sum())
    counts[np.argsort(counts - amounts, kind="stable")[:n_left]] += 1
    return counts
