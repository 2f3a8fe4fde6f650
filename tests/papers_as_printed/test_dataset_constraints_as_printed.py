"""Satisfying Real-world Goals as printed: each convex program of Algorithm 1 written out, against ours."""

import cvxpy as cp
import numpy as np
import pytest
from small_data import N_FAST, N_SETS, random_rows
from tiers import some_fast

from counterpoise import ConstrainedClassifier

N_ROUNDS = 4
REGULARIZATION = 0.02
GOALS = ["positive_rate <= 0.5", "recall >= 0.5", "positive_rate(group=a) >= 0.9 * positive_rate(group=b)"]
each_set = pytest.mark.parametrize("seed", some_fast(range(N_SETS), N_FAST))


def rates(y, is_a):
    """Return alpha and beta of each row for the objective and the constraints, and gamma, as Problem 1 has them."""
    n, positives, up, none = len(y), (y == 1), np.ones(len(y)), np.zeros(len(y))
    of_a, of_b = is_a / is_a.sum(), ~is_a / (~is_a).sum()
    alphas = [~positives / n, up / n, none, 0.9 * of_b]
    betas = [positives / n, none, positives / positives.sum(), of_a]  # s_p = 1 - s_n where a rate counts against
    return np.array(alphas), np.array(betas), np.array([0.5, 0.5, 1.0])


def ramp(z):
    return np.clip(0.5 + z, 0, 1)


def problem_3(X, alphas, betas, gammas, scores):
    """Return the least value of the convex bound at given scores <w', x> - b', and a function that evaluates it."""
    rising, falling = scores <= 0.5, scores >= -0.5  # where the bound is the hinge, not 1: (4)

    def values(z, hinge):
        bounds = [
            alphas[j] @ (hinge(0.5 + z) * rising if hinge is plain else cp.multiply(rising, hinge(0.5 + z)))
            + betas[j] @ (hinge(0.5 - z) * falling if hinge is plain else cp.multiply(falling, hinge(0.5 - z)))
            + alphas[j] @ ~rising
            + betas[j] @ ~falling
            for j in range(len(alphas))
        ]
        return bounds[0], [one - gamma for one, gamma in zip(bounds[1:], gammas, strict=True)]

    w, b = cp.Variable(X.shape[1]), cp.Variable()
    objective, excess = values(X @ w - b, cp.pos)
    held = [one <= 0 for one in excess]
    tight = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}
    program = cp.Problem(cp.Minimize(objective + REGULARIZATION / 2 * cp.sum_squares(w)), held)
    return program.solve(solver=cp.CLARABEL, **tight), lambda z: values(z, plain)


def plain(z):
    return np.maximum(0.0, z)


@each_set
def test_algorithm_1(seed):
    """Round by round: from the point before, each convex program is solved to within the gap that ``history_`` states.

    A round stops at an accuracy, so that the next program is made from our point. With the paper's start at zero, which
    these goals allow.
    """
    X, y = random_rows(seed)
    is_a = X[:, 0] + np.random.default_rng(seed).normal(size=len(y)) < 0  # groups whose rates differ
    alphas, betas, gammas = rates(y, is_a)
    scores = np.zeros(len(y))
    for n_rounds in range(1, N_ROUNDS + 1):
        model = ConstrainedClassifier(
            goals=GOALS,
            regularization=REGULARIZATION,
            tol=1e-6,
            max_majorizations=n_rounds,
            **ConstrainedClassifier.as_printed,
        ).fit(X, y, sensitive_features=np.where(is_a, "a", "b"))
        if len(model.history_) < n_rounds:
            break
        last = model.history_[-1]
        least, evaluate = problem_3(X, alphas, betas, gammas, scores)
        w, scores = model.coef_[0], X @ model.coef_[0] + model.intercept_[0]
        objective, excess = evaluate(scores)
        ridge = REGULARIZATION / 2 * w @ w
        assert last.lower <= least + 1e-7
        assert least - 1e-7 <= objective + ridge <= least + last.gap + 1e-7
        assert max(excess) <= 1e-7
        # (3): the rates of the ramp, and Problem 2
        expected = [alphas[j] @ ramp(scores) + betas[j] @ ramp(-scores) for j in range(len(alphas))]
        assert model.objective_value_ == pytest.approx(expected[0] + ridge, abs=1e-9)
        assert all(one <= gamma + 1e-7 for one, gamma in zip(expected[1:], gammas, strict=True))
        # The bias is that of the program: no threshold is moved afterwards, and both rules are those of Appendix A.
        np.testing.assert_allclose(model.predict_proba(X)[:, 1], ramp(scores), atol=1e-12)
        assert model.threshold_ == 0 or not np.any((scores > 0) != (model.predict_proba(X)[:, 1] > 0.5))
    assert n_rounds >= 2
    assert last.gap < 0.1
