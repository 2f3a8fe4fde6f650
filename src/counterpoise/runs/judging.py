"""What a fitted model, and those it is compared with, say of the rows of a run, and where they err.

Where decisions are drawn, every number is an expectation over the draws, and does not depend on the secret key of the
run. What the drawn decisions themselves come to is told by ``Judge.audit_drawn``, and kept apart.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from counterpoise._base.types import AnyArray, BoolArray, FloatArray
from counterpoise.auditing.audit import Audit, audit_prepared, confident
from counterpoise.goals import Dataset, Goal, Rate, Table, as_objective, error_rate
from counterpoise.goals.binding import prepare
from counterpoise.goals.classes import where_equal
from counterpoise.goals.rates import TABLED
from counterpoise.metrics import RateTable, rate_table
from counterpoise.mixtures.choosing import groups_by, row_count
from counterpoise.mixtures.members import with_label
from counterpoise.mixtures.pool import groups_of
from counterpoise.runs.asking import asked_of
from counterpoise.runs.data import Data, Part
from counterpoise.runs.fitted import last_step, mixes
from counterpoise.runs.quantities import AVERAGE, DEPLOYED, FIRST, MIXTURE, TRAIN
from counterpoise.runs.settings import RunSettings
from counterpoise.theory.risks import Risk, RiskRows

_DEFERRED = 2  # beside no and yes


class Judge:
    """A run with its model, and what it says: every row is asked about once."""

    def __init__(
        self, settings: RunSettings, data: Data, model: Any, goals: tuple[Goal, ...], plain: Any = None
    ) -> None:
        self.settings, self.data, self.model, self.goals = settings, data, model, goals
        self.estimator, self.is_mixture, self.aim = last_step(model), mixes(model), _aim_of(model)
        self.asked = asked_of(model, data, plain)
        self.is_drawn, self.deferral = self.asked.is_drawn, self.asked.deferral
        self._said: dict[tuple[str, str], AnyArray | None] = {}
        self._audits: dict[tuple[str, str, tuple[Goal, ...]], Audit] = {}

    def part(self, name: str) -> Part:
        """Return the rows of a split or an extra dataset."""
        return self.asked.part(name)

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
            self._said[method, name] = self.part(name).baseline if deployed else self.asked.says(method, name)
        return self._said[method, name]

    def shares(self, method: str, name: str) -> FloatArray | None:
        """Return how likely a method says each answer about each row; None where it says nothing about them."""
        shares = None if method == DEPLOYED else self.asked.shares(method, name)
        if shares is not None:
            return shares
        said = self.says(method, name)
        if said is None:
            return None
        is_said: BoolArray = np.asarray(said[:, None] == self._answers)
        return is_said.astype(np.float64)

    def deferred(self, method: str, name: str) -> FloatArray | None:
        """Return how likely a method defers each row; None where nothing is deferred."""
        shares = None if self.deferral is None or method == AVERAGE else self.shares(method, name)
        return None if shares is None else np.asarray(shares[:, -1])

    @property
    def _answers(self) -> AnyArray:
        """Return what may be said: the classes, and behind them that a row is deferred, where some are."""
        return self.data.classes if self.deferral is None else with_label(self.data.classes, self.deferral.label)

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
        return {name: self.part(_place(name, split)).table() for name in names}

    def can_say(self, method: str, split: str, goals: Iterable[Goal]) -> bool:
        """Tell whether a method answers for all rows that goals speak of, with a split in the place of ``train``."""
        names = {_place(name, split) for goal in goals for name in goal.datasets}
        return all(self.shares(method, name) is not None for name in names)

    def audit(self, split: str, goals: Iterable[Goal], method: str = MIXTURE) -> Audit:
        """Return the audit of a method, with a split in the place of ``train``, in expectation over its draws.

        That of the model is made once; of the others, whose estimates alone are told, the bounds are quick ones.
        """
        asked = tuple(goals)
        if (split, method, asked) not in self._audits:
            names = dict.fromkeys(name for goal in asked for name in goal.datasets)
            is_drawn = self.draws(method, [_place(name, split) for name in names])
            says, kind = (self.shares, "probabilities") if is_drawn else (self.says, "labels")
            said = {name: says(method, _place(name, split)) for name in names}
            self._audits[split, method, asked] = self._audit_of(said, asked, split, kind, quick=method != MIXTURE)
        return self._audits[split, method, asked]

    def audit_drawn(self, split: str, goals: Iterable[Goal]) -> Audit:
        """Return the audit of the drawn decisions, with a split in the place of ``train``: another key gives others."""
        asked = tuple(goals)
        names = dict.fromkeys(name for goal in asked for name in goal.datasets)
        return self._audit_of({name: self.says(MIXTURE, _place(name, split)) for name in names}, asked, split)

    def _audit_of(
        self, said: dict[str, Any], goals: tuple[Goal, ...], split: str, kind: str = "labels", *, quick: bool = False
    ) -> Audit:
        prepared = prepare(said, self.tables(said, split), kind=kind, **self.classes)
        return audit_prepared(confident(goals, self.settings.confidence), prepared, quick=quick)

    def risk_value(self, risk: Risk, losses: FloatArray, split: str) -> float:
        """Return a risk of losses on a split; a calibrated one has the radius of the rows it was chosen on."""
        part, chosen_on = self.data.splits[split], self.estimator.selection_
        codes = groups_of(part.groups, len(part))[0] if part.groups else None
        rows = RiskRows(
            row_count(chosen_on), chosen_on.losses.shape[1], lambda names: groups_by(names, part.table(), codes)
        )
        return risk.bind(rows).value(losses, part.mass)

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
            part = part.of_two(positive)
            truth, told["baseline"] = part.labels, part.baseline
        if self.deferral is not None:
            rates = ["defer_rate", "decided_error_rate", *told.get("rates", TABLED)]
            told |= {"defer_label": _DEFERRED, "rates": rates}
        if self.draws(MIXTURE, [split]):
            said = chances if self.deferral is None else np.column_stack([chances, shares[:, -1]])
            return rate_table(said, truth, part.groups or None, kind="probabilities", **told)
        is_said = chances > 0
        codes = is_said if self.deferral is None else np.where(shares[:, -1] > 0, _DEFERRED, is_said)
        return rate_table(codes, truth, part.groups or None, **told)


def _aim_of(model: Any) -> Risk | Rate | None:
    """Return what a model was chosen or trained to make small; None where that is the method's own."""
    estimator = last_step(model)
    if mixes(model):
        is_chosen = getattr(estimator, "mixture", "optimal") == "optimal"
        return estimator._aim().objective if is_chosen else None  # noqa: SLF001 - of our own kind
    if hasattr(estimator, "objective_value_"):  # trained inside goals, for the error unless another rate is named
        return error_rate(Dataset("train")) if estimator.objective is None else as_objective(estimator.objective)
    return None


def _place(name: str, split: str) -> str:
    return split if name == TRAIN else name
