"""Programs that are convex once a few numbers are fixed: a search of these numbers, with a bound over all of them.

A difference of ratios is no linear limit, but for some t every ratio lies between t and t plus the bound, and for each
t those are linear limits. Over an interval of t, limits that are loose enough for all of it give a lower bound. The
interval with the least bound is halved, until none can have much less than the best solution found (branch and bound).
"""

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from itertools import count
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from counterpoise._base.budget import check_budget

_MOST = 5000  # intervals that are examined
_NARROW = 1e-7  # part of its first width below which an interval is not halved


class Interval(NamedTuple):
    """The numbers from one to another."""

    low: float
    high: float

    @property
    def width(self) -> float:
        """Return how far the ends are apart."""
        return self.high - self.low

    @property
    def middle(self) -> float:
        """Return the number in the middle."""
        return self.low + self.width / 2


UNIT_INTERVAL = Interval(0.0, 1.0)  # where shares lie
Box: TypeAlias = tuple[Interval, ...]  # one interval for each number that is searched


class Examined(NamedTuple):
    """What is known of the programs of a box."""

    lower: float  # none of them has less; infinite where none has a solution
    value: float = np.inf  # of a solution that was found
    found: Any = None  # that solution


class BoxMinimum(NamedTuple):
    """The best solution of all programs of a box."""

    found: Any  # None where there is none
    value: float
    lower: float  # no program of the box has less; infinite where it is proven that none has a solution
    n_examined: int


def minimize_over_box(
    examine: Callable[[Box, float], Examined], box: Box, tol: float, *, most: int = _MOST, first: Iterable[Box] = ()
) -> BoxMinimum:
    """Return the best solution of all programs of a box, with a lower bound over all of them.

    Parameters
    ----------
    examine : callable
        Given a box and the least value found so far, it returns a lower bound over all programs of the box and, where
        it finds one, a solution. Bounds must rise to the value of the best solution as the box narrows.
    box : tuple of Interval
        Where to search.
    tol : float
        The gap between value and lower bound that is good enough.
    narrow : float, default=1e-7
        Intervals narrower than this part of the first ones are not halved: of those the bound stays as it is.
    most : int, default=5000
        The largest number of boxes to examine.
    first : iterable of boxes, default=()
        Parts of the box to examine before all of it, where solutions are that a search would come to late.

    Examples
    --------
    The least of ``(x - t)**2 + t`` over x in [1, 2] and t in [0, 3], where t is searched:

    >>> from counterpoise.solvers.intervals import Examined, Interval, minimize_over_box
    >>> def examine(box, best):
    ...     (low, high), t = box[0], box[0].middle
    ...     def least(t): return max(1 - t, t - 2, 0.0) ** 2
    ...     nearest = 0.0 if low <= 2 and high >= 1 else min(least(low), least(high))
    ...     return Examined(nearest + low, least(t) + t, t)
    >>> best = minimize_over_box(examine, (Interval(0.0, 3.0),), 1e-4)
    >>> round(best.found, 2), round(best.value, 4), best.value - best.lower < 2e-4
    (0.5, 0.75, True)
    """
    numbers, widths = count(), [max(one.width, np.finfo(float).tiny) for one in box]
    open_boxes: list[tuple[float, int, Box]] = [(-np.inf, next(numbers), one) for one in (*first, box)]
    value, found, settled, n_examined = np.inf, None, np.inf, 0  # settled: the least bound of boxes that stay whole
    while open_boxes and open_boxes[0][0] < value - tol and n_examined < most:
        check_budget()
        least, _, own = heappop(open_boxes)
        result = examine(own, value)
        n_examined += 1
        lower = max(least, result.lower)
        if result.value < value:
            value, found = result.value, result.found
        if lower >= value - tol:
            settled = min(settled, lower)
            continue
        parts = [one.width / first for one, first in zip(own, widths, strict=True)]
        widest = int(np.argmax(parts))
        if parts[widest] < _NARROW:
            settled = min(settled, lower)
            continue
        low, high = own[widest]
        for half in (Interval(low, own[widest].middle), Interval(own[widest].middle, high)):
            heappush(open_boxes, (lower, next(numbers), (*own[:widest], half, *own[widest + 1 :])))
    lower = min([settled, *(least for least, *_ in open_boxes)])
    return BoxMinimum(found, value, min(lower, value), n_examined)
