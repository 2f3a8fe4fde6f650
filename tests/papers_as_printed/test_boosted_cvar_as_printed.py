"""Boosted CVaR Classification as printed: the boxes of the paper written out, against ours round by round."""

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog
from small_data import N_FAST, N_SETS, PlainStump, fitted, random_rows
from tiers import some_fast

from counterpoise import AdaLPBoostClassifier, LPBoostClassifier

N_ROUNDS = 6
each_set = pytest.mark.parametrize("seed", some_fast(range(N_SETS), N_FAST))


def split_of(seed):
    X, y = random_rows(seed, 100)
    return (X[:60], y[:60]), (X[60:], y[60:])


def alpha_of(seed):
    return float(np.random.default_rng(seed).uniform(0.05, 0.6))


def losses_of(models, X, y):
    return np.column_stack([model.predict(X) != y for model in models]).astype(float)


def primal(losses, alpha):
    """Return lambda and the value of (6), as the linear program (12)."""
    n, t = losses.shape
    cost = np.concatenate([np.zeros(t), [-1.0], np.full(n, 1 / (alpha * n))])  # lambda, rho, psi
    below = np.hstack([losses, np.ones((n, 1)), -np.eye(n)])  # psi >= rho - 1 + losses @ lambda
    total = np.concatenate([np.ones(t), np.zeros(1 + n)])[None]
    bounds = [(0, None)] * t + [(None, None)] + [(0, None)] * n
    solution = linprog(cost, below, np.ones(n), total, [1.0], bounds)
    return solution.x[:t], -solution.fun


def dual(losses, alpha, direction=None, gamma=None):
    """Return w and the value of (5), or the best w at a given value along a direction."""
    n, t = losses.shape
    below = np.hstack([-losses.T, -np.ones((t, 1))])  # <w, l> >= 1 - gamma
    total = np.append(np.ones(n), 0.0)[None]
    most = None if gamma is None else gamma + 1e-9
    bounds = [(0, 1 / (alpha * n))] * n + [(None, most)]
    cost = np.append(np.zeros(n) if direction is None else direction, 1.0 if direction is None else 0.0)
    solution = linprog(cost, below, -np.ones(t), total, [1.0], bounds)
    return solution.x[:n], solution.fun


def regularized_dual(losses, alpha, beta):
    """Return w of (8), with the sign of its constraint corrected."""
    n, _ = losses.shape
    w, gamma = cp.Variable(n, nonneg=True), cp.Variable()
    held = [losses.T @ w >= 1 - gamma, cp.sum(w) == 1, w <= 1 / (alpha * n)]
    cp.Problem(cp.Minimize(gamma - cp.sum(cp.entr(w)) / beta), held).solve(solver=cp.CLARABEL)
    return w.value


def algorithm_2(learner, X, y, n_rounds, step):
    """Return weights and models of the rounds; ``step`` gives eta from a model's weighted loss."""
    n = len(y)
    w, total, rounds = np.full(n, 1 / n), np.zeros(n), []
    for _ in range(n_rounds):
        f = fitted(learner(), X, y, w)
        loss = (f.predict(X) != y).astype(float)
        rounds.append((w, f))
        total += step(w @ loss) * loss
        w = np.exp(total - total.max())
        w /= w.sum()
    return rounds


STEPS = {1.0: lambda _: 1.0, 0.3: lambda _: 0.3, "adaboost": lambda error: np.log((1 - error) / error)}


@each_set
@pytest.mark.parametrize("eta", STEPS)
def test_algorithm_2(seed, eta):
    (X, y), (X_val, y_val) = split_of(seed)
    alpha, seen = alpha_of(seed), []
    settings = {**AdaLPBoostClassifier.as_printed, "eta": eta}
    model = AdaLPBoostClassifier(
        PlainStump(), n_estimators=N_ROUNDS, alpha=alpha, callbacks=[seen.append], **settings
    ).fit(X, y, X_val=X_val, y_val=y_val)
    rounds = algorithm_2(PlainStump, X, y, N_ROUNDS, STEPS[eta])
    assert len(seen) == len(rounds) == N_ROUNDS
    for ours, (weights, f) in zip(seen, rounds, strict=True):
        np.testing.assert_allclose(ours.weights, weights, rtol=1e-9, atol=1e-15)
        np.testing.assert_array_equal(ours.model.predict(X_val), f.predict(X_val))
    losses = losses_of([f for _, f in rounds], X_val, y_val)
    _, rho = primal(losses, alpha)
    assert model.value_ == pytest.approx(1 - rho, abs=1e-9)  # Proposition 3
    tail = np.sort(losses @ model.mixture_)[::-1]
    filled = np.clip(alpha * len(tail) - np.arange(len(tail)), 0, 1)
    assert tail @ filled / (alpha * len(tail)) == pytest.approx(1 - rho, abs=1e-9)


@each_set
def test_adaboost_and_average(seed):
    """The average of Theorem 5, at its step size."""
    X, y = random_rows(seed)
    settings = {**AdaLPBoostClassifier.as_printed, "eta": "theory", "mixture": "average"}
    model = AdaLPBoostClassifier(PlainStump(), n_estimators=N_ROUNDS, alpha=0.2, **settings)
    model.fit(X, y, X_val=X, y_val=y)
    eta = np.sqrt(8 * np.log(len(y)) / N_ROUNDS)
    rounds = algorithm_2(PlainStump, X, y, N_ROUNDS, lambda _: eta)
    np.testing.assert_allclose(model.mixture_, 1 / N_ROUNDS)
    errors = [w @ (f.predict(X) != y) for w, f in rounds]
    np.testing.assert_allclose(model.weighted_losses_, errors, rtol=1e-9)
    worst = losses_of([f for _, f in rounds], X, y).mean(axis=1).max()
    assert worst <= max(errors) + np.sqrt(np.log(len(y)) / (2 * N_ROUNDS))  # (21)


@each_set
@pytest.mark.parametrize("beta", [None, 20.0], ids=["plain", "regularized"])
def test_algorithm_1(seed, beta):
    """The dual of (5) may have many solutions: ours is one of them; that of (8) is unique."""
    (X, y), (X_val, y_val) = split_of(seed)
    alpha, seen, rng = alpha_of(seed), [], np.random.default_rng(seed)
    model = LPBoostClassifier(
        PlainStump(),
        n_estimators=N_ROUNDS,
        alpha=alpha,
        beta=beta,
        callbacks=[seen.append],
        **LPBoostClassifier.as_printed,
    ).fit(X, y, X_val=X_val, y_val=y_val)
    models = []
    for ours in seen:
        losses = losses_of(models, X, y) if models else None
        if losses is None:
            np.testing.assert_allclose(ours.weights, 1 / len(y))
        elif beta is None:
            _, gamma = dual(losses, alpha)
            assert ours.weights.sum() == pytest.approx(1)
            assert 0 <= ours.weights.min() <= ours.weights.max() <= 1 / (alpha * len(y)) + 1e-12
            assert 1 - (ours.weights @ losses).min() == pytest.approx(gamma, abs=1e-9)
            direction = rng.normal(size=len(y))
            ends = [dual(losses, alpha, sign * direction, gamma)[1] * sign for sign in (1.0, -1.0)]
            assert ends[0] - 1e-6 <= ours.weights @ direction <= ends[1] + 1e-6
        else:
            np.testing.assert_allclose(ours.weights, regularized_dual(losses, alpha, beta), atol=5e-5)
        models.append(fitted(PlainStump(), X, y, ours.weights))
        np.testing.assert_array_equal(ours.losses, models[-1].predict(X) != y)
    _, rho = primal(losses_of(models, X_val, y_val), alpha)
    assert len(models) == N_ROUNDS
    assert model.value_ == pytest.approx(1 - rho, abs=1e-9)


@pytest.mark.parametrize("booster", [AdaLPBoostClassifier, LPBoostClassifier])
def test_a_tenth_of_the_samples_is_held_out_where_no_others_are_given(booster):
    X, y = random_rows(0, 200)
    model = booster(PlainStump(), n_estimators=3, random_state=0, **booster.as_printed).fit(X, y)
    assert model.selection_.losses.shape[0] == 20
    np.testing.assert_allclose(model.decision_proba(X).sum(axis=1), 1)
