"""A fixed number of positive decisions in a batch: how many of each group, and about which rows.

The goals and the objective of a classifier are solved again on its selection rows, whose groups weigh as much as those
of the batch, with one more limit: the share of the batch that is selected. Of each group a share is selected by score,
highest first, so everything is a curve of that share (``solvers.group_shares``). No margins are kept, as the number of
rows is fixed. The shares of the groups are rounded to whole rows by largest remainders; where those miss a goal, rows
move between groups as long as that helps, and what is still missed is a ``Caution``. Rows of a group whose scores
differ by rounding at most are ordered by a keyed hash of their ids or features.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from counterpoise._base.checks import warn_caller
from counterpoise._base.types import BoolArray, FloatArray, IntArray
from counterpoise.goals import Goal, InfeasibleGoals, Rate
from counterpoise.rules.cautions import MissedGoals
from counterpoise.rules.choosing import Problem
from counterpoise.rules.goal_rows import TRAIN
from counterpoise.rules.program import build_objective
from counterpoise.rules.scores.cuts import CutRules, block_starts, exponent_counts, noise_of
from counterpoise.rules.scores.family import CutFamily
from counterpoise.rules.scores.sums import RuleLimits, Sums, as_sums
from counterpoise.rules.scores.table import RankedScores, RuleGroups, ScoreTable, rank
from counterpoise.solvers.group_shares import GroupShares, ShareCurve, choose_shares, nearest_total, round_shares
from counterpoise.solvers.linear_program import FEASIBLE

_ABSENT = 1e-9  # of the batch: what a group weighs that has no row in it, so that goals on it still have a meaning
_SLIGHT = 1e-6  # of its size: a sum that a group without rows in the batch changes by less does not depend on it
_MOST_GOALS = 8  # of which each is left out in turn, to find fewer that conflict
_ROUNDING = 1e-6  # of a row
_MOST_TRIES = 14  # numbers beyond the nearest total, by doubling steps: at the nearest one all goals leave one choice

TieNumbers = Callable[[IntArray], FloatArray]  # of some rows of the batch: equal for rows that cannot be told apart


class Batch(NamedTuple):
    """The rows to decide about."""

    scores: FloatArray  # of the model that decides
    groups: IntArray  # of each row, as places among the groups of the rules
    tie_numbers: TieNumbers
    identity: str  # what the tie numbers are hashes of, in messages

    def select(self, quotas: IntArray) -> BoolArray:
        """Return which rows are selected: of each group so many, by score, highest first.

        Of scores that are equal but for rounding the least tie numbers are taken.
        """
        is_selected = np.zeros(self.scores.size, dtype=np.bool_)
        for group, quota in enumerate(quotas.tolist()):
            rows = np.flatnonzero(self.groups == group) if quotas.size > 1 else np.arange(self.scores.size)
            if not 0 < quota < rows.size:
                is_selected[rows[:quota]] = True
                continue
            scores = self.scores[rows]
            falling = np.argsort(-scores)
            starts = np.flatnonzero(block_starts(scores[falling], noise_of(exponent_counts(scores))))
            block = int(np.searchsorted(starts, quota, side="right")) - 1  # that of the first row that is left out
            first, last = int(starts[block]), int(np.append(starts, rows.size)[block + 1])
            is_selected[rows[falling[:first]]] = True
            if first < quota:
                tied = np.sort(rows[falling[first:last]])
                is_selected[tied[self._least_numbers(tied, quota - first)]] = True
        return is_selected

    def _least_numbers(self, tied: IntArray, n_taken: int) -> IntArray:
        """Return which of some rows have the least tie numbers."""
        numbers = self.tie_numbers(tied)
        order = np.argsort(numbers, kind="stable")
        if numbers[order[n_taken - 1]] == numbers[order[n_taken]]:
            one, other = sorted(tied[order[n_taken - 1 : n_taken + 1]].tolist())
            raise ValueError(
                f"Rows {one} and {other}, counted from 0, have the same score and the same {self.identity}, and top "
                "selects one of them but not the other: nothing but their order tells them apart. Pass ids that differ "
                "from row to row, or a top that does not fall between them."
            )
        return order[:n_taken]


def select_top(table: ScoreTable, groups: RuleGroups, problem: Problem, batch: Batch, top: int) -> BoolArray:
    """Return which rows of a batch are selected: exactly ``top``, with the quotas of groups that goals ask for.

    Parameters
    ----------
    table : ScoreTable
        The selection rows, with the scores of the model that decides and of no other.
    groups : RuleGroups
    problem : Problem
        The objective and the goals; margins do not count.
    batch : Batch
    top : int from 0 to the number of rows

    Raises
    ------
    InfeasibleGoals
        If no quotas meet the goals.
    """
    is_risk = not isinstance(problem.objective, Rate)
    if is_risk and not problem.goals and problem.objective.tail_fraction == 1.0:  # type: ignore[union-attr]
        return batch.select(np.array([top]))  # as predict, which keeps one threshold for all groups then
    return batch.select(find_quotas(table, groups, problem, batch, top).counts)


class Quotas(NamedTuple):
    """How much of each group is selected."""

    amounts: FloatArray  # at which the objective is the least inside of the goals
    counts: IntArray  # the same in whole rows


def find_quotas(table: ScoreTable, groups: RuleGroups, problem: Problem, batch: Batch, top: int) -> Quotas:
    """Return how many rows of each group are selected, ``top`` in all; arguments and errors as of ``select_top``."""
    n_by_group = np.bincount(batch.groups, minlength=len(groups.names))
    own = table.answers.tables[TRAIN]
    own_groups, weights = groups.codes(own, "The rows of fit"), own.weights()
    mass = np.bincount(own_groups, weights, n_by_group.size)
    sizes = np.maximum(n_by_group, _ABSENT * batch.groups.size)
    weights = weights * np.divide(sizes, mass, out=np.zeros(mass.size), where=mass > 0)[own_groups]
    others = _numbers_of_unknown(batch, mass > 0, top)
    amounts, is_present, total = others.astype(np.float64), (mass > 0) & (n_by_group > 0), top - int(others.sum())
    if not is_present.any():
        return Quotas(amounts, amounts.astype(np.int64))
    reweighed = own.with_parts(sample_weight=weights, counts=None)
    answers = replace(table.answers, tables={**table.answers.tables, TRAIN: reweighed})
    ranked = rank(table._replace(answers=answers), groups)
    is_absent = (mass > 0) & ~is_present
    program = _Program.of(ranked, problem, n_by_group[is_present].astype(np.float64), (is_present, is_absent), total)
    shares = program.choose(total)
    if shares.violation > 0:
        numbers = top, total, batch.groups.size
        raise _no_quotas(program, shares, numbers, lambda one: int(_numbers_of_unknown(batch, mass > 0, one).sum()))
    amounts[is_present] = shares.shares * program.sizes
    counts = amounts.astype(np.int64)
    counts[is_present] = program.round(amounts[is_present])
    missed = program.missed_goals(counts[is_present])
    if missed:
        warn_caller(
            f"The batch is too small for exact quotas: whole rows of its groups miss {' and '.join(map(str, missed))}. "
            "Parts of rows would meet the goals. Pass a larger batch, another top, or merge small groups.",
            MissedGoals,
        )
    return Quotas(amounts, counts)


def _numbers_of_unknown(batch: Batch, is_known: BoolArray, top: int) -> IntArray:
    """Return how many rows are selected of groups that have no selection rows; 0 for all others.

    As many as are among the highest scores of the whole batch: of those that tie at the edge, in proportion.
    """
    if top == 0 or is_known[batch.groups].all():
        return np.zeros(is_known.size, dtype=np.int64)
    level = -np.partition(-batch.scores, top - 1)[top - 1]
    is_above, is_tied = batch.scores > level, batch.scores == level
    above, tied = (np.bincount(batch.groups[one], minlength=is_known.size) for one in (is_above, is_tied))
    taken = above + (top - above.sum()) * tied // tied.sum()
    return np.where(is_known, 0, taken)


class _Limits(NamedTuple):
    """Linear functions of the shares of groups: limits first, then the objective, the largest of the rest."""

    sums: Sums  # each in parts of its size
    bounds: FloatArray
    tolerance: FloatArray  # by which a limit may be missed: rounding

    @classmethod
    def of(cls, limits: RuleLimits, losses: Sums, rules: CutRules) -> "_Limits":
        """Return limits and objectives, given some rules that show how large they are."""
        goals = limits.goals
        limit_sums = [] if goals is None else [as_sums(goals.rows, limits.cuts)]
        limit_sums += [] if limits.budget is None else [limits.budget.loss]
        sizes = np.empty(0) if goals is None else goals.goal_sizes  # of what the goals limit, then of the mean loss
        sizes = sizes if limits.budget is None else np.append(sizes, np.ones(limits.budget.most.size))
        scale = limits.as_limits(rules)["row_scale"] if limit_sums else sizes
        constants = np.concatenate([sums.constants for sums in (*limit_sums, losses)])
        added = np.vstack([sums.added for sums in (*limit_sums, losses)])
        units = np.append(sizes, np.full(len(constants) - sizes.size, losses.unit))
        return cls(Sums(constants / units, added / units[:, None]), limits.bounds / sizes, FEASIBLE * scale / sizes)


class _Program(NamedTuple):
    """Goals and objective as curves of the share of each group that is selected."""

    goals: tuple[Goal, ...]
    owners: IntArray  # the goal that each limit belongs to; a budget, behind all goals, to none
    curves: tuple[ShareCurve, ...]
    sizes: FloatArray  # how many rows of the batch each group has
    space: _Limits

    @classmethod
    def of(
        cls, ranked: RankedScores, problem: Problem, sizes: FloatArray, groups: tuple[BoolArray, BoolArray], total: int
    ) -> "_Program":
        """Return the program of the groups that the batch has rows of, given those and the others.

        Limits on groups without a row there are left out, as this batch cannot miss them.
        """
        family, goals = CutFamily(ranked), tuple(replace(goal, confidence=None) for goal in problem.goals)
        limits, losses = family.limits(goals), build_objective(family, problem.objective).losses

        def program(limits: RuleLimits, losses: Sums) -> "_Program":
            space = _Limits.of(limits, losses, ranked.usual_rules())
            owners = np.empty(0, dtype=np.int64) if limits.goals is None else limits.goals.places
            owners = np.append(owners, np.full(space.bounds.size - owners.size, len(goals)))
            present, absent = (_curves(ranked, space.sums, np.flatnonzero(some)) for some in groups)
            whole = cls(goals, owners, present, sizes, space)
            depends = np.any([np.ptp(curve.values, axis=1) > _SLIGHT for curve in absent], axis=0)
            return whole.without(np.flatnonzero(depends)) if absent else whole

        if problem.budget is not None:
            least = program(limits, family.mean_losses()).choose(total)
            if least.violation == 0:
                limits = family.add_budget(limits, least.value + problem.budget)
        return program(limits, losses if isinstance(losses, Sums) else family.mean_losses())

    def choose(self, total: int) -> GroupShares:
        """Return the best shares of the groups for so many rows in all."""
        return choose_shares(self.curves, self.sizes, total, self.space.bounds, **self._options())

    def round(self, amounts: FloatArray) -> IntArray:
        """Return whole numbers of rows by largest remainders, or those beside them that miss the goals less.

        Where the first miss a goal, a row at a time moves from one group to another as long as that helps.
        """
        counts = round_shares(amounts)
        violation = self.sum_violation(counts)
        while violation > 0:
            counts_after, after = self._best_move(counts, amounts)
            if not after < violation:
                break
            counts, violation = counts_after, after
        return counts

    def _best_move(self, counts: IntArray, amounts: FloatArray) -> tuple[IntArray, float]:
        """Return the numbers of rows after the move of one row that leaves the least violation, and that."""
        steps = np.array([-1, 0, 1])
        at = [
            curve.at((count + steps) / size) for curve, count, size in zip(self.curves, counts, self.sizes, strict=True)
        ]
        sums, n_limits = np.array(at)[:, : self.space.bounds.size], self.space.bounds.size  # (n_groups, n_limits, 3)
        less, more = (sums[:, :, place] - sums[:, :, 1] for place in (0, 2))
        now = self.space.sums.constants[:n_limits] + sums[:, :, 1].sum(axis=0)
        excess = now + less[:, None] + more[None] - self.space.bounds  # (n_groups from, n_groups to, n_limits)
        violations = np.where(excess > self.space.tolerance, excess, 0.0).sum(axis=-1)
        violations[counts < 1] = np.inf
        violations[:, counts >= self.sizes] = np.inf
        np.fill_diagonal(violations, np.inf)
        away = amounts - counts
        ties = np.flatnonzero(violations.ravel() <= violations.min() + _ROUNDING * abs(violations.min()))
        source, target = np.divmod(ties, counts.size)
        nearest = int(np.argmax(away[target] - away[source]))  # of equals that which stays nearest to the amounts
        moved = counts.copy()
        moved[source[nearest]] -= 1
        moved[target[nearest]] += 1
        return moved, self.sum_violation(moved)

    def sum_violation(self, counts: IntArray) -> float:
        """Return by how much quotas miss all limits together."""
        return float(self._violations(counts).sum())

    def missed_goals(self, counts: IntArray) -> list[Goal]:
        """Return the goals that quotas miss."""
        owners = np.unique(self.owners[self._violations(counts) > 0]).tolist()
        return [self.goals[owner] for owner in owners if owner < len(self.goals)]

    def _violations(self, counts: IntArray) -> FloatArray:
        shares = counts / self.sizes
        sums = sum(curve.at(share[None])[:, 0] for curve, share in zip(self.curves, shares, strict=True))
        excess = (self.space.sums.constants + sums)[: self.space.bounds.size] - self.space.bounds
        return np.where(excess > self.space.tolerance, excess, 0.0)

    def nearest(self, total: int) -> int | None:
        """Return the number of rows nearest to another one that meets the goals; None where the search finds none."""
        near = nearest_total(self.curves, self.sizes, total, self.space.bounds, **self._options())
        if near is None:
            return None
        step = 1 if near > total else -1
        first = int(np.ceil(near - _ROUNDING)) if near > total else int(np.floor(near + _ROUNDING))
        tries = [first, *(first + step * (1 << power) for power in range(_MOST_TRIES))]
        tries = [one for one in tries if 0 <= one <= self.sizes.sum()]
        place = next((place for place, one in enumerate(tries) if self.choose(one).violation == 0), None)
        if place is None:
            return None
        meets, misses = tries[place], tries[place - 1] if place > 0 else total
        while abs(meets - misses) > 1:
            middle = (meets + misses) // 2
            meets, misses = (middle, misses) if self.choose(middle).violation == 0 else (meets, middle)
        return meets

    def _options(self) -> dict[str, FloatArray]:
        return {"constants": self.space.sums.constants, "tolerance": self.space.tolerance}

    def only(self, goals: Sequence[Goal]) -> "_Program":
        """Return the program with some of the goals."""
        places = [place for place, goal in enumerate(self.goals) if goal in goals]
        return self.without(np.flatnonzero(~np.isin(self.owners, [*places, len(self.goals)])))

    def without(self, rows: IntArray) -> "_Program":
        """Return the program without some limits, and without some objectives unless those are all."""
        n_limits, n_sums = self.space.bounds.size, len(self.space.sums.constants)
        limits, objectives = (np.setdiff1d(own, rows) for own in np.split(np.arange(n_sums), [n_limits]))
        kept = np.append(limits, objectives if objectives.size else np.arange(n_limits, n_sums))
        space = self.space._replace(
            sums=self.space.sums._replace(constants=self.space.sums.constants[kept]),
            bounds=self.space.bounds[limits],
            tolerance=self.space.tolerance[limits],
        )
        curves = tuple(curve._replace(values=curve.values[kept]) for curve in self.curves)
        return self._replace(owners=self.owners[limits], curves=curves, space=space)


def _curves(ranked: RankedScores, sums: Sums, groups: IntArray) -> tuple[ShareCurve, ...]:
    """Return what groups add to sums, by the share of their selection rows that is selected.

    A threshold that changes no selection row, but rows of other datasets, does not change the share: of such
    thresholds the highest counts, and the lowest where all rows are selected.
    """
    above, curves = ranked.mass_above, []
    edges = list(pairwise(ranked.cuts.starts[0].tolist()))
    for first, end in (edges[group] for group in groups.tolist()):
        places = np.flatnonzero(np.diff(above[first:end], prepend=-1.0) > 0)
        knots = above[first:end][places] / above[end - 1]
        places[-1] = end - first - 1
        curves.append(ShareCurve(knots, sums.added[:, first:end][:, places]))
    return tuple(curves)


def _no_quotas(
    program: _Program, nearest: GroupShares, numbers: tuple[int, int, int], n_unknown: Callable[[int], int]
) -> InfeasibleGoals:
    """Return the error where no quotas meet the goals.

    The numbers are ``top``, how many of these are of groups with selection rows, and the rows of the batch;
    ``n_unknown`` gives how many of a ``top`` are of other groups.
    """
    top, total, n_rows = numbers
    conflict = program.goals
    for goal in conflict if len(conflict) <= _MOST_GOALS else ():
        fewer = tuple(one for one in conflict if one is not goal)
        if fewer and program.only(fewer).choose(total).violation > 0:
            conflict = fewer
    instead = program.nearest(total)
    hint = "No other number of rows of this batch was found that meets all goals."
    if instead is not None:
        find = bisect_left if instead > total else lambda *args, **options: bisect_right(*args, **options) - 1
        instead = int(find(range(n_rows + 1), instead, key=lambda number: number - n_unknown(number)))
        how = "" if nearest.is_proven else " found"
        hint = f"The nearest number of rows{how} that meets all goals: top={instead}."
    error = InfeasibleGoals(
        conflict,
        nearest.violation,
        proven=nearest.is_proven,
        kind=f"choice of {top} of the {n_rows} rows",
        hints=[hint],
    )
    error.nearest_top = instead
    return error
