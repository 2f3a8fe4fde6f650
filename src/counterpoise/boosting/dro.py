"""DRO-Boosting: functional subgradient descent on the worst mean loss over a ball of distributions.

Blanchet, Zhang, Kang and Hu, Algorithm 1. The robust loss of a score F is ``max weights @ losses`` over weights within
``radius`` of the samples' own (``solvers.worst_case``). Each round takes its worst weights, fits the base learner to
the subgradient there (``Directions``), searches along the model for the least robust loss (``robust_loss``), and stops
where nothing improves (``RobustRule``). The radius is that of Theorem 1: as the sample grows, the ball holds with a
given probability a distribution for which the true best score is optimal. The theorem needs a fixed class of finite
dimension and a stationary point in it; for boosted trees, which are chosen from the same samples, "calibrated" is a
heuristic.

Two things are ours. A round goes only ``learning_rate`` of the way that the line search finds: the robust loss is
convex, so it still falls in every round, and on the paper's data the test accuracy is higher. And the number of rounds,
which the paper does not give, is chosen on held-out samples. ``learning_rate=1`` is the paper's algorithm.

Close to it: with losses ``-exp(y F)`` and the radius ``log mean exp(-y F) + mean(y F)`` the worst weights are those of
AdaBoost (Corollary 2, where the paper's minus is a slip).

Directions of descent are the best approximation of a subgradient among the functions that a base learner can fit. A
subgradient of the robust loss at the scores F is ``G_i = w_i loss'(y_i F(x_i)) y_i``, one number for each sample; its
negative is the *pull* on the score of that sample. A classifier, which returns -1 or +1, approximates the pulls best
where it is fitted to their signs with their sizes as weights: that maximizes ``sum pull_i h(x_i)``. A regressor is
fitted to the pulls themselves by least squares, in the norm of the samples' own weights q, where a pull reads ``pull_i
/ q_i``.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import is_regressor
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline

from counterpoise._base.checks import check_choice, check_confidence, check_number, check_positive
from counterpoise._base.types import AnyArray, FloatArray
from counterpoise.boosting.additive import (
    AdditiveClassifier,
    BoostResult,
    HeldOut,
    logistic_probabilities,
    model_values,
    one_or_all,
)
from counterpoise.boosting.inputs import CheckedRows, is_word, round_seed
from counterpoise.boosting.learner import LearnerFit, RoundTarget
from counterpoise.boosting.robust_loss import EXACT, ROUGH, RobustLoss, State, dot
from counterpoise.boosting.rounds import Callback, Fitted, History, Round
from counterpoise.boosting.stopping import Stopping
from counterpoise.learners.resampling import fresh_copy, weight_argument
from counterpoise.solvers.worst_case import DIVERGENCES, check_radius
from counterpoise.theory.guarantees import calibrated_radius
from counterpoise.theory.losses import LOSSES, MarginLoss


def make_directions(
    learner: Any, X: Any, labels: FloatArray, own: FloatArray, classes: AnyArray, random_seeds: Callable[[int], int]
) -> "Directions":
    """Return the directions of a learner for samples with labels -1 and +1 and weights of their own."""
    if is_regressor(learner):
        return ValueDirections(learner, X, own, random_seeds)
    codes = (labels > 0).astype(np.int64)
    return SignDirections(LearnerFit(learner, X, codes, classes, random_seeds))


class SignDirections:
    """Fit a classifier to the signs of the pulls, weighted by their sizes."""

    are_signs = True  # its values are -1 and +1 only

    def __init__(self, fit: LearnerFit) -> None:
        self.fit, self._target_codes = fit, fit.codes

    def __call__(self, pulls: FloatArray, number: int) -> tuple[Any, FloatArray]:
        """Return the model of a round, and its value on each sample."""
        sizes = np.abs(pulls)
        # A loss that rises again pulls back what is too sure; where nothing pulls, the wish of before stays.
        self._target_codes = np.where(sizes > 0, pulls > 0, self._target_codes).astype(np.int64)
        model, answers, _ = self.fit.fit_round(RoundTarget(self._target_codes, sizes / sizes.sum()), number)
        return model, np.where(answers == 1, 1.0, -1.0)

    def rows_like(self, X: Any) -> Any:
        return self.fit.rows_like(X)


class ValueDirections:
    """Fit a regressor to the pulls by least squares."""

    are_signs = False

    def __init__(self, learner: Any, X: Any, own: FloatArray, random_seeds: Callable[[int], int]) -> None:
        self.learner, self.X, self.own, self.random_seeds = learner, X, own, random_seeds
        self.argument = weight_argument(learner)
        if self.argument is None and np.ptp(own) > 0:
            raise ValueError(
                f"estimator must take sample_weight at fit, because the samples' weights differ; {learner!r} does not."
            )

    def __call__(self, pulls: FloatArray, number: int) -> tuple[Any, FloatArray]:
        """Return the model of a round, and its value on each sample."""
        model = fresh_copy(self.learner, self.random_seeds(number))
        weights = {} if self.argument is None else {self.argument: self.own * self.own.size}
        model.fit(self.X, pulls / self.own, **weights)
        return model, model_values(model, self.X, None)

    def rows_like(self, X: Any) -> Any:
        return X


Directions = SignDirections | ValueDirections


def dimension(model: Any, n_features: int) -> int:
    """Return the dimension of the functions that have a model's structure: the degrees of freedom of Theorem 1.

    For a tree the number of its leaves, as the paper counts about 30 for trees of 5 levels; for a linear model that of
    its coefficients; for any other that of a linear one, a coefficient for each feature and a constant.
    """
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    if hasattr(last, "tree_") and hasattr(last.tree_, "feature"):
        # Leaves have no feature, in our trees and scikit-learn's.
        return int((np.asarray(last.tree_.feature) < 0).sum())
    if hasattr(last, "coef_"):
        return int(np.size(last.coef_)) + 1
    return n_features + 1


class Descent(NamedTuple):
    """What a descent on the robust loss left behind."""

    models: list[Any]
    votes: FloatArray
    radius: float
    robust_losses: FloatArray  # (n_models + 1,): at the start and after each round
    weights: list[FloatArray]  # on the samples: the worst ones, from which each round started
    held_out_losses: FloatArray  # mean loss on held-out samples after each round, later ones included; empty without


class RobustRule:
    """Weigh samples by the worst weights, and go a part of the way to the least robust loss along the model.

    Parameters
    ----------
    directions : Directions
        The base learner on the samples.
    labels, own : array of shape (n_samples,)
        Labels -1 and +1, and the samples' own weights on the simplex.
    robust_loss : callable
        Gives the robust loss, once the first model is there: its radius may depend on the learner. At the
        score 0 all losses are equal and the worst weights are the samples' own, so the first model does not need it.
    loss : MarginLoss
        What is made robust.
    learning_rate : float in (0, 1]
        That part of the way.
    """

    def __init__(
        self,
        directions: Directions,
        labels: FloatArray,
        own: FloatArray,
        robust_loss: Callable[[Any], RobustLoss],
        *,
        loss: MarginLoss,
        learning_rate: float = 1.0,
    ) -> None:
        self._directions, self._labels, self._learning_rate = directions, labels, learning_rate
        self._robust_loss = robust_loss
        margins = np.zeros(labels.size)
        losses = loss.value(margins)
        self.state = State(margins, losses, own, own * loss.slope(margins), float(losses[0]))
        self.robust_losses: list[float] = []
        self.is_over = False

    def fit(self, _weights: FloatArray, number: int) -> Fitted:
        """Fit the learner to the subgradient at the worst weights."""
        model, values = self._directions(-self.state.slopes * self._labels, number)
        sides = self._labels * values
        return Fitted(model, (sides <= 0).view(np.uint8), sides)

    def reweigh(self, _history: History) -> FloatArray:
        return self.state.weights

    def step(self, latest: Round, history: History) -> float:
        """Search along the model, and go there; 0 where nothing improves."""
        if history.n_rounds == 0:
            self.robust = self._robust_loss(latest.model)
            self.state = self.robust.at(self.state.margins)
            self.robust_losses.append(self.state.value)
        assert latest.sides is not None  # noqa: S101 - as ``fit`` gives them
        are_signs = self._directions.are_signs
        flat = EXACT if self._learning_rate == 1.0 else ROUGH
        best = self.robust.line_search(self.state, latest.sides, are_signs=are_signs, flat=flat)
        # A model that is always right has no best step to go a part of, and no round can follow it.
        vote = best.step if best.is_endless else self._learning_rate * best.step
        if vote == best.step:
            self.state = best.state
        else:
            self.state = self.robust.along(self.state, latest.sides, vote, are_signs=are_signs)
        self.robust_losses.append(self.state.value)
        # A model was always right, or every loss is at its least and nothing pulls.
        self.is_over = best.is_endless or not self.state.slopes.any()
        return vote


DRO_LOSSES = ("exponential", "logistic", "squared")
RADIUS_FACTORS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # of the calibrated radius, that "cv" tries
_FOLDS = 3
_WHOLE = 1e-9  # part of a multiple of the least weight by which it may be off a whole one
_MOST_REPEATS = 1e6  # far beyond, every float is a whole multiple: a sample of next to no weight is no unit to count in


class DROBoostClassifier(AdditiveClassifier):
    """Boosting of the worst mean loss over a ball of distributions around the samples, for any base learner.

    Algorithm 1 of Blanchet et al. With ``**DROBoostClassifier.as_printed`` it is what they print: the ball of Lemma 2,
    steps to the end of the line search, and all rounds. The default radius is that of their experiments.

    Parameters
    ----------
    estimator : classifier or regressor, optional
        Base learner. A classifier is fitted to the signs of the subgradient, a regressor (such as a regression tree) to
        its values by least squares. Default: the tree of ``AdaBoostClassifier``.
    n_estimators : int, default=500
        Largest number of rounds.
    radius : float >= 0, "calibrated" or "cv", default="calibrated"
        Size of the ball. ``"calibrated"`` is ``guarantees.calibrated_radius`` at ``radius_confidence``, of the samples
        that are not held out; ``"cv"`` takes the multiple of it with the least held-out loss in a threefold
        cross-validation. 0 is boosting of the mean loss.
    radius_confidence : float in (0, 1), default=0.9
        Probability with which the calibrated ball holds a distribution for which the true best score is optimal, for a
        fixed class of finite dimension; for boosted trees the radius that follows is a heuristic.
    degrees_of_freedom : float, optional
        Dimension of the learner's functions, for the calibrated radius. Default: that of the first model, which is the
        number of leaves of a tree, of the coefficients of a linear model, and else of features plus one.
    divergence : {"empirical-likelihood", "kl", "chi-square", "cvar"}, default="empirical-likelihood"
        What the radius measures, as for ``solvers.worst_case_weights``.
    loss : {"exponential", "logistic", "squared"}, default="exponential"
        Loss of the margin. It implies the link of ``predict_proba``: ``1 / (1 + exp(-2 f))`` for the exponential loss,
        ``1 / (1 + exp(-f))`` for the logistic one, and for the squared one ``(1 + f) / 2`` cut to [0, 1].
    learning_rate : float in (0, 1], default=0.2
        Part of the way to the least robust loss that a round goes; 1 is the paper's algorithm.
    stopping : Stopping, optional
        When to stop, by the mean loss on held-out samples: see ``Stopping``, of which ``validation_fraction="auto"``
        is for this booster. Default: ``Stopping(patience=10)``, which runs all rounds where ``fit`` is given no
        ``X_val`` and ``y_val``.
    random_state : int or RandomState, optional
        Fixes the models' seeds and the split.
    callbacks : sequence of callables, default=()
        Each is called with a ``Round`` after it; a true result stops the boosting.

    Attributes
    ----------
    classes_, estimators_, votes_, ensembles_, n_features_in_, feature_names_in_
        As for ``AdaBoostClassifier``; the votes are steps.
    descents_ : list of Descent
        For each ensemble the radius, the robust loss before and after each round, the sample weights of each round and
        the held-out losses. Weights are those of the training samples, without the held-out ones.
    radius_, degrees_of_freedom_ : float, or list of float for more than two classes
        The radius used, and the degrees of freedom that calibrated it (None where the radius was given).
    robust_losses_ : array of shape (n_models + 1,), or list of arrays
        The robust loss on the training samples at the start and after each round: it never rises.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from counterpoise import DROBoostClassifier
    >>> from counterpoise.learners import HistogramTree
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DROBoostClassifier(HistogramTree(max_depth=3), n_estimators=50, random_state=0).fit(X[:400], y[:400])
    >>> bool(model.score(X[400:], y[400:]) > 0.93), model.degrees_of_freedom_, round(model.radius_, 4)
    (True, 7.0, 0.015)
    """

    default_stopping = Stopping(patience=10)
    #: Settings of Algorithm 1 of Blanchet et al. as it is printed; radius and loss are inputs of it.
    as_printed: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {"divergence": "empirical-likelihood", "learning_rate": 1.0, "stopping": Stopping()}
    )
    _takes_auto_fraction = _takes_regressors = True

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_estimators: int = 500,
        radius: float | str = "calibrated",
        radius_confidence: float = 0.9,
        degrees_of_freedom: float | None = None,
        divergence: str = "empirical-likelihood",
        loss: str = "exponential",
        learning_rate: float = 0.2,
        stopping: Stopping | None = None,
        random_state: Any = None,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.radius = radius
        self.radius_confidence = radius_confidence
        self.degrees_of_freedom = degrees_of_freedom
        self.divergence = divergence
        self.loss = loss
        self.learning_rate = learning_rate
        self.stopping = stopping
        self.random_state = random_state
        self.callbacks = callbacks

    def _probabilities(self, sums: FloatArray) -> FloatArray:
        if self.loss != "squared":
            return logistic_probabilities(2.0 * sums if self.loss == "exponential" else sums)
        each = np.clip((1.0 + sums) / 2, 0.0, 1.0)
        if sums.ndim == 1:
            return np.column_stack([1.0 - each, each])
        total = each.sum(axis=1, keepdims=True)
        return np.where(total > 0, each / np.where(total > 0, total, 1.0), 1 / each.shape[1])

    def _check_own_parameters(self) -> None:
        check_choice(self.loss, "loss", DRO_LOSSES)
        check_choice(self.divergence, "divergence", DIVERGENCES)
        check_confidence(self.radius_confidence, "radius_confidence")
        if not is_word(self.radius, "radius", ("calibrated", "cv")):
            check_radius(self.radius)
        if self.degrees_of_freedom is not None:
            check_positive(self.degrees_of_freedom, "degrees_of_freedom")
        check_number(self.learning_rate, "learning_rate", "(0, 1]", "part of a step")

    def _check_samples(self, train: CheckedRows) -> None:
        counts = np.bincount(train.codes)
        if self.radius == "cv" and counts.min() < _FOLDS:
            raise ValueError(
                f"radius='cv' needs {_FOLDS} samples of each class to train on, one for each fold; the class "
                f"{self.classes_.tolist()[counts.argmin()]!r} has {counts.min()}. Use radius='calibrated', or a number."
            )

    def _store_details(self, descents: list[Descent]) -> None:
        self.descents_ = descents
        self.radius_ = one_or_all([descent.radius for descent in descents])
        self.degrees_of_freedom_ = one_or_all([self._degrees_of_freedom(descent.models[0]) for descent in descents])
        self.robust_losses_ = one_or_all([descent.robust_losses for descent in descents])

    def _boost(self, train: CheckedRows, held_out: CheckedRows | None, classes: AnyArray, entropy: int) -> BoostResult:
        factor = self._factor_by_folds(train, classes, entropy) if self.radius == "cv" else 1.0
        result = self._descend(train, held_out, classes, entropy, factor, self.callbacks)
        if not result.models:
            raise ValueError(
                "The base learner's first model is no better than chance under the worst weights: the robust loss "
                f"at radius {result.details.radius:.3g} does not fall along it. Pass a stronger estimator or a "
                "smaller radius, or check whether the labels are only noise."
            )
        return result

    def _descend(
        self,
        train: CheckedRows,
        held_out: CheckedRows | None,
        classes: AnyArray,
        entropy: int,
        factor: float,
        callbacks: Sequence[Callback] = (),
    ) -> BoostResult:
        """Return the rounds at a multiple of the calibrated radius, with the ``Descent``; no model where none helps."""
        own, loss = train.weights, LOSSES[self.loss]
        labels = np.where(train.codes == 1, 1.0, -1.0)

        def robust_loss(model: Any) -> RobustLoss:
            degrees = self._degrees_of_freedom(model)
            if degrees is None:
                return RobustLoss(loss, self.divergence, float(self.radius), own)
            radius = factor * calibrated_radius(sample_count(own), self.radius_confidence, degrees)
            return RobustLoss(loss, self.divergence, radius, own)

        learner, round_seeds = self._learner(own.size), partial(round_seed, entropy)
        directions = make_directions(learner, train.X, labels, own, classes, round_seeds)
        rule = RobustRule(directions, labels, own, robust_loss, loss=loss, learning_rate=float(self.learning_rate))
        held_out_loss = None
        if held_out is not None:
            own_labels, own_weights = np.where(held_out.codes == 1, 1.0, -1.0), held_out.weights

            def mean_loss(sums: FloatArray) -> float:
                return dot(own_weights, loss.value(own_labels * sums))

            model_labels = classes if directions.are_signs else None
            held_out_loss = HeldOut(directions.rows_like(held_out.X), model_labels, mean_loss)
        rounds: list[Round] = []
        run = self.run_rounds(rule.fit, rule, own, held_out_loss, [rounds.append, *callbacks])
        n_models, radius = len(run.models), rule.robust.radius
        falls, weights = np.array(rule.robust_losses[: n_models + 1]), [one.weights for one in rounds[:n_models]]
        return run._replace(details=Descent(run.models, run.votes, radius, falls, weights, run.held_out_losses))

    def _degrees_of_freedom(self, model: Any) -> float | None:
        """Return those of the calibration, estimated from a first model where they are not given."""
        if not isinstance(self.radius, str):
            return None
        if self.degrees_of_freedom is not None:
            return float(self.degrees_of_freedom)
        return float(dimension(model, self.n_features_in_))

    def _factor_by_folds(self, train: CheckedRows, classes: AnyArray, entropy: int) -> float:
        """Return the multiple of the calibrated radius with the least held-out loss, the smallest on ties."""
        seed = int(np.random.SeedSequence(entropy).generate_state(2)[1]) >> 1
        folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed).split(train.codes, train.codes)
        totals = np.zeros(len(RADIUS_FACTORS))
        for train_places, held_out_places in folds:
            parts = train.only(train_places), train.only(held_out_places)
            for place, factor in enumerate(RADIUS_FACTORS):
                run = self._descend(*parts, classes, entropy, factor)
                totals[place] += run.held_out_losses.min() if run.models else np.inf
        return RADIUS_FACTORS[int(np.argmin(totals))]


def sample_count(own: FloatArray) -> float:
    """Return how many samples the weights stand for.

    Whole multiples of the least weight, up to a million, are repeats and are counted; other weights count by Kish's
    effective number, ``1 / sum w_i^2`` for weights of sum 1.
    """
    repeats = own / own.min()
    if repeats.max() <= _MOST_REPEATS and np.allclose(repeats, np.round(repeats), rtol=_WHOLE, atol=0.0):
        return float(repeats.sum())
    return float(1.0 / (own @ own))
