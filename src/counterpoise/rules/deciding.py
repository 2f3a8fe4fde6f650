"""From a solution to decisions: by one rule, by weighted vote, or by a draw for each row."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.frames import take_rows
from counterpoise._base.types import AnyArray, FloatArray, IntArray
from counterpoise.rules.draws import KeyedDraws, pick, pick_each
from counterpoise.rules.pool import Pool, is_text
from counterpoise.rules.rows import as_columns


@dataclass(frozen=True, eq=False)
class DecisionRows:
    """Rows to decide about, with their groups and the outputs of models, computed when a rule needs them."""

    X: Any  # as the models take them
    groups: IntArray  # of each row, as rules use them
    pool: Pool
    outputs: dict[int, AnyArray]  # of the models that have already predicted, by their place

    def __len__(self) -> int:
        return self.groups.size

    def output_of(self, place: int) -> AnyArray:
        """Return the output of one model for each row."""
        return self.outputs[place] if place in self.outputs else self.pool.ask(self.X, len(self), None, [place])[:, 0]

    def with_outputs(self, places: Iterable[int]) -> "DecisionRows":
        """Return the same rows with the outputs of some models, which predict together."""
        new = [place for place in dict.fromkeys(places) if place not in self.outputs]
        if not new:
            return self
        columns = self.pool.ask(self.X, len(self), None, new)
        return replace(self, outputs=self.outputs | {place: columns[:, column] for column, place in enumerate(new)})

    def take(self, rows: IntArray) -> "DecisionRows":
        """Return some of the rows."""
        outputs = {place: column[rows] for place, column in self.outputs.items()}
        some = self.X if rows.size == len(self) else take_rows(self.X, rows)
        return DecisionRows(some, self.groups[rows], self.pool, outputs)


RuleFunction = Callable[[DecisionRows], AnyArray]  # codes of decisions of shape (n_rows,), or the probability of each


class Decider(NamedTuple):
    """Rules with their shares, and how they decide together."""

    rules: Sequence[RuleFunction]
    models: IntArray  # the place of the model whose output each rule uses
    shares: FloatArray  # with which each rule decides, of sum 1
    draws: KeyedDraws | np.random.Generator | None  # the same for the same person, afresh, or none: by weighted vote
    answers: AnyArray  # possible decisions: the classes, then the label of deferral where rules may defer
    shares_rows: bool = False  # whether a rule returns a probability for each decision, so that decisions are drawn

    def decide(self, rows: DecisionRows, original: Any, ids: Any = None) -> AnyArray:
        """Return the decision about every row; ``original`` are the rows before they were checked."""
        if self.draws is None:
            active = np.flatnonzero(self.shares)
            if active.size == 1 and not self.shares_rows:  # with neither votes nor their sums
                return np.asarray(self.answers[self.rules[active[0]](rows)])
            return np.asarray(self.answers[self.probabilities(rows).argmax(axis=1)])
        rows.pool.check_live(self.models[self.shares > 0].tolist())
        uniforms = self.uniforms(rows, original, ids)
        if self.shares_rows:
            return np.asarray(self.answers[pick_each(uniforms, self.probabilities(rows))])
        rule_of_row = pick(uniforms, self.shares)
        codes = np.empty(rule_of_row.size, dtype=np.int64)
        by_model = self.models[rule_of_row]
        for model in np.unique(by_model).tolist():  # each predicts only the rows that drew one of its rules
            places = np.flatnonzero(by_model == model)
            own = rows.take(places).with_outputs([model])
            for place in np.unique(rule_of_row[places]).tolist():
                some = np.flatnonzero(rule_of_row[places] == place)
                codes[places[some]] = self.rules[place](own.take(some))
        return np.asarray(self.answers[codes])

    def uniforms(self, rows: DecisionRows, original: Any, ids: Any = None) -> FloatArray:
        """Return the random number of each row that its draw depends on."""
        if isinstance(self.draws, KeyedDraws):
            return self.draws.uniforms(original, as_columns(rows.X), ids)
        assert self.draws is not None  # noqa: S101 - it draws
        return np.asarray(self.draws.random(len(rows)))

    def probabilities(self, rows: DecisionRows) -> FloatArray:
        """Return the probability of each decision: each class, then deferral where rules may defer."""
        active = np.flatnonzero(self.shares)
        rows = rows.with_outputs(self.models[active].tolist())
        votes = [self.rules[place](rows) for place in active.tolist()]
        return total_shares(votes, self.shares[active], len(self.answers))

    def shares_by(self, place: int, rows: DecisionRows) -> FloatArray:
        """Return the probability of each decision by one rule: 0 or 1 unless the rule shares rows among classes."""
        return total_shares([self.rules[place](rows)], np.ones(1), len(self.answers))


def total_shares(votes: Sequence[AnyArray], shares: FloatArray, n_answers: int) -> FloatArray:
    """Return the total share of each decision, given the codes or the probabilities that each rule returns."""
    total = np.zeros((len(votes[0]), n_answers))
    rows = np.arange(len(total))
    for answer, share in zip(votes, shares.tolist(), strict=True):
        if answer.ndim > 1:
            total += share * answer
        else:
            total[rows, answer] += share
    return np.minimum(total, 1.0, out=total)  # sums of shares may end at 1 + 1e-16


def with_label(classes: AnyArray, label: Any) -> AnyArray:
    """Return the classes and one more label, each as it is: beside numbers a text stays a text."""
    is_same = is_text(classes) == isinstance(label, str) and classes.dtype.kind in "Uiuf"
    labels = np.append(classes, [label]) if is_same else np.append(classes.astype(object), [None])
    labels[-1] = label
    return labels
