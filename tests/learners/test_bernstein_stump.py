"""The exhaustive search for stumps: against brute force over all stumps, by the definition of the cost."""

import pickle
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from counterpoise.learners import LeastErrorStump, Stump, bin_features
from counterpoise.learners.bernstein_stump import BernsteinStumps

LABELS = np.array(["no", "yes"])


def draw_case(seed, *, missing=0.0, n_values=5):
    """Return X, codes, weights, start weights and penalty, with ties, duplicates and constant features."""
    rng = np.random.default_rng(seed)
    n_samples, n_features = int(rng.integers(2, 25)), int(rng.integers(1, 6))
    X = rng.integers(0, rng.integers(1, n_values + 1), (n_samples, n_features)).astype(float)
    X[:, rng.integers(n_features)] *= -1  # the same cuts in reverse: ties between features
    X[rng.random(X.shape) < missing] = np.nan
    start = rng.dirichlet(np.ones(n_samples)) + 0.01 if rng.random() < 0.5 else np.ones(n_samples)
    weights = start * rng.choice([rng.exponential(size=n_samples), rng.integers(1, 4, n_samples), np.ones(n_samples)])
    penalty = float(rng.choice([0.0, 1.0, rng.random(), rng.uniform(1, 100)]))
    return X, rng.integers(0, 2, n_samples), weights / weights.sum(), start / start.sum(), penalty


def cost_at(step, wrong, weights, start, penalty):
    """Cost (3) after a step, by its definition."""
    moved = weights * np.exp(np.where(wrong, step, -step))
    return (1 - penalty) * moved.sum() ** 2 + penalty * (moved**2 / start).sum()


def parts(wrong, weights, start, penalty):
    squares = weights**2 / start
    return [(1 - penalty) * weights[one].sum() ** 2 + penalty * squares[one].sum() for one in (~wrong, wrong)]


def least_cost(wrong, weights, start, penalty):
    """Cost (3) after the best step, in closed form."""
    right_part, wrong_part = parts(wrong, weights, start, penalty)
    both = weights[wrong].sum() * weights[~wrong].sum()
    return 2 * np.sqrt(right_part * wrong_part) + 2 * (1 - penalty) * both


def sides(X):
    """Yield every stump's left side in the order in which ties are broken, constants last."""
    for column in X.T:
        missing = np.isnan(column)
        values = np.unique(column[~missing])
        for with_missing in (False, True):
            for value in values:
                yield (column <= value) | (missing & with_missing)
    yield np.ones(len(X), dtype=bool)


def is_split(side):
    return side.any() and not side.all()


def search(X, codes, weights, start, penalty, **settings):
    """Return the stump, what it predicts, and its binned features."""
    binned, stump = bin_features(X, **settings), Stump()
    predicted = BernsteinStumps(binned, codes, start, penalty).fit(stump, weights, LABELS)
    return stump, predicted, binned


@given(seed=st.integers(0, 10**6))
def test_the_closed_form_is_the_cost_of_the_best_step(seed):
    _, codes, *rest = draw_case(seed)
    wrong = codes.astype(bool)
    found = minimize_scalar(lambda step: cost_at(step, wrong, *rest), bounds=(-20, 20), method="bounded")
    assert least_cost(wrong, *rest) == pytest.approx(found.fun, rel=1e-6, abs=1e-6)
    if is_split(wrong):
        right_part, wrong_part = parts(wrong, *rest)
        step = np.log(right_part / wrong_part) / 4
        assert cost_at(step, wrong, *rest) == pytest.approx(least_cost(wrong, *rest), rel=1e-12)


@settings(max_examples=120)
@given(seed=st.integers(0, 10**6), missing=st.sampled_from([0, 0.2]))
def test_no_stump_and_no_constant_costs_less(seed, missing):
    X, codes, *rest = draw_case(seed, missing=missing)
    costs = [least_cost(side == codes, *rest) for side in sides(X)]  # the other polarity costs the same
    stump, predicted, binned = search(X, codes, *rest)
    wrong = predicted != codes
    assert least_cost(wrong, *rest) == pytest.approx(min(costs), rel=1e-12, abs=1e-12)
    right_part, wrong_part = parts(wrong, *rest)
    assert right_part >= wrong_part - 1e-12 * max(1.0, rest[-1])  # of both polarities the one with a vote above zero
    np.testing.assert_array_equal(stump.predict(X), LABELS[predicted])
    np.testing.assert_array_equal(stump.predict_codes(binned), predicted)


@settings(max_examples=80)
@given(seed=st.integers(0, 10**6), missing=st.sampled_from([0, 0.2]))
def test_of_equal_stumps_the_first_is_taken_and_a_constant_last(seed, missing):
    X, codes, *rest = draw_case(seed, missing=missing)
    all_sides = [side for side in sides(X) if is_split(side)] + [np.ones(len(X), dtype=bool)]
    costs = np.array([least_cost(side == codes, *rest) for side in all_sides])
    first = all_sides[int(np.flatnonzero(costs <= costs.min() + 1e-13)[0])]
    before = cost_at(0, codes == 1, *rest)
    if costs.min() > before - 1e-9:  # nothing gains, so rounding may choose; boosting stops here
        return
    stump, predicted, _ = search(X, codes, *rest)
    assert (predicted == first).all() or (predicted != first).all()
    assert (stump.tree_.feature.size == 3) == is_split(first)


@pytest.mark.parametrize("seed", range(10))
def test_rounding_does_not_choose_between_perfect_stumps(seed):
    """All features split the classes, but in other bins or in reverse, so that their sums round differently."""
    rng = np.random.default_rng(seed)
    value, weights = rng.normal(size=200), rng.dirichlet(np.ones(200))
    X = np.column_stack([-value, value.round(1), value, -value.round(2)])
    codes = (value.round(1) > 0).astype(int)
    stump, predicted, _ = search(X, codes, weights, np.full(200, 1 / 200), 0.5)
    np.testing.assert_array_equal(predicted, codes)
    assert stump.tree_.feature[0] == 0


def subset_sides(column):
    values = np.unique(column)
    for size in range(len(values)):
        for chosen in combinations(values, size):
            yield np.isin(column, chosen)


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), penalty=st.sampled_from([0.0, 1.0]))
def test_without_or_with_full_penalty_the_subset_of_categories_is_the_best(seed, penalty):
    X, codes, weights, start, _ = draw_case(seed, n_values=7)
    X = np.abs(X[:, :1])
    best = min(least_cost(side == codes, weights, start, penalty) for side in subset_sides(X[:, 0]))
    _, predicted, _ = search(X, codes, weights, start, penalty, categorical_features=[0])
    assert least_cost(predicted != codes, weights, start, penalty) == pytest.approx(best, abs=1e-12)


@given(seed=st.integers(0, 10**6), missing=st.sampled_from([0, 0.2]))
def test_categories_are_split_at_least_as_well_as_for_any_linear_cost(seed, missing):
    X, codes, weights, start, penalty = draw_case(seed, n_values=9, missing=missing)
    X = np.abs(X[:, :1])
    column = np.where(np.isnan(X[:, 0]), 99, X[:, 0])
    signs = 2.0 * codes - 1
    stump, predicted, binned = search(X, codes, weights, start, penalty, categorical_features=[0])
    found = least_cost(predicted != codes, weights, start, penalty)
    for angle in np.linspace(0, np.pi, 37):
        masses = signs * (np.cos(angle) * weights + np.sin(angle) * weights**2 / start)
        side = np.array([masses[column == value].sum() > 0 for value in column])
        assert found <= least_cost(side != codes, weights, start, penalty) + 1e-12
    np.testing.assert_array_equal(stump.predict(X), LABELS[predicted])
    np.testing.assert_array_equal(stump.predict_codes(binned), predicted)


def test_threads_do_not_change_the_stump(processors):
    """On as many values as are shared among threads."""
    rng = np.random.default_rng(0)
    X, codes = rng.integers(0, 4, (14_000, 150)).astype(np.float32), rng.integers(0, 2, 14_000)
    weights, start = rng.dirichlet(np.ones(14_000)), np.full(14_000, 1 / 14_000)
    processors(1)
    alone, predicted, _ = search(X, codes, weights, start, 0.3)
    processors(3)
    together, again, _ = search(X, codes, weights, start, 0.3)
    np.testing.assert_array_equal(predicted, again)
    np.testing.assert_equal(alone.tree_._asdict(), together.tree_._asdict())


def test_samples_of_zero_weight_do_not_matter():
    X = np.array([[0.0], [1.0], [1.0], [2.0], [2.0]])
    codes, weights = np.array([1, 0, 0, 0, 1]), np.array([0.0, 0.4, 0.3, 0.2, 0.1])
    stump, predicted, _ = search(X, codes, weights, np.full(5, 0.2), 0.0)
    assert stump.tree_.feature.size == 1  # no split beats a constant there
    assert not predicted.any()
    np.testing.assert_allclose(stump.tree_.shares, [[0.9, 0.1]])


def test_shares_are_those_of_the_weight_and_labels_may_differ_from_them():
    """With the variance alone one heavy sample outweighs many light ones on its side."""
    X, codes = np.array([[0.0], [0.0], [0.0], [1.0]]), np.array([1, 0, 0, 1])
    weights, start = np.array([0.28, 0.15, 0.15, 0.42]), np.full(4, 0.25)
    stump, predicted, _ = search(X, codes, weights, start, 1.0)
    np.testing.assert_array_equal(predicted, [1, 1, 1, 1])
    stump, predicted, _ = search(X, codes, weights, start, 0.0)
    np.testing.assert_array_equal(predicted, [0, 0, 0, 1])
    np.testing.assert_allclose(stump.predict_proba([[0.0], [1.0]]), [[0.3 / 0.58, 0.28 / 0.58], [0, 1]])


def test_the_model_is_an_ordinary_stump():
    X, codes = np.array([[0.0, np.nan], [1.0, 2.0], [5.0, 3.0]]), np.array([0, 0, 1])
    stump, predicted, _ = search(X, codes, np.full(3, 1 / 3), np.full(3, 1 / 3), 0.5)
    assert type(stump) is Stump
    np.testing.assert_array_equal(predicted, codes)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(stump)).predict(X), stump.predict(X))  # noqa: S301


@given(st.integers(0, 2**32 - 1))
def test_no_stump_has_less_weighted_error(seed):
    X, codes, weights, _, _ = draw_case(seed, missing=0.2)
    stump = LeastErrorStump()
    predicted = stump.fit_codes(stump.prepare(X), codes, LABELS, weights)
    least = min(min(weights @ (side != codes), weights @ (side == codes)) for side in sides(X))
    assert weights @ (predicted != codes) == pytest.approx(least, abs=1e-12)


def test_a_least_error_stump_says_what_it_cannot_do():
    with pytest.raises(ValueError, match="separates two classes; got 3"):
        LeastErrorStump().fit([[1.0], [2.0], [3.0]], [0, 1, 2])
    with pytest.raises(ValueError, match="min_samples_leaf must be 1"):
        LeastErrorStump(min_samples_leaf=2).fit([[1.0], [2.0], [3.0]], [0, 1, 1])
    stump, codes = LeastErrorStump(), np.array([0, 0, 1])
    binned = stump.prepare([[1.0], [2.0], [3.0]])
    with pytest.raises(ValueError, match="weights must have at least one entry above zero"):
        stump.fit_codes(binned, codes, LABELS, np.zeros(3))
    for size in (1e-308, 1e308):  # whose sums, or what is divided by them, are no numbers
        np.testing.assert_array_equal(stump.fit_codes(binned, codes, LABELS, np.full(3, size)), codes)
