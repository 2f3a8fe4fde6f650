"""What a data set is once loaded: arrays that share their rows."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from counterpoise._base.types import AnyArray, ArrayLike, BoolArray

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
        n_rows, n_features = self.X.shape
        lengths = {"y": len(self.y)} | {f"sensitive[{key!r}]": len(column) for key, column in self.sensitive.items()}
        if self.split is not None:
            lengths["split"] = len(self.split)
        for field, length in lengths.items():
            if length != n_rows:
                raise ValueError(f"{field} must have {n_rows} entries, one for each row of X; got {length}.")
        for field, length in {"feature_names": len(self.feature_names), "categorical": len(self.categorical)}.items():
            if length != n_features:
                raise ValueError(f"{field} must have {n_features} entries, one for each column of X; got {length}.")

    def take(self, rows: ArrayLike) -> "TableData":
        """Return the table of the given rows, by index or by boolean mask."""
        chosen = np.asarray(rows)
        return replace(
            self,
            X=self.X[chosen],
            y=self.y[chosen],
            sensitive={key: column[chosen] for key, column in self.sensitive.items()},
            split=None if self.split is None else self.split[chosen],
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
