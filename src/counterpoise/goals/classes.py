"""The classes that rates speak of, and which labels are of which."""

from collections.abc import Iterable
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import AnyArray, ArrayLike, BoolArray, IntArray
from counterpoise.goals.levels import as_number
from counterpoise.goals.wording import UnknownValue, text_of, unknown

_SIGNS = {0, 1, -1}  # labels of which 1 is the positive one, even where it stands alone
_YES = ("yes", "y", "true", "t", "positive", "pos", "good")


class Classes(NamedTuple):
    """The two labels, None where no row names one; or several, of which one may be called positive."""

    negative: Any
    positive: Any
    several: tuple[Any, ...] = ()  # all labels, sorted, where there are more than two
    deferred: Any = None  # the answer that is no class: a person decides; None where nothing is deferred

    @property
    def labels(self) -> list[Any]:
        """Return the labels, each at the place that is its code; None where no row names it."""
        return list(self.several or (self.negative, self.positive))

    @property
    def n_columns(self) -> int:
        """Return how many numbers tell a prediction: how positive it is, or how much it is of each answer."""
        return len(self.several) or 1 if self.deferred_place is None else self.deferred_place + 1

    @property
    def deferred_place(self) -> int | None:
        """Return the code of a deferred row, behind those of the classes; None where nothing is deferred."""
        return None if self.deferred is None else len(self.labels)

    def place(self, of: str | None) -> int:
        """Return the code of the class with a text, or of the positive one."""
        if of is not None:
            return place_of(self.labels, of)
        if not self.several:
            return 1
        if self.positive is None:
            listed = ", ".join(map(repr, self.several[:10]))
            raise ValueError(
                f"A rate speaks of a positive class; got {len(self.several)} classes: {listed}. Name the one that is "
                f"meant with of, as in recall(train, of={text_of(self.several[0])}), or with pos_label "
                "(data.positive in a goals file)."
            )
        return self.several.index(self.positive)

    def codes(self, labels: AnyArray, name: str) -> IntArray:
        """Return the place of each label among the classes."""
        if not self.several:
            return is_positive(labels, self, name).astype(np.int64)
        codes = np.full(labels.shape, -1)
        for place, label in enumerate(self.several):
            codes[labels == label] = place
        if (codes < 0).any():
            raise _foreign(labels[codes < 0], name, self.labels)
        return codes

    def answers(self, predictions: AnyArray, name: str) -> IntArray:
        """Return the place of each prediction among the classes, or behind them where it is deferred."""
        if self.deferred is None:
            return self.codes(predictions, name)
        is_deferred = where_deferred(predictions, self.deferred)
        codes = np.full(predictions.shape, len(self.labels))
        codes[~is_deferred] = self.codes(predictions[~is_deferred], name)
        return codes


def where_deferred(predictions: AnyArray, deferred: Any) -> BoolArray:
    """Return which predictions are the label of deferred rows."""
    return np.broadcast_to(np.asarray(predictions == deferred, dtype=np.bool_), predictions.shape)


def check_defer_label(deferred: Any, labels: Iterable[Any]) -> None:
    """Refuse a label of deferred rows that could be taken for a class."""
    if not isinstance(deferred, (str, Real, np.bool_)) or text_of(deferred).strip() in {"", "nan"}:
        raise TypeError(f"defer_label must be a text or a number that no class has; got {deferred!r}.")
    for label in labels:
        if label is not None and (label == deferred or reads_as(deferred) == reads_as(label)):
            raise ValueError(
                f"defer_label must not be taken for a class; got {deferred!r} beside the class {label!r}. Choose "
                "another, as defer_label='ask a person'."
            )


def reads_as(label: Any) -> str | float:
    """Return what a label is where it is read from a text: a number, where it is one."""
    text = text_of(label).strip()
    number = as_number(text, "f")
    return text.casefold() if number is None else number


def place_of(labels: list[Any], of: str) -> int:
    """Return the place of the label with a text; numbers are compared as numbers."""
    texts = {text_of(label): place for place, label in enumerate(labels) if label is not None}
    if of in texts:
        return texts[of]
    for place, label in enumerate(labels):
        if label is not None and not isinstance(label, (str, bytes, bool, np.bool_)) and as_number(of, "f") == label:
            return place
    raise UnknownValue(str(unknown("class", of, texts)))


def _foreign(labels: AnyArray, name: str, known: list[Any]) -> ValueError:
    return ValueError(
        f"{name} holds the label {labels.tolist()[0]!r}, which is not among the classes "
        f"{[label for label in known if label is not None]!r}."
    )


def is_positive(labels: AnyArray, classes: Classes, name: str) -> BoolArray:
    """Return which labels are the positive one, after checking that the others are the negative one."""
    positive = np.asarray(labels == classes.positive)
    foreign = ~(positive | np.asarray(labels == classes.negative)) if classes.negative is not None else ~positive
    if foreign.any():
        raise _foreign(labels[foreign], name, classes.labels)
    return positive


def find_classes(
    labels: Iterable[AnyArray | None], *, classes: ArrayLike | None = None, pos_label: Any = None
) -> Classes:
    """Return the negative and the positive label, or all of more than two.

    The positive one is the last of two sorted classes unless ``pos_label`` names it. Where only one label is seen, 1 is
    positive and 0 and -1 are negative. Of more than two classes none is positive unless it is named.
    """
    if classes is not None:
        seen = list(np.asarray(classes).tolist())
    else:
        seen = _sorted({label for array in labels if array is not None for label in set(array.tolist())})
    if len(seen) > 2:  # noqa: PLR2004
        if pos_label is not None and pos_label not in seen:
            raise ValueError(f"pos_label must be one of the classes {seen!r}; got {pos_label!r}.")
        return Classes(None, pos_label, tuple(seen))
    if pos_label is not None:
        return _with_positive(seen, pos_label)
    if len(seen) == 1 and seen[0] not in _SIGNS:
        raise ValueError(f"All labels are {seen[0]!r}: is that the positive class? Say so with pos_label.")
    if len(seen) == 1:
        return Classes(None, 1) if seen[0] == 1 else Classes(seen[0], 1)
    return Classes(*(seen or (None, None)))


def two_classes(labels: Iterable[AnyArray | None], *, pos_label: Any = None) -> Classes:
    """Return the negative and the positive label, and refuse more of them."""
    found = find_classes(labels, pos_label=pos_label)
    if found.several:
        raise ValueError(
            f"Rates by group speak of a positive and a negative class; got {len(found.several)} classes: "
            f"{', '.join(map(repr, found.several[:10]))}. Make the labels binary, as in y == {found.several[0]!r}."
        )
    return found


def _sorted(labels: set[Any]) -> list[Any]:
    try:
        return sorted(labels)
    except TypeError as error:
        kinds = sorted({type(label).__name__ for label in labels})
        raise TypeError(
            f"Labels must be of one kind, those of the data and those predicted; got {' and '.join(kinds)}. If one "
            "stands for rows that a person decides about, name it: defer_label."
        ) from error


def _with_positive(seen: list[Any], pos_label: Any) -> Classes:
    others = [label for label in seen if label != pos_label]
    if len(others) > 1:
        raise ValueError(f"pos_label must be one of the classes {seen!r}; got {pos_label!r}.")
    return Classes(others[0] if others else None, pos_label)


def says_yes(label: str) -> bool:
    """Tell whether a text is a word for the positive class, whatever it is about."""
    return label.strip().lower() in _YES


def signs_of(classes: AnyArray, pos_label: Any) -> AnyArray:
    """Return the negative and the positive class."""
    if pos_label is None:
        return classes
    if pos_label not in classes.tolist():
        raise ValueError(f"pos_label must be one of the classes {classes.tolist()!r}; got {pos_label!r}.")
    return classes if pos_label == classes[1] else classes[::-1]
