"""Rules of class probabilities: the pure rules, the program over them, and what its certificate covers."""

from itertools import pairwise

import numpy as np
import pytest
from class_problems import best_of_all, chosen, drawn_rows, known_rows, written_rows
from scipy.optimize import linprog

from counterpoise.goals import InfeasibleGoals, as_goals
from counterpoise.metrics import cvar_loss
from counterpoise.rules.class_scores.rules import PricedRows, TierRule, argmax_rule, refine
from counterpoise.rules.class_scores.table import fit_calibration
from counterpoise.rules.scores.table import RuleGroups

NOBODY = np.zeros(1, dtype=np.int64)
SOME_GOALS = (
    [],
    ["every_class(recall) >= 0.42"],
    ["positive_rate(of=0) <= 0.15"],
    ["recall(of=1) >= 0.7", "confusion(of=2, called=0) <= 0.05"],
)


def best_answers(told, benefits, alpha, level, defer_cost=None):
    """Return the best value of the problem that a two-tier rule solves, for one row, by HiGHS."""
    n_classes, n_answers = benefits.shape
    cost = np.concatenate([-(told @ benefits), told / alpha])  # answers, then what each label loses above the level
    saved = np.eye(n_classes, n_answers)
    if defer_cost is not None:
        saved[:, -1] = 1.0 - defer_cost
    above = np.hstack([-saved, -np.eye(n_classes)])
    whole = np.concatenate([np.ones(n_answers), np.zeros(n_classes)])[None]
    return linprog(cost, above, np.full(n_classes, level - 1.0), whole, [1.0], method="highs").fun


@pytest.mark.parametrize("seed", range(10))
def test_two_tiers_are_the_best_answers_to_right_probabilities(seed):
    rng = np.random.default_rng(seed)
    n_classes, alpha, level = int(rng.integers(3, 27)), rng.uniform(0.05, 1.0), rng.uniform(0.0, 0.9)
    told, benefits = rng.dirichlet(np.full(n_classes, 0.5)), rng.normal(size=(n_classes, n_classes)) * rng.uniform(0, 9)
    said = TierRule(0, level, alpha, benefits[None]).answers(told[None], NOBODY)[0]
    assert said.min() >= 0
    assert said.sum() == pytest.approx(1.0)
    value = told @ np.maximum(1.0 - said - level, 0.0) / alpha - said @ (told @ benefits)
    assert value == pytest.approx(best_answers(told, benefits, alpha, level), abs=1e-8)


def test_deferral_takes_the_cheapest_of_three_which_is_mostly_the_best_of_all():
    gaps = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n_classes, alpha, level, cost = int(rng.integers(3, 8)), *rng.uniform([0.05, 0.0, 0.0], [1.0, 0.9, 0.8])
        told, benefits = rng.dirichlet(np.full(n_classes, 0.7)), rng.normal(size=(n_classes, n_classes + 1)) * 3
        said = TierRule(0, level, alpha, benefits[None], defer_cost=cost).answers(told[None], NOBODY)[0]
        lost = 1.0 - said[:-1] - (1.0 - cost) * said[-1]
        value = told @ np.maximum(lost - level, 0.0) / alpha - said @ (told @ benefits)
        gaps.append((value - best_answers(told, benefits, alpha, level, cost)) / (1.0 / alpha + np.abs(benefits).max()))
    assert min(gaps) >= -1e-9
    assert np.mean(np.array(gaps) > 1e-7) <= 0.15
    assert max(gaps) <= 0.05


def test_the_layers_of_a_rule_are_rules_without_draws_that_make_it_up():
    told, _ = drawn_rows(0, 50, 5)
    rule, groups = TierRule(0, 2 / 3, 0.3, np.eye(5)[None]), np.zeros(50, dtype=np.int64)
    layers = [rule._replace(layer=layer).answers(told, groups) for layer in range(rule.n_layers)]
    assert len(layers) == 3
    assert all(set(np.unique(layer)) == {0.0, 1.0} for layer in layers)
    np.testing.assert_allclose(np.mean(layers, axis=0), rule.answers(told, groups), atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_with_true_probabilities_no_randomized_rule_is_better(seed):
    rng = np.random.default_rng(seed)
    told, _ = drawn_rows(seed, int(rng.integers(20, 45)), int(rng.integers(3, 6)))
    repeated, labels, weights = written_rows(told)
    alpha, goals = (1.0, 0.5, 0.3, 0.15)[seed % 4], SOME_GOALS[(seed // 4 + seed) % 4]
    found = chosen(known_rows([repeated, repeated], labels, weights), alpha, goals)
    best = best_of_all(repeated, labels, weights, alpha, goals)
    assert best - 1e-7 <= found.value <= best + 1e-3


def test_a_budget_is_kept_and_the_least_tail_within_it_is_found():
    told, _ = drawn_rows(3, 40, 4)
    repeated, labels, weights = written_rows(told)
    known = known_rows([repeated, repeated], labels, weights)
    least = best_of_all(repeated, labels, weights, 1.0)
    found = chosen(known, 0.3, budget=0.03)
    best = best_of_all(repeated, labels, weights, 0.3, most=least + 0.03)
    assert best - 1e-6 <= found.value <= best + 1e-3
    lost = known.predictions_of(found.rules).losses @ found.mixture
    assert weights @ lost / weights.sum() <= least + 0.03 + 1e-6


def test_values_and_goals_are_exact_on_the_rows_and_the_bound_covers_the_pool():
    told, labels = drawn_rows(4, 300, 6)
    known = known_rows(told, labels)
    found = chosen(known, 0.4, ["every_class(recall) >= 0.5", "positive_rate(of=2) <= 0.2"])
    lost = known.predictions_of(found.rules).losses @ found.mixture
    assert found.value == pytest.approx(cvar_loss(lost, 0.4), abs=1e-9)
    assert min(1 - lost[labels == one].mean() for one in range(6)) >= 0.5 - 1e-8
    assert 0 <= found.value - found.lower <= 1.1e-4
    assert "the pool of" in found.covers


@pytest.mark.slow
def test_the_names_of_classes_do_not_matter():
    told, labels = drawn_rows(5, 300, 5)
    order = np.array([3, 1, 4, 0, 2])
    goals = [f"recall(of={one}) >= 0.55" for one in range(5)]
    one = chosen(known_rows(told, labels), 0.5, goals)
    places = np.argsort(order)  # the class k is now called order[k]
    other = chosen(known_rows(told[:, places], order[labels]), 0.5, goals)
    assert other.value == pytest.approx(one.value, abs=2e-3)


@pytest.mark.slow
def test_twenty_six_classes_reach_a_floor_each():
    told, labels = drawn_rows(6, 2600, 26, sharpness=3.5)
    known = known_rows(told, labels)
    plain = 1 - known.losses(np.eye(26)[told.argmax(axis=1)])
    assert min(plain[labels == one].mean() for one in range(26)) < 0.6
    found = chosen(known, 1.0, ["every_class(recall) >= 0.6"])
    lost = known.predictions_of(found.rules).losses @ found.mixture
    assert min(1 - lost[labels == one].mean() for one in range(26)) >= 0.6 - 1e-8
    assert lost.mean() <= 1 - plain.mean() + 0.02


def test_goals_of_groups_are_met_with_and_without_a_look_at_them():
    told, labels = drawn_rows(7, 600, 4)
    sex = np.where(np.random.default_rng(0).random(600) < 0.4, "F", "M")
    goal = ["abs(recall(of=1, sex=F) - recall(of=1, sex=M)) <= 0.01", "recall(of=1, sex=F) >= 0.7"]
    values = []
    for by in (RuleGroups(("sex",), ("sex=F", "sex=M")), RuleGroups((), ("all",))):
        known = known_rows(told, labels, groups=by, columns={"sex": sex})
        found = chosen(known, 1.0, goal)
        lost = known.predictions_of(found.rules).losses @ found.mixture
        recalls = [1 - lost[(labels == 1) & (sex == one)].mean() for one in "FM"]
        assert abs(recalls[0] - recalls[1]) <= 0.01 + 1e-8
        assert recalls[0] >= 0.7 - 1e-8
        values.append(found.value)
    assert values[0] <= values[1] + 0.005  # who may look loses no more


def test_goals_that_no_rule_was_found_for_are_not_called_impossible():
    told, labels = drawn_rows(8, 200, 4)
    with pytest.raises(
        InfeasibleGoals, match=r"No classifier of this kind was found.*least total violation found"
    ) as found:
        chosen(known_rows(told, labels), 1.0, ["every_class(recall) >= 0.97"])
    assert not found.value.proven
    (goal, bound), *_ = found.value.nearest_bounds.items()
    again = chosen(known_rows(told, labels), 1.0, [goal.with_bound(bound - 0.01)])
    assert again.value < 1.0


def test_probabilities_are_calibrated_only_where_held_out_rows_say_so():
    told, labels = drawn_rows(9, 3000, 4)
    assert fit_calibration(told, labels, np.ones(3000)).is_none
    sure = told**3 * np.array([1.0, 1.0, 3.0, 1.0])
    sure /= sure.sum(axis=1, keepdims=True)
    found = fit_calibration(sure, labels, np.ones(3000))
    assert found.temperature == pytest.approx(3.0, rel=0.1)
    np.testing.assert_allclose(found(sure), told, atol=0.05)
    weighted = fit_calibration(np.repeat(sure, 2, axis=0), np.repeat(labels, 2), np.tile([1.0, 0.0], 3000))
    assert weighted.temperature == pytest.approx(found.temperature, rel=0.05)


def test_probabilities_are_calibrated_by_rows_as_heavy_as_they_weigh():
    """A row of weight three counts as three rows; the biases undo what the weights of the classes did."""
    told, labels = drawn_rows(9, 3000, 4)
    mass = np.where(labels == 2, 3.0, 1.0)
    found = fit_calibration(told, labels, mass)
    expected = told * np.where(np.arange(4) == 2, 3.0, 1.0)
    np.testing.assert_allclose(found(told), expected / expected.sum(axis=1, keepdims=True), atol=0.05)
    times = mass.astype(int)
    repeated = fit_calibration(np.repeat(told, times, axis=0), np.repeat(labels, times), np.ones(times.sum()))
    assert repeated.temperature == pytest.approx(found.temperature, rel=1e-3)
    np.testing.assert_allclose(repeated.biases, found.biases, atol=1e-3)


def test_few_rows_do_not_show_that_probabilities_are_off():
    """What a calibration gains on its own rows, and loses on held-out ones, is none."""
    fooled = 0
    for seed in range(12):
        told, labels = drawn_rows(seed, 60, 4)
        fooled += not fit_calibration(told, labels, np.ones(60)).is_none
    assert fooled <= 3


def test_constants_for_answers_are_the_cheapest_of_all():
    """Of two answers one constant is all there is; of more no rule costs more than the one it was moved from."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        told, nobody, n_classes = (
            rng.integers(0, 6, (30, 2 + seed % 3)) + 0.0,
            np.zeros(30, dtype=np.int64),
            2 + seed % 3,
        )
        told = (told + 1e-3) / (told + 1e-3).sum(axis=1, keepdims=True)
        costs = rng.integers(-3, 4, (30, n_classes)).astype(float)
        plain = argmax_rule(0, (1, n_classes, n_classes))
        rule = refine(plain, PricedRows(told, nobody, costs))
        spent, before = (float((one.answers(told, nobody) * costs).sum()) for one in (rule, plain))
        assert spent <= before
        if n_classes == 2:
            margins = np.unique(np.round(told[:, 1] - told[:, 0], 9))
            cuts = [-2.0, *((margins[1:] + margins[:-1]) / 2), 2.0]
            said = [np.where(told[:, 1] - told[:, 0] > cut, costs[:, 1], costs[:, 0]).sum() for cut in cuts]
            assert spent == pytest.approx(min(said))


def test_stricter_floors_hardly_cost_less():
    """Rules that loose floors do not need may fit the labels better; where floors bind, they cost."""
    told, labels = drawn_rows(3, 600, 5, sharpness=2.0)
    told = told**2 / (told**2).sum(axis=1, keepdims=True)  # too sure of itself
    values = [
        chosen(known_rows(told, labels), goals=as_goals(f"every_class(recall) >= {floor}")).value
        for floor in (0.5, 0.55, 0.6, 0.62, 0.68)
    ]
    assert all(second >= first - 0.01 for first, second in pairwise(values))
    assert values[-1] > values[0]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_bounds_that_are_offered_are_met_as_printed(seed):
    told, labels = drawn_rows(seed, 60, 4)
    goals = as_goals(["every_class(recall) >= 0.95", "positive_rate(of=1) <= 0.1"])
    with pytest.raises(InfeasibleGoals, match="No classifier of this kind was found") as caught:
        chosen(known_rows(told, labels), goals=goals)
    for way in caught.value.ways_out:
        chosen(known_rows(told, labels), goals=as_goals([str(way.get(goal, goal)) for goal in goals]))


@pytest.mark.parametrize("n_wrong", [0, 1, 4])
def test_goals_that_hold_with_equality_are_met(n_wrong):
    labels = np.arange(40) % 3
    said = np.where(np.arange(40) < n_wrong, (labels + 1) % 3, labels)
    for alpha in (1.0, 0.1):
        found = chosen(known_rows(np.eye(3)[said], labels), alpha, as_goals(f"error_rate <= {n_wrong / 40}"))
        assert found.value <= min(1.0, n_wrong / 40 / alpha) + 1e-9
