"""Who takes part: a method is prepared on a split once, and then asked questions at bounds."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from counterpoise import ConstrainedClassifier, DROBoostClassifier, GoalClassifier, LPBoostClassifier
from counterpoise.goals import InfeasibleGoals
from papers.arrays import AnyArray, FloatArray
from papers.comparison.questions import (
    ALPHAS,
    BUDGETS,
    DEPLOYED,
    GOALS,
    GROUP,
    ODDS,
    PARITY,
    RATIO,
    Chances,
    Question,
)
from papers.comparison.rows import Case, Rows

Ask = Callable[[Question, Any], Chances]  # of the test rows, at a bound, or None where a method takes none
Prepare = Callable[[Case], Ask]
_ROUNDS = 30
_STRENGTH = 1e-3  # regularization of the linear classifier, as in ``inside_goals``


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
    on_scores: bool = False  # chooses by the shared scores, on the selection rows; else it has all rows of fitting
    is_ours: bool = False
    needs: str = ""  # the package
    many_classes: bool = True  # of its tails

    def bounds(self, question: Question) -> tuple[float | None, ...]:
        """Return the bounds at which it is asked; None where it takes none."""
        if question.name not in self.bounded:
            return (None,)
        return question.frontier if self.name in (WHOLE, SCORES) else question.bounds


WHOLE, SCORES = "GoalClassifier", "GoalClassifier, shared scores"
INSIDE, LINEAR, ROBUST = "LPBoost inside goals", "ConstrainedClassifier", "DROBoost"


def _columns(rows: Rows) -> dict[str, AnyArray]:
    return {GROUP: rows.group, DEPLOYED: rows.deployed}


def _same(X: FloatArray) -> FloatArray:
    return X


def _front_door(case: Case, *, whole: bool) -> tuple[Any, Callable[[Any], FloatArray]]:
    """Return our classifier without goals, and what returns the decisions of one made of it about the test rows.

    On all rows of fitting it trains the tuned model, and chooses on out-of-fold scores; else on the shared scores.
    """
    rows = case.fit if whole else case.choice
    estimator, cv = (case.new(), 5) if whole else (_same, "prefit")
    model = GoalClassifier(estimator, cv=cv, confidence=None, random_state=case.seed)
    model.fit(rows.X if whole else rows.scores, rows.y, sensitive_features=_columns(rows), baseline=rows.deployed)
    X = case.test.X if whole else case.test.scores

    def chances(other: Any) -> FloatArray:
        return np.asarray(other.decision_proba(X, sensitive_features=_columns(case.test), baseline=case.test.deployed))

    return model, chances


def _ours(case: Case, *, whole: bool) -> Ask:
    model, chances = _front_door(case, whole=whole)

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


def _our_tails(case: Case, *, whole: bool) -> Iterator[Tail]:
    model, chances = _front_door(case, whole=whole)
    for alpha in ALPHAS:
        for budget in BUDGETS:
            drawn = model.rebalance(alpha=alpha, budget=budget, decision="sticky")
            yield Tail(alpha, budget, wrong(chances(drawn), case.test))


def wrong(chances: FloatArray, rows: Rows) -> FloatArray:
    """Return the chance that each row is told another class than its own."""
    return np.asarray(1.0 - chances[np.arange(rows.y.size), rows.y])


def goal_classifier(case: Case) -> Ask:
    """Train the tuned model on all rows of fitting, and choose on out-of-fold scores."""
    return _ours(case, whole=True)


def on_shared_scores(case: Case) -> Ask:
    """Choose on the selection rows by the scores that all post-processors have."""
    return _ours(case, whole=False)


def _goal_tails(case: Case) -> Iterator[Tail]:
    return _our_tails(case, whole=True)


def _shared_tails(case: Case) -> Iterator[Tail]:
    return _our_tails(case, whole=False)


def inside_goals(case: Case) -> Ask:
    """Boost the tuned model inside the goals."""

    def ask(question: Question, bound: float) -> Chances:
        goals = [question.limit.format(bound=bound)]
        settings: dict[str, Any] = {"n_estimators": _ROUNDS, "alpha": 1.0, "budget": None, "random_state": case.seed}
        model: Any = LPBoostClassifier(case.new(), goals=goals, **settings)
        try:
            model.fit(case.fit.X, case.fit.y, sensitive_features=_columns(case.fit))
        except InfeasibleGoals as error:
            model = error.closest
        return np.asarray(model.decision_proba(case.test.X)[:, 1])

    return ask


def constrained(case: Case) -> Ask:
    """Train one linear classifier under the goals."""

    def ask(question: Question, bound: float) -> Chances:
        model = ConstrainedClassifier(goals=[question.limit.format(bound=bound)], regularization=_STRENGTH)
        rows = case.fit
        model.fit(rows.numbers, rows.y, sensitive_features=_columns(rows), baseline=rows.deployed)
        return np.asarray(model.predict(case.test.numbers), dtype=np.float64)

    return ask


def robust(case: Case) -> Iterator[Tail]:
    """Boost for the worst distribution near the sample."""
    model = DROBoostClassifier(random_state=case.seed).fit(case.fit.X, case.fit.y)
    yield from fixed_tails(model.predict(case.test.X), case)


def fixed_tails(said: AnyArray, case: Case) -> Iterator[Tail]:
    """Yield the tails of answers that nobody draws: one classifier for every tail."""
    losses = (np.asarray(said) != case.test.y).astype(np.float64)
    for alpha in ALPHAS:
        yield Tail(alpha, None, losses)


ALL = tuple(GOALS)
OURS = (
    Method(WHOLE, goal_classifier, ALL, ALL, _goal_tails, is_ours=True),
    Method(SCORES, on_shared_scores, ALL, ALL, _shared_tails, on_scores=True, is_ours=True),
    Method(INSIDE, inside_goals, (PARITY, ODDS), (PARITY, ODDS), is_ours=True),
    Method(LINEAR, constrained, (PARITY, RATIO), (PARITY, RATIO), is_ours=True),
    Method(ROBUST, tails=robust, is_ours=True, many_classes=False),
)


def plain(model: Any, case: Case) -> Ask:
    """Train a model on all rows of fitting, and decide by its usual threshold."""
    said = clone(model).fit(case.fit.X, case.fit.y).predict(case.test.X).astype(np.float64)
    return lambda _question, _bound: said
