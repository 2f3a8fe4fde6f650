"""Classes: which labels there are, which one is positive, and the code of each."""

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.frames import as_array, as_objects
from counterpoise._base.types import AnyArray, ArrayLike, BoolArray, IntArray
from counterpoise.goals.terms import UnknownValue, as_number, is_missing, text_of, unknown

_SIGNS = {0, 1, -1}  # labels of which 1 is the positive one, even where it stands alone
_SHOWN = 10  # labels in a message
_ANSWERS = "predictions"  # what the name of answers in a message starts with
_YES = ("yes", "y", "true", "t", "positive", "pos", "good")


class Classes(NamedTuple):
    """The two labels, None where no row names one; or several, of which one may be called positive."""

    negative: Any
    positive: Any
    several: tuple[Any, ...] = ()  # all labels, sorted, where there are more than two
    deferred: Any = None  # the answer that is no class, its code behind theirs: a person decides; None where never

    @property
    def labels(self) -> list[Any]:
        """Return the labels, each at the place that is its code; None where no row names it."""
        return list(self.several or (self.negative, self.positive))

    @property
    def n_columns(self) -> int:
        """Return how many numbers a prediction has: the share of the positive class, or a share for each answer."""
        return len(self.several) or 1 if self.deferred is None else len(self.labels) + 1

    def codes(self, labels: AnyArray, name: str) -> IntArray:
        """Return the place of each label among the classes."""
        codes = np.full(labels.shape, -1)
        for place, label in enumerate(self.labels):
            if label is not None:
                np.copyto(codes, place, where=where_equal(labels, label))
        if (codes < 0).any():
            raise not_a_class(labels, codes < 0, name, self.labels)
        return codes

    def answers(self, predictions: AnyArray, name: str) -> IntArray:
        """Return the place of each prediction among the classes, or behind them where it is deferred."""
        if self.deferred is None:
            return self.codes(predictions, name)
        is_deferred = where_equal(predictions, self.deferred)
        codes = np.full(predictions.shape, len(self.labels))
        codes[~is_deferred] = self.codes(predictions[~is_deferred], name)
        return codes


def as_labels(values: Any) -> AnyArray:
    """Return labels as an array; in a list of numbers and texts each stays what it is, and a missing one is missing."""
    labels = as_array(values)
    if labels.dtype.kind == "m":  # numpy compares lengths of time with numbers
        raise ValueError(f"Labels must be numbers or texts; got lengths of time, of type {labels.dtype}.")
    is_list = isinstance(values, (list, tuple)) and labels.ndim == 1 and labels.dtype.kind in "US"
    if not is_list or any(all(isinstance(label, kind) for label in values) for kind in (str, bytes)):
        return labels
    return as_objects(values)  # numpy would make texts of them all: 'nan' of a missing one


def where_equal(labels: AnyArray, label: Any) -> BoolArray:
    """Return which labels are equal to one of them: 1, 1.0 and True are, the text "1" is not."""
    try:
        is_equal = labels == label
        is_mask = isinstance(is_equal, np.ndarray) and is_equal.dtype == np.bool_
        return is_equal if is_mask else np.broadcast_to(np.asarray(is_equal, dtype=np.bool_), labels.shape)
    except (TypeError, ValueError):  # pandas.NA has no truth value
        return np.array([not is_missing(one) and bool(one == label) for one in labels.tolist()], dtype=np.bool_)


def check_defer_label(deferred: Any, labels: Iterable[Any], name: str = "defer_label") -> None:
    """Refuse a label of deferred rows that could be taken for a class; ``name`` is what the user calls it."""
    if not isinstance(deferred, (str, Real, np.bool_)) or text_of(deferred).strip() in {"", "nan"}:
        raise TypeError(f"{name} must be a text or a number that no class has; got {deferred!r}.")
    for label in labels:
        if label is not None and (label == deferred or reads_as(deferred) == reads_as(label)):
            raise ValueError(
                f"{name} must not be mistaken for a class; got {deferred!r} beside the class {label!r}. Choose "
                f"another, as {name}='ask a person'."
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


def not_a_class(labels: AnyArray, is_foreign: BoolArray, name: str, known: Iterable[Any]) -> ValueError:
    """Return the error for labels of which some are no class: each of those once, and in how many rows they are."""
    classes = [label for label in known if label is not None]
    foreign_labels = labels[is_foreign].tolist()  # one missing value is like another
    values = {one if isinstance(one, (str, Real)) and not is_missing(one) else repr(one): one for one in foreign_labels}
    foreign, n_more = list(values.values())[:_SHOWN], len(values) - _SHOWN
    more = f" and {n_more} more" if n_more > 0 else ""
    known_classes = "no class is known" if not classes else f"not among the classes {_format_labels(classes)}"
    is_one = len(values) == 1
    return ValueError(
        f"{name} {'hold' if name.startswith(_ANSWERS) else 'holds'} the label{'' if is_one else 's'} "
        f"{', '.join(map(repr, foreign))}{more}, "
        + (f"which {'is' if is_one else 'are'} {known_classes}" if classes else f"and {known_classes}")
        + f" ({int(is_foreign.sum())} of {is_foreign.size} rows).{_advice(foreign, name, classes)}"
    )


def _format_labels(classes: list[Any]) -> str:
    more = f" and {len(classes) - _SHOWN} more" if len(classes) > _SHOWN else ""
    return f"{classes[:_SHOWN]!r}{more}"


def _advice(foreign: list[Any], name: str, classes: list[Any]) -> str:
    """Say what to do about labels that are no class."""
    near = {reads_as(label): label for label in classes}
    alike = next(((label, near[reads_as(label)]) for label in foreign if reads_as(label) in near), None)
    if any(map(is_missing, foreign)):
        return " A missing one is no class: give each row a class, or the defer_label where a person decides."
    if alike is not None:
        return f" {alike[0]!r} is not the class {alike[1]!r}: blanks, case and type count. Write it as the class is."
    if len(classes) < 2:  # noqa: PLR2004 - a binary problem
        return (
            " The labels of the data do not show two classes: pass y, or name all there are with classes, as "
            "classes=[0, 1]."
        )
    if not name.startswith(_ANSWERS):
        return ""
    return (
        " If it stands for rows that a person decides about, name it with defer_label; if it is a class that the "
        "labels do not show, name all classes with classes."
    )


def without_deferred(labels: AnyArray, defer_label: Any) -> AnyArray:
    """Return the labels that are not deferred."""
    return labels if defer_label is None else labels[~where_equal(labels, defer_label)]


def distinct_labels(arrays: Iterable[AnyArray | None]) -> AnyArray:
    """Return all labels that arrays hold, each once."""
    labels = {label for array in arrays if array is not None for label in set(array.tolist())}
    distinct = np.empty(len(labels), dtype=object)
    distinct[:] = list(labels)
    return distinct


def known_labels(arrays: Iterable[AnyArray | None], classes: ArrayLike | None) -> AnyArray:
    """Return all classes: those given, which must name every label that arrays hold, or else these labels."""
    labels = distinct_labels(arrays)
    if classes is None:
        return labels
    names = check_classes(classes)
    missing = sorted(set(labels.tolist()) - set(names.tolist()), key=str)
    if missing:
        raise ValueError(
            f"classes must name every class there is; got {_format_labels(names.tolist())}, and the labels hold "
            f"{_format_labels(missing)} too. Add what is missing, or leave classes out."
        )
    return distinct_labels([names])


def check_answers(answers: AnyArray, known: Iterable[Any], name: str) -> None:
    """Refuse answers that are none of the classes known."""
    classes = set(known)
    foreign = np.ones(answers.shape, dtype=np.bool_)
    for label in classes:
        foreign &= ~where_equal(answers, label)
    if foreign.any():
        raise not_a_class(answers, foreign, name, sorted(classes, key=str))


def find_classes(
    labels: Iterable[AnyArray | None], *, classes: ArrayLike | None = None, pos_label: Any = None
) -> Classes:
    """Return the negative and the positive label, or all of more than two.

    The positive one is the last of two sorted classes unless ``pos_label`` names it. Where only one label is seen, 1 is
    positive and 0 and -1 are negative. Of more than two classes none is positive unless it is named.
    """
    names = list(distinct_labels(labels).tolist() if classes is None else check_classes(classes).tolist())
    try:
        names = sorted(names) if classes is None else names
    except TypeError as error:
        kinds = sorted({type(label).__name__ for label in names})
        raise TypeError(
            f"Labels of the data and predictions must be of one kind; got {' and '.join(kinds)}. If one of them stands "
            "for rows that a person decides about, name it with defer_label."
        ) from error
    if pos_label is not None and pos_label not in names and len(names) > 1:
        raise no_such_class(names, pos_label)
    if len(names) > 2:  # noqa: PLR2004
        return Classes(None, pos_label, tuple(names))
    if pos_label is not None:
        return Classes(next((label for label in names if label != pos_label), None), pos_label)
    if len(names) == 1 and names[0] not in _SIGNS:
        raise ValueError(
            f"All labels are {names[0]!r}: is that the positive class? Name the positive class with pos_label."
        )
    if len(names) == 1:
        return Classes(None, 1) if names[0] == 1 else Classes(names[0], 1)
    return Classes(*(names or (None, None)))


def check_classes(classes: ArrayLike) -> AnyArray:
    """Return classes as an array after checking that each is a label."""
    names = as_labels(classes)
    if names.ndim != 1 or not names.size:
        raise ValueError(f"classes must be a list of labels, as classes=[0, 1]; got shape {names.shape}.")
    if names.dtype.kind in "fO" and any(map(is_missing, names.tolist())):
        raise ValueError(f"classes must hold labels only; got a missing one among {_format_labels(names.tolist())}.")
    if len(set(names.tolist())) < names.size:
        raise ValueError(f"classes must name each class once; got {_format_labels(names.tolist())}.")
    return names


def resolve_classes(
    labels: Iterable[AnyArray | None],
    predictions: Mapping[str, AnyArray],
    *,
    classes: ArrayLike | None,
    pos_label: Any,
    defer_label: Any,
) -> Classes:
    """Return the classes of labels and predictions; ``predictions`` are by the name that a message gives them.

    A prediction that is neither a label nor among ``classes``, nor the ``defer_label``, is refused where one class is
    known: it would be taken for the other.
    """
    names = known_labels(labels, classes)
    known = {*names.tolist(), *([] if pos_label is None else [pos_label])}
    for name, array in predictions.items() if len(known) < 2 else ():  # noqa: PLR2004 - a binary problem
        check_answers(without_deferred(array, defer_label), known, name)
    all_classes = find_classes([names], pos_label=pos_label)
    if defer_label is not None:
        check_defer_label(defer_label, all_classes.labels)
    return all_classes._replace(deferred=defer_label)


def is_positive_word(label: str) -> bool:
    """Return whether a text is a word for the positive class, whatever it is about."""
    return label.strip().lower() in _YES


def no_such_class(classes: Sequence[Any], pos_label: Any) -> ValueError:
    """Return the error for a positive class that is none of the classes."""
    coded = ""
    if isinstance(pos_label, str) and [*classes] == [*range(len(classes))]:
        coded = (
            " Some tools, as cross_val_predict and StackingClassifier, put 0 and 1 in the place of texts: there leave "
            "pos_label out, which makes the last of the sorted labels positive, or give them numbers as labels."
        )
    return ValueError(f"pos_label must be one of the classes {list(classes)!r}; got {pos_label!r}.{coded}")


def signs_of(classes: AnyArray, pos_label: Any) -> AnyArray:
    """Return the negative and the positive class."""
    if pos_label is None:
        return classes
    if pos_label not in classes.tolist():
        raise no_such_class(classes.tolist(), pos_label)
    return classes if pos_label == classes[1] else classes[::-1]
