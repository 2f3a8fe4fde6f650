"""Linear functions of rules of scores: losses, goals and a budget, for every rule and priced for every cut.

Everything that is linear in a rule's decisions is a sum of one number for each of its cuts. So the dual of a program
prices each cut by itself, and the cheapest rule of a model is its cheapest cut in each group.
"""

from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np

from counterpoise._base.types import AnyArray, BoolArray, FloatArray, IntArray
from counterpoise.rules.goal_rows import GoalConstraints
from counterpoise.rules.scores.cuts import CutRules, Cuts, running_sums
from counterpoise.solvers.linear_program import constraint_scale


class Sums(NamedTuple):
    """Linear functions of a rule's decisions, such as mean losses: a constant, and what each cut adds."""

    constants: FloatArray  # (n_functions,): of the rule that decides positive for no row
    added: FloatArray  # (n_functions, n_edges)
    unit: float = 1.0  # of gaps: 1 for losses of errors, another number for other amounts
    sample_weight: None = None  # all functions weigh the same

    def of(self, rules: CutRules) -> FloatArray:
        """Return the functions of each rule, shape (n_functions, n_rules)."""
        return np.asarray(self.constants[:, None] + self.added[:, rules.cuts].sum(axis=2))

    def costs(self, weights: FloatArray) -> tuple[float, FloatArray]:
        """Return the weighted sum of the functions: its constant, and what each cut adds."""
        return float(weights @ self.constants), weights @ self.added


def as_sums(matrix: FloatArray, cuts: Cuts) -> Sums:
    """Return linear functions, given their values for the rules that decide positive up to one cut of one group."""
    constants = matrix[:, cuts.starts[0, 0]].copy()
    return Sums(constants, matrix - constants[:, None])


def scaled_sums(matrix: FloatArray, cuts: Cuts) -> Sums:
    """Return linear functions, given as for ``as_sums``, whose unit is the widest range of their values."""
    sums, starts = as_sums(matrix, cuts), cuts.flat_starts[:-1]
    edges = sums.added.reshape(len(sums.added), -1, cuts.n_cuts)  # the upper ones, and the lower ones where rules defer
    widths = np.maximum.reduceat(edges, starts, axis=2) - np.minimum.reduceat(edges, starts, axis=2)
    by_model = widths.reshape(*widths.shape[:2], cuts.n_models, cuts.n_groups).sum(axis=(1, 3))
    return sums._replace(unit=float(by_model.max()) or 1.0)


class CellLosses:
    """Losses of the rows, merged into cells that no rule so far separates: a cell counts as one row with its mass."""

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
        order = np.flatnonzero(mass > 0) if merge else np.arange(mass.size)  # a risk may refer to rows by their places
        if merge:
            order = order[np.argsort(cuts.places[0][order])]  # neighbours in memory, for the first model
        self._cuts, self._groups = cuts, groups[order]
        self._places = [np.ascontiguousarray(places[order]) for places in cuts.places]
        self._is_positive, self._mass = is_positive[order], mass[order] / mass.sum()
        self._defer_cost = defer_cost
        self._added = [self._mass * one for one in edge_losses(self._is_positive, defer_cost)]
        self._merges = merge
        self._used_cuts: set[tuple[int, int]] = set()
        codes = 2 * self._groups + self._is_positive if merge else np.arange(order.size)
        self._cells, self._n_cells = codes.astype(np.int32), int(codes.max()) + 1
        self._measure()

    def split_cells(self, rules: CutRules) -> None:
        """Split the cells whose rows the rules separate."""
        if not self._merges:  # every row is a cell of its own
            return
        new_cuts = {
            (model, cut % self._cuts.n_cuts)
            for model, cuts in zip(rules.models.tolist(), rules.cuts, strict=True)
            for cut in cuts.tolist()
        } - self._used_cuts
        for model, cut in sorted(new_cuts):
            starts = self._cuts.starts[model]
            first = int(starts[np.searchsorted(starts, cut, side="right") - 1])
            places = self._places[model]
            is_moved = (places > first) & (places <= cut)
            cells = self._cells[is_moved]
            is_split = np.bincount(cells, minlength=self._n_cells) > 0
            others = np.cumsum(is_split) + self._n_cells - 1  # the cell that each of those split gives rows to
            self._cells[is_moved] = others[cells]
            self._n_cells += int(is_split.sum())
        if new_cuts:
            self._used_cuts |= new_cuts
            self._measure()

    def _measure(self) -> None:
        """Count the cells that hold rows anew, and find their masses and a row of each."""
        is_used = np.bincount(self._cells, minlength=self._n_cells) > 0
        if not is_used.all():
            self._cells = (np.cumsum(is_used) - 1).astype(np.int32)[self._cells]
        self._n_cells = int(is_used.sum())
        self.sample_weight = np.bincount(self._cells, self._mass).astype(np.float64, copy=False)
        self._examples = np.empty(self._n_cells, dtype=np.int64)
        self._examples[self._cells] = np.arange(self._cells.size)

    def of(self, rules: CutRules) -> AnyArray:
        """Return the loss of each rule on each cell, shape (n_cells, n_rules): an error counts 1, deferral its cost.

        Cells that the rules separate are split, and so have other weights afterwards.
        """
        self.split_cells(rules)
        groups, is_positive, cost = self._groups[self._examples], self._is_positive[self._examples], self._defer_cost
        losses = np.empty((self._examples.size, len(rules)), dtype=np.uint8 if cost is None else np.float64)
        for place, (model, cuts) in enumerate(zip(rules.models.tolist(), rules.cuts, strict=True)):
            rows = self._places[model][self._examples]
            is_above = rows <= cuts[groups]
            losses[:, place] = is_above != is_positive
            if cost is not None:
                lowers = cuts[self._cuts.n_groups :] - self._cuts.n_cuts
                losses[~is_above & (rows <= lowers[groups]), place] = cost
        return losses

    def costs(self, weights: FloatArray) -> tuple[float, FloatArray]:
        """Return the mean loss under weights of the cells: the constant, and what each edge adds."""
        mass, parts, starts = self.sample_weight, [], self._cuts.starts
        density = np.divide(weights, mass, out=np.zeros(mass.size), where=mass > 0)
        for added in self._added:
            amounts = density[self._cells] * added
            sums = [
                np.bincount(places - start, amounts, end - start)
                for places, start, end in zip(self._places, starts[:, 0], starts[:, -1], strict=True)
            ]
            parts.append(running_sums(np.concatenate(sums), self._cuts.flat_starts))
        costs = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return float(weights @ self._is_positive[self._examples]), costs


def edge_losses(is_positive: BoolArray, defer_cost: float | None) -> list[FloatArray]:
    """Return what each row adds to the loss where an edge passes it: the upper one, and the lower one if any defer.

    The lower edge passes a row first, which is then deferred instead of negative; the upper edge makes it positive.
    """
    if defer_cost is None:
        return [np.where(is_positive, -1.0, 1.0)]
    return [np.where(is_positive, -defer_cost, 1.0 - defer_cost), np.where(is_positive, defer_cost - 1.0, defer_cost)]


class Budget(NamedTuple):
    """The mean loss of a rule, or that on each of some groups, and the most that it may be."""

    loss: Sums
    most: FloatArray  # of each function


class RuleLimits(NamedTuple):
    """Goals, given for the rules that decide positive up to one cut of one group, and a budget."""

    cuts: Cuts
    goals: GoalConstraints | None
    budget: Budget | None = None

    @property
    def bounds(self) -> FloatArray:
        """Return the bounds of the goals, then those of the budget."""
        goals = np.empty(0) if self.goals is None else self.goals.bounds
        return goals if self.budget is None else np.append(goals, self.budget.most)

    def as_limits(self, rules: CutRules) -> dict[str, Any]:
        """Return ``rows @ mixture <= bounds`` on some rules, as arguments of a solver."""
        limits = {} if self.goals is None else goals_on(rules, self.goals, self.cuts).as_limits()
        if self.budget is None:
            return limits
        row = self.budget.loss.of(rules)
        scale = constraint_scale(np.abs(row).max(axis=1), self.budget.most)
        if limits:
            row, scale = np.vstack([limits["rows"], row]), np.append(limits["row_scale"], scale)
        return {"rows": row, "bounds": self.bounds, "row_scale": scale}

    def costs(self, multipliers: FloatArray) -> tuple[float, FloatArray]:
        """Return the weighted sum of the rows: its constant, and what each cut adds."""
        base, costs = 0.0, np.zeros(self.cuts.n_cuts * (1 + self.cuts.defers))
        if self.goals is not None:
            for place in np.flatnonzero(multipliers[: len(self.goals.bounds)]).tolist():  # few: most goals cost nothing
                costs += multipliers[place] * self.goals.rows[place]
            base = float(costs[self.cuts.starts[0, 0]])
            costs -= base
        if self.budget is not None:
            constant, added = self.budget.loss.costs(multipliers[-self.budget.most.size :])
            base, costs = base + constant, costs + added
        return base, costs

    def only(self, places: list[int]) -> Self:
        """Return the limits with some of the goals."""
        assert self.goals is not None  # noqa: S101 - there are goals to take some of
        return self._replace(goals=self.goals.some(places))


def goals_on(rules: CutRules, goals: GoalConstraints, cuts: Cuts) -> GoalConstraints:
    """Return goals as rows on some rules, given their rows for every cut."""
    rows, slopes = (_on_rules(matrix, rules, cuts) for matrix in (goals.rows, goals.row_slopes))
    return goals._replace(rows=rows, row_slopes=slopes)


def _on_rules(matrix: FloatArray, rules: CutRules, cuts: Cuts) -> FloatArray:
    none_positive = matrix[:, cuts.starts[0, 0]][:, None]
    return np.asarray(none_positive + sum(matrix[:, own] - none_positive for own in rules.cuts.T))


def cheapest_rules(cuts: Cuts, costs: FloatArray) -> tuple[FloatArray, CutRules]:
    """Return for each model the least sum of one cut's cost for each group, and the rule of those cuts.

    Where rules may defer it is of two cuts, the lower edge no earlier than the upper one: one pass finds the best pair.
    """
    if cuts.defers:
        pairs = [
            cheapest_pair(costs[start:end], costs[cuts.n_cuts + start : cuts.n_cuts + end])
            for start, end in pairwise(cuts.flat_starts.tolist())
        ]
        edges = np.array(pairs) + cuts.flat_starts[:-1, None] + [0, cuts.n_cuts]
        best = np.hstack([edge.reshape(cuts.n_models, -1) for edge in edges.T])
        return costs[best].sum(axis=1), CutRules(np.arange(cuts.n_models), best)
    best = np.array(
        [[start + int(costs[start:end].argmin()) for start, end in pairwise(starts.tolist())] for starts in cuts.starts]
    )
    return costs[best].sum(axis=1), CutRules(np.arange(cuts.n_models), best)


def cheapest_pair(upper_costs: FloatArray, lower_costs: FloatArray) -> tuple[int, int]:
    """Return two cuts of a group, the second no earlier, whose costs as upper and as lower edge have the least sum.

    Of equal sums the pair of cuts that are nearer to each other is taken, so that no row is deferred without a gain.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.rules.scores.sums import cheapest_pair
    >>> cheapest_pair(np.array([0.0, -1.0, -1.0, 3.0]), np.array([1.0, 2.0, 2.0, 0.0]))
    (2, 3)
    """
    least = np.minimum.accumulate(upper_costs)
    lower = int(np.argmin(least + lower_costs))
    return int(np.flatnonzero(upper_costs[: lower + 1] == least[lower])[-1]), lower
