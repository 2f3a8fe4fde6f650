"""Boosting by the exponential loss: AdaBoost, and those that differ in what the learner sees and how models vote.

Everything that a round needs to know of a model is where it agrees with the labels, so rules see zero-one losses, as
elsewhere.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from counterpoise._base.checks import check_number
from counterpoise._base.types import AnyArray, ByteArray, FloatArray
from counterpoise.boosting.additive import AdditiveBooster, Boosted, HeldOut
from counterpoise.boosting.inputs import Rows
from counterpoise.boosting.learner import make_fit
from counterpoise.boosting.rounds import Fit, History, Round

_PERFECT = 1e-10  # part of all weight that is wrong in a perfect model: its vote stays finite, and no round can follow
_CHANCE = 1e-12  # the log of a ratio of weights, which has no unit: below this it is rounding, and the model chance
_SHORT_STEP = 0.2  # of the default learner, chosen with it (docs/results/defaults)
_WEIGHTS = "weights"  # in the memory: those that follow the exponential loss


def log_odds(right: float, wrong: float) -> float:
    """Return ``log(right / wrong)``, finite where nothing is wrong."""
    total = right + wrong
    return float(np.log(max(right, _PERFECT * total) / max(wrong, _PERFECT * total)))


class ExponentialStep:
    """Weigh samples by the exponential loss of the votes so far; a subclass says what the learner sees and how to vote.

    Weights are on the simplex. A vote is ``learning_rate`` of the best step: 1 is the papers', and shorter steps fit
    noise later.
    """

    learning_rate: float = 1.0

    def learner_weights(self, weights: FloatArray) -> FloatArray:
        """Return the weights that the learner is given: these where a subclass does not say otherwise."""
        return weights

    def vote(self, weights: FloatArray, losses: ByteArray) -> float:
        """Return the best step along a model that errs where ``losses`` is 1."""
        raise NotImplementedError

    def reweigh(self, history: History) -> FloatArray:
        return self.learner_weights(history.memory[_WEIGHTS])

    def step(self, done: Round, history: History) -> float:
        weights = history.memory.get(_WEIGHTS, history.start)
        best = self.vote(weights, done.losses)
        if best > _CHANCE:  # whatever part of it is taken
            vote = self.learning_rate * best
            moved = weights * np.where(done.losses, 1.0, np.exp(-2.0 * vote))  # up to a factor, and without overflow
            history.memory[_WEIGHTS] = moved / moved.sum()
            return vote
        if history.n_rounds == 0:
            raise ValueError(
                "The base learner's first model is no better than chance: its weighted error is "
                f"{done.weighted_loss:.3g}. Give a stronger learner, or look for labels that are all noise."
            )
        return 0.0

    def is_over(self, done: Round) -> bool:
        return not done.losses.any()


class ExponentialBooster(AdditiveBooster):
    """Base of the boosters by the exponential loss; a subclass gives the rounds (``_rounds``)."""

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.learning_rate is not None:
            check_number(self.learning_rate, "learning_rate", "(0, 1]", "part of a step")

    def _rate(self) -> float:
        if self.learning_rate is not None:
            return float(self.learning_rate)
        return _SHORT_STEP if self.estimator is None else 1.0

    def _rounds(self, fit: Fit, start: FloatArray, held_out: HeldOut | None) -> Boosted:
        """Return the models and their votes, given the samples' own weights."""
        raise NotImplementedError

    def _boost(self, train: Rows, held_out: Rows | None, classes: AnyArray) -> Boosted:
        fit = make_fit(self._learner_for(train.codes.size), train.X, train.codes, classes, self._round_seed)
        watched = None
        if held_out is not None:
            watched = HeldOut(fit.rows_like(held_out.X), classes, _error(held_out.codes == 1, held_out.weights))
        return self._rounds(fit, train.weights, watched)


def _error(is_positive: AnyArray, weights: FloatArray) -> Callable[[FloatArray], Any]:
    """Return the weighted error as a function of votes of shape (n_samples,) or (n_samples, n_ensembles)."""
    weights = weights / weights.max()  # equal ones are 1: their sums are exact, and equal errors are equal
    return lambda sums: ((sums.T > 0) != is_positive) @ weights / weights.sum()
