"""GoalClassifier and MixtureClassifier with rules of more than two classes."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.naive_bayes import GaussianNB

import counterpoise as cp
from counterpoise.goals import InfeasibleGoals, Table
from counterpoise.rules.class_scores.rules import TierRule

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


def test_weights_count_as_rows_do():
    weights = np.random.default_rng(0).integers(0, 3, 300)
    one = mixed(goals=[FLOOR]).fit(X[CHOOSE], Y[CHOOSE], weights)
    other = mixed(goals=[FLOOR]).fit(np.repeat(X[CHOOSE], weights, axis=0), np.repeat(Y[CHOOSE], weights))
    assert one.value_ == pytest.approx(other.value_, abs=2e-3)


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


def test_rules_may_look_at_groups_and_refuse_others():
    goal = "abs(recall(of=bee, sex=F) - recall(of=bee, sex=M)) <= 0.01"
    model = mixed(goals=[goal, "recall(of=bee) >= 0.8"], by="sex")
    model.fit(X[CHOOSE], Y[CHOOSE], sensitive_features={"sex": SEX[CHOOSE]})
    assert all(check.holds for check in model.check_goals())
    assert {rule.benefits.shape[0] for rule in model.rules_} == {2}
    model.predict(X[TEST], sensitive_features={"sex": SEX[TEST]})
    with pytest.raises(ValueError, match="hold the group 'sex=X'"):
        model.predict(X[:1], sensitive_features={"sex": ["X"]})


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


def test_a_saved_model_decides_the_same(tmp_path, floor):
    soft = mixed([("forest", RandomForestClassifier(5, random_state=0).fit(X[TRAIN], Y[TRAIN]))], alpha=0.3)
    for number, model in enumerate((floor, soft.fit(X[CHOOSE], Y[CHOOSE]))):
        cp.save(model, tmp_path / f"{number}.cp")
        loaded = cp.load(tmp_path / f"{number}.cp")
        np.testing.assert_array_equal(loaded.predict(X[TEST]), model.predict(X[TEST]))
        assert loaded.rebalance(alpha=0.5).value_ == pytest.approx(model.rebalance(alpha=0.5).value_)


def test_a_crafted_rule_is_refused(floor):
    for name, value in {"level": 1.0, "alpha": 0.0, "benefits": np.full((1, 4, 4), np.nan)}.items():
        with pytest.raises(ValueError, match=r"out of range|not finite"):
            TierRule(0, 0.5, 0.1, np.zeros((1, 4, 4)))._replace(**{name: value}).check_loaded()
    broken = floor.rebalance()
    broken.rules_ = [rule._replace(benefits=np.zeros((1, 3, 3))) for rule in broken.rules_]
    with pytest.raises(ValueError, match="a rule is of other groups or classes"):
        broken.check_loaded()


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


def test_stored_probabilities_choose_and_do_not_decide_about_others():
    told = MODEL.predict_proba(X[CHOOSE])
    model = mixed([told], goals=[FLOOR]).fit(X[CHOOSE], Y[CHOOSE])
    assert model.check_goals()[0].holds
    with pytest.raises(ValueError, match="stored probabilities for the rows of fit, and cannot predict other"):
        model.predict(X[TEST])


def test_goals_out_of_reach_are_told_with_the_least_violation_that_was_found():
    with pytest.raises(InfeasibleGoals, match="The least total violation found is"):
        mixed(goals=["every_class(recall) >= 0.99"]).fit(X[CHOOSE], Y[CHOOSE])


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


def test_a_fixed_rule_may_defer():
    model = mixed(goals=["decided_error_rate <= 0.1"], deferral=cp.Deferral(0.3), decision="fixed")
    model.fit(X[CHOOSE], Y[CHOOSE])
    assert model.check_goals()[0].holds
    assert set(np.unique(model.decision_proba(X[TEST]))) == {0.0, 1.0}


def test_the_price_of_a_goal_is_traced_at_given_bounds():
    model = mixed().fit(X[CHOOSE], Y[CHOOSE])
    points = cp.tradeoff(model, "recall(of=ant) >= 0.8", [0.8, 0.9, 0.999])
    assert points.values[0] <= points.values[1] + 1e-3
    for point in points:
        assert np.isnan(point.value) or point.mixture.shape == (len(points.rules),)
    with pytest.raises(ValueError, match=r"bounds that can be met are not known\. Pass bounds"):
        cp.tradeoff(model, "recall(of=ant) >= 0.8")


def test_bounds_that_the_rows_can_never_show_have_no_value():
    model = mixed().fit(X[CHOOSE], Y[CHOOSE])
    points = cp.tradeoff(model, "recall(of=ant) >= 0.5 with confidence 0.95", [0.5, 0.999])
    assert np.isnan(points.values).tolist() == [False, True]


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


class Told:
    """A model that tells probabilities of rows by their number."""

    def __init__(self, probabilities):
        self.probabilities, self.classes_ = probabilities, np.arange(probabilities.shape[1])

    def predict_proba(self, rows):
        return self.probabilities[np.asarray(rows)[:, 0].astype(int)]


def odd_probabilities(kind, labels, rng):
    """Return probabilities with zeros, ones and equals."""
    n_rows, n_classes = labels.size, int(labels.max()) + 1
    said = np.where(rng.random(n_rows) < 0.7, labels, rng.integers(0, n_classes, n_rows))
    if kind == "sure":
        return np.eye(n_classes)[said]
    if kind == "halves":
        return 0.5 * (np.eye(n_classes)[said] + np.eye(n_classes)[(said + 1) % n_classes])
    counts = 1e-12 + rng.integers(0, 3, (n_rows, n_classes)) + 3 * np.eye(n_classes)[said]
    return counts / counts.sum(axis=1, keepdims=True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sure", "halves", "counts"])
@pytest.mark.parametrize(("alpha", "defer_cost"), [(1.0, None), (0.2, None), (0.2, 0.3)])
def test_rules_are_never_worse_than_what_the_model_says_by_itself(kind, alpha, defer_cost):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        labels = rng.permutation(np.arange(60) % 5)
        told = odd_probabilities(kind, labels, rng)
        model = mixed([Told(told)], alpha=alpha, deferral=None if defer_cost is None else cp.Deferral(defer_cost)).fit(
            np.arange(60.0)[:, None], labels
        )
        error = np.mean(told.round(9).argmax(axis=1) != labels)
        assert model.value_ <= min(1.0, error / alpha) + 1e-4
