"""Tables of the slice beside the library.

python -m tools.slice.measure grid --groups 3           # confidence reached, beside a long random search
python -m tools.slice.measure times --rows 5000 200000  # processor time, one threshold
python -m tools.slice.measure groups --rows 3000        # and a threshold for each of 2, 8 and 20 groups
python -m tools.slice.measure problems --number 200     # value and verdict on random problems
"""

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from counterpoise import GoalClassifier
from counterpoise._base.types import FloatArray, IntArray
from counterpoise.goals import InfeasibleGoals
from tools.slice.cells import Cells, Layout, Rows
from tools.slice.margins import SafeRule, choose, safe_rule
from tools.slice.rates import Evaluator, Values
from tools.slice.search import TARGETS, Pool, find_pool, lower_bound, near_frontier, polish

THREE = [0.12, 0.6, 0.28]  # shares of three groups
RECALLS, GAPS = (0.65, 0.7, 0.75), (0.03, 0.04, 0.05, 0.06, 0.07)


class GivenScores(ClassifierMixin, BaseEstimator):
    """A model whose score is the first column."""

    def fit(self, X: Any, y: Any) -> "GivenScores":  # noqa: ARG002 - scikit-learn's signature
        """Learn the classes alone."""
        self.n_features_in_, self.classes_ = np.shape(X)[1], np.array([0, 1])
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the scores as probabilities."""
        return np.column_stack([1 - X[:, 0], X[:, 0]])


def population(n_rows: int, n_groups: int, seed: int = 0) -> tuple[FloatArray, IntArray, IntArray]:
    """Return scores, labels and groups of unequal sizes, of which the third scores higher."""
    rng = np.random.default_rng(seed)
    shares = (
        np.array(THREE) if n_groups == len(THREE) else np.arange(1, n_groups + 1) / np.arange(1, n_groups + 1).sum()
    )
    groups = rng.choice(n_groups, n_rows, p=shares)
    z = rng.normal(size=n_rows) + 0.3 * (groups == 2)
    y = (rng.random(n_rows) < 1 / (1 + np.exp(3 - 1.1 * z))).astype(np.int64)
    return 1 / (1 + np.exp(-z)), y, groups


def names_of(n_groups: int) -> list[list[str]]:
    """Return the column of groups with the texts of its codes."""
    return [["g", *(f"g{number}" for number in range(n_groups))]]


def by_library(data: Any, goals: Any, *, by: Any = (), confidence: float | None = 0.9) -> Any:
    """Return the library's classifier of the same scores."""
    scores, y, groups = data
    X, text = scores[:, None], np.array(names_of(int(groups.max()) + 1)[0][1:])[groups]
    model = GoalClassifier(GivenScores().fit(X, y), goals=goals, by=by, cv="prefit", confidence=confidence)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y, sensitive_features={"g": text})


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return processor seconds and the result; None where goals cannot be met."""
    start = time.process_time()
    try:
        result = call()
    except InfeasibleGoals:
        result = None
    return time.process_time() - start, result


def long_random_search(evaluator: Evaluator, seed: int = 1, rounds: int = 60, number: int = 4000) -> Pool:
    """Return a pool by chance alone: rules drawn anywhere and about equal shares, and draws near the best of them."""
    rng, n_coordinates = np.random.default_rng(seed), evaluator.sizes.size
    shares = np.vstack(
        [rng.random((5 * number, n_coordinates)), np.repeat(rng.random((5 * number, 1)), n_coordinates, axis=1)]
    )
    shares[5 * number :] += 0.1 * rng.random((5 * number, 1)) * rng.normal(size=(5 * number, n_coordinates))
    pool = None
    for _ in range(rounds + 1):
        rules = np.column_stack(
            [np.searchsorted(own, column) for own, column in zip(evaluator.reach, shares.T, strict=True)]
        )
        rules = np.clip(rules, 0, evaluator.sizes - 1)
        new = Pool(rules, evaluator.evaluate(rules))
        if pool is not None:
            both = [np.concatenate(pair) for pair in zip(pool.values, new.values, strict=True)]
            new = Pool(np.vstack([pool.rules, rules]), Values(*both))
        pool = near_frontier(new, 6000)
        parents = pool.rules[rng.choice(np.append(pool.best(TARGETS), rng.integers(0, len(pool.rules), 40)), number)]
        steps = 10.0 ** rng.uniform(-4.0, -0.7, (number, 1)) * rng.normal(size=parents.shape)
        steps *= rng.random(parents.shape) < rng.choice([0.2, 0.5, 1.0], (number, 1))
        shares = np.column_stack([own[column] for own, column in zip(evaluator.reach, parents.T, strict=True)]) + steps
    assert pool is not None  # noqa: S101 - there is a round
    _, first = np.unique(pool.rules, axis=0, return_index=True)
    return pool.only(first)


def grid(n_groups: int, n_rows: int, *, beside: bool) -> None:
    """Print where the confidence is reached, by the slice, by a long random search, and by the library."""
    data = population(n_rows, n_groups)
    rows = Rows.of(data[0], data[1], data[2])
    cells = Cells.count(rows, Layout.of([rows]))
    print("groups recall gap | slice: reached share cost s | random: reached share cost s | library: reached cost s")
    for recall, gap in product(RECALLS, GAPS):
        goals = [f"recall >= {recall}", f"max_difference(selection_rate, by=g) <= {gap}"]
        evaluator = Evaluator(cells, goals, names_of(n_groups))
        line = f"{n_groups} {recall:.2f} {gap:.2f}"
        for search in (find_pool, long_random_search):
            seconds, safe = timed(partial(_search_and_judge, evaluator, search))
            line += f" | {'yes' if safe.is_reached else 'no':3} {safe.share:.3f} {safe.cost:.4f} {seconds:.1f}"
        if beside:
            seconds, model = timed(partial(by_library, data, goals, by="g"))
            line += " | infeasible" if model is None else f" | {model.confidence_} {model.value_:.4f} {seconds:.1f}"
        print(line, flush=True)


def _search_and_judge(evaluator: Evaluator, search: Callable[[Evaluator], Pool]) -> SafeRule:
    return safe_rule(evaluator, search(evaluator))


def times(n_rows: int, n_groups: int | None) -> None:
    """Print processor seconds of both for three goals."""
    data = population(n_rows, 2 if n_groups is None else n_groups)
    goals = ["recall >= 0.7", "selection_rate <= 0.6", "max_difference(false_positive_rate, by=g) <= 0.1"]
    scores, y, groups = data
    names = names_of(int(groups.max()) + 1)
    rows = Rows.of(scores, y, groups)
    if n_groups is None:
        rows, names = Rows.of(scores, y, np.zeros_like(groups), columns={"g": groups}), [["all", "all"], *names]
    start = time.process_time()
    np.sort(scores)
    sort = time.process_time() - start
    own, choice = timed(lambda: choose(rows, goals, names))
    theirs, model = timed(lambda: by_library(data, goals, by=() if n_groups is None else "g"))
    verdict = "infeasible" if model is None else f"{model.confidence_} {model.value_:.5f}"
    print(
        f"{n_rows:>8} rows, {n_groups or 'no':>2} groups: "
        f"slice {own:.2f} s ({choice.safe.is_reached}, {choice.safe.cost:.5f}),"
        f" library {theirs:.2f} s ({verdict}), one sort {sort:.3f} s",
        flush=True,
    )


def problems(number: int) -> None:
    """Print value, gap and verdict of both on random problems: the best rule on the rows, and the one with margins."""
    for seed in range(number):
        rng = np.random.default_rng(1000 + seed)
        n_groups, n_rows = int(rng.integers(1, 5)), int(rng.choice([300, 1000, 3000]))
        scores, y, groups = population(n_rows, n_groups, seed)
        scores = np.round(scores, int(rng.choice([1, 2, 9])))
        if np.unique([groups, y], axis=1).shape[1] < 2 * n_groups:
            print(f"{seed} {n_rows} {n_groups} | a group without a class has no rates", flush=True)
            continue
        goals = [f"recall >= {rng.uniform(0.3, 0.9):.2f}"]
        if rng.random() < 0.5:
            goals.append(f"selection_rate <= {rng.uniform(0.15, 0.7):.2f}")
        if n_groups > 1:
            metric = rng.choice(["selection_rate", "recall", "false_positive_rate", "precision"])
            goals.append(f"max_difference({metric}, by=g) <= {rng.uniform(0.05, 0.3):.2f}")
        rows = Rows.of(scores, y, groups)
        evaluator = Evaluator(Cells.count(rows, Layout.of([rows])), goals, names_of(n_groups))
        own, (pool, lower) = timed(lambda: _plain(evaluator))  # noqa: B023 - called at once
        best = int(pool.best(np.array([-np.inf]))[0])
        value = pool.values.cost[best] if pool.values.violation[best] <= 0 else np.nan
        safe = safe_rule(evaluator, find_pool(evaluator))
        by = "g" if n_groups > 1 else ()
        theirs, model = timed(lambda: by_library((scores, y, groups), goals, by=by, confidence=None))  # noqa: B023
        sure = None if model is None else timed(lambda: by_library((scores, y, groups), goals, by=by))[1]  # noqa: B023
        other = (np.nan, np.nan) if model is None else (model.value_, model.gap_)
        verdict = "none" if sure is None else f"{sure.confidence_} {sure.value_:.4f}"
        print(
            f"{seed} {n_rows} {n_groups} | {value:.5f} {value - lower:.5f} {own:.2f} s | {other[0]:.5f} {other[1]:.5f} "
            f"{theirs:.2f} s | {safe.is_reached} {safe.share:.2f} {safe.cost:.4f} | {verdict} | {'; '.join(goals)}",
            flush=True,
        )


def _plain(evaluator: Evaluator) -> tuple[Pool, float]:
    pool = polish(evaluator, find_pool(evaluator, smooth=False))
    return pool, lower_bound(evaluator, pool.rules[pool.best(np.array([-np.inf, 0.0, 1.0]))])[0]


def main() -> None:
    """Run the command that was given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["grid", "times", "groups", "problems"])
    parser.add_argument("--rows", type=int, nargs="+", default=[30_000])
    parser.add_argument("--groups", type=int, nargs="+", default=[3])
    parser.add_argument("--number", type=int, default=200)
    parser.add_argument("--library", action="store_true", help="time the library in the grid too")
    asked = parser.parse_args()
    for n_rows in asked.rows if asked.command != "problems" else [0]:
        if asked.command == "times":
            times(n_rows, None)
        elif asked.command == "problems":
            problems(asked.number)
        for n_groups in asked.groups if asked.command in {"grid", "groups"} else ():
            grid(n_groups, n_rows, beside=asked.library) if asked.command == "grid" else times(n_rows, n_groups)


if __name__ == "__main__":
    main()
