"""Rules of class probabilities: no randomized rule is better, and what their certificate covers."""

import numpy as np
import pytest
from class_problems import best_of_all, drawn_rows, fitted, losses, written_rows

from counterpoise.goals import InfeasibleGoals
from counterpoise.metrics import cvar_loss

SOME_GOALS = (
    [],
    ["every_class(recall) >= 0.42"],
    ["positive_rate(of=0) <= 0.15"],
    ["recall(of=1) >= 0.7", "confusion(of=2, called=0) <= 0.05"],
)


@pytest.mark.parametrize("seed", range(3))
def test_with_true_probabilities_no_randomized_rule_is_better(seed):
    rng = np.random.default_rng(seed)
    shares, _ = drawn_rows(seed, int(rng.integers(20, 45)), int(rng.integers(3, 6)))
    repeated, labels, weights = written_rows(shares)
    alpha, goals = (1.0, 0.5, 0.3, 0.15)[seed % 4], SOME_GOALS[(seed // 4 + seed) % 4]
    model = fitted(repeated, labels, weights, alpha=alpha, goals=goals)
    best = best_of_all(repeated, labels, weights, alpha, goals)
    assert best - 1e-7 <= model.value_ <= best + 1e-3


def test_a_budget_is_kept_and_the_least_tail_within_it_is_found():
    shares, _ = drawn_rows(3, 40, 4)
    repeated, labels, weights = written_rows(shares)
    least = best_of_all(repeated, labels, weights, 1.0)
    model = fitted(repeated, labels, weights, alpha=0.3, budget=0.03)
    best = best_of_all(repeated, labels, weights, 0.3, most=least + 0.03)
    assert best - 1e-6 <= model.value_ <= best + 1e-3
    assert np.average(losses(model), weights=weights) <= least + 0.03 + 1e-6


def test_values_and_goals_are_exact_on_the_rows_and_the_bound_covers_the_pool():
    shares, labels = drawn_rows(4, 300, 6)
    model = fitted(shares, labels, alpha=0.4, goals=["every_class(recall) >= 0.5", "positive_rate(of=2) <= 0.2"])
    lost = losses(model)
    assert model.value_ == pytest.approx(cvar_loss(lost, 0.4), abs=1e-9)
    assert min(1 - lost[labels == label].mean() for label in range(6)) >= 0.5 - 1e-8
    assert 0 <= model.gap_ <= 1.1e-4


@pytest.mark.slow
def test_twenty_six_classes_reach_a_floor_each():
    shares, labels = drawn_rows(6, 2600, 26, sharpness=3.5)
    right = shares.argmax(axis=1) == labels
    assert min(right[labels == label].mean() for label in range(26)) < 0.6
    lost = losses(fitted(shares, labels, goals=["every_class(recall) >= 0.6"]))
    assert min(1 - lost[labels == label].mean() for label in range(26)) >= 0.6 - 1e-8
    assert lost.mean() <= 1 - right.mean() + 0.02


def test_goals_of_groups_are_met_with_and_without_a_look_at_them():
    shares, labels = drawn_rows(7, 600, 4)
    sex = np.where(np.random.default_rng(0).random(600) < 0.4, "F", "M")
    goals = ["abs(recall(of=1, sex=F) - recall(of=1, sex=M)) <= 0.01", "recall(of=1, sex=F) >= 0.7"]
    values = []
    for by in ("sex", ()):
        model = fitted(shares, labels, columns={"sex": sex}, by=by, goals=goals)
        recalls = [1 - losses(model)[(labels == 1) & (sex == group)].mean() for group in "FM"]
        assert abs(recalls[0] - recalls[1]) <= 0.01 + 1e-8
        assert recalls[0] >= 0.7 - 1e-8
        values.append(model.value_)
    assert values[0] <= values[1] + 0.005  # who may look loses no more


def test_goals_that_no_rule_was_found_for_are_not_called_impossible():
    shares, labels = drawn_rows(8, 200, 4)
    with pytest.raises(InfeasibleGoals, match=r"every_class\(recall\) >= 0.97") as caught:
        fitted(shares, labels, goals=["every_class(recall) >= 0.97"])
    assert not caught.value.proven
    (goal, bound), *_ = caught.value.nearest_bounds.items()
    assert fitted(shares, labels, goals=[goal.with_bound(bound - 0.01)]).value_ < 1.0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_bounds_that_are_offered_are_met_as_printed(seed):
    shares, labels = drawn_rows(seed, 60, 4)
    with pytest.raises(InfeasibleGoals, match=r"every_class\(recall\) >= 0.95") as caught:
        fitted(shares, labels, goals=["every_class(recall) >= 0.95", "positive_rate(of=1) <= 0.1"])
    for way in caught.value.ways_out:
        fitted(shares, labels, goals=[str(way.get(goal, goal)) for goal in caught.value.conflict])
