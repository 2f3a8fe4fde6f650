"""Do decisions stay when rows move by a millionth? Twenty sets, five seeds, the plain model at the same thresholds.

Usage: python bench/stability.py [--only NAME ...] [--splits N] [--resume] [--page] [--output FOLDER]

Every numeric feature of the held-out rows is moved by 1e-6 of its range. Counted are the decisions of the default
``GoalClassifier`` that change, those that change although their score stays on its side of the threshold (there must be
none), and the decisions that change where the deciding model alone is cut at the same thresholds.
"""

import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before any library starts its threads

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification, make_moons
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split

import counterpoise as cp
from counterpoise.datasets import ringnorm, twonorm, waveform
from counterpoise.goals import InfeasibleGoals

sys.path.insert(0, str(Path(__file__).parent.parent))
from records import arguments, records_of

from papers.datasets import load_dataset
from papers.markdown import markdown_table

FOLDER = Path(__file__).parent.parent / "docs" / "results" / "stability"
COLUMNS = ("set", "seed", "rows", "models", "decisions", "changed", "changed by the model alone", "changed on its side")
MOVED = 1e-6  # of the range of a feature
Rows = tuple[np.ndarray, np.ndarray]


def public(name: str, cut: float | None = None, n_rows: int = 6000) -> Callable[[], Rows]:
    """Return what loads some rows of a public set as numbers, with two classes: above a cut, or the last class."""

    def load() -> Rows:
        data = load_dataset(name)
        X, y = np.asarray(data.X, dtype=float), np.asarray(data.y)
        kept = np.random.default_rng(0).permutation(len(y))[:n_rows]
        return X[kept], (y[kept] == np.unique(y)[-1]) if cut is None else (y[kept] > cut)

    return load


def bundled(load: Callable[..., Rows], cut: float) -> Callable[[], Rows]:
    """Return a set that ships with scikit-learn, with two classes: above a cut and not."""

    def rows() -> Rows:
        X, y = load(return_X_y=True)
        return X, y > cut

    return rows


def made(n_rows: int, flip: float) -> Callable[[], Rows]:
    """Return a set that is drawn."""
    return lambda: make_classification(n_rows, 12, n_informative=6, flip_y=flip, random_state=1)


SETS: dict[str, Callable[[], Rows]] = {
    "adult": public("adult"),
    "acs income": public("acs-income"),
    "compas": public("compas"),
    "credit default": public("credit-default"),
    "census income": public("census-income"),
    "covertype": public("covertype", cut=1.5),
    "spambase": public("spambase"),
    "musk": public("musk2"),
    "wine quality": public("wine-quality", cut=5.5),
    "abalone": public("abalone", cut=9.5),
    "mushrooms": public("mushrooms"),
    "breast cancer": bundled(load_breast_cancer, 0.5),
    "wine": bundled(load_wine, 0.5),
    "digits": bundled(load_digits, 4.5),
    "twonorm": lambda: twonorm(3000, random_state=0),
    "ringnorm": lambda: ringnorm(3000, random_state=0),
    "waveform": lambda: waveform(3000, random_state=0),
    "moons": lambda: make_moons(1500, noise=0.3, random_state=0),
    "clean": made(2000, 0.01),
    "noisy": made(2000, 0.3),
}


def measured(name: str, seed: int) -> tuple[object, ...]:
    """Return what changes where the held-out rows of a set move: the columns of a row."""
    X, y = SETS[name]()
    X, y = np.asarray(X, dtype=float), (np.asarray(y) > 0).astype(int)
    train, test, labels, _ = train_test_split(X, y, test_size=0.5, random_state=seed, stratify=y)
    plain = HistGradientBoostingClassifier(random_state=seed)
    model = cp.GoalClassifier(plain, goals=["recall(train) >= 0.9"], random_state=seed, confidence=None)
    try:
        model.fit(train, labels)
    except InfeasibleGoals:
        model = model.set_params(goals=()).fit(train, labels)
    moved = test + MOVED * (np.nanmax(X, axis=0) - np.nanmin(X, axis=0))  # missing values stay missing
    (rule,) = model.rules_
    before, after = (model.predict_proba(rows)[:, 1] > rule.thresholds["all"] for rows in (test, moved))
    changed = model.predict(test) != model.predict(moved)
    numbers = (changed.sum(), (before != after).sum(), (changed & (before == after)).sum())
    models = len(getattr(model.estimators_[0], "models", [None]))
    return name, seed, len(train), models, len(test), *map(int, numbers)


def page(rows: list[dict[str, str]]) -> str:
    """Return the page, given all rows."""
    by_set = {name: [row for row in rows if row["set"] == name] for name in SETS}
    table = [
        [
            name,
            f"{int(own[0]['rows']):,}",
            f"{sum(int(row['decisions']) for row in own):,}",
            *(str(sum(int(row[column]) for row in own)) for column in COLUMNS[-3:]),
        ]
        for name, own in by_set.items()
        if own
    ]
    total = [sum(int(row[column]) for row in rows) for column in COLUMNS[4:]]
    heads = ["set", "training rows", "decisions", "changed", "changed by the model alone", "changed on its side"]
    verdict = "holds" if total[3] == 0 and total[1] == total[2] else "does NOT hold"
    return (
        "# Decisions of rows that move by a millionth\n\n"
        f"Made by `python bench/stability.py`: {len(table)} sets, {len({row['seed'] for row in rows})} seeds. Every "
        "numeric feature of the held-out rows is moved by 1e-6 of its range. *Changed*: decisions of the default "
        "`GoalClassifier` with a floor on recall that change. *By the model alone*: those that change where the scores "
        "of its model are cut at the same threshold. *On its side*: decisions that change although the score stays on "
        "its side of the threshold.\n\n"
        f"Of {total[0]:,} decisions {total[1]:,} change ({total[1] / total[0]:.3%}), {total[2]:,} by the model alone, "
        f"and {total[3]} on their side. The promise that a decision changes only where its score crosses the threshold "
        f"{verdict}.\n\n" + markdown_table(heads, table) + "\n"
    )


def main() -> None:
    """Measure what is not there yet, and write the page."""
    options = arguments(__doc__ or "", SETS, 5, FOLDER).parse_args()
    records = records_of(options, COLUMNS, n_keys=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in [] if options.page else options.only:
            for seed in range(options.splits):
                if not records.has(name, seed):
                    records.add(*measured(name, seed))
    (options.output / "README.md").write_text(page(records.rows), encoding="utf-8")


if __name__ == "__main__":
    main()
