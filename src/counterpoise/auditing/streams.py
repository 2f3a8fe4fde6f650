"""What monitored goals ask of rows that keep coming: streams of rows, the counts that are kept of them, and evidence.

A goal is one or several limits on a rate or a ratio each. A limit is on sums of means over parts of the data, as the
rows labelled positive of one group. Each such part is a stream: its rows are counted by what they contribute and, where
they have weights, by weight. Rows outside of it change nothing. Several limits share a stream where they ask the same
of the same rows.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import AnyArray, FloatArray, IntArray
from counterpoise.goals.binding import PreparedPredictions, Views
from counterpoise.goals.classes import Classes
from counterpoise.goals.expressions import Goal, Rate, Ratio
from counterpoise.goals.kinds import are_disjoint, parts_of
from counterpoise.goals.tables import Table
from counterpoise.goals.terms import DEFAULT, Dataset, NoRows, RowCount, fractions
from counterpoise.theory.confidence import WeightedSample
from counterpoise.theory.sequential import log_evidence, log_wealth, lower_mean, mean_of, unruled_pairs

LEVELS = np.append(0.0, np.geomspace(1e-4, 1.0, 24))  # of weights; ``spread_over_levels`` says why it is safe
_DOUBLINGS, _HALVINGS = 24, 16  # of the steps in which the end of a ratio is looked for
_EXAMINED, _PROMISING = 3, 2.0  # starts of a change, and standard errors from which on they have some evidence
_SURE, _TINY = 700.0, 1e-12
_ROUNDING = 1e-9  # part of the size of a rate


class StreamSum(NamedTuple):
    """What rows contribute to one rate."""

    row_counts: tuple[RowCount, ...]
    constant: float = 0.0


class Stream(NamedTuple):
    """Rows that limits count out of, and one or two sums over them."""

    rows: Dataset
    sums: tuple[StreamSum, ...]

    @property
    def key(self) -> str:
        """Return a text that no other stream has."""
        counts = [
            [(one.coefficient, one.positive, str(one.rows), one.called) for one in each.row_counts]
            for each in self.sums
        ]
        return f"{self.rows} {counts}"

    @property
    def needs_label(self) -> bool:
        """Return whether rows count only once their label is known."""
        counts = [one for each in self.sums for one in each.row_counts]
        return any(rows.label is not None for one in counts for rows in (one.rows, one.out_of))


class CountedStream(NamedTuple):
    """The rows of a stream, counted by what they contribute and by weight."""

    marks: FloatArray  # (n_sums, n_marks): contributions
    levels: FloatArray  # (n_levels,): weights, as parts of the largest
    numbers: FloatArray  # (n_marks * n_levels,): rows at each

    @property
    def n_rows(self) -> float:
        """Return the number of rows."""
        return float(self.numbers.sum())

    def sample(self, factors: FloatArray, numbers: FloatArray | None = None) -> WeightedSample:
        """Return the rows with one value each, which is a combination of the sums."""
        values = factors @ self.marks
        counts = self.numbers if numbers is None else numbers
        n_marks, n_levels = values.size, self.levels.size
        span = float(values.min()), float(values.max())
        occurs = np.atleast_2d(counts).any(axis=0)
        cells = np.repeat(values, n_levels)[occurs], np.tile(self.levels, n_marks)[occurs]
        return WeightedSample(*cells, counts[..., occurs], span)


class _OneRow(Views):
    """A row that is in every stream."""

    def rows(self, rows: Dataset) -> tuple[IntArray, FloatArray]:  # noqa: ARG002
        """Return its place and its weight."""
        return np.zeros(1, dtype=np.int64), np.ones(1)

    def codes(self, name: str, part: str) -> IntArray:  # noqa: ARG002
        """Return the code of a class."""
        return np.zeros(1, dtype=np.int64)


def no_rows(stream: Stream, classes: Classes, amounts: Sequence[str], **limits: Any) -> CountedStream:
    """Return a stream before its first row: what rows can contribute and weigh does not depend on those that come.

    ``amounts`` are columns, and ``limits`` the largest weight and value of the population.
    """
    weights = None if limits["largest_weight"] is None else [limits["largest_weight"]]
    columns = {column: [0.0] for column in amounts}
    table = Table(np.empty((1, 0)), sensitive_features=columns or None, sample_weight=weights, **limits)
    row = PreparedPredictions(_OneRow({DEFAULT: table}, classes, LEVELS), {DEFAULT: np.zeros(1)})
    counted = count_rows(stream, row, None)
    assert counted is not None  # noqa: S101 - there is the row
    return counted._replace(numbers=np.zeros(counted.numbers.size))


def count_rows(stream: Stream, prepared: PreparedPredictions, ids: AnyArray | None) -> CountedStream | None:
    """Return the rows of a batch that belong to a stream; None where there are none.

    Rows of one id are parts of one row: with k of them each counts as a k-th. The logarithm of the evidence is then the
    mean of theirs, and never above that of their mean, however they depend on each other.
    """
    views = prepared.views
    try:
        places, _ = views.rows(stream.rows)
        if not places.size:
            return None
        if ids is not None:
            _, which, sizes = np.unique(ids[places], return_inverse=True, return_counts=True)
            alike = sizes[which]
            if alike.max() > 1:
                return _count_parts(stream, prepared, places, alike)
        (part,) = parts_of(stream.sums, [0] * len(stream.sums), views, prepared.predictions)
    except NoRows:
        return None
    spread = part.counts if part.spread is None else part.spread
    return CountedStream(part.values, part.levels, spread.ravel())


def _count_parts(
    stream: Stream, prepared: PreparedPredictions, places: AnyArray, alike: AnyArray
) -> CountedStream | None:
    """Return the rows of a stream, those of persons with k rows as k-th parts."""
    views, chances, total = prepared.views, prepared.predictions[DEFAULT], None
    for size in np.unique(alike).tolist():
        own = places[alike == size]
        table = views.tables[DEFAULT].only(own)
        some = PreparedPredictions(Views({DEFAULT: table}, views.classes, views.levels), {DEFAULT: chances[own]})
        tally = count_rows(stream, some, None)
        if tally is not None:
            numbers = tally.numbers / size + (0.0 if total is None else total.numbers)
            total = tally._replace(numbers=numbers)
    return total


class StreamTerm(NamedTuple):
    """A stream in a limit: what its sums contribute to the top and to the bottom."""

    stream: Stream
    key: str
    top: tuple[float, ...]
    bottom: tuple[float, ...]

    def factors(self, at: float) -> FloatArray:
        """Return the factors of ``top - at * bottom``."""
        return np.array(self.top) - at * np.array(self.bottom)


class MonitoredLimit(NamedTuple):
    """A limit on a rate or a ratio, written as streams."""

    goal: Goal  # on one rate or ratio
    terms: tuple[StreamTerm, ...]
    constants: tuple[float, float]  # of top and bottom
    are_disjoint: bool  # whether no row is in two streams

    @classmethod
    def of(cls, goal: Goal) -> "MonitoredLimit":
        """Return a part of a goal as streams."""
        if isinstance(goal.left, Ratio):
            rates = goal.left.numerator, goal.left.denominator
            _check_denominator(goal, rates[1])
        else:
            rates = goal.left - Rate(0.0, goal.right.terms), Rate(1.0)
        terms: list[StreamTerm] = []
        for rows in dict.fromkeys(one.out_of for rate in rates for one in rate.row_counts):
            own = [tuple(one for one in rate.row_counts if one.out_of == rows) for rate in rates]
            if all(own) and not any(one.rows.value for counts in own for one in counts):
                stream = Stream(rows, (StreamSum(own[0]), StreamSum(own[1])))
                terms.append(StreamTerm(stream, stream.key, (1.0, 0.0), (0.0, 1.0)))
                continue
            for place, counts in enumerate(own):
                if counts:
                    unit = counts[0].coefficient
                    alike = tuple(one._replace(coefficient=one.coefficient / unit) for one in counts)
                    sides = [(unit if side == place else 0.0,) for side in (0, 1)]
                    stream = Stream(rows, (StreamSum(alike),))
                    terms.append(StreamTerm(stream, stream.key, sides[0], sides[1]))
        pairs = combinations([term.stream.rows for term in terms], 2)
        constants = rates[0].constant, rates[1].constant
        return cls(goal, tuple(terms), constants, all(are_disjoint(*pair) for pair in pairs))

    def samples(
        self,
        counted: Mapping[str, CountedStream],
        at: float,
        sign: float,
        since: Mapping[str, FloatArray] | None = None,
    ) -> tuple[list[WeightedSample], float]:
        """Return streams and a number: their means add up to more where the value, times the sign, is above ``at``."""
        samples, total = [], -sign * (self.constants[0] - at * self.constants[1])
        for term in self.terms:
            stream = counted[term.key]
            numbers = None if since is None else stream.numbers - since.get(term.key, 0.0)
            sample = stream.sample(sign * term.factors(at), numbers)
            if sample.span[0] == sample.span[1]:
                total -= sample.span[0]  # whatever rows come, they contribute this
            else:
                samples.append(sample)
        return samples, total

    def has_rows(self, counted: Mapping[str, CountedStream]) -> bool:
        """Return whether each stream has some row."""
        return all(term.key in counted for term in self.terms)

    def n_rows(self, counted: Mapping[str, CountedStream]) -> int:
        """Return the number of rows in all streams."""
        return round(sum(counted[key].n_rows for key in {term.key for term in self.terms} & counted.keys()))

    def estimate(self, counted: Mapping[str, CountedStream]) -> float:
        """Return the value on the rows so far, NaN where some stream has none."""
        if not self.has_rows(counted):
            return math.nan
        top, bottom = self.constants
        for term in self.terms:
            stream = counted[term.key]
            top += mean_of(stream.sample(np.array(term.top)))
            bottom += mean_of(stream.sample(np.array(term.bottom)))
        if abs(bottom) > _TINY:
            return top / bottom
        return math.copysign(math.inf, top) if abs(top) > _TINY else math.nan

    def evidence(self, counted: Mapping[str, CountedStream], at: float, sign: float, level: float = math.inf) -> float:
        """Return the logarithm of the evidence that the value is above ``at``, or with the sign -1 below it."""
        samples, total = self.samples(counted, at, sign)
        if not samples:
            return _SURE if total < -_TINY else 0.0
        return log_evidence(samples, total, are_disjoint=self.are_disjoint, level=level)

    def evidence_since(
        self, counted: Mapping[str, CountedStream], starts: Mapping[str, FloatArray], level: float
    ) -> FloatArray:
        """Return the logarithms of the evidence that the goal is missed, by the rows since each of several starts.

        ``starts`` holds the counts at each, of shape (n_starts, n_cells). Of several streams only the starts that look
        best are examined, as this takes its time: the others have 0, which is too little.
        """
        samples, total = self.samples(counted, self.goal.bound, self.goal.sign, starts)
        logs = np.zeros(len(next(iter(starts.values()))))
        if len(samples) == 1:
            return np.asarray(log_wealth(samples[0], np.array([total]))[:, 0])
        logs[:] = -math.inf
        scores = _scores(samples, total) if samples else np.zeros(0)
        for place in np.argsort(-scores, kind="stable")[:_EXAMINED].tolist():
            if scores[place] < _PROMISING:
                break
            own = [sample._replace(counts=sample.counts[place]) for sample in samples]
            logs[place] = log_evidence(own, total, are_disjoint=self.are_disjoint, level=level)
        return logs

    def end(self, counted: Mapping[str, CountedStream], risk: float, sign: float) -> float:
        """Return the end of the confidence sequence below the value, or with the sign -1 that above it."""
        if not self.has_rows(counted):
            return -sign * math.inf
        level = -math.log(risk)
        if isinstance(self.goal.left, Ratio):
            end = self._end_of_ratio(counted, level, sign)
            tops = (sign * np.array(term.top) @ counted[term.key].marks for term in self.terms)
            is_inside = sign * self.constants[0] + sum(top.min() for top in tops) >= 0  # denominators are not negative
            return sign * max(sign * end, 0.0) if is_inside else end
        samples, total = self.samples(counted, 0.0, sign)
        if len(samples) == 2 and self.are_disjoint:  # noqa: PLR2004 - pairs
            return sign * (float(np.add(*unruled_pairs(samples[0], samples[1], level)).min()) - total)
        share = level + math.log(len(samples)) if samples else level
        return sign * (sum(lower_mean(sample, share) for sample in samples) - total)

    def _end_of_ratio(self, counted: Mapping[str, CountedStream], level: float, sign: float) -> float:
        """Return the end for a ratio: that of a weighted mean where it is one, else by bisection."""
        (term, *others) = self.terms
        stream = counted[term.key]
        if not others and stream.marks.shape[0] > 1 and not any(self.constants):
            top, bottom = stream.marks
            if bottom.min() >= 0 and not top[bottom == 0].any():
                inside = bottom > 0
                shares, n_levels = bottom[inside] / bottom.max(), stream.levels.size
                values = sign * top[inside] / bottom[inside]
                sample = WeightedSample(
                    np.repeat(values, n_levels),
                    np.outer(shares, stream.levels).ravel(),
                    stream.numbers.reshape(-1, n_levels)[inside].ravel(),
                    (float(values.min()), float(values.max())),
                )
                return sign * lower_mean(sample, level)
        end = self._end_of_quotient(counted, level, sign)
        if end is not None:
            return end
        estimate = self.estimate(counted)
        inside, step = estimate, max(abs(estimate), 1e-3) / 16 if math.isfinite(estimate) else 1.0
        if not math.isfinite(estimate):
            return -sign * math.inf
        for _ in range(_DOUBLINGS):
            outside = inside - sign * step
            if self.evidence(counted, outside, sign, level) >= level:
                break
            inside, step = outside, 2.0 * step
        else:
            return -sign * math.inf
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2
            if self.evidence(counted, middle, sign, level) >= level:
                outside = middle
            else:
                inside = middle
        return outside

    def _end_of_quotient(self, counted: Mapping[str, CountedStream], level: float, sign: float) -> float | None:
        """Return the end for a rate over one of other rows; None where the ratio is more than that."""
        sides = [[term for term in self.terms if any(term.top)], [term for term in self.terms if any(term.bottom)]]
        if not self.are_disjoint or [len(side) for side in sides] != [1, 1] or sides[0] == sides[1]:
            return None
        top = counted[sides[0][0].key].sample(sign * np.array(sides[0][0].top))
        bottom = counted[sides[1][0].key].sample(-sign * np.array(sides[1][0].bottom))
        is_negative = min(sign * end for end in top.span) + self.constants[0] < 0
        if is_negative or top.span[0] == top.span[1] or bottom.span[0] == bottom.span[1]:
            return None
        tops, bottoms = unruled_pairs(top, bottom, level)
        above, below = self.constants[0] + sign * tops, np.maximum(self.constants[1] - sign * bottoms, 0.0)
        values = np.divide(above, below, out=np.full(above.shape, math.inf), where=below > 0)
        return float(values.min() if sign > 0 else values.max())


def _scores(samples: Sequence[WeightedSample], total: float) -> FloatArray:
    """Return for each start how many standard errors the sum of the means is above a number, about."""
    above, variance = -total, 0.0
    for sample in samples:
        totals = sample.weights * sample.counts
        whole = np.maximum(totals.sum(axis=1), _TINY)
        mean = totals @ sample.values / whole
        spread = (sample.weights * totals) @ sample.values**2 - 2 * mean * ((sample.weights * totals) @ sample.values)
        spread = spread + mean**2 * (sample.weights * totals).sum(axis=1)
        above, variance = above + mean, variance + (spread + _TINY) / whole**2
    return np.asarray(above / np.sqrt(variance))


def _check_denominator(goal: Goal, rate: Rate) -> None:
    """Refuse a ratio whose denominator may be negative: multiplied through, the comparison would be reversed."""
    least = rate.constant + sum(float(share.top[share.bottom > 0].min()) for share in fractions(rate))
    if least < -_ROUNDING * rate.whole_size:
        raise ValueError(
            f"The goal {goal} cannot be multiplied through: its denominator falls to {least:.4g} for some predictions, "
            "which would reverse the comparison. Use a denominator that is never negative."
        )
