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


def exact_sum(weights: FloatArray) -> float:
    """Return the sum of non-negative weights, the same as ``BitRows.totals`` gives it."""
    return float(sum(part.sum() for part in exact_parts(weights)))
