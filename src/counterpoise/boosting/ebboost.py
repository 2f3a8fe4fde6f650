"""EBBoost: boosting of stumps that takes, in every round, the best step of all on mean and variance of the loss.

Shivaswamy and Jebara, NIPS 2011, Algorithm 3 (Empirical Bernstein boosting, AISTATS 2010). With weights w on the
simplex, penalty p >= 0 and a stump that is right on I and wrong on J, let W and S be sums of the weights and of
their squares, and ::

    A = (1 - p) W_I^2 + p n S_I,    B = (1 - p) W_J^2 + p n S_J

The vote that lowers cost (3) of the paper most is ``log(A / B) / 4``, and leaves ``2 sqrt(A B) + 2 (1 - p) W_I W_J``
of it. A round takes the stump for which that is least. ``VadaBoostClassifier`` descends on the same cost through an
upper bound, with any learner; here no bound is in between, but the search is over stumps only. That bound needs p <= 1;
A and B are at least ``W_I^2`` and ``W_J^2`` for any p, so steps and costs are as above for larger ones too.

With sample weights q that sum to 1, ``n w_i^2`` reads ``w_i^2 / q_i``: repeating a sample and doubling its weight are
then the same. At penalty 0 the cost is the square of AdaBoost's, and the steps are AdaBoost's with the stump of least
error.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from counterpoise._base.types import ArrayLike, ByteArray, FloatArray
from counterpoise.boosting.additive import Boosted, HeldOut
from counterpoise.boosting.exponential import ExponentialStep, log_odds
from counterpoise.boosting.penalized import PenalizedBooster
from counterpoise.boosting.rounds import Callback, Fit, Fitted
from counterpoise.learners import Stump
from counterpoise.learners.bernstein_stump import BernsteinStumps

_CHANCE = 1e-12  # part of A + B that A must be above B by: less is rounding


class EBBoostStep(ExponentialStep):
    """Give the learner the weights as they are; vote by what the cost is made of on right and wrong samples."""

    def __init__(self, penalty: float, start: FloatArray) -> None:
        self.penalty, self.start = penalty, start

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


class EBBoostClassifier(PenalizedBooster):
    """Boosting of decision stumps with a penalty on the variance of the loss, each the best of all stumps.

    Parameters
    ----------
    n_estimators : int, default=500
        Largest number of rounds.
    penalty : float in [0, 1e6] or "auto", default=0.5
        Weight of the variance beside the mean. The larger it is, the shorter are the first steps. ``"auto"`` takes the
        one of a grid from 0 to 1 with the least error on held-out samples (of equals that with the fewest models), and
        needs some.
    patience : int, optional, default=100
        Stop when the error on held-out samples has not dropped for so many rounds, and keep the rounds up to its least.
        Without held-out samples all rounds are run.
    validation_fraction : float in (0, 1), optional
        Part of the samples that is held out, where ``fit`` is not given ``X_val`` and ``y_val``.
    max_bins : int, default=256
        The number of bins of a feature, from 3 to 256, one of them for missing values. A feature with fewer distinct
        values is cut between all of them.
    categorical_features : array of int or of bool, optional
        The features whose values are codes of categories, whole numbers from 0 to 254: their indices, or a mask. At
        penalty 0 and 1 the best subset of categories is found, at others a good one.
    random_state : int or RandomState, optional
        Fixes the split; the stumps need no chance.
    callbacks : sequence of callables, default=()
        Each is called with a ``Round`` after it; a true result stops the boosting.

    Attributes
    ----------
    classes_, votes_, ensembles_, n_features_in_, feature_names_in_
        As for ``AdaBoostClassifier``.
    estimators_ : list of Stump
        The stumps. A side says the class that lowers the cost, which need not be the heavier one there.
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

    # Losses that are equal, as at first, have no variance: votes are of size 1 / p.
    _most_penalty: ClassVar[float] = 1e6

    def __init__(
        self,
        *,
        n_estimators: int = 500,
        penalty: float | str = 0.5,
        patience: int | None = 100,
        validation_fraction: float | None = None,
        max_bins: int = 256,
        categorical_features: ArrayLike | None = None,
        random_state: Any = None,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.n_estimators = n_estimators
        self.penalty = penalty
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.random_state = random_state
        self.callbacks = callbacks

    @property
    def estimator(self) -> Stump:
        """The base learner, not fitted: no parameter, because the search is over stumps."""
        return Stump(max_bins=self.max_bins, categorical_features=self.categorical_features)

    def _fit_at(self, penalty: float, fit: Fit, start: FloatArray, held_out: HeldOut | None) -> Boosted:
        rows: Any = fit  # made for the stump above, it holds the features in bins
        stumps = BernsteinStumps(rows.prepared, rows.codes, start, penalty)

        def fit_best(weights: FloatArray, _number: int) -> Fitted:
            stump = self.estimator
            return Fitted(stump, (stumps.fit(stump, weights, rows.classes) != rows.codes).view(np.uint8))

        return self._run(fit_best, EBBoostStep(penalty, start), start, held_out)
