"""Rules of scores that margins are chosen among: of one or two groups a grid of all cuts, of more those that are cheap.

The cuts of a group are thinned to some that have about as many rows between them, and then again to finer ones where
the rules of little cost and risk are. Where there are more than two groups, or rows may be deferred, rules are those
of least cost at many prices of the goals, and what lies around them.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from counterpoise._base.budget import check_budget
from counterpoise._base.types import FloatArray, IntArray
from counterpoise.rules.choosing import Problem, value_of
from counterpoise.rules.goal_rows import points, whole_box, with_boxes
from counterpoise.rules.margins import (
    TARGETS,
    Candidates,
    MarginProblem,
    Margins,
    SafeRule,
    TargetPath,
    describe_margins,
    follow_targets,
    margin_problem,
    most_cost,
)
from counterpoise.rules.program import Choice, build_objective
from counterpoise.rules.rule_table import Rules
from counterpoise.rules.scores.cuts import CutRules, Rule
from counterpoise.rules.scores.family import CutFamily
from counterpoise.rules.scores.fixed import limits_of
from counterpoise.rules.scores.sums import RuleLimits, Sums
from counterpoise.rules.scores.table import RankedScores

_MOST_CUTS = {1: 400, 2: 72}  # of a group, by the number of groups
_FEW_CUTS = 48  # of a group where there are more, or rows may be deferred
_N_PRICES = 1500
_PRICES = -2.5, 1.5  # powers of ten of a goal's price, in parts of how far the objective and the goal reach
_PRICED = 0.6  # part of the goals that have a price at all
_MOST_DIMENSIONS = 2  # cuts of a rule of which all combinations are tried
_SHIFTS = np.array([-8, -4, -2, -1, 1, 2, 4, 8])
_N_SHIFTED = 60
_WIDER = 0.5  # part of the range of cuts by which it is widened on both sides


class CutPath(NamedTuple):
    """Rules of scores from the cheapest to the safest."""

    rules: CutRules
    path: TargetPath
    most_cost: float

    def safe_rule(self, confidence: float) -> tuple[CutRules, SafeRule]:
        """Return the rule of least cost whose goals hold on new rows, and how sure that is."""
        safe = self.path.safe_rule(confidence, self.most_cost)
        return self.rules.only(np.array([safe.place])), safe


def follow_cuts(ranked: RankedScores, problem: Problem, plain: CutRules, confidence: float = 0.9) -> CutPath:
    """Return the rules that are the best with margins of any size, given the best rule without.

    Where no rule reaches the confidence whatever other goals there are, as in a small group, there is no margin.
    """
    rules, (table, margins, most) = find_candidates(ranked, problem, plain, confidence=confidence)
    return CutPath(rules, follow_targets(table, margins), most)


def find_candidates(
    ranked: RankedScores,
    problem: Problem,
    plain: CutRules,
    targets: FloatArray = TARGETS[TARGETS >= 0],
    row_factor: float = 1.0,
    confidence: float | None = None,
) -> tuple[CutRules, Candidates]:
    """Return the rules to choose among, given the best one without margins, and what they come to.

    With a ``row_factor`` that is on so many times the rows, and with a ``confidence`` without the margins that no rule
    has.
    """
    family = CutFamily(ranked)
    limits = limits_of(ranked, problem)
    if limits.spreads:  # what prices are of: the limits where the best rule is
        alone = np.ones(1)
        spreads = limits.spreads_of(plain)
        boxes = with_boxes(spreads, whole_box(spreads))
        limits = limits.within(points(at for spread, own in boxes for at in spread.nearest(alone, own)))
    margins = _margin_problem(ranked, problem, None if limits.budget is None else float(limits.budget.most[0]))
    margins = margins._replace(row_factor=row_factor)
    edges, losses = _all_cuts(ranked, plain), build_objective(family, problem.objective).losses
    smooth, constant = _smoothed(ranked, losses), as_rules(ranked, _constant_rules(ranked, plain))
    for _ in range(2):  # all over, and then near the rules of little cost and risk
        check_budget()
        rules = _candidates(ranked, _thinned(ranked, edges, plain), limits, losses, plain)
        decided = ranked.as_decided(rules)
        moved = None if decided is rules else as_rules(ranked, decided)
        table = margins.table(as_rules(ranked, rules), smooth.of(rules).max(axis=0), moved)
        if confidence is not None:
            most = most_cost(margins, constant, margins.rank(table))
            margins = margins.without_hopeless(table, confidence, most)
        now = margins.rank(table, may_miss=bool(targets.min() < 0))
        near = rules.cuts[np.append(now.best(targets), 0)]
        edges = [_widened(own, column) for own, column in zip(edges, near.T, strict=True)]
    return rules, Candidates(table, margins, most_cost(margins, constant, now))


def _margin_problem(ranked: RankedScores, problem: Problem, budget: float | None) -> MarginProblem:
    return margin_problem(
        problem,
        ranked.answers().views(),
        defer_cost=ranked.defer_cost,
        budget=budget,
        persons=ranked.table.persons,
        has_fold_scores=ranked.table.has_fold_scores,
    )


def with_margins(ranked: RankedScores, problem: Problem, plain: Choice, confidence: float) -> tuple[Choice, Margins]:
    """Return one rule whose goals hold on new rows in the place of the best one, and the margins of the goals."""
    rule, safe = follow_cuts(ranked, problem, plain.rules, confidence).safe_rule(confidence)
    predictions = ranked.predictions_of(rule)
    value = value_of(predictions, problem, np.ones(1))
    margins = describe_margins(safe, predictions.answers.checks(problem.goals, np.ones(1)))
    return plain._replace(rules=rule, value=value, is_usual=False), margins


def with_proven(ranked: RankedScores, problem: Problem, plain: Choice, rule: CutRules) -> tuple[Choice, Margins]:
    """Return a rule that is proven in the place of the best one, and how far it is inside of the goals."""
    predictions = ranked.predictions_of(rule)
    value = value_of(predictions, problem, np.ones(1))
    inside = _margin_problem(ranked, problem, None)
    safe = Candidates(inside.table(as_rules(ranked, rule)), inside, np.inf).at(max(value - plain.value, 0.0))
    margins = describe_margins(safe, predictions.answers.checks(problem.goals, np.ones(1)))
    return plain._replace(rules=rule, value=value, is_usual=False), margins


def with_rules_between(rules: list[Rule], n_rules: int) -> list[Rule]:
    """Return rules of one model with about so many in all, by thresholds between those of one and the next.

    On few rows thresholds lie far apart, and what is between them is not chosen by these rows.

    Examples
    --------
    >>> from counterpoise.rules.scores.candidates import with_rules_between
    >>> from counterpoise.rules.scores.cuts import Rule
    >>> [rule.thresholds["all"] for rule in with_rules_between([Rule(0, {"all": 0.2}), Rule(0, {"all": 0.4})], 3)]
    [0.2, 0.30000000000000004, 0.4]
    """
    if len(rules) < 2:  # noqa: PLR2004 - a pair
        return rules
    n_between = max((n_rules - len(rules)) // (len(rules) - 1), 0)
    all_rules = [rules[0]]
    for one, other in pairwise(rules):
        for part in np.linspace(0.0, 1.0, n_between + 2)[1:-1].tolist():
            own = [
                {name: _between(level, second[name], part) for name, level in first.items()}
                for first, second in ((one.thresholds, other.thresholds), (_lower(one), _lower(other)))
            ]
            all_rules.append(Rule(one.model, own[0], None if own[1] == own[0] else own[1]))
        all_rules.append(other)
    return all_rules


def _lower(rule: Rule) -> dict[str, float]:
    return rule.thresholds if rule.lower is None else rule.lower


def _between(one: float, other: float, part: float) -> float:
    return one + part * (other - one) if np.isfinite([one, other]).all() else one


def as_rules(ranked: RankedScores, rules: CutRules) -> Rules:
    """Return what rules of one model answer, by cells of rows that lie between the same cuts of their group."""
    cuts, model = ranked.cuts, int(rules.models[0])
    n_groups, places = cuts.n_groups, cuts.places[model]
    uppers, lowers = rules.cuts[:, :n_groups], rules.cuts[:, -n_groups:] % cuts.n_cuts
    codes = np.concatenate(list(ranked.codes.values()))
    cells, answers, first = np.zeros(codes.size, dtype=np.int64), [], 0
    for group in range(n_groups):
        used = np.unique(np.concatenate([uppers[:, group], lowers[:, group]]))
        own = codes == group
        cells[own] = first + np.searchsorted(used, places[own])
        levels = np.arange(used.size + 1)[:, None]
        is_above = np.searchsorted(used, uppers[:, group])[None] >= levels
        decisions = is_above.astype(np.uint8)
        if cuts.defers:
            decisions[~is_above & (np.searchsorted(used, lowers[:, group])[None] >= levels)] = 2
        answers.append(decisions)
        first += used.size + 1
    ends = np.cumsum([0, *(len(own) for own in ranked.codes.values())]).tolist()
    by_name = {name: cells[start:end] for name, (start, end) in zip(ranked.codes, pairwise(ends), strict=True)}
    return Rules(np.vstack(answers), by_name)


def _all_cuts(ranked: RankedScores, plain: CutRules) -> list[IntArray]:
    """Return all cuts of the model of a rule, for each of its edges."""
    cuts, model = ranked.cuts, int(plain.models[0])
    own = [np.arange(start, end) for start, end in pairwise(cuts.starts[model].tolist())]
    return [*own, *(one + cuts.n_cuts for one in own)] if cuts.defers else own


def _smoothed(ranked: RankedScores, losses: Sums) -> Sums:
    """Return losses whose many small dips along the cuts, which are chance, are gone: convex ones.

    The higher a score, the likelier is the positive class, so what the next rows add to a loss should rise from cut to
    cut. Isotonic regression makes it so. A rule is then not moved far inside its goals to where the rows happen to fit.
    """
    cuts, added = ranked.cuts, losses.added.copy()
    mass = cuts.sums(slice(ranked.mass.size), ranked.mass)
    for start, end in pairwise(cuts.flat_starts.tolist()):
        steps = np.diff(mass[start:end])
        has_rows = np.flatnonzero(steps > 0)  # other datasets have cuts between them
        if not has_rows.size:
            continue
        for edge in range(0, added.shape[1], cuts.n_cuts):
            for own in added[:, start + edge : end + edge]:
                rises = np.zeros(steps.size)
                slopes = np.diff(own)[has_rows] / steps[has_rows]
                rises[has_rows] = steps[has_rows] * isotonic_regression(slopes, weights=steps[has_rows]).x
                own[1:] = own[0] + np.cumsum(rises)
    return losses._replace(added=added)


def _constant_rules(ranked: RankedScores, plain: CutRules) -> CutRules:
    """Return the rules that answer alike about everybody."""
    edges = np.array([[own[0], own[-1]] for own in _all_cuts(ranked, plain)]).T
    return CutRules(np.repeat(plain.models, 2), edges)


def _widened(cuts: IntArray, used: IntArray) -> IntArray:
    """Return the cuts from the least to the largest that are in use, and some on both sides."""
    low, high = np.searchsorted(cuts, [used.min(), used.max()])
    room = int(_WIDER * (high - low)) + max(2, cuts.size // _FEW_CUTS)
    return np.asarray(cuts[max(low - room, 0) : high + room + 1])


def _thinned(ranked: RankedScores, edges: list[IntArray], plain: CutRules) -> list[IntArray]:
    """Return some of the cuts of each edge with about as many labelled rows between them, and those of one rule."""
    n_groups = ranked.cuts.n_groups
    most = _FEW_CUTS if ranked.cuts.defers else _MOST_CUTS.get(n_groups, _FEW_CUTS)
    mass = ranked.cuts.sums(slice(ranked.mass.size), ranked.mass)
    thinned = []
    for own, cut in zip(edges, plain.cuts[0].tolist(), strict=True):
        reached = mass[own % ranked.cuts.n_cuts]
        span = max(float(reached[-1] - reached[0]), 1e-300)
        spread = (reached - reached[0]) / span + np.linspace(0.0, 1.0, own.size)
        places = np.unique(np.minimum(np.searchsorted(spread, np.linspace(0.0, spread[-1], most)), own.size - 1))
        thinned.append(np.unique(np.append(own[places] if own.size > most else own, cut)))
    return thinned


def _candidates(
    ranked: RankedScores, edges: list[IntArray], limits: RuleLimits, losses: Sums, plain: CutRules
) -> CutRules:
    """Return the rules to choose among, the first of which is the best without margins."""
    if len(edges) <= _MOST_DIMENSIONS and not ranked.cuts.defers:
        grid = np.meshgrid(*edges, indexing="ij")
        rules = np.column_stack([one.ravel() for one in grid])
    else:
        rules = _at_prices(ranked, edges, limits, losses)
        rules = np.vstack([rules, _shifted(edges, rules[:_N_SHIFTED]), _shifted(edges, plain.cuts)])
        if ranked.cuts.defers:
            n_groups, n_cuts = ranked.cuts.n_groups, ranked.cuts.n_cuts
            rules = rules[(rules[:, :n_groups] <= rules[:, n_groups:] - n_cuts).all(axis=1)]
    rules = np.unique(rules, axis=0)
    rules = np.vstack([plain.cuts, rules[(rules != plain.cuts[0]).any(axis=1)]])
    return CutRules(np.repeat(plain.models, len(rules)), rules)


def _at_prices(ranked: RankedScores, edges: list[IntArray], limits: RuleLimits, losses: Sums) -> IntArray:
    """Return the cheapest rules at many prices of the goals: for each edge its cheapest cut."""
    rng, every = np.random.default_rng(0), np.concatenate(edges)
    rows = np.empty((0, every.size)) if limits.goals is None else limits.goals.rows[:, every]
    added = losses.added.mean(axis=0)[every]  # of several groups the worst is not known yet
    reach = np.ptp(added) or 1.0
    spans = np.ptp(rows, axis=1) if rows.size else np.empty(0)
    prices = 10.0 ** rng.uniform(*_PRICES, (_N_PRICES, len(rows))) * (rng.random((_N_PRICES, len(rows))) < _PRICED)
    costs = added + (prices * np.divide(reach, spans, out=np.ones(spans.size), where=spans > 0)) @ rows
    ends = np.cumsum([0, *(own.size for own in edges)]).tolist()
    parts = [costs[:, start:end] for start, end in pairwise(ends)]
    if not ranked.cuts.defers:
        return np.column_stack([own[part.argmin(axis=1)] for own, part in zip(edges, parts, strict=True)])
    n_groups, pairs = ranked.cuts.n_groups, []
    for upper, lower, high, low in zip(
        edges[:n_groups], edges[n_groups:], parts[:n_groups], parts[n_groups:], strict=True
    ):  # the cheapest upper edge that is no later than each lower one
        last = np.searchsorted(upper, lower - ranked.cuts.n_cuts, side="right") - 1
        least = np.minimum.accumulate(high, axis=1)[:, np.maximum(last, 0)] + low
        at = np.where(last >= 0, least, np.inf).argmin(axis=1)
        best = [int(one[: end + 1].argmin()) for one, end in zip(high, np.maximum(last[at], 0).tolist(), strict=True)]
        pairs.append((upper[best], lower[at]))
    return np.column_stack([*(one for one, _ in pairs), *(one for _, one in pairs)])


def _shifted(edges: list[IntArray], rules: IntArray) -> IntArray:
    """Return rules with one edge moved by a few cuts."""
    shifted = []
    for edge, own in enumerate(edges):
        places = np.clip(np.searchsorted(own, rules[:, edge])[:, None] + _SHIFTS, 0, own.size - 1)
        moved = np.repeat(rules, _SHIFTS.size, axis=0)
        moved[:, edge] = own[places.ravel()]
        shifted.append(moved)
    return np.vstack(shifted)
