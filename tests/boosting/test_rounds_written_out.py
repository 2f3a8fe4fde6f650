"""Weights, votes and risks of every round, written out from the losses of the models before, on weighted samples."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.tree import DecisionTreeClassifier

from counterpoise import AdaBoostClassifier, AdaLPBoostClassifier, LPBoostClassifier, Stopping, VadaBoostClassifier
from counterpoise.learners import Stump
from counterpoise.metrics import cvar_loss

X, Y = make_classification(160, 5, flip_y=0.25, random_state=5)
RNG = np.random.default_rng(0)
WEIGHTS = RNG.integers(1, 5, 160).astype(float)
OWN = WEIGHTS / WEIGHTS.sum()
GROUPS = RNG.choice(["a", "b", "c"], 160, p=[0.6, 0.3, 0.1])


class Seen(DecisionTreeClassifier):
    """A tree that keeps the weights that it is given."""

    given = []  # noqa: RUF012 - of all copies

    def fit(self, X, y, sample_weight=None):
        self.given.append(sample_weight)
        return super().fit(X, y, sample_weight)


def rounds_of(model, **given):
    """Fit a booster on weighted samples, and return its rounds."""
    seen = []
    model.set_params(callbacks=[seen.append]).fit(X, Y, sample_weight=WEIGHTS, **given)
    for done, tree in zip(seen, model.estimators_, strict=False):
        np.testing.assert_array_equal(done.losses, tree.predict(X) != Y)
        assert done.weighted_loss == pytest.approx(done.weights @ done.losses)
    assert [done.number for done in seen] == list(range(1, len(seen) + 1))
    return seen


@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_adaboost_multiplies_weights_by_what_each_vote_leaves(rate):
    model = AdaBoostClassifier(Stump(), n_estimators=8, learning_rate=rate)
    weights, votes = OWN, []
    for done in rounds_of(model):
        np.testing.assert_allclose(done.weights, weights, rtol=1e-9)
        wrong = done.losses == 1
        votes.append(rate * 0.5 * np.log(weights[~wrong].sum() / weights[wrong].sum()))
        weights = weights * np.exp(np.where(wrong, votes[-1], -votes[-1]))
        weights /= weights.sum()
    np.testing.assert_allclose(model.votes_, votes, rtol=1e-9)
    signs = np.array([2.0 * tree.predict(X) - 1 for tree in model.estimators_])
    np.testing.assert_allclose(model.decision_function(X), votes @ signs, rtol=1e-9)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-2 * (votes @ signs))), rtol=1e-9)


@pytest.mark.parametrize("penalty", [0.0, 0.4, 1.0])
def test_vadaboost_mixes_weights_with_their_squares(penalty):
    model = VadaBoostClassifier(Stump(), n_estimators=6, penalty=penalty)
    weights, votes = OWN, []
    for done in rounds_of(model):
        shown = penalty * weights**2 / OWN + (1 - penalty) * weights
        shown /= shown.sum()
        np.testing.assert_allclose(done.weights, shown, rtol=1e-9)
        wrong = done.losses == 1
        votes.append(0.25 * np.log(shown[~wrong].sum() / shown[wrong].sum()))
        weights = weights * np.exp(np.where(wrong, votes[-1], -votes[-1]))
        weights /= weights.sum()
    np.testing.assert_allclose(model.votes_, votes, rtol=1e-9)


def test_adalpboost_weighs_samples_by_how_often_models_failed_on_them():
    model = AdaLPBoostClassifier(
        Stump(), n_estimators=7, eta=0.6, alpha=0.3, budget=None, stopping=Stopping(n_folds=None)
    )
    failures = np.zeros(160)
    for done in rounds_of(model):
        expected = OWN * np.exp(0.6 * failures)
        np.testing.assert_allclose(done.weights, expected / expected.sum(), rtol=1e-9)
        failures += done.losses
    losses = np.array([tree.predict(X) != Y for tree in model.estimators_]).T
    assert model.value_ == pytest.approx(cvar_loss(losses @ model.mixture_, 0.3, WEIGHTS))
    others = [np.eye(7)[place] for place in range(7)] + [np.full(7, 1 / 7)]
    assert all(model.value_ - model.gap_ <= cvar_loss(losses @ other, 0.3, WEIGHTS) + 1e-9 for other in others)


def test_adalpboost_takes_adaboosts_own_step():
    """Freund and Schapire: weights are multiplied by (e / (1 - e)) where the model is right."""
    stopping = Stopping(n_folds=None)
    model = AdaLPBoostClassifier(Stump(), n_estimators=7, eta="adaboost", alpha=0.3, budget=None, stopping=stopping)
    weights = OWN
    for done in rounds_of(model):
        np.testing.assert_allclose(done.weights, weights, rtol=1e-9)
        error = weights @ done.losses
        weights = weights * (error / (1 - error)) ** (1.0 - done.losses)
        weights /= weights.sum()
    assert model.eta_ is None


def test_adaboosts_own_step_is_for_samples():
    with pytest.raises(ValueError, match="eta='adaboost' is for samples"):
        AdaLPBoostClassifier(eta="adaboost", reweigh="groups").fit(X, Y, sensitive_features=GROUPS)


def test_adalpboost_weighs_groups_by_their_mean_failures():
    model = AdaLPBoostClassifier(
        Stump(), n_estimators=7, eta=0.6, reweigh="groups", budget=None, stopping=Stopping(n_folds=None)
    )
    failures, names = np.zeros(160), ("a", "b", "c")
    for done in rounds_of(model, sensitive_features=GROUPS):
        of_groups = np.exp([0.6 * np.average(failures[name == GROUPS], weights=OWN[name == GROUPS]) for name in names])
        expected = np.zeros(160)
        for name, share in zip(names, of_groups / of_groups.sum(), strict=True):
            inside = name == GROUPS
            expected[inside] = share * OWN[inside] / OWN[inside].sum()
        np.testing.assert_allclose(done.weights, OWN if done.number == 1 else expected, rtol=1e-9)
        failures += done.losses
    losses = np.array([tree.predict(X) != Y for tree in model.estimators_]).T @ model.mixture_
    worst = max(np.average(losses[name == GROUPS], weights=WEIGHTS[name == GROUPS]) for name in names)
    assert model.value_ == pytest.approx(worst)


@pytest.mark.parametrize("goals", [(), ["recall >= 0.8"]], ids=["plain", "inside goals"])
def test_weights_that_a_learner_is_given_are_one_on_average_and_begin_with_those_of_the_samples(goals):
    Seen.given.clear()
    model = LPBoostClassifier(Seen(max_depth=1), n_estimators=5, alpha=0.5, goals=goals)
    model.fit(X, Y, sample_weight=WEIGHTS)
    assert len(Seen.given) >= 3
    for weights in Seen.given:
        assert weights.min() >= 0
        assert weights.mean() == pytest.approx(1)
    np.testing.assert_allclose(Seen.given[0], 160 * OWN)


def test_lpboost_weighs_by_the_worst_tail_of_its_mixture():
    """No sample weighs more than its own weight over alpha, and each model so far errs as often as the risk says."""
    model = LPBoostClassifier(Stump(), n_estimators=6, alpha=0.4)
    losses = []
    for done in rounds_of(model):
        assert done.weights.sum() == pytest.approx(1)
        if losses:
            assert (done.weights <= OWN / 0.4 + 1e-9).all()
            errors = np.array(losses) @ done.weights
            assert done.weighted_loss <= errors.min() + 1e-3  # a model that helps is better than all before it
        losses.append(done.losses)
    shares = np.array(losses).T @ model.mixture_
    assert model.value_ == pytest.approx(cvar_loss(shares, 0.4, WEIGHTS))
