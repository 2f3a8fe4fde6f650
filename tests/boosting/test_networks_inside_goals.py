"""Networks trained inside goals: a step gets pairs of a row and a label, unlabelled rows reach no warm-up."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris

from counterpoise import LPBoostClassifier, Stopping
from counterpoise.boosting.learner import LearnerFit, RoundTarget
from counterpoise.goals import Table
from counterpoise.learners import NetworkLearner, networks
from counterpoise.rules.cautions import CostlyDecisions

torch = pytest.importorskip("torch", reason="networks need torch")
warnings.simplefilter("ignore", CostlyDecisions)


def tiny(**settings):
    small = {"n_iterations": 60, "batch_size": 32, "learning_rate": 0.1, "decay_at": (40,), "device": "cpu"}
    return NetworkLearner(networks.Perceptron((8,)), **(small | settings))


def loans(n_rows=600):
    """Return rows whose labels depend on the group, so that plain models call one group positive far more often."""
    rng = np.random.default_rng(0)
    sex = np.where(rng.random(n_rows) < 0.5, "F", "M")
    X = rng.normal(size=(n_rows, 3))
    X[:, 0] += sex == "M"
    return X, (X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=n_rows) > 0.5).astype(int), sex


def test_goals_hold_on_held_out_rows_where_the_first_network_misses_them():
    X, y, sex = loans()
    goal = "demographic_parity_difference(by=sex) <= 0.05"
    model = LPBoostClassifier(
        tiny(), n_estimators=6, alpha=1.0, goals=[goal], stopping=Stopping(validation_fraction=0.4), random_state=0
    )
    model.fit(X, y, sensitive_features={"sex": sex})
    assert all(check.holds for check in model.check_goals())
    said = model.estimators_[0].predict(X)
    assert abs(said[sex == "F"].mean() - said[sex == "M"].mean()) > 0.2


def test_more_classes_and_rows_of_another_dataset_train_as_pairs():
    X, y = load_iris(return_X_y=True)
    mail = Table(X[::2] + 0.1, baseline=np.full(75, 1))
    goals = ["churn(mail) <= 0.3", "recall(of=0) >= 0.5", "recall(of=2) >= 0.3"]
    model = LPBoostClassifier(
        tiny(), n_estimators=8, alpha=1.0, goals=goals, stopping=Stopping(n_folds=None), random_state=0
    )
    model.fit(X, y, datasets={"mail": mail})
    assert all(check.holds for check in model.check_goals())
    assert (model.estimators_[0].predict(mail.X) != 1).mean() > 0.6  # plain training changes two thirds


def pairs_of(X, y, rows):
    """Return a fit of networks, with a target of some rows, of which some come several times."""
    fit = LearnerFit(tiny(), X, y, np.arange(3), lambda number: number, np.full(len(y), 1 / len(y)))
    return fit, RoundTarget(y[rows], np.full(rows.size, 1 / rows.size), rows)


def test_a_target_of_all_rows_in_another_form_gives_the_same_network():
    X, y = load_iris(return_X_y=True)
    fit, asked = pairs_of(X, y, np.arange(150))
    first, second = (fit.fit_round(one, 1) for one in (asked, asked._replace(rows=None)))
    assert all(np.array_equal(first.model.state_[name], second.model.state_[name]) for name in first.model.state_)
    np.testing.assert_array_equal(first.answers, second.answers)


def test_a_network_learns_the_label_that_weighs_most_for_a_row():
    """Every row comes with all labels; that of the next class weighs most, so this is what must be said."""
    X, y = load_iris(return_X_y=True)
    fit, _ = pairs_of(X, y, np.arange(150))
    rows, codes = np.repeat(np.arange(150), 3), np.tile(np.arange(3), 150)
    weights = np.where(codes == (y[rows] + 1) % 3, 5.0, 1.0)
    said = fit.fit_round(RoundTarget(codes, weights / weights.sum(), rows), 1).answers
    assert said.shape == (150,)
    assert (said == (y + 1) % 3).mean() > 0.8


def test_codes_of_rows_without_a_label_do_not_reach_the_warm_up():
    X, y = load_iris(return_X_y=True)
    weights = np.where(np.arange(150) % 3 > 0, 0.01, 0.0)
    starts = []
    for codes in (y, np.where(weights > 0, y, 0)):
        fit = LearnerFit(tiny(), X, codes, np.arange(3), lambda number: number, weights)
        fit.fit_round(RoundTarget(codes, weights), 1)
        starts.append(fit.prepared.shared)
    assert all(np.array_equal(starts[0][name], starts[1][name]) for name in starts[0])
