"""Figure (c): the worst-off tenth at equal average error: thresholds of a strong model, boosted models, or a coin.

All methods may give up the same average error for the tail. *Thresholds* are mixtures of the thresholds of one strong
model, ``GoalClassifier(alpha=0.1, decision="sticky")``; *boosted* are ``AdaLPBoostClassifier`` and
``LPBoostClassifier``; all at a range of budgets. The control is a *coin*: the plain strong model, but with some
probability a fair coin decides instead.

Rule, set before the run: at each budget of the boosted models the tails of the others are read off at the same average
error on new rows. A method is recommended over another where its tail is lower by more than two standard errors of the
differences, one a set.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split

import counterpoise as cp
from counterpoise.theory.risks import CVaR
from papers.arrays import AnyArray, FloatArray
from papers.datasets import load_dataset
from papers.experiments import Blocks, Experiment, long_rows, panels
from papers.markdown import markdown_table
from papers.tables import ResultRow, ResultsTable

NAME = "tails"
SETS = {  # and the label above which a row is positive; None: the last class
    "adult": ("adult", None),
    "acs income": ("acs-income", None),
    "compas": ("compas", None),
    "credit default": ("credit-default", None),
    "census income": ("census-income", None),
    "covertype": ("covertype", 1.5),
}
ALPHA, N_ROWS = 0.1, 6000
BUDGETS = (0.01, 0.03, 0.06)  # of the boosted models, at which all are compared
GRID = (0.0, 0.005, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2)
COINS = np.linspace(0.0, 1.0, 101)
BOOSTED, LPBOOST, THRESHOLDS, COIN, PLAIN = "boosted", "LPBoost", "thresholds", "coin", "plain"
METHODS = (BOOSTED, LPBOOST, THRESHOLDS, COIN)
PAIRS = ((THRESHOLDS, BOOSTED), (THRESHOLDS, LPBOOST), (THRESHOLDS, COIN), (BOOSTED, COIN), (LPBOOST, COIN))
_CLEAR = 2.0  # standard errors
Point = tuple[float, float]


class Part(NamedTuple):
    """A split of a set."""

    dataset: str
    seed: int
    experiment: str = NAME


def wanted(datasets: Sequence[str], n_seeds: int) -> list[Part]:
    """Return the splits."""
    return [Part(name, seed) for seed in range(n_seeds) for name in datasets]


def rows_of(name: str) -> tuple[FloatArray, AnyArray]:
    """Return some rows of a set as numbers, with two classes."""
    title, cut = SETS[name]
    data = load_dataset(title)
    kept = np.random.default_rng(0).permutation(len(data.y))[:N_ROWS]
    y = np.asarray(data.y)
    positive = y == np.unique(y)[-1] if cut is None else y > cut
    return np.asarray(data.X, dtype=float)[kept], positive[kept].astype(int)


def measure(part: Part) -> list[ResultRow]:
    """Return the tails of all methods on new rows, at the average errors of AdaLPBoost and of LPBoost."""
    X, y = rows_of(part.dataset)
    train, test, labels, truth = train_test_split(X, y, test_size=0.5, random_state=part.seed, stratify=y)

    def point(chances: AnyArray) -> Point:
        losses = 1 - chances[np.arange(len(truth)), truth]
        return float(losses.mean()), float(CVaR(ALPHA).value(losses))

    plain = HistGradientBoostingClassifier(random_state=part.seed).fit(train, labels)
    sure = np.eye(2)[plain.predict(test)]
    coin = [point((1 - share) * sure + share / 2) for share in COINS]
    strong = HistGradientBoostingClassifier(random_state=part.seed)
    rules: Any = cp.GoalClassifier(strong, alpha=ALPHA, decision="sticky", random_state=part.seed).fit(train, labels)
    thresholds = [point(rules.rebalance(budget=budget).decision_proba(test)) for budget in GRID]
    ada: Any = cp.AdaLPBoostClassifier(alpha=ALPHA, random_state=part.seed).fit(train, labels)
    lp: Any = cp.LPBoostClassifier(alpha=ALPHA, random_state=part.seed).fit(train, labels)
    error, tail = point(sure)
    rows = []
    for budget in BUDGETS:
        at, own = point(ada.rebalance(budget=budget).decision_proba(test))
        lp_points = [point(lp.rebalance(budget=each).decision_proba(test)) for each in GRID]
        found = {"error": at, BOOSTED: own, LPBOOST: at_error(lp_points, at), THRESHOLDS: at_error(thresholds, at)}
        found |= {COIN: at_error(coin, at), "plain error": error, PLAIN: tail}
        rows += long_rows(NAME, part.dataset, "", part.seed, found, settings=f"budget={budget:g}")
    return rows


def at_error(curve: Sequence[Point], error: float) -> float:
    """Return the least tail that a curve of errors and tails reaches without more than this error, between its points.

    Two points of a curve can be mixed by a draw, which has at most the tail between theirs.
    """
    errors, tails = np.array(sorted(curve)).T
    return float(np.interp(error, errors, np.minimum.accumulate(tails)))


def tails(rows: ResultsTable, dataset: str, budget: float) -> dict[str, float]:
    """Return the mean over splits of each quantity at a budget."""
    own: dict[str, list[float]] = {}
    for row in rows.where(dataset=dataset, settings=f"budget={budget:g}"):
        own.setdefault(row.quantity, []).append(row.value)
    return {name: float(np.mean(found)) for name, found in own.items()}


def blocks(rows: ResultsTable) -> Blocks:
    """Return who has the lower tail, and the tails."""
    sets = list(dict.fromkeys(row.dataset for row in rows))
    verdicts, lines = [], []
    for budget in BUDGETS:
        found = {name: tails(rows, name, budget) for name in sets}
        for better, worse in PAIRS:
            gaps = np.array([own[worse] - own[better] for own in found.values() if {better, worse} <= own.keys()])
            if gaps.size > 1:
                error = float(gaps.std(ddof=1) / np.sqrt(gaps.size))
                word = (
                    "lower"
                    if gaps.mean() > _CLEAR * error
                    else "higher"
                    if gaps.mean() < -_CLEAR * error
                    else "no difference"
                )
                cells = [f"{gaps.mean():+.3f} ± {error:.3f}", word, f"{(gaps > 0).sum()} of {gaps.size}"]
                verdicts.append([better, worse, f"{budget:g}", *cells])
        for name, own in found.items():
            errors = [f"{100 * own[what]:.1f}" for what in ("plain error", "error")]
            shown = [f"{own[method]:.3f}" if method in own else "" for method in (PLAIN, *METHODS)]
            lines.append([f"{budget:g}", name, *errors, *shown])
    heads = ["the tail of", "below that of", "budget", "by", "verdict", "sets"]
    columns = ["budget", "set", "plain error, %", "error, %", PLAIN, *METHODS]
    return {"verdicts": markdown_table(heads, verdicts, n_words=2), "tails": markdown_table(columns, lines, n_words=2)}


def figures(rows: ResultsTable) -> dict[str, Any]:
    """Return tails against average errors, a panel a set."""
    sets = list(dict.fromkeys(row.dataset for row in rows))
    figure, axes = panels(len(sets), size=(2.6, 2.3), n_columns=3)
    styles = {BOOSTED: "o-", LPBOOST: "s-", THRESHOLDS: "^-", COIN: "k--"}
    for axis, name in zip(axes, sets, strict=True):
        found = [tails(rows, name, budget) for budget in BUDGETS]
        for method, style in styles.items():
            own = [(100 * each["error"], each[method]) for each in found if method in each]
            if own:
                start = (100 * found[0]["plain error"], found[0][PLAIN])
                axis.plot(*zip(start, *own, strict=True), style, markersize=4, label=method)
        axis.set_title(name, fontsize=9)
    axes[0].set_ylabel("tail loss, alpha 0.1")
    axes[-1].set_xlabel("average error, %")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return {"tails.svg": figure}


EXPERIMENT = Experiment(
    NAME, "the worst-off tenth at equal average error", wanted, measure, blocks, tuple(SETS), 3, figures
)
