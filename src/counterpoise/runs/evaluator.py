"""What a fitted model, and those it is compared with, say of the rows of a run, and where they err.

Where decisions are drawn, every number is an expectation over the draws, and does not depend on the secret key of the
run. What the drawn decisions themselves come to is told by ``RunEvaluator.audit_drawn``, and kept apart.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from counterpoise._base.types import AnyArray, BoolArray, FloatArray, IntArray
from counterpoise.auditing.audit import Audit, add_confidence, audit_predictions
from counterpoise.classifiers.base import DRAWN
from counterpoise.classifiers.goal import GoalClassifier
from counterpoise.classifiers.mixture import MixtureClassifier
from counterpoise.goals import Dataset, Goal, Rate, Table, as_objective, error_rate
from counterpoise.goals.binding import prepare
from counterpoise.goals.classes import where_equal
from counterpoise.goals.rates import TABLE_METRICS
from counterpoise.metrics import RateTable, rate_table
from counterpoise.rules.choosing import groups_by, row_count
from counterpoise.rules.class_scores.rules import SOFT, RatioRule, TierRule
from counterpoise.rules.deciding import Decider, DecisionRows, total_shares, with_label
from counterpoise.rules.families import ClassRules
from counterpoise.rules.options import Deferral, kind_of_decision
from counterpoise.rules.pool import failures
from counterpoise.rules.rows import groups_of
from counterpoise.runs.data import Data, RunRows
from counterpoise.runs.results import AVERAGE, DEPLOYED, FIRST, MIXTURE, TRAIN, ResultRow
from counterpoise.runs.settings import RunSettings
from counterpoise.theory.risks import Risk, RiskRows


def final_estimator(model: Any) -> Any:
    """Return the estimator of ours or scikit-learn's at the end of a model."""
    return model[-1] if hasattr(model, "steps") else model


def seen_by_last(model: Any, frame: Any) -> Any:
    """Return a raw frame as the last step takes it."""
    return model[:-1].transform(frame) if hasattr(model, "steps") else frame


def mixes(model: Any) -> bool:
    """Tell whether a model is a mixture."""
    return hasattr(final_estimator(model), "mixture_")


def has_rules(model: Any) -> bool:
    """Tell whether a model is a mixture of rules of scores."""
    return hasattr(final_estimator(model), "rules_")


def has_class_rules(model: Any) -> bool:
    """Tell whether the rules of a model are of the probabilities of more than two classes, and not of a score."""
    return has_rules(model) and isinstance(final_estimator(model).family_, ClassRules)


def keeps_answers(model: Any) -> bool:
    """Tell whether a model is a mixture of models of any kind, which may be slow to read and to ask: rounds are not."""
    return isinstance(model, GoalClassifier | MixtureClassifier)


def looked_at(part: RunRows) -> dict[str, Any]:
    """Return what rules may look at beside the features of rows, as ``predict`` takes it."""
    return {"sensitive_features": part.groups or None, "baseline": part.baseline}


def some_rows(value: Any, rows: IntArray) -> Any:
    """Return some rows of columns by name, of one column, or of none."""
    if value is None or isinstance(value, Mapping):
        return value and {name: np.asarray(column)[rows] for name, column in value.items()}
    return np.asarray(value)[rows]


def shares_rows(rule: Any) -> bool:
    """Tell whether a rule gives a row to several classes, so that its answers are drawn."""
    if isinstance(rule, TierRule):
        return rule.layer == SOFT and (rule.level > 0 or rule.defer_cost is not None)
    return isinstance(rule, RatioRule) and bool(((rule.shares > 0) & (rule.shares < 1)).any())


class AskedModel:
    """A model that is no mixture, and plain training beside it."""

    def __init__(self, model: Any, data: Data, plain: Any = None) -> None:
        self.model, self.data, self.plain, self.estimator = model, data, plain, final_estimator(model)
        # what deferring a row costs, and what is then said of it; None where every row is decided about
        source = self.estimator.family_.selection_data if has_rules(model) else model
        self.deferral: Deferral | None = getattr(source, "deferral", None)
        # whether answers are drawn, if only from one model or rule
        self.is_drawn = mixes(model) and kind_of_decision(self.estimator.decision) in DRAWN
        self._found: dict[Any, Any] = {}  # what was asked once

    def says(self, method: str, name: str) -> AnyArray | None:
        """Return the labels that a method gives to rows; None where there is no such method."""
        asked = {MIXTURE: self.model, FIRST: self.plain}[method]
        return None if asked is None else np.asarray(asked.predict(self.data.part(name).X))

    def shares(self, method: str, name: str) -> FloatArray | None:  # noqa: ARG002 - others draw
        """Return how likely a method says each class of each row, and defers it; None where no key changes anything.

        One model, or one rule, decides the same whatever is drawn.
        """
        found: FloatArray | None = getattr(self.model, "chances", None) if method == MIXTURE else None
        return found

    def row_losses(self, split: str) -> dict[str, FloatArray]:
        """Return the loss that methods expect on each row of a split, where it is not told by their answers.

        It is how likely a row is given another label than its own; a deferred row counts with its cost.
        """
        labels, found = np.searchsorted(self.data.classes, self.data.part(split).labels), {}
        for method in (MIXTURE, FIRST):
            shares = self.shares(method, split)
            if shares is not None:
                lost = 1.0 - shares[np.arange(labels.size), labels]
                found[method] = lost if self.deferral is None else lost - (1.0 - self.deferral.cost) * shares[:, -1]
        return found

    def member_errors(self, split: str) -> list[float]:  # noqa: ARG002 - others have members
        """Return how often each model or rule of a mixture errs on a split."""
        return []

    def kept(self, name: str, kinds: str, each: tuple[int, ...] = ()) -> AnyArray | None:
        """Return what the models were found to say, or score, earlier; None where it is not known.

        ``each`` is the shape of what one model says of one row.
        """
        said, shape = self.data.said.get(name), (len(self.data.part(name)), len(self.estimator.estimators_), *each)
        if said is None or said.shape != shape or said.dtype.kind not in kinds:
            return None
        is_class = said.dtype.kind == "f" or (said.min(initial=0) >= 0 and said.max(initial=0) < len(self.data.classes))
        return said if is_class else None


class AskedModels(AskedModel):
    """A mixture of models; plain training is the first of them.

    Those of a pool are slow to ask: what they said is kept with the data, for any other mixture of them.
    """

    def says(self, method: str, name: str) -> AnyArray | None:
        """Return the labels that a method gives to rows."""
        X = self.data.part(name).X
        if keeps_answers(self.model) and (name not in self.data.splits or self.kept(name, "iu") is not None):
            codes = self.codes(name)
            if method == FIRST:
                return np.asarray(self.data.classes[codes[:, 0]])
            return np.asarray(self.estimator.decider().decide(self.estimator.rows_to_decide(X, outputs=codes), X))
        if method == MIXTURE:  # as its users would ask it: some models only
            return np.asarray(self.model.predict(X))
        return np.asarray(self.estimator.estimators_[0].predict(seen_by_last(self.model, X)))

    def shares(self, method: str, name: str) -> FloatArray | None:
        """Return how likely a draw says each class of each row; None for plain training."""
        mixture = self.estimator.mixture_
        if method != MIXTURE or not self.is_drawn or np.count_nonzero(mixture) == 1:
            return None
        return total_shares(list(self.codes(name).T), mixture, len(self.estimator.classes_))

    def row_losses(self, split: str) -> dict[str, FloatArray]:
        """Return the probability that methods err on each row of a split."""
        losses, mixture = self._losses(split), self.estimator.mixture_
        found = {FIRST: losses[:, 0].astype(np.float64), AVERAGE: losses.mean(axis=1)}
        if self.is_drawn:
            total = np.zeros(len(losses))
            for model in np.flatnonzero(mixture):
                total += mixture[model] * losses[:, model]
            found[MIXTURE] = np.minimum(total, 1.0)
        return found

    def member_errors(self, split: str) -> list[float]:
        """Return how often each model errs on a split."""
        weights = self.data.part(split).weights
        return [float(np.average(wrong, weights=weights)) for wrong in self._losses(split).T]  # no copy of them all

    def codes(self, name: str) -> AnyArray:
        """Return the place of the class that each model says of each row; of those that are fast the last are kept."""
        is_slow = keeps_answers(self.model)
        known: AnyArray | None = self.kept(name, "iu") if is_slow else self._found.get(name)
        if known is None:
            part = self.data.part(name)
            known = self.estimator.pool().ask(seen_by_last(self.model, part.X), len(part))
            if is_slow:
                self.data.said[name] = known
            else:
                self._found = {name: known}
        return known

    def _losses(self, split: str) -> AnyArray:
        """Return where each model errs on a split."""
        return failures(self.codes(split), np.searchsorted(self.estimator.classes_, self.data.part(split).labels))


class AskedRules(AskedModel):
    """Rules of scores; plain training is the first model that scores, at its usual threshold."""

    def says(self, method: str, name: str) -> AnyArray | None:
        """Return the labels that a method gives to rows."""
        return self._decider(method).decide(self.scored(name)[0], seen_by_last(self.model, self.data.part(name).X))

    def shares(self, method: str, name: str) -> FloatArray | None:
        """Return how likely a method says each class of each row, and defers it, over the draws of rules."""
        decider = self._decider(method)
        is_shared = method == MIXTURE and any(map(shares_rows, self.estimator.rules_))
        if not self.is_drawn or not (np.count_nonzero(decider.shares) > 1 or is_shared):
            return None
        if (method, name) not in self._found:
            self._found[method, name] = decider.probabilities(self.scored(name)[0])
        return np.asarray(self._found[method, name])

    def member_errors(self, split: str) -> list[float]:
        """Return how often each rule errs on a split; who defers does not err."""
        (rows, _), rules = self.scored(split), self.estimator.decider()
        part, classes = self.data.part(split), self.estimator.classes_
        labels = np.searchsorted(classes, part.labels)
        said = (rules.shares_by(place, rows) for place in range(rules.shares.size))
        errors = (one[:, : len(classes)].sum(axis=1) - one[np.arange(labels.size), labels] for one in said)
        return [float(np.average(one, weights=part.weights)) for one in errors]

    def _decider(self, method: str) -> Decider:
        """Return the rules, or the first model by itself at its usual threshold."""
        return self.estimator.decider() if method == MIXTURE else self.estimator.usual_decider()  # type: ignore[no-any-return]

    def scored(self, name: str) -> tuple[DecisionRows, AnyArray]:
        """Return rows, and their scores by all models; of those of choice by models that have not seen them."""
        if name not in self._found:
            estimator, X = self.estimator, seen_by_last(self.model, self.data.part(name).X)
            kept = estimator.family_.selection_data
            if name == self.data.chosen_on:
                scores, groups = kept.scores[TRAIN], estimator.groups_.codes_of_each(kept.answers.tables)[TRAIN]
                told = {place: scores[:, place] for place in range(scores.shape[1])}
                rows = DecisionRows(estimator.check_predict_input(X), groups, estimator.pool(), told)
            else:
                known = self.kept(name, "f", kept.scores[TRAIN].shape[2:])
                scores = estimator.pool().ask(estimator.check_predict_input(X), len(X)) if known is None else known
                rows = estimator.rows_to_decide(X, **looked_at(self.data.part(name)), outputs=scores)
                if keeps_answers(self.model):
                    self.data.said[name] = scores
            self._found[name] = rows, scores
        return self._found[name]  # type: ignore[no-any-return]


class AskedCounts(AskedModel):
    """Rules that were asked already, about rows of which those that are alike are there once."""

    def says(self, method: str, name: str) -> AnyArray | None:
        """Return the labels that a method gives to rows, the drawn ones where rows are told apart by them."""
        part = self.data.part(name)
        if method == FIRST:
            return part.told[0]
        return part.drawn if part.drawn is not None else self.data.classes[self._chances(name).argmax(axis=1)]

    def shares(self, method: str, name: str) -> FloatArray | None:
        """Return how likely a draw says each class of each row; None for plain training."""
        is_one = np.count_nonzero(self.estimator.mixture_) == 1
        return None if method != MIXTURE or not self.is_drawn or is_one else self._chances(name)

    def _chances(self, name: str) -> FloatArray:
        said = np.minimum(np.column_stack(self.data.part(name).told[1:]) @ self.estimator.mixture_, 1.0)
        is_positive = self.data.classes == self.data.positive
        return np.asarray(np.where(is_positive, said[:, None], 1.0 - said[:, None]))

    def member_errors(self, split: str) -> list[float]:
        """Return how often each rule errs on a split."""
        part = self.data.part(split)
        is_positive = part.labels == self.data.positive
        return [float(np.average(said != is_positive, weights=part.counts)) for said in part.told[1:]]


def told_by(model: Any, part: RunRows, positive: Any) -> tuple[list[AnyArray], AnyArray]:
    """Return what plain training says of rows and whether each rule says yes, as rows keep it; the drawn decisions."""
    estimator = final_estimator(model)
    rules, usual = estimator.decider(), estimator.usual_decider()
    rows = estimator.rows_to_decide(part.X, **looked_at(part)).with_outputs(range(len(estimator.estimators_)))
    place = estimator.classes_.tolist().index(positive)
    each = [rules.shares_by(number, rows)[:, place].astype(np.int8) for number in range(rules.shares.size)]
    return [usual.decide(rows, part.X), *each], rules.decide(rows, part.X)


_DEFERRED = 2  # beside no and yes


class RunEvaluator:
    """A run with its model, and what it says: every row is asked about once."""

    def __init__(
        self, settings: RunSettings, data: Data, model: Any, goals: tuple[Goal, ...], plain: Any = None
    ) -> None:
        self.settings, self.data, self.model, self.goals = settings, data, model, goals
        self.estimator, self.is_mixture, self.problem = final_estimator(model), mixes(model), _aim_of(model)
        are_counted = bool(data.splits) and all(part.counts is not None for part in data.splits.values())
        mixture = AskedRules if has_rules(model) else AskedModels if self.is_mixture else AskedModel
        self.asked: AskedModel = (AskedCounts if are_counted else mixture)(model, data, plain)
        self.is_drawn, self.deferral = self.asked.is_drawn, self.asked.deferral
        self._said: dict[tuple[str, str], AnyArray | None] = {}
        self._audits: dict[tuple[str, str, tuple[Goal, ...]], Audit] = {}

    def row(
        self, method: str, quantity: str, split: str, value: float, settings: str = "", alpha: float | None = None
    ) -> ResultRow:
        """Return one number as a row of the results table."""
        learner = self.settings.method.learner
        where = (self.settings.seed, alpha, quantity, split, float(value), settings)
        return ResultRow("run", self.data.name, learner.name if learner else "", method, *where)

    def decisions(self, name: str) -> AnyArray:
        """Return what the model decides about a split or an extra dataset, drawn where it draws."""
        return np.asarray(self.says(MIXTURE, name))

    def draws(self, method: str, names: Iterable[str]) -> bool:
        """Tell whether another key would change what a method decides about some of the rows."""
        return method != DEPLOYED and any(self.asked.shares(method, name) is not None for name in names)

    def says(self, method: str, name: str) -> AnyArray | None:
        """Return the labels that a method gives to rows, asked once; None where there is no such method."""
        if (method, name) not in self._said:
            deployed = method == DEPLOYED
            self._said[method, name] = self.data.part(name).baseline if deployed else self.asked.says(method, name)
        return self._said[method, name]

    def shares(self, method: str, name: str) -> FloatArray | None:
        """Return how likely a method says each answer about each row; None where it says nothing about them."""
        shares = None if method == DEPLOYED else self.asked.shares(method, name)
        if shares is not None:
            return shares
        said = self.says(method, name)
        if said is None:
            return None
        classes = self.data.classes
        answers = classes if self.deferral is None else with_label(classes, self.deferral.label)
        is_said: BoolArray = np.asarray(said[:, None] == answers)
        return is_said.astype(np.float64)

    def all_shares(self, split: str) -> dict[str, FloatArray]:
        """Return the same of rows of a split for every method that says something about them."""
        found = {method: self.shares(method, split) for method in (MIXTURE, FIRST, DEPLOYED)}
        return {method: shares for method, shares in found.items() if shares is not None}

    def deferred(self, method: str, name: str) -> FloatArray | None:
        """Return how likely a method defers each row; None where nothing is deferred."""
        shares = None if self.deferral is None or method == AVERAGE else self.shares(method, name)
        return None if shares is None else np.asarray(shares[:, -1])

    @property
    def classes(self) -> dict[str, Any]:
        """Return the classes, the positive one and what is said of deferred rows, as rates are told of them."""
        deferred = None if self.deferral is None else self.deferral.label
        return {"classes": self.data.classes, "pos_label": self.data.positive, "defer_label": deferred}

    def row_losses(self, split: str) -> dict[str, FloatArray]:
        """Return for each method the loss that it expects on each row of a split: 1 for an error."""
        found = self.asked.row_losses(split)
        told = {method: self.says(method, split) for method in (MIXTURE, FIRST, DEPLOYED) if method not in found}
        found |= {method: self.lost(said, split) for method, said in told.items() if said is not None}
        return {method: found[method] for method in (MIXTURE, FIRST, AVERAGE, DEPLOYED) if method in found}

    def lost(self, said: AnyArray, split: str) -> FloatArray:
        """Return 1 for each wrong answer, and for deferred rows their cost."""
        lost: FloatArray = np.asarray(said != self.data.splits[split].labels).astype(np.float64)
        if self.deferral is not None:
            lost[where_equal(said, self.deferral.label)] = self.deferral.cost
        return lost

    def tables(self, names: Iterable[str], split: str) -> dict[str, Table]:
        """Return the datasets that goals name, with a split in the place of ``train``."""
        return {name: self.data.part(_place(name, split)).table() for name in names}

    def can_say(self, method: str, split: str, goals: Iterable[Goal]) -> bool:
        """Tell whether a method answers for all rows that goals use, with a split in the place of ``train``."""
        names = {_place(name, split) for goal in goals for name in goal.datasets}
        return all(self.shares(method, name) is not None for name in names)

    def audit(self, split: str, goals: Iterable[Goal], method: str = MIXTURE) -> Audit:
        """Return the audit of a method, with a split in the place of ``train``, in expectation over its draws.

        That of the model is made once; of the others, whose estimates alone are told, the bounds are quick ones.
        """
        asked = tuple(goals)
        if (split, method, asked) not in self._audits:
            is_drawn = self.draws(method, [_place(name, split) for goal in asked for name in goal.datasets])
            says, kind = (self.shares, "probabilities") if is_drawn else (self.says, "labels")
            self._audits[split, method, asked] = self._audit_of(says, method, asked, split, kind=kind)
        return self._audits[split, method, asked]

    def audit_drawn(self, split: str, goals: Iterable[Goal]) -> Audit:
        """Return the audit of the drawn decisions, with a split in the place of ``train``: another key gives others."""
        return self._audit_of(self.says, MIXTURE, tuple(goals), split)

    def _audit_of(self, says: Any, method: str, goals: tuple[Goal, ...], split: str, *, kind: str = "labels") -> Audit:
        names = dict.fromkeys(name for goal in goals for name in goal.datasets)
        said = {name: says(method, _place(name, split)) for name in names}
        prepared = prepare(said, self.tables(said, split), kind=kind, **self.classes)
        return audit_predictions(add_confidence(goals, self.settings.confidence), prepared, quick=method != MIXTURE)

    def risk_value(self, risk: Risk, losses: FloatArray, split: str) -> float:
        """Return a risk of losses on a split; a calibrated one has the radius of the rows it was chosen on."""
        part, chosen_on = self.data.splits[split], self.estimator.selection_
        codes = groups_of(part.groups, len(part))[0] if part.groups else None
        size = row_count(chosen_on), chosen_on.losses.shape[1]
        return risk.bind(RiskRows(*size, lambda names: groups_by(names, part.table(), codes))).value(losses, part.mass)

    def expected_objective(self, rate: Any, method: str, split: str) -> float | None:
        """Return a rate in expectation over the draws; None where the method or the rows have none."""
        said = {name: self.shares(method, _place(name, split)) for name in rate.datasets}
        if any(shares is None for shares in said.values()):
            return None
        try:
            return float(rate.at(prepare(said, self.tables(said, split), kind="probabilities", **self.classes)))
        except ValueError:  # a rate has no value on a split that lacks the rows it is out of
            return None

    def rates(self, split: str) -> RateTable:
        """Return the rates of all groups in expectation; where no class is the positive one, how often answers err."""
        positive, part = self.data.positive, self.data.splits[split]
        told: Any = {"sample_weight": part.weights, "counts": part.counts, "pos_label": True}
        told["classes"] = [False, True]  # the rows may all be right
        own = part.labels if positive is None else np.full(len(part), positive)
        shares = self.shares(MIXTURE, split)
        assert shares is not None  # noqa: S101 - the model decides about all rows
        chances = shares[np.arange(len(own)), np.searchsorted(self.data.classes, own)]
        if positive is None:
            truth = np.ones(len(part), dtype=np.bool_)
            told["rates"] = ["error_rate"]
        else:
            truth = part.labels == positive
            told["baseline"] = None if part.baseline is None else part.baseline == positive
        if self.deferral is not None:
            rates = ["defer_rate", "decided_error_rate", *told.get("rates", TABLE_METRICS)]
            told |= {"defer_label": _DEFERRED, "rates": rates}
        if self.draws(MIXTURE, [split]):
            said = chances if self.deferral is None else np.column_stack([chances, shares[:, -1]])
            return rate_table(said, truth, part.groups or None, kind="probabilities", **told)
        is_said = chances > 0
        codes = is_said if self.deferral is None else np.where(shares[:, -1] > 0, _DEFERRED, is_said)
        return rate_table(codes, truth, part.groups or None, **told)


def _aim_of(model: Any) -> Risk | Rate | None:
    """Return what a model was chosen or trained to make small; None where that is the method's own."""
    estimator = final_estimator(model)
    if mixes(model):
        is_chosen = getattr(estimator, "mixture", "optimal") == "optimal"
        return estimator.problem().objective if is_chosen else None
    if hasattr(estimator, "objective_value_"):  # trained inside goals, for the error unless another rate is named
        return error_rate(Dataset("train")) if estimator.objective is None else as_objective(estimator.objective)
    return None


def _place(name: str, split: str) -> str:
    return split if name == TRAIN else name
