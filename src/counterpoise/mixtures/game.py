"""The program of a mixture: least risk of a pool of models, subject to goals.

A randomized classifier draws one model for each person from its mixture. Every loss and every rate is then linear in
the mixture, so with the models' losses and rates at hand the best mixture for any alpha and any goals is a small
optimization and trains nothing.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from counterpoise._base.types import AnyArray, BoolArray, ByteArray, FloatArray, IntArray
from counterpoise.metrics import cvar_loss
from counterpoise.mixtures.goal_rows import GoalRows, LinearRate
from counterpoise.solvers import minimize_risk
from counterpoise.solvers.linear_program import FEASIBLE, InfeasibleRows, MixtureSolution
from counterpoise.theory.risks import Risk

_SHARE = 1e-10  # of the mixture, below which a model is never drawn in practice: rounding of the solver
_ROUNDING = 1e-12  # part of a sum of weights that is lost in adding them up


class Selection(NamedTuple):
    """The rows on which the mixture is chosen: the models' losses there, what the rows weigh, and what must hold."""

    losses: ByteArray  # (n_samples, n_models), zero-one
    sample_weight: FloatArray | None
    groups: IntArray | None  # group code of each row where the worst group counts, else None
    goals: GoalRows | None = None
    rate: LinearRate | None = None  # what is minimized instead of a risk of the losses
    risk: Risk | None = None  # what is minimized, bound to the rows, where it is neither a CVaR nor the worst group

    def first(self, n_models: int) -> "Selection":
        """Return the same rows with the losses of the first models only."""
        goals = None if self.goals is None else self.goals.only(np.arange(n_models))
        rate = None if self.rate is None else self.rate._replace(row=self.rate.row[:n_models])
        return self._replace(losses=self.losses[:, :n_models], goals=goals, rate=rate)


class Choice(NamedTuple):
    """A mixture, and the risk it has on the rows where it was chosen."""

    mixture: FloatArray
    value: float
    gap: float  # no mixture has a risk below value - gap; not a number where none was sought
    multipliers: FloatArray  # of the goals: what the risk would gain for each unit of a bound
    cost: float = 0.0  # of a limit on the number of models: how much more risk than without it


class Game(NamedTuple):
    """``min over mixture of shift + risk(losses @ mixture)`` subject to goals."""

    losses: AnyArray
    risk: Risk
    sample_weight: FloatArray | None
    goals: GoalRows | None
    shift: float = 0.0

    def solve(self, minimize: Callable[..., MixtureSolution] = minimize_risk) -> Choice:
        """Return the best mixture, or raise ``InfeasibleGoals``; ``minimize`` takes what ``minimize_risk`` does."""
        goals = self.goals
        limits = {} if goals is None else goals.as_limits()
        try:
            found = minimize(self.losses, self.risk, sample_weight=self.sample_weight, **limits)
        except InfeasibleRows as error:
            assert goals is not None  # noqa: S101 - there are no other rows
            raise goals.infeasible(error) from error
        mixture = cleaned(found.mixture)
        if goals is not None and _excess(mixture, **limits) > max(_excess(found.mixture, **limits), FEASIBLE):
            mixture = found.mixture  # a goal needs the least of shares
        prices = found.multipliers if goals is None else goals.prices(found.multipliers)
        return Choice(mixture, self.shift + found.value, found.gap, prices)

    def value(self, mixture: FloatArray) -> float:
        """Return the risk of a mixture."""
        if self.risk.tail_fraction is not None:
            return self.shift + cvar_loss(self.losses, self.risk.tail_fraction, self.sample_weight, mixture=mixture)
        return self.shift + self.risk.value(self.losses @ mixture, self.sample_weight)

    def single_values(self) -> FloatArray:
        """Return the risk of each model alone."""
        alpha = self.risk.tail_fraction
        if self.losses.dtype == np.uint8 and alpha is not None:  # zero-one: Proposition 1 of Zhai et al. 2021
            errors = np.average(self.losses, axis=0, weights=self.sample_weight)
            return self.shift + np.minimum(errors / alpha, 1.0)
        return np.array([self.value(alone) for alone in np.eye(self.losses.shape[1])])

    def violations(self) -> FloatArray:
        """Return by how much each model alone misses the goals, in total, in parts of the goals' sizes."""
        if self.goals is None:
            return np.zeros(self.losses.shape[1])
        missed = self.goals.missed() / self.goals.goal_sizes[:, None]
        worst = np.zeros((len(self.goals.goals), missed.shape[1]))
        np.maximum.at(worst, self.goals.places, missed)
        return np.asarray(worst.sum(axis=0))

    def only(self, models: IntArray) -> "Game":
        """Return the same problem for some of the models."""
        goals = None if self.goals is None else self.goals.only(models)
        return self._replace(losses=self.losses[:, models], goals=goals)


def group_losses(selection: Selection) -> FloatArray:
    """Return the average loss of every model on every group that weighs anything, shape (n_groups, n_models)."""
    groups = selection.groups
    assert groups is not None  # noqa: S101 - callers checked
    weight = np.ones(groups.size) if selection.sample_weight is None else selection.sample_weight
    totals = np.bincount(groups, weight)
    share = np.divide(weight, totals[groups], out=np.zeros(weight.size), where=weight > 0)
    columns = [np.bincount(groups, share * column) for column in selection.losses.T]
    return np.asarray(np.column_stack(columns)[totals > 0])


def outliers(losses: AnyArray, sample_weight: FloatArray | None, fraction: float) -> BoolArray:
    """Return which samples have the highest losses, up to ``fraction`` of the weight; earlier rows first on ties."""
    weight = np.ones(losses.size) if sample_weight is None else sample_weight
    order = np.argsort(-losses, kind="stable")
    reached = np.cumsum(weight[order])
    is_outlier = np.zeros(losses.size, dtype=np.bool_)
    is_within = reached <= fraction * reached[-1] * (1 + _ROUNDING)
    is_outlier[order[is_within & (reached < reached[-1])]] = True  # some weight is always left
    return is_outlier


def cleaned(mixture: FloatArray) -> FloatArray:
    """Return a mixture without shares that are rounding."""
    mixture = np.where(mixture > _SHARE, mixture, 0.0)
    return np.asarray(mixture / mixture.sum())


def _excess(mixture: FloatArray, rows: FloatArray, bounds: FloatArray, row_scale: FloatArray) -> float:
    """Return the largest part of its scale by which a goal is missed."""
    return float(((rows @ mixture - bounds) / row_scale).max())
