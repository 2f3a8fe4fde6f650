"""Probabilities brought in line with the rows of choice: one temperature, and a bias for each class.

``p ** (1 / temperature) * exp(bias)``, scaled to sum to one: the fewest numbers that mend a model which is too sure, or
rare classes that it was taught to call too often. They are kept only where held-out rows are told better by them.
"""

from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import FloatArray, IntArray

_LEAST = 1e-9  # a probability below this counts as this: what was never seen is not impossible
_N_FOLDS = 3
_MOST_ROWS = 8_000  # that the numbers are found on: they are few
_SURELY = 1.0  # standard errors by which held-out rows must be told better
_PULL = 1e-3  # towards no change, in units of the mean loss: a class without rows has no bias of its own


class Calibration(NamedTuple):
    """What turns the probabilities that a model tells into those that rules are made of."""

    temperature: float
    biases: FloatArray

    def __call__(self, probabilities: FloatArray) -> FloatArray:
        """Return the probabilities of rows, summing to one.

        Examples
        --------
        >>> import numpy as np
        >>> from counterpoise.mixtures.class_scores.calibration import Calibration
        >>> Calibration(2.0, np.zeros(2))(np.array([[0.9, 0.1]])).round(3).tolist()
        [[0.75, 0.25]]
        """
        if self.is_none:
            return probabilities
        return _softmax(_logs(probabilities) / self.temperature + self.biases)

    @property
    def is_none(self) -> bool:
        """Tell whether nothing is changed."""
        return self.temperature == 1.0 and not self.biases.any()

    def check_loaded(self) -> None:
        """Check what came from a file."""
        if type(self.temperature) is not float or not self.temperature > 0 or not np.isfinite(self.biases).all():
            raise ValueError("its temperature or biases are out of range")


def no_calibration(n_classes: int) -> Calibration:
    """Return what changes nothing."""
    return Calibration(1.0, np.zeros(n_classes))


def calibrated(probabilities: FloatArray, codes: IntArray, mass: FloatArray) -> Calibration:
    """Return the calibration of least log loss on rows, or none where held-out rows are not told better by one.

    Parameters
    ----------
    probabilities : array of shape (n_rows, n_classes)
    codes : array of shape (n_rows,)
        The class of each row.
    mass : array of shape (n_rows,)
        Weights of the rows.
    """
    nothing, rows = no_calibration(probabilities.shape[1]), _some_rows(mass)
    logs, codes, mass = _logs(probabilities[rows]), codes[rows], mass[rows]
    folds = np.random.default_rng(rows.size).permutation(rows.size) % _N_FOLDS
    gained = np.zeros(rows.size)
    for fold in range(_N_FOLDS):
        inside = folds == fold
        if not (0 < inside.sum() < rows.size):
            return nothing
        found = _fitted(logs[~inside], codes[~inside], mass[~inside])
        gained[inside] = _row_losses(logs[inside], codes[inside], nothing) - _row_losses(
            logs[inside], codes[inside], found
        )
    mean = np.average(gained, weights=mass)
    error = np.sqrt(mass**2 @ (gained - mean) ** 2) / mass.sum()
    return _fitted(logs, codes, mass) if mean > _SURELY * error else nothing


def _some_rows(mass: FloatArray) -> IntArray:
    rows = np.flatnonzero(mass > 0)
    return rows if rows.size <= _MOST_ROWS else np.random.default_rng(0).permutation(rows)[:_MOST_ROWS]


def _fitted(logs: FloatArray, codes: IntArray, mass: FloatArray) -> Calibration:
    """Return the calibration of least weighted log loss."""
    from scipy.optimize import minimize  # noqa: PLC0415 - slow to import

    n_classes, share = logs.shape[1], mass / mass.sum()
    truth = np.zeros(logs.shape)
    truth[np.arange(len(codes)), codes] = share

    def loss(point: FloatArray) -> tuple[float, FloatArray]:
        raw = logs * point[0] + point[1:]
        told = _softmax(raw)
        excess = told * share[:, None] - truth
        value = -float((truth * np.log(np.maximum(told, _LEAST))).sum())
        moved = point - start
        slope = np.append((excess * logs).sum(), excess.sum(axis=0))
        return value + _PULL * float(moved @ moved), slope + 2 * _PULL * moved

    start = np.append(1.0, np.zeros(n_classes))
    bounds: list[Any] = [(0.05, 20.0), *[(-10.0, 10.0)] * n_classes]
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 50})
    return Calibration(float(1.0 / found.x[0]), np.asarray(found.x[1:], dtype=np.float64))


def _row_losses(logs: FloatArray, codes: IntArray, one: Calibration) -> FloatArray:
    told = _softmax(logs / one.temperature + one.biases)
    return np.asarray(-np.log(np.maximum(told[np.arange(len(codes)), codes], _LEAST)))


def _logs(probabilities: FloatArray) -> FloatArray:
    return np.asarray(np.log(np.maximum(probabilities, _LEAST)))


def _softmax(raw: FloatArray) -> FloatArray:
    powers = np.exp(raw - raw.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))
