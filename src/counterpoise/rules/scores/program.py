"""The choice of a mixture of rules of scores: a problem as a program over every threshold, and the rules that solve it.

The best mixture of all rules of some scores: column generation, with a proof over every threshold of every model.

A pool of rules is mixed by the solver of any mixture. Its dual, weights of the rows and multipliers of the limits,
says what calling a row positive would cost; summed up over the sorted rows that prices every cut of every group, and
the best rule of each model is its cheapest cut in each group, or its cheapest pair of cuts where rows between them may
be deferred. The sum of those costs is a lower bound over *all* mixtures of all rules: where it meets the value of the
pool's best mixture, no threshold is missing. Where the pool cannot meet the limits, the multipliers that prove it are
priced instead, and either lead to a rule that helps or prove it for all rules.

Limits are goals, and a budget of average loss. Where none meet them, ``explain_conflict`` says which goals conflict.
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np

from counterpoise._base.checks import check_losses
from counterpoise._base.types import AnyArray, ArrayLike, BoolArray, FloatArray, IntArray
from counterpoise.goals import Goal, InfeasibleGoals, Rate
from counterpoise.goals.advice import nearest_bound, tightened
from counterpoise.rules.choosing import Problem, cleaned, groups_by
from counterpoise.rules.goal_rows import TRAIN, GoalRows, check_range, goal_rows, linear_rate, own_bound
from counterpoise.rules.scores import _kernels
from counterpoise.rules.scores.cuts import CutRules, Cuts, coupled
from counterpoise.rules.scores.table import RankedScores
from counterpoise.solvers import minimize_cvar, minimize_risk
from counterpoise.solvers.linear_program import FEASIBLE, InfeasibleRows, MixtureSolution, constraint_scale
from counterpoise.theory.risks import CVaR, Mean, Risk, RiskRows, WorstGroup

TOL = 1e-4  # the gap that is good enough; all gaps here are in parts of the losses' unit
_MAX_ROUNDS = 1000
_ROUGH = 1e-5  # gap of the pool's own problem above which the bundle method solves it in a few steps
_COARSE = 0.05  # gap of the pool's own problem in the first round, where it is not solved exactly ...
_PART = 0.05  # ... then this part of the last gap over all rules ...
_INNER = 0.25  # ... down to this part of the gap that is wanted
_FINER = 0.1  # times the gap where the cheapest rules are in the pool already
_MAX_PASSES = 20  # of the search for the nearest bound of a goal: a ratio needs three or four, a rate one
_EXACT = 1e-9  # gap to which the edges of what is possible are found, in parts of how far what is minimized reaches


class Sums(NamedTuple):
    """Linear functions of a rule's answers: a constant, and what each cut adds.

    Such as mean losses, of all rows or of a few groups of them.
    """

    constants: FloatArray  # (n_functions,): of the rule that calls nobody positive
    added: FloatArray  # (n_functions, n_edges)
    unit: float = 1.0  # what gaps are parts of: 1 for losses of errors, more or less for amounts of any other unit
    sample_weight: None = None  # all functions weigh the same

    def of(self, rules: CutRules) -> FloatArray:
        """Return the functions of each rule, shape (n_functions, n_rules)."""
        return np.asarray(self.constants[:, None] + self.added[:, rules.cuts].sum(axis=2))

    def costs(self, weights: FloatArray) -> tuple[float, FloatArray]:
        """Return the weighted sum of the functions: its constant, and what each cut adds."""
        return float(weights @ self.constants), weights @ self.added


def as_sums(matrix: FloatArray, cuts: Cuts) -> Sums:
    """Return linear functions whose values are known for the rules that call one group positive, up to some cut."""
    constants = matrix[:, cuts.starts[0, 0]].copy()
    return Sums(constants, matrix - constants[:, None])


def reaching(matrix: FloatArray, cuts: Cuts) -> Sums:
    """Return linear functions of any unit, known as for ``as_sums``: the unit is how far the widest of them reaches."""
    sums, starts = as_sums(matrix, cuts), cuts.flat_starts[:-1]
    edges = sums.added.reshape(len(sums.added), -1, cuts.n_cuts)  # the upper ones, and the lower ones where rules defer
    widths = np.maximum.reduceat(edges, starts, axis=2) - np.minimum.reduceat(edges, starts, axis=2)
    by_model = widths.reshape(*widths.shape[:2], cuts.n_models, cuts.n_groups).sum(axis=(1, 3))
    return sums._replace(unit=float(by_model.max()) or 1.0)


class CellLosses:
    """Losses of rows in cells that no rule seen so far tells apart: they count as one row with their mass together."""

    sample_weight: FloatArray
    unit = 1.0  # errors count 1, and what is deferred at most as much

    def __init__(
        self,
        cuts: Cuts,
        groups: IntArray,
        is_positive: BoolArray,
        mass: FloatArray,
        *,
        merge: bool = True,
        defer_cost: float | None = None,
    ) -> None:
        order = np.flatnonzero(mass > 0) if merge else np.arange(mass.size)  # a risk may know the rows by their places
        if merge:
            order = order[np.argsort(cuts.places[0][order])]  # neighbours in memory, for the first model
        self._cuts, self._groups, self._order = cuts, groups[order], order
        self._n_rows = mass.size
        self._places = [np.ascontiguousarray(places[order]) for places in cuts.places]
        self._is_positive, self._mass = is_positive[order], mass[order] / mass.sum()
        self._defer_cost = defer_cost
        self._added = [self._mass * one for one in edge_losses(self._is_positive, defer_cost)]
        self._merges = merge
        self._seen: set[tuple[int, int]] = set()
        codes = 2 * self._groups + self._is_positive if merge else np.arange(order.size)
        self._cells, self._n_cells = codes.astype(np.int32), int(codes.max()) + 1
        self._measure()

    def see(self, rules: CutRules) -> None:
        """Tell rows apart that the rules do, from now on."""
        if not self._merges:  # every row is a cell of its own
            return
        asked = {
            (model, cut % self._cuts.n_cuts)
            for model, cuts in zip(rules.models.tolist(), rules.cuts, strict=True)
            for cut in cuts.tolist()
        } - self._seen
        for model, cut in sorted(asked):
            starts = self._cuts.starts[model]
            first = int(starts[np.searchsorted(starts, cut, side="right") - 1])
            other = np.full(self._n_cells + 1, -1, dtype=np.int32)
            other[-1] = self._n_cells
            _kernels.split(self._cells, self._places[model], first, cut, other)
            self._n_cells = int(other[-1])
        if asked:
            self._seen |= asked
            self._measure()

    def _measure(self) -> None:
        """Count the cells that hold rows anew, and find their masses and a row of each."""
        is_used = np.bincount(self._cells, minlength=self._n_cells) > 0
        if not is_used.all():
            self._cells = (np.cumsum(is_used) - 1).astype(np.int32)[self._cells]
        self._n_cells = int(is_used.sum())
        self.sample_weight = np.bincount(self._cells, self._mass).astype(np.float64, copy=False)
        self._shown = np.empty(self._n_cells, dtype=np.int64)
        self._shown[self._cells] = np.arange(self._cells.size)

    def of(self, rules: CutRules) -> AnyArray:
        """Return where each rule fails, and what it costs where it defers, shape (n_cells, n_rules).

        Cells that the rules tell apart are several from now on, and so have other weights.
        """
        self.see(rules)
        groups, is_positive, cost = self._groups[self._shown], self._is_positive[self._shown], self._defer_cost
        losses = np.empty((self._shown.size, len(rules)), dtype=np.uint8 if cost is None else np.float64)
        for place, (model, cuts) in enumerate(zip(rules.models.tolist(), rules.cuts, strict=True)):
            rows = self._places[model][self._shown]
            is_above = rows <= cuts[groups]
            losses[:, place] = is_above != is_positive
            if cost is not None:
                lowers = cuts[self._cuts.n_groups :] - self._cuts.n_cuts
                losses[~is_above & (rows <= lowers[groups]), place] = cost
        return losses

    def row_weights(self, weights: FloatArray) -> FloatArray:
        """Return the weight of each row, given those of the cells: its share of its cell's."""
        mass, found = self.sample_weight, np.zeros(self._n_rows)
        density = np.divide(weights, mass, out=np.zeros(mass.size), where=mass > 0)
        found[self._order] = density[self._cells] * self._mass
        return found

    def costs(self, weights: FloatArray) -> tuple[float, FloatArray]:
        """Return the mean loss under weights of the cells: of the rule that calls nobody positive, and of each edge."""
        mass, found = self.sample_weight, []
        density = np.divide(weights, mass, out=np.zeros(mass.size), where=mass > 0)
        for added in self._added:
            sums = np.zeros(self._cuts.n_cuts)
            for places in self._places:
                _kernels.gather(places, self._cells, density, added, sums)
            _kernels.cumulate(sums, self._cuts.flat_starts)
            found.append(sums)
        costs = found[0] if len(found) == 1 else np.concatenate(found)
        return float(weights @ self._is_positive[self._shown]), costs


def edge_losses(is_positive: BoolArray, defer_cost: float | None) -> list[FloatArray]:
    """Return what each row adds to the loss where an edge passes it: the upper one, and the lower one if any defer.

    The lower edge passes a row first, which is then deferred and not called negative; the upper one makes it positive.
    """
    if defer_cost is None:
        return [np.where(is_positive, -1.0, 1.0)]
    return [np.where(is_positive, -defer_cost, 1.0 - defer_cost), np.where(is_positive, defer_cost - 1.0, defer_cost)]


class Budget(NamedTuple):
    """The mean loss of a rule, and the most that it may be."""

    loss: Sums  # one function
    most: float


class RuleLimits(NamedTuple):
    """What must hold: goals, known for the rules that call one group positive up to a cut, and a budget."""

    cuts: Cuts
    goals: GoalRows | None
    budget: Budget | None = None

    @property
    def bounds(self) -> FloatArray:
        """Return the bounds of the goals, then that of the budget."""
        goals = np.empty(0) if self.goals is None else self.goals.bounds
        return goals if self.budget is None else np.append(goals, self.budget.most)

    def as_limits(self, rules: CutRules) -> dict[str, Any]:
        """Return ``rows @ mixture <= bounds`` on some rules, as arguments of a solver."""
        limits = {} if self.goals is None else goals_on(rules, self.goals, self.cuts).as_limits()
        if self.budget is None:
            return limits
        row = self.budget.loss.of(rules)
        scale = constraint_scale(np.abs(row).max(axis=1), np.array([self.budget.most]))
        if limits:
            row, scale = np.vstack([limits["rows"], row]), np.append(limits["row_scale"], scale)
        return {"rows": row, "bounds": self.bounds, "row_scale": scale}

    def costs(self, multipliers: FloatArray) -> tuple[float, FloatArray]:
        """Return the weighted sum of the rows: for the rule that calls nobody positive, and what each cut adds."""
        base, costs = 0.0, np.zeros(self.cuts.n_cuts * (1 + self.cuts.defers))
        if self.goals is not None:
            for place in np.flatnonzero(multipliers[: len(self.goals.bounds)]).tolist():  # few: most goals cost nothing
                costs += multipliers[place] * self.goals.rows[place]
            base = float(costs[self.cuts.starts[0, 0]])
            costs -= base
        if self.budget is not None:
            constant, added = self.budget.loss.costs(multipliers[-1:])
            base, costs = base + constant, costs + added
        return base, costs

    def only(self, places: list[int]) -> Self:
        """Return the limits with some of the goals."""
        assert self.goals is not None  # noqa: S101 - there are goals to take some of
        return self._replace(goals=self.goals.some(places))


def goals_on(rules: CutRules, goals: GoalRows, cuts: Cuts) -> GoalRows:
    """Return goals as rows on some rules, given what they are for every cut."""
    found = []
    for matrix in (goals.rows, goals.row_slopes):
        nobody = matrix[:, cuts.starts[0, 0]][:, None]
        found.append(nobody + sum(matrix[:, own] - nobody for own in rules.cuts.T))
    return goals._replace(rows=found[0], row_slopes=found[1])


class NoMixture(Exception):  # noqa: N818 - named for what was found
    """No mixture of any rules keeps the limits: what proves it, and the pool."""

    def __init__(self, error: InfeasibleRows, rules: CutRules) -> None:
        self.error, self.rules = error, rules
        super().__init__(str(error))


class RuleProgram(NamedTuple):
    """``min over mixtures of all rules of shift + risk(losses @ mixture)`` within limits."""

    cuts: Cuts
    losses: Sums | CellLosses
    risk: Risk
    limits: RuleLimits | None = None
    shift: float = 0.0  # which values and lower bounds of a solution do not hold

    def solve(self, start: CutRules, tol: float = TOL, *, explains: bool = False) -> tuple[CutRules, MixtureSolution]:
        """Return the rules that were needed and the best mixture of them, or raise ``NoMixture``.

        The lower bound of the solution is over all rules. The gap between it and the value is at most ``tol`` units of
        the losses. ``start`` are rules to begin with. With ``explains`` an ``InfeasibleGoals`` is raised in the place
        of ``NoMixture``: it takes a while to find which goals conflict.
        """
        fraction, unit = self.risk.tail_fraction, self.losses.unit
        tol *= unit
        rules, lower, inner = start, -np.inf, _COARSE * unit
        for _ in range(_MAX_ROUNDS):
            # The best mixture of the pool, not from the last one, whose weights would hedge less.
            losses = self.losses.of(rules)
            given: dict[str, Any] = {"sample_weight": self.losses.sample_weight, "tol": inner}
            given |= {} if self.limits is None else self.limits.as_limits(rules)
            try:
                if fraction is None:
                    found = minimize_risk(losses, self.risk, **given)
                else:
                    # The bundle method stops at weights that hedge, and those of a corner, as HiGHS finds them,
                    # mislead: they lead to half as many rounds again.
                    is_rough = inner >= _ROUGH * unit and fraction < 1
                    found = minimize_cvar(losses, fraction, method="bundle" if is_rough else "auto", **given)
            except InfeasibleRows as error:
                costs, cheapest = self.priced(None, error.multipliers)
                rounding = FEASIBLE * float(error.multipliers @ given["row_scale"])
                more = rules.joined(cheapest.only(costs <= rounding))
                if len(more) == len(rules):  # the proof that the pool cannot keep the limits holds for all rules
                    none = NoMixture(error, rules)
                    raise (explain_conflict(self.limits, none) if explains else none) from error
                rules = more
                continue
            costs, cheapest = self.priced(found.weights, found.multipliers)
            lower = max(lower, found.offset + float(costs.min()))
            more = rules.joined(cheapest.only(found.offset + costs < found.value))
            if found.value - lower <= tol or (len(more) == len(rules) and inner <= _INNER * tol):
                break
            wanted = _PART * (found.value - lower) if len(more) > len(rules) else _FINER * inner
            rules, inner = more, max(min(inner, wanted), _INNER * tol)
        return rules, found._replace(lower=lower)

    def priced(self, weights: FloatArray | None, multipliers: FloatArray) -> tuple[FloatArray, CutRules]:
        """Return for each model the least cost of its rules, and the cheapest of them.

        The cost of a rule is ``weights @ losses + multipliers @ (rows - bounds)``.
        """
        base, costs = (0.0, np.zeros(1)) if weights is None else self.losses.costs(weights)
        if self.limits is not None:
            constant, added = self.limits.costs(multipliers)
            base, costs = base + constant - float(multipliers @ self.limits.bounds), costs + added
        least, cheapest = cheapest_rules(self.cuts, costs)
        return base + least, cheapest


def cheapest_rules(cuts: Cuts, costs: FloatArray) -> tuple[FloatArray, CutRules]:
    """Return for each model the least sum of one cut's cost for each group, and the rule of those cuts.

    Where rules may defer it is of two cuts, the lower edge no earlier than the upper one: one pass finds the best pair.
    """
    if cuts.defers:
        uppers, lowers = np.empty((2, cuts.n_models * cuts.n_groups), dtype=np.int64)
        _kernels.cheapest_pairs(costs, cuts.flat_starts, uppers, lowers)
        best = np.hstack([one.reshape(cuts.n_models, -1) for one in (uppers, lowers + cuts.n_cuts)])
        return costs[best].sum(axis=1), CutRules(np.arange(cuts.n_models), best)
    best = np.array(
        [[start + int(costs[start:end].argmin()) for start, end in pairwise(starts.tolist())] for starts in cuts.starts]
    )
    return costs[best].sum(axis=1), CutRules(np.arange(cuts.n_models), best)


class TotalViolation(Risk):
    """The sum of what linear functions have above their bounds."""

    def __init__(self, bounds: FloatArray) -> None:
        self.bounds = bounds

    def value(self, losses: ArrayLike, sample_weight: ArrayLike | None = None) -> float:  # noqa: ARG002 - one for each
        """Return the sum."""
        return float(np.maximum(check_losses(losses, ndim=1) - self.bounds, 0.0).sum())

    def subgradient(self, losses: ArrayLike, sample_weight: ArrayLike | None = None) -> FloatArray:  # noqa: ARG002
        """Return 1 for each function that is above its bound."""
        return (check_losses(losses, ndim=1) > self.bounds).astype(np.float64)


def explain_conflict(limits: RuleLimits | None, found: NoMixture) -> InfeasibleGoals:
    """Return which goals conflict for every mixture of all rules, given that some do.

    What is said about the conflict is found on a pool of rules: first those are added that keep goals of it together,
    until none can, then those that violate them least, and those that come nearest to each bound with all others kept,
    until no rule at all comes nearer.
    """
    assert limits is not None  # noqa: S101 - some cannot be kept
    goals, cuts, rules = limits.goals, limits.cuts, found.rules
    assert goals is not None  # noqa: S101 - a budget alone can be kept
    while True:
        places = _conflict(goals, cuts, found, rules)
        more = _rules_of(RuleProgram(cuts, _nothing(cuts), Mean(), limits.only(places)), rules)
        if len(more) == len(rules):
            break
        rules = more
    edges = _least_violating(limits, np.flatnonzero(np.isin(goals.places, places)), rules)
    is_proven, is_enough = True, False
    for place in places:
        edges, nearest, is_nearest = nearest_of_all(limits, place, edges)
        is_proven, is_enough = is_proven and is_nearest, is_enough or nearest is not None
    if not is_enough:  # bounds are then offered for several goals together, any of them
        sizes = goals.goal_sizes
        edges = _least_violating(limits, np.arange(sizes.size), edges, sizes)
    if len(edges) > len(rules) and _conflict(goals, cuts, found, edges) != places:
        return explain_conflict(limits, NoMixture(found.error, edges))
    said = goals_on(edges, goals, cuts).infeasible(found.error)
    parts = said.conflict, said.least_violation, said.nearest_bounds, said.proven, said.joint_bounds, said.held_by
    return InfeasibleGoals(*parts, said.nearest_proven and is_proven)


def _conflict(goals: GoalRows, cuts: Cuts, found: NoMixture, rules: CutRules) -> list[int]:
    """Return the places of goals that conflict on a pool of rules."""
    pooled = goals_on(rules, goals, cuts)
    conflict = pooled.constraints({}).conflict()
    return pooled.conflicting(found.error) if conflict is None else conflict[0]


def _nothing(cuts: Cuts) -> Sums:
    """Return losses of which no rule has any: whether limits can be kept is all that is asked."""
    return Sums(np.zeros(1), np.zeros((1, cuts.n_cuts * (1 + cuts.defers))))


def _least_violating(limits: RuleLimits, rows: IntArray, rules: CutRules, sizes: FloatArray | float = 1.0) -> CutRules:
    """Return the rules with those that the least total violation of some rows needs, each in parts of a size."""
    goals = limits.goals
    assert goals is not None  # noqa: S101 - some conflict
    parts, bounds = goals.rows[rows] / np.reshape(sizes, (-1, 1)), goals.bounds[rows] / sizes
    losses, others = reaching(parts, limits.cuts), limits.only([])
    return _rules_of(RuleProgram(limits.cuts, losses, TotalViolation(bounds), others), rules)


class Nearest(NamedTuple):
    """The nearest bound of a goal over all rules, with all other goals kept."""

    rules: CutRules  # a pool of which a mixture meets it
    bound: float | None  # None where there is none
    is_proven: bool  # that no mixture of any rules meets one that is tighter by ``NEAREST``


def nearest_of_all(limits: RuleLimits, place: int, rules: CutRules) -> Nearest:
    """Return the nearest bound that mixtures of all rules can meet, beginning with a pool of some.

    A ratio is one linear function for each bound: from the nearest bound of the pool to the rules that are best there
    (Dinkelbach 1967), until a bound a little tighter is proven to be out of reach of every rule.
    """
    goals, cuts, at = limits.goals, limits.cuts, limits
    assert goals is not None  # noqa: S101 - one of them is meant
    for _ in range(_MAX_PASSES):
        program = excess_of(at, place)
        rules = _rules_of(program, rules)
        nearest = nearest_bound(goals_on(rules, goals, cuts), place, {})
        if nearest is None and goals.goals[place].is_ratio:  # of rules without a denominator, or none keep the others
            divisors = np.array([-goals.divisor(row) for row in goals.rows_of(place).tolist()])
            rules = _rules_of(program._replace(losses=reaching(divisors, cuts), risk=Mean()), rules)
            nearest = nearest_bound(goals_on(rules, goals, cuts), place, {})
        if nearest is None:
            return Nearest(rules, None, is_proven=True)
        at = limits._replace(goals=goals.with_bound(place, nearest))
        tighter = limits._replace(goals=goals.with_bound(place, tightened(goals.goals[place], nearest)))
        try:
            rules = RuleProgram(cuts, _nothing(cuts), Mean(), tighter).solve(rules)[0]
        except NoMixture as error:
            return Nearest(error.rules, nearest, is_proven=True)
    return Nearest(rules, nearest, is_proven=False)


def excess_of(limits: RuleLimits, place: int) -> RuleProgram:
    """Return the program of the least that a goal can be missed by, in its worst row, with all other goals kept."""
    goals = limits.goals
    assert goals is not None  # noqa: S101 - one of them is meant
    own, others = goals.rows_of(place), [other for other in range(len(goals.goals)) if other != place]
    losses = reaching(goals.rows[own] - goals.bounds[own, None], limits.cuts)
    return RuleProgram(limits.cuts, losses, CVaR(1 / own.size), limits.only(others))


def _rules_of(program: RuleProgram, rules: CutRules) -> CutRules:
    """Return the rules with those that the least risk needs; where none keep the limits, with those that prove it."""
    try:
        return program.solve(rules, _EXACT)[0]
    except NoMixture as error:
        return error.rules


EXACT = 1e-7  # gap of the least mean loss from which a budget is counted: of errors, which count 1


class RuleSolution(NamedTuple):
    """Rules and their shares, with what proves them."""

    rules: CutRules
    mixture: FloatArray
    value: float
    lower: float  # no mixture of any rules of any model has less
    multipliers: FloatArray  # of the goals
    cost: float = 0.0  # of one rule in the place of the best mixture
    risk: Risk | None = None  # bound to the rows, where it is no CVaR, worst group or rate
    is_usual: bool = False  # whether it is a model at its usual threshold, kept as such


def choose_rules(ranked: RankedScores, problem: Problem, tol: float = TOL) -> RuleSolution:
    """Return the best mixture of all rules, or raise ``InfeasibleGoals``."""
    limits, start = limits_of(ranked, problem)
    program = build_program(ranked, problem, limits)
    return solution_of(program, *program.solve(start, tol, explains=True))


def limits_of(ranked: RankedScores, problem: Problem) -> tuple[RuleLimits, CutRules]:
    """Return the goals for every cut and rules to begin with.

    Where there is a budget it is above the least mean loss under the goals, and the rules keep it.
    """
    limits, start = RuleLimits(ranked.cuts, goal_rows(ranked.answers(), problem.goals)), ranked.usual_rules()
    if problem.budget is None:
        return limits, start
    loss = mean_loss(ranked)
    start, least = RuleProgram(ranked.cuts, loss, Mean(), limits).solve(start, EXACT, explains=True)
    return limits._replace(budget=Budget(loss, least.value + problem.budget)), start


def build_program(ranked: RankedScores, problem: Problem, limits: RuleLimits | None = None) -> RuleProgram:
    """Return the program of a problem's objective within limits."""
    objective, cuts, mass = problem.objective, ranked.cuts, ranked.mass
    if isinstance(objective, Rate):
        rate = linear_rate(ranked.answers(), objective)
        return RuleProgram(cuts, reaching(rate.row[None], cuts), Mean(), limits, rate.constant)
    if not isinstance(objective, WorstGroup) and objective.tail_fraction == 1.0:
        return RuleProgram(cuts, mean_loss(ranked), Mean(), limits)
    table, groups = ranked.table.answers.tables[TRAIN], ranked.table.groups
    if isinstance(objective, WorstGroup):
        codes = groups_by(objective.names, table, groups)
        parts = [np.flatnonzero(codes == group) for group in np.unique(codes[mass > 0]).tolist()]
        sums = mean_loss(ranked, [(rows, mass[rows] / mass[rows].sum()) for rows in parts])
        return RuleProgram(cuts, sums, CVaR(1 / len(parts)), limits)
    # What is chosen has one dimension for each threshold.
    n_samples, n_levels = 1.0 / float((mass**2).sum()), cuts.n_models * cuts.n_groups * (1 + cuts.defers)
    risk = objective.bind(RiskRows(n_samples, n_levels + 1, lambda names: groups_by(names, table, groups)))
    is_same, cost = risk.is_law_invariant, ranked.defer_cost
    losses = CellLosses(cuts, ranked.codes[TRAIN], ranked.is_positive, mass, merge=is_same, defer_cost=cost)
    return RuleProgram(cuts, losses, risk, limits)


def mean_loss(ranked: RankedScores, parts: Iterable[tuple[IntArray | slice, FloatArray]] | None = None) -> Sums:
    """Return the mean loss of every rule, or that on each of some parts of the labelled rows, with their shares."""
    constants, added = [], []
    for rows, share in [(slice(ranked.mass.size), ranked.mass)] if parts is None else parts:
        is_positive = ranked.is_positive[rows]
        edges = edge_losses(is_positive, ranked.defer_cost)
        constants.append(float(share[is_positive].sum()))
        added.append(np.concatenate([ranked.cuts.sums(rows, share * edge) for edge in edges]))
    return Sums(np.array(constants), np.array(added))


def solution_of(program: RuleProgram, rules: CutRules, found: MixtureSolution) -> RuleSolution:
    """Return rules that fall together in all groups and their shares, given the solution of a program."""
    rules, mixture = coupled(rules, cleaned(found.mixture))
    goals = None if program.limits is None else program.limits.goals
    prices = np.zeros(0) if goals is None else goals.prices(found.multipliers[: len(goals.bounds)])
    is_bound = isinstance(program.losses, CellLosses) and program.risk.tail_fraction is None
    values = program.shift + found.value, program.shift + found.lower
    return RuleSolution(rules, mixture, *values, prices, risk=program.risk if is_bound else None)


class RulePath:
    """The best mixture of rules for each of many bounds of the first goal: each from the rules of the ones before.

    A budget is counted anew for each bound.
    """

    def __init__(self, ranked: RankedScores, problem: Problem, goals: tuple[Goal, ...], tol: float) -> None:
        self.goals, self.tol, self.budget = goals, tol, problem.budget
        rows = goal_rows(ranked.answers(), goals)
        assert isinstance(rows, GoalRows)  # noqa: S101 - there is a goal
        self.rows, self.program, self.mean = rows, build_program(ranked, problem), mean_loss(ranked)
        self.rules = ranked.usual_rules()

    def default_bounds(self, n_points: int) -> FloatArray:
        """Return bounds from the tightest possible to where the goal costs nothing."""
        check_range(self.rows)
        tightest = excess_of(RuleLimits(self.program.cuts, self.rows), 0)
        self.rules, found = tightest.solve(self.rules, self.tol, explains=True)
        assert tightest.limits is not None  # noqa: S101 - those of the other goals
        free = [float((tightest.losses.of(rules) @ one.mixture).max()) for rules, one in self._optima(tightest.limits)]
        return np.linspace(own_bound(self.rows, found.value), own_bound(self.rows, max(found.value, *free)), n_points)

    def solve(self, levels: FloatArray) -> tuple[list[MixtureSolution | None], CutRules]:
        """Return the best mixture for each bound, None where there is none, over the rules that all of them need."""
        found: dict[int, MixtureSolution] = {}
        for place in np.argsort(levels, kind="stable").tolist():
            level = float(levels[place])
            if not self.rows.can_show(0, level):
                continue
            try:
                found[place] = self._optima(RuleLimits(self.program.cuts, self.rows.with_bound(0, level)))[-1][1]
            except NoMixture as error:
                self.rules = error.rules
        for place, one in found.items():
            more = np.zeros(len(self.rules) - one.mixture.size)
            found[place] = one._replace(mixture=np.append(one.mixture, more))
        return [found.get(place) for place in range(levels.size)], self.rules

    def _optima(self, limits: RuleLimits) -> list[tuple[CutRules, MixtureSolution]]:
        """Return the least mean loss within limits, where a budget is counted from it, and then the least risk.

        The rules that were needed are kept for what comes next.
        """
        found = []
        if self.budget is not None:
            found.append(RuleProgram(self.program.cuts, self.mean, Mean(), limits).solve(self.rules, EXACT))
            self.rules, least = found[0]
            limits = limits._replace(budget=Budget(self.mean, least.value + self.budget))
        found.append(self.program._replace(limits=limits).solve(self.rules, self.tol))
        self.rules = found[-1][0]
        return found
