"""Measures of how a classifier does in the tail, and in each group.

The CVaR at level alpha is the average loss over the worst fraction alpha of the samples. Where alpha times the number
of samples is not whole, the sample at the edge counts with its fraction: nothing is floored, so a
classifier with a zero-one loss has a CVaR of exactly ``min(1, error / alpha)``.

A randomized classifier has two tails. ``cvar_loss`` of its error probabilities is the tail of the *expected* losses,
before the draw. Once decisions are drawn, each row is right or wrong, and the tail of the *realised* losses is that of
any classifier with this error: ``realised_cvar``.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.checks import (
    as_numbers,
    check_alpha,
    check_alphas,
    check_choice,
    check_losses,
    check_mixture,
    check_sample_weight,
    value_range,
)
from counterpoise._base.text import text_table
from counterpoise._base.types import AnyArray, ArrayLike, FloatArray, IntArray
from counterpoise.goals.catalogue import needs
from counterpoise.goals.classes import as_labels, resolve_classes
from counterpoise.goals.expressions import Rate, Ratio
from counterpoise.goals.rates import TABLE_METRICS, make_metric, recall
from counterpoise.goals.tables import Table, group_codes
from counterpoise.goals.terms import Dataset, Fraction, fractions, kinds_of
from counterpoise.theory.confidence import few_cells, upper_weighted_mean

_CHUNK = 65_536  # rows multiplied at once, so that no float copy of a byte matrix is made
_ROUNDING = 1e-9  # by which a sum of shares of at most 1 may exceed it
_MOST_BOUNDED = 50  # groups, the largest: an interval takes some milliseconds
_LEVEL = 0.975  # of each end of the interval of an expected rate: together 0.95

__all__ = ["RateRow", "RateTable", "cvar_curve", "cvar_loss", "rate_table", "realised_cvar"]


def cvar_loss(
    losses: ArrayLike, alpha: float, sample_weight: ArrayLike | None = None, *, mixture: ArrayLike | None = None
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
    if mass is not None:
        return float(_curve(scores, np.array([alpha]), mass)[0])
    # By selection, in linear time: ``edge + mean(max(scores - edge, 0)) / alpha``.
    tail = alpha * scores.size
    place = max(scores.size - 1 - int(tail), 0)
    edge = np.partition(scores, place)[place]
    excess = np.maximum(scores - edge, 0.0)
    largest = excess.max() or 1.0  # taken out of the sum, which could overflow
    return float(edge + (excess / largest).sum() / tail * largest)


def cvar_curve(
    losses: ArrayLike, alphas: ArrayLike, sample_weight: ArrayLike | None = None, *, mixture: ArrayLike | None = None
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


def realised_cvar(
    losses: ArrayLike, alphas: ArrayLike, sample_weight: ArrayLike | None = None, *, mixture: ArrayLike | None = None
) -> FloatArray:
    """Return the CVaR of zero-one losses once decisions are drawn: ``min(1, error / alpha)``.

    A mixture spreads its errors, so that no sample is failed for certain *before* the draw. With the key of the draws
    fixed each sample is right or wrong for good, and the losses are those of a deterministic classifier with the same
    error. ``cvar_loss`` of the expected losses is another number.

    Parameters
    ----------
    losses, sample_weight, mixture
        As for ``cvar_loss``: probabilities of an error, from 0 to 1.
    alphas : float or array of shape (n_alphas,)
        Tail fractions in (0, 1].

    Returns
    -------
    array of shape (n_alphas,)
        In expectation over keys; with one key the error on n samples differs from this by chance.

    Examples
    --------
    Half of the samples are failed with probability 0.2. The expected loss of the worst tenth is 0.2; of those who are
    failed once decisions are drawn, a tenth of all, it is 1:

    >>> from counterpoise.metrics import cvar_loss, realised_cvar
    >>> losses = [0.2, 0.2, 0.0, 0.0]
    >>> round(cvar_loss(losses, alpha=0.1), 3), realised_cvar(losses, [0.1, 0.5]).round(3).tolist()
    (0.2, [1.0, 0.2])
    """
    levels = check_alphas(np.atleast_1d(np.asarray(alphas)))
    chances = _sample_losses(losses, mixture)
    if chances.min() < 0 or chances.max() > 1 + _ROUNDING:
        raise ValueError(f"losses must be probabilities of an error; got {chances.min():g} to {chances.max():g}.")
    error = float(np.average(chances, weights=check_sample_weight(sample_weight, chances.size)))
    return np.minimum(error / levels, 1.0)


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


def _curve(scores: FloatArray, alphas: FloatArray, mass: FloatArray) -> FloatArray:
    """Interpolate the total loss of the tail, which is linear in its mass between samples."""
    order = np.argsort(-scores, kind="stable")
    shares = mass[order] / mass.sum()
    reached = np.concatenate([[0.0], np.cumsum(shares)])
    reached[-1] = 1.0
    totals = np.concatenate([[0.0], np.cumsum(shares * scores[order])])
    return np.asarray(np.interp(alphas, reached, totals) / alphas)


@dataclass(frozen=True)
class RateRow:
    """The rates of one group by name, which are attributes too: ``row.recall``.

    A rate is NaN where it has no meaning, such as the recall of a group without positives.
    """

    group: str
    n_samples: int
    n_positives: int | None  # rows labelled positive; None without labels
    rates: dict[str, float]
    trials: dict[str, int | None]  # how many rows a rate is a count out of; None where it is no count, as with weights
    bounds: dict[str, tuple[float, float]] = field(default_factory=dict)  # 95 % intervals of expected rates

    def __getattr__(self, name: str) -> float:
        rates: dict[str, float] = self.__dict__.get("rates", {})
        if name not in rates:
            raise AttributeError(f"The row has no rate {name!r}; it has {', '.join(rates)}.")
        return rates[name]


class RateTable(tuple[RateRow, ...]):
    """One row for all samples, then one for each group; ``print`` shows the columns that have a number."""

    __slots__ = ()

    def __str__(self) -> str:
        lines = [["group", "n_samples", "n_positives", *self[0].rates]]
        lines += [
            [_format_cell(one) for one in (row.group, row.n_samples, row.n_positives, *row.rates.values())]
            for row in self
        ]
        columns = [column for column in zip(*lines, strict=True) if any(text != "-" for text in column[1:])]
        return text_table(list(zip(*columns, strict=True)), "<" + ">" * (len(columns) - 1))


def rate_table(
    predictions: ArrayLike,
    y: ArrayLike | None = None,
    sensitive_features: Any = None,
    *,
    baseline: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    counts: ArrayLike | None = None,
    pos_label: Any = None,
    defer_label: Any = None,
    rates: Sequence[str] | None = None,
    classes: ArrayLike | None = None,
    kind: str = "labels",
) -> RateTable:
    """Return the rates of every group, with counts.

    Parameters
    ----------
    predictions : array of shape (n_samples,)
        Predicted labels. With ``kind="probabilities"`` the probability that the positive class is decided, or with a
        ``defer_label`` two columns, the second the probability that the row is deferred.
    y : array of shape (n_samples,), optional
        Labels; without them only the positive rate and the churn are known.
    sensitive_features : data frame, dict of arrays, or array, optional
        A group is a combination of the values of all columns.
    baseline : array of shape (n_samples,), optional
        The labels that the deployed model predicts, for the churn.
    sample_weight : array of shape (n_samples,), optional
        Non-negative; the rates are then weighted, the counts are not.
    counts : array of shape (n_samples,), optional
        How many rows each stands for, in the place of weights.
    pos_label : label, optional
        The positive class; by default the last of the sorted classes.
    defer_label : label, optional
        What predictions hold for rows that are deferred to a person.
    rates : sequence of str, optional
        Names of metrics of ``counterpoise.goals``. Default: those shown here, with a ``defer_label`` ``defer_rate``,
        and those that were registered.
    classes : array of labels, optional
        All there are, where y does not hold each of them. A prediction that is neither among them, nor in y, nor the
        ``defer_label`` is refused.
    kind : {"labels", "probabilities"}, default="labels"
        What predictions are. Rates of probabilities are expectations over the draws; ``RateRow.bounds`` then holds
        intervals of those that are shares of unweighted rows.

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
    if predictions is None:
        raise ValueError("predictions must hold one prediction for each row; got None.")
    is_drawn = check_choice(kind, "kind", ("labels", "probabilities")) == "probabilities"
    labels = np.asarray(predictions) if is_drawn else as_labels(predictions)
    table = Table(labels, y, sensitive_features, baseline, sample_weight=sample_weight, counts=counts)
    if not is_drawn and labels.shape != (table.n_samples,):
        raise ValueError(f"predictions must be a vector, one prediction for each row; got shape {labels.shape}.")
    options = {"classes": classes, "pos_label": pos_label, "defer_label": defer_label}
    all_classes = resolve_classes([table.y], {} if is_drawn else {"predictions": labels}, **options)
    several = all_classes.several
    if several:
        raise ValueError(
            f"Rates by group need a positive and a negative class; got {len(several)} classes: "
            f"{', '.join(map(repr, several[:10]))}. Make the labels binary, as in y == {several[0]!r}."
        )
    labelled, deployed = (
        None if part is None else all_classes.codes(part, name) == 1
        for name, part in (("y", table.y), ("baseline", table.baseline))
    )
    if is_drawn:
        chances = _answer_chances(labels, table.n_samples, has_deferral=defer_label is not None)
        answer_codes = np.tile(np.arange(chances.shape[1]), (table.n_samples, 1)).T
        kinds = np.stack([kinds_of(answer, labelled, deployed) for answer in answer_codes], axis=1)
    else:
        kinds = kinds_of(all_classes.answers(labels, "predictions"), labelled, deployed)[:, None]
        chances = np.ones((table.n_samples, 1))
    unknown = [part for part, known in (("label", labelled), ("baseline", deployed)) if known is None]
    usual = TABLE_METRICS if defer_label is None else ["defer_rate", *TABLE_METRICS]
    chosen_rates = {name: make_metric(name, Dataset()) for name in (usual if rates is None else rates)}
    codes, groups = group_codes(table)
    n_rows = np.ones(table.n_samples) if table.counts is None else table.counts
    weights, is_weighted = table.weights(), sample_weight is not None
    parts = [_GroupRows(["all"], np.zeros_like(codes), kinds, chances, is_weighted, is_drawn, weights, n_rows)]
    parts += [parts[0]._replace(names=groups, codes=codes)] if groups else []
    return RateTable([row for part in parts for row in part.rows(chosen_rates, unknown)])


def _answer_chances(predictions: AnyArray, n_samples: int, *, has_deferral: bool) -> FloatArray:
    """Return the probability of each answer: negative, positive and, where there is one, deferral."""
    numbers = as_numbers(predictions, "predictions").astype(np.float64)
    if numbers.shape != ((n_samples, 2) if has_deferral else (n_samples,)):
        raise ValueError(
            "predictions must hold the probability of the positive class, and with a defer_label a second column for "
            f"deferral; got shape {numbers.shape}."
        )
    chances = numbers.reshape(n_samples, -1)
    others = 1.0 - chances.sum(axis=1)
    if chances.min() < -_ROUNDING or others.min() < -_ROUNDING:
        raise ValueError("predictions must be probabilities from 0 to 1, of a row together at most 1.")
    return np.asarray(np.clip(np.column_stack([others, chances]), 0.0, 1.0))


class _GroupRows(NamedTuple):
    """Rows by group and kind."""

    names: list[str]
    codes: IntArray
    kinds: IntArray  # (n_rows, n_answers): the kind of a row for each decision
    chances: FloatArray  # (n_rows, n_answers): of that decision
    is_weighted: bool
    is_drawn: bool
    weights: FloatArray
    n_rows: FloatArray  # that each stands for

    def rows(self, chosen_rates: Mapping[str, Rate | Ratio], unknown: Sequence[str]) -> Iterator[RateRow]:
        """Yield the rates of each group."""
        known = {name: not any(needs(rate, part) for part in unknown) for name, rate in chosen_rates.items()}
        nothing = np.full(len(self.names), np.nan)
        rates = {name: self.values(rate) if known[name] else nothing for name, rate in chosen_rates.items()}
        trials = {name: self.trials(rate) if known[name] else None for name, rate in chosen_rates.items()}
        drawn = [rate for rate, counts in trials.items() if counts is not None] if self.is_drawn else []
        bounds = {rate: self.bounds(chosen_rates[rate]) for rate in drawn}
        n_positives = None if "label" in unknown else self.counts(fractions(recall())[0].bottom)
        for place, n_samples in enumerate(self.counts(np.ones(int(self.kinds.max()) + 1))):
            yield RateRow(
                self.names[place],
                n_samples,
                None if n_positives is None else n_positives[place],
                {rate: float(values[place]) for rate, values in rates.items()},
                {rate: None if counts is None else counts[place] for rate, counts in trials.items()},
                {rate: ends[place] for rate, ends in bounds.items()},
            )

    def values(self, rate: Rate | Ratio) -> FloatArray:
        """Return a rate of each group."""
        whole = as_fraction(rate)
        if whole is not None:
            return _divide(self.totals(whole.top), self.totals(whole.bottom))
        if isinstance(rate, Ratio):
            return _divide(self.values(rate.numerator), self.values(rate.denominator))
        parts = [_divide(self.totals(part.top), self.totals(part.bottom)) for part in fractions(rate)]
        return np.asarray(rate.constant + sum(parts))

    def trials(self, rate: Rate | Ratio) -> list[int] | None:
        """Return out of how many rows a rate is a count, where it is one."""
        whole = as_fraction(rate)
        return None if whole is None or self.is_weighted or not whole.is_count else self.counts(whole.bottom)

    def totals(self, values: FloatArray) -> FloatArray:
        """Return the weighted sum of what rows of each kind contribute."""
        return np.asarray(np.bincount(self.codes, self.weights * self.expected(values), len(self.names)))

    def counts(self, values: FloatArray) -> list[int]:
        """Return the number of rows that contribute, in expectation where answers are drawn."""
        inside = self.expected((values > 0).astype(np.float64))
        return [round(n) for n in np.bincount(self.codes, self.n_rows * inside, len(self.names)).tolist()]

    def expected(self, values: FloatArray) -> FloatArray:
        """Return what each row contributes, given what rows of each kind do."""
        return np.asarray((self.chances * values[self.kinds]).sum(axis=1))

    def bounds(self, rate: Rate | Ratio) -> list[tuple[float, float]]:
        """Return the interval of a share of rows in each group, by betting on values from 0 to 1."""
        share = as_fraction(rate)
        assert share is not None  # noqa: S101 - it is a count
        top, bottom = (np.clip(self.expected(side), 0.0, 1.0) for side in share)
        values = np.minimum(np.divide(top, bottom, out=np.zeros(top.size), where=bottom > 0), 1.0)
        intervals = [(math.nan, math.nan)] * len(self.names)
        sizes = np.bincount(self.codes, self.n_rows, len(self.names))
        for place in np.argsort(sizes, kind="stable")[-_MOST_BOUNDED:].tolist():
            here = np.flatnonzero((self.codes == place) & (bottom > 0))
            if here.size:
                cells = few_cells(values[here], bottom[here], (0.0, 1.0), self.n_rows[here])
                low = -upper_weighted_mean(cells.negated(), 1.0 - _LEVEL)
                intervals[place] = (low, upper_weighted_mean(cells, 1.0 - _LEVEL))
        return intervals


def as_fraction(rate: Rate | Ratio) -> Fraction | None:
    """Return a rate or ratio as one share of rows, where it is that."""
    sides = (rate.numerator, rate.denominator) if isinstance(rate, Ratio) else (rate,)
    parts = [fractions(side) for side in sides]
    if any(side.constant for side in sides) or any(len(part) != 1 for part in parts):
        return None
    first, last = parts[0][0], parts[-1][0]
    if not isinstance(rate, Ratio):
        return first
    return Fraction(first.top, last.top) if (first.bottom == last.bottom).all() else None


def _divide(top: FloatArray, bottom: FloatArray) -> FloatArray:
    return np.asarray(np.divide(top, bottom, out=np.full(top.size, np.nan), where=bottom > 0))


def _format_cell(entry: str | float | None) -> str:
    if isinstance(entry, str):
        return entry
    if entry is None or math.isnan(entry):
        return "-"
    return str(entry) if isinstance(entry, int) else f"{entry:.4f}"
