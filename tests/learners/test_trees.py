"""Trees and stumps: against brute force and plain recursion in exact arithmetic, and against scikit-learn."""

import pickle
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from counterpoise.learners import HistogramTree, Stump, _growing, _threads, bin_features
from counterpoise.learners._tree import leaves_of_rows
from counterpoise.learners.binning import bin_like

MISSING = "missing"


@parametrize_with_checks([HistogramTree(), Stump()])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@st.composite
def tables(draw):
    """Draw small data with ties, missing values, categories and whole weights: X, codes, weights, categorical mask."""
    seed, n_samples, n_features = draw(st.integers(0, 10**6)), draw(st.integers(2, 25)), draw(st.integers(1, 4))
    rng = np.random.default_rng(seed)
    X = rng.integers(0, draw(st.integers(2, 5)), (n_samples, n_features)).astype(float)
    X[rng.random(X.shape) < draw(st.sampled_from([0, 0.2]))] = np.nan
    is_categorical = rng.random(n_features) < draw(st.sampled_from([0, 0.5, 1]))
    codes = rng.integers(0, draw(st.integers(2, 4)), n_samples)
    return X, codes, rng.integers(1, 6, n_samples), is_categorical


def sums(codes, weights, n_classes):
    return [Fraction(int(weights[codes == k].sum())) for k in range(n_classes)]


def impurity(classes):
    total = sum(classes)
    return total - sum(weight**2 for weight in classes) / total if total else Fraction(0)


def gain(side, codes, weights, n_classes):
    """Return the exact decrease of the weighted impurity, by its definition."""
    parts = [sums(codes[rows], weights[rows], n_classes) for rows in (side, ~side)]
    return impurity(sums(codes, weights, n_classes)) - sum(impurity(part) for part in parts)


def numeric_sides(column, edges):
    """Yield (missing_left, side): every threshold, the missing values on either side of it."""
    missing = np.isnan(column)
    for missing_left in (False, True) if missing.any() else (False,):
        for edge in [*edges, np.inf]:
            yield missing_left, (column <= edge) | (missing & missing_left)


def subsets(column, n_classes):
    """Yield every set of categories that may go left, the missing one among them."""
    values = [*np.unique(column[~np.isnan(column)]), *([MISSING] if np.isnan(column).any() else [])]
    if n_classes == 2:
        for size in range(1, len(values)):
            yield from combinations(values, size)
    else:
        for value in values:
            yield (value,)
            if value != MISSING and MISSING in values:
                yield (value, MISSING)


def members(column, subset):
    return np.isin(column, [value for value in subset if value != MISSING]) | (np.isnan(column) & (MISSING in subset))


def midpoints(column):
    values = np.unique(column[~np.isnan(column)])
    return (values[1:] + values[:-1]) / 2


@settings(max_examples=300)
@given(table=tables())
def test_a_stump_has_the_best_gain_of_all_splits(table):
    X, codes, weights, is_categorical = table
    n_classes = len(np.unique(codes))
    sides = []
    for column, by_category in zip(X.T, is_categorical, strict=True):
        if by_category:
            sides += [members(column, subset) for subset in subsets(column, n_classes)]
        else:
            sides += [side for _, side in numeric_sides(column, midpoints(column))]
    codes = np.unique(codes, return_inverse=True)[1]
    best = max([Fraction(0)] + [gain(side, codes, weights, n_classes) for side in sides])
    stump = Stump(categorical_features=is_categorical).fit(X, codes, weights)
    found = gain(leaves_of_rows(stump.tree_, X) == 1, codes, weights, n_classes)
    assert found == best
    assert (stump.tree_.feature.size == 3) == (best > 0)


class Reference:
    """A tree grown by plain recursion on lists of rows, with exact sums."""

    def __init__(self, X, codes, weights, is_categorical, max_depth, min_samples_leaf=1, n_classes=2):
        self.X, self.codes, self.weights, self.is_categorical = X, codes, weights, is_categorical
        self.least, self.n_classes = min_samples_leaf, n_classes
        self.edges = [midpoints(column) for column in X.T]
        self.root = self.grow(np.arange(len(X)), max_depth)

    def grow(self, rows, depth):
        classes = sums(self.codes[rows], self.weights[rows], self.n_classes)
        best, split = Fraction(0), None
        for feature in range(self.X.shape[1]) if depth else ():
            for goes_left in self.candidates(rows, feature):
                side = goes_left(self.X[rows, feature])
                found = gain(side, self.codes[rows], self.weights[rows], self.n_classes)
                if found > best and min(side.sum(), (~side).sum()) >= self.least:
                    best, split = found, (feature, goes_left, side)
        if split is None:
            return classes
        feature, goes_left, side = split
        return feature, goes_left, self.grow(rows[side], depth - 1), self.grow(rows[~side], depth - 1)

    def candidates(self, rows, feature):
        """Return functions of values in the order in which ties are broken."""
        column = self.X[rows, feature]
        if self.is_categorical[feature]:
            return [self.by_category(rows, column, chosen, left) for left, chosen in self.category_sets(rows, column)]
        pairs = dict.fromkeys((left, edge) for left in self.ways(column) for edge in [*self.edges[feature], np.inf])
        return [self.by_threshold(rows, column, edge, left) for left, edge in pairs]

    def ways(self, column):
        return (False, True) if np.isnan(column).any() else (None,)

    def category_sets(self, rows, column):
        values = np.unique(column[~np.isnan(column)])
        if self.n_classes == 2:
            shares = [sums(self.codes[rows][column == v], self.weights[rows][column == v], 2) for v in values]
            order = sorted(range(len(values)), key=lambda v: shares[v][1] / sum(shares[v]))
            chosen = [values[order[: size + 1]] for size in range(len(values))]
        else:
            chosen = [[], *([value] for value in values)]
        return [(left, one) for left in self.ways(column) for one in chosen]

    def by_threshold(self, rows, column, edge, missing_left):
        left = self.heavier(rows, column <= edge) if missing_left is None else missing_left
        return lambda values: np.where(np.isnan(values), left, values <= edge)

    def by_category(self, rows, column, chosen, missing_left):
        left = self.heavier(rows, np.isin(column, chosen)) if missing_left is None else missing_left
        held = column[~np.isnan(column)]
        return lambda values: np.where(np.isin(values, held), np.isin(values, chosen), left)

    def heavier(self, rows, side):
        return 2 * self.weights[rows[side]].sum() >= self.weights[rows].sum()

    def shares(self, row):
        node = self.root
        while isinstance(node, tuple):
            feature, goes_left, left, right = node
            node = left if goes_left(row[[feature]])[0] else right
        return [float(weight / sum(node)) for weight in node]


@settings(max_examples=150)
@given(table=tables(), max_depth=st.integers(2, 5), min_samples_leaf=st.sampled_from([1, 1, 2, 4]))
def test_a_tree_is_that_of_plain_recursion(table, max_depth, min_samples_leaf):
    X, codes, weights, is_categorical = table
    classes, codes = np.unique(codes, return_inverse=True)
    tree = HistogramTree(max_depth, min_samples_leaf=min_samples_leaf, categorical_features=is_categorical)
    tree.fit(X, codes, weights)
    plain = Reference(X, codes, weights, is_categorical, max_depth, min_samples_leaf, classes.size)
    new = np.random.default_rng(0).choice([0.0, 1, 2, 3, 4, 5, 6, np.nan], (30, X.shape[1]))
    for rows in (X, new):
        expected = np.array([plain.shares(row) for row in rows])
        np.testing.assert_allclose(tree.predict_proba(rows), expected, atol=1e-12)
        np.testing.assert_array_equal(
            tree.predict(rows), (expected + 1e-9 >= expected.max(axis=1, keepdims=True)).argmax(axis=1)
        )


@pytest.mark.parametrize("n_classes", [2, 5])
def test_splits_are_those_of_scikit_learn_where_values_are_few(n_classes):
    rng = np.random.default_rng(n_classes)
    X = rng.integers(0, 12, (2_000, 6)).astype(float)
    y = (X[:, 0] + X[:, 1] * X[:, 2] + rng.integers(0, 30, 2_000)).astype(int) % n_classes
    weights = rng.exponential(size=2_000)
    ours = HistogramTree(max_depth=4).fit(X, y, weights)
    theirs = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y, weights)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-12)
    mean_impurity = np.average(1 - (ours.predict_proba(X) ** 2).sum(axis=1), weights=weights)
    assert mean_impurity == pytest.approx(np.average(1 - (theirs.predict_proba(X) ** 2).sum(axis=1), weights=weights))


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
            np.testing.assert_allclose(one, other, atol=1e-12)
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


@pytest.mark.parametrize("tree", TREES)
def test_the_number_of_threads_does_not_change_a_bit(tree, monkeypatch):
    X, y, weights = hard_data(20_000)
    monkeypatch.setattr(_growing, "_SMALL", 0)
    fitted = []
    for n_threads in (1, 2, 5):
        monkeypatch.setattr(_threads, "available_cpus", lambda n=n_threads: n)
        fitted.append(clone(tree).fit(X, y, weights))
    for other in fitted[1:]:
        for one_array, other_array in zip(fitted[0].tree_, other.tree_, strict=True):
            np.testing.assert_array_equal(one_array, other_array)
        np.testing.assert_array_equal(fitted[0].predict(X), other.predict(X))


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


def test_trees_deeper_than_the_room_for_histograms_grow_it(monkeypatch):
    X, y, weights = hard_data()
    monkeypatch.setattr(_growing, "_SMALL", 0)
    expected = HistogramTree(8).fit(X, y, weights)
    monkeypatch.setattr(_growing, "_FIRST_SLOTS", 0)
    assert_same_tree(HistogramTree(8).fit(X, y, weights).tree_, expected.tree_)


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
    "negative gain": (ValueError, {"min_gain": -1}, {}, r"min_gain must be a number in \[0, 1\).*got -1"),
    "text gain": (ValueError, {"min_gain": "big"}, {}, r"min_gain must be a number in \[0, 1\).*got 'big'"),
    "bins": (ValueError, {"max_bins": 1000}, {}, "max_bins must lie from 3 to 256.*got 1000"),
    "infinity": (ValueError, {}, {"X": [[1.0], [np.inf], [2.0]]}, "infinity"),
    "negative weight": (ValueError, {}, {"sample_weight": [1, 1, -2]}, "must not be negative; got a weight of -2.0"),
    "no weight": (ValueError, {}, {"sample_weight": [0, 0, 0]}, "must have at least one weight above zero"),
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
