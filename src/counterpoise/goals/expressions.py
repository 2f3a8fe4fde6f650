"""Linear combinations of rates, ratios of them, and goals: data that can be compared, hashed, pickled and printed."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self, cast

from counterpoise._base.checks import check_confidence
from counterpoise.goals.evaluation import Prepared, prepare
from counterpoise.goals.rows import Counted
from counterpoise.goals.terms import Term, canonical, finite, is_number, merged, written_sum
from counterpoise.goals.wording import written_number
from counterpoise.solvers.result import FEASIBLE

_ZERO = 1e-12  # below it the sum over rows in a denominator is rounding: one row in 10^9 counts more


class Expression:
    """What rates and ratios share: comparison into goals, and their value for given predictions."""

    __array_ufunc__ = None  # numpy's numbers leave the arithmetic to us

    def __le__(self, other: Any) -> "Goal":
        return _compared(cast("Rate | Ratio", self), "<=", other)

    def __ge__(self, other: Any) -> "Goal":
        return _compared(cast("Rate | Ratio", self), ">=", other)

    def __lt__(self, other: Any) -> "Goal":
        raise TypeError(f"A goal is written with <= or >=; got {self} < {other}.")

    def __gt__(self, other: Any) -> "Goal":
        raise TypeError(f"A goal is written with <= or >=; got {self} > {other}.")

    def __pos__(self) -> Self:
        return self

    def value(self, predictions: Any, data: Any, *, pos_label: Any = None) -> float:
        """Return the indicator rate: what it is for these predicted labels.

        Parameters
        ----------
        predictions : array of labels, or a dict of them by dataset
        data : Table, or dict of Tables by dataset
            A single table is the dataset ``train``.
        pos_label : label, optional
            The positive class; by default the last of the sorted classes.
        """
        return self.at(prepare(predictions, data, kind="labels", pos_label=pos_label))

    def expected_value(self, probabilities: Any, data: Any, *, pos_label: Any = None) -> float:
        """Return the expected rate of a randomized classifier, given its probabilities of the positive class.

        The probabilities have shape (n_samples,), or (n_samples, 2) as ``predict_proba`` returns them. Of a ratio
        this is the ratio of the expectations.
        """
        return self.at(prepare(probabilities, data, kind="probabilities", pos_label=pos_label))

    def ramp_value(self, scores: Any, data: Any, *, pos_label: Any = None) -> float:
        """Return the ramp rate: a score z counts as a positive prediction with ``max(0, min(1, 1/2 + z))``."""
        return self.at(prepare(scores, data, kind="scores", pos_label=pos_label))

    def at(self, prepared: Prepared) -> float:
        """Return the value for predictions that were checked already."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Rate(Expression):
    """A constant plus a linear combination of metrics on datasets.

    Made by the functions of ``counterpoise.goals`` and by arithmetic on them. Two rates are equal where they count the
    same predictions on the same rows with the same coefficients, however they were written.

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
    def size(self) -> float:
        """Return how large the terms can be together: their rounding is a tiny part of this, and not of their sum."""
        return sum(term.size for term in self.terms)

    def at(self, prepared: Prepared) -> float:
        return prepared.value(self)

    def __add__(self, other: Any) -> "Rate":
        added = as_rate(other)
        return NotImplemented if added is None else _rate(self.constant + added.constant, self.terms + added.terms)

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
        return _rate(self.constant * factor, scaled)

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
        return _rate(self.constant / divisor, scaled)

    def __rtruediv__(self, other: Any) -> "Rate | Ratio":
        return Rate(finite(other)) / self if is_number(other) else NotImplemented

    def __eq__(self, other: object) -> bool:
        return self.canonical() == other.canonical() if isinstance(other, Rate) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.canonical())

    def canonical(self) -> frozenset[tuple[Any, float]]:
        """Return the coefficients in the one form that equal rates share."""
        return canonical(self.constant, self.counted)

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
    """

    numerator: Rate
    denominator: Rate
    written: str = field(default="", compare=False)  # the name it goes by, if any

    @property
    def datasets(self) -> tuple[str, ...]:
        """Return the names of the datasets, in the order of their first mention."""
        return tuple(dict.fromkeys(self.numerator.datasets + self.denominator.datasets))

    def at(self, prepared: Prepared) -> float:
        top, bottom = self.numerator.at(prepared), self.denominator.at(prepared)
        if abs(bottom) > _ZERO:
            return top / bottom
        return math.copysign(math.inf, top) if abs(top) > _ZERO else math.nan

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


@dataclass(frozen=True, eq=False)
class Goal:
    """A limit on a rate: ``left <= right`` or ``left >= right``.

    Made by comparing rates and numbers, or by ``parse_goal``. Two goals are equal where both sides are, so
    ``a <= b`` equals ``b >= a``. For an equality write two goals. A goal may carry the confidence with which it shall
    hold on the population: ``evaluate`` looks at given rows only, ``counterpoise.certify`` proves.

    Examples
    --------
    >>> from counterpoise.goals import Dataset, Table, parse_goal, positive_rate
    >>> train = Dataset("train")
    >>> goal = positive_rate(train.where(sex="F")) >= 0.8 * positive_rate(train.where(sex="M"))
    >>> print(goal)
    positive_rate(train, sex=F) >= 0.8 * positive_rate(train, sex=M)
    >>> parse_goal(str(goal)) == goal
    True
    >>> table = Table(None, y=[0, 1, 1, 0], sensitive_features={"sex": ["F", "F", "M", "M"]})
    >>> print(goal.evaluate([0, 1, 1, 1], table))
    positive_rate(train, sex=F) >= 0.8 * positive_rate(train, sex=M): missed by 0.3 (0.5, bound 0.8)
    """

    left: "Rate | Ratio"
    sense: str
    right: "Rate"
    confidence: float | None = None

    def __post_init__(self) -> None:
        if self.sense not in {"<=", ">="}:
            raise ValueError(f"A goal is written with <= or >=; got {self.sense!r}.")
        if not self.linear.terms:
            raise ValueError(f"A goal needs a rate that does not cancel; got {self}, whatever the predictions.")

    @property
    def linear(self) -> "Rate":
        """Return the rate that must be at most 0; a ratio is multiplied through by its denominator."""
        if isinstance(self.left, Ratio):
            one, other = self.left.numerator, self.left.denominator * self.right.constant
        else:
            one, other = self.left, self.right
        return one - other if self.sense == "<=" else other - one

    @property
    def datasets(self) -> tuple[str, ...]:
        """Return the names of the datasets, in the order of their first mention."""
        return tuple(dict.fromkeys(self.left.datasets + self.right.datasets))

    @property
    def bound(self) -> float:
        """Return the number on the right side: the whole bound, or what is added to the rates there."""
        return self.right.constant

    def with_bound(self, bound: float) -> "Goal":
        """Return the same goal with another number on the right side."""
        return replace(self, right=_rate(float(bound), self.right.terms))

    def with_confidence(self, confidence: float | None) -> "Goal":
        """Return the same goal, to hold on the population with that probability; None: on the rows at hand only."""
        return replace(self, confidence=None if confidence is None else check_confidence(confidence))

    def evaluate(self, predictions: Any, data: Any, *, pos_label: Any = None) -> "GoalCheck":
        """Tell whether the goal holds for predicted labels; the arguments are those of ``Rate.value``."""
        return self.at(prepare(predictions, data, kind="labels", pos_label=pos_label))

    def evaluate_expected(self, probabilities: Any, data: Any, *, pos_label: Any = None) -> "GoalCheck":
        """Tell whether the goal holds in expectation for a randomized classifier, as ``Rate.expected_value``."""
        return self.at(prepare(probabilities, data, kind="probabilities", pos_label=pos_label))

    def evaluate_ramp(self, scores: Any, data: Any, *, pos_label: Any = None) -> "GoalCheck":
        """Tell whether the goal holds for the ramp rates of scores, as ``Rate.ramp_value``."""
        return self.at(prepare(scores, data, kind="scores", pos_label=pos_label))

    def at(self, prepared: Prepared) -> "GoalCheck":
        """Evaluate the goal for predictions that were checked already."""
        value, bound = self.left.at(prepared), self.right.at(prepared)
        holds = self.linear.at(prepared) <= FEASIBLE * self.linear.size
        return GoalCheck(self, value, bound, 0.0 if holds else abs(value - bound), holds)

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
        ending = "" if self.confidence is None else f" with confidence {written_number(self.confidence)}"
        return f"{self.left} {self.sense} {self.right}{ending}"

    def __repr__(self) -> str:
        return f"<Goal {self}>"


class GoalCheck(NamedTuple):
    """How a goal fares on given predictions."""

    goal: Goal
    value: float  # of the left side
    bound: float  # the value of the right side
    violation: float  # by how much the value misses the bound, 0 where the goal holds
    holds: bool

    def __str__(self) -> str:
        verdict = "holds" if self.holds else f"missed by {self.violation:.4g}"
        return f"{self.goal}: {verdict} ({self.value:.4g}, bound {self.bound:.4g})"


def as_rate(value: Any) -> "Rate | None":
    """Return a rate or a number as a rate, and None for anything else."""
    if isinstance(value, Rate):
        return value
    return Rate(finite(value)) if is_number(value) else None


def _rate(constant: float, terms: Iterable[Term]) -> Rate:
    found = merged(terms)
    for term in found:
        finite(term.coefficient)
    return Rate(finite(constant), found)


def _compared(left: "Rate | Ratio", sense: str, other: Any) -> Goal:
    if isinstance(other, Ratio) or (isinstance(left, Ratio) and isinstance(other, Rate) and other.terms):
        raise TypeError(
            f"A ratio can be bounded by a number only: {left} {sense} {other} is not linear once multiplied through."
        )
    right = as_rate(other)
    if right is None:
        raise TypeError(f"A goal compares a rate with a number or with other rates; got {left} {sense} {other!r}.")
    return Goal(left, sense, right)


def _in_parentheses(rate: Rate) -> str:
    text = str(rate)
    is_plain = text[0] != "-" and " * " not in text and len(rate.terms) + bool(rate.constant) <= 1
    return text if is_plain else f"({text})"
