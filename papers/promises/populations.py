"""Populations of scored rows whose truth is known, goals around what a model has there, and how rules are judged."""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from counterpoise.goals import Goal, Table, as_goals
from papers.arrays import AnyArray, FloatArray, IntArray
from papers.comparison.questions import ODDS, PARITY, RECALL
from papers.datasets import load_dataset

BOTH = "parity and recall"
GOALS = (RECALL, PARITY, BOTH, ODDS)
Positive = Callable[[AnyArray], AnyArray]


def _last(y: AnyArray) -> AnyArray:
    return np.asarray(y == np.unique(y)[-1])


# The column of the two groups: a sensitive one, or a feature, cut at its median; and which labels are positive.
SETS: dict[str, tuple[str | int, Positive]] = {
    "census-income": ("sex", _last),
    "wine-quality": ("color", lambda y: y > 5),  # noqa: PLR2004 - good wines, as in the papers
    "w8a": (148, _last),
    "abalone": (1, lambda y: y > 9),  # noqa: PLR2004 - old ones, as in the papers
}
SEEN: dict[str, tuple[str | int, Positive]] = {  # while the margins were developed
    "adult": ("sex", _last),
    "acs-income": ("sex", _last),
    "credit-default": ("sex", _last),
    "compas": ("sex", _last),
    "covertype": (5, lambda y: y == 2),  # noqa: PLR2004 - the most common cover
}
_MOST_TRAINED, _PART_TRAINED = 15_000, 3  # rows to train on: a third, and no more than so many
_MOST_ROWS = 60_000
_PART_OF_GAP = 0.6  # bounds of differences, in parts of what the model has
_LEAST_BOUND = 0.02
_MORE_RECALL, _MOST_RECALL = 0.05, 0.97


class Population(NamedTuple):
    """The scores, labels and groups (0 and 1) of rows that the model was not trained on."""

    scores: FloatArray
    y: IntArray
    group: IntArray

    def take(self, rows: IntArray) -> "Population":
        """Return some of the rows."""
        return Population(self.scores[rows], self.y[rows], self.group[rows])


@cache
def population(name: str) -> Population:
    """Return the rows of a data set that a model trained on some others scores."""
    data = load_dataset(name)
    X = np.asarray(data.X.toarray() if hasattr(data.X, "toarray") else data.X, dtype=np.float64)
    column, positive = (SETS | SEEN)[name]
    if isinstance(column, str):
        names = np.asarray(data.sensitive[column]).astype(str)
        group = (names == np.unique(names)[1]).astype(np.int64)
    else:
        group = (X[:, column] > np.median(X[:, column])).astype(np.int64)
    rows = np.random.default_rng(0).permutation(len(X))[:_MOST_ROWS]
    X, y, group = X[rows], positive(np.asarray(data.y))[rows].astype(np.int64), group[rows]
    n_trained = min(len(y) // _PART_TRAINED, _MOST_TRAINED)
    categorical = None if data.categorical is None or not data.categorical.any() else data.categorical
    model = HistGradientBoostingClassifier(max_iter=100, categorical_features=categorical, random_state=0)
    scores = model.fit(X[:n_trained], y[:n_trained]).predict_proba(X[n_trained:])[:, 1]
    return Population(scores, y[n_trained:], group[n_trained:])


@cache
def goals_of(name: str, title: str) -> tuple[Goal, ...]:
    """Return goals around what the model has at the selection rate that equals the share of positives."""
    known = population(name)
    decisions = known.scores > np.quantile(known.scores, 1.0 - known.y.mean())
    recall = decisions[known.y == 1].mean()
    gaps = [
        abs(float(decisions[rows & (known.group == 0)].mean() - decisions[rows & (known.group == 1)].mean()))
        for rows in (known.y >= 0, known.y == 0, known.y == 1)
    ]
    parity = f"max_difference(positive_rate, by=group) <= {max(_PART_OF_GAP * gaps[0], _LEAST_BOUND):.3f}"
    odds = f"equalized_odds_difference(by=group) <= {max(_PART_OF_GAP * max(gaps[1:]), _LEAST_BOUND):.3f}"
    texts = {
        RECALL: [f"recall >= {min(recall + _MORE_RECALL, _MOST_RECALL):.3f}"],
        PARITY: [parity],
        BOTH: [parity, f"recall >= {recall:.3f}"],
        ODDS: [odds],
    }
    return as_goals(texts[title])


def columns_of(title: str) -> tuple[str, ...]:
    """Return the columns that rules may look at."""
    return () if title == RECALL else ("group",)


class Outcome(NamedTuple):
    """What decisions come to on rows, in expectation."""

    holds: bool  # all goals together
    missed_by: float  # the largest violation of a goal
    error: float


def judge(chances: AnyArray, known: Population, goals: tuple[Goal, ...]) -> Outcome:
    """Return what comes of the chances that rows are called positive."""
    codes = 2 * known.group + known.y
    n_rows = np.bincount(codes, minlength=4)
    share = np.bincount(codes, chances, minlength=4) / np.maximum(n_rows, 1)
    y = np.array([0, 1, 0, 1])
    table = Table(None, y, {"group": np.array([0, 0, 1, 1])}, sample_weight=n_rows)
    checks = [goal.evaluate_expected(np.column_stack([1.0 - share, share]), table) for goal in goals]
    error = float(n_rows @ np.abs(y - share) / n_rows.sum())
    return Outcome(all(check.holds for check in checks), max(check.violation for check in checks), error)
