"""alpha-AdaLPBoost.

Zhai, Dan, Suggala, Kolter, Ravikumar: Boosted CVaR Classification, NeurIPS 2021, Algorithm 2. Models are boosted with
Hedge weights, which do not depend on alpha; the mixture then solves the primal of alpha-LPBoost, least CVaR, on
held-out samples. Another alpha needs another mixture and no training.

After T rounds at the step size of Theorem 5 even the plain average of the models has a training CVaR, at every alpha,
of at most ``g + sqrt(log(n) / (2 T))``, where g is the largest weighted loss of a model under its own weights; a
mixture that is chosen on the training samples is no worse, unless a budget of mean loss keeps it from that. Regularized
LPBoost (``LPBoostClassifier``) is close to it and needs training for each alpha.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from counterpoise._base.checks import check_choice, check_positive
from counterpoise._base.types import ArrayLike
from counterpoise.boosting.checkpoint import Checkpoint, opened
from counterpoise.boosting.inputs import Rows, check_predict_input, is_word, set_learner_tags, training_rows
from counterpoise.boosting.learner import base_learner, planned_rounds
from counterpoise.boosting.rounds import Callback, Rule
from counterpoise.boosting.rules import hedge, hedge_groups
from counterpoise.boosting.run import (
    BUDGET,
    BoostingRun,
    GivenRows,
    RunRows,
    check_booster,
    draw_seeds,
    more_rounds,
    rows_of_run,
    state_to_store,
    warn_of_mixing,
)
from counterpoise.boosting.stopping import Stopping
from counterpoise.goals import Table
from counterpoise.mixtures.base import MixtureBase
from counterpoise.mixtures.choosing import WORST_GROUP, Aim
from counterpoise.mixtures.families import PooledModels
from counterpoise.theory.guarantees import hedge_eta

_REWEIGH = ("samples", "groups")


class AdaLPBoostClassifier(MixtureBase):
    """Randomized ensemble with a low expected loss on the worst-off fraction alpha of the samples.

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
        What the mixture makes as small as possible, as for ``MixtureClassifier``.
    eta : float > 0 or "theory", default="theory"
        Step size of the reweighting; ``"theory"`` is sqrt(8 log(n) / n_estimators). The paper uses 1.
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
        What the mixture must meet where it is chosen, the dataset ``train``, and on other datasets: see
        ``counterpoise.goals``. The rounds do not look at them, so that the same models serve any goals;
        ``LPBoostClassifier`` trains for them.
    budget : float in [0, 1] or None, default=0.03
        The most that the mean loss may be above the least that is possible under the goals, so that the tail is not
        bought at any price. None is the papers' problem, without a limit: at alpha 0.1 the average error may then rise
        from 13 to 24 % (``docs/results/defaults``), with a warning where the mixture errs on 10 % of the samples more
        than its first model. Only ``mixture="optimal"`` is chosen: for the others the default has no effect, and
        another budget is refused.
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
        Save every round in its folder, and go on after the last one saved: see ``Checkpoint``. The path of the folder
        is short for it.

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
    weighted_losses_ : array of shape (n_models,)
        Loss of each model under the weights it was fitted to; the largest is the learner's guarantee g.
    eta_ : float
        The step size used.
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
    >>> model = AdaLPBoostClassifier(n_estimators=20, alpha=0.05, random_state=0).fit(X, y)
    >>> plain = AdaLPBoostClassifier(n_estimators=1, alpha=0.05, random_state=0).fit(X, y)
    >>> model.value_ < plain.value_
    True
    >>> gentler = model.rebalance(alpha=0.5)
    >>> gentler.estimators_ is model.estimators_
    True
    """

    default_stopping: ClassVar[Stopping] = Stopping()  # that stopping=None asks for
    scores, by = False, ()  # what models say is mixed, and no group is looked at

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
            rows = rows_of_run(self, every, given, validation, datasets, seeds.sequence)
            self._check_groups(rows)
            rows.check_aim(aim)
            self.forget_choice()
            self.estimators_: list[Any] = []
            self.eta_, rule = self._rule(rows.train)
            self._run = BoostingRun(self, rows, aim, rule, seeds, {"eta": self.eta_})
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
        self.problem_of_fit()
        check_booster(self)
        check_choice(self.reweigh, "reweigh", _REWEIGH)
        if self.reweigh == "groups" and not (self.alpha is None and self.objective is None):
            raise ValueError(
                "reweigh='groups' minimises the loss of the worst group: leave alpha and objective at None, or set "
                f"reweigh='samples'; got alpha={self.alpha!r} and objective={self.objective!r}."
            )
        if not is_word(self.eta, "eta", ("theory",)):
            check_positive(self.eta, "eta")

    def problem_of_fit(self) -> Aim:
        """Return what the mixture is chosen for."""
        return self.posed(None, WORST_GROUP, self.goals) if self.reweigh == "groups" else super().problem_of_fit()

    def _check_groups(self, rows: RunRows) -> None:
        """Refuse rows without groups where those are reweighed."""
        if self.reweigh != "groups":
            return
        if rows.held_out is not None and rows.held_out.groups is None and rows.held_out.places is None:  # given
            raise ValueError("X_val needs sensitive_features_val: the mixture is chosen for the worst of its groups.")
        if rows.chosen.groups is None:
            raise ValueError("reweigh='groups' needs sensitive_features at fit: the groups to reweigh.")

    def _rule(self, train: Rows) -> tuple[float, Rule]:
        """Return the step size, and how rounds reweigh samples or groups."""
        n_rounds = planned_rounds(self)
        if self.reweigh == "samples":
            # Repeating a sample and doubling its weight are the same; the theorem counts samples of least weight.
            eta = hedge_step(self.eta, 1 / train.weights.min(), n_rounds)
            return eta, hedge(eta)
        assert train.groups is not None  # noqa: S101 - checked before
        eta = hedge_step(self.eta, train.groups.max() + 1, n_rounds)
        return eta, hedge_groups(eta, train.groups)

    def _mix(self) -> None:
        """Choose the mixture of the rounds."""
        self.forget_choice()
        history, aim = self._run.history, self.problem_of_fit()
        self.estimators_, self.weighted_losses_ = list(history.models), np.array(history.weighted_losses)
        self.choose(PooledModels(self._run.pool(), self._run.predictions()), aim)
        warn_of_mixing(self.selection_, self.mixture_, aim)

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


def hedge_step(eta: float | str, n_samples: float, n_rounds: int) -> float:
    """Return the step size of the reweighting: as it is given, or that of Theorem 5."""
    return hedge_eta(max(n_samples, 2.0), n_rounds) if isinstance(eta, str) else float(eta)
