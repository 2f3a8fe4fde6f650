"""Goals: limits on rates, on named datasets, that read like the sentence they came from.

    positive_rate(train.where(sex="F")) >= 0.8 * positive_rate(train.where(sex="M"))

A goal is written before there are data, and is a value: it can be compared, hashed, pickled, printed and parsed back.
``bind`` turns goals and tables into signed weights on rows, ``weights @ predictions <= bounds``: all a solver needs.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

from counterpoise._checks import check_fraction
from counterpoise._goal_text import GoalSyntaxError, read_comparison, read_expression
from counterpoise._language.binding import BoundRates, Views, bind_rates
from counterpoise._language.classes import Classes, two_classes
from counterpoise._language.expressions import Goal, GoalCheck, Rate, Ratio, as_rate, is_number
from counterpoise._language.infeasible import InfeasibleGoals
from counterpoise._language.population import standing, tightened_goal
from counterpoise._language.rows import Dataset
from counterpoise._language.tables import Table, as_tables
from counterpoise._language.wording import UnknownName
from counterpoise._types import ArrayLike, FloatArray
from counterpoise.rates import (
    accuracy,
    churn,
    correct,
    coverage,
    error_rate,
    f1_score,
    false_negative_rate,
    false_negatives,
    false_positive_rate,
    false_positives,
    losses,
    negative_rate,
    positive_rate,
    precision,
    recall,
    true_negative_rate,
    true_negatives,
    true_positive_rate,
    true_positives,
    win_change_ratio,
    win_loss_ratio,
    wins,
    wins_minus_losses,
)
from counterpoise.solvers.result import FEASIBLE

__all__ = [
    "BoundGoals",
    "BoundRates",
    "Dataset",
    "Goal",
    "GoalCheck",
    "GoalSyntaxError",
    "InfeasibleGoals",
    "Rate",
    "Ratio",
    "Table",
    "UnknownName",
    "accuracy",
    "as_goals",
    "as_objective",
    "bind",
    "bind_objective",
    "churn",
    "correct",
    "coverage",
    "demographic_parity",
    "eighty_percent_rule",
    "equal_opportunity",
    "equalized_odds",
    "error_rate",
    "f1_score",
    "false_negative_rate",
    "false_negatives",
    "false_positive_rate",
    "false_positives",
    "losses",
    "negative_rate",
    "parse_goal",
    "parse_rate",
    "positive_rate",
    "precision",
    "recall",
    "true_negative_rate",
    "true_negatives",
    "true_positive_rate",
    "true_positives",
    "win_change_ratio",
    "win_loss_ratio",
    "wins",
    "wins_minus_losses",
]


def parse_goal(text: str) -> Goal:
    """Read a goal from its text form; ``parse_goal(str(goal)) == goal`` for every goal.

    Examples
    --------
    >>> from counterpoise.goals import parse_goal
    >>> parse_goal("recall(train, country='New Zealand') >= 0.9")
    <Goal recall(train, country='New Zealand') >= 0.9>
    >>> parse_goal("precison(train) >= 0.9")
    Traceback (most recent call last):
    ...
    counterpoise._language.wording.UnknownName: Unknown metric 'precison'. Did you mean 'precision'? ...
    """
    left, sign, right, confidence = read_comparison(text)
    goal: Goal = left <= right if sign == "<=" else left >= right
    return goal.with_confidence(confidence)


def parse_rate(text: str) -> Rate:
    """Read a rate, such as an objective, from its text form.

    Examples
    --------
    >>> from counterpoise.goals import error_rate, false_positive_rate, parse_rate
    >>> rate = parse_rate("error_rate(train) + 2 * false_positive_rate(mail)")
    >>> rate == error_rate("train") + 2 * false_positive_rate("mail")
    True
    """
    return as_objective(read_expression(text))


def as_goals(goals: Any) -> tuple[Goal, ...]:
    """Return goals, given any mixture of goals, their texts and nested lists of both, as a flat tuple.

    Examples
    --------
    >>> from counterpoise.goals import Dataset, as_goals, eighty_percent_rule
    >>> groups = Dataset("train").by(sex=["F", "M"])
    >>> len(as_goals(["recall(train) >= 0.9", eighty_percent_rule(groups)]))
    3
    """
    if isinstance(goals, Goal):
        return (goals,)
    if isinstance(goals, str):
        return (parse_goal(goals),)
    if not isinstance(goals, Iterable):
        raise TypeError(f"goals must be goals or their texts, as in recall(train) >= 0.9; got {goals!r}.")
    return tuple(goal for part in goals for goal in as_goals(part))


def as_objective(objective: Any) -> Rate:
    """Return what an estimator shall minimize, given a rate or its text; ratios are refused."""
    if isinstance(objective, str):
        return parse_rate(objective)
    if isinstance(objective, Ratio):
        raise TypeError(
            f"{objective} is a ratio, which is not linear in the predictions, so it cannot be the objective. Minimize "
            f"error_rate(train), and set a goal such as {objective} >= 0.9: a goal can be multiplied through."
        )
    rate = as_rate(objective)
    if rate is None or not rate.terms:
        raise TypeError(f"An objective must be a rate, as error_rate(train) is; got {objective!r}.")
    return rate


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
    to certify all such goals together; see ``counterpoise.certify.tightened``.

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
    signs = _classes(tables, classes, pos_label)
    check_denominators(listed, tables, signs)
    asked = with_margins(listed, Views(tables, signs))
    linear = [goal.linear for goal in asked]
    return BoundGoals(
        listed, bind_rates(linear, tables, signs, listed), signs, np.array([rate.size for rate in linear])
    )


def bind_objective(objective: Any, data: Any, *, classes: ArrayLike | None = None, pos_label: Any = None) -> BoundRates:
    """Resolve an objective into a constant and signed weights on the rows of the data, with arguments as ``bind``."""
    tables = as_tables(data)
    return bind_rates([as_objective(objective)], tables, _classes(tables, classes, pos_label))


def _classes(tables: Mapping[str, Table], classes: ArrayLike | None, pos_label: Any) -> Classes:
    known = [labels for table in tables.values() for labels in (table.y, table.baseline)]
    return two_classes(known, classes=classes, pos_label=pos_label)


def with_margins(goals: Sequence[Goal], views: Views) -> list[Goal]:
    """Return the goals with the bounds that rows of this number must meet to certify those that carry a confidence."""
    return [
        goal if goal.confidence is None else tightened_goal(goal, standing(goal, views, None), risk)
        for goal, risk in zip(goals, risks(goals), strict=True)
    ]


def risks(goals: Sequence[Goal]) -> list[float]:
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


def demographic_parity(groups: Sequence[Dataset], *, within: float = 0.05) -> list[Goal]:
    """Ask that positive predictions be about as frequent in each group: no two rates differ by more than ``within``.

    Parameters
    ----------
    groups : sequence of Dataset
        Two or more, as ``Dataset.by`` gives them.
    within : float in [0, 1), default=0.05

    Returns
    -------
    list of Goal
        Two for each pair of groups.

    Examples
    --------
    >>> from counterpoise.goals import Dataset, demographic_parity
    >>> for goal in demographic_parity(Dataset("train").by(sex=["F", "M"]), within=0.1):
    ...     print(goal)
    positive_rate(train, sex=F) <= positive_rate(train, sex=M) + 0.1
    positive_rate(train, sex=M) <= positive_rate(train, sex=F) + 0.1
    """
    return _alike(positive_rate, groups, within)


def equal_opportunity(groups: Sequence[Dataset], *, within: float = 0.05) -> list[Goal]:
    """Ask that no two groups' recalls differ by more than ``within`` (Hardt et al. 2016); as ``demographic_parity``."""
    return _alike(recall, groups, within)


def equalized_odds(groups: Sequence[Dataset], *, within: float = 0.05) -> list[Goal]:
    """Ask that no two groups' recalls and false positive rates differ by more; see ``demographic_parity``."""
    return _alike(recall, groups, within) + _alike(false_positive_rate, groups, within)


def eighty_percent_rule(groups: Sequence[Dataset], *, ratio: float = 0.8) -> list[Goal]:
    """Ask that every group be favoured at least ``ratio`` times as often as any other.

    Examples
    --------
    >>> from counterpoise.goals import Dataset, eighty_percent_rule
    >>> print(eighty_percent_rule(Dataset("train").by(sex=["F", "M"]))[0])
    positive_rate(train, sex=F) >= 0.8 * positive_rate(train, sex=M)
    """
    if not is_number(ratio) or not 0.0 < ratio <= 1.0:
        raise ValueError(f"ratio must lie in (0, 1]; got {ratio!r}.")
    return [positive_rate(one) >= ratio * positive_rate(other) for one, other in _pairs(groups)]


def _alike(rate: Callable[[Dataset], Rate], groups: Sequence[Dataset], within: float) -> list[Goal]:
    within = check_fraction(within, "within")
    return [rate(one) <= rate(other) + within for one, other in _pairs(groups)]


def _pairs(groups: Sequence[Dataset]) -> list[tuple[Dataset, Dataset]]:
    found = list(permutations(groups, 2)) if isinstance(groups, Iterable) else []
    if not found or not all(isinstance(group, Dataset) for pair in found for group in pair):
        raise TypeError(f"groups must be two Datasets or more, as train.by(sex=['F', 'M']) gives; got {groups!r}.")
    return found
