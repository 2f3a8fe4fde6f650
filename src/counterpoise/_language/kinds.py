"""The rows that goals count out of, by kind: label, baseline and prediction decide what a row contributes to a rate.

Every rate is a constant plus, for each part of the data that it counts out of, the (weighted) mean of what the rows of
that part contribute; a row's contribution depends on its kind alone. So eight counts a part, which add up over shards,
are all that a bound on the population's rates needs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np

from counterpoise._language.binding import Linear, Views
from counterpoise._language.rows import Counted, Dataset
from counterpoise._language.wording import NoRows
from counterpoise._types import BoolArray, FloatArray, IntArray

_KINDS = np.array(list(product((False, True), repeat=3)))  # label, baseline, prediction
_ROUNDING = 1e-9  # by which sums of equal weights may differ
_DIGITS = 12  # contributions that agree to so many decimals are one: their sums are not exact


class Part(NamedTuple):
    """Rows that one or several rates count out of, and what each kind of them contributes."""

    rows: Dataset
    values: FloatArray  # (n_rates, n_kinds), of the kinds that can occur here
    counts: FloatArray  # (n_kinds,): numbers of rows
    totals: FloatArray  # (n_kinds,): sums of their weights
    squares: FloatArray  # (n_kinds,): sums of the squares of their weights
    heaviest: float  # the largest weight of a row

    @property
    def n_rows(self) -> int:
        """Return the number of rows."""
        return round(float(self.counts.sum()))

    @property
    def is_weighted(self) -> bool:
        """Tell whether some rows weigh more than others."""
        return not np.allclose(self.totals, self.counts * self.heaviest, rtol=_ROUNDING, atol=0.0)


def parts_of(rates: Sequence[Linear], views: Views, predictions: Mapping[str, FloatArray] | None) -> list[Part]:
    """Return the parts of the data that the rates count out of.

    Parameters
    ----------
    rates : sequence of rates
    views : Views
        Of the tables.
    predictions : dict from dataset names to arrays, or None
        1 for rows predicted positive, 0 for others. None: half of every kind of row are predicted positive.
    """
    counted = [(number, one) for number, rate in enumerate(rates) for one in rate.counted]
    found = []
    for rows in dict.fromkeys(one.out_of for _, one in counted):
        here = [(number, one) for number, one in counted if one.out_of == rows]
        values = np.zeros((len(rates), len(_KINDS)))
        for number, one in here:
            values[number] += one.coefficient * _is_counted(one)
        possible = _matches(rows)
        sums = _sums(rows, [one for _, one in here], views, None if predictions is None else predictions[rows.name])
        counts, totals, squares = sums.by_kind[:, possible]
        found.append(Part(rows, np.round(values[:, possible], _DIGITS), counts, totals, squares, sums.heaviest))
    return found


def _matches(rows: Dataset) -> BoolArray:
    """Return which kinds can be among the rows."""
    matched = np.ones(len(_KINDS), dtype=np.bool_)
    for column, wanted in enumerate((rows.label, rows.baseline)):
        if wanted is not None:
            matched &= _KINDS[:, column] == wanted
    return matched


def _is_counted(counted: Counted) -> BoolArray:
    return np.asarray(_matches(counted.rows) & (_KINDS[:, 2] == counted.positive))


class _Sums(NamedTuple):
    by_kind: FloatArray  # (3, n_kinds): counts, totals and squares of the weights
    heaviest: float


def _sums(rows: Dataset, counted: Sequence[Counted], views: Views, predicted: FloatArray | None) -> _Sums:
    places, weights = views.rows(rows)
    if not places.size or not weights.max() > 0:
        raise NoRows(f"There is no row of positive weight to take a rate of: {rows} is empty.")
    codes = 4 * _is_in(places, rows, "label", counted, views) + 2 * _is_in(places, rows, "baseline", counted, views)
    powers = (np.ones(places.size), weights, weights**2)
    if predicted is None:
        halves = [np.bincount(codes, power, minlength=len(_KINDS)) / 2 for power in powers]
        return _Sums(np.array([half + np.roll(half, 1) for half in halves]), float(weights.max()))
    kinds = codes + predicted[places].astype(np.int64)
    return _Sums(np.array([np.bincount(kinds, power, minlength=len(_KINDS)) for power in powers]), float(weights.max()))


def _is_in(places: IntArray, rows: Dataset, part: str, counted: Sequence[Counted], views: Views) -> IntArray:
    """Return 1 for the rows that are positive by label (or baseline), as far as the rates tell them apart."""
    known = getattr(rows, part)
    if known is not None:
        return np.full(places.size, int(known))
    if all(getattr(one.rows, part) is None for one in counted):
        return np.zeros(places.size, dtype=np.int64)
    positive, _ = views.rows(replace(rows, label=True) if part == "label" else replace(rows, baseline=True))
    return np.isin(places, positive, assume_unique=True).astype(np.int64)


def are_disjoint(one: Dataset, other: Dataset) -> bool:
    """Tell whether two parts of one dataset can have no row in common, as their conditions say."""
    if one.name != other.name:  # the same rows may be known under two names
        return False
    values = dict(other.conditions)
    return (
        any(values.get(column, text) != text for column, text in one.conditions)
        or {one.label, other.label} == {True, False}
        or {one.baseline, other.baseline} == {True, False}
    )
