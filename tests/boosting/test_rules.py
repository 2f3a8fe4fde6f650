"""Rules: weights on the simplex, whatever the losses, step sizes and outliers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoise.boosting.rounds import History, Round
from counterpoise.boosting.row_store import RowStore
from counterpoise.boosting.rules import adaptive_hedge, dual_of, hedge, hedge_groups, regularized_dual, without_outliers
from counterpoise.rules.choosing import outliers
from counterpoise.theory.risks import CVaR


def history_of(losses, start=None):
    """Return the history of rounds with the given losses, one column each."""
    n_samples, n_rounds = losses.shape
    history = History(RowStore(np.full(n_samples, 1 / n_samples) if start is None else start, n_rounds))
    for number, column in enumerate(losses.T, 1):
        history.append(Round(number, None, history.rows.start, column, 0.0))
    return history


RULES = {
    "hedge": hedge(0.7),
    "steep hedge": hedge(500.0),
    "adaptive hedge": adaptive_hedge(),
    "groups": hedge_groups(0.7, np.arange(15) % 3),
    "dual": dual_of(CVaR(0.3)),
    "regularized dual": regularized_dual(0.3, 20.0),
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("fraction", [0.0, 0.2])
@given(seed=st.integers(0, 1000), n_rounds=st.integers(1, 6))
def test_weights_are_new_and_on_the_simplex(rule, fraction, seed, n_rounds):
    rng = np.random.default_rng(seed)
    losses = (rng.random((15, n_rounds)) < 0.4).astype(np.uint8)
    history = history_of(losses, rng.dirichlet(np.ones(15)))
    before = history.rows.start.copy()
    weights = without_outliers(RULES[rule], fraction)(history)
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1)
    np.testing.assert_array_equal(history.rows.start, before)
    assert weights is not history.rows.start


def test_hedge_weighs_by_the_exponential_of_the_losses():
    """Line 5 of Algorithm 2."""
    losses = np.array([[1, 1, 0], [0, 1, 0], [0, 0, 0]], dtype=np.uint8)
    expected = np.exp(0.5 * losses.sum(axis=1))
    np.testing.assert_allclose(hedge(0.5)(history_of(losses)), expected / expected.sum())


@given(seed=st.integers(0, 1000), n_rounds=st.integers(1, 8))
def test_adaboosts_step_leaves_each_model_with_an_error_of_a_half(seed, n_rounds):
    """Weights follow from those before by ``w * (e / (1 - e)) ** (1 - loss)``, as Freund and Schapire have it."""
    rng = np.random.default_rng(seed)
    losses = (rng.random((40, n_rounds)) < 0.4).astype(np.uint8)
    losses[0], losses[1] = 1, 0  # no model is perfect, none always wrong
    history = History(RowStore(rng.dirichlet(np.ones(40)), n_rounds))
    weights = history.rows.start
    for number, column in enumerate(losses.T, 1):
        error = float(weights @ column)
        history.append(Round(number, None, weights, column, error))
        stepped = weights * (error / (1 - error)) ** (1.0 - column)
        weights = adaptive_hedge()(history)
        np.testing.assert_allclose(weights, stepped / stepped.sum(), rtol=1e-9)
        assert weights @ column == pytest.approx(0.5)


def test_a_perfect_model_keeps_the_weights_finite():
    history = history_of(np.zeros((4, 2), dtype=np.uint8))
    np.testing.assert_allclose(adaptive_hedge()(history), 0.25)


def test_group_weights_are_shared_equally_inside_a_group():
    losses = np.array([[1], [0], [0], [0]], dtype=np.uint8)
    weights = hedge_groups(1.0, np.array([0, 0, 1, 1]))(history_of(losses))
    expected = np.exp([0.5, 0.0])
    np.testing.assert_allclose(weights, np.repeat(expected / expected.sum() / 2, 2))


def test_outliers_get_no_weight_even_under_a_steep_rule():
    losses = np.zeros((10, 4), dtype=np.uint8)
    losses[0] = 1
    weights = without_outliers(hedge(1000.0), 0.1)(history_of(losses))
    assert weights[0] == 0
    np.testing.assert_allclose(weights[1:], 1 / 9)


def test_a_group_of_outliers_only_drops_out():
    losses = np.zeros((10, 2), dtype=np.uint8)
    losses[0] = 1
    weights = without_outliers(hedge_groups(1.0, (np.arange(10) > 0).astype(np.int64)), 0.1)(history_of(losses))
    np.testing.assert_allclose(weights, np.r_[0, np.full(9, 1 / 9)])


def test_some_weight_is_left_whatever_is_called_an_outlier():
    kept = ~outliers(np.array([1, 0, 1, 0]), np.array([1.0, 0.0, 2.0, 1.0]), np.nextafter(1, 0))
    assert kept.tolist() == [False, False, False, True]
