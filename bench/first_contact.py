"""Time what a newcomer waits for, with nothing compiled yet and again with everything compiled, before and after.

Each row of ``ROWS`` runs in processes of its own: cold, with an empty cache of compiled kernels, then warm, with what
the cold run left. ``Code`` is timed from after the import of numpy and scikit-learn; a ``Command`` as a whole, with the
longest time that it printed nothing for. "Before" is the commit BEFORE, checked out beside. A row that is measured
again replaces its older numbers in ``docs/results/tables/first_contact.csv``.

Usage: python bench/first_contact.py [--only TEXT] [--skip-before] [--repeats N]
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
TABLE_FILE = ROOT / "docs" / "results" / "tables" / "first_contact.csv"
BEFORE = "f67ddb9"
VERSIONS, STATES = ("before", "after"), ("cold", "warm")

DATA = """
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
X, y = make_classification(10_000, 20, random_state=0)
models = [("tree", DecisionTreeClassifier(max_depth=4).fit(X, y)), ("line", LogisticRegression().fit(X, y))]
"""
TABLE = """
import numpy as np, pandas as pd
from sklearn.datasets import make_classification
X, y = make_classification(800, 8, random_state=0)
frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(8)]).assign(group=np.where(X[:, 0] > 0, "a", "b"), bought=y)
frame.to_csv("table.csv", index=False)
open("goals.toml", "w").write('''alpha = 0.2
[data]
files = "table.csv"
target = "bought"
groups = "group"
[method]
name = "adalpboost"
''')
"""


class Code(NamedTuple):
    """Lines of Python that are timed, and those that come first."""

    timed: str
    first: str = ""


class Command(NamedTuple):
    """Words for the command line, and lines of Python that make its files."""

    words: tuple[str, ...]
    first: str = ""


class Row(NamedTuple):
    """One thing that a newcomer waits for."""

    what: str
    target: str  # on two idle cores
    run: Code | Command


def naming(name: str) -> Row:
    """Return the row of importing the package and naming a class."""
    return Row(f"name `{name}`", "cold at most 1 s", Code(f"import counterpoise as cp\ncp.{name}"))


def fitting(call: str, target: str) -> Row:
    """Return the row of importing the package and a first fit on 10,000 rows."""
    code = f"import counterpoise as cp\nmodel = cp.{call}\nmodel.fit(X, y)"
    return Row(f"import, then fit `{call.partition('(')[0]}` on 10,000 rows", target, Code(code, DATA))


ROWS = (
    *map(naming, ("GoalClassifier", "MixtureClassifier", "ConstrainedClassifier", "AdaLPBoostClassifier")),
    *map(naming, ("EBBoostClassifier", "DROBoostClassifier")),
    fitting("GoalClassifier(goals=['recall(train) >= 0.8'], random_state=0)", "cold at most 5 s above warm"),
    fitting("MixtureClassifier(models, goals=['recall(train) >= 0.8'], random_state=0)", "cold at most 5 s above warm"),
    fitting("ConstrainedClassifier(goals=['recall(train) >= 0.8'])", ""),
    fitting("AdaLPBoostClassifier(n_estimators=20, random_state=0)", "cold at most 15 s above warm"),
    fitting("DROBoostClassifier(n_estimators=20, random_state=0)", ""),
    fitting("EBBoostClassifier(n_estimators=20, random_state=0)", ""),
    Row("`counterpoise fit` of 800 rows", "", Command(("fit", "goals.toml", "-o", "run"), TABLE)),
    Row("`counterpoise demo`", "cold at most 40 s", Command(("demo",))),
)


class Time(NamedTuple):
    """How long a run took, and for how long it printed nothing (0 for code)."""

    seconds: float
    cpu: float
    silence: float
    load: float = 0.0  # processes that ran at the same time on average, this one counted


def measure(run: Code | Command, source: Path, cache: Path) -> Time:
    """Run once in a new process and folder."""
    environment = os.environ | {"PYTHONPATH": str(source), "NUMBA_CACHE_DIR": str(cache), "PYTHONWARNINGS": "ignore"}
    with tempfile.TemporaryDirectory() as folder:
        if isinstance(run, Code):
            return _timed_code(run, environment, folder)
        subprocess.run([sys.executable, "-c", run.first], cwd=folder, env=environment, check=True)
        return _timed_command(run.words, environment, folder)


def _timed_code(run: Code, environment: dict[str, str], folder: str) -> Time:
    code = (
        f"import json, time\nimport numpy, sklearn, sklearn.base\n{run.first}\n"
        f"began = time.perf_counter(), time.process_time()\n{run.timed}\n"
        "print(json.dumps([time.perf_counter() - began[0], time.process_time() - began[1]]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    return Time(*json.loads(done.stdout.splitlines()[-1]), 0.0)


def _timed_command(words: tuple[str, ...], environment: dict[str, str], folder: str) -> Time:
    code = "import sys; from counterpoise.cli import main; sys.exit(main())"
    before, began = os.times(), time.perf_counter()
    silence, heard = 0.0, began
    with subprocess.Popen(
        [sys.executable, "-u", "-c", code, *words], cwd=folder, env=environment, stdout=subprocess.PIPE
    ) as process:
        for _line in process.stdout:
            silence, heard = max(silence, time.perf_counter() - heard), time.perf_counter()
    ended, after = time.perf_counter(), os.times()
    if process.returncode != 0:
        raise RuntimeError(f"counterpoise {' '.join(words)} ended with {process.returncode}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Time(ended - began, cpu, max(silence, ended - heard))


@contextmanager
def source_of(version: str) -> Iterator[Path]:
    """Give the package's source: this one, or that of the commit before, checked out beside for the time being."""
    if version == "after":
        yield ROOT / "src"
        return
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "before"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(place), BEFORE], check=True)
        try:
            yield place / "src"
        finally:
            subprocess.run([*git, "remove", "--force", str(place)], check=True)


Times = dict[tuple[str, str, str], Time]  # by row, version and state


def read(path: Path) -> Times:
    """Return the numbers so far."""
    with suppress(FileNotFoundError), path.open(newline="", encoding="utf-8") as file:
        return {tuple(line[:3]): Time(*map(float, line[3:])) for line in list(csv.reader(file))[1:]}
    return {}


def write(times: Times, path: Path) -> None:
    """Write the numbers, in the order of the rows."""
    order = {row.what: place for place, row in enumerate(ROWS)}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["what", "version", "state", *Time._fields])
        for key in sorted(times, key=lambda key: (order.get(key[0], len(order)), key)):
            writer.writerow([*key, *(f"{value:.2f}" for value in times[key])])


def main() -> None:
    """Measure what was asked for, and write the table and the page."""
    parser = argparse.ArgumentParser(description="Cold and warm times of a newcomer's first steps.")
    parser.add_argument("--only", default="", metavar="TEXT", help="only rows whose name contains TEXT")
    parser.add_argument("--skip-before", action="store_true", help="measure this version alone")
    parser.add_argument("--repeats", type=int, default=1, help="runs of each, of which the fastest counts")
    options = parser.parse_args()
    times = read(TABLE_FILE)
    for version in VERSIONS[options.skip_before :]:
        with source_of(version) as source:
            for row in (row for row in ROWS if options.only in row.what):
                found = [_cold_and_warm(row.run, source) for _ in range(options.repeats)]
                for state, runs in zip(STATES, zip(*found, strict=True), strict=True):
                    best = min(runs)._replace(load=os.getloadavg()[0])
                    times[row.what, version, state] = best
                    print(f"{version:7} {state}  {best.seconds:6.1f} s ({best.cpu:.1f})  {row.what}", flush=True)
                write(times, TABLE_FILE)


def _cold_and_warm(run: Code | Command, source: Path) -> list[Time]:
    with tempfile.TemporaryDirectory() as cache:
        return [measure(run, source, Path(cache)) for _ in STATES]


if __name__ == "__main__":
    main()
