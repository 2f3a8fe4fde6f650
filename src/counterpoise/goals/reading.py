"""Goals and rates from whatever they are given as: themselves, their texts, lists of both."""

from collections.abc import Iterable, Iterator
from typing import Any

from counterpoise.goals.expressions import Rate, Ratio, Several, as_rate
from counterpoise.goals.goal import Goal
from counterpoise.goals.reach import check_reach
from counterpoise.goals.terms import Term
from counterpoise.goals.text import read_comparison, read_expression


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
    counterpoise.goals.UnknownName: Unknown metric 'precison'. Did you mean 'precision'? ...
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


def are_asked(goals: Any) -> bool:
    """Tell whether there are goals, of what ``as_goals`` takes, without reading their texts.

    Examples
    --------
    >>> from counterpoise.goals.reading import are_asked
    >>> are_asked(["recall(train) >= 0.9"]), are_asked([[], ()])
    (True, False)
    """
    return isinstance(goals, (Goal, str)) or any(are_asked(part) for part in goals)


def asked_goals(goals: Any, *, trains: bool = False, defers: bool = True) -> tuple[Goal, ...]:
    """Return goals that models are to be chosen or trained for, after checking their bounds: see ``check_reach``.

    Where rows cannot be deferred, goals on those are refused.

    Examples
    --------
    >>> from counterpoise.goals import asked_goals
    >>> asked_goals("recall(train) >= 0.9")
    (<Goal recall(train) >= 0.9>,)
    >>> asked_goals("recall(train) >= -0.5")
    Traceback (most recent call last):
    ...
    ValueError: The goal recall(train) >= -0.5 asks for nothing: it is about what is from 0 to 1. ...
    """
    found = as_goals(goals)
    check_reach(found, trains=trains)
    if not defers:
        refuse_deferral(found)
    return found


def refuse_deferral(asked: Iterable[Goal | Rate]) -> None:
    """Refuse goals and objectives that speak of deferred rows, for whoever decides about all rows."""
    for one in asked:
        if any(all(count.positive is None for count in term.metric.counts) for term in terms_of(one)):
            raise ValueError(
                f"{one} speaks of deferred rows, and nothing is deferred: set deferral, the loss of a row that a "
                "person decides about, as in GoalClassifier(deferral=Deferral(0.2)); in a goals file it is a parameter "
                'of the method "goals", deferral = { cost = 0.2 }, on the command line --defer-cost.'
            )


def terms_of(asked: Any) -> Iterator[Term]:
    """Yield all terms of a goal, a rate or a ratio."""
    if isinstance(asked, Goal):
        left = asked.left.sample if isinstance(asked.left, Several) else (asked.left,)
        for side in (*left, asked.right):
            yield from terms_of(side)
    elif isinstance(asked, Ratio):
        yield from (*asked.numerator.terms, *asked.denominator.terms)
    else:
        yield from asked.terms


def as_objective(objective: Any) -> Rate:
    """Return what an estimator shall minimize, given a rate or its text; ratios are refused.

    Examples
    --------
    >>> from counterpoise.goals import as_objective
    >>> as_objective("error_rate(train) + 2 * false_positive_rate(mail)")
    <error_rate(train) + 2 * false_positive_rate(mail)>
    """
    if isinstance(objective, str):
        return parse_rate(objective)
    if isinstance(objective, Ratio):
        raise TypeError(
            f"{objective} is a ratio, which is not linear in the predictions, so it cannot be the objective. Minimize "
            f"error_rate(train), and set a goal such as {objective} >= 0.9: a goal can be multiplied through."
        )
    if isinstance(objective, Several):
        raise TypeError(
            f"{objective} is the worst of several rates, which is not linear, so it cannot be the objective. Minimize "
            f"error_rate(train), and set a goal such as {objective} {objective.sense or '>='} 0.1."
        )
    rate = as_rate(objective)
    if rate is None or not rate.terms:
        raise TypeError(f"An objective must be a rate, as error_rate(train) is; got {objective!r}.")
    return rate
