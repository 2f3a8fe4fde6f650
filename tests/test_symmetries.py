"""What must not matter to a classifier inside goals: names and order of classes, groups and goals, repeated rows."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import counterpoise as cp
from counterpoise import Stopping
from counterpoise.learners import HistogramTree
from tests.tiers import some_fast

RNG = np.random.default_rng(3)
N = 400
SEX = RNG.choice(["F", "M"], N, p=[0.35, 0.65])
X = RNG.normal(size=(N, 3)).round(2) + 0.5 * (SEX == "M")[:, None]
IS_YES = X[:, 0] + 0.7 * X[:, 1] + RNG.normal(size=N) > 0.9
TIMES = np.where(X[:, 0] > 0.8, 6, 1)  # of those who are likely to be positive
GOALS = ["recall >= 0.55", "abs(positive_rate(sex=F) - positive_rate(sex=M)) <= 0.1"]
LOOSE = [GOALS[0], GOALS[1].replace("0.1", "0.25")]
RATE = "false_positive_rate"
SETTINGS = {"goals": GOALS, "random_state": 0}
LINEAR, TREE = LogisticRegression(tol=1e-10), DecisionTreeClassifier(max_depth=3, random_state=0)
STUMP = DecisionTreeClassifier(max_depth=1, random_state=0)
FEW = {"n_estimators": 4, "stopping": Stopping(n_folds=None), "random_state": 0}
LEAVES = HistogramTree(2, min_samples_leaf=1)

# Models that are asked, and the classifier that is made of them.
CASES = {
    "models": ((LINEAR, TREE), cp.MixtureClassifier([], alpha=0.5, goals=LOOSE, random_state=0)),
    "thresholds": (
        (LINEAR, TREE),
        cp.GoalClassifier([], cv="prefit", decision="sticky", by="sex", alpha=1.0, **SETTINGS, confidence=None),
    ),
    "a rate, thresholds": (
        (LINEAR, TREE),
        cp.GoalClassifier([], cv="prefit", decision="sticky", objective=RATE, **SETTINGS, confidence=None),
    ),
    "a fixed rule": (
        (LINEAR, TREE),
        cp.GoalClassifier([], cv="prefit", by="sex", alpha=1.0, decision="fixed", **SETTINGS, confidence=None),
    ),
    "deferral": (
        (LINEAR, TREE),
        cp.GoalClassifier(
            [], cv="prefit", decision="sticky", alpha=1.0, deferral=cp.Deferral(0.2), **SETTINGS, confidence=None
        ),
    ),
    "a budget": ((LINEAR, TREE, STUMP), cp.MixtureClassifier([], alpha=0.3, budget=0.01, random_state=0)),
    "a budget of rules": (
        (LINEAR, TREE),
        cp.GoalClassifier([], cv="prefit", decision="sticky", alpha=0.3, budget=0.02, **SETTINGS, confidence=None),
    ),
    "distances": (
        (LinearSVC(tol=1e-8),),
        cp.GoalClassifier([], cv="prefit", decision="sticky", alpha=1.0, **SETTINGS, confidence=None),
    ),
    "prefit": ((LINEAR, TREE), cp.GoalClassifier([], cv="prefit", by="sex", **SETTINGS, confidence=None)),
    "folds": ((), cp.GoalClassifier(LINEAR, cv=2, **SETTINGS, confidence=None)),
    "ramps": ((), cp.ConstrainedClassifier(**SETTINGS)),
    "LPBoost": ((), cp.LPBoostClassifier(LEAVES, goals=GOALS, alpha=0.5, **FEW)),
    "a rate, LPBoost": ((), cp.LPBoostClassifier(LEAVES, goals=GOALS, objective=RATE, **FEW)),
    "a rate, AdaLPBoost": ((), cp.AdaLPBoostClassifier(LEAVES, goals=GOALS[:1], objective=RATE, **FEW)),
}
LABELS = np.where(IS_YES, "yes", "no")


def fitted(name, labels=LABELS, sex=SEX, *, weights=None, repeat=1, **settings):
    """Return a classifier of the list, fitted to people whose labels and groups may have other names."""
    models, classifier = CASES[name]
    model, pool = clone(classifier), [clone(one).fit(X[::2], labels[::2]) for one in models]
    if pool:
        model.set_params(**{"estimator" if isinstance(model, cp.GoalClassifier) else "estimators": pool})
    rows = np.repeat(np.arange(N), repeat)
    return model.set_params(**settings).fit(X[rows], labels[rows], weights, sensitive_features={"sex": sex[rows]})


def told(model):
    """Return the value of what is minimized, and how each goal stands."""
    if isinstance(model, cp.ConstrainedClassifier):
        return [check.value for check in model.indicator_checks_]
    return [model.value_, *(check.value for check in model.check_goals())]


@pytest.mark.parametrize("name", some_fast(CASES, 6))
def test_the_positive_class_may_be_the_first_one(name):
    plain = fitted(name)
    turned = fitted(name, np.where(IS_YES, "a", "b"), pos_label="a")
    np.testing.assert_allclose(told(turned), told(plain), atol=2e-3)
    shares = [np.mean(model.predict(X, **groups_of(model)) == word) for model, word in ((plain, "yes"), (turned, "a"))]
    assert shares[0] == pytest.approx(shares[1], abs=0.06)  # drawn otherwise


def groups_of(model):
    return {"sensitive_features": {"sex": SEX}} if getattr(model, "by", ()) else {}


@pytest.mark.parametrize("name", some_fast(CASES, 6))
def test_names_of_groups_do_not_matter(name):
    other = np.where(SEX == "F", "z", "a")
    goals = [goal.replace("sex=F", "sex=z").replace("sex=M", "sex=a") for goal in CASES[name][1].goals]
    plain, renamed = fitted(name), fitted(name, sex=other, goals=goals)
    np.testing.assert_allclose(told(renamed), told(plain), atol=1e-6)
    for one, two in zip(getattr(plain, "rules_", ()), getattr(renamed, "rules_", ()), strict=True):
        if len(one.thresholds) > 1:
            assert two.thresholds["sex=z"] == pytest.approx(one.thresholds["sex=F"])
            assert two.thresholds["sex=a"] == pytest.approx(one.thresholds["sex=M"])


@pytest.mark.parametrize("name", some_fast([name for name in CASES if name != "a rate, AdaLPBoost"], 6))
def test_the_order_of_goals_does_not_matter(name):
    plain, other = fitted(name), fitted(name, goals=CASES[name][1].goals[::-1])
    one, two = told(plain), told(other)
    np.testing.assert_allclose(sorted(one), sorted(two), atol=2e-3)


# Folds are drawn of the rows.
@pytest.mark.parametrize("name", some_fast([name for name in CASES if name != "folds"], 6))
def test_a_weight_is_so_many_rows_in_goals_and_objective(name):
    weighted, rows = fitted(name, weights=TIMES.astype(float)), np.repeat(np.arange(N), TIMES)
    given = {"sensitive_features": {"sex": SEX[rows]}}
    if "Boost" in name:  # other trees are grown of repeated rows, whose bins are others
        repeated = weighted.rebalance(X[rows], LABELS[rows], **given)
    else:
        repeated = fitted(name, repeat=TIMES)
        own = weighted.check_goals(X, LABELS, sample_weight=TIMES, sensitive_features={"sex": SEX})
        others = weighted.check_goals(X[rows], LABELS[rows], **given)
        assert [one.value for one in own] == pytest.approx([one.value for one in others], abs=1e-9)
    assert told(weighted)[0] == pytest.approx(told(repeated)[0], abs=2e-3)
    plain = fitted(name)
    assert abs(told(plain)[0] - told(weighted)[0]) > 0.005  # weights that are forgotten would show
