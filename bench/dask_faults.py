"""Workers killed at random moments of a fit, and the client itself: the result is that of a fit left alone.

    python bench/dask_faults.py [N_ROWS [SEED]]

Three workers of a cluster of processes are ended by SIGKILL, each at a moment drawn from the time that a fit left alone
took. Then a fit with a checkpoint is ended by SIGKILL as a whole, and goes on in a new process and a new cluster.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

from counterpoise.distributed import DaskAdaLPBoostClassifier
from counterpoise.learners import HistogramTree

N_ROUNDS, N_KILLED, N_WORKERS = 20, 3, 4
PARITY = "abs(positive_rate(train, sex=F) - positive_rate(train, sex=M)) <= 0.05"


def make(folder: Path, n_rows: int) -> None:
    """Write rows to Parquet files."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n_rows, 10)), columns=[f"x{number}" for number in range(10)])
    frame["sex"] = np.where(rng.random(n_rows) < 0.4, "F", "M")
    frame["label"] = (frame.x0 + (frame.sex == "F") * frame.x1 + rng.normal(size=n_rows) > 0).astype(int)
    for number, part in enumerate(np.array_split(np.arange(n_rows), 8)):
        frame.iloc[part].to_parquet(folder / f"{number}.parquet")


def fit(folder: Path, checkpoint: Path | None = None, callbacks: tuple[Any, ...] = ()) -> Any:
    """Return a fitted model."""
    settings = {"n_estimators": N_ROUNDS, "alpha": 0.2, "goals": [PARITY], "random_state": 0}
    model = DaskAdaLPBoostClassifier(HistogramTree(4), checkpoint=checkpoint, callbacks=callbacks, **settings)
    return model.fit(folder, "label", sensitive_features=["sex"])


def is_same(one: Any, two: Any) -> bool:
    """Tell whether two models are the same to the last bit."""
    trees = [[tree.tree_ for tree in model.estimators_] for model in (one, two)]
    try:
        for tree, other in zip(*trees, strict=True):
            for part, its in zip(tree, other, strict=True):
                np.testing.assert_array_equal(part, its)  # to which the missing thresholds of leaves are equal
        np.testing.assert_array_equal(one.mixture_, two.mixture_)
    except AssertionError:
        return False
    return True


def kill_later(client: Client, moments: list[float]) -> None:
    """Kill a worker at each moment, one that was there from the start."""
    pids = list(client.run(os.getpid).values())
    for pid, moment in zip(pids, moments, strict=False):
        threading.Timer(moment, os.kill, (pid, signal.SIGKILL)).start()


def run_alone(folder: Path, checkpoint: Path) -> None:
    """Fit in this process, which ends itself in the middle of it."""

    def end(done: Any) -> None:
        if done.number == N_ROUNDS // 2:
            os.kill(os.getpid(), signal.SIGKILL)

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster):
        fit(folder, checkpoint, (end,))


def main() -> None:
    """Print what came of each fit."""
    n_rows, seed = (int(float(text)) for text in (*sys.argv[1:], *("2e5", "0")[len(sys.argv) - 1 :]))
    with tempfile.TemporaryDirectory() as name:
        folder, checkpoint = Path(name) / "rows", Path(name) / "checkpoint"
        folder.mkdir()
        make(folder, n_rows)
        settings: dict[str, Any] = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
        with LocalCluster(n_workers=N_WORKERS, **settings) as cluster, Client(cluster) as client:
            fit(folder)  # kernels are compiled
            start = time.perf_counter()
            whole = fit(folder)
            seconds = time.perf_counter() - start
            moments = np.sort(np.random.default_rng(seed).uniform(0, seconds, N_KILLED))
            kill_later(client, moments.tolist())
            start = time.perf_counter()
            killed = fit(folder)
            told = f"left alone {seconds:.1f} s, workers killed at {', '.join(f'{moment:.2f}' for moment in moments)} s"
            told += f" {time.perf_counter() - start:.1f} s"
            print(f"{told}: the same {is_same(whole, killed)}", flush=True)
            ended = subprocess.run([sys.executable, __file__, "alone", folder, checkpoint], check=False)
            rounds: list[int] = []
            more = fit(folder, checkpoint, (lambda done: rounds.append(done.number),))
            told = f"client ended with {ended.returncode}; went on at round {min(rounds)}"
            print(f"{told}: the same {is_same(whole, more)}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["alone"]:
        run_alone(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        main()
