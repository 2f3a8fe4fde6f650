"""Independent references: brute force, other libraries, other formulations. Nothing here imports counterpoise."""

import warnings
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
    n_samples, n_models = int(rng.integers(1, 251)), int(rng.integers(1, 26))
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
    """Return the optimum of the mixture problem, None where no mixture keeps the constraints.

    Scipy's HiGHS on the program over mixtures and slacks.
    """
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
    assert found.status in {0, 2}, found.message
    return found.fun if found.status == 0 else None


def least_risk(problem, parts, groups=None):
    """Return the least of a sum of worst-case risks over mixtures, each part ``(factor, kind, size)``: Clarabel.

    By duality it is the largest value that all models have under weights which are such a sum, one from each ball.
    """
    n_samples, _ = problem.losses.shape
    mass = np.ones(n_samples) if problem.sample_weight is None else problem.sample_weight
    base, value, held = mass / mass.sum(), cp.Variable(), []
    live = np.flatnonzero(base > 0)
    total = 0
    for factor, kind, size in parts:
        if kind == "worst-group":
            of_groups = np.stack([np.where(groups == g, base, 0) for g in np.unique(groups[live])])
            shares = cp.Variable(len(of_groups), nonneg=True)
            held.append(cp.sum(shares) == 1)
            weights = (of_groups / of_groups.sum(axis=1, keepdims=True)).T[live] @ shares
        else:
            weights = cp.Variable(live.size, nonneg=True)
            held += [cp.sum(weights) == 1, _inside(weights, size, base[live], kind)]
        total = total + factor * (problem.losses[live].astype(float).T @ weights)
    gain = value
    if problem.rows is not None:
        prices = cp.Variable(len(problem.rows), nonneg=True)
        total, gain = total + problem.rows.T @ prices, value - prices @ problem.bounds
    return cp.Problem(cp.Maximize(gain), [*held, total >= value]).solve(solver=cp.CLARABEL, **TIGHT)


TIGHT = {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}


def least_mean_variance(problem, penalty):
    """Return the least ``mean^2 + penalty * variance`` of the losses of a mixture: Clarabel."""
    n_samples, n_models = problem.losses.shape
    mass = np.ones(n_samples) if problem.sample_weight is None else problem.sample_weight
    base, mixture = mass / mass.sum(), cp.Variable(n_models, nonneg=True)
    losses = problem.losses.astype(float) @ mixture
    mean = base @ losses
    cost = cp.square(mean) + penalty * cp.sum_squares(cp.multiply(np.sqrt(base), losses - mean))
    held = [cp.sum(mixture) == 1, *([] if problem.rows is None else [problem.rows @ mixture <= problem.bounds])]
    return cp.Problem(cp.Minimize(cost), held).solve(solver=cp.CLARABEL, **TIGHT)


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


def divergence_of(weights, base, divergence):
    """Return how far weights are from the base, in the words of ``worst_case_weights``."""
    held = base > 0
    w, q = weights[held], base[held]
    if divergence == "empirical-likelihood":
        return -(q @ np.log(w / q))
    if divergence == "kl":
        return w[w > 0] @ np.log(w[w > 0] / q[w > 0])
    if divergence == "chi-square":
        return (q @ (w / q - 1) ** 2) / 2
    return np.log((w / q).max())


def _inside(weights, radius, base, divergence):
    return {
        "empirical-likelihood": lambda: -base @ cp.log(cp.multiply(weights, 1 / base)) <= radius,
        "kl": lambda: cp.sum(cp.kl_div(weights, base)) <= radius,  # both sum to 1
        "chi-square": lambda: (
            cp.sum_squares(cp.multiply(cp.multiply(weights, 1 / base) - 1, np.sqrt(base / 2))) <= radius
        ),
        "cvar": lambda: weights <= base * np.exp(radius),
    }[divergence]()


def worst_weights_by_cvxpy(losses, radius, base, divergence, smoothing=0.0):
    """Return the worst weights in the ball by a conic program, with a price for their divergence KL where given."""
    weights = cp.Variable(len(losses))
    inside = _inside(weights, radius, base, divergence)
    value = weights @ losses
    if smoothing:
        value = value - smoothing * cp.sum(cp.kl_div(weights, base))
    program = cp.Problem(cp.Maximize(value), [inside, cp.sum(weights) == 1, weights >= 0])
    tight = 1e-9 if divergence == "chi-square" else 1e-11  # weights are good to about the root of it
    with warnings.catch_warnings():  # it may stop just short of so small a gap, which is good enough
        warnings.filterwarnings("ignore", "Solution may be inaccurate")
        program.solve(solver=cp.CLARABEL, tol_gap_abs=tight, tol_gap_rel=tight, tol_feas=tight)
    return weights.value


def random_decisions(seed, *, weighted):
    """Return predictions, labels, baseline, groups and weights; each group has both labels."""
    rng = np.random.default_rng(seed)
    n_samples = int(rng.integers(8, 60))
    labels, baseline, predicted = (rng.random((3, n_samples)) < rng.uniform(0.2, 0.8, size=(3, 1))).astype(int)
    sex = rng.choice(["F", "M"], size=n_samples)
    labels[:4], sex[:4] = [0, 1, 0, 1], ["F", "F", "M", "M"]
    weight = rng.exponential(size=n_samples) * (rng.random(n_samples) < 0.9) if weighted else np.ones(n_samples)
    weight[:4] = 1.0
    return predicted, labels, baseline, sex, weight


def rates_by_counting(predicted, labels, baseline, weight):
    """Return every rate of the dataset-constraints paper's Tables 2 and 4, counted row by row; 2 is a deferred row."""
    total = dict.fromkeys((f"{p}{y}{b}" for p in "+-0" for y in "+-" for b in "+-"), 0.0)
    for p, y, b, w in zip(predicted, labels, baseline, weight, strict=True):
        total["".join("-+0"[int(sign)] for sign in (p, y, b))] += w

    def sum_of(pattern):
        return sum(w for key, w in total.items() if all(c in ("?", k) for c, k in zip(pattern, key, strict=True)))

    n, tp, fp, fn, tn = map(sum_of, ("???", "++?", "+-?", "-+?", "--?"))
    positives, negatives, deferred = map(sum_of, ("?+?", "?-?", "0??"))
    wins = sum_of("++-") + sum_of("--+")
    losses = sum_of("-++") + sum_of("+--")
    changes = sum_of("-?+") + sum_of("+?-") + deferred

    def over(top, bottom):
        return top / bottom if bottom else np.inf if top else np.nan

    return {
        "positive_rate": over(tp + fp, n),
        "negative_rate": over(fn + tn, n),
        "coverage": over(tp + fp, n),
        "true_positives": over(tp, n),
        "true_negatives": over(tn, n),
        "false_positives": over(fp, n),
        "false_negatives": over(fn, n),
        "error_rate": over(fp + fn, n),
        "accuracy": over(tp + tn, n),
        "correct": over(tp + tn, n),
        "recall": over(tp, positives),
        "balanced_accuracy": (over(tp, positives) + over(tn, negatives)) / 2,
        "false_negative_rate": over(fn, positives),
        "false_positive_rate": over(fp, negatives),
        "true_negative_rate": over(tn, negatives),
        "defer_rate": over(deferred, n),
        "decided_error_rate": over(fp + fn, tp + fp + fn + tn),
        "decided_positive_rate": over(tp + fp, tp + fp + fn + tn),
        "churn": over(changes, n),
        "win_rate": over(wins, n),
        "loss_rate": over(losses, n),
        "wins_minus_losses": over(wins - losses, n),
        "precision": over(tp, tp + fp),
        "negative_predictive_value": over(tn, tn + fn),
        "false_discovery_rate": over(fp, tp + fp),
        "false_omission_rate": over(fn, tn + fn),
        "f1_score": over(2 * tp, 2 * tp + fn + fp),
        "jaccard_score": over(tp, tp + fn + fp),
        "win_loss_ratio": over(wins, losses),
        "win_change_ratio": over(wins, changes),
    }


def svm_value(X, up, down, regularization, coefficients, bias):
    """Return the value of a classifier in the weighted support vector machine, by its definition."""
    scores = X @ coefficients - bias
    ridge = regularization / 2 * coefficients @ coefficients
    return ridge + up @ np.maximum(0, 0.5 - scores) + down @ np.maximum(0, 0.5 + scores)


def least_svm_value(X, up, down, regularization, *, fit_bias):
    """Return the least value of the weighted support vector machine: Clarabel on the quadratic program."""
    coefficients, bias = cp.Variable(X.shape[1]), cp.Variable()
    scores = X @ coefficients - (bias if fit_bias else 0.0)
    hinges = up @ cp.pos(0.5 - scores) + down @ cp.pos(0.5 + scores)
    program = cp.Problem(cp.Minimize(regularization / 2 * cp.sum_squares(coefficients) + hinges))
    return program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)


def least_majorized_value(X, weights, constants, regularization, scores):
    """Return the optimum of the dataset-constraints paper's Problem 3 around given scores: Clarabel.

    ``weights`` has the objective's signed weights on the rows first, then those of each constraint.
    """
    coefficients, bias = cp.Variable(X.shape[1]), cp.Variable()
    moved = X @ coefficients - bias
    is_hinge_up, is_hinge_down = (scores >= -0.5).astype(float), (scores <= 0.5).astype(float)
    positive = cp.multiply(is_hinge_down, cp.pos(0.5 + moved)) + (1 - is_hinge_down)
    negative = cp.multiply(is_hinge_up, cp.pos(0.5 - moved)) + (1 - is_hinge_up)

    def bound(row, constant):  # a weight below 0 on a positive prediction is its opposite on a negative one, less that
        return constant + np.maximum(row, 0) @ positive + np.minimum(row, 0).sum() + np.maximum(-row, 0) @ negative

    held = [bound(row, constant) <= 0 for row, constant in zip(weights[1:], constants[1:], strict=True)]
    cost = regularization / 2 * cp.sum_squares(coefficients) + bound(weights[0], constants[0])
    program = cp.Problem(cp.Minimize(cost), held)
    return program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
