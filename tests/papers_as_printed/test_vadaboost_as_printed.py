"""Variance Penalizing AdaBoost as printed: the boxes of the paper written out, against ours round by round."""

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier
from small_data import N_FAST, N_SETS, PlainStump, fitted, random_rows
from tiers import some_fast

from counterpoise import (
    AdaBoostClassifier,
    EBBoostClassifier,
    RLPBoostClassifier,
    RQPBoostClassifier,
    VadaBoostClassifier,
)
from counterpoise.learners import Stump

N_ROUNDS = 8
GAP = 1e-6  # of the programs of RLP-Boost and RQP-Boost
each_set = pytest.mark.parametrize("seed", some_fast(range(N_SETS), N_FAST))


def algorithm_1_or_2(X, y, learners, penalty=None, given=None):
    """Return u (or w), alpha and G of the rounds of AdaBoost, or of VadaBoost where there is a penalty.

    Learners are fitted to the weights that are given, where there are some, once they are found to be the same but for
    rounding, which decides among cuts of equal worth.
    """
    n, rounds = len(y), []
    w = np.full(n, 1 / n)
    for place, learner in enumerate(learners):
        u = w if penalty is None else penalty * n * w**2 + (1 - penalty) * w
        if given is not None:
            np.testing.assert_allclose(given[place], u / u.sum(), rtol=1e-9)
        G = fitted(learner, X, y, u / u.sum() if given is None else given[place])
        is_right = G.predict(X) == y
        alpha = np.log(u[is_right].sum() / u[~is_right].sum()) / (2 if penalty is None else 4)
        if alpha <= 1e-12:
            break
        rounds.append((u / u.sum(), alpha, G))
        w = w * np.exp(np.where(is_right, -alpha, alpha))
        w /= w.sum()
    return rounds


def assert_same_rounds(model, seen, rounds, X):
    """Check that weights, votes and models of the rounds are the same."""
    np.testing.assert_allclose(model.votes_, [alpha for _, alpha, _ in rounds], rtol=1e-9)
    for ours, (weights, _, G) in zip(seen, rounds, strict=True):
        np.testing.assert_allclose(ours.weights, weights, rtol=1e-9, atol=1e-15)
        np.testing.assert_array_equal(ours.model.predict(X), G.predict(X))
    f = sum(alpha * np.where(G.predict(X) == 1, 1.0, -1.0) for _, alpha, G in rounds)
    np.testing.assert_allclose(model.decision_function(X), f, atol=1e-9)


def kept(seen, model):
    """Return the rounds whose models were kept."""
    return seen[: len(model.estimators_)]


@each_set
def test_algorithm_1(seed):
    (X, y), seen = random_rows(seed), []
    model = AdaBoostClassifier(
        PlainStump(), n_estimators=N_ROUNDS, callbacks=[seen.append], **AdaBoostClassifier.as_printed
    ).fit(X, y)
    rounds = algorithm_1_or_2(X, y, [PlainStump() for _ in range(N_ROUNDS)])
    assert_same_rounds(model, kept(seen, model), rounds, X)


@each_set
@pytest.mark.parametrize("penalty", [0.0, 0.4, 1.0])
def test_algorithm_2(seed, penalty):
    (X, y), seen = random_rows(seed), []
    settings = VadaBoostClassifier.as_printed
    model = VadaBoostClassifier(
        PlainStump(), n_estimators=N_ROUNDS, penalty=penalty, callbacks=[seen.append], **settings
    ).fit(X, y)
    rounds = algorithm_1_or_2(X, y, [PlainStump() for _ in range(N_ROUNDS)], penalty)
    assert_same_rounds(model, kept(seen, model), rounds, X)
    costs = [cost_3(X, y, rounds[:count], penalty) for count in range(len(rounds) + 1)]
    assert np.all(np.diff(costs) < 0)  # Corollary 4


def cost_3(X, y, rounds, penalty):
    f = sum((alpha * np.where(G.predict(X) == 1, 1.0, -1.0) for _, alpha, G in rounds), np.zeros(len(y)))
    e = np.exp(-np.where(y == 1, 1.0, -1.0) * f)
    return e.sum() ** 2 + penalty * (len(y) * (e**2).sum() - e.sum() ** 2)


@each_set
@pytest.mark.parametrize("booster", [AdaBoostClassifier, VadaBoostClassifier])
def test_exact_cart_as_the_learner(seed, booster):
    """Table 2: scikit-learn's trees cut between any two values; their seeds decide which of equal cuts they take."""
    (X, y), seen = random_rows(seed, 120), []
    cart = DecisionTreeClassifier(min_samples_split=10, max_depth=3)
    penalty = {} if booster is AdaBoostClassifier else {"penalty": 0.5}
    model = booster(cart, n_estimators=N_ROUNDS, random_state=seed, callbacks=[seen.append], **penalty)
    model.set_params(**booster.as_printed).fit(X, y)
    assert all(type(one) is DecisionTreeClassifier for one in model.estimators_)
    given = [ours.weights for ours in seen]
    rounds = algorithm_1_or_2(X, y, [clone(one) for one in model.estimators_], penalty.get("penalty"), given)
    assert_same_rounds(model, kept(seen, model), rounds, X)


def all_stumps(X):
    """Return the answers, -1 or +1, of all decision stumps, a row for each."""
    edges = [(column[:, None] > np.append(-np.inf, np.sort(column))).T for column in X.T]
    above = np.where(np.unique(np.vstack(edges), axis=0), 1.0, -1.0)
    return np.vstack([above, -above])


@each_set
@pytest.mark.parametrize("penalty", [0.0, 0.3, 1.0, 5.0])
def test_algorithm_3(seed, penalty):
    """Exhaustive enumeration. Among stumps of equal cost any is the paper's: the enumeration goes on with ours."""
    (X, y), seen = random_rows(seed), []
    model = EBBoostClassifier(
        Stump(), n_estimators=N_ROUNDS, penalty=penalty, callbacks=[seen.append], **EBBoostClassifier.as_printed
    ).fit(X, y)
    n, w, sides = len(y), np.full(len(y), 1 / len(y)), all_stumps(X) * np.where(y == 1, 1.0, -1.0)

    def step_and_cost(side):
        right, wrong = w[side > 0], w[side < 0]
        A, B = ((1 - penalty) * part.sum() ** 2 + penalty * n * (part**2).sum() for part in (right, wrong))
        alpha = np.log(A / B) / 4
        moved = w * np.exp(-alpha * side)
        return alpha, moved.sum() ** 2 + penalty * (n * (moved**2).sum() - moved.sum() ** 2)

    for ours, vote in zip(kept(seen, model), model.votes_, strict=True):
        np.testing.assert_allclose(ours.weights, w, rtol=1e-9)
        side = np.where(ours.losses == 1, -1.0, 1.0)
        is_mixed = np.abs(sides.sum(axis=1)) < n
        least = min(step_and_cost(each)[1] for each in sides[is_mixed])
        alpha, cost = step_and_cost(side)
        assert cost <= least * (1 + 1e-9)
        assert vote == pytest.approx(alpha, rel=1e-9)
        w = w * np.exp(-alpha * side)
        w /= w.sum()


def margins_of_adaboost(X, y):
    rounds = algorithm_1_or_2(X, y, [PlainStump() for _ in range(N_ROUNDS)])
    answers = np.column_stack([np.where(G.predict(X) == 1, 1.0, -1.0) for _, _, G in rounds])
    return np.where(y == 1, 1.0, -1.0)[:, None] * answers


def linear_votes(margins, C):
    """Return the value of the linear program: the largest rho - C sum of slacks, votes on the simplex."""
    n, t = margins.shape
    cost = np.concatenate([np.zeros(t), [-1.0], np.full(n, C)])
    short = np.hstack([-margins, np.ones((n, 1)), -np.eye(n)])  # margin >= rho - slack
    total = np.concatenate([np.ones(t), np.zeros(1 + n)])[None]
    bounds = [(0, None)] * t + [(None, None)] + [(0, None)] * n
    return -linprog(cost, short, np.zeros(n), total, [1.0], bounds).fun


def quadratic_votes(margins, C):
    """Return votes and value of the quadratic program: |votes|^2 / 2 + C sum of slacks below the margin 1."""
    votes = cp.Variable(margins.shape[1], nonneg=True)
    program = cp.Problem(cp.Minimize(cp.sum_squares(votes) / 2 + C * cp.sum(cp.pos(1 - margins @ votes))))
    return votes, program.solve(solver=cp.CLARABEL)


@each_set
def test_rlp_boost(seed):
    X, y = random_rows(seed)
    C = float(np.random.default_rng(seed).uniform(1.5, 20.0))
    model = RLPBoostClassifier(PlainStump(), C=C, n_estimators=N_ROUNDS, **RLPBoostClassifier.as_printed).fit(X, y)
    margins, solution = margins_of_adaboost(X, y), model.solutions_[0]
    best = linear_votes(margins, C / len(y))
    sums = margins @ solution.votes  # of votes on the simplex: the best rho is that of the smallest margins
    counted = np.clip(len(y) / C - np.arange(len(y)), 0, 1)
    assert solution.votes.sum() == pytest.approx(1)
    assert best - GAP <= np.sort(sums) @ counted / counted.sum() <= best + 1e-9
    np.testing.assert_allclose(model.decision_function(X) * np.where(y == 1, 1, -1), sums, atol=1e-9)


@each_set
def test_rqp_boost(seed):
    X, y = random_rows(seed)
    C = float(np.random.default_rng(seed).uniform(0.3, 30.0))
    model = RQPBoostClassifier(PlainStump(), C=C, n_estimators=N_ROUNDS, **RQPBoostClassifier.as_printed).fit(X, y)
    margins, ours = margins_of_adaboost(X, y), model.solutions_[0].votes
    votes, best = quadratic_votes(margins, C / len(y))
    value = ours @ ours / 2 + C * np.maximum(0, 1 - margins @ ours).mean()
    assert best - GAP <= value <= best * (1 + GAP)
    np.testing.assert_allclose(ours, votes.value, atol=1e-3)
