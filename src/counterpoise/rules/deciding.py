"""From a solution to decisions: one rule, a weighted vote, or a draw for each row."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import AnyArray, FloatArray, IntArray
from counterpoise.rules.draws import KeyedDraws, pick, pick_each
from counterpoise.rules.pool import Pool, is_text
from counterpoise.rules.rows import as_columns, take_rows


@dataclass(frozen=True, eq=False)
class DecisionRows:
    """Rows to decide about: their groups, and what each model tells of them, asked when it is needed."""

    X: Any  # as the models take them
    groups: IntArray  # that rules look at
    pool: Pool
    told: dict[int, AnyArray]  # by the place of a model, where it was asked already

    def __len__(self) -> int:
        return self.groups.size

    def told_by(self, place: int) -> AnyArray:
        """Return what a model tells of each row."""
        return self.told[place] if place in self.told else self.pool.ask(self.X, len(self), None, [place])[:, 0]

    def asked(self, places: Iterable[int]) -> "DecisionRows":
        """Return the same rows after asking some models together."""
        new = [place for place in dict.fromkeys(places) if place not in self.told]
        if not new:
            return self
        columns = self.pool.ask(self.X, len(self), None, new)
        return replace(self, told=self.told | {place: columns[:, column] for column, place in enumerate(new)})

    def take(self, rows: IntArray) -> "DecisionRows":
        """Return some of the rows."""
        told = {place: column[rows] for place, column in self.told.items()}
        some = self.X if rows.size == len(self) else take_rows(self.X, rows)
        return DecisionRows(some, self.groups[rows], self.pool, told)


Says = Callable[[DecisionRows], AnyArray]  # codes of answers of shape (n_rows,), or how likely each of them is


class Decider(NamedTuple):
    """Rules with their shares, and how they decide together."""

    rules: Sequence[Says]
    models: IntArray  # the place of the model that each rule asks
    shares: FloatArray  # with which each rule decides, of sum 1
    draws: KeyedDraws | np.random.Generator | None  # the same for the same person, afresh, or none: by weighted vote
    answers: AnyArray  # what may be said: the classes, and then that a person decides, where some rules defer
    shares_rows: bool = False  # whether rules say how likely each answer is, so that answers are drawn

    def decide(self, rows: DecisionRows, given: Any, ids: Any = None) -> AnyArray:
        """Return the answer about every row; ``given`` are the rows as they were before they were checked."""
        if self.draws is None:
            return np.asarray(self.answers[self.probabilities(rows).argmax(axis=1)])
        rows.pool.check_live(self.models[self.shares > 0].tolist())
        uniforms = self.uniforms(rows, given, ids)
        if self.shares_rows:
            return np.asarray(self.answers[pick_each(uniforms, self.probabilities(rows))])
        drawn = pick(uniforms, self.shares)
        codes = np.empty(drawn.size, dtype=np.int64)
        by_model = self.models[drawn]
        for model in np.unique(by_model).tolist():  # each is asked only about the rows that drew one of its rules
            places = np.flatnonzero(by_model == model)
            own = rows.take(places).asked([model])
            for place in np.unique(drawn[places]).tolist():
                some = np.flatnonzero(drawn[places] == place)
                codes[places[some]] = self.rules[place](own.take(some))
        return np.asarray(self.answers[codes])

    def uniforms(self, rows: DecisionRows, given: Any, ids: Any = None) -> FloatArray:
        """Return the number that decides about each row, where draws decide."""
        if isinstance(self.draws, KeyedDraws):
            return self.draws.uniforms(given, as_columns(rows.X), ids)
        assert self.draws is not None  # noqa: S101 - it draws
        return np.asarray(self.draws.random(len(rows)))

    def probabilities(self, rows: DecisionRows) -> FloatArray:
        """Return the probability of each answer: each class, then deferral where there is any."""
        active = np.flatnonzero(self.shares)
        rows = rows.asked(self.models[active].tolist())
        return shared([self.rules[place](rows) for place in active.tolist()], self.shares[active], len(self.answers))

    def shares_by(self, place: int, rows: DecisionRows) -> FloatArray:
        """Return how likely one rule gives each answer about each row: surely one, unless it shares rows."""
        return shared([self.rules[place](rows)], np.ones(1), len(self.answers))


def shared(votes: Sequence[AnyArray], shares: FloatArray, n_answers: int) -> FloatArray:
    """Return the total share of each answer, given the codes that each rule says, or how likely it says each."""
    total = np.zeros((len(votes[0]), n_answers))
    rows = np.arange(len(total))
    for said, share in zip(votes, shares.tolist(), strict=True):
        if said.ndim > 1:
            total += share * said
        else:
            total[rows, said] += share
    return np.minimum(total, 1.0, out=total)  # sums of shares may end at 1 + 1e-16


def with_label(classes: AnyArray, label: Any) -> AnyArray:
    """Return the classes and one more label, each as it is: beside numbers a text stays a text."""
    is_same = is_text(classes) == isinstance(label, str) and classes.dtype.kind in "Uiuf"
    found = np.append(classes, [label]) if is_same else np.append(classes.astype(object), [None])
    found[-1] = label
    return found
