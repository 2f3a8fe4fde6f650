"""The tree of one compiled call is that of the growth level by level, to the last bit."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from counterpoise.learners import HistogramTree, Stump
from counterpoise.learners._growing import leaves_of_rows


@st.composite
def tables(draw):
    """Draw data with few or many values, missing ones, categories and constant features, and uneven weights."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n_samples, n_features = draw(st.integers(2, 400)), draw(st.integers(1, 9))
    X = rng.integers(0, draw(st.sampled_from([2, 5, 60])), (n_samples, n_features)).astype(float)
    X[rng.random(X.shape) < draw(st.sampled_from([0, 0.2]))] = np.nan
    X[:, rng.random(n_features) < 0.2] = 7.0
    codes = rng.integers(0, draw(st.sampled_from([2, 3])), n_samples)
    weights = rng.exponential(size=n_samples) ** draw(st.sampled_from([0, 1, 6]))
    weights[rng.random(n_samples) < draw(st.sampled_from([0, 0.3]))] = 0
    weights[0] = 1.0
    return X, codes, weights, rng.random(n_features) < draw(st.sampled_from([0, 0.3, 1]))


trees = st.builds(
    HistogramTree,
    max_depth=st.sampled_from([1, 2, 5, None]),
    max_bins=st.sampled_from([8, 256]),
    min_samples_leaf=st.sampled_from([1, 1, 2, 7]),
    min_samples_split=st.sampled_from([2, 10]),
    min_gain=st.sampled_from([0.0, 1e-3]),
)


AT_ONCE = 1 << 21  # entries of the data, up to which a tree is grown in one call


def padded(binned, codes, weights):
    """Return more data than that, with rows that have no weight and so change nothing."""
    more = AT_ONCE // binned.n_features + 1
    longer = dataclasses.replace(binned, bins=np.pad(binned.bins, ((0, 0), (0, more))))
    return longer, np.pad(codes, (0, more)), np.pad(weights, (0, more))


def grown_both_ways(tree, binned, codes, weights):
    """Return what the tree predicts, and its nodes, in one call and level by level."""
    found = []
    for data in ((binned, codes, weights), padded(binned, codes, weights)):
        grown = clone(tree)
        predicted = grown.fit_codes(data[0], data[1], np.arange(codes.max() + 1), data[2])
        found.append((predicted[: len(codes)], *grown.tree_))
    return found


@pytest.mark.slow
@given(table=tables(), tree=trees)
def test_both_ways_to_grow_give_the_same_tree(table, tree):
    X, codes, weights, is_categorical = table
    tree.set_params(categorical_features=is_categorical)
    for one, other in zip(*grown_both_ways(tree, tree.prepare(X), codes, weights), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
def test_both_ways_agree_on_deep_trees_of_thousands_of_rows(n_classes):
    rng = np.random.default_rng(n_classes)
    X, codes = rng.standard_normal((5_000, 6)), rng.integers(0, n_classes, 5_000)
    tree = HistogramTree(None, min_samples_leaf=2)
    one, other = grown_both_ways(tree, tree.prepare(X), codes, rng.exponential(size=5_000))
    assert one[1].size > 1_000  # more than the histograms that room is asked for at first
    for first, second in zip(one, other, strict=True):
        np.testing.assert_array_equal(first, second)


def node_sizes(tree, X):
    """Return the number of rows in each node."""
    sizes = np.bincount(leaves_of_rows(tree, X), minlength=tree.feature.size)
    for node in np.flatnonzero(tree.feature >= 0)[::-1]:
        sizes[node] = sizes[tree.left[node]] + sizes[tree.left[node] + 1]
    return sizes


def test_nodes_that_are_split_have_the_least_number_of_samples():
    rng = np.random.default_rng(0)
    X, codes = rng.standard_normal((800, 4)), rng.integers(0, 2, 800)
    tree = HistogramTree(None)
    binned = tree.prepare(X)
    for data in ((binned, codes, np.ones(800)), padded(binned, codes, np.ones(800))):
        for least in (2, 10, 51):
            tree.set_params(min_samples_split=least).fit_codes(data[0], data[1], np.arange(2), data[2])
            sizes, is_pure = node_sizes(tree.tree_, X), tree.tree_.shares.max(axis=1) == 1
            assert sizes[tree.tree_.feature >= 0].min() >= least
            assert sizes[(tree.tree_.feature < 0) & ~is_pure].max(initial=0) < least


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
