"""GoalClassifier and MixtureClassifier with rules of more than two classes."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.naive_bayes import GaussianNB

import counterpoise as cp
from counterpoise.goals import Table

X, CODES = make_classification(
    900, 8, n_informative=6, n_classes=4, n_clusters_per_class=1, class_sep=1.3, flip_y=0.03, random_state=0
)
NAMES = np.array(["ant", "bee", "cat", "dog"])
Y, SEX = NAMES[CODES], np.where(np.arange(900) % 3 == 0, "F", "M")
TRAIN, CHOOSE, TEST = slice(0, 300), slice(300, 600), slice(600, 900)
MODEL = LogisticRegression().fit(X[TRAIN], Y[TRAIN])
FLOOR = "every_class(recall) >= 0.83"


def mixed(models=None, **settings):
    """Return rules of models chosen on some rows."""
    given = {"cv": "prefit", "decision": "sticky", "random_state": 0} | settings
    return cp.GoalClassifier([MODEL] if models is None else models, **given, confidence=None)


def recalls(model, rows=CHOOSE, **given):
    """Return the expected recall of each class."""
    said = model.decision_proba(X[rows], **given)
    return np.array([said[CODES[rows] == one, one].mean() for one in range(4)])


@pytest.fixture(scope="module")
def floor():
    return mixed(goals=[FLOOR]).fit(X[CHOOSE], Y[CHOOSE])


def test_a_floor_on_every_recall_is_kept_exactly_on_the_rows_of_choice(floor):
    assert recalls(mixed().fit(X[CHOOSE], Y[CHOOSE])).min() < 0.83
    assert recalls(floor).min() >= 0.83 - 1e-8
    (check,) = floor.check_goals()
    assert check.holds
    assert floor.gap_ >= 0
    assert "pool" in floor.certificate_


def test_answers_are_drawn_by_the_person_and_as_often_as_the_mixture_says(floor):
    rows, ids = np.repeat(X[TEST][:2], 4000, axis=0), np.arange(8000)
    soft = mixed(alpha=0.1).fit(X[CHOOSE], Y[CHOOSE])
    said = soft.predict(rows, ids=ids)
    np.testing.assert_array_equal(soft.predict(rows[::-1], ids=ids[::-1])[::-1], said)
    share = np.array([[(said[part] == name).mean() for name in NAMES] for part in (slice(4000), slice(4000, 8000))])
    np.testing.assert_allclose(share, soft.decision_proba(X[TEST][:2]), atol=0.03)
    np.testing.assert_array_equal(floor.predict(X[TEST])[::2], floor.predict(X[TEST][::2]))
    np.testing.assert_array_equal(
        soft.set_params(decision="vote").predict(X[TEST]), NAMES[soft.decision_proba(X[TEST]).argmax(axis=1)]
    )


@pytest.mark.parametrize(
    "goal",
    [
        "recall(of=bee) >= 0.85",
        "positive_rate(of=cat) <= 0.2",
        "confusion(of=ant, called=dog) <= 0.01",
        "precision(of=dog) >= 0.9",
        "recall(of=bee, sex=F) >= 0.85",
        "churn(mail) <= 0.1",
    ],
)
def test_any_goal_on_classes_groups_and_other_datasets_holds(goal):
    mail = Table(X[TEST], baseline=MODEL.predict(X[TEST]))
    model = mixed(goals=[goal], alpha=0.5).fit(
        X[CHOOSE], Y[CHOOSE], sensitive_features={"sex": SEX[CHOOSE]}, datasets={"mail": mail}
    )
    assert all(check.holds for check in model.check_goals())
    assert model.multipliers_.shape == (1,)


def test_one_model_and_one_rule_decide_and_meet_goals_without_draws():
    goal = "recall(of=bee) >= 0.8"
    fixed = cp.GoalClassifier(GaussianNB(), goals=[goal], cv=3, random_state=0, confidence=None).fit(X[:600], Y[:600])
    assert len(fixed.estimators_) == 1
    assert fixed.check_goals()[0].holds
    assert set(np.unique(fixed.decision_proba(X[TEST]))) == {0.0, 1.0}
    assert fixed.fixed_cost_ >= 0
    np.testing.assert_allclose(fixed.predict_proba(X[TEST]), fixed.estimators_[0].predict_proba(X[TEST]))
    drawn = cp.GoalClassifier(GaussianNB(), goals=[goal], cv=3, decision="sticky", random_state=0, confidence=None)
    assert set(drawn.fit(X[:600], Y[:600]).predict(X[TEST])) <= set(NAMES)
    np.testing.assert_allclose(drawn.decision_proba(X[TEST]).sum(axis=1), 1.0)


def test_another_aim_needs_no_model_and_stages_take_one_after_the_other(floor):
    asked = []

    def counted(rows):
        asked.append(len(rows))
        return MODEL.predict_proba(rows)

    model = mixed([counted]).fit(X[CHOOSE], Y[CHOOSE])
    n_asked = len(asked)
    again = model.rebalance(goals=[FLOOR])
    assert len(asked) == n_asked
    assert again.value_ == pytest.approx(floor.value_, abs=1e-3)
    assert model.rebalance(alpha=0.2).alpha_ == 0.2
    several = mixed([GaussianNB().fit(X[TRAIN], Y[TRAIN]), MODEL]).fit(X[CHOOSE], Y[CHOOSE])
    stages = list(several.staged_decision_proba(X[TEST]))
    np.testing.assert_allclose(stages[-1], several.decision_proba(X[TEST]))
    assert several.decision_function(X[TEST]).shape == (300, 4)


def test_the_worst_group_and_rates_can_be_made_small():
    given = {"sensitive_features": {"sex": SEX[CHOOSE]}}
    worst = mixed(objective="worst-group").fit(X[CHOOSE], Y[CHOOSE], **given)
    assert worst.value_ <= mixed().fit(X[CHOOSE], Y[CHOOSE], **given).value_ + 0.1
    rate = mixed(objective="false_negative_rate(of=bee)", goals=["error_rate <= 0.3"])
    rate.fit(X[CHOOSE], Y[CHOOSE])
    assert rate.value_ == pytest.approx(1 - recalls(rate)[1], abs=1e-6)
    assert rate.check_goals()[0].holds
    other = mixed(objective="0.5 * Mean() + 0.5 * CVaR(0.1)").fit(X[CHOOSE], Y[CHOOSE])
    assert 0 <= other.gap_ <= 1e-3


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda rows: np.full((len(rows), 4), 0.3), r"must be of sum 1 in each row; row 0 sums to 1\.2"),
        (lambda rows: np.tile([-0.5, 0.5, 0.5, 0.5], (len(rows), 1)), r"must be at least 0; row 0 is \[-0\.5"),
        (lambda rows: np.full((len(rows), 4), np.nan), "must be finite; row 0 is"),
        (lambda rows: np.full((len(rows), 3), 1 / 3), r"a probability for each of 4 classes, shape \(300, 4\)"),
        (Perceptron().fit(X[TRAIN], Y[TRAIN]), "has no probabilities of 4 classes: rules need predict_proba"),
    ],
)
def test_what_is_no_probabilities_is_refused_in_a_sentence(model, message):
    with pytest.raises((ValueError, TypeError), match=message):
        mixed([model]).fit(X[CHOOSE], Y[CHOOSE])


@pytest.mark.parametrize("cost", [0.0, 0.2])
def test_rows_are_deferred_at_a_cost_and_within_a_limit(cost):
    goals = ["defer_rate <= 0.1"]
    model = mixed(alpha=0.3, goals=goals, deferral=cp.Deferral(cost)).fit(X[CHOOSE], Y[CHOOSE])
    said = model.decision_proba(X[CHOOSE])
    assert said.shape == (300, 5)
    assert 0 < said[:, 4].mean() <= 0.1 + 1e-8
    assert model.value_ < mixed(alpha=0.3).fit(X[CHOOSE], Y[CHOOSE]).value_
    assert set(model.predict(X[TEST])) - set(NAMES) == {"defer"}
    with pytest.raises(ValueError, match="label must not be mistaken for a class"):
        mixed(deferral=cp.Deferral(0.1, "cat")).fit(X[CHOOSE], Y[CHOOSE])


@pytest.mark.parametrize("decision", ["sticky", "fixed"])
def test_without_goals_the_likeliest_class_stays(decision):
    model = cp.GoalClassifier(MODEL, cv="prefit", decision=decision, random_state=0).fit(X[CHOOSE], Y[CHOOSE])
    np.testing.assert_array_equal(model.predict(X[TEST]), MODEL.predict(X[TEST]))
    np.testing.assert_allclose(model.predict_proba(X[TEST]), MODEL.predict_proba(X[TEST]))
    np.testing.assert_array_equal(
        model.decision_function(X[TEST]).argmax(axis=1), model.predict_proba(X[TEST]).argmax(axis=1)
    )
    assert model.calibrations_[0].is_none
    tail = cp.GoalClassifier(MODEL, cv="prefit", alpha=0.05, decision="sticky", random_state=0)
    assert tail.fit(X[CHOOSE], Y[CHOOSE]).value_ < 1.0
