"""Ramp rates and indicator rates of ConstrainedClassifier: the 80 % rule on three public sets, by two thresholds.

Usage: COUNTERPOISE_DATA=... python bench/ramp_threshold.py [--only NAME ...] [--page]

Writes docs/results/ramp_threshold. "At zero" decides by the sign of the score, as in the paper; "moved" is
``decision="fixed"``, whose threshold is moved to where the indicator rates meet the goal on the training rows.
"""

import argparse
import csv
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before any library starts its threads

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from counterpoise import ConstrainedClassifier
from counterpoise.rules.cautions import Caution

sys.path.insert(0, str(Path(__file__).parent.parent))
from papers.datasets import load_dataset

FOLDER = Path(__file__).parent.parent / "docs" / "results" / "ramp_threshold"
SETS = {"Adult": "adult", "credit default": "credit-default", "Census KDD": "census-income"}
BOUNDS = (0.7, 0.8, 0.9)
AT_ZERO, MOVED = "at zero", "moved"
_RARE = 20  # rows of a category below which it is one of the rare


class Part(NamedTuple):
    """Rows as numbers, labels 0 and 1, and which rows are women's."""

    X: Any
    y: np.ndarray
    is_woman: np.ndarray


class Measured(NamedTuple):
    """One line of the table."""

    set: str
    bound: float
    threshold: str
    ramp_ratio: float
    train_ratio: float
    test_ratio: float
    train_error: float
    test_error: float
    constant_error: float
    warned: str


def parts_of(name: str) -> tuple[Part, Part]:
    """Return training and test rows: the official ones, or random halves."""
    data = load_dataset(name)
    if data.split is not None:
        parts = data.part("train"), data.part("test")
    else:
        order = np.random.default_rng(0).permutation(len(data.y))
        parts = tuple(data.take(half) for half in np.array_split(order, 2))
    numbers = [np.nan_to_num(np.asarray(part.X, dtype=np.float64), nan=-1.0) for part in parts]  # missing is a value
    categories = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=_RARE)
    encoder = make_column_transformer(
        (StandardScaler(), np.flatnonzero(~data.categorical)),
        (categories, np.flatnonzero(data.categorical)),
        sparse_threshold=1.0,
    ).fit(numbers[0])
    positive = np.unique(data.y)[1]
    train, test = (
        Part(encoder.transform(rows), (part.y == positive).astype(int), np.asarray(part.sensitive["sex"]) == "Female")
        for rows, part in zip(numbers, parts, strict=True)
    )
    return train, test


def ratio_of(decisions: np.ndarray, part: Part) -> float:
    """Return the positive rate of women over that of men."""
    men = float(decisions[~part.is_woman].mean())
    return float(decisions[part.is_woman].mean()) / men if men > 0 else float("nan")


def measured(title: str) -> Iterator[Measured]:
    """Yield the lines of one set."""
    train, test = parts_of(SETS[title])
    group = {"sex": np.where(train.is_woman, "F", "M")}
    for bound in BOUNDS:
        goal = f"positive_rate(train, sex=F) >= {bound} * positive_rate(train, sex=M)"
        for threshold, decision in ((AT_ZERO, "ramp"), (MOVED, "fixed")):
            with warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always", Caution)
                model = ConstrainedClassifier(goals=goal, decision=decision)
                model.fit(train.X, train.y, sensitive_features=group)
            ramps = model.predict_proba(train.X)[:, 1]
            decided = [
                model.predict(part.X) if threshold == MOVED else (model.predict_proba(part.X)[:, 1] > 0.5).astype(int)
                for part in (train, test)
            ]
            yield Measured(
                *(title, bound, threshold, ratio_of(ramps, train)),
                *(ratio_of(said, part) for said, part in zip(decided, (train, test), strict=True)),
                *(float((said != part.y).mean()) for said, part in zip(decided, (train, test), strict=True)),
                model.constant_error_,
                " ".join(one.category.__name__ for one in heard),
            )


def write_page(rows: list[dict[str, str]]) -> None:
    """Write the page of the table."""
    lines = [
        f"| {row['set']} | {row['bound']} | {row['threshold']} | {float(row['ramp_ratio']):.3f} "
        f"| {float(row['train_ratio']):.3f} | {float(row['test_ratio']):.3f} | {float(row['train_error']):.4f} "
        f"| {float(row['test_error']):.4f} | {float(row['constant_error']):.4f} |"
        for row in rows
    ]
    kept = {
        name: sum(float(row["train_ratio"]) >= float(row["bound"]) for row in rows if row["threshold"] == name)
        for name in (AT_ZERO, MOVED)
    }
    n_fits = len(rows) // 2
    n_warned = sum(bool(row["warned"]) for row in rows if row["threshold"] == MOVED)
    warned = f"{n_warned} of these warned" if n_warned else "none of these warned"
    text = f"""# Ramp rates and indicator rates

Made by `python bench/ramp_threshold.py`; every number is in `results.csv` beside this page.

`ConstrainedClassifier` is trained with ramp rates, in which a row counts with probability
`max(0, min(1, 1/2 + score))`. Decisions by a threshold have other rates, the indicator rates. The goal is
`positive_rate(train, sex=F) >= bound * positive_rate(train, sex=M)`; each ratio below is the positive rate of women
over that of men. Regularization and all else are the defaults, numbers are scaled, categories are columns of 0 and 1,
and sex is among the features. Training and test rows are the official ones; of credit default, which has no split,
random halves.

*At zero*: decided by the sign of the score, as in the paper. *Moved*: `decision="fixed"`, whose threshold is moved
to where the indicator rates meet the goal on the training rows. *Constant*: the training error of the better of
the two constant decisions.

| set | bound | threshold | ramp ratio, train | ratio, train | ratio, test | error, train | error, test | constant |
|---|---:|---|---:|---:|---:|---:|---:|---:|
{chr(10).join(lines)}

On the training rows the indicator rates meet the bound in {kept[AT_ZERO]} of {n_fits} fits at zero, and in
{kept[MOVED]} of {n_fits} with the threshold moved; {warned}. Nothing is promised of test rows: for that give the goal a
confidence.
"""
    (FOLDER / "README.md").write_text(text, encoding="utf-8")


def main() -> None:
    """Measure, then write the table and the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--only", nargs="*", default=list(SETS), metavar="NAME", help="sets")
    parser.add_argument("--page", action="store_true", help="measure nothing, write the page of what is there")
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / "results.csv"
    if not options.page:
        with path.open("w", newline="", encoding="utf-8") as file:
            table = csv.writer(file)
            table.writerow(Measured._fields)
            for title in options.only:
                for line in measured(title):
                    table.writerow(line)
                    print(*line)
    with path.open(newline="", encoding="utf-8") as file:
        write_page(list(csv.DictReader(file)))


if __name__ == "__main__":
    main()
