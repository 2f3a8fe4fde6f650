"""ConstrainedClassifier: a linear or kernel classifier trained inside goals on any number of datasets.

Goh, Cotter, Gupta and Friedlander, "Satisfying real-world goals with dataset constraints", NIPS 2016. The classifier is
``score(x) = <w, x> - b``. While it is trained, a row counts as predicted positive with probability
``ramp(score) = max(0, min(1, 1/2 + score))``, which makes every rate continuous; see ``solvers.ramp`` for the solver.
The paper starts from zero, whatever the goals; here training starts inside them, or a contradiction is proven.

The rates of decisions by a threshold differ from these ramp rates. The paper decides by the sign of the score, whatever
rates that has; here the threshold is moved to where the decisions meet the goals too: see ``solvers.ramp_threshold``.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from counterpoise._base.checks import check_choice, check_count, check_positive, check_vector, refuse_texts
from counterpoise._base.frames import is_frame
from counterpoise._base.types import AnyArray, ArrayLike, BoolArray, FloatArray
from counterpoise.goals import (
    BoundGoals,
    GoalCheck,
    Table,
    as_objective,
    bind,
    bind_objective,
    error_rate,
    validate_goals,
)
from counterpoise.goals.binding import prepare
from counterpoise.goals.classes import signs_of
from counterpoise.goals.feasible_start import Rebuild, find_start, stack_weights
from counterpoise.goals.tables import with_train
from counterpoise.learners.row_kernels import (
    LINEAR,
    check_kernel,
    gram_of,
    kernel_noise,
    kernel_of,
    linear_noise,
    stack_rows,
)
from counterpoise.rules.cautions import warn_of_a_constant, warn_of_missed_goals, warn_of_the_positive_class
from counterpoise.rules.draws import KeyedDraws, make_key, require_draws
from counterpoise.rules.goal_rows import TRAIN
from counterpoise.rules.options import Draws, kind_of_decision
from counterpoise.rules.rows import checked_features
from counterpoise.solvers.ramp import (
    CutSolution,
    KernelMachine,
    LinearMachine,
    RampOptions,
    RampProblem,
    ThresholdCut,
    decide,
    decide_by_sign,
    minimize_ramp,
    ramp,
)
from counterpoise.theory.risk_text import is_risk_text

_BINARY = 2
_SOLVERS = ("auto", "level", "maximum", "center-of-mass")
_FIXED, _RAMP = "fixed", "ramp"
_FAR = 1e10  # rounding is checked in rows up to so many times larger than those of training: a bound for speed alone
_FLOATS = [np.float64, np.float32]
_LEAST_TOTAL, _MOST_TOTAL = 1e-6, 1e12  # weights of the training rows for which 1 over them regularizes reasonably


class ConstrainedClassifier(ClassifierMixin, BaseEstimator):
    """A binary classifier that minimises a rate, by default the error, subject to goals on other rates.

    Algorithm 1 of Goh et al. 2016. With ``**ConstrainedClassifier.as_printed`` it is what they print: draws by the ramp
    of the score, an offset that is not moved after training, and multipliers where the model of their dual is largest.

    Parameters
    ----------
    objective : rate or its text, optional
        The rate to minimise: any linear combination of rates. Default: ``error_rate``.
    goals : goals or their texts, default=()
        Goals that must hold on the training data: see ``counterpoise.goals``.
    kernel : {"linear", "rbf", "poly"}, default="linear"
        Linear scores, or scores in the feature space of a kernel, for some thousands of rows:
        ``exp(-gamma * |x - z|**2)`` or ``(gamma * <x, z> + 1)**3``.
    gamma : float > 0, optional
        Coefficient of the kernel; by default 1 / n_features.
    regularization : float > 0, optional
        Weight of the squared norm of the coefficients, halved, beside the rates. Default: 1 over the number of training
        rows, where a weight counts as so many rows, as in scikit-learn: weights in thousands regularize a thousand
        times less, unless you set this. With hinges for ramps that is C = 2 in LIBLINEAR: see the guide.
    fit_intercept : bool, default=True
        Whether scores have an offset, which is not regularized.
    decision : {"fixed", "ramp"} or Draws, default="fixed"
        Predict by a threshold on the score, or draw with probability ``ramp(score)``. Goals hold on the training data
        in expectation over the draws. For the threshold, which is moved from zero to where its decisions meet them,
        they hold too, or ``fit`` warns with the numbers. A draw is sticky: the same row, or ``ids``, always has the
        same; ``Draws(key)`` draws by the ramp with a secret key of your own.
    solver : {"auto", "level", "maximum", "center-of-mass"}, default="auto"
        How multipliers are chosen, see ``solvers.cutting_plane``.
    max_majorizations : int, default=20
        Largest number of convex programs.
    tol : float, default=1e-3
        Stop when one of them lowers the objective by less.
    max_multiplier : float > 0, default=1000
        The largest price of a goal, the paper's V; that of a cost is for a unit of about its largest amount. Goals hold
        with any; but one below the price that a goal needs leaves the objective higher, and ``gap_`` shows it.
        ``guarantees.rate_generalization_bound`` explains its use.
    pos_label : label, optional
        The positive class; by default the last of the sorted classes.
    random_state : int or RandomState, optional
        Fixes the key, unless you pass one.

    Attributes
    ----------
    classes_ : array of shape (2,)
    coef_, intercept_ : arrays of shape (1, n_features) and (1,)
        For the linear kernel, in terms of ``classes_[1]``: the threshold decides for it where
        ``X @ coef_[0] + intercept_[0]`` is above 0.
    threshold_ : float
        Where the threshold was moved to, on the scores that were trained; ``intercept_`` is less by as much. It is 0
        where decisions meet the goals there, without goals, with ``fit_intercept=False`` and ``decision="ramp"``.
    goals_ : tuple of Goal
    ramp_checks_, indicator_checks_ : lists of GoalCheck
        Value and violation of each goal on the training data: for the ramp rates that were trained, which are those of
        draws, and for the rates of decisions by the threshold.
    is_constant_ : bool
        Whether all rows that count in the objective or in a goal get the same decision or, for ``decision="ramp"``, the
        same probability. Goals that are met by that count as missed, and ``fit`` warns.
    train_error_, constant_error_ : float
        The error of the decisions on the training rows, and that of the better of the two constant decisions.
    multipliers_ : array of shape (n_goals,)
        About how much the objective would fall for each unit by which a goal is relaxed; 0 for goals that cost nothing.
    objective_value_ : float
        The objective at the end, regularization included.
    lower_, gap_ : float
        Proven for the last convex program: no solution of it is below ``lower_``, its own at most ``gap_`` above.
    history_ : list of Majorization
        Objective, violation, bounds and multipliers after each convex program.
    n_iter_ : int
        The number of convex programs.
    n_features_in_, feature_names_in_ : int and array
        Number of features, and their names where ``X`` had them.

    Notes
    -----
    Scale the features to similar sizes first, with ``StandardScaler`` for instance: the norm that is regularized counts
    all of them alike, and scores move by whole units between clearly negative and clearly positive.

    The classifier of the paper is that of a fit with ``decision="ramp"``, after whose training nothing is done. Its
    decisions by the sign of the score are ``predict_proba(X)[:, 1] > 0.5``.

    There is no ``confidence`` as that of ``GoalClassifier``. That margin is computed from scores of rows that the model
    was not trained on; here goals are met on the rows that train the coefficients, whose decisions fit them better than
    new rows do. Write ``with confidence 0.95`` behind a goal to tighten its bound, or pass the classifier to
    ``GoalClassifier``, and audit on other rows.

    Every loop has a bound: at most ``max_majorizations`` convex programs, and 25 in a search for a start, each of at
    most 1000 support vector machines, and those of 1000 Newton steps or 5000 sweeps. Where no threshold meets the
    goals, the classifier is trained again under tighter ones, up to 6 times. Where one of these bounds is reached, the
    goals still hold for the ramp rates, and ``history_`` shows the gap that is left.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from counterpoise import ConstrainedClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = ConstrainedClassifier(goals=["recall >= 0.99"]).fit(scale(X), y)
    >>> model.check_goals(scale(X), y)[0].holds
    True
    >>> model.train_error_ < 0.03 < model.constant_error_
    True
    """

    #: Settings of Goh et al. 2016: the randomized rule of its Appendix A, and the cut chooser of its Definition 1.
    as_printed: ClassVar[Mapping[str, Any]] = MappingProxyType({"decision": "ramp", "solver": "maximum"})

    _near: float  # margins up to here are compared with their rounding

    def __init__(
        self,
        *,
        objective: Any = None,
        goals: Any = (),
        kernel: str = "linear",
        gamma: float | None = None,
        regularization: float | None = None,
        fit_intercept: bool = True,
        decision: Any = "fixed",
        solver: str = "auto",
        max_majorizations: int = 20,
        tol: float = 1e-3,
        max_multiplier: float = 1e3,
        pos_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.objective = objective
        self.goals = goals
        self.kernel = kernel
        self.gamma = gamma
        self.regularization = regularization
        self.fit_intercept = fit_intercept
        self.decision = decision
        self.solver = solver
        self.max_majorizations = max_majorizations
        self.tol = tol
        self.max_multiplier = max_multiplier
        self.pos_label = pos_label
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        sensitive_features: Any = None,
        baseline: ArrayLike | None = None,
        datasets: Mapping[str, Table] | None = None,
        largest_weight: float | None = None,
        largest_value: float | Mapping[str, float] | None = None,
    ) -> Self:
        """Train inside the goals.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            The rows of the dataset ``train``; numbers.
        y : array of shape (n_samples,)
            Labels of two classes.
        sample_weight : array of shape (n_samples,), optional
            Non-negative weights of the training rows in every rate.
        sensitive_features : data frame, dict of arrays or array, optional
            Columns of the training rows that goals use; a bare array is the column ``group``.
        baseline : array of shape (n_samples,), optional
            The predictions of the deployed model for the training rows, for churn, wins and losses on ``train``.
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
            If the goals cannot hold together.

        Warns
        -----
        MissedGoals
            For ``decision="fixed"``, where the ramp rates meet the goals but the decisions of no threshold do.
        ConstantDecisions
            Where all training rows get the same decision, though there are goals.
        """
        self.check_parameters()
        self.__dict__.pop("intercept_", None)  # of an earlier fit: goals that cannot hold leave nothing to decide by
        columns: dict[str, Any] = {"sample_weight": sample_weight, "largest_weight": largest_weight}
        columns |= {"largest_value": largest_value, "baseline": baseline}
        self.goals_ = validate_goals(self.goals, defers=False)
        key = self.decision.key if isinstance(self.decision, Draws) else make_key(self.random_state)
        rows = self._check_rows(X, y, columns, sensitive_features, datasets)
        training = self._problem(rows)
        chooser = "level" if self.solver == "auto" else self.solver
        plan = RampOptions(self.tol, self.max_majorizations, self.max_multiplier, chooser=chooser)
        start = find_start(training.problem, training.bound, rows.tables, training.rebuild)
        trained = minimize_ramp(training.problem, start, plan)
        noise_of, sizes = partial(self._noise, training.stacked, training.stacked), training.bound.sizes
        sizes = sizes / training.bound.units  # as the problem has its constraints
        if self._kind == _FIXED:
            decided = decide(training.problem, trained, noise_of, sizes, plan)
        else:
            decided = decide_by_sign(training.problem, trained, noise_of, sizes)
        self._set_solution(decided, training)
        self._set_checks(decided, training, rows)
        self.draws_ = KeyedDraws(key)
        return self

    @property
    def _kind(self) -> Any:
        """Return the word for how decisions are made: "ramp" for draws with a key."""
        return _RAMP if isinstance(self.decision, Draws) else kind_of_decision(self.decision)

    def decision_function(self, X: Any) -> FloatArray:
        """Return the score of each row: above zero for the second class, or for even odds where draws decide."""
        check_is_fitted(self)
        rows = _as_numbers(self, X)
        return self._scores(rows, shift=0.0 if self._kind == _FIXED else self.threshold_)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of either class under ``decision="ramp"``, for any ``decision`` and threshold."""
        check_is_fitted(self)
        rows = _as_numbers(self, X)
        positive = ramp(self._scores(rows, shift=self.threshold_))
        return np.column_stack([1.0 - positive, positive])

    def decision_proba(self, X: Any) -> FloatArray:
        """Return the probability of each decision: 0 or 1, unless decisions are drawn."""
        if self._kind == _RAMP:
            return self.predict_proba(X)
        return np.asarray(self.predict(X)[:, None] == self.classes_, dtype=np.float64)

    def predict(self, X: Any, ids: Any = None) -> AnyArray:
        """Decide about every row.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        ids : array-like of shape (n_samples,), optional
            One for each person, for ``decision="ramp"``: rows of one id share a draw. Default: the row is its own id.

        Returns
        -------
        array of shape (n_samples,)
        """
        check_is_fitted(self)
        rows = _as_numbers(self, X)
        if self._kind == _FIXED:
            if ids is not None:
                raise ValueError("ids are for decision='ramp'; this classifier has decision='fixed'.")
            return np.asarray(self.classes_[(self._scores(rows) > 0).astype(np.int64)])
        is_second = require_draws(self).uniforms(X, rows, ids) < ramp(self._scores(rows, shift=self.threshold_))
        return np.asarray(self.classes_[is_second.astype(np.int64)])

    def check_goals(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: ArrayLike | None = None,
        sensitive_features: Any = None,
        baseline: ArrayLike | None = None,
        datasets: Mapping[str, Table] | None = None,
    ) -> list[GoalCheck]:
        """Check the goals on data, for the decisions that ``predict`` makes.

        Parameters
        ----------
        X, y, sample_weight, sensitive_features, baseline, datasets
            As for ``fit``: the data in place of ``train``, and other datasets by name.

        Returns
        -------
        list of GoalCheck
            One for each goal: its value, bound, violation and whether it holds; for ``decision="ramp"`` in expectation.
            For ``decision="fixed"`` the field ``ramp`` has the same of the ramp rates.
        """
        check_is_fitted(self)
        tables = with_train(Table(X, y, sensitive_features, baseline, sample_weight=sample_weight), datasets)
        used = {name for goal in self.goals_ for name in goal.datasets}
        rows = {name: _as_numbers(self, tables[name].X, name) for name in tables if name in used}
        scores = {name: self._scores(one) for name, one in rows.items()}
        ramps = self._ramp_checks({name: one + self.threshold_ for name, one in scores.items()}, tables)
        if self._kind == _RAMP:
            return ramps
        return self._indicator_checks({name: one > 0 for name, one in scores.items()}, tables, ramps)

    def _ramp_checks(self, scores: dict[str, FloatArray], tables: Mapping[str, Table]) -> list[GoalCheck]:
        """Check the goals for draws by the ramps of scores."""
        flip = -1.0 if self._positive == self.classes_[0] else 1.0
        of_positive = {name: flip * one for name, one in scores.items()}
        prepared = prepare(of_positive, tables, kind="scores", pos_label=self._positive, classes=self.classes_)
        return [goal.evaluate_where_possible(prepared) for goal in self.goals_]

    def _indicator_checks(
        self, is_second: dict[str, BoolArray], tables: Mapping[str, Table], ramps: list[GoalCheck]
    ) -> list[GoalCheck]:
        """Check the goals for decisions, each with its check for the ramps."""
        labels = {name: self.classes_[one.astype(np.int64)] for name, one in is_second.items()}
        prepared = prepare(labels, tables, kind="labels", pos_label=self._positive, classes=self.classes_)
        pairs = zip(self.goals_, ramps, strict=True)
        return [goal.evaluate_where_possible(prepared)._replace(ramp=one) for goal, one in pairs]

    def _scores(self, rows: Any, *, shift: float = 0.0) -> FloatArray:
        """Return scores of checked rows, shifted; 0 where that may be rounding, which differs between batches."""
        if self.kernel == LINEAR:
            coefficients, support, products = self.coef_[0], None, rows @ self.coef_[0]
        else:
            coefficients, support = self.dual_coef_[0], self.support_rows_
            products = kernel_of(rows, support, self.kernel, self.gamma) @ coefficients
        offset = self.intercept_[0] + shift
        scores = np.asarray(products + offset, dtype=np.float64)
        near = np.flatnonzero(np.abs(scores) <= self._near)
        if near.size:
            noise = self._noise(rows[near], support, np.append(coefficients, offset))
            scores[near[np.abs(scores[near]) <= noise]] = 0.0
        return scores

    def _noise(self, rows: Any, support: Any, point: FloatArray) -> FloatArray:
        """Return by how much the scores of rows may be off by rounding at a point: coefficients, then the bias."""
        if self.kernel == LINEAR:
            return linear_noise(rows, point[:-1], point[-1])
        return kernel_noise(rows, support, self.kernel, self.gamma, point[:-1], point[-1])

    def check_loaded(self) -> None:
        """Check the values that were read from a file."""
        check_kernel(self.kernel)
        if hasattr(self, "classes_"):
            require_draws(self)
            is_linear = self.kernel == LINEAR
            coefficients = self.coef_[0] if is_linear else self.dual_coef_[0]
            n_coefficients = self.n_features_in_ if is_linear else self.support_rows_.shape[0]
            check_vector(coefficients, "coef_ or dual_coef_", n_coefficients, "one for each feature or row")
            check_vector(self.intercept_, "intercept_", 1, "the offset")
            check_vector(np.atleast_1d(self.threshold_), "threshold_", 1, "a score")

    def check_parameters(self) -> None:
        """Check the parameters; rows are not needed."""
        check_kernel(self.kernel)
        check_choice(self._kind, "decision", (_FIXED, _RAMP))
        check_choice(self.solver, "solver", _SOLVERS)
        check_count(self.max_majorizations, "max_majorizations")
        check_positive(self.tol, "tol")
        check_positive(self.max_multiplier, "max_multiplier")
        for name in ("gamma", "regularization"):
            if getattr(self, name) is not None:
                check_positive(getattr(self, name), name)
        if isinstance(self.objective, str) and is_risk_text(self.objective):
            raise ValueError(f"objective must be a rate, as error_rate() is; got the risk {self.objective!r}.")
        if self.objective is not None:
            as_objective(self.objective)

    def _check_rows(
        self, X: Any, y: Any, columns: dict[str, Any], sensitive_features: Any, datasets: Mapping[str, Table] | None
    ) -> "_Rows":
        refuse_texts(X, self)
        checked, labels = validate_data(self, X, y, accept_sparse="csr", dtype=_FLOATS)
        check_classification_targets(labels)
        self.classes_ = np.unique(labels)
        if len(self.classes_) != _BINARY:
            raise ValueError(
                "Only binary classification is supported: goals on rates refer to a positive and a negative class; "
                f"y has {len(self.classes_)} class{'es' if len(self.classes_) > 1 else ''}: "
                f"{', '.join(map(repr, self.classes_[:10].tolist()))}."
            )
        table_rows = X if is_frame(X) else checked  # goals may use the columns of a data frame
        tables = with_train(Table(table_rows, labels, sensitive_features, **columns), datasets)
        weights = np.ones(len(labels)) if columns["sample_weight"] is None else columns["sample_weight"]
        return _Rows(tables, checked, float(np.asarray(weights, dtype=np.float64).sum()))

    def _problem(self, rows: "_Rows") -> "_Training":
        """Return the problem on the rows of the datasets that goals and objective name."""
        tables, classes = rows.tables, signs_of(self.classes_, self.pos_label)
        warn_of_the_positive_class(self.goals_, self.objective, self.classes_, self.pos_label)
        self._positive = classes[1]
        bound = bind(self.goals_, tables, classes=classes)
        rate = error_rate(TRAIN) if self.objective is None else self.objective
        objective = bind_objective(rate, tables, classes=classes)
        used = [name for name in tables if name in bound.weights or name in objective.weights]
        features = [rows.train if name == TRAIN else _as_numbers(self, tables[name].X, name) for name in used]
        stacked = stack_rows(features)
        sizes = {name: tables[name].n_samples for name in used}
        rate_weights = [objective.weights.get(name, sp.csr_array((1, sizes[name]))) for name in used]
        if self.regularization is None and not _LEAST_TOTAL <= rows.total <= _MOST_TOTAL:
            raise ValueError(
                f"The weights of the training rows sum to {rows.total:.4g}. By default the regularization is 1 "
                "divided by that sum, which is too large or too small to train with. Scale the weights to an "
                "average of 1, or pass regularization."
            )
        regularization = 1.0 / rows.total if self.regularization is None else float(self.regularization)
        if self.kernel == LINEAR:
            machine = LinearMachine(stacked, fit_bias=self.fit_intercept)
        else:
            machine = KernelMachine(gram_of(stacked, self.kernel, self.gamma), fit_bias=self.fit_intercept)

        def build(limits: BoundGoals) -> RampProblem:
            scaled = sp.diags_array(1.0 / limits.units) @ stack_weights(limits, used, sizes)
            weights = sp.vstack([sp.hstack(rate_weights), scaled])
            constants = np.concatenate([objective.constants, -limits.bounds / limits.units])
            if self._positive == self.classes_[0]:  # scores are of the second class: predictions p become 1 - p
                constants = constants + np.asarray(weights.sum(axis=1)).ravel()
                weights = -weights
            return RampProblem(machine, weights, constants, regularization)

        return _Training(build(bound), bound, build, stacked, sizes)

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether it is fitted."""
        return "intercept_" in vars(self)

    def _set_solution(self, decided: CutSolution, training: "_Training") -> None:
        solution = decided.solution
        point = solution.state.point
        for name in ("coef_", "dual_coef_", "support_rows_"):  # of an earlier fit with another kernel
            self.__dict__.pop(name, None)
        if self.kernel == LINEAR:
            self.coef_ = point[None, :-1].copy()
        else:
            self.dual_coef_, self.support_rows_ = point[None, :-1].copy(), training.stacked
        units = training.bound.units
        self.threshold_, self._near = decided.cut.threshold, _FAR * float(decided.noise.max())
        self.intercept_ = -point[-1:] - self.threshold_
        self.multipliers_ = training.bound.prices(solution.multipliers / units)
        self.history_ = [one._replace(multipliers=one.multipliers / units) for one in solution.history]
        self.objective_value_ = solution.state.value
        self.lower_, self.gap_ = solution.history[-1].lower, solution.history[-1].gap
        self.n_iter_ = len(solution.history)

    def _set_checks(self, decided: CutSolution, training: "_Training", rows: "_Rows") -> None:
        """Set the checks of ramps and decisions on the training data, and warn where decisions miss goals."""
        state, ends = decided.solution.state, np.cumsum(list(training.sizes.values()))[:-1]
        is_second = state.scores - decided.noise > self.threshold_
        scores = dict(zip(training.sizes, np.split(state.scores, ends), strict=True))
        above = dict(zip(training.sizes, np.split(is_second, ends), strict=True))
        self.ramp_checks_ = self._ramp_checks(scores, rows.tables)
        self.indicator_checks_ = self._indicator_checks(above, rows.tables, self.ramp_checks_)
        if TRAIN not in training.sizes:  # neither goals nor objective name it
            scores[TRAIN] = self._scores(rows.train, shift=self.threshold_)
            above[TRAIN] = self._scores(rows.train) > 0
        is_drawn = self._kind == _RAMP
        chances = ramp(scores[TRAIN]) if is_drawn else above[TRAIN].astype(np.float64)
        train = rows.tables[TRAIN]
        weights = np.ones(len(chances)) if train.sample_weight is None else train.sample_weight
        weights = weights / weights.max()  # whose sum is finite
        labels = train.y == self.classes_[1]
        share = float(np.average(labels, weights=weights))
        self.train_error_ = float(np.average(np.where(labels, 1.0 - chances, chances), weights=weights))
        self.constant_error_ = min(share, 1.0 - share)
        self.is_constant_ = bool(np.ptp(ramp(state.scores)) == 0) if is_drawn else decided.cut.is_constant
        if self.goals_ and not is_drawn and not decided.cut.holds:
            missed, errors = self._list_missed(decided.cut, training.bound), (self.train_error_, self.constant_error_)
            warn_of_missed_goals(missed, *errors, has_offset=self.fit_intercept)
        elif self.goals_ and self.is_constant_:
            is_counted = np.asarray(np.abs(training.problem.weights).sum(axis=0) > 0)  # in the objective or in a goal
            whose = "one probability" if is_drawn else repr(self.classes_.tolist()[int(is_second[is_counted][0])])
            warn_of_a_constant(whose, self.train_error_, self.constant_error_)

    def _list_missed(self, cut: ThresholdCut, bound: BoundGoals) -> Iterator[str]:
        """Yield by how much decisions miss goals; one with a confidence may hold, and miss its tightened bound."""
        excess = np.full(len(self.goals_), -np.inf)
        np.maximum.at(excess, bound.owners, cut.excess * bound.units)
        for check, beyond in zip(self.indicator_checks_, excess.tolist(), strict=True):
            if not check.holds:
                yield str(check)
            elif beyond > 0 and check.goal.confidence is not None:
                yield f"{check.goal}: holds on these rows; its margin is too small for its confidence by {beyond:.4g}"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags


class _Training(NamedTuple):
    """The training problem, its goals, a function that builds it for other bounds, its rows, and sizes of datasets."""

    problem: RampProblem
    bound: BoundGoals
    rebuild: Rebuild
    stacked: Any
    sizes: dict[str, int]


class _Rows(NamedTuple):
    """The datasets by name, the checked features of the training rows, and their total weight."""

    tables: dict[str, Table]
    train: Any
    total: float


def _as_numbers(model: ConstrainedClassifier, X: Any, name: str | None = None) -> Any:
    """Return rows as numbers; errors name the dataset."""
    if name is not None:
        return checked_features(X, name, "to score its rows by", partial(_as_numbers, model))
    return validate_data(model, X, reset=False, accept_sparse="csr", dtype=_FLOATS)
