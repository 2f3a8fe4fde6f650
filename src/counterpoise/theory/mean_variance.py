"""Mean and variance of exponential losses: the risk of VadaBoost."""

from dataclasses import dataclass

import numpy as np

from counterpoise._base.checks import check_loss_vector, check_penalty, check_sample_weight, check_vector
from counterpoise._base.types import ArrayLike, BoolArray, FloatArray
from counterpoise.theory.risk_base import Risk


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

    def __post_init__(self) -> None:
        object.__setattr__(self, "penalty", check_penalty(self.penalty))

    @property
    def is_law_invariant(self) -> bool:
        """Return True."""
        return True

    def subgradient(self, losses: ArrayLike, sample_weight: ArrayLike | None = None) -> FloatArray:
        """Return ``2 q_i (mean + penalty (loss_i - mean))`` for the samples' own weights q."""
        vector, base = _checked(losses, sample_weight)
        mean = float(base @ vector)
        return np.asarray(2.0 * base * (mean + self.penalty * (vector - mean)))

    def margin_weights(self, losses: ArrayLike, sample_weight: ArrayLike | None = None) -> FloatArray:
        """Return ``u_i``, which is ``penalty w_i^2 / q_i + (1 - penalty) w_i``, scaled to sum to 1.

        The ``w_i`` are the losses times the samples' own weights q, scaled to sum to 1; ``1 / q_i`` is n for equal q.
        """
        mixed = self._mixed(*_scaled(losses, sample_weight))
        return np.asarray(mixed / mixed.sum())

    def value(self, losses: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
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
    vector = check_loss_vector(losses)
    least, n_samples = float(vector.min()), vector.size
    if least < 0:
        raise ValueError(f"losses must not be negative, as exponential losses are not; got {least!r}.")
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
