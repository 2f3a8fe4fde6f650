"""The search of a few numbers, with a bound over all of them."""

import numpy as np
import pytest

from counterpoise.solvers.intervals import Examined, Interval, minimize_over_box


def wavy(seed):
    """Return a function of two numbers with many dips, and how fast it can change."""
    rng = np.random.default_rng(seed)
    waves, shifts = rng.normal(size=(6, 2)) * 3, rng.uniform(0, 6, 6)

    def value(point):
        return float(np.sin(waves @ point + shifts).sum())

    return value, float(np.abs(waves).sum(axis=0).max())


@pytest.mark.parametrize("seed", range(5))
def test_the_least_of_many_dips_is_found_and_bounded(seed):
    value, slope = wavy(seed)

    def examine(box, _best):
        middle = np.array([one.middle for one in box])
        reach = slope * sum(one.width for one in box) / 2
        return Examined(value(middle) - reach, value(middle), middle)

    best = minimize_over_box(examine, (Interval(0.0, 2.0), Interval(-1.0, 1.0)), 0.02, most=100_000)
    grid = [value(np.array([x, y])) for x in np.linspace(0, 2, 101) for y in np.linspace(-1, 1, 101)]
    assert best.lower <= min(grid)
    assert best.value <= min(grid) + 0.02
    assert best.value - best.lower <= 0.02 + 1e-12


def test_where_no_program_has_a_solution_the_bound_is_infinite():
    best = minimize_over_box(lambda *_: Examined(np.inf), (Interval(0.0, 1.0),), 1e-3)
    assert best.found is None
    assert best.lower == np.inf
    assert best.n_examined == 1


def test_a_solution_at_one_number_alone_is_found_where_bounds_lead_to_it():
    def examine(box, _best):
        (low, high) = box[0]
        if not low <= 1 / 3 <= high:
            return Examined(np.inf)
        return Examined(1.0, 1.0, "third") if high - low < 1e-3 else Examined(0.0)

    best = minimize_over_box(examine, (Interval(0.0, 1.0),), 1e-6)
    assert (best.found, best.value, best.lower) == ("third", 1.0, 1.0)


def test_a_search_that_ends_early_keeps_a_bound_that_holds():
    value, slope = wavy(0)

    def examine(box, _best):
        middle = np.array([one.middle for one in box])
        return Examined(value(middle) - slope * sum(one.width for one in box) / 2, value(middle), middle)

    box = (Interval(0.0, 2.0), Interval(-1.0, 1.0))
    few, many = (minimize_over_box(examine, box, 0.02, most=most) for most in (10, 100_000))
    assert few.lower <= many.lower <= many.value <= few.value
    assert few.n_examined == 10
