"""Goals: limits on rates, on ratios and on the worst of several, and how they fare."""

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from counterpoise._base.checks import check_confidence
from counterpoise.goals.binding import why_unanswered
from counterpoise.goals.evaluation import Prepared, prepare
from counterpoise.goals.expressions import Rate, Ratio, Several, as_rate, make_rate
from counterpoise.goals.terms import Known, finite, is_number
from counterpoise.goals.wording import NoRows, UnknownValue, written_number
from counterpoise.solvers.linear_program import FEASIBLE


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

    left: Rate | Ratio | Several
    sense: str
    right: Rate
    confidence: float | None = None

    def __post_init__(self) -> None:
        if self.sense not in {"<=", ">="}:
            raise ValueError(f"A goal is written with <= or >=; got {self.sense!r}.")
        is_plain = isinstance(self.left, Rate) and self.left.terms and not self.right.terms  # nothing can cancel
        if not is_plain and not isinstance(self.left, Several) and not self.linear.terms:
            raise ValueError(f"A goal needs a rate that does not cancel; got {self}, whatever the predictions.")

    def parts(self, known: Known) -> tuple["Goal", ...]:
        """Return the goals on one rate or ratio each that this one stands for, with all classes written out."""
        right = self.right.resolved(known)
        return tuple(replace(self, left=member.resolved(known), right=right) for member in self.members(known))

    def members(self, known: Known) -> tuple[Rate | Ratio, ...]:
        """Return the rates or ratios that its parts are on, as they would be written."""
        return self.left.members(known) if isinstance(self.left, Several) else (self.left,)

    @property
    def is_several(self) -> bool:
        """Tell whether the goal is on the worst of several rates."""
        return isinstance(self.left, Several)

    @property
    def is_ratio(self) -> bool:
        """Tell whether the bound multiplies a denominator."""
        asked = self.left.sample if isinstance(self.left, Several) else (self.left,)
        return any(isinstance(one, Ratio) for one in asked)

    @property
    def linear(self) -> Rate:
        """Return the rate that must be at most 0; a ratio is multiplied through by its denominator."""
        if isinstance(self.left, Several):
            raise TypeError(f"{self} is several limits at once, one for each of its parts.")
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
    def scale(self) -> float:
        """Return how large what it limits can be: 1 for shares, its amounts for a cost; a tiny part is rounding."""
        members = self.left.sample if isinstance(self.left, Several) else (self.left,)
        return max([self.right.size, *map(_scale, members)]) or 1.0

    @property
    def compared_columns(self) -> tuple[str, ...]:
        """Return the columns whose values are compared, as in sex=F and by=sex; those of ranges are not."""
        return tuple(dict.fromkeys(self.left.compared_columns + self.right.compared_columns))

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
        """Tell whether the goal holds for predicted labels; the arguments are those of ``Rate.value``."""
        named = {"pos_label": pos_label, "defer_label": defer_label, "classes": classes}
        return self.at(prepare(predictions, data, kind="labels", **named))

    def evaluate_expected(
        self, probabilities: Any, data: Any, *, pos_label: Any = None, defer_label: Any = None, classes: Any = None
    ) -> "GoalCheck":
        """Tell whether the goal holds in expectation for a randomized classifier, as ``Rate.expected_value``."""
        named = {"pos_label": pos_label, "defer_label": defer_label, "classes": classes}
        return self.at(prepare(probabilities, data, kind="probabilities", **named))

    def evaluate_ramp(self, scores: Any, data: Any, *, pos_label: Any = None, classes: Any = None) -> "GoalCheck":
        """Tell whether the goal holds for the ramp rates of scores, as ``Rate.ramp_value``."""
        return self.at(prepare(scores, data, kind="scores", pos_label=pos_label, classes=classes))

    def at(self, prepared: Prepared) -> "GoalCheck":
        """Evaluate the goal for predictions that were checked already."""
        checks = [_check(part, prepared) for part in self.parts(prepared.views)]
        place = max(range(len(checks)), key=lambda place: (checks[place].violation, _beyond(checks[place])))
        worst = str(self.members(prepared.views)[place]) if self.is_several else ""
        return checks[place]._replace(goal=self, worst=worst)

    def at_least_in_part(self, prepared: Prepared) -> "GoalCheck":
        """Evaluate the goal as far as there are rows: the note says of which there are none."""
        try:
            return self.at(prepared)
        except UnknownValue:
            raise
        except NoRows as error:
            why = why_unanswered(error)
        found: list[GoalCheck] = []
        members: tuple[Rate | Ratio, ...] = ()
        with suppress(NoRows):  # of several groups there may be none, or one alone
            members = self.members(prepared.views) if self.is_several else ()
        for part, member in zip(self.parts(prepared.views) if members else (), members, strict=True):
            with suppress(NoRows):
                found.append(_check(part, prepared)._replace(goal=self, worst=str(member)))
        missed = max(found, key=lambda one: (one.violation, _beyond(one)), default=None)
        if missed is not None and not missed.holds:
            return missed._replace(note=why)
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
        ending = "" if self.confidence is None else f" with confidence {written_number(self.confidence)}"
        return f"{self.left} {self.sense} {self.right}{ending}"

    def __repr__(self) -> str:
        return f"<Goal {self}>"


class GoalCheck(NamedTuple):
    """How a goal fares on given predictions."""

    goal: Goal
    value: float  # of the left side
    bound: float  # the value of the right side
    violation: float  # by how much the value misses the bound, 0 where the goal holds; NaN where rows cannot answer
    holds: bool
    worst: str = ""  # of several rates the one that the value is of
    ramp: "GoalCheck | None" = None  # the same of the ramp rates that a classifier was trained with, where it was
    note: str = ""  # of which rows there are none, where the goal asks for them

    def __str__(self) -> str:
        if math.isnan(self.violation):
            return f"{self.goal}: cannot be told. {self.note}."
        verdict = "holds" if self.holds else f"missed by {self.violation:.4g}"
        at = f": {self.worst}" if self.worst else ""
        ramp = "" if self.ramp is None else f"; ramp rates {self.ramp.value:.4g}, bound {self.ramp.bound:.4g}"
        return f"{self.goal}: {verdict} ({self.value:.4g}, bound {self.bound:.4g}{at}{ramp})"


def _check(part: Goal, prepared: Prepared) -> GoalCheck:
    """Evaluate a goal on one rate or ratio."""
    value, bound = part.left.at(prepared), part.right.at(prepared)
    holds = part.linear.at(prepared) <= FEASIBLE * part.linear.size
    return GoalCheck(part, value, bound, 0.0 if holds else abs(value - bound), holds)


def _beyond(check: GoalCheck) -> float:
    """Return by how much the value is beyond the bound, negative where it is inside; no value is far inside."""
    beyond = check.value - check.bound if check.goal.sense == "<=" else check.bound - check.value
    return -math.inf if math.isnan(beyond) else beyond


def _scale(left: Rate | Ratio) -> float:
    if isinstance(left, Rate):
        return left.size
    return left.numerator.whole_size / left.denominator.whole_size


def compared(left: Any, sense: str, other: Any) -> Goal:
    """Return the goal that a comparison makes."""
    if isinstance(left, Several) or isinstance(other, Several):
        return _on_several(left, sense, other)
    if isinstance(other, Ratio) or (isinstance(left, Ratio) and isinstance(other, Rate) and other.terms):
        raise TypeError(
            f"A ratio can be bounded by a number only: {left} {sense} {other} is not linear once multiplied through."
        )
    right = as_rate(other)
    if right is None:
        raise TypeError(f"A goal compares a rate with a number or with other rates; got {left} {sense} {other!r}.")
    return Goal(left, sense, right)


def _on_several(left: Any, sense: str, other: Any) -> Goal:
    if not isinstance(left, Several) or not is_number(other):
        raise TypeError(
            f"The worst of several rates can be bounded by a number only; got {left} {sense} {other}. Bring the rates "
            "to one side, as in abs(a - b) <= 0.1."
        )
    if left.sense and sense != left.sense:
        raise ValueError(
            f"{left} can be bounded with {left.sense} only; got {left} {sense} {other}. That it be this far from the "
            "bound for some of its parts is no limit that a mixture could keep."
        )
    return Goal(left, sense, Rate(finite(other)))
