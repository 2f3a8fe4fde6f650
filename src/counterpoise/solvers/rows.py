"""The loss matrix as rows in shards: its product with a mixture, and with sample weights.

Zero-one losses are packed to one bit each. A row of 100 models is then 13 bytes, its product with a mixture
13 look-ups in tables of 256 sums, and the weighted column sums a histogram of bytes: about ten times less
memory traffic than bytes, which is what the time goes into.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Protocol

import numpy as np

from counterpoise._base.checks import check_count, value_range
from counterpoise._base.cpus import available_cpus
from counterpoise._base.types import AnyArray, ByteArray, FloatArray, IntArray
from counterpoise.solvers import _kernels

_CHUNK = 8192  # rows handled at once: their floats stay in the cache; a multiple of the four whose codes share a byte
_MIN_SHARD = 16_384  # below this many rows a second thread costs more than it saves


class Rows(Protocol):
    """Some rows of the loss matrix."""

    n_rows: int
    n_models: int
    low: float  # no loss is below
    high: float  # no loss is above

    def scores(self, mixture: FloatArray, out: FloatArray) -> None:
        """Set ``out`` to ``losses @ mixture``."""

    def columns(self, weights: FloatArray) -> FloatArray:
        """Return ``weights @ losses``."""

    def coded(self, codes: ByteArray, mass: FloatArray, step: int) -> FloatArray:
        """Return ``mass @ losses`` of the rows above the edge of a tail, and of those at it, given their codes."""


class BitRows:
    """Zero-one losses, eight models to the byte."""

    def __init__(self, packed: ByteArray, n_models: int) -> None:
        self.packed = packed
        self.n_rows, self.n_models = packed.shape[0], n_models
        self.low, self.high = 0.0, 1.0

    def scores(self, mixture: FloatArray, out: FloatArray) -> None:
        tables = np.empty((self.packed.shape[1], 256))
        _kernels.fill_tables(mixture, tables)
        _kernels.bit_scores(self.packed, tables, out)

    def columns(self, weights: FloatArray) -> FloatArray:
        tables = np.zeros((self.packed.shape[1], 256))
        _kernels.bit_columns(self.packed, weights, tables)
        return (tables @ _BIT_OF_BYTE).ravel()[: self.n_models]

    def coded(self, codes: ByteArray, mass: FloatArray, step: int) -> FloatArray:
        tables = np.zeros((2, self.packed.shape[1], 256))
        _kernels.coded_bit_columns(self.packed, codes, mass, step, tables)
        return (tables @ _BIT_OF_BYTE).reshape(2, -1)[:, : self.n_models]

    def totals(self, parts: list[FloatArray]) -> FloatArray:
        """Return ``weights @ losses`` for weights as ``exact_parts``: to the last bit the same in any order of rows."""
        return np.asarray(sum(self.columns(np.ascontiguousarray(part)) for part in parts))

    def only(self, places: IntArray) -> "BitRows":
        """Return some of the rows, given by their places in ascending order."""
        return self if places.size == self.n_rows else BitRows(self.packed[places], self.n_models)

    def check_loaded(self) -> None:
        """Check what came from a file: the kernels believe these sizes."""
        wanted = (check_count(self.n_rows, "n_rows"), -(-check_count(self.n_models, "n_models") // 8))
        if self.packed.shape != wanted or self.packed.dtype != np.uint8 or not self.packed.flags.c_contiguous:
            raise ValueError(f"bits of shape {self.packed.shape} are not {self.n_rows} rows of {self.n_models} models")


# Bit k of byte b: maps a histogram of bytes to a count for each bit.
_BIT_OF_BYTE = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").astype(np.float64)


class RealRows:
    """Losses of any real type, read in chunks so that no float64 copy of the matrix is made."""

    def __init__(self, losses: AnyArray) -> None:
        self.losses = losses
        self.n_rows, self.n_models = losses.shape
        self.low, self.high = value_range(losses, "losses")

    def scores(self, mixture: FloatArray, out: FloatArray) -> None:
        for place, chunk in self._chunks():
            np.dot(chunk, mixture, out=out[place])

    def columns(self, weights: FloatArray) -> FloatArray:
        total = np.zeros(self.n_models)
        for place, chunk in self._chunks():
            total += weights[place] @ chunk
        return total

    def coded(self, codes: ByteArray, mass: FloatArray, step: int) -> FloatArray:
        sums = np.zeros((2, self.n_models))
        for place, chunk in self._chunks():
            some, own = codes[place.start // 4 :], mass[place] if step else mass
            weights = np.zeros((2, len(chunk)))
            _kernels.add_coded_weights(some, own, step, 1.0, 0.0, weights[0])
            _kernels.add_coded_weights(some, own, step, 0.0, 1.0, weights[1])
            sums += weights @ chunk
        return sums

    def _chunks(self) -> Iterator[tuple[slice, FloatArray]]:
        for place in _chunk_slices(self.n_rows):
            yield place, self.losses[place].astype(np.float64, copy=False)


def _chunk_slices(n_rows: int) -> Iterator[slice]:
    for start in range(0, n_rows, _CHUNK):
        yield slice(start, min(start + _CHUNK, n_rows))


def pack(losses: AnyArray) -> ByteArray | None:
    """Return zero-one losses packed to bits, or None as soon as another value turns up."""
    n_rows, n_models = losses.shape
    packed = np.empty((n_rows, (n_models + 7) // 8), dtype=np.uint8)
    for place in _chunk_slices(n_rows):
        chunk = np.ascontiguousarray(losses[place])
        if not is_zero_one(chunk):
            return None
        bits = chunk if chunk.dtype in (np.bool_, np.uint8) else chunk.astype(np.bool_)
        packed[place] = bits if n_models == 1 else np.packbits(bits, axis=1, bitorder="little")
    return packed


_NOT_LOWEST_BITS = np.uint64(0xFEFEFEFEFEFEFEFE)


def is_zero_one(chunk: AnyArray) -> bool:
    """Tell whether all losses are 0 or 1."""
    if chunk.dtype == np.bool_:
        return True
    if chunk.dtype == np.uint8 and chunk.size % 8 == 0:  # the common large case, eight at a time
        return not (chunk.reshape(-1).view(np.uint64) & _NOT_LOWEST_BITS).any()
    return bool(((chunk == 0) | (chunk == 1)).all())


def load_rows(losses: AnyArray) -> Rows:
    """Return some rows of a loss matrix in their fastest form, checked to be finite."""
    packed = pack(losses)
    return RealRows(losses) if packed is None else BitRows(packed, losses.shape[1])


def shard_slices(n_rows: int) -> list[slice]:
    """Cut the rows into one slice for each thread worth starting."""
    n_shards = max(1, min(available_cpus(), n_rows // _MIN_SHARD))
    edges = [n_rows * shard // n_shards for shard in range(n_shards + 1)]
    return [slice(*pair) for pair in pairwise(edges)]
