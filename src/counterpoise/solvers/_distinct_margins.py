"""Margins of models on samples, of which many are alike."""

from typing import NamedTuple

import numpy as np

from counterpoise._base.checks import as_numbers, check_sample_weight, value_range
from counterpoise._base.types import AnyArray, ArrayLike, FloatArray, IntArray

_MATRIX = 2  # dimensions
_NO_WEIGHT = 1e-100  # part of all sample weight below which a sample counts as having none: quotients stay finite


class DistinctMargins(NamedTuple):
    """The margins, and what is left of them where equal models and equal samples count as one.

    AdaBoost finds the same stump again and again, and stumps tell few samples apart.
    """

    margins: FloatArray
    shares: FloatArray  # of the samples, on the simplex
    distinct: FloatArray  # margins of the distinct models on the distinct samples of weight above zero
    masses: FloatArray  # of the distinct samples
    live: IntArray  # samples of weight above zero ...
    rows: IntArray  # ... and which of the distinct ones each is
    columns: IntArray  # which of the distinct models each is

    def spread(self, multipliers: FloatArray) -> FloatArray:
        """Return multipliers of all samples: equal samples share in proportion to their weights."""
        each = np.zeros(self.shares.size)
        each[self.live] = multipliers[self.rows] * self.shares[self.live] / self.masses[self.rows]
        return each


def distinct_margins(margins: ArrayLike, sample_weight: ArrayLike | None) -> DistinctMargins:
    """Return margins after a check, with equal models and equal samples merged."""
    matrix = as_numbers(margins, "margins")
    if matrix.ndim != _MATRIX or matrix.size == 0:
        raise ValueError(
            "margins must have shape (n_samples, n_models), with at least one sample and one model; "
            f"got shape {matrix.shape}."
        )
    value_range(matrix, "margins")
    mass = check_sample_weight(sample_weight, len(matrix))
    mass = np.ones(len(matrix)) if mass is None else mass
    shares = mass / mass.sum()
    shares[shares < _NO_WEIGHT] = 0.0
    live = np.flatnonzero(shares)
    held = matrix[live]
    first_column, columns = _distinct(held.T)
    held = held[:, first_column]
    first_row, rows = _distinct(held)
    distinct = held[first_row].astype(np.float64)
    masses = np.bincount(rows, weights=shares[live]).astype(np.float64)
    return DistinctMargins(matrix.astype(np.float64), shares, distinct, masses, live, rows, columns)


def _distinct(rows: AnyArray) -> tuple[IntArray, IntArray]:
    """Return where each distinct row comes first, and which of them each row is."""
    seen: dict[bytes, int] = {}
    places = np.array([seen.setdefault(row.tobytes(), len(seen)) for row in rows])
    return np.unique(places, return_index=True)[1], places
