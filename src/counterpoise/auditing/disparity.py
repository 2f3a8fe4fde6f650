"""Conditional demographic disparity: whether a group has a larger share of the rejected than of the accepted.

The measure of Wachter, Mittelstadt and Russell ("Why fairness cannot be automated", 2021), as SageMaker Clarify reports
it (CDDL of labels, CDDPL of predictions). In each stratum the disparity of a group is its share of the rejected less
its share of the accepted; the strata are averaged with their numbers of rows. Where the group is a part p of a stratum,
of which a part r is accepted, and a part q of the group, this is ``p (r - q) / (r (1 - r))``: it is 0 where the group
is accepted as often as its stratum.

In a stratum where nobody is accepted, or nobody rejected, all are treated alike, and its disparity counts as 0. Clarify
takes the missing share as 0 there, so that a group that is refused with everybody else has a disparity.
"""

from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.text import text_table
from counterpoise._base.types import ArrayLike, BoolArray, IntArray
from counterpoise.goals.classes import as_labels, find_classes
from counterpoise.goals.tables import Table, combine_groups, count_missing

__all__ = ["ConditionalDisparity", "GroupDisparity", "conditional_disparities"]

_MOST_GROUPS, _MOST_STRATA = 100, 10_000
_HEADS = ("group", "rows", "of rejected", "of accepted", "disparity", "conditional", "std. error")
_SHOWN = 10  # strata in a note


class GroupDisparity(NamedTuple):
    """The disparity of one group, over all rows and inside strata."""

    group: str
    n_rows: int
    of_rejected: float  # its share of all rejected rows
    of_accepted: float  # its share of all accepted rows
    disparity: float  # the first share less the second, over all rows
    conditional: float  # the same in each stratum, averaged with the numbers of rows of the strata
    standard_error: float  # of the conditional one, given how many are accepted in each stratum
    by_stratum: dict[str, float]  # the disparity in each stratum


class ConditionalDisparity(NamedTuple):
    """The disparities of all groups; ``print`` shows them."""

    groups: tuple[GroupDisparity, ...]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        lines = [[one.group, f"{one.n_rows}", *(f"{number:.4f}" for number in one[2:7])] for one in self.groups]
        return "\n".join([text_table([list(_HEADS), *lines], "<" + ">" * (len(_HEADS) - 1)), *self.notes])

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {"groups": [one._asdict() for one in self.groups], "notes": list(self.notes)}


def conditional_disparities(
    decisions: ArrayLike, sensitive_features: Any, strata: Any, *, pos_label: Any = None
) -> ConditionalDisparity:
    """Return the conditional demographic disparity of every group: Wachter's, as SageMaker Clarify reports it.

    Parameters
    ----------
    decisions : array of shape (n_samples,)
        The decision about each row, of two classes; for the disparity of labels, these. Each row counts once.
    sensitive_features : data frame, dict of arrays or array
        The columns whose values make groups; of several, their combinations.
    strata : data frame, dict of arrays or array
        The columns whose values make strata; of several, their combinations.
    pos_label : label, optional
        The decision that accepts; by default the last of two sorted ones.

    Returns
    -------
    ConditionalDisparity
        For each group its shares of the rejected and of the accepted, the difference over all rows, and the difference
        inside strata. Above 0 the group has more of the rejected than of the accepted. A stratum where all are
        accepted, or all rejected, counts with 0 and is listed.

    Notes
    -----
    To choose decisions, bound ``conditional_disparity(by=sex, within=job) <= 0.05``, a search over the acceptance rates
    of a few strata, or ``max_difference(selection_rate, by=sex, within=job, average=True)``, which is linear; where
    that is 0 in every stratum, so is this.

    Examples
    --------
    >>> from counterpoise import conditional_disparities
    >>> decisions = [1, 1, 1, 0] + [1, 0, 0, 0]
    >>> sex, job = list("MMWM") + list("MWWW"), ["cook"] * 4 + ["smith"] * 4
    >>> print(conditional_disparities(decisions, {"sex": sex}, {"job": job}))
    group  rows  of rejected  of accepted  disparity  conditional  std. error
    sex=M     4       0.2500       0.7500    -0.5000      -0.3333      0.3499
    sex=W     4       0.7500       0.2500     0.5000       0.3333      0.3499
    """
    labels = as_labels(decisions)
    if labels.ndim != 1 or not labels.size or count_missing(labels):
        raise ValueError(
            "decisions must hold one decision for each row, of shape (n_samples,), and none missing; got shape "
            f"{labels.shape} with {count_missing(labels) if labels.ndim == 1 else 'unknown'} missing."
        )
    classes = find_classes([labels], pos_label=pos_label)
    if classes.several:
        raise ValueError(
            f"decisions must be of two classes, accepted or not; got {len(classes.several)} classes. Pass "
            f"decisions == {classes.several[0]!r}."
        )
    codes, names = _combinations(sensitive_features, labels.size, "sensitive_features", _MOST_GROUPS)
    places, strata_names = _combinations(strata, labels.size, "strata", _MOST_STRATA)
    if len(names) < 2:  # noqa: PLR2004 - to be compared
        raise ValueError(f"sensitive_features must make two groups or more; got {names[0]} alone.")
    accepted = np.asarray(labels == classes.positive)
    counts = _counts(codes, places, accepted, len(names), len(strata_names))
    groups = tuple(_disparity(counts, place, name, strata_names) for place, name in enumerate(names))
    alike = [name for name, one in zip(strata_names, counts.sum(axis=0), strict=True) if not one.all()]
    more = f" and {len(alike) - _SHOWN} more" if len(alike) > _SHOWN else ""
    notes = [f"All are accepted, or all rejected, in {', '.join(alike[:_SHOWN])}{more}: no disparity."] if alike else []
    return ConditionalDisparity(groups, tuple(notes))


def _combinations(columns: Any, n_rows: int, name: str, most: int) -> tuple[IntArray, list[str]]:
    """Return the combination of values of each row, and their names; missing values are a value."""
    table = Table(None, None, columns) if columns is not None else None
    if table is None or not table.sensitive_columns:
        raise ValueError(f"{name} must hold a column, as in {name}={{'sex': sex}}; got none.")
    if table.n_samples != n_rows:
        raise ValueError(f"{name} must have a row for each decision, {n_rows}; got {table.n_samples}.")
    codes, names = combine_groups({one: table.levels(one) for one in table.sensitive_columns}, n_rows)
    if len(names) > most:
        raise ValueError(f"{name} may make at most {most} combinations; got {len(names)}. Merge values.")
    return codes, names


def _counts(codes: IntArray, places: IntArray, accepted: BoolArray, n_groups: int, n_strata: int) -> IntArray:
    """Return how many rows of each group and stratum are rejected and accepted, shape (n_groups, n_strata, 2)."""
    shape = n_groups, n_strata, 2
    cells = np.ravel_multi_index((codes, places, accepted.astype(np.int64)), shape)
    return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)


def _disparity(counts: IntArray, place: int, name: str, strata: list[str]) -> GroupDisparity:
    """Return the disparity of one group, given the numbers of rows."""
    own, every = counts[place], counts.sum(axis=0)
    shares = np.divide(own, every, out=np.zeros(own.shape), where=every > 0)
    has_both = every.all(axis=1)
    by_stratum = np.where(has_both, shares[:, 0] - shares[:, 1], 0.0)
    weights = every.sum(axis=1) / every.sum()
    smooth = (own + 0.5) / (every + 1.0)
    variances = np.divide(smooth * (1.0 - smooth), every, out=np.zeros(own.shape), where=every > 0).sum(axis=1)
    error = float(np.sqrt(np.where(has_both, weights**2 * variances, 0.0).sum()))
    total, whole = own.sum(axis=0), every.sum(axis=0)
    of_rejected, of_accepted = (
        float(part) / float(size) if size else 0.0 for part, size in zip(total, whole, strict=True)
    )
    gap = of_rejected - of_accepted if whole.all() else 0.0
    details = dict(zip(strata, by_stratum.tolist(), strict=True))
    sums = gap, float(weights @ by_stratum), error
    return GroupDisparity(name, int(total.sum()), of_rejected, of_accepted, *sums, details)
