"""One rule without draws: the best threshold for each group, in the place of the best mixture of rules.

A fixed rule that meets goals is a point of a grid with one dimension for each group. No convex program finds it, and it
need not be among the rules of the best mixture. ``solvers.one_of_each`` examines all points that may be better than the
best one so far; for one or two groups these are seldom too many. For more groups it starts from the best of several
starts: the cuts of a group are thinned to a few hundred, pairs of cuts of two groups are exchanged as long as that
helps, and the neighbourhood of the best is searched in finer and finer steps. Where rows may be deferred, a rule has
two thresholds in each group, of which one is never below the other.
"""

from collections.abc import Callable, Iterator
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np

from counterpoise._base.budget import check_budget
from counterpoise._base.text import Advice, Setting
from counterpoise._base.types import AnyArray, BoolArray, FloatArray, IntArray
from counterpoise.goals import Goal, InfeasibleGoals
from counterpoise.rules.choosing import FIXED, PoolPredictions, Problem, check_one_rule, value_of
from counterpoise.rules.disparities import first_boxes
from counterpoise.rules.goal_rows import TRAIN, whole_box
from counterpoise.rules.no_rule import no_single_rule
from counterpoise.rules.options import Groups
from counterpoise.rules.program import Choice, NoMixture, Objective, build_objective, with_budget
from counterpoise.rules.scores.cuts import CutRules, Cuts, rules_at
from counterpoise.rules.scores.family import CutFamily, group_limits, with_least_mean
from counterpoise.rules.scores.sums import RuleLimits, Sums, as_sums, cheapest_rules
from counterpoise.rules.scores.table import RankedScores, find_groups, rank
from counterpoise.solvers.intervals import Box, Examined, minimize_over_box
from counterpoise.solvers.linear_program import FEASIBLE
from counterpoise.solvers.one_of_each import OneOfEach, choose_one_of_each
from counterpoise.theory.risks import CVaR, Risk, WorstGroup

_GRID, _LEAST_GRID = 256, 32  # cuts of a group that are examined together, for two groups and for many
_N_STARTS, _FEW_STARTS = 12, 4  # starts whose pairs are exchanged, to find the best rule and bounds to offer ...
_N_REFINED = 3  # ... and starts that are refined at the end
_SAME = 1e-12  # violations and losses nearer than this are equal, in parts of the sizes of goals and objective
_MOST_LOOKS = 200_000_000  # pairs of thresholds that are examined to find the best rule ...
_FEW_LOOKS = 1_000_000  # ... and to find bounds that could be met instead
_MOST_BOXES = 2000  # in which ratios that are compared are searched
_FINE = 0.1  # part of the gap that is good enough: a search of rules costs little
_DIGITS = 11  # to which they are compared
_PRICES = (0.0, 0.5, 1.0, 2.0, 5.0)  # times the multipliers of the mixture: rules that are best at such prices
_N_SHARES = 16  # starts that call an equal part of each group positive
_N_DRAWS = 16  # starts that draw the cut of each group from the mixture


class FixedRule(NamedTuple):
    """The best fixed rule of a search."""

    rule: CutRules  # one
    violation: float  # of all limits together, in parts of the goals' sizes
    is_proven: bool  # that none meets them
    lower: float  # no rule that meets the limits has less of the objective


class Effort(NamedTuple):
    """How a rule is searched for."""

    max_looks: int  # pairs of thresholds that are examined
    nearest: bool = True  # whether the least violation is looked for where no rule meets the limits
    below: float = np.inf  # rules of this value or more are not looked for
    exchanges: bool = True  # whether starts of many edges are improved by exchanges


def deciding_rules(ranked: RankedScores, problem: Problem, best: Choice) -> Choice:
    """Return the rules that decide, given the best mixture; with ``"fixed"`` it is one rule, whatever that costs.

    Where only errors count, the best model decides at its usual threshold, which is the best for good probabilities: a
    threshold tuned on some rows follows their noise.
    """
    if isinstance(problem.objective, WorstGroup):
        best = with_least_mean(CutFamily(ranked), problem, best)
    counts_errors = isinstance(problem.objective, Risk) and problem.objective.tail_fraction == 1.0
    is_plain = problem.keeps_default_threshold and counts_errors and not problem.goals and problem.deferral is None
    alone, lower = _best_usual(ranked) if is_plain else None, best.lower
    is_usual = alone is not None
    if alone is None:
        if problem.decision != FIXED:
            return best
        check_one_rule(problem.objective)
        best_rule = search_fixed(ranked, problem, best.rules, best.mixture, best.multipliers)
        if best_rule.violation > 0 and not problem.explains:
            raise NoMixture(None, best_rule.rule, proven=best_rule.is_proven)
        if best_rule.violation > 0:
            mixed = f"A mixture of rules meets the goals, with an objective of {best.value:.4g}: set decision='sticky'."
            raise no_rule(ranked, problem, best_rule, [mixed])
        alone, lower = best_rule.rule, max(best_rule.lower, best.lower)
    value = value_of(ranked.predictions_of(alone), problem, np.ones(1))
    cost = best.cost + max(value - best.value, 0.0)  # the best mixture is known to its gap
    lower = lower if is_usual else min(lower, value)
    return Choice(np.ones(1), value, lower, best.multipliers, alone, cost, best.risk, is_usual)


def choose_one_rule(ranked: RankedScores, problem: Problem) -> Choice:
    """Return the best single rule inside of goals that compare ratios, for which no mixture is known."""
    check_one_rule(problem.objective)
    start = ranked.usual_rules()
    shares, no_prices = np.full(start.models.size, 1 / start.models.size), np.zeros(len(problem.goals))
    best = search_fixed(ranked, problem, start, shares, no_prices)
    if best.violation > 0 and not problem.explains:
        raise NoMixture(None, best.rule, proven=best.is_proven)
    if best.violation > 0:
        raise no_rule(ranked, problem, best, [])
    value = value_of(ranked.predictions_of(best.rule), problem, np.ones(1))
    return Choice(np.ones(1), value, min(best.lower, value), no_prices, best.rule)


def limits_of(ranked: RankedScores, problem: Problem) -> RuleLimits:
    """Return the goals as limits, with a budget above the least mean loss within them where there is one.

    That is the least of a mixture, or of one rule where goals compare ratios.
    """
    family = CutFamily(ranked)
    limits = family.limits(problem.goals)
    if problem.budget is None or not limits.spreads:
        return with_budget(family, limits, problem.budget)[0]  # type: ignore[no-any-return]
    best = best_fixed(ranked, problem._replace(objective=CVaR(1.0), budget=None))
    if best.violation > 0:
        raise no_rule(ranked, problem, best, [])
    return family.add_budget(limits, float(family.mean_losses().of(best.rule)[0, 0]) + problem.budget)


def _best_usual(ranked: RankedScores) -> CutRules | None:
    """Return the model of the least error at its usual threshold; None where its scores have none.

    The usual threshold of scores that are no probabilities is 0. Where that is no better than one constant
    decision, the scores have no usual threshold.
    """
    usual, positive = ranked.table.usual, float(ranked.mass @ ranked.is_positive)
    rules = rules_at(ranked.cuts, [(model, one, one) for model, one in enumerate(usual.tolist())])
    errors = CutFamily(ranked).mean_losses().of(rules)[0]
    best = int(errors.argmin())
    has_none = usual[best] == 0 and errors[best] >= min(positive, 1.0 - positive)
    return None if has_none else rules.only(np.array([best]))


def no_rule(
    ranked: RankedScores, problem: Problem, nearest: FixedRule, hints: list[str], mixed: InfeasibleGoals | None = None
) -> InfeasibleGoals:
    """Return the error where no single rule meets the goals, given the one that misses them least.

    ``mixed`` is the same of mixtures of rules, where these cannot meet the goals either.
    """

    def find(goals: tuple[Goal, ...]) -> PoolPredictions | None:
        other = best_fixed(ranked, problem._replace(goals=goals, budget=None), nearest=False)
        return None if other.violation > 0 else ranked.predictions_of(other.rule)

    proven = nearest.is_proven or (mixed is not None and mixed.proven)
    hints = [*hints, *_hint_of_groups(ranked, problem)]
    least = ranked.predictions_of(nearest.rule)
    return no_single_rule(
        problem.goals, find, nearest.violation, mixed=mixed, hints=hints, proven=proven, nearest=least
    )


def _hint_of_groups(ranked: RankedScores, problem: Problem) -> Iterator[str]:
    """Yield a hint that a threshold for each group would meet the goals, where rules use no groups and it would."""
    table = ranked.table.answers.tables[TRAIN]
    names = table.sensitive_columns
    if ranked.groups.by or not names:
        return
    try:
        own = rank(ranked.table, find_groups(Groups(names), table, ranked.table.n_rows))
    except ValueError:  # groups with too few rows
        return
    best = best_fixed(own, problem._replace(budget=None), nearest=False)
    if best.violation <= 0:
        risk = value_of(own.predictions_of(best.rule), problem, np.ones(1))
        by = names[0] if len(names) == 1 else list(names)
        head = f"One rule with a threshold for each group meets them, with an objective of {risk:.4g}: set "
        yield Advice(head, Setting("by", by), ".")


def best_fixed(ranked: RankedScores, problem: Problem, *, nearest: bool = True) -> FixedRule:
    """Return the best rule without a mixture to start from; ``nearest`` as for ``search_fixed``."""
    start = ranked.usual_rules()
    shares = np.full(start.models.size, 1 / start.models.size)
    return search_fixed(ranked, problem, start, shares, np.zeros(len(problem.goals)), _FEW_LOOKS, nearest=nearest)


def search_fixed(
    ranked: RankedScores,
    problem: Problem,
    start: CutRules,
    mixture: FloatArray,
    multipliers: FloatArray,
    max_looks: int = _MOST_LOOKS,
    *,
    nearest: bool = True,
) -> FixedRule:
    """Search for the rule of least violation and, among those, of least objective.

    A risk of zero-one losses that counts all rows alike grows with their mean, so the mean is minimised for it.

    Parameters
    ----------
    ranked, problem
        The scores, and the objective and goals.
    start, mixture, multipliers
        The best mixture: its rules, shares and the prices of the goals.
    max_looks
        The most pairs of thresholds to examine for each model.
    nearest
        Whether to minimise the violation where no rule meets the limits.
    """
    family = CutFamily(ranked)
    limits = limits_of(ranked, problem)
    objective = build_objective(family, problem.objective)
    losses = objective.losses if isinstance(objective.losses, Sums) else family.mean_losses()

    def search(within: RuleLimits, effort: Effort) -> FixedRule:
        effort = effort._replace(below=effort.below - objective.shift)
        best = _search_within(ranked, within, losses, start, mixture, multipliers, effort)
        return best._replace(lower=objective.shift + best.lower)

    if limits.spreads:
        first = family.start(objective._replace(losses=losses)).only(np.zeros(1, dtype=np.int64))
        return _search_intervals(limits, objective._replace(losses=losses), first, search, problem.tol, max_looks)
    found = search(limits, Effort(max_looks, nearest=nearest))
    if not isinstance(problem.objective, WorstGroup) or found.violation > 0:
        return found
    within = group_limits(family, problem, found.rule, np.ones(1))  # of equals the rule with the least mean loss
    effort, mean = Effort(max_looks, nearest=False), family.mean_losses()
    least = _search_within(ranked, within, mean, found.rule, np.ones(1), multipliers, effort)
    return found if least.violation > 0 else found._replace(rule=least.rule)


def _search_within(
    ranked: RankedScores,
    limits: RuleLimits,
    losses: Sums,
    start: CutRules,
    mixture: FloatArray,
    multipliers: FloatArray,
    effort: Effort,
) -> FixedRule:
    """Return the best rule inside of linear limits, if its value, without the objective's shift, is below a number."""
    goals, cuts = limits.goals, ranked.cuts
    space = build_space(limits, losses, start.join(ranked.usual_rules()))
    sizes = space.sizes
    prices = multipliers if goals is None else multipliers[goals.places]  # of each row that of its goal
    prices = prices * sizes[: prices.size] / losses.unit  # as limits and losses are in parts of these
    best = []
    for model in range(cuts.n_models):
        edges = [np.arange(first, last) for first, last in pairwise(cuts.starts[model].tolist())]
        edges += [one + cuts.n_cuts for one in edges] if cuts.defers else []  # the lower ones in each group
        starts = list(_starts(space, model, edges, start, mixture, prices))
        best.append(_best_of_model(space, edges, starts, effort._replace(below=effort.below / losses.unit)))
    model = min(range(len(best)), key=lambda place: (*_round_key((best[place].violation, best[place].value)), place))
    is_proven = best[model].violation > 0 and all(one.least_violation > 0 for one in best)
    rule = CutRules(np.array([model]), best[model].places[None])
    return FixedRule(rule, best[model].violation, is_proven, losses.unit * min(one.lower for one in best))


def _search_intervals(
    limits: RuleLimits,
    objective: Objective,
    first: CutRules,
    search: Callable[[RuleLimits, Effort], FixedRule],
    tol: float,
    max_looks: int,
) -> FixedRule:
    """Return the best rule where goals compare ratios: a search of the intervals in which these lie."""
    alone = np.ones(1)
    nearest, gap = FixedRule(first, np.inf, is_proven=False, lower=-np.inf), _FINE * tol * objective.losses.unit

    def try_rule(within: RuleLimits, best: float, *, exchanges: bool = False) -> tuple[FixedRule, float]:
        """Return a rule inside of limits that is better than the best, and its value; infinite where it is not."""
        nonlocal nearest
        found = search(within, Effort(max_looks, nearest=False, below=best - gap, exchanges=exchanges))
        excess = found.violation + sum(one.excess(alone) for one in limits.spreads_of(found.rule))
        if excess < nearest.violation:
            nearest = FixedRule(found.rule, excess, is_proven=False, lower=-np.inf)
        value = objective.shift + float(objective.losses.of(found.rule).max())
        return found, value if excess == 0 else np.inf

    def examine(box: Box, best: float) -> Examined:
        box = limits.of_one_rule(box)
        found, value = try_rule(limits.within(box), best)
        if np.isinf(value) and found.lower < best - gap:
            nearer = limits.nearer(found.rule, box)
            other, value = try_rule(nearer, best, exchanges=bool(np.isinf(best)))
            found = other._replace(lower=found.lower)
        return Examined(found.lower, value, found.rule)

    box, start = whole_box(limits.spreads), first_boxes(limits.spreads)
    best = minimize_over_box(examine, box, gap, most=_MOST_BOXES, first=start)
    if best.found is None:
        return nearest._replace(is_proven=bool(np.isinf(best.lower)), lower=best.lower)
    return FixedRule(best.found, 0.0, is_proven=False, lower=best.lower)


class RuleSpace(NamedTuple):
    """Linear functions of the rules of one model: limits first, then the objective, the largest of the rest."""

    sums: Sums  # each in parts of its size
    bounds: FloatArray
    tolerance: FloatArray  # by which a limit may be missed: rounding
    cuts: Cuts
    sizes: FloatArray  # of what the goals limit, then of the mean loss where there is a budget

    def keys(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the total violation and the objective for values of the functions, one column for each rule."""
        n_limits = len(self.bounds)
        shape = (-1,) + (1,) * (values.ndim - 1)
        excess = values[:n_limits] - self.bounds.reshape(shape)
        violation = np.where(excess > self.tolerance.reshape(shape), excess, 0.0).sum(axis=0)
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

    def best(self, values: FloatArray, crossed: BoolArray | None = None) -> tuple[tuple[float, float], int]:
        """Return the key of the best rule, and its place: the least violation, then the least objective."""
        violation, objective = self.keys(values)
        violation = (violation if crossed is None else np.where(crossed, np.inf, violation)).ravel()
        objective = objective.ravel()
        objective = np.where(violation <= violation.min() + _SAME, objective, np.inf)
        place = int(objective.argmin())
        return (float(violation[place]), float(objective[place])), place


def build_space(limits: RuleLimits, losses: Sums, rules: CutRules) -> RuleSpace:
    """Return limits and objectives as functions of rules, given some rules that show how large they are."""
    goals = limits.goals
    limit_sums = [] if goals is None else [as_sums(goals.rows, limits.cuts)]
    limit_sums += [] if limits.budget is None else [limits.budget.loss]
    sizes = np.empty(0) if goals is None else goals.goal_sizes  # of what the goals limit, then of the mean loss
    sizes = sizes if limits.budget is None else np.append(sizes, np.ones(limits.budget.most.size))
    scale = limits.as_limits(rules)["row_scale"] if limit_sums else sizes
    constants = np.concatenate([one.constants for one in (*limit_sums, losses)])
    added = np.vstack([one.added for one in (*limit_sums, losses)])
    units = np.append(sizes, np.full(len(constants) - sizes.size, losses.unit))
    functions = Sums(constants / units, added / units[:, None])
    return RuleSpace(functions, limits.bounds / sizes, FEASIBLE * scale / sizes, limits.cuts, sizes)


def _starts(
    space: RuleSpace, model: int, edges: list[IntArray], rules: CutRules, mixture: FloatArray, multipliers: FloatArray
) -> Iterator[IntArray]:
    """Yield cuts to begin with: of the mixture, its neighbours in price, equal parts of each group, and draws."""
    cuts, own = space.cuts, rules.models == model
    yield from rules.cuts[own]
    for price in _PRICES:
        weights = np.zeros(len(space.sums.constants))
        weights[: len(multipliers)], weights[len(space.bounds) :] = price * multipliers, 1.0
        yield cheapest_rules(cuts, space.sums.costs(weights)[1])[1].cuts[model]
    for share in np.linspace(0.0, 1.0, _N_SHARES):
        yield np.array([one[round(share * (one.size - 1))] for one in edges])
    if own.any():
        draws = np.random.default_rng(0)
        for _ in range(_N_DRAWS):
            places = draws.choice(np.flatnonzero(own), cuts.n_groups, p=mixture[own] / mixture[own].sum())
            yield rules.cuts[np.resize(places, len(edges)), np.arange(len(edges))]


def _best_of_model(space: RuleSpace, edges: list[IntArray], starts: list[IntArray], effort: Effort) -> OneOfEach:
    """Return the best cut of each edge, and how much is proven: of two edges, or where all rules are few, all of it."""
    distinct, n_groups = np.unique(np.array(starts), axis=0), space.cuts.n_groups
    violation, objective = space.keys(space.sums.of(CutRules(np.zeros(len(distinct), dtype=np.int64), distinct)))
    promising = distinct[np.lexsort((objective, violation))]
    # With two edges all pairs are examined from any start, so one start is enough.
    needs_start = len(edges) > 2 and effort.exchanges  # noqa: PLR2004
    n_starts = _N_STARTS if effort.max_looks > _FEW_LOOKS else _FEW_STARTS
    start = _best_start(space, edges, list(promising[:n_starts])) if needs_start else promising[0]
    best = choose_one_of_each(
        [space.sums.added[:, own] for own in edges],
        space.bounds + space.tolerance,
        constants=space.sums.constants,
        start=np.array([cut - own[0] for cut, own in zip(start.tolist(), edges, strict=True)]),
        ordered=[(edge, edge + n_groups) for edge in range(n_groups)] if space.cuts.defers else [],
        max_looks=effort.max_looks,
        nearest=effort.nearest,
        below=effort.below,
    )
    return best._replace(places=np.array([own[at] for own, at in zip(edges, best.places.tolist(), strict=True)]))


def _best_start(space: RuleSpace, edges: list[IntArray], starts: list[IntArray]) -> IntArray:
    """Return a good rule of many edges: the best of several starts after exchanges of pairs.

    Then the neighbourhoods of the best of them are searched in finer and finer steps, down to neighbouring cuts.
    """
    size = max(_LEAST_GRID, int(_GRID / max(1.0, len(edges) * (len(edges) - 1) / 2) ** 0.5))  # cuts examined together
    thin = [_thin(one, [start[group] for start in starts], size) for group, one in enumerate(edges)]
    improved = {point.tobytes(): (key, point) for key, point in (_improve(space, thin, start) for start in starts)}
    refined = []
    for _, point in sorted(improved.values(), key=lambda one: _round_key(one[0]))[:_N_REFINED]:
        widths, is_fine = [one.size / max(some.size, 1) for one, some in zip(edges, thin, strict=True)], False
        now = point
        while not is_fine:
            is_fine, near = max(widths) <= 1, []
            for one, cut, width in zip(edges, now.tolist(), widths, strict=True):
                reach = max(int(4 * width), size // 2)
                first, last = max(cut - reach, int(one[0])), min(cut + reach, int(one[-1]))
                near.append(_thin(np.arange(first, last + 1), [cut], size))
            key, now = _improve(space, near, now)
            widths = [max(8 * width / size, 1.0) for width in widths]
        refined.append((key, now))
    return min(refined, key=lambda one: _round_key(one[0]))[1]


def _thin(cuts: IntArray, required: list[int], size: int) -> IntArray:
    """Return about ``size`` of the cuts, evenly spread, and those that are required."""
    if cuts.size <= size:
        return cuts
    return np.unique(np.append(cuts[np.linspace(0, cuts.size - 1, size).astype(np.int64)], required)).astype(np.int64)


def _improve(space: RuleSpace, cuts: list[IntArray], start: IntArray) -> tuple[tuple[float, float], IntArray]:
    """Exchange the cuts of two groups at a time for the best pair, as long as that helps."""
    point, added = start.copy(), space.sums.added
    pairs: list[tuple[int, ...]] = [*combinations(range(len(cuts)), 2)] or [(0,)]
    key, before = space.best((space.sums.constants + added[:, point].sum(axis=1))[:, None])[0], None
    while before is None or _round_key(key) < before:
        before = _round_key(key)
        for pair in pairs:
            check_budget()
            within = [
                cuts[edge] if space.partner(edge) in pair else space.beside(edge, cuts[edge], point) for edge in pair
            ]
            others = [cut for group, cut in enumerate(point.tolist()) if group not in pair]
            values = np.asarray(space.sums.constants + added[:, others].sum(axis=1))
            for some in within:  # all combinations, an axis for each of the pair
                values = values[..., None] + added[:, some].reshape(len(added), *(1,) * (values.ndim - 1), -1)
            crossed = None  # where a lower edge is above the upper one of the same group
            if space.partner(pair[0]) == pair[-1]:
                crossed = np.asarray(within[0][:, None] > within[1] - space.cuts.n_cuts)
            best_key, place = space.best(values, crossed)
            if _round_key(best_key) < _round_key(key):
                places = np.unravel_index(place, [some.size for some in within])
                key, point[list(pair)] = best_key, [some[at] for some, at in zip(within, places, strict=True)]
    return key, point


def _round_key(key: AnyArray | tuple[float, float]) -> tuple[float, float]:
    """Return a key rounded so that differences by rounding vanish."""
    return round(float(key[0]), _DIGITS), round(float(key[1]), _DIGITS)
