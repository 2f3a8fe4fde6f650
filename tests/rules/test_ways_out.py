"""Ways out of goals that cannot be met: in the order of their cost, with what decisions do there."""

import pickle
import re
import traceback

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import counterpoise as cp
from counterpoise.goals import InfeasibleGoals, parse_goal
from tests.tiers import problems


def weak_scores(n_rows=1000):
    """Return labels, a fifth of them positive, and scores that tell them apart badly."""
    rng = np.random.default_rng(0)
    y = (rng.random(n_rows) < 0.2).astype(int)
    return y, rng.normal(size=n_rows) + 1.1 * y


def refuse(goals):
    y, scores = weak_scores()
    model = cp.GoalClassifier([scores], cv="prefit", goals=goals, confidence=None)
    with pytest.raises(InfeasibleGoals) as caught:
        model.fit(np.zeros((y.size, 1)), y)
    return model, caught.value


def decide(model, way):
    """Return the selection rate and the error of the rule that a way out leads to."""
    rule = model.rebalance(goals=[way.get(goal, goal) for goal in model.goals_])
    y, scores = weak_scores()
    answers = (scores > rule.rules_[0].thresholds["all"]).astype(int)
    return answers.mean(), (answers != y).mean()


@pytest.mark.parametrize("decision", ["fixed", "sticky"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_infeasible_goals_are_one_exception_with_one_traceback(decision, n_classes):
    rng = np.random.default_rng(0)
    y = np.arange(300) % n_classes
    scores = rng.dirichlet(np.ones(n_classes), y.size)
    model = cp.GoalClassifier([scores if n_classes > 2 else scores[:, 1]], cv="prefit", decision=decision)
    model.set_params(goals=["recall(of=1) >= 0.9", "positive_rate(of=1) <= 0.2"], confidence=None)
    with pytest.raises(InfeasibleGoals) as caught:
        model.fit(np.zeros((y.size, 1)), y)
    told = "".join(traceback.format_exception(caught.value))
    assert told.count("Traceback") == told.count("recall(of=1) >= 0.9 and") == 1


def test_advice_that_finds_no_time_leaves_out_bounds_and_says_so(monkeypatch):
    monkeypatch.setattr("counterpoise._base.budget.ADVICE_SECONDS", -1e9)
    _, error = refuse(["recall >= 0.8", "positive_rate <= 0.3"])
    assert len(error.conflict) == 2
    assert error.proven
    assert error.ways_out == []
    assert error.as_dict()["least_violation"] is None
    assert str(error) == (
        "These goals cannot hold together: recall >= 0.8 and positive_rate <= 0.3. "
        "The search for bounds ended for lack of time: others may be met too."
    )


def test_ways_out_come_by_their_cost_with_what_decisions_do_there():
    model, error = refuse(["recall >= 0.8", "positive_rate <= 0.3"])
    assert error.outcomes[0].cost <= error.outcomes[1].cost
    assert len(error.outcomes) == len(error.ways_out) == 3
    for way, outcome in zip(error.ways_out, error.outcomes, strict=True):
        assert (outcome.selection_rate, outcome.error) == pytest.approx(decide(model, way))
        bounds = " and ".join(map(str, way.values()))
        assert f"{bounds} (selection rate {outcome.selection_rate:.1%}, error {outcome.error:.1%})" in str(error)
    assert "Without goals the least error is" in str(error)
    assert error.as_dict()["outcomes"][0]["error"] == error.outcomes[0].error
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301 - our own


def test_bounds_that_move_together_are_offered_where_each_alone_leads_to_constant_decisions():
    model, error = refuse(["precision >= 0.95", "recall >= 0.995"])
    (way,) = error.ways_out
    assert len(way) == 2
    assert "Together these bounds can be met" in str(error)
    assert 0.02 < decide(model, way)[0] < 0.98


@pytest.mark.parametrize(("beyond", "is_said"), [(0.005, True), (0.1, False)])
def test_a_bound_that_is_missed_by_little_may_be_met_by_other_folds(beyond, is_said):
    y, scores = weak_scores(400)
    goals = ["recall >= 0.99", "positive_rate <= 0.4"]
    model = cp.GoalClassifier(LogisticRegression(), goals=goals, confidence=None, random_state=0)
    with pytest.raises(InfeasibleGoals) as caught:
        model.fit(scores[:, None], y)
    nearest = next(new.bound for way in caught.value.ways_out for old, new in way.items() if old.bound == 0.99)
    with pytest.raises(InfeasibleGoals) as caught:
        model.rebalance(goals=[f"recall >= {nearest + beyond}", "positive_rate <= 0.4"])
    assert ("other folds alone move it as much" in str(caught.value)) is is_said


@pytest.mark.parametrize("goals", [["recall >= 0.8", "positive_rate <= 0.3"], ["precision >= 0.95", "recall >= 0.995"]])
def test_with_a_confidence_the_bound_that_keeps_it_is_named_and_keeps_it(goals):
    y, scores = weak_scores(2000)
    model = cp.GoalClassifier([scores], cv="prefit", goals=goals, confidence=0.9)
    with pytest.raises(InfeasibleGoals) as caught:
        model.fit(np.zeros((y.size, 1)), y)
    sure = caught.value.sure
    assert f"with {' and '.join(map(str, sure.values()))} all goals hold on new rows with confidence" in str(
        caught.value
    )
    assert caught.value.as_dict()["sure"] == [{"goal": str(old), "instead": str(new)} for old, new in sure.items()]
    kept = model.rebalance(goals=[sure.get(goal, goal) for goal in model.goals_])
    assert kept.confidence_ == 0.9


def test_without_a_bound_that_keeps_the_confidence_none_is_named():
    y, scores = weak_scores(40)
    model = cp.GoalClassifier([scores], cv="prefit", goals=["recall >= 0.95", "precision >= 0.6"], confidence=0.999)
    with pytest.raises(InfeasibleGoals, match="Bounds are just met there; loosen them further to reach"):
        model.fit(np.zeros((y.size, 1)), y)


def test_without_goals_the_least_error_is_below_that_of_every_way_out():
    rng = np.random.default_rng(0)
    y, x = (rng.random(1500) < 0.4).astype(int), rng.normal(size=(1500, 3))
    x[:, 0] += 0.8 * y
    many = LogisticRegression(class_weight={1: 4})  # whose usual threshold is not the best one
    model = cp.GoalClassifier(many, goals=["recall >= 0.9", "positive_rate <= 0.25"], random_state=0)
    with pytest.raises(InfeasibleGoals) as caught:
        model.fit(x, y)
    least = float(re.search(r"Without goals the least error is (.*)%", str(caught.value))[1]) / 100
    assert least <= min(one.error for one in caught.value.outcomes) + 5e-4


TINY = [
    *("recall >= 0.9", "positive_rate <= 0.2", "every_group(error_rate, by=group) <= 0.2", "precision >= 0.8"),
    *("every_group(churn, by=group) <= 0.2", "max_difference(positive_rate, by=group) <= 0.1"),
]


@pytest.mark.parametrize("decision", ["fixed", "sticky"])
def test_conflicts_are_smallest_sets_and_every_way_out_of_tiny_tables_works(decision):
    rng, refused = np.random.default_rng(3), 0
    for _ in range(12):
        scores, y, group, deployed = rng.choice([0.1, 0.5, 0.9], 8), *rng.integers(0, 2, (3, 8))
        y[:2] = group[2:4] = 0, 1
        goals = list(map(parse_goal, rng.choice(TINY, 3, replace=False)))

        def fit_to(goals, scores=scores, y=y, group=group, deployed=deployed):
            model = cp.GoalClassifier([scores], cv="prefit", goals=goals, confidence=None, decision=decision)
            return model.fit(np.zeros((8, 1)), y, sensitive_features=group, baseline=deployed)

        error = None
        try:
            fit_to(goals)
        except InfeasibleGoals as caught:
            error = caught
        if error is None:
            continue
        refused += 1
        for way in error.ways_out:
            fit_to([way.get(goal, goal) for goal in goals])
        for goal in error.conflict if len(error.conflict) > 1 else ():
            fit_to([one for one in error.conflict if one is not goal])
        moves = [abs(bound - goal.bound) for goal, bound in error.nearest_bounds.items()]
        assert 0 < error.least_violation <= min(moves, default=np.inf) + 1e-9
    assert refused >= 5


CLASS_GOALS = [
    *("recall(of=1) >= 0.9", "positive_rate(of=1) <= 0.2", "precision(of=1) >= 0.8"),
    *("every_class(recall) >= 0.7", "error_rate <= 0.2"),
]


@pytest.mark.parametrize("seed", problems(2, 8))
def test_conflicts_of_three_classes_are_smallest_sets_and_every_way_out_works(seed):
    rng = np.random.default_rng(seed)
    y = np.arange(90) % 3
    scores = rng.dirichlet(np.ones(3), y.size) + 0.5 * np.eye(3)[y]
    scores /= scores.sum(axis=1, keepdims=True)
    goals = list(map(parse_goal, rng.choice(CLASS_GOALS, 3, replace=False)))

    def fit_to(goals):
        model = cp.GoalClassifier([scores], cv="prefit", goals=goals, confidence=None)
        return model.fit(np.zeros((y.size, 1)), y)

    error = None
    try:
        fit_to(goals)
    except InfeasibleGoals as caught:
        error = caught
    if error is None:
        return
    for goal in error.conflict if len(error.conflict) > 1 else ():
        fewer = [one for one in error.conflict if one is not goal]
        assert all(check.holds for check in fit_to(fewer).check_goals())
    assert error.ways_out
    for way in error.ways_out:
        assert all(check.holds for check in fit_to([way.get(goal, goal) for goal in goals]).check_goals())
