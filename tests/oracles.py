"""Independent references: brute force, other libraries, other formulations. Nothing here imports counterpoise."""

from typing import NamedTuple

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from scipy.optimize import brentq, linprog


class Problem(NamedTuple):
    """A mixture problem; ``rows`` and ``bounds`` may be None."""

    losses: np.ndarray
    alpha: float
    sample_weight: np.ndarray | None
    rows: np.ndarray | None
    bounds: np.ndarray | None

    @property
    def caps(self):
        mass = np.ones(len(self.losses)) if self.sample_weight is None else self.sample_weight
        return mass / mass.sum() / self.alpha

    @property
    def constraints(self):
        return {"sample_weight": self.sample_weight, "rows": self.rows, "bounds": self.bounds}


def random_problem(seed):
    """Return one of many kinds of mixture problem: ties, duplicates, constants, weights, constraints."""
    rng = np.random.default_rng(seed)
    n_samples, n_models = int(rng.integers(1, 501)), int(rng.integers(1, 41))
    losses = _random_losses(rng, n_samples, n_models)
    if rng.random() < 0.3:  # duplicate rows
        losses = losses[rng.integers(0, n_samples, size=n_samples)]
    if rng.random() < 0.3:  # duplicate columns
        losses = losses[:, rng.integers(0, n_models, size=n_models)]
    if rng.random() < 0.2:  # a constant column
        losses[:, rng.integers(n_models)] = losses.flat[0]
    alpha = rng.choice([1 / n_samples, 1.0, rng.uniform(1 / n_samples, 1), min(1.0, 3 / n_samples)])
    weight = None
    if rng.random() < 0.4:
        weight = rng.exponential(size=n_samples) * (rng.random(n_samples) < 0.8)
        weight[rng.integers(n_samples)] = 1.0
    rows, bounds = _feasible_rows(rng, n_models) if rng.random() < 0.5 else (None, None)
    return Problem(losses, float(alpha), weight, rows, bounds)


def _random_losses(rng, n_samples, n_models):
    kind = rng.integers(5)
    if kind == 0:
        return (rng.random((n_samples, n_models)) < rng.uniform(0.05, 0.6)).astype(np.uint8)
    if kind == 1:
        difficulty = rng.beta(0.5, 2, size=(n_samples, 1))
        return rng.random((n_samples, n_models)) < difficulty
    if kind == 2:
        return rng.integers(0, 4, size=(n_samples, n_models)).astype(np.float32)
    if kind == 3:
        return rng.exponential(size=(n_samples, n_models))
    return rng.normal(size=(n_samples, n_models))


def _feasible_rows(rng, n_models):
    """Return constraints that a random mixture meets, some of them with nothing to spare."""
    n_rows = int(rng.integers(1, 6))
    rows = rng.normal(size=(n_rows, n_models)) * (rng.random((n_rows, n_models)) < 0.7)
    inside = rng.dirichlet(np.ones(n_models))
    spare = rng.exponential(0.1, size=n_rows) * (rng.random(n_rows) < 0.7)
    return rows, rows @ inside + spare


def least_cvar(problem):
    """Return the optimum of the mixture problem: scipy's HiGHS on the program over mixtures and slacks."""
    n_samples, n_models = problem.losses.shape
    cost = np.concatenate([np.zeros(n_models), [1.0], problem.caps])
    above = sp.hstack([sp.csr_array(problem.losses.astype(float)), -np.ones((n_samples, 1)), -sp.eye_array(n_samples)])
    limits = np.zeros(n_samples)
    if problem.rows is not None:
        above = sp.vstack([above, np.hstack([problem.rows, np.zeros((len(problem.rows), n_samples + 1))])])
        limits = np.concatenate([limits, problem.bounds])
    total = np.concatenate([np.ones(n_models), np.zeros(n_samples + 1)])[None]
    sign = [(0, None)] * n_models + [(None, None)] + [(0, None)] * n_samples
    found = linprog(cost, A_ub=above, b_ub=limits, A_eq=total, b_eq=[1.0], bounds=sign, method="highs")
    assert found.status == 0, found.message
    return found.fun


def cvar_by_filling(losses, alpha, sample_weight=None):
    """Return the CVaR by handing out the mass one sample at a time, worst first."""
    mass = np.ones(len(losses)) if sample_weight is None else np.asarray(sample_weight, float)
    left = target = alpha * mass.sum()
    total = 0.0
    for place in np.argsort(-np.asarray(losses, float), kind="stable"):
        taken = min(mass[place], left)
        total += taken * losses[place]
        left -= taken
    return total / target


def projection_by_bisection(scores, caps):
    """Return clip(scores - shift, 0, caps) at the shift where it sums to 1."""
    low, high = scores.min() - 2, scores.max()
    shift = brentq(lambda t: np.clip(scores - t, 0, caps).sum() - 1, low, high, xtol=1e-15)
    return np.clip(scores - shift, 0, caps)


def softmax_by_bisection(scores, caps, prior):
    """Return min(caps, prior exp(scores - shift)) at the shift where it sums to 1."""
    logs = scores + np.log(prior)
    low, high = logs.max() - 50 - np.log(len(scores)), logs.max() + np.log(len(scores)) + 1
    low = min(low, (logs - np.log(caps)).min() - 1)
    shift = brentq(lambda t: np.minimum(caps, np.exp(np.minimum(logs - t, 50))).sum() - 1, low, high, xtol=1e-15)
    return np.minimum(caps, np.exp(logs - shift))


def regularized_by_cvxpy(losses, alpha, beta):
    """Return value and weights of max over weights of min over models of weights @ losses + entropy / beta."""
    n_samples = len(losses)
    weights, least = cp.Variable(n_samples), cp.Variable()
    held = [weights @ losses >= least, cp.sum(weights) == 1, weights <= 1 / (alpha * n_samples), weights >= 0]
    program = cp.Problem(cp.Maximize(least + cp.sum(cp.entr(weights)) / beta), held)
    program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    found = np.maximum(weights.value, 1e-300)  # the entropy of a weight of -1e-12 is minus infinity
    return (found @ losses).min() - found @ np.log(found) / beta, found
