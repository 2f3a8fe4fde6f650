"""The rows that models are trained on, with the losses of the models so far: the sums that rounds need of them."""

import copy
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from counterpoise._base.types import AnyArray, ByteArray, FloatArray, IntArray
from counterpoise.boosting.inputs import unequal
from counterpoise.rules.choosing import outliers
from counterpoise.solvers import minimize_cvar, minimize_risk
from counterpoise.solvers.linear_program import MixtureSolution
from counterpoise.solvers.rows import weighted_sum
from counterpoise.solvers.tail import GrowingMixture, minimize_linear
from counterpoise.theory.risks import Risk, WorstOfGroups

# The rows, the limits of the goals, a gap -> the best mixture, and the weights of the labelled rows in its dual; or it
# raises ``InfeasibleRows``.
Minimize = Callable[["RowStore", dict[str, Any], float], tuple[MixtureSolution, FloatArray]]


class RowStore:
    """Training rows, with a byte for each loss of each model.

    Parameters
    ----------
    start : array of shape (n_samples,)
        The rows' own weights, on the simplex.
    n_rounds : int
        Models to make room for; more may come.

    Attributes
    ----------
    totals : array of shape (n_samples,)
        How many models fail on each row.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.boosting.row_store import RowStore
    >>> rows = RowStore(np.array([0.5, 0.25, 0.25]), 2)
    >>> rows.add(np.array([0, 1, 1], dtype=np.uint8))
    >>> rows.add(np.array([0, 0, 1], dtype=np.uint8))
    >>> rows.totals.tolist(), rows.mass_by_failures().tolist()
    ([0, 1, 2], [0.5, 0.25, 0.25])
    """

    def __init__(self, start: FloatArray, n_rounds: int) -> None:
        self.start = start
        self.totals = np.zeros(start.size, dtype=np.intp)
        self.answers: list[AnyArray] = []  # class codes by models that did not see the rows, or inside goals
        self.n_models = 0
        self._losses = np.empty((start.size, n_rounds), dtype=np.uint8, order="F")

    @property
    def losses(self) -> ByteArray:
        """Return the losses of all models, shape (n_samples, n_models)."""
        return self._losses[:, : self.n_models]

    @property
    def failures(self) -> FloatArray:
        """Return the weight of each row times the number of models that fail on it."""
        return self.start * self.totals

    def add(self, losses: ByteArray, answers: AnyArray | None = None) -> None:
        """Record where a model fails."""
        if self.n_models == self._losses.shape[1]:  # more rounds than were planned
            self._losses = np.concatenate([self._losses, np.empty_like(self._losses)], axis=1)
        self._losses[:, self.n_models] = losses
        self.totals += losses
        self.n_models += 1
        if answers is not None:
            self.answers.append(answers)

    def mass_by_failures(self) -> FloatArray:
        """Return the weight of the rows by the number of models that fail on them."""
        return np.bincount(self.totals, self.start, self.n_models + 1).astype(np.float64)

    def least_risk(self, risk: Risk) -> float:
        """Return the least risk of a mixture."""
        return minimize_risk(self.losses, risk, sample_weight=self.start).value

    def newest_loss(self, weights: FloatArray) -> float:
        """Return the loss of the newest model under weights."""
        return weighted_sum(weights, self._losses[:, self.n_models - 1])

    def are_all_alike(self) -> bool:
        """Return whether as many models fail on every row."""
        return bool(np.ptp(self.totals) == 0)

    def without_outliers(self, fraction: float) -> Self:
        """Return the same rows, where those of the highest losses weigh nothing (DORO)."""
        weights = np.where(outliers(self.totals, self.start, fraction), 0.0, self.start)
        other = copy.copy(self)
        other.start = weights / weights.sum()
        return other


def dual_weights(rows: RowStore, risk: Risk, tol: float) -> FloatArray:
    """Return the weights of the rows on which the mixture of least risk is worst."""
    weights = minimize_risk(rows.losses, risk, sample_weight=rows.start, tol=tol).weights
    return weights if risk.is_worst_case else weights / weights.sum()


def minimizer_of(risk: Risk, n_rows: int) -> Minimize:
    """Return what minimizes a risk under limits, again after every round: a CVaR with the cuts of the round before."""
    if isinstance(risk, WorstOfGroups):
        return GroupMeans(risk.codes)
    if risk.tail_fraction == 1:
        return GroupMeans(np.zeros(n_rows, dtype=np.int64))
    growing = None if risk.tail_fraction is None else GrowingMixture(risk.tail_fraction)

    def minimize(rows: RowStore, limits: dict[str, Any], tol: float) -> tuple[MixtureSolution, FloatArray]:
        own = unequal(rows.start)
        if growing is None:
            solution = minimize_risk(rows.losses, risk, sample_weight=own, tol=tol, **limits)
        else:
            growing.tol = tol
            solution = growing.solve(rows.losses, sample_weight=own, **limits)
        return solution, solution.weights

    return minimize


class GroupMeans:
    """Minimize the largest mean loss of some groups of rows; of one group the mean loss."""

    def __init__(self, groups: IntArray) -> None:
        self.groups, self._start = groups, np.empty(0)
        self._means = np.empty((0, 0))

    def __call__(self, rows: RowStore, limits: dict[str, Any], _tol: float) -> tuple[MixtureSolution, FloatArray]:
        # Means of groups that weigh anything, those of models that are known already as they were.
        n_known = self._means.shape[1] if np.array_equal(self._start, rows.start) else 0
        if n_known == 0:
            self._start, totals = rows.start, np.bincount(self.groups, rows.start)
            weighs = rows.start > 0
            self._shares = np.divide(rows.start, totals[self.groups], out=np.zeros(weighs.size), where=weighs)
            self._codes = (np.cumsum(totals > 0) - 1)[self.groups]
            self._means = np.empty((int((totals > 0).sum()), 0))
        columns = [
            np.bincount(self._codes, self._shares * losses, len(self._means)) for losses in rows.losses.T[n_known:]
        ]
        self._means = means = np.column_stack([self._means, *columns])
        is_one = len(means) == 1
        solution = minimize_linear(means[0], **limits) if is_one else minimize_cvar(means, 1 / len(means), **limits)
        return solution, self._shares * solution.weights[self._codes]
