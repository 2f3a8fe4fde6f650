"""MixtureClassifier: the best mixture of models that you already have.

A pool of fitted classifiers of any kind and one convex program: minimise the loss of the worst-off fraction alpha of
the rows, another risk or any rate, subject to goals on any datasets. The models predict once; another objective, bound
or goal is solved from the stored predictions.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Self

from sklearn.base import clone

from counterpoise._base.checks import check_count
from counterpoise._base.types import ArrayLike
from counterpoise.classifiers.base import MixtureBase
from counterpoise.goals import Table
from counterpoise.rules.choosing import check_tail_solver
from counterpoise.rules.draws import generator_of, make_key
from counterpoise.rules.families import PooledModels, with_persons
from counterpoise.rules.goal_rows import find_positive
from counterpoise.rules.options import Proof
from counterpoise.rules.pool import ANSWERS, Pool, all_classes, named_models, titled_models
from counterpoise.rules.rows import set_input_tags


class MixtureClassifier(MixtureBase):
    """The best mixture of fitted models under goals.

    Parameters
    ----------
    estimators : list
        The pool. Each entry is a fitted classifier or pipeline of any library, a callable from rows to labels (or to a
        column of probabilities for each class), stored predictions (an array of labels for the rows of ``fit``, or a
        dict of such arrays by dataset), or a pair of a name and one of these. A clone keeps them as they are.
    alpha : float in (0, 1], optional
        Tail fraction; 1 is the plain error. Short for ``objective=CVaR(alpha)``, so pass one of them. Default: 0.1
        where there is no objective.
    objective : risk, rate or ratio, or the text of one, optional
        The objective to minimise: a risk of the losses such as ``WorstGroup("sex")``,
        ``EmpiricalLikelihood("calibrated")`` or ``0.5 * Mean() + 0.5 * CVaR(0.1)`` (see
        ``counterpoise.theory.risks``), or any linear combination of rates such as ``"false_positive_rate"``.
        ``"worst-group"`` is ``WorstGroup()``.
    goals : goals or their texts, default=()
        Goals that must hold on the rows of ``fit``, the dataset ``train``, and on other datasets: see
        ``counterpoise.goals``.
    budget : float in [0, 1], optional
        The most by which the average loss may exceed the least that the goals allow, so that a better tail does not
        cost more than you accept.
    decision : {"sticky", "sample", "vote"} or Draws, default="sticky"
        How ``predict`` decides: by a draw that is fixed for each row or id (``Draws(key)`` has a secret key of your
        own), by a fresh draw, or by weighted vote. Goals hold for draws. For one rule of the scores of fitted models,
        without draws, use ``GoalClassifier(models, cv="prefit")``.
    confidence : float in (0, 1), Proof or None, default=None
        The probability with which all goals hold together on new rows, in expectation over the draws: every bound is
        moved inside until it is reached, see ``margins_``. Where it is not, ``confidence_`` is None, and a ``Caution``
        says so. ``Proof(0.9)`` keeps half of the rows for exact tests, which prove it.
    max_models : int, optional
        Mix at most so many models, chosen by a heuristic; ``max_models_cost_`` is the cost of that limit.
    pos_label : label, optional
        The class that goals without ``of`` call positive; by default the second of two. All others then count as
        negative in those goals; the loss still distinguishes all classes.
    n_jobs : int, optional
        Threads in which models predict.
    random_state : int or RandomState, optional
        Fixes the key, unless you pass one, and fresh draws.

    Attributes
    ----------
    classes_ : array
        Labels of ``y`` and of the models.
    estimators_, names_ : list
        The models and their names.
    mixture_ : array of shape (n_models,)
        Probability with which each model decides.
    n_models_ : int
        How many models carry weight.
    drawn_share_ : float
        The share of the selection rows for which a draw decides whether the decision is right. Where decisions are
        drawn, a mixture with a smaller share is looked for among those with no more risk.
    value_, gap_ : float
        Risk of the mixture on the rows of ``fit``, and how far above the optimum of all mixtures it is at most.
    goals_ : tuple of Goal
    multipliers_ : array of shape (n_goals,)
        The price of each goal: how fast the risk would fall if its linear form were relaxed; 0 where it costs nothing.
    confidence_, margins_, proof_
        Of ``confidence``: as for ``GoalClassifier``.
    max_models_cost_ : float
        How much more risk the mixture has than the best one of any number of models.
    alpha_, objective_, selection_, n_features_in_, feature_names_in_
        As for ``AdaLPBoostClassifier``.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from counterpoise import MixtureClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> models = [GaussianNB(), *(DecisionTreeClassifier(max_depth=d, random_state=d) for d in (1, 2))]
    >>> pool = [model.fit(X[:200], y[:200]) for model in models]
    >>> mixture = MixtureClassifier(pool, alpha=0.2, goals=["recall >= 0.93"], random_state=0)
    >>> mixture = mixture.fit(X[200:], y[200:])
    >>> mixture.check_goals()[0].holds
    True
    >>> mixture.rebalance(alpha=0.5).value_ < mixture.value_
    True
    """

    stored_apart = ("estimators_",)  # each model in a file of its own inside of that of the mixture

    def __init__(
        self,
        estimators: Sequence[Any],
        *,
        alpha: float | None = None,
        objective: Any = None,
        goals: Any = (),
        budget: float | None = None,
        decision: Any = "sticky",
        confidence: float | Proof | None = None,
        max_models: int | None = None,
        pos_label: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimators = estimators
        self.alpha = alpha
        self.objective = objective
        self.goals = goals
        self.budget = budget
        self.decision = decision
        self.confidence = confidence
        self.max_models = max_models
        self.pos_label = pos_label
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        sensitive_features: Any = None,
        baseline: ArrayLike | None = None,
        ids: ArrayLike | None = None,
        datasets: Mapping[str, Table] | None = None,
        largest_weight: float | None = None,
        largest_value: float | Mapping[str, float] | None = None,
    ) -> Self:
        """Predict once with every model, and choose the mixture. No model is trained.

        Parameters
        ----------
        X : array, sparse matrix, data frame or sequence with n_samples rows
            Labelled rows that the models were not trained on, as the models take them: nothing is converted.
        y : array of shape (n_samples,)
            Labels of two or more classes, of any type.
        sample_weight : array of shape (n_samples,), optional
            Non-negative; only their ratios matter.
        sensitive_features : data frame, dict of arrays or array, optional
            Columns that goals use, and the groups of ``WorstGroup``.
        baseline : array of shape (n_samples,), optional
            The predictions of the deployed model for the rows, for churn, wins and losses on ``train``.
        ids : array-like of shape (n_samples,), optional
            The person that each row is of, where some have several: a ``confidence`` then counts persons, not rows.
        datasets : dict from names to Table, optional
            Other datasets that goals or the objective use.
        largest_weight : float, optional
            The largest weight that a row of the population can have, for goals that carry a confidence: as for
            ``Table``.
        largest_value : float or dict from columns to floats, optional
            The largest amount that a row of the population can have, for goals that carry a confidence: as for
            ``Table``.

        Returns
        -------
        self

        Raises
        ------
        InfeasibleGoals
            If no mixture meets the goals.
        """
        self.check_parameters()
        X, labels = self._check_labelled(X, y)
        pairs = named_models(self.estimators)
        self.forget_choice()
        self.names_, self.estimators_ = [name for name, _ in pairs], [model for _, model in pairs]
        models = titled_models(pairs)
        self.classes_ = all_classes(labels, models)
        pool = Pool.of(models, find_positive(self.classes_, self.pos_label), self.n_jobs, ANSWERS)
        key, generator = make_key(self.random_state), generator_of(self.random_state)
        problem = self.problem_of_fit()
        columns = {"sensitive_features": sensitive_features, "baseline": baseline, "sample_weight": sample_weight}
        data = self.labelled_data(X, labels, **columns, largest_weight=largest_weight, largest_value=largest_value)
        if pool.needs_rows():  # else no model predicts
            self.check_problem(problem, data, datasets, trains=False)
        family = PooledModels.of(pool, data)
        family = family if ids is None else with_persons(family, ids)
        self.learn_draws(key, generator)
        self.solve_and_store(self.with_datasets(family, datasets), problem)
        return self

    def check_parameters(self) -> None:
        """Check the parameters; rows are not needed."""
        check_tail_solver(self.problem_of_fit().objective)
        self.check_decision()
        if self.max_models is not None:
            check_count(self.max_models, "max_models")

    def __sklearn_clone__(self) -> Self:
        """Keep the models: they are fitted, and a clone without what they learned would be useless."""
        params = self.get_params(deep=False)
        others = {name: clone(value, safe=False) for name, value in params.items() if name != "estimators"}
        return type(self)(params["estimators"], **others)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        with suppress(TypeError, ValueError):  # where estimators is no pool, fit raises the error
            set_input_tags(tags, [model for _, model in named_models(self.estimators)])
        return tags
