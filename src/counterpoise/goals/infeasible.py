"""The error for goals that cannot be met, and the bounds that it offers."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.text import Advice, AdvisedValue
from counterpoise.goals.expressions import Goal, Rate, Ratio, Searched
from counterpoise.goals.ranges import goal_range
from counterpoise.solvers.linear_program import power_of_two

PERCENT = "A share is a number from 0 to 1: write 0.8 for 80 %."
ANY_KIND = "classifier of this kind"
SINGLE_RULE = "single rule"  # the kind of classifier that decides without draws
NEAREST = 1e-5  # of its scale: a nearest bound is proven where one that is tighter by this part cannot be met
_DIGITS = 4  # of a bound as it is printed, ...
_LEAST_UNIT = -7  # ... the last at least this power of ten of the goal's size: finer bounds are met up to rounding


NOT_OFFERED = "Not offered"  # begins the hint that names bounds which decide nearly everybody alike


class Outcome(NamedTuple):
    """What the best decisions do on the selection rows, with other bounds."""

    selection_rate: float | None  # of two classes
    error: float  # share that is wrong
    cost: float  # the objective; of one that is maximised its opposite
    is_constant: bool  # whether nearly all rows get the same decision

    def __str__(self) -> str:
        selected = "" if self.selection_rate is None else f"selection rate {self.selection_rate:.1%}, "
        return f"{selected}error {self.error:.1%}"


_PARTS = (
    *("conflict", "least_violation", "nearest_bounds", "joint_bounds", "held_by", "proven", "nearest_proven"),
    *("kind", "hints", "outcomes", "sure"),
)


class InfeasibleGoals(ValueError):  # noqa: N818 - named for the state it reports
    """Goals that no classifier of the requested kind can meet together.

    Attributes
    ----------
    conflict : tuple of Goal
        The smallest known set of goals that cannot hold together; without any one of them the others can. Where it is
        not ``proven``, or time ran out, all goals that took part.
    least_violation : float
        The least sum of what these goals must be missed by, each in the unit of its bound; NaN where time ran out.
    nearest_bounds : dict from Goal to float
        For goals of the conflict the nearest number on the right side (``Goal.bound``) that can be met while *all*
        other goals are kept as they are. Only those that this is enough for; none where no single bound is.
    joint_bounds : dict from Goal to float
        Numbers for the right sides of several goals that can be met together, all others kept. Where no single bound is
        enough, the sum of the moves is the least, each in parts of the size of what its goal limits: 1 for shares, the
        largest amount for costs. Else the largest of the moves is. With ratios or a search, it is the least that is
        known.
    held_by : dict from Goal to tuple of Goal
        For each nearest bound the goals beside which it cannot be tighter: of the conflict, and others.
    proven : bool
        True where no classifier whatsoever, or no mixture of the given models, can meet them; False where none of the
        requested kind is known.
    nearest_proven : bool
        True where every bound of ``nearest_bounds`` is proven to be the nearest: with one that is tighter by 1e-5 of
        its scale, or by one in its last printed digit, no classifier, or no mixture of the given models or of their
        rules, meets the goals. The scale is the bound itself or the size of what it limits, whichever is larger: about
        1 for shares. False where bounds come from a search, so that nearer ones may exist.
    ways_out : list of dict from Goal to Goal
        The same as goals: each entry maps the goals to replace to their replacements. Those of one goal come first.
        Where rules were chosen on rows, the cheapest of them is the first; ways that lead to nearly constant decisions
        are left out, unless there is no other.
    outcomes : tuple of Outcome
        For each of ``ways_out`` the ``selection_rate``, ``error`` and ``cost`` of the best decisions there, on the
        selection rows; empty where they were not tried.
    sure : dict from Goal to Goal
        Goals to replace, with bounds that leave enough room for all goals to hold on new rows with the confidence that
        was requested; empty where none was, or no such bounds were found.
    kind : str
        What was looked for, such as "single rule".
    hints : tuple of str
        What else would meet the goals, a sentence each.
    closest : classifier or None
        A fitted one that misses the goals least, where boosting inside goals reached no mixture that meets them.
    nearest_top : int or None
        Of ``predict(X, top=...)``: the nearest number of rows that meets the goals; None where there is none.

    Examples
    --------
    Bounds are printed rounded to the side on which they can be met.

    >>> from counterpoise.goals import InfeasibleGoals, as_goals
    >>> goals = as_goals(["recall >= 0.95", "positive_rate <= 0.1"])
    >>> print(InfeasibleGoals(goals, 0.06, {goals[0]: 0.71239, goals[1]: 0.16}))  # doctest: +NORMALIZE_WHITESPACE
    These goals cannot hold together: recall >= 0.95 and positive_rate <= 0.1. The least total violation
    is 0.06. The nearest bounds that can be met, one at a time and with all other goals kept: recall >= 0.7123,
    or positive_rate <= 0.16.
    """

    __module__ = "counterpoise.goals"
    closest: Any = None
    nearest_top: int | None = None

    def __init__(
        self,
        conflict: Iterable[Goal],
        least_violation: float,
        nearest_bounds: Mapping[Goal, float] | None = None,
        *,
        joint_bounds: Mapping[Goal, float] | None = None,
        held_by: Mapping[Goal, Sequence[Goal]] | None = None,
        proven: bool = True,
        nearest_proven: bool | None = None,
        kind: str = ANY_KIND,
        hints: Sequence[str] = (),
        outcomes: Sequence[Outcome] = (),
        sure: Mapping[Goal, Goal] | None = None,
    ) -> None:
        self.conflict = tuple(conflict)
        self.least_violation = float(least_violation)
        self.nearest_bounds = dict(nearest_bounds or {})
        self.joint_bounds = dict(joint_bounds or {})
        self.held_by = dict(held_by or {})
        self.proven = proven
        self.nearest_proven = proven if nearest_proven is None else nearest_proven
        self.kind, self.hints, self.outcomes, self.sure = kind, tuple(hints), tuple(outcomes), dict(sure or {})
        super().__init__(self.conflict, self.least_violation)

    def __reduce__(self) -> tuple[Any, ...]:
        return InfeasibleGoals, self.args, self.__dict__

    def replace(self, **parts: Any) -> "InfeasibleGoals":
        """Return the same error with some other parts: arguments by name."""
        return InfeasibleGoals(**{**{name: getattr(self, name) for name in _PARTS}, **parts})

    @property
    def joint_change(self) -> float:
        """Return the sum of the moves from the goals' own bounds to ``joint_bounds``, in parts of the goals' sizes."""
        return sum(abs(bound - goal.bound) / goal.scale for goal, bound in self.joint_bounds.items())

    @property
    def ways_out(self) -> list[dict[Goal, Goal]]:
        """Return what can be changed: each entry alone makes the goals feasible, and says which goal becomes which.

        Examples
        --------
        >>> from counterpoise.goals import InfeasibleGoals, as_goals
        >>> goals = as_goals(["recall >= 0.95", "positive_rate <= 0.1"])
        >>> error = InfeasibleGoals(goals, 0.06, {goals[0]: 0.71239, goals[1]: 0.16})
        >>> [[f"{old} becomes {new.bound}" for old, new in way.items()] for way in error.ways_out]
        [['recall >= 0.95 becomes 0.7123'], ['positive_rate <= 0.1 becomes 0.16']]
        """
        single, joint = (
            {goal: goal.with_bound(_offered(goal, bound)) for goal, bound in bounds.items()}
            for bounds in (self.nearest_bounds, self.joint_bounds)
        )
        return [*({goal: instead} for goal, instead in single.items()), *([joint] if joint else [])]

    def as_dict(self) -> dict[str, Any]:
        """Return the conflict and the ways out of it as plain texts and numbers, for JSON."""

        def texts(way: Mapping[Goal, Goal]) -> list[dict[str, str]]:
            return [{"goal": str(old), "instead": str(new)} for old, new in way.items()]

        return {
            "conflict": [str(goal) for goal in self.conflict],
            "least_violation": self.least_violation if math.isfinite(self.least_violation) else None,
            "proven": self.proven,
            "nearest_proven": self.nearest_proven,
            "ways_out": [texts(way) for way in self.ways_out],
            "outcomes": [one._asdict() for one in self.outcomes],
            "sure": texts(self.sure),
            "hints": list(self.hints),
            **({} if self.nearest_top is None else {"nearest_top": self.nearest_top}),
        }

    def __str__(self) -> str:
        return self.written(str)

    def written(self, write: Callable[[AdvisedValue], str]) -> str:
        """Return the message with each setting that it advises as ``write`` has it."""
        goals = " and ".join(map(str, self.conflict))
        if not self.proven:
            start = f"No {self.kind} was found that meets"
        elif self.kind != ANY_KIND:
            start = f"No {self.kind} meets"
        else:
            start = "These goals cannot hold together:" if len(self.conflict) > 1 else "This goal cannot hold:"
        has_units = len(self.conflict) > 1 and not all(map(_is_of_shares, self.conflict))  # a sum would say nothing
        found = "" if self.proven else " found"
        least = (
            ""
            if has_units or not math.isfinite(self.least_violation)
            else f" The least total violation{found} is {self.least_violation:.4g}."
        )
        is_beyond = any((abs(goal.bound) > 1 or goal.is_equality) and _is_of_shares(goal) for goal in self.conflict)
        percent = is_beyond and self.least_violation > 1
        message = f"{start} {goals}.{least}{f' {PERCENT}' if percent else ''}{self._advice()}"
        hints = (hint.written(write) if isinstance(hint, Advice) else hint for hint in self.hints)
        return " ".join([message, *hints])

    def _advice(self) -> str:
        does = [f" ({one})" for one in self.outcomes] or [""] * len(self.ways_out)
        ways = [f"{' and '.join(map(str, way.values()))}{done}" for way, done in zip(self.ways_out, does, strict=True)]
        if self.nearest_bounds:
            holding = dict.fromkeys(goal for goals in self.held_by.values() for goal in goals)
            others = " and ".join(str(goal) for goal in holding if goal not in self.conflict)
            context = f" {'They' if len(self.conflict) > 1 else 'It'} must hold beside {others}." if others else ""
            how, condition = "" if self.nearest_proven else " found", "one at a time and with all other goals kept"
            single = ", or ".join(ways[: len(self.nearest_bounds)])
            shared = f" If all of them give a little: {ways[-1]}." if self.joint_bounds else ""
            return f"{context} The nearest bounds{how} that can be met, {condition}: {single}.{shared}"
        if self.joint_bounds:
            if any(hint.startswith(NOT_OFFERED) for hint in self.hints):
                return f" Together these bounds can be met, with all other goals kept: {ways[-1]}."
            is_of_shares = all(map(_is_of_shares, self.joint_bounds))
            total = f", {self.joint_change:.4g} in all" if is_of_shares else ""
            least = f"With all other goals kept, no single bound is enough. The smallest change that is{total}"
            return f" {least}: {ways[-1]}."
        return ""


def _offered(goal: Goal, bound: float) -> float:
    """Return a bound with few digits, inside of what the left side can be: a goal beyond that is refused."""
    return float(np.clip(round_safely(goal, bound), *goal_range(goal)))


def _is_of_shares(goal: Goal) -> bool:
    return goal_unit(goal) == 1 and not goal.has_amounts


def bound_scale(goal: Goal, bound: float) -> float:
    """Return what the rounding of a goal's bound is a part of: the bound, or the size of what it limits if larger.

    Shares have the size 1, a cost that of its amounts. So a cost in millions and the same cost in cents are searched,
    tried and printed alike.

    Examples
    --------
    >>> from counterpoise.goals import parse_goal
    >>> from counterpoise.goals.infeasible import bound_scale
    >>> bound_scale(parse_goal("recall >= 0.9"), 0.9), bound_scale(parse_goal("2e-6 * recall >= 1e-7"), 0)
    (1.0, 2e-06)
    """
    return max(goal.scale, abs(bound))


def goal_unit(goal: Goal) -> float:
    """Return the power of two that the largest amount in a goal is of: 1 for shares and for differences of them."""
    if goal.compares_ratios:
        return 1.0
    members = [one for one in goal.left.members() if not isinstance(one, Searched)]
    rates = [one.numerator if isinstance(one, Ratio) and one.numerator.terms else one for one in members]
    parts = [rate.denominator if isinstance(rate, Ratio) else rate for rate in rates]
    unit = max(rate_unit(part) for part in [*parts, *([goal.right] if goal.right.terms else [])])
    return max(unit, power_of_two(abs(goal.bound))) if goal.has_amounts and goal.bound else unit


def rate_unit(rate: Rate) -> float:
    """Return the power of two that the largest amount in a rate is of: 1 for a share."""
    return power_of_two(max(Rate(0.0, (term,)).size for term in rate.terms))


def bound_step(goal: Goal) -> float:
    """Return a step of a goal's bound from which the slope of its rows is read: a power of two of the bound's scale.

    A step of 1 would be lost in the rounding of a bound of 1e18, and hide one of 1e-18.
    """
    return power_of_two(bound_scale(goal, goal.bound))


def power_of_size(goal: Goal) -> int:
    """Return the power of ten that what a goal limits is of, at most: 0 for shares, 6 for costs of up to a million."""
    return math.ceil(math.log10(abs(goal.bound) if goal.has_amounts and goal.bound else goal.scale))


def round_safely(goal: Goal, bound: float, digits: int = _DIGITS) -> float:
    """Return a bound with few digits that is met where ``bound`` is.

    Examples
    --------
    >>> from counterpoise.goals.infeasible import round_safely
    >>> from counterpoise.goals import recall
    >>> round_safely(recall("train") >= 0.9, 0.71239), round_safely(recall("train") <= 0.1, 0.71231)
    (0.7123, 0.7124)
    """
    exact = Decimal(repr(float(bound)))
    if not exact:
        return 0.0
    unit = Decimal(1).scaleb(max(exact.adjusted() - digits + 1, _LEAST_UNIT + power_of_size(goal)))
    return float(exact.quantize(unit, rounding=ROUND_CEILING if goal.sense == "<=" else ROUND_FLOOR))
