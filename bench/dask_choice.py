"""How long, and in how much memory, rules are chosen over Dask on Parquet files of many rows.

    python bench/dask_choice.py FOLDER [N_ROWS]

Writes N_ROWS rows (10,000,000) of 20 float32 columns, a group and a label into FOLDER, and chooses a threshold for each
group of a logistic regression under two goals, with margins, in two worker processes of one thread. One worker is
killed in a second choice, which must find the same rule. On the first 1,000,000 rows the rule is that of
``GoalClassifier``.
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
from distributed import Client, LocalCluster
from sklearn.linear_model import LogisticRegression

from counterpoise import GoalClassifier
from counterpoise.distributed import DaskGoalClassifier

N_FEATURES, N_OF_FILE, N_OF_GROUP = 20, 500_000, 100_000
FEATURES = [f"f{place}" for place in range(N_FEATURES)]
GOALS = ["recall >= 0.6", "positive_rate(sex=F) >= 0.9 * positive_rate(sex=M)"]


def made(number: int) -> pd.DataFrame:
    """Return the rows of a file."""
    generator = np.random.default_rng(number)
    X = generator.normal(size=(N_OF_FILE, N_FEATURES)).astype(np.float32)
    is_woman = generator.random(N_OF_FILE) < 0.4
    chance = 1 / (1 + np.exp(1 - X[:, 0] - X[:, 1] * X[:, 2] + 0.5 * is_woman))
    label = (generator.random(N_OF_FILE) < chance).astype(np.int8)
    return pd.DataFrame(X, columns=FEATURES).assign(sex=np.where(is_woman, "F", "M"), label=label)


def peak() -> float:
    """Return the most memory that this process has held, in GiB."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 2**20


def chosen(files: list[str], scorer: LogisticRegression) -> DaskGoalClassifier:
    """Return the classifier whose rule is chosen on the files."""
    model = DaskGoalClassifier(scorer, cv="prefit", goals=GOALS, by="sex")
    return model.fit(files, "label", sensitive_features=["sex"])


def main(folder: Path, n_rows: int) -> None:
    """Print the figures."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [str(folder / f"{number:04d}.parquet") for number in range(n_rows // N_OF_FILE)]
    for number, path in enumerate(files):
        if not Path(path).exists():
            made(number).to_parquet(path, row_group_size=N_OF_GROUP)
    sample = made(10_000)[:100_000]
    scorer = LogisticRegression().fit(sample[FEATURES], sample.label)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        started = time.monotonic()
        model = chosen(files, scorer)
        print(f"{n_rows} rows: {time.monotonic() - started:.1f} s, {model.n_passes_} passes, {model.confidence_}")
        print("GiB a worker at most:", [round(one, 2) for one in client.run(peak).values()])
        few = chosen(files[:2], scorer)
        pid = next(iter(client.run(os.getpid).values()))
        threading.Timer(3.0, os.kill, (pid, signal.SIGKILL)).start()
        again = chosen(files, scorer)
        print("the same rule although a worker was killed:", again.rules_ == model.rules_)
    frame = pd.concat([pd.read_parquet(path) for path in files[:2]], ignore_index=True)
    twin = GoalClassifier(scorer, cv="prefit", goals=GOALS, by="sex")
    twin.fit(frame[FEATURES], frame.label, sensitive_features=frame[["sex"]])
    print(f"{len(frame)} rows over Dask: {few.rules_} {few.value_:.6f}")
    print(f"{len(frame)} rows in memory: {twin.rules_} {twin.value_:.6f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(float(sys.argv[2])) if len(sys.argv) > 2 else 10_000_000)
