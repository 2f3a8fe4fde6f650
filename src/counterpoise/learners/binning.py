"""Features as bins of one byte: made once, used by every tree.

A tree that looks at bins needs one addition for a row and a feature, whatever the values are, and reads an
eighth of the memory that the values take. Bin 255 is kept for missing values.

A few threads for kernels that release the interpreter lock.

Compiled loops that turn values into bins; they release the interpreter lock.
"""

import math
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import scipy.sparse
from numba import float64, int64, types, uint8, uint64, void
from sklearn.utils import check_array

from counterpoise._base.checks import as_numbers, check_count
from counterpoise._base.compiled import helper, kernel
from counterpoise._base.frames import is_frame
from counterpoise._base.threads import available_cpus
from counterpoise._base.types import AnyArray, ArrayLike, BoolArray, ByteArray, FloatArray, IntArray

Result = TypeVar("Result")

_FEW = 100_000  # additions that are made faster than a thread is woken
_PIECES = 2  # for each thread, so that one that the system holds up leaves some of its share to the others


class Workers(ThreadPoolExecutor):
    """Threads, as many as processors with the calling one, for kernels that release the interpreter lock.

    They live for one fit or one prediction: a pool kept between calls would not survive a fork.
    """

    def __init__(self, work: int) -> None:
        self.n_workers = available_cpus() if work >= _FEW else 1
        super().__init__(max(self.n_workers - 1, 1))

    def map_ranges(
        self, function: Callable[[int, int], Result], length: int, *, work: int = _FEW, multiple: int = 1
    ) -> list[Result]:
        """Call ``function(start, stop)`` on ranges that cover ``range(length)``, and return the results in order.

        Where there is little work, or one thread, there is one range. Their length is a multiple of ``multiple``.
        """
        if self.n_workers == 1 or work < _FEW or length <= multiple:
            return [function(0, length)]
        step = -(-length // (_PIECES * self.n_workers * multiple)) * multiple
        starts = range(0, length, step)
        pending = deque(starts)
        results: dict[int, Result] = {}

        def drain() -> None:
            while pending:
                try:
                    start = pending.popleft()
                except IndexError:  # another thread was faster
                    return
                results[start] = function(start, min(start + step, length))

        others = [self.submit(drain) for _ in range(self.n_workers - 1)]
        drain()
        for other in others:
            if not other.cancel():  # one that has not begun by now is not needed
                other.result()
        return [results[start] for start in starts]


MISSING_BIN = 255
HAS_MISSING, HAS_INFINITY, HAS_BAD_CODE = 1, 2, 4  # what was met in a feature

_bytes = uint8[::1]
_bytes2 = uint8[:, ::1]
_floats2 = float64[:, ::1]
_values = types.Array(float64, 2, "C", readonly=True)  # may come from a file mapped into memory


@helper
def _value_bin(value: float, edges: FloatArray) -> int:
    """Return how many of 255 sorted edges lie below the value; those not in use are infinite.

    Without branches, half of which would be guessed wrong: a fifth of the time.
    """
    place = uint64(0)
    for k in range(8):
        step = uint64(128 >> k)
        place += step * uint64(edges[place + step - uint64(1)] < value)
    return int(place)


@helper
def _category_bin(value: float, seen: ByteArray) -> int:
    """Return the code of a category in use, else the missing bin."""
    if not 0.0 <= value < MISSING_BIN or value != math.floor(value) or not seen[int64(value)]:
        return MISSING_BIN
    return int(value)


@kernel(void(_values, _floats2, _bytes, _bytes2, int64, _bytes2, _bytes))
def bin_rows(
    values: FloatArray,
    edges: FloatArray,
    is_categorical: BoolArray,
    seen: ByteArray,
    start: int,
    bins: ByteArray,
    flags: ByteArray,
) -> None:
    """Write the bins of some rows, the first of which is ``start``, and set in ``flags`` what each feature held."""
    for feature in range(values.shape[1]):
        for row in range(values.shape[0]):
            value = values[row, feature]
            place = MISSING_BIN
            if math.isnan(value):
                flags[feature] |= HAS_MISSING
            elif math.isinf(value):
                flags[feature] |= HAS_INFINITY
            elif not is_categorical[feature]:
                place = _value_bin(value, edges[feature])
            else:
                place = _category_bin(value, seen[feature])
                if place == MISSING_BIN:
                    flags[feature] |= HAS_BAD_CODE
            bins[feature, start + row] = place


_MATRIX = 2  # dimensions
_SAMPLE = 200_000  # rows that quantiles are taken from: their error is then far below the width of a bin
CHUNK = 1 << 16  # values handled at once: as floats they stay in the cache


class Layout(NamedTuple):
    """Where the bins of each feature lie when those of all features lie side by side."""

    base: AnyArray  # (n_features + 1,): feature f has the slots from base[f] to base[f + 1]
    edges: FloatArray  # of each slot: the upper edge of a numeric bin, infinite where there is none
    varying: IntArray  # the features that have more than one slot: the others cannot split


@dataclass(frozen=True, eq=False)
class BinnedFeatures:
    """A matrix of features as bins.

    Attributes
    ----------
    bins : uint8 array of shape (n_features, n_samples)
        The bin of every value; ``missing_bin`` where it is missing.
    edges : list of arrays
        For a numeric feature its thresholds, strictly increasing: bin ``b`` holds the values up to and including
        ``edges[b]`` and above ``edges[b - 1]``. For a categorical feature the codes that occur.
    is_categorical : bool array of shape (n_features,)
        Whether the feature holds codes of categories, which are their own bins.
    n_bins : int array of shape (n_features,)
        The number of bins of values, the missing bin not counted.
    has_missing : bool array of shape (n_features,)
        Whether a value of the feature is missing.
    feature_names : array of shape (n_features,), or None
        The names of the features, where they came with some.
    """

    bins: ByteArray
    edges: list[FloatArray]
    is_categorical: BoolArray
    n_bins: IntArray
    has_missing: BoolArray
    feature_names: AnyArray | None = None
    missing_bin: ClassVar[int] = MISSING_BIN

    def __len__(self) -> int:
        return int(self.bins.shape[1])

    @property
    def n_features(self) -> int:
        """The number of features."""
        return int(self.bins.shape[0])

    @cached_property
    def layout(self) -> Layout:
        """The slots of the features, computed once for all trees."""
        # A feature without missing values needs no bin for them.
        widths = np.where(self.has_missing, MISSING_BIN + 1, self.n_bins)
        base = np.append(0, np.cumsum(widths)).astype(np.uint64)
        edges = np.full(int(base[-1]), np.inf)
        for feature in np.flatnonzero(~self.is_categorical):
            start = int(base[feature])
            edges[start : start + self.edges[feature].size] = self.edges[feature]
        return Layout(base, edges, np.flatnonzero(widths > 1))


def bin_features(X: Any, *, max_bins: int = 256, categorical_features: ArrayLike | None = None) -> BinnedFeatures:
    """Return the features of ``X`` as bins of one byte each.

    Parameters
    ----------
    X : array, data frame or sparse matrix of shape (n_samples, n_features)
        Real numbers of any type, finite or NaN, which counts as missing.
    max_bins : int, default=256
        The number of bins of a feature, from 3 to 256, of which one is kept for missing values. A numeric feature
        with fewer distinct values gets a bin for each, with edges halfway between neighbours; others are cut at
        quantiles of at most 200,000 rows, drawn with a fixed seed.
    categorical_features : array of int or of bool, default=None
        The features whose values are codes of categories, whole numbers from 0 to 254: their indices, or a mask.

    Returns
    -------
    BinnedFeatures
        The bins and their edges. While it runs, the function holds one column of floats for each thread.

    Examples
    --------
    >>> from counterpoise.learners import bin_features
    >>> binned = bin_features([[1.0, 0], [3.0, 2], [float("nan"), 2]], categorical_features=[1])
    >>> binned.bins
    array([[  0,   1, 255],
           [  0,   2,   2]], dtype=uint8)
    >>> binned.edges
    [array([2.]), array([0., 2.])]
    """
    matrix = as_matrix(X)
    is_categorical = check_categorical(categorical_features, matrix.shape[1])
    edges = find_edges(matrix, is_categorical, max_bins, sample_places(matrix.shape[0]))
    bins, seen = bin_part(matrix, edges, is_categorical)
    return make_binned(bins, edges, is_categorical, seen)


class ValueFlags(NamedTuple):
    """Which special values and categories some rows hold."""

    flags: ByteArray  # (n_features,): flags
    occurs: BoolArray  # (n_features, 256): which codes of categories


def sample_places(n_samples: int) -> IntArray | None:
    """Return the rows that quantiles are taken from; None where it is all of them."""
    if n_samples <= _SAMPLE:
        return None
    return np.sort(np.random.default_rng(0).choice(n_samples, _SAMPLE, replace=False))


def bin_part(
    matrix: Any, edges: list[FloatArray], is_categorical: BoolArray, known: ByteArray | None = None
) -> tuple[ByteArray, ValueFlags]:
    """Return the bins of some rows, and the flags of their values; threads share the rows.

    ``known`` has 1 for the codes of categories that have a bin, shape (n_features, 256), and others count as missing.
    Where it is None all codes have one, and what is no code is refused.
    """
    n_samples, n_features = matrix.shape
    bins = np.empty((n_features, n_samples), dtype=np.uint8)
    padded = np.full((n_features, 256), np.inf)
    for feature in np.flatnonzero(~is_categorical):
        padded[feature, : edges[feature].size] = edges[feature]
    codes = np.ones((n_features, 256), dtype=np.uint8) if known is None else known
    step = max(1, CHUNK // n_features)

    def bin_range(start: int, stop: int) -> ByteArray:
        flags = np.zeros(n_features, dtype=np.uint8)
        for first in range(start, stop, step):
            values = as_floats(matrix[first : min(first + step, stop)])
            bin_rows(values, padded, is_categorical.view(np.uint8), codes, first, bins, flags)
        return flags

    with Workers(n_samples * n_features) as workers:
        flags = np.bitwise_or.reduce(workers.map_ranges(bin_range, n_samples))
    if (flags & HAS_INFINITY).any():
        raise _unusable(int(np.flatnonzero(flags & HAS_INFINITY)[0]), "finite numbers or NaN", "infinity", _CLIP)
    if known is None and (flags & HAS_BAD_CODE).any():
        expected = "codes of categories, whole numbers from 0 to 254 or NaN"
        raise _unusable(int(np.flatnonzero(flags & HAS_BAD_CODE)[0]), expected, "another value", _RECODE)
    occurs = np.zeros((len(bins), 256), dtype=np.bool_)
    for feature in np.flatnonzero(is_categorical):
        occurs[feature] = np.bincount(bins[feature], minlength=256) > 0
    return bins, ValueFlags(flags, occurs)


def make_binned(
    bins: ByteArray, edges: list[FloatArray], is_categorical: BoolArray, seen: ValueFlags
) -> BinnedFeatures:
    """Return the bins of some rows with the flags of all rows."""
    known, n_bins = list(edges), np.array([own.size + 1 for own in edges], dtype=np.int64)
    for feature in np.flatnonzero(is_categorical).tolist():
        codes = np.flatnonzero(seen.occurs[feature, :MISSING_BIN])
        known[feature], n_bins[feature] = codes.astype(np.float64), codes.max(initial=0) + 1
    return BinnedFeatures(bins, known, is_categorical, n_bins, (seen.flags & HAS_MISSING) > 0)


def bin_like(X: Any, binned: BinnedFeatures) -> BinnedFeatures:
    """Return the features of ``X`` in the bins of other data; a category that those data lack counts as missing.

    Examples
    --------
    >>> from counterpoise.learners import bin_features
    >>> from counterpoise.learners.binning import bin_like
    >>> bin_like([[2.5], [-7.0]], bin_features([[1.0], [3.0]])).bins
    array([[1, 0]], dtype=uint8)
    """
    matrix = as_matrix(X, n_features=binned.n_features)
    seen = np.zeros((binned.n_features, 256), dtype=np.uint8)
    for feature in np.flatnonzero(binned.is_categorical):
        seen[feature, binned.edges[feature].astype(np.intp)] = 1
    bins, occurrences = bin_part(matrix, binned.edges, binned.is_categorical, seen)
    has_missing = (occurrences.flags & (HAS_MISSING | HAS_BAD_CODE)) > 0
    return BinnedFeatures(bins, binned.edges, binned.is_categorical, binned.n_bins, has_missing)


def as_matrix(X: Any, n_features: int | None = None) -> Any:
    """Return ``X`` as a matrix of real numbers, dense or in compressed rows, not copied where it is one."""
    if is_frame(X):  # whose columns may be of several types, and have their own ways to be missing
        X = check_array(X, ensure_all_finite=False, ensure_min_samples=0, ensure_min_features=0)
    matrix = X.tocsr() if scipy.sparse.issparse(X) else as_numbers(X, "X")
    if matrix.ndim != _MATRIX or 0 in matrix.shape:
        raise ValueError(
            f"X must have shape (n_samples, n_features) with at least one of each; got shape {matrix.shape}. "
            "Use X.reshape(-1, 1) for a single feature."
        )
    if matrix.dtype.kind not in "biuf":
        raise TypeError(f"X must hold real numbers; got dtype {matrix.dtype}.")
    if n_features is not None and matrix.shape[1] != n_features:
        raise ValueError(f"X must have {n_features} features, as at fit; got {matrix.shape[1]}.")
    return matrix


def check_categorical(categorical_features: ArrayLike | None, n_features: int) -> BoolArray:
    """Return a mask of the categorical features from indices or a mask."""
    mask = np.zeros(n_features, dtype=bool)
    if categorical_features is None:
        return mask
    array = np.asarray(categorical_features)
    is_mask = array.dtype.kind == "b" and array.shape == (n_features,)
    is_indices = array.ndim == 1 and (array.dtype.kind in "iu" or array.size == 0)
    if not is_mask and not (is_indices and all(0 <= index < n_features for index in array.tolist())):
        raise ValueError(
            f"categorical_features must be indices of features from 0 to {n_features - 1}, or a mask of shape "
            f"({n_features},); got {categorical_features!r}."
        )
    mask[array if is_mask else array.astype(np.intp)] = True
    return mask


def as_floats(rows: Any) -> FloatArray:
    """Return some rows as a dense float matrix."""
    return np.ascontiguousarray(rows.toarray() if scipy.sparse.issparse(rows) else rows, dtype=np.float64)


def find_edges(
    matrix: Any, is_categorical: BoolArray, max_bins: Any, places: IntArray | None = None
) -> list[FloatArray]:
    """Return the thresholds of every numeric feature, from some or all rows; threads share the features.

    Categorical features have none.
    """
    count = check_count(max_bins, "max_bins")
    if not 3 <= count <= 256:  # noqa: PLR2004 - the message has it
        raise ValueError(
            f"max_bins must lie from 3 to 256: two bins of values and one for missing ones at the least, and what a "
            f"byte can hold at the most; got {max_bins!r}."
        )
    n_samples, n_features = matrix.shape
    rows: Any = slice(None) if places is None else places
    sample = matrix[rows].tocsc() if scipy.sparse.issparse(matrix) else matrix

    def edges_of(start: int, stop: int) -> list[FloatArray]:
        own_edges = []
        for feature in range(start, stop):
            if is_categorical[feature]:
                column = np.empty(0)
            elif scipy.sparse.issparse(sample):  # sampled already
                column = sample[:, [feature]].toarray().ravel()
            else:
                column = sample[rows, feature]
            own_edges.append(_edges(np.asarray(column, dtype=np.float64), count - 1, feature))
        return own_edges

    with Workers(n_samples * n_features) as workers:
        return [edges for part in workers.map_ranges(edges_of, n_features) for edges in part]


def _edges(column: FloatArray, n_value_bins: int, feature: int) -> FloatArray:
    """Return thresholds halfway between neighbours: all of them where they are few, else those at quantiles."""
    values: FloatArray = np.sort(column)  # NaN last
    values = values[: values.size - np.count_nonzero(np.isnan(values))]
    if not values.size:
        return values
    if np.isinf(values[[0, -1]]).any():
        raise _unusable(feature, "finite numbers or NaN", "infinity", _CLIP)
    rises = values[1:] > values[:-1]
    if np.count_nonzero(rises) < n_value_bins:
        lows = values[:-1][rises]
    else:
        cuts = np.arange(1, n_value_bins) * values.size // n_value_bins
        lows = np.unique(values[cuts - 1])
        lows = lows[lows < values[-1]]
    highs = values[np.searchsorted(values, lows, side="right")]
    middles: FloatArray = lows / 2 + highs / 2  # the sum first would overflow
    has_none = (middles < lows) | (middles >= highs)  # between neighbouring floats
    middles[has_none] = lows[has_none]
    return middles


_CLIP = "Clip infinite values, or set them to NaN, which counts as missing."
_RECODE = "Encode the categories first, for example with sklearn.preprocessing.OrdinalEncoder."


def _unusable(feature: int, expected: str, got: str, advice: str) -> ValueError:
    return ValueError(f"X must hold {expected} in feature {feature}; got {got}. {advice}")
