"""How much one classifier's rates differ from another's on the population, given the decisions of both on rows.

A rate is a constant plus means, over parts of the rows, of what each row contributes by its decision. So the difference
of two rates is a sum of means of differences, and rows about which both decide alike add no width. Each mean has a
bound for an equal part of the risk: exact where decisions are sure and rows weigh the same, else by betting.

The largest of several rates, as of the differences between groups, is ``D(a) = max over q of s_q(a)``, and

    D(one) - D(other) = max over q of min over p of (s_q(one) - s_p(other)).

Only the q that is the largest on the population needs a bound that is right, so their number costs nothing; the bounds
for each p are right together. For each q three p are examined: the same, the one with both groups exchanged, and that
which is the largest for the other classifier on these rows.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from counterpoise._base.types import FloatArray
from counterpoise.auditing.audit import audit_predictions
from counterpoise.goals.binding import PreparedPredictions, Views
from counterpoise.goals.expressions import Goal, Rate
from counterpoise.goals.terms import DEFAULT, Dataset, NoRows
from counterpoise.theory.confidence import few_cells, upper_mean, upper_weighted_mean

_FEW = 4  # values of a difference that are bounded by exact bounds on shares
_HALF = 0.5


class Estimate(NamedTuple):
    """What held-out rows show: the value on them, and bounds on that of the population."""

    value: float
    low: float
    high: float


NOTHING = Estimate(np.nan, -np.inf, np.inf)  # where a group has no rows


def estimate_value(goal: Goal, prepared: PreparedPredictions, risk: float) -> Estimate:
    """Return what rows show about what a goal bounds; each end of the interval is wrong with the risk at most."""
    (audited,) = audit_predictions([goal.with_confidence(1.0 - risk)], prepared)
    return Estimate(audited.estimate, audited.low, audited.high) if audited.has_estimate else NOTHING


def paired_difference(goal: Goal, one: PreparedPredictions, other: PreparedPredictions, risk: float) -> Estimate:
    """Return how much larger what a goal bounds is for one classifier than for another, on the same held-out rows.

    Parameters
    ----------
    goal : Goal
        On a rate or a ratio, or on the worst of several; its bound plays no role. Ratios are not linear: their bounds
        are those of both values by themselves.
    one, other : PreparedPredictions
        The decisions of both, as ``goals.binding.prepare`` returns them for the same table.
    risk : float in (0, 1)
        The most that each end of the interval may be wrong with.

    Returns
    -------
    Estimate
        Not a number, with infinite bounds, where a group has no rows.

    Examples
    --------
    Of 1,000 rows two classifiers differ in ten:

    >>> import numpy as np
    >>> from counterpoise.auditing.paired import paired_difference
    >>> from counterpoise.goals import Table, parse_goal
    >>> from counterpoise.goals.binding import prepare
    >>> y = np.arange(1000) % 2
    >>> right, wrong = (prepare(labels, Table(None, y), kind="labels") for labels in (y, np.append(1 - y[:10], y[10:])))
    >>> change = paired_difference(parse_goal("error_rate <= 1"), wrong, right, 0.025)
    >>> print(f"{change.value:.3f} from {change.low:.3f} to {change.high:.3f}")
    0.010 from 0.001 to 0.020
    """
    try:
        parts = goal.parts(one.views)
        estimate = goal.at(one).value - goal.at(other).value
        sides = [(part.left, part.right) for part in parts]
        rates = [goal.sign * (left - Rate(0.0, right.terms)) for left, right in sides if isinstance(left, Rate)]
        if len(rates) == len(parts) and not goal.has_amounts:
            ends = _upper(rates, one, other, risk), -_upper(rates, other, one, risk)
            return Estimate(estimate, *sorted(goal.sign * end for end in ends))
    except NoRows:
        return NOTHING
    first, second = (estimate_value(goal, prepared, risk * _HALF) for prepared in (one, other))
    return Estimate(estimate, first.low - second.high, first.high - second.low)


def _upper(rates: Sequence[Rate], one: PreparedPredictions, other: PreparedPredictions, risk: float) -> float:
    """Return an upper bound on how much larger the largest of some rates is for one than for the other."""
    largest = max(rates, key=lambda rate: rate.at(other))
    contributions = {rate: _Contributions.of(rate, one.views) for rate in rates}
    chances, others = (_columns(prepared) for prepared in (one, other))

    def bound(rate: Rate, compared: Rate) -> float:
        own = contributions[rate].minus(contributions[compared], chances, others)
        means = list(own)
        return rate.constant - compared.constant + sum(mean.upper(risk / len(rates) / len(means)) for mean in means)

    return max(
        min(bound(rate, compared) for compared in {rate, -rate, largest} if compared in contributions) for rate in rates
    )


def _columns(prepared: PreparedPredictions) -> FloatArray:
    """Return the chance of each answer about each row."""
    chances = prepared.predictions[DEFAULT]
    return np.column_stack([1.0 - chances, chances]) if chances.ndim == 1 else chances


class _Mean(NamedTuple):
    """A mean over rows: a value and a weight for each, and all values that there can be."""

    values: FloatArray
    weights: FloatArray  # as parts of the largest there can be
    possible: FloatArray

    def upper(self, risk: float) -> float:
        if self.possible.size == 1:
            return float(self.possible[0])
        places = np.searchsorted(self.possible, self.values)
        are_sure = places.max() < self.possible.size and bool((self.possible[places] == self.values).all())
        if are_sure and self.possible.size <= _FEW and self.weights.min() == 1:
            return upper_mean(self.possible, np.bincount(places, minlength=self.possible.size).astype(np.float64), risk)
        span = float(self.possible[0]), float(self.possible[-1])
        return upper_weighted_mean(few_cells(self.values, self.weights, span), risk)


class _Contributions(NamedTuple):
    """What each row contributes to a rate by the answer that it gets, for each part of the rows."""

    by_part: dict[Dataset, FloatArray]  # (n_rows, n_answers)
    views: Views

    @classmethod
    def of(cls, rate: Rate, views: Views) -> "_Contributions":
        n_samples, n_answers = views.table(DEFAULT).n_samples, max(views.classes.n_columns, 2)
        deferred = None if views.classes.deferred is None else n_answers - 1
        by_part: dict[Dataset, FloatArray] = {}
        for count in rate.row_counts:
            by_answer = np.zeros(n_answers)
            if count.positive is None:
                by_answer[deferred] = count.coefficient
            else:
                by_answer[:] = 0.0 if count.positive else count.coefficient
                by_answer[views.place(count.called)] = count.coefficient if count.positive else 0.0
                if deferred is not None:
                    by_answer[deferred] = 0.0
            part = by_part.setdefault(count.out_of, np.zeros((n_samples, n_answers)))
            part[views.rows(count.rows)[0]] += by_answer
        return cls(by_part, views)

    def minus(self, other: "_Contributions", chances: FloatArray, others: FloatArray) -> Iterator[_Mean]:
        """Yield the means whose sum is this rate of some decisions less the other rate of others."""
        heaviest = self.views.table(DEFAULT).heaviest(DEFAULT) or 1.0
        for part in dict.fromkeys([*self.by_part, *other.by_part]):
            places, weights = self.views.rows(part)
            own, compared = (one.by_part.get(part, np.zeros_like(chances))[places] for one in (self, other))
            kinds = np.unique(np.hstack([own, compared]), axis=0)
            first, second = np.split(kinds, 2, axis=1)
            possible = np.unique(first[:, :, None] - second[:, None, :])
            values = (own * chances[places]).sum(axis=1) - (compared * others[places]).sum(axis=1)
            inside = weights > 0
            yield _Mean(values[inside], weights[inside] / heaviest, possible)
