"""Trees and stumps: weights, codes, threads, missing values, categories, and what they refuse."""

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits

from counterpoise.learners import HistogramTree, Stump, bin_features
from counterpoise.learners._tree import leaves_of_rows
from counterpoise.learners.binning import bin_like


def hard_data(n_samples=3_000, n_classes=3):
    """Return features with missing values and categories, labels, and very uneven weights."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_samples, 6))
    X[:, 4:] = rng.integers(0, 12, (n_samples, 2))
    score = X[:, 0] + X[:, 1] ** 2 + (X[:, 4] % 3) + 0.5 * rng.standard_normal(n_samples)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.digitize(score, np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1]))
    return X, np.array([f"kind {k}" for k in range(n_classes)])[y], rng.exponential(size=n_samples) ** 4


TREES = [
    Stump(categorical_features=[4, 5]),
    HistogramTree(max_depth=5, categorical_features=[4, 5]),
    HistogramTree(max_depth=12, max_bins=16, min_samples_leaf=3),
    HistogramTree(max_depth=8, min_gain=1e-3),
]


def assert_same_tree(first, second):
    for name in first._fields:
        one, other = getattr(first, name), getattr(second, name)
        if name == "shares":
            # Weights are whole multiples of 2^-52 of their sum: of leaves of nearly no weight fewer digits are left.
            np.testing.assert_allclose(one, other, atol=1e-7)
        else:
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_samples_without_weight_do_not_matter(tree, n_classes):
    X, y, weights = hard_data(n_classes=n_classes)
    weights[::3] = 0
    with_them = clone(tree).fit(X, y, weights)
    without = clone(tree).fit(X[weights > 0], y[weights > 0], weights[weights > 0])
    assert_same_tree(with_them.tree_, without.tree_)


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("scale", [1e-300, 1e-3, 7.0, 1e300])
def test_the_scale_of_the_weights_does_not_matter(tree, scale):
    X, y, weights = hard_data()
    binned, (classes, codes) = tree.prepare(X), np.unique(y, return_inverse=True)
    one, other = clone(tree), clone(tree)
    one.fit_codes(binned, codes, classes, weights)
    other.fit_codes(binned, codes, classes, weights * scale)
    assert_same_tree(one.tree_, other.tree_)


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_codes_are_those_of_fit_and_predict(tree, n_classes):
    X, y, weights = hard_data(n_classes=n_classes)
    classes, codes = np.unique(y, return_inverse=True)
    boosted, plain = clone(tree), clone(tree).fit(X, y, weights)
    binned = boosted.prepare(X)
    predicted = boosted.fit_codes(binned, codes, classes, weights)
    assert predicted.dtype == np.uint8
    assert_same_tree(boosted.tree_, plain.tree_)
    for found in (boosted.predict_codes(binned), boosted.predict_codes(X), plain.predict_codes(csr_array(X))):
        np.testing.assert_array_equal(found, predicted)
    np.testing.assert_array_equal(classes[predicted], plain.predict(X))
    np.testing.assert_array_equal(boosted.predict_codes(bin_like(X[:50], binned)), predicted[:50])


def test_rows_without_weight_get_a_code_too():
    X, y, weights = hard_data()
    tree, (classes, codes) = HistogramTree(5), np.unique(y, return_inverse=True)
    weights[100:] = 0
    predicted = tree.fit_codes(tree.prepare(X), codes, classes, weights)
    np.testing.assert_array_equal(predicted, tree.predict_codes(X))


def test_more_classes_than_a_byte_holds():
    codes = np.arange(300).repeat(2)
    tree = HistogramTree(max_depth=2)
    predicted = tree.fit_codes(tree.prepare(codes.reshape(-1, 1)), codes, np.arange(300), codes + 1.0)
    assert predicted.dtype == tree.predict_codes(codes.reshape(-1, 1)).dtype == np.intp
    assert predicted.max() == 299
    np.testing.assert_array_equal(predicted, tree.predict(codes.reshape(-1, 1)))


@pytest.mark.slow
@pytest.mark.parametrize("tree", TREES)
def test_the_number_of_threads_does_not_change_a_bit(tree, processors):
    """On as many values as are shared among threads."""
    X, y, weights = hard_data(120_000)
    X, codes = np.hstack([X, X[::-1], np.roll(X, 7, axis=0)]), np.unique(y, return_inverse=True)[1]
    binned, found = tree.prepare(X), []
    for n_threads in (1, 3):
        processors(n_threads)
        grown = clone(tree)
        found.append((grown.fit_codes(binned, codes, np.arange(3), weights), *grown.tree_))
    for one_array, other_array in zip(*found, strict=True):
        np.testing.assert_array_equal(one_array, other_array)


@pytest.mark.parametrize("tree", TREES)
def test_the_order_of_the_rows_does_not_matter(tree):
    X, y, weights = hard_data()
    order = np.random.default_rng(1).permutation(len(y))
    assert_same_tree(clone(tree).fit(X, y, weights).tree_, clone(tree).fit(X[order], y[order], weights[order]).tree_)


def test_sparse_and_float32_features_give_the_tree_of_dense_float64_ones():
    X, y = load_digits(return_X_y=True)
    expected = HistogramTree().fit(X, y)
    for form in (csr_array, np.float32, np.asfortranarray):
        tree = HistogramTree().fit(form(X), y)
        assert_same_tree(tree.tree_, expected.tree_)
        np.testing.assert_array_equal(tree.predict(form(X)), expected.predict(X))


def test_a_feature_whose_absence_tells_the_class_is_enough():
    X, y = np.array([[1.0], [np.nan], [3.0], [np.nan], [2.0]]), np.array(["held", "lost", "held", "lost", "held"])
    stump = Stump().fit(X, y)
    np.testing.assert_array_equal(stump.predict(X), y)
    assert stump.predict([[1e9]]).tolist() == ["held"]


def test_missing_values_go_to_the_heavier_side_where_training_had_none():
    X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0, 1, 1])
    assert Stump().fit(X, y).predict([[np.nan]]).tolist() == [1]
    assert Stump().fit(X, y, [5, 1, 1]).predict([[np.nan]]).tolist() == [0]


def test_a_category_never_seen_is_treated_as_missing():
    X, y = np.array([[0.0], [5.0], [5.0], [9.0]]), np.array([0, 1, 1, 1])
    stump = Stump(categorical_features=[0]).fit(X, y)
    assert stump.predict([[0], [5], [9], [7], [200], [0.5], [np.nan]]).tolist() == [0, 1, 1, 1, 1, 1, 1]


def test_categories_split_in_one_cut_what_numbers_cannot():
    X = np.arange(8.0).repeat(5).reshape(-1, 1)
    y = (X[:, 0] % 2).astype(int)
    assert Stump(categorical_features=[True]).fit(X, y).score(X, y) == 1
    assert Stump().fit(X, y).score(X, y) < 0.8


def test_equal_splits_go_to_the_lowest_feature_and_bin():
    X = np.array([[0.0, 3.0, 0.0], [1.0, 2.0, 1.0], [2.0, 1.0, 2.0], [3.0, 0.0, 3.0]])
    stump = Stump().fit(X, [0, 1, 1, 0], [0.1, 0.1, 0.1, 0.1])
    assert stump.tree_.feature[0] == 0
    assert stump.tree_.threshold[0] == 0.5


def test_equal_classes_go_to_the_lowest():
    tree = Stump().fit([[1.0], [1.0], [1.0]], ["b", "c", "a"], [0.3, 0.1 + 0.2, 0.1])
    assert tree.predict([[1.0]]).tolist() == ["b"]
    np.testing.assert_allclose(tree.predict_proba([[1.0]]), [[1 / 7, 3 / 7, 3 / 7]])


def test_small_gains_are_left_alone_when_told():
    X, y = load_breast_cancer(return_X_y=True)
    sizes = [HistogramTree(8, min_gain=least).fit(X, y).tree_.feature.size for least in (0.0, 0.01, 0.3, 0.9)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[1] > sizes[2] == 3
    assert sizes[3] == 1


def test_leaves_have_the_least_number_of_samples():
    X, y, weights = hard_data()
    tree = HistogramTree(12, min_samples_leaf=20).fit(X, y, weights)
    leaves, sizes = np.unique(leaves_of_rows(tree.tree_, X), return_counts=True)
    assert leaves.size > 10
    assert sizes.min() >= 20


def test_weights_of_very_different_size_do_not_break_a_tree():
    X, y, _ = hard_data(n_classes=2)
    weights = 10.0 ** np.random.default_rng(0).uniform(-30, 0, len(y))
    tree = HistogramTree(10).fit(X, y, weights)
    assert np.average(tree.predict(X) == y, weights=weights) > 0.99
    np.testing.assert_allclose(tree.predict_proba(X).sum(axis=1), 1)


def test_a_fitted_tree_survives_pickling_and_is_small():
    X, y, weights = hard_data()
    tree = HistogramTree(6, categorical_features=[4]).fit(X, y, weights)
    copy = pickle.loads(pickle.dumps(tree))  # noqa: S301 - our own bytes
    np.testing.assert_array_equal(copy.predict_proba(X), tree.predict_proba(X))
    assert len(pickle.dumps(tree)) < 20_000


def test_data_frames_keep_their_names():
    frame = pytest.importorskip("pandas").DataFrame({"age": [30, 40, 50], "debt": [1.0, np.nan, 3.0]})
    tree = HistogramTree().fit(frame, ["no", "no", "yes"])
    assert tree.feature_names_in_.tolist() == ["age", "debt"]
    assert tree.predict(frame).tolist() == ["no", "no", "yes"]
    assert tree.predict_codes(frame).tolist() == [0, 0, 1]


SMALL, LABELS = np.array([[1.0], [2.0], [3.0]]), [0, 1, 1]
BAD = {
    "no depth": (ValueError, {"max_depth": 0}, {}, "max_depth must be at least 1; got 0"),
    "half a level": (TypeError, {"max_depth": 1.5}, {}, "max_depth must be a whole number of at least 1; got 1.5"),
    "empty leaves": (ValueError, {"min_samples_leaf": 0}, {}, "min_samples_leaf must be at least 1; got 0"),
    "empty nodes": (ValueError, {"min_samples_split": 0}, {}, "min_samples_split must be at least 1; got 0"),
    "negative gain": (ValueError, {"min_gain": -1}, {}, r"min_gain must lie in \[0, 1\).*got -1"),
    "text gain": (TypeError, {"min_gain": "big"}, {}, r"min_gain must be a number in \[0, 1\).*got 'big'"),
    "bins": (ValueError, {"max_bins": 1000}, {}, "max_bins must lie from 3 to 256.*got 1000"),
    "infinity": (ValueError, {}, {"X": [[1.0], [np.inf], [2.0]]}, "infinity"),
    "categories": (ValueError, {"categorical_features": [0]}, {"X": [[1.5], [2], [3]]}, "codes of categories"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_clear_sentence(case):
    error, settings_, data, text = BAD[case]
    with pytest.raises(error, match=text):
        HistogramTree(**settings_).fit(**({"X": SMALL, "y": LABELS} | data))


def test_bins_of_other_data_are_refused():
    stump = Stump().fit(SMALL, LABELS)
    with pytest.raises(ValueError, match=r"feature 0 has no edge at 1\.5\. Bin new data with bin_like"):
        stump.predict_codes(bin_features([[5.0], [6.0]]))


def test_codes_need_some_weight_and_not_too_many_classes():
    stump, codes = Stump(), np.array([0, 1, 1])
    binned = stump.prepare(SMALL)
    with pytest.raises(ValueError, match="weights must have at least one entry above zero"):
        stump.fit_codes(binned, codes, np.arange(2), np.zeros(3))
    with pytest.raises(ValueError, match="at most 65536 classes; got 70000"):
        stump.fit_codes(binned, codes, np.arange(70_000), np.ones(3))
