"""Synthetic problems, of which the truth about every model is known.

Two are Breiman's: L. Breiman, "Bias, variance, and arcing classifiers", technical report 460, Berkeley 1996; the
waveforms are from Breiman, Friedman, Olshen and Stone, "Classification and regression trees", 1984. Classes are equally
likely. Breiman counts classes from 1; labels here start at 0. The third is a made-up population of people who ask for
loans.
"""

from typing import Any

import numpy as np

from counterpoise._base.checks import check_count
from counterpoise._base.types import BoolArray, FloatArray, IntArray

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
    waves = np.maximum(6.0 - np.abs(np.arange(1, _WAVE_FEATURES + 1) - np.array([[11], [15], [7]])), 0.0)
    first, second = waves[_WAVES_OF_CLASS[y]].transpose(1, 0, 2)
    share = rng.random((len(y), 1))
    return share * first + (1.0 - share) * second + rng.standard_normal(first.shape), y


_JOBS = ("clerk", "craft", "driver", "manager", "nurse", "student")
_REGIONS = ("centre", "north", "south", "west")
_JOB_RISK = np.array([0.0, 0.2, 0.5, -0.5, -0.2, 0.9])
_REGION_RISK = np.array([-0.1, 0.0, 0.3, 0.0])
_UNKNOWN_SAVINGS = 0.12  # part of the people who do not say
_LAST_YEAR = -0.15  # the log odds from which the deployed model refused


def loans(n_samples: int, *, random_state: Any) -> tuple[Any, FloatArray]:
    """Draw people who apply for a loan, whether they defaulted, and the probability of it.

    Women earn less for the same work here, so a model that uses income refuses more of the women who would have
    paid. ``last_year`` are the predictions of the deployed model, a scorecard of few columns. About a quarter default.

    Parameters
    ----------
    n_samples : int
        Number of rows, at least 1.
    random_state : int, numpy Generator or None
        Where the randomness comes from; an int makes the draw repeatable.

    Returns
    -------
    frame : DataFrame
        Numbers, two columns of categories, missing values in ``savings``, the group ``sex``, the decisions
        ``last_year``, and the label ``default``, each "yes" or "no".
    chance : array of shape (n_samples,)
        The true probability that each of them defaults: no model can do better.

    Examples
    --------
    >>> from counterpoise.datasets import loans
    >>> frame, chance = loans(40_000, random_state=0)
    >>> frame.shape, round(float((frame["default"] == "yes").mean()), 2)
    ((40000, 11), 0.25)
    >>> best = (frame["default"] == "yes") != (chance > 0.5)
    >>> round(float(best.mean()), 2)
    0.14
    """
    import pandas as pd  # noqa: PLC0415 - heavy, and optional

    check_count(n_samples, "n_samples", 1)
    rng = np.random.default_rng(random_state)
    is_woman = rng.random(n_samples) < 0.5  # noqa: PLR2004
    numbers = _numbers(rng, n_samples, is_woman)
    job, region = rng.integers(len(_JOBS), size=n_samples), rng.integers(len(_REGIONS), size=n_samples)
    odds = _odds(numbers) + _JOB_RISK[job] + _REGION_RISK[region]
    chance = 1.0 / (1.0 + np.exp(-odds))
    defaults = rng.random(n_samples) < chance
    numbers["savings"][rng.random(n_samples) < _UNKNOWN_SAVINGS] = np.nan
    answers = {"last_year": _scorecard(numbers) > _LAST_YEAR, "default": defaults}
    columns = {name: np.round(column, 2) for name, column in numbers.items()}
    columns |= {"job": np.array(_JOBS)[job], "region": np.array(_REGIONS)[region]}
    columns |= {"sex": np.where(is_woman, "F", "M")}
    return pd.DataFrame(columns | {name: np.where(one, "yes", "no") for name, one in answers.items()}), chance


def _numbers(rng: np.random.Generator, n_samples: int, is_woman: BoolArray) -> dict[str, FloatArray]:
    age = rng.uniform(21, 72, n_samples)
    income = np.exp(7.6 + 0.35 * rng.normal(size=n_samples) + 0.006 * (age - 45) - 0.35 * is_woman)
    return {
        "age": age,
        "income": income,
        "savings": np.exp(7.0 + 1.1 * rng.normal(size=n_samples) + 0.02 * (age - 45)),
        "amount": np.exp(9.2 + 0.6 * rng.normal(size=n_samples)),
        "months": rng.integers(1, 11, n_samples) * 12.0,
        "late_payments": rng.poisson(0.6, n_samples).astype(np.float64),
    }


def _odds(numbers: dict[str, FloatArray]) -> FloatArray:
    """Return the log odds of default: what is owed each month, what is there, and how both meet."""
    share = numbers["amount"] / numbers["months"] / numbers["income"]
    savings, late = np.log(numbers["savings"]) - 7.0, numbers["late_payments"]
    burden = np.log(share) + 2.2
    return np.asarray(
        -2.9 + 1.9 * burden - 0.8 * savings + 1.4 * late - 1.2 * late * (savings > 1) + 1.5 * (burden > 1) * (late > 0)
    )


def _scorecard(numbers: dict[str, FloatArray]) -> FloatArray:
    """Return the points of the deployed model, which knew income, amount and late payments only."""
    burden = np.log(numbers["amount"] / numbers["income"]) - 1.6
    return np.asarray(-1.5 + 1.2 * burden + 1.1 * numbers["late_payments"] - 0.3 * (numbers["income"] > 2500))  # noqa: PLR2004
