"""Numbers beside a decision: the models' probabilities and scores, and which features they look at."""

# ruff: noqa: SLF001 - a part of the classifier whose models it asks
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from counterpoise._base.types import FloatArray
from counterpoise.mixtures.members import unnamed
from counterpoise.mixtures.pool import n_rows
from counterpoise.mixtures.scores.asking import Scorer, margins

_LEAST = 2.0**-53  # a probability below this counts as this: its log-odds stay finite
_PAIR = 2  # classes that one number ranks
_HALF = 0.5


def _has_scores(model: Any) -> bool:
    """Tell whether a classifier decides by rules of scores."""
    return model.scores is True or getattr(model, "_scored", None) is not None


def _has_probabilities(model: Any) -> bool:
    """Tell whether the models that may decide have probabilities; hard answers of a mixture always do."""
    if not _has_scores(model):
        return True
    usual = getattr(model._scored, "usual", None)
    if usual is not None:  # it is fitted: one half is the usual threshold of probabilities, and of nothing else
        return bool((usual == _HALF).all())
    given = getattr(model, "estimator", None)
    return not any(_has_no_probabilities(unnamed(one)) for one in (given if isinstance(given, list) else [given]))


def _has_no_probabilities(model: Any) -> bool:
    return hasattr(model, "decision_function") and not hasattr(model, "predict_proba")


class Ranking:
    """Methods of classifiers that mix models, or rules of their scores.

    A subclass has what ``RuleClassifier`` has.
    """

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the class probabilities of the model that decides, whatever the thresholds say.

        Several models that decide by rules of their scores: the mean of their probabilities, as often as each decides.
        Models whose answers are mixed: the probability of each answer, as ``decision_proba``.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        model: Any = self
        check_is_fitted(self, "mixture_")
        if not model._has_rules:
            return np.asarray(model.decision_proba(X))
        shares, checked = self._model_shares(), model._check_predict_input(X)
        active = np.flatnonzero(shares)
        scores = model._scorers().scores(checked, n_rows(checked), None, active)[:, active]
        mean = np.tensordot(scores, shares[active], axes=(1, 0))  # over the models
        if mean.ndim > 1:
            return np.asarray(mean)
        if scores.min(initial=0.0) < 0 or scores.max(initial=1.0) > 1:
            raise ValueError(
                "The scores of the models are no probabilities: some are below 0 or above 1. decision_function returns "
                "them as they are."
            )
        mean = np.clip(mean, 0.0, 1.0)  # shares may sum to 1 + 1e-16
        columns = [mean, 1.0 - mean] if model._scored.positive.place == 0 else [1.0 - mean, mean]
        return np.column_stack(columns)

    @available_if(_has_scores)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> FloatArray:
        """Return the score of the model that decides: its ``decision_function``, or the log-odds of its probability.

        Several models that decide by rules of their scores: the mean of their scores, as often as each decides.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
            Higher where the second class is more likely. Of more than two classes an array of shape (n_samples,
            n_classes).
        """
        model: Any = self
        check_is_fitted(self, "mixture_")
        if len(model.classes_) > _PAIR:
            return np.asarray(np.log(np.maximum(self.predict_proba(X), _LEAST)))
        shares, checked = self._model_shares(), model._check_predict_input(X)
        active = np.flatnonzero(shares).tolist()
        model._scorers().check_live(np.array(active))
        total = sum(shares[place] * _score(model._members[place], checked) for place in active)
        return np.asarray(total if model._scored.positive.place == 1 else -total)

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
        shares = np.bincount(models, weights=model.mixture_, minlength=len(model.estimators_))
        return np.asarray(shares / shares.sum(), dtype=np.float64)  # exactly 1 where one model decides


def _score(scorer: Scorer, X: Any) -> FloatArray:
    """Return the score of the positive class: a decision function where the model has one, else log-odds."""
    if hasattr(scorer.model, "decision_function"):
        return margins(scorer, X)
    scores = scorer.score(X)
    if scores.min(initial=0.0) < 0 or scores.max(initial=1.0) > 1:  # of a function: no probabilities
        return scores
    odds = np.maximum(scores, _LEAST) / np.maximum(1.0 - scores, _LEAST)
    return np.asarray(np.log(odds))
