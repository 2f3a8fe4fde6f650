"""What rows say about a goal on the population that they were drawn from.

The population's rate is conditional, as the goal reads: recall(sex=F) is the probability of a positive
prediction given a positive label and sex F. Groups have random sizes; given its size, the rows of a group are
independent draws from that part of the population, so every bound is computed at the observed sizes and holds whatever
they are.

A goal's left side less the rates on its right is ``top / bottom``, with ``bottom = 1`` unless the goal is on a ratio.
Its bounds are, in order of preference, and chosen by the goal and not by the outcome:

1. One part of the data and two kinds of rows that count at all: one exact binomial. Every plain rate is of this form,
   and so are precision, F1 and the win ratios: multiplied through, ``top - bound * bottom`` has the mean of two values
   over the rows that count, the rows that add 0 to both sides do not change its sign, and given the number of the
   others each is of the first kind with one probability.
2. Two disjoint groups of one dataset, two kinds of rows in each: the sum of two independent shares, exact but for the
   rounding of ``confidence.upper_sum_of_two``. Most goals on fairness are of this form.
3. Other linear combinations: each part's mean is bounded for an equal share of the risk (union bound). The parts may
   overlap or come from several datasets.
4. A ratio on one part, rows of more kinds: a weighted mean of ``top / bottom`` over the rows where bottom is not 0.
5. Any other ratio: bounds on top and bottom, for half of the risk each.

Rows may have weights, with a limit known beforehand; rates are then ratios of expected weights. The same list holds
with the bounds of ``betting`` in the place of exact ones: on one share of the weight, on the sum of two means of
disjoint groups, on each mean of another combination.

The units of top and bottom are powers of two near the sizes of their rates. So costs, and with them the bound, may be
in any unit: bounds on the population change by that factor, and no verdict does.

Where rates count amounts, rows weigh their amounts, with a limit known beforehand, and the bounds are those of weighted
rows. A cost of amounts is a mean of bounded values, with the bounds of ``betting``.

Where predictions are drawn, a goal can be on their expectation over the draws. Rows then contribute values between
those of the answers, which are neither successes nor failures. A mean of them has the better of two bounds, each for
its part of the risk: by betting, and that of Bentkus, which is wider than the binomial one by a factor of e in the
risk. Sums of two means of disjoint groups are in ``_upper_sum_of_expectations``, ratios are bounded by betting alone.

A goal that one share decides needs a share of failures on the rows to be certified. The share is one of rows, with an
exact binomial bound, or of their weight, with a bound by betting. What a goal needs is then exact for rows, and for
weighted rows if failures fall on heavy and on light ones alike.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

import numpy as np

from counterpoise._base.types import FloatArray
from counterpoise.goals.binding import PreparedPredictions, Views, name_in_errors
from counterpoise.goals.disparity import DisparityOutcome, GroupDisparities
from counterpoise.goals.expressions import ComparedRatios, Goal, Rate, Ratio
from counterpoise.goals.kinds import CountedRows, are_disjoint, parts_of
from counterpoise.goals.terms import Dataset
from counterpoise.theory.confidence import (
    Bounds,
    ScaledShare,
    WeightedSample,
    is_below,
    upper_bounded_mean,
    upper_mean,
    upper_share,
    upper_sum_of_two,
    upper_weighted_mean,
    upper_weighted_sum,
)

_EXACT = 1e-12  # to which a share is known; shares lie from 0 to 1, so this is a part of the whole
_ROUNDING = 1e-9  # of the same whole: by so much a bound is looser than its share
_HALVINGS = 40  # of the shares from 0 to 1


class Share(NamedTuple):
    """A quantity that depends on one share p: ``(p top[0] + (1 - p) top[1]) / (p bottom[0] + (1 - p) bottom[1])``.

    It rises with p.
    """

    hits: float
    trials: float
    top: tuple[float, float]
    bottom: tuple[float, float]

    def bounds(self, risk: float) -> Bounds:
        """Return the exact bounds."""
        least = 1.0 - upper_share(self.trials - self.hits, self.trials, risk)
        return _between(self, least, upper_share(self.hits, self.trials, risk))

    def most_failures(self, allowed: float, risk: float) -> float:
        """Return the largest share of failures on the rows that shows a share of at most ``allowed``."""
        n_rows = math.floor(self.trials)
        least, most = 0, n_rows + 1  # failures: so few are enough, so many too many
        while most - least > 1:
            middle = (least + most) // 2
            least, most = (middle, most) if upper_share(middle, n_rows, risk) <= allowed else (least, middle)
        return least / n_rows

    def upper_failures(self, failures: float, risk: float) -> float:
        """Return the share of failures that a share of them on the rows shows to be the most."""
        n_rows = math.floor(self.trials)
        return upper_share(math.ceil(n_rows * max(failures - _EXACT, 0.0)), n_rows, risk)

    def can_show(self, allowed: float, risk: float, n_rows: float | None = None) -> bool:
        """Return whether these rows, or ``n_rows`` rows, show a share of at most ``allowed`` if there is no failure."""
        return upper_share(0, self.trials if n_rows is None else n_rows, risk) <= allowed


class WeightedShare(NamedTuple):
    """The same for a share of the rows' weight."""

    levels: FloatArray  # weights, as parts of the largest there can be
    hits: FloatArray  # numbers of rows at each of them
    misses: FloatArray
    top: tuple[float, float]
    bottom: tuple[float, float]

    @property
    def trials(self) -> float:
        """Return the number of rows."""
        return float(self.hits.sum() + self.misses.sum())

    def bounds(self, risk: float) -> Bounds:
        """Return bounds that hold whatever the weights of rows that were not drawn."""
        least = 1.0 - upper_weighted_mean(self._sample(self.misses, self.hits), risk)
        return _between(self, least, upper_weighted_mean(self._sample(self.hits, self.misses), risk))

    def most_failures(self, allowed: float, risk: float) -> float:
        """Return the largest share of failures on the rows that shows a share of at most ``allowed``."""
        least, most = 0.0, 1.0
        for _ in range(_HALVINGS):
            middle = (least + most) / 2
            least, most = (middle, most) if is_below(self._planned(middle), allowed, risk) else (least, middle)
        return least

    def upper_failures(self, failures: float, risk: float) -> float:
        """Return the share of failures that a share of them on the rows shows to be the most."""
        return upper_weighted_mean(self._planned(failures), risk)

    def can_show(self, allowed: float, risk: float, n_rows: float | None = None) -> bool:
        """Return whether these rows, or ``n_rows`` rows, show a share of at most ``allowed`` if there is no failure."""
        return is_below(self._planned(0.0, n_rows), allowed, risk)

    def _planned(self, failures: float, n_rows: float | None = None) -> WeightedSample:
        """Return rows of the same weights, or another number of such rows, of which a share fails at each weight."""
        rows = self.hits + self.misses
        if n_rows is not None:
            rows = rows * (n_rows / self.trials)
        return self._sample(failures * rows, (1.0 - failures) * rows)

    def _sample(self, failing: FloatArray, others: FloatArray) -> WeightedSample:
        values = np.repeat([1.0, 0.0], self.levels.size)
        return WeightedSample(values, np.tile(self.levels, 2), np.concatenate([failing, others]), (0.0, 1.0))

    def check_loaded(self) -> None:
        """Check the values that were read from a file."""
        if {self.levels.shape, self.hits.shape, self.misses.shape} != {(self.levels.size,)}:
            raise ValueError("the numbers of rows are not those of its weights")


AnyShare = Share | WeightedShare


def needed_bound(goal: Goal, share: AnyShare, risk: float) -> float:
    """Return the bound nearest to the goal's own that certifies it where the rows meet it."""
    return _at_failures(goal, share, share.most_failures(allowed_failures(goal, share), risk))


def certified_bound(goal: Goal, share: AnyShare, value: float, risk: float) -> float:
    """Return the tightest bound that rows certify which reach a value: what ``needed_bound`` is at most that for."""
    failures = allowed_failures(goal.with_bound(value), share)
    return _at_failures(goal, share, min(share.upper_failures(failures, risk) + _ROUNDING, 1.0))


def can_certify(goal: Goal, share: AnyShare, risk: float) -> bool:
    """Return whether so many rows can certify the goal at all: without a single failure."""
    return bool(share.trials) and share.can_show(allowed_failures(goal, share), risk)


def allowed_failures(goal: Goal, share: AnyShare) -> float:
    """Return the share of failures that the goal's bound allows."""
    (least, most), value = _between(share, 0.0, 1.0), goal.bound
    at_bound = float(value >= most)  # the share at which the quantity has the bound, or the nearest there is
    if least < value < most:
        at_one, at_zero = (one - value * other for one, other in zip(share.top, share.bottom, strict=True))
        at_bound = at_zero / (at_zero - at_one)
    return at_bound if goal.sense == "<=" else 1.0 - at_bound


def _at_failures(goal: Goal, share: AnyShare, failures: float) -> float:
    return _value(share, failures if goal.sense == "<=" else 1.0 - failures)


def _between(share: AnyShare, least: float, most: float) -> Bounds:
    return Bounds(_value(share, least), _value(share, most))


def _value(share: AnyShare, at: float) -> float:
    """Return the quantity where the share is ``at``."""
    top, bottom = (at * at_one + (1.0 - at) * at_zero for at_one, at_zero in (share.top, share.bottom))
    return top / bottom if bottom else math.copysign(math.inf, top)


_MOST_ROWS = 2**50
_MOST_EXPONENT = 1000  # of the numbers in a goal: sums and differences of those are then finite too
_COUNTED = 0.75  # of the risk of means of drawn rows, for bounds as of counts; the rest is for betting
_REST = 0.2  # of that, for what rounding a row to a sure answer leaves


class GoalOutcome(NamedTuple):
    """What a goal bounds, as given rows show it: ``top / bottom``, each a constant plus means over parts of data."""

    constants: tuple[float, float]  # in the units of top and bottom, as the values of the parts are
    parts: tuple[CountedRows, ...]
    is_ratio: bool
    exponents: tuple[int, int] = (0, 0)  # of two: the units of top and bottom

    @property
    def estimate(self) -> float:
        """Return the value on the rows themselves."""
        means = sum((part.values @ part.totals / part.totals.sum() for part in self.parts), np.zeros(2))
        top, bottom = (means + self.constants).tolist()
        if bottom:
            return self._in_own_unit(float(top / bottom))
        return math.copysign(math.inf, top) if top else math.nan

    def _in_own_unit(self, value: float) -> float:
        """Return a quotient of top and bottom in the unit that the goal's bound has."""
        return math.ldexp(value, self.exponents[0] - self.exponents[1])

    def bounds(self, risk: float) -> Bounds:
        """Return bounds on the population's value, each of which fails with probability ``risk`` at most."""
        share = self.share()
        if share is not None:
            return share.bounds(risk) if share.trials else Bounds(-math.inf, math.inf)
        sample = _proportions(self.parts[0], self._pairs()) if self.is_ratio and len(self.parts) == 1 else None
        if not self.is_ratio:
            ends = [self._end(0, risk, "low"), self._end(0, risk, "high")]
        elif sample is not None:
            ends = [-upper_weighted_mean(sample.negated(), risk), upper_weighted_mean(sample, risk)]
        else:
            top, bottom = ([self._end(which, risk / 2, end) for end in ("low", "high")] for which in (0, 1))
            divisors = max(bottom[0], 0.0), bottom[1]  # never negative
            quotients = [one / other if other else math.copysign(math.inf, one) for one in top for other in divisors]
            ends = [min(quotients), max(quotients)]
        return Bounds(*map(self._in_own_unit, ends))

    def end(self, risk: float, end: str) -> float:
        """Return the "low" or the "high" end of the bounds alone: of sums of rates each takes its time."""
        if self.is_ratio or self.share() is not None:
            return float(getattr(self.bounds(risk), end))
        return self._in_own_unit(self._end(0, risk, end))

    def quick_bounds(self, risk: float) -> Bounds:
        """Return bounds as wide as ``bounds`` or wider, at once: means of disjoint groups are bounded one by one."""
        if self.is_ratio or self.share() is not None:
            return self.bounds(risk)
        ends = []
        for sign in (-1.0, 1.0):
            means = (_quick_upper(part, sign * part.values[0], risk / len(self.parts)) for part in self.parts)
            ends.append(self._in_own_unit(self.constants[0] + sign * sum(means)))
        return Bounds(*ends)

    def share(self) -> AnyShare | None:
        """Return the one share that decides, where there is one."""
        if len(self.parts) != 1 or self.parts[0].is_drawn:
            return None
        part, pairs = self.parts[0], [tuple(pair) for pair in self._pairs().T.tolist()]
        distinct = sorted(set(pairs))  # a dozen: numpy would take ten times as long
        kinds, places = np.array(distinct), np.array([distinct.index(pair) for pair in pairs])
        counting = np.flatnonzero(kinds.any(axis=1))
        if counting.size != 2:  # noqa: PLR2004 - two kinds are one share
            return None
        one, other = counting
        turn = kinds[one, 0] * kinds[other, 1] - kinds[other, 0] * kinds[one, 1]
        if turn == 0 or kinds[:, 1].min() < 0:
            return None
        if turn < 0:
            one, other = other, one
        top, bottom = (
            (math.ldexp(at_one, unit), math.ldexp(at_other, unit))
            for at_one, at_other, unit in zip(distinct[one], distinct[other], self.exponents, strict=True)
        )
        is_hit, is_miss = (places == kind for kind in (one, other))
        if part.spread is not None:
            return WeightedShare(
                part.levels, part.spread[is_hit].sum(axis=0), part.spread[is_miss].sum(axis=0), top, bottom
            )
        hits, misses = (float(part.counts[is_kind].sum()) for is_kind in (is_hit, is_miss))
        return Share(hits, hits + misses, top, bottom)

    def counts(self) -> list[tuple[Dataset, int]]:
        """Return the numbers of rows that the bounds rest on, for each part of the data."""
        share = self.share()
        if share is not None:
            return [(self.parts[0].rows, round(share.trials))]
        if self.is_ratio and len(self.parts) == 1:  # those that count, in expectation where predictions are drawn
            part, bottom = self.parts[0], np.abs(self._pairs()[1])
            return [(part.rows, round(float(part.counts @ bottom / bottom.max())) if bottom.any() else 0)]
        return [(part.rows, part.n_rows) for part in self.parts]

    def _pairs(self) -> FloatArray:
        """Return what each kind of row adds to top and to bottom, for a single part: it carries the constants too."""
        return np.asarray(self.parts[0].values + np.array(self.constants)[:, None])

    def _end(self, which: int, risk: float, end: str) -> float:
        """Return a bound on the top (0) or the bottom (1) alone."""
        sign = 1.0 if end == "high" else -1.0
        varying = [(part, sign * part.values[which]) for part in self.parts if np.ptp(part.values[which])]
        same = [float(part.values[which, 0]) for part in self.parts if not np.ptp(part.values[which])]
        return self.constants[which] + sum(same) + sign * _upper_sum(varying, risk)

    def best(self, sense: str, factor: float = 1.0) -> "GoalOutcome":
        """Return the most favourable outcome there could be, on so many times the rows."""
        parts = []
        for part in self.parts:
            counts, values = np.zeros(part.counts.size), part.values[0] if sense == "<=" else -part.values[0]
            counts[np.argmin(values)] = round(part.n_rows * factor)
            shares = counts / part.n_rows
            spread = None if part.spread is None else np.outer(shares, part.spread.sum(axis=0))
            parts.append(part._replace(counts=counts, totals=shares * part.totals.sum(), spread=spread))
        return self._replace(parts=tuple(parts))


class ComparedOutcome(NamedTuple):
    """How two ratios stand that a goal compares: each is bounded by itself, at half of the risk."""

    one: GoalOutcome
    other: GoalOutcome
    left: ComparedRatios

    @property
    def is_ratio(self) -> bool:
        """Return that a bound on it multiplies denominators."""
        return True

    @property
    def parts(self) -> tuple[CountedRows, ...]:
        """Return the rows of both."""
        return self.one.parts + self.other.parts

    @property
    def estimate(self) -> float:
        """Return the difference, or the quotient, on the rows themselves."""
        return self.left.compare(self.one.estimate, self.other.estimate)

    def bounds(self, risk: float) -> Bounds:
        """Return bounds on the population's value, each of which fails with probability ``risk`` at most."""
        own = [side.bounds(risk / 2) for side in (self.one, self.other)]
        one, other = (Bounds(max(ends.low, 0.0), min(ends.high, 1.0)) for ends in own)
        low, high = self.left.compare(one.low, other.high), self.left.compare(one.high, other.low)
        return Bounds(-math.inf if math.isnan(low) else low, math.inf if math.isnan(high) else high)

    def quick_bounds(self, risk: float) -> Bounds:
        """Return the same bounds."""
        return self.bounds(risk)

    def end(self, risk: float, end: str) -> float:
        """Return the "low" or the "high" end of the bounds alone."""
        return float(getattr(self.bounds(risk), end))

    def share(self) -> None:
        """Return no share: two decide."""

    def counts(self) -> list[tuple[Dataset, int]]:
        """Return the numbers of rows that the bounds rest on, for each part of the data."""
        return self.one.counts() + self.other.counts()


def measure_goal(
    goal: Goal, views: Views, predictions: Mapping[str, FloatArray] | None, *, are_drawn: bool = False
) -> GoalOutcome:
    """Return how a goal stands on rows; without predictions, if half of every kind of row were predicted positive.

    Where predictions are drawn they are chances, and the goal is on expectations over the draws.
    """
    if goal.is_total:
        raise ValueError(
            f"The goal {goal} is on a total, which depends on how many rows there are: it is a fact about these rows "
            "and has no confidence. For the population bound a mean, as in cost({1->0: amount}) <= 2.5."
        )
    if isinstance(goal.left, GroupDisparities) and predictions is not None:
        prepared = PreparedPredictions(views, dict(predictions), are_drawn)
        return cast("GoalOutcome", DisparityOutcome.of(goal.left, prepared))  # which has the same methods
    if isinstance(goal.left, ComparedRatios):
        sides = [
            measure_goal(replace(goal, left=side), views, predictions, are_drawn=are_drawn)
            for side in (goal.left.one, goal.left.other)
        ]
        return cast("GoalOutcome", ComparedOutcome(sides[0], sides[1], goal.left))  # as above
    if isinstance(goal.left, Ratio):
        rates = [goal.left.numerator, goal.left.denominator]
    else:
        rates = [goal.left - Rate(0.0, goal.right.terms), Rate(1.0)]
    one, other = (_exponent(max(rate.size, abs(rate.constant))) for rate in rates)
    if max(one, other, one - other, _exponent(goal.bound)) > _MOST_EXPONENT:
        raise ValueError(
            f"The numbers in the goal {goal} are too large to add up: the largest is above 2**{_MOST_EXPONENT}. Divide "
            "its costs or factors and its bound by the same number."
        )
    with name_in_errors(goal):
        parts = tuple(parts_of(rates, (one, other), views, predictions, are_drawn=are_drawn))
    constants = math.ldexp(rates[0].constant, -one), math.ldexp(rates[1].constant, -other)
    return GoalOutcome(constants, parts, isinstance(goal.left, Ratio), (one, other))


def _exponent(number: float) -> int:
    """Return the exponent of the largest power of two that is not above a number, 0 for 0."""
    return math.frexp(number)[1] - 1 if number else 0


def margin_of(goal: Goal, outcome: GoalOutcome, risk: float) -> float:
    """Return how far inside the goal's bound the population surely is; negative where it may be outside."""
    return goal.bound - outcome.end(risk, "high") if goal.sense == "<=" else outcome.end(risk, "low") - goal.bound


def shortage(goal: Goal, outcome: GoalOutcome, risk: float) -> str | None:
    """Say how many rows are needed where these are too few to certify the goal, whatever the predictions."""
    share = outcome.share()
    if share is not None:
        if can_certify(goal, share, risk):
            return None
        allowed = allowed_failures(goal, share)
        needed = _least(lambda n_rows: share.can_show(allowed, risk, n_rows), 1)
        what = " that count in the ratio" if outcome.is_ratio else ""
        return _too_few(needed, [f"{needed} rows of {outcome.parts[0].rows}{what} (there are {share.trials:.0f})"])
    if outcome.is_ratio or margin_of(goal, outcome.best(goal.sense), risk) >= 0:
        return None
    smallest = min(part.n_rows for part in outcome.parts)

    def can_hold(n_rows: int) -> bool:
        return margin_of(goal, outcome.best(goal.sense, n_rows / smallest), risk) >= 0

    needed = _least(can_hold, smallest)
    sizes = [(part, math.ceil(part.n_rows * (needed or 0) / smallest)) for part in outcome.parts]
    return _too_few(needed, [f"{count} rows of {part.rows} (there are {part.n_rows})" for part, count in sizes])


def _too_few(needed: int | None, sizes: list[str]) -> str:
    if needed is None:
        return "no number of rows is enough: a rate may come near such a bound but cannot be shown to keep it"
    return f"too few rows: even without a single failure it takes {' and '.join(sizes)}"


def _least(can_hold: Callable[[int], bool], start: int) -> int | None:
    """Return the least number of rows that is enough, or None."""
    most = start
    while not can_hold(most):
        most *= 2
        if most > _MOST_ROWS:
            return None
    least = most // 2 if most > start else start - 1
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if can_hold(middle) else (middle, most)
    return most


def tighten_goal(goal: Goal, outcome: GoalOutcome, risk: float) -> Goal:
    """Return the goal with the bound that rows such as these must meet to certify it."""
    problem = shortage(goal, outcome, risk)
    if problem is not None:
        raise ValueError(f"The goal {goal} cannot be certified here: {problem}.")
    share = outcome.share()
    if share is not None:
        return goal.with_bound(needed_bound(goal, share, risk)).with_confidence(None)
    end = outcome.end(risk, "high" if goal.sense == "<=" else "low")
    if not math.isfinite(end - outcome.estimate):
        raise ValueError(f"The goal {goal} cannot be certified here: its ratio has no bound on rows such as these.")
    return goal.with_bound(goal.bound - (end - outcome.estimate)).with_confidence(None)


def _upper_sum(means: Sequence[tuple[CountedRows, FloatArray]], risk: float) -> float:
    """Return an upper bound on the sum of the parts' means."""
    if len(means) == 2 and are_disjoint(means[0][0].rows, means[1][0].rows):  # noqa: PLR2004
        (one, values), (other, other_values) = means
        if one.is_weighted or other.is_weighted:
            return upper_weighted_sum(one.sample(values), other.sample(other_values), risk)
        if one.is_drawn:  # as above
            return _upper_sum_of_expectations(means, risk)
        steps = [_as_step(part, values) for part, values in means]
        if steps[0] is not None and steps[1] is not None:
            least = sum(float(values.min()) for _, values in means)
            return least + upper_sum_of_two(steps[0], steps[1], risk)
    return sum(_upper(part, values, risk / len(means)) for part, values in means)


def _as_step(part: CountedRows, values: FloatArray) -> ScaledShare | None:
    """Return a mean of two values as its least value plus a step; None for one that is more than that."""
    if np.unique(values).size != 2:  # noqa: PLR2004
        return None
    hits = float(part.counts[values == values.max()].sum())
    return ScaledShare(hits, float(part.counts.sum()), float(np.ptp(values)))


def _upper(part: CountedRows, values: FloatArray, risk: float) -> float:
    if part.is_weighted:
        return upper_weighted_mean(part.sample(values), risk)
    if part.is_drawn:  # betting is narrower where few rows are nearly sure of an answer, counting where most are
        return min(_quick_upper(part, values, risk), upper_weighted_mean(part.sample(values), (1.0 - _COUNTED) * risk))
    return upper_mean(values, part.counts, risk)


def _quick_upper(part: CountedRows, values: FloatArray, risk: float) -> float:
    """Return the same bound, or of drawn rows a wider one, at once."""
    if part.is_weighted or not part.is_drawn:
        return _upper(part, values, risk)
    low, high = float(values.min()), float(values.max())
    mean = (float(values @ part.counts) / part.n_rows - low) / (high - low)
    return low + (high - low) * upper_bounded_mean(mean, part.n_rows, _COUNTED * risk)


def _upper_sum_of_expectations(means: Sequence[tuple[CountedRows, FloatArray]], risk: float) -> float:
    """Return an upper bound on the sum of two means of drawn rows of disjoint groups: the better of two.

    One is by betting on both. For the other each value is rounded to the nearer end of its span. The rounded values are
    two shares of rows, with an exact bound on their sum; what rounding changed is nothing for rows that are sure of an
    answer, and its mean is bounded by betting.
    """
    one, other = (part.sample(values) for part, values in means)
    steps, total = [], 0.0
    for part, values in means:
        low, high = float(values.min()), float(values.max())
        is_high, half = values >= (low + high) / 2, (high - low) / 2
        steps.append(ScaledShare(round(float(part.counts[is_high].sum())), part.n_rows, high - low))
        rest = np.clip(values - np.where(is_high, high, low), -half, half)
        sample = part.sample(rest)._replace(span=(-half, half))
        total += low + upper_weighted_mean(sample, _COUNTED * _REST * risk / len(means))
    total += upper_sum_of_two(steps[0], steps[1], _COUNTED * (1.0 - _REST) * risk)
    return min(total, upper_weighted_sum(one, other, (1.0 - _COUNTED) * risk))


def _proportions(part: CountedRows, pairs: FloatArray) -> WeightedSample | None:
    """Return a ratio as a weighted mean of ``top / bottom``, unless some rows count in the top alone."""
    top, bottom = pairs
    if top[bottom == 0].any() or bottom.min() < 0:
        return None
    inside = bottom > 0
    values, factors = top[inside] / bottom[inside], bottom[inside] / bottom.max()
    return part.only(inside).sample(values, factors)
