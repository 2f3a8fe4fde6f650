"""Multicalibration of scores under thresholds per group: whether it lowers the cost at equal goals.

Usage: python bench/multicalibration.py [--only NAME ...] [--splits N] [--resume] [--page] [--output FOLDER]

Thresholds per group do not change when the scores of a group are stretched, so that calibration of the groups alone
would change nothing. Multicalibration also looks at cells inside of them: a column of small trees on the residuals of
the probabilities is added, as long as a cell of a calibration set is off by more than its chance (Hebert-Johnson et al.
2018, by boosting as in Globus-Harris et al. 2023). Half of the rows train scikit-learn's histogram boosting, a quarter
calibrates and chooses, in five folds that swap the two, a quarter is new.

Goals: the recalls of all groups at most 0.05 apart, and a recall of at least 0.6; the error is minimised, with a
threshold for each group and ``confidence=None``. *Isotonic* calibration of all rows together is the control: it cannot
change the order of the rows, but for ties. *Calibration error*: the mean over ten bins of the score in each group, by
rows, of how far the mean probability is from the share of positives.

Rule, set before the run: calibration is built into ``Groups`` if, on at least three of the sets, the error on new rows
is lower than without by more than two standard errors, corrected for splits that overlap, while the worst excess of a
goal is no larger by more than two.
"""

import os
import statistics
import sys
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before any library starts its threads

import numpy as np
from scipy.special import expit, logit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.isotonic import IsotonicRegression
from sklearn.model_selection import KFold, train_test_split
from sklearn.tree import DecisionTreeRegressor

import counterpoise as cp

sys.path.insert(0, str(Path(__file__).parent.parent))
from group_robustness import corrected
from grouped_sets import SETS
from records import arguments, records_of

from papers.markdown import markdown_table

FOLDER = Path(__file__).parent.parent / "docs" / "results" / "multicalibration"
NAMES = ("adult", "acs income", "compas", "credit default", "spurious, 90 %", "spurious, 97 %")
METHODS = ("none", "isotonic", "multicalibrated")
COLUMNS = ("set", "seed", "method", "error", "excess", "calibration")
APART, RECALL = 0.05, 0.6
MOST_STEPS, LEAST_ROWS = 20, 100
CLIP = 1e-6


class Scores:
    """A model whose score is one column of the rows, as a classifier that was fitted."""

    classes_ = np.array([0, 1])
    _estimator_type = "classifier"

    def fit(self, _X: Any, _y: Any) -> "Scores":  # pragma: no cover - it is fitted
        """Return the model."""
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the column and what it leaves."""
        return np.column_stack([1.0 - X[:, 0], X[:, 0]])


class Multicalibrated:
    """Probabilities corrected by small trees on their residuals, as long as a cell is off by more than chance."""

    def __init__(self, scores: np.ndarray, X: np.ndarray, groups: np.ndarray, y: np.ndarray) -> None:
        self.steps: list[tuple[DecisionTreeRegressor, np.ndarray]] = []
        current = scores
        for _ in range(MOST_STEPS):
            cells = np.column_stack([X, groups, current])
            tree = DecisionTreeRegressor(max_depth=3, min_samples_leaf=LEAST_ROWS, random_state=0).fit(
                cells, y - current
            )
            leaf = tree.apply(cells)
            counts = np.bincount(leaf)
            off = np.bincount(leaf, y - current) / np.maximum(counts, 1)
            spread = np.sqrt(np.bincount(leaf, current * (1 - current))) / np.maximum(counts, 1)
            moved = np.where(np.abs(off) > 2.5 * spread, off, 0.0)
            if not moved.any():
                break
            self.steps.append((tree, moved))
            current = np.clip(current + moved[leaf], CLIP, 1 - CLIP)

    def __call__(self, scores: np.ndarray, X: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """Return the corrected probabilities of rows."""
        for tree, moved in self.steps:
            scores = np.clip(scores + moved[tree.apply(np.column_stack([X, groups, scores]))], CLIP, 1 - CLIP)
        return scores


def measured(name: str, seed: int) -> list[tuple[object, ...]]:
    """Return the rows of a split: what each way to calibrate comes to on new rows."""
    X, y, groups = SETS[name](seed)
    groups = groups % 2 if name.startswith("spurious") else groups  # without the label
    train, rest = train_test_split(np.arange(len(y)), test_size=0.5, random_state=seed, stratify=groups)
    chosen, new = train_test_split(rest, test_size=0.5, random_state=seed, stratify=groups[rest])
    model = HistGradientBoostingClassifier(random_state=seed).fit(X[train], y[train])
    scores = np.clip(model.predict_proba(X)[:, 1], CLIP, 1 - CLIP)

    def corrected_by(method: str, own: np.ndarray, rows: np.ndarray) -> np.ndarray:
        if method == "none":
            return scores[rows]
        if method == "isotonic":
            steps = IsotonicRegression(out_of_bounds="clip").fit(scores[own], y[own]).predict(scores[rows])
            return expit(logit(np.clip(steps, CLIP, 1 - CLIP)) + 1e-6 * logit(scores[rows]))  # ties in their old order
        return Multicalibrated(scores[own], X[own], groups[own], y[own])(scores[rows], X[rows], groups[rows])

    rows = []
    for method in METHODS:
        held = np.empty(chosen.size)
        for own, other in KFold(5, shuffle=True, random_state=seed).split(chosen):
            held[other] = corrected_by(method, chosen[own], chosen[other])
        final = corrected_by(method, chosen, new)
        goals = [f"max_difference(recall, by=group) <= {APART}", f"recall >= {RECALL}"]
        rules = cp.GoalClassifier(Scores(), cv="prefit", goals=goals, by="group", confidence=None, random_state=0)
        rules.fit(held[:, None], y[chosen], sensitive_features={"group": groups[chosen]})
        decisions = rules.predict(final[:, None], sensitive_features={"group": groups[new]})
        recalls = [decisions[(y[new] == 1) & (groups[new] == one)].mean() for one in np.unique(groups[new])]
        excess = max(np.ptp(recalls) - APART, RECALL - decisions[y[new] == 1].mean(), 0.0)
        numbers = (np.mean(decisions != y[new]), excess, calibration_error(final, y[new], groups[new]))
        rows.append((name, seed, method, *(round(float(one), 5) for one in numbers)))
    return rows


def calibration_error(scores: np.ndarray, y: np.ndarray, groups: np.ndarray) -> float:
    """Return the mean distance of probabilities from shares of positives, over ten bins of each group."""
    total = 0.0
    for group in np.unique(groups):
        order = np.flatnonzero(groups == group)[np.argsort(scores[groups == group])]
        total += sum(abs(float((scores[part] - y[part]).sum())) for part in np.array_split(order, 10))
    return total / y.size


def page(rows: list[dict[str, str]]) -> str:
    """Return the page, given all rows."""
    names, lines, helped = list(dict.fromkeys(row["set"] for row in rows)), [], []
    for name in names:
        own = {m: [row for row in rows if row["set"] == name and row["method"] == m] for m in METHODS}
        for method in METHODS:
            means = [statistics.mean(float(row[column]) for row in own[method]) for column in COLUMNS[3:]]
            pairs = list(zip(own[method], own["none"], strict=True))
            gain, spread = corrected([float(one["error"]) - float(plain["error"]) for one, plain in pairs])
            worse, its_spread = corrected([float(one["excess"]) - float(plain["excess"]) for one, plain in pairs])
            helps = gain < -2 * spread and worse <= 2 * its_spread
            if method == METHODS[-1] and helps:
                helped.append(name)
            beside = "" if method == "none" else f"{100 * gain:+.2f} ± {100 * spread:.2f}"
            lines.append([name, method, *(f"{100 * one:.2f}" for one in means), beside])
    word = "is built into `Groups`" if len(helped) >= 3 else "is not built into `Groups`"
    _, _, *paragraphs = (__doc__ or "").strip().split("\n\n")
    explained = "\n\n".join(paragraphs).replace("``", "`")
    return (
        "# Multicalibrated scores under thresholds per group\n\n"
        "Made by `python bench/multicalibration.py`; every number is in `results.csv` beside this page.\n\n"
        f"{explained}\n\n**Verdict**: multicalibration lowers the error at equal goals on {len(helped)} of "
        f"{len(names)} sets{' (' + ', '.join(helped) + ')' if helped else ''}; it {word}.\n\n"
        f"In %, means of {len({row['seed'] for row in rows})} splits:\n\n"
        + markdown_table(
            ["set", "calibration", "error", "worst excess of a goal", "calibration error", "error beside none"],
            lines,
            n_words=2,
        )
        + "\n"
    )


def main() -> None:
    """Measure what is not there yet, and write the page."""
    options = arguments(__doc__ or "", NAMES, 10, FOLDER).parse_args()
    records = records_of(options, COLUMNS, n_keys=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in [] if options.page else range(options.splits):
            for name in options.only:
                if not records.has(name, seed, METHODS[-1]):
                    for row in measured(name, seed):
                        records.add(*row)
    (options.output / "README.md").write_text(page(records.rows), encoding="utf-8")


if __name__ == "__main__":
    main()
