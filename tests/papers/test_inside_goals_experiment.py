"""Frontiers of training inside goals: the experiment on rows that are drawn here, its page, how frontiers compare."""

import numpy as np
import pytest

from counterpoise.datasets import TableData
from papers.frontier import Frontier, compared, interval
from papers.training import inside_goals as experiment
from papers.training import methods

pytest.importorskip("fairlearn", reason="a peer")


def people(n_rows=600):
    """Return rows whose labels depend on a group, which is also a column, and on a category."""
    rng = np.random.default_rng(0)
    man = rng.random(n_rows) < 0.6
    X = np.column_stack([man, rng.normal(size=(n_rows, 2)) + 0.3 * man[:, None], rng.integers(0, 3, n_rows)])
    y = (X[:, 1] + 0.8 * man + 0.3 * X[:, 3] + 0.5 * rng.normal(size=n_rows) > 0.9).astype(int)
    is_category = np.array([True, False, False, True])
    sex = {"sex": np.where(man, "Male", "Female")}
    return TableData("drawn", X, y, ["sex", "a", "b", "kind"], is_category, sex, None, "")


def test_the_group_is_not_among_the_features():
    for learner in (methods.LINEAR, methods.TREES):
        train, test = experiment.parted(people(), learner, 0)
        is_man = train.sex == "Male"
        assert all(len(np.unique(column[is_man])) > 1 or column.std() == 0 for column in train.X.T)
        assert train.X.shape[1] == test.X.shape[1] == (3 if learner == methods.TREES else 5)
        assert len(train.y) == len(test.y) == 300


def test_bounds_that_noise_has_in_another_order_are_pooled():
    frontier = Frontier(np.array([[0.02, 0.01, 0.05]]), np.array([[0.3, 0.2, 0.1]]))
    rising, errors = frontier.steps()
    np.testing.assert_allclose(rising, [0.015, 0.05])
    np.testing.assert_allclose(errors, [[0.25, 0.1]])
    assert frontier.errors_at(0.0325) == pytest.approx(0.175)


def test_frontiers_that_meet_nowhere_are_compared_at_their_nearest_ends():
    strict = Frontier(np.array([[0.01, 0.02]]), np.array([[0.3, 0.2]]))
    loose = Frontier(np.array([[0.03, 0.05]]), np.array([[0.15, 0.1]]))
    for one, other, errors in ((strict, loose, (0.2, 0.15)), (loose, strict, (0.15, 0.2))):
        found = compared(one, other)
        assert not found.is_equal
        assert (found.ours[0], found.other[0]) == errors
    low, middle, high = interval(np.array([1.0, 2.0, 3.0]))
    assert middle == 2.0
    assert (low, high) == pytest.approx((2 - 4.302653 / np.sqrt(3), 2 + 4.302653 / np.sqrt(3)))


def test_every_method_is_measured_and_compared_at_equal_violation(monkeypatch):
    for module in (methods, experiment):
        monkeypatch.setattr(module, "BOUNDS", (0.02,))
    monkeypatch.setattr(methods, "MORE_BOUNDS", (0.1,))
    rows = list(experiment.measure_on(people(), experiment.Part("drawn", methods.LINEAR, methods.PARITY, 0)))
    kept = {row.settings: row.value for row in rows if row.quantity == experiment.KEPT and row.method == methods.INSIDE}
    assert all(kept[f"bound={bound}"] <= bound + 1e-6 for bound in (0.02, 0.1))
    assert {row.method for row in rows} == {methods.INSIDE, methods.REDUCTION, methods.CONSTRAINED, methods.PLAIN}
    table = experiment.blocks(experiment.ResultsTable(tuple(rows)))["frontiers"]
    assert "| linear | drawn | demographic parity | ExponentiatedGradient |" in table
