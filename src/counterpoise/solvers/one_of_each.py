"""One option of each list, so that sums keep their limits and another sum is the least: the multiple-choice knapsack.

A deterministic rule with a threshold for each group is such a choice, an option being a threshold of a group and what
it adds to each rate. No convex program finds it. But prices of the limits, from the linear program over mixtures, give
each option a bound of its own: what any choice with it costs at least. Only options, and pairs of them, whose bound is
below the best choice known need to be tried, and these are few where mixtures are hardly better than choices. Of a
limit that one list alone changes nothing is left once the options of that list that miss it are dropped. So the search
is exact for two lists of tens of thousands of options, and returns what is left to prove where it had to stop.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

from counterpoise._base.budget import check_budget
from counterpoise._base.types import FloatArray, IntArray

_MAX_ROUNDS = 60  # of the linear program that finds prices; each adds an option of every list
_CLOSED = 1e-10  # gap at which prices are good enough, in parts of the largest value
_KEPT = 1e-9  # violation that is none
_LARGEST_PRICE = 1e4  # of a limit, in parts of the objective
_AT_ONCE = 1 << 16  # pairs that are tried together: what is computed of them stays in the cache
_SAME = 1e-12  # values nearer than this are equal, in parts of the largest value
_MOST_MERGED = 1 << 20  # choices of some of the lists that are kept beside each other, ...
_MERGED = 64  # ... and how many pairs may then be tried for each of them, at least


class OneOfEach(NamedTuple):
    """The best known choice."""

    places: IntArray  # of each list which option
    violation: float  # of all limits together; 0 where they are kept
    value: float  # the largest of what is minimized
    lower: float  # no choice that keeps the limits is below; infinite where it is proven that none does
    least_violation: float  # no choice has less

    @property
    def gap(self) -> float:
        """Return by how much a choice may be better, at most."""
        return max(self.value - self.lower, 0.0) if self.violation == 0 else np.inf


def choose_one_of_each(
    options: Sequence[FloatArray],
    bounds: FloatArray,
    *,
    constants: FloatArray | None = None,
    start: IntArray | None = None,
    ordered: Sequence[tuple[int, int]] = (),
    max_looks: int = 200_000_000,
    nearest: bool = True,
    below: float = np.inf,
) -> OneOfEach:
    """Choose one option of each list: the least violation of limits, then the least objective.

    Parameters
    ----------
    options : arrays of shape (n_limits + n_objectives, n_options), one for each list
        What each option adds to each sum. Of the sums the first ones have a limit, the largest of the others is
        minimised.
    bounds : array of shape (n_limits,)
    constants : array of shape (n_limits + n_objectives,), optional
        What is added to the sums of every choice.
    start : array of places, one for each list, optional
        A good choice to begin with: the better it is, the fewer pairs remain.
    ordered : pairs of lists, optional
        In the first of a pair the option must not come after that of the second.
    max_looks : int, default=200_000_000
        The largest number of pairs of options to try.
    nearest : bool, default=True
        Whether the least violation is looked for where no choice keeps the limits.
    below : float, default=inf
        Choices of this value or more are not looked for.

    Returns
    -------
    OneOfEach
        With ``lower``, a proven bound: where ``gap`` is 0 the choice is the best of all.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.solvers.one_of_each import choose_one_of_each
    >>> first, second = np.array([[0.0, 3.0, 5.0], [4.0, 2.0, 0.0]]), np.array([[0.0, 1.0, 4.0], [5.0, 3.0, 2.0]])
    >>> solution = choose_one_of_each([first, second], np.array([5.0]))
    >>> solution.places.tolist(), solution.value, solution.gap
    ([2, 0], 5.0, 0.0)
    """
    lists = [np.asarray(own, dtype=np.float64) for own in options]
    constants = np.zeros(len(lists[0])) if constants is None else np.asarray(constants, dtype=np.float64)
    best = np.zeros(len(lists), dtype=np.int64) if start is None else np.asarray(start).copy()
    names = [np.arange(own.shape[1]) for own in lists]
    search = _ChoiceSearch(lists, names, constants, np.asarray(bounds, dtype=np.float64), tuple(ordered), best)
    columns = [own[:, [place]] for own, place in zip(lists, best.tolist(), strict=True)]
    search.take(_Choices(np.sum(columns, axis=0), best[:, None], np.zeros(1)), floor=-np.inf, to_violation=True)
    lower, least, inside = np.inf, 0.0, search.inside_own_limits(below)
    if inside.can_hold():
        lower = inside.improve(max_looks, to_violation=False)
    if inside.is_improved:
        search.places, search.violation, search.value = inside.places, 0.0, inside.value
    if search.violation == 0:
        lower = min(lower, search.value)
    if search.violation > 0 and nearest:
        least = search.improve(max_looks, to_violation=True)
    return OneOfEach(search.places, search.violation, search.value, lower, least)


@dataclass
class _ChoiceSearch:
    """The lists, and the best choice so far."""

    options: list[FloatArray]
    names: list[IntArray]  # the place of each option in its whole list
    constants: FloatArray
    bounds: FloatArray
    ordered: tuple[tuple[int, int], ...]
    places: IntArray
    violation: float = np.inf
    value: float = np.inf
    is_improved: bool = False

    def inside_own_limits(self, below: float) -> "_ChoiceSearch":
        """Return the search of choices below a value, without limits that one list changes, and options that miss them.

        A limit that no list changes is checked by the first list.
        """
        n_limits, n_sums = self.bounds.size, self.constants.size
        changes = np.array([np.ptp(own[:n_limits], axis=1) > 0 for own in self.options])
        owners, is_shared = changes.argmax(axis=0), changes.sum(axis=0) > 1
        kept = np.append(is_shared, np.ones(n_sums - n_limits, dtype=np.bool_))
        room = self.bounds - self.constants[:n_limits] - sum(own[:n_limits, 0] for own in self.options)
        options, names = [], []
        for place, own in enumerate(self.options):
            limits = np.flatnonzero((owners == place) & ~is_shared)
            some = np.flatnonzero((own[limits] - own[limits, :1] <= room[limits, None]).all(axis=0))
            options.append(own[np.ix_(kept, some)])
            names.append(some)
        value = min(below, self.value if self.violation == 0 else np.inf)
        return _ChoiceSearch(
            options, names, self.constants[kept], self.bounds[is_shared], self.ordered, self.places, 0.0, value
        )

    def can_hold(self) -> bool:
        """Return whether a mixture of choices keeps the limits, which then a choice may do, too."""
        if not all(own.size for own in self.names):
            return False
        if not self.bounds.size:
            return True
        weights, floor = self.prices(to_violation=True)
        return floor + sum(float((weights @ own).min()) for own in self.options) <= _KEPT

    def improve(self, looks: int, *, to_violation: bool) -> float:
        """Look for a better choice, and return what no choice is below: in violation, or in value inside of limits.

        Lists are joined, those with the fewest options that matter first, until two are left.
        """
        weights, floor = self.prices(to_violation=to_violation)
        lists = []
        for place, options in enumerate(self.options):
            costs = weights @ options
            bounds = costs - costs.min()
            floor += float(costs.min())
            order = np.argsort(bounds, kind="stable")
            places = np.zeros((len(self.options), order.size), dtype=np.int64)
            places[place] = self.names[place][order]
            lists.append(_Choices(options[:, order], places, bounds[order]))
        sums, places = (np.sum([own[:, :1] for own in part], axis=0) for part in list(zip(*lists, strict=True))[:2])
        cheapest = _Choices(sums, places, np.zeros(1))  # of each list
        self.take(cheapest, floor=floor, to_violation=to_violation)
        lost = np.inf  # the least bound of the pairs that are not tried
        while len(lists) > 2:  # noqa: PLR2004 - the last two are tried in pairs
            check_budget()
            slack = self._best(to_violation=to_violation) - floor
            lists.sort(key=lambda one: one.n_within(slack))
            join, above = lists[0].join(lists[1], slack, min(_MOST_MERGED, looks // _MERGED))
            lists, lost = [join, *lists[2:]], min(lost, floor + above)
        if len(lists) == 1:
            self.take(lists[0], floor=floor, to_violation=to_violation)
        else:
            lost = min(lost, self.take(*lists, floor=floor, looks=looks, to_violation=to_violation))
        return min(self._best(to_violation=to_violation), lost)

    def _best(self, *, to_violation: bool) -> float:
        if to_violation:
            return self.violation
        return self.value if self.violation == 0 else np.inf

    def take(
        self,
        one: "_Choices",
        other: "_Choices | None" = None,
        *,
        floor: float,
        looks: int = 1 << 62,
        to_violation: bool,
    ) -> float:
        """Take the best of some choices, or of their pairs with others, where it is better than the best so far.

        Pairs are tried by rising bound of the first. Return the least bound of those that would be too many.
        """
        if other is None:  # the one choice of no list
            nowhere = np.zeros((len(self.options), 1), np.int64)
            other = _Choices(np.zeros((self.constants.size, 1)), nowhere, np.zeros(1))
        first, n_choices = 0, one.bounds.size
        while first < n_choices:
            check_budget()
            best = self._best(to_violation=to_violation)
            slack = best - floor - (_SAME * max(1.0, abs(best)) if best < np.inf else 0.0)
            if one.bounds[first] > slack or (to_violation and best == 0.0):
                break
            if looks <= 0:
                return floor + float(one.bounds[first])
            n_others = max(other.n_within(slack - float(one.bounds[first])), 1)
            last = min(first + max(_AT_ONCE // n_others, 1), max(one.n_within(slack), first + 1))
            for start in range(0, n_others, _AT_ONCE):
                others = other.some(start, min(start + _AT_ONCE, n_others))
                self._try_pairs(one.some(first, last), others, to_violation=to_violation)
            first, looks = last, looks - (last - first) * n_others
        return np.inf

    def _try_pairs(self, one: "_Choices", other: "_Choices", *, to_violation: bool) -> None:
        """Take the pair of the least violation, then the least value, where it is better than the best so far.

        Unless the violation is looked for, only pairs without any count.
        """
        n_limits, own = self.bounds.size, one.sums + self.constants[:, None]
        is_candidate = np.ones((one.bounds.size, other.bounds.size), dtype=np.bool_)
        for before, after in self.ordered:
            rises = one.places[after] - one.places[before]
            is_candidate &= np.greater_equal.outer(rises, other.places[before] - other.places[after])
        if to_violation:
            violations = np.zeros(is_candidate.shape)
            for values, others, bound in zip(own, other.sums, self.bounds.tolist(), strict=False):
                violations += np.maximum(np.add.outer(values - bound, others), 0.0)
            least = float(violations.min(where=is_candidate, initial=np.inf))
            is_candidate &= violations == least
        else:
            least = 0.0
            for values, others, bound in zip(own, other.sums, self.bounds.tolist(), strict=False):
                is_candidate &= np.less_equal.outer(values - bound, -others)
        if least > self.violation:
            return
        if least == self.violation:
            for values, others in zip(own[n_limits:], other.sums[n_limits:], strict=True):
                is_candidate &= np.less.outer(values - self.value, -others)
        rows, columns = np.nonzero(is_candidate)
        if not rows.size:
            return
        values = (own[n_limits:, rows] + other.sums[n_limits:, columns]).max(axis=0)
        best = int(values.argmin())
        if least < self.violation or values[best] < self.value:
            self.places = one.places[:, rows[best]] + other.places[:, columns[best]]
            self.violation, self.value, self.is_improved = least, float(values[best]), True

    def prices(self, *, to_violation: bool) -> tuple[FloatArray, float]:
        """Return weights of the sums and an offset: choices that keep the limits cost at least what the weights give.

        For the violation weights of limits are at most 1 and objectives weigh nothing; for the value the objectives
        share a weight of 1. They are the dual solution of the linear program over mixtures of the choices, by column
        generation.
        """
        n_limits, n_sums = self.bounds.size, self.constants.size
        n_lists, is_limit = len(self.options), np.arange(n_sums) < n_limits
        if n_sums == 1:
            return np.ones(1), float(self.constants[0])
        most = np.where(is_limit, 1.0 if to_violation else _LARGEST_PRICE, 0.0 if to_violation else 1.0)
        gain = self.constants - np.where(is_limit, np.append(self.bounds, np.zeros(n_sums - n_limits)), 0.0)
        shares = None if to_violation else np.append((~is_limit).astype(np.float64), np.zeros(n_lists))[None]
        limits = [(0.0, top) for top in most] + [(None, None)] * n_lists
        weights = np.where(is_limit | to_violation, 0.0, 1.0 / max(n_sums - n_limits, 1))
        best = -np.inf, weights
        rows: list[FloatArray] = []
        for _ in range(_MAX_ROUNDS):
            check_budget()
            least = 0.0
            for place, own in enumerate(self.options):
                costs = weights @ own
                at = int(costs.argmin())
                least += float(costs[at])
                rows.append(np.concatenate([-own[:, at], np.eye(n_lists)[place]]))  # its share is at most what it costs
            if weights @ gain + least > best[0]:
                best = float(weights @ gain + least), weights
            cost, whole = -np.append(gain, np.ones(n_lists)), None if shares is None else np.ones(1)
            solution = linprog(cost, np.array(rows), np.zeros(len(rows)), shares, whole, limits, method="highs")
            if solution.x is None or -solution.fun - best[0] <= _CLOSED * max(1.0, abs(best[0])):
                break
            weights = np.clip(solution.x[:n_sums], 0.0, most)
            if shares is not None and n_sums > n_limits:
                weights[n_limits:] /= max(weights[n_limits:].sum(), 1e-300)
        return best[1], float(best[1] @ gain)


class _Choices(NamedTuple):
    """Choices of some of the lists, by rising bound: what any choice with them costs at least, above the floor."""

    sums: FloatArray
    places: IntArray  # (n_lists, n_choices): 0 in lists that are not chosen from
    bounds: FloatArray

    def n_within(self, slack: float) -> int:
        return int(np.searchsorted(self.bounds, slack, side="right"))

    def some(self, first: int, last: int) -> "_Choices":
        """Return the choices from a first one up to a last one, which is left out."""
        return _Choices(self.sums[:, first:last], self.places[:, first:last], self.bounds[first:last])

    def join(self, other: "_Choices", slack: float, most: int) -> tuple["_Choices", float]:
        """Return the pairs of both within the slack, and the least bound of those beyond the most to keep."""
        n_own, above = max(self.n_within(slack), 1), np.inf
        counts = np.maximum(np.searchsorted(other.bounds, slack - self.bounds[:n_own], side="right"), 1)
        if counts.sum() > most:  # keep a square of the lowest ones
            side = max(int(most**0.5), 1)
            above = min(float(one.bounds[side]) if one.bounds.size > side else np.inf for one in (self, other))
            n_own = min(n_own, side)
            counts = np.minimum(counts[:n_own], side)
        rows = np.repeat(np.arange(n_own), counts)
        columns = np.arange(rows.size) - np.repeat(np.cumsum(counts) - counts, counts)
        bounds = self.bounds[rows] + other.bounds[columns]
        order = np.argsort(bounds, kind="stable")
        rows, columns = rows[order], columns[order]
        sums, places = self.sums[:, rows] + other.sums[:, columns], self.places[:, rows] + other.places[:, columns]
        return _Choices(sums, places, bounds[order]), above
