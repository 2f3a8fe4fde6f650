"""What a fitted model, and those it is compared with, say of the rows of a run, and where they err."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from counterpoise._base.types import AnyArray, FloatArray, IntArray
from counterpoise.goals import Dataset, Goal, Rate, Table, as_objective, error_rate
from counterpoise.goals.audit import Audit, audit
from counterpoise.metrics import RateTable, rate_table
from counterpoise.mixtures.pool import failures, group_codes, pool_codes
from counterpoise.runs.data import Data, Part
from counterpoise.runs.fitting import last_step, mixes, seen_by_last
from counterpoise.runs.quantities import AVERAGE, CVAR, DEPLOYED, FIRST, MIXTURE, OWN, TRAIN, WORST_GROUP
from counterpoise.runs.settings import RunSettings
from counterpoise.theory.risks import CVaR, Risk, RiskRows, WorstGroup


class Judge:
    """A run with its model, and what it says: every row is asked about once.

    Goals speak of two classes, the positive one and all others, so that is how labels are shown to them.
    """

    def __init__(
        self, settings: RunSettings, data: Data, model: Any, goals: tuple[Goal, ...], plain: Any = None
    ) -> None:
        self.settings, self.data, self.model, self.goals, self.plain = settings, data, model, goals, plain
        self.estimator, self.is_mixture, self.aim = last_step(model), mixes(model), _aim_of(model)
        self._said: dict[tuple[str, str], AnyArray | None] = {}
        self._asked: tuple[str, AnyArray] | None = None  # the split whose losses were found last, by all models

    def part(self, name: str) -> Part:
        """Return the rows of a split or an extra dataset."""
        return {**self.data.splits, **self.data.extra}[name]

    def decisions(self, name: str) -> AnyArray:
        """Return what the model decides about a split or an extra dataset."""
        return np.asarray(self.says(MIXTURE, name))

    def says(self, method: str, name: str) -> AnyArray | None:
        """Return the labels that a method gives to rows, asked once; None where there is no such method."""
        if (method, name) not in self._said:
            self._said[method, name] = self._ask(method, self.part(name))
        return self._said[method, name]

    def _ask(self, method: str, part: Part) -> AnyArray | None:
        if method == DEPLOYED:
            return part.baseline
        if method == MIXTURE:
            return np.asarray(self.model.predict(part.X))
        if self.is_mixture:
            return np.asarray(self.estimator.estimators_[0].predict(seen_by_last(self.model, part.X)))
        return None if self.plain is None else np.asarray(self.plain.predict(part.X))

    @property
    def is_drawn(self) -> bool:
        """Tell whether answers are drawn from a mixture."""
        return self.is_mixture and self.estimator.decision != "vote"

    def positive_shares(self, method: str, name: str) -> FloatArray | None:
        """Return how likely a method says the positive class of each row; None where it says nothing about them."""
        if method == MIXTURE and self.is_drawn:
            place = self.estimator.classes_.tolist().index(self.data.positive)
            return np.asarray(self.model.predict_proba(self.part(name).X)[:, place])
        said = self.says(method, name)
        return None if said is None else (said == self.data.positive).astype(np.float64)

    def model_losses(self, split: str) -> AnyArray:
        """Return where each model of a mixture errs on a split."""
        if self._asked is None or self._asked[0] != split:
            part, classes = self.data.splits[split], self.estimator.classes_
            pool = self.estimator._pool().members  # noqa: SLF001 - of our own kind
            codes = pool_codes(pool, seen_by_last(self.model, part.X), classes, self.estimator.n_jobs)
            self._asked = split, failures(codes, np.searchsorted(classes, part.labels))
        return self._asked[1]

    def row_losses(self, split: str) -> dict[str, FloatArray]:
        """Return for each method the probability that it errs on each row of a split."""
        labels = self.data.splits[split].labels
        found = {MIXTURE: (self.decisions(split) != labels).astype(np.float64)}
        if self.is_mixture:
            losses = self.model_losses(split)
            if self.is_drawn:
                found[MIXTURE] = _expected(losses, self.estimator.mixture_)
            return found | {FIRST: losses[:, 0].astype(np.float64), AVERAGE: losses.mean(axis=1)}
        first = self.says(FIRST, split)
        return found if first is None else found | {FIRST: (first != labels).astype(np.float64)}

    def tables(self, names: Iterable[str], split: str) -> dict[str, Table]:
        """Return the datasets that goals name, of two classes, with a split in the place of ``train``."""
        return {name: self.part(_place(name, split)).of_two(self.data.positive).table() for name in names}

    def audit(self, split: str, goals: Iterable[Goal], method: str = MIXTURE) -> Audit:
        """Return the audit of what a method decides, with a split in the place of ``train``."""
        asked = list(goals)
        names = dict.fromkeys(name for goal in asked for name in goal.datasets)
        said = {name: self.says(method, _place(name, split)) == self.data.positive for name in names}
        return audit(asked, said, self.tables(names, split), confidence=self.settings.confidence, pos_label=True)

    def expected_objective(self, rate: Any, method: str, split: str) -> float | None:
        """Return a rate in expectation over the draws; None where the method or the rows have none."""
        said = {name: self.positive_shares(method, _place(name, split)) for name in rate.datasets}
        if any(shares is None for shares in said.values()):
            return None
        try:
            return float(rate.expected_value(said, self.tables(said, split), pos_label=True))
        except ValueError:  # a rate has no value on a split that lacks the rows it is out of
            return None

    def risk(self, risk: Risk, losses: FloatArray, split: str) -> float:
        """Return a risk of losses on a split; what is calibrated is so on the rows where the mixture was chosen."""
        part, weights = self.data.splits[split], self.data.splits[self.data.chosen_on].weights

        def codes(names: tuple[str, ...]) -> IntArray:
            return group_codes({name: part.groups[name] for name in names} or part.groups, len(part))[0]

        n_chosen = len(self.data.splits[self.data.chosen_on])
        n_samples = n_chosen if weights is None else float(weights.sum() ** 2 / (weights**2).sum())
        rows = RiskRows(n_samples, len(self.estimator.mixture_), codes)
        return risk.bind(rows).value(losses, part.weights)

    def rates(self, split: str) -> RateTable | tuple[()]:
        """Return the rates of all groups; none where no class is the positive one."""
        positive = self.data.positive
        if positive is None:
            return ()
        part = self.data.splits[split].of_two(positive)
        weighed: Any = {"baseline": part.baseline, "sample_weight": part.weights}
        return rate_table(self.decisions(split) == positive, part.y, part.groups or None, pos_label=True, **weighed)


def _aim_of(model: Any) -> str | Rate | Risk:
    """Return what a model was chosen or trained to make small: one of the words in ``quantities``, a rate or a risk."""
    estimator = last_step(model)
    if mixes(model):
        aim = estimator.objective_ if getattr(estimator, "mixture", "optimal") == "optimal" else OWN
        return CVAR if isinstance(aim, CVaR) else WORST_GROUP if aim == WorstGroup() else aim
    if hasattr(estimator, "objective_value_"):  # trained inside goals, for the error unless another rate is named
        return error_rate(Dataset("train")) if estimator.objective is None else as_objective(estimator.objective)
    return OWN


def _place(name: str, split: str) -> str:
    return split if name == TRAIN else name


def _expected(losses: AnyArray, mixture: FloatArray) -> FloatArray:
    total = np.zeros(len(losses))
    for model in np.flatnonzero(mixture):
        total += mixture[model] * losses[:, model]
    return np.minimum(total, 1.0)
