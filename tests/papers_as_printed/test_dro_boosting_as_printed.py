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


def algorithm_1(sides, approximate, loss, radius, n_rounds):
    """Return omega, the direction and the step of the rounds; ``approximate`` finds the best f of F for a gradient."""
    F, rounds = np.zeros(len(sides)), []
    omega = np.full(len(sides), 1 / len(sides))
    for _ in range(n_rounds):
        G = omega * loss(sides * F)[1] * sides  # Proposition 1
        f = approximate(-G)

        def robust(step, F=F, f=f):
            losses = loss(sides * (F + step * f))[0]
            return worst_weights(losses, radius) @ losses

        step = minimize_scalar(robust, bounds=(0, 30 / np.abs(f).max()), options={"xatol": 1e-10}).x
        rounds.append((omega, f, step))
        F = F + step * f
        omega = worst_weights(loss(sides * F)[0], radius)
    return rounds, robust(step)


def radius_of(seed):
    return float(np.exp(np.random.default_rng(seed).uniform(np.log(0.01), np.log(0.3))))


@each_set
@pytest.mark.parametrize("loss", LOSSES)
def test_algorithm_1_with_classifiers(seed, loss):
    """The best approximation with values -1 and +1 has the signs of the gradient where its sizes are large."""
    (X, y), radius, seen = random_rows(seed), radius_of(seed), []
    model = DROBoostClassifier(
        PlainStump(),
        n_estimators=N_ROUNDS,
        radius=radius,
        loss=loss,
        callbacks=[seen.append],
        **DROBoostClassifier.as_printed,
    ).fit(X, y)

    def approximate(pulls):
        weights = np.abs(pulls) / np.abs(pulls).sum()
        return np.where(fitted(PlainStump(), X, (pulls > 0).astype(int), weights).predict(X) == 1, 1.0, -1.0)

    sides = np.where(y == 1, 1.0, -1.0)
    compared(model, seen, algorithm_1(sides, approximate, LOSSES[loss], radius, N_ROUNDS), X)


@each_set
def test_algorithm_1_with_regressors(seed):
    """The best approximation in the norm of the sample is the fit by least squares."""
    (X, y), radius, seen = random_rows(seed), radius_of(seed), []
    tree = DecisionTreeRegressor(max_depth=2)
    model = DROBoostClassifier(tree, n_estimators=N_ROUNDS, radius=radius, random_state=seed, callbacks=[seen.append])
    model.set_params(**DROBoostClassifier.as_printed).fit(X, y)
    seeds = iter([one.random_state for one in model.estimators_])

    def approximate(pulls):
        return DecisionTreeRegressor(max_depth=2, random_state=next(seeds)).fit(X, pulls * len(y)).predict(X)

    sides = np.where(y == 1, 1.0, -1.0)
    compared(model, seen, algorithm_1(sides, approximate, LOSSES["exponential"], radius, N_ROUNDS), X)


def compared(model, seen, expected, X):
    rounds, robust = expected
    assert len(model.votes_) == N_ROUNDS
    np.testing.assert_allclose(model.votes_, [step for _, _, step in rounds], rtol=2e-4, atol=1e-7)
    for ours, tree, (omega, f, _) in zip(seen, model.estimators_, rounds, strict=False):
        np.testing.assert_allclose(ours.weights, omega, rtol=1e-3, atol=1e-9)
        values = tree.predict(X)
        is_sign = values.dtype.kind == "i"
        np.testing.assert_allclose(np.where(values == 1, 1.0, -1.0) if is_sign else values, f, rtol=1e-3, atol=1e-4)
    assert model.robust_losses_[-1] == pytest.approx(robust, rel=1e-6)
    assert np.all(np.diff(model.robust_losses_) < 0)


def test_the_radius_of_the_experiments():
    """Theorem 1 at 90 % and 30 degrees of freedom, of a tree of five levels as of any other."""
    X, y = random_rows(0, 300)
    settings = DROBoostClassifier.as_printed
    model = DROBoostClassifier(HistogramTree(5), n_estimators=1, degrees_of_freedom=30, **settings).fit(X, y)
    assert model.radius_ == calibrated_radius(300, 0.9, 30)
