"""Classifiers whose members may be rules of scores: a threshold for each group that may be looked at."""

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_is_fitted, column_or_1d

from counterpoise._base.checks import check_choice, check_mixture, is_frame
from counterpoise._base.types import AnyArray, ArrayLike, FloatArray, IntArray
from counterpoise.goals import InfeasibleGoals, Table
from counterpoise.mixtures.answers import TRAIN, Answers
from counterpoise.mixtures.cautions import warn_of_the_average
from counterpoise.mixtures.choosing import ALPHA, FIXED, Aim, Evidence, as_aim, check_one_rule, select
from counterpoise.mixtures.deferring import Deferring
from counterpoise.mixtures.draws import known_draws
from counterpoise.mixtures.explaining import Compared, Contribute, contributions_of, nearest_changes
from counterpoise.mixtures.game import Choice
from counterpoise.mixtures.judged import Judged
from counterpoise.mixtures.labelled import Labelled
from counterpoise.mixtures.members import Mixture, Pool, ScoredRows
from counterpoise.mixtures.options import Deferral, as_groups, key_of_decision, kind_of_decision
from counterpoise.mixtures.pool import as_rows, n_rows
from counterpoise.mixtures.randomized import DECISIONS, DRAWN, RandomizedClassifier
from counterpoise.mixtures.ranking import Ranking
from counterpoise.mixtures.scores.asking import RuleMember, ScorePool
from counterpoise.mixtures.scores.choosing import RuleChoice, choose_rules, mean_loss
from counterpoise.mixtures.scores.deciding import decided, no_rule
from counterpoise.mixtures.scores.evidence import Ranked, ScoreEvidence, rank
from counterpoise.mixtures.scores.fixed import best_fixed
from counterpoise.mixtures.scores.groups import find_groups
from counterpoise.theory.risks import Risk

NEVER = "never"
_PAIR = 2  # classes that one score tells apart


class RuleClassifier(Ranking, Judged, Deferring, RandomizedClassifier):
    """What every classifier shares that may mix rules of scores.

    A subclass has attributes ``scores`` and ``by``, a parameter ``budget``, and may have ``deferral``; with ``scores``
    its ``fit`` sets ``_members`` to what tells the scores of ``estimators_``, and
    ``_settle`` sets ``rules_`` and ``groups_``.
    """

    _default_alpha = ALPHA  # where neither alpha nor an objective is given
    _prefers_usual = False  # thresholds, where nothing but errors counts
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
            Class labels; the label of ``deferral`` for rows that are deferred.
        """
        if self._has_rules and kind_of_decision(self.decision) in DRAWN:
            return self._drawn(X, ids, sensitive_features, baseline)
        mixture, rows = self._asked(X, sensitive_features, baseline)
        self._check_ids(ids)
        return mixture.decide(rows, self._known_columns(X), ids)

    def _drawn(self, X: Any, ids: Any, sensitive_features: Any, baseline: ArrayLike | None) -> AnyArray:
        """Decide by rules that are drawn: each row is scored only by the model of its own."""
        check_is_fitted(self, "mixture_")
        self._check_ids(ids)
        mixture, checked = super()._asked(X)
        unscored = self._scored_rows(X, checked, sensitive_features, baseline, np.arange(0))
        self._scorers().check_live(self._models_used())
        drawn = mixture.drawn(unscored, self._known_columns(X), ids)
        columns = np.array([member.model for member in mixture.pool.members])[drawn]
        rows = replace(unscored, scores=self._scorers().scores_of_each(checked, columns))
        return np.asarray(mixture.pool.answers[mixture.codes_of(rows, drawn)])

    def decision_proba(self, X: Any, sensitive_features: Any = None, baseline: ArrayLike | None = None) -> FloatArray:
        """Return the probability of each decision: 0 or 1 unless decisions are drawn.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        sensitive_features, baseline
            As for ``predict``.

        Returns
        -------
        array of shape (n_samples, n_classes) or (n_samples, n_classes + 1)
            In the order of ``classes_``; where rows may be deferred, the last column is the probability of that.
        """
        mixture, rows = self._asked(X, sensitive_features, baseline)
        return mixture.probabilities(rows)

    def _compared(self, rows: Any, places: IntArray) -> Compared:
        """Return what the scores of rows are compared with; nothing where several rules or models are mixed."""
        if not self._has_rules or len(self.rules_) > 1:
            return super()._compared(rows, places)
        (rule,) = self.rules_
        scores = rows.scores[:, rule.model]
        uppers, lowers = (np.array(one)[rows.groups] for one in rule.levels)
        groups = [self.groups_.names[code] for code in rows.groups.tolist()]
        below = None if rule.lower is None else lowers
        return Compared(scores, uppers, below, nearest_changes(scores, uppers, below), groups, str(rule))

    def _contributed(self, X: Any, places: IntArray, given: Contribute | None) -> list[Any]:
        if not self._has_rules or len(self.rules_) > 1:
            return super()._contributed(X, places, given)
        model, is_pair = self.estimators_[self.rules_[0].model], len(self.classes_) == _PAIR
        told = contributions_of(model, self._check_predict_input(X), None if is_pair else places, given)
        if is_pair and self._scored.positive.place == 0 and given is None:  # models tell those of the second class
            return [one and {name: -value for name, value in one.items()} for one in told]
        return told

    def rebalance(
        self,
        X: Any = None,
        y: Any = None,
        *,
        by: Any = None,
        deferral: Deferral | str | None = None,
        decision: Any = None,
        **changes: Any,
    ) -> Self:
        """Return a classifier with the same models and another mixture; nothing is trained.

        Parameters
        ----------
        X, y : labelled rows to choose the mixture on, optional
            Default: those of ``fit``, whose predictions or scores were kept, so that no model is even evaluated.
        by : str, list of str or Groups, optional
            For rules of scores: other columns that they may look at; ``()`` for none. Default: the present ones.
        deferral : Deferral or "never", optional
            For rules of scores: what deferring a row costs and is called, or that none is. Default: the present one.
        decision : str or Draws, optional
            For rules of scores: another way to decide, such as ``"sticky"`` for a tail. Default: the present one.
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
        check_is_fitted(self, "goals_")
        other = copy.copy(self)
        given = {"by": by, "deferral": deferral, "decision": decision}
        changed = {name: value for name, value in given.items() if value is not None}
        if isinstance(deferral, str) and deferral == NEVER:
            changed["deferral"] = None
        other.set_params(**changed)
        other._check_decision()  # noqa: SLF001 - of our own kind
        key = key_of_decision(decision)
        if key is not None:
            other._draws = known_draws(self).with_key(key, self.estimators_)  # noqa: SLF001 - as above
        return super(RuleClassifier, other).rebalance(X, y, **changes)

    def _aim_of_fit(self) -> Aim:
        return as_aim(self.alpha, self.objective, self.goals, default_alpha=self._default_alpha, **self._limits())

    def _check_shared_parameters(self) -> None:
        aim = self._aim_of_fit()
        self._check_decision()
        if self.decision == FIXED:
            check_one_rule(aim.objective)

    def _check_labelled(self, X: Any, y: Any) -> tuple[Any, AnyArray]:
        """Return labelled rows as the models take them, after a look at their shape."""
        X, labels = as_rows(X), np.asarray(column_or_1d(y, warn=True))
        if len(labels) != n_rows(X):
            raise ValueError(f"y must hold one label for each of the {n_rows(X)} rows of X; got {len(labels)}.")
        if labels.dtype.kind == "f":
            assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        self._check_features(X, reset=True)
        return X, labels

    def _check_predict_input(self, X: Any) -> Any:
        check_is_fitted(self, "classes_")
        X = self._known_columns(as_rows(X))
        self._check_features(X, reset=False)
        return X

    def _known_columns(self, X: Any) -> Any:
        """Return a data frame without the columns that were not there in ``fit``, such as ids or answers."""
        names = getattr(self, "feature_names_in_", None)
        columns = getattr(X, "column_names", X.columns if is_frame(X) else ())  # of a table of Arrow, or a frame
        if names is None or len(columns) <= len(names) or not set(names) <= set(columns):
            return X
        return X.select(names.tolist()) if hasattr(X, "column_names") else X[names.tolist()]

    def _check_features(self, X: Any, *, reset: bool) -> None:
        _check_feature_names(self, X, reset=reset)
        if len(X.shape) > 1:
            _check_n_features(self, X, reset=reset)

    def _check_decision(self) -> None:
        """Check how decisions are made, and what rules may look at."""
        check_choice(kind_of_decision(self.decision), "decision", (*DECISIONS, FIXED))
        as_groups(self.by)
        if self.decision == FIXED and not self.scores:
            raise ValueError(
                "decision='fixed' is one rule of the scores of models: use GoalClassifier(models, cv='prefit'), or one "
                f"of {', '.join(DECISIONS)} to mix what models say."
            )

    @property
    def _has_rules(self) -> bool:
        return self._scored is not None

    def _mixes_rules(self) -> bool:
        """Tell whether rules of scores are mixed, and not what models say."""
        return bool(self.scores)

    def _pool(self) -> Pool:
        if not self._has_rules:
            return super()._pool()
        return self._pool_of([self._rule_member(rule) for rule in self.rules_])

    def _asked(self, X: Any, sensitive_features: Any = None, baseline: ArrayLike | None = None) -> tuple[Mixture, Any]:
        check_is_fitted(self, "mixture_")
        mixture, rows = super()._asked(X)
        if not self._has_rules:
            return mixture, rows
        return mixture, self._scored_rows(X, rows, sensitive_features, baseline, self._models_used())

    def _models_used(self) -> IntArray:
        """Return the models whose rules carry weight."""
        return np.unique([self.rules_[place].model for place in np.flatnonzero(self.mixture_)])

    def _scored_rows(
        self, X: Any, checked: Any, sensitive_features: Any, baseline: ArrayLike | None, columns: IntArray
    ) -> ScoredRows:
        """Return rows with the scores at some columns, and the groups that the rules look at."""
        groups, n_samples = self.groups_, n_rows(checked)
        codes = np.zeros(n_samples, dtype=np.int64)
        if groups.by:
            features = X if is_frame(X) else np.empty((n_samples, 0))
            codes = groups.codes(Table(features, None, sensitive_features, baseline), "The rows to decide about")
        return ScoredRows(checked, self._scorers().scores(checked, n_samples, None, columns), codes)

    def _rule_member(self, rule: Any) -> Any:
        place = self._scored.positive.place
        upper, lower = map(np.array, rule.levels)
        return RuleMember(rule.model, upper, place, self._scored_alone, None if rule.lower is None else lower)

    def _scored_alone(self, X: Any, columns: IntArray) -> ScoredRows:
        """Return rows with scores, and with groups as far as X shows them."""
        return self._scored_rows(X, self._check_predict_input(X), None, None, columns)

    def _scorers(self) -> Any:
        return ScorePool(self._members, self.n_jobs)

    def _evidence_of_fit(self) -> Any:
        return self._scored if self._has_rules else super()._evidence_of_fit()

    def _asked_about(self, rows: Labelled, answers: Answers, name: str | None = None) -> Any:
        if not self._mixes_rules():
            return super()._asked_about(rows, answers, name)
        scores = self._scores_of(rows.X, rows.codes.size, name)
        kept = self._no_evidence(answers, scores) if name == TRAIN else self._scored  # TRAIN: the rows of fit
        return self._with_rows(kept, rows, scores)

    def _no_evidence(self, answers: Answers, scores: FloatArray) -> Any:
        """Return evidence that holds no rows yet."""
        usual = [member.usual(column) for member, column in zip(self._members, scores.T, strict=False)]
        return ScoreEvidence({}, answers, None, None, np.array(usual))

    def _with_rows(self, kept: Any, rows: Labelled, scores: FloatArray) -> Any:
        """Return evidence with labelled rows as the dataset ``train``."""
        kept = kept.with_dataset(TRAIN, rows.table, scores)
        return kept._replace(sample_weight=rows.sample_weight, groups=rows.groups)

    def _scores_of(self, X: Any, n_samples: int, name: str | None) -> FloatArray:
        """Return scores to choose rules on, a column for each model."""
        return np.asarray(self._scorers().scores(X, n_samples, name))

    def _joined(self, kept: Any, datasets: Mapping[str, Table] | None) -> Any:
        if not hasattr(kept, "scores"):
            return super()._joined(kept, datasets)
        for name, table, X in self._other_rows(self._scorers(), kept.answers, datasets):
            kept = kept.with_dataset(name, table, self._scores_of(X, table.n_samples, name))
        return kept

    def _told(self, evidence: Any) -> Evidence:
        if not isinstance(evidence, ScoreEvidence):
            return super()._told(evidence)
        models = np.array([rule.model for rule in self.rules_])
        return evidence.told(models, self._thresholds(), evidence.group_codes(self.groups_))

    def _settle(self, evidence: Any, aim: Aim, chosen: Any = None) -> None:
        if not isinstance(evidence, ScoreEvidence):
            super()._settle(evidence, aim, chosen)
            return
        table, evidence = evidence.answers.tables[TRAIN], evidence._replace(deferral=self._deferral(aim))
        self._keep_scores(evidence, aim)
        groups = find_groups(as_groups(self.by), table, evidence.n_rows)
        ranked = rank(evidence, groups)
        choice = self._chosen_rules(ranked, aim) if chosen is None else chosen
        if self.decision == FIXED:
            self.fixed_cost_ = choice.cost
        self.groups_, self.rules_ = ranked.groups, ranked.as_rules(choice.rules, are_usual=choice.is_usual)
        told = ranked.as_evidence(choice.rules)
        made = Choice(choice.mixture, choice.value, choice.value - choice.lower, choice.multipliers)
        self._settle_on(told, aim, select(told, aim)._replace(risk=choice.risk), made)
        if isinstance(aim.objective, Risk):
            self._warn_of_the_average(ranked, choice, aim)
        self._warn_of_everybody(aim)

    def _keep_scores(self, evidence: Any, aim: Aim) -> None:
        """Keep what rules will be chosen on: after goals that cannot hold ``rebalance`` asks no model."""
        self._keep_aim(aim)
        self._scored = evidence

    def _chosen_rules(self, ranked: Ranked, aim: Aim) -> RuleChoice:
        try:
            best = choose_rules(ranked, aim)
        except InfeasibleGoals as error:
            if self.decision != FIXED or aim.budget is not None:
                raise
            either = "No mixture of rules meets them either."
            raise no_rule(ranked, aim, best_fixed(ranked, aim), [either], error) from error
        return decided(ranked, aim, best, self.decision, prefers_usual=self._prefers_usual)

    def _warn_of_the_average(self, ranked: Ranked, choice: RuleChoice, aim: Aim) -> None:
        """Say what the tail and the goals cost on average beside the best model at its usual threshold."""
        loss, usual = mean_loss(ranked), ranked.usual_decisions()
        mixed, alone = float(loss.of(choice.rules)[0] @ choice.mixture), float(loss.of(usual).min())
        warn_of_the_average(mixed, alone, "the best model", aim)

    def _check_loaded_members(self) -> None:
        if not self._has_rules:
            super()._check_loaded_members()
            return
        n_scores, names = self._scored.usual.size, self.groups_.names
        self._check_loaded_rules(n_scores, "scores")
        for rule in self.rules_:
            if not 0 <= rule.model < n_scores or tuple(rule.thresholds) != names:
                raise ValueError(f"a rule is not of one of {n_scores} models with thresholds for {', '.join(names)}")

    def _check_loaded_rules(self, n_scores: int, what: str) -> None:
        """Check that rules of so many models have a share each, and scores of all models."""
        n_models, n_rules = len(self.estimators_), len(self.rules_)
        check_mixture(self.mixture_, n_rules)
        if {part.losses.shape[1] for part in (self._kept, self.selection_)} != {n_rules}:
            raise ValueError(f"the losses are not those of {n_rules} rules")
        if n_models != len(self._members) or n_models != n_scores:
            raise ValueError(f"the {what} are not those of {n_models} models")
