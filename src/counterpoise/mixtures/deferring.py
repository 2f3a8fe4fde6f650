"""Answers beside the classes: what classifiers that mix rules of scores do about rows that a person decides about."""

# ruff: noqa: SLF001 - a part of the classifier whose members it asks
import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import column_or_1d

from counterpoise._base.checks import check_sample_weight
from counterpoise._base.types import AnyArray, ArrayLike, FloatArray
from counterpoise.goals.classes import check_defer_label
from counterpoise.mixtures.answers import TRAIN
from counterpoise.mixtures.cautions import warn_of_deferring_all, warn_of_everybody
from counterpoise.mixtures.choosing import Aim
from counterpoise.mixtures.members import Mixture, Pool
from counterpoise.mixtures.options import Deferral
from counterpoise.mixtures.randomized import RandomizedClassifier
from counterpoise.mixtures.scores.asking import RuleMember
from counterpoise.mixtures.scores.evidence import DEFERRED


class Deferring(RandomizedClassifier):
    """Methods of classifiers that mix models, or rules of their scores, which may defer.

    A subclass has what ``RuleClassifier`` has.
    """

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None, **given: Any) -> float:
        """Return the share of rows that are decided rightly; a deferred row is not.

        Parameters
        ----------
        X, y : rows and their labels
        sample_weight : array of shape (n_samples,), optional
        **given
            As for ``predict``.
        """
        said = self.predict(X, **given)
        if not self._has_rules or self._scored.deferral is None:
            return float(accuracy_score(y, said, sample_weight=sample_weight))
        weights = check_sample_weight(sample_weight, len(said))
        return float(np.average(said == np.asarray(column_or_1d(y)), weights=weights))

    def staged_decision_proba(
        self,
        X: Any,
        sensitive_features: Any = None,
        baseline: ArrayLike | None = None,
    ) -> Iterator[FloatArray]:
        """Yield ``decision_proba`` of the first model, the first two and so on, each with its own mixture.

        Goals hold at every stage; where the models so far cannot meet them, ``InfeasibleGoals`` is raised.
        """
        if not self._has_rules:
            yield from super().staged_decision_proba(X)
            return
        checked, every = self._check_predict_input(X), np.arange(len(self._members))
        rows = self._scored_rows(X, checked, sensitive_features, baseline, every)
        for n_models in range(1, len(self._members) + 1):
            stage = copy.copy(self)
            stage._settle(self._scored.first(n_models), self._aim())
            yield Mixture(stage._pool(), stage.mixture_, None).probabilities(rows)

    def staged_predict(
        self, X: Any, sensitive_features: Any = None, baseline: ArrayLike | None = None
    ) -> Iterator[AnyArray]:
        """Yield the weighted vote of the first model, the first two and so on, each with its own mixture.

        Votes, not draws, so that the stages can be compared.
        """
        if not self._has_rules:
            yield from super().staged_predict(X)
            return
        answers = self._pool_of([]).answers
        for shares in self.staged_decision_proba(X, sensitive_features, baseline):
            yield answers[shares.argmax(axis=1)]

    def _pool_of(self, members: list[RuleMember]) -> Pool:
        """Return rules as a pool."""
        deferral = self._scored.deferral
        return Pool(members, self.classes_, self.n_jobs, None if deferral is None else deferral.label)

    def _thresholds(self) -> FloatArray:
        """Return the thresholds of the rules by group, and behind them the lower ones, where rules may defer."""
        levels = [rule.levels for rule in self.rules_]
        return np.array([upper if self._scored.deferral is None else [*upper, *lower] for upper, lower in levels])

    def _deferral(self, aim: Aim) -> Deferral | None:
        """Return what deferring a row costs, and what is then said of it: nothing that a class is called."""
        if aim.deferral is not None:
            check_defer_label(aim.deferral.label, self.classes_.tolist(), "label")
        return aim.deferral

    def _warn_of_everybody(self, aim: Aim) -> None:
        """Say where all rows get one answer, whatever their scores, or nearly all are deferred."""
        if self._scored.deferral is not None:
            said, weights = self._kept.answers.codes[TRAIN], self._kept.answers.tables[TRAIN].weights()
            warn_of_deferring_all(float(weights @ (said == DEFERRED) @ self.mixture_ / weights.sum()))
        levels = self._thresholds()[self.mixture_ > 0]
        if aim.goals and np.isinf(levels).all() and np.ptp(np.sign(levels)) == 0:
            warn_of_everybody(self._scored.positive.labels[int(levels.flat[0] < 0)])
