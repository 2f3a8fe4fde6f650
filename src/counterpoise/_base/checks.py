"""Checks of parameters and arrays, and warnings at the line that called the library.

Every message has one shape: what was expected of which argument, what was got, what to do.
"""

import math
import os
import sys
import warnings
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np

from counterpoise._base.frames import CATEGORY, TEXT, as_array, as_list, columns_of, kind_of
from counterpoise._base.text import shown
from counterpoise._base.types import AnyArray, ArrayLike, FloatArray

_MATRIX = 2  # dimensions
_TINY = 1e-6  # by which a mixture may miss the simplex, whose entries sum to 1: rounding in float32
LEAST_ALPHA = 1e-300  # what is smaller means the same, the worst sample, but 1 / alpha would be infinite
_SEEDS = 2**32  # that a RandomState can start from
EQUAL = 1.0 - 1e-9  # weights that differ by no more than such a factor are equal but for rounding
_CHUNK_BYTES = 1 << 22  # checks walk a large array in pieces of this size, so that they need no memory


_SPOKEN = {"(0, inf)": "above 0", "[0, inf)": "at least 0", "[1, inf)": "at least 1"}


def check_number(value: Any, name: str, interval: str, meaning: str = "") -> float:
    """Return ``value`` as a float after checking that it is a number in an interval such as ``"(0, 1]"``."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    is_beyond = isinstance(value, Integral) and abs(int(value)) >= 1 << 1024  # larger than any float
    if is_number and not is_beyond:
        number = float(value)
        low, high = (float(end) for end in interval[1:-1].split(","))
        is_above = low <= number if interval[0] == "[" else low < number  # NaN lies in no interval
        if is_above and (number <= high if interval[-1] == "]" else number < high):
            return number
    where = f"be finite and {_SPOKEN[interval]}" if interval in _SPOKEN else f"lie in {interval}"
    what = f"be a number {_SPOKEN.get(interval, 'in ' + interval)}"
    condition = ", ".join(filter(None, (where if is_number else what, meaning)))
    raise (ValueError if is_number else TypeError)(f"{name} must {condition}; got {shown(value)}.")


def check_alpha(alpha: Any) -> float:
    """Return ``alpha`` as a float after checking that it is a number in (0, 1]."""
    tail = "the fraction of the samples that form the tail (1: the average of all)"
    return max(check_number(alpha, "alpha", "(0, 1]", tail), LEAST_ALPHA)


def check_alphas(alphas: ArrayLike) -> FloatArray:
    """Return ``alphas`` as a vector after checking each of them."""
    vector = as_numbers(alphas, "alphas")
    if vector.ndim != 1 or vector.size == 0:
        raise ValueError(
            f"alphas must be a non-empty one-dimensional array of tail fractions; got shape {vector.shape}."
        )
    return np.array([check_alpha(float(alpha)) for alpha in vector.tolist()])


def check_positive(value: Any, name: str) -> float:
    """Return ``value`` as a float after checking that it is a finite number above zero."""
    return check_number(value, name, "(0, inf)")


def check_fraction(value: Any, name: str) -> float:
    """Return ``value`` as a float after checking that it is a number in [0, 1)."""
    return check_number(value, name, "[0, 1)")


def check_penalty(value: Any, most: float = 1.0) -> float:
    """Return ``value`` as a float after checking that it is a number in [0, most]."""
    return check_number(value, "penalty", f"[0, {most:g}]", "from the mean alone at 0 to as much variance at 1")


def check_flag(value: object, name: str) -> bool:
    """Return a truth value after checking that it is one."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False; got {shown(value)}.")
    return bool(value)


def check_choice(value: Any, name: str, allowed: tuple[str, ...]) -> str:
    """Return ``value`` after checking that it is one of the allowed words."""
    if not isinstance(value, str) or value not in allowed:
        words = ", ".join(repr(word) for word in allowed)
        raise ValueError(f"{name} must be one of {words}; got {shown(value)}.")
    return value


def check_count(value: Any, name: str, least: int = 1) -> int:
    """Return ``value`` as an int after checking that it is a whole number of at least ``least``."""
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if is_whole and value >= least:
        return int(value)
    kind = "" if is_whole else "a whole number of "
    raise (ValueError if is_whole else TypeError)(f"{name} must be {kind}at least {least}; got {shown(value)}.")


def check_random_state(random_state: Any) -> None:
    """Check that it is None, a seed that all of numpy takes, or a RandomState."""
    if random_state is None or isinstance(random_state, np.random.RandomState):
        return
    is_whole = isinstance(random_state, Integral)
    if not is_whole or not 0 <= random_state < _SEEDS:
        raise (ValueError if is_whole else TypeError)(
            "random_state must be None, a whole number from 0 to 2**32 - 1 or a RandomState; "
            f"got {shown(random_state)}."
        )


def as_numbers(values: ArrayLike, name: str) -> AnyArray:
    """Return ``values`` as a numeric or boolean array, not copied where it is one."""
    if np.ma.is_masked(values):
        raise ValueError(f"{name} must hold a number everywhere; got masked values. Fill them, or leave such rows out.")
    try:
        array = as_array(values)
    except ValueError as error:  # ragged nested sequences
        raise ValueError(f"{name} must be a rectangular array of numbers; got {type(values).__name__}.") from error
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers; got dtype {array.dtype}.")
    return array


def refuse_texts(X: Any, who: Any) -> None:
    """Refuse a data frame with texts where only numbers can be learned from, with advice on how to encode them."""
    texts = [name for name, column in columns_of(X) if _holds_texts(column)]
    if texts:
        name = type(who).__name__
        raise ValueError(
            f"{name} takes numbers; the column {texts[0]!r} holds texts or categories. Encode such columns first: "
            f"make_pipeline(make_column_transformer((OrdinalEncoder(), {texts!r}), remainder='passthrough'), {name}()) "
            "of scikit-learn, or OneHotEncoder where there are few categories; HistogramTree(categorical_features=[0]) "
            "splits such codes by subset. GoalClassifier takes categories as they are."
        )


def _holds_texts(column: Any) -> bool:
    """Return whether a column holds texts that are no numbers, as they are or as categories."""
    is_text = kind_of(column) in (TEXT, CATEGORY)
    return is_text and any(isinstance(value, str) and not _is_number(value) for value in as_list(column.unique()))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def value_range(array: AnyArray, name: str, *, differ: bool = True) -> tuple[float, float]:
    """Return the least and the largest entry after checking that all are finite, by default their difference too."""
    if array.dtype.kind != "f":
        return float(array.min()), float(array.max())
    least, largest = math.inf, -math.inf
    n_pieces = max(1, array.nbytes // _CHUNK_BYTES)
    for piece in np.array_split(array, n_pieces) if array.ndim else [array]:
        low, high = float(piece.min()), float(piece.max())  # both are NaN if any entry is
        if not (math.isfinite(low) and math.isfinite(high)):
            kind = "NaN" if np.isnan(piece).any() else "infinity"
            raise ValueError(f"{name} must be finite everywhere; got {kind}. Drop or impute those entries first.")
        least, largest = min(least, low), max(largest, high)
    if differ and math.isinf(largest - least):
        raise ValueError(
            f"The entries of {name} must differ by less than 1.8e308; got {least!r} to {largest!r}. Scale them first."
        )
    return least, largest


def check_losses(losses: ArrayLike, *, ndim: int | None = 2) -> AnyArray:
    """Return ``losses`` as an array of the wanted dimension; its values are not checked."""
    array = as_numbers(losses, "losses")
    shape = {1: "(n_samples,)", 2: "(n_samples, n_models)", None: "(n_samples,) or (n_samples, n_models)"}[ndim]
    if array.ndim != ndim and not (ndim is None and array.ndim in (1, 2)):
        raise ValueError(f"losses must have shape {shape}; got shape {array.shape}.")
    if array.size == 0:
        raise ValueError(f"losses must hold at least one sample and one model; got shape {array.shape}.")
    return array


def check_loss_vector(losses: ArrayLike) -> FloatArray:
    """Return the finite loss of each sample as a float, not copied where it is one."""
    vector = np.asarray(check_losses(losses, ndim=1), dtype=np.float64)
    value_range(vector, "losses", differ=False)
    return vector


def check_sample_weight(
    sample_weight: ArrayLike | None, n_samples: int, *, are_masses: bool = False
) -> FloatArray | None:
    """Return the sample weights as floats, or None where all samples weigh the same; masses may be negative."""
    if sample_weight is None:
        return None
    vector = check_vector(sample_weight, "sample_weight", n_samples, "one weight for each sample")
    if vector.min() < 0 and not are_masses:
        raise ValueError(f"sample_weight must not be negative; got a weight of {float(vector.min())!r}.")
    if vector.max() <= 0:
        raise ValueError("sample_weight must have at least one weight above zero; got zeros only.")
    return np.asarray(vector / vector.max())  # so that sums of weights of any size stay finite


def check_largest_weight(largest_weight: Any, sample_weight: ArrayLike | None) -> tuple[float, float]:
    """Return the limit on a population's weights and the heaviest weight given, after checking that it is a limit."""
    limit = check_positive(largest_weight, "largest_weight")
    if sample_weight is None:
        raise ValueError(f"largest_weight needs sample_weight; got {limit:g} and no sample_weight. Pass both.")
    weights = np.asarray(sample_weight, dtype=np.float64)
    row = int(weights.argmax())
    heaviest = float(weights[row])
    if limit < EQUAL * heaviest:
        raise ValueError(
            f"largest_weight must be at least as large as every weight of the population; got {limit:g}, but row "
            f"{row} weighs {heaviest:g}. Pass the largest that any row can have."
        )
    return max(limit, heaviest), heaviest


def check_mixture(mixture: ArrayLike, n_models: int, name: str = "mixture") -> FloatArray:
    """Return ``mixture`` as a distribution over the models."""
    vector = check_vector(mixture, name, n_models, "one weight for each model")
    if vector.min() < -_TINY or abs(vector.sum() - 1.0) > _TINY:
        raise ValueError(
            f"{name} must be a distribution over the models: entries >= 0 that sum to 1; "
            f"got a least entry of {float(vector.min())!r} and a sum of {float(vector.sum())!r}."
        )
    return vector


def check_vector(values: ArrayLike, name: str, length: int, meaning: str) -> FloatArray:
    """Return a finite float vector of the given length."""
    array = as_numbers(values, name)
    if array.shape != (length,):
        raise ValueError(f"{name} must have shape ({length},), {meaning}; got shape {array.shape}.")
    vector = array.astype(np.float64)
    value_range(vector, name)
    return vector


def check_rows(
    rows: ArrayLike | None, bounds: ArrayLike | None, n_models: int, row_scale: ArrayLike | None = None
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Return the constraints ``rows @ mixture <= bounds``, empty where none are given, and the scales of the rows."""
    if rows is None and bounds is None:
        return np.empty((0, n_models)), np.empty(0), None
    if rows is None or bounds is None:
        present, missing = ("rows", "bounds") if bounds is None else ("bounds", "rows")
        raise ValueError(
            f"rows and bounds go together, as in rows @ mixture <= bounds; got {present} without {missing}."
        )
    matrix = as_numbers(rows, "rows")
    if matrix.ndim != _MATRIX or matrix.shape[1] != n_models:
        raise ValueError(
            f"rows must have shape (n_rows, {n_models}), one column for each model; got shape {matrix.shape}."
        )
    limits = as_numbers(bounds, "bounds")
    if limits.shape != (matrix.shape[0],):
        raise ValueError(
            f"bounds must have shape ({matrix.shape[0]},), one bound for each row of rows; got shape {limits.shape}."
        )
    if matrix.size and not np.isfinite(matrix).all():
        bad = int(np.flatnonzero(~np.isfinite(matrix).all(axis=1))[0])
        raise ValueError(f"rows must be finite everywhere; row {bad} holds NaN or infinity.")
    if not np.isfinite(limits).all():
        bad = int(np.flatnonzero(~np.isfinite(limits))[0])
        raise ValueError(
            f"bounds must be finite everywhere; bound {bad} is {float(limits[bad])!r}. "
            "Leave out the row of a bound that does not bind."
        )
    scale = None
    if row_scale is not None and len(limits):
        scale = check_vector(row_scale, "row_scale", len(limits), "one scale for each row of rows")
        if not scale.min() > 0:
            raise ValueError(f"row_scale must be positive; got a scale of {float(scale.min())!r}.")
    return matrix.astype(np.float64), limits.astype(np.float64), scale


def check_confidence(confidence: Any, name: str = "confidence") -> float:
    """Return ``confidence`` as a float after checking that it is a number in (0, 1)."""
    return check_number(confidence, name, "(0, 1)", "both ends excluded")


_LIBRARY = f"{Path(__file__).parents[1]}{os.sep}"


def warn_caller(text: str, kind: type[Warning]) -> None:
    """Warn at the last line before the library."""
    frame, level = sys._getframe(), 1  # noqa: SLF001 - as warnings does; skip_file_prefixes is of Python 3.12
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_LIBRARY):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, kind, stacklevel=level)
