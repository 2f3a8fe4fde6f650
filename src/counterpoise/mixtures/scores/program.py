"""The best mixture of all rules of some scores: column generation, with a proof over every threshold of every model.

A pool of rules is mixed by the solver of any mixture. Its dual, weights of the rows and multipliers of the limits,
says what calling a row positive would cost; summed up over the sorted rows that prices every cut of every group, and
the best rule of each model is its cheapest cut in each group, or its cheapest pair of cuts where rows between them may
be deferred. The sum of those costs is a lower bound over *all* mixtures of all rules: where it meets the value of the
pool's best mixture, no threshold is missing. Where the pool cannot meet the limits, the multipliers that prove it are
priced instead, and either lead to a rule that helps or prove it for all rules.
"""

from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from counterpoise._base.types import AnyArray, BoolArray, FloatArray, IntArray
from counterpoise.mixtures.scores import _kernels
from counterpoise.mixtures.scores.cuts import Cuts
from counterpoise.mixtures.scores.rules import CutRules
from counterpoise.solvers import minimize_cvar, minimize_risk
from counterpoise.solvers.linear_program import FEASIBLE, InfeasibleRows, MixtureSolution
from counterpoise.theory.risks import Risk

TOL = 1e-4  # the gap that is good enough; all gaps here are in parts of the losses' unit
_MAX_ROUNDS = 1000
_ROUGH = 1e-5  # gap of the pool's own problem above which the bundle method solves it in a few steps
_COARSE = 0.05  # gap of the pool's own problem in the first round, where it is not solved exactly ...
_PART = 0.05  # ... then this part of the last gap over all rules ...
_INNER = 0.25  # ... down to this part of the gap that is wanted
_FINER = 0.1  # times the gap where the cheapest rules are in the pool already


class Sums(NamedTuple):
    """Linear functions of a rule's answers: a constant, and what each cut adds."""

    constants: FloatArray  # (n_functions,): of the rule that calls nobody positive
    added: FloatArray  # (n_functions, n_edges)

    def of(self, rules: CutRules) -> FloatArray:
        """Return the functions of each rule, shape (n_functions, n_rules)."""
        return np.asarray(self.constants[:, None] + self.added[:, rules.cuts].sum(axis=2))

    def costs(self, weights: FloatArray) -> tuple[float, FloatArray]:
        """Return the weighted sum of the functions: its constant, and what each cut adds."""
        return float(weights @ self.constants), weights @ self.added

    def over(self, units: FloatArray | float) -> "Sums":
        """Return the functions in parts of units, one for each or one for all."""
        return Sums(self.constants / units, self.added / np.reshape(units, (-1, 1)))


def as_sums(matrix: FloatArray, cuts: Cuts) -> Sums:
    """Return linear functions whose values are known for the rules that call one group positive, up to some cut."""
    constants = matrix[:, cuts.starts[0, 0]].copy()
    return Sums(constants, matrix - constants[:, None])


class Losses(Protocol):
    """What a risk is taken of: the losses of rules, as rows that may be sums of many."""

    @property
    def sample_weight(self) -> FloatArray | None:
        """Return the weights of the rows; None where all weigh the same."""

    @property
    def unit(self) -> float:
        """Return what gaps are parts of: 1 for losses of errors, more or less for amounts of any other unit."""

    def see(self, rules: CutRules) -> None:
        """Get ready for the losses of rules."""

    def of(self, rules: CutRules) -> AnyArray:
        """Return the losses of rules that were seen, a column for each."""

    def costs(self, weights: FloatArray) -> tuple[float, FloatArray]:
        """Return the weighted sum of the rows: of the rule that calls nobody positive, and what each cut adds."""


class FixedLosses:
    """Mean losses: of all rows, or of a few groups of them."""

    sample_weight: FloatArray | None = None

    def __init__(self, sums: Sums, unit: float = 1.0) -> None:
        self.sums, self.unit = sums, unit
        self.of, self.costs = sums.of, sums.costs

    def see(self, rules: CutRules) -> None:
        """Know all rules."""


def reaching(sums: Sums, cuts: Cuts) -> FixedLosses:
    """Return linear functions of any unit as losses, with how far the widest of them reaches as their unit."""
    starts = cuts.flat_starts[:-1]
    edges = sums.added.reshape(len(sums.added), -1, cuts.n_cuts)  # the upper ones, and the lower ones where rules defer
    widths = np.maximum.reduceat(edges, starts, axis=2) - np.minimum.reduceat(edges, starts, axis=2)
    by_model = widths.reshape(*widths.shape[:2], cuts.n_models, cuts.n_groups).sum(axis=(1, 3))
    return FixedLosses(sums, float(by_model.max()) or 1.0)


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
        """Tell rows apart that the rules do."""
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
        """Return where each rule fails, and what it costs where it defers, shape (n_cells, n_rules)."""
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
            found.append(self._cuts.cumulated(sums))
        costs = found[0] if len(found) == 1 else np.concatenate(found)
        return float(weights @ self._is_positive[self._shown]), costs


def edge_losses(is_positive: BoolArray, defer_cost: float | None) -> list[FloatArray]:
    """Return what each row adds to the loss where an edge passes it: the upper one, and the lower one if any defer.

    The lower edge passes a row first, which is then deferred and not called negative; the upper one makes it positive.
    """
    if defer_cost is None:
        return [np.where(is_positive, -1.0, 1.0)]
    return [np.where(is_positive, -defer_cost, 1.0 - defer_cost), np.where(is_positive, defer_cost - 1.0, defer_cost)]


class Limits(Protocol):
    """What must hold: ``rows @ mixture <= bounds``, for any rules."""

    @property
    def bounds(self) -> FloatArray:
        """Return the right sides."""

    def as_limits(self, rules: CutRules) -> dict[str, Any]:
        """Return rows, bounds and scales as arguments of a solver."""

    def costs(self, multipliers: FloatArray) -> tuple[float, FloatArray]:
        """Return the weighted sum of the rows: of the rule that calls nobody positive, and what each cut adds."""


class Found(NamedTuple):
    """The best mixture over all rules, and the pool that was needed."""

    rules: CutRules
    solution: MixtureSolution  # its lower bound is over all rules
    n_rounds: int


class NoMixture(Exception):  # noqa: N818 - named for what was found
    """No mixture of any rules keeps the limits: what proves it, and the pool."""

    def __init__(self, error: InfeasibleRows, rules: CutRules) -> None:
        self.error, self.rules = error, rules
        super().__init__(str(error))


class RuleProgram(NamedTuple):
    """``min over mixtures of all rules of risk(losses @ mixture)`` within limits."""

    cuts: Cuts
    losses: Losses
    risk: Risk
    limits: Limits | None = None

    def solve(self, start: CutRules, tol: float = TOL) -> Found:
        """Return the best mixture, or raise ``NoMixture``; ``start`` are rules to begin with.

        The gap between its value and the lower bound over all rules is at most ``tol`` units of the losses.
        """
        tol *= self.losses.unit
        rules, lower, inner = start, -np.inf, _COARSE * self.losses.unit
        for n_rounds in range(1, _MAX_ROUNDS + 1):  # noqa: B007 - told at the end
            self.losses.see(rules)
            try:
                found = self._mixed(rules, inner)
            except InfeasibleRows as error:
                rules = self._helping(error, rules)
                continue
            costs, cheapest = self.priced(found.weights, found.multipliers)
            lower = max(lower, found.offset + float(costs.min()))
            more = rules.joined(cheapest.only(found.offset + costs < found.value))
            if found.value - lower <= tol or (len(more) == len(rules) and inner <= _INNER * tol):
                break
            wanted = _PART * (found.value - lower) if len(more) > len(rules) else _FINER * inner
            rules, inner = more, max(min(inner, wanted), _INNER * tol)
        return Found(rules, found._replace(lower=lower), n_rounds)

    def _mixed(self, rules: CutRules, tol: float) -> MixtureSolution:
        """Return the best mixture of some rules: not from the last one, whose weights would hedge less."""
        given: dict[str, Any] = {"sample_weight": self.losses.sample_weight, "tol": tol}
        given |= {} if self.limits is None else self.limits.as_limits(rules)
        losses, fraction = self.losses.of(rules), self.risk.tail_fraction
        if fraction is None:
            return minimize_risk(losses, self.risk, **given)
        is_rough = tol >= _ROUGH * self.losses.unit
        # The bundle method stops at weights that hedge, and those of a corner, as HiGHS finds them, mislead: they lead
        # to half as many rounds again.
        return minimize_cvar(losses, fraction, method="bundle" if is_rough and fraction < 1 else "auto", **given)

    def _helping(self, error: InfeasibleRows, rules: CutRules) -> CutRules:
        """Return the rules with those that a proof of infeasibility leaves out, or raise where it leaves out none."""
        assert self.limits is not None  # noqa: S101 - something is infeasible
        costs, cheapest = self.priced(None, error.multipliers)
        rounding = FEASIBLE * float(error.multipliers @ self.limits.as_limits(rules)["row_scale"])
        more = rules.joined(cheapest.only(costs <= rounding))
        if len(more) == len(rules):
            raise NoMixture(error, rules) from error
        return more

    def priced(self, weights: FloatArray | None, multipliers: FloatArray) -> tuple[FloatArray, CutRules]:
        """Return for each model the least cost of its rules, and the cheapest of them.

        The cost of a rule is ``weights @ losses + multipliers @ (rows - bounds)``.
        """
        base, costs = (0.0, np.zeros(self.cuts.n_edges)) if weights is None else self.losses.costs(weights)
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
