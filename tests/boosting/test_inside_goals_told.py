"""What training inside goals says of what it reached: bounds, stages, goals that were missed, the deployed model."""

import warnings

import numpy as np
import pytest
from inside_problems import PARITY, Rows, boosted, make_people
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from counterpoise import LPBoostClassifier
from counterpoise.goals import InfeasibleGoals, Table
from counterpoise.learners import HistogramTree
from counterpoise.rules.cautions import CostlyDecisions

warnings.simplefilter("ignore", CostlyDecisions)


@pytest.fixture(scope="module")
def people():
    return make_people()


def test_goals_are_not_met_on_rows_that_trained_for_them_alone(people):
    """A baseline that tossed coins can be learnt by heart, and not be guessed on other rows."""
    X, y, _ = people
    rng = np.random.default_rng(4)
    mail = Table(rng.normal(size=(200, 6)), baseline=np.where(rng.random(200) < 0.5, "yes", "no"))
    given = {"datasets": {"mail": mail}, "X_val": X[:400], "y_val": y[:400]}
    learner = DecisionTreeClassifier(random_state=0)
    with pytest.raises(InfeasibleGoals, match=r"churn\(mail\) <= 0\.2"):
        boosted(people, given, goals="churn(mail) <= 0.2", estimator=learner, n_estimators=4)


@pytest.mark.parametrize("estimator", [LogisticRegression(), HistogramTree(2), DummyClassifier(strategy="stratified")])
def test_the_bound_of_a_learner_that_is_not_exact_is_never_above_what_was_reached(people, estimator):
    seen = []
    model = boosted(people, estimator=estimator, callbacks=[seen.append], n_estimators=8)
    assert all(done.standing.bound <= done.standing.value for done in seen)
    assert model.bound_if_learner_exact_ <= model.value_ + 1e-12


def test_after_rebalance_nothing_is_known_of_what_others_could_reach(people):
    model = boosted(people)
    assert np.isfinite(model.bound_if_learner_exact_)
    assert model.rebalance(goals=[]).bound_if_learner_exact_ == -np.inf


def test_stages_that_cannot_meet_the_goals_miss_them_least(people):
    model = boosted(people, goals=[PARITY, "recall >= 0.6"], n_estimators=6)
    stages = list(model.staged_decision_proba(people[0]))
    assert len(stages) == len(model.estimators_)
    np.testing.assert_allclose(stages[-1], model.predict_proba(people[0]), atol=1e-9)


def test_the_deployed_model_may_be_told_as_of_every_classifier(people):
    X, y, sex = people
    goals = [PARITY, "churn <= 0.3"]
    told = boosted(people, {"baseline": y}, goals=goals)
    as_table = boosted(people, {"table": Table(X, baseline=y)}, goals=goals)  # beside which columns still count
    np.testing.assert_array_equal(told.mixture_, as_table.mixture_)
    assert told.check_goals()[1].holds
    given = {"baseline": y[400:], "X_val": X[:400], "y_val": y[:400]}
    given |= {"sensitive_features_val": {"sex": sex[:400]}, "baseline_val": y[:400]}
    settings = {"n_estimators": 4, "alpha": 1.0, "goals": goals, "random_state": 0}
    model = LPBoostClassifier(HistogramTree(3), **settings)
    model.fit(X[400:], y[400:], sensitive_features={"sex": sex[400:]}, **given)
    assert all(check.holds for check in model.check_goals())


def test_a_goal_that_others_could_meet_alone_is_not_said_to_be_impossible():
    """Of the two goals either can be met by a stump that says the same of everybody."""
    rows = Rows(3)
    goals = ["recall >= 0.97", "false_positive_rate <= 0.03"]
    with pytest.raises(InfeasibleGoals, match=r"found that meets recall.* and ") as caught:
        rows.fit(goals=goals, alpha=1.0)
    assert not caught.value.proven
    assert [str(goal) for goal in caught.value.conflict] == goals
    missed = sum(check.violation for check in caught.value.closest.check_goals())
    assert caught.value.least_violation == pytest.approx(missed)
    assert caught.value.ways_out
    for way in caught.value.ways_out:
        others = [str(goal) for goal in caught.value.conflict if goal not in way]
        assert rows.fit(goals=[*others, *map(str, way.values())], alpha=1.0).check_goals()[0].holds
