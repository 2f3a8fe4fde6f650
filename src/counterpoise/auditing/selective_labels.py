"""Audits where labels are known for some rows only, as of loans that were granted.

Nobody knows whether an applicant who was refused would have paid back. Rates that need no such label are estimated as
always: the selection rate, or the precision of a model that selects only rows whose labels are known. For any other
rate the labels that are not known may be anything. The least and the most that the rate can be are found by giving
each of these rows the worse of the two labels, once for each end; the bounds on the population are those of the rows
with these labels, and hold whatever the true ones are (Manski 1989).

A rate is ``top / bottom``, two sums over rows, and with a number ``level`` in the place of the rate the worse label of
a row is that with the larger ``top - level * bottom``. The level that the rows then have is the next, until it stays
(Dinkelbach 1967). In a difference of two groups each rate has rows of its own.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import ArrayLike, BoolArray, FloatArray, IntArray
from counterpoise.goals.binding import Views
from counterpoise.goals.catalogue import needs
from counterpoise.goals.expressions import ComparedRatios, Goal, Rate, Ratio, terms_of
from counterpoise.goals.population import GoalOutcome, measure_goal
from counterpoise.goals.terms import DEFAULT, Dataset, NoRows, RowCount

_MAX_ROUNDS = 100
_TINY = 1e-12  # part of a weight, below which two labels of a row are as good as each other


def check_labelled(labelled: ArrayLike, n_rows: int) -> BoolArray:
    """Return which rows have a label that is known, after checking it."""
    known = np.asarray(labelled)
    if known.dtype.kind in "iuf" and np.isin(known, (0, 1)).all():
        known = known.astype(np.bool_)
    if known.dtype != np.bool_ or known.shape != (n_rows,):
        raise ValueError(
            f"labelled must say of each of the {n_rows} rows whether its label is known: an array of True and False, "
            f"or of 1 and 0; got shape {known.shape} of type {known.dtype}."
        )
    if not known.any():
        raise ValueError("labelled says that no label is known. Pass y=None for goals that need no labels.")
    return known


def fill_labels(y: Any, labelled: BoolArray) -> Any:
    """Return labels with those that are not known, which may hold anything, as the first that is."""
    filled = np.array(y, dtype=object if np.asarray(y).dtype.kind == "O" else None)
    filled[~labelled] = filled[labelled][0]
    if filled.dtype.kind == "f" and not (filled % 1).any():
        filled = filled.astype(np.int64)  # whole numbers, that became floats by a missing one among them
    return filled


class WorstCaseOutcome(NamedTuple):
    """What a goal bounds, at the labels that make it least and at those that make it most."""

    least: GoalOutcome
    most: GoalOutcome

    @property
    def estimate(self) -> float:
        """Return the value on the rows, NaN where it depends on labels that are not known."""
        low, high = self.least.estimate, self.most.estimate
        return high if low == high else np.nan

    def end(self, risk: float, end: str) -> float:
        """Return one end of the bounds on the population's value, whatever the labels."""
        return (self.most if end == "high" else self.least).end(risk, end)

    def counts(self) -> list[tuple[Dataset, int]]:
        """Return the numbers of rows that the bounds rest on."""
        return self.most.counts()


def refuse_min_rows(goals: Iterable[Goal]) -> None:
    """Refuse groups that are left out by a number of labels, which is not known."""
    for goal in goals:
        least = getattr(goal.left, "min_rows", 0) or max(term.metric.min_rows for term in terms_of(goal))
        least = least or len(getattr(goal.left, "within", ()))
        if least and any(needs(member, "label") for member in goal.left.members()):
            raise ValueError(
                f"{goal} leaves out groups by their number of labels, some of which are not known. Leave min_rows and "
                "within out, or write a goal for each group."
            )


class Measure(NamedTuple):
    """How goals stand on rows of which some labels are not known."""

    labelled: BoolArray  # of the rows of the dataset train
    answers: IntArray  # codes of the answers

    def __call__(
        self, goal: Goal, views: Views, predictions: Mapping[str, FloatArray], *, are_drawn: bool
    ) -> GoalOutcome | WorstCaseOutcome:
        """Return the outcome of one part of a goal: a single one where its labels are all known."""
        if isinstance(goal.left, ComparedRatios):
            raise NoRows("it compares ratios, which audits of rows without labels do not: audit each ratio by itself")
        sides = [goal.left.numerator, goal.left.denominator] if isinstance(goal.left, Ratio) else [goal.left]
        if not any(needs(side, "label") for side in (*sides, goal.right)):
            return measure_goal(goal, views, predictions, are_drawn=are_drawn)
        outcomes = []
        for sign in (-1.0, 1.0):
            codes = views.codes(DEFAULT, "y").copy()
            codes[~self.labelled] = self._worst_labels(goal, views, sign)
            table = views.tables[DEFAULT].with_parts(y=np.array(views.classes.labels, dtype=object)[codes])
            filled = Views({**views.tables, DEFAULT: table}, views.classes)
            outcomes.append(measure_goal(goal, filled, predictions, are_drawn=are_drawn))
        return WorstCaseOutcome(*outcomes)

    def _worst_labels(self, goal: Goal, views: Views, sign: float) -> IntArray:
        """Return the labels of the rows without one at which the left side is largest, or with -1.0 least."""
        chosen = np.full(np.count_nonzero(~self.labelled), -1, dtype=np.int64)  # -1: any label will do
        for fraction in self._fractions(goal, views, sign):
            own = fraction.worst_labels()
            if ((chosen >= 0) & (own >= 0) & (chosen != own)).any():
                raise NoRows(
                    "its rates are largest at opposite labels of the same rows, whose labels are not known: audit each "
                    "rate by itself"
                )
            chosen = np.where(own >= 0, own, chosen)
        return np.maximum(chosen, 0)

    def _fractions(self, goal: Goal, views: Views, sign: float) -> "Iterable[_Fraction]":
        """Yield the fractions of which the left side, less the rates on the right, is the sum; each is to be largest.

        A ratio of rates is one fraction where both are out of all rows, of whatever label; else each is one.
        """
        if not isinstance(goal.left, Ratio):
            yield from self._shares(goal.left - Rate(0.0, goal.right.terms), views, sign)
            return
        top, bottom = goal.left.numerator, goal.left.denominator
        counts = [one for side in (top, bottom) for one in side.row_counts]
        if any(one.out_of.label is not None for one in counts):
            yield from self._shares(top, views, sign)
            yield from self._shares(bottom, views, -sign)
            return
        sums = [self._sums(side.row_counts, views, lambda one: views.divisor(one.out_of)) for side in (top, bottom)]
        yield _Fraction(
            sign * sums[0].known + sign * top.constant,
            sums[1].known + bottom.constant,
            sign * sums[0].by_label,
            sums[1].by_label,
        )

    def _shares(self, rate: Rate, views: Views, sign: float) -> "Iterable[_Fraction]":
        for out_of in dict.fromkeys(one.out_of for one in rate.row_counts):
            own = [one for one in rate.row_counts if one.out_of == out_of]
            top = self._sums(own, views, lambda _: 1.0)
            whole = self._sums([RowCount(1.0, True, out_of, out_of)], views, lambda _: 1.0, counts_all=True)
            yield _Fraction(sign * top.known, whole.known, sign * top.by_label, whole.by_label)

    def _sums(
        self, counts: Iterable[RowCount], views: Views, unit: Callable[[RowCount], float], *, counts_all: bool = False
    ) -> "_Sums":
        """Return what rows add to a sum of counts: those with a label, and the others by the label they may have."""
        n_rows, known = self.labelled.size, 0.0
        by_label = np.zeros((2, n_rows))
        for one in counts:
            if one.rows.name != DEFAULT:  # whose labels are all known
                continue
            places, weights = views.rows(replace(one.rows, label=None).normalized)
            amounts = np.zeros(n_rows)
            amounts[places] = one.coefficient * weights / unit(one)
            amounts *= 1.0 if counts_all else self._is_counted(one, views)
            for code in (0, 1):
                if one.rows.label is None or (code == views.place(one.rows.of)) == one.rows.label:
                    by_label[code] += amounts
        codes = views.codes(DEFAULT, "y")
        known += float(by_label[codes, np.arange(n_rows)][self.labelled].sum())
        return _Sums(known, by_label[:, ~self.labelled])

    def _is_counted(self, count: RowCount, views: Views) -> FloatArray:
        """Return which rows have an answer that is counted."""
        if count.positive is None:
            return np.asarray(self.answers == len(views.classes.labels), dtype=np.float64)
        place = views.place(count.called)
        wanted = place if count.positive else 1 - place
        return np.asarray(self.answers == wanted, dtype=np.float64)


class _Sums(NamedTuple):
    known: float  # over rows with a label
    by_label: FloatArray  # (2, n_unlabelled): what each other row adds with the one label and with the other


class _Fraction(NamedTuple):
    """``(top + sum of tops of rows) / (bottom + sum of bottoms of rows)``, with the labels of rows to be chosen."""

    top: float
    bottom: float
    tops: FloatArray  # (2, n_rows): by label
    bottoms: FloatArray

    def worst_labels(self) -> IntArray:
        """Return for each row the label at which the fraction is largest, -1 where both are as good."""
        labels = np.asarray(self.bottoms.argmax(axis=0))  # some row to count out of
        level, rows = -np.inf, np.arange(labels.size)
        for _ in range(_MAX_ROUNDS):
            bottom = self.bottom + float(self.bottoms[labels, rows].sum())
            if bottom <= 0:
                break
            reached = (self.top + float(self.tops[labels, rows].sum())) / bottom
            if reached <= level:
                break
            level = reached
            labels = np.asarray((self.tops - level * self.bottoms).argmax(axis=0))
        gains = self.tops - (level if np.isfinite(level) else 0.0) * self.bottoms
        sizes = np.abs(self.tops).max(axis=0) + np.abs(self.bottoms).max(axis=0)
        is_same = np.abs(gains[1] - gains[0]) <= _TINY * sizes
        return np.where(is_same, -1, gains.argmax(axis=0))
