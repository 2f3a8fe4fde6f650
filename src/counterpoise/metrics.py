"""Measures of how a classifier does in the tail, and in each group.

The CVaR at level alpha is the average loss over the worst fraction alpha of the samples. Where alpha times the number
of samples is not whole, the sample at the edge counts with its fraction: nothing is floored, so a
classifier with a zero-one loss has a CVaR of exactly ``min(1, error / alpha)``.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.checks import (
    check_alpha,
    check_alphas,
    check_losses,
    check_mixture,
    check_sample_weight,
    value_range,
)
from counterpoise._base.text_table import text_table
from counterpoise._base.types import ArrayLike, BoolArray, FloatArray, IntArray
from counterpoise.goals.classes import is_positive, two_classes
from counterpoise.goals.tables import Table, group_codes

_CHUNK = 65_536  # rows multiplied at once, so that no float copy of a byte matrix is made

__all__ = ["RateRow", "RateTable", "cvar_curve", "cvar_loss", "rate_table"]


def cvar_loss(
    losses: ArrayLike,
    alpha: float,
    sample_weight: ArrayLike | None = None,
    *,
    mixture: ArrayLike | None = None,
) -> float:
    """Return the average loss over the worst fraction ``alpha`` of the samples.

    Parameters
    ----------
    losses : array of shape (n_samples,) or (n_samples, n_models)
        Loss of each sample; or, with ``mixture``, of each model on each sample.
    alpha : float in (0, 1]
        Tail fraction; 1 is the plain average.
    sample_weight : array of shape (n_samples,), optional
        Non-negative; only their ratios matter.
    mixture : array of shape (n_models,), optional
        Distribution over the models; the loss of a sample is then ``losses @ mixture``.

    Returns
    -------
    float

    Examples
    --------
    The worst 40 % of five samples are two of them, the worst 50 % two and a half:

    >>> from counterpoise.metrics import cvar_loss
    >>> losses = [0.1, 0.9, 0.3, 0.5, 0.2]
    >>> round(cvar_loss(losses, alpha=0.4), 3), round(cvar_loss(losses, alpha=0.5), 3)
    (0.7, 0.62)
    """
    alpha = check_alpha(alpha)
    scores = _sample_losses(losses, mixture)
    mass = check_sample_weight(sample_weight, scores.size)
    if mass is None:
        return _equal_weight_cvar(scores, alpha)
    return float(_curve(scores, np.array([alpha]), mass)[0])


def cvar_curve(
    losses: ArrayLike,
    alphas: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    mixture: ArrayLike | None = None,
) -> FloatArray:
    """Return the CVaR at each of many levels, sorting the losses once.

    Parameters
    ----------
    losses, sample_weight, mixture
        As for ``cvar_loss``.
    alphas : array of shape (n_alphas,)
        Tail fractions in (0, 1], in any order.

    Returns
    -------
    array of shape (n_alphas,)
        Falls as alpha rises, down to the average at 1.

    Examples
    --------
    >>> from counterpoise.metrics import cvar_curve
    >>> cvar_curve([0, 0, 0, 1], [0.1, 0.25, 0.5, 1.0]).tolist()
    [1.0, 1.0, 0.5, 0.25]
    """
    levels = check_alphas(alphas)
    scores = _sample_losses(losses, mixture)
    mass = check_sample_weight(sample_weight, scores.size)
    return _curve(scores, levels, np.ones(scores.size) if mass is None else mass)


def _sample_losses(losses: ArrayLike, mixture: ArrayLike | None) -> FloatArray:
    array = check_losses(losses, ndim=None)
    value_range(array, "losses")
    if array.ndim == 1:
        if mixture is not None:
            raise ValueError("mixture needs losses of shape (n_samples, n_models); got a vector of losses.")
        return array.astype(np.float64)
    if mixture is None:
        raise ValueError(
            f"losses of shape {array.shape} need a mixture over the {array.shape[1]} models; "
            "pass mixture=, or the losses of one model."
        )
    shares = check_mixture(mixture, array.shape[1])
    if array.flags.f_contiguous:  # as losses come, a column for each model
        scores = np.zeros(len(array))
        for model in np.flatnonzero(shares):
            scores += shares[model] * array[:, model]
        return scores
    pieces = [array[start : start + _CHUNK] @ shares for start in range(0, len(array), _CHUNK)]
    return np.concatenate(pieces)


def _equal_weight_cvar(scores: FloatArray, alpha: float) -> float:
    """Average by selection, in linear time: ``edge + mean(max(scores - edge, 0)) / alpha``."""
    tail = alpha * scores.size
    place = max(scores.size - 1 - int(tail), 0)
    edge = np.partition(scores, place)[place]
    excess = np.maximum(scores - edge, 0.0)
    largest = excess.max() or 1.0  # taken out of the sum, which could overflow
    return float(edge + (excess / largest).sum() / tail * largest)


def _curve(scores: FloatArray, alphas: FloatArray, mass: FloatArray) -> FloatArray:
    """Interpolate the total loss of the tail, which is linear in its mass between samples."""
    order = np.argsort(-scores, kind="stable")
    shares = mass[order] / mass.sum()
    reached = np.concatenate([[0.0], np.cumsum(shares)])
    reached[-1] = 1.0
    totals = np.concatenate([[0.0], np.cumsum(shares * scores[order])])
    return np.asarray(np.interp(alphas, reached, totals) / alphas)


class RateRow(NamedTuple):
    """The rates of one group; NaN where they have no meaning, such as the recall of a group without positives."""

    group: str
    n_samples: int
    n_positives: int | None  # rows labelled positive; None without labels
    positive_rate: float
    error_rate: float
    recall: float
    false_positive_rate: float
    precision: float
    churn: float


class RateTable(tuple[RateRow, ...]):
    """One row for all samples, then one for each group; ``print`` shows the columns that have a number."""

    __slots__ = ()

    def __str__(self) -> str:
        lines = [list(RateRow._fields), *([_shown(entry) for entry in row] for row in self)]
        columns = [column for column in zip(*lines, strict=True) if any(text != "-" for text in column[1:])]
        return text_table(list(zip(*columns, strict=True)), "<" + ">" * (len(columns) - 1))


def rate_table(
    predictions: ArrayLike,
    y: ArrayLike | None = None,
    sensitive_features: Any = None,
    *,
    baseline: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
) -> RateTable:
    """Return the rates of every group, with counts.

    Parameters
    ----------
    predictions : array of shape (n_samples,)
        Predicted labels.
    y : array of shape (n_samples,), optional
        Labels; without them only the positive rate and the churn are known.
    sensitive_features : data frame, dict of arrays, or array, optional
        A group is a combination of the values of all columns.
    baseline : array of shape (n_samples,), optional
        The labels that the deployed model predicts, for the churn.
    sample_weight : array of shape (n_samples,), optional
        Non-negative; the rates are then weighted, the counts are not.
    pos_label : label, optional
        The positive class; by default the last of the sorted classes.

    Returns
    -------
    RateTable
        One ``RateRow`` for all rows, then one for each group; ``print`` shows a table.

    Examples
    --------
    >>> from counterpoise.metrics import rate_table
    >>> print(rate_table([1, 0, 1, 1], [1, 0, 0, 1], {"sex": ["F", "F", "M", "M"]}))
    group  n_samples  n_positives  positive_rate  error_rate  recall  false_positive_rate  precision
    all            4            2         0.7500      0.2500  1.0000               0.5000     0.6667
    sex=F          2            1         0.5000      0.0000  1.0000               0.0000     1.0000
    sex=M          2            1         1.0000      0.5000  1.0000               1.0000     0.5000
    """
    labels = np.asarray(predictions)
    table = Table(labels, y, sensitive_features, baseline, sample_weight=sample_weight)
    classes = two_classes([labels, table.y, table.baseline], pos_label=pos_label)
    signs = (
        is_positive(labels, classes, "predictions"),
        None if table.y is None else is_positive(table.y, classes, "y"),
        None if table.baseline is None else is_positive(table.baseline, classes, "baseline"),
    )
    codes, groups = group_codes(table)
    whole = np.zeros(table.n_samples, dtype=np.int64)
    weights = table.weights()
    rows = [*_rate_rows(whole, ["all"], weights, *signs)]
    return RateTable([*rows, *_rate_rows(codes, groups, weights, *signs)] if groups else rows)


def _rate_rows(
    codes: IntArray,
    groups: list[str],
    weights: FloatArray,
    predicted: BoolArray,
    labels: BoolArray | None,
    baseline: BoolArray | None,
) -> Iterator[RateRow]:
    everything = np.ones(codes.size, dtype=np.bool_)
    none = np.full(len(groups), np.nan)

    def share(part: BoolArray, whole: BoolArray) -> FloatArray:
        top = np.bincount(codes, weights * (part & whole), minlength=len(groups))
        bottom = np.bincount(codes, weights * whole, minlength=len(groups))
        return np.asarray(np.divide(top, bottom, out=none.copy(), where=bottom > 0))

    by_label = [none] * 4
    if labels is not None:
        wrong = np.logical_xor(predicted, labels)
        by_label = [
            share(wrong, everything),
            share(predicted, labels),
            share(predicted, ~labels),
            share(labels, predicted),
        ]
    changed = none if baseline is None else share(np.logical_xor(predicted, baseline), everything)
    counts = np.bincount(codes, minlength=len(groups)).tolist()
    n_positives = [None] * len(groups) if labels is None else np.bincount(codes[labels], minlength=len(groups)).tolist()
    rates = [column.tolist() for column in (share(predicted, everything), *by_label, changed)]
    for group, *entries in zip(groups, counts, n_positives, *rates, strict=True):
        yield RateRow(group, *entries)


def _shown(entry: str | float | None) -> str:
    if isinstance(entry, str):
        return entry
    if entry is None or math.isnan(entry):
        return "-"
    return str(entry) if isinstance(entry, int) else f"{entry:.4f}"
