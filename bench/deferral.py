"""What deferring buys the worst-off: tail loss and error against the share of rows that a person decides about.

Usage: python bench/deferral.py [--only NAME ...] [--splits N] [--page] [--output FOLDER]
Rows that the results hold already are kept.

For each set and random split: gradient boosting is trained on half of the rows, rules of its scores are chosen on a
quarter, and judged on the last quarter in expectation over their draws. Rules have the least tail loss at alpha 0.1
with at most a point more error than the model alone and so many rows deferred, without and with goals that no group is
deferred more than 1.2 times as often as the other. Beside them stands what one does by hand: answer at one half, and
defer those nearest to it. Everything runs on one core.
"""

import argparse
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before any library starts its threads

import numpy as np
import pandas as pd
from records import Records
from sklearn.ensemble import HistGradientBoostingClassifier

import counterpoise as cp
from counterpoise.datasets import load_dataset
from counterpoise.metrics import cvar_loss

FOLDER = Path(__file__).parent.parent / "docs" / "results" / "deferral"
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
STATED = {(0, 0): 0.82, (0, 0.05): 0.61, (0, 0.1): 0.49, (0.2, 0.05): 0.68, (0.2, 0.1): 0.58}  # on Adult, by a sketch
NEWLINE = "\n"
KEYS = ["set", "cost", "groups", "share"]
COLUMNS = ("set", "split", "cost", "groups", "share", *("tail", "error", "deferred", "times"), "tail of choice")
N_KEYS = 5


class Part(NamedTuple):
    """Rows as their scores, labels and groups of 0 and 1."""

    scores: np.ndarray
    y: np.ndarray
    group: np.ndarray


@cache
def loaded(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features, labels and groups of a set."""
    source, column, value = SETS[name]
    data = load_dataset(source)
    return np.asarray(data.X, dtype=float), np.asarray(data.y), (data.sensitive[column] == value).astype(int)


def scored(name: str, split: int) -> tuple[Part, Part]:
    """Return rows to choose on and rows to judge by, scored by a model of others."""
    X, y, group = loaded(name)
    order = np.random.default_rng(split).permutation(y.size)[:MOST_ROWS]
    train, choose, test = np.split(order, [order.size // 2, 3 * order.size // 4])
    model = HistGradientBoostingClassifier(random_state=split).fit(X[train], y[train])
    return tuple(Part(model.predict_proba(X[rows])[:, [1]], y[rows], group[rows]) for rows in (choose, test))  # type: ignore[return-value]


def chosen(rows: Part, cost: float, groups: str, share: float) -> cp.GoalClassifier:
    """Return the rules of least tail loss."""
    most = float(((rows.scores[:, 0] > HALF) != rows.y).mean()) + MORE_ERROR
    counted = f" + {cost} * defer_rate(train)" if groups == IN_ALL else ""
    goals = [f"error_rate(train){counted} <= {most}", f"defer_rate(train) <= {share}"]
    goals += ALIKE if groups == HELD else ()
    settings: dict[str, Any] = {"alpha": ALPHA, "goals": goals, "by": "group", "decision": "sticky", "random_state": 0}
    model = cp.GoalClassifier([_as_it_is], cv="prefit", deferral=cp.Deferral(cost), **settings, confidence=None)
    return model.fit(rows.scores, rows.y, sensitive_features={"group": rows.group})


def _as_it_is(X: np.ndarray) -> np.ndarray:
    return X[:, 0]


class Judged(NamedTuple):
    """What rules come to on some rows."""

    tail: float
    error: float
    deferred: float
    times: float  # as often one group is deferred as the other


def judged(model: cp.GoalClassifier, rows: Part, cost: float) -> Judged:
    """Return tail loss, error and deferral of rows, in expectation over the draws."""
    chances = model.decision_proba(rows.scores, sensitive_features={"group": rows.group})
    return measured(np.where(rows.y == 1, chances[:, 0], chances[:, 1]), chances[:, 2], rows, cost)


def by_hand(choose: Part, rows: Part, cost: float, share: float) -> Judged:
    """Return what it does to defer those nearest to one half, as far from it as is right on the selection rows."""
    reach = np.quantile(abs(choose.scores[:, 0] - HALF), share)
    deferred = abs(rows.scores[:, 0] - HALF) <= reach
    wrong = ((rows.scores[:, 0] > HALF) != rows.y) & ~deferred
    return measured(wrong.astype(float), deferred.astype(float), rows, cost)


def measured(wrong: np.ndarray, deferred: np.ndarray, rows: Part, cost: float) -> Judged:
    """Return the numbers, given how likely each row is decided wrongly, and deferred."""
    by_group = [float(deferred[rows.group == group].mean()) for group in (0, 1)]
    times = max(by_group) / min(by_group) if min(by_group) > 0 else np.nan
    return Judged(cvar_loss(wrong + cost * deferred, ALPHA), float(wrong.mean()), float(deferred.mean()), times)


def cases() -> Iterator[tuple[float, str, float]]:
    """Yield all costs, demands on groups and shares; where nobody is deferred groups are alike."""
    for cost in COSTS:
        kinds = (FREE, HELD, *((IN_ALL,) if cost else ()), BY_HAND)
        yield from ((cost, groups, share) for groups in kinds for share in SHARES if share or groups == FREE)


def measure(name: str, split: int, records: Records) -> None:
    """Add what the records lack of a set and a split."""
    missing = [case for case in cases() if not records.has(name, split, *case)]
    if not missing:
        return
    choose, test = scored(name, split)
    for cost, groups, share in missing:
        if groups == BY_HAND:
            told = [by_hand(choose, rows, cost, share) for rows in (test, choose)]
        else:
            model = chosen(choose, cost, groups, share)
            told = [judged(model, rows, cost) for rows in (test, choose)]
        records.add(name, split, cost, groups, share, *told[0], told[1].tail)


def page(table: pd.DataFrame) -> str:
    """Return the means over the splits as a page."""
    ranks = {"set": list(SETS).index, "cost": float, "groups": [FREE, HELD, IN_ALL, BY_HAND].index}
    table = table.sort_values([*ranks], key=lambda column: column.map(ranks[str(column.name)]), kind="stable")
    means, errors = table.groupby(KEYS, sort=False).mean(), table.groupby(KEYS, sort=False).sem()
    heads = ["set", "cost", "groups", "may be deferred", "tail, selection rows", "tail, test", "error, test"]
    heads += ["deferred, test", "times as often", f"{BY_HAND} and a coin"]
    lines = [f"| {' | '.join(heads)} |", "|---|---:|---|---:|---:|---:|---:|---:|---:|---:|"]
    coins = with_coin(table)
    for key, row in means.iterrows():
        name, cost, groups, share = key  # type: ignore[misc]
        tail = f"{row['tail']:.3f} ± {errors.loc[key, 'tail']:.3f}"
        rates = f"{row['error']:.4f} | {row['deferred']:.3f}"
        numbers = f"{rates} | {row['times']:.2f} | {coins.get(key, np.nan):.3f}".replace("nan", "-")
        lines.append(f"| {name} | {cost:g} | {groups} | {share:g} | {row['tail of choice']:.3f} | {tail} | {numbers} |")
    splits = table["split"].nunique()
    return f"""# What deferring buys the worst-off

Made by `python bench/deferral.py`. Gradient boosting trained on half of the rows (of {MOST_ROWS:,} at most); rules of
its scores, with thresholds of their own for two groups, chosen on a quarter and judged on the rest, in expectation over
their draws. They have the least tail loss at alpha {ALPHA:g} with at most {MORE_ERROR:g} more error than the model
alone and so many rows deferred, each at the cost given. *{HELD}*: under goals that no group is deferred more than
{TIMES:g} times as often as the other; *times as often* is how often one group is deferred for each time that the other
is, on test rows. *{IN_ALL}*: the average that may rise by {MORE_ERROR:g} counts deferred rows at their cost, too.
*{BY_HAND}*: answers at one half, and those nearest to it are deferred; the tail of answers that nobody draws is 1
wherever more than {ALPHA:g} of the rows are wrong. Means over {splits} splits, with the standard error of the tail.
*{BY_HAND} and a coin* is the control: the tail by hand on test rows where a fair coin, which looks at nothing, decides
about so many rows that the decided ones are wrong as often as by ours.

{NEWLINE.join(lines)}

## Beside an earlier sketch

The tail on Adult that a sketch stated before this was built, where the average counts deferred rows at their cost. It
did not say on which rows, nor by which model.

{NEWLINE.join(_beside_stated(means))}
"""


def with_coin(table: pd.DataFrame) -> pd.Series:
    """Return the mean tail by hand where a coin decides so often that it errs as often as the rules that are free."""
    own = table[table["groups"] == FREE].set_index(["split", *KEYS])["error"]
    hand = table[table["groups"] == BY_HAND].assign(groups=FREE).set_index(["split", *KEYS])
    both = hand.join(own.rename("asked"), how="inner")
    wrong, right = both["error"], 1 - both["deferred"] - both["error"]
    half = ((both["asked"] - wrong) / (right - wrong)).clip(0, HALF)  # of the rows that the coin decides
    tails = []
    for place, chance in enumerate(half):
        losses = np.array([1 - chance, chance, float(both.index[place][2])])
        shares = np.array([wrong.iloc[place], right.iloc[place], both["deferred"].iloc[place]])
        tails.append(cvar_loss(losses, ALPHA, sample_weight=shares))
    return pd.Series(tails, both.index).groupby(KEYS).mean()


def _beside_stated(means: pd.DataFrame) -> Iterator[str]:
    """Yield what was stated beside what is measured here."""
    yield "| cost | may be deferred | stated | tail, selection rows | tail, test |"
    yield "|---:|---:|---:|---:|---:|"
    for (cost, share), stated in STATED.items():
        row = means.loc[("Adult", cost, IN_ALL if cost else FREE, share)]
        yield f"| {cost:g} | {share:g} | {stated} | {row['tail of choice']:.3f} | {row['tail']:.3f} |"


def main() -> None:
    """Measure, and write the table and the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="*", default=list(SETS))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--output", type=Path, default=FOLDER)
    asked = parser.parse_args()
    asked.output.mkdir(parents=True, exist_ok=True)
    results = asked.output / "results.csv"
    records = Records(results, COLUMNS, N_KEYS)
    for split in range(0 if asked.page else asked.splits):
        for name in asked.only:
            measure(name, split, records)
    (asked.output / "README.md").write_text(page(pd.read_csv(results)))


if __name__ == "__main__":
    main()
