"""Numbers that papers print, beside ours, in standard errors of both."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

AGREES = 2.0  # combined standard errors within which two means agree


class Printed(NamedTuple):
    """A printed mean and ours, each with its standard error."""

    table: str
    item: str  # data set, method, quantity
    ours: float
    error: float
    published: float
    published_error: float

    @property
    def away(self) -> float:
        """Return ours less the published mean, in combined standard errors."""
        return float((self.ours - self.published) / np.hypot(self.error, self.published_error))

    @property
    def agrees(self) -> bool:
        """Tell whether the means agree."""
        return abs(self.away) <= AGREES


def count(numbers: Iterable[Printed]) -> str:
    """Return how many of them agree.

    Examples
    --------
    >>> from papers.printed import Printed, count
    >>> count([Printed("Table 1", "a", 0.5, 0.1, 0.6, 0.1), Printed("Table 1", "b", 0.5, 0.0, 0.6, 0.01)])
    '1 of 2'
    """
    known = list(numbers)
    return f"{sum(number.agrees for number in known)} of {len(known)}"
