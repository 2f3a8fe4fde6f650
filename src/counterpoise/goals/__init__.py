"""Goals: limits on rates, on named datasets, that read like the sentence they came from.

    positive_rate(train.where(sex="F")) >= 0.8 * positive_rate(train.where(sex="M"))

A goal is written before there are data, and is a value: it can be compared, hashed, pickled, printed and parsed back.
``bind`` turns goals and tables into signed weights on rows, ``weights @ predictions <= bounds``: all a solver needs.
"""

from counterpoise.goals import rates
from counterpoise.goals.binding import BoundRates
from counterpoise.goals.bound_goals import BoundGoals, bind, bind_objective, validate_goals
from counterpoise.goals.catalogue import (
    demographic_parity,
    eighty_percent_rule,
    equal_opportunity,
    equalized_odds,
    forget_metric,
    register_metric,
)
from counterpoise.goals.checks import GoalCheck
from counterpoise.goals.disparity import conditional_disparity
from counterpoise.goals.equality import equal
from counterpoise.goals.expressions import Goal
from counterpoise.goals.infeasible import InfeasibleGoals
from counterpoise.goals.parsing import GoalSyntaxError, as_goals, as_objective, parse_goal, parse_rate
from counterpoise.goals.rates import *  # noqa: F403 - every rate, as listed there
from counterpoise.goals.tables import Table
from counterpoise.goals.terms import NoRows, UnknownName, UnknownValue

__all__ = [
    "BoundGoals",
    "BoundRates",
    "Goal",
    "GoalCheck",
    "GoalSyntaxError",
    "InfeasibleGoals",
    "NoRows",
    "Table",
    "UnknownName",
    "UnknownValue",
    "as_goals",
    "as_objective",
    "bind",
    "bind_objective",
    "conditional_disparity",
    "demographic_parity",
    "eighty_percent_rule",
    "equal",
    "equal_opportunity",
    "equalized_odds",
    "forget_metric",
    "parse_goal",
    "parse_rate",
    "register_metric",
    "validate_goals",
]
__all__ += rates.__all__
