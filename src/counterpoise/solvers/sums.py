"""Sums of weights that are exact: they do not depend on the order of the rows, so equal ones are equal."""

import numpy as np

from counterpoise._base.types import FloatArray


def exact_parts(weights: FloatArray) -> list[FloatArray]:
    """Split non-negative weights into parts whose sums are exact, over any of the rows and in any order.

    The first part is rounded to multiples of a unit so coarse that all partial sums are whole multiples of it below
    2^53, the second does the same with what is left (Rump, Ogita and Oishi 2008, ExtractVector). What then remains is
    below 2^-100 of the total for a million rows. Whole numbers need the first part only.
    """
    parts = []
    for _ in range(2):
        largest = float(np.abs(weights).max(initial=0.0))
        if largest == 0.0:
            break
        unit = 2.0 ** np.ceil(np.log2(largest) + np.log2(weights.size) + 1)
        part = (unit + weights) - unit
        parts.append(part)
        weights = weights - part
    return parts or [weights]


_WHOLE = 2.0**52  # all sums of whole numbers up to here are exact in any order, with one bit to spare


def mass_unit(total: float) -> float:
    """Return the power of two of which masses with this sum, or one that rounding changes a little, are multiples."""
    return float(2.0 ** (np.round(np.log2(total)) + 1) / _WHOLE)


def whole_masses(weights: FloatArray, total: float | None = None, out: FloatArray | None = None) -> FloatArray:
    """Return non-negative weights as whole numbers, the nearest multiples of one unit, that sum to at most 2^52.

    Sums of them, and so histograms, are then the same in any order and however rows are cut into shards.

    Parameters
    ----------
    weights : array of shape (n_rows,)
    total : float, optional
        The sum of the weights of all rows, where these are some of them.
    out : array of shape (n_rows,), optional
        Where to write them.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.solvers.sums import whole_masses
    >>> (whole_masses(np.array([0.5, 0.25, 0.25])) / 2**50).tolist()
    [1.0, 0.5, 0.5]
    """
    whole = float(weights.sum()) if total is None else total
    masses = np.divide(weights, mass_unit(whole) if whole > 0 else np.inf, out=out)
    return np.asarray(np.rint(masses, out=masses))


def exact_sum(weights: FloatArray) -> float:
    """Return the sum of non-negative weights, the same as ``BitRows.totals`` gives it."""
    return float(sum(part.sum() for part in exact_parts(weights)))
