"""Rounds that train what the goals still lack: column generation for the mixture problem with goals.

The best mixture of the models so far has a dual: weights of the labelled rows, from the risk, and a multiplier for each
limit of the goals. They price every answer about every row (``stage``), and a model of the least price improves the
mixture most. If the learner finds the best model of its class, that price bounds what any mixture of the class can
reach (Demiriz, Bennett, Shawe-Taylor 2002 for boosting; Agarwal et al. 2018 train inside goals without the program).

Where the models so far cannot meet the goals, the multipliers that prove it are priced alone: a model that does not
keep the proof helps, and where none is found the goals are out of the learner's reach. Until one does not
help, the rows' own losses are asked for beside the proof: it names few goals at a time, and a model that is fitted to
them alone knows nothing else. Ten goals, a recall for each digit of MNIST, took a small network 12 rounds so, and 55
by the proof alone.

The level bundle method ends at weights in the middle of what is optimal, which keeps them from jumping: on stumps with
three goals it needed 10 to 25 % fewer rounds than corners of the linear program. In-out smoothing saved up to another
10 % with an exact learner and doubled the rounds with gradient boosting, entropy at the mixture lost most of the gap;
so there is neither.
"""

import hashlib
from typing import Any, NamedTuple, Protocol

import numpy as np

from counterpoise._base.types import AnyArray, FloatArray, IntArray
from counterpoise.boosting.cross_fit import RoundsFit
from counterpoise.boosting.inputs import unequal
from counterpoise.boosting.learner import Question
from counterpoise.boosting.rounds import IMPROVEMENT, Fitted, History, Standing
from counterpoise.boosting.stage import Stage, question_of
from counterpoise.mixtures.goal_rows import GoalRows
from counterpoise.solvers import minimize_cvar, minimize_risk
from counterpoise.solvers.linear_program import InfeasibleRows, MixtureSolution
from counterpoise.solvers.tail import GrowingMixture, minimize_linear
from counterpoise.theory.risks import Risk

_TOL = 5e-4  # gap of the mixture of the models so far, as a part of the objective's size: below what counts ...
_ROUGH, _FAR = 1e-3, 0.01  # ... or twice that, as long as the bound is so far away that the next model matters more
_LESS = 0.01  # part of the violation that a model must take away to help
_TRIES = 2  # rounds without help after which a learner with randomness ends; one without would repeat itself


class InsideFit:
    """Fit the model of a round to what each answer costs."""

    def __init__(self, fit: RoundsFit, stage: Stage) -> None:
        self.fit, self.stage = fit, stage
        self.prepared, self.is_random = fit.prepared, fit.is_random

    def __call__(self, weights: FloatArray, number: int) -> Fitted:
        """Return the model, given costs of answers, or in the first round the labelled rows' own weights."""
        costs = self.stage.costs(weights) if weights.ndim == 1 else weights
        asked = question_of(costs) or Question(self.stage.rows.codes, self.stage.rows.weights)
        model, said, scores = self.fit.answer(asked, number)
        wrong = float(asked.weights @ ((said if asked.rows is None else said[asked.rows]) != asked.codes))
        return Fitted(model, self.stage.losses(said), said=said, weighted_loss=wrong, scores=scores)


class Priced(NamedTuple):
    """The dual of the program of the models so far."""

    costs: FloatArray  # of answers
    constant: float  # that belongs to them: the price of a model is the constant and the cost of what it says
    weights: FloatArray | None  # of the labelled rows; None where goals alone are priced, or a rate is minimized
    multipliers: FloatArray  # of the limits
    value: float  # what the price of a helping model is below: the least risk so far, or the violation
    is_feasible: bool
    is_rough: bool = False  # a finer solve would ask another question


class Program:
    """The mixture problem of the models so far, under goals on the rows of a stage."""

    def __init__(self, stage: Stage, objective: "Objective") -> None:
        self.stage, self.objective = stage, objective
        self.goals: GoalRows | None = None
        self._proven = -np.inf  # the largest price of a model
        self._least = np.inf  # risk so far
        self._may_differ = False  # another solve may lead to another model
        self._is_eased = True  # where goals are missed, the rows' own losses are asked for beside them
        self.n_idle = 0  # rounds in a row whose model was of no help
        self._priced: Priced | None = None
        self._seen: set[bytes] = set()  # what each model says, as a checksum

    @property
    def bound(self) -> float:
        """Return what no mixture has less risk than, if the learner is exact; one that gets below it is not."""
        return min(self._proven, self._least)

    @property
    def standing(self) -> Standing:
        """Return how the mixture of the models so far stands; after ``price``."""
        assert self._priced is not None  # noqa: S101 - as said
        priced = self._priced
        if priced.is_feasible:
            return Standing(priced.value, 0.0, self.bound)
        return Standing(np.inf, priced.value, self.bound)

    def add(self, said: AnyArray, losses: AnyArray) -> None:
        """Take note of the model of a round, and of what it proves."""
        column, checksum = self.stage.goal_rows(said), hashlib.sha256(said.tobytes()).digest()
        if self._priced is not None:
            helps = self._helps(self._priced, said, losses, column)
            self.n_idle = self._idle_after(helps=helps, is_known=checksum in self._seen)
            self._is_eased &= helps
            self._may_differ = self._priced.is_rough
        self._seen.add(checksum)
        self.goals = column if self.goals is None else self.goals.beside(column)
        self.objective.add(said, losses)
        self._priced = None

    def _idle_after(self, *, helps: bool, is_known: bool) -> int:
        assert self._priced is not None  # noqa: S101 - a model was asked for
        if helps or (self._is_eased and not self._priced.is_feasible):  # the proof alone is not asked for yet
            return 0
        return _TRIES if is_known else self.n_idle + 1

    def _helps(self, priced: Priced, said: AnyArray, losses: AnyArray, column: GoalRows) -> bool:
        """Tell whether a model can improve the mixture, and take note of the bound that its price is."""
        price = self._price(priced, said, losses, column)
        if not priced.is_feasible:
            return price < (1 - _LESS) * priced.value
        self._proven = max(self._proven, price)
        return price < priced.value - IMPROVEMENT * self.objective.size

    def _price(self, priced: Priced, said: AnyArray, losses: AnyArray, column: GoalRows) -> float:
        """Return the Lagrangian of one model."""
        missed = float(priced.multipliers @ (column.rows[:, 0] - column.bounds))
        if not priced.is_feasible:
            return missed
        return missed + priced.constant + self.objective.of_model(priced.weights, said, losses)

    def is_over(self, *, is_random: bool) -> bool:
        """Tell whether the learner finds no model that helps."""
        return self.n_idle >= (_TRIES if is_random or self._may_differ else 1)

    def price(self, history: History) -> FloatArray:
        """Return the costs of answers by the dual of the models so far: a rule for the next round."""
        if self._priced is None:
            self._priced = self._solved(history)
        return self._priced.costs

    def _tol(self) -> float:
        """Return the gap to solve to, as a part of the objective's size."""
        return _ROUGH if self.n_idle == 0 and self._least - self.bound > _FAR * self.objective.size else _TOL

    def _solved(self, history: History) -> Priced:
        assert self.goals is not None  # noqa: S101 - a round is done
        limits, tol = self.goals.as_limits(), self._tol()
        try:
            found = self.objective.solve(history, limits, tol * self.objective.size)
        except InfeasibleRows as error:
            costs = self.stage.costs(history.start if self._is_eased else None, error.multipliers)
            return Priced(costs, 0.0, None, error.multipliers, error.violation, is_feasible=False)
        self._least = found.value
        costs = self.objective.costs(self.stage, found)
        known = found.offset, found.weights, found.multipliers, found.value
        return Priced(costs, *known, is_feasible=True, is_rough=tol > _TOL)


class Objective(Protocol):
    """What is minimized over mixtures of the models so far."""

    size: float  # its scale, which tolerances are parts of

    def add(self, said: AnyArray, losses: AnyArray) -> None:
        """Take note of a model."""

    def solve(self, history: History, limits: dict[str, Any], tol: float) -> MixtureSolution:
        """Return the best mixture, with weights of the labelled rows, or raise ``InfeasibleRows``."""

    def costs(self, stage: Stage, found: MixtureSolution) -> FloatArray:
        """Return what each answer costs by the dual."""

    def of_model(self, weights: FloatArray | None, said: AnyArray, losses: AnyArray) -> float:
        """Return the part of a model's price that is not the goals'."""


class _RiskOfRows:
    """A risk of the losses on the labelled rows."""

    size = 1.0

    def add(self, said: AnyArray, losses: AnyArray) -> None:
        """Look at the history instead."""

    def costs(self, stage: Stage, found: MixtureSolution) -> FloatArray:
        return stage.costs(found.weights, found.multipliers)

    def of_model(self, weights: FloatArray | None, said: AnyArray, losses: AnyArray) -> float:  # noqa: ARG002
        assert weights is not None  # noqa: S101 - of a risk
        return float(weights @ losses)


class AnyRisk(_RiskOfRows):
    """Any convex risk, solved from the losses alone."""

    def __init__(self, risk: Risk) -> None:
        self.risk, self.size = risk, risk.size

    def solve(self, history: History, limits: dict[str, Any], tol: float) -> MixtureSolution:
        return minimize_risk(history.losses, self.risk, sample_weight=unequal(history.start), tol=tol, **limits)


class Tail(_RiskOfRows):
    """A CVaR, with the cuts of the round before."""

    def __init__(self, alpha: float) -> None:
        self.mixture = GrowingMixture(alpha)

    def solve(self, history: History, limits: dict[str, Any], tol: float) -> MixtureSolution:
        self.mixture.tol = tol
        return self.mixture.solve(history.losses, sample_weight=unequal(history.start), **limits)


class GroupMeans(_RiskOfRows):
    """The largest mean loss of some groups of rows; of one group the mean loss."""

    def __init__(self, groups: IntArray) -> None:
        self.groups, self._start = groups, np.empty(0)
        self._means = np.empty((0, 0))

    def solve(self, history: History, limits: dict[str, Any], tol: float) -> MixtureSolution:  # noqa: ARG002 - exact
        means = self._means_of(history)
        found = (
            minimize_linear(means[0], **limits) if len(means) == 1 else minimize_cvar(means, 1 / len(means), **limits)
        )
        return found._replace(weights=self._shares * found.weights[self._codes])

    def _means_of(self, history: History) -> FloatArray:
        """Return the means of groups that weigh anything, those of models that are known already as they were."""
        n_known = self._means.shape[1] if np.array_equal(self._start, history.start) else 0
        if n_known == 0:
            self._start, totals = history.start, np.bincount(self.groups, history.start)
            weighs = history.start > 0
            self._shares = np.divide(history.start, totals[self.groups], out=np.zeros(weighs.size), where=weighs)
            self._codes = (np.cumsum(totals > 0) - 1)[self.groups]
            self._means = np.empty((int((totals > 0).sum()), 0))
        columns = [
            np.bincount(self._codes, self._shares * losses, len(self._means)) for losses in history.losses.T[n_known:]
        ]
        self._means = np.column_stack([self._means, *columns])
        return self._means


class OfRate:
    """A rate, on rows of any dataset."""

    def __init__(self, stage: Stage, size: float) -> None:
        self.stage, self.size, self._rates = stage, size, np.empty(0)

    def add(self, said: AnyArray, losses: AnyArray) -> None:  # noqa: ARG002 - for those that ask
        self._rates = np.append(self._rates, self.stage.rate(said))

    def solve(self, history: History, limits: dict[str, Any], tol: float) -> MixtureSolution:  # noqa: ARG002 - as above
        return minimize_linear(self._rates, **limits)

    def costs(self, stage: Stage, found: MixtureSolution) -> FloatArray:
        return stage.costs(None, found.multipliers, of_rate=1.0)

    def of_model(self, weights: FloatArray | None, said: AnyArray, losses: AnyArray) -> float:  # noqa: ARG002
        return self.stage.rate(said)
