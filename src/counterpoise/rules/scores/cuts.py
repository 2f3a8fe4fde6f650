"""Every threshold of every score, and the rules that they make.

Rows are sorted once for each model: by group, then by falling score. A rule decides positive for the first rows of each
group. So everything that is linear in its decisions is a running sum, evaluated at the cuts of the rule: the places
between the scores of a group where it may cut. Scores that differ only by rounding stay together, because another batch
or machine may add them up in another order.

Where rows may be deferred, a rule has two cuts in each group: it decides positive up to the first, defers up to the
second, and decides negative for the rest. Everything that is linear in its decisions is then a running sum at the first
cut plus another one at the second. So each cut has two numbers: as an upper edge and, after all of those, as a lower
edge.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np

from counterpoise._base.types import BoolArray, FloatArray, IntArray

_NEAR = 2.0**-40  # part of a score by which it may differ by rounding, some thousand times that of a float ...
_NOISE = 2.0**-50  # ... and part of the usual score, which is left where a sum of such terms cancels out
_CHAIN = 16.0  # times as much: neighbours that are near each other all the way, but span more, are data and not noise
_LEAST_EXPONENT, _N_EXPONENTS = -1080, 2160  # of floats, with a margin


class Cuts(NamedTuple):
    """The cuts of all models, numbered through: by model, then by group, then by falling threshold.

    The first cut of a group is above all its scores, so that no row of it is decided positive; the last is below all.
    """

    places: tuple[IntArray, ...]  # of each model: the first cut of a row's group at which the row is decided positive
    thresholds: FloatArray  # (n_cuts,)
    highest_below: FloatArray  # (n_cuts,): the highest score that is not decided positive at a cut; -inf at the last
    starts: IntArray  # (n_models, n_groups + 1): where the cuts of a group begin, and where those of the last end
    flat_starts: IntArray  # (n_models * n_groups + 1,): the same of all models, each start once, and the last end
    n_models: int
    n_groups: int
    n_cuts: int  # of all models
    defers: bool  # whether rules have two edges in each group, between which they defer

    def levels(self, edges: IntArray) -> FloatArray:
        """Return the thresholds of edges."""
        return np.asarray(self.thresholds[edges % self.n_cuts])

    def sums(self, rows: IntArray | slice, amounts: FloatArray) -> FloatArray:
        """Return for each cut the total amount of some rows that are decided positive there."""
        return self._cumulate([places[rows] for places in self.places], amounts)

    def flips(self, rows: IntArray, twins: IntArray, amounts: FloatArray) -> FloatArray:
        """Return for each cut the total amount of rows of which it decides the twin otherwise; both have one group.

        These are the rows of which one of the two is decided positive there, but not both.
        """
        pairs = [(places[rows], places[twins]) for places in self.places]
        either = self._cumulate([np.minimum(*pair) for pair in pairs], amounts)
        return either - self._cumulate([np.maximum(*pair) for pair in pairs], amounts)

    def _cumulate(self, places: list[IntArray], amounts: FloatArray) -> FloatArray:
        """Return for each cut the total amount at it and before it in its group, given the cuts of rows by model."""
        totals = np.concatenate(
            [
                np.bincount(own - start, amounts, end - start)
                for own, start, end in zip(places, self.starts[:, 0], self.starts[:, -1], strict=True)
            ]
        )
        totals = totals.astype(np.float64, copy=False)  # of no rows numpy counts in whole numbers
        return running_sums(totals, self.flat_starts)


def running_sums(values: FloatArray, starts: IntArray) -> FloatArray:
    """Return the running sums of values, which begin anew at each start, in place of the values; the last is the end.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.rules.scores.cuts import running_sums
    >>> running_sums(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0, 2, 4])).tolist()
    [1.0, 3.0, 3.0, 7.0]
    """
    for start, end in pairwise(starts.tolist()):
        np.cumsum(values[start:end], out=values[start:end])
    return values


def exponent_counts(scores: FloatArray) -> IntArray:
    """Return how many scores there are of each binary order, zeros aside; counts of several parts are added."""
    some = scores[scores != 0]
    return np.bincount(np.frexp(some)[1] - _LEAST_EXPONENT, minlength=_N_EXPONENTS)


def noise_of(counts: IntArray) -> float:
    """Return what rounding may leave of a score that is zero, from the counts of its binary orders.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.rules.scores.cuts import exponent_counts, noise_of
    >>> scores = np.array([0.5, 0.75, 0.0])
    >>> noise_of(exponent_counts(scores)) == 2.0**-50, noise_of(exponent_counts(scores * 4)) == 2.0**-48
    (True, True)
    """
    median = int(np.searchsorted(np.cumsum(counts), (counts.sum() + 1) // 2)) + _LEAST_EXPONENT
    return float(np.ldexp(_NOISE, median)) if counts.any() else 0.0


def rounding_tolerance(lower: FloatArray, upper: FloatArray, noise: float) -> FloatArray:
    """Return by how much two scores may differ by rounding alone; ``noise`` is that of a score of zero."""
    return np.maximum(noise, _NEAR * np.maximum(np.abs(lower), np.abs(upper)))


def block_starts(falling: FloatArray, noise: float) -> BoolArray:
    """Return where blocks of scores that go together begin among falling scores.

    Neighbours that may be one but for rounding go together. Where they do so all the way along a chain that is longer
    than rounding can be, only equal scores do.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.rules.scores.cuts import block_starts
    >>> block_starts(np.array([0.9, 0.3, 0.3 - 1e-15, 3e-12, 2e-12]), noise=1e-16).tolist()
    [True, True, False, True, True]
    """
    begins = np.ones(falling.size, dtype=np.bool_)
    upper, lower = falling[:-1], falling[1:]
    with np.errstate(over="ignore"):  # infinitely far apart
        begins[1:] = upper - lower > rounding_tolerance(lower, upper, noise)
        firsts = np.flatnonzero(begins)
        lasts = np.append(firsts[1:], falling.size) - 1
        tops, ends = falling[firsts], falling[lasts]
        is_long = tops - ends > _CHAIN * rounding_tolerance(ends, tops, noise)
    is_long &= lasts > firsts
    for first, last in zip(firsts[is_long].tolist(), lasts[is_long].tolist(), strict=True):
        begins[first + 1 : last + 1] = lower[first:last] < upper[first:last]
    return begins


def find_cuts(scores: FloatArray, groups: IntArray, n_groups: int, *, defers: bool = False) -> Cuts:
    """Sort the rows by each score.

    Parameters
    ----------
    scores : array of shape (n_rows, n_models)
        Finite; the higher, the more likely positive.
    groups : array of shape (n_rows,)
        The group of each row, from 0; a group may be empty.
    n_groups : int
    defers : bool, default=False
        Whether rules may defer.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.rules.scores.cuts import find_cuts
    >>> cuts = find_cuts(np.array([[0.2], [0.9], [0.2], [0.6]]), np.array([0, 0, 0, 0]), 1)
    >>> cuts.thresholds.tolist(), cuts.places[0].tolist()
    ([inf, 0.75, 0.4, -inf], [3, 1, 3, 2])
    >>> cuts.sums(slice(None), np.ones(4)).tolist()
    [0.0, 1.0, 2.0, 4.0]
    """
    codes = groups.astype(np.min_scalar_type(n_groups), copy=False)  # short ones are sorted faster
    places, all_starts, all_thresholds, all_below, n_cuts = [], [], [], [], 0
    for column in scores.T:
        order = np.argsort(-column)
        if n_groups > 1:
            order = order[np.argsort(codes[order], kind="stable")]
        falling, grouped = column[order], groups[order]
        noise = noise_of(exponent_counts(column))
        edges = np.flatnonzero(np.diff(grouped)) + 1
        begins = np.concatenate([block_starts(part, noise) for part in np.split(falling, edges)])
        starts = np.concatenate([[0], np.cumsum(np.bincount(grouped[begins], minlength=n_groups) + 1)])
        place = np.empty(order.size, dtype=np.int64)
        place[order] = np.cumsum(begins) + grouped + n_cuts  # each group has one cut before all its blocks of rows
        # The threshold of a cut is in the middle of the gap behind a block, and infinite at the ends of a group.
        firsts, every = np.flatnonzero(begins), np.arange(starts[-1])
        lowest = falling[np.append(firsts[1:], falling.size) - 1]
        following = np.append(falling[firsts[1:]], 0.0)  # the highest of the next block; nonsense at a group's end
        middle = lowest / 2 + following / 2  # each half by itself: their sum may be beyond the largest number
        thresholds, below = np.full(starts[-1], np.inf), np.full(starts[-1], -np.inf)
        between = np.where(middle < lowest, middle, following)  # neighbours may have no number between them
        thresholds[np.delete(every, starts[:-1])] = between  # the cuts that come behind a block
        thresholds[starts[1:] - 1] = -np.inf
        thresholds[starts[:-1][np.diff(starts) == 1]] = np.inf  # of an empty group, whose one cut is both
        below[np.delete(every, starts[1:] - 1)] = falling[firsts]  # the cuts that come before a block
        places.append(place)
        all_starts.append(starts + n_cuts)
        all_thresholds.append(thresholds)
        all_below.append(below)
        n_cuts += every.size
    starts = np.array(all_starts)
    flat, sizes = np.append(starts[:, :-1].ravel(), n_cuts), (len(starts), n_groups, n_cuts)
    return Cuts(tuple(places), np.concatenate(all_thresholds), np.concatenate(all_below), starts, flat, *sizes, defers)


_SLIVER = 1e-12  # shares below this are rounding of sums


class Rule(NamedTuple):
    """A rule as plain data: it decides positive where the score of a model is above the threshold of the group.

    A rule may defer: it decides negative where the score is not above the lower threshold of the group, and leaves rows
    between the two thresholds to a person.

    Attributes
    ----------
    model : int
        Place of the model among ``estimators_``.
    thresholds : dict from names of groups to floats
        Such as ``{"sex=F": 0.41, "sex=M": 0.53}``, or ``{"all": 0.5}`` for one threshold; infinite where no row,
        or every row, of a group is decided positive.
    lower : dict from names of groups to floats, or None
        The scores above which rows are deferred, in each group no higher than the threshold. None: no row is deferred.
    """

    model: int
    thresholds: dict[str, float]
    lower: dict[str, float] | None = None

    @property
    def levels(self) -> tuple[list[float], list[float]]:
        """Return the thresholds and the lower ones, by group."""
        upper = [*self.thresholds.values()]
        return upper, upper if self.lower is None else [self.lower[group] for group in self.thresholds]

    def __str__(self) -> str:
        upper = ", ".join(f"{group}: {threshold:.4g}" for group, threshold in self.thresholds.items())
        if self.lower is None:
            return f"model {self.model} above {upper}"
        lower = ", ".join(f"{group}: {threshold:.4g}" for group, threshold in self.lower.items())
        return f"model {self.model} above {upper}; deferred above {lower}"

    def check_loaded(self) -> None:
        """Check the values that were read from a file."""
        if type(self.model) is not int or not all(type(one) is float for one in self.thresholds.values()):
            raise ValueError("it is no model with thresholds")
        if self.lower is None:
            return
        if tuple(self.lower) != tuple(self.thresholds) or not all(type(one) is float for one in self.lower.values()):
            raise ValueError("its lower thresholds are of other groups")
        if any(lower > upper for upper, lower in zip(*self.levels, strict=True)):
            raise ValueError("a lower threshold is above the upper one")


@dataclass(frozen=True, eq=False)
class CutRules:
    """Rules by their cuts."""

    models: IntArray  # (n_rules,)
    cuts: IntArray  # (n_rules, n_groups), or (n_rules, 2 n_groups) where they have a lower edge in each group too

    def __len__(self) -> int:
        return self.models.size

    def join(self, others: Self) -> Self:
        """Return these rules, then those of the others that are not among them."""
        # In reverse, so that the first of equals is kept.
        places = {cuts.tobytes(): place for place, cuts in reversed(list(enumerate(others.cuts)))}
        known = {cuts.tobytes() for cuts in self.cuts}
        fresh = sorted(place for cuts, place in places.items() if cuts not in known)
        return type(self)(
            np.concatenate([self.models, others.models[fresh]]), np.concatenate([self.cuts, others.cuts[fresh]])
        )

    def only(self, places: IntArray | BoolArray | slice) -> Self:
        """Return some of the rules."""
        return type(self)(self.models[places], self.cuts[places])


def rules_at(cuts: Cuts, levels: Iterable[tuple[int, Sequence[float], Sequence[float]]]) -> CutRules:
    """Return rules, given the model of each and its thresholds and lower thresholds, by group or one for all groups.

    They decide positive for the scores above a threshold, and for no others.
    """
    models, rules = [], []
    for model, *levels_of_rule in levels:
        edges: list[IntArray] = []
        for thresholds in levels_of_rule[: 1 + cuts.defers]:
            own = []
            for (start, end), threshold in zip(
                pairwise(cuts.starts[model].tolist()), np.broadcast_to(thresholds, cuts.n_groups), strict=True
            ):
                place = int(np.searchsorted(-cuts.highest_below[start:end], -threshold))
                own.append(start + min(place, end - start - 1))
            edges.append(np.array(own))
        if cuts.defers:
            edges[1] = cuts.n_cuts + np.maximum(*edges)
        models.append(model)
        rules.append(np.concatenate(edges))
    return CutRules(np.array(models), np.array(rules))


def couple(rules: CutRules, mixture: FloatArray) -> tuple[CutRules, FloatArray]:
    """Return rules and shares with the same chance of each cut in each group, that fall together in all groups.

    What a mixture decides about a row depends only on the probabilities of the cuts of its group. So the rules can be
    ordered: where one has a higher threshold than another in some group, it has a lower one in none. Of two edges in
    a group each is ordered by itself, and stays on its side of the other.
    """
    models, cuts, shares = [], [], []
    for model in np.unique(rules.models[mixture > 0]).tolist():
        own = rules.cuts[rules.models == model]
        orders = np.argsort(-own, axis=0, kind="stable")  # the lowest thresholds first
        edges = np.cumsum(mixture[rules.models == model][orders], axis=0)  # by group: where the cut of each rule ends
        ends = np.unique(edges)
        ends = ends[np.append(np.diff(ends) > _SLIVER, True)]
        ends = ends[ends > _SLIVER]
        lengths = np.diff(ends, prepend=0.0)
        middles = ends - lengths / 2
        columns = [
            own[order[np.minimum(np.searchsorted(edge, middles), len(edge) - 1)], group]
            for group, (order, edge) in enumerate(zip(orders.T, edges.T, strict=True))
        ]
        own_cuts = np.column_stack(columns)
        differs = (own_cuts[1:] != own_cuts[:-1]).any(axis=1)  # equal neighbours are one rule
        firsts = np.flatnonzero(np.append(True, differs))
        models += [model] * firsts.size
        cuts.append(own_cuts[firsts])
        shares.append(np.add.reduceat(lengths, firsts))
    together = np.concatenate(shares)
    return CutRules(np.array(models), np.concatenate(cuts)), together / together.sum()
