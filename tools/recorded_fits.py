"""Do results stay the same? Runs a thousand small fits through the public interface and compares them with a record.

    python tools/recorded_fits.py record fits.json        # before a change that must not change results
    python tools/recorded_fits.py compare fits.json       # after it: prints each difference, exits 1 if there is any
    python tools/recorded_fits.py compare fits.json --only mixture --jobs 2
    PYTHONPATH=OTHER/src python tools/recorded_fits.py record fits.json     # of another checkout

A fit is recorded as its decisions about new rows, its probabilities, its rules, mixture, value, gap and prices, and
what its goals come to. Decisions and other texts must be equal, numbers to within 1e-9, relative and absolute. Where a
fit or a method raises, the class of the exception is compared; its message is recorded, and not compared. Of a
long array the first numbers and two sums are kept. Every case has its own name and its own random numbers, so that
any part of them can be run alone, in any order.
"""

import argparse
import hashlib
import json
import math
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from threadpoolctl import threadpool_limits

import counterpoise as cp
from counterpoise import Checkpoint, Deferral, Draws, Groups, Stopping, risks
from counterpoise.goals import Table
from counterpoise.learners import HistogramTree, LeastErrorStump, Resampled, Stump

TOLERANCE = 1e-9  # relative and absolute
N_KEPT = 50  # numbers of an array that are written down
KEPT = 0.8  # share of the labels that the deployed model is given; the others are drawn
N_NEW = 150  # rows that are decided about, at most
KEY = bytes(range(32))  # of sticky draws
LEARNED = [
    "alpha_",
    "beta_",
    "bound_if_learner_exact_",
    "C_",
    "certificate_",
    "classes_",
    "coef_",
    "constant_error_",
    "degrees_of_freedom_",
    "eta_",
    "fixed_cost_",
    "gap_",
    "intercept_",
    "is_constant_",
    "max_models_cost_",
    "mixture_",
    "multipliers_",
    "n_features_in_",
    "n_models_",
    "objective_",
    "objective_value_",
    "penalty_",
    "radius_",
    "risk_",
    "robust_losses_",
    "threshold_",
    "train_error_",
    "value_",
    "votes_",
    "weighted_losses_",
]  # attributes that are recorded, where a model has them


# ---- rows ----------------------------------------------------------------------------------------------------------


class Rows(NamedTuple):
    """Labelled rows in three parts: to train models on, to choose on, and new ones."""

    X: Any
    y: Any
    columns: dict[str, Any]  # of groups: sex and region
    baseline: Any  # what the deployed model says
    weights: Any
    train: slice
    choose: slice
    new: slice

    def fit_options(self, part: slice, *names: str) -> dict[str, Any]:
        """Return columns of a part of the rows as arguments of fit, those that are named."""
        given = {
            "sex": ("sensitive_features", {"sex": self.columns["sex"][part]}),
            "columns": ("sensitive_features", {name: column[part] for name, column in self.columns.items()}),
            "frame": ("sensitive_features", pd.DataFrame({name: one[part] for name, one in self.columns.items()})),
            "group": ("sensitive_features", self.columns["sex"][part]),
            "baseline": ("baseline", self.baseline[part]),
            "weights": ("sample_weight", self.weights[part]),
            "largest": ("largest_weight", 3.0),
            "mail": ("datasets", {"mail": Table(self.X[self.new][:60], baseline=self.baseline[self.new][:60])}),
        }
        return dict(given[name] for name in names)


@cache
def rows_of(name: str) -> Rows:
    """Return the rows of a name; the same in every process."""
    X, y = _raw(name)
    rng = np.random.default_rng(7)
    order = rng.permutation(len(y))
    X, y = X[order], y[order]
    first = np.asarray(X)[:, 0].astype(float)
    share = 0.94 if name == "few" else 0.5
    sex = np.where(rng.random(len(y)) < share - 0.2 * (first > np.median(first)), "F", "M")
    region = rng.choice(["north", "south", "west"], len(y), p=[0.5, 0.4, 0.1])
    classes = np.unique(y)
    baseline = np.where(rng.random(len(y)) < KEPT, y, rng.choice(classes, len(y)))
    weights = rng.choice([1.0, 2.0, 3.0], len(y))
    ends = len(y) // 3, 3 * len(y) // 4
    return Rows(
        X,
        y,
        {"sex": sex, "region": region},
        baseline,
        weights,
        slice(0, ends[0]),
        slice(*ends),
        slice(ends[1], min(len(y), ends[1] + N_NEW)),
    )


def _raw(name: str) -> tuple[Any, Any]:
    """Return features and labels."""
    if name in SYNTHETIC:
        n_rows, settings = SYNTHETIC[name]
        X, y = make_classification(n_rows, **{"n_features": 8, "n_informative": 4, "flip_y": 0.1} | settings)
    elif name == "cancer":
        X, y = load_breast_cancer(return_X_y=True)
        X = X[:, :10]
    else:
        X, y = {"iris": load_iris, "wine": load_wine}[name](return_X_y=True)
    if name == "ties":
        X = np.round(X[:, :3])
    if name == "words":
        y = np.where(y == 1, "default", "paid")
    if name == "animals":
        y = np.array(["cat", "dog", "eel", "fox"])[y]
    return X, y


SYNTHETIC: dict[str, tuple[int, dict[str, Any]]] = {
    "two": (800, {"class_sep": 0.8, "random_state": 0}),
    "small": (200, {"class_sep": 1.0, "random_state": 1}),
    "large": (1500, {"class_sep": 0.6, "random_state": 2}),
    "ties": (600, {"class_sep": 0.9, "random_state": 3}),
    "few": (500, {"class_sep": 0.8, "random_state": 4}),
    "words": (700, {"class_sep": 0.7, "weights": [0.7], "random_state": 5}),
    "three": (600, {"n_classes": 3, "class_sep": 1.0, "random_state": 6}),
    "animals": (800, {"n_classes": 4, "class_sep": 1.2, "random_state": 7}),
}
TWO_CLASSES = ("two", "ties", "few", "words", "cancer")
MORE_CLASSES = ("iris", "wine", "three", "animals")


@cache
def trained(name: str, n_models: int = 1) -> list[Any]:
    """Return models that were trained on the first part of the rows."""
    rows = rows_of(name)
    models = [
        make_pipeline(StandardScaler(), LogisticRegression()),
        DecisionTreeClassifier(max_depth=4, random_state=0),
        GaussianNB(),
        DecisionTreeClassifier(max_depth=2, max_features=2, random_state=1),
        RandomForestClassifier(8, max_depth=3, random_state=2),
        make_pipeline(StandardScaler(), KNeighborsClassifier(7)),
        DecisionTreeClassifier(max_depth=1, random_state=3),
        HistogramTree(3),
    ]
    return [model.fit(rows.X[rows.train], rows.y[rows.train]) for model in models[:n_models]]


# ---- what is recorded ----------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it; of a long array the first entries and what stands for the others."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, np.ndarray | pd.Series | pd.DataFrame):
        return _plain_array(np.asarray(value))
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    return value if isinstance(value, int | float) else str(value)


def _plain_array(array: np.ndarray) -> Any:
    flat = array.ravel()
    if array.dtype.kind == "f":
        places = np.cos(np.arange(flat.size))  # tells the order of numbers apart
        sums = [float(np.nansum(flat)), float(np.nansum(flat * places))] if flat.size > N_KEPT else []
        return {"shape": list(array.shape), "first": flat[:N_KEPT].tolist(), "sums": sums}
    entries = flat.tolist()
    digest = hashlib.sha256("\n".join(map(str, entries)).encode()).hexdigest()
    return {"shape": list(array.shape), "first": entries[:12], "sha256": digest}


def attempt(function: Callable[..., Any], *given: Any, **options: Any) -> Any:
    """Return what a function returns, as plain values, or the class of the exception that it raises."""
    try:
        return plain(function(*given, **options))
    except Exception as error:  # noqa: BLE001 - whatever is raised is part of the record
        return failure(error)


def failure(error: Exception) -> dict[str, Any]:
    """Return the record of an exception."""
    record = {"exception": type(error).__name__, "message": str(error)[:500]}
    if isinstance(error, cp.goals.InfeasibleGoals):
        record["conflict"] = [str(goal) for goal in error.conflict]
        record["least_violation"] = error.least_violation
        record["nearest_bounds"] = {str(goal): bound for goal, bound in error.nearest_bounds.items()}
        record["joint_bounds"] = {str(goal): bound for goal, bound in error.joint_bounds.items()}
        record["proven"] = [error.proven, error.nearest_proven]
    return record


def checks_of(checks: Any) -> Any:
    """Return what goals come to."""
    return [[str(check.goal), bool(check.holds), float(check.value), float(check.bound)] for check in checks]


def observed(model: Any, rows: Rows, *names: str) -> dict[str, Any]:
    """Return all that a fitted model says: what it learned, and its decisions about new rows."""
    record: dict[str, Any] = {"learned": {name: _learned(model, name) for name in LEARNED if _has(model, name)}}
    if _has(model, "estimators_"):
        record["n_estimators"] = len(model.estimators_)
    if _has(model, "rules_"):
        parts = ("model", "thresholds", "lower", "benefits")
        record["rules"] = [{part: plain(getattr(rule, part, None)) for part in parts} for rule in model.rules_ or ()]
    looks = rows.fit_options(rows.new, *(name for name in names if name not in {"weights", "largest", "mail"}))
    X, y = rows.X[rows.new], rows.y[rows.new]
    seen = looks if isinstance(model, cp.GoalClassifier | cp.MixtureClassifier | cp.LPBoostClassifier) else {}
    record["decisions"] = attempt(model.predict, X, **seen)
    for name in ("decision_proba", "predict_proba", "decision_function"):
        if hasattr(model, name):
            record[name] = attempt(getattr(model, name), X, **(seen if name == "decision_proba" else {}))
    if isinstance(model, cp.GoalClassifier | cp.MixtureClassifier | cp.LPBoostClassifier | cp.AdaLPBoostClassifier):
        with_ids = {"ids": np.arange(len(y)), **seen}
        record["by_ids"] = attempt(model.predict, X, **with_ids)
        record["goals"] = attempt(lambda: checks_of(model.check_goals()))
    if hasattr(model, "check_goals"):
        others = rows.fit_options(rows.new, "mail") if "mail" in names else {}
        record["goals_on_new_rows"] = attempt(lambda: checks_of(model.check_goals(X, y, **looks, **others)))
    for name in ("staged_predict", "staged_decision_function", "staged_decision_proba"):
        if hasattr(model, name):
            record[name] = attempt(lambda name=name: np.array(list(getattr(model, name)(X, **seen))))
    return record


def _has(model: Any, name: str) -> bool:
    try:
        return hasattr(model, name)
    except Exception:  # noqa: BLE001 - a property that raises is recorded as what it raises
        return True


def _learned(model: Any, name: str) -> Any:
    if name in {"votes_", "robust_losses_", "weighted_losses_", "penalty_", "C_", "radius_"}:
        return attempt(lambda: [plain(np.asarray(one, dtype=float)) for one in _listed(getattr(model, name))])
    return attempt(getattr, model, name)


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else [value]


# ---- cases ---------------------------------------------------------------------------------------------------------


class Case(NamedTuple):
    """A fit that has a name."""

    name: str
    run: Callable[[], dict[str, Any]]


class Setting(NamedTuple):
    """Parameters of an estimator and the columns that its fit is given."""

    parameters: dict[str, Any]
    columns: tuple[str, ...] = ("columns", "baseline")


def setting(*columns: str, **parameters: Any) -> Setting:
    """Return a setting; without columns fit is given the groups and the baseline."""
    return Setting(parameters, columns or ("columns", "baseline"))


def positive(rows: Rows) -> Any:
    """Return the positive class: the rarer of words, or else the last."""
    return "default" if "default" in rows.y else np.unique(rows.y)[-1].item()


def goal_case(data: str, asked: Setting, n_models: int = 1) -> dict[str, Any]:
    """Choose rules of models that are fitted."""
    rows = rows_of(data)
    settings = {"cv": "prefit", "random_state": 0} | asked.parameters
    if data in TWO_CLASSES:
        settings = {"pos_label": positive(rows)} | settings
    model = cp.GoalClassifier(trained(data, n_models), **settings)
    model.fit(rows.X[rows.choose], rows.y[rows.choose], **rows.fit_options(rows.choose, *asked.columns))
    return observed(model, rows, *asked.columns)


PARITY = "max_difference(positive_rate, train, by=sex) <= 0.1"
ODDS = "equalized_odds_difference(train, by=sex) <= 0.15"
GOAL_SETTINGS = {
    "nothing": setting(),
    "recall": setting(goals="recall(train) >= 0.8"),
    "high recall": setting(goals="recall(train) >= 0.93"),
    "three goals": setting(
        goals=[
            "recall(train) >= 0.7",
            "abs(false_positive_rate(train, sex=F) - false_positive_rate(train, sex=M)) <= 0.1",
            "churn(train) <= 0.4",
        ]
    ),
    "parity": setting(goals=PARITY),
    "parity by sex": setting(goals=[PARITY, "recall(train) >= 0.75"], by="sex"),
    "odds by sex": setting(goals=ODDS, by="sex"),
    "odds by sex, sticky": setting(goals=ODDS, by="sex", decision="sticky"),
    "by two columns": setting(
        goals=["recall(train) >= 0.75"], by=Groups(("sex", "region"), unknown="pool", min_rows=5)
    ),
    "by two columns, refused": setting(goals=["recall(train) >= 0.75"], by=["sex", "region"]),
    "pooled": setting(goals=[PARITY], by=Groups("region", unknown="pool", min_rows=40)),
    "pooled, sticky": setting(goals=[PARITY], by=Groups("region", unknown="pool", min_rows=40), decision="sticky"),
    "by baseline": setting(goals="churn(train) <= 0.1", by="baseline"),
    "by baseline and sex": setting(goals=["churn(train) <= 0.15", PARITY], by=["baseline", "sex"], decision="sticky"),
    "wins": setting(goals=["win_loss_ratio(train) >= 0.15", "churn(train) <= 0.4"]),
    "sticky": setting(goals="recall(train) >= 0.85", decision="sticky"),
    "tail": setting(alpha=0.3, decision="sticky"),
    "tail, budget": setting(alpha=0.1, budget=0.02, decision="sticky", goals="recall(train) >= 0.7"),
    "tail by sex": setting(alpha=0.4, budget=0.05, by="sex", decision="sticky"),
    "tail, fixed": setting(alpha=0.3),
    "vote": setting(alpha=0.3, decision="vote", goals="recall(train) >= 0.7"),
    "sample": setting(alpha=0.5, decision="sample"),
    "key": setting(alpha=0.3, decision=Draws(KEY)),
    "worst group": setting(objective=risks.WorstGroup("sex"), by="sex"),
    "worst group, blind": setting(objective=risks.WorstGroup("sex"), goals="recall(train) >= 0.6"),
    "worst group, sticky": setting(objective=risks.WorstGroup("region"), decision="sticky"),
    "kl": setting(objective=risks.KL(0.1), decision="sticky"),
    "chi-square": setting(objective=risks.ChiSquare(0.2), decision="sticky", goals="recall(train) >= 0.75"),
    "calibrated": setting(objective=risks.EmpiricalLikelihood("calibrated"), decision="sticky"),
    "mean and tail": setting(objective="0.5 * Mean() + 0.5 * CVaR(0.2)", decision="sticky"),
    "variance": setting(objective=risks.MeanVariance(0.5), decision="sticky"),
    "false alarms": setting(objective="false_positive_rate(train)", goals="recall(train) >= 0.8"),
    "false alarms, sticky": setting(
        objective="false_positive_rate(train)", goals="recall(train) >= 0.8", decision="sticky"
    ),
    "rates": setting(objective="error_rate(train) + 0.5 * churn(train)", by="sex"),
    "deferral": setting(deferral=Deferral(0.2)),
    "deferral, goal": setting(deferral=Deferral(0.2), goals="defer_rate(train) <= 0.1"),
    "deferral, by sex": setting(
        deferral=Deferral(0.1, label="ask"),
        goals=["defer_rate(train) <= 0.2", "max_difference(defer_rate, train, by=sex) <= 0.05"],
        by="sex",
    ),
    "deferral, sticky": setting(
        deferral=Deferral(0.2), goals="defer_rate(train) <= 0.1", alpha=0.2, budget=0.03, decision="sticky"
    ),
    "deferral, decided": setting(
        deferral=Deferral(0.3), objective="defer_rate(train)", goals="decided_error_rate(train) <= 0.15"
    ),
    "confidence": setting(goals="recall(train) >= 0.7 with confidence 0.9"),
    "precision": setting(goals=["precision(train) >= 0.75", "recall(train) >= 0.3"]),
    "f1": setting(goals="f1_score(train) >= 0.6", decision="sticky"),
    "every group": setting(goals="every_group(recall, train, by=region) >= 0.6"),
    "ratio": setting(goals="min_ratio(positive_rate, train, by=sex) >= 0.8", by="sex"),
    "infeasible": setting(goals=["recall(train) >= 0.995", "false_positive_rate(train) <= 0.001"]),
    "infeasible, sticky": setting(
        goals=["recall(train) >= 0.995", "positive_rate(train) <= 0.2"], decision="sticky", by="sex"
    ),
    "weights": setting("sex", "weights", goals="recall(train) >= 0.8"),
    "weights, sticky": setting("frame", "weights", goals=[PARITY], alpha=0.5, decision="sticky", by="sex"),
    "weights, confidence": setting("sex", "weights", "largest", goals="recall(train) >= 0.6 with confidence 0.9"),
    "frame": setting("frame", goals=[PARITY, "recall(train, region=north) >= 0.7"], by="sex"),
    "group": setting("group", goals="max_difference(recall, train, by=group) <= 0.1", by="group"),
    "mail": setting("columns", "baseline", "mail", goals=["churn(mail) <= 0.42", "positive_rate(mail) <= 0.7"]),
    "mail, sticky": setting("columns", "baseline", "mail", goals=["churn(mail) <= 0.4", PARITY], decision="sticky"),
}
POOLED = ("recall", "parity by sex", "sticky", "tail, budget", "deferral, goal", "worst group", "odds by sex", "kl")


def goal_cases() -> Iterator[Case]:
    """Yield rules of two classes."""
    for data in TWO_CLASSES:
        for name, asked in GOAL_SETTINGS.items():
            if data in {"two", "ties", "words"} or len(asked.parameters) != 2 or "by" in asked.parameters:
                yield Case(f"goal/{data}/{name}", partial(goal_case, data, asked))
    for data in ("two", "cancer"):
        for name in POOLED:
            yield Case(f"goal/{data}/three models/{name}", partial(goal_case, data, GOAL_SETTINGS[name], 3))
    for name in ("recall", "tail, budget"):
        yield Case(f"goal/large/{name}", partial(goal_case, "large", GOAL_SETTINGS[name]))
        yield Case(f"goal/small/{name}", partial(goal_case, "small", GOAL_SETTINGS[name]))


CLASS_SETTINGS = {
    "nothing": setting(),
    "every class": setting(goals="every_class(recall, train) >= 0.5"),
    "sticky": setting(goals="every_class(recall, train) >= 0.52", decision="sticky"),
    "tail": setting(alpha=0.3, decision="sticky"),
    "tail, goal": setting(alpha=0.2, decision="sticky", goals="error_rate(train) <= 0.42"),
    "deferral": setting(deferral=Deferral(0.2), goals="defer_rate(train) <= 0.2"),
    "deferral, sticky": setting(
        deferral=Deferral(0.2), alpha=0.3, decision="sticky", goals="defer_rate(train) <= 0.15"
    ),
    "macro": setting(objective="-1 * macro(recall, train)"),
    "parity": setting(goals="max_difference(error_rate, train, by=sex) <= 0.1", by="sex"),
    "churn": setting(goals="churn(train) <= 0.5"),
    "infeasible": setting(goals=["every_class(recall, train) >= 0.999", "churn(train) <= 0.02"]),
    "weights": setting("columns", "weights", goals="error_rate(train) <= 0.5"),
    "worst group": setting(objective=risks.WorstGroup("sex"), decision="sticky"),
    "vote": setting(alpha=0.4, decision="vote"),
}
OF_CLASSES = {
    "iris": {
        "of": setting(goals="recall(train, of=1) >= 0.9"),
        "confusion": setting(goals="confusion(train, of=2, called=1) <= 0.05"),
    },
    "three": {
        "of": setting(goals="recall(train, of=2) >= 0.85"),
        "cost": setting(objective="cost(train, {0->1: 5, 2->0: 3})"),
    },
    "animals": {
        "of": setting(goals="precision(train, of=fox) >= 0.7"),
        "rate": setting(goals="positive_rate(train, of=cat) <= 0.2", decision="sticky"),
    },
}


def class_cases() -> Iterator[Case]:
    """Yield rules of three and four classes."""
    for data in MORE_CLASSES:
        for name, asked in (CLASS_SETTINGS | OF_CLASSES.get(data, {})).items():
            yield Case(f"classes/{data}/{name}", partial(goal_case, data, asked))
    for name in ("every class", "tail, goal"):
        yield Case(f"classes/three/two models/{name}", partial(goal_case, "three", CLASS_SETTINGS[name], 2))


def training_case(data: str, estimator: Any, asked: Setting, form: str = "rows") -> dict[str, Any]:
    """Train a model and choose its rule on folds, or on other rows."""
    rows = rows_of(data)
    both = slice(0, rows.choose.stop)
    X, y = rows.X[both], rows.y[both]
    options = rows.fit_options(both, *asked.columns)
    if form == "validation":
        X, y, options = rows.X[rows.train], rows.y[rows.train], rows.fit_options(rows.train, *asked.columns)
        later = rows.fit_options(rows.choose, *asked.columns)
        options |= {"X_val": rows.X[rows.choose], "y_val": rows.y[rows.choose]}
        options |= {f"{name}_val": value for name, value in later.items()}
    if form == "splits":
        asked.parameters["cv"] = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    if form == "data frame":
        X = pd.DataFrame(X, columns=[f"x{place}" for place in range(X.shape[1])])
        rows = rows._replace(X=pd.DataFrame(rows.X, columns=X.columns))
    if form == "frozen":
        estimator = FrozenEstimator(trained(data)[0])
    more = {"pos_label": positive(rows)} if data in TWO_CLASSES else {}
    model = cp.GoalClassifier(
        estimator if estimator is None else clone(estimator), **{"random_state": 0} | more | asked.parameters
    ).fit(X, y, **options)
    return observed(model, rows, *asked.columns)


def training_cases() -> Iterator[Case]:
    """Yield models that GoalClassifier trains."""
    linear = make_pipeline(StandardScaler(), LogisticRegression())
    estimators = {
        "linear": linear,
        "tree": HistogramTree(3),
        "forest": RandomForestClassifier(6, max_depth=3, random_state=0),
        "bayes": GaussianNB(),
        "margin": make_pipeline(StandardScaler(), LinearSVC(random_state=0)),
        "boosted": HistGradientBoostingClassifier(max_iter=6, max_leaf_nodes=6, random_state=0),
        "neighbours": KNeighborsClassifier(5),
    }
    recall = {"goals": ["recall(train) >= 0.8"]}
    for name, estimator in estimators.items():
        for cv in ("auto", 3):
            asked = setting(**recall, cv=cv)
            yield Case(f"training/two/{name}/cv={cv}", partial(training_case, "two", estimator, asked))
        asked = setting(goals="every_class(recall, train) >= 0.45", cv=3)
        yield Case(f"training/three/{name}", partial(training_case, "three", estimator, asked))
    for data in ("words", "ties", "cancer"):
        asked = setting(goals=[PARITY], by="sex", cv="auto")
        yield Case(f"training/{data}/by sex", partial(training_case, data, linear, asked))
    for form in ("validation", "splits", "data frame", "frozen"):
        for name, asked in {
            "fixed": setting(**recall),
            "sticky": setting(**recall, alpha=0.4, decision="sticky"),
        }.items():
            yield Case(f"training/two/{form}/{name}", partial(training_case, "two", linear, asked, form))
    asked = setting("sex", "weights", **recall)
    yield Case("training/two/weights", partial(training_case, "two", linear, asked))
    yield Case("training/two/weights, validation", partial(training_case, "two", linear, asked, "validation"))
    yield Case("training/small/default model", partial(training_case, "small", None, setting(**recall, cv=3)))
    pair = setting(**recall, cv=3)
    yield Case("training/small/two models", partial(two_models_case, pair))


def two_models_case(asked: Setting) -> dict[str, Any]:
    """Train two models and choose one of them."""
    rows = rows_of("small")
    both = slice(0, rows.choose.stop)
    model = cp.GoalClassifier([GaussianNB(), HistogramTree(2)], random_state=0, pos_label=1, **asked.parameters)
    model.fit(rows.X[both], rows.y[both], **rows.fit_options(both, *asked.columns))
    return observed(model, rows, *asked.columns)


def mixture_case(data: str, asked: Setting, n_models: int = 5, form: str = "models") -> dict[str, Any]:
    """Mix the predictions of models that are fitted."""
    rows = rows_of(data)
    pool = list(trained(data, n_models))
    if form == "functions":
        pool = [one.predict for one in pool]
    if form == "stored":
        pool = [one.predict(rows.X[rows.choose]) for one in pool]
    more = {"pos_label": positive(rows)} if data in TWO_CLASSES else {}
    model = cp.MixtureClassifier(pool, **{"random_state": 0} | more | asked.parameters)
    model.fit(rows.X[rows.choose], rows.y[rows.choose], **rows.fit_options(rows.choose, *asked.columns))
    return observed(model, rows, *asked.columns)


MIXTURE_SETTINGS = {
    "default": setting(),
    "mean": setting(alpha=1.0),
    "tail": setting(alpha=0.2),
    "budget": setting(alpha=0.1, budget=0.02),
    "recall": setting(alpha=0.3, goals="recall(train) >= 0.55"),
    "parity": setting(alpha=0.5, goals=[PARITY, "churn(train) <= 0.5"]),
    "few models": setting(alpha=0.2, max_models=2),
    "one model": setting(alpha=0.2, max_models=1, goals="recall(train) >= 0.5"),
    "vote": setting(alpha=0.2, decision="vote"),
    "sample": setting(alpha=0.2, decision="sample"),
    "key": setting(alpha=0.2, decision=Draws(KEY)),
    "worst group": setting(objective=risks.WorstGroup("sex")),
    "kl": setting(objective=risks.KL(0.2)),
    "chi-square": setting(objective=risks.ChiSquare("calibrated")),
    "rate": setting(objective="false_positive_rate(train)", goals="recall(train) >= 0.6"),
    "infeasible": setting(alpha=0.3, goals=["recall(train) >= 0.999", "positive_rate(train) <= 0.1"]),
    "weights": setting("columns", "weights", alpha=0.3, goals="error_rate(train) <= 0.4"),
    "mail": setting("columns", "baseline", "mail", alpha=0.4, goals="churn(mail) <= 0.4"),
    "fixed": setting(decision="fixed", alpha=1.0),
}


def mixture_cases() -> Iterator[Case]:
    """Yield mixtures of models."""
    for data in ("two", "ties", "words"):
        for name, asked in MIXTURE_SETTINGS.items():
            yield Case(f"mixture/{data}/{name}", partial(mixture_case, data, asked))
    for name in ("default", "budget", "vote", "few models", "worst group", "weights"):
        yield Case(f"mixture/three/{name}", partial(mixture_case, "three", MIXTURE_SETTINGS[name], 4))
    for n_models in (3, 8):
        for name in ("tail", "recall", "few models"):
            asked = MIXTURE_SETTINGS[name]
            yield Case(f"mixture/cancer/{n_models} models/{name}", partial(mixture_case, "cancer", asked, n_models))
    for form in ("functions", "stored"):
        for name in ("tail", "recall"):
            yield Case(f"mixture/two/{form}/{name}", partial(mixture_case, "two", MIXTURE_SETTINGS[name], 5, form))


def fitted_case(data: str, model: Any, columns: tuple[str, ...] = (), validation: bool = False) -> dict[str, Any]:
    """Fit any estimator to all but the new rows."""
    rows = rows_of(data)
    both = rows.train if validation else slice(0, rows.choose.stop)
    X, options = rows.X / np.abs(rows.X).max(axis=0), rows.fit_options(both, *columns)
    rows = rows._replace(X=X)
    if validation:
        options |= {"X_val": X[rows.choose], "y_val": rows.y[rows.choose]}
        later = rows.fit_options(rows.choose, *columns)
        options |= {f"{name}_val": one for name, one in later.items() if name in {"sensitive_features", "baseline"}}
    model = clone(model)
    return observed(model.fit(X[both], rows.y[both], **options), rows, *columns)


def constrained_cases() -> Iterator[Case]:
    """Yield linear models inside goals."""
    settings = {
        "nothing": setting(),
        "parity": setting(goals="positive_rate(train, sex=F) >= 0.8 * positive_rate(train, sex=M)"),
        "recall": setting(goals="recall(train) >= 0.8"),
        "ramp": setting(goals="recall(train) >= 0.8", decision="ramp"),
        "objective": setting(objective="false_positive_rate(train)", goals="recall(train) >= 0.7"),
        "churn": setting(goals="churn(train) <= 0.4"),
        "weights": setting("columns", "weights", goals="positive_rate(train) <= 0.4"),
        "no intercept": setting(goals="recall(train) >= 0.6", fit_intercept=False),
        "infeasible": setting(goals=["recall(train) >= 0.99", "recall(train) <= 0.01"]),
        "bad kernel": setting(kernel="cubic"),
    }
    for data in ("two", "ties"):
        for name, asked in settings.items():
            model = cp.ConstrainedClassifier(random_state=0, pos_label=1, **asked.parameters)
            yield Case(f"constrained/{data}/{name}", partial(fitted_case, data, model, asked.columns))
    rbf = cp.ConstrainedClassifier(kernel="rbf", random_state=0, goals="recall(train) >= 0.8")
    yield Case("constrained/small/rbf", partial(fitted_case, "small", rbf))
    yield Case("constrained/three/refused", partial(fitted_case, "three", cp.ConstrainedClassifier()))


def boosting_cases() -> Iterator[Case]:
    """Yield boosting for the worst-off, with and without goals."""
    tree = HistogramTree(2)
    goals = {"goals": ["recall(train) >= 0.6", PARITY]}
    held_out = {"stopping": Stopping(validation_fraction=0.3)}
    shared = {
        "plain": setting(),
        "mean": setting(alpha=1.0),
        "no budget": setting(alpha=0.2, budget=None),
        "goals": setting(**goals),
        "goals, held out": setting(**goals, **held_out, alpha=0.5),
        "held out": setting(**held_out),
        "folds": setting(stopping=Stopping(n_folds=3)),
        "folds, goals": setting(stopping=Stopping(n_folds=2), **goals),
        "patience": setting(stopping=Stopping(2, validation_fraction=0.3), n_estimators=15),
        "outliers": setting(outlier_fraction=0.05),
        "vote": setting(decision="vote"),
        "key": setting(decision=Draws(KEY)),
        "average": setting(mixture="average"),
        "first": setting(mixture="first"),
        "worst group": setting(objective=risks.WorstGroup("sex")),
        "kl": setting(objective=risks.KL(0.2)),
        "rate": setting(objective="false_positive_rate(train)", goals="recall(train) >= 0.6"),
        "weights": setting("columns", "weights"),
        "mail": setting("columns", "baseline", "mail", goals="churn(mail) <= 0.4"),
        "infeasible": setting(goals=["recall(train) >= 0.999", "positive_rate(train) <= 0.05"], alpha=1.0),
    }
    own = {
        cp.LPBoostClassifier: {
            "beta": setting(beta=40.0),
            "beta by theory": setting(beta="theory"),
            "target": setting(target=0.5, n_estimators=15),
            "scores": setting(**goals, **held_out, scores=True),
            "no scores": setting(**goals, **held_out, scores=False),
            "goals, mean": setting(**goals, alpha=1.0, n_estimators=12),
        },
        cp.AdaLPBoostClassifier: {
            "eta": setting(eta=1.0),
            "groups": setting("group", reweigh="groups"),
            "reweigh, bad": setting(reweigh="nobody"),
        },
    }
    for kind, more in own.items():
        name = kind.__name__.removesuffix("Classifier")
        for title, asked in (shared | more).items():
            settings = {"n_estimators": 5, "alpha": None if "objective" in asked.parameters else 0.3}
            settings |= {"random_state": 0, "pos_label": 1} | asked.parameters
            settings["alpha"] = None if "groups" in title else settings["alpha"]
            yield Case(f"{name}/two/{title}", partial(fitted_case, "two", kind(tree, **settings), asked.columns))
        small = {"n_estimators": 4, "alpha": 0.4, "random_state": 0}
        for title, learner in LEARNERS.items():
            yield Case(f"{name}/words/{title}", partial(fitted_case, "words", kind(learner, **small)))
        for data in ("iris", "three", "ties", "cancer"):
            yield Case(f"{name}/{data}/plain", partial(fitted_case, data, kind(tree, **small)))
        inside = kind(tree, goals="error_rate(train) <= 0.5", **small)
        yield Case(f"{name}/three/goals", partial(fitted_case, "three", inside))
        yield Case(
            f"{name}/small/default learner", partial(fitted_case, "small", kind(None, n_estimators=2, random_state=0))
        )
        for title in ("plain", "goals"):
            model = kind(tree, **small, **shared[title].parameters)
            yield Case(f"{name}/ties/validation, {title}", partial(fitted_case, "ties", model, ("columns",), True))
            yield Case(f"{name}/two/more rounds, {title}", partial(more_rounds_case, model))
            yield Case(f"{name}/two/checkpoint, {title}", partial(checkpoint_case, model))


LEARNERS = {
    "stump": Stump(),
    "deep tree": HistogramTree(4, min_samples_leaf=5),
    "least error": LeastErrorStump(),
    "tree of scikit-learn": DecisionTreeClassifier(max_depth=2, random_state=0),
    "drawn": Resampled(GaussianNB(), random_state=0),
    "no weights": KNeighborsClassifier(9),
}


def more_rounds_case(model: Any) -> dict[str, Any]:
    """Add rounds to a fit."""
    rows = rows_of("two")
    both = slice(0, rows.choose.stop)
    model = clone(model).fit(rows.X[both], rows.y[both], **rows.fit_options(both, "columns"))
    return observed(model.fit_more(3), rows, "columns")


def checkpoint_case(model: Any) -> dict[str, Any]:
    """Interrupt a fit after its second round and go on."""
    rows = rows_of("two")
    both = slice(0, rows.choose.stop)

    def interrupt(done: Any) -> None:
        if done.number == 2:
            raise KeyError(done.number)

    with tempfile.TemporaryDirectory() as folder:
        saved = Checkpoint(folder)
        first = clone(model).set_params(checkpoint=saved, callbacks=[interrupt])
        given = rows.X[both], rows.y[both]
        options = rows.fit_options(both, "columns")
        stopped = attempt(lambda: str(first.fit(*given, **options)))
        done = saved.rounds_done()
        whole = first.set_params(callbacks=[]).fit(*given, **options)
        other = attempt(lambda: str(clone(model).set_params(checkpoint=saved, alpha=0.9).fit(*given, **options)))
        return observed(whole, rows, "columns") | {"stopped": stopped, "rounds_done": done, "other_alpha": other}


def voting_cases() -> Iterator[Case]:
    """Yield ensembles that vote."""
    kinds = {
        cp.AdaBoostClassifier: {"slow": {"learning_rate": 0.3}},
        cp.VadaBoostClassifier: {"penalty": {"penalty": 0.2}, "bad": {"penalty": -1.0}},
        cp.EBBoostClassifier: {"penalty": {"penalty": 0.2}, "bad": {"penalty": "large"}},
        cp.RLPBoostClassifier: {"C": {"C": 5.0}, "bad": {"C": -1.0}},
        cp.RQPBoostClassifier: {"C": {"C": 5.0}, "bad": {"C": "some"}},
        cp.DROBoostClassifier: {
            "kl": {"radius": 0.02, "loss": "logistic", "divergence": "kl"},
            "chi-square": {"radius": 0.1, "divergence": "chi-square"},
            "cvar": {"radius": 0.2, "divergence": "cvar", "learning_rate": 1.0},
            "regressor": {"estimator": DecisionTreeRegressor(max_depth=2, random_state=0), "loss": "squared"},
            "radius_confidence": {"radius_confidence": 0.5},
            "bad": {"divergence": "distance"},
        },
    }
    auto = {"stopping": Stopping(patience=100, validation_fraction=0.3)}
    for kind, own in kinds.items():
        name = kind.__name__.removesuffix("Classifier")
        small = {"n_estimators": 6, "random_state": 0}
        for data in ("two", "words", "iris"):
            for title in ("stump", "deep tree", "tree of scikit-learn"):
                yield Case(f"{name}/{data}/{title}", partial(fitted_case, data, kind(LEARNERS[title], **small)))
        tree = kind(HistogramTree(2), **small)
        yield Case(f"{name}/cancer/tree", partial(fitted_case, "cancer", tree))
        yield Case(f"{name}/ties/default", partial(fitted_case, "ties", kind(**small)))
        yield Case(f"{name}/two/weights", partial(fitted_case, "two", tree, ("weights",)))
        yield Case(f"{name}/two/validation", partial(fitted_case, "two", tree, (), True))
        stopped = kind(Stump(), n_estimators=12, random_state=0, stopping=Stopping(3, validation_fraction=0.25))
        yield Case(f"{name}/two/stopping", partial(fitted_case, "two", stopped))
        for title, settings in own.items():
            model = kind(**{"estimator": HistogramTree(2)} | small | settings)
            yield Case(f"{name}/two/{title}", partial(fitted_case, "two", model))
        for parameter in {"penalty", "C"} & set(tree.get_params()):
            model = kind(Stump(), **small, **auto, **{parameter: "auto"})
            yield Case(f"{name}/two/auto", partial(fitted_case, "two", model))
    robust = cp.DROBoostClassifier(HistogramTree(2), n_estimators=3, radius="cv", random_state=0)
    yield Case("DROBoost/small/cv", partial(fitted_case, "small", robust))


def rebalanced(kind: str, steps: Sequence[Mapping[str, Any]], data: str = "two") -> dict[str, Any]:
    """Rebalance a classifier in several steps, and record each."""
    rows = rows_of(data)
    names = ("columns", "baseline")
    record = {}
    model = starting_model(kind, data)
    for place, step in enumerate(steps):
        changes = dict(step)
        part = changes.pop("rows", None)
        if part is not None:
            where = getattr(rows, part)
            changes |= {"X": rows.X[where], "y": rows.y[where]}
            changes |= rows.fit_options(where, *changes.pop("columns", names))
        try:
            model = model.rebalance(**changes)
        except Exception as error:  # noqa: BLE001 - the next step begins where this one did
            record[f"step {place}"] = failure(error)
        else:
            record[f"step {place}"] = observed(model, rows, *names)
    return record


def starting_model(kind: str, data: str) -> Any:
    """Return a fitted classifier that can be rebalanced."""
    rows = rows_of(data)
    names = ("columns", "baseline")
    options = rows.fit_options(rows.choose, *names)
    given = rows.X[rows.choose], rows.y[rows.choose]
    more = {"pos_label": positive(rows)} if data in TWO_CLASSES else {}
    more |= {"random_state": 0}
    tree = HistogramTree(2)
    if kind == "goal":
        model = cp.GoalClassifier(trained(data), cv="prefit", **more)
    elif kind == "drawn":
        model = cp.GoalClassifier(trained(data, 2), cv="prefit", decision="sticky", alpha=0.5, **more)
    elif kind == "deferring":
        model = cp.GoalClassifier(
            trained(data), cv="prefit", deferral=Deferral(0.2), goals="defer_rate(train) <= 0.2", **more
        )
    elif kind == "mixture":
        model = cp.MixtureClassifier(trained(data, 5), alpha=0.3, **more)
    elif kind == "lpboost":
        model = cp.LPBoostClassifier(tree, n_estimators=5, alpha=0.5, **more)
    elif kind == "inside goals":
        goals, held_out = ["recall(train) >= 0.6"], Stopping(validation_fraction=0.3)
        model = cp.LPBoostClassifier(tree, n_estimators=5, alpha=1.0, goals=goals, stopping=held_out, **more)
    else:
        model = cp.AdaLPBoostClassifier(tree, n_estimators=6, alpha=0.5, **more)
    return model.fit(*given, **options)


CHAINS: dict[str, list[dict[str, Any]]] = {
    "alphas": [{"alpha": 0.3}, {"alpha": 0.1, "budget": 0.02}, {"alpha": 1.0}],
    "goals": [{"goals": ["recall(train) >= 0.7"]}, {"goals": ["recall(train) >= 0.6", PARITY]}, {"goals": ()}],
    "budgets": [{"budget": 0.01, "alpha": 0.2}, {"budget": 1.0}],
    "objectives": [
        {"objective": risks.WorstGroup("sex")},
        {"objective": "false_positive_rate(train)", "goals": ["recall(train) >= 0.6"]},
        {"objective": risks.KL(0.1), "goals": ()},
    ],
    "other rows": [
        {"rows": "new"},
        {"goals": ["error_rate(train) <= 0.5"]},
        {"rows": "choose", "columns": ("columns", "weights")},
    ],
    "worst group of other rows": [{"rows": "new", "columns": ("group",)}, {"alpha": 0.4}],
    "mail": [
        {"rows": "choose", "columns": ("columns", "mail"), "goals": ["churn(mail) <= 0.5"]},
        {"goals": ["churn(mail) <= 0.4"]},
    ],
    "infeasible": [
        {"goals": ["recall(train) >= 0.999", "positive_rate(train) <= 0.05"]},
        {"goals": ["recall(train) >= 0.5"]},
    ],
    "bad": [
        {"alpha": 0.0},
        {"alpha": 2.0},
        {"budget": -1.0},
        {"goals": ["recal(train) >= 0.5"]},
        {"objective": 3},
        {"nonsense": 1},
        {"alpha": 0.2, "objective": risks.KL(0.1)},
    ],
}
RULE_CHAINS: dict[str, list[dict[str, Any]]] = {
    "by": [
        {"by": "sex", "goals": [PARITY]},
        {"by": ()},
        {"by": "baseline", "goals": ["churn(train) <= 0.2"]},
        {"by": Groups("region", unknown="pool", min_rows=30)},
    ],
    "decisions": [
        {"decision": "sticky", "alpha": 0.3},
        {"decision": "vote"},
        {"decision": "fixed", "alpha": 1.0},
        {"decision": Draws(KEY), "goals": ["recall(train) >= 0.9"]},
    ],
    "deferral": [
        {"deferral": Deferral(0.3)},
        {"deferral": Deferral(0.1), "goals": ["defer_rate(train) <= 0.1"]},
        {"deferral": "never", "goals": ()},
    ],
    "bad by": [{"by": "colour"}, {"decision": "perhaps"}, {"deferral": "always"}, {"by": 3}, {"deferral": 0.2}],
}


def rebalance_cases() -> Iterator[Case]:
    """Yield chains of rebalance."""
    for kind in ("goal", "drawn", "mixture", "lpboost", "inside goals", "adalpboost"):
        for name, steps in CHAINS.items():
            yield Case(f"rebalance/{kind}/{name}", partial(rebalanced, kind, steps))
    for kind in ("goal", "drawn", "deferring", "mixture", "inside goals"):
        for name, steps in RULE_CHAINS.items():
            yield Case(f"rebalance/{kind}/{name}", partial(rebalanced, kind, steps))
    for data in ("three", "words"):
        for kind in ("goal", "mixture", "adalpboost"):
            for name in ("alphas", "objectives", "other rows"):
                yield Case(f"rebalance/{data}/{kind}/{name}", partial(rebalanced, kind, CHAINS[name], data))


def tradeoff_case(kind: str, goal: str, **options: Any) -> dict[str, Any]:
    """Record a frontier."""
    frontier = cp.tradeoff(starting_model(kind, "two"), goal, **options)
    fields = ("bound", "value", "lower", "multiplier", "n_models")
    return {"points": [[plain(getattr(point, field)) for field in fields] for point in frontier], "text": str(frontier)}


def explain_case(kind: str, data: str) -> dict[str, Any]:
    """Record explanations, as they are and as text."""
    rows = rows_of(data)
    model = starting_model(kind, data)
    looks = {} if kind == "adalpboost" else rows.fit_options(rows.new, "columns")
    looks = {name: {column: one[:12] for column, one in given.items()} for name, given in looks.items()}
    return {"explained": [plain(one.as_dict()) for one in model.explain(rows.X[rows.new][:12], **looks)]}


def saved_case(kind: str, data: str) -> dict[str, Any]:
    """Save and load a model, and record what the loaded one says before and after it is rebalanced."""
    rows = rows_of(data)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.cp"
        cp.save(starting_model(kind, data), path)
        loaded = cp.load(path)
    record = {"loaded": observed(loaded, rows, "columns", "baseline")}
    return record | {"again": attempt(lambda: observed(loaded.rebalance(alpha=0.8), rows, "columns", "baseline"))}


def saved_estimator_case(model: Any) -> dict[str, Any]:
    """Save and load an estimator that votes, or is linear."""
    rows = rows_of("two")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.cp"
        cp.save(clone(model).fit(rows.X[rows.train], rows.y[rows.train]), path)
        return observed(cp.load(path), rows)


AUDITED: dict[str, dict[str, Any]] = {
    "rates": {
        "goals": [
            "recall(train) >= 0.7",
            "precision(train) >= 0.6",
            "error_rate(train) <= 0.3",
            "f1_score(train) >= 0.5",
        ]
    },
    "groups": {
        "goals": [
            PARITY,
            ODDS,
            "min_ratio(positive_rate, train, by=sex) >= 0.7",
            "every_group(recall, train, by=region) >= 0.5",
        ]
    },
    "two groups": {
        "goals": [
            "positive_rate(train, sex=F) >= 0.8 * positive_rate(train, sex=M)",
            "error_rate(train, sex=F) <= error_rate(train, sex=M) + 0.1",
        ]
    },
    "churn": {"goals": ["churn(train) <= 0.4", "win_loss_ratio(train) >= 1", "wins_minus_losses(train) >= 0"]},
    "confidence": {"goals": ["recall(train) >= 0.6 with confidence 0.99", "error_rate(train) <= 0.4"]},
    "less confidence": {"goals": ["recall(train) >= 0.75"], "confidence": 0.8},
    "weights": {
        "goals": ["recall(train) >= 0.6", "error_rate(train, sex=F) <= 0.4"],
        "columns": ("columns", "weights", "largest"),
    },
    "weights, no largest": {"goals": ["recall(train) >= 0.6"], "columns": ("columns", "weights")},
    "unknown": {"goals": ["recal(train) >= 0.5"]},
    "unknown value": {"goals": ["recall(train, sex=X) >= 0.5"]},
    "no column": {"goals": ["recall(train, colour=red) >= 0.5"]},
    "bad confidence": {"goals": ["recall(train) >= 0.5"], "confidence": 1.5},
}


def audit_case(how: str, asked: Mapping[str, Any], data: str = "two") -> dict[str, Any]:
    """Record an audit of decisions, of probabilities or of a model."""
    rows = rows_of(data)
    names = asked.get("columns", ("columns", "baseline"))
    options = {name: value for name, value in asked.items() if name not in {"goals", "columns"}}
    options |= rows.fit_options(rows.choose, *names)
    X, y = rows.X[rows.choose], rows.y[rows.choose]
    model = trained(data)[0]
    if how == "certify":
        options.pop("baseline", None)
        report = cp.certify(model, asked["goals"], X, y, **options)
    elif how == "probabilities":
        report = cp.audit(asked["goals"], model.predict_proba(X), y, kind="probabilities", **options)
    else:
        report = cp.audit(asked["goals"], model.predict(X), y, **options)
    return {"holds": report.holds, "confidence": report.confidence, "rows": [plain(list(one)) for one in report]}


def other_cases() -> Iterator[Case]:
    """Yield frontiers, explanations, files and audits."""
    for kind in ("goal", "drawn", "mixture", "lpboost", "adalpboost"):
        yield Case(f"tradeoff/{kind}/recall", partial(tradeoff_case, kind, "recall(train) >= 0.6", n_points=5))
        bounds = {"bounds": [0.05, 0.2, 0.6], "alpha": 0.4}
        yield Case(f"tradeoff/{kind}/parity", partial(tradeoff_case, kind, PARITY, **bounds))
    yield Case("tradeoff/mixture/bad", partial(tradeoff_case, "mixture", "recal(train) >= 0.6"))
    for kind in ("goal", "drawn", "deferring", "mixture", "inside goals", "adalpboost"):
        yield Case(f"explain/{kind}", partial(explain_case, kind, "two"))
        for data in ("two", "words"):
            yield Case(f"save/{kind}/{data}", partial(saved_case, kind, data))
    yield Case("explain/three classes", partial(explain_case, "goal", "three"))
    yield Case("explain/words", partial(explain_case, "goal", "words"))
    yield Case("save/goal/three", partial(saved_case, "goal", "three"))
    for kind in (
        cp.AdaBoostClassifier,
        cp.VadaBoostClassifier,
        cp.EBBoostClassifier,
        cp.RLPBoostClassifier,
        cp.RQPBoostClassifier,
        cp.DROBoostClassifier,
    ):
        yield Case(
            f"save/{kind.__name__}", partial(saved_estimator_case, kind(Stump(), n_estimators=4, random_state=0))
        )
    yield Case("save/ConstrainedClassifier", partial(saved_estimator_case, cp.ConstrainedClassifier(random_state=0)))
    for how in ("audit", "certify", "probabilities"):
        for name, asked in AUDITED.items():
            yield Case(f"{how}/{name}", partial(audit_case, how, asked))
    asked = {
        "goals": [
            "every_class(recall, train) >= 0.5",
            "macro(recall, train) >= 0.6",
            "confusion(train, of=0, called=1) <= 0.3",
        ]
    }
    yield Case("audit/three classes", partial(audit_case, "audit", asked, "three"))


BAD: dict[str, Setting] = {
    "unknown metric": setting(goals="recal(train) >= 0.8"),
    "syntax": setting(goals="recall(train >= 0.8"),
    "no bound": setting(goals="recall(train)"),
    "goal of another type": setting(goals=[3]),
    "percent": setting(goals="recall(train) >= 80"),
    "contradiction": setting(goals=["recall(train) >= 0.9", "recall(train) <= 0.1"]),
    "unknown dataset": setting(goals="recall(elsewhere) >= 0.8"),
    "unknown column": setting(goals="recall(train, colour=red) >= 0.8"),
    "unknown value": setting(goals="recall(train, sex=X) >= 0.8"),
    "churn without baseline": setting("columns", goals="churn(train) <= 0.1"),
    "alpha of 0": setting(alpha=0.0),
    "alpha above 1": setting(alpha=1.5),
    "alpha as text": setting(alpha="small"),
    "alpha and objective": setting(alpha=0.5, objective=risks.KL(0.1), decision="sticky"),
    "objective": setting(objective=3),
    "objective as text": setting(objective="nothing at all"),
    "ratio as objective": setting(objective="precision(train)"),
    "budget": setting(budget=-0.1, alpha=0.5, decision="sticky"),
    "decision": setting(decision="perhaps"),
    "decision as number": setting(decision=1),
    "pos_label": setting(pos_label="absent", goals="recall(train) >= 0.5"),
    "weights": setting("columns", "baseline", "bad weights"),
    "confidence with weights": setting("columns", "weights", goals="recall(train) >= 0.6 with confidence 0.9"),
    "deferred rate": setting(goals="defer_rate(train) <= 0.1"),
    "max_models": setting(max_models=0),
    "n_jobs": setting(n_jobs="many"),
    "by": setting(by="colour"),
    "by number": setting(by=3),
    "unknown parameter": setting(nonsense=1),
    "cv": setting(cv=1),
    "cv as text": setting(cv="some"),
    "deferral": setting(deferral=0.2),
    "confidence": setting(confidence=0.9),
    "n_estimators": setting(n_estimators=0),
    "n_estimators as text": setting(n_estimators="ten"),
    "stopping": setting(stopping=3),
    "mixture": setting(mixture="best"),
    "outliers": setting(outlier_fraction=1.5),
    "eta": setting(eta=-1.0),
    "beta": setting(beta=-1.0),
    "random state": setting(random_state="seed"),
}
BAD_VALUES: dict[str, Callable[[], Any]] = {
    "Deferral": lambda: Deferral(-1.0),
    "Deferral, text": lambda: Deferral("much"),
    "Draws": lambda: Draws(b"short"),
    "Draws, text": lambda: Draws("a text that is long enough"),
    "Groups": lambda: Groups("sex", unknown="perhaps"),
    "Groups, rows": lambda: Groups("sex", min_rows=-1),
    "Stopping": lambda: Stopping(patience=-1),
    "Stopping, fraction": lambda: Stopping(validation_fraction=1.5),
    "Stopping, folds": lambda: Stopping(n_folds=1),
    "CVaR": lambda: risks.CVaR(0.0),
    "KL": lambda: risks.KL(-1.0),
    "parse": lambda: cp.goals.parse_goal("recall(train, of=) >= 0.5"),
    "precision and recall": lambda: cp.goals.precision("train") >= cp.goals.recall("train"),
    "load": lambda: cp.load("no such file.cp"),
}


def bad_case(kind: str, asked: Setting) -> dict[str, Any]:
    """Record which exception a bad parameter raises."""
    rows = rows_of("two")
    options = rows.fit_options(rows.choose, *(name for name in asked.columns if name != "bad weights"))
    if "bad weights" in asked.columns:
        options["sample_weight"] = -np.ones(len(rows.y[rows.choose]))
    small = {"random_state": 0, "pos_label": 1} | asked.parameters
    kinds: dict[str, Callable[..., Any]] = {
        "goal": partial(cp.GoalClassifier, trained("two"), **{"cv": "prefit"} | small),
        "mixture": partial(cp.MixtureClassifier, trained("two", 3), **small),
        "lpboost": partial(cp.LPBoostClassifier, HistogramTree(2), **{"n_estimators": 3} | small),
        "adalpboost": partial(cp.AdaLPBoostClassifier, HistogramTree(2), **{"n_estimators": 3} | small),
    }
    model = kinds[kind]().fit(rows.X[rows.choose], rows.y[rows.choose], **options)
    return observed(model, rows, *(name for name in asked.columns if name != "bad weights"))


def bad_rows_case(kind: Callable[[], Any], change: str) -> dict[str, Any]:
    """Record which exception bad rows raise."""
    rows = rows_of("small")
    X, y = rows.X[:80].copy(), rows.y[:80].copy()
    changes: dict[str, Callable[[], tuple[Any, Any]]] = {
        "one class": lambda: (X, np.zeros(80, dtype=int)),
        "lengths": lambda: (X, y[:50]),
        "no rows": lambda: (X[:0], y[:0]),
        "one dimension": lambda: (X[:, 0], y),
        "infinite": lambda: (np.where(X > 1, np.inf, X), y),
        "missing": lambda: (np.where(np.abs(X - 1.0) < X.std(), np.nan, X), y),
        "missing labels": lambda: (X, np.where(np.arange(80) < 3, np.nan, y)),
        "real labels": lambda: (X, X[:, 0]),
        "two columns of labels": lambda: (X, np.column_stack([y, y])),
        "texts": lambda: (X.astype(str), y),
    }
    model = kind().fit(*changes[change]())
    return observed(model, rows) | {"fewer features": attempt(model.predict, rows.X[:5, :2])}


BAD_ROWS = [
    "one class",
    "lengths",
    "no rows",
    "one dimension",
    "infinite",
    "missing",
    "missing labels",
    "real labels",
    "two columns of labels",
    "texts",
]


def bad_cases() -> Iterator[Case]:
    """Yield what is refused."""
    for kind in ("goal", "mixture"):
        for name, asked in BAD.items():
            yield Case(f"bad/{kind}/{name}", partial(bad_case, kind, asked))
    for name, make in BAD_VALUES.items():
        yield Case(f"bad/value/{name}", lambda make=make: {"made": plain(make())})
    fitted: dict[str, Callable[[], Any]] = {
        "goal": lambda: cp.GoalClassifier(HistogramTree(2), cv=2, random_state=0),
        "adaboost": lambda: cp.AdaBoostClassifier(Stump(), n_estimators=3, random_state=0),
        "dro": lambda: cp.DROBoostClassifier(Stump(), n_estimators=3, random_state=0),
        "lpboost": lambda: cp.LPBoostClassifier(Stump(), n_estimators=3, random_state=0),
        "constrained": lambda: cp.ConstrainedClassifier(random_state=0),
    }
    for kind, make in fitted.items():
        for change in BAD_ROWS:
            yield Case(f"bad rows/{kind}/{change}", partial(bad_rows_case, make, change))
        yield Case(f"bad rows/{kind}/not fitted", lambda make=make: {"said": plain(make().predict(np.zeros((2, 2))))})


@cache
def dask_client() -> Any:
    """Return the client of a cluster inside of this process."""
    from distributed import Client, LocalCluster  # noqa: PLC0415 - optional

    return Client(LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"))


def dask_case(kind: str, **parameters: Any) -> dict[str, Any]:
    """Fit over partitions, and record what the estimator of one machine then says."""
    import dask.dataframe as dd  # noqa: PLC0415 - optional

    from counterpoise import distributed  # noqa: PLC0415 - optional

    dask_client()
    rows = rows_of("words")
    names = [f"x{place}" for place in range(4)]
    frame = pd.DataFrame(rows.X[:, :4], columns=names)
    models = [HistogramTree(depth).fit(frame[rows.train], rows.y[rows.train]) for depth in (1, 3, 4)]
    frame = frame.assign(sex=rows.columns["sex"], label=rows.y)[rows.choose]
    parameters = {"random_state": 0, "pos_label": "default"} | parameters
    if kind == "goal":
        model = distributed.DaskGoalClassifier(models, cv="prefit", **parameters)
    else:
        model = distributed.DaskMixtureClassifier(models, **parameters)
    collection = dd.from_pandas(frame, npartitions=3)
    model.fit(collection, "label", sensitive_features=["sex"])
    rows = rows._replace(X=pd.DataFrame(rows.X[:, :4], columns=names))
    return observed(model.to_local(), rows, "sex")


def dask_cases() -> Iterator[Case]:
    """Yield fits over partitions."""
    settings: dict[str, dict[str, Any]] = {
        "plain": {"alpha": 0.5},
        "goals": {"goals": [PARITY], "alpha": 1.0},
        "infeasible": {"goals": ["recall(train) >= 0.999", "positive_rate(train) <= 0.05"], "alpha": 1.0},
        "worst group": {"objective": risks.WorstGroup("sex")},
        "refused": {"objective": risks.KL(0.1)},
    }
    for kind in ("goal", "mixture"):
        for name, parameters in settings.items():
            drawn = {"decision": "sticky"} if kind == "goal" else {}
            yield Case(f"dask/{kind}/{name}", partial(dask_case, kind, **drawn, **parameters))
    yield Case("dask/goal/by sex", partial(dask_case, "goal", by="sex", goals=[PARITY, "recall(train) >= 0.5"]))


def all_cases() -> list[Case]:
    """Return every case, each with a name of its own."""
    makers = (goal_cases, class_cases, training_cases, mixture_cases, constrained_cases, boosting_cases)
    makers += (voting_cases, rebalance_cases, other_cases, bad_cases, dask_cases)
    cases = [case for maker in makers for case in maker()]
    names = [case.name for case in cases]
    if len(set(names)) < len(names):
        raise ValueError(f"Two cases have one name: {sorted({name for name in names if names.count(name) > 1})}.")
    return cases


# ---- running and comparing -----------------------------------------------------------------------------------------


def run_cases(names: Sequence[str]) -> dict[str, Any]:
    """Return the records of some cases; they stand beside the seconds that each took."""
    cases = {case.name: case.run for case in all_cases()}
    records = {}
    with threadpool_limits(1):
        for name in names:
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    record = cases[name]()
                except Exception as error:  # noqa: BLE001 - whatever is raised is part of the record
                    record = failure(error)
            records[name] = {"seconds": round(time.perf_counter() - start, 3), **record}
    return records


def run_all(only: str, n_jobs: int) -> dict[str, Any]:
    """Return the records of all cases whose name contains a text."""
    names = [case.name for case in all_cases() if only in case.name]
    if n_jobs == 1:
        return run_cases(names)
    slow = [name for name in names if name.startswith("dask/")]  # one cluster for all of them
    quick = [name for name in names if not name.startswith("dask/")]
    parts = [slow, *(quick[start : start + 20] for start in range(0, len(quick), 20))]
    records: dict[str, Any] = {}
    with ProcessPoolExecutor(n_jobs, mp_context=get_context("spawn")) as pool:
        for part in pool.map(run_cases, parts):
            records |= part
    return {name: records[name] for name in names}


def differences(before: Any, after: Any, place: str = "") -> Iterator[str]:
    """Yield where two records differ, a line each."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in [*before, *(name for name in after if name not in before)]:
            here = f"{place}.{name}" if place else name
            if name in {"seconds", "message"}:
                continue
            if name not in after or name not in before:
                yield f"{here}: {'no longer there' if name in before else 'new'}"
            else:
                yield from differences(before[name], after[name], here)
    elif isinstance(before, list) and isinstance(after, list):
        if len(before) != len(after):
            yield f"{place}: {len(before)} entries before, {len(after)} now"
        for number, pair in enumerate(zip(before, after, strict=False)):
            yield from differences(*pair, f"{place}[{number}]")
    elif not _is_same(before, after):
        yield f"{place}: {before!r} before, {after!r} now"


def _is_same(before: Any, after: Any) -> bool:
    numbers = (int, float)
    if isinstance(before, numbers) and isinstance(after, numbers) and not isinstance(before, bool):
        if math.isnan(before) or math.isnan(after):
            return math.isnan(before) and math.isnan(after)
        return before == after or abs(before - after) <= TOLERANCE * (1 + abs(before))
    return type(before) is type(after) and before == after


def compare(before: Mapping[str, Any], after: Mapping[str, Any], shown: int) -> int:
    """Print where records differ, and return how many do."""
    n_different = 0
    for name in [*before, *(name for name in after if name not in before)]:
        if name not in before or name not in after:
            found = ["not recorded" if name not in before else "no longer run"]
        else:
            found = list(differences(before[name], after[name]))
        n_different += bool(found)
        for line in found[:shown]:
            print(f"{name}: {line}")
        if len(found) > shown:
            print(f"{name}: and {len(found) - shown} more")
        messages = [one.get("message") for one in (before.get(name, {}), after.get(name, {}))]
        if found and any(messages):
            print(f"    messages: {messages[0]!r} before, {messages[1]!r} now")
    print(f"{len(before) - n_different} of {len(before)} cases are the same, {n_different} differ.")
    return n_different


def main() -> int:
    """Record, or compare with a recording."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["record", "compare"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="", help="run cases whose name contains this text")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    parser.add_argument("--shown", type=int, default=6, help="differences printed of a case, at most")
    asked = parser.parse_args()
    start = time.perf_counter()
    records = json.loads(json.dumps(run_all(asked.only, asked.jobs)))
    print(f"{len(records)} cases in {time.perf_counter() - start:.0f} s, with {cp.__file__}")
    if asked.action == "record":
        asked.file.write_text(json.dumps(records, indent=0), encoding="utf-8")
        return 0
    recorded = json.loads(asked.file.read_text(encoding="utf-8"))
    return min(1, compare({name: one for name, one in recorded.items() if asked.only in name}, records, asked.shown))


if __name__ == "__main__":
    sys.exit(main())
