"""Conditional demographic disparity as a goal: a group's shares of the rejected and of the accepted, inside strata.

In a stratum of which a part r is accepted, a group with a part p of its rows, and an accepted part a, has the disparity
``(p - a) / (1 - r) - a / r``: its share of the rejected less its share of the accepted (Wachter, Mittelstadt and
Russell 2021). With r given this is linear in a, so rules are chosen by a search over the acceptance rates of strata.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from counterpoise._base.types import FloatArray
from counterpoise.goals.binding import PreparedPredictions, Views
from counterpoise.goals.expressions import Rate, Searched, WorstOf
from counterpoise.goals.rates import columns_of, positive_rate
from counterpoise.goals.terms import DEFAULT, Dataset, NoRows, format_call, format_name, rows_of
from counterpoise.solvers.linear_program import FEASIBLE
from counterpoise.theory.confidence import Bounds, upper_share

DISPARITY = "conditional_disparity"
_MOST_COUNTED = 1000  # groups of strata


def disparities(own: Any, accepted: Any, shares: Any) -> FloatArray:
    """Return the disparity of groups in their strata; 0 where all rows of a stratum are treated alike.

    ``own`` are the rows of a group that are accepted, in parts of the stratum, ``accepted`` all that are, and
    ``shares`` the parts that the groups are.
    """
    rate = _with_both(accepted)
    return np.where(np.isnan(rate), 0.0, (shares - own) / (1.0 - rate) - own / rate)


def rounding_of(accepted: Any) -> FloatArray:
    """Return how much the disparity in a stratum changes where what is accepted of a group changes by rounding."""
    rate = _with_both(accepted)
    return np.where(np.isnan(rate), 0.0, FEASIBLE / (rate * (1.0 - rate)))


def _with_both(accepted: Any) -> FloatArray:
    """Return acceptance rates, not a number where nobody is accepted, or nobody rejected."""
    return np.where((accepted > FEASIBLE) & (accepted < 1.0 - FEASIBLE), accepted, np.nan)


class GroupInStratum(NamedTuple):
    """A group in a stratum, beside others."""

    weight: float  # of the stratum, in parts of all
    share: float  # of the group in the stratum
    own: Rate  # its rows that are accepted, in parts of the stratum
    accepted: Rate  # all rows of the stratum that are


@dataclass(frozen=True, eq=False, repr=False)
class GroupDisparities(Searched):
    """The disparity of one group, averaged over strata; those of one group alone have none."""

    group: Dataset
    cells: tuple[GroupInStratum, ...]
    instead = "bound max_difference(selection_rate, by=sex, within=job, average=True)"

    @property
    def rates(self) -> tuple[Rate, ...]:
        """Return what is accepted of the group and of all, in each stratum."""
        return tuple(rate for cell in self.cells for rate in (cell.own, cell.accepted))

    def resolve(self, views: Views) -> Self:
        """Return the same with classes written out."""
        sides = [(cell, cell.own.resolve(views), cell.accepted.resolve(views)) for cell in self.cells]
        return replace(self, cells=tuple(cell._replace(own=own, accepted=every) for cell, own, every in sides))

    def key(self) -> tuple[Any, ...]:
        return self.group, self.cells

    def at(self, prepared: PreparedPredictions) -> float:
        return self._values(prepared)[0]

    def exceeds(self, bound: float, sense: str, prepared: PreparedPredictions) -> bool:  # noqa: ARG002 - always <=
        value, rounding = self._values(prepared)
        return bool(value - rounding > bound + FEASIBLE)

    def _values(self, prepared: PreparedPredictions) -> tuple[float, float]:
        """Return the disparity, and what may be rounding of it."""
        own, accepted = (np.array([rate.at(prepared) for rate in self.rates[first::2]]) for first in (0, 1))
        weights, shares = np.array([cell[:2] for cell in self.cells]).T
        return float(weights @ disparities(own, accepted, shares)), float(weights @ rounding_of(accepted))

    def __str__(self) -> str:
        return f"disparity of {', '.join(self.group.parts[1:]) or self.group}"


class DisparityOutcome(NamedTuple):
    """How a group's disparity stands on given rows: in each stratum two shares, of the rejected and of the accepted.

    Given how many are rejected and accepted, shares of different rows are independent. A bound is the better one of
    two, each at half of the risk: of all shares together (Hoeffding 1963), and the sum of those of each.
    """

    weights: FloatArray  # (n_strata,): of the strata, in parts of all
    own: FloatArray  # (2, n_strata): rows of the group that are rejected, and accepted
    every: FloatArray  # (2, n_strata): rows of all groups
    rows: tuple[Dataset, ...]

    @classmethod
    def of(cls, left: GroupDisparities, prepared: PreparedPredictions) -> Self:
        """Count the rows of a group and of all others, which must weigh the same and be decided without draws."""
        views, strata = prepared.views, tuple(cell.accepted.terms[0].rows for cell in left.cells)
        if prepared.are_drawn or any(np.ptp(views.rows(stratum)[1]) > 0 for stratum in strata):
            raise NoRows("its bounds are of counts: of rows that weigh the same, and of decisions that are not drawn")
        sizes = np.array([views.n_rows(stratum) for stratum in strata], dtype=np.float64)
        weights, shares = np.array([cell[:2] for cell in left.cells]).T
        own, accepted = (np.rint(sizes * [rate.at(prepared) for rate in left.rates[first::2]]) for first in (0, 1))
        sides = np.rint(sizes * shares) - own, own
        return cls(weights, np.array(sides), np.array([sizes - accepted, accepted]), strata)

    @property
    def estimate(self) -> float:
        """Return the disparity on the rows themselves."""
        sizes, own = self.every.sum(axis=0), self.own
        return float(self.weights @ disparities(own[1] / sizes, self.every[1] / sizes, own.sum(axis=0) / sizes))

    def bounds(self, risk: float) -> Bounds:
        """Return bounds on the population's value, each of which fails with probability ``risk`` at most."""
        turned = self._replace(own=self.own[::-1], every=self.every[::-1])
        return Bounds(-turned.upper(risk), self.upper(risk))

    def upper(self, risk: float) -> float:
        known = (self.every > 0).all(axis=0)
        (rejected, accepted), own = self.every[:, known], self.own[:, known]
        weights, unknown = self.weights[known], float(self.weights[~known].sum())
        spread = np.sqrt(np.log(2.0 / risk) / 2.0 * (weights**2 @ (1.0 / rejected + 1.0 / accepted)))
        together = float(weights @ (own[0] / rejected - own[1] / accepted)) + spread
        each = risk / 2.0 / max(2 * weights.size, 1)
        most = [upper_share(*one, each) for one in zip(own[0], rejected, strict=True)]
        least = [1.0 - upper_share(size - one, size, each) for one, size in zip(own[1], accepted, strict=True)]
        return float(min(together, weights @ np.subtract(most, least)) + unknown)

    def quick_bounds(self, risk: float) -> Bounds:
        """Return the same bounds."""
        return self.bounds(risk)

    def end(self, risk: float, end: str) -> float:
        """Return the "low" or the "high" end of the bounds alone."""
        return float(getattr(self.bounds(risk), end))

    def share(self) -> None:
        """Return no share: several decide."""

    def counts(self) -> list[tuple[Dataset, int]]:
        """Return the numbers of rows that the bounds rest on, for each stratum."""
        return [(rows, round(size)) for rows, size in zip(self.rows, self.every.sum(axis=0).tolist(), strict=True)]


@dataclass(frozen=True, eq=False, repr=False)
class WorstDisparity(WorstOf):
    """The largest disparity of a group of ``by``, averaged over the strata of ``within`` with their weights."""

    rows: Dataset
    by: tuple[str, ...] = ()
    within: tuple[str, ...] = ()

    sense = "<="

    def __post_init__(self) -> None:
        for columns, name, example in ((self.by, "groups", "by=sex"), (self.within, "strata", "within=job")):
            if not columns:
                raise ValueError(
                    f"{DISPARITY} needs the column of its {name}, as in {DISPARITY}(by=sex, within=job): "
                    f"got no {example}."
                )
        both = [column for column in self.within if column in self.by]
        if both:
            raise ValueError(
                f"{DISPARITY} compares the groups of by inside each stratum of within, so a column is in one of them; "
                f"got {both[0]!r} in both."
            )
        if self.rows.value is not None or self.rows.label is not None or self.rows.baseline is not None:
            raise ValueError(f"{DISPARITY} counts the rows of groups, of whatever label and amount; got {self.rows}.")
        self.rows.select(dict.fromkeys((*self.by, *self.within), ""))  # raises for a column that cannot have this name

    def key(self) -> tuple[Any, ...]:
        return self.rows, self.by, self.within

    def members(self, views: Views | None = None) -> tuple[GroupDisparities, ...]:
        if views is not None:
            return views.cache(("disparities", self), lambda: self._members(views))
        stratum = self.rows.select(dict.fromkeys(self.within, "a"))
        members = []
        for text in "ab":
            own = stratum.select(dict.fromkeys(self.by, text))
            cell = GroupInStratum(1.0, 0.5, 0.5 * positive_rate(own), positive_rate(stratum))
            members.append(GroupDisparities(own, (cell,)))
        return tuple(members)

    def _members(self, views: Views) -> tuple[GroupDisparities, ...]:
        columns = " and ".join(map(repr, (*self.by, *self.within)))
        n_cells, cells = views.groups(self.rows, (*self.by, *self.within), _MOST_COUNTED)
        if n_cells > _MOST_COUNTED:
            raise ValueError(
                f"{self} is over at most {_MOST_COUNTED} groups of strata; by {columns} there are {n_cells}. Merge "
                "values in a new column."
            )
        strata: dict[Dataset, list[tuple[Dataset, Dataset]]] = {}
        for cell in cells:
            stratum, group = (self._only(cell, names) for names in (self.within, self.by))
            if views.total(cell) > 0:
                strata.setdefault(stratum, []).append((group, cell))
        whole = sum(views.total(stratum) for stratum in strata)
        members: dict[Dataset, list[GroupInStratum]] = {}
        for stratum, groups in strata.items():
            size = views.total(stratum)
            for group, cell in groups if len(groups) > 1 else ():
                share = views.total(cell) / size
                own, accepted = share * positive_rate(cell), positive_rate(stratum)
                members.setdefault(group, []).append(GroupInStratum(size / whole, share, own, accepted))
        if not members:
            raise NoRows(f"{self} compares groups inside strata; by {columns} no stratum has two groups.")
        return tuple(GroupDisparities(group, tuple(own)) for group, own in members.items())

    def _only(self, cell: Dataset, columns: Sequence[str]) -> Dataset:
        """Return the rows with the values of a cell in some columns."""
        return self.rows.select({column: text for column, text in cell.conditions if column in columns})

    def left_out(self, views: Views) -> tuple[str, ...]:  # noqa: ARG002 - strata of one group have no disparity
        return ()

    def __str__(self) -> str:
        words = [f"{name}={format_name(column)}" for name in ("by", "within") for column in getattr(self, name)]
        return format_call(DISPARITY, self.rows, last=words)


def conditional_disparity(
    dataset: Dataset | str = DEFAULT,
    /,
    *ranges: str,
    by: str | Sequence[str] = (),
    within: str | Sequence[str] = (),
    of: Any = None,
    **where: Any,
) -> WorstDisparity:
    """Return the largest conditional demographic disparity of a group (Wachter, Mittelstadt and Russell 2021).

    In each stratum the disparity of a group is its share of the rejected less its share of the accepted. Strata are
    averaged with their weights of rows; one where all are accepted, or all rejected, counts with 0. With two groups
    the disparities are each other's opposites, so the largest is that of the worse off.

    Parameters
    ----------
    dataset, *ranges, of, **where
        As for ``recall``; ``of`` is the class that accepts.
    by, within : str or list of str
        The columns whose values make groups, and those that make strata.

    Returns
    -------
    Phrase
        To be bounded with ``<=``. Of any decisions it is the number that ``counterpoise.conditional_disparities``
        reports, with sample weights where there are some. Rules of scores and mixtures of models of two classes are
        chosen by a search over the acceptance rates of the strata.

    Examples
    --------
    >>> from counterpoise.goals import Table, conditional_disparity
    >>> goal = conditional_disparity("train", by="sex", within="job") <= 0.1
    >>> columns = {"sex": list("MMWMMWWW"), "job": ["cook"] * 4 + ["smith"] * 4}
    >>> print(goal.evaluate([1, 1, 1, 0, 1, 0, 0, 0], Table(None, [0, 1] * 4, columns)))
    conditional_disparity(by=sex, within=job) <= 0.1: missed by 0.2333 (0.3333, bound 0.1: disparity of sex=W)
    """
    return WorstDisparity(rows_of(dataset, ranges, of, where), columns_of(by), columns_of(within, "within"))
