"""Scores of the models on the rows of every dataset, sorted once within groups.

Groups are the combinations of values of some columns that rules may use: each has a threshold of its own.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import expit, logit

from counterpoise._base.text import Advice, AdvisedValue, did_you_mean
from counterpoise._base.types import BoolArray, FloatArray, IntArray
from counterpoise.goals import Table
from counterpoise.goals.binding import Tally, Views
from counterpoise.goals.tables import combine_groups
from counterpoise.goals.terms import Dataset, Pairs
from counterpoise.rules.choosing import PoolPredictions
from counterpoise.rules.goal_rows import TRAIN, Answers, bits_of
from counterpoise.rules.options import Deferral, Groups
from counterpoise.rules.scores.cuts import CutRules, Cuts, Rule, find_cuts, rules_at

BASELINE = "baseline"  # the name of the predictions of the deployed model, as a column
ALL, OTHERS = "all", "(other)"
DEFERRED = 2  # the code of a deferral; 0 is the negative class, 1 the positive one
_SHOWN = 20  # groups in a message
_TWO = 2  # classes
_HALF = 0.5  # the usual threshold of a probability
_LEAST = 2.0**-52  # a probability that is closer to 0 or 1 counts as this far away: log-odds stay finite


class RuleGroups(NamedTuple):
    """Columns that rules use, and the groups by their values."""

    by: tuple[str, ...]
    names: tuple[str, ...]  # such as "sex=F, baseline=1"; the last is of all others where those are pooled

    def codes(self, table: Table, what: str) -> IntArray:
        """Return the group of each row; ``what`` names the rows in messages."""
        if not self.by:
            return np.zeros(table.n_samples, dtype=np.int64)
        codes, names = _name_groups(table, self.by, what)
        place, more = {name: number for number, name in enumerate(self.names)}, len(self.names) - _SHOWN
        unknown = [name for name in names if name not in place]
        if unknown and self.names[-1] != OTHERS:
            raise ValueError(
                f"{what} hold the group {unknown[0]!r}, which has no threshold of its own: the rules know "
                f"{', '.join(self.names[:_SHOWN])}{f' and {more} more' if more > 0 else ''}. Leave those rows out, or "
                f"fit with by={_pooling_text(self.by)}, which decides about all such groups by one threshold."
            )
        return np.array([place.get(name, len(self.names) - 1) for name in names])[codes]

    def codes_of_each(self, tables: Mapping[str, Table]) -> dict[str, IntArray]:
        """Return the group of each row, by dataset."""
        what = {name: "The rows of fit" if name == TRAIN else f"The rows of dataset {name!r}" for name in tables}
        return {name: self.codes(table, what[name]) for name, table in tables.items()}

    def check_loaded(self) -> None:
        """Check the values that were read from a file."""
        if not self.names or not all(isinstance(text, str) for text in (*self.by, *self.names)):
            raise ValueError("its groups have no names")


def find_groups(by: Groups, table: Table, n_rows: FloatArray | None = None) -> RuleGroups:
    """Return the groups with a threshold of their own; ``n_rows`` is how many rows each labelled row stands for."""
    if not by.names:
        return RuleGroups((), (ALL,))
    codes, names = _name_groups(table, by.names, "The rows of fit")
    counts = np.ones(codes.size) if n_rows is None else n_rows
    sizes = np.bincount(codes, counts * (table.weights() > 0), len(names)).astype(np.int64).tolist()
    thin = {name: size for name, size in zip(names, sizes, strict=True) if size < by.min_rows}
    pools = by.unknown == "pool"
    if thin and not pools:
        first = next(iter(thin))
        raise ValueError(
            Advice(
                f"The group {first!r} has {thin[first]} rows to choose a threshold on, fewer than {by.min_rows}. Pass "
                "more rows, name fewer columns in by, merge small groups, or set ",
                AdvisedValue("by", {"names": list(by.names), "unknown": "pool"}, _pooling_text(by.names)),
                ", which decides about small groups together.",
            )
        )
    own = [name for name in names if name not in thin]
    return RuleGroups(by.names, (*own, OTHERS) if pools else tuple(own))


def _pooling_text(names: tuple[str, ...]) -> str:
    """Return the value of ``by`` that pools small and unknown groups, as a user writes it."""
    return f"Groups({(names[0] if len(names) == 1 else list(names))!r}, unknown='pool')"


def _name_groups(table: Table, by: tuple[str, ...], what: str) -> tuple[IntArray, list[str]]:
    """Return the group of each row and the names of the groups."""
    levels = {}
    for name in by:
        if name == BASELINE and table.baseline is not None:
            levels[name] = Table(None, None, {BASELINE: table.baseline}).levels(BASELINE)
        elif name in table.columns:
            levels[name] = table.levels(name)
        elif name == BASELINE:
            raise ValueError(f"{what} need baseline, the predictions of the deployed model: the rules use them.")
        else:
            known = ", ".join(table.columns) or "none"
            raise ValueError(
                f"{what} need the column {name!r}, which the rules use: pass sensitive_features, or X as a data "
                f"frame that holds it; got the columns: {known}.{did_you_mean(name, table.columns)}"
            )
    codes, names = combine_groups(levels, table.n_samples)
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise ValueError(
            f"{what} hold two groups with the same name {twice!r}, so that no rule could distinguish them: change "
            f"the values of {', '.join(by)}."
        )
    return codes, names


class ScoreTable(NamedTuple):
    """Scores on the selection rows, the dataset ``train``, and on the rows of other datasets."""

    scores: dict[str, FloatArray]  # by dataset, (n_rows, n_models); train first
    answers: Answers  # the tables, without predictions
    sample_weight: FloatArray | None
    groups: IntArray | None  # of all sensitive features, for WorstGroup
    usual: FloatArray  # (n_models,): the usual threshold of each model
    deferral: Deferral | None = None  # None: every row is decided
    n_rows: FloatArray | None = None  # how many rows each labelled one stands for; None: for itself
    persons: IntArray | None = None  # the number of the person that each labelled row is of; None: each is another
    has_fold_scores: bool = False  # whether models of folds scored the labelled rows, and another one decides
    test_rows: IntArray | None = None  # labelled rows kept for a proof, which no model was trained on; None: any
    spreads: FloatArray | None = None  # (n_models,): of the deciding model's scores, in parts of those of folds
    twins: tuple[str, ...] = ()  # datasets whose rows the models of folds scored too, as twins of the labelled ones

    @property
    def is_positive(self) -> BoolArray:
        """Return which labelled rows are positive."""
        return np.asarray(self.answers.tables[TRAIN].y == self.answers.positive.labels[1])

    def predictions(self, models: IntArray, thresholds: FloatArray, codes: Mapping[str, IntArray]) -> PoolPredictions:
        """Return the predictions of rules, as if each were a model, given the thresholds of each for each group.

        A rule decides positive where the score of a row is above the threshold of its group. Where rules may defer, the
        lower thresholds follow the upper ones.
        """
        edges, above = np.split(thresholds, 1 if self.deferral is None else 2, axis=1), {}
        for name, groups in codes.items():
            above[name] = np.empty((len(edges), groups.size, models.size), dtype=np.bool_)
            for edge, levels in enumerate(edges):
                for place, model in enumerate(models.tolist()):
                    np.greater(self.scores[name][:, model], levels[place][groups], out=above[name][edge, :, place])
        wrong = above[TRAIN][0] ^ self.is_positive[:, None]
        if self.deferral is None:
            answers = replace(self.answers, positives={name: bits_of(one[0]) for name, one in above.items()})
            return PoolPredictions(wrong.view(np.uint8), self.sample_weight, self.groups, answers)
        codes_of_rules = {
            name: np.where(one[0], 1, np.where(one[1], DEFERRED, 0)).astype(np.uint8) for name, one in above.items()
        }
        losses = np.where(codes_of_rules[TRAIN] == DEFERRED, self.deferral.loss, wrong.astype(np.float64))
        positive = self.answers.positive._replace(deferred=self.deferral.label)
        answers = replace(self.answers, positives={}, codes=codes_of_rules, positive=positive)
        return PoolPredictions(losses, self.sample_weight, self.groups, answers)

    def with_tables(self, tables: Mapping[str, Table]) -> Self:
        """Return the same scores with other tables for the same rows."""
        sizes = {name: len(part) for name, part in self.scores.items()}
        return self._replace(answers=self.answers.with_tables(tables, sizes))

    def with_dataset(self, name: str, table: Table, scores: FloatArray) -> Self:
        """Return the same scores with those of another dataset."""
        answers, twins = self.answers.with_dataset(name, table, None), tuple(one for one in self.twins if one != name)
        return self._replace(scores={**self.scores, name: scores}, answers=answers, twins=twins)

    def only(self, places: Mapping[str, IntArray]) -> Self:
        """Return some of the rows of each dataset."""
        return only_rows(self, places)  # type: ignore[no-any-return]

    def first(self, n_models: int) -> Self:
        """Return the same rows with the scores of the first models only."""
        scores = {name: part[:, :n_models] for name, part in self.scores.items()}
        spreads = None if self.spreads is None else self.spreads[:n_models]
        return self._replace(scores=scores, usual=self.usual[:n_models], spreads=spreads)

    def of_model(self, model: int) -> Self:
        """Return the same rows with the scores of one model only."""
        scores = {name: part[:, [model]] for name, part in self.scores.items()}
        spreads = None if self.spreads is None else self.spreads[[model]]
        return self._replace(scores=scores, usual=self.usual[[model]], spreads=spreads)

    def check_loaded(self) -> None:
        """Check the values that were read from a file."""
        if TRAIN not in self.scores or len(self.answers.positive.classes) != _TWO:
            raise ValueError("it lacks the scores of labelled rows of two classes")
        rows = [part for part in (self.sample_weight, self.groups, self.persons) if part is not None]
        if any(part.shape != (len(self.scores[TRAIN]),) for part in rows):
            raise ValueError("the weights and groups are not those of the scores")
        for name, scores in self.scores.items():
            if scores.shape != (self.answers.tables[name].n_samples, self.usual.size) or scores.dtype != np.float64:
                raise ValueError(f"the scores on dataset {name!r} are of another shape")
            if not np.isfinite(scores).all():
                raise ValueError(f"the scores on dataset {name!r} are not finite")


def only_rows(table: Any, places: Mapping[str, IntArray]) -> Any:
    """Return some of the rows of a table of scores, or of probabilities."""
    own = {name: getattr(table, name) for name in ("sample_weight", "groups", "persons")}
    tables = {name: table.answers.tables[name].only(rows) for name, rows in places.items()}
    return table._replace(
        scores={name: table.scores[name][rows] for name, rows in places.items()},
        answers=replace(table.answers, tables=tables),
        test_rows=None,
        **{name: None if part is None else part[places[TRAIN]] for name, part in own.items()},
    )


def log_odds(probabilities: FloatArray) -> FloatArray:
    """Return finite log-odds."""
    return np.asarray(logit(np.clip(probabilities, _LEAST, 1.0 - _LEAST)))


@dataclass(frozen=True)
class RankedScores:
    """Scores with their rows sorted within groups, and often used arrays of the selection rows."""

    table: ScoreTable
    groups: RuleGroups
    codes: dict[str, IntArray]  # the group of each row, by dataset
    cuts: Cuts  # of the rows of all datasets, those of train first
    is_positive: BoolArray  # of the labelled rows
    mass: FloatArray  # the weights of the labelled rows, of sum 1
    defer_cost: float | None  # the loss of a deferred row; None where every row is decided

    @property
    def has_masses(self) -> bool:
        """Return whether the weights of the labelled rows are masses of labels known in part, which may be negative."""
        return self.table.answers.tables[TRAIN].has_masses

    @property
    def spread(self) -> FloatArray:
        """Return numbers that are not negative, of sum 1, by which rows count where equal parts of them are taken."""
        if not self.has_masses:
            return self.mass
        sizes = np.abs(self.mass)
        return np.asarray(sizes / sizes.sum())

    def answers(self) -> Answers:
        """Return answers as if every cut were a model that decides positive up to it in its group, and nowhere else."""
        stored, deferral = self.table.answers, self.table.deferral
        positive = stored.positive._replace(deferred=None if deferral is None else deferral.label)
        return _CutAnswers(stored.tables, {}, positive, ranked=self)

    @cached_property
    def views(self) -> Views:
        """Return the rows as goals see them, each set of rows found once."""
        return Answers.views(self.answers())

    @cached_property
    def mass_above(self) -> FloatArray:
        """Return for each cut the mass of the labelled rows above it in its group."""
        return self.cuts.sums(slice(self.mass.size), self.mass)

    @cached_property
    def spread_above(self) -> FloatArray:
        """Return for each cut the part of the labelled rows above it in its group, by ``spread``."""
        return self.cuts.sums(slice(self.mass.size), self.spread)

    @cached_property
    def spread_positives_above(self) -> FloatArray:
        """Return the same of the positive rows."""
        return self.cuts.sums(slice(self.mass.size), np.where(self.is_positive, self.spread, 0.0))

    @cached_property
    def positives_above(self) -> FloatArray:
        """Return for each cut the mass of the positive rows above it in its group."""
        return self.cuts.sums(slice(self.mass.size), np.where(self.is_positive, self.mass, 0.0))

    def usual_rules(self) -> CutRules:
        """Return the rules that any search starts from: for each model its usual rule and the constant ones.

        Where scores are probabilities, deferring is cheaper than deciding where both classes are more likely than the
        cost of deferring (Chow 1970): that is a usual rule too.
        """
        cost, usual = self.defer_cost, list(enumerate(self.table.usual.tolist()))
        ends = [(np.inf, np.inf), (-np.inf, -np.inf), *([] if cost is None else [(np.inf, -np.inf)])]
        levels = []
        for model, threshold in usual:
            levels += [(model, threshold, threshold), *((model, *end) for end in ends)]
        if cost is not None and cost < _HALF:
            levels += [(model, 1.0 - cost, cost) for model, threshold in usual if threshold == _HALF]
        rules = rules_at(self.cuts, levels)
        return rules.only(slice(0)).join(rules)  # each once

    def predictions_of(self, rules: CutRules) -> PoolPredictions:
        """Return the predictions of rules on all datasets, as if each were a model."""
        return self.table.predictions(rules.models, self.cuts.levels(rules.cuts), self.codes)

    def as_decided(self, rules: CutRules) -> CutRules:
        """Return rules that decide about these scores as rules of one model do about those of the deciding model.

        Those lie ``spreads`` times as far from the middle of the scores, in log-odds where they are probabilities.
        """
        cuts, model, table = self.cuts, int(rules.models[0]), self.table
        if table.spreads is None or table.spreads[model] == 1.0:
            return rules
        is_probability = table.usual[model] == _HALF
        scores = table.scores[TRAIN][:, model]
        center = float(np.median(log_odds(scores) if is_probability else scores))
        moved = rules.cuts.copy()
        for edge, column in enumerate(rules.cuts.T):
            start, end = cuts.starts[model, edge % cuts.n_groups :][:2]
            levels = cuts.levels(column)
            own = center + ((log_odds(levels) if is_probability else levels) - center) / table.spreads[model]
            levels = np.where(np.isfinite(levels), expit(own) if is_probability else own, levels)
            moved[:, edge] += start + np.searchsorted(-cuts.highest_below[start:end], -levels) - column % cuts.n_cuts
        return CutRules(rules.models, moved)

    def as_rules(self, rules: CutRules, *, are_usual: bool = False) -> list[Rule]:
        """Return rules as plain data; a threshold that cuts where the usual one does is the usual one itself.

        Where no row, or every row, is decided positive it is infinite, unless the rules are meant to be the usual ones.
        """
        thresholds, n_groups, usual = self.cuts.levels(rules.cuts), self.cuts.n_groups, self.table.usual
        usual_cuts = rules_at(self.cuts, [(model, one, one) for model, one in enumerate(usual.tolist())]).cuts
        is_usual = (rules.cuts == usual_cuts[rules.models]) & (np.isfinite(thresholds) | are_usual)
        thresholds = np.where(is_usual, usual[rules.models][:, None], thresholds)
        # Where small groups are pooled, and these rows hold none of them:
        if self.groups.names[-1] == OTHERS and self.cuts.starts[0, -1] - self.cuts.starts[0, -2] == 1:
            for last in range(n_groups, thresholds.shape[1] + 1, n_groups):
                thresholds[:, last - 1] = self._pooled_thresholds(rules, slice(last - n_groups, last))
        plain_rules = []
        for model, levels in zip(rules.models.tolist(), thresholds.reshape(len(rules), -1, n_groups), strict=True):
            # upper thresholds, and perhaps lower ones
            by_group = [dict(zip(self.groups.names, one.tolist(), strict=True)) for one in levels]
            plain_rules.append(Rule(model, by_group[0], None if by_group[-1] == by_group[0] else by_group[-1]))
        return plain_rules

    def as_cuts(self, rules: Sequence[Rule]) -> CutRules:
        """Return plain rules as those whose cuts are known: they decide positive for the same rows."""
        return rules_at(self.cuts, [(rule.model, *rule.levels) for rule in rules])

    def _pooled_thresholds(self, rules: CutRules, groups: slice) -> FloatArray:
        """Return for each rule one threshold for all with as many of the labelled rows above as the rule's edges."""
        scores = self.table.scores[TRAIN]
        above = self.mass_above
        shares = above[rules.cuts[:, groups] % self.cuts.n_cuts].sum(axis=1)
        together = find_cuts(scores, np.zeros(len(scores), dtype=np.int64), 1)
        sums = together.sums(slice(None), self.mass)
        thresholds = []
        for model, share in zip(rules.models.tolist(), shares.tolist(), strict=True):
            start, end = together.starts[model]
            thresholds.append(together.thresholds[start + np.abs(sums[start:end] - share).argmin()])
        return np.array(thresholds)


def rank(table: ScoreTable, groups: RuleGroups) -> RankedScores:
    """Sort the rows of all datasets by each score, within groups."""
    codes = groups.codes_of_each(table.answers.tables)
    scores, together = np.concatenate([table.scores[name] for name in codes]), np.concatenate(list(codes.values()))
    cuts = find_cuts(scores, together, len(groups.names), defers=table.deferral is not None)
    weights = table.answers.tables[TRAIN].weights()
    cost = None if table.deferral is None else table.deferral.loss
    return RankedScores(table, groups, codes, cuts, table.is_positive, np.asarray(weights / weights.sum()), cost)


def check_groups_of_twins(pairs: Pairs, codes: Mapping[str, IntArray], by: tuple[str, ...]) -> None:
    """Refuse rules that decide some rows and their twins by different thresholds."""
    other = codes[pairs.rows] != codes[pairs.twins]
    if other.any():
        raise ValueError(
            f"flip_rate compares a row with its twin under one threshold, but by={', '.join(by)} gives {other.sum()} "
            f"rows of {pairs.rows!r} another threshold than their twins in {pairs.twins!r}. Leave the columns that you "
            "changed out of by: thresholds of their own flip decisions by themselves."
        )


def check_scores_of_twins(pairs: Pairs, table: ScoreTable) -> None:
    """Refuse rows that models of folds scored beside twins that another model did: flips would compare models."""
    if table.has_fold_scores and pairs.rows == TRAIN and pairs.twins not in table.twins:
        raise ValueError(
            f"Models of folds scored the rows of fit, and another model their twins in {pairs.twins!r}, so flips would "
            "compare models. Fit with the goal on flip_rate, or pass X, y and datasets to rebalance."
        )


@dataclass(frozen=True)
class _CutAnswers(Answers):
    """Answers whose counts are running sums over sorted rows."""

    ranked: RankedScores | None = None

    def views(self) -> Views:
        assert self.ranked is not None  # noqa: S101 - made of ranked rows
        return self.ranked.views

    def counter(self, views: Views) -> Tally:
        """Return a function that sums the weight of the rows decided as a class at each cut, with a cache.

        Where rules may defer, it sums at each upper and at each lower edge: a row above the lower edge is
        deferred, and where it is above the upper one too, positive instead.
        """
        assert self.ranked is not None  # noqa: S101 - made of ranked rows
        cuts, codes = self.ranked.cuts, self.ranked.codes
        first_rows = dict(zip(codes, np.cumsum([0, *map(len, codes.values())]).tolist(), strict=False))
        weight_above: dict[Dataset, FloatArray] = {}  # the weight above each cut

        def count(rows: Dataset, place: int) -> FloatArray:
            if rows not in weight_above:
                places, weights = views.rows(rows)
                if isinstance(rows.name, Pairs):
                    check_groups_of_twins(rows.name, codes, self.ranked.groups.by)  # type: ignore[union-attr]
                    check_scores_of_twins(rows.name, self.ranked.table)  # type: ignore[union-attr]
                    one, other = (places + first_rows[name] for name in (rows.name.rows, rows.name.twins))
                    weight_above[rows] = cuts.flips(one, other, weights)
                else:
                    weight_above[rows] = cuts.sums(places + first_rows[rows.name], weights)
            above = weight_above[rows]
            if not cuts.defers:
                return above if place == 1 else views.total(rows) - above
            nothing = np.zeros(above.size)
            if place == 1:
                return np.concatenate([above, nothing])
            if place == DEFERRED:
                return np.concatenate([-above, above])
            return np.asarray(views.total(rows) - np.concatenate([nothing, above]))

        return count
