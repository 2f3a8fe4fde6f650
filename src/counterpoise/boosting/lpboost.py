"""alpha-AdaLPBoost, and alpha-LPBoost, plain and entropy-regularized.

Zhai, Dan, Suggala, Kolter, Ravikumar: Boosted CVaR Classification, NeurIPS 2021; ``docs/papers/boosted_cvar.md`` has
their items one by one. The constants ``as_printed`` are the settings of their boxes.

AdaLPBoost is their Algorithm 2. Models are boosted with Hedge weights, which do not depend on alpha; the mixture then
solves the primal of alpha-LPBoost, least CVaR, on held-out samples. Another alpha needs another mixture and no
training.

After T rounds at the step size of Theorem 5 even the plain average of the models has a training CVaR, at every alpha,
of at most ``g + sqrt(log(n) / (2 T))``, where g is the largest weighted loss of a model under its own weights; a
mixture that is chosen on the training samples is no worse, unless a budget of mean loss keeps it from that. Regularized
LPBoost (``LPBoostClassifier``) is close to it and needs training for each alpha.

LPBoost is their Algorithm 1 with the stopping rule of their slides; after Demiriz, Bennett, Shawe-Taylor 2002 and
Warmuth, Glocer, Vishwanathan 2008. Each round asks for the sample weights, at most 1/(alpha n) each, on which the best
mixture of the models so far is worst, and fits a model to them.

The value of that problem is the least CVaR of a mixture so far, so it decides when to stop. Plain LPBoost may need
1/alpha rounds; with regularization, ``32 log(1/alpha) / delta^2`` rounds come within delta of the learner's guarantee
(Theorem 4). ``AdaLPBoostClassifier`` does nearly as well with one set of models for all alphas.

With goals the dual has a multiplier for each of them as well, and rounds train what the goals still lack: ``inside``.
"""

import copy
import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from counterpoise._base.checks import check_choice, check_fraction, check_positive
from counterpoise._base.types import ArrayLike
from counterpoise.boosting.checkpoint import Checkpoint, Seeds
from counterpoise.boosting.fit_data import FitData, InputRows
from counterpoise.boosting.inputs import check_predict_input, is_word, set_learner_tags
from counterpoise.boosting.inside import RoundsProgram, places_in
from counterpoise.boosting.learner import base_learner, planned_rounds
from counterpoise.boosting.rounds import Callback
from counterpoise.boosting.row_store import minimizer_of
from counterpoise.boosting.rules import adaptive_hedge, dual_of, hedge, hedge_groups, regularized_dual
from counterpoise.boosting.run import BUDGET, BoostingRun, boost_rows, check_booster, more_rounds, state_to_store
from counterpoise.boosting.stopping import AUTO, Stopping
from counterpoise.classifiers.base import MixtureBase
from counterpoise.goals import InfeasibleGoals, Rate, Table
from counterpoise.goals.advice import advise
from counterpoise.goals.parsing import has_goals
from counterpoise.rules.choosing import ALPHA, WORST_GROUP, Problem, choose_nearest, select
from counterpoise.rules.families import Family, PooledModels, ThresholdRules
from counterpoise.rules.options import Proof
from counterpoise.rules.program import refuse_ratio
from counterpoise.theory.guarantees import hedge_eta, regularized_lpboost_beta, regularized_lpboost_delta
from counterpoise.theory.risks import CVaR, Mean, Risk

_REWEIGH = ("samples", "groups")


class AdaLPBoostClassifier(MixtureBase):
    """Randomized ensemble with a low expected loss on the worst-off fraction alpha of the samples.

    Algorithm 2 of Zhai et al. 2021. With ``**AdaLPBoostClassifier.as_printed`` it is what they print: step size 1, no
    budget, the mixture chosen on a held-out tenth of the samples, and a fresh draw for each decision.

    Losses are expectations over the draws. Once decisions are drawn each sample is right or wrong, and the tail of
    these realised losses is ``min(1, error / alpha)``: see ``counterpoise.metrics.realised_cvar``.

    Parameters
    ----------
    estimator : classifier, optional
        Base learner: any scikit-learn classifier or pipeline. One whose ``fit`` takes no sample weights is given
        samples drawn by weight instead. It may be strong itself, as gradient boosting is. Default: the first model is
        ``AdaBoostClassifier(n_estimators=300)``, plain strong training, and those after it are trees of depth 4 with
        leaves of at least 20 samples. The paper's kind of learner is one argument away: ``HistogramTree(6)``.
    n_estimators : int, optional
        Number of base models. Default: 100, and 10 of a given learner that is an ensemble itself.
    alpha : float in (0, 1], optional
        Tail fraction. ``rebalance(alpha=...)`` changes it later without training. Short for ``objective=CVaR(alpha)``,
        so pass one of them. Default: 0.1 where there is no objective.
    objective : risk or rate, or the text of one, optional
        What the mixture minimises, as for ``MixtureClassifier``.
    eta : float > 0, "theory" or "adaboost", default="theory"
        Step size of the reweighting; ``"theory"`` is sqrt(8 log(n) / n_estimators). The paper uses 1. ``"adaboost"`` is
        AdaBoost's own step, ``log((1 - error) / error)`` of each round, which the paper compares with.
    reweigh : {"samples", "groups"}, default="samples"
        ``"groups"`` reweighs the groups of ``sensitive_features`` instead of single samples, and chooses the
        mixture with the least loss on the worst group (Group DRO, its mixture by the linear program), in place of
        ``alpha`` and ``objective``.
    mixture : {"optimal", "average", "first"}, default="optimal"
        ``"average"`` is the paper's AdaBoost + Average and ``"first"`` plain training (ERM), for comparison.
    stopping : Stopping, optional
        When to stop, and on which samples rounds are judged and the mixture is chosen: held-out ones
        (``validation_fraction``), by folds (``n_folds``) or those of training; see ``Stopping``. Default:
        ``Stopping()``, which runs all rounds, and judges a strong learner by five folds.
    outlier_fraction : float in [0, 1), default=0
        Part of the samples, those with the highest losses, that is ignored when weights and mixture are chosen.
    goals : goals or their texts, default=()
        Goals that the mixture must meet on the rows where it is chosen, the dataset ``train``, and on other datasets:
        see ``counterpoise.goals``. The rounds ignore them, so that the same models serve any goals;
        ``LPBoostClassifier`` trains for them.
    budget : float in [0, 1] or None, default=0.03
        The most that the mean loss may be above the least that is possible under the goals, so that a better
        tail does not cost more than you accept. None is the papers' problem, without a limit: at alpha 0.1 the average
        error may then rise from 13 to 24 % (``docs/results/tails.md``), with a warning where the mixture errs on 10 %
        of the samples more than its first model. Only ``mixture="optimal"`` is chosen: for the others the
        default has no effect, and another budget is refused.
    confidence : float in (0, 1), Proof or None, default=None
        The probability with which all goals hold together on new rows, as for ``MixtureClassifier``. It needs rows that
        no round has seen: ``Stopping(validation_fraction=0.3)``, or ``X_val`` and ``y_val``.
    pos_label : label, optional
        The class that goals without ``of`` call positive; by default the second of two.
    decision : {"sticky", "sample", "vote"} or Draws, default="sticky"
        How ``predict`` decides: by a draw that is fixed for each row or id (``Draws(key)`` has
        a secret key of your own), by a fresh draw, or by weighted vote. The
        vote is deterministic, hence no better in the tail than its error allows (Proposition 1).
    random_state : int or RandomState, optional
        Fixes the models' seeds, the split and, where none is given, the key of the sticky draws.
    n_jobs : int, optional
        Threads in which models are evaluated.
    callbacks : sequence of callables, default=()
        Each is called with a ``Round`` after it; a true result stops the boosting. See ``boosting.callbacks``.
    checkpoint : Checkpoint, optional
        Save every round in its folder, and continue after the last one saved: see ``Checkpoint``. The path of the
        folder is short for it.

    Attributes
    ----------
    classes_ : array
        Class labels.
    estimators_ : list
        Base models; each predicts the original labels.
    mixture_ : array of shape (n_models,)
        Probability with which each model decides.
    n_models_ : int
        How many of them carry weight.
    value_, gap_ : float
        Risk of the mixture on the samples where it was chosen, by models that did not see them where there are folds,
        and how far above the optimum it is at most.
    goals_, multipliers_ : tuple of Goal and array of shape (n_goals,)
        The goals, and the price of each: how fast the risk would fall if its linear form were relaxed.
    confidence_, margins_, proof_
        Of ``confidence``: as for ``GoalClassifier``.
    weighted_losses_ : array of shape (n_models,)
        Loss of each model under the weights it was fitted to; the largest is the learner's guarantee g.
    eta_ : float or None
        The step size used; None where each round has its own.
    alpha_, objective_ : float or None, and a Risk or a Rate
        The tail fraction where the risk is a CVaR, and what was minimized: others after ``rebalance``.
    selection_ : Selection
        The rows on which the mixture was chosen: ``losses`` of shape (n_samples, n_models), zero-one, and
        ``sample_weight``.
    n_features_in_, feature_names_in_ : int and array
        Number of features, and their names where ``X`` had them.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from counterpoise import AdaLPBoostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = AdaLPBoostClassifier(n_estimators=6, alpha=0.05, random_state=0).fit(X, y)
    >>> plain = AdaLPBoostClassifier(n_estimators=1, alpha=0.05, random_state=0).fit(X, y)
    >>> model.value_ < plain.value_
    True
    >>> gentler = model.rebalance(alpha=0.5)
    >>> gentler.estimators_ is model.estimators_
    True
    """

    default_stopping: ClassVar[Stopping] = Stopping()  # of stopping=None
    #: Settings of Algorithm 2 as it is printed, with the paper's step size and held-out part.
    as_printed: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {
            "eta": 1.0,
            "budget": None,
            "decision": "sample",
            "stopping": Stopping(validation_fraction=0.1, n_folds=None),
        }
    )
    scores, by = False, ()  # models are mixed by their answers, and no rule uses groups
    trains_inside = False  # rounds ignore goals

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_estimators: int | None = None,
        alpha: float | None = None,
        objective: Any = None,
        eta: float | str = "theory",
        reweigh: str = "samples",
        mixture: str = "optimal",
        stopping: Stopping | None = None,
        outlier_fraction: float = 0.0,
        goals: Any = (),
        budget: float | None = BUDGET,
        confidence: float | Proof | None = None,
        decision: Any = "sticky",
        pos_label: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        callbacks: Sequence[Callback] = (),
        checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.alpha = alpha
        self.objective = objective
        self.eta = eta
        self.reweigh = reweigh
        self.mixture = mixture
        self.stopping = stopping
        self.outlier_fraction = outlier_fraction
        self.goals = goals
        self.budget = budget
        self.confidence = confidence
        self.decision = decision
        self.pos_label = pos_label
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.callbacks = callbacks
        self.checkpoint = checkpoint

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        sensitive_features: Any = None,
        baseline: ArrayLike | None = None,
        datasets: Mapping[str, Table] | None = None,
        X_val: Any = None,
        y_val: Any = None,
        sensitive_features_val: Any = None,
        baseline_val: ArrayLike | None = None,
        largest_weight: float | None = None,
        table: Table | None = None,
        table_val: Table | None = None,
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
            The groups for ``reweigh="groups"``, and the columns that goals use.
        baseline : array of shape (n_samples,), optional
            Predictions of the deployed model, for goals on churn, wins and losses.
        datasets : dict from names to Table, optional
            Other datasets that goals use.
        X_val, y_val : optional
            Labelled samples on which the mixture is chosen. Default: those that the ``validation_fraction`` of
            ``stopping`` sets aside, or the training samples. Goals call them ``train``: they are met where the mixture
            is chosen.
        sensitive_features_val, baseline_val : optional
            The groups of ``X_val`` and the columns that goals use there, and the deployed model's predictions.
        largest_weight : float, optional
            The largest weight that a row of the population can have, for goals that carry a confidence: as for
            ``Table``.
        table, table_val : Table, optional
            What goals may use of the rows of ``X`` and of ``X_val`` beside ``sensitive_features`` and ``baseline``:
            all columns of a data frame of which the models take a part. Labels and weights are those of ``fit``.

        Returns
        -------
        self

        Raises
        ------
        InfeasibleGoals
            If no mixture of the models meets the goals.
        """
        rows = InputRows(X, y, sample_weight, sensitive_features, baseline, largest_weight, table)
        validation = InputRows(X_val, y_val, None, sensitive_features_val, baseline_val, None, table_val)
        self._run = boost_rows(self, rows, validation, datasets)
        self.mix(self._run)
        self._run.warn_of_no_errors()
        return self

    def fit_more(self, n_estimators: int) -> Self:
        """Fit further base models to the same samples, and choose the mixture again.

        Only in the process that fitted the classifier: the samples are referred to, not stored with a saved model.
        With ``eta="theory"`` or ``beta="theory"`` the value of the first fit is kept. With ``checkpoint`` these rounds
        too are saved, or restored where they were saved before.

        Parameters
        ----------
        n_estimators : int
            How many more.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self.mix(more_rounds(vars(self).get("_run"), n_estimators, self.checkpoint, self.callbacks))
        return self

    def check_parameters(self) -> None:
        """Refuse parameters that are out of range, or contradict each other."""
        self.problem_of_fit()
        check_booster(self)
        check_choice(self.reweigh, "reweigh", _REWEIGH)
        if self.reweigh == "groups" and not (self.alpha is None and self.objective is None):
            raise ValueError(
                "reweigh='groups' minimises the loss of the worst group: leave alpha and objective at None, or set "
                f"reweigh='samples'; got alpha={self.alpha!r} and objective={self.objective!r}."
            )
        if not is_word(self.eta, "eta", ("theory", "adaboost")):
            check_positive(self.eta, "eta")
        elif self.eta == "adaboost" and self.reweigh == "groups":
            raise ValueError("eta='adaboost' is for samples: with reweigh='groups' use a number or 'theory'.")

    def problem_of_fit(self) -> Problem:
        """Return the problem that the mixture solves."""
        return (
            self.build_problem(None, WORST_GROUP, self.goals) if self.reweigh == "groups" else super().problem_of_fit()
        )

    def check_data(self, data: FitData, problem: Problem) -> None:
        """Refuse rows without groups where those are reweighed, and goals that do not fit the rows."""
        if self.reweigh == "groups" and data.groups is None:
            raise ValueError("reweigh='groups' needs sensitive_features at fit: the groups to reweigh.")
        if self.reweigh == "groups" and data.held_out is not None and data.held_out.groups is None:
            raise ValueError("X_val needs sensitive_features_val: the mixture is chosen for the worst of its groups.")
        data.check_problem(problem)

    def new_run(self, data: FitData, problem: Problem, seeds: Seeds) -> BoostingRun:
        """Return the run whose rounds reweigh samples, or groups, by their losses so far."""
        groups = data.groups if self.reweigh == "groups" else None
        # Repeating a sample and doubling its weight are the same; the theorem counts samples of least weight.
        n_weighed = data.n_lightest if groups is None else float(groups.max() + 1)
        if self.eta == "adaboost":
            self.eta_ = None
            return BoostingRun(self, data, problem, adaptive_hedge(), seeds, {"eta": self.eta})
        is_theory = isinstance(self.eta, str)
        eta = self.eta_ = hedge_eta(max(n_weighed, 2.0), planned_rounds(self)) if is_theory else float(self.eta)
        rule = hedge(eta) if groups is None else hedge_groups(eta, groups)
        return BoostingRun(self, data, problem, rule, seeds, {"eta": eta})

    def mix(self, run: BoostingRun) -> None:
        """Choose the mixture of the rounds."""
        self.forget_choice()
        history, problem = run.history, self.problem_of_fit()
        self.estimators_, self.weighted_losses_ = list(history.models), np.array(history.weighted_losses)
        self.chosen_on_trained_ = run.data.held_out is None
        run.data.solve_and_store(self, run.data.family(history, problem), problem)

    def __getstate__(self) -> dict[str, Any]:
        return state_to_store(super().__getstate__())

    def stored_state(self) -> dict[str, Any]:
        """Return the state that ``save`` stores, without callbacks, which belong to one fit."""
        return {**self.__getstate__(), "callbacks": ()}

    def __sklearn_tags__(self) -> Any:
        return set_learner_tags(super().__sklearn_tags__(), base_learner(self.estimator))

    def check_predict_input(self, X: Any) -> Any:
        """Return rows as the learner takes them."""
        return check_predict_input(self, base_learner(self.estimator), X)


class LPBoostClassifier(MixtureBase):
    """Randomized ensemble boosted with the dual weights of the mixture problem, its goals included.

    Algorithm 1 of Zhai et al. 2021, and with ``beta`` its regularized form. With ``**LPBoostClassifier.as_printed`` it
    is what they print: no budget, the mixture of the models' predictions chosen on a held-out tenth of the samples, and
    a fresh draw for each decision.

    Parameters
    ----------
    estimator : classifier, optional
        Base learner, as for ``AdaLPBoostClassifier``.
    n_estimators : int, optional
        Largest number of base models. Default: 100, and 10 of a given learner that is an ensemble itself.
    alpha : float in (0, 1], optional
        Tail fraction, for the weights and for the mixture. Short for ``objective=CVaR(alpha)``, so pass one of them.
        Default: 0.1 where there is no objective.
    objective : risk or rate, or the text of one, optional
        What the mixture minimises, as for ``MixtureClassifier``. The weights of the rounds are the
        dual of a risk. A rate is trained for inside goals; without goals it is for the mixture alone, and the rounds
        then follow ``CVaR(0.1)``.
    beta : float > 0, "theory" or None, default=None
        Regularization of the weights by their entropy: the larger the weaker. ``"theory"`` is the value of Theorem 4
        for ``n_estimators`` rounds. None is plain LPBoost. It is for a CVaR, and rounds with it ignore goals,
        which then choose the mixture only.
    target : float in [0, 1), optional
        Stop as soon as the accuracy on the worst-off fraction alpha of the training samples, 1 minus the least risk,
        exceeds this, with goals inside of them. Default: run all rounds.
    goals : goals or their texts, default=()
        Goals that must hold on the rows of ``fit``, the dataset ``train``, and on other datasets, labelled or not: see
        ``counterpoise.goals``. Rounds train for them: each fits a model to the weights that the program of the mixture
        has for every answer about every row, those of other datasets included. They end where no model helps. The
        mixture then meets the goals where it is chosen: on rows that were set aside (of other datasets
        as large a part is set aside), by models of other folds, or on the training rows.
    stopping : Stopping, optional
        As for ``AdaLPBoostClassifier``; with goals, patience counts from the first round whose mixtures can meet them.
    scores : bool or "auto", default="auto"
        Mix rules of the models' scores, every threshold of every model, instead of their predictions, as
        ``GoalClassifier(decision="sticky")`` does. For two classes, models with ``predict_proba`` or
        ``decision_function``, and selection rows that no model was trained on. ``"auto"``: inside goals, on held-out
        rows, and from 20,000 rows on by folds, whose models then score nearly as those trained on all rows.
    mixture, outlier_fraction, budget, confidence, decision, pos_label
        As for ``AdaLPBoostClassifier``.
    random_state, n_jobs, callbacks, checkpoint
        As for ``AdaLPBoostClassifier``.

    Attributes
    ----------
    classes_, estimators_, mixture_, n_models_, value_, gap_, goals_, multipliers_, confidence_, margins_, proof_
        As for ``AdaLPBoostClassifier``.
    weighted_losses_, alpha_, objective_, selection_, n_features_in_, feature_names_in_
        As for ``AdaLPBoostClassifier``.
    beta_ : float or None
        The regularization used.
    rules_, groups_ : list of Rule, and RuleGroups
        Where rules are mixed: as for ``GoalClassifier``, and ``mixture_`` is over ``rules_``.
    bound_if_learner_exact_ : float
        No mixture of any models that the learner can fit has less risk on the training samples, *if* the learner finds
        the best of them in every round: learners that search greedily, as trees and gradient boosting do, may be able
        to do better. Minus infinity where nothing is known, as after ``rebalance``.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer, load_digits
    >>> from counterpoise import LPBoostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LPBoostClassifier(n_estimators=6, alpha=0.2, beta=100, random_state=0).fit(X[:500], y[:500])
    >>> model.predict_proba(X[500:503]).shape
    (3, 2)

    Inside a goal, with rounds that train for it:

    >>> from counterpoise.learners import HistogramTree
    >>> X, y = load_digits(return_X_y=True)
    >>> goals = ["recall(of=8) >= 0.95", "recall(of=9) >= 0.95"]
    >>> model = LPBoostClassifier(HistogramTree(4), n_estimators=20, alpha=1.0, goals=goals, random_state=0)
    >>> all(check.holds for check in model.fit(X, y).check_goals())
    True
    """

    default_stopping: ClassVar[Stopping] = Stopping()  # of stopping=None
    #: Settings of Algorithm 1 as it is printed, with the paper's held-out part; ``beta`` is an input of it.
    as_printed: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {
            "budget": None,
            "scores": False,
            "decision": "sample",
            "stopping": Stopping(validation_fraction=0.1, n_folds=None),
        }
    )
    by = ()  # one threshold for all

    @property
    def trains_inside(self) -> bool:
        """Return whether rounds use the goals."""
        return self.beta is None and has_goals(self.goals)

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_estimators: int | None = None,
        alpha: float | None = None,
        objective: Any = None,
        beta: float | str | None = None,
        target: float | None = None,
        mixture: str = "optimal",
        stopping: Stopping | None = None,
        outlier_fraction: float = 0.0,
        goals: Any = (),
        budget: float | None = BUDGET,
        confidence: float | Proof | None = None,
        scores: bool | str = "auto",
        decision: Any = "sticky",
        pos_label: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        callbacks: Sequence[Callback] = (),
        checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.alpha = alpha
        self.objective = objective
        self.beta = beta
        self.target = target
        self.mixture = mixture
        self.stopping = stopping
        self.outlier_fraction = outlier_fraction
        self.goals = goals
        self.budget = budget
        self.confidence = confidence
        self.scores = scores
        self.decision = decision
        self.pos_label = pos_label
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.callbacks = callbacks
        self.checkpoint = checkpoint

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        sensitive_features: Any = None,
        baseline: ArrayLike | None = None,
        datasets: Mapping[str, Table] | None = None,
        X_val: Any = None,
        y_val: Any = None,
        sensitive_features_val: Any = None,
        baseline_val: ArrayLike | None = None,
        largest_weight: float | None = None,
        table: Table | None = None,
        table_val: Table | None = None,
    ) -> Self:
        """Fit the base models and choose their mixture.

        Parameters
        ----------
        X, y, sample_weight, sensitive_features, baseline, datasets
            As for ``AdaLPBoostClassifier``. With goals, models are trained on the rows of other datasets too.
        X_val, y_val, sensitive_features_val, baseline_val, largest_weight, table, table_val
            As for ``AdaLPBoostClassifier``.

        Returns
        -------
        self

        Raises
        ------
        InfeasibleGoals
            If no mixture of the models meets the goals.
        """
        rows = InputRows(X, y, sample_weight, sensitive_features, baseline, largest_weight, table)
        validation = InputRows(X_val, y_val, None, sensitive_features_val, baseline_val, None, table_val)
        self._run = boost_rows(self, rows, validation, datasets)
        self.mix(self._run)
        self._run.warn_of_no_errors()
        return self

    def fit_more(self, n_estimators: int) -> Self:
        """Fit further base models to the same samples, and choose the mixture again: see ``AdaLPBoostClassifier``.

        Parameters
        ----------
        n_estimators : int
            How many more.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self.mix(more_rounds(vars(self).get("_run"), n_estimators, self.checkpoint, self.callbacks))
        return self

    def check_parameters(self) -> None:
        """Refuse parameters that are out of range, or contradict each other."""
        problem = self.problem_of_fit()
        check_booster(self)
        if not is_word(self.scores, "scores", (AUTO,)) and not isinstance(self.scores, (bool, np.bool_)):
            raise TypeError(f"scores must be True, False or {AUTO!r}; got {self.scores!r}.")
        if self.target is not None:
            check_fraction(self.target, "target")
        if not is_word(self.beta, "beta", ("theory",)) and self.beta is not None:
            check_positive(self.beta, "beta")
        if self.beta is not None and isinstance(problem.objective, Risk) and problem.alpha is None:
            raise ValueError(
                f"beta is for a CVaR; with objective={self.objective!r} it must be None, got {self.beta!r}."
            )

    def check_data(self, data: FitData, problem: Problem) -> None:
        """Refuse goals that do not fit the rows."""
        data.check_problem(problem)

    def new_run(self, data: FitData, problem: Problem, seeds: Seeds) -> BoostingRun:
        """Return the run whose rounds take the dual weights: of the program with goals, regularized, or plain."""
        n_rounds, objective, alpha = planned_rounds(self), refuse_ratio(problem.objective), problem.alpha or ALPHA
        self.beta_ = None if self.beta is None or isinstance(self.beta, str) else float(self.beta)
        if self.beta == "theory":
            self.beta_ = regularized_lpboost_beta(alpha, regularized_lpboost_delta(alpha, n_rounds))
        risk = CVaR(ALPHA) if isinstance(objective, Rate) else objective.bind(data.risk_rows(n_rounds))
        stopping: dict[str, Any] = {"risk": risk, "target": self.target}
        if self.trains_inside:
            costs = data.price_answers(problem, seeds.entropy)
            size = objective.size if isinstance(objective, Rate) else risk.size
            program = RoundsProgram(costs, minimizer_of(risk, data.store.start.size), size)
            settings = {"beta": None, "goals": [str(goal) for goal in problem.goals], "pos_label": self.pos_label}
            return BoostingRun(self, data, problem, program.price, seeds, settings, program=program, **stopping)
        rule = dual_of(risk) if self.beta_ is None else regularized_dual(alpha, self.beta_)
        return BoostingRun(self, data, problem, rule, seeds, {"beta": self.beta_}, **stopping)

    def mix(self, run: BoostingRun) -> None:
        """Choose the mixture of the rounds, or of rules of their scores, and store the bound that is proven for it."""
        self.forget_choice()
        history, problem, program = run.history, self.problem_of_fit(), run.program
        self.estimators_, self.weighted_losses_ = list(history.models), np.array(history.weighted_losses)
        self.chosen_on_trained_ = run.data.held_out is None
        self.bound_if_learner_exact_ = -np.inf
        family = run.data.family(history, problem)
        try:
            run.data.solve_and_store(self, family, problem)
        except InfeasibleGoals as error:
            if program is None:
                raise
            raise self._infeasible_for_trained_models(error, run, family, problem) from None
        if program is not None:
            self.bound_if_learner_exact_ = program.standing.bound
        elif isinstance(problem.objective, Risk) and not problem.outlier_fraction and run.risk.is_worst_case:
            # Otherwise the weights of the rounds are those of another problem, and nothing is known.
            proven = float(max(history.weighted_losses))
            self.bound_if_learner_exact_ = proven if run.data.held_out is not None else min(proven, self.value_)

    @property
    def decides_by_scores(self) -> bool:
        """Return whether rules of scores decide, or will."""
        return self.scores is True or super().decides_by_scores

    def solve_and_store(self, family: Family, problem: Problem, choice: Any = None) -> None:
        """Choose the best mixture of a family's rules: the rounds have proven nothing about another problem."""
        self.bound_if_learner_exact_ = -np.inf
        super().solve_and_store(family, problem, choice)

    def _infeasible_for_trained_models(
        self, error: InfeasibleGoals, run: BoostingRun, family: PooledModels | ThresholdRules, problem: Problem
    ) -> InfeasibleGoals:
        """Return the error restated for the models that were trained: others of their kind may still meet the goals.

        All goals that take part are named, as a goal that none of these models meets may be met by others alone.
        """
        problem, places = problem._replace(budget=None), places_in(error, problem)
        if isinstance(family, ThresholdRules):
            conflict = [problem.goals[place] for place in places]
            new_error = InfeasibleGoals(
                conflict,
                error.least_violation,
                error.nearest_bounds,
                joint_bounds=error.joint_bounds,
                held_by=error.held_by,
                proven=False,
            )
        else:
            goals = select(family.selection_data, problem._replace(objective=Mean())).goals
            assert goals is not None  # noqa: S101 - they were missed
            new_error = advise(goals, places, error.least_violation, proven=False)
        models = family if isinstance(family, PooledModels) else run.data.pooled_models(run.history, problem)
        self._add_closest(new_error, models, family, problem)
        if run.program is not None and not run.program.is_over(is_random=run.fit.is_random):
            new_error.add_note(
                f"All {run.history.n_rounds} rounds were used, and models still helped: raise n_estimators."
            )
        return new_error

    def _add_closest(
        self, new_error: InfeasibleGoals, models: PooledModels, family: PooledModels | ThresholdRules, problem: Problem
    ) -> None:
        """Add to an error the classifier that is nearest to its goals."""
        self.forget_choice()  # that failed
        new_error.closest = closest = copy.copy(self)
        if new_error.ways_out:  # the nearest of the bounds that are offered
            way = min(new_error.ways_out, key=lambda one: sum(abs(old.bound - new.bound) for old, new in one.items()))
            closest.solve_and_store(
                family, problem._replace(goals=tuple(way.get(goal, goal) for goal in problem.goals))
            )
            closest.goals_ = problem.goals
        else:
            selection = select(models.selection_data, problem)
            closest.store_family(models, problem)
            closest.store_solution(problem, models.solution(choose_nearest(selection, problem), selection))
        checks = closest.check_goals()
        new_error.least_violation = sum(check.violation for check in checks)
        failures = "; ".join(str(check) for check in checks if not check.holds)
        new_error.add_note(f"The nearest mixture of the {len(self.estimators_)} models that were trained: {failures}.")

    def __getstate__(self) -> dict[str, Any]:
        return state_to_store(super().__getstate__())

    def stored_state(self) -> dict[str, Any]:
        """Return the state that ``save`` stores, without callbacks, which belong to one fit."""
        return {**self.__getstate__(), "callbacks": ()}

    def __sklearn_tags__(self) -> Any:
        return set_learner_tags(super().__sklearn_tags__(), base_learner(self.estimator))

    def check_predict_input(self, X: Any) -> Any:
        """Return rows as the learner takes them."""
        return check_predict_input(self, base_learner(self.estimator), X)
