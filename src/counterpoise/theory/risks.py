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
"""

import math
from dataclasses import dataclass, fields, replace
from typing import ClassVar

import numpy as np

from counterpoise._base.checks import (
    LEAST_ALPHA,
    check_alpha,
    check_choice,
    check_confidence,
    check_loss_vector,
    check_positive,
    check_sample_weight,
)
from counterpoise._base.types import ArrayLike, FloatArray, IntArray
from counterpoise.solvers.worst_case import DIVERGENCES, check_radius, worst_case_weights
from counterpoise.theory.guarantees import calibrated_radius
from counterpoise.theory.mean_variance import MeanVariance
from counterpoise.theory.risk_base import Risk, RiskRows, WorstCase

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
    "ball_risk",
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

    @property
    def is_law_invariant(self) -> bool:
        """Return True."""
        return True

    @property
    def tail_fraction(self) -> float:
        """Return 1: all samples."""
        return 1.0

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", check_alpha(self.alpha))  # a plain float, whose text can be read back

    @property
    def is_law_invariant(self) -> bool:
        """Return True."""
        return True

    @property
    def tail_fraction(self) -> float:
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
        raise ValueError(f"{self!r} needs the groups of the rows: it is bound to sensitive_features at fit.")


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

    def __post_init__(self) -> None:
        if isinstance(self.radius, str):
            check_choice(self.radius, "radius, where it is a word,", (CALIBRATED,))
        else:
            object.__setattr__(self, "radius", check_radius(self.radius))
        object.__setattr__(self, "confidence", check_confidence(self.confidence))
        if self.degrees_of_freedom is not None:
            degrees = check_positive(self.degrees_of_freedom, "degrees_of_freedom")
            object.__setattr__(self, "degrees_of_freedom", degrees)

    @property
    def is_law_invariant(self) -> bool:
        """Return True."""
        return True

    def bind(self, rows: RiskRows) -> Risk:
        """Return the risk with its radius."""
        if not isinstance(self.radius, str):
            return self
        degrees = self.degrees_of_freedom or max(rows.n_models - 1, 1)
        return replace(self, radius=calibrated_radius(rows.n_samples, self.confidence, degrees))

    def subgradient(self, losses: ArrayLike, sample_weight: ArrayLike | None = None) -> FloatArray:
        """Return the worst weights in the ball."""
        if isinstance(self.radius, str):
            raise ValueError(f"{self!r} gets its radius from the rows at fit; name a number to use it by itself.")  # noqa: TRY004
        return worst_case_weights(losses, self.radius, divergence=self.divergence, sample_weight=sample_weight)

    def __repr__(self) -> str:
        told = [(one.name, getattr(self, one.name)) for one in fields(self) if getattr(self, one.name) != one.default]
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in told)})"


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
