"""Decision rules of scores that live in partitions, chosen on lumps of rows.

A *lump* is the rows of one cell whose scores lie in the same bins, counted over all partitions. A rule whose thresholds
lie between bins treats the rows of a lump alike. So the rules of one machine, with lumps as rows that stand for many,
are chosen without seeing a single row.

Where a score takes few values, each value has its own bin. Otherwise bins begin at quantiles, and those next to the
thresholds that are chosen are split and counted again, until these thresholds lie between two neighbouring scores.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import FloatArray, IntArray
from counterpoise.distributed.partitions import Part, Partitions
from counterpoise.distributed.rows import CELL, MASS, Cells, Lumps, TotalFacts, lumps_of_all
from counterpoise.goals import InfeasibleGoals
from counterpoise.goals.tables import group_codes
from counterpoise.rules.choosing import Problem
from counterpoise.rules.families import ThresholdRules
from counterpoise.rules.goal_rows import TRAIN, Answers, Positive
from counterpoise.rules.pool import Pool
from counterpoise.rules.scores.cuts import Rule, block_starts, exponent_counts, noise_of, rounding_tolerance
from counterpoise.rules.scores.table import RuleGroups, ScoreTable

SCORES = "scores"  # the name of the scores, (n_rows, n_models)
_DISTINCT = 1 << 14  # values of a score up to which each has its own bin
_FINE = 1 << 16  # bins of the histogram from which quantiles are taken
_BINS = 1 << 13  # of one score at first; of several they share the digits
_FEWEST_BINS, _MOST_FIRST = 1 << 11, 1 << 20  # where there are many cells; and lumps to begin with, about
_PARTS = 16  # into which a bin is split
_MOST_PASSES = 6  # over the rows: a bin of millions of rows is split five times
_NEXT = np.arange(-2, 2)  # bins around the one that a threshold lies in, which are split with it

Edges = tuple[FloatArray, ...]  # of each model, rising: a bin is what lies above one and up to the next


def choose_rules_over(model: Any, pool: Pool, partitions: Partitions, cells: Cells) -> Any:
    """Choose the rules of a classifier of one machine on scores that live in partitions, and return it."""
    problem = model.problem_of_fit()
    summaries = _summaries_over(partitions)
    usual = np.array(
        [member.usual(np.array([own.low, own.high])) for member, own in zip(pool.members, summaries, strict=True)]
    )
    n_bins = min(_BINS, max(_FEWEST_BINS, _MOST_FIRST // len(cells.values)))
    edges = _first_edges(partitions, summaries, usual, max(8, int(n_bins ** (1 / usual.size))))
    for n_passes in range(1, _MOST_PASSES + 1):  # noqa: B007 - stored at the end
        lumps = lumps_of_all(partitions.map(_lumps, edges, cells.facts))
        family = ThresholdRules(pool, _score_table(lumps, cells, pool.positive, usual)).prepared(problem)
        wide = _wide_bins(lumps, edges, summaries)
        rules = _good_rules(family, problem) if any(bins.size for bins in wide) else []
        if rules is not None:  # else no rule meets the goals, but one of finer bins may
            wide = [np.intersect1d(bins, near) for bins, near in zip(wide, _bins_near(rules, edges), strict=True)]
        if not any(bins.size for bins in wide):
            break
        edges = _split(edges, lumps, wide)
    model.solve_and_store(family, problem)
    codes = model.groups_.codes_of_each(family.selection_data.answers.tables)[TRAIN]
    model.rules_ = [_between_scores(rule, model.groups_, codes, lumps, usual[rule.model]) for rule in model.rules_]
    model.n_passes_ = n_passes
    return model


def _good_rules(family: ThresholdRules, problem: Problem) -> list[Rule] | None:
    """Return the best rules with margins and without; None where none meet the goals."""
    problem = problem._replace(explains=False)
    problems = [problem] if problem.confidence is None else [problem._replace(confidence=None), problem]
    try:
        solutions = [family.solve(own) for own in problems]
    except InfeasibleGoals:
        return None
    return [rule for solution in solutions if solution.chosen is not None for rule in solution.chosen.rules]


def _bins_near(rules: Iterable[Rule], edges: Edges) -> list[IntArray]:
    """Return the bins of each model next to thresholds of rules."""
    near: list[list[IntArray]] = [[] for _ in edges]
    for rule in rules:
        thresholds = np.unique(np.concatenate(rule.levels))
        near[rule.model] += [int(place) + _NEXT for place in np.searchsorted(edges[rule.model], thresholds)]
    return [np.unique(np.concatenate(bins)) if bins else np.empty(0, dtype=np.int64) for bins in near]


def _lumps(part: Part, edges: Edges, facts: TotalFacts) -> Lumps:
    scores = part[SCORES]
    bins = [np.searchsorted(own, scores[:, model]) for model, own in enumerate(edges)]
    return Lumps.of(np.column_stack([part[CELL], *bins]), part[MASS], facts, scores)


class ScoreSummary(NamedTuple):
    """What scores of one model there are."""

    low: float
    high: float
    orders: IntArray  # how many of each binary order
    distinct: FloatArray | None  # the different values; None where they are many

    @property
    def noise(self) -> float:
        """Return what rounding may leave of a score of zero."""
        return noise_of(self.orders)


def _summaries_over(partitions: Partitions) -> list[ScoreSummary]:
    """Return what scores each model gives to all rows."""
    summaries = []
    for parts in zip(*partitions.map(_summarize), strict=True):
        lows, highs, orders, distinct = zip(*parts, strict=True)
        values = None if any(own is None for own in distinct) else _few(np.concatenate(distinct))
        summaries.append(ScoreSummary(min(lows), max(highs), np.sum(orders, axis=0), values))
    return summaries


def _summarize(part: Part) -> list[ScoreSummary]:
    return [
        ScoreSummary(own.min(initial=np.inf), own.max(initial=-np.inf), exponent_counts(own), _few(own))
        for own in part[SCORES].T
    ]


def _few(values: FloatArray) -> FloatArray | None:
    distinct = np.unique(values)
    return None if distinct.size > _DISTINCT else distinct


def _first_edges(partitions: Partitions, summaries: Sequence[ScoreSummary], usual: FloatArray, n_bins: int) -> Edges:
    """Return the bins to begin with; no bin has scores on both sides of a model's usual threshold."""
    edges = []
    for model, (summary, threshold) in enumerate(zip(summaries, usual.tolist(), strict=True)):
        if summary.distinct is not None:
            falling = summary.distinct[::-1]
            edges.append(falling[block_starts(falling, summary.noise)][::-1])  # the largest of each block
            continue
        fine = np.linspace(summary.low, summary.high, _FINE + 1)[1:]
        reach = np.cumsum(np.sum(partitions.map(_masses, model, fine), axis=0))
        places = np.searchsorted(reach, reach[-1] * np.arange(1, n_bins) / n_bins)
        edges.append(np.unique([*fine[places], *([threshold] if summary.low < threshold < summary.high else [])]))
    return tuple(edges)


def _masses(part: Part, model: int, edges: FloatArray) -> FloatArray:
    bins = np.minimum(np.searchsorted(edges, part[SCORES][:, model]), edges.size - 1)
    return np.bincount(bins, part[MASS], edges.size).astype(np.float64)


def _wide_bins(lumps: Lumps, edges: Edges, summaries: Sequence[ScoreSummary]) -> list[IntArray]:
    """Return the bins of each model that hold scores which are further apart than what goes together."""
    wide = []
    for model, (own, summary) in enumerate(zip(edges, summaries, strict=True)):
        low, high = _ends_of(lumps, model, own.size + 1)
        low, high = np.where(low <= high, low, 0.0), np.where(low <= high, high, 0.0)  # 0 where a bin is empty
        wide.append(np.flatnonzero(high - low > rounding_tolerance(low, high, summary.noise)))
    return wide


def _split(edges: Edges, lumps: Lumps, bins_to_split: Sequence[IntArray]) -> Edges:
    """Return finer bins: some of each model are cut into parts of the same width, from their least score on."""
    finer = []
    for model, (own, bins) in enumerate(zip(edges, bins_to_split, strict=True)):
        low, high = _ends_of(lumps, model, own.size + 1)
        steps = np.arange(1, _PARTS) / _PARTS
        more = low[bins, None] + (high - low)[bins, None] * steps
        finer.append(np.unique(np.append(own, more[more < high[bins, None]])))
    return tuple(finer)


def _ends_of(lumps: Lumps, model: int, n_bins: int) -> tuple[FloatArray, FloatArray]:
    """Return the least and the largest score in each bin of a model."""
    low, high = np.full(n_bins, np.inf), np.full(n_bins, -np.inf)
    np.minimum.at(low, lumps.keys[:, 1 + model], lumps.lows[:, model])
    np.maximum.at(high, lumps.keys[:, 1 + model], lumps.highs[:, model])
    return low, high


def _tops(lumps: Lumps) -> FloatArray:
    """Return for each lump the largest score in its bin, of any cell, as one score that the bin stands for."""
    bins_of_models = lumps.keys.T[1:]
    return np.column_stack(
        [_ends_of(lumps, model, int(bins.max()) + 1)[1][bins] for model, bins in enumerate(bins_of_models)]
    )


def _score_table(lumps: Lumps, cells: Cells, positive: Positive, usual: FloatArray) -> ScoreTable:
    """Return lumps as labelled rows, with one score for all lumps of a bin: no rule cuts between them."""
    rows = cells.table_of(lumps)
    groups = group_codes(rows)[0] if rows.sensitive_columns else None
    answers = Answers({TRAIN: rows}, {}, positive)
    return ScoreTable({TRAIN: _tops(lumps)}, answers, rows.weights(), groups, usual, n_rows=lumps.n_rows)


def _between_scores(rule: Rule, groups: RuleGroups, codes: IntArray, lumps: Lumps, usual: float) -> Rule:
    """Return a rule with thresholds in the middle of the gaps between scores, given those between lumps.

    The usual threshold of a model, which no bin has scores on both sides of, stays as it is.
    """
    tops, lows, highs = _tops(lumps)[:, rule.model], lumps.lows[:, rule.model], lumps.highs[:, rule.model]

    def moved(thresholds: dict[str, float]) -> dict[str, float]:
        levels = dict(thresholds)
        for number, name in enumerate(groups.names):
            is_below, here = tops <= thresholds[name], codes == number
            if thresholds[name] == usual or not (here & is_below).any() or not (here & ~is_below).any():
                continue
            low, high = float(highs[here & is_below].max()), float(lows[here & ~is_below].min())
            middle = max(low / 2 + high / 2, float(tops[here & is_below].max()))
            levels[name] = middle if low <= middle < high else low
        return levels

    lower = None if rule.lower is None else moved(rule.lower)
    return rule._replace(thresholds=moved(rule.thresholds), lower=lower)
