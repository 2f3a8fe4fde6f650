"""EBBoost: boosting that takes, in every round, the best step on mean and variance of the loss.

Shivaswamy and Jebara, NIPS 2011, Algorithm 3 (Empirical Bernstein boosting, AISTATS 2010). With weights w on the
simplex, penalty p >= 0 and a stump that is right on I and wrong on J, let W and S be sums of the weights and of
their squares, and ::

    A = (1 - p) W_I^2 + p n S_I,    B = (1 - p) W_J^2 + p n S_J

The vote that lowers cost (3) of the paper most is ``log(A / B) / 4``, and leaves ``2 sqrt(A B) + 2 (1 - p) W_I W_J``
of it. With stumps, as in the paper, a round takes the one of all stumps for which that is least. Other learners are
fitted to the weights along which the cost falls fastest, those of ``VadaBoostClassifier``, which descends on the same
cost through an upper bound; here the step along the model is the best one. That bound needs p <= 1; A and B are at
least ``W_I^2`` and ``W_J^2`` for any p, so steps and costs of stumps are as above for larger ones too.

With sample weights q that sum to 1, ``n w_i^2`` reads ``w_i^2 / q_i``: repeating a sample and doubling its weight are
then the same. At penalty 0 the cost is the square of AdaBoost's, and the steps are AdaBoost's with the stump of least
error.
"""

from typing import Any

import numpy as np
from sklearn.base import clone

from counterpoise._base.types import ByteArray, FloatArray
from counterpoise.boosting.additive import Boosted, HeldOut
from counterpoise.boosting.exponential import ExponentialStep, log_odds
from counterpoise.boosting.penalized import PenalizedBooster, slope_weights
from counterpoise.boosting.rounds import Fit, Fitted
from counterpoise.learners import Stump
from counterpoise.learners.bernstein_stump import BernsteinStumps

_CHANCE = 1e-12  # part of A + B that A must be above B by: less is rounding


class EBBoostStep(ExponentialStep):
    """Give the learner the weights as they are; vote by what the cost is made of on right and wrong samples."""

    def __init__(self, penalty: float, start: FloatArray, learning_rate: float = 1.0) -> None:
        self.penalty, self.start, self.learning_rate = penalty, start, learning_rate

    def vote(self, weights: FloatArray, losses: ByteArray) -> float:
        squares, errors = weights**2 / self.start, losses.astype(np.float64)
        weight, square = float(weights @ errors), float(squares @ errors)
        wrong = self._part(weight, square)
        right = self._part(float(weights.sum()) - weight, float(squares.sum()) - square)
        if right - wrong <= _CHANCE * (right + wrong):
            return 0.0
        return log_odds(np.sqrt(right), np.sqrt(wrong)) / 2  # roots: a perfect model's vote is then AdaBoost's

    def _part(self, weight: float, square: float) -> float:
        """Return A or B, from the sums of weights and of squares over the samples they are made of."""
        return weight**2 + self.penalty * max(square - weight**2, 0.0)


class SteepestStep(EBBoostStep):
    """Give the learner the weights along which the cost falls fastest; vote the best step along its model."""

    def learner_weights(self, weights: FloatArray) -> FloatArray:
        return slope_weights(weights, self.start, self.penalty)


class EBBoostClassifier(PenalizedBooster):
    """Boosting with a penalty on the variance of the loss, and the best step along every model.

    Parameters
    ----------
    estimator : classifier, optional
        Base learner, as for ``VadaBoostClassifier``, whose models are fitted to the weights along which the cost falls
        fastest. ``Stump()`` is the paper's algorithm: the best of all stumps in every round, found exhaustively.
    n_estimators : int, default=500
        Largest number of rounds.
    learning_rate : float in (0, 1], optional
        Part of the best step that a model votes with: shorter steps fit noise later. Default: 0.2 with the default
        learner, and 1, the paper's algorithm, with a given one.
    penalty : float in [0, 1], to 1e6 with stumps, or "auto", default=0.5
        Weight of the variance beside the mean. The larger it is, the shorter are the first steps. ``"auto"`` takes the
        one of a grid from 0 to 1 with the least error on held-out samples (of equals that with the fewest models), and
        needs some.
    stopping : Stopping, optional
        When to stop, by the error on held-out samples: see ``Stopping``. Default: ``Stopping(patience=100)``,
        which runs all rounds where ``fit`` is given no ``X_val`` and ``y_val``.
    random_state : int or RandomState, optional
        Fixes the models' seeds and the split.
    callbacks : sequence of callables, default=()
        Each is called with a ``Round`` after it; a true result stops the boosting.

    Attributes
    ----------
    classes_, votes_, ensembles_, n_features_in_, feature_names_in_
        As for ``AdaBoostClassifier``.
    estimators_ : list
        Base models. A side of a stump says the class that lowers the cost, which need not be the heavier one there.
    penalty_ : float or list of float
        The penalty used; with more than two classes and ``"auto"``, that of each class.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from counterpoise import EBBoostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = EBBoostClassifier(n_estimators=50, penalty=0.2).fit(X[:400], y[:400])
    >>> bool(model.score(X[400:], y[400:]) > 0.93)
    True
    """

    @property
    def _most_penalty(self) -> float:
        """The largest penalty: above 1 the cost may rise along a model that gets more right, which only stumps look at.

        Losses that are equal, as at first, have no variance: votes are of size 1 / p.
        """
        return 1e6 if isinstance(self.estimator, Stump) else 1.0

    def _fit_at(self, penalty: float, fit: Fit, start: FloatArray, held_out: HeldOut | None) -> Boosted:
        rate = self._rate()
        if not isinstance(self.estimator, Stump):
            return self._run(fit, SteepestStep(penalty, start, rate), start, held_out)
        rows: Any = fit  # made for stumps, it holds the features in bins
        stumps = BernsteinStumps(rows.prepared, rows.codes, start, penalty)

        def fit_best(weights: FloatArray, _number: int) -> Fitted:
            stump = clone(self.estimator)
            return Fitted(stump, (stumps.fit(stump, weights, rows.classes) != rows.codes).view(np.uint8))

        return self._run(fit_best, EBBoostStep(penalty, start, rate), start, held_out)
