"""The engines over which every test of a sharded algorithm runs, and rows cut into shards."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise

import numpy as np

from counterpoise._base.shards import LocalShards, Shards, Source
from counterpoise.distributed.processes import ProcessShards

ENGINES = {"threads": LocalShards, "processes": partial(ProcessShards, n_processes=1)}  # as starting one takes a second
COUNTS = (1, 2, 4, 7)  # of shards


@contextmanager
def opened(engine: str, sources: Sequence[Source]) -> Iterator[Shards]:
    shards = ENGINES[engine](sources)
    try:
        yield shards
    finally:
        shards.close()


def cut(n_shards, **arrays):
    """Return sources of shards that hold parts of arrays, of different lengths."""
    n_rows = len(next(iter(arrays.values())))
    edges = np.linspace(0, 1, n_shards + 1) ** 1.3 * n_rows
    edges = edges.astype(int)
    return [
        partial(dict, **{name: array[start:end] for name, array in arrays.items()}) for start, end in pairwise(edges)
    ]
