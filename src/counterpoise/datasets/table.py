"""What a data set is once loaded, arrays that share their rows, and seeded splits of rows into parts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.checks import check_count
from counterpoise._base.types import AnyArray, ArrayLike, BoolArray, FloatArray, IntArray

_MANY_CLASSES = 12  # above this a repr that lists them all is no longer read


@dataclass(frozen=True, eq=False, repr=False)
class TableData:
    """A data set, encoded as numbers, with its groups and its official split.

    Attributes
    ----------
    name : str
        The name it was loaded by.
    X : array of shape (n_rows, n_features)
        float64 with NaN where a value is missing; a CSR array for ``"a9a"`` and ``"w8a"``, uint8 for ``"mnist"``.
    y : array of shape (n_rows,)
        Integer labels.
    feature_names : list of str
        One for each column of ``X``.
    categorical : bool array of shape (n_features,)
        True where a column holds integer category codes, whose order means nothing.
    sensitive : dict of str to array of shape (n_rows,)
        Group columns, such as sex and race, as strings.
    split : array of shape (n_rows,), or None
        ``"train"`` or ``"test"`` where the source has an official split.
    description : str
        How it was made.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.datasets import TableData
    >>> toy = TableData(
    ...     name="toy", X=np.eye(3), y=np.array([0, 1, 1]), feature_names=["a", "b", "c"],
    ...     categorical=np.zeros(3, bool), sensitive={"sex": np.array(["F", "M", "F"])},
    ...     split=np.array(["train", "train", "test"]), description="three unit vectors",
    ... )
    >>> toy
    TableData('toy': 3 rows, 3 features, classes 0 (1), 1 (2), sensitive sex, split train (2), test (1))
    >>> toy.part("train").y.tolist()
    [0, 1]
    """

    name: str
    X: Any
    y: AnyArray
    feature_names: list[str]
    categorical: BoolArray
    sensitive: dict[str, AnyArray]
    split: AnyArray | None
    description: str

    def __post_init__(self) -> None:
        of_rows: dict[str, Any] = {"y": self.y} | ({} if self.split is None else {"split": self.split})
        of_rows |= {f"sensitive[{key!r}]": column for key, column in self.sensitive.items()}
        of_columns: dict[str, Any] = {"feature_names": self.feature_names, "categorical": self.categorical}
        for parts, size, what in zip((of_rows, of_columns), self.X.shape, ("row", "column"), strict=True):
            for field, part in parts.items():
                if len(part) != size:
                    raise ValueError(f"{field} must have {size} entries, one for each {what} of X; got {len(part)}.")

    def take(self, rows: ArrayLike) -> "TableData":
        """Return the table of the given rows, by index or by boolean mask."""
        places = np.asarray(rows)
        return replace(
            self,
            X=self.X[places],
            y=self.y[places],
            sensitive={key: column[places] for key, column in self.sensitive.items()},
            split=None if self.split is None else self.split[places],
        )

    def part(self, name: str) -> "TableData":
        """Return the rows of one part, ``"train"`` or ``"test"``, of the official split."""
        if self.split is None:
            raise ValueError(
                f"data set {self.name!r} has no official split to take part {name!r} of; "
                "make one with counterpoise.datasets.split_rows."
            )
        known = np.unique(self.split).tolist()
        if name not in known:
            raise ValueError(f"part must be one of {', '.join(map(repr, known))}; got {name!r}.")
        return self.take(self.split == name)

    def __repr__(self) -> str:
        facts = [f"{self.X.shape[0]} rows", f"{self.X.shape[1]} features", f"classes {_counts(self.y)}"]
        if self.sensitive:
            facts.append(f"sensitive {', '.join(self.sensitive)}")
        if self.split is not None:
            facts.append(f"split {_counts(self.split, falling=True)}")  # train before test
        return f"TableData({self.name!r}: {', '.join(facts)})"


def _counts(labels: AnyArray, *, falling: bool = False) -> str:
    values, counts = np.unique(labels, return_counts=True)
    if len(values) > _MANY_CLASSES:
        return f"{values[0]} to {values[-1]} ({len(values)} of them)"
    pairs = [f"{value} ({count})" for value, count in zip(values, counts, strict=True)]
    return ", ".join(reversed(pairs) if falling else pairs)


_ROUNDING = 1e-9  # by which fractions such as 0.7 + 0.2 + 0.1 may miss 1, to which they must sum
_LAST_DIGITS = 1e-13  # part of a number of rows that is lost where it is a fraction times another


def split_rows(y: ArrayLike, parts: Sequence[float], *, seed: int, stratify: bool = True) -> list[IntArray]:
    """Split the rows into parts of the given fractions.

    With ``stratify`` each class is shared out by itself: of a class with c rows a part of fraction f gets f c,
    rounded up or down, and at least one. What rounding costs a part in one class it is given back in the next,
    so the sizes of the parts stay right too, even with many small classes.

    Parameters
    ----------
    y : array of shape (n_rows,)
        Labels of any kind.
    parts : sequence of float
        Fractions above 0 that sum to 1, such as ``(0.5, 0.25, 0.25)``.
    seed : int
        The same seed gives the same split.
    stratify : bool, default True
        Keep the share of each class in every part; otherwise the labels play no role.

    Returns
    -------
    list of array
        For each part its row indices, in ascending order. Each row is in exactly one part.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.datasets import split_rows
    >>> y = np.array(["rare"] * 4 + ["common"] * 16)
    >>> train, valid, test = split_rows(y, (0.5, 0.25, 0.25), seed=0)
    >>> [len(rows) for rows in (train, valid, test)], np.unique(y[test]).tolist()
    ([10, 5, 5], ['common', 'rare'])
    """
    fractions = _check_parts(parts)
    labels = np.asarray(y)
    if labels.ndim != 1 or labels.size == 0:
        raise ValueError(f"y must hold one label for each row, shape (n_rows,); got shape {labels.shape}.")
    rng = np.random.default_rng(check_count(seed, "seed", 0))
    names, codes = np.unique(labels, return_inverse=True) if stratify else (None, np.zeros(len(labels), dtype=int))
    _check_counts(np.bincount(codes), names, len(fractions))
    return _deal(codes, fractions, rng)


def _deal(codes: AnyArray, fractions: FloatArray, rng: np.random.Generator) -> list[IntArray]:
    """Shuffle the rows of each class and cut them at its seats."""
    debts = np.zeros(len(fractions))
    shares: list[list[AnyArray]] = [[] for _ in fractions]
    for code in range(codes.max() + 1):
        rows = rng.permutation(np.flatnonzero(codes == code))
        seats = _seats(len(rows), fractions, debts)
        debts = debts + len(rows) * fractions - seats
        for share, piece in zip(shares, np.split(rows, np.cumsum(seats)[:-1]), strict=True):
            share.append(piece)
    return [np.sort(np.concatenate(share)) for share in shares]


def _seats(count: int, fractions: FloatArray, debts: FloatArray) -> IntArray:
    """Share ``count`` rows out: round down, give the rest to those owed most, then one to each that has none."""
    exact = count * fractions
    seats = np.floor(exact * (1.0 + _LAST_DIGITS)).astype(np.int64)
    rest = count - int(seats.sum())
    neediest = np.argsort(-(exact - seats + debts), kind="stable")
    seats[neediest[:rest]] += 1
    for empty in np.flatnonzero(seats == 0):
        seats[np.argmax(seats)] -= 1
        seats[empty] = 1
    return seats


def _check_parts(parts: Sequence[float]) -> FloatArray:
    fractions = np.asarray(parts)
    if fractions.ndim != 1 or fractions.size == 0 or fractions.dtype.kind not in "iuf":
        raise TypeError(f"parts must be a sequence of fractions such as (0.5, 0.25, 0.25); got {parts!r}.")
    total = math.fsum(fractions.tolist())
    if not (fractions > 0).all() or not abs(total - 1.0) <= _ROUNDING:  # NaN fails too
        raise ValueError(
            f"parts must be fractions above 0 that sum to 1; got {tuple(fractions.tolist())} with sum {total:.12g}. "
            "To leave rows out, give them a part of their own."
        )
    return np.asarray(fractions / total, dtype=np.float64)


def _check_counts(counts: AnyArray, names: AnyArray | None, n_parts: int) -> None:
    least = int(np.argmin(counts))
    if counts[least] >= n_parts:
        return
    if names is None:
        raise ValueError(f"y must have at least one row for each of the {n_parts} parts; got {counts[least]} rows.")
    raise ValueError(
        f"each class must have at least {n_parts} rows, one for each part; class {names[least].item()!r} has "
        f"{counts[least]}. Merge or drop that class, use fewer parts, or pass stratify=False."
    )


class ThreeParts(NamedTuple):
    """Row numbers to train on, to choose on (a mixture, a threshold, a model), and to certify on."""

    train: IntArray
    choose: IntArray
    certify: IntArray


def split_three_ways(n_rows: int, *, parts: Sequence[float] = (0.5, 0.25, 0.25), seed: int) -> ThreeParts:
    """Split rows at random into those to train on, to choose on and to certify on.

    Labels play no role: only so are the rows of each part plain draws from the population, as an audit needs them.

    Parameters
    ----------
    n_rows : int
        At least 3: every part has a row.
    parts : three fractions that sum to 1, default=(0.5, 0.25, 0.25)
    seed : int
        The same seed gives the same split.

    Returns
    -------
    ThreeParts
        The row numbers ``train``, ``choose`` and ``certify``, each in ascending order.

    Examples
    --------
    >>> from counterpoise.datasets import split_three_ways
    >>> [len(rows) for rows in split_three_ways(1000, seed=0)]
    [500, 250, 250]
    """
    n_parts = len(ThreeParts._fields)
    if len(_check_parts(parts)) != n_parts:
        raise ValueError(f"parts must be three fractions, to train, choose and certify on; got {len(parts)}.")
    rows = np.zeros(check_count(n_rows, "n_rows", n_parts))
    return ThreeParts(*split_rows(rows, parts, seed=seed, stratify=False))
