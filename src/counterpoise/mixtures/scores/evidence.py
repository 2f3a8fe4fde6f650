"""What rules are chosen on: the scores of the models on the rows of every dataset, sorted once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, Self

import numpy as np

from counterpoise._base.types import BoolArray, FloatArray, IntArray
from counterpoise.goals import Table
from counterpoise.goals.binding import Views
from counterpoise.goals.rows import Dataset
from counterpoise.mixtures.answers import TRAIN, Answers, Positive, bits_of
from counterpoise.mixtures.choosing import Evidence
from counterpoise.mixtures.scores.cuts import Cuts, find_cuts
from counterpoise.mixtures.scores.groups import Groups
from counterpoise.mixtures.scores.rules import CutRules


class ScoreEvidence(NamedTuple):
    """Scores on labelled rows, the dataset ``train``, and on those of other datasets."""

    scores: dict[str, FloatArray]  # by dataset, (n_rows, n_models); train first
    answers: Answers  # the tables; what the models would say is not asked
    sample_weight: FloatArray | None
    groups: IntArray | None  # of all sensitive features, for WorstGroup
    usual: FloatArray  # (n_models,): the threshold that a model has by itself

    @property
    def positive(self) -> Positive:
        """Return which of the two classes is the positive one."""
        assert self.answers.positive is not None  # noqa: S101 - there are two classes
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

    def with_tables(self, tables: Mapping[str, Table]) -> Self:
        """Return the same scores with other tables for the same rows."""
        return self._replace(answers=self.answers.with_tables(tables))

    def _check_loaded(self) -> None:
        """Check what came from a file."""
        for name, scores in self.scores.items():
            if scores.shape != (self.answers.tables[name].n_samples, self.usual.size) or scores.dtype != np.float64:
                raise ValueError(f"the scores on dataset {name!r} are of another shape")
            if not np.isfinite(scores).all():
                raise ValueError(f"the scores on dataset {name!r} are not finite")


@dataclass(frozen=True)
class Ranked:
    """The evidence with its rows sorted within groups."""

    evidence: ScoreEvidence
    groups: Groups
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
        return _CutAnswers(self.evidence.answers.tables, {}, self.evidence.positive, self)

    def says(self, rules: CutRules, name: str) -> BoolArray:
        """Return which rows of a dataset the rules call positive, a column for each."""
        codes = self.codes[name]
        rows = slice(first := self.first_rows()[name], first + len(codes))
        said = np.empty((len(codes), len(rules)), dtype=np.bool_)
        for place, (model, cuts) in enumerate(zip(rules.models.tolist(), rules.cuts, strict=True)):
            np.less_equal(self.cuts.places[model][rows], cuts[codes], out=said[:, place])
        return said

    def as_evidence(self, rules: CutRules) -> Evidence:
        """Return what rules say on all datasets, as if each were a model."""
        given, kept = self.evidence, self.evidence.answers
        said = {name: self.says(rules, name) for name in self.codes}
        losses = (said[TRAIN] ^ given.is_positive[:, None]).view(np.uint8)
        bits = {name: bits_of(one) for name, one in said.items()}
        return Evidence(losses, given.sample_weight, given.groups, Answers(kept.tables, bits, kept.positive))

    def shares_positive(self, rules: CutRules) -> FloatArray:
        """Return the part of the labelled rows that each rule calls positive."""
        sums = self.cuts.sums(self.train, self.evidence.mass)
        return np.asarray(sums[rules.cuts].sum(axis=1))


def rank(evidence: ScoreEvidence, groups: Groups) -> Ranked:
    """Sort the rows of all datasets by each score, within groups."""
    tables = evidence.answers.tables
    codes = {
        name: groups.codes(tables[name], "The rows of fit" if name == TRAIN else f"The rows of dataset {name!r}")
        for name in evidence.scores
    }
    scores, together = np.concatenate(list(evidence.scores.values())), np.concatenate(list(codes.values()))
    return Ranked(evidence, groups, codes, find_cuts(scores, together, len(groups.names)))


@dataclass(frozen=True)
class _CutAnswers(Answers):
    """Answers whose counts are running sums over sorted rows."""

    ranked: Ranked

    def counter(self, views: Views) -> Callable[[Dataset], FloatArray]:
        """Return what counts the weight of the rows that are called positive at each cut, every set of rows once."""
        first_rows = self.ranked.first_rows()

        @cache
        def count(rows: Dataset) -> FloatArray:
            places, weights = views.rows(rows)
            return self.ranked.cuts.sums(places + first_rows[rows.name], weights)

        return count
