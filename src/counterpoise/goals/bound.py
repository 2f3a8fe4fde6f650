"""Goals bound to data: signed weights on the rows of tables, and the bounds that the predictions must keep."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from counterpoise._base.types import ArrayLike, FloatArray, IntArray
from counterpoise.goals.binding import BoundRates, Linear, Views, asked_by, bind_rates
from counterpoise.goals.classes import Classes
from counterpoise.goals.expressions import Rate, Ratio
from counterpoise.goals.goal import Goal
from counterpoise.goals.infeasible import goal_unit
from counterpoise.goals.population import standing, tightened_goal
from counterpoise.goals.reading import as_goals, as_objective
from counterpoise.goals.tables import as_tables, classes_of
from counterpoise.solvers.linear_program import FEASIBLE


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
        return np.array([goal_unit(self.goals[owner]) for owner in self.owners.tolist()])

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
    to certify all such goals together; see ``counterpoise.goals.audit.tightened``.

    Parameters
    ----------
    goals : goals or their texts
    data : Table, or dict of Tables by dataset
        A single table is the dataset ``train``.
    classes : array of labels, optional
        The negative and the positive one, or more than two; by default the labels found in the data, sorted.
    pos_label : label, optional
        The positive class, if not the last of the classes.
    defer_label : label, optional
        What is said of rows that a person decides about, where there may be some: a row then has a prediction for each
        class, the negative one first of two, and behind them how much of it is deferred.

    Examples
    --------
    >>> from counterpoise.goals import Table, bind
    >>> table = Table(None, y=[0, 0, 1, 1, 1])
    >>> bound = bind("error_rate(train) <= 0.2", table)
    >>> bound.weights["train"].toarray(), bound.bounds      # 0.6 - 0.4 is moved to the right
    (array([[ 0.2,  0.2, -0.2, -0.2, -0.2]]), array([-0.4]))
    """
    listed, tables = as_goals(goals), as_tables(data)
    found = classes_of(tables, classes=classes, pos_label=pos_label)._replace(deferred=defer_label)
    views = Views(tables, found)
    limits = WrittenOut.of(listed, views)
    linear = [goal.linear for goal in limits.with_margins(views)]
    rates = bind_rates(linear, views, limits.names)
    return BoundGoals(listed, rates, views.classes, np.array([rate.size for rate in linear]), limits.owners)


def bind_objective(objective: Any, data: Any, *, classes: ArrayLike | None = None, pos_label: Any = None) -> BoundRates:
    """Resolve an objective into a constant and signed weights on the rows of the data, with arguments as ``bind``.

    Examples
    --------
    >>> from counterpoise.goals import Table, bind_objective
    >>> bound = bind_objective("error_rate(train)", Table(None, y=[0, 0, 1, 1, 1]))
    >>> bound.constants, bound.weights["train"].toarray()
    (array([0.6]), array([[ 0.2,  0.2, -0.2, -0.2, -0.2]]))
    >>> bound.values({"train": [0, 1, 1, 1, 0]})
    array([0.4])
    """
    tables = as_tables(data)
    views = Views(tables, classes_of(tables, classes=classes, pos_label=pos_label))
    return bind_rates([as_objective(objective).resolved(views)], views)


class WrittenOut(NamedTuple):
    """Goals written out: one limit on a rate or ratio each, for some goals several."""

    goals: tuple[Goal, ...]
    parts: tuple[Goal, ...]
    owners: IntArray  # the place of the goal that each part belongs to

    @classmethod
    def of(cls, goals: Sequence[Goal], views: Views) -> Self:
        """Write goals out for the classes and groups there are, and check that ratios can be multiplied through."""
        parts: list[Goal] = []
        owners: list[int] = []
        for place, goal in enumerate(goals):
            with asked_by(goal):
                found = goal.parts(views)
            parts += found
            owners += [place] * len(found)
        check_denominators(parts, views)
        return cls(tuple(goals), tuple(parts), np.array(owners, dtype=np.int64))

    @property
    def names(self) -> list[Goal]:
        """Return the goal that each part belongs to."""
        return [self.goals[owner] for owner in self.owners]

    @property
    def risks(self) -> list[float]:
        """Return the risk that each part may take.

        A goal that fails does so in some part, whichever it is, so that each may take the whole risk of the goal.
        """
        each = risk_of_each(self.goals)
        return [each[owner] for owner in self.owners]

    def with_margins(self, views: Views) -> list[Goal]:
        """Return the parts with the bounds that rows of this number must meet to certify goals with a confidence."""
        found = []
        for part, name, risk in zip(self.parts, self.names, self.risks, strict=True):
            with asked_by(name) if name.is_several else nullcontext():
                is_sure = part.confidence is None
                found.append(part if is_sure else tightened_goal(part, standing(part, views, None), risk))
        return found


def check_asked(goals: Sequence[Goal], views: Views, objective: Rate | None = None) -> None:
    """Refuse goals on rows, columns or classes that are not there, or that no predictions on so many rows certify.

    The same for an objective that is a rate.
    """
    limits = WrittenOut.of(goals, views)
    for part, name in zip(limits.with_margins(views), limits.names, strict=True):
        with asked_by(name):
            _check_counted(part.linear, views)
    if objective is not None:
        with asked_by(objective):
            _check_counted(objective.resolved(views), views)


def _check_counted(rate: Linear, views: Views) -> None:
    for counted in rate.counted:
        if counted.positive is not None:
            views.place(counted.called)
        views.rows(counted.rows)
        views.divisor(counted.out_of)


def risk_of_each(goals: Sequence[Goal]) -> list[float]:
    """Return the risk that each goal may take, so that all those that carry a confidence are certified together.

    By the union bound all are right but for the largest risk among those that their confidences leave.
    """
    n_confident = sum(goal.confidence is not None for goal in goals)
    return [0.0 if goal.confidence is None else (1.0 - goal.confidence) / n_confident for goal in goals]


def check_denominators(goals: Sequence[Goal], views: Views) -> None:
    """Check that goals on ratios can be multiplied through: no predictions make a denominator negative."""
    ratios = [goal for goal in goals if isinstance(goal.left, Ratio)]
    if not ratios:
        return
    bound = bind_rates([goal.left.denominator for goal in ratios], views, ratios)  # type: ignore[union-attr]
    least = bound.constants + sum(least_sums(weights, views) for weights in bound.weights.values())
    for goal, value in zip(ratios, least.tolist(), strict=True):
        if value < -FEASIBLE * goal.left.denominator.whole_size:  # type: ignore[union-attr]
            raise ValueError(
                f"The goal {goal} cannot be multiplied through: its denominator falls to {value:.4g} for some "
                "predictions, and the comparison would turn round. Use a denominator that is never negative."
            )


def least_sums(weights: Any, views: Views) -> FloatArray:
    """Return the least that the weights of each limit can add up to: each row has one answer."""
    n_columns = views.classes.n_columns
    if n_columns == 1:
        return np.asarray(weights.minimum(0).sum(axis=1))
    rows = [weights[[place]].toarray().reshape(-1, n_columns).min(axis=1).sum() for place in range(weights.shape[0])]
    return np.array(rows)
