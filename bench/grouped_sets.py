"""Data with groups for the studies of groups: three public sets, and two that are made with a spurious feature."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from counterpoise.datasets import load_dataset

MOST_ROWS = 20_000


class GroupedRows(NamedTuple):
    """Features, labels of 0 and 1, and the group of each row."""

    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray


def public(name: str, column: str) -> Callable[[int], GroupedRows]:
    """Return a function that draws rows of a public set; a group is a value of the column, the rare ones together."""

    def rows(seed: int) -> GroupedRows:
        data = load_dataset(name)
        some = np.random.default_rng(seed).permutation(len(data.y))[:MOST_ROWS]
        names, codes = np.unique(np.asarray(data.sensitive[column])[some].astype(str), return_inverse=True)
        is_rare = np.bincount(codes) < some.size / 20
        X = np.nan_to_num(np.asarray(data.X, dtype=float)[some], nan=-1.0)
        return GroupedRows(
            X, (data.y[some] == np.unique(data.y)[1]).astype(int), np.where(is_rare[codes], names.size, codes)
        )

    return rows


def spurious(share: float) -> Callable[[int], GroupedRows]:
    """Return a function that makes rows: a noisy feature that holds for all, and a clean one that fools few of them.

    A group is a label with a value of the spurious feature; that of rows in which they agree is the larger ``share``.
    """

    def rows(seed: int) -> GroupedRows:
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 2, MOST_ROWS)
        shown = np.where(rng.uniform(size=y.size) < share, y, 1 - y)
        core, other = (y - 0.5) + rng.normal(scale=0.6, size=y.size), (shown - 0.5) + rng.normal(scale=0.2, size=y.size)
        X = np.column_stack([core, other, rng.normal(size=(y.size, 8))])
        return GroupedRows(X, y, 2 * y + shown)

    return rows


SETS: dict[str, Callable[[int], GroupedRows]] = {
    "adult": public("adult", "race"),
    "acs income": public("acs-income", "race"),
    "compas": public("compas", "race"),
    "credit default": public("credit-default", "sex"),
    "spurious, 90 %": spurious(0.9),
    "spurious, 97 %": spurious(0.97),
}
