"""Shares of groups with a fixed total, against all points of a fine grid."""

from itertools import permutations

import numpy as np
import pytest

from counterpoise.solvers.group_shares import ShareCurve, choose_shares, nearest_total, round_shares
from tests.tiers import slow


def random_problem(rng, n_groups):
    """Return curves, sizes, a total and bounds: recalls of groups that differ little and are not low, and errors."""
    recalls, losses, knots = [], [], []
    for _ in range(n_groups):
        y = (rng.random(int(rng.integers(6, 20))) < 0.5).astype(float)
        y[:2] = 1, 0
        recalls.append(np.append(0, np.cumsum(y)) / y.sum())
        losses.append(np.append(0, np.cumsum(1 - 2 * y)) / 50)
        knots.append(np.linspace(0, 1, y.size + 1))
    pairs, curves = list(permutations(range(n_groups), 2)), []
    for group in range(n_groups):
        differences = [((one == group) - float(other == group)) * recalls[group] for one, other in pairs]
        floors = [-recalls[group] if other == group else np.zeros(knots[group].size) for other in range(n_groups)]
        curves.append(ShareCurve(knots[group], np.array([*differences, *floors, losses[group]])))
    bounds = np.append(np.full(len(pairs), rng.choice([0.0, 0.1, 0.2])), np.full(n_groups, -rng.choice([0.0, 0.4])))
    sizes = rng.integers(5, 40, n_groups).astype(float)
    return curves, sizes, int(rng.integers(0, sizes.sum() + 1)), bounds


def grid(sizes, total, n_points):
    """Return points of a grid with the total."""
    others = np.array(np.meshgrid(*[np.linspace(0, 1, n_points)] * (sizes.size - 1))).reshape(sizes.size - 1, -1)
    points = np.vstack([others, (total - sizes[:-1] @ others) / sizes[-1]])
    return points[:, ((points >= 0) & (points <= 1)).all(axis=0)]


@pytest.mark.parametrize(("n_groups", "n_points"), [(2, 2001), slow(3, 151)])
def test_no_point_of_a_grid_is_better(n_groups, n_points):
    rng = np.random.default_rng(n_groups)
    n_met = 0
    for _ in range(30):
        curves, sizes, total, bounds = random_problem(rng, n_groups)
        best = choose_shares(curves, sizes, total, bounds)
        assert sizes @ best.shares == pytest.approx(total)
        assert best.is_proven == (n_groups == 2)
        own = sum(curve.at(share[None])[:, 0] for curve, share in zip(curves, best.shares, strict=True))
        assert own[-1] == pytest.approx(best.value)
        assert (best.violation == 0) == bool((own[:-1] <= bounds + 1e-9).all())
        sums = sum(curve.at(row) for curve, row in zip(curves, grid(sizes, total, n_points), strict=True))
        meets = (sums[:-1] <= bounds[:, None] + 1e-9).all(axis=0)
        if meets.any():
            n_met += 1
            assert best.violation == 0
            assert best.value <= sums[-1, meets].min() + (1e-9 if n_groups == 2 else 1e-3)  # a twentieth of a row
    assert n_met > 5


def test_the_largest_of_several_objectives_is_the_least():
    knots = np.array([0.0, 1.0])
    first, second = (
        ShareCurve(knots, np.array([[0.0, 1.0], [0.0, 0.0]])),
        ShareCurve(knots, np.array([[0, 0], [0, 3.0]])),
    )
    best = choose_shares([first, second], np.array([10.0, 10.0]), 8.0, np.empty(0))
    assert best.shares == pytest.approx([0.6, 0.2])
    assert best.value == pytest.approx(0.6)


def test_many_knots_and_groups():
    rng = np.random.default_rng(0)
    curves = []
    for group in range(5):
        shares = np.linspace(0, 1, 3001)
        gain = -np.cumsum(np.append(0, rng.random(3000) < np.linspace(0.9, 0.1, 3000) - 0.1 * group)) / 3000
        limits = [shares * (group == one) - shares * (group == other) for one, other in permutations(range(5), 2)]
        curves.append(ShareCurve(shares, np.array([*limits, gain])))
    best = choose_shares(curves, np.full(5, 100.0), 150.0, np.full(20, 0.03))
    assert best.violation == 0
    assert 0.02 < np.ptp(best.shares) <= 0.03 + 1e-9
    assert best.shares.sum() == pytest.approx(1.5)


def test_the_nearest_total_is_at_the_edge_of_the_limits():
    knots = np.array([0.0, 0.5, 1.0])
    curves = [ShareCurve(knots, np.array([[0, 0.3, 0.5], [0, 0, 0.0]])) for _ in range(2)]
    sizes, zeros = np.array([10.0, 30.0]), np.zeros(2)
    assert nearest_total(curves, sizes, 40, np.array([0.3]), constants=zeros) == pytest.approx(15.0)
    assert nearest_total(curves, sizes, 4, np.array([0.3]), constants=zeros) == pytest.approx(4.0)
    assert nearest_total(curves, sizes, 4, np.array([-0.1]), constants=zeros) is None


def test_rounding_keeps_the_sum_and_moves_less_than_one():
    rng = np.random.default_rng(0)
    for _ in range(100):
        total = int(rng.integers(1, 50))
        amounts = rng.dirichlet(np.ones(5)) * total
        counts = round_shares(amounts)
        assert counts.sum() == total
        assert np.abs(counts - amounts).max() < 1
