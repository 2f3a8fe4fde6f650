"""VadaBoost and EBBoost: boosting that penalizes the variance of the loss and not only its mean.

VadaBoost: Shivaswamy and Jebara, NIPS 2011, Algorithm 2. With ``e_i = exp(-y_i f(x_i))`` and a penalty p in [0, 1] it
descends, round by round, on their cost (3)::

    (sum e_i)^2 + p (n sum e_i^2 - (sum e_i)^2)

through an upper bound of it that is exact where the round starts (Theorem 3), so the cost never rises (Corollary 4).
The learner is given weights ``u_i = p n w_i^2 + (1 - p) w_i``, where ``w_i`` is ``e_i`` scaled to sum to 1; its vote
is ``log(U_right / U_wrong) / 4``. With sample weights q that sum to 1, ``n w_i^2`` reads ``w_i^2 / q_i``: repeating a
sample and doubling its weight are then the same.

At penalty 0 it descends on AdaBoost's cost with shorter steps, and needs at most twice as many rounds where all models
have one error rate (Theorem 5). At penalty 1 the learner sees ``w_i^2``, which are AdaBoost's weights for ``2 f``: the
models are AdaBoost's, and their votes half of its. Above 1 the bound does not hold; ``EBBoostClassifier`` needs none.

EBBoost takes, in every round, the best step on mean and variance of the loss: Shivaswamy and Jebara, NIPS 2011,
Algorithm 3 (Empirical Bernstein boosting, AISTATS 2010). With weights w on the simplex, penalty p >= 0 and a stump that
is right on I and wrong on J, let W and S be sums of the weights and of their squares, and ::

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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from counterpoise._base.checks import check_penalty
from counterpoise._base.types import AnyArray, ByteArray, FloatArray
from counterpoise.boosting.adaboost import WEIGHTS, ExponentialStep, log_odds, prepare
from counterpoise.boosting.additive import AdditiveClassifier, BoostResult, one_or_all
from counterpoise.boosting.inputs import CheckedRows, is_word
from counterpoise.boosting.rounds import Callback, Fitted, History
from counterpoise.boosting.stopping import Stopping, stopping_of
from counterpoise.learners import Stump
from counterpoise.learners.bernstein_stump import BernsteinStumps
from counterpoise.solvers.rows import weighted_sum

PENALTIES = (0.0, 0.1, 0.25, 0.5, 1.0)  # that "auto" tries, AdaBoost's cost among them


def slope_weights(weights: FloatArray, start: FloatArray, penalty: float) -> FloatArray:
    """Return how fast the cost of mean and variance falls as a model gets each sample right, scaled to sum to 1."""
    slopes = penalty * weights**2 / start + (1.0 - penalty) * weights
    return np.asarray(slopes / slopes.sum())


def boost_at_best(booster: Any, boost_at: Callable[[float], BoostResult]) -> BoostResult:
    """Boost at every penalty on the same prepared rows; keep the one of least held-out error.

    Of equals the one with the fewest models.
    """
    penalties = PENALTIES if booster.penalty == "auto" else (float(booster.penalty),)
    results = [boost_at(at)._replace(details=at) for at in penalties]
    last = -1 if stopping_of(booster).patience is None else slice(None)
    if len(results) == 1:
        return results[0]
    return min(results, key=lambda one: (float(np.min(one.held_out_losses[last])), len(one.models)))


@dataclass
class VadaBoostStep(ExponentialStep):
    """Weigh by mean and variance of the exponential loss; vote a quarter of the log odds of being right."""

    penalty: float
    start: FloatArray

    def reweigh(self, history: History) -> FloatArray:
        return slope_weights(history.memory[WEIGHTS], self.start, self.penalty)

    def vote(self, weights: FloatArray, losses: ByteArray) -> float:
        wrong = weighted_sum(slope_weights(weights, self.start, self.penalty), losses)
        return log_odds(1.0 - wrong, wrong) / 4


class VadaBoostClassifier(AdditiveClassifier):
    """Boosting with a penalty on the variance of the loss, for any base learner.

    Algorithm 2 of Shivaswamy and Jebara 2011; ``penalty`` is their lambda. With ``**VadaBoostClassifier.as_printed`` it
    is what they print: whole steps, and all rounds. The learner of their Table 2 is exact CART, scikit-learn's
    ``DecisionTreeClassifier``.

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

    default_stopping = Stopping(patience=100)
    #: Settings of Algorithm 2 of Shivaswamy and Jebara 2011 as it is printed: whole steps, and all rounds.
    as_printed: ClassVar[Mapping[str, Any]] = MappingProxyType({"learning_rate": 1.0, "stopping": Stopping()})

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

    def _check_own_parameters(self) -> None:
        if not is_word(self.penalty, "penalty", ("auto",)):
            check_penalty(self.penalty, 1.0)

    def _store_details(self, details: list[Any]) -> None:
        self.penalty_ = one_or_all(details, is_given=self.penalty != "auto")

    def _boost(self, train: CheckedRows, held_out: CheckedRows | None, classes: AnyArray, entropy: int) -> BoostResult:
        fit, held_out_error, rate = prepare(self, train, held_out, classes, entropy, "penalty")

        def boost_at(penalty: float) -> BoostResult:
            rule = VadaBoostStep(penalty, train.weights, learning_rate=rate)
            return self.run_rounds(fit, rule, train.weights, held_out_error)

        return boost_at_best(self, boost_at)


_CHANCE = 1e-12  # part of A + B that A must be above B by: less is rounding


@dataclass
class EBBoostStep(ExponentialStep):
    """Give the learner the weights as they are; vote by what the cost is made of on right and wrong samples."""

    penalty: float
    start: FloatArray

    def vote(self, weights: FloatArray, losses: ByteArray) -> float:
        squares = weights**2 / self.start
        # A and B, from the sums of weights and of squares over the samples they are made of.
        weight, square = (np.array([weighted_sum(one, losses), one.sum()]) for one in (weights, squares))
        weight[1], square[1] = weight[1] - weight[0], square[1] - square[0]
        wrong, right = weight**2 + self.penalty * np.maximum(square - weight**2, 0.0)
        if right - wrong <= _CHANCE * (right + wrong):
            return 0.0
        return log_odds(np.sqrt(right), np.sqrt(wrong)) / 2  # roots: a perfect model's vote is then AdaBoost's


class SteepestStep(EBBoostStep):
    """Give the learner the weights along which the cost falls fastest; vote the best step along its model."""

    def reweigh(self, history: History) -> FloatArray:
        return slope_weights(history.memory[WEIGHTS], self.start, self.penalty)


class EBBoostClassifier(AdditiveClassifier):
    """Boosting with a penalty on the variance of the loss, and the best step along every model.

    With ``Stump()`` Algorithm 3 of Shivaswamy and Jebara 2011; ``penalty`` is their lambda. With
    ``**EBBoostClassifier.as_printed`` it is what they print: whole steps, and all rounds.

    Parameters
    ----------
    estimator : classifier, optional
        Base learner, as for ``VadaBoostClassifier``, whose models are fitted to the weights along which the cost falls
        fastest. ``Stump()`` is the paper's algorithm: the best of all stumps in every round, by exhaustive search.
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
        Base models. A side of a stump predicts the class that lowers the cost, which need not be the heavier one there.
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

    default_stopping = Stopping(patience=100)
    #: Settings of Algorithm 3 of Shivaswamy and Jebara 2011 as it is printed: whole steps, and all rounds.
    as_printed: ClassVar[Mapping[str, Any]] = MappingProxyType({"learning_rate": 1.0, "stopping": Stopping()})

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

    def _check_own_parameters(self) -> None:
        # Above 1 the cost may rise along a model that gets more right, which only stumps use. Losses that are
        # equal, as at first, have no variance: votes are of size 1 / p.
        if not is_word(self.penalty, "penalty", ("auto",)):
            check_penalty(self.penalty, 1e6 if isinstance(self.estimator, Stump) else 1.0)

    def _store_details(self, details: list[Any]) -> None:
        self.penalty_ = one_or_all(details, is_given=self.penalty != "auto")

    def _boost(self, train: CheckedRows, held_out: CheckedRows | None, classes: AnyArray, entropy: int) -> BoostResult:
        fit, held_out_error, rate = prepare(self, train, held_out, classes, entropy, "penalty")
        start = train.weights

        def boost_at(penalty: float) -> BoostResult:
            if not isinstance(self.estimator, Stump):
                return self.run_rounds(fit, SteepestStep(penalty, start, learning_rate=rate), start, held_out_error)
            stumps = BernsteinStumps(fit.prepared, fit.codes, start, penalty)

            def fit_best(weights: FloatArray, _number: int) -> Fitted:
                stump = clone(self.estimator)
                return Fitted(stump, (stumps.fit(stump, weights, classes) != fit.codes).view(np.uint8))

            return self.run_rounds(fit_best, EBBoostStep(penalty, start, learning_rate=rate), start, held_out_error)

        return boost_at_best(self, boost_at)
