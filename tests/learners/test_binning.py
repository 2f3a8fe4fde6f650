"""Binning: edges between values, one byte each, the same for every type and form of the data."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from counterpoise.learners import bin_features
from counterpoise.learners.binning import bin_like

VALUES = st.one_of(st.floats(-1e308, 1e308), st.just(float("nan")), st.sampled_from([0.0, -0.0, 1.0, 5e-324]))
COLUMNS = arrays(float, st.tuples(st.integers(1, 40), st.just(1)), elements=VALUES)


def assert_same(first, second):
    np.testing.assert_array_equal(first.bins, second.bins)
    np.testing.assert_array_equal(first.n_bins, second.n_bins)
    np.testing.assert_array_equal(first.has_missing, second.has_missing)
    for one, other in zip(first.edges, second.edges, strict=True):
        np.testing.assert_array_equal(one, other)


@given(X=COLUMNS, max_bins=st.integers(3, 256))
def test_bins_are_in_the_order_of_the_values_and_edges_lie_between(X, max_bins):
    binned = bin_features(X, max_bins=max_bins)
    values, places, edges = X[:, 0], binned.bins[0], binned.edges[0]
    missing = np.isnan(values)
    assert (places[missing] == binned.missing_bin).all()
    assert (np.diff(edges) > 0).all()
    assert binned.n_bins[0] == edges.size + 1 <= max_bins - 1
    np.testing.assert_array_equal(places[~missing], np.searchsorted(edges, values[~missing], side="left"))
    assert binned.has_missing[0] == missing.any()
    distinct = np.unique(values[~missing])
    if distinct.size < max_bins:
        assert edges.size == max(distinct.size - 1, 0)
        assert len(set(places[~missing])) == distinct.size


def test_few_values_are_cut_halfway_between_neighbours():
    assert bin_features([[4.0], [1.0], [2.0], [2.0]]).edges[0].tolist() == [1.5, 3.0]


def test_many_values_are_cut_into_bins_of_equal_size():
    X = np.random.default_rng(0).exponential(size=(25_500, 1))
    binned = bin_features(X)
    sizes = np.bincount(binned.bins[0])
    assert sizes.size == binned.n_bins[0] == 255
    assert sizes.min() == sizes.max() == 100


def test_a_value_that_fills_many_bins_gets_one():
    X = np.r_[np.zeros(900), np.arange(1, 101)].reshape(-1, 1)
    binned = bin_features(X, max_bins=11)
    assert binned.edges[0].tolist() == [0.5]
    assert np.bincount(binned.bins[0]).tolist() == [900, 100]


def test_edges_of_many_rows_come_from_a_sample_and_are_the_same_each_time():
    X = np.random.default_rng(0).standard_normal((300_000, 1))
    sampled = bin_features(X)
    assert_same(sampled, bin_features(X))
    assert_same(sampled, bin_features(scipy.sparse.csr_array(X)))
    sizes = np.bincount(sampled.bins[0], minlength=255)
    assert 20 < np.ptp(sizes) < 400  # equal but for what the sample missed


@pytest.mark.parametrize("form", [scipy.sparse.csr_array, scipy.sparse.csc_matrix, scipy.sparse.coo_array])
def test_sparse_features_get_the_bins_of_dense_ones(form):
    X = np.random.default_rng(0).integers(-2, 3, (300, 7)).astype(float)
    X[5, 3] = np.nan
    assert_same(bin_features(form(X)), bin_features(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.uint16, np.int64, bool])
def test_the_type_of_the_values_does_not_matter(dtype):
    X = np.random.default_rng(0).integers(0, 100, (500, 3)).astype(dtype)
    assert_same(bin_features(X), bin_features(X.astype(np.float64)))
    assert_same(bin_features(np.asfortranarray(X)), bin_features(X))


def test_the_number_of_threads_does_not_matter(processors):
    X = np.random.default_rng(0).standard_normal((4_000, 30))
    found = []
    for n_threads in (1, 3):
        processors(n_threads)
        found.append(bin_features(X))
    assert_same(*found)


def test_categories_are_their_own_bins():
    X = np.array([[3.0, 9.0], [0.0, 1.0], [254.0, np.nan]])
    for chosen in ([0], [True, False]):
        binned = bin_features(X, categorical_features=chosen)
        assert binned.bins[0].tolist() == [3, 0, 254]
        assert binned.edges[0].tolist() == [0, 3, 254]
        assert binned.n_bins.tolist() == [255, 2]
        assert binned.is_categorical.tolist() == [True, False]
        assert binned.has_missing.tolist() == [False, True]


def test_a_feature_without_values_has_one_bin():
    binned = bin_features(np.full((3, 2), np.nan), categorical_features=[1])
    assert (binned.bins == binned.missing_bin).all()
    assert binned.n_bins.tolist() == [1, 1]


def test_new_data_get_the_bins_of_the_old():
    X = np.random.default_rng(0).integers(0, 9, (400, 2)).astype(float)
    binned = bin_features(X, categorical_features=[1])
    assert_same(bin_like(X, binned), binned)
    new = bin_like([[-50.0, 8.0], [4.2, 9.0], [np.nan, 0.5], [99.0, np.nan], [3.5, -1.0]], binned)
    assert new.bins.tolist() == [[0, 4, 255, 8, 3], [8, 255, 255, 255, 255]]
    assert new.has_missing.tolist() == [True, True]
    assert len(new) == 5


def test_a_category_between_those_seen_is_missing():
    binned = bin_features([[0.0], [4.0]], categorical_features=[0])
    assert bin_like([[4.0], [2.0]], binned).bins.tolist() == [[4, 255]]


SMALL = [[1.0, 2.0], [3.0, 4.0]]
BAD = {
    "infinity": (ValueError, [[1.0], [np.inf]], {}, "X must hold finite numbers or NaN in feature 0; got infinity"),
    "text": (TypeError, [["a"], ["b"]], {}, "X must hold real numbers; got dtype"),
    "complex sparse": (TypeError, scipy.sparse.eye_array(2, dtype=complex), {}, "X must hold real numbers"),
    "a vector": (ValueError, [1.0, 2.0], {}, r"X must have shape \(n_samples, n_features\).*got shape \(2,\)"),
    "no rows": (ValueError, np.empty((0, 2)), {}, r"with at least one of each; got shape \(0, 2\)"),
    "too many bins": (ValueError, SMALL, {"max_bins": 257}, "max_bins must lie from 3 to 256.*got 257"),
    "too few bins": (ValueError, SMALL, {"max_bins": 2}, "max_bins must lie from 3 to 256.*got 2"),
    "half a bin": (TypeError, SMALL, {"max_bins": 2.5}, "max_bins must be a whole number"),
    "unknown feature": (ValueError, SMALL, {"categorical_features": [2]}, r"from 0 to 1, or a mask.*got \[2\]"),
    "short mask": (ValueError, SMALL, {"categorical_features": [True]}, r"mask of shape \(2,\); got \[True\]"),
    "large code": (ValueError, [[255.0]], {"categorical_features": [0]}, "whole numbers from 0 to 254.*OrdinalEncoder"),
    "half a code": (ValueError, [[0.5]], {"categorical_features": [0]}, "codes of categories.*in feature 0"),
    "negative code": (ValueError, [[-1]], {"categorical_features": [0]}, "codes of categories.*in feature 0"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_clear_sentence(case):
    error, X, settings, text = BAD[case]
    with pytest.raises(error, match=text):
        bin_features(X, **settings)


def test_infinity_is_found_where_a_sample_of_the_rows_missed_it():
    """Two in three rows are in no sample: hardly will all of five be."""
    for place in range(5):
        X = np.zeros((600_000, 1), dtype=np.float32)
        X[place] = np.inf
        with pytest.raises(ValueError, match="finite numbers or NaN in feature 0; got infinity"):
            bin_features(X)


def test_new_data_must_have_the_features_of_the_old():
    with pytest.raises(ValueError, match="X must have 2 features, as at fit; got 1"):
        bin_like([[1.0]], bin_features(SMALL))
