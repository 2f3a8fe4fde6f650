"""What a mixture minimises by default: a tail, of whose average cost the boosters keep a budget."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification

import counterpoise as cp
from counterpoise.learners import HistogramTree
from counterpoise.rules.cautions import CostlyDecisions
from counterpoise.theory.risks import KL, CVaR

X, Y = make_classification(400, 6, n_informative=4, flip_y=0.2, class_sep=0.6, random_state=1)
GROUPS = np.where(X[:, 0] > 0, "a", "b")
TREE = HistogramTree(3)
BOOSTERS = [
    cp.AdaLPBoostClassifier(TREE, n_estimators=8, random_state=0),
    cp.LPBoostClassifier(TREE, n_estimators=8, random_state=0),
]


def mixture(**settings):
    pool = [HistogramTree(depth).fit(X[:200], Y[:200]) for depth in (1, 2, 4)]
    return cp.MixtureClassifier(pool, random_state=0, **settings)


def goals(**settings):
    return cp.GoalClassifier(HistogramTree(3), cv=3, decision="sticky", random_state=0, **settings, confidence=None)


MAKERS = {
    "adalp": lambda **settings: clone(BOOSTERS[0]).set_params(**settings),
    "lp": lambda **settings: clone(BOOSTERS[1]).set_params(**settings),
    "mixture": mixture,
    "goals": goals,
}


@pytest.mark.parametrize(("name", "alpha"), [("adalp", 0.1), ("lp", 0.1), ("mixture", 0.1), ("goals", 1.0)])
def test_alpha_is_none_by_default_and_then_that_of_the_class(name, alpha):
    model = MAKERS[name]()
    assert model.alpha is None
    assert model.fit(X, Y).alpha_ == alpha
    given = MAKERS[name](alpha=alpha).fit(X, Y)
    np.testing.assert_array_equal(given.mixture_, model.mixture_)
    assert MAKERS[name](alpha=0.4).fit(X, Y).alpha_ == 0.4


@pytest.mark.parametrize("objective", [CVaR(0.5), KL(0.1), "false_positive_rate", "WorstGroup()"])
@pytest.mark.parametrize("name", MAKERS)
def test_alpha_beside_an_objective_is_refused_before_anything_is_trained(name, objective):
    model = MAKERS[name](alpha=0.2, objective=objective)
    text = r"alpha=0\.2 is short for objective=CVaR\(0\.2\).*and you also passed objective=.*Pass one of them"
    with pytest.raises(ValueError, match=text):
        model.fit(X, Y, sensitive_features=GROUPS)
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize("name", MAKERS)
def test_rebalance_takes_alpha_in_place_of_an_objective_and_the_other_way_round(name):
    model = MAKERS[name](objective=KL(0.1)).fit(X, Y)
    assert model.alpha_ is None
    tail = model.rebalance(alpha=0.3)
    assert (tail.alpha_, tail.alpha, tail.objective) == (0.3, 0.3, None)
    back = tail.rebalance(objective=KL(0.1))
    assert (back.alpha_, back.alpha, back.objective) == (None, None, KL(0.1))
    clone(back).fit(X, Y)
    with pytest.raises(ValueError, match="Pass one of them"):
        model.rebalance(alpha=0.3, objective=KL(0.1))


@pytest.mark.parametrize("settings", [{"alpha": 0.2}, {"objective": "KL(0.1)"}])
def test_reweighing_groups_takes_no_other_objective(settings):
    model = cp.AdaLPBoostClassifier(TREE, n_estimators=2, reweigh="groups", **settings)
    with pytest.raises(ValueError, match=r"reweigh='groups' minimises the loss of the worst group: leave alpha and"):
        model.fit(X, Y, sensitive_features=GROUPS)


@pytest.mark.parametrize("booster", BOOSTERS, ids=["adalp", "lp"])
def test_the_default_budget_limits_what_the_tail_costs_on_average(booster):
    model = clone(booster).fit(X, Y)
    assert model.budget == 0.03
    means = model.selection_.losses.mean(axis=0)
    assert means @ model.mixture_ <= means.min() + 0.03 + 1e-6
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CostlyDecisions)
        free = clone(booster).set_params(budget=None).fit(X, Y)
    assert free.value_ <= model.value_ + 1e-6  # the papers' problem
    assert means @ free.mixture_ > means.min() + 0.03
    np.testing.assert_allclose(model.rebalance(budget=1).value_, free.value_, atol=1e-3)


OBJECTIVES = [None, CVaR(0.3), KL(0.1), "false_positive_rate", "WorstGroup()", "Mean()"]


@pytest.mark.parametrize("objective", OBJECTIVES, ids=str)
@pytest.mark.parametrize("kind", ["optimal", "average", "first"])
@pytest.mark.parametrize("booster", BOOSTERS, ids=["adalp", "lp"])
def test_the_default_budget_goes_with_every_mixture_and_objective(booster, kind, objective):
    model = clone(booster).set_params(mixture=kind, objective=objective, n_estimators=3)
    model.fit(X, Y, sensitive_features=GROUPS)
    means = model.selection_.losses.mean(axis=0)
    if kind == "optimal":
        assert means @ model.mixture_ <= means.min() + 0.03 + 1e-6
    else:  # nothing is chosen, so that there is nothing to limit
        expected = np.full(3, 1 / 3) if kind == "average" else [1, 0, 0]
        np.testing.assert_allclose(model.mixture_, expected)


@pytest.mark.parametrize("kind", ["average", "first"])
def test_a_budget_of_your_own_needs_a_mixture_that_is_chosen(kind):
    model = clone(BOOSTERS[0]).set_params(mixture=kind, budget=0.1)
    with pytest.raises(ValueError, match=rf"budget needs mixture='optimal'.*got mixture='{kind}'"):
        model.fit(X, Y)
