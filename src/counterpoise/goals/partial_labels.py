"""Labels known in part: a label is a mass on each class, which may be negative.

With p_ik the proxy's probability of class k for row i, pi_i the probability that its label is known, and r_i whether it
is, the mass of class k on row i is ::

    lambda p_ik + r_i / pi_i (1{y_i = k} - lambda p_ik)

Its expectation is that of 1{y_i = k}, whatever the proxy is worth: augmented inverse propensity weighting (Robins,
Rotnitzky and Zhao 1994), also known as prediction-powered inference (Angelopoulos et al. 2023). A good proxy makes its
variance small; lambda between 0 and 1 is chosen for that, and is 0 for a proxy that says nothing about the labels.
"""

from typing import Any

import numpy as np

from counterpoise._base.frames import as_array
from counterpoise._base.types import AnyArray, BoolArray, FloatArray
from counterpoise.goals.terms import is_missing

_N_FOLDS = 5  # of rows, each with the lambda that is the best on the others: its choice biases nothing
_SURE = 2.0  # standard errors by which a proxy must go together with the labels: else it is worth nothing
_PART_OF_ONE = 1e-6  # by which the proxy's probabilities of a row may miss 1: rounding
_BINARY = 2


class PartialLabels:
    """Labels that are known for some rows only, by chance, with what stands in for them elsewhere.

    Parameters
    ----------
    y : array of shape (n_samples,)
        Labels, missing (NaN, None, pandas' NA or masked) where they are unknown.
    proxy : array of shape (n_samples,) or (n_samples, n_classes), optional
        For every row what a model or a judge, who did not see its label, says about it: the probability of each class
        in sorted order, of two classes that of the second, or the class itself. It may be of any quality: a bad proxy
        helps little, and biases nothing. None: labels alone.
    propensity : float or array of shape (n_samples,), optional
        The probability with which the label of each row was to be known; it counts where labels are known. Rows with a
        probability of zero, such as refused applicants of whom none is ever accepted by chance, are not represented
        by others: nothing is known about them, and no such array is right. None: the labelled rows were drawn by
        chance, each row as likely as others.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise import PartialLabels
    >>> labels = PartialLabels([1, 0, None, None], proxy=[0.8, 0.1, 0.7, 0.2])
    >>> labels
    PartialLabels(n_samples=4, n_labels=2, with proxy)
    """

    def __init__(self, y: Any, proxy: Any = None, propensity: Any = None) -> None:
        values = as_array(y)
        if isinstance(y, np.ma.MaskedArray):
            values = np.where(np.ma.getmaskarray(y), None, np.ma.getdata(y).astype(object))  # type: ignore[call-overload]
        if values.ndim != 1:
            raise ValueError(f"y of PartialLabels must have shape (n_samples,); got {values.shape}.")
        self.is_known: BoolArray = np.array([not is_missing(value) for value in values.tolist()], dtype=np.bool_)
        self.n_samples = values.size
        if not self.is_known.any():
            raise ValueError("y of PartialLabels must hold some labels; got none that is known.")
        self.labels: AnyArray = np.array(values[self.is_known].tolist())
        if self.labels.dtype.kind == "f" and (self.labels == np.round(self.labels)).all():
            self.labels = self.labels.astype(np.int64)  # whole numbers are floats only where NaN is among them
        self.proxy = None if proxy is None else as_array(proxy)
        if self.proxy is not None and (self.proxy.ndim not in (1, _BINARY) or len(self.proxy) != self.n_samples):
            raise ValueError(
                f"proxy must hold a class, or a probability of each class, for each of the {self.n_samples} rows of y; "
                f"got shape {self.proxy.shape}."
            )
        self.propensity: FloatArray = self._checked_propensity(propensity)

    def _checked_propensity(self, propensity: Any) -> FloatArray:
        """Return with which probability each labelled row was labelled."""
        values = np.asarray(self.is_known.mean() if propensity is None else propensity, dtype=np.float64)
        if values.shape not in ((), (self.n_samples,)):
            raise ValueError(
                f"propensity must be a number, or one for each of the {self.n_samples} rows of y; got shape "
                f"{values.shape}."
            )
        every = np.broadcast_to(values, self.is_known.shape)
        if (every == 0).any():
            raise ValueError(
                f"propensity is 0 for {int((every == 0).sum())} rows, whose labels could never be known: nothing tells "
                "about them. Let a few of them through by chance, or bound what they can be: audit(..., labelled=...)."
            )
        chances = every[self.is_known]
        odd = chances[~((chances > 0) & (chances <= 1))]
        if odd.size:
            raise ValueError(
                "propensity must be the probability with which each labelled row was labelled, above 0 and at most 1; "
                f"got {odd[0]:g}."
            )
        self.least_propensity = float(np.nanmin(every))
        return np.asarray(chances)

    @property
    def is_complete(self) -> bool:
        """Return whether every label is known."""
        return bool(self.is_known.all())

    @property
    def filled(self) -> AnyArray:
        """Return the labels of all rows; where none is known it is one of the others."""
        places = np.zeros(self.n_samples, dtype=np.int64)
        places[self.is_known] = np.arange(self.labels.size)
        return np.asarray(self.labels[places])

    def masses(self, classes: AnyArray, regions: FloatArray, *, looks_ahead: bool = True) -> FloatArray:
        """Return the mass of each row on each class, shape (n_samples, n_classes).

        Parameters
        ----------
        classes : array of shape (n_classes,)
            Sorted; all labels are among them.
        regions : array of shape (n_samples, n_regions)
            Parts of the rows, 0 or 1, such as those above some thresholds: lambda makes the variance of the shares
            that these are of each class least.
        looks_ahead : bool, default=True
            Whether lambda of a row is chosen on all other folds of the rows; else on those before it in a random order.
        """
        hot = np.asarray(self.labels[:, None] == classes, dtype=np.float64)
        masses = np.zeros((self.n_samples, len(classes)))
        masses[self.is_known] = hot / self.propensity[:, None]
        if self.proxy is None or self.is_complete:
            return masses
        proxy, known = self._proxy_shares(classes), np.flatnonzero(self.is_known)
        folds = np.random.default_rng(0).permutation(self.n_samples) % _N_FOLDS
        factors = np.zeros(self.n_samples)
        for fold in range(_N_FOLDS):
            others = folds[known] != fold if looks_ahead else folds[known] < fold
            rows = known[others]
            factors[folds == fold] = best_factor(hot[others], proxy[rows], self.propensity[others], regions[rows])
        said = factors[:, None] * proxy
        masses += said
        masses[known] -= said[known] / self.propensity[:, None]
        is_sure = self.propensity == 1.0
        masses[known[is_sure]] = hot[is_sure]  # without rounding
        return masses

    def _proxy_shares(self, classes: AnyArray) -> FloatArray:
        """Return the proxy's probability of each class."""
        proxy: Any = self.proxy
        if proxy.ndim == 1 and np.isin(proxy, classes).all():
            return np.asarray(proxy[:, None] == classes, dtype=np.float64)
        wanted = f"a class of {classes.tolist()}, or probabilities between 0 and 1,"
        try:
            shares = proxy.astype(np.float64)
        except (TypeError, ValueError):
            shares = np.full(proxy.shape, np.nan)
        if not ((shares >= 0) & (shares <= 1)).all():
            raise ValueError(f"proxy must hold {wanted} for every row; got other values.")
        if shares.ndim == 1 and len(classes) == _BINARY:
            return np.column_stack([1.0 - shares, shares])
        if shares.ndim == 1 or shares.shape[1] != len(classes):
            raise ValueError(
                f"proxy must have a column for each of the classes {classes.tolist()}; got {shares.shape}."
            )
        if np.abs(shares.sum(axis=1) - 1.0).max() > _PART_OF_ONE:
            raise ValueError("proxy must hold probabilities of the classes that add up to 1 in each row.")
        return np.asarray(shares)

    def __len__(self) -> int:
        return self.n_samples

    def __repr__(self) -> str:
        proxy = "" if self.proxy is None else ", with proxy"
        return f"PartialLabels(n_samples={self.n_samples}, n_labels={self.labels.size}{proxy})"


def best_factor(labels: FloatArray, proxy: FloatArray, propensity: FloatArray, regions: FloatArray) -> float:
    """Return the lambda for which the shares of regions among rows of each class vary least, on labelled rows.

    A row of class k moves the share of a region by its mass times ``h = region - share``. The part of the variance that
    depends on lambda is the sum of ``(1 - pi) / pi^2 h^2 (label - lambda proxy)^2``, a parabola.

    Parameters
    ----------
    labels, proxy : arrays of shape (n_labels, n_classes)
        1 for the class of each row, and the proxy's probabilities.
    propensity : array of shape (n_labels,)
    regions : array of shape (n_labels, n_regions)
    """
    weights, squares = 1.0 / propensity, (1.0 - propensity) / propensity**2
    if not weights.size:
        return 0.0
    away = [values - np.average(values, axis=0, weights=weights) for values in (labels, proxy)]
    together = weights * (away[0] * away[1]).sum(axis=1)
    if together.sum() <= _SURE * np.sqrt((together**2).sum()):
        return 0.0
    top, bottom = 0.0, 0.0
    for own, said in zip(labels.T, proxy.T, strict=True):
        totals = weights * own
        if not totals.any():
            continue
        spread = squares[:, None] * (regions - totals @ regions / totals.sum()) ** 2
        scales = own @ spread
        used = scales > 0
        top += float(((own * said) @ spread[:, used] / scales[used]).sum())
        bottom += float((said**2 @ spread[:, used] / scales[used]).sum())
    return float(np.clip(top / bottom, 0.0, 1.0)) if bottom > 0 else 0.0


def regions_above(scores: FloatArray) -> FloatArray:
    """Return the rows above nine thresholds of each score, with equal parts of the rows between them."""
    levels = np.quantile(scores, np.arange(1, 10) / 10, axis=0)
    return np.concatenate([scores > level for level in levels], axis=1).astype(np.float64)
