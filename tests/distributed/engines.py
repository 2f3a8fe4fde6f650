"""The engines over which every test of a sharded algorithm runs, and rows cut into shards."""

import logging
import multiprocessing
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from importlib.util import find_spec
from itertools import pairwise

import numpy as np
from process_shards import ProcessShards

from counterpoise._base.shards import LocalShards, Shards, Source
from tests.tiers import slow


def _on_dask(sources):
    from counterpoise.distributed.dask_shards import DaskShards  # noqa: PLC0415 - optional

    return DaskShards(sources, dask_client())


@cache
def dask_client():
    """Return the client of a cluster inside of this process: one for all tests, as starting it takes a while."""
    from distributed import Client, LocalCluster  # noqa: PLC0415 - optional

    cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0")
    return Client(cluster)


@contextmanager
def dask_processes(n_workers):
    """Yield the client of a cluster of processes, forked from one that has loaded what each would load for a second."""
    import dask  # noqa: PLC0415 - optional
    from distributed import Client, LocalCluster  # noqa: PLC0415
    from distributed.utils import get_mp_context  # noqa: PLC0415

    method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    with dask.config.set({"distributed.worker.multiprocessing-method": method}):
        if method == "forkserver":
            get_mp_context().set_forkserver_preload(["distributed", "counterpoise.distributed.estimators"])
        cluster = LocalCluster(
            n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
        )
        with cluster, Client(cluster) as client:
            yield client


ENGINES = {"threads": LocalShards, "processes": partial(ProcessShards, n_processes=1)}  # as starting one takes a second
if find_spec("distributed"):
    ENGINES["dask"] = _on_dask
EACH = [slow(name) if name == "processes" else name for name in ENGINES]  # as parameters of a test
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
