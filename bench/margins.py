"""Margins of VadaBoost: whether penalising the variance of the loss makes the margins of new rows narrower.

Usage: python bench/margins.py [--only NAME ...] [--splits N] [--resume] [--page] [--output FOLDER]

The margin of a row is its vote for the right class, divided by the sum of all votes: between -1 and 1. AdaBoost and
VadaBoost take 100 decision stumps, on half of the rows; VadaBoost's penalty is chosen on folds of the training rows
(0 is AdaBoost, the control). Margins are those of the other half.

Rule, set before the run: VadaBoost's margins are narrower on a set where their variance is lower by more than two
standard errors over the splits, corrected for overlap, while their mean is no lower by more than two. Shivaswamy and
Jebara (2011) expect it: a low variance of the loss is what their bound asks for.
"""

import os
import statistics
import sys
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before any library starts its threads

import numpy as np
from sklearn.model_selection import train_test_split

import counterpoise as cp
from counterpoise.learners import Stump

sys.path.insert(0, str(Path(__file__).parent.parent))
from group_robustness import corrected
from records import arguments, records_of
from stability import SETS

from papers.markdown import markdown_table

FOLDER = Path(__file__).parent.parent / "docs" / "results" / "margins"
NAMES = ("adult", "acs income", "compas", "credit default", "spambase", "twonorm")
METHODS = ("AdaBoost", "VadaBoost")
MEASURES = ("mean", "variance", "lowest tenth", "error")
COLUMNS = ("set", "seed", "method", "penalty", *MEASURES)
MOST_ROWS = 6000
PENALTIES = (0.0, 0.1, 0.3, 0.5)


def measured(name: str, seed: int) -> list[tuple[object, ...]]:
    """Return the rows of a split: what the margins of new rows are."""
    X, y = SETS[name]()
    some = np.random.default_rng(seed).permutation(len(X))[:MOST_ROWS]
    X, y = np.nan_to_num(np.asarray(X, dtype=float)[some], nan=-1.0), (np.asarray(y)[some] > 0).astype(int)
    train, new, labels, truth = train_test_split(X, y, test_size=0.5, random_state=seed, stratify=y)
    own, held, on_own, on_held = train_test_split(train, labels, test_size=0.3, random_state=seed, stratify=labels)

    def boosted(penalty: float, rows: np.ndarray, classes: np.ndarray) -> cp.VadaBoostClassifier:
        return cp.VadaBoostClassifier(Stump(), n_estimators=100, penalty=penalty, random_state=seed).fit(rows, classes)

    best = max(PENALTIES, key=lambda penalty: boosted(penalty, own, on_own).score(held, on_held))
    rows = []
    for method, penalty in zip(METHODS, (0.0, best), strict=True):
        model = boosted(penalty, train, labels)
        votes = model.decision_function(new) / np.abs(model.votes_).sum()
        margins = votes * (2 * truth - 1)
        tenth = np.sort(margins)[: max(margins.size // 10, 1)].mean()
        numbers = (margins.mean(), margins.var(), tenth, (margins <= 0).mean())
        rows.append((name, seed, method, penalty, *(round(float(one), 5) for one in numbers)))
    return rows


def page(rows: list[dict[str, str]]) -> str:
    """Return the page, given all rows."""
    lines, narrower = [], []
    names = list(dict.fromkeys(row["set"] for row in rows))
    for name in names:
        ada, vada = ([row for row in rows if row["set"] == name and row["method"] == one] for one in METHODS)
        for method, own in zip(METHODS, (ada, vada), strict=True):
            lines.append(
                [name, method, *(f"{statistics.mean(float(row[one]) for row in own):.3f}" for one in MEASURES)]
            )
        gain = {
            one: corrected([float(b[one]) - float(a[one]) for a, b in zip(ada, vada, strict=True)]) for one in MEASURES
        }
        (variance, its), (mean, other) = gain["variance"], gain["mean"]
        if variance < -2 * its and mean >= -2 * other:
            narrower.append(name)
    _, _, *paragraphs = (__doc__ or "").strip().split("\n\n")
    return (
        "# Margins of VadaBoost\n\n"
        "Made by `python bench/margins.py`; every number is in `results.csv` beside this page.\n\n"
        + "\n\n".join(paragraphs)
        + f"\n\n**Verdict**: margins are narrower at no lower mean on {len(narrower)} of {len(names)} sets"
        + (f" ({', '.join(narrower)})" if narrower else "")
        + f".\n\nMeans of {len({row['seed'] for row in rows})} splits, on new rows:\n\n"
        + markdown_table(["set", "method", "mean margin", *MEASURES[1:]], lines, n_words=2)
        + "\n"
    )


def main() -> None:
    """Measure what is not there yet, and write the page."""
    options = arguments(__doc__ or "", NAMES, 5, FOLDER).parse_args()
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
