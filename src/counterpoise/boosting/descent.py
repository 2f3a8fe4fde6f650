"""The rule of DRO-Boosting: descent on the robust loss of the samples (Blanchet et al., Algorithm 1)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import FloatArray
from counterpoise.boosting.directions import Directions
from counterpoise.boosting.robust_loss import RobustLoss, State
from counterpoise.boosting.rounds import Fitted, History, Round
from counterpoise.theory.losses import MarginLoss


class Descent(NamedTuple):
    """What a descent on the robust loss left behind."""

    models: list[Any]
    votes: FloatArray
    radius: float
    robust_losses: FloatArray  # (n_models + 1,): at the start and after each round
    weights: list[FloatArray]  # on the samples: the worst ones, from which each round started
    held_out_losses: FloatArray  # mean loss on held-out samples after each round, later ones included; empty without


class RobustRule:
    """Weigh samples by the worst weights, and go a part of the way to the least robust loss along the model.

    Parameters
    ----------
    directions : Directions
        The base learner on the samples.
    labels, own : array of shape (n_samples,)
        Labels -1 and +1, and the samples' own weights on the simplex.
    robust_loss : callable
        Gives the robust loss, once the first model is there: its radius may depend on what the learner can say. At the
        score 0 all losses are equal and the worst weights are the samples' own, so the first model does not need it.
    loss : MarginLoss
        What is made robust.
    learning_rate : float in (0, 1]
        That part of the way.
    """

    def __init__(
        self,
        directions: Directions,
        labels: FloatArray,
        own: FloatArray,
        robust_loss: Callable[[Any], RobustLoss],
        *,
        loss: MarginLoss,
        learning_rate: float = 1.0,
    ) -> None:
        self._directions, self._labels, self._learning_rate = directions, labels, learning_rate
        self._robust_loss = robust_loss
        margins = np.zeros(labels.size)
        losses = loss.value(margins)
        self.state = State(margins, losses, own, own * loss.slope(margins), float(losses[0]))
        self.robust_losses: list[float] = []

    def fit(self, _weights: FloatArray, number: int) -> Fitted:
        """Fit the learner to the subgradient at the worst weights."""
        model, values = self._directions(-self.state.slopes * self._labels, number)
        sides = self._labels * values
        return Fitted(model, (sides <= 0).view(np.uint8), sides)

    def reweigh(self, _history: History) -> FloatArray:
        return self.state.weights

    def step(self, done: Round, history: History) -> float:
        """Search along the model, and go there; 0 where nothing improves."""
        if history.n_rounds == 0:
            self._robust = self._robust_loss(done.model)
            self.state = self._robust.at(self.state.margins)
            self.robust_losses.append(self.state.value)
        assert done.sides is not None  # noqa: S101 - as ``fit`` gives them
        are_signs = self._directions.are_signs
        found = self._robust.line_search(self.state, done.sides, are_signs=are_signs)
        # A model that is always right has no best step to go a part of, and no round can follow it.
        vote = found.step if found.is_endless else self._learning_rate * found.step
        if vote == found.step:
            self.state = found.state
        else:
            self.state = self._robust.along(self.state, done.sides, vote, are_signs=are_signs)
        self.robust_losses.append(self.state.value)
        self._is_endless = found.is_endless
        return vote

    def is_over(self, _done: Round) -> bool:
        """Tell whether a model was always right, or every loss is at its least and nothing pulls."""
        return self._is_endless or not self.state.slopes.any()

    @property
    def radius(self) -> float:
        """Return the radius of the ball."""
        return self._robust.radius
