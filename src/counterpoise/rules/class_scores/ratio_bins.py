"""The fast path: one linear program over bins of the ratio of the best two probabilities.

Without goals on classes or groups, all that matters about a row is how near its second class is to the first. Rows are
put in bins of that ratio, and each bin has its own probability of deciding for the second class. Rows of one bin whose
label is the first class, the second or another have the same loss. So the program has three rows for each bin, whatever
the number of rows, and one solve is exact for all rules of this family.
"""

from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import FloatArray
from counterpoise.metrics import cvar_loss
from counterpoise.rules.choosing import Problem
from counterpoise.rules.class_scores.family import ClassLimits
from counterpoise.rules.class_scores.rules import RatioRule, best_two
from counterpoise.rules.class_scores.table import CalibratedScores
from counterpoise.rules.goal_rows import TRAIN, GoalConstraints
from counterpoise.solvers.linear_program import solve_linear_program

N_BINS = 16
_TINY = 1e-300  # in the place of a sum of 0, to divide by
_ROUNDING = 1e-12  # of a sum of shares, which is 1
_KINDS = 3  # the label is the first class, the second, or another


class Bins(NamedTuple):
    """The mass of the labelled rows by bin and label."""

    edges: FloatArray
    mass: FloatArray  # (n_bins, 3): by whether the label is the first class, the second, or another

    @property
    def n_bins(self) -> int:
        """Return the number of bins."""
        return len(self.mass)

    @property
    def means(self) -> tuple[float, FloatArray]:
        """Return the mean loss of the first class, and what the second class adds in each bin."""
        return float(self.mass[:, 1:].sum()), self.mass[:, 0] - self.mass[:, 1]

    def losses(self, shares: FloatArray) -> FloatArray:
        """Return the loss of the rows of each bin and kind, given the chance of the second class in each bin."""
        return np.column_stack([shares, 1.0 - shares, np.ones(shares.size)]).ravel()


def find_bins(scores: CalibratedScores) -> Bins:
    """Return bins of about as many rows each."""
    top, codes, mass = best_two(scores.probabilities[TRAIN][0]), scores.labels, scores.mass
    order = np.argsort(top.ratio, kind="stable")
    below = np.cumsum(mass[order])
    edges = np.unique(top.ratio[order[np.searchsorted(below, np.arange(1, N_BINS) / N_BINS - _ROUNDING)]])
    edges = edges[edges > top.ratio.min()]
    places = np.searchsorted(edges, top.ratio, side="right")
    kinds = np.where(codes == top.first, 0, np.where(codes == top.second, 1, 2))
    sums = np.bincount(places * _KINDS + kinds, mass, (edges.size + 1) * _KINDS).astype(np.float64)
    return Bins(edges, sums.reshape(-1, _KINDS))


def choose_by_ratio(
    scores: CalibratedScores, problem: Problem, limits: ClassLimits
) -> tuple[RatioRule, float, float, FloatArray] | None:
    """Return the best rule of the family, its value, a lower bound and the goals' prices; None where there is none."""
    alpha: Any = problem.objective.tail_fraction  # type: ignore[union-attr]
    bins = find_bins(scores)
    rows = None
    if limits.goals is not None:  # on rules that decide for the first class, except for the second in one of the bins
        every = np.vstack([np.zeros(bins.n_bins), np.eye(bins.n_bins)])
        rows = limits.goals.rows([scores.answer_shares(RatioRule(0, bins.edges, shares)) for shares in every])
    most = np.inf
    if problem.budget is not None:
        least = _least_mean(bins, rows)
        if least is None:
            return None
        most = least + problem.budget
    solution = _program(bins, alpha, rows, most)
    if solution is None:
        return None
    shares, duals = solution
    value = cvar_loss(bins.losses(shares), alpha, bins.mass.ravel())
    prices = np.zeros(0)
    if rows is not None:
        prices = rows.prices(np.maximum(duals[: len(rows.bounds)], 0.0) / limits.units[: len(rows.bounds)])
    lower = _lower_bound(bins, alpha, rows, most, duals)
    return RatioRule(0, bins.edges, shares), value, min(lower, value), prices


def _least_mean(bins: Bins, rows: GoalConstraints | None) -> float | None:
    """Return the least mean loss under the goals."""
    constant, added = bins.means
    if rows is None:
        return constant + float(np.minimum(added, 0.0).sum())
    matrix, bounds = _limits(bins, rows, np.inf)
    solution = solve_linear_program(
        added, matrix, (np.full(bounds.size, -np.inf), bounds), lower=np.zeros(added.size), upper=np.ones(added.size)
    )
    return None if solution is None else constant + float(added @ solution.point)


def _program(
    bins: Bins, alpha: float, rows: GoalConstraints | None, most: float
) -> tuple[FloatArray, FloatArray] | None:
    """Return the chances of least tail, and the prices of the goals and of the budget.

    Variables are the chances, the threshold of the tail, and what the losses of each bin and kind have above it.
    """
    n_bins, n_losses = bins.n_bins, bins.n_bins * _KINDS
    start, slopes = bins.losses(np.zeros(n_bins)), np.zeros((n_losses, n_bins))
    slopes[np.arange(n_bins) * _KINDS, np.arange(n_bins)] = 1.0
    slopes[np.arange(n_bins) * _KINDS + 1, np.arange(n_bins)] = -1.0
    above = np.hstack([slopes, -np.ones((n_losses, 1)), -np.eye(n_losses)])
    matrix, bounds = _limits(bins, rows, most)
    limits = np.hstack([matrix, np.zeros((len(bounds), 1 + n_losses))])
    upper = np.concatenate([bounds, -start])
    cost = np.concatenate([np.zeros(n_bins), [1.0], bins.mass.ravel() / alpha])
    solution = solve_linear_program(
        cost,
        np.vstack([limits, above]),
        (np.full(upper.size, -np.inf), upper),
        lower=np.zeros(cost.size),
        upper=np.concatenate([np.ones(n_bins + 1), np.full(n_losses, np.inf)]),
    )
    return None if solution is None else (np.clip(solution.point[:n_bins], 0.0, 1.0), -solution.duals)


def _limits(bins: Bins, rows: GoalConstraints | None, most: float) -> tuple[FloatArray, FloatArray]:
    """Return the goals, and then the budget, as limits on the chances of the second class in each bin."""
    matrix, bounds = np.zeros((0, bins.n_bins)), np.zeros(0)
    if rows is not None:
        matrix, bounds = rows.rows[:, 1:] - rows.rows[:, :1], rows.bounds - rows.rows[:, 0]
    if not np.isfinite(most):
        return matrix, bounds
    constant, added = bins.means
    return np.vstack([matrix, added]), np.append(bounds, most - constant)


def _lower_bound(bins: Bins, alpha: float, rows: GoalConstraints | None, most: float, duals: FloatArray) -> float:
    """Return a lower bound over all chances, from weights of the losses and prices of the limits."""
    matrix, bounds = _limits(bins, rows, most)
    prices, mass = np.maximum(duals[: bounds.size], 0.0), bins.mass.ravel()
    weights = np.clip(duals[bounds.size :], 0.0, mass / alpha)
    if weights.sum() <= 0:
        return 0.0
    missing, slack = 1.0 - weights.sum(), mass / alpha - weights  # to a sum of one, each at most its own limit
    if missing <= 0:
        weights /= weights.sum()
    else:
        weights = weights + missing * slack / max(float(slack.sum()), _TINY)
    by_bin = weights.reshape(-1, _KINDS)
    slopes = by_bin[:, 0] - by_bin[:, 1] + prices @ matrix
    return float(by_bin[:, 1:].sum() + np.minimum(slopes, 0.0).sum() - prices @ bounds)
