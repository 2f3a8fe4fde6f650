"""Risks: each turns the losses of samples into one number, and into its slope, which weighs the samples.

Boosters and mixtures ask a risk for two things, and a new risk needs no more (subclass ``Risk``)::

    value(losses, sample_weight=None)        -> float, convex in the losses
    subgradient(losses, sample_weight=None)  -> its slope, one entry for each sample

For all but ``MeanVariance`` the subgradient is the worst of a set of distributions around the samples' own, and the
value is ``subgradient @ losses``: an upper bound on the mean loss under every distribution of the set.

>>> from counterpoise.theory.risks import CVaR, EmpiricalLikelihood, Mean
>>> losses = [0.0, 0.0, 1.0, 3.0]
>>> risks = (Mean(), EmpiricalLikelihood(0.05), CVaR(0.5), 0.5 * Mean() + 0.5 * CVaR(0.5))
>>> [round(risk.value(losses), 3) for risk in risks]
[1.0, 1.414, 2.0, 1.5]

What a risk is: one convex number from the losses of samples, and its slope; risks can be scaled and added.

Mean and variance of exponential losses: the risk of VadaBoost.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import ClassVar, NamedTuple

import numpy as np

from counterpoise._base.checks import (
    check_alpha,
    check_choice,
    check_confidence,
    check_loss_vector,
    check_number,
    check_penalty,
    check_positive,
    check_sample_weight,
    check_vector,
)
from counterpoise._base.types import ArrayLike, BoolArray, FloatArray, IntArray
from counterpoise.solvers.worst_case import check_radius, worst_case_weights
from counterpoise.theory.guarantees import calibrated_radius


class RiskRows(NamedTuple):
    """The rows that a risk is bound to at fit: how many they count for, of how many models, in which groups."""

    n_samples: float
    n_models: int
    group_codes: Callable[[tuple[str, ...]], IntArray]  # for the names of columns; none: of all columns


class Risk(ABC):
    """One number from the losses of samples, convex in them. Subclass it for a risk of your own.

    ``minimize_risk`` and everything that chooses a mixture use the two methods, and refuse a risk that turns out not to
    be convex. ``0.5 * Mean() + 0.5 * CVaR(0.1)`` is a risk again.
    """

    # Whether the value is always ``subgradient @ losses``: then it need not be computed apart.
    is_worst_case: bool = False
    # Whether only losses and their weights count, not which rows have them: then equal rows can be merged.
    is_law_invariant: bool = False
    # Alpha where the risk is a CVaR: then faster ways are open.
    tail_fraction: float | None = None
    # The scale of the risk of losses between 0 and 1, which tolerances are parts of: 1, times a factor.
    size: float = 1.0

    @abstractmethod
    def value(self, losses: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the risk of the losses."""

    @abstractmethod
    def subgradient(self, losses: ArrayLike, sample_weight: ArrayLike | None = None) -> FloatArray:
        """Return a slope: ``value(losses) + subgradient @ (others - losses)`` is at most ``value(others)``."""

    def bind(self, rows: RiskRows) -> "Risk":  # noqa: ARG002 - for those that depend on the rows
        """Return the risk with what depends on the rows filled in: groups, a calibrated radius."""
        return self

    def __mul__(self, factor: float) -> "Risk":
        factor = check_number(factor, "The factor of a risk", "(0, inf)")
        return WeightedSum(tuple((factor * own, risk) for own, risk in _parts(self)))

    __rmul__ = __mul__

    def __add__(self, other: "Risk") -> "Risk":
        if not isinstance(other, Risk):
            return NotImplemented
        return WeightedSum((*_parts(self), *_parts(other)))


class WorstCase(Risk):
    """Base of risks that are the mean loss under the worst of a set of weights: the subgradient is those weights."""

    is_worst_case = True

    def value(self, losses: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return ``subgradient(losses) @ losses``."""
        return float(self.subgradient(losses, sample_weight) @ np.asarray(losses, dtype=np.float64))


@dataclass(frozen=True)
class WeightedSum(Risk):
    """Risks with their factors, added up."""

    parts: tuple[tuple[float, Risk], ...]

    @property
    def is_worst_case(self) -> bool:  # type: ignore[override]
        """Return whether all parts are."""
        return all(risk.is_worst_case for _, risk in self.parts)

    @property
    def is_law_invariant(self) -> bool:  # type: ignore[override]
        """Return whether all parts are."""
        return all(risk.is_law_invariant for _, risk in self.parts)

    @property
    def size(self) -> float:  # type: ignore[override]
        """Return the sum of the sizes."""
        return sum(factor * risk.size for factor, risk in self.parts)

    def value(self, losses: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the sum of the values."""
        return sum(factor * risk.value(losses, sample_weight) for factor, risk in self.parts)

    def subgradient(self, losses: ArrayLike, sample_weight: ArrayLike | None = None) -> FloatArray:
        """Return the sum of the subgradients."""
        return np.asarray(sum(factor * risk.subgradient(losses, sample_weight) for factor, risk in self.parts))

    def bind(self, rows: RiskRows) -> Risk:
        """Bind each part."""
        return WeightedSum(tuple((factor, risk.bind(rows)) for factor, risk in self.parts))

    def __repr__(self) -> str:
        return " + ".join(f"{factor!r} * {risk!r}" for factor, risk in self.parts)


def _parts(risk: Risk) -> tuple[tuple[float, Risk], ...]:
    return risk.parts if isinstance(risk, WeightedSum) else ((1.0, risk),)


@dataclass(frozen=True)
class MeanVariance(Risk):
    """Mean and variance of the exponential loss, as VadaBoost weighs them (Shivaswamy and Jebara 2011).

    Its value is their cost (3) over n^2, ``mean^2 + penalty * variance``: convex and quadratic in the losses, so the
    subgradient is its slope and no distribution. ``margin_weights`` are the ``u_i`` of their Algorithm 2 scaled to sum
    to 1, for exponential losses ``e_i = exp(-y_i f(x_i))``: how fast the cost falls as the *margin* of a sample rises.

    Parameters
    ----------
    penalty : float in [0, 1]
        Weight of the variance beside the squared mean.

    Examples
    --------
    >>> from counterpoise.theory.risks import MeanVariance
    >>> risk = MeanVariance(0.5)
    >>> risk.value([1.0, 1.0, 4.0]), risk.subgradient([1.0, 1.0, 4.0]).tolist()
    (5.0, [1.0, 1.0, 2.0])
    >>> risk.margin_weights([1.0, 1.0, 4.0]).round(3).tolist()
    [0.1, 0.1, 0.8]
    """

    penalty: float
    is_law_invariant = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "penalty", check_penalty(self.penalty))

    def subgradient(self, losses: ArrayLike, sample_weight: ArrayLike | None = None) -> FloatArray:
        """Return ``2 q_i (mean + penalty (loss_i - mean))`` for the samples' own weights q."""
        vector, base = _check_losses(losses, sample_weight)
        mean = float(base @ vector)
        return np.asarray(2.0 * base * (mean + self.penalty * (vector - mean)))

    def margin_weights(self, losses: ArrayLike, sample_weight: ArrayLike | None = None) -> FloatArray:
        """Return ``u_i``, which is ``penalty w_i^2 / q_i + (1 - penalty) w_i``, scaled to sum to 1.

        The ``w_i`` are the losses times the samples' own weights q, scaled to sum to 1; ``1 / q_i`` is n for equal q.
        """
        slopes = self._margin_slopes(*_scale_losses(losses, sample_weight))
        return np.asarray(slopes / slopes.sum())

    def value(self, losses: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return ``mean^2 + penalty * variance``: cost (3) over n^2, under the samples' own weights."""
        vector, base = _check_losses(losses, sample_weight)
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
        new_losses, base = _scale_losses(losses, sample_weight)
        new_losses = new_losses * np.exp(np.where(_flags(wrong, new_losses.size), vote, -vote))
        square = float((new_losses[base > 0] ** 2 / base[base > 0]).sum())
        return (1.0 - self.penalty) * float(new_losses.sum()) ** 2 + self.penalty * square

    def bound(self, losses: ArrayLike, wrong: ArrayLike, vote: float, sample_weight: ArrayLike | None = None) -> float:
        """Return U of eq. (5): at least ``step_cost`` at every vote, and equal to it at 0 (Theorem 3)."""
        slopes = self._margin_slopes(*_scale_losses(losses, sample_weight))
        return float(slopes @ np.exp(np.where(_flags(wrong, slopes.size), 2.0 * vote, -2.0 * vote)))

    def _margin_slopes(self, scaled: FloatArray, base: FloatArray) -> FloatArray:
        squares = np.divide(scaled**2, base, out=np.zeros(base.size), where=base > 0)
        return np.asarray(self.penalty * squares + (1.0 - self.penalty) * scaled)


def _flags(wrong: ArrayLike, n_samples: int) -> BoolArray:
    numbers = check_vector(wrong, "wrong", n_samples, "true for each sample that the model is wrong on")
    return np.asarray(numbers != 0.0)


def _check_losses(losses: ArrayLike, sample_weight: ArrayLike | None) -> tuple[FloatArray, FloatArray]:
    """Return the losses, and the samples' own weights on the simplex."""
    vector = check_loss_vector(losses)
    least, n_samples = float(vector.min()), vector.size
    if least < 0:
        raise ValueError(f"losses must not be negative, as exponential losses are not; got {least!r}.")
    mass = check_sample_weight(sample_weight, n_samples)
    return vector, np.full(n_samples, 1.0 / n_samples) if mass is None else mass / mass.sum()


def _scale_losses(losses: ArrayLike, sample_weight: ArrayLike | None) -> tuple[FloatArray, FloatArray]:
    """Return the losses times the samples' own weights, scaled to sum to 1, and those weights."""
    vector, base = _check_losses(losses, sample_weight)
    largest = float(vector[base > 0].max())
    if largest == 0.0:
        return base.copy(), base
    share = base * (np.minimum(vector, largest) / largest)  # one without weight may be larger, and counts for nothing
    return np.asarray(share / share.sum()), base


__all__ = [
    "KL",
    "CVaR",
    "ChiSquare",
    "EmpiricalLikelihood",
    "Mean",
    "MeanVariance",
    "Risk",
    "RiskRows",
    "WorstCase",
    "WorstGroup",
]

CALIBRATED = "calibrated"


@dataclass(frozen=True)
class Mean(WorstCase):
    """The mean loss; its weights are the samples' own.

    Examples
    --------
    >>> from counterpoise.theory.risks import Mean
    >>> Mean().subgradient([5.0, 1.0], sample_weight=[3, 1]).tolist()
    [0.75, 0.25]
    """

    is_law_invariant = True
    tail_fraction = 1.0  # all samples

    def subgradient(self, losses: ArrayLike, sample_weight: ArrayLike | None = None) -> FloatArray:
        """Return the samples' own weights."""
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
    >>> CVaR(0.5).subgradient([0.0, 1.0, 3.0]).round(3).tolist()
    [0.0, 0.333, 0.667]
    """

    alpha: float
    is_law_invariant = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", check_alpha(self.alpha))  # a plain float, whose text can be read back

    @property
    def tail_fraction(self) -> float:  # type: ignore[override]
        """Return ``alpha``."""
        return self.alpha

    def subgradient(self, losses: ArrayLike, sample_weight: ArrayLike | None = None) -> FloatArray:
        """Return equal weights on the worst samples."""
        return worst_case_weights(losses, -math.log(self.alpha), divergence="cvar", sample_weight=sample_weight)


@dataclass(frozen=True)
class WorstGroup(WorstCase):
    """The mean loss of the group for which it is largest.

    Parameters
    ----------
    columns : str or tuple of str, default=()
        Columns of ``sensitive_features`` whose values together make the groups; none: all of them.

    Examples
    --------
    >>> import counterpoise as cp
    >>> from counterpoise.theory.risks import WorstGroup
    >>> cp.MixtureClassifier([], objective=WorstGroup("sex")).objective
    WorstGroup(columns='sex')
    """

    columns: str | tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.columns, (str, tuple, list)) or not all(isinstance(name, str) for name in self.columns):
            raise ValueError(f"columns must be the name of a column, or a tuple of names; got {self.columns!r}.")
        if not isinstance(self.columns, str):
            object.__setattr__(self, "columns", tuple(self.columns))  # a list would not be equal to it, nor hashed

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the columns."""
        return (self.columns,) if isinstance(self.columns, str) else tuple(self.columns)

    def bind(self, rows: RiskRows) -> Risk:
        """Return the risk with the group of each row."""
        return WorstOfGroups(self, rows.group_codes(self.names))

    def subgradient(self, losses: ArrayLike, sample_weight: ArrayLike | None = None) -> FloatArray:  # noqa: ARG002
        """Refuse: which row is in which group is known at fit."""
        raise ValueError(f"{self!r} needs the groups of the rows. Pass sensitive_features to fit.")


@dataclass(frozen=True, eq=False, repr=False)
class WorstOfGroups(WorstCase):
    """``WorstGroup`` for rows whose groups are known."""

    unbound: WorstGroup
    codes: IntArray

    def __repr__(self) -> str:
        return repr(self.unbound)

    def subgradient(self, losses: ArrayLike, sample_weight: ArrayLike | None = None) -> FloatArray:
        """Return the own weights of the samples of the worst group, the first of equals, scaled to sum to 1."""
        vector = check_loss_vector(losses)
        mass = check_sample_weight(sample_weight, vector.size)
        mass = np.ones(vector.size) if mass is None else mass
        largest = float(np.abs(vector).max()) or 1.0  # by which losses are divided: their sum may be above all floats
        totals = np.bincount(self.codes, mass)
        sums = np.bincount(self.codes, mass * (vector / largest))
        means = np.divide(sums, totals, out=np.full(totals.size, -np.inf), where=totals > 0)
        worst = int(means.argmax())
        return np.asarray(np.where(self.codes == worst, mass / totals[worst], 0.0))


@dataclass(frozen=True)
class _Ball(WorstCase):
    """The largest mean loss under weights at most ``radius`` from the samples' own."""

    radius: float | str
    confidence: float = 0.9
    degrees_of_freedom: float | None = None
    divergence: ClassVar[str]
    is_law_invariant = True

    def __post_init__(self) -> None:
        if isinstance(self.radius, str):
            check_choice(self.radius, "radius, where it is a word,", (CALIBRATED,))
        else:
            object.__setattr__(self, "radius", check_radius(self.radius))
        object.__setattr__(self, "confidence", check_confidence(self.confidence))
        if self.degrees_of_freedom is not None:
            degrees = check_positive(self.degrees_of_freedom, "degrees_of_freedom")
            object.__setattr__(self, "degrees_of_freedom", degrees)

    def bind(self, rows: RiskRows) -> Risk:
        """Return the risk with its radius."""
        if not isinstance(self.radius, str):
            return self
        degrees = self.degrees_of_freedom or max(rows.n_models - 1, 1)
        return replace(self, radius=calibrated_radius(rows.n_samples, self.confidence, degrees))

    def subgradient(self, losses: ArrayLike, sample_weight: ArrayLike | None = None) -> FloatArray:
        """Return the worst weights in the ball."""
        if isinstance(self.radius, str):
            raise ValueError(f"{self!r} computes its radius from the rows at fit. Pass a number.")  # noqa: TRY004
        return worst_case_weights(losses, self.radius, divergence=self.divergence, sample_weight=sample_weight)

    def __repr__(self) -> str:
        parameters = [
            (one.name, getattr(self, one.name)) for one in fields(self) if getattr(self, one.name) != one.default
        ]
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in parameters)})"


@dataclass(frozen=True, repr=False)
class EmpiricalLikelihood(_Ball):
    """The largest mean loss under weights of divergence ``sum q_i log(q_i / w_i)`` up to ``radius``.

    The ball of DRO-Boosting (Blanchet et al.).

    Parameters
    ----------
    radius : float >= 0, or "calibrated"
        Size of the ball; 0 is the mean. Calibrated: ``guarantees.calibrated_radius`` of the rows, at fit, a heuristic
        for mixtures.
    confidence : float in (0, 1), default=0.9
        Probability wanted of a calibrated ball.
    degrees_of_freedom : float > 0, optional
        Dimension of what is chosen, for a calibrated ball; that of a mixture is the number of models less one.

    Examples
    --------
    >>> from counterpoise.theory.risks import EmpiricalLikelihood
    >>> EmpiricalLikelihood(0.1).subgradient([0.0, 1.0, 3.0]).round(3).tolist()
    [0.198, 0.252, 0.55]
    """

    divergence: ClassVar[str] = "empirical-likelihood"


@dataclass(frozen=True, repr=False)
class KL(_Ball):
    """The largest mean loss under weights of divergence ``sum w_i log(w_i / q_i)`` up to ``radius``.

    Parameters
    ----------
    radius, confidence, degrees_of_freedom
        As for ``EmpiricalLikelihood``.

    Examples
    --------
    >>> from counterpoise.theory.risks import KL
    >>> KL(0.1).subgradient([0.0, 1.0, 3.0]).round(3).tolist()
    [0.188, 0.268, 0.544]
    """

    divergence: ClassVar[str] = "kl"


@dataclass(frozen=True, repr=False)
class ChiSquare(_Ball):
    """The largest mean loss under weights of divergence ``sum q_i (w_i / q_i - 1)^2 / 2`` up to ``radius``.

    While no weight is 0 the value is ``mean + sqrt(2 radius variance)``.

    Parameters
    ----------
    radius, confidence, degrees_of_freedom
        As for ``EmpiricalLikelihood``.

    Examples
    --------
    >>> from counterpoise.theory.risks import ChiSquare
    >>> ChiSquare(0.1).subgradient([0.0, 1.0, 3.0]).round(3).tolist()
    [0.174, 0.293, 0.533]
    """

    divergence: ClassVar[str] = "chi-square"
