"""The rows that models are trained on, with the losses of the models so far: the sums that rounds need of them.

Rules and programs of the rounds see rows through a ``RowStore`` only. ``ArrayRows`` holds them in arrays;
``distributed.boosting.ShardRows`` has them in shards, on threads or on the workers of Dask, where only sums travel.
"""

import copy
from collections.abc import Callable
from typing import Any, Protocol, Self

import numpy as np

from counterpoise._base.types import AnyArray, ByteArray, FloatArray, IntArray
from counterpoise.boosting.inputs import unequal
from counterpoise.rules.choosing import outliers
from counterpoise.solvers import minimize_cvar, minimize_risk
from counterpoise.solvers.linear_program import MixtureSolution
from counterpoise.solvers.rows import weighted_sum
from counterpoise.solvers.tail import GrowingMixture, minimize_linear
from counterpoise.theory.risks import Risk, WorstOfGroups

# The rows, the limits of the goals, a gap -> the best mixture, and the weights of the labelled places in its dual, None
# where the rows keep them; or it raises ``InfeasibleRows``.
Minimize = Callable[["RowStore", dict[str, Any], float], tuple[MixtureSolution, FloatArray | None]]


class RowStore(Protocol):
    """Training rows and the losses of the models so far.

    Rows lie in *places*: in arrays each row is a place of its own, in shards the rows that are alike to every goal
    share one. Whatever weighs rows returns the weights, or an empty array where they stay with the rows.
    """

    start: FloatArray  # the rows' own weight in each place, on the simplex: that of the first round
    answers: list[AnyArray]  # of each model about the rows, in the form of the store, where kept

    @property
    def mass(self) -> FloatArray:
        """Return the rows' own weight in each place, in the unit in which the store adds up."""

    @property
    def losses(self) -> AnyArray:
        """Return the mean loss of each model in each place, shape (n_places, n_models)."""

    @property
    def failures(self) -> FloatArray:
        """Return the mass of each place times the number of models that fail on its rows."""

    def add(self, losses: ByteArray, answers: AnyArray | None) -> None:
        """Record where the model of a round fails."""

    def mass_by_failures(self) -> FloatArray:
        """Return the mass of the rows by the number of models that fail on them."""

    def weigh_by_failures(self, table: FloatArray) -> FloatArray:
        """Weigh a unit of mass by the number of models that fail on it."""

    def weigh_by_place(self, table: FloatArray) -> FloatArray:
        """Weigh a unit of mass by its place."""

    def weigh_by_dual(self, risk: Risk, tol: float) -> FloatArray:
        """Take the weights on which the mixture of least risk is worst."""

    def least_risk(self, risk: Risk) -> float:
        """Return the least risk of a mixture."""

    def minimizer(self, risk: Risk) -> Minimize:
        """Return what minimizes a risk under limits, again after every round."""

    def newest_loss(self, weights: FloatArray | None) -> float:
        """Return the loss of the newest model under the dual weights, as ``minimizer`` returned them."""

    def are_all_alike(self) -> bool:
        """Return whether as many models fail on every row: no row then weighs more than at first."""


class ArrayRows:
    """Rows in arrays of this process, with a byte for each loss.

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
    >>> from counterpoise.boosting.row_store import ArrayRows
    >>> rows = ArrayRows(np.array([0.5, 0.25, 0.25]), 2)
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
    def mass(self) -> FloatArray:
        """Return the weights of the rows."""
        return self.start

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

    def weigh_by_failures(self, table: FloatArray) -> FloatArray:
        """Weigh a unit of weight by the number of models that fail on it."""
        return np.asarray(table[self.totals] * self.start)

    def weigh_by_place(self, table: FloatArray) -> FloatArray:
        """Weigh a unit of weight by its row."""
        return np.asarray(table * self.start)

    def weigh_by_dual(self, risk: Risk, tol: float) -> FloatArray:
        """Return the weights on which the mixture of least risk is worst."""
        return dual_weights(self, risk, tol)

    def least_risk(self, risk: Risk) -> float:
        """Return the least risk of a mixture."""
        return minimize_risk(self.losses, risk, sample_weight=self.start).value

    def minimizer(self, risk: Risk) -> Minimize:
        """Return what minimizes a risk under limits, again after every round."""
        return minimizer_of(risk, self.start.size)

    def newest_loss(self, weights: FloatArray | None) -> float:
        """Return the loss of the newest model under weights."""
        return weighted_sum(np.asarray(weights), self._losses[:, self.n_models - 1])

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
    """Return the weights of the places on which the mixture of least risk is worst."""
    weights = minimize_risk(rows.losses, risk, sample_weight=rows.start, tol=tol).weights
    return weights if risk.is_worst_case else weights / weights.sum()


def minimizer_of(risk: Risk, n_places: int) -> Minimize:
    """Return what minimizes a risk that is bound to places: a CVaR with the cuts of the round before."""
    if isinstance(risk, WorstOfGroups):
        return GroupMeans(risk.codes)
    if risk.tail_fraction == 1:
        return GroupMeans(np.zeros(n_places, dtype=np.int64))
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
    """Minimize the largest mean loss of some groups of places; of one group the mean loss."""

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
