"""A pool that grows a model at a time is solved as if each pool had been the first."""

import numpy as np
import pytest
from oracles import Problem, least_cvar

from counterpoise.solvers import InfeasibleRows
from counterpoise.solvers.tail import GrowingMixture, SampleKinds, TailOracle, minimize_linear, recode


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("is_weighted", [False, True])
def test_every_solve_is_certified_and_reaches_the_optimum(seed, is_weighted):
    rng = np.random.default_rng(seed)
    n_samples, n_models, alpha = 300, 12, float(rng.choice([0.1, 0.4, 1.0]))
    losses = (rng.random((n_samples, n_models)) < rng.beta(0.5, 2, size=(n_samples, 1))).astype(np.uint8)
    weight = rng.exponential(size=n_samples) if is_weighted else None
    rows = rng.normal(size=(2, n_models))
    bounds = rows[:, :2].mean(axis=1) + 0.05
    pool = GrowingMixture(alpha, tol=1e-5)
    for size in (2, 3, 5, 8, 9, 12):
        found = pool.solve(losses[:, :size], rows[:, :size], bounds, sample_weight=weight)
        best = least_cvar(Problem(losses[:, :size], alpha, weight, rows[:, :size], bounds))
        assert found.gap <= 1e-5 + 1e-12
        assert found.lower - 1e-9 <= best <= found.value + 1e-9
        assert (rows[:, :size] @ found.mixture <= bounds + 1e-8).all()
        caps = np.full(n_samples, 1 / n_samples) if weight is None else weight / weight.sum()
        assert (found.weights <= caps / alpha + 1e-12).all()
        assert found.weights.sum() == pytest.approx(1.0)


def test_cuts_are_left_behind_where_samples_weigh_otherwise():
    rng = np.random.default_rng(0)
    losses, none = (rng.random((200, 6)) < 0.3).astype(np.uint8), np.empty((0, 6))
    pool = GrowingMixture(0.2, tol=1e-5)
    for weight in (None, rng.exponential(size=200), rng.integers(0, 3, 200).astype(float)):
        found = pool.solve(losses, none, np.empty(0), sample_weight=weight)
        assert found.value == pytest.approx(least_cvar(Problem(losses, 0.2, weight, None, None)), abs=2e-5)


def test_a_pool_that_cannot_keep_rows_grows_into_one_that_can():
    losses, rows = np.array([[0, 1], [0, 1], [1, 0]], dtype=np.uint8), np.array([[1.0, 0.0]])
    pool = GrowingMixture(1.0)
    with pytest.raises(InfeasibleRows, match="No mixture satisfies"):
        pool.solve(losses[:, :1], rows[:, :1], np.array([0.25]))
    assert pool.solve(losses, rows, np.array([0.25])).mixture == pytest.approx([0.25, 0.75])


@pytest.mark.parametrize("is_real", [False, True])
def test_samples_of_one_kind_are_those_with_equal_losses(is_real):
    rng = np.random.default_rng(1)
    losses = rng.integers(0, 3, (200, 7)) / 2 if is_real else rng.integers(0, 2, (200, 7)).astype(np.uint8)
    kinds = SampleKinds(np.zeros(200, dtype=np.int64), np.empty((1, 0), dtype=np.uint8))
    for number, column in enumerate(losses.T, start=1):
        before = kinds.of
        kinds, parents = kinds.split(column)
        np.testing.assert_array_equal(parents[kinds.of], before)
        np.testing.assert_array_equal(kinds.losses[kinds.of], losses[:, :number])
        assert len(np.unique(kinds.losses, axis=0)) == len(kinds.losses)


def test_samples_of_one_kind_share_its_weight_in_proportion_to_their_own():
    rng = np.random.default_rng(1)
    losses, weight = rng.integers(0, 2, (200, 3)).astype(np.uint8), rng.exponential(size=200)
    found = GrowingMixture(0.4).solve(losses, np.empty((0, 3)), np.empty(0), sample_weight=weight)
    _, kinds = np.unique(losses, axis=0, return_inverse=True)
    shares = np.bincount(kinds, found.weights) / np.bincount(kinds, weight)
    np.testing.assert_allclose(found.weights, shares[kinds] * weight)


def test_losses_between_zero_and_one_grow_too():
    rng = np.random.default_rng(2)
    losses, none = rng.random((120, 6)), np.empty((0, 6))
    pool = GrowingMixture(0.3, tol=1e-5)
    for size in (2, 4, 6):
        found = pool.solve(losses[:, :size], none[:, :size], np.empty(0))
        assert found.value == pytest.approx(least_cvar(Problem(losses[:, :size], 0.3, None, None, None)), abs=2e-5)


@pytest.mark.parametrize("n_rows", [1, 5, 8, 40_000])
def test_a_cut_is_known_by_its_tail_and_the_codes_of_rows(n_rows):
    rng = np.random.default_rng(3)
    oracle = TailOracle.of((rng.random((n_rows, 3)) < 0.4).astype(np.uint8), rng.random(n_rows), 0.3)
    cut = oracle.cut(np.array([0.5, 0.3, 0.2]))
    again = oracle.cut(recode(cut.codes, oracle.sizes, np.arange(n_rows), oracle.sizes), cut.tail)
    oracle.parts.close()
    np.testing.assert_array_equal(np.concatenate(again.codes), np.concatenate(cut.codes))
    np.testing.assert_allclose(again.slope, cut.slope)


@pytest.mark.parametrize("seed", range(5))
def test_the_least_of_a_linear_function_is_that_of_the_linear_program(seed):
    rng = np.random.default_rng(seed)
    values, rows = rng.normal(size=9) * 10.0 ** rng.integers(-3, 4), rng.normal(size=(3, 9))
    bounds = rows @ rng.dirichlet(np.ones(9))
    found = minimize_linear(values, rows, bounds)
    best = least_cvar(Problem(values[None], 1.0, None, rows, bounds))
    assert found.value == pytest.approx(best, rel=1e-6, abs=1e-7 * np.ptp(values))
    assert found.gap <= 1e-7 * np.ptp(values)
    assert (found.multipliers >= 0).all()
