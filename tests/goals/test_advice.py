"""What goals that conflict are told: every bound offered can be typed in as printed, and hardly tightened."""

import re
from decimal import Decimal
from functools import cache

import numpy as np
import pytest

from counterpoise import MixtureClassifier
from counterpoise.goals import InfeasibleGoals, as_goals, parse_goal

RATES = [
    "recall",
    "false_positive_rate",
    "error_rate",
    "positive_rate(sex=F)",
    "positive_rate(sex=M)",
    "coverage",
    "accuracy(sex=M)",
    "precision",
    "f1_score",
]


def random_problem(seed):
    """Return a function that fits a mixture under goals, and random goals, most of which conflict."""
    rng = np.random.default_rng(seed)
    n_samples, n_models = int(rng.integers(10, 60)), int(rng.integers(1, 7))
    y = rng.permutation(np.arange(n_samples) % 2)
    sex = rng.permutation(np.where(np.arange(n_samples) % 3 == 0, "F", "M"))
    said = np.where(rng.random((n_samples, n_models)) < rng.uniform(0.05, 0.5, n_models), 1 - y[:, None], y[:, None])
    said[:, 0] *= int(rng.integers(0, 2))
    weights = rng.choice([1.0, 0.3, 2.7], n_samples) if seed % 3 == 0 else np.ones(n_samples)
    names = rng.choice(RATES, int(rng.choice([2, 4, 6, 8])), replace=False)
    texts = [f"{name} {rng.choice(['<=', '>='])} {rng.uniform(0.02, 0.98):.{rng.integers(1, 4)}f}" for name in names]
    if seed % 4 == 0:
        texts.append("positive_rate(sex=F) >= 0.9 * positive_rate(sex=M)")
    if seed % 5 == 0:
        texts.append(f"coverage <= {10.0 ** -int(rng.integers(2, 7))}")

    def fit(goals):
        model = MixtureClassifier(list(said.T), alpha=1.0, goals=goals)
        return model.fit(np.zeros((n_samples, 1)), y, weights, sensitive_features={"sex": sex})

    return fit, list(dict.fromkeys(as_goals(texts)))


def conflict_of(fit, goals):
    """Return the error that the goals end in, or None where they can be met."""
    try:
        fit(goals)
    except InfeasibleGoals as error:
        return error
    return None


@cache
def random_conflict(seed):
    """Return such a problem with the error that it ends in."""
    fit, goals = random_problem(seed)
    return fit, goals, conflict_of(fit, goals)


def can_hold(fit, goals):
    return conflict_of(fit, goals) is None


def offers(error):
    """Return the changes that a message offers, read from its text: each a dict from goals to goals."""
    text = re.sub(r" \([^()]*error [^()]*\)", "", str(error))  # what the decisions there do
    single = re.search(r"with all other goals kept: (.*?)\.(?= [A-Z]|$)", text)
    if single:
        texts = single.group(1).split(", or ")
        return [{goal: parse_goal(text)} for goal, text in zip(error.nearest_bounds, texts, strict=True)]
    joint = re.search(r"smallest change that is(?:, \S+ in all)?: (.*?)\.(?= [A-Z]|$)", text).group(1).split(" and ")
    return [dict(zip(error.joint_bounds, map(parse_goal, joint), strict=True))]


def tightened(goal):
    """Return the goal with a bound that asks for a little more than its last printed digit."""
    printed = Decimal(re.search(r"(-?[\d.]+(e-?\d+)?)$", str(goal)).group(1))
    unit = 1.01 * float(Decimal(1).scaleb(printed.as_tuple().exponent))
    return goal.with_bound(goal.bound - unit if goal.sense == "<=" else goal.bound + unit)


def asks_less(goal, than):
    return goal.bound > than.bound if goal.sense == "<=" else goal.bound < than.bound


@pytest.mark.slow
def test_every_bound_offered_can_be_typed_in_as_printed_and_hardly_tightened():
    kinds = []
    for seed in range(14):
        fit, goals, error = random_conflict(seed)
        if error is None:
            continue
        kinds.append(bool(error.nearest_bounds))
        for change in offers(error):
            assert can_hold(fit, [change.get(goal, goal) for goal in goals])
            for old, new in change.items():
                tighter = tightened(new)
                if asks_less(tighter, old):
                    moved = {**change, old: tighter}
                    assert not can_hold(fit, [moved.get(goal, goal) for goal in goals]), (seed, tighter)
    assert set(kinds) == {True, False}


def test_numbers_offered_can_be_put_back_as_they_are():
    for seed in range(14):
        fit, goals, error = random_conflict(seed)
        if error is None:
            continue
        for place, bound in error.nearest_bounds.items():
            assert can_hold(fit, [goal.with_bound(bound) if goal == place else goal for goal in goals])
        joint = error.joint_bounds
        assert bool(joint) != bool(error.nearest_bounds)
        assert not joint or can_hold(fit, [goal.with_bound(joint.get(goal, goal.bound)) for goal in goals])


def test_two_conflicts_at_once_are_mended_together_by_the_least_change():
    y = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    goals = ["recall >= 0.9", "recall <= 0.5", "false_positive_rate >= 1.1"]
    with pytest.raises(InfeasibleGoals) as caught:
        MixtureClassifier([y, 1 - y, 0 * y], goals=goals).fit(np.zeros((8, 1)), y)
    found = caught.value
    assert found.nearest_bounds == {}
    assert "With all other goals kept, no single bound is enough" in str(found)
    assert found.joint_change == pytest.approx(1.0, abs=1e-3)  # recall 0 to 0.5 costs as much as what it frees
    assert len(found.conflict) < len(goals)


@pytest.mark.parametrize("coverage", [1e-2, 1e-4, 1e-6])
def test_a_ratio_beside_a_tiny_coverage_has_its_true_nearest_bound(coverage):
    """The best precision of any model that says yes at all, whatever little of it may be mixed in."""
    y = np.tile([0, 1], 40)
    rng = np.random.default_rng(1)
    said = [np.zeros(80, int), *(rng.integers(0, 2, 80) for _ in range(3))]
    best = max(y[one == 1].mean() for one in said[1:])
    least = coverage / 2
    goals = [f"coverage <= {coverage!r}", f"coverage >= {least!r}", "precision >= 0.9"]
    with pytest.raises(InfeasibleGoals) as caught:
        MixtureClassifier(said, alpha=1.0, goals=goals).fit(np.zeros((80, 1)), y)
    offered = next(bound for goal, bound in caught.value.nearest_bounds.items() if "precision" in str(goal))
    assert offered == pytest.approx(best, abs=1e-6)


def test_the_least_violation_is_that_of_the_conflict():
    y = np.array([0, 0, 1, 1])
    goals = ["recall >= 0.9", "recall <= 0.6", "accuracy >= 3"]
    with pytest.raises(InfeasibleGoals) as caught:
        MixtureClassifier([y, 1 - y], goals=goals).fit(np.zeros((4, 1)), y)
    assert [str(goal) for goal in caught.value.conflict] == ["accuracy >= 3"]
    assert caught.value.least_violation == pytest.approx(2.0)


def test_goals_that_hold_an_offered_bound_where_it_is_are_named():
    """Alone recall misses by little; the coverage beside it is what the bound offered has to pay for."""
    y = np.tile([0, 1], 50)
    said = [np.zeros(100, int), np.where(np.arange(100) < 96, y, 0), np.ones(100, int) * y * 0]
    goals = ["recall >= 0.99", "coverage <= 0.1"]
    with pytest.raises(InfeasibleGoals) as caught:
        MixtureClassifier(said, alpha=1.0, goals=goals).fit(np.zeros((100, 1)), y)
    assert [str(goal) for goal in caught.value.conflict] == ["recall >= 0.99"]
    assert "It must hold beside coverage <= 0.1. The nearest bounds" in str(caught.value)
