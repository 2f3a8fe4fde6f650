"""The values of a column as texts, which select rows: each row has the place of its text."""

from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import AnyArray, IntArray
from counterpoise.goals.ranges import is_missing
from counterpoise.goals.wording import text_of, text_of_time

MISSING = "(missing)"  # the text of a value that is missing; no column may hold it as a value of its own
_YES, _NO = ("True", "true", "1"), ("False", "false", "0")  # texts of a boolean


class Levels(NamedTuple):
    """The distinct texts of a column, and which of them each row has."""

    place: dict[str, int]  # the number of each text, in sorted order
    codes: IntArray  # the number of each row's text, -1 where the value is missing
    numbers: dict[Any, int] = {}  # noqa: RUF012 - never written to; the same for the values that are numbers

    def find(self, text: str) -> int | None:
        """Return the number of a text: its own, or that of an equal number or truth value; None where no row has it."""
        if text in self.place:
            return self.place[text]
        truth = as_truth(text) if text.isalpha() else None
        value = as_number(text, "i") if truth is None else truth
        return None if value is None else self.numbers.get(value)


def combined(columns: Mapping[str, Levels], n_samples: int) -> tuple[IntArray, list[str]]:
    """Return the group of each row, by the values of columns together, and the groups' names."""
    codes, names = np.zeros(n_samples, dtype=np.int64), [""]
    for column, levels in columns.items():  # one column after another: rows are many, groups few
        texts = [MISSING, *levels.place]
        present, codes = np.unique(codes * len(texts) + levels.codes + 1, return_inverse=True)
        pairs = ((names[place // len(texts)], texts[place % len(texts)]) for place in present.tolist())
        names = [f"{first}{', ' if first else ''}{column}={text}" for first, text in pairs]  # those there are, not all
    return codes, names


def refuse_missing_text(levels: Levels, column: str) -> None:
    """Refuse a column that holds the text ``(missing)``: goals and rules could not tell it from a missing value."""
    if MISSING in levels.place:
        rows = np.flatnonzero(levels.codes == levels.place[MISSING])
        raise ValueError(
            f"Column {column!r} must not hold the text {MISSING!r}, which stands for a missing value in goals and "
            f"rules; {rows.size} of {levels.codes.size} rows do, the first at position {rows[0]}. Put None there if "
            "the value is missing, else another text."
        )


def as_truth(text: str) -> bool | None:
    """Return the boolean that a text stands for, if it does."""
    return True if text in _YES else False if text in _NO else None


def as_number(text: str, kind: str) -> int | float | None:
    """Return the number that a text stands for, if it does, as a column of that kind would hold it."""
    readers: tuple[Callable[[str], int | float], ...] = (float,) if kind == "f" else (int, float)
    for read in readers:  # of whole numbers first: a float would round those above 2**53
        try:
            return read(text)
        except ValueError:
            continue
    return None


def may_be_same(one: str, other: str) -> bool:
    """Tell whether two texts may select the same rows: equal numbers, or truth values, are one however written."""
    if one == other:
        return True
    truth, number = as_truth(one), as_number(one, "f")
    if truth is not None and truth == as_truth(other):
        return True
    return number is not None and number == as_number(other, "f")


def find_levels(values: AnyArray, column: str) -> Levels:
    """Return the texts of a column, and which of them each row has; ``is_missing`` says which have none."""
    listed = values.tolist() if values.dtype.kind in "OUbiuf" else values.astype(str).tolist()
    if values.dtype.kind in "mM":
        known = {text: text_of_time(text) if values.dtype.kind == "M" else text for text in set(listed)}
        pairs = zip(listed, np.isnat(values), strict=True)
        listed = [None if is_none else known[text] for text, is_none in pairs]
    try:
        text = {value: text_of(value) for value in set(listed) if not is_missing(value)}
    except TypeError as error:
        raise TypeError(f"Column {column!r} must hold numbers or words to select rows by; {error}.") from error
    place = {word: at for at, word in enumerate(sorted(set(text.values())))}
    code = {value: place[word] for value, word in text.items()}
    numbers = {value: at for value, at in code.items() if isinstance(value, Real)}
    return Levels(place, np.fromiter((code.get(value, -1) for value in listed), np.int64, count=len(listed)), numbers)
