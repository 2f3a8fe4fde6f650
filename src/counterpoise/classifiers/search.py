"""Scores for searches over hyperparameters: what a model costs inside goals, on the test rows of each fold."""

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metadata_routing import MetadataRequest

from counterpoise._base.checks import check_confidence
from counterpoise._base.types import ArrayLike
from counterpoise.auditing.audit import FAILS, audit, defer_label_of
from counterpoise.classifiers.base import MixtureBase
from counterpoise.classifiers.goal import GoalClassifier
from counterpoise.goals import InfeasibleGoals, Table, as_goals
from counterpoise.goals.rates import is_maximized
from counterpoise.rules.options import Deferral

_BY_ROW = ("sensitive_features", "baseline")  # what goals may need beside X and y


class _TestRows(NamedTuple):
    """Labelled rows to score on, with what goals need beside them."""

    X: Any
    y: Any
    columns: dict[str, Any]  # arguments of ``fit``


class GoalScorer:
    """A scorer for scikit-learn, made by ``goal_scorer``: called with a fitted model and test rows."""

    def __init__(self, goals: Any, confidence: float, columns: dict[str, Any], **choice: Any) -> None:
        self.goals, self.confidence = as_goals(goals), check_confidence(confidence)
        self.columns, self.choice = columns, choice
        GoalClassifier(goals=self.goals, **choice).problem_of_fit()
        self._request = MetadataRequest(owner=self)
        self._request.score.add_request(param="sample_weight", alias=None)
        for name in _BY_ROW:
            self._request.score.add_request(param=name, alias=name not in columns)

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        sensitive_features: Any = None,
        baseline: ArrayLike | None = None,
    ) -> float:
        """Return the score on test rows; larger is better.

        Parameters
        ----------
        estimator : fitted classifier or pipeline
        X, y : test rows and their labels
        sample_weight, sensitive_features, baseline : optional
            What belongs to these rows. Default: the columns of ``goal_scorer``, matched by the index of X.

        Returns
        -------
        float

        Raises
        ------
        InfeasibleGoals
            If no thresholds of the model meet the goals on these rows.
        ValueError
            If a model that decides by rules of its own fails a goal there.
        """
        passed = {"sensitive_features": sensitive_features, "baseline": baseline}
        columns = {
            name: _matched(self.columns.get(name), X, name) if part is None else part for name, part in passed.items()
        }
        rows = _TestRows(X, y, columns | {"sample_weight": sample_weight})
        last = estimator[-1] if hasattr(estimator, "steps") else estimator
        if not isinstance(last, MixtureBase):
            return self._value_inside(estimator, rows)
        inputs = estimator[:-1].transform(X) if hasattr(estimator, "steps") else X
        return self._value_of_decisions(last, rows, inputs)

    def _value_inside(self, estimator: Any, rows: _TestRows) -> float:
        """Return the objective of the best rule of the model's scores that meets the goals, or its opposite."""
        inside = GoalClassifier(
            FrozenEstimator(estimator), goals=self.goals, confidence=None, random_state=0, **self.choice
        )
        try:
            inside.fit(rows.X, rows.y, **rows.columns)
        except InfeasibleGoals as error:
            raise error from None  # a search prints the traceback of each fold
        return _as_score(inside.value_, inside.objective_)

    def _value_of_decisions(self, model: MixtureBase, rows: _TestRows, inputs: Any) -> float:
        """Return the objective of the model's decisions, or its opposite, unless they are shown to fail a goal."""
        objective, positive = self.choice["objective"], self.choice["pos_label"]
        objective = model.objective_ if objective is None else objective
        known = {name: rows.columns[name] for name in _BY_ROW}
        audited = audit(
            self.goals or model.goals_,
            model.decision_proba(inputs, **known),
            Table(rows.X if hasattr(rows.X, "columns") else np.empty((len(rows.y), 0)), rows.y, **rows.columns),
            confidence=self.confidence,
            pos_label=model.pos_label if positive is None else positive,
            classes=model.classes_,
            defer_label=defer_label_of(model, None),
            kind="probabilities",
        )
        for one in audited:
            if one.verdict == FAILS:
                raise ValueError(
                    f"The decisions of {type(model).__name__} fail {one.goal.with_confidence(None)} on the "
                    f"{len(rows.y)} test rows: {one.estimate:.4g} there, and between {one.low:.4g} and {one.high:.4g} "
                    f"on new rows, with confidence {audited.confidence:.4g} for all goals. In a search error_score "
                    "says what such a model scores."
                )
        return _as_score(model.objective_value(inputs, rows.y, objective=objective, **rows.columns), objective)

    def set_score_request(self, **requests: bool | str | None) -> "GoalScorer":
        """Set what a search passes on, with scikit-learn's metadata routing.

        ``sensitive_features`` and ``baseline`` are requested unless the scorer has its own.

        Parameters
        ----------
        **requests
            True, False, or another name that the search knows it by, for ``sample_weight``, ``sensitive_features`` and
            ``baseline``.
        """
        for name, alias in requests.items():
            self._request.score.add_request(param=name, alias=alias)
        return self

    def get_metadata_routing(self) -> MetadataRequest:
        """Return what the scorer requests, for scikit-learn's metadata routing."""
        return self._request

    def __repr__(self) -> str:
        return f"goal_scorer({[str(goal) for goal in self.goals]})"


def goal_scorer(
    goals: Any = (),
    *,
    objective: Any = None,
    by: Any = (),
    deferral: Deferral | None = None,
    pos_label: Hashable = None,
    confidence: float = 0.95,
    sensitive_features: Any = None,
    baseline: Any = None,
) -> GoalScorer:
    """Make a scorer for searches over hyperparameters: what a model costs inside goals, on rows it was not trained on.

    Pass it as ``scoring`` to ``GridSearchCV``, ``RandomizedSearchCV``, ``cross_val_score`` or Optuna's
    ``OptunaSearchCV``. A search for accuracy or AUC looks at all thresholds or at the usual one; this one looks at the
    thresholds that the goals allow.

    A plain model scores by the least objective of any rule of its scores that meets the goals on the test rows, with a
    threshold for each group of ``by``. Where there is none, ``InfeasibleGoals`` is raised. ``GoalClassifier`` and other
    classifiers that choose their rules themselves score by the objective of their decisions on the test rows; where
    these rows show that a goal fails, a ``ValueError`` is raised. In a search both follow its ``error_score``: NaN with
    a warning, a number such as ``-1.0``, or ``"raise"``.

    Parameters
    ----------
    goals : goals or their texts, default=()
        As for ``GoalClassifier``, on the dataset ``train``: here the test rows. Default: none for a plain model, which
        then decides by its usual threshold; their own for classifiers that have goals.
    objective : risk, rate or ratio, or the text of one, optional
        What is minimised, or maximised where it is better when larger. Default: the error, or the classifier's own.
    by, deferral, pos_label
        As for ``GoalClassifier``, for plain models.
    confidence : float in (0, 1), default=0.95
        How surely test rows must show that decisions fail a goal.
    sensitive_features, baseline : pandas objects, optional
        Columns that goals use, for all rows: those of the test rows are found by the index of X, a pandas data frame.
        Default: what the search passes by scikit-learn's metadata routing, else columns of X.

    Returns
    -------
    GoalScorer
        Larger is better: the opposite of what is minimised, or the value of what is maximised.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import counterpoise as cp
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> scorer = cp.goal_scorer("recall(of=0) >= 0.95")
    >>> grid = {"min_samples_leaf": [5, 20, 80]}
    >>> search = GridSearchCV(DecisionTreeClassifier(random_state=0), grid, scoring=scorer).fit(X, y)
    >>> search.best_params_, round(float(search.best_score_), 3)
    ({'min_samples_leaf': 20}, -0.102)
    """
    columns = {"sensitive_features": sensitive_features, "baseline": baseline}
    for name, part in columns.items():
        if part is not None and not (hasattr(part, "loc") and part.index.is_unique):
            raise ValueError(
                f"{name} of a scorer must be a pandas object with a unique index, by which the rows of each fold are "
                f"found; got {type(part).__name__}. Or pass it to fit of the search, with scikit-learn's "
                "metadata routing on."
            )
    own = {name: part for name, part in columns.items() if part is not None}
    return GoalScorer(goals, confidence, own, objective=objective, by=by, deferral=deferral, pos_label=pos_label)


def _matched(column: Any, X: Any, name: str) -> Any:
    """Return a scorer's column for the rows of X, found by its index."""
    if column is None:
        return None
    if not hasattr(X, "loc"):
        raise ValueError(
            f"The scorer finds {name} by the index of X, so X must be a pandas data frame; got {type(X).__name__}. Or "
            f"pass {name} to fit of the search, with scikit-learn's metadata routing on."
        )
    missing = X.index.difference(column.index)
    if len(missing):
        raise ValueError(f"{name} of the scorer lacks {len(missing)} rows of X; the first has the index {missing[0]}.")
    return column.loc[X.index]


def _as_score(value: float, objective: Any) -> float:
    return float(value if is_maximized(objective) else -value)
