"""Mixtures chosen for the mean, for tails and for calibrated balls, where the population then shifts.

On each split a pool of gradient-boosted trees and logistic regressions, some of them trained on a part of the rows or
with other weights of the classes, is fitted to half of the rows. Mixtures are chosen on few and on more held-out
rows, one for each objective: of the answers of the pool, and of the thresholds of its first model, gradient boosting on
all rows. A control is that model where a fair coin decides about some rows, drawn without looking, as many as
give it the average error of the calibrated ball. On the test rows, errors are looked at as they are and under shifts:
all rows of a sub-population, the lowest or highest fifth by a feature, or the rows of one value of a category.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from counterpoise import GoalClassifier, MixtureClassifier
from counterpoise.datasets import TableData, load_dataset
from counterpoise.metrics import cvar_loss
from counterpoise.runs.results import ResultRow
from counterpoise.theory.risks import KL, CVaR, EmpiricalLikelihood, Mean, Risk
from papers.arrays import AnyArray, BoolArray, FloatArray

EXPERIMENT = "risks-under-shift"
DATASETS = ("adult", "credit-default")
N_CHOOSE = (300, 2000)  # rows
LEAST_SHARE = 0.05  # of the test rows in a sub-population
ALPHA = 0.1
MEAN, BALL = "mean", "calibrated empirical likelihood"
OBJECTIVES: dict[str, Risk] = {
    MEAN: Mean(),
    BALL: EmpiricalLikelihood("calibrated", confidence=0.9),
    "KL ball of radius 0.1": KL(0.1),
    "CVaR, alpha 0.5": CVaR(0.5),
    "CVaR, alpha 0.1": CVaR(ALPHA),
}
PLAIN = "plain model"  # the first of the pool: gradient boosting on all rows
COIN = "plain model and a coin"  # with the average error of the ball
POOL, THRESHOLDS = "pool", "thresholds"  # what is mixed
ERROR, WORST, SPREAD, TAIL = "error", "worst sub-population", "mean of the worst tenth", f"tail, alpha {ALPHA:g}"


class Split(NamedTuple):
    """A data set and the seed of its split."""

    dataset: str
    seed: int


def wanted(datasets: Sequence[str], n_seeds: int) -> list[Split]:
    """Return the splits."""
    return [Split(name, seed) for name in datasets for seed in range(n_seeds)]


def measure(split: Split) -> list[ResultRow]:
    """Return the errors of every mixture, and of the plain model, on one split."""
    return measure_on(load_dataset(split.dataset), split)


def measure_on(data: TableData, split: Split) -> list[ResultRow]:
    """Return the same for rows at hand."""
    X, y = np.nan_to_num(np.asarray(data.X, dtype=float), nan=-1.0), np.asarray(data.y)  # missing is a value
    shuffled = np.random.default_rng(split.seed).permutation(len(y))
    train, choose, test = np.split(shuffled, [len(y) // 2, len(y) // 2 + max(N_CHOOSE)])
    pool = fitted_pool(X[train], y[train])
    wrong = np.column_stack([model.predict(X[test]) != y[test] for model in pool]).astype(float)
    plain = wrong[:, 0]
    codes = np.searchsorted(pool[0].classes_, y[test])
    shifts = list(sub_populations(X[test]))
    rows = []
    for n_rows in N_CHOOSE:
        seen = choose[:n_rows]
        models = MixtureClassifier(pool, alpha=1.0, random_state=0).fit(X[seen], y[seen])
        rules = GoalClassifier(pool[0], cv="prefit", decision="sticky", confidence=None, random_state=0)
        rules.fit(X[seen], y[seen])
        losses = {PLAIN: plain}
        by_family = {POOL: dict(losses), THRESHOLDS: dict(losses)}
        for name, risk in OBJECTIVES.items():
            by_family[POOL][name] = wrong @ models.rebalance(objective=risk).mixture_
            chances = rules.rebalance(objective=risk).decision_proba(X[test])
            by_family[THRESHOLDS][name] = 1 - chances[np.arange(codes.size), codes]
        for family, found in by_family.items():
            found[COIN] = with_coin(plain, found[BALL].mean())
            rows += [row for name, one in found.items() for row in _rows(split, family, n_rows, name, one, shifts)]
    return rows


def with_coin(losses: FloatArray, error: float) -> FloatArray:
    """Return the expected losses where a fair coin decides about a share of the rows that gives the average error."""
    share = np.clip((error - losses.mean()) / (0.5 - losses.mean()), 0.0, 1.0)
    return np.asarray((1 - share) * losses + share / 2)


def fitted_pool(X: FloatArray, y: AnyArray) -> list[Any]:
    """Return models that err in different places: all rows, other weights of the classes, parts of the rows."""
    first, second = np.unique(y)
    pool = [HistGradientBoostingClassifier(random_state=0).fit(X, y)]
    for factor in (0.5, 2.0, 4.0):
        weights = {first: 1.0, second: factor}
        pool.append(HistGradientBoostingClassifier(class_weight=weights, random_state=0).fit(X, y))
        linear = LogisticRegression(class_weight=weights, max_iter=2000)
        pool.append(make_pipeline(StandardScaler(), linear).fit(X, y))
    for column in np.argsort(-X.var(axis=0) / (1e-9 + np.square(X).mean(axis=0)), kind="stable")[:4]:
        is_low = X[:, column] <= np.median(X[:, column])
        parts = [part for part in (is_low, ~is_low) if np.unique(y[part]).size > 1]
        pool += [HistGradientBoostingClassifier(random_state=0).fit(X[part], y[part]) for part in parts]
    return pool


def sub_populations(X: FloatArray) -> Iterator[BoolArray]:
    """Yield which rows are in each sub-population that is large enough."""
    for values in X.T:
        low, high = np.quantile(values, [0.2, 0.8])
        for is_inside in (values <= low, values >= high):
            if LEAST_SHARE <= is_inside.mean() < 1.0:
                yield is_inside


def _rows(
    split: Split, family: str, n_rows: int, method: str, losses: FloatArray, shifts: list[BoolArray]
) -> list[ResultRow]:
    by_shift = np.sort([losses[is_inside].mean() for is_inside in shifts])[::-1]
    found = {
        ERROR: losses.mean(),
        SPREAD: by_shift[: max(1, len(by_shift) // 10)].mean(),
        WORST: by_shift[0],
        TAIL: cvar_loss(losses, ALPHA),
    }
    return [
        ResultRow(
            EXPERIMENT,
            split.dataset,
            family,
            method,
            split.seed,
            None,
            name,
            "test",
            float(value),
            f"chosen on {n_rows}",
        )
        for name, value in found.items()
    ]
