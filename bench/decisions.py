"""Decisions made of one score: tails and goals on new rows, ours against plain models and the peers.

Usage: python bench/decisions.py [--only NAME ...] [--seeds N] [--parts tail goals] [--methods NAME ...] [--page]

One model is fitted for each set and seed on the rows of training; all methods decide by its scores, choose on the
selection rows, and are judged on test rows. Finished rows of the table are kept, so that a stopped run goes on where
it was. ``--page`` only writes the page. Needs lightgbm, fairlearn, error-parity (with ecos) and oxonfair; a method
whose library is missing is left out.
"""

import argparse
import os
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before any library starts its threads

import numpy as np
from decisions_methods import CROSSED, GOALS, METHODS, ODDS, OURS, Case, Goal, Part
from decisions_page import write_page
from records import Records
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import cross_val_predict

import counterpoise as cp
from counterpoise.metrics import cvar_loss
from papers.datasets import load_dataset

FOLDER = Path(__file__).parent.parent / "docs" / "results" / "decisions"
COLUMNS = ("part", "set", "seed", "method", "question", "bound", "error", "value", "seconds")
N_KEYS = 6
ALPHAS = (0.02, 0.05, 0.1, 0.2)
BUDGETS = (0.0, 0.01, 0.03, 0.05, 0.1, 0.2, None)
MOST_FIT, TRAIN_SHARE, MOST_TEST = 12_000, 0.6, 20_000
FOLDS = 5
TAIL, GOAL = "tail", "goals"
TAIL_PLAIN, TAIL_PLAIN_ALL, TAIL_BOOST = "HistGradientBoosting", "HistGradientBoosting, all rows", "AdaLPBoost"


class Source(NamedTuple):
    """A public set, and the column of the groups; with a value, the rows that have it against all others."""

    name: str
    column: str | None
    value: str | None = None


SETS = {
    "Adult": Source("adult", "sex"),
    "ACS Income": Source("acs-income", "sex"),
    "COMPAS": Source("compas", "race", "African-American"),
    "credit default": Source("credit-default", "sex"),
    "census KDD": Source("census-income", "sex"),
    "donors": Source("donors", None),
}


def parts_of(source: Source, seed: int) -> list[Part]:
    """Return disjoint random rows to train on, to choose on and to test on, not scored yet."""
    data = load_dataset(source.name)
    n_fit = min(MOST_FIT, 2 * len(data.y) // 3)
    n_train = int(TRAIN_SHARE * n_fit)
    rows = np.random.default_rng(seed).permutation(len(data.y))[: n_fit + MOST_TEST]
    return [_part(data, source, one) for one in np.split(rows, [n_train, n_fit])]


def _part(data: Any, source: Source, rows: np.ndarray) -> Part:
    group = np.zeros(len(rows), dtype=int)
    if source.column is not None:
        names = data.sensitive[source.column]
        group = (names[rows] == (source.value or np.unique(names)[1])).astype(int)
    return Part(np.asarray(data.X[rows], dtype=float), np.asarray(data.y[rows]), group, np.zeros(len(rows)))


def scored(model: Any, part: Part) -> Part:
    """Return rows with the scores of a model."""
    return part._replace(scores=model.predict_proba(part.X)[:, 1])


class Measured(NamedTuple):
    """What one decision maker does on test rows."""

    method: str
    question: str
    bound: float | None
    error: float
    value: float  # the tail loss, or that of the goal
    seconds: float


def tail_rows(source: Source, seed: int) -> Iterator[Measured]:
    """Yield tails and errors of plain training, of boosting and of our mixtures of thresholds."""
    train, choose, test = parts_of(source, seed)
    X, y = (np.concatenate([one, other]) for one, other in zip(train[:2], choose[:2], strict=True))
    fit, fit_seconds = timed(lambda: HistGradientBoostingClassifier(random_state=seed).fit(train.X, train.y))
    whole, whole_seconds = timed(lambda: HistGradientBoostingClassifier(random_state=seed).fit(X, y))
    boosted, boost_seconds = timed(lambda: cp.AdaLPBoostClassifier(budget=None, random_state=seed).fit(X, y))
    choose, test = scored(fit, choose), scored(fit, test)
    mixed = cp.GoalClassifier(
        [_identity], cv="prefit", decision="sticky", alpha=ALPHAS[0], confidence=None, random_state=seed
    )
    mixed.fit(choose.scores[:, None], choose.y)
    answers = {
        TAIL_PLAIN: (test.scores > 0.5, fit_seconds),
        TAIL_PLAIN_ALL: (whole.predict_proba(test.X)[:, 1] > 0.5, whole_seconds),
    }
    for alpha in ALPHAS:
        for name, (said, seconds) in answers.items():
            yield _tail(name, alpha, None, test, said, seconds)
        said = boosted.rebalance(alpha=alpha).decision_proba(test.X)[:, 1]
        yield _tail(TAIL_BOOST, alpha, None, test, said, boost_seconds)
        for budget in BUDGETS:
            limit = {} if budget is None else {"budget": budget}
            model, seconds = timed(lambda alpha=alpha, limit=limit: mixed.rebalance(alpha=alpha, **limit))
            yield _tail(OURS, alpha, budget, test, model.decision_proba(test.scores[:, None])[:, 1], seconds)


def _identity(X: np.ndarray) -> np.ndarray:
    return X[:, 0]


def _tail(name: str, alpha: float, budget: float | None, test: Part, said: np.ndarray, seconds: float) -> Measured:
    losses = np.abs(test.y - said)
    return Measured(name, f"alpha {alpha}", budget, float(losses.mean()), float(cvar_loss(losses, alpha)), seconds)


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return what work returns, and its seconds."""
    start = time.perf_counter()
    return work(), time.perf_counter() - start


def goal_case(source: Source, seed: int) -> Case:
    """Return the rows with the scores of one LightGBM."""
    from lightgbm import LGBMClassifier  # noqa: PLC0415 - an optional package

    def model() -> Any:
        return LGBMClassifier(n_estimators=100, num_leaves=15, random_state=seed, n_jobs=1, verbose=-1)

    train, choose, test = parts_of(source, seed)
    fit = model().fit(train.X, train.y)
    both = Part(*map(np.concatenate, zip(train, choose, strict=True)))
    left_out = cross_val_predict(model(), both.X, both.y, cv=FOLDS, method="predict_proba")[:, 1]
    whole = model().fit(both.X, both.y)
    return Case(
        scored(fit, choose), scored(fit, test), both._replace(scores=left_out), scored(whole, test), model, seed
    )


def questions(methods: list[str]) -> Iterator[tuple[str, Goal, float]]:
    """Yield who is asked what: everyone the bounds of the goals, ours those of its frontier too."""
    for goal in GOALS.values():
        for method in methods:
            for bound in sorted({*goal.asked, *goal.frontier}) if method in (OURS, CROSSED) else goal.asked:
                yield method, goal, bound


def asked(case: Case, method: str, goal: Goal, bound: float) -> Measured | None:
    """Return what a method does on the test rows; None where it has no such goal."""
    decide, seconds = timed(lambda: METHODS[method](case, goal, bound))
    if decide is None:
        return None
    said = decide(case)
    error = float(np.abs(case.test.y - said).mean())
    return Measured(method, goal.name, bound, error, goal.value(case.test, said), seconds)


def run_tail(records: Records, title: str, seed: int) -> None:
    """Measure the tails of a set and seed, if they are not all there."""
    last = (TAIL, title, seed, OURS, f"alpha {ALPHAS[-1]}", BUDGETS[-1])
    if not records.has(*last):
        for found in tail_rows(SETS[title], seed):
            if not records.has(TAIL, title, seed, *found[:3]):
                records.add(TAIL, title, seed, *found)


def run_goals(records: Records, title: str, seed: int, methods: list[str]) -> None:
    """Measure the goals of a set and seed, as far as they are not there."""
    waiting = [one for one in questions(methods) if not records.has(GOAL, title, seed, one[0], one[1].name, one[2])]
    if not waiting or SETS[title].column is None:
        return
    case = goal_case(SETS[title], seed)
    METHODS[OURS](case, GOALS[ODDS], 0.1)  # compiles what is compiled once
    for method, goal, bound in waiting:
        try:
            found = asked(case, method, goal, bound)
        except ImportError as error:
            print(f"{method} is left out: {error}")
            continue
        if found is not None:
            records.add(GOAL, title, seed, *found)


def main() -> None:
    """Measure, and write the table and the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=list(SETS), metavar="NAME", help="sets")
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="random splits of each set")
    parser.add_argument("--parts", nargs="*", default=[TAIL, GOAL], metavar="PART", help=f"{TAIL}, {GOAL}")
    parser.add_argument("--methods", nargs="*", default=list(METHODS), metavar="NAME", help="who is asked about goals")
    parser.add_argument("--page", action="store_true", help="measure nothing, write the page of what is there")
    parser.add_argument("--output", type=Path, default=FOLDER, metavar="FOLDER")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    options.output.mkdir(parents=True, exist_ok=True)
    records = Records(options.output / "results.csv", COLUMNS, N_KEYS)
    for seed in range(0 if options.page else options.seeds):
        for title in options.only:
            if TAIL in options.parts:
                run_tail(records, title, seed)
            if GOAL in options.parts:
                run_goals(records, title, seed, options.methods)
    write_page(options.output, records.rows)
    print(f"wrote {options.output}")


if __name__ == "__main__":
    main()
