"""Where trees stop to grow, and features that they leave alone."""

import numpy as np
import pytest

from counterpoise.learners import HistogramTree, Stump
from counterpoise.learners._tree import leaves_of_rows


def node_sizes(tree, X):
    """Return the number of rows in each node."""
    sizes = np.bincount(leaves_of_rows(tree, X), minlength=tree.feature.size)
    for node in np.flatnonzero(tree.feature >= 0)[::-1]:
        sizes[node] = sizes[tree.left[node]] + sizes[tree.left[node] + 1]
    return sizes


def test_nodes_that_are_split_have_the_least_number_of_samples():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((800, 4)), rng.integers(0, 2, 800)
    for least in (2, 10, 51):
        tree = HistogramTree(None, min_samples_split=least).fit(X, y).tree_
        sizes, is_pure = node_sizes(tree, X), tree.shares.max(axis=1) == 1
        assert sizes[tree.feature >= 0].min() >= least
        assert sizes[(tree.feature < 0) & ~is_pure].max(initial=0) < least


def test_a_tree_without_limit_tells_all_distinct_rows_apart():
    X, y = np.arange(300.0).reshape(-1, 1) % 251, np.arange(300) % 251 % 2
    assert HistogramTree(6).fit(X, y).score(X, y) < 1
    assert HistogramTree(None).fit(X, y).score(X, y) == 1


def test_constant_features_are_never_split_by_and_change_nothing():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((500, 3)), rng.integers(0, 2, 500)
    padded = np.insert(X, [0, 1, 3], 4.0, axis=1)
    plain, wide = HistogramTree().fit(X, y), HistogramTree().fit(padded, y)
    np.testing.assert_array_equal(wide.tree_.feature, np.array([1, 3, 4, -1])[plain.tree_.feature])
    np.testing.assert_array_equal(wide.predict_proba(padded), plain.predict_proba(X))
    np.testing.assert_array_equal(Stump().fit(np.full((500, 2), 1.0), y).tree_.feature, [-1])


@pytest.mark.parametrize("name", ["max_depth", "min_samples_leaf", "min_samples_split"])
def test_a_limit_beyond_all_sizes_is_no_other_than_a_large_one(name):
    X, y = np.arange(8.0)[:, None], [0, 0, 0, 0, 1, 1, 1, 0]
    huge, large = (HistogramTree(**{name: limit}).fit(X, y) for limit in (10**30, 1000))
    np.testing.assert_array_equal(huge.predict(X), large.predict(X))
