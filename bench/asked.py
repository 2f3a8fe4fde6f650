"""What the project asks of its speed, and the benchmarks of it that stand in no other file: folds, import, errors.

``ASKED`` is the summary of the page: a line for each, with the number that is asked and how it is measured.
"""

import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from statistics import geometric_mean
from typing import Any, NamedTuple

import numpy as np
from harness import Benchmark, children_time
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parent.parent))
from counterpoise import GoalClassifier
from papers.markdown import markdown_table

N_FOLDS = 5
COMMAND = "import sys; from counterpoise.cli import main; sys.exit(main())"
GOALS = """goals = ["recall(train) >= 0.8"]
[data]
files = "table.csv"
target = "y"
"""
FILES = {
    "table.csv": "x,y\n1,0\n2,1\n",
    "goals.toml": GOALS,
    "key.toml": f"alfa = 0.2\n{GOALS}",
    "metric.toml": GOALS.replace("recall", "recal"),
    "goal.toml": GOALS.replace(" >= 0.8", " >= "),
    "syntax.toml": "alpha = = 2\n",
    "no_data.toml": GOALS.replace("table.csv", "nothing.csv"),
}
ERRORS = (
    *("fitt goals.toml", "fit goals.toml --unknown 3", "fit nothing.toml", "fit syntax.toml", "fit key.toml"),
    *("fit metric.toml", "fit goal.toml", "fit no_data.toml", "goals recal>=1", "init nothing.csv --target y"),
    *("audit nothing table.csv", "predict nothing table.csv -o p.csv", "explain nothing table.csv"),
    *("fit --from nothing -o new", "monitor nothing table.csv", "explore nothing", "report nothing"),
    *("report nothing none", "alternatives nothing", "report nothing --pack new.zip", "plan goals.toml"),
    *("apply nothing.json nothing.csv --ids x -o d.csv", "data fetch nothing"),
    *("choose nothing.csv --target y --score x --goal recall>=0.8 -o r.json",),
    *("audit table.csv --target y --prediction x --goal recal>=0.8",),
)


@cache
def data(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of two classes that overlap."""
    return make_classification(n_rows, 20, n_informative=10, flip_y=0.1, class_sep=0.7, random_state=0)


def model() -> HistGradientBoostingClassifier:
    """Return a model whose probabilities are inside (0, 1), so that none is trained again after the folds."""
    return HistGradientBoostingClassifier(early_stopping=False, random_state=0)


def with_goals(n_rows: int) -> GoalClassifier:
    """Train in folds, and choose a rule inside two goals."""
    goals = ["recall >= 0.8", "positive_rate <= 0.6"]
    with threadpool_limits(1):  # threads that wait for others would count
        return GoalClassifier(model(), goals=goals, confidence=None, random_state=0).fit(*data(n_rows))


def folds_alone(n_rows: int) -> float:
    """Train and score the same folds, and return the error of the scores."""
    X, y = data(n_rows)
    wrong = 0
    with threadpool_limits(1):
        for train, test in StratifiedKFold(N_FOLDS, shuffle=True, random_state=0).split(X, y):
            fitted = clone(model()).fit(X[train], y[train])
            wrong += int(((fitted.predict_proba(X[test])[:, 1] > 0.5) != y[test]).sum())
    return wrong / y.size


def folds(n_rows: int) -> Benchmark:
    """Compare with the training of the folds alone."""
    return Benchmark(
        name="GoalClassifier, confidence=None",
        size=f"{n_rows} x 20",
        ours=partial(with_goals, n_rows),
        floor=lambda _model: 0.0,
        floor_means="none: see its peer",
        peer_name=f"its {N_FOLDS} folds alone",
        peer=partial(folds_alone, n_rows),
        difference=lambda ours, error: abs(float(ours.value_) - error),
        tolerance=0.1,  # goals cost some error: this says that both have learned
    )


def process(code: str, words: Sequence[str], expected: int) -> None:
    """Run Python on code and words, in the folder of the files."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", code, *words]
    done = subprocess.run(command, cwd=_folder(), env=environment, capture_output=True, check=False)
    if done.returncode != expected:
        raise RuntimeError(f"{words} ended with {done.returncode}: {done.stderr.decode()}")


@cache
def _folder() -> str:
    folder = tempfile.mkdtemp()
    for name, text in FILES.items():
        (Path(folder) / name).write_text(text)
    return folder


def alone(name: str, size: str, code: str, words: Sequence[str], expected: int) -> Benchmark:
    """Time a process of its own, the start of Python included; the first run writes bytecode."""
    return Benchmark(
        name=name,
        size=size,
        ours=partial(process, code, words, expected),
        floor=lambda _: 0.0,
        floor_means="none",
        repeats=5,
        clock=children_time,
    )


def quick() -> Iterator[Benchmark]:
    """Yield what runs in about a minute."""
    yield folds(4_000)
    yield from _processes(ERRORS[:3])


def full() -> Iterator[Benchmark]:
    """Yield the sizes that are asked for."""
    yield folds(36_000)
    yield from _processes(ERRORS)


def _processes(errors: Sequence[str]) -> Iterator[Benchmark]:
    yield alone("import counterpoise", "a new process", "import counterpoise", (), 0)
    for words in errors:
        yield alone("error of a command", words, COMMAND, words.split(), 2)


class Asked(NamedTuple):
    """A number that is asked for; ``value`` is measured over the rows that ``rows`` chooses, and is none of no rows."""

    what: str
    rows: Callable[[dict[str, Any]], bool]
    value: Callable[[list[dict[str, Any]]], float]
    asked: float
    at_least: bool = False


def _share(rows: list[dict[str, Any]]) -> float:
    return max(row["seconds"] / row["peer_seconds"] for row in rows)


def _boosting(depth: int, asked: float) -> Asked:
    name = f"boost 100 trees of depth {depth}"
    return Asked(
        f"{name}, 100000 x 50: our time over LightGBM's",
        lambda row: (row["benchmark"], row["peer"], row["size"]) == (name, "LightGBM", "100000 x 50"),
        _share,
        asked,
    )


ASKED = (
    _boosting(1, 0.8),
    _boosting(5, 1.0),
    Asked(
        "mixtures, 100000 x 100: time of HiGHS on weights over ours, geometric mean of six",
        lambda row: row["peer"] == "HiGHS on weights" and row["size"] == "100000 x 100",
        lambda rows: geometric_mean(row["ratio"] for row in rows),
        200.0,
        at_least=True,
    ),
    Asked(
        "GoalClassifier, 36000 rows: its time over that of its folds",
        lambda row: row["benchmark"].startswith("GoalClassifier") and row["size"] == "36000 x 20",
        _share,
        1.1,
    ),
    Asked(
        "import counterpoise, seconds, the start of Python included",
        lambda row: row["benchmark"] == "import counterpoise",
        lambda rows: rows[0]["seconds"],
        0.05,
    ),
    Asked(
        "errors of commands that need no data, seconds, the longest",
        lambda row: row["benchmark"] == "error of a command",
        lambda rows: max(row["seconds"] for row in rows),
        0.5,
    ),
)


def summary(rows: list[dict[str, Any]]) -> str:
    """Return the table of what is asked for and what was measured."""
    lines = []
    for one in ASKED:
        own = [row for row in rows if one.rows(row)]
        value = one.value(own) if own else math.nan
        is_met = value >= one.asked if one.at_least else value <= one.asked
        words = f"at {'least' if one.at_least else 'most'} {one.asked:g}"
        lines.append(
            [one.what, words, f"{value:.3g}", str(len(own)), "yes" if is_met else "no"]
            if own
            else [one.what, words, "not measured", "0", ""]
        )
    return markdown_table(["what", "asked", "measured", "rows", "met"], lines)
