"""DRO-Boosting: functional subgradient descent on the worst mean loss over a ball of distributions.

Blanchet, Zhang, Kang and Hu, Algorithm 1. The robust loss of a score F is ``max weights @ losses`` over weights within
``radius`` of the samples' own (``solvers.worst_case``). Each round takes its worst weights, fits the base learner to
the subgradient there (``directions``), searches along the model for the least robust loss (``robust_loss``), and stops
where nothing improves (``descent``). The radius is that of Theorem 1: as the sample grows, the ball holds with a given
probability a distribution for which the true best score is optimal. The theorem needs a fixed class of finite dimension
and a stationary point in it; for boosted trees, which are chosen from the same samples, "calibrated" is a heuristic.

Two things are ours. A round goes only ``learning_rate`` of the way that the line search finds: the robust loss is
convex, so it still falls in every round, and on the paper's data the test accuracy is higher. And the number of rounds,
which the paper does not give, is chosen on held-out samples. ``learning_rate=1`` is the paper's algorithm.

Close to it: with losses ``-exp(y F)`` and the radius ``log mean exp(-y F) + mean(y F)`` the worst weights are those of
AdaBoost (Corollary 2, where the paper's minus is a slip).
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from counterpoise._base.checks import check_choice, check_confidence, check_number, check_positive
from counterpoise._base.types import AnyArray, FloatArray
from counterpoise.boosting.additive import AdditiveBooster, Boosted, HeldOut, logistic_probabilities, one_or_all
from counterpoise.boosting.descent import Descent, RobustRule
from counterpoise.boosting.directions import dimension, direction_learner, make_directions
from counterpoise.boosting.inputs import Rows, is_word, part_of
from counterpoise.boosting.robust_loss import RobustLoss, dot
from counterpoise.boosting.rounds import Callback, Round
from counterpoise.boosting.stopping import AUTO, Stopping, stopping_of
from counterpoise.solvers.worst_case import DIVERGENCES, check_radius
from counterpoise.theory.guarantees import calibrated_radius
from counterpoise.theory.losses import LOSSES, MarginLoss

DRO_LOSSES = ("exponential", "logistic", "squared")
RADIUS_FACTORS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # of the calibrated radius, that "cv" tries
_FOLDS = 3
_WHOLE = 1e-9  # part of a multiple of the least weight by which it may be off a whole one
_MOST_REPEATS = 1e6  # far beyond, every float is a whole multiple: a sample of next to no weight is no unit to count in
AUTO_FRACTION = 0.2  # that "auto" holds out ...
_ENOUGH, _ENOUGH_OF_A_CLASS = 500, 10  # ... where there are so many samples


class DROBoostClassifier(AdditiveBooster):
    """Boosting of the worst mean loss over a ball of distributions around the samples, for any base learner.

    Parameters
    ----------
    estimator : classifier or regressor, optional
        Base learner. A classifier is fitted to the signs of the subgradient, a regressor (such as a regression tree) to
        its values by least squares. Default: the tree of ``AdaBoostClassifier``.
    n_estimators : int, default=500
        Largest number of rounds.
    radius : float >= 0, "calibrated" or "cv", default="calibrated"
        Size of the ball. ``"calibrated"`` is ``guarantees.calibrated_radius`` at ``confidence``, of the samples that
        are not held out; ``"cv"`` takes the multiple of it with the least held-out loss in a threefold
        cross-validation. 0 is boosting of the mean loss.
    confidence : float in (0, 1), default=0.9
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
    _takes_auto_fraction = True

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_estimators: int = 500,
        radius: float | str = "calibrated",
        confidence: float = 0.9,
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
        self.confidence = confidence
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

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self.loss, "loss", DRO_LOSSES)
        check_choice(self.divergence, "divergence", DIVERGENCES)
        check_confidence(self.confidence)
        if not is_word(self.radius, "radius", ("calibrated", "cv")):
            check_radius(self.radius)
        if self.degrees_of_freedom is not None:
            check_positive(self.degrees_of_freedom, "degrees_of_freedom")
        check_number(self.learning_rate, "learning_rate", "(0, 1]", "part of a step")

    def _base_learner(self) -> Any:
        return direction_learner(self.estimator)

    def _fraction_aside(self, rows: Rows) -> float | None:
        stopping = stopping_of(self)
        if stopping.validation_fraction != AUTO:
            return super()._fraction_aside(rows)
        is_enough = rows.codes.size >= _ENOUGH and np.bincount(rows.codes).min() >= _ENOUGH_OF_A_CLASS
        return AUTO_FRACTION if is_enough and stopping.patience is not None else None

    def _check_samples(self, train: Rows, held_out: Rows | None) -> None:  # noqa: ARG002 - of those to train on
        counts = np.bincount(train.codes)
        if self.radius == "cv" and counts.min() < _FOLDS:
            raise ValueError(
                f"radius='cv' needs {_FOLDS} samples of each class to train on, one for each fold; the class "
                f"{self.classes_.tolist()[counts.argmin()]!r} has {counts.min()}. Use radius='calibrated', or a number."
            )

    def _keep(self, found: list[Descent]) -> None:
        self.descents_ = found
        self.radius_ = one_or_all([descent.radius for descent in found])
        self.degrees_of_freedom_ = one_or_all([self._degrees_of_freedom(descent.models[0]) for descent in found])
        self.robust_losses_ = one_or_all([descent.robust_losses for descent in found])

    def _boost(self, train: Rows, held_out: Rows | None, classes: AnyArray) -> Boosted:
        factor = self._factor_by_folds(train, classes) if self.radius == "cv" else 1.0
        boosted = self._descend(train, held_out, classes, factor, self.callbacks)
        if not boosted.models:
            raise ValueError(
                "The base learner's first model is no better than chance under the worst weights: the robust loss at "
                f"radius {boosted.found.radius:.3g} does not fall along it. Give a stronger learner or a smaller "
                "radius, or look for labels that are all noise."
            )
        return boosted

    def _descend(
        self,
        train: Rows,
        held_out: Rows | None,
        classes: AnyArray,
        factor: float,
        callbacks: Sequence[Callback] = (),
    ) -> Boosted:
        """Return the rounds at a multiple of the calibrated radius, with the ``Descent``; no model where none helps."""
        own, labels, loss = train.weights, _labels(train), LOSSES[self.loss]

        def robust_loss(model: Any) -> RobustLoss:
            return RobustLoss(loss, self.divergence, self._radius(model, own, factor), own)

        learner = self._learner_for(own.size)
        directions = make_directions(learner, train.X, labels, own, classes, self._round_seed)
        rule = RobustRule(directions, labels, own, robust_loss, loss=loss, learning_rate=float(self.learning_rate))
        watched = None
        if held_out is not None:
            predicted = classes if directions.are_signs else None
            watched = HeldOut(directions.rows_like(held_out.X), predicted, _mean_loss(held_out, loss))
        rounds: list[Round] = []
        run = self._run(rule.fit, rule, own, watched, [rounds.append, *callbacks])
        n_models = len(run.models)
        falls, weights = np.array(rule.robust_losses[: n_models + 1]), [done.weights for done in rounds[:n_models]]
        return run._replace(found=Descent(run.models, run.votes, rule.radius, falls, weights, run.held_out_losses))

    def _radius(self, model: Any, own: FloatArray, factor: float) -> float:
        degrees = self._degrees_of_freedom(model)
        if degrees is None:
            return float(self.radius)
        return factor * calibrated_radius(sample_count(own), self.confidence, degrees)

    def _degrees_of_freedom(self, model: Any) -> float | None:
        """Return those of the calibration, estimated from a first model where they are not given."""
        if not isinstance(self.radius, str):
            return None
        if self.degrees_of_freedom is not None:
            return float(self.degrees_of_freedom)
        return float(dimension(model, self.n_features_in_))

    def _factor_by_folds(self, train: Rows, classes: AnyArray) -> float:
        """Return the multiple of the calibrated radius with the least held-out loss, the smallest on ties."""
        seed = int(self._seeds.generate_state(2)[1]) >> 1
        folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed).split(train.codes, train.codes)
        totals = np.zeros(len(RADIUS_FACTORS))
        for kept, held in folds:
            parts = part_of(train, kept), part_of(train, held)
            for place, factor in enumerate(RADIUS_FACTORS):
                run = self._descend(*parts, classes, factor)
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


def _labels(rows: Rows) -> FloatArray:
    return np.where(rows.codes == 1, 1.0, -1.0)


def _mean_loss(rows: Rows, loss: MarginLoss) -> Callable[[FloatArray], float]:
    """Return the mean loss as a function of the votes for the samples."""
    labels = _labels(rows)
    return lambda sums: dot(rows.weights, loss.value(labels * sums))
