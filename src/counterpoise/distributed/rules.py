"""Rules of scores over shards: chosen on lumps by the code of one machine, and proven over every threshold.

The dual of the program on lumps prices each of them. A threshold inside of a bin has at least the cost before that bin
and the negative costs in it, so a bin where that is not below the best by more than the gap holds no better threshold.
The others are split, and a few passes over the rows leave none.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.shards import Shards
from counterpoise._base.types import FloatArray, IntArray
from counterpoise.distributed.cells import Cells
from counterpoise.distributed.lumps import (
    Edges,
    Lumps,
    can_split,
    ends_of_each,
    first_edges,
    lump_over,
    noise_over,
    split,
)
from counterpoise.goals import InfeasibleGoals, Rate, Table
from counterpoise.goals.binding import bind_rates
from counterpoise.goals.tables import group_codes
from counterpoise.mixtures.answers import TRAIN, Answers, Positive
from counterpoise.mixtures.choosing import Aim, groups_by
from counterpoise.mixtures.goal_rows import TalliedGoals
from counterpoise.mixtures.options import as_groups
from counterpoise.mixtures.scores.choosing import build_program, limits_of
from counterpoise.mixtures.scores.cuts import Rule
from counterpoise.mixtures.scores.program import TOL, CellLosses, RuleProgram
from counterpoise.mixtures.scores.table import RankedScores, RuleGroups, ScoreEvidence, find_groups, rank
from counterpoise.solvers.linear_program import MixtureSolution
from counterpoise.theory.risks import Mean, WorstGroup

_MAX_PASSES = 12  # over the rows: three or four are enough


class Settled(NamedTuple):
    """Lumps on which rules can be chosen, and what no mixture of rules with any thresholds has less risk than."""

    lumps: Lumps
    evidence: ScoreEvidence
    lower: float
    n_passes: int


def refine_over(
    shards: Shards, cells: Cells, positive: Positive, aim: Aim, groups_of: Any, usual: FloatArray, tol: float = TOL
) -> Settled:
    """Return lumps so fine that the best rules between them are within twice ``tol`` of the best rules of all.

    ``groups_of`` finds, given a table and how many rows each of its own stands for, who has a threshold of their own.
    """
    noise = noise_over(shards)
    edges = first_edges(shards, usual, noise)
    # A budget is counted from the least mean loss: that too is found over every threshold.
    aims = [aim] if aim.budget is None else [aim._replace(objective=Mean(), budget=None), aim]
    for n_passes in range(1, _MAX_PASSES + 1):  # noqa: B007 - told at the end
        lumps = lump_over(shards, edges)
        evidence = evidence_of(lumps, cells, positive, usual)
        groups = groups_of(evidence.answers.tables[TRAIN], lumps.n_rows)
        ranked = rank(evidence, groups)
        judged = [_judged(ranked, lumps, edges, noise, one, tol) for one in aims]
        lower, hidden = judged[-1][0], zip(*(bins for _, bins in judged), strict=True)
        hiding = [np.unique(np.concatenate(bins)) for bins in hidden]
        if not any(bins.size for bins in hiding):
            break
        edges = split(edges, lumps, hiding)
    return Settled(lumps, evidence, lower, n_passes)


def evidence_of(lumps: Lumps, cells: Cells, positive: Positive, usual: FloatArray) -> ScoreEvidence:
    """Return lumps as labelled rows, with one score for all lumps of a bin: no rule cuts between them."""
    table = cells.table()
    columns = {name: table.column(name)[lumps.keys[:, 0]] for name in table.columns} or None
    labels, baseline = (None if one is None else one[lumps.keys[:, 0]] for one in (table.y, table.baseline))
    rows = Table(None, labels, columns, baseline, **cells.known.weighed(lumps.mass))
    groups = group_codes(rows)[0] if rows.sensitive_columns else None
    answers = Answers({TRAIN: rows}, {}, positive)
    return ScoreEvidence({TRAIN: ends_of_each(lumps)}, answers, rows.weights(), groups, usual, n_rows=lumps.n_rows)


def _judged(
    ranked: RankedScores, lumps: Lumps, edges: Edges, noise: list[float], aim: Aim, tol: float
) -> tuple[float, list[IntArray]]:
    """Return the lower bound over all thresholds, and the bins in which a better one may hide."""
    all_bins = [np.flatnonzero(can_split(lumps, model, own.size + 1, noise[model])) for model, own in enumerate(edges)]
    try:
        limits, start = limits_of(ranked, aim)
        program = build_program(ranked, aim, limits)
        _, one = program.solve(start, tol, explains=True)
    except InfeasibleGoals:
        if not any(bins.size for bins in all_bins):
            raise
        return -np.inf, all_bins  # finer ones may meet them
    costs, _ = program.priced(one.weights, one.multipliers)
    row_costs = _row_costs(ranked, aim, program, one)
    hidden = [_hidden(ranked, lumps, row_costs, model, bins, tol) for model, bins in enumerate(all_bins)]
    lower = one.offset + float(min(cost - slack for cost, (slack, _) in zip(costs, hidden, strict=True)))
    if not any(bins.size for bins in all_bins):  # each score has its own bin: what any round proved is proven
        lower = max(lower, one.lower)
    slacks = np.array([slack for slack, _ in hidden])
    near = costs - slacks + one.offset <= one.value + tol  # models of which a rule can matter, or one inside of a bin
    hiding = [bins if near[model] else bins[:0] for model, (_, bins) in enumerate(hidden)]
    if one.value - lower <= 2 * tol:
        hiding = [bins[:0] for bins in hiding]
    return program.shift + lower, hiding


def _row_costs(ranked: RankedScores, aim: Aim, program: RuleProgram, one: MixtureSolution) -> FloatArray:
    """Return what calling each lump positive costs, by the dual."""
    has_budget = program.limits is not None and program.limits.budget is not None
    sign, views = np.where(ranked.is_positive, -1.0, 1.0), ranked.answers().views()
    prices = one.multipliers[: one.multipliers.size - has_budget]
    costs = _weights_of(ranked, aim, program, one.weights) * sign
    if isinstance(aim.objective, Rate):
        costs = bind_rates([aim.objective.resolved(views)], views).row_weights(np.ones(1)).get(TRAIN, 0.0 * sign)
    if has_budget:
        costs = costs + one.multipliers[-1] * ranked.mass * sign
    if aim.goals:
        costs = costs + TalliedGoals.of(aim.goals, views).row_costs(prices).get(TRAIN, 0.0)
    return np.asarray(costs)


def _weights_of(ranked: RankedScores, aim: Aim, program: RuleProgram, weights: FloatArray) -> FloatArray:
    """Return the weights of the lumps, given those of the rows of the program."""
    if isinstance(program.losses, CellLosses):
        return program.losses.row_weights(weights)
    if not isinstance(aim.objective, WorstGroup):
        return ranked.mass
    codes = groups_by(aim.objective.names, ranked.table.answers.tables[TRAIN], ranked.table.groups)
    groups, places = np.unique(codes, return_inverse=True)
    totals = np.bincount(places, ranked.mass, groups.size)
    own = np.zeros(groups.size)
    own[totals > 0] = weights / totals[totals > 0]
    return np.asarray(own[places] * ranked.mass)


def _hidden(
    ranked: RankedScores, lumps: Lumps, costs: FloatArray, model: int, bins: IntArray, tol: float
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
    is_hiding = (inside < least[:, None] - tol / (2 * n_groups)).any(axis=0)[::-1]
    return float(slack.sum()), np.flatnonzero(is_hiding)


def true_rules(rules: list[Rule], groups: RuleGroups, codes: IntArray, lumps: Lumps, usual: FloatArray) -> list[Rule]:
    """Return rules with thresholds in the middle of the gaps between scores, given those between lumps.

    The usual threshold of a model, which no bin has scores on both sides of, stays as it is.
    """
    shown = ends_of_each(lumps)
    return [_true_rule(rule, groups, codes, lumps, shown[:, rule.model], usual[rule.model]) for rule in rules]


def _true_rule(rule: Rule, groups: RuleGroups, codes: IntArray, lumps: Lumps, shown: FloatArray, usual: float) -> Rule:
    own: dict[str, float] = {}
    for number, name in enumerate(groups.names):
        given, here = rule.thresholds[name], codes == number
        if given == usual:
            own[name] = given
            continue
        below = lumps.highs[here & (shown <= given), rule.model]
        above = lumps.lows[here & (shown > given), rule.model]
        own[name] = _between(float(below.max()), float(above.min())) if below.size and above.size else given
    return rule._replace(thresholds=own)


def _between(low: float, high: float) -> float:
    middle = low / 2 + high / 2
    return middle if low <= middle < high else low


def settle_over(model: Any, shards: Shards, cells: Cells, positive: Positive, usual: FloatArray) -> Any:
    """Choose the rules of a classifier of one machine on scores that live in shards, and return it.

    ``model`` is a ``RuleClassifier`` that knows its models and classes.
    """
    aim, by = model._aim_of_fit(), as_groups(model.by)  # noqa: SLF001 - ours
    found = refine_over(shards, cells, positive, aim, partial(find_groups, by), usual)
    model._settle(found.evidence, aim)  # noqa: SLF001 - ours
    codes = model.groups_.codes_of_each(found.evidence.answers.tables)[TRAIN]
    model.rules_ = true_rules(model.rules_, model.groups_, codes, found.lumps, usual)
    model.gap_, model.n_passes_ = max(model.value_ - found.lower, 0.0), found.n_passes
    return model
