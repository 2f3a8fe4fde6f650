"""Whatever can be refused without a model is refused before one is trained or asked."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from counterpoise import (
    AdaLPBoostClassifier,
    Deferral,
    GoalClassifier,
    LPBoostClassifier,
    MixtureClassifier,
)
from counterpoise.goals import Table

N_ROWS = 60
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(N_ROWS, 3)), np.arange(N_ROWS) % 2
SEX, THIN = np.where(np.arange(N_ROWS) % 3, "F", "M"), np.where(np.arange(N_ROWS) < 4, "X", "F")
RECALL = ["recall >= 0.5"]
COLUMNS = {"sensitive_features": {"gender": SEX}}

# what no rows and no models could mend, or these rows cannot: parameters, arguments of fit, and what the error says
OF_GOALS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"goals": ["recall(train >= 0.9"]}, {}, "Cannot read the goal"),
    ({"goals": ["recal(train) >= 0.9"]}, {}, "Did you mean 'recall'"),
    ({"goals": ["recall(trian) >= 0.9"]}, {}, "Unknown dataset 'trian'. Did you mean 'train'"),
    ({"goals": ["recall(gendr=F) >= 0.9"]}, COLUMNS, "Unknown column 'gendr'.*Did you mean 'gender'"),
    ({"goals": ["recall(gender=Female) >= 0.9"]}, COLUMNS, "Unknown value 'Female'"),
    ({"goals": ["min_ratio(positive_rate, by=gendr) >= 0.8"]}, COLUMNS, "Did you mean 'gender'"),
    ({"goals": ["recall(of=7) >= 0.1"]}, {}, "Unknown class '7'"),
    ({"goals": ["recall >= -1"]}, {}, "always holds"),
    ({"goals": ["churn <= 0.1"]}, {}, "needs the deployed model's predictions"),
    ({"goals": ["churn <= 0.1"]}, {"baseline": Y + 5}, "labels 5, 6, which are not among the classes"),
    ({"goals": ["defer_rate <= 0.1"]}, {}, "set deferral"),
    ({"goals": ["recall(live) >= 0.1"]}, {"datasets": {"live": Table(X)}}, "Dataset 'live' needs labels"),
    ({"goals": ["positive_rate(live) >= 0.1"]}, {"datasets": {"live": Table(X[:, :2])}}, "X has 2 features"),
    ({"goals": ["positive_rate(live) >= 0.1"]}, {"datasets": {"live": Table(None, Y)}}, "needs features"),
    ({"goals": RECALL}, {"datasets": {"live": X}}, "must be bound to a counterpoise.goals.Table"),
    ({"goals": RECALL}, {"datasets": {"train": Table(X)}}, "Give your dataset another name"),
    ({"goals": RECALL, "pos_label": "yes"}, {}, "pos_label|not among the classes"),
    ({"goals": ["recall >= 0.99 with confidence 0.9999"]}, {}, "cannot be certified here: too few rows"),
    (
        {"goals": ["recall >= 0.5 with confidence 0.9"]},
        {"sample_weight": np.linspace(1, 2, N_ROWS)},
        "needs largest_weight",
    ),
    ({"objective": "false_positive_rate(gendr=F)"}, COLUMNS, "Did you mean 'gender'"),
    ({"objective": "recal(train)"}, {}, "Did you mean 'recall'"),
    ({"objective": 3}, {}, "must be a ris|must be a rate"),
    ({"decision": "dice"}, {}, "decision must be one of"),
    ({"decision": b"a key that is no decision"}, {}, "Draws"),
    ({"random_state": "x"}, {}, "random_state must be"),
    ({}, {"sample_weight": np.ones(5)}, "sample_weight"),
    ({}, {"sample_weight": -np.ones(N_ROWS)}, "(?i)negative"),
    ({}, {"sensitive_features": {"gender": SEX[:9]}}, "sensitive_features must have one row"),
    ({}, {"baseline": Y[:9]}, "baseline must have shape"),
]
OF_MIXTURES: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"alpha": 0}, {}, "alpha must lie in"),
    ({"alpha": 1.5}, {}, "alpha must lie in"),
    ({"objective": 'WorstGroup("gendr")'}, COLUMNS, "Did you mean 'gender'"),
    ({"objective": "worst-group"}, {}, "WorstGroup needs sensitive_features"),
    ({"budget": -0.1}, {}, "budget must lie in"),
    ({"pos_label": "yes"}, {}, "pos_label must be one of the classes.*put 0 and 1 in the place of texts"),
]
OF_RULES: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"by": "gendr"}, COLUMNS, "the column 'gendr'.*Did you mean 'gender'"),
    ({"by": "gender"}, {"sensitive_features": {"gender": THIN}}, "fewer than 10"),
    ({"by": "baseline"}, {}, "need baseline"),
    ({"by": 3}, {}, "by must be the name of a column"),
    (
        {"by": "gender"},
        COLUMNS | {"datasets": {"live": Table(X, sensitive_features={"gender": np.full(N_ROWS, "Z")})}},
        "The rows of dataset 'live' hold the group 'gender=Z'",
    ),
    ({"deferral": 0.2}, {}, "deferral must be None, or Deferral"),
    ({"deferral": Deferral(0.2, 1)}, {}, "label must not be mistaken for a class"),
    ({"alpha": 0.1}, {}, "decision='fixed' decides by one rule.*decision='sticky'"),
    ({"objective": "KL(0.1)"}, {}, "decision='fixed' decides by one rule.*decision='sticky'"),
    ({"goals": RECALL, "decision": "fixd"}, {}, "decision must be one of"),
]
OF_TRAINING: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"goals": ["recall >= 1.2"]}, {}, "This goal cannot hold"),
    (
        {"goals": ["recall >= 0.9", "recall <= 0.1"]},
        {},
        r">= 0.9 and recall <= 0.1. .* is 0.8. .*: recall >= 0.1, or recall <= 0.9",
    ),
    (
        {"goals": ["recall <= 0.2", "positive_rate <= 0.5", "recall >= 0.3 with confidence 0.5"]},
        {},
        r"recall <= 0.2 and recall >= 0.3 with confidence 0.5. The least total violation is 0.1.$",
    ),
    (
        {"goals": ["every_group(recall, by=gender) >= 0.9", "every_group(recall, by=gender) <= 0.8"]},
        COLUMNS,
        "These goals cannot hold together: every_group",
    ),
]
OF_GOAL_CLASSIFIER: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"cv": 1}, {}, "cv must be at least 2"),
    ({"cv": "some"}, {}, "cv must be 'auto', a number of folds"),
    ({}, {"X_val": X}, "X_val and y_val go together"),
    ({}, {"X_val": X[:, :2], "y_val": Y}, "X has 2 features"),
    ({}, {"X_val": X, "y_val": Y + 1}, "the label 2, which is not among the classes"),
    ({}, {"X_val": X, "y_val": Y, "sample_weight_val": np.ones(3)}, "sample_weight must have shape"),
    ({"by": "gendr"}, COLUMNS | {"X_val": X, "y_val": Y, "sensitive_features_val": {"gender": SEX}}, "'gender'"),
    ({"goals": RECALL}, {"largest_weight": -1}, "largest_weight must be finite and above 0"),
]


# What the same code refuses for other classifiers is tested by one case of each kind.
OTHERS = [OF_GOALS[4], OF_GOALS[9], OF_GOALS[14], OF_MIXTURES[0]]


class Counting(ClassifierMixin, BaseEstimator):
    """A classifier that counts how often it is trained or asked."""

    n_calls = 0

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "Counting":  # noqa: ARG002 - it learns nothing
        Counting.n_calls += 1
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: Any) -> Any:
        Counting.n_calls += 1
        return np.tile([0.5, 0.5], (len(X), 1))

    def predict(self, X: Any) -> Any:
        Counting.n_calls += 1
        return np.full(len(X), self.classes_[0])


def assert_refused(model: Any, fit: dict[str, Any], match: str) -> None:
    Counting.n_calls = 0
    with pytest.raises((ValueError, TypeError), match=match):
        model.fit(X, Y, **fit)
    assert Counting.n_calls == 0


@pytest.mark.parametrize(
    ("params", "fit", "match"), [*OF_GOALS, *OF_MIXTURES, *OF_RULES, *OF_TRAINING, *OF_GOAL_CLASSIFIER]
)
def test_goal_classifier_refuses_before_it_trains(params: dict[str, Any], fit: dict[str, Any], match: str) -> None:
    assert_refused(GoalClassifier(Counting(), **params, confidence=None), fit, match)


@pytest.mark.parametrize("booster", [AdaLPBoostClassifier, LPBoostClassifier])
@pytest.mark.parametrize(("params", "fit", "match"), [*OTHERS, OF_TRAINING[1]])
def test_boosters_refuse_before_they_train(
    booster: Any, params: dict[str, Any], fit: dict[str, Any], match: str
) -> None:
    assert_refused(booster(Counting(), n_estimators=2, **params), fit, match)


@pytest.mark.parametrize(
    ("params", "fit", "match"),
    [*OTHERS, *OF_MIXTURES, ({"decision": "fixed"}, {}, r"Use GoalClassifier\(models, cv='prefit'\)")],
)
def test_mixtures_refuse_before_they_ask_a_model(params: dict[str, Any], fit: dict[str, Any], match: str) -> None:
    assert_refused(MixtureClassifier([Counting().fit(X, Y)], **params), fit, match)


@pytest.mark.parametrize(("params", "fit", "match"), [*OTHERS, OF_RULES[0]])
def test_rules_of_fitted_models_refuse_before_they_ask_one(
    params: dict[str, Any], fit: dict[str, Any], match: str
) -> None:
    assert_refused(GoalClassifier([Counting().fit(X, Y)], cv="prefit", **params, confidence=None), fit, match)
