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
from collections.abc import Sequence
from typing import Any

from counterpoise._base.checks import check_choice, check_positive
from counterpoise._base.types import IntArray
from counterpoise.boosting.base import BUDGET, BoostedMixture
from counterpoise.boosting.checkpoint import Checkpoint
from counterpoise.boosting.inputs import Rows, is_word
from counterpoise.boosting.learner import planned_rounds
from counterpoise.boosting.rounds import Callback, History, Rule
from counterpoise.boosting.rules import hedge, hedge_groups
from counterpoise.boosting.stopping import Stopping
from counterpoise.theory.guarantees import hedge_eta

_REWEIGH = ("samples", "groups")


class AdaLPBoostClassifier(BoostedMixture):
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

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self.reweigh, "reweigh", _REWEIGH)
        if self._mixes_groups() and not (self.alpha is None and self.objective is None):
            raise ValueError(
                "reweigh='groups' minimises the loss of the worst group: leave alpha and objective at None, or set "
                f"reweigh='samples'; got alpha={self.alpha!r} and objective={self.objective!r}."
            )
        if not is_word(self.eta, "eta", ("theory",)):
            check_positive(self.eta, "eta")

    def _mixes_groups(self) -> bool:
        return self.reweigh == "groups"

    def _check_asked(self, rows: Rows) -> None:
        if self._mixes_groups() and rows.groups is None:
            raise ValueError("reweigh='groups' needs sensitive_features at fit: the groups to reweigh.")
        super()._check_asked(rows)

    def _rule(self, history: History, groups: IntArray | None) -> Rule:
        if self.reweigh == "samples":
            # Repeating a sample and doubling its weight are the same; the theorem counts samples of least weight.
            self.eta_ = self._step_size(1 / history.start.min())
            return hedge(self.eta_)
        assert groups is not None  # noqa: S101 - checked before
        self.eta_ = self._step_size(groups.max() + 1)
        return hedge_groups(self.eta_, groups)

    def _round_settings(self, learner: Any) -> dict[str, Any]:
        return {**super()._round_settings(learner), "eta": self.eta_}

    def _step_size(self, n_samples: float) -> float:
        if isinstance(self.eta, str):
            return hedge_eta(max(n_samples, 2.0), planned_rounds(self))
        return float(self.eta)
