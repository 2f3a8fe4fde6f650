"""Who takes part: a method is prepared on a split once, and then asked questions at bounds."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from counterpoise import GoalClassifier
from counterpoise.goals import InfeasibleGoals
from papers.arrays import AnyArray, FloatArray
from papers.comparison.questions import (
    ALPHAS,
    BUDGETS,
    DEPLOYED,
    GOALS,
    GROUP,
    Chances,
    Question,
)
from papers.comparison.rows import Case, Rows

Ask = Callable[[Question, Any], Chances]  # of the test rows, at a bound, or None where a method takes none
Prepare = Callable[[Case], Ask]


class Tail(NamedTuple):
    """The loss of every test row, at a tail fraction and, where a method has one, a budget of average loss."""

    alpha: float
    budget: float | None
    losses: FloatArray


class Method(NamedTuple):
    """A method, the questions that it can be asked, and those of them whose bound it takes."""

    name: str
    prepare: Prepare | None = None
    asks: tuple[str, ...] = ()
    bounded: tuple[str, ...] = ()
    tails: Callable[[Case], Iterator[Tail]] | None = None
    on_scores: bool = False  # chooses by the shared scores; else it trains
    is_ours: bool = False
    needs: str = ""  # the package
    costly: bool = False  # seconds a bound: asked at the middle one alone

    def bounds(self, question: Question) -> tuple[float | None, ...]:
        """Return the bounds at which it is asked; None where it takes none."""
        if question.name not in self.bounded:
            return (None,)
        if self.costly:
            return question.bounds[1:2]
        return question.frontier if self.name == OURS_NAME else question.bounds


OURS_NAME, SURE = "GoalClassifier", "GoalClassifier, confidence 0.9"


def _columns(rows: Rows) -> dict[str, AnyArray]:
    return {GROUP: rows.group, DEPLOYED: rows.deployed}


def _same(X: FloatArray) -> FloatArray:
    return X


def _front_door(case: Case, confidence: float | None) -> tuple[Any, Callable[[Any], FloatArray]]:
    """Return our classifier without goals, and what returns the decisions of one made of it about the test rows."""
    rows, test = case.fit, case.test
    model = GoalClassifier(_same, cv="prefit", confidence=confidence, random_state=case.seed)
    model.fit(rows.scores, rows.y, sensitive_features=_columns(rows), baseline=rows.deployed)

    def chances(other: Any) -> FloatArray:
        return np.asarray(other.decision_proba(test.scores, sensitive_features=_columns(test), baseline=test.deployed))

    return model, chances


def goal_classifier(case: Case, confidence: float | None = None) -> Ask:
    """Choose by the shared scores."""
    model, chances = _front_door(case, confidence)

    def ask(question: Question, bound: float) -> Chances:
        aim: dict[str, Any] = {"goals": [question.limit.format(bound=bound)], "by": question.by or ()}
        if question.objective is not None:
            aim["objective"] = question.objective
        try:
            return chances(model.rebalance(**aim))[:, 1]
        except InfeasibleGoals as error:
            return chances(error.closest)[:, 1]
        except ValueError:  # no single rule meets the goal: the message names the mixture that does
            return chances(model.rebalance(**aim, decision="sticky"))[:, 1]

    return ask


def _tails(case: Case) -> Iterator[Tail]:
    model, chances = _front_door(case, None)
    for alpha in ALPHAS:
        for budget in BUDGETS:
            drawn = model.rebalance(alpha=alpha, budget=budget, decision="sticky")
            yield Tail(alpha, budget, wrong(chances(drawn), case.test))


def wrong(chances: FloatArray, rows: Rows) -> FloatArray:
    """Return the chance that each row is told another class than its own."""
    return np.asarray(1.0 - chances[np.arange(rows.y.size), rows.y])


def fixed_tails(said: AnyArray, case: Case) -> Iterator[Tail]:
    """Yield the tails of answers that nobody draws: one classifier for every tail."""
    losses = (np.asarray(said) != case.test.y).astype(np.float64)
    for alpha in ALPHAS:
        yield Tail(alpha, None, losses)


ALL = tuple(GOALS)
OURS = (
    Method(OURS_NAME, goal_classifier, ALL, ALL, _tails, is_ours=True),
    Method(SURE, partial(goal_classifier, confidence=0.9), ALL, ALL, is_ours=True),
)


def plain(model: Any, case: Case) -> Ask:
    """Train a model on all rows of fitting, and decide by its usual threshold."""
    decisions = clone(model).fit(case.fit.X, case.fit.y).predict(case.test.X).astype(np.float64)
    return lambda _question, _bound: decisions
