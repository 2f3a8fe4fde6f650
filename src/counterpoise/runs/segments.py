"""The worst-off rows in words: which simple segments of the rows the tail is made of.

A shallow regression tree looks for rows that are often in the tail. A row at the edge of the tail counts with the
fraction that is needed to fill it, as in the CVaR itself, so a tail of equal losses favours no row.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.tree import DecisionTreeRegressor

from counterpoise._base.types import AnyArray, FloatArray
from counterpoise.goals.tables import MISSING
from counterpoise.runs.data import RunRows

_DEPTH = 3
_MOST = 5  # segments
_LEAST_ROWS = 20
_FEWEST = 2 * _LEAST_ROWS  # rows that can be two segments
_LEAST_SHARE = 0.01  # of all rows that a segment has
_NOTABLE = 1.2  # times the average share of the tail that is worth showing
_ENOUGH = 200_000  # rows to find segments on
_SEED = 0  # of the choice among more
_LARGEST = float(np.finfo(np.float32).max)  # that trees of scikit-learn take


class Segment(NamedTuple):
    """Rows that share a few properties, and how much of the tail they are."""

    text: str  # the properties
    n_rows: int  # an estimate where there are many rows
    share: float  # of its rows that are in the tail
    part: float  # of the tail that lies in it
    lift: float  # its share of rows in the tail, in terms of that of all rows


class _Feature(NamedTuple):
    column: str
    category: str | None  # the feature is whether the column has it; None for numbers
    has_missing: bool


def find_segments(part: RunRows, losses: FloatArray, alpha: float) -> list[Segment]:
    """Return the segments with the largest share of rows in the tail, the worst first."""
    membership, n_rows = tail_membership(losses, alpha, part.weights), len(part)
    if n_rows > _ENOUGH:
        rows = np.sort(np.random.default_rng(_SEED).choice(n_rows, _ENOUGH, replace=False))
        part, membership = part.rows(rows), membership[rows]
    if not 0 < membership.mean() < 1 or n_rows < _FEWEST:
        return []
    features, matrix = _features(part)
    least = max(_LEAST_ROWS, int(_LEAST_SHARE * len(part)))
    tree = DecisionTreeRegressor(max_depth=_DEPTH, min_samples_leaf=least, random_state=_SEED).fit(matrix, membership)
    leaves = tree.apply(matrix)
    average = membership.mean()
    segments = []
    for leaf, path in _paths(tree.tree_, features):
        inside = leaves == leaf
        share, count = float(membership[inside].mean()), round(inside.mean() * n_rows)
        if path and share >= _NOTABLE * average:
            part_of_tail = float(membership[inside].sum() / membership.sum())
            text = " and ".join(_conditions(path))
            segments.append(Segment(text, count, share, part_of_tail, share / float(average)))
    return sorted(segments, key=lambda one: -one.share)[:_MOST]


def why_no_segments(n_rows: int, alpha: float) -> str:
    """Return why segments are not looked for; nothing where they are."""
    if alpha >= 1:
        return "alpha is 1, so there is no tail"
    return f"{n_rows} rows are too few to find segments" if n_rows < _FEWEST else ""


def tail_membership(losses: FloatArray, alpha: float, weights: FloatArray | None = None) -> FloatArray:
    """Return how much of each row belongs to the worst fraction ``alpha`` of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.runs.segments import tail_membership
    >>> tail_membership(np.array([0.9, 0.1, 0.5, 0.5, 0.0]), 0.4).tolist()
    [1.0, 0.0, 0.5, 0.5, 0.0]
    """
    mass = np.ones(losses.size) if weights is None else weights
    order = np.argsort(-losses, kind="stable")
    wanted = alpha * mass.sum()
    # The mass wanted is rounded in its last digits, as a part of itself.
    edge = losses[order][min(int(np.searchsorted(np.cumsum(mass[order]), wanted * (1 - 1e-12))), losses.size - 1)]
    above, at = losses > edge, losses == edge
    rest = (wanted - mass[above].sum()) / max(mass[at].sum(), np.finfo(float).tiny)  # 0 / 0 where none weighs anything
    return np.where(above, 1.0, np.where(at, np.clip(rest, 0.0, 1.0), 0.0))


def _features(part: RunRows) -> tuple[list[_Feature], AnyArray]:
    """Return the columns as numbers, with a feature for each category that is common enough to be a segment."""
    frame = part.X.assign(**{name: values for name, values in part.groups.items() if name not in part.X})
    features, columns = [], []
    for name in frame.columns:
        column = frame[name]
        if column.dtype.kind in "biuf":
            values = np.clip(column.to_numpy(), -_LARGEST, _LARGEST).astype(np.float32)
            features.append(_Feature(name, None, bool(np.isnan(values).any())))
            columns.append(values)
            continue
        if column.dtype == object:  # a group, of which missing values are one
            column = column.where(column.notna(), MISSING)
        counts = column.value_counts()
        for category in counts.index[counts >= max(_LEAST_ROWS, _LEAST_SHARE * len(frame))]:
            features.append(_Feature(name, str(category), has_missing=False))
            columns.append((column == category).to_numpy().astype(np.float32))
    return features, np.column_stack(columns) if columns else np.zeros((len(frame), 1), dtype=np.float32)


def _paths(tree: Any, features: list[_Feature], node: int = 0, path: tuple[Any, ...] = ()) -> Iterator[tuple[int, Any]]:
    """Yield each leaf with the conditions that lead to it."""
    if tree.children_left[node] < 0:
        yield node, path
        return
    feature, threshold = features[tree.feature[node]], float(tree.threshold[node])
    missing_left = bool(tree.missing_go_to_left[node])
    for side, child in ((True, tree.children_left[node]), (False, tree.children_right[node])):
        words = _Condition(feature, threshold, side, feature.has_missing and side == missing_left)
        yield from _paths(tree, features, int(child), (*path, words))


class _Condition(NamedTuple):
    feature: _Feature
    threshold: float
    below: bool
    or_missing: bool


def _conditions(path: tuple[_Condition, ...]) -> Iterator[str]:
    """Yield conditions in words; two limits on one side of a column are one, the tighter, which comes last."""
    merged: dict[tuple[_Feature, bool], _Condition] = {}
    for one in path:
        merged.pop((one.feature, one.below), None)
        merged[one.feature, one.below] = one
    is_one_of = {one.feature.column for one in merged.values() if one.feature.category is not None and not one.below}
    for one in merged.values():
        column, category = one.feature.column, one.feature.category
        missing = " or missing" if one.or_missing else ""
        if category is None:
            yield f"{column} {'at most' if one.below else 'above'} {one.threshold:.6g}{missing}"
        elif not one.below:
            yield f"{column} is {category}"
        elif column not in is_one_of:
            yield f"{column} is not {category}"
