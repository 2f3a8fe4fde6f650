"""Groups that are compared inside strata: women with men of the same job, and not all women with all men."""

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any, NamedTuple, Self, TypeAlias

from counterpoise.goals.binding import Views
from counterpoise.goals.expressions import Rate, Ratio, make_rate
from counterpoise.goals.terms import Dataset, format_name, format_value
from counterpoise.goals.words import with_size

Key: TypeAlias = tuple[tuple[str, str], ...]  # columns and their values: of a group, or of a stratum
MakeMetric: TypeAlias = Callable[[Dataset], Any]  # a rate or a ratio of some rows
Combine: TypeAlias = Callable[[Any, Any], Any]  # of the metrics of two groups


class Strata(NamedTuple):
    """The rows of each group in each stratum where two groups or more have enough rows."""

    cells: dict[Key, dict[Key, Dataset]]  # by stratum, then by group
    left_out: tuple[str, ...]  # groups of strata that are too small or alone, and pairs that no stratum has

    @classmethod
    def of(cls, rows: Dataset, cells: Sequence[tuple[Dataset, int]], within: Sequence[str], least: int) -> Self:
        """Sort cells, the rows of a group in a stratum and their number, into strata; small ones are left out."""
        strata: dict[Key, dict[Key, Dataset]] = {}
        left_out = []
        for cell, n_rows in cells:
            own = [one for one in cell.conditions if one not in rows.conditions or one[0] in within]
            if n_rows < least:
                left_out.append(with_size(_text(own), n_rows))
                continue
            stratum = tuple(one for one in own if one[0] in within)
            strata.setdefault(stratum, {})[tuple(one for one in own if one[0] not in within)] = cell
        compared = {stratum: groups for stratum, groups in strata.items() if len(groups) > 1}
        alone = [
            f"{_text(stratum)} (of its groups only {_text(next(iter(groups)))})"
            for stratum, groups in strata.items()
            if len(groups) == 1
        ]
        known = dict.fromkeys(group for groups in compared.values() for group in groups)
        apart = [
            f"{_text(one)} beside {_text(other)} (in no stratum together)"
            for place, one in enumerate(known)
            for other in list(known)[place + 1 :]
            if not any(one in groups and other in groups for groups in compared.values())
        ]
        return cls(compared, (*left_out, *alone, *apart))

    @property
    def n_pairs(self) -> int:
        """Return how many comparisons there are, each pair of groups of a stratum in both directions."""
        return sum(len(groups) * (len(groups) - 1) for groups in self.cells.values())

    def members(self, make: MakeMetric, combine: Combine) -> list[Rate | Ratio]:
        """Return the comparison of every two groups of every stratum."""
        pairs = (pair for groups in self.cells.values() for pair in permutations(groups.values(), 2))
        return [combine(make(one), make(other)) for one, other in pairs]

    def averages(self, make: MakeMetric, combine: Combine, views: Views) -> dict[tuple[Key, Key], Rate | Ratio]:
        """Return the comparison of every two groups by their rates, averaged over the strata that hold both.

        A stratum counts with its share of the rows, in all these strata and of all groups that are compared there, that
        the metric is out of.
        """
        sizes = {stratum: _size(make, groups.values(), views) for stratum, groups in self.cells.items()}
        known = dict.fromkeys(group for groups in self.cells.values() for group in groups)
        averages: dict[tuple[Key, Key], Rate | Ratio] = {}
        for one, other in permutations(known, 2):
            common = [stratum for stratum, groups in self.cells.items() if one in groups and other in groups]
            if not common:
                continue
            whole = sum(sizes[stratum] for stratum in common)
            shares = {stratum: sizes[stratum] / whole for stratum in common}
            averages[one, other] = combine(*(self._average(make, group, shares) for group in (one, other)))
        return averages

    def _average(self, make: MakeMetric, group: Key, shares: dict[Key, float]) -> Rate:
        terms = [
            term._replace(coefficient=term.coefficient * share)
            for stratum, share in shares.items()
            for term in make(self.cells[stratum][group]).terms
        ]
        return make_rate(0.0, terms)


def _size(make: MakeMetric, cells: Any, views: Views) -> float:
    """Return what the rows of some cells weigh that a metric is out of."""
    rates = (make(cell).resolve(views) for cell in cells)
    return sum(views.divisor(rows) for rate in rates for rows in dict.fromkeys(one.out_of for one in rate.row_counts))


def _text(conditions: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{format_name(column)}={format_value(value)}" for column, value in conditions)


def describe_pair(pair: tuple[Key, Key], comparison: str) -> str:
    """Return which two groups an average compares."""
    return f"{_text(pair[0])} {comparison} {_text(pair[1])}, averaged over strata"
