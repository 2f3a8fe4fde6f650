"""The stump of least mean-and-variance cost, found among all of them.

Shivaswamy and Jebara, NIPS 2011, Algorithm 3 (EBBoost): a round takes the stump, of all, that lowers their cost (3)
most when its vote is the best one. That cost is not a sum over samples, so no weights make an ordinary stump do it; but
one scan over the bins of each feature with two running sums does (see ``_bernstein_kernels``).
"""

from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import AnyArray, ByteArray, FloatArray
from counterpoise.learners import _bernstein_kernels
from counterpoise.learners._growing import of_sane_size
from counterpoise.learners._threads import Workers
from counterpoise.learners._tree import Nodes, Tree
from counterpoise.learners.binning import BinnedFeatures
from counterpoise.learners.trees import Stump

_BLOCK = 32  # features that are searched one after the other; fixed, so that threads do not change how ties end
_TWO_CLASSES = 2
_FEW = 2_000_000  # additions that take about as long as threads need to be of use


class Split(NamedTuple):
    """A stump as the search finds it."""

    feature: int  # -1 where the best is to say the same class everywhere
    place: int  # of the split among the bins, or the turns of the categories
    missing_left: int
    is_positive_left: bool  # or everywhere


class BernsteinStumps:
    """All stumps on some binned features, ready to be searched for the best under any sample weights.

    Of stumps of equal cost the one of the lowest feature is taken, then that of the lowest bin with missing values on
    the right. A constant is taken only where it beats every stump. Categories are split where some linear function of
    weights and squared weights would have its best split: of all subsets that is the best at penalty 0 and 1, and a
    heuristic at others, where the cost is linear in neither.

    Parameters
    ----------
    binned : BinnedFeatures
        The features.
    codes : int array of shape (n_samples,)
        0 or 1: the class of each sample.
    start : float array of shape (n_samples,)
        The samples' own weights q, above zero, that sum to 1: ``w^2 / q`` stands where the paper has ``n w^2``.
    penalty : float >= 0
        Weight of the variance beside the mean.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.learners import Stump
    >>> from counterpoise.learners.bernstein_stump import BernsteinStumps
    >>> binned = Stump().prepare([[1.0], [2.0], [3.0], [4.0]])
    >>> stumps = BernsteinStumps(binned, np.array([0, 0, 1, 1]), np.full(4, 0.25), penalty=0.5)
    >>> model = Stump()
    >>> stumps.fit(model, np.full(4, 0.25), np.array(["no", "yes"]))
    array([0, 0, 1, 1], dtype=uint8)
    >>> model.predict([[2.4], [2.6]])
    array(['no', 'yes'], dtype='<U3')
    """

    def __init__(self, binned: BinnedFeatures, codes: AnyArray, start: FloatArray, penalty: float) -> None:
        self.binned, self.penalty = binned, penalty
        self.codes = np.ascontiguousarray(codes, dtype=np.int64)
        self.signs, self.rates = np.where(self.codes, 1.0, -1.0), 1.0 / start
        # A feature with one bin and no missing values splits nothing.
        self.features = np.flatnonzero((binned.n_bins > 1) | binned.has_missing)
        self.has_missing, self.is_categorical = binned.has_missing.view(np.uint8), binned.is_categorical.view(np.uint8)
        self.masses = np.empty((len(binned), 2))

    def fit(self, stump: Stump, weights: FloatArray, classes: AnyArray) -> ByteArray:
        """Make ``stump`` the best one under some weights, and return the codes that it predicts for the samples.

        A side says the class that lowers the cost, which need not be the heavier one there; ``predict_proba`` of the
        stump gives the shares of the weight.
        """
        stump.tree_, predicted = self._grow(np.ascontiguousarray(weights))
        stump._learned(classes, self.binned.n_features, self.binned.feature_names)  # noqa: SLF001 - one of ours
        return predicted

    def _grow(self, weights: FloatArray) -> tuple[Tree, ByteArray]:
        """Return the best stump as a tree, and what it predicts."""
        split = self._search(weights)
        if split.feature < 0:
            return self._constant(weights, is_positive=split.is_positive_left)
        table, sides = self._fill(split, weights)
        has_left, has_right = bool(sides[0].any()), bool(sides[1].any())
        if not (has_left and has_right):  # the other side has samples of zero weight only
            return self._constant(weights, is_positive=split.is_positive_left == has_left)
        nodes = Nodes()
        nodes.split(nodes.add(), self.binned, split.feature, split.place, table)
        tree = nodes.tree(np.concatenate([np.zeros((1, 2)), sides]))
        tree.labels[1:] = split.is_positive_left, not split.is_positive_left
        return tree, (table == split.is_positive_left).view(np.uint8)[self.binned.bins[split.feature]]

    def _constant(self, weights: FloatArray, *, is_positive: bool) -> tuple[Tree, ByteArray]:
        nodes = Nodes()
        nodes.add()
        positive = float(weights @ self.codes)
        tree = nodes.tree(np.array([[float(weights.sum()) - positive, positive]]))
        tree.labels[0] = is_positive
        return tree, np.full(len(self.binned), is_positive, dtype=np.uint8)

    def _search(self, weights: FloatArray) -> Split:
        """Return the best stump; threads share blocks of features where there is much to add."""
        sums = _bernstein_kernels.fill_masses(weights, self.signs, self.rates, self.penalty, self.masses)
        n_blocks = -(-self.features.size // _BLOCK)
        roots, choices = np.zeros((n_blocks, 1)), np.zeros((n_blocks, 3), dtype=np.int64)
        features = (self.binned.bins, self.features, self.binned.n_bins, self.has_missing, self.is_categorical)

        def search(first: int, last: int) -> None:
            _bernstein_kernels.search_stumps(first, last, _BLOCK, *features, self.masses, sums, roots, choices)

        work = weights.size * self.features.size
        if work < _FEW:
            search(0, n_blocks)
        else:
            with Workers(work) as workers:
                workers.map_ranges(search, n_blocks)
        return _best(roots[:, 0].tolist(), choices.tolist(), sums)

    def _fill(self, split: Split, weights: FloatArray) -> tuple[ByteArray, FloatArray]:
        """Return which bins go left, and the weights of the classes on both sides."""
        binned, feature = self.binned, split.feature
        table, sides = np.zeros(256, dtype=np.uint8), np.zeros((2, 2))
        kind = (int(binned.n_bins[feature]), int(binned.is_categorical[feature]), split.place, split.missing_left)
        _bernstein_kernels.fill_split(binned.bins[feature], weights, self.codes, self.masses, *kind, table, sides)
        return table, sides


def _best(roots: list[float], choices: list[list[int]], sums: _bernstein_kernels.Sums) -> Split:
    """Return the first of the best stumps of all blocks, or a constant where that is better."""
    best, split = 0.0, Split(-1, 0, 0, is_positive_left=sums[2] > 0)
    for root, choice in zip(roots, choices, strict=True):
        if root * root > best * best * _bernstein_kernels.TIE:
            best, split = root, Split(choice[0], choice[1], choice[2], root < 0)
    constant = _bernstein_kernels.constant_root(sums, best)
    return Split(-1, 0, 0, is_positive_left=constant > 0) if constant else split


class LeastErrorStump(Stump):
    """A decision tree with a single split, the one of least weighted error, for two classes.

    ``Stump`` splits where the impurity falls most, which need not be where the error is least. The analysis of
    boosting assumes the least error, and the papers' stumps have it.

    Parameters
    ----------
    max_bins, min_samples_leaf, categorical_features
        As for ``Stump``; ``min_samples_leaf`` must be 1.

    Attributes
    ----------
    classes_, tree_, n_features_in_, feature_names_in_
        As for ``HistogramTree``.

    Examples
    --------
    >>> from counterpoise.learners import LeastErrorStump
    >>> LeastErrorStump().fit([[1.0], [2.0], [5.0]], ["low", "low", "high"]).predict([[3.0], [4.0]])
    array(['low', 'high'], dtype='<U4')
    """

    def fit_codes(self, prepared: BinnedFeatures, codes: AnyArray, classes: AnyArray, weights: FloatArray) -> AnyArray:
        """Fit the stump on features that ``prepare`` returned, and return what it predicts for them."""
        if len(classes) > _TWO_CLASSES:
            raise ValueError(
                f"Only binary classification is supported: LeastErrorStump tells two classes apart; got {len(classes)} "
                "classes. Use Stump."
            )
        if self.min_samples_leaf != 1:
            raise ValueError(
                f"min_samples_leaf must be 1 for LeastErrorStump; got {self.min_samples_leaf!r}. Use Stump."
            )
        own, sane = np.full(len(prepared), 1.0 / len(prepared)), of_sane_size(weights)  # own: of no matter at penalty 0
        return BernsteinStumps(prepared, codes, own, penalty=0.0).fit(self, sane / sane.sum(), classes)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
