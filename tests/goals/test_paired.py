"""Differences of rates on the same rows: right on the population as often as promised, and narrow where few differ."""

import numpy as np
import pytest
from tiers import some_fast

from counterpoise.auditing.paired import paired_difference
from counterpoise.goals import Table, parse_goal
from counterpoise.goals.binding import prepare

GOALS = ("error_rate <= 1", "max_difference(positive_rate, by=g) <= 1", "max_difference(recall, by=g) <= 1",
         "min_ratio(positive_rate, by=g) >= 0", "every_group(recall, by=g) >= 0")  # fmt: skip


def population(n_rows, seed, n_groups=3):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, n_groups, n_rows)
    score = rng.random(n_rows) + 0.1 * group
    y = (score + rng.normal(0, 0.3, n_rows) > 0.7).astype(int)
    return Table(None, y, {"g": group.astype(str)}), (score > 0.7).astype(int), (score - 0.08 * group > 0.6).astype(int)


def prepared(labels, table):
    return prepare(labels, table, kind="labels", classes=[0, 1])


@pytest.mark.parametrize("text", GOALS)
def test_the_estimate_is_the_difference_of_the_values(text):
    table, one, other = population(900, 0)
    goal = parse_goal(text)
    change = paired_difference(goal, prepared(one, table), prepared(other, table), 0.025)
    values = [goal.evaluate(labels, table).value for labels in (one, other)]
    assert change.value == pytest.approx(values[0] - values[1])
    assert change.low <= change.value <= change.high
    turned = paired_difference(goal, prepared(other, table), prepared(one, table), 0.025)
    assert (turned.low, turned.high) == pytest.approx((-change.high, -change.low))


@pytest.mark.parametrize("text", some_fast(GOALS))
def test_intervals_hold_on_the_population_as_often_as_promised(text):
    goal, risk, misses, n_draws = parse_goal(text), 0.1, 0, 60
    table, one, other = population(200_000, 1)
    truth = goal.evaluate(one, table).value - goal.evaluate(other, table).value
    for seed in range(n_draws):
        rows, one, other = population(400, 100 + seed)
        change = paired_difference(goal, prepared(one, rows), prepared(other, rows), risk)
        misses += not change.low - 0.003 <= truth <= change.high + 0.003
    assert misses <= 2 * risk * n_draws


def test_drawn_decisions_and_weights_are_bounded_too():
    rng = np.random.default_rng(0)
    y, group = rng.integers(0, 2, 800), rng.choice(["a", "b"], 800)
    table = Table(None, y, {"g": group}, sample_weight=rng.integers(1, 4, 800), largest_weight=4)
    chances = np.column_stack([0.3 + 0.4 * (y == 0), 0.3 + 0.4 * (y == 1)])
    drawn = prepare(chances, table, kind="probabilities", classes=[0, 1])
    for text in ("error_rate <= 1", "max_difference(positive_rate, by=g) <= 1"):
        change = paired_difference(parse_goal(text), drawn, prepared(y, table), 0.05)
        assert change.low <= change.value <= change.high
        assert change.high - change.low < 0.5
