"""What the boosters with a penalty on the variance share: checking the penalty, and choosing it on held-out samples."""

from typing import Any, ClassVar, cast

from counterpoise._base.checks import check_choice, check_penalty
from counterpoise._base.types import FloatArray
from counterpoise.boosting.additive import AdditiveBooster, Ensemble, HeldOut, Votes
from counterpoise.boosting.inputs import Rows
from counterpoise.boosting.rounds import Fit

PENALTIES = (0.0, 0.1, 0.25, 0.5, 1.0)  # that "auto" tries, AdaBoost's cost among them


class PenalizedBooster(AdditiveBooster):
    """An additive booster with a parameter ``penalty``; a subclass gives the rules at a penalty, and the largest."""

    _most_penalty: ClassVar[float] = 1.0

    def _fit_at(self, penalty: float, fit: Fit, start: FloatArray, held_out: HeldOut | None) -> Votes:
        """Boost at a penalty, given the samples' own weights."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.penalty, str):
            check_choice(self.penalty, "penalty, where it is a word,", ("auto",))
        else:
            check_penalty(self.penalty, self._most_penalty)

    def _fit_ensembles(self, train: Rows, held_out: Rows | None) -> list[Ensemble]:
        if self.penalty == "auto" and held_out is None:
            raise ValueError(
                "penalty='auto' needs samples to choose on: pass X_val and y_val, or set validation_fraction."
            )
        self._chosen: list[float] = []
        ensembles = super()._fit_ensembles(train, held_out)
        self.penalty_: Any = self._chosen[0] if self.penalty != "auto" or len(self._chosen) == 1 else self._chosen
        return ensembles

    def _boost(self, fit: Fit, start: FloatArray, held_out: HeldOut | None) -> Votes:
        if self.penalty != "auto":
            self._chosen.append(float(self.penalty))
            return self._fit_at(self._chosen[-1], fit, start, held_out)
        return self._boost_best(fit, start, cast("HeldOut", held_out))

    def _boost_best(self, fit: Fit, start: FloatArray, held_out: HeldOut) -> Votes:
        """Boost at every penalty of the grid on the same prepared rows; keep the one of least held-out error.

        Of equals the one with the fewest models.
        """
        watches = [held_out.afresh() for _ in PENALTIES]
        tried = [self._fit_at(at, fit, start, watch) for at, watch in zip(PENALTIES, watches, strict=True)]
        errors = [watch.error if self.patience is None else watch.best_error for watch in watches]
        best = min(range(len(PENALTIES)), key=lambda place: (errors[place], len(tried[place][1])))
        self._chosen.append(PENALTIES[best])
        return tried[best]
