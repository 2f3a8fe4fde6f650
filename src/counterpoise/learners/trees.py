"""Decision trees and stumps from histograms: the learners that boosting calls in every round.

Boosting bins the features once and fits many trees on them::

    binned = tree.prepare(X)
    for each round:
        predicted = clone(tree).fit_codes(binned, codes, classes, weights)
"""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from counterpoise._base.checks import check_count, check_number
from counterpoise._base.types import AnyArray, ArrayLike, FloatArray
from counterpoise.learners._growing import GrowthLimits, grow
from counterpoise.learners._tree import Tree, check_tree, leaves_of_bins, leaves_of_rows
from counterpoise.learners.binning import BinnedFeatures, as_matrix, bin_features
from counterpoise.learners.resampling import CodeLearner

_MOST_CLASSES = 1 << 16  # codes are kept in two bytes
_NO_LIMIT = 1 << 61  # levels or rows: more than there can be, and twice as many fit into 64 bits


class HistogramTree(CodeLearner):
    """A decision tree on binned features, for weighted samples, dense or sparse; NaN counts as missing.

    Each split is the one of the largest decrease in weighted Gini impurity over all features and bins; of equal
    ones that of the lowest feature, then of the lowest bin. Missing values go to the side where the gain is larger, or
    where a node has none to the heavier side. Categories go left by subset: the best subset of all for two classes, one
    category against the others for more.

    Parameters
    ----------
    max_depth : int or None, default=6
        The most splits from the root to a leaf, at least 1; None sets no limit.
    max_bins : int, default=256
        The number of bins of a feature, from 3 to 256, one of them for missing values.
    min_samples_leaf : int, default=1
        The least number of samples of positive weight in a leaf. A value above 1 doubles the time of a fit.
    min_samples_split : int, default=2
        The least number of samples of positive weight in a node that may be split.
    min_gain : float, default=0.0
        A split must decrease the impurity, averaged over the weight of all samples, by more than this.
    categorical_features : array of int or of bool, default=None
        The features whose values are codes of categories, whole numbers from 0 to 254: their indices, or a mask.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    tree_ : Tree
        The nodes as flat arrays.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : array of shape (n_features,)
        The names of the features, where ``X`` had them.

    Notes
    -----
    Samples of zero weight and the scale of the weights do not matter. A split that gains nothing is never made, so
    the four corners of an exact exclusive-or stay one leaf. While it grows, a tree holds 8 bytes for each class and
    bin of a feature, for as many nodes as it has levels or the binary logarithm of the rows, and 40 bytes for each row.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from counterpoise.learners import HistogramTree
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> tree = HistogramTree(max_depth=3).fit(X, y)
    >>> round(tree.score(X, y), 2)
    0.98
    """

    _border: ClassVar[dict[str, Any]] = {"accept_sparse": "csr", "ensure_all_finite": "allow-nan"}

    def __init__(
        self,
        max_depth: int | None = 6,
        *,
        max_bins: int = 256,
        min_samples_leaf: int = 1,
        min_samples_split: int = 2,
        min_gain: float = 0.0,
        categorical_features: ArrayLike | None = None,
    ) -> None:
        self.max_depth = max_depth
        self.max_bins = max_bins
        self.min_samples_leaf = min_samples_leaf
        self.min_samples_split = min_samples_split
        self.min_gain = min_gain
        self.categorical_features = categorical_features

    def _prepare(self, X: Any) -> BinnedFeatures:
        binned = bin_features(X, max_bins=self.max_bins, categorical_features=self.categorical_features)
        return replace(binned, feature_names=getattr(self, "feature_names_in_", None))

    def fit_codes(self, prepared: BinnedFeatures, codes: AnyArray, classes: AnyArray, weights: FloatArray) -> AnyArray:
        """Fit the tree on features that ``prepare`` returned, and return what it predicts for them.

        The arrays are trusted: this is what boosting calls in each round.

        Parameters
        ----------
        prepared : BinnedFeatures
            The features, from ``prepare``.
        codes : int array of shape (n_samples,)
            The place of each label in ``classes``.
        classes : array of shape (n_classes,)
            The labels.
        weights : float array of shape (n_samples,)
            The weights, of any scale, none negative and not all zero.

        Returns
        -------
        array of shape (n_samples,)
            The predicted codes, as bytes if there are at most 256 classes.

        Examples
        --------
        >>> import numpy as np
        >>> from counterpoise.learners import Stump
        >>> stump = Stump()
        >>> binned = stump.prepare([[1.0], [2.0], [3.0], [4.0]])
        >>> stump.fit_codes(binned, np.array([0, 0, 1, 0]), np.array(["no", "yes"]), np.array([1.0, 1.0, 3.0, 1.0]))
        array([0, 0, 1, 1], dtype=uint8)
        """
        if len(classes) > _MOST_CLASSES:
            raise ValueError(f"A tree holds at most {_MOST_CLASSES} classes; got {len(classes)}. Is y a real number?")
        self.tree_: Tree
        self.tree_, predicted = grow(prepared, codes, len(classes), weights, self.growth_limits())
        self.store_labels(classes, prepared.n_features, prepared.feature_names)
        return self._as_codes(predicted)

    def growth_limits(self) -> GrowthLimits:
        """Return when to stop, after a check of the parameters."""
        depth = _NO_LIMIT if self.max_depth is None else check_count(self.max_depth, "max_depth")
        leaf, split = (check_count(getattr(self, name), name) for name in ("min_samples_leaf", "min_samples_split"))
        gain = check_number(self.min_gain, "min_gain", "[0, 1)", "a decrease of the Gini impurity")
        leaf = min(leaf, _NO_LIMIT)
        return GrowthLimits(min(depth, _NO_LIMIT), leaf, max(min(split, _NO_LIMIT), 2 * leaf), gain)

    def predict_codes(self, X: Any) -> AnyArray:
        """Return the place in ``classes_`` of each predicted label.

        Parameters
        ----------
        X : BinnedFeatures, array, data frame or sparse matrix of shape (n_samples, n_features)
            What ``prepare`` or ``bin_like`` returned, or the features as they are.

        Returns
        -------
        array of shape (n_samples,)
            The codes, as bytes if there are at most 256 classes.
        """
        if not hasattr(self, "tree_"):  # which costs a round of boosting less than to ask scikit-learn
            check_is_fitted(self)
        if isinstance(X, BinnedFeatures):
            leaves = leaves_of_bins(self.tree_, X)
        else:
            leaves = leaves_of_rows(self.tree_, as_matrix(X, self.n_features_in_))
        return self._as_codes(self.tree_.labels[leaves])

    def predict(self, X: Any) -> AnyArray:
        """Return the label of each sample: the heaviest class of its leaf, the first of equals."""
        leaves = self._leaves(X)
        return np.asarray(self.classes_[self.tree_.labels[leaves]])

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the classes' shares, of shape (n_samples, n_classes), in the weight of each sample's leaf."""
        leaves = self._leaves(X)
        return np.asarray(self.tree_.shares[leaves])

    def _leaves(self, X: Any) -> AnyArray:
        check_is_fitted(self)
        return leaves_of_rows(self.tree_, validate_data(self, X, reset=False, **self._border))

    def check_loaded(self) -> None:
        """Check the tree that came from a file."""
        if hasattr(self, "tree_"):
            check_tree(self.tree_, check_count(self.n_features_in_, "n_features_in_"), len(self.classes_))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags


class Stump(HistogramTree):
    """A decision tree with a single split.

    Parameters
    ----------
    max_bins : int, default=256
        The number of bins of a feature, from 3 to 256, one of them for missing values.
    min_samples_leaf : int, default=1
        The least number of samples of positive weight on each side.
    categorical_features : array of int or of bool, default=None
        The features whose values are codes of categories, whole numbers from 0 to 254: their indices, or a mask.

    Attributes
    ----------
    classes_, tree_, n_features_in_, feature_names_in_
        As for ``HistogramTree``.

    Examples
    --------
    >>> from counterpoise.learners import Stump
    >>> Stump().fit([[1.0], [2.0], [5.0]], ["low", "low", "high"]).predict([[3.0], [4.0]])
    array(['low', 'high'], dtype='<U4')
    """

    def __init__(
        self, *, max_bins: int = 256, min_samples_leaf: int = 1, categorical_features: ArrayLike | None = None
    ) -> None:
        super().__init__(
            max_depth=1, max_bins=max_bins, min_samples_leaf=min_samples_leaf, categorical_features=categorical_features
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # one split cannot tell three classes apart
        return tags
