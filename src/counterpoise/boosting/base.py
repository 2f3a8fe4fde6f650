"""What the boosters of randomized ensembles share: rounds, the choice of the mixture, going on later."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from counterpoise._checks import check_alpha, check_choice, check_count, check_fraction
from counterpoise._types import AnyArray, ArrayLike, ByteArray, IntArray
from counterpoise.boosting.inputs import Booster, Rows, seed_sequence
from counterpoise.boosting.learner import base_learner, make_fit
from counterpoise.boosting.rounds import Fit, History, Round, Rule, boost
from counterpoise.boosting.rules import without_outliers
from counterpoise.draws import make_key
from counterpoise.goal_rows import TRAIN, Answers, find_positive, part_of
from counterpoise.goals import Table, as_goals
from counterpoise.mixing import MIXTURES, Choice, Game, Selection, as_game, choose_mixture
from counterpoise.pool import is_frame, pool_codes, predict_codes
from counterpoise.randomized import CVAR, DECISIONS, WORST_GROUP, Evidence, RandomizedClassifier


class _Best(NamedTuple):
    """The least risk so far and its round."""

    value: float
    number: int


# What only ``fit_more`` needs: the samples and what refers to them.
_NOT_SAVED = ("_history", "_fit_round", "_reweigh", "_train", "_held_out", "_table", "_datasets")
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
        datasets: Mapping[str, Table] | None = None,
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
            The groups for ``reweigh="groups"``, and the columns that goals speak of.
        datasets : dict from names to Table, optional
            Other datasets that goals speak of.
        X_val, y_val : optional
            Labelled samples on which the mixture is chosen. Default: those that ``validation_fraction`` sets aside, or
            the training samples. Goals call them ``train``: they are met where the mixture is chosen.
        sensitive_features_val : optional
            The groups of ``X_val``, and the columns that goals speak of there.

        Returns
        -------
        self

        Raises
        ------
        InfeasibleGoals
            Where no mixture of the models meets the goals.
        """
        self._check_parameters()
        rows = self._check_rows(X, y, sample_weight, sensitive_features)
        self._key, self._seeds = make_key(self.random_state), seed_sequence(self.random_state)
        self._generator = np.random.default_rng(self._seeds)
        train, held_out = self._with_validation(rows, X_val, y_val, sensitive_features_val)
        given, labels, columns = (X, y, sensitive_features) if X_val is None else (X_val, y_val, sensitive_features_val)
        self._table = Table(given if is_frame(given) else np.empty((len(np.asarray(labels)), 0)), None, columns)
        self._datasets = dict(datasets or {})
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
        if as_goals(self.goals) and self.mixture != "optimal":
            raise ValueError(f"Goals need mixture='optimal', which is free to meet them; got mixture={self.mixture!r}.")
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
        aim = WORST_GROUP if self._mixes_groups() else CVAR
        self._settle(self._evidence_of_rounds(), check_alpha(self.alpha), as_goals(self.goals), aim)
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
        """Return what the mixture would be chosen on now, goals left aside: early rounds rarely meet them."""
        rows, losses = self._chosen_on()
        return Selection(losses, _unequal(rows.weights), rows.groups if self._mixes_groups() else None)

    def _chosen_on(self) -> tuple[Rows, ByteArray]:
        if self._held_out is None:
            return self._train, self._history.losses
        return self._held_out, np.array(self._held_out_losses).view(np.uint8).T

    def _evidence_of_rounds(self) -> Evidence:
        """Return the losses and answers of the models on the rows where the mixture is chosen, and on all datasets."""
        rows, losses = self._chosen_on()
        weights = _unequal(rows.weights)
        places = np.arange(self._table.n_samples) if rows.places is None else rows.places
        table = part_of(self._table, places, self.classes_[rows.codes], weights)
        positive = find_positive(self.classes_, self.pos_label)
        bits = None
        if len(self.classes_) == 2:  # noqa: PLR2004 - then losses tell predictions
            assert positive is not None  # noqa: S101 - one of two
            bits = positive.bits_of_losses(losses, rows.codes)
        elif positive is not None:
            bits = positive.bits(pool_codes(self.estimators_, rows.X, self.classes_, self.n_jobs))
        answers = Answers({}, {}, positive).with_dataset(TRAIN, table, bits)
        return Evidence(losses, weights, rows.groups, self._with_datasets(answers, self._datasets))

    def _choose(self, selection: Selection, alpha: float) -> Choice:
        return choose_mixture(selection, alpha=alpha, kind=self.mixture, outlier_fraction=self.outlier_fraction)

    def _game(self, selection: Selection, alpha: float) -> Game:
        return as_game(selection, alpha, self.outlier_fraction)

    def _forget_mixture(self) -> None:
        self.mixture = "optimal"


def _unequal(weights: AnyArray) -> AnyArray | None:
    """Return the weights, or None where all are the same."""
    return None if np.ptp(weights) == 0 else weights
