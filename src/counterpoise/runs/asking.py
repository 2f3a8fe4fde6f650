"""How the models of a run are asked about its rows: one model, a mixture of models, or rules of scores."""

from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import AnyArray, FloatArray
from counterpoise.mixtures.base import DRAWN
from counterpoise.mixtures.members import AskedRows
from counterpoise.mixtures.options import kind_of_decision
from counterpoise.mixtures.pool import failures
from counterpoise.report.sections import Mixture
from counterpoise.runs.data import Data, Part
from counterpoise.runs.fitted import deferral_of, has_rules, keeps_answers, last_step, looked_at, mixes, seen_by_last
from counterpoise.runs.quantities import AVERAGE, FIRST, MIXTURE, TRAIN
from counterpoise.runs.rule_words import shares_rows


class AskedModel:
    """A model that is no mixture, and plain training beside it."""

    def __init__(self, model: Any, data: Data, plain: Any = None) -> None:
        self.model, self.data, self.plain, self.estimator = model, data, plain, last_step(model)
        self.deferral = deferral_of(model)

    @property
    def is_drawn(self) -> bool:
        """Tell whether answers are drawn, if only from one model or rule."""
        return hasattr(self.estimator, "mixture_") and kind_of_decision(self.estimator.decision) in DRAWN

    def part(self, name: str) -> Part:
        """Return the rows of a split or an extra dataset."""
        return {**self.data.splits, **self.data.extra}[name]

    def says(self, method: str, name: str) -> AnyArray | None:
        """Return the labels that a method gives to rows; None where there is no such method."""
        asked = {MIXTURE: self.model, FIRST: self.plain}[method]
        return None if asked is None else np.asarray(asked.predict(self.part(name).X))

    def shares(self, method: str, name: str) -> FloatArray | None:  # noqa: ARG002 - others draw
        """Return how likely a method says each class of each row, and defers it; None where no key changes anything.

        One model, or one rule, decides the same whatever is drawn.
        """
        found: FloatArray | None = getattr(self.model, "chances", None) if method == MIXTURE else None
        return found

    def row_losses(self, split: str) -> dict[str, FloatArray]:
        """Return the loss that methods expect on each row of a split, where it is not told by their answers."""
        shares = self.shares(MIXTURE, split)
        return {} if shares is None else {MIXTURE: self._lost(shares, split)}

    def member_errors(self, split: str) -> list[float]:  # noqa: ARG002 - others have members
        """Return how often each model or rule of a mixture errs on a split."""
        return []

    def kept(self, name: str, kinds: str) -> AnyArray | None:
        """Return what the models were found to say, or score, earlier; None where it is not known."""
        said, shape = self.data.said.get(name), (len(self.part(name)), len(self.estimator.estimators_))
        if said is None or said.shape != shape + self._told_each or said.dtype.kind not in kinds:
            return None
        is_class = said.dtype.kind == "f" or (said.min(initial=0) >= 0 and said.max(initial=0) < len(self.data.classes))
        return said if is_class else None

    @property
    def _told_each(self) -> tuple[int, ...]:
        """Return the shape of what one model says of one row."""
        return ()

    def _lost(self, shares: FloatArray, split: str) -> FloatArray:
        """Return how likely rows are given another label than their own; a deferred row counts with its cost."""
        labels = np.searchsorted(self.data.classes, self.part(split).labels)
        lost = 1.0 - shares[np.arange(labels.size), labels]
        return np.asarray(lost if self.deferral is None else lost - (1.0 - self.deferral.cost) * shares[:, -1])


class AskedModels(AskedModel):
    """A mixture of models; plain training is the first of them."""

    _found: tuple[str, AnyArray] | None = None  # the rows about which all models were asked last

    def says(self, method: str, name: str) -> AnyArray | None:
        """Return the labels that a method gives to rows."""
        part = self.part(name)
        if method == MIXTURE:
            return np.asarray(self.model.predict(part.X))
        return np.asarray(self.estimator.estimators_[0].predict(seen_by_last(self.model, part.X)))

    def shares(self, method: str, name: str) -> FloatArray | None:
        """Return how likely a draw says each class of each row; None for plain training."""
        if method != MIXTURE or not self._draws_models:
            return None
        codes, mixture = self.codes(name), self.estimator.mixture_
        shares, rows = np.zeros((len(codes), len(self.estimator.classes_))), np.arange(len(codes))
        for model in np.flatnonzero(mixture):
            shares[rows, codes[:, model]] += mixture[model]
        return np.minimum(shares, 1.0)

    @property
    def _draws_models(self) -> bool:
        """Tell whether one of several models is drawn for each row."""
        return self.is_drawn and bool(np.count_nonzero(self.estimator.mixture_) > 1)

    def row_losses(self, split: str) -> dict[str, FloatArray]:
        """Return the probability that methods err on each row of a split."""
        losses = self._losses(split)
        found = {FIRST: losses[:, 0].astype(np.float64), AVERAGE: losses.mean(axis=1)}
        return found | ({MIXTURE: _expected(losses, self.estimator.mixture_)} if self.is_drawn else {})

    def member_errors(self, split: str) -> list[float]:
        """Return how often each model errs on a split."""
        weights = self.part(split).weights
        return [float(np.average(wrong, weights=weights)) for wrong in self._losses(split).T]  # no copy of them all

    def codes(self, name: str) -> AnyArray:
        """Return the place of the class that each model says of each row; what was asked last is kept."""
        if self._found is None or self._found[0] != name:
            part, pool = self.part(name), self.estimator._pool()  # noqa: SLF001 - of our own kind
            self._found = name, pool.codes(seen_by_last(self.model, part.X), len(part), None)
        return self._found[1]

    def _losses(self, split: str) -> AnyArray:
        """Return where each model errs on a split."""
        return failures(self.codes(split), np.searchsorted(self.estimator.classes_, self.part(split).labels))


class AskedPool(AskedModels):
    """A mixture of models that are slow to ask: what they said is kept with the data, for any other mixture of them."""

    def says(self, method: str, name: str) -> AnyArray | None:
        """Return the labels that a method gives to rows."""
        if name in self.data.splits and self.kept(name, "iu") is None:  # as its users would ask it: some models only
            return super().says(method, name)
        if method == FIRST:
            return np.asarray(self.data.classes[self.codes(name)[:, 0]])
        mixture, rows = self._told(name)
        return mixture.decide(rows, self.part(name).X)

    def shares(self, method: str, name: str) -> FloatArray | None:
        """Return how likely a draw says each class of each row; None for plain training."""
        if method != MIXTURE or not self._draws_models:
            return None
        mixture, rows = self._told(name)
        return mixture.probabilities(rows)

    def codes(self, name: str) -> AnyArray:
        """Return the place of the class that each model says of each row, asked once."""
        known = self.kept(name, "iu")
        if known is None:
            part, pool = self.part(name), self.estimator._pool()  # noqa: SLF001 - of our own kind
            known = self.data.said[name] = pool.codes(part.X, len(part), None)
        return known

    def _told(self, name: str) -> tuple[Mixture, Any]:
        told: tuple[Mixture, Any] = self.estimator._told_rows(self.part(name).X, self.codes(name))  # noqa: SLF001
        return told

    def _losses(self, split: str) -> AnyArray:
        return failures(self.codes(split), np.searchsorted(self.data.classes, self.part(split).labels))


class AskedRules(AskedModel):
    """Rules of scores; plain training is the first model that scores, at its usual threshold."""

    def __init__(self, model: Any, data: Data, plain: Any = None) -> None:
        super().__init__(model, data, plain)
        self._scored: dict[str, AskedRows] = {}
        self._shares: dict[tuple[str, str], FloatArray] = {}

    def says(self, method: str, name: str) -> AnyArray | None:
        """Return the labels that a method gives to rows."""
        asked = self.scored(name)
        return _decider(asked, method).decide(asked.rows, self._features(name))

    def shares(self, method: str, name: str) -> FloatArray | None:
        """Return how likely a method says each class of each row, and defers it, over the draws of rules."""
        asked = self.scored(name)
        decider = _decider(asked, method)
        if not self.is_drawn or not (np.count_nonzero(decider.shares) > 1 or _shares_rows(decider)):
            return None
        if (method, name) not in self._shares:
            self._shares[method, name] = decider.probabilities(asked.rows)
        return self._shares[method, name]

    def row_losses(self, split: str) -> dict[str, FloatArray]:
        """Return the loss that methods expect on each row of a split."""
        found = {method: self.shares(method, split) for method in (MIXTURE, FIRST)}
        return {method: self._lost(shares, split) for method, shares in found.items() if shares is not None}

    def member_errors(self, split: str) -> list[float]:
        """Return how often each rule errs on a split; who defers does not err."""
        (rows, mixture, _), part = self.scored(split), self.part(split)
        labels = np.searchsorted(mixture.pool.classes, part.labels)
        each, n_classes = np.arange(labels.size), len(mixture.pool.classes)
        said = (mixture.shares_by(place, rows) for place in range(mixture.shares.size))
        errors = (one[:, :n_classes].sum(axis=1) - one[each, labels] for one in said)
        return [float(np.average(one, weights=part.weights)) for one in errors]

    @property
    def _told_each(self) -> tuple[int, ...]:
        """Return the shape of what one model says of one row: a score, or a probability for each class."""
        shape: tuple[int, ...] = self.estimator._scored.scores[TRAIN].shape[2:]  # noqa: SLF001 - of our own kind
        return shape

    def scored(self, name: str) -> AskedRows:
        """Return rows with scores and who decides; those of choice have scores of models that have not seen them."""
        if name not in self._scored:
            estimator, X = self.estimator, self._features(name)
            if name == self.data.chosen_on:
                self._scored[name] = estimator._asked_rows_of_fit(X)  # noqa: SLF001 - of our own kind
            else:
                looked, known = looked_at(self.part(name)), self.kept(name, "f")
                found = estimator._asked_rows(X, **looked, scores=known)  # noqa: SLF001 - as above
                self._scored[name] = found
                if keeps_answers(self.model):
                    self.data.said[name] = found.rows.scores
        return self._scored[name]

    def _features(self, name: str) -> Any:
        """Return rows as the models take them."""
        return seen_by_last(self.model, self.part(name).X)


class AskedCounts(AskedModel):
    """Rules that were asked already, about rows of which those that are alike are there once."""

    def says(self, method: str, name: str) -> AnyArray | None:
        """Return the labels that a method gives to rows, the drawn ones where rows are told apart by them."""
        part = self.part(name)
        if method == FIRST:
            return part.told[0]
        return part.drawn if part.drawn is not None else self.data.classes[self._chances(name).argmax(axis=1)]

    def shares(self, method: str, name: str) -> FloatArray | None:
        """Return how likely a draw says each class of each row; None for plain training."""
        is_one = np.count_nonzero(self.estimator.mixture_) == 1
        return None if method != MIXTURE or not self.is_drawn or is_one else self._chances(name)

    def _chances(self, name: str) -> FloatArray:
        said = np.minimum(np.column_stack(self.part(name).told[1:]) @ self.estimator.mixture_, 1.0)
        is_positive = self.data.classes == self.data.positive
        return np.asarray(np.where(is_positive, said[:, None], 1.0 - said[:, None]))

    def member_errors(self, split: str) -> list[float]:
        """Return how often each rule errs on a split."""
        part = self.part(split)
        is_positive = part.labels == self.data.positive
        return [float(np.average(said != is_positive, weights=part.counts)) for said in part.told[1:]]


class Told(NamedTuple):
    """What is said of rows: by plain training, and whether each rule says yes, as ``Part.told`` keeps it; the drawn."""

    by_each: list[AnyArray]
    drawn: AnyArray


def told_by(model: Any, part: Part, positive: Any) -> Told:
    """Return what plain training and rules say of rows, and the drawn decisions."""
    rows, rules, usual = last_step(model)._asked_rows(part.X, **looked_at(part))  # noqa: SLF001 - of our own kind
    place = rules.pool.classes.tolist().index(positive)
    each = [rules.shares_by(number, rows)[:, place].astype(np.int8) for number in range(rules.shares.size)]
    return Told([usual.decide(rows, part.X), *each], rules.decide(rows, part.X))


def _shares_rows(decider: Mixture) -> bool:
    """Tell whether a rule of class probabilities shares rows among classes."""
    rules = (getattr(member, "rule", None) for member in decider.pool.members)
    return any(rule is not None and shares_rows(rule) for rule in rules)


def _decider(asked: AskedRows, method: str) -> Mixture:
    return asked.rules if method == MIXTURE else asked.usual


def asked_of(model: Any, data: Data, plain: Any) -> AskedModel:
    """Return what asks a model."""
    if data.splits and all(part.counts is not None for part in data.splits.values()):
        return AskedCounts(model, data, plain)
    if has_rules(model):
        return AskedRules(model, data, plain)
    kind = AskedPool if keeps_answers(model) else AskedModels if mixes(model) else AskedModel
    return kind(model, data, plain)


def _expected(losses: AnyArray, mixture: FloatArray) -> FloatArray:
    total = np.zeros(len(losses))
    for model in np.flatnonzero(mixture):
        total += mixture[model] * losses[:, model]
    return np.minimum(total, 1.0)
