"""Which column plays which part, and frames of the types that the run was fitted on."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.checks import warn_caller
from counterpoise._base.types import AnyArray, FloatArray
from counterpoise.goals.values import MISSING, text_of
from counterpoise.runs.errors import DataError, check_columns, listed
from counterpoise.runs.reading import NO_NUMBERS, WordsAmongNumbers
from counterpoise.runs.settings import DataSettings, RunSettings
from counterpoise.runs.written import how_written

_MOST_CLASSES = 1000


class Columns(NamedTuple):
    """The features by their kind, in the order of the files, and all columns that held texts in training."""

    numeric: list[str]
    categorical: list[str]
    texts: Sequence[str] = ()  # the target and the groups too

    @property
    def features(self) -> list[str]:
        """Return the names of all features."""
        return [*self.numeric, *self.categorical]


def feature_names(known: Sequence[str], settings: RunSettings, path: Path) -> list[str]:
    """Return which columns of a file are features: those asked for, or all that have no other part."""
    asked, split = settings.data, settings.splits.column
    keys = ("target", "weights", "baseline", "columns", "drop", "groups", "categorical")
    for key, value in {**{f"data.{key}": getattr(asked, key) for key in keys}, "splits.column": split}.items():
        check_columns([value] if isinstance(value, str) else value or [], known, path, f"{key}: ")
    others = {asked.target, asked.weights, asked.baseline, split, *asked.drop}
    if not asked.use_groups_as_features and asked.columns is None:
        others |= set(asked.groups)
    names = [name for name in (asked.columns or known) if name not in others]
    if not names:
        raise DataError(f"{path} must have a column to learn from beside the target; data leaves none.")
    return names


def find_columns(frame: Any, names: Sequence[str], asked: DataSettings) -> Columns:
    """Return which features are categories: texts, and those that the goals file names."""
    texts = [name for name in frame.columns if frame[name].dtype.name == "category"]
    categories = {*texts, *asked.categorical}
    is_category = {name: name in categories for name in names}
    return Columns(
        [name for name in names if not is_category[name]], [name for name in names if is_category[name]], texts
    )


def features_of(frame: Any, columns: Columns, path: Path) -> Any:
    """Return the features of a frame with the types that they had where the run was fitted."""
    import pandas as pd  # noqa: PLC0415 - heavy, and optional

    made = {}
    for name in columns.numeric:
        if frame[name].dtype.name == "category":
            if frame[name].notna().any():
                raise DataError(f"Column {name!r} of {path} must hold numbers as in training; {odd_cell(frame[name])}.")
            made[name] = np.full(len(frame), np.nan)
        else:
            made[name] = _finite(frame[name].to_numpy(), name, path)
    for name in columns.categorical:
        made[name] = as_texts(frame[name])
    return pd.DataFrame(made, copy=False)


def odd_cell(column: Any) -> str:
    """Return which cell of a column of texts is no number, in words: the first, and how many there are."""
    is_odd = {text: not reads_as_number(text) for text in column.cat.categories}
    odd = np.flatnonzero([is_odd.get(text, False) for text in column])
    if not odd.size:  # such as numbers in quotes
        odd = np.flatnonzero(column.notna())
    more = f", and {odd.size - 1} more are no numbers" if odd.size > 1 else ""
    return f"row {odd[0] + 1} holds {column.iloc[odd[0]]!r}{more}"


def reads_as_number(text: str) -> bool:
    """Tell whether a text is a number, as the file is written; the word nan is none."""
    if how_written().decimal == ",":
        text = "no number" if "." in text else text.replace(",", ".")
    try:
        number = float(text)
    except ValueError:
        return False
    return "_" not in text and not math.isnan(number)


def _finite(values: AnyArray, name: str, path: Path) -> AnyArray:
    if values.dtype.kind == "f" and np.isinf(values).any():
        row = int(np.isinf(values).argmax()) + 1
        raise DataError(f"Column {name!r} of {path} must hold finite numbers; row {row} holds infinity.")
    return values


def as_texts(column: Any) -> Any:
    """Return a column as a categorical of texts, whether it held texts or numbers."""
    import pandas as pd  # noqa: PLC0415

    found = column.array if column.dtype.name == "category" else pd.Categorical(column.to_numpy())
    return found.rename_categories([text_of(value) for value in found.categories])


def labels_of(frame: Any, name: str, path: Path) -> AnyArray:
    """Return a column of labels: texts, whole numbers or truth values, none missing."""
    column = frame[name]
    n_missing = int(column.isna().sum())
    if n_missing:
        raise DataError(
            f"Column {name!r} of {path} must hold a label in each row; {n_missing} of {len(column)} are missing. "
            "Drop those rows first."
        )
    if column.dtype.name == "category":
        _warn_of_words(column, name, path)
        return np.asarray(column.to_numpy(), dtype=str)
    values = column.to_numpy()
    if values.dtype.kind == "f":
        fractions = np.flatnonzero(values != np.round(values))
        if fractions.size:
            where = f"row {fractions[0] + 1} holds the fraction {values[fractions[0]]:g}"
            raise DataError(f"Column {name!r} of {path} must hold classes; {where}. Put them into classes first.")
        return np.asarray(values, dtype=np.int64)
    return np.asarray(values)


def _warn_of_words(column: Any, name: str, path: Path) -> None:
    """Say that a word such as NA is a class where all others are numbers: most who write it mean a missing label."""
    words = [text for text in column.cat.categories if text in NO_NUMBERS]
    others = [text for text in column.cat.categories if text not in NO_NUMBERS]
    if not words or not others or not all(map(reads_as_number, others)):
        return
    rows = np.flatnonzero(column.isin(words))
    warn_caller(
        f"Column {name!r} of {path} holds numbers but for {listed(words)} in {rows.size} of {len(column)} rows, the "
        f"first of them row {rows[0] + 1}: the word is a class of its own. Leave "
        "those rows out if it stands for a missing label.",
        WordsAmongNumbers,
    )


def check_classes(labels: AnyArray, positive: Any, name: str, path: Path) -> AnyArray:
    """Return the classes, after checking that there are some to tell apart and that the positive one is among them."""
    classes = np.unique(labels)
    if len(classes) < 2:  # noqa: PLR2004
        raise DataError(
            f"Column {name!r} of {path} must hold at least two classes; it holds {classes[0].item()!r} only."
        )
    if len(classes) > _MOST_CLASSES:
        raise DataError(
            f"Column {name!r} of {path} must hold classes; it has {len(classes)} different values, and at most "
            f"{_MOST_CLASSES} are told apart. Name another target, or put its values into a few classes first."
        )
    if positive is not None and positive not in classes.tolist():
        known = listed(classes.tolist(), most=10)
        raise DataError(f"data.positive must be a class of column {name!r}: {known}; got {positive!r}.")
    return classes


def weights_of(frame: Any, name: str, path: Path, largest: float | None = None) -> FloatArray:
    """Return the sample weights: numbers, none missing, negative or above the largest there can be, not all zero."""
    if frame[name].dtype.name == "category":
        raise DataError(f"Column {name!r} of {path} must hold weights, numbers of at least 0; {odd_cell(frame[name])}.")
    values = frame[name].to_numpy().astype(np.float64)
    if not np.isfinite(values).all():
        raise DataError(
            f"Column {name!r} of {path} must hold a finite weight in each row; row "
            f"{int((~np.isfinite(values)).argmax()) + 1} has none."
        )
    if values.min() < 0:
        raise DataError(
            f"Column {name!r} of {path} must hold weights of at least 0; row {values.argmin() + 1} holds "
            f"{values.min():g}."
        )
    if values.max() == 0:
        raise DataError(f"Column {name!r} of {path} must hold a weight above 0; got zeros only.")
    if largest is not None and values.max() > largest:
        raise DataError(
            f"Column {name!r} of {path} must hold weights of at most {largest:g}, the largest_weight named; row "
            f"{values.argmax() + 1} weighs {values.max():g}. Name the most that any row of the population can weigh."
        )
    return np.asarray(values)


def groups_of(frame: Any, names: Sequence[str], path: Path) -> dict[str, AnyArray]:
    """Return the group columns as arrays; a missing text is None, and the text ``(missing)`` is refused."""
    return {name: _group(frame[name], name, path) for name in names if name in frame}


def _group(column: Any, name: str, path: Path) -> AnyArray:
    if column.dtype.name != "category":
        return np.asarray(column.to_numpy())
    if MISSING in column.cat.categories and (is_text := (column == MISSING).to_numpy()).any():
        raise DataError(
            f"Column {name!r} of {path} must not hold the text {MISSING!r}, which stands for a missing value in goals "
            f"and rules; row {is_text.argmax() + 1} does. Leave the field empty if the value is missing, or name the "
            "text in data.missing of a goals file; else write another text."
        )
    values = column.astype(object).to_numpy(copy=True)
    values[column.isna().to_numpy()] = None
    return np.asarray(values)
