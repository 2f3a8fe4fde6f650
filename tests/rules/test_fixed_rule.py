"""One rule without draws: the search against a look at every rule."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import counterpoise as cp
from counterpoise.goals import InfeasibleGoals
from tests.tiers import slow, some_fast


def groups_of_three(seed, n_samples=240):
    rng = np.random.default_rng(seed)
    group = np.arange(n_samples) % 3
    score = rng.normal(size=n_samples) + 0.4 * group
    y = (score + rng.normal(size=n_samples) > 0.5).astype(int)
    return score, y, group


SCORE, Y, GROUP = groups_of_three(7)
X = np.column_stack([SCORE, np.sin(SCORE)])
MODEL = LogisticRegression().fit(X, Y)
SIDES = ["recall(group=0) >= 0.7", "positive_rate <= 0.6"]


def test_decisions_of_a_fixed_rule_are_never_drawn():
    model = cp.GoalClassifier([MODEL], cv="prefit", by="group", goals=SIDES, decision="fixed", confidence=None)
    model.fit(X, Y, sensitive_features=GROUP)
    shares = model.decision_proba(X, sensitive_features=GROUP)
    assert set(shares.ravel()) <= {0.0, 1.0}
    np.testing.assert_array_equal(model.predict(X, sensitive_features=GROUP), shares[:, 1])
    assert model.fixed_cost_ >= -1e-4
    with pytest.raises(ValueError, match="ids are for decision='sticky'"):
        model.predict(X, ids=np.arange(len(X)), sensitive_features=GROUP)


def test_where_none_is_found_the_error_says_how_near_it_came_and_what_a_mixture_would_do():
    y = np.tile([0, 1], 10)
    constant = cp.GoalClassifier(
        [np.zeros(20)],
        cv="prefit",
        alpha=1.0,
        goals=["positive_rate >= 0.4", "positive_rate <= 0.6"],
        decision="fixed",
        confidence=None,
    )
    with pytest.raises(
        InfeasibleGoals,
        match=r"No single rule meets.*violation is 0\.4.*positive_rate >= 0 .*, or positive_rate <= 1 .* "
        r"A mixture of rules meets the goals, with an objective of 0\.5: set decision='sticky'.*"
        r"With each of these bounds nearly everybody gets the same decision",
    ):
        constant.fit(np.zeros((20, 1)), y)
    assert constant.rebalance(decision="sticky").value_ == pytest.approx(0.5)


def test_where_one_rule_meets_the_goals_but_not_the_budget_the_error_says_so():
    y, scores = np.tile([0, 0, 1, 1, 1], 8), np.tile([0.1, 0.5, 0.5, 0.9, 0.5], 8)
    model = cp.GoalClassifier([scores], cv="prefit", goals=["positive_rate <= 0.5"], confidence=None, budget=0.05)
    with pytest.raises(
        InfeasibleGoals, match=r"No single rule within the budget meets positive_rate <= 0\.5\. .*: raise budget"
    ) as caught:
        model.fit(np.zeros((y.size, 1)), y)
    assert caught.value.ways_out == []
    assert all(check.holds for check in model.set_params(budget=None).rebalance().check_goals())


@pytest.mark.parametrize("by", [(), slow("group")])
@pytest.mark.parametrize("seed", some_fast(range(2)))
def test_the_bounds_that_are_offered_can_be_met_by_one_rule_and_hardly_tighter_ones(seed, by):
    score, y, group = groups_of_three(seed)
    goals = ["recall >= 0.9", "positive_rate <= 0.3"]
    model = cp.GoalClassifier([score], cv="prefit", by=by, goals=goals, confidence=None)
    rows = np.zeros((len(y), 1)), y
    with pytest.raises(InfeasibleGoals, match="No single rule meets") as caught:
        model.fit(*rows, sensitive_features=group)
    *single, shared = caught.value.ways_out
    assert [len(single), len(shared)] == [2, 2]
    assert str(caught.value).count(f"If all of them give a little: {' and '.join(map(str, shared.values()))}") == 1
    for way in caught.value.ways_out:
        by_text = {str(old): new for old, new in way.items()}
        moved = [by_text.get(goal, goal) for goal in goals]
        assert all(check.holds for check in model.rebalance(goals=moved).check_goals())
    largest = [max(abs(new.bound - old.bound) for old, new in way.items()) for way in caught.value.ways_out]
    assert largest[2] < min(largest[:2])
    for way in single:
        ((old, new),) = way.items()
        tighter = new.with_bound(new.bound + (0.01 if new.sense == ">=" else -0.01))
        with pytest.raises(InfeasibleGoals):
            model.rebalance(goals=[tighter if str(old) == goal else goal for goal in goals])


@pytest.mark.slow
def test_where_a_threshold_for_each_group_would_meet_the_goals_the_error_says_so():
    rng = np.random.default_rng(0)
    group = np.repeat(["a", "b"], 200)
    y = np.tile([0, 1], 200)
    score = y + 0.8 * rng.random(400) + 3 * (group == "b")
    goals = ["abs(positive_rate(group=a) - positive_rate(group=b)) <= 0.1", "recall >= 0.8"]
    goals += ["false_positive_rate <= 0.2"]
    model = cp.GoalClassifier([score], cv="prefit", goals=goals, confidence=None)
    with pytest.raises(
        InfeasibleGoals, match=r"a threshold for each group meets them, with an objective of .*: set by='group'"
    ):
        model.fit(np.zeros((400, 1)), y, sensitive_features={"group": group})
    assert all(check.holds for check in model.rebalance(by="group").check_goals())
