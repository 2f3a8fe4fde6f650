"""Who has a threshold of their own: the groups that columns make, which may be looked at when deciding."""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from counterpoise._base.text import did_you_mean
from counterpoise._base.types import FloatArray, IntArray
from counterpoise.goals import Table
from counterpoise.goals.values import Levels, combined
from counterpoise.mixtures.answers import TRAIN
from counterpoise.mixtures.options import Groups

BASELINE = "baseline"  # the word for the answers of the deployed model
ALL, OTHERS = "all", "(other)"
_SHOWN = 20  # groups in a message


class RuleGroups(NamedTuple):
    """Columns, and the groups that their values make."""

    by: tuple[str, ...]
    names: tuple[str, ...]  # such as "sex=F, baseline=1"; the last is of all others where those are pooled

    @property
    def pools(self) -> bool:
        """Tell whether groups without a threshold of their own are decided about together."""
        return self.names[-1] == OTHERS

    def codes(self, table: Table, what: str) -> IntArray:
        """Return the group of each row; ``what`` the rows are is for messages."""
        if not self.by:
            return np.zeros(table.n_samples, dtype=np.int64)
        codes, names = _named(table, self.by, what)
        place = {name: number for number, name in enumerate(self.names)}
        unknown = [name for name in names if name not in place]
        if unknown and not self.pools:
            raise ValueError(
                f"{what} hold the group {unknown[0]!r}, which has no threshold of its own: the rules know "
                f"{_listed(self.names)}. Leave those rows out, or fit with by={_pooled(self.by)}, which decides about "
                "all such groups by one threshold."
            )
        return np.array([place.get(name, len(self.names) - 1) for name in names])[codes]

    def codes_of_each(self, tables: Mapping[str, Table]) -> dict[str, IntArray]:
        """Return the group of each row, by dataset."""
        what = {name: "The rows of fit" if name == TRAIN else f"The rows of dataset {name!r}" for name in tables}
        return {name: self.codes(table, what[name]) for name, table in tables.items()}

    def check_loaded(self) -> None:
        """Check what came from a file."""
        if not self.names or not all(isinstance(text, str) for text in (*self.by, *self.names)):
            raise ValueError("its groups have no names")


def find_groups(by: Groups, table: Table, n_rows: FloatArray | None = None) -> RuleGroups:
    """Return the groups of labelled rows, each of which may stand for many, that have a threshold of their own."""
    if not by.names:
        return RuleGroups((), (ALL,))
    codes, names = _named(table, by.names, "The rows of fit")
    counts = np.ones(codes.size) if n_rows is None else n_rows
    sizes = np.bincount(codes, counts * (table.weights() > 0), len(names)).astype(np.int64).tolist()
    thin = {name: size for name, size in zip(names, sizes, strict=True) if size < by.min_rows}
    pools = by.unknown == "pool"
    if thin and not pools:
        first = next(iter(thin))
        raise ValueError(
            f"The group {first!r} has {thin[first]} rows to find a threshold on, fewer than {by.min_rows}. Give more "
            f"rows, name fewer columns in by, merge small groups, or set by={_pooled(by.names)}, which decides about "
            "small groups together."
        )
    own = [name for name in names if name not in thin]
    return RuleGroups(by.names, (*own, OTHERS) if pools else tuple(own))


def _pooled(names: tuple[str, ...]) -> str:
    """Return what a user writes so that small and unknown groups are decided about together."""
    return f"Groups({(names[0] if len(names) == 1 else list(names))!r}, unknown='pool')"


def _named(table: Table, by: tuple[str, ...], what: str) -> tuple[IntArray, list[str]]:
    """Return the group of each row and the names of the groups."""
    codes, names = combined({name: _levels(table, name, what) for name in by}, table.n_samples)
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise ValueError(
            f"{what} hold two groups with the one name {twice!r}, so that no rule could tell them apart: change the "
            f"values of {', '.join(by)}."
        )
    return codes, names


def _listed(names: tuple[str, ...]) -> str:
    """Return the names of groups, of many the first."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"


def _levels(table: Table, name: str, what: str) -> Levels:
    if name == BASELINE and (table.baseline is not None or BASELINE not in table.columns):
        if table.baseline is None:
            raise ValueError(f"{what} need baseline, the answers of the deployed model: the rules look at them.")
        return Table(None, None, {BASELINE: table.baseline}).levels(BASELINE)
    if name not in table.columns:
        known = ", ".join(table.columns) or "none"
        raise ValueError(
            f"{what} need the column {name!r}, which the rules look at: pass sensitive_features, or X as a data frame "
            f"that holds it; got the columns: {known}.{did_you_mean(name, table.columns)}"
        )
    return table.levels(name)
