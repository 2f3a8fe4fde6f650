"""Two frontiers of error against violation, compared where their violations are equal."""

from typing import NamedTuple

import numpy as np
from scipy.stats import t as student
from sklearn.isotonic import isotonic_regression

from papers.arrays import FloatArray

_POINTS = 5  # violations at which two frontiers are compared
_LEVEL = 0.975  # of both ends of an interval of 95 %


class Frontier(NamedTuple):
    """What a method comes to on test rows: a row for each split, a column for each bound, the loosest last."""

    violations: FloatArray
    errors: FloatArray

    def steps(self) -> tuple[FloatArray, FloatArray]:
        """Return the mean violations that rise, and the errors of each split there.

        A looser bound has the larger violation but for the noise of test rows: bounds that noise has in another order
        are pooled, so that the violations rise.
        """
        rising, pool = self._pools()
        return rising, self.errors @ pool

    def _pools(self) -> tuple[FloatArray, FloatArray]:
        """Return the mean violations that rise, and the share of every bound in each."""
        rising, pooled = np.unique(isotonic_regression(self.violations.mean(axis=0)), return_inverse=True)
        share = np.eye(rising.size)[pooled]
        return rising, share / share.sum(axis=0)

    def errors_at(self, violation: float) -> FloatArray:
        """Return the error of each split where the mean violation is the given one, by lines between the steps."""
        rising, errors = self.steps()
        return np.array([np.interp(violation, rising, row) for row in errors])

    def less(self, violations: FloatArray, errors: FloatArray) -> tuple[FloatArray, float]:
        """Return the errors less another's by split, where mean violations are equal, and what is left between these.

        The frontier is moved to the mean violation of the other. That mean is itself known from a few splits only, and
        so is ours there: by how much each split is off is charged at the slope of the frontier, which leaves the mean
        of the differences as it is, and makes its spread that of both quantities. Beyond the ends of the frontier the
        end is taken; what is left is then our mean violation less the other's, else it is 0.

        Examples
        --------
        >>> import numpy as np
        >>> from papers.frontier import Frontier
        >>> ours = Frontier(np.array([[0.0, 0.2], [0.0, 0.4]]), np.array([[0.3, 0.1], [0.3, 0.2]]))
        >>> differences, left = ours.less(np.array([0.1, 0.2]), np.array([0.25, 0.25]))
        >>> differences.round(3).tolist(), left
        ([-0.05, 0.0], 0.0)
        >>> ours.less(np.array([0.5, 0.7]), np.array([0.1, 0.1]))[1].round(3)  # we reach no more than 0.3
        np.float64(-0.3)
        """
        (rising, pool), at = self._pools(), violations.mean()
        if not rising[0] < at < rising[-1]:
            end = 0 if at <= rising[0] else -1
            return (self.errors @ pool)[:, end] - errors, rising[end] - at
        above = int(np.searchsorted(rising, at))
        share = (at - rising[above - 1]) / (rising[above] - rising[above - 1])
        mix = pool[:, above - 1 : above + 1] @ np.array([1.0 - share, share])
        slope = np.diff((self.errors @ pool).mean(axis=0))[above - 1] / np.diff(rising)[above - 1]
        return self.errors @ mix - errors - slope * (self.violations @ mix - violations), 0.0


class Compared(NamedTuple):
    """Two methods: violations at which they are compared, and errors there of each split, means over these."""

    at: tuple[FloatArray, FloatArray]  # ours and the other's: equal, unless they have none in common
    ours: FloatArray
    other: FloatArray

    @property
    def is_equal(self) -> bool:
        """Tell whether both reach the violations; else they are the nearest that each reaches."""
        return self.at[0] is self.at[1]

    def difference(self) -> tuple[float, float, float]:
        """Return our error less the other's in points, between the ends of its 95 % interval over splits, paired."""
        return interval(100 * (self.ours - self.other))


def compared(ours: Frontier, other: Frontier) -> Compared:
    """Compare at violations that both reach; where there are none, at the ends that are nearest to each other.

    Examples
    --------
    >>> import numpy as np
    >>> from papers.frontier import Frontier, compared
    >>> ours = Frontier(np.array([[0.0, 0.2], [0.0, 0.4]]), np.array([[0.3, 0.1], [0.3, 0.2]]))
    >>> other = Frontier(np.array([[0.1, 0.5], [0.1, 0.5]]), np.array([[0.3, 0.3], [0.3, 0.3]]))
    >>> found = compared(ours, other)
    >>> found.at[0].round(3).tolist(), found.ours.round(3).tolist(), found.other.round(3).tolist()
    ([0.1, 0.15, 0.2, 0.25, 0.3], [0.167, 0.233], [0.3, 0.3])
    >>> found.is_equal
    True
    """
    reached = [one.steps()[0] for one in (ours, other)]
    low, high = max(one[0] for one in reached), min(one[-1] for one in reached)
    common = np.linspace(low, high, _POINTS)
    at = (common, common)
    if low > high:
        first, second = (np.array([low]), np.array([high]))
        at = (first, second) if reached[0][0] == low else (second, first)
    means = [
        np.mean([one.errors_at(violation) for violation in here], axis=0)
        for one, here in zip((ours, other), at, strict=True)
    ]
    return Compared(at, *means)


def interval(values: FloatArray, overlap: float = 0.0) -> tuple[float, float, float]:
    """Return the mean between the ends of its 95 % interval; they are the mean where there is one value.

    ``overlap`` is what splits that share rows add to 1 / n_splits in the variance of the mean (Nadeau and Bengio 2003).
    """
    middle = float(values.mean())
    if values.size == 1:
        return middle, middle, middle
    room = float(student.ppf(_LEVEL, values.size - 1) * values.std(ddof=1) * np.sqrt(1 / values.size + overlap))
    return middle - room, middle, middle + room
