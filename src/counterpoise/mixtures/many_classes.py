"""Classifiers whose rules of scores may be of more than two classes: what differs from thresholds."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from counterpoise._base.types import AnyArray, ArrayLike, FloatArray, IntArray
from counterpoise.goals.classes import check_defer_label
from counterpoise.mixtures.answers import TRAIN, Answers, Positive, find_positive
from counterpoise.mixtures.cautions import warn_of_the_average
from counterpoise.mixtures.choosing import FIXED, Aim, Evidence, select, value_of
from counterpoise.mixtures.class_scores.calibration import Calibration, no_calibration
from counterpoise.mixtures.class_scores.choosing import ClassChoice, choose_class_rules, usual_rule
from counterpoise.mixtures.class_scores.evidence import ClassEvidence, Known
from counterpoise.mixtures.class_scores.fixed import as_fixed
from counterpoise.mixtures.class_scores.probabilities import ProbabilityPool
from counterpoise.mixtures.class_scores.tiers import ClassRule, argmax_rule
from counterpoise.mixtures.explaining import Compared
from counterpoise.mixtures.game import Choice
from counterpoise.mixtures.members import ScoredRows, all_classes
from counterpoise.mixtures.options import as_groups
from counterpoise.mixtures.scored import RuleClassifier
from counterpoise.mixtures.scores.groups import find_groups
from counterpoise.theory.risks import Risk

THRESHOLDS, MODELS = "all mixtures of all thresholds of all models", "all mixtures of the models"
ONE_RULE = "all single rules of all models"


class ClassMember(NamedTuple):
    """A rule of class probabilities as a member of a mixture."""

    rule: ClassRule
    calibration: Calibration
    score: Callable[[Any, IntArray], ScoredRows]  # rows with the probabilities of some models

    def predict_shares(self, X: Any) -> FloatArray:
        """Return how likely the rule gives each answer about each row."""
        rows = X if isinstance(X, ScoredRows) else self.score(X, np.array([self.rule.model]))
        return self.rule.answers(self.calibration(rows.scores[:, self.rule.model]), rows.groups)

    def predict_codes(self, X: Any) -> IntArray:
        """Return the likeliest answer about each row."""
        return np.asarray(self.predict_shares(X).argmax(axis=1))


class ClassRuleClassifier(RuleClassifier):
    """What every classifier shares whose rules may be of two classes or of more.

    ``_settle`` also sets ``certificate_``, what ``gap_`` is about, and of more ``calibrations_``, one for each model.
    """

    rules_: list[Any]

    @property
    def _has_class_rules(self) -> bool:
        return isinstance(self._scored, ClassEvidence)

    def _classes_told(self, labels: AnyArray, titled: dict[str, Any]) -> Positive:
        """Return the classes of labels and models, and which of them is the positive one, if any."""
        classes = all_classes(labels, titled)
        if self.deferral is not None:
            check_defer_label(self.deferral.label, classes.tolist(), "label")
        return find_positive(classes, self.pos_label)

    def _drawn(self, X: Any, ids: Any, sensitive_features: Any, baseline: ArrayLike | None) -> AnyArray:
        """Decide by draws of an answer by all models whose rules carry weight."""
        if not self._has_class_rules:
            return super()._drawn(X, ids, sensitive_features, baseline)
        check_is_fitted(self, "mixture_")
        self._check_ids(ids)
        checked = self._check_predict_input(X)
        unscored = self._scored_rows(X, checked, sensitive_features, baseline, np.arange(0))
        self._scorers().check_live(self._models_used())
        mixture = self._mixture()
        uniforms = mixture.uniforms(unscored, self._known_columns(X), ids)
        scores = self._scorers().scores(checked, uniforms.size, None, self._models_used())
        return np.asarray(mixture.pool.answers[mixture.answered(replace(unscored, scores=scores), uniforms)])

    def _rule_member(self, rule: Any) -> Any:
        if not self._has_class_rules:
            return super()._rule_member(rule)
        return ClassMember(rule, self.calibrations_[rule.model], self._scored_alone)

    def _usual_member(self) -> Any:
        if not self._has_class_rules:
            return super()._usual_member()
        rule = argmax_rule(0, self._known(self._scored).shape)
        return ClassMember(rule, no_calibration(len(self.classes_)), self._scored_alone)

    def _scorers(self) -> Any:
        is_of_many = len(self.classes_) > 2  # noqa: PLR2004 - more than a threshold tells apart
        return ProbabilityPool(self._members, self.n_jobs) if is_of_many else super()._scorers()

    def _no_evidence(self, answers: Answers, scores: FloatArray) -> Any:
        if answers.positive.is_binary:
            return super()._no_evidence(answers, scores)
        return ClassEvidence({}, answers, None, None)

    def _known(self, evidence: ClassEvidence) -> Known:
        """Return rows as the present rules see them."""
        return evidence.known(self.groups_, self.calibrations_)

    def _told(self, evidence: Any) -> Evidence:
        if not isinstance(evidence, ClassEvidence):
            return super()._told(evidence)
        return self._known(evidence).as_evidence(self.rules_)

    def _settle(self, evidence: Any, aim: Aim, chosen: Any = None) -> None:
        if not isinstance(evidence, ClassEvidence):
            super()._settle(evidence, aim, chosen)
            self.certificate_ = MODELS if not self._has_rules else ONE_RULE if self.decision == FIXED else THRESHOLDS
            return
        evidence = evidence._replace(deferral=self._deferral(aim)).calibrated()
        self._keep_scores(evidence, aim)
        groups = find_groups(as_groups(self.by), evidence.answers.tables[TRAIN])
        calibrations = evidence.found
        assert calibrations is not None  # noqa: S101 - found here
        known = evidence.known(groups, calibrations)
        best = choose_class_rules(known, aim)
        choice = as_fixed(known, aim, best) if self.decision == FIXED else best
        usual = usual_rule(evidence, aim, known) if self._prefers_usual else None
        if usual is not None:
            calibrations = (no_calibration(known.n_classes),) * evidence.n_models
            known = evidence.known(groups, calibrations)
            choice = choice.only(usual, value_of(known.as_evidence([usual]), aim, np.ones(1)))
        if self.decision == FIXED:
            self.fixed_cost_ = max(choice.value - best.value, 0.0)
        self.groups_, self.calibrations_, self.rules_ = groups, calibrations, choice.rules
        self.certificate_ = choice.covers
        told = known.as_evidence(choice.rules)
        made = Choice(choice.mixture, choice.value, choice.value - choice.lower, choice.multipliers)
        self._settle_on(told, aim, select(told, aim)._replace(risk=choice.risk), made)
        if isinstance(aim.objective, Risk):
            self._warn_of_many(known, choice, told, aim)

    def _warn_of_many(self, known: Known, choice: ClassChoice, told: Evidence, aim: Aim) -> None:
        """Say what the tail and the goals cost on average beside the likeliest class of the best model."""
        mass, n_models = known.evidence.mass, known.evidence.n_models
        usual = [argmax_rule(model, known.shape) for model in range(n_models)]
        alone = min(float(mass @ known.losses(known.said(rule)[TRAIN])) for rule in usual)
        warn_of_the_average(float(mass @ told.losses @ choice.mixture), alone, "the best model", aim)

    def _compared(self, rows: Any, places: IntArray) -> Compared:
        """Return the weighted probability of each decision, and that of the class which comes next."""
        if not self._has_class_rules:
            return super()._compared(rows, places)
        if len(self.rules_) > 1 or self.rules_[0].draws:
            return Compared.nothing(len(places), "rules that share rows among classes")
        (rule,) = self.rules_
        told = self.calibrations_[rule.model](rows.scores[:, rule.model])
        groups = [self.groups_.names[code] for code in rows.groups.tolist()]
        weighed = rule.weighed(told, rows.groups) if hasattr(rule, "weighed") else told
        own = weighed[np.arange(len(places)), places]
        others = weighed.copy()
        others[np.arange(len(places)), places] = -np.inf
        following = others.max(axis=1)
        after = self._pool_of([]).answers[others.argmax(axis=1)].tolist()
        return Compared(own, following, None, following - own, groups, str(rule), after)

    def _check_loaded_members(self) -> None:
        if not self._has_class_rules:
            super()._check_loaded_members()
            return
        n_scores, classes = self._scored.n_models, self._scored.positive.classes
        self._check_loaded_rules(n_scores, "probabilities")
        if not np.array_equal(classes, self.classes_) or len(self.calibrations_) != n_scores:
            raise ValueError("the probabilities are of other classes or models")
        shape = (len(self.groups_.names), len(classes), len(classes) + (self._scored.deferral is not None))
        if any(getattr(rule, "benefits", np.zeros(shape)).shape != shape for rule in self.rules_):
            raise ValueError("a rule is of other groups or classes")
        if any(one.biases.shape != (len(classes),) for one in self.calibrations_):
            raise ValueError("a calibration is of other classes")
        if any(not 0 <= rule.model < n_scores for rule in self.rules_):
            raise ValueError(f"a rule is not of one of {n_scores} models")
