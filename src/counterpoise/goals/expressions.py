"""Rates, ratios of them and the worst of several, and goals, which are limits on those.

All are data that can be compared, hashed, printed and evaluated.
"""

import math
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self, cast

from counterpoise._base.checks import check_confidence
from counterpoise.goals.binding import PreparedPredictions, Views, name_in_errors, no_rows_reason, prepare
from counterpoise.goals.checks import GoalCheck, check_part, how_far_beyond
from counterpoise.goals.terms import (
    EACH,
    Dataset,
    Metric,
    NoRows,
    RowCount,
    Term,
    UnknownValue,
    check_finite,
    format_number,
    fractions,
    is_number,
    without_negatives,
)
from counterpoise.goals.words import with_size
from counterpoise.solvers.linear_program import FEASIBLE
from counterpoise.theory.confidence import Bounds

_ZERO = 1e-12  # part of the size of a rate, below which its sum over rows is rounding: one row in 10^9 counts more


class Expression:
    """Base of rates and ratios: comparisons make goals, predictions give values."""

    __array_ufunc__ = None  # numpy's numbers leave the arithmetic to us
    comparison = ""  # the sign that a goal on it is written with, where that is not its sense
    least, most = -math.inf, math.inf  # that its value is known to lie between, whatever is predicted

    def __eq__(self, other: object) -> bool:
        if is_number(other):
            raise TypeError(
                f"== compares two rates, and makes no goal of a rate and a number. Write equal({self}, {other}, "
                f"tolerance=0.005), or the text {f'{self} == {other} +- 0.005'!r}."
            )
        return self.key() == other.key() if isinstance(other, type(self)) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key())

    def key(self) -> Any:
        """Return what is the same for equal expressions, and for no others."""
        raise NotImplementedError

    def __le__(self, other: Any) -> "Goal":
        return make_goal(self, "<=", other)

    def __ge__(self, other: Any) -> "Goal":
        return make_goal(self, ">=", other)

    def __lt__(self, other: Any) -> "Goal":
        raise TypeError(f"A goal is written with <= or >=; got {self} < {other}.")

    def __gt__(self, other: Any) -> "Goal":
        raise TypeError(f"A goal is written with <= or >=; got {self} > {other}.")

    def __pos__(self) -> Self:
        return self

    def value(
        self, predictions: Any, data: Any, *, pos_label: Any = None, defer_label: Any = None, classes: Any = None
    ) -> float:
        """Return the indicator rate: what it is for these predicted labels.

        Parameters
        ----------
        predictions : array of labels, or a dict of them by dataset
        data : Table, or dict of Tables by dataset
            A single table is the dataset ``train``.
        pos_label : label, optional
            The positive class; by default the last of the sorted classes.
        defer_label : label, optional
            What predictions hold for rows that are deferred to a person.
        classes : array of labels, optional
            All there are, where the labels of the data do not show each of them. A prediction that is neither among
            them, nor a label of the data, nor the ``defer_label`` is refused.
        """
        options = {"pos_label": pos_label, "defer_label": defer_label, "classes": classes}
        return self.at(prepare(predictions, data, kind="labels", **options))

    def expected_value(
        self, probabilities: Any, data: Any, *, pos_label: Any = None, defer_label: Any = None, classes: Any = None
    ) -> float:
        """Return the expected rate of a randomized classifier, given its probabilities of the positive class.

        The probabilities have shape (n_samples,), or (n_samples, n_classes) as ``decision_proba`` returns them, which
        they must have for more than two classes. With a ``defer_label`` there is one more column, the last: how
        likely each row is deferred. Of a ratio this is the ratio of the expectations.
        """
        options = {"pos_label": pos_label, "defer_label": defer_label, "classes": classes}
        return self.at(prepare(probabilities, data, kind="probabilities", **options))

    def ramp_value(self, scores: Any, data: Any, *, pos_label: Any = None, classes: Any = None) -> float:
        """Return the ramp rate: a score z counts as a positive prediction with ``max(0, min(1, 1/2 + z))``."""
        return self.at(prepare(scores, data, kind="scores", pos_label=pos_label, classes=classes))

    def at(self, prepared: PreparedPredictions) -> float:
        """Return the value for predictions that were checked already."""
        raise NotImplementedError

    def members(self, views: Views | None = None) -> "tuple[Rate | Ratio | Searched, ...]":  # noqa: ARG002 - for several
        """Return what it is the worst of: itself, unless it is the worst of several.

        Without data these are expressions whose values reach as far as its own can.
        """
        return (cast("Rate | Ratio | Searched", self),)

    def left_out(self, views: Views) -> tuple[str, ...]:
        """Return the groups and classes that have fewer rows than ``min_rows`` asks for, with their numbers."""
        small = (term for term in terms_of(self) if term.metric.min_rows)
        return tuple(with_size(f"of={text}", size) for term in small for text, size in views.average_over(term)[1])

    @property
    def datasets(self) -> tuple[str, ...]:
        """Return the names of the datasets, in the order of their first mention."""
        return tuple(dict.fromkeys(name for term in terms_of(self) for name in term.rows.names))

    def __repr__(self) -> str:
        return f"<{self}>"


@dataclass(frozen=True, eq=False, repr=False)
class Rate(Expression):
    """A constant plus a linear combination of metrics on datasets.

    Made by the functions of ``counterpoise.goals`` and by arithmetic on them. Two rates are equal where they count the
    same predictions on the same rows with the same coefficients, however they were written, if every row is decided: a
    deferred row is neither a positive nor a negative prediction.

    Examples
    --------
    >>> from counterpoise.goals import Dataset, error_rate, accuracy, negative_rate, positive_rate
    >>> train = Dataset("train")
    >>> negative_rate(train) == 1 - positive_rate(train)
    True
    >>> print(2 * error_rate(train) - positive_rate(train, sex="F") / 4)
    2 * error_rate - 0.25 * positive_rate(sex=F)
    """

    constant: float
    terms: tuple[Term, ...] = ()

    @property
    def row_counts(self) -> tuple[RowCount, ...]:
        """Return what is counted on which rows, out of which."""
        return tuple(count for term in self.terms for count in term.row_counts())

    @property
    def size(self) -> float:
        """Return how large the terms can be together: their rounding is a tiny part of this, and not of their sum."""
        return sum(
            abs(term.coefficient) * max(abs(count.coefficient) for count in term.metric.counts) for term in self.terms
        )

    @property
    def whole_size(self) -> float:
        """Return how large the terms and the constant can be together."""
        return self.size + abs(self.constant)

    @property
    def has_amounts(self) -> bool:
        """Return whether it is in the unit of amounts of rows, as a cost or a total of them is, and no share."""
        return any(count.value is not None for term in self.terms for count in term.metric.counts)

    @property
    def rates(self) -> "tuple[Rate, ...]":
        """Return the rates that it is made of: itself."""
        return (self,)

    def resolve(self, views: Views) -> "Rate":
        """Return the rate with averages and sums over all classes written out, and amounts in parts of their size."""
        terms: list[Term] = []
        for term in self.terms:
            coefficient, metric, rows = term
            if rows.twin is not None:
                views.check_pairs()
            is_whole = rows.of is None and rows.label is None and rows.baseline is None
            if rows.of == EACH:
                texts = views.average_over(term)[0] if metric.min_rows else views.class_texts()
                each = metric._replace(min_rows=0)
                terms += [Term(coefficient / len(texts), each, replace(rows, of=text)) for text in texts]
            elif metric.of_each and is_whole and views.classes.several and views.classes.positive is None:
                each, texts = metric._replace(counts=metric.of_each, of_each=()), views.class_texts()
                share = coefficient / len(texts) if metric.is_mean else coefficient
                terms += [Term(share, each, replace(rows, of=text)) for text in texts]
            else:
                terms.append(term)
        return Rate(self.constant, tuple(_with_units(term, views) for term in terms))

    def at(self, prepared: PreparedPredictions) -> float:
        with name_in_errors(self):
            resolved = self.resolve(prepared.views)
        return prepared.value(resolved)

    def __abs__(self) -> "Absolute":
        return Absolute(self)

    def __add__(self, other: Any) -> "Rate":
        addend = as_rate(other)
        return (
            NotImplemented if addend is None else make_rate(self.constant + addend.constant, self.terms + addend.terms)
        )

    __radd__ = __add__

    def __neg__(self) -> "Rate":
        return self * -1.0

    def __sub__(self, other: Any) -> "Rate":
        subtrahend = as_rate(other)
        if subtrahend is None:
            return NotImplemented
        opposite = tuple(term._replace(coefficient=-term.coefficient) for term in subtrahend.terms)
        return make_rate(self.constant - subtrahend.constant, self.terms + opposite)

    def __rsub__(self, other: Any) -> "Rate":
        return (-self).__add__(other)

    def __mul__(self, other: Any) -> "Rate":
        if isinstance(other, Rate):
            if not self.terms or not other.terms:
                return other * self.constant if not self.terms else self * other.constant
            raise TypeError(f"The product of two rates is not linear, so no goal can hold it: ({self}) * ({other}).")
        if not is_number(other):
            return NotImplemented
        factor = check_finite(other)
        scaled = [term._replace(coefficient=term.coefficient * factor) for term in self.terms]
        return make_rate(self.constant * factor, scaled)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> "Rate | Ratio":
        if isinstance(other, Rate) and other.terms:
            return Ratio(self, other)
        if isinstance(other, Rate):
            other = other.constant
        if not is_number(other):
            return NotImplemented
        if other == 0:
            raise ZeroDivisionError(f"A rate cannot be divided by zero: ({self}) / 0.")
        divisor = check_finite(other)
        scaled = [term._replace(coefficient=term.coefficient / divisor) for term in self.terms]
        return make_rate(self.constant / divisor, scaled)

    def __rtruediv__(self, other: Any) -> "Rate | Ratio":
        return Rate(check_finite(other)) / self if is_number(other) else NotImplemented

    def key(self) -> frozenset[tuple[Any, float]]:
        """Return coefficients of shares of rows and of positive predictions, which are the same for equal rates.

        Rows labelled (or predicted) negative are written as all rows less the positive ones, and negative predictions
        as all rows less those predicted positive, as they are unless rows are deferred: those count only where nothing
        else does. The key None is the constant.
        """
        parts: defaultdict[Any, list[float]] = defaultdict(list)
        parts[None].append(self.constant)
        for term in self.terms:
            is_of_deferral = all(count.positive is None for count in term.metric.counts)
            for coefficient, positive, rows, out_of, called in term.row_counts():
                named = (called, term.metric.min_rows) if term.metric.min_rows else called
                for sign, part in without_negatives(rows, out_of) if is_of_deferral or positive is not None else ():
                    amount = sign * coefficient
                    if positive is None:
                        parts[None, part, out_of].append(amount)
                        continue
                    if not positive:
                        parts[None if part == out_of else (False, part, out_of)].append(amount)
                    parts[True, part, out_of, named].append(amount if positive else -amount)
        sums = {key: math.fsum(values) for key, values in parts.items()}  # exact, so that the order cannot matter
        return frozenset((key, value) for key, value in sums.items() if value)

    def __str__(self) -> str:
        """Return the text from which the same constant and terms are read."""
        pieces = [(term.coefficient, str(term)) for term in self.terms]
        if self.constant or not pieces:
            comes_first = bool(pieces) and pieces[0][0] < 0 < self.constant  # as in 1 - recall
            pieces.insert(0 if comes_first else len(pieces), (self.constant, ""))
        text = ""
        for number, name in pieces:
            sign = ("-" if number < 0 else "") if not text else " - " if number < 0 else " + "
            factors = [*([] if name and abs(number) == 1 else [format_number(abs(number))]), *filter(None, [name])]
            text += sign + " * ".join(factors)
        return text


@dataclass(frozen=True, eq=False, repr=False)
class Ratio(Expression):
    """A ratio of two rates, such as precision, usable in goals against a number.

    ``numerator / denominator >= bound`` is multiplied through to ``numerator - bound * denominator >= 0``, which is
    linear (Appendix B of Goh et al. 2016). The denominator must not be negative for any predictions; binding
    checks it. Where it is zero the ratio has no value, and such a goal holds if the multiplied form does.

    Examples
    --------
    >>> from counterpoise.goals import Table, precision
    >>> ratio = precision("train")
    >>> ratio.numerator, ratio.denominator
    (<true_positives>, <positive_rate>)
    >>> ratio.value([1, 1, 0, 1], Table(None, y=[1, 0, 0, 1])) == 2 / 3
    True
    """

    numerator: Rate
    denominator: Rate
    name: str = ""  # the name it goes by, if any; equal ratios may have several

    @property
    def size(self) -> float:
        """Return how large it can be, about."""
        return self.numerator.whole_size / self.denominator.whole_size

    def resolve(self, views: Views) -> "Ratio":
        """Return the ratio with averages and sums over all classes written out."""
        return Ratio(self.numerator.resolve(views), self.denominator.resolve(views), self.name)

    @property
    def rates(self) -> tuple[Rate, ...]:
        """Return its numerator and denominator."""
        return self.numerator, self.denominator

    @property
    def is_share(self) -> bool:
        """Return whether it lies between 0 and 1, whatever is predicted."""
        tops, bottoms = fractions(self.numerator), fractions(self.denominator)
        if self.numerator.constant or self.denominator.constant or len(tops) != 1 or len(bottoms) != 1:
            return False
        is_counted = not any(rate.has_amounts for rate in self.rates)
        return is_counted and bool((tops[0].top >= 0).all() and (tops[0].top <= bottoms[0].top).all())

    def key(self) -> tuple[Rate, Rate]:
        return self.numerator, self.denominator

    def __abs__(self) -> "Absolute":
        return Absolute(self)

    def at(self, prepared: PreparedPredictions) -> float:
        top, bottom = self.numerator.at(prepared), self.denominator.at(prepared)
        if abs(bottom) > _ZERO * self.denominator.whole_size:
            return top / bottom
        return math.copysign(math.inf, top) if abs(top) > _ZERO * self.numerator.whole_size else math.nan

    def __mul__(self, other: Any) -> "Ratio":
        return Ratio(self.numerator * other, self.denominator) if self._takes(other) else NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> "Ratio":
        return Ratio(cast("Rate", self.numerator / other), self.denominator) if self._takes(other) else NotImplemented

    def __rtruediv__(self, other: Any) -> "Ratio":
        return Ratio(self.denominator * other, self.numerator) if self._takes(other) else NotImplemented

    def __add__(self, other: Any) -> "Ratio":
        bottom = self.denominator
        return Ratio(self.numerator + other * bottom, bottom) if self._takes(other) else NotImplemented

    __radd__ = __add__

    def __neg__(self) -> "Ratio":
        return self * -1.0

    def __sub__(self, other: Any) -> "Ratio":
        return self + -other if self._takes(other) else NotImplemented

    def __rsub__(self, other: Any) -> "Ratio":
        return (-self).__add__(other)

    def _takes(self, other: Any) -> bool:
        """Return whether it can be combined with a value: with numbers, never with rates."""
        if isinstance(other, Expression):
            raise TypeError(
                f"A ratio can be combined with numbers only: {self} and {other} together are not linear once multiplied"
                " through. Write a goal on the ratio with a number as its bound, or for the groups of a column "
                "max_difference(precision, by=sex) <= 0.05."
            )
        return is_number(other)

    def __str__(self) -> str:
        return self.name or f"{_in_parentheses(self.numerator)} / {_in_parentheses(self.denominator)}"


class Searched(Expression):
    """What is no linear limit, but one for each choice of some numbers: rules are chosen by a search of those."""

    bounds = Bounds(-1.0, 1.0)  # between which it lies
    instead = "bound each of them, as in every_group(precision, by=sex) >= 0.8"  # where goals must be linear

    @property
    def rates(self) -> tuple["Rate", ...]:
        """Return the rates that it is made of."""
        raise NotImplementedError

    def resolve(self, views: Views) -> Self:
        """Return the same with averages and sums over all classes written out."""
        raise NotImplementedError

    def exceeds(self, bound: float, sense: str, prepared: PreparedPredictions) -> bool:
        """Return whether it is beyond a bound by more than the rounding of the rates."""
        raise NotImplementedError

    @property
    def size(self) -> float:
        """Return how large it can be, about."""
        return 1.0


@dataclass(frozen=True, eq=False, repr=False)
class ComparedRatios(Searched):
    """What one ratio has more than another, or how many times as much: no linear limit, but a search of such limits.

    For some t every ratio of a goal lies between t and t plus its bound. Where a ratio has no value, as the precision
    of a group of which nobody is predicted positive, there is nothing to compare.

    Examples
    --------
    >>> from counterpoise.goals import Table, max_difference, precision
    >>> goal = max_difference(precision, by="sex") <= 0.1
    >>> table = Table(None, y=[1, 0, 1, 1], sensitive_features={"sex": list("FFMM")})
    >>> goal.left.value([1, 1, 1, 0], table)
    0.5
    """

    one: Ratio
    other: Ratio
    is_quotient: bool = False

    @property
    def rates(self) -> tuple[Rate, ...]:
        """Return the numerators and denominators of both."""
        return self.one.numerator, self.one.denominator, self.other.numerator, self.other.denominator

    @property
    def bounds(self) -> Bounds:  # type: ignore[override]
        """Return between which numbers it lies: of a quotient, that of the least to the largest."""
        return Bounds(0.0 if self.is_quotient else -1.0, 1.0)

    def resolve(self, views: Views) -> Self:
        """Return the same with averages and sums over all classes written out."""
        return replace(self, one=self.one.resolve(views), other=self.other.resolve(views))

    def key(self) -> tuple[Any, ...]:
        return self.one.key(), self.other.key(), self.is_quotient

    def at(self, prepared: PreparedPredictions) -> float:
        return self.compare(self.one.at(prepared), self.other.at(prepared))

    def compare(self, one: float, other: float) -> float:
        """Return the difference of two values, or their quotient, 1 of zeros; not a number where one has none."""
        if self.is_quotient and not other:
            return math.inf if one > 0 else one + 1.0
        return one / other if self.is_quotient else one - other

    def exceeds(self, bound: float, sense: str, prepared: PreparedPredictions) -> bool:
        """Return whether the comparison is beyond a bound by more than the rounding of the rates."""
        ends = []
        for ratio, sign in zip((self.one, self.other), (1.0, -1.0), strict=True):
            top, bottom = ratio.numerator.at(prepared), ratio.denominator.at(prepared)
            if abs(bottom) <= _ZERO * ratio.denominator.whole_size:
                return False
            rounding = FEASIBLE * ratio.numerator.size * (sign if sense == "<=" else -sign)
            ends.append((top - rounding) / bottom)
        one, other = ends
        if self.is_quotient:  # which is multiplied through: rounding may leave less than 0 to divide by
            return one > (bound + FEASIBLE) * other if sense == "<=" else one < (bound - FEASIBLE) * other
        return one - other > bound + FEASIBLE if sense == "<=" else one - other < bound - FEASIBLE

    def __str__(self) -> str:
        return f"{self.one} {'/' if self.is_quotient else '-'} {self.other}"


class WorstOf(Expression):
    """The worst of several rates or ratios, known once there are data: of groups, of classes, of two signs."""

    sense: str = ""  # the only one in which a bound on it is a bound on each

    def at(self, prepared: PreparedPredictions) -> float:
        if not self.sense:
            raise TypeError(f"{self} has a value for each of its parts; write a goal on it, as in {self} >= 0.8.")
        values = [member.at(prepared) for member in self.members(prepared.views)]
        values = [value for value in values if not math.isnan(value)] or values[:1]  # of some ratios there is none
        return min(values) if self.sense == ">=" else max(values)

    def _refuse(self, *_other: Any) -> Any:
        raise TypeError(
            f"{self} is the worst of several rates, which is not linear: it stands alone on one side of a goal, with a "
            f"number on the other, as in {self} {self.sense or '<='} 0.1."
        )

    def describe_part(self, place: int, value: float, views: Views) -> str:  # noqa: ARG002 - of an equality
        """Return what the worst value is of: the part at a place."""
        return str(self.members(views)[place])

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __neg__ = _refuse


@dataclass(frozen=True, eq=False, repr=False)
class Absolute(WorstOf):
    """The absolute value of a rate or a ratio, most often of a difference."""

    inner: "Rate | Ratio"
    sense = "<="
    least = 0.0

    def members(self, views: Views | None = None) -> "tuple[Rate | Ratio, ...]":  # noqa: ARG002 - as for any data
        return self.inner, -self.inner

    def key(self) -> frozenset["Rate | Ratio"]:
        return frozenset(self.members())

    def __str__(self) -> str:
        return f"abs({self.inner})"


def _with_units(term: Term, views: Views) -> Term:
    """Return a term whose amounts are in parts of their mean size, by which sums of amounts are multiplied again.

    A total is then as many times the mean of all rows of its dataset as these weigh.
    """
    _, metric, rows = term
    if rows.value is not None:
        return term._replace(rows=replace(rows, unit=views.mean_amount(rows)))
    if not any(count.value and count.unit is None for count in metric.counts):
        return term
    factor = views.weight_unit(rows.name) * views.total(Dataset(rows.name)) if metric.is_total else 1.0
    counts = []
    for count in metric.counts:
        if count.value is None:
            counts.append(count)
            continue
        unit = views.mean_amount(replace(rows, value=count.value))
        counts.append(count._replace(coefficient=count.coefficient * unit * factor, unit=unit))
    return term._replace(metric=metric._replace(counts=tuple(counts)))


def terms_of(expression: "Goal | Expression") -> tuple[Term, ...]:
    """Return all terms of a goal, or of the rates that an expression is made of."""
    if isinstance(expression, Goal):
        return terms_of(expression.left) + expression.right.terms
    return tuple(term for one in expression.members() for rate in one.rates for term in rate.terms)


def amount_columns(expressions: "Iterable[Goal | Expression]") -> tuple[str, ...]:
    """Return the columns of amounts that goals or rates count with."""
    terms = [term for one in expressions for term in terms_of(one)]
    values = [value for term in terms for value in (term.rows.value, *(count.value for count in term.metric.counts))]
    return tuple(dict.fromkeys(value for value in values if value is not None))


def as_rate(value: Any) -> "Rate | None":
    """Return a rate or a number as a rate, and None for anything else."""
    if isinstance(value, Rate):
        return value
    return Rate(check_finite(value)) if is_number(value) else None


def make_rate(constant: float, terms: Iterable[Term]) -> Rate:
    """Return a rate with terms of one metric on the same rows added up, after checking its numbers."""
    sums: dict[tuple[Metric, Dataset], float] = {}
    for coefficient, metric, rows in terms:
        sums[metric, rows] = sums.get((metric, rows), 0.0) + coefficient
    remaining = tuple(
        Term(coefficient, *key) for key, coefficient in sums.items() if coefficient
    )  # but those that cancel
    for term in remaining:
        check_finite(term.coefficient)
        for count in term.metric.counts:
            if abs(count.coefficient) != 1 and not check_finite(term.coefficient * count.coefficient):
                raise ValueError(
                    f"A factor in a goal must not be so small that it rounds to 0; got {term.coefficient!r} * {term}."
                )
    return Rate(check_finite(constant), remaining)


def _in_parentheses(rate: Rate) -> str:
    text = str(rate)
    is_plain = text[0] != "-" and " * " not in text and len(rate.terms) + bool(rate.constant) <= 1
    return text if is_plain else f"({text})"


@dataclass(frozen=True, eq=False)
class Goal:
    """A limit on a rate: ``left <= right`` or ``left >= right``.

    Made by comparing rates and numbers, or by ``parse_goal``. Two goals are equal where both sides are, so
    ``a <= b`` equals ``b >= a``. For an equality see ``equal``. A goal may carry the confidence with which it must
    hold on the population: ``evaluate`` looks at given rows only, ``counterpoise.certify`` proves.

    Examples
    --------
    >>> from counterpoise.goals import Dataset, Table, parse_goal, positive_rate
    >>> train = Dataset("train")
    >>> goal = positive_rate(train.where(sex="F")) >= 0.8 * positive_rate(train.where(sex="M"))
    >>> print(goal)
    positive_rate(sex=F) >= 0.8 * positive_rate(sex=M)
    >>> parse_goal(str(goal)) == goal
    True
    >>> table = Table(None, y=[0, 1, 1, 0], sensitive_features={"sex": ["F", "F", "M", "M"]})
    >>> print(goal.evaluate([0, 1, 1, 1], table))
    positive_rate(sex=F) >= 0.8 * positive_rate(sex=M): missed by 0.3 (0.5, bound 0.8)
    """

    left: "Rate | Ratio | Searched | WorstOf"
    sense: str
    right: Rate
    confidence: float | None = None

    def __post_init__(self) -> None:
        if self.sense not in {"<=", ">="}:
            raise ValueError(f"A goal is written with <= or >=; got {self.sense!r}.")
        is_plain = isinstance(self.left, Rate) and self.left.terms and not self.right.terms  # nothing can cancel
        is_plain = is_plain or isinstance(self.left, Searched)
        if not is_plain and not isinstance(self.left, WorstOf) and not self.linear.terms:
            raise ValueError(f"A goal needs a rate that does not cancel; got {self}, which no prediction changes.")

    def parts(self, views: Views) -> tuple["Goal", ...]:
        """Return the goals on one rate or ratio each that this one stands for, with all classes written out."""
        with name_in_errors(self):
            right = self.right.resolve(views)
            return tuple(replace(self, left=member.resolve(views), right=right) for member in self.left.members(views))

    def members(self, views: Views) -> "tuple[Rate | Ratio | Searched, ...]":
        """Return the rates or ratios that its parts are on, as they would be written."""
        return self.left.members(views)

    @property
    def comparison(self) -> str:
        """Return the sign between both sides as the goal is written: ``<=``, ``>=``, or ``+-`` of an equality."""
        return self.left.comparison or self.sense

    @property
    def is_equality(self) -> bool:
        """Return whether the goal asks a rate to be a number, up to a tolerance, which is then its bound."""
        return self.comparison == "+-"

    @property
    def has_parts(self) -> bool:
        """Return whether the goal is on the worst of several rates."""
        return isinstance(self.left, WorstOf)

    @property
    def sign(self) -> float:
        """Return 1.0 for an upper bound and -1.0 for a lower one: the direction in which a bound is looser."""
        return 1.0 if self.sense == "<=" else -1.0

    @property
    def is_ratio(self) -> bool:
        """Return whether the bound multiplies a denominator."""
        return any(isinstance(one, Ratio | Searched) for one in self.left.members())

    @property
    def compares_ratios(self) -> bool:
        """Return whether it limits how far ratios or shares are apart, which is not linear once multiplied through."""
        return any(isinstance(one, Searched) for one in self.left.members())

    @property
    def instead(self) -> str:
        """Return which goal to write where goals must be linear and this one compares ratios."""
        return next((one.instead for one in self.left.members() if isinstance(one, Searched)), "")

    @property
    def linear(self) -> Rate:
        """Return the rate that must be at most 0; a ratio is multiplied through by its denominator."""
        if isinstance(self.left, WorstOf):
            raise TypeError(f"{self} is several limits at once, one for each of its parts.")
        if isinstance(self.left, Searched):
            raise TypeError(
                f"{self} compares ratios, which is not linear once multiplied through: rules of scores and mixtures of "
                "models are searched for it, as GoalClassifier and MixtureClassifier do for two classes. Here "
                f"{self.instead}."
            )
        if isinstance(self.left, Ratio):
            one, other = self.left.numerator, self.left.denominator * self.right.constant
        else:
            one, other = self.left, self.right
        return one - other if self.sense == "<=" else other - one

    @property
    def datasets(self) -> tuple[str, ...]:
        """Return the names of the datasets, in the order of their first mention."""
        return tuple(dict.fromkeys(name for term in terms_of(self) for name in term.rows.names))

    @property
    def counted_datasets(self) -> tuple[str, ...]:
        """Return the names under which predictions are counted: flips have one of their own."""
        counts = (count for term in terms_of(self) for count in term.row_counts())
        return tuple(dict.fromkeys(count.rows.name for count in counts))

    @property
    def scale(self) -> float:
        """Return how large what it limits can be: 1 for shares, its amounts for a cost; a tiny part is rounding.

        Of amounts of rows, which data have, about the bound.
        """
        amounts = abs(self.bound) if self.has_amounts else 0.0
        return max(self.right.size, *(one.size for one in self.left.members()), amounts) or 1.0

    @property
    def has_amounts(self) -> bool:
        """Return whether it limits amounts of rows, as a cost or a total of them, and no share."""
        rates = [one.rates[0] for one in self.left.members()]
        return any(rate.has_amounts for rate in (*rates, self.right))

    @property
    def is_total(self) -> bool:
        """Return whether it limits a sum over rows, which depends on how many there are."""
        return any(term.metric.is_total for term in terms_of(self))

    @property
    def compared_columns(self) -> tuple[str, ...]:
        """Return the columns whose values are compared, as in sex=F and by=sex; those of ranges are not."""
        return tuple(dict.fromkeys(name for term in terms_of(self) for name, _ in term.rows.conditions))

    @property
    def bound(self) -> float:
        """Return the number on the right side: the whole bound, or what is added to the rates there."""
        return self.right.constant

    def with_bound(self, bound: float) -> "Goal":
        """Return the same goal with another number on the right side."""
        return replace(self, right=make_rate(float(bound), self.right.terms))

    def with_confidence(self, confidence: float | None) -> "Goal":
        """Return the same goal, to hold on the population with that probability; None: on the rows at hand only."""
        return replace(self, confidence=None if confidence is None else check_confidence(confidence))

    def evaluate(
        self, predictions: Any, data: Any, *, pos_label: Any = None, defer_label: Any = None, classes: Any = None
    ) -> "GoalCheck":
        """Return whether the goal holds for predicted labels; the arguments are those of ``Rate.value``."""
        options = {"pos_label": pos_label, "defer_label": defer_label, "classes": classes}
        return self.at(prepare(predictions, data, kind="labels", **options))

    def evaluate_expected(
        self, probabilities: Any, data: Any, *, pos_label: Any = None, defer_label: Any = None, classes: Any = None
    ) -> "GoalCheck":
        """Return whether the goal holds in expectation for a randomized classifier, as ``Rate.expected_value``."""
        options = {"pos_label": pos_label, "defer_label": defer_label, "classes": classes}
        return self.at(prepare(probabilities, data, kind="probabilities", **options))

    def evaluate_ramp(self, scores: Any, data: Any, *, pos_label: Any = None, classes: Any = None) -> "GoalCheck":
        """Return whether the goal holds for the ramp rates of scores, as ``Rate.ramp_value``."""
        return self.at(prepare(scores, data, kind="scores", pos_label=pos_label, classes=classes))

    def at(self, prepared: PreparedPredictions) -> "GoalCheck":
        """Evaluate the goal for predictions that were checked already."""
        checks = [check_part(part, prepared) for part in self.parts(prepared.views)]
        place = max(range(len(checks)), key=lambda place: (checks[place].violation, how_far_beyond(checks[place])))
        worst = self.worst_part(place, checks[place].value, prepared.views)
        return checks[place]._replace(goal=self, worst=worst, left_out=self.left_out(prepared.views))

    def left_out(self, views: Views) -> tuple[str, ...]:
        """Return the groups and classes that the goal leaves out as too small, with their numbers of rows."""
        return tuple(dict.fromkeys(self.left.left_out(views) + self.right.left_out(views)))

    def worst_part(self, place: int, value: float, views: Views) -> str:
        """Return of which of several rates the worst value is; an empty text for a goal on one."""
        return self.left.describe_part(place, value, views) if isinstance(self.left, WorstOf) else ""

    def evaluate_where_possible(self, prepared: PreparedPredictions) -> "GoalCheck":
        """Evaluate the goal as far as there are rows: the note names those that are missing."""
        try:
            return self.at(prepared)
        except UnknownValue:
            raise
        except NoRows as error:
            why = no_rows_reason(error)
        checks: list[GoalCheck] = []
        parts: tuple[Goal, ...] = ()
        with suppress(NoRows):  # of several groups there may be none, or one alone
            parts = self.parts(prepared.views) if self.has_parts else ()
        for place, part in enumerate(parts):
            with suppress(NoRows):
                check = check_part(part, prepared)
                checks.append(check._replace(goal=self, worst=self.worst_part(place, check.value, prepared.views)))
        worst = max(checks, key=lambda one: (one.violation, how_far_beyond(one)), default=None)
        if worst is not None and not worst.holds:
            return worst._replace(note=why)
        return GoalCheck(self, math.nan, self.bound, math.nan, holds=False, note=why)

    def __bool__(self) -> bool:
        raise TypeError(
            f"The goal {self} has no truth value before it is evaluated. For two limits on a rate write two goals: "
            "Python reads a <= rate <= b as (a <= rate) and (rate <= b)."
        )

    def __eq__(self, other: object) -> bool:
        return self._sides() == other._sides() if isinstance(other, Goal) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._sides())

    def _sides(self) -> tuple[Any, ...]:
        sides = (self.left, self.right) if self.sense == "<=" else (self.right, self.left)
        return (*sides, self.confidence)

    def __str__(self) -> str:
        ending = "" if self.confidence is None else f" with confidence {format_number(self.confidence)}"
        return f"{self.left} {self.comparison} {self.right}{ending}"

    def __repr__(self) -> str:
        return f"<Goal {self}>"


def make_goal(left: Any, sense: str, other: Any) -> Goal:
    """Return the goal that a comparison makes."""
    has_parts = isinstance(left, WorstOf)
    if isinstance(other, WorstOf) or (has_parts and not is_number(other)):
        raise TypeError(
            f"The worst of several rates can be bounded by a number only; got {left} {sense} {other}. Bring the rates "
            "to one side, as in abs(a - b) <= 0.1."
        )
    if has_parts and left.sense and sense != left.sense:
        raise ValueError(
            f"{left} can be bounded with {left.sense} only; got {left} {sense} {other}. The opposite bound would "
            "hold as soon as one of its parts meets it, which is not linear."
        )
    if isinstance(other, Ratio) or (isinstance(left, Ratio) and isinstance(other, Rate) and other.terms):
        raise TypeError(
            f"A ratio can be bounded by a number only: {left} {sense} {other} is not linear once multiplied through."
        )
    right = as_rate(other)
    if right is None:
        raise TypeError(f"A goal compares a rate with a number or with other rates; got {left} {sense} {other!r}.")
    return Goal(left, sense, right)
