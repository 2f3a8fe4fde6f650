"""How often does a first fit raise? Goals that the plain model misses by 1 to 5 points, with and without ``by``.

Usage: python bench/first_fits.py [--only NAME ...] [--splits N] [--resume] [--page] [--output FOLDER]

Eight sets, three seeds, 3,000 rows. Each goal is set where the plain model is on out-of-fold scores, 1, 3 or 5 points
tighter. A fit of the default ``GoalClassifier`` meets it by one rule, or raises ``InfeasibleGoals``.
"""

import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before any library starts its threads

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import counterpoise as cp
from counterpoise.goals import InfeasibleGoals

sys.path.insert(0, str(Path(__file__).parent.parent))
from records import arguments, records_of

from papers.datasets import load_dataset
from papers.markdown import markdown_table

FOLDER = Path(__file__).parent.parent / "docs" / "results" / "first_fits"
SETS = ("adult", "acs-income", "compas", "credit-default", "census-income", "covertype", "spambase", "wine-quality")
POINTS = (0.01, 0.03, 0.05)
COLUMNS = ("set", "seed", "goal", "points", "by", "raised")
N_ROWS = 3000


def goals_of(said: np.ndarray, y: np.ndarray, group: np.ndarray, points: float) -> dict[str, list[str]]:
    """Return goals that the plain decisions miss by some points: one rate, a difference of groups, and both."""
    rates = [said[(group == one) & (y == 0)].mean() for one in (0, 1)]
    recall = f"recall(train) >= {min(said[y == 1].mean() + points, 0.99):.4f}"
    bound = max(abs(rates[0] - rates[1]) - points, 0.0)
    gap = f"max_difference(false_positive_rate, train, by=group) <= {bound:.4f}"
    return {"recall": [recall], "difference": [gap], "recall and difference": [recall, gap]}


def rows_of_set(name: str, seed: int) -> Iterator[tuple[object, ...]]:
    """Yield whether each fit on a set raises."""
    data = load_dataset(name)
    X, y = np.nan_to_num(np.asarray(data.X, dtype=float)), np.asarray(data.y)
    kept = np.random.default_rng(seed).permutation(len(y))[:N_ROWS]
    X, y = X[kept], (y[kept] > np.median(y)).astype(int) if len(np.unique(y)) > 2 else y[kept]
    y = (y == y.max()).astype(int)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    group = (X[:, 0] > np.median(X[:, 0])).astype(int)
    said = cross_val_predict(model, X, y, cv=5).astype(float)
    fitted = cp.GoalClassifier(model, confidence=None, random_state=seed).fit(X, y, sensitive_features={"group": group})
    for points in POINTS:
        for goal, texts in goals_of(said, y, group, points).items():
            for by in ((), "group"):
                try:
                    fitted.rebalance(goals=texts, by=by)
                    raised = 0
                except InfeasibleGoals:
                    raised = 1
                yield name, seed, goal, points, "yes" if by else "no", raised


def page(rows: list[dict[str, str]]) -> str:
    """Return the page, given all rows."""
    lines = []
    for goal in dict.fromkeys(row["goal"] for row in rows):
        for by in ("no", "yes"):
            cells = []
            for points in POINTS:
                own = [int(row["raised"]) for row in rows if (row["goal"], row["by"]) == (goal, by)
                       and float(row["points"]) == points]  # fmt: skip
                cells.append(f"{sum(own)} of {len(own)}")
            lines.append([goal, by, *cells])
    heads = ["goals", "by allowed", *(f"{100 * points:g} points" for points in POINTS)]
    return (
        "# How often a first fit raises\n\n"
        f"Made by `python bench/first_fits.py`: {len(SETS)} sets, {N_ROWS:,} rows, three seeds, logistic regression. "
        "Goals are set 1, 3 or 5 points tighter than what the plain model does on out-of-fold scores. Groups are the "
        "rows above and below the median of the first column. Counted are fits of the default `GoalClassifier` that "
        "raise `InfeasibleGoals`.\n\n" + markdown_table(heads, lines) + "\n"
    )


def main() -> None:
    """Measure the sets that are not there yet, and write the page."""
    options = arguments(__doc__ or "", SETS, 3, FOLDER).parse_args()
    records = records_of(options, COLUMNS, n_keys=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in [] if options.page else options.only:
            for seed in range(options.splits):
                if not records.has(name, seed):
                    for row in list(rows_of_set(name, seed)):
                        records.add(*row)
    (options.output / "README.md").write_text(page(records.rows), encoding="utf-8")


if __name__ == "__main__":
    main()
