"""What a risk is: one convex number from the losses of samples, and its slope; risks can be scaled and added."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from counterpoise._base.checks import check_number
from counterpoise._base.types import ArrayLike, FloatArray, IntArray


class RiskRows(NamedTuple):
    """The rows that a risk is bound to at fit: how many they count for, of how many models, in which groups."""

    n_samples: float
    n_models: int
    group_codes: Callable[[tuple[str, ...]], IntArray]  # for the names of columns; none: of all columns


class Risk(ABC):
    """One number from the losses of samples, convex in them. Subclass it for a risk of your own.

    ``minimize_risk`` and everything that chooses a mixture use the two methods, and refuse a risk that is found not to
    be convex. ``0.5 * Mean() + 0.5 * CVaR(0.1)`` is a risk again.
    """

    @property
    def is_worst_case(self) -> bool:
        """Tell whether the value is always ``subgradient @ losses``: then it need not be asked for."""
        return False

    @property
    def is_law_invariant(self) -> bool:
        """Tell whether only losses and their weights count, not which rows have them: then equal rows can be merged."""
        return False

    @property
    def tail_fraction(self) -> float | None:
        """Return alpha where the risk is a CVaR: then faster ways are open."""
        return None

    @property
    def size(self) -> float:
        """Return the scale of the risk of losses between 0 and 1, which tolerances are parts of: 1, times a factor."""
        return 1.0

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

    @property
    def is_worst_case(self) -> bool:
        """Return True."""
        return True

    def value(self, losses: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return ``subgradient(losses) @ losses``."""
        return float(self.subgradient(losses, sample_weight) @ np.asarray(losses, dtype=np.float64))


@dataclass(frozen=True)
class WeightedSum(Risk):
    """Risks with their factors, added up."""

    parts: tuple[tuple[float, Risk], ...]

    @property
    def is_worst_case(self) -> bool:
        """Tell whether all parts are."""
        return all(risk.is_worst_case for _, risk in self.parts)

    @property
    def is_law_invariant(self) -> bool:
        """Tell whether all parts are."""
        return all(risk.is_law_invariant for _, risk in self.parts)

    @property
    def size(self) -> float:
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
