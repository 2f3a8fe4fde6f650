"""Rows of all datasets that goals speak of, and what each answer about each row costs.

With weights ``w`` of the labelled rows, from the risk, and multipliers ``m >= 0`` of the goals' limits, whose signed
weights on the answers are ``A``, the Lagrangian of a mixture is linear in it, so that a single model minimizes it. To
call row i of class k costs

    cost[k, i] = w_i [k is not its label] + sum over limits of m_l A_l[k, i],

where unlabelled rows of other datasets have the second part only. Row i then enters the training with every label k at
the weight ``max over classes of cost[:, i] - cost[k, i]``: then the weighted error of a model is its cost but for a
constant, whatever the number of classes. Of two classes that is one label for each row, by the sign of the difference.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from counterpoise._base.types import AnyArray, FloatArray
from counterpoise.boosting.inputs import Rows, unequal
from counterpoise.boosting.learner import Question
from counterpoise.goals import Goal, Rate, Table
from counterpoise.goals.binding import BoundRates, bind_rates
from counterpoise.mixtures.answers import TRAIN, Answers, Positive
from counterpoise.mixtures.choosing import Evidence
from counterpoise.mixtures.goal_rows import GoalRows, TalliedGoals
from counterpoise.mixtures.pool import n_rows
from counterpoise.mixtures.rows import stack_rows

_BINARY = 2


class Stage(NamedTuple):
    """Labelled rows and below them those of other datasets, with the goals as signed weights on their answers."""

    rows: Rows  # of all datasets; those of others weigh nothing by themselves
    labelled: Rows
    answers: Answers  # the tables, before any model has answered
    places: dict[str, slice]  # of the rows of each dataset
    goals: TalliedGoals
    limits: BoundRates  # the goals as signed weights on answers
    objective: BoundRates | None  # where a rate is minimized

    @classmethod
    def of(
        cls,
        labelled: Rows,
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
        rows = Rows(stack_rows([labelled.X, *others.values()]), codes, weights, None)
        return cls(rows, labelled, answers, places, tallied, tallied.bound(), rate)

    @property
    def positive(self) -> Positive:
        """Return the classes, and which of them is the positive one."""
        return self.answers.positive

    def losses(self, said: AnyArray) -> AnyArray:
        """Return where a model errs on the labelled rows, given what it says of all rows."""
        return np.asarray(said[self.places[TRAIN]] != self.labelled.codes).view(np.uint8)

    def answered(self, said: AnyArray) -> Answers:
        """Return what models say of the rows of each dataset, given codes with a column for each."""
        answers = self.answers
        for name, place in self.places.items():
            answers = answers.with_dataset(name, answers.tables[name], self.positive.said(said[place]))
        return answers

    def evidence(self, said: AnyArray, losses: AnyArray) -> Evidence:
        """Return what a mixture can be chosen on."""
        return Evidence(losses, unequal(self.labelled.weights), self.labelled.groups, self.answered(said))

    def goal_rows(self, said: AnyArray) -> GoalRows:
        """Return the goals as rows of the mixture's program with a column for one model."""
        return self.goals.rows(self.answered(said[:, None]).counter(self.goals.views))

    def costs(
        self, weights: FloatArray | None, multipliers: FloatArray | None = None, of_rate: float = 0.0
    ) -> FloatArray:
        """Return what each answer about each row costs, shape (n_classes, n_rows).

        ``weights`` are those of the labelled rows; where a rate is minimized, its signed weights count so many times.
        """
        costs = np.zeros((len(self.positive.classes), self.rows.codes.size))
        if weights is not None:
            n_labelled = self.labelled.codes.size
            costs[:, :n_labelled] = weights
            costs[self.labelled.codes, np.arange(n_labelled)] = 0.0
        if multipliers is not None:
            self._add(costs, self.limits.row_weights(multipliers))
        if self.objective is not None and of_rate > 0:
            self._add(costs, self.objective.row_weights(np.array([of_rate])))
        return costs

    def _add(self, costs: FloatArray, signed: Mapping[str, FloatArray]) -> None:
        for name, weights in signed.items():
            part = costs[:, self.places[name]]
            if self.positive.is_binary:
                part[self.positive.positive_place] += weights
            else:
                part += weights.reshape(-1, len(part)).T

    def rate(self, said: AnyArray) -> float:
        """Return the rate that is minimized for one model."""
        assert self.objective is not None  # noqa: S101 - a rate is minimized
        return float(self.objective.values({name: self._predicted(said[self.places[name]]) for name in self.places})[0])

    def _predicted(self, said: AnyArray) -> FloatArray:
        if self.positive.is_binary:
            return np.asarray(said == self.positive.positive_place, dtype=np.float64)
        return np.eye(len(self.positive.classes))[said].ravel()


def question_of(costs: FloatArray) -> Question | None:
    """Return what a learner is asked so that its weighted error is the cost but for a constant; None: all are equal."""
    asked = worth_of(costs)
    total = float(asked.weights.sum())
    return asked._replace(weights=asked.weights / total) if total > 0 else None


def worth_of(costs: FloatArray) -> Question:
    """Return the same with weights that sum to what the costs make them."""
    if len(costs) == _BINARY:
        saved = costs[0] - costs[1]  # by the second class in place of the first
        return Question((saved > 0).astype(np.int64), np.abs(saved))
    saved = (costs.max(axis=0) - costs).T
    rows, codes = np.nonzero(saved)
    return Question(codes, saved[rows, codes], rows)
