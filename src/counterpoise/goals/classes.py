"""The two classes that rates speak of, and which labels are the positive one."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import AnyArray, ArrayLike, BoolArray

_SIGNS = {0, 1, -1}  # labels of which 1 is the positive one, even where it stands alone


class Classes(NamedTuple):
    """The two labels; None where no row names one."""

    negative: Any
    positive: Any


def is_positive(labels: AnyArray, classes: Classes, name: str) -> BoolArray:
    """Return which labels are the positive one, after checking that the others are the negative one."""
    positive = np.asarray(labels == classes.positive)
    foreign = ~(positive | np.asarray(labels == classes.negative)) if classes.negative is not None else ~positive
    if foreign.any():
        raise ValueError(
            f"{name} holds the label {labels[foreign].tolist()[0]!r}, which is not among the classes "
            f"{[known for known in classes if known is not None]!r}."
        )
    return positive


def two_classes(
    labels: Iterable[AnyArray | None], *, classes: ArrayLike | None = None, pos_label: Any = None
) -> Classes:
    """Return the negative and the positive label.

    The positive one is the last of the sorted classes unless ``pos_label`` names it. Where only one label is seen, 1 is
    positive and 0 and -1 are negative.
    """
    if classes is not None:
        seen = list(np.asarray(classes).tolist())
    else:
        seen = _sorted({label for array in labels if array is not None for label in set(array.tolist())})
    if len(seen) > 2:  # noqa: PLR2004
        raise ValueError(
            f"Goals on rates speak of a positive and a negative class; got {len(seen)} classes: "
            f"{', '.join(map(repr, seen[:10]))}. Make the labels binary, as in y == {seen[0]!r}."
        )
    if pos_label is not None:
        return _with_positive(seen, pos_label)
    if len(seen) == 1 and seen[0] not in _SIGNS:
        raise ValueError(f"All labels are {seen[0]!r}: is that the positive class? Say so with pos_label.")
    if len(seen) == 1:
        return Classes(None, 1) if seen[0] == 1 else Classes(seen[0], 1)
    return Classes(*(seen or (None, None)))


def _sorted(labels: set[Any]) -> list[Any]:
    try:
        return sorted(labels)
    except TypeError as error:
        kinds = sorted({type(label).__name__ for label in labels})
        raise TypeError(
            f"Labels must be of one kind, those of the data and those predicted; got {' and '.join(kinds)}."
        ) from error


def _with_positive(seen: list[Any], pos_label: Any) -> Classes:
    others = [label for label in seen if label != pos_label]
    if len(others) > 1:
        raise ValueError(f"pos_label must be one of the classes {seen!r}; got {pos_label!r}.")
    return Classes(others[0] if others else None, pos_label)


def signs_of(classes: AnyArray, pos_label: Any) -> AnyArray:
    """Return the negative and the positive class."""
    if pos_label is None:
        return classes
    if pos_label not in classes.tolist():
        raise ValueError(f"pos_label must be one of the classes {classes.tolist()!r}; got {pos_label!r}.")
    return classes if pos_label == classes[1] else classes[::-1]
