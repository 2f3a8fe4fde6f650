"""What the additive boosters share: binary rounds, votes, stopping on held-out samples, one ensemble for each class.

An additive ensemble decides by the sign of ``f(x) = sum over rounds of vote * G(x)``, where the base model G says -1 or
+1. Everything that a round needs to know of it is where it agrees with the labels, so rules see losses, as elsewhere.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from scipy.special import expit, log_expit, softmax
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from counterpoise._base.checks import check_count, check_vector
from counterpoise._base.types import AnyArray, ArrayLike, ByteArray, FloatArray
from counterpoise.boosting.inputs import Booster, Rows, seed_sequence
from counterpoise.boosting.learner import base_learner, make_fit
from counterpoise.boosting.rounds import Fit, History, Round, boost
from counterpoise.mixtures.pool import predict_codes

_PERFECT = 1e-10  # error at which a model counts as perfect: its vote stays finite, and no round can follow
_CHANCE = 1e-12  # a vote below this is rounding: the model is no better than chance
_BINARY = 2


class Step(Protocol):
    """The two rules of an additive booster, for weights on the simplex that follow the exponential loss."""

    def learner_weights(self, weights: FloatArray) -> FloatArray:
        """Return the weights that the learner is given, on the simplex."""

    def vote(self, weights: FloatArray, losses: ByteArray) -> float:
        """Return the vote of a model that errs where ``losses`` is 1."""


def log_odds(right: float, wrong: float) -> float:
    """Return ``log(right / wrong)``, finite where nothing is wrong."""
    total = right + wrong
    return float(np.log(max(right, _PERFECT * total) / max(wrong, _PERFECT * total)))


Votes = tuple[list[Any], FloatArray]  # base models and their votes


class Ensemble(NamedTuple):
    """Base models that say whether a sample is of one class, and their votes."""

    models: list[Any]
    votes: FloatArray
    classes: AnyArray  # the two labels that the models predict


class AdditiveBooster(Booster):
    """Base of the additive boosters; a subclass gives the ``Step``.

    A subclass has parameters ``estimator``, ``n_estimators``, ``patience``, ``validation_fraction``, ``random_state``
    and ``callbacks``.
    """

    def fit(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, X_val: Any = None, y_val: Any = None
    ) -> Self:
        """Fit the base models and their votes.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Training samples. A data frame reaches the base learner as it is.
        y : array of shape (n_samples,)
            Labels of any type; with more than two classes, each is boosted against the others.
        sample_weight : array of shape (n_samples,), optional
            Non-negative; only their ratios matter.
        X_val, y_val : optional
            Labelled samples that tell when to stop. Default: those that ``validation_fraction`` sets aside, which keep
            their weights.

        Returns
        -------
        self
        """
        self._check_parameters()
        rows = self._check_rows(X, y, sample_weight, None)
        self._seeds = seed_sequence(self.random_state)
        train, held_out = self._with_validation(rows, X_val, y_val, None)
        self.ensembles_ = self._fit_ensembles(train, held_out)
        self.estimators_ = [model for ensemble in self.ensembles_ for model in ensemble.models]
        self.votes_ = np.concatenate([ensemble.votes for ensemble in self.ensembles_])
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """Return the sum of the votes.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,), or (n_samples, n_classes) for more than two classes
            Above zero for the second class; or for each class.
        """
        X = self._check_predict_input(X)
        return self._shaped([added_up(_signs(one, X), one.votes) for one in self.ensembles_])

    def predict(self, X: Any) -> AnyArray:
        """Return the label of each sample."""
        return self._labels(self.decision_function(X))

    def predict_proba(self, X: Any) -> FloatArray:
        """Return probabilities by the logistic link of the exponential loss, ``1 / (1 + exp(-2 f))``.

        With more than two classes those of each against the others, scaled to sum to 1.
        """
        return logistic_probabilities(2.0 * self.decision_function(X))

    def staged_decision_function(self, X: Any) -> Iterator[FloatArray]:
        """Yield ``decision_function`` after the first round, the first two and so on."""
        X = self._check_predict_input(X)
        running = [np.cumsum(np.column_stack([*_signs(one, X)]) * one.votes, axis=1) for one in self.ensembles_]
        for last in range(max(sums.shape[1] for sums in running)):
            yield self._shaped([sums[:, min(last, sums.shape[1] - 1)] for sums in running])

    def staged_predict(self, X: Any) -> Iterator[AnyArray]:
        """Yield ``predict`` after the first round, the first two and so on."""
        for sums in self.staged_decision_function(X):
            yield self._labels(sums)

    def staged_predict_proba(self, X: Any) -> Iterator[FloatArray]:
        """Yield ``predict_proba`` after the first round, the first two and so on."""
        for sums in self.staged_decision_function(X):
            yield logistic_probabilities(2.0 * sums)

    def staged_score(self, X: Any, y: Any) -> Iterator[float]:
        """Yield the accuracy after the first round, the first two and so on."""
        y = column_or_1d(y)
        check_consistent_length(X, y)
        for labels in self.staged_predict(X):
            yield float((labels == y).mean())

    def _step(self, start: FloatArray) -> Step:
        """Return the rules, given the samples' own weights."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        check_count(self.n_estimators, "n_estimators")
        if self.patience is not None:
            check_count(self.patience, "patience")
        self._check_validation_fraction()

    def _fit_ensembles(self, train: Rows, held_out: Rows | None) -> list[Ensemble]:
        n_classes = len(self.classes_)
        if n_classes == _BINARY:
            return [self._fit_against_others(train, held_out, 1, self.classes_)]
        is_class = np.array([False, True])
        return [self._fit_against_others(train, held_out, place, is_class) for place in range(n_classes)]

    def _fit_against_others(self, train: Rows, held_out: Rows | None, positive: int, classes: AnyArray) -> Ensemble:
        """Boost one class against the others."""
        codes = (train.codes == positive).astype(np.int64)
        fit = make_fit(self._learner(train), train.X, codes, classes, self._round_seed)
        watch = None
        if held_out is not None:
            watch = HeldOut(fit.rows_like(held_out.X), held_out.codes == positive, held_out.weights, classes)
        models, votes = self._boost(fit, train.weights, watch)
        return Ensemble(models, votes, classes)

    def _learner(self, train: Rows) -> Any:  # noqa: ARG002 - some learners must know the samples' own weights
        """Return the base learner."""
        return base_learner(self.estimator)

    def _boost(self, fit: Fit, start: FloatArray, held_out: "HeldOut | None") -> Votes:
        """Return the models of one class against the others, and their votes."""
        return self._run(fit, start, self._step(start), held_out)

    def _run(self, fit: Fit, start: FloatArray, step: Step, held_out: "HeldOut | None") -> Votes:
        return fit_votes(
            fit,
            start,
            step,
            n_rounds=self.n_estimators,
            held_out=held_out,
            patience=self.patience,
            callbacks=self.callbacks,
        )

    def _check_loaded(self) -> None:
        """Check what came from a file."""
        if hasattr(self, "classes_"):
            n_models = sum(len(ensemble.models) for ensemble in self.ensembles_)
            check_vector(self.votes_, "votes_", n_models, "one for each model")
            for ensemble in self.ensembles_:
                check_vector(ensemble.votes, "votes", len(ensemble.models), "one for each model")

    def _shaped(self, sums: list[FloatArray]) -> FloatArray:
        check_is_fitted(self)
        return sums[0] if len(sums) == 1 else np.column_stack(sums)

    def _labels(self, sums: FloatArray) -> AnyArray:
        places = (sums > 0).astype(np.int64) if sums.ndim == 1 else sums.argmax(axis=1)
        return np.asarray(self.classes_[places])


class HeldOut:
    """Samples that no model is fitted to, and the votes for them so far."""

    def __init__(self, X: Any, is_positive: AnyArray, weights: FloatArray, classes: AnyArray) -> None:
        self.X, self.is_positive, self.classes = X, is_positive, classes
        self.weights = weights / weights.max()  # equal ones are 1: their sums are exact, and equal errors are equal
        self.sums = np.zeros(len(is_positive))
        self.error, self.best_error, self.best_round = np.inf, np.inf, 0

    def afresh(self) -> "HeldOut":
        """Return the same samples without votes."""
        return HeldOut(self.X, self.is_positive, self.weights, self.classes)

    def error_of(self, sums: AnyArray) -> FloatArray:
        """Return the weighted error of votes of shape (n_samples,) or (n_samples, n_ensembles)."""
        wrong = (sums.T > 0) != self.is_positive
        return np.asarray(wrong @ self.weights / self.weights.sum())

    def has_stalled(self, model: Any, vote: float, number: int, patience: int | None) -> bool:
        """Add a vote, and tell whether the error has not dropped for ``patience`` rounds."""
        self.sums += vote * (2.0 * predict_codes(model, self.X, self.classes) - 1.0)
        self.error = float(self.error_of(self.sums))
        if self.error < self.best_error:
            self.best_error, self.best_round = self.error, number
        return patience is not None and number - self.best_round >= patience


def fit_votes(
    fit: Fit,
    start: FloatArray,
    step: Step,
    *,
    n_rounds: int,
    held_out: HeldOut | None = None,
    patience: int | None = None,
    callbacks: Any = (),
) -> Votes:
    """Boost: weigh samples by the exponential loss so far, fit a model, give it a vote, repeat.

    Stops at a vote that is not positive, at a perfect model, and when the held-out error has stalled; then only the
    rounds up to its least are kept.
    """
    weights, votes = start, []

    def reweigh(_history: History) -> FloatArray:
        return step.learner_weights(weights)

    def stop(done: Round, _history: History) -> bool:
        nonlocal weights
        vote = step.vote(weights, done.losses)
        if vote <= _CHANCE:
            return True
        votes.append(vote)
        weights = _reweighed(weights, vote, done.losses)
        stalled = held_out is not None and held_out.has_stalled(done.model, vote, done.number, patience)
        stops = [bool(callback(done)) for callback in callbacks]
        return stalled or not done.losses.any() or any(stops)

    history = boost(fit, History(start, n_rounds), reweigh=reweigh, stop=stop, n_rounds=n_rounds)
    if not votes:
        raise ValueError(
            "The base learner's first model is no better than chance: its weighted error is "
            f"{history.weighted_losses[0]:.3g}. Give a stronger learner, or look for labels that are all noise."
        )
    kept = len(votes) if held_out is None or patience is None else held_out.best_round
    return history.models[:kept], np.array(votes[:kept])


def _reweighed(weights: FloatArray, vote: float, losses: ByteArray) -> FloatArray:
    """Return ``weights * exp(-vote)`` where the model is right, ``exp(vote)`` where it is wrong, on the simplex."""
    moved = weights * np.where(losses, 1.0, np.exp(-2.0 * vote))  # up to a factor, and without overflow
    return np.asarray(moved / moved.sum())


def added_up(values: Iterable[FloatArray], votes: FloatArray) -> FloatArray:
    """Return the sum of what each model says times its vote, the same for a row in any batch.

    A product of matrices adds up in another order for batches of other sizes, and votes that cancel out would then
    fall to either side of zero.
    """
    return np.asarray(sum(vote * said for said, vote in zip(values, votes.tolist(), strict=True)))


def _signs(ensemble: Ensemble, X: Any) -> Iterator[FloatArray]:
    for model in ensemble.models:
        yield np.asarray(2.0 * predict_codes(model, X, ensemble.classes) - 1.0)


def logistic_probabilities(odds: FloatArray) -> FloatArray:
    """Return the probabilities of both classes from log odds; or those of each class against the others, scaled."""
    if odds.ndim == 1:
        each = expit(odds)
        return np.column_stack([1.0 - each, each])
    return np.asarray(softmax(log_expit(odds), axis=1))  # where all classes are denied some probability is left
