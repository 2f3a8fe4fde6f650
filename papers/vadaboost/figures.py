"""Figure 1 of Shivaswamy and Jebara 2011."""

from typing import Any

import numpy as np

from counterpoise.boosting.adaboost import AdaBoostClassifier
from counterpoise.datasets import twonorm
from counterpoise.learners import LeastErrorStump
from counterpoise.theory.risks import MeanVariance
from papers.arrays import AnyArray, FloatArray
from papers.experiments import panels

_ADA, _VADA = "#d95f02", "#1b7837"


def draw_bound() -> Any:
    """Return Figure 1, the cost of a step and VadaBoost's bound on it."""
    X, y = twonorm(400, random_state=0)
    model = AdaBoostClassifier(LeastErrorStump(), n_estimators=11).fit(X, y)
    *_, before, _ = model.staged_decision_function(X)  # ten rounds are done, the eleventh model is to get its vote
    losses = np.exp(-_signs(y) * before)
    wrong = model.estimators_[-1].predict(X) != y
    votes = np.linspace(-0.6, 0.6, 121)
    figure, axes = panels(2, size=(4.5, 3.4))
    for place, penalty in zip(axes, (0.0, 0.9), strict=True):
        risk = MeanVariance(penalty)
        place.plot(votes, [risk.bound(losses, wrong, vote) for vote in votes], "--", color=_ADA, label="bound U")
        place.plot(votes, [risk.step_cost(losses, wrong, vote) for vote in votes], color=_VADA, label="cost V")
        place.set(title=f"penalty {penalty:g}", xlabel="vote of the next model")
        place.legend(frameon=False)
    axes[0].set_ylabel("cost, 1 at vote 0 and penalty 0")
    return figure


def _signs(y: AnyArray) -> FloatArray:
    return np.where(y > 0, 1.0, -1.0)
