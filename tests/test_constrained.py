"""ConstrainedClassifier: what it promises about goals, decisions and scikit-learn."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from two_groups import GROUP, MODEL, PARITY, X, Y, fitted

from counterpoise import ConstrainedClassifier
from counterpoise.goals import (
    Dataset,
    InfeasibleGoals,
    Table,
    as_goals,
    churn,
    coverage,
    equalized_odds,
    positive_rate,
    recall,
)
from counterpoise.solvers import ramp as solvers_ramp
from counterpoise.solvers import solve_svm

TRAIN = Dataset("train")


# What is promised about goals


def test_goals_that_cost_something_hold_on_the_training_data_for_the_draws():
    free = ConstrainedClassifier(decision="ramp").fit(X, Y)
    model = fitted(decision="ramp")
    goal = as_goals(PARITY)[0]
    scores = {"train": free.decision_function(X)}
    table = Table(X, Y, GROUP)
    assert goal.evaluate_ramp(scores, {"train": table}).violation > 0.1
    assert model.check_goals(X, Y, sensitive_features=GROUP)[0].violation <= 1e-6
    assert model.multipliers_[0] > 0
    assert model.objective_value_ > free.objective_value_


def test_history_never_rises_and_ends_at_the_attributes():
    values = [step.value for step in MODEL.history_]
    assert (np.diff(values) <= 1e-9).all()
    assert max(step.violation for step in MODEL.history_) <= 1e-6
    assert MODEL.objective_value_ == values[-1]
    assert MODEL.n_iter_ == len(values)
    assert MODEL.gap_ == MODEL.history_[-1].gap <= MODEL.tol


def test_the_objective_value_is_that_of_the_coefficients():
    probabilities = MODEL.predict_proba(X)[:, 1]
    errors = np.where(Y == 1, 1 - probabilities, probabilities).mean()
    ridge = (MODEL.coef_**2).sum() / (2 * len(Y))
    assert MODEL.objective_value_ == pytest.approx(errors + ridge, abs=1e-9)


def test_a_multiplier_is_about_the_price_of_a_goal():
    """Relaxing the bound lowers the objective by about the multiplier times the change."""
    goals = [positive_rate(TRAIN) <= bound for bound in (0.30, 0.28)]
    loose, tight = (ConstrainedClassifier(goals=[goal], tol=1e-5).fit(X, Y) for goal in goals)
    price = (tight.objective_value_ - loose.objective_value_) / 0.02
    assert price == pytest.approx(tight.multipliers_[0], rel=0.3)


def test_a_goal_on_a_ratio_holds_in_expectation():
    model = ConstrainedClassifier(goals="precision >= 0.97", decision="ramp").fit(X, Y)
    check = model.check_goals(X, Y)[0]
    assert check.value == pytest.approx(0.97, abs=0.02)
    assert check.violation <= 1e-6


def test_goals_of_four_kinds_hold_together_on_real_data():
    """Equalized odds, recall, coverage and churn on breast cancer, for the draws, to 1e-3."""
    features, labels = load_breast_cancer(return_X_y=True)
    features, size = scale(features), np.where(features[:, 0] > np.median(features[:, 0]), "large", "small")
    deployed = LogisticRegression(C=0.1).fit(features[::3], labels[::3])
    recent = Table(features[1::2], baseline=deployed.predict(features[1::2]))
    goals = [
        equalized_odds(TRAIN.by(size=["large", "small"]), within=0.08),
        recall(TRAIN) >= 0.97,
        coverage(TRAIN) <= 0.66,
        churn("recent") <= 0.06,
    ]
    model = ConstrainedClassifier(goals=goals, decision="ramp").fit(
        features, labels, sensitive_features={"size": size}, datasets={"recent": recent}
    )
    checks = model.check_goals(features, labels, sensitive_features={"size": size}, datasets={"recent": recent})
    assert len(checks) == 7
    assert max(check.violation for check in checks) <= 1e-3
    assert model.score(features, labels) > 0.93


@pytest.mark.parametrize("seed", [19, 27])
def test_two_goals_of_which_one_has_no_price_at_first_are_met_in_few_steps(seed, monkeypatch):
    """Its multiplier is rounding in the search for a start: a hinge of no weight must not lead the bias astray."""
    features, labels = load_breast_cancer(return_X_y=True)
    labels = 1 - labels
    old = np.random.default_rng(0).permutation(len(labels))[:100]
    rest = np.setdiff1d(np.arange(len(labels)), old)
    deployed = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, class_weight={0: 1, 1: 5}))
    deployed.fit(features[old], labels[old])
    rows = np.random.default_rng(seed).permutation(rest)[:281]
    scaled = StandardScaler().fit(features[rows]).transform(features)
    patients = {"patients": Table(scaled[rest], baseline=deployed.predict(features[rest]))}
    steps = []

    def counted(*args, **settings):
        found = solve_svm(*args, **settings)
        steps.append(found.n_iter)
        return found

    monkeypatch.setattr(solvers_ramp, "solve_svm", counted)
    goals = ["false_negative_rate <= 0.02", "churn(patients) <= 0.03"]
    model = ConstrainedClassifier(objective="false_positive_rate", goals=goals, decision="ramp")
    model.fit(scaled[rows], labels[rows], datasets=patients)
    assert max(steps) <= 100
    assert model.gap_ <= model.tol
    checks = model.check_goals(scaled[rows], labels[rows], datasets=patients)
    assert max(check.violation for check in checks) <= 1e-6


def test_a_kernel_meets_a_goal_that_a_line_cannot():
    """Inside a circle or outside: high accuracy needs a curve."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(150, 2))
    labels = (np.hypot(*rows.T) < 1.2).astype(int)
    goals = ["recall >= 0.9", "false_positive_rate <= 0.1"]
    model = ConstrainedClassifier(goals=goals, kernel="rbf", decision="ramp").fit(rows, labels)
    assert max(check.violation for check in model.check_goals(rows, labels)) <= 1e-6
    assert model.score(rows, labels) > 0.85


@pytest.mark.parametrize("largest", [0.01, 0.1, 1.0, 1000.0])
@pytest.mark.parametrize("seed", range(4))
def test_goals_hold_and_no_gap_is_below_zero_whatever_the_largest_multiplier(largest, seed):
    rng = np.random.default_rng(seed)
    rows, group = rng.normal(size=(120, 3)), np.where(rng.random(120) < 0.4, "a", "b")
    labels = (rows[:, 0] + rng.normal(size=120) > 0.3 * seed * (group == "a")).astype(int)
    goals = [PARITY] if seed % 2 else ["recall >= 0.9", "positive_rate <= 0.6"]
    model = ConstrainedClassifier(goals=goals, max_multiplier=largest, decision="ramp")
    model.fit(rows, labels, sensitive_features=group)
    assert all(check.holds for check in model.check_goals(rows, labels, sensitive_features=group))
    assert model.multipliers_.max() <= largest
    assert min(step.gap for step in model.history_) >= 0.0


# What is promised about decisions


# What is promised about scikit-learn


def test_goals_that_cannot_hold_leave_nothing_of_an_earlier_fit():
    model = ConstrainedClassifier(kernel="rbf").fit(X[:60], Y[:60])
    model.set_params(goals=["recall >= 0.9", "recall <= 0.1"])
    with pytest.raises(InfeasibleGoals):
        model.fit(X[:60], Y[:60])
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize("routing", [False, True])
def test_a_grid_over_regularization_passes_the_sensitive_features(routing):
    with config_context(enable_metadata_routing=routing):
        model = ConstrainedClassifier(goals=PARITY)
        if routing:
            model.set_fit_request(sensitive_features=True)
        grid = GridSearchCV(model, {"regularization": [0.3, 0.003]}, cv=2)
        grid.fit(X, Y, sensitive_features=GROUP)
    assert grid.cv_results_["mean_test_score"].min() > 0.7
    best = grid.best_estimator_.set_params(decision="ramp")
    assert best.check_goals(X, Y, sensitive_features=GROUP)[0].violation <= 1e-6
