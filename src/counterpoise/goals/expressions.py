"""Linear combinations of rates, ratios of them, the worst of several: data that can be compared, hashed and printed."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, cast

from counterpoise.goals.evaluation import Prepared, prepare
from counterpoise.goals.rows import Counted
from counterpoise.goals.terms import Known, Term, canonical, finite, is_number, merged, written_sum

if TYPE_CHECKING:
    from counterpoise.goals.goal import Goal

_ZERO = 1e-12  # part of the size of a rate, below which its sum over rows is rounding: one row in 10^9 counts more


class Expression:
    """What rates and ratios share: comparison into goals, and their value for given predictions."""

    __array_ufunc__ = None  # numpy's numbers leave the arithmetic to us

    def __le__(self, other: Any) -> "Goal":
        return _goal(self, "<=", other)

    def __ge__(self, other: Any) -> "Goal":
        return _goal(self, ">=", other)

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
        named = {"pos_label": pos_label, "defer_label": defer_label, "classes": classes}
        return self.at(prepare(predictions, data, kind="labels", **named))

    def expected_value(
        self, probabilities: Any, data: Any, *, pos_label: Any = None, defer_label: Any = None, classes: Any = None
    ) -> float:
        """Return the expected rate of a randomized classifier, given its probabilities of the positive class.

        The probabilities have shape (n_samples,), or (n_samples, n_classes) as ``decision_proba`` returns them, which
        they must have for more than two classes. With a ``defer_label`` there is one more column, the last: how
        likely each row is deferred. Of a ratio this is the ratio of the expectations.
        """
        named = {"pos_label": pos_label, "defer_label": defer_label, "classes": classes}
        return self.at(prepare(probabilities, data, kind="probabilities", **named))

    def ramp_value(self, scores: Any, data: Any, *, pos_label: Any = None, classes: Any = None) -> float:
        """Return the ramp rate: a score z counts as a positive prediction with ``max(0, min(1, 1/2 + z))``."""
        return self.at(prepare(scores, data, kind="scores", pos_label=pos_label, classes=classes))

    def at(self, prepared: Prepared) -> float:
        """Return the value for predictions that were checked already."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
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
    2 * error_rate(train) - 0.25 * positive_rate(train, sex=F)
    """

    constant: float
    terms: tuple[Term, ...] = ()

    @property
    def counted(self) -> tuple[Counted, ...]:
        """Return what is counted on which rows, out of which."""
        return tuple(counted for term in self.terms for counted in term.counted())

    @property
    def datasets(self) -> tuple[str, ...]:
        """Return the names of the datasets, in the order of their first mention."""
        return tuple(dict.fromkeys(term.rows.name for term in self.terms))

    @property
    def compared_columns(self) -> tuple[str, ...]:
        """Return the columns whose values are compared, as in sex=F; those of ranges are not."""
        return tuple(dict.fromkeys(name for term in self.terms for name in term.rows.compared_columns))

    @property
    def size(self) -> float:
        """Return how large the terms can be together: their rounding is a tiny part of this, and not of their sum."""
        return sum(term.size for term in self.terms)

    @property
    def whole_size(self) -> float:
        """Return how large the terms and the constant can be together."""
        return self.size + abs(self.constant)

    def resolved(self, known: Known) -> "Rate":
        """Return the rate with averages and sums over all classes written out."""
        return Rate(self.constant, tuple(part for term in self.terms for part in term.resolved(known)))

    def at(self, prepared: Prepared) -> float:
        return prepared.value(self.resolved(prepared.views))

    def __abs__(self) -> "Absolute":
        return Absolute(self)

    def __add__(self, other: Any) -> "Rate":
        added = as_rate(other)
        return NotImplemented if added is None else make_rate(self.constant + added.constant, self.terms + added.terms)

    __radd__ = __add__

    def __neg__(self) -> "Rate":
        return self * -1.0

    def __sub__(self, other: Any) -> "Rate":
        subtracted = as_rate(other)
        return NotImplemented if subtracted is None else self + subtracted * -1.0

    def __rsub__(self, other: Any) -> "Rate":
        return (-self).__add__(other)

    def __mul__(self, other: Any) -> "Rate":
        if isinstance(other, Rate):
            if not self.terms or not other.terms:
                return other * self.constant if not self.terms else self * other.constant
            raise TypeError(f"The product of two rates is not linear, so no goal can hold it: ({self}) * ({other}).")
        if not is_number(other):
            return NotImplemented
        factor = finite(other)
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
        divisor = finite(other)
        scaled = [term._replace(coefficient=term.coefficient / divisor) for term in self.terms]
        return make_rate(self.constant / divisor, scaled)

    def __rtruediv__(self, other: Any) -> "Rate | Ratio":
        return Rate(finite(other)) / self if is_number(other) else NotImplemented

    def __eq__(self, other: object) -> bool:
        return self.canonical() == other.canonical() if isinstance(other, Rate) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.canonical())

    def canonical(self) -> frozenset[tuple[Any, float]]:
        """Return the coefficients in the one form that equal rates share."""
        return canonical(self.constant, (one for term in self.terms for one in term.compared()))

    def __str__(self) -> str:
        return written_sum(self.constant, self.terms)

    def __repr__(self) -> str:
        return f"<{self}>"


@dataclass(frozen=True, eq=False)
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
    (<true_positives(train)>, <positive_rate(train)>)
    >>> ratio.value([1, 1, 0, 1], Table(None, y=[1, 0, 0, 1])) == 2 / 3
    True
    """

    numerator: Rate
    denominator: Rate
    written: str = field(default="", compare=False)  # the name it goes by, if any

    @property
    def datasets(self) -> tuple[str, ...]:
        """Return the names of the datasets, in the order of their first mention."""
        return tuple(dict.fromkeys(self.numerator.datasets + self.denominator.datasets))

    @property
    def compared_columns(self) -> tuple[str, ...]:
        """Return the columns whose values are compared, as in sex=F; those of ranges are not."""
        return tuple(dict.fromkeys(self.numerator.compared_columns + self.denominator.compared_columns))

    def resolved(self, known: Known) -> "Ratio":
        """Return the ratio with averages and sums over all classes written out."""
        return Ratio(self.numerator.resolved(known), self.denominator.resolved(known), self.written)

    def __abs__(self) -> "Absolute":
        return Absolute(self)

    def at(self, prepared: Prepared) -> float:
        top, bottom = self.numerator.at(prepared), self.denominator.at(prepared)
        if abs(bottom) > _ZERO * self.denominator.whole_size:
            return top / bottom
        return math.copysign(math.inf, top) if abs(top) > _ZERO * self.numerator.whole_size else math.nan

    def __mul__(self, other: Any) -> "Ratio":
        self._refuse_rates(other)
        return Ratio(self.numerator * other, self.denominator) if is_number(other) else NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> "Ratio":
        self._refuse_rates(other)
        return Ratio(cast("Rate", self.numerator / other), self.denominator) if is_number(other) else NotImplemented

    def __rtruediv__(self, other: Any) -> "Ratio":
        self._refuse_rates(other)
        return Ratio(self.denominator * other, self.numerator) if is_number(other) else NotImplemented

    def __add__(self, other: Any) -> "Ratio":
        self._refuse_rates(other)
        bottom = self.denominator
        return Ratio(self.numerator + other * bottom, bottom) if is_number(other) else NotImplemented

    __radd__ = __add__

    def __neg__(self) -> "Ratio":
        return self * -1.0

    def __sub__(self, other: Any) -> "Ratio":
        self._refuse_rates(other)
        return self + -other if is_number(other) else NotImplemented

    def __rsub__(self, other: Any) -> "Ratio":
        return (-self).__add__(other)

    def _refuse_rates(self, other: Any) -> None:
        if isinstance(other, Expression):
            raise TypeError(
                f"A ratio can be combined with numbers only: {self} and {other} together are not linear once multiplied"
                " through. Write a goal on the ratio with a number as its bound."
            )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ratio):
            return NotImplemented
        return (self.numerator, self.denominator) == (other.numerator, other.denominator)

    def __hash__(self) -> int:
        return hash((self.numerator, self.denominator))

    def __str__(self) -> str:
        return self.written or f"{_in_parentheses(self.numerator)} / {_in_parentheses(self.denominator)}"

    def __repr__(self) -> str:
        return f"<{self}>"


class Several(Expression):
    """The worst of several rates or ratios, known once there are data: of groups, of classes, of two signs."""

    sense: str = ""  # the only one in which a bound on it is a bound on each

    def members(self, known: Known) -> "tuple[Rate | Ratio, ...]":
        """Return what it is the worst of."""
        raise NotImplementedError

    @property
    def datasets(self) -> tuple[str, ...]:
        """Return the names of the datasets, in the order of their first mention."""
        raise NotImplementedError

    @property
    def compared_columns(self) -> tuple[str, ...]:
        """Return the columns whose values are compared, as in sex=F and by=sex; those of ranges are not."""
        raise NotImplementedError

    @property
    def sample(self) -> "tuple[Rate | Ratio, ...]":
        """Return expressions whose values reach as far as its own can."""
        raise NotImplementedError

    def at(self, prepared: Prepared) -> float:
        if not self.sense:
            raise TypeError(f"{self} has a value for each of its parts; ask a goal on it, as {self} >= 0.8.")
        values = [member.at(prepared) for member in self.members(prepared.views)]
        return min(values) if self.sense == ">=" else max(values)

    def _refuse(self, *_other: Any) -> Any:
        raise TypeError(
            f"{self} is the worst of several rates, which is not linear: it stands alone on one side of a goal, with a "
            f"number on the other, as in {self} {self.sense or '<='} 0.1."
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __neg__ = _refuse

    def __repr__(self) -> str:
        return f"<{self}>"


@dataclass(frozen=True, eq=False)
class Absolute(Several):
    """The absolute value of a rate or a ratio, most often of a difference."""

    inner: "Rate | Ratio"
    sense = "<="

    def members(self, known: Known) -> "tuple[Rate | Ratio, ...]":  # noqa: ARG002 - the same for all data
        return self.inner, -self.inner

    @property
    def datasets(self) -> tuple[str, ...]:
        return self.inner.datasets

    @property
    def compared_columns(self) -> tuple[str, ...]:
        return self.inner.compared_columns

    @property
    def sample(self) -> "tuple[Rate | Ratio, ...]":
        return self.inner, -self.inner

    def __eq__(self, other: object) -> bool:
        return self._signs() == other._signs() if isinstance(other, Absolute) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._signs())

    def _signs(self) -> frozenset[Any]:
        return frozenset([self.inner, -self.inner])

    def __str__(self) -> str:
        return f"abs({self.inner})"


def as_rate(value: Any) -> "Rate | None":
    """Return a rate or a number as a rate, and None for anything else."""
    if isinstance(value, Rate):
        return value
    return Rate(finite(value)) if is_number(value) else None


def make_rate(constant: float, terms: Iterable[Term]) -> Rate:
    """Return a rate with terms of one metric on the same rows added up, after checking its numbers."""
    found = merged(terms)
    for term in found:
        finite(term.coefficient)
        for count in term.metric.counts:
            if abs(count.coefficient) != 1 and not finite(term.coefficient * count.coefficient):
                raise ValueError(f"The numbers in a goal must not vanish; {term.coefficient!r} * {term} does.")
    return Rate(finite(constant), found)


def _goal(left: Any, sense: str, other: Any) -> "Goal":
    from counterpoise.goals.goal import compared  # noqa: PLC0415 - goals are made of expressions

    return compared(left, sense, other)


def _in_parentheses(rate: Rate) -> str:
    text = str(rate)
    is_plain = text[0] != "-" and " * " not in text and len(rate.terms) + bool(rate.constant) <= 1
    return text if is_plain else f"({text})"
