"""VadaBoost: boosting that penalizes the variance of the loss and not only its mean.

Shivaswamy and Jebara, NIPS 2011, Algorithm 2. With ``e_i = exp(-y_i f(x_i))`` and a penalty p in [0, 1] it descends,
round by round, on their cost (3)::

    (sum e_i)^2 + p (n sum e_i^2 - (sum e_i)^2)

through an upper bound of it that is exact where the round starts (Theorem 3), so the cost never rises (Corollary 4).
The learner is given weights ``u_i = p n w_i^2 + (1 - p) w_i``, where ``w_i`` is ``e_i`` scaled to sum to 1; its vote
is ``log(U_right / U_wrong) / 4``. With sample weights q that sum to 1, ``n w_i^2`` reads ``w_i^2 / q_i``: repeating a
sample and doubling its weight are then the same.

At penalty 0 it descends on AdaBoost's cost with shorter steps, and needs at most twice as many rounds where all models
have one error rate (Theorem 5). At penalty 1 the learner sees ``w_i^2``, which are AdaBoost's weights for ``2 f``: the
models are AdaBoost's, and their votes half of its. Above 1 the bound does not hold; ``EBBoostClassifier`` needs none.
"""

from counterpoise._base.types import ByteArray, FloatArray
from counterpoise.boosting.additive import Boosted, HeldOut
from counterpoise.boosting.exponential import ExponentialStep, log_odds
from counterpoise.boosting.penalized import PenalizedBooster, slope_weights
from counterpoise.boosting.rounds import Fit


class VadaBoostStep(ExponentialStep):
    """Weigh by mean and variance of the exponential loss; vote a quarter of the log odds of being right."""

    def __init__(self, penalty: float, start: FloatArray, learning_rate: float = 1.0) -> None:
        self.penalty, self.start, self.learning_rate = penalty, start, learning_rate

    def learner_weights(self, weights: FloatArray) -> FloatArray:
        return slope_weights(weights, self.start, self.penalty)

    def vote(self, weights: FloatArray, losses: ByteArray) -> float:
        wrong = float(self.learner_weights(weights) @ losses)
        return log_odds(1.0 - wrong, wrong) / 4


class VadaBoostClassifier(PenalizedBooster):
    """Boosting with a penalty on the variance of the loss, for any base learner.

    Parameters
    ----------
    estimator : classifier, optional
        Base learner: any scikit-learn classifier or pipeline. Default: a ``HistogramTree`` of depth 6 with leaves of
        at least 20 samples, or of an eighth of fewer than 160.
    n_estimators : int, default=500
        Largest number of rounds.
    learning_rate : float in (0, 1], optional
        Part of the best step that a model votes with: shorter steps fit noise later. Default: 0.2 with the default
        learner, and 1, the paper's algorithm, with a given one.
    penalty : float in [0, 1] or "auto", default=0.5
        Weight of the variance beside the mean. ``"auto"`` takes the one of a grid with the least error on held-out
        samples (of equals that with the fewest models), and needs some.
    stopping : Stopping, optional
        When to stop, by the error on held-out samples: see ``Stopping``. Default: ``Stopping(patience=100)``,
        which runs all rounds where ``fit`` is given no ``X_val`` and ``y_val``.
    random_state : int or RandomState, optional
        Fixes the models' seeds and the split.
    callbacks : sequence of callables, default=()
        Each is called with a ``Round`` after it; a true result stops the boosting.

    Attributes
    ----------
    classes_, estimators_, votes_, ensembles_, n_features_in_, feature_names_in_
        As for ``AdaBoostClassifier``.
    penalty_ : float or list of float
        The penalty used; with more than two classes and ``"auto"``, that of each class.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from counterpoise import VadaBoostClassifier
    >>> from counterpoise.learners import Stump
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = VadaBoostClassifier(Stump(), n_estimators=50, penalty=0.2).fit(X[:400], y[:400])
    >>> bool(model.score(X[400:], y[400:]) > 0.93)
    True
    """

    def _fit_at(self, penalty: float, fit: Fit, start: FloatArray, held_out: HeldOut | None) -> Boosted:
        return self._run(fit, VadaBoostStep(penalty, start, self._rate()), start, held_out)
