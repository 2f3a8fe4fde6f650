"""The worst-off tenth at equal average error: thresholds of a strong model, boosted models, or a coin.

Usage: python bench/tails.py [--only NAME ...] [--splits N] [--resume] [--page] [--output FOLDER]

All methods may give up the same average error for the tail. *Thresholds* are mixtures of the thresholds of one strong
model, ``GoalClassifier(alpha=0.1, decision="sticky")``; *boosted* ``AdaLPBoostClassifier(alpha=0.1)``; both at a range
of budgets, which need no training. The control is a *coin*: the plain strong model, but with some probability a fair
coin decides instead. It looks at nothing, and any mixture should beat it.

Rule, set before the run: at each budget of the boosted models the tails of the two others are read off at the same
average error on new rows. A method is recommended over another where its tail is lower by more than two standard errors
of the differences, one a set. The plain model is scikit-learn's histogram boosting as it comes.

Tails are of expected losses, before the draw. Once decisions are drawn each row is right or wrong, and the tail is
``min(1, error / alpha)``, as of any fixed rule: no lower than that of the plain model, which errs less.
"""

import os
import statistics
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before any library starts its threads

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split

import counterpoise as cp
from counterpoise.theory.risks import CVaR

sys.path.insert(0, str(Path(__file__).parent.parent))
from records import arguments, records_of

from papers.datasets import load_dataset
from papers.markdown import markdown_table

FOLDER = Path(__file__).parent.parent / "docs" / "results" / "tails"
ALPHA = 0.1
BUDGETS = (0.01, 0.03, 0.06)  # of the boosted models, at which all are compared
GRID = (0.0, 0.005, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2)
COINS = np.linspace(0.0, 1.0, 101)
COLUMNS = ("set", "seed", "budget", "rows", "error", "boosted", "thresholds", "coin", "plain error", "plain")
METHODS = ("boosted", "thresholds", "coin")
Point = tuple[float, float]
Rows = tuple[np.ndarray, np.ndarray]


def public(name: str, cut: float | None = None, n_rows: int = 6000) -> Callable[[], Rows]:
    """Return what loads some rows of a public set as numbers, with two classes: above a cut, or the last class."""

    def load() -> Rows:
        data = load_dataset(name)
        X, y = np.asarray(data.X, dtype=float), np.asarray(data.y)
        kept = np.random.default_rng(0).permutation(len(y))[:n_rows]
        return X[kept], (y[kept] == np.unique(y)[-1]) if cut is None else (y[kept] > cut)

    return load


SETS: dict[str, Callable[[], Rows]] = {
    "adult": public("adult"),
    "acs income": public("acs-income"),
    "compas": public("compas"),
    "credit default": public("credit-default"),
    "census income": public("census-income"),
    "covertype": public("covertype", cut=1.5),
}
NAMES = tuple(SETS)


def measured(name: str, seed: int) -> list[tuple[object, ...]]:
    """Return the rows of a split: the tails of all methods on new rows, at the average error of the boosted models."""
    X, y = SETS[name]()
    X, y = np.asarray(X, dtype=float), (np.asarray(y) > 0).astype(int)
    train, test, labels, truth = train_test_split(X, y, test_size=0.5, random_state=seed, stratify=y)

    def point(chances: np.ndarray) -> Point:
        """Return the average error and the tail of decisions, given the probability of each."""
        losses = 1 - chances[np.arange(len(truth)), truth]
        return float(losses.mean()), float(CVaR(ALPHA).value(losses))

    plain = HistGradientBoostingClassifier(random_state=seed).fit(train, labels)
    sure = np.eye(2)[plain.predict(test)]
    coin = [point((1 - share) * sure + share / 2) for share in COINS]
    strong = HistGradientBoostingClassifier(random_state=seed)
    rules = cp.GoalClassifier(strong, alpha=ALPHA, decision="sticky", random_state=seed).fit(train, labels)
    thresholds = [point(rules.rebalance(budget=budget).decision_proba(test)) for budget in GRID]
    booster = cp.AdaLPBoostClassifier(alpha=ALPHA, random_state=seed).fit(train, labels)
    rows = []
    for budget in BUDGETS:
        error, tail = point(booster.rebalance(budget=budget).decision_proba(test))
        tails = (tail, at_error(thresholds, error), at_error(coin, error))
        rows.append((name, seed, budget, len(train), *(round(one, 5) for one in (error, *tails, *point(sure)))))
    return rows


def at_error(curve: list[Point], error: float) -> float:
    """Return the least tail that a curve of errors and tails reaches without more than this error, between its points.

    Two points of a curve can be mixed by a draw, which has at most the tail between theirs.
    """
    errors, tails = np.array(sorted(curve)).T
    return float(np.interp(error, errors, np.minimum.accumulate(tails)))


def page(rows: list[dict[str, str]]) -> str:
    """Return the page, given all rows."""
    lines, differences = [], {}
    for budget in BUDGETS:
        for name in NAMES:
            own = [row for row in rows if row["set"] == name and float(row["budget"]) == budget]
            if not own:
                continue
            means = {column: statistics.mean(float(row[column]) for row in own) for column in COLUMNS[4:]}
            cells = [f"{100 * means['plain error']:.1f}", f"{100 * means['error']:.1f}"]
            lines.append([f"{budget:g}", name, *cells, *(f"{means[one]:.3f}" for one in ("plain", *METHODS))])
            for better, worse in (("thresholds", "boosted"), ("thresholds", "coin"), ("boosted", "coin")):
                differences.setdefault((better, worse, budget), []).append(means[worse] - means[better])
    verdicts = [
        [*map(str, key), *verdict(found), str(sum(one > 0 for one in found))] for key, found in differences.items()
    ]
    asked = ["first", "second", "budget", "lower by", "standard error", "verdict", "sets where lower"]
    heads = ["budget", "set", "plain error, %", "error, %", "plain", *METHODS]
    return (
        "# The worst-off tenth, at equal average error\n\n"
        f"Made by `python bench/tails.py`; every number is in `results.csv` beside this page.\n\n{_explained()}"
        f"\n\n## Verdicts\n\nHow much lower the tail of the first is than that of the second: mean over "
        f"{len({row['set'] for row in rows})} sets and its standard error.\n\n"
        + markdown_table(asked, verdicts, n_words=2)
        + "\n\n## Tails on new rows\n\n"
        f"Mean loss of the worst-off tenth, means over {len({row['seed'] for row in rows})} splits.\n\n"
        + markdown_table(heads, lines, n_words=2)
        + "\n"
    )


def _explained() -> str:
    """Return what stands at the head of this file, without the way to call it."""
    _, _, *paragraphs = (__doc__ or "").strip().split("\n\n")
    return "\n\n".join(paragraphs).replace("``", "`")


def verdict(differences: list[float]) -> tuple[str, str, str]:
    """Return the mean difference over sets, its standard error, and what follows by the rule."""
    mean = statistics.mean(differences)
    spread = statistics.stdev(differences) / len(differences) ** 0.5 if len(differences) > 1 else float("inf")
    word = "lower" if mean > 2 * spread else "higher" if mean < -2 * spread else "no difference"
    return f"{mean:.3f}", f"{spread:.3f}", word


def main() -> None:
    """Measure what is not there yet, and write the page."""
    options = arguments(__doc__ or "", NAMES, 3, FOLDER).parse_args()
    records = records_of(options, COLUMNS, n_keys=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in [] if options.page else options.only:
            for seed in range(options.splits):
                if not records.has(name, seed, BUDGETS[-1]):
                    for row in measured(name, seed):
                        records.add(*row)
    (options.output / "README.md").write_text(page(records.rows), encoding="utf-8")


if __name__ == "__main__":
    main()
