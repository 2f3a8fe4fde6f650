"""What the boosters of randomized ensembles share: input, rounds, the choice of the mixture, going on later."""

from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import train_test_split
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d, validate_data

from counterpoise._checks import check_alpha, check_choice, check_count, check_fraction
from counterpoise._types import AnyArray, ArrayLike, FloatArray, IntArray
from counterpoise.boosting.learner import base_learner, make_fit
from counterpoise.boosting.rounds import Fit, History, Round, Rule, boost
from counterpoise.boosting.rules import without_outliers
from counterpoise.draws import make_key
from counterpoise.learners.resampling import may_take_missing
from counterpoise.mixing import (
    DECISIONS,
    MIXTURES,
    RandomizedClassifier,
    Selection,
    choose_mixture,
    group_codes,
    is_frame,
    n_rows,
    predict_codes,
    take_rows,
)


class _Rows(NamedTuple):
    """Checked samples: features as the learner wants them, class codes, weights on the simplex, groups."""

    X: Any
    codes: IntArray
    weights: FloatArray
    groups: IntArray | None


class _Best(NamedTuple):
    """The least risk so far and its round."""

    value: float
    number: int


# What only ``fit_more`` needs: the samples and what refers to them.
_NOT_SAVED = ("_history", "_fit_round", "_reweigh", "_train", "_held_out")
_IMPROVEMENT = 1e-3  # a fall of the risk that counts: above the solver's gap, below what matters


class BoostedMixture(RandomizedClassifier):
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
        self._key, self._seeds = make_key(self.random_state), _seed_sequence(self.random_state)
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        learner = base_learner(self.estimator)
        tags.input_tags.sparse = get_tags(learner).input_tags.sparse
        tags.input_tags.allow_nan = may_take_missing(learner)
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = BaseEstimator.__getstate__(self)
        return {name: value for name, value in state.items() if name not in _NOT_SAVED}

    def _input_dtype(self) -> str | None:
        return "numeric" if hasattr(base_learner(self.estimator), "fit_codes") else None

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
        if (
            self.validation_fraction is not None
            and not check_fraction(self.validation_fraction, "validation_fraction") > 0
        ):
            raise ValueError("validation_fraction must be above 0, or None to choose the mixture on the training rows.")

    def _check_rows(self, X: Any, y: Any, sample_weight: Any, sensitive_features: Any) -> _Rows:
        X, y = self._check_training_input(X, y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:  # noqa: PLR2004
            raise ValueError(
                f"y must hold at least two classes to tell apart; got one class only: {self.classes_[0]!r}."
            )
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weights.sum() > 0:
            raise ValueError("sample_weight must have at least one weight above zero; got zeros only.")
        groups = None if sensitive_features is None else group_codes(sensitive_features, codes.size)[0]
        return self._weighted_rows(X, codes.astype(np.int64), weights, groups)

    def _check_training_input(self, X: Any, y: Any) -> tuple[Any, AnyArray]:
        if is_frame(X):  # left as it is: pipelines choose columns by name
            validate_data(self, X, skip_check_array=True)
            y = column_or_1d(y, warn=True)
            if len(y) != len(X):
                raise ValueError(f"y must hold one label for each of the {len(X)} rows of X; got {len(y)}.")
        else:
            tags = self.__sklearn_tags__().input_tags
            X, y = validate_data(
                self,
                X,
                y,
                accept_sparse="csr" if tags.sparse else False,
                dtype=self._input_dtype(),
                ensure_all_finite="allow-nan" if tags.allow_nan else True,
            )
        check_classification_targets(y)
        return X, np.asarray(y)

    def _weighted_rows(self, X: Any, codes: IntArray, weights: FloatArray, groups: IntArray | None) -> _Rows:
        """Leave out samples of weight zero, so that they cannot matter to any learner."""
        live = weights > 0
        if not live.all():
            X, codes, weights = take_rows(X, np.flatnonzero(live)), codes[live], weights[live]
            groups = None if groups is None else np.unique(groups[live], return_inverse=True)[1]
        absent = np.setdiff1d(np.arange(len(self.classes_)), codes)
        if absent.size:
            raise ValueError(f"Every sample of the class {self.classes_[absent[0]]!r} has a weight of zero.")
        return _Rows(X, codes, weights / weights.sum(), groups)

    def _with_validation(
        self, rows: _Rows, X_val: Any, y_val: Any, sensitive_features_val: Any
    ) -> tuple[_Rows, _Rows | None]:
        """Return the training rows, and those on which the mixture is chosen where they are others."""
        if X_val is not None or y_val is not None:
            if X_val is None or y_val is None:
                raise ValueError("X_val and y_val go together; got one of them only.")
            X_val = self._check_predict_input(X_val)
            codes = self._codes_of(y_val, n_rows(X_val))
            self._check_all_classes(codes, "y_val")
            groups = None
            if sensitive_features_val is not None:
                groups = group_codes(sensitive_features_val, codes.size)[0]
            elif self._mixes_groups():
                raise ValueError(
                    "X_val needs sensitive_features_val: the mixture is chosen for the worst of its groups."
                )
            return rows, _Rows(X_val, codes, np.full(codes.size, 1 / codes.size), groups)
        if self.validation_fraction is None:
            return rows, None
        return self._split(rows)

    def _split(self, rows: _Rows) -> tuple[_Rows, _Rows]:
        counts = np.bincount(rows.codes)
        if counts.min() < 2:  # noqa: PLR2004
            raise ValueError(
                f"validation_fraction={self.validation_fraction} needs two samples of each class at least, one for "
                f"either part; the class {self.classes_[counts.argmin()]!r} has one. Pass X_val and y_val instead."
            )
        seed = int(self._seeds.generate_state(1)[0])
        parts = train_test_split(
            np.arange(rows.codes.size), test_size=self.validation_fraction, random_state=seed, stratify=rows.codes
        )
        self._check_all_classes(rows.codes[parts[1]], "the validation split")
        return _part(rows, parts[0]), _part(rows, parts[1])

    def _check_all_classes(self, codes: IntArray, name: str) -> None:
        absent = np.setdiff1d(np.arange(len(self.classes_)), codes)
        if absent.size:
            raise ValueError(
                f"{name} must hold every class, or the mixture would be chosen blindly for some; "
                f"it has no sample of the class {self.classes_[absent[0]]!r}."
            )

    def _start(self, train: _Rows, held_out: _Rows | None) -> None:
        seeds = self._seeds
        self._fit_round: Fit = make_fit(
            base_learner(self.estimator),
            train.X,
            train.codes,
            self.classes_,
            lambda number: int(np.random.SeedSequence(seeds.entropy, spawn_key=(number,)).generate_state(1)[0]) >> 1,
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

    def _mixes_groups(self) -> bool:
        return False


def _part(rows: _Rows, part: AnyArray) -> _Rows:
    weights = rows.weights[part]
    groups = None if rows.groups is None else np.unique(rows.groups[part], return_inverse=True)[1]
    return _Rows(take_rows(rows.X, part), rows.codes[part], weights / weights.sum(), groups)


def _seed_sequence(random_state: Any) -> np.random.SeedSequence:
    """Return seeds for rounds and splits: from the system if None, else determined by the random state."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.SeedSequence(int(random_state.randint(2**31)))
    return np.random.SeedSequence(random_state)
