"""What goals come to on new rows by who decides: the models of the folds, one trained on all rows, or a split.

Usage: python bench/bias.py [--only NAME ...] [--models NAME ...] [--splits N] [--resume] [--page] [--output FOLDER]

For each set and random split: models are trained on the rows of each fold, on all rows, and on 70 % of them; rules are
chosen on the scores of the rows left out of the folds, for the first two ways, and on the other 30 %. Each way is
judged on test rows in expectation over its draws. ``--resume`` keeps the rows that the results hold already, ``--page``
only writes the page. Everything runs on one core.
"""

import os
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before any library starts its threads

import numpy as np
from bias_page import write_page
from records import Records, arguments, records_of
from sklearn.ensemble import HistGradientBoostingClassifier

import counterpoise as cp
from counterpoise.datasets import load_dataset
from counterpoise.mixtures.answers import Positive
from counterpoise.mixtures.folds import Training, splits_of, unheard

FOLDER = Path(__file__).parent.parent / "docs" / "results" / "bias"
COLUMNS = ("model", "set", "rows", "split", "goal", "bound", "way", "rate", "error")
N_KEYS = 7
N_FOLDS, HELD_OUT, MOST_TEST = 5, 0.3, 20_000
FOLDS, REFIT, SPLIT = "fold models", "refit", "30 % split"
MISSES = "false_negative_rate(train)"
GAP = "positive_rate(train, group=1) - positive_rate(train, group=0)"


class Source(NamedTuple):
    """A public set, the group that is compared with all others, and the bound on the difference that binds there."""

    name: str
    column: str
    value: str
    gap: float


class Goal(NamedTuple):
    """A rate with a bound, and what is made small inside it; without an objective the error."""

    rate: str
    sign: str
    bound: float | None  # None: that of the set
    objective: str | None = None
    by: tuple[str, ...] = ()


class Rows(NamedTuple):
    """Rows with labels and groups of 0 and 1."""

    X: np.ndarray
    y: np.ndarray
    group: np.ndarray

    def take(self, rows: np.ndarray) -> "Rows":
        """Return some of the rows."""
        return Rows(*(part[rows] for part in self))


COMPAS = Source("compas", "race", "African-American", 0.05)
CREDIT = Source("credit-default", "sex", "Male", 0.0)
ADULT = Source("adult", "sex", "Male", 0.05)
ACS = Source("acs-income", "sex", "Male", 0.05)
SETS = {
    "COMPAS, 1,000": (COMPAS, 1000),
    "COMPAS, 4,000": (COMPAS, 4000),
    "credit default, 2,400": (CREDIT, 2400),
    "credit default, 5,000": (CREDIT, 5000),
    "credit default, 9,000": (CREDIT, 9000),
    "credit default, 20,000": (CREDIT, 20000),
    "Adult, 5,000": (ADULT, 5000),
    "Adult, 12,000": (ADULT, 12000),
    "Adult, 28,000": (ADULT, 28000),
    "ACS Income, 50,000": (ACS, 50000),
}
GOALS = {
    "recall": Goal("recall(train)", ">=", 0.8),
    "coverage": Goal("positive_rate(train)", "<=", 0.3, MISSES),
    "false positives": Goal("false_positive_rate(train)", "<=", 0.1, MISSES),
    "difference": Goal(GAP, "<=", None, by=("group",)),
}


def model_named(name: str, seed: int) -> Any:
    """Return an unfitted model."""
    if name == "LightGBM":
        from lightgbm import LGBMClassifier  # noqa: PLC0415 - an optional package

        return LGBMClassifier(random_state=seed, n_jobs=1, verbose=-1)
    return HistGradientBoostingClassifier(random_state=seed)


MODELS = ("HistGradientBoosting", "LightGBM")


def rows_of(source: Source, n_train: int, seed: int) -> tuple[Rows, Rows]:
    """Return random rows to train on, and others to judge by."""
    every = loaded(source)
    order = np.random.default_rng(seed).permutation(every.y.size)[: n_train + MOST_TEST]
    return every.take(order[:n_train]), every.take(order[n_train:])


@cache
def loaded(source: Source) -> Rows:
    """Return all rows of a set."""
    data = load_dataset(source.name)
    group = (data.sensitive[source.column] == source.value).astype(int)
    return Rows(np.asarray(data.X, dtype=float), np.asarray(data.y), group)


class Scores(NamedTuple):
    """The scores that each way chooses on, with their rows, and those of the test rows."""

    rows: dict[str, Rows]
    chosen_on: dict[str, np.ndarray]
    test: dict[str, list[np.ndarray]]  # one array for each model that may decide


def scored(name: str, rows: Rows, test: Rows, seed: int) -> Scores:
    """Train the models of all ways, and let them score."""
    crossed, (whole,) = trained(name, rows, seed)
    n_choose = int(HELD_OUT * rows.y.size)
    choose, train = rows.take(np.arange(n_choose)), rows.take(np.arange(n_choose, rows.y.size))
    part = model_named(name, seed).fit(train.X, train.y)
    deciding = {FOLDS: crossed.models, REFIT: [whole], SPLIT: [part]}
    return Scores(
        {FOLDS: rows, REFIT: rows, SPLIT: choose},
        {FOLDS: crossed.scores[:, 0], REFIT: crossed.scores[:, 0], SPLIT: chances(part, choose)},
        {way: [chances(one, test) for one in deciders] for way, deciders in deciding.items()},
    )


def trained(name: str, rows: Rows, seed: int) -> tuple[Any, list[Any]]:
    """Return the models of the folds with what they say of rows left out, and the one of all rows."""
    training = Training(
        {name: model_named(name, seed)}, rows.X, rows.y, None, Positive(np.array([0, 1]), 1), 1, unheard
    )
    return training.crossed(splits_of(N_FOLDS, rows.X, rows.y, seed), seed), training.whole(seed)


def chances(model: Any, rows: Rows) -> np.ndarray:
    """Return the scores of rows."""
    return np.asarray(model.predict_proba(rows.X)[:, 1])


def judged(scores: Scores, test: Rows, goal: Goal, bound: float) -> Iterator[tuple[str, float, float]]:
    """Yield each way with the rate and the error on the test rows; fold models and refit share their rules."""
    chosen = {way: mixed(scores.rows[way], scores.chosen_on[way], goal, bound) for way in (FOLDS, SPLIT)}
    for way in (FOLDS, REFIT, SPLIT):
        model, group = chosen[SPLIT if way == SPLIT else FOLDS], {"group": test.group}
        said = [model.predict_proba(one[:, None], sensitive_features=group)[:, 1] for one in scores.test[way]]
        told = np.mean(said, axis=0)
        yield way, rate_of(goal.rate, test, told), float(np.abs(test.y - told).mean())


def mixed(rows: Rows, scores: np.ndarray, goal: Goal, bound: float) -> cp.MixtureClassifier:
    """Return the best mixture of all thresholds of a column of scores."""
    settings = {"alpha": 1.0, "objective": goal.objective, "by": goal.by, "goals": [f"{goal.rate} {goal.sign} {bound}"]}
    model = cp.GoalClassifier([_as_it_is], cv="prefit", decision="sticky", random_state=0, **settings)
    return model.fit(scores[:, None], rows.y, sensitive_features={"group": rows.group})


def _as_it_is(X: np.ndarray) -> np.ndarray:
    return X[:, 0]


def rate_of(rate: str, rows: Rows, said: np.ndarray) -> float:
    """Return a rate of the chances that rows are called positive."""
    if rate == GAP:
        return float(said[rows.group == 1].mean() - said[rows.group == 0].mean())
    label = {"recall(train)": 1, "false_positive_rate(train)": 0}.get(rate)
    return float(said.mean() if label is None else said[rows.y == label].mean())


def run(records: Records, name: str, title: str, seed: int) -> None:
    """Measure a model on a set and split, if it is not there."""
    source, n_train = SETS[title]
    if records.has(name, title, n_train, seed, *_last(source), SPLIT):
        return
    rows, test = rows_of(source, n_train, seed)
    scores = scored(name, rows, test, seed)
    for asked, goal in GOALS.items():
        bound = source.gap if goal.bound is None else goal.bound
        for way, rate, error in judged(scores, test, goal, bound):
            if not records.has(name, title, n_train, seed, asked, bound, way):
                records.add(name, title, n_train, seed, asked, bound, way, rate, error)


def _last(source: Source) -> tuple[str, float]:
    asked, goal = list(GOALS.items())[-1]
    return asked, source.gap if goal.bound is None else goal.bound


def main() -> None:
    """Measure, and write the table and the page."""
    parser = arguments(__doc__.splitlines()[0], SETS, 30, FOLDER)
    parser.add_argument("--models", nargs="*", default=list(MODELS), metavar="NAME", help=", ".join(MODELS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    records = records_of(options, COLUMNS, N_KEYS)
    for seed in range(0 if options.page else options.splits):
        for title in options.only:
            for name in options.models:
                run(records, name, title, seed)
    write_page(options.output, records.rows)
    print(f"wrote {options.output}")


if __name__ == "__main__":
    main()
