"""Goals bound to data: signed weights on the rows of tables, and the bounds that the predictions must keep."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from counterpoise._base.types import ArrayLike, FloatArray
from counterpoise.goals.binding import BoundRates, Views, bind_rates
from counterpoise.goals.classes import Classes
from counterpoise.goals.expressions import Goal, Ratio
from counterpoise.goals.population import standing, tightened_goal
from counterpoise.goals.reading import as_goals, as_objective
from counterpoise.goals.tables import Table, as_tables, classes_of
from counterpoise.solvers.result import FEASIBLE


@dataclass(frozen=True)
class BoundGoals:
    """Goals as linear limits on the predictions: ``sum over datasets of weights @ predictions <= bounds``.

    Attributes
    ----------
    goals : tuple of Goal
    weights : dict from dataset names to sparse arrays of shape (n_goals, n_samples of that dataset)
    bounds : array of shape (n_goals,)
    classes : the negative and the positive label
    """

    goals: tuple[Goal, ...]
    rates: BoundRates
    classes: Classes
    sizes: FloatArray  # of the terms that each goal's weights are sums and differences of

    @property
    def weights(self) -> dict[str, Any]:
        """Return the signed weights of each goal on the rows of each dataset."""
        return self.rates.weights

    @property
    def bounds(self) -> FloatArray:
        """Return the bound of each goal, with all constants moved to it."""
        return -self.rates.constants

    def values(self, predictions: Mapping[str, ArrayLike]) -> FloatArray:
        """Return ``weights @ predictions`` for each goal, and for each model where predictions have a column for each.

        With predictions of shape (n_samples, n_models) the result is the matrix of ``rows @ mixture <= bounds``.
        """
        return self.rates.weighted(predictions)

    def violations(self, predictions: Mapping[str, ArrayLike]) -> FloatArray:
        """Return by how much each goal is missed (positive) or kept (negative), in its multiplied-through form."""
        return self.rates.values(predictions)

    def row_weights(self, multipliers: ArrayLike) -> dict[str, FloatArray]:
        """Return the signed weight of each row in ``multipliers @ values``, by dataset."""
        return self.rates.row_weights(multipliers)


def bind(goals: Any, data: Any, *, classes: ArrayLike | None = None, pos_label: Any = None) -> BoundGoals:
    """Resolve goals into signed weights on the rows of the data.

    The bound of a goal that carries a confidence is tightened: to what it must be on so many rows, were they held out,
    to certify all such goals together; see ``counterpoise.goals.audit.tightened``.

    Parameters
    ----------
    goals : goals or their texts
    data : Table, or dict of Tables by dataset
        A single table is the dataset ``train``.
    classes : array of two labels, optional
        The negative and the positive one; by default the labels found in the data, sorted.
    pos_label : label, optional
        The positive class, if not the last of the classes.

    Examples
    --------
    >>> from counterpoise.goals import Table, bind
    >>> table = Table(None, y=[0, 0, 1, 1, 1])
    >>> bound = bind("error_rate(train) <= 0.2", table)
    >>> bound.weights["train"].toarray(), bound.bounds      # 0.6 - 0.4 is moved to the right
    (array([[ 0.2,  0.2, -0.2, -0.2, -0.2]]), array([-0.4]))
    """
    listed, tables = as_goals(goals), as_tables(data)
    signs = classes_of(tables, classes=classes, pos_label=pos_label)
    check_denominators(listed, tables, signs)
    asked = with_margins(listed, Views(tables, signs))
    linear = [goal.linear for goal in asked]
    return BoundGoals(
        listed, bind_rates(linear, tables, signs, listed), signs, np.array([rate.size for rate in linear])
    )


def bind_objective(objective: Any, data: Any, *, classes: ArrayLike | None = None, pos_label: Any = None) -> BoundRates:
    """Resolve an objective into a constant and signed weights on the rows of the data, with arguments as ``bind``."""
    tables = as_tables(data)
    return bind_rates([as_objective(objective)], tables, classes_of(tables, classes=classes, pos_label=pos_label))


def with_margins(goals: Sequence[Goal], views: Views) -> list[Goal]:
    """Return the goals with the bounds that rows of this number must meet to certify those that carry a confidence."""
    return [
        goal if goal.confidence is None else tightened_goal(goal, standing(goal, views, None), risk)
        for goal, risk in zip(goals, risk_of_each(goals), strict=True)
    ]


def risk_of_each(goals: Sequence[Goal]) -> list[float]:
    """Return the risk that each goal may take, so that all those that carry a confidence are certified together."""
    n_confident = sum(goal.confidence is not None for goal in goals)
    return [0.0 if goal.confidence is None else (1.0 - goal.confidence) / n_confident for goal in goals]


def check_denominators(goals: Sequence[Goal], tables: Mapping[str, Table], classes: Classes) -> None:
    """Check that goals on ratios can be multiplied through: no predictions make a denominator negative."""
    ratios = [goal for goal in goals if isinstance(goal.left, Ratio)]
    if not ratios:
        return
    bound = bind_rates([goal.left.denominator for goal in ratios], tables, classes, ratios)  # type: ignore[union-attr]
    least = bound.constants + sum(weights.minimum(0).sum(axis=1) for weights in bound.weights.values())
    for goal, value in zip(ratios, least.tolist(), strict=True):
        if value < -FEASIBLE:
            raise ValueError(
                f"The goal {goal} cannot be multiplied through: its denominator falls to {value:.4g} for some "
                "predictions, and the comparison would turn round. Use a denominator that is never negative."
            )
