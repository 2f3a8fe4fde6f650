"""One option of each list: against a look at every choice."""

from itertools import product

import numpy as np
import pytest

from counterpoise.solvers.one_of_each import choose_one_of_each
from tests.tiers import some_fast

_A_BATCH = 40


def random_lists(seed):
    """Return options, bounds, constants and pairs in order, with ties in every third."""
    rng = np.random.default_rng(seed)
    n_lists, n_limits, n_minimized = rng.integers(1, 4), rng.integers(0, 4), rng.integers(1, 3)
    sizes = np.full(n_lists, rng.integers(2, 10)) if seed % 4 == 0 else rng.integers(2, 10, n_lists)
    options = [np.cumsum(rng.normal(size=(n_limits + n_minimized, size)), axis=1) for size in sizes]
    if seed % 3 == 0:
        options = [np.round(one) for one in options]
    ordered = [(0, 1)] if n_lists > 1 and seed % 4 == 0 else []
    return options, 2 * rng.normal(size=n_limits), rng.normal(size=n_limits + n_minimized), ordered


def best_of_all(options, bounds, constants, ordered):
    """Return the least violation, and the least value of the choices that have it."""
    keys = []
    for places in product(*(range(one.shape[1]) for one in options)):
        if all(places[first] <= places[second] for first, second in ordered):
            sums = constants + sum(one[:, at] for one, at in zip(options, places, strict=True))
            keys.append((np.maximum(sums[: bounds.size] - bounds, 0.0).sum(), sums[bounds.size :].max()))
    return min(keys)


@pytest.mark.parametrize("first", some_fast(range(0, 4 * _A_BATCH, _A_BATCH)))
def test_the_best_choice_is_found_and_proven(first):
    n_missed = 0
    for seed in range(first, first + _A_BATCH):
        options, bounds, constants, ordered = random_lists(seed)
        violation, value = best_of_all(options, bounds, constants, ordered)
        found = choose_one_of_each(options, bounds, constants=constants, ordered=ordered)
        assert found.violation == pytest.approx(violation, abs=1e-9)
        sums = constants + sum(one[:, at] for one, at in zip(options, found.places, strict=True))
        assert sums[bounds.size :].max() == pytest.approx(found.value, abs=1e-12)
        if violation > 0:
            n_missed += 1
            assert found.lower == np.inf
            assert 0 < found.least_violation <= violation + 1e-9
        else:
            assert found.value == pytest.approx(value, abs=1e-9)
            assert found.gap <= 1e-9
    assert 0 < n_missed < _A_BATCH


@pytest.mark.parametrize("n_lists", [2, 4])
def test_a_search_that_must_stop_says_how_much_better_another_choice_may_be(n_lists):
    rng = np.random.default_rng(0)
    options = [np.vstack([rng.random(400), rng.random(400)]) for _ in range(n_lists)]
    whole = choose_one_of_each(options, np.array([0.3]))
    stopped = choose_one_of_each(options, np.array([0.3]), start=whole.places, max_looks=10)
    assert whole.gap <= 1e-9
    assert stopped.lower <= whole.value <= stopped.value
    poor = [int(one[0].argmin()) for one in options]  # inside of the limit, at any price
    begun = choose_one_of_each(options, np.array([0.3]), start=np.array(poor), max_looks=0)
    assert begun.lower <= whole.value <= begun.value
    assert begun.gap > 0
    assert begun.gap == pytest.approx(begun.value - begun.lower)


@pytest.mark.slow
def test_bounds_are_right_where_more_choices_are_left_than_can_be_kept():
    """Pairs of many options are cut off; what is said of the rest is a bound for all of them."""
    rng = np.random.default_rng(1)
    options = [np.vstack([rng.integers(0, 9, 3000), rng.integers(0, 9, 3000)]).astype(float) for _ in range(3)]
    options = [one[:, one.sum(axis=0) > 7] for one in options]
    found = choose_one_of_each(options, np.array([12.0]))
    least = min(one[1].min() for one in options)
    assert found.violation == 0
    assert 3 * least <= found.lower <= found.value


def test_limits_of_one_list_only_drop_options_and_dear_choices_are_not_looked_for():
    rng = np.random.default_rng(1)
    costs = [rng.random(30).round(2) for _ in range(3)]
    own = [rng.random(30).round(2) for _ in range(3)]
    rows = [
        np.vstack([*(own[at] if at == place else np.zeros(30) for at in range(3)), costs[place]]) for place in range(3)
    ]
    inside = [int(np.where(one <= 0.4, cost, np.inf).argmin()) for one, cost in zip(own, costs, strict=True)]
    least = sum(cost[at] for cost, at in zip(costs, inside, strict=True))
    found = choose_one_of_each(rows, np.full(3, 0.4))
    assert (found.value, found.gap) == (pytest.approx(least), 0.0)
    dear = choose_one_of_each(rows, np.full(3, 0.4), nearest=False, below=least - 0.01)
    assert dear.lower == pytest.approx(least - 0.01)
    never = choose_one_of_each(rows, np.array([0.4, 0.4, -0.1]), nearest=False)
    assert never.lower == np.inf
