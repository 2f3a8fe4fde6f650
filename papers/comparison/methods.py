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


OURS_NAME, SURE = "GoalClassifier", "GoalClassifier as it comes"


def _columns(rows: Rows) -> dict[str, AnyArray]:
    return {GROUP: rows.group, DEPLOYED: rows.deployed}


def _same(X: FloatArray) -> FloatArray:
    return X


class Chooser:
    """Our classifier, fitted once without goals; each answer is a choice for the goals of a question.

    By the shared scores, or as it comes: then it trains the tuned model in folds, which decide together, and keeps
    margins for new rows. ``reached`` tells whether the last choice has the confidence that it was asked for.
    """

    def __init__(self, case: Case, *, as_it_comes: bool = False) -> None:
        rows, self._case = case.fit, case
        self._test = case.test.X if as_it_comes else case.test.scores
        how: dict[str, Any] = {} if as_it_comes else {"cv": "prefit", "confidence": None}
        self._model = GoalClassifier(case.new() if as_it_comes else _same, random_state=case.seed, **how)
        columns: dict[str, Any] = {"sensitive_features": _columns(rows), "baseline": rows.deployed}
        self._model.fit(rows.X if as_it_comes else rows.scores, rows.y, **columns)
        self.reached: bool | None = None

    def __call__(self, question: Question, bound: float | None) -> Chances:
        """Return the chance that each test row is called positive."""
        aim: dict[str, Any] = {"goals": [question.limit.format(bound=bound)], "by": question.by or ()}
        if question.objective is not None:
            aim["objective"] = question.objective
        try:
            return self.chances(**aim)[:, 1]
        except InfeasibleGoals as error:
            return self._decide(error.closest, reached=False)[:, 1]
        except ValueError:  # no single rule meets the goal: the message names the mixture that does
            return self.chances(**aim, decision="sticky")[:, 1]

    def chances(self, **aim: Any) -> FloatArray:
        """Return the chances of all classes on the test rows, of the choice for an aim."""
        model = self._model.rebalance(**aim)
        return self._decide(model, reached=model.confidence_ is not None)

    def _decide(self, model: Any, *, reached: bool) -> FloatArray:
        test = self._case.test
        self.reached = reached if self._model.confidence is not None else None
        return np.asarray(model.decision_proba(self._test, sensitive_features=_columns(test), baseline=test.deployed))


def _tails(case: Case) -> Iterator[Tail]:
    choose = Chooser(case)
    for alpha in ALPHAS:
        for budget in BUDGETS:
            chances = choose.chances(alpha=alpha, budget=budget, decision="sticky")
            yield Tail(alpha, budget, wrong(chances, case.test))


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
    Method(OURS_NAME, Chooser, ALL, ALL, _tails, is_ours=True),
    Method(SURE, partial(Chooser, as_it_comes=True), ALL, ALL, is_ours=True),
)


def plain(model: Any, case: Case) -> Ask:
    """Train a model on all rows of fitting, and decide by its usual threshold."""
    decisions = clone(model).fit(case.fit.X, case.fit.y).predict(case.test.X).astype(np.float64)
    return lambda _question, _bound: decisions
