"""Boosting by the exponential loss, and AdaBoost in its discrete form.

Freund and Schapire 1997, as Algorithm 1 of Shivaswamy and Jebara (NIPS 2011). Each round fits a model to weights
``w_i`` proportional to ``exp(-y_i f(x_i))`` and gives it the vote ``log(W_right / W_wrong) / 2``, which is greedy
descent on the mean of ``exp(-y f(x))``. ``VadaBoostClassifier`` also penalizes that loss's variance.

Boosters by the exponential loss differ in what the learner sees and how models vote. Everything that a round needs to
know of a model is where it agrees with the labels, so rules see zero-one losses, as elsewhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from counterpoise._base.types import AnyArray, ByteArray, FloatArray
from counterpoise.boosting.additive import AdditiveClassifier, BoostResult, HeldOut
from counterpoise.boosting.inputs import CheckedRows, round_seed
from counterpoise.boosting.learner import LearnerFit, base_learner
from counterpoise.boosting.rounds import Callback, History, Round
from counterpoise.boosting.stopping import Stopping
from counterpoise.solvers.rows import weighted_sum

_PERFECT = 1e-10  # part of all weight that is wrong in a perfect model: its vote stays finite, and no round can follow
_CHANCE = 1e-12  # the log of a ratio of weights, which has no unit: below this it is rounding, and the model chance
_SHORT_STEP = 0.2  # of the default learner, chosen with it (docs/results/tails.md)
WEIGHTS = "weights"  # in the memory: those that follow the exponential loss


def log_odds(right: float, wrong: float) -> float:
    """Return ``log(right / wrong)``, finite where nothing is wrong."""
    total = right + wrong
    return float(np.log(max(right, _PERFECT * total) / max(wrong, _PERFECT * total)))


@dataclass
class ExponentialStep:
    """Weigh samples by the exponential loss of the votes so far; a subclass defines what the learner sees and the vote.

    Weights are on the simplex. A vote is ``learning_rate`` of the best step: 1 is the papers', and shorter steps fit
    noise later.
    """

    _: KW_ONLY
    learning_rate: float = 1.0
    is_over: bool = field(default=False, init=False)  # a model was always right

    def vote(self, weights: FloatArray, losses: ByteArray) -> float:
        """Return the best step along a model that errs where ``losses`` is 1."""
        raise NotImplementedError

    def reweigh(self, history: History) -> FloatArray:
        """Return the weights that the learner is given: those of the loss, unless a subclass defines others."""
        return history.memory[WEIGHTS]

    def step(self, latest: Round, history: History) -> float:
        weights = history.memory.get(WEIGHTS, history.rows.start)
        best, self.is_over = self.vote(weights, latest.losses), not latest.losses.any()
        if best > _CHANCE:  # whatever part of it is taken
            vote = self.learning_rate * best
            update = weights * np.where(latest.losses, 1.0, np.exp(-2.0 * vote))  # up to a factor, and without overflow
            history.memory[WEIGHTS] = update / update.sum()
            return vote
        if history.n_rounds == 0:
            raise ValueError(
                "The base learner's first model is no better than chance: its weighted error is "
                f"{latest.weighted_loss:.3g}. Pass a stronger estimator, or check whether the labels are only noise."
            )
        return 0.0


class AdaBoostStep(ExponentialStep):
    """Weigh by the exponential loss; vote half the log odds of being right."""

    def vote(self, weights: FloatArray, losses: ByteArray) -> float:
        wrong = weighted_sum(weights, losses)
        return log_odds(1.0 - wrong, wrong) / 2


class RoundInputs(NamedTuple):
    """What the boosters by the exponential loss need for their rounds."""

    fit: LearnerFit
    held_out: HeldOut | None  # with the error on them
    learning_rate: float


def prepare(
    booster: Any, train: CheckedRows, held_out: CheckedRows | None, classes: AnyArray, entropy: int, auto: str = ""
) -> RoundInputs:
    """Prepare the rows for the learner; ``auto`` is the parameter that ``"auto"`` chooses on held-out samples."""
    if auto and getattr(booster, auto) == "auto" and held_out is None:
        raise ValueError(
            f"{auto}='auto' needs held-out samples: pass X_val and y_val, or set "
            "stopping=Stopping(validation_fraction=0.2)."
        )
    learner = base_learner(booster.estimator, train.codes.size)
    fit = LearnerFit(learner, train.X, train.codes, classes, partial(round_seed, entropy))
    default = _SHORT_STEP if booster.estimator is None else 1.0
    rate = default if booster.learning_rate is None else float(booster.learning_rate)
    if held_out is None:
        return RoundInputs(fit, None, rate)
    is_positive = held_out.codes == 1
    weights = held_out.weights / held_out.weights.max()  # equal ones are 1: their sums, and equal errors, are exact

    def error(sums: FloatArray) -> Any:  # of votes of shape (n_samples,) or (n_samples, n_ensembles)
        return ((sums.T > 0) != is_positive) @ weights / weights.sum()

    return RoundInputs(fit, HeldOut(fit.rows_like(held_out.X), classes, error), rate)


class AdaBoostClassifier(AdditiveClassifier):
    """AdaBoost with any base learner, the paper's discrete form.

    Algorithm 1 of Shivaswamy and Jebara 2011. With ``**AdaBoostClassifier.as_printed`` it is what they print: whole
    steps, and all rounds. A given learner has whole steps by default.

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

    #: Settings of Algorithm 1 of Shivaswamy and Jebara 2011 as it is printed: whole steps, and all rounds.
    as_printed: ClassVar[Mapping[str, Any]] = MappingProxyType({"learning_rate": 1.0, "stopping": Stopping()})

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

    def _boost(self, train: CheckedRows, held_out: CheckedRows | None, classes: AnyArray, entropy: int) -> BoostResult:
        fit, held_out_error, rate = prepare(self, train, held_out, classes, entropy)
        return self.run_rounds(fit, AdaBoostStep(learning_rate=rate), train.weights, held_out_error)
