"""What deferring buys the worst-off: tail loss and error against the share of rows that a person decides about.

For each set and random split: gradient boosting is trained on half of the rows, rules of its scores are chosen on a
quarter, and judged on the last quarter in expectation over their draws. Rules have the least tail loss at alpha 0.1
with at most a point more error than the model alone and so many rows deferred, without and with goals that no group is
deferred more than 1.2 times as often as the other. Beside them stands what one does by hand: answer at one half, and
defer those nearest to it.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

import counterpoise as cp
from counterpoise.datasets import load_dataset
from counterpoise.metrics import cvar_loss
from papers.arrays import AnyArray
from papers.experiments import Blocks, Experiment, long_rows, values
from papers.markdown import markdown_table
from papers.tables import ResultRow, ResultsTable

NAME = "deferral"
ALPHA, MORE_ERROR, TIMES, MOST_ROWS, HALF = 0.1, 0.01, 1.2, 40_000, 0.5
SHARES, COSTS = (0.0, 0.025, 0.05, 0.1, 0.2), (0.0, 0.2)
SETS = {
    "Adult": ("adult", "sex", "Male"),
    "credit default": ("credit-default", "sex", "Male"),
    "COMPAS": ("compas", "race", "African-American"),
}
ALIKE = tuple(
    f"defer_rate(train, group={one}) <= {TIMES} * defer_rate(train, group={other})" for one, other in ((0, 1), (1, 0))
)
FREE, HELD, BY_HAND = "any group", f"at most {TIMES} times", "by hand"
IN_ALL = "any group, cost counted"  # in the average that may rise by a point


class Rows(NamedTuple):
    """Rows as their scores, labels and groups of 0 and 1."""

    scores: AnyArray
    y: AnyArray
    group: AnyArray


@cache
def loaded(name: str) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return features, labels and groups of a set."""
    source, column, value = SETS[name]
    data = load_dataset(source)
    return np.asarray(data.X, dtype=float), np.asarray(data.y), (data.sensitive[column] == value).astype(int)


def scored(name: str, split: int) -> tuple[Rows, Rows]:
    """Return rows to choose on and rows to judge by, scored by a model of others."""
    X, y, group = loaded(name)
    order = np.random.default_rng(split).permutation(y.size)[:MOST_ROWS]
    train, choose, test = np.split(order, [order.size // 2, 3 * order.size // 4])
    model = HistGradientBoostingClassifier(random_state=split).fit(X[train], y[train])
    return tuple(Rows(model.predict_proba(X[rows])[:, [1]], y[rows], group[rows]) for rows in (choose, test))  # type: ignore[return-value]


def chosen(rows: Rows, cost: float, groups: str, share: float) -> cp.GoalClassifier:
    """Return the rules of least tail loss."""
    most = float(((rows.scores[:, 0] > HALF) != rows.y).mean()) + MORE_ERROR
    counted = f" + {cost} * defer_rate(train)" if groups == IN_ALL else ""
    goals = [f"error_rate(train){counted} <= {most}", f"defer_rate(train) <= {share}"]
    goals += ALIKE if groups == HELD else ()
    settings: dict[str, Any] = {"alpha": ALPHA, "goals": goals, "by": "group", "decision": "sticky", "random_state": 0}
    model = cp.GoalClassifier([_as_it_is], cv="prefit", deferral=cp.Deferral(cost), **settings, confidence=None)
    return model.fit(rows.scores, rows.y, sensitive_features={"group": rows.group})


def _as_it_is(X: AnyArray) -> AnyArray:
    return X[:, 0]


class Judged(NamedTuple):
    """What rules come to on some rows."""

    tail: float
    error: float
    deferred: float
    times: float  # as often one group is deferred as the other


def judged(model: cp.GoalClassifier, rows: Rows, cost: float) -> Judged:
    """Return tail loss, error and deferral of rows, in expectation over the draws."""
    chances = model.decision_proba(rows.scores, sensitive_features={"group": rows.group})
    return measured(np.where(rows.y == 1, chances[:, 0], chances[:, 1]), chances[:, 2], rows, cost)


def by_hand(choose: Rows, rows: Rows, cost: float, share: float) -> Judged:
    """Return what it does to defer those nearest to one half, as far from it as is right on the selection rows."""
    reach = np.quantile(abs(choose.scores[:, 0] - HALF), share)
    deferred = abs(rows.scores[:, 0] - HALF) <= reach
    wrong = ((rows.scores[:, 0] > HALF) != rows.y) & ~deferred
    return measured(wrong.astype(float), deferred.astype(float), rows, cost)


def measured(wrong: AnyArray, deferred: AnyArray, rows: Rows, cost: float) -> Judged:
    """Return the numbers, given how likely each row is decided wrongly, and deferred."""
    by_group = [float(deferred[rows.group == group].mean()) for group in (0, 1)]
    times = max(by_group) / min(by_group) if min(by_group) > 0 else np.nan
    return Judged(cvar_loss(wrong + cost * deferred, ALPHA), float(wrong.mean()), float(deferred.mean()), times)


def cases() -> Iterator[tuple[float, str, float]]:
    """Yield all costs, demands on groups and shares; where nobody is deferred groups are alike."""
    for cost in COSTS:
        kinds = (FREE, HELD, *((IN_ALL,) if cost else ()), BY_HAND)
        yield from ((cost, groups, share) for groups in kinds for share in SHARES if share or groups == FREE)


class Part(NamedTuple):
    """A split of a set."""

    dataset: str
    seed: int
    experiment: str = NAME


def wanted(datasets: Sequence[str], n_seeds: int) -> list[Part]:
    """Return the splits."""
    return [Part(name, split) for split in range(n_seeds) for name in datasets]


def measure(part: Part) -> Iterator[ResultRow]:
    """Yield what all rules come to on a split."""
    choose, test = scored(part.dataset, part.seed)
    for cost, groups, share in cases():
        if groups == BY_HAND:
            told = [by_hand(choose, rows, cost, share) for rows in (test, choose)]
        else:
            model = chosen(choose, cost, groups, share)
            told = [judged(model, rows, cost) for rows in (test, choose)]
        found = told[0]._asdict() | {"tail of choice": told[1].tail}
        yield from long_rows(NAME, part.dataset, groups, part.seed, found, settings=f"cost={cost:g} share={share:g}")


def blocks(rows: ResultsTable) -> Blocks:
    """Return tails and errors where deferring costs nothing."""
    known = values(rows, "dataset", "method", "settings", "quantity")
    lines = []
    for dataset in dict.fromkeys(row.dataset for row in rows):
        for groups in (FREE, HELD, BY_HAND):
            tails = [known.get((dataset, groups, f"cost=0 share={share:g}", "tail")) for share in SHARES]
            errors = [known.get((dataset, groups, f"cost=0 share={share:g}", "error")) for share in SHARES]
            cells = [
                "" if tail is None or error is None else f"{tail.mean():.3f} / {error.mean():.3f}"
                for tail, error in zip(tails, errors, strict=True)
            ]
            lines.append([dataset, groups, *cells])
    heads = ["set", "who is deferred", *(f"{share:g} deferred" for share in SHARES)]
    return {"tails": markdown_table(heads, lines, n_words=2)}


EXPERIMENT = Experiment(NAME, "what deferring buys", wanted, measure, blocks, tuple(SETS), 5)
