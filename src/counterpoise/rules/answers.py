"""What each model says about the rows of each dataset: other goals or alphas ask no model again.

Of two classes it is kept as bits, of more, or where rows may be deferred, as codes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from counterpoise._base.types import AnyArray, BoolArray, FloatArray
from counterpoise.goals import Goal, GoalCheck, Table
from counterpoise.goals.binding import PreparedPredictions, Tally, Views
from counterpoise.goals.classes import Classes
from counterpoise.goals.rows import Dataset
from counterpoise.solvers.rows import BitRows, pack

TRAIN = "train"  # the dataset that is the rows on which the mixture is chosen
_BINARY = 2


class Positive(NamedTuple):
    """The classes, and which of them is the positive one; all others count as negative."""

    classes: AnyArray  # sorted
    place: int | None  # None where there are more than two, and none is named
    deferred: Any = None  # the answer that is no class, where rows may be deferred

    @property
    def is_binary(self) -> bool:
        """Tell whether there are two classes."""
        return len(self.classes) <= _BINARY

    @property
    def labels(self) -> Classes:
        """Return the classes as rates see them."""
        named = self.classes.tolist()
        if not self.is_binary:
            positive = None if self.place is None else named[self.place]
            return Classes(None, positive, tuple(named), self.deferred)
        place = cast("int", self.place)  # of two classes there always is one
        return Classes(named[1 - place], named[place], (), self.deferred)

    def bits(self, codes: AnyArray) -> BitRows:
        """Return where predicted codes, a column for each model, are the positive class, as bits."""
        return bits_of(codes == self.place)

    def bits_of_losses(self, losses: AnyArray, codes: AnyArray) -> BitRows:
        """Return the same for two classes, where failing on a row means to say the other class."""
        return bits_of(losses.astype(np.bool_, copy=False) ^ (codes == self.place)[:, None])

    def said(self, codes: AnyArray) -> "BitRows | AnyArray":
        """Return predicted codes, a column for each model, in the form that is kept."""
        return self.bits(codes) if self.is_binary else codes


def bits_of(said: BoolArray) -> BitRows:
    """Return truth values, a column for each model, as bits."""
    packed = pack(said)
    assert packed is not None  # noqa: S101 - of booleans
    return BitRows(packed, said.shape[1])


def find_positive(classes: AnyArray, pos_label: Any) -> Positive:
    """Return the positive class: the one named, or the second of two; none where there are more and none is named."""
    if pos_label is None:
        return Positive(classes, 1 if len(classes) == _BINARY else None)
    if pos_label not in classes.tolist():
        raise ValueError(f"pos_label must be one of the classes {classes.tolist()!r}; got {pos_label!r}.")
    return Positive(classes, classes.tolist().index(pos_label))


@dataclass(frozen=True)
class Answers:
    """Which class each model says of the rows of which dataset, and what goals may ask about those rows."""

    tables: dict[str, Table]
    positives: dict[str, BitRows]  # of two classes: which rows are called positive
    positive: Positive
    codes: dict[str, AnyArray] = field(default_factory=dict)  # of more answers: the code that each model says

    tells_tails: ClassVar[bool] = True  # whether each row is one, and not a mean of many

    def with_dataset(self, name: str, table: Table, said: BitRows | AnyArray | None) -> "Answers":
        """Return the same answers with another dataset, or another table for one."""
        known = replace(self, tables={**self.tables, name: table})
        if said is None:
            return known
        if isinstance(said, BitRows):
            return replace(known, positives={**self.positives, name: said})
        others = {other: bits for other, bits in self.positives.items() if other != name}
        return replace(known, positives=others, codes={**self.codes, name: said})

    def with_tables(self, tables: Mapping[str, Table], sizes: Mapping[str, int]) -> "Answers":
        """Return the same answers with other tables for the same rows, of which there are so many by dataset."""
        answers = self
        for name, table in tables.items():
            if sizes.get(name) != table.n_samples:
                raise ValueError(f"tables[{name!r}] must hold the rows of a dataset that the models were asked about.")
            answers = answers.with_dataset(name, table, None)
        return answers

    @property
    def sizes(self) -> dict[str, int]:
        """Return the number of rows of each dataset that the models were asked about."""
        return {name: bits.n_rows for name, bits in self.positives.items()} | {
            name: len(codes) for name, codes in self.codes.items()
        }

    @property
    def pool_sizes(self) -> set[int]:
        """Return how many models the answers are of."""
        return {bits.n_models for bits in self.positives.values()} | {codes.shape[1] for codes in self.codes.values()}

    def views(self) -> Views:
        """Return the tables as rates see them."""
        return Views(self.tables, self.positive.labels)

    def counter(self, views: Views) -> Tally:
        """Return what counts the weight of the rows that each model calls a class, every set of rows once."""

        @cache
        def bits(name: str, place: int) -> BitRows:
            return bits_of(self._codes_of(name) == place)

        @cache
        def count(rows: Dataset, place: int) -> FloatArray:
            places, parts = views.rows(rows)[0], views.exact(rows)
            if rows.name not in self.positives:
                return bits(rows.name, place).only(places).totals(parts)
            said = self.positives[rows.name].only(places).totals(parts)
            return said if place == 1 else views.total(rows) - said

        return count

    def _codes_of(self, name: str) -> AnyArray:
        if name not in self.codes:
            raise ValueError(
                f"What the models say about the rows of dataset {name!r} was not kept, as there were no goals: pass X "
                "and y, or datasets, with the goals."
            )
        return self.codes[name]

    def shares(self, name: str, mixture: FloatArray) -> FloatArray:
        """Return the share of the mixture that calls each row of a dataset positive, or each class of several.

        Rounding may end at 1 + 1e-16.
        """
        if name not in self.positives:
            return self._shares_of_classes(name, mixture)
        bits = self.positives[name]
        shares = np.empty(bits.n_rows)
        bits.scores(mixture, shares)
        return shares

    def _shares_of_classes(self, name: str, mixture: FloatArray) -> FloatArray:
        codes, n_answers = self._codes_of(name), self.views().classes.n_columns
        shares = np.zeros((len(codes), n_answers))
        rows = np.arange(len(codes))
        for model in np.flatnonzero(mixture):
            shares[rows, codes[:, model]] += mixture[model]
        return shares

    def checks(self, goals: tuple[Goal, ...], mixture: FloatArray) -> list[GoalCheck]:
        """Return how each goal stands for the mixture, in expectation over its draws."""
        if not goals:
            return []
        views = self.views()
        names = {name for goal in goals for name in goal.datasets}
        said = {name: np.clip(self.shares(name, mixture), 0.0, 1.0) for name in names if views.table(name)}
        prepared = PreparedPredictions(views, said)
        return [goal.at_least_in_part(prepared) for goal in goals]

    def check_loaded(self) -> None:
        """Check what came from a file."""
        for name, n_rows in self.sizes.items():
            if n_rows != self.tables[name].n_samples:
                raise ValueError(f"the answers on dataset {name!r} are on {n_rows} rows of another number")
        for codes in self.codes.values():
            if codes.ndim != 2 or codes.dtype.kind not in "iu":  # noqa: PLR2004 - rows and models
                raise ValueError("the codes of classes must be whole numbers, a column for each model")
            if codes.max(initial=0) >= self.positive.labels.n_columns or codes.min(initial=0) < 0:
                raise ValueError("a code is of none of the classes")

    def __getstate__(self) -> dict[str, Any]:
        """Leave out features: they were needed for the columns of data frames only."""
        bare = {name: table.replaced(X=np.empty((table.n_samples, 0))) for name, table in self.tables.items()}
        return {**vars(self), "tables": bare}

    def stored_state(self) -> dict[str, Any]:
        """Return what ``save`` stores: of a data frame also the columns by which goals can tell groups apart."""
        return {**vars(self), "tables": {name: table.without_features() for name, table in self.tables.items()}}
