"""What the boosters of randomized ensembles share: rounds, the choice of the mixture, going on later."""

from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from counterpoise._checks import check_alpha, check_choice, check_count, check_fraction
from counterpoise._types import AnyArray, ArrayLike, IntArray
from counterpoise.boosting.inputs import Booster, Rows, seed_sequence
from counterpoise.boosting.learner import base_learner, make_fit
from counterpoise.boosting.rounds import Fit, History, Round, Rule, boost
from counterpoise.boosting.rules import without_outliers
from counterpoise.draws import make_key
from counterpoise.mixing import DECISIONS, MIXTURES, RandomizedClassifier, Selection, choose_mixture, predict_codes


class _Best(NamedTuple):
    """The least risk so far and its round."""

    value: float
    number: int


# What only ``fit_more`` needs: the samples and what refers to them.
_NOT_SAVED = ("_history", "_fit_round", "_reweigh", "_train", "_held_out")
_IMPROVEMENT = 1e-3  # a fall of the risk that counts: above the solver's gap, below what matters


class BoostedMixture(Booster, RandomizedClassifier):
    """Base of the boosters; a subclass says how samples are reweighed (``_rule``)."""

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        sensitive_features: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        sensitive_features_val: Any = None,
    ) -> Self:
        """Fit the base models and choose their mixture.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Training samples. A data frame reaches the base learner as it is.
        y : array of shape (n_samples,)
            Labels of two or more classes, of any type.
        sample_weight : array of shape (n_samples,), optional
            Non-negative; only their ratios matter.
        sensitive_features : array or data frame with a row for each sample, optional
            The groups for ``reweigh="groups"``.
        X_val, y_val : optional
            Labelled samples on which the mixture is chosen. Default: those that ``validation_fraction`` sets aside, or
            the training samples.
        sensitive_features_val : optional
            The groups of ``X_val``.

        Returns
        -------
        self
        """
        self._check_parameters()
        rows = self._check_rows(X, y, sample_weight, sensitive_features)
        self._key, self._seeds = make_key(self.random_state), seed_sequence(self.random_state)
        self._generator = np.random.default_rng(self._seeds)
        train, held_out = self._with_validation(rows, X_val, y_val, sensitive_features_val)
        self._start(train, held_out)
        return self._go_on(self.n_estimators)

    def fit_more(self, n_estimators: int) -> Self:
        """Fit further base models to the same samples, and choose the mixture anew.

        Only in the process that fitted the classifier: the samples are referred to, not stored with a saved model.
        With ``eta="theory"`` or ``beta="theory"`` the value of the first fit is kept.

        Parameters
        ----------
        n_estimators : int
            How many more.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        n_more = check_count(n_estimators, "n_estimators")
        if not hasattr(self, "_history"):
            raise ValueError(
                "fit_more needs the samples that the classifier was fitted on; one that was loaded, copied or "
                "rebalanced does not have them. Call it on the one that was fitted."
            )
        self._history.reserve(n_more)
        return self._go_on(n_more)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = BaseEstimator.__getstate__(self)
        return {name: value for name, value in state.items() if name not in _NOT_SAVED}

    def _rule(self, history: History, groups: IntArray | None) -> Rule:
        raise NotImplementedError

    def _should_stop(self, history: History) -> bool:  # noqa: ARG002 - for subclasses
        """Tell whether the rounds so far are enough, beside what callbacks and patience say."""
        return False

    def _check_parameters(self) -> None:
        check_alpha(self.alpha)
        check_count(self.n_estimators, "n_estimators")
        check_fraction(self.outlier_fraction, "outlier_fraction")
        check_choice(self.decision, "decision", DECISIONS)
        check_choice(self.mixture, "mixture", MIXTURES)
        if self.patience is not None:
            check_count(self.patience, "patience")
        self._check_validation_fraction()

    def _start(self, train: Rows, held_out: Rows | None) -> None:
        self._fit_round: Fit = make_fit(
            base_learner(self.estimator),
            train.X,
            train.codes,
            self.classes_,
            self._round_seed,
        )
        self._history = History(train.weights, self.n_estimators)
        self._train, self._held_out = train, held_out
        self._held_out_losses: list[AnyArray] = []
        self._best = _Best(np.inf, 0)
        self._reweigh = without_outliers(self._rule(self._history, train.groups), float(self.outlier_fraction))
        self.estimators_: list[Any] = []

    def _go_on(self, n_rounds: int) -> Self:
        boost(self._fit_round, self._history, reweigh=self._reweigh, stop=self._after_round, n_rounds=n_rounds)
        self.estimators_ = list(self._history.models)
        self.weighted_losses_ = np.array(self._history.weighted_losses)
        self._set_mixture(self._select(), check_alpha(self.alpha))
        return self

    def _after_round(self, done: Round, history: History) -> bool:
        if self._held_out is not None:
            predicted = predict_codes(done.model, self._held_out.X, self.classes_)
            self._held_out_losses.append(predicted != self._held_out.codes)
        stops = [bool(callback(done)) for callback in self.callbacks]
        return any(stops) or self._has_stalled(done.number) or self._should_stop(history)

    def _has_stalled(self, number: int) -> bool:
        if self.patience is None:
            return False
        value = choose_mixture(self._select(), alpha=self.alpha, outlier_fraction=self.outlier_fraction).value
        if value < self._best.value - _IMPROVEMENT:
            self._best = _Best(value, number)
        return bool(number - self._best.number >= self.patience)

    def _select(self) -> Selection:
        if self._held_out is None:
            rows, losses = self._train, self._history.losses
        else:
            rows, losses = self._held_out, np.array(self._held_out_losses).view(np.uint8).T
        weights = None if np.ptp(rows.weights) == 0 else rows.weights
        return Selection(losses, weights, rows.groups if self._mixes_groups() else None)
