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

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from counterpoise._base.checks import check_fraction, check_positive
from counterpoise._base.types import IntArray
from counterpoise.boosting.base import BUDGET
from counterpoise.boosting.checkpoint import Checkpoint
from counterpoise.boosting.inputs import is_word
from counterpoise.boosting.inside_goals import InsideGoals
from counterpoise.boosting.learner import planned_rounds
from counterpoise.boosting.rounds import Callback, History, Rule
from counterpoise.boosting.rules import dual_of, regularized_dual
from counterpoise.boosting.stopping import Stopping
from counterpoise.goals import Rate
from counterpoise.mixtures.choosing import ALPHA, Aim, groups_by
from counterpoise.solvers import minimize_risk
from counterpoise.theory.guarantees import regularized_lpboost_beta, regularized_lpboost_delta
from counterpoise.theory.risks import CVaR, Risk, RiskRows


class LPBoostClassifier(InsideGoals):
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

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.target is not None:
            check_fraction(self.target, "target")
        if not is_word(self.beta, "beta", ("theory",)) and self.beta is not None:
            check_positive(self.beta, "beta")
        asked = self._aim_of_fit()
        if self.beta is not None and isinstance(asked.objective, Risk) and asked.alpha is None:
            raise ValueError(
                f"beta is for a CVaR; with objective={self.objective!r} it must be None, got {self.beta!r}."
            )

    def _rule(self, history: History, groups: IntArray | None) -> Rule:
        self.beta_ = self._regularization()
        asked = self._aim_of_fit().objective
        self._risk = CVaR(ALPHA) if isinstance(asked, Rate) else asked.bind(self._rows_of_rounds(history, groups))
        if self._trains_inside:
            return self._rule_inside(self._risk)
        if self.beta_ is None:
            return dual_of(self._risk)
        return regularized_dual(self._aim_of_fit().alpha or ALPHA, self.beta_)

    @property
    def _trains_inside(self) -> bool:
        return super()._trains_inside and self.beta is None

    def _rows_of_rounds(self, history: History, groups: IntArray | None) -> RiskRows:
        def codes(names: tuple[str, ...]) -> IntArray:
            return groups_by(names, self._columns, groups)[... if not names else self._train.places]

        n_samples = 1.0 / float((history.start**2).sum())  # as many of equal weight tell as much
        return RiskRows(n_samples, planned_rounds(self), codes)

    def _round_settings(self, learner: Any) -> dict[str, Any]:
        return {**super()._round_settings(learner), "beta": self.beta_}

    def _choose(self, aim: Aim) -> None:
        super()._choose(aim)
        self.bound_if_learner_exact_ = self._bound_of_rounds()

    def _settle(self, evidence: Any, aim: Aim, chosen: Any = None) -> None:
        self.bound_if_learner_exact_ = -np.inf  # the rounds have proven nothing about another aim or other rows
        super()._settle(evidence, aim, chosen)

    def _bound_of_rounds(self) -> float:
        """Return what no mixture of any models has less risk than, if the learner finds the best model there is."""
        if self._trains_inside:
            return self._program.bound
        is_rate = isinstance(self._aim_of_fit().objective, Rate)
        if is_rate or not self._risk.is_worst_case or self.outlier_fraction > 0:
            return -np.inf  # the weights of the rounds are those of another problem
        proven = float(max(self._history.weighted_losses))
        return proven if self._held_out is not None else min(proven, self.value_)

    def _regularization(self) -> float | None:
        if self.beta == "theory":
            alpha = self._aim_of_fit().alpha or ALPHA
            return regularized_lpboost_beta(alpha, regularized_lpboost_delta(alpha, planned_rounds(self)))
        return None if self.beta is None else float(self.beta)

    def _should_stop(self, history: History) -> bool:
        if self._trains_inside:
            return self._is_over_inside(self.target)
        if self.target is None:
            return False
        least = minimize_risk(history.losses, self._risk, sample_weight=history.start).value
        return 1 - least > self.target
