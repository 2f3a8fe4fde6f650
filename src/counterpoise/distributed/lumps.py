"""Decision rules of scores that live in partitions, chosen on lumps of rows and proven over every threshold.

A *lump* is the rows of one cell whose scores lie in the same bins, counted over all partitions. A rule whose thresholds
lie between bins treats the rows of a lump alike. So the program of one machine, with lumps as weighted rows, finds the
best of these rules without seeing a single row.

Where a score takes few values, each value has its own bin. Otherwise bins begin at quantiles, and the dual of the
program shows which of them to split. It prices every lump. A threshold inside a bin costs at least the sum before that
bin plus the negative prices in it. If that is not below the best by more than the gap, the bin holds no better
threshold. All other bins are split, and after a few passes over the rows none is left.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from counterpoise._base.types import FloatArray, IntArray
from counterpoise.distributed.partitions import Part, Partitions
from counterpoise.distributed.rows import CELL, MASS, Cells, Lumps, TotalFacts, join_lumps, lumps_of_all
from counterpoise.goals import InfeasibleGoals, Rate
from counterpoise.goals.binding import bind_rates
from counterpoise.goals.tables import group_codes
from counterpoise.rules.choosing import Problem, groups_by
from counterpoise.rules.families import ThresholdRules
from counterpoise.rules.goal_rows import TRAIN, Answers, Positive, TalliedGoals
from counterpoise.rules.pool import Pool
from counterpoise.rules.program import TOL, Program, build_program, with_budget
from counterpoise.rules.scores.cuts import Rule, block_starts, exponent_counts, noise_of, rounding_tolerance
from counterpoise.rules.scores.family import CutFamily, price_cuts
from counterpoise.rules.scores.sums import CellLosses
from counterpoise.rules.scores.table import RankedScores, RuleGroups, ScoreTable, find_groups, rank
from counterpoise.solvers.linear_program import MixtureSolution
from counterpoise.theory.risks import Mean, WorstGroup

SCORES = "scores"  # the name of the scores, (n_rows, n_models)
_CHUNK = 1 << 20  # rows of one step
_DISTINCT = 1 << 14  # values of a score up to which each has its own bin
_FINE = 1 << 16  # bins of the histogram from which quantiles are taken
_BINS = 2048  # of one score at first; of several they share the digits
_PARTS = 16  # into which a bin is split

Edges = tuple[FloatArray, ...]  # of each model, rising: a bin is what lies above one and up to the next


def lump_over(partitions: Partitions, edges: Edges, facts: TotalFacts) -> Lumps:
    """Return the lumps of the rows of all partitions: one pass over the rows."""
    return lumps_of_all(partitions.map(_lumps, edges, facts))


def _chunks(part: Part) -> Iterator[slice]:
    n_rows = len(part[SCORES])
    for start in range(0, max(n_rows, 1), _CHUNK):
        yield slice(start, min(start + _CHUNK, n_rows))


def _lumps(part: Part, edges: Edges, facts: TotalFacts) -> Lumps:
    parts = []
    for place in _chunks(part):
        scores = np.asarray(part[SCORES][place], dtype=np.float64)
        bins = [np.searchsorted(own, scores[:, model]) for model, own in enumerate(edges)]
        parts.append(Lumps.of(np.column_stack([part[CELL][place], *bins]), part[MASS][place], facts, scores))
    return join_lumps(parts)


def _orders(part: Part) -> IntArray:
    """Return how many scores of each model there are of each binary order."""
    scores = part[SCORES]
    counts = [
        [exponent_counts(np.asarray(scores[place, model], dtype=np.float64)) for place in _chunks(part)]
        for model in range(scores.shape[1])
    ]
    return np.array([np.sum(one, axis=0) for one in counts])


def first_edges(partitions: Partitions, usual: FloatArray, noise: Sequence[float]) -> Edges:
    """Return the bins to begin with; no bin has scores on both sides of a model's usual threshold."""
    distinct = partitions.map(_distinct)
    n_bins = max(8, int(_BINS ** (1 / usual.size)))
    edges = []
    for model, own in enumerate(usual.tolist()):
        parts = [values for one in distinct if (values := one[model]) is not None]
        if len(parts) < len(distinct):
            edges.append(_quantiles(partitions, model, own, n_bins))
        else:
            values = np.unique(np.concatenate(parts))
            falling = values[::-1]
            edges.append(falling[block_starts(falling, noise[model])][::-1])  # the largest of each block
    return tuple(edges)


def _distinct(part: Part) -> list[FloatArray | None]:
    """Return the different values of each score; None where they are many, which shows early."""
    distinct: list[FloatArray | None] = []
    for model in range(part[SCORES].shape[1]):
        values = np.empty(0)
        for place in _chunks(part):
            values = np.unique(np.append(values, part[SCORES][place, model]))
            if values.size > _DISTINCT:
                break
        distinct.append(None if values.size > _DISTINCT else values)
    return distinct


def _quantiles(partitions: Partitions, model: int, usual: float, n_bins: int) -> FloatArray:
    low, high = ranges_over(partitions)[model].tolist()
    fine = np.linspace(low, high, _FINE + 1)[1:]
    reach = np.cumsum(np.sum(partitions.map(_masses, model, fine), axis=0))
    places = np.searchsorted(reach, reach[-1] * np.arange(1, n_bins) / n_bins)
    return np.unique(np.append(fine[places], [usual] if low < usual < high else []))


def ranges_over(partitions: Partitions) -> FloatArray:
    """Return the least and the largest score of each model, shape (n_models, 2)."""
    ranges = np.array(partitions.map(_ranges))
    return np.stack([ranges[:, 0].min(axis=0), ranges[:, 1].max(axis=0)], axis=1)


def _ranges(part: Part) -> tuple[FloatArray, FloatArray]:
    scores = part[SCORES]
    return scores.min(axis=0, initial=np.inf), scores.max(axis=0, initial=-np.inf)


def _masses(part: Part, model: int, edges: FloatArray) -> FloatArray:
    sums = np.zeros(edges.size)
    for place in _chunks(part):
        bins = np.minimum(np.searchsorted(edges, part[SCORES][place, model]), edges.size - 1)
        sums += np.bincount(bins, part[MASS][place], edges.size)
    return sums


def split(edges: Edges, lumps: Lumps, bins_to_split: Sequence[IntArray]) -> Edges:
    """Return finer bins: some of each model are cut into parts of the same width, from their least score on."""
    finer = []
    for model, (own, bins) in enumerate(zip(edges, bins_to_split, strict=True)):
        low, high = ends_of(lumps, model, own.size + 1)
        steps = np.arange(1, _PARTS) / _PARTS
        more = low[bins, None] + (high - low)[bins, None] * steps
        finer.append(np.unique(np.append(own, more[more < high[bins, None]])))
    return tuple(finer)


def ends_of(lumps: Lumps, model: int, n_bins: int) -> tuple[FloatArray, FloatArray]:
    """Return the least and the largest score in each bin of a model."""
    low, high = np.full(n_bins, np.inf), np.full(n_bins, -np.inf)
    np.minimum.at(low, lumps.keys[:, 1 + model], lumps.lows[:, model])
    np.maximum.at(high, lumps.keys[:, 1 + model], lumps.highs[:, model])
    return low, high


def ends_of_each(lumps: Lumps) -> FloatArray:
    """Return for each lump the largest score in its bin, of any cell, as one score that the bin stands for."""
    each = [ends_of(lumps, model, int(bins.max()) + 1)[1][bins] for model, bins in enumerate(lumps.keys.T[1:])]
    return np.column_stack(each)


_MAX_PASSES = 12  # over the rows: three or four are enough


def choose_rules_over(model: Any, pool: Pool, partitions: Partitions, cells: Cells, usual: FloatArray) -> Any:
    """Choose the rules of a classifier of one machine on scores that live in partitions, and return it.

    The lumps are so fine that the best rules between them are within twice ``TOL`` of the best rules of all.
    """
    problem = model.problem_of_fit()
    noise = [
        noise_of(counts) for counts in np.sum(partitions.map(_orders), axis=0)
    ]  # what rounding may leave of a score of zero
    edges = first_edges(partitions, usual, noise)
    # A budget is counted from the least mean loss: that too is computed over every threshold.
    problems = [problem] if problem.budget is None else [problem._replace(objective=Mean(), budget=None), problem]
    for n_passes in range(1, _MAX_PASSES + 1):  # noqa: B007 - stored at the end
        lumps = lump_over(partitions, edges, cells.facts)
        evidence = evidence_of(lumps, cells, pool.positive, usual)
        ranked = rank(evidence, find_groups(problem.by, evidence.answers.tables[TRAIN], lumps.n_rows))
        results = [_bound_thresholds(ranked, lumps, edges, noise, one) for one in problems]
        lower, hidden = results[-1][0], zip(*(bins for _, bins in results), strict=True)
        hiding = [np.unique(np.concatenate(bins)) for bins in hidden]
        if not any(bins.size for bins in hiding):
            break
        edges = split(edges, lumps, hiding)
    model.solve_and_store(ThresholdRules(pool, evidence), problem)
    codes = model.groups_.codes_of_each(evidence.answers.tables)[TRAIN]
    model.rules_ = [_true_rule(rule, model.groups_, codes, lumps, usual[rule.model]) for rule in model.rules_]
    model.gap_, model.n_passes_ = max(model.value_ - lower, 0.0), n_passes
    return model


def evidence_of(lumps: Lumps, cells: Cells, positive: Positive, usual: FloatArray) -> ScoreTable:
    """Return lumps as labelled rows, with one score for all lumps of a bin: no rule cuts between them."""
    rows = cells.table_of(lumps)
    groups = group_codes(rows)[0] if rows.sensitive_columns else None
    answers = Answers({TRAIN: rows}, {}, positive)
    return ScoreTable({TRAIN: ends_of_each(lumps)}, answers, rows.weights(), groups, usual, n_rows=lumps.n_rows)


def _bound_thresholds(
    ranked: RankedScores, lumps: Lumps, edges: Edges, noise: list[float], problem: Problem
) -> tuple[float, list[IntArray]]:
    """Return the lower bound over all thresholds, and the bins in which a better one may hide."""
    all_bins = []  # of each model those that hold scores which are further apart than what goes together
    for model, own in enumerate(edges):
        low, high = ends_of(lumps, model, own.size + 1)
        low, high = np.where(low <= high, low, 0.0), np.where(low <= high, high, 0.0)  # 0 where a bin is empty
        all_bins.append(np.flatnonzero(high - low > rounding_tolerance(low, high, noise[model])))
    try:
        family = CutFamily(ranked)
        limits, start = with_budget(family, family.limits(problem.goals), problem.budget)
        program = build_program(family, problem.objective, limits)
        one = program.solve(TOL, start, explains=True).solution
    except InfeasibleGoals:
        if not any(bins.size for bins in all_bins):
            raise
        return -np.inf, all_bins  # finer ones may meet them
    costs, _ = price_cuts(program, one.weights, one.multipliers)
    row_costs = _row_costs(ranked, problem, program, one)
    hidden = [_hidden(ranked, lumps, row_costs, model, bins) for model, bins in enumerate(all_bins)]
    lower = one.offset + float(min(cost - slack for cost, (slack, _) in zip(costs, hidden, strict=True)))
    if not any(bins.size for bins in all_bins):  # each score has its own bin: what any round proved is proven
        lower = max(lower, one.lower)
    slacks = np.array([slack for slack, _ in hidden])
    near = costs - slacks + one.offset <= one.value + TOL  # models of which a rule can matter, or one inside of a bin
    hiding = [bins if near[model] else bins[:0] for model, (_, bins) in enumerate(hidden)]
    if one.value - lower <= 2 * TOL:
        hiding = [bins[:0] for bins in hiding]
    return program.objective.shift + lower, hiding


def _row_costs(ranked: RankedScores, problem: Problem, program: Program, one: MixtureSolution) -> FloatArray:
    """Return what calling each lump positive costs, by the dual."""
    has_budget = program.limits is not None and program.limits.budget is not None
    sign, views = np.where(ranked.is_positive, -1.0, 1.0), ranked.answers().views()
    if isinstance(problem.objective, Rate):
        costs = bind_rates([problem.objective.resolve(views)], views).row_weights(np.ones(1)).get(TRAIN, 0.0 * sign)
    elif isinstance(program.objective.losses, CellLosses):
        costs = program.objective.losses.row_weights(one.weights) * sign
    elif isinstance(problem.objective, WorstGroup):
        codes = groups_by(problem.objective.names, ranked.table.answers.tables[TRAIN], ranked.table.groups)
        groups, places = np.unique(codes, return_inverse=True)
        totals, own = np.bincount(places, ranked.mass, groups.size), np.zeros(groups.size)
        own[totals > 0] = one.weights / totals[totals > 0]
        costs = own[places] * ranked.mass * sign
    else:
        costs = ranked.mass * sign
    if has_budget:
        costs = costs + one.multipliers[-1] * ranked.mass * sign
    if problem.goals:
        prices = one.multipliers[: one.multipliers.size - has_budget]
        costs = costs + TalliedGoals.of(problem.goals, views).row_costs(prices).get(TRAIN, 0.0)
    return np.asarray(costs)


def _hidden(
    ranked: RankedScores, lumps: Lumps, costs: FloatArray, model: int, bins: IntArray
) -> tuple[float, IntArray]:
    """Return by how much thresholds inside of bins may be cheaper than those between them, and the bins with such."""
    n_groups, n_bins = len(ranked.groups.names), int(lumps.keys[:, 1 + model].max()) + 2
    at = ranked.codes[TRAIN] * n_bins + (n_bins - 1 - lumps.keys[:, 1 + model])  # by group, then by falling score
    size = n_groups * n_bins
    sums = np.bincount(at, costs, size).reshape(n_groups, n_bins)
    gains = np.bincount(at, np.minimum(costs, 0.0), size).reshape(n_groups, n_bins)
    reach = np.cumsum(sums, axis=1)
    before = reach - sums
    least = np.minimum(reach.min(axis=1), 0.0)
    may = np.zeros(n_bins, dtype=np.bool_)
    may[bins[bins < n_bins]] = True
    inside = np.where(may[::-1], before + gains, np.inf)
    slack = np.maximum(least - inside.min(axis=1), 0.0)
    is_hiding = (inside < least[:, None] - TOL / (2 * n_groups)).any(axis=0)[::-1]
    return float(slack.sum()), np.flatnonzero(is_hiding)


def _true_rule(rule: Rule, groups: RuleGroups, codes: IntArray, lumps: Lumps, usual: float) -> Rule:
    """Return a rule with thresholds in the middle of the gaps between scores, given those between lumps.

    The usual threshold of a model, which no bin has scores on both sides of, stays as it is.
    """
    scores = ends_of_each(lumps)[:, rule.model]
    own: dict[str, float] = {}
    for number, name in enumerate(groups.names):
        threshold, here = rule.thresholds[name], codes == number
        if threshold == usual:
            own[name] = threshold
            continue
        below = lumps.highs[here & (scores <= threshold), rule.model]
        above = lumps.lows[here & (scores > threshold), rule.model]
        own[name] = threshold
        if below.size and above.size:
            low, high = float(below.max()), float(above.min())
            middle = low / 2 + high / 2
            own[name] = middle if low <= middle < high else low
    return rule._replace(thresholds=own)
