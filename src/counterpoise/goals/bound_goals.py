"""Goals bound to data: signed weights on the rows of tables, and the bounds on the predictions.

And what is checked before anything is trained: that a bound is one that its rate can have, that the rows, columns and
classes that goals use exist, and that no two of them contradict each other.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple, Self

import numpy as np

from counterpoise._base.types import ArrayLike, FloatArray, IntArray
from counterpoise.goals.binding import BoundRates, Views, bind_rates, name_in_errors
from counterpoise.goals.classes import Classes
from counterpoise.goals.equality import Distance
from counterpoise.goals.expressions import ComparedRatios, Goal, Rate, Ratio, Searched
from counterpoise.goals.infeasible import PERCENT, InfeasibleGoals, bound_scale, goal_unit
from counterpoise.goals.parsing import as_goals, as_objective, refuse_deferral
from counterpoise.goals.population import measure_goal, tighten_goal
from counterpoise.goals.ranges import goal_range, least_sums
from counterpoise.goals.tables import as_tables, classes_of
from counterpoise.goals.terms import Pairs, format_number
from counterpoise.solvers.linear_program import FEASIBLE, power_of_two


@dataclass(frozen=True)
class BoundGoals:
    """Goals as linear limits on the predictions: ``sum over datasets of weights @ predictions <= bounds``.

    Attributes
    ----------
    goals : tuple of Goal
    weights : dict from dataset names to sparse arrays of shape (n_limits, n_samples of that dataset)
        One limit for each goal, several for one on a difference or on every group. Of more than two classes a row has
        a prediction for each: the arrays are of shape (n_limits, n_samples * n_classes).
    bounds : array of shape (n_limits,)
    owners : array of shape (n_limits,)
        The goal that each limit belongs to.
    classes : the labels
    """

    goals: tuple[Goal, ...]
    rates: BoundRates
    classes: Classes
    sizes: FloatArray  # of the terms that each limit's weights are sums and differences of
    owners: IntArray

    @property
    def weights(self) -> dict[str, Any]:
        """Return the signed weights of each limit on the rows of each dataset."""
        return self.rates.weights

    @property
    def bounds(self) -> FloatArray:
        """Return the bound of each limit, with all constants moved to it."""
        return -self.rates.constants

    @property
    def units(self) -> FloatArray:
        """Return what a solver takes each limit in parts of: 1 for shares, for costs about their largest amount."""
        goals = [self.goals[owner] for owner in self.owners.tolist()]
        sizes = zip(goals, self.sizes.tolist(), strict=True)
        return np.array([power_of_two(size) if goal.has_amounts else goal_unit(goal) for goal, size in sizes])

    def values(self, predictions: Mapping[str, ArrayLike]) -> FloatArray:
        """Return ``weights @ predictions`` for each goal, and for each model where predictions have a column for each.

        With predictions of shape (n_samples, n_models) the result is the matrix of ``rows @ mixture <= bounds``.
        """
        return self.rates.weighted(predictions)

    def violations(self, predictions: Mapping[str, ArrayLike]) -> FloatArray:
        """Return by how much each goal is missed (positive) or kept (negative), in its multiplied-through form."""
        return self.rates.values(predictions)

    def prices(self, multipliers: FloatArray) -> FloatArray:
        """Return the price of each goal: the sum of the multipliers of its limits."""
        return np.bincount(self.owners, multipliers, len(self.goals)).astype(np.float64)

    def row_weights(self, multipliers: ArrayLike) -> dict[str, FloatArray]:
        """Return the signed weight of each row in ``multipliers @ values``, by dataset."""
        return self.rates.row_weights(multipliers)


def bind(
    goals: Any, data: Any, *, classes: ArrayLike | None = None, pos_label: Any = None, defer_label: Any = None
) -> BoundGoals:
    """Resolve goals into signed weights on the rows of the data.

    The bound of a goal that carries a confidence is tightened: to what it must be on so many rows, were they held out,
    to certify all such goals together; see ``counterpoise.auditing.audit.tighten``.

    Parameters
    ----------
    goals : goals or their texts
    data : Table, or dict of Tables by dataset
        A single table is the dataset ``train``.
    classes : array of labels, optional
        The negative and the positive one, or more than two; by default the sorted labels of the data.
    pos_label : label, optional
        The positive class, if not the last of the classes.
    defer_label : label, optional
        The prediction for rows that a person decides about, where there are some: a row then has a prediction for each
        class, the negative one first of two, and behind them how much of it is deferred.

    Examples
    --------
    >>> from counterpoise.goals import Table, bind
    >>> table = Table(None, y=[0, 0, 1, 1, 1])
    >>> bound = bind("error_rate <= 0.2", table)
    >>> bound.weights["train"].toarray(), bound.bounds      # 0.6 - 0.4 is moved to the right
    (array([[ 0.2,  0.2, -0.2, -0.2, -0.2]]), array([-0.4]))
    """
    all_goals, tables = as_goals(goals), as_tables(data)
    all_classes = classes_of(tables, classes=classes, pos_label=pos_label)._replace(deferred=defer_label)
    views = Views(tables, all_classes)
    limits = GoalLimits.of(all_goals, views)
    linear = [goal.linear for goal in limits.targets]
    rates = bind_rates(linear, views, limits.names)
    return BoundGoals(all_goals, rates, views.classes, np.array([rate.size for rate in linear]), limits.owners)


def bind_objective(objective: Any, data: Any, *, classes: ArrayLike | None = None, pos_label: Any = None) -> BoundRates:
    """Resolve an objective into a constant and signed weights on the rows of the data, with arguments as ``bind``.

    Examples
    --------
    >>> from counterpoise.goals import Table, bind_objective
    >>> bound = bind_objective("error_rate", Table(None, y=[0, 0, 1, 1, 1]))
    >>> bound.constants, bound.weights["train"].toarray()
    (array([0.6]), array([[ 0.2,  0.2, -0.2, -0.2, -0.2]]))
    >>> bound.values({"train": [0, 1, 1, 1, 0]})
    array([0.4])
    """
    tables = as_tables(data)
    views = Views(tables, classes_of(tables, classes=classes, pos_label=pos_label))
    return bind_rates([as_objective(objective).resolve(views)], views)


class GoalLimits(NamedTuple):
    """Goals written out: one limit on a rate or ratio each, for some goals several."""

    goals: tuple[Goal, ...]
    parts: tuple[Goal, ...]
    targets: tuple[Goal, ...]  # the same, those with a confidence with the bounds that so many rows must meet
    owners: IntArray  # the place of the goal that each part belongs to
    names: list[Goal]  # and that goal

    @classmethod
    def of(cls, goals: Sequence[Goal], views: Views) -> Self:
        """Write goals out for the classes and groups there are, and check that ratios can be multiplied through.

        A goal that fails does so in some part, so each part may take the whole risk of the goal.
        """
        parts: list[Goal] = []
        owners: list[int] = []
        for place, goal in enumerate(goals):
            with name_in_errors(goal):
                own_parts = goal.parts(views)
            parts += own_parts
            owners += [place] * len(own_parts)
        check_denominators(parts, views)
        targets = list(parts)
        for place, (part, owner) in enumerate(zip(parts, owners, strict=True)):
            if part.confidence is not None and part.compares_ratios:
                raise ValueError(
                    f"The goal {goals[owner]} compares ratios, and has no tighter bound to choose rules by: leave its "
                    "confidence out, and set confidence= of the classifier. Audits take it."
                )
            if part.confidence is not None:
                with name_in_errors(goals[owner]) if goals[owner].has_parts else nullcontext():
                    targets[place] = tighten_goal(part, measure_goal(part, views, None), risk_of_each(goals)[owner])
        names = [goals[owner] for owner in owners]
        return cls(tuple(goals), tuple(parts), tuple(targets), np.array(owners, dtype=np.int64), names)


def check_goal_data(goals: Sequence[Goal], views: Views, objective: Rate | Ratio | None = None) -> None:
    """Refuse goals on rows, columns or classes that are not there, or that no predictions on so many rows certify.

    The same for an objective that is a rate or a ratio.
    """
    limits = GoalLimits.of(goals, views)
    targets: list[tuple[object, Goal | Rate]] = list(zip(limits.names, limits.targets, strict=True))
    if isinstance(objective, Ratio):
        with name_in_errors(objective):
            ratio = objective.resolve(views)
        targets += [(objective, ratio.numerator), (objective, ratio.denominator)]
        _check_ratios([objective], [ratio], views)
    elif objective is not None:
        targets.append((objective, objective))
    for name, one in targets:
        with name_in_errors(name):
            for count in (count for rate in _linear_rates(one, views) for count in rate.row_counts):
                if count.positive is not None:
                    views.place(count.called)
                views.rows(count.rows)
                views.divisor(count.out_of)


def _linear_rates(one: Goal | Rate, views: Views) -> tuple[Rate, ...]:
    if isinstance(one, Rate):
        return (one.resolve(views),)
    return one.left.rates if isinstance(one.left, Searched) else (one.linear,)


def risk_of_each(goals: Sequence[Goal]) -> list[float]:
    """Return the risk that each goal may take, so that all those that carry a confidence are certified together.

    By the union bound all are right but for the largest risk among those that their confidences leave.
    """
    n_confident = sum(goal.confidence is not None for goal in goals)
    return [0.0 if goal.confidence is None else (1.0 - goal.confidence) / n_confident for goal in goals]


def check_denominators(goals: Sequence[Goal], views: Views) -> None:
    """Check that goals on ratios can be multiplied through: no predictions make a denominator negative."""
    ratios = [(goal, goal.left) for goal in goals if isinstance(goal.left, Ratio)]
    compared = [(goal, goal.left) for goal in goals if isinstance(goal.left, ComparedRatios)]
    ratios += [(goal, ratio) for goal, left in compared for ratio in (left.one, left.other)]
    ratios = [(goal, ratio) for goal, ratio in ratios if _may_be_negative(ratio.denominator)]
    if ratios:
        _check_ratios([goal for goal, _ in ratios], [ratio for _, ratio in ratios], views)


def _may_be_negative(rate: Rate) -> bool:
    """Return whether a rate has parts that are taken off: amounts are checked where they are counted."""
    return rate.constant < 0 or any(count.coefficient < 0 or count.rows.value is not None for count in rate.row_counts)


def _check_ratios(names: Sequence[Goal | Ratio], ratios: Sequence[Ratio], views: Views) -> None:
    bound = bind_rates([ratio.denominator for ratio in ratios], views, names)
    has_masses = {name for name in bound.weights if not isinstance(name, Pairs) and views.tables[name].has_masses}
    sums = [least_sums(weights, views) for name, weights in bound.weights.items() if name not in has_masses]
    least = bound.constants + sum(sums)  # masses are negative by chance, and never on the population
    for name, ratio, value in zip(names, ratios, least.tolist(), strict=True):
        if value < -FEASIBLE * ratio.denominator.whole_size:
            raise ValueError(
                f"The {'goal' if isinstance(name, Goal) else 'objective'} {name} cannot be multiplied through: its "
                f"denominator falls to {value:.4g} for some predictions, which would reverse the comparison. Use a "
                "denominator that is never negative."
            )


def validate_goals(goals: Any, *, trains: bool = False, defers: bool = True) -> tuple[Goal, ...]:
    """Return goals that models are to be chosen or trained for, after checking their bounds: see ``check_goal_ranges``.

    Where rows cannot be deferred, goals on those are refused.

    Examples
    --------
    >>> from counterpoise.goals import validate_goals
    >>> validate_goals("recall >= 0.9")
    (<Goal recall >= 0.9>,)
    >>> validate_goals("recall >= -0.5")
    Traceback (most recent call last):
    ...
    ValueError: The goal recall >= -0.5 always holds: its left side lies from 0 to 1. ...
    """
    all_goals = as_goals(goals)
    check_goal_ranges(all_goals, trains=trains)
    if not defers:
        refuse_deferral(all_goals)
    return all_goals


def refuse_compared(goals: Iterable[Goal], who: str, advice: str = "leave it out") -> None:
    """Refuse goals on how far ratios are apart, for what needs linear goals."""
    for goal in goals:
        if goal.compares_ratios:
            raise ValueError(
                f"{who} needs goals that are linear, and {goal} compares ratios: {advice}, or {goal.instead}."
            )


def check_goal_ranges(goals: Iterable[Goal], *, trains: bool) -> None:
    """Refuse goals whose bound no rate can have.

    One that always holds is refused anywhere; one that never does where models would be trained for it, as choosing
    among models that there are proves it anyway, with bounds that can be met.

    Examples
    --------
    >>> from counterpoise.goals import recall
    >>> from counterpoise.goals.bound_goals import check_goal_ranges
    >>> check_goal_ranges([recall("train") <= 80], trains=True)
    Traceback (most recent call last):
    ...
    ValueError: The goal recall <= 80 always holds: its left side lies from 0 to 1. A share is a number ...
    """
    for goal in goals:
        low, high = goal_range(goal)
        allowed = FEASIBLE * max(goal.scale, abs(goal.bound))
        nearest = low if goal.sense == "<=" else high
        is_beyond = goal.bound < low - allowed if goal.sense == "<=" else goal.bound > high + allowed
        if is_beyond and trains:
            raise InfeasibleGoals([goal], abs(goal.bound - nearest))
        if goal.bound > high + allowed if goal.sense == "<=" else goal.bound < low - allowed:
            ends = f"from {format_number(low)} to {format_number(high)}"
            what = "the distance between its sides" if goal.is_equality else "its left side"
            raise ValueError(f"The goal {goal} always holds: {what} lies {ends}. {PERCENT}")


def check_contradictions(goals: Sequence[Goal], views: Views) -> None:
    """Refuse goals of which one asks a rate to be above, and another below, what both allow.

    Goals on ratios are left out: where nothing is predicted positive, any two bounds on the precision hold.

    Parameters
    ----------
    goals : sequence of Goal
        They fit the rows: see ``check_goal_data``.
    views : Views
        The rows and classes.

    Raises
    ------
    InfeasibleGoals
        With the two goals. It offers bounds where no other goals stand beside them.

    Examples
    --------
    >>> from counterpoise.goals import Table, as_goals
    >>> from counterpoise.goals.binding import Views
    >>> from counterpoise.goals.bound_goals import check_contradictions
    >>> from counterpoise.goals.tables import as_tables, classes_of
    >>> tables = as_tables(Table(None, y=[0, 0, 1, 1]))
    >>> goals = as_goals(["recall >= 0.9", "recall <= 0.1"])
    >>> check_contradictions(goals, Views(tables, classes_of(tables)))
    Traceback (most recent call last):
    ...
    counterpoise.goals.InfeasibleGoals: These goals cannot hold together: recall >= 0.9 and recall <= ...
    """
    ends_by_rate: dict[Any, tuple[list[tuple[float, Goal]], list[tuple[float, Goal]]]] = {}
    for goal in goals:
        if not goal.is_ratio and not goal.right.terms:
            left = goal.left.rate if isinstance(goal.left, Distance) else goal.left
            # Rates that are equal for decided rows, as 1 - recall and the miss rate, differ where some are deferred.
            key = left if views.classes.deferred is None else str(left)
            lower, upper = ends_by_rate.setdefault(key, ([], []))
            if not isinstance(goal.left, Distance):
                (upper if goal.sense == "<=" else lower).append((goal.bound, goal))
            elif isinstance(left, Rate) and not goal.left.target.terms:  # of both kinds
                lower.append((goal.left.target.constant - goal.bound, goal))
                upper.append((goal.left.target.constant + goal.bound, goal))
    for lower, upper in ends_by_rate.values():
        if not lower or not upper:
            continue
        (low, highest), (high, lowest) = max(lower, key=itemgetter(0)), min(upper, key=itemgetter(0))
        gap = low - high
        rounding = 2 * FEASIBLE * max(bound_scale(goal, goal.bound) for goal in (highest, lowest))  # both still hold
        if gap > rounding:
            conflict = sorted((highest, lowest), key=list(goals).index)
            is_alone = len(goals) == len(lower) + len(upper)  # an equality counts twice
            one, other = ([goal for _, goal in ends] for ends in (lower, upper))
            nearest = _nearest(one, other, views) if is_alone else {}
            others = {goal: tuple(other for other in conflict if other is not goal) for goal in nearest}
            raise InfeasibleGoals(conflict, gap, nearest, held_by=others)


def _nearest(lower: Sequence[Goal], upper: Sequence[Goal], views: Views) -> dict[Goal, float]:
    """Return for the goals that contradict each other the bound at which each meets the other, where that is enough.

    All goals are on one rate, which they bound from below and from above.
    """
    low, high = max(lower, key=lambda goal: goal.bound), min(upper, key=lambda goal: goal.bound)
    if any(isinstance(name, Pairs) for goal in (low, high) for name in goal.counted_datasets):
        return {}
    if not isinstance(low.left, Rate) or any(goal.confidence is not None for goal in (*lower, *upper)):
        return {}
    (part,) = low.parts(views)
    bound = bind_rates([part.left, -1 * part.left], views, [low, low])  # type: ignore[list-item, operator]
    sums = bound.constants + sum(least_sums(weights, views) for weights in bound.weights.values())
    least, most = sums[0], -sums[1]  # that predictions can give the rate on these rows
    bounds = {}
    if sum(goal.bound > high.bound for goal in lower) == 1 and least <= high.bound:
        bounds[low] = high.bound
    if sum(goal.bound < low.bound for goal in upper) == 1 and low.bound <= most:
        bounds[high] = low.bound
    return bounds
