"""A population of people who ask for loans, made up, so that the truth about every model is known."""

from typing import Any

import numpy as np

from counterpoise._base.checks import check_count
from counterpoise._base.types import BoolArray, FloatArray

_JOBS = ("clerk", "craft", "driver", "manager", "nurse", "student")
_REGIONS = ("centre", "north", "south", "west")
_JOB_RISK = np.array([0.0, 0.2, 0.5, -0.5, -0.2, 0.9])
_REGION_RISK = np.array([-0.1, 0.0, 0.3, 0.0])
_UNKNOWN_SAVINGS = 0.12  # part of the people who do not say
_LAST_YEAR = -0.15  # the log odds from which last year's model refused


def loans(n_samples: int, *, random_state: Any) -> tuple[Any, FloatArray]:
    """Draw people who ask for a loan, with what became of it, and the chance that it would.

    Women earn less for the same work here, so a model that looks at income refuses more of those women who would have
    paid. ``last_year`` is what a scorecard of few columns says: the deployed model. About a quarter default.

    Parameters
    ----------
    n_samples : int
        Number of rows, at least 1.
    random_state : int, numpy Generator or None
        Where the randomness comes from; an int makes the draw repeatable.

    Returns
    -------
    frame : DataFrame
        Numbers, two columns of categories, missing values in ``savings``, the group ``sex``, the answers
        ``last_year``, and the label ``default``, each "yes" or "no".
    chance : array of shape (n_samples,)
        How likely each of them defaults: what no model can know better.

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
    said = {"last_year": _scorecard(numbers) > _LAST_YEAR, "default": defaults}
    columns = {name: np.round(column, 2) for name, column in numbers.items()}
    columns |= {"job": np.array(_JOBS)[job], "region": np.array(_REGIONS)[region]}
    columns |= {"sex": np.where(is_woman, "F", "M")}
    return pd.DataFrame(columns | {name: np.where(one, "yes", "no") for name, one in said.items()}), chance


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
    """Return the points of last year's model, which knew income, amount and late payments only."""
    burden = np.log(numbers["amount"] / numbers["income"]) - 1.6
    return np.asarray(-1.5 + 1.2 * burden + 1.1 * numbers["late_payments"] - 0.3 * (numbers["income"] > 2500))  # noqa: PLR2004
