"""Boosters that make mixtures meet goals, through the same code as any other pool."""

import pickle

import numpy as np
import pytest
from silenced import silenced
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification
from sklearn.exceptions import NotFittedError

from counterpoise import AdaLPBoostClassifier, LPBoostClassifier, MixtureClassifier, Stopping
from counterpoise.goals import Dataset, InfeasibleGoals, Table, churn, positive_rate
from counterpoise.learners import HistogramTree
from tests.inside import kept_table

TRAIN = Dataset("train")
PARITY = positive_rate(TRAIN.where(sex="F")) >= 0.95 * positive_rate(TRAIN.where(sex="M"))
BOOSTERS = [
    AdaLPBoostClassifier(HistogramTree(max_depth=2), n_estimators=12, alpha=0.3, budget=None, random_state=0),
    LPBoostClassifier(HistogramTree(max_depth=2), n_estimators=12, alpha=0.3, budget=None, random_state=0),
    LPBoostClassifier(HistogramTree(max_depth=2), n_estimators=12, alpha=0.3, beta=50.0, budget=None, random_state=0),
]
INSIDE = BOOSTERS[1]  # whose rounds look at the goals


@pytest.fixture(scope="module")
def noisy():
    X, y = make_classification(2500, 8, n_informative=4, flip_y=0.1, class_sep=0.6, random_state=3)
    return X, np.where(y == 1, "yes", "no"), np.where(X[:, 0] + 0.5 * y > 0.3, "M", "F")


@pytest.mark.parametrize("booster", BOOSTERS, ids=["adalp", "lp", "regularized"])
def test_goals_hold_where_the_mixture_is_chosen(booster, noisy):
    X, y, sex = noisy
    free = clone(booster).fit(X, y, sensitive_features={"sex": sex})
    model = clone(booster).set_params(goals=[PARITY]).fit(X, y, sensitive_features={"sex": sex})
    assert PARITY.evaluate_expected(model.predict_proba(X), Table(X, y, {"sex": sex})).holds
    assert model.check_goals()[0].holds
    assert model.value_ >= free.value_ - free.gap_ - 1e-12
    with silenced(free.estimators_):
        later = free.rebalance(goals=[PARITY])
    if booster is not INSIDE:
        np.testing.assert_allclose(later.mixture_, model.mixture_, atol=1e-9)
    assert later.value_ >= model.value_ - 0.02  # models that are trained for the goal, or the same ones; rounds are few
    assert later.estimators_ is free.estimators_
    assert pickle.loads(pickle.dumps(free)).rebalance(goals=[PARITY]).check_goals()[0].holds  # noqa: S301


def test_a_booster_and_a_pool_of_its_models_are_one(noisy):
    X, y, sex = noisy
    boosted = clone(BOOSTERS[0]).set_params(goals=[PARITY]).fit(X, y, sensitive_features={"sex": sex})
    pool = MixtureClassifier(boosted.estimators_, alpha=0.3, goals=[PARITY]).fit(X, y, sensitive_features={"sex": sex})
    np.testing.assert_array_equal(pool.selection_.losses, boosted.selection_.losses)
    np.testing.assert_allclose(pool.selection_.goals.rows, boosted.selection_.goals.rows, atol=1e-12)
    assert pool.value_ == pytest.approx(boosted.value_, abs=1e-9)


def test_goals_speak_of_the_held_out_rows(noisy):
    X, y, sex = noisy
    model = clone(BOOSTERS[0]).set_params(goals=[PARITY], stopping=Stopping(validation_fraction=0.4))
    weights = np.ones(len(y))
    weights[:300] = 0.0  # left out before the split
    model.fit(X, y, weights, sensitive_features={"sex": sex})
    table = kept_table(model)
    assert table.n_samples == len(model.selection_.losses) == 880
    np.testing.assert_array_equal(
        model.selection_.losses[:, 0] == 1, model.estimators_[0].predict(model._run.data.held_out.X) != table.y
    )
    given = clone(BOOSTERS[0]).set_params(goals=[PARITY])
    given.fit(X[:1500], y[:1500], X_val=X[1500:], y_val=y[1500:], sensitive_features_val={"sex": sex[1500:]})
    held = Table(X[1500:], y[1500:], {"sex": sex[1500:]})
    assert PARITY.evaluate_expected(given.predict_proba(X[1500:]), held).holds


def test_other_datasets_and_groups_work_together(noisy):
    X, y, sex = noisy
    deployed = clone(BOOSTERS[0]).set_params(n_estimators=1).fit(X, y).estimators_[0]
    mail = Table(X[:500], baseline=deployed.predict(X[:500]))
    goal = churn("mail") <= 0.1
    model = clone(BOOSTERS[0]).set_params(goals=[goal], alpha=None, reweigh="groups")
    model.fit(X, y, sensitive_features={"sex": sex}, datasets={"mail": mail})
    changed = [(one.predict(X[:500]) != mail.baseline).mean() for one in model.estimators_]
    assert changed @ model.mixture_ <= 0.1 + 1e-8
    losses = model.selection_.losses @ model.mixture_
    assert model.value_ == pytest.approx(max(losses[sex == name].mean() for name in "FM"), abs=1e-6)
    plain = model.rebalance(objective="cvar", alpha=0.5)
    assert plain.selection_.groups is None
    assert plain.check_goals()[0].holds


def test_many_classes_with_a_goal_on_one_of_them():
    X, y = load_digits(return_X_y=True)
    tree = HistogramTree(max_depth=4)
    model = AdaLPBoostClassifier(tree, n_estimators=8, alpha=0.5, goals=["recall >= 0.8"], pos_label=8)
    model.fit(X, y)
    says = np.column_stack([one.predict(X) == 8 for one in model.estimators_])[y == 8].mean(axis=0)
    assert says @ model.mixture_ >= 0.8 - 1e-8
    with pytest.raises(ValueError, match=r"got 10 classes.*Name the class that you mean with of.*or with pos_label"):
        AdaLPBoostClassifier(tree, n_estimators=2, goals=["recall >= 0.8"]).fit(X, y)


def test_tables_are_taken_where_what_models_say_was_not_kept():
    X, y = (part[:300] for part in load_digits(return_X_y=True))
    half = {"half": np.where(X[:, 20] > 8, "dark", "light")}
    model = AdaLPBoostClassifier(
        HistogramTree(2), n_estimators=3, alpha=1.0, stopping=Stopping(n_folds=None), random_state=0
    ).fit(X, y)
    worst = model.rebalance(tables={"train": Table(X, y, half)}, objective="WorstGroup('half')")
    assert worst.value_ == model.rebalance(sensitive_features=half, objective="WorstGroup('half')").value_
    with pytest.raises(ValueError, match=r"tables\['mail'\] must hold the rows of a dataset that the models predicted"):
        model.rebalance(tables={"mail": Table(X, y)})


def test_what_no_mixture_can_meet_is_refused(noisy):
    X, y, _ = noisy
    model = clone(BOOSTERS[0]).set_params(goals=["error_rate <= 0.01"])
    with pytest.raises(InfeasibleGoals, match=r"error_rate <= 0\.01"):
        model.fit(X, y)
    for ask in (model.predict, model.check_goals):
        with pytest.raises(NotFittedError):
            ask(X)
    assert model.rebalance(goals=["error_rate <= 0.5"]).check_goals()[0].holds  # of what was trained
    with pytest.raises(ValueError, match="Goals need mixture='optimal'"):
        clone(BOOSTERS[0]).set_params(goals=["recall >= 0.1"], mixture="average").fit(X, y)


def test_patience_and_more_rounds_go_together_with_goals(noisy):
    X, y, sex = noisy
    model = clone(BOOSTERS[0]).set_params(goals=[PARITY], stopping=Stopping(patience=3), n_estimators=6)
    model.fit(X, y, sensitive_features={"sex": sex}).fit_more(4)
    assert model.check_goals()[0].holds
