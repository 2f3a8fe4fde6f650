"""Who decides about rows, and who would without rules: what a run asks of a classifier beside its decisions."""

# ruff: noqa: SLF001 - a part of the classifier whose members it asks
from dataclasses import replace
from typing import Any

import numpy as np

from counterpoise._base.types import AnyArray, ArrayLike, FloatArray
from counterpoise.mixtures.answers import TRAIN
from counterpoise.mixtures.members import AskedRows, Mixture, Pool, ScoredRows, ToldMember
from counterpoise.mixtures.scores.rules import Rule


class Judged:
    """Methods of classifiers that mix models, or rules of their scores.

    A subclass has what ``RuleClassifier`` has.
    """

    def _asked_rows(
        self,
        X: Any,
        sensitive_features: Any = None,
        baseline: ArrayLike | None = None,
        scores: FloatArray | None = None,
    ) -> AskedRows:
        """Return rows with all scores, asked once, or told here, and who decides about them."""
        model: Any = self
        wanted = np.arange(len(model._members) if scores is None else 0)
        rows = model._scored_rows(X, model._check_predict_input(X), sensitive_features, baseline, wanted)
        rows = rows if scores is None else replace(rows, scores=scores)
        rules = self._mixture()
        return AskedRows(rows, rules, self._at_usual())

    def _asked_rows_of_fit(self, X: Any) -> AskedRows:
        """Return the rows that the rules were chosen on, with scores of models that have not seen them."""
        model: Any = self
        codes = model._scored.group_codes(model.groups_)[TRAIN]
        rows = ScoredRows(model._check_predict_input(X), model._scored.scores[TRAIN], codes)
        return AskedRows(rows, self._mixture(), self._at_usual())

    def _told_rows(self, X: Any, codes: AnyArray) -> tuple[Mixture, ScoredRows]:
        """Return who decides about rows, given what each model said about them, so that no model is asked again."""
        model: Any = self
        members = [ToldMember(place) for place in range(codes.shape[1])]
        rows = ScoredRows(model._check_predict_input(X), codes, np.zeros(len(codes), dtype=np.int64))
        return Mixture(Pool(members, model.classes_, model.n_jobs), model.mixture_, model._drawing()), rows

    def _mixture(self) -> Mixture:
        """Return the rules with their shares and draws."""
        model: Any = self
        return Mixture(model._pool(), model.mixture_, model._drawing())

    def _at_usual(self) -> Mixture:
        """Return the first model at its usual threshold."""
        model: Any = self
        return Mixture(model._pool_of([model._usual_member()]), np.ones(1), None)

    def _usual_member(self) -> Any:
        model: Any = self
        return model._rule_member(Rule(0, dict.fromkeys(model.groups_.names, float(model._scored.usual[0]))))
