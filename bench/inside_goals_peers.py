"""Boosting inside goals beside fairlearn's ExponentiatedGradient: error at equal violation, fits and seconds.

Usage: python bench/inside_goals_peers.py [--splits N] [--sets NAME ...] [--output docs/results/inside_goals]

The same learner, LightGBM of 30 trees, on the same rows, one after the other in a process of one thread, whose processor
seconds count. Both are
asked for what ExponentiatedGradient means by a bound of 0.02: the rate of each group is that near to the rate of all rows
(``EqualizedOdds``: among the rows of each label). Neither looks at the group when it decides, and both choose on the
training rows. The violation is the largest such distance on test rows. Ours is asked for other bounds too, with the same
models and without training, so that its error at the other's violation is read off its own points.

Churn, on unlabelled rows beside parity, cannot be stated in ExponentiatedGradient: there the peer is the first model, plain
training. One long table, ``results.csv``; the page is made from it.
"""

import argparse
import csv
import os
import time
import warnings
from collections.abc import Iterable
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before any library starts its threads

import numpy as np
from scipy import stats

from counterpoise import LPBoostClassifier
from counterpoise.datasets import load_dataset
from counterpoise.goals import Table

SETS = ("adult", "acs-income", "compas", "credit-default")
BOUND = 0.02
BOUNDS = (BOUND, 0.005, 0.01, 0.015, 0.025, 0.03, 0.04, 0.06)  # the first is trained for
MOST_ROWS = 20_000  # of a set, half of them to train on
TREES = 30
CHURN = 0.05
NEAR = "abs({rate}(train, sex={sex}) - {rate}(train)) <= {bound}"
RATES = {
    "demographic parity": ("positive_rate",),
    "equalized odds": ("recall", "false_positive_rate"),
    "recall by group": ("recall",),
    "parity and churn": ("positive_rate",),
}
OURS, PEER, PLAIN = "inside goals", "ExponentiatedGradient", "plain training"
COLUMNS = ("set", "question", "split", "method", "fits", "seconds", "violation", "error", "error_at_equal", "churn")


class Split(NamedTuple):
    """Rows to train on and to test on; the features of another part are unlabelled."""

    X: np.ndarray
    y: np.ndarray
    sex: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    sex_test: np.ndarray


class Outcome(NamedTuple):
    """What a method came to, with the chance that each test row is called positive for each bound."""

    n_fits: int
    seconds: float
    chances: list[np.ndarray]


def split_of(name: str, seed: int) -> Split:
    """Return a random half of a public set to train on, the other to test on."""
    data = load_dataset(name)
    order = np.random.default_rng(seed).permutation(len(data.y))[:MOST_ROWS]
    train, test = np.array_split(order, 2)
    y, sex = np.asarray(data.y).astype(int), np.asarray(data.sensitive["sex"]).astype(str)
    X = np.asarray(data.X, dtype=np.float64)
    return Split(X[train], y[train], sex[train], X[test], y[test], sex[test])


def learner() -> Any:
    """Return the learner that everyone uses."""
    from lightgbm import LGBMClassifier  # noqa: PLC0415 - optional

    return LGBMClassifier(n_estimators=TREES, verbose=-1, n_jobs=1, random_state=0)


def goals_of(question: str, groups: Iterable[str], bound: float) -> list[str]:
    """Return a question as goals."""
    goals = [NEAR.format(rate=rate, sex=sex, bound=bound) for rate in RATES[question] for sex in groups]
    return [*goals, f"churn(mail) <= {CHURN}"] if question.endswith("churn") else goals


def inside(part: Split, question: str, mail: Table | None) -> Outcome:
    """Boost inside goals; other bounds choose among the same models."""
    groups, datasets = np.unique(part.sex), {} if mail is None else {"mail": mail}
    goals = [goals_of(question, groups, bound) for bound in BOUNDS]
    start = time.process_time()
    model = LPBoostClassifier(learner(), goals=goals[0], n_estimators=30, alpha=1.0, n_folds=None, random_state=0)
    model.fit(part.X, part.y, sensitive_features={"sex": part.sex}, datasets=datasets)
    seconds = time.process_time() - start
    models = [model, *(model.rebalance(goals=others) for others in goals[1:] if mail is None)]
    return Outcome(len(model.estimators_), seconds, [one.predict_proba(part.X_test)[:, 1] for one in models])


def exponentiated(part: Split, question: str) -> Outcome:
    """Run fairlearn's reduction."""
    from fairlearn import reductions  # noqa: PLC0415 - optional

    kinds = {"demographic parity": "DemographicParity", "equalized odds": "EqualizedOdds"}
    constraint = getattr(reductions, kinds.get(question, "TruePositiveRateParity"))(difference_bound=BOUND)
    start = time.process_time()
    model = reductions.ExponentiatedGradient(learner(), constraint, eps=BOUND)
    model.fit(part.X, part.y, sensitive_features=part.sex)
    seconds = time.process_time() - start
    chances = model._pmf_predict(part.X_test)[:, 1]  # noqa: SLF001 - it has no other way
    return Outcome(model.n_oracle_calls_, seconds, [chances])


def violation_of(question: str, part: Split, chances: np.ndarray) -> float:
    """Return how far the rate of a group is from that of all rows at most, on test rows."""
    rows = {"positive_rate": np.ones(len(part.y_test), bool), "recall": part.y_test == 1}
    rows["false_positive_rate"] = part.y_test == 0
    found = [
        abs(chances[rows[rate] & (part.sex_test == sex)].mean() - chances[rows[rate]].mean())
        for rate in RATES[question]
        for sex in np.unique(part.sex)
    ]
    return float(max(found))


def error_of(part: Split, chances: np.ndarray) -> float:
    """Return how often test rows are called wrong."""
    return float(np.abs(chances - part.y_test).mean())


def error_at(violation: float, points: list[tuple[float, float]]) -> float:
    """Return the error of a method at a violation, between its points, the nearest one beyond them."""
    found = np.array(sorted(points))
    return float(np.interp(violation, found[:, 0], found[:, 1]))


def plain(part: Split) -> tuple[Any, Outcome]:
    """Fit the learner once, without goals; also a deployed model of half of the rows."""
    deployed = learner().fit(part.X[::2], part.y[::2])
    start = time.process_time()
    model = learner().fit(part.X, part.y)
    return deployed, Outcome(1, time.process_time() - start, [model.predict(part.X_test).astype(float)])


def compared(name: str, question: str, seed: int) -> Iterable[dict[str, Any]]:
    """Yield the row of each method."""
    part = split_of(name, seed)
    mail, deployed = None, None
    if question.endswith("churn"):
        deployed, peer = plain(part)
        half = len(part.X_test) // 2
        mail = Table(part.X_test[:half], baseline=deployed.predict(part.X_test[:half]))
        said = deployed.predict(part.X_test[half:])
        part = part._replace(X_test=part.X_test[half:], y_test=part.y_test[half:], sex_test=part.sex_test[half:])
        peer = peer._replace(chances=[peer.chances[0][half:]])
    else:
        peer = exponentiated(part, question)
    ours = inside(part, question, mail)
    points = [(violation_of(question, part, one), error_of(part, one)) for one in ours.chances]
    reached = violation_of(question, part, peer.chances[0])
    equal = {OURS: error_at(reached, points), PEER: error_of(part, peer.chances[0]), PLAIN: ""}
    for method, found in ((PLAIN if mail else PEER, peer), (OURS, ours)):
        chances = found.chances[0]
        churn = "" if mail is None else round(float(np.abs(chances - said).mean()), 5)
        row = (name, question, seed, method, found.n_fits, round(found.seconds, 3))
        row += (round(violation_of(question, part, chances), 5), round(error_of(part, chances), 5))
        row += ("" if mail or not equal[method] else round(equal[method], 5), churn)
        yield dict(zip(COLUMNS, row, strict=True))


def page(rows: list[dict[str, Any]]) -> str:
    """Return the page of a table of results."""
    lines = [
        "# Training inside goals beside ExponentiatedGradient",
        "",
        f"Means over random splits of at most {MOST_ROWS:,} rows, half to train on; LightGBM of {TREES} trees on one thread",
        "for everyone. Both are asked that each group's rate is within 0.02 of that of all rows (`sex`, which neither looks at).",
        "*Violation*: the largest distance on test rows. *Error at equal violation*: ours at the other's violation, between",
        "its points for other bounds, which need no training. The difference, ours less the other's, has the 95 % interval of a",
        "paired t test over splits. `counterpoise`, fairlearn "
        f"{version('fairlearn')}, LightGBM {version('lightgbm')}; `python bench/inside_goals_peers.py`.",
        "",
        "| set | goal | splits | fits, ours / its | seconds, ours / its | violation, ours / its | error at equal violation,"
        " ours / its | difference in points |",
        "|---|---|---|---|---|---|---|---|",
    ]
    churns = ["", "| set | splits | fits | seconds | violation, ours / plain | churn, ours / plain | error, ours / plain |",
              "|---|---|---|---|---|---|---|"]  # fmt: skip
    for name, question in dict.fromkeys((row["set"], row["question"]) for row in rows):
        here = [row for row in rows if (row["set"], row["question"]) == (name, question)]
        ours = [row for row in here if row["method"] == OURS]
        other = [row for row in here if row["method"] != OURS]
        if question.endswith("churn"):
            both = [_both(ours, other, column, ".4f") for column in ("violation", "churn", "error")]
            churns.append(f"| {name} | {len(ours)} | {_mean(ours, 'fits'):.1f} | {_mean(ours, 'seconds'):.2f} | "
                          + " | ".join(both) + " |")  # fmt: skip
            continue
        differences = 100 * (_values(ours, "error_at_equal") - _values(other, "error_at_equal"))
        room = stats.t.ppf(0.975, len(ours) - 1) * differences.std(ddof=1) / np.sqrt(len(ours))
        both = [_both(ours, other, *one) for one in (("fits", ".1f"), ("seconds", ".2f"), ("violation", ".4f"))]
        both.append(_both(ours, other, "error_at_equal", ".4f"))
        told = f"{differences.mean():+.2f} ({differences.mean() - room:+.2f} to {differences.mean() + room:+.2f})"
        lines.append(f"| {name} | {question} | {len(ours)} | {' | '.join(both)} | {told} |")
    title = [
        "",
        f"Parity within 0.02 and churn on unlabelled rows of at most {CHURN}, which ExponentiatedGradient cannot state;",
    ]
    title.append("beside plain training. The deployed model was trained on half of the rows.")
    return "\n".join([*lines, *title, *churns, ""])


def _values(rows: list[dict[str, Any]], column: str) -> np.ndarray:
    return np.array([float(row[column]) for row in rows])


def _mean(rows: list[dict[str, Any]], column: str) -> float:
    return float(_values(rows, column).mean())


def _both(ours: list[dict[str, Any]], other: list[dict[str, Any]], column: str, digits: str) -> str:
    return f"{_mean(ours, column):{digits}} / {_mean(other, column):{digits}}"


def main() -> None:
    """Compare, and write the table and its page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--questions", nargs="+", default=list(RATES))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--output", type=Path)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    inside(split_of("compas", 0), "equalized odds", None)  # compiles
    rows = []
    for seed, name, question in product(range(asked.splits), asked.sets, asked.questions):
        for row in compared(name, question, seed):
            rows.append(row)
            print(*row.values(), sep=", ", flush=True)
        if asked.output is not None and seed > 0:
            write(rows, asked.output)


def write(rows: list[dict[str, Any]], folder: Path) -> None:
    """Write the table and its page."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "results.csv", "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    (folder / "README.md").write_text(page(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
