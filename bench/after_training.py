"""After training: how long ``rebalance`` and ``predict`` of a run of 17 models take, each in its own process.

Usage: COUNTERPOISE_DATA=... python bench/after_training.py [TRIES]

Prints rows of docs/results/benchmarks.md. Rows of Adult (``adult.parquet`` in that folder), of which 26,360
make the run and 6,590 are predicted. Processor seconds are told beside those of the clock; starting up is a process
that imports what every command needs.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

_ROWS, _LATER = 26_360, 6_590
_POOL = {
    "logistic": ({}, {"C": 0.1}, {"C": 0.01}),
    "forest": ({}, {"max_depth": 8}, {"min_samples_leaf": 20}),
    "extra_trees": ({}, {"max_depth": 10}),
    "gradient_boosting": ({}, {"max_leaf_nodes": 15}, {"learning_rate": 0.05}, {"max_depth": 3}),
    "tree": ({}, {"max_depth": 6}),
    "naive_bayes": ({},),
    "histogram_tree": ({},),
    "adaboost": ({"n_estimators": 50},),
}
_HEAD = """
alpha = 0.1
goals = ["recall(train) >= 0.6", "positive_rate(train, sex=Female) >= 0.4 * positive_rate(train, sex=Male)"]
[data]
files = "adult.csv"
target = "y"
positive = 1
groups = ["sex"]
missing = ["?"]
[splits]
validation = 0.25
test = 0.25
[method]
name = "pool"
"""
_START_UP = ("-c", "import numpy, pandas, pyarrow.csv, sklearn.ensemble, counterpoise.runs.use")


class Took(NamedTuple):
    """Seconds of one process."""

    wall: float
    processor: float


def timed(*words: str, folder: Path) -> Took:
    """Run Python with some words, and return how long it took."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run([sys.executable, *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Took(time.monotonic() - started, used)


def write_inputs(folder: Path) -> None:
    """Write the two tables and the goals file."""
    frame = pd.read_parquet(Path(os.environ["COUNTERPOISE_DATA"]) / "adult.parquet").drop(columns=["split", "fnlwgt"])
    order = np.random.default_rng(0).permutation(len(frame))
    frame.iloc[order[:_ROWS]].to_csv(folder / "adult.csv", index=False)
    frame.iloc[order[_ROWS : _ROWS + _LATER]].to_csv(folder / "later.csv", index=False)
    lines = [
        f'[[method.models]]\nname = "{name}"\n' + "".join(f"parameters.{key} = {value}\n" for key, value in one.items())
        for name, several in _POOL.items()
        for one in several
    ]
    (folder / "pool.toml").write_text(_HEAD + "".join(lines))


def best_of(n_times: int, *words: str, folder: Path) -> Took:
    """Return the shortest of a few tries; ``{number}`` in a word is the number of the try."""
    found = [timed(*(word.format(number=number) for word in words), folder=folder) for number in range(n_times)]
    return Took(min(one.wall for one in found), min(one.processor for one in found))


def main(arguments: Sequence[str]) -> None:
    """Print the rows; the number of tries may be given."""
    n_times = int(arguments[0]) if arguments else 3
    program = ("-m", "counterpoise")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(folder)
        rows = {"fit of 17 models": timed(*program, "fit", "pool.toml", folder=folder)}
        rows["start-up"] = best_of(n_times, *_START_UP, folder=folder)
        again = (*program, "fit", "--from", "pool", "--alpha", "0.2", "--output", "again{number}")
        rows["rebalance, with its report"] = best_of(n_times, *again, folder=folder)
        later = (*program, "predict", "pool", "later.csv", "-o", "said.csv")
        rows["predict 6,590 rows"] = best_of(n_times, *later, folder=folder)
        size = (folder / "pool" / "model.cp").stat().st_size
    for what, took in rows.items():
        sys.stdout.write(f"| {what} | {took.wall:.1f} | {took.processor:.1f} |\n")
    sys.stdout.write(f"| model file, MB | {size / 1e6:.1f} | |\n")


if __name__ == "__main__":
    main(sys.argv[1:])
