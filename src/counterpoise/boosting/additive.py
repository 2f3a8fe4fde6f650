"""What the additive boosters share: votes, stopping on held-out samples, one ensemble for each class.

An additive ensemble decides by the sign of ``f(x) = sum over rounds of vote * G(x)``, where the base model G returns
-1 or +1, or any number where it is a regressor.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from scipy.sparse import issparse
from scipy.special import expit, log_expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, is_regressor
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from counterpoise._base.checks import check_count, check_number, check_vector
from counterpoise._base.frames import as_array
from counterpoise._base.types import AnyArray, ArrayLike, ByteArray, FloatArray, IntArray
from counterpoise.boosting.inputs import (
    CheckedRows,
    check_predict_input,
    draw_entropy,
    set_learner_tags,
    split_rows,
    training_rows,
)
from counterpoise.boosting.learner import base_learner
from counterpoise.boosting.rounds import Callback, Fit, History, Round, boost
from counterpoise.boosting.row_store import RowStore
from counterpoise.boosting.stopping import Stopping, check_stopping, stopping_of, warn_of_no_errors
from counterpoise.rules.pool import predict_codes

_BINARY = 2
_SMALL = 1 << 22  # entries of a sparse matrix that is made dense: 32 MB


class VoteRule(Protocol):
    """How an additive booster weighs samples and votes for models, round after round."""

    is_over: bool  # after a step: nothing is left to gain

    def reweigh(self, history: History) -> FloatArray:
        """Return the weights of the next round."""

    def step(self, latest: Round, history: History) -> float:
        """Return the vote of the newest model, 0 where it is of no use, and take it into account."""


class HeldOut(NamedTuple):
    """Samples that no model is fitted to."""

    X: Any
    classes: AnyArray | None  # the two labels that the models predict; None for regressors
    loss: Callable[[FloatArray], Any]  # of the votes for them, of shape (n_samples,)


class BoostResult(NamedTuple):
    """What the rounds of one class against the others left behind."""

    models: list[Any]
    votes: FloatArray
    losses: ByteArray  # (n_samples, n_models): zero-one, on the training samples
    held_out_losses: FloatArray  # after each round, later ones included; empty without held-out samples
    details: Any = None  # what else was learned: a penalty, the solution of a program, a descent


class Ensemble(NamedTuple):
    """Base models that decide whether a sample is of one class, and their votes."""

    models: list[Any]
    votes: FloatArray
    classes: AnyArray  # the two labels that the models predict


class AdditiveClassifier(ClassifierMixin, BaseEstimator):
    """Base of the additive boosters; a subclass defines how one class is boosted against the others (``_boost``).

    A subclass has parameters ``estimator``, ``n_estimators``, ``learning_rate``, ``stopping``, ``random_state`` and
    ``callbacks``.
    """

    default_stopping: ClassVar[Stopping] = Stopping()  # of stopping=None
    _takes_auto_fraction: ClassVar[bool] = False  # of samples to hold out, by how many there are
    _takes_regressors: ClassVar[bool] = False

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
            Labelled samples that decide when to stop. Default: those that the ``validation_fraction`` of ``stopping``
            sets aside, which keep their weights.

        Returns
        -------
        self
        """
        self.check_parameters()
        self.__dict__.pop("ensembles_", None)  # of an earlier fit: one that fails leaves nothing to decide by
        learner, entropy = self._learner(), draw_entropy(self.random_state)
        self.classes_, train = training_rows(self, learner, X, y, sample_weight)
        train, held_out = split_rows(self, learner, train, X_val, y_val, entropy=entropy)
        self._check_samples(train)
        is_binary = len(self.classes_) == _BINARY
        classes = self.classes_ if is_binary else np.array([False, True])
        results = []
        for place in [1] if is_binary else range(len(self.classes_)):  # each against the others
            one = train._replace(codes=(train.codes == place).astype(np.int64))
            held_out_part = held_out and held_out._replace(codes=(held_out.codes == place).astype(np.int64))
            results.append(self._boost(one, held_out_part, classes, entropy))
        self._store_details([run.details for run in results])
        self.ensembles_ = [Ensemble(run.models, run.votes, classes) for run in results]
        self.estimators_ = [model for ensemble in self.ensembles_ for model in ensemble.models]
        self.votes_ = np.concatenate([ensemble.votes for ensemble in self.ensembles_])
        if self.estimator is not None and all(run.losses.shape[1] == 1 and not run.losses.any() for run in results):
            warn_of_no_errors(len(results))
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
        return self._sums(self._check_input(X))

    def predict(self, X: Any) -> AnyArray:
        """Return the label of each sample."""
        places = _places(self.decision_function(X))  # which refuses before there are classes
        return np.asarray(self.classes_[places])

    def predict_codes(self, X: Any) -> IntArray:
        """Return the place in ``classes_`` of each label, for rows that were checked: what other boosters call."""
        return _places(self._sums(X))

    def predict_proba(self, X: Any) -> FloatArray:
        """Return probabilities by the link that the loss implies: ``1 / (1 + exp(-2 f))`` for the exponential one.

        With more than two classes those of each against the others, scaled to sum to 1.
        """
        return self._probabilities(self.decision_function(X))

    def staged_decision_function(self, X: Any) -> Iterator[FloatArray]:
        """Yield ``decision_function`` after the first round, the first two and so on."""
        X = self._check_input(X)
        running = [np.cumsum(np.column_stack([*_values(one, X)]) * one.votes, axis=1) for one in self.ensembles_]
        for last in range(max(sums.shape[1] for sums in running)):
            stage = [sums[:, min(last, sums.shape[1] - 1)] for sums in running]
            yield stage[0] if len(stage) == 1 else np.column_stack(stage)

    def staged_predict(self, X: Any) -> Iterator[AnyArray]:
        """Yield ``predict`` after the first round, the first two and so on."""
        for sums in self.staged_decision_function(X):
            yield np.asarray(self.classes_[_places(sums)])

    def staged_predict_proba(self, X: Any) -> Iterator[FloatArray]:
        """Yield ``predict_proba`` after the first round, the first two and so on."""
        for sums in self.staged_decision_function(X):
            yield self._probabilities(sums)

    def staged_score(self, X: Any, y: Any) -> Iterator[float]:
        """Yield the accuracy after the first round, the first two and so on."""
        y = column_or_1d(as_array(y))
        check_consistent_length(X, y)
        for labels in self.staged_predict(X):
            yield float((labels == y).mean())

    def check_parameters(self) -> None:
        """Check what needs no rows."""
        check_count(self.n_estimators, "n_estimators")
        check_stopping(self, takes_auto=self._takes_auto_fraction)
        if self.learning_rate is not None:
            check_number(self.learning_rate, "learning_rate", "(0, 1]", "part of a step")
        self._check_own_parameters()

    def _check_own_parameters(self) -> None:
        """Check the parameters that not all additive boosters have."""

    def _check_samples(self, train: CheckedRows) -> None:
        """Refuse samples to train on that a parameter has no use for."""

    def _boost(self, train: CheckedRows, held_out: CheckedRows | None, classes: AnyArray, entropy: int) -> BoostResult:
        """Boost samples of code 1 against those of code 0; ``classes`` are the two labels that the models predict."""
        raise NotImplementedError

    def _store_details(self, details: list[Any]) -> None:
        """Store what was learned beside the votes, for each class against the others."""

    def _probabilities(self, sums: FloatArray) -> FloatArray:
        return logistic_probabilities(2.0 * sums)

    def _learner(self, n_samples: int | None = None) -> Any:
        """Return the base learner for so many samples, on which the default one depends."""
        return base_learner(self.estimator, n_samples, takes_regressors=self._takes_regressors)

    def run_rounds(
        self,
        fit: Fit,
        rule: VoteRule,
        start: FloatArray,
        held_out: HeldOut | None,
        callbacks: Sequence[Callback] | None = None,
    ) -> BoostResult:
        """Boost until a rule, a callback or the held-out loss ends it; where that loss stalled, up to its least."""
        patience, functions = stopping_of(self).patience, self.callbacks if callbacks is None else callbacks
        sums: Any = 0.0  # of the votes for the held-out samples
        losses: list[float] = []  # the loss on them after each round

        def stop(latest: Round, history: History) -> bool:
            nonlocal sums
            has_stalled = False
            if held_out is not None:
                sums = sums + history.votes[-1] * model_values(latest.model, held_out.X, held_out.classes)
                losses.append(float(held_out.loss(sums)))
                has_stalled = patience is not None and len(losses) - _best_round(losses) >= patience
            stops = [bool(callback(latest)) for callback in functions]  # all of them are called
            return any(stops) or rule.is_over or has_stalled

        history = History(RowStore(start, self.n_estimators))
        boost(fit, history, reweigh=rule.reweigh, vote=rule.step, stop=stop, n_rounds=self.n_estimators)
        n_best = _best_round(losses) if losses and patience is not None else history.n_rounds
        return BoostResult(
            history.models[:n_best], np.array(history.votes[:n_best]), history.rows.losses[:, :n_best], np.array(losses)
        )

    def stored_state(self) -> dict[str, Any]:
        """Return what ``save`` stores: no callbacks, which belong to one fit."""
        state: Any = self.__getstate__()
        return {**state, "callbacks": ()}

    def check_loaded(self) -> None:
        """Check the values that were read from a file."""
        if hasattr(self, "classes_"):
            n_models = sum(len(ensemble.models) for ensemble in self.ensembles_)
            check_vector(self.votes_, "votes_", n_models, "one for each model")
            for ensemble in self.ensembles_:
                check_vector(ensemble.votes, "votes", len(ensemble.models), "one for each model")

    def _check_input(self, X: Any) -> Any:
        """Return rows to decide about as the models take them."""
        check_is_fitted(self)
        return check_predict_input(self, self._learner(), X)

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether there are votes to decide by."""
        return "ensembles_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        return set_learner_tags(super().__sklearn_tags__(), self._learner())

    def _sums(self, X: Any) -> FloatArray:
        """Return the votes for rows that were checked, the same for a row in any batch.

        A product of matrices adds up in another order for batches of other sizes, and votes that cancel out would then
        fall to either side of zero.
        """
        sums: list[Any] = [
            sum(vote * values for values, vote in zip(_values(one, X), one.votes.tolist(), strict=True))
            for one in self.ensembles_
        ]
        return sums[0] if len(sums) == 1 else np.column_stack(sums)


def _best_round(losses: list[float]) -> int:
    return int(np.argmin(losses)) + 1


def _places(sums: FloatArray) -> IntArray:
    """Return the places of the classes that the votes are for."""
    return (sums > 0).astype(np.int64) if sums.ndim == 1 else sums.argmax(axis=1)


def one_or_all(values: list[Any], *, is_given: bool = False) -> Any:
    """Return the value for one class against the other; for more than two a list of them, unless one was given."""
    return values[0] if len(values) == 1 or is_given else values


def _values(ensemble: Ensemble, X: Any) -> Iterator[FloatArray]:
    classes = None if is_regressor(ensemble.models[0]) else ensemble.classes  # checked once: it takes time
    if len(ensemble.models) > 1 and issparse(X) and X.shape[0] * X.shape[1] <= _SMALL:
        X = X.toarray()  # once, where each model would take its features out of it anew
    for model in ensemble.models:
        yield model_values(model, X, classes)


def model_values(model: Any, X: Any, classes: AnyArray | None) -> FloatArray:
    """Return the values of a base model: -1 or +1 for the two classes, or a regressor's own where there are none."""
    if classes is None:
        return np.asarray(model.predict(X), dtype=np.float64).reshape(-1)
    return np.where(predict_codes(model, X, classes) == 1, 1.0, -1.0)


def logistic_probabilities(odds: FloatArray) -> FloatArray:
    """Return the probabilities of both classes from log odds; or those of each class against the others, scaled."""
    if odds.ndim == 1:
        each = expit(odds)
        return np.column_stack([1.0 - each, each])
    return np.asarray(softmax(log_expit(odds), axis=1))  # where all classes are denied some probability is left
