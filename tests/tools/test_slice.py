"""The slice that shows what cells are: counted in parts, evaluated, chosen within goals, decided."""

from itertools import permutations

import numpy as np
import pytest

from counterpoise.goals import Table, as_goals
from tools.slice.cells import Cells, Layout, Rows
from tools.slice.margins import safe_rule
from tools.slice.rates import Evaluator
from tools.slice.search import find_pool, lower_bound, polish

GOALS = [
    "recall >= 0.6",
    "max_difference(selection_rate, by=group) <= 0.15",
    "precision(sex=F) >= 0.2",
    "recall(value=loan) >= 0.5",
    "max_difference(precision, by=sex) <= 0.3",
]
NAMES = [("group", "a", "b", "c"), ("sex", "F", "M")]


def drawn(n_rows, seed=0, *, distinct=None, persons=None):
    rng = np.random.default_rng(seed)
    groups, sex = rng.choice(3, n_rows, p=[0.2, 0.5, 0.3]), rng.integers(0, 2, n_rows)
    z = rng.normal(size=n_rows) + 0.3 * (groups == 2)
    scores = z if distinct is None else np.round(z * distinct) / distinct
    y = (rng.random(n_rows) < 1 / (1 + np.exp(1 - 1.3 * z))).astype(int)
    weights, loans = rng.choice([0.3, 1.0, 2.7], n_rows), np.round(rng.gamma(2.0, 1.0, n_rows), 2)
    more = {} if persons is None else {"persons": rng.integers(0, persons, n_rows)}
    return Rows.of(scores, y, groups, weights, columns={"sex": sex}, amounts={"loan": loans}, **more), y, weights


def evaluator_of(cells, goals=tuple(GOALS), **options):
    return Evaluator(cells, goals, NAMES, amounts=["loan"], **options)


def table_of(rows, y, weights):
    names = [np.array(own[1:]) for own in NAMES]
    columns = {"group": names[0][rows.groups], "sex": names[1][rows.columns["sex"]], "loan": rows.amounts["loan"]}
    return Table(None, y, columns, sample_weight=weights)


def test_values_of_rules_are_those_of_their_decisions_row_by_row():
    rows, y, weights = drawn(700)
    cells = Cells.count(rows, Layout.of([rows]))
    evaluator, table = evaluator_of(cells), table_of(rows, y, weights)
    rules = np.random.default_rng(1).integers(0, evaluator.sizes, (20, 3))
    values = evaluator.evaluate(rules, smooth=False)
    for rule, cost, violation in zip(rules, values.cost, values.violation, strict=True):
        decided = (rows.scores > evaluator.thresholds(rule)[rows.groups]).astype(int)
        checks = [goal.evaluate(decided, table) for goal in as_goals(GOALS)]
        assert cost == pytest.approx(np.average(decided != y, weights=weights), abs=1e-12)
        assert (violation > 0) == any(not check.holds for check in checks)


@pytest.mark.parametrize("persons", [None, 150])
def test_standard_errors_are_those_of_the_influence_of_each_row_or_person(persons):
    rows, y, weights = drawn(700, persons=persons)
    evaluator = evaluator_of(
        Cells.count(rows, Layout.of([rows])), ["recall(value=loan) >= 0.5", "precision(sex=F) >= 0.2"]
    )
    rule = evaluator.sizes // 3
    said = (rows.scores > evaluator.thresholds(rule)[rows.groups]).astype(float)
    loans, in_f = weights * y * rows.amounts["loan"], weights * (rows.columns["sex"] == 0)
    recall = (loans @ said) / loans.sum()
    both = np.array([loans * (said - recall) / loans.sum(), said * in_f * (y - 0.2) / in_f.sum()])
    both[1] -= in_f * both[1].sum() / in_f.sum()
    if persons is not None:
        both = np.array([np.bincount(rows.persons, own) for own in both])
    assert np.allclose(evaluator.covariance(rule, evaluator.cells.by_person), both @ both.T, rtol=1e-9)


@pytest.mark.parametrize("distinct", [None, 8])
def test_cells_of_parts_add_up_to_the_same_in_any_order(distinct):
    rows, _, _ = drawn(900, distinct=distinct)
    parts = [rows.only(own) for own in np.array_split(np.random.default_rng(0).permutation(900), 7)]
    layout = Layout.of(parts, n_bins=64, most_distinct=100)
    whole = Cells.count(rows, layout)
    assert np.array_equal(layout.units, Layout.of([rows], n_bins=64, most_distinct=100).units)
    for order in list(permutations(range(7)))[::1000]:
        counted = [Cells.count(parts[number], layout) for number in order]
        total = sum(counted[1:], start=counted[0])
        assert np.array_equal(total.sums, whole.sums)
        assert np.array_equal(total.products, whole.products)


def test_the_best_rule_is_within_the_gap_that_prices_prove():
    rows, _, _ = drawn(800)
    evaluator = evaluator_of(Cells.count(rows, Layout.of([rows])), GOALS[:2])
    pool = polish(evaluator, find_pool(evaluator, smooth=False))
    best = pool.values.cost[pool.best(np.array([-np.inf]))[0]]
    lower, _ = lower_bound(evaluator, pool.rules[pool.best(np.array([-np.inf, 1.0]))])
    assert lower - 1e-9 <= best <= lower + 0.01


@pytest.mark.slow
def test_a_looser_bound_does_not_lose_the_confidence():
    rows, _, _ = drawn(3000, distinct=100)
    cells, reached = Cells.count(rows, Layout.of([rows])), []
    for gap in (0.02, 0.08, 0.14):
        evaluator = evaluator_of(cells, [GOALS[0], f"max_difference(selection_rate, by=group) <= {gap}"])
        reached.append(safe_rule(evaluator, find_pool(evaluator)).is_reached)
    assert reached[-1]
    assert reached == sorted(reached)


def test_deferral_is_a_second_running_sum():
    rows, y, weights = drawn(600)
    goals = ["recall >= 0.3", "max_difference(defer_rate, by=group) <= 0.2"]
    evaluator = evaluator_of(Cells.count(rows, Layout.of([rows])), goals, defer_cost=0.1)
    pool = find_pool(evaluator, rounds=5, smooth=False)
    rule = pool.rules[pool.best(np.array([-np.inf]))[0]]
    upper, lower = (own[rows.groups] for own in np.split(evaluator.thresholds(rule), 2))
    is_positive, is_deferred = rows.scores > upper, (rows.scores > lower) & (rows.scores <= upper)
    loss = np.where(is_deferred, 0.1, is_positive != (y == 1))
    values = evaluator.evaluate(rule[None], smooth=False)
    assert values.cost[0] == pytest.approx(np.average(loss, weights=weights), abs=1e-12)
    assert values.violation[0] == 0
    assert np.average(is_positive[y == 1], weights=weights[y == 1]) >= 0.3
    deferred = [np.average(is_deferred[rows.groups == own], weights=weights[rows.groups == own]) for own in range(3)]
    assert max(deferred) - min(deferred) <= 0.2
    assert is_deferred.any()


def test_labels_known_in_part_are_masses_on_both_classes():
    rng, (rows, y, _) = np.random.default_rng(3), drawn(2000)
    known, chance = rng.random(2000) < 0.25, np.clip(0.3 + 0.2 * rows.scores, 0.02, 0.98)
    masses = np.column_stack([1 - chance, chance]) + known[:, None] / 0.25 * (
        np.eye(2)[y] - np.column_stack([1 - chance, chance])
    )
    rows = rows._replace(masses=masses, amounts={})
    evaluator = Evaluator(Cells.count(rows, Layout.of([rows])), ["recall >= 0.7"], NAMES)
    rule = evaluator.sizes // 2
    said = (rows.scores > evaluator.thresholds(rule)[rows.groups]).astype(float)
    recall = masses[:, 1] @ said / masses[:, 1].sum()
    influence = masses[:, 1] * (said - recall) / masses[:, 1].sum()
    assert (masses < 0).any()
    assert evaluator.covariance(rule)[0, 0] == pytest.approx(influence @ influence, rel=1e-9)
    assert evaluator.evaluate(rule[None]).z[0, 0] == pytest.approx((recall - 0.7) / np.linalg.norm(influence), rel=0.02)
