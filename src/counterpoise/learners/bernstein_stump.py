"""The stump of least mean-and-variance cost, by a search over all stumps.

Shivaswamy and Jebara, NIPS 2011, Algorithm 3 (EBBoost): a round takes the stump, of all, that lowers their cost (3)
most when its vote is the best one. That cost is not a sum over samples, so no weights make an ordinary stump do it; but
one scan over the bins of each feature with two running sums does.

Compiled search for the stump of least mean-and-variance cost.

A sample of weight ``w`` and start weight ``q`` has two masses, ``w`` and ``w^2 / q``, positive in class 1 and negative
in class 0. With ``W`` and ``S`` the sums of the masses' sizes, a stump that predicts class 1 on the right has two
edges, right minus wrong::

    E = sum of the first mass on the right - on the left,    F = the same of the second

The reverse stump has ``-E`` and ``-F``. With ``A = (1-p) ((W + E)/2)^2 + p (S + F)/2`` for what is right and ``B``, the
same of ``-E`` and ``-F``, for what is wrong, the sum ``A + B + (1-p) (W^2 - E^2)/2`` is the same for all stumps: the
cost before the step. The cost after the best step is ``2 sqrt(A B) + (1-p) (W^2 - E^2)/2``, so its decrease, the gain,
is ``(sqrt A - sqrt B)^2``, which two running sums over the bins give.

Neither is below zero for any penalty ``p >= 0``: over any samples the square of the sum of ``w`` is at most the sum of
``w^2 / q``, because the start weights sum to 1 at the most. So they are computed as ``W^2 + p (S - W^2)``, with the
sums over the samples in question.
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numba import float64, int64, types, uint8, uint64, void

from counterpoise._base.compiled import helper, kernel
from counterpoise._base.types import AnyArray, ByteArray, FloatArray, IntArray
from counterpoise.learners._growing import of_sane_size
from counterpoise.learners._split_kernels import stable_order
from counterpoise.learners._tree import Tree, make_tree
from counterpoise.learners.binning import BinnedFeatures, Workers
from counterpoise.learners.trees import Stump

TIE = 1.0 + 1e-12  # gains closer than this factor are equal: rounding must not choose between stumps
_ROUNDING = 1e-14  # part of the whole below which a sum of wrong masses is left over from subtraction
_MISSING_BIN = 255
_FOUR = 4

_bins = types.Array(uint8, 2, "C", readonly=True)  # may come from a file mapped into memory
_column = types.Array(uint8, 1, "C", readonly=True)
_readonly_ints = types.Array(int64, 1, "C", readonly=True)
_readonly_flags = types.Array(uint8, 1, "C", readonly=True)
_readonly_floats = types.Array(float64, 1, "C", readonly=True)
_bytes = uint8[::1]
_floats2 = float64[:, ::1]
_ints2 = int64[:, ::1]
_sums = types.UniTuple(float64, 5)
Sums: TypeAlias = tuple[float, float, float, float, float]  # W, S, signed sums of both masses, penalty


@kernel(_sums(_readonly_floats, _readonly_floats, _readonly_floats, float64, _floats2))
def fill_masses(weights: FloatArray, signs: FloatArray, rates: FloatArray, penalty: float, masses: FloatArray) -> Sums:
    """Set both masses of each sample, and return their sums; ``rates`` are 1 over the start weights."""
    total, squares, signed, signed_squares = 0.0, 0.0, 0.0, 0.0
    for i in range(weights.size):
        weight = weights[i]
        square = weight * weight * rates[i]
        masses[i, 0], masses[i, 1] = signs[i] * weight, signs[i] * square
        total += weight
        squares += square
        signed += masses[i, 0]
        signed_squares += masses[i, 1]
    return total, squares, signed, signed_squares, penalty


@helper(error_model="numpy")
def _wrong(edge: float, spread: float, sums: Sums) -> float:
    """Return B, what is wrong; A is that of the negative edges."""
    total, squares, _, _, penalty = sums
    weight, square = 0.5 * (total - edge), 0.5 * (squares - spread)
    weight = 0.0 if weight <= _ROUNDING * total else weight
    square = 0.0 if square <= _ROUNDING * squares else square
    return weight * weight + penalty * max(square - weight * weight, 0.0)


@helper(error_model="numpy")
def _root_of_gain(edge: float, spread: float, sums: Sums, to_beat: float) -> float:
    """Return ``sqrt A - sqrt B``, or 0 where its square is not above ``to_beat``.

    With ``N = A - B`` and ``M = A + B`` the gain is above t if ``N^2 > t (2 M - t)``: no root is drawn for the many
    that are not. That test is lenient by rounding.
    """
    total, squares, _, _, penalty = sums
    difference = (1.0 - penalty) * total * edge + penalty * spread
    both = 0.5 * (1.0 - penalty) * (total * total + edge * edge) + penalty * squares
    if difference * difference + _ROUNDING * both * both <= to_beat * (2.0 * both - to_beat):
        return 0.0
    roots = np.sqrt(_wrong(-edge, -spread, sums)) + np.sqrt(_wrong(edge, spread, sums))
    root = difference / roots if roots > 0.0 else 0.0
    return root if root * root > to_beat else 0.0


@helper
def _note(root: float, feature: int, place: int, missing_left: int, roots: FloatArray, choice: IntArray) -> float:
    """Keep a stump as the best so far, and return what a gain must beat from here on."""
    roots[0] = root
    choice[0], choice[1], choice[2] = feature, place, missing_left
    return root * root * TIE


@helper
def _scan_numeric(
    hist: FloatArray, n_cuts: int, feature: int, missing_left: int, sums: Sums, roots: FloatArray, choice: IntArray
) -> None:
    """Try to send the bins up to each place left."""
    left, left_squares = 0.0, 0.0
    if missing_left:
        left, left_squares = hist[_MISSING_BIN, 0], hist[_MISSING_BIN, 1]
    to_beat = roots[0] * roots[0] * TIE
    for b in range(n_cuts):
        left += hist[b, 0]
        left_squares += hist[b, 1]
        root = _root_of_gain(sums[2] - 2.0 * left, sums[3] - 2.0 * left_squares, sums, to_beat)
        if root != 0.0:
            to_beat = _note(root, feature, b, missing_left, roots, choice)


@helper
def _turning_order(hist: FloatArray, n_bins: int) -> IntArray:
    """Return the categories that matter, missing values as one of them, in the order in which they change sides.

    A direction ``(a, b)`` sends the categories left whose masses have ``a d + b e < 0``: the best split where the cost
    is linear in both edges. As the direction makes half a turn each category changes sides once, in this order.
    """
    filled_bins, angles, n_filled = np.empty(256, dtype=np.int64), np.empty(256), 0
    for b in range(256):
        first, second = hist[b, 0], hist[b, 1]
        if (b >= n_bins and b != _MISSING_BIN) or (first == 0.0 and second == 0.0):
            continue
        angle = np.arctan2(second, first)
        filled_bins[n_filled], angles[n_filled] = b, angle + np.pi if _points_down(first, second) else angle
        n_filled += 1
    order: IntArray = stable_order(angles, n_filled)
    for place in range(n_filled):
        order[place] = filled_bins[order[place]]
    return order


@helper
def _points_down(first: float, second: float) -> bool:
    return second < 0.0 or (second == 0.0 and first < 0.0)


@helper
def _starts_left(hist: FloatArray, category: int) -> bool:
    return not _points_down(hist[category, 0], hist[category, 1])


@helper
def _scan_categories(
    hist: FloatArray, n_bins: int, feature: int, sums: Sums, roots: FloatArray, choice: IntArray
) -> None:
    """Try the splits that are best for some linear cost: as many as there are categories."""
    order = _turning_order(hist, n_bins)
    left, left_squares, n_left = 0.0, 0.0, 0
    for category in order:
        if _starts_left(hist, category):
            left += hist[category, 0]
            left_squares += hist[category, 1]
            n_left += 1
    to_beat = roots[0] * roots[0] * TIE
    for place in range(order.size):
        if 0 < n_left < order.size:
            root = _root_of_gain(sums[2] - 2.0 * left, sums[3] - 2.0 * left_squares, sums, to_beat)
            if root != 0.0:
                to_beat = _note(root, feature, place, 0, roots, choice)
        category = order[place]
        moves = -1 if _starts_left(hist, category) else 1
        left += moves * hist[category, 0]
        left_squares += moves * hist[category, 1]
        n_left += moves


@helper
def _add_four(columns, masses, hists):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Add all rows to the histograms of four features, at once: an addition need not wait for the one before."""
    c0, c1, c2, c3 = columns
    h0, h1, h2, h3 = hists[0], hists[1], hists[2], hists[3]
    for b in range(256):
        for mass in range(2):
            h0[b, mass], h1[b, mass], h2[b, mass], h3[b, mass] = 0.0, 0.0, 0.0, 0.0
    for i in range(masses.shape[0]):
        weight, square = masses[i, 0], masses[i, 1]
        b0, b1, b2, b3 = uint64(c0[i]), uint64(c1[i]), uint64(c2[i]), uint64(c3[i])
        h0[b0, 0] += weight
        h0[b0, 1] += square
        h1[b1, 0] += weight
        h1[b1, 1] += square
        h2[b2, 0] += weight
        h2[b2, 1] += square
        h3[b3, 0] += weight
        h3[b3, 1] += square


@kernel(
    void(
        *(int64, int64, int64, _bins, _readonly_ints, _readonly_ints, _readonly_flags, _readonly_flags),
        *(_floats2, _sums, _floats2, _ints2),
    )
)
def search_stumps(
    first: int,
    last: int,
    size: int,
    bins: ByteArray,
    features: IntArray,
    n_bins: IntArray,
    has_missing: ByteArray,
    is_categorical: ByteArray,
    masses: FloatArray,
    sums: Sums,
    roots: FloatArray,
    choices: IntArray,
) -> None:
    """Find the best stump of each block of ``size`` features, a multiple of four, from block ``first`` to ``last``.

    A row of ``roots``, zero on entry, gets ``sqrt A - sqrt B``, negative where class 1 is on the left; a row of
    ``choices`` the feature, the place of the split and 1 if missing values go left.
    """
    hists = np.empty((_FOUR, 256, 2))
    end = features.size - 1
    for low in range(first * size, min(last * size, end + 1), _FOUR):
        f0, f1 = features[low], features[min(low + 1, end)]
        f2, f3 = features[min(low + 2, end)], features[min(low + 3, end)]
        _add_four((bins[f0], bins[f1], bins[f2], bins[f3]), masses, hists)
        block = low // size
        for at in range(min(_FOUR, end + 1 - low)):
            f, hist = features[low + at], hists[at]
            if is_categorical[f]:
                _scan_categories(hist, n_bins[f], f, sums, roots[block], choices[block])
                continue
            # With missing values on the right, all others on the left are a split too.
            n_cuts = n_bins[f] if has_missing[f] else n_bins[f] - 1
            _scan_numeric(hist, n_cuts, f, 0, sums, roots[block], choices[block])
            if has_missing[f]:
                _scan_numeric(hist, n_bins[f] - 1, f, 1, sums, roots[block], choices[block])


@kernel(float64(_sums, float64))
def constant_root(sums: Sums, root: float) -> float:
    """Return ``sqrt A - sqrt B`` of saying class 1 everywhere, or 0 where it does not beat ``root``."""
    constant: float = _root_of_gain(sums[2], sums[3], sums, root * root * TIE)
    return constant


@helper
def _split_categories(
    column: ByteArray, masses: FloatArray, n_bins: int, place: int, table: ByteArray, occurs: ByteArray
) -> None:
    """Note which categories matter and which of them go left, after as many as ``place`` have changed sides."""
    hist = np.zeros((256, 2))
    for i in range(column.size):
        hist[column[i], 0] += masses[i, 0]
        hist[column[i], 1] += masses[i, 1]
    order = _turning_order(hist, n_bins)
    for p in range(order.size):
        occurs[order[p]] = 1
        table[order[p]] = _starts_left(hist, order[p]) != (p < place)


@helper
def _add_sides(classes: FloatArray, table: ByteArray, occurs: ByteArray, which: int, sides: FloatArray) -> None:
    """Add the bins that occur, or those that do not, to their sides."""
    for b in range(256):
        if occurs[b] == which:
            sides[1 - table[b], 0] += classes[b, 0]
            sides[1 - table[b], 1] += classes[b, 1]


@kernel(void(_column, _readonly_floats, _readonly_ints, _floats2, int64, int64, int64, int64, _bytes, _floats2))
def fill_split(
    column: ByteArray,
    weights: FloatArray,
    codes: IntArray,
    masses: FloatArray,
    n_bins: int,
    is_categorical: int,
    place: int,
    missing_left: int,
    table: ByteArray,
    sides: FloatArray,
) -> None:
    """Note which bins go left, and the weights of the classes on both sides; both are zero on entry.

    Bins that do not matter go where missing values go, and these, where there are none, to the heavier side.
    """
    classes, occurs = np.zeros((256, 2)), np.zeros(256, dtype=np.uint8)
    for i in range(column.size):
        classes[column[i], codes[i]] += weights[i]
    if is_categorical:
        _split_categories(column, masses, n_bins, place, table, occurs)
    else:
        for b in range(n_bins):
            occurs[b], table[b] = 1, b <= place
        if classes[_MISSING_BIN, 0] != 0.0 or classes[_MISSING_BIN, 1] != 0.0:
            occurs[_MISSING_BIN], table[_MISSING_BIN] = 1, missing_left
    _add_sides(classes, table, occurs, 1, sides)
    goes_left = (
        table[_MISSING_BIN] > 0 if occurs[_MISSING_BIN] else sides[0, 0] + sides[0, 1] >= sides[1, 0] + sides[1, 1]
    )
    for b in range(256):
        if not occurs[b]:
            table[b] = goes_left
    _add_sides(classes, table, occurs, 0, sides)


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

        A side predicts the class that lowers the cost, which need not be the heavier one there; ``predict_proba`` of
        the stump gives the shares of the weight.
        """
        stump.tree_, predicted = self._grow(np.ascontiguousarray(weights))
        stump.store_labels(classes, self.binned.n_features, self.binned.feature_names)
        return predicted

    def _grow(self, weights: FloatArray) -> tuple[Tree, ByteArray]:
        """Return the best stump as a tree, and what it predicts."""
        split = self._search(weights)
        if split.feature < 0:
            return self._constant(weights, is_positive=split.is_positive_left)
        # Which bins go left, and the weights of the classes on both sides.
        binned, feature = self.binned, split.feature
        table, sides = np.zeros(256, dtype=np.uint8), np.zeros((2, 2))
        kind = (int(binned.n_bins[feature]), int(binned.is_categorical[feature]), split.place, split.missing_left)
        fill_split(binned.bins[feature], weights, self.codes, self.masses, *kind, table, sides)
        has_left, has_right = bool(sides[0].any()), bool(sides[1].any())
        if not (has_left and has_right):  # the other side has samples of zero weight only
            return self._constant(weights, is_positive=split.is_positive_left == has_left)
        place, left = np.array([split.place, 0, 0]), np.array([1, 0, 0])
        goes_left = np.tile(np.packbits(table, bitorder="little"), (3, 1))
        sums = np.concatenate([sides.sum(axis=0, keepdims=True), sides])
        tree = make_tree(binned, np.array([feature, -1, -1]), place, left, goes_left, sums)
        tree.labels[1:] = split.is_positive_left, not split.is_positive_left
        return tree, (table == split.is_positive_left).view(np.uint8)[binned.bins[feature]]

    def _constant(self, weights: FloatArray, *, is_positive: bool) -> tuple[Tree, ByteArray]:
        none, positive = np.zeros(1, dtype=np.int64), float(weights @ self.codes)
        sums = np.array([[float(weights.sum()) - positive, positive]])
        tree = make_tree(self.binned, none - 1, none, none, np.zeros((1, 32), dtype=np.uint8), sums)
        tree.labels[0] = is_positive
        return tree, np.full(len(self.binned), is_positive, dtype=np.uint8)

    def _search(self, weights: FloatArray) -> Split:
        """Return the best stump; threads share blocks of features where there is much to add."""
        sums = fill_masses(weights, self.signs, self.rates, self.penalty, self.masses)
        n_blocks = -(-self.features.size // _BLOCK)
        roots, choices = np.zeros((n_blocks, 1)), np.zeros((n_blocks, 3), dtype=np.int64)
        features = (self.binned.bins, self.features, self.binned.n_bins, self.has_missing, self.is_categorical)

        def search(first: int, last: int) -> None:
            search_stumps(first, last, _BLOCK, *features, self.masses, sums, roots, choices)

        work = weights.size * self.features.size
        if work < _FEW:
            search(0, n_blocks)
        else:
            with Workers(work) as workers:
                workers.map_ranges(search, n_blocks)
        # The first of the best stumps of all blocks, or a constant where that is better.
        best, split = 0.0, Split(-1, 0, 0, is_positive_left=sums[2] > 0)
        for root, choice in zip(roots[:, 0].tolist(), choices.tolist(), strict=True):
            if root * root > best * best * TIE:
                best, split = root, Split(choice[0], choice[1], choice[2], root < 0)
        constant = constant_root(sums, best)
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
                f"Only binary classification is supported: LeastErrorStump separates two classes; got {len(classes)} "
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
