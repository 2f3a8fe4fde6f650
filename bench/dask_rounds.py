"""Rounds of depth-5 trees on a Dask cluster of two processes with one thread each, against one process of two threads.

    python bench/dask_rounds.py FOLDER [N_ROWS ...]

FOLDER is that of ``out_of_core.py``, which makes its files. Told are seconds a round and in all, bytes a round on the
network of the machine as Dask's system monitor counts them, the peak of a worker and, up to a million rows, the ratios
to one process. The first fit of each size warms up; the second is told.
"""

import resource
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import psutil
from distributed import Client, LocalCluster
from out_of_core import N_FEATURES, make

from counterpoise import AdaLPBoostClassifier, Stopping
from counterpoise.distributed import DaskAdaLPBoostClassifier
from counterpoise.learners import HistogramTree

N_ROUNDS = 20
SIZES = (1_000_000, 10_000_000)
IN_MEMORY = 1_000_000  # rows up to which one process is asked too


def peak() -> float:
    """Return the most memory that this process had, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def counted() -> tuple[float, float]:
    """Return the present second and the bytes so far that processes of this machine sent each other."""
    return time.perf_counter(), psutil.net_io_counters(pernic=True)["lo"].bytes_sent  # as distributed.SystemMonitor


class Taken(NamedTuple):
    """What a fit took."""

    seconds: float
    seconds_a_round: float
    bytes_a_round: float


def timed(model: Any, *rows: Any, **named: Any) -> tuple[Any, Taken]:
    """Return the fitted model, and what it took."""
    marks: list[tuple[float, float]] = []
    model.set_params(callbacks=[lambda _done: marks.append(counted())])
    start = time.perf_counter()
    fitted = model.fit(*rows, **named)
    whole = time.perf_counter() - start
    return fitted, Taken(whole, *np.median(np.diff(marks, axis=0), axis=0).tolist())


def main() -> None:
    """Print a line for each number of rows."""
    settings = {"n_estimators": N_ROUNDS, "alpha": 0.1, "stopping": Stopping(n_folds=None), "random_state": 0}
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit="4GiB")
    with cluster, Client(cluster) as client:
        for n_rows in [int(float(text)) for text in sys.argv[2:]] or SIZES:
            folder = Path(sys.argv[1]) / str(n_rows)
            make(folder, n_rows)
            model = DaskAdaLPBoostClassifier(HistogramTree(5), **settings)
            given = {"sensitive_features": ["sex", "region"]}
            timed(model, folder, "label", **given)
            model, taken = timed(model, folder, "label", **given)
            told = f"{taken.seconds_a_round:.3f} s and {taken.bytes_a_round:,.0f} bytes a round"
            told += f", {taken.seconds:.1f} s in all"
            told += f", peak of a worker {max(client.run(peak).values()):.2f} GiB"
            if n_rows <= IN_MEMORY:
                start = time.perf_counter()
                frame = pd.read_parquet(folder)
                reading = time.perf_counter() - start
                features = frame[[f"x{number}" for number in range(N_FEATURES)]]
                twin = AdaLPBoostClassifier(HistogramTree(5), **settings)
                timed(twin, features, frame.label)
                twin, alone = timed(twin, features, frame.label)
                told += f"; one process {alone.seconds_a_round:.3f} s a round, {reading + alone.seconds:.1f} s in all"
                told += f", ratios {taken.seconds_a_round / alone.seconds_a_round:.2f} and "
                told += f"{taken.seconds / (reading + alone.seconds):.2f}, values "
                told += f"{model.value_:.6f} and {twin.value_:.6f}"
            print(f"{n_rows:>12,} rows: {told}", flush=True)


if __name__ == "__main__":
    main()
