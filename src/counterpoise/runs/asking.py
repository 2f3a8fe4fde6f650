"""How the models of a run are asked about its rows: one model, a mixture of models, or rules of scores."""

from typing import Any

import numpy as np

from counterpoise._base.types import AnyArray, FloatArray
from counterpoise.mixtures.members import AskedRows, Mixture
from counterpoise.mixtures.pool import failures
from counterpoise.runs.data import Data, Part
from counterpoise.runs.fitting import has_rules, last_step, looked_at, mixes, seen_by_last
from counterpoise.runs.quantities import AVERAGE, FIRST, MIXTURE


class AskedModel:
    """A model that is no mixture, and plain training beside it."""

    def __init__(self, model: Any, data: Data, plain: Any = None) -> None:
        self.model, self.data, self.plain, self.estimator = model, data, plain, last_step(model)

    @property
    def is_drawn(self) -> bool:
        """Tell whether answers are drawn."""
        return hasattr(self.estimator, "mixture_") and self.estimator.decision in ("sticky", "sample")

    def part(self, name: str) -> Part:
        """Return the rows of a split or an extra dataset."""
        return {**self.data.splits, **self.data.extra}[name]

    def says(self, method: str, name: str) -> AnyArray | None:
        """Return the labels that a method gives to rows; None where there is no such method."""
        asked = {MIXTURE: self.model, FIRST: self.plain}[method]
        return None if asked is None else np.asarray(asked.predict(self.part(name).X))

    def shares(self, method: str, name: str) -> FloatArray | None:  # noqa: ARG002 - others draw
        """Return how likely a method says each class of each row; None where it does not draw."""
        return None

    def row_losses(self, split: str) -> dict[str, FloatArray]:  # noqa: ARG002 - as above
        """Return the probability that methods err on each row of a split, where it is not told by their answers."""
        return {}

    def member_errors(self, split: str) -> list[float]:  # noqa: ARG002 - as above
        """Return how often each model or rule of a mixture errs on a split."""
        return []

    def _lost(self, shares: FloatArray, split: str) -> FloatArray:
        """Return how likely rows are not given their own label."""
        labels = np.searchsorted(self.data.classes, self.part(split).labels)
        return np.asarray(1.0 - shares[np.arange(labels.size), labels])


class AskedModels(AskedModel):
    """A mixture of models; plain training is the first of them."""

    _found: tuple[str, AnyArray] | None = None  # the split whose losses were found last

    def says(self, method: str, name: str) -> AnyArray | None:
        """Return the labels that a method gives to rows."""
        part = self.part(name)
        if method == MIXTURE:
            return np.asarray(self.model.predict(part.X))
        return np.asarray(self.estimator.estimators_[0].predict(seen_by_last(self.model, part.X)))

    def shares(self, method: str, name: str) -> FloatArray | None:
        """Return how likely a draw says each class of each row; None for plain training."""
        is_drawn = method == MIXTURE and self.is_drawn
        return np.asarray(self.model.predict_proba(self.part(name).X)) if is_drawn else None

    def row_losses(self, split: str) -> dict[str, FloatArray]:
        """Return the probability that methods err on each row of a split."""
        losses = self._losses(split)
        found = {FIRST: losses[:, 0].astype(np.float64), AVERAGE: losses.mean(axis=1)}
        return found | ({MIXTURE: _expected(losses, self.estimator.mixture_)} if self.is_drawn else {})

    def member_errors(self, split: str) -> list[float]:
        """Return how often each model errs on a split."""
        found: list[float] = self._losses(split).mean(axis=0).tolist()
        return found

    def _losses(self, split: str) -> AnyArray:
        """Return where each model errs on a split."""
        if self._found is None or self._found[0] != split:
            part, pool = self.data.splits[split], self.estimator._pool()  # noqa: SLF001 - of our own kind
            codes = pool.codes(seen_by_last(self.model, part.X), len(part), None)
            self._found = split, failures(codes, np.searchsorted(pool.classes, part.labels))
        return self._found[1]


class AskedRules(AskedModel):
    """Rules of scores; plain training is the first model that scores, at its usual threshold."""

    def __init__(self, model: Any, data: Data, plain: Any = None) -> None:
        super().__init__(model, data, plain)
        self._scored: dict[str, AskedRows] = {}

    def says(self, method: str, name: str) -> AnyArray | None:
        """Return the labels that a method gives to rows."""
        asked = self.scored(name)
        return _decider(asked, method).decide(asked.rows, self.part(name).X)

    def shares(self, method: str, name: str) -> FloatArray | None:
        """Return how likely a method says each class of each row, over the draws of rules and of folds."""
        asked = self.scored(name)
        return _decider(asked, method).probabilities(asked.rows) if self.is_drawn else None

    def row_losses(self, split: str) -> dict[str, FloatArray]:
        """Return the probability that methods err on each row of a split."""
        found = {method: self.shares(method, split) for method in (MIXTURE, FIRST)}
        return {method: self._lost(shares, split) for method, shares in found.items() if shares is not None}

    def member_errors(self, split: str) -> list[float]:
        """Return how often each rule errs on a split, whichever fold's model it is of."""
        rows, (pool, shares, _), _ = self.scored(split)
        codes = pool.codes(rows, len(rows.groups), None)
        wrong = failures(codes, np.searchsorted(pool.classes, self.part(split).labels)).mean(axis=0)
        by_fold = shares.reshape(-1, self.estimator.mixture_.size)
        errors: list[float] = (by_fold.sum(axis=1) @ wrong.reshape(by_fold.shape)).tolist()
        return errors

    def scored(self, name: str) -> AskedRows:
        """Return rows with scores and who decides; those of choice have scores of models that have not seen them."""
        if name not in self._scored:
            part, is_of_fit = self.part(name), name == self.data.chosen_on
            ask = self.estimator._asked_rows_of_fit if is_of_fit else self.estimator._asked_rows  # noqa: SLF001
            self._scored[name] = ask(part.X, **({} if is_of_fit else looked_at(part)))
        return self._scored[name]


def _decider(asked: AskedRows, method: str) -> Mixture:
    return asked.rules if method == MIXTURE else asked.usual


def asked_of(model: Any, data: Data, plain: Any) -> AskedModel:
    """Return what asks a model."""
    kind = AskedRules if has_rules(model) else AskedModels if mixes(model) else AskedModel
    return kind(model, data, plain)


def _expected(losses: AnyArray, mixture: FloatArray) -> FloatArray:
    total = np.zeros(len(losses))
    for model in np.flatnonzero(mixture):
        total += mixture[model] * losses[:, model]
    return np.minimum(total, 1.0)
