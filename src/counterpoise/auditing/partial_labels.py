"""Audits of decisions where labels are known in part: bounds on rates of masses by betting.

A rate is ``top / bottom``, two means of masses, and ``theta`` is its value where the mean of ``top - theta bottom`` is
zero. Those numbers are bounded, by the least propensity, so that betting tells for each ``theta`` whether it is too
large (Waudby-Smith and Ramdas 2024). The lambda of each row is chosen on rows that come before it in a random order.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import FloatArray
from counterpoise.goals.binding import PreparedPredictions, prepare
from counterpoise.goals.classes import as_labels
from counterpoise.goals.expressions import ComparedRatios, Goal, Rate, Ratio, Searched
from counterpoise.goals.partial_labels import PartialLabels
from counterpoise.goals.ranges import goal_range
from counterpoise.goals.tables import Table
from counterpoise.goals.terms import DEFAULT, Dataset, NoRows, RowCount
from counterpoise.theory.confidence import WeightedSample, is_below

_CELLS, _HALVINGS = 32, 20  # of the range of a rate: coarsely from its end on, then finely


class MassRatio(NamedTuple):
    """A quotient of two means of masses over some rows, and what these can be."""

    rows: Dataset
    top: FloatArray  # (n_rows,): what each row adds
    bottom: FloatArray
    kinds: FloatArray  # (n_kinds, 4): least and most of the top and of the bottom, for each class and decision
    ends: tuple[float, float]  # between which the quotient lies
    heaviest: float  # one over the least propensity
    has_proxy: bool

    @property
    def estimate(self) -> float:
        """Return the value on the rows."""
        total = float(self.bottom.sum())
        return float(self.top.sum()) / total if total > 0 else math.nan

    def is_ruled_out(self, value: float, risk: float, which: str) -> bool:
        """Return whether the quotient is surely below a value ("high"), or above it ("low")."""
        low, high, low_under, high_under = self.kinds.T
        products = np.sort([value * low_under, value * high_under], axis=0)
        least, most = min(0.0, float((low - products[1]).min())), max(0.0, float((high - products[0]).max()))
        rest = (self.heaviest - 1.0) * self.has_proxy  # by which a label takes back what the proxy said
        span = self.heaviest * least - rest * most, self.heaviest * most - rest * least
        ones = np.ones(self.top.size)
        sample = WeightedSample(self.top - value * self.bottom, ones, ones, span)
        return is_below(sample if which == "high" else sample.negated(), 0.0, risk)

    def end(self, risk: float, which: str) -> float:
        """Return a value from which on, towards the low or the high end, all are ruled out; that end if it is not."""
        inner, outer = self.ends if which == "high" else self.ends[::-1]
        grid = np.linspace(outer, inner, _CELLS + 1).tolist()
        kept = next((at for at, value in enumerate(grid) if not self.is_ruled_out(value, risk, which)), _CELLS)
        inside, outside = grid[kept], grid[max(kept - 1, 0)]
        for _ in range(_HALVINGS if kept else 0):
            middle = (inside + outside) / 2
            is_out = self.is_ruled_out(middle, risk, which)
            inside, outside = (inside, middle) if is_out else (middle, outside)
        return float(outside)


class MassOutcome(NamedTuple):
    """What a goal bounds, a constant and a sum of quotients of masses, as given rows show it."""

    constant: float
    ratios: tuple[MassRatio, ...]
    n_labels: tuple[int, ...]  # among the rows of each

    @property
    def estimate(self) -> float:
        """Return the value on the rows themselves."""
        return self.constant + sum(ratio.estimate for ratio in self.ratios)

    def end(self, risk: float, which: str) -> float:
        """Return one end of the bounds on the population's value; each quotient takes its part of the risk."""
        return self.constant + sum(ratio.end(risk / len(self.ratios), which) for ratio in self.ratios)

    def counts(self) -> list[tuple[Dataset, int]]:
        """Return the numbers of labels that the bounds rest on."""
        return [(ratio.rows, count) for ratio, count in zip(self.ratios, self.n_labels, strict=True)]


class MassRows(NamedTuple):
    """Each row once for each class, with its masses, and the decisions about it."""

    labels: PartialLabels
    masses: FloatArray  # (n_rows, n_classes)
    decided: FloatArray  # (n_rows, n_answers): 1 for the decision
    prepared: PreparedPredictions

    @classmethod
    def of(cls, labels: PartialLabels, predictions: Any, table: Table, options: Mapping[str, Any]) -> "MassRows":
        """Return the rows of a table without labels, given those that are known."""
        named = [] if options["classes"] is None else [np.asarray(options["classes"])]
        classes = np.unique(np.concatenate([labels.labels, *named]))
        rows = np.repeat(np.arange(labels.n_samples), classes.size)
        decisions = as_labels(predictions)
        if decisions.shape != (labels.n_samples,):
            raise ValueError(f"predictions must hold one label for each of the {labels.n_samples} rows of y.")
        copies = table.part(rows, np.tile(classes, labels.n_samples), None)
        prepared = prepare(decisions[rows], copies, kind="labels", **options)
        chances = prepared.predictions[DEFAULT][:: classes.size]
        decided = chances if chances.ndim > 1 else np.column_stack([1.0 - chances, chances])
        return cls(labels, labels.masses(classes, decided, looks_ahead=False), decided, prepared)

    def measure(self, goal: Goal, *_others: Any, **_options: Any) -> MassOutcome:
        """Return how one part of a goal stands on the rows."""
        left: Any = goal.left
        is_ratio = isinstance(left, Ratio)
        if isinstance(left, Searched | ComparedRatios):
            raise NoRows("it compares groups in a way that needs all labels: audit the rate of each group by itself")
        rates = [left.numerator, left.denominator] if is_ratio else [left - Rate(0.0, goal.right.terms)]
        counts = [count for rate in rates for count in rate.row_counts]
        wholes = list(dict.fromkeys(count.out_of for count in counts))
        if any(count.rows.value is not None for count in counts) or (is_ratio and len(wholes) > 1):
            raise NoRows("labels that are known in part bound no amounts, and no ratio of rates out of different rows")
        ratios = []
        for whole in wholes:
            top = [count for count in rates[0].row_counts if count.out_of == whole]
            bottom = rates[1].row_counts if is_ratio else ()
            shifts = (rates[0].constant, rates[1].constant) if is_ratio else (0.0, 1.0)
            kinds = np.column_stack([self._kinds(top, whole) + shifts[0], self._kinds(bottom, whole) + shifts[1]])
            ends = goal_range(goal) if is_ratio else (float(kinds[:, 0].min()), float(kinds[:, 1].max()))
            weight = self._mass(whole)
            over = sum((self._counted(count) for count in top), shifts[0] * weight)
            under = sum((self._counted(count) for count in bottom), shifts[1] * weight)
            heaviest = 1.0 / self.labels.least_propensity
            ratios.append(MassRatio(whole, over, under, kinds, ends, heaviest, self.labels.proxy is not None))
        constant = 0.0 if is_ratio else rates[0].constant
        return MassOutcome(constant, tuple(ratios), tuple(self._n_labels(whole) for whole in wholes))

    def _is_in(self, rows: Dataset) -> FloatArray:
        """Return which rows of which class are meant, shape (n_rows, n_classes)."""
        inside = np.zeros(self.masses.size)
        inside[self.prepared.views.rows(rows)[0]] = 1.0
        return inside.reshape(self.masses.shape)

    def _mass(self, rows: Dataset) -> FloatArray:
        return np.asarray((self.masses * self._is_in(rows)).sum(axis=1))

    def _n_labels(self, rows: Dataset) -> int:
        return int(np.count_nonzero(self._is_in(rows)[self.labels.is_known].any(axis=1)))

    def _answers(self, count: RowCount) -> FloatArray:
        """Return which answers are counted."""
        views, answers = self.prepared.views, np.arange(self.decided.shape[1])
        deferred = len(views.classes.labels)
        if count.positive is None:
            return np.asarray(answers == deferred, dtype=np.float64)
        is_own = answers == views.place(count.called)
        return np.asarray(is_own if count.positive else ~is_own & (answers != deferred), dtype=np.float64)

    def _counted(self, count: RowCount) -> FloatArray:
        return count.coefficient * self._mass(count.rows) * (self.decided @ self._answers(count))

    def _kinds(self, counts: Sequence[RowCount], whole: Dataset) -> FloatArray:
        """Return the least and the most that counts add up to for each class and answer, shape (n_kinds, 2)."""
        views, (_, n_classes) = self.prepared.views, self.masses.shape
        codes = views.codes(DEFAULT, "y")[:n_classes]
        ends = np.zeros((2, n_classes, self.decided.shape[1]))
        for count in counts:
            is_class = np.ones(n_classes, dtype=np.bool_)
            if count.rows.label is not None:
                is_class = (codes == views.place(count.rows.of)) == count.rows.label
            values = count.coefficient * np.outer(is_class, self._answers(count))
            narrower = replace(count.rows, label=None, of=None) != replace(whole, label=None, of=None)
            ends[0] += np.minimum(values, 0.0) if narrower else values
            ends[1] += np.maximum(values, 0.0) if narrower else values
        return ends.reshape(2, -1).T
