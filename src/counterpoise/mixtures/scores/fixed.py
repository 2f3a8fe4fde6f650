"""One rule without draws: the best threshold for each group.

A fixed rule that meets goals is a point of a grid with as many dimensions as there are groups: no convex program finds
it, and it need not be among the rules of the best mixture. ``solvers.one_of_each`` looks at all that may be better than
the best one known, which for one or two groups are seldom more than it looks at. For more groups it begins with the
best of several starts: the cuts of a group are thinned to a few hundred, all pairs of cuts of two groups are
exchanged as long as that helps, and the neighbourhood of the best is looked at in finer and finer steps. Where rows may
be deferred a rule has two thresholds in each group, of which one is never below the other.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from counterpoise._base.types import AnyArray, BoolArray, FloatArray, IntArray
from counterpoise.mixtures.choosing import Aim
from counterpoise.mixtures.scores.choosing import Asked, limits_of, mean_loss, pose, within_budget
from counterpoise.mixtures.scores.cuts import Cuts
from counterpoise.mixtures.scores.evidence import Ranked
from counterpoise.mixtures.scores.limits import RuleLimits
from counterpoise.mixtures.scores.program import FixedLosses, Sums, cheapest_rules
from counterpoise.mixtures.scores.rules import CutRules
from counterpoise.solvers.linear_program import FEASIBLE
from counterpoise.solvers.one_of_each import OneOfEach, choose_one_of_each

_GRID, _LEAST_GRID = 256, 32  # cuts of a group that are looked at together, of two groups and of many
_N_STARTS, _N_REFINED = 12, 3  # of which pairs are exchanged, and which are looked around at the end
_SAME = (
    1e-12  # violations and losses nearer than this are equal, in parts of the size of goals and of what is minimized
)
_MOST_LOOKS = 200_000_000  # pairs of thresholds that are looked at to find the best rule ...
_FEW_LOOKS = 1_000_000  # ... and to tell what could be met instead
_DIGITS = 11  # to which they are compared
_PRICES = (0.0, 0.5, 1.0, 2.0, 5.0)  # times the multipliers of the mixture: rules that are best at such prices
_N_SHARES = 16  # starts that call an equal part of each group positive
_N_DRAWS = 16  # starts that draw the cut of each group from the mixture


class _Space(NamedTuple):
    """Linear functions of the rules of one model: limits first, then what is minimized, the largest of the rest."""

    sums: Sums  # each in parts of its size
    bounds: FloatArray
    room: FloatArray  # what a limit may be missed by: rounding
    cuts: Cuts

    def keys(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the total violation and the objective for values of the functions, one column for each rule."""
        n_limits = len(self.bounds)
        shape = (-1,) + (1,) * (values.ndim - 1)
        excess = values[:n_limits] - self.bounds.reshape(shape)
        violation = np.where(excess > self.room.reshape(shape), excess, 0.0).sum(axis=0)
        return violation, values[n_limits:].max(axis=0)

    def partner(self, edge: int) -> int | None:
        """Return which edge of a rule is the other one of the same group, where there are two."""
        return (edge + self.cuts.n_groups) % (2 * self.cuts.n_groups) if self.cuts.defers else None

    def beside(self, edge: int, cuts: IntArray, point: IntArray) -> IntArray:
        """Return the cuts that an edge can have beside the other edges of a rule."""
        other = self.partner(edge)
        if other is None:
            return cuts
        is_inside = cuts <= point[other] - self.cuts.n_cuts if edge < other else cuts - self.cuts.n_cuts >= point[other]
        return np.asarray(cuts[is_inside])

    def crossed(self, edges: Sequence[int], cuts: list[IntArray]) -> BoolArray | None:
        """Return which combinations of cuts have a lower edge above the upper one, an axis for each edge."""
        found = None
        for first, edge in enumerate(edges):
            other = self.partner(edge)
            if other is not None and edge < other and other in edges:
                last = list(edges).index(other)
                upper, lower = (_on_axis(cuts[axis], axis, len(edges)) for axis in (first, last))
                is_above = np.asarray(upper > lower - self.cuts.n_cuts)
                found = is_above if found is None else found | is_above
        return found

    def best(self, values: FloatArray, crossed: BoolArray | None = None) -> tuple[tuple[float, float], int]:
        """Return the key of the best rule, and its place: the least violation, then the least objective."""
        violation, objective = self.keys(values)
        violation = (violation if crossed is None else np.where(crossed, np.inf, violation)).ravel()
        objective = objective.ravel()
        objective = np.where(violation <= violation.min() + _SAME, objective, np.inf)
        place = int(objective.argmin())
        return (float(violation[place]), float(objective[place])), place


class Fixed(NamedTuple):
    """The best fixed rule that was found."""

    rule: CutRules  # one
    violation: float  # of all limits together, in parts of the goals' sizes
    is_proven: bool  # that none meets them
    lower: float  # no rule that meets the limits has less of the objective


def search_fixed(
    ranked: Ranked,
    aim: Aim,
    start: CutRules,
    mixture: FloatArray,
    multipliers: FloatArray,
    max_looks: int = _MOST_LOOKS,
    *,
    nearest: bool = True,
) -> Fixed:
    """Return the rule of least violation, then least objective, that was found.

    A risk of zero-one losses that counts all rows alike grows with their mean, so that is what is minimized for it.

    Parameters
    ----------
    ranked, aim
        The rows, and what is asked.
    start, mixture, multipliers
        The best mixture: its rules, shares and the prices of the goals.
    max_looks
        The most pairs of thresholds that are looked at for each model.
    nearest
        Whether the least violation is looked for where no rule meets the limits.
    """
    limits, usual = limits_of(ranked, aim), ranked.usual_rules()
    if aim.budget is not None:
        limits, _ = within_budget(ranked, limits, usual, aim.budget)
    asked = pose(ranked, aim)
    space = _space(ranked, asked, limits, start.joined(usual))
    prices = multipliers if limits.goals is None else multipliers[limits.goals.places]  # of each row that of its goal
    prices = prices * limits.sizes[: prices.size] / asked.losses.unit  # as limits and losses are in parts of these
    found = []
    for model in range(ranked.cuts.n_models):
        starts = list(_starts(ranked, space, model, start, mixture, prices))
        found.append(_searched(ranked.cuts, space, model, starts, max_looks, nearest=nearest))
    model = min(range(len(found)), key=lambda place: (*_rounded((found[place].violation, found[place].value)), place))
    is_proven = found[model].violation > 0 and all(one.least_violation > 0 for one in found)
    rule = CutRules(np.array([model]), found[model].places[None])
    lower = asked.shift + asked.losses.unit * min(one.lower for one in found)
    return Fixed(rule, found[model].violation, is_proven, lower)


def best_fixed(ranked: Ranked, aim: Aim, *, nearest: bool = True) -> Fixed:
    """Return the best rule where no mixture is known to begin with; ``nearest`` as for ``search_fixed``."""
    start = ranked.usual_rules()
    shares = np.full(start.models.size, 1 / start.models.size)
    return search_fixed(ranked, aim, start, shares, np.zeros(len(aim.goals)), _FEW_LOOKS, nearest=nearest)


def _space(ranked: Ranked, asked: Asked, limits: RuleLimits, rules: CutRules) -> _Space:
    losses = asked.losses if isinstance(asked.losses, FixedLosses) else FixedLosses(mean_loss(ranked))
    minimized = losses.sums.over(losses.unit)
    if limits.bounds.size == 0:
        return _Space(minimized, np.empty(0), np.empty(0), ranked.cuts)
    scale, sizes = limits.as_limits(rules)["row_scale"], limits.sizes
    held = limits.as_sums().over(sizes)
    both = Sums(np.append(held.constants, minimized.constants), np.vstack([held.added, minimized.added]))
    return _Space(both, limits.bounds / sizes, FEASIBLE * scale / sizes, ranked.cuts)


def _starts(
    ranked: Ranked, space: _Space, model: int, rules: CutRules, mixture: FloatArray, multipliers: FloatArray
) -> Iterator[IntArray]:
    """Yield cuts to begin with: of the mixture, its neighbours in price, equal parts of each group, and draws."""
    cuts, own = ranked.cuts, rules.models == model
    yield from rules.cuts[own]
    for price in _PRICES:
        weights = np.zeros(len(space.sums.constants))
        weights[: len(multipliers)], weights[len(space.bounds) :] = price * multipliers, 1.0
        yield cheapest_rules(cuts, space.sums.costs(weights)[1])[1].cuts[model]
    edges = cuts.edges(model)
    for share in np.linspace(0.0, 1.0, _N_SHARES):
        yield np.array([one[round(share * (one.size - 1))] for one in edges])
    if own.any():
        draws = np.random.default_rng(0)
        for _ in range(_N_DRAWS):
            drawn = draws.choice(np.flatnonzero(own), cuts.n_groups, p=mixture[own] / mixture[own].sum())
            yield rules.cuts[np.resize(drawn, len(edges)), np.arange(len(edges))]


def _searched(
    cuts: Cuts, space: _Space, model: int, starts: list[IntArray], max_looks: int, *, nearest: bool
) -> OneOfEach:
    """Return the best cut of each edge, and how much is proven: of two edges, or where all rules are few, all of it."""
    whole = cuts.edges(model)
    start = _begun(space, whole, starts) if len(whole) > 2 else _promising(space, starts)[0]  # noqa: PLR2004
    places = np.array([cut - own[0] for cut, own in zip(start.tolist(), whole, strict=True)])
    ordered = [
        (edge, other) for edge in range(len(whole)) if (other := space.partner(edge)) is not None and edge < other
    ]
    options = [space.sums.added[:, own] for own in whole]
    found = choose_one_of_each(
        options,
        space.bounds + space.room,
        constants=space.sums.constants,
        start=places,
        ordered=ordered,
        max_looks=max_looks,
        nearest=nearest,
    )
    return found._replace(places=np.array([own[at] for own, at in zip(whole, found.places.tolist(), strict=True)]))


def _begun(space: _Space, whole: list[IntArray], starts: list[IntArray]) -> IntArray:
    """Return a good rule of many edges: the best of several starts after exchanges of pairs."""
    starts = _promising(space, starts)
    thin = [_thinned(one, [start[group] for start in starts], len(whole)) for group, one in enumerate(whole)]
    reached = {point.tobytes(): (key, point) for key, point in (_improved(space, thin, start) for start in starts)}
    best = sorted(reached.values(), key=lambda one: _rounded(one[0]))[:_N_REFINED]
    return min((_refined(space, whole, thin, *one) for one in best), key=lambda one: _rounded(one[0]))[1]


def _promising(space: _Space, starts: list[IntArray]) -> list[IntArray]:
    """Return the best starts; of two groups all pairs are looked at from any start, so one is enough."""
    listed = np.unique(np.array(starts), axis=0)
    violation, objective = space.keys(space.sums.of(CutRules(np.zeros(len(listed), dtype=np.int64), listed)))
    order = np.lexsort((objective, violation))[: _N_STARTS if listed.shape[1] > 2 else 1]  # noqa: PLR2004
    return list(listed[order])


def _thinned(cuts: IntArray, kept: list[int], n_groups: int) -> IntArray:
    """Return some of the cuts, evenly spread, and those that must be kept: the fewer, the more pairs of groups."""
    size = _grid(n_groups)
    if cuts.size <= size:
        return cuts
    return np.unique(np.append(cuts[np.linspace(0, cuts.size - 1, size).astype(np.int64)], kept)).astype(np.int64)


def _grid(n_groups: int) -> int:
    """Return how many cuts of a group are looked at together."""
    return max(_LEAST_GRID, int(_GRID / max(1.0, n_groups * (n_groups - 1) / 2) ** 0.5))


def _improved(space: _Space, cuts: list[IntArray], start: IntArray) -> tuple[tuple[float, float], IntArray]:
    """Exchange the cuts of two groups at a time for the best pair, as long as that helps."""
    point, n_groups = start.copy(), len(cuts)
    pairs: list[tuple[int, ...]] = [*combinations(range(n_groups), 2)] or [(0,)]
    key, before = space.best(_at(space, point, ())[:, None])[0], None
    while before is None or _rounded(key) < before:
        before = _rounded(key)
        for pair in pairs:
            within = [
                cuts[edge] if space.partner(edge) in pair else space.beside(edge, cuts[edge], point) for edge in pair
            ]
            values = _combined(space, _at(space, point, pair), within)
            found, place = space.best(values, space.crossed(pair, within))
            if _rounded(found) < _rounded(key):
                key = found
                point[list(pair)] = _chosen(within, place)
    return key, point


def _on_axis(values: IntArray, axis: int, n_axes: int) -> IntArray:
    return values.reshape([-1 if one == axis else 1 for one in range(n_axes)])


def _combined(space: _Space, values: FloatArray, cuts: list[IntArray]) -> FloatArray:
    """Return the functions with what all combinations of some cuts add to values, an axis for each group."""
    for some in cuts:
        added = space.sums.added[:, some]
        values = values[..., None] + added.reshape(len(added), *(1,) * (values.ndim - 1), -1)
    return values


def _chosen(cuts: list[IntArray], place: int) -> IntArray:
    """Return the cuts at a place among all their combinations."""
    places = np.unravel_index(place, [some.size for some in cuts])
    return np.array([some[at] for some, at in zip(cuts, places, strict=True)])


def _at(space: _Space, point: IntArray, without: tuple[int, ...]) -> FloatArray:
    """Return the functions at a rule, without what some groups add."""
    kept = [cut for group, cut in enumerate(point.tolist()) if group not in without]
    return np.asarray(space.sums.constants + space.sums.added[:, kept].sum(axis=1))


def _refined(
    space: _Space, whole: list[IntArray], thin: list[IntArray], key: tuple[float, float], point: IntArray
) -> tuple[tuple[float, float], IntArray]:
    """Look around a rule in finer and finer steps, down to neighbouring cuts."""
    widths = [one.size / max(some.size, 1) for one, some in zip(whole, thin, strict=True)]
    while True:
        near = [
            _near(one, cut, width, len(whole)) for one, cut, width in zip(whole, point.tolist(), widths, strict=True)
        ]
        key, point = _improved(space, near, point)
        if max(widths) <= 1:
            return key, point
        widths = [max(8 * width / _grid(len(whole)), 1.0) for width in widths]


def _near(cuts: IntArray, cut: int, width: float, n_groups: int) -> IntArray:
    """Return cuts around one, up to a few steps of a width away."""
    reach = max(int(4 * width), _grid(n_groups) // 2)
    first, last = max(cut - reach, int(cuts[0])), min(cut + reach, int(cuts[-1]))
    return _thinned(np.arange(first, last + 1), [cut], n_groups)


def _rounded(key: AnyArray | tuple[float, float]) -> tuple[float, float]:
    """Return a key in which differences of rounding are none."""
    return round(float(key[0]), _DIGITS), round(float(key[1]), _DIGITS)
