"""What rules are chosen on: the scores of the models on the rows of every dataset, sorted once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple, Self

import numpy as np

from counterpoise._base.types import BoolArray, FloatArray, IntArray
from counterpoise.goals import Table
from counterpoise.goals.binding import Tally, Views
from counterpoise.goals.rows import Dataset
from counterpoise.mixtures.answers import TRAIN, Answers, Positive, bits_of
from counterpoise.mixtures.choosing import Evidence
from counterpoise.mixtures.options import Deferral
from counterpoise.mixtures.scores.cuts import Cuts, find_cuts
from counterpoise.mixtures.scores.groups import RuleGroups
from counterpoise.mixtures.scores.rules import CutRules, Rule, at_usual, usual_rules

_TWO = 2  # classes that a threshold tells apart
_NEGATIVE, _POSITIVE, DEFERRED = 0, 1, 2  # codes of answers, as rates see them


class ScoreEvidence(NamedTuple):
    """Scores on labelled rows, the dataset ``train``, and on those of other datasets."""

    scores: dict[str, FloatArray]  # by dataset, (n_rows, n_models); train first
    answers: Answers  # the tables; what the models would say is not asked
    sample_weight: FloatArray | None
    groups: IntArray | None  # of all sensitive features, for WorstGroup
    usual: FloatArray  # (n_models,): the threshold that a model has by itself
    deferral: Deferral | None = None  # None: every row is decided
    n_rows: FloatArray | None = None  # how many rows each labelled one stands for; None: for itself

    @property
    def defer_cost(self) -> float | None:
        """Return the loss of a deferred row, where there may be some."""
        return None if self.deferral is None else self.deferral.cost

    @property
    def positive(self) -> Positive:
        """Return which of the two classes is the positive one."""
        return self.answers.positive

    @property
    def is_positive(self) -> BoolArray:
        """Return which labelled rows are positive."""
        return np.asarray(self.answers.tables[TRAIN].y == self.positive.labels[1])

    @property
    def mass(self) -> FloatArray:
        """Return the weights of the labelled rows, of sum 1."""
        weights = self.answers.tables[TRAIN].weights()
        return np.asarray(weights / weights.sum())

    def told(self, models: IntArray, thresholds: FloatArray, codes: Mapping[str, IntArray]) -> Evidence:
        """Return what rules say, as if each were a model, given the thresholds of each for each group.

        Where rules may defer, the lower thresholds for each group stand behind the upper ones.
        """
        if self.deferral is not None:
            return self._told_or_deferred(models, thresholds, codes, self.deferral.cost)
        said = {name: said_positive(self.scores[name], codes[name], models, thresholds) for name in codes}
        losses = (said[TRAIN] ^ self.is_positive[:, None]).view(np.uint8)
        bits = {name: bits_of(one) for name, one in said.items()}
        return Evidence(losses, self.sample_weight, self.groups, replace(self.answers, positives=bits))

    def group_codes(self, groups: RuleGroups) -> dict[str, IntArray]:
        """Return the group of each row, by dataset."""
        return groups.codes_of_each({name: self.answers.tables[name] for name in self.scores})

    def _told_or_deferred(
        self, models: IntArray, thresholds: FloatArray, codes: Mapping[str, IntArray], cost: float
    ) -> Evidence:
        uppers, lowers = np.split(thresholds, 2, axis=1)
        said = {}
        for name, groups in codes.items():
            above, inside = (said_positive(self.scores[name], groups, models, one) for one in (uppers, lowers))
            said[name] = np.where(above, _POSITIVE, np.where(inside, DEFERRED, _NEGATIVE)).astype(np.uint8)
        wrong = (said[TRAIN] == _POSITIVE) ^ self.is_positive[:, None]
        losses = np.where(said[TRAIN] == DEFERRED, cost, wrong.astype(np.float64))
        answers = replace(self.answers_with_deferral(), codes=said)
        return Evidence(losses, self.sample_weight, self.groups, answers)

    def answers_with_deferral(self) -> Answers:
        """Return the tables with the classes and, where rows may be deferred, that answer too."""
        deferred = None if self.deferral is None else self.deferral.label
        return replace(self.answers, positives={}, codes={}, positive=self.positive._replace(deferred=deferred))

    def with_tables(self, tables: Mapping[str, Table]) -> Self:
        """Return the same scores with other tables for the same rows."""
        sizes = {name: len(part) for name, part in self.scores.items()}
        return self._replace(answers=self.answers.with_tables(tables, sizes))

    def with_dataset(self, name: str, table: Table, scores: FloatArray) -> Self:
        """Return the same evidence with another dataset."""
        return self._replace(scores={**self.scores, name: scores}, answers=self.answers.with_dataset(name, table, None))

    def first(self, n_models: int) -> Self:
        """Return the same rows with the scores of the first models only."""
        scores = {name: part[:, :n_models] for name, part in self.scores.items()}
        return self._replace(scores=scores, usual=self.usual[:n_models])

    def check_loaded(self) -> None:
        """Check what came from a file."""
        if TRAIN not in self.scores or len(self.answers.positive.classes) != _TWO:
            raise ValueError("it lacks the scores of labelled rows of two classes")
        rows = [part for part in (self.sample_weight, self.groups) if part is not None]
        if any(part.shape != (len(self.scores[TRAIN]),) for part in rows):
            raise ValueError("the weights and groups are not those of the scores")
        for name, scores in self.scores.items():
            if scores.shape != (self.answers.tables[name].n_samples, self.usual.size) or scores.dtype != np.float64:
                raise ValueError(f"the scores on dataset {name!r} are of another shape")
            if not np.isfinite(scores).all():
                raise ValueError(f"the scores on dataset {name!r} are not finite")


def said_positive(scores: FloatArray, codes: IntArray, models: IntArray, thresholds: FloatArray) -> BoolArray:
    """Return which rows rules call positive, a column for each: scores above the threshold of their group."""
    said = np.empty((len(codes), len(models)), dtype=np.bool_)
    for place, (model, by_group) in enumerate(zip(models.tolist(), thresholds, strict=True)):
        np.greater(scores[:, model], by_group[codes], out=said[:, place])
    return said


@dataclass(frozen=True)
class Ranked:
    """The evidence with its rows sorted within groups."""

    evidence: ScoreEvidence
    groups: RuleGroups
    codes: dict[str, IntArray]  # the group of each row, by dataset
    cuts: Cuts

    @property
    def train(self) -> slice:
        """Return where the labelled rows are among all rows."""
        return slice(0, len(self.evidence.scores[TRAIN]))

    def first_rows(self) -> dict[str, int]:
        """Return where the rows of each dataset begin."""
        sizes = [len(codes) for codes in self.codes.values()]
        return dict(zip(self.codes, np.cumsum([0, *sizes]).tolist(), strict=False))

    def answers(self) -> Answers:
        """Return answers as if every cut were a model that calls its group positive up to there, and nobody else."""
        told = self.evidence.answers_with_deferral()
        return _CutAnswers(told.tables, {}, told.positive, ranked=self)

    def usual_rules(self) -> CutRules:
        """Return the rules that any search starts from."""
        return usual_rules(self.cuts, self.evidence.usual, self.evidence.defer_cost)

    def usual_decisions(self) -> CutRules:
        """Return those of them that defer nothing."""
        usual = self.usual_rules()
        edges = self.cuts.levels(usual.cuts).reshape(len(usual), -1, self.cuts.n_groups)
        return usual.only((edges[:, 0] == edges[:, -1]).all(axis=1))

    def as_evidence(self, rules: CutRules) -> Evidence:
        """Return what rules say on all datasets, as if each were a model."""
        return self.evidence.told(rules.models, self.cuts.levels(rules.cuts), self.codes)

    def as_rules(self, rules: CutRules, *, are_usual: bool = False) -> list[Rule]:
        """Return rules as plain data; a threshold that cuts where the usual one does is the usual one itself.

        Where it calls nobody or everybody positive it is infinite, unless the rules are meant to be the usual ones.
        """
        thresholds, n_groups = self.cuts.levels(rules.cuts), self.cuts.n_groups
        usual = at_usual(self.cuts, self.evidence.usual).cuts[rules.models]
        is_usual = (rules.cuts == usual) & (np.isfinite(thresholds) | are_usual)
        thresholds = np.where(is_usual, self.evidence.usual[rules.models][:, None], thresholds)
        if self.groups.pools and self.cuts.starts[0, -1] - self.cuts.starts[0, -2] == 1:  # nobody here is of others
            for last in range(n_groups, thresholds.shape[1] + 1, n_groups):
                thresholds[:, last - 1] = self._pooled_thresholds(rules, slice(last - n_groups, last))
        return [self._as_rule(model, one) for model, one in zip(rules.models.tolist(), thresholds, strict=True)]

    def _as_rule(self, model: int, thresholds: FloatArray) -> Rule:
        """Return a rule, given its thresholds and, where rules may defer, the lower ones behind them."""
        named = [dict(zip(self.groups.names, one.tolist(), strict=True)) for one in self._by_edge(thresholds)]
        return Rule(model, named[0], None if named[-1] == named[0] else named[-1])

    def _by_edge(self, thresholds: FloatArray) -> FloatArray:
        return thresholds.reshape(-1, self.cuts.n_groups)

    def as_cuts(self, rules: Sequence[Rule]) -> CutRules:
        """Return plain rules as those whose cuts are known: they call the same rows positive."""
        models = np.array([rule.model for rule in rules])
        cuts = [self.cuts.at(rule.model, *map(np.array, rule.levels)) for rule in rules]
        return CutRules(models, np.array(cuts))

    def _pooled_thresholds(self, rules: CutRules, groups: slice) -> FloatArray:
        """Return for each rule one threshold for all with as many of the labelled rows above as the rule's edges."""
        mass, scores = self.evidence.mass, self.evidence.scores[TRAIN]
        shares = self.cuts.sums(self.train, mass)[rules.cuts[:, groups] % self.cuts.n_cuts].sum(axis=1)
        together = find_cuts(scores, np.zeros(len(scores), dtype=np.int64), 1)
        sums = together.sums(slice(None), mass)
        found = []
        for model, share in zip(rules.models.tolist(), shares.tolist(), strict=True):
            start, end = together.starts[model]
            found.append(together.thresholds[start + np.abs(sums[start:end] - share).argmin()])
        return np.array(found)


def rank(evidence: ScoreEvidence, groups: RuleGroups) -> Ranked:
    """Sort the rows of all datasets by each score, within groups."""
    codes = evidence.group_codes(groups)
    scores, together = np.concatenate(list(evidence.scores.values())), np.concatenate(list(codes.values()))
    return Ranked(
        evidence, groups, codes, find_cuts(scores, together, len(groups.names), defers=evidence.deferral is not None)
    )


@dataclass(frozen=True)
class _CutAnswers(Answers):
    """Answers whose counts are running sums over sorted rows."""

    ranked: Ranked | None = None

    def counter(self, views: Views) -> Tally:
        """Return what counts the weight of the rows that are called a class at each cut, every set of rows once."""
        assert self.ranked is not None  # noqa: S101 - made of ranked rows
        cuts, first_rows = self.ranked.cuts, self.ranked.first_rows()

        @cache
        def above(rows: Dataset) -> FloatArray:
            places, weights = views.rows(rows)
            return cuts.sums(places + first_rows[rows.name], weights)

        def count(rows: Dataset, place: int) -> FloatArray:
            said = above(rows)
            if cuts.defers:
                return _at_edges(said, place, views.total(rows))
            return said if place == _POSITIVE else views.total(rows) - said

        return count


def _at_edges(above: FloatArray, place: int, total: float) -> FloatArray:
    """Return what is answered with a code at each upper and at each lower edge, given the weight above each cut.

    A row above the lower edge is deferred, and where it is above the upper one too, positive instead.
    """
    nothing = np.zeros(above.size)
    if place == _POSITIVE:
        return np.concatenate([above, nothing])
    if place == DEFERRED:
        return np.concatenate([-above, above])
    return np.asarray(total - np.concatenate([nothing, above]))
