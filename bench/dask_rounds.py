"""Rounds of depth-5 trees on a Dask cluster of two processes with one thread each, against one process of two threads.

    python bench/dask_rounds.py FOLDER [N_ROWS ...]

FOLDER is that of ``out_of_core.py``, which makes its files. Told are seconds a round, the peak of a worker and, up to
a million rows, the ratio to the same rounds of one process.
"""

import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from distributed import Client, LocalCluster
from out_of_core import N_FEATURES, make

from counterpoise import AdaLPBoostClassifier
from counterpoise.distributed import DaskAdaLPBoostClassifier
from counterpoise.learners import HistogramTree

N_ROUNDS = 20
SIZES = (1_000_000, 10_000_000)
IN_MEMORY = 1_000_000  # rows up to which one process is asked too


def peak() -> float:
    """Return the most memory that this process had, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def timed(model: Any, *rows: Any, **named: Any) -> tuple[Any, float]:
    """Return the fitted model, and the seconds of a round after the first."""
    marks: list[float] = []
    model.set_params(callbacks=[lambda _done: marks.append(time.perf_counter())])
    fitted = model.fit(*rows, **named)
    return fitted, float(np.median(np.diff(marks)))


def main() -> None:
    """Print a line for each number of rows."""
    settings = {"n_estimators": N_ROUNDS, "alpha": 0.1, "n_folds": None, "random_state": 0}
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit="4GiB")
    with cluster, Client(cluster) as client:
        for n_rows in [int(float(text)) for text in sys.argv[2:]] or SIZES:
            folder = Path(sys.argv[1]) / str(n_rows)
            make(folder, n_rows)
            model = DaskAdaLPBoostClassifier(HistogramTree(5), **settings)
            given = {"sensitive_features": ["sex", "region"]}
            start = time.perf_counter()
            model, seconds = timed(model, folder, "label", **given)
            told = f"{seconds:.2f} s a round, {time.perf_counter() - start:.1f} s in all"
            told += f", peak of a worker {max(client.run(peak).values()):.2f} GiB"
            if n_rows <= IN_MEMORY:
                frame = pd.read_parquet(folder)
                features = frame[[f"x{number}" for number in range(N_FEATURES)]]
                twin, alone = timed(AdaLPBoostClassifier(HistogramTree(5), **settings), features, frame.label)
                told += f"; one process {alone:.2f} s a round, ratio {seconds / alone:.2f}, values "
                told += f"{model.value_:.6f} and {twin.value_:.6f}"
            print(f"{n_rows:>12,} rows: {told}", flush=True)


if __name__ == "__main__":
    main()
