"""Goals that hold for new people: the choice of one rule with margins between the goals and what the rows show.

A rule that just meets its goals on the selection rows misses one of them on new rows about half of the time, and more
often where several goals bind. With the slack of a goal in parts of its standard error, ``z``, the risk of a rule is
the sum over goals of ``Phi(-z)``, to which distant goals add nothing, and the rule of least cost for a target ``t`` is
the cheapest with a risk of at most ``Phi(-t)``. Which target is needed is found from the rows:

1. The choice is optimistic: of many rules the one is chosen whose goals look met. The same choice on resamples of the
   rows, judged on all of them, tells by how much (a bootstrap; Efron 1983).
2. Goals fail together: with the correlation of their influence values, the probability that all hold is that of a
   normal vector below ``z - optimism``.

The least target at which that probability reaches the confidence is taken. Where none does, the rule with the largest
one is, and nothing is promised. All of this is asymptotic.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import qmc

from counterpoise._base.budget import check_budget
from counterpoise._base.types import BoolArray, FloatArray, IntArray
from counterpoise.goals import Goal, GoalCheck, Rate
from counterpoise.goals.binding import Views
from counterpoise.goals.bound_goals import GoalLimits
from counterpoise.goals.disparity import GroupDisparities
from counterpoise.goals.expressions import ComparedRatios
from counterpoise.goals.ranges import goal_range
from counterpoise.goals.rates import defer_rate, error_rate
from counterpoise.goals.terms import DEFAULT, Dataset, Linear, rows_behind
from counterpoise.rules.choosing import Problem
from counterpoise.rules.evaluator import FEW_ROWS, CandidateRules, DisparitySum, Evaluator, Function, RatioSum
from counterpoise.theory.risks import WorstGroup

N_RESAMPLES = 60
TARGETS = np.arange(-0.5, 3.0001, 0.03125)  # of which the least that is enough is taken
_MOST_OPTIMISM = 3.0  # standard errors
_N_DRAWS = 4096  # of the normal vector: a power of two
_TOLD_APART = 20  # of the draws: smaller shares of them say little
_FEW_SURE = 3.0  # on few rows, or persons, a goal counts as sure only so many standard errors inside
_FAR = 8.0  # standard errors beyond which a goal cannot fail by chance
_TINY, _VAST = 1e-12, 1e60
_TWO_SIDED = 1.96  # standard errors on both sides of the value, for 95 % of cases
_ALLOWED = 1e-9  # by which a goal may be missed: rounding
UNMET = 1e3  # added to the risk of rules that miss a goal on the rows: they come last
_MOST_DOUBLINGS = 10
_MIDDLE = 0.25, 0.75  # parts of the slacks that the population may have
_MOST_RULES = 2000  # whose choice is repeated on resamples
_MOST_RISE, _LEAST_RISE = 0.25, 0.02  # of the objective by margins: beyond, rules are nearly trivial
_MOST_GROUPS = 10_000  # of the worst group
# The deciding model is no model of the folds that scored the selection rows. By how much its rates are others, in
# parts of their standard errors: measured on COMPAS, MNIST, ringnorm, covertype and a generated set, at 1,000 to 50,000
# rows (docs/results/what_did_not_help.md).
FOLD_SHIFT = 0.5
# Standard errors by which other folds move how far inside all goals can be: twice their standard deviation over ten
# values of random_state, 0.27 and 0.34 on 2,000 rows of credit default (0.18 and 0.28 with ten folds).
OF_FOLDS = 0.6


class PartMargin(NamedTuple):
    """The margin of the limit of a goal that is closest to its bound; None where a goal has no margin."""

    goal: int  # its place
    slack: float | None  # between the limit and what the rule has on the selection rows
    standard_error: float | None
    optimism: float | None  # of the choice
    cost: float  # what the objective would gain without this margin
    shift: float = 0.0  # by how much farther outside it is with the deciding model than with models of folds


class RowsNeeded(NamedTuple):
    """How many labelled rows a confidence takes: the middle half of what is likely, given some rows."""

    least: int | None  # None: even that is more than can be told
    most: int | None  # None: more than can be told

    def __str__(self) -> str:
        if self.least is None:
            return "perhaps no number of selection rows"
        most = " or many more" if self.most is None else f" to {self.most:,}" * (self.most > self.least)
        return f"about {self.least:,}{most} selection rows"


class SetAside(NamedTuple):
    """The rows of a goal on which no rule within reach is far enough inside of its bound."""

    goal: int  # its place
    rows: str
    n_rows: int

    def __str__(self) -> str:
        return f"{self.rows} has {self.n_rows:,} rows"


class SafeRule(NamedTuple):
    """The rule that was chosen so that goals hold on new rows."""

    place: int  # among the candidates
    confidence: float | None  # that was reached; None where it was not
    margins: tuple[PartMargin, ...]
    cost: float  # of all margins: how much more of the objective than the best rule without
    limiting: int | None  # the place of the goal that is the least sure to hold
    rows_needed: "RowsNeeded | None"  # where the confidence was not reached: how many rows would be enough
    most_slack: float = 0.0  # standard errors by which all goals can be met at once
    share: float | None = None  # where the confidence was not reached: the probability that was
    missed_by: float | None = None  # and by how many standard errors all goals would have to be farther inside
    few_rows: SetAside | None = None  # on which a goal rests, where these are too few
    target: float = 0.0  # for which it is the rule of least cost
    set_aside: tuple[SetAside, ...] = ()  # what the margins leave out


class Margin(NamedTuple):
    """What lies between the bound of a goal and what is aimed at, so that the goal holds on new rows."""

    goal: Goal
    bound: float  # the number on the right side
    value: float  # that is aimed at: of the left side less the rates on the right, on the selection rows
    standard_error: float | None  # of the value; None where the goal has no margin
    optimism: float | None  # by how much the choice makes the value look better
    cost: float  # what the objective would gain without this margin
    reason: str = ""  # why the goal has no margin
    shift: float = 0.0  # by how much nearer to the bound the deciding model is than the models of folds, as measured

    @property
    def expected(self) -> tuple[float, float] | None:
        """Return a 95 % interval for the value in the population; None where there is no margin."""
        if self.standard_error is None:
            return None
        ends = goal_range(self.goal)
        shifts = (self.shift, 0.0) if self.goal.sense == ">=" else (0.0, self.shift)
        low, high = (
            float(np.clip(self.value + side * (_TWO_SIDED * self.standard_error + shift), *ends))
            for side, shift in zip((-1, 1), shifts, strict=True)
        )
        return low, high

    @property
    def has_large_shift(self) -> bool:
        """Return whether the deciding model is more than a standard error nearer to the bound."""
        return self.standard_error is not None and self.shift > self.standard_error

    def __str__(self) -> str:
        rates = self.goal.right.terms
        name = f"{self.goal.left} - {Rate(0.0, rates)}" if rates else str(self.goal.left)
        if self.expected is None:
            return f"{name}: {self.bound:.4g} asked, {self.value:.4g} aimed at; no margin, as {self.reason}"
        low, high = self.expected
        shift = f"; the deciding model is {self.shift:.4g} nearer to the bound" if self.has_large_shift else ""
        return f"{name}: {self.bound:.4g} asked, {self.value:.4g} aimed at, {low:.4g} to {high:.4g} expected{shift}"


class Margins(NamedTuple):
    """The margins of all goals, and whether they are enough."""

    confidence: float | None  # that was reached; None where it was not
    margins: tuple[Margin, ...]
    cost: float  # how much more of the objective the rule has than the best one without margins
    limiting: Goal | None  # the goal that is the least sure to hold
    rows_needed: "RowsNeeded | None"  # where the confidence was not reached: how many rows would be enough
    reason: str = ""  # why there are none
    most_slack: float = 0.0  # standard errors by which all goals can be met at once
    share: float | None = None  # where the confidence was not reached: the probability that was
    missed_by: float | None = None  # and by how many standard errors all goals would have to be farther inside
    few_rows: SetAside | None = None  # on which a goal rests, where these are too few
    set_aside: tuple[tuple[Goal, SetAside], ...] = ()  # what they leave out, as no rule is far enough inside there
    proof: Any = None  # a GoalProof, where one was requested


NO_MARGINS = Margins(None, (), 0.0, None, None)
OF_DISPARITY = NO_MARGINS._replace(reason="there are no margins for goals on conditional_disparity")


class Part(NamedTuple):
    """One limit of a goal: a function of answers that must not be above zero."""

    function: Function
    goal: int | None  # its place; None: it is the budget
    is_random: bool  # whether it gets a margin
    allowed: float = _ALLOWED  # by which it may be above zero: rounding
    scale: float = 1.0  # what the function is in parts of, where squares of amounts would leave the range of floats


class RuleRanking(NamedTuple):
    """What decides which rule is the best for a target."""

    cost: FloatArray  # (n_rules,)
    risk: FloatArray  # the sum of the probabilities that goals fail, as if the slack were that of new rows
    is_met: BoolArray  # whether all goals are met on the rows

    def only(self, places: IntArray) -> "RuleRanking":
        """Return the same of some rules."""
        return RuleRanking(self.cost[places], self.risk[places], self.is_met[places])

    def with_cost(self, cost: FloatArray | None) -> "RuleRanking":
        """Return the same with the costs of a table, where it knows more of them than values on the rows."""
        return self if cost is None else self._replace(cost=cost)

    def best(self, targets: FloatArray) -> IntArray:
        """Return for each target the rule of least cost whose risk is small enough; else that of least risk."""
        return cheapest_at(self.cost, np.where(self.is_met, self.risk, self.risk + UNMET), targets)


def cheapest_at(cost: FloatArray, risk: FloatArray, targets: FloatArray) -> IntArray:
    """Return for each target the rule of least cost whose risk is small enough; else that of least risk.

    The risk of rules that miss a goal on the rows is larger by ``UNMET``: with the target minus infinity no other risk
    counts.
    """
    order = np.lexsort((risk, cost))
    least = np.minimum.accumulate(risk[order])
    allowed = np.where(np.isneginf(targets), UNMET / 2, ndtr(-targets))
    first = np.searchsorted(-least, -allowed)  # the first rule by cost that is safe enough
    return np.where(first < order.size, order[np.minimum(first, order.size - 1)], int(risk.argmin()))


class MarginProblem(NamedTuple):
    """The limits and the objective of a problem as functions of answers, and how the selection rows were sampled."""

    parts: Sequence[Part]
    costs: Sequence[Linear]  # the objective, the largest of which counts
    views: Views
    persons: Mapping[str, IntArray]  # by dataset the person of each row, by number, where some have several
    error_factors: Mapping[str, float]  # of standard errors, by dataset
    row_factor: float = 1.0  # margins are those of so many times the rows
    set_aside: tuple[SetAside, ...] = ()  # what gets no margin, as no rule is far enough inside there
    widening: FloatArray | None = None  # of the standard error of each part, as rows of a person are alike; None: asked

    @property
    def functions(self) -> list[Function]:
        """Return the limits, and then the objectives."""
        return [*(part.function for part in self.parts), *self.costs]

    @property
    def scales(self) -> FloatArray:
        """Return what the parts that get a margin are in parts of."""
        return np.array([self.parts[place].scale for place in self.random])

    @property
    def random(self) -> IntArray:
        """Return the places of the parts that get a margin."""
        return np.flatnonzero([part.is_random for part in self.parts])

    @property
    def allowed(self) -> FloatArray:
        """Return by how much each part may be missed, shape (n_parts, 1)."""
        return np.array([part.allowed for part in self.parts]).reshape(-1, 1)

    def by_goal(self) -> dict[int, IntArray]:
        """Return for each goal which of the parts that get a margin are its own."""
        goals = dict.fromkeys(part.goal for part in self.parts if part.goal is not None)
        return {goal: np.flatnonzero([self.parts[one].goal == goal for one in self.random]) for goal in goals}

    def least_rows(self, table: Evaluator, shares: FloatArray) -> FloatArray:
        """Return on how many rows, of equal weight, or persons, each part that gets a margin rests at least.

        For every rule, shape (n_random, n_rules).
        """
        least = [table.least_rows(place, shares, self.persons) for place in self.random.tolist()]
        return np.reshape(least, (self.random.size, shares.shape[1]))

    def without_hopeless(self, table: Evaluator, confidence: float) -> "MarginProblem":
        """Return the same without margins where none of the rules is far enough inside, whatever other goals there are.

        A group of few rows would else take the margin from all goals. Where nothing would be left nothing is left out.
        """
        shares = table.shares()
        ranking, z, _ = self.judge(table, shares)
        if not ranking.is_met.any():
            return self
        risk = ndtr(-unless_few_rows(z, self.least_rows(table, shares))[:, ranking.is_met])
        # By goal and by the smallest of the groups that a limit is about: the rows of all, and the places of the parts.
        groups: dict[SetAside, dict[frozenset[Dataset], list[int]]] = {}
        for number, place in enumerate(self.random.tolist()):
            compared = frozenset(count.out_of for count in self.parts[place].function.row_counts)
            groups.setdefault(self.rows_of(place), {}).setdefault(compared, []).append(number)
        hopeless = {
            group: [number for pair in numbers.values() for number in pair]
            for group, numbers in groups.items()
            if 1.0 - max_risk(risk, numbers.values()).min() < confidence
        }
        if len(hopeless) == len(groups):
            return self
        left_out = self.random[[number for numbers in hopeless.values() for number in numbers]].tolist()
        parts = [part._replace(is_random=part.is_random and at not in left_out) for at, part in enumerate(self.parts)]
        return self._replace(parts=parts, set_aside=(*self.set_aside, *hopeless))

    def rows_of(self, place: int) -> SetAside:
        """Return the smallest of the groups that a part with a margin is about."""
        part = self.parts[place]
        assert part.goal is not None  # noqa: S101 - a budget has no margin
        compared = {count.out_of.without_value for count in part.function.row_counts}
        n_rows, _, rows = min((self.views.n_rows(rows), repr(rows), rows) for rows in compared)
        return SetAside(part.goal, ", ".join(rows.parts[1:]) or str(rows), n_rows)

    def table(self, rules: CandidateRules, cost: FloatArray | None = None) -> Evaluator:
        """Return what rules come to; the cost of each may be given, where more is known of it than its value."""
        table = Evaluator(rules, self.functions, self.views, self.error_factors, self.row_factor)
        table.cost = cost
        return table

    def shifts_to(self, of_decider: Evaluator, of_folds: Evaluator) -> FloatArray:
        """Return by how much more functions have with rules that decide about scores as the deciding model has them."""
        uses_folds = [
            any(count.rows.name in self.error_factors for count in function.row_counts)
            for function in of_folds.functions
        ]
        difference = of_decider.values(of_decider.shares()) - of_folds.values(of_folds.shares())
        return np.asarray(difference * np.reshape(uses_folds, (-1, 1)))

    def slack(self, table: Evaluator, values: FloatArray) -> FloatArray:
        """Return how far the parts that get a margin are inside of their limits for the deciding model.

        By how much it is farther outside than the models of the folds is taken off; what is gained does not count.
        """
        return -values[self.random] - self.shifts(table)

    def shifts(self, table: Evaluator) -> FloatArray:
        """Return by how much farther outside the deciding model is than models of folds, shape (n_random, n_rules)."""
        if table.shifts is None:
            return np.zeros((self.random.size, table.rules.n_rules))
        return np.maximum(table.shifts[self.random], 0.0)

    def rank(self, table: Evaluator, *, may_miss: bool = False) -> RuleRanking:
        """Return what decides about rules on all rows; goals with a margin may be missed there if ``may_miss``."""
        shares = table.shares()
        ranking = self.judge(table, shares)[0]
        if not may_miss:
            return ranking
        fixed = np.flatnonzero([not part.is_random for part in self.parts])
        return ranking._replace(is_met=np.asarray((table.values(shares)[fixed] <= self.allowed[fixed]).all(axis=0)))

    def judge(self, table: Evaluator, shares: FloatArray) -> tuple[RuleRanking, FloatArray, FloatArray]:
        """Return what decides about rules on all rows, the slack of goals in standard errors, and those."""
        values, random = table.values(shares), self.random
        errors = np.sqrt(table.variances(random, shares))
        if self.persons and self.widening is None:
            rule = int(self.rank_values(values, self.slack(table, values) / errors).best(np.zeros(1))[0])
            errors = errors * self.widened_at(table, shares, rule)[random][:, None]
        elif self.widening is not None:
            errors = errors * self.widening[random][:, None]
        z = self.slack(table, values) / errors
        return self.rank_values(values, z).with_cost(table.cost), z, errors

    def widened_at(self, table: Evaluator, shares: FloatArray, rule: int) -> FloatArray:
        """Return by how much standard errors are larger as rows of a person are alike, measured at one rule."""
        by_person, by_row = (
            table.covariance(self.random, shares, rule, units).diagonal() for units in (self.persons, {})
        )
        factor = np.sqrt(np.divide(by_person, by_row, out=np.ones(self.random.size), where=by_row > 0))
        n_persons = min(int(codes.max()) + 1 for codes in self.persons.values())
        few = np.sqrt(n_persons / max(n_persons - 1, 0.5))
        widening = np.ones(len(self.parts))
        widening[self.random] = np.maximum(few * factor, 1.0)
        return widening

    def violations(self, values: FloatArray) -> FloatArray:
        """Return by how much rules miss all limits together, given their values of all functions."""
        limits = values[: len(self.parts)]
        return np.asarray(np.where(limits > self.allowed, limits, 0.0).sum(axis=0))

    def rank_values(self, values: FloatArray, z: FloatArray) -> RuleRanking:
        """Return what decides about rules, given their values of all functions, and the slack of goals."""
        n_parts = len(self.parts)
        is_met = np.asarray((values[:n_parts] <= self.allowed).all(axis=0))
        return RuleRanking(values[n_parts:].max(axis=0), ndtr(-z).sum(axis=0), is_met)


def max_risk(risk: FloatArray, groups: Iterable[list[int]]) -> FloatArray:
    """Return the largest of the sums of some rows of risks: two groups are too far apart in one way or the other."""
    return np.max([risk[numbers].sum(axis=0) for numbers in groups], axis=0)  # type: ignore[no-any-return]


class TargetPath(NamedTuple):
    """The rule of least cost for each target, and how optimistic its choice is."""

    problem: MarginProblem
    table: Evaluator
    kept: IntArray  # the places of the rules of the table among all candidates
    shares: FloatArray
    now: RuleRanking
    z: FloatArray  # (n_random, n_rules)
    errors: FloatArray
    places: IntArray  # (n_targets,) of rules
    optimism: FloatArray  # (n_targets, n_random)
    likely: FloatArray  # (n_resamples,): by how much the largest slack of all goals at once differs on resamples

    def safe_rule(self, confidence: float) -> SafeRule:
        """Return the cheapest rule whose goals hold together on new rows with a probability of about ``confidence``."""
        now, places, random = self.now, self.places, self.problem.random
        draws = self._draws(int(now.best(np.array([ndtri(confidence)]))[0]))
        inside = self.z[:, places].T - self.optimism
        least_rows = self.problem.least_rows(self.table, self.shares)[:, places].T
        within = unless_few_rows(inside, least_rows)
        is_met = now.is_met[places]
        plain = int(now.best(np.array([-np.inf]))[0])
        # all goals hold together no more often than each
        hopeful = np.flatnonzero((within.min(axis=1, initial=np.inf) >= ndtri(confidence)) & is_met)
        first = next((target for target in hopeful.tolist() if share_inside(draws, within[target]) >= confidence), None)
        is_reached = first is not None
        # Where no rule is safe enough, none is taken that is nearly trivial and not safe either.
        is_cheap = is_met & (now.cost[places] <= now.cost[plain] + most_rise(float(now.cost[plain])) + _TINY)
        held = np.empty(0)
        if first is None:
            held = np.array(
                [share_inside(draws, own) if cheap else -1.0 for own, cheap in zip(inside, is_cheap, strict=True)]
            )
        at = int(np.argmax(held)) if first is None else first
        place = int(places[at]) if is_reached or is_cheap[at] else plain
        limiting = self.problem.parts[random[within[at].argmin()]].goal if random.size else None
        needed = None
        if not is_reached and self._counts_selection_rows(limiting):
            known = self.table.views.tables
            n_rows = (known[DEFAULT].n_labels or known[DEFAULT].n_samples) if DEFAULT in known else 0
            largest = self.z[:, places[-1]] - self.optimism[-1]  # a choice looks better than it is
            needed = rows_needed(largest, self.likely, draws, confidence, n_rows, least_rows[-1])
        share = missed_by = few_rows = None
        if not is_reached and is_cheap[at] and (within[at] < inside[at]).any():
            few_rows = self.problem.rows_of(int(random[least_rows[at].argmin()]))
        elif not is_reached and is_cheap[at]:
            share = max(float(held[at]), 0.0)
            missed_by = _missed_by(inside[at], draws, confidence)
        elif self.problem.set_aside:
            share = share_inside(draws, within[at])
        cost = max(float(now.cost[place] - now.cost[plain]), 0.0)
        level, slack = (
            confidence if is_reached and not self.problem.set_aside else None,
            float(self.z[:, places[-1]].min(initial=np.inf)),
        )
        margins, target = self._margins(place, at), float(TARGETS[at])
        found = SafeRule(int(self.kept[place]), level, margins, cost, limiting, needed, slack)
        found = found._replace(target=target, share=share, missed_by=missed_by, few_rows=few_rows)
        return found._replace(set_aside=self.problem.set_aside)

    def _counts_selection_rows(self, goal: int | None) -> bool:
        """Return whether more selection rows would help a goal: it may be on another dataset."""
        parts = [part for part in self.problem.parts if part.goal == goal]
        return any(count.rows.name == DEFAULT for part in parts for count in part.function.row_counts)

    def _draws(self, rule: int) -> FloatArray:
        """Return draws of a normal vector with the correlation of the goals' influence values at one rule."""
        covariance = self.table.covariance(self.problem.random, self.shares, rule, self.problem.persons)
        return normal_draws(covariance)

    def _margins(self, place: int, at: int) -> tuple[PartMargin, ...]:
        """Return for each goal the margin of the part whose value it has, and what the margins of the goal cost."""
        now, z, margins = self.now, self.z, []
        without_margin = {group.goal for group in self.problem.set_aside}
        for goal, own in self.problem.by_goal().items():
            others = np.setdiff1d(np.arange(len(z)), own)
            without = now._replace(risk=ndtr(-z[others]).sum(axis=0))
            cost = max(float(now.cost[place] - now.cost[without.best(TARGETS[[at]])[0]]), 0.0)
            errors = self.errors[:, place] * self.problem.scales
            shifts = self.problem.shifts(self.table)[:, place] * self.problem.scales
            shown = own[:0] if goal in without_margin else own
            margins.append(_closest(goal, shown, z[:, place], errors, self.optimism[at], cost, shifts))
        return tuple(margins)


def follow_targets(table: Evaluator, problem: MarginProblem) -> TargetPath:
    """Return the rule of least cost for each target, and how optimistic its choice is: one pass for every confidence.

    Parameters
    ----------
    table : Evaluator
        What the candidate rules come to, by ``problem.table``.
    problem : MarginProblem
    """
    table, kept = _near_the_frontier(table, problem)
    random, shares = problem.random, table.shares()
    now, z, errors = problem.judge(table, shares)
    places, gained, most = now.best(TARGETS), np.zeros((TARGETS.size, random.size)), []
    for sums in table.resamples(N_RESAMPLES, np.random.default_rng(0), problem.persons):
        check_budget()
        values = table.values(table.shares(sums))
        other = problem.slack(table, values) / errors
        again = problem.rank_values(values, other).best(TARGETS)
        shift = np.clip(other, -_FAR, _FAR) - np.clip(z, -_FAR, _FAR)
        # What the rule of all rows gains is chance alone, and zero on average: taken off, less of it is left.
        gained += (shift[:, again] - shift[:, places]).T
        most.append(np.clip(other[:, again[-1]], -_FAR, _FAR).min(initial=_FAR))
    optimism = np.clip(gained / N_RESAMPLES, 0.0, _MOST_OPTIMISM)
    likely = np.array(most) - np.mean(most)
    return TargetPath(problem, table, kept, shares, now, z, errors, places, optimism, likely)


class Candidates(NamedTuple):
    """What rules to choose among come to."""

    table: Evaluator
    problem: MarginProblem

    def trace(self, targets: FloatArray) -> list[int]:
        """Return the places of the rules of least cost for targets, in their order, each once.

        Targets below 0 miss goals on these rows, which may hold on the population nevertheless.
        """
        now = self.problem.rank(self.table, may_miss=True)
        places = dict.fromkeys(now.best(targets).tolist())
        return [one for one in places if now.is_met[one]]

    def at(self, cost: float) -> SafeRule:
        """Return the only rule as one without optimism: it was chosen on other rows."""
        _, z, errors = self.problem.judge(self.table, self.table.shares())
        nothing, errors = np.zeros(len(z)), errors[:, 0] * self.problem.scales
        shifts = self.problem.shifts(self.table)[:, 0] * self.problem.scales
        margins = [
            _closest(goal, own, z[:, 0], errors, nothing, 0.0, shifts) for goal, own in self.problem.by_goal().items()
        ]
        return SafeRule(0, None, tuple(margins), cost, None, None)


def _closest(
    goal: int,
    own: IntArray,
    z: FloatArray,
    errors: FloatArray,
    optimism: FloatArray,
    cost: float,
    shifts: FloatArray,
) -> PartMargin:
    """Return the margin of the part of a goal that is closest to its bound at one rule."""
    if not own.size:
        return PartMargin(goal, None, None, None, cost)
    worst = own[(z[own] * errors[own]).argmin()]
    error, shift = float(errors[worst]), float(shifts[worst])
    return PartMargin(goal, float(z[worst]) * error + shift, error, float(optimism[worst]) * error, cost, shift)


def normal_draws(covariance: FloatArray) -> FloatArray:
    """Return draws of a normal vector of variances 1 with the correlation of a covariance, (n_draws, n_goals)."""
    n_goals = len(covariance)
    scale = np.sqrt(np.maximum(covariance.diagonal(), _TINY**2))
    correlation = np.clip(covariance / np.outer(scale, scale), -1.0, 1.0)
    np.fill_diagonal(correlation, 1.0)
    values, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    points = qmc.Sobol(max(n_goals, 1), seed=0).random(_N_DRAWS)[:, :n_goals]
    return np.asarray(ndtri(np.clip(points, _TINY, 1 - _TINY)) @ root.T, order="F")  # looked at by column


def share_inside(draws: FloatArray, most: FloatArray) -> float:
    """Return the probability that all goals hold; where draws are too few to tell, what each risks is added up."""
    inside = np.ones(len(draws), dtype=bool)
    for column, bound in zip(draws.T, most, strict=True):  # a fifth of the time of all(axis=1) over few columns
        inside &= column <= bound
    share = float(np.count_nonzero(inside) / len(draws))
    return share if share < 1.0 - _TOLD_APART / len(draws) else float(1.0 - ndtr(-most).sum())


def _near_the_frontier(table: Evaluator, problem: MarginProblem) -> tuple[Evaluator, IntArray]:
    """Return the rules that cost little for their risk, and their places: those that a choice may lead to."""
    n_rules = table.rules.n_rules
    if n_rules <= _MOST_RULES:
        return table, np.arange(n_rules)
    now = problem.rank(table)
    risk = np.where(now.is_met, now.risk, now.risk + UNMET)
    order = np.lexsort((now.cost, risk))  # from the safest on
    frontier = np.minimum.accumulate(now.cost[order])
    excess = np.empty(n_rules)
    excess[order] = now.cost[order] - frontier
    kept = np.sort(np.argsort(excess, kind="stable")[:_MOST_RULES])
    return table.only(kept), kept


def rows_needed(
    slack: FloatArray, likely: FloatArray, draws: FloatArray, confidence: float, n_rows: int, least_rows: FloatArray
) -> RowsNeeded:
    """Return how many labelled rows would be enough where ``n_rows`` give a slack, in standard errors.

    The slack of the population is uncertain by about a standard error, and rows go with one over its square: a single
    number would jump. So the middle half is returned of what follows from ``likely`` changes of the slack.
    """
    enough = FEW_ROWS / max(float(least_rows.min(initial=np.inf)), 1.0)
    factors = np.maximum(2.0 ** np.arange(0.0, _MOST_DOUBLINGS, 0.25), enough)

    def reaches(factor: float) -> float:
        """Return how likely it is that so many times the rows reach the confidence."""
        slacks = (np.sqrt(factor) * (slack + change) for change in likely.tolist())
        return float(np.mean([share_inside(draws, one) >= confidence for one in slacks]))

    def least_with(part: float) -> int | None:
        low, high = 0, len(factors)  # more rows are never worse
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if reaches(factors[middle]) >= part else (middle + 1, high)
        return None if low == len(factors) else two_digits(factors[low] * n_rows)

    return RowsNeeded(least_with(_MIDDLE[0]), least_with(_MIDDLE[1]))


def _missed_by(inside: FloatArray, draws: FloatArray, confidence: float) -> float | None:
    """Return by how many standard errors all goals would have to be farther inside; None for very many."""
    steps = np.arange(0.05, _MOST_OPTIMISM, 0.05)
    return next((float(step) for step in steps if share_inside(draws, inside + step) >= confidence), None)


def unless_few_rows(inside: FloatArray, least_rows: FloatArray) -> FloatArray:
    """Return the slack of goals, in standard errors, that counts: rates of few rows are no normal numbers."""
    return np.where((least_rows >= FEW_ROWS) | ((inside >= _FEW_SURE) & (least_rows > 0)), inside, -_FAR)


def two_digits(number: float) -> int:
    """Return a number of rows, rounded up to two digits.

    Examples
    --------
    >>> from counterpoise.rules.margins import two_digits
    >>> two_digits(1234.5), two_digits(7.0)
    (1300, 7)
    """
    digits = 10 ** max(int(np.log10(max(number, 1.0))) - 1, 0)
    return int(np.ceil(number / digits - _ALLOWED) * digits)


def parts_of(goals: tuple[Goal, ...], views: Views) -> list[Part]:
    """Return the limits of goals, and which of them get a margin."""
    written, parts = GoalLimits.of(goals, views), []
    has_margin = [not why_no_margin(goal) for goal in goals]
    for part, owner in zip(written.targets, written.owners.tolist(), strict=True):
        limit = part.linear if not part.compares_ratios else _compared_limit(part)
        is_list = all(not views.tables[count.rows.name].population for count in limit.row_counts)
        is_random = has_margin[owner] and not is_list
        if not isinstance(limit, Rate):
            parts.append(Part(limit, owner, is_random))
            continue
        size = limit.size if part.has_amounts else 1.0
        scale = 1.0 if 1.0 / _VAST < size < _VAST else math.ldexp(1.0, math.frexp(size)[1])
        parts.append(Part(limit * (1.0 / scale), owner, is_random, _ALLOWED * (size / scale), scale))
    return parts


def _compared_limit(part: Goal) -> RatioSum | DisparitySum:
    """Return a limit on ratios that are compared, or on a disparity, as a function that must not be above zero."""
    left = part.left
    if isinstance(left, GroupDisparities):
        return DisparitySum(left, part.bound)
    assert isinstance(left, ComparedRatios)  # noqa: S101 - no others compare ratios
    one, other = ((side.numerator, side.denominator) for side in (left.one, left.other))
    if left.is_quotient:  # times the other ratio
        return RatioSum(((-1.0, *one), (part.bound, *other)), 0.0)
    return RatioSum(((1.0, *one), (-1.0, *other)), -part.bound)


AT_THE_END = "no rule can be inside of its bound"


def why_no_margin(goal: Goal) -> str:
    """Return why a goal gets no margin whatever the rows are; an empty text where it gets one."""
    if goal.confidence is not None:
        return "it has a confidence of its own"
    if goal.is_equality:
        return "it is an equality: neither side of it is safe, and its tolerance is all the room there is"
    low, high = goal_range(goal)
    if goal.bound <= low + _ALLOWED if goal.sense == "<=" else goal.bound >= high - _ALLOWED:
        return AT_THE_END
    return ""


def margin_problem(
    problem: Problem,
    views: Views,
    *,
    defer_cost: float | None,
    budget: float | None,
    persons: IntArray | None,
    has_fold_scores: bool,
) -> MarginProblem:
    """Return goals, a budget of the mean loss and the objective as functions of answers, for the choice of margins.

    ``persons`` are those of the selection rows, and ``has_fold_scores`` says that models of folds scored these.
    """
    parts, train, objective = parts_of(problem.goals, views), Dataset(DEFAULT), problem.objective
    if budget is not None:  # a limit as goals are, on the selection rows alone
        parts.append(Part((_mean_loss(train, defer_cost) - budget).resolve(views), None, is_random=False))
    groups = [train]
    if isinstance(objective, WorstGroup):
        names = objective.names or views.tables[DEFAULT].sensitive_columns
        groups = views.groups(train, tuple(names), _MOST_GROUPS)[1]
    costs = [_mean_loss(rows, defer_cost).resolve(views) for rows in groups]
    if isinstance(objective, Rate):
        costs = [objective.resolve(views)]
    counted = {count.rows.name for part in parts for count in part.function.row_counts}
    own = [DEFAULT, *(name for name in counted if name != DEFAULT and rows_behind(name) == DEFAULT)]
    by_person = {} if persons is None else dict.fromkeys(own, persons)
    factors = dict.fromkeys(own, float(np.hypot(1.0, FOLD_SHIFT))) if has_fold_scores else {}
    return MarginProblem(parts, costs, views, by_person, factors)


def _mean_loss(rows: Dataset, defer_cost: float | None) -> Rate:
    """Return the mean loss of some rows as a rate: of errors, and of what is deferred."""
    return error_rate(rows) if defer_cost is None else error_rate(rows) + defer_cost * defer_rate(rows)


def most_cost(problem: MarginProblem, constant: CandidateRules, now: RuleRanking) -> float:
    """Return what margins may cost: a quarter of the best rule's cost more, and less than a constant answer's."""
    table, n_parts = problem.table(constant), len(problem.parts)
    values = table.values(table.shares())
    is_met, best = (values[:n_parts] <= 0).all(axis=0), float(now.cost[now.best(np.array([-np.inf]))[0]])
    ends = values[n_parts:].max(axis=0)[is_met]
    most = best + most_rise(best)
    return min(most, (best + float(ends.min())) / 2) if ends.size and ends.min() > best else most


def most_rise(best: float) -> float:
    """Return by how much margins may raise the objective."""
    return max(_MOST_RISE * abs(best), _LEAST_RISE)


def describe_margins(safe: SafeRule, checks: Sequence[GoalCheck]) -> Margins:
    """Return the margins of goals in their own units, given what the rule has on the selection rows."""
    margins, too_few = [], {group.goal: str(group) for group in safe.set_aside}
    for check, part in zip(checks, safe.margins, strict=True):
        bound, value = check.goal.bound, check.value - (check.bound - check.goal.bound)  # less the rates on the right
        if part.slack is None or part.standard_error is None or part.optimism is None:
            reason = too_few.get(part.goal) or why_no_margin(check.goal) or "its rows are a list and no sample"
            margins.append(Margin(check.goal, bound, value, None, None, part.cost, reason))
            continue
        # A ratio is multiplied through by its denominator: in its own units the slack is that of the value.
        gap = abs(value - bound)
        unit = gap / abs(part.slack) if min(gap, abs(part.slack)) > _ALLOWED else 1.0  # where it is just met: unknown
        errors = unit * part.standard_error, unit * part.optimism
        margins.append(Margin(check.goal, bound, value, *errors, part.cost, shift=unit * part.shift))
    at_the_end = next((check.goal for check in checks if why_no_margin(check.goal) == AT_THE_END), None)
    if at_the_end is not None:  # which nothing makes sure
        return Margins(None, tuple(margins), safe.cost, at_the_end, None)
    if all(margin.standard_error is None for margin in margins):
        return Margins(None, tuple(margins), safe.cost, None, None)
    limiting = None if safe.limiting is None else checks[safe.limiting].goal
    found = Margins(safe.confidence, tuple(margins), safe.cost, limiting, safe.rows_needed)
    set_aside = tuple((checks[group.goal].goal, group) for group in safe.set_aside)
    found = found._replace(most_slack=safe.most_slack, few_rows=safe.few_rows, set_aside=set_aside)
    return found._replace(share=safe.share, missed_by=safe.missed_by)
