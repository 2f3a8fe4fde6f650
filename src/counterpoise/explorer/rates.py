"""Rates by group with intervals, from how many rows of each kind there are: counted anew for every setting."""

from typing import Any

import numpy as np

from counterpoise._base.types import ByteArray, FloatArray
from counterpoise.explorer.words import number
from counterpoise.goals import Table
from counterpoise.goals.classes import Classes
from counterpoise.goals.kinds import kinds_of, needs
from counterpoise.goals.levels import combined
from counterpoise.goals.rates import TABLED, named
from counterpoise.goals.rows import Dataset
from counterpoise.metrics import as_fraction
from counterpoise.theory.confidence import upper_share

MOST_GROUPS = 12
DEFERRED = "defer_rate"
LEAST_ROWS = 10  # of a group that is shown
_KINDS = 12  # of rows: by label, by deployed answer, and by one of three answers
_RISK = 0.025  # of each end of an interval


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

    def of_decisions(self, decided: ByteArray, *, defers: bool = False) -> list[dict[str, Any]]:
        """Return the rates of each group that is large enough, with intervals where they are shares of rows."""
        counts = np.bincount(self._base + decided, self._weights, self._size)
        return self._rows(counts.astype(np.float64), with_intervals=self._weights is None, defers=defers)

    def of_shares(self, shares: FloatArray, deferred: FloatArray | None) -> list[dict[str, Any]]:
        """Return the rates of each group in expectation, given how likely rows are called positive, and deferred."""
        weights = np.ones(shares.size) if self._weights is None else self._weights
        left = np.zeros(shares.size) if deferred is None else deferred
        answers = enumerate((1.0 - shares - left, shares, left))
        counts = sum(np.bincount(self._base + code, weights * part, self._size) for code, part in answers)
        return self._rows(np.asarray(counts, dtype=np.float64), with_intervals=False, defers=deferred is not None)

    def _rows(self, counts: FloatArray, *, with_intervals: bool, defers: bool) -> list[dict[str, Any]]:
        by_group = counts.reshape(-1, _KINDS)
        found = []
        for name, size, own in zip(self.names, self.sizes, [by_group.sum(axis=0), *by_group], strict=False):
            if size >= LEAST_ROWS:
                rates = {
                    rate: _rate(float(part.top @ own), float(part.bottom @ own), with_intervals and part.is_count)
                    for rate, part in self.fractions.items()
                    if defers or rate != DEFERRED
                }
                found.append({"group": name, "rows": size, "rates": rates})
        return found


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


def _rate(top: float, bottom: float, has_interval: bool) -> list[float | None] | None:
    """Return value, low and high; None where no row counts."""
    if bottom <= 0:
        return None
    if not has_interval:
        return [number(top / bottom), None, None]
    low, high = 1.0 - upper_share(bottom - top, bottom, _RISK), upper_share(top, bottom, _RISK)
    return [number(top / bottom), number(low), number(high)]
