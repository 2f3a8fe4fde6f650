"""ConstrainedClassifier: decisions by a threshold meet goals on the training rows, or a warning says by how much."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from two_groups import GROUP, MODEL, PARITY, X, Y, fitted, two_groups

from counterpoise import ConstrainedClassifier
from counterpoise.goals import InfeasibleGoals, Table
from counterpoise.rules.cautions import Caution, ConstantDecisions, MissedGoals

GOALS = (
    [PARITY.replace("0.8", "0.9")],
    ["recall >= 0.8", "positive_rate <= 0.6"],
    ["abs(positive_rate(group=a) - positive_rate(group=b)) <= 0.05"],
)


def heard(model, *data, **groups):
    """Fit, and return the cautions that were heard."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", Caution)
        model.fit(*data, **groups)
    return {one.category: str(one.message) for one in said}


def rare(seed, n_samples=1500):
    """Return rows of which few are positive, and hardly any of women: the ramps are low and the sign is constant."""
    rng = np.random.default_rng(seed)
    sex = np.where(rng.random(n_samples) < 0.5, "F", "M")
    rows = rng.normal(size=(n_samples, 4))
    rows[:, 0] += sex == "M"
    rows[:, 3] = sex == "M"
    labels = (rows[:, 0] + 0.6 * rows[:, 1] + rng.normal(size=n_samples) > 2.9).astype(int)
    return rows, labels, {"sex": sex}


@pytest.mark.slow
@pytest.mark.parametrize("place", range(len(GOALS)))
def test_decisions_meet_the_goals_on_the_training_rows_or_a_warning_says_that_not(place):
    """Of random tables the sign of the score misses the goals in several."""
    n_at_zero = n_warned = 0
    for seed in range(8):
        rows, labels, group = two_groups(40, seed)
        rows = np.round(rows) if seed % 3 == 0 else rows  # with many ties
        model = ConstrainedClassifier(goals=GOALS[place], tol=0.01)
        try:
            cautions = heard(model, rows, labels, sensitive_features=group)
        except InfeasibleGoals:
            continue
        checks = model.check_goals(rows, labels, sensitive_features=group)
        assert all(check.holds for check in checks) == (MissedGoals not in cautions)
        alone = [[check._replace(ramp=None) for check in some] for some in (checks, model.indicator_checks_)]
        assert alone[0] == alone[1]
        assert (len(set(model.predict(rows))) == 1) == model.is_constant_ == (ConstantDecisions in cautions)
        assert all(check.violation <= 1e-6 for check in model.ramp_checks_)
        in_ramps = [[check.value for check in some] for some in ([one.ramp for one in checks], model.ramp_checks_)]
        assert in_ramps[0] == pytest.approx(in_ramps[1])
        assert model.train_error_ == pytest.approx((model.predict(rows) != labels).mean())
        assert model.constant_error_ == pytest.approx(min(labels.mean(), 1 - labels.mean()))
        table = Table(None, labels, group)
        at_zero = (model.predict_proba(rows)[:, 1] > 0.5).astype(int)
        n_at_zero += not all(check.goal.evaluate(at_zero, table).holds for check in checks)
        n_warned += bool(cautions)
    assert n_at_zero > n_warned


@pytest.mark.parametrize("seed", range(3))
def test_a_goal_that_the_sign_meets_by_calling_nobody_positive_is_met_by_decisions_that_differ(seed):
    rows, labels, group = rare(seed)
    goal = "positive_rate(sex=F) >= 0.9 * positive_rate(sex=M)"
    model = ConstrainedClassifier(goals=goal).fit(rows, labels, sensitive_features=group)
    assert not (model.predict_proba(rows)[:, 1] > 0.5).any()
    assert (model.predict(rows) == 1).mean() > 0.001
    assert not model.is_constant_
    assert model.check_goals(rows, labels, sensitive_features=group)[0].holds
    assert model.train_error_ < model.constant_error_


def test_a_constant_is_said_to_be_one_beside_its_error():
    """Equal rates to the last row leave one feature no choice."""
    rows, labels, group = two_groups(31, 2)
    goal = "abs(positive_rate(group=a) - positive_rate(group=b)) <= 0"
    model = ConstrainedClassifier(goals=goal)
    cautions = heard(model, rows[:, 1:2], labels, sensitive_features=group)
    assert model.is_constant_
    assert len(set(model.predict(rows[:, 1:2]))) == 1
    assert "only because they are constant: 0 for every row. That counts as a miss" in cautions[ConstantDecisions]
    assert f"of the best constant {model.constant_error_:.2%}" in cautions[ConstantDecisions]


def test_decisions_that_miss_goals_say_by_how_much_beside_the_ramp_rates():
    """One feature, no offset: decisions have one of two directions, and draws all in between."""
    rows, labels, group = two_groups(40, 1)
    goal = "abs(positive_rate(group=a) - positive_rate(group=b)) <= 0.1"
    model = ConstrainedClassifier(goals=goal, fit_intercept=False)
    cautions = heard(model, rows[:, 1:2], labels, sensitive_features=group)
    (check,) = model.check_goals(rows[:, 1:2], labels, sensitive_features=group)
    assert not check.holds
    assert check.ramp.holds
    assert str(check) in cautions[MissedGoals]
    assert f"missed by {check.violation:.4g} ({check.value:.4g}, bound 0.1: " in str(check)
    assert f"; ramp rates {check.ramp.value:.4g}, bound 0.1)" in str(check)
    assert f"of the best constant {model.constant_error_:.2%}" in cautions[MissedGoals]
    assert "set fit_intercept=True" in cautions[MissedGoals]
    assert model.threshold_ == 0
    drawn = ConstrainedClassifier(goals=goal, fit_intercept=False, decision="ramp")
    assert not heard(drawn, rows[:, 1:2], labels, sensitive_features=group)


def test_the_threshold_moves_the_intercept_and_not_the_draws():
    drawn = fitted(decision="ramp")
    assert MODEL.threshold_ != 0
    assert drawn.threshold_ == 0
    np.testing.assert_array_equal(drawn.coef_, MODEL.coef_)
    np.testing.assert_allclose(MODEL.intercept_ + MODEL.threshold_, drawn.intercept_)
    np.testing.assert_allclose(MODEL.predict_proba(X), drawn.predict_proba(X), atol=1e-14)
    np.testing.assert_array_equal(MODEL.decision_function(X), X @ MODEL.coef_[0] + MODEL.intercept_[0])
    np.testing.assert_array_equal(MODEL.decision_function(X) > 0, MODEL.predict(X) == 1)
    other = clone(MODEL).fit(X, Y, sensitive_features=GROUP).set_params(decision="ramp")
    np.testing.assert_allclose(other.decision_function(X), drawn.decision_function(X), atol=1e-14)
    assert other.check_goals(X, Y, sensitive_features=GROUP)[0].violation <= 1e-6


def test_without_goals_the_threshold_stays_at_zero():
    assert ConstrainedClassifier().fit(X, Y).threshold_ == 0


# Scores have no unit: what is rounding follows from the rows


@pytest.mark.parametrize("size", [1e-300, 1e-9, 1.0, 1e9])
def test_a_score_that_is_rounding_is_zero_and_any_other_is_not(size):
    """0.1 + 0.2 - 0.3 is 5.6e-17 or 2.8e-17 by the order of the sum, which differs between batches."""
    model = fitted(goals=(), fit_intercept=False)
    model.coef_ = np.array([[0.1, 0.2, -0.3, 1.0]])
    rows = size * np.array(
        [[1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1e-13], [1.0, 1.0, 1.0, -1e-13], [1.0, 0.0, 0.0, 0.0]]
    )
    assert model.predict(rows).tolist() == [0, 1, 0, 1]
    assert model.decision_function(rows)[0] == 0
    assert model.decision_function(rows[:1])[0] == 0
