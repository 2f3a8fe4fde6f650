"""What the boosters with a penalty on the variance share: checking the penalty, and choosing it on held-out samples."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from counterpoise._base.checks import check_penalty
from counterpoise._base.types import FloatArray
from counterpoise.boosting.additive import Boosted, HeldOut, check_chosen, one_or_all
from counterpoise.boosting.exponential import ExponentialBooster
from counterpoise.boosting.inputs import Rows, is_word
from counterpoise.boosting.rounds import Callback, Fit
from counterpoise.boosting.stopping import Stopping, stopping_of

PENALTIES = (0.0, 0.1, 0.25, 0.5, 1.0)  # that "auto" tries, AdaBoost's cost among them


def slope_weights(weights: FloatArray, start: FloatArray, penalty: float) -> FloatArray:
    """Return how fast the cost of mean and variance falls as a model gets each sample right, scaled to sum to 1."""
    mixed = penalty * weights**2 / start + (1.0 - penalty) * weights
    return np.asarray(mixed / mixed.sum())


class PenalizedBooster(ExponentialBooster):
    """A booster with a parameter ``penalty``; a subclass gives the rounds at a penalty, and the largest."""

    default_stopping = Stopping(patience=100)

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_estimators: int = 500,
        learning_rate: float | None = None,
        penalty: float | str = 0.5,
        stopping: Stopping | None = None,
        random_state: Any = None,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.penalty = penalty
        self.stopping = stopping
        self.random_state = random_state
        self.callbacks = callbacks

    @property
    def _most_penalty(self) -> float:
        """The largest penalty."""
        return 1.0

    def _fit_at(self, penalty: float, fit: Fit, start: FloatArray, held_out: HeldOut | None) -> Boosted:
        """Boost at a penalty, given the samples' own weights."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not is_word(self.penalty, "penalty", ("auto",)):
            check_penalty(self.penalty, self._most_penalty)

    def _check_samples(self, train: Rows, held_out: Rows | None) -> None:  # noqa: ARG002 - of those held out
        check_chosen(self.penalty, "penalty", held_out)

    def _keep(self, found: list[Any]) -> None:
        self.penalty_ = one_or_all(found) if self.penalty == "auto" else found[0]

    def _rounds(self, fit: Fit, start: FloatArray, held_out: HeldOut | None) -> Boosted:
        """Boost at every penalty asked for on the same prepared rows; keep the one of least held-out error.

        Of equals the one with the fewest models.
        """
        penalties = PENALTIES if self.penalty == "auto" else (float(self.penalty),)
        tried = [self._fit_at(at, fit, start, held_out)._replace(found=at) for at in penalties]
        return tried[0] if len(tried) == 1 else min(tried, key=self._least_error)

    def _least_error(self, tried: Boosted) -> tuple[float, int]:
        errors = tried.held_out_losses
        return float(errors[-1] if stopping_of(self).patience is None else errors.min()), len(tried.models)
