"""The loop that all boosters share. A booster is a pair of rules: one reweighs samples, one votes or mixes models."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import AnyArray, ByteArray, FloatArray
from counterpoise.boosting.row_store import RowStore
from counterpoise.solvers.rows import weighted_sum

IMPROVEMENT = 1e-3  # part of the objective's size, a fall that counts: above the solver's gap, below what matters

Fit = Callable[[FloatArray, int], "Fitted"]  # weights, round -> model
Rule = Callable[["History"], FloatArray]  # the rounds so far -> weights of the next
Vote = Callable[["Round", "History"], float]  # a round, those before it -> how much its model counts
Stop = Callable[["Round", "History"], bool]  # a round, and all so far -> whether it was the last
Callback = Callable[["Round"], object]  # a true result stops the boosting


class Fitted(NamedTuple):
    """A model, and its answers about the samples that it was fitted to."""

    model: Any
    losses: ByteArray  # zero-one
    sides: FloatArray | None = None  # label times its value, where that is more than a class
    answers: AnyArray | None = None  # class codes by models that did not see the samples, or inside goals
    weighted_loss: float | None = None  # under the weights it was fitted to, where those are others than the rule's
    scores: FloatArray | None = None  # of the positive class by models that did not see the rows, where needed


class Standing(NamedTuple):
    """How the best mixture of the rounds so far stands on the rows that models are trained on, inside goals."""

    value: float  # the least risk; infinite where no mixture meets the goals yet
    violation: float  # how far the goals are from being met, 0 where they are
    bound: float  # no mixture of models of the learner's class has less risk, if the learner is exact


class Round(NamedTuple):
    """A model, the sample weights it was fitted with, and its loss on each sample."""

    number: int  # from 1
    model: Any
    weights: FloatArray  # inside goals what each answer about each row costs, shape (n_classes, n_rows)
    losses: ByteArray
    weighted_loss: float  # weights @ losses: what the learner achieved
    sides: FloatArray | None = None  # as in ``Fitted``
    answers: AnyArray | None = None  # as in ``Fitted``
    standing: Standing | None = None  # inside goals
    scores: FloatArray | None = None  # as in ``Fitted``

    @property
    def summary(self) -> str:
        """Return in a few words how far it is, for a line of progress."""
        if self.standing is None:
            return f"loss {self.weighted_loss:.3f}"
        value, violation, bound = self.standing
        bound_text = f", bound {bound:.4f}" if np.isfinite(bound) else ""
        return f"goals missed by {violation:.3g}" if violation > 0 else f"goals met, risk {value:.4f}{bound_text}"


class History:
    """The models so far, and the rows that they are trained on, which know where each fails.

    Sample weights are not kept: they would take eight times the room of the losses. Callbacks see them.
    """

    def __init__(self, rows: RowStore) -> None:
        self.rows = rows
        self.models: list[Any] = []
        self.votes: list[float] = []
        self.weighted_losses: list[float] = []
        self.held_out: list[ByteArray] = []  # losses of each model on the held-out samples, where there are some
        self.scores: list[FloatArray] = []  # of the positive class by models that did not see the rows, where needed
        self.memory: dict[str, FloatArray] = {}  # what the rule keeps for the next round; a checkpoint saves it

    @property
    def n_rounds(self) -> int:
        """Return the number of rounds so far."""
        return len(self.models)

    def append(self, latest: Round, vote: float = 1.0) -> None:
        """Record a round."""
        self.rows.add(latest.losses, latest.answers)
        self.models.append(latest.model)
        self.votes.append(vote)
        if latest.scores is not None:
            self.scores.append(latest.scores)
        self.weighted_losses.append(latest.weighted_loss)


def boost(fit: Fit, history: History, *, reweigh: Rule, vote: Vote | None = None, stop: Stop, n_rounds: int) -> History:
    """Fit up to ``n_rounds`` further models, each on weights chosen from the rounds before it.

    Without ``vote`` every model has one vote: a mixture is chosen after the rounds. A model with a vote of 0 is of no
    use: it is not kept, and no other follows.
    """
    for number in range(history.n_rounds + 1, history.n_rounds + n_rounds + 1):
        weights = reweigh(history) if history.n_rounds else history.rows.start
        model, losses, sides, answers, weighted_loss, scores = fit(weights, number)
        weighted_loss = weighted_sum(weights, losses) if weighted_loss is None else weighted_loss
        latest = Round(number, model, weights, losses, weighted_loss, sides, answers, scores=scores)
        counts = 1.0 if vote is None else vote(latest, history)
        if counts == 0:
            break
        history.append(latest, counts)
        if stop(latest, history):
            break
    return history
