"""Choose rules under three goals on rows in Parquet files that need not fit into memory: time, peak, linearity.

    python bench/out_of_core.py FOLDER [N_ROWS ...]

Generates the files where they are not there yet, 20 float32 columns in row groups of 500,000. A process of its own,
whose peak is told, chooses on all of them with a model that is there; another does what ``counterpoise fit`` does: it
trains on a sample, tests on a fifth of the rows, and chooses on all others. The floor is one read of the files.
"""

import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.linear_model import LogisticRegression

from counterpoise import GoalClassifier
from counterpoise.distributed.files import choose_from_files
from counterpoise.runs import fit_run

N_FEATURES, GROUP = 20, 500_000
SIZES = (5_000_000, 20_000_000, 50_000_000)
GOALS = [
    "abs(positive_rate(train, sex=F) - positive_rate(train, sex=M)) <= 0.02",
    "recall(train) >= 0.6",
    "positive_rate(train, region=north) >= 0.8 * positive_rate(train, region=south)",
]

FIT = """
alpha = 0.3
goals = {goals}
[data]
files = {files}
target = "label"
groups = ["sex", "region"]
sample = 100000
[method]
models = [{{name = "logistic"}}]
parameters = {{decision = "sticky"}}
"""


def make(path: Path, n_rows: int) -> None:
    """Write rows whose label follows some of the columns, less so for one of the groups."""
    path.mkdir(parents=True, exist_ok=True)
    size = min(GROUP, n_rows // 2)  # of a row group: two workers have one each at least
    for number, first in enumerate(range(0, n_rows, 5_000_000)):
        file = path / f"{number:03}.parquet"
        if not file.exists():
            tables = [_table(first + start, size) for start in range(0, min(5_000_000, n_rows - first), size)]
            with pq.ParquetWriter(file.with_suffix(".part"), tables[0].schema, compression="none") as writer:
                for table in tables:
                    writer.write_table(table)
            file.with_suffix(".part").rename(file)


def _table(seed: int, n_rows: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, N_FEATURES), dtype=np.float32)
    sex, region = rng.integers(0, 2, n_rows), rng.integers(0, 3, n_rows)
    label = X[:, 0] + X[:, 1] + 0.4 * sex + 0.2 * region + rng.standard_normal(n_rows, dtype=np.float32) > 1
    named = {f"x{number}": X[:, number] for number in range(N_FEATURES)}
    words = {
        "sex": pa.array(np.array(["F", "M"])[sex]),
        "region": pa.array(np.array(["north", "south", "west"])[region]),
    }
    return pa.table({**named, **words, "label": label.astype(np.int8)})


def measure(folder: Path) -> None:
    """Choose on all rows of a folder, and print what it took."""
    sample = pq.ParquetFile(min(folder.glob("*.parquet"))).read_row_group(0).to_pandas()
    features = [f"x{number}" for number in range(N_FEATURES)]
    scorer = LogisticRegression().fit(sample[features][:100_000], sample.label[:100_000])
    model = GoalClassifier(
        [scorer], cv="prefit", decision="sticky", alpha=0.3, goals=GOALS, random_state=0, confidence=None
    )
    start, used = time.perf_counter(), time.process_time()
    found = choose_from_files(model, folder, "label", sensitive_features=["sex", "region"], folder=folder.parent)
    told = {
        "seconds": round(time.perf_counter() - start, 1),
        "processor_seconds": round(time.process_time() - used, 1),
        "peak_GiB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "passes": found.n_passes_,
        "value": round(found.value_, 5),
        "gap": float(f"{found.gap_:.2g}"),
        "rules": len(found.rules_),
        "holds": all(check.holds for check in found.check_goals()),
    }
    print(json.dumps(told))


def measure_fit(folder: Path) -> None:
    """Fit a goals file on all rows of a folder, and print what it took, and when each part of it was done."""
    files = [str(file) for file in sorted(folder.glob("*.parquet"))]
    start, reached = time.perf_counter(), {}
    with TemporaryDirectory(dir=folder.parent) as work:
        goals_file = Path(work) / "goals.toml"
        goals_file.write_text(FIT.format(goals=json.dumps(GOALS), files=json.dumps(files)))
        run = fit_run(goals_file, on_event=lambda event: reached.update({event: time.perf_counter() - start}))
        told = {
            "seconds": round(time.perf_counter() - start, 1),
            "processor_seconds": round(time.process_time(), 1),
            "peak_GiB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
            "reached": {event.partition(" ")[0]: round(at, 1) for event, at in reached.items()},
            "verdicts": [goal.verdict for goal in run.summary().goals],
        }
    print(json.dumps(told))


def main() -> None:
    """Measure one size after the other."""
    ways = {"--measure": measure, "--fit": measure_fit}
    if sys.argv[1] in ways:
        ways[sys.argv[1]](Path(sys.argv[2]))
        return
    for n_rows in [int(float(text)) for text in sys.argv[2:]] or SIZES:
        folder = Path(sys.argv[1]) / str(n_rows)
        make(folder, n_rows)
        start = time.perf_counter()
        for file in sorted(folder.glob("*.parquet")):
            for group in range(pq.ParquetFile(file).num_row_groups):
                pq.ParquetFile(file).read_row_group(group)
        floor = time.perf_counter() - start
        for way in ways:
            command = [sys.executable, __file__, way, str(folder)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            print(f"{n_rows:>12,} rows, one read {floor:.1f} s, {way}: {done.stdout.strip()}", flush=True)


if __name__ == "__main__":
    main()
