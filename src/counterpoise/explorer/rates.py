"""Rates by group with intervals, from how many rows of each kind there are: counted anew for every setting."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from counterpoise._base.types import ByteArray, FloatArray
from counterpoise.explorer.few_rows import LEAST_ROWS, shown_groups
from counterpoise.explorer.words import number
from counterpoise.goals import Table
from counterpoise.goals.classes import Classes
from counterpoise.goals.expressions import needs
from counterpoise.goals.rates import TABLED, named
from counterpoise.goals.rows import Dataset, Fraction, kinds_of
from counterpoise.goals.values import combined
from counterpoise.metrics import as_fraction
from counterpoise.theory.confidence import upper_bounded_mean, upper_share

MOST_GROUPS = 12
DEFERRED = "defer_rate"
_ANSWERS = 3
_KINDS = 4 * _ANSWERS  # of rows: by label, by deployed answer, and by one of three answers
_BY_LABEL = np.repeat(np.eye(2), _KINDS // 2, axis=0)  # which kinds of rows are negative, and which positive
_RISK = 0.025  # of each end of an interval
Bounded: TypeAlias = Callable[[float, float], tuple[float, float]]


class GroupRates:
    """Labelled rows by group, label and deployed answer; what is predicted makes them kinds."""

    def __init__(self, table: Table, classes: Classes) -> None:
        labels, baseline = (None if part is None else part == classes.positive for part in (table.y, table.baseline))
        unknown = [word for word, part in (("label", labels), ("baseline", baseline)) if part is None]
        codes, names = group_codes(table)
        self.names, self.sizes = ["all", *names], [table.n_samples, *np.bincount(codes, minlength=len(names)).tolist()]
        self._base = codes * _KINDS + kinds_of(np.zeros(table.n_samples, dtype=np.int64), labels, baseline)
        self._weights, self._size = table.sample_weight, _KINDS * max(len(names), 1)
        asked = {name: named(name, Dataset()) for name in (DEFERRED, *TABLED)}
        parts = {name: as_fraction(one) for name, one in asked.items() if not any(needs(one, word) for word in unknown)}
        self.fractions = {name: part for name, part in parts.items() if part is not None}
        self._of_labels = {name for name in self.fractions if needs(asked[name], "label")}

    def of_decisions(self, decided: ByteArray, *, defers: bool = False) -> list[dict[str, Any]]:
        """Return the rates of each group that is large enough, with intervals where they are shares of rows."""
        kinds = self._base + decided
        rows = self._counted(kinds, None)
        counts = rows if self._weights is None else self._counted(kinds, self._weights)
        return self._told(counts, rows, with_intervals=self._weights is None, defers=defers)

    def of_shares(
        self, shares: FloatArray, deferred: FloatArray | None, *, held_out: bool = False
    ) -> list[dict[str, Any]]:
        """Return the rates of each group in expectation, given how likely rows are called positive, and deferred.

        Of held-out rows those have intervals that are out of rows whose number no answer changes.
        """
        left = np.zeros(shares.size) if deferred is None else deferred
        answers = (1.0 - shares - left, shares, left)
        rows = self._expected(answers, None)
        counts = rows if self._weights is None else self._expected(answers, self._weights)
        with_intervals = held_out and self._weights is None
        return self._told(counts, rows, with_intervals=with_intervals, defers=deferred is not None, are_drawn=True)

    def _expected(self, answers: tuple[FloatArray, ...], weights: FloatArray | None) -> FloatArray:
        weighed = answers if weights is None else [weights * part for part in answers]
        return np.asarray(sum(self._counted(self._base + code, part) for code, part in enumerate(weighed)))

    def _counted(self, kinds: Any, weights: FloatArray | None) -> FloatArray:
        return np.asarray(np.bincount(kinds, weights, self._size), dtype=np.float64)

    def _told(
        self, counts: FloatArray, rows: FloatArray, *, with_intervals: bool, defers: bool, are_drawn: bool = False
    ) -> list[dict[str, Any]]:
        """Return each group that is shown, with those of its rates behind which there are enough rows."""
        weighed, counted = (_with_all(some) for some in (counts, rows))
        fractions = {name: part for name, part in self.fractions.items() if defers or name != DEFERRED}
        # Of a group with few positives, rates that speak of labels would together tell how many are found.
        by_label = (counted @ _BY_LABEL).T
        enough = {
            name: self._shown(self.sizes, counted @ part.bottom, *(by_label if name in self._of_labels else ()))
            for name, part in fractions.items()
        }
        bounds = (_drawn_bounds if are_drawn else _count_bounds) if with_intervals else None
        found = []
        for place in np.flatnonzero(self._shown(self.sizes)).tolist():
            rates = {
                name: _rate(weighed[place], part, bounds if _has_interval(part, are_drawn=are_drawn) else None)
                if enough[name][place]
                else None
                for name, part in fractions.items()
            }
            found.append({"group": self.names[place], "rows": self.sizes[place], "rates": rates})
        return found

    def _shown(self, *counts: Any) -> list[bool]:
        """Return what is shown of all rows together, and of each group, by counts of rows behind it."""
        of_names = [np.asarray(some)[: len(self.names)] for some in counts]
        every = all(some[0] >= LEAST_ROWS for some in of_names)
        return [every, *shown_groups(*(some[1:].tolist() for some in of_names))]


def _with_all(counts: FloatArray) -> FloatArray:
    """Return how many rows of each kind there are: in all, then in each group."""
    by_group = counts.reshape(-1, _KINDS)
    return np.vstack([by_group.sum(axis=0), by_group])


def group_codes(table: Table) -> tuple[Any, list[str]]:
    """Return the group of each row by the sensitive columns: all of them where that makes few groups, else the first.

    Without such columns all rows are of one group, which has no name.
    """
    columns = table.sensitive_columns
    for some in (columns, columns[:1]):
        codes, names = combined({name: table.levels(name) for name in some}, table.n_samples)
        if some and len(names) <= MOST_GROUPS:
            return codes, names
    return np.zeros(table.n_samples, dtype=np.int64), []


def _has_interval(part: Fraction, *, are_drawn: bool) -> bool:
    """Tell whether a rate is a share of rows; where answers are drawn, of rows whose number does not depend on them."""
    by_answer = part.bottom.reshape(-1, _ANSWERS)
    return part.is_count and (not are_drawn or bool((by_answer == by_answer[:, :1]).all()))


def _count_bounds(top: float, bottom: float) -> tuple[float, float]:
    """Return the exact interval of a share of rows."""
    return 1.0 - upper_share(bottom - top, bottom, _RISK), upper_share(top, bottom, _RISK)


def _drawn_bounds(top: float, bottom: float) -> tuple[float, float]:
    """Return an interval of the mean of chances, whatever these are."""
    n_rows, mean = round(bottom), min(top / bottom, 1.0)
    return 1.0 - upper_bounded_mean(1.0 - mean, n_rows, _RISK), upper_bounded_mean(mean, n_rows, _RISK)


def _rate(counts: FloatArray, part: Fraction, bounds: Bounded | None) -> list[float | None] | None:
    """Return value, low and high; None where no row counts."""
    top, bottom = float(part.top @ counts), float(part.bottom @ counts)
    if bottom <= 0:
        return None
    if bounds is None:
        return [number(top / bottom), None, None]
    low, high = bounds(top, bottom)
    return [number(top / bottom), number(low), number(high)]
