"""Goals: limits on rates, on named datasets, that read like the sentence they came from.

    positive_rate(train.where(sex="F")) >= 0.8 * positive_rate(train.where(sex="M"))

A goal is written before there are data, and is a value: it can be compared, hashed, pickled, printed and parsed back.
``bind`` turns goals and tables into signed weights on rows, ``weights @ predictions <= bounds``: all a solver needs.
"""

from counterpoise.goals.binding import BoundRates
from counterpoise.goals.bound import BoundGoals, bind, bind_objective
from counterpoise.goals.expressions import Goal, GoalCheck, Rate, Ratio
from counterpoise.goals.fairness import demographic_parity, eighty_percent_rule, equal_opportunity, equalized_odds
from counterpoise.goals.infeasible import InfeasibleGoals
from counterpoise.goals.own_metrics import forget_metric, register_metric
from counterpoise.goals.rates import (
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
from counterpoise.goals.reading import as_goals, as_objective, parse_goal, parse_rate
from counterpoise.goals.rows import Dataset
from counterpoise.goals.tables import Table
from counterpoise.goals.text import GoalSyntaxError
from counterpoise.goals.wording import UnknownName

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
    "forget_metric",
    "losses",
    "negative_rate",
    "parse_goal",
    "parse_rate",
    "positive_rate",
    "precision",
    "recall",
    "register_metric",
    "true_negative_rate",
    "true_negatives",
    "true_positive_rate",
    "true_positives",
    "win_change_ratio",
    "win_loss_ratio",
    "wins",
    "wins_minus_losses",
]
