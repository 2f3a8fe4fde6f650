"""GoalClassifier: from "I have a model and a requirement" to decisions that meet it.

It trains a strong model, or takes one that is fitted, and decides by the best thresholds of its scores, one per group,
under the goals.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import _clone_parametrized, clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import TimeSeriesSplit
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping

from counterpoise._base.checks import check_sample_weight
from counterpoise._base.frames import take_rows
from counterpoise._base.progress import Pace, progress_callback
from counterpoise._base.types import AnyArray, ArrayLike, FloatArray, IntArray
from counterpoise.classifiers.base import MixtureBase
from counterpoise.classifiers.fit_params import params_by_model
from counterpoise.classifiers.folds import MOST_MEASURED, Split, Training, check_cv, splits_of, texts_in
from counterpoise.goals import Rate, Table
from counterpoise.goals.classes import check_defer_label
from counterpoise.goals.expressions import terms_of
from counterpoise.goals.partial_labels import PartialLabels
from counterpoise.goals.tables import with_train
from counterpoise.rules.choosing import FIXED, Problem, check_one_rule, check_tail_solver
from counterpoise.rules.draws import generator_of, make_key
from counterpoise.rules.families import rules_of_scores, with_scores
from counterpoise.rules.goal_rows import TRAIN, Positive, find_positive
from counterpoise.rules.options import Deferral, Proof
from counterpoise.rules.pool import Pool, all_classes, named_models, titled_models
from counterpoise.rules.proving import share_to_test
from counterpoise.rules.rows import LabelledData, n_rows, person_numbers, set_input_tags

PREFIT = "prefit"


class FitPlan(NamedTuple):
    """Which rows the models of a fit are trained on, and which the rules are chosen on."""

    data: LabelledData  # the selection rows
    persons: IntArray | None  # that these are of
    datasets: Mapping[str, Table] | None
    trained: IntArray  # rows of X to train on
    tested: IntArray = np.empty(0, dtype=np.int64)  # rows of X that are kept for a proof
    splits: Sequence[Split] = ()  # the folds: none where other rows choose the rules
    twins: Mapping[str, Any] = {}  # by dataset the features of twins that models of folds score too
    scored: IntArray | None = None  # the rows of X inside of folds, or kept for a proof; None: all

    @property
    def test_rows(self) -> IntArray | None:
        """Return the places of the rows that are kept for a proof among the selection rows."""
        if not self.tested.size:
            return None
        return self.tested if self.scored is None else np.searchsorted(self.scored, self.tested)

    def scores(self, pool: Pool, X: Any, fold_scores: Sequence[FloatArray]) -> tuple[FloatArray, dict[str, FloatArray]]:
        """Return the scores of the selection rows, and of their twins by dataset.

        Models of folds have given those of the rows inside of them; the models that decide give all others.
        """
        if not fold_scores:
            return pool.ask(self.data.X, n_rows(self.data.X), TRAIN), {}
        rows = slice(None) if self.scored is None else self.scored
        found = []
        for features, scores in zip((X, *self.twins.values()), fold_scores, strict=True):
            if self.tested.size:
                scores[self.tested] = pool.ask(take_rows(features, self.tested), self.tested.size, TRAIN)
            found.append(scores[rows])
        return found[0], dict(zip(self.twins, found[1:], strict=True))


class GoalClassifier(MixtureBase):
    """A strong model that decides inside goals: trained, and cut at the thresholds that meet them at the least cost.

    Parameters
    ----------
    estimator : classifier or list of classifiers, optional
        What scores: any classifier or pipeline with ``predict_proba`` or ``decision_function``, or several, or pairs of
        a name and one. Default: scikit-learn's ``HistGradientBoostingClassifier(categorical_features="from_dtype")``,
        which takes missing values, and categories of data frames, as they are.
    goals : goals or their texts, default=()
        What must hold on the rows of ``fit``, the dataset ``train``, and on other datasets: see ``counterpoise.goals``.
    alpha : float in (0, 1], optional
        Tail fraction; 1 is the plain error. Short for ``objective=CVaR(alpha)``, so pass one of them. Default: 1 where
        there is no objective.
    objective : risk, rate or ratio, or the text of one, optional
        What is minimised: the error (default), a risk of the losses such as ``WorstGroup("sex")``, or any linear
        combination of rates such as ``"false_positive_rate"``. Other risks need a mixture of rules. A ratio that is
        better when larger, such as ``"f1_score"`` or ``"precision"``, is maximised, other ratios are minimised.
    by : str, list of str or Groups, default=()
        Columns that rules may use: they have a threshold for each combination of their values. Each
        is a column of ``sensitive_features``, of X where it is a data frame, or the word ``"baseline"``, which stands
        for the predictions of the deployed model. ``Groups`` also sets what to do about small groups. None: one
        threshold for all.
    budget : float in [0, 1], optional
        The most by which the average loss may exceed the least that the goals allow, so that a better tail does not
        cost more than you accept.
    deferral : Deferral, optional
        ``Deferral(cost, label)``: the loss of a row that is deferred to a person, where an error costs 1, and what
        ``predict`` then returns. Rules have two thresholds for each group, and defer between them; see also the goals
        ``defer_rate`` and ``decided_error_rate``. None: every row is decided.
    cv : int, splitter, iterable of splits, "auto" or "prefit", default="auto"
        Rules are chosen on scores of rows that the models were not trained on. A number, a splitter of scikit-learn or
        a list of pairs of arrays: folds, whose models score the rows inside; a model trained on all rows decides. With
        ``TimeSeriesSplit``, for rows in the order of time, each is scored by models of earlier rows alone, and goals
        are chosen on all but the first part.
        ``"auto"``: 5 folds, and never more than the rarest class has rows, whose models decide together by the mean of
        their log-odds; models whose probabilities reach 0 or 1, and those without, are trained once more instead.
        ``"prefit"``: ``estimator`` is fitted, and the rows of ``fit`` are others than those it was trained on, as
        models in scikit-learn's ``FrozenEstimator`` always are.
    confidence : float in (0, 1), Proof or None, default=0.9
        The approximate probability that all goals hold together in the population of the selection rows: the rule keeps
        a margin inside of their bounds, for chance in these rows and for the choice itself. If
        it cannot be reached, the rule that comes nearest is taken, ``confidence_`` is None, and a ``Caution`` names
        what limits it. Mixtures keep margins too, and are solved some twenty times for them. It does not cover a
        changed population, nor people whose labels are missing because they were refused. None: goals are just met on
        the selection rows, and each fails on new rows about half of the time. ``Proof(0.9)``: a guarantee that does not
        need many rows to be true, and costs more. A part of the rows, with folds a third that no model is trained on,
        is kept for exact tests; where no rule passes, margins are taken, and ``proof_`` says that nothing is proven.
    decision : {"fixed", "sticky", "sample", "vote"} or Draws, default="fixed"
        How ``predict`` decides: by one rule, a threshold for each group, without draws ("fixed"); or, from the best
        mixture of rules, by a draw that is fixed for each row or id ("sticky", or ``Draws(key)`` with a secret key of
        your own), by a fresh draw ("sample"), or by weighted vote. Tails (``alpha`` below 1) need a mixture: no single
        rule can lower them.
    pos_label : label, optional
        The positive class of goals; by default the second of two, and ``fit`` warns of that where they are texts.
    random_state : int or RandomState, optional
        Fixes the folds, the models that have none of their own, the key, unless you pass one, and fresh draws.
    n_jobs : int, optional
        Threads in which models are trained and predict.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    estimators_, names_ : list
        The fitted models that decide, one for each estimator: with ``cv="auto"`` mostly an
        ``AveragedClassifier`` of five folds, else trained on all rows; and the names of the estimators.
    rules_ : list of Rule
        ``rule.model`` is the place of its estimator, ``rule.thresholds`` a dict by group; of more
        than two classes TierRule.
    mixture_ : array of shape (n_rules,)
        Probability with which each of ``rules_`` decides.
    groups_ : RuleGroups
        The columns of ``by`` and the names of the groups.
    value_, gap_ : float
        The objective on the rows where the rule or mixture was chosen, and an upper bound on its gap to the optimum
        over what ``certificate_`` names: all single rules of all models, all mixtures of them if decisions are drawn,
        or, for more than two classes, the rules that were tried. The gap of one rule without margins is 0 where all
        rules could be looked at, as for one group, or two of some thousand rows; it is infinite where nothing is
        proven, as for goals that compare ratios over many groups.
    fixed_cost_ : float
        With ``decision="fixed"``: how much more of the objective the rule has than the best mixture of rules.
    confidence_ : float or None
        The confidence that was reached, None where it was not reached or not requested.
    probability_ : float or None
        Where the confidence was not reached: about how likely all goals hold together on new rows.
    margins_ : tuple of Margin
        For each goal ``bound``, ``value`` (that is aimed at), ``standard_error``, ``optimism``, ``cost`` and ``shift``
        (by how much nearer to the bound the deciding model is than the models of folds, as measured with fewer than
        3,000 rows), and why it has no margin; empty without a confidence.
    proof_ : GoalProof or None
        With ``Proof``: whether the goals are proven (``is_proven``), the number of test rows, the values of the goals
        on these, and where nothing is proven about how many rows that would take.
    calibrations_ : tuple of Calibration
        Of more classes: the calibration of each estimator's probabilities on the selection rows.
    goals_, multipliers_, alpha_, objective_, selection_, n_models_, n_features_in_, feature_names_in_
        As for ``MixtureClassifier``.

    Notes
    -----
    Of more than two classes models need ``predict_proba``; goals that were not met are not proven to be impossible.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from counterpoise import GoalClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), LogisticRegression())
    >>> decided = GoalClassifier(model, goals=["recall(of=0) >= 0.95"], random_state=0).fit(X[:400], y[:400])
    >>> print(decided.check_goals()[0])
    recall(of=0) >= 0.95: holds (0.9711, bound 0.95)
    >>> bool((decided.predict(X[400:]) == y[400:]).mean() > 0.9)
    True
    """

    keeps_default_threshold = True
    default_alpha = 1.0
    decides_by_scores = True  # in the place of the property of the base class
    stored_apart = ("estimators_",)  # each model in a file of its own inside of that of the mixture

    def __init__(
        self,
        estimator: Any = None,
        *,
        goals: Any = (),
        alpha: float | None = None,
        objective: Any = None,
        by: Any = (),
        budget: float | None = None,
        deferral: Deferral | None = None,
        confidence: float | Proof | None = 0.9,
        decision: Any = "fixed",
        cv: Any = "auto",
        pos_label: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.goals = goals
        self.alpha = alpha
        self.objective = objective
        self.by = by
        self.budget = budget
        self.deferral = deferral
        self.confidence = confidence
        self.decision = decision
        self.cv = cv
        self.pos_label = pos_label
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        sensitive_features: Any = None,
        baseline: ArrayLike | None = None,
        ids: Any = None,
        datasets: Mapping[str, Table] | None = None,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: ArrayLike | None = None,
        sensitive_features_val: Any = None,
        baseline_val: ArrayLike | None = None,
        ids_val: Any = None,
        largest_weight: float | None = None,
        largest_value: float | Mapping[str, float] | None = None,
        **fit_params: Any,
    ) -> Self:
        """Train the models, and choose the rules on rows that they were not trained on.

        Parameters
        ----------
        X : array, sparse matrix, data frame or sequence with n_samples rows
            Labelled rows, as the models take them: nothing is converted.
        y : array of shape (n_samples,)
            Labels of two or more classes, of any type; with ``cv="prefit"`` also ``PartialLabels``, where only some are
            known.
        sample_weight : array of shape (n_samples,), optional
            Non-negative. A model that takes none is trained on rows drawn by them.
        sensitive_features : data frame, dict of arrays or array, optional
            Columns that goals and rules use, and the groups of ``WorstGroup``.
        baseline : array of shape (n_samples,), optional
            The predictions of the deployed model for the rows, for churn, wins and losses on ``train``, and for rules
            that use them.
        ids : array-like of shape (n_samples,), optional
            The person that each row is of, where some have several: folds keep a person together, and margins count
            persons and not rows.
        datasets : dict from names to Table, optional
            Other datasets that goals or the objective use: rows that the models are not trained on.
        X_val, y_val : optional
            Rows to choose the rules on, in place of folds: they are then the dataset ``train`` of goals, and the models
            are trained on all of ``X``. ``y_val`` may be ``PartialLabels``, where only some labels are known.
        sample_weight_val, sensitive_features_val, baseline_val, ids_val : optional
            What belongs to the rows of ``X_val``.
        largest_weight : float, optional
            The most that a row of the population can weigh, for goals that carry a confidence: as for ``Table``.
        largest_value : float or dict from columns to floats, optional
            The largest amount that a row of the population can have, for proofs and goals that carry a confidence: as
            for ``Table``.
        **fit_params
            What else ``fit`` of the models takes, such as ``callbacks`` or ``categorical_feature``; for a step of a
            pipeline with its name before it, as in ``lgbmclassifier__callbacks``. With scikit-learn's metadata routing
            on, what the models request. Arrays with a value for each row are cut at the folds. ``eval_set=0.2`` sets a
            fifth of the rows aside that each model is trained on, so that LightGBM, XGBoost or CatBoost stops early by
            rows that choose no rules; a model of all rows then takes the folds' mean number of rounds. Pairs of rows
            and labels are passed on as they are: they must not be rows of X or ``X_val``.

        Returns
        -------
        self

        Raises
        ------
        InfeasibleGoals
            If no thresholds meet the goals. The models are stored: ``rebalance(goals=...)`` tries other goals.
        """
        self.check_parameters()
        X, labels = self._check_labelled(X, y)
        columns = {"sensitive_features": sensitive_features, "baseline": baseline, "sample_weight": sample_weight}
        limits = {"largest_weight": largest_weight, "largest_value": largest_value}
        columns_val = {
            "sensitive_features": sensitive_features_val,
            "baseline": baseline_val,
            "sample_weight": sample_weight_val,
        }
        self._check_rows(X, y, X_val, y_val, columns, columns_val | {"ids": ids_val})
        models, positive = self._models_and_classes(labels)
        params = params_by_model(self, models, fit_params)
        self.forget_choice()
        self.classes_ = positive.classes
        key, generator, problem = make_key(self.random_state), generator_of(self.random_state), self.problem_of_fit()
        check_sample_weight(sample_weight, len(labels))
        persons = None if ids is None else person_numbers(ids, len(labels))
        seeds = (int(generator.integers(2**31)) for _ in count())  # of the folds, their models, and those of all rows

        # Which rows train, and which choose the rules.
        if X_val is None:
            data = self.labelled_data(X, y if isinstance(y, PartialLabels) else labels, **columns, **limits)
            plan = self._plan_folds(data, labels, problem, persons, datasets, seeds)
        else:
            next(seeds)
            data = self.labelled_data(X_val, y_val, **columns_val, **limits)
            persons_val = None if ids_val is None else person_numbers(ids_val, n_rows(data.X), "X_val")
            plan = FitPlan(data, persons_val, datasets, np.arange(labels.size))
        self.check_problem(problem, plan.data, plan.datasets, trains=not self.is_prefit, by=self.by)

        # The models, and the scores of the selection rows.
        fold_scores: list[FloatArray] = []
        self.estimators_, spreads = list(models.values()), None
        if not self.is_prefit:
            measures_spread = positive.is_binary and self._measures_spread(problem, plan.splits, plan.trained.size)
            training = Training(
                models=models,
                X=X,
                labels=labels,
                weights=None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64),
                positive=positive,
                rows=plan.trained,
                n_jobs=self.n_jobs,
                report=self._report_models(models, len(plan.splits), measures_spread=measures_spread),
                twins=tuple(plan.twins.values()),
                params=params,
                persons=persons,
                in_time=isinstance(self.cv, TimeSeriesSplit),
                measures_spread=measures_spread,
            )
            self.estimators_, fold_scores, spreads = self._train(training, plan.splits, seeds)
        pool = Pool.of(dict(zip(models, self.estimators_, strict=True)), positive, self.n_jobs)
        self.learn_draws(key, generator)
        scores, scores_of_twins = plan.scores(pool, X, fold_scores)

        # The rules.
        rules = rules_of_scores(
            pool,
            plan.data,
            scores,
            persons=plan.persons,
            has_fold_scores=bool(plan.splits),
            spreads=spreads,
            test_rows=plan.test_rows,
        )
        self.solve_and_store(with_scores(self.with_datasets(rules, plan.datasets), scores_of_twins), problem)
        return self

    def _plan_folds(
        self,
        data: LabelledData,
        labels: AnyArray,
        problem: Problem,
        persons: IntArray | None,
        datasets: Mapping[str, Table] | None,
        seeds: Iterator[int],
    ) -> "FitPlan":
        """Return which rows train and which choose the rules, where both are rows of X."""
        every = np.arange(labels.size)
        if self.is_prefit:
            return FitPlan(data, persons, datasets, every)
        tested = self._rows_to_test(labels.size, problem, persons)
        trained = np.setdiff1d(every, tested)
        splits = splits_of(self.cv, labels[trained], next(seeds), None if persons is None else persons[trained])
        splits = [(trained[outside], trained[inside]) for outside, inside in splits]
        twins = self._twins_of_folds(problem, datasets) if splits else {}
        plan = FitPlan(data, persons, datasets, trained, tested, splits, twins)
        scored = np.sort(np.concatenate([tested, *(rows for _, rows in splits)]))
        if scored.size == labels.size:
            return plan
        # Folds in the order of time: the first rows are trained on, and never scored.
        alike = {name: datasets[name].only(scored) for name in twins if datasets}
        return plan._replace(
            data=data.only(scored),
            persons=None if persons is None else persons[scored],
            datasets={**(datasets or {}), **alike},
            scored=scored,
        )

    def _twins_of_folds(self, problem: Problem, datasets: Mapping[str, Table] | None) -> dict[str, Any]:
        """Return the features of the twins of the training rows, by dataset: models of folds score both."""
        expressions: list[Any] = [*problem.goals, *([problem.objective] if isinstance(problem.objective, Rate) else [])]
        rows = (term.rows for one in expressions for term in terms_of(one))
        names = dict.fromkeys(one.twin for one in rows if one.name == TRAIN and one.twin is not None)
        others = with_train(None, datasets)
        return {name: self._checked_features(name, others[name]) for name in names if name in others}

    def _rows_to_test(self, n_rows: int, problem: Problem, persons: IntArray | None) -> IntArray:
        """Return the rows that no model is trained on, where goals are to be proven: the deciding model scores them.

        Rows of persons that have several are not independent, and prove nothing.
        """
        has_several = persons is not None and np.unique(persons).size < n_rows
        if not isinstance(problem.confidence, Proof) or has_several:
            return np.empty(0, dtype=np.int64)
        if not isinstance(self.cv, str | Integral) and not hasattr(self.cv, "split"):
            raise ValueError(
                "A proof keeps some rows from training, so cv must be 'auto', a number or a splitter and no list of "
                "folds. To choose those rows yourself, pass them as X_val and y_val."
            )
        n_tested = round(n_rows * share_to_test(max(len(problem.goals), 1), of_folds=True))
        if isinstance(self.cv, TimeSeriesSplit):
            return np.arange(n_rows - n_tested, n_rows)
        return np.sort(np.random.default_rng(0).permutation(n_rows)[:n_tested])

    @property
    def is_prefit(self) -> bool:
        """Return whether the models are fitted already."""
        is_named = isinstance(self.cv, str) and self.cv == PREFIT
        models = self.estimator if isinstance(self.estimator, list) and self.estimator else [self.estimator]
        return is_named or all(isinstance(model, FrozenEstimator) for _, model in named_models(models))

    def check_parameters(self) -> None:
        """Check the parameters; rows are not needed."""
        problem = self.problem_of_fit()
        self.check_decision()
        if problem.decision == FIXED:
            check_one_rule(problem.objective)
        check_tail_solver(problem.objective)
        if not self.is_prefit:
            check_cv(self.cv)

    def _check_rows(
        self, X: Any, y: Any, X_val: Any, y_val: Any, columns: dict[str, Any], columns_val: dict[str, Any]
    ) -> None:
        """Check that there are labelled rows to train on, and that X_val and y_val come together with their columns."""
        if 0 in X.shape:
            raise ValueError(
                f"X must hold rows and features to train on; got {X.shape[0]} sample(s) and {X.shape[-1]} feature(s) "
                f"(shape={X.shape}) while a minimum of 1 is required."
            )
        if isinstance(y, PartialLabels) and not self.is_prefit:
            raise ValueError(
                "Models are trained on rows that have labels; got PartialLabels as y. Pass those rows as X and y, and "
                "others with PartialLabels as X_val and y_val, or pass a fitted model and set cv='prefit'."
            )
        if X_val is None:
            if y_val is not None or any(part is not None for part in columns_val.values()):
                raise ValueError("y_val or its columns came without X_val; pass X_val and y_val together.")
            return
        if y_val is None:
            raise ValueError("X_val and y_val go together; got X_val only.")
        if self.is_prefit:
            raise ValueError("cv='prefit' chooses rules on the rows of fit: pass those of X_val as X and y instead.")
        for name in ("sensitive_features", "baseline"):
            if columns[name] is not None and columns_val[name] is None:
                raise ValueError(f"X_val needs {name}_val: rules are chosen on its rows, and {name} is of those of X.")

    def _models_and_classes(self, labels: AnyArray) -> tuple[dict[str, Any], Positive]:
        """Return the models by their titles in messages, and the classes, after checking that all models can score."""
        pairs = named_models(list_models(self.estimator))
        models, self.names_ = titled_models(pairs), [name for name, _ in pairs]
        classes = all_classes(labels, models if self.is_prefit else {})
        if self.deferral is not None:
            check_defer_label(self.deferral.label, classes.tolist(), "label")
        positive = find_positive(classes, self.pos_label)
        for title, model in models.items():
            Pool.of({title: model}, positive, None)
            if not self.is_prefit and not hasattr(model, "fit"):
                raise TypeError(
                    f"{title} must be a classifier with fit, as cv={self.cv!r} trains it; got {type(model).__name__}. "
                    "For models that are fitted set cv='prefit'."
                )
        return models, positive

    def _measures_spread(self, problem: Problem, splits: Sequence[Split], n_rows: int) -> bool:
        """Return whether to measure how the scores of the models that decide differ from those of models of folds."""
        has_margins = problem.confidence is not None and len(splits) > 0
        return has_margins and n_rows < MOST_MEASURED and not isinstance(self.cv, TimeSeriesSplit)

    def _report_models(
        self, models: Mapping[str, Any], n_folds: int, *, measures_spread: bool
    ) -> Callable[[str, str], None]:
        """Return the function that reports a model that is trained, by its title, and on which rows."""
        may_average = isinstance(self.cv, str) and n_folds > 0  # with cv="auto" the models of the folds may decide
        names = {title: name or title for title, name in zip(models, self.names_, strict=True)}
        n_models = len(models) * ((1 + 2 * measures_spread) * n_folds + (not may_average))
        numbers, pace = count(1), Pace(progress_callback(), n_models)

        def report(title: str, rows: str) -> None:
            number = next(numbers)
            pace.total = max(number, pace.total)
            pace.step(number, f"{names[title]}, {rows}")

        return report

    def _train(
        self, training: Training, splits: Sequence[Split], seeds: Iterator[int]
    ) -> tuple[list[Any], list[FloatArray], FloatArray]:
        """Return the models that decide, scores of the rows inside of folds, and spreads; see ``Training.train``."""
        try:
            return training.train(self.cv, list(splits), seeds)
        except ValueError as error:
            texts = texts_in(training.X) if self.estimator is None else []
            if not texts:
                raise
            raise ValueError(
                f"The default model takes numbers and categories; the column {texts[0]!r} holds texts. Make it a "
                f"category, X.astype({{{texts[0]!r}: 'category'}}) in pandas or a cast to Categorical in polars, or "
                "pass a pipeline that encodes it."
            ) from error

    def get_metadata_routing(self) -> MetadataRouter:
        """Return where scikit-learn's metadata routing sends arguments of ``fit``: here, or to a model's ``fit``.

        Returns
        -------
        MetadataRouter
        """
        router = MetadataRouter(owner=self).add_self_request(self)
        mapping = MethodMapping().add(caller="fit", callee="fit")
        models = {} if self.is_prefit else titled_models(named_models(list_models(self.estimator)))
        return router.add(method_mapping=mapping, **models)

    def __sklearn_clone__(self) -> Self:
        """Keep models that are fitted: a clone without what they learned would be useless."""
        if not self.is_prefit:
            return _clone_parametrized(self)  # type: ignore[no-any-return]
        params = self.get_params(deep=False)
        others = {name: clone(value, safe=False) for name, value in params.items() if name != "estimator"}
        return type(self)(params["estimator"], **others)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        with suppress(TypeError, ValueError):  # where estimator is no classifier, fit raises the error
            set_input_tags(tags, [model for _, model in named_models(list_models(self.estimator))])
        return tags


def list_models(estimator: Any) -> Sequence[Any]:
    """Return the models to train, given one, several or None."""
    if estimator is None:
        return [HistGradientBoostingClassifier(categorical_features="from_dtype")]
    return estimator if isinstance(estimator, list) else [estimator]
