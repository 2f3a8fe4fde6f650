"""The rows that goals count out of, by kind: label, baseline and prediction decide what a row contributes to a rate.

Every rate is a constant plus, for each part of the data that it counts out of, the (weighted) mean of what the rows of
that part contribute; a row's contribution depends on its kind alone. So eight counts a part, which add up over shards,
are all that a bound on the population's rates needs; for weighted rows the same at each of a few weights.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np

from counterpoise._base.types import BoolArray, FloatArray, IntArray
from counterpoise.goals.binding import Linear, Views
from counterpoise.goals.expressions import Rate, Ratio
from counterpoise.goals.rows import Counted, Dataset
from counterpoise.goals.wording import NoRows
from counterpoise.theory.betting import WeightedSample, spread, weight_levels

_KINDS = np.array(list(product((False, True), repeat=3)))  # label, baseline, prediction
_DIGITS = 12  # contributions that agree to so many decimals are one: their sums are not exact


class Part(NamedTuple):
    """Rows that one or several rates count out of, and what each kind of them contributes."""

    rows: Dataset
    values: FloatArray  # (n_rates, n_kinds), of the kinds that can occur here
    counts: FloatArray  # (n_kinds,): numbers of rows
    totals: FloatArray  # (n_kinds,): sums of their weights
    spread: FloatArray | None  # (n_kinds, n_levels): numbers of rows by weight; None where all weigh the same
    levels: FloatArray  # (n_levels,): those weights, as parts of the largest that the population can hold

    @property
    def n_rows(self) -> int:
        """Return the number of rows."""
        return round(float(self.counts.sum()))

    @property
    def is_weighted(self) -> bool:
        """Tell whether some rows of the population may weigh more than others."""
        return self.spread is not None

    def sample(self, values: FloatArray, factors: FloatArray | None = None) -> WeightedSample:
        """Return the rows with a value for each kind, and their weights, multiplied where factors (<= 1) say so."""
        numbers = self.counts[:, None] if self.spread is None else self.spread
        weights = np.outer(np.ones(values.size) if factors is None else factors, self.levels)
        span = (float(values.min()), float(values.max()))
        return WeightedSample(np.repeat(values, self.levels.size), weights.ravel(), numbers.ravel(), span)

    def only(self, kinds: BoolArray) -> "Part":
        """Return the rows of some kinds."""
        spread = None if self.spread is None else self.spread[kinds]
        return Part(self.rows, self.values[:, kinds], self.counts[kinds], self.totals[kinds], spread, self.levels)


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
        found.append(Part(rows, np.round(values, _DIGITS), *sums).only(possible))
    return found


def kinds_of(predicted: BoolArray, labels: BoolArray | None, baseline: BoolArray | None) -> IntArray:
    """Return the kind of each row; what is not known counts as negative."""
    codes = predicted.astype(np.int64)
    for weight, known in ((4, labels), (2, baseline)):
        codes += 0 if known is None else weight * known
    return codes


class Fraction(NamedTuple):
    """A rate as a share of rows: what rows of each kind contribute to its top and its bottom."""

    top: FloatArray
    bottom: FloatArray

    @property
    def is_count(self) -> bool:
        """Tell whether some of the rows that count are counted, each once."""
        return bool(np.isin([self.top, self.bottom], (0.0, 1.0)).all() and (self.top <= self.bottom).all())


def fractions(rate: Linear) -> list[Fraction]:
    """Return the shares of which a rate is the sum, beside its constant."""
    tops: dict[Dataset, FloatArray] = {}
    for one in rate.counted:
        tops[one.out_of] = tops.get(one.out_of, np.zeros(len(_KINDS))) + one.coefficient * _is_counted(one)
    return [Fraction(top, _matches(rows).astype(np.float64)) for rows, top in tops.items()]


def needs(rate: Rate | Ratio, part: str) -> bool:
    """Tell whether a rate tells rows apart by their "label" or by their "baseline"."""
    counted = (*rate.numerator.counted, *rate.denominator.counted) if isinstance(rate, Ratio) else rate.counted
    return any(getattr(rows, part) is not None for one in counted for rows in (one.rows, one.out_of))


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
    """The last fields of a ``Part``."""

    counts: FloatArray
    totals: FloatArray
    spread: FloatArray | None
    levels: FloatArray


def _sums(rows: Dataset, counted: Sequence[Counted], views: Views, predicted: FloatArray | None) -> _Sums:
    places, weights = views.rows(rows)
    if not places.size or not weights.max() > 0:
        raise NoRows(f"There is no row of positive weight to take a rate of: {rows} is empty.")
    codes = 4 * _is_in(places, rows, "label", counted, views) + 2 * _is_in(places, rows, "baseline", counted, views)
    kinds = codes if predicted is None else codes + predicted[places].astype(np.int64)
    found = _by_kind(kinds, weights, views.heaviest(rows.name))
    if predicted is not None:
        return found
    spread = None if found.spread is None else _halved(found.spread)
    return _Sums(_halved(found.counts), _halved(found.totals), spread, found.levels)


def _halved(sums: FloatArray) -> FloatArray:
    """Return what the sums would be if half of the rows, all of them predicted negative, were predicted positive."""
    return np.asarray((sums + np.roll(sums, 1, axis=0)) / 2)


def _by_kind(kinds: IntArray, weights: FloatArray, heaviest: float | None) -> _Sums:
    counts, totals = (np.bincount(kinds, one, len(_KINDS)).astype(np.float64) for one in (np.ones(kinds.size), weights))
    if heaviest is None:
        return _Sums(counts, totals, None, np.ones(1))
    parts = weights / heaviest
    levels = weight_levels(parts)
    return _Sums(counts, totals, spread(parts, kinds, len(_KINDS), levels), levels)


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
