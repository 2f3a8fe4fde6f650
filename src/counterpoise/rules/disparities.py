"""Goals on the conditional disparity of groups as linear limits, once the acceptance rates of strata lie in intervals.

Where a stratum accepts a part r of its rows, p of which are of a group, and a of which are accepted rows of the group,
the disparity is ``(p - a) / (1 - r) - a / r``. With a fixed number t in the place of r it is linear in a: exact where
r is t, too small where r is above. The same of all other rows, with the opposite sign, is too small where r is below.
So both ends of an interval give a limit that all rules inside of the goal keep, and a third one, exact nowhere, mixes
them: for it the acceptance rate may be 0 or 1.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple, Self

import numpy as np

from counterpoise._base.types import FloatArray, IntArray
from counterpoise.goals.disparity import GroupDisparities, disparities, rounding_of
from counterpoise.solvers.intervals import UNIT_INTERVAL, Box, Interval
from counterpoise.solvers.linear_program import FEASIBLE

MOST_STRATA = 6  # whose acceptance rates are searched
_LEAST = 1e-3  # acceptance rate, and rejection rate, that limits divide by


class DisparitySpread(NamedTuple):
    """A goal on the disparities of groups: for each stratum an interval holds the part of its rows that is accepted."""

    place: int  # of the goal
    rows: IntArray  # of its limits: three for each group, then two for each stratum
    own: FloatArray  # (n_cells, n_models): what is accepted of a group, in parts of its stratum
    accepted: FloatArray  # (n_strata, n_models)
    groups: IntArray  # (n_cells,)
    strata: IntArray  # (n_cells,)
    shares: FloatArray  # (n_cells,): of groups in their strata
    weights: FloatArray  # (n_cells,): of the strata, in parts of all
    bound: float

    @classmethod
    def of(cls, place: int, first: int, members: Sequence[GroupDisparities], count: Any, bound: float) -> Self:
        """Return the goal, given a function that counts rates for the models."""
        cells = [(number, cell) for number, one in enumerate(members) for cell in one.cells]
        strata = list(dict.fromkeys(cell.accepted for _, cell in cells))
        if len(strata) > MOST_STRATA:
            raise ValueError(
                f"the acceptance rate of each stratum is searched, of at most {MOST_STRATA} strata; here there are "
                f"{len(strata)}. Merge values in a new column, or {GroupDisparities.instead}"
            )
        return cls(
            place,
            first + np.arange((1 + 2 ** len(strata)) * len(members) + 2 * len(strata)),
            count([cell.own for _, cell in cells]),
            count(strata),
            np.array([number for number, _ in cells]),
            np.array([strata.index(cell.accepted) for _, cell in cells]),
            np.array([cell.share for _, cell in cells]),
            np.array([cell.weight for _, cell in cells]),
            bound,
        )

    @property
    def n_intervals(self) -> int:
        """Return how many numbers are searched."""
        return len(self.accepted)

    @property
    def slopes(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return how rows and bounds change with the goal's bound, and the sizes of what rows add up."""
        n_limits = self.rows.size
        is_of_group = np.arange(n_limits) < n_limits - 2 * self.n_intervals
        return np.zeros((n_limits, self.own.shape[1])), is_of_group.astype(np.float64), np.ones(n_limits)

    def limits(self, box: Box) -> tuple[FloatArray, FloatArray]:
        """Return limits that all rules inside of the goal keep whose acceptance rates lie in a box."""
        low, high = np.array(box).T
        ends = np.vstack([self.accepted, -self.accepted]), np.concatenate([high, -low])
        least, most = np.minimum(low, 1.0 - _LEAST)[self.strata], np.maximum(high, _LEAST)[self.strata]
        others, rest = self.accepted[self.strata] - self.own, 1.0 - self.shares
        # Of the group, and of all other rows: what a row of the limits has for each cell, and the constant.
        mixed = others / most[:, None] - self.own / (1.0 - least)[:, None], self.shares / (1.0 - least) - 1.0
        below, above = (np.clip(end[self.strata], _LEAST, 1.0 - _LEAST) for end in (low, high))
        at_low = -self.own * (1.0 / below + 1.0 / (1.0 - below))[:, None], self.shares / (1.0 - below)
        at_high = others * (1.0 / above + 1.0 / (1.0 - above))[:, None], -rest / (1.0 - above)
        is_alike = ((high <= 0.0) | (low >= 1.0))[self.strata]  # nobody of a stratum is accepted, or nobody rejected
        is_low, is_high = below == low[self.strata], above == high[self.strata]
        rows, bounds = [], []
        for of_high in [None, *product([False, True], repeat=self.n_intervals)]:
            takes_high = None if of_high is None else np.array(of_high)[self.strata]
            rows_of_cells, constants = mixed
            if takes_high is not None:
                for which, limit in ((is_low & ~takes_high, at_low), (is_high & takes_high, at_high)):
                    rows_of_cells = np.where(which[:, None], limit[0], rows_of_cells)
                    constants = np.where(which, limit[1], constants)
            rows.append(self._sum(np.where(is_alike[:, None], 0.0, rows_of_cells)))
            bounds.append(self.bound - self._sum(np.where(is_alike, 0.0, constants)))
        return np.vstack([*rows, ends[0]]), np.concatenate([*bounds, ends[1]])

    def _sum(self, values: FloatArray) -> FloatArray:
        """Return the weighted sum over the strata of each group."""
        sums = np.zeros((int(self.groups.max()) + 1, *values.shape[1:]))
        np.add.at(sums, self.groups, (self.weights * values.T).T)
        return sums

    def excess(self, mixture: FloatArray) -> float:
        """Return by how much the largest disparity of a mixture is beyond the bound; 0 where it is not."""
        accepted = (self.accepted @ mixture)[self.strata]
        values = self._sum(disparities(self.own @ mixture, accepted, self.shares)) - self._sum(rounding_of(accepted))
        beyond = float(values.max()) - self.bound
        return beyond if beyond > FEASIBLE else 0.0

    def of_one_rule(self, box: Box) -> Box:
        """Return the part of a box where acceptance rates of single rules are: they are 0 or 1, or a row away."""
        kept = []
        for rates, interval in zip(self.accepted, box, strict=True):
            steps = np.diff(np.unique(rates))
            step = float(steps[steps > FEASIBLE].min(initial=1.0)) / 2
            end = 0.0 if interval.high < step else 1.0 if interval.low > 1.0 - step else None
            kept.append(interval if end is None else Interval(end, end))
        return tuple(kept)

    def nearer(self, on_rule: Self, box: Box) -> tuple[Self, Box]:
        """Return the limits among whose rules one that meets the goal may be, given a rule that misses it."""
        return self._replace(bound=self.bound - on_rule.excess(np.ones(1))), box

    def nearest(self, mixture: FloatArray, box: Box) -> tuple[float, ...]:
        """Return the acceptance rates of a mixture, inside of a box."""
        rates = (self.accepted @ mixture).tolist()
        return tuple(min(max(rate, one.low), one.high) for rate, one in zip(rates, box, strict=True))

    def on(self, matrix: Any) -> Self:
        """Return the same for other models, or rules, given what rates are on these."""
        return self._replace(own=matrix(self.own), accepted=matrix(self.accepted))


def first_boxes(spreads: Sequence[Any]) -> Iterator[Box]:
    """Yield where all rows of each stratum are treated alike, so that goals on disparities hold whatever their bound.

    Disparities jump there: no box around such a point shows that it is inside of the goals.
    """
    ends = Interval(0.0, 0.0), Interval(1.0, 1.0)
    if any(isinstance(one, DisparitySpread) for one in spreads):
        own = ((one, ends if isinstance(one, DisparitySpread) else (UNIT_INTERVAL,)) for one in spreads)
        yield from product(*(some for one, some in own for _ in range(one.n_intervals)))
