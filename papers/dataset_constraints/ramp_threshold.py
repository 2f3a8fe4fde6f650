"""Ramp rates and indicator rates of ConstrainedClassifier: the 80 % rule on three public sets, by two thresholds.

"At zero" decides by the sign of the score, as in the paper; "moved" is ``decision="fixed"``, whose threshold is moved
to where the indicator rates meet the goal on the training rows.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from counterpoise import ConstrainedClassifier
from papers.arrays import AnyArray, IntArray
from papers.datasets import load_dataset
from papers.experiments import Blocks, Experiment, long_rows
from papers.markdown import markdown_table
from papers.tables import ResultRow, ResultsTable

NAME = "ramp-threshold"
SETS = {"Adult": "adult", "credit default": "credit-default", "Census KDD": "census-income"}
BOUNDS = (0.7, 0.8, 0.9)
AT_ZERO, MOVED = "at zero", "moved"
RAMP, TRAIN, TEST, ERROR, CONSTANT = "ramp_ratio", "train_ratio", "test_ratio", "test_error", "constant_error"
_RARE = 20  # rows of a category below which it is one of the rare
_EVEN = 0.5


class Part(NamedTuple):
    """A set and a bound."""

    dataset: str
    settings: str
    seed: int = 0


class Rows(NamedTuple):
    """Rows as numbers, labels 0 and 1, and which rows are women's."""

    X: Any
    y: IntArray
    is_woman: AnyArray


def parts_of(name: str) -> tuple[Rows, Rows]:
    """Return training and test rows: the official ones, or random halves."""
    data = load_dataset(name)
    if data.split is not None:
        parts = [data.part("train"), data.part("test")]
    else:
        order = np.random.default_rng(0).permutation(len(data.y))
        parts = [data.take(half) for half in np.array_split(order, 2)]
    numbers = [np.nan_to_num(np.asarray(part.X, dtype=np.float64), nan=-1.0) for part in parts]  # missing is a value
    categories = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=_RARE)
    encoder = make_column_transformer(
        (StandardScaler(), np.flatnonzero(~data.categorical)),
        (categories, np.flatnonzero(data.categorical)),
        sparse_threshold=1.0,
    ).fit(numbers[0])
    positive = np.unique(data.y)[1]
    train, test = (
        Rows(encoder.transform(rows), (part.y == positive).astype(int), np.asarray(part.sensitive["sex"]) == "Female")
        for rows, part in zip(numbers, parts, strict=True)
    )
    return train, test


def ratio_of(decisions: AnyArray, part: Rows) -> float:
    """Return the positive rate of women over that of men."""
    men = float(decisions[~part.is_woman].mean())
    return float(decisions[part.is_woman].mean()) / men if men > 0 else float("nan")


def wanted(datasets: Sequence[str], _n_seeds: int) -> list[Part]:
    """Return the bounds of each set."""
    return [Part(title, f"bound={bound:g}") for title in datasets for bound in BOUNDS]


def measure(part: Part) -> Iterator[ResultRow]:
    """Yield the ratios and errors of both thresholds."""
    train, test = parts_of(SETS[part.dataset])
    bound = float(part.settings.removeprefix("bound="))
    goal = f"positive_rate(train, sex=F) >= {bound} * positive_rate(train, sex=M)"
    for threshold, decision in ((AT_ZERO, "ramp"), (MOVED, "fixed")):
        model = ConstrainedClassifier(goals=goal, decision=decision)
        model.fit(train.X, train.y, sensitive_features={"sex": np.where(train.is_woman, "F", "M")})
        ramps = [model.predict_proba(rows.X)[:, 1] for rows in (train, test)]
        decided = [
            model.predict(rows.X) if threshold == MOVED else (ramp > _EVEN).astype(int)
            for rows, ramp in zip((train, test), ramps, strict=True)
        ]
        found = {RAMP: ratio_of(ramps[0], train), CONSTANT: model.constant_error_}
        for split, rows, decisions in zip(("train", "test"), (train, test), decided, strict=True):
            found |= {f"{split}_ratio": ratio_of(decisions, rows), f"{split}_error": (decisions != rows.y).mean()}
        yield from long_rows(NAME, part.dataset, threshold, part.seed, found, settings=part.settings)


def blocks(rows: ResultsTable) -> Blocks:
    """Return in how many fits the indicator rates meet the bound on the training rows, and what that costs."""
    lines = []
    for threshold in (AT_ZERO, MOVED):
        own = rows.where(method=threshold)
        kept = [row.value >= float(row.settings.removeprefix("bound=")) for row in own.where(quantity=TRAIN)]
        error = np.mean([row.value for row in own.where(quantity=ERROR)])
        lines.append([threshold, f"{sum(kept)} of {len(kept)}", f"{error:.4f}"])
    return {"table": markdown_table(["threshold", "bounds met on training rows", "mean test error"], lines)}


EXPERIMENT = Experiment(NAME, "ramp rates beside indicator rates", wanted, measure, blocks, tuple(SETS), 1)
