"""Features of rows in shards as bins: edges from one sample of all rows, the same bins in every shard."""

from functools import reduce
from typing import Any

import numpy as np

from counterpoise._base.shards import Shard, Shards
from counterpoise._base.types import AnyArray, BoolArray, FloatArray, IntArray
from counterpoise.distributed.rows import X
from counterpoise.learners import HistogramTree
from counterpoise.learners.binning import (
    BinnedFeatures,
    Seen,
    as_floats,
    as_matrix,
    bin_part,
    binned_by,
    check_categorical,
    find_edges,
    sample_places,
)
from counterpoise.rules.rows import stack_rows, take_rows

BINNED, _UNSETTLED = "binned", "bins"  # names in a shard


def n_rows_of(shard: Shard) -> int:
    """Return the number of rows."""
    return int(shard[X].shape[0])


def rows_at(shard: Shard, places: IntArray, firsts: IntArray) -> Any:
    """Return those rows, of some numbered through all shards, that are here."""
    first = int(firsts[shard.number])
    inside = places[(places >= first) & (places < first + n_rows_of(shard))]
    return take_rows(shard[X], inside - first)


def sample_over(shards: Shards) -> Any:
    """Return the sample of rows from which bins are found, as they are: the same whatever the shards."""
    sizes = np.array(shards.map(n_rows_of))
    places = sample_places(int(sizes.sum()))
    wanted = np.arange(sizes.sum()) if places is None else places
    parts = shards.map(rows_at, wanted, np.cumsum(sizes) - sizes)
    return stack_rows([part for part in parts if part.shape[0]])


def _bin(shard: Shard, edges: list[FloatArray], is_categorical: BoolArray) -> Seen:
    if n_rows_of(shard):
        shard[_UNSETTLED], seen = bin_part(as_matrix(shard[X], len(edges)), edges, is_categorical)
        return seen
    shard[_UNSETTLED] = np.empty((len(edges), 0), dtype=np.uint8)
    return Seen(np.zeros(len(edges), dtype=np.uint8), np.zeros((len(edges), 256), dtype=np.bool_))


def _settle(
    shard: Shard, edges: list[FloatArray], is_categorical: BoolArray, seen: Seen, names: AnyArray | None
) -> None:
    shard[BINNED] = binned_by(shard.pop(_UNSETTLED), edges, is_categorical, seen, names)
    del shard[X]  # bins are all that trees look at from here on


def bin_over(
    shards: Shards, learner: HistogramTree, sample: Any = None, names: AnyArray | None = None
) -> BinnedFeatures:
    """Bin the rows of all shards as ``learner.prepare`` does, and return the bins of no row, which tell the layout.

    Parameters
    ----------
    shards : Shards
        Each holds a matrix by the name ``"X"``, and then in its place the bins by the name ``"binned"``.
    learner : HistogramTree
        Its ``max_bins`` and ``categorical_features``.
    sample : array or data frame, optional
        From ``sample_over``, where it is known.
    names : array, optional
        The names of the features.
    """
    sample = as_floats(as_matrix(sample_over(shards) if sample is None else sample))
    is_categorical = check_categorical(learner.categorical_features, sample.shape[1])
    edges = find_edges(sample, is_categorical, learner.max_bins)
    seen = reduce(Seen.beside, shards.change("bin", _bin, edges, is_categorical))
    told: tuple[Any, ...] = (edges, is_categorical, seen, names)
    shards.change("bins settled", _settle, *told)
    return binned_by(np.empty((len(edges), 0), dtype=np.uint8), *told)
