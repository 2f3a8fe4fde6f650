"""Is it as fast as before? Times 25 operations with two source trees, run in turn, and prints the ratios.

    python tools/timed_operations.py OLD/src NEW/src --runs 7
    python tools/timed_operations.py OLD/src NEW/src --runs 3 --only predict

Every run is a process of its own with one of the trees as PYTHONPATH; the trees take turns, so that a machine that
slows down slows both. In a run each operation is done once to warm up, then timed in processor time (of all threads
of the process; libraries are held to one). An operation of less than 0.2 s is timed three times, and the least counts.
The table has the median of the runs for each tree, and their ratio.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

SHORT = 0.2  # seconds below which an operation is timed several times
REPEATS = 3
GOALS = [
    "recall(train) >= 0.75",
    "max_difference(false_positive_rate, train, by=sex) <= 0.1",
    "positive_rate(train) <= 0.6",
]
INSIDE = ["demographic_parity_difference(train, by=sex) <= 0.02", "recall(train) >= 0.85"]  # take 13 rounds
AUDITED = [*GOALS, "precision(train) >= 0.6", "equalized_odds_difference(train, by=sex) <= 0.2"]


@cache
def population(n_classes: int) -> tuple[Any, Any, Any]:
    """Return features, labels and groups of all rows."""
    import numpy as np  # noqa: PLC0415 - the parent process needs none of it
    from sklearn.datasets import make_classification  # noqa: PLC0415

    settings: dict[str, Any] = {"n_informative": 5, "flip_y": 0.1, "class_sep": 1.2, "random_state": 0}
    X, y = make_classification(30_000, 8, n_classes=n_classes, **settings)
    share = np.where(X[:, 0] > 0, 0.4, 0.5)
    return X, y, np.where(np.random.default_rng(0).random(len(y)) < share, "F", "M")


def rows(n_rows: int, n_classes: int = 2) -> tuple[Any, Any, Any]:
    """Return features, labels and a column of groups of the first rows."""
    X, y, sex = population(n_classes)
    return X[:n_rows], y[:n_rows], {"sex": sex[:n_rows]}


@cache
def trained(n_models: int, n_classes: int = 2) -> list[Any]:
    """Return models of scikit-learn that are fitted to other rows."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
    from sklearn.tree import DecisionTreeClassifier  # noqa: PLC0415

    X, y, _ = rows(1000, n_classes)
    models = [LogisticRegression()]
    models += [DecisionTreeClassifier(max_depth=3, max_features=3, random_state=seed) for seed in range(n_models - 1)]
    return [model.fit(X, y) for model in models]


def operations() -> dict[str, Callable[[], Any]]:
    """Return what is timed, by name; models that an operation needs are fitted here, once."""
    import counterpoise as cp  # noqa: PLC0415 - from the source tree that is timed
    from counterpoise.goals import Table, as_goals, bind  # noqa: PLC0415
    from counterpoise.learners import HistogramTree, Stump  # noqa: PLC0415

    X, y, sex = rows(20_000)
    many, _, many_sex = rows(30_000)
    few, few_y, few_sex = rows(5000)
    small, small_y, small_sex = rows(2000)
    X3, y3, sex3 = rows(6000, 3)
    groups = {"sensitive_features": sex}
    many_groups = {"sensitive_features": many_sex}
    prefit: dict[str, Any] = {"cv": "prefit", "random_state": 0, "pos_label": 1}
    model, pool = trained(1), trained(8)

    goal = cp.GoalClassifier(model, goals=GOALS, by="sex", **prefit)
    chosen = goal.fit(X, y, **groups)
    sticky = cp.GoalClassifier(model, goals=GOALS, by="sex", decision="sticky", **prefit).fit(X, y, **groups)
    deferring = cp.GoalClassifier(
        model, deferral=cp.Deferral(0.2), goals="defer_rate(train) <= 0.1", by="sex", **prefit
    )
    three = cp.GoalClassifier(trained(1, 3), cv="prefit", goals="every_class(recall, train) >= 0.5", random_state=0)
    chosen3 = three.fit(X3, y3, sensitive_features=sex3)
    mixture = cp.MixtureClassifier(pool, alpha=0.3, goals="recall(train) >= 0.6", pos_label=1, random_state=0)
    mixed = mixture.fit(X, y, **groups)
    tree: dict[str, Any] = {"estimator": HistogramTree(3), "n_estimators": 20, "random_state": 0}
    inside = cp.LPBoostClassifier(**tree, alpha=0.5, goals=INSIDE, pos_label=1)
    voting: dict[str, Any] = {"estimator": Stump(), "n_estimators": 30, "random_state": 0}
    linear = cp.ConstrainedClassifier(
        goals="positive_rate(train, sex=F) >= 0.9 * positive_rate(train, sex=M)", random_state=0
    )
    decisions = chosen.predict(X, **groups)
    folder = Path(tempfile.mkdtemp(prefix="timed_operations"))
    cp.save(chosen, folder / "saved.cp")
    table = Table(X, y, sex)

    return {
        "GoalClassifier.fit, 20,000 rows": partial(goal.fit, X, y, **groups),
        "GoalClassifier.predict, 30,000 rows": partial(chosen.predict, many, **many_groups),
        "GoalClassifier.predict, sticky": partial(sticky.predict, many, **many_groups),
        "GoalClassifier.decision_proba": partial(sticky.decision_proba, many, **many_groups),
        "GoalClassifier.rebalance(goals)": partial(chosen.rebalance, goals=["recall(train) >= 0.8", *GOALS[1:]]),
        "GoalClassifier.fit, deferral": partial(deferring.fit, X, y, **groups),
        "GoalClassifier.fit, three classes": partial(three.fit, X3, y3, sensitive_features=sex3),
        "GoalClassifier.predict, three classes": partial(chosen3.predict, X3),
        "MixtureClassifier.fit, 8 models": partial(mixture.fit, X, y, **groups),
        "MixtureClassifier.rebalance(alpha)": partial(mixed.rebalance, alpha=0.15),
        "LPBoostClassifier.fit": partial(cp.LPBoostClassifier(**tree, alpha=0.3).fit, few, few_y),
        "LPBoostClassifier.fit, goals": partial(inside.fit, few, few_y, sensitive_features=few_sex),
        "AdaLPBoostClassifier.fit": partial(cp.AdaLPBoostClassifier(**tree, alpha=0.3).fit, few, few_y),
        "DROBoostClassifier.fit": partial(cp.DROBoostClassifier(**voting).fit, few, few_y),
        "VadaBoostClassifier.fit": partial(cp.VadaBoostClassifier(**voting).fit, few, few_y),
        "EBBoostClassifier.fit": partial(cp.EBBoostClassifier(**voting).fit, few, few_y),
        "AdaBoostClassifier.fit": partial(cp.AdaBoostClassifier(**voting).fit, few, few_y),
        "ConstrainedClassifier.fit": partial(linear.fit, small, small_y, sensitive_features=small_sex),
        "audit, 5 goals": partial(cp.audit, AUDITED, decisions, y, pos_label=1, **groups),
        "certify, 5 goals": partial(cp.certify, model[0], AUDITED, X, y, pos_label=1, **groups),
        "explain, 100 rows": partial(chosen.explain, X[:100], sensitive_features={"sex": sex["sex"][:100]}),
        "tradeoff, 10 points": partial(cp.tradeoff, mixed, "recall(train) >= 0.6", n_points=10),
        "save": partial(cp.save, chosen, folder / "again.cp"),
        "load": partial(cp.load, folder / "saved.cp"),
        "reading and binding 5 goals": lambda: bind(as_goals(AUDITED), {"train": table}),
    }


def time_here(only: str) -> dict[str, float]:
    """Return the seconds of processor time of each operation, in this process."""
    from threadpoolctl import threadpool_limits  # noqa: PLC0415

    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        return {name: _least_time(run) for name, run in operations().items() if only in name}


def _least_time(run: Callable[[], Any]) -> float:
    run()
    times = [_timed(run)]
    if times[0] < SHORT:
        # What takes less than 20 ms is done several times in a row: the clock and the caches are too coarse for one.
        in_a_row = max(1, min(20, int(0.02 / max(times[0], 1e-4))))
        times = [sum(_timed(run) for _ in range(in_a_row)) / in_a_row for _ in range(REPEATS)]
    return min(times)


def _timed(run: Callable[[], Any]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def time_tree(source: Path, only: str) -> dict[str, float]:
    """Return the same, in a process that imports the package from a source tree."""
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    settings = os.environ | one_thread | {"PYTHONPATH": str(source.resolve())}
    command = [sys.executable, __file__, "--here", "--only", only]
    done = subprocess.run(command, env=settings, check=True, capture_output=True, text=True)
    told = json.loads(done.stdout.splitlines()[-1])
    if Path(told["source"]).resolve() != source.resolve():
        raise RuntimeError(f"The package was imported from {told['source']}, not from {source}.")
    return dict(told["times"])


def main() -> None:
    """Time both trees in turn and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="*", type=Path, metavar="SRC", help="two source trees: the old, the new")
    parser.add_argument("--runs", type=int, default=7, help="processes for each tree")
    parser.add_argument("--only", default="", help="time operations whose name contains this text")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.here:
        import counterpoise  # noqa: PLC0415 - from PYTHONPATH

        times = time_here(asked.only)
        print(json.dumps({"source": str(Path(counterpoise.__file__).parents[1]), "times": times}))
        return
    if len(asked.sources) != 2:
        parser.error("give two source trees, as in OLD/src NEW/src")
    runs: list[list[dict[str, float]]] = [[], []]
    for number in range(asked.runs):
        for tree in (0, 1) if number % 2 == 0 else (1, 0):
            runs[tree].append(time_tree(asked.sources[tree], asked.only))
            print(f"run {number + 1} of {asked.runs}, {asked.sources[tree]}: done", file=sys.stderr)
    print(f"{'operation':40} {'old, s':>9} {'new, s':>9} {'new/old':>8}")
    ratios = []
    for name in runs[0][0]:
        old, new = (statistics.median(run[name] for run in each) for each in runs)
        ratios.append(new / old)
        print(f"{name:40} {old:9.4f} {new:9.4f} {new / old:8.3f}")
    print(f"{'median of the ratios':40} {'':9} {'':9} {statistics.median(ratios):8.3f}")


if __name__ == "__main__":
    main()
