"""Lumps: rows of one cell whose scores lie in the same bins, counted over shards.

A rule with thresholds between bins treats the rows of a lump alike, so lumps as weighed rows tell all about such rules.
Where scores take few values each has a bin of its own. Else bins begin at quantiles, and those in which a better
threshold may hide are split in the next pass over the rows.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from counterpoise._base.shards import Shard, Shards, total
from counterpoise._base.types import BoolArray, FloatArray, IntArray
from counterpoise.distributed.cells import CELL
from counterpoise.distributed.rows import MASS
from counterpoise.mixtures.scores.cuts import block_starts, exponent_counts, noise_of, rounding_room

SCORES = "scores"  # the name in a shard of the scores, (n_rows, n_models)
_CHUNK = 1 << 20  # rows looked at at once
_DISTINCT = 1 << 14  # values of a score up to which each has its own bin
_FINE = 1 << 16  # bins of the histogram from which quantiles are taken
_BINS = 2048  # of one score at first; of several they share the digits
_PARTS = 16  # into which a bin is split
_MOST_LUMPS = 4_000_000

Edges = tuple[FloatArray, ...]  # of each model, rising: a bin is what lies above one and up to the next


class Lumps(NamedTuple):
    """Lumps in the order of their keys."""

    keys: IntArray  # (n_lumps, 1 + n_models): the cell, and the bin of each score
    mass: FloatArray
    n_rows: FloatArray
    lows: FloatArray  # (n_lumps, n_models): the least and the largest score
    highs: FloatArray


def lump_over(shards: Shards, edges: Edges) -> Lumps:
    """Return the lumps of the rows of all shards: one pass over the rows."""
    found = joined(shards.map(_lumps, edges))
    if len(found.mass) > _MOST_LUMPS:
        raise ValueError(
            f"The groups and scores tell the rows into {len(found.mass)} different lumps, more than {_MOST_LUMPS}: too "
            "many to choose rules on in one place. Name fewer columns, or choose among fewer models."
        )
    return found


def _chunks(shard: Shard) -> Iterator[slice]:
    n_rows = len(shard[SCORES])
    for start in range(0, n_rows, _CHUNK):
        yield slice(start, min(start + _CHUNK, n_rows))


def _lumps(shard: Shard, edges: Edges) -> Lumps:
    parts = []
    for place in _chunks(shard):
        scores, mass = np.asarray(shard[SCORES][place], dtype=np.float64), np.asarray(shard[MASS][place])
        bins = [np.searchsorted(own, scores[:, model]) for model, own in enumerate(edges)]
        keys = np.column_stack([shard[CELL][place], *bins])
        parts.append(_lumped(Lumps(keys, mass, np.ones(len(mass)), scores, scores)))
    return joined(parts) if parts else _lumped(_none(len(edges)))


def _none(n_models: int) -> Lumps:
    nothing = np.empty((0, n_models))
    return Lumps(np.empty((0, 1 + n_models), dtype=np.int64), np.empty(0), np.empty(0), nothing, nothing)


def joined(parts: Sequence[Lumps]) -> Lumps:
    """Return the lumps of several parts of the rows."""
    return _lumped(Lumps(*(np.concatenate(one) for one in zip(*parts, strict=True))))


def _lumped(rows: Lumps) -> Lumps:
    """Add up what has the same key."""
    if not len(rows.mass):
        return rows
    order = np.lexsort(rows.keys.T[::-1])
    keys = rows.keys[order]
    starts = np.flatnonzero(np.append(True, (keys[1:] != keys[:-1]).any(axis=1)))
    mass, n_rows = (np.add.reduceat(one[order], starts) for one in (rows.mass, rows.n_rows))
    lows, highs = np.minimum.reduceat(rows.lows[order], starts), np.maximum.reduceat(rows.highs[order], starts)
    return Lumps(keys[starts], mass, n_rows, lows, highs)


def noise_over(shards: Shards) -> list[float]:
    """Return for each model what rounding may leave of a score that is zero."""
    return [noise_of(counts) for counts in total(shards.map(_orders))]


def _orders(shard: Shard) -> IntArray:
    """Return how many scores of each model there are of each binary order."""
    scores = shard[SCORES]
    counts = [
        [exponent_counts(np.asarray(scores[place, model], dtype=np.float64)) for place in _chunks(shard)]
        for model in range(scores.shape[1])
    ]
    return np.array([np.sum(one, axis=0) for one in counts])


def first_edges(shards: Shards, usual: FloatArray, noise: Sequence[float]) -> Edges:
    """Return the bins to begin with; no bin has scores on both sides of a model's usual threshold."""
    found = shards.map(_distinct)
    n_bins = max(8, int(_BINS ** (1 / usual.size)))
    edges = []
    for model, own in enumerate(usual.tolist()):
        parts = [values for one in found if (values := one[model]) is not None]
        if len(parts) < len(found):
            edges.append(_quantiles(shards, model, own, n_bins))
        else:
            values = np.unique(np.concatenate(parts))
            falling = values[::-1]
            edges.append(falling[block_starts(falling, noise[model])][::-1])  # the largest of each block
    return tuple(edges)


def _distinct(shard: Shard) -> list[FloatArray | None]:
    return [_few_values(shard, model) for model in range(shard[SCORES].shape[1])]


def _few_values(shard: Shard, model: int) -> FloatArray | None:
    """Return the different values of a score; None where they are many, which shows early."""
    values = np.empty(0)
    for place in _chunks(shard):
        values = np.unique(np.append(values, shard[SCORES][place, model]))
        if values.size > _DISTINCT:
            return None
    return values


def _quantiles(shards: Shards, model: int, usual: float, n_bins: int) -> FloatArray:
    ranges = np.array(shards.map(_range, model))
    low, high = float(ranges[:, 0].min()), float(ranges[:, 1].max())
    fine = np.linspace(low, high, _FINE + 1)[1:]
    reach = np.cumsum(total(shards.map(_masses, model, fine)))
    wanted = np.searchsorted(reach, reach[-1] * np.arange(1, n_bins) / n_bins)
    return np.unique(np.append(fine[wanted], [usual] if low < usual < high else []))


def _range(shard: Shard, model: int) -> tuple[float, float]:
    scores = shard[SCORES][:, model]
    return (float(scores.min()), float(scores.max())) if len(scores) else (np.inf, -np.inf)


def _masses(shard: Shard, model: int, edges: FloatArray) -> FloatArray:
    sums = np.zeros(edges.size)
    for place in _chunks(shard):
        bins = np.minimum(np.searchsorted(edges, shard[SCORES][place, model]), edges.size - 1)
        sums += np.bincount(bins, shard[MASS][place], edges.size)
    return sums


def split(edges: Edges, lumps: Lumps, chosen: Sequence[IntArray]) -> Edges:
    """Return finer bins: some of each model are cut into parts of the same width, from their least score on."""
    found = []
    for model, (own, bins) in enumerate(zip(edges, chosen, strict=True)):
        low, high = ends_of(lumps, model, own.size + 1)
        steps = np.arange(1, _PARTS) / _PARTS
        more = low[bins, None] + (high - low)[bins, None] * steps
        found.append(np.unique(np.append(own, more[more < high[bins, None]])))
    return tuple(found)


def ends_of(lumps: Lumps, model: int, n_bins: int) -> tuple[FloatArray, FloatArray]:
    """Return the least and the largest score in each bin of a model."""
    low, high = np.full(n_bins, np.inf), np.full(n_bins, -np.inf)
    np.minimum.at(low, lumps.keys[:, 1 + model], lumps.lows[:, model])
    np.maximum.at(high, lumps.keys[:, 1 + model], lumps.highs[:, model])
    return low, high


def ends_of_each(lumps: Lumps) -> FloatArray:
    """Return for each lump the largest score in its bin, of any cell, as one score that the bin stands for."""
    each = [ends_of(lumps, model, int(bins.max()) + 1)[1][bins] for model, bins in enumerate(lumps.keys.T[1:])]
    return np.column_stack(each)


def can_split(lumps: Lumps, model: int, n_bins: int, noise: float) -> BoolArray:
    """Return which bins of a model hold scores that are further apart than what goes together."""
    low, high = ends_of(lumps, model, n_bins)
    is_some = low <= high
    low, high = np.where(is_some, low, 0.0), np.where(is_some, high, 0.0)
    return np.asarray(high - low > rounding_room(low, high, noise))
