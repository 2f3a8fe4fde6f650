"""Rounds that train what the goals still lack: column generation for the mixture problem with goals.

The best mixture of the models so far has a dual: weights of the labelled rows, from the risk, and a multiplier for each
limit of the goals. They price every answer about every row (``Stage``), and a model of the least price improves the
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

A ``Stage`` holds the rows of all datasets that goals use, and says what each answer about each row costs. With
weights ``w`` of the labelled rows, from the risk, and multipliers ``m >= 0`` of the goals' limits, whose signed weights
on the answers are ``A``, the Lagrangian of a mixture is linear in it, so that a single model minimizes it. To call row
i of class k costs

    cost[k, i] = w_i [k is not its label] + sum over limits of m_l A_l[k, i],

where unlabelled rows of other datasets have the second part only. Row i then enters the training with every label k at
the weight ``max over classes of cost[:, i] - cost[k, i]``: then the weighted error of a model is its cost but for a
constant, whatever the number of classes. Of two classes that is one label for each row, by the sign of the difference.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from counterpoise._base.types import AnyArray, FloatArray, IntArray
from counterpoise.boosting.inputs import CheckedRows, unequal
from counterpoise.boosting.learner import Question, RoundsFit
from counterpoise.boosting.rounds import IMPROVEMENT, Fitted, History, Standing
from counterpoise.goals import Goal, InfeasibleGoals, Rate, Table
from counterpoise.goals.binding import BoundRates, bind_rates
from counterpoise.rules.choosing import Problem
from counterpoise.rules.goal_rows import TRAIN, Answers, GoalRows, Positive, TalliedGoals
from counterpoise.rules.rows import n_rows, stack_rows
from counterpoise.solvers import minimize_cvar, minimize_risk
from counterpoise.solvers.linear_program import InfeasibleRows, MixtureSolution
from counterpoise.solvers.tail import GrowingMixture, minimize_linear
from counterpoise.theory.risks import Risk, WorstOfGroups

_BINARY = 2


class Stage(NamedTuple):
    """Labelled rows and below them those of other datasets, with the goals as signed weights on their answers."""

    rows: CheckedRows  # of all datasets; those of others weigh nothing by themselves
    labelled: CheckedRows
    answers: Answers  # the tables, before any model has answered
    places: dict[str, slice]  # of the rows of each dataset
    goals: TalliedGoals
    limits: BoundRates  # the goals as signed weights on answers
    objective: BoundRates | None  # where a rate is minimized

    @classmethod
    def of(
        cls,
        labelled: CheckedRows,
        others: Mapping[str, Any],
        tables: Mapping[str, Table],
        positive: Positive,
        goals: tuple[Goal, ...],
        objective: Rate | None,
    ) -> Self:
        """Bind goals to labelled rows, whose table is that of ``train``, and to the features of other datasets."""
        answers = Answers(dict(tables), {}, positive)
        views = answers.views()
        tallied = TalliedGoals.of(goals, views)
        rate = None if objective is None else bind_rates([objective.resolved(views)], views)
        ends = np.cumsum([labelled.codes.size, *(n_rows(X) for X in others.values())]).tolist()
        places = {name: slice(start, end) for name, start, end in zip(others, ends, ends[1:], strict=False)}
        places = {TRAIN: slice(0, ends[0]), **places}
        more = ends[-1] - ends[0]
        codes, weights = (np.append(part, np.zeros(more, part.dtype)) for part in (labelled.codes, labelled.weights))
        rows = CheckedRows(stack_rows([labelled.X, *others.values()]), codes, weights, None)
        return cls(rows, labelled, answers, places, tallied, tallied.bound(), rate)

    def answered(self, said: AnyArray) -> Answers:
        """Return what models say of the rows of each dataset, given codes with a column for each."""
        answers = self.answers
        for name, place in self.places.items():
            answers = answers.with_dataset(name, answers.tables[name], self.answers.positive.said(said[place]))
        return answers

    def costs(
        self, weights: FloatArray | None, multipliers: FloatArray | None = None, of_rate: float = 0.0
    ) -> FloatArray:
        """Return what each answer about each row costs, shape (n_classes, n_rows).

        ``weights`` are those of the labelled rows; where a rate is minimized, its signed weights count so many times.
        """
        costs = np.zeros((len(self.answers.positive.classes), self.rows.codes.size))
        if weights is not None:
            n_labelled = self.labelled.codes.size
            costs[:, :n_labelled] = weights
            costs[self.labelled.codes, np.arange(n_labelled)] = 0.0
        signed = [] if multipliers is None else [self.limits.row_weights(multipliers)]
        if self.objective is not None and of_rate > 0:
            signed.append(self.objective.row_weights(np.array([of_rate])))
        for name, more in ((name, more) for one in signed for name, more in one.items()):
            part, positive = costs[:, self.places[name]], self.answers.positive
            if positive.is_binary:
                part[positive.place] += more
            else:
                part += more.reshape(-1, len(part)).T
        return costs

    def rate(self, said: AnyArray) -> float:
        """Return the rate that is minimized for one model."""
        assert self.objective is not None  # noqa: S101 - a rate is minimized
        return float(self.objective.values({name: self._predicted(said[self.places[name]]) for name in self.places})[0])

    def _predicted(self, said: AnyArray) -> FloatArray:
        if self.answers.positive.is_binary:
            return np.asarray(said == self.answers.positive.place, dtype=np.float64)
        return np.eye(len(self.answers.positive.classes))[said].ravel()


def worth_of(costs: FloatArray) -> Question:
    """Return what a learner is asked so that its weighted error is the cost but for a constant."""
    if len(costs) == _BINARY:
        saved = costs[0] - costs[1]  # by the second class in place of the first
        return Question((saved > 0).astype(np.int64), np.abs(saved))
    saved = (costs.max(axis=0) - costs).T
    rows, codes = np.nonzero(saved)
    return Question(codes, saved[rows, codes], rows)


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
        asked, rows, labelled = worth_of(costs), self.stage.rows, self.stage.labelled.codes
        total = float(asked.weights.sum())  # 0 where all answers cost alike
        own = Question(rows.codes, rows.weights)
        asked = asked._replace(weights=asked.weights / total) if total > 0 else own
        model, said, scores = self.fit.answer(asked, number)
        wrong = float(asked.weights @ ((said if asked.rows is None else said[asked.rows]) != asked.codes))
        losses = (said[: labelled.size] != labelled).view(np.uint8)
        return Fitted(model, losses, said=said, weighted_loss=wrong, scores=scores)


class Priced(NamedTuple):
    """The dual of the program of the models so far."""

    costs: FloatArray  # of answers
    constant: float  # that belongs to them: the price of a model is the constant and the cost of what it says
    weights: Any  # of the labelled rows; None where goals alone are priced, or a rate is minimized
    multipliers: FloatArray  # of the limits
    value: float  # what the price of a helping model is below: the least risk so far, or the violation
    is_feasible: bool
    is_rough: bool = False  # a finer solve would ask another question


class Program:
    """The mixture problem of the models so far, under goals on the rows of a stage.

    Parameters
    ----------
    stage : Stage
        Where it has an objective, that rate is minimized.
    solve : Solve
        Minimizes the risk over mixtures of the models so far, where no rate is minimized.
    size : float
        The scale of the objective, which tolerances are parts of.
    loss_of : callable, optional
        Returns the loss of the newest model under the weights of the dual, where these are not here.

    Attributes
    ----------
    standing : Standing
        How the mixture of the models so far stands; after ``price``.
    """

    standing: Standing

    def __init__(self, stage: Stage, solve: "Solve", size: float, loss_of: Callable[[], float] | None = None) -> None:
        self.stage, self.solve, self.size, self.loss_of = stage, solve, size, loss_of
        self.goals: GoalRows | None = None
        self.n_idle = 0  # rounds in a row whose model was of no help
        self._rates = np.empty(0)  # of the models, where one is minimized
        self._proven = -np.inf  # the largest price of a model
        self._least = np.inf  # risk so far
        self._may_differ = False  # another solve may lead to another model
        self._is_eased = True  # where goals are missed, the rows' own losses are asked for beside them
        self._priced: Priced | None = None
        self._seen: set[bytes] = set()  # what each model says, as a checksum

    def add(self, said: AnyArray, losses: AnyArray) -> None:
        """Take note of the model of a round, of whether it helps, and of the bound that its price proves."""
        stage, checksum = self.stage, hashlib.sha256(said.tobytes()).digest()
        column = stage.goals.rows(stage.answered(said[:, None]).counter(stage.goals.views))
        rate = None if stage.objective is None else stage.rate(said)
        priced = self._priced
        if priced is not None:
            price = float(priced.multipliers @ (column.rows[:, 0] - column.bounds))  # the Lagrangian of the model
            if priced.is_feasible:
                if rate is not None:
                    part = rate
                else:
                    part = float(priced.weights @ losses) if self.loss_of is None else self.loss_of()
                price = price + priced.constant + part
                self._proven = max(self._proven, price)
                helps = price < priced.value - IMPROVEMENT * self.size
            else:
                helps = price < (1 - _LESS) * priced.value
            if helps or (self._is_eased and not priced.is_feasible):  # the proof alone is not asked for yet
                self.n_idle = 0
            else:
                self.n_idle = _TRIES if checksum in self._seen else self.n_idle + 1
            self._is_eased &= helps
            self._may_differ = priced.is_rough
        self._seen.add(checksum)
        self.goals = column if self.goals is None else self.goals.beside(column)
        self._rates = np.append(self._rates, [] if rate is None else rate)
        self._priced = None

    def is_over(self, *, is_random: bool) -> bool:
        """Tell whether the learner finds no model that helps."""
        return self.n_idle >= (_TRIES if is_random or self._may_differ else 1)

    def price(self, history: History) -> FloatArray:
        """Return the costs of answers by the dual of the models so far: a rule for the next round."""
        if self._priced is not None:
            return self._priced.costs
        assert self.goals is not None  # noqa: S101 - a round is done
        is_far = self.n_idle == 0 and self._least - min(self._proven, self._least) > _FAR * self.size
        tol, limits, is_rate = _ROUGH if is_far else _TOL, self.goals.as_limits(), self.stage.objective is not None
        try:
            if is_rate:
                found, weights = minimize_linear(self._rates, **limits), None
            else:
                found, weights = self.solve(history, limits, tol * self.size)
        except InfeasibleRows as error:
            costs = self.stage.costs(history.start if self._is_eased else None, error.multipliers)
            self._priced = Priced(costs, 0.0, None, error.multipliers, error.violation, is_feasible=False)
            self.standing = Standing(np.inf, error.violation, min(self._proven, self._least))
        else:
            self._least = found.value
            costs = self.stage.costs(weights, found.multipliers, of_rate=float(is_rate))
            known = found.offset, weights, found.multipliers, found.value
            self._priced = Priced(costs, *known, is_feasible=True, is_rough=tol > _TOL)
            # An exact learner proves the bound; one with which a mixture gets below it is not exact.
            self.standing = Standing(found.value, 0.0, min(self._proven, self._least))
        return self._priced.costs


# The rounds so far, the limits of the goals, a gap -> the best mixture, and the weights of the labelled rows in its
# dual, None where they are not here; or it raises ``InfeasibleRows``.
Solve = Callable[[History, dict[str, Any], float], tuple[MixtureSolution, FloatArray | None]]


class GroupMeans:
    """Minimize the largest mean loss of some groups of rows; of one group the mean loss."""

    def __init__(self, groups: IntArray) -> None:
        self.groups, self._start = groups, np.empty(0)
        self._means = np.empty((0, 0))

    def __call__(self, history: History, limits: dict[str, Any], _tol: float) -> tuple[MixtureSolution, FloatArray]:
        # Means of groups that weigh anything, those of models that are known already as they were.
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
        self._means = means = np.column_stack([self._means, *columns])
        is_one = len(means) == 1
        found = minimize_linear(means[0], **limits) if is_one else minimize_cvar(means, 1 / len(means), **limits)
        return found, self._shares * found.weights[self._codes]


def solve_of(risk: Risk, n_labelled: int) -> Solve:
    """Return what minimizes a risk that is bound to labelled rows: a CVaR with the cuts of the round before."""
    if isinstance(risk, WorstOfGroups):
        return GroupMeans(risk.codes)
    if risk.tail_fraction == 1:
        return GroupMeans(np.zeros(n_labelled, dtype=np.int64))
    growing = None if risk.tail_fraction is None else GrowingMixture(risk.tail_fraction)

    def solve(history: History, limits: dict[str, Any], tol: float) -> tuple[MixtureSolution, FloatArray]:
        own = unequal(history.start)
        if growing is None:
            found = minimize_risk(history.losses, risk, sample_weight=own, tol=tol, **limits)
        else:
            growing.tol = tol
            found = growing.solve(history.losses, sample_weight=own, **limits)
        return found, found.weights

    return solve


def places_in(error: InfeasibleGoals, problem: Problem) -> list[int]:
    """Return the places of all goals that take part in a conflict."""
    part = {*error.conflict, *(goal for held in error.held_by.values() for goal in held)}
    return [place for place, goal in enumerate(problem.goals) if goal in part]
