"""The one evaluator: rates of any rule are running sums over the cells, and so are their standard errors."""

from collections.abc import Sequence
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import ndtr

from counterpoise._base.types import FloatArray, IntArray
from counterpoise.goals import Table, as_goals, error_rate
from counterpoise.goals.binding import Views
from counterpoise.goals.classes import Classes
from counterpoise.goals.terms import RowCount
from counterpoise.rules.margins import parts_of
from counterpoise.rules.rule_table import NO_FAILURES, RatioSum, tangent
from tools.slice.cells import Cells

_NEGATIVE, _POSITIVE, _DEFERRED = range(3)
ALLOWED = 1e-9  # by which a goal may be missed: rounding
FAR = 8.0  # standard errors beyond which a goal cannot fail by chance


class Values(NamedTuple):
    """What some rules come to."""

    cost: FloatArray  # (n_rules,)
    violation: FloatArray  # by how much goals are missed, in all
    z: FloatArray  # (n_rules, n_random): slack in standard errors
    risk: FloatArray  # the sum of the probabilities that goals fail
    errors: FloatArray  # (n_rules, n_random): what slacks are in parts of


class Evaluator:
    """Limits of goals and the objective, for every rule that has one place a coordinate.

    A coordinate is a group, or with deferral a group and one of its two thresholds. All that is linear in decisions is
    a sum over the coordinates of a column of ``running`` at the place of each.
    """

    def __init__(
        self,
        cells: Cells,
        goals: Any,
        names: Sequence[Sequence[str]],
        *,
        amounts: Sequence[str] = (),
        defer_cost: float | None = None,
    ) -> None:
        """Bind goals; ``names`` are the texts of the codes of the group and of each column, as (column, texts...)."""
        self.cells, self.names, self.amount_names = cells, names, list(amounts)
        self.answers = (_NEGATIVE, _POSITIVE) if defer_cost is None else (_NEGATIVE, _DEFERRED, _POSITIVE)
        views = self._views()
        objective = error_rate("train") if defer_cost is None else _with_deferral(defer_cost)
        self.parts = parts_of(as_goals(goals), views)
        self.objective = objective.resolve(views)
        functions = [*(part.function for part in self.parts), self.objective]
        self.counts = list(dict.fromkeys(count for function in functions for count in function.row_counts))
        self.place = {count: number for number, count in enumerate(self.counts)}
        self.counted = np.array(
            [self._members(views, count.rows) for count in self.counts]
        )  # (n_counts, measure, kind)
        self.out_of = np.array([self._members(views, count.out_of) for count in self.counts])
        self.holds = np.array([[_holds(count, answer) for answer in range(3)] for count in self.counts])
        self.random = np.flatnonzero([part.is_random for part in self.parts])
        self._bind()

    def _views(self) -> Views:
        """Return the kinds, once for each label, as rows that goals are resolved on."""
        sums, kinds = self.cells.amounts.sum(axis=2), self.cells.kinds
        n_kinds = kinds.shape[1]
        columns = {own[0]: np.tile(np.array(own[1:])[codes], 2) for own, codes in zip(self.names, kinds, strict=True)}
        weights = np.maximum(sums[:2].ravel(), 0.0)
        here = np.tile(weights.reshape(2, n_kinds).sum(axis=0) > 0, 2)
        labels = np.repeat([0, 1], n_kinds)
        for number, name in enumerate(self.amount_names):
            amounts = sums[2 + 2 * number : 4 + 2 * number].ravel()
            columns[name] = np.divide(amounts, weights, out=np.zeros(weights.size), where=weights > 0)
        self.slots = np.flatnonzero(here)
        table = Table(
            None, labels[here], {name: own[here] for name, own in columns.items()}, sample_weight=weights[here]
        )
        deferred = "defer" if len(self.answers) > 2 else None
        return Views({"train": table}, Classes(0, 1, (), deferred))

    def _members(self, views: Views, rows: Any) -> FloatArray:
        """Return with what each measure of each kind counts among some rows."""
        members = np.zeros((len(self.cells.sums), self.cells.sums.shape[1]))
        at = self.slots[views.rows(rows.without_value)[0]]
        first = 0 if rows.value is None else 2 + 2 * self.amount_names.index(rows.value)
        members[first + at // members.shape[1], at % members.shape[1]] = 1.0 / rows.unit
        return members

    def _bind(self) -> None:
        amounts, squares = self.cells.amounts, self.cells.squares
        n_measures, n_counts = len(amounts), len(self.counts)
        self.totals = np.einsum("jmk,mk->j", self.out_of, amounts.sum(axis=2))
        own = np.zeros((n_measures, n_measures), dtype=np.int64)
        own[np.triu_indices(n_measures)] = np.arange(len(squares))
        self.products = squares[np.maximum(own, own.T)]  # (measure, measure, kind, place)
        all_products = self.products.sum(axis=3)
        self.n_rows = self.totals**2 / np.einsum("jmk,mnk,jnk->j", self.out_of, all_products, self.out_of)
        within = {
            tuple(sorted((self.place[one], self.place[other])))
            for part in self.random
            for one, other in combinations_with_replacement(self.parts[part].function.row_counts, 2)
        }
        overlap = np.einsum("imk,mnk,jnk->ij", self.out_of, np.abs(all_products), self.out_of) > 0
        self.pairs = sorted((i, j) for i, j in within if overlap[i, j])
        # Columns: shares of the counts; of pairs the second moment of both, and of each with the whole of the other.
        first, second = (np.array([pair[side] for pair in self.pairs], dtype=np.int64) for side in (0, 1))
        self.first, self.second, scale = first, second, self.totals[first] * self.totals[second]
        self.whole = np.einsum("pmk,mnk,pnk->p", self.out_of[first], all_products, self.out_of[second]) / scale
        n_columns = n_counts + 3 * len(self.pairs)
        self.constants, by_answer = np.zeros(n_columns), []
        for answer in self.answers:
            counted = self.counted * self.holds[:, answer, None, None]
            linear = np.zeros((n_columns, n_measures, amounts.shape[1]))
            linear[:n_counts] = counted / self.totals[:, None, None]
            moments = [
                np.einsum("pmk,pnk->pmnk", one, other) / scale[:, None, None, None]
                for one, other in (
                    (counted[first], counted[second]),
                    (counted[first], self.out_of[second]),
                    (self.out_of[first], counted[second]),
                )
            ]
            by_answer.append((linear, np.concatenate(moments)))
        self.constants += np.einsum("cmk,mk->c", by_answer[0][0], amounts.sum(axis=2))
        self.constants[n_counts:] += np.einsum("cmnk,mnk->c", by_answer[0][1], all_products)
        self._cumulate(amounts, by_answer)
        self.coefficients = np.zeros((len(self.parts), n_counts))
        for number, part in enumerate(self.parts):
            for count in () if isinstance(part.function, RatioSum) else part.function.row_counts:
                self.coefficients[number, self.place[count]] += count.coefficient
        self.weights = np.zeros(n_counts)
        for count in self.objective.row_counts:
            self.weights[self.place[count]] += count.coefficient
        self.linear = np.array([not isinstance(part.function, RatioSum) for part in self.parts], dtype=bool)
        self.offsets = np.array(
            [0.0 if not flag else part.function.constant for part, flag in zip(self.parts, self.linear, strict=True)]
        )
        self.smooth = [self._smoothed(number) for number in range(len(self.running))]

    def _cumulate(self, amounts: FloatArray, by_answer: list[Any]) -> None:
        """Make the running sums of each coordinate, at the places where its group has rows."""
        groups, n_groups = self.cells.kinds[0], self.cells.layout.radices[0]
        self.occupied, self.running, self.used = [], [], []
        presence = np.abs(amounts[:2]).sum(axis=0)
        for edge in range(len(self.answers) - 1, 0, -1):  # the upper thresholds, then the lower ones
            linear = by_answer[edge][0] - by_answer[edge - 1][0]
            moments = by_answer[edge][1] - by_answer[edge - 1][1]
            for group in range(n_groups):
                kinds = np.flatnonzero(groups == group)
                occupied = np.flatnonzero(presence[kinds].any(axis=0))
                own = np.tensordot(linear[:, :, kinds], amounts[:, kinds][:, :, occupied], axes=2)
                squared = np.tensordot(moments[:, :, :, kinds], self.products[:, :, kinds][..., occupied], axes=3)
                own[len(self.counts) :] += squared
                used = np.flatnonzero(own.any(axis=1))
                running = np.zeros((occupied.size + 1, used.size))
                np.cumsum(own[used].T, axis=0, out=running[1:])
                self.occupied.append(occupied)
                self.running.append(running)
                self.used.append(used)
        mass = [presence[groups == group].sum(axis=0)[self.occupied[group]] for group in range(n_groups)]
        self.reach = [np.append(0.0, np.cumsum(own)) / max(own.sum(), 1e-300) for own in mass] * (len(self.answers) - 1)
        self.sizes = np.array([len(own) for own in self.running])

    def _smoothed(self, number: int) -> FloatArray:
        """Return the objective along one coordinate without its small dips, which are chance: convex."""
        used = self.used[number]
        here = used < len(self.counts)
        values = self.running[number][:, here] @ self.weights[used[here]]
        steps = np.diff(self.reach[number])
        if not steps.size:
            return np.zeros(1)
        slopes = isotonic_regression(np.diff(values) / np.maximum(steps, 1e-300), weights=np.maximum(steps, 1e-300)).x
        return np.append(0.0, np.cumsum(steps * slopes))

    def columns(self, rules: IntArray) -> FloatArray:
        """Return all columns at some rules, (n_rules, n_columns)."""
        values = np.tile(self.constants, (len(rules), 1))
        for number, running in enumerate(self.running):
            values[:, self.used[number]] += running[rules[:, number]]
        return values

    def tangents(self, shares: FloatArray) -> tuple[FloatArray, list[Any]]:
        """Return the values of all limits, and the slopes of those that are not linear."""
        values = shares @ self.coefficients.T + self.offsets
        slopes = [None] * len(self.parts)
        for number in np.flatnonzero(~self.linear):
            values[:, number], slopes[number] = tangent(
                self.parts[number].function, lambda count: shares[:, self.place[count]]
            )
        return values, slopes

    def evaluate(self, rules: IntArray, *, smooth: bool = True) -> Values:
        """Return what rules come to."""
        columns, n_counts, n_pairs = self.columns(rules), len(self.counts), len(self.pairs)
        shares = columns[:, :n_counts]
        values, slopes = self.tangents(shares)
        both, left, right = (columns[:, n_counts + part * n_pairs :][:, :n_pairs] for part in range(3))
        x, y = shares[:, self.first], shares[:, self.second]
        covariance = both - y * left - x * right + x * y * self.whole
        floors = 0.25 / (self.n_rows + 1.0) ** 2  # of a share of half a row
        twice = np.where(self.first == self.second, 1.0, 2.0)
        coefficients = self.coefficients[self.random]
        variances = covariance @ (twice * coefficients[:, self.first] * coefficients[:, self.second]).T
        floor = np.tile(coefficients**2 @ floors, (len(rules), 1))
        for at in np.flatnonzero(~self.linear[self.random]):
            gradient, moved = np.zeros((2, len(rules), n_counts))
            for count, slope, is_under in slopes[self.random[at]]:
                gradient[:, self.place[count]] += slope
                moved[:, self.place[count]] += slope * (not is_under)
            variances[:, at] = (covariance * twice * gradient[:, self.first] * gradient[:, self.second]).sum(axis=1)
            floor[:, at] = moved**2 @ floors
        errors = np.sqrt(np.maximum(np.maximum(variances + 2 * floor, NO_FAILURES * floor), 1e-24))
        z = np.clip(-values[:, self.random] / errors, -FAR, FAR)
        violation = np.where(values > ALLOWED, values, 0.0).sum(axis=1)
        cost = self.objective.constant + shares @ self.weights
        if smooth:
            cost = np.sum([own[rules[:, number]] for number, own in enumerate(self.smooth)], axis=0)
            cost = cost + self.objective.constant + self.constants[:n_counts] @ self.weights
        return Values(cost, violation, z, risk_of(z), errors)

    def informedness(self, rules: IntArray) -> FloatArray:
        """Return the true less the false positive rate of rules: 0 for all that decide by chance, or alike."""
        sums, groups, total = np.abs(self.cells.amounts[:2]), self.cells.kinds[0], np.zeros(len(rules))
        for group in range(self.cells.layout.radices[0]):
            own = sums[:, groups == group].sum(axis=1)[:, self.occupied[group]]
            rise = own[1] / sums[1].sum() - own[0] / sums[0].sum()
            total += np.append(0.0, np.cumsum(rise))[rules[:, group]]
        return total

    def resampled_values(self, rules: IntArray, sums: FloatArray) -> FloatArray:
        """Return the values of all limits at rules on another sample, given its sums by cell."""
        totals = np.einsum("jmk,mk->j", self.out_of, sums.sum(axis=2))
        shares, n_groups = np.zeros((len(rules), len(self.counts))), self.cells.layout.radices[0]
        groups = self.cells.kinds[0]
        scaled = self.counted / np.where(totals > 0, totals, np.inf)[:, None, None]
        for number, occupied in enumerate(self.occupied):
            kinds, edge = np.flatnonzero(groups == number % n_groups), len(self.answers) - 1 - number // n_groups
            gain = self.holds[:, self.answers[edge]].astype(float) - self.holds[:, self.answers[edge - 1]]
            own = np.tensordot(scaled[:, :, kinds], sums[:, kinds][:, :, occupied], axes=2) * gain[:, None]
            if edge == 1:
                lowest = np.tensordot(scaled[:, :, kinds], sums[:, kinds].sum(axis=2), axes=2)
                shares += lowest * self.holds[:, self.answers[0]]
            used = np.flatnonzero(own.any(axis=1))
            running = np.zeros((occupied.size + 1, used.size))
            np.cumsum(own[used].T, axis=0, out=running[1:])
            shares[:, used] += running[rules[:, number]]
        return self.tangents(shares)[0]

    def covariance(self, rule: IntArray, persons: Any = None) -> FloatArray:
        """Return the covariance of the limits at one rule; given the table of persons, with these as the units."""
        n_counts, groups = len(self.counts), self.cells.kinds[0]
        shares = self.columns(rule[None])[:, :n_counts]
        _, slopes = self.tangents(shares)
        gradient = self.coefficients[self.random].copy()
        for at in np.flatnonzero(~self.linear[self.random]):
            for count, slope, _ in slopes[self.random[at]]:
                gradient[at, self.place[count]] += slope[0]
        n_groups, n_places = self.cells.layout.radices[0], self.cells.sums.shape[2]
        codes = np.zeros((groups.size, n_places), dtype=np.int64)  # of the answer to each cell
        for number, place in enumerate(rule.tolist()):
            group = number % n_groups
            last = self.occupied[group][place - 1] if place else -1
            codes[groups == group] += np.arange(n_places) <= last
        if persons is not None:
            influence = np.zeros((gradient.shape[0], *self.cells.sums.shape))
            for code, answer in enumerate(self.answers):
                influence += self._influence(gradient, shares[0], answer)[..., None] * (codes == code)
            by_person = (persons @ influence.reshape(len(gradient), -1).T).T
            return np.asarray(by_person @ by_person.T)
        total = np.zeros((len(gradient), len(gradient)))
        for code, answer in enumerate(self.answers):
            own = self._influence(gradient, shares[0], answer)
            squares = (self.products * (codes == code)).sum(axis=3)
            total += np.einsum("pmk,mnk,qnk->pq", own, squares, own, optimize=True)
        return total

    def _influence(self, gradient: FloatArray, shares: FloatArray, answer: int) -> FloatArray:
        """Return what a row of each kind that is answered so moves each limit by, for each of its measures."""
        moved = self.counted * self.holds[:, answer, None, None] - shares[:, None, None] * self.out_of
        return np.tensordot(gradient / self.totals, moved, axes=1)

    def thresholds(self, rule: IntArray) -> FloatArray:
        """Return the thresholds of a rule: a row is above where its score is larger."""
        n_groups, edges = self.cells.layout.radices[0], self.cells.layout.edges
        ends = np.append(np.append(-np.inf, edges), np.inf)[::-1]  # of place b the lower end is ends[b + 1]
        found = []
        for number, place in enumerate(rule.tolist()):
            occupied = self.occupied[number % n_groups]
            if place in {0, occupied.size}:
                found.append(np.inf if place == 0 else -np.inf)
                continue
            found.append(float(ends[occupied[place - 1] + 1]))
        return np.array(found)

    def places(self, thresholds: FloatArray) -> IntArray:
        """Return the rule of the places that are above thresholds."""
        n_groups, edges = self.cells.layout.radices[0], self.cells.layout.edges
        lower_ends = np.append(-np.inf, edges)[::-1]
        occupied = [self.occupied[number % n_groups] for number in range(thresholds.size)]
        found = [(lower_ends[own] >= level).sum() for own, level in zip(occupied, thresholds.tolist(), strict=True)]
        return np.array(found)

    def least_rows(self) -> FloatArray:
        """Return on how many rows of equal weight each limit with a margin rests."""
        return np.array(
            [min(self.n_rows[self.place[count]] for count in self.parts[at].function.row_counts) for at in self.random]
        )


def _holds(count: RowCount, answer: int) -> bool:
    return answer == {True: _POSITIVE, False: _NEGATIVE, None: _DEFERRED}[count.positive]


def _with_deferral(cost: float) -> Any:
    from counterpoise.goals.rates import defer_rate  # noqa: PLC0415 - seldom

    return error_rate("train") + cost * defer_rate("train")


def risk_of(z: FloatArray) -> FloatArray:
    """Return the sum over limits of the probability that they fail."""
    risk = np.zeros(z.shape)
    near = z < 6.0
    risk[near] = ndtr(-z[near])
    return np.asarray(risk.sum(axis=1))
