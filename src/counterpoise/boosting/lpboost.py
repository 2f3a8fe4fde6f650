"""alpha-LPBoost, plain and entropy-regularized.

Zhai, Dan, Suggala, Kolter, Ravikumar: Boosted CVaR Classification, NeurIPS 2021, Algorithm 1 with the stopping rule of
their slides; after Demiriz, Bennett, Shawe-Taylor 2002 and Warmuth, Glocer, Vishwanathan 2008. Each round asks for the
sample weights, at most 1/(alpha n) each, on which the best mixture of the models so far is worst, and fits a model to
them.

The value of that problem is the least CVaR of a mixture so far, so it tells when to stop. Plain LPBoost may need
1/alpha rounds; with regularization, ``32 log(1/alpha) / delta^2`` rounds come within delta of the learner's guarantee
(Theorem 4). ``AdaLPBoostClassifier`` does nearly as well with one set of models for all alphas.

With goals the dual has a multiplier for each of them as well, and rounds train what the goals still lack: ``inside``.
"""

import copy
import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from counterpoise._base.checks import check_fraction, check_positive
from counterpoise._base.types import ArrayLike, IntArray
from counterpoise.boosting.checkpoint import Checkpoint, opened
from counterpoise.boosting.inputs import check_predict_input, is_word, set_learner_tags, training_rows, unequal
from counterpoise.boosting.inside import Program, Stage, objective_of, places_in
from counterpoise.boosting.learner import base_learner, planned_rounds
from counterpoise.boosting.rounds import Callback
from counterpoise.boosting.rules import dual_of, regularized_dual
from counterpoise.boosting.run import (
    BUDGET,
    BoostingRun,
    GivenRows,
    RunRows,
    RunSeeds,
    check_booster,
    draw_seeds,
    more_rounds,
    rows_of_run,
    state_to_store,
    warn_of_mixing,
)
from counterpoise.boosting.stopping import AUTO, Stopping
from counterpoise.goals import InfeasibleGoals, Rate, Table
from counterpoise.goals.advice import advised
from counterpoise.goals.text import are_asked
from counterpoise.mixtures.answers import TRAIN
from counterpoise.mixtures.base import MixtureBase
from counterpoise.mixtures.choosing import ALPHA, Aim, choose_nearest, groups_by, select
from counterpoise.mixtures.families import Family, PooledModels, Thresholds
from counterpoise.theory.guarantees import regularized_lpboost_beta, regularized_lpboost_delta
from counterpoise.theory.risks import CVaR, Risk, RiskRows


class LPBoostClassifier(MixtureBase):
    """Randomized ensemble boosted with the dual weights of the mixture problem, its goals included.

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
        What the mixture makes as small as possible, as for ``MixtureClassifier``. The weights of the rounds are the
        dual of a risk. A rate is trained for inside goals; without goals it is for the mixture alone, and the rounds
        then follow ``CVaR(0.1)``.
    beta : float > 0, "theory" or None, default=None
        Regularization of the weights by their entropy: the larger the weaker. ``"theory"`` is the value of Theorem 4
        for ``n_estimators`` rounds. None is plain LPBoost. It is for a CVaR, and rounds with it do not look at goals,
        which then choose the mixture only.
    target : float in [0, 1), optional
        Stop as soon as the accuracy on the worst-off fraction alpha of the training samples, 1 minus the least risk,
        exceeds this, with goals inside of them. Default: run all rounds.
    goals : goals or their texts, default=()
        What must hold, on the rows of ``fit``, the dataset ``train``, and on other datasets, labelled or not: see
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
        rows, and from 20,000 rows on by folds, whose models then score hardly otherwise than those trained on all rows.
    mixture, outlier_fraction, budget, decision, pos_label
        As for ``AdaLPBoostClassifier``.
    random_state, n_jobs, callbacks, checkpoint
        As for ``AdaLPBoostClassifier``.

    Attributes
    ----------
    classes_, estimators_, mixture_, n_models_, value_, gap_, goals_, multipliers_, weighted_losses_
        As for ``AdaLPBoostClassifier``.
    alpha_, objective_, selection_, n_features_in_, feature_names_in_
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
    >>> model = LPBoostClassifier(n_estimators=20, alpha=0.2, beta=100, random_state=0).fit(X[:500], y[:500])
    >>> model.predict_proba(X[500:503]).shape
    (3, 2)

    Inside a goal, with rounds that train for it:

    >>> from counterpoise.learners import HistogramTree
    >>> X, y = load_digits(return_X_y=True)
    >>> goals = ["recall(train, of=8) >= 0.95", "recall(train, of=9) >= 0.95"]
    >>> model = LPBoostClassifier(HistogramTree(4), n_estimators=20, alpha=1.0, goals=goals, random_state=0)
    >>> all(check.holds for check in model.fit(X, y).check_goals())
    True
    """

    default_stopping: ClassVar[Stopping] = Stopping()  # that stopping=None asks for
    by = ()  # one threshold for all

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
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Training samples. A data frame reaches the base learner as it is.
        y : array of shape (n_samples,)
            Labels of two or more classes, of any type.
        sample_weight : array of shape (n_samples,), optional
            Non-negative; only their ratios matter.
        sensitive_features : array or data frame with a row for each sample, optional
            The groups for ``reweigh="groups"``, and the columns that goals speak of.
        baseline : array of shape (n_samples,), optional
            What the deployed model says, for goals on churn, wins and losses.
        datasets : dict from names to Table, optional
            Other datasets that goals speak of.
        X_val, y_val : optional
            Labelled samples on which the mixture is chosen. Default: those that the ``validation_fraction`` of
            ``stopping`` sets aside, or the training samples. Goals call them ``train``: they are met where the mixture
            is chosen.
        sensitive_features_val, baseline_val : optional
            The groups of ``X_val`` and the columns that goals speak of there, and what the deployed model says of them.
        largest_weight : float, optional
            The most that a row of the population can weigh, for goals that carry a confidence: as for ``Table``.
        table, table_val : Table, optional
            What goals may ask about the rows of ``X`` and of ``X_val`` beside ``sensitive_features`` and ``baseline``:
            all columns of a data frame of which the models take a part. Labels and weights are those of ``fit``.

        Returns
        -------
        self

        Raises
        ------
        InfeasibleGoals
            Where no mixture of the models meets the goals.
        """
        self.check_parameters()
        aim, learner = self.problem_of_fit(), base_learner(self.estimator)
        self.classes_, every = training_rows(self, learner, X, y, sample_weight, sensitive_features)
        given = GivenRows(X, y, sample_weight, sensitive_features, baseline, largest_weight, table)
        validation = GivenRows(X_val, y_val, None, sensitive_features_val, baseline_val, None, table_val)
        with opened(self.checkpoint) as saved:
            seeds = draw_seeds(self.random_state, saved)
            self.start_draws(seeds.sequence)
            rows = rows_of_run(
                self, every, given, validation, datasets, seeds.sequence, trains_inside=trains_inside(self)
            )
            rows.check_aim(aim)
            self.forget_choice()
            self.estimators_: list[Any] = []
            self._run = self._new_run(rows, aim, seeds)
            self._run.start(planned_rounds(self), saved, self.callbacks)
        self.estimators_ = list(self._run.history.models)
        self.learn_draws(seeds.key, every.X, every.weights)
        self._mix()
        self._run.warn_of_no_errors()
        return self

    def fit_more(self, n_estimators: int) -> Self:
        """Fit further base models to the same samples, and choose the mixture anew.

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
        more_rounds(vars(self).get("_run"), n_estimators, self.checkpoint, self.callbacks)
        self._mix()
        return self

    def check_parameters(self) -> None:
        """Refuse parameters that are out of range, or contradict each other."""
        aim = self.problem_of_fit()
        check_booster(self)
        if not is_word(self.scores, "scores", (AUTO,)) and not isinstance(self.scores, (bool, np.bool_)):
            raise TypeError(f"scores must be True, False or {AUTO!r}; got {self.scores!r}.")
        if self.target is not None:
            check_fraction(self.target, "target")
        if not is_word(self.beta, "beta", ("theory",)) and self.beta is not None:
            check_positive(self.beta, "beta")
        if self.beta is not None and isinstance(aim.objective, Risk) and aim.alpha is None:
            raise ValueError(
                f"beta is for a CVaR; with objective={self.objective!r} it must be None, got {self.beta!r}."
            )

    def _new_run(self, rows: RunRows, aim: Aim, seeds: RunSeeds) -> BoostingRun:
        """Return the run whose rounds take the dual weights: of the program with goals, regularized, or plain."""
        train, n_rounds, asked = rows.train, planned_rounds(self), aim.objective
        alpha = aim.alpha or ALPHA
        self.beta_ = None if self.beta is None or isinstance(self.beta, str) else float(self.beta)
        if self.beta == "theory":
            self.beta_ = regularized_lpboost_beta(alpha, regularized_lpboost_delta(alpha, n_rounds))

        def codes(names: tuple[str, ...]) -> IntArray:
            return groups_by(names, rows.columns, train.groups)[... if not names else train.places]

        n_samples = 1.0 / float((train.weights**2).sum())  # as many of equal weight tell as much
        risk = CVaR(ALPHA) if isinstance(asked, Rate) else asked.bind(RiskRows(n_samples, n_rounds, codes))
        known: dict[str, Any] = {"risk": risk, "target": self.target}
        if trains_inside(self):
            rows, stage, trained = staged(rows, aim, seeds)
            program = Program(stage, objective_of(stage, asked, risk))
            found = {"beta": None, "goals": [str(goal) for goal in aim.goals], "pos_label": self.pos_label}
            return BoostingRun(self, rows, aim, program.price, seeds, found, program=program, trained=trained, **known)
        rule = dual_of(risk) if self.beta_ is None else regularized_dual(alpha, self.beta_)
        return BoostingRun(self, rows, aim, rule, seeds, {"beta": self.beta_}, **known)

    def _mix(self) -> None:
        """Choose the mixture of the rounds, or of rules of their scores."""
        self.forget_choice()
        run, aim = self._run, self.problem_of_fit()
        self.estimators_, self.weighted_losses_ = list(run.history.models), np.array(run.history.weighted_losses)
        try:
            self.choose(self._family(), aim)
        except InfeasibleGoals as error:
            if run.program is None:
                raise
            raise self._not_found(error, aim) from error
        self.bound_if_learner_exact_ = self._bound_of_rounds(aim)
        if isinstance(self.family_, PooledModels):  # of rules it was said
            warn_of_mixing(self.selection_, self.mixture_, aim)

    def _family(self) -> PooledModels | Thresholds:
        """Return what the mixture is chosen among: rules of scores where they can be mixed, else the models."""
        if not self._run.can_mix_rules:
            return PooledModels(self._run.pool(), self._run.predictions())
        pool = self._run.score_pool()
        return Thresholds(pool, self._run.score_table(pool))

    def decides_by_scores(self) -> bool:
        """Tell whether rules of scores decide, or will."""
        return self.scores is True or super().decides_by_scores()

    def choose(self, family: Family, problem: Aim, choice: Any = None) -> None:
        """Choose the best mixture of a family's rules: the rounds have proven nothing about another problem."""
        self.bound_if_learner_exact_ = -np.inf
        super().choose(family, problem, choice)

    def _bound_of_rounds(self, aim: Aim) -> float:
        """Return what no mixture of any models has less risk than, if the learner finds the best model there is."""
        run = self._run
        if run.program is not None:
            return run.program.bound
        if (
            isinstance(aim.objective, Rate)
            or run.risk is None
            or not run.risk.is_worst_case
            or aim.outlier_fraction > 0
        ):
            return -np.inf  # the weights of the rounds are those of another problem
        proven = float(max(run.history.weighted_losses))
        return proven if run.rows.held_out is not None else min(proven, self.value_)

    def _not_found(self, error: InfeasibleGoals, aim: Aim) -> InfeasibleGoals:
        """Return the same error as what it is, of the models that were trained: others of their kind are not ruled out.

        All goals that take part are named, as a goal that none of these models meets may be met by others alone.
        """
        aim = aim._replace(budget=None)
        places = places_in(error, aim)
        if self._run.can_mix_rules:
            named, offered = [aim.goals[place] for place in places], (error.joint_bounds, error.held_by)
            found = InfeasibleGoals(named, error.least_violation, error.nearest_bounds, False, *offered)
        else:
            goals = select(self._run.predictions(), aim).goals
            assert goals is not None  # noqa: S101 - they were missed
            found = advised(goals, places, error.least_violation, proven=False)
        found.closest = self._closest(found, aim)
        found.least_violation = sum(check.violation for check in found.closest.check_goals())
        missed = "; ".join(str(check) for check in found.closest.check_goals() if not check.holds)
        found.add_note(
            f"The nearest mixture of the {len(self._run.history.models)} models that were trained: {missed}."
        )
        if not self._run.is_over:
            n_rounds = self._run.history.n_rounds
            found.add_note(f"All {n_rounds} rounds were used, and models still helped: raise n_estimators.")
        return found

    def _closest(self, error: InfeasibleGoals, aim: Aim) -> Self:
        """Return the classifier that meets the nearest of the bounds that are offered, with the goals as they were."""
        self.forget_choice()  # that failed
        if not error.ways_out:
            models, other = PooledModels(self._run.pool(), self._run.predictions()), copy.copy(self)
            selection = select(models.kept, aim)
            other.keep(models, aim)
            other.store(aim, models.solution(choose_nearest(selection, aim), selection))
            return other
        way = min(error.ways_out, key=lambda one: sum(abs(old.bound - new.bound) for old, new in one.items()))
        family, other = self._family(), copy.copy(self)
        other.choose(family, aim._replace(goals=tuple(way.get(goal, goal) for goal in aim.goals)))
        other.goals_ = aim.goals
        return other

    def __getstate__(self) -> dict[str, Any]:
        return state_to_store(super().__getstate__())

    def stored_state(self) -> dict[str, Any]:
        """Return what ``save`` stores: no callbacks, which belong to one fit."""
        return {**self.__getstate__(), "callbacks": ()}

    def __sklearn_tags__(self) -> Any:
        return set_learner_tags(super().__sklearn_tags__(), base_learner(self.estimator))

    def check_predict_input(self, X: Any) -> Any:
        """Return rows as the learner takes them."""
        return check_predict_input(self, base_learner(self.estimator), X)


def trains_inside(booster: Any) -> bool:
    """Tell whether the rounds of a booster look at its goals."""
    return isinstance(booster, LPBoostClassifier) and booster.beta is None and are_asked(booster.goals)


def staged(rows: RunRows, aim: Aim, seeds: RunSeeds) -> tuple[RunRows, Stage, dict[str, Table]]:
    """Return the stage that rounds inside goals train on, and what of other datasets is for them.

    Where the mixture is chosen on other rows than those of training, as large a part of other datasets is for it.
    """
    train, objective = rows.train, aim.objective
    rate = objective if isinstance(objective, Rate) else None
    own = rows.columns.part(np.asarray(train.places), rows.classes[train.codes], unequal(train.weights))
    names = dict.fromkeys(name for asked in (*aim.goals, rate) if asked is not None for name in asked.datasets)
    trained = {name: rows.datasets[name] for name in names if name in rows.datasets}
    if rows.held_out is not None:
        n_held, generator = rows.held_out.codes.size, np.random.default_rng(seeds.round_seed(0))
        kept = dict(rows.datasets)
        for name, table in trained.items():
            chosen, others = _split(table, n_held / (n_held + train.codes.size), generator)
            trained[name], kept[name] = table.only(others), table.only(chosen)
        rows = rows._replace(datasets=kept)
    features = {name: rows.features(name, table) for name, table in trained.items()}
    return rows, Stage.of(train, features, {TRAIN: own, **trained}, rows.positive, aim.goals, rate), trained


def _split(table: Table, fraction: float, generator: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Return places of rows to choose on, a fraction of them, and of the others; one row alone serves both."""
    if table.n_samples == 1:
        return np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    order = generator.permutation(table.n_samples)
    n_aside = min(max(round(fraction * table.n_samples), 1), table.n_samples - 1)
    return np.sort(order[:n_aside]), np.sort(order[n_aside:])
