"""What must not matter to a classifier inside goals: names and order of classes, groups and goals, repeated rows."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import counterpoise as cp
from counterpoise.learners import HistogramTree

RNG = np.random.default_rng(3)
N = 400
SEX = RNG.choice(["F", "M"], N, p=[0.35, 0.65])
X = RNG.normal(size=(N, 3)).round(2) + 0.5 * (SEX == "M")[:, None]
IS_YES = X[:, 0] + 0.7 * X[:, 1] + RNG.normal(size=N) > 0.9
TIMES = np.where(X[:, 0] > 0.8, 6, 1)  # of those who are likely to be positive
GOALS = ["recall(train) >= 0.55", "abs(positive_rate(train, sex=F) - positive_rate(train, sex=M)) <= 0.1"]
LOOSE = [GOALS[0], GOALS[1].replace("0.1", "0.25")]
RATE = "false_positive_rate(train)"
SETTINGS = {"goals": GOALS, "random_state": 0}
LINEAR, TREE = LogisticRegression(tol=1e-10), DecisionTreeClassifier(max_depth=3, random_state=0)
STUMP = DecisionTreeClassifier(max_depth=1, random_state=0)
FEW = {"n_estimators": 4, "random_state": 0}

# Each takes a pool of models trained on other rows, where it mixes models.
CASES = {
    "models": lambda pool: cp.MixtureClassifier(pool, alpha=0.5, goals=LOOSE, random_state=0),
    "thresholds": lambda pool: cp.MixtureClassifier(pool, scores=True, by="sex", alpha=1.0, **SETTINGS),
    "a rate, thresholds": lambda pool: cp.MixtureClassifier(pool, scores=True, objective=RATE, **SETTINGS),
    "a fixed rule": lambda pool: cp.MixtureClassifier(
        pool, scores=True, by="sex", alpha=1.0, decision="fixed", **SETTINGS
    ),
    "deferral": lambda pool: cp.MixtureClassifier(pool, scores=True, alpha=1.0, defer_cost=0.2, **SETTINGS),
    "a budget": lambda pool: cp.MixtureClassifier([*pool, trained(STUMP)], alpha=0.3, budget=0.01, random_state=0),
    "a budget of rules": lambda pool: cp.MixtureClassifier(pool, scores=True, alpha=0.3, budget=0.02, **SETTINGS),
    "distances": lambda pool: cp.MixtureClassifier(  # noqa: ARG005 - scores that are no probabilities
        [trained(LinearSVC(tol=1e-8))], scores=True, alpha=1.0, **SETTINGS
    ),
    "prefit": lambda pool: cp.GoalClassifier(pool, cv="prefit", by="sex", **SETTINGS),
    "folds": lambda pool: cp.GoalClassifier(LINEAR, cv=2, **SETTINGS),  # noqa: ARG005
    "ramps": lambda pool: cp.ConstrainedClassifier(**SETTINGS),  # noqa: ARG005
    "LPBoost": lambda pool: cp.LPBoostClassifier(HistogramTree(2), goals=GOALS, alpha=0.5, **FEW),  # noqa: ARG005
    "a rate, LPBoost": lambda pool: cp.LPBoostClassifier(HistogramTree(2), goals=GOALS, objective=RATE, **FEW),  # noqa: ARG005
    "a rate, AdaLPBoost": lambda pool: cp.AdaLPBoostClassifier(  # noqa: ARG005
        HistogramTree(2), goals=GOALS[:1], objective=RATE, n_folds=None, **FEW
    ),
}
LABELS = np.where(IS_YES, "yes", "no")


def trained(model, labels=LABELS):
    return clone(model).fit(X[::2], labels[::2])


def fitted(name, labels=LABELS, sex=SEX, *, goals=None, weights=None, repeat=1, **settings):
    """Return a classifier of the list, fitted to people whose labels and groups may have other names."""
    model = CASES[name]([trained(one, labels) for one in (LINEAR, TREE)]).set_params(**settings)
    if name == "distances":
        model.set_params(estimators=[trained(LinearSVC(tol=1e-8), labels)])
    if name == "a budget":
        model.set_params(estimators=[trained(one, labels) for one in (LINEAR, TREE, STUMP)])
    if goals is not None:
        model.set_params(goals=goals)
    rows = np.repeat(np.arange(N), repeat)
    return model.fit(X[rows], labels[rows], weights, sensitive_features={"sex": sex[rows]})


def told(model):
    """Return the value of what is minimized, and how each goal stands."""
    if isinstance(model, cp.ConstrainedClassifier):
        return [check.value for check in model.indicator_checks_]
    return [model.value_, *(check.value for check in model.check_goals())]


@pytest.mark.parametrize("name", CASES)
def test_the_positive_class_may_be_the_first_one(name):
    plain = fitted(name)
    turned = fitted(name, np.where(IS_YES, "a", "b"), pos_label="a")
    np.testing.assert_allclose(told(turned), told(plain), atol=2e-3)
    shares = [np.mean(model.predict(X, **groups_of(model)) == word) for model, word in ((plain, "yes"), (turned, "a"))]
    assert shares[0] == pytest.approx(shares[1], abs=0.06)  # drawn otherwise


def groups_of(model):
    return {"sensitive_features": {"sex": SEX}} if getattr(model, "by", ()) else {}


@pytest.mark.parametrize("name", CASES)
def test_names_of_groups_do_not_matter(name):
    other = np.where(SEX == "F", "z", "a")
    goals = [goal.replace("sex=F", "sex=z").replace("sex=M", "sex=a") for goal in CASES[name]([]).goals]
    plain, renamed = fitted(name), fitted(name, sex=other, goals=goals)
    np.testing.assert_allclose(told(renamed), told(plain), atol=1e-6)
    for one, two in zip(getattr(plain, "rules_", ()), getattr(renamed, "rules_", ()), strict=True):
        if len(one.thresholds) > 1:
            assert two.thresholds["sex=z"] == pytest.approx(one.thresholds["sex=F"])
            assert two.thresholds["sex=a"] == pytest.approx(one.thresholds["sex=M"])


@pytest.mark.parametrize("name", [name for name in CASES if name != "a rate, AdaLPBoost"])
def test_the_order_of_goals_does_not_matter(name):
    plain, other = fitted(name), fitted(name, goals=CASES[name]([]).goals[::-1])
    one, two = told(plain), told(other)
    np.testing.assert_allclose(sorted(one), sorted(two), atol=2e-3)


@pytest.mark.parametrize("name", [name for name in CASES if name != "folds"])  # which are drawn of the rows
def test_a_weight_is_so_many_rows_in_goals_and_objective(name):
    weighted, repeated = fitted(name, weights=TIMES.astype(float)), fitted(name, repeat=TIMES)
    np.testing.assert_allclose(told(weighted), told(repeated), atol=2e-3)
    counted = np.average(IS_YES, weights=TIMES) - IS_YES.mean()
    assert abs(counted) > 0.005  # so that weights that are forgotten would show
