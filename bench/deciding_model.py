"""Which fitted model should decide on new rows, where thresholds were chosen on scores of rows left out of folds.

Usage: python bench/deciding_model.py [--only NAME ...] [--page] [--raw FILE] [--output FOLDER]

For each set, size, random split and kind of model: a model is trained without each of 5 (or 10) folds, and one on all
rows. Thresholds are chosen once on the scores of the rows left out, by an exact search over all of them, and each
candidate of ``CANDIDATES`` decides with these on test rows. A stopped run goes on where it was; ``--page`` measures
nothing. Everything runs in one process and on one core; seconds are those of the processor.

The rule, written before the run. For each size, on the sets of ``CHOOSING``, among the candidates that are one fixed
rule (not ``drawn 5``, not ``vote 5``) and that need at most 11 plain fits below 5,000 rows and 6 from there on:

1. keep those whose mean bias is at most 0.5 points (at 1,000 rows: at most that of ``drawn 5`` + 0.5 points);
   where there is none, the one with the smallest bias;
2. of these take the lowest mean error; within 0.02 points of it the one that keeps fewer models, then the one with
   fewer fits.

Bias is the absolute mean over the splits of the rate on test rows less the rate on the scores that the thresholds were
chosen on, for each set, model and goal, averaged over them. The latter is the bound itself where the goal binds; where
fewer errors are made well inside of it, that is no bias. The choice is then confirmed on the other sets: its bias by
the same limits, its error no higher than that of ``drawn 5``.
"""

import argparse
import csv
import io
import os
import pickle
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before any library starts its threads

import numpy as np
from deciding_model_page import CANDIDATES, CHOOSING, CONFIRMING, Candidate, summarised, write_page
from scipy.special import expit, logit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from papers.datasets import load_dataset

ROOT = Path(__file__).parent.parent
FOLDER, RAW = ROOT / "docs" / "results" / "deciding_model", ROOT / "build" / "deciding_model.csv"
COLUMNS = ("set", "rows", "split", "model", "goal", "candidate", "bound", "slack", "excess", "error")
COLUMNS += ("fit_seconds", "predict_seconds", "bytes")
SPLITS = {1_000: 30, 5_000: 10, 20_000: 5, 50_000: 3}
MORE = {5_000: 30, 20_000: 10}  # as long as there is time
MOST_TEST = {1_000: 5_000, 5_000: 10_000, 20_000: 20_000, 50_000: 20_000}
FOLDS = {1_000: (5, 10), 5_000: (5,), 20_000: (5,), 50_000: (5,)}
SETS = {n_rows: CHOOSING[n_rows] + CONFIRMING[n_rows] for n_rows in SPLITS}
GOALS = ("recall", "selection rate", "difference")
N_NOISY, LEAST_SHARE = 80_000, 0.2


class Rows(NamedTuple):
    """Rows with labels and groups of 0 and 1."""

    X: np.ndarray
    y: np.ndarray
    group: np.ndarray

    def take(self, rows: np.ndarray) -> "Rows":
        """Return some of the rows."""
        return Rows(*(part[rows] for part in self))


def public(name: str, positive: Callable[[np.ndarray], np.ndarray], group: tuple[str, str] | None = None) -> Rows:
    """Return a public set with two classes, and a group against all others or rows above a median."""
    data = load_dataset(name)
    X = data.X.toarray() if hasattr(data.X, "toarray") else np.asarray(data.X)
    y = positive(np.asarray(data.y)).astype(int)
    if name == "mnist":
        X = X.reshape(-1, 7, 4, 7, 4).mean((2, 4)).reshape(-1, 49)  # blocks of four by four pixels
    X = np.nan_to_num(X.astype(np.float32), nan=-1)
    of_group = _above(X, y) if group is None else np.asarray(data.sensitive[group[0]] == group[1])
    return Rows(X, y, of_group.astype(int))


def _above(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Tell which rows are above the median of the column most correlated with the label, if that cuts in two."""
    above = np.median(X, axis=0) < X
    share, spread = above.mean(0), X.std(0)
    cuts = np.minimum(share, 1 - share) >= min(LEAST_SHARE, np.minimum(share, 1 - share).max())
    found = np.where(cuts, np.abs((y - y.mean()) @ (X - X.mean(0))) / np.maximum(spread, 1e-12), 0)
    print(f"group: column {found.argmax()}, {share[found.argmax()]:.0%} of the rows")
    return above[:, found.argmax()]


def noisy() -> Rows:
    """Return generated labels of which a quarter cannot be known."""
    draw = np.random.default_rng(2)
    X = draw.normal(size=(N_NOISY, 12)).astype(np.float32)
    y = (draw.random(N_NOISY) < expit(1.5 * (X[:, 0] * X[:, 1] + X[:, 2] - 0.5 * X[:, 3] ** 2 + 0.5))).astype(int)
    return Rows(X, y, _above(X, y).astype(int))


def largest(y: np.ndarray) -> np.ndarray:
    """Tell which labels are the larger of two."""
    return y == y.max()


LOADED: dict[str, Callable[[], Rows]] = {
    "adult": lambda: public("adult", largest, ("sex", "Male")),
    "credit default": lambda: public("credit-default", largest, ("sex", "Male")),
    "covertype": lambda: public("covertype", lambda y: y.astype(int) == 2),
    "ringnorm": lambda: public("ringnorm", largest),
    "w8a": lambda: public("w8a", largest),
    "ACS income": lambda: public("acs-income", largest, ("sex", "Male")),
    "census income": lambda: public("census-income", largest, ("sex", "Male")),
    "MNIST": lambda: public("mnist", lambda y: y.astype(int) % 2 == 1),
    "COMPAS": lambda: public("compas", largest, ("race", "African-American")),
    "noisy, generated": noisy,
}


@cache
def loaded(name: str) -> Rows:
    """Return all rows of a set."""
    return LOADED[name]()


def rows_of(name: str, n_train: int, seed: int) -> tuple[Rows, Rows]:
    """Return random rows to train on, and others to judge by."""
    every = loaded(name)
    order = np.random.default_rng(seed).permutation(every.y.size)[: n_train + MOST_TEST[n_train]]
    return every.take(order[:n_train]), every.take(order[n_train:])


def light_gbm(seed: int) -> Any:
    """Return a LightGBM model with its defaults."""
    from lightgbm import LGBMClassifier  # noqa: PLC0415 - an optional package

    return LGBMClassifier(random_state=seed, n_jobs=1, verbose=-1)


MODELS: dict[str, Callable[[int], Any]] = {
    "LightGBM": light_gbm,
    "HistGradientBoosting": lambda seed: HistGradientBoostingClassifier(random_state=seed),
    "logistic regression": lambda _seed: make_pipeline(StandardScaler(), LogisticRegression()),
}


class Fitted(NamedTuple):
    """What a fitted model says of rows, and what it costs."""

    left_out: np.ndarray  # scores of the rows that it was not trained on
    test: np.ndarray
    fit_seconds: float
    predict_seconds: float  # of 10,000 rows
    size: int


def fitted(name: str, rows: Rows, kept: np.ndarray, left_out: np.ndarray, test: Rows, seed: int) -> Fitted:
    """Train a model on some rows, and let it score the others and the test rows."""
    model, start = MODELS[name](seed), time.process_time()
    model.fit(rows.X[kept], rows.y[kept])
    trained = time.process_time()
    said = model.predict_proba(test.X)[:, 1]
    seconds = (time.process_time() - trained) * 10_000 / test.y.size
    own = model.predict_proba(rows.X[left_out])[:, 1] if left_out.size else np.empty(0)
    return Fitted(own, said, trained - start, seconds, len(pickle.dumps(model)))


class Chosen(NamedTuple):
    """The thresholds of a goal, for group 0 and for group 1: scores above are positive; and its excess there."""

    bound: float
    thresholds: np.ndarray
    slack: float


class Cuts(NamedTuple):
    """All ways to cut scores in two: thresholds, the rows above, the true positives above, and the errors."""

    thresholds: np.ndarray
    n_above: np.ndarray
    n_hits: np.ndarray
    n_errors: np.ndarray


def cuts_of(scores: np.ndarray, y: np.ndarray) -> Cuts:
    """Return all cuts, in the middle between neighbouring scores, from none above to all above."""
    order = np.argsort(-scores, kind="stable")
    ordered, hits = scores[order], np.concatenate([[0], np.cumsum(y[order])])
    ends = np.concatenate([[0], np.flatnonzero(np.diff(ordered)) + 1, [scores.size]])
    middle = (ordered[ends[1:-1] - 1] + ordered[ends[1:-1]]) / 2
    n_hits = hits[ends]
    return Cuts(np.concatenate([[np.inf], middle, [-np.inf]]), ends, n_hits, ends - 2 * n_hits + y.sum())


def goals_of(scores: np.ndarray, rows: Rows) -> dict[str, float]:
    """Return bounds that the plain rule, a threshold of a half, does not meet."""
    said, y = scores > 0.5, rows.y == 1
    recall = float(said[y].mean())
    gap = float(said[rows.group == 1].mean() - said[rows.group == 0].mean())
    return {
        "recall": min(recall + 0.05, max(0.97, (1 + recall) / 2)),
        "selection rate": 0.8 * float(said.mean()),
        "difference": gap / 2,  # below zero where group 0 is the one with the larger rate
    }


def chosen(goal: str, bound: float, scores: np.ndarray, rows: Rows) -> Chosen:
    """Return the thresholds that meet a goal on scores with the fewest errors."""
    if goal == "difference":
        found = _closer(bound, scores, rows)
    else:
        cuts = cuts_of(scores, rows.y)
        meets = cuts.n_hits >= bound * rows.y.sum() if goal == "recall" else cuts.n_above <= bound * rows.y.size
        found = np.repeat(cuts.thresholds[np.flatnonzero(meets)[cuts.n_errors[meets].argmin()]], 2)
    return Chosen(bound, found, excess_of(goal, bound, (scores > found[rows.group]).astype(float), rows))


def _closer(bound: float, scores: np.ndarray, rows: Rows) -> np.ndarray:
    """Return a threshold for each group; the rate of the higher one is above the other by no more than the bound."""
    high = int(bound >= 0)
    of = [rows.group == 1 - high, rows.group == high]
    low, up = (cuts_of(scores[some], rows.y[some]) for some in of)
    least = np.minimum.accumulate(up.n_errors)  # of all cuts with no more rows above
    most = (low.n_above / of[0].sum() + abs(bound)) * of[1].sum() + 1e-9
    last = np.searchsorted(up.n_above, most, side="right") - 1
    at = (low.n_errors + least[last]).argmin()
    found = low.thresholds[at], up.thresholds[up.n_errors[: last[at] + 1].argmin()]
    return np.array(found if high else found[::-1])


def excess_of(goal: str, bound: float, said: np.ndarray, rows: Rows) -> float:
    """Return how far a rate is on the wrong side of its bound."""
    if goal == "recall":
        return bound - float(said[rows.y == 1].mean())
    if goal == "selection rate":
        return float(said.mean()) - bound
    gap = float(said[rows.group == 1].mean() - said[rows.group == 0].mean())
    return gap - bound if bound >= 0 else bound - gap


def said_by(way: str, models: list[Fitted], whole: Fitted, thresholds: np.ndarray) -> np.ndarray:
    """Return the chances that test rows are called positive."""
    scores = np.array([model.test for model in models])
    if way in {"drawn", "vote"}:
        share = (scores > thresholds).mean(0)
        return share if way == "drawn" else (share > 0.5).astype(float)
    if way == "refit":
        return (whole.test > thresholds).astype(float)
    tiny = 1e-12
    mean = scores.mean(0) if way == "mean" else expit(logit(np.clip(scores, tiny, 1 - tiny)).mean(0))
    return (mean > thresholds).astype(float)


def costs_of(candidate: Candidate, models: list[Fitted], whole: Fitted) -> tuple[float, float, int]:
    """Return the seconds of all fits, the seconds to predict 10,000 rows, and the bytes of the models kept."""
    seconds = sum(model.fit_seconds for model in models)
    if candidate.way == "refit":
        return seconds + whole.fit_seconds, whole.predict_seconds, whole.size
    asked = sum(model.predict_seconds for model in models)
    return seconds, asked / (len(models) if candidate.way == "drawn" else 1), sum(model.size for model in models)


def measured(name: str, n_rows: int, seed: int, model: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a set, a split and a model; the goals are those of the scores of the first folds."""
    rows, test = rows_of(name, n_rows, seed)
    whole = fitted(model, rows, np.arange(n_rows), np.empty(0, dtype=int), test, seed)
    bounds: dict[str, float] = {}
    for n_folds in FOLDS[n_rows]:
        most = min(n_folds, int(np.bincount(rows.y).min()))
        splits = list(StratifiedKFold(most, shuffle=True, random_state=seed).split(rows.X, rows.y))
        models = [fitted(model, rows, kept, left_out, test, seed) for kept, left_out in splits]
        scores = np.empty(n_rows)
        for (_, left_out), one in zip(splits, models, strict=True):
            scores[left_out] = one.left_out
        bounds = bounds or goals_of(scores, rows)
        for goal in GOALS:
            found = chosen(goal, bounds[goal], scores, rows)
            for title, candidate in CANDIDATES.items():
                if candidate.n_folds == n_folds:
                    said = said_by(candidate.way, models, whole, found.thresholds[test.group])
                    of = excess_of(goal, found.bound, said, test), float(np.abs(test.y - said).mean())
                    costs = costs_of(candidate, models, whole)
                    yield name, n_rows, seed, model, goal, title, found.bound, found.slack, *of, *costs


def planned() -> Iterator[tuple[int, int]]:
    """Yield sizes and splits, so that a stop at any time leaves each size its share of the splits."""
    rounds = max(SPLITS.values())
    for turn in range(rounds):
        for n_rows, n_splits in SPLITS.items():
            if turn % (rounds // n_splits) == 0:
                yield n_rows, turn // (rounds // n_splits)
    for n_rows, n_splits in MORE.items():
        yield from ((n_rows, seed) for seed in range(SPLITS[n_rows], n_splits))


def run(path: Path, only: list[str]) -> None:
    """Measure what the raw table does not hold; each set, split and model is written at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    known = {tuple(row[column] for column in COLUMNS[:4]) for row in (read(path) if path.exists() else [])}
    for n_rows, seed in planned():
        for name in SETS[n_rows]:
            for model in MODELS if name in only else ():
                if (name, str(n_rows), str(seed), model) not in known:
                    append(path, list(measured(name, n_rows, seed, model)))
        print(time.strftime("%H:%M:%S"), n_rows, seed, flush=True)


def read(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def append(path: Path, rows: list[tuple[Any, ...]]) -> None:
    """Add rows to a table in one piece."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if not path.exists():
        writer.writerow(COLUMNS)
    writer.writerows([f"{value:.8g}" if isinstance(value, float) else value for value in row] for row in rows)
    with path.open("a", encoding="utf-8") as file:
        file.write(text.getvalue())


def main() -> None:
    """Measure, and write the table of means and the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=list(LOADED), metavar="NAME", help="sets")
    parser.add_argument("--page", action="store_true", help="measure nothing, write the page of what is there")
    parser.add_argument("--raw", type=Path, default=RAW, metavar="FILE", help="the table of all splits")
    parser.add_argument("--output", type=Path, default=FOLDER, metavar="FOLDER")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if not options.page:
        run(options.raw, options.only)
    options.output.mkdir(parents=True, exist_ok=True)
    if options.raw.exists():
        summarised(read(options.raw), options.output / "results.csv")
    write_page(options.output, read(options.output / "results.csv"))
    print(f"wrote {options.output}")


if __name__ == "__main__":
    main()
