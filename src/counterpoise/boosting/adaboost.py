"""AdaBoost in its discrete form.

Freund and Schapire 1997, as Algorithm 1 of Shivaswamy and Jebara (NIPS 2011). Each round fits a model to weights
``w_i`` proportional to ``exp(-y_i f(x_i))`` and gives it the vote ``log(W_right / W_wrong) / 2``, which is greedy
descent on the mean of ``exp(-y f(x))``. ``VadaBoostClassifier`` also penalizes that loss's variance.
"""

from collections.abc import Sequence
from typing import Any

from counterpoise._base.types import ByteArray, FloatArray
from counterpoise.boosting.additive import Boosted, HeldOut
from counterpoise.boosting.exponential import ExponentialBooster, ExponentialStep, log_odds
from counterpoise.boosting.rounds import Callback, Fit
from counterpoise.boosting.stopping import Stopping


class AdaBoostStep(ExponentialStep):
    """Weigh by the exponential loss; vote half the log odds of being right."""

    def __init__(self, learning_rate: float = 1.0) -> None:
        self.learning_rate = learning_rate

    def vote(self, weights: FloatArray, losses: ByteArray) -> float:
        wrong = float(weights @ losses)
        return log_odds(1.0 - wrong, wrong) / 2


class AdaBoostClassifier(ExponentialBooster):
    """AdaBoost with any base learner, the paper's discrete form.

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
    stopping : Stopping, optional
        When to stop, by the error on held-out samples: see ``Stopping``. Default: ``Stopping()``, which
        runs all rounds.
    random_state : int or RandomState, optional
        Fixes the models' seeds and the split.
    callbacks : sequence of callables, default=()
        Each is called with a ``Round`` after it; a true result stops the boosting.

    Attributes
    ----------
    classes_ : array
        Class labels.
    estimators_ : list
        Base models.
    votes_ : array of shape (n_models,)
        Their votes.
    ensembles_ : list of Ensemble
        Models and votes by class: one for two classes, else one for each class against the others.
    n_features_in_, feature_names_in_ : int and array
        Number of features, and their names where ``X`` had them.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from counterpoise import AdaBoostClassifier
    >>> from counterpoise.learners import Stump
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = AdaBoostClassifier(Stump(), n_estimators=50).fit(X[:400], y[:400])
    >>> bool(model.score(X[400:], y[400:]) > 0.93)
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_estimators: int = 500,
        learning_rate: float | None = None,
        stopping: Stopping | None = None,
        random_state: Any = None,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.stopping = stopping
        self.random_state = random_state
        self.callbacks = callbacks

    def _rounds(self, fit: Fit, start: FloatArray, held_out: HeldOut | None) -> Boosted:
        return self._run(fit, AdaBoostStep(self._rate()), start, held_out)
