"""Risks: each turns the losses of samples into sample weights, and into one number.

A booster asks a risk for weights, fits a model to them, and records its losses. All risks have the same two methods::

    value(losses, sample_weight=None)    -> float
    weights(losses, sample_weight=None)  -> weights on the samples, on the simplex

For all but ``MeanVariance`` the weights are the worst of a set of distributions around the samples' own, and the value
is ``weights @ losses``: an upper bound on the mean loss under every distribution of the set.

>>> from counterpoise.theory.risks import CVaR, EmpiricalLikelihood, Mean
>>> losses = [0.0, 0.0, 1.0, 3.0]
>>> [round(risk.value(losses), 3) for risk in (Mean(), EmpiricalLikelihood(0.05), CVaR(0.5))]
[1.0, 1.414, 2.0]
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from counterpoise._base.checks import (
    LEAST_ALPHA,
    check_alpha,
    check_choice,
    check_losses,
    check_penalty,
    check_sample_weight,
    check_vector,
    value_range,
)
from counterpoise._base.types import ArrayLike, BoolArray, FloatArray
from counterpoise.solvers.worst_case import DIVERGENCES, check_radius, worst_case_weights

__all__ = ["KL", "CVaR", "ChiSquare", "EmpiricalLikelihood", "Mean", "MeanVariance", "Risk", "ball_risk"]


@runtime_checkable
class Risk(Protocol):
    """What boosters ask of a risk."""

    def value(self, losses: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the risk of the losses."""

    def weights(self, losses: ArrayLike, sample_weight: ArrayLike | None = None) -> FloatArray:
        """Return weights on the samples, non-negative and of sum 1."""


class WorstCase:
    """Base of the risks whose value is the mean loss under the weights they give."""

    def weights(self, losses: ArrayLike, sample_weight: ArrayLike | None = None) -> FloatArray:
        raise NotImplementedError

    def value(self, losses: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return ``weights(losses) @ losses``."""
        return float(self.weights(losses, sample_weight) @ np.asarray(losses, dtype=np.float64))


@dataclass(frozen=True)
class Mean(WorstCase):
    """The mean loss; its weights are the samples' own.

    Examples
    --------
    >>> from counterpoise.theory.risks import Mean
    >>> Mean().weights([5.0, 1.0], sample_weight=[3, 1]).tolist()
    [0.75, 0.25]
    """

    def weights(self, losses: ArrayLike, sample_weight: ArrayLike | None = None) -> FloatArray:
        return worst_case_weights(losses, 0.0, sample_weight=sample_weight)


@dataclass(frozen=True)
class CVaR(WorstCase):
    """The mean loss over the worst fraction ``alpha`` of the samples.

    Parameters
    ----------
    alpha : float in (0, 1]
        Tail fraction; 1 is the mean.

    Examples
    --------
    >>> from counterpoise.theory.risks import CVaR
    >>> CVaR(0.5).weights([0.0, 1.0, 3.0]).round(3).tolist()
    [0.0, 0.333, 0.667]
    """

    alpha: float

    def __post_init__(self) -> None:
        check_alpha(self.alpha)

    def weights(self, losses: ArrayLike, sample_weight: ArrayLike | None = None) -> FloatArray:
        return worst_case_weights(losses, -math.log(self.alpha), divergence="cvar", sample_weight=sample_weight)


@dataclass(frozen=True)
class _Ball(WorstCase):
    """The largest mean loss under weights at most ``radius`` from the samples' own."""

    radius: float
    divergence: ClassVar[str]

    def __post_init__(self) -> None:
        check_radius(self.radius)

    def weights(self, losses: ArrayLike, sample_weight: ArrayLike | None = None) -> FloatArray:
        return worst_case_weights(losses, self.radius, divergence=self.divergence, sample_weight=sample_weight)


@dataclass(frozen=True)
class EmpiricalLikelihood(_Ball):
    """The largest mean loss under weights of divergence ``sum q_i log(q_i / w_i)`` up to ``radius``.

    The ball of DRO-Boosting (Blanchet et al.). ``guarantees.calibrated_radius`` gives a radius with a confidence.

    Parameters
    ----------
    radius : float >= 0
        Size of the ball; 0 is the mean.

    Examples
    --------
    >>> from counterpoise.theory.risks import EmpiricalLikelihood
    >>> EmpiricalLikelihood(0.1).weights([0.0, 1.0, 3.0]).round(3).tolist()
    [0.198, 0.252, 0.55]
    """

    divergence: ClassVar[str] = "empirical-likelihood"


@dataclass(frozen=True)
class KL(_Ball):
    """The largest mean loss under weights of divergence ``sum w_i log(w_i / q_i)`` up to ``radius``.

    Parameters
    ----------
    radius : float >= 0
        Size of the ball; 0 is the mean.

    Examples
    --------
    >>> from counterpoise.theory.risks import KL
    >>> KL(0.1).weights([0.0, 1.0, 3.0]).round(3).tolist()
    [0.188, 0.268, 0.544]
    """

    divergence: ClassVar[str] = "kl"


@dataclass(frozen=True)
class ChiSquare(_Ball):
    """The largest mean loss under weights of divergence ``sum q_i (w_i / q_i - 1)^2 / 2`` up to ``radius``.

    While no weight is 0 the value is ``mean + sqrt(2 radius variance)``.

    Parameters
    ----------
    radius : float >= 0
        Size of the ball; 0 is the mean.

    Examples
    --------
    >>> from counterpoise.theory.risks import ChiSquare
    >>> ChiSquare(0.1).weights([0.0, 1.0, 3.0]).round(3).tolist()
    [0.174, 0.293, 0.533]
    """

    divergence: ClassVar[str] = "chi-square"


def ball_risk(divergence: str, radius: float) -> Risk:
    """Return the risk of the given divergence; for ``"cvar"`` that of the tail ``exp(-radius)``.

    Parameters
    ----------
    divergence : {"empirical-likelihood", "kl", "chi-square", "cvar"}
        What the radius measures.
    radius : float >= 0
        The size of the ball around the samples' own weights.

    Returns
    -------
    Risk

    Examples
    --------
    >>> from counterpoise.theory.risks import ball_risk
    >>> ball_risk("kl", 0.1)
    KL(radius=0.1)
    """
    check_choice(divergence, "divergence", DIVERGENCES)
    if divergence == "cvar":
        return CVaR(max(math.exp(-check_radius(radius)), LEAST_ALPHA))
    kinds = {"empirical-likelihood": EmpiricalLikelihood, "kl": KL, "chi-square": ChiSquare}
    return kinds[divergence](radius)


@dataclass(frozen=True)
class MeanVariance:
    """Mean and variance of the exponential loss, as VadaBoost weighs them (Shivaswamy and Jebara 2011).

    It differs from the other risks in three ways. It is made for exponential losses ``e_i = exp(-y_i f(x_i))``. Its
    value is their cost (3) over n^2, ``mean^2 + penalty * variance``, which is quadratic in the losses. And its weights
    are the ``u_i`` of their Algorithm 2 scaled to sum to 1: how fast the cost falls as the *margin* of a sample rises,
    the slope of the exponential loss included; so ``weights @ losses`` is not the value.

    Parameters
    ----------
    penalty : float in [0, 1]
        Weight of the variance beside the squared mean.

    Examples
    --------
    >>> from counterpoise.theory.risks import MeanVariance
    >>> risk = MeanVariance(0.5)
    >>> risk.value([1.0, 1.0, 4.0]), risk.weights([1.0, 1.0, 4.0]).round(3).tolist()
    (5.0, [0.1, 0.1, 0.8])
    """

    penalty: float

    def __post_init__(self) -> None:
        check_penalty(self.penalty)

    def value(self, losses: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the cost."""
        return self.cost(losses, sample_weight)

    def weights(self, losses: ArrayLike, sample_weight: ArrayLike | None = None) -> FloatArray:
        """Return ``u_i``, which is ``penalty w_i^2 / q_i + (1 - penalty) w_i``, scaled to sum to 1.

        The ``w_i`` are the losses times the samples' own weights q, scaled to sum to 1; ``1 / q_i`` is n for equal q.
        """
        mixed = self._mixed(*_scaled(losses, sample_weight))
        return np.asarray(mixed / mixed.sum())

    def cost(self, losses: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return ``mean^2 + penalty * variance``: cost (3) over n^2, under the samples' own weights."""
        vector, base = _checked(losses, sample_weight)
        vector, base = vector[base > 0], base[base > 0]
        largest = float(vector.max()) or 1.0
        mean = float(base @ (vector / largest))
        variance = float(base @ (vector / largest - mean) ** 2)
        return largest * largest * (mean**2 + self.penalty * variance)  # infinite where the square of a loss is

    def step_cost(
        self, losses: ArrayLike, wrong: ArrayLike, vote: float, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return V of eq. (4): the cost after a step, relative to losses of mean 1.

        The losses of the samples where ``wrong`` is true grow by ``exp(vote)``, the others shrink by as much.
        """
        moved, base = _scaled(losses, sample_weight)
        moved = moved * np.exp(np.where(_flags(wrong, moved.size), vote, -vote))
        square = float((moved[base > 0] ** 2 / base[base > 0]).sum())
        return (1.0 - self.penalty) * float(moved.sum()) ** 2 + self.penalty * square

    def bound(self, losses: ArrayLike, wrong: ArrayLike, vote: float, sample_weight: ArrayLike | None = None) -> float:
        """Return U of eq. (5): at least ``step_cost`` at every vote, and equal to it at 0 (Theorem 3)."""
        mixed = self._mixed(*_scaled(losses, sample_weight))
        return float(mixed @ np.exp(np.where(_flags(wrong, mixed.size), 2.0 * vote, -2.0 * vote)))

    def _mixed(self, scaled: FloatArray, base: FloatArray) -> FloatArray:
        squares = np.divide(scaled**2, base, out=np.zeros(base.size), where=base > 0)
        return np.asarray(self.penalty * squares + (1.0 - self.penalty) * scaled)


def _flags(wrong: ArrayLike, n_samples: int) -> BoolArray:
    given = check_vector(wrong, "wrong", n_samples, "true for each sample that the model is wrong on")
    return np.asarray(given != 0.0)


def _checked(losses: ArrayLike, sample_weight: ArrayLike | None) -> tuple[FloatArray, FloatArray]:
    """Return the losses, and the samples' own weights on the simplex."""
    n_samples = check_losses(losses, ndim=1).size
    vector = check_vector(losses, "losses", n_samples, "one for each sample")
    if value_range(vector, "losses")[0] < 0:
        raise ValueError(f"losses must not be negative, as exponential losses are not; got {float(vector.min())!r}.")
    mass = check_sample_weight(sample_weight, n_samples)
    return vector, np.full(n_samples, 1.0 / n_samples) if mass is None else mass / mass.sum()


def _scaled(losses: ArrayLike, sample_weight: ArrayLike | None) -> tuple[FloatArray, FloatArray]:
    """Return the losses times the samples' own weights, scaled to sum to 1, and those weights."""
    vector, base = _checked(losses, sample_weight)
    largest = float(vector[base > 0].max())
    if largest == 0.0:
        return base.copy(), base
    share = base * (np.minimum(vector, largest) / largest)  # one without weight may be larger, and counts for nothing
    return np.asarray(share / share.sum()), base
