"""What each model says about the rows of each dataset, kept as bits: other goals or alphas ask no model again."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import AnyArray, BoolArray, FloatArray
from counterpoise.goals import Goal, GoalCheck, Table
from counterpoise.goals.binding import Views
from counterpoise.goals.classes import Classes
from counterpoise.goals.evaluation import Prepared
from counterpoise.goals.rows import Dataset
from counterpoise.solvers.rows import BitRows, pack

TRAIN = "train"  # the dataset that is the rows on which the mixture is chosen
_BINARY = 2


class Positive(NamedTuple):
    """Which of the classes is the positive one; all others count as negative."""

    classes: AnyArray  # sorted
    place: int

    @property
    def labels(self) -> list[Any]:
        """Return the negative and the positive label of the tables that ``table`` returns."""
        if len(self.classes) > _BINARY:
            return [False, True]
        return [self.classes[1 - self.place], self.classes[self.place]]

    def table(self, table: Table, name: str) -> Table:
        """Return a table with labels of two classes."""
        if len(self.classes) <= _BINARY:
            return table
        return table.replaced(**{part: self._is_positive(table, part, name) for part in ("y", "baseline")})

    def _is_positive(self, table: Table, part: str, name: str) -> BoolArray | None:
        labels = getattr(table, part)
        if labels is None:
            return None
        unknown = ~np.isin(labels, self.classes)
        if unknown.any():
            label = labels[unknown].tolist()[0]
            raise ValueError(
                f"{part} of dataset {name!r} holds the label {label!r}, which is not among the classes "
                f"{self.classes.tolist()}."
            )
        return np.asarray(labels == self.classes[self.place])

    def bits(self, codes: AnyArray) -> BitRows:
        """Return where predicted codes, a column for each model, are the positive class, as bits."""
        return bits_of(codes == self.place)

    def bits_of_losses(self, losses: AnyArray, codes: AnyArray) -> BitRows:
        """Return the same for two classes, where failing on a row means to say the other class."""
        return bits_of(losses.astype(np.bool_, copy=False) ^ (codes == self.place)[:, None])


def bits_of(said: BoolArray) -> BitRows:
    """Return truth values, a column for each model, as bits."""
    packed = pack(said)
    assert packed is not None  # noqa: S101 - of booleans
    return BitRows(packed, said.shape[1])


def find_positive(classes: AnyArray, pos_label: Any) -> Positive | None:
    """Return the positive class: the one named, or the second of two; None where there are more and none is named."""
    if pos_label is None:
        return Positive(classes, 1) if len(classes) == _BINARY else None
    if pos_label not in classes.tolist():
        raise ValueError(f"pos_label must be one of the classes {classes.tolist()!r}; got {pos_label!r}.")
    return Positive(classes, classes.tolist().index(pos_label))


@dataclass(frozen=True)
class Answers:
    """Which rows of which dataset each model calls positive, and what goals may ask about those rows."""

    tables: dict[str, Table]
    positives: dict[str, BitRows]
    positive: Positive | None

    def with_dataset(self, name: str, table: Table, positives: BitRows | None) -> "Answers":
        """Return the same answers with another dataset, or another table for one."""
        known = self.positives if positives is None else {**self.positives, name: positives}
        two = table if self.positive is None else self.positive.table(table, name)
        return replace(self, tables={**self.tables, name: two}, positives=known)

    def with_tables(self, tables: Mapping[str, Table]) -> "Answers":
        """Return the same answers with other tables for the same rows."""
        answers = self
        for name, table in tables.items() if self.positive is not None else ():
            if name not in self.positives or table.n_samples != self.positives[name].n_rows:
                raise ValueError(f"tables[{name!r}] must hold the rows of a dataset that the models were asked about.")
            answers = answers.with_dataset(name, table, None)
        return answers

    def views(self, asked_by: Any) -> Views:
        """Return the tables as rates see them; ``asked_by`` is what an error names."""
        if self.positive is None:
            raise ValueError(
                f"{asked_by} speaks of a positive class, but there are more than two classes: name it with pos_label."
            )
        return Views(self.tables, Classes(*self.positive.labels))

    def counter(self, views: Views) -> Callable[[Dataset], FloatArray]:
        """Return what counts the weight of the rows that each model calls positive, every set of rows once."""

        @cache
        def count(rows: Dataset) -> FloatArray:
            places, weights = views.rows(rows)
            return self.positives[rows.name].only(places).totals(weights)

        return count

    def shares(self, name: str, mixture: FloatArray) -> FloatArray:
        """Return the share of the mixture that calls each row of a dataset positive; rounding may end at 1 + 1e-16."""
        bits = self.positives[name]
        shares = np.empty(bits.n_rows)
        bits.scores(mixture, shares)
        return shares

    def checks(self, goals: tuple[Goal, ...], mixture: FloatArray) -> list[GoalCheck]:
        """Return how each goal stands for the mixture, in expectation over its draws."""
        if not goals:
            return []
        names = {name for goal in goals for name in goal.datasets}
        said = {name: np.clip(self.shares(name, mixture), 0.0, 1.0) for name in names}
        prepared = Prepared(self.tables, self.views(goals[0]).classes, said)
        return [goal.at(prepared) for goal in goals]

    def _check_loaded(self) -> None:
        """Check what came from a file."""
        for name, bits in self.positives.items():
            if bits.n_rows != self.tables[name].n_samples:
                raise ValueError(f"the answers on dataset {name!r} are on {bits.n_rows} rows of another number")

    def __getstate__(self) -> dict[str, Any]:
        """Leave out features: they were needed for the columns of data frames only."""
        bare = {name: table.replaced(X=np.empty((table.n_samples, 0))) for name, table in self.tables.items()}
        return {**vars(self), "tables": bare}

    def _saved_state(self) -> dict[str, Any]:
        """Return what ``save`` stores: of a data frame also the columns by which goals can tell groups apart."""
        return {**vars(self), "tables": {name: table.without_features() for name, table in self.tables.items()}}
