"""Splits of trees and stumps: against brute force and plain recursion in exact arithmetic, and scikit-learn."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

from counterpoise.learners import HistogramTree, Stump
from counterpoise.learners._tree import leaves_of_rows

MISSING = "missing"


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


@settings(max_examples=120)
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


@settings(max_examples=60)
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
