"""Thresholds tuned by hand, as well as a careful person would: every combination of a fine grid, on held-out rows."""

from typing import Any, NamedTuple

import numpy as np

from papers.arrays import AnyArray

RECALL, DIFFERENCE, CHURN = 0.8, 0.05, 0.05
SEXES = ("Female", "Male")
_ALONE, _PAIR = 400, 40  # thresholds tried for a group, where a sex has one threshold and where it has two
_ROUNDS = 3  # each looks closer around the best of the one before


class Rows(NamedTuple):
    """Rows with labels, sexes and what last year's model said."""

    X: AnyArray
    y: AnyArray
    sex: AnyArray
    old: AnyArray

    def take(self, rows: Any) -> "Rows":
        """Return some of the rows."""
        return Rows(*(part[rows] for part in self))


class Tried(NamedTuple):
    """Thresholds tried for one sex, of those who got no and yes last year, and what its rows come to by each."""

    cuts: AnyArray  # (n_tried, 2)
    wrong: AnyArray
    found: AnyArray
    changed: AnyArray
    alarms: AnyArray  # false positive rate


def decided(model: Any, rows: Rows, cuts: AnyArray) -> AnyArray:
    """Return what a model says at thresholds by sex and last year's answer."""
    above = model.predict_proba(rows.X)[:, 1] > cuts[(rows.sex == "Male").astype(int), rows.old]
    return np.asarray(above, dtype=np.int64)


def best_cuts(scores: AnyArray, rows: Rows, by: str, bounds: list[float]) -> AnyArray:
    """Return the thresholds by sex and last year's answer with the least error inside the goals.

    Where none of them keeps the goals, those with the least total violation.
    """
    grids = [[np.linspace(0, 1, _PAIR if "baseline" in by else _ALONE)] * 2 for _ in SEXES]  # as quantiles
    for _ in range(_ROUNDS):
        women, men = (_tried(scores, rows, sex, by, grid) for sex, grid in zip(SEXES, grids, strict=True))
        places = _best(women, men, rows, bounds, is_one=not by)
        grids = [_closer(grid, place, by) for grid, place in zip(grids, places, strict=True)]
    return np.array([one.cuts[place] for one, place in zip((women, men), places, strict=True)])


def _tried(scores: AnyArray, rows: Rows, sex: str, by: str, grid: list[AnyArray]) -> Tried:
    """Return what the rows of one sex come to by all thresholds of a grid."""
    parts = []
    for old in (0, 1):
        of = (rows.sex == sex) & (rows.old == old)
        spread = scores[of] if "baseline" in by else scores[rows.sex == sex] if by else scores
        cuts = np.quantile(spread, grid[old]) if spread.size else np.zeros(grid[old].size)
        said, y = scores[of][None, :] > cuts[:, None], rows.y[of] == 1
        sums = [(said != y).sum(axis=1), said[:, y].sum(axis=1), (said != old).sum(axis=1), said[:, ~y].sum(axis=1)]
        parts.append((cuts, *sums))
    no, yes = (
        np.indices((grid[0].size, grid[1].size)).reshape(2, -1) if "baseline" in by else [np.arange(grid[0].size)] * 2
    )
    wrong, found, changed, alarms = (
        one[no] + other[yes] for one, other in zip(parts[0][1:], parts[1][1:], strict=True)
    )
    n_negative = np.sum((rows.sex == sex) & (rows.y == 0))
    return Tried(np.column_stack([parts[0][0][no], parts[1][0][yes]]), wrong, found, changed, alarms / n_negative)


def _best(women: Tried, men: Tried, rows: Rows, bounds: list[float], *, is_one: bool) -> tuple[int, int]:
    """Return which of the thresholds of women, and of men, are best together; with one for all they are the same."""
    left, right = (slice(None), slice(None)) if is_one else ((slice(None), None), (None, slice(None)))
    recall = (women.found[left] + men.found[right]) / rows.y.sum()
    violation = np.maximum(bounds[0] - recall, 0)
    violation += np.maximum(np.abs(women.alarms[left] - men.alarms[right]) - bounds[1], 0)
    violation += np.maximum((women.changed[left] + men.changed[right]) / rows.y.size - bounds[2], 0)
    least = np.flatnonzero(violation.ravel() <= violation.min() + 1e-12)
    place = least[(women.wrong[left] + men.wrong[right]).ravel()[least].argmin()]
    return (place, place) if is_one else tuple(np.unravel_index(place, violation.shape))


def _closer(grid: list[AnyArray], place: int, by: str) -> list[AnyArray]:
    """Return as many thresholds between the neighbours of the best."""
    places = divmod(place, grid[1].size) if "baseline" in by else (place, place)
    ends = [(one[max(at - 1, 0)], one[min(at + 1, one.size - 1)]) for one, at in zip(grid, places, strict=True)]
    return [np.linspace(*end, one.size) for end, one in zip(ends, grid, strict=True)]
