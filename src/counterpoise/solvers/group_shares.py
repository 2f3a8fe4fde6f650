"""A share of each group, so that sums over groups keep their limits, a total is met, and another sum is the least.

Selecting the best share of a group by score adds to every rate what a curve of that share says: it is linear between
knots, and neither convex nor concave. Moving an amount from one group to another is a line, along which all sums are
linear between knots, so the best point of a line is known exactly. Two groups with a fixed total are one line. For
more groups the best point of the curves' hulls, which is a linear program, is where lines of all pairs start.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from counterpoise._base.types import FloatArray, IntArray
from counterpoise.solvers.linear_program import solve_linear_program

_SAME = 1e-12  # keys nearer than this are equal
_MOST_KNOTS = 128  # of a curve in the linear program
_MOST_ROUNDS = 30  # of all lines
_DEAR = 1e4  # price of a limit in the linear program, in parts of the objective
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
    start = np.full(sizes.size, search.total / sizes.sum())
    best = search.descend(start if sizes.size <= _PAIR else search.hull_point(start))
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
        """Return the point that lines of pairs lead to."""
        key = self.key(point)
        for _ in range(_MOST_ROUNDS):
            before = key
            for line in self.lines():
                point, key = self.best_on(point, line)
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
        low, high = ends[:, 0].max(), ends[:, 1].min()
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

    def hull_point(self, otherwise: FloatArray) -> FloatArray:
        """Return the best point of the hulls of the curves, which misses limits least where none meets them.

        Variables are the weights of some knots, what each limit is missed by, at a high price, and the largest
        objective.
        """
        curves, n_limits = [curve.thinned(_MOST_KNOTS) for curve in self.curves], self.bounds.size
        owner = np.repeat(np.arange(len(curves)), [curve.knots.size for curve in curves])
        knots, values = np.concatenate([curve.knots for curve in curves]), np.hstack([curve.values for curve in curves])
        n_knots, n_objectives = knots.size, self.constants.size - n_limits
        missed = np.vstack([-np.eye(n_limits), np.zeros((n_objectives, n_limits))])
        largest = np.append(np.zeros(n_limits), np.full(n_objectives, -1.0))[:, None]
        one_of_each = (owner == np.arange(len(curves))[:, None]).astype(np.float64)
        equalities = np.hstack(
            [np.vstack([one_of_each, self.sizes[owner] * knots]), np.zeros((len(curves) + 1, n_limits + 1))]
        )
        most = np.append(self.bounds, np.zeros(n_objectives)) - self.constants
        exactly = np.append(np.ones(len(curves)), self.total)
        solution = solve_linear_program(
            np.concatenate([np.zeros(n_knots), np.full(n_limits, _DEAR), [1.0]]),
            np.vstack([np.hstack([values, missed, largest]), equalities]),
            (np.append(np.full(most.size, -np.inf), exactly), np.append(most, exactly)),
            lower=np.append(np.zeros(n_knots + n_limits), -np.inf),
            upper=np.full(n_knots + n_limits + 1, np.inf),
        )
        if solution is None:
            return otherwise
        return self.on_total(np.bincount(owner, solution.point[:n_knots] * knots, len(curves)).astype(np.float64))

    def on_total(self, point: FloatArray) -> FloatArray:
        """Return a point near another one with the total exact: groups move by equal parts of what they can."""
        point = np.clip(point, 0.0, 1.0)
        gap = self.total - float(self.sizes @ point)
        room = np.where(gap > 0, 1.0 - point, point)
        most = float(self.sizes @ room)
        return np.clip(point + np.sign(gap) * room * min(abs(gap) / most, 1.0), 0.0, 1.0) if most > 0 else point


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
