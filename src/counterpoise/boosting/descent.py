"""The rounds of DRO-Boosting: descent on the robust loss of the samples (Blanchet et al., Algorithm 1)."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import AnyArray, FloatArray
from counterpoise.boosting._robust_kernels import dot
from counterpoise.boosting.directions import Directions, model_values
from counterpoise.boosting.robust_loss import RobustLoss
from counterpoise.boosting.rounds import Callback, Round
from counterpoise.theory.losses import MarginLoss


class Descent(NamedTuple):
    """What a descent on the robust loss left behind."""

    models: list[Any]
    votes: FloatArray
    radius: float
    robust_losses: FloatArray  # (n_models + 1,): at the start and after each round
    weights: list[FloatArray]  # on the samples: the worst ones, from which each round started
    held_out_losses: FloatArray  # mean loss on held-out samples after each round, later ones included; empty without

    def first(self, n_models: int) -> "Descent":
        """Return the descent up to a round."""
        return self._replace(
            models=self.models[:n_models],
            votes=self.votes[:n_models],
            robust_losses=self.robust_losses[: n_models + 1],
            weights=self.weights[:n_models],
        )


class Watch:
    """Held-out samples, and how the mean loss on them fares."""

    def __init__(self, X: Any, labels: FloatArray, own: FloatArray, classes: AnyArray) -> None:
        self.X, self.labels, self.own, self.classes = X, labels, own, classes
        self.margins = np.zeros(labels.size)
        self.losses: list[float] = []

    def add(self, model: Any, vote: float, loss: MarginLoss) -> None:
        """Add the vote of a model."""
        self.margins += vote * self.labels * model_values(model, self.X, self.classes)
        self.losses.append(dot(self.own, loss.value(self.margins)))

    @property
    def best_round(self) -> int:
        """Return the round after which the loss was least."""
        return int(np.argmin(self.losses)) + 1

    def has_stalled(self, patience: int) -> bool:
        """Tell whether the loss has not dropped for so many rounds."""
        return len(self.losses) - self.best_round >= patience


def descend(
    directions: Directions,
    labels: FloatArray,
    own: FloatArray,
    robust_loss: Callable[[Any], RobustLoss],
    *,
    loss: MarginLoss,
    n_rounds: int,
    learning_rate: float = 1.0,
    watch: Watch | None = None,
    patience: int | None = None,
    callbacks: Sequence[Callback] = (),
) -> Descent:
    """Descend on the robust loss, and return the rounds up to the least held-out loss where there is patience.

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
    n_rounds, learning_rate, watch, patience, callbacks
        As for ``DROBoostClassifier``.

    Returns
    -------
    Descent
        Without models where the first one improves nothing.
    """
    margins = np.zeros(labels.size)
    model, values = directions(-own * loss.slope(margins) * labels, 1)
    robust = robust_loss(model)
    state = robust.at(margins)
    models, votes, weights, robust_losses = [], [], [], [state.value]
    for number in range(1, n_rounds + 1):
        if number > 1:
            if not state.slopes.any():  # every loss is at its least: nothing pulls
                break
            model, values = directions(-state.slopes * labels, number)
        sides = labels * values
        found = robust.line_search(state, sides, are_signs=directions.are_signs)
        if found.step == 0.0:  # nothing improves
            break
        # A model that is always right has no best step to go a part of, and no round can follow it.
        vote = found.step if found.is_endless else learning_rate * found.step
        models.append(model)
        votes.append(vote)
        weights.append(state.weights)
        is_whole = vote == found.step
        state = found.state if is_whole else robust.along(state, sides, vote, are_signs=directions.are_signs)
        robust_losses.append(state.value)
        if watch is not None:
            watch.add(model, vote, loss)
        stops = [bool(callback(_as_round(number, model, weights[-1], sides))) for callback in callbacks]
        if (
            found.is_endless
            or any(stops)
            or (watch is not None and patience is not None and watch.has_stalled(patience))
        ):
            break
    seen = np.array([] if watch is None else watch.losses)
    done = Descent(models, np.array(votes), robust.radius, np.array(robust_losses), weights, seen)
    return done.first(watch.best_round) if watch is not None and patience is not None and models else done


def _as_round(number: int, model: Any, weights: FloatArray, sides: FloatArray) -> Round:
    wrong = (sides <= 0).view(np.uint8)
    return Round(number, model, weights, wrong, float(weights @ wrong))
