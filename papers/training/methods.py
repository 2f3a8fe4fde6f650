"""Who takes part in ``inside_goals``: learners, questions as each method states them, and what a fit comes to."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from counterpoise import ConstrainedClassifier, LPBoostClassifier, Stopping
from counterpoise.goals import InfeasibleGoals, Table
from papers.arrays import AnyArray, FloatArray
from papers.dataset_constraints.baselines import Probabilities, reduced

INSIDE, REDUCTION, CONSTRAINED, PLAIN = (
    "inside goals",
    "ExponentiatedGradient",
    "ConstrainedClassifier",
    "plain training",
)
LINEAR, TREES, NETWORK = "linear", "trees", "network"
BOUNDS = (0.01, 0.02, 0.04)  # that all are asked for
ASKED = 0.02  # where one bound will do
MORE_BOUNDS = (0.0, 0.005, 0.06)  # of ours, so that it reaches every violation of the others
PARITY, ODDS, RECALL, WITH_CHURN = "demographic parity", "equalized odds", "recall by group", "parity and churn"
RATES = {
    PARITY: ("positive_rate",),
    ODDS: ("recall", "false_positive_rate"),
    RECALL: ("recall",),
    WITH_CHURN: ("positive_rate",),
}
CHURN = 0.1
_KINDS = {PARITY: "DemographicParity", ODDS: "EqualizedOdds", RECALL: "TruePositiveRateParity"}
_NEAR = "abs({rate}(train, sex={sex}) - {rate}(train)) <= {bound}"
_ROUNDS = 30
_EVEN = 0.5  # probability of a score of 0
_STRENGTH = 1e-3  # regularization of the linear classifier with constraints: better on test rows than 1/n


class People(NamedTuple):
    """Rows, labels and groups; ``deployed`` says what another model answers, where it is asked about churn."""

    X: AnyArray
    y: AnyArray
    sex: AnyArray
    deployed: AnyArray | None = None


class Answer(NamedTuple):
    """What a fit comes to: the chance that each row is called positive."""

    method: str
    bound: float | None
    n_fits: float  # of the learner; NaN where nothing like it is counted
    seconds: float  # of processor time
    decide: Probabilities


def linear() -> Any:
    """Return the linear learner."""
    return LogisticRegression(max_iter=1000)


def trees() -> Any:
    """Return gradient-boosted trees."""
    lightgbm = import_module("lightgbm")  # an optional package
    return lightgbm.LGBMClassifier(n_estimators=30, verbose=-1, n_jobs=1, random_state=0)


def network() -> Any:
    """Return a small network."""
    from counterpoise.learners import NetworkLearner, networks  # noqa: PLC0415 - an optional package

    steps: dict[str, Any] = {"n_iterations": 300, "decay_at": (200,), "batch_size": 128, "warmup_epochs": 5}
    module = networks.Perceptron((32, 32))
    return NetworkLearner(module, **steps, learning_rate=0.05, weight_decay=1e-4, device="cpu", random_state=0)


LEARNERS: dict[str, Callable[[], Any]] = {LINEAR: linear, TREES: trees, NETWORK: network}


def answers(question: str, learner: str, train: People, mail: Table | None) -> Iterator[Answer]:
    """Yield what every method that can state the question comes to, at every bound."""
    model = LEARNERS[learner]()
    yield plain(model, train)
    for bound in (*BOUNDS, *MORE_BOUNDS) if mail is None else (ASKED,):
        yield inside(model, question, train, mail, bound)
        if learner == LINEAR:
            with suppress(InfeasibleGoals):  # no linear classifier was found that meets them
                yield constrained(question, train, mail, bound)
        if mail is None and bound in BOUNDS:
            yield exponentiated(model, question, train, bound)


def goals_of(question: str, train: People, bound: float) -> list[str]:
    """Return a question as goals: the rate of each group is near to that of all rows."""
    near = [_NEAR.format(rate=rate, sex=sex, bound=bound) for rate in RATES[question] for sex in np.unique(train.sex)]
    return [*near, f"churn(mail) <= {CHURN}"] if question == WITH_CHURN else near


def plain(learner: Any, train: People) -> Answer:
    """Fit the learner once, without goals."""
    start = time.process_time()
    model = clone(learner).fit(train.X, train.y)
    return Answer(PLAIN, None, 1, time.process_time() - start, model.predict)


def inside(learner: Any, question: str, train: People, mail: Table | None, bound: float) -> Answer:
    """Boost inside goals; where the learner cannot meet them, the mixture that misses them least is taken."""
    goals, start = goals_of(question, train, bound), time.process_time()
    settings: dict[str, Any] = {"n_estimators": _ROUNDS, "alpha": 1.0, "stopping": Stopping(n_folds=None)}
    model = LPBoostClassifier(learner, goals=goals, budget=None, random_state=0, **settings)
    try:
        model.fit(train.X, train.y, **_others(train, mail))
    except InfeasibleGoals as error:
        model = error.closest
    seconds = time.process_time() - start
    return Answer(INSIDE, bound, len(model.estimators_), seconds, lambda X: model.decision_proba(X)[:, 1])


def constrained(question: str, train: People, mail: Table | None, bound: float) -> Answer:
    """Train a linear classifier under constraints, which decides by the sign of its score, as in its paper."""
    start = time.process_time()
    model = ConstrainedClassifier(goals=goals_of(question, train, bound), regularization=_STRENGTH, decision="ramp")
    model.fit(train.X, train.y, **_others(train, mail))
    seconds = time.process_time() - start
    return Answer(CONSTRAINED, bound, np.nan, seconds, lambda X: (model.predict_proba(X)[:, 1] > _EVEN).astype(float))


def exponentiated(learner: Any, question: str, train: People, bound: float) -> Answer:
    """Run fairlearn's reduction, whose bound means what our goals say."""
    reductions, start = import_module("fairlearn.reductions"), time.process_time()
    constraint = getattr(reductions, _KINDS[question])(difference_bound=bound)
    model = reductions.ExponentiatedGradient(learner, constraint, eps=bound)
    decide = reduced(model, train.X, train.y, train.sex)
    return Answer(REDUCTION, bound, model.n_oracle_calls_, time.process_time() - start, decide)


def _others(train: People, mail: Table | None) -> dict[str, Any]:
    return {"sensitive_features": {"sex": train.sex}, "datasets": {} if mail is None else {"mail": mail}}


def violation_of(question: str, people: People, chances: FloatArray) -> float:
    """Return how far the rate of a group is from that of all rows at most."""
    rows = {"positive_rate": np.ones(len(people.y), bool), "recall": people.y == 1}
    rows["false_positive_rate"] = people.y == 0
    found = [
        abs(chances[rows[rate] & (people.sex == sex)].mean() - chances[rows[rate]].mean())
        for rate in RATES[question]
        for sex in np.unique(people.sex)
    ]
    return float(max(found))
