"""Classifiers whose members may be rules of scores: a threshold for each group that may be looked at."""

import copy
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from counterpoise._base.checks import check_choice, check_mixture, is_frame
from counterpoise._base.types import AnyArray, ArrayLike, FloatArray, IntArray
from counterpoise.goals import Table
from counterpoise.goals.tables import with_train
from counterpoise.mixtures.answers import TRAIN, Answers
from counterpoise.mixtures.cautions import warn_of_the_average
from counterpoise.mixtures.choosing import Aim, Evidence, posed, select
from counterpoise.mixtures.game import Choice
from counterpoise.mixtures.members import Mixture, Pool, ScoredRows
from counterpoise.mixtures.pool import checked_features, n_rows
from counterpoise.mixtures.randomized import Given, RandomizedClassifier
from counterpoise.mixtures.scores.asking import RuleMember, ScorePool
from counterpoise.mixtures.scores.choosing import RuleChoice, choose_rules, mean_loss
from counterpoise.mixtures.scores.evidence import Ranked, ScoreEvidence, rank
from counterpoise.mixtures.scores.fixed import search_fixed
from counterpoise.mixtures.scores.groups import UNKNOWN, as_columns, find_groups
from counterpoise.mixtures.scores.rules import Rule, usual_rules
from counterpoise.theory.risks import Risk

FIXED = "fixed"


class RuleClassifier(RandomizedClassifier):
    """What every classifier shares that may mix rules of scores.

    A subclass has parameters ``scores``, ``by``, ``budget`` and ``unknown_group``; with ``scores`` its ``fit`` sets
    ``_members`` to what tells the scores of ``estimators_``, and ``_settle`` sets ``rules_`` and ``groups_``.
    """

    _scored: Any = None  # the ScoreEvidence that rules were chosen on; None where models are mixed

    def predict(
        self, X: Any, ids: Any = None, sensitive_features: Any = None, baseline: ArrayLike | None = None
    ) -> AnyArray:
        """Decide about every row.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows to decide about.
        ids : array-like of shape (n_samples,), optional
            One for each person, for ``decision="sticky"``: rows of the same id are decided by the same model, or rule,
            whatever else changed. Default: the row itself is its id.
        sensitive_features : data frame, dict of arrays or array, optional
            The columns that ``by`` names, where rules look at them and X is no data frame that holds them.
        baseline : array of shape (n_samples,), optional
            What the deployed model says, where rules look at it.

        Returns
        -------
        array of shape (n_samples,)
            Class labels.
        """
        return self._decided(X, ids, *self._asked(X, sensitive_features, baseline))

    def predict_proba(self, X: Any, sensitive_features: Any = None, baseline: ArrayLike | None = None) -> FloatArray:
        """Return the probability that a draw from the mixture says each class: the mixture itself.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        sensitive_features, baseline
            As for ``predict``.

        Returns
        -------
        array of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        mixture, rows = self._asked(X, sensitive_features, baseline)
        return mixture.probabilities(rows)

    def staged_predict_proba(
        self, X: Any, sensitive_features: Any = None, baseline: ArrayLike | None = None
    ) -> Iterator[FloatArray]:
        """Yield ``predict_proba`` of the first model, the first two and so on, each with its own mixture.

        Goals hold at every stage; where the models so far cannot meet them, ``InfeasibleGoals`` is raised.
        """
        if not self._has_rules:
            yield from super().staged_predict_proba(X)
            return
        checked, every = self._check_predict_input(X), np.arange(len(self._members))
        rows = self._scored_rows(X, checked, sensitive_features, baseline, every)
        for n_models in range(1, every.size + 1):
            stage = copy.copy(self)
            stage._settle(self._scored.first(n_models), self._aim())  # noqa: SLF001 - of our own kind
            yield Mixture(stage._pool(), stage.mixture_, None).probabilities(rows)  # noqa: SLF001 - as above

    def rebalance(self, X: Any = None, y: Any = None, *, by: Any = None, **changes: Any) -> Self:
        """Return a classifier with the same models and another mixture; nothing is trained.

        Parameters
        ----------
        X, y : labelled rows to choose the mixture on, optional
            Default: those of ``fit``, whose predictions or scores were kept, so that no model is even evaluated.
        by : str or list of str, optional
            For rules of scores: other columns that they may look at; ``()`` for none. Default: the present ones.
        **changes
            ``alpha``, ``goals``, ``objective``, ``budget``, ``sample_weight``, ``sensitive_features``, ``baseline``,
            ``datasets``, ``largest_weight`` and ``tables``, as for every mixture: see
            ``AdaLPBoostClassifier.rebalance``.

        Returns
        -------
        fitted classifier
            Of the same kind, sharing ``estimators_``.

        Raises
        ------
        InfeasibleGoals
            Where no mixture meets the goals.
        """
        check_is_fitted(self)
        other = copy.copy(self)
        other.set_params(**({} if by is None else {"by": by}))
        other._check_score_parameters()  # noqa: SLF001 - of our own kind
        return super(RuleClassifier, other).rebalance(X, y, **changes)

    def _check_score_parameters(self) -> None:
        """Check the parameters that are about rules of scores."""
        if not isinstance(self.scores, (bool, np.bool_)):
            raise TypeError(f"scores must be True or False; got {self.scores!r}.")
        check_choice(self.unknown_group, "unknown_group", UNKNOWN)
        asked = {"by": bool(as_columns(self.by)), "decision": self.decision == FIXED}
        for name in [name for name, is_set in asked.items() if is_set and not self.scores]:
            raise ValueError(f"{name}={getattr(self, name)!r} is for rules of scores: set scores=True as well.")

    @property
    def _has_rules(self) -> bool:
        return self._scored is not None

    def _thresholds(self) -> FloatArray:
        """Return the thresholds of the rules by group."""
        return np.array([[*rule.thresholds.values()] for rule in self.rules_])

    def _pool(self) -> Pool:
        if not self._has_rules:
            return super()._pool()
        return Pool([self._rule_member(rule) for rule in self.rules_], self.classes_, self.n_jobs)

    def _asked(self, X: Any, sensitive_features: Any = None, baseline: ArrayLike | None = None) -> tuple[Mixture, Any]:
        mixture, rows = super()._asked(X)
        if not self._has_rules:
            return mixture, rows
        used = np.unique([self.rules_[place].model for place in np.flatnonzero(self.mixture_)])
        return mixture, self._scored_rows(X, rows, sensitive_features, baseline, used)

    def _scored_rows(
        self, X: Any, checked: Any, sensitive_features: Any, baseline: ArrayLike | None, models: IntArray
    ) -> ScoredRows:
        """Return rows with the scores of some models, and the groups that the rules look at."""
        groups, n_samples = self.groups_, n_rows(checked)
        codes = np.zeros(n_samples, dtype=np.int64)
        if groups.by:
            features = X if is_frame(X) else np.empty((n_samples, 0))
            codes = groups.codes(Table(features, None, sensitive_features, baseline), "The rows to decide about")
        return ScoredRows(checked, self._scorers().scores(checked, n_samples, None, models), codes)

    def _decided_by(self, rule: Rule, X: Any, sensitive_features: Any, baseline: ArrayLike | None) -> AnyArray:
        """Return what one rule says."""
        checked = self._check_predict_input(X)
        rows = self._scored_rows(X, checked, sensitive_features, baseline, np.array([rule.model]))
        return np.asarray(self.classes_[self._rule_member(rule).predict_codes(rows)])

    def _rule_member(self, rule: Rule) -> RuleMember:
        place = self._scored.positive.place
        return RuleMember(rule.model, np.array([*rule.thresholds.values()]), place, self._scored_alone)

    def _scored_alone(self, X: Any, models: IntArray) -> ScoredRows:
        """Return rows with scores, and with groups as far as X shows them."""
        return self._scored_rows(X, self._check_predict_input(X), None, None, models)

    def _scorers(self) -> ScorePool:
        return ScorePool(self._members, self.n_jobs)

    def _evidence_of_fit(self) -> Any:
        return self._scored if self._has_rules else super()._evidence_of_fit()

    def _asked_about(self, given: Given, answers: Answers, name: str | None = None) -> Any:
        if not self.scores:
            return super()._asked_about(given, answers, name)
        rows = self._labelled(given)
        scores = self._scorers().scores(rows.X, rows.codes.size, name)
        if name == TRAIN:  # the rows of fit
            usual = [member.usual(column) for member, column in zip(self._members, scores.T, strict=True)]
            kept = ScoreEvidence({}, answers, None, None, np.array(usual))
        else:
            kept = self._scored
        kept = kept.with_dataset(TRAIN, given.table(self.classes_[rows.codes]), scores)
        return kept._replace(sample_weight=rows.sample_weight, groups=rows.groups)

    def _joined(self, kept: Any, datasets: Mapping[str, Table] | None) -> Any:
        if not isinstance(kept, ScoreEvidence):
            return super()._joined(kept, datasets)
        pool, others = self._scorers(), with_train(kept.answers.tables[TRAIN], datasets)
        others.pop(TRAIN)
        for name, table in others.items():
            X = None
            if pool.needs_rows():
                X = checked_features(table.X, name, "that the models can be asked about", self._check_predict_input)
            kept = kept.with_dataset(name, table, pool.scores(X, table.n_samples, name))
        return kept

    def _told(self, evidence: Any) -> Evidence:
        if not isinstance(evidence, ScoreEvidence):
            return super()._told(evidence)
        models = np.array([rule.model for rule in self.rules_])
        return evidence.told(models, self._thresholds(), evidence.group_codes(self.groups_))

    def _settle(self, evidence: Any, aim: Aim) -> None:
        if not isinstance(evidence, ScoreEvidence):
            super()._settle(evidence, aim)
            return
        table = evidence.answers.tables[TRAIN]
        ranked = rank(evidence, find_groups(as_columns(self.by), table, self.unknown_group))
        choice = choose_rules(ranked, aim)
        if self.decision == FIXED:
            choice, self.fixed_cost_ = _as_fixed(ranked, aim, choice)
        self._scored, self.groups_, self.rules_ = evidence, ranked.groups, ranked.as_rules(choice.rules)
        told = ranked.as_evidence(choice.rules)
        made = Choice(choice.mixture, choice.value, choice.value - choice.lower, choice.multipliers, choice.cost)
        self._settle_on(told, aim, select(told, aim)._replace(risk=choice.risk), made)
        if isinstance(aim.objective, Risk):
            self._warn_of_the_average(ranked, choice)

    def _warn_of_the_average(self, ranked: Ranked, choice: RuleChoice) -> None:
        """Say what the tail and the goals cost on average beside the best model at its usual threshold."""
        loss, usual = mean_loss(ranked), usual_rules(ranked.cuts, ranked.evidence.usual)
        mixed, alone = float(loss.of(choice.rules)[0] @ choice.mixture), float(loss.of(usual).min())
        warn_of_the_average(mixed, alone, "the best model", has_goals=bool(self.goals_), stacklevel=4)

    def _one_rule(self, evidence: Any) -> dict[str, Any]:
        if not isinstance(evidence, ScoreEvidence):
            return super()._one_rule(evidence)
        aim, ranked = self._aim(), rank(evidence, self.groups_)
        found = search_fixed(ranked, aim, ranked.as_cuts(self.rules_), self.mixture_, self.multipliers_)
        rule, alone = ranked.as_rules(found.rule)[0], ranked.as_evidence(found.rule)
        values = {
            "value": _value(alone, aim, np.ones(1)),
            "mixture_value": _value(self._told(evidence), aim, self.mixture_),
            "checks": tuple(alone.answers.checks(aim.goals, np.ones(1))),
        }
        return {"kind": FIXED, "threshold": None, "model": rule.model, "rule": rule, **values}

    def _check_loaded_members(self) -> None:
        if not self._has_rules:
            super()._check_loaded_members()
            return
        n_models, n_rules = len(self.estimators_), len(self.rules_)
        check_mixture(self.mixture_, n_rules)
        if {part.losses.shape[1] for part in (self._kept, self.selection_)} != {n_rules}:
            raise ValueError(f"the losses are not those of {n_rules} rules")
        if n_models != len(self._members) or n_models != self._scored.usual.size:
            raise ValueError(f"the scores are not those of {n_models} models")
        names = self.groups_.names
        for rule in self.rules_:
            if not 0 <= rule.model < n_models or tuple(rule.thresholds) != names:
                raise ValueError(f"a rule is not of one of {n_models} models with thresholds for {', '.join(names)}")


def _value(evidence: Evidence, aim: Aim, mixture: FloatArray) -> float:
    return posed(select(evidence, aim), aim).value(mixture)


def _as_fixed(ranked: Ranked, aim: Aim, best: RuleChoice) -> tuple[RuleChoice, float]:
    """Return a fixed rule that meets the goals as a mixture of one, and how much more risk it has than the best."""
    found = search_fixed(ranked, aim, best.rules, best.mixture, best.multipliers)
    alone = ranked.as_evidence(found.rule)
    if found.violation > 0:
        missed = [str(check) for check in alone.answers.checks(aim.goals, np.ones(1)) if not check.holds]
        raise ValueError(
            f"No fixed rule was found that meets the goals. The nearest: {'; '.join(missed) or 'above the budget'}. "
            "This is a search, no proof that there is none. A mixture of rules meets them, with a risk of "
            f"{best.value:.4g}: set decision='sticky', loosen a bound, or name more columns in by."
        )
    value = _value(alone, aim, np.ones(1))
    choice = best._replace(rules=found.rule, mixture=np.ones(1), value=value, cost=0.0)
    return choice, max(value - best.value, 0.0)  # the best mixture is known to its gap
