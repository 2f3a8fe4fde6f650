"""DRO-Boosting as printed: Algorithm 1 with its line search written out, against ours round by round."""

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar
from sklearn.tree import DecisionTreeRegressor
from small_data import N_FAST, N_SETS, PlainStump, fitted, random_rows
from tiers import some_fast

from counterpoise import DROBoostClassifier
from counterpoise.learners import HistogramTree
from counterpoise.theory.guarantees import calibrated_radius

N_ROUNDS = 5
each_set = pytest.mark.parametrize("seed", some_fast(range(N_SETS), N_FAST))
LOSSES = {"exponential": lambda m: (np.exp(-m), -np.exp(-m)), "squared": lambda m: ((1 - m) ** 2, 2 * (m - 1))}


def worst_weights(losses, radius):
    """Return omega of Lemma 2, at the root of Psi, which falls."""
    if np.ptp(losses) == 0:
        return np.full(losses.size, 1 / losses.size)

    def psi(log_distance):
        inverse = 1 / (losses.max() - losses + np.exp(log_distance))  # -1 / (L + beta)
        return np.mean(np.log(inverse)) - np.log(np.mean(inverse)) + radius

    top = np.log(np.ptp(losses)) + 20
    inverse = 1 / (losses.max() - losses + np.exp(brentq(psi, top - 60, top, xtol=1e-14)))
    return inverse / inverse.sum()


def algorithm_1(sides, approximate, loss, radius, ours):
    """Check omega, direction and step of each round, from where ours is: ``ours`` has (weights, values, step) of each.

    Of directions that approximate the subgradient equally well any is the paper's.
    """
    F = np.zeros(len(sides))
    for weights, values, taken in ours:
        omega = worst_weights(loss(sides * F)[0], radius)
        np.testing.assert_allclose(weights, omega, rtol=1e-7, atol=1e-10)
        G = omega * loss(sides * F)[1] * sides  # Proposition 1
        miss, least = (approximate.miss(G, f) for f in (values, approximate(G)))
        assert miss == pytest.approx(least, rel=1e-5)

        def robust(step, F=F, f=values):
            losses = loss(sides * (F + step * f))[0]
            return worst_weights(losses, radius) @ losses

        longest = 30 / np.abs(values).max()
        step = minimize_scalar(robust, bounds=(0, longest), options={"xatol": 1e-10}).x
        assert taken == pytest.approx(step, rel=1e-4, abs=1e-6)
        assert robust(taken) <= robust(step) * (1 + 1e-9)
        F = F + taken * values
    return robust(taken)


class Signs:
    """The best approximation with values -1 and +1 has the signs of -G, with its sizes as weights."""

    def __init__(self, X):
        self.X = X

    def __call__(self, G):
        weights = np.abs(G) / np.abs(G).sum()
        return np.where(fitted(PlainStump(), self.X, (G < 0).astype(int), weights).predict(self.X) == 1, 1.0, -1.0)

    def miss(self, G, f):
        """Return what is left of the most that values -1 and +1 can have in common with -G."""
        return 1 + G @ f / np.abs(G).sum()


class Values:
    """The best approximation in the norm of the sample is the fit by least squares; n times -G, as a step follows."""

    def __init__(self, X, seeds):
        self.X, self.seeds = X, iter(seeds)

    def __call__(self, G):
        tree = DecisionTreeRegressor(max_depth=1, random_state=next(self.seeds))
        return tree.fit(self.X, -G * len(G)).predict(self.X)

    def miss(self, G, f):
        return np.mean((-G * len(G) - f) ** 2)


def radius_of(seed):
    """Return a radius at which the robust loss falls along a first stump: in larger balls Algorithm 1 ends at once."""
    return float(np.exp(np.random.default_rng(seed).uniform(np.log(0.003), np.log(0.03))))


@each_set
@pytest.mark.parametrize("loss", LOSSES)
def test_algorithm_1_with_classifiers(seed, loss):
    (X, y), radius, seen = random_rows(seed), radius_of(seed), []
    model = DROBoostClassifier(
        PlainStump(),
        n_estimators=N_ROUNDS,
        radius=radius,
        loss=loss,
        callbacks=[seen.append],
        **DROBoostClassifier.as_printed,
    ).fit(X, y)
    assert_same_rounds(
        model, seen, y, [np.where(one.predict(X) == 1, 1.0, -1.0) for one in model.estimators_], Signs(X)
    )


@each_set
def test_algorithm_1_with_regressors(seed):
    (X, y), radius, seen = random_rows(seed), radius_of(seed), []
    tree = DecisionTreeRegressor(max_depth=1)
    model = DROBoostClassifier(tree, n_estimators=N_ROUNDS, radius=radius, random_state=seed, callbacks=[seen.append])
    model.set_params(**DROBoostClassifier.as_printed).fit(X, y)
    values = Values(X, [one.random_state for one in model.estimators_])
    assert_same_rounds(model, seen, y, [one.predict(X) for one in model.estimators_], values)


def assert_same_rounds(model, seen, y, values, approximate):
    sides, weights = np.where(y == 1, 1.0, -1.0), [ours.weights for ours in seen]
    rounds = list(zip(weights, values, model.votes_, strict=False))
    assert len(rounds) == len(model.votes_) >= 2
    robust = algorithm_1(sides, approximate, LOSSES[model.loss], model.radius, rounds)
    assert model.robust_losses_[-1] == pytest.approx(robust, rel=1e-9)
    assert np.all(np.diff(model.robust_losses_) < 0)


def test_the_radius_of_the_experiments():
    """Theorem 1 at 90 % and 30 degrees of freedom, of a tree of five levels as of any other."""
    X, y = random_rows(0, 300)
    settings = DROBoostClassifier.as_printed
    model = DROBoostClassifier(HistogramTree(5), n_estimators=1, degrees_of_freedom=30, **settings).fit(X, y)
    assert model.radius_ == calibrated_radius(300, 0.9, 30)
