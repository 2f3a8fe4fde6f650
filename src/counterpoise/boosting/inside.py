"""Rounds that train what the goals still lack: column generation for the mixture problem with goals.

The best mixture of the models so far has a dual: weights of the labelled rows, from the risk, and a multiplier for each
limit of the goals. They price every answer about every row (``AnswerCosts``), and a model of the least price improves
the mixture most. If the learner finds the best model of its class, that price bounds what any mixture of the class can
reach (Demiriz, Bennett, Shawe-Taylor 2002 for boosting; Agarwal et al. 2018 train inside goals without the program).

Where the models so far cannot meet the goals, the multipliers that prove it are priced alone: a model that does not
keep the proof helps, and if there is none, the learner cannot meet the goals. Until one does not
help, the rows' own losses count beside the proof: it names few goals at a time, and a model that is fitted to
them alone knows nothing else. Ten goals, a recall for each digit of MNIST, took a small network 12 rounds so, and 55
by the proof alone.

The level bundle method ends at weights in the middle of what is optimal, which keeps them from jumping: on stumps with
three goals it needed 10 to 25 % fewer rounds than corners of the linear program. In-out smoothing saved up to another
10 % with an exact learner and doubled the rounds with gradient boosting, entropy at the mixture lost most of the gap;
so there is neither.

With weights ``w`` of the labelled rows, from the risk, and multipliers ``m >= 0`` of the goals' limits, whose signed
weights on the answers are ``A``, the Lagrangian of a mixture is linear in it, so that a single model minimizes it. To
call row i of class k costs

    cost[k, i] = w_i [k is not its label] + sum over limits of m_l A_l[k, i],

where unlabelled rows of other datasets have the second part only. ``learner.cost_target`` turns costs into labels and
weights: the weighted error of a model is then its cost but for a constant, whatever the number of classes.
"""

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import AnyArray, FloatArray, IntArray
from counterpoise.boosting.rounds import IMPROVEMENT, History, Standing
from counterpoise.boosting.row_store import Minimize
from counterpoise.goals import InfeasibleGoals, Rate
from counterpoise.goals.binding import bind_rates, tally_rates
from counterpoise.rules.choosing import Problem
from counterpoise.rules.goal_rows import Answers, GoalConstraints, TalliedGoals
from counterpoise.solvers.linear_program import InfeasibleRows
from counterpoise.solvers.tail import minimize_linear


class AnswerCosts:
    """What each answer about each row costs, of the labelled rows and below them of the rows of other datasets.

    Parameters
    ----------
    labels : array
        Class codes of the labelled rows.
    places : dict from names of datasets to slice
        Where the rows of each are.
    answers : Answers
        The tables, before any model has answered.
    make_answers : callable
        Returns the answers, given those of models in the form of the row store.
    problem : Problem
        The goals, and the objective where it is a rate.
    """

    def __init__(
        self,
        labels: IntArray,
        places: dict[str, slice],
        answers: Answers,
        make_answers: Callable[[AnyArray], Answers],
        problem: Problem,
    ) -> None:
        self.labels, self.places, self.answers, self.make_answers = labels, places, answers, make_answers
        views, objective = answers.views(), problem.objective
        self.goals = TalliedGoals.of(problem.goals, views)
        self.rate = objective.resolve(views) if isinstance(objective, Rate) else None  # that is minimized
        # Goals and rate as signed weights on answers.
        self._limits = self.goals.bind()
        self._rate_weights = None if self.rate is None else bind_rates([self.rate], views).row_weights(np.ones(1))

    def costs(
        self, weights: FloatArray | None, multipliers: FloatArray | None = None, *, with_rate: bool = False
    ) -> FloatArray:
        """Return what each answer about each row costs, shape (n_classes, n_rows).

        It is the sum of what it costs by weights of the labelled rows, by multipliers of the goals' limits, and by
        the rate that is minimized.
        """
        n_rows = max(place.stop for place in self.places.values())
        costs = np.zeros((len(self.answers.positive.classes), n_rows))
        if weights is not None:
            costs[:, : self.labels.size] = weights
            costs[self.labels, np.arange(self.labels.size)] = 0.0
        extras = [] if multipliers is None else [self._limits.row_weights(multipliers)]
        if with_rate and self._rate_weights is not None:
            extras.append(self._rate_weights)
        positive = self.answers.positive
        for name, more in ((name, more) for one in extras for name, more in one.items()):
            part = costs[:, self.places[name]]
            if positive.is_binary:
                part[positive.place] += more
            else:
                part += more.reshape(-1, len(part)).T
        return costs

    def column(self, answers: AnyArray) -> tuple[GoalConstraints, float | None]:
        """Return the goals as rows of the program for one model, and the rate that is minimized."""
        count = self.make_answers(answers[:, None]).counter(self.goals.views)
        rate = None
        if self.rate is not None:
            rate = self.rate.constant + float(tally_rates([self.rate], self.goals.views, count)[0, 0])
        return self.goals.rows(count), rate


_TOL = 5e-4  # gap of the mixture of the models so far, as a part of the objective's size: below what counts ...
_ROUGH, _FAR = 1e-3, 0.01  # ... or twice that, as long as the bound is so far away that the next model matters more
_LESS = 0.01  # part of the violation that a model must take away to help
_TRIES = 2  # rounds without help after which a learner with randomness ends; one without would repeat itself


class DualPrices(NamedTuple):
    """The dual of the program of the models so far."""

    costs: FloatArray  # of answers
    constant: float  # that belongs to them: the price of a model is the constant plus the cost of its answers
    weights: Any  # of the labelled rows; None where goals alone are priced, or a rate is minimized
    multipliers: FloatArray  # of the limits
    value: float  # what the price of a helping model is below: the least risk so far, or the violation
    is_feasible: bool
    is_rough: bool = False  # a finer solve would give other prices


class RoundsProgram:
    """The mixture problem of the models so far, under goals; Farkas prices take its dual's place where they are missed.

    Parameters
    ----------
    costs : AnswerCosts
        Where it has a rate, that is minimized.
    minimize : Minimize
        Minimizes the risk over mixtures of the models so far, where no rate is minimized.
    size : float
        The scale of the objective, which tolerances are parts of.

    Attributes
    ----------
    standing : Standing
        How the mixture of the models so far stands; after ``price``.
    goals : GoalConstraints or None
        The goals as rows with an entry for each model so far.
    """

    standing: Standing

    def __init__(self, costs: AnswerCosts, minimize: Minimize, size: float) -> None:
        self.costs, self.minimize, self.size = costs, minimize, size
        self.goals: GoalConstraints | None = None
        self.n_idle = 0  # rounds in a row whose model was of no help
        self._rates = np.empty(0)  # of the models, where one is minimized
        self._proven = -np.inf  # the largest price of a model
        self._least = np.inf  # risk so far
        self._may_differ = False  # another solve may lead to another model
        self._is_eased = True  # where goals are missed, the rows' own losses are priced beside them
        self._prices: DualPrices | None = None
        self._checksums: set[bytes] = set()  # of each model's answers

    def add(self, answers: AnyArray, history: History) -> None:
        """Take in the newest model of the history: whether it helps, and the bound that its price proves."""
        column, rate = self.costs.column(answers)
        checksum, prices = hashlib.sha256(answers.tobytes()).digest(), self._prices
        if prices is not None:
            price = float(prices.multipliers @ (column.rows[:, 0] - column.bounds))  # the Lagrangian of the model
            if prices.is_feasible:
                price = price + prices.constant + (history.rows.newest_loss(prices.weights) if rate is None else rate)
                self._proven = max(self._proven, price)
                helps = price < prices.value - IMPROVEMENT * self.size
            else:
                helps = price < (1 - _LESS) * prices.value
            if helps or (self._is_eased and not prices.is_feasible):  # the proof is not priced alone yet
                self.n_idle = 0
            else:
                self.n_idle = _TRIES if checksum in self._checksums else self.n_idle + 1
            self._is_eased &= helps
            self._may_differ = prices.is_rough
        self._checksums.add(checksum)
        self.goals = column if self.goals is None else self.goals.beside(column)
        self._rates = np.append(self._rates, [] if rate is None else rate)
        self._prices = None

    def is_over(self, *, is_random: bool) -> bool:
        """Return whether the learner finds no model that helps."""
        return self.n_idle >= (_TRIES if is_random or self._may_differ else 1)

    def price(self, history: History) -> FloatArray:
        """Return the costs of answers by the dual of the models so far: a rule for the next round."""
        if self._prices is None:
            self._prices = self._solve(history)
        return self._prices.costs

    def _solve(self, history: History) -> DualPrices:
        assert self.goals is not None  # noqa: S101 - a round is done
        is_far = self.n_idle == 0 and self._least - min(self._proven, self._least) > _FAR * self.size
        tol, limits, weights = _ROUGH if is_far else _TOL, self.goals.as_limits(), None
        try:
            if self.costs.rate is None:
                solution, weights = self.minimize(history.rows, limits, tol * self.size)
            else:
                solution = minimize_linear(self._rates, **limits)
        except InfeasibleRows as error:
            self.standing = Standing(np.inf, error.violation, min(self._proven, self._least))
            costs = self.costs.costs(history.rows.start if self._is_eased else None, error.multipliers)
            return DualPrices(costs, 0.0, None, error.multipliers, error.violation, is_feasible=False)
        self._least, prices = solution.value, solution.multipliers
        # An exact learner proves the bound; one with which a mixture gets below it is not exact.
        self.standing = Standing(solution.value, 0.0, min(self._proven, self._least))
        costs = self.costs.costs(weights, prices, with_rate=True)
        parts = costs, solution.offset, weights, prices, solution.value
        return DualPrices(*parts, is_feasible=True, is_rough=tol > _TOL)


def places_in(error: InfeasibleGoals, problem: Problem) -> list[int]:
    """Return the places of all goals that take part in a conflict."""
    part = {*error.conflict, *(goal for goals in error.held_by.values() for goal in goals)}
    return [place for place, goal in enumerate(problem.goals) if goal in part]
