"""Breiman's synthetic problems, whose best possible error is known.

L. Breiman, "Bias, variance, and arcing classifiers", technical report 460, Berkeley 1996; the waveforms are from
Breiman, Friedman, Olshen and Stone, "Classification and regression trees", 1984. Classes are equally likely. Breiman
counts classes from 1; labels here start at 0.
"""

from typing import Any

import numpy as np

from counterpoise._base.checks import check_count
from counterpoise._base.types import FloatArray, IntArray

_NORM_FEATURES = 20
_WAVE_FEATURES = 21
_WAVES_OF_CLASS = np.array([[0, 1], [0, 2], [1, 2]])  # which two of the three waves each class mixes
_CLASS_NUMBERS = (2, 3)


def twonorm(n_samples: int, *, random_state: Any) -> tuple[FloatArray, IntArray]:
    """Draw from two normal clouds that a plane separates best.

    Class 0 is ``N((a, ..., a), I)`` and class 1 is ``N((-a, ..., -a), I)`` in 20 dimensions with ``a = 2 / sqrt(20)``.
    The best classifier is the sign of the sum of the features; its error is ``Phi(-2)``, 2.3 %.

    Parameters
    ----------
    n_samples : int
        Number of rows, at least 1.
    random_state : int, numpy Generator or None
        Where the randomness comes from; an int makes the draw repeatable.

    Returns
    -------
    X : array of shape (n_samples, 20)
    y : array of shape (n_samples,)
        0 or 1.

    Examples
    --------
    >>> from counterpoise.datasets import twonorm
    >>> X, y = twonorm(10_000, random_state=0)
    >>> X.shape, bool(abs(((X.sum(axis=1) < 0) != y).mean() - 0.023) < 0.005)
    ((10000, 20), True)
    """
    noise, y = _two_clouds(n_samples, random_state)
    centre = 2.0 / np.sqrt(_NORM_FEATURES)
    return noise + np.where(y == 0, centre, -centre)[:, None], y


def ringnorm(n_samples: int, *, random_state: Any) -> tuple[FloatArray, IntArray]:
    """Draw from a small normal cloud inside a wide one; a sphere separates them best.

    Class 0 is ``N(0, 4 I)`` and class 1 is ``N((a, ..., a), I)`` in 20 dimensions with ``a = 1 / sqrt(20)``. The error
    of the best classifier is 1.5 %; Breiman reports 1.3 %. (The DELVE archive draws with ``a = 2 / sqrt(20)``, for
    which it is 1.2 %.)

    Parameters
    ----------
    n_samples, random_state
        As for ``twonorm``.

    Returns
    -------
    X : array of shape (n_samples, 20)
    y : array of shape (n_samples,)
        0 or 1.

    Examples
    --------
    >>> from counterpoise.datasets import ringnorm
    >>> X, y = ringnorm(10_000, random_state=0)
    >>> round(float(X[y == 0].std()), 1), round(float(X[y == 1].std()), 1)
    (2.0, 1.0)
    """
    noise, y = _two_clouds(n_samples, random_state)
    scale, centre = np.where(y == 0, 2.0, 1.0), np.where(y == 0, 0.0, 1.0 / np.sqrt(_NORM_FEATURES))
    return noise * scale[:, None] + centre[:, None], y


def _two_clouds(n_samples: int, random_state: Any) -> tuple[FloatArray, IntArray]:
    rng = np.random.default_rng(random_state)
    y = rng.integers(2, size=check_count(n_samples, "n_samples"))
    return rng.standard_normal((len(y), _NORM_FEATURES)), y


def waveform(n_samples: int, *, n_classes: int = 3, random_state: Any) -> tuple[FloatArray, IntArray]:
    """Draw noisy mixtures of two out of three triangular waves.

    With ``h1(i) = max(6 - |i - 11|, 0)``, ``h2(i) = h1(i - 4)``, ``h3(i) = h1(i + 4)`` for i = 1, ..., 21 and u
    uniform on [0, 1], a row is ``u ha + (1 - u) hb`` plus standard normal noise, where (ha, hb) is (h1, h2) in class 0,
    (h1, h3) in class 1 and (h2, h3) in class 2. The error of the best classifier is about 14 % with three classes.

    Parameters
    ----------
    n_samples, random_state
        As for ``twonorm``.
    n_classes : {2, 3}, default 3
        With 2 only the first two classes are drawn.

    Returns
    -------
    X : array of shape (n_samples, 21)
    y : array of shape (n_samples,)
        0 to ``n_classes - 1``.

    Examples
    --------
    >>> from counterpoise.datasets import waveform
    >>> X, y = waveform(500, n_classes=2, random_state=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((500, 21), [0, 1])
    """
    if n_classes not in _CLASS_NUMBERS:
        raise ValueError(f"n_classes must be 2 or 3, as there are three waves to mix in pairs; got {n_classes!r}.")
    rng = np.random.default_rng(random_state)
    y = rng.integers(n_classes, size=check_count(n_samples, "n_samples"))
    first, second = _waves()[_WAVES_OF_CLASS[y]].transpose(1, 0, 2)
    share = rng.random((len(y), 1))
    return share * first + (1.0 - share) * second + rng.standard_normal(first.shape), y


def _waves() -> FloatArray:
    """Return the three waves as rows: peaks at 11, 15 and 7."""
    place = np.arange(1, _WAVE_FEATURES + 1)
    peaks = np.array([[11], [15], [7]])
    return np.asarray(np.maximum(6.0 - np.abs(place - peaks), 0.0))
