"""The base class of classifiers that mix rules: it chooses the best mixture of a family, and decides by it."""

import copy
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import assert_all_finite
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_is_fitted, column_or_1d

from counterpoise._base.budget import choosing
from counterpoise._base.checks import check_choice, check_sample_weight
from counterpoise._base.frames import as_array, column_names, is_frame, take_rows
from counterpoise._base.progress import RunProgress, progress_callback
from counterpoise._base.types import AnyArray, ArrayLike, FloatArray, IntArray
from counterpoise.classifiers.capacity import decide_top
from counterpoise.classifiers.goal_effects import goal_effects
from counterpoise.goals import GoalCheck, InfeasibleGoals, Ratio, Table, as_goals
from counterpoise.goals.expressions import amount_columns
from counterpoise.goals.partial_labels import PartialLabels
from counterpoise.goals.tables import count_missing, with_train
from counterpoise.rules.cautions import (
    check_problem,
    warn_of_margins,
    warn_of_one_answer,
    warn_of_the_average,
    warn_of_the_positive_class,
)
from counterpoise.rules.choosing import (
    ALPHA,
    CVAR,
    FIXED,
    WORST_GROUP,
    PoolPredictions,
    Problem,
    Selection,
    as_problem,
    rate_of,
)
from counterpoise.rules.deciding import Decider, DecisionRows
from counterpoise.rules.draws import KeyedDraws
from counterpoise.rules.explaining import (
    HOW_DRAWN,
    Contribute,
    Explanation,
    GoalEffect,
    contributions_of,
    explanations,
)
from counterpoise.rules.families import (
    ChosenRules,
    ClassRules,
    Family,
    PooledModels,
    Solution,
    ThresholdRules,
    answers_of,
    with_columns,
    with_persons,
    with_tables,
)
from counterpoise.rules.fewest_draws import drawn_rows
from counterpoise.rules.goal_rows import TRAIN, find_positive
from counterpoise.rules.infeasible import with_outcomes
from counterpoise.rules.options import STICKY, Deferral, Draws, Proof, as_groups, kind_of_decision
from counterpoise.rules.pool import Pool, named_models
from counterpoise.rules.ratios import value_of_decisions
from counterpoise.rules.rows import LabelledData, as_rows, checked_features, known_columns, n_rows
from counterpoise.theory.risks import Risk, WorstGroup

DECISIONS = ("sticky", "sample", "vote")
DRAWN = (STICKY, "sample")
SAME = "same"  # the word of ``rebalance`` for: unchanged
CHOOSING = "choosing decision rules"  # as progress has it
NEVER = "never"  # the word of ``rebalance`` for: no row is deferred
_LIMITS = (
    "mixture",
    "outlier_fraction",
    "max_models",
    "budget",
    "deferral",
    "confidence",
)  # parameters that limit the mixtures
_CHOSEN = (
    "mixture_",
    "rules_",
    "groups_",
    "calibrations_",
    "certificate_",
    "fixed_cost_",
    "family_",
    "margins_",
    "confidence_",
    "proof_",
    "probability_",
    "has_warned_of_cost_",
)
_LEAST = 2.0**-53  # a probability below this counts as this: its log-odds stay finite
_PAIR = 2  # classes
_HALF = 0.5


def _has_scores(model: Any) -> bool:
    """Return whether a classifier decides by rules of scores."""
    return bool(model.decides_by_scores)


def _has_probabilities(model: Any) -> bool:
    """Return whether the models that may decide have probabilities; mixtures of predictions always do."""
    if not model.decides_by_scores:
        return True
    family = vars(model).get("family_")
    if isinstance(family, ThresholdRules):  # one half is the usual threshold of probabilities, and of nothing else
        return bool((family.selection_data.usual == _HALF).all())
    estimator = getattr(model, "estimator", None)
    models = named_models(estimator if isinstance(estimator, list) and estimator else [estimator])
    return not any(hasattr(one, "decision_function") and not hasattr(one, "predict_proba") for _, one in models)


def _check_fitted(model: Any, name: str) -> None:
    """Raise the error for a classifier that lacks what ``fit`` learns; scikit-learn's own check looks at tags first."""
    if not hasattr(model, name):
        check_is_fitted(model, name)


class MixtureBase(ClassifierMixin, BaseEstimator):
    """Base of classifiers that mix models, or rules of their scores.

    ``fit`` of a subclass sets ``classes_`` and ``estimators_``, calls ``learn_draws``, makes a family of rules and
    calls ``solve_and_store`` with it.

    Attributes
    ----------
    family_ : PooledModels, ThresholdRules or ClassRules
        The family of rules, with the scores or predictions of the selection rows.
    draws_ : KeyedDraws
        The key and grid of sticky draws.
    """

    by: Any = ()  # for subclasses without these parameters
    deferral: Any = None
    default_alpha: float = ALPHA  # where neither alpha nor an objective is given
    chosen_on_trained_ = False  # whether the mixture was chosen on rows that its models were trained on
    has_warned_of_cost_ = False  # so that a rebalance does not repeat the warning
    keeps_default_threshold = False  # whether models keep their usual thresholds without goals, deferral or a tail

    family_: Any
    selection_: Selection
    draws_: KeyedDraws

    def predict(
        self,
        X: Any,
        *,
        sensitive_features: Any = None,
        baseline: ArrayLike | None = None,
        ids: Any = None,
        top: int | None = None,
    ) -> AnyArray:
        """Decide about every row.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows to decide about.
        sensitive_features : data frame, dict of arrays or array, optional
            The columns that ``by`` names, unless X is a data frame that holds them.
        baseline : array of shape (n_samples,), optional
            The predictions of the deployed model, where rules use them.
        ids : array-like of shape (n_samples,), optional
            One for each person, for ``decision="sticky"``: rows of the same id are decided by the same model, or rule,
            whatever else changed. With ``top`` they break ties of scores. Default: the row itself is its id.
        top : int from 0 to n_samples, optional
            Capacity: decide positive for exactly so many rows of this batch. For one rule of scores of two classes,
            without deferral. The goals are solved again on the selection rows of ``fit``, without margins, at that
            selection rate and with the batch's shares of the groups of ``by``; that gives how many rows of each group
            are selected, rounded by largest remainders. Inside a group the highest scores are. Ties are broken by a
            keyed hash of ids, or of the rows, and never by their order. Default: thresholds decide about each row
            alone.

        Returns
        -------
        array of shape (n_samples,)
            Class labels; the label of ``deferral`` for rows that are deferred.

        Raises
        ------
        InfeasibleGoals
            If no choice of ``top`` rows meets the goals; ``nearest_top`` is the nearest number that does.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.naive_bayes import GaussianNB
        >>> from counterpoise import GoalClassifier
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = GoalClassifier(GaussianNB(), goals=["precision >= 0.9"], random_state=0).fit(X[:400], y[:400])
        >>> int(model.predict(X[400:]).sum()), int(model.predict(X[400:], top=50).sum())
        (123, 50)
        """
        decider = self.decider()
        original = known_columns(X, getattr(self, "feature_names_in_", None))
        if top is not None:
            return decide_top(self, self.rows_to_decide(X, sensitive_features, baseline), original, ids, top)
        if ids is not None and kind_of_decision(self.decision) != STICKY:
            raise ValueError(
                f"ids are for decision='sticky', and for top; this classifier has decision={self.decision!r}."
            )
        return decider.decide(self.rows_to_decide(X, sensitive_features, baseline), original, ids)

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
        return self.decider().probabilities(self.rows_to_decide(X, sensitive_features, baseline))

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the class probabilities of the model that decides, independent of its thresholds.

        For several models that decide by rules of their scores: the mean of their probabilities, weighted by how often
        each decides. For mixtures of predictions: the probability of each class, as ``decision_proba``.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        _check_fitted(self, "mixture_")
        if isinstance(self.family_, PooledModels):
            return self.decision_proba(X)
        shares, checked = self._model_shares(), self.check_predict_input(X)
        active = np.flatnonzero(shares)
        scores = self.pool().ask(checked, n_rows(checked), None, active)
        mean = np.tensordot(scores, shares[active], axes=(1, 0))  # over the models
        if mean.ndim > 1:
            return np.asarray(mean)
        if scores.min(initial=0.0) < 0 or scores.max(initial=1.0) > 1:
            raise ValueError(
                "The scores of the models are not probabilities: some are below 0 or above 1. Call "
                "decision_function, which returns the scores unchanged."
            )
        mean = np.clip(mean, 0.0, 1.0)  # shares may sum to 1 + 1e-16
        columns = [mean, 1.0 - mean] if self.family_.pool.positive.place == 0 else [1.0 - mean, mean]
        return np.column_stack(columns)

    @available_if(_has_scores)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> FloatArray:
        """Return the score of the model that decides: its ``decision_function``, or the log-odds of its probability.

        For several models that decide by rules of their scores: the mean of their scores, weighted by how often each
        decides.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
            Higher where the second class is more likely. Of more than two classes an array of shape (n_samples,
            n_classes).
        """
        _check_fitted(self, "mixture_")
        if len(self.classes_) > _PAIR:
            return np.asarray(np.log(np.maximum(self.predict_proba(X), _LEAST)))
        shares, checked, pool = self._model_shares(), self.check_predict_input(X), self.family_.pool
        active = np.flatnonzero(shares).tolist()
        pool.check_live(active)
        total = sum(shares[place] * _log_odds(pool.members[place], checked) for place in active)
        return np.asarray(total if pool.positive.place == 1 else -total)

    @property
    def feature_importances_(self) -> FloatArray:
        """Return the mean of the models' ``feature_importances_``, weighted by how often each decides.

        All models that decide must have importances of the features of ``fit``; pipelines that make other features have
        none.
        """
        check_is_fitted(self)
        shares, importances = self._model_shares(), []
        for place in np.flatnonzero(shares).tolist():
            own = getattr(self.estimators_[place], "feature_importances_", None)
            if own is None or np.shape(own) != (self.n_features_in_,):
                raise AttributeError(
                    f"feature_importances_ needs models that have it for each of the {self.n_features_in_} features; "
                    f"{type(self.estimators_[place]).__name__} does not have it. "
                    "sklearn.inspection.permutation_importance works for any classifier."
                )
            importances.append(shares[place] * np.asarray(own, dtype=np.float64))
        return np.asarray(np.sum(importances, axis=0))

    def explain(
        self,
        X: Any,
        ids: Any = None,
        *,
        contributions: Contribute | None = None,
        sensitive_features: Any = None,
        baseline: ArrayLike | None = None,
    ) -> list[Explanation]:
        """Explain the decision about each row, one record for each.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        ids : array-like of shape (n_samples,), optional
            As for ``predict``.
        contributions : callable, optional
            Given a model and rows, it returns what each feature adds to the score: an array of shape (n_samples,
            n_features), or a dict for each row. Default: what models of LightGBM, XGBoost and CatBoost and linear
            models compute; None for other models.
        sensitive_features, baseline
            As for ``predict``, where rules use them.

        Returns
        -------
        list of Explanation
            With ``decision``, ``score``, ``threshold``, ``distance``, ``change``, ``group``, ``rule``, ``goals``,
            ``share``, ``draw`` and ``contributions``; ``print`` shows one in words.
        """
        decisions = self.predict(X, sensitive_features=sensitive_features, baseline=baseline, ids=ids)
        decider, rows = self.decider(), self.rows_to_decide(X, sensitive_features, baseline)
        n_used = int(np.count_nonzero(self.mixture_))
        answers = decider.answers.tolist()
        places = np.array([answers.index(decision) for decision in decisions.tolist()], dtype=np.int64)
        return explanations(
            decisions,
            decider.probabilities(rows)[np.arange(len(places)), places],
            self.family_.compare(self.chosen_rules(), rows, places, n_used),
            goals=self._goals_of(rows),
            draw=HOW_DRAWN.get(kind_of_decision(self.decision), "") if n_used > 1 else "",
            contributions=self._contributions(rows.X, places, contributions),
        )

    def _goals_of(self, rows: DecisionRows) -> list[dict[str, GoalEffect]]:
        """Return for each row the goals that move its rule, with what they do; where rules are mixed their prices."""
        chosen = self.chosen_rules()
        if chosen is None or len(chosen.rules) > 1:
            priced = zip(self.goals_, np.abs(self.multipliers_).tolist(), strict=False)
            return [{str(goal): GoalEffect(price) for goal, price in priced if price > 0}] * len(rows.groups)
        effects = goal_effects(self)
        by_group = {code: {str(one.goal): one.on(code) for one in effects} for code in set(rows.groups.tolist())}
        return [by_group[code] for code in rows.groups.tolist()]

    def _contributions(self, X: Any, places: IntArray, function: Contribute | None) -> list[Any]:
        """Return what features add to the score of each row; None where no single score decides."""
        chosen = self.chosen_rules()
        if chosen is None or len(chosen.rules) > 1:
            return [None] * len(places)
        model, is_pair = self.estimators_[chosen.rules[0].model], len(self.classes_) == _PAIR
        if not is_pair:  # what features add is about a class, and a deferred row has none
            decided = np.flatnonzero(places < len(self.classes_))
            values = contributions_of(model, take_rows(X, decided), places[decided], function) if decided.size else []
            known = dict(zip(decided.tolist(), values, strict=True))
            return [known.get(row) for row in range(len(places))]
        contributions = contributions_of(model, X, None, function)
        if self.family_.pool.positive.place == 0 and function is None:  # models score the second class
            return [one and {name: -value for name, value in one.items()} for one in contributions]
        return contributions

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None, **columns: Any) -> float:
        """Return the share of rows that are decided rightly; a deferred row is not.

        Parameters
        ----------
        X, y : rows and their labels
        sample_weight : array of shape (n_samples,), optional
        **columns
            As for ``predict``.
        """
        decisions = self.predict(X, **columns)
        if getattr(self.family_.selection_data, "deferral", None) is None:
            return float(accuracy_score(y, decisions, sample_weight=sample_weight))
        weights = check_sample_weight(sample_weight, len(decisions))
        return float(np.average(decisions == np.asarray(column_or_1d(as_array(y))), weights=weights))

    def staged_decision_proba(
        self, X: Any, sensitive_features: Any = None, baseline: ArrayLike | None = None
    ) -> Iterator[FloatArray]:
        """Yield ``decision_proba`` of the first model, the first two and so on, each with its own mixture.

        Goals hold at every stage at which the models so far can meet them. Before, mixtures of answers miss them as
        little as can be; where rules of scores cannot meet them, ``InfeasibleGoals`` is raised.
        """
        _check_fitted(self, "mixture_")
        problem, n_models = self.problem(), len(self.estimators_)
        rows = self.rows_to_decide(X, sensitive_features, baseline)
        for place in range(n_models):
            rows = rows.with_outputs([place])
        for n_first in range(1, n_models + 1):
            stage = self.family_.stage(n_first, problem, self.selection_)
            yield self._decider_of(stage.chosen, stage.mixture, None).probabilities(rows)

    def staged_predict(
        self, X: Any, sensitive_features: Any = None, baseline: ArrayLike | None = None
    ) -> Iterator[AnyArray]:
        """Yield the weighted vote of the first model, the first two and so on, each with its own mixture.

        Votes, not draws, so that the stages can be compared.
        """
        for shares in self.staged_decision_proba(X, sensitive_features, baseline):
            yield answers_of(self.family_)[shares.argmax(axis=1)]

    def rebalance(
        self,
        X: Any = None,
        y: Any = None,
        *,
        alpha: float | None = None,
        goals: Any = None,
        objective: Any = None,
        budget: float | None = None,
        by: Any = SAME,
        deferral: Deferral | str | None = None,
        decision: Any = None,
        confidence: float | str | Proof | None = SAME,
        sample_weight: ArrayLike | None = None,
        sensitive_features: Any = None,
        baseline: ArrayLike | None = None,
        ids: Any = None,
        datasets: Mapping[str, Table] | None = None,
        largest_weight: float | None = None,
        largest_value: float | Mapping[str, float] | None = None,
        tables: Mapping[str, Table] | None = None,
    ) -> Self:
        """Return a classifier with the same models and another mixture; nothing is trained.

        Parameters
        ----------
        X, y : labelled rows to choose the mixture on, optional
            Default: those of ``fit``, whose predictions or scores were stored, so that no model is even evaluated. They
            are the dataset ``train`` of goals.
        alpha : float in (0, 1], optional
            Short for ``objective=CVaR(alpha)``. Default: the present objective.
        goals : goals or their texts, optional
            Other goals; ``()`` for none. Default: the present ones.
        objective : risk, rate or ratio, or the text of one, optional
            What is minimised, in place of ``alpha``: pass one of them. Default: ``CVaR(alpha)`` where alpha is given,
            else as before.
        budget : float in [0, 1], optional
            The most that the mean loss may be above the least that is possible under the goals; 1 for no limit.
            Default: the present one.
        by : str, list of str, Groups or None, default="same"
            For rules of scores: other columns that they may use; ``()`` or None for none. Default: the current ones.
        deferral : Deferral or "never", optional
            For rules of scores: what deferring a row costs and is called, or that none is. Default: the present one.
        decision : str or Draws, optional
            For rules of scores: another way to decide, such as ``"sticky"`` for a tail. Default: the present one.
        confidence : float in (0, 1), Proof, None or "same", default="same"
            The probability with which goals hold together on new rows; None for no margins. Default: the present one.
        sample_weight : array of shape (n_samples,), optional
            Weights of the rows of X.
        sensitive_features : array, dict or data frame with a row for each sample, optional
            Columns that goals use. Without goals, alpha and objective: choose the mixture with the least loss on
            the worst of these groups; a small labelled set is enough.
        baseline : array of shape (n_samples,), optional
            The predictions of the deployed model for the rows, for churn, wins and losses.
        ids : array-like of shape (n_samples,), optional
            The person that each row of X is of, where some have several: margins count persons and not rows.
        datasets : dict from names to Table, optional
            Other datasets that goals or the objective use, beside those of ``fit``.
        largest_weight : float, optional
            The largest weight that a row of the population can have, for goals that carry a confidence: as for
            ``Table``.
        largest_value : float or dict from columns to floats, optional
            The same for amounts that goals count: as for ``Table``.
        tables : dict from names to Table, optional
            Other tables for the rows of datasets, ``train`` among them, for goals and objective: with all columns of a
            data frame of which the models use a part, or with the predictions of the deployed model.

        Returns
        -------
        fitted classifier
            Of the same kind, sharing ``estimators_``.

        Raises
        ------
        InfeasibleGoals
            If no mixture meets the goals.
        """
        _check_fitted(self, "goals_")  # an infeasible fit leaves the family to choose from
        other = copy.copy(self)
        wanted = {"by": () if by is None else by, "confidence": confidence}
        changed = {name: value for name, value in wanted.items() if not (isinstance(value, str) and value == SAME)}
        changed |= {"deferral": deferral} if deferral is not None else {}
        changed |= {"decision": decision} if decision is not None else {}
        if isinstance(deferral, str) and deferral == NEVER:
            changed["deferral"] = None
        if X is not None:
            other.chosen_on_trained_ = False
        elif changed.get("confidence") is not None and self.chosen_on_trained_:
            raise ValueError(
                f"confidence={confidence!r} needs rows that no round has seen, and the mixture was chosen on those of "
                "training: pass X and y of other rows, or fit with stopping=Stopping(validation_fraction=0.3)."
            )
        other.set_params(**changed)
        other.check_decision()
        if isinstance(decision, Draws):
            other.draws_ = self.draws_.with_key(decision.key, self.estimators_)
        has_goals = bool(self.goals_ if goals is None else as_goals(goals))
        if objective is None and alpha is None and sensitive_features is not None and not has_goals:
            objective = WORST_GROUP
        problem = other.problem(alpha, objective, goals, budget)._replace(mixture="optimal")
        columns = {"sensitive_features": sensitive_features, "baseline": baseline}
        columns |= {"sample_weight": sample_weight, "largest_weight": largest_weight, "largest_value": largest_value}
        family = with_tables(self._family_on(X, y, datasets, columns), tables or {})
        if ids is not None:
            family = with_persons(family, ids)
        settings = {"alpha": alpha, "goals": goals, "objective": objective, "budget": budget, "mixture": "optimal"}
        changed = {name: value for name, value in settings.items() if value is not None}
        if alpha is not None and objective is None:
            changed["objective"] = None  # for which alpha is short
        if alpha is None and objective is not None and not (isinstance(objective, str) and objective == CVAR):
            changed["alpha"] = None  # which the objective replaces
        params = self.get_params(deep=False)
        other.set_params(**{name: value for name, value in changed.items() if name in params})
        other.solve_and_store(family, problem)
        return other

    def check_goals(
        self,
        X: Any = None,
        y: Any = None,
        *,
        sample_weight: ArrayLike | None = None,
        sensitive_features: Any = None,
        baseline: ArrayLike | None = None,
        datasets: Mapping[str, Table] | None = None,
    ) -> list[GoalCheck]:
        """Check the goals in expectation over the draws, on the selection rows of ``fit`` or on other rows.

        If models were trained in folds, each selection row is decided by the model that has not seen it. ``predict``
        uses the deciding model, which has, so a count of its decisions on the same rows differs. On other rows, passed
        as ``X`` and ``y``, both are the same.

        Parameters
        ----------
        X, y, sample_weight, sensitive_features, baseline, datasets
            As for ``rebalance``: the data in place of ``train``, and other datasets by name.

        Returns
        -------
        list of GoalCheck
            One for each goal: its value, bound, violation and whether it holds.
        """
        check_is_fitted(self)
        columns = {"sensitive_features": sensitive_features, "baseline": baseline, "sample_weight": sample_weight}
        family = self._family_on(X, y, datasets, columns)
        predictions: PoolPredictions = family.predictions(self.chosen_rules())
        return predictions.answers.checks(self.goals_, self.mixture_)

    def objective_value(
        self,
        X: Any,
        y: Any,
        *,
        objective: Any = None,
        sample_weight: ArrayLike | None = None,
        sensitive_features: Any = None,
        baseline: ArrayLike | None = None,
    ) -> float:
        """Return the objective of the decisions about labelled rows, in expectation over the draws.

        Parameters
        ----------
        X, y, sample_weight, sensitive_features, baseline
            As for ``rebalance``.
        objective : risk, rate or ratio, or the text of one, optional
            Default: that of ``fit``, whose value on the selection rows is ``value_``.

        Returns
        -------
        float
        """
        _check_fitted(self, "mixture_")
        columns = {"sensitive_features": sensitive_features, "baseline": baseline, "sample_weight": sample_weight}
        family, problem = self._family_on(X, y, None, columns), self.problem(objective=objective, goals=())
        return value_of_decisions(family, problem, self.chosen_rules(), self.mixture_)

    @property
    def risk_(self) -> Risk | None:
        """Return the risk that was minimised, with its groups and a calibrated radius filled in; None for a rate."""
        objective = self.selection_.risk or self.objective_
        return objective if isinstance(objective, Risk) else None

    @property
    def drawn_share_(self) -> float:
        """Return the share of the selection rows, by weight, for which a draw decides whether the decision is right."""
        drawn = drawn_rows(self.selection_.losses, self.mixture_)
        return float(np.average(drawn, weights=self.selection_.sample_weight))

    # What fit, runs, the explorer and Dask call.

    def problem_of_fit(self) -> Problem:
        """Return the problem that the parameters describe, after checking it."""
        return self.build_problem(self.alpha, self.objective, self.goals)

    def problem(
        self, alpha: float | None = None, objective: Any = None, goals: Any = None, budget: float | None = None
    ) -> Problem:
        """Return the problem of a fitted classifier with some parts changed; None leaves a part as it is."""
        objective = self.objective_ if objective is None and alpha is None else objective
        goals = self.goals_ if goals is None else goals
        return self.build_problem(alpha, objective, goals, **({} if budget is None else {"budget": budget}))

    def build_problem(self, alpha: Any, objective: Any, goals: Any, **limits: Any) -> Problem:
        """Return an objective and goals as a problem, with the limits that the other parameters set."""
        all_limits = {name: getattr(self, name) for name in _LIMITS if hasattr(self, name)} | limits
        options: dict[str, Any] = {"by": as_groups(self.by), "decision": kind_of_decision(self.decision)}
        options["keeps_default_threshold"] = self.keeps_default_threshold
        options["fewest_draws"] = options["decision"] in DRAWN
        return as_problem(alpha, objective, goals, default_alpha=self.default_alpha, **all_limits, **options)

    def solve_and_store(self, family: Family, problem: Problem, choice: Any = None) -> None:
        """Choose the best mixture of a family's rules, unless ``choice`` is one, and store it.

        The family is stored first, so that after infeasible goals ``rebalance`` needs no model.
        """
        progress_callback()(RunProgress(0, 0, CHOOSING, 0.0, 0.0))
        family = family.prepared(problem)
        self.store_family(family, problem)
        with choosing():
            try:
                solution = family.solve(problem, choice)
            except InfeasibleGoals as error:
                raise with_outcomes(family, problem, error) from None
        self.store_solution(problem, solution)

    def store_family(self, family: Family, problem: Problem) -> None:
        """Store the family of rules and the problem."""
        warn_of_the_positive_class(problem.goals, problem.objective, self.classes_, self.pos_label)
        self.alpha_, self.goals_, self.objective_ = problem.alpha, problem.goals, problem.objective
        self.family_ = family

    def store_solution(self, problem: Problem, solution: Solution) -> None:
        """Store a solution, and warn of results that the user would not expect."""
        self.selection_, self.mixture_ = solution.selection, solution.mixture
        self.value_, self.gap_, self.multipliers_ = solution.value, solution.gap, solution.multipliers
        self.n_models_ = int(np.count_nonzero(self.mixture_))
        self.certificate_ = solution.certificate
        if solution.chosen is not None:
            self.rules_, self.groups_, calibrations = solution.chosen
            if calibrations:
                self.calibrations_ = calibrations
        if problem.decision == FIXED:
            self.fixed_cost_ = solution.cost
        self.margins_ = () if solution.margins is None else solution.margins.margins
        self.confidence_ = None if solution.margins is None else solution.margins.confidence
        self.proof_ = None if solution.margins is None else solution.margins.proof
        self.probability_ = None if solution.margins is None else solution.margins.share
        has_folds = getattr(getattr(self.family_, "selection_data", None), "has_fold_scores", False)
        warn_of_margins(solution.margins, problem.confidence, has_folds=has_folds)
        if hasattr(self, "max_models"):
            self.max_models_cost_ = solution.cost
        if solution.errors is not None and not self.has_warned_of_cost_:
            self.has_warned_of_cost_ = warn_of_the_average(*solution.errors, "the best model", problem)
        warn_of_one_answer(solution.deferred, solution.constant)

    def forget_choice(self) -> None:
        """Remove the solution of an earlier fit, which belongs to other models."""
        for name in _CHOSEN:
            self.__dict__.pop(name, None)

    def learn_draws(self, key: bytes, generator: np.random.Generator) -> None:
        """Store the generator of fresh draws, and the key of sticky ones."""
        key = self.decision.key if isinstance(self.decision, Draws) else key
        self.draws_ = KeyedDraws(key).with_key(key, self.estimators_)
        self._generator = generator

    @property
    def decides_by_scores(self) -> bool:
        """Return whether rules of scores decide, or will; otherwise predictions of models are mixed."""
        return "family_" in vars(self) and not isinstance(self.family_, PooledModels)

    def decider(self) -> Decider:
        """Return the rules with their shares, and how they decide together."""
        _check_fitted(self, "mixture_")
        kind = kind_of_decision(self.decision)
        draws = self.draws_ if kind == STICKY else self._generator if kind == "sample" else None
        return self._decider_of(self.chosen_rules(), self.mixture_, draws)

    def usual_decider(self) -> Decider:
        """Return the decider of the first model at its usual threshold, or by its likeliest class."""
        return self._decider_of(self.family_.usual(self.groups_), np.ones(1), None)

    def _decider_of(self, chosen: ChosenRules | None, shares: FloatArray, draws: Any) -> Decider:
        rules, models = self.family_.rules(chosen)
        return Decider(rules, models, shares, draws, answers_of(self.family_), isinstance(self.family_, ClassRules))

    def chosen_rules(self) -> ChosenRules | None:
        """Return the rules of scores that decide; None where models themselves are mixed."""
        if not hasattr(self, "rules_"):
            return None
        return ChosenRules(self.rules_, self.groups_, getattr(self, "calibrations_", ()))

    def pool(self) -> Pool:
        """Return the models, which predict in ``n_jobs`` threads."""
        return self.family_.pool._replace(n_jobs=self.n_jobs)  # type: ignore[no-any-return]

    def rows_to_decide(
        self, X: Any, sensitive_features: Any = None, baseline: ArrayLike | None = None, outputs: AnyArray | None = None
    ) -> DecisionRows:
        """Return checked rows with the groups that rules use, and the outputs of models where they are known."""
        _check_fitted(self, "mixture_")
        checked = self.check_predict_input(X)
        codes = np.zeros(n_rows(checked), dtype=np.int64)
        if hasattr(self, "groups_") and self.groups_.by:
            features = X if is_frame(X) else np.empty((codes.size, 0))
            codes = self.groups_.codes(Table(features, None, sensitive_features, baseline), "The rows to decide about")
        known = {} if outputs is None else {place: outputs[:, place] for place in range(outputs.shape[1])}
        return DecisionRows(checked, codes, self.pool(), known)

    def _model_shares(self) -> FloatArray:
        """Return how often each of ``estimators_`` decides, or scores."""
        chosen = self.chosen_rules()
        if chosen is None:
            return np.asarray(self.mixture_)
        models = np.array([rule.model for rule in chosen.rules])
        shares = np.bincount(models, weights=self.mixture_, minlength=len(self.estimators_))
        return np.asarray(shares / shares.sum(), dtype=np.float64)  # exactly 1 where one model decides

    # Checks of the arguments of methods.

    def check_predict_input(self, X: Any) -> Any:
        """Return rows as the models take them: nothing is converted, and columns that ``fit`` did not have go."""
        _check_fitted(self, "classes_")
        names = getattr(self, "feature_names_in_", None)
        X = known_columns(as_rows(X), names)
        if column_names(X) != ([] if names is None else names.tolist()):  # the check itself is slow, for one row
            _check_feature_names(self, X, reset=False)
        if len(X.shape) > 1:
            _check_n_features(self, X, reset=False)
        return X

    def check_decision(self) -> None:
        """Check ``decision`` and ``by``."""
        check_choice(kind_of_decision(self.decision), "decision", (*DECISIONS, FIXED))
        as_groups(self.by)
        if self.decision == FIXED and not self.decides_by_scores:
            raise ValueError(
                "decision='fixed' needs scores, and this classifier mixes predictions. Use GoalClassifier(models, "
                f"cv='prefit'), or set decision to one of {', '.join(DECISIONS)}."
            )

    def _check_labelled(self, X: Any, y: Any) -> tuple[Any, AnyArray]:
        """Return labelled rows as the models take them, after checking their shapes."""
        y = y.filled if isinstance(y, PartialLabels) else y
        X, labels = as_rows(X), np.asarray(column_or_1d(as_array(y), warn=True))
        if len(labels) != n_rows(X):
            raise ValueError(f"y must hold one label for each of the {n_rows(X)} rows of X; got {len(labels)}.")
        n_missing = count_missing(labels) if labels.dtype.kind in "fO" else 0
        if n_missing:
            raise ValueError(
                f"y must hold a label for each row; {n_missing} of {len(labels)} are missing (NaN or None). Fit on "
                "the rows with a label; where chance decides whose label is known, choose on PartialLabels. Or pass "
                "all rows as datasets={'everybody': Table(X)}: goals on everybody can be on rates that need no labels, "
                "such as selection_rate(everybody). Rates that need them cannot be estimated on everybody; audit(..., "
                "labelled=...) bounds them, whatever the labels are."
            )
        if labels.dtype.kind == "f":
            assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        _check_feature_names(self, X, reset=True)
        if len(X.shape) > 1:
            _check_n_features(self, X, reset=True)
        return X, labels

    def labelled_data(self, X: Any, y: Any, **columns: Any) -> LabelledData:
        """Return checked labelled rows; ``columns`` are what else belongs to them, as ``LabelledData.of`` takes it."""
        checked, problem = self.check_predict_input(X), self.problem_of_fit()
        if isinstance(y, PartialLabels) and not y.is_complete:
            self._check_takes_partial_labels(problem)
        amounts = amount_columns([*problem.goals, *rate_of(problem.objective)])
        return LabelledData.of(checked, y, self.classes_, original=X, amounts=amounts, **columns)

    def _check_takes_partial_labels(self, problem: Problem) -> None:
        """Refuse what is not known of labels that are known in part."""
        objective = problem.objective
        reasons = {
            "a classifier that mixes models": not self.decides_by_scores,
            f"{len(self.classes_)} classes": len(self.classes_) > _PAIR,
            f"decision={problem.decision!r}": problem.decision != FIXED,
            "a Proof": isinstance(problem.confidence, Proof),
            f"the objective {objective}": isinstance(objective, Ratio | WorstGroup),
        }
        reason = next((reason for reason, holds in reasons.items() if holds), None)
        if reason is not None:
            raise ValueError(
                "PartialLabels are for GoalClassifier with two classes, one rule (decision='fixed'), margins, and the "
                f"error or a rate as objective; got {reason}. Choose on the rows with a label alone."
            )

    def check_problem(
        self, problem: Problem, data: LabelledData, datasets: Mapping[str, Table] | None, **checks: Any
    ) -> None:
        """Raise the errors that need no model: see ``cautions.check_problem``, to which ``checks`` go."""
        tables = with_train(data.table, datasets)
        for name, table in tables.items():
            if name != TRAIN:
                self._checked_features(name, table)
        check_problem(problem, tables, find_positive(self.classes_, self.pos_label), groups=data.groups, **checks)

    def _family_on(self, X: Any, y: Any, datasets: Mapping[str, Table] | None, columns: dict[str, Any]) -> Any:
        """Return the family of ``fit``, with other rows, columns or datasets where they are passed."""
        labels_and_weights = [y, *(columns.get(name) for name in ("sample_weight", "largest_weight", "largest_value"))]
        if X is None and any(part is not None for part in labels_and_weights):
            raise ValueError("You passed y or weights without X. Pass X and y together, or neither.")
        if X is not None and y is None:
            raise ValueError("You passed X without y. Pass both: mixtures are chosen and checked on labelled rows.")
        family: Any = self.family_._replace(pool=self.pool())
        features = columns.get("sensitive_features"), columns.get("baseline")
        if X is not None:
            family = family.with_rows(self.labelled_data(X, y, **columns))
        elif any(column is not None for column in features):
            family = with_columns(family, *features)
        return self.with_datasets(family, datasets)

    def with_datasets(self, family: Family, datasets: Mapping[str, Table] | None) -> Family:
        """Return a family with other datasets beside the selection rows."""
        for name, table in with_train(family.selection_data.answers.tables[TRAIN], datasets).items():
            if name != TRAIN:
                X = self._checked_features(name, table) if family.pool.needs_rows() else None
                family = family.with_dataset(name, table, X)
        return family

    def _checked_features(self, name: str, table: Table) -> Any:
        """Return the features of a dataset, checked."""
        return checked_features(table.X, name, "for the models to predict", self.check_predict_input)

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether there is a mixture to decide by."""
        return "mixture_" in vars(self)

    def check_loaded(self) -> None:
        """Check the values that were read from a file."""
        if hasattr(self, "classes_"):  # it is fitted
            if not isinstance(vars(self).get("draws_"), KeyedDraws):
                raise ValueError("it has no key to draw with")
            n_models, n_members = len(self.estimators_), len(self.family_.pool.members)
            if n_members != n_models:
                raise ValueError(f"it has {n_members} members for {n_models} models")
            if not np.array_equal(self.classes_, self.family_.pool.positive.classes):
                raise ValueError("its models have other classes")
            self.family_.check_chosen(self.chosen_rules(), self.mixture_, self.selection_)


def _log_odds(member: Any, X: Any) -> FloatArray:
    """Return the score of the positive class: a decision function where the model has one, else log-odds."""
    if hasattr(member.model, "decision_function"):
        return np.asarray(member.margins(X))
    scores = member.ask(X)
    if scores.min(initial=0.0) < 0 or scores.max(initial=1.0) > 1:  # of a function: no probabilities
        return np.asarray(scores)
    odds = np.maximum(scores, _LEAST) / np.maximum(1.0 - scores, _LEAST)
    return np.asarray(np.log(odds))
