"""What the mixture solvers return, and the error for constraints that no mixture meets."""

import math
from typing import NamedTuple

import numpy as np

from counterpoise._base.types import FloatArray

# Constraints hold up to this part of their scale: what is less is rounding, for every solver, search and certificate.
FEASIBLE = 1e-9
# Part of the size of its terms below which the scale of a constraint does not fall: where the terms cancel in every
# model, what is left is their rounding, about 1e-16 of them, and must stay far below ``FEASIBLE``.
_LEAST_SCALE = 1e-4
_FAR = 1e-6  # part of a bound that may set the scale: one that is a million times larger than the row never binds


def constraint_scale(entries: FloatArray, bounds: FloatArray, sizes: FloatArray | None = None) -> FloatArray:
    """Return what ``row @ x <= bound`` is divided by, so that ``FEASIBLE`` means the same for all constraints.

    Parameters
    ----------
    entries : array of shape (n_rows,)
        How large the left side of each constraint can be.
    bounds : array of shape (n_rows,)
    sizes : array of shape (n_rows,), optional
        How large the terms are whose sum or difference each row is. Default: as large as the row.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.solvers.result import constraint_scale
    >>> constraint_scale(np.array([0.3, 1e-16]), np.array([0.2, 0.0]), sizes=np.array([1.0, 2.0]))
    array([3.e-01, 2.e-04])
    """
    scale = np.maximum(entries, np.abs(bounds) * _FAR)
    if sizes is not None:
        scale = np.maximum(scale, _LEAST_SCALE * sizes)
    return np.asarray(np.where(scale > 0, scale, 1.0))


def power_of_two(size: float) -> float:
    """Return the power of two that a size is of, 1 where it is 0: what is divided by it keeps every digit.

    Examples
    --------
    >>> from counterpoise.solvers.result import power_of_two
    >>> power_of_two(7.0), power_of_two(0.3), power_of_two(0.0)
    (4.0, 0.25, 1.0)
    """
    return math.ldexp(1.0, math.frexp(size)[1] - 1) if size > 0 else 1.0


class MixtureSolution(NamedTuple):
    """Both players' strategies and the bounds that they prove on the value.

    ``value`` and ``lower`` are computed from the vectors beside them, not taken from a solver:
    whatever went wrong on the way, the optimum lies between the two.
    """

    mixture: FloatArray  # on models, on the simplex
    weights: FloatArray  # on samples; for a CVaR on the simplex, entries <= cap
    multipliers: FloatArray  # of the constraint rows, >= 0
    value: float  # risk of losses @ mixture: an upper bound
    lower: float  # offset + min over models of weights @ losses (+ multipliers @ rows) - multipliers @ bounds
    n_iter: int
    offset: float = 0.0  # the risk is nowhere below offset + weights @ losses @ mixture; 0 for a CVaR

    @property
    def gap(self) -> float:
        """Return ``value - lower``: the optimum is at most this far below ``value``."""
        return self.value - self.lower

    def in_units(self, shift: float, span: float) -> "MixtureSolution":
        """Return the solution for losses ``shift + span * losses``."""
        value, lower = shift + span * self.value, shift + span * self.lower  # of a CVaR, which moves with the losses
        return self._replace(multipliers=self.multipliers * span, value=value, lower=lower)


class Progress(NamedTuple):
    """What a callback is told after each iteration."""

    n_iter: int
    value: float
    lower: float

    @property
    def gap(self) -> float:
        """Return ``value - lower``."""
        return self.value - self.lower


class InfeasibleRows(ValueError):  # noqa: N818 - named for the state it reports, as InfeasibleGoals is
    """No mixture satisfies ``rows @ mixture <= bounds``.

    The multipliers prove it: every model, hence every mixture, has ``multipliers @ rows @ mixture``
    above ``multipliers @ bounds``.

    Attributes
    ----------
    rows : array of shape (n_conflicting,)
        Indices of the rows that conflict.
    multipliers : array of shape (n_rows,)
        Non-negative, summing to 1, zero on rows that play no part.
    violation : float
        The proof's margin: at least this weighted amount is violated by every mixture.
    """

    __module__ = "counterpoise.solvers"

    def __init__(self, rows: FloatArray, bounds: FloatArray, multipliers: FloatArray) -> None:
        self.multipliers = multipliers
        self.rows = np.flatnonzero(multipliers)
        least = float((multipliers @ rows).min())
        allowed = float(multipliers @ bounds)
        self.violation = least - allowed
        named = ", ".join(f"{row} (multiplier {multipliers[row]:.4g})" for row in self.rows)
        super().__init__(
            f"No mixture satisfies rows @ mixture <= bounds: row {named} together ask for at most "
            f"{allowed:.10g}, but every model has at least {least:.10g}. Relax one of these bounds."
        )
