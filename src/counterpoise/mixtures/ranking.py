"""What people reach for beside a decision: how high a row ranks, and which features the models look at."""

from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from counterpoise._base.types import ArrayLike, FloatArray
from counterpoise.mixtures.answers import TRAIN
from counterpoise.mixtures.scores.ranks import Ranks

_PAIR = 2  # classes that one number ranks


def _has_scores(model: Any) -> bool:
    """Tell whether a classifier mixes rules of scores, without which there is nothing to rank by."""
    return model.scores is True or getattr(model, "_scored", None) is not None


class Ranking:
    """Methods of classifiers that mix models, or rules of their scores.

    A subclass has what ``RuleClassifier`` has.
    """

    @available_if(_has_scores)  # type: ignore[untyped-decorator]
    def decision_function(
        self, X: Any, sensitive_features: Any = None, baseline: ArrayLike | None = None
    ) -> FloatArray:
        """Return how high each row ranks: the mean over the draws of its score's rank among the rows of choice.

        The rank of a score is the part of the rows on which the rules were chosen that have a lower one, so that scores
        of different models can be averaged. The mean rank of the thresholds is taken off: with one model and one
        threshold for all, rows above zero are those called by the second class.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        sensitive_features, baseline
            As for ``predict``.

        Returns
        -------
        array of shape (n_samples,)
            Between -1 and 1, higher where the second class is more likely. Of more than two classes an array of shape
            (n_samples, n_classes): their mean probabilities, calibrated, before the rules.
        """
        model: Any = self
        check_is_fitted(self, "mixture_")
        if len(model.classes_) > _PAIR:
            return self._mean_probabilities(X, sensitive_features, baseline)
        rows, shares = model._asked(X, sensitive_features, baseline)[1], self._model_shares()  # noqa: SLF001 - its own
        evidence = model._scored  # noqa: SLF001 - its own
        ranks = [Ranks.of(column, evidence.mass) for column in evidence.scores[TRAIN].T]
        total = np.zeros(len(rows.groups))
        for column in np.flatnonzero(shares).tolist():
            total += shares[column] * ranks[column % len(ranks)](rows.scores[:, column])
        levels = zip(model.rules_, model._thresholds(), strict=True)  # noqa: SLF001 - its own
        cuts = np.array([ranks[rule.model](thresholds).mean() for rule, thresholds in levels])
        sign = 1.0 if evidence.positive.place == 1 else -1.0
        return np.asarray(sign * (total - float(cuts @ model.mixture_)))

    def _mean_probabilities(self, X: Any, sensitive_features: Any, baseline: ArrayLike | None) -> FloatArray:
        """Return how likely each class is by the models, as often as each decides."""
        model: Any = self
        rows, shares = model._asked(X, sensitive_features, baseline)[1], self._model_shares()  # noqa: SLF001 - its own
        ones = model.calibrations_
        parts = [shares[column] * ones[column % len(ones)](rows.scores[:, column]) for column in np.flatnonzero(shares)]
        return np.asarray(np.sum(parts, axis=0))

    @property
    def feature_importances_(self) -> FloatArray:
        """Return the mean of the models' ``feature_importances_``, as often as each decides, where all that do have it.

        They must be of the features that were given: pipelines that make others of them have none to average.
        """
        check_is_fitted(self)
        model: Any = self
        shares, found = self._model_shares(), []
        for place in np.flatnonzero(shares).tolist():
            told = getattr(model.estimators_[place], "feature_importances_", None)
            if told is None or np.shape(told) != (model.n_features_in_,):
                raise AttributeError(
                    f"feature_importances_ needs models that have it for each of the {model.n_features_in_} features; "
                    f"{type(model.estimators_[place]).__name__} has not. sklearn.inspection.permutation_importance "
                    "asks any classifier."
                )
            found.append(shares[place] * np.asarray(told, dtype=np.float64))
        return np.asarray(np.sum(found, axis=0))

    def _model_shares(self) -> FloatArray:
        """Return how often each of ``estimators_`` decides, or scores."""
        model: Any = self
        if not hasattr(model, "rules_"):
            return np.asarray(model.mixture_)
        models = np.array([rule.model for rule in model.rules_])
        shares = np.bincount(models, weights=model.mixture_, minlength=model._n_scores)  # noqa: SLF001 - its own
        return np.asarray(np.multiply.outer(model._fold_shares, shares).ravel())  # noqa: SLF001 - its own
