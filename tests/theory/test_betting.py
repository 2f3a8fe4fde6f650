"""Bounds by betting: right as often as promised, by all outcomes, and as the formula says."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multinomial

from counterpoise.theory.confidence import (
    WeightedSample,
    few_cells,
    is_below,
    upper_weighted_mean,
    upper_weighted_sum,
    weighted_mean_bounds,
)
from counterpoise.theory.guarantees import empirical_bernstein_bound

RISK = 0.25  # so large that few rows say something


def outcomes(n_rows, n_atoms):
    """Return all ways in which rows can fall on atoms."""
    return np.array([one for one in product(range(n_rows + 1), repeat=n_atoms) if sum(one) == n_rows], dtype=float)


def mean_of(atoms, probabilities):
    values, weights = np.array(atoms).T
    return float(probabilities @ (weights * values) / (probabilities @ weights))


def sample_of(atoms, counts):
    values, weights = np.array(atoms).T
    return WeightedSample(values, weights, np.asarray(counts, dtype=float), (0.0, 1.0))


ATOMS = {  # value and weight
    "heavy rows are wrong": [(0.0, 0.1), (1.0, 0.1), (1.0, 1.0)],
    "heavy rows are right": [(0.0, 1.0), (1.0, 0.1), (1.0, 0.3)],
    "some weigh nothing": [(0.0, 0.5), (1.0, 0.5), (1.0, 0.0)],
    "values between": [(0.0, 1.0), (0.4, 0.2), (1.0, 0.7)],
    "none is as heavy as may be": [(0.0, 0.3), (1.0, 0.2)],
    "all weigh the same": [(0.0, 1.0), (1.0, 1.0)],
}


@pytest.mark.parametrize("atoms", ATOMS.values(), ids=ATOMS.keys())
@pytest.mark.parametrize("turned", [False, True])
def test_a_weighted_mean_is_bounded_as_often_as_promised(atoms, turned):
    """Exactly, by all outcomes of twelve rows and forty populations; few heavy rows among them."""
    atoms = [(1.0 - value, weight) for value, weight in atoms] if turned else atoms
    found = outcomes(12, len(atoms))
    bounds = np.array([upper_weighted_mean(sample_of(atoms, counts), RISK) for counts in found])
    for probabilities in np.random.default_rng(0).dirichlet(np.full(len(atoms), 0.5), size=40):
        fails = bounds < mean_of(atoms, probabilities) - 1e-12
        assert multinomial.pmf(found, 12, probabilities)[fails].sum() <= RISK + 1e-9
    assert (bounds <= 1.0).all()
    assert bounds.min() < 0.7


@pytest.mark.slow
def test_a_sum_of_two_weighted_means_is_bounded_as_often_as_promised():
    """Exactly, by all outcomes of two small samples."""
    one, other = ATOMS["heavy rows are wrong"], ATOMS["none is as heavy as may be"]
    first, second = outcomes(5, 3), outcomes(8, 2)
    bounds = np.array(
        [[upper_weighted_sum(sample_of(one, a), sample_of(other, b), RISK) for b in second] for a in first]
    )
    draw = np.random.default_rng(0).dirichlet
    for p, q in zip(draw([0.5] * 3, size=40), draw([0.5] * 2, size=40), strict=True):
        chances = np.outer(multinomial.pmf(first, 5, p), multinomial.pmf(second, 8, q))
        assert chances[bounds < mean_of(one, p) + mean_of(other, q) - 1e-12].sum() <= RISK + 1e-9
    assert bounds.min() < 1.6


def test_a_sum_of_two_is_bounded_closer_than_by_two_bounds():
    rng = np.random.default_rng(0)
    samples = [
        few_cells((rng.random(n) < share).astype(float), rng.random(n), (0.0, 1.0))
        for n, share in ((900, 0.3), (400, 0.7))
    ]
    seen = sum(one.values @ (one.weights * one.counts) / (one.weights @ one.counts) for one in samples)
    apart = sum(upper_weighted_mean(one, 0.025) for one in samples)
    together = upper_weighted_sum(*samples, 0.05)
    assert seen < together < seen + 0.85 * (apart - seen)
    assert upper_weighted_sum(*samples[::-1], 0.05) == together


def log_wealth(values, weights, mean, risk):
    """Return the formula of the module, row by row."""
    n_rows, gap = len(values), 1.0 - mean
    least = min(math.sqrt(8 * (1 - math.log(risk)) / n_rows), 1 / 1.5)
    sizes = np.geomspace(least, 1.0, 1 + math.ceil(-math.log(least) / math.log(1.5)))
    wealths = [1.0]
    for size, power in product(sizes, (0.0, 0.5, 1.0)):
        wealths.append(math.prod(1 + size * gap**-power * w * (mean - v) for v, w in zip(values, weights, strict=True)))
    return math.log(np.mean(wealths))


@given(st.integers(0, 10_000), st.integers(1, 60), st.sampled_from([0.4, 0.05, 0.001]))
def test_the_bound_is_where_the_wealth_is_enough(seed, n_rows, risk):
    rng = np.random.default_rng(seed)
    values, weights = (rng.random(n_rows) < rng.random()).astype(float), rng.random(n_rows)
    sample = WeightedSample(values, weights, np.ones(n_rows), (0.0, 1.0))
    high = upper_weighted_mean(sample, risk)
    assert min(values @ weights / weights.sum(), 1.0) <= high <= 1.0
    if high < 1.0:
        assert log_wealth(values, weights, high, risk) >= -math.log(risk)
        assert log_wealth(values, weights, high - 1e-9, risk) < -math.log(risk)
        assert is_below(sample, high + 1e-9, risk)
        assert not is_below(sample, high - 1e-9, risk)


@given(st.integers(0, 10_000), st.sampled_from([100, 3000]), st.sampled_from(["uniform", "pareto", "many values"]))
def test_few_cells_move_bounds_out_and_hardly_so(seed, n_rows, kind):
    rng = np.random.default_rng(seed)
    weights = np.minimum(rng.random(n_rows) if kind != "pareto" else 0.02 * (1 + rng.pareto(1.5, n_rows)), 1.0)
    values = rng.random(n_rows) if kind == "many values" else rng.choice([0.0, 1.0], p=[0.8, 0.2], size=n_rows)
    rows, cells = WeightedSample(values, weights, np.ones(n_rows), (0.0, 1.0)), few_cells(values, weights, (0.0, 1.0))
    assert cells.counts.sum() == pytest.approx(n_rows)
    np.testing.assert_allclose((cells.weights * cells.values) @ cells.counts, weights @ values)
    seen, exact, close = values @ weights / weights.sum(), *(upper_weighted_mean(one, 0.05) for one in (rows, cells))
    assert exact <= close + 1e-10
    assert close - seen <= 1.03 * (exact - seen)


def test_bounds_are_narrower_than_by_empirical_bernstein():
    rng = np.random.default_rng(0)
    weights = rng.random(2000) + 0.2
    values = (rng.random(2000) < 0.1).astype(float)
    high = weighted_mean_bounds(values, weights, confidence=0.95, largest_weight=5.0).high
    bernstein = empirical_bernstein_bound(0.5 + weights * (values - high) / 10.0, delta=0.05)
    assert bernstein > 0.504  # it does not rule out a mean of zero at the end of the interval


def test_the_order_of_rows_and_the_units_of_weights_play_no_role():
    rng = np.random.default_rng(0)
    values, weights, order = rng.random(500), rng.random(500), rng.permutation(500)
    found = weighted_mean_bounds(values, weights, confidence=0.9, largest_weight=2.0)
    again = weighted_mean_bounds(values[order], 7e10 * weights[order], confidence=0.9, largest_weight=14e10)
    np.testing.assert_allclose(found, again, atol=1e-9)


def test_a_larger_limit_widens_and_rows_of_no_weight_change_nothing():
    values, weights = np.array([0.0, 1.0, 0.0, 0.0] * 40), np.array([1.0, 1.0, 2.0, 0.0] * 40)
    highs = [weighted_mean_bounds(values, weights, confidence=0.9, largest_weight=most).high for most in (2, 5, 20)]
    assert highs == sorted(highs)
    flipped = np.where(weights == 0, 1.0 - values, values)
    again = weighted_mean_bounds(flipped, weights, confidence=0.9, largest_weight=2).high
    assert highs[0] == pytest.approx(again, abs=1e-12)


@pytest.mark.parametrize(("unit", "origin"), [(4.0, 0.0), (0.25, 0.0), (3.0, -2.0), (-5.0, 1.0)])
def test_bounds_follow_the_unit_and_the_origin_of_what_is_measured(unit, origin):
    """Of one mean, and of the sum of two; where the sign turns, the ends change places."""
    rng = np.random.default_rng(1)
    values, weights = rng.choice([0.0, 0.3, 1.0], 200, p=[0.5, 0.2, 0.3]), rng.integers(1, 4, 200).astype(float)
    span = tuple(sorted((origin, origin + unit)))
    given = {"confidence": 0.9, "largest_weight": 4.0}
    plain = weighted_mean_bounds(values, weights, **given)
    found = weighted_mean_bounds(origin + unit * values, weights, **given, span=span)
    np.testing.assert_allclose(found, sorted(origin + unit * end for end in plain), rtol=1e-6, atol=1e-8)
    halves = [few_cells(values[rows], weights[rows] / 4, (0.0, 1.0)) for rows in (slice(80), slice(80, None))]
    moved = [
        few_cells(origin + abs(unit) * values[rows], weights[rows] / 4, (origin, origin + abs(unit)))
        for rows in (slice(80), slice(80, None))
    ]
    expected = 2 * origin + abs(unit) * upper_weighted_sum(*halves, 0.1)
    assert upper_weighted_sum(*moved, 0.1) == pytest.approx(expected, rel=1e-6, abs=1e-8)
